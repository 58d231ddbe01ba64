//! Sums that stay on the device, where kernels read them without waiting for the host.
use crate::memory::{Access, Global, HalfChunk};

/// Sums on the device, for each of up to five parts of a lattice on which values were summed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceSums {
    base: Global,
    /// Values from one part to the next.
    stride: u32,
    /// Values of each right-hand side (and block) in a part: 3, those of [`DslashDot`](crate::dslash::DslashDot), or 8, those of
    /// [`DslashDots`](crate::dslash::DslashDots), or 0, where there is no such part.
    widths: [u32; 5],
}

impl DeviceSums {
    /// Sums at `base`.
    ///
    /// # Safety
    /// The sums lie there, for as long as a kernel that holds the view or a copy of it runs, with all sites and
    /// right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8, stride: u32, widths: [u32; 5]) -> Self {
        DeviceSums { base: Global(base), stride, widths }
    }
    #[inline(always)]
    unsafe fn value(&self, k: u32) -> f64 {
        let HalfChunk([low, high]) = unsafe { self.base.load8(8 * k as usize, Access::Shared) };
        f64::from_bits((high as u64) << 32 | low as u64)
    }
    /// \[Re (r, t), Im (r, t), ‖t‖²\] of right-hand side (and block) `j`.
    ///
    /// # Safety
    /// All parts have sums of `j`.
    #[inline(always)]
    pub(crate) unsafe fn dot(&self, j: u32) -> [f64; 3] {
        let mut sums = [0.0; 3];
        macro_rules! part {
            ($($part:literal)*) => {$(
                let width = self.widths[$part];
                if width != 0 {
                    let first = $part * self.stride + j * width;
                    let [re, im, norm2] = if width == 3 { [0, 1, 2] } else { [4, 5, 7] };
                    unsafe {
                        sums[0] += self.value(first + re);
                        sums[1] += self.value(first + im);
                        sums[2] += self.value(first + norm2);
                    }
                }
            )*};
        }
        part!(0 1 2 3 4);
        sums
    }
}
