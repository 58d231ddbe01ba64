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
    /// For any machine of this architecture.
    #[cfg(not(target_arch = "x86_64"))]
    pub portable: Run,
    /// For AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    pub avx2: Run,
    /// For AVX-512 (F, VL, DQ, BW) and FMA.
    #[cfg(target_arch = "x86_64")]
    pub avx512: Run,
}

/// The entry of a type, whose functions belong to the module that calls this: the compiler works on modules in parallel.
#[macro_export]
macro_rules! cpu_entry {
    ($body:ident, $kernel:ty) => {{
        #[cfg(not(target_arch = "x86_64"))]
        unsafe fn portable(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $crate::cpu::$body::<$kernel>(kernel, first, last, rhs, sums) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $crate::cpu::$body::<$kernel>(kernel, first, last, rhs, sums) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        unsafe fn avx512(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $crate::cpu::$body::<$kernel>(kernel, first, last, rhs, sums) }
        }
        $crate::cpu::Entry {
            kernel: core::any::TypeId::of::<$kernel>,
            #[cfg(not(target_arch = "x86_64"))]
            portable,
            #[cfg(target_arch = "x86_64")]
            avx2,
            #[cfg(target_arch = "x86_64")]
            avx512,
        }
    }};
}

/// Runs a kernel on sites `first..last`.
///
/// # Safety
/// As [`Run`].
#[inline(always)]
pub unsafe fn run<K: Kernel>(kernel: *const u8, first: u32, last: u32, rhs: u32, _sums: *mut f64) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    for i in first..last {
        unsafe { kernel.site(kernel.place(i), rhs) }
    }
}

/// Sums a reduction over sites `first..last`.
///
/// # Safety
/// As [`Run`].
// A loop, not `fold`: a closure of its own might not be compiled for the vector instructions.
#[inline(always)]
pub unsafe fn sum<K: Reduction>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    let mut total = K::Values::ZERO;
    for i in first..last {
        total = total.add(unsafe { kernel.site(kernel.place(i), rhs) });
    }
    for k in 0..K::Values::COUNT {
        unsafe { *sums.add(k) = total.get(k) };
    }
}
