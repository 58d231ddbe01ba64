//! Identity of the configuration file from which a result was computed.
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Length and modification time of a file. If both are unchanged, the file need not be read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Time of the last write in nanoseconds since 1970, as text because a JSON number in double precision cannot hold
    /// all digits.
    #[serde(rename = "modified_ns")]
    pub modified: String,
}

/// Length, modification time and checksum of a file from which a result was computed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentRecord {
    /// Length and modification time of the file.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// CRC-32 of all bytes of the file.
    pub crc32: String,
}

impl ContentRecord {
    /// Returns whether the files of both records have the same length and checksum, and therefore the same bytes.
    pub fn is_of_same_bytes(&self, other: &Self) -> bool {
        self.stamp.bytes == other.stamp.bytes && self.crc32 == other.crc32
    }
}

impl Stamp {
    /// Returns the current length and modification time of a file.
    ///
    /// # Errors
    /// Fails if the operating system cannot examine the file.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let about = std::fs::metadata(path)?;
        Ok(Stamp { bytes: about.len(), modified: nanoseconds(about.modified()?).to_string() })
    }
    /// Returns whether the file was written after `time`.
    pub fn is_after(&self, time: SystemTime) -> bool {
        self.modified.parse::<u128>().is_ok_and(|modified| modified > nanoseconds(time))
    }
}

fn nanoseconds(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}
