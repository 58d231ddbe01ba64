//! Records about the program: errors, the machine, inputs, block sizes, predictions.
use crate::Record;
use crate::operator::OperatorOnLinks;
use crate::place::PlaceRecord;
use crate::solve::BatchesRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Error of a command that has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecord {
    /// Message and exit code.
    pub error: ErrorMessage,
}

impl Record for ErrorRecord {
    const SCHEMA: &'static str = "ferrite.error/1";
}

/// Message and exit code of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorMessage {
    /// Message, as printed on standard error.
    pub message: String,
    /// Exit code: 1, 2, 129, 130 or 143.
    pub exit_code: u8,
}

/// Result of `ferrite info`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InfoRecord {
    /// Features of the build: `cuda`, `mpi`, `hdf5`.
    pub features: Vec<String>,
    /// Architecture and operating system for which the program was built.
    pub target: String,
    /// Number of processes.
    pub processes: usize,
    /// Number of threads of each process.
    pub threads: usize,
    /// Vector instructions of the CPU: `AVX-512`, `AVX2` or `no vector instructions`.
    pub instructions: String,
    /// Modules of kernels that the program contains.
    pub kernels: Vec<KernelModule>,
    /// Driver of the GPUs.
    pub driver: DriverRecord,
    /// GPUs of the host.
    pub devices: Vec<GpuRecord>,
    /// Tune cache.
    pub tuning: TuningFile,
}

impl Record for InfoRecord {
    const SCHEMA: &'static str = "ferrite.info/1";
}

/// Module of kernels, with the size and the architectures of its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelModule {
    /// Name of the module.
    pub module: String,
    /// Bytes of machine code for all architectures together; `None` without machine code.
    pub cubin_bytes: Option<usize>,
    /// Bytes of PTX for all architectures together; `None` without PTX.
    pub ptx_bytes: Option<usize>,
    /// Architectures of the machine code, such as `["sm_80", "sm_90"]`.
    pub cubins: Vec<String>,
    /// Architectures of the PTX.
    pub ptx: Vec<String>,
}

/// Driver of the GPUs, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverRecord {
    /// Version of CUDA; `None` without a driver.
    pub cuda: Option<String>,
    /// Reason why there is no driver; only without a driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Properties of a GPU of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuRecord {
    /// Number of the GPU on its host, counted from 0.
    pub device: usize,
    /// Name of the device.
    pub name: String,
    /// Total memory of the GPU in bytes.
    pub memory_bytes: usize,
    /// CUDA compute capability, such as `9.0`.
    pub capability: String,
    /// Number of entries of the tune cache that apply to the GPU, its driver and the kernels of the program.
    pub tuned_launches: usize,
}

/// File of the tune cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuningFile {
    /// Path of the file; `None` with `--tuning off`.
    pub cache: Option<PathBuf>,
    /// Number of entries of the file for all devices; `None` if the file was not read.
    pub launches: Option<usize>,
    /// Reason why the file cannot be read; only after such a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Result of `ferrite init`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitRecord {
    /// Command that reads the input.
    pub kind: String,
    /// Text of the input file, TOML with comments.
    pub input: String,
}

impl Record for InitRecord {
    const SCHEMA: &'static str = "ferrite.init/1";
}

/// Result of `ferrite completions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionsRecord {
    /// Name of the shell.
    pub shell: String,
    /// Script that the shell reads.
    pub script: String,
}

impl Record for CompletionsRecord {
    const SCHEMA: &'static str = "ferrite.completions/1";
}

/// Result of `ferrite man`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManRecord {
    /// Manual pages that were written.
    pub files: Vec<PathBuf>,
}

impl Record for ManRecord {
    const SCHEMA: &'static str = "ferrite.man/1";
}

/// Result of `ferrite tune`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneRecord {
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the device.
    pub device: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// File of the tune cache; `None` on a CPU, where nothing is tuned.
    pub cache: Option<PathBuf>,
    /// Tuned launches, with their best block sizes.
    pub launches: Vec<TunedLaunch>,
}

impl Record for TuneRecord {
    const SCHEMA: &'static str = "ferrite.tune/2";
}

/// Launch of a kernel with the times of its block sizes and the fastest one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunedLaunch {
    /// Entry point of the kernel.
    pub kernel: String,
    /// Number of sites of a launch.
    pub sites: usize,
    /// Number of right-hand sides of a launch.
    pub nrhs: usize,
    /// Fastest arrangement of the threads in blocks ([tuning.md](tuning.md)).
    pub shape: String,
    /// Microseconds of a launch with the fastest blocks.
    pub best_microseconds: Option<f64>,
    /// Arrangement of the threads in blocks without tuning.
    pub default_shape: String,
    /// Microseconds of a launch with the default blocks; `None` if these cannot be launched.
    pub default_microseconds: Option<f64>,
    /// Ratio of `default_microseconds` to `best_microseconds`; 1 if the default is fastest.
    pub gain: Option<f64>,
    /// Microseconds of a launch for each arrangement of blocks; `None` for arrangements that cannot be launched.
    pub microseconds: BTreeMap<String, Option<f64>>,
    /// Date and time of the measurement, UTC.
    pub measured: String,
    /// Whether the launch was measured in this run, not in an earlier one.
    pub measured_now: bool,
}

/// Result of `ferrite check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// Input file.
    pub file: PathBuf,
    /// Whether the free memory suffices.
    pub ok: bool,
    /// Task of the input.
    #[serde(flatten)]
    pub task: CheckedTask,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Device, and the processes of a run; `--processes` or the `grid` of the input sets their number.
    #[serde(flatten)]
    pub place: PlaceRecord,
    /// Memory on the device of each process.
    pub memory: MemoryRecord,
    /// Smallest number of processes whose memory suffices with the default grid, if each has such a device; `None` if more than 1024 are
    /// needed.
    pub processes_needed: Option<usize>,
    /// Batches of the solve, of a source of the spectrum, or of the noise vectors of a condensate. `memory` describes the largest batch.
    #[serde(flatten)]
    pub batches: BatchesRecord,
    /// Predicted times; `None` without `--time`, or if times cannot be predicted. In the latter case, a note on standard error states the
    /// reason.
    pub time: Option<PredictedTime>,
}

impl Record for CheckRecord {
    const SCHEMA: &'static str = "ferrite.check/1";
}

/// Task of an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum CheckedTask {
    /// A solve.
    Solve {
        /// Operator and links.
        #[serde(flatten)]
        operator: Box<OperatorOnLinks>,
        /// Number of sources.
        sources: usize,
    },
    /// Generation of an ensemble.
    Rhmc {
        /// Number of the trajectory with which the run ends.
        trajectories: u32,
        /// Names of the fermion monomials.
        quarks: Vec<String>,
    },
    /// Computation of a spectrum.
    Spectrum {
        /// Number of configurations.
        configurations: usize,
    },
}

/// Memory of a device: needed, free and in total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// Memory needed on the device, in bytes.
    pub needed_bytes: usize,
    /// Free memory of the device, in bytes.
    pub free_bytes: usize,
    /// Total memory of the device, in bytes.
    pub total_bytes: usize,
    /// Contributions to the memory needed. With several processes, they include borders of links, ghost zones and messages.
    pub parts: Vec<MemoryPart>,
}

/// A contribution to the memory needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPart {
    /// Name of the contribution.
    pub what: String,
    /// Size of the contribution in bytes.
    pub bytes: usize,
}

/// Predicted times of a solve or of an ensemble.
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
    /// Seconds of one iteration for a batch of `right_hand_sides` right-hand sides.
    pub seconds_per_iteration: f64,
    /// Seconds of 1000 iterations of all batches.
    pub seconds_per_1000_iterations: f64,
    /// Number of right-hand sides in the largest batch.
    pub right_hand_sides: usize,
    /// Number of batches.
    pub batches: usize,
    /// Seconds of the multigrid setup; `None` unless `--solver multigrid` is given.
    pub setup_seconds: Option<f64>,
    /// Extents of the lattice on which times were measured. The predicted seconds are scaled to the local lattice of each process, without
    /// the time for exchanges.
    pub timed_on: [usize; 4],
}

/// Predicted times of an ensemble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedEnsemble {
    /// Seconds of a trajectory.
    pub seconds_per_trajectory: f64,
    /// Seconds of all trajectories.
    pub seconds: f64,
    /// Extents of the lattice on which times were measured. The predicted seconds are scaled to the local lattice of each process, without
    /// the time for exchanges.
    pub timed_on: [usize; 4],
}
