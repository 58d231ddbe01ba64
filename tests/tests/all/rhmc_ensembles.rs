//! Whether ensembles of hybrid Monte Carlo are those of other algorithms, and ⟨exp(−ΔH)⟩ = 1. Seeds are fixed, so that nothing
//! here is a game of chance; errors are those of the statistics, with their autocorrelations, and have upper bounds, so that
//! they cannot hide a difference.
use crate::chains::{level, naive, plan, quarks, solver};
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::{DeviceField, FieldShape, FieldSpace, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::gauge::quenched::{Generator, Start};
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::{Pseudofermions, RationalFunctions};
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::functions::{Quarks, Tolerances, rational_functions};
use ferrite::hmc::integrator::{Dynamics, IntegratorLevel, MINIMUM_NORM, Scheme, Unitarise};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::trajectory::{Chain, Plan};
use ferrite::lattice::Lattice;
use ferrite::observables::condensate::{condensate, noise};
use ferrite::operators::{EvenOdd, EvenOddStaggered, Staggered, StaggeredLinks, StaggeredParams};
use ferrite::statistics::average;
use ferrite::{LinkStorage, Precision};
use gpu_kernels::random::{Philox, purpose};
use num_complex::Complex64;
use rational::{PartialFractions, Pole};

fn domain(size: [usize; 4]) -> Domain {
    // Lattices are too small to be shared among threads; tests are.
    Domain::single(Cpu::new(Some(1)), Lattice::new(size).unwrap()).unwrap()
}

/// Quarks that share pseudofermions, for a spectrum that ends below 80.
fn group(domain: &Domain, list: &[Quarks], count: usize, first: u32) -> Pseudofermions {
    // Molecular dynamics need not be exact: the Metropolis step corrects it.
    let tolerances = Tolerances { dynamics: 1e-5, action: 1e-10 };
    let functions = rational_functions(list, count, 80.0, tolerances, rational::approximate_to).unwrap();
    let solvers = [solver(false, 1e-6), solver(false, 1e-11)];
    Pseudofermions::new(domain, "quarks".into(), naive(), functions, solvers, first, count).unwrap()
}

/// A chain in double precision.
fn chain(plan: Plan, links: &GaugeField, quarks: Vec<Pseudofermions>) -> Chain {
    let quarks = quarks.into_iter().map(|quarks| Box::new(quarks) as Box<dyn Monomial>).collect();
    Chain::new(plan, links, Precision::Double, quarks).unwrap()
}
/// Colour vectors in double precision.
const VECTORS: FieldShape = FieldShape::colours(Precision::Double, 1);

/// Means agree if they differ by no more than four errors, none of which is above `most`.
fn agree(name: &str, [a, b]: [&[f64]; 2], most: f64) {
    let (a, b) = (average(a), average(b));
    println!("{name}: {:.5} ± {:.5} and {:.5} ± {:.5}", a.mean, a.error, b.mean, b.error);
    for error in [a.error, b.error] {
        assert!(error > 0.0 && error < most, "{name}: an error of {error:.5}");
    }
    let error = a.error.hypot(b.error);
    assert!((a.mean - b.mean).abs() < 4.0 * error, "{name}: {:.5} and {:.5} ± {error:.5}", a.mean, b.mean);
}

/// ⟨exp(−ΔH)⟩ = 1, because phase space keeps its volume and the way back is the same.
fn weights_are_one(deltas: &[f64], most: f64) {
    let weight = average(&deltas.iter().map(|delta| (-delta).exp()).collect::<Vec<_>>());
    println!("⟨exp(−ΔH)⟩ = {:.4} ± {:.4}", weight.mean, weight.error);
    assert!(weight.error > 0.0 && weight.error < most, "an error of {:.4}", weight.error);
    assert!((weight.mean - 1.0).abs() < 4.0 * weight.error, "{:.4} ± {:.4}", weight.mean, weight.error);
}

/// The heat bath's plaquettes on 4⁴, after 50 sweeps, and its last links.
fn heat_bath(domain: &Domain, beta: f64) -> (Vec<f64>, GaugeField) {
    let mut generator = Generator::new(domain, Start::Cold, beta, 4).unwrap();
    let mut plaquettes = Vec::new();
    for sweep in 0..400 {
        generator.sweep(1, 2).unwrap();
        if sweep >= 50 {
            plaquettes.push(generator.plaquette().unwrap().mean);
        }
    }
    let links = GaugeField::upload(domain, &generator.gauge().unwrap()).unwrap();
    (plaquettes, links)
}

#[test]
fn pure_gauge_ensembles_are_those_of_the_heat_bath() {
    let (domain, beta) = (domain([4; 4]), 5.2);
    let (heat_bath, links) = heat_bath(&domain, beta);
    let levels = vec![level(true, 0, Scheme::Omelyan { lambda: MINIMUM_NORM }, 8)];
    let mut chain = chain(plan(GaugeAction::wilson(beta), 1.0, levels, false), &links, Vec::new());
    let (mut plaquettes, mut deltas, mut accepted) = (Vec::new(), Vec::new(), 0);
    for number in 1..=400 {
        let outcome = chain.trajectory(number, None, false).unwrap();
        accepted += usize::from(outcome.accepted);
        deltas.push(outcome.delta);
        plaquettes.push(chain.links().own().plaquette().unwrap().0.mean);
    }
    println!("{accepted} of 400 accepted");
    agree("plaquette", [&plaquettes[20..], &heat_bath], 0.003);
    weights_are_one(&deltas, 0.05);
    assert!(accepted > 300 && accepted < 400, "{accepted}");
}

/// Quarks too heavy to be noticed: hops around a plaquette weigh N_f (2m)⁻⁴ of its β, here 1e-5, a hundredth of the errors.
#[test]
fn heavy_quarks_leave_the_ensemble_of_the_heat_bath() {
    let (domain, beta) = (domain([4; 4]), 5.2);
    let (heat_bath, links) = heat_bath(&domain, beta);
    let heavy = group(&domain, &[quarks(10.0, "2")], 1, 0);
    let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
    let levels = vec![level(true, 1, scheme, 8)];
    let mut chain = chain(plan(GaugeAction::wilson(beta), 1.0, levels, false), &links, vec![heavy]);
    let (mut plaquettes, mut accepted, mut fermions) = (Vec::new(), 0, 0.0);
    for number in 1..=300 {
        let outcome = chain.trajectory(number, None, false).unwrap();
        accepted += usize::from(outcome.accepted);
        fermions += outcome.start.fermions;
        plaquettes.push(chain.links().own().plaquette().unwrap().0.mean);
    }
    println!("{accepted} of 300 accepted");
    agree("plaquette", [&plaquettes[20..], &heat_bath], 0.003);
    assert!(accepted > 220 && accepted < 300, "{accepted}");
    // The quarks are there: three complex numbers on each of 128 even sites, of one each, to √384/√300.
    assert!((fermions / 300.0 - 384.0).abs() < 5.0, "{fermions}");
}

/// 2 + 1 flavours in two groups, the lighter ones on two pseudofermions: all functions are roots.
#[test]
fn weights_with_quarks_are_one() {
    let domain = domain([2, 4, 4, 4]);
    let links = GaugeField::upload(&domain, &generate::random(domain.local(), 2)).unwrap();
    let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
    let levels = vec![level(false, 2, scheme, 3), level(true, 0, scheme, 2)];
    let groups = vec![group(&domain, &[quarks(0.25, "2")], 2, 0), group(&domain, &[quarks(0.5, "1")], 1, 2)];
    let plan = Plan { metropolis_from: 15, ..plan(GaugeAction::wilson(5.2), 1.1, levels, false) };
    let mut chain = chain(plan, &links, groups);
    let (mut deltas, mut accepted) = (Vec::new(), 0);
    for number in 1..=280 {
        let outcome = chain.trajectory(number, None, false).unwrap();
        if number > 30 {
            deltas.push(outcome.delta);
            accepted += usize::from(outcome.accepted);
        }
    }
    let delta = average(&deltas);
    println!("{accepted} of 250 accepted, ΔH = {:.3} ± {:.3}", delta.mean, delta.error);
    assert!(accepted > 150 && accepted < 245, "{accepted}");
    weights_are_one(&deltas, 0.05);
}

/// Four flavours need no root: the algorithm with φ = M† ξ is exact. Our own loop of it against rational functions.
#[test]
fn four_flavours_agree_with_the_exact_algorithm() {
    let (domain, mass, beta) = (domain([4; 4]), 0.3, 5.0);
    let action = GaugeAction::wilson(beta);
    let device_links = GaugeField::upload(&domain, &generate::random(domain.local(), 2)).unwrap();
    let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
    let (length, steps, count) = (0.7, 4, 220);

    let observe = |links: &EvolvingLinks, number: u32, seed: u64| {
        let mut xi = FullField::zero(&domain, VECTORS.with_nrhs(2)).unwrap();
        noise(&mut xi, 100, seed, number).unwrap();
        let found = condensate(links, &naive(), mass, &xi, 1e-7).unwrap();
        let condensate = found.iter().map(|one| 0.5 * (one.even + one.odd).re).sum::<f64>() / found.len() as f64;
        [links.own().plaquette().unwrap().0.mean, condensate]
    };
    // On each of the two, x^(−1/2) in molecular dynamics.
    let pseudofermions = group(&domain, &[quarks(mass, "4")], 2, 0);
    let mut plan = plan(action, length, vec![level(true, 1, scheme, steps)], false);
    plan.metropolis_from = 15;
    let mut chain = chain(plan, &device_links, vec![pseudofermions]);
    let mut accepted = 0;
    let rational: Vec<[f64; 2]> = (1..=count)
        .map(|number| {
            accepted += u32::from(chain.trajectory(number, None, false).unwrap().accepted);
            observe(chain.links(), number, 31)
        })
        .collect();
    println!("{accepted} of {count} accepted");

    let exact = PartialFractions { constant: 0.0, poles: vec![Pole { residue: 1.0, shift: 4.0 * mass * mass }] };
    let functions = RationalFunctions { dynamics: exact.clone(), heat_bath: exact.clone(), action: exact };
    let solvers = [solver(false, 1e-8), solver(false, 1e-11)];
    let mut quarks = Pseudofermions::new(&domain, "4".into(), naive(), functions, solvers, 0, 1).unwrap();
    let gauge_force = GaugeActionForce { action, single: false };
    let mut links = EvolvingLinks::new(&device_links, Precision::Double).unwrap();
    let mut momenta = MomentumField::zero(&domain, Precision::Double).unwrap();
    let mut exact = Vec::new();
    for number in 1..=count {
        // Random numbers of another seed.
        let seed = 77;
        momenta.draw(seed, number).unwrap();
        let mut xi = FullField::zero(&domain, VECTORS).unwrap();
        noise(&mut xi, 0, seed, number).unwrap();
        // φ = 2 M† ξ on even sites has the covariance 4 M†M = A + 4 m².
        let gauge = StaggeredLinks::naive(links.own().pack(Precision::Double, LinkStorage::FULL).unwrap().into());
        let params = StaggeredParams { mass, ..naive().params };
        let m = EvenOddStaggered::new(Staggered::new(gauge.into(), params), 1).unwrap();
        let mut phi = DeviceField::zero(&domain, VECTORS).unwrap();
        m.apply_parity(0, true, &xi, &mut phi).unwrap();
        let scaled = solvers::VectorSpace::axpby(
            &FieldSpace::new(&domain, VECTORS),
            &[Complex64::ZERO],
            &xi.even,
            &[Complex64::new(2.0, 0.0)],
            &mut phi,
        );
        scaled.unwrap();
        quarks.set_field(phi);
        let forces: Vec<&dyn Force> = vec![&gauge_force, &quarks];
        let levels = [IntegratorLevel { forces, scheme, steps }];
        let energy = |links: &EvolvingLinks, momenta: &MomentumField| {
            let (gauge, kinetic) = (action.value(links.own()).unwrap(), momenta.kinetic_energy().unwrap());
            gauge + kinetic + quarks.dynamics_action(links).unwrap()
        };
        let (start, before) = (energy(&links, &momenta), links.own().download().unwrap());
        let dynamics = Dynamics { levels: &levels, unitarise: Unitarise::Always };
        dynamics.run(&mut links, &mut momenta, length).unwrap();
        let delta = energy(&links, &momenta) - start;
        let drawn = Philox::new(seed, purpose::METROPOLIS, number).uniform();
        if number >= 15 && drawn >= (-delta).exp() {
            links = EvolvingLinks::new(&GaugeField::upload(&domain, &before).unwrap(), Precision::Double).unwrap();
        }
        exact.push(observe(&links, number, seed));
    }
    for (k, name, most) in [(0, "plaquette", 0.004), (1, "condensate", 0.012)] {
        let [a, b] = [&rational, &exact].map(|all| all[40..].iter().map(|both| both[k]).collect::<Vec<_>>());
        agree(name, [&a, &b], most);
    }
}
