//! Devices that run kernels: a CPU or a GPU, behind the trait [`Backend`].
//!
//! Work is asynchronous and keeps its order: a call may return before its work is done, and later calls use the results. Only
//! [`Backend::sums`], [`Backend::download`] and [`Backend::synchronize`] wait.
mod architecture;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod embedded;
mod machine;
mod memory;
mod profile;
mod team;
pub mod tuning;
pub(crate) mod view;

pub use architecture::{Architecture, Capability, CodeForm};
pub use cpu::Cpu;
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, CudaDevice, Launched};
pub use embedded::{KernelCode, KernelImage, foreign_kernels, kernel_image, kernel_images};
pub use memory::{DeviceBuffer, Event, ForeignMemory, Peer, Pinned, Stream};
pub use profile::KernelTime;
pub use view::Ordered;

use gpu_kernels::{Format, Instance, Instances, SumInstances, Table};
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

/// Largest number of right-hand sides in a block of vectors, and therefore in a kernel launch. Launches whose arguments contain a number
/// for each right-hand side process at most [`gpu_kernels::per_rhs::MAX_RHS_WITH_NUMBERS`] right-hand sides at a time.
pub const MAX_RHS_PER_LAUNCH: usize = 64;
/// Number of slots for sums in a round of reductions: 8 values for each right-hand side and each of the five parts of a partitioned
/// lattice.
pub const REDUCTION_SLOTS: usize = 5 * 8 * MAX_RHS_PER_LAUNCH;

/// Largest number of sums of one launch of a reduction: 8 values for each right-hand side.
pub const LAUNCH_SUMS: usize = 8 * MAX_RHS_PER_LAUNCH;

/// Largest number of doubles that [`Backend::fetch_numbers`] copies at a time.
pub const FETCH_SLOTS: usize = solvers::SUM_PLACES * solvers::SUMS_IN_PLACE * MAX_RHS_PER_LAUNCH;

/// Free and total memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Free memory in bytes: what can be allocated now.
    pub free: usize,
    /// Total memory of the device in bytes.
    pub total: usize,
}

/// Reason why an operation of a backend failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// There is no CUDA driver on this machine, or the driver cannot be used.
    #[error("no GPU can be used: {0}, or run with --backend cpu")]
    NoDriver(String),
    /// The driver has no device with the requested number.
    #[error("GPU {device} does not exist: this machine has {count}; choose a GPU with --device")]
    NoDevice {
        /// Number of the requested device.
        device: usize,
        /// Number of devices.
        count: usize,
    },
    /// The GPU kernels of a module exist neither in the program nor in files.
    #[error(
        "the GPU kernels of module `{module}` are missing: build them with `cargo xtask build-ptx` and build the program \
         again, or set FERRITE_KERNELS to their folder"
    )]
    NoKernels {
        /// Name of the missing module.
        module: String,
    },
    /// The GPU is older than all architectures for which kernels are compiled.
    #[error(
        "{device} has compute capability {}, but the GPU kernels need {} or newer: choose another GPU with --device, \
         or run with --backend cpu",
        dotted(*capability),
        dotted(Architecture::oldest().capability())
    )]
    OldDevice {
        /// Name of the device.
        device: String,
        /// Compute capability of the device.
        capability: Capability,
    },
    /// A module of kernels contains no code for the GPU.
    #[error(
        "the GPU kernels of module `{module}` exist for {} only, but {device} has compute capability {}: build the \
         kernels with `cargo xtask build-ptx`, and then the program",
        codes.join(", "),
        dotted(*capability)
    )]
    NoCode {
        /// Name of the module.
        module: String,
        /// Name of the device.
        device: String,
        /// Compute capability of the device.
        capability: Capability,
        /// Codes of the module, such as `sm_90 (cubin)`.
        codes: Vec<String>,
    },
    /// A block of a kernel needs more shared memory than the device has.
    #[error(
        "kernel {kernel} needs {} of shared memory for a block, but {device} has {}: use fewer right-hand sides",
        gib(*bytes as usize),
        gib(*most as usize)
    )]
    SharedMemory {
        /// Name of the kernel.
        kernel: &'static str,
        /// Number of bytes that the block needs.
        bytes: u32,
        /// Largest number of bytes that a block may have.
        most: u32,
        /// Name of the device.
        device: String,
    },
    /// The kernels were built from other source than the program, so their arguments may differ.
    #[error(
        "the GPU kernels in {} do not belong to this program: build both from the same sources, kernels first (`cargo \
         xtask build-ptx`)",
        folder.display()
    )]
    OtherKernels {
        /// Folder of the kernels.
        folder: std::path::PathBuf,
    },
    /// The kernel is not compiled for the requested format of fields and links.
    #[error("the kernel {kernel} is not compiled for '{format}'; {}", in_this_build(formats, features))]
    NoFormat {
        /// Name of the kernel.
        kernel: &'static str,
        /// Requested format.
        format: String,
        /// Formats for which the kernel is compiled.
        formats: Vec<String>,
        /// Cargo features that enable this format; empty if no build provides it.
        features: Vec<&'static str>,
    },
    /// The CPU kernels of this program are compiled for other processors.
    #[error(
        "the CPU backend of this program is compiled for {}, which this processor does not have: build the program on \
         this machine, or with FERRITE_VECTORS=all (which needs at least AVX2 with FMA), or use a GPU",
        compiled_for()
    )]
    OtherProcessor,
    /// The operating system provides too few threads.
    #[error("the threads of the CPU backend cannot be started: {0}")]
    NoThreads(String),
    /// Two threads made reductions on one backend at the same time, which would mix their results.
    #[error("another thread has unfinished sums on {device}: create a backend for each thread")]
    Shared {
        /// Name of the device.
        device: String,
    },
    /// Devices of different processes cannot access each other's memory.
    #[error("devices cannot reach each other's memory")]
    NoPeers,
    /// An allocation needs more memory than is free.
    #[error("too little memory for {what}: {} requested on {device}, which has {} free; use a smaller lattice, fewer \
             right-hand sides or a lower precision", gib(*bytes), gib(*free))]
    OutOfMemory {
        /// Purpose of the memory.
        what: String,
        /// Number of bytes requested.
        bytes: usize,
        /// Number of bytes that are free.
        free: usize,
        /// Name of the device.
        device: String,
    },
    /// The cache of launch parameters cannot be used for a search.
    #[error(transparent)]
    Tuning(#[from] crate::backend::tuning::CacheError),
    /// A call of the GPU driver failed.
    #[error("{call} failed on {device}: {code}")]
    Driver {
        /// Attempted operation.
        call: String,
        /// Name of the device.
        device: String,
        /// Name that the driver gives to the error.
        code: String,
    },
}

impl BackendError {
    fn no_format(table: &Table, format: Format) -> Self {
        let formats = table.instances().map(|instance| instance.format.to_string()).collect();
        let features = table.missing_features(format).collect();
        BackendError::NoFormat { kernel: table.name, format: format.to_string(), formats, features }
    }
}

/// Returns a sentence for messages: the formats of this build, and the cargo features that would add the missing format.
pub(crate) fn in_this_build(formats: &[String], features: &[&str]) -> String {
    let has = match formats {
        [] => String::from("no format"),
        [one] => format!("the format {one}"),
        several => format!("the formats {}", several.join(", ")),
    };
    let add = match features {
        [] if formats.is_empty() => String::new(),
        [] => ": choose one of these formats".into(),
        [feature] => format!(": enable the feature \"{feature}\" of the crate ferrite"),
        several => format!(
            ": enable the features {} of the crate ferrite",
            several.iter().map(|f| format!("{f:?}")).collect::<Vec<_>>().join(" and ")
        ),
    };
    format!("this program contains {has}{add}")
}

/// Returns the names of the vector instructions for which kernels are compiled.
fn compiled_for() -> String {
    let names: Vec<&str> = gpu_kernels::cpu::Vectors::COMPILED.iter().map(|vectors| vectors.name()).collect();
    names.join(" and ")
}

fn dotted((major, minor): Capability) -> String {
    format!("{major}.{minor}")
}

fn gib(bytes: usize) -> String {
    if bytes < 1 << 20 {
        format!("{bytes} bytes")
    } else if bytes < 1 << 30 {
        format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
    } else {
        format!("{:.2} GiB", bytes as f64 / (1 << 30) as f64)
    }
}

/// The thread that has pending sums on a backend. Sums are pending from the first reduction until they are fetched or the thread ends.
#[derive(Debug, Default)]
struct Summing(Weak<()>);

thread_local! {
    /// Token of a thread, which lives as long as the thread.
    static ALIVE: Arc<()> = Arc::default();
}

impl Summing {
    /// Records that this thread has pending sums. Call it after a launch that succeeded: a failed launch leaves no pending sums.
    fn begin(&mut self) {
        self.0 = ALIVE.with(Arc::downgrade);
    }
    /// Checks that no other thread has pending sums, and records that this thread fetches its own.
    fn end(&mut self, device: impl FnOnce() -> String) -> Result {
        self.check(device)?;
        self.0 = Weak::new();
        Ok(())
    }
    /// Checks before a reduction that no other thread has pending sums.
    fn check(&self, device: impl FnOnce() -> String) -> Result {
        match self.0.upgrade() {
            Some(thread) if ALIVE.with(|mine| !Arc::ptr_eq(mine, &thread)) => {
                Err(BackendError::Shared { device: device() })
            }
            _ => Ok(()),
        }
    }
}

/// Result of an operation of a backend.
pub type Result<T = ()> = std::result::Result<T, BackendError>;

/// An instance of a kernel and its arguments, to be launched.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    instance: &'static Instance,
    arguments: *const u8,
    life: PhantomData<&'a ()>,
}

impl<'a> Call<'a> {
    /// Makes the call of a kernel's instance for `format` with the given arguments.
    ///
    /// # Errors
    /// [`BackendError::NoFormat`] if the kernel is not compiled for the format.
    pub fn of<A: Copy>(kernel: &Instances<A>, format: Format, arguments: &'a A) -> Result<Self> {
        Self::new(kernel.0, format, arguments)
    }
    /// Makes the call of a reduction's instance for `format` with the given arguments.
    ///
    /// # Errors
    /// [`BackendError::NoFormat`] if the reduction is not compiled for the format.
    pub fn of_sum<A: Copy>(kernel: &SumInstances<A>, format: Format, arguments: &'a A) -> Result<Self> {
        Self::new(kernel.0, format, arguments)
    }
    fn new<A>(table: &'static Table, format: Format, arguments: &'a A) -> Result<Self> {
        let instance = table.instance(format).ok_or_else(|| BackendError::no_format(table, format))?;
        Ok(Call { instance, arguments: std::ptr::from_ref(arguments).cast(), life: PhantomData })
    }
    /// Returns the number of values that a reduction sums; 0 for other kernels.
    fn values(&self) -> usize {
        self.instance.sum.map_or(0, |sum| sum.values)
    }
    /// Returns the kernel instance of this call.
    pub fn instance(&self) -> &'static Instance {
        self.instance
    }
}

/// A device that runs kernels, with its memory.
///
/// Work runs in the order of the calls, on the main stream, except work that is given to another [`Stream`].
///
/// A process may have any number of backends, and also several of one device; they are independent. A clone is the same backend. It can be
/// moved between threads, but only one thread at a time can use it: pending sums belong to the thread that launched them, and other threads
/// get [`BackendError::Shared`]. Threads that work at the same time need a backend each.
pub trait Backend: Send + Sync + 'static {
    /// Returns the name of the backend: `cpu` or `cuda`.
    fn name(&self) -> &'static str;
    /// Returns a description of the device, with its name or the number of threads.
    fn device(&self) -> String;
    /// Returns this backend behind a shared pointer; it is the same backend, not a copy.
    fn shared(&self) -> Arc<dyn Backend>;
    /// Returns a number that identifies this backend and its clones as long as it lives. Buffers can be used only with the backend that
    /// allocated them, or with its clones.
    fn id(&self) -> usize;
    /// Returns free and total memory.
    fn memory(&self) -> Result<Memory>;
    /// Whether kernels compute several sites at a time with vector instructions. Fields are then best stored in [lane
    /// order](gpu_kernels::lattice::lanes).
    fn has_lanes(&self) -> bool {
        false
    }

    /// Allocates zeroed memory; `what` names it in the error about too little memory.
    fn allocate(&self, bytes: usize, what: &str) -> Result<DeviceBuffer>;
    /// Allocates zeroed memory that other processes or other streams may use until it is dropped.
    fn allocate_apart(&self, bytes: usize, what: &str) -> Result<DeviceBuffer> {
        self.allocate(bytes, what)
    }
    /// Copies `data` from the host to a buffer of the device, starting at byte `offset`.
    fn upload(&self, data: &[u8], to: &mut DeviceBuffer, offset: usize) -> Result;
    /// Copies from a buffer of the device, starting at byte `offset`, to `data` on the host; waits for the end of the copy.
    fn download(&self, from: &DeviceBuffer, offset: usize, data: &mut [u8]) -> Result;
    /// Whether `address` is in memory of the device that the host cannot read.
    fn is_on_device(&self, _address: usize) -> bool {
        false
    }
    /// Copies from the start of memory that another library owns, after all work of the device, that of other libraries included.
    ///
    /// # Panics
    /// Panics if the memory is too short.
    fn read_foreign(&self, from: &ForeignMemory, data: &mut [u8]) -> Result;
    /// Copies to the start of memory that another library owns, after all work of the device, that of other libraries included.
    ///
    /// # Panics
    /// Panics if the memory is too short.
    fn write_foreign(&self, data: &[u8], to: &mut ForeignMemory) -> Result;
    /// Copies the first `bytes` bytes of one buffer to another.
    fn copy(&self, from: &DeviceBuffer, to: &mut DeviceBuffer, bytes: usize) -> Result;
    /// Zeroes all of a buffer.
    fn clear(&self, buffer: &mut DeviceBuffer) -> Result;

    /// Runs a kernel for sites `0..n` and right-hand sides `0..nrhs`, on the given stream or on the main one.
    fn run(&self, stream: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32) -> Result;
    /// Sums a reduction over sites `0..n`. Value k of right-hand side j goes to slot `slot` + j K + k, where K is the number of values;
    /// [`sums`](Self::sums) fetches the slots. Reductions on different streams must not run at the same time, except one on the main stream
    /// and one on another.
    fn sum(&self, stream: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32, slot: usize) -> Result;
    /// Sums a reduction over sites `0..n` into a buffer of doubles, which later kernels can read. Value k of right-hand side j goes to
    /// number `slot` + j K + k, where K is the number of values.
    fn sum_into(
        &self,
        stream: Option<&Stream>,
        kernel: Call<'_>,
        n: u32,
        nrhs: u32,
        to: (&DeviceBuffer, usize),
    ) -> Result;
    /// Waits for reductions, and fetches the first `out.len()` slots.
    ///
    /// # Panics
    /// Panics if `out` is longer than [`REDUCTION_SLOTS`].
    fn sums(&self, out: &mut [f64]) -> Result;

    /// Waits for all work of the main stream, and copies the first numbers of a buffer of doubles to `out`. It is quicker than
    /// [`download`](Self::download) for a few numbers.
    ///
    /// # Panics
    /// Panics if `out` is longer than [`FETCH_SLOTS`].
    fn fetch_numbers(&self, from: &DeviceBuffer, out: &mut [f64]) -> Result;

    /// Returns the approximate number of bytes that kernels could move in the time between the end of a reduction and a launch that depends
    /// on it.
    fn bytes_while_waiting(&self) -> usize {
        0
    }

    /// Makes a stream whose kernels have priority over those of the main stream.
    fn stream(&self) -> Result<Stream>;
    /// Allocates pinned host memory for messages; `what` names it in the error about too little memory.
    fn pinned(&self, bytes: usize, what: &str, order: Ordered) -> Result<Pinned>;
    /// Copies from a buffer, starting at byte `offset`, until `to` is full; does not wait.
    fn fetch(&self, from: &DeviceBuffer, offset: usize, to: &Pinned, stream: &Stream) -> Result;
    /// Copies all of `from` to a buffer, starting at byte `offset`; does not wait.
    fn put(&self, from: &Pinned, to: &DeviceBuffer, offset: usize, stream: &Stream) -> Result;
    /// Returns a handle for a buffer, with which another process of this machine can write to it.
    fn share(&self, buffer: &DeviceBuffer) -> Result<Vec<u8>>;
    /// Opens the memory that another process of this machine shares with this handle.
    fn open_peer(&self, handle: &[u8]) -> Result<Peer>;
    /// Returns the address of a peer's memory, for kernels and for calls such as [`copy_to_peer`](Self::copy_to_peer).
    fn peer_address(&self, peer: &Peer) -> *mut u8;
    /// Copies `bytes` bytes from a buffer, starting at byte `offset`, to the memory of a peer; does not wait.
    fn copy_to_peer(
        &self,
        from: &DeviceBuffer,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: &Stream,
        order: Ordered,
    ) -> Result;
    /// Writes `value` to words of peers' memory after all earlier work of the stream, or of the main stream, is done and visible there.
    fn signal(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>, order: Ordered) -> Result;
    /// Makes later work of the stream, or of the main stream, wait until words of this process's memory have reached `value`. The
    /// comparison allows for numbers that wrap around.
    fn await_signal(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>, order: Ordered) -> Result;
    /// Makes an event that can be recorded repeatedly; with `timing` it also records times.
    fn event(&self, timing: bool) -> Result<Event>;
    /// Records the event after the present work of the stream, or of the main stream.
    fn mark(&self, event: &Event, stream: Option<&Stream>) -> Result;
    /// Makes later work of the stream, or of the main stream, wait for a recorded event.
    fn follow(&self, event: &Event, stream: Option<&Stream>) -> Result;
    /// Whether all work before a recorded event is done.
    fn reached(&self, event: &Event) -> Result<bool>;

    /// Makes an event with a time, and records it after the present work of the main stream.
    fn record(&self) -> Result<Event>;
    /// Returns the seconds between two recorded events; waits for the later one.
    fn seconds_between(&self, from: &Event, to: &Event) -> Result<f64>;
    /// Waits until all work of the main stream is done.
    fn synchronize(&self) -> Result;

    /// Starts to measure the time of every launch. The measurement itself takes time.
    fn start_profile(&self) -> Result {
        Ok(())
    }
    /// Waits, and returns the launches of each kernel since [`start_profile`](Self::start_profile), the kernel with the longest total time
    /// first. Launches on different streams may have overlapped, so the times may add up to more than the run took.
    fn end_profile(&self) -> Result<Vec<KernelTime>> {
        Ok(Vec::new())
    }
}

impl From<&dyn Backend> for Arc<dyn Backend> {
    fn from(backend: &dyn Backend) -> Self {
        backend.shared()
    }
}

impl dyn Backend {
    /// Launches a kernel's instance for `format` on the main stream, for sites `0..n` and right-hand sides `0..nrhs`.
    pub fn launch<A: Copy>(&self, kernel: &Instances<A>, format: Format, arguments: &A, n: u32, nrhs: u32) -> Result {
        self.run(None, Call::of(kernel, format, arguments)?, n, nrhs)
    }
    /// Launches a reduction's instance for `format` on the main stream, for sites `0..n` and right-hand sides `0..nrhs`. The sums go to
    /// slots from `slot` on, as with [`Backend::sum`].
    pub fn reduce<A: Copy>(
        &self,
        kernel: &SumInstances<A>,
        format: Format,
        arguments: &A,
        (n, nrhs): (u32, u32),
        slot: usize,
    ) -> Result {
        self.sum(None, Call::of_sum(kernel, format, arguments)?, n, nrhs, slot)
    }
    /// Whether `other` is this backend or a clone of it.
    pub fn is(&self, other: &dyn Backend) -> bool {
        self.id() == other.id()
    }
}
