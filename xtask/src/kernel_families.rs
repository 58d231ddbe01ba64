//! Source files of each family of kernels, and the cache of compiled kernels.
//!
//! A family's PTX is identified by the hash of everything that determines it, a cubin by that of its PTX, assembler and
//! architecture. An edit therefore compiles only the families that it affects and assembles the modules that it
//! changes, and another clone of the same source does neither.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use gpu_kernels::Family;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::ptxas::KernelReport;
use crate::registers::Caps;

/// Files at the root of the crate that belong to every family.
const ROOT_FILES: [&str; 4] = ["lib.rs", "instances.rs", "kernel.rs", "format_lists.rs"];
/// Environment variable with the folder of the cache.
const CACHE_VARIABLE: &str = "FERRITE_KERNEL_CACHE";
/// Name of the file that is written last into a folder of the cache, with information on its files.
const NOTES: &str = "notes.json";
/// Time after which unused entries are removed from the cache.
const KEPT: Duration = Duration::from_secs(60 * 24 * 3600);

/// Modules at the root of the kernel crate, with their files and the other modules that these name.
pub struct Sources {
    modules: BTreeMap<String, Module>,
    root: Vec<(String, Vec<u8>)>,
}

struct Module {
    /// Names, relative to the crate's `src`, and contents of the files.
    files: Vec<(String, Vec<u8>)>,
    uses: BTreeSet<String>,
}

impl Sources {
    /// Reads the folder `src` of the crate.
    pub fn read(src: &Path) -> Result<Self> {
        let mut paths = Vec::new();
        list_files(src, &mut paths)?;
        paths.sort();
        let (mut modules, mut root): (BTreeMap<String, Module>, _) = (BTreeMap::new(), Vec::new());
        for path in paths {
            let name = path.strip_prefix(src).unwrap_or(&path).to_string_lossy().into_owned();
            let bytes = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            if ROOT_FILES.contains(&&*name) {
                root.push((name, bytes));
                continue;
            }
            let module = name.split('/').next().unwrap_or(&name).trim_end_matches(".rs").to_string();
            let empty = || Module { files: Vec::new(), uses: BTreeSet::new() };
            modules.entry(module).or_insert_with(empty).files.push((name, bytes));
        }
        let names: BTreeSet<String> = modules.keys().cloned().collect();
        for module in modules.values_mut() {
            for (_, bytes) in &module.files {
                module.uses.extend(named(&String::from_utf8_lossy(bytes), &names));
            }
        }
        Ok(Sources { modules, root })
    }
    /// Returns the modules whose code a module can contain: itself, those that it names, and so on.
    fn reached(&self, module: &str) -> BTreeSet<&str> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![module]);
        while let Some((name, found)) = next.pop().and_then(|name| self.modules.get_key_value(name)) {
            if reached.insert(name.as_str()) {
                next.extend(found.uses.iter().map(String::as_str));
            }
            next.retain(|name| !reached.contains(name));
        }
        reached
    }
    /// Computes the hash of a family; `tools` describes the compiler and its use.
    pub fn hash(&self, family: &Family, caps: &Caps, tools: &[&str]) -> Result<String> {
        if !self.modules.contains_key(family.name) {
            bail!("the family of kernels '{0}' is not in gpu-kernels/src/{0}.rs", family.name);
        }
        let mut hash = Hash::default();
        let mut part = |bytes: &[u8]| hash.part(bytes);
        let reached = self.reached(family.name);
        let files = reached.iter().flat_map(|name| &self.modules[*name].files).chain(&self.root);
        for (name, bytes) in files {
            part(name.as_bytes());
            part(bytes);
        }
        tools.iter().for_each(|tool| part(tool.as_bytes()));
        // This program's list of kernels, which is older than the source if a file was saved after the program was
        // compiled.
        let entries = family.instances().flat_map(|instance| instance.entry_points());
        entries.for_each(|entry| part(format!("{entry:?} {:?}", caps.of(entry.name)).as_bytes()));
        part(format!("{:?}", family.also_for).as_bytes());
        Ok(hash.finish())
    }
}

/// Returns the modules that a source text names: before `::`, after `crate::` or `super::`, or in the braces after
/// these. A spurious one only costs time; a missing one would leave stale kernels.
fn named(text: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut at) = (BTreeSet::new(), 0);
    while let Some(start) = code[at..].find(is_word).map(|offset| at + offset) {
        let end = code[start..].find(|c| !is_word(c)).map_or(code.len(), |offset| start + offset);
        let (before, word, behind) = (&code[..start], &code[start..end], &code[end..]);
        let of_root = |text: &str| text.ends_with("crate::") || text.ends_with("super::");
        // In a group, `use crate::{a, b::c}`: the text before the last open brace.
        let group = before.rfind(['{', ';']).map_or("", |brace| &before[..brace]);
        if modules.contains(word) && (behind.starts_with("::") || of_root(before) || of_root(group)) {
            found.insert(word.to_string());
        }
        at = end;
    }
    found
}

/// Adds all files in a folder and its subfolders.
fn list_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in folder.read_dir().with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() { list_files(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// Hash of several parts, whose lengths are included so that different divisions differ.
#[derive(Default)]
pub struct Hash(Sha256);

impl Hash {
    /// Adds a part.
    pub fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
    /// Returns the hash in hexadecimal digits.
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Computes the hash of one text.
pub fn hash_of(text: &str) -> String {
    let mut hash = Hash::default();
    hash.part(text.as_bytes());
    hash.finish()
}

/// Store of families as PTX, and of cubins: each in a folder named by its hash.
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens the user's cache: `$FERRITE_KERNEL_CACHE`, else `ferrite/kernels` in `$XDG_CACHE_HOME` or `~/.cache`. If
    /// it cannot be written, or is not wanted, opens one in `scratch`; an unwanted cache is emptied.
    pub fn open(scratch: &Path, wanted: bool) -> Result<Self> {
        let usable = |folder: &PathBuf| {
            let probe = folder.join(format!(".probe-{}", std::process::id()));
            let writes = fs::create_dir_all(folder).and_then(|()| fs::write(&probe, "")).is_ok();
            let _ = fs::remove_file(&probe);
            writes
        };
        if let Some(folder) = user_folder(|name| env::var_os(name).map(PathBuf::from)).filter(|_| wanted).filter(usable)
        {
            return Ok(Store { folder });
        }
        let folder = scratch.join("families");
        if !wanted && folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be emptied", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        Ok(Store { folder })
    }
    /// Returns the folder of an entry, whether or not it exists.
    pub fn of(&self, hash: &str) -> PathBuf {
        self.folder.join(hash)
    }
    /// Returns whether an entry exists; marks it as used.
    pub fn has(&self, hash: &str) -> bool {
        let notes = self.of(hash).join(NOTES);
        fs::File::options().append(true).open(notes).and_then(|file| file.set_modified(SystemTime::now())).is_ok()
    }
    /// Creates an empty folder for an entry under construction.
    pub fn begin(&self, hash: &str) -> Result<PathBuf> {
        let folder = self.folder.join(format!(".{hash}-{}", std::process::id()));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        Ok(folder)
    }
    /// Moves a folder made by [`begin`](Self::begin) to its final place, with its notes.
    pub fn finish(&self, hash: &str, folder: &Path, notes: &Value) -> Result<()> {
        fs::write(folder.join(NOTES), serde_json::to_string_pretty(notes)?)?;
        let place = self.of(hash);
        // Another clone may have been faster: its result is the same.
        if fs::rename(folder, &place).is_err() {
            if !self.has(hash) {
                bail!("{} cannot be moved to its place", place.display());
            }
            fs::remove_dir_all(folder)?;
        }
        Ok(())
    }
    /// Returns the notes of an existing entry.
    pub fn notes(&self, hash: &str) -> Result<Value> {
        let path = self.of(hash).join(NOTES);
        serde_json::from_str(&fs::read_to_string(&path)?)
            .with_context(|| format!("{} is damaged: remove it", path.display()))
    }
    /// Removes entries that have not been used for a long time.
    pub fn tidy(&self) {
        for entry in self.folder.read_dir().into_iter().flatten().flatten() {
            let folder = entry.path();
            let used = fs::metadata(folder.join(NOTES)).or_else(|_| fs::metadata(&folder)).and_then(|m| m.modified());
            if used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > KEPT)) {
                let _ = fs::remove_dir_all(&folder);
            }
        }
    }
}

/// Returns the folder of the user's cache, according to the environment.
fn user_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|path| !path.as_os_str().is_empty());
    if let Some(folder) = set(CACHE_VARIABLE) {
        return Some(folder);
    }
    // By convention, relative names in XDG_CACHE_HOME do not count.
    let cache = set("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
    Some(cache.or_else(|| Some(set("HOME")?.join(".cache")))?.join("ferrite").join("kernels"))
}

/// Converts reports of kernels, by name, to JSON.
pub fn to_json(reports: &BTreeMap<String, KernelReport>) -> Value {
    let report = |report: &KernelReport| {
        json!({
            "registers": report.registers,
            "stack": report.stack,
            "spill_stores": report.spill_stores,
            "spill_loads": report.spill_loads,
            "shared": report.shared,
        })
    };
    reports.iter().map(|(name, of)| (name.clone(), report(of))).collect::<serde_json::Map<_, _>>().into()
}

/// Returns the reports in an object written by [`to_json`].
pub fn from_json(value: &Value) -> Result<BTreeMap<String, KernelReport>> {
    let report = |value: &Value| {
        let number = |key: &str| value[key].as_u64().and_then(|n| u32::try_from(n).ok());
        Some(KernelReport {
            registers: number("registers")?,
            stack: number("stack")?,
            spill_stores: number("spill_stores")?,
            spill_loads: number("spill_loads")?,
            shared: number("shared")?,
        })
    };
    let kernels = value.as_object().context("these are not reports of kernels")?;
    let known = |(name, value): (&String, &Value)| {
        Ok((name.clone(), report(value).with_context(|| format!("the report of kernel {name} is damaged"))?))
    };
    kernels.iter().map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_modules_are_found() {
        let modules: BTreeSet<String> =
            ["field", "lattice", "row", "multi_rhs", "gauge", "blas"].map(String::from).into();
        let text = "use crate::field::Field; // blas::x\nuse crate::{lattice, multi_rhs::{RhsBlocking, gauge}};\nlet row = 1;\n";
        let found: Vec<String> = named(text, &modules).into_iter().collect();
        assert_eq!(found, ["field", "lattice", "multi_rhs"], "comments and variables do not count");
        assert!(named("fn f() { super::row(1) }", &modules).contains("row"));
        assert!(named("$crate::gauge::links(x)", &modules).contains("gauge"));
    }

    #[test]
    fn an_edit_reaches_the_families_that_use_it() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu-kernels/src");
        let sources = Sources::read(&src).unwrap();
        let wilson = sources.reached("wilson");
        assert!(
            ["wilson", "field", "storage", "algebra", "memory", "lattice", "device"].iter().all(|m| wilson.contains(m))
        );
        assert!(!wilson.contains("heatbath") && !wilson.contains("fermion_force"));
        assert!(sources.reached("exterior").contains("wilson"), "faces use the hopping term");
        let caps = Caps::read(&src.join("../..")).unwrap();
        // Every family can be hashed, and each hash depends on the tools.
        for family in gpu_kernels::FAMILIES {
            let hash = |tool| sources.hash(family, &caps, &[tool]).unwrap();
            assert_ne!(hash("a"), hash("b"));
        }
    }

    #[test]
    fn the_cache_is_where_users_expect_it() {
        let folder = |set: &[(&str, &str)]| {
            user_folder(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value)))
        };
        assert_eq!(folder(&[("HOME", "/home/u")]), Some("/home/u/.cache/ferrite/kernels".into()));
        assert_eq!(folder(&[("HOME", "/home/u"), ("XDG_CACHE_HOME", "/c")]), Some("/c/ferrite/kernels".into()));
        assert_eq!(folder(&[("HOME", "/home/u"), ("FERRITE_KERNEL_CACHE", "/k")]), Some("/k".into()));
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn what_is_complete_is_there() {
        let scratch = env::temp_dir().join(format!("ferrite-store-{}", std::process::id()));
        let store = Store { folder: scratch.clone() };
        let folder = store.begin("abc").unwrap();
        fs::write(folder.join("wilson.ptx"), "ptx").unwrap();
        assert!(!store.has("abc"));
        let report = KernelReport { registers: 86, stack: 0, spill_stores: 1, spill_loads: 2, shared: 3 };
        let reports = BTreeMap::from([("dslash".to_string(), report)]);
        store.finish("abc", &folder, &to_json(&reports)).unwrap();
        assert!(store.has("abc") && store.of("abc").join("wilson.ptx").exists() && !folder.exists());
        assert_eq!(from_json(&store.notes("abc").unwrap()).unwrap(), reports);
        // A second build of the same entry is dropped.
        let again = store.begin("abc").unwrap();
        store.finish("abc", &again, &json!({})).unwrap();
        assert!(!again.exists() && store.of("abc").join("wilson.ptx").exists());
        store.tidy();
        assert!(store.has("abc"));
        fs::remove_dir_all(scratch).unwrap();
    }
}
