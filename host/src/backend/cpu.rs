//! The CPU backend: the kernels' own source, called for one site after the other by all threads.
#![allow(unsafe_code)]

use super::profile::Totals;
use super::{Backend, Buffer, KernelTime, LAUNCH_SUMS, Memory, Ordered, REDUCTION_SLOTS, Result, Summing};
use crate::solve::Solves;
use gpu_kernels::cpu::{Entry, Run, Vectors};
use gpu_kernels::memory::Chunk;
use gpu_kernels::{Kernel, Reduction, Values};
use rayon::prelude::*;
use std::any::TypeId;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Most values that a reduction sums.
const MOST_VALUES: usize = 16;
/// Sites that one task takes. Fixed, because the order of sums depends on it.
const BLOCK: u32 = 1024;

/// Threads of this machine.
#[derive(Clone)]
pub struct Cpu {
    shared: Arc<Shared>,
}

struct Shared {
    pool: rayon::ThreadPool,
    /// None that kernels are compiled for.
    vectors: Option<Vectors>,
    /// The instances of the kernels, compiled for these.
    instances: HashMap<TypeId, Option<Run>>,
    sums: Mutex<Sums>,
    /// Times of launches, while they are taken.
    profile: Mutex<Option<Totals>>,
}

struct Sums {
    values: [f64; REDUCTION_SLOTS],
    summing: Summing,
}

/// A kernel that threads call, without its type.
#[derive(Clone, Copy)]
struct Launched<'a> {
    run: Run,
    kernel: *const u8,
    life: PhantomData<&'a ()>,
}
// SAFETY: made by `Cpu::launched` of a reference to a kernel, and those are Sync.
unsafe impl Send for Launched<'_> {}
// SAFETY: as above.
unsafe impl Sync for Launched<'_> {}

impl Launched<'_> {
    /// Computes sites of a right-hand side; a reduction writes its sums.
    fn run(&self, sites: Range<u32>, rhs: u32, sums: *mut f64) {
        // SAFETY: the function is that of the kernel at this address, compiled for instructions the machine has; every
        // site is given once, views vouch for the addresses (`view`), and reductions get room for `MOST_VALUES` sums.
        unsafe { (self.run)(self.kernel, sites.start, sites.end, rhs, sums) }
    }
}

/// Memory of the CPU backend.
pub struct CpuBuffer {
    chunks: Vec<Chunk>,
    // The address is taken once, mutably, so that views made from it may write.
    address: *mut u8,
}
// SAFETY: the address points into the buffer's own allocation; kernels that use it are launched through `Cpu`, whose
// calls run to their end, and write disjoint elements (contract of `Kernel`).
unsafe impl Send for CpuBuffer {}
// SAFETY: as above.
unsafe impl Sync for CpuBuffer {}

impl Buffer for CpuBuffer {
    fn bytes(&self) -> usize {
        16 * self.chunks.len()
    }
    fn address(&self) -> *mut u8 {
        self.address
    }
}

/// Memory for messages.
#[derive(Clone)]
pub struct CpuPinned {
    memory: Arc<CpuBuffer>,
    bytes: usize,
}

impl comms::Buffer for CpuPinned {
    fn bytes(&self) -> &[u8] {
        // SAFETY: inside the buffer; nobody writes it meanwhile (contract of `Ordered`).
        unsafe { std::slice::from_raw_parts(self.memory.address, self.bytes) }
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: inside the buffer; nobody else uses it meanwhile (contract of `Ordered`).
        unsafe { std::slice::from_raw_parts_mut(self.memory.address, self.bytes) }
    }
}

impl Cpu {
    /// A backend with its own threads; `None`: as many as the machine has. Panics when the operating system gives no more
    /// threads; [`try_new`](Self::try_new) says so.
    pub fn new(threads: Option<usize>) -> Self {
        Self::try_new(threads).expect("the operating system gives threads")
    }
    /// The same.
    ///
    /// # Errors
    /// [`BackendError::NoThreads`](super::BackendError::NoThreads).
    pub fn try_new(threads: Option<usize>) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.unwrap_or(0))
            .thread_name(|i| format!("ferrite-{i}"))
            .build()
            .map_err(|error| super::BackendError::NoThreads(error.to_string()))?;
        let vectors = Vectors::best();
        let functions = |entry: &Entry| vectors.and_then(|vectors| entry.function(vectors));
        let instances = gpu_kernels::instances().map(|i| ((i.cpu.kernel)(), functions(&i.cpu))).collect();
        let sums = Sums { values: [0.0; REDUCTION_SLOTS], summing: Summing::default() };
        let shared = Shared { pool, vectors, instances, sums: Mutex::new(sums), profile: Mutex::default() };
        Ok(Cpu { shared: Arc::new(shared) })
    }
    /// Notes the time since `from` if launches are timed.
    fn took(&self, parts: &[&str], from: Instant) {
        if let Some(totals) = &mut *self.shared.profile.lock().unwrap_or_else(|e| e.into_inner()) {
            totals.add(&parts.join("_"), from.elapsed().as_secs_f64());
        }
    }
    /// A kernel with its function, for the time of a launch.
    fn launched<'a, K: Sync + 'static>(&self, kernel: &'a K, parts: &[&str]) -> Result<Launched<'a>> {
        let missing = || super::BackendError::NoInstance { kernel: parts.join("_") };
        let run = self.shared.instances.get(&TypeId::of::<K>()).copied().ok_or_else(missing)?;
        let run = run.ok_or(super::BackendError::OtherProcessor)?;
        Ok(Launched { run, kernel: std::ptr::from_ref(kernel).cast(), life: PhantomData })
    }
    /// Sums a reduction over all sites: hands value k of right-hand side j to `take` as number j K + k.
    fn sum_up<K: Reduction>(&self, kernel: &K, n: u32, nrhs: u32, mut take: impl FnMut(usize, f64)) -> Result {
        const { assert!(K::Values::COUNT <= MOST_VALUES) };
        // As on a GPU, so that what runs here runs there.
        assert!(nrhs as usize * K::Values::COUNT <= LAUNCH_SUMS, "too many sums in one launch");
        let (count, from) = (K::Values::COUNT, Instant::now());
        let partial = self.sum_blocks(self.launched(kernel, K::NAME)?, n, nrhs);
        for (rhs, blocks) in partial.chunks(n.div_ceil(BLOCK) as usize).enumerate() {
            for k in 0..count {
                take(rhs * count + k, blocks.iter().fold(0.0, |total, block| total + block[k]));
            }
        }
        self.took(K::NAME, from);
        Ok(())
    }
    /// Runs a kernel on all blocks of sites; compiled once for all kernels.
    fn run_blocks(&self, kernel: Launched, n: u32, nrhs: u32) {
        let blocks = n.div_ceil(BLOCK);
        let task = |task: u32| kernel.run(block(task % blocks, n), task / blocks, std::ptr::null_mut());
        self.shared.pool.install(|| (0..blocks * nrhs).into_par_iter().for_each(task));
    }
    /// The sums of a reduction for each block of sites of each right-hand side; compiled once for all reductions.
    fn sum_blocks(&self, kernel: Launched, n: u32, nrhs: u32) -> Vec<[f64; MOST_VALUES]> {
        let blocks = n.div_ceil(BLOCK);
        let task = |task: u32| {
            let mut sums = [0.0; MOST_VALUES];
            kernel.run(block(task % blocks, n), task / blocks, sums.as_mut_ptr());
            sums
        };
        self.shared.pool.install(|| (0..blocks * nrhs).into_par_iter().map(task).collect())
    }
    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.shared.pool.current_num_threads()
    }
    /// The vector instructions in use: `AVX-512`, `AVX2`, or none.
    pub fn instructions(&self) -> &'static str {
        self.shared.vectors.unwrap_or(Vectors::Portable).name()
    }
}

fn block(b: u32, n: u32) -> Range<u32> {
    b * BLOCK..((b + 1) * BLOCK).min(n)
}

impl Backend for Cpu {
    type Buffer = CpuBuffer;
    type Event = Instant;
    type Stream = ();
    type Pinned = CpuPinned;
    type Peer = std::convert::Infallible;

    fn solves() -> &'static Solves<Self> {
        static SOLVES: Solves<Cpu> = Solves::new();
        &SOLVES
    }
    fn name(&self) -> &'static str {
        "cpu"
    }
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
    fn device(&self) -> String {
        let threads = self.threads();
        let plural = if threads == 1 { "" } else { "s" };
        format!("CPU, {threads} thread{plural}, {}", self.instructions())
    }
    fn memory(&self) -> Result<Memory> {
        Ok(super::machine::memory())
    }

    fn allocate(&self, bytes: usize, what: &str) -> Result<CpuBuffer> {
        let count = bytes.div_ceil(16);
        let too_little = |backend: &Self| super::BackendError::OutOfMemory {
            what: what.into(),
            bytes,
            free: backend.memory().map_or(0, |m| m.free),
            device: "this machine".into(),
        };
        // What is small is not worth the question.
        if bytes >= 1 << 20 && bytes > self.memory()?.free {
            return Err(too_little(self));
        }
        let mut chunks = Vec::new();
        chunks.try_reserve_exact(count).map_err(|_| too_little(self))?;
        chunks.resize(count, Chunk::default());
        let address = chunks.as_mut_ptr().cast();
        Ok(CpuBuffer { chunks, address })
    }
    fn upload(&self, data: &[u8], to: &mut CpuBuffer, offset: usize) -> Result {
        assert!(offset + data.len() <= to.bytes(), "upload beyond the buffer");
        // SAFETY: inside the buffer, which is borrowed mutably.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to.address.add(offset), data.len()) };
        Ok(())
    }
    fn download(&self, from: &CpuBuffer, offset: usize, data: &mut [u8]) -> Result {
        assert!(offset + data.len() <= from.bytes(), "download beyond the buffer");
        // SAFETY: inside the buffer; launches have run to their end.
        unsafe { std::ptr::copy_nonoverlapping(from.address.add(offset), data.as_mut_ptr(), data.len()) };
        Ok(())
    }
    fn copy(&self, from: &CpuBuffer, to: &mut CpuBuffer, bytes: usize) -> Result {
        assert!(bytes <= from.bytes() && bytes <= to.bytes(), "copy beyond a buffer");
        const PIECE: usize = 1 << 18;
        let (source, target) = (from.address as usize, to.address as usize);
        self.shared.pool.install(|| {
            (0..bytes.div_ceil(PIECE)).into_par_iter().for_each(|k| {
                let (start, length) = (k * PIECE, PIECE.min(bytes - k * PIECE));
                // SAFETY: two different buffers, disjoint pieces inside both.
                unsafe {
                    std::ptr::copy_nonoverlapping((source + start) as *const u8, (target + start) as *mut u8, length)
                };
            })
        });
        Ok(())
    }
    fn clear(&self, buffer: &mut CpuBuffer) -> Result {
        self.shared
            .pool
            .install(|| buffer.chunks.par_iter_mut().with_min_len(4096).for_each(|c| *c = Chunk::default()));
        Ok(())
    }

    fn launch_on<K: Kernel>(&self, _: Option<&()>, kernel: &K, n: u32, nrhs: u32) -> Result {
        let from = Instant::now();
        self.run_blocks(self.launched(kernel, K::NAME)?, n, nrhs);
        self.took(K::NAME, from);
        Ok(())
    }
    fn reduce_on<K: Reduction>(&self, _: Option<&()>, kernel: &K, n: u32, nrhs: u32, slot: usize) -> Result {
        assert!(slot + nrhs as usize * K::Values::COUNT <= REDUCTION_SLOTS, "too many sums in one round");
        let mut sums = self.shared.sums.lock().unwrap_or_else(|e| e.into_inner());
        sums.summing.check(|| self.device())?;
        self.sum_up(kernel, n, nrhs, |k, sum| sums.values[slot + k] = sum)?;
        sums.summing.begin();
        Ok(())
    }
    fn reduce_into_on<K: Reduction>(
        &self,
        _: Option<&()>,
        kernel: &K,
        n: u32,
        nrhs: u32,
        (to, slot): (&CpuBuffer, usize),
    ) -> Result {
        assert!(8 * (slot + nrhs as usize * K::Values::COUNT) <= to.bytes(), "sums beyond the buffer");
        self.sum_up(kernel, n, nrhs, |k, sum| {
            // SAFETY: inside the buffer, which nobody else uses: launches have run to their end.
            unsafe { to.address.cast::<f64>().add(slot + k).write(sum) }
        })
    }
    fn sums(&self, out: &mut [f64]) -> Result {
        let mut sums = self.shared.sums.lock().unwrap_or_else(|e| e.into_inner());
        sums.summing.end(|| self.device())?;
        out.copy_from_slice(&sums.values[..out.len()]);
        Ok(())
    }

    // Every call has done its work when it returns: there is no other order.
    fn stream(&self) -> Result<()> {
        Ok(())
    }
    fn pinned(&self, bytes: usize, what: &str, _: Ordered) -> Result<CpuPinned> {
        Ok(CpuPinned { memory: Arc::new(self.allocate(bytes, what)?), bytes })
    }
    fn fetch(&self, from: &CpuBuffer, offset: usize, to: &CpuPinned, _: &()) -> Result {
        assert!(offset + to.bytes <= from.bytes(), "fetching beyond the buffer");
        // SAFETY: inside both, which are different; nobody else uses `to` meanwhile (contract of `Ordered`).
        unsafe { std::ptr::copy_nonoverlapping(from.address.add(offset), to.memory.address, to.bytes) };
        Ok(())
    }
    fn put(&self, from: &CpuPinned, to: &CpuBuffer, offset: usize, _: &()) -> Result {
        assert!(offset + from.bytes <= to.bytes(), "putting beyond the buffer");
        // SAFETY: as in `fetch`.
        unsafe { std::ptr::copy_nonoverlapping(from.memory.address, to.address.add(offset), from.bytes) };
        Ok(())
    }
    fn share(&self, _: &CpuBuffer) -> Result<Vec<u8>> {
        Err(super::BackendError::NoPeers)
    }
    fn open_peer(&self, _: &[u8]) -> Result<std::convert::Infallible> {
        Err(super::BackendError::NoPeers)
    }
    fn peer_address(&self, peer: &std::convert::Infallible) -> *mut u8 {
        match *peer {}
    }
    fn copy_to_peer(&self, _: &CpuBuffer, _: usize, _: *mut u8, _: usize, _: &(), _: Ordered) -> Result {
        Err(super::BackendError::NoPeers)
    }
    fn signal(&self, _: &[*mut u8], _: u32, _: Option<&()>, _: Ordered) -> Result {
        Err(super::BackendError::NoPeers)
    }
    fn await_signal(&self, _: &[*mut u8], _: u32, _: Option<&()>, _: Ordered) -> Result {
        Err(super::BackendError::NoPeers)
    }
    fn event(&self, _: bool) -> Result<Instant> {
        self.record()
    }
    fn mark(&self, _: &Instant, _: Option<&()>) -> Result {
        Ok(())
    }
    fn follow(&self, _: &Instant, _: Option<&()>) -> Result {
        Ok(())
    }
    fn reached(&self, _: &Instant) -> Result<bool> {
        Ok(true)
    }

    fn record(&self) -> Result<Instant> {
        Ok(Instant::now())
    }
    fn seconds_between(&self, from: &Instant, to: &Instant) -> Result<f64> {
        Ok(to.duration_since(*from).as_secs_f64())
    }
    fn synchronize(&self) -> Result {
        Ok(())
    }
    fn start_profile(&self) -> Result {
        *self.shared.profile.lock().unwrap_or_else(|e| e.into_inner()) = Some(Totals::default());
        Ok(())
    }
    fn end_profile(&self) -> Result<Vec<KernelTime>> {
        let taken = self.shared.profile.lock().unwrap_or_else(|e| e.into_inner()).take();
        Ok(taken.unwrap_or_default().sorted())
    }
}
