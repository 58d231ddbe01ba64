//! Cache file of the tuner. It is JSON with one line for each launch, sorted, so that it can be read, compared and searched with any tool.
use super::Shape;
use super::key::{DeviceKey, LaunchKey};
use crate::system::atomic::{self, SystemError, WriteError};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Value of the key `format`, which identifies the file.
const FORMAT: &str = "ferrite tune cache";
/// Version of the file format: the only one that is written or read.
pub const VERSION: u64 = 2;

/// Reason why a tune cache cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// No environment variable determines the path of the cache.
    #[error("the tune cache has no path: set FERRITE_TUNE_CACHE to the name of a file, or set HOME")]
    NoPlace,
    /// The file cannot be read.
    #[error(
        "the tune cache {} cannot be read: {source}; name another file with FERRITE_TUNE_CACHE, or disable tuning with \
         --tuning off", path.display()
    )]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a tune cache, or is damaged.
    #[error(
        "{} is not a complete tune cache: {why}; remove the file, replace it with `ferrite tune --retune`, or name \
         another file with FERRITE_TUNE_CACHE", path.display()
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the fault.
        why: String,
    },
    /// The file was written by another version of the program.
    #[error(
        "{} is a tune cache of version {version}, but this program reads version {VERSION}: replace it with `ferrite \
         tune --retune`, or name another file with FERRITE_TUNE_CACHE", path.display()
    )]
    OtherVersion {
        /// Path of the file.
        path: PathBuf,
        /// Version in the file.
        version: u64,
    },
    /// The file cannot be written.
    #[error("the tune cache {} cannot be written: {why}; name another file with FERRITE_TUNE_CACHE", path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the failure.
        why: String,
    },
}

/// Measurements of one kind of launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Shape of the thread blocks that tuning has chosen.
    pub shape: Shape,
    /// Shape of the thread blocks that launches have without tuning.
    pub default: Shape,
    /// Shortest measured time of a launch in microseconds for every candidate shape; `None` for a shape without a valid measurement.
    pub microseconds: BTreeMap<Shape, Option<f64>>,
    /// Date and time of the measurement, in UTC.
    pub measured: String,
}

impl Entry {
    /// Returns the time of a launch with the chosen shape, in microseconds; `None` if that shape has no time.
    pub fn best_microseconds(&self) -> Option<f64> {
        self.microseconds.get(&self.shape).copied().flatten()
    }
    /// Returns the time of a launch with the shape without tuning, in microseconds; `None` if that shape has no time.
    pub fn default_microseconds(&self) -> Option<f64> {
        self.microseconds.get(&self.default).copied().flatten()
    }
    /// Returns the speed-up by tuning: time without tuning / time with tuning; `None` if one of the times is missing.
    pub fn gain(&self) -> Option<f64> {
        Some(self.default_microseconds()? / self.best_microseconds()?)
    }
}

/// Contents of a tune cache: measurements for any number of devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuneCache {
    devices: BTreeMap<DeviceKey, BTreeMap<LaunchKey, Entry>>,
}

/// Returns the path of the cache file: `$FERRITE_TUNE_CACHE`, otherwise `$XDG_CACHE_HOME/ferrite/tune.json`, otherwise
/// `~/.cache/ferrite/tune.json`; `None` if none of the environment variables is set.
pub fn default_path() -> Option<PathBuf> {
    path_from(|name| std::env::var_os(name))
}

fn path_from(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = path("FERRITE_TUNE_CACHE") {
        return Some(file);
    }
    // By convention, XDG_CACHE_HOME is ignored if it is a relative path.
    let folder = path("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
    Some(folder.or_else(|| Some(path("HOME")?.join(".cache")))?.join("ferrite").join("tune.json"))
}

impl TuneCache {
    /// Reads a tune cache from a file. If the file is missing or empty, the cache has no entries.
    pub fn read(path: &Path) -> Result<Self, CacheError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(CacheError::Unreadable { path: path.into(), source }),
        };
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let damaged = |why: String| CacheError::Damaged { path: path.into(), why };
        let file: Value = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if file["format"] != FORMAT {
            return Err(damaged(format!("the key \"format\" with the value \"{FORMAT}\" is missing")));
        }
        match u64::deserialize(&file["version"]) {
            Ok(VERSION) => serde_path_to_error::deserialize::<_, CacheRecord>(&file)
                .map(Self::from)
                .map_err(|why| damaged(why.to_string())),
            Ok(version) => Err(CacheError::OtherVersion { path: path.into(), version }),
            Err(_) if file["version"].is_null() => Err(damaged("the key \"version\" is missing".into())),
            Err(_) => Err(damaged(format!("the key \"version\" is {}, not the number {VERSION}", file["version"]))),
        }
    }

    /// Returns the entries of one device, each with its key.
    pub fn of(&self, device: &DeviceKey) -> impl Iterator<Item = (&LaunchKey, &Entry)> {
        self.devices.get(device).into_iter().flatten()
    }
    /// Returns the total number of entries for all devices.
    pub fn len(&self) -> usize {
        self.devices.values().map(BTreeMap::len).sum()
    }
    /// Whether the cache has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Adds entries for a device to the cache; an entry replaces an older one of the same launch.
    pub fn add(&mut self, device: &DeviceKey, entries: impl IntoIterator<Item = (LaunchKey, Entry)>) {
        self.devices.entry(device.clone()).or_default().extend(entries);
    }

    /// Adds entries to the file at `path` and keeps its other entries, including those that another process has added meanwhile. A file
    /// that is damaged or of another version is an error, unless `replace` is set; its content is then discarded.
    pub fn add_to_file(
        path: &Path,
        device: &DeviceKey,
        entries: impl IntoIterator<Item = (LaunchKey, Entry)>,
        replace: bool,
    ) -> Result<(), CacheError> {
        let lock = prepare(path)?;
        // Some network file systems cannot lock. The file is complete even then, but if two processes write at the same moment, the entries
        // of one of them may be lost.
        let _ = lock.lock();
        let mut cache = match Self::read(path) {
            Err(CacheError::Damaged { .. } | CacheError::OtherVersion { .. }) if replace => Self::default(),
            other => other?,
        };
        cache.add(device, entries);
        let text = cache.to_json();
        atomic::write(path, |file| Ok(file.write_all(text.as_bytes()).map_err(SystemError::of("write"))?))
            .map_err(|error: WriteError| CacheError::Unwritable { path: path.into(), why: error.to_string() })
    }

    /// Returns the contents as JSON text.
    fn to_json(&self) -> String {
        let mut out = format!("{{\n  \"format\": {},\n  \"version\": {VERSION},\n  \"devices\": [", quoted(FORMAT));
        for (i, (key, entries)) in self.devices.iter().enumerate() {
            out += if i == 0 { "\n    {\n" } else { ",\n    {\n" };
            for (name, value) in [("device", &key.device), ("driver", &key.driver), ("kernels", &key.kernels)] {
                let _ = writeln!(out, "      \"{name}\": {},", quoted(value));
            }
            out += "      \"launches\": [";
            for (j, (launch, entry)) in entries.iter().enumerate() {
                out += if j == 0 { "\n        " } else { ",\n        " };
                let times: Vec<String> = entry
                    .microseconds
                    .iter()
                    .map(|(shape, time)| {
                        format!("\"{shape}\": {}", time.map_or("null".into(), |t| format!("{:.3}", t.max(1e-3))))
                    })
                    .collect();
                let _ = write!(
                    out,
                    "{{\"kernel\": {}, \"sites\": {}, \"nrhs\": {}, \"shape\": \"{}\", \"default\": \"{}\", \
                     \"microseconds\": {{{}}}, \"measured\": {}}}",
                    quoted(&launch.kernel),
                    launch.sites,
                    launch.nrhs,
                    entry.shape,
                    entry.default,
                    times.join(", "),
                    quoted(&entry.measured)
                );
            }
            out += if entries.is_empty() { "]\n    }" } else { "\n      ]\n    }" };
        }
        out += if self.devices.is_empty() { "]\n}\n" } else { "\n  ]\n}\n" };
        out
    }
}

/// Creates the folder of the cache, and opens the lock file that writers hold while they change the cache.
pub(super) fn prepare(path: &Path) -> Result<File, CacheError> {
    let unwritable = |why: String| CacheError::Unwritable { path: path.into(), why };
    let name = path.file_name().ok_or_else(|| unwritable("the path does not name a file".into()))?;
    // The cache is replaced by renaming, which would turn a device file into a regular file.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(unwritable("the path is not a regular file".into()));
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|error| unwritable(format!("the folder cannot be created: {error}")))?;
    }
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".lock");
    let lock = File::options().write(true).create(true).truncate(false).open(path.with_file_name(hidden));
    lock.map_err(|error| unwritable(format!("no lock file can be created in the folder: {error}")))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Contents of a tune-cache file.
#[derive(Deserialize)]
struct CacheRecord {
    devices: Vec<DeviceRecord>,
}

/// Entries of one device, as they stand in the file.
#[derive(Deserialize)]
struct DeviceRecord {
    device: String,
    driver: String,
    kernels: String,
    launches: Vec<CachedLaunch>,
}

/// Entry of a launch, as it stands in the file.
#[derive(Deserialize)]
struct CachedLaunch {
    kernel: String,
    sites: u32,
    nrhs: u32,
    shape: Shape,
    default: Shape,
    microseconds: BTreeMap<Shape, Option<Microseconds>>,
    measured: String,
}

/// A time in microseconds; it must be above 0.
struct Microseconds(f64);

impl<'de> Deserialize<'de> for Microseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = f64::deserialize(deserializer)?;
        if time > 0.0 { Ok(Microseconds(time)) } else { Err(D::Error::custom("a time is not above 0")) }
    }
}

impl From<CacheRecord> for TuneCache {
    fn from(file: CacheRecord) -> Self {
        let mut cache = TuneCache::default();
        for DeviceRecord { device, driver, kernels, launches } in file.devices {
            cache.add(&DeviceKey { device, driver, kernels }, launches.into_iter().map(CachedLaunch::into_entry));
        }
        cache
    }
}

impl CachedLaunch {
    fn into_entry(self) -> (LaunchKey, Entry) {
        let CachedLaunch { kernel, sites, nrhs, shape, default, microseconds, measured } = self;
        let microseconds = microseconds.into_iter().map(|(shape, time)| (shape, time.map(|time| time.0))).collect();
        (LaunchKey { kernel, sites, nrhs }, Entry { shape, default, microseconds, measured })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn device(name: &str) -> DeviceKey {
        DeviceKey { device: name.into(), driver: "13.0".into(), kernels: "0badcafe-17".into() }
    }
    fn launch(kernel: &str) -> LaunchKey {
        LaunchKey { kernel: kernel.into(), sites: 4096, nrhs: 2 }
    }
    fn entry(block: u32) -> Entry {
        let times = [(32, Some(14.25)), (128, Some(12.5)), (512, None)];
        let microseconds = times.into_iter().map(|(block, time)| (Shape::from(block), time)).collect();
        Entry { shape: block.into(), default: 128.into(), microseconds, measured: "2026-11-21 10:00:00 UTC".into() }
    }
    fn file() -> (tempdir::TestFolder, PathBuf) {
        let folder = tempdir::TestFolder::new();
        let path = folder.0.join("deep").join("tune.json");
        (folder, path)
    }
    use crate::backend::tuning::tempdir;

    #[test]
    fn what_is_written_is_read_again() {
        let (_folder, path) = file();
        assert_eq!(TuneCache::read(&path).unwrap(), TuneCache::default());
        let (one, other) = (device("A \"quoted\" GPU"), device("Z"));
        TuneCache::add_to_file(&path, &one, [(launch("b"), entry(32)), (launch("a"), entry(128))], false).unwrap();
        // A second writer adds to the existing entries and replaces those that it has measured again.
        TuneCache::add_to_file(&path, &other, [(launch("a"), entry(32))], false).unwrap();
        TuneCache::add_to_file(&path, &one, [(launch("a"), entry(32))], false).unwrap();
        let cache = TuneCache::read(&path).unwrap();
        assert_eq!(cache.len(), 3);
        let of_one: Vec<_> = cache.of(&one).map(|(key, entry)| (key.kernel.as_str(), entry.clone())).collect();
        assert_eq!(of_one, [("a", entry(32)), ("b", entry(32))]);
        // One line per launch, numbers of threads in order, and only the lock beside it.
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.contains("\"kernel\"")).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains(r#""microseconds": {"32": 14.250, "128": 12.500, "512": null}"#), "{text}");
        let mut names: Vec<_> = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [".tune.json.lock", "tune.json"]);
        assert_eq!(TuneCache::default().to_json().parse::<Value>().unwrap()["devices"], serde_json::json!([]));
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let (_folder, path) = file();
        std::thread::scope(|scope| {
            for k in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for i in 0..4 {
                        let key = launch(&format!("kernel_{k}_{i}"));
                        TuneCache::add_to_file(path, &device("A"), [(key, entry(32))], false).unwrap();
                    }
                });
            }
        });
        assert_eq!(TuneCache::read(&path).unwrap().len(), 32);
    }

    #[test]
    fn files_that_are_no_caches_are_distinguished() {
        let (_folder, path) = file();
        TuneCache::add_to_file(&path, &device("A"), [(launch("a"), entry(32))], false).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        for (bad, part) in [
            (good[..good.len() / 2].to_string(), "line"),
            (good.replace(FORMAT, "shopping list"), "format"),
            (good.replace("\"version\": 2", "\"version\": \"two\""), "version"),
            (good.replace("\"shape\": \"32\"", "\"shape\": \"-32\""), "devices[0].launches[0].shape"),
            (good.replace("14.250", "-14.250"), "microseconds.32"),
            (good.replace("\"128\": 12.5", "\"many\": 12.5"), "microseconds.many"),
            (good.replace("\"driver\": \"13.0\"", "\"driver\": 13.0"), "devices[0].driver"),
            (good.replace("launches", "lunches"), "devices[0]: missing field `launches`"),
            ("[]".into(), "format"),
        ] {
            fs::write(&path, &bad).unwrap();
            let error = TuneCache::read(&path).unwrap_err();
            assert!(matches!(error, CacheError::Damaged { .. }), "{error}");
            let message = error.to_string();
            assert!(
                message.contains(part) && message.contains("tune.json") && message.contains("--retune"),
                "{message}"
            );
            // The file is overwritten only on request.
            TuneCache::add_to_file(&path, &device("A"), [(launch("a"), entry(32))], false).unwrap_err();
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
            TuneCache::add_to_file(&path, &device("A"), [(launch("a"), entry(32))], true).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), good);
        }
        fs::write(&path, good.replace("\"version\": 2", "\"version\": 1")).unwrap();
        let message = TuneCache::read(&path).unwrap_err().to_string();
        assert!(message.contains("version 2") && message.contains("version 1"), "{message}");
        // `mktemp` creates an empty file.
        fs::write(&path, "\n").unwrap();
        assert!(TuneCache::read(&path).unwrap().is_empty());
    }

    #[test]
    fn places_that_cannot_be_written() {
        let (_folder, path) = file();
        fs::create_dir_all(&path).unwrap();
        assert!(matches!(TuneCache::read(&path), Err(CacheError::Unreadable { .. })));
        let add = |path: &Path| TuneCache::add_to_file(path, &device("A"), [(launch("a"), entry(32))], true);
        assert!(add(&path).unwrap_err().to_string().contains("not a regular file"));
        let file = path.parent().unwrap().join("file");
        fs::write(&file, "").unwrap();
        assert!(add(&file.join("tune.json")).unwrap_err().to_string().contains("folder"));
        assert!(matches!(add(Path::new("/")), Err(CacheError::Unwritable { .. })));
    }

    #[test]
    fn where_the_cache_is() {
        let path = |variables: &[(&str, &str)]| {
            path_from(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
        };
        let home = ("HOME", "/home/u");
        assert_eq!(path(&[home, ("FERRITE_TUNE_CACHE", "t.json")]), Some("t.json".into()));
        assert_eq!(path(&[home, ("XDG_CACHE_HOME", "/c")]), Some("/c/ferrite/tune.json".into()));
        for ignored in ["", "relative"] {
            let default = Some("/home/u/.cache/ferrite/tune.json".into());
            assert_eq!(path(&[home, ("XDG_CACHE_HOME", ignored), ("FERRITE_TUNE_CACHE", "")]), default);
        }
        assert_eq!(path(&[]), None);
    }
}
