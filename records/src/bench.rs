//! Records of the benchmarks that `ferrite bench` runs.
use crate::observables::MeanAndError;
use crate::place::{LayoutRecord, PlaceRecord};
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Result of `ferrite bench dslash`, `bench blas` and `bench copy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRecord {
    /// Device and processes. With several processes, `layout` also has `transport`, the transport that the benchmark used for faces, and
    /// `overlap`.
    #[serde(flatten)]
    pub place: PlaceRecord,
    /// Times of the calls; each row is one call in one format.
    pub rows: Vec<TimedCall>,
    /// Kernels launched on a GPU, except reductions; empty on a CPU.
    #[serde(default)]
    pub launches: Vec<LaunchRecord>,
}

impl Record for BenchRecord {
    const SCHEMA: &'static str = "ferrite.bench/1";
}

/// Name, format and speed of a timed call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimedCall {
    /// Name of the call: `wilson_dslash`, `wilson_dslash_add` (a x + b D ψ), `clover_dslash` (A⁻¹ D ψ), `clover_matrix`,
    /// `staggered_dslash`, `staggered_matrix` (M†M on one parity, with its sums), `asqtad_dslash`, `asqtad_matrix`, `norm2` …
    pub operator: String,
    /// Precision of the fields: `double`, `single`, `half` or `fp16`; empty if the call has no precision.
    pub precision: String,
    /// Reconstruction of the links: `18`, `12` or `8`, with `t` in temporal gauge (`12t`, `8t`) and with `h` for 16-bit links beside fields
    /// in single precision (`18h`, `12h`, `8h`). Operators with long links have the value of these, which may also be `13`, `9`, `13h` or
    /// `9h` for links in U(3). Empty for calls without links.
    pub reconstruct: String,
    /// Extents of the whole lattice; a call computes one parity.
    pub lattice: [usize; 4],
    /// Number of right-hand sides of a call.
    pub nrhs: usize,
    /// Microseconds of one call, the median of several batches of calls.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub microseconds: f64,
    /// 10⁹ floating-point operations per second by the community's standard count, which leaves out reconstruction.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub gflops: f64,
    /// 10⁹ bytes per second, if a call transfers every link and every spinor once; the links in t are not counted in temporal gauge.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub gbps: f64,
    /// Ratio of `gbps` to the bandwidth of a copy in the same memory, measured in the same run.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub fraction_of_copy: f64,
}

/// Kernel that a benchmark launched, with the size of the launch and its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// Entry point of the kernel.
    pub kernel: String,
    /// Number of sites of a launch.
    pub sites: usize,
    /// Number of right-hand sides of a launch.
    pub nrhs: usize,
    /// Number of threads of a block.
    pub block: usize,
    /// Arrangement of the threads ([tuning.md](tuning.md)).
    pub shape: String,
}

/// Result of `ferrite bench halo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchHaloRecord {
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
    /// Extents of the local lattice of a process.
    pub local_lattice: [usize; 4],
    /// Times on the local lattice of one process without neighbours, with `gflops` multiplied by the number of processes.
    pub alone: Vec<CallAlone>,
    /// Times with each transport, with and without overlap of computation and communication.
    pub rows: Vec<CallWithHalo>,
    /// File of the timeline; `None` without `--trace`.
    pub trace: Option<PathBuf>,
}

impl Record for BenchHaloRecord {
    const SCHEMA: &'static str = "ferrite.bench-halo/1";
}

/// Time of a call on a local lattice without neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallAlone {
    /// Name of the timed call, as in `ferrite.bench/1`.
    pub operator: String,
    /// Precision of the fields.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Microseconds of a call.
    pub microseconds: f64,
    /// 10⁹ floating-point operations per second of all processes.
    pub gflops: f64,
}

/// Time of a call with an exchange of faces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallWithHalo {
    /// Operator, format and times.
    #[serde(flatten)]
    pub call: CallAlone,
    /// Number of right-hand sides of a call.
    pub nrhs: usize,
    /// Requested transport.
    pub transport: String,
    /// Transports in use, which differ from the requested one if processes cannot access each other's memory.
    pub travelled: Vec<String>,
    /// Whether computation and communication overlapped.
    pub overlap: bool,
    /// Ratio of the time without neighbours to the time with the exchange.
    pub efficiency: f64,
}

/// A timeline in Chrome's trace format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineFile {
    /// Events of the timeline.
    #[serde(rename = "traceEvents")]
    pub events: Vec<TimelineEvent>,
    /// Unit in which times are displayed.
    #[serde(rename = "displayTimeUnit", default)]
    pub unit: String,
}

/// An event of a timeline: a complete event with times in microseconds, or the name of a rank or track.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimelineEvent {
    /// Name of the event.
    pub name: String,
    /// Kind of the event: `X` for a complete event, `M` for a name.
    pub ph: String,
    /// Rank of the process.
    pub pid: u64,
    /// Track: 0 for the main stream, 1 to 8 for the directions x− to t+.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u64>,
    /// Start in microseconds; only for complete events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<f64>,
    /// Duration in microseconds; only for complete events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    /// Name of a rank or track; only for names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<TimelineName>,
}

/// Name of a rank or of a track in a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimelineName {
    /// Name of the rank or track.
    pub name: String,
}

/// Result of `ferrite bench accuracy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyRecord {
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the device.
    pub device: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Values of ε, the smallest deviation that is counted.
    pub tolerances: Vec<f64>,
    /// Deviations of the results in each format.
    pub rows: Vec<AccuracyRow>,
    /// File of the plot; `None` without `--plot`.
    pub plot: Option<PathBuf>,
}

impl Record for AccuracyRecord {
    const SCHEMA: &'static str = "ferrite.accuracy/1";
}

/// Deviations of the even-odd Wilson matrix in one format from its result in double precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyRow {
    /// Precision of the fields.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Fraction of components that deviate by ε or more, one for each tolerance.
    pub share: Vec<f64>,
    /// Mean deviation of a component, as an absolute value.
    pub mean: f64,
    /// Largest deviation of a component, as an absolute value.
    pub largest: f64,
}

/// Result of `ferrite bench solver`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchSolverRecord {
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
    /// Name of the operator.
    pub operator: String,
    /// Number of the paper that is reproduced; `None` for staggered operators.
    pub paper: Option<String>,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// File of the links; `None` if they were generated.
    pub gauge: Option<PathBuf>,
    /// Generation of the links; `None` if they were read.
    pub quenched: Option<BenchLinks>,
    /// Number of sources.
    pub sources: u64,
    /// Requested residual.
    pub tol: f64,
    /// Parameters of staggered operators: `u0` (asqtad), `naik_epsilon` (HISQ), `shifts` and `shift_solver`, each `None` if it does not
    /// apply.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
    /// Averages over the solves of each mass and format.
    pub rows: Vec<BenchSolverRow>,
    /// File of the plot; `None` without a plot.
    pub plot: Option<PathBuf>,
}

impl Record for BenchSolverRecord {
    const SCHEMA: &'static str = "ferrite.bench-solver/1";
}

/// Shifts of a benchmark of staggered operators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchShifts {
    /// Shifts of the systems; `None` without shifts.
    pub shifts: Option<Vec<f64>>,
    /// Method for the shifted systems: `multishift` or `sequential`; `None` without shifts.
    pub shift_solver: Option<String>,
}

/// Quenched links of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchLinks {
    /// Gauge coupling β.
    pub beta: f64,
    /// Number of sweeps.
    pub sweeps: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Averages over the solves with one mass and one format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchSolverRow {
    /// Number of the table in the paper; `None` for staggered operators.
    pub table: Option<u32>,
    /// Bare mass.
    pub mass: f64,
    /// Method: `cg` or `bicgstab`.
    pub solver: String,
    /// Precision of the iteration.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Correction of the iteration: `reliable` (reliable updates) or `defect` (defect correction).
    pub correction: String,
    /// Parameter of the correction: δ of `reliable`, or the inner tolerance of `defect`; `None` for the default δ.
    pub parameter: Option<f64>,
    /// Average number of iterations, including updates or corrections.
    #[serde(deserialize_with = "real::read")]
    pub iterations: f64,
    /// Average number of updates or corrections.
    #[serde(deserialize_with = "real::read")]
    pub updates: f64,
    /// Average seconds of a solve.
    #[serde(deserialize_with = "real::read")]
    pub seconds: f64,
    /// Microseconds per iteration: `seconds` divided by `iterations` − `updates`, so that the time of the updates is included.
    #[serde(deserialize_with = "real::read")]
    pub microseconds_per_iteration: f64,
    /// Average number of iterations of multi-shift CG alone; 0 without multi-shift CG.
    #[serde(deserialize_with = "real::read")]
    pub first_iterations: f64,
    /// Average seconds of multi-shift CG alone; 0 without multi-shift CG.
    #[serde(deserialize_with = "real::read")]
    pub first_seconds: f64,
    /// Microseconds per iteration of multi-shift CG, `first_seconds` divided by `first_iterations`; `null` without multi-shift CG.
    #[serde(deserialize_with = "real::read")]
    pub first_microseconds_per_iteration: f64,
    /// 10⁹ floating-point operations of the matrix per second of a solve.
    #[serde(deserialize_with = "real::read")]
    pub gflops: f64,
    /// 10⁹ floating-point operations per second of the even-odd matrix in a timing without a solver. The matrix of staggered operators is
    /// M†M on one parity.
    #[serde(deserialize_with = "real::read")]
    pub matrix_gflops: f64,
    /// Largest true residual of the solves.
    #[serde(deserialize_with = "real::read")]
    pub true_residual: f64,
    /// Reasons of solves that did not converge; the averages leave these solves out.
    pub failures: Vec<String>,
}

/// Result of `ferrite bench rhmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRhmcRecord {
    /// Folder of the ensembles and figures.
    pub output: PathBuf,
    /// Bare mass.
    pub mass: f64,
    /// Gauge coupling β.
    pub beta: f64,
    /// Means for each setting of precision and integrator.
    pub rows: Vec<BenchRhmcRow>,
    /// Files of the figures.
    pub figures: Vec<PathBuf>,
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the first process's device.
    pub device: String,
}

impl Record for BenchRhmcRecord {
    const SCHEMA: &'static str = "ferrite.bench-rhmc/1";
}

/// Means for one setting of precision and integrator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRhmcRow {
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Name of the setting.
    pub setting: String,
    /// Number of steps of the fermion force.
    pub steps: u32,
    /// Number of steps of the gauge force in each update of the links.
    pub gauge_steps: u32,
    /// Number of updates of the links in a trajectory.
    pub gauge_updates: usize,
    /// Number of trajectories.
    pub trajectories: usize,
    /// Mean plaquette.
    pub plaquette: MeanAndError,
    /// Mean real part of the Polyakov loop.
    pub polyakov_loop: MeanAndError,
    /// Chiral condensate.
    pub condensate: MeanAndError,
    /// Reversibility violation: distance between the start of a trajectory and the end of its reversal.
    pub irreversibility: IrreversibilityMeans,
    /// Change ΔH of the Hamiltonian in a trajectory.
    pub delta_h: MeanAndError,
    /// Fraction of accepted trajectories.
    pub accepted: MeanAndError,
    /// Mean seconds of a trajectory without reversal; `null` if all were reversed.
    #[serde(deserialize_with = "real::read")]
    pub seconds: f64,
}

/// Distance between the start of a trajectory and the end of its reversal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IrreversibilityMeans {
    /// Distance in the links.
    pub links: MeanAndError,
    /// Distance in the momenta.
    pub momenta: MeanAndError,
}

/// Result of `ferrite bench model`.
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

/// Measured scaling point, with either `microseconds` or `efficiency`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScalingPoint {
    /// Name of the call, or `bicgstab` or `gcr_dd` for a solve.
    pub operator: String,
    /// Precision of the fields.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Extents of the whole lattice.
    pub lattice: Option<[usize; 4]>,
    /// Extents of the local lattice of each process.
    pub local_lattice: Option<[usize; 4]>,
    /// Grid of processes.
    pub grid: Option<[usize; 4]>,
    /// Number of GPUs.
    pub gpus: Option<usize>,
    /// Microseconds of a call.
    pub microseconds: Option<f64>,
    /// Parallel efficiency.
    pub efficiency: Option<f64>,
    /// Kind of scaling of an efficiency: `weak` or `strong`.
    pub scaling: Option<String>,
    /// Name of the device.
    pub device: String,
    /// Transport of faces; `None` for the usual transport.
    pub transport: Option<String>,
    /// Whether computation and communication overlapped; `None` for the usual setting.
    pub overlap: Option<bool>,
}
