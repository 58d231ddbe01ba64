//! Launch parameters that were measured: how many threads a block of each kernel has, and how they share right-hand
//! sides.
//!
//! The best [`Shape`] depends on the kernel, its precision and reconstruction, the number of sites and right-hand
//! sides, and the device. [`Tuner`] knows what was measured for a device, from a [file](cache::TuneCache) that
//! `ferrite tune` fills and every other run only reads: [`tune`](crate::tune) launches what is to be measured. It knows nothing of CUDA: a device is a function that says how
//! long a launch takes.
//!
//! **A shape never changes a result.** Threads of these kernels do not know of each other. Reductions are not
//! tuned, neither their threads nor their blocks: the order of their sums follows from both, so that a run would give
//! other bits after a tuning, or on another machine.
//!
//! ```
//! use ferrite::backend::tuning::{DeviceKey, LaunchKey, Mode, Shape, Tuner, Tuning};
//!
//! # let folder = std::env::temp_dir().join(format!("ferrite-tune-example-{}", std::process::id()));
//! # let path = folder.join("tune.json");
//! let device = DeviceKey { device: "abacus".into(), driver: "1.0".into(), kernels: "beads".into() };
//! let launch = LaunchKey { kernel: "wilson_dslash_single_12".into(), sites: 4096, nrhs: 1 };
//! let seconds = |shape: Shape| Ok::<f64, String>(1e-6 * (shape.block() as f64 - 96.0).abs() + 1e-5);
//! let shapes = [64, 96, 128].map(Shape::from);
//!
//! let tuning = Tuning { mode: Mode::Search { retune: false }, cache: Some(path.clone()) };
//! let tuner = Tuner::open(tuning, device.clone())?;
//! assert_eq!(tuner.shape(&launch, shapes[2], &shapes, seconds)?, shapes[1]);
//! assert_eq!(tuner.save()?, 1);
//!
//! // Later, in another process: nothing is measured or written.
//! let tuner = Tuner::open(Tuning { mode: Mode::Use, cache: Some(path) }, device)?;
//! let never = |_| -> Result<f64, String> { unreachable!() };
//! assert_eq!(tuner.shape(&launch, shapes[2], &shapes, never)?, shapes[1]);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod cache;
mod key;
mod search;
mod shape;

pub use cache::{CacheError, Entry, default_path};
pub use key::{DeviceKey, LaunchKey, kernels_hash};
pub use search::SearchError;
pub use shape::{NoShape, Shape};

use cache::TuneCache;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// What a tuner may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: launches have their default parameters, and no file is read or written.
    Off,
    /// Takes what was measured before, else the default. Nothing is measured, and no file is written.
    #[default]
    Use,
    /// Measures what was not measured before. Launches are repeated, so that fields end up with numbers of no meaning:
    /// for scratch fields only.
    Search {
        /// Measure again what is known, and replace a file that cannot be understood.
        retune: bool,
    },
}

/// How a device is to be tuned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// What may be done.
    pub mode: Mode,
    /// The file. `None`: there is none, so that nothing is known.
    pub cache: Option<PathBuf>,
}

impl Tuning {
    /// With the file of this user, see [`default_path`].
    pub fn new(mode: Mode) -> Self {
        let cache = if mode == Mode::Off { None } else { default_path() };
        Tuning { mode, cache }
    }
}
impl Default for Tuning {
    /// Uses what was measured before.
    fn default() -> Self {
        Self::new(Mode::default())
    }
}

/// What is known of one kind of launch.
struct Known {
    entry: Entry,
    /// Measured by this tuner.
    fresh: bool,
    saved: bool,
    asked: bool,
}

/// A launch that was tuned, see [`Tuner::report`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Which launch.
    pub launch: LaunchKey,
    /// What was measured.
    pub entry: Entry,
    /// Whether it was measured by this tuner; otherwise it is from the file.
    pub fresh: bool,
}

/// Knows the shapes of blocks for one device.
pub struct Tuner {
    tuning: Tuning,
    device: Option<DeviceKey>,
    problem: Option<CacheError>,
    known: Mutex<BTreeMap<LaunchKey, Known>>,
}

impl Tuner {
    /// Answers with defaults; reads and writes nothing.
    pub fn off() -> Self {
        Tuner { tuning: Tuning { mode: Mode::Off, cache: None }, device: None, problem: None, known: Mutex::default() }
    }
    /// Reads what is known of `device`. To use a file that cannot be understood is not an error: nothing is known then, and
    /// [`problem`](Self::problem) says why. To search with such a file is one, unless it may be replaced.
    pub fn open(tuning: Tuning, device: DeviceKey) -> Result<Self, CacheError> {
        let mut problem = None;
        let cache = match (tuning.mode, &tuning.cache) {
            (Mode::Off, _) => return Ok(Self::off()),
            (Mode::Use, None) => TuneCache::default(),
            (Mode::Use, Some(path)) => TuneCache::read(path).unwrap_or_else(|error| {
                problem = Some(error);
                TuneCache::default()
            }),
            (Mode::Search { .. }, None) => return Err(CacheError::NoPlace),
            (Mode::Search { retune }, Some(path)) => {
                // Better now than after all measurements.
                cache::prepare(path)?;
                match TuneCache::read(path) {
                    Err(CacheError::Damaged { .. } | CacheError::OtherVersion { .. }) if retune => TuneCache::default(),
                    other => other?,
                }
            }
        };
        let known = cache
            .of(&device)
            .map(|(key, entry)| (key.clone(), Known { entry: entry.clone(), fresh: false, saved: true, asked: false }));
        let known = Mutex::new(known.collect());
        Ok(Tuner { tuning, device: Some(device), problem, known })
    }

    /// What the tuner may do.
    pub fn mode(&self) -> Mode {
        self.tuning.mode
    }
    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.tuning.cache.as_deref()
    }
    /// Why the file could not be used, for a warning.
    pub fn problem(&self) -> Option<&CacheError> {
        self.problem.as_ref()
    }
    fn known(&self) -> MutexGuard<'_, BTreeMap<LaunchKey, Known>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The shape of blocks for `launch`: what was measured, for this number of sites or the nearest, if it is among
    /// `candidates`, else `default`. A tuner that searches calls `measure`, seconds of a launch with such blocks, for what is not known. A candidate for which
    /// that is an error, or no positive number, does not win; the search fails if there is no other.
    pub fn shape<E>(
        &self,
        launch: &LaunchKey,
        default: Shape,
        candidates: &[Shape],
        measure: impl FnMut(Shape) -> Result<f64, E>,
    ) -> Result<Shape, SearchError<E>> {
        let mode = self.mode();
        if mode == Mode::Off {
            return Ok(default);
        }
        if let Some(known) = self.known().get_mut(launch)
            && (known.fresh || mode != Mode::Search { retune: true })
            && (known.entry.shape == default || candidates.contains(&known.entry.shape))
        {
            known.asked = true;
            return Ok(known.entry.shape);
        }
        if mode == Mode::Use {
            return Ok(self.nearest(launch).filter(|shape| candidates.contains(shape)).unwrap_or(default));
        }
        let found = search::search(default, candidates, measure)?;
        let microseconds = found.seconds.iter().map(|(shape, time)| (*shape, time.map(|seconds| 1e6 * seconds)));
        let measured = crate::system::utc_now();
        let entry = Entry { shape: found.best, default, microseconds: microseconds.collect(), measured };
        self.known().insert(launch.clone(), Known { entry, fresh: true, saved: false, asked: true });
        Ok(found.best)
    }

    /// The shape that was measured for the nearest number of sites, up to half as many more or less: a process whose part
    /// of a lattice is cut launches the interior by itself, which has some sites less than were tuned.
    fn nearest(&self, launch: &LaunchKey) -> Option<Shape> {
        let known = self.known();
        let same = |key: &LaunchKey| key.kernel == launch.kernel && key.nrhs == launch.nrhs;
        let ratio = |key: &LaunchKey| {
            let (a, b) = (f64::from(key.sites), f64::from(launch.sites));
            a.max(b) / a.min(b)
        };
        let near = known.iter().filter(|(key, _)| same(key)).map(|(key, known)| (ratio(key), known.entry.shape));
        near.filter(|(ratio, _)| *ratio <= 1.5).min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, shape)| shape)
    }

    /// All launches that were asked for and are tuned.
    pub fn report(&self) -> Vec<Tuned> {
        let known = self.known();
        let asked = known.iter().filter(|(_, known)| known.asked);
        asked.map(|(key, k)| Tuned { launch: key.clone(), entry: k.entry.clone(), fresh: k.fresh }).collect()
    }

    /// Adds what was measured since the last call to the file, and says how many entries that were. Only a tuner that
    /// searches has any; without them no file is touched.
    pub fn save(&self) -> Result<usize, CacheError> {
        let (Mode::Search { retune }, Some(path), Some(device)) = (self.mode(), self.path(), &self.device) else {
            return Ok(0);
        };
        let mut known = self.known();
        let new = known.iter().filter(|(_, known)| !known.saved);
        let new: Vec<_> = new.map(|(key, known)| (key.clone(), known.entry.clone())).collect();
        if new.is_empty() {
            return Ok(0);
        }
        let count = new.len();
        TuneCache::add_to_file(path, device, new, retune)?;
        known.values_mut().for_each(|known| known.saved = true);
        Ok(count)
    }
}

/// Folders for tests, removed when they are dropped.
#[cfg(test)]
mod tempdir {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    pub struct TestFolder(pub PathBuf);
    impl TestFolder {
        pub fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("ferrite-tune-{}-{number}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            TestFolder(folder)
        }
    }
    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests;
