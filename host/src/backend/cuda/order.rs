//! Streams and events of a GPU. The types of `cust` are not used: its streams wait for the legacy default stream, on which other libraries
//! of a program may be working, and its events are consumed by waiting for them.
use super::{Cuda, raw};
use crate::backend::{Result, Stream};
use cust::sys;

/// CU_STREAM_NON_BLOCKING: the stream does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;
/// Priority above the highest possible one, which the driver replaces by the highest.
const HIGHEST: i32 = -100;

/// A stream of the driver. Its owner keeps the context alive and makes it current before the stream is dropped.
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
    /// Returns the driver's handle of the stream.
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

/// A stream beside the main one.
pub(super) struct CudaStream {
    queue: Queue,
    /// Backend of the stream; keeps the context alive.
    backend: Cuda,
}

impl CudaStream {
    pub fn handle(&self) -> sys::CUstream {
        self.queue.0
    }
}
impl Drop for CudaStream {
    fn drop(&mut self) {
        // Next, the stream's queue is destroyed, for which the context must be current.
        let _ = self.backend.enter();
    }
}

/// An event of the driver. Its owner keeps the context alive and makes it current before the event is dropped.
pub(super) struct Mark(sys::CUevent);
// SAFETY: a handle that the driver lets any thread use.
unsafe impl Send for Mark {}

impl Mark {
    /// Returns the driver's handle of the event.
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

/// An event, with the backend that owns its context.
pub(super) struct CudaEvent {
    mark: Mark,
    /// Backend of the event; keeps the context alive.
    backend: Cuda,
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // Next, the event of the driver is destroyed, for which the context must be current.
        let _ = self.backend.enter();
    }
}

impl Cuda {
    /// Returns the queue of a stream, or that of the main stream.
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
    /// Records an event after the work that the queue has so far.
    pub(super) fn place(&self, mark: &impl AsRef<Mark>, queue: &Queue) -> Result {
        self.enter()?;
        // SAFETY: live handles of this context.
        raw(unsafe { sys::cuEventRecord(mark.as_ref().0, queue.0) }, "recording an event", self.name())
    }
    /// Makes later work of the queue wait for an event.
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
    /// Returns the seconds between two events; waits for the later one.
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
