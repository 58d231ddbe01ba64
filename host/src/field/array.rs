//! Arrays of complex numbers on a device, in the order of host fields. Other libraries can share their memory.
use crate::backend::{Backend, DeviceBuffer, view};
use crate::domain::Result;
use gpu_kernels::transfer::HostArray;
use num_complex::Complex64;
use std::sync::Arc;

/// Largest number of complex numbers that are copied from one device to another in one step.
const PIECE: usize = 1 << 22;

/// Array of complex numbers in double precision in the memory of a device.
pub struct DeviceArray {
    memory: DeviceBuffer,
    len: usize,
    backend: Arc<dyn Backend>,
}

impl DeviceArray {
    /// Allocates an array of `len` zeros; `what` names it in the error about too little memory.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub fn zero(backend: &dyn Backend, len: usize, what: &str) -> Result<Self> {
        let memory = backend.allocate(len * size_of::<Complex64>(), what)?;
        Ok(DeviceArray { memory, len, backend: backend.shared() })
    }
    /// Returns the number of complex numbers in the array.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether the array is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the backend whose memory holds the array.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
    /// Returns the address of the first number in the memory of the device, for other libraries. Before they use the memory, wait for the
    /// work of the device with [`synchronize`](Backend::synchronize); before the device uses it again, wait for their work.
    pub fn address(&self) -> usize {
        self.memory.address().addr()
    }
    /// Copies numbers from the host to the array, starting at index `first`.
    ///
    /// # Errors
    /// Fails if the device fails.
    ///
    /// # Panics
    /// Panics if the array is too short.
    pub fn upload(&mut self, first: usize, numbers: &[Complex64]) -> Result {
        assert!(first + numbers.len() <= self.len, "numbers have a place in the array");
        let offset = first * size_of::<Complex64>();
        Ok(self.backend.upload(bytemuck::cast_slice(numbers), &mut self.memory, offset)?)
    }
    /// Copies numbers from the array, starting at index `first`, to the host.
    ///
    /// # Errors
    /// Fails if the device fails.
    ///
    /// # Panics
    /// Panics if the array is too short.
    pub fn download(&self, first: usize, numbers: &mut [Complex64]) -> Result {
        assert!(first + numbers.len() <= self.len, "numbers have a place in the array");
        let offset = first * size_of::<Complex64>();
        Ok(self.backend.download(&self.memory, offset, bytemuck::cast_slice_mut(numbers))?)
    }
    /// Copies the array to another device through host memory; `what` names it in errors.
    ///
    /// # Errors
    /// Fails if one of the devices fails.
    pub fn copy_on(&self, backend: &dyn Backend, what: &str) -> Result<Self> {
        let mut copy = DeviceArray::zero(backend, self.len, what)?;
        let mut piece = vec![Complex64::ZERO; self.len.min(PIECE)];
        for first in (0..self.len).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(self.len - first)];
            self.download(first, piece)?;
            copy.upload(first, piece)?;
        }
        Ok(copy)
    }
    /// Returns the array in the form that kernels use.
    pub(crate) fn view(&self) -> HostArray {
        view::host_array(&self.memory, self.len)
    }
}
