//! Benchmarks.
use crate::observables::MeanAndError;
use crate::place::{Layout, Place};
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The result of `ferrite bench dslash`, `bench blas` and `bench copy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRecord {
    /// Device and processes. With several of these `layout` also has `transport` and `overlap`: how faces travelled, between processes
    /// that reach each other's memory if any do.
    #[serde(flatten)]
    pub place: Place,
    /// Timed calls.
    pub rows: Vec<TimedCall>,
    /// Kernels that were launched on a GPU, reductions apart; empty on a CPU.
    #[serde(default)]
    pub launches: Vec<LaunchRecord>,
}

impl Record for BenchRecord {
    const SCHEMA: &'static str = "ferrite.bench/1";
}

/// A timed call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimedCall {
    /// `wilson_dslash`, `wilson_dslash_add` (a x + b D ψ), `clover_dslash` (A⁻¹ D ψ), `clover_matrix`, `staggered_dslash`,
    /// `staggered_matrix` (M†M on one parity, with its sums), `asqtad_dslash`, `asqtad_matrix`, `norm2` …
    pub operator: String,
    /// `double`, `single`, `half` or `fp16`; or empty.
    pub precision: String,
    /// `18`, `12`, `8`, `12t`, `8t` (t: in temporal gauge), `18h`, `12h` or `8h` (h: in 16 bits beside single); for asqtad of the long
    /// links, and also `13`, `9`, `13h` or `9h`, on links in U(3); or empty.
    pub reconstruct: String,
    /// All sites, of which a call treats one parity.
    pub lattice: [usize; 4],
    /// Right-hand sides of a call.
    pub nrhs: usize,
    /// Microseconds of one call, the median of several batches.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub microseconds: f64,
    /// The community's standard count of operations, without reconstruction.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub gflops: f64,
    /// Every link and every spinor once; in temporal gauge without the links in t.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub gbps: f64,
    /// `gbps` over the bandwidth of a copy in the same memory, measured in the same run.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub fraction_of_copy: f64,
}

/// A kernel that was launched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// Entry point.
    pub kernel: String,
    /// Sites of a launch.
    pub sites: usize,
    /// Right-hand sides of a launch.
    pub nrhs: usize,
    /// Threads of a block.
    pub block: usize,
    /// Arrangement of the threads ([tuning.md](tuning.md)).
    pub shape: String,
}

/// The result of `ferrite bench halo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchHaloRecord {
    /// Device and processes.
    #[serde(flatten)]
    pub place: Place,
    /// Extents of the part of a process.
    pub local_lattice: [usize; 4],
    /// Times on the part of one process without neighbours, with `gflops` times the number of processes.
    pub alone: Vec<CallAlone>,
    /// Times with each transport.
    pub rows: Vec<CallWithHalo>,
    /// File of the timeline, or `None`.
    pub trace: Option<PathBuf>,
}

impl Record for BenchHaloRecord {
    const SCHEMA: &'static str = "ferrite.bench-halo/1";
}

/// A timed call without neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallAlone {
    /// The operator.
    pub operator: String,
    /// Its precision.
    pub precision: String,
    /// Reals of a link.
    pub reconstruct: String,
    /// Microseconds of a call.
    pub microseconds: f64,
    /// 10⁹ operations per second of all processes.
    pub gflops: f64,
}

/// A timed call with a transport of faces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallWithHalo {
    /// Operator, format and times.
    #[serde(flatten)]
    pub call: CallAlone,
    /// Right-hand sides of a call.
    pub nrhs: usize,
    /// The requested transport.
    pub transport: String,
    /// Transports in use, which are others where processes do not reach each other's memory.
    pub travelled: Vec<String>,
    /// Whether computation and communication overlapped.
    pub overlap: bool,
    /// The time alone over this one.
    pub efficiency: f64,
}

/// A timeline in Chrome's trace format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineFile {
    /// Events.
    #[serde(rename = "traceEvents")]
    pub events: Vec<TimelineEvent>,
    /// Unit of the display.
    #[serde(rename = "displayTimeUnit", default)]
    pub unit: String,
}

/// An event of a timeline: complete ones in microseconds, and names of ranks and tracks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimelineEvent {
    /// Name of the event.
    pub name: String,
    /// `X` of complete events, `M` of names.
    pub ph: String,
    /// Rank of the process.
    pub pid: u64,
    /// 0 for the main stream and 1 to 8 for the ends x− to t+.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u64>,
    /// Begin of a complete event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<f64>,
    /// Length of a complete event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    /// The name of a rank or track.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<TimelineName>,
}

/// Name of a rank or of a track.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimelineName {
    /// The name.
    pub name: String,
}

/// The result of `ferrite bench accuracy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyRecord {
    /// `cpu` or `cuda`.
    pub backend: String,
    /// The device, for people.
    pub device: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Values of ε.
    pub tolerances: Vec<f64>,
    /// Deviations of each format.
    pub rows: Vec<AccuracyRow>,
    /// File of the plot, or `None`.
    pub plot: Option<PathBuf>,
}

impl Record for AccuracyRecord {
    const SCHEMA: &'static str = "ferrite.accuracy/1";
}

/// Deviations of a format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyRow {
    /// Precision.
    pub precision: String,
    /// Reals of a link.
    pub reconstruct: String,
    /// Share of components that deviate by ε or more, one per tolerance.
    pub share: Vec<f64>,
    /// Mean deviation.
    pub mean: f64,
    /// Largest deviation.
    pub largest: f64,
}

/// The result of `ferrite bench solver`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchSolverRecord {
    /// Device and processes.
    #[serde(flatten)]
    pub place: Place,
    /// Name of the operator.
    pub operator: String,
    /// Number of the paper, `None` for staggered operators.
    pub paper: Option<String>,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// File of the links, or `None`.
    pub gauge: Option<PathBuf>,
    /// Generation of the links, or `None`.
    pub quenched: Option<BenchLinks>,
    /// Number of sources.
    pub sources: u64,
    /// Requested residual.
    pub tol: f64,
    /// Parameters of staggered operators: `u0` (asqtad's), `naik_epsilon` (HISQ's), `shifts` and `shift_solver`, each `None` where it does
    /// not apply.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
    /// Solves.
    pub rows: Vec<BenchSolverRow>,
    /// File of the plot, or `None`.
    pub plot: Option<PathBuf>,
}

impl Record for BenchSolverRecord {
    const SCHEMA: &'static str = "ferrite.bench-solver/1";
}

/// Shifts of a benchmark of staggered operators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchShifts {
    /// Shifts, or `None`.
    pub shifts: Option<Vec<f64>>,
    /// `multishift` or `sequential`, or `None`.
    pub shift_solver: Option<String>,
}

/// Quenched links of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchLinks {
    /// β
    pub beta: f64,
    /// Number of sweeps.
    pub sweeps: u32,
    /// Seed.
    pub seed: u64,
}

/// Averages over the solves of a mass and a format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchSolverRow {
    /// Table of the paper, `None` for staggered operators.
    pub table: Option<u32>,
    /// Bare mass.
    pub mass: f64,
    /// `cg` or `bicgstab`.
    pub solver: String,
    /// Precision of the iteration.
    pub precision: String,
    /// Reals of a link.
    pub reconstruct: String,
    /// `reliable` or `defect`.
    pub correction: String,
    /// δ, or the inner tolerance of `defect`; `None` for the default δ.
    pub parameter: Option<f64>,
    /// Average number of iterations, with the updates or corrections.
    #[serde(deserialize_with = "real::read")]
    pub iterations: f64,
    /// Average number of updates or corrections.
    #[serde(deserialize_with = "real::read")]
    pub updates: f64,
    /// Average seconds of a solve.
    #[serde(deserialize_with = "real::read")]
    pub seconds: f64,
    /// `seconds` over `iterations` without `updates`, whose time is included.
    #[serde(deserialize_with = "real::read")]
    pub microseconds_per_iteration: f64,
    /// Average iterations of multi-shift CG alone; 0 where there is none.
    #[serde(deserialize_with = "real::read")]
    pub first_iterations: f64,
    /// Average seconds of multi-shift CG alone; 0 where there is none.
    #[serde(deserialize_with = "real::read")]
    pub first_seconds: f64,
    /// The second over the first, or `None`.
    #[serde(deserialize_with = "real::read")]
    pub first_microseconds_per_iteration: f64,
    /// Operations of the matrix over the seconds.
    #[serde(deserialize_with = "real::read")]
    pub gflops: f64,
    /// Operations of the even-odd matrix by itself over its seconds; for staggered operators M†M on one parity.
    #[serde(deserialize_with = "real::read")]
    pub matrix_gflops: f64,
    /// The largest true residual.
    #[serde(deserialize_with = "real::read")]
    pub true_residual: f64,
    /// Reasons of solves that did not converge, which the averages leave out.
    pub failures: Vec<String>,
}

/// The result of `ferrite bench rhmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRhmcRecord {
    /// The folder.
    pub output: PathBuf,
    /// Bare mass.
    pub mass: f64,
    /// β
    pub beta: f64,
    /// Means of each setting.
    pub rows: Vec<BenchRhmcRow>,
    /// Files of the figures.
    pub figures: Vec<PathBuf>,
    /// `cpu` or `cuda`.
    pub backend: String,
    /// The device of the first process, for people.
    pub device: String,
}

impl Record for BenchRhmcRecord {
    const SCHEMA: &'static str = "ferrite.bench-rhmc/1";
}

/// Means of a setting of precision and integrator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRhmcRow {
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Name of the setting.
    pub setting: String,
    /// Steps of the quarks' force.
    pub steps: u32,
    /// Steps of the gauge force in each move of the links.
    pub gauge_steps: u32,
    /// Moves of the links in a trajectory.
    pub gauge_updates: usize,
    /// Number of trajectories.
    pub trajectories: usize,
    /// The plaquette.
    pub plaquette: MeanAndError,
    /// Real part of the Polyakov loop.
    pub polyakov_loop: MeanAndError,
    /// The condensate.
    pub condensate: MeanAndError,
    /// Distance by which reversed trajectories miss the start.
    pub irreversibility: IrreversibilityMeans,
    /// ΔH.
    pub delta_h: MeanAndError,
    /// Share of accepted trajectories.
    pub accepted: MeanAndError,
    /// Seconds of a trajectory that was not reversed, or `None`.
    #[serde(deserialize_with = "real::read")]
    pub seconds: f64,
}

/// Distance by which reversed trajectories miss the start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IrreversibilityMeans {
    /// Distance of links.
    pub links: MeanAndError,
    /// Distance of momenta.
    pub momenta: MeanAndError,
}

/// The result of `ferrite bench model`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchModelRecord {
    /// `cpu` or `cuda`; `None` where the machine was read.
    #[serde(default)]
    pub backend: Option<String>,
    /// The device of the machine.
    pub device: String,
    /// Processes that measured the machine; `None` where it was read.
    #[serde(default)]
    pub layout: Option<Layout>,
    /// The operator.
    #[serde(default)]
    pub operator: String,
    /// Extents of the lattice of strong scaling.
    #[serde(default)]
    pub lattice: [usize; 4],
    /// Extents of the part of a process in weak scaling.
    #[serde(default)]
    pub local: [usize; 4],
    /// The file that was read or written, or `None`.
    #[serde(default)]
    pub machine: Option<PathBuf>,
    /// Number of processes that measured the machine.
    #[serde(default)]
    pub measured_on: usize,
    /// Seconds of the measurement; `None` where the machine was read.
    #[serde(default)]
    pub measuring_seconds: Option<f64>,
    /// Exchanges of the machine.
    #[serde(default)]
    pub exchanges: Vec<ExchangeRecord>,
    /// GPUs of a host.
    #[serde(default)]
    pub gpus_per_host: usize,
    /// The network, as given or assumed.
    pub network: Option<NetworkRecord>,
    /// Origin of the iterations of the solvers, or `None` where they were not counted.
    #[serde(default)]
    pub iterations: Option<String>,
    /// Predicted times of calls.
    pub rows: Vec<PredictedCallRow>,
    /// Predicted times of solvers.
    #[serde(default)]
    pub solver_rows: Vec<PredictedSolverRow>,
    /// Measured and predicted values.
    #[serde(default)]
    pub compared: Vec<ComparedRow>,
    /// The deviation furthest from 0, or `None`.
    #[serde(default)]
    pub worst: Option<f64>,
    /// Files of the plots.
    #[serde(default)]
    pub plots: Vec<PathBuf>,
}

impl Record for BenchModelRecord {
    const SCHEMA: &'static str = "ferrite.bench-model/1";
}

/// Exchanges of faces of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExchangeRecord {
    /// The transport.
    pub transport: String,
    /// Latency in microseconds.
    pub latency_microseconds: f64,
    /// 10⁹ bytes per second.
    pub gbps: f64,
}

/// A network between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// Latency in microseconds.
    pub latency_microseconds: f64,
    /// 10⁹ bytes per second.
    pub gbps: f64,
}

/// The predicted time of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedCallRow {
    /// `strong` or `weak`.
    pub scaling: String,
    /// As in `ferrite.bench/1`; also `wilson_matrix`, and `wilson_matrix_sums`, `clover_matrix_sums`: with the sums that BiCGstab waits
    /// for.
    pub operator: String,
    /// Its precision.
    pub precision: String,
    /// Reals of a link.
    pub reconstruct: String,
    /// Number of GPUs.
    pub gpus: usize,
    /// All sites.
    pub lattice: [usize; 4],
    /// Grid of GPUs.
    pub grid: [usize; 4],
    /// Sites of each GPU.
    pub local_lattice: [usize; 4],
    /// Microseconds of a call, on the slowest GPU.
    pub microseconds: f64,
    /// Microseconds of a call on the same part without neighbours.
    pub alone_microseconds: f64,
    /// Microseconds of one of its exchanges with nothing else to do.
    pub exchange_microseconds: f64,
    /// What a hop takes the time of: `device` or `exchange`.
    pub bound: String,
    /// 10⁹ operations per second of all GPUs.
    pub gflops: f64,
    /// The time of one GPU (weak: with the same part; strong: with all, over `gpus`) over this one.
    pub efficiency: f64,
}

/// The predicted time of solvers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedSolverRow {
    /// `strong` or `weak`.
    pub scaling: String,
    /// Precision.
    pub precision: String,
    /// Reals of a link.
    pub reconstruct: String,
    /// Number of GPUs.
    pub gpus: usize,
    /// All sites.
    pub lattice: [usize; 4],
    /// Grid of GPUs.
    pub grid: [usize; 4],
    /// Microseconds of an iteration of BiCGstab, for staggered operators of CG on M†M.
    pub iteration_microseconds: f64,
    /// 10⁹ operations per second of it.
    pub gflops: f64,
    /// Seconds of a solve by BiCGstab with the machine's iterations; `None` where those were not counted: for other precisions and
    /// operators, and in weak scaling.
    pub bicgstab_seconds: Option<f64>,
    /// Seconds of a solve by GCR-DD, likewise.
    pub gcr_dd_seconds: Option<f64>,
    /// Its iterations, likewise.
    pub gcr_dd_iterations: Option<f64>,
    /// Whether the domains are smaller than those whose iterations were counted; `None` likewise.
    pub gcr_dd_extrapolated: Option<bool>,
    /// Operations of BiCGstab over its seconds.
    pub bicgstab_gflops: Option<f64>,
    /// Operations of BiCGstab over the seconds of GCR-DD.
    pub gcr_dd_effective_gflops: Option<f64>,
}

/// A measured value beside the predicted one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRow {
    /// The operator.
    pub operator: String,
    /// Its precision.
    pub precision: String,
    /// Reals of a link.
    pub reconstruct: String,
    /// All sites.
    pub lattice: [usize; 4],
    /// Grid of GPUs.
    pub grid: [usize; 4],
    /// Transport within a host; `None`: the usual one.
    pub transport: Option<String>,
    /// Whether computation and communication overlapped.
    pub overlap: bool,
    /// `strong` or `weak` of an efficiency; `None` for a time.
    pub scaling: Option<String>,
    /// Measured microseconds, or an efficiency.
    pub measured: f64,
    /// The same as predicted.
    pub predicted: f64,
    /// Deviation of the predicted time from the measured one, over the measured one: above 0 where the prediction is too slow.
    pub deviation: f64,
}

/// Points of scaling that were measured before, the file of `--measured`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScalingPoints {
    /// The points.
    pub points: Vec<ScalingPoint>,
}

impl Record for ScalingPoints {
    const SCHEMA: &'static str = "ferrite.scaling-points/1";
}

/// A point of scaling, with either `microseconds` or `efficiency`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScalingPoint {
    /// The operator; also `bicgstab` or `gcr_dd`: a solve.
    pub operator: String,
    /// Its precision.
    pub precision: String,
    /// Reals of a link.
    pub reconstruct: String,
    /// All sites.
    pub lattice: Option<[usize; 4]>,
    /// Sites of each process.
    pub local_lattice: Option<[usize; 4]>,
    /// Grid of processes.
    pub grid: Option<[usize; 4]>,
    /// Number of GPUs.
    pub gpus: Option<usize>,
    /// Microseconds of a call.
    pub microseconds: Option<f64>,
    /// An efficiency.
    pub efficiency: Option<f64>,
    /// `weak` or `strong`, of an efficiency.
    pub scaling: Option<String>,
    /// The device.
    pub device: String,
    /// Transport of faces, if not the usual one.
    pub transport: Option<String>,
    /// Whether computation and communication overlapped, if not as usual.
    pub overlap: Option<bool>,
}
