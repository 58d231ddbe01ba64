//! A file of approximations, so that each approximation is computed only once.

use crate::approximation::lowest_order;
use crate::{Approximation, Error, Interval, Power, approximate};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Name and version of the file format, as written in the file.
const FORMAT: &str = "ferrite.rational/1";

/// Content of the cache file, in JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheFile<T> {
    format: String,
    approximations: Vec<T>,
}

/// A file of approximations, each identified by function, interval and order.
///
/// Every entry is checked when the file is opened. A computed entry is written at once, first under a temporary name,
/// so that the file is complete at any time. If several processes share a file, let only one of them open it.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    entries: Vec<Approximation>,
}

impl Cache {
    /// Reads a cache file. A file that does not exist gives an empty cache.
    ///
    /// # Errors
    /// Returns [`Error::Cache`] if the file cannot be read or has another format, or if the error of an entry on its
    /// interval differs from the recorded one.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let fail = |reason: String| Error::Cache { path: path.clone(), reason };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self { path, entries: Vec::new() }),
            Err(error) => return Err(fail(format!("cannot be read: {error}"))),
        };
        let again = "delete the file to compute its approximations again";
        let file: CacheFile<serde_json::Value> = serde_json::from_str(&text)
            .map_err(|error| fail(format!("is not a file of approximations ({error}); {again}")))?;
        if file.format != FORMAT {
            return Err(fail(format!("has the format `{}`, but this version reads `{FORMAT}`; {again}", file.format)));
        }
        let entry = |(index, value)| {
            serde_json::from_value(value).map_err(|error| fail(format!("entry {index}: {error}; or {again}")))
        };
        let entries = file.approximations.into_iter().enumerate().map(entry).collect::<Result<_, Error>>()?;
        Ok(Self { path, entries })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all approximations of the cache, in the order in which they were computed.
    pub fn entries(&self) -> &[Approximation] {
        &self.entries
    }

    /// Returns the approximation from the cache, or computes and stores it. For f = x^p, an entry on another interval
    /// with the same ratio b/a is scaled, which is equally accurate.
    ///
    /// # Errors
    /// Returns the errors of [`approximate`](crate::approximate()), and [`Error::Cache`] if the file cannot be written.
    pub fn approximate(&mut self, function: &Power, interval: Interval, order: usize) -> Result<Approximation, Error> {
        let same = |entry: &&Approximation| entry.order() == order && entry.function() == function;
        let mut candidates = self.entries.iter().filter(same);
        if let Some(entry) = candidates.clone().find(|entry| entry.interval() == interval) {
            return Ok(entry.clone());
        }
        let ratio = |entry: &&Approximation| (entry.interval().ratio() / interval.ratio() - 1.0).abs() < 1e-12;
        if let Some(moved) = candidates.find(ratio).and_then(|entry| entry.covering(interval).ok()) {
            return Ok(moved);
        }
        let computed = approximate(function, interval, order)?;
        self.entries.push(computed.clone());
        self.write()?;
        Ok(computed)
    }

    /// Computes the same result as [`approximate_to`](crate::approximate_to); the cache supplies or stores each order
    /// that is tried.
    ///
    /// # Errors
    /// Returns the errors of [`approximate_to`](crate::approximate_to), and [`Error::Cache`] if the file cannot be
    /// written.
    pub fn approximate_to(
        &mut self,
        function: &Power,
        interval: Interval,
        tolerance: f64,
    ) -> Result<Approximation, Error> {
        lowest_order(function, interval, tolerance, |order| self.approximate(function, interval, order))
    }

    fn write(&self) -> Result<(), Error> {
        let fail = |reason: String| Error::Cache { path: self.path.clone(), reason };
        let file = CacheFile { format: FORMAT.to_string(), approximations: self.entries.iter().collect::<Vec<_>>() };
        let text = serde_json::to_string_pretty(&file).map_err(|error| fail(format!("cannot be written: {error}")))?;
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let temporary = PathBuf::from(name);
        let written = fs::File::create(&temporary)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.write_all(b"\n")?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, &self.path));
        written.map_err(|error| {
            // Only the first error is reported, so an error here is ignored.
            let _ = fs::remove_file(&temporary);
            fail(format!("cannot be written: {error}"))
        })
    }
}
