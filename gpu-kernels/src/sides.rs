//! Several right-hand sides of a site at a time: what they share, the links above all, is read and decoded once.
//!
//! A kernel that can do that exists in more than one way, which differ in speed and not in their results: [`Way`].
use crate::{Kernel, Reduction};

/// How the threads of a launch share right-hand sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// Right-hand sides that a thread computes at a time, with links in its registers.
    pub sides: u32,
    /// Whether a thread goes on to the next ones until it has computed all, with links that it keeps in memory of its
    /// block. Else other threads have them.
    pub looped: bool,
}

impl Way {
    /// One right-hand side for a thread.
    pub const ONE: Way = Way { sides: 1, looped: false };
}

/// Threads of a block that keeps links: all have sites of their own, in a row.
pub const LOOPED_THREADS: u32 = 128;

/// At most so many warps are in a block that sums several right-hand sides in each thread.
pub const SUM_WARPS: u32 = 8;

/// Bytes of memory for sums of a block with as many warps: in every thread for `sides` right-hand sides, `values` numbers each,
/// and a sum for each warp of these.
pub const fn kept_sum_bytes(sides: u32, values: u32, warps: u32) -> u32 {
    8 * sides * values * warps * (32 + 1)
}

/// Bytes of memory for sums of a block of as many `threads` whose warps have all of the right-hand sides, `values` numbers
/// each.
pub const fn warp_sum_bytes(nrhs: u32, values: u32, threads: u32) -> u32 {
    8 * nrhs * values * (threads / 32)
}

/// A kernel compiled in another way than [`Way::ONE`].
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name of the entry point in PTX.
    pub name: &'static str,
    /// How.
    pub way: Way,
    /// Bytes of links that a block keeps.
    pub shared: u32,
}

/// A kernel that computes several right-hand sides at a time.
///
/// # Safety
/// As for [`Kernel`]: `sides` does what `site` does for each of `first..first + N`.
pub unsafe trait Together<F>: Kernel<F> {
    /// Computes N right-hand sides of a site.
    ///
    /// # Safety
    /// As [`Kernel::site`].
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32);
}

/// A reduction that computes several right-hand sides at a time.
///
/// # Safety
/// As for [`Reduction`]: `sides` does what `site` does for each of `first..first + N`.
pub unsafe trait SumTogether<F>: Reduction<F> {
    /// Computes N right-hand sides of a site.
    ///
    /// # Safety
    /// As [`Reduction::site`].
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) -> [Self::Values; N];
}

/// What reads links that can be kept in memory of the block.
pub trait Stage<F>: Copy {
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
    fn turned(staged: Self, first: u32) -> Self;
}

/// A block of statements for each k below N ≤ 4, with k as a constant: loops over arrays that are not unrolled would put
/// them into local memory.
macro_rules! each_side {
    ($k:ident < $n:ident: $body:block) => {
        $crate::sides::each_side!(@ $k $n $body 0 1 2 3)
    };
    (@ $k:ident $n:ident $body:block $($index:literal)*) => {
        $(if $index < $n {
            #[allow(non_upper_case_globals, reason = "stands for a variable of a loop")]
            const $k: usize = $index;
            $body
        })*
    };
}
pub(crate) use each_side;
