//! Identities of loops and forces against plain loops and dense matrices, on several processes, and beside trajectories.
use crate::chains::{level, naive, plan, solver};
use ferrite::Precision;
use ferrite::Precision::{Double, Single};
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, HostColour, HostGauge, HostSpinor, Matrix, Spinor};
use ferrite::field::{FieldShape, FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::gauge::loops::{LoopKind, LoopPath, closed_loops};
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::{Pseudofermions, RationalFunctions};
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::identities::{Identities, LoopIdentity};
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme};
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::trajectory::{Chain, TrajectoryOutcome};
use ferrite::hmc::wilson::WilsonQuarks;
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::two_flavours::TwoFlavours;
use ferrite::lattice::Lattice;
use ferrite::operators::{CloverParams, Schur, TimeBoundary, WilsonLike, WilsonParams};
use ferrite::solve::Method;
use ferrite_tests::checks::complement_request;
use ferrite_tests::clover_reference::path;
use ferrite_tests::cut;
use ferrite_tests::reference::combine;
use ferrite_tests::staggered_reference::{Boundary, EtaPhases, StaggeredDirac};
use ferrite_tests::testkit::dense::{DenseMatrix, chosen, dense, divide, even_numbers};
use ferrite_tests::testkit::matrix::{add, anti_hermitian, exponential, multiply, scale, trace};
use ferrite_tests::testkit::{domain, evolving, on_grid, single};
use ferrite_tests::wilson_like_reference::WilsonLikeDirac;
use nalgebra::DVector;
use num_complex::Complex64;
use rational::{PartialFractions, Pole};

/// Σ Re tr L over loops, and its gradient D, dF = Σ Re tr D† X for links exp(X) U, from the loops that begin with each of their steps.
fn loops_and_gradient(gauge: &HostGauge, loops: &[LoopPath]) -> (f64, Vec<Matrix>) {
    let lattice = gauge.lattice();
    let (mut sum, mut gradient) = (0.0, vec![Matrix::default(); gauge.links().len()]);
    for start in 0..lattice.volume() {
        for LoopPath { steps, .. } in loops {
            sum += trace(&path(gauge, start, steps)).re;
            let mut site = start;
            for k in 0..steps.len() {
                let (mu, forward) = steps[k];
                let next = lattice.neighbour(site, mu, forward);
                // A backward step is the adjoint of the link at its end, with the loop that ends with it.
                let (at, first) = if forward { (site, k) } else { (next, k + 1) };
                let turned: Vec<_> = (0..steps.len()).map(|j| steps[(first + j) % steps.len()]).collect();
                let part = anti_hermitian(&path(gauge, at, &turned));
                let sign = if forward { -1.0 } else { 1.0 };
                let to = &mut gradient[4 * at + mu];
                *to = add(to, sign.into(), &part);
                site = next;
            }
        }
    }
    (sum, gradient)
}

/// The identity from differences of an action along the gradient of the loops, of the sixth order.
fn plain(gauge: &HostGauge, kind: LoopKind, action: &dyn Fn(&HostGauge) -> f64) -> LoopIdentity {
    let loops: Vec<LoopPath> = closed_loops().into_iter().filter(|path| path.kind == kind).collect();
    let (sum, gradient) = loops_and_gradient(gauge, &loops);
    let at = |h: f64| {
        let mut moved = gauge.clone();
        moved
            .links_mut()
            .iter_mut()
            .zip(&gradient)
            .for_each(|(u, d)| *u = multiply(&exponential(&scale(h.into(), d)), u));
        action(&moved)
    };
    let h = 1e-3;
    let both = |n: f64| at(n * h) - at(-n * h);
    let derivative = (45.0 * both(1.0) - 9.0 * both(2.0) + both(3.0)) / (60.0 * h);
    let sites = gauge.lattice().volume() as f64;
    let count = sites * loops.len() as f64;
    let links = loops[0].steps.len() as f64;
    LoopIdentity { loops: sum / (3.0 * count), forces: -derivative / (8.0 / 3.0 * links * 3.0 * count) }
}

fn agree(name: &str, found: LoopIdentity, expected: LoopIdentity, tolerance: f64) {
    println!("{name}: {found:?} {expected:?}");
    assert!((found.loops - expected.loops).abs() < 1e-13, "{name}: {found:?} {expected:?}");
    let off = (found.forces - expected.forces).abs() / expected.forces.abs();
    assert!(off < tolerance, "{name}: {found:?} {expected:?}, {off:e}");
}

/// Differences are exact to h⁶ and a rounding of the action over h: 1e-11 of their value and less.
const DIFFERENCES: f64 = 1e-10;

/// All gauge actions have the force that their value has, along the gradients of plaquettes and of rectangles.
#[test]
fn gauge_actions_have_the_identities_of_their_values() {
    let domain = domain([4, 4, 4, 6]);
    let gauge = generate::weak_field(domain.local(), 3, 0.4);
    let links = evolving(&domain, &gauge);
    for action in [GaugeAction::wilson(5.2), GaugeAction::iwasaki(2.0), GaugeAction::one_loop_symanzik(7.0, 0.9)] {
        let value = |gauge: &HostGauge| action.value(evolving(&domain, gauge).own()).unwrap();
        let found = Identities::of(&links, [&GaugeActionForce { action, single: false } as &dyn Force]).unwrap();
        agree("plaquette", found.plaquette, plain(&gauge, LoopKind::Plaquette, &value), DIFFERENCES);
        agree("rectangle", found.rectangle.unwrap(), plain(&gauge, LoopKind::Rectangle, &value), DIFFERENCES);
    }
}

/// Σ |A⁻¹ x|², or x† A⁻¹ x.
fn solved(a: &DenseMatrix, x: &DVector<Complex64>, norm: bool) -> f64 {
    let y = divide(a, x);
    if norm { y.norm_squared() } else { x.dotc(&y).re }
}

/// Wilson quarks with given noise on 2⁴: S = β Σ (1 − Re tr P / 3) + ‖M̂⁻† φ‖², φ = M̂† ξ.
#[test]
fn wilson_quarks_have_the_identity_of_dense_matrices() {
    let domain = domain([2; 4]);
    let lattice = domain.local();
    let gauge = generate::weak_field(lattice, 3, 0.8);
    let links = evolving(&domain, &gauge);
    let wilson = WilsonParams::from_kappa(0.13, TimeBoundary::Antiperiodic);
    let operator = WilsonLike::from(wilson);
    let tight = complement_request(Method::CG, Double, 1e-15);
    let (quarks, solvers) = (WilsonQuarks::new(operator), [tight.clone(), tight.clone()]);
    let mut two = TwoFlavours::new(&domain, "two".into(), quarks, None, solvers, Double, 0).unwrap();
    let xi: HostSpinor = generate::random_source(lattice, 4);
    let mut noise = FullField::zero(&domain, FieldShape::spinors(Double, 1)).unwrap();
    noise.upload(std::slice::from_ref(&xi)).unwrap();
    two.set_from(&links, &noise.even).unwrap();

    let places = even_numbers::<Spinor>(lattice);
    let complement = |gauge: &HostGauge, dagger: bool| {
        let dirac = WilsonLikeDirac::twisted(gauge, wilson, [0.0; 2], 0.0);
        dense(lattice, &places, |psi: &HostSpinor| dirac.schur(dagger, psi))
    };
    let phi = complement(&gauge, true) * chosen(&xi, &places);
    let beta = 5.2;
    let action = |gauge: &HostGauge| {
        let plaquettes = closed_loops().into_iter().filter(|path| path.kind == LoopKind::Plaquette).collect::<Vec<_>>();
        let loops = loops_and_gradient(gauge, &plaquettes).0;
        -beta / 3.0 * loops + solved(&complement(gauge, true), &phi, true)
    };
    let gauge_force = GaugeActionForce { action: GaugeAction::wilson(beta), single: false };
    let found = Identities::of(&links, [&gauge_force as &dyn Force, &two]).unwrap();
    assert_eq!(found.rectangle, None, "a rectangle has a link twice");
    agree("two flavours", found.plaquette, plain(&gauge, LoopKind::Plaquette, &action), DIFFERENCES);
}

/// Staggered quarks with given noise on 2⁴: S = φ† (A + σ)⁻¹ φ with φ = (A + σ)⁻¹ ξ, A = −D² on the even sites.
#[test]
fn staggered_quarks_have_the_identity_of_dense_matrices() {
    let domain = domain([2; 4]);
    let lattice = domain.local();
    let gauge = generate::weak_field(lattice, 5, 0.8);
    let links = evolving(&domain, &gauge);
    let pole = PartialFractions { constant: 0.0, poles: vec![Pole { residue: 1.0, shift: 0.3 }] };
    let functions = RationalFunctions { dynamics: pole.clone(), heat_bath: pole.clone(), action: pole };
    let solvers = [solver(false, 1e-15), solver(false, 1e-15)];
    let mut quarks = Pseudofermions::new(&domain, "naive".into(), naive(), functions, solvers, 0, 1).unwrap();
    let xi: HostColour = generate::random_source(lattice, 7);
    let mut noise = FullField::zero(&domain, FieldShape::colours(Double, 1)).unwrap();
    noise.upload(std::slice::from_ref(&xi)).unwrap();
    quarks.set_from(&links, &noise.even).unwrap();

    let places = even_numbers::<ColourVector>(lattice);
    let shifted = |gauge: &HostGauge| {
        let dirac = StaggeredDirac::naive(gauge, 0.0, EtaPhases::Milc, Boundary::Sign(-1.0));
        let minus_square =
            |v: &HostColour| combine(&[(0.3.into(), v), (-Complex64::ONE, &dirac.derivative(&dirac.derivative(v)))]);
        dense(lattice, &places, minus_square)
    };
    let phi = divide(&shifted(&gauge), &chosen(&xi, &places));
    let action = |gauge: &HostGauge| solved(&shifted(gauge), &phi, false);
    let found = Identities::of(&links, [&quarks as &dyn Force]).unwrap();
    agree("naive", found.plaquette, plain(&gauge, LoopKind::Plaquette, &action), DIFFERENCES);
}

/// Clover quarks with a heavier mass between, guesses and all parts of the action.
fn clover(domain: &Domain, precision: Precision) -> Vec<Box<dyn Monomial>> {
    let quarks = |kappa: f64| {
        let wilson = WilsonParams::from_kappa(kappa, TimeBoundary::Antiperiodic);
        WilsonQuarks::new(CloverParams::isotropic(wilson, 1.5, 1.0).with_schur(Schur::Symmetric))
    };
    let with_tol = |tol| complement_request(Method::CG, precision, tol);
    let solvers = [with_tol(if precision == Double { 1e-13 } else { 1e-7 }), with_tol(1e-14)];
    let two = |heavier, kappa, first| {
        let made =
            TwoFlavours::new(domain, "two".into(), quarks(kappa), heavier, solvers.clone(), precision, first).unwrap();
        Box::new(made.with_guesses(3)) as Box<dyn Monomial>
    };
    let determinant = BlockDeterminant::new("blocks".into(), quarks(0.13), 2);
    vec![two(Some(quarks(0.11)), 0.13, 0), two(None, 0.11, 1), Box::new(determinant)]
}

fn chain(domain: &Domain, gauge: &HostGauge, precision: Precision, friction: Option<f64>) -> Chain {
    let quarks = clover(domain, precision);
    let levels = vec![level(true, quarks.len(), Scheme::Omelyan { lambda: MINIMUM_NORM }, 3)];
    let mut plan = plan(GaugeAction::iwasaki(2.1), 0.5, levels, precision == Single);
    plan.friction = friction;
    let links = GaugeField::upload(domain, gauge).unwrap();
    Chain::new(plan, &links, precision, quarks).unwrap()
}

/// Trajectories are the same to the bit whether identities are measured or not, with guesses and momenta that are kept, too.
#[test]
fn identities_leave_trajectories_as_they_are() {
    let domain = domain([4, 2, 2, 4]);
    let gauge = generate::weak_field(domain.local(), 3, 0.5);
    let run = |measures: bool| {
        let mut chain = chain(&domain, &gauge, Double, Some(0.4));
        let one = |number| {
            chain.measure_identities(measures && number != 2);
            let outcome = chain.trajectory(number, None, false).unwrap();
            assert_eq!(outcome.identities.is_some(), measures && number != 2);
            let dynamics: Vec<usize> = outcome.iterations.iter().map(|[_, dynamics]| *dynamics).collect();
            (outcome.delta, outcome.accepted, dynamics)
        };
        let outcomes: Vec<_> = (1..=3).map(one).collect();
        (outcomes, chain.links().own().download().unwrap())
    };
    assert!(run(true) == run(false));
}

/// The whole lattice on one process, cut among several, and with links and forces in single precision.
#[test]
fn identities_do_not_depend_on_the_grid_nor_much_on_the_precision() {
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.5);
    let of = |domain: &Domain, gauge: &HostGauge, precision| -> TrajectoryOutcome {
        let mut chain = chain(domain, gauge, precision, None);
        chain.measure_identities(true);
        chain.trajectory(1, None, false).unwrap()
    };
    let differs = |found: &TrajectoryOutcome, expected: &TrajectoryOutcome| -> f64 {
        let all = |outcome: &TrajectoryOutcome| {
            let Identities { plaquette, rectangle } = outcome.identities.unwrap();
            let rectangle = rectangle.unwrap();
            [plaquette.loops, plaquette.forces, rectangle.loops, rectangle.forces]
        };
        all(found).iter().zip(all(expected)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let whole = single(lattice);
    let expected = of(&whole, &gauge, Double);
    // Roundings of 6e-8 in sums of a few terms of order one for each link, and residuals of 1e-7.
    let off = differs(&of(&whole, &gauge, Single), &expected);
    assert!(off < 1e-6, "{off:e}");
    let grid = [1, 1, 1, 2];
    on_grid(grid, lattice, |domain| {
        let found = of(domain, &cut::links_of(&domain.section(), &gauge), Double);
        // Solutions to 1e-13; sums in another order.
        let off = differs(&found, &expected);
        assert!(off < 1e-12, "{off:e}");
    });
}
