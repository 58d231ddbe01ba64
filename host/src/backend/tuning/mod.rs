//! Measured launch parameters: the number of threads in a block of each kernel, and their distribution over right-hand
//! sides.
//!
//! The best [`Shape`] depends on the kernel, its precision and reconstruction, the number of sites and right-hand
//! sides, and the device. [`Tuner`] holds the measurements for a device, from a [file](cache::TuneCache) that
//! `ferrite tune` fills and every other run only reads; [`tune`](crate::tune) launches the kernels to be measured. The tuner
//! does not depend on CUDA: a device is a function that returns the time of a launch.
//!
//! **A shape never changes a result.** Threads of these kernels are independent of each other. Reductions are not
//! tuned, neither their threads nor their blocks, because both determine the order of the sums: a run would give other
//! bits after tuning, or on another machine.
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

/// Mode of a tuner: whether it uses earlier measurements, and whether it makes new ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No tuning: launches have their default parameters, and no file is read or written.
    Off,
    /// Use of earlier measurements, else of the default. Nothing is measured, and no file is written.
    #[default]
    Use,
    /// Measurement of launches that have no entry. Launches are repeated, which leaves meaningless numbers in the fields:
    /// for scratch fields only.
    Search {
        /// Whether to repeat existing measurements, and to replace a file that is damaged or of another version.
        retune: bool,
    },
}

/// Settings for the tuning of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Mode of the tuner.
    pub mode: Mode,
    /// Path of the cache file; `None` for no file, and therefore no earlier measurements.
    pub cache: Option<PathBuf>,
}

impl Tuning {
    /// Returns settings with the cache file of this user, see [`default_path`]; without a file for [`Mode::Off`].
    pub fn new(mode: Mode) -> Self {
        let cache = if mode == Mode::Off { None } else { default_path() };
        Tuning { mode, cache }
    }
}
impl Default for Tuning {
    /// Returns settings for the use of earlier measurements.
    fn default() -> Self {
        Self::new(Mode::default())
    }
}

/// State of one kind of launch in a tuner.
struct Known {
    entry: Entry,
    /// Whether this tuner has measured the entry.
    fresh: bool,
    saved: bool,
    asked: bool,
}

/// A launch that was tuned, see [`Tuner::report`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Kind of launch.
    pub launch: LaunchKey,
    /// Measurements of the launch.
    pub entry: Entry,
    /// Whether this tuner has measured the entry; otherwise the entry is from the file.
    pub fresh: bool,
}

/// Shapes of thread blocks for one device.
pub struct Tuner {
    tuning: Tuning,
    device: Option<DeviceKey>,
    problem: Option<CacheError>,
    known: Mutex<BTreeMap<LaunchKey, Known>>,
}

impl Tuner {
    /// Makes a tuner that returns defaults, and neither reads nor writes a file.
    pub fn off() -> Self {
        Tuner { tuning: Tuning { mode: Mode::Off, cache: None }, device: None, problem: None, known: Mutex::default() }
    }
    /// Reads the measurements of `device`. In [`Mode::Use`], a file that cannot be used is not an error: the tuner then has no
    /// measurements, and [`problem`](Self::problem) returns the reason. In [`Mode::Search`] it is an error, unless the file is
    /// damaged or of another version and may be replaced.
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
                // An unwritable file is reported now, not after all measurements.
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

    /// Returns the mode of the tuner.
    pub fn mode(&self) -> Mode {
        self.tuning.mode
    }
    /// Returns the path of the cache file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.tuning.cache.as_deref()
    }
    /// Returns the reason why the file could not be used, for a warning.
    pub fn problem(&self) -> Option<&CacheError> {
        self.problem.as_ref()
    }
    fn known(&self) -> MutexGuard<'_, BTreeMap<LaunchKey, Known>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the shape of blocks for `launch`: the measured one, for this number of sites or the nearest, if it is among
    /// `candidates`, else `default`. A tuner that searches measures a launch without a valid entry instead: `measure` returns the
    /// seconds of a launch with a shape. A candidate for which `measure` fails, or returns no positive number, does not win;
    /// the search fails if there is no other.
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

    /// Returns the shape that was measured for the nearest number of sites, which may differ by a factor of up to 1.5: a
    /// process of a partitioned lattice launches the interior by itself, which has fewer sites than were tuned.
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

    /// Returns all launches that were requested and have an entry.
    pub fn report(&self) -> Vec<Tuned> {
        let known = self.known();
        let asked = known.iter().filter(|(_, known)| known.asked);
        asked.map(|(key, k)| Tuned { launch: key.clone(), entry: k.entry.clone(), fresh: k.fresh }).collect()
    }

    /// Adds the measurements since the last call to the file, and returns the number of these entries. Only a tuner that
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
