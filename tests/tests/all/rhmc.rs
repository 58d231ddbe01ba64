//! Molecular dynamics: forces against derivatives of their actions, and against MILC's; integrators; trajectories.
use crate::chains::{quarks, solver};
use ferrite::Precision::{self, Double, Single};
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostColour, HostGauge};
use ferrite::field::{FieldShape, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::hmc::action::{AnisotropicLattice, GaugeAction};
use ferrite::hmc::fermions::{Pseudofermions, QuarkOperator, QuarkSmearing, RationalFunctions, ShiftedSolver};
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::functions::{Quarks, Tolerances, rational_functions};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::spectrum::largest;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::lattice::Lattice;
use ferrite::observables::condensate::{condensate, noise};
use ferrite::operators::fat_links::PathCoefficients;
use ferrite::operators::{StaggeredParams, StaggeredPhases, TimeBoundary};
use ferrite_tests::checks::THETA;
use ferrite_tests::clover_reference::path;
use ferrite_tests::cut;
use ferrite_tests::staggered_reference::{LinkCoefficients, fat_links};
use ferrite_tests::testkit::matrix::trace;
use ferrite_tests::testkit::{domain, farthest_links, on_grid, product_of_links, single};
use nalgebra::DMatrix;
use num_complex::Complex64;

/// Momenta of one seed, so that a direction in the space of links.
pub fn direction(domain: &Domain) -> MomentumField {
    let mut field = MomentumField::zero(domain, Double).unwrap();
    field.draw(77, 1).unwrap();
    field
}

/// dS/dt at exp(t Q) U, t = 0, by differences to the sixth power of `h`.
pub fn derivative(gauge: &GaugeField, q: &MomentumField, h: f64, action: impl Fn(&EvolvingLinks) -> f64) -> f64 {
    let at = |t: f64| {
        let mut links = EvolvingLinks::new(gauge, Double).unwrap();
        q.move_links(links.own_mut(), t, false).unwrap();
        action(&links)
    };
    let pair = |k: f64| at(k * h) - at(-k * h);
    (45.0 * pair(1.0) - 9.0 * pair(2.0) + pair(3.0)) / (60.0 * h)
}

/// The force on links and momenta in a precision against a derivative.
pub fn agrees(
    precision: Precision,
    (gauge, q): (&GaugeField, &MomentumField),
    force: &dyn Force,
    expected: f64,
    tolerance: f64,
) {
    let links = EvolvingLinks::new(gauge, precision).unwrap();
    let mut momenta = MomentumField::zero(gauge.domain(), precision).unwrap();
    force.kick(&links, 1.0, &mut momenta).unwrap();
    let kicked = momenta.download().unwrap();
    let got = -product_of_links(&q.download().unwrap(), &kicked);
    // The product of a force with normal numbers is about as large as the force; it may also be small.
    let off = (got - expected).abs() / expected.abs().max(product_of_links(&kicked, &kicked).sqrt());
    assert!(off < tolerance, "{} in {precision}: {got} instead of {expected}, {off:e}", force.name());
}

/// Shapes with odd extents halved, extents of two, and one that is large in t.
pub fn domains() -> Vec<Domain> {
    let domain = |size| Domain::single(Cpu::new(None), Lattice::new(size).unwrap()).unwrap();
    vec![domain([2, 4, 6, 8]), domain([4, 4, 2, 6])]
}

/// Σ (1 − Re tr L / 3) over plaquettes in space and those with t, and over rectangles in space, with their short side in t and with their
/// long side in t.
fn plain_loops(gauge: &HostGauge) -> ([f64; 2], [f64; 3]) {
    let (mut plaquettes, mut rectangles) = ([0.0; 2], [0.0; 3]);
    for site in 0..gauge.lattice().volume() {
        let sum = |steps: &[(usize, bool)]| 1.0 - trace(&path(gauge, site, steps)).re / 3.0;
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let [up, right, down, left] = [(a, true), (b, true), (a, false), (b, false)];
            if a < b {
                plaquettes[usize::from(b == 3)] += sum(&[up, right, down, left]);
            }
            let kind = if a == 3 { 2 } else { usize::from(b == 3) };
            rectangles[kind] += sum(&[up, up, right, down, down, left]);
        }
    }
    (plaquettes, rectangles)
}

/// Actions as papers write them, over loops that are multiplied link by link.
#[test]
fn gauge_actions_are_those_of_their_papers() {
    let domain = Domain::single(Cpu::new(None), Lattice::new([2, 4, 6, 8]).unwrap()).unwrap();
    let gauge = generate::random(domain.local(), 5);
    let links = GaugeField::upload(&domain, &gauge).unwrap();
    let ([space, time], [flat, short_in_time, long_in_time]) = plain_loops(&gauge);
    let (plaquettes, rectangles) = (space + time, flat + short_in_time + long_in_time);
    let with_c1 = |beta: f64, c1: f64| beta * ((1.0 - 8.0 * c1) * plaquettes + c1 * rectangles);
    let (xi, u, v) = (3.0f64, 0.83f64, 0.98f64);
    // Morningstar and Peardon 1997, eq. 2, with their β.
    let beta = 2.2;
    let morningstar_peardon = beta
        * (5.0 / 3.0 * space / (xi * u.powi(4)) + 4.0 / 3.0 * xi * time / (u * v).powi(2)
            - flat / (12.0 * xi * u.powi(6))
            - xi * short_in_time / (12.0 * u.powi(4) * v.powi(2)));
    let ours = 5.0 / 3.0 * beta / u.powi(4);
    let cases = [
        ("wilson", GaugeAction::wilson(5.7), 5.7 * plaquettes),
        ("symanzik-tree", GaugeAction::tree_level_symanzik(5.0 / 3.0 * 4.2, 1.0), with_c1(4.2, -1.0 / 12.0)),
        ("iwasaki", GaugeAction::iwasaki(1.95), with_c1(1.95, -0.331)),
        ("dbw2", GaugeAction::dbw2(0.87), with_c1(0.87, -1.4088)),
        ("anisotropic wilson", GaugeAction::anisotropic_wilson(6.1, 3.2), 6.1 * (space / 3.2 + 3.2 * time)),
        (
            "anisotropic symanzik",
            GaugeAction::anisotropic_symanzik(ours, AnisotropicLattice { xi, space: u, time: v }),
            morningstar_peardon,
        ),
    ];
    for (name, action, expected) in cases {
        let got = action.value(&links).unwrap();
        // Some ten thousand loops of order one, added in double.
        assert!((got - expected).abs() < 1e-12 * expected.abs(), "{name}: {got} instead of {expected}");
    }
}

#[test]
fn gauge_forces_are_derivatives() {
    let actions = [
        GaugeAction::wilson(5.7),
        GaugeAction::tree_level_symanzik(6.8, 0.87),
        GaugeAction::one_loop_symanzik(6.5, 0.862),
        GaugeAction { plaquette: 0.0, parallelogram: 1.0, ..GaugeAction::wilson(3.0) },
        GaugeAction::iwasaki(1.95),
        GaugeAction::dbw2(0.87),
        GaugeAction::anisotropic_wilson(6.1, 3.2),
        GaugeAction::anisotropic_symanzik(3.0, AnisotropicLattice { xi: 3.0, space: 0.83, time: 0.98 }),
    ];
    for domain in domains() {
        let gauge = generate::random(domain.local(), 3);
        let (device_links, q) = (GaugeField::upload(&domain, &gauge).unwrap(), direction(&domain));
        for action in actions {
            let value = |links: &EvolvingLinks| action.value(links.own()).unwrap();
            let expected = derivative(&device_links, &q, 2e-3, value);
            let force = |single| GaugeActionForce { action, single };
            // Differences cancel eleven digits of sixteen and leave h⁶; single precision has seven.
            agrees(Double, (&device_links, &q), &force(false), expected, 1e-9);
            agrees(Double, (&device_links, &q), &force(true), expected, 1e-5);
            agrees(Single, (&device_links, &q), &force(true), expected, 1e-5);
        }
    }
}

/// Naive quarks on thin and on stout links, asqtad and HISQ quarks, with other phases and boundary conditions, twisted ones too.
fn operators() -> Vec<(&'static str, QuarkOperator)> {
    let plain = plain_operators();
    // One of each.
    let twisted = |k: usize, name: &'static str| (name, QuarkOperator { theta: THETA, ..plain[k].1 });
    let more = [
        twisted(1, "naive, twisted boundary"),
        twisted(2, "asqtad, twisted boundary"),
        twisted(3, "HISQ, twisted boundary"),
    ];
    plain.iter().copied().chain(more).collect()
}

fn plain_operators() -> Vec<(&'static str, QuarkOperator)> {
    let params = |boundary, phases| StaggeredParams { mass: 0.0, boundary, phases };
    let (milc, plain) = (StaggeredPhases::Milc, StaggeredPhases::Lexicographic);
    vec![
        ("naive", QuarkOperator::new(params(TimeBoundary::Antiperiodic, milc), QuarkSmearing::Thin)),
        ("naive, periodic", QuarkOperator::new(params(TimeBoundary::Periodic, plain), QuarkSmearing::Thin)),
        (
            "asqtad",
            QuarkOperator::new(
                params(TimeBoundary::Antiperiodic, plain),
                QuarkSmearing::Paths(PathCoefficients::asqtad(0.9)),
            ),
        ),
        ("stout", QuarkOperator::new(params(TimeBoundary::Antiperiodic, milc), stout(0.15, 2, false))),
        ("stout in space", QuarkOperator::new(params(TimeBoundary::Periodic, plain), stout(0.12, 1, true))),
        ("HISQ", QuarkOperator::new(params(TimeBoundary::Antiperiodic, milc), QuarkSmearing::Hisq { epsilon: -0.2 })),
    ]
}

fn stout(rho: f64, levels: usize, spatial: bool) -> QuarkSmearing {
    QuarkSmearing::Stout(StoutSmearing { rho, levels, spatial })
}

fn functions(quarks: &[Quarks], count: usize, tolerance: f64) -> RationalFunctions {
    let tolerances = Tolerances { dynamics: tolerance, action: 1e-12 };
    rational_functions(quarks, count, 90.0, tolerances, rational::approximate_to).unwrap()
}

fn two_plus_one() -> Vec<Quarks> {
    vec![quarks(0.2, "2"), quarks(0.4, "1")]
}

#[test]
fn fermion_forces_are_derivatives() {
    // A rough approximation is as good a function as any.
    let functions = functions(&two_plus_one(), 2, 1e-3);
    for domain in domains() {
        let gauge = generate::weak_field(domain.local(), 3, 0.4);
        let (thin, q) = (GaugeField::upload(&domain, &gauge).unwrap(), direction(&domain));
        for (name, operator) in operators() {
            let make = |single| {
                let solvers = [solver(single, if single { 1e-7 } else { 1e-13 }), solver(false, 1e-15)];
                let quarks = Pseudofermions::new(&domain, name.into(), operator, functions.clone(), solvers, 0, 2);
                let mut quarks = quarks.unwrap();
                quarks.draw(&EvolvingLinks::new(&thin, Double).unwrap(), 5, 6).unwrap();
                quarks
            };
            let quarks = make(false);
            let value = |links: &EvolvingLinks| quarks.dynamics_action(links).unwrap();
            // Links of HISQ that are projected change faster than others.
            let h = if matches!(operator.smearing, QuarkSmearing::Hisq { .. }) { 1e-3 } else { 3e-3 };
            let expected = derivative(&thin, &q, h, value);
            // Differences of solutions to 1e-15, and in single precision some roundings of 6e-8.
            agrees(Double, (&thin, &q), &quarks, expected, 1e-8);
            agrees(Double, (&thin, &q), &make(true), expected, 2e-5);
            agrees(Single, (&thin, &q), &make(true), expected, 2e-5);
        }
    }
}

/// Quarks on stout links of no level are those on thin links, to the bit; others are as on links that were smeared before, but for
/// their force.
#[test]
fn stout_links_are_links() {
    let domain = Domain::single(Cpu::new(None), Lattice::new([2, 4, 6, 8]).unwrap()).unwrap();
    let thin = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
    let smeared = StoutSmearing { rho: 0.15, levels: 2, spatial: false }.smeared(&thin).unwrap();
    let functions = functions(&two_plus_one(), 2, 1e-3);
    let mut noises = FullField::zero(&domain, FieldShape::colours(Double, 1)).unwrap();
    noise(&mut noises, 0, 1, 1).unwrap();
    let found = |smearing, links: &GaugeField, precision| {
        let (operator, single) = (QuarkOperator { smearing, ..operators()[0].1 }, precision == Single);
        let solvers = [solver(single, if single { 1e-7 } else { 1e-12 }), solver(false, 1e-12)];
        let quarks = Pseudofermions::new(&domain, "quarks".into(), operator, functions.clone(), solvers, 0, 2);
        let (mut quarks, links) = (quarks.unwrap(), EvolvingLinks::new(links, precision).unwrap());
        quarks.draw(&links, 5, 6).unwrap();
        let mut momenta = MomentumField::zero(&domain, precision).unwrap();
        quarks.kick(&links, 1.0, &mut momenta).unwrap();
        let action = quarks.dynamics_action(&links).unwrap();
        let largest = largest(&links, &operator, 3).unwrap();
        let condensate = condensate(&links, &operator, 0.3, &noises, 1e-10).unwrap()[0].even;
        (momenta.download().unwrap(), [action, largest, condensate.re, condensate.im])
    };
    for precision in [Double, Single] {
        let on_thin = found(QuarkSmearing::Thin, &thin, precision);
        assert_eq!(found(stout(0.15, 0, false), &thin, precision), on_thin, "{precision}");
    }
    let (on_stout, before) =
        (found(stout(0.15, 2, false), &thin, Double), found(QuarkSmearing::Thin, &smeared, Double));
    assert_eq!(on_stout.1, before.1);
    // Smearing takes away the force on rough fluctuations.
    let (force, other) = (product_of_links(&on_stout.0, &on_stout.0), product_of_links(&before.0, &before.0));
    assert!(force < 0.9 * other, "{force} {other}");
}

/// Random links have fat links with singular values next to 0. Forces of HISQ stay finite there, and such links are counted.
#[test]
fn small_singular_values_are_counted() {
    let domain = Domain::single(Cpu::new(None), Lattice::new([2, 4, 6, 8]).unwrap()).unwrap();
    let gauge = generate::random(domain.local(), 3);
    let thin = GaugeField::upload(&domain, &gauge).unwrap();
    let fat = fat_links(&gauge, &LinkCoefficients::fat7());
    let expected = fat
        .links()
        .iter()
        .filter(|v| DMatrix::from_fn(3, 3, |a, b| v[a][b]).singular_values().min().powi(2) < 5e-5)
        .count();
    let functions = functions(&[quarks(2.0, "2")], 1, 1e-3);
    let operator = QuarkOperator { smearing: QuarkSmearing::Hisq { epsilon: 0.0 }, ..operators()[0].1 };
    for precision in [Double, Single] {
        let solvers = [solver(precision == Single, 1e-6), solver(false, 1e-10)];
        let quarks = Pseudofermions::new(&domain, "HISQ".into(), operator, functions.clone(), solvers, 0, 1);
        let mut quarks = quarks.unwrap();
        let links = EvolvingLinks::new(&thin, precision).unwrap();
        quarks.draw(&links, 5, 6).unwrap();
        let mut momenta = MomentumField::zero(&domain, precision).unwrap();
        quarks.kick(&links, 1.0, &mut momenta).unwrap();
        quarks.kick(&links, 1.0, &mut momenta).unwrap();
        let largest = momenta.download().unwrap();
        let largest = largest.numbers().iter().map(|z| z.norm()).fold(0.0, f64::max);
        println!("{expected} links of {}, the largest force {largest:.1e}", fat.links().len());
        // One over the root of the cutoff is 141.
        assert!(largest.is_finite() && largest < 1e4, "{largest}");
        assert_eq!((quarks.take_guarded(), quarks.take_guarded()), (Some(2 * expected), Some(0)));
    }
    assert!(expected > 0);
}

/// Solvers advance the pseudofermions of a group together; each one is as it would be alone.
#[test]
fn pseudofermions_of_a_group_do_not_mix() {
    let domain = domain([2, 4, 6, 8]);
    let gauge = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
    let links = EvolvingLinks::new(&gauge, Double).unwrap();
    let functions = functions(&two_plus_one(), 3, 1e-3);
    for (name, operator) in operators() {
        let made = |first: u32, count: usize| {
            let solvers = [solver(false, 1e-14), solver(false, 1e-14)];
            let quarks = Pseudofermions::new(&domain, name.into(), operator, functions.clone(), solvers, first, count);
            let mut quarks = quarks.unwrap();
            let noise = quarks.draw(&links, 5, 6).unwrap();
            let mut momenta = MomentumField::zero(&domain, Double).unwrap();
            let (action, iterations) = (quarks.action(&links).unwrap(), quarks.take_iterations());
            quarks.kick(&links, 1.0, &mut momenta).unwrap();
            (noise, action, iterations, momenta.download().unwrap())
        };
        let (noise, action, iterations, force) = made(0, 3);
        let alone: Vec<_> = (0..3).map(|which| made(which, 1)).collect();
        let close = |together: f64, sum: f64| assert!((together - sum).abs() < 1e-12 * sum.abs(), "{together} {sum}");
        close(noise, alone.iter().map(|one| one.0).sum());
        close(action, alone.iter().map(|one| one.1).sum());
        assert_eq!(iterations, alone.iter().map(|one| one.2).sum::<usize>());
        for (index, matrix) in force.links().iter().enumerate() {
            for (k, together) in matrix.as_flattened().iter().enumerate() {
                let sum: Complex64 = alone.iter().map(|one| one.3.links()[index].as_flattened()[k]).sum();
                assert!((together - sum).norm() < 1e-11, "{name}: {together} {sum}");
            }
        }
    }
}

/// Each rank pushes the momenta of its own links, and has forces of neighbours' links around.
#[test]
fn forces_do_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 8, 4, 12]).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.4);
    let functions = functions(&two_plus_one(), 1, 1e-3);
    let forces = |domain: &Domain, gauge: &HostGauge| -> Vec<HostGauge> {
        let device_links = GaugeField::upload(domain, gauge).unwrap();
        let links = EvolvingLinks::new(&device_links, Double).unwrap();
        let kick = |force: &dyn Force| {
            let mut momenta = MomentumField::zero(domain, Double).unwrap();
            momenta.draw(1, 2).unwrap();
            force.kick(&links, 0.1, &mut momenta).unwrap();
            momenta.download().unwrap()
        };
        let mut all =
            vec![kick(&GaugeActionForce { action: GaugeAction::one_loop_symanzik(6.5, 0.862), single: false })];
        for (name, operator) in operators() {
            let solvers = [solver(false, 1e-14), solver(false, 1e-14)];
            let quarks = Pseudofermions::new(domain, name.into(), operator, functions.clone(), solvers, 0, 1);
            let mut quarks = quarks.unwrap();
            quarks.draw(&links, 5, 6).unwrap();
            all.push(kick(&quarks));
        }
        all
    };
    let whole = forces(&single(lattice), &gauge);
    for grid in [[1, 1, 1, 3], [1, 2, 1, 1], [1, 2, 1, 3]] {
        on_grid(grid, lattice, |domain| {
            let part = domain.section();
            let found = forces(domain, &cut::links_of(&part, &gauge));
            for (number, (part_force, whole)) in found.iter().zip(&whole).enumerate() {
                let off = farthest_links(part_force, &cut::links_of(&part, whole));
                // Solutions to 1e-14; sums of dot products in another order.
                assert!(off < 1e-12, "force {number} on {grid:?} at {:?}: {off:e}", part.origin);
            }
        });
    }
}

mod milc {
    //! Against MILC, whose trajectories and forces are in the reference data.
    use super::*;
    use crate::chains::{level, plan};
    use crate::program::{self, answers, number};
    use ferrite::files::{ReadOptions, read_fermion, read_gauge};
    use ferrite::gauge::loops::{closed_loops, mean_traces};
    use ferrite::hmc::hop_force;
    use ferrite::hmc::integrator::Scheme;
    use ferrite::hmc::trajectory::{Chain, Noise, Plan};
    use ferrite::observables::polyakov::polyakov_loop;
    use ferrite_tests::refdata;
    use rational::{PartialFractions, Pole};
    use serde_json::Value;
    use std::fs;
    use std::path::Path;

    fn read(folder: &Path, name: &str) -> HostGauge {
        let options = ReadOptions { reunitarise: true, ..Default::default() };
        read_gauge(&folder.join(name), &options).unwrap().gauge
    }
    fn asqtad(u0: f64) -> QuarkOperator {
        let params = StaggeredParams::new(0.0, TimeBoundary::Antiperiodic);
        QuarkOperator::new(params, QuarkSmearing::Paths(PathCoefficients::asqtad(u0)))
    }
    fn complex(folder: &Path, name: &str) -> Vec<Complex64> {
        let bytes = fs::read(folder.join("fields/rhmc_noise").join(name)).unwrap();
        let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
        bytes.chunks_exact(16).map(|z| Complex64::new(number(&z[..8]), number(&z[8..]))).collect()
    }
    fn colour(lattice: Lattice, numbers: &[Complex64]) -> HostColour {
        let sites = numbers.chunks_exact(3).map(|v| [v[0], v[1], v[2]]).collect();
        HostColour::from_sites(lattice, sites)
    }
    fn matrices(lattice: Lattice, numbers: &[Complex64]) -> HostGauge {
        let one = |m: &[Complex64]| [[m[0], m[1], m[2]], [m[3], m[4], m[5]], [m[6], m[7], m[8]]];
        HostGauge::from_links(lattice, numbers.chunks_exact(9).map(one).collect())
    }
    /// The rational functions of a pseudofermion.
    fn functions(rational: &Value) -> RationalFunctions {
        let function = |name: &str| {
            let (res, pole) = (&rational[name]["res"], &rational[name]["pole"]);
            let at = |list: &Value, k: usize| number(&list[k]);
            let poles = (1..res.as_array().unwrap().len()).map(|k| Pole { residue: at(res, k), shift: at(pole, k) });
            PartialFractions { constant: at(res, 0), poles: poles.collect() }
        };
        RationalFunctions { dynamics: function("MD"), heat_bath: function("GR"), action: function("FA") }
    }

    /// The force of single vectors, which MILC stored in single precision.
    #[test]
    fn asqtad_force() {
        let Some(folder) = refdata::folder() else { return };
        // What MILC stored was made of the links as they are in the file.
        let path = |name: &str| folder.join("fields").join(name);
        let options = ReadOptions { allow_non_unitary: true, ..Default::default() };
        let gauge = read_gauge(&folder.join("configs/lat.sample.l8.scidac"), &Default::default()).unwrap().gauge;
        let source: HostColour = read_fermion(&path("ksvector.src.sample.l8"), &Default::default()).unwrap().field;
        let stored = read_gauge(&path("colormatrix.mom.sample.l8"), &options).unwrap().gauge;
        let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
        let links = EvolvingLinks::new(&GaugeField::upload(&domain, &gauge).unwrap(), Double).unwrap();
        let mut field = FullField::zero(&domain, FieldShape::colours(Double, 1)).unwrap();
        field.upload(&[source]).unwrap();
        let mut momenta = MomentumField::zero(&domain, Double).unwrap();
        hop_force(&asqtad(0.502), (&field.even, &field.odd), &[1.0], &links, 2.0, &mut momenta).unwrap();
        let got = momenta.download().unwrap();
        let off: f64 = got.numbers().iter().zip(stored.numbers()).map(|(a, b)| (a - b).norm_sqr()).sum();
        let off = (off / product_of_links(&stored, &stored)).sqrt();
        println!("relative difference to MILC's force: {off:.2e}");
        assert!(off < 1e-7, "{off:e}");
    }

    /// Two trajectories, from MILC's links, momenta and noise. The numbers are those of the same run with solutions to
    /// 1e-13 ("independent" in the reference data), and MILC's own, whose solver stopped at 2e-7.
    #[test]
    fn trajectories() {
        let Some(folder) = refdata::folder() else { return };
        let answers = answers(&folder, "milc_rhmc_asqtad_omelyan.json");
        let gauge = read(&folder, "configs/lat.sample.l6666b650m010m050");
        let lattice = gauge.lattice();
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        let solvers = [solver(false, 1e-13), solver(false, 1e-13)];
        let (operator, rational) = (asqtad(0.862), functions(&answers["rationals"][0]));
        let quarks = Pseudofermions::new(&domain, "2+1".into(), operator, rational, solvers, 0, 1).unwrap();
        // Two of MILC's steps, with λ = 0.8, are one of ours.
        let levels = vec![level(true, 1, Scheme::OmelyanLinksFirst { lambda: 0.2 }, 6)];
        let plan = Plan { seed: 1, ..plan(GaugeAction::one_loop_symanzik(6.5, 0.862), 0.12, levels, false) };
        let thin = GaugeField::upload(&domain, &gauge).unwrap();
        let mut chain = Chain::new(plan, &thin, Double, vec![Box::new(quarks)]).unwrap();
        for trajectory in 1..=2 {
            let (milc, exact) =
                (&answers["milc"][trajectory - 1], &answers["independent_numpy_rerun"]["traj"][trajectory - 1]);
            let file = |what: &str| complex(&folder, &format!("omelyan_traj{trajectory}_{what}.c128"));
            let momenta = matrices(lattice, &file("momentum"));
            let noise = [colour(lattice, &file("xi0"))];
            let noise = Noise { momenta: &momenta, pseudofermions: &noise };
            let outcome = chain.trajectory(trajectory as u32, Some(noise), false).unwrap();
            assert!(outcome.accepted);
            for (k, energies) in [outcome.start, outcome.end].into_iter().enumerate() {
                let expected = &exact["actions_g_h_f"][k];
                for (name, got, expected) in [
                    ("gauge", energies.gauge, number(&expected[0])),
                    ("kinetic", energies.kinetic, number(&expected[1])),
                    ("fermion", energies.fermions, number(&expected[2])),
                ] {
                    println!("{trajectory} {k} {name}: {got} {:.1e}", got - expected);
                    // Of 1e4, with rounding errors of 1e-12 that molecular dynamics spreads.
                    assert!((got - expected).abs() < 2e-7, "{name}: {got} instead of {expected}");
                }
            }
            let (delta, milcs) = (number(&exact["deltaS"]), number(&milc["deltaS"]));
            println!("{trajectory} ΔS {} MILC {milcs}, exact {delta}", outcome.delta);
            assert!((outcome.delta - delta).abs() < 1e-7 && (outcome.delta - milcs).abs() < 1e-5);

            let links = chain.links();
            let thin = links.thin(Double).unwrap();
            let (plaquette, _) = thin.plaquette().unwrap();
            let stored = [number(&milc["PLAQ_ss_st_times3"][0]), number(&milc["PLAQ_ss_st_times3"][1])];
            assert!((3.0 * plaquette.spatial - stored[0]).abs() < 1e-9, "{} {}", 3.0 * plaquette.spatial, stored[0]);
            assert!((3.0 * plaquette.temporal - stored[1]).abs() < 1e-9);
            let line = 3.0 * polyakov_loop(&thin).unwrap();
            let stored = program::complex(&milc["P_LOOP_times3"]);
            assert!((line - stored).norm() < 2e-7, "{line} {stored}");
            loops(&thin, &milc["G_LOOP"]);
            for (k, mass) in [0.01, 0.05].into_iter().enumerate() {
                let noise = colour(lattice, &file(&format!("pbp_m{mass}")));
                let mut field = FullField::zero(&domain, FieldShape::colours(Double, 1)).unwrap();
                field.upload(&[noise]).unwrap();
                let found = condensate(links, &operator, mass, &field, 1e-13).unwrap();
                let (found, residual) = ([found[0].even, found[0].odd], found[0].residual);
                // Of a recurrence to 1e-13; in double precision it ends about there.
                assert!(residual < 1e-12, "m = {mass}: {residual}");
                for (parity, found) in ["even", "odd"].into_iter().zip(found) {
                    for (part, found) in [("re", found.re), ("im", found.im)] {
                        let at = |list: &Value| number(&list[format!("{parity}_{part}")]);
                        // MILC's operator is 2 M; its solver stopped at 1e-6.
                        let (stored, expected) = (at(&milc["PBP"][k]), at(&exact["pbp"][k]));
                        assert!((0.5 * found - expected).abs() < 1e-10, "{parity} {part}: {found} {expected}");
                        assert!((0.5 * found - stored).abs() < 2e-6, "{parity} {part}: {found} {stored}");
                    }
                }
            }
        }
    }

    /// HISQ quarks, four pseudofermions of which three divide out the heavy quarks of the first, with MILC's residuals and where MILC's
    /// solver stops: when the smallest pole has its residual.
    #[test]
    fn hisq_trajectory() {
        let Some(folder) = refdata::folder() else { return };
        let answers = answers(&folder, "milc_rhmc_hisq.json");
        let gauge = read(&folder, "added/lat.sample.l6666.hisq");
        let lattice = gauge.lattice();
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        let params = StaggeredParams::new(0.0, TimeBoundary::Antiperiodic);
        let operator = QuarkOperator::new(params, QuarkSmearing::Hisq { epsilon: 0.0 });
        let quarks = answers["rationals"].as_array().unwrap().iter().enumerate().map(|(k, rational)| {
            let stop = |tol: &Value| ShiftedSolver { together: true, ..solver(false, number(tol)) };
            let residuals = &rational["resid_MD_FA_GR"];
            assert_eq!(residuals[1], residuals[2]);
            let solvers = [stop(&residuals[0]), stop(&residuals[1])];
            let name = format!("pseudofermion {k}");
            let quarks = Pseudofermions::new(&domain, name, operator, functions(rational), solvers, k as u32, 1);
            Box::new(quarks.unwrap()) as Box<dyn Monomial>
        });
        let levels = vec![level(true, 4, Scheme::ThreeGaugeOneFermion { lambda: 0.2 }, 5)];
        let plan = plan(GaugeAction::one_loop_symanzik_with_hisq(7.4, 0.89, 3.0), 0.2, levels, false);
        let plan = Plan { seed: 1, ..plan };
        let thin = GaugeField::upload(&domain, &gauge).unwrap();
        let mut chain = Chain::new(plan, &thin, Double, quarks.collect()).unwrap();
        let file = |what: &str| complex(&folder, &format!("hisq_traj1_{what}.c128"));
        let momenta = matrices(lattice, &file("momentum"));
        let noise: Vec<HostColour> = (0..4).map(|k| colour(lattice, &file(&format!("xi{k}")))).collect();
        let noise = Noise { momenta: &momenta, pseudofermions: &noise };
        let outcome = chain.trajectory(1, Some(noise), false).unwrap();
        let (milc, same) = (&answers["milc"][0], &answers["independent_numpy_rerun_with_milc_residuals"]);
        for (k, energies) in [outcome.start, outcome.end].into_iter().enumerate() {
            for (j, got) in [energies.gauge, energies.kinetic, energies.fermions].into_iter().enumerate() {
                let (stored, expected) =
                    (number(&milc["ACTION_g_h_f_total"][k][j]), number(&same["actions_g_h_f"][k][j]));
                println!("{k} {j}: {got}, {:.1e} from MILC's, {:.1e} from the same", got - stored, got - expected);
                // Of 1e4.
                assert!((got - stored).abs() < 1e-8 && (got - expected).abs() < 1e-8, "{got} {stored} {expected}");
            }
        }
        let (milcs, expected) = (number(&milc["deltaS"]), number(&same["deltaS"]));
        println!("ΔS {:e}, MILC's {milcs:e}, the same {expected:e}", outcome.delta);
        assert!((outcome.delta - milcs).abs() < 1e-8 && (outcome.delta - expected).abs() < 1e-8, "{}", outcome.delta);
        let links = chain.links();
        let thin = links.thin(Double).unwrap();
        let (plaquette, _) = thin.plaquette().unwrap();
        for (k, got) in [plaquette.spatial, plaquette.temporal].into_iter().enumerate() {
            let stored = number(&milc["PLAQ_ss_st_times3"][k]);
            assert!((3.0 * got - stored).abs() < 1e-12, "{} {stored}", 3.0 * got);
        }
        let line = 3.0 * polyakov_loop(&thin).unwrap();
        let stored = program::complex(&milc["P_LOOP_times3"]);
        assert!((line - stored).norm() < 5e-7, "{line} {stored}");
        loops(&thin, &milc["G_LOOP"]);
        for (k, mass) in [0.0018, 0.018].into_iter().enumerate() {
            let noise = colour(lattice, &file(&format!("pbp_m{mass}")));
            let mut field = FullField::zero(&domain, FieldShape::colours(Double, 1)).unwrap();
            field.upload(&[noise]).unwrap();
            let found = condensate(links, &operator, mass, &field, 1e-13).unwrap();
            for (parity, found) in ["even", "odd"].into_iter().zip([found[0].even, found[0].odd]) {
                for (part, found) in [("re", found.re), ("im", found.im)] {
                    // MILC's operator is 2 M; its solver is in single precision.
                    let stored = number(&milc["PBP"][k][format!("{parity}_{part}")]);
                    assert!((0.5 * found - stored).abs() < 5e-7, "{parity} {part}: {found} {stored}");
                }
            }
        }
        assert!(chain.quarks().all(|quarks| quarks.take_guarded() == Some(0)));
    }

    /// All 34 closed loops, by their steps: MILC numbers directions 0 to 3, and backward ones from 7 down.
    fn loops(links: &GaugeField, stored: &Value) {
        let paths = closed_loops();
        let traces = mean_traces(links, &paths).unwrap();
        let stored = stored.as_array().unwrap();
        assert_eq!(stored.len(), 34);
        let all_ways = |steps: &[(usize, bool)]| -> Vec<Vec<(usize, bool)>> {
            let backwards: Vec<_> = steps.iter().rev().map(|(mu, way)| (*mu, !way)).collect();
            let turned = |steps: &[(usize, bool)], k: usize| [&steps[k..], &steps[..k]].concat();
            (0..steps.len()).flat_map(|k| [turned(steps, k), turned(&backwards, k)]).collect()
        };
        for entry in stored {
            let step = |code: &Value| match code.as_u64().unwrap() as usize {
                mu @ 0..=3 => (mu, true),
                back => (7 - back, false),
            };
            let steps: Vec<_> = entry[2].as_array().unwrap().iter().map(step).collect();
            let ways = all_ways(&steps);
            let mut found = paths.iter().zip(&traces).filter(|(path, _)| ways.contains(&path.steps));
            let (_, trace) = found.next().unwrap_or_else(|| panic!("{steps:?} is not among the loops"));
            assert!(found.next().is_none(), "{steps:?} twice");
            assert!((trace - number(&entry[1])).abs() < 1e-8, "{steps:?}: {trace} {}", entry[1]);
        }
    }
}
