//! Traits of kernels: a kernel is a plain struct, its arguments, and a function of one site that is generic over formats.
use crate::lattice::MOST_LANES;

/// Kernel in format `F` that does independent work for every site index in `0..n` and every right-hand side.
///
/// # Safety
/// `site(i, rhs)` may be called for all sites and right-hand sides at once, from different threads. An implementation of the
/// trait guarantees that different calls write different elements, and that it has no addresses except those of views such as
/// [`Field`](crate::field::Field): the caller that makes a view guarantees that its memory has all sites and right-hand sides
/// for which kernels with it are launched, in the format of the launch.
pub unsafe trait Kernel<F>: Copy + Send + Sync + 'static {
    /// Computes one site of one right-hand side.
    ///
    /// # Safety
    /// The pointers inside the struct are valid for site `i` and the sites that it reads, in format `F`.
    unsafe fn site(&self, i: u32, rhs: u32);
    /// Returns the site that call number `i` of a launch computes: site `i`, unless the kernel computes a part of the lattice.
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        i
    }
    /// Returns the site that call number `i` computes in a launch with several right-hand sides together, for which a different
    /// order may be faster.
    #[inline(always)]
    fn place_multi_rhs(&self, i: u32) -> u32 {
        self.place(i)
    }
    /// Returns the number of sites that a CPU may compute at once, starting at a multiple of this number, if the kernel is
    /// compiled for groups of sites. It is the size of a group if fields are in lane order
    /// ([`lattice::lanes`](crate::lattice)), and any number if the kernel does not depend on positions.
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        MOST_LANES
    }
}

/// Kernel in format `F` that also returns numbers, which are summed over all sites separately for every right-hand
/// side.
///
/// # Safety
/// The contract of [`Kernel`] holds.
pub unsafe trait Reduction<F>: Copy + Send + Sync + 'static {
    /// Type of the sums, `[f64; K]`.
    type Values: Values;
    /// Number of threads per block on a GPU: at most 256, and at most 128 with 16 values, whose warp sums share the memory of a
    /// block, unless [`WARPS`](Self::WARPS) is set. It is a constant of the kernel, because the order of the sum depends on it.
    const THREADS: u32 = 256;
    /// Maximum number of blocks per right-hand side on a GPU, if threads have several sites. It also determines the order of
    /// the sum.
    const BLOCKS: u32 = 1056;
    /// Whether a thread may have several sites. If not, there are as many blocks as the sites need and no loop, out of which
    /// compilers would move common subexpressions into registers that are not available.
    const LOOPS: bool = true;
    /// Whether a warp on a GPU computes all right-hand sides of its sites together, with `WarpSum` in place of
    /// [`site`](Self::site). There are at most 32 right-hand sides, and each thread has the sums of at most one.
    const WARPS: bool = false;
    /// Computes one site of one right-hand side.
    ///
    /// # Safety
    /// The contract of [`Kernel::site`] holds.
    unsafe fn site(&self, i: u32, rhs: u32) -> Self::Values;
    /// Returns the site that call number `i` of a launch computes, like [`Kernel::place`].
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        i
    }
    /// Returns the site that call number `i` computes in a launch with several right-hand sides together, like
    /// [`Kernel::place_multi_rhs`].
    #[inline(always)]
    fn place_multi_rhs(&self, i: u32) -> u32 {
        self.place(i)
    }
    /// Returns the number of sites that a CPU may compute at once, like [`Kernel::group_sites`].
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        MOST_LANES
    }
}

/// Type of the numbers that a reduction sums: a small array.
pub trait Values: Copy + Send + Sync + 'static {
    /// Number of values.
    const COUNT: usize;
    /// All zero.
    const ZERO: Self;
    /// Returns the component-wise sum.
    fn add(self, other: Self) -> Self;
    /// Applies `f` to every component, unrolled.
    fn map(self, f: impl FnMut(f64) -> f64) -> Self;
    /// Returns component `k`, which must be a constant on a GPU.
    fn get(&self, k: usize) -> f64;
}

macro_rules! values {
    ($($count:literal: $($k:literal)*;)*) => {$(
        impl Values for [f64; $count] {
            const COUNT: usize = $count;
            const ZERO: Self = [0.0; $count];
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                [$(self[$k] + other[$k]),*]
            }
            #[inline(always)]
            fn map(self, mut f: impl FnMut(f64) -> f64) -> Self {
                [$(f(self[$k])),*]
            }
            #[inline(always)]
            fn get(&self, k: usize) -> f64 {
                self[k]
            }
        }
    )*};
}
values! {
    1: 0;
    2: 0 1;
    3: 0 1 2;
    4: 0 1 2 3;
    8: 0 1 2 3 4 5 6 7;
    16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;
}
