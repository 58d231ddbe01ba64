//! NVIDIA's assembler: finding it, running it, and reading its reports.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use gpu_kernels::OLDEST_ARCHITECTURE;

use crate::process;

/// Architectures for which cubins are made by default, if the assembler supports them.
pub const CUBINS: [&str; 2] = ["sm_80", "sm_90"];
/// Flags of the assembler, apart from the architecture.
pub const FLAGS: &str = "-v";

/// Assembler found on this machine.
#[derive(Clone, Debug)]
pub struct Ptxas {
    /// Path of the program.
    pub path: PathBuf,
    /// Release of the assembler, such as "13.0.88".
    pub version: String,
    /// Architectures that it supports and kernels can run on, the oldest first.
    architectures: Vec<String>,
}

/// Report of `ptxas -v` on one kernel; sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelReport {
    /// Registers per thread.
    pub registers: u32,
    /// Stack frame per thread.
    pub stack: u32,
    /// Spill stores per thread.
    pub spill_stores: u32,
    /// Spill loads per thread.
    pub spill_loads: u32,
    /// Static shared memory per block.
    pub shared: u32,
}

impl Ptxas {
    /// Finds an assembler on PATH, in `CUDA_HOME`, or in the folder of `cargo xtask setup`; it must support PTX 8.0
    /// (CUDA 12).
    pub fn find(root: &Path) -> Option<Self> {
        let cuda = env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin/ptxas"));
        let candidates = [process::on_path("ptxas"), cuda, Some(installed(root))];
        candidates.into_iter().flatten().filter(|path| process::is_executable(path)).find_map(Self::open)
    }

    /// Assembles a PTX file into a cubin for an architecture and returns the report per kernel.
    pub fn assemble(&self, ptx: &Path, cubin: &Path, architecture: &str) -> Result<BTreeMap<String, KernelReport>> {
        let mut command = Command::new(&self.path);
        command.arg(FLAGS).arg(format!("-arch={architecture}")).arg(ptx).arg("-o").arg(cubin);
        let (stdout, stderr) = process::capture(&mut command)?;
        Ok(parse(&format!("{stdout}\n{stderr}")))
    }

    /// Returns the architectures for which to make cubins: the requested ones, or [`CUBINS`] if none are requested.
    /// Fails if the assembler or the kernels do not support one of them.
    pub fn choose(&self, wanted: &[String]) -> Result<Vec<String>> {
        if wanted.is_empty() {
            let known = CUBINS.into_iter().map(String::from).filter(|name| self.architectures.contains(name));
            return Ok(known.collect());
        }
        if let Some(unknown) = wanted.iter().find(|name| !self.architectures.contains(name)) {
            let known = self.architectures.join(", ");
            bail!(
                "--arch {unknown}: kernels need {OLDEST_ARCHITECTURE} or newer, of which ptxas {} supports {known}",
                self.version
            );
        }
        let mut chosen = wanted.to_vec();
        chosen.sort_by_key(|name| (number(name), name.clone()));
        chosen.dedup();
        Ok(chosen)
    }

    fn open(path: PathBuf) -> Option<Self> {
        let (text, _) = process::capture(Command::new(&path).arg("--version")).ok()?;
        let version = text.split(", V").nth(1)?.split_whitespace().next()?.to_string();
        let major: u32 = version.split('.').next()?.parse().ok()?;
        let (help, _) = process::capture(Command::new(&path).arg("--help")).ok()?;
        (major >= 12).then(|| Self { path, version, architectures: architectures(&help) })
    }
}

/// Returns the number in the name of an architecture: 90 for `sm_90` and `sm_90a`, 120 for `sm_120`. It is ten times
/// the major compute capability, plus the minor one.
pub fn number(architecture: &str) -> u32 {
    let digits = architecture.strip_prefix("sm_").unwrap_or("").trim_end_matches(|c: char| c.is_ascii_lowercase());
    digits.parse().unwrap_or(0)
}

/// Extracts from the output of `ptxas --help` the architectures that kernels can run on, the oldest first.
fn architectures(help: &str) -> Vec<String> {
    let quoted = help.split('\'').filter(|word| number(word) >= number(OLDEST_ARCHITECTURE));
    let mut names: Vec<String> = quoted.map(String::from).collect();
    names.sort_by_key(|name| (number(name), name.clone()));
    names.dedup();
    names
}

/// Returns the path to which `cargo xtask setup` installs the assembler.
pub fn installed(root: &Path) -> PathBuf {
    root.join("target/tools/ptxas")
}

/// Parses the output of `ptxas -v`.
fn parse(text: &str) -> BTreeMap<String, KernelReport> {
    let mut reports: BTreeMap<String, KernelReport> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        let line = line.split_once(": ").map_or(line, |(_, rest)| if line.contains("ptxas") { rest } else { line });
        let quoted = line.split('\'').nth(1);
        if let Some(name) = line.find("Function properties for ").map(|at| &line[at + 24..]) {
            current = name.trim().to_string();
        } else if let (true, Some(name)) = (line.contains("Compiling entry function"), quoted) {
            current = name.to_string();
            reports.entry(current.clone()).or_default();
        }
        // Plain device functions have properties too, but are not kernels.
        let Some(report) = reports.get_mut(&current) else {
            continue;
        };
        let before = |unit: &str| -> Option<u32> {
            line[..line.find(unit)?].rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let after = |label: &str| -> Option<u32> {
            line[line.find(label)? + label.len()..].split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        report.stack = before(" bytes stack frame").unwrap_or(report.stack);
        report.spill_stores = before(" bytes spill stores").unwrap_or(report.spill_stores);
        report.spill_loads = before(" bytes spill loads").unwrap_or(report.spill_loads);
        report.registers = after("Used ").unwrap_or(report.registers);
        report.shared = before(" bytes smem").unwrap_or(report.shared);
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_those_of_the_assembler() {
        let help = "        compute architectures, in which case code generation is suppressed.
        Allowed values for this option:  'compute_100','compute_75','compute_90a','lto_90',
        'sm_100','sm_100a','sm_75','sm_80','sm_86','sm_90','sm_90a'.
        Default value:  'sm_75'.
";
        let architectures = architectures(help);
        assert_eq!(architectures, ["sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_100a"]);
        let ptxas = Ptxas { path: PathBuf::new(), version: "13.0.88".into(), architectures };
        let choose = |names: &[&str]| ptxas.choose(&names.iter().copied().map(String::from).collect::<Vec<_>>());
        assert_eq!(choose(&[]).unwrap(), CUBINS);
        assert_eq!(choose(&["sm_100", "sm_86", "sm_100"]).unwrap(), ["sm_86", "sm_100"]);
        let error = choose(&["sm_90", "sm_75"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "--arch sm_75: kernels need sm_80 or newer, of which ptxas 13.0.88 supports sm_80, sm_86, sm_90, sm_90a, sm_100, sm_100a"
        );
    }

    #[test]
    fn reads_the_report() {
        let text = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'dslash' for 'sm_90'
ptxas info    : Function properties for dslash
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 86 registers, used 1 barriers, 1024 bytes smem, 596 bytes cmem[0]
ptxas info    : Compile time = 12.3 ms
ptxas info    : Function properties for helper
    99 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";
        let reports = parse(text);
        assert_eq!(reports.len(), 1);
        let expected = KernelReport { registers: 86, stack: 16, spill_stores: 8, spill_loads: 12, shared: 1024 };
        assert_eq!(reports["dslash"], expected);
    }
}
