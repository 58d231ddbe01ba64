//! Checks that the crates can be used in an external program as the README describes, and that the examples are right.
//!
//! The program consists of the README's own blocks, outside the repository, so that neither its workspace nor its cargo
//! configuration has any effect; build output goes to `target/embed`. The program is compiled with and without CUDA,
//! and another one with a single format.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::process::{self, cargo};

/// Heading above the blocks.
const HEADING: &str = "## In your own program";
/// Names of the programs in `host/examples`.
const EXAMPLES: [&str; 5] = ["solve", "own_operator", "own_inverter", "own_hmc", "ndarray"];
/// Text that the program prints before its residual, and the largest residual allowed for the solve of the README.
const RESIDUAL: (&str, f64) = ("true residual ", 1e-10);

/// Runs the examples, which must have been built.
pub fn examples(root: &Path) -> Result<()> {
    for name in EXAMPLES {
        println!("--- {name}");
        let built = process::target(root).join(process::PROFILE).join("examples").join(name);
        process::run(&mut std::process::Command::new(built))?;
    }
    Ok(())
}

/// Program with one format besides double precision, and the features of `ferrite` that it uses.
const ONE_FORMAT: (&str, &str) = (include_str!("embed/one_format.rs"), "\"single\", \"reconstruct-12\"");

/// Builds and runs the README's program, with the feature `cuda` and without it, and a program that uses one format
/// only.
pub fn foreign(root: &Path) -> Result<()> {
    let readme = fs::read_to_string(root.join("README.md")).context("the README cannot be read")?;
    let blocks = ReadmeBlocks::of(&readme, root)?;
    let folder = Folder(env::temp_dir().join(format!("ferrite-embedding-{}", std::process::id())));
    for (name, blocks) in
        [("with-cuda", &blocks), ("without-cuda", &blocks.without_cuda()?), ("one-format", &blocks.one_format()?)]
    {
        println!("--- {name}");
        let here = folder.0.join(name);
        blocks.write(root, &here, name)?;
        let built = process::target(root).join("embed");
        let mut build = cargo(root);
        // Settings of this repository and of a toolkit must not help.
        for variable in ["CUDA_LIBRARY_PATH", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"] {
            build.env_remove(variable);
        }
        // The check is whether it builds and is right, not whether it is fast: the first optimisation level takes half
        // the time.
        let quick = ["--config", "profile.release.opt-level=0"];
        build.current_dir(&here).args(["build", "--release", "--offline"]).args(quick).arg("--target-dir").arg(&built);
        process::run(&mut build)?;
        let (printed, _) = process::capture(&mut std::process::Command::new(built.join("release").join(name)))?;
        print!("{printed}");
        let residual = residual(&printed).context("the program does not print a residual")?;
        if residual.is_nan() || residual > RESIDUAL.1 {
            bail!("the residual of the program is {residual:e}");
        }
    }
    Ok(())
}

/// Returns the number after "true residual".
fn residual(printed: &str) -> Option<f64> {
    let (_, behind) = printed.split_once(RESIDUAL.0)?;
    behind.split_whitespace().next()?.parse().ok()
}

/// Blocks of the README, with … replaced.
#[derive(Debug, PartialEq)]
struct ReadmeBlocks {
    dependencies: String,
    /// Contents of `.cargo/config.toml`, if it is needed.
    configuration: Option<String>,
    program: String,
}

impl ReadmeBlocks {
    fn of(readme: &str, root: &Path) -> Result<Self> {
        let (_, section) = readme.split_once(HEADING).with_context(|| format!("no heading '{HEADING}'"))?;
        let section = section.split("\n## ").next().unwrap_or(section);
        let block = |language: &str, number: usize| {
            let starts = section.split(&format!("```{language}\n")).nth(number + 1);
            let text = starts.and_then(|text| text.split("```").next());
            let missing = || anyhow!("'{HEADING}' does not have {} blocks in {language}", number + 1);
            text.map(|text| text.replace('…', &root.display().to_string())).ok_or_else(missing)
        };
        Ok(ReadmeBlocks {
            dependencies: block("toml", 0)?,
            configuration: Some(block("toml", 1)?),
            program: block("rust", 0)?,
        })
    }
    /// Returns the blocks without the feature `cuda`.
    fn without_cuda(&self) -> Result<Self> {
        let dependencies = self.dependencies.replace("\"cuda\", ", "");
        if dependencies == self.dependencies {
            bail!("the README's dependency on ferrite does not have `features = [\"cuda\", …]`");
        }
        Ok(ReadmeBlocks { dependencies, configuration: None, program: self.program.clone() })
    }
    /// Returns another program, without the feature `cuda` and with one format.
    fn one_format(&self) -> Result<Self> {
        let without = self.without_cuda()?;
        let dependencies = without.dependencies.replace("\"formats\"", ONE_FORMAT.1);
        if dependencies == without.dependencies {
            bail!("the README's dependency on ferrite does not have the feature \"formats\"");
        }
        Ok(ReadmeBlocks { dependencies, program: ONE_FORMAT.0.into(), ..without })
    }
    /// Writes a crate.
    fn write(&self, root: &Path, folder: &Path, name: &str) -> Result<()> {
        fs::create_dir_all(folder.join("src"))?;
        fs::create_dir_all(folder.join(".cargo"))?;
        let package = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n");
        fs::write(folder.join("Cargo.toml"), package + &self.dependencies)?;
        fs::write(folder.join(".cargo/config.toml"), self.configuration.as_deref().unwrap_or_default())?;
        fs::write(folder.join("src/main.rs"), &self.program)?;
        // Versions of crates and compiler that the tests use.
        for file in ["Cargo.lock", "rust-toolchain.toml"] {
            fs::copy(root.join(file), folder.join(file)).with_context(|| format!("{file} cannot be copied"))?;
        }
        Ok(())
    }
}

/// Folder that is removed at the end.
struct Folder(PathBuf);
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_blocks() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        let blocks = ReadmeBlocks::of(&readme, root).unwrap();
        assert!(blocks.dependencies.contains(&format!("path = \"{}/host\"", root.display())));
        assert!(blocks.configuration.as_ref().unwrap().contains("CUDA_LIBRARY_PATH"));
        assert!(blocks.program.contains("fn main()"));
        let without = blocks.without_cuda().unwrap();
        assert!(blocks.dependencies.contains("\"cuda\"") && !without.dependencies.contains("cuda"));
        assert!(without.dependencies.contains("default-features = false") && without.configuration.is_none());
        let one = blocks.one_format().unwrap();
        assert!(one.dependencies.contains("features = [\"single\", \"reconstruct-12\"]"), "{}", one.dependencies);
        assert!(ReadmeBlocks::of("# no such section", root).is_err());
        assert!(ReadmeBlocks::of(&readme.replace("```rust", "```text"), root).is_err());
    }

    #[test]
    fn the_readme_has_the_example() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        let example = fs::read_to_string(root.join("host/examples/solve.rs")).unwrap();
        let program = ReadmeBlocks::of(&readme, root).unwrap().program;
        assert!(example.ends_with(&program), "the README's program and host/examples/solve.rs differ");
        let main = program.lines().skip_while(|line| !line.starts_with("fn main"));
        assert!(main.count() <= 20, "a solve in twenty lines");
    }

    #[test]
    fn residuals_are_found() {
        assert_eq!(residual("88 iterations, true residual 5.4e-11\n1 GFLOP/s"), Some(5.4e-11));
        assert_eq!(residual("88 iterations"), None);
    }
}
