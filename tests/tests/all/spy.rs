//! A CPU that notes what is launched and what is allocated.
use ferrite::backend::{Backend, Buffer, Cpu, Memory, Ordered, Result};
use ferrite::solve::Solves;
use ferrite::tune::LaunchKey;
use gpu_kernels::{Kernel, Reduction};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes that are allocated, and the most that ever were.
#[derive(Debug, Default)]
pub struct Meter {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Meter {
    fn more(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
    }
    /// The most bytes at any time so far.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

/// Memory that is counted until it is dropped.
pub struct Counted {
    buffer: <Cpu as Backend>::Buffer,
    meter: Arc<Meter>,
}

impl Buffer for Counted {
    fn bytes(&self) -> usize {
        self.buffer.bytes()
    }
    fn address(&self) -> *mut u8 {
        self.buffer.address()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.meter.now.fetch_sub(self.buffer.bytes(), Ordering::Relaxed);
    }
}

/// A CPU that notes what is launched and what is allocated.
#[derive(Clone)]
pub struct Spy {
    cpu: Cpu,
    launched: Arc<Mutex<BTreeSet<LaunchKey>>>,
    device: Arc<Meter>,
    pinned: Arc<Meter>,
}

impl Spy {
    /// With so many threads.
    pub fn new(threads: usize) -> Self {
        Spy { cpu: Cpu::new(Some(threads)), launched: Arc::default(), device: Arc::default(), pinned: Arc::default() }
    }
    /// Memory of the device.
    pub fn device(&self) -> &Meter {
        &self.device
    }
    /// Memory for messages.
    pub fn pinned(&self) -> &Meter {
        &self.pinned
    }
    /// Launches of kernels that are tuned: hot ones.
    pub fn hot(&self) -> BTreeSet<LaunchKey> {
        let hot = |key: &LaunchKey| gpu_kernels::instances().any(|i| i.name == key.kernel && i.hot);
        self.launched.lock().unwrap().iter().filter(|key| hot(key)).cloned().collect()
    }
}

impl Backend for Spy {
    type Buffer = Counted;
    type Event = <Cpu as Backend>::Event;
    type Stream = <Cpu as Backend>::Stream;
    type Pinned = <Cpu as Backend>::Pinned;
    type Peer = <Cpu as Backend>::Peer;

    fn solves() -> &'static Solves<Self> {
        static SOLVES: Solves<Spy> = Solves::new();
        &SOLVES
    }
    fn name(&self) -> &'static str {
        self.cpu.name()
    }
    fn device(&self) -> String {
        self.cpu.device()
    }
    fn is(&self, other: &Self) -> bool {
        self.cpu.is(&other.cpu)
    }
    fn memory(&self) -> Result<Memory> {
        self.cpu.memory()
    }
    fn allocate(&self, bytes: usize, what: &str) -> Result<Self::Buffer> {
        let buffer = self.cpu.allocate(bytes, what)?;
        self.device.more(buffer.bytes());
        Ok(Counted { buffer, meter: Arc::clone(&self.device) })
    }
    fn upload(&self, data: &[u8], to: &mut Self::Buffer, offset: usize) -> Result {
        self.cpu.upload(data, &mut to.buffer, offset)
    }
    fn download(&self, from: &Self::Buffer, offset: usize, data: &mut [u8]) -> Result {
        self.cpu.download(&from.buffer, offset, data)
    }
    fn copy(&self, from: &Self::Buffer, to: &mut Self::Buffer, bytes: usize) -> Result {
        self.cpu.copy(&from.buffer, &mut to.buffer, bytes)
    }
    fn clear(&self, buffer: &mut Self::Buffer) -> Result {
        self.cpu.clear(&mut buffer.buffer)
    }
    fn launch_on<K: Kernel>(&self, stream: Option<&()>, kernel: &K, n: u32, nrhs: u32) -> Result {
        self.launched.lock().unwrap().insert(LaunchKey { kernel: K::NAME.join("_"), sites: n, nrhs });
        self.cpu.launch_on(stream, kernel, n, nrhs)
    }
    fn reduce_on<K: Reduction>(&self, s: Option<&()>, kernel: &K, n: u32, nrhs: u32, slot: usize) -> Result {
        self.cpu.reduce_on(s, kernel, n, nrhs, slot)
    }
    fn reduce_into_on<K: Reduction>(
        &self,
        stream: Option<&()>,
        kernel: &K,
        n: u32,
        nrhs: u32,
        to: (&Self::Buffer, usize),
    ) -> Result {
        self.cpu.reduce_into_on(stream, kernel, n, nrhs, (&to.0.buffer, to.1))
    }
    fn sums(&self, out: &mut [f64]) -> Result {
        self.cpu.sums(out)
    }
    fn stream(&self) -> Result<Self::Stream> {
        self.cpu.stream()
    }
    fn pinned(&self, bytes: usize, what: &str, order: Ordered) -> Result<Self::Pinned> {
        // Kept as long as the domain, as exchanges are.
        self.pinned.more(bytes);
        self.cpu.pinned(bytes, what, order)
    }
    fn fetch(&self, from: &Self::Buffer, offset: usize, to: &Self::Pinned, stream: &Self::Stream) -> Result {
        self.cpu.fetch(&from.buffer, offset, to, stream)
    }
    fn put(&self, from: &Self::Pinned, to: &Self::Buffer, offset: usize, stream: &Self::Stream) -> Result {
        self.cpu.put(from, &to.buffer, offset, stream)
    }
    fn share(&self, buffer: &Self::Buffer) -> Result<Vec<u8>> {
        self.cpu.share(&buffer.buffer)
    }
    fn open_peer(&self, handle: &[u8]) -> Result<Self::Peer> {
        self.cpu.open_peer(handle)
    }
    fn peer_address(&self, peer: &Self::Peer) -> *mut u8 {
        self.cpu.peer_address(peer)
    }
    fn copy_to_peer(
        &self,
        from: &Self::Buffer,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: &Self::Stream,
        order: Ordered,
    ) -> Result {
        self.cpu.copy_to_peer(&from.buffer, offset, to, bytes, stream, order)
    }
    fn signal(&self, words: &[*mut u8], value: u32, stream: Option<&Self::Stream>, order: Ordered) -> Result {
        self.cpu.signal(words, value, stream, order)
    }
    fn await_signal(&self, words: &[*mut u8], value: u32, stream: Option<&()>, order: Ordered) -> Result {
        self.cpu.await_signal(words, value, stream, order)
    }
    fn event(&self, timing: bool) -> Result<Self::Event> {
        self.cpu.event(timing)
    }
    fn mark(&self, event: &Self::Event, stream: Option<&Self::Stream>) -> Result {
        self.cpu.mark(event, stream)
    }
    fn follow(&self, event: &Self::Event, stream: Option<&Self::Stream>) -> Result {
        self.cpu.follow(event, stream)
    }
    fn reached(&self, event: &Self::Event) -> Result<bool> {
        self.cpu.reached(event)
    }
    fn record(&self) -> Result<Self::Event> {
        self.cpu.record()
    }
    fn seconds_between(&self, from: &Self::Event, to: &Self::Event) -> Result<f64> {
        self.cpu.seconds_between(from, to)
    }
    fn synchronize(&self) -> Result {
        self.cpu.synchronize()
    }
}
