//! Stout links against their formula, on the device and through `ferrite smear`.
use crate::program::*;
use comms::Threads;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::{generate, measure};
use ferrite::hmc::stout::StoutSmearing;
use ferrite::lattice::Lattice;
use ferrite_tests::clover_reference::path;
use ferrite_tests::cut;
use ferrite_tests::reference::{adjoint, multiply, unit};
use std::fs;

fn combine(a: &Matrix, factor: f64, b: &Matrix) -> Matrix {
    std::array::from_fn(|j| std::array::from_fn(|k| a[j][k] + factor * b[j][k]))
}

/// One level: exp(iQ) U from paths and the exponential's series.
fn level(gauge: &HostGauge, rho: f64, spatial: bool) -> HostGauge {
    let lattice = gauge.lattice();
    let directions = if spatial { 3 } else { 4 };
    let links = (0..4 * lattice.volume()).map(|index| {
        let (site, mu) = (index / 4, index % 4);
        let link = *gauge.link(site, mu);
        if mu >= directions {
            return link;
        }
        let mut staples = Matrix::default();
        for nu in (0..directions).filter(|nu| *nu != mu) {
            for way in [true, false] {
                let staple = path(gauge, site, &[(nu, way), (mu, true), (nu, !way)]);
                staples = combine(&staples, rho, &staple);
            }
        }
        let omega = multiply(&staples, &adjoint(&link));
        let mut iq = combine(&omega, -1.0, &adjoint(&omega)).map(|row| row.map(|z| z * 0.5));
        let trace = (iq[0][0] + iq[1][1] + iq[2][2]) / 3.0;
        (0..3).for_each(|k| iq[k][k] -= trace);
        let (mut term, mut sum) = (unit(), unit());
        for n in 1..40 {
            term = multiply(&term, &iq).map(|row| row.map(|z| z / n as f64));
            sum = combine(&sum, 1.0, &term);
        }
        multiply(&sum, &link)
    });
    HostGauge::from_links(lattice, links.collect())
}

fn largest_difference(a: &HostGauge, b: &HostGauge) -> f64 {
    let pairs = a.links().as_flattened().as_flattened().iter().zip(b.links().as_flattened().as_flattened());
    pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
}

#[test]
fn stout_links_are_those_of_the_formula() {
    for size in [[2, 4, 6, 8], [4, 4, 8, 4]] {
        let domain = Domain::single(Cpu::new(None), Lattice::new(size).unwrap()).unwrap();
        let gauge = generate::random(domain.local(), 3);
        let links = GaugeField::upload(&domain, &gauge).unwrap();
        for spatial in [false, true] {
            let mut expected = gauge.clone();
            for levels in 0..3 {
                let smeared = StoutSmearing { rho: 0.12, levels, spatial }.smeared(&links).unwrap();
                let off = largest_difference(&smeared.download().unwrap(), &expected);
                assert!(off < 1e-14 * (1 + 10 * levels) as f64, "{levels} levels, spatial {spatial}: {off:e}");
                expected = level(&expected, 0.12, spatial);
            }
        }
        assert_eq!(links.download().unwrap(), gauge);
    }
}

#[test]
fn stout_links_do_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 8, 4, 12]).unwrap();
    let gauge = generate::random(lattice, 4);
    let smearing = StoutSmearing { rho: 0.1, levels: 3, spatial: false };
    let smeared = |domain: &Domain, gauge: &HostGauge| {
        smearing.smeared(&GaugeField::upload(domain, gauge).unwrap()).unwrap().download().unwrap()
    };
    let whole = smeared(&Domain::single(Cpu::new(Some(1)), lattice).unwrap(), &gauge);
    for grid in [[1, 1, 1, 3], [1, 2, 1, 1], [1, 2, 1, 3]] {
        Threads::run(grid.iter().product(), |world| {
            let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world).unwrap();
            let part = domain.section();
            let found = smeared(&domain, &cut::links_of(&part, &gauge));
            assert_eq!(found, cut::links_of(&part, &whole), "{grid:?} at {:?}", part.origin);
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap();
    }
}

#[test]
fn smeared_files() {
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let room = Room::with_weak_field();
    let found = room.json("smear weak.ildg -o stout.ildg --rho 0.1 --levels 2");
    let (before, after) = (number(&found["before"]["plaquette"]["mean"]), number(&found["after"]["plaquette"]["mean"]));
    assert!(before < after && after < 1.0, "{before} {after}");
    assert_eq!(number(&room.json("plaquette stout.ildg")["plaquette"]["mean"]), after);
    // Two levels are one of what one level made; spatial smearing leaves links in t alone.
    room.json("smear weak.ildg -o once.npy --rho 0.1");
    room.json("smear once.npy -o twice.npy --rho 0.1");
    room.json("convert stout.ildg stout.npy");
    assert_eq!(fs::read(room.path("stout.npy")).unwrap(), fs::read(room.path("twice.npy")).unwrap());
    room.json("smear weak.ildg -o space.ildg --rho 0.1 --spatial");
    let read = |name: &str| ferrite::files::read_gauge(&room.path(name), &Default::default()).unwrap().gauge;
    let (thin, space) = (read("weak.ildg"), read("space.ildg"));
    assert!((0..thin.lattice().volume()).all(|site| thin.link(site, 3) == space.link(site, 3)));
    assert!(measure::plaquette(&space).spatial > measure::plaquette(&thin).spatial);
    for (flags, why) in [
        ("", "--rho"),
        ("--rho 0.3", "'0.3' is not a number from 0 to 0.25"),
        ("--rho -0.1", "'-0.1' is not a number from 0 to 0.25"),
        ("--rho 0.1 --levels 0", "--levels"),
    ] {
        room.fails(2, &format!("smear weak.ildg -o no.ildg {flags}"), &[why]);
    }
    room.fails(2, "smear weak.ildg -o no.txt --rho 0.1", &["no.txt", "the format is unclear"]);
    assert!(!room.path("no.ildg").exists());
}
