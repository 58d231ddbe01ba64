//! Launch parameters of kernels. They are determined once for each number of sites and right-hand sides, and then looked up.
use super::{Cuda, Function, MAX_REDUCTION_BLOCKS, lock, raw};
use crate::backend::tuning::{LaunchKey, SearchError, Shape};
use crate::backend::{Backend, BackendError, LAUNCH_SUMS, Result};
use cust::sys;
use gpu_kernels::device::SCRATCH_BYTES;
use gpu_kernels::multi_rhs::{RhsBlocking, SUM_WARPS, Variant, kept_sum_bytes, warp_sum_bytes};
use gpu_kernels::{Instance, Sum};
use std::collections::BTreeSet;
use std::ffi::c_void;

/// Default number of threads in a block of an untuned kernel with one right-hand side per thread. It does not apply to reductions.
const BLOCK: u32 = 128;
/// Number of threads of a warp. Candidates of the tuner consist of whole warps, with up to `MOST_THREADS` threads.
const WARP: u32 = 32;
const MOST_THREADS: u32 = 512;
/// Number of consecutive threads that have different sites, in default blocks with several groups of right-hand sides.
const ROW: u32 = 16;
/// Numbers of consecutive threads that have different sites, in candidates with several groups of right-hand sides.
const ROWS: [u32; 3] = [8, 16, 32];

/// Largest number of groups of right-hand sides in a default block; candidates of the tuner may also have [`MOST_GROUPS_TUNED`]. With more
/// groups, a block has too few sites to reuse the neighbours' vectors in its cache.
const MOST_GROUPS: u32 = 4;
const MOST_GROUPS_TUNED: u32 = 8;
/// Largest number of threads of candidates with several groups; larger blocks were never the fastest.
const MOST_THREADS_IN_GROUPS: u32 = 256;
/// Number of blocks of a reduction whose blocks each loop over several sets of sites: about as many as run at a time.
pub(super) const LOOPED_BLOCKS: u32 = 528;
/// Largest number of blocks along y or z of a grid.
const MOST_BLOCKS: u32 = 65535;

/// Number of bytes that a block of a looped reduction stores for each of its sums: one number for each warp.
const KEPT_SUM_BYTES: u32 = 32;
/// Largest number of bytes that a block stores for the sums of a looped reduction.
pub(super) const MOST_KEPT: u32 = KEPT_SUM_BYTES * LAUNCH_SUMS as u32;
/// Number of bytes of shared memory that a block can have on every GPU without a special request.
const UNASKED: u32 = 48 << 10;

/// Number of launches of the warm-up, whose time determines how many launches fill a batch.
const WARM_UP: u32 = 3;
/// Target length of a timed batch in seconds.
const BATCH_SECONDS: f64 = 2e-3;
/// Largest number of launches in a batch.
const MOST_LAUNCHES: f64 = 500.0;

/// Key of a launch: [`address`] of the kernel, number of sites, number of right-hand sides.
pub(super) type LaunchId = (usize, u32, u32);

/// Returns the address of a kernel's table entry, which is quicker to compare than its name.
pub(super) fn address(instance: &'static Instance) -> usize {
    std::ptr::from_ref(instance).addr()
}

/// Shared memory of a GPU. The largest amount for a block is 163 KiB at compute capability 8.0, 99 KiB at 8.6 and 8.9, and 227 KiB at 9.0.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedMemory {
    /// Largest number of bytes of shared memory that a block can request on this GPU.
    pub most: u32,
}

impl SharedMemory {
    /// Returns the largest number of bytes of shared memory for a block that stores `links` bytes of links. A block without links can have
    /// only as much as a GPU provides without a special request.
    pub fn limit(self, links: u32) -> u32 {
        if links > 0 { self.most } else { self.most.min(UNASKED) }
    }
    /// Whether a launch that requests `bytes` of shared memory fits on the GPU, if its blocks store `links` bytes of links.
    fn fits(self, links: u32, bytes: u32) -> bool {
        bytes + SCRATCH_BYTES <= self.limit(links)
    }
    /// Returns the variants of a kernel that fit into shared memory. The kernel must not be a reduction.
    fn fitting(self, variants: &'static [Variant]) -> impl Iterator<Item = &'static Variant> {
        variants.iter().filter(move |variant| self.fits(variant.shared, variant.shared))
    }
}

/// Kernel and shape of a launch; the arguments are passed separately.
#[derive(Clone, Copy)]
pub(super) struct PreparedLaunch {
    pub function: Function,
    pub shape: Shape,
}

/// Grid of a launch: blocks and threads along x, y and z, and bytes of shared memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub blocks: [u32; 3],
    pub threads: [u32; 3],
    pub shared: u32,
}

impl PreparedLaunch {
    /// Returns the grid for `n` sites and `nrhs` right-hand sides.
    pub fn grid(&self, n: u32, nrhs: u32) -> Grid {
        grid(self.shape, n, nrhs, self.function.shared)
    }
}

/// Returns the grid of a launch. Blocks along x have different right-hand sides, blocks along y and z different sites.
fn grid(shape: Shape, n: u32, nrhs: u32, shared: u32) -> Grid {
    let blocks = n.div_ceil(shape.sites()).max(1);
    let layers = blocks.div_ceil(MOST_BLOCKS);
    Grid { blocks: [nrhs / shape.rhs_of_block(nrhs), blocks.div_ceil(layers), layers], threads: shape.threads, shared }
}

/// Returns the largest divisor of `n` up to `most`.
fn divisor(n: u32, most: u32) -> u32 {
    (1..=most).rev().find(|d| n.is_multiple_of(*d)).unwrap_or(1)
}

/// Returns the shape of an untuned kernel that is compiled for `blockings`; a block can have up to `most` threads.
fn default_shape(mut blockings: impl Iterator<Item = RhsBlocking>, nrhs: u32, most: u32) -> Shape {
    // Blockings are listed in order of speed. Looped blockings are faster in some kernels only, so only the tuner chooses them.
    let fits = |blocking: &RhsBlocking| nrhs > 1 && !blocking.looped && nrhs.is_multiple_of(blocking.rhs);
    let blocking = blockings.find(fits).unwrap_or(RhsBlocking::ONE);
    let groups = divisor(nrhs / blocking.rhs, MOST_GROUPS.min(most / WARP));
    // In measurements, larger blocks were faster if a thread computes several right-hand sides.
    let block = if blocking.rhs > 1 { MOST_THREADS_IN_GROUPS } else { BLOCK };
    let threads = match groups {
        0 | 1 => [BLOCK.min(most), 1, 1],
        _ => [ROW, groups, (block.min(most) / (ROW * groups) / 2 * 2).max(1)],
    };
    Shape { blocking, threads }
}

/// Returns the shape of a kernel whose numbers are computed by whole warps. If `together` is 1, each lane computes one number, and a block
/// contains the warps that compute the same numbers of different right-hand sides. Otherwise `together` warps compute a number together.
fn shape_of_warps(mut blockings: impl Iterator<Item = RhsBlocking>, nrhs: u32, most: u32, together: u32) -> Shape {
    let fits = |blocking: &RhsBlocking| if blocking.looped { nrhs > 1 } else { nrhs.is_multiple_of(blocking.rhs) };
    let blocking = blockings.find(fits).unwrap_or(RhsBlocking::ONE);
    if together > 1 {
        return Shape { blocking, threads: [WARP * together, 1, 1] };
    }
    let warps = BLOCK.min(most) / WARP;
    let groups = if blocking.looped { 1 } else { divisor(nrhs / blocking.rhs, warps) };
    match groups {
        1 => Shape { blocking, threads: [WARP * warps, 1, 1] },
        groups => Shape { blocking, threads: [WARP, groups, warps / groups] },
    }
}

/// Returns the blocking of a reduction with several right-hand sides. Reductions are not tuned: the first variant that divides this number
/// and whose blocks fit into shared memory is used, otherwise one right-hand side in each thread.
pub(super) fn sum_blocking(variants: &[Variant], sum: Sum, nrhs: u32, memory: SharedMemory) -> RhsBlocking {
    let fits = |variant: &&Variant| {
        let (blocking, links) = (variant.blocking, variant.shared);
        let bytes = || sum_bytes(sum, (blocking, links), sum_threads(blocking, nrhs, sum.threads), nrhs);
        nrhs > 1 && nrhs.is_multiple_of(blocking.rhs) && memory.fits(links, bytes())
    };
    variants.iter().find(fits).map_or(RhsBlocking::ONE, |variant| variant.blocking)
}

/// Returns the bytes of shared memory that a launch of a reduction requests: for the links of this blocking, and for sums.
pub(super) fn sum_bytes(sum: Sum, (blocking, links): (RhsBlocking, u32), threads: [u32; 3], nrhs: u32) -> u32 {
    let values = sum.values as u32;
    let kept = match blocking {
        _ if sum.warps => warp_sum_bytes(nrhs, values, sum.threads),
        RhsBlocking { looped: true, .. } => KEPT_SUM_BYTES * nrhs * values,
        RhsBlocking { rhs: 1, .. } => 0,
        RhsBlocking { rhs, .. } => kept_sum_bytes(rhs, values, threads[1] * threads[2]),
    };
    links + kept
}

/// Returns the largest number of blocks of a reduction whose threads compute one site each. The memory for partial sums and the size of a
/// grid along y limit it.
pub(super) fn most_single_blocks(nrhs: u32, values: usize) -> u32 {
    let room = LAUNCH_SUMS * MAX_REDUCTION_BLOCKS / (nrhs as usize * values).max(1);
    room.min(MOST_BLOCKS as usize) as u32
}

/// Returns the threads of a block of a reduction. With one right-hand side in each thread, and in loops, a block has `one` threads along x.
/// Otherwise each warp computes one group of right-hand sides, and as many groups as possible share their sites. The remaining warps
/// compute more rows of sites, whose neighbours' vectors the block then finds in its cache.
pub(super) fn sum_threads(blocking: RhsBlocking, nrhs: u32, one: u32) -> [u32; 3] {
    if blocking.looped || blocking.rhs == 1 {
        return [one, 1, 1];
    }
    let groups = divisor(nrhs / blocking.rhs, SUM_WARPS);
    [WARP, groups, SUM_WARPS / groups]
}

/// Returns the shapes that the tuner measures for a kernel in this blocking; a block can have up to `most` threads.
fn candidates(blocking: RhsBlocking, nrhs: u32, most: u32) -> Vec<Shape> {
    if !nrhs.is_multiple_of(blocking.rhs) || blocking.looped && nrhs == 1 {
        return Vec::new();
    }
    if blocking.looped {
        return vec![Shape::looped(blocking.rhs)];
    }
    let all = nrhs / blocking.rhs;
    let mut shapes = BTreeSet::new();
    for groups in [MOST_GROUPS, MOST_GROUPS_TUNED].map(|most| divisor(all, most)) {
        let (rows, most) = if groups == 1 { (&ROWS[2..], most) } else { (&ROWS[..], most.min(MOST_THREADS_IN_GROUPS)) };
        for &along in rows {
            for deep in 1..=most / (along * groups) {
                if (along * groups * deep).is_multiple_of(WARP) {
                    let threads = if groups == 1 { [along * deep, 1, 1] } else { [along, groups, deep] };
                    shapes.insert(Shape { blocking, threads });
                }
            }
        }
    }
    shapes.into_iter().collect()
}

/// A launch that was made, with its shape; see [`Cuda::launches`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Launched {
    /// Key of the launch: kernel, sites and right-hand sides.
    pub launch: LaunchKey,
    /// Shape of the launch's blocks.
    pub shape: Shape,
}

impl Cuda {
    /// Returns the launches made so far, except those of reductions, sorted by kernel.
    pub fn launches(&self) -> Vec<Launched> {
        let launches = lock(&self.shared.launches);
        let all = launches.iter().map(|((_, sites, nrhs), PreparedLaunch { function, shape })| Launched {
            launch: LaunchKey { kernel: function.name.into(), sites: *sites, nrhs: *nrhs },
            shape: *shape,
        });
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }

    /// Returns the parameters for the first launch of a kernel with these numbers of sites and right-hand sides. A tuner that searches
    /// measures candidates here, which launches the kernel many times.
    ///
    /// # Safety
    /// The contract of [`Cuda::start`] holds.
    pub(super) unsafe fn choose(
        &self,
        kernel: &'static Instance,
        n: u32,
        nrhs: u32,
        parameters: &mut [*mut c_void],
    ) -> Result<PreparedLaunch> {
        let function = self.function(kernel, RhsBlocking::ONE)?;
        let most = self.most_threads(function)?.min(MOST_THREADS);
        let variants = || self.shared.memory.fitting(function.variants);
        let blockings = variants().map(|variant| variant.blocking);
        let default = match kernel.warps {
            Some(together) => shape_of_warps(blockings, nrhs, most, together),
            None => default_shape(blockings, nrhs, most),
        };
        // Kernels that are launched once or twice in a run do not justify a search.
        let shape = if function.hot && kernel.warps.is_none() {
            let launch = LaunchKey { kernel: function.name.into(), sites: n, nrhs };
            let mut shapes = candidates(RhsBlocking::ONE, nrhs, most);
            if nrhs > 1 {
                for variant in variants() {
                    let most = self.most_threads(self.function(kernel, variant.blocking)?)?.min(MOST_THREADS);
                    shapes.extend(candidates(variant.blocking, nrhs, most));
                }
            }
            let measure = |shape: Shape| {
                let function = self.function(kernel, shape.blocking)?;
                // SAFETY: the caller's promise. A kernel writes the elements that it owns, however often it is launched.
                unsafe { self.seconds(PreparedLaunch { function, shape }, n, nrhs, parameters) }
            };
            self.tuner().shape(&launch, default, &shapes, measure).map_err(|error| match error {
                SearchError::Failed(error) => error,
                SearchError::NoTime => BackendError::Driver {
                    call: format!("timing {}", function.name),
                    device: self.device(),
                    code: error.to_string(),
                },
            })?
        } else {
            default
        };
        let launch = PreparedLaunch { function: self.function(kernel, shape.blocking)?, shape };
        lock(&self.shared.launches).insert((address(kernel), n, nrhs), launch);
        Ok(launch)
    }

    /// Returns the largest number of threads that a block of the kernel can have; registers limit it.
    fn most_threads(&self, function: Function) -> Result<u32> {
        self.attribute(function.handle, sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
    }
    /// Returns an attribute of a loaded kernel.
    pub(super) fn attribute(&self, handle: sys::CUfunction, which: sys::CUfunction_attribute) -> Result<u32> {
        let mut value = 0;
        // SAFETY: writes one integer; the handle is that of a loaded kernel.
        let code = unsafe { sys::cuFuncGetAttribute(&mut value, which, handle) };
        raw(code, "reading an attribute of a kernel", self.name())?;
        Ok(value.unsigned_abs())
    }

    /// Returns the seconds of one launch, as the mean of a batch between two events.
    ///
    /// # Safety
    /// The contract of [`Cuda::start`] holds.
    unsafe fn seconds(&self, launch: PreparedLaunch, n: u32, nrhs: u32, parameters: &mut [*mut c_void]) -> Result<f64> {
        let grid = launch.grid(n, nrhs);
        let mut batch = |launches: u32| -> Result<f64> {
            let from = self.record()?;
            for _ in 0..launches {
                // SAFETY: the caller's promise.
                unsafe { self.start(&self.shared.queue, launch.function, grid, parameters)? };
            }
            let to = self.record()?;
            Ok(self.seconds_between(&from, &to)? / launches as f64)
        };
        let one = batch(WARM_UP)?;
        batch((BATCH_SECONDS / one).clamp(WARM_UP as f64, MOST_LAUNCHES) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_site_and_side_is_some_threads() {
        let blockings = [(1, false), (2, false), (3, false), (4, false), (1, true), (2, true)];
        for (rhs, looped) in blockings {
            for nrhs in [1, 2, 3, 4, 5, 6, 7, 8, 12, 16] {
                for shape in candidates(RhsBlocking { rhs, looped }, nrhs, 512) {
                    let Grid { blocks: [x, y, z], threads: [along, groups, rows], .. } = grid(shape, 1000, nrhs, 0);
                    assert!(shape.block().is_multiple_of(WARP) && shape.block() <= MOST_THREADS);
                    assert!(y * z * along * rows >= 1000 && (y * z - 1) * along * rows < 1000, "{shape}");
                    assert_eq!(if looped { 1 } else { x * groups * rhs }, if looped { x } else { nrhs }, "{shape}");
                }
            }
        }
        assert_eq!(candidates(RhsBlocking { rhs: 2, looped: false }, 3, 512), []);
        assert_eq!(candidates(RhsBlocking { rhs: 1, looped: true }, 1, 512), []);
    }

    #[test]
    fn blocks_of_warps() {
        let (two, all) = (RhsBlocking { rhs: 2, looped: false }, RhsBlocking { rhs: 16, looped: true });
        for (blocking, nrhs, together, expected, threads) in [
            (all, 1, 4, RhsBlocking::ONE, [128, 1, 1]),
            (all, 3, 4, all, [128, 1, 1]),
            (all, 16, 1, all, [BLOCK, 1, 1]),
            (two, 3, 1, RhsBlocking::ONE, [WARP, 3, BLOCK / WARP / 3]),
            (two, 2, 1, two, [BLOCK, 1, 1]),
        ] {
            let shape = shape_of_warps([blocking].into_iter(), nrhs, 1024, together);
            assert_eq!(shape, Shape { blocking: expected, threads }, "{blocking:?}, {nrhs}, {together}");
        }
    }

    #[test]
    fn blocks_of_sums() {
        let blocking = |rhs, looped| RhsBlocking { rhs, looped };
        for (blocking, nrhs, threads) in [
            (RhsBlocking::ONE, 12, [256, 1, 1]),
            (blocking(1, true), 12, [256, 1, 1]),
            (blocking(2, false), 2, [32, 1, 8]),
            (blocking(2, false), 12, [32, 6, 1]),
            (blocking(3, false), 12, [32, 4, 2]),
            (blocking(4, false), 16, [32, 4, 2]),
            (blocking(2, false), 16, [32, 8, 1]),
            (blocking(4, false), 8, [32, 2, 4]),
        ] {
            assert_eq!(sum_threads(blocking, nrhs, 256), threads, "{blocking:?}, {nrhs}");
        }
    }

    /// Shared memory of a block at compute capabilities 8.0, 8.6 and 8.9, and 9.0.
    const CARDS: [SharedMemory; 3] =
        [SharedMemory { most: 163 << 10 }, SharedMemory { most: 99 << 10 }, SharedMemory { most: 227 << 10 }];

    #[test]
    fn sums_that_a_block_has_no_memory_for() {
        let variant = |rhs, looped, shared| Variant { name: "", blocking: RhsBlocking { rhs, looped }, shared };
        let variants = [variant(1, true, 100 << 10), variant(3, false, 0)];
        let sum = Sum { values: 3, threads: 256, blocks: 528, loops: true, warps: false };
        let blocking = |nrhs, most| sum_blocking(&variants, sum, nrhs, SharedMemory { most });
        // 12 · 3 sums of 32 bytes are kept, and 512 bytes are scratch.
        let need = (100 << 10) + 12 * 3 * 32 + 512;
        for (most, chosen) in [(227 << 10, 0), (163 << 10, 0), (need, 0), (need - 1, 1), (99 << 10, 1)] {
            assert_eq!(blocking(12, most), variants[chosen].blocking, "{most} bytes");
        }
        assert_eq!(blocking(4, 99 << 10), RhsBlocking::ONE);
        assert_eq!(blocking(1, 227 << 10), RhsBlocking::ONE);
        // Without links no launch requests more than usual: 4 · 8 numbers of 8 warps would take 66 KiB.
        let wide = [variant(4, false, 0)];
        let sum = Sum { values: 8, ..sum };
        assert_eq!(sum_blocking(&wide, sum, 16, SharedMemory { most: 227 << 10 }), RhsBlocking::ONE);
    }

    #[test]
    fn links_that_a_block_has_no_memory_for() {
        let kernel = |name: &str| gpu_kernels::instances().find(|instance| instance.name == name).unwrap();
        let blockings = |name: &str| CARDS.map(|card| card.fitting(kernel(name).variants).count());
        // 8 links of 18 numbers in double precision for 128 threads are 144 KiB, of 12 are 96 KiB, of 18 in single 72 KiB.
        assert_eq!(blockings("wilson_dslash_double_18"), [1, 0, 1]);
        assert_eq!(blockings("wilson_dslash_double_12"), [1, 1, 1]);
        assert_eq!(blockings("wilson_dslash_single_18"), [1, 1, 1]);
        assert_eq!(blockings("staggered_dslash_double_18"), [2, 2, 2], "links in registers");
    }

    #[test]
    fn no_launch_asks_for_more_than_a_card_has() {
        for card in CARDS {
            for instance in gpu_kernels::instances() {
                for nrhs in 1..=crate::backend::MAX_RHS_PER_LAUNCH as u32 {
                    let shared =
                        |blocking| instance.variants.iter().find(|v| v.blocking == blocking).map_or(0, |v| v.shared);
                    let launches: Vec<(u32, u32)> = match instance.sum {
                        Some(sum) if nrhs as usize * sum.values > LAUNCH_SUMS => continue,
                        Some(sum) => {
                            let blocking = sum_blocking(instance.variants, sum, nrhs, card);
                            let links = shared(blocking);
                            vec![(
                                links,
                                sum_bytes(sum, (blocking, links), sum_threads(blocking, nrhs, sum.threads), nrhs),
                            )]
                        }
                        None => {
                            let blockings = || card.fitting(instance.variants).map(|variant| variant.blocking);
                            let mut shapes = vec![default_shape(blockings(), nrhs, MOST_THREADS)];
                            shapes.extend(blockings().flat_map(|blocking| candidates(blocking, nrhs, MOST_THREADS)));
                            shapes
                                .iter()
                                .map(|s| (shared(s.blocking), grid(*s, 1, nrhs, shared(s.blocking)).shared))
                                .collect()
                        }
                    };
                    for (links, bytes) in launches {
                        assert!(card.fits(links, bytes), "{}, {nrhs}: {bytes} bytes", instance.name);
                    }
                }
            }
        }
    }

    #[test]
    fn sums_near_a_cut() {
        // The three layers of 96³ sites of one parity at both ends, with the three sums of CG; 128³ of Wilson's with eight
        // sums and 16 right-hand sides.
        let sites = |nrhs, values| u64::from(most_single_blocks(nrhs, values)) * 128;
        assert!(sites(1, 3) >= 3 * 96 * 96 * 96 && sites(6, 3) >= 3 * 96 * 96 * 96);
        assert!(sites(16, 8) >= 128 * 128 * 128 / 2);
        for nrhs in 1..=16 {
            for values in [1, 2, 3, 8] {
                let blocks = most_single_blocks(nrhs, values);
                assert!(blocks as usize * nrhs as usize * values <= LAUNCH_SUMS * MAX_REDUCTION_BLOCKS);
                assert!((8192..=MOST_BLOCKS).contains(&blocks));
            }
        }
    }

    #[test]
    fn defaults() {
        let none = std::iter::empty;
        for (nrhs, text) in [(1, "128"), (2, "16x2x4"), (3, "16x3x2"), (4, "16x4x2"), (7, "128"), (12, "16x4x2")] {
            assert_eq!(default_shape(none(), nrhs, 512).to_string(), text);
        }
        assert_eq!(default_shape(none(), 4, 64).to_string(), "16x2x2");
        let blockings = [(1, true), (4, false), (3, false)].map(|(rhs, looped)| RhsBlocking { rhs, looped });
        for (nrhs, text) in [(1, "128"), (2, "16x2x4"), (3, "3:128"), (4, "4:128"), (6, "3:16x2x8"), (16, "4:16x4x4")] {
            let shape = default_shape(blockings.into_iter(), nrhs, 512);
            assert_eq!(shape.to_string(), text);
            assert!(shape.block().is_multiple_of(WARP));
        }
        let many = grid(default_shape(none(), 1, 512), u32::MAX / 2, 1, 0);
        assert!(many.blocks[1] <= MOST_BLOCKS && many.blocks[2] > 1);
    }
}
