//! Fuzz targets: with `--full` each runs for a minute, otherwise it suffices that they compile.
//!
//! The targets are built by cargo alone, with the compiler of the workspace and the flags that cargo-fuzz passes
//! without a sanitizer; the commands of CONTRIBUTING.md run sanitizers.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::Steps;
use crate::process::{self, cargo};

/// Run time of each target in seconds.
const SECONDS: u32 = 60;

/// Memory limit of each target in MiB: a larger allocation is a failure.
const MEMORY: u32 = 2048;

/// Compiler flags for the coverage instrumentation that libFuzzer needs.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";

/// Description of the additional work of `--full`.
pub const ONLY_FULL: &str = "security advisories, and a minute of each fuzz target";

/// Runs the step; leaves it out if the dependencies that only it needs are not available.
pub fn step(root: &Path, full: bool, program: &Path, steps: &mut Steps) -> Result<()> {
    // Dependencies of the fuzz targets only: there may be no network.
    if let Err(error) = process::run(&mut of_fuzz(root, "fetch")) {
        if process::in_ci() {
            return Err(error);
        }
        steps.left_out("fuzz targets", "their dependencies could not be fetched");
        return Ok(());
    }
    if full && process::on_path("c++").is_none() && !process::in_ci() {
        steps.left_out("fuzz targets' minutes", "libFuzzer needs a C++ compiler, c++");
        return steps.step("fuzz targets", || compile(root));
    }
    steps.step("fuzz targets", || if full { run(root, program) } else { compile(root) })
}

fn of_fuzz(root: &Path, command: &str) -> Command {
    let mut cargo = cargo(root);
    cargo.args([command, "--locked", "--manifest-path"]).arg(root.join("fuzz/Cargo.toml"));
    cargo
}

/// Checks that the targets, which are a separate workspace, still compile.
fn compile(root: &Path) -> Result<()> {
    let target = process::target(root).join("fuzz-check");
    let mut check = of_fuzz(root, "check");
    check.args(["--offline", "--target-dir"]).arg(&target);
    // Nothing is linked: with this variable set, the crate libfuzzer-sys does not compile the library, which would need
    // C++.
    process::run(check.env("CUSTOM_LIBFUZZER_PATH", target.join("libunused.a")))
}

/// Runs each target for a minute, as many in parallel as there are cores.
fn run(root: &Path, program: &Path) -> Result<()> {
    let names = names(root)?;
    let folder = process::target(root).join("fuzz");
    let host = host(root)?;
    let mut build = of_fuzz(root, "build");
    // A separate target, so that programs of the build are not instrumented too.
    build.args(["--offline", "--release", "--bins", "--target", &host, "--target-dir"]).arg(&folder);
    process::run(build.env("RUSTFLAGS", COVERAGE))?;
    seeds(root, program, &folder)?;
    let programs = folder.join(&host).join("release");
    let (mut waiting, mut failed) = (VecDeque::from(names), Vec::new());
    let mut running: Vec<(String, Child)> = Vec::new();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} targets for {SECONDS} s each, {cores} in parallel; logs in {}", waiting.len(), folder.display());
    while !(waiting.is_empty() && running.is_empty()) {
        while running.len() < cores
            && let Some(name) = waiting.pop_front()
        {
            let child = start(&programs, &folder, &name)?;
            running.push((name, child));
        }
        std::thread::sleep(Duration::from_millis(200));
        let mut still = Vec::new();
        for (name, mut child) in running {
            match child.try_wait()? {
                None => still.push((name, child)),
                Some(status) if status.success() => println!("{name}: {}", last_line(&log(&folder, &name))),
                Some(status) => {
                    failed.push(format!("{name} ended with {status}: see {}", log(&folder, &name).display()))
                }
            }
        }
        running = still;
    }
    if failed.is_empty() { Ok(()) } else { Err(anyhow!("{}", failed.join("\n"))) }
}

/// Returns the names of the targets.
fn names(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in root.join("fuzz/fuzz_targets").read_dir().context("fuzz/fuzz_targets cannot be read")? {
        let name =
            entry?.file_name().into_string().map_err(|name| anyhow!("{} is not a valid name", name.display()))?;
        names.extend(name.strip_suffix(".rs").map(String::from));
    }
    names.sort();
    if names.is_empty() {
        bail!("no fuzz targets");
    }
    Ok(names)
}

fn host(root: &Path) -> Result<String> {
    let (version, _) = process::capture(Command::new("rustc").arg("-vV").current_dir(root))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` does not print the host")?.to_string())
}

fn log(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

fn corpus(folder: &Path, name: &str) -> PathBuf {
    folder.join("corpus").join(name)
}

fn start(programs: &Path, folder: &Path, name: &str) -> Result<Child> {
    let found = corpus(folder, name);
    fs::create_dir_all(&found)?;
    let artifacts = folder.join(format!("found-{name}-"));
    let mut command = Command::new(programs.join(name));
    command.arg(&found).args([
        format!("-max_total_time={SECONDS}"),
        format!("-rss_limit_mb={MEMORY}"),
        format!("-artifact_prefix={}", artifacts.display()),
        // The output of the program is not checked.
        "-close_fd_mask=1".into(),
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log(folder, name))?);
    command.spawn().with_context(|| format!("{name} cannot be started"))
}

/// Returns the end of a log, which contains the number of inputs.
fn last_line(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    text.lines().rfind(|line| line.starts_with("Done ")).unwrap_or("done").to_string()
}

/// Writes seed files with the program: starting from nothing, a minute does not even lead to a header.
fn seeds(root: &Path, program: &Path, folder: &Path) -> Result<()> {
    if !program.exists() {
        println!("{} is not built, so that the targets start without inputs", program.display());
        return Ok(());
    }
    let room = folder.join("seeds");
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room)?;
    fs::copy(root.join("fuzz/rhmc.toml"), room.join("rhmc.toml"))?;
    let ferrite = |line: &str| {
        let words = line.split(' ').chain(["--backend", "cpu", "--quiet"]);
        process::capture(Command::new(program).args(words).current_dir(&room)).map(|(out, _)| out)
    };
    for (ending, name) in [("nersc", "nersc"), ("ildg", "lime"), ("lime", "lime"), ("npy", "npy")] {
        ferrite(&format!("generate unit --lattice 2,2,2,2 -o u.{ending}"))?;
        seed(folder, name, ending, &fs::read(room.join(format!("u.{ending}")))?)?;
    }
    ferrite("generate weak-field --lattice 4,4,4,4 --seed 1 -o w.ildg")?;
    ferrite(
        "solve --gauge w.ildg --mass 0.1 --source point:0,0,0,0,0,0 --solver multigrid --mg-vectors 8 --setup w.setup -o x.npy",
    )?;
    seed(folder, "setup", "setup", &fs::read(room.join("w.setup"))?)?;
    for kind in ["solve", "rhmc", "spectrum"] {
        seed(folder, "input", kind, ferrite(&format!("init {kind} --text"))?.as_bytes())?;
    }
    ferrite("rhmc rhmc.toml --out run --set trajectories=2 --set start=hot")?;
    for (name, file) in [("state", "state.toml"), ("trajectories", "trajectories.jsonl")] {
        seed(folder, name, file, &fs::read(room.join("run").join(file))?)?;
    }
    let points = "scaling.json";
    seed(folder, "report", points, &fs::read(root.join("docs/measurements").join(points))?)?;
    Ok(())
}

fn seed(folder: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let corpus = corpus(folder, target);
    fs::create_dir_all(&corpus)?;
    fs::write(corpus.join(format!("seed-{name}")), bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the manifest names every file of targets: otherwise it would be neither built nor run.
    #[test]
    fn every_target_is_built() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        let readme = fs::read_to_string(root.join("fuzz/README.md")).unwrap();
        for name in names(root).unwrap() {
            assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"")), "{name}");
            assert!(readme.contains(&format!("`{name}`")), "fuzz/README.md does not name {name}");
        }
    }
}
