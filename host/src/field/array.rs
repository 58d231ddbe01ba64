//! Complex numbers on a device, in the order of host fields, which other libraries can share.
use crate::backend::{Backend, DeviceBuffer, view};
use crate::domain::Result;
use gpu_kernels::transfer::HostArray;
use num_complex::Complex64;
use std::sync::Arc;

/// Number of complex numbers that are copied from one device to another at once.
const PIECE: usize = 1 << 22;

/// Complex numbers in double precision in the memory of a device, one after the other.
pub struct DeviceArray {
    memory: DeviceBuffer,
    len: usize,
    backend: Arc<dyn Backend>,
}

impl DeviceArray {
    /// Allocates `len` zeros; the error about too little memory names `what`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn zero(backend: &dyn Backend, len: usize, what: &str) -> Result<Self> {
        let memory = backend.allocate(len * size_of::<Complex64>(), what)?;
        Ok(DeviceArray { memory, len, backend: backend.shared() })
    }
    /// Returns the number of complex numbers.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether the array is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the backend whose memory holds the numbers.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
    /// Returns the address of the first number, in the memory of the device, for other libraries. Work on the device has to be [waited
    /// for](Backend::synchronize) before they use it, and theirs before the device does.
    pub fn address(&self) -> usize {
        self.memory.address().addr()
    }
    /// Copies numbers of the host to the places from `first` on.
    ///
    /// # Errors
    /// Failures of the device.
    ///
    /// # Panics
    /// If these are not all places of the array.
    pub fn upload(&mut self, first: usize, numbers: &[Complex64]) -> Result {
        assert!(first + numbers.len() <= self.len, "numbers have a place in the array");
        let offset = first * size_of::<Complex64>();
        Ok(self.backend.upload(bytemuck::cast_slice(numbers), &mut self.memory, offset)?)
    }
    /// Copies numbers from place `first` on to the host.
    ///
    /// # Errors
    /// Failures of the device.
    ///
    /// # Panics
    /// If these are not all places of the array.
    pub fn download(&self, first: usize, numbers: &mut [Complex64]) -> Result {
        assert!(first + numbers.len() <= self.len, "numbers have a place in the array");
        let offset = first * size_of::<Complex64>();
        Ok(self.backend.download(&self.memory, offset, bytemuck::cast_slice_mut(numbers))?)
    }
    /// Copies the numbers to another device, by way of the host.
    ///
    /// # Errors
    /// Failures of the devices.
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
    /// Returns the array as kernels use it.
    pub(crate) fn view(&self) -> HostArray {
        view::host_array(&self.memory, self.len)
    }
}
