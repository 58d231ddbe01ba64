//! `cargo xtask dist`: creates an archive that runs on other machines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo};
use crate::{build_ptx, setup};

/// Help text of the command.
pub const DIST_HELP: &str = "\
Make target/dist/ferrite-VERSION-MACHINE.tar.gz: the program with its GPU kernels, manual pages, shell completions,
documentation and licences. It runs from any folder, with or without a GPU. bin/ferrite needs no MPI; bin/ferrite-mpi,
which is included if this machine has MPI, needs an MPI library of the same kind. Both need a C library at least as new
as this machine's.

Usage: cargo xtask dist [--no-mpi]

  --no-mpi  do not include bin/ferrite-mpi
";

/// Files of the repository that are included.
const FILES: [&str; 6] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "docs", "examples"];

/// Runs the command.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let no_mpi = process::take_flag(&mut args, "--no-mpi");
    process::expect_no_more(&args)?;
    let root = process::root()?;
    setup::run(&[])?;
    build_ptx::run(&[])?;
    let plain = program(&root, "plain", &[])?;
    let with_mpi = match setup::find_mpi() {
        Ok(_) if !no_mpi => Some(program(&root, "mpi", &["--features", "mpi"])?),
        _ => None,
    };
    let (archive, _) = pack(&root, &process::target(&root).join("dist"), &plain, with_mpi.as_deref())?;
    println!("{}", archive.display());
    Ok(())
}

/// Creates an archive of a program that is already built, unpacks it elsewhere, and uses it with an empty environment.
pub fn check(root: &Path, program: &Path) -> Result<()> {
    let scratch = process::target(root).join("dist-check");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| format!("{} cannot be removed", scratch.display()))?;
    }
    let (archive, name) = pack(root, &scratch, program, None)?;
    let elsewhere = scratch.join("elsewhere");
    fs::create_dir_all(&elsewhere).with_context(|| format!("{} cannot be created", elsewhere.display()))?;
    process::run(Command::new("tar").arg("-C").arg(&elsewhere).arg("-xzf").arg(&archive))?;
    let unpacked = elsewhere.join(&name);
    for file in [
        "share/man/man1/ferrite.1",
        "share/man/man1/ferrite-solve.1",
        "share/bash-completion/completions/ferrite",
        "share/zsh/site-functions/_ferrite",
        "share/fish/vendor_completions.d/ferrite.fish",
        "share/doc/ferrite/README.md",
        "share/doc/ferrite/docs/index.md",
        "share/doc/ferrite/examples/pion.py",
    ] {
        let length = fs::metadata(unpacked.join(file)).map(|data| data.len());
        if !length.as_ref().is_ok_and(|length| *length > 100) {
            bail!("the archive does not contain {file}, or the file is empty");
        }
    }
    let ferrite = |arguments: &str| {
        let mut command = Command::new(unpacked.join("bin/ferrite"));
        command.env_clear().current_dir(&elsewhere).args(arguments.split(' '));
        command
    };
    process::run(&mut ferrite("info"))?;
    process::run(&mut ferrite("generate weak-field --lattice 4,4,4,8 --seed 1 -o u.ildg --backend cpu"))?;
    process::run(&mut ferrite("solve --gauge u.ildg --mass 0.1 --source random:1 --backend cpu -o x.npy"))
}

/// Writes the archive into `dist`; returns its path and the name of the folder in it.
fn pack(root: &Path, dist: &Path, plain: &Path, with_mpi: Option<&Path>) -> Result<(PathBuf, String)> {
    let (version, _) = process::capture(Command::new(plain).arg("--version"))?;
    let version = version.trim().rsplit(' ').next().unwrap_or_default().to_string();
    if version.is_empty() {
        bail!("{} --version prints nothing", plain.display());
    }
    let name = format!("ferrite-{version}-{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    assemble(root, &dist.join(&name), plain, with_mpi)?;
    let archive = dist.join(format!("{name}.tar.gz"));
    process::run(Command::new("tar").arg("-C").arg(dist).arg("-czf").arg(&archive).arg(&name))?;
    Ok((archive, name))
}

/// Builds the program in a separate folder, so that the one in target/release stays as it is.
fn program(root: &Path, which: &str, features: &[&str]) -> Result<PathBuf> {
    let target = process::target(root).join("dist").join(which);
    let build = ["build", "--release", "--package", "ferrite-cli", "--bin", "ferrite", "--target-dir"];
    let mut cargo = cargo(root);
    // For any machine: the one it is built on may have more vector instructions than others, or fewer.
    cargo.args(build).arg(&target).args(features).env("FERRITE_VECTORS", "all");
    if let Some(commit) = commit(root) {
        // The program is built completely from this commit, so it may report the commit as its own.
        cargo.env("FERRITE_COMMIT", commit);
    }
    process::run(&mut cargo)?;
    Ok(target.join("release/ferrite"))
}

/// Returns the commit of the sources, with a remark if they differ from it; `None` outside a repository.
fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let (text, _) = process::capture(Command::new("git").arg("-C").arg(root).args(arguments)).ok()?;
        Some(text.trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    let changed = !git(&["status", "--porcelain"])?.is_empty();
    Some(if changed { format!("{commit} with changes") } else { commit })
}

/// Collects the contents of the archive.
fn assemble(root: &Path, folder: &Path, plain: &Path, with_mpi: Option<&Path>) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    let make = |path: &Path| fs::create_dir_all(path).with_context(|| format!("{} cannot be created", path.display()));
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to).with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))
    };
    let (bin, share) = (folder.join("bin"), folder.join("share"));
    make(&bin)?;
    copy(plain, &bin.join("ferrite"))?;
    if let Some(program) = with_mpi {
        copy(program, &bin.join("ferrite-mpi"))?;
    }
    let ferrite = || Command::new(bin.join("ferrite"));
    process::run(ferrite().arg("man").arg(share.join("man/man1")))?;
    for (shell, place) in [
        ("bash", "bash-completion/completions/ferrite"),
        ("zsh", "zsh/site-functions/_ferrite"),
        ("fish", "fish/vendor_completions.d/ferrite.fish"),
    ] {
        let path = share.join(place);
        if let Some(folder) = path.parent() {
            make(folder)?;
        }
        let (script, _) = process::capture(ferrite().args(["completions", shell]))?;
        fs::write(&path, script).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let docs = share.join("doc/ferrite");
    make(&docs)?;
    for name in FILES {
        copy_all(&root.join(name), &docs.join(name))?;
    }
    Ok(())
}

/// Copies a file, or a folder with its contents except for crates.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        fs::copy(from, to).with_context(|| format!("{} cannot be copied", from.display()))?;
        return Ok(());
    }
    if from.join("Cargo.toml").exists() {
        return Ok(());
    }
    fs::create_dir_all(to).with_context(|| format!("{} cannot be created", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be read", from.display()))? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
