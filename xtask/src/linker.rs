//! Link step of the kernel build.
//!
//! rustc delegates the "linking" of a PTX target to an external program that joins LLVM bitcode. This program only
//! joins it: optimising and writing PTX happens afterwards, one module at a time and in parallel (see `build_ptx`). The
//! linker is the xtask program itself, started by rustc with [`LLVM_TOOLS`] set, so nothing further has to be
//! installed.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, anyhow};

use crate::process;

/// Environment variable with the folder of `llvm-link`; its presence makes xtask a linker.
pub const LLVM_TOOLS: &str = "FERRITE_LINK_WITH_LLVM_TOOLS";
/// Environment variable with the folder of the files that receive the names of the symbols that rustc exports, one per
/// line; each file is named like the output, without its extension.
pub const SYMBOLS: &str = "FERRITE_LINK_SYMBOLS";

/// Returns whether rustc started this program as a linker.
pub fn wanted() -> bool {
    env::var_os(LLVM_TOOLS).is_some()
}

/// Joins the bitcode files named on a linker command line of rustc's `llbc` flavour.
pub fn link(args: &[String]) -> Result<()> {
    let tools = PathBuf::from(env::var_os(LLVM_TOOLS).unwrap_or_default());
    let line = Line::parse(args)?;
    let mut link = Command::new(tools.join("llvm-link"));
    // rlibs also contain a metadata file, which is not bitcode. A family needs a few functions of `core`, 2 MB, at
    // most, and the `opt` runs of its modules need not read the rest, which is left out here.
    link.args(["--ignore-non-bitcode", "--only-needed"]).args(&line.inputs).arg("-o").arg(&line.output);
    process::capture(&mut link)?;
    let folder = PathBuf::from(env::var_os(SYMBOLS).ok_or_else(|| anyhow!("{SYMBOLS} is not set"))?);
    let symbols = folder.join(line.output.file_stem().unwrap_or_default());
    fs::write(&symbols, line.symbols.join("\n")).with_context(|| format!("{} cannot be written", symbols.display()))
}

/// Relevant parts of the command line; target, CPU and optimisation level are chosen later, by `build_ptx`.
#[derive(Debug, PartialEq)]
struct Line {
    inputs: Vec<PathBuf>,
    symbols: Vec<String>,
    output: PathBuf,
}

impl Line {
    fn parse(args: &[String]) -> Result<Self> {
        let (mut inputs, mut symbols, mut output) = (Vec::new(), Vec::new(), None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "-o" | "--output" => output = args.next().map(PathBuf::from),
                "--export-symbol" => symbols.extend(args.next().cloned()),
                "-L" | "--target" | "--target-cpu" | "--target-feature" => drop(args.next()),
                flag if flag.starts_with('-') => {}
                file => inputs.push(PathBuf::from(file)),
            }
        }
        let output = output.ok_or_else(|| anyhow!("rustc called the link step without an output file"))?;
        Ok(Self { inputs, symbols, output })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_rustc_passes() {
        let text = "--target nvptx64-nvidia-cuda --target-cpu sm_80 -L dir a.o libcore.rlib \
                    --export-symbol dslash -O3 -o k.ptx";
        let args: Vec<String> = text.split(' ').map(String::from).collect();
        let line = Line::parse(&args).unwrap();
        assert_eq!(line.inputs, [PathBuf::from("a.o"), PathBuf::from("libcore.rlib")]);
        assert_eq!(line.symbols, ["dslash"]);
        assert_eq!(line.output, PathBuf::from("k.ptx"));
    }
}
