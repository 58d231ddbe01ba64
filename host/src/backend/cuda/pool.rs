//! Pool of freed memory for reuse. An allocation by the driver costs as much as a hundred kernels, and waits for all running kernels.
//!
//! Reused memory may still be in use by a kernel of the main stream. This is safe, because the work of the next owner comes later in the
//! same stream. Memory for other streams or other processes does not come from the pool: see
//! [`allocate_apart`](crate::backend::Backend::allocate_apart).
use super::{Cuda, CudaBuffer, lock, raw};
use crate::backend::{Backend, BackendError, Result};
use cust::sys;
use std::collections::HashMap;
use std::time::Instant;
use tracing::trace;

/// Granularity of sizes in bytes. Sizes are rounded up, so that buffers of almost equal size can replace each other.
const STEP: usize = 4096;

/// Addresses of free memory for each size in bytes.
#[derive(Default)]
pub(super) struct Pool {
    free: HashMap<usize, Vec<u64>>,
    bytes: usize,
}

impl Pool {
    /// Returns the number of bytes in the pool.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    fn take(&mut self, size: usize) -> Option<u64> {
        let address = self.free.get_mut(&size)?.pop()?;
        self.bytes -= size;
        Some(address)
    }
    fn give(&mut self, size: usize, address: u64) {
        self.free.entry(size).or_default().push(address);
        self.bytes += size;
    }
    /// Removes all memory from the pool and returns its addresses.
    pub fn empty(&mut self) -> impl Iterator<Item = u64> + use<> {
        self.bytes = 0;
        std::mem::take(&mut self.free).into_values().flatten()
    }
}

fn rounded(bytes: usize) -> usize {
    bytes.max(16).next_multiple_of(STEP)
}

impl Cuda {
    pub(super) fn pooled(&self, bytes: usize, what: &str) -> Result<CudaBuffer> {
        self.enter()?;
        let size = rounded(bytes);
        let known = lock(&self.shared.pool).take(size);
        let address = known.map_or_else(|| self.fresh(size, bytes, what), Ok)?;
        self.buffer(address, bytes, true)
    }
    pub(super) fn apart(&self, bytes: usize, what: &str) -> Result<CudaBuffer> {
        self.enter()?;
        let address = self.fresh(bytes.max(16), bytes, what)?;
        self.buffer(address, bytes, false)
    }
    fn buffer(&self, address: u64, bytes: usize, pooled: bool) -> Result<CudaBuffer> {
        let buffer = CudaBuffer { address, bytes, pooled, backend: self.clone() };
        self.zero(address, bytes)?;
        Ok(buffer)
    }
    /// Allocates memory from the driver. If the driver has too little, the pool is emptied, and the allocation is tried again.
    fn fresh(&self, size: usize, bytes: usize, what: &str) -> Result<u64> {
        let (mut address, start) = (0, Instant::now());
        // SAFETY: writes one address.
        let mut ask = || unsafe { sys::cuMemAlloc_v2(&mut address, size) };
        let none = sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY;
        let mut code = ask();
        if code == none {
            let all: Vec<u64> = lock(&self.shared.pool).empty().collect();
            for address in all {
                // SAFETY: allocated above, and unused now. The driver waits for kernels that use it.
                unsafe {
                    let _ = sys::cuMemFree_v2(address);
                }
            }
            code = ask();
        }
        if code == none {
            let free = self.memory()?.free;
            return Err(BackendError::OutOfMemory { what: what.into(), bytes, free, device: self.device() });
        }
        raw(code, &format!("allocating memory for {what}"), self.name())?;
        trace!("memory for {what}: {bytes} bytes allocated in {:.2} ms", 1e3 * start.elapsed().as_secs_f64());
        Ok(address)
    }
    /// Returns a buffer's memory to the pool.
    pub(super) fn give_back(&self, address: u64, bytes: usize) {
        lock(&self.shared.pool).give(rounded(bytes), address);
    }
}
