//! Records of the benchmarks that `ferrite bench` runs.
use crate::place::PlaceRecord;
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
    /// `9h` for links in U(3), or `13f` or `9f` beside fat links of 21 bits. Empty for calls without links.
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
    /// Bandwidth in 10⁹ bytes per second, if a call transfers every link and every spinor once. In temporal gauge, links in t are not
    /// counted.
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
    /// Arrangement of the threads in blocks ([tuning.md](tuning.md)).
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
    /// Efficiency: ratio of the time without neighbours to the time with the exchange.
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
    /// Start in microseconds; only for events of kind `X`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<f64>,
    /// Duration in microseconds; only for events of kind `X`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    /// Name of a rank or track; only for events of kind `M`.
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

/// Result of `ferrite bench solver`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchSolverRecord {
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
    /// Name of the operator.
    pub operator: String,
    /// Short number of the published study whose tables are repeated; `None` for staggered operators.
    pub paper: Option<String>,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// File of the links; `None` if they were generated.
    pub gauge: Option<PathBuf>,
    /// Generation of the links; `None` if they were read.
    pub quenched: Option<BenchLinks>,
    /// Number of sources.
    pub sources: u64,
    /// Requested tolerance of the solves.
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
    /// Strategy for several shifts: `multishift` or `sequential`; `None` without shifts.
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
    /// Speed of a solve in 10⁹ floating-point operations of the matrix per second.
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
