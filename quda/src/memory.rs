//! Memory of applications: arrays of real numbers in single or double precision, on the host or on the GPU.
use crate::enums::{QUDA_DOUBLE_PRECISION, QUDA_SINGLE_PRECISION, QudaPrecision};
use ferrite::backend::{Backend, ForeignMemory};
use ferrite_tasks::{Failure, Outcome};
use rayon::prelude::*;
use std::ffi::c_void;

/// Precision of numbers in the memory of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Single precision.
    Single,
    /// Double precision.
    Double,
}

impl Width {
    /// Returns the precision that a field of a structure names.
    ///
    /// # Errors
    /// Other precisions than single and double.
    pub fn of(name: &str, precision: QudaPrecision) -> Outcome<Self> {
        match precision {
            QUDA_SINGLE_PRECISION => Ok(Width::Single),
            QUDA_DOUBLE_PRECISION => Ok(Width::Double),
            _ => Err(Failure::refused(format!(
                "{name} = {precision}: arrays have QUDA_SINGLE_PRECISION or QUDA_DOUBLE_PRECISION"
            ))),
        }
    }
    /// Returns the number of bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Width::Single => size_of::<f32>(),
            Width::Double => size_of::<f64>(),
        }
    }
    /// Reads a number on the host, which may be at any address.
    ///
    /// # Safety
    /// There is a number at the address.
    pub unsafe fn read(self, from: *const u8) -> f64 {
        match self {
            // SAFETY: the caller's promise.
            Width::Single => f64::from(unsafe { from.cast::<f32>().read_unaligned() }),
            // SAFETY: as above.
            Width::Double => unsafe { from.cast::<f64>().read_unaligned() },
        }
    }
    /// Writes a number on the host, which may be at any address.
    ///
    /// # Safety
    /// There is room for a number at the address.
    pub unsafe fn write(self, to: *mut u8, number: f64) {
        match self {
            // SAFETY: the caller's promise.
            Width::Single => unsafe { to.cast::<f32>().write_unaligned(number as f32) },
            // SAFETY: as above.
            Width::Double => unsafe { to.cast::<f64>().write_unaligned(number) },
        }
    }
}

/// Array of an application.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    /// Name of the argument.
    pub name: &'a str,
    /// Address of the first number, on the host or on the GPU.
    pub address: *mut c_void,
    /// Precision of the numbers.
    pub width: Width,
}

impl Array<'_> {
    /// Reads the first `count` real numbers.
    ///
    /// # Safety
    /// The array has the numbers, and nothing writes to it during the call.
    pub unsafe fn read(self, backend: &dyn Backend, count: usize) -> Outcome<Vec<f64>> {
        let bytes = self.bytes(count)?;
        match self.width {
            Width::Double => {
                let mut numbers = vec![0.0; count];
                // SAFETY: the caller's promise.
                unsafe { self.fetch(backend, bytes, bytemuck::cast_slice_mut(&mut numbers)) }?;
                Ok(numbers)
            }
            Width::Single => {
                let mut numbers = vec![0f32; count];
                // SAFETY: the caller's promise.
                unsafe { self.fetch(backend, bytes, bytemuck::cast_slice_mut(&mut numbers)) }?;
                Ok(numbers.par_iter().map(|number| f64::from(*number)).collect())
            }
        }
    }
    /// Writes real numbers to the beginning of the array.
    ///
    /// # Safety
    /// The array has room for the numbers, and nothing else uses it during the call.
    pub unsafe fn write(self, backend: &dyn Backend, numbers: &[f64]) -> Outcome {
        let bytes = self.bytes(numbers.len())?;
        match self.width {
            // SAFETY: the caller's promise.
            Width::Double => unsafe { self.put(backend, bytes, bytemuck::cast_slice(numbers)) },
            Width::Single => {
                let numbers: Vec<f32> = numbers.par_iter().map(|number| *number as f32).collect();
                // SAFETY: the caller's promise.
                unsafe { self.put(backend, bytes, bytemuck::cast_slice(&numbers)) }
            }
        }
    }
    /// Returns the number of bytes of `count` numbers. Fails for a null pointer.
    fn bytes(self, count: usize) -> Outcome<usize> {
        match self.address.is_null() {
            true => Err(Failure::refused(format!("{}: the pointer is null", self.name))),
            false => Ok(count * self.width.bytes()),
        }
    }
    unsafe fn fetch(self, backend: &dyn Backend, bytes: usize, to: &mut [u8]) -> Outcome {
        let address = self.address.addr();
        if backend.is_on_device(address) {
            // SAFETY: the promise of the caller's caller.
            let memory = unsafe { ForeignMemory::new(address, bytes) };
            return Ok(backend.read_foreign(&memory, to)?);
        }
        // SAFETY: as above, in memory of the host.
        to.copy_from_slice(unsafe { std::slice::from_raw_parts(self.address.cast::<u8>(), bytes) });
        Ok(())
    }
    unsafe fn put(self, backend: &dyn Backend, bytes: usize, from: &[u8]) -> Outcome {
        let address = self.address.addr();
        if backend.is_on_device(address) {
            // SAFETY: the promise of the caller's caller.
            let mut memory = unsafe { ForeignMemory::new(address, bytes) };
            return Ok(backend.write_foreign(from, &mut memory)?);
        }
        // SAFETY: as above, in memory of the host.
        unsafe { std::slice::from_raw_parts_mut(self.address.cast::<u8>(), bytes) }.copy_from_slice(from);
        Ok(())
    }
}
