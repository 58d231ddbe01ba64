//! Kernels that compute several right-hand sides of a site at a time. They read and decode shared data, above all the links,
//! once.
//!
//! Such a kernel is compiled for more than one [`RhsBlocking`]. Blockings differ in speed, not in their results.
use crate::{Kernel, Reduction};

/// Blocking of right-hand sides: how many of them a thread computes at a time, and whether it computes all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RhsBlocking {
    /// Number of right-hand sides that a thread computes at a time, with links in its registers.
    pub rhs: u32,
    /// Whether each thread computes all right-hand sides, with links that it keeps in shared memory. Otherwise the
    /// right-hand sides are distributed over several threads.
    pub looped: bool,
}

impl RhsBlocking {
    /// Blocking in which each thread computes one right-hand side.
    pub const ONE: RhsBlocking = RhsBlocking { rhs: 1, looped: false };
}

/// Number of threads in a block that keeps links in shared memory. Each thread has its own site, and all threads are
/// along x.
pub const LOOPED_THREADS: u32 = 128;

/// Maximum number of warps in a block whose threads each sum several right-hand sides.
pub const SUM_WARPS: u32 = 8;

/// Returns the number of bytes of shared memory for the sums of a block with `warps` warps. Every thread has `values`
/// numbers for each of `rhs` right-hand sides, and every warp has the sums of these numbers.
pub const fn kept_sum_bytes(rhs: u32, values: u32, warps: u32) -> u32 {
    8 * rhs * values * warps * (32 + 1)
}

/// Returns the number of bytes of shared memory for the sums of a block with `threads` threads. Each warp has `values`
/// numbers for each of `nrhs` right-hand sides.
pub const fn warp_sum_bytes(nrhs: u32, values: u32, threads: u32) -> u32 {
    8 * nrhs * values * (threads / 32)
}

/// Variant of a kernel that is compiled for a blocking other than [`RhsBlocking::ONE`].
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name of the entry point in PTX.
    pub name: &'static str,
    /// Blocking of the variant.
    pub blocking: RhsBlocking,
    /// Number of bytes of shared memory in which a block keeps its links; 0 if it keeps none.
    pub shared: u32,
}

/// Kernel that computes several right-hand sides at a time.
///
/// # Safety
/// The contract of [`Kernel`] holds, and `multi_rhs` does what `site` does for each of `first..first + N`.
pub unsafe trait MultiRhsKernel<F>: Kernel<F> {
    /// Computes N right-hand sides of a site, from `first` on.
    ///
    /// # Safety
    /// The contract of [`Kernel::site`] holds.
    unsafe fn multi_rhs<const N: usize>(&self, i: u32, first: u32);
}

/// Reduction that computes several right-hand sides at a time.
///
/// # Safety
/// The contract of [`Reduction`] holds, and `multi_rhs` does what `site` does for each of `first..first + N`.
pub unsafe trait MultiRhsReduction<F>: Reduction<F> {
    /// Computes N right-hand sides of a site, from `first` on.
    ///
    /// # Safety
    /// The contract of [`Reduction::site`] holds.
    unsafe fn multi_rhs<const N: usize>(&self, i: u32, first: u32) -> [Self::Values; N];
}

/// Kernels whose links can be kept in shared memory.
pub trait StageLinks<F>: Copy {
    /// Format with links that are kept in shared memory.
    type Staged;
    /// Number of bytes that each thread keeps.
    const BYTES: usize;
    /// Returns the arguments with the links of site `i`, which are stored for the thread and valid for that site only. On a CPU
    /// the links stay where they are, because its caches keep them.
    ///
    /// # Safety
    /// The site exists. On a GPU the block has [`LOOPED_THREADS`] threads in a row, and memory for the links that they keep.
    unsafe fn stage(&self, i: u32) -> Self;
    /// Returns the arguments for the right-hand sides from `first` on. They equal `staged`, but compilers do not detect this.
    /// They would otherwise hoist decoding out of the loop over right-hand sides, and all links into registers that are not
    /// available.
    fn for_rhs(staged: Self, first: u32) -> Self;
}

/// Repeats a block of statements for each k below N ≤ 4, with k as a constant. Loops over arrays that are not unrolled would
/// put them into local memory.
macro_rules! each_rhs {
    ($k:ident < $n:ident: $body:block) => {
        $crate::multi_rhs::each_rhs!(@ $k $n $body 0 1 2 3)
    };
    (@ $k:ident $n:ident $body:block $($index:literal)*) => {
        $(if $index < $n {
            #[allow(non_upper_case_globals, reason = "stands for a variable of a loop")]
            const $k: usize = $index;
            $body
        })*
    };
}
pub(crate) use each_rhs;
