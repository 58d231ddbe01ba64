//! What a file held when a result was made of it, as results note it.
use serde_json::{Value, json};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Length and time of change of a file, which tell without reading it that it is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was last written, in nanoseconds since 1970; as text, because such numbers do not fit into a double.
    pub modified: String,
}

/// What a file held when a result was made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its length and time.
    pub stamp: Stamp,
    /// CRC-32 of all its bytes.
    pub crc32: String,
}

impl Content {
    /// For a file of results.
    pub fn json(&self) -> Value {
        let Content { stamp: Stamp { bytes, modified }, crc32 } = self;
        json!({ "bytes": bytes, "crc32": crc32, "modified_ns": modified })
    }
    /// From such a file: `Ok(None)` if an earlier version wrote it, which noted the path only.
    ///
    /// # Errors
    /// That it is no such object.
    pub fn from_json(value: &Value) -> Result<Option<Self>, String> {
        if value.is_null() {
            return Ok(None);
        }
        let text = |key: &str| value[key].as_str().map(String::from);
        let found = || {
            let stamp = Stamp { bytes: value["bytes"].as_u64()?, modified: text("modified_ns")? };
            Some(Content { stamp, crc32: text("crc32")? })
        };
        found().map(Some).ok_or_else(|| "content is not an object of bytes, crc32 and modified_ns".into())
    }
    /// Whether both hold the same bytes, as far as length and checksum tell.
    pub fn is_of_same_bytes(&self, other: &Self) -> bool {
        self.stamp.bytes == other.stamp.bytes && self.crc32 == other.crc32
    }
}

impl Stamp {
    /// Of a file as it is.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let about = std::fs::metadata(path)?;
        Ok(Stamp { bytes: about.len(), modified: nanoseconds(about.modified()?).to_string() })
    }
    /// Whether the file was written after a time.
    pub fn is_after(&self, time: SystemTime) -> bool {
        self.modified.parse::<u128>().is_ok_and(|modified| modified > nanoseconds(time))
    }
}

fn nanoseconds(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}
