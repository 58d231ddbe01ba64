//! GPU-only code: thread and block indices, shuffles, and the sum over a grid.
//!
//! Names follow the crate `cuda_std`, so that a move to it costs one dependency.

/// Destination of the sums of a [`Reduction`](crate::Reduction).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Sums {
    /// Partial sums of the blocks: `[rhs][block][value]`.
    pub partial: *mut f64,
    /// Resulting sums `[rhs][value]`, in memory that the host reads.
    pub result: *mut f64,
    /// Number of finished blocks for each right-hand side. It is zero before and after every launch.
    pub done: *mut u32,
    /// One word per right-hand side, `COUNT` words apart like the results, in memory that the host polls. The kernel
    /// sets the word to `ticket` when the result is complete.
    pub ready: *mut u32,
    /// Number of this launch, which marks its results as complete.
    pub ticket: u32,
}

/// Number of bytes of static shared memory in a kernel with sums, in addition to the dynamic shared memory of a launch.
pub const SCRATCH_BYTES: u32 = 512;

#[cfg(target_arch = "nvptx64")]
pub use gpu::*;

#[cfg(target_arch = "nvptx64")]
mod gpu {
    use super::{SCRATCH_BYTES, Sums};
    use crate::threads::shuffle_bits;
    use crate::{Kernel, Reduction, Values};
    use core::arch::asm;
    use core::arch::nvptx::*;

    /// Returns the site and the group of right-hand sides of a thread. Blocks have sites along x and z, and groups along y, so
    /// that the threads of a warp read the same links at once. In the grid, blocks with other groups come first, then blocks
    /// with other sites along y and z. Data that all right-hand sides of a site need are therefore requested at the same time,
    /// and read from memory once.
    #[inline(always)]
    fn site_and_group() -> (u32, u32) {
        unsafe {
            let block = _block_idx_z() as u32 * _grid_dim_y() as u32 + _block_idx_y() as u32;
            let row = block * _block_dim_z() as u32 + _thread_idx_z() as u32;
            let site = row * _block_dim_x() as u32 + _thread_idx_x() as u32;
            (site, _block_idx_x() as u32 * _block_dim_y() as u32 + _thread_idx_y() as u32)
        }
    }

    /// Runs a kernel with one right-hand side for each thread.
    ///
    /// # Safety
    /// The contract of [`Kernel::site`] holds.
    #[inline(always)]
    pub unsafe fn run<F, K: Kernel<F>>(kernel: &K, n: u32) {
        let (i, rhs) = site_and_group();
        if i < n {
            unsafe { kernel.site(kernel.place(i), rhs) }
        }
    }

    /// Runs a kernel that warps compute. The threads of a block along x must be whole warps.
    ///
    /// # Safety
    /// The contract of [`WarpKernel::warp`](crate::warp::WarpKernel::warp) holds; `n` is a multiple of 32.
    #[inline(always)]
    pub unsafe fn run_by_warps<F, K: crate::warp::WarpKernel<F>>(kernel: &K, n: u32) {
        let (i, rhs) = site_and_group();
        let together = crate::warp::LANES * K::PARTS;
        if i < n {
            unsafe { kernel.warp(crate::warp::Warp::new(i % together), i / together, rhs) }
        }
    }
    /// Returns the value that lane `lane ^ mask` of the warp holds.
    #[inline(always)]
    fn shuffle_xor(x: f64, mask: u32) -> f64 {
        let bits = x.to_bits();
        let (low, high) = (shuffle_bits(bits as u32, mask), shuffle_bits((bits >> 32) as u32, mask));
        f64::from_bits((high as u64) << 32 | low as u64)
    }

    core::arch::global_asm!(
        ".shared .align 16 .b8 reduction_scratch[{0}];",
        ".extern .shared .align 16 .b8 staged_links[];",
        const SCRATCH_BYTES,
    );

    /// Returns the address, in shared memory, at which a block stores links.
    #[inline(always)]
    pub fn staged_links() -> u32 {
        let address: u32;
        unsafe { asm!("mov.u32 {0}, staged_links;", out(reg32) address, options(pure, nomem, nostack)) }
        address
    }
    /// Returns the index of this thread in its block, if the block has threads along x only.
    #[inline(always)]
    pub fn thread() -> u32 {
        unsafe { _thread_idx_x() as u32 }
    }

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

    /// Returns the sum over the warp, in every lane.
    #[inline(always)]
    fn warp_sum<V: Values>(values: V) -> V {
        // The loop is written out. In a loop that is not unrolled, the array of shifts would be in local memory.
        macro_rules! fold {
            ($values:ident $($shift:literal)*) => {
                $(let $values = $values.add($values.map(|x| shuffle_xor(x, $shift)));)*
            };
        }
        fold!(values 16 8 4 2 1);
        values
    }

    /// Returns the sum over the block, in a fixed order; the result is valid in thread 0.
    #[inline(always)]
    unsafe fn block_sum<V: Values>(values: V, thread: u32, warps: u32) -> V {
        let values = warp_sum(values);
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

    /// Sums a reduction over all sites: every block sums its share, and the last block to finish adds up the sums of all
    /// blocks.
    ///
    /// # Safety
    /// The kernel is launched with [`Reduction::THREADS`] threads per block, and `sums` is valid for the grid.
    #[inline(always)]
    pub unsafe fn reduce<F, K: Reduction<F>>(kernel: &K, n: u32, sums: Sums) {
        unsafe {
            let thread = _thread_idx_x() as u32;
            // Consecutive blocks belong to different right-hand sides, as in `site_and_group`.
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
            finish::<F, K>(values, (thread, block, blocks), rhs, sums);
        }
    }

    /// Adds up the values of the threads of a block, and the sums of all blocks if this block is the last to finish.
    #[inline(always)]
    unsafe fn finish<F, K: Reduction<F>>(values: K::Values, at: (u32, u32, u32), rhs: u32, sums: Sums) {
        const { assert!(K::Values::COUNT as u32 * K::THREADS / 32 <= 64, "as many sums as the block has memory for") };
        let (thread, block, blocks) = at;
        let count = K::Values::COUNT as u32;
        unsafe {
            let total = block_sum(values, thread, K::THREADS / 32);
            let partial = sums.partial.add((rhs * blocks * count) as usize);
            if thread == 0 {
                let mut k = 0;
                total.map(|x| {
                    store_f64(partial.add((block * count + k) as usize), x);
                    k += 1;
                    x
                });
                shared_store(scratch() + (SCRATCH_BYTES - 8), f64::from_bits(counted(sums, rhs) as u64));
            }
            _syncthreads();
            let ticket = shared_load(scratch() + (SCRATCH_BYTES - 8)).to_bits() as u32;
            if ticket + 1 == blocks {
                finish_last::<F, K>((thread, blocks), rhs, sums);
            }
        }
    }

    /// Finishes the sums like [`finish`], for `nrhs` right-hand sides from `first` on. The sums of `warps` warps for each
    /// number are in shared memory, `[right-hand side][value][warp]`.
    ///
    /// # Safety
    /// The contract of [`reduce`] holds, after all threads of the block have written their sums.
    #[inline(always)]
    unsafe fn finish_rhs<F, K: Reduction<F>>(
        (kept, warps): (u32, u32),
        (first, nrhs): (u32, u32),
        (thread, threads, block, blocks): (u32, u32, u32, u32),
        sums: Sums,
    ) {
        let count = K::Values::COUNT as u32;
        unsafe {
            let mut word = thread;
            while word < nrhs * count {
                let (rhs, value) = (word / count, word % count);
                let (mut sum, mut warp) = (0.0, 0);
                while warp < warps {
                    sum += shared_load(kept + 8 * (word * warps + warp));
                    warp += 1;
                }
                store_f64(sums.partial.add((((first + rhs) * blocks + block) * count + value) as usize), sum);
                word += threads;
            }
            _syncthreads();
            // Each thread counts the block as finished for one right-hand side at a time.
            let mut rhs = thread;
            while rhs < nrhs {
                shared_store(kept + 8 * rhs, f64::from_bits(counted(sums, first + rhs) as u64));
                rhs += threads;
            }
            _syncthreads();
            // A warp publishes the sums of each right-hand side that this block is the last one to finish. Usually a block is the last one
            // for all right-hand sides or for none.
            let (lane, warp) = (thread & 31, thread >> 5);
            let mut rhs = warp;
            while rhs < nrhs {
                let ticket = shared_load(kept + 8 * rhs).to_bits() as u32;
                if ticket + 1 == blocks {
                    let total = warp_sum(of_blocks::<F, K>((lane, 32, blocks), first + rhs, sums));
                    if lane == 0 {
                        publish::<F, K>(total, first + rhs, sums);
                    }
                }
                rhs += threads / 32;
            }
        }
    }

    /// Counts this block as finished for a right-hand side, after the writes of its threads; returns how many had finished
    /// before.
    #[inline(always)]
    unsafe fn counted(sums: Sums, rhs: u32) -> u32 {
        let ticket: u32;
        // The first fence releases the partial sums before the count, and the second acquires those of other blocks after it.
        unsafe {
            asm!("fence.acq_rel.gpu;", options(nostack));
            asm!("atom.global.add.u32 {0}, [{1}], 1;", out(reg32) ticket, in(reg64) sums.done.add(rhs as usize),
                options(nostack));
            asm!("fence.acq_rel.gpu;", options(nostack));
        }
        ticket
    }

    /// Adds up the sums of all blocks with all threads of this block, and publishes the result to the host.
    #[inline(always)]
    unsafe fn finish_last<F, K: Reduction<F>>((thread, blocks): (u32, u32), rhs: u32, sums: Sums) {
        unsafe {
            let values = of_blocks::<F, K>((thread, K::THREADS, blocks), rhs, sums);
            let total = block_sum(values, thread, K::THREADS / 32);
            if thread == 0 {
                publish::<F, K>(total, rhs, sums);
            }
        }
    }

    /// Returns the sum over every `threads`-th block, from block `thread` on.
    #[inline(always)]
    unsafe fn of_blocks<F, K: Reduction<F>>(
        (thread, threads, blocks): (u32, u32, u32),
        rhs: u32,
        sums: Sums,
    ) -> K::Values {
        let count = K::Values::COUNT as u32;
        unsafe {
            let partial = sums.partial.add((rhs * blocks * count) as usize);
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
                if K::Values::COUNT > 8 {
                    values = values.add(of_block(b));
                    b += threads;
                } else {
                    // The sums of four blocks are added at a time, so that four loads overlap.
                    let (first, second) = (of_block(b), of_block(b + threads));
                    let (third, fourth) = (of_block(b + 2 * threads), of_block(b + 3 * threads));
                    values = values.add(first.add(second).add(third.add(fourth)));
                    b += 4 * threads;
                }
            }
            values
        }
    }

    /// Publishes the sums of a right-hand side in memory that the host reads. One thread calls it.
    #[inline(always)]
    unsafe fn publish<F, K: Reduction<F>>(total: K::Values, rhs: u32, sums: Sums) {
        let count = K::Values::COUNT as u32;
        unsafe {
            let mut k = 0;
            total.map(|x| {
                store_f64(sums.result.add((rhs * count + k) as usize), x);
                k += 1;
                x
            });
            asm!("st.global.u32 [{0}], {1};", in(reg64) sums.done.add(rhs as usize), in(reg32) 0u32,
                options(nostack));
            // The host may read the result as soon as it has read the ticket.
            asm!("st.release.sys.global.u32 [{0}], {1};", in(reg64) sums.ready.add((rhs * count) as usize),
                in(reg32) sums.ticket, options(nostack));
        }
    }

    #[inline(always)]
    unsafe fn store_f64(address: *mut f64, x: f64) {
        unsafe { asm!("st.global.f64 [{0}], {1};", in(reg64) address, in(reg64) x, options(nostack)) }
    }
    /// Loads a number past the first-level cache, which does not see the writes of other blocks.
    #[inline(always)]
    unsafe fn load_f64(address: *const f64) -> f64 {
        let x: f64;
        unsafe { asm!("ld.global.cg.f64 {0}, [{1}];", out(reg64) x, in(reg64) address, options(nostack)) }
        x
    }
    /// Kernels with several right-hand sides in a thread, and links in its registers.
    pub mod rhs {
        use super::*;
        use crate::multi_rhs::{MultiRhsKernel, MultiRhsReduction, SUM_WARPS};

        /// Runs a kernel with N right-hand sides for each thread.
        ///
        /// # Safety
        /// The contract of [`Kernel::site`] holds.
        #[inline(always)]
        pub unsafe fn run<F, K: MultiRhsKernel<F>, const N: usize>(kernel: &K, n: u32, _nrhs: u32) {
            let (i, group) = site_and_group();
            if i < n {
                unsafe { kernel.multi_rhs::<N>(kernel.place_multi_rhs(i), group * N as u32) }
            }
        }

        /// Sums a reduction with one group of right-hand sides for each warp. The warps of a block have the same sites
        /// or adjacent ones, so that all groups but one find the links in the first-level cache. The sums of a thread
        /// are in shared memory, `[warp][right-hand side][value][thread]`, so that registers are free for hops.
        ///
        /// # Safety
        /// The contract of [`reduce`] holds, with blocks of at most [`SUM_WARPS`] warps: 32 sites along x, groups along y, more
        /// sites along z. Blocks have [`kept_sum_bytes`](crate::multi_rhs::kept_sum_bytes) of memory.
        #[inline(always)]
        pub unsafe fn sum<F, K: MultiRhsReduction<F>, const N: usize>(kernel: &K, n: u32, sums: Sums, _nrhs: u32) {
            const { assert!(K::Values::COUNT as u32 * SUM_WARPS <= 64, "as many sums as the block has memory for") };
            let count = K::Values::COUNT as u32;
            unsafe {
                let (lane, group, row) = (_thread_idx_x() as u32, _thread_idx_y() as u32, _thread_idx_z() as u32);
                let (groups, rows) = (_block_dim_y() as u32, _block_dim_z() as u32);
                let (block, blocks) = (_block_idx_y() as u32, _grid_dim_y() as u32);
                let (warp, warps) = (row * groups + group, groups * rows);
                let of_block = _block_idx_x() as u32 * groups * N as u32;
                let first = of_block + group * N as u32;
                let words = N as u32 * count;
                let kept = staged_links() + 8 * (32 * words * warp + lane);
                let mut word = 0;
                while word < words {
                    shared_store(kept + 8 * 32 * word, 0.0);
                    word += 1;
                }
                let mut i = (block * rows + row) * 32 + lane;
                while i < n {
                    let more = kernel.multi_rhs::<N>(kernel.place_multi_rhs(i), first);
                    crate::multi_rhs::each_rhs!(k < N: {
                        let mut at = kept + 8 * 32 * (k as u32 * count);
                        more[k].map(|x| {
                            shared_store(at, shared_load(at) + x);
                            at += 8 * 32;
                            x
                        });
                    });
                    i += blocks * rows * 32;
                }
                // The sums of warps are stored after those of threads, in the layout of `finish_rhs`.
                let of_warps = staged_links() + 8 * 32 * words * warps;
                let mut word = 0;
                while word < words {
                    let [sum] = warp_sum([shared_load(kept + 8 * 32 * word)]);
                    if lane == 0 {
                        shared_store(of_warps + 8 * ((group * words + word) * rows + row), sum);
                    }
                    word += 1;
                }
                _syncthreads();
                let at = (32 * warp + lane, 32 * warps, block, blocks);
                finish_rhs::<F, K>((of_warps, rows), (of_block, groups * N as u32), at, sums);
            }
        }
    }

    /// Reductions in which a warp processes all right-hand sides of its sites together.
    ///
    /// # Safety
    /// The contract of [`Reduction`] holds, and `warp` adds up over all sites what [`site`](Reduction::site) returns.
    pub unsafe trait WarpSum<F>: Reduction<F> {
        /// Returns the right-hand side whose sums thread `lane` of a warp holds; the thread holds none if no right-hand side
        /// has this number.
        fn rhs(&self, lane: u32) -> u32;
        /// Adds sites `i..i + 32`, as far as they are below `n`, to the sums of thread `lane`.
        ///
        /// # Safety
        /// The contract of [`Reduction::site`] holds; all threads of a warp call it together.
        unsafe fn warp(&self, sums: Self::Values, i: u32, n: u32, lane: u32) -> Self::Values;
    }

    /// Kernels in which a warp processes all right-hand sides of its call, N at a time.
    ///
    /// # Safety
    /// The contract of [`WarpKernel`](crate::warp::WarpKernel) holds, and `warp_looped` does what `warp` does for each of `0..nrhs`.
    pub unsafe trait LoopedWarpKernel<F>: crate::warp::WarpKernel<F> {
        /// Computes call `i` for all right-hand sides.
        ///
        /// # Safety
        /// The contract of [`WarpKernel::warp`](crate::warp::WarpKernel::warp) holds.
        unsafe fn warp_looped<const N: usize>(&self, warp: crate::warp::Warp, i: u32, nrhs: u32);
    }

    /// Reductions in which a warp processes all right-hand sides together.
    pub mod warps {
        use super::*;

        /// Sums a reduction in which a warp processes all right-hand sides together.
        ///
        /// # Safety
        /// The contract of [`reduce`] holds, with one block for all of the `nrhs` right-hand sides, which has memory for
        /// [`warp_sum_bytes`](crate::multi_rhs::warp_sum_bytes).
        #[inline(always)]
        pub unsafe fn sum<F, K: WarpSum<F>>(kernel: &K, n: u32, sums: Sums, nrhs: u32) {
            const { assert!(K::WARPS && K::Values::COUNT as u32 * K::THREADS / 32 <= 128) };
            let (count, warps) = (K::Values::COUNT as u32, K::THREADS / 32);
            unsafe {
                let thread = _thread_idx_x() as u32;
                let (lane, warp) = (thread & 31, thread >> 5);
                let (block, blocks) = (_block_idx_y() as u32, _grid_dim_y() as u32);
                let mut values = K::Values::ZERO;
                let mut i = 32 * (block * warps + warp);
                while i < n {
                    values = kernel.warp(values, i, n, lane);
                    i += blocks * K::THREADS;
                }
                let rhs = kernel.rhs(lane);
                if rhs < nrhs {
                    let mut at = staged_links() + 8 * (rhs * count * warps + warp);
                    values.map(|x| {
                        shared_store(at, x);
                        at += 8 * warps;
                        x
                    });
                }
                _syncthreads();
                finish_rhs::<F, K>((staged_links(), warps), (0, nrhs), (thread, K::THREADS, block, blocks), sums);
            }
        }
    }

    /// Kernels with all right-hand sides in a thread, N at a time, and links in shared memory.
    pub mod looped {
        use super::*;
        use crate::multi_rhs::{LOOPED_THREADS as THREADS, MultiRhsKernel, MultiRhsReduction, StageLinks};

        const WARPS: u32 = THREADS / 32;

        /// Runs a kernel that warps compute, where each warp processes all right-hand sides, N at a time.
        ///
        /// # Safety
        /// The contract of [`LoopedWarpKernel::warp_looped`] holds; `n` is a multiple of the threads of a call.
        #[inline(always)]
        pub unsafe fn run_by_warps<F, K: LoopedWarpKernel<F>, const N: usize>(kernel: &K, n: u32, nrhs: u32) {
            let (i, _) = site_and_group();
            let together = crate::warp::LANES * K::PARTS;
            if i < n {
                unsafe { kernel.warp_looped::<N>(crate::warp::Warp::new(i % together), i / together, nrhs) }
            }
        }

        fn block() -> u32 {
            unsafe { _block_idx_z() as u32 * _grid_dim_y() as u32 + _block_idx_y() as u32 }
        }

        /// Runs a kernel in which each thread processes all right-hand sides, N at a time.
        ///
        /// # Safety
        /// The contract of [`Kernel::site`] holds, with blocks as [`StageLinks::stage`] requires; `nrhs` is a multiple of N.
        #[inline(always)]
        pub unsafe fn run<F, K, const N: usize>(kernel: &K, n: u32, nrhs: u32)
        where
            K: StageLinks<F> + MultiRhsKernel<<K as StageLinks<F>>::Staged>,
        {
            unsafe {
                let i = block() * THREADS + _thread_idx_x() as u32;
                if i < n {
                    let i = kernel.place_multi_rhs(i);
                    let staged = kernel.stage(i);
                    let mut first = 0;
                    while first < nrhs {
                        <K as StageLinks<F>>::for_rhs(staged, first).multi_rhs::<N>(i, first);
                        first += N as u32;
                    }
                }
            }
        }

        /// Sums a reduction in which each thread processes all right-hand sides, N at a time. Warps add to values that
        /// their block keeps in shared memory, `[right-hand side][value][warp]`.
        ///
        /// # Safety
        /// The contract of [`reduce`] holds, with blocks as [`StageLinks::stage`] requires and 32 bytes more for each value of
        /// a right-hand side; `nrhs` is a multiple of N.
        #[inline(always)]
        pub unsafe fn sum<F, K, const N: usize>(kernel: &K, n: u32, sums: Sums, nrhs: u32)
        where
            K: StageLinks<F> + MultiRhsReduction<<K as StageLinks<F>>::Staged>,
        {
            const { assert!(K::THREADS == THREADS) };
            let count = K::Values::COUNT as u32;
            unsafe {
                let thread = _thread_idx_x() as u32;
                let (lane, warp) = (thread & 31, thread >> 5);
                let (block, blocks) = (block(), _grid_dim_y() as u32);
                let kept = staged_links() + <K as StageLinks<F>>::BYTES as u32 * THREADS;
                let mut word = thread;
                while word < nrhs * count * WARPS {
                    shared_store(kept + 8 * word, 0.0);
                    word += THREADS;
                }
                _syncthreads();
                let mut start = block * THREADS;
                while start < n {
                    let i = start + thread;
                    // Threads past the last site compute the last site again, so that warps remain complete, but add
                    // nothing to the sums.
                    let at = kernel.place_multi_rhs(if i < n { i } else { n - 1 });
                    let staged = kernel.stage(at);
                    let mut first = 0;
                    while first < nrhs {
                        let mut values = [K::Values::ZERO; N];
                        if i < n {
                            values = <K as StageLinks<F>>::for_rhs(staged, first).multi_rhs::<N>(at, first);
                        }
                        crate::multi_rhs::each_rhs!(k < N: {
                            let sum = warp_sum(values[k]);
                            if lane == 0 {
                                let mut at = kept + 8 * (((first + k as u32) * count) * WARPS + warp);
                                sum.map(|x| {
                                    shared_store(at, shared_load(at) + x);
                                    at += 8 * WARPS;
                                    x
                                });
                            }
                        });
                        first += N as u32;
                    }
                    start += blocks * THREADS;
                }
                _syncthreads();
                finish_rhs::<<K as StageLinks<F>>::Staged, K>(
                    (kept, WARPS),
                    (0, nrhs),
                    (thread, THREADS, block, blocks),
                    sums,
                );
            }
        }
    }
}
