//! Every instance as a CPU function, compiled in this crate for the selected vector instructions.
//!
//! A called function is compiled for these instructions if it is inlined, as every `inline(always)` function is. A large
//! closure is a function of its own, and is then compiled for the baseline processor of the architecture, without fused
//! multiply-add: kernels use functions or macros for arithmetic.
use crate::format::LaneFormat;
use crate::lattice::lanes;
use crate::storage::VectorSet;
use crate::warp::{LANES, Warp, WarpKernel};
use crate::{Kernel, Reduction, Values};

/// Runs sites `first..last` of right-hand side `rhs`. `sums` receives the sums of a reduction; a kernel ignores it.
///
/// # Safety
/// `kernel` points to a kernel of the entry's type; otherwise as [`Kernel::site`].
pub type Run = unsafe fn(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64);

/// Vector instructions for which kernels can be compiled. The build-time environment variable `FERRITE_VECTORS` selects them:
/// `native` (the default: the best of the building machine), `avx2`, `avx512`, or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// AVX-512 (F, VL, DQ, BW), AVX2 and FMA.
    Avx512,
    /// AVX2 and FMA.
    Avx2,
    /// Instructions that any processor of the architecture has. On x86-64 nothing is compiled for them, except in builds
    /// without optimisation, where nothing else is compiled.
    Portable,
}

impl Vectors {
    /// Instruction sets for which kernels are compiled, the best first.
    pub const COMPILED: &[Vectors] = &[
        #[cfg(vectors_avx512)]
        Vectors::Avx512,
        #[cfg(vectors_avx2)]
        Vectors::Avx2,
        #[cfg(vectors_portable)]
        Vectors::Portable,
    ];
    /// Returns the name for users.
    pub fn name(self) -> &'static str {
        match self {
            Vectors::Avx512 => "AVX-512",
            Vectors::Avx2 => "AVX2",
            Vectors::Portable => "no vector instructions",
        }
    }
    /// Whether this machine has the instructions.
    pub fn exist(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => {
                use std::is_x86_feature_detected as has;
                has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw") && Vectors::Avx2.exist()
            }
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
            Vectors::Portable => true,
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }
    /// Returns the best instruction set that this machine has and kernels are compiled for.
    pub fn best() -> Option<Self> {
        Self::COMPILED.iter().copied().find(|vectors| vectors.exist())
    }
}

/// One instance on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Functions(
    /// One function for each instruction set, in the order of [`Vectors::COMPILED`].
    pub &'static [Run],
);

impl Functions {
    /// Returns the function for these instructions, if it is compiled.
    pub fn of(&self, vectors: Vectors) -> Option<Run> {
        Vectors::COMPILED.iter().position(|v| *v == vectors).map(|place| self.0[place])
    }
}

/// Creates the functions of an instance, which belong to the calling module: the compiler processes modules in parallel.
/// `$portable` computes one site at a time.
#[macro_export]
macro_rules! cpu_functions {
    ($body:ident $portable:ident, $kernel:ty, $format:ty) => {{
        #[cfg(vectors_portable)]
        unsafe fn portable(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $crate::cpu::$portable::<$format, $kernel, ()>(kernel, first, last, rhs, sums) }
        }
        #[cfg(vectors_avx2)]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $crate::cpu::$body::<$format, $kernel, $crate::storage::Bytes32>(kernel, first, last, rhs, sums) }
        }
        #[cfg(vectors_avx512)]
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        unsafe fn avx512(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            unsafe { $crate::cpu::$body::<$format, $kernel, $crate::storage::Bytes64>(kernel, first, last, rhs, sums) }
        }
        $crate::cpu::Functions(&[
            #[cfg(vectors_avx512)]
            avx512,
            #[cfg(vectors_avx2)]
            avx2,
            #[cfg(vectors_portable)]
            portable,
        ])
    }};
}

/// Runs a kernel on sites `first..last`.
///
/// # Safety
/// The contract of [`Run`] holds.
#[inline(always)]
pub unsafe fn run<F, K: Kernel<F>, V>(kernel: *const u8, first: u32, last: u32, rhs: u32, _sums: *mut f64) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    for i in first..last {
        unsafe { kernel.site(kernel.place(i), rhs) }
    }
}

/// Format F in the lanes of registers V.
type In<F, V> = <F as LaneFormat<V>>::In;

/// Whether a group may have fewer sites than a register V holds numbers of F, so that registers of half the size are needed as
/// well.
const fn needs_half<F: LaneFormat<V>, V>() -> bool {
    F::LANES as u32 > lanes::LEAST_LANES
}

/// Runs a kernel on sites `first..last`, where `first` is the first site of a group: as many sites at once as a group and the
/// registers V hold, or registers of half the size.
///
/// # Safety
/// The contract of [`Run`] holds.
#[inline(always)]
pub unsafe fn run_in_lanes<F, K, V>(kernel: *const u8, mut first: u32, last: u32, rhs: u32, sums: *mut f64)
where
    V: VectorSet,
    F: LaneFormat<V> + LaneFormat<V::Half>,
    K: Kernel<F> + Kernel<In<F, V>> + Kernel<In<F, V::Half>>,
{
    let k = unsafe { &*kernel.cast::<K>() };
    let sites = Kernel::<F>::group_sites(k);
    macro_rules! groups {
        ($registers:ty) => {
            let together = <F as LaneFormat<$registers>>::LANES as u32;
            while first + together <= last {
                unsafe { Kernel::<In<F, $registers>>::site(k, lanes::group(first, sites), rhs) };
                first += together;
            }
        };
    }
    if <F as LaneFormat<V>>::LANES as u32 <= sites {
        groups!(V);
    } else if const { needs_half::<F, V>() } && sites == lanes::LEAST_LANES {
        groups!(V::Half);
    }
    unsafe { run::<F, K, V>(kernel, first, last, rhs, sums) }
}

/// Sums a reduction over sites `first..last` in the lanes of registers, like [`run_in_lanes`].
///
/// # Safety
/// The contract of [`Run`] holds.
#[inline(always)]
pub unsafe fn sum_in_lanes<F, K, V>(kernel: *const u8, mut first: u32, last: u32, rhs: u32, sums: *mut f64)
where
    V: VectorSet,
    F: LaneFormat<V> + LaneFormat<V::Half>,
    K: Reduction<F>
        + Reduction<In<F, V>, Values = <K as Reduction<F>>::Values>
        + Reduction<In<F, V::Half>, Values = <K as Reduction<F>>::Values>,
{
    let k = unsafe { &*kernel.cast::<K>() };
    let sites = Reduction::<F>::group_sites(k);
    let mut total = <K as Reduction<F>>::Values::ZERO;
    macro_rules! groups {
        ($registers:ty) => {
            let together = <F as LaneFormat<$registers>>::LANES as u32;
            while first + together <= last {
                total = total.add(unsafe { Reduction::<In<F, $registers>>::site(k, lanes::group(first, sites), rhs) });
                first += together;
            }
        };
    }
    if <F as LaneFormat<V>>::LANES as u32 <= sites {
        groups!(V);
    } else if const { needs_half::<F, V>() } && sites == lanes::LEAST_LANES {
        groups!(V::Half);
    }
    unsafe { sum::<F, K, V>(kernel, first, last, rhs, sums) };
    for k in 0..<K as Reduction<F>>::Values::COUNT {
        unsafe { *sums.add(k) += total.get(k) };
    }
}

/// Runs a kernel that warps compute; the range counts threads, and begins and ends at a multiple of the threads of a number.
///
/// # Safety
/// The contract of [`Run`] holds.
#[inline(always)]
pub unsafe fn run_by_warps<F, K: WarpKernel<F>, V>(kernel: *const u8, first: u32, last: u32, rhs: u32, _: *mut f64) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    let together = LANES * K::PARTS;
    for i in first / together..last / together {
        unsafe { kernel.warp(Warp::new(), i, rhs) }
    }
}

/// Sums a reduction over sites `first..last`.
///
/// # Safety
/// The contract of [`Run`] holds.
// A loop, not `fold`: a closure of its own might not be compiled for the vector instructions.
#[inline(always)]
pub unsafe fn sum<F, K: Reduction<F>, V>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    let mut total = K::Values::ZERO;
    for i in first..last {
        total = total.add(unsafe { kernel.site(kernel.place(i), rhs) });
    }
    for k in 0..K::Values::COUNT {
        unsafe { *sums.add(k) = total.get(k) };
    }
}
