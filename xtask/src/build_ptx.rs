//! `cargo xtask build-ptx`: from the kernels' Rust source to one PTX file and one cubin per module.
//!
//! 1. cargo compiles gpu-kernels and `core` for `nvptx64-nvidia-cuda`; our link step joins the bitcode of everything.
//! 2. For each module, in parallel: `opt` keeps that module's kernels and optimises, `llc` writes PTX, register caps
//!    are written into the text, and `ptxas` makes a cubin where it is at hand.
//! 3. `manifest.json` records what came out and of what; it is written last, so it vouches for the files beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use gpu_kernels::EntryPoint;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::process::{self, plural};
use crate::ptxas::{self, Ptxas, Report};
use crate::toolchain::{Kind, Toolchain};
use crate::{linker, ptx_text};

/// `--help`.
pub const HELP: &str = "\
Compile the GPU kernels to target/kernels: <module>.ptx, <module>.cubin, manifest.json, and the number of
the source that they are of.

Usage: cargo xtask build-ptx [--toolchain nightly|debian] [--force]

  --toolchain  which compiler (default: the first that `cargo xtask setup` has installed; the environment variable
               FERRITE_KERNEL_TOOLCHAIN does the same)
  --force      build even if nothing has changed

Without NVIDIA's assembler ptxas no cubins are made; the driver then compiles the PTX when the program starts.
";

const TARGET: &str = "nvptx64-nvidia-cuda";
/// PTX 8.0: the first version with Hopper's bulk copies.
const PTX_FEATURE: &str = "+ptx80";
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
    let force = process::take_flag(&mut args, "--force");
    process::expect_no_more(&args)?;
    build(&process::root()?, choice, force)
}

/// Brings `target/kernels` up to date.
pub fn build(root: &Path, choice: Option<Kind>, force: bool) -> Result<()> {
    let start = Instant::now();
    let toolchain = Toolchain::find(choice)?;
    let ptxas = Ptxas::find(root);
    let scratch = root.join("target/ptx-build");
    fs::create_dir_all(&scratch).with_context(|| format!("{} cannot be made", scratch.display()))?;
    // Two builds at once would write the same files; the second waits and then finds everything done.
    let lock = fs::File::create(scratch.join("lock"))?;
    lock.lock().context("the lock file in target/ptx-build cannot be locked")?;

    let hash = source_hash(root, &toolchain.to_string(), ptxas.as_ref().map_or("", |found| &found.version))?;
    let output = output_folder(root);
    let previous = manifest(root);
    if !force && previous.as_ref().is_ok_and(|manifest| manifest["source_hash"] == hash.as_str()) {
        println!("kernels are up to date ({toolchain})");
        return Ok(());
    }
    let assembler = ptxas.as_ref().map_or("none, so no cubins".to_string(), |found| found.version.clone());
    println!("building kernels with {toolchain}; ptxas: {assembler}");

    let entries: Vec<EntryPoint> = gpu_kernels::entry_points().collect();
    let modules = modules(&entries)?;
    let linked = compile(root, &toolchain, &scratch)?;
    check_exports(&linked.symbols, &entries)?;
    let compiled = start.elapsed();

    let fresh = scratch.join("kernels.new");
    remove_folder(&fresh)?;
    fs::create_dir_all(&fresh)?;
    let job =
        Job { toolchain: &toolchain, ptxas: ptxas.as_ref(), bitcode: &linked.bitcode, fresh: &fresh, old: &output };
    let version = ptxas.as_ref().map(|found| found.version.as_str());
    // Another assembler's cubins are of no use.
    let same_ptxas =
        previous.as_ref().ok().filter(|manifest| version.is_some() && manifest["ptxas"].as_str() == version);
    let old_reports = same_ptxas.map(reports_in).unwrap_or_default();
    let reports = in_parallel(&modules, |(name, members)| job.module(name, members, &old_reports))?;

    let manifest = json!({
        "source_hash": hash,
        "target": ptxas::ARCH,
        "toolchain": toolchain.to_string(),
        "ptxas": version,
        "modules": modules.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "kernels": entries.iter().map(|kernel| entry(kernel, &reports)).collect::<Vec<_>>(),
    });
    fs::write(fresh.join(SOURCE_FILE), gpu_kernels::SOURCE)?;
    fs::write(fresh.join("manifest.json"), serde_json::to_string_pretty(&manifest)? + "\n")?;
    replace_folder(&fresh, &output)?;
    println!(
        "{} in {}, {:.1} s ({:.1} s of it rustc)",
        plural(entries.len(), "kernel"),
        plural(modules.len(), "module"),
        start.elapsed().as_secs_f64(),
        compiled.as_secs_f64()
    );
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
    if source_hash(root, text("toolchain"), text("ptxas"))? != text("source_hash") {
        bail!("the kernels in target/kernels are older than their source; run `cargo xtask build-ptx`");
    }
    Ok(())
}

/// `ptxas`'s reports in a manifest.
pub fn reports_in(manifest: &Value) -> BTreeMap<String, Report> {
    let kernels = manifest["kernels"].as_array().map(Vec::as_slice).unwrap_or_default();
    let number = |kernel: &Value, key: &str| kernel[key].as_u64().and_then(|n| u32::try_from(n).ok());
    let report = |kernel: &Value| {
        Some(Report {
            registers: number(kernel, "registers")?,
            stack: number(kernel, "stack")?,
            spill_stores: number(kernel, "spill_stores")?,
            spill_loads: number(kernel, "spill_loads")?,
            shared: number(kernel, "shared")?,
        })
    };
    kernels.iter().filter_map(|kernel| Some((kernel["name"].as_str()?.to_string(), report(kernel)?))).collect()
}

/// Hash of all that decides the output: source, compiler, assembler and this program.
pub fn source_hash(root: &Path, toolchain: &str, ptxas: &str) -> Result<String> {
    let crate_folder = root.join("gpu-kernels");
    let mut files = vec![crate_folder.join("Cargo.toml")];
    list_files(&crate_folder.join("src"), &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for file in files {
        part(file.strip_prefix(root).unwrap_or(&file).as_os_str().as_encoded_bytes());
        part(&fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?);
    }
    // Of the source as we were compiled, which is what is noted beside the kernels.
    part(gpu_kernels::SOURCE.as_bytes());
    part(toolchain.as_bytes());
    part(ptxas.as_bytes());
    // This program's list of kernels, which is older than the source if a file was saved after we were compiled.
    gpu_kernels::entry_points().for_each(|entry| part(format!("{entry:?}").as_bytes()));
    OUR_SOURCE.iter().for_each(|text| part(text.as_bytes()));
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

type Module<'a> = (&'a str, Vec<&'a EntryPoint>);

/// Entry points by module; refuses names that occur twice.
fn modules(entries: &[EntryPoint]) -> Result<Vec<Module<'_>>> {
    let mut seen = BTreeSet::new();
    let mut modules: BTreeMap<&str, Vec<&EntryPoint>> = BTreeMap::new();
    for entry in entries {
        if !seen.insert(entry.name) {
            bail!("two kernels are called '{}' in gpu_kernels::instances()", entry.name);
        }
        modules.entry(entry.module).or_default().push(entry);
    }
    if modules.is_empty() {
        bail!("gpu_kernels::instances() lists no kernels, so there is nothing to build");
    }
    Ok(modules.into_iter().collect())
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

/// The package that cargo compiles; returns its folder.
fn package(root: &Path, scratch: &Path) -> Result<PathBuf> {
    // The crate is compiled under a manifest of its own: inside the workspace this cargo would resolve the dependencies
    // of every host crate, and might rewrite their lock file.
    let package = scratch.join("package");
    fs::create_dir_all(&package)?;
    let source = root.join("gpu-kernels/src/lib.rs");
    let manifest = format!(
        "[package]\nname = \"gpu-kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [lib]\npath = {source:?}\ncrate-type = [\"cdylib\"]\n\n[features]\ncpu = []\n\n\
         [profile.release]\nopt-level = 3\nlto = \"fat\"\ncodegen-units = 1\npanic = \"abort\"\ndebug = false\n\n\
         [workspace]\n"
    );
    write_if_changed(&package.join("Cargo.toml"), &manifest)?;
    Ok(package)
}

/// What the link step leaves.
struct Linked {
    /// All code in one bitcode file.
    bitcode: PathBuf,
    /// The names that rustc exports, one a line.
    symbols: PathBuf,
}

/// Compiles the kernel crate.
fn compile(root: &Path, toolchain: &Toolchain, scratch: &Path) -> Result<Linked> {
    let package = package(root, scratch)?;
    // Each compiler keeps a folder of its own, so that trying the other one throws nothing away.
    let target_dir = scratch.join(toolchain.kind.to_string());
    let bitcode = target_dir.join(TARGET).join("release").join("gpu_kernels.ptx");
    let symbols = target_dir.join("symbols");
    // A copy of this very program: the file we were started from may be replaced while the compiler runs.
    let link_step = scratch.join("link-step");
    fs::copy("/proc/self/exe", &link_step).context("xtask cannot copy itself to target/ptx-build")?;
    let mut cargo = toolchain.cargo();
    cargo
        .current_dir(&package)
        .args(["build", "--quiet", "--release", "--target", TARGET, "-Zbuild-std=core"])
        .env("CARGO_TARGET_DIR", &target_dir)
        .env("CARGO_TARGET_NVPTX64_NVIDIA_CUDA_RUSTFLAGS", format!("-Ctarget-cpu={}", ptxas::ARCH))
        .env("CARGO_TARGET_NVPTX64_NVIDIA_CUDA_LINKER", std::env::current_exe()?)
        .env(linker::LLVM_TOOLS, &toolchain.llvm_tools)
        .env(linker::SYMBOLS, &symbols);
    process::run(&mut cargo).context("the kernels do not compile for the GPU")?;
    if !bitcode.is_file() || !symbols.is_file() {
        bail!("the compiler reported success but left no {}; remove target/ptx-build and try again", bitcode.display());
    }
    Ok(Linked { bitcode, symbols })
}

/// Fails when rustc exports a symbol that is no instance: most likely a kernel that nobody registered.
fn check_exports(symbols: &Path, entries: &[EntryPoint]) -> Result<()> {
    let text = fs::read_to_string(symbols).with_context(|| format!("the link step left no {}", symbols.display()))?;
    let known: BTreeSet<&str> = entries.iter().map(|entry| entry.name).collect();
    let mangled = |name: &str| name.starts_with('_') || name.starts_with("rust_");
    let strangers: Vec<&str> = text.lines().filter(|name| !known.contains(name) && !mangled(name)).collect();
    if !strangers.is_empty() {
        bail!("gpu_kernels::instances() does not list the exported {}", strangers.join(", "));
    }
    Ok(())
}

/// What the steps of every module share.
struct Job<'a> {
    toolchain: &'a Toolchain,
    ptxas: Option<&'a Ptxas>,
    bitcode: &'a Path,
    fresh: &'a Path,
    old: &'a Path,
}

impl Job<'_> {
    /// One module from bitcode to cubin; `old` holds the reports of the previous build.
    fn module(
        &self,
        name: &str,
        members: &[&EntryPoint],
        old: &BTreeMap<String, Report>,
    ) -> Result<BTreeMap<String, Report>> {
        let start = Instant::now();
        let file = |extension: &str| self.fresh.join(format!("{name}.{extension}"));
        let (symbols, bitcode, ptx, cubin) = (file("symbols"), file("bc"), file("ptx"), file("cubin"));
        let names: Vec<&str> = members.iter().map(|instance| instance.name).collect();
        fs::write(&symbols, names.join("\n"))?;
        let tool = |tool: &str| Command::new(self.toolchain.llvm_tools.join(tool));
        // First drop the other modules' kernels, so that each is optimised once.
        process::capture(
            tool("opt")
                .arg("--passes=internalize,globaldce,default<O3>,globaldce")
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
        let cap = |entry: &str| members.iter().find(|i| i.name == entry).map_or(0, |i| i.registers);
        let text = ptx_text::with_register_caps(&text, cap);
        fs::write(&ptx, &text)?;
        let entries: BTreeSet<&str> = ptx_text::entries(&text).iter().map(|entry| entry.name).collect();
        let absent: Vec<&str> = names.iter().copied().filter(|name| !entries.contains(name)).collect();
        if !absent.is_empty() {
            bail!("gpu_kernels::instances() lists kernels that the GPU build does not contain: {}", absent.join(", "));
        }

        let mut note = String::new();
        let reports = match self.ptxas {
            None => BTreeMap::new(),
            Some(ptxas) => match self.reuse(name, &text, &names, old) {
                Some(reports) => {
                    note.push_str(", unchanged");
                    reports
                }
                None => ptxas.assemble(&ptx, &cubin)?,
            },
        };
        let most = |value: fn(&Report) -> u32| reports.values().map(value).max().unwrap_or(0);
        let measured = if self.ptxas.is_some() {
            format!(", at most {} registers, stack {} B", most(|r| r.registers), most(|r| r.stack))
        } else {
            String::new()
        };
        println!("  {name}: {} kernels{measured}, {:.1} s{note}", names.len(), start.elapsed().as_secs_f64());
        Ok(reports)
    }

    /// The previous cubin and its reports, if this module's PTX has not changed.
    fn reuse(
        &self,
        module: &str,
        ptx: &str,
        names: &[&str],
        old: &BTreeMap<String, Report>,
    ) -> Option<BTreeMap<String, Report>> {
        let cubin = format!("{module}.cubin");
        let before = fs::read_to_string(self.old.join(format!("{module}.ptx"))).ok()?;
        let reports: Option<_> = names.iter().map(|name| Some((name.to_string(), *old.get(*name)?))).collect();
        if before != ptx {
            return None;
        }
        fs::copy(self.old.join(&cubin), self.fresh.join(&cubin)).ok()?;
        reports
    }
}

/// A kernel's line in the manifest; what only ptxas knows is null without it.
fn entry(kernel: &EntryPoint, reports: &BTreeMap<String, Report>) -> Value {
    let report = reports.get(kernel.name);
    json!({
        "name": kernel.name,
        "module": kernel.module,
        "hot": kernel.hot,
        "register_cap": kernel.registers,
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
                    let outcome = work(module).with_context(|| format!("module '{}'", module.0));
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

fn list_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in folder.read_dir().with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
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
