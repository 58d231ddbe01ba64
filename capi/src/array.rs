//! Arrays of the caller: numbers of single or double precision, in any order that strides describe.
use crate::call::refused;
use crate::device::OpenDevice;
use ferrite::num_complex::{Complex32, Complex64};
use ferrite_tasks::Outcome;
use std::ffi::c_void;

/// Complex numbers in single precision, 8 bytes each: `float _Complex`.
pub const FE_COMPLEX64: i32 = 1;
/// Complex numbers in double precision, 16 bytes each: `double _Complex`.
pub const FE_COMPLEX128: i32 = 2;

/// Place of arrays in host memory. Arrays in the memory of a GPU are not offered yet.
pub const FE_HOST: i32 = -1;

/// Number of bytes that a process can address.
const MEMORY: i64 = 1 << 47;

/// Largest number of axes of an array.
pub const FE_AXES: usize = 8;

/// Array of the caller. Its axes are in the order of the documentation of each function; strides put them in any order in memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fe_array {
    /// First number.
    pub data: *mut c_void,
    /// Type of the numbers: `FE_COMPLEX64` or `FE_COMPLEX128`.
    pub scalar: i32,
    /// Place of the numbers: `FE_HOST`.
    pub place: i32,
    /// Number of axes.
    pub axes: i32,
    /// Set to 0.
    pub reserved: i32,
    /// Length of each axis.
    pub length: [i64; FE_AXES],
    /// Distance in bytes between neighbours along each axis; all 0 for the C order without gaps.
    pub stride: [i64; FE_AXES],
}

/// Array whose description has been checked.
pub(crate) struct Checked {
    data: *mut u8,
    is_double: bool,
    pub(crate) shape: Vec<usize>,
    strides: Vec<isize>,
}

impl fe_array {
    /// Checks the description of an array that is used on `device`; `what` names the array in messages.
    pub(crate) fn check(&self, what: &str, device: &OpenDevice) -> Outcome<Checked> {
        let is_double = match self.scalar {
            FE_COMPLEX64 => false,
            FE_COMPLEX128 => true,
            other => {
                let why = format!("scalar = {other}: expected FE_COMPLEX64 or FE_COMPLEX128");
                return Err(refused(what, &why));
            }
        };
        let axes = usize::try_from(self.axes).ok().filter(|axes| (1..=FE_AXES).contains(axes));
        let axes = axes.ok_or_else(|| refused(what, &format!("axes = {}: expected 1 to {FE_AXES}", self.axes)))?;
        let (length, stride) = (&self.length[..axes], &self.stride[..axes]);
        let mut bytes = if is_double { 16i64 } else { 8 };
        let mut dense = vec![0; axes];
        for axis in (0..axes).rev() {
            dense[axis] = bytes;
            let next = (length[axis] > 0).then(|| bytes.checked_mul(length[axis])).flatten();
            bytes = next.filter(|bytes| *bytes < MEMORY).ok_or_else(|| {
                refused(
                    what,
                    &format!("length = {length:?}: expected lengths above 0 of an array that fits into memory"),
                )
            })?;
        }
        if self.reserved != 0 {
            return Err(refused(what, &format!("reserved = {}: expected 0", self.reserved)));
        }
        if self.data.is_null() {
            return Err(refused(what, "data is a null pointer"));
        }
        if self.place != FE_HOST {
            let place = self.place;
            let why = match device.ordinal() {
                Some(ordinal) => format!(
                    "place = {place}: the device is GPU {ordinal}, and arrays have to be in host memory (FE_HOST)"
                ),
                None => {
                    format!("place = {place}: the device is a CPU, so the array has to be in host memory (FE_HOST)")
                }
            };
            return Err(refused(what, &why));
        }
        let strides = if stride.iter().all(|stride| *stride == 0) { &dense } else { stride };
        let mut spans = length.iter().zip(strides).map(|(n, stride)| stride.checked_abs()?.checked_mul(n - 1));
        let span = spans.try_fold(0i64, |sum, span| sum.checked_add(span?));
        if span.is_none_or(|span| span >= MEMORY) {
            return Err(refused(what, &format!("stride = {stride:?}: the distances do not fit into memory")));
        }
        Ok(Checked {
            data: self.data.cast(),
            is_double,
            shape: length.iter().map(|n| *n as usize).collect(),
            strides: strides.iter().map(|stride| *stride as isize).collect(),
        })
    }
}

impl Checked {
    /// Calls `visit` with the address of each number, in C order of the axes.
    fn for_each(&self, mut visit: impl FnMut(*mut u8)) {
        let last = self.shape.len() - 1;
        let mut index = vec![0usize; last];
        let mut row = self.data;
        loop {
            for k in 0..self.shape[last] as isize {
                visit(row.wrapping_offset(k * self.strides[last]));
            }
            let mut axis = last;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                row = row.wrapping_offset(self.strides[axis]);
                if index[axis] < self.shape[axis] {
                    break;
                }
                row = row.wrapping_offset(-(self.strides[axis] * self.shape[axis] as isize));
                index[axis] = 0;
            }
        }
    }
    /// Reads the numbers in C order.
    ///
    /// # Safety
    /// The description is true of memory that may be read.
    pub(crate) unsafe fn read(&self) -> Vec<Complex64> {
        let mut numbers = Vec::with_capacity(self.shape.iter().product());
        if self.is_double {
            // SAFETY: the caller's promise; the address may have any alignment.
            self.for_each(|at| numbers.push(unsafe { at.cast::<Complex64>().read_unaligned() }));
        } else {
            self.for_each(|at| {
                // SAFETY: as above.
                let number = unsafe { at.cast::<Complex32>().read_unaligned() };
                numbers.push(Complex64::new(number.re.into(), number.im.into()));
            });
        }
        numbers
    }
    /// Writes numbers in C order.
    ///
    /// # Safety
    /// The description is true of memory that may be written.
    pub(crate) unsafe fn write(&self, numbers: &[Complex64]) {
        let mut numbers = numbers.iter();
        self.for_each(|at| {
            let Some(number) = numbers.next() else { return };
            match self.is_double {
                // SAFETY: the caller's promise; the address may have any alignment.
                true => unsafe { at.cast::<Complex64>().write_unaligned(*number) },
                // SAFETY: as above.
                false => unsafe {
                    at.cast::<Complex32>().write_unaligned(Complex32::new(number.re as f32, number.im as f32));
                },
            }
        });
    }
    /// Fails unless the array has the shape `shape`.
    pub(crate) fn expect_shape(&self, what: &str, shape: &[usize]) -> Outcome {
        match self.shape == shape {
            true => Ok(()),
            false => {
                Err(refused(what, &format!("an array of shape {:?} is given, but {shape:?} is needed", self.shape)))
            }
        }
    }
}
