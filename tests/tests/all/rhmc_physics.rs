//! Whether molecular dynamics and hybrid Monte Carlo do what their theory says: errors fall with their power, the way back
//! leads to the start, phase space keeps its volume.
use crate::chains::{level, naive, plan, quarks, solver};
use ferrite::Precision::{self, Double, Single};
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::generate;
use ferrite::hmc::HmcError;
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::{Pseudofermions, QuarkOperator, QuarkSmearing, RationalFunctions};
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::functions::{Tolerances, rational_functions};
use ferrite::hmc::integrator::{Dynamics, IntegratorLevel, MINIMUM_NORM, Scheme, Unitarise};
use ferrite::hmc::links::{EvolvingLinks, StopSignal};
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::trajectory::{Chain, Plan};
use ferrite::hmc::wilson::WilsonQuarks;
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::two_flavours::TwoFlavours;
use ferrite::operators::fat_links::PathCoefficients;
use ferrite::operators::{CloverParams, Schur, TimeBoundary, WilsonParams};
use ferrite::solve::{Method, Request};
use ferrite_tests::checks::complement_request;
use ferrite_tests::testkit::matrix::{add, adjoint, exponential, multiply, real_product, scale};
use ferrite_tests::testkit::{domain, farthest_links, product_of_links};
use nalgebra::{DMatrix, DVector};
use num_complex::Complex64;
use rational::{PartialFractions, Pole};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::LazyLock;

fn asqtad() -> QuarkOperator {
    QuarkOperator { smearing: QuarkSmearing::Paths(PathCoefficients::asqtad(0.9)), ..naive() }
}
fn stout() -> QuarkOperator {
    let smearing = StoutSmearing { rho: 0.15, levels: 2, spatial: false };
    QuarkOperator { smearing: QuarkSmearing::Stout(smearing), ..naive() }
}
fn hisq() -> QuarkOperator {
    QuarkOperator { smearing: QuarkSmearing::Hisq { epsilon: -0.1 }, ..naive() }
}
/// Returns the functions for 2 + 1 flavours. Finding them takes longer than a trajectory, so all chains share them.
fn functions() -> RationalFunctions {
    static FUNCTIONS: LazyLock<RationalFunctions> = LazyLock::new(|| {
        let group = [quarks(0.2, "2"), quarks(0.4, "1")];
        // Functions of molecular dynamics that are as good as those of the action: ΔH is the integrator's.
        let tolerances = Tolerances { dynamics: 1e-11, action: 1e-12 };
        rational_functions(&group, 1, 100.0, tolerances, rational::approximate_to).unwrap()
    });
    FUNCTIONS.clone()
}

/// A chain with asqtad quarks of 2 + 1 flavours.
fn chain(precision: Precision, plan: Plan, links: &GaugeField, operator: QuarkOperator) -> Chain {
    let single = precision == Single;
    let solvers = [solver(single, if single { 1e-6 } else { 1e-13 }), solver(false, 1e-13)];
    let quarks = Pseudofermions::new(links.domain(), "quarks".into(), operator, functions(), solvers, 0, 1).unwrap();
    Chain::new(plan, links, precision, vec![Box::new(quarks)]).unwrap()
}

#[test]
fn errors_fall_with_their_power() {
    let domain = domain([4; 4]);
    let thin = |noise| GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, noise)).unwrap();
    // The projection of HISQ is far from linear where links are rough, and its errors reach their power with shorter steps only.
    let (rough, smooth) = (thin(0.4), thin(0.2));
    let lambda = MINIMUM_NORM;
    for (scheme, power, operator) in [
        (Scheme::Leapfrog, 2.0, naive()),
        (Scheme::Omelyan { lambda }, 2.0, stout()),
        (Scheme::LeapfrogLinksFirst, 2.0, asqtad()),
        (Scheme::Omelyan { lambda }, 2.0, asqtad()),
        (Scheme::OmelyanLinksFirst { lambda }, 2.0, naive()),
        (Scheme::ForceGradient, 4.0, asqtad()),
        (Scheme::ThreeGaugeOneFermion { lambda }, 2.0, hisq()),
    ] {
        let thin = if operator == hisq() { &smooth } else { &rough };
        let has_inner_levels = !matches!(scheme, Scheme::ThreeGaugeOneFermion { .. });
        for nested in [false, true].into_iter().filter(|nested| has_inner_levels || !nested) {
            let delta = |steps| {
                let levels = match nested {
                    false => vec![level(true, 1, scheme, steps)],
                    true => vec![level(false, 1, scheme, steps), level(true, 0, scheme, 2)],
                };
                let plan = plan(GaugeAction::tree_level_symanzik(6.0, 0.9), 0.4, levels, false);
                chain(Double, plan, thin, operator).trajectory(1, None, false).unwrap().delta
            };
            // On two scales the fourth-order scheme's error changes its sign at some eight steps here.
            let (coarse, fine) = if nested && power > 2.0 { (delta(16), delta(32)) } else { (delta(8), delta(16)) };
            let found = (coarse / fine).log2();
            // The next power is not far away.
            assert!((found - power).abs() < 0.35, "{scheme:?}, nested {nested}: {coarse:e} {fine:e}, power {found}");
        }
    }
}

#[test]
fn reversed_trajectories_lead_to_the_start() {
    let domain = domain([4, 4, 4, 6]);
    let thin = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
    let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
    for operator in [asqtad(), hisq(), stout()] {
        let off = |single: bool| {
            let levels = if operator != hisq() {
                vec![level(false, 1, scheme, 4), level(true, 0, scheme, 3)]
            } else {
                vec![level(true, 1, Scheme::ThreeGaugeOneFermion { lambda: 0.2 }, 3)]
            };
            let plan = plan(GaugeAction::wilson(5.5), 0.5, levels, single);
            let precision = if single { Single } else { Double };
            let outcome = chain(precision, plan, &thin, operator).trajectory(1, None, true).unwrap();
            outcome.irreversibility.unwrap()
        };
        goes_back(off(false), off(true));
    }
}

/// Checks the distances of links and momenta from the start, in double and in single precision.
fn goes_back([links, momenta]: [f64; 2], [links_single, momenta_single]: [f64; 2]) {
    println!("double {links:.1e} {momenta:.1e}, single {links_single:.1e} {momenta_single:.1e}");
    // Rounding errors of some fifty moves, which molecular dynamics lets grow a little; solutions to 1e-13.
    assert!(links < 1e-13 && momenta < 1e-12, "{links:e} {momenta:e}");
    assert!(links_single < 1e-5 && momenta_single < 1e-4, "{links_single:e} {momenta_single:e}");
    // And it is rounding, nothing else.
    assert!(links_single > 1e-9 && links > 1e-18);
}

/// Momenta are kept in part: none are lost with next to no friction, all with much of it, and a rejection reverses them.
#[test]
fn friction_takes_momenta_away() {
    let domain = domain([4; 4]);
    let links = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
    let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
    let chain = |friction, length, steps| {
        let plan = plan(GaugeAction::wilson(5.5), length, vec![level(true, 0, scheme, steps)], false);
        Chain::new(Plan { friction, ..plan }, &links, Double, Vec::new()).unwrap()
    };
    let run = |friction, length, steps, trajectories| {
        let mut chain = chain(friction, length, steps);
        for number in 1..=trajectories {
            assert!(chain.trajectory(number, None, false).unwrap().accepted);
        }
        chain.links().own().download().unwrap()
    };
    let (long, two) = (run(None, 1.0, 32, 1), run(Some(1e-300), 0.5, 16, 2));
    let off = farthest_links(&long, &two);
    assert!(off < 1e-11, "{off:e}");
    assert!(run(None, 0.5, 16, 2).links() == run(Some(1e4), 0.5, 16, 2).links());

    // Links hardly move, and half of the momenta are kept.
    let mut half = chain(Some(2.0_f64.ln() / 1e-9), 1e-9, 1);
    let momenta = [1, 2].map(|number| {
        half.trajectory(number, None, false).unwrap();
        half.momenta().unwrap().download().unwrap()
    });
    // 8192 numbers: the ratio has an error of 0.01, that of the squares of 0.016.
    let ratio = product_of_links(&momenta[0], &momenta[1]) / product_of_links(&momenta[0], &momenta[0]);
    assert!((ratio - 0.5).abs() < 0.05, "{ratio}");
    let growth = product_of_links(&momenta[1], &momenta[1]) / product_of_links(&momenta[0], &momenta[0]);
    assert!((growth - 1.0).abs() < 0.08, "{growth}");

    let mut rough = chain(Some(0.3), 3.0, 2);
    let outcome = rough.trajectory(1, None, false).unwrap();
    assert!(outcome.delta > 40.0 && !outcome.accepted, "{}", outcome.delta);
    let mut drawn = MomentumField::zero(&domain, Double).unwrap();
    drawn.draw(31, 1).unwrap();
    drawn.scale(-1.0).unwrap();
    assert!(rough.momenta().unwrap().download().unwrap().links() == drawn.download().unwrap().links());
    assert!(rough.links().own().download().unwrap().links() == links.download().unwrap().links());
}

#[test]
fn moves_are_reported_as_they_are_made() {
    let domain = domain([2; 4]);
    let links = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
    let levels = vec![level(false, 0, Scheme::ForceGradient, 2), level(true, 0, Scheme::Leapfrog, 3)];
    let plan = plan(GaugeAction::wilson(5.5), 0.1, levels, false);
    let mut chain = Chain::new(plan, &links, Double, Vec::new()).unwrap();
    let reported = Rc::new(RefCell::new(Vec::new()));
    let seen = reported.clone();
    chain.on_move(move |done, all| seen.borrow_mut().push((done, all)));
    chain.trajectory(1, None, true).unwrap();
    // A kick first, then drift, kick, drift, kick for each of two steps.
    assert_eq!(*reported.borrow(), (1..=9).map(|done| (done, 9)).collect::<Vec<_>>());
}

/// A trajectory that is stopped, wherever that is, leaves the chain as it was: the next call makes the same one, bit for bit.
#[test]
fn a_stopped_trajectory_never_was() {
    let domain = domain([4; 4]);
    let links = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.3)).unwrap();
    // Momenta that go on, guesses that are kept in a trajectory, two levels, force gradient and solvers of both kinds.
    let make = || {
        let levels = vec![level(false, 2, Scheme::ForceGradient, 1), level(true, 0, Scheme::Leapfrog, 2)];
        let plan = Plan { friction: Some(0.5), ..plan(GaugeAction::wilson(5.5), 0.2, levels, false) };
        let solvers = [solver(false, 1e-10), solver(false, 1e-10)];
        let rooted = Pseudofermions::new(&domain, "rooted".into(), naive(), functions(), solvers, 0, 1).unwrap();
        let solvers = [wilson_solver(1e-10), wilson_solver(1e-10)];
        let two = TwoFlavours::new(&domain, "two".into(), clover(0.3), Some(clover(0.6)), solvers, Double, 1).unwrap();
        let parts: Vec<Box<dyn Monomial>> = vec![Box::new(rooted), Box::new(two.with_guesses(2))];
        Chain::new(plan, &links, Double, parts).unwrap()
    };
    let bits = |chain: &Chain| {
        let momenta = chain.momenta().map(|momenta| momenta.download().unwrap());
        (chain.links().own().download().unwrap(), momenta)
    };
    let mut straight = make();
    let known: Vec<_> =
        (1..=2).map(|number| (straight.trajectory(number, None, number == 2).unwrap(), bits(&straight))).collect();
    // How often it is asked: in the heat bath, on the way, on the way back, and in the last action.
    let asked = Rc::new(Cell::new(0));
    let counted = |limit: usize| {
        let count = asked.clone();
        StopSignal::new(move || {
            count.set(count.get() + 1);
            count.get() > limit
        })
    };
    let mut chain = make();
    for (number, (expected, after)) in (1..).zip(&known) {
        let before = bits(&chain);
        // Of the whole trajectory, by another chain.
        let mut other = make();
        (1..number).for_each(|earlier| drop(other.trajectory(earlier, None, false).unwrap()));
        asked.set(0);
        other.stop_when(counted(usize::MAX));
        other.trajectory(number, None, number == 2).unwrap();
        let all = asked.get();
        assert!(all > 100, "{all}");
        for limit in [0, 1, all / 7, all / 3, all / 2, 4 * all / 5, all - 10] {
            asked.set(0);
            chain.stop_when(counted(limit));
            let stopped = chain.trajectory(number, None, number == 2).unwrap_err();
            assert!(matches!(stopped, HmcError::Stopped), "{limit} of {all}: {stopped}");
            // A solver that has converged just then is done, and the next one stops.
            assert!((limit + 1..limit + 4).contains(&asked.get()), "it goes on: {} {limit}", asked.get());
            assert!(bits(&chain) == before, "{limit} of {all}");
        }
        chain.stop_when(StopSignal::default());
        assert_eq!(chain.trajectory(number, None, number == 2).unwrap(), *expected);
        assert!(bits(&chain) == *after);
    }
}

/// The H that decides is that of the links that are kept, also if links become unitary at the end only.
#[test]
fn the_action_is_that_of_the_links_that_are_kept() {
    let domain = domain([4; 4]);
    let links = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
    for unitarise in [Unitarise::Always, Unitarise::Never] {
        let levels = vec![level(true, 0, Scheme::Leapfrog, 40)];
        // Without a Metropolis step.
        let plan = Plan { unitarise, metropolis_from: 9, ..plan(GaugeAction::wilson(5.5), 0.5, levels, true) };
        let mut chain = Chain::new(plan, &links, Single, Vec::new()).unwrap();
        let outcome = chain.trajectory(1, None, true).unwrap();
        assert!(outcome.accepted && outcome.irreversibility.is_some());
        // The very same sum.
        assert_eq!(chain.energies().unwrap(), outcome.end, "{unitarise:?}");
    }
}

/// One step on 2⁴, from links and momenta that are kept, with all kinds of forces.
struct OneStep<'a> {
    links: &'a HostGauge,
    momenta: &'a HostGauge,
    run: &'a dyn Fn(&HostGauge, &HostGauge) -> (HostGauge, HostGauge),
}

/// Quarks of a step.
#[derive(Clone, Copy, Debug)]
enum StepQuarks {
    Asqtad,
    /// Two flavours on stout links, with the determinant of their blocks.
    Clover,
}

/// Hands the step to a check.
fn with_a_step(quarks: StepQuarks, check: impl FnOnce(&OneStep)) {
    let domain = domain([2; 4]);
    let gauge = generate::weak_field(domain.local(), 5, 0.5);
    let scheme = Scheme::Omelyan { lambda: 0.19 };
    let gauge_force = GaugeActionForce { action: GaugeAction::one_loop_symanzik(6.0, 0.9), single: false };
    // One pole is enough of a force.
    let poles = |residue| PartialFractions { constant: 0.0, poles: vec![Pole { residue, shift: 1.0 }] };
    let functions = RationalFunctions { dynamics: poles(2.0), heat_bath: poles(1.0), action: poles(1.0) };
    let solvers = [solver(false, 1e-16), solver(false, 1e-16)];
    let mut quarks: Vec<Box<dyn Monomial>> = match quarks {
        StepQuarks::Asqtad => {
            let made = Pseudofermions::new(&domain, "quarks".into(), asqtad(), functions, solvers, 0, 1);
            vec![Box::new(made.unwrap())]
        }
        StepQuarks::Clover => {
            let stout = Some(StoutSmearing { rho: 0.1, levels: 1, spatial: false });
            let quarks = WilsonQuarks { stout, ..clover(0.3) };
            let solvers = [wilson_solver(1e-15), wilson_solver(1e-15)];
            let two = TwoFlavours::new(&domain, "two".into(), quarks, None, solvers, Double, 0).unwrap();
            vec![Box::new(two), Box::new(BlockDeterminant::new("blocks".into(), quarks, 2))]
        }
    };
    let thin = GaugeField::upload(&domain, &gauge).unwrap();
    let start = EvolvingLinks::new(&thin, Double).unwrap();
    for quarks in &mut quarks {
        quarks.draw(&start, 7, 1).unwrap();
    }
    let mut forces: Vec<&dyn Force> = vec![&gauge_force];
    forces.extend(quarks.iter().map(|quarks| &**quarks as &dyn Force));
    let levels = [IntegratorLevel { forces, scheme, steps: 1 }];
    let run = |gauge: &HostGauge, momenta: &HostGauge| {
        let mut links = EvolvingLinks::new(&GaugeField::upload(&domain, gauge).unwrap(), Double).unwrap();
        let mut momenta = MomentumField::upload(&domain, momenta, Double).unwrap();
        let dynamics = Dynamics { levels: &levels, unitarise: Unitarise::Never };
        dynamics.run(&mut links, &mut momenta, 0.3).unwrap();
        (links.own().download().unwrap(), momenta.download().unwrap())
    };
    check(&OneStep { links: &gauge, momenta: &random_momenta(&domain, 1), run: &run });
}

/// Momenta of another draw for every number.
fn random_momenta(domain: &Domain, number: u32) -> HostGauge {
    let mut momenta = MomentumField::zero(domain, Double).unwrap();
    momenta.draw(6, number).unwrap();
    momenta.download().unwrap()
}

impl OneStep<'_> {
    /// Distance by which the start is moved in both directions; differences of the ends are halved.
    const H: f64 = 1e-5;

    /// Changes of links and momenta at the end for changes at the start. Those of links U are X in exp(X) U.
    fn changes(&self, end: &HostGauge, links: &[Matrix], momenta: &[Matrix]) -> [Vec<Matrix>; 2] {
        let moved = |h: f64| {
            let (mut u, mut p) = (self.links.clone(), self.momenta.clone());
            u.links_mut().iter_mut().zip(links).for_each(|(u, x)| *u = multiply(&exponential(&scale(h.into(), x)), u));
            p.links_mut().iter_mut().zip(momenta).for_each(|(p, x)| *p = add(p, h.into(), x));
            (self.run)(&u, &p)
        };
        let (plus, minus) = (moved(Self::H), moved(-Self::H));
        let half = |plus: &Matrix, minus: &Matrix| scale((0.5 / Self::H).into(), &add(plus, -Complex64::ONE, minus));
        let pairs = plus.0.links().iter().zip(minus.0.links()).zip(end.links());
        let links = pairs.map(|((plus, minus), end)| multiply(&half(plus, minus), &adjoint(end)));
        let momenta = plus.1.links().iter().zip(minus.1.links()).map(|(plus, minus)| half(plus, minus));
        [links.collect(), momenta.collect()]
    }
}

/// det ∂(U', P') / ∂(U, P) = 1, in coordinates of the algebra at U and at U'.
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn phase_space_keeps_its_volume() {
    for quarks in [StepQuarks::Asqtad, StepQuarks::Clover] {
        with_a_step(quarks, keeps_its_volume);
    }
}

fn keeps_its_volume(step: &OneStep) {
    let end = (step.run)(step.links, step.momenta).0;
    let links = step.links.links().len();
    let column = |k: usize| -> DVector<f64> {
        let mut at = [vec![Matrix::default(); links], vec![Matrix::default(); links]];
        at[k / 8 / links][(k / 8) % links] = direction(k % 8);
        let [links, momenta] = step.changes(&end, &at[0], &at[1]);
        DVector::from_vec(links.iter().chain(&momenta).flat_map(components).collect())
    };
    let determinant = DMatrix::from_columns(&(0..16 * links).map(column).collect::<Vec<_>>()).determinant();
    println!("determinant {determinant}");
    // Differences are good to H² and rounding over H, 1e-10, for each of a thousand columns.
    assert!((determinant - 1.0).abs() < 1e-5, "{determinant}");
}

/// Steps of Hamilton's equations keep ω(v, w) = Σ ⟨P_v, X_w⟩ − ⟨P_w, X_v⟩ + ⟨P, [X_v, X_w]⟩ of any two changes v and w of links
/// and momenta, X and P, and the volume of phase space with it. Random ones involve every force on every link.
#[test]
fn steps_are_symplectic() {
    for quarks in [StepQuarks::Asqtad, StepQuarks::Clover] {
        with_a_step(quarks, is_symplectic);
    }
}

fn is_symplectic(step: &OneStep) {
    let domain = domain([2; 4]);
    let (links, momenta) = (step.run)(step.links, step.momenta);
    let random = |number| random_momenta(&domain, number).links().to_vec();
    let starts: Vec<[Vec<Matrix>; 2]> = (1..=4).map(|k| [random(2 * k), random(2 * k + 1)]).collect();
    let ends: Vec<_> = starts.iter().map(|[x, p]| step.changes(&links, x, p)).collect();
    for v in 0..starts.len() {
        for w in 0..v {
            let start = symplectic_form(step.momenta, &starts[v], &starts[w]);
            let end = symplectic_form(&momenta, &ends[v], &ends[w]);
            // Differences are good to H² and rounding over H, 1e-10, of products of changes whose norms are √1024; and ten
            // times as much for third derivatives.
            assert!((end - start).abs() < 1e-6, "{v} {w}: {start} {end}");
        }
    }
}

/// Trajectories of heavy quarks are, in the limit, those of the gauge action alone, with the β that hops around plaquettes add.
#[test]
fn heavy_quarks_are_none() {
    let domain = domain([4; 4]);
    let links = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
    let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
    let run = |mass: Option<f64>| {
        let quarks: Vec<Box<dyn Monomial>> = match mass {
            None => Vec::new(),
            Some(mass) => {
                let (quarks, solvers) = (clover(mass), [wilson_solver(1e-14), wilson_solver(1e-14)]);
                let two = TwoFlavours::new(&domain, "two".into(), quarks, None, solvers, Double, 0).unwrap();
                vec![Box::new(two), Box::new(BlockDeterminant::new("blocks".into(), quarks, 2))]
            }
        };
        let levels = vec![level(true, quarks.len(), scheme, 4)];
        let mut chain = Chain::new(plan(GaugeAction::wilson(5.5), 0.5, levels, false), &links, Double, quarks).unwrap();
        let outcome = chain.trajectory(1, None, false).unwrap();
        (outcome.delta, chain.links().own().plaquette().unwrap().0.mean)
    };
    let (delta, plaquette) = run(None);
    let off = |mass: f64| {
        let (heavy, heavy_plaquette) = run(Some(mass));
        (heavy - delta, heavy_plaquette - plaquette)
    };
    // Forces of pseudofermions fall with the second power of 1/(4 + m), as noise hops there and back, those of determinants, too.
    let ((_, near), (delta_far, far)) = (off(46.0), off(496.0));
    assert!(near.abs() > 1e-9 && (far / near).abs() < 0.03, "{near:e} {far:e}");
    assert!(delta_far.abs() < 1e-4, "{delta_far:e}");
}

/// Clover quarks with c_sw = 1.2.
fn clover(mass: f64) -> WilsonQuarks {
    let wilson = WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic);
    WilsonQuarks::new(CloverParams::isotropic(wilson, 1.2, 1.0).with_schur(Schur::Symmetric))
}
fn wilson_solver(tol: f64) -> Request {
    complement_request(Method::CG, Double, tol)
}

fn symplectic_form(momenta: &HostGauge, [x_v, p_v]: &[Vec<Matrix>; 2], [x_w, p_w]: &[Vec<Matrix>; 2]) -> f64 {
    let one = |k: usize, p: &Matrix| {
        let commutator = add(&multiply(&x_v[k], &x_w[k]), -Complex64::ONE, &multiply(&x_w[k], &x_v[k]));
        real_product(&p_v[k], &x_w[k]) - real_product(&p_w[k], &x_v[k]) + real_product(p, &commutator)
    };
    momenta.links().iter().enumerate().map(|(k, p)| one(k, p)).sum()
}

/// i λ_a / √2.
fn direction(a: usize) -> Matrix {
    let r = std::array::from_fn(|b| if a == b { 1.0 } else { 0.0 });
    let p = gpu_kernels::algebra::AntiHermitian::<f64>::from_components(r).matrix();
    std::array::from_fn(|j| std::array::from_fn(|k| Complex64::new(p.0[j][k].re, p.0[j][k].im)))
}
/// Components of a matrix along these directions, which are of norm one.
fn components(x: &Matrix) -> [f64; 8] {
    std::array::from_fn(|a| real_product(&direction(a), x))
}
