//! The file of a configuration that a result is made of.
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Length and time of change of a file: where both are as noted, the file need not be read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Bytes of the file.
    pub bytes: u64,
    /// Time at which it was last written, in nanoseconds since 1970, as text because such numbers do not fit into a double.
    #[serde(rename = "modified_ns")]
    pub modified: String,
}

/// What a file held when a result was made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Length and time of change.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// CRC-32 of all its bytes.
    pub crc32: String,
}

impl Content {
    /// Returns whether both have the same bytes, by length and checksum.
    pub fn is_of_same_bytes(&self, other: &Self) -> bool {
        self.stamp.bytes == other.stamp.bytes && self.crc32 == other.crc32
    }
}

impl Stamp {
    /// Returns the stamp of a file at present.
    ///
    /// # Errors
    /// The error of the system.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let about = std::fs::metadata(path)?;
        Ok(Stamp { bytes: about.len(), modified: nanoseconds(about.modified()?).to_string() })
    }
    /// Returns whether the file was written after a time.
    pub fn is_after(&self, time: SystemTime) -> bool {
        self.modified.parse::<u128>().is_ok_and(|modified| modified > nanoseconds(time))
    }
}

fn nanoseconds(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}
