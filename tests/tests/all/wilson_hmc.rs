//! Hybrid Monte Carlo with Wilson-like quarks: forces against derivatives of their actions, determinants against dense matrices.
use crate::chains::solver;
use crate::rhmc::{agrees, derivative, direction, domains};
use ferrite::Precision::{Double, Single};
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostColour, HostGauge};
use ferrite::field::{FieldShape, GaugeField};
use ferrite::gauge::generate;
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::RationalFunctions;
use ferrite::hmc::force::Force;
use ferrite::hmc::integrator::{Scheme, Unitarise};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::trajectory::{Chain, LevelPlan, Noise, Plan};
use ferrite::hmc::wilson::WilsonQuarks;
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::one_flavour::OneFlavour;
use ferrite::hmc::wilson::two_flavours::TwoFlavours;
use ferrite::hmc::{HmcError, PlanError};
use ferrite::lattice::Lattice;
use ferrite::operators::{
    Anisotropy, CloverParams, ExpCloverParams, LinkDependence, Operator, Schur, TimeBoundary, TwistedCloverParams,
    TwistedExpCloverParams, TwistedParams, WilsonLike, WilsonParams,
};
use ferrite::solve::{Method, Request};
use ferrite_tests::checks::{THETA, complement_request};
use ferrite_tests::cut;
use ferrite_tests::testkit::{domain, evolving, farthest_links, on_grid, single};
use rational::{Fraction, Interval, Power};
use solvers::SolveError;

fn wilson_like(operator: impl Into<Operator>, schur: Schur) -> WilsonLike {
    WilsonLike { schur, ..*operator.into().parameters().expect("Wilson-like ones are asked for") }
}

/// Every kind of diagonal term, on isotropic and anisotropic lattices, with both complements.
fn operators() -> Vec<(&'static str, WilsonLike)> {
    let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let anisotropic =
        WilsonParams { anisotropy: Anisotropy { xi: 2.4, nu: 0.9 }, boundary: TimeBoundary::Periodic, ..wilson };
    let clover = CloverParams::isotropic(wilson, 1.5, 1.0);
    // Larger ones make differences of the action less exact, whose error is of the sixth power of steps.
    let large = CloverParams::anisotropic(anisotropic, 1.2, 1.6);
    let mut all = Vec::new();
    for schur in [Schur::Symmetric, Schur::Asymmetric] {
        all.push(("anisotropic clover", wilson_like(CloverParams::anisotropic(anisotropic, 0.9, 1.2), schur)));
        all.push(("clover", wilson_like(clover, schur)));
        all.push(("wilson", wilson_like(wilson, schur)));
        all.push(("exponential clover", wilson_like(ExpCloverParams(clover), schur)));
        all.push(("twisted clover", wilson_like(TwistedCloverParams { clover, mu: 0.2 }, schur)));
        all.push(("twisted", wilson_like(TwistedParams { wilson, mu: 0.2 }, schur)));
        all.push(("anisotropic exponential clover", wilson_like(ExpCloverParams(large), schur)));
        all.push(("clover, twisted boundary", WilsonLike { theta: THETA, ..wilson_like(clover, schur) }));
    }
    for schur in [Schur::Symmetric, Schur::Asymmetric] {
        let twisted = TwistedCloverParams { clover, mu: 0.2 };
        all.push(("twisted exponential clover", wilson_like(TwistedExpCloverParams(twisted), schur)));
    }
    all
}

/// Whether the blocks of A have a determinant that depends on the links.
fn has_determinant(operator: &WilsonLike) -> bool {
    match operator.dependence() {
        LinkDependence::Linear(_) => true,
        LinkDependence::Exponential(_) => operator.definition.partner().is_some(),
        LinkDependence::None => false,
    }
}

/// One complement of some of them.
fn some_operators() -> impl Iterator<Item = (&'static str, WilsonLike)> {
    operators().into_iter().enumerate().filter(|(k, _)| [1, 4, 7, 11, 14].contains(k)).map(|(_, operator)| operator)
}

fn exact(method: &'static Method) -> [Request; 2] {
    [complement_request(method, Double, 1e-14), complement_request(method, Double, 1e-15)]
}

/// Factors that split determinants: nothing, a larger mass, and twists.
fn factors(operator: WilsonLike) -> Vec<(WilsonQuarks, Option<WilsonQuarks>)> {
    let plain = WilsonQuarks::new(operator);
    let heavy = operator.of_mass(operator.wilson.mass + 0.3);
    let twisted = |twist| WilsonQuarks { twist, ..plain };
    vec![(plain, None), (plain, Some(WilsonQuarks::new(heavy))), (twisted(0.1), Some(twisted(0.4)))]
}

/// The links of quarks: none, one or two levels of stout smearing, in all directions or in space.
fn stout(k: usize) -> Option<StoutSmearing> {
    let smearing = |rho, levels, spatial| Some(StoutSmearing { rho, levels, spatial });
    [None, smearing(0.12, 1, true), smearing(0.1, 2, false)][k % 3]
}

fn functions(interval: [f64; 2], tolerance: f64) -> RationalFunctions {
    let interval = Interval::new(interval[0], interval[1]).unwrap();
    let made = |denominator: i64| {
        let power = Power::new(Fraction::new(-1, denominator).unwrap()).unwrap();
        rational::approximate_to(&power, interval, tolerance).unwrap()
    };
    let action = made(4);
    RationalFunctions {
        dynamics: made(2).direct().clone(),
        heat_bath: action.inverse().clone(),
        action: action.direct().clone(),
    }
}

#[test]
fn forces_of_two_flavours_are_derivatives() {
    for (shape, domain) in domains().into_iter().enumerate() {
        let gauge = generate::weak_field(domain.local(), 3, 0.4);
        let (thin, q) = (GaugeField::upload(&domain, &gauge).unwrap(), direction(&domain));
        let links = EvolvingLinks::new(&thin, Double).unwrap();
        // On the second shape some of them.
        for (number, (name, operator)) in operators().into_iter().enumerate().step_by(1 + 2 * shape) {
            for (k, (quarks, heavier)) in factors(operator).into_iter().enumerate() {
                let method = [Method::CG, Method::BICGSTAB][k % 2];
                let smeared = |quarks| WilsonQuarks { stout: stout(number + k), ..quarks };
                let (quarks, heavier) = (smeared(quarks), heavier.map(smeared));
                let make = |solvers, precision| {
                    let name = format!("{name} {:?} {k}", operator.schur);
                    let mut made = TwoFlavours::new(&domain, name, quarks, heavier, solvers, precision, 0).unwrap();
                    let noise = made.draw(&links, 5, 6).unwrap();
                    // The action of what was drawn is that of the noise.
                    let action = made.action(&links).unwrap();
                    assert!((action - noise).abs() < 1e-12 * noise, "{}: {action} {noise}", made.name());
                    made
                };
                let made = make(exact(method), Double);
                let value = |links: &EvolvingLinks| made.action(links).unwrap();
                let expected = derivative(&thin, &q, 3e-3, value);
                // Differences of solutions to 1e-15, and in single precision roundings of 6e-8.
                agrees(Double, (&thin, &q), &made, expected, 1e-8);
                let low = [complement_request(method, Single, 1e-9), exact(method)[1].clone()];
                agrees(Double, (&thin, &q), &make(low.clone(), Single), expected, 2e-5);
                agrees(Single, (&thin, &q), &make(low, Single), expected, 3e-5);
            }
        }
    }
}

#[test]
fn forces_of_determinants_are_derivatives() {
    for domain in domains() {
        let gauge = generate::weak_field(domain.local(), 3, 0.4);
        let (thin, q) = (GaugeField::upload(&domain, &gauge).unwrap(), direction(&domain));
        let clover = operators().into_iter().filter(|(_, operator)| has_determinant(operator));
        for (k, (name, operator)) in clover.enumerate() {
            let quarks = WilsonQuarks { stout: stout(k), ..WilsonQuarks::new(operator) };
            let made = BlockDeterminant::new(format!("{name} {:?}", operator.schur), quarks, 2);
            let expected = derivative(&thin, &q, 3e-3, |links| made.action(links).unwrap());
            agrees(Double, (&thin, &q), &made, expected, 1e-9);
            agrees(Single, (&thin, &q), &made, expected, 1e-5);
        }
    }
}

#[test]
fn forces_of_one_flavour_are_derivatives() {
    let functions = functions([0.01, 8.0], 1e-3);
    for domain in domains() {
        let gauge = generate::weak_field(domain.local(), 3, 0.4);
        let (thin, q) = (GaugeField::upload(&domain, &gauge).unwrap(), direction(&domain));
        for (k, (name, operator)) in some_operators().enumerate() {
            let make = |single| {
                let solvers = [solver(single, if single { 1e-7 } else { 1e-13 }), solver(false, 1e-15)];
                let name = format!("{name} {:?}", operator.schur);
                let quarks = WilsonQuarks { stout: stout(k + 1), ..WilsonQuarks::new(operator) };
                let mut made = OneFlavour::new(&domain, name, quarks, functions.clone(), solvers, 0, 2).unwrap();
                made.draw(&EvolvingLinks::new(&thin, Double).unwrap(), 5, 6).unwrap();
                made
            };
            let made = make(false);
            let expected = derivative(&thin, &q, 3e-3, |links| made.dynamics_action(links).unwrap());
            agrees(Double, (&thin, &q), &made, expected, 1e-8);
            agrees(Double, (&thin, &q), &make(true), expected, 3e-5);
            agrees(Single, (&thin, &q), &make(true), expected, 3e-5);
        }
    }
}

/// Each rank pushes the momenta of its own links.
#[test]
fn forces_do_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 8, 4, 12]).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.4);
    let functions = functions([0.01, 8.0], 1e-3);
    let forces = |domain: &Domain, gauge: &HostGauge| -> Vec<HostGauge> {
        let links = evolving(domain, gauge);
        let kick = |force: &dyn Force| {
            let mut momenta = MomentumField::zero(domain, Double).unwrap();
            force.kick(&links, 0.1, &mut momenta).unwrap();
            momenta.download().unwrap()
        };
        let mut all = Vec::new();
        for (name, operator) in some_operators() {
            let (quarks, heavier) = factors(operator)[2];
            let quarks = WilsonQuarks { stout: stout(2), ..quarks };
            let heavier = heavier.map(|heavier| WilsonQuarks { stout: stout(2), ..heavier });
            let mut two = TwoFlavours::new(domain, name.into(), quarks, heavier, exact(Method::CG), Double, 0).unwrap();
            two.draw(&links, 5, 6).unwrap();
            all.push(kick(&two));
            all.push(kick(&BlockDeterminant::new(name.into(), quarks, 2)));
            let solvers = [solver(false, 1e-14), solver(false, 1e-14)];
            let one = OneFlavour::new(domain, name.into(), quarks, functions.clone(), solvers, 1, 1);
            let mut one = one.unwrap();
            one.draw(&links, 5, 6).unwrap();
            all.push(kick(&one));
        }
        all
    };
    let whole = forces(&single(lattice), &gauge);
    let grid = [1, 2, 1, 3];
    on_grid(grid, lattice, |domain| {
        let part = domain.section();
        let found = forces(domain, &cut::links_of(&part, &gauge));
        for (number, (part_force, whole)) in found.iter().zip(&whole).enumerate() {
            let off = farthest_links(part_force, &cut::links_of(&part, whole));
            // Solutions to 1e-14; sums of dot products in another order.
            assert!(off < 1e-12, "force {number} at {:?}: {off:e}", part.origin);
        }
    });
}

mod dense {
    //! Actions and determinants on 2⁴ from the matrices of an independent implementation.
    use super::*;
    use ferrite::field::FullField;
    use ferrite::field::host::{HostSpinor, Spinor};
    use ferrite_tests::reference::{combine, gamma5, on_parity, turned};
    use ferrite_tests::testkit::dense::{
        DenseMatrix, all_numbers, chosen, dense, divide, even_numbers, log_determinant, power,
    };
    use ferrite_tests::wilson_like_reference::WilsonLikeDirac;
    use num_complex::Complex64;

    struct Plain<'a> {
        dirac: WilsonLikeDirac<'a>,
        schur: Schur,
        lattice: Lattice,
    }

    impl<'a> Plain<'a> {
        /// Makes the operator on links with the phases of twisted boundary conditions.
        fn new(gauge: &'a HostGauge, name: &str, operator: &WilsonLike) -> Self {
            let [a, b, c] = operator.coefficients;
            let (coefficients, mu) = match name {
                "wilson" => ([0.0; 2], 0.0),
                "twisted" => ([0.0; 2], a),
                _ => ([a, b], c),
            };
            let dirac = match name.contains("exponential") {
                true => WilsonLikeDirac::twisted_exponential(gauge, operator.wilson, coefficients, mu),
                false => WilsonLikeDirac::twisted(gauge, operator.wilson, coefficients, mu),
            };
            Plain { dirac, schur: operator.schur, lattice: gauge.lattice() }
        }
        fn even(&self) -> Vec<usize> {
            even_numbers::<Spinor>(self.lattice)
        }
        /// M̂ with a twist, on the even sites.
        fn complement(&self, twist: f64) -> DenseMatrix {
            let one = Complex64::ONE;
            // h D ψ = A ψ − M ψ
            let hop = |psi: &HostSpinor| {
                combine(&[(one, &self.dirac.diagonal(false, false, psi)), (-one, &self.dirac.apply(false, psi))])
            };
            dense(self.lattice, &self.even(), |psi| {
                let hops = hop(&self.dirac.diagonal(true, false, &hop(psi)));
                let term = self.dirac.diagonal(false, false, psi);
                let sum = combine(&[(one, &term), (-one, &hops), (Complex64::new(0.0, twist), &gamma5(psi))]);
                match self.schur {
                    Schur::Asymmetric => on_parity(0, &sum),
                    Schur::Symmetric => self.dirac.diagonal(true, false, &on_parity(0, &sum)),
                }
            })
        }
    }

    /// The determinants of the blocks and that of the complement make up the determinant of M.
    #[test]
    fn determinants_are_complete() {
        let domain = domain([2; 4]);
        let gauge = generate::weak_field(domain.local(), 3, 0.4);
        let links = evolving(&domain, &gauge);
        for (name, operator) in operators().into_iter().filter(|(name, _)| name.contains("clover")) {
            let gauge = turned(&gauge, operator.theta.0);
            let plain = Plain::new(&gauge, name, &operator);
            let all = all_numbers::<Spinor>(gauge.lattice());
            let full = log_determinant(&dense(plain.lattice, &all, |psi| plain.dirac.apply(false, psi)));
            let complement = log_determinant(&plain.complement(0.0));
            let quarks = WilsonQuarks::new(operator);
            // Exponential blocks without a twist have the determinant of links that are 1, to which others are relative.
            let action = match has_determinant(&operator) {
                true => BlockDeterminant::new(name.into(), quarks, 2).action(&links).unwrap(),
                false => 0.0,
            };
            let count = all.len() as f64 * if operator.schur == Schur::Symmetric { 1.0 } else { 0.5 };
            let mu = if name.starts_with("twisted") { operator.coefficients[2] } else { 0.0 };
            let free = count * operator.wilson.diagonal().hypot(mu).ln();
            let off = full - complement - free + 0.5 * action;
            assert!(off.abs() < 1e-9, "{name} {:?}: {full} {complement} {action}, {off:e}", operator.schur);
        }
    }

    /// Two configurations on 2⁴, and noise on the even sites.
    struct TwoConfigurations {
        domain: Domain,
        gauges: [HostGauge; 2],
        links: [EvolvingLinks; 2],
        noise: HostSpinor,
        uploaded: FullField,
    }

    fn two_configurations() -> TwoConfigurations {
        let domain = domain([2; 4]);
        let gauges = [3, 4].map(|seed| generate::weak_field(domain.local(), seed, 0.4));
        let links = gauges.each_ref().map(|gauge| evolving(&domain, gauge));
        let noise: HostSpinor = on_parity(0, &generate::random_source(domain.local(), 5));
        let mut uploaded = FullField::zero(&domain, FieldShape::spinors(Double, 1)).unwrap();
        uploaded.upload(std::slice::from_ref(&noise)).unwrap();
        TwoConfigurations { domain, gauges, links, noise, uploaded }
    }

    /// One flavour: the action φ† K^{−1/2} φ of φ = K^{1/4} ξ, drawn on one configuration and measured on another.
    #[test]
    fn actions_of_one_flavour_are_those_of_the_formula() {
        let TwoConfigurations { domain, gauges, links, noise, uploaded } = two_configurations();
        for (name, operator) in operators().into_iter().filter(|(name, _)| *name == "clover") {
            let norm = |gauge: &HostGauge| {
                let complement = Plain::new(gauge, name, &operator).complement(0.0);
                complement.adjoint() * complement
            };
            let [before, after] = gauges.each_ref().map(norm);
            let xi = chosen(&noise, &Plain::new(&gauges[0], name, &operator).even());
            let phi = power(&before, 0.25) * xi;
            let expected = phi.dotc(&(power(&after, -0.5) * &phi)).re;
            let solvers = [solver(false, 1e-14), solver(false, 1e-14)];
            let quarks = WilsonQuarks::new(operator);
            let functions = functions([1e-3, 120.0], 1e-11);
            let mut one = OneFlavour::new(&domain, name.into(), quarks, functions, solvers, 0, 1).unwrap();
            let drawn = one.set_from(&links[0], &uploaded.even).unwrap();
            assert!((one.action(&links[0]).unwrap() - drawn).abs() < 1e-9 * drawn);
            let found = one.action(&links[1]).unwrap();
            assert!((found - expected).abs() < 1e-8 * expected, "{:?}: {found} {expected}", operator.schur);
        }
    }

    /// Pseudofermions drawn on one configuration have the action of the formula on another.
    #[test]
    fn actions_are_those_of_the_formula() {
        let TwoConfigurations { domain, gauges, links, noise, uploaded } = two_configurations();
        for (name, operator) in operators() {
            let gauges = gauges.each_ref().map(|gauge| turned(gauge, operator.theta.0));
            let plain = gauges.each_ref().map(|gauge| Plain::new(gauge, name, &operator));
            let xi = chosen(&noise, &plain[0].even());
            for (k, (quarks, heavier)) in factors(operator).into_iter().enumerate() {
                let name = format!("{name} {:?} {k}", operator.schur);
                let mut made =
                    TwoFlavours::new(&domain, name.clone(), quarks, heavier, exact(Method::CG), Double, 0).unwrap();
                made.set_from(&links[0], &uploaded.even).unwrap();
                let found = made.action(&links[1]).unwrap();
                let complement = |plain: &Plain, quarks: &WilsonQuarks, gauge: &HostGauge| {
                    if quarks.operator == operator {
                        return plain.complement(quarks.twist);
                    }
                    Plain::new(gauge, name.split_once(&format!(" {:?}", operator.schur)).unwrap().0, &quarks.operator)
                        .complement(quarks.twist)
                };
                // W† φ = M̂† ξ, and M̂† η = W† φ.
                let dagger = |k: usize, quarks| complement(&plain[k], quarks, &gauges[k]).adjoint();
                let mut rhs = dagger(0, &quarks) * &xi;
                if let Some(w) = &heavier {
                    rhs = dagger(1, w) * divide(&dagger(0, w), &rhs);
                }
                let expected = divide(&dagger(1, &quarks), &rhs).norm_squared();
                assert!((found - expected).abs() < 1e-10 * expected, "{name}: {found} {expected}");
            }
        }
    }
}

mod trajectories {
    //! Chains with Wilson-like quarks.
    use super::*;
    use crate::chains::plan;
    use ferrite::hmc::action::GaugeAction;
    use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme};
    use ferrite::hmc::trajectory::{Chain, LevelPlan};

    /// Two flavours split by a heavier mass, and a third: determinants on the level of the gauge force.
    fn chain(operator: WilsonLike, steps: usize, tol: f64, guesses: usize) -> Chain {
        let domain = Domain::single(Cpu::new(None), Lattice::new([4, 4, 4, 4]).unwrap()).unwrap();
        let links = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
        let plain = WilsonQuarks::new(operator);
        let (_, heavier) = factors(operator)[1];
        let solvers = [(); 2].map(|()| complement_request(Method::CG, Double, tol));
        let two = |name: &str, quarks, heavier, first| {
            let part = TwoFlavours::new(&domain, name.into(), quarks, heavier, solvers.clone(), Double, first);
            part.unwrap().with_guesses(guesses)
        };
        let functions = functions([0.01, 8.0], 1e-9);
        let rational = [solver(false, tol), solver(false, tol)];
        let mut quarks: Vec<Box<dyn Monomial>> = vec![
            Box::new(two("ratio", plain, heavier, 0)),
            Box::new(two("heavy", heavier.unwrap(), None, 1)),
            Box::new(OneFlavour::new(&domain, "one".into(), plain, functions, rational, 2, 1).unwrap()),
        ];
        if has_determinant(&operator) {
            quarks.push(Box::new(BlockDeterminant::new("blocks".into(), plain, 3)));
        }
        let innermost: Vec<usize> = (3..quarks.len()).collect();
        let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
        let level = |gauge, quarks: &[usize], steps| LevelPlan { gauge, quarks: quarks.into(), scheme, steps };
        let levels = vec![level(false, &[0, 2], steps), level(false, &[1], 2), level(true, &innermost, 2)];
        let plan = plan(GaugeAction::iwasaki(1.9), 0.3, levels, false);
        Chain::new(plan, &links, Double, quarks).unwrap()
    }

    #[test]
    fn errors_fall_with_the_square_of_steps() {
        for (name, operator) in [operators()[1], operators()[3]] {
            let delta = |steps| chain(operator, steps, 1e-12, 0).trajectory(1, None, false).unwrap().delta;
            let (coarse, fine) = (delta(4), delta(8));
            let power = (coarse / fine).log2();
            assert!((power - 2.0).abs() < 0.3, "{name}: {coarse:e} {fine:e}, power {power}");
        }
    }

    #[test]
    fn reversed_trajectories_lead_to_the_start() {
        // Guesses on the way back are others than on the way there.
        let [without, with] =
            [0, 6].map(|guesses| chain(operators()[1].1, 4, 1e-13, guesses).trajectory(1, None, true).unwrap());
        for outcome in [&without, &with] {
            let [links, momenta] = outcome.irreversibility.unwrap();
            // Solutions to 1e-13, and rounding errors that molecular dynamics lets grow a little.
            assert!(links < 1e-12 && momenta < 1e-11, "{links:e} {momenta:e}");
        }
        assert!((without.delta - with.delta).abs() < 1e-8, "{} {}", without.delta, with.delta);
        let iterations = |outcome: &ferrite::hmc::trajectory::TrajectoryOutcome| outcome.iterations[0][1];
        assert!(10 * iterations(&with) < 9 * iterations(&without), "{} {}", iterations(&with), iterations(&without));
    }
}

/// Two flavours of clover quarks on stout links, over heavier ones, on a lattice of random links, with one solver for everything.
fn split_quarks(solver: Request) -> (EvolvingLinks, GaugeField, TwoFlavours) {
    let domain = domain([4; 4]);
    let thin = GaugeField::upload(&domain, &generate::random(domain.local(), 5)).unwrap();
    let stout = Some(StoutSmearing { rho: 0.1, levels: 2, spatial: false });
    let [light, heavy] = [0.12, 0.11].map(|kappa| {
        let wilson = WilsonParams::from_kappa(kappa, TimeBoundary::Antiperiodic);
        let operator = wilson_like(CloverParams::isotropic(wilson, 1.2, 1.0), Schur::Symmetric);
        WilsonQuarks { stout, ..WilsonQuarks::new(operator) }
    });
    let part =
        TwoFlavours::new(&domain, "quarks".into(), light, Some(heavy), [solver.clone(), solver], Single, 0).unwrap();
    (EvolvingLinks::new(&thin, Double).unwrap(), thin, part)
}

/// Residuals that double precision cannot reach end in stagnation, whatever they are: a recurrence in single precision stands still at the
/// level of rounding, far from any claim to have converged.
#[test]
fn residuals_below_rounding_end_in_stagnation() {
    for tol in [1e-16, 3e-17, 1e-17, 1e-19, 0.0] {
        let precision = Single;
        let solver = Request { max_iterations: Some(1_000_000), ..complement_request(Method::CG, precision, tol) };
        let (links, _, mut part) = split_quarks(solver);
        let why = part.draw(&links, 5, 1).expect_err("no such residual is reached");
        match why.solver() {
            // Some hundred iterations lead to rounding, and as many more show that nothing comes after it: not a million.
            Some(SolveError::Stagnation { iterations, residual, .. }) => {
                assert!(*iterations < 5000 && *residual < 1e-15, "{tol:e}: {iterations} {residual:e}");
            }
            other => panic!("{tol:e}: {other:?}"),
        }
    }
}

/// Given noise is colour vectors: a chain of other quarks refuses it, and goes on as if nothing had happened.
#[test]
fn noise_of_another_kind_is_refused() {
    let chain = || {
        let solver = complement_request(Method::CG, Single, 1e-8);
        let (_, links, part) = split_quarks(solver);
        let plan = Plan {
            gauge: GaugeAction::wilson(5.5),
            single_gauge_force: false,
            length: 0.1,
            levels: vec![LevelPlan { gauge: true, quarks: vec![0], scheme: Scheme::Leapfrog, steps: 1 }],
            unitarise: Unitarise::Always,
            seed: 1,
            friction: Some(0.5),
            metropolis_from: 0,
        };
        let quarks: Vec<Box<dyn Monomial>> = vec![Box::new(part)];
        Chain::new(plan, &links, Double, quarks).unwrap()
    };
    let (mut whole, mut disturbed) = (chain(), chain());
    let lattice = whole.domain().local();
    let (momenta, noise) = (generate::random(lattice, 1), [HostColour::zero(lattice)]);
    let first = whole.trajectory(1, None, false).unwrap();
    let noise = Noise { momenta: &momenta, pseudofermions: &noise };
    let refused = disturbed.trajectory(1, Some(noise), false);
    assert!(matches!(refused, Err(HmcError::Plan(PlanError::NoiseKind { group: 0 }))), "{refused:?}");
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("noise is given as colour vectors") && said.contains("quark group 0"), "{said}");
    assert_eq!(disturbed.trajectory(1, None, false).unwrap(), first);
}
