//! The same checks on a GPU, and its results against those of the CPU.
use crate::checks::{self, Case};
use crate::report::{Report, compare};
use crate::tuning;
use ferrite::backend::{Backend, Cpu, Cuda};
use ferrite::generate;
use ferrite::lattice::Lattice;
use ferrite::solve::SolveFailure;

/// All checks on GPU 0. `None`, and a word about it, where there is none.
pub fn check() -> Option<Result<Report, SolveFailure>> {
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

fn all(gpu: &Cuda) -> Result<Report, SolveFailure> {
    let cpu = Cpu::new(None);
    let mut report = Report::default();
    // Case by case: what is kept for the comparison of backends is dropped after each.
    for case in checks::small_cases().into_iter().chain([checks::large_case()]) {
        let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
        checks::kernels(gpu, &case, &mut on_gpu)?;
        checks::kernels(&cpu, &case, &mut on_cpu)?;
        report.absorb(compare(&on_gpu, &on_cpu));
        report.absorb(on_gpu);
    }
    for case in checks::clover_cases() {
        let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
        checks::clover_kernels(gpu, &case, &mut on_gpu)?;
        checks::clover_kernels(&cpu, &case, &mut on_cpu)?;
        report.absorb(compare(&on_gpu, &on_cpu));
        report.absorb(on_gpu);
    }
    let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
    checks::large_clover_kernels(gpu, &mut on_gpu)?;
    checks::large_clover_kernels(&cpu, &mut on_cpu)?;
    report.absorb(compare(&on_gpu, &on_cpu));
    report.absorb(on_gpu);
    for case in checks::temporal_cases() {
        let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
        checks::temporal_kernels(gpu, &case, &mut on_gpu)?;
        checks::temporal_kernels(&cpu, &case, &mut on_cpu)?;
        report.absorb(compare(&on_gpu, &on_cpu));
        report.absorb(on_gpu);
    }
    for case in checks::staggered_cases() {
        let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
        checks::staggered_kernels(gpu, &case, &mut on_gpu)?;
        checks::staggered_kernels(&cpu, &case, &mut on_cpu)?;
        checks::improved_kernels(gpu, &case, &mut on_gpu)?;
        checks::improved_kernels(&cpu, &case, &mut on_cpu)?;
        report.absorb(compare(&on_gpu, &on_cpu));
        report.absorb(on_gpu);
    }
    let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
    checks::staggered_kernels(gpu, &checks::large_case(), &mut on_gpu)?;
    checks::staggered_kernels(&cpu, &checks::large_case(), &mut on_cpu)?;
    report.absorb(compare(&on_gpu, &on_cpu));
    report.absorb(on_gpu);
    for gauge in checks::link_cases() {
        let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
        checks::fat_links(gpu, &gauge, &mut on_gpu)?;
        checks::fat_links(&cpu, &gauge, &mut on_cpu)?;
        report.absorb(compare(&on_gpu, &on_cpu));
        report.absorb(on_gpu);
    }
    checks::singular_matrices(gpu, &mut report)?;
    for (k, size) in [[4, 6, 2, 8], [2, 2, 4, 2], [8, 4, 6, 4]].into_iter().enumerate() {
        let lattice = Lattice::new(size).expect("even extents");
        checks::staggered_properties(gpu, lattice, 60 + 10 * k as u64, &mut report)?;
    }
    checks::quenched(gpu, &mut report)?;
    tuning::check(&mut report)?;
    let lattice = Lattice::new([4, 6, 4, 8]).expect("even extents");
    let case = Case::new(generate::weak_field(lattice, 20, 0.2), 21);
    let (mut on_gpu, mut on_cpu) = (Report::keeping(), Report::keeping());
    checks::solves(gpu, &case, 0.1, &mut on_gpu)?;
    checks::solves(&cpu, &case, 0.1, &mut on_cpu)?;
    checks::schemes(gpu, &case, 0.1, &mut on_gpu)?;
    checks::schemes(&cpu, &case, 0.1, &mut on_cpu)?;
    checks::clover_solves(gpu, &case, 0.1, &mut on_gpu)?;
    checks::clover_solves(&cpu, &case, 0.1, &mut on_cpu)?;
    report.absorb(compare(&on_gpu, &on_cpu));
    report.absorb(on_gpu);
    Ok(report)
}
