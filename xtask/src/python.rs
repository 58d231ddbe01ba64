//! `cargo xtask wheel`: builds the Python package; also its tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::packages::Packages;
use crate::process::{self, cargo};
use crate::{build_ptx, setup};

/// Help text of the command.
pub const WHEEL_HELP: &str = "\
Make the Python package: target/wheels/ferrite_lqcd-VERSION-cp39-abi3-PLATFORM.whl, for Python 3.9 and newer, with its GPU
kernels. The target machine needs no CUDA toolkit, MPI or compiler; a GPU's driver is loaded when a GPU is requested.
PLATFORM includes the oldest C library that works: with Zig's linker, which pip installs, glibc 2.28.

Usage: cargo xtask wheel [--native] [--mpi]

  --native  link with this machine's linker: the wheel then needs a C library as new as this machine's
  --mpi     support several processes with an mpi4py communicator; implies --native, and the wheel also needs this machine's MPI
            library
";

/// Largest size of a wheel in bytes.
const MOST_BYTES: u64 = 60_000_000;

/// Runs the command.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let native = process::take_flag(&mut args, "--native");
    let mpi = process::take_flag(&mut args, "--mpi");
    process::expect_no_more(&args)?;
    let root = process::root()?;
    setup::run(&[])?;
    build_ptx::run(&[])?;
    let (packages, builder) = (packages(&root)?, builder(&root)?);
    let wheels = process::target(&root).join("wheels");
    // Existing wheels are of an earlier version.
    if wheels.exists() {
        fs::remove_dir_all(&wheels).with_context(|| format!("{} cannot be removed", wheels.display()))?;
    }
    let mut maturin = Command::new(builder.programs().join("maturin"));
    maturin.args(["build", "--release", "--locked", "--manifest-path"]).arg(root.join("python/Cargo.toml"));
    maturin.arg("--out").arg(&wheels).arg("--target-dir").arg(process::target(&root).join("wheel"));
    match (mpi, native) {
        // The library is that of the machine: it must not be packed, and other machines need not have it.
        (true, _) => maturin.args(["--features", "mpi", "--compatibility", "linux", "--auditwheel", "skip"]),
        (false, true) => &mut maturin,
        (false, false) => maturin.args(["--zig", "--compatibility", "manylinux_2_28"]),
    };
    maturin.env("PYTHONPATH", builder.folder()).env("FERRITE_VECTORS", "all").current_dir(&root);
    process::run(&mut maturin)?;
    let wheel = wheel_in(&wheels)?;
    let bytes = fs::metadata(&wheel).with_context(|| format!("{} cannot be read", wheel.display()))?.len();
    println!("{}: {:.1} MB", wheel.display(), bytes as f64 * 1e-6);
    if bytes > MOST_BYTES {
        bail!("the wheel is larger than {} MB", MOST_BYTES / 1_000_000);
    }
    installed(&root, &packages, &wheel)
}

fn packages(root: &Path) -> Result<Packages> {
    Packages::get(root, "python", "python/requirements.txt", "NumPy and pytest")
}

fn builder(root: &Path) -> Result<Packages> {
    Packages::get(root, "wheel", "python/wheel-requirements.txt", "maturin and Zig's linker")
}

fn wheel_in(folder: &Path) -> Result<PathBuf> {
    let entries = folder.read_dir().with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut wheels =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "whl"));
    wheels.next().ok_or_else(|| anyhow!("maturin did not make a wheel"))
}

/// Installs a wheel into a separate folder, and runs the examples of its documentation there.
fn installed(root: &Path, packages: &Packages, wheel: &Path) -> Result<()> {
    let folder = process::target(root).join("wheel-check");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    let mut pip = packages.python(&[])?;
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--target"]);
    process::run(pip.arg(&folder).arg(wheel).env("PIP_ROOT_USER_ACTION", "ignore"))?;
    let mut pytest = packages.python(&[&folder])?;
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--doctest-modules", "ferrite_lqcd"]);
    process::run(pytest.current_dir(&folder))
}

/// Builds the compiled part as for the tests, and runs the tests and the examples of the package. Returns the reason if
/// they were left out because packages could not be installed.
pub fn check(root: &Path, workspace: &[&str], features: &[String]) -> Result<Option<String>> {
    let packages = match packages(root) {
        Ok(packages) => packages,
        Err(error) if process::in_ci() => return Err(error.context("NumPy and pytest could not be installed")),
        Err(error) => return Ok(Some(format!("NumPy and pytest could not be installed: {error:#}"))),
    };
    process::run(cargo(root).args(["build", "--lib"]).args(workspace).args(features))?;
    // Beside each other, as in the wheel.
    let folder = process::target(root).join("python");
    let package = folder.join("ferrite_lqcd");
    if package.exists() {
        fs::remove_dir_all(&package).with_context(|| format!("{} cannot be removed", package.display()))?;
    }
    fs::create_dir_all(&package).with_context(|| format!("{} cannot be created", package.display()))?;
    let source = root.join("python/ferrite_lqcd");
    let built = process::target(root).join(process::PROFILE).join("libferrite_lqcd.so");
    let files = source.read_dir().with_context(|| format!("{} cannot be read", source.display()))?;
    let files = files.flatten().map(|entry| (entry.path(), entry.file_name())).filter(|(path, _)| path.is_file());
    for (from, name) in files.chain([(built, "_native.abi3.so".into())]) {
        let to = package.join(name);
        fs::copy(&from, &to).with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
    }
    let mut pytest = packages.python(&[&folder])?;
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--durations=5", "--doctest-modules"]);
    // Not in the folder of the sources, which has no compiled part.
    pytest.arg(&package).arg(root.join("python/tests")).current_dir(&folder);
    process::run(&mut pytest)?;
    Ok(None)
}
