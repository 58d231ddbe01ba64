//! Temporal gauge: the transformation, and kernels that leave out links in t.
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::fixing::temporal_gauge;
use ferrite::gauge::{generate, measure, su3};
use ferrite::lattice::Lattice;
use ferrite_tests::checks;
use ferrite_tests::reference::{colour_multiply, field, plaquettes, transform_links};
use ferrite_tests::report::worst_error;
use ferrite_tests::testkit::on_cpu;

#[test]
fn kernels_agree_with_the_reference() {
    on_cpu(|backend, report| {
        checks::temporal_cases().iter().try_for_each(|case| checks::temporal_kernels(backend, case, report))
    });
}

fn fields() -> Vec<HostGauge> {
    let lattice = |size| Lattice::new(size).unwrap();
    vec![
        generate::random(lattice([2, 4, 6, 8]), 1),
        generate::weak_field(lattice([4, 2, 2, 32]), 2, 0.2),
        generate::random(lattice([2, 2, 2, 2]), 3),
    ]
}

#[test]
fn links_are_in_temporal_gauge_and_nothing_else_changes() {
    let unit: Matrix = *HostGauge::unit(Lattice::new([2; 4]).unwrap()).link(0, 0);
    for gauge in fields() {
        let lattice = gauge.lattice();
        let (fixed, g) = temporal_gauge(&gauge);
        assert!(measure::unitarity(&fixed).violation < 1e-14);
        assert!(g.matrices().iter().all(|g| su3::violation(g) < 1e-14));
        for x in 0..lattice.volume() {
            let last = lattice.coordinates(x)[3] == lattice.size()[3] - 1;
            assert_eq!(*fixed.link(x, 3) == unit, !last, "site {x}");
        }
        // By the reference's formula for transformed links.
        let expected = transform_links(&gauge, g.matrices());
        let pairs = fixed.links().iter().flatten().flatten().zip(expected.links().iter().flatten().flatten());
        assert!(pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max) < 1e-14);
        for (before, after) in plaquettes(&gauge).into_iter().zip(plaquettes(&fixed)) {
            assert!((before - after).abs() < 1e-14, "{before} {after}");
        }
    }
}

#[test]
fn fixing_twice_changes_nothing() {
    for gauge in fields() {
        let (fixed, _) = temporal_gauge(&gauge);
        let (again, g) = temporal_gauge(&fixed);
        assert!(again == fixed);
        assert_eq!(g.matrices().iter().map(su3::violation).fold(0.0, f64::max), 0.0);
    }
}

#[test]
fn transformations_of_fields_are_taken_back() {
    for gauge in fields() {
        let (lattice, (_, g)) = (gauge.lattice(), temporal_gauge(&gauge));
        let psi = generate::random_source(lattice, 4);
        let mut rotated = psi.clone();
        g.apply(&mut rotated);
        let expected = field(lattice, |x| colour_multiply(&g.matrices()[x], &psi.sites()[x]));
        assert!(worst_error(std::slice::from_ref(&rotated), &[expected]) < 1e-15);
        g.apply_inverse(&mut rotated);
        assert!(worst_error(&[rotated], &[psi]) < 1e-14);
    }
}

/// Links of a file in single precision are in SU(3) to 1e-7 only: the transformation is in SU(3) all the same.
#[test]
fn links_rounded_to_single_precision_are_fixed_too() {
    let mut gauge = generate::random(Lattice::new([2, 2, 4, 16]).unwrap(), 5);
    gauge.links_mut().iter_mut().flatten().flatten().for_each(|z| {
        z.re = f64::from(z.re as f32);
        z.im = f64::from(z.im as f32);
    });
    let (fixed, g) = temporal_gauge(&gauge);
    assert!(g.matrices().iter().all(|g| su3::violation(g) < 1e-14));
    assert!(measure::unitarity(&fixed).violation < 5e-7);
    for (before, after) in plaquettes(&gauge).into_iter().zip(plaquettes(&fixed)) {
        assert!((before - after).abs() < 1e-7);
    }
}
