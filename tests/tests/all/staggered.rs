//! Staggered operators and the links they are made of: kernels against the reference, in every precision and
//! reconstruction, on the CPU; links that MILC made; and what holds for every configuration.
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::files::{ReadOptions, read_gauge};
use ferrite::lattice::Lattice;
use ferrite::operators::fat_links::{Improvement, LinkGroup, PathCoefficients, with_phases};
use ferrite::operators::{StaggeredPhases, TimeBoundary};
use ferrite_tests::checks::{self, Case};
use ferrite_tests::refdata;
use ferrite_tests::report::CheckReport;
use ferrite_tests::testkit::{farthest_links, finish, largest, on_cpu};
use proptest::prelude::*;

#[test]
fn kernels_agree_with_the_reference_on_small_lattices() {
    // One lattice for the naive operator and asqtad, the next for HISQ.
    small_lattices(2);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn kernels_agree_with_the_reference_on_every_small_lattice() {
    small_lattices(1);
}

fn small_lattices(turns: usize) {
    let (backend, mut report) = (Cpu::new(None), CheckReport::default());
    for (k, case) in checks::staggered_cases().iter().enumerate() {
        if k % turns == 0 {
            checks::staggered_kernels(&backend, case, &mut report).unwrap();
        }
        if k % turns == turns - 1 {
            checks::improved_kernels(&backend, case, &mut report).unwrap();
        }
    }
    finish(report);
}

fn check_larger(case: &Case) {
    on_cpu(|backend, report| checks::staggered_kernels(backend, case, report));
}

#[test]
fn kernels_agree_with_the_reference_on_a_larger_lattice() {
    check_larger(&checks::two_block_case());
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn kernels_agree_with_the_reference_on_a_lattice_of_several_blocks() {
    check_larger(&checks::large_case());
}

#[test]
fn links_agree_with_the_reference() {
    on_cpu(|backend, report| {
        checks::link_cases().iter().try_for_each(|gauge| checks::fat_links(backend, gauge, report))
    });
    on_cpu(checks::singular_matrices);
}

fn even(most: usize) -> impl Strategy<Value = usize> {
    (1..=most / 2).prop_map(|n| 2 * n)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 12, ..Default::default() })]

    #[test]
    fn operators_are_covariant_and_anti_hermitian_and_decouple_parities(
        size in [even(8), even(6), even(6), even(8)],
        seed in 0u64..1 << 40,
    ) {
        let mut report = CheckReport::default();
        checks::staggered_properties(&Cpu::new(Some(2)), Lattice::new(size).unwrap(), seed, &mut report).unwrap();
        report.assert_passed();
    }
}

#[test]
fn milc_fattens_links_alike() {
    let Some(folder) = refdata::folder() else { return };
    let read = |name: &str| {
        let options = ReadOptions { allow_non_unitary: true, ..Default::default() };
        read_gauge(&folder.join(name), &options).unwrap().gauge
    };
    let gauge = read("configs/lat.sample.l8.scidac");
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    let coefficients = PathCoefficients::asqtad(0.502);
    let made = Improvement::from_paths(&GaugeField::upload(&domain, &gauge).unwrap(), &coefficients).unwrap();
    let mut stored = Vec::new();
    for (name, links, steps) in [("fat.l8", &made.fat, 1), ("long.l8", &made.long, 3)] {
        // As MILC stores them, with phases and signs; and theirs without.
        let mut theirs = read(&format!("fields/{name}"));
        let (mut own, lattice) = (links.download().unwrap(), gauge.lattice());
        let off = |a: &HostGauge, b: &HostGauge| farthest_links(a, b) / largest(b.numbers());
        let plain = own.clone();
        with_phases(&mut own, lattice, steps, StaggeredPhases::Milc, TimeBoundary::Antiperiodic);
        println!("{name}: {:.1e}", off(&own, &theirs));
        assert!(off(&own, &theirs) < 1e-6, "{name}: {:.1e}", off(&own, &theirs));
        with_phases(&mut theirs, lattice, steps, StaggeredPhases::Milc, TimeBoundary::Antiperiodic);
        assert!(off(&plain, &theirs) < 1e-6, "{name} without phases: {:.1e}", off(&plain, &theirs));
        stored.push(theirs);
    }
    // Rounded to single precision, MILC's long links are still a number times SU(3).
    let read = Improvement::from_host(&domain, &stored[0], &stored[1]).unwrap();
    assert_eq!(read.long_group, LinkGroup::Su3);
    assert!((read.long_scale / coefficients.naik - 1.0).abs() < 1e-6, "{}", read.long_scale);
}
