//! Every instance as a CPU function, compiled here once for each set of vector instructions, so that the crates above,
//! which are generic over the instances, do not compile them again.
use crate::{Kernel, Reduction, Values};
use core::any::TypeId;

/// Runs sites `first..last` of right-hand side `rhs`. `sums` takes what a reduction adds up; a kernel ignores it.
///
/// # Safety
/// `kernel` points to a kernel of the entry's type; otherwise as [`Kernel::site`].
pub type Run = unsafe fn(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64);

/// One instance on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The instance's type.
    pub kernel: fn() -> TypeId,
    /// For any machine.
    pub portable: Run,
    /// For AVX2 and FMA.
    pub avx2: Run,
    /// For AVX-512 (F, VL, DQ, BW) and FMA.
    pub avx512: Run,
}

macro_rules! versions {
    ($portable:ident $avx2:ident $avx512:ident, $bound:ident, $body:ident) => {
        unsafe fn $portable<K: $bound>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $body::<K>(kernel, first, last, rhs, sums) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $avx2<K: $bound>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $body::<K>(kernel, first, last, rhs, sums) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        unsafe fn $avx512<K: $bound>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $body::<K>(kernel, first, last, rhs, sums) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        use {$portable as $avx2, $portable as $avx512};
    };
}
versions!(run_portable run_avx2 run_avx512, Kernel, run);
versions!(sum_portable sum_avx2 sum_avx512, Reduction, sum);

#[inline(always)]
unsafe fn run<K: Kernel>(kernel: *const u8, first: u32, last: u32, rhs: u32, _sums: *mut f64) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    for i in first..last {
        unsafe { kernel.site(i, rhs) }
    }
}

// A loop, not `fold`: a closure of its own might not be compiled for the vector instructions.
#[inline(always)]
unsafe fn sum<K: Reduction>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    let mut total = K::Values::ZERO;
    for i in first..last {
        total = total.add(unsafe { kernel.site(i, rhs) });
    }
    for k in 0..K::Values::COUNT {
        unsafe { *sums.add(k) = total.get(k) };
    }
}

impl Entry {
    /// Of a kernel.
    pub const fn kernel<K: Kernel>() -> Self {
        Entry { kernel: TypeId::of::<K>, portable: run_portable::<K>, avx2: run_avx2::<K>, avx512: run_avx512::<K> }
    }
    /// Of a reduction.
    pub const fn reduction<K: Reduction>() -> Self {
        Entry { kernel: TypeId::of::<K>, portable: sum_portable::<K>, avx2: sum_avx2::<K>, avx512: sum_avx512::<K> }
    }
}
