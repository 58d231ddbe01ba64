//! Checks on a GPU, and a comparison of its results with those of the CPU.
use crate::checks::{self, Case};
use crate::report::{CheckReport, Scope, compare};
use crate::{rhs_blocking, tuning};
use ferrite::backend::{Backend, Cpu, Cuda};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::atomic::AtomicBool;

/// The checks of some groups, or all, on GPU 0. `None`, and a word about it, where there is none.
pub fn check(groups: &[String]) -> Option<Result<CheckReport, Box<dyn Error>>> {
    match Cuda::new(0) {
        Ok(gpu) => {
            println!("{}", gpu.device());
            Some(all(&gpu, groups))
        }
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

/// Solves on a GPU to which another thread brings all kernels meanwhile.
fn solves_while_loading(case: &Case, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    let gpu = Cuda::new(0)?;
    let modules: BTreeSet<&str> = gpu_kernels::instances().map(|instance| instance.module).collect();
    let modules: Vec<String> = modules.into_iter().map(String::from).collect();
    let loaded = std::thread::scope(|scope| {
        let loading = scope.spawn(|| gpu.load(&modules, &AtomicBool::new(false)));
        checks::solves(&gpu, case, 0.1, report)?;
        loading.join().map_err(|_| "loading panicked".into()).and_then(|loaded| Ok::<_, Box<dyn Error>>(loaded?))
    });
    let scope = Scope { format: "all".into(), detail: "modules".into() };
    report.holds(&scope, "kernels loaded by another thread", loaded.is_ok());
    loaded
}

/// Prints how many checks there were so far, and those that failed: all of them take minutes.
fn print_outcomes(report: &CheckReport, what: &str) {
    let failures: Vec<String> = report.failures().map(|failure| failure.to_string()).collect();
    println!("to the end of {what}: {} checks, {} failed", report.outcomes.len(), failures.len());
    failures.iter().take(20).for_each(|failure| println!("FAILED {failure}"));
}

type Group = fn(&Cuda, &Cpu, &mut CheckReport) -> Result<(), Box<dyn Error>>;

/// The groups of checks by name, in their order.
const GROUPS: [(&str, Group); 8] = [
    ("wilson", wilson),
    ("wilson-like", wilson_like),
    ("staggered", staggered),
    ("solves", solves),
    ("smearing", smearing),
    ("contractions", contractions),
    ("twisted-boundaries", twisted_boundaries),
    ("dynamics", dynamics),
];

fn all(gpu: &Cuda, wanted: &[String]) -> Result<CheckReport, Box<dyn Error>> {
    let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("there is no group '{unknown}'; there are {}", names.join(", ")).into());
    }
    let (cpu, mut report) = (Cpu::new(None), CheckReport::default());
    for (name, group) in GROUPS.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|one| one == name)) {
        group(gpu, &cpu, &mut report)?;
        print_outcomes(&report, name);
    }
    Ok(report)
}

/// Checks on both, and the results of one against those of the other. What is kept for that is dropped afterwards.
macro_rules! on_both {
    ($gpu:ident, $cpu:ident, $report:ident: $($check:ident($($argument:expr),*)),*) => {{
        let (mut on_gpu, mut on_cpu) = (CheckReport::keeping(), CheckReport::keeping());
        $(
            checks::$check($gpu, $($argument,)* &mut on_gpu)?;
            checks::$check($cpu, $($argument,)* &mut on_cpu)?;
        )*
        $report.absorb(compare(&on_gpu, &on_cpu));
        $report.absorb(on_gpu);
    }};
}

fn dynamics(gpu: &Cuda, _: &Cpu, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    checks::dynamics(gpu, report)?;
    Ok(())
}

fn contractions(gpu: &Cuda, cpu: &Cpu, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    checks::contractions(gpu, cpu, report)?;
    Ok(())
}

fn smearing(gpu: &Cuda, _: &Cpu, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    checks::quark_smearing(gpu, report)?;
    Ok(())
}

fn twisted_boundaries(gpu: &Cuda, _: &Cpu, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    checks::wilson_like_angles(gpu, report)?;
    checks::staggered_angles(gpu, report)?;
    Ok(())
}

fn wilson(gpu: &Cuda, cpu: &Cpu, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    for case in checks::small_cases().into_iter().chain([checks::large_case()]) {
        on_both!(gpu, cpu, report: kernels(&case));
    }
    checks::transfers(gpu, report)?;
    on_both!(gpu, cpu, report: blocks());
    for case in checks::temporal_cases() {
        on_both!(gpu, cpu, report: temporal_kernels(&case));
    }
    checks::quenched(gpu, report)?;
    checks::gauge_fixing(gpu, report)?;
    Ok(())
}

fn wilson_like(gpu: &Cuda, cpu: &Cpu, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    for case in checks::clover_cases() {
        on_both!(gpu, cpu, report: clover_kernels(&case));
    }
    on_both!(gpu, cpu, report: large_clover_kernels());
    on_both!(gpu, cpu, report: wilson_like(), wilson_like_solves(), multigrid(), restriction(), multigrid_solves());
    Ok(())
}

fn staggered(gpu: &Cuda, cpu: &Cpu, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    for case in checks::staggered_cases() {
        on_both!(gpu, cpu, report: staggered_kernels(&case), improved_kernels(&case));
    }
    on_both!(gpu, cpu, report: staggered_kernels(&checks::large_case()), staggered_phases_of_hops());
    for gauge in checks::link_cases() {
        on_both!(gpu, cpu, report: fat_links(&gauge));
    }
    checks::singular_matrices(gpu, report)?;
    for (k, size) in [[4, 6, 2, 8], [2, 2, 4, 2], [8, 4, 6, 4]].into_iter().enumerate() {
        let lattice = Lattice::new(size).expect("even extents");
        checks::staggered_properties(gpu, lattice, 60 + 10 * k as u64, report)?;
    }
    checks::staggered_solves(gpu, report)?;
    checks::staggered_phases(gpu, report)?;
    Ok(())
}

fn solves(gpu: &Cuda, cpu: &Cpu, report: &mut CheckReport) -> Result<(), Box<dyn Error>> {
    tuning::check(report)?;
    rhs_blocking::check(report)?;
    let lattice = Lattice::new([4, 6, 4, 8]).expect("even extents");
    let case = Case::new(generate::weak_field(lattice, 20, 0.2), 21);
    on_both!(gpu, cpu, report: solves(&case, 0.1), schemes(&case, 0.1), clover_solves(&case, 0.1), rows(&case));
    solves_while_loading(&case, report)?;
    Ok(())
}
