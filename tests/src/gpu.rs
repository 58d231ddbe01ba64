//! The same checks on a GPU, and its results against those of the CPU.
use crate::checks::{self, Case};
use crate::report::{Report, Scope, compare};
use crate::{rhs_blocking, tuning};
use ferrite::backend::{Backend, Cpu, Cuda};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::atomic::AtomicBool;

/// All checks on GPU 0. `None`, and a word about it, where there is none.
pub fn check() -> Option<Result<Report, Box<dyn Error>>> {
    match Cuda::new(0) {
        Ok(gpu) => {
            println!("{}", gpu.device());
            Some(all(&gpu))
        }
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

/// Solves on a GPU to which another thread brings all kernels meanwhile.
fn solves_while_loading(case: &Case, report: &mut Report) -> Result<(), Box<dyn Error>> {
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
fn told(report: &Report, what: &str) {
    let failures: Vec<String> = report.failures().map(|failure| failure.to_string()).collect();
    println!("to the end of {what}: {} checks, {} failed", report.outcomes.len(), failures.len());
    failures.iter().take(20).for_each(|failure| println!("FAILED {failure}"));
}

fn all(gpu: &Cuda) -> Result<Report, Box<dyn Error>> {
    let cpu = Cpu::new(None);
    let mut report = Report::default();
    // What is kept for the comparison of backends is dropped after each group of checks.
    macro_rules! on_both {
        ($($check:ident($($argument:expr),*)),*) => {{
            let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
            $(
                checks::$check(gpu, $($argument,)* &mut on_gpu)?;
                checks::$check(&cpu, $($argument,)* &mut on_cpu)?;
            )*
            report.absorb(compare(&on_gpu, &on_cpu));
            report.absorb(on_gpu);
        }};
    }
    checks::dynamics(gpu, &mut report)?;
    told(&report, "molecular dynamics");
    checks::quark_smearing(gpu, &mut report)?;
    told(&report, "smearing of quarks");
    checks::wilson_like_angles(gpu, &mut report)?;
    checks::staggered_angles(gpu, &mut report)?;
    told(&report, "twisted boundary conditions");
    for case in checks::small_cases().into_iter().chain([checks::large_case()]) {
        on_both!(kernels(&case));
    }
    checks::transfers(gpu, &mut report)?;
    on_both!(blocks());
    for case in checks::clover_cases() {
        on_both!(clover_kernels(&case));
    }
    on_both!(large_clover_kernels());
    on_both!(wilson_like(), wilson_like_solves(), multigrid(), restriction(), multigrid_solves());
    told(&report, "Wilson-like operators and multigrid");
    for case in checks::temporal_cases() {
        on_both!(temporal_kernels(&case));
    }
    for case in checks::staggered_cases() {
        on_both!(staggered_kernels(&case), improved_kernels(&case));
    }
    on_both!(staggered_kernels(&checks::large_case()), staggered_phases_of_hops());
    for gauge in checks::link_cases() {
        on_both!(fat_links(&gauge));
    }
    checks::singular_matrices(gpu, &mut report)?;
    for (k, size) in [[4, 6, 2, 8], [2, 2, 4, 2], [8, 4, 6, 4]].into_iter().enumerate() {
        let lattice = Lattice::new(size).expect("even extents");
        checks::staggered_properties(gpu, lattice, 60 + 10 * k as u64, &mut report)?;
    }
    told(&report, "staggered operators");
    checks::quenched(gpu, &mut report)?;
    checks::gauge_fixing(gpu, &mut report)?;
    tuning::check(&mut report)?;
    rhs_blocking::check(&mut report)?;
    let lattice = Lattice::new([4, 6, 4, 8]).expect("even extents");
    let case = Case::new(generate::weak_field(lattice, 20, 0.2), 21);
    on_both!(solves(&case, 0.1), schemes(&case, 0.1), clover_solves(&case, 0.1));
    solves_while_loading(&case, &mut report)?;
    checks::staggered_solves(gpu, &mut report)?;
    checks::staggered_phases(gpu, &mut report)?;
    told(&report, "solves");
    Ok(report)
}
