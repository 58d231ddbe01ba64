//! Three-point functions of the nucleon: against sums over all indices by Wick's theorem, the derivative with respect to the mass, the
//! charges of both quarks, and the axial Ward identity.
use crate::correlators::*;
use crate::program::*;
use crate::three_point::{dense, momentum_phase, solved};
use ferrite::field::host::HostSpinor;
use ferrite::files::{ReadOptions, read_fermions, read_gauge};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::observables::spectrum::gamma::Gamma;
use ferrite::observables::spectrum::sequential_nucleon::{
    FLAVOURS, Flavour, NucleonSink, PROJECTORS, SpinProjector, sequential_nucleon_source,
};
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite_tests::clover_reference::{SiteMatrix, on_spin, propagator_at};
use ferrite_tests::gamma::{self, SpinMatrix};
use ferrite_tests::reference::{WilsonDirac, dot, gamma5};
use ferrite_tests::smearing_reference::gaussian;
use ferrite_tests::testkit::matrix::{add, multiply, scale, trace};
use ferrite_tests::testkit::{point_sources, solutions};
use num_complex::Complex64;
use serde_json::json;
use std::fs;

const SIZE: [usize; 4] = [2, 4, 2, 6];
const ORIGIN: [usize; 4] = [1, 2, 0, 4];

/// ε_abc of all colours.
fn epsilon() -> Vec<([usize; 3], f64)> {
    let of = |[a, b, c]: [usize; 3]| {
        let [a, b, c] = [a, b, c].map(|k| k as f64);
        (a - b) * (b - c) * (c - a) / 2.0
    };
    let all = (0..27).map(|k| [k / 9, k / 3 % 3, k % 3]);
    all.map(|abc| (abc, of(abc))).filter(|(_, sign)| *sign != 0.0).collect()
}

/// C γ_5 with C = γ_y γ_t, for which C γ_μ C⁻¹ = −γ_μᵀ.
fn c_gamma5() -> SpinMatrix {
    multiply(&multiply(&gamma::GAMMA[1], &gamma::GAMMA[3]), &gamma::GAMMA5)
}

/// Σ over all colours and spins of ⟨χ_γ χ̄_γ'⟩ at one site, χ_γ = ε_abc u_αa (C γ_5)_αβ d_βb u_γc and χ̄ = χ† γ_t, with propagators of the
/// u quark in the diquark at the sink, of the other u quark, and of the d quark. By Wick's theorem each of the u quarks may be either of
/// those at the source, and to exchange them changes the sign.
fn wick(diquark: &SiteMatrix, other: &SiteMatrix, down: &SiteMatrix) -> SpinMatrix {
    let (sink, time) = (c_gamma5(), gamma::GAMMA[3]);
    // χ† has d†_β (C γ_5)*_αβ u†_α, and u† = ū γ_t: what stands between d̄_β' and ū_α'.
    let source: SpinMatrix = std::array::from_fn(|b| {
        std::array::from_fn(|a| {
            let all = (0..16).map(|k| (k / 4, k % 4));
            all.map(|(alpha, beta)| time[b][beta] * sink[alpha][beta].conj() * time[a][alpha]).sum()
        })
    });
    let there = |matrix: &SpinMatrix| -> Vec<(usize, usize, Complex64)> {
        let all = (0..16).map(|k| (k / 4, k % 4, matrix[k / 4][k % 4]));
        all.filter(|(_, _, value)| *value != Complex64::ZERO).collect()
    };
    let (sink, source, epsilon) = (there(&sink), there(&source), epsilon());
    let mut sum = [[Complex64::ZERO; 4]; 4];
    for ([a, b, c], sign) in &epsilon {
        for ([a1, b1, c1], sign1) in &epsilon {
            for (alpha, beta, left) in &sink {
                for (beta1, alpha1, right) in &source {
                    let factor = sign * sign1 * left * right * down[3 * beta + b][3 * beta1 + b1];
                    for gamma in 0..4 {
                        for gamma1 in 0..4 {
                            let direct =
                                diquark[3 * alpha + a][3 * alpha1 + a1] * other[3 * gamma + c][3 * gamma1 + c1];
                            let exchanged =
                                diquark[3 * alpha + a][3 * gamma1 + c1] * other[3 * gamma + c][3 * alpha1 + a1];
                            sum[gamma][gamma1] += factor * (direct - exchanged);
                        }
                    }
                }
            }
        }
    }
    sum
}

/// Γ_p
fn projector(which: SpinProjector) -> SpinMatrix {
    let half = scale(0.5.into(), &gamma::projector(3, 1.0));
    match which {
        SpinProjector::Unpolarised => half,
        SpinProjector::Polarised(k) => {
            scale(Complex64::I, &multiply(&half, &multiply(&gamma::GAMMA5, &gamma::GAMMA[k])))
        }
    }
}

/// ⟨χ χ̄⟩ in which `inserted` takes the place of a propagator of this flavour, of each in turn.
fn with(flavour: Flavour, inserted: &SiteMatrix, s: &SiteMatrix) -> SpinMatrix {
    match flavour {
        Flavour::Up => add(&wick(inserted, s, s), Complex64::ONE, &wick(s, inserted, s)),
        Flavour::Down => wick(s, s, inserted),
    }
}

/// The three quarks of a sink that was reached across the boundary.
fn around(boundary: TimeBoundary, sink_time: usize, origin: [usize; 4]) -> f64 {
    if boundary == TimeBoundary::Antiperiodic && sink_time < origin[3] { -1.0 } else { 1.0 }
}

fn sites(lattice: Lattice, time: usize) -> impl Iterator<Item = usize> {
    (0..lattice.volume()).filter(move |x| lattice.coordinates(*x)[3] == time)
}

/// Propagators from all sites of a time, as sums over these sites with all Γ_J and momenta q, in the place of each quark of the nucleon.
#[test]
fn sequential_is_direct() {
    let lattice = Lattice::new(SIZE).unwrap();
    let gauge = generate::weak_field(lattice, 31, 0.3);
    let (p, q) = ([0, 1, 0], [[0, 0, 0], [1, -1, 0]]);
    // The sink is behind the boundary and the current before it; and the current outside of both.
    for (boundary, sink_time, current_time) in [(TimeBoundary::Antiperiodic, 1, 5), (TimeBoundary::Periodic, 5, 2)] {
        let s = solved(&gauge, 0.3, boundary, &point_sources(lattice, ORIGIN));
        let from: Vec<(usize, Vec<HostSpinor>)> = sites(lattice, current_time)
            .map(|y| (y, solved(&gauge, 0.3, boundary, &point_sources(lattice, lattice.coordinates(y)))))
            .collect();
        // By Γ_J, q and flavour.
        let mut expected = vec![[[[[Complex64::ZERO; 4]; 4]; 2]; 2]; 16];
        for (current, expected) in expected.iter_mut().enumerate() {
            let matrix = dense(current);
            for x in sites(lattice, sink_time) {
                let mut inserted = [[[Complex64::ZERO; 12]; 12]; 2];
                for (y, from_y) in &from {
                    let term = multiply(&propagator_at(from_y, x), &multiply(&matrix, &propagator_at(&s, *y)));
                    for (inserted, q) in inserted.iter_mut().zip(q) {
                        *inserted = add(inserted, momentum_phase(SIZE, q, lattice.coordinates(*y), ORIGIN), &term);
                    }
                }
                let here = propagator_at(&s, x);
                let sign =
                    around(boundary, sink_time, ORIGIN) * momentum_phase(SIZE, p, lattice.coordinates(x), ORIGIN);
                for (expected, inserted) in expected.iter_mut().zip(&inserted) {
                    for (expected, (_, flavour)) in expected.iter_mut().zip(FLAVOURS) {
                        *expected = add(expected, sign, &with(flavour, inserted, &here));
                    }
                }
            }
        }
        for (_, which) in PROJECTORS {
            for (f, (name, flavour)) in FLAVOURS.into_iter().enumerate() {
                let sink = NucleonSink { projector: which, flavour, momentum: p, time: sink_time };
                let eta = sequential_nucleon_source(lattice, &s, &sink, ORIGIN, boundary);
                let sequential = solved(&gauge, 0.3, boundary, &eta);
                let mesons = mesons_of(&s, &sequential, ORIGIN, &q);
                let of = |current: usize, k: usize| {
                    let all = mesons.correlator(Gamma::new(current), Gamma::five(), k);
                    (
                        all[(current_time + SIZE[3] - ORIGIN[3]) % SIZE[3]],
                        trace(&multiply(&projector(which), &expected[current][k][f])),
                    )
                };
                let all: Vec<_> = (0..32).map(|n| of(n / 2, n % 2)).collect();
                let scale = all.iter().map(|(_, expected)| expected.norm()).fold(0.0, f64::max);
                for (n, (found, expected)) in all.into_iter().enumerate() {
                    // Residuals of 1e-14 in each of the propagators.
                    let off = (found - expected).norm();
                    assert!(off < 1e-11 * scale, "{boundary:?} {name} {which:?} {n}: {found} {expected}");
                    assert!(found.norm() > 1e-5 * scale, "{boundary:?} {name} {which:?} {n}: nothing is compared");
                }
            }
        }
    }
}

/// S changes with its mass by −S S: the scalar currents of both quarks at all places are minus the derivative of the two-point function.
#[test]
fn scalar_currents_are_a_derivative() {
    let lattice = Lattice::new(SIZE).unwrap();
    let gauge = generate::weak_field(lattice, 32, 0.3);
    let sources = point_sources(lattice, ORIGIN);
    let mass = 0.3;
    for (boundary, p, sink_time) in
        [(TimeBoundary::Antiperiodic, [0, -1, 0], 1), (TimeBoundary::Periodic, [0, 0, 0], 2)]
    {
        let two = |mass: f64| {
            let s = solved(&gauge, mass, boundary, &sources);
            let all = nucleon_of(&s, ORIGIN, &[p], boundary).positive;
            all[0][(sink_time + SIZE[3] - ORIGIN[3]) % SIZE[3]]
        };
        let s = solved(&gauge, mass, boundary, &sources);
        let mut sum = Complex64::ZERO;
        for (_, flavour) in FLAVOURS {
            let sink = NucleonSink { projector: SpinProjector::Unpolarised, flavour, momentum: p, time: sink_time };
            let eta = sequential_nucleon_source(lattice, &s, &sink, ORIGIN, boundary);
            let sequential = solved(&gauge, mass, boundary, &eta);
            let mesons = mesons_of(&s, &sequential, ORIGIN, &[[0; 3]]);
            sum += mesons.correlator(Gamma::UNIT, Gamma::five(), 0).iter().sum::<Complex64>();
        }
        let step = 1e-3;
        // Of fourth order: the error is step⁴ times the fifth derivative over 30, and rounding 1e-13 over the step.
        let [a, b, c, d] = [-2.0, -1.0, 1.0, 2.0].map(|k| two(mass + k * step));
        let derivative = (a - 8.0 * b + 8.0 * c - d) / (12.0 * step);
        assert!((sum + derivative).norm() < 1e-9 * derivative.norm(), "{boundary:?}: {sum} {derivative}");
    }
}

/// The charge of u is 2 and that of d is 1: what they differ by on both sides of source and sink is so many times tr Γ_p ⟨χ χ̄⟩.
#[test]
fn charges_are_two_and_one() {
    let lattice = Lattice::new(SIZE).unwrap();
    let gauge = generate::weak_field(lattice, 33, 0.3);
    for boundary in [TimeBoundary::Antiperiodic, TimeBoundary::Periodic] {
        let s = solved(&gauge, 0.3, boundary, &point_sources(lattice, ORIGIN));
        for (sink_time, p) in [(1, [0, 0, 0]), (3, [0, 1, 0]), (5, [0, 0, 0])] {
            let distance = (sink_time + SIZE[3] - ORIGIN[3]) % SIZE[3];
            let mut c = [[Complex64::ZERO; 4]; 4];
            for x in sites(lattice, sink_time) {
                let sign =
                    around(boundary, sink_time, ORIGIN) * momentum_phase(SIZE, p, lattice.coordinates(x), ORIGIN);
                let here = propagator_at(&s, x);
                c = add(&c, sign, &wick(&here, &here, &here));
            }
            let two = nucleon_of(&s, ORIGIN, &[p], boundary).positive.swap_remove(0)[distance];
            for (_, which) in PROJECTORS {
                let expected = trace(&multiply(&projector(which), &c));
                for (name, flavour) in FLAVOURS {
                    let sink = NucleonSink { projector: which, flavour, momentum: p, time: sink_time };
                    let eta = sequential_nucleon_source(lattice, &s, &sink, ORIGIN, boundary);
                    let sequential = solved(&gauge, 0.3, boundary, &eta);
                    let both = [&s[..], &sequential[..]];
                    let all = charge_of(&gauge, both, Gamma::five(), ORIGIN, &[[0; 3]], boundary).swap_remove(0);
                    let count = if flavour == Flavour::Up { 2.0 } else { 1.0 };
                    let what = format!("{boundary:?} {sink_time} {which:?} {name}");
                    for (t, found) in all.iter().enumerate() {
                        let expected = if t < distance { all[0] } else { all[0] - count * expected };
                        // Residuals of 1e-14 of larger parts of the fields.
                        assert!((found - expected).norm() < 1e-10 * two.norm(), "{what} {t}: {found} {expected}");
                    }
                    if which == SpinProjector::Unpolarised {
                        let charge = (all[0] - all[SIZE[3] - 1]) / two;
                        assert!((charge - count).norm() < 1e-10, "{what}: {charge}");
                    }
                }
            }
        }
    }
}

/// The axial Ward identity of Wilson quarks, with what their Wilson term breaks, on one configuration: for α = 1 at one time and 0 at
/// others, S (γ_5 α M + M γ_5 α) S = S γ_5 α + α γ_5 S. On the left, M has its diagonal, 2 (4 + m) times the pseudoscalar current, and
/// hops; on the right are two-point functions with γ_5 at source or sink, at their times only.
#[test]
fn axial_ward_identity() {
    let lattice = Lattice::new(SIZE).unwrap();
    let gauge = generate::weak_field(lattice, 34, 0.3);
    let (mass, sink_time, p) = (0.3, 1, [0, 1, 0]);
    let distance = (sink_time + SIZE[3] - ORIGIN[3]) % SIZE[3];
    let five = on_spin(&gamma::GAMMA5);
    for (boundary, sign) in [(TimeBoundary::Antiperiodic, -1.0), (TimeBoundary::Periodic, 1.0)] {
        let operator = WilsonParams::from_mass(mass, boundary);
        let solved = |sources: &[HostSpinor]| solutions(&gauge, operator, 1e-14, sources);
        let s = solved(&point_sources(lattice, ORIGIN));
        let dirac = WilsonDirac::new(&gauge, mass, sign);
        for (name, flavour) in FLAVOURS {
            for which in [SpinProjector::Unpolarised, SpinProjector::Polarised(2)] {
                let mut ends = [[[Complex64::ZERO; 4]; 4]; 2];
                for x in sites(lattice, sink_time) {
                    let here = propagator_at(&s, x);
                    let factor =
                        around(boundary, sink_time, ORIGIN) * momentum_phase(SIZE, p, lattice.coordinates(x), ORIGIN);
                    for (end, inserted) in ends.iter_mut().zip([multiply(&here, &five), multiply(&five, &here)]) {
                        *end = add(end, factor, &with(flavour, &inserted, &here));
                    }
                }
                let sink = NucleonSink { projector: which, flavour, momentum: p, time: sink_time };
                let sequential = solved(&sequential_nucleon_source(lattice, &s, &sink, ORIGIN, boundary));
                let mesons = mesons_of(&s, &sequential, ORIGIN, &[[0; 3]]);
                let density = mesons.correlator(Gamma::five(), Gamma::five(), 0);
                let (mut found, mut expected) = (vec![Complex64::ZERO; SIZE[3]], vec![Complex64::ZERO; SIZE[3]]);
                for t in 0..SIZE[3] {
                    let time = (t + ORIGIN[3]) % SIZE[3];
                    let mut hops = Complex64::ZERO;
                    for (s, sequential) in s.iter().zip(&sequential) {
                        let here = |psi: &HostSpinor| {
                            let mut psi = psi.clone();
                            for (x, site) in psi.sites_mut().iter_mut().enumerate() {
                                if lattice.coordinates(x)[3] != time {
                                    *site = Default::default();
                                }
                            }
                            psi
                        };
                        let left = gamma5(sequential);
                        hops += dot(&left, &gamma5(&here(&dirac.hopping(false, s))));
                        hops += dot(&left, &dirac.hopping(false, &gamma5(&here(s))));
                    }
                    found[t] = 2.0 * dirac.diagonal() * density[t] - 0.5 * hops;
                    expected[t] += if t == 0 { trace(&multiply(&projector(which), &ends[0])) } else { Complex64::ZERO };
                    expected[t] +=
                        if t == distance { trace(&multiply(&projector(which), &ends[1])) } else { Complex64::ZERO };
                }
                let scale = expected.iter().chain(&density).map(|z| z.norm()).fold(0.0, f64::max);
                for (t, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    assert!(
                        (found - expected).norm() < 1e-11 * scale,
                        "{boundary:?} {name} {which:?} {t}: {found} {expected}"
                    );
                }
                let least = expected[0].norm().min(expected[distance].norm());
                assert!(least > 1e-4 * scale, "{boundary:?} {name} {which:?}: nothing is compared");
            }
        }
    }
}

/// The command makes them of two quarks and from two origins, to points and shells.
#[test]
fn the_command_makes_three_point_functions() {
    let room = Room::new();
    room.json("generate weak-field --lattice 2,4,2,6 --seed 35 --noise 0.3 -o cfg.ildg");
    let gauge = read_gauge(&room.path("cfg.ildg"), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    let input = r#"
        origins = [[1, 2, 0, 4], [0, 3, 1, 1]]
        momenta = 1
        propagators = "kept"
        [three-point]
        hadron = "nucleon"
        separations = [4, 2]
        projectors = ["polarised-z", "unpolarised"]
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
    room.json("check run.toml --set configurations=cfg.ildg");
    let (p, q, boundary) = ([0, 1, 0], [[0, 0, 0], [0, 0, -1]], TimeBoundary::Antiperiodic);
    let shell = "--set sink=shell --set shell.width=1.1 --set shell.steps=4";
    for (to, flags) in [("point", ""), ("shell", shell)] {
        room.json(&format!("spectrum run.toml cfg.ildg --out {to} {flags}"));
        let line = lines(&room, to).swap_remove(0);
        // Four propagators, which are kept, and through the sink those of two quarks, origins, separations, projectors and flavours.
        let solves = line["solves"].as_array().unwrap();
        let through: Vec<_> = solves.iter().filter(|solve| !solve["separation"].is_null()).collect();
        let read = solves.iter().filter(|solve| solve["read"] == true).count();
        assert_eq!((solves.len(), read, through.len()), (36, if to == "point" { 0 } else { 4 }, 32));
        let second = through[3];
        let expected = json!(["light", 4, "unpolarised", "d"]);
        assert_eq!(json!(["quark", "separation", "projector", "flavour"].map(|key| &second[key])), expected);
        let end = |fields: &[HostSpinor]| -> Vec<HostSpinor> {
            let one =
                |psi: &HostSpinor| if to == "point" { psi.clone() } else { gaussian(&gauge, psi, 1.1, 4, [0.0; 3]) };
            fields.iter().map(one).collect()
        };
        for (which, flavour) in [
            (SpinProjector::Unpolarised, Flavour::Up),
            (SpinProjector::Unpolarised, Flavour::Down),
            (SpinProjector::Polarised(2), Flavour::Down),
        ] {
            let ends = format!(
                "strange.nucleon.{}",
                if which == SpinProjector::Unpolarised { "unpolarised" } else { "polarised-z" }
            );
            let name = if flavour == Flavour::Up { "u" } else { "d" };
            for separation in [2, 4] {
                let mut expected = [[[Complex64::ZERO; 6]; 2]; 2];
                for (file, origin) in [("1_2_0_4", [1, 2, 0, 4]), ("0_3_1_1", [0, 3, 1, 1])] {
                    let file = room.path(&format!("kept/cfg.ildg.strange.{file}.npy"));
                    let s = read_fermions(&file, &ReadOptions::default()).unwrap().fields;
                    let time = (origin[3] + separation) % 6;
                    let sink = NucleonSink { projector: which, flavour, momentum: p, time };
                    let eta = end(&sequential_nucleon_source(lattice, &end(&s), &sink, origin, boundary));
                    let sequential = solved(&gauge, 0.6, boundary, &eta);
                    let mesons = mesons_of(&s, &sequential, origin, &q);
                    let charge = charge_of(&gauge, [&s, &sequential], Gamma::five(), origin, &q, boundary);
                    for k in 0..2 {
                        let local = mesons.correlator(Gamma::new(7), Gamma::five(), k);
                        for t in 0..6 {
                            expected[k][0][t] += local[t] / 2.0;
                            expected[k][1][t] += charge[k][t] / 2.0;
                        }
                    }
                }
                for (k, q) in q.into_iter().enumerate() {
                    for (current, expected) in [("gxgygz", expected[k][0]), ("charge", expected[k][1])] {
                        let found = correlator(&line, &format!("{ends}:{separation}:{name}:{current}"), q);
                        let scale = expected.iter().map(|z| z.norm()).fold(0.0, f64::max);
                        for (found, expected) in found.iter().zip(expected) {
                            assert!(
                                (found - expected).norm() < 1e-10 * scale,
                                "{to} {which:?} {name} {current} {q:?}: {found} {expected}"
                            );
                        }
                    }
                }
                if which == SpinProjector::Unpolarised {
                    let all = correlator(&line, &format!("{ends}:{separation}:{name}:charge"), [0; 3]);
                    let two = correlator(&line, "strange.nucleon.positive", p)[separation];
                    let (charge, count) = ((all[0] - all[5]) / two, if name == "u" { 2.0 } else { 1.0 });
                    // Solves to 1e-13, of larger parts of the fields.
                    assert!((charge - count).norm() < 1e-8, "{to} {name}: {charge}");
                }
            }
        }
    }
    // The same command has nothing to do; a folder takes one kind only, and that of mesons is another one.
    let lines_before = fs::read(room.path("point/correlators.jsonl")).unwrap();
    room.json("spectrum run.toml cfg.ildg --out point");
    assert_eq!(fs::read(room.path("point/correlators.jsonl")).unwrap(), lines_before);
    assert_eq!(room.json("report point")["hadrons"].as_array().unwrap().len(), 8);
    let run = "spectrum run.toml cfg.ildg --backend cpu";
    for (set, what) in [
        ("three-point.projectors=unpolarised", "three-point.projectors"),
        ("three-point.momentum=[0,0,0]", "three-point.momentum"),
    ] {
        let refused = format!("line 1: the line was made with another value of {what}: name another folder");
        room.fails(2, &format!("{run} --out point --set {set}"), &[&refused]);
    }
    let meson =
        input.replace("hadron = \"nucleon\"", "").replace("projectors = [\"polarised-z\", \"unpolarised\"]", "");
    fs::write(room.path("meson.toml"), &meson).unwrap();
    let other = "spectrum meson.toml cfg.ildg --backend cpu --out point";
    room.fails(2, other, &["line 1: the line was made with another value of three-point.hadron"]);
    for (set, parts) in [
        ("--set three-point.hadron=baryon", &["three-point.hadron", "'baryon' is none of meson, nucleon"][..]),
        ("--set three-point.projectors=up", &["three-point.projectors", "'up' is none of unpolarised, polarised-x"]),
        (
            "--set three-point.sink=g5",
            &["three-point.sink", "applies only to three-point.hadron = \"meson\"; remove it"],
        ),
        (
            "--set three-point.hadron=meson",
            &["projectors", "applies only to three-point.hadron = \"nucleon\"; remove it"],
        ),
        ("--set three-point.separations=[6]", &["three-point.separations: 6", "has 6 times"]),
        ("--set three-point.separations=[0]", &["whole number of times from 1 to 4096"]),
        ("--set source=wall --set momenta=0", &["need point or Gaussian-smeared sources"]),
    ] {
        room.fails(2, &format!("{run} --out no {set}"), parts);
    }
    let alone = meson.replace("separations = [4, 2]", "hadron = \"nucleon\"");
    fs::write(room.path("alone.toml"), alone).unwrap();
    room.fails(2, "spectrum alone.toml cfg.ildg --backend cpu --out no", &["hadron: needs three-point.separations"]);
    assert!(!room.path("no").exists());
}
