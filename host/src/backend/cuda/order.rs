//! Orders of work on a GPU and points in them. Those of `cust` are not used: its streams wait for the legacy default
//! stream, on which other libraries of a program may be working, and its events are consumed by those who wait for them.
use super::{Cuda, raw};
use crate::backend::{Result, Stream};
use cust::sys;

/// CU_STREAM_NON_BLOCKING: the stream does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;
/// Priority above the highest one that exists, for which the driver uses the highest.
const HIGHEST: i32 = -100;

/// A stream. Its owner keeps its context, which is the current one when the stream is dropped.
pub(super) struct Queue(sys::CUstream);
// SAFETY: a handle that the driver lets any thread use.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// Makes a stream in the current context.
    pub fn new(priority: i32, device: &str) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle.
        let code = unsafe { sys::cuStreamCreateWithPriority(&mut handle, NON_BLOCKING, priority) };
        raw(code, "creating a stream", device)?;
        Ok(Queue(handle))
    }
    /// Returns the driver's handle.
    pub fn handle(&self) -> sys::CUstream {
        self.0
    }
    /// Waits until the stream's work is done.
    pub fn wait(&self, device: &str) -> Result {
        // SAFETY: a live handle.
        raw(unsafe { sys::cuStreamSynchronize(self.0) }, "waiting for the GPU", device)
    }
}
impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        unsafe {
            let _ = sys::cuStreamDestroy_v2(self.0);
        }
    }
}

/// An order of work beside the main one.
pub(super) struct CudaStream {
    queue: Queue,
    /// Keeps the context alive.
    backend: Cuda,
}

impl CudaStream {
    pub fn handle(&self) -> sys::CUstream {
        self.queue.0
    }
}
impl Drop for CudaStream {
    fn drop(&mut self) {
        // The queue is destroyed after this.
        let _ = self.backend.enter();
    }
}

/// A point in the order of a stream. Its owner keeps its context, which is the current one when the mark is dropped.
pub(super) struct Mark(sys::CUevent);
// SAFETY: a handle that the driver lets any thread use.
unsafe impl Send for Mark {}

impl Mark {
    /// Returns the driver's handle.
    pub fn handle(&self) -> sys::CUevent {
        self.0
    }
}
impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: created in `new_mark`, destroyed once.
        unsafe {
            let _ = sys::cuEventDestroy_v2(self.0);
        }
    }
}

/// A point in the order of a stream.
pub(super) struct CudaEvent {
    mark: Mark,
    /// Keeps the context alive.
    backend: Cuda,
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // The mark is destroyed after this.
        let _ = self.backend.enter();
    }
}

impl Cuda {
    /// Returns a stream, or that of the main order.
    pub(super) fn queue<'a>(&'a self, stream: Option<&'a Stream>) -> &'a Queue {
        stream.map_or(&self.shared.queue, |stream| &stream.get::<CudaStream>().queue)
    }
    pub(super) fn new_stream(&self) -> Result<CudaStream> {
        self.enter()?;
        Ok(CudaStream { queue: Queue::new(HIGHEST, self.name())?, backend: self.clone() })
    }
    pub(super) fn new_event(&self, timing: bool) -> Result<CudaEvent> {
        Ok(CudaEvent { mark: self.new_mark(timing)?, backend: self.clone() })
    }
    pub(super) fn new_mark(&self, timing: bool) -> Result<Mark> {
        self.enter()?;
        let flags = if timing {
            sys::CUevent_flags_enum::CU_EVENT_DEFAULT
        } else {
            sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle.
        raw(unsafe { sys::cuEventCreate(&mut handle, flags as u32) }, "creating an event", self.name())?;
        Ok(Mark(handle))
    }
    /// Places a mark after the present work.
    pub(super) fn place(&self, mark: &impl AsRef<Mark>, queue: &Queue) -> Result {
        self.enter()?;
        // SAFETY: live handles of this context.
        raw(unsafe { sys::cuEventRecord(mark.as_ref().0, queue.0) }, "recording an event", self.name())
    }
    /// Makes later work wait for a mark.
    pub(super) fn wait_for(&self, event: &CudaEvent, queue: &Queue) -> Result {
        self.enter()?;
        // SAFETY: live handles of this context.
        raw(unsafe { sys::cuStreamWaitEvent(queue.0, event.mark.0, 0) }, "waiting for an event", self.name())
    }
    pub(super) fn is_reached(&self, event: &CudaEvent) -> Result<bool> {
        // SAFETY: a live handle.
        match unsafe { sys::cuEventQuery(event.mark.0) } {
            sys::cudaError_enum::CUDA_ERROR_NOT_READY => Ok(false),
            code => raw(code, "querying an event", self.name()).map(|()| true),
        }
    }
    /// Returns the seconds between two marks; waits for the later one.
    pub(super) fn elapsed(&self, from: &impl AsRef<Mark>, to: &impl AsRef<Mark>) -> Result<f64> {
        self.enter()?;
        let (from, to) = (from.as_ref().0, to.as_ref().0);
        let mut milliseconds = 0.0;
        // SAFETY: live handles; writes one number.
        unsafe {
            raw(sys::cuEventSynchronize(to), "waiting for an event", self.name())?;
            raw(sys::cuEventElapsedTime(&mut milliseconds, from, to), "reading a time", self.name())?;
        }
        Ok(milliseconds as f64 * 1e-3)
    }
}

impl AsRef<Mark> for Mark {
    fn as_ref(&self) -> &Mark {
        self
    }
}
impl AsRef<Mark> for CudaEvent {
    fn as_ref(&self) -> &Mark {
        &self.mark
    }
}
