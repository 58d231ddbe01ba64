//! `cargo xtask check-ptx`: what the compiled kernels cost, and whether the hot ones are as lean as they must be.

use std::fs;

use anyhow::{Context, Result, bail};
use gpu_kernels::EntryPoint;

use crate::build_ptx;
use crate::process::{self, plural};
use crate::ptx_text::{self, Counts};
use crate::ptxas::Report;
use crate::registers::Caps;

/// `--help`.
pub const HELP: &str = "\
Show registers, stack, spills and memory accesses of every compiled kernel, and fail when a hot kernel (marked *)
has a stack frame, spills, local or generic memory accesses, calls, or more registers than its cap.

Usage: cargo xtask check-ptx

Reads target/kernels as `cargo xtask build-ptx` left it; that build must have found ptxas.
";

/// Registers that a thread can have at all.
const MOST_REGISTERS: u32 = 255;

/// The command.
pub fn run(args: &[String]) -> Result<()> {
    process::expect_no_more(args)?;
    let root = process::root()?;
    let manifest = build_ptx::manifest(&root)?;
    build_ptx::check_current(&root, &manifest)?;
    let Some(version) = manifest["ptxas"].as_str() else {
        bail!(
            "the kernels were built without NVIDIA's assembler ptxas; run `cargo xtask setup`, then \
             `cargo xtask build-ptx`"
        );
    };
    let (reports, caps) = (build_ptx::reports_in(&manifest), Caps::read(&root)?);

    let folder = build_ptx::output_folder(&root);
    let mut kernels = Vec::new();
    for module in manifest["modules"].as_array().into_iter().flatten().filter_map(|name| name.as_str()) {
        let path = folder.join(format!("{module}.ptx"));
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        for entry in ptx_text::entries(&text) {
            let known = gpu_kernels::entry_points().find(|known| known.name == entry.name);
            let (Some(known), Some(&report)) = (known, reports.get(entry.name)) else {
                bail!("the manifest does not know kernel '{}'; run `cargo xtask build-ptx --no-cache`", entry.name);
            };
            kernels.push((Kernel { entry: known, cap: caps.of(entry.name) }, report, ptx_text::count(entry.body)));
        }
    }

    print_table(&kernels);
    println!("{} kernels; {}; ptxas {version}", kernels.len(), manifest["toolchain"].as_str().unwrap_or(""));
    let hot = kernels.iter().filter(|(kernel, ..)| kernel.entry.hot);
    let findings: Vec<String> = hot.flat_map(|(kernel, report, counts)| findings(kernel, report, counts)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} in hot kernels", plural(findings.len(), "finding"));
    }
    Ok(())
}

/// Bytes that a variant may spill: another block of threads at a time is worth more than what a few bytes cost
/// (docs/measurements/many-rhs.md).
const SPILLS_OF_VARIANTS: u32 = 16;

/// A compiled kernel and its register cap.
#[derive(Clone, Copy)]
struct Kernel {
    entry: EntryPoint,
    cap: Option<u32>,
}

/// One sentence per thing that makes a hot kernel slow.
fn findings(kernel: &Kernel, report: &Report, counts: &Counts) -> Vec<String> {
    let (name, cap) = (kernel.entry.name, kernel.cap.unwrap_or(MOST_REGISTERS));
    let allowed = if kernel.entry.variant { SPILLS_OF_VARIANTS } else { 0 };
    let checks = [
        (report.stack > allowed, format!("has a stack frame of {} bytes", report.stack)),
        (
            report.spill_stores.max(report.spill_loads) > allowed,
            format!("spills {} bytes and loads {} back", report.spill_stores, report.spill_loads),
        ),
        (counts.local > 0, format!("accesses local memory {} times", counts.local)),
        (counts.generic > 0, format!("has {} generic memory accesses", counts.generic)),
        (counts.calls > 0, format!("calls {} functions that were not inlined", counts.calls)),
        (report.registers > cap, format!("uses {} registers, its cap is {cap}", report.registers)),
    ];
    checks.into_iter().filter(|(bad, _)| *bad).map(|(_, text)| format!("{name}: {text}")).collect()
}

fn print_table(kernels: &[(Kernel, Report, Counts)]) {
    let width = kernels.iter().map(|(kernel, ..)| kernel.entry.name.len() + 1).max().unwrap_or(0).max("kernel".len());
    println!(
        "{:<width$} {:>9} {:>6} {:>6} {:>11} {:>6} {:>6} {:>8} {:>8}",
        "kernel", "registers", "cap", "stack", "spills", "shared", "fma", "generic", "barriers"
    );
    for (kernel, report, counts) in kernels {
        println!(
            "{:<width$} {:>9} {:>6} {:>6} {:>11} {:>6} {:>6} {:>8} {:>8}",
            format!("{}{}", kernel.entry.name, if kernel.entry.hot { "*" } else { "" }),
            report.registers,
            kernel.cap.map_or("-".to_string(), |cap| cap.to_string()),
            report.stack,
            format!("{}/{}", report.spill_stores, report.spill_loads),
            report.shared,
            counts.fma,
            counts.generic,
            counts.barriers,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weakness_is_a_finding() {
        let entry = EntryPoint { name: "dslash", module: "wilson", hot: true, variant: false };
        let capped = Kernel { entry, cap: Some(96) };
        let variant = Kernel { entry: EntryPoint { variant: true, ..entry }, ..capped };
        let lean = Report { registers: 96, ..Report::default() };
        assert_eq!(findings(&capped, &lean, &Counts::default()), Vec::<String>::new());
        assert_eq!(findings(&Kernel { cap: None, ..capped }, &lean, &Counts::default()), Vec::<String>::new());
        let fat = Report { registers: 128, stack: 16, spill_stores: 4, ..lean };
        let counts = Counts { generic: 2, local: 1, calls: 1, ..Counts::default() };
        let found = findings(&capped, &fat, &counts);
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(found.contains(&"dslash: uses 128 registers, its cap is 96".to_string()), "{found:?}");
        let little = Report { stack: 8, spill_stores: 4, spill_loads: 4, ..lean };
        assert_eq!(findings(&variant, &little, &Counts::default()), Vec::<String>::new());
        assert_eq!(findings(&capped, &little, &Counts::default()).len(), 2);
        let much = Report { stack: 24, spill_stores: 20, ..lean };
        assert_eq!(findings(&variant, &much, &Counts::default()).len(), 2);
    }
}
