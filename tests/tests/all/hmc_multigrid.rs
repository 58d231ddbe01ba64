//! Multigrid in trajectories: forces, actions and trajectories are those of CG.
use crate::chains::plan;
use ferrite::Precision::{Double, Single};
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::gauge::generate;
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::force::Force;
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::trajectory::{Chain, LevelPlan};
use ferrite::hmc::wilson::WilsonQuarks;
use ferrite::hmc::wilson::two_flavours::TwoFlavours;
use ferrite::lattice::Lattice;
use ferrite::multigrid::MultigridParams;
use ferrite::operators::{CloverParams, Schur, TimeBoundary, WilsonLike, WilsonParams};
use ferrite::solve::{Method, Request};
use ferrite_tests::checks::complement_request;
use ferrite_tests::cut;
use ferrite_tests::testkit::on_grid;

/// Quarks so light that CG takes some hundred iterations, and heavier ones.
fn quarks() -> Vec<(&'static str, [WilsonQuarks; 2])> {
    let with_mass = |mass| WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic);
    let wilson = |mass: f64, schur| WilsonLike { schur, ..with_mass(mass).into() };
    let clover = |mass: f64, schur| CloverParams::isotropic(with_mass(mass), 1.2, 1.0).with_schur(schur);
    let stout = Some(StoutSmearing { rho: 0.1, levels: 1, spatial: false });
    let mut all = Vec::new();
    for schur in [Schur::Symmetric, Schur::Asymmetric] {
        all.push(("wilson", [-0.2, 0.2].map(|mass| WilsonQuarks::new(wilson(mass, schur)))));
        let smeared = |mass| WilsonQuarks { stout, ..WilsonQuarks::new(clover(mass, schur)) };
        all.push(("clover", [-0.1, 0.2].map(smeared)));
    }
    all
}

fn two(
    domain: &Domain,
    [light, heavy]: [WilsonQuarks; 2],
    method: &'static Method,
    precision: ferrite::Precision,
    tol: f64,
) -> TwoFlavours {
    let solver = Request { multigrid: params(), ..complement_request(method, precision, tol) };
    TwoFlavours::new(domain, "two".into(), light, Some(heavy), [solver.clone(), solver], Double, 0).unwrap()
}

/// Small setups for small lattices.
fn params() -> MultigridParams {
    MultigridParams { vectors: 16, improvements: 2, ..Default::default() }
}

fn kicked(made: &TwoFlavours, links: &EvolvingLinks) -> HostGauge {
    let mut momenta = MomentumField::zero(links.own().domain(), Double).unwrap();
    made.kick(links, 1.0, &mut momenta).unwrap();
    momenta.download().unwrap()
}

/// ‖a − b‖ over ‖b‖.
fn off(a: &HostGauge, b: &HostGauge) -> f64 {
    let pairs = a.numbers().iter().zip(b.numbers());
    let sums = pairs.fold([0.0; 2], |[d, n], (a, b)| [d + (a - b).norm_sqr(), n + b.norm_sqr()]);
    (sums[0] / sums[1]).sqrt()
}

#[test]
fn forces_and_actions_are_those_of_cg() {
    let domain = Domain::single(Cpu::new(None), Lattice::new([4, 4, 4, 8]).unwrap()).unwrap();
    // The second ones have drifted so far that near-null vectors of the first are worth little.
    let gauges = [generate::weak_field(domain.local(), 3, 0.5), generate::weak_field(domain.local(), 4, 0.5)];
    let links = gauges.map(|gauge| EvolvingLinks::new(&GaugeField::upload(&domain, &gauge).unwrap(), Double).unwrap());
    for (name, quarks) in quarks() {
        let name = format!("{name} {:?}", quarks[0].operator.schur);
        for precision in [Double, Single] {
            let tol = 1e-12;
            let [mut cg, mut multigrid] =
                [Method::CG, Method::MULTIGRID].map(|method| two(&domain, quarks, method, precision, tol));
            for made in [&mut cg, &mut multigrid] {
                made.draw(&links[0], 5, 6).unwrap();
                made.take_iterations();
            }
            for links in &links {
                // Errors of solutions are those of residuals times the condition number of M̂†M̂ at most.
                let (found, expected) = (kicked(&multigrid, links), kicked(&cg, links));
                assert!(off(&found, &expected) < 1e-8, "{name} {precision}: {:e}", off(&found, &expected));
                let (found, expected) = (multigrid.action(links).unwrap(), cg.action(links).unwrap());
                assert!((found - expected).abs() < 1e-9 * expected, "{name} {precision}: {found} {expected}");
                let (few, many) = (multigrid.take_iterations(), cg.take_iterations());
                assert!(3 * few < many, "{name} {precision}: {few} iterations, CG takes {many}");
                let (residual, other) = (multigrid.take_residual(), cg.take_residual());
                assert!(residual > 0.0 && residual < 1.1 * tol, "{name} {precision}: {residual:e} {other:e}");
            }
        }
    }
}

#[test]
fn forces_do_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 4, 8, 8]).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.5);
    let (_, quarks) = quarks().swap_remove(1);
    let force = |domain: &Domain, gauge: &HostGauge| {
        let links = EvolvingLinks::new(&GaugeField::upload(domain, gauge).unwrap(), Double).unwrap();
        let mut made = two(domain, quarks, Method::MULTIGRID, Double, 1e-13);
        made.draw(&links, 5, 6).unwrap();
        kicked(&made, &links)
    };
    let whole = force(&Domain::single(Cpu::new(Some(1)), lattice).unwrap(), &gauge);
    on_grid([1, 1, 1, 2], lattice, |domain| {
        let part = domain.section();
        let found = force(domain, &cut::links_of(&part, &gauge));
        let expected = cut::links_of(&part, &whole);
        assert!(off(&found, &expected) < 1e-9, "{:e}", off(&found, &expected));
    });
}

fn chain(links: &GaugeField, method: &'static Method) -> Chain {
    let (_, quarks) = quarks().swap_remove(1);
    let part: Box<dyn Monomial> = Box::new(two(links.domain(), quarks, method, Single, 1e-10));
    let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
    let levels = vec![
        LevelPlan { gauge: false, quarks: vec![0], scheme, steps: 3 },
        LevelPlan { gauge: true, quarks: vec![], scheme, steps: 2 },
    ];
    Chain::new(plan(GaugeAction::iwasaki(1.9), 0.3, levels, false), links, Double, vec![part]).unwrap()
}

/// A chain that begins where another one is takes the same steps: setups do not remember what was before a trajectory.
#[test]
fn trajectories_are_those_of_cg_and_do_not_depend_on_those_before() {
    let domain = Domain::single(Cpu::new(Some(2)), Lattice::new([4, 4, 4, 8]).unwrap()).unwrap();
    let gauge = GaugeField::upload(&domain, &generate::weak_field(domain.local(), 3, 0.4)).unwrap();
    let mut long = chain(&gauge, Method::MULTIGRID);
    let first = long.trajectory(1, None, false).unwrap();
    let of_cg = chain(&gauge, Method::CG).trajectory(1, None, false).unwrap();
    assert!((first.delta - of_cg.delta).abs() < 1e-5, "{} {}", first.delta, of_cg.delta);
    assert!(3 * first.iterations[0][1] < of_cg.iterations[0][1], "{:?} {:?}", first.iterations, of_cg.iterations);
    let between = long.links().own().copied().unwrap();
    let second = long.trajectory(2, None, false).unwrap();
    let mut other = chain(&between, Method::MULTIGRID);
    assert_eq!(other.trajectory(2, None, false).unwrap(), second);
    let links = [long, other].map(|chain| chain.links().own().download().unwrap());
    assert!(links[0].links() == links[1].links());
}
