//! `cargo xtask test`: everything that continuous integration does, cheap checks first.

mod fuzz;
mod passed;
mod suite;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use self::passed::Passed;
use self::suite::Suite;
use crate::process::{self, PROFILE, cargo};
use crate::{book, build_ptx, capi, check_ptx, dependencies, dist, embed, python, rooms, setup, unsafe_rooms, words};

/// Help text of the command.
pub const TEST_HELP: &str = "\
Run everything that continuous integration runs: formatting, dependencies, places of `unsafe`, dependencies between rooms,
setup, build-ptx, check-ptx, clippy, the tests, the Python package, the libraries for C, PyQUDA on QUDA's interface, the examples, a separate program that uses the crates
(with and without CUDA, and with one format), the book with its commands, an archive for other machines, compilation of
the fuzz targets, and the documentation without warnings. Stops at the first failure. rustfmt and clippy are installed with
rustup if the toolchain does not include them.

Usage: cargo xtask test [--full] [--again] [--no-ptx] [--only NAME]

  --full       also run exhaustive tests: each operator in each format on each process grid, and long Markov chains; a
               minute of each fuzz target, in parallel on all cores; and the check for security advisories on dependencies,
               which needs the network. Without it, the summary lists the skipped tests
  --again      also run tests that passed before and whose inputs have not changed since
  --no-ptx     skip setup, build-ptx and check-ptx
  --only NAME  run the step of this name (such as 'documentation'; the summary lists the names), or the tests with NAME in
               their names, including exhaustive ones: an operator, a solver, a file format

If no kernel compiler can be installed, build-ptx and check-ptx are skipped, which the summary reports; so are the tests
with MPI without an MPI library, the book's pages without mkdocs, the rules for dependencies without cargo-deny, and fuzz
targets if their dependencies cannot be fetched. With CI=true in the environment that is a failure.
";

/// Outcome of a step.
enum StepOutcome {
    Passed,
    /// The step was left out, for this reason.
    LeftOut(String),
    Failed,
}

/// Steps run so far.
#[derive(Default)]
struct Steps {
    done: Vec<(&'static str, Duration, StepOutcome)>,
    /// Name of the only step to run, if not all are.
    only: Option<String>,
    /// Names of the tests that only `--full` runs; the next field names other work of `--full`.
    exhaustive: Vec<String>,
    more: Option<&'static str>,
}

impl Steps {
    /// Runs one step, and prints its name and its time in seconds.
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.only.as_deref().is_some_and(|only| only != name) {
            return Ok(());
        }
        println!("\n=== {name}");
        let start = Instant::now();
        let result = work();
        let (outcome, word) = match &result {
            Ok(()) => (StepOutcome::Passed, "passed"),
            Err(_) => (StepOutcome::Failed, "failed"),
        };
        println!("=== {name}: {word}, {:.1} s", start.elapsed().as_secs_f64());
        self.done.push((name, start.elapsed(), outcome));
        result.map_err(|error| error.context(format!("{name} failed")))
    }

    fn left_out(&mut self, name: &'static str, reason: &str) {
        self.done.push((name, Duration::ZERO, StepOutcome::LeftOut(reason.to_string())));
    }

    fn print(&self) {
        println!("\nsummary");
        for (name, time, outcome) in &self.done {
            let text = match outcome {
                StepOutcome::Passed => "passed".to_string(),
                StepOutcome::Failed => "FAILED".to_string(),
                StepOutcome::LeftOut(reason) => format!("left out: {reason}"),
            };
            println!("  {name:<24} {:>7.1} s  {text}", time.as_secs_f64());
        }
        let total: Duration = self.done.iter().map(|(_, time, _)| *time).sum();
        println!("  {:<24} {:>7.1} s", "all", total.as_secs_f64());
        if let Some(text) = only_full(&self.exhaustive, self.more) {
            println!("{text}");
        }
    }
}

/// Describes the work that only `--full` does, with the number of tests and their names.
fn only_full(tests: &[String], more: Option<&str>) -> Option<String> {
    let count = (!tests.is_empty()).then(|| process::plural(tests.len(), "test"));
    let what: Vec<&str> = count.as_deref().into_iter().chain(more).collect();
    let names: String = tests.iter().map(|name| format!("\n  {name}")).collect();
    (!what.is_empty()).then(|| format!("only with --full: {}{names}", what.join(" and ")))
}

/// Runs the command.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let no_ptx = process::take_flag(&mut args, "--no-ptx");
    let (full, again) = (process::take_flag(&mut args, "--full"), process::take_flag(&mut args, "--again"));
    let only = process::take_option(&mut args, "--only")?;
    process::expect_no_more(&args)?;
    let root = process::root()?;
    if let Some(filter) = only.as_deref().filter(|name| !STEPS.contains(name)) {
        return tests_named(&root, filter);
    }
    let mut steps = Steps { only, ..Steps::default() };
    let mut passed = Passed::read(&process::target(&root), again);
    let result = all(&root, no_ptx, full, &mut passed, &mut steps);
    steps.print();
    result
}

/// Names of the steps that `--only` can select.
const STEPS: [&str; 22] = [
    "formatting",
    "dependencies",
    "where `unsafe` is",
    "rooms",
    "words",
    "setup",
    "build-ptx",
    "check-ptx",
    "clippy",
    "program",
    "tests",
    "Python",
    "C",
    "PyQUDA",
    "book",
    "archive",
    "examples",
    "embedding",
    "program without CUDA",
    "HDF5",
    "fuzz targets",
    "documentation",
];

/// Names of the steps that need a compiler for kernels.
const KERNEL_STEPS: [&str; 3] = ["setup", "build-ptx", "check-ptx"];

/// Builds the program and runs the tests with `filter` in their names; fails if there are none.
fn tests_named(root: &Path, filter: &str) -> Result<()> {
    let start = Instant::now();
    let mut steps = Steps::default();
    let features = with_mpi(&mut steps)?;
    let count = suite(root, &features).run_named(filter)?;
    if count == 0 {
        bail!("no test has '{filter}' in its name, and no step has this name");
    }
    println!("{}, {:.1} s", process::plural(count, "test"), start.elapsed().as_secs_f64());
    Ok(())
}

/// Returns the tests of the workspace with these features.
fn suite<'a>(root: &'a Path, features: &[String]) -> Suite<'a> {
    let options = ["--profile", PROFILE, "--workspace"].map(String::from).into_iter().chain(features.iter().cloned());
    Suite { root, options: options.collect(), program: process::target(root).join(PROFILE).join("ferrite") }
}

fn all(root: &Path, no_ptx: bool, full: bool, passed: &mut Passed, steps: &mut Steps) -> Result<()> {
    components(root)?;
    steps.step("formatting", || {
        let formatted = process::run(cargo(root).args(["fmt", "--all", "--check"]));
        formatted.map_err(|_| anyhow!("some files are not formatted; run `cargo fmt --all`"))
    })?;
    let mut no_rules = None;
    steps.step("dependencies", || {
        no_rules = dependencies::check(root, full)?;
        Ok(())
    })?;
    if let Some(why) = no_rules {
        steps.left_out("rules for dependencies", &why);
    }
    steps.step("where `unsafe` is", || unsafe_rooms::check(root))?;
    steps.step("rooms", || rooms::check(root))?;
    steps.step("words", || words::check(root))?;
    if no_ptx {
        steps.left_out("kernels", "--no-ptx");
    } else if steps.only.as_deref().is_none_or(|only| KERNEL_STEPS.contains(&only)) {
        kernels(root, steps)?;
    }
    let features = with_mpi(steps)?;
    let workspace = ["--profile", PROFILE, "--workspace"];
    steps.step("clippy", || {
        let lints = ["--all-targets", "--", "-D", "warnings"];
        process::run(cargo(root).arg("clippy").args(workspace).args(&features).args(lints))
    })?;
    // With the features of the tests, so that nothing is compiled twice.
    let programs = ["build", "--bins", "--examples"];
    steps.step("program", || process::run(cargo(root).args(programs).args(workspace).args(&features)))?;
    let program = process::target(root).join(PROFILE).join("ferrite");
    let mut exhaustive = Vec::new();
    steps.step("tests", || {
        exhaustive = suite(root, &features).run(full, passed)?;
        Ok(())
    })?;
    steps.exhaustive = exhaustive;
    if !full && steps.only.as_deref().is_none_or(|only| only == "fuzz targets") {
        steps.more = Some(fuzz::ONLY_FULL);
    }
    let mut no_python = None;
    steps.step("Python", || {
        no_python = python::check(root, &workspace, &features)?;
        Ok(())
    })?;
    if let Some(why) = no_python {
        steps.left_out("tests in Python", &why);
    }
    let mut no_compiler = None;
    steps.step("C", || {
        no_compiler = capi::check(root, &workspace, &features)?;
        Ok(())
    })?;
    if let Some(why) = no_compiler {
        steps.left_out("libraries for C", &why);
    }
    let mut no_pyquda = None;
    steps.step("PyQUDA", || {
        no_pyquda = capi::pyquda(root, !features.is_empty())?;
        Ok(())
    })?;
    if let Some(why) = no_pyquda {
        steps.left_out("tests with PyQUDA", &why);
    }
    let mut no_pages = None;
    steps.step("book", || {
        let studies = program.with_file_name("ferrite-studies");
        let read = passed::state_of([
            &*program,
            &studies,
            &root.join("docs"),
            &root.join("README.md"),
            &root.join("xtask/src"),
        ])?;
        passed.unless_same("the book's commands", Some(read), || book::run_pages(root, &program, &[]))?;
        no_pages = book::build(root)?;
        Ok(())
    })?;
    if let Some(why) = no_pages {
        steps.left_out("pages of the book", &why);
    }
    steps.step("archive", || dist::check(root, &program))?;
    steps.step("examples", || embed::examples(root))?;
    steps.step("embedding", || embed::foreign(root))?;
    // The library without CUDA was just built; for the program it suffices that it compiles.
    steps.step("program without CUDA", || {
        let options = ["--no-default-features", "--package", "ferrite-cli", "--bin", "ferrite"];
        process::run(cargo(root).args(["check", "--profile", PROFILE]).args(options))
    })?;
    if setup::has_hdf5() {
        // Code that depends on the feature compiles; its tests would need another build of everything.
        steps.step("HDF5", || {
            let options = ["--package", "ferrite-cli", "--package", "ferrite-tests", "--profile", PROFILE];
            let features = ["--features", "ferrite-cli/hdf5,ferrite-tests/hdf5"];
            let mut command = cargo(root);
            match full {
                true => command.arg("test").args(options).args(features).args(["--test", "all", "--", "hdf5::"]),
                false => command.arg("check").args(options).args(features).args(["--bins", "--tests"]),
            };
            process::run(&mut command)
        })?;
    } else if steps.only.as_deref().is_none_or(|only| only == "HDF5") {
        steps.left_out("HDF5", "pkg-config finds no HDF5 library, and HDF5_DIR names none");
    }
    if steps.only.as_deref().is_none_or(|only| only == "fuzz targets") {
        fuzz::step(root, full, &program, steps)?;
    }
    steps.step("documentation", || {
        let mut doc = cargo(root);
        process::run(doc.args(["doc", "--no-deps"]).args(workspace).args(&features).env("RUSTDOCFLAGS", "-Dwarnings"))
    })
}

/// Returns the options for cargo that build with MPI, if it is installed.
fn with_mpi(steps: &mut Steps) -> Result<Vec<String>> {
    match setup::find_mpi() {
        Ok(_) => Ok(vec![
            "--features".into(),
            "comms/mpi,ferrite/mpi,ferrite-capi/mpi,ferrite-quda/mpi,ferrite-cli/mpi,ferrite-python/mpi,ferrite-tests/mpi".into(),
        ]),
        Err(missing) if process::in_ci() => bail!("the tests with MPI cannot run: {missing}"),
        Err(missing) => {
            steps.left_out("tests with MPI", &missing);
            Ok(Vec::new())
        }
    }
}

/// Installs rustfmt and clippy if the toolchain came without them, as with rustup's profile `minimal`.
fn components(root: &Path) -> Result<()> {
    let missing = |tool: &str| process::capture(cargo(root).args([tool, "--version"])).is_err();
    let tools = [("fmt", "rustfmt"), ("clippy", "clippy")].into_iter();
    let names: Vec<&str> = tools.filter(|(tool, _)| missing(tool)).map(|(_, name)| name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let advice = format!("install {} for this toolchain of Rust: the tests need them", names.join(" and "));
    let rustup = process::on_path("rustup").ok_or_else(|| anyhow!("{advice}"))?;
    process::run(Command::new(rustup).current_dir(root).args(["component", "add"]).args(&names)).context(advice)
}

/// Runs the steps that need the kernel compiler, if it is available.
fn kernels(root: &Path, steps: &mut Steps) -> Result<()> {
    if let Err(error) = steps.step("setup", || setup::run(&[])) {
        if process::in_ci() {
            return Err(error);
        }
        println!("{error:#}");
        // Not a failure of the code: a machine without network can still run the tests on the CPU.
        steps.done.pop();
        for name in ["setup", "build-ptx", "check-ptx"] {
            steps.left_out(name, "no kernel compiler could be installed");
        }
        return Ok(());
    }
    steps.step("build-ptx", || build_ptx::run(&[]))?;
    let built_with_ptxas = build_ptx::manifest(root)?["ptxas"].is_string();
    if !built_with_ptxas && !process::in_ci() {
        steps.left_out("check-ptx", "ptxas could not be installed");
        return Ok(());
    }
    steps.step("check-ptx", || check_ptx::run(&[]))
}

#[cfg(test)]
mod tests {
    use super::only_full;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_summary_names_what_only_full_does() {
        let names = ["halo::all", "quenched::long"].map(String::from);
        assert_eq!(
            only_full(&names, Some("a minute")).as_deref(),
            Some("only with --full: 2 tests and a minute\n  halo::all\n  quenched::long")
        );
        assert_eq!(only_full(&names[..1], None).as_deref(), Some("only with --full: 1 test\n  halo::all"));
        assert_eq!(only_full(&[], Some("a minute")).as_deref(), Some("only with --full: a minute"));
        assert_eq!(only_full(&[], None), None);
    }

    /// Checks that `main.rs` of `tests/all` names every file: otherwise a file would silently not be compiled.
    #[test]
    fn every_file_of_tests_is_compiled() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for package in ["comms", "rational", "solvers", "tests"] {
            let folder = root.join(package).join("tests/all");
            let main = fs::read_to_string(folder.join("main.rs")).unwrap();
            for entry in folder.read_dir().unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                // Skips folders, such as that of snapshots.
                let Some(module) = name.strip_suffix(".rs") else { continue };
                let named = module == "main" || main.lines().any(|line| line == format!("mod {module};"));
                assert!(
                    named || main.contains(&format!("/{name}\"]")),
                    "{package}/tests/all/main.rs has no `mod {module};`"
                );
            }
        }
    }
}
