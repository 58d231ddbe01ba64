//! `cargo xtask build-ptx`: compiles the kernels' Rust source to PTX and cubins, one set per module.
//!
//! 1. The PTX of a family of kernels, those of one source file, is taken from the cache if its inputs are unchanged.
//! 2. cargo compiles the other families in parallel, and `core`, for `nvptx64-nvidia-cuda`; the link step joins the
//!    bitcode of each with that of `core`. A family with instructions of a newer architecture is also compiled for it.
//! 3. For each module, in parallel: `opt` keeps that module's kernels, `llc` writes PTX, and register caps are written into
//!    the text.
//! 4. `ptxas`, if available, makes cubins for some architectures, each from the newest PTX that is not newer than the
//!    architecture. Cubins are cached by the content of their PTX.
//! 5. `manifest.json` records the results and their inputs; it is written last, so that it guarantees the files beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use gpu_kernels::{EntryPoint, FAMILIES, Family, OLDEST_ARCHITECTURE};
use serde_json::{Value, json};

use crate::kernel_families::{self, Hash, Sources, Store};
use crate::linker;
use crate::process::{self, plural};
use crate::ptxas::{self, KernelReport, Ptxas};
use crate::registers::Caps;
use crate::toolchain::{Toolchain, ToolchainKind};

/// Help text of the command.
pub const BUILD_PTX_HELP: &str = "\
Compile the GPU kernels to target/kernels: <module>.<architecture>.ptx and .cubin, manifest.json, and the checksum of
their source. PTX is for sm_80, which every GPU of compute capability 8.0 or newer can run, and also for sm_90 if kernels
have instructions of newer GPUs.

Usage: cargo xtask build-ptx [--arch sm_80,sm_90] [--toolchain nightly|debian] [--no-cache]

  --arch       architectures for which to make cubins, machine code that needs no compilation when the program starts: sm_80
               or newer, if ptxas supports it; may be repeated (default: sm_80,sm_90)
  --toolchain  compiler (default: the first that `cargo xtask setup` has installed; the environment variable
               FERRITE_KERNEL_TOOLCHAIN does the same)
  --no-cache   compile everything, also unchanged kernels

Compiled kernels are stored in ferrite/kernels in $XDG_CACHE_HOME or ~/.cache, or in $FERRITE_KERNEL_CACHE, by the content
of their source: another clone, or an older commit, compiles only the differences. Without NVIDIA's assembler ptxas no
cubins are made; the driver then compiles the PTX when the program starts.
";

const TARGET: &str = "nvptx64-nvidia-cuda";
/// Features of the kernel crate that select the compiled formats: all of them for GPUs.
const FORMATS: [&str; 7] =
    ["single", "half", "fp16", "reconstruct-12", "reconstruct-8", "temporal-gauge", "half-links"];
/// PTX 8.0, the version of CUDA 12.0: drivers from 525 on support it, and it has all instructions of sm_90.
const PTX_FEATURE: &str = "+ptx80";
/// Unroll threshold of the third optimisation level, which a row of 18 numbers in double needs: local arrays stay in
/// registers only if all loops over them are unrolled.
const UNROLL: &str = "-Cllvm-args=-unroll-threshold=300";

/// Option that omits the locations of panics, so that PTX does not depend on the folder in which it is built.
const NO_LOCATIONS: &str = "-Zlocation-detail=none";
/// Sources of this program that influence PTX, besides the kernels' source.
const OUR_SOURCE: [&str; 4] = [
    include_str!("build_ptx.rs"),
    include_str!("linker.rs"),
    include_str!("../ptx-text/src/lib.rs"),
    include_str!("toolchain.rs"),
];

/// Name of the file that records the hash of the kernels' source, for programs that load the kernels.
const SOURCE_FILE: &str = "source";

/// Runs the command.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let choice = ToolchainKind::choice(&mut args)?;
    let mut architectures = Vec::new();
    while let Some(list) = process::take_option(&mut args, "--arch")? {
        architectures.extend(list.split(',').map(|name| name.trim().to_string()));
    }
    let cached = !process::take_flag(&mut args, "--no-cache");
    process::expect_no_more(&args)?;
    build(&process::root()?, choice, &architectures, cached)
}

/// Brings `target/kernels` up to date, with cubins for these architectures or, if none are given, for those of
/// [`ptxas::CUBINS`]; `cached` allows existing results and the user's cache.
pub fn build(root: &Path, choice: Option<ToolchainKind>, architectures: &[String], cached: bool) -> Result<()> {
    let start = Instant::now();
    let toolchain = Toolchain::find(choice)?;
    let ptxas = Ptxas::find(root);
    let architectures = match &ptxas {
        Some(ptxas) => ptxas.choose(architectures)?,
        None if architectures.is_empty() => Vec::new(),
        None => bail!("--arch needs NVIDIA's assembler ptxas; run `cargo xtask setup`, or put ptxas on PATH"),
    };
    let scratch = root.join("target/ptx-build");
    fs::create_dir_all(&scratch).with_context(|| format!("{} cannot be created", scratch.display()))?;
    // Two concurrent builds would write the same files; the second waits and then finds everything done.
    let lock = fs::File::create(scratch.join("lock"))?;
    lock.lock().context("the lock file in target/ptx-build cannot be locked")?;

    let version = ptxas.as_ref().map(|found| found.version.as_str());
    let hashes = hashes(root, &toolchain.to_string())?;
    let hash = source_hash(&hashes, version, &architectures);
    let output = output_folder(root);
    if cached && manifest(root).is_ok_and(|manifest| manifest["source_hash"] == hash.as_str()) {
        println!("kernels are up to date ({toolchain})");
        return Ok(());
    }
    let store = Store::open(&scratch, cached)?;
    let known = FAMILIES.iter().zip(hashes.iter().map(String::as_str));
    let missing: Vec<(&Family, &str)> = known.filter(|(_, hash)| !store.has(hash)).collect();
    if !missing.is_empty() {
        println!("building {} with {toolchain}", families(missing.len()));
        compile_families(root, &toolchain, &scratch, &store, &missing)?;
    }
    let cubins = cubins(&store, &hashes, version.unwrap_or_default(), &architectures)?;
    let assembled = ptxas.as_ref().map_or(Ok(0), |ptxas| assemble(ptxas, &store, &cubins))?;

    let fresh = scratch.join("kernels.new");
    remove_folder(&fresh)?;
    fs::create_dir_all(&fresh)?;
    for hash in hashes.iter().chain(cubins.iter().map(|cubin| &cubin.hash)) {
        copy_kernels(&store.of(hash), &fresh)?;
    }
    let mut reports: BTreeMap<String, Reports> = BTreeMap::new();
    for Cubin { hash, architecture, .. } in &cubins {
        reports.entry(architecture.clone()).or_default().extend(kernel_families::from_json(&store.notes(hash)?)?);
    }
    let entries: Vec<EntryPoint> = gpu_kernels::entry_points().collect();
    let (modules, caps) = (modules(FAMILIES)?, Caps::read(root)?);
    let manifest = json!({
        "source_hash": hash,
        "toolchain": toolchain.to_string(),
        "ptxas": version,
        "cubins": architectures,
        "modules": modules.iter().map(|module| (module.name.to_string(), module.ptx().collect()))
            .collect::<BTreeMap<String, Vec<&str>>>(),
        "kernels": entries.iter().map(|kernel| entry(kernel, caps.of(kernel.name))).collect::<Vec<_>>(),
        "reports": reports.iter().map(|(architecture, of)| (architecture.clone(), kernel_families::to_json(of)))
            .collect::<serde_json::Map<_, _>>(),
    });
    fs::write(fresh.join(SOURCE_FILE), gpu_kernels::SOURCE)?;
    fs::write(fresh.join("manifest.json"), serde_json::to_string_pretty(&manifest)? + "\n")?;
    replace_folder(&fresh, &output)?;
    store.tidy();
    println!(
        "{} in {}, {} of {} compiled, {} of {} assembled, {:.1} s",
        plural(entries.len(), "kernel"),
        plural(modules.len(), "module"),
        missing.len(),
        families(FAMILIES.len()),
        assembled,
        plural(cubins.len(), "cubin"),
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

fn families(count: usize) -> String {
    if count == 1 { "1 family".into() } else { format!("{count} families") }
}

/// Reports of the assembler on kernels, by name.
type Reports = BTreeMap<String, KernelReport>;

/// Compiles families to PTX in the store.
fn compile_families(
    root: &Path,
    toolchain: &Toolchain,
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
        for architecture in architectures(family) {
            check_exports(&linked.symbols(family, architecture), family)?;
        }
        folders.insert(family.name, store.begin(hash)?);
    }
    let modules = modules(missing.iter().map(|(family, _)| *family))?;
    let jobs: Vec<CompileJob<'_>> = modules
        .iter()
        .flat_map(|module| module.ptx().map(move |architecture| (module, architecture)))
        .map(|(module, architecture)| CompileJob {
            toolchain,
            module,
            architecture,
            bitcode: linked.bitcode(module.family, architecture),
            folder: &folders[module.family.name],
            caps: &caps,
        })
        .collect();
    let made = in_parallel(&jobs, |job| {
        let hash = job.compile().with_context(|| format!("module '{}'", job.module.name))?;
        Ok((job.module.family.name, (job.name(), hash)))
    })?;
    for (family, hash) in missing {
        let of_family = made.iter().filter(|(name, _)| *name == family.name).map(|(_, ptx)| ptx.clone());
        let notes: BTreeMap<String, String> = of_family.collect();
        store.finish(hash, &folders[family.name], &json!(notes))?;
    }
    Ok(())
}

/// Cubin to be assembled.
struct Cubin {
    /// Name of the cubin in the store.
    hash: String,
    module: &'static str,
    architecture: String,
    /// PTX file that it is assembled from.
    ptx: PathBuf,
}

/// Returns the cubins of all modules for these architectures.
fn cubins(store: &Store, hashes: &[String], version: &str, architectures: &[String]) -> Result<Vec<Cubin>> {
    let mut cubins = Vec::new();
    let of_family: BTreeMap<&str, &String> = FAMILIES.iter().map(|family| family.name).zip(hashes).collect();
    for family in FAMILIES {
        let (hash, modules) = (of_family[family.name], modules([family])?);
        let texts = store.notes(hash)?;
        for (module, architecture) in modules.iter().flat_map(|m| architectures.iter().map(move |a| (m, a))) {
            let ptx = format!("{}.{}", module.name, ptx_for(module.ptx(), architecture));
            let text =
                texts[&ptx].as_str().with_context(|| format!("{} is damaged: remove it", store.of(hash).display()))?;
            let mut hash_of_cubin = Hash::default();
            for part in [module.name, text, architecture, version, ptxas::FLAGS] {
                hash_of_cubin.part(part.as_bytes());
            }
            cubins.push(Cubin {
                hash: hash_of_cubin.finish(),
                module: module.name,
                architecture: architecture.clone(),
                ptx: store.of(hash).join(format!("{ptx}.ptx")),
            });
        }
    }
    Ok(cubins)
}

/// Assembles the cubins that the store lacks; returns their number.
fn assemble(ptxas: &Ptxas, store: &Store, cubins: &[Cubin]) -> Result<usize> {
    let mut missing: Vec<(&Cubin, u64)> = Vec::new();
    for cubin in cubins.iter().filter(|cubin| !store.has(&cubin.hash)) {
        missing.push((cubin, fs::metadata(&cubin.ptx)?.len()));
    }
    if !missing.is_empty() {
        println!("assembling {} with ptxas {}", plural(missing.len(), "cubin"), ptxas.version);
    }
    // Large ones first, so that no core is left with a large one at the end.
    missing.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    in_parallel(&missing, |(cubin, _)| {
        let (start, name) = (Instant::now(), format!("{}.{}", cubin.module, cubin.architecture));
        let folder = store.begin(&cubin.hash)?;
        let file = folder.join(format!("{name}.cubin"));
        let reports =
            ptxas.assemble(&cubin.ptx, &file, &cubin.architecture).with_context(|| format!("cubin '{name}'"))?;
        store.finish(&cubin.hash, &folder, &kernel_families::to_json(&reports))?;
        let most = |value: fn(&KernelReport) -> u32| reports.values().map(value).max().unwrap_or(0);
        let (registers, stack) = (most(|r| r.registers), most(|r| r.stack));
        println!("  {name}: at most {registers} registers, stack {stack} B, {:.1} s", start.elapsed().as_secs_f64());
        Ok(())
    })?;
    Ok(missing.len())
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

/// Returns the folder of the compiled kernels, for the program and for `check-ptx`.
pub fn output_folder(root: &Path) -> PathBuf {
    root.join("target/kernels")
}

/// Reads the manifest of the last build.
pub fn manifest(root: &Path) -> Result<Value> {
    let path = output_folder(root).join("manifest.json");
    let text = fs::read_to_string(&path)
        .map_err(|_| anyhow!("there are no compiled kernels yet; run `cargo xtask build-ptx`"))?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged; run `cargo xtask build-ptx`", path.display()))
}

/// Fails if the source has changed since the kernels of this manifest were built.
pub fn check_current(root: &Path, manifest: &Value) -> Result<()> {
    let text = |key: &str| manifest[key].as_str();
    let hashes = hashes(root, text("toolchain").unwrap_or_default())?;
    if source_hash(&hashes, text("ptxas"), &cubins_in(manifest)) != text("source_hash").unwrap_or_default() {
        bail!("the kernels in target/kernels are older than their source; run `cargo xtask build-ptx`");
    }
    Ok(())
}

/// Returns the architectures for which a manifest has cubins.
pub fn cubins_in(manifest: &Value) -> Vec<String> {
    let names = manifest["cubins"].as_array().map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(|name| name.as_str().map(String::from)).collect()
}

/// Returns the reports of `ptxas` in a manifest for an architecture.
pub fn reports_in(manifest: &Value, architecture: &str) -> Result<BTreeMap<String, KernelReport>> {
    kernel_families::from_json(&manifest["reports"][architecture])
}

/// Computes for each family the hash of everything that determines its PTX: source, compiler and this program.
fn hashes(root: &Path, toolchain: &str) -> Result<Vec<String>> {
    let (sources, caps) = (Sources::read(&root.join("gpu-kernels/src"))?, Caps::read(root)?);
    let mut tools = vec![toolchain];
    tools.extend(OUR_SOURCE);
    FAMILIES.iter().map(|family| sources.hash(family, &caps, &tools)).collect()
}

/// Computes the hash of all families, of the assembler and architectures of the cubins, and of the source with which
/// this program was compiled, which is recorded beside the kernels.
fn source_hash(families: &[String], ptxas: Option<&str>, architectures: &[String]) -> String {
    let mut hash = Hash::default();
    let parts = families.iter().chain(architectures).map(String::as_str);
    parts.chain([ptxas.unwrap_or_default(), gpu_kernels::SOURCE]).for_each(|part| hash.part(part.as_bytes()));
    hash.finish()
}

/// Returns the architectures of a family's PTX, the oldest first.
fn architectures(family: &Family) -> impl Iterator<Item = &'static str> + use<> {
    std::iter::once(OLDEST_ARCHITECTURE).chain(family.also_for.iter().copied())
}

/// Entry points that go into one file.
struct ModuleFiles<'a> {
    name: &'static str,
    family: &'a Family,
    members: Vec<EntryPoint>,
}

impl ModuleFiles<'_> {
    /// Returns the architectures of the module's PTX, the oldest first.
    fn ptx(&self) -> impl Iterator<Item = &'static str> + use<> {
        architectures(self.family)
    }
}

/// Returns the PTX architecture, among these in ascending order, from which a cubin for `architecture` is assembled.
pub fn ptx_for<'a>(ptx: impl Iterator<Item = &'a str>, architecture: &str) -> &'a str {
    let not_newer = ptx.filter(|ptx| ptxas::number(ptx) <= ptxas::number(architecture));
    not_newer.last().unwrap_or(OLDEST_ARCHITECTURE)
}

/// Returns the modules of some families; rejects names that occur twice, and modules that belong to two families.
fn modules<'a>(families: impl IntoIterator<Item = &'a Family>) -> Result<Vec<ModuleFiles<'a>>> {
    let mut seen = BTreeSet::new();
    let mut modules: BTreeMap<&str, ModuleFiles<'a>> = BTreeMap::new();
    for family in families {
        for entry in family.instances().flat_map(|instance| instance.entry_points()) {
            if !seen.insert(entry.name) {
                bail!("two kernels have the name '{}' in gpu_kernels::FAMILIES", entry.name);
            }
            let empty = || ModuleFiles { name: entry.module, family, members: Vec::new() };
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

/// Downloads the crates needed to build `core`, unless they are present, so that later builds need no network.
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
    println!("downloading the crates for building Rust's core library");
    process::run(&mut fetch()).context(
        "these crates could not be downloaded, but the kernels cannot be built without \
                                        them",
    )
}

/// Writes the workspace that cargo compiles, with a package for each family; returns its folder.
fn package(root: &Path, scratch: &Path) -> Result<PathBuf> {
    // The crate is compiled under manifests of its own: inside our workspace this cargo would resolve the dependencies of
    // every host crate, and might rewrite their lock file.
    let package = scratch.join("package");
    let source = root.join("gpu-kernels/src/lib.rs");
    let known = FAMILIES.iter().flat_map(|family| std::iter::once(&family.name).chain(family.also_for));
    let known: BTreeSet<&str> = known.chain(&FORMATS).copied().collect();
    let declared: String = known.iter().map(|feature| format!("{feature} = []\n")).collect();
    let mut names = Vec::new();
    for (family, architecture) in FAMILIES.iter().flat_map(|family| architectures(family).map(move |a| (family, a))) {
        let name = compiled(family, architecture);
        let folder = package.join(&name);
        fs::create_dir_all(&folder)?;
        let mut features = vec![family.name];
        features.extend(FORMATS);
        features.extend(family.also_for.iter().filter(|also| **also == architecture));
        let manifest = format!(
            "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [lib]\nname = \"{}\"\npath = {source:?}\ncrate-type = [\"cdylib\"]\n\n\
             [features]\ndefault = {features:?}\ncpu = []\n{declared}",
            crate_name(family, architecture),
            library(family, architecture),
        );
        write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
        names.push(name);
    }
    // The second optimisation level with the loop unrolling of the third produces the third's PTX in 60 % of its time.
    let workspace = format!(
        "[workspace]\nmembers = {names:?}\nresolver = \"3\"\n\n\
         [profile.release]\nopt-level = 2\nlto = \"off\"\ncodegen-units = 1\npanic = \"abort\"\ndebug = false\n"
    );
    write_if_changed(&package.join("Cargo.toml"), &workspace)?;
    Ok(package)
}

/// Returns the name of a family compiled for an architecture.
fn compiled(family: &Family, architecture: &str) -> String {
    format!("{}-{architecture}", family.name)
}
/// Returns the package name of a family compiled for an architecture.
fn crate_name(family: &Family, architecture: &str) -> String {
    format!("kernels-{}", compiled(family, architecture))
}
/// Returns the library name of a family compiled for an architecture.
fn library(family: &Family, architecture: &str) -> String {
    crate_name(family, architecture).replace('-', "_")
}

/// Folders into which the link step writes its output for families.
struct LinkedModule {
    bitcode: PathBuf,
    symbols: PathBuf,
}

impl LinkedModule {
    /// Returns the bitcode file with all code of a family.
    fn bitcode(&self, family: &Family, architecture: &str) -> PathBuf {
        self.bitcode.join(format!("{}.ptx", library(family, architecture)))
    }
    /// Returns the file with the names that rustc exports, one per line.
    fn symbols(&self, family: &Family, architecture: &str) -> PathBuf {
        self.symbols.join(library(family, architecture))
    }
}

/// Compiles families of the kernel crate.
fn compile<'a>(
    root: &Path,
    toolchain: &Toolchain,
    scratch: &Path,
    families: impl Iterator<Item = &'a Family>,
) -> Result<LinkedModule> {
    let package = package(root, scratch)?;
    // Each compiler has its own folder, so that trying the other one discards nothing.
    let target_dir = scratch.join(toolchain.kind.to_string());
    let symbols = target_dir.join("symbols");
    fs::create_dir_all(&symbols)?;
    // A copy of this program: its own file may be replaced while the compiler runs.
    let link_step = scratch.join("link-step");
    fs::copy("/proc/self/exe", &link_step).context("xtask cannot copy itself to target/ptx-build")?;
    let packages = families.flat_map(|family| architectures(family).map(|of| crate_name(family, of)));
    let mut cargo = toolchain.cargo();
    cargo
        .current_dir(&package)
        .args(["build", "--quiet", "--release", "--target", TARGET, "-Zbuild-std=core"])
        .args(packages.flat_map(|name| ["--package".to_string(), name]))
        .env("CARGO_TARGET_DIR", &target_dir)
        .env(
            "CARGO_TARGET_NVPTX64_NVIDIA_CUDA_RUSTFLAGS",
            format!("-Ctarget-cpu={OLDEST_ARCHITECTURE} {UNROLL} {NO_LOCATIONS}"),
        )
        .env("CARGO_TARGET_NVPTX64_NVIDIA_CUDA_LINKER", std::env::current_exe()?)
        .env(linker::LLVM_TOOLS, &toolchain.llvm_tools)
        .env(linker::SYMBOLS, &symbols);
    process::run(&mut cargo).context("the kernels do not compile for the GPU")?;
    Ok(LinkedModule { bitcode: target_dir.join(TARGET).join("release"), symbols })
}

/// Fails if rustc exports a symbol that is not an instance: most likely a kernel that is not registered.
fn check_exports(symbols: &Path, family: &Family) -> Result<()> {
    let text =
        fs::read_to_string(symbols).with_context(|| format!("the link step did not write {}", symbols.display()))?;
    let known: BTreeSet<&str> =
        family.instances().flat_map(|instance| instance.entry_points()).map(|entry| entry.name).collect();
    let mangled = |name: &str| name.starts_with('_') || name.starts_with("rust_");
    let strangers: Vec<&str> = text.lines().filter(|name| !known.contains(name) && !mangled(name)).collect();
    if !strangers.is_empty() {
        bail!("the family '{}' in gpu_kernels does not list the exported {}", family.name, strangers.join(", "));
    }
    Ok(())
}

/// PTX file to be compiled.
struct CompileJob<'a> {
    toolchain: &'a Toolchain,
    module: &'a ModuleFiles<'a>,
    architecture: &'static str,
    /// Bitcode with all code of the module's family.
    bitcode: PathBuf,
    folder: &'a Path,
    caps: &'a Caps,
}

impl CompileJob<'_> {
    /// Returns the name of the file without its extension.
    fn name(&self) -> String {
        format!("{}.{}", self.module.name, self.architecture)
    }
    /// Compiles bitcode to PTX; returns the hash of the text.
    fn compile(&self) -> Result<String> {
        let (start, name) = (Instant::now(), self.name());
        let file = |extension: &str| self.folder.join(format!("{name}.{extension}"));
        let (symbols, bitcode, ptx) = (file("symbols"), file("bc"), file("ptx"));
        let names: Vec<&str> = self.module.members.iter().map(|instance| instance.name).collect();
        fs::write(&symbols, names.join("\n"))?;
        let tool = |tool: &str| Command::new(self.toolchain.llvm_tools.join(tool));
        // Only removes the other modules' kernels: code that rustc has optimised gains nothing from a second pass.
        process::capture(
            tool("opt")
                .arg("--passes=internalize,globaldce")
                .arg(format!("--internalize-public-api-file={}", symbols.display()))
                .arg("--strip-debug")
                .arg(&self.bitcode)
                .arg("-o")
                .arg(&bitcode),
        )?;
        let (cpu, feature) = (format!("--mcpu={}", self.architecture), format!("--mattr={PTX_FEATURE}"));
        process::capture(tool("llc").args([cpu, feature]).arg(&bitcode).arg("-o").arg(&ptx))?;
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
        println!("  {name}: {}, {:.1} s", plural(names.len(), "kernel"), start.elapsed().as_secs_f64());
        Ok(kernel_families::hash_of(&text))
    }
}

/// Returns a kernel's entry in the manifest.
fn entry(kernel: &EntryPoint, cap: Option<u32>) -> Value {
    json!({ "name": kernel.name, "module": kernel.module, "hot": kernel.hot, "register_cap": cap })
}

/// Applies `work` to each item, with one thread per core; the first failure ends the work.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let queue = Mutex::new(items.iter());
    let result = Mutex::new(Ok(Vec::new()));
    let next = || queue.lock().ok()?.next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let outcome = work(item);
                    let Ok(mut result) = result.lock() else {
                        return;
                    };
                    match (result.as_mut(), outcome) {
                        (Ok(all), Ok(done)) => all.push(done),
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

/// Replaces `output` by `fresh`. A reader sees the old folder or the new one, never a mixture.
fn replace_folder(fresh: &Path, output: &Path) -> Result<()> {
    let old = fresh.with_extension("old");
    remove_folder(&old)?;
    if output.exists() {
        fs::rename(output, &old)?;
    }
    fs::rename(fresh, output).with_context(|| format!("{} cannot be moved to its place", output.display()))?;
    remove_folder(&old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubins_are_of_the_newest_ptx_that_is_not_newer() {
        for (architecture, one, two) in [
            ("sm_80", "sm_80", "sm_80"),
            ("sm_89", "sm_80", "sm_80"),
            ("sm_90", "sm_80", "sm_90"),
            ("sm_90a", "sm_80", "sm_90"),
            ("sm_120", "sm_80", "sm_90"),
        ] {
            assert_eq!(ptx_for(["sm_80"].into_iter(), architecture), one);
            assert_eq!(ptx_for(["sm_80", "sm_90"].into_iter(), architecture), two);
        }
    }

    #[test]
    fn what_cubins_are_made_for_and_with_counts() {
        let families = ["a".to_string()];
        let hash = |ptxas, names: &[&str]| {
            source_hash(&families, ptxas, &names.iter().copied().map(String::from).collect::<Vec<_>>())
        };
        let usual = hash(Some("13.0"), &["sm_80", "sm_90"]);
        for other in [hash(Some("13.1"), &["sm_80", "sm_90"]), hash(Some("13.0"), &["sm_90"]), hash(None, &[])] {
            assert_ne!(usual, other);
        }
    }
}
