//! Register caps of kernels: `gpu-kernels/registers.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Register caps for each kernel, by the beginning of the text that follows the kernel's name in an entry point.
pub struct Caps(BTreeMap<String, BTreeMap<String, u32>>);

/// Marks of the blockings of right-hand sides, which have separate caps.
const BLOCKINGS: [&str; 2] = ["_rhs_", "_looped_"];
/// Largest number of registers of a thread.
const MOST: u32 = 255;

impl Caps {
    /// Reads the file.
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join("gpu-kernels/registers.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Self::parse(&text).with_context(|| format!("in {}", path.display()))
    }
    fn parse(text: &str) -> Result<Self> {
        let caps: BTreeMap<String, BTreeMap<String, u32>> = toml::from_str(text)?;
        for (kernel, caps) in &caps {
            if let Some((key, cap)) = caps.iter().find(|(_, cap)| !(16..=MOST).contains(*cap)) {
                bail!("[{kernel}] {key} = {cap}: a thread has 16 to {MOST} registers");
            }
        }
        Ok(Caps(caps))
    }
    /// Returns the cap of an entry point, if it has one.
    pub fn of(&self, entry: &str) -> Option<u32> {
        self.found(entry).map(|(.., cap)| cap)
    }
    /// Returns the kernel, the key and the cap of an entry point.
    fn found(&self, entry: &str) -> Option<(&str, &str, u32)> {
        let rest = |kernel: &str| entry.strip_prefix(kernel)?.strip_prefix('_').map(str::to_string);
        let kernels = self.0.iter().filter_map(|(kernel, caps)| Some((kernel, rest(kernel)?, caps)));
        let (kernel, format, caps) = kernels.max_by_key(|(kernel, ..)| kernel.len())?;
        let variant = BLOCKINGS.iter().any(|blocking| format.contains(blocking));
        let fits = |key: &str| {
            let more = format.strip_prefix(key);
            if variant { more == Some("") } else { more.is_some_and(|more| more.is_empty() || more.starts_with('_')) }
        };
        let best = caps.iter().filter(|(key, _)| fits(key)).max_by_key(|(key, _)| key.len());
        best.map(|(key, cap)| (kernel.as_str(), key.as_str(), *cap))
    }
    /// Returns the keys that no entry point uses.
    #[cfg(test)]
    pub fn unused<'a>(&'a self, entries: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut all: Vec<(&str, &str)> = self
            .0
            .iter()
            .flat_map(|(kernel, caps)| caps.keys().map(move |key| (kernel.as_str(), key.as_str())))
            .collect();
        for entry in entries {
            if let Some((kernel, key, _)) = self.found(entry) {
                all.retain(|pair| *pair != (kernel, key));
            }
        }
        all.into_iter().map(|(kernel, key)| format!("[{kernel}] {key}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_key_counts() {
        let caps = Caps::parse(
            "[row]\ndouble = 232\ndouble_8 = 255\ndouble_8_looped_1 = 192\nhalf = 96\n[row_dot]\ndouble = 200\n",
        )
        .unwrap();
        for (entry, cap) in [
            ("row_double_18", Some(232)),
            ("row_double_8", Some(255)),
            ("row_double_8t", Some(232)),
            ("row_double_8_looped_1", Some(192)),
            ("row_double_18_looped_1", None),
            ("row_single_18", None),
            ("row_dot_double_8", Some(200)),
            ("rowing_double", None),
        ] {
            assert_eq!(caps.of(entry), cap, "{entry}");
        }
        assert_eq!(
            caps.unused(["row_double_8", "row_double_18", "row_dot_double_8"].into_iter()),
            ["[row] double_8_looped_1", "[row] half"]
        );
        assert!(Caps::parse("[row]\ndouble = 256\n").is_err());
    }

    #[test]
    fn every_cap_is_of_a_kernel() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let caps = Caps::read(&root).unwrap();
        assert_eq!(caps.unused(gpu_kernels::entry_points().map(|entry| entry.name)), Vec::<String>::new());
        for entry in gpu_kernels::entry_points().filter(|entry| entry.variant) {
            assert!(caps.of(entry.name).is_some(), "{} has no cap in registers.toml", entry.name);
        }
    }
}
