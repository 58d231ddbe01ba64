//! Devices that run kernels: CPU threads or a GPU, behind one trait.
//!
//! Everything is asynchronous in program order: a backend may return before a launch is done, and later calls see its
//! results. Only [`Backend::sums`], [`Backend::download`] and [`Backend::synchronize`] wait.
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
pub use memory::{DeviceBuffer, Event, Peer, Pinned, Stream};
pub use profile::KernelTime;
pub use view::Ordered;

use gpu_kernels::{Format, Instance, Instances, SumInstances, Table};
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

/// Largest number of right-hand sides of a block of vectors, and so of a kernel launch. Launches whose arguments have numbers for each
/// right-hand side take fewer at a time: [`gpu_kernels::per_rhs::MAX_RHS_WITH_NUMBERS`].
pub const MAX_RHS_PER_LAUNCH: usize = 64;
/// Number of right-hand sides × values that one round of reductions can hold, for each part of a lattice that is cut.
pub const REDUCTION_SLOTS: usize = 5 * 8 * MAX_RHS_PER_LAUNCH;

/// Number of right-hand sides × values that one launch of a reduction can hold.
pub const LAUNCH_SUMS: usize = 8 * MAX_RHS_PER_LAUNCH;

/// Memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Number of bytes that can be allocated now.
    pub free: usize,
    /// Total number of bytes.
    pub total: usize,
}

/// Reason why a backend could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No CUDA driver on this machine.
    #[error("no GPU can be used: {0}; install the NVIDIA driver, or run with --backend cpu")]
    NoDriver(String),
    /// A driver without this device.
    #[error("GPU {device} does not exist: this machine has {count}; choose a GPU with --device")]
    NoDevice {
        /// Number of the requested device.
        device: usize,
        /// Number of devices.
        count: usize,
    },
    /// No kernels for the GPU in the program or beside it.
    #[error(
        "the GPU kernels of module `{module}` are missing: build them with `cargo xtask build-ptx` and build the program \
         again, or set FERRITE_KERNELS to their folder"
    )]
    NoKernels {
        /// The missing module.
        module: String,
    },
    /// A GPU that is older than all architectures for which kernels are compiled.
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
    /// A module that exists, but not for this GPU.
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
        /// Codes of the module: `sm_90 (cubin)`.
        codes: Vec<String>,
    },
    /// A block that needs more shared memory than the device has.
    #[error(
        "kernel {kernel} needs {} of shared memory for a block, but {device} has {}: use fewer right-hand sides",
        gib(*bytes as usize),
        gib(*most as usize)
    )]
    SharedMemory {
        /// Name of the kernel.
        kernel: &'static str,
        /// Number of bytes that a block would need.
        bytes: u32,
        /// Largest number of bytes that a block may have.
        most: u32,
        /// Name of the device.
        device: String,
    },
    /// Kernels of another version of the crate gpu-kernels than the program's, whose arguments may differ.
    #[error(
        "the GPU kernels in {} do not belong to this program: build both from the same sources, kernels first (`cargo \
         xtask build-ptx`)",
        folder.display()
    )]
    OtherKernels {
        /// Folder of the kernels.
        folder: std::path::PathBuf,
    },
    /// A kernel that is not compiled for this format of fields and links.
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
    /// Kernels that are compiled for other processors.
    #[error(
        "the CPU backend of this program is compiled for {}, which this processor does not have: build the program on \
         this machine, or with FERRITE_VECTORS=all (which needs at least AVX2 with FMA), or use a GPU",
        compiled_for()
    )]
    OtherProcessor,
    /// No more threads from the operating system.
    #[error("the threads of the CPU backend cannot be started: {0}")]
    NoThreads(String),
    /// Reductions of two threads on one backend at the same time, whose results would mix.
    #[error("another thread has unfinished sums on {device}: create a backend for each thread")]
    Shared {
        /// Name of the device.
        device: String,
    },
    /// Devices of different processes that cannot reach each other's memory.
    #[error("devices cannot reach each other's memory")]
    NoPeers,
    /// A request for more memory than is free.
    #[error("{what} needs {} on {device}, which has {} free; use a smaller lattice, fewer right-hand sides or a lower \
             precision", gib(*bytes), gib(*free))]
    OutOfMemory {
        /// Use of the memory.
        what: String,
        /// Number of bytes requested.
        bytes: usize,
        /// Number of bytes free.
        free: usize,
        /// Name of the device.
        device: String,
    },
    /// A cache of launch parameters that cannot be used for a search.
    #[error(transparent)]
    Tuning(#[from] crate::backend::tuning::CacheError),
    /// An error of the driver.
    #[error("{call} failed on {device}: {code}")]
    Driver {
        /// Attempted operation.
        call: String,
        /// Name of the device.
        device: String,
        /// The driver's own name of the error.
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

/// Returns the formats of this build, and the cargo features that would add the missing one, for messages.
pub(crate) fn in_this_build(formats: &[String], features: &[&str]) -> String {
    let has = if formats.is_empty() { "no format".into() } else { formats.join(", ") };
    let add = match features {
        [] => String::new(),
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

/// Thread whose sums are pending on a backend, from the first reduction until they are fetched, or until the thread ends without fetching
/// them.
#[derive(Debug, Default)]
struct Summing(Weak<()>);

thread_local! {
    /// Token that lives as long as its thread.
    static ALIVE: Arc<()> = Arc::default();
}

impl Summing {
    /// Records that this thread has launched a reduction. Called after the launch: a failed launch leaves no pending sums.
    fn begin(&mut self) {
        self.0 = ALIVE.with(Arc::downgrade);
    }
    /// Checks that the pending sums are those of this thread, and ends them before they are fetched.
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

/// A result of a backend.
pub type Result<T = ()> = std::result::Result<T, BackendError>;

/// An instance of a kernel and its arguments, for the time of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    instance: &'static Instance,
    arguments: *const u8,
    life: PhantomData<&'a ()>,
}

impl<'a> Call<'a> {
    /// Makes the call of a kernel in a format.
    ///
    /// # Errors
    /// [`BackendError::NoFormat`].
    pub fn of<A: Copy>(kernel: &Instances<A>, format: Format, arguments: &'a A) -> Result<Self> {
        Self::new(kernel.0, format, arguments)
    }
    /// Makes the call of a reduction in a format.
    ///
    /// # Errors
    /// [`BackendError::NoFormat`].
    pub fn of_sum<A: Copy>(kernel: &SumInstances<A>, format: Format, arguments: &'a A) -> Result<Self> {
        Self::new(kernel.0, format, arguments)
    }
    fn new<A>(table: &'static Table, format: Format, arguments: &'a A) -> Result<Self> {
        let instance = table.instance(format).ok_or_else(|| BackendError::no_format(table, format))?;
        Ok(Call { instance, arguments: std::ptr::from_ref(arguments).cast(), life: PhantomData })
    }
    /// Returns the number of values that a reduction sums.
    fn values(&self) -> usize {
        self.instance.sum.map_or(0, |sum| sum.values)
    }
    /// Returns the instance that is launched.
    pub fn instance(&self) -> &'static Instance {
        self.instance
    }
}

/// Threads, memory and kernels of one device.
///
/// Work is done in the order of the calls, except work on a [`Stream`] of its own.
///
/// A process may have any number of backends, also several of one device, which are independent. A clone is the same backend. It can be
/// moved between threads, but only one thread at a time can use it: pending sums belong to the thread that launched them, and any other
/// thread gets [`BackendError::Shared`]. Concurrent threads need a backend each.
pub trait Backend: Send + Sync + 'static {
    /// Returns the name of the backend: `cpu` or `cuda`.
    fn name(&self) -> &'static str;
    /// Returns a description of the device: its name, or the number of threads.
    fn device(&self) -> String;
    /// Returns a clone of this backend.
    fn shared(&self) -> Arc<dyn Backend>;
    /// Returns a number that clones of this backend share, and no other backend has while it lives: memory and order of work are the same
    /// only among clones.
    fn id(&self) -> usize;
    /// Returns free and total memory.
    fn memory(&self) -> Result<Memory>;
    /// Whether kernels compute groups of sites, so that sites are best kept in [lane order](gpu_kernels::lattice::lanes).
    fn has_lanes(&self) -> bool {
        false
    }

    /// Allocates zeroed memory; the error about too little memory names `what`.
    fn allocate(&self, bytes: usize, what: &str) -> Result<DeviceBuffer>;
    /// Allocates zeroed memory that other processes, or work beside the main order, may use until it is dropped.
    fn allocate_apart(&self, bytes: usize, what: &str) -> Result<DeviceBuffer> {
        self.allocate(bytes, what)
    }
    /// Copies from the host to the device, to byte `offset` on.
    fn upload(&self, data: &[u8], to: &mut DeviceBuffer, offset: usize) -> Result;
    /// Copies from the device to the host, from byte `offset` on; waits.
    fn download(&self, from: &DeviceBuffer, offset: usize, data: &mut [u8]) -> Result;
    /// Copies the first `bytes` of a buffer.
    fn copy(&self, from: &DeviceBuffer, to: &mut DeviceBuffer, bytes: usize) -> Result;
    /// Zeroes a buffer.
    fn clear(&self, buffer: &mut DeviceBuffer) -> Result;

    /// Runs a kernel for sites `0..n` and right-hand sides `0..nrhs`, on a stream or in the main order.
    fn run(&self, stream: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32) -> Result;
    /// Sums a reduction over sites `0..n`; the value k of right-hand side j goes to slot `slot` + j K + k, from where
    /// [`sums`](Self::sums) fetches it. Reductions on different streams must not run at the same time; one on a stream and
    /// one in the main order may.
    fn sum(&self, stream: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32, slot: usize) -> Result;
    /// Sums a reduction over sites `0..n` to number `slot` + j K + k of a buffer of doubles, where kernels may read it; k is the value and
    /// j the right-hand side.
    fn sum_into(
        &self,
        stream: Option<&Stream>,
        kernel: Call<'_>,
        n: u32,
        nrhs: u32,
        to: (&DeviceBuffer, usize),
    ) -> Result;
    /// Waits and fetches the first `out.len()` slots.
    ///
    /// # Panics
    /// If there are fewer than `out.len()` slots: [`REDUCTION_SLOTS`].
    fn sums(&self, out: &mut [f64]) -> Result;

    /// Returns the approximate number of bytes that kernels move while a sum travels to the host and the next launch comes from there.
    fn bytes_while_waiting(&self) -> usize {
        0
    }

    /// Makes an order of work of its own, whose kernels have priority over those of the main one.
    fn stream(&self) -> Result<Stream>;
    /// Allocates memory for messages; the error about too little memory names `what`.
    fn pinned(&self, bytes: usize, what: &str, order: Ordered) -> Result<Pinned>;
    /// Copies from byte `offset` of a buffer on until `to` is full; does not wait.
    fn fetch(&self, from: &DeviceBuffer, offset: usize, to: &Pinned, stream: &Stream) -> Result;
    /// Copies all of `from` to byte `offset` of a buffer on; does not wait.
    fn put(&self, from: &Pinned, to: &DeviceBuffer, offset: usize, stream: &Stream) -> Result;
    /// Returns the handle with which another process of this machine can write to a buffer.
    fn share(&self, buffer: &DeviceBuffer) -> Result<Vec<u8>>;
    /// Makes memory accessible that another process of this machine shares.
    fn open_peer(&self, handle: &[u8]) -> Result<Peer>;
    /// Returns the address of a peer's memory, for kernels and for the calls below.
    fn peer_address(&self, peer: &Peer) -> *mut u8;
    /// Copies `bytes` bytes from byte `offset` of a buffer on to memory of a peer; does not wait.
    fn copy_to_peer(
        &self,
        from: &DeviceBuffer,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: &Stream,
        order: Ordered,
    ) -> Result;
    /// Writes a number to words of peers' memory once all earlier work of the stream, or of the main order, is done and visible there.
    fn signal(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>, order: Ordered) -> Result;
    /// Makes the later work of a stream, or of the main order, wait until words of this process's memory have reached a number; comparisons
    /// wrap around.
    fn await_signal(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>, order: Ordered) -> Result;
    /// Makes an event that can be marked repeatedly; with `timing` it records times.
    fn event(&self, timing: bool) -> Result<Event>;
    /// Places the event after the present work of a stream, or of the main order.
    fn mark(&self, event: &Event, stream: Option<&Stream>) -> Result;
    /// Makes the later work of a stream, or of the main order, wait for an event that was marked.
    fn follow(&self, event: &Event, stream: Option<&Stream>) -> Result;
    /// Whether all work before an event that was marked is done.
    fn reached(&self, event: &Event) -> Result<bool>;

    /// Marks the present point in the order of the work.
    fn record(&self) -> Result<Event>;
    /// Returns the seconds between two marks; waits for the later one.
    fn seconds_between(&self, from: &Event, to: &Event) -> Result<f64>;
    /// Waits until all work is done.
    fn synchronize(&self) -> Result;

    /// Starts to measure the time of every launch, which costs time of its own.
    fn start_profile(&self) -> Result {
        Ok(())
    }
    /// Waits, and returns the launches since [`start_profile`](Self::start_profile), the kernel with the longest total time first. Launches
    /// on several streams may have run at the same time.
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
    /// Runs a kernel in a format for sites `0..n` and right-hand sides `0..nrhs`.
    pub fn launch<A: Copy>(&self, kernel: &Instances<A>, format: Format, arguments: &A, n: u32, nrhs: u32) -> Result {
        self.run(None, Call::of(kernel, format, arguments)?, n, nrhs)
    }
    /// Sums a reduction like [`Backend::sum`].
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
    /// Whether `other` is a clone of this one.
    pub fn is(&self, other: &dyn Backend) -> bool {
        self.id() == other.id()
    }
}
