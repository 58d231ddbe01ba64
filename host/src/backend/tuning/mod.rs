//! Measured launch parameters of kernels: the number of threads in a block, and their distribution over sites and
//! right-hand sides.
//!
//! The best [`Shape`] depends on the kernel, its precision and reconstruction, the numbers of sites and right-hand
//! sides, and the device. [`Tuner`] holds the measurements for a device, which come from a [file](cache::TuneCache).
//! `ferrite tune` fills the file, and other runs only read it. The module [`tune`](crate::tune) launches the kernels to be
//! measured. The tuner does not depend on CUDA: it calls a function that returns the time of a launch.
//!
//! **A shape never changes a result.** Threads of tuned kernels are independent of each other. Reductions are not
//! tuned, because their threads and blocks determine the order of sums: a run would give other bits after tuning, or on
//! another machine.
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
    /// Tuning is off: launches have default parameters, and no file is read or written.
    Off,
    /// Earlier measurements are used if they exist, otherwise default parameters. Nothing is measured, and no file is written.
    #[default]
    Use,
    /// Launches without an entry are measured. Measurements repeat launches and leave meaningless numbers in the fields, so use scratch
    /// fields only.
    Search {
        /// Whether to repeat existing measurements, and to replace a file that is damaged or of another version.
        retune: bool,
    },
}

/// Settings for tuning a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Mode of the tuner.
    pub mode: Mode,
    /// Path of the cache file; `None` for no file, and therefore no earlier measurements.
    pub cache: Option<PathBuf>,
}

impl Tuning {
    /// Returns settings with the given mode and the user's cache file, see [`default_path`]; for [`Mode::Off`], settings without a file.
    pub fn new(mode: Mode) -> Self {
        let cache = if mode == Mode::Off { None } else { default_path() };
        Tuning { mode, cache }
    }
}
impl Default for Tuning {
    /// Returns settings for [`Mode::Use`] with the user's cache file.
    fn default() -> Self {
        Self::new(Mode::default())
    }
}

/// Entry of one kind of launch in a tuner, with its state.
struct Known {
    entry: Entry,
    /// Whether this tuner has measured the entry.
    fresh: bool,
    saved: bool,
    asked: bool,
}

/// A launch that a program has requested, with its measurements; see [`Tuner::report`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Key of the launch.
    pub launch: LaunchKey,
    /// Measurements of the launch.
    pub entry: Entry,
    /// Whether this tuner has measured the entry; otherwise the entry is from the file.
    pub fresh: bool,
}

/// Tuner of one device: it chooses the shapes of thread blocks.
pub struct Tuner {
    tuning: Tuning,
    device: Option<DeviceKey>,
    problem: Option<CacheError>,
    known: Mutex<BTreeMap<LaunchKey, Known>>,
}

impl Tuner {
    /// Makes a tuner that always chooses the default, and neither reads nor writes a file.
    pub fn off() -> Self {
        Tuner { tuning: Tuning { mode: Mode::Off, cache: None }, device: None, problem: None, known: Mutex::default() }
    }
    /// Opens a tuner with the measurements of `device` in the cache file. In [`Mode::Use`], a tuner whose file cannot be used has no
    /// measurements, and [`problem`](Self::problem) returns the reason. In [`Mode::Search`], a file that cannot be used is an error; if
    /// `retune` is set, however, a file that is damaged or of another version is accepted, and will be replaced.
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
    /// Returns the path of the cache file; `None` if the tuner has no file.
    pub fn path(&self) -> Option<&Path> {
        self.tuning.cache.as_deref()
    }
    /// Returns the reason why the cache file cannot be used, for a warning; `None` if it can be used.
    pub fn problem(&self) -> Option<&CacheError> {
        self.problem.as_ref()
    }
    fn known(&self) -> MutexGuard<'_, BTreeMap<LaunchKey, Known>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the shape of blocks for `launch`, always `default` in [`Mode::Off`]. An earlier measurement determines the shape if the
    /// measured shape is among `candidates` or is the default. Without such a measurement, [`Mode::Search`] measures the launch: `measure`
    /// returns the seconds of a launch with a given shape. [`Mode::Use`] instead takes the candidate that was measured for the nearest
    /// number of sites, or `default` if there is none.
    ///
    /// # Errors
    /// Fails if a search finds no shape for which `measure` returns a positive number.
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

    /// Returns the shape that was measured for the nearest number of sites, which may differ by a factor of up to 1.5. For example, a
    /// process of a partitioned lattice launches the interior alone, which has fewer sites than were tuned.
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

    /// Returns all launches that were requested and have an entry, with their measurements.
    pub fn report(&self) -> Vec<Tuned> {
        let known = self.known();
        let asked = known.iter().filter(|(_, known)| known.asked);
        asked.map(|(key, k)| Tuned { launch: key.clone(), entry: k.entry.clone(), fresh: k.fresh }).collect()
    }

    /// Adds the measurements since the last call to the cache file, and returns their number. Without new measurements the file is not
    /// touched. Only [`Mode::Search`] makes measurements.
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
