//! Record of passed tests and of the files that they read: if none of these has changed since, the test is not
//! repeated.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Names of passed tests, each with the state of the files that it read.
pub struct Passed {
    file: PathBuf,
    known: BTreeMap<String, String>,
}

impl Passed {
    /// Reads `target/tests-passed.json`; empty if the file cannot be read, or if everything is to run `again`.
    pub fn read(target: &Path, again: bool) -> Self {
        let file = target.join("tests-passed.json");
        let text = if again { None } else { fs::read_to_string(&file).ok() };
        let known = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Self { file, known }
    }

    /// Runs `work`, unless it passed before with the same `state`, if that is known; records that it passed.
    pub fn unless_same(&mut self, name: &str, state: Option<String>, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if state.is_some() && self.known.get(name) == state.as_ref() {
            println!("{name}: passed before, and its inputs have not changed since; --again runs it");
            return Ok(());
        }
        // Work that is interrupted or fails has not passed.
        if self.known.remove(name).is_some() {
            self.write()?;
        }
        work()?;
        let Some(state) = state else { return Ok(()) };
        self.known.insert(name.to_string(), state);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let fresh = self.file.with_extension("json.new");
        let text = serde_json::to_string_pretty(&json!(self.known))?;
        fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &self.file)).context(
            "the passed tests cannot be \
                                                                                       recorded",
        )
    }
}

/// Returns the state of files and folders, including files at any depth: name, length and modification time of each. A
/// missing file has a state too.
pub fn state_of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<String> {
    let mut lines = Vec::new();
    for path in paths {
        add(path, &mut lines)?;
    }
    Ok(Value::from(lines).to_string())
}

fn add(path: &Path, lines: &mut Vec<String>) -> Result<()> {
    let Ok(data) = fs::metadata(path) else {
        lines.push(format!("{}: none", path.display()));
        return Ok(());
    };
    if !data.is_dir() {
        let changed = data.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        lines.push(format!("{}: {} {changed}", path.display(), data.len()));
        return Ok(());
    }
    let entries = path.read_dir().with_context(|| format!("{} cannot be read", path.display()))?;
    let mut entries = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| add(entry, lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::cell::Cell;

    /// Scratch folder that is removed at the end.
    struct ScratchFolder(PathBuf);

    impl ScratchFolder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("ferrite-passed-{name}-{}", std::process::id()));
            fs::create_dir_all(folder.join("data/deep")).unwrap();
            Self(folder)
        }
    }

    impl Drop for ScratchFolder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn only_what_passed_with_the_same_files_is_left_out() {
        let folder = ScratchFolder::new("same");
        let data = folder.0.join("data");
        fs::write(data.join("deep/a"), "1").unwrap();
        let runs = Cell::new(0);
        let run = |again: bool, passes: bool| {
            let state = state_of([data.as_path(), &folder.0.join("missing")]).unwrap();
            let work = || {
                runs.set(runs.get() + 1);
                if passes { Ok(()) } else { bail!("no") }
            };
            Passed::read(&folder.0, again).unless_same("all", Some(state), work).is_ok()
        };
        assert!(run(false, true) && run(false, true));
        assert_eq!(runs.get(), 1);
        assert!(run(true, true));
        assert_eq!(runs.get(), 2);
        // Another length, another file, a file that did not exist before.
        for (changed, text) in [("data/deep/a", "12"), ("data/b", ""), ("missing", "")] {
            fs::write(folder.0.join(changed), text).unwrap();
            let before = runs.get();
            assert!(run(false, true) && run(false, true), "{changed}");
            assert_eq!(runs.get(), before + 1, "{changed}");
        }
        // Failed work does not count as passed, even with the files that it read before.
        fs::write(data.join("b"), "wrong").unwrap();
        assert!(!run(false, false));
        fs::write(data.join("b"), "").unwrap();
        let before = runs.get();
        assert!(run(false, true));
        assert_eq!(runs.get(), before + 1);
        fs::write(folder.0.join("tests-passed.json"), "{").unwrap();
        assert!(run(false, true));
        assert_eq!(runs.get(), before + 2);
    }
}
