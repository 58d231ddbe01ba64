//! `cargo xtask demo` and `cargo xtask bench`: builds the program and demonstrates it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::{build_ptx, process, setup};

/// Help text of `demo`.
pub const DEMO_HELP: &str = "\
Generate a weak gauge field on a 16x16x16x32 lattice, verify the file, solve the Wilson-Dirac equation on it to 1e-10
in double precision, and plot the convergence. Uses the GPU if there is one. All files are written to target/demo.

Usage: cargo xtask demo [-- <more options for `ferrite solve`, which replace those of the demo>]
";

/// Help text of `bench`.
pub const BENCH_HELP: &str = "\
Build the program and time the Dirac operators on this machine with `ferrite bench dslash`.

Usage: cargo xtask bench [<options for `ferrite bench dslash`>]
";

/// Runs the command `demo`.
pub fn demo(args: &[String]) -> Result<()> {
    let root = process::root()?;
    let more = match args.split_first() {
        None => &[],
        Some((first, rest)) if first == "--" => rest,
        Some((first, _)) => {
            bail!("unknown argument '{first}'; write options of `ferrite solve` after --")
        }
    };
    let ferrite = program(&root)?;
    let folder = root.join("target/demo");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    let (gauge, solution, plot) =
        ("target/demo/weak_field.ildg", "target/demo/solution.npy", "target/demo/convergence.svg");

    let start = |arguments: &[&str]| {
        let mut command = Command::new(&ferrite);
        command.current_dir(&root).args(arguments);
        println!("\n$ ferrite {}", arguments.join(" "));
        command
    };
    process::run(&mut start(&["generate", "weak-field", "--lattice", "16,16,16,32", "--seed", "7", "-o", gauge]))?;
    process::run(&mut start(&["verify", gauge]))?;
    let chosen = [
        (&["--gauge"][..], gauge),
        // `--operator` also suppresses the demo's choice of a solver, since staggered operators lack some solvers.
        (&["--operator"], "wilson"),
        (&["--mass", "--kappa"], "0.1"),
        (&["--source"], "random:1"),
        (&["--solver", "--operator"], "bicgstab"),
        (&["--precision"], "double"),
        (&["--tol"], "1e-10"),
        (&["-o", "--output"], solution),
        (&["--plot"], plot),
    ];
    let mut solve = vec!["solve"];
    solve.extend(unless_given(&chosen, more));
    solve.extend(more.iter().map(String::as_str));
    if !is_given("--json", more) {
        solve.push("--json");
    }
    let report = json_of(&mut start(&solve))?;

    println!("\n{}", summary(&report)?);
    for (what, key) in [("solution", "output"), ("convergence plot", "plot")] {
        if let Some(file) = report[key].as_str() {
            println!("{what}: {file}");
        }
    }
    if report["converged"] != true {
        bail!("the solver did not converge");
    }
    Ok(())
}

/// Returns whether a flag is among the arguments, with its value attached or separate.
fn is_given(flag: &str, arguments: &[String]) -> bool {
    let is_it =
        |argument: &String| argument.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
    arguments.iter().any(is_it)
}

/// Returns the flags with the demo's values, each under its first name, except those given by the user under any of
/// their names.
fn unless_given<'a>(chosen: &[(&[&'a str], &'a str)], more: &[String]) -> Vec<&'a str> {
    let left = chosen.iter().filter(|(names, _)| !names.iter().any(|name| is_given(name, more)));
    left.flat_map(|(names, value)| [names[0], value]).collect()
}

/// Runs the command `bench`.
pub fn bench(args: &[String]) -> Result<()> {
    let root = process::root()?;
    let args = args.strip_prefix(&["--".to_string()]).unwrap_or(args);
    process::run(Command::new(program(&root)?).current_dir(&root).args(["bench", "dslash"]).args(args))
}

/// Returns whether a driver has found a GPU, on Linux or in a Linux subsystem of Windows.
fn has_gpu() -> bool {
    ["/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"].iter().any(|device| Path::new(device).exists())
}

/// Builds the program, and the kernels if there is a GPU for them; returns the path of the program. Without a kernel
/// compiler the CPU still does everything.
pub fn program(root: &Path) -> Result<PathBuf> {
    build(root, &["ferrite-cli"])
}

/// Builds the program, and the program `ferrite-studies` into the same folder; returns the path of the former.
pub fn program_and_studies(root: &Path) -> Result<PathBuf> {
    build(root, &["ferrite-cli", "ferrite-studies"])
}

fn build(root: &Path, packages: &[&str]) -> Result<PathBuf> {
    if !has_gpu() {
        println!("no NVIDIA GPU on this machine: its kernels are skipped (cargo xtask build-ptx compiles them)");
    } else if let Err(error) = setup::setup(root, None).and_then(|()| build_ptx::build(root, None, &[], true)) {
        eprintln!("no GPU kernels: {error:#}. Continuing with the CPU.");
    }
    let mpi: &[&str] = if setup::find_mpi().is_ok() { &["--features", "mpi"] } else { &[] };
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    process::run(process::cargo(root).args(["build", "--release", "--bins"]).args(packages).args(mpi))?;
    Ok(process::target(root).join("release/ferrite"))
}

/// Runs a program and returns the JSON object on its standard output; other lines are shown, as is standard error.
fn json_of(command: &mut Command) -> Result<Value> {
    let line = process::line(command);
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("`{line}` cannot be started"))?;
    let stdout = child.stdout.take().ok_or_else(|| anyhow!("`{line}` has no output"))?;
    let (mut object, mut all) = (None, String::new());
    for text in BufReader::new(stdout).lines() {
        let text = text?;
        match serde_json::from_str::<Value>(&text) {
            // Progress may come as JSON lines too; the result is the last object.
            Ok(value) if value.is_object() => object = Some(value),
            _ => {
                println!("{text}");
                all.push_str(&text);
            }
        }
    }
    // The result may also be spread over several lines.
    let object = object.or_else(|| serde_json::from_str(all.get(all.find('{')?..)?).ok());
    let status = child.wait()?;
    if !status.success() && object.is_none() {
        bail!("`{line}` failed ({status})");
    }
    object.ok_or_else(|| anyhow!("`{line}` printed no JSON object"))
}

/// Summarises the solve in one paragraph.
fn summary(report: &Value) -> Result<String> {
    let number = |key: &str| report[key].as_f64().ok_or_else(|| anyhow!("the solver's JSON output lacks '{key}'"));
    Ok(format!(
        "{} after {} iterations: |b - Mx| / |b| = {:.2e}, computed from the solution\n{:.3} s, {:.1} GFLOP/s on {}",
        if report["converged"] == true { "converged" } else { "NOT converged" },
        number("iterations")?,
        number("true_residual")?,
        number("seconds")?,
        number("gflops")?,
        report["backend"].as_str().unwrap_or("an unnamed backend"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_flags_win() {
        let chosen =
            [(&["--mass", "--kappa"][..], "0.1"), (&["--precision"], "double"), (&["-o", "--output"], "x.npy")];
        let left = |more: &[&str]| unless_given(&chosen, &more.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(left(&["--masses", "1,2"]), ["--mass", "0.1", "--precision", "double", "-o", "x.npy"]);
        assert_eq!(left(&["--precision", "half", "--kappa=0.12"]), ["-o", "x.npy"]);
        assert_eq!(left(&["--output", "y.npy"]), ["--mass", "0.1", "--precision", "double"]);
    }

    #[test]
    fn summary_names_what_is_missing() {
        let mut report = serde_json::json!({
            "converged": true, "iterations": 87, "true_residual": 9.1e-11, "seconds": 0.5, "gflops": 120.25,
            "backend": "cpu",
        });
        let text = summary(&report).unwrap();
        assert!(text.contains("converged after 87 iterations") && text.contains("9.10e-11"), "{text}");
        assert!(text.contains("120.2 GFLOP/s on cpu"), "{text}");
        report["seconds"] = Value::Null;
        assert!(summary(&report).unwrap_err().to_string().contains("'seconds'"));
    }
}
