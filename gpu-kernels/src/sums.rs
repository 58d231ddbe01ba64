//! Sums that stay on the device. Kernels read them without waiting for the host.
use crate::memory::{Access, Global, HalfChunk};

/// Sums that remain on the device. A lattice consists of up to five parts that were summed separately; the view adds
/// the sums of the parts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceSums {
    base: Global,
    /// Distance between the sums of consecutive parts, in numbers.
    stride: u32,
    /// Number of values of each right-hand side (and block) in a part: 3 as in [`DslashDot`](crate::dslash::DslashDot), 8 as in
    /// [`DslashDots`](crate::dslash::DslashDots), or 0 if the part does not exist.
    widths: [u32; 5],
}

impl DeviceSums {
    /// No sums.
    pub const NONE: Self = DeviceSums { base: Global(core::ptr::null_mut()), stride: 0, widths: [0; 5] };

    /// Creates a view of sums at `base`.
    ///
    /// # Safety
    /// The sums stay at `base` while a kernel runs that holds the view or a copy of it. They have all sites and right-hand
    /// sides for which the kernel is launched.
    pub unsafe fn new(base: *mut u8, stride: u32, widths: [u32; 5]) -> Self {
        DeviceSums { base: Global(base), stride, widths }
    }
    #[inline(always)]
    unsafe fn value(&self, k: u32) -> f64 {
        let HalfChunk([low, high]) = unsafe { self.base.load8(8 * k as usize, Access::Shared) };
        f64::from_bits((high as u64) << 32 | low as u64)
    }
    /// \[Re (r, t), Im (r, t), ‖t‖²\] of right-hand side (and block) `j`, added over all parts.
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
    /// Whether there are sums.
    #[inline(always)]
    pub(crate) fn exist(&self) -> bool {
        self.widths[0] != 0
    }
    /// Returns the first N sums of right-hand side `j`, of a lattice that is summed in one part.
    ///
    /// # Safety
    /// There are sums of `j`, at least N.
    #[inline(always)]
    pub(crate) unsafe fn first<const N: usize>(&self, j: u32) -> [f64; N] {
        let mut sums = [0.0; N];
        let mut k = 0;
        while k < N {
            sums[k] = unsafe { self.value(j * self.widths[0] + k as u32) };
            k += 1;
        }
        sums
    }
}
