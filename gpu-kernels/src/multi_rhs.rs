//! Several right-hand sides of a site at a time: what they share, the links above all, is read and decoded once.
//!
//! Such a kernel is compiled for more than one [`RhsBlocking`]; they differ in speed, not in their results.
use crate::{Kernel, Reduction};

/// Register blocking over right-hand sides: how the threads of a launch share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RhsBlocking {
    /// Right-hand sides that a thread computes at a time, with links in its registers.
    pub rhs: u32,
    /// Whether a thread goes on to the next ones until it has computed all, with links that it keeps in memory of its
    /// block. Else other threads have them.
    pub looped: bool,
}

impl RhsBlocking {
    /// One right-hand side for a thread.
    pub const ONE: RhsBlocking = RhsBlocking { rhs: 1, looped: false };
}

/// Threads of a block that keeps links: all have sites of their own, in a row.
pub const LOOPED_THREADS: u32 = 128;

/// At most so many warps are in a block that sums several right-hand sides in each thread.
pub const SUM_WARPS: u32 = 8;

/// Bytes of memory for sums of a block with as many warps: in every thread for `rhs` right-hand sides, `values` numbers each,
/// and a sum for each warp of these.
pub const fn kept_sum_bytes(rhs: u32, values: u32, warps: u32) -> u32 {
    8 * rhs * values * warps * (32 + 1)
}

/// Bytes of memory for sums of a block of as many `threads` whose warps have all of the right-hand sides, `values` numbers
/// each.
pub const fn warp_sum_bytes(nrhs: u32, values: u32, threads: u32) -> u32 {
    8 * nrhs * values * (threads / 32)
}

/// A kernel compiled for another blocking than [`RhsBlocking::ONE`].
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name of the entry point in PTX.
    pub name: &'static str,
    /// Its blocking.
    pub blocking: RhsBlocking,
    /// Bytes of links that a block keeps.
    pub shared: u32,
}

/// A kernel that computes several right-hand sides at a time.
///
/// # Safety
/// As for [`Kernel`]: `multi_rhs` does what `site` does for each of `first..first + N`.
pub unsafe trait MultiRhsKernel<F>: Kernel<F> {
    /// Computes N right-hand sides of a site.
    ///
    /// # Safety
    /// As [`Kernel::site`].
    unsafe fn multi_rhs<const N: usize>(&self, i: u32, first: u32);
}

/// A reduction that computes several right-hand sides at a time.
///
/// # Safety
/// As for [`Reduction`]: `multi_rhs` does what `site` does for each of `first..first + N`.
pub unsafe trait MultiRhsReduction<F>: Reduction<F> {
    /// Computes N right-hand sides of a site.
    ///
    /// # Safety
    /// As [`Reduction::site`].
    unsafe fn multi_rhs<const N: usize>(&self, i: u32, first: u32) -> [Self::Values; N];
}

/// What reads links that can be kept in memory of the block.
pub trait StageLinks<F>: Copy {
    /// The format with links that are kept.
    type Staged;
    /// Bytes that a thread keeps.
    const BYTES: usize;
    /// The arguments with the links of site `i`, which it keeps for the thread: they are for that site alone. On a CPU links
    /// stay where they are, which is in its caches.
    ///
    /// # Safety
    /// The site exists. On a GPU the block has [`LOOPED_THREADS`] threads in a row and memory for what they keep.
    unsafe fn stage(&self, i: u32) -> Self;
    /// The same for the right-hand sides from `first` on. Compilers do not know that it is: else they take decoding out of
    /// the loop over right-hand sides, and all links into registers that are not there.
    fn for_rhs(staged: Self, first: u32) -> Self;
}

/// A block of statements for each k below N ≤ 4, with k as a constant: loops over arrays that are not unrolled would put
/// them into local memory.
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
