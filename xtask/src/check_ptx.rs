//! `cargo xtask check-ptx`: reports the resources that the compiled kernels use, and checks the limits of the hot ones.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use gpu_kernels::EntryPoint;
use gpu_kernels::device::SCRATCH_BYTES;
use gpu_kernels::threads::PART_SUMS_BYTES;
use ptx_text::InstructionCounts;
use serde_json::Value;

use crate::build_ptx;
use crate::process::{self, plural};
use crate::ptxas::KernelReport;
use crate::registers::Caps;

/// Help text of the command.
pub const CHECK_PTX_HELP: &str = "\
Show registers, stack, spills and memory accesses of every compiled kernel, for each architecture with cubins. Fail if a
hot kernel (marked *) has a stack frame, spills, local or generic memory accesses, calls, more shared memory than launches
assume, or more registers than its cap. Kernels with several right-hand sides in a thread may spill a little. On an
architecture on which caps were not measured, they may spill more, and other kernels may spill a little.

Usage: cargo xtask check-ptx

Reads target/kernels of the last `cargo xtask build-ptx`, which must have found ptxas.
";

/// Largest number of registers of a thread.
const MOST_REGISTERS: u32 = 255;

/// Runs the command.
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
    let mut all = Vec::new();
    let architectures = build_ptx::cubins_in(&manifest);
    for architecture in &architectures {
        let kernels = kernels(&root, &manifest, architecture)?;
        println!("{architecture}");
        print_table(&kernels);
        println!("{}", spills(&kernels));
        let hot = kernels.iter().filter(|(kernel, ..)| kernel.entry.hot);
        let of_kernel = |(kernel, report, counts): &(CheckedKernel, KernelReport, InstructionCounts)| {
            findings(kernel, report, counts, architecture).into_iter().map(|text| format!("{architecture}: {text}"))
        };
        all.extend(hot.flat_map(of_kernel).collect::<Vec<_>>());
    }
    let count = gpu_kernels::entry_points().count();
    let (toolchain, list) = (manifest["toolchain"].as_str().unwrap_or(""), architectures.join(", "));
    println!("{count} kernels for {list}; {toolchain}; ptxas {version}");
    all.iter().for_each(|finding| println!("{finding}"));
    if !all.is_empty() {
        bail!("{} in hot kernels", plural(all.len(), "finding"));
    }
    Ok(())
}

/// Returns the kernels of all modules as assembled for an architecture.
fn kernels(
    root: &Path,
    manifest: &Value,
    architecture: &str,
) -> Result<Vec<(CheckedKernel, KernelReport, InstructionCounts)>> {
    let (reports, caps) = (build_ptx::reports_in(manifest, architecture)?, Caps::read(root)?);
    let folder = build_ptx::output_folder(root);
    let mut kernels = Vec::new();
    for (module, ptx) in manifest["modules"].as_object().into_iter().flatten() {
        let ptx = ptx.as_array().into_iter().flatten().filter_map(Value::as_str);
        let path = folder.join(format!("{module}.{}.ptx", build_ptx::ptx_for(ptx, architecture)));
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        for entry in ptx_text::entries(&text) {
            let known = gpu_kernels::entry_points().find(|known| known.name == entry.name);
            let (Some(known), Some(&report)) = (known, reports.get(entry.name)) else {
                bail!("the manifest does not contain kernel '{}'; run `cargo xtask build-ptx --no-cache`", entry.name);
            };
            kernels.push((
                CheckedKernel { entry: known, cap: caps.of(entry.name) },
                report,
                ptx_text::count(entry.body),
            ));
        }
    }
    Ok(kernels)
}

/// Architecture on which register caps were measured.
const MEASURED: &str = "sm_90";
/// Bytes that a variant may spill on [`MEASURED`]: another block of threads at a time is worth more than the cost of a
/// few bytes (docs/measurements/many-rhs.md).
const SPILLS_OF_VARIANTS: u32 = 28;
/// Bytes that a variant may spill on other architectures, for which ptxas schedules instructions differently: on sm_80
/// 17 variants spill between 20 and 288 bytes with the same caps. No cap is changed for this without a measurement on
/// such a GPU.
const SPILLS_OF_VARIANTS_ELSEWHERE: u32 = 320;
/// Bytes that kernels with one right-hand side per thread may spill on other architectures; they do not spill on
/// [`MEASURED`].
const SPILLS_ELSEWHERE: u32 = 16;

/// Summarises in a sentence how many hot kernels spill, and which of them most.
fn spills(kernels: &[(CheckedKernel, KernelReport, InstructionCounts)]) -> String {
    let bytes = |report: &KernelReport| report.spill_stores.max(report.spill_loads);
    let hot = kernels.iter().filter(|(kernel, report, _)| kernel.entry.hot && bytes(report) > 0);
    let spilling: Vec<(&str, u32)> = hot.map(|(kernel, report, _)| (kernel.entry.name, bytes(report))).collect();
    let more = spilling.iter().filter(|(_, bytes)| *bytes > SPILLS_OF_VARIANTS).count();
    match spilling.iter().max_by_key(|(_, bytes)| *bytes) {
        None => "no hot kernel spills".into(),
        Some((name, bytes)) => {
            let count = plural(spilling.len(), "hot kernel");
            format!(
                "spills: {count}, {more} of them more than {SPILLS_OF_VARIANTS} bytes; most in {name}, {bytes} bytes"
            )
        }
    }
}

/// Compiled kernel and its register cap.
#[derive(Clone, Copy)]
struct CheckedKernel {
    entry: EntryPoint,
    cap: Option<u32>,
}

/// Returns one sentence for each property that makes a hot kernel slow on an architecture.
fn findings(
    kernel: &CheckedKernel,
    report: &KernelReport,
    counts: &InstructionCounts,
    architecture: &str,
) -> Vec<String> {
    let (name, cap) = (kernel.entry.name, kernel.cap.unwrap_or(MOST_REGISTERS));
    let allowed = match kernel.entry.variant {
        true if architecture == MEASURED => SPILLS_OF_VARIANTS,
        true => SPILLS_OF_VARIANTS_ELSEWHERE,
        false if architecture == MEASURED => 0,
        false => SPILLS_ELSEWHERE,
    };
    // Launches reserve this much shared memory for sums. Where warps compute a number together, the block uses no other
    // shared memory.
    let most_shared = if kernel.entry.parts { PART_SUMS_BYTES } else { SCRATCH_BYTES };
    let checks = [
        (report.stack > allowed, format!("has a stack frame of {} bytes", report.stack)),
        (
            report.spill_stores.max(report.spill_loads) > allowed,
            format!("spills {} bytes and reloads {}", report.spill_stores, report.spill_loads),
        ),
        (counts.local > 0, format!("accesses local memory {} times", counts.local)),
        (counts.generic > 0, format!("has {} generic memory accesses", counts.generic)),
        (counts.calls > 0, format!("calls {} functions that were not inlined", counts.calls)),
        (report.registers > cap, format!("uses {} registers, more than its cap {cap}", report.registers)),
        (
            report.shared > most_shared,
            format!("has {} bytes of shared memory, but at most {most_shared} are allowed", report.shared),
        ),
    ];
    checks.into_iter().filter(|(bad, _)| *bad).map(|(_, text)| format!("{name}: {text}")).collect()
}

fn print_table(kernels: &[(CheckedKernel, KernelReport, InstructionCounts)]) {
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
        let entry = EntryPoint { name: "dslash", module: "wilson", hot: true, variant: false, parts: false };
        let capped = CheckedKernel { entry, cap: Some(96) };
        let variant = CheckedKernel { entry: EntryPoint { variant: true, ..entry }, ..capped };
        let lean = KernelReport { registers: 96, ..KernelReport::default() };
        assert_eq!(findings(&capped, &lean, &InstructionCounts::default(), MEASURED), Vec::<String>::new());
        assert_eq!(
            findings(&CheckedKernel { cap: None, ..capped }, &lean, &InstructionCounts::default(), MEASURED),
            Vec::<String>::new()
        );
        let fat = KernelReport { registers: 128, stack: 16, spill_stores: 4, shared: 1024, ..lean };
        let counts = InstructionCounts { generic: 2, local: 1, calls: 1, ..InstructionCounts::default() };
        let found = findings(&capped, &fat, &counts, MEASURED);
        assert_eq!(found.len(), 7, "{found:?}");
        assert!(found.contains(&"dslash: uses 128 registers, more than its cap 96".to_string()), "{found:?}");
        let little = KernelReport { stack: 8, spill_stores: 4, spill_loads: 4, ..lean };
        assert_eq!(findings(&variant, &little, &InstructionCounts::default(), MEASURED), Vec::<String>::new());
        assert_eq!(findings(&capped, &little, &InstructionCounts::default(), MEASURED).len(), 2);
        let much = KernelReport { stack: 40, spill_stores: 36, ..lean };
        assert_eq!(findings(&variant, &much, &InstructionCounts::default(), MEASURED).len(), 2);
        assert_eq!(findings(&variant, &much, &InstructionCounts::default(), "sm_80"), Vec::<String>::new());
        assert_eq!(findings(&capped, &much, &InstructionCounts::default(), "sm_80").len(), 2);
        let of = |report| (variant, report, InstructionCounts::default());
        let text = "spills: 2 hot kernels, 1 of them more than 28 bytes; most in dslash, 36 bytes";
        assert_eq!(spills(&[of(lean), of(little), of(much)]), text);
    }
}
