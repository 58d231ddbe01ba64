//! Every kernel in every precision and reconstruction against the reference, on the CPU; on a GPU where there is one.
use ferrite::Precision;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::field::{FieldShape, FieldSpace, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite::solve::{Request, solve};
use ferrite_tests::checks::{self, Case, Kind, NRHS};
use ferrite_tests::formats;
use ferrite_tests::testkit::{finish, on_cpu};
use num_complex::Complex64;
use solvers::VectorSpace;

fn check(cases: Vec<Case>) {
    on_cpu(|backend, report| cases.iter().try_for_each(|case| checks::kernels(backend, case, report)));
}

#[test]
fn kernels_agree_with_the_reference_on_small_lattices() {
    check(checks::small_cases());
}

#[test]
fn kernels_agree_with_the_reference_on_a_larger_lattice() {
    check(vec![checks::two_block_case()]);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn kernels_agree_with_the_reference_on_a_lattice_of_several_blocks() {
    check(vec![checks::large_case()]);
}

#[test]
fn right_hand_sides_that_share_launches_have_the_bits_of_each_alone() {
    on_cpu(checks::blocks);
}

#[test]
fn copies_come_back() {
    on_cpu(checks::transfers);
}

#[cfg(feature = "cuda")]
#[test]
fn gpu_agrees_with_reference_and_cpu() {
    if let Some(report) = ferrite_tests::gpu::check(&[]) {
        finish(report.unwrap());
    }
}

/// The bits of everything that is summed up, with a given number of threads.
fn sums<F: Kind>(precision: Precision, threads: usize) -> Vec<u64> {
    let case = checks::large_case();
    let domain = Domain::single(Cpu::new(Some(threads)), case.lattice()).unwrap();
    let space = FieldSpace::new(&domain, FieldShape::new(F::KIND, precision, NRHS));
    let upload = |k: usize| {
        let mut field = FullField::zero(&domain, FieldShape::new(F::KIND, precision, NRHS)).unwrap();
        field.upload(F::block(&case, k)).unwrap();
        field
    };
    let (x, mut y) = (upload(0), upload(1));
    let (mut norm, mut dot) = ([0.0; NRHS], [Complex64::ZERO; NRHS]);
    let mut all: Vec<f64> = Vec::new();
    space.norm2(&x.odd, &mut norm).unwrap();
    all.extend(norm);
    space.dot_norm2(&x.even, &y.even, &mut dot, &mut norm).unwrap();
    all.extend(norm.into_iter().chain(dot.iter().flat_map(|z| [z.re, z.im])));
    space.axpy_norm2(&dot, &x.odd, &mut y.odd, &mut norm).unwrap();
    all.extend(norm);
    space.sub_norm2(&x.even, &mut y.even, &mut norm).unwrap();
    all.extend(norm);
    let gauge = GaugeField::upload(&domain, &case.gauge).unwrap();
    let (plaquette, trace) = gauge.plaquette().unwrap();
    all.extend([plaquette.spatial, plaquette.temporal, trace]);
    all.into_iter().map(f64::to_bits).collect()
}

#[test]
fn sums_have_the_same_bits_with_any_number_of_threads() {
    fn check<F: Kind>() {
        for precision in formats::fields(F::KIND) {
            let name = format!("{} in {precision}", F::NAME);
            let one = sums::<F>(precision, 1);
            assert_eq!(one, sums::<F>(precision, 1), "{name}, repeated");
            assert_eq!(one, sums::<F>(precision, 2), "{name}, two threads");
            assert_eq!(one, sums::<F>(precision, 3), "{name}, three threads");
        }
    }
    check::<Spinor>();
    check::<ColourVector>();
}

#[test]
fn solves_have_the_same_bits_with_any_number_of_threads() {
    let lattice = Lattice::new([8, 8, 8, 8]).unwrap();
    let gauge = generate::weak_field(lattice, 1, 0.2);
    let sources = [generate::random_source::<Spinor>(lattice, 2)];
    let operator = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let request = Request { precision: Precision::Half, ..Request::new(operator) };
    let solve = |threads| {
        let domain = Domain::single(Cpu::new(Some(threads)), lattice).unwrap();
        let (solutions, report) = solve(&domain, &gauge, &sources, &request, &mut ()).unwrap();
        (solutions, report.info.history, report.true_residual)
    };
    let one = solve(1);
    assert!(one == solve(2) && one == solve(3));
}
