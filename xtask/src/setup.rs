//! `cargo xtask setup`: installs the tools that building and checking the kernels needs, unless they are present.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::build_ptx;
use crate::process;
use crate::ptxas::{self, Ptxas};
use crate::toolchain::{DEBIAN_PACKAGES, NIGHTLY, Toolchain, ToolchainKind};

/// Help text of the command.
pub const SETUP_HELP: &str = "\
Install missing tools: a compiler for the GPU kernels, NVIDIA's assembler, MPI, and compilers for the examples in C, C++
and Fortran. Existing tools are not changed, so that
a second run needs no network.

Usage: cargo xtask setup [--toolchain nightly|debian]

  --toolchain  install only this compiler: nightly is rustup's pinned nightly, debian the packages rustc-web, cargo-web,
               rust-web-src and llvm-22 (needs root, or sudo without a password). Default: the installed one, else nightly,
               else debian. The environment variable FERRITE_KERNEL_TOOLCHAIN does the same.

ptxas is searched on PATH and in CUDA_HOME/bin; otherwise it is unpacked from the PyPI package nvidia-cuda-nvcc into
target/tools. It is optional for build-ptx and required for check-ptx. MPI is also optional: if mpicc, mpirun or libclang
is missing, the packages libopenmpi-dev, openmpi-bin and libclang-dev are installed (needs root, or sudo without a password).
";

/// Time limit for rustup, which reaches its server within seconds or not at all.
const RUSTUP_LIMIT: Duration = Duration::from_secs(180);
const PACKAGES_LIMIT: Duration = Duration::from_secs(900);
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(300);
/// Package requested from pip: CUDA 13.0's compiler, the release that the supported drivers understand.
const PTXAS_PACKAGE: &str = "nvidia-cuda-nvcc==13.0.*";
/// Programs that make the libraries for C and compile their examples, and the packages that contain them.
const COMPILERS: [&str; 7] = ["cc", "c++", "gfortran", "cmake", "objcopy", "ar", "pkg-config"];
const COMPILER_PACKAGES: [&str; 6] = ["gcc", "g++", "gfortran", "cmake", "binutils", "pkg-config"];
/// Packages of MPI, and of the library that reads its header for the crate `mpi`.
const MPI_PACKAGES: [&str; 3] = ["libopenmpi-dev", "openmpi-bin", "libclang-dev"];

/// Runs the command.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let choice = ToolchainKind::choice(&mut args)?;
    process::expect_no_more(&args)?;
    setup(&process::root()?, choice)
}

/// Installs missing tools. Fails without a kernel compiler; ptxas and MPI may be absent.
pub fn setup(root: &Path, choice: Option<ToolchainKind>) -> Result<()> {
    let toolchain = kernel_toolchain(choice)?;
    println!("kernel compiler: {toolchain}");
    build_ptx::fetch(root, &toolchain)?;
    match assembler(root) {
        Ok(ptxas) => println!("ptxas: {} ({})", ptxas.version, ptxas.path.display()),
        Err(error) => println!(
            "ptxas could not be installed ({error:#}). Kernels are then built without cubins and cannot be checked; \
             install a CUDA toolkit, or put ptxas on PATH"
        ),
    }
    mpi();
    compilers();
    Ok(())
}

/// Returns the compiler for kernels, installed if necessary.
fn kernel_toolchain(choice: Option<ToolchainKind>) -> Result<Toolchain> {
    if let Ok(found) = Toolchain::find(choice) {
        return Ok(found);
    }
    let mut reasons = Vec::new();
    for kind in ToolchainKind::ALL.into_iter().filter(|kind| choice.is_none_or(|wanted| wanted == *kind)) {
        let installed = match kind {
            ToolchainKind::Nightly => install_nightly(),
            ToolchainKind::Debian => install_packages(&DEBIAN_PACKAGES),
        };
        match installed.and_then(|()| Toolchain::find(Some(kind))) {
            Ok(toolchain) => return Ok(toolchain),
            Err(error) => {
                println!("{kind}: {error:#}");
                reasons.push(format!("{kind}: {error:#}"));
            }
        }
    }
    bail!("no compiler for the kernels could be installed ({})", reasons.join("; "))
}

fn install_nightly() -> Result<()> {
    let rustup = process::on_path("rustup").ok_or_else(|| anyhow!("rustup is not on PATH"))?;
    println!(
        "installing Rust's {NIGHTLY} with rustup; it compiles only the kernels (at most {} s)",
        RUSTUP_LIMIT.as_secs()
    );
    let mut command = Command::new(rustup);
    command.args(["toolchain", "install", NIGHTLY, "--profile", "minimal", "--no-self-update"]);
    // llvm-tools contains llvm-link, opt and llc.
    command.args(["-c", "rust-src", "-c", "llvm-tools"]);
    process::run_limited(&mut command, RUSTUP_LIMIT)
}

/// Installs Debian packages, as root or through sudo if that needs no password.
fn install_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if process::on_path("apt-get").is_none() {
        bail!("this system has no apt-get; install the equivalents of Debian's {list}");
    }
    let prefix: &[&str] = if is_root() {
        &[]
    } else if can_sudo() {
        &["sudo", "-n"]
    } else {
        bail!("installing packages needs root; run `sudo apt-get update && sudo apt-get install {list}`");
    };
    println!("installing Debian's packages {list}");
    let apt = |arguments: &[&str]| {
        let mut words =
            prefix.iter().chain(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]).chain(arguments);
        let mut command = Command::new(words.next().unwrap_or(&"env"));
        command.args(words);
        process::run_limited(&mut command, PACKAGES_LIMIT)
    };
    apt(&["update"])?;
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    apt(&install)
}

fn is_root() -> bool {
    process::capture(Command::new("id").arg("-u")).is_ok_and(|(user, _)| user.trim() == "0")
}

fn can_sudo() -> bool {
    process::on_path("sudo").is_some() && process::capture(Command::new("sudo").args(["-n", "true"])).is_ok()
}

/// Returns `ptxas`, downloaded if necessary.
fn assembler(root: &Path) -> Result<Ptxas> {
    if let Some(found) = Ptxas::find(root) {
        return Ok(found);
    }
    println!("downloading NVIDIA's assembler ptxas (the Python package {PTXAS_PACKAGE}, 40 MB)");
    let python = python()?;
    pip(&python)?;
    let scratch = root.join("target/tools/download");
    fs::create_dir_all(&scratch).with_context(|| format!("{} cannot be created", scratch.display()))?;
    let outcome = download(&python, &scratch, &ptxas::installed(root));
    fs::remove_dir_all(&scratch).ok();
    outcome?;
    Ptxas::find(root).ok_or_else(|| anyhow!("the downloaded ptxas does not run on this machine"))
}

/// Returns the path of `python3`.
pub fn python() -> Result<PathBuf> {
    process::on_path("python3").ok_or_else(|| anyhow!("python3 is not on PATH"))
}

/// Ensures that this Python has pip.
pub fn pip(python: &Path) -> Result<()> {
    match process::capture(Command::new(python).args(["-m", "pip", "--version"])) {
        Ok(_) => Ok(()),
        Err(_) => install_packages(&["python3-pip"]),
    }
}

/// Downloads the wheel, which is a zip archive, and extracts the one program.
fn download(python: &Path, scratch: &Path, destination: &Path) -> Result<()> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]);
    process::run_limited(pip.arg(scratch).arg(PTXAS_PACKAGE), DOWNLOAD_LIMIT)?;
    let wheel =
        find_file(scratch, |name| name.ends_with(".whl")).ok_or_else(|| anyhow!("pip did not download a wheel"))?;
    let unpacked = scratch.join("unpacked");
    process::run(Command::new(python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
    let program =
        find_file(&unpacked, |name| name == "ptxas").ok_or_else(|| anyhow!("the wheel does not contain ptxas"))?;
    // zipfile drops the permission bits. The file is moved only when complete, since its presence means "installed".
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    fs::rename(&program, destination).with_context(|| format!("{} cannot be written", destination.display()))
}

fn find_file(folder: &Path, wanted: fn(&str) -> bool) -> Option<PathBuf> {
    let paths: Vec<PathBuf> = folder.read_dir().ok()?.flatten().map(|entry| entry.path()).collect();
    let here =
        paths.iter().find(|path| path.is_file() && path.file_name().is_some_and(|n| wanted(&n.to_string_lossy())));
    here.cloned().or_else(|| paths.iter().filter(|path| path.is_dir()).find_map(|path| find_file(path, wanted)))
}

/// Reports whether the compilers for the examples of the C interface are installed, and installs them if not.
fn compilers() {
    let missing = missing_compilers();
    if !missing.is_empty()
        && let Err(error) = install_packages(&COMPILER_PACKAGES)
    {
        println!("{}: {error:#}", missing.join(", "));
    }
    match missing_compilers().as_slice() {
        [] => println!("compilers for examples in C, C++ and Fortran: installed"),
        missing => {
            println!("{} cannot be found; the examples of the C interface are then left out", missing.join(", "))
        }
    }
}

/// Returns the programs that are missing for the examples of the C interface.
pub fn missing_compilers() -> Vec<&'static str> {
    COMPILERS.into_iter().filter(|name| process::on_path(name).is_none()).collect()
}

/// Reports whether MPI is installed, and installs it if not.
fn mpi() {
    if let Err(missing) = find_mpi() {
        println!("MPI: {missing}");
        if let Err(error) = install_packages(&MPI_PACKAGES) {
            println!("MPI: {error:#}");
        }
    }
    match find_mpi() {
        Ok(mpirun) => println!("MPI: {}", mpirun.display()),
        Err(missing) => println!("MPI: {missing}; Ferrite can then be built for one process only"),
    }
}

/// Returns `mpirun`, if everything needed to build with MPI is present; else a sentence.
pub fn find_mpi() -> Result<PathBuf, String> {
    process::on_path("mpicc").ok_or("mpicc is not on PATH")?;
    let mpirun = process::on_path("mpirun").ok_or("mpirun is not on PATH")?;
    if !has_libclang() {
        return Err("libclang, which reads MPI's header, cannot be found; set LIBCLANG_PATH to its folder".into());
    }
    Ok(mpirun)
}

/// Returns whether there is an HDF5 library to build with.
pub fn has_hdf5() -> bool {
    let mut ask = std::process::Command::new("pkg-config");
    let named = ask.args(["--exists", "hdf5"]).status().is_ok_and(|status| status.success());
    named || std::env::var_os("HDF5_DIR").is_some()
}

/// Returns whether libclang is where the crate `mpi` looks for it.
fn has_libclang() -> bool {
    let folders = |parent: &str, below: &str| -> Vec<PathBuf> {
        let entries = Path::new(parent).read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join(below)).collect()
    };
    let mut places = folders("/usr/lib", "");
    places.extend(folders("/usr/lib", "lib"));
    places.extend(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    places.extend(std::env::var_os("LIBCLANG_PATH").map(PathBuf::from));
    let is_library = |name: &str| {
        let rest = name.strip_prefix("libclang").unwrap_or_default();
        rest.starts_with(".so") || (rest.starts_with('-') && rest.contains(".so"))
    };
    let holds = |place: &PathBuf| {
        let entries = place.read_dir().into_iter().flatten().flatten();
        entries.into_iter().any(|entry| is_library(&entry.file_name().to_string_lossy()))
    };
    places.iter().any(holds)
}
