//! Whether chains with quarks of every kind have the distribution of their determinants. Means on 2⁴ are compared with those of an independent
//! program: heat-bath samples of a gauge model of plaquettes and Polyakov loops, whose couplings were fitted, reweighted with dense
//! determinants of plainly written operators ([figures](../../../docs/measurements/hmc.md)). Seeds are fixed, so that nothing here is a game
//! of chance; every chain has its own, because chains of one seed have the same momenta.
use crate::chains::{level, naive, plan, quarks, solver};
use ferrite::Precision::Double;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::gauge::generate;
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::{Pseudofermions, QuarkOperator, QuarkSmearing};
use ferrite::hmc::functions::{Quarks, Tolerances, rational_functions, rational_functions_of_norm};
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme};
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::trajectory::Chain;
use ferrite::hmc::wilson::WilsonQuarks;
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::one_flavour::OneFlavour;
use ferrite::hmc::wilson::two_flavours::TwoFlavours;
use ferrite::lattice::Lattice;
use ferrite::operators::{
    CloverParams, ExpCloverParams, Operator, Schur, TimeBoundary, TwistedCloverParams, WilsonLike, WilsonParams,
};
use ferrite::solve::Method;
use ferrite::statistics::average;
use ferrite_tests::checks::complement_request;
use ferrite_tests::clover_reference::path;

/// Coupling of Wilson's action in all chains.
const BETA: f64 = 5.2;

/// Mean and error of the plaquette, and of Re tr / 3 of Polyakov loops in space and in time.
type Means = [[f64; 2]; 3];

/// Means without quarks; Polyakov loops are 0 by symmetry.
const QUENCHED: Means = [[0.52542, 0.00024], [0.0, 0.0], [0.0, 0.0]];

/// A chain and what it has to agree with.
struct Setting {
    name: &'static str,
    seed: u64,
    /// Number of trajectories that count.
    trajectories: u32,
    /// Steps of the level of quarks in a trajectory.
    steps: usize,
    friction: Option<f64>,
    parts: fn(&Domain) -> Vec<Box<dyn Monomial>>,
    expected: Means,
}

/// Usual number of trajectories that count, after [`THERMAL`] others.
const TRAJECTORIES: u32 = 400;
const THERMAL: u32 = 30;
/// Largest difference of means in units of its error.
const AGREES: f64 = 4.0;
/// Smallest distance to means without quarks in these units.
const DIFFERS: f64 = 5.0;

/// Plaquette and Polyakov loops.
fn loops(gauge: &HostGauge) -> [f64; 3] {
    let lattice = gauge.lattice();
    let trace = |site: usize, steps: &[(usize, bool)]| {
        let product = path(gauge, site, steps);
        (product[0][0] + product[1][1] + product[2][2]).re / 3.0
    };
    let sites = lattice.volume();
    let mean = |paths: &[Vec<(usize, bool)>]| {
        let sum: f64 =
            (0..sites).flat_map(|site| paths.iter().map(move |steps| (site, steps))).map(|(x, s)| trace(x, s)).sum();
        sum / (sites * paths.len()) as f64
    };
    let planes = (0..4).flat_map(|mu| (mu + 1..4).map(move |nu| (mu, nu)));
    let plaquettes: Vec<_> = planes.map(|(mu, nu)| vec![(mu, true), (nu, true), (mu, false), (nu, false)]).collect();
    let lines: Vec<_> = (0..4).map(|mu| vec![(mu, true); lattice.size()[mu]]).collect();
    [mean(&plaquettes), mean(&lines[..3]), mean(&lines[3..])]
}

fn agrees(setting: &Setting) {
    let Setting { name, seed, trajectories, steps, friction, parts, expected } = *setting;
    // Lattices are too small to be shared among threads; tests are.
    let domain = Domain::single(Cpu::new(Some(1)), Lattice::new([2; 4]).unwrap()).unwrap();
    let links = GaugeField::upload(&domain, &generate::random(domain.section(), seed)).unwrap();
    let parts = parts(&domain);
    let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
    let levels = vec![level(false, parts.len(), scheme, steps), level(true, 0, scheme, 2)];
    let mut plan = plan(GaugeAction::wilson(BETA), if friction.is_some() { 0.5 } else { 1.0 }, levels, false);
    (plan.seed, plan.friction, plan.metropolis_from) = (seed, friction, THERMAL / 2);
    let mut chain = Chain::new(plan, &links, Double, parts).unwrap();
    let (mut found, mut identity, mut weights, mut accepted) = ([const { Vec::new() }; 3], Vec::new(), Vec::new(), 0);
    for number in 1..=THERMAL + trajectories {
        chain.measure_identities(number > THERMAL);
        let outcome = chain.trajectory(number, None, false).unwrap();
        if number > THERMAL {
            let means = loops(&chain.links().own().download().unwrap());
            found.iter_mut().zip(means).for_each(|(all, mean)| all.push(mean));
            identity.push(outcome.identities.unwrap().plaquette.off());
            weights.push((-outcome.delta).exp());
            accepted += u32::from(outcome.accepted);
        }
    }
    println!("{name}: {accepted} of {trajectories} accepted");
    let what = ["plaquette", "Polyakov loop in space", "Polyakov loop in time"];
    for (k, what) in what.into_iter().enumerate() {
        let (mean, [exact, error]) = (average(&found[k]), expected[k]);
        let pull = (mean.mean - exact) / mean.error.hypot(error);
        let quenched = (QUENCHED[k][0] - exact) / mean.error.hypot(error);
        println!(
            "{name}, {what}: {:.4} ± {:.4} (τ = {:.1}), reweighted {exact:.5} ± {error:.5}: pull {pull:+.2}, quenched at {quenched:+.1}",
            mean.mean, mean.error, mean.autocorrelation
        );
        assert!(pull.abs() < AGREES, "{name}, {what}: {:.4} ± {:.4} and {exact} ± {error}", mean.mean, mean.error);
        assert!(
            quenched.abs() > DIFFERS,
            "{name}, {what}: an error of {:.4} would not show missing quarks",
            mean.error
        );
    }
    for (what, values, exact) in [("identity", &identity, 0.0), ("⟨exp(−ΔH)⟩", &weights, 1.0)] {
        let mean = average(values);
        let pull = (mean.mean - exact) / mean.error;
        println!("{name}, {what}: {:.4} ± {:.4}: pull {pull:+.2}", mean.mean, mean.error);
        assert!(pull.abs() < AGREES && mean.error < 0.05, "{name}, {what}: {:.4} ± {:.4}", mean.mean, mean.error);
    }
}

fn wilson(kappa: f64) -> WilsonParams {
    WilsonParams::from_kappa(kappa, TimeBoundary::Antiperiodic)
}
fn wilson_like(operator: impl Into<Operator>, schur: Schur) -> WilsonLike {
    WilsonLike { schur, ..*operator.into().parameters().expect("Wilson-like ones are asked for") }
}
fn clover(kappa: f64, c_sw: f64) -> CloverParams {
    CloverParams::isotropic(wilson(kappa), c_sw, 1.0)
}
/// Two flavours with heavier quarks that split them.
fn two(domain: &Domain, quarks: WilsonQuarks, heavier: Option<WilsonQuarks>) -> Vec<Box<dyn Monomial>> {
    // Molecular dynamics need not be exact: the Metropolis step corrects it.
    let with_tol = |tol| complement_request(Method::CG, Double, tol);
    let solvers = [with_tol(1e-6), with_tol(1e-11)];
    let part = |quarks, heavier, first| -> Box<dyn Monomial> {
        Box::new(TwoFlavours::new(domain, "two".into(), quarks, heavier, solvers.clone(), Double, first).unwrap())
    };
    let mut parts = vec![part(quarks, heavier, 0)];
    parts.extend(heavier.map(|quarks| part(quarks, None, 1)));
    if quarks.has_determinant() {
        parts.push(Box::new(BlockDeterminant::new("blocks".into(), quarks, 2)));
    }
    parts
}
/// One flavour, by a rational function of M̂†M̂.
fn one(domain: &Domain, quarks: WilsonQuarks) -> Vec<Box<dyn Monomial>> {
    let tolerances = Tolerances { dynamics: 1e-5, action: 1e-9 };
    let functions = rational_functions_of_norm(1, 1, [0.02, 6.0], tolerances, rational::approximate_to).unwrap();
    let solvers = [solver(false, 1e-6), solver(false, 1e-11)];
    let part = OneFlavour::new(domain, "one".into(), quarks, functions, solvers, 0, 1).unwrap();
    vec![Box::new(part), Box::new(BlockDeterminant::new("blocks".into(), quarks, 1))]
}
/// Staggered quarks, of two masses at most, on two pseudofermions.
fn staggered(domain: &Domain, operator: QuarkOperator, list: &[Quarks]) -> Vec<Box<dyn Monomial>> {
    let tolerances = Tolerances { dynamics: 1e-5, action: 1e-9 };
    let functions = rational_functions(list, 2, 80.0, tolerances, rational::approximate_to).unwrap();
    let solvers = [solver(false, 1e-6), solver(false, 1e-11)];
    vec![Box::new(Pseudofermions::new(domain, "quarks".into(), operator, functions, solvers, 0, 2).unwrap())]
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn wilson_quarks() {
    let parts = |domain: &Domain| two(domain, WilsonQuarks::new(wilson_like(wilson(0.13), Schur::Symmetric)), None);
    agrees(&Setting {
        name: "wilson",
        seed: 1,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: WILSON,
    });
}
#[test]
fn wilson_quarks_with_partly_kept_momenta() {
    let parts = |domain: &Domain| two(domain, WilsonQuarks::new(wilson_like(wilson(0.13), Schur::Asymmetric)), None);
    agrees(&Setting {
        name: "wilson, friction",
        seed: 2,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: Some(1.5),
        parts,
        expected: WILSON,
    });
}
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn clover_quarks_with_the_symmetric_complement() {
    let parts =
        |domain: &Domain| two(domain, WilsonQuarks::new(wilson_like(clover(0.13, 1.5), Schur::Symmetric)), None);
    agrees(&Setting {
        name: "clover, symmetric",
        seed: 3,
        trajectories: TRAJECTORIES,
        steps: 3,
        friction: None,
        parts,
        expected: CLOVER,
    });
}
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn clover_quarks_with_the_asymmetric_complement() {
    let parts =
        |domain: &Domain| two(domain, WilsonQuarks::new(wilson_like(clover(0.13, 1.5), Schur::Asymmetric)), None);
    agrees(&Setting {
        name: "clover, asymmetric",
        seed: 4,
        trajectories: TRAJECTORIES,
        steps: 3,
        friction: None,
        parts,
        expected: CLOVER,
    });
}
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn clover_quarks_split_by_a_mass() {
    let parts = |domain: &Domain| {
        let of = |kappa| WilsonQuarks::new(wilson_like(clover(kappa, 1.5), Schur::Symmetric));
        two(domain, of(0.13), Some(of(0.11)))
    };
    agrees(&Setting {
        name: "clover, split by a mass",
        seed: 5,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: CLOVER,
    });
}
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn clover_quarks_split_by_a_twist() {
    let parts = |domain: &Domain| {
        let quarks = WilsonQuarks::new(wilson_like(clover(0.13, 1.5), Schur::Asymmetric));
        two(domain, quarks, Some(WilsonQuarks { twist: 0.5, ..quarks }))
    };
    agrees(&Setting {
        name: "clover, split by a twist",
        seed: 6,
        trajectories: TRAJECTORIES,
        steps: 3,
        friction: None,
        parts,
        expected: CLOVER,
    });
}
#[test]
fn one_flavour_of_clover_quarks() {
    let parts = |domain: &Domain| one(domain, WilsonQuarks::new(wilson_like(clover(0.13, 1.5), Schur::Symmetric)));
    agrees(&Setting {
        name: "one flavour",
        seed: 7,
        trajectories: 2 * TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: ONE_CLOVER,
    });
}
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn exponential_clover_quarks() {
    let parts = |domain: &Domain| {
        two(domain, WilsonQuarks::new(wilson_like(ExpCloverParams(clover(0.13, 1.5)), Schur::Symmetric)), None)
    };
    agrees(&Setting {
        name: "exponential clover",
        seed: 8,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: EXPONENTIAL,
    });
}
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn twisted_clover_quarks() {
    let parts = |domain: &Domain| {
        let operator = TwistedCloverParams { clover: clover(0.13, 1.5), mu: 0.3 };
        two(domain, WilsonQuarks::new(wilson_like(operator, Schur::Symmetric)), None)
    };
    agrees(&Setting {
        name: "twisted clover",
        seed: 9,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: TWISTED,
    });
}
#[test]
fn clover_quarks_on_stout_links() {
    let parts = |domain: &Domain| {
        let quarks = WilsonQuarks::new(wilson_like(clover(0.12, 1.2), Schur::Symmetric));
        two(domain, WilsonQuarks { stout: Some(STOUT), ..quarks }, None)
    };
    agrees(&Setting {
        name: "clover on stout links",
        seed: 10,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: STOUT_CLOVER,
    });
}
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn four_staggered_flavours() {
    let parts = |domain: &Domain| staggered(domain, naive(), &[quarks(0.2, "4")]);
    agrees(&Setting {
        name: "naive, 4",
        seed: 11,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: NAIVE_4,
    });
}
#[test]
fn two_and_one_staggered_flavours() {
    let parts = |domain: &Domain| staggered(domain, naive(), &[quarks(0.2, "2"), quarks(0.4, "1")]);
    agrees(&Setting {
        name: "naive, 2 + 1",
        seed: 12,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: NAIVE_2_1,
    });
}
#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn staggered_quarks_on_stout_links() {
    let parts = |domain: &Domain| {
        let operator = QuarkOperator { smearing: QuarkSmearing::Stout(STOUT), ..naive() };
        staggered(domain, operator, &[quarks(0.3, "4")])
    };
    agrees(&Setting {
        name: "naive on stout links",
        seed: 13,
        trajectories: TRAJECTORIES,
        steps: 2,
        friction: None,
        parts,
        expected: STOUT_NAIVE,
    });
}

const STOUT: StoutSmearing = StoutSmearing { rho: 0.1, levels: 1, spatial: false };

const WILSON: Means = [[0.57210, 0.00020], [-0.23354, 0.00026], [0.55126, 0.00068]];
const CLOVER: Means = [[0.58232, 0.00020], [-0.24572, 0.00026], [0.57185, 0.00072]];
const ONE_CLOVER: Means = [[0.55839, 0.00020], [-0.20374, 0.00043], [0.45567, 0.00182]];
const EXPONENTIAL: Means = [[0.57252, 0.00021], [-0.23380, 0.00024], [0.55378, 0.00062]];
const TWISTED: Means = [[0.58133, 0.00021], [-0.24417, 0.00025], [0.57036, 0.00071]];
const STOUT_CLOVER: Means = [[0.57113, 0.00020], [-0.23393, 0.00026], [0.54474, 0.00066]];
const NAIVE_4: Means = [[0.56714, 0.00019], [-0.20358, 0.00040], [0.47213, 0.00147]];
const NAIVE_2_1: Means = [[0.55718, 0.00021], [-0.18515, 0.00057], [0.41244, 0.00225]];
const STOUT_NAIVE: Means = [[0.55862, 0.00022], [-0.20130, 0.00042], [0.45761, 0.00152]];
