//! The CPU backend. All threads call the kernels, compiled for the CPU from the same source as for GPUs, site by site.
#![allow(unsafe_code)]

use super::profile::Totals;
use super::team::Team;
use super::{
    Backend, Call, DeviceBuffer, Event, FETCH_SLOTS, ForeignMemory, KernelTime, LAUNCH_SUMS, Memory, Ordered, Peer,
    Pinned, REDUCTION_SLOTS, Result, Stream, Summing,
};
use gpu_kernels::MOST_VALUES;
use gpu_kernels::cpu::{Run, Vectors};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Number of sites of one task. It must not change, because the order of sums depends on it.
const BLOCK: u32 = 1024;
/// Number of bytes of a cache line.
const CACHE_LINE: usize = 64;

/// The CPU as a backend: a team of threads that run kernels.
#[derive(Clone)]
pub struct Cpu {
    shared: Arc<CpuShared>,
}

struct CpuShared {
    team: Team,
    /// Vector instructions in use; `None` if the processor has none for which kernels are compiled.
    vectors: Option<Vectors>,
    sums: Mutex<HostSums>,
    /// Times of launches; `None` if launches are not timed.
    profile: Mutex<Option<Totals>>,
}

struct HostSums {
    values: [f64; REDUCTION_SLOTS],
    summing: Summing,
}

/// A kernel that threads can call; the type of its arguments is erased.
#[derive(Clone, Copy)]
struct ThreadedKernel<'a> {
    run: Run,
    kernel: *const u8,
    life: PhantomData<&'a ()>,
}
// SAFETY: made of a `Call`, hence of a reference to a kernel, and those are Sync.
unsafe impl Send for ThreadedKernel<'_> {}
// SAFETY: as above.
unsafe impl Sync for ThreadedKernel<'_> {}

impl ThreadedKernel<'_> {
    /// Computes the given sites of one right-hand side; a reduction writes its sums to `sums`.
    fn run(&self, sites: Range<u32>, rhs: u32, sums: *mut f64) {
        // SAFETY: the function is that of the kernel at this address, compiled for instructions the machine has; every
        // site is given once, views vouch for the addresses (`view`), and reductions get room for `MOST_VALUES` sums.
        unsafe { (self.run)(self.kernel, sites.start, sites.end, rhs, sums) }
    }
}

/// Pins a thread of a team to its own core if the process has exactly as many cores as the team has threads. Memory that the thread writes
/// first then stays near the thread. A smaller team is not pinned: other programs may use some cores, and the operating system avoids
/// those.
fn pin(thread: usize, threads: usize) {
    if let Some(cores) = core_affinity::get_core_ids().filter(|cores| cores.len() == threads) {
        // If the system does not allow pinning, the thread runs unpinned.
        core_affinity::set_for_current(cores[thread]);
    }
}

impl From<Cpu> for Arc<dyn Backend> {
    fn from(cpu: Cpu) -> Self {
        Arc::new(cpu)
    }
}

impl Cpu {
    /// Makes a backend with its own team of threads. `threads` is their number; `None` stands for the number of threads in the current
    /// rayon pool. Panics if the operating system provides too few threads; [`try_new`](Self::try_new) returns an error instead.
    pub fn new(threads: Option<usize>) -> Self {
        Self::try_new(threads).expect("the operating system starts threads")
    }
    /// Makes a backend with its own team of threads. `threads` is their number; `None` stands for the number of threads in the current
    /// rayon pool.
    ///
    /// # Errors
    /// [`BackendError::NoThreads`](super::BackendError::NoThreads) if the operating system provides too few threads.
    pub fn try_new(threads: Option<usize>) -> Result<Self> {
        let threads = threads.filter(|threads| *threads > 0).unwrap_or_else(rayon::current_num_threads);
        let team = Team::new(threads, pin).map_err(|error| super::BackendError::NoThreads(error.to_string()))?;
        let vectors = Vectors::best();
        let sums = HostSums { values: [0.0; REDUCTION_SLOTS], summing: Summing::default() };
        let shared = CpuShared { team, vectors, sums: Mutex::new(sums), profile: Mutex::default() };
        Ok(Cpu { shared: Arc::new(shared) })
    }
    /// Records the time since `from` if launches are timed.
    fn took(&self, kernel: &Call<'_>, from: Instant) {
        if let Some(totals) = &mut *self.shared.profile.lock().unwrap_or_else(|e| e.into_inner()) {
            totals.add(kernel.instance.name, from.elapsed().as_secs_f64());
        }
    }
    /// Returns a kernel and its function for this processor; the result lives as long as the call.
    fn launched<'a>(&self, kernel: &Call<'a>) -> Result<ThreadedKernel<'a>> {
        let run = self.shared.vectors.and_then(|vectors| kernel.instance.cpu.of(vectors));
        let run = run.ok_or(super::BackendError::OtherProcessor)?;
        Ok(ThreadedKernel { run, kernel: kernel.arguments, life: PhantomData })
    }
    /// Sums a reduction over all sites. `take` receives value k of right-hand side j as number j K + k, where K is the number of values.
    fn sum_up(&self, kernel: Call<'_>, n: u32, nrhs: u32, mut take: impl FnMut(usize, f64)) -> Result {
        let (count, from) = (kernel.values(), Instant::now());
        // The limit is that of GPUs, so that a reduction that works here also works on a GPU.
        assert!(nrhs as usize * count <= LAUNCH_SUMS, "too many sums in one launch");
        let partial = self.sum_blocks(self.launched(&kernel)?, n, nrhs);
        for rhs in 0..nrhs as usize {
            for k in 0..count {
                let blocks = partial.iter().skip(rhs).step_by(nrhs as usize);
                take(rhs * count + k, blocks.fold(0.0, |total, block| total + block[k]));
            }
        }
        self.took(&kernel, from);
        Ok(())
    }
    /// Runs `count` tasks on all threads.
    fn in_threads(&self, count: usize, task: impl Fn(usize) + Sync) {
        if count == 1 { task(0) } else { self.shared.team.run(count, &task) }
    }
    /// Runs the tasks of a launch, one for each block of sites and right-hand side. The calling thread runs all tasks of a small launch
    /// itself.
    fn in_blocks(&self, n: u32, nrhs: u32, task: impl Fn(usize, Range<u32>, u32) + Sync) {
        let count = (n.div_ceil(BLOCK) * nrhs) as usize;
        let task = |number: usize| {
            let (block, rhs) = (number as u32 / nrhs, number as u32 % nrhs);
            task(number, block * BLOCK..((block + 1) * BLOCK).min(n), rhs);
        };
        if n.saturating_mul(nrhs) <= BLOCK { (0..count).for_each(task) } else { self.in_threads(count, task) }
    }
    /// Runs a kernel on all blocks of sites. Tasks of one block for all right-hand sides follow each other, so its links stay in the cache.
    fn run_blocks(&self, kernel: ThreadedKernel, n: u32, nrhs: u32) {
        self.in_blocks(n, nrhs, |_, sites, rhs| kernel.run(sites, rhs, std::ptr::null_mut()));
    }
    /// Computes the sums of a reduction separately for each block of sites and right-hand side.
    fn sum_blocks(&self, kernel: ThreadedKernel, n: u32, nrhs: u32) -> Vec<[f64; MOST_VALUES]> {
        let mut sums = vec![[0.0; MOST_VALUES]; (n.div_ceil(BLOCK) * nrhs) as usize];
        let first = SumsOfTasks(sums.as_mut_ptr());
        self.in_blocks(n, nrhs, |task, sites, rhs| {
            // SAFETY: each task has an element of its own.
            kernel.run(sites, rhs, unsafe { first.of(task) });
        });
        sums
    }
    /// Returns the number of threads that run kernels.
    pub fn threads(&self) -> usize {
        self.shared.team.threads()
    }
    /// Returns the name of the vector instructions in use, such as `AVX-512` or `AVX2`.
    pub fn instructions(&self) -> &'static str {
        self.shared.vectors.unwrap_or(Vectors::Portable).name()
    }
}

/// Address of the sums of all tasks of a launch.
#[derive(Clone, Copy)]
struct SumsOfTasks(*mut [f64; MOST_VALUES]);
// SAFETY: tasks use different elements.
unsafe impl Sync for SumsOfTasks {}
impl SumsOfTasks {
    /// Returns the address of the sums of one task.
    ///
    /// # Safety
    /// The task exists, and nothing else uses its sums.
    unsafe fn of(self, task: usize) -> *mut f64 {
        // SAFETY: the contract of the function.
        unsafe { self.0.add(task) }.cast()
    }
}

/// Memory that begins at a cache line. A vector that spans two cache lines takes as long to load as two vectors.
struct CacheLines {
    start: NonNull<u8>,
    layout: Layout,
}
// SAFETY: the memory has no other owner.
unsafe impl Send for CacheLines {}
// SAFETY: as above.
unsafe impl Sync for CacheLines {}

impl CacheLines {
    /// Allocates zeroed memory; returns `None` if too little is free.
    fn new(bytes: usize) -> Option<Self> {
        // With a larger alignment, the allocator would clear all of the memory itself, in one thread. The small alignment avoids this;
        // `address` rounds up to a cache line.
        let layout = Layout::from_size_align(bytes.checked_add(CACHE_LINE)?, 16).ok()?;
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(CacheLines { start, layout })
    }
    fn address(&self) -> *mut u8 {
        // SAFETY: the allocation is larger by this many bytes.
        unsafe { self.start.add(self.start.align_offset(CACHE_LINE)) }.as_ptr()
    }
}
impl Drop for CacheLines {
    fn drop(&mut self) {
        // SAFETY: the memory is that of this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }
    fn shared(&self) -> Arc<dyn Backend> {
        self.clone().into()
    }
    fn id(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }
    fn device(&self) -> String {
        let threads = self.threads();
        let plural = if threads == 1 { "" } else { "s" };
        format!("CPU, {threads} thread{plural}, {}", self.instructions())
    }
    fn memory(&self) -> Result<Memory> {
        Ok(super::machine::memory())
    }
    fn has_lanes(&self) -> bool {
        true
    }

    fn allocate(&self, bytes: usize, what: &str) -> Result<DeviceBuffer> {
        let count = bytes.div_ceil(16);
        let too_little = |backend: &Self| super::BackendError::OutOfMemory {
            what: what.into(),
            bytes,
            free: backend.memory().map_or(0, |m| m.free),
            device: "this machine".into(),
        };
        // Small buffers do not justify a query of the free memory.
        if bytes >= 1 << 20 && bytes > self.memory()?.free {
            return Err(too_little(self));
        }
        let memory = CacheLines::new(16 * count).ok_or_else(|| too_little(self))?;
        let mut buffer = DeviceBuffer::new(memory.address(), 16 * count, memory);
        // All threads now write to the memory. If the system could not provide a page later, it would end the program; besides, it places
        // each page near the processor that writes to the page first.
        self.clear(&mut buffer)?;
        Ok(buffer)
    }
    fn upload(&self, data: &[u8], to: &mut DeviceBuffer, offset: usize) -> Result {
        assert!(offset + data.len() <= to.bytes(), "upload beyond the buffer");
        // SAFETY: inside the buffer, which is borrowed mutably.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to.address().add(offset), data.len()) };
        Ok(())
    }
    fn download(&self, from: &DeviceBuffer, offset: usize, data: &mut [u8]) -> Result {
        assert!(offset + data.len() <= from.bytes(), "download beyond the buffer");
        // SAFETY: inside the buffer; launches have run to their end.
        unsafe { std::ptr::copy_nonoverlapping(from.address().add(offset), data.as_mut_ptr(), data.len()) };
        Ok(())
    }
    fn read_foreign(&self, from: &ForeignMemory, data: &mut [u8]) -> Result {
        let address = from.start(data.len());
        // SAFETY: inside the memory; launches have run to their end.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, data.as_mut_ptr(), data.len()) };
        Ok(())
    }
    fn write_foreign(&self, data: &[u8], to: &mut ForeignMemory) -> Result {
        let address = to.start(data.len());
        // SAFETY: inside the memory, which is borrowed mutably.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), address as *mut u8, data.len()) };
        Ok(())
    }
    fn copy(&self, from: &DeviceBuffer, to: &mut DeviceBuffer, bytes: usize) -> Result {
        assert!(bytes <= from.bytes() && bytes <= to.bytes(), "copy beyond a buffer");
        const PIECE: usize = 1 << 18;
        let (source, target) = (from.address() as usize, to.address() as usize);
        self.in_threads(bytes.div_ceil(PIECE), |k| {
            let (start, length) = (k * PIECE, PIECE.min(bytes - k * PIECE));
            // SAFETY: two different buffers, disjoint pieces inside both.
            unsafe {
                std::ptr::copy_nonoverlapping((source + start) as *const u8, (target + start) as *mut u8, length)
            };
        });
        Ok(())
    }
    fn clear(&self, buffer: &mut DeviceBuffer) -> Result {
        const PIECE: usize = 1 << 16;
        let (address, bytes) = (buffer.address() as usize, buffer.bytes());
        self.in_threads(bytes.div_ceil(PIECE), |k| {
            let (start, length) = (k * PIECE, PIECE.min(bytes - k * PIECE));
            // SAFETY: disjoint pieces of the buffer, which is borrowed mutably.
            unsafe { std::ptr::write_bytes((address + start) as *mut u8, 0, length) };
        });
        Ok(())
    }

    fn run(&self, _: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32) -> Result {
        let from = Instant::now();
        self.run_blocks(self.launched(&kernel)?, n, nrhs);
        self.took(&kernel, from);
        Ok(())
    }
    fn sum(&self, _: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32, slot: usize) -> Result {
        assert!(slot + nrhs as usize * kernel.values() <= REDUCTION_SLOTS, "too many sums in one round");
        let mut sums = self.shared.sums.lock().unwrap_or_else(|e| e.into_inner());
        sums.summing.check(|| self.device())?;
        self.sum_up(kernel, n, nrhs, |k, sum| sums.values[slot + k] = sum)?;
        sums.summing.begin();
        Ok(())
    }
    fn sum_into(
        &self,
        _: Option<&Stream>,
        kernel: Call<'_>,
        n: u32,
        nrhs: u32,
        (to, slot): (&DeviceBuffer, usize),
    ) -> Result {
        assert!(8 * (slot + nrhs as usize * kernel.values()) <= to.bytes(), "sums beyond the buffer");
        self.sum_up(kernel, n, nrhs, |k, sum| {
            // SAFETY: inside the buffer, which nothing else uses: launches have run to their end.
            unsafe { to.address().cast::<f64>().add(slot + k).write(sum) }
        })
    }
    fn sums(&self, out: &mut [f64]) -> Result {
        let mut sums = self.shared.sums.lock().unwrap_or_else(|e| e.into_inner());
        sums.summing.end(|| self.device())?;
        out.copy_from_slice(&sums.values[..out.len()]);
        Ok(())
    }
    fn fetch_numbers(&self, from: &DeviceBuffer, out: &mut [f64]) -> Result {
        assert!(out.len() <= FETCH_SLOTS && 8 * out.len() <= from.bytes(), "fetching beyond the buffer");
        // SAFETY: inside the buffer, which nothing else uses: launches have run to their end.
        unsafe { std::ptr::copy_nonoverlapping(from.address().cast(), out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    // Every call has done its work when it returns, so streams need no state.
    fn stream(&self) -> Result<Stream> {
        Ok(Stream::new(()))
    }
    fn pinned(&self, bytes: usize, what: &str, _: Ordered) -> Result<Pinned> {
        let memory = self.allocate(bytes, what)?;
        let address = memory.address();
        Ok(Pinned::new(DeviceBuffer::new(address, bytes, memory)))
    }
    fn fetch(&self, from: &DeviceBuffer, offset: usize, to: &Pinned, _: &Stream) -> Result {
        assert!(offset + to.size() <= from.bytes(), "fetching beyond the buffer");
        // SAFETY: inside both, which are different; nothing else uses `to` meanwhile (contract of `Ordered`).
        unsafe { std::ptr::copy_nonoverlapping(from.address().add(offset), to.address(), to.size()) };
        Ok(())
    }
    fn put(&self, from: &Pinned, to: &DeviceBuffer, offset: usize, _: &Stream) -> Result {
        assert!(offset + from.size() <= to.bytes(), "putting beyond the buffer");
        // SAFETY: as in `fetch`.
        unsafe { std::ptr::copy_nonoverlapping(from.address(), to.address().add(offset), from.size()) };
        Ok(())
    }
    fn share(&self, _: &DeviceBuffer) -> Result<Vec<u8>> {
        Err(super::BackendError::NoPeers)
    }
    fn open_peer(&self, _: &[u8]) -> Result<Peer> {
        Err(super::BackendError::NoPeers)
    }
    fn peer_address(&self, _: &Peer) -> *mut u8 {
        // The CPU backend never opens a peer.
        std::ptr::null_mut()
    }
    fn copy_to_peer(&self, _: &DeviceBuffer, _: usize, _: *mut u8, _: usize, _: &Stream, _: Ordered) -> Result {
        Err(super::BackendError::NoPeers)
    }
    fn signal(&self, _: &[*mut u8], _: u32, _: Option<&Stream>, _: Ordered) -> Result {
        Err(super::BackendError::NoPeers)
    }
    fn await_signal(&self, _: &[*mut u8], _: u32, _: Option<&Stream>, _: Ordered) -> Result {
        Err(super::BackendError::NoPeers)
    }
    fn event(&self, _: bool) -> Result<Event> {
        self.record()
    }
    fn mark(&self, _: &Event, _: Option<&Stream>) -> Result {
        Ok(())
    }
    fn follow(&self, _: &Event, _: Option<&Stream>) -> Result {
        Ok(())
    }
    fn reached(&self, _: &Event) -> Result<bool> {
        Ok(true)
    }

    fn record(&self) -> Result<Event> {
        Ok(Event::new(Instant::now()))
    }
    fn seconds_between(&self, from: &Event, to: &Event) -> Result<f64> {
        Ok(to.get::<Instant>().duration_since(*from.get()).as_secs_f64())
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
