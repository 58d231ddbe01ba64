//! Tests of all crates: their programs are built together and run one after another.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::passed::{self, Passed};
use crate::process::{self, cargo};

/// Test program of a library, of a program or of a folder `tests`.
struct TestProgram {
    /// Names of package and target.
    name: String,
    executable: PathBuf,
    /// Folder of the package, in which its tests run.
    folder: PathBuf,
}

impl TestProgram {
    /// Creates a test program from a line that cargo prints about an artifact.
    fn of_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let executable = message["executable"].as_str().filter(|_| is_test)?.into();
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
        let package = folder.file_name()?.to_string_lossy();
        let target = &message["target"];
        let name = format!("{package}, {} {}", target["kind"][0].as_str()?, target["name"].as_str()?);
        Some(Self { name, executable, folder })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// Returns the names of the tests that `arguments` select.
    fn list(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let (listed, _) = process::capture(self.command().arg("--list").args(arguments))?;
        Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect())
    }
}

/// Test suite: packages to test, and the program that tests use.
pub struct Suite<'a> {
    /// Top folder of the repository.
    pub root: &'a Path,
    /// Options for cargo: profile, packages, features.
    pub options: Vec<String>,
    /// Path of the program `ferrite`.
    pub program: PathBuf,
}

impl Suite<'_> {
    /// Builds tests: those of all targets, or of the selected `targets`.
    fn build(&self, targets: &[&str]) -> Result<Vec<TestProgram>> {
        let mut build = cargo(self.root);
        build
            .args(["test", "--no-run", "--message-format", "json-render-diagnostics"])
            .args(&self.options)
            .args(targets);
        let output = build.stderr(Stdio::inherit()).output().context("cargo cannot be started")?;
        if !output.status.success() {
            bail!("the tests do not compile");
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(TestProgram::of_message).collect())
    }

    /// Runs all tests, exhaustive ones only if `full`; returns the names of those that were left out.
    pub fn run(&self, full: bool, passed: &mut Passed) -> Result<Vec<String>> {
        let chosen: &[&str] = if full { &["--include-ignored"] } else { &[] };
        let mut left_out = Vec::new();
        for tests in self.build(&[])? {
            if !full {
                left_out.extend(tests.list(&["--ignored"])?);
            }
            let run = || process::run(tests.command().env("FERRITE_BIN", &self.program).args(chosen));
            println!("--- {}", tests.name);
            // Tests of xtask read the sources.
            if tests.folder.ends_with("xtask") {
                run()?;
                continue;
            }
            let state = self.state(&tests.executable)?.map(|state| format!("full: {full}, {state}"));
            passed.unless_same(&tests.name, state, run)?;
        }
        println!("--- examples in documentation");
        process::run(cargo(self.root).args(["test", "--doc"]).args(&self.options))?;
        Ok(left_out)
    }

    /// Builds the program and runs the tests with `filter` in their names, exhaustive ones too; returns their number.
    pub fn run_named(&self, filter: &str) -> Result<usize> {
        process::run(cargo(self.root).args(["build", "--bins"]).args(&self.options))?;
        let mut count = 0;
        for tests in self.build(&["--lib", "--test", "all"])? {
            let names = tests.list(&[filter])?;
            if !names.is_empty() {
                println!("--- {}", tests.name);
                let arguments = [filter, "--include-ignored"];
                process::run(tests.command().env("FERRITE_BIN", &self.program).args(arguments))?;
            }
            count += names.len();
        }
        Ok(count)
    }

    /// Returns the state of the files that tests read: the tests themselves, the programs, the data of other codes, and
    /// the repository's files that are not compiled. `None` if git cannot list the latter.
    fn state(&self, executable: &Path) -> Result<Option<String>> {
        let list = process::capture(Command::new("git").current_dir(self.root).args(["ls-files", "-z"]));
        let Ok((files, _)) = list else { return Ok(None) };
        let compiled = |file: &str| file.ends_with(".rs") || file.starts_with("docs/measurements/");
        let files = files.split('\0').filter(|file| !file.is_empty() && !compiled(file));
        let mut paths: Vec<PathBuf> = files.map(|file| self.root.join(file)).collect();
        paths.extend(["ferrite-studies", "gpu_check", "halo_check"].map(|name| self.program.with_file_name(name)));
        paths.extend([self.program.clone(), executable.to_path_buf()]);
        let beside = || self.root.join("../shared/refdata");
        paths.push(std::env::var_os("FERRITE_REFDATA").map_or_else(beside, PathBuf::from));
        passed::state_of(paths.iter().map(PathBuf::as_path)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_read_from_what_cargo_prints() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/a/solvers/Cargo.toml","target":{"kind":["test"],
            "name":"all"},"profile":{"test":true},"executable":"/a/target/all-1"}"#;
        let program = TestProgram::of_message(&line.replace('\n', "")).unwrap();
        assert_eq!((program.name.as_str(), program.folder), ("solvers, test all", "/a/solvers".into()));
        assert_eq!(program.executable, Path::new("/a/target/all-1"));
        for other in [line.replace("true", "false"), line.replace(r#""/a/target/all-1""#, "null"), "Compiling".into()] {
            assert!(TestProgram::of_message(&other.replace('\n', "")).is_none(), "{other}");
        }
    }
}
