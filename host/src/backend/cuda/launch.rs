//! How a kernel is launched: found out once for each number of sites and right-hand sides, then looked up.
use super::{Cuda, Function, lock, raw};
use crate::backend::{Backend, BackendError, Result};
use crate::tune::{LaunchKey, SearchError};
use cust::sys;
use std::any::TypeId;
use std::ffi::c_void;

/// Threads per block of kernels that are neither reductions nor tuned, as far as right-hand sides allow.
const BLOCK: u32 = 128;
/// Candidates of the tuner are the multiples of this, for each right-hand side in a block, up to `MOST_THREADS`.
const WARP: u32 = 32;
const MOST_THREADS: u32 = 512;

/// Most right-hand sides in a block: with more, it has too few sites to find neighbours' vectors in its cache.
const MOST_SIDES: u32 = 4;
/// Most blocks along y and z of a grid.
const MOST_BLOCKS: u32 = 65535;

/// Launches that warm up and say how many fill a batch.
const WARM_UP: u32 = 3;
/// Aimed length of a batch in seconds. The tuner asks for several.
const BATCH_SECONDS: f64 = 2e-3;
/// Most launches of a batch.
const MOST_LAUNCHES: f64 = 500.0;

/// Which launch: the kernel's type, sites, right-hand sides.
pub(super) type LaunchId = (TypeId, u32, u32);

/// What a launch needs besides arguments.
#[derive(Clone, Copy)]
pub(super) struct Launch {
    pub function: Function,
    pub block: u32,
    /// Right-hand sides that share a block.
    pub sides: u32,
}

/// Blocks along x, y and z, and threads of each along x and y: see `gpu_kernels::device::site_and_side`.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub blocks: [u32; 3],
    pub threads: [u32; 2],
}

impl Launch {
    /// For so many sites and right-hand sides.
    pub fn grid(&self, n: u32, nrhs: u32) -> Grid {
        let along = self.block / self.sides;
        let blocks = n.div_ceil(along).max(1);
        let layers = blocks.div_ceil(MOST_BLOCKS);
        Grid { blocks: [nrhs / self.sides, blocks.div_ceil(layers), layers], threads: [along, self.sides] }
    }
}

/// A kind of launch that was made, see [`Cuda::launches`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockSize {
    /// Which launch.
    pub launch: LaunchKey,
    /// Threads per block.
    pub block: u32,
}

impl Cuda {
    /// Block sizes of all kernels launched so far, reductions apart, sorted by name.
    pub fn launches(&self) -> Vec<BlockSize> {
        let launches = lock(&self.shared.launches);
        let all = launches.iter().map(|((_, sites, nrhs), Launch { function, block, .. })| BlockSize {
            launch: LaunchKey { kernel: function.name.into(), sites: *sites, nrhs: *nrhs },
            block: *block,
        });
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }

    /// The launch of a kernel that has not been launched with these numbers before. A tuner that searches launches it
    /// many times here.
    ///
    /// # Safety
    /// As for [`Cuda::start`].
    pub(super) unsafe fn choose(&self, id: LaunchId, parts: &[&str], parameters: &mut [*mut c_void]) -> Result<Launch> {
        let (kernel, n, nrhs) = id;
        let function = self.function(kernel, parts)?;
        let most = self.most_threads(function)?.min(MOST_THREADS);
        let fits = |sides: &u32| nrhs.is_multiple_of(*sides) && WARP * sides <= most;
        let sides = (1..=MOST_SIDES).rev().find(fits).unwrap_or(1);
        let (step, default) = (WARP * sides, (BLOCK / (WARP * sides)).max(1) * WARP * sides);
        // What is launched once or twice in a run is not worth a search.
        let block = if function.hot {
            let launch = LaunchKey { kernel: function.name.into(), sites: n, nrhs };
            let candidates: Vec<u32> = (1..=most / step).map(|steps| step * steps).collect();
            let measure = |block| {
                // SAFETY: the caller's promise. A kernel writes what it owns, however often it is launched.
                unsafe { self.seconds(Launch { function, block, sides }, (n, nrhs), parameters) }
            };
            self.tuner().block(&launch, default, &candidates, measure).map_err(|error| match error {
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
        let launch = Launch { function, block, sides };
        lock(&self.shared.launches).insert(id, launch);
        Ok(launch)
    }

    /// Most threads that a block of the kernel can have: registers are the limit.
    fn most_threads(&self, function: Function) -> Result<u32> {
        let mut most = 0;
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        // SAFETY: writes one integer; the handle is that of a loaded kernel.
        let code = unsafe { sys::cuFuncGetAttribute(&mut most, attribute, function.handle) };
        raw(code, "reading an attribute of a kernel", self.name())?;
        Ok(most.unsigned_abs())
    }

    /// Seconds of one launch, as the mean of a batch between two events.
    ///
    /// # Safety
    /// As for [`Cuda::start`].
    unsafe fn seconds(&self, launch: Launch, (n, nrhs): (u32, u32), parameters: &mut [*mut c_void]) -> Result<f64> {
        let grid = launch.grid(n, nrhs);
        let mut batch = |launches: u32| -> Result<f64> {
            let from = self.record()?;
            for _ in 0..launches {
                // SAFETY: the caller's promise.
                unsafe { self.start(&self.shared.stream, launch.function, grid, parameters)? };
            }
            let to = self.record()?;
            Ok(self.seconds_between(&from, &to)? / launches as f64)
        };
        let one = batch(WARM_UP)?;
        batch((BATCH_SECONDS / one).clamp(WARM_UP as f64, MOST_LAUNCHES) as u32)
    }
}
