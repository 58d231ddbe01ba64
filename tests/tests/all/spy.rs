//! A CPU that notes what is launched and what is allocated.
use ferrite::backend::tuning::LaunchKey;
use ferrite::backend::{
    Backend, Call, Cpu, DeviceBuffer, Event, ForeignMemory, Memory, Ordered, Peer, Pinned, Result, Stream,
};
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

/// Takes its bytes off the meter when it is dropped.
struct Counted {
    bytes: usize,
    meter: Arc<Meter>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.meter.now.fetch_sub(self.bytes, Ordering::Relaxed);
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
    /// Makes a spy with this number of threads.
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

impl From<Spy> for Arc<dyn Backend> {
    fn from(spy: Spy) -> Self {
        Arc::new(spy)
    }
}

impl Backend for Spy {
    fn name(&self) -> &'static str {
        self.cpu.name()
    }
    fn device(&self) -> String {
        self.cpu.device()
    }
    fn shared(&self) -> Arc<dyn Backend> {
        self.clone().into()
    }
    fn id(&self) -> usize {
        self.cpu.id()
    }
    fn memory(&self) -> Result<Memory> {
        self.cpu.memory()
    }
    fn allocate(&self, bytes: usize, what: &str) -> Result<DeviceBuffer> {
        let buffer = self.cpu.allocate(bytes, what)?;
        let bytes = buffer.bytes();
        self.device.more(bytes);
        Ok(buffer.with(Counted { bytes, meter: Arc::clone(&self.device) }))
    }
    fn upload(&self, data: &[u8], to: &mut DeviceBuffer, offset: usize) -> Result {
        self.cpu.upload(data, to, offset)
    }
    fn download(&self, from: &DeviceBuffer, offset: usize, data: &mut [u8]) -> Result {
        self.cpu.download(from, offset, data)
    }
    fn read_foreign(&self, from: &ForeignMemory, data: &mut [u8]) -> Result {
        self.cpu.read_foreign(from, data)
    }
    fn write_foreign(&self, data: &[u8], to: &mut ForeignMemory) -> Result {
        self.cpu.write_foreign(data, to)
    }
    fn copy(&self, from: &DeviceBuffer, to: &mut DeviceBuffer, bytes: usize) -> Result {
        self.cpu.copy(from, to, bytes)
    }
    fn clear(&self, buffer: &mut DeviceBuffer) -> Result {
        self.cpu.clear(buffer)
    }
    fn run(&self, stream: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32) -> Result {
        let key = LaunchKey { kernel: kernel.instance().name.into(), sites: n, nrhs };
        self.launched.lock().unwrap().insert(key);
        self.cpu.run(stream, kernel, n, nrhs)
    }
    fn sum(&self, stream: Option<&Stream>, kernel: Call<'_>, n: u32, nrhs: u32, slot: usize) -> Result {
        self.cpu.sum(stream, kernel, n, nrhs, slot)
    }
    fn sum_into(
        &self,
        stream: Option<&Stream>,
        kernel: Call<'_>,
        n: u32,
        nrhs: u32,
        to: (&DeviceBuffer, usize),
    ) -> Result {
        self.cpu.sum_into(stream, kernel, n, nrhs, to)
    }
    fn sums(&self, out: &mut [f64]) -> Result {
        self.cpu.sums(out)
    }
    fn fetch_numbers(&self, from: &DeviceBuffer, out: &mut [f64]) -> Result {
        self.cpu.fetch_numbers(from, out)
    }
    fn stream(&self) -> Result<Stream> {
        self.cpu.stream()
    }
    fn pinned(&self, bytes: usize, what: &str, order: Ordered) -> Result<Pinned> {
        // Kept as long as the domain, as exchanges are.
        self.pinned.more(bytes);
        self.cpu.pinned(bytes, what, order)
    }
    fn fetch(&self, from: &DeviceBuffer, offset: usize, to: &Pinned, stream: &Stream) -> Result {
        self.cpu.fetch(from, offset, to, stream)
    }
    fn put(&self, from: &Pinned, to: &DeviceBuffer, offset: usize, stream: &Stream) -> Result {
        self.cpu.put(from, to, offset, stream)
    }
    fn share(&self, buffer: &DeviceBuffer) -> Result<Vec<u8>> {
        self.cpu.share(buffer)
    }
    fn open_peer(&self, handle: &[u8]) -> Result<Peer> {
        self.cpu.open_peer(handle)
    }
    fn peer_address(&self, peer: &Peer) -> *mut u8 {
        self.cpu.peer_address(peer)
    }
    fn copy_to_peer(
        &self,
        from: &DeviceBuffer,
        offset: usize,
        to: *mut u8,
        bytes: usize,
        stream: &Stream,
        order: Ordered,
    ) -> Result {
        self.cpu.copy_to_peer(from, offset, to, bytes, stream, order)
    }
    fn signal(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>, order: Ordered) -> Result {
        self.cpu.signal(words, value, stream, order)
    }
    fn await_signal(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>, order: Ordered) -> Result {
        self.cpu.await_signal(words, value, stream, order)
    }
    fn event(&self, timing: bool) -> Result<Event> {
        self.cpu.event(timing)
    }
    fn mark(&self, event: &Event, stream: Option<&Stream>) -> Result {
        self.cpu.mark(event, stream)
    }
    fn follow(&self, event: &Event, stream: Option<&Stream>) -> Result {
        self.cpu.follow(event, stream)
    }
    fn reached(&self, event: &Event) -> Result<bool> {
        self.cpu.reached(event)
    }
    fn record(&self) -> Result<Event> {
        self.cpu.record()
    }
    fn seconds_between(&self, from: &Event, to: &Event) -> Result<f64> {
        self.cpu.seconds_between(from, to)
    }
    fn synchronize(&self) -> Result {
        self.cpu.synchronize()
    }
}
