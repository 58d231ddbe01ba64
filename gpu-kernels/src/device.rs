//! What only a GPU has: thread and block indices, shuffles, and the sum over a grid.
//!
//! Names follow the crate `cuda_std`, so that a move to it costs one dependency.

/// Where the sums of a [`Reduction`](crate::Reduction) go.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Sums {
    /// One partial sum per block: `[rhs][block][value]`.
    pub partial: *mut f64,
    /// The result, `[rhs][value]`, in memory that the host reads.
    pub result: *mut f64,
    /// Per right-hand side: how many blocks are done. Zero before and after every launch.
    pub done: *mut u32,
    /// One word per right-hand side, `COUNT` words apart as the results are, in memory that the host watches: becomes
    /// `ticket` when the result is there.
    pub ready: *mut u32,
    /// The number of this launch.
    pub ticket: u32,
}

#[cfg(target_arch = "nvptx64")]
pub use gpu::*;

#[cfg(target_arch = "nvptx64")]
mod gpu {
    use super::Sums;
    use crate::{Reduction, Values};
    use core::arch::asm;
    use core::arch::nvptx::*;

    /// Site and right-hand side of a thread. Blocks have sites along x and right-hand sides along y; in the grid, blocks with
    /// other right-hand sides follow each other first, and then those with other sites, along y and z. So whatever all
    /// right-hand sides of a site need, the links above all, is wanted at the same time, and comes from memory once.
    #[inline(always)]
    pub fn site_and_side() -> (u32, u32) {
        unsafe {
            let block = _block_idx_z() as u32 * _grid_dim_y() as u32 + _block_idx_y() as u32;
            let site = block * _block_dim_x() as u32 + _thread_idx_x() as u32;
            (site, _block_idx_x() as u32 * _block_dim_y() as u32 + _thread_idx_y() as u32)
        }
    }

    /// The value that lane `lane ^ mask` of the warp holds.
    #[inline(always)]
    fn shuffle_xor(x: f64, mask: u32) -> f64 {
        let bits = x.to_bits();
        let half = |w: u32| {
            let out: u32;
            // SAFETY: all 32 lanes take part: reductions run with full warps and no early exit.
            unsafe {
                asm!("shfl.sync.bfly.b32 {0}, {1}, {2}, 31, -1;", out(reg32) out, in(reg32) w, in(reg32) mask,
                    options(nostack));
            }
            out
        };
        let (low, high) = (half(bits as u32), half((bits >> 32) as u32));
        f64::from_bits((high as u64) << 32 | low as u64)
    }

    core::arch::global_asm!(".shared .align 16 .b8 reduction_scratch[512];");

    #[inline(always)]
    fn scratch() -> u32 {
        let address: u32;
        unsafe { asm!("mov.u32 {0}, reduction_scratch;", out(reg32) address, options(pure, nomem, nostack)) }
        address
    }
    #[inline(always)]
    unsafe fn shared_store(address: u32, x: f64) {
        unsafe { asm!("st.shared.f64 [{0}], {1};", in(reg32) address, in(reg64) x, options(nostack)) }
    }
    #[inline(always)]
    unsafe fn shared_load(address: u32) -> f64 {
        let x: f64;
        unsafe { asm!("ld.shared.f64 {0}, [{1}];", out(reg64) x, in(reg32) address, options(nostack)) }
        x
    }

    /// Sum over the block, in a fixed order; the result is valid in thread 0.
    #[inline(always)]
    unsafe fn block_sum<V: Values>(values: V, thread: u32, warps: u32) -> V {
        // Written out: an array of shifts in a loop that is not unrolled would be local memory.
        macro_rules! fold {
            ($values:ident $($shift:literal)*) => {
                $(let $values = $values.add($values.map(|x| shuffle_xor(x, $shift)));)*
            };
        }
        fold!(values 16 8 4 2 1);
        let base = scratch();
        let (lane, warp) = (thread & 31, thread >> 5);
        unsafe { _syncthreads() };
        if lane == 0 {
            let mut k = 0;
            values.map(|x| {
                unsafe { shared_store(base + 8 * (k * warps + warp), x) };
                k += 1;
                x
            });
        }
        unsafe { _syncthreads() };
        let mut k = 0;
        V::ZERO.map(|_| {
            let mut sum = 0.0;
            if thread == 0 {
                for w in 0..warps {
                    sum += unsafe { shared_load(base + 8 * (k * warps + w)) };
                }
            }
            k += 1;
            sum
        })
    }

    /// Sums a reduction over all sites: every block its share, the last block to finish the blocks' sums.
    ///
    /// # Safety
    /// Launched with [`Reduction::THREADS`] threads per block; `sums` valid for the grid.
    #[inline(always)]
    pub unsafe fn reduce<K: Reduction>(kernel: &K, n: u32, sums: Sums) {
        unsafe {
            let thread = _thread_idx_x() as u32;
            // Blocks of other right-hand sides follow each other first, as in `site_and_side`.
            let (block, blocks, rhs) = (_block_idx_y() as u32, _grid_dim_y() as u32, _block_idx_x() as u32);
            let mut values = K::Values::ZERO;
            let mut i = block * K::THREADS + thread;
            if K::LOOPS {
                while i < n {
                    values = values.add(kernel.site(kernel.place(i), rhs));
                    i += blocks * K::THREADS;
                }
            } else if i < n {
                values = kernel.site(kernel.place(i), rhs);
            }
            let total = block_sum(values, thread, K::THREADS / 32);
            let count = K::Values::COUNT as u32;
            let partial = sums.partial.add((rhs * blocks * count) as usize);
            let mut ticket = 0u32;
            if thread == 0 {
                let mut k = 0;
                total.map(|x| {
                    store_f64(partial.add((block * count + k) as usize), x);
                    k += 1;
                    x
                });
                // Release our partial sums before, acquire the others' after we are counted.
                asm!("fence.acq_rel.gpu;", options(nostack));
                asm!("atom.global.add.u32 {0}, [{1}], 1;", out(reg32) ticket, in(reg64) sums.done.add(rhs as usize),
                    options(nostack));
                asm!("fence.acq_rel.gpu;", options(nostack));
                shared_store(scratch() + 504, f64::from_bits(ticket as u64));
            }
            _syncthreads();
            let ticket = shared_load(scratch() + 504).to_bits() as u32;
            if ticket + 1 != blocks {
                return;
            }
            // Four at a time, so that four loads are under way together.
            let of_block = |b: u32| {
                let mut k = 0;
                K::Values::ZERO.map(|_| {
                    let x = if b < blocks { load_f64(partial.add((b * count + k) as usize)) } else { 0.0 };
                    k += 1;
                    x
                })
            };
            let mut values = K::Values::ZERO;
            let mut b = thread;
            while b < blocks {
                let (first, second) = (of_block(b), of_block(b + K::THREADS));
                let (third, fourth) = (of_block(b + 2 * K::THREADS), of_block(b + 3 * K::THREADS));
                values = values.add(first.add(second).add(third.add(fourth)));
                b += 4 * K::THREADS;
            }
            let total = block_sum(values, thread, K::THREADS / 32);
            if thread == 0 {
                let mut k = 0;
                total.map(|x| {
                    store_f64(sums.result.add((rhs * count + k) as usize), x);
                    k += 1;
                    x
                });
                asm!("st.global.u32 [{0}], {1};", in(reg64) sums.done.add(rhs as usize), in(reg32) 0u32,
                    options(nostack));
                // The host may read the result as soon as it sees the ticket.
                asm!("st.release.sys.global.u32 [{0}], {1};", in(reg64) sums.ready.add((rhs * count) as usize),
                    in(reg32) sums.ticket, options(nostack));
            }
        }
    }

    #[inline(always)]
    unsafe fn store_f64(address: *mut f64, x: f64) {
        unsafe { asm!("st.global.f64 [{0}], {1};", in(reg64) address, in(reg64) x, options(nostack)) }
    }
    /// Past the first-level cache, which does not see what other blocks wrote.
    #[inline(always)]
    unsafe fn load_f64(address: *const f64) -> f64 {
        let x: f64;
        unsafe { asm!("ld.global.cg.f64 {0}, [{1}];", out(reg64) x, in(reg64) address, options(nostack)) }
        x
    }
}
