//! Cooperation of the threads of a block on a GPU: barriers, words of other lanes, and sums in shared memory.

/// Number of bytes of shared memory for the partial sums of a kernel in which several warps compute a call together.
pub const PART_SUMS_BYTES: u32 = 4 * MOST_PART_SUMS as u32;
/// Maximum number of partial sums in the shared memory of a block.
pub const MOST_PART_SUMS: usize = 2048;

#[cfg(target_arch = "nvptx64")]
pub use gpu::*;

#[cfg(target_arch = "nvptx64")]
mod gpu {
    use super::PART_SUMS_BYTES;
    use core::arch::asm;
    use core::arch::nvptx::_syncthreads;

    core::arch::global_asm!(".shared .align 16 .b8 part_sums[{0}];", const PART_SUMS_BYTES);

    /// Waits for all threads of the block. Their writes to shared memory are then visible to all of them.
    #[inline(always)]
    pub fn synchronize_block() {
        // SAFETY: all threads of a block take the same branches in a kernel whose parts are summed.
        unsafe { _syncthreads() }
    }
    /// Stores a partial sum in shared memory; `place` is below [`MOST_PART_SUMS`](super::MOST_PART_SUMS).
    ///
    /// # Safety
    /// `place` < [`MOST_PART_SUMS`](super::MOST_PART_SUMS), and no other thread writes that place.
    #[inline(always)]
    pub unsafe fn put_part_sum(place: u32, x: f32) {
        unsafe { asm!("st.shared.f32 [{0}], {1};", in(reg32) part_sums() + 4 * place, in(reg32) x, options(nostack)) }
    }
    /// Reads the partial sum at `place` from shared memory.
    ///
    /// # Safety
    /// The sum was stored, and the threads of the block have waited for each other since.
    #[inline(always)]
    pub unsafe fn part_sum(place: u32) -> f32 {
        let x: f32;
        unsafe { asm!("ld.shared.f32 {0}, [{1}];", out(reg32) x, in(reg32) part_sums() + 4 * place, options(nostack)) }
        x
    }
    #[inline(always)]
    fn part_sums() -> u32 {
        let address: u32;
        unsafe { asm!("mov.u32 {0}, part_sums;", out(reg32) address, options(pure, nomem, nostack)) }
        address
    }
    /// Waits for all lanes of the warp. Their writes to memory are then visible to all of them.
    #[inline(always)]
    pub fn synchronize_warp() {
        // SAFETY: all lanes of a warp take the same branches in a kernel that warps compute.
        unsafe { asm!("bar.warp.sync -1;", options(nostack)) }
    }
    /// Returns the value of `word` in lane `lane ^ mask` of the warp, where `lane` is the own lane.
    #[inline(always)]
    pub fn shuffle_bits(word: u32, mask: u32) -> u32 {
        let out: u32;
        // SAFETY: all 32 lanes take part: kernels that shuffle run with full warps and no early exit.
        unsafe {
            asm!("shfl.sync.bfly.b32 {0}, {1}, {2}, 31, -1;", out(reg32) out, in(reg32) word, in(reg32) mask,
                options(nostack));
        }
        out
    }
}
