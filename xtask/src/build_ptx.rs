//! `cargo xtask build-ptx`: from the kernels' Rust source to one PTX file and one cubin per module.
//!
//! 1. A family of kernels, those of one source file, is taken from the cache if all that decides its code is unchanged.
//! 2. cargo compiles the other families side by side, and `core`, for `nvptx64-nvidia-cuda`; our link step joins the
//!    bitcode of each with that of `core`.
//! 3. For each module, in parallel: `opt` keeps that module's kernels, `llc` writes PTX, register caps are written into the
//!    text, and `ptxas` makes a cubin where it is at hand.
//! 4. `manifest.json` records what came out and of what; it is written last, so it vouches for the files beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use gpu_kernels::{EntryPoint, FAMILIES, Family};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::kernel_families::{self, Sources, Store};
use crate::process::{self, plural};
use crate::ptxas::{self, Ptxas, Report};
use crate::registers::Caps;
use crate::toolchain::{Kind, Toolchain};
use crate::{linker, ptx_text};

/// `--help`.
pub const HELP: &str = "\
Compile the GPU kernels to target/kernels: <module>.ptx, <module>.cubin, manifest.json, and the number of
the source that they are of.

Usage: cargo xtask build-ptx [--toolchain nightly|debian] [--no-cache]

  --toolchain  which compiler (default: the first that `cargo xtask setup` has installed; the environment variable
               FERRITE_KERNEL_TOOLCHAIN does the same)
  --no-cache   compile everything, also what is unchanged

Compiled kernels are kept in ferrite/kernels in $XDG_CACHE_HOME or ~/.cache, or in $FERRITE_KERNEL_CACHE, by the content
of their source: another clone, or an older commit, compiles only what differs. Without NVIDIA's assembler ptxas no cubins
are made; the driver then compiles the PTX when the program starts.
";

const TARGET: &str = "nvptx64-nvidia-cuda";
/// The features of the kernel crate that say which formats are compiled: for GPUs all.
const FORMATS: [&str; 7] =
    ["single", "half", "fp16", "reconstruct-12", "reconstruct-8", "temporal-gauge", "half-links"];
/// PTX 8.0: the first version with Hopper's bulk copies.
const PTX_FEATURE: &str = "+ptx80";
/// Local arrays stay in registers only where all loops over them are unrolled: a row of 18 numbers in double needs the third
/// level's threshold.
const UNROLL: &str = "-Cllvm-args=-unroll-threshold=300";
/// What decides the output besides the kernels' source.
const OUR_SOURCE: [&str; 4] = [
    include_str!("build_ptx.rs"),
    include_str!("linker.rs"),
    include_str!("ptx_text.rs"),
    include_str!("toolchain.rs"),
];

/// The file that says of which source kernels are, for those who load them.
const SOURCE_FILE: &str = "source";

/// The command.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let choice = Kind::choice(&mut args)?;
    let cached = !process::take_flag(&mut args, "--no-cache");
    process::expect_no_more(&args)?;
    build(&process::root()?, choice, cached)
}

/// Brings `target/kernels` up to date; `cached`: with what is there and in the user's cache.
pub fn build(root: &Path, choice: Option<Kind>, cached: bool) -> Result<()> {
    let start = Instant::now();
    let toolchain = Toolchain::find(choice)?;
    let ptxas = Ptxas::find(root);
    let scratch = root.join("target/ptx-build");
    fs::create_dir_all(&scratch).with_context(|| format!("{} cannot be made", scratch.display()))?;
    // Two builds at once would write the same files; the second waits and then finds everything done.
    let lock = fs::File::create(scratch.join("lock"))?;
    lock.lock().context("the lock file in target/ptx-build cannot be locked")?;

    let version = ptxas.as_ref().map(|found| found.version.as_str());
    let hashes = hashes(root, &toolchain.to_string(), version.unwrap_or(""))?;
    let hash = source_hash(&hashes);
    let output = output_folder(root);
    if cached && manifest(root).is_ok_and(|manifest| manifest["source_hash"] == hash.as_str()) {
        println!("kernels are up to date ({toolchain})");
        return Ok(());
    }
    let store = Store::open(&scratch, cached)?;
    let known = FAMILIES.iter().zip(hashes.iter().map(String::as_str));
    let missing: Vec<(&Family, &str)> = known.filter(|(_, hash)| !store.has(hash)).collect();
    if !missing.is_empty() {
        let assembler = version.unwrap_or("none, so no cubins");
        println!("building {} with {toolchain}; ptxas: {assembler}", families(missing.len()));
        compile_families(root, (&toolchain, ptxas.as_ref()), &scratch, &store, &missing)?;
    }

    let fresh = scratch.join("kernels.new");
    remove_folder(&fresh)?;
    fs::create_dir_all(&fresh)?;
    let mut reports = BTreeMap::new();
    for hash in &hashes {
        reports.extend(store.reports(hash)?);
        copy_kernels(&store.of(hash), &fresh)?;
    }
    let entries: Vec<EntryPoint> = gpu_kernels::entry_points().collect();
    let (modules, caps) = (modules(FAMILIES)?, Caps::read(root)?);
    let manifest = json!({
        "source_hash": hash,
        "target": ptxas::ARCH,
        "toolchain": toolchain.to_string(),
        "ptxas": version,
        "modules": modules.iter().map(|module| module.name).collect::<Vec<_>>(),
        "kernels": entries.iter().map(|kernel| entry(kernel, caps.of(kernel.name), &reports)).collect::<Vec<_>>(),
    });
    fs::write(fresh.join(SOURCE_FILE), gpu_kernels::SOURCE)?;
    fs::write(fresh.join("manifest.json"), serde_json::to_string_pretty(&manifest)? + "\n")?;
    replace_folder(&fresh, &output)?;
    store.tidy();
    println!(
        "{} in {}, {} of {} compiled, {:.1} s",
        plural(entries.len(), "kernel"),
        plural(modules.len(), "module"),
        missing.len(),
        families(FAMILIES.len()),
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

fn families(count: usize) -> String {
    if count == 1 { "1 family".into() } else { format!("{count} families") }
}

/// Compiles families into the store.
fn compile_families(
    root: &Path,
    (toolchain, ptxas): (&Toolchain, Option<&Ptxas>),
    scratch: &Path,
    store: &Store,
    missing: &[(&Family, &str)],
) -> Result<()> {
    let start = Instant::now();
    let caps = Caps::read(root)?;
    let linked = compile(root, toolchain, scratch, missing.iter().map(|(family, _)| *family))?;
    println!("  rustc: {:.1} s", start.elapsed().as_secs_f64());
    let mut folders = BTreeMap::new();
    for (family, hash) in missing {
        check_exports(&linked.symbols(family), family)?;
        folders.insert(family.name, store.begin(hash)?);
    }
    let modules = modules(missing.iter().map(|(family, _)| *family))?;
    let reports = in_parallel(&modules, |module| {
        let job = Job {
            toolchain,
            ptxas,
            bitcode: &linked.bitcode(module.family),
            folder: &folders[module.family.name],
            caps: &caps,
        };
        job.module(module)
    })?;
    for (family, hash) in missing {
        let entries = family.instances().flat_map(|instance| instance.entry_points());
        let reports = entries.filter_map(|entry| Some((entry.name.to_string(), *reports.get(entry.name)?))).collect();
        store.finish(hash, &folders[family.name], &reports)?;
    }
    Ok(())
}

/// Copies PTX and cubins.
fn copy_kernels(from: &Path, to: &Path) -> Result<()> {
    for entry in from.read_dir().with_context(|| format!("{} cannot be read", from.display()))? {
        let path = entry?.path();
        let is_kernel = path.extension().is_some_and(|extension| extension == "ptx" || extension == "cubin");
        if let Some(name) = path.file_name().filter(|_| is_kernel) {
            fs::copy(&path, to.join(name)).with_context(|| format!("{} cannot be copied", path.display()))?;
        }
    }
    Ok(())
}

/// Where the kernels lie for the program and for `check-ptx`.
pub fn output_folder(root: &Path) -> PathBuf {
    root.join("target/kernels")
}

/// The manifest of the last build.
pub fn manifest(root: &Path) -> Result<Value> {
    let path = output_folder(root).join("manifest.json");
    let text = fs::read_to_string(&path)
        .map_err(|_| anyhow!("there are no compiled kernels yet; run `cargo xtask build-ptx`"))?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged; run `cargo xtask build-ptx`", path.display()))
}

/// Fails when the source has changed since the kernels of this manifest were built.
pub fn check_current(root: &Path, manifest: &Value) -> Result<()> {
    let text = |key: &str| manifest[key].as_str().unwrap_or("");
    if source_hash(&hashes(root, text("toolchain"), text("ptxas"))?) != text("source_hash") {
        bail!("the kernels in target/kernels are older than their source; run `cargo xtask build-ptx`");
    }
    Ok(())
}

/// `ptxas`'s reports in a manifest.
pub fn reports_in(manifest: &Value) -> BTreeMap<String, Report> {
    let kernels = manifest["kernels"].as_array().map(Vec::as_slice).unwrap_or_default();
    let report = |kernel: &Value| Some((kernel["name"].as_str()?.to_string(), kernel_families::from_json(kernel)?));
    kernels.iter().filter_map(report).collect()
}

/// For each family the hash of all that decides its code: source, compiler, assembler and this program.
fn hashes(root: &Path, toolchain: &str, ptxas: &str) -> Result<Vec<String>> {
    let (sources, caps) = (Sources::read(&root.join("gpu-kernels/src"))?, Caps::read(root)?);
    let mut tools = vec![toolchain, ptxas];
    tools.extend(OUR_SOURCE);
    FAMILIES.iter().map(|family| sources.hash(family, &caps, &tools)).collect()
}

/// Hash of all families, and of the source as we were compiled, which is what is noted beside the kernels.
fn source_hash(families: &[String]) -> String {
    let mut hash = Sha256::new();
    families.iter().for_each(|family| hash.update(family.as_bytes()));
    hash.update(gpu_kernels::SOURCE.as_bytes());
    kernel_families::hex(&hash.finalize())
}

/// Entry points that go to one file.
struct Module<'a> {
    name: &'a str,
    family: &'a Family,
    members: Vec<EntryPoint>,
}

/// The modules of some families; refuses names that occur twice, and modules of two families.
fn modules<'a>(families: impl IntoIterator<Item = &'a Family>) -> Result<Vec<Module<'a>>> {
    let mut seen = BTreeSet::new();
    let mut modules: BTreeMap<&str, Module<'a>> = BTreeMap::new();
    for family in families {
        for entry in family.instances().flat_map(|instance| instance.entry_points()) {
            if !seen.insert(entry.name) {
                bail!("two kernels are called '{}' in gpu_kernels::FAMILIES", entry.name);
            }
            let empty = || Module { name: entry.module, family, members: Vec::new() };
            let module = modules.entry(entry.module).or_insert_with(empty);
            if module.family.name != family.name {
                bail!(
                    "module '{}' has kernels of two families, {} and {}",
                    entry.module,
                    module.family.name,
                    family.name
                );
            }
            module.members.push(entry);
        }
    }
    if modules.is_empty() {
        bail!("gpu_kernels::FAMILIES lists no kernels, so there is nothing to build");
    }
    Ok(modules.into_values().collect())
}

/// Downloads the crates that `core` is built with, unless they are there, so that later builds need no network.
pub fn fetch(root: &Path, toolchain: &Toolchain) -> Result<()> {
    let package = package(root, &root.join("target/ptx-build"))?;
    let fetch = || {
        let mut cargo = toolchain.cargo();
        cargo.current_dir(&package).args(["fetch", "--quiet", "--target", TARGET, "-Zbuild-std=core"]);
        cargo
    };
    if process::capture(fetch().arg("--offline")).is_ok() {
        return Ok(());
    }
    println!("downloading the crates that Rust's core library is built with");
    process::run(&mut fetch()).context("these crates could not be downloaded, and the kernels cannot be built without")
}

/// The workspace that cargo compiles, with a package for each family; returns its folder.
fn package(root: &Path, scratch: &Path) -> Result<PathBuf> {
    // The crate is compiled under manifests of its own: inside our workspace this cargo would resolve the dependencies of
    // every host crate, and might rewrite their lock file.
    let package = scratch.join("package");
    let source = root.join("gpu-kernels/src/lib.rs");
    let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
    for name in &names {
        let folder = package.join(name);
        fs::create_dir_all(&folder)?;
        let features: String = names.iter().chain(&FORMATS).map(|feature| format!("{feature} = []\n")).collect();
        let formats: String = FORMATS.iter().map(|format| format!(", \"{format}\"")).collect();
        let manifest = format!(
            "[package]\nname = \"kernels-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [lib]\nname = \"{}\"\npath = {source:?}\ncrate-type = [\"cdylib\"]\n\n\
             [features]\ndefault = [\"{name}\"{formats}]\ncpu = []\n{features}",
            library(name),
        );
        write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
    }
    // The second level of optimisation, with the loops unrolled as in the third, gives the third's PTX in 60 % of its time.
    let workspace = format!(
        "[workspace]\nmembers = {names:?}\nresolver = \"3\"\n\n\
         [profile.release]\nopt-level = 2\nlto = \"off\"\ncodegen-units = 1\npanic = \"abort\"\ndebug = false\n"
    );
    write_if_changed(&package.join("Cargo.toml"), &workspace)?;
    Ok(package)
}

/// The name of a family's library.
fn library(family: &str) -> String {
    format!("kernels_{family}")
}

/// Where the link step leaves what it makes of families.
struct Linked {
    bitcode: PathBuf,
    symbols: PathBuf,
}

impl Linked {
    /// All code of a family in one bitcode file.
    fn bitcode(&self, family: &Family) -> PathBuf {
        self.bitcode.join(format!("{}.ptx", library(family.name)))
    }
    /// The names that rustc exports, one a line.
    fn symbols(&self, family: &Family) -> PathBuf {
        self.symbols.join(library(family.name))
    }
}

/// Compiles families of the kernel crate.
fn compile<'a>(
    root: &Path,
    toolchain: &Toolchain,
    scratch: &Path,
    families: impl Iterator<Item = &'a Family>,
) -> Result<Linked> {
    let package = package(root, scratch)?;
    // Each compiler keeps a folder of its own, so that trying the other one throws nothing away.
    let target_dir = scratch.join(toolchain.kind.to_string());
    let symbols = target_dir.join("symbols");
    fs::create_dir_all(&symbols)?;
    // A copy of this very program: the file we were started from may be replaced while the compiler runs.
    let link_step = scratch.join("link-step");
    fs::copy("/proc/self/exe", &link_step).context("xtask cannot copy itself to target/ptx-build")?;
    let mut cargo = toolchain.cargo();
    cargo
        .current_dir(&package)
        .args(["build", "--quiet", "--release", "--target", TARGET, "-Zbuild-std=core"])
        .args(families.flat_map(|family| ["--package".to_string(), format!("kernels-{}", family.name)]))
        .env("CARGO_TARGET_DIR", &target_dir)
        .env("CARGO_TARGET_NVPTX64_NVIDIA_CUDA_RUSTFLAGS", format!("-Ctarget-cpu={} {UNROLL}", ptxas::ARCH))
        .env("CARGO_TARGET_NVPTX64_NVIDIA_CUDA_LINKER", std::env::current_exe()?)
        .env(linker::LLVM_TOOLS, &toolchain.llvm_tools)
        .env(linker::SYMBOLS, &symbols);
    process::run(&mut cargo).context("the kernels do not compile for the GPU")?;
    Ok(Linked { bitcode: target_dir.join(TARGET).join("release"), symbols })
}

/// Fails when rustc exports a symbol that is no instance: most likely a kernel that nobody registered.
fn check_exports(symbols: &Path, family: &Family) -> Result<()> {
    let text = fs::read_to_string(symbols).with_context(|| format!("the link step left no {}", symbols.display()))?;
    let known: BTreeSet<&str> =
        family.instances().flat_map(|instance| instance.entry_points()).map(|entry| entry.name).collect();
    let mangled = |name: &str| name.starts_with('_') || name.starts_with("rust_");
    let strangers: Vec<&str> = text.lines().filter(|name| !known.contains(name) && !mangled(name)).collect();
    if !strangers.is_empty() {
        bail!("the family '{}' in gpu_kernels does not list the exported {}", family.name, strangers.join(", "));
    }
    Ok(())
}

/// What a module is made with.
struct Job<'a> {
    toolchain: &'a Toolchain,
    ptxas: Option<&'a Ptxas>,
    bitcode: &'a Path,
    folder: &'a Path,
    caps: &'a Caps,
}

impl Job<'_> {
    /// One module from bitcode to cubin.
    fn module(&self, module: &Module<'_>) -> Result<BTreeMap<String, Report>> {
        let (start, name) = (Instant::now(), module.name);
        let file = |extension: &str| self.folder.join(format!("{name}.{extension}"));
        let (symbols, bitcode, ptx, cubin) = (file("symbols"), file("bc"), file("ptx"), file("cubin"));
        let names: Vec<&str> = module.members.iter().map(|instance| instance.name).collect();
        fs::write(&symbols, names.join("\n"))?;
        let tool = |tool: &str| Command::new(self.toolchain.llvm_tools.join(tool));
        // Only drops the other modules' kernels: what rustc has optimised gains nothing by a second time.
        process::capture(
            tool("opt")
                .arg("--passes=internalize,globaldce")
                .arg(format!("--internalize-public-api-file={}", symbols.display()))
                .arg("--strip-debug")
                .arg(self.bitcode)
                .arg("-o")
                .arg(&bitcode),
        )?;
        let (arch, feature) = (format!("--mcpu={}", ptxas::ARCH), format!("--mattr={PTX_FEATURE}"));
        process::capture(tool("llc").args([arch, feature]).arg(&bitcode).arg("-o").arg(&ptx))?;
        fs::remove_file(&symbols)?;
        fs::remove_file(&bitcode)?;

        let text = fs::read_to_string(&ptx)?;
        let text = ptx_text::with_register_caps(&text, |entry| self.caps.of(entry));
        fs::write(&ptx, &text)?;
        let entries: BTreeSet<&str> = ptx_text::entries(&text).iter().map(|entry| entry.name).collect();
        let absent: Vec<&str> = names.iter().copied().filter(|name| !entries.contains(name)).collect();
        if !absent.is_empty() {
            bail!("gpu_kernels::FAMILIES lists kernels that the GPU build does not contain: {}", absent.join(", "));
        }

        let reports = self.ptxas.map(|ptxas| ptxas.assemble(&ptx, &cubin)).transpose()?.unwrap_or_default();
        let most = |value: fn(&Report) -> u32| reports.values().map(value).max().unwrap_or(0);
        let measured = if self.ptxas.is_some() {
            format!(", at most {} registers, stack {} B", most(|r| r.registers), most(|r| r.stack))
        } else {
            String::new()
        };
        println!("  {name}: {} kernels{measured}, {:.1} s", names.len(), start.elapsed().as_secs_f64());
        Ok(reports)
    }
}

/// A kernel's line in the manifest; what only ptxas knows is null without it.
fn entry(kernel: &EntryPoint, cap: Option<u32>, reports: &BTreeMap<String, Report>) -> Value {
    let report = reports.get(kernel.name);
    json!({
        "name": kernel.name,
        "module": kernel.module,
        "hot": kernel.hot,
        "register_cap": cap,
        "registers": report.map(|r| r.registers),
        "stack": report.map(|r| r.stack),
        "spill_stores": report.map(|r| r.spill_stores),
        "spill_loads": report.map(|r| r.spill_loads),
        "shared": report.map(|r| r.shared),
    })
}

/// Works through the modules with one thread per core; the first failure ends the work.
fn in_parallel<F>(modules: &[Module<'_>], work: F) -> Result<BTreeMap<String, Report>>
where
    F: Fn(&Module<'_>) -> Result<BTreeMap<String, Report>> + Sync,
{
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(modules.len());
    let queue = Mutex::new(modules.iter());
    let result = Mutex::new(Ok(BTreeMap::new()));
    let next = || queue.lock().ok()?.next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(module) = next() {
                    let outcome = work(module).with_context(|| format!("module '{}'", module.name));
                    let Ok(mut result) = result.lock() else {
                        return;
                    };
                    match (result.as_mut(), outcome) {
                        (Ok(all), Ok(reports)) => all.extend(reports),
                        (Ok(_), Err(error)) => *result = Err(error),
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    result.into_inner().map_err(|_| anyhow!("a thread of the kernel build panicked"))?
}

fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

fn remove_folder(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    Ok(())
}

/// Puts `fresh` in the place of `output`. A reader sees the old folder or the new one, never a mixture.
fn replace_folder(fresh: &Path, output: &Path) -> Result<()> {
    let old = fresh.with_extension("old");
    remove_folder(&old)?;
    if output.exists() {
        fs::rename(output, &old)?;
    }
    fs::rename(fresh, output).with_context(|| format!("{} cannot be put in place", output.display()))?;
    remove_folder(&old)
}
