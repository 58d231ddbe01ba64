//! Three-point functions of mesons: against direct sums, the derivative with respect to the mass, and charge 1. Those of the nucleon are in
//! `three_point_nucleon.rs`, which shares the matrices here.
use crate::correlators::*;
use crate::program::*;
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::files::{ReadOptions, read_fermions, read_gauge};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::observables::spectrum::gamma::Gamma;
use ferrite::observables::spectrum::sequential::sequential_source;
use ferrite::operators::{CloverParams, TimeBoundary, WilsonParams};
use ferrite_tests::clover_reference::{SiteMatrix, on_spin, propagator_at};
use ferrite_tests::gamma;
use ferrite_tests::smearing_reference::gaussian;
use ferrite_tests::testkit::matrix::{adjoint, multiply, trace, unit};
use ferrite_tests::testkit::{point_sources, solutions};
use num_complex::Complex64;
use serde_json::json;
use std::fs;

const SIZE: [usize; 4] = [2, 4, 6, 8];
const ORIGIN: [usize; 4] = [1, 2, 0, 5];

/// Solutions of clover quarks.
pub fn solved(gauge: &HostGauge, mass: f64, boundary: TimeBoundary, sources: &[HostSpinor]) -> Vec<HostSpinor> {
    let operator = CloverParams::isotropic(WilsonParams::from_mass(mass, boundary), 1.1, 1.0);
    solutions(gauge, operator, 1e-14, sources)
}

/// γ_x^{n₀} γ_y^{n₁} γ_z^{n₂} γ_t^{n₃}
pub fn dense(number: usize) -> SiteMatrix {
    let factors = (0..4).filter(|mu| number >> mu & 1 == 1);
    factors.fold(unit(), |all, mu| multiply(&all, &on_spin(&gamma::GAMMA[mu])))
}
/// e^{−ip(x − origin)} with p in units of 2π/L.
pub fn momentum_phase(size: [usize; 4], p: [i32; 3], x: [usize; 4], origin: [usize; 4]) -> Complex64 {
    let turns: f64 = (0..3).map(|k| f64::from(p[k]) * (x[k] as f64 - origin[k] as f64) / size[k] as f64).sum();
    Complex64::cis(-std::f64::consts::TAU * turns)
}
fn phase(p: [i32; 3], x: [usize; 4]) -> Complex64 {
    momentum_phase(SIZE, p, x, ORIGIN)
}

/// Σ_{x,y} tr Γ S₁(x, y) Γ_J S₁(y, x₀) Γ̄' S₂(x₀, x), with S₁(x, y) from every y of a time.
#[test]
fn sequential_is_direct() {
    let lattice = Lattice::new(SIZE).unwrap();
    let gauge = generate::weak_field(lattice, 21, 0.3);
    let (sink_time, current_time) = (1, 7);
    let (p, q) = ([0, 1, 0], [[0, 0, 0], [0, -1, 2]]);
    for boundary in [TimeBoundary::Antiperiodic, TimeBoundary::Periodic] {
        let sources = point_sources(lattice, ORIGIN);
        let (quark, antiquark) = (solved(&gauge, 0.3, boundary, &sources), solved(&gauge, 0.6, boundary, &sources));
        let five = dense(15);
        let back: Vec<SiteMatrix> = (0..lattice.volume())
            .map(|x| multiply(&five, &multiply(&adjoint(&propagator_at(&antiquark, x)), &five)))
            .collect();
        // Γ at the sink and at the source, and of the current.
        let cases = [(15, 15, 8), (1, 1, 15), (15, 7, 2), (3, 9, 5)];
        let mut expected = [[Complex64::ZERO; 2]; 4];
        for y in (0..lattice.volume()).filter(|y| lattice.coordinates(*y)[3] == current_time) {
            let from_y = solved(&gauge, 0.3, boundary, &point_sources(lattice, lattice.coordinates(y)));
            for (expected, (sink, source, current)) in expected.iter_mut().zip(cases) {
                let bar = multiply(&dense(8), &multiply(&adjoint(&dense(source)), &dense(8)));
                let right = multiply(&dense(current), &multiply(&propagator_at(&quark, y), &bar));
                let mut sum = Complex64::ZERO;
                for x in (0..lattice.volume()).filter(|x| lattice.coordinates(*x)[3] == sink_time) {
                    let whole =
                        multiply(&multiply(&dense(sink), &propagator_at(&from_y, x)), &multiply(&right, &back[x]));
                    sum -= phase(p, lattice.coordinates(x)) * trace(&whole);
                }
                for (expected, q) in expected.iter_mut().zip(q) {
                    *expected += phase(q, lattice.coordinates(y)) * sum;
                }
            }
        }
        for (expected, (sink, source, current)) in expected.into_iter().zip(cases) {
            let eta = sequential_source(lattice, &antiquark, Gamma::new(sink), p, ORIGIN, sink_time);
            let sequential = solved(&gauge, 0.3, boundary, &eta);
            let mesons = mesons_of(&quark, &sequential, ORIGIN, &q);
            for (k, expected) in expected.into_iter().enumerate() {
                let found = mesons.correlator(Gamma::new(current), Gamma::new(source), k);
                let scale = found.iter().map(|z| z.norm()).fold(0.0, f64::max);
                let found = found[(current_time + 8 - ORIGIN[3]) % 8];
                assert!((found - expected).norm() < 1e-11 * scale, "{sink} {source} {current}: {found} {expected}");
                assert!(found.norm() > 1e-6 * scale, "{sink} {source} {current}: nothing is compared");
            }
        }
    }
}

/// S₁ changes with its mass by −S₁ S₁: the scalar current at all places is minus the derivative of the two-point function.
#[test]
fn the_scalar_current_is_a_derivative() {
    let lattice = Lattice::new(SIZE).unwrap();
    let gauge = generate::weak_field(lattice, 22, 0.3);
    let (p, sink_time) = ([0, 0, 1], 3);
    let (boundary, sources) = (TimeBoundary::Antiperiodic, point_sources(lattice, ORIGIN));
    let antiquark = solved(&gauge, 0.6, boundary, &sources);
    let two = |mass: f64, gamma: Gamma| {
        let quark = solved(&gauge, mass, boundary, &sources);
        mesons_of(&quark, &antiquark, ORIGIN, &[p]).of(gamma, 0)[(sink_time + 8 - ORIGIN[3]) % 8]
    };
    for number in [15, 1] {
        let gamma = Gamma::new(number);
        let quark = solved(&gauge, 0.3, boundary, &sources);
        let eta = sequential_source(lattice, &antiquark, gamma, p, ORIGIN, sink_time);
        let sequential = solved(&gauge, 0.3, boundary, &eta);
        let scalar = mesons_of(&quark, &sequential, ORIGIN, &[[0; 3]]).correlator(Gamma::UNIT, gamma, 0);
        let step = 1e-3;
        // Of fourth order: the error is step⁴ times the fifth derivative over 30, and rounding 1e-13 over the step.
        let [a, b, c, d] = [-2.0, -1.0, 1.0, 2.0].map(|k| two(0.3 + k * step, gamma));
        let derivative = (a - 8.0 * b + 8.0 * c - d) / (12.0 * step);
        let sum: Complex64 = scalar.iter().sum();
        assert!((sum + derivative).norm() < 1e-9 * derivative.norm(), "{number}: {sum} {derivative}");
    }
}

/// The charge is the same at all times between source and sink, and outside, and its step is the two-point function.
#[test]
fn the_conserved_charge_is_one() {
    let lattice = Lattice::new(SIZE).unwrap();
    let gauge = generate::weak_field(lattice, 23, 0.3);
    let sources = point_sources(lattice, ORIGIN);
    for boundary in [TimeBoundary::Antiperiodic, TimeBoundary::Periodic] {
        let (quark, antiquark) = (solved(&gauge, 0.3, boundary, &sources), solved(&gauge, 0.6, boundary, &sources));
        for (number, p, sink_time) in [(15, [0, 0, 0], 1), (15, [0, 1, 0], 7), (2, [0, 0, -1], 2)] {
            let gamma = Gamma::new(number);
            let eta = sequential_source(lattice, &antiquark, gamma, p, ORIGIN, sink_time);
            let sequential = solved(&gauge, 0.3, boundary, &eta);
            let both = [&quark[..], &sequential[..]];
            let charge = charge_of(&gauge, both, gamma, ORIGIN, &[[0; 3]], boundary).swap_remove(0);
            let two = mesons_of(&quark, &antiquark, ORIGIN, &[p]).of(gamma, 0);
            let distance = (sink_time + 8 - ORIGIN[3]) % 8;
            // The density of time τ is that of hops from τ to τ + 1.
            let scale = two[distance].norm();
            for t in 0..8 {
                let expected = if t < distance { charge[0] } else { charge[0] - two[distance] };
                // Residuals of 1e-14 of larger parts of the fields.
                assert!((charge[t] - expected).norm() < 1e-10 * scale, "{number} {p:?} {t}: {} {expected}", charge[t]);
            }
        }
    }
}

/// The command makes them of two quarks and from two origins, behind points and shells.
#[test]
fn the_command_makes_three_point_functions() {
    let room = Room::new();
    room.json("generate weak-field --lattice 2,4,6,8 --seed 24 --noise 0.3 -o cfg.ildg");
    let gauge = read_gauge(&room.path("cfg.ildg"), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    let input = r#"
        origins = [[1, 2, 0, 5], [0, 3, 2, 1]]
        momenta = 1
        nucleon = false
        mesons = ["light-strange"]
        propagators = "kept"
        [three-point]
        separations = [5, 3]
        sink = "gy"
        momentum = [0, 1, 0]
        charge = true
        [solve]
        operator = "clover"
        mass = 0.3
        csw = 1.1
        precision = "double"
        tol = 1e-13
        [[quark]]
        name = "light"
        [[quark]]
        name = "strange"
        mass = 0.6
    "#;
    fs::write(room.path("run.toml"), input).unwrap();
    let (gamma, p) = (Gamma::new(2), [0, 1, 0]);
    let shell = "--set sink=shell --set shell.width=1.1 --set shell.steps=4";
    let boundary = TimeBoundary::Antiperiodic;
    for (sink, flags) in [("point", ""), ("shell", shell)] {
        room.json(&format!("spectrum run.toml cfg.ildg --out {sink} {flags}"));
        let line = lines(&room, sink).swap_remove(0);
        // Four propagators, which are kept, and as many through the sink of each separation.
        let solves = line["solves"].as_array().unwrap();
        let through: Vec<_> = solves.iter().filter(|solve| !solve["separation"].is_null()).collect();
        let read = solves.iter().filter(|solve| solve["read"] == true).count();
        assert_eq!((solves.len(), read, through.len()), (8, if sink == "point" { 0 } else { 4 }, 4));
        assert_eq!((&through[1]["separation"], &through[1]["quark"]), (&json!(5), &json!("light")));
        let end = |fields: &[HostSpinor]| -> Vec<HostSpinor> {
            let one =
                |psi: &HostSpinor| if sink == "point" { psi.clone() } else { gaussian(&gauge, psi, 1.1, 4, [0.0; 3]) };
            fields.iter().map(one).collect()
        };
        for separation in [3, 5] {
            let q = [[0, 0, 0], [0, 0, -1]];
            let mut expected = [[[Complex64::ZERO; 8]; 2]; 2];
            let mut two = Complex64::ZERO;
            for (name, origin) in [("1_2_0_5", [1, 2, 0, 5]), ("0_3_2_1", [0, 3, 2, 1])] {
                let read = |quark: &str| -> Vec<HostSpinor> {
                    let file = room.path(&format!("kept/cfg.ildg.{quark}.{name}.npy"));
                    read_fermions(&file, &ReadOptions::default()).unwrap().fields
                };
                let (light, strange) = (read("light"), end(&read("strange")));
                let time = (origin[3] + separation) % 8;
                let eta = end(&sequential_source(lattice, &strange, gamma, p, origin, time));
                let sequential = solved(&gauge, 0.3, boundary, &eta);
                let mesons = mesons_of(&light, &sequential, origin, &q);
                let charge = charge_of(&gauge, [&light, &sequential], gamma, origin, &q, boundary);
                for k in 0..2 {
                    let local = mesons.correlator(Gamma::new(9), gamma, k);
                    for t in 0..8 {
                        expected[k][0][t] += local[t] / 2.0;
                        expected[k][1][t] += charge[k][t] / 2.0;
                    }
                }
                two += mesons_of(&end(&light), &strange, origin, &[p]).of(gamma, 0)[separation] / 2.0;
            }
            for (k, q) in q.into_iter().enumerate() {
                for (current, expected) in [("gxgt", expected[k][0]), ("charge", expected[k][1])] {
                    let found = correlator(&line, &format!("light-strange.gy:{separation}:{current}"), q);
                    let scale = expected.iter().map(|z| z.norm()).fold(0.0, f64::max);
                    for (found, expected) in found.iter().zip(expected) {
                        assert!(
                            (found - expected).norm() < 1e-10 * scale,
                            "{sink} {current} {q:?}: {found} {expected}"
                        );
                    }
                }
            }
            let charge = correlator(&line, &format!("light-strange.gy:{separation}:charge"), [0; 3]);
            let both = correlator(&line, "light-strange.gy", p)[separation];
            for found in [charge[0] - charge[7], two] {
                assert!((found - both).norm() < 1e-9 * both.norm(), "{sink}: {found} {both}");
            }
        }
    }
    // Hadrons that are shown are not three-point functions, and a folder takes one kind only.
    let page = room.json("report point");
    assert_eq!(page["hadrons"].as_array().unwrap().len(), 2);
    let run = "spectrum run.toml cfg.ildg --backend cpu";
    let other = format!("{run} --out point --set three-point.separations=[3]");
    room.fails(2, &other, &["line 1: the line was made with another value of three-point.separations"]);
    for (set, parts) in [
        ("--set three-point.separations=[8]", &["three-point.separations: 8", "has 8 times"][..]),
        ("--set three-point.separations=[0]", &["whole number of times from 1 to 4096"]),
        ("--set three-point.sink=g6", &["'g6' is none of 1, gx"]),
        ("--set three-point.momentum=[0,0.5,0]", &["whole numbers"]),
        ("--set source=wall --set momenta=0", &["need point or Gaussian-smeared sources"]),
        ("--set solve.theta=1,0,0,0", &["remove three-point.charge or theta"]),
    ] {
        room.fails(2, &format!("{run} --out no {set}"), parts);
    }
    assert!(!room.path("no").exists());
}
