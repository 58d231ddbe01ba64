//! Memory of other processes' GPUs on the same machine (CUDA IPC), and words in this memory with which streams of different processes wait
//! for each other.
use super::order::Queue;
use super::{Cuda, CudaStream, raw};
use crate::backend::{BackendError, DeviceBuffer, Result, Stream};
use cust::sys;

// The driver has had version 2 of this function since CUDA 11.7, but `cust` does not declare it.
unsafe extern "C" {
    fn cuStreamBatchMemOp_v2(
        stream: sys::CUstream,
        count: u32,
        operations: *mut WordOperation,
        flags: u32,
    ) -> sys::CUresult;
}

/// An operation of a stream on a word in memory: `CUstreamBatchMemOpParams` of the driver.
#[repr(C)]
#[derive(Clone, Copy)]
struct WordOperation {
    /// Kind of the operation: [`WAIT`] or [`WRITE`].
    kind: u32,
    address: u64,
    value: u64,
    flags: u32,
    /// Fields that are not used here.
    rest: [u64; 2],
}
const _: () = assert!(size_of::<WordOperation>() == 48);
/// Operation that waits for a word: `CU_STREAM_MEM_OP_WAIT_VALUE_32`.
const WAIT: u32 = 1;
/// Operation that writes a word: `CU_STREAM_MEM_OP_WRITE_VALUE_32`.
const WRITE: u32 = 2;
/// Condition of a wait: the difference word − value, as a signed number, is not negative (`CU_STREAM_WAIT_VALUE_GEQ`).
const NOT_BELOW: u32 = 0;
/// Flag that enables access to the peer when it is first needed: `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
const LAZY: u32 = 1;

/// Memory of another process, mapped into the address space of this process.
pub(super) struct CudaPeer {
    base: u64,
    offset: u64,
    /// Backend that mapped the memory; keeps the context alive.
    backend: Cuda,
}

impl Drop for CudaPeer {
    fn drop(&mut self) {
        // SAFETY: mapped in `open_peer`, unmapped once; the driver waits for work that uses it.
        unsafe {
            let _ = self.backend.enter();
            let _ = sys::cuIpcCloseMemHandle(self.base);
        }
    }
}

/// Message with which a process shares a buffer: the driver's handle of the allocation, and the buffer's offset in it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Handle {
    memory: sys::CUipcMemHandle_st,
    offset: u64,
}
const HANDLE_BYTES: usize = size_of::<Handle>();

impl Cuda {
    pub(super) fn share_buffer(&self, buffer: &DeviceBuffer) -> Result<Vec<u8>> {
        self.enter()?;
        let address = buffer.address() as u64;
        let (mut base, mut size) = (0, 0);
        let mut handle = Handle { memory: sys::CUipcMemHandle_st { reserved: [0; 64] }, offset: 0 };
        // SAFETY: a live buffer; writes two numbers and a handle.
        unsafe {
            raw(sys::cuMemGetAddressRange_v2(&mut base, &mut size, address), "finding an allocation", self.name())?;
            raw(sys::cuIpcGetMemHandle(&mut handle.memory, base), "sharing memory between processes", self.name())?;
        }
        handle.offset = address - base;
        let bytes: [u8; HANDLE_BYTES] =
            // SAFETY: plain data without padding: 64 bytes and a number.
            unsafe { std::mem::transmute(handle) };
        Ok(bytes.to_vec())
    }
    pub(super) fn open_peer_memory(&self, handle: &[u8]) -> Result<CudaPeer> {
        let bytes: [u8; HANDLE_BYTES] = handle.try_into().map_err(|_| BackendError::NoPeers)?;
        // SAFETY: plain data, any bits of which are a handle; the driver checks it.
        let handle: Handle = unsafe { std::mem::transmute(bytes) };
        self.enter()?;
        let mut base = 0;
        // SAFETY: writes one address.
        let code = unsafe { sys::cuIpcOpenMemHandle_v2(&mut base, handle.memory, LAZY) };
        raw(code, "opening another process's memory", self.name())?;
        Ok(CudaPeer { base, offset: handle.offset, backend: self.clone() })
    }
    pub(super) fn copy_to(&self, from: &DeviceBuffer, offset: usize, to: *mut u8, bytes: usize, s: &Stream) -> Result {
        assert!(offset + bytes <= from.bytes(), "copying beyond the buffer");
        self.enter()?;
        let source = from.address() as u64 + offset as u64;
        // `cuMemcpyDtoDAsync` rejects addresses of another device; `cuMemcpyAsync` accepts them.
        // SAFETY: the range of the source was checked, and `Ordered` promises that the target is valid.
        let code = unsafe { sys::cuMemcpyAsync(to as u64, source, bytes, s.get::<CudaStream>().handle()) };
        raw(code, "copying to another GPU", self.name())
    }
    pub(super) fn write_words(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>) -> Result {
        // The driver writes the words only after all earlier writes of the stream are visible.
        let queue = self.queue(stream);
        self.each_word(words, WRITE, value, 0, queue, "signalling another process")
    }
    pub(super) fn wait_words(&self, words: &[*mut u8], value: u32, stream: Option<&Stream>) -> Result {
        let queue = self.queue(stream);
        self.each_word(words, WAIT, value, NOT_BELOW, queue, "waiting for another process")
    }
    /// Performs an operation on all words in a single call, because each call costs a stream some microseconds.
    fn each_word(&self, words: &[*mut u8], kind: u32, value: u32, flags: u32, queue: &Queue, call: &str) -> Result {
        self.enter()?;
        let operation =
            |word: &*mut u8| WordOperation { kind, address: *word as u64, value: value.into(), flags, rest: [0; 2] };
        let mut operations: Vec<WordOperation> = words.iter().map(operation).collect();
        // SAFETY: the words are promised by `Ordered`; the driver reads as many operations as there are.
        let code =
            unsafe { cuStreamBatchMemOp_v2(queue.handle(), operations.len() as u32, operations.as_mut_ptr(), 0) };
        raw(code, call, self.name())
    }
}

impl CudaPeer {
    pub fn address(&self) -> *mut u8 {
        (self.base + self.offset) as *mut u8
    }
}
