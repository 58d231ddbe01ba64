//! Where kernels run: CPU threads or a GPU, behind one trait with static dispatch.
//!
//! Everything is asynchronous in program order: a backend may return before a launch is done, and later calls see its
//! results. Only [`Backend::sums`], [`Backend::download`] and [`Backend::synchronize`] wait.
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod embedded;
mod machine;
mod profile;
pub(crate) mod view;

pub use cpu::Cpu;
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, CudaDevice, Launched};
pub use embedded::{KernelImage, Ptx, foreign_kernels, kernel_image, kernel_images};
pub use profile::KernelTime;
pub use view::Ordered;

use crate::solve::Solves;
use gpu_kernels::{Kernel, Reduction};
use std::sync::{Arc, Weak};

/// Most right-hand sides of a block of vectors.
pub const MAX_RHS: usize = 64;
/// Right-hand sides × values that one round of reductions can hold, for each part of a lattice that is cut.
pub const REDUCTION_SLOTS: usize = 5 * 8 * MAX_RHS;

/// Right-hand sides × values that one launch of a reduction can hold.
pub const LAUNCH_SUMS: usize = 8 * MAX_RHS;

/// Memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that can be allocated now.
    pub free: usize,
    /// Bytes in all.
    pub total: usize,
}

/// Why a backend could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No driver on this machine.
    #[error("no GPU can be used: {0}; install the NVIDIA driver, or run with --backend cpu")]
    NoDriver(String),
    /// A driver, but not this device.
    #[error("there is no GPU number {device}: this machine has {count}; choose with --device")]
    NoDevice {
        /// What was asked for.
        device: usize,
        /// How many there are.
        count: usize,
    },
    /// The program was built without kernels for the GPU, and none lie beside it.
    #[error(
        "the GPU kernels of module `{module}` are missing: build them with `cargo xtask build-ptx` and build the program \
         again, or set FERRITE_KERNELS to their folder"
    )]
    NoKernels {
        /// The missing module.
        module: String,
    },
    /// There are kernels, but of another version of the crate gpu-kernels than the program's, whose arguments may differ.
    #[error(
        "the GPU kernels in {} are not those of this program: build both from the same sources, kernels first \
         (`cargo xtask build-ptx`)",
        folder.display()
    )]
    OtherKernels {
        /// Where they are.
        folder: std::path::PathBuf,
    },
    /// A kernel that the crate gpu-kernels does not list with `entry!`.
    #[error("the kernel {kernel} is not among the compiled instances: add a line to its `entry!` list")]
    NoInstance {
        /// Its name.
        kernel: String,
    },
    /// Kernels are compiled for other processors.
    #[error(
        "the CPU backend of this program is compiled for {}, which this processor does not have: build it here, or with \
         FERRITE_VECTORS=all (AVX2 with FMA is the least), or use a GPU",
        compiled_for()
    )]
    OtherProcessor,
    /// The operating system gives no more threads.
    #[error("no threads for the CPU backend: {0}")]
    NoThreads(String),
    /// Two threads sum on one backend at the same time, whose results would mix.
    #[error("another thread has sums under way on {device}: make a backend for each thread")]
    Shared {
        /// Name of the device.
        device: String,
    },
    /// Devices of different processes cannot reach each other's memory.
    #[error("devices cannot reach each other's memory")]
    NoPeers,
    /// Too little memory.
    #[error("{what} needs {} on {device}, which has {} free", gib(*bytes), gib(*free))]
    OutOfMemory {
        /// What the memory was for.
        what: String,
        /// Bytes asked for.
        bytes: usize,
        /// Bytes free.
        free: usize,
        /// Name of the device.
        device: String,
    },
    /// The cache of launch parameters cannot be used for a search.
    #[error(transparent)]
    Tuning(#[from] crate::tune::CacheError),
    /// The driver reported an error.
    #[error("{call} failed on {device}: {code}")]
    Driver {
        /// What was attempted.
        call: String,
        /// Name of the device.
        device: String,
        /// The driver's own name of the error.
        code: String,
    },
}

/// The vector instructions that kernels are compiled for.
fn compiled_for() -> String {
    let names: Vec<&str> = gpu_kernels::cpu::Vectors::COMPILED.iter().map(|vectors| vectors.name()).collect();
    names.join(" and ")
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

/// Whose sums are under way on a backend: those of one thread, from the first reduction until they are fetched, or until
/// the thread ends without them.
#[derive(Debug, Default)]
struct Summing(Weak<()>);

thread_local! {
    /// Lives as long as its thread.
    static ALIVE: Arc<()> = Arc::default();
}

impl Summing {
    /// After a reduction was launched: one that could not be leaves nobody waiting.
    fn begin(&mut self) {
        self.0 = ALIVE.with(Arc::downgrade);
    }
    /// Before sums are fetched.
    fn end(&mut self, device: impl FnOnce() -> String) -> Result {
        self.check(device)?;
        self.0 = Weak::new();
        Ok(())
    }
    /// Before a reduction.
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

/// Device memory: allocation and address.
pub trait Buffer: Send + Sync + 'static {
    /// Size in bytes.
    fn bytes(&self) -> usize;
    /// Address for kernels. Aligned to 128 bytes on a GPU, 16 on a CPU.
    fn address(&self) -> *mut u8;
}

/// Host memory that a device copies to and from by itself, for messages to other processes. Clones are the same memory; who
/// has some, has given a promise for it, [`Ordered`].
pub trait Pinned: comms::Buffer + Clone + Send + Sync {}
impl<T: comms::Buffer + Clone + Send + Sync> Pinned for T {}

/// Threads, memory and kernels of one device.
///
/// Work is done in the order of the calls, but for what is given to a [`Stream`](Backend::Stream) of its own.
///
/// A process may have as many backends as it likes, also several of one device: they know nothing of each other. A clone
/// is the same backend. It can be handed from thread to thread, but only one thread at a time can work with it, because
/// its results wait for whoever asks next; a second one is told so by [`BackendError::Shared`]. Threads that work side by
/// side have a backend each.
pub trait Backend: Clone + Send + Sync + 'static {
    /// Memory of this backend.
    type Buffer: Buffer;
    /// A point in the order of the work.
    type Event: Send;
    /// An order of work beside the main one.
    type Stream: Send + Sync;
    /// Memory for messages.
    type Pinned: Pinned;
    /// Memory of another process's device on this machine, which this one can write to.
    type Peer: Send;

    /// The solves that are compiled with the backend: a `static` with [`Solves::new`], or `const { &Solves::new() }` for a
    /// backend that is generic itself.
    fn solves() -> &'static Solves<Self>;

    /// `cpu` or `cuda`.
    fn name(&self) -> &'static str;
    /// The device, for people: its name, or the number of threads.
    fn device(&self) -> String;
    /// Whether `other` is a clone of this one: only then memory and order of work are the same.
    fn is(&self, other: &Self) -> bool;
    /// Free and total memory.
    fn memory(&self) -> Result<Memory>;

    /// Zeroed memory; `what` is named when there is too little.
    fn allocate(&self, bytes: usize, what: &str) -> Result<Self::Buffer>;
    /// Zeroed memory that other processes, or work beside the main order, may use until it is dropped.
    fn allocate_apart(&self, bytes: usize, what: &str) -> Result<Self::Buffer> {
        self.allocate(bytes, what)
    }
    /// Host to device, to byte `offset` on.
    fn upload(&self, data: &[u8], to: &mut Self::Buffer, offset: usize) -> Result;
    /// Device to host, from byte `offset` on; waits.
    fn download(&self, from: &Self::Buffer, offset: usize, data: &mut [u8]) -> Result;
    /// Copies the first `bytes` of a buffer.
    fn copy(&self, from: &Self::Buffer, to: &mut Self::Buffer, bytes: usize) -> Result;
    /// Zeroes a buffer.
    fn clear(&self, buffer: &mut Self::Buffer) -> Result;

    /// Runs a kernel for sites `0..n` and right-hand sides `0..nrhs`.
    fn launch<K: Kernel>(&self, kernel: &K, n: u32, nrhs: u32) -> Result {
        self.launch_on(None, kernel, n, nrhs)
    }
    /// The same on a stream, or in the main order.
    fn launch_on<K: Kernel>(&self, stream: Option<&Self::Stream>, kernel: &K, n: u32, nrhs: u32) -> Result;
    /// Sums a reduction over sites `0..n`; the value k of right-hand side j goes to slot `slot` + j K + k, from where
    /// [`sums`](Self::sums) fetches it.
    fn reduce<K: Reduction>(&self, kernel: &K, n: u32, nrhs: u32, slot: usize) -> Result {
        self.reduce_on(None, kernel, n, nrhs, slot)
    }
    /// The same on a stream, or in the main order. Reductions on different streams must not run at the same time; one on a
    /// stream and one in the main order may.
    fn reduce_on<K: Reduction>(
        &self,
        stream: Option<&Self::Stream>,
        kernel: &K,
        n: u32,
        nrhs: u32,
        slot: usize,
    ) -> Result;
    /// Sums a reduction as [`reduce`](Self::reduce) does, to number `slot` + j K + k of a buffer of doubles, where kernels
    /// may read it.
    fn reduce_into<K: Reduction>(&self, kernel: &K, n: u32, nrhs: u32, to: &Self::Buffer, slot: usize) -> Result {
        self.reduce_into_on(None, kernel, n, nrhs, (to, slot))
    }
    /// The same as [`reduce_on`](Self::reduce_on).
    fn reduce_into_on<K: Reduction>(
        &self,
        stream: Option<&Self::Stream>,
        kernel: &K,
        n: u32,
        nrhs: u32,
        to: (&Self::Buffer, usize),
    ) -> Result;
    /// Waits and fetches the first `out.len()` slots.
    ///
    /// # Panics
    /// If there are not so many: [`REDUCTION_SLOTS`].
    fn sums(&self, out: &mut [f64]) -> Result;

    /// About how many bytes kernels move while a sum travels to the host and the next launch comes from there.
    fn bytes_while_waiting(&self) -> usize {
        0
    }

    /// An order of work of its own, whose kernels go before those of the main one.
    fn stream(&self) -> Result<Self::Stream>;
    /// Memory for messages; `what` is named when there is too little.
    fn pinned(&self, bytes: usize, what: &str, order: Ordered) -> Result<Self::Pinned>;
    /// Copies from byte `offset` of a buffer on until `to` is full; does not wait.
    fn fetch(&self, from: &Self::Buffer, offset: usize, to: &Self::Pinned, stream: &Self::Stream) -> Result;
    /// Copies all of `from` to byte `offset` of a buffer on; does not wait.
    fn put(&self, from: &Self::Pinned, to: &Self::Buffer, offset: usize, stream: &Self::Stream) -> Result;
    /// What another process of this machine needs to write to a buffer.
    fn share(&self, buffer: &Self::Buffer) -> Result<Vec<u8>>;
    /// Makes memory accessible that another process of this machine shares.
    fn open_peer(&self, handle: &[u8]) -> Result<Self::Peer>;
    /// Where that memory is, for kernels and for the calls below.
    fn peer_address(&self, peer: &Self::Peer) -> *mut u8;
    /// Copies `bytes` bytes from byte `offset` of a buffer on to memory of a peer; does not wait.
    fn copy_to_peer(
        &self,
        from: &Self::Buffer,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: &Self::Stream,
        order: Ordered,
    ) -> Result;
    /// Writes a number to words of peers' memory, when all earlier work of the stream, or of the main order, is done and
    /// can be seen there.
    fn signal(&self, words: &[*mut u8], value: u32, stream: Option<&Self::Stream>, order: Ordered) -> Result;
    /// Lets the later work of a stream, or of the main order, wait until words of own memory have reached a number; they
    /// count in a circle.
    fn await_signal(&self, words: &[*mut u8], value: u32, stream: Option<&Self::Stream>, order: Ordered) -> Result;
    /// An event that can be marked again and again; with `timing` it can be asked for times.
    fn event(&self, timing: bool) -> Result<Self::Event>;
    /// Puts the event behind the present work of a stream, or of the main order.
    fn mark(&self, event: &Self::Event, stream: Option<&Self::Stream>) -> Result;
    /// Lets the later work of a stream, or of the main order, wait for an event that was marked.
    fn follow(&self, event: &Self::Event, stream: Option<&Self::Stream>) -> Result;
    /// Whether all work before an event that was marked is done.
    fn reached(&self, event: &Self::Event) -> Result<bool>;

    /// Marks the present point in the order of the work.
    fn record(&self) -> Result<Self::Event>;
    /// Seconds between two marks; waits for the later one.
    fn seconds_between(&self, from: &Self::Event, to: &Self::Event) -> Result<f64>;
    /// Waits until all work is done.
    fn synchronize(&self) -> Result;

    /// From now on takes the time of every launch, which costs time of its own.
    fn start_profile(&self) -> Result {
        Ok(())
    }
    /// Waits, and says what was launched since [`start_profile`](Self::start_profile), what took longest first. Launches on
    /// several streams may have run at the same time.
    fn end_profile(&self) -> Result<Vec<KernelTime>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{DeviceError, Domain};
    use crate::lattice::Lattice;
    use crate::rhmc::momenta::MomentumField;
    use gpu_kernels::momenta::KineticEnergy;

    #[test]
    fn two_threads_do_not_mix_their_sums() {
        let domain = Domain::single(Cpu::new(Some(1)), Lattice::new([4, 4, 4, 4]).unwrap()).unwrap();
        let mut momenta = MomentumField::<_, f64>::zero(&domain).unwrap();
        momenta.draw(1, 1).unwrap();
        let energy = momenta.kinetic_energy().unwrap();
        let elsewhere = || std::thread::scope(|s| s.spawn(|| momenta.kinetic_energy()).join().unwrap());
        // One after the other is no mistake.
        assert_eq!(elsewhere().unwrap(), energy);

        let backend = domain.backend();
        backend.reduce(&KineticEnergy { momenta: momenta.view(0) }, domain.half_sites(), 1, 0).unwrap();
        let refused = elsewhere().unwrap_err();
        assert!(matches!(refused, DeviceError::Backend(BackendError::Shared { .. })), "{refused}");
        // The first thread's sums are untouched, and the other one can go on when they are fetched.
        let mut even = [0.0];
        backend.sums(&mut even).unwrap();
        assert!(even[0] != 0.0 && even[0].is_finite());
        assert_eq!(elsewhere().unwrap(), energy);

        // One that ends without its sums is in nobody's way.
        let reduce = || backend.reduce(&KineticEnergy { momenta: momenta.view(0) }, domain.half_sites(), 1, 0);
        std::thread::scope(|s| s.spawn(|| reduce().unwrap()).join().unwrap());
        assert_eq!(elsewhere().unwrap(), energy);
    }
}
