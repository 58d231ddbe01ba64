//! The program itself: errors, the machine, inputs, block sizes, predictions.
use crate::Record;
use crate::operator::OperatorOnLinks;
use crate::place::Place;
use crate::solve::Batches;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The error of a command that has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecord {
    /// The error.
    pub error: ErrorMessage,
}

impl Record for ErrorRecord {
    const SCHEMA: &'static str = "ferrite.error/1";
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMessage {
    /// The message that is also on standard error.
    pub message: String,
    /// 1, 2, 129, 130 or 143.
    pub exit_code: u8,
}

/// The result of `ferrite info`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InfoRecord {
    /// Features of the build: `cuda`, `mpi`, `hdf5`.
    pub features: Vec<String>,
    /// Processor and system of the build.
    pub target: String,
    /// Number of processes.
    pub processes: usize,
    /// Number of threads of each.
    pub threads: usize,
    /// `AVX-512`, `AVX2` or `no vector instructions`.
    pub instructions: String,
    /// Modules of kernels.
    pub kernels: Vec<KernelModule>,
    /// The driver of GPUs.
    pub driver: DriverRecord,
    /// GPUs.
    pub devices: Vec<GpuRecord>,
    /// File of the tuner.
    pub tuning: TuningFile,
}

impl Record for InfoRecord {
    const SCHEMA: &'static str = "ferrite.info/1";
}

/// A module of kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelModule {
    /// Name of the module.
    pub module: String,
    /// Bytes of machine code of all architectures together; `None` without any.
    pub cubin_bytes: Option<usize>,
    /// Bytes of PTX of all architectures together; `None` without any.
    pub ptx_bytes: Option<usize>,
    /// Architectures of the machine code, such as `["sm_80", "sm_90"]`.
    pub cubins: Vec<String>,
    /// Architectures of the PTX.
    pub ptx: Vec<String>,
}

/// The driver of GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverRecord {
    /// Version of CUDA, or `None`.
    pub cuda: Option<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuRecord {
    /// Number of the device.
    pub device: usize,
    /// Name of the device.
    pub name: String,
    /// Bytes of its memory.
    pub memory_bytes: usize,
    /// Compute capability.
    pub capability: String,
    /// Entries of the tune cache that fit the device, its driver and the kernels.
    pub tuned_launches: usize,
}

/// The file of the tuner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuningFile {
    /// The file, or `None` with `--tuning off`.
    pub cache: Option<PathBuf>,
    /// Its entries for all devices, `None` if it was not read.
    pub launches: Option<usize>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of `ferrite init`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitRecord {
    /// Command that the input is for.
    pub kind: String,
    /// The input file, TOML with comments.
    pub input: String,
}

impl Record for InitRecord {
    const SCHEMA: &'static str = "ferrite.init/1";
}

/// The result of `ferrite completions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionsRecord {
    /// Name of the shell.
    pub shell: String,
    /// Script for the shell to read.
    pub script: String,
}

impl Record for CompletionsRecord {
    const SCHEMA: &'static str = "ferrite.completions/1";
}

/// The result of `ferrite man`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManRecord {
    /// The manual pages that were written.
    pub files: Vec<PathBuf>,
}

impl Record for ManRecord {
    const SCHEMA: &'static str = "ferrite.man/1";
}

/// The result of `ferrite tune`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneRecord {
    /// `cpu` or `cuda`.
    pub backend: String,
    /// The device, for people.
    pub device: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// The file, or `None` on a CPU, which has nothing to tune.
    pub cache: Option<PathBuf>,
    /// Launches.
    pub launches: Vec<TunedLaunch>,
}

impl Record for TuneRecord {
    const SCHEMA: &'static str = "ferrite.tune/2";
}

/// A launch with its best block size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunedLaunch {
    /// Entry point.
    pub kernel: String,
    /// Sites of one launch.
    pub sites: usize,
    /// Right-hand sides of one launch.
    pub nrhs: usize,
    /// The blocks that were found best ([tuning.md](tuning.md)).
    pub shape: String,
    /// Time of a launch with them.
    pub best_microseconds: Option<f64>,
    /// The blocks without tuning.
    pub default_shape: String,
    /// Time of a launch with them; `None` where they cannot be launched.
    pub default_microseconds: Option<f64>,
    /// `default_microseconds` over `best_microseconds`; 1 where the default is best.
    pub gain: Option<f64>,
    /// Times by blocks; `None` for blocks that cannot be launched.
    pub microseconds: BTreeMap<String, Option<f64>>,
    /// Date and time of the measurement, UTC.
    pub measured: String,
    /// Whether it was in this run, or in one before.
    pub measured_now: bool,
}

/// The result of `ferrite check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// The input file.
    pub file: PathBuf,
    /// Whether the free memory suffices.
    pub ok: bool,
    /// The task of the input.
    #[serde(flatten)]
    pub task: CheckedTask,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Device, and the processes of a run of as many as `--processes` says, or as `grid` has.
    #[serde(flatten)]
    pub place: Place,
    /// Memory of the device of each process.
    pub memory: MemoryRecord,
    /// The smallest number of processes, each with such a device, whose memory suffices with the grid that they take by themselves; `None`
    /// if none up to 1024 does.
    pub processes_needed: Option<usize>,
    /// Batches of the solve, of a source of the spectrum, or of the noise vectors of a condensate; the memory is that with the largest of
    /// them.
    #[serde(flatten)]
    pub batches: Batches,
    /// Predicted times, with `--time`, else `None`, also where a note says why they could not be predicted.
    pub time: Option<PredictedTime>,
}

impl Record for CheckRecord {
    const SCHEMA: &'static str = "ferrite.check/1";
}

/// The task of an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum CheckedTask {
    /// A solve.
    Solve {
        /// The operator.
        #[serde(flatten)]
        operator: Box<OperatorOnLinks>,
        /// Number of sources.
        sources: usize,
    },
    /// An ensemble.
    Rhmc {
        /// Number of the last trajectory.
        trajectories: u32,
        /// Names of the groups of quarks.
        quarks: Vec<String>,
    },
    /// A spectrum.
    Spectrum {
        /// Number of configurations.
        configurations: usize,
    },
}

/// Memory of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// Bytes that are needed.
    pub needed_bytes: usize,
    /// Bytes that are free.
    pub free_bytes: usize,
    /// Bytes of the device.
    pub total_bytes: usize,
    /// Parts of what is needed; with several processes these have borders of links, ghost zones and messages.
    pub parts: Vec<MemoryPart>,
}

/// A part of the memory that is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPart {
    /// Name of the part.
    pub what: String,
    /// Its bytes.
    pub bytes: usize,
}

/// Predicted times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PredictedTime {
    /// Times of a solve.
    Solve(PredictedSolve),
    /// Times of an ensemble.
    Ensemble(PredictedEnsemble),
}

/// Predicted times of a solve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedSolve {
    /// Seconds of an iteration for `right_hand_sides` together.
    pub seconds_per_iteration: f64,
    /// Seconds of 1000 iterations of all batches.
    pub seconds_per_1000_iterations: f64,
    /// Right-hand sides of the largest batch.
    pub right_hand_sides: usize,
    /// Number of batches.
    pub batches: usize,
    /// Seconds of the multigrid setup with `--solver multigrid`, else `None`.
    pub setup_seconds: Option<f64>,
    /// The lattice that was timed on, from which seconds are scaled to the part of each process, without exchanges.
    pub timed_on: [usize; 4],
}

/// Predicted times of an ensemble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedEnsemble {
    /// Seconds of a trajectory.
    pub seconds_per_trajectory: f64,
    /// Seconds of all trajectories.
    pub seconds: f64,
    /// The lattice that was timed on, as for a solve.
    pub timed_on: [usize; 4],
}
