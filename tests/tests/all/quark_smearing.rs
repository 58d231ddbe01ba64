//! Gaussian smearing of quarks on a device: against its formula, by its symmetries, on parts of the lattice.
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::FullField;
use ferrite::field::host::{ColourVector, Fermion, HostColour, HostField, HostGauge, HostSpinor, Spinor};
use ferrite::gauge::generate;
use ferrite::lattice::{Lattice, Section};
use ferrite::observables::spectrum::smearing::{GaussianSmearing, SmearingLinks};
use ferrite::{FermionKind, Precision};
use ferrite_tests::reference::transform_links;
use ferrite_tests::testkit::{on_cpu, on_grid};
use ferrite_tests::{checks, cut};
use num_complex::Complex64;

const SMEARING: GaussianSmearing = GaussianSmearing { width: 1.7, steps: 6, momentum: [0.0; 3] };
const MOMENTUM: [f64; 3] = [0.7, -1.0, 2.5];

fn smeared<F: Fermion>(
    domain: &Domain,
    gauge: &HostGauge,
    fields: &[HostField<F>],
    smearing: GaussianSmearing,
    precision: Precision,
) -> Vec<HostField<F>> {
    let links = SmearingLinks::new(domain, gauge, F::KIND, precision, smearing.momentum).unwrap();
    links.smear(&smearing, fields).unwrap()
}

fn shifted(domain: &Domain, gauge: &HostGauge, fields: &[HostColour], directions: [bool; 3]) -> Vec<HostColour> {
    let links = SmearingLinks::new(domain, gauge, FermionKind::Staggered, Precision::Double, [0.0; 3]).unwrap();
    links.shifted(directions, FullField::of_host(domain, fields).unwrap()).unwrap().download().unwrap()
}

/// Largest difference by the largest number.
fn apart<F: Fermion>(a: &HostField<F>, b: &HostField<F>) -> f64 {
    let scale = b.numbers().iter().map(|z| z.norm()).fold(0.0, f64::max);
    a.numbers().iter().zip(b.numbers()).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max) / scale
}

fn fields<F: Fermion>(lattice: Lattice) -> Vec<HostField<F>> {
    (0..3).map(|seed| generate::random_source(lattice, seed)).collect()
}

/// Quarks on random links are smeared by the formula, by the check that also runs on GPUs.
#[test]
fn quarks_are_smeared_by_the_formula() {
    on_cpu(checks::quark_smearing);
}

/// A plane wave on unit links is an eigenvector with the known eigenvalue, which is 1 if its momentum is that of the smearing.
#[test]
fn plane_waves_are_eigenvectors() {
    let lattice = Lattice::new([4, 6, 8, 2]).unwrap();
    let gauge = HostGauge::unit(lattice);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let angle = |p: [f64; 3], x: [usize; 4]| -> f64 {
        (0..3).map(|k| std::f64::consts::TAU * p[k] * x[k] as f64 / lattice.size()[k] as f64).sum()
    };
    let wave = |p: [f64; 3]| {
        let site = |x| Spinor::from([[Complex64::cis(angle(p, lattice.coordinates(x))); 3]; 4]);
        HostSpinor::from_sites(lattice, (0..lattice.volume()).map(site).collect())
    };
    for (p, momentum) in
        [([0.0; 3], [0.0; 3]), ([1.0, -2.0, 3.0], [1.0, -2.0, 3.0]), ([1.0, 2.0, -1.0], [0.0, 2.5, 1.0])]
    {
        let psi = wave(p);
        let smearing = GaussianSmearing { momentum, ..SMEARING };
        let found = smeared(&domain, &gauge, std::slice::from_ref(&psi), smearing, Precision::Double).swap_remove(0);
        let half = |k: usize| std::f64::consts::PI * (p[k] - momentum[k]) / lattice.size()[k] as f64;
        let laplace: f64 = (0..3).map(|k| -4.0 * half(k).sin().powi(2)).sum();
        let expected = (1.0 + SMEARING.width.powi(2) / (4.0 * SMEARING.steps as f64) * laplace).powi(6);
        assert!(p != momentum || expected == 1.0);
        let off = found.numbers().iter().zip(psi.numbers()).map(|(a, b)| (a - expected * b).norm()).fold(0.0, f64::max);
        assert!(off < 1e-13, "{p:?} {momentum:?}: {off:e}");
    }
}

/// Smearing goes with gauge transformations.
#[test]
fn smearing_is_covariant() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let (gauge, random) = (generate::random(lattice, 6), generate::random(lattice, 7));
    let g: Vec<_> = (0..lattice.volume()).map(|x| *random.link(x, 0)).collect();
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let turn = |psi: &HostColour| {
        let site = |x: usize| std::array::from_fn(|a| (0..3).map(|b| g[x][a][b] * psi.sites()[x][b]).sum());
        HostColour::from_sites(lattice, (0..lattice.volume()).map(site).collect())
    };
    let all = fields::<ColourVector>(lattice);
    let smearing = GaussianSmearing { momentum: MOMENTUM, ..SMEARING };
    let plain = smeared(&domain, &gauge, &all, smearing, Precision::Double);
    let turned: Vec<_> = all.iter().map(turn).collect();
    let turned = smeared(&domain, &transform_links(&gauge, &g), &turned, smearing, Precision::Double);
    for (found, plain) in turned.iter().zip(&plain) {
        assert!(apart(found, &turn(plain)) < 1e-13);
    }
}

fn part<F: Fermion>(section: &Section, field: &HostField<F>) -> HostField<F> {
    let site = |x: usize| field.sites()[section.global_index(x)];
    HostField::from_sites(section.local, (0..section.local.volume()).map(site).collect())
}

/// Smearing gives the same on every part of a lattice that is partitioned in any direction.
#[test]
fn smearing_does_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 8, 12, 4]).unwrap();
    let gauge = generate::random(lattice, 8);
    let smearing = GaussianSmearing { momentum: MOMENTUM, ..SMEARING };
    let whole = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let (spinors, colours) = (fields::<Spinor>(lattice), fields::<ColourVector>(lattice));
    let expected = smeared(&whole, &gauge, &spinors, smearing, Precision::Double);
    let staggered = smeared(&whole, &gauge, &colours, smearing, Precision::Double);
    let shifts = [[true, false, false], [true, false, true], [true; 3]];
    let expected_shifts = shifts.map(|directions| shifted(&whole, &gauge, &colours, directions));
    for grid in [[2, 1, 1, 1], [1, 2, 2, 1], [1, 1, 3, 2], [1, 4, 1, 1]] {
        on_grid(grid, lattice, |domain| {
            let section = domain.section();
            let links = cut::links_of(&section, &gauge);
            let own: Vec<_> = spinors.iter().map(|psi| part(&section, psi)).collect();
            let found = smeared(domain, &links, &own, smearing, Precision::Double);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(*found, part(&section, expected), "{grid:?}");
            }
            let own: Vec<_> = colours.iter().map(|chi| part(&section, chi)).collect();
            let found = smeared(domain, &links, &own, smearing, Precision::Double);
            for (found, expected) in found.iter().zip(&staggered) {
                assert_eq!(*found, part(&section, expected), "staggered, {grid:?}");
            }
            for (directions, expected) in shifts.into_iter().zip(&expected_shifts) {
                for (found, expected) in shifted(domain, &links, &own, directions).iter().zip(expected) {
                    assert_eq!(*found, part(&section, expected), "{directions:?}, {grid:?}");
                }
            }
        });
    }
}
