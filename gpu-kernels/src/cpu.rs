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

/// Function that runs sites `first..last` of a kernel for right-hand side `rhs`. A reduction adds its sums to `sums`;
/// other kernels ignore this argument.
///
/// # Safety
/// `kernel` points to a kernel of the entry's type; otherwise the contract is that of [`Kernel::site`].
pub type Run = unsafe fn(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64);

/// Vector instructions for which kernels can be compiled. The build-time environment variable `FERRITE_VECTORS` selects
/// them: `native` (the default: the best set of the machine that compiles), `avx2`, `avx512`, or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// AVX-512 (F, VL, DQ, BW), AVX2 and FMA.
    Avx512,
    /// AVX2 and FMA.
    Avx2,
    /// Instructions that any processor of the architecture has. On x86-64, kernels are compiled for them only in builds without
    /// optimisation, and then for no others.
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
    /// Returns the name of the vector instructions for messages.
    pub fn name(self) -> &'static str {
        match self {
            Vectors::Avx512 => "AVX-512",
            Vectors::Avx2 => "AVX2",
            Vectors::Portable => "no vector instructions",
        }
    }
    /// Returns whether this machine supports the vector instructions.
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
    /// Returns the best instruction set that this machine supports and for which kernels are compiled, if there is one.
    pub fn best() -> Option<Self> {
        Self::COMPILED.iter().copied().find(|vectors| vectors.exist())
    }
}

/// The CPU functions of one instance of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Functions(
    /// One function for each instruction set, in the order of [`Vectors::COMPILED`].
    pub &'static [Run],
);

impl Functions {
    /// Returns the function for the vector instructions `vectors`, if it is compiled.
    pub fn of(&self, vectors: Vectors) -> Option<Run> {
        Vectors::COMPILED.iter().position(|v| *v == vectors).map(|place| self.0[place])
    }
}

/// Creates the functions of an instance in the calling module, because the compiler processes modules in parallel. The word
/// after the kind of the kernel selects how it runs: `sites`, site by site; `groups`, over groups of sites, then over the
/// remaining ones; `groups_and_any`, over groups, then over the remaining ones with the functions of
/// [`any_functions`](crate::any_functions) for the format `$any`.
#[macro_export]
macro_rules! cpu_functions {
    ($kind:ident $how:ident, $kernel:ty, $format:ty, $any:ty) => {{
        #[cfg(vectors_portable)]
        unsafe fn portable(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            let calls = (kernel, first, last, rhs, sums);
            unsafe { $crate::cpu_functions!(@portable $kind $how calls, $kernel, $format, $any) }
        }
        #[cfg(vectors_avx2)]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            let calls = (kernel, first, last, rhs, sums);
            unsafe { $crate::cpu_functions!(@body avx2 Bytes32 $kind $how calls, $kernel, $format, $any) }
        }
        #[cfg(vectors_avx512)]
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        unsafe fn avx512(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64) {
            let calls = (kernel, first, last, rhs, sums);
            unsafe { $crate::cpu_functions!(@body avx512 Bytes64 $kind $how calls, $kernel, $format, $any) }
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
    (@any $format:ty) => {
        $crate::cpu::Functions(&[
            #[cfg(vectors_avx512)]
            any::avx512::<$format>,
            #[cfg(vectors_avx2)]
            any::avx2::<$format>,
            #[cfg(vectors_portable)]
            any::portable::<$format>,
        ])
    };
    (@portable $kind:ident groups_and_any $calls:ident, $kernel:ty, $format:ty, $any:ty) => { any::portable::<$any>($calls.0, $calls.1, $calls.2, $calls.3, $calls.4) };
    (@portable $kind:ident $how:ident $calls:ident, $kernel:ty, $format:ty, $any:ty) => { $crate::cpu_functions!(@sites $kind $calls, $kernel, $format) };
    (@body $name:ident $vectors:ident $kind:ident sites $calls:ident, $kernel:ty, $format:ty, $any:ty) => {
        $crate::cpu_functions!(@sites $kind $calls, $kernel, $format)
    };
    (@body $name:ident $vectors:ident $kind:ident groups $calls:ident, $kernel:ty, $format:ty, $any:ty) => {
        $crate::cpu_functions!(@groups $vectors $kind $calls, $kernel, $format, |calls| $crate::cpu_functions!(@sites $kind calls, $kernel, $format))
    };
    (@body $name:ident $vectors:ident $kind:ident groups_and_any $calls:ident, $kernel:ty, $format:ty, $any:ty) => {
        $crate::cpu_functions!(@groups $vectors $kind $calls, $kernel, $format, |calls| any::$name::<$any>(calls.0, calls.1, calls.2, calls.3, calls.4))
    };
    (@groups $vectors:ident kernel $calls:ident, $kernel:ty, $format:ty, |$rest:ident| $body:expr) => {{
        let $rest = $crate::cpu::run_groups::<$format, $kernel, $crate::storage::$vectors>($calls);
        $body
    }};
    (@groups $vectors:ident setup $calls:ident, $kernel:ty, $format:ty, |$rest:ident| $body:expr) => {
        $crate::cpu_functions!(@groups $vectors kernel $calls, $kernel, $format, |$rest| $body)
    };
    (@groups $vectors:ident $kind:ident $calls:ident, $kernel:ty, $format:ty, |$rest:ident| $body:expr) => {{
        let ($rest, total) = $crate::cpu::sum_groups::<$format, $kernel, $crate::storage::$vectors>($calls);
        $body;
        $crate::cpu::add_to_sums(total, $calls.4)
    }};
    (@sites kernel $calls:ident, $kernel:ty, $format:ty) => { $crate::cpu::run::<$format, $kernel>($calls) };
    (@sites setup $calls:ident, $kernel:ty, $format:ty) => { $crate::cpu::run::<$format, $kernel>($calls) };
    (@sites by_warps $calls:ident, $kernel:ty, $format:ty) => { $crate::cpu::run_by_warps::<$format, $kernel>($calls) };
    (@sites setup_by_warps $calls:ident, $kernel:ty, $format:ty) => { $crate::cpu::run_by_warps::<$format, $kernel>($calls) };
    (@sites $kind:ident $calls:ident, $kernel:ty, $format:ty) => { $crate::cpu::sum::<$format, $kernel>($calls) };
}

/// Creates a module `any` with functions of a kernel that are generic over its format, one for each set of vector instructions.
/// Instances that share a format on CPUs share these functions.
#[macro_export]
macro_rules! any_functions {
    (kernel, $kernel:ty) => { $crate::any_functions! { @module kernel Kernel $kernel } };
    (setup, $kernel:ty) => { $crate::any_functions! { @module setup Kernel $kernel } };
    ($kind:ident, $kernel:ty) => { $crate::any_functions! { @module $kind Reduction $kernel } };
    (@module $kind:ident $trait:ident $kernel:ty) => {
        mod any {
            use super::*;
            #[cfg(vectors_portable)]
            #[inline(never)]
            pub unsafe fn portable<F>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64)
            where
                $kernel: $crate::$trait<F>,
            {
                let calls = (kernel, first, last, rhs, sums);
                unsafe { $crate::cpu_functions!(@sites $kind calls, $kernel, F) }
            }
            #[cfg(vectors_avx2)]
            #[inline(never)]
            #[target_feature(enable = "avx2,fma")]
            pub unsafe fn avx2<F>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64)
            where
                $kernel: $crate::$trait<F>,
            {
                let calls = (kernel, first, last, rhs, sums);
                unsafe { $crate::cpu_functions!(@sites $kind calls, $kernel, F) }
            }
            #[cfg(vectors_avx512)]
            #[inline(never)]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
            pub unsafe fn avx512<F>(kernel: *const u8, first: u32, last: u32, rhs: u32, sums: *mut f64)
            where
                $kernel: $crate::$trait<F>,
            {
                let calls = (kernel, first, last, rhs, sums);
                unsafe { $crate::cpu_functions!(@sites $kind calls, $kernel, F) }
            }
        }
    };
}

/// Arguments of [`Run`].
pub type Calls = (*const u8, u32, u32, u32, *mut f64);

/// Runs a kernel on sites `first..last` for right-hand side `rhs`.
///
/// # Safety
/// The contract of [`Run`] holds.
#[inline(always)]
pub unsafe fn run<F, K: Kernel<F>>((kernel, first, last, rhs, _): Calls) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    for i in first..last {
        unsafe { kernel.site(kernel.place(i), rhs) }
    }
}

/// Format F in the lanes of registers V.
type In<F, V> = <F as LaneFormat<V>>::In;

/// Returns whether a group may have fewer sites than a register V holds numbers of F. Registers of half the size are then
/// needed as well.
const fn needs_half<F: LaneFormat<V>, V>() -> bool {
    F::LANES as u32 > lanes::LEAST_LANES
}

/// Runs a kernel on groups of sites in `first..last`, where `first` is the first site of a group. Each step computes as
/// many sites as the registers V hold, or registers of half the size if groups are smaller. Returns the arguments of a
/// call for the remaining sites.
///
/// # Safety
/// The contract of [`Run`] holds.
#[inline(always)]
pub unsafe fn run_groups<F, K, V>((kernel, mut first, last, rhs, sums): Calls) -> Calls
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
    (kernel, first, last, rhs, sums)
}

/// Sums a reduction over groups of sites in `first..last` in the lanes of registers, like [`run_groups`]. Returns the
/// arguments of a call for the remaining sites, and the sums.
///
/// # Safety
/// The contract of [`Run`] holds.
#[inline(always)]
pub unsafe fn sum_groups<F, K, V>((kernel, mut first, last, rhs, sums): Calls) -> (Calls, <K as Reduction<F>>::Values)
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
    ((kernel, first, last, rhs, sums), total)
}

/// Adds the values of `total` to `sums`.
///
/// # Safety
/// `sums` has room for the values.
#[inline(always)]
pub unsafe fn add_to_sums<T: Values>(total: T, sums: *mut f64) {
    for k in 0..T::COUNT {
        unsafe { *sums.add(k) += total.get(k) };
    }
}

/// Runs a kernel that warps compute. The range `first..last` counts threads, and begins and ends at a multiple of the
/// number of threads of a call.
///
/// # Safety
/// The contract of [`Run`] holds.
#[inline(always)]
pub unsafe fn run_by_warps<F, K: WarpKernel<F>>((kernel, first, last, rhs, _): Calls) {
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
// A loop takes the place of `fold`, whose closure might not be compiled for the vector instructions.
#[inline(always)]
pub unsafe fn sum<F, K: Reduction<F>>((kernel, first, last, rhs, sums): Calls) {
    let kernel = unsafe { &*kernel.cast::<K>() };
    let mut total = K::Values::ZERO;
    for i in first..last {
        total = total.add(unsafe { kernel.site(kernel.place(i), rhs) });
    }
    for k in 0..K::Values::COUNT {
        unsafe { *sums.add(k) = total.get(k) };
    }
}
