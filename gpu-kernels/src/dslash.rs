//! Operator kernels that compute out = a x + …, alone or together with the sums that solvers need of the result. The sums then
//! need no further read of the result.
use crate::algebra::Real;
use crate::field::Field;
use crate::multi_rhs::{MultiRhsKernel, MultiRhsReduction, StageLinks, each_rhs};
use crate::storage::{SiteFormat, SiteValue};
use crate::{Kernel, Reduction};
use core::marker::PhantomData;

/// Value of the result of a [`Dslash`] at a site.
pub type Value<F, K> = <<K as Dslash<F>>::Sites as SiteFormat>::Value;

/// Kernel that computes out = a x + … at one site of one parity at a time, where x is on the sites of this parity.
///
/// # Safety
/// Call (i, rhs) of `compute` reads no element of `out` but its own.
pub unsafe trait Dslash<F>: Copy + Send + Sync + 'static {
    /// The format of out, x and w.
    type Sites: SiteFormat;
    /// Whether kernels with sums may compute several sites in a thread.
    const LOOPS: bool = true;
    /// Returns the field to which the result is written.
    fn out(&self) -> &Field;
    /// Returns the field w of the sums.
    fn w(&self) -> &Field;
    /// Passes the results and x at site `i` for N right-hand sides from `first` on to `then`, before the results are stored,
    /// and returns the output of `then`. A kernel with two forms calls `then` in each.
    ///
    /// # Safety
    /// The contract of [`Kernel::site`] holds.
    unsafe fn compute<const N: usize, T: Then<[[Value<F, Self>; 2]; N]>>(
        &self,
        i: u32,
        first: u32,
        then: T,
    ) -> T::Output;
    /// Returns the site that call number `i` of a launch computes, like [`Kernel::place`].
    fn place(&self, i: u32) -> u32;
    /// Returns the site that call number `i` computes in a launch with several right-hand sides together, like
    /// [`Kernel::place_multi_rhs`].
    fn place_multi_rhs(&self, i: u32) -> u32;
    /// Returns the number of sites that a CPU may compute at once, like [`Kernel::group_sites`].
    fn group_sites(&self) -> u32;
}

/// Consumer of the results of a [`Dslash`]. It is a trait, because the compiler would not inline a closure that two
/// forms of a kernel call.
pub trait Then<Results> {
    /// Output of the consumer.
    type Output;
    /// Consumes the results.
    fn take(self, results: Results) -> Self::Output;
}
/// Consumer that returns the results unchanged.
struct Keep;
impl<Results> Then<Results> for Keep {
    type Output = Results;
    #[inline(always)]
    fn take(self, results: Results) -> Results {
        results
    }
}
/// Consumer that writes the results.
struct Write<'a, F, K> {
    dslash: &'a K,
    i: u32,
    first: u32,
    format: PhantomData<F>,
}
impl<F, K: Dslash<F>, const N: usize> Then<[[Value<F, K>; 2]; N]> for Write<'_, F, K> {
    type Output = ();
    #[inline(always)]
    fn take(self, results: [[Value<F, K>; 2]; N]) {
        each_rhs!(k < N: {
            // SAFETY: made where the site exists and no other thread writes it.
            unsafe { self.dslash.out().store::<K::Sites>(self.i, self.first + k as u32, &results[k][0]) }
        });
    }
}

/// Format of a [`Dslash`] that computes no sums.
pub struct Plain<F>(PhantomData<F>);
/// Format of a [`Dslash`] that also returns \[Re (w, out), Im (w, out), ‖out‖²\], for CG and the first half step of BiCGstab.
pub struct DslashDot<F>(PhantomData<F>);
/// Format of a [`Dslash`] that also returns the sums of y = A x for the second half step of BiCGstab: \[Re (x, y), Im (x, y), Re
/// (w, x), Im (w, x), Re (w, y), Im (w, y), ‖x‖², ‖y‖²\].
pub struct DslashDots<F>(PhantomData<F>);

/// \[Re (w, y), Im (w, y), ‖y‖²\]
#[inline(always)]
pub(crate) fn dot<T: Real, V: SiteValue<T>>(y: V, w: V) -> [f64; 3] {
    let wy = w.dot(y);
    [wy.re, wy.im, y.norm2()]
}
/// \[Re (x, y), Im (x, y), Re (w, x), Im (w, x), Re (w, y), Im (w, y), ‖x‖², ‖y‖²\]
#[inline(always)]
pub(crate) fn dots<T: Real, V: SiteValue<T>>(x: V, y: V, w: V) -> [f64; 8] {
    let (xy, wx, wy) = (x.dot(y), w.dot(x), w.dot(y));
    [xy.re, xy.im, wx.re, wx.im, wy.re, wy.im, x.norm2(), y.norm2()]
}

/// Implements the methods for the order of sites by those of the [`Dslash`].
macro_rules! in_order_of_dslash {
    () => {
        #[inline(always)]
        fn place(&self, i: u32) -> u32 {
            Dslash::<F>::place(self, i)
        }
        #[inline(always)]
        fn place_multi_rhs(&self, i: u32) -> u32 {
            Dslash::<F>::place_multi_rhs(self, i)
        }
        #[inline(always)]
        fn group_sites(&self) -> u32 {
            Dslash::<F>::group_sites(self)
        }
    };
}

// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only, and reads no other element of it.
unsafe impl<F, K: Dslash<F>> Kernel<Plain<F>> for K {
    in_order_of_dslash!();
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe { MultiRhsKernel::<Plain<F>>::multi_rhs::<1>(self, i, rhs) }
    }
}
// SAFETY: as for one.
unsafe impl<F, K: Dslash<F>> MultiRhsKernel<Plain<F>> for K {
    #[inline(always)]
    unsafe fn multi_rhs<const N: usize>(&self, i: u32, first: u32) {
        unsafe { self.compute::<N, _>(i, first, Write { dslash: self, i, first, format: PhantomData }) };
    }
}

// SAFETY: as for [`Dslash`]; w is not written.
unsafe impl<F, K: Dslash<F>> Reduction<DslashDot<F>> for K {
    type Values = [f64; 3];
    const THREADS: u32 = 128;
    const BLOCKS: u32 = 2112;
    const LOOPS: bool = K::LOOPS;
    in_order_of_dslash!();
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 3] {
        unsafe { MultiRhsReduction::<DslashDot<F>>::multi_rhs::<1>(self, i, rhs)[0] }
    }
}
// SAFETY: as for one.
unsafe impl<F, K: Dslash<F>> MultiRhsReduction<DslashDot<F>> for K {
    #[inline(always)]
    unsafe fn multi_rhs<const N: usize>(&self, i: u32, first: u32) -> [[f64; 3]; N] {
        let results = unsafe { self.compute::<N, _>(i, first, Keep) };
        let mut sums = [[0.0; 3]; N];
        each_rhs!(k < N: {
            unsafe { self.out().store::<K::Sites>(i, first + k as u32, &results[k][0]) };
            sums[k] = dot(results[k][0], unsafe { self.w().load::<K::Sites>(i, first + k as u32) });
        });
        sums
    }
}

// SAFETY: as for [`Dslash`]; w is not written.
unsafe impl<F, K: Dslash<F>> Reduction<DslashDots<F>> for K {
    type Values = [f64; 8];
    const THREADS: u32 = 128;
    const BLOCKS: u32 = 2112;
    const LOOPS: bool = K::LOOPS;
    in_order_of_dslash!();
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 8] {
        unsafe { MultiRhsReduction::<DslashDots<F>>::multi_rhs::<1>(self, i, rhs)[0] }
    }
}
// SAFETY: as for one.
unsafe impl<F, K: Dslash<F>> MultiRhsReduction<DslashDots<F>> for K {
    #[inline(always)]
    unsafe fn multi_rhs<const N: usize>(&self, i: u32, first: u32) -> [[f64; 8]; N] {
        let results = unsafe { self.compute::<N, _>(i, first, Keep) };
        let mut sums = [[0.0; 8]; N];
        each_rhs!(k < N: {
            unsafe { self.out().store::<K::Sites>(i, first + k as u32, &results[k][0]) };
            sums[k] = dots(results[k][1], results[k][0], unsafe { self.w().load::<K::Sites>(i, first + k as u32) });
        });
        sums
    }
}

/// Implements the staging of links for kernels with sums by that of kernels without sums.
macro_rules! stage_dslash {
    ($($sum:ident)*) => {$(
        impl<F, K: StageLinks<F>> StageLinks<$sum<F>> for K {
            type Staged = $sum<K::Staged>;
            const BYTES: usize = <K as StageLinks<F>>::BYTES;
            #[inline(always)]
            unsafe fn stage(&self, i: u32) -> Self {
                unsafe { StageLinks::<F>::stage(self, i) }
            }
            #[inline(always)]
            fn for_rhs(staged: Self, first: u32) -> Self {
                <K as StageLinks<F>>::for_rhs(staged, first)
            }
        }
    )*};
}
stage_dslash!(Plain DslashDot DslashDots);

#[cfg(target_arch = "x86_64")]
mod lanes {
    use super::{DslashDot, DslashDots, Plain};
    use crate::format::LaneFormat;
    use crate::storage::VectorSet;

    macro_rules! in_lanes {
        ($($sum:ident)*) => {$(
            impl<F: LaneFormat<V>, V: VectorSet> LaneFormat<V> for $sum<F> {
                type In = $sum<F::In>;
                const LANES: usize = F::LANES;
            }
        )*};
    }
    in_lanes!(Plain DslashDot DslashDots);
}
