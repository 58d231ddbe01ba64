//! Record of `ferrite-studies model`, and the file of points that it compares with.
use ferrite_records::Record;
use ferrite_records::bench::ScalingPoint;
use ferrite_records::place::LayoutRecord;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Result of `ferrite-studies model`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchModelRecord {
    /// Backend: `cpu` or `cuda`; `None` if the machine was read from a file.
    #[serde(default)]
    pub backend: Option<String>,
    /// Device of the machine.
    pub device: String,
    /// Processes that measured the machine; `None` if it was read from a file.
    #[serde(default)]
    pub layout: Option<LayoutRecord>,
    /// Name of the operator.
    #[serde(default)]
    pub operator: String,
    /// Extents of the lattice in strong scaling.
    #[serde(default)]
    pub lattice: [usize; 4],
    /// Extents of the local lattice of a process in weak scaling.
    #[serde(default)]
    pub local: [usize; 4],
    /// File of the machine that was read or written; `None` without such a file.
    #[serde(default)]
    pub machine: Option<PathBuf>,
    /// Number of processes that measured the machine.
    #[serde(default)]
    pub measured_on: usize,
    /// Seconds of the measurement; `None` if the machine was read from a file.
    #[serde(default)]
    pub measuring_seconds: Option<f64>,
    /// Latency and bandwidth of each transport of faces.
    #[serde(default)]
    pub exchanges: Vec<ExchangeRecord>,
    /// Number of GPUs of a host.
    #[serde(default)]
    pub gpus_per_host: usize,
    /// Network between hosts, as given or assumed.
    pub network: Option<NetworkRecord>,
    /// Source of the iteration counts of the solvers; `None` if iterations were not counted.
    #[serde(default)]
    pub iterations: Option<String>,
    /// Predicted times of calls.
    pub rows: Vec<PredictedCallRow>,
    /// Predicted times of solvers.
    #[serde(default)]
    pub solver_rows: Vec<PredictedSolverRow>,
    /// Comparisons of measured with predicted values.
    #[serde(default)]
    pub compared: Vec<ComparedRow>,
    /// Deviation with the largest absolute value; `None` without a comparison.
    #[serde(default)]
    pub worst: Option<f64>,
    /// Files of the plots.
    #[serde(default)]
    pub plots: Vec<PathBuf>,
}

impl Record for BenchModelRecord {
    const SCHEMA: &'static str = "ferrite.bench-model/1";
}

/// Latency and bandwidth of an exchange of faces by one transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExchangeRecord {
    /// Transport of the faces.
    pub transport: String,
    /// Latency in microseconds.
    pub latency_microseconds: f64,
    /// Bandwidth in 10⁹ bytes per second.
    pub gbps: f64,
}

/// Latency and bandwidth of the network between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// Latency in microseconds.
    pub latency_microseconds: f64,
    /// Bandwidth in 10⁹ bytes per second.
    pub gbps: f64,
}

/// Predicted time of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedCallRow {
    /// Kind of scaling: `strong` or `weak`.
    pub scaling: String,
    /// Name of the call, as in `ferrite.bench/1`, or `wilson_matrix`, `wilson_matrix_sums` or `clover_matrix_sums`. The names in `_sums`
    /// are matrices with the sums over the lattice that BiCGstab waits for.
    pub operator: String,
    /// Precision of the fields.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Number of GPUs.
    pub gpus: usize,
    /// Extents of the whole lattice.
    pub lattice: [usize; 4],
    /// Grid of GPUs.
    pub grid: [usize; 4],
    /// Extents of the local lattice of each GPU.
    pub local_lattice: [usize; 4],
    /// Microseconds of a call on the slowest GPU.
    pub microseconds: f64,
    /// Microseconds of a call on a local lattice of this size without neighbours.
    pub alone_microseconds: f64,
    /// Microseconds of one exchange of the call without simultaneous computation.
    pub exchange_microseconds: f64,
    /// Limit of the speed of a hop: `device` (computation) or `exchange` (communication).
    pub bound: String,
    /// 10⁹ floating-point operations per second of all GPUs.
    pub gflops: f64,
    /// Parallel efficiency: the time on one GPU divided by the predicted time. In weak scaling, the one GPU has the same local lattice. In
    /// strong scaling, it has the whole lattice, and its time is divided by `gpus`.
    pub efficiency: f64,
}

/// Predicted times of BiCGstab and GCR-DD on a number of GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedSolverRow {
    /// Kind of scaling: `strong` or `weak`.
    pub scaling: String,
    /// Precision of the iteration.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Number of GPUs.
    pub gpus: usize,
    /// Extents of the whole lattice.
    pub lattice: [usize; 4],
    /// Grid of GPUs.
    pub grid: [usize; 4],
    /// Microseconds of an iteration of BiCGstab; for staggered operators, of CG on M†M.
    pub iteration_microseconds: f64,
    /// 10⁹ floating-point operations per second in an iteration.
    pub gflops: f64,
    /// Seconds of a solve by BiCGstab with the iterations counted for the machine; `None` in weak scaling, and for operators and precisions
    /// without counted iterations.
    pub bicgstab_seconds: Option<f64>,
    /// Seconds of a solve by GCR-DD; `None` in weak scaling, and without counted iterations.
    pub gcr_dd_seconds: Option<f64>,
    /// Number of iterations of GCR-DD; `None` in weak scaling, and without counted iterations.
    pub gcr_dd_iterations: Option<f64>,
    /// Whether the domains are smaller than those whose iterations were counted; `None` in weak scaling, and without counted iterations.
    pub gcr_dd_extrapolated: Option<bool>,
    /// 10⁹ floating-point operations of BiCGstab per second of the solve by BiCGstab.
    pub bicgstab_gflops: Option<f64>,
    /// 10⁹ floating-point operations of BiCGstab per second of the solve by GCR-DD.
    pub gcr_dd_effective_gflops: Option<f64>,
}

/// Comparison of a measured with a predicted value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRow {
    /// Name of the call or of the solver.
    pub operator: String,
    /// Precision of the fields.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Extents of the whole lattice.
    pub lattice: [usize; 4],
    /// Grid of GPUs.
    pub grid: [usize; 4],
    /// Transport of faces within a host; `None` for the usual transport.
    pub transport: Option<String>,
    /// Whether computation and communication overlapped.
    pub overlap: bool,
    /// Kind of scaling of an efficiency: `strong` or `weak`; `None` for a time.
    pub scaling: Option<String>,
    /// Measured microseconds, or measured efficiency.
    pub measured: f64,
    /// Predicted microseconds, or predicted efficiency.
    pub predicted: f64,
    /// Relative deviation of the predicted time from the measured time; positive if the prediction is too slow.
    pub deviation: f64,
}

/// Scaling points of earlier measurements, as in the file of `--measured`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScalingPoints {
    /// Times and efficiencies that were measured.
    pub points: Vec<ScalingPoint>,
}

impl Record for ScalingPoints {
    const SCHEMA: &'static str = "ferrite.scaling-points/1";
}
