//! The memory that `ferrite check` predicts is as much as runs take, on one process and on several.
use crate::chains::quarks;
use crate::spy::Spy;
use comms::{ProcessGrid, Threads};
use ferrite::domain::Domain;
use ferrite::domain::Part;
use ferrite::field::host::{ColourVector, Fermion, HostField, HostGauge, Spinor};
use ferrite::field::{FieldShape, FullField, GaugeField};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, Projection, SumsOfStaples};
use ferrite::gauge::generate;
use ferrite::halo::{Exchanges, Needs};
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::{Pseudofermions, QuarkOperator, QuarkSmearing, RationalFunctions, ShiftedSolver};
use ferrite::hmc::functions::{Tolerances, rational_functions, rational_functions_of_norm};
use ferrite::hmc::integrator::{Scheme, Unitarise};
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::trajectory::{Chain, LevelPlan, Plan};
use ferrite::hmc::wilson::WilsonQuarks;
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::one_flavour::OneFlavour;
use ferrite::hmc::wilson::two_flavours::TwoFlavours;
use ferrite::lattice::Lattice;
use ferrite::multigrid::{CycleParams, MultigridParams};
use ferrite::observables::condensate::{condensate, noise};
use ferrite::observables::memory::{EnsembleProperties, WilsonVectors};
use ferrite::operators::fat_links::PathCoefficients;
use ferrite::operators::{
    CloverParams, ExpCloverParams, LinkDependence, Operator, Schur, StaggeredOperator, StaggeredParams, TimeBoundary,
    WilsonLike, WilsonParams,
};
use ferrite::solve::{Configuration, Correction, Method, Request, Schwarz, ShiftStrategy};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::checks::{THETA, complement_request};
use ferrite_tests::cut;
use std::fmt::Debug;
use std::sync::LazyLock;

/// A grid, with the extents of a part.
type Case = ([usize; 4], [usize; 4]);

/// Some thin, some cut in all directions.
const CASES: [Case; 4] = [
    ([1, 1, 1, 1], [4, 4, 4, 8]),
    ([1, 1, 1, 2], [4, 4, 6, 4]),
    ([2, 1, 2, 1], [4, 6, 4, 4]),
    ([2, 2, 2, 2], [4, 4, 4, 4]),
];

/// One of so many cases, others for the next number.
fn share(one_of: usize, number: usize) -> Vec<Case> {
    CASES.into_iter().skip(number % one_of).step_by(one_of).collect()
}

/// Does `work` on every process and holds what it allocated against what was predicted: no less, and not more than a few
/// times as much, which would keep runs from starting that fit.
fn check(
    cases: &[Case],
    (what, most): (&str, f64),
    predicted: impl Fn(Lattice, &ProcessGrid) -> (Needs, Option<Exchanges>) + Sync,
    work: impl Fn(&Domain, &HostGauge) + Sync,
) {
    for &(grid, local) in cases {
        let lattice = Lattice::new(std::array::from_fn(|mu| grid[mu] * local[mu])).unwrap();
        let gauge = generate::weak_field(lattice, 5, 0.3);
        let (needs, exchanges) = predicted(Lattice::new(local).unwrap(), &ProcessGrid::new(grid).unwrap());
        let needed: usize = needs.iter().map(|(_, bytes)| bytes).sum();
        let peaks = Threads::run(grid.iter().product(), |world| {
            let spy = Spy::new(1);
            let domain = cut::domain(spy.clone(), lattice, grid, world).unwrap();
            work(&domain, &cut::links_of(&domain.section(), &gauge));
            Ok::<_, std::convert::Infallible>([spy.device().peak(), spy.pinned().peak()])
        });
        for [device, pinned] in peaks.unwrap() {
            let share = needed as f64 / device as f64;
            assert!(
                device > 0 && device <= needed,
                "{what} on {grid:?}: {device} bytes instead of {needed}: {needs:?}"
            );
            assert!(share < most, "{what} on {grid:?}: only {device} bytes instead of {needed}: {needs:?}");
            if let Some(exchanges) = &exchanges {
                assert!(pinned <= exchanges.pinned_bytes(), "{what} on {grid:?}: {pinned} bytes for messages");
            }
        }
    }
}

/// [`check`] of solves of random sources.
fn check_solves<T: Fermion + Debug>(cases: &[Case], (what, most): (&str, f64), request: &Request, nrhs: usize) {
    let predicted = |local, grid: &ProcessGrid| {
        (request.memory(local, grid, nrhs, None), Some(request.exchanges(local, grid, nrhs, None)))
    };
    check(cases, (what, most), predicted, |domain, gauge| {
        let sources = sources::<T>(domain, nrhs);
        Configuration::new(domain, gauge).solve(&sources, None, request, &mut ()).unwrap();
    });
}

/// Random sources; of many the first is zero, and done at once, so that the batch becomes smaller.
fn sources<T: Fermion>(domain: &Domain, n: usize) -> Vec<HostField<T>> {
    let random = (0..n as u64).map(|k| generate::random_source(domain.section(), 10 + k));
    let mut all: Vec<_> = random.collect();
    if n > 2 {
        all[0] = HostField::zero(domain.local());
    }
    all
}

#[test]
fn solves_of_wilson_quarks_take_what_is_predicted() {
    // Each with one right-hand side on two of the grids, and with four on the other two.
    wilson_solves(2);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn solves_of_wilson_quarks_take_what_is_predicted_on_every_grid() {
    wilson_solves(1);
}

fn wilson_solves(one_of: usize) {
    use Precision::{Double, Half, Single};
    let wilson = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let clover = Operator::from(CloverParams::isotropic(wilson, 1.0, 1.0));
    let plain = Request { tol: 1e-8, reconstruction: LinkStorage::of(12), ..Request::new(wilson) };
    let defect = Correction::Defect { inner_tol: 0.1 };
    let requests = [
        ("Wilson, BiCGstab in half", Request { precision: Half, ..plain.clone() }),
        (
            "Wilson, CG in single around single",
            Request { method: Method::CG, precision: Single, outer: Single, tol: 1e-5, ..plain.clone() },
        ),
        ("clover, BiCGstab in single", Request { operator: clover.clone(), precision: Single, ..plain.clone() }),
        (
            "clover, defect correction",
            Request { operator: clover.clone(), correction: defect, precision: Half, ..plain.clone() },
        ),
        ("Wilson, IDR(4) in single", Request { method: Method::IDR, precision: Single, ..plain.clone() }),
        (
            "clover, GCR-DD",
            Request {
                operator: clover.clone(),
                method: Method::GCR_DD,
                precision: Single,
                schwarz: Schwarz { k_max: 4, steps: 4, ..Default::default() },
                ..plain.clone()
            },
        ),
        ("Wilson in double", Request { precision: Double, reconstruction: LinkStorage::FULL, ..plain.clone() }),
        // Asked for with 12 reals, which do not do.
        (
            "clover, twisted boundary",
            Request { operator: clover.with_theta(THETA), precision: Single, ..plain.clone() },
        ),
    ];
    for (k, (name, request)) in requests.into_iter().enumerate() {
        for (j, nrhs) in [1, 4].into_iter().enumerate() {
            check_solves::<Spinor>(&share(one_of, k + j), (&format!("{name}, {nrhs}"), 2.5), &request, nrhs);
        }
    }
}

/// Smeared links, and gradients of stout links.
#[test]
fn smearing_takes_what_is_predicted() {
    let double = Precision::Double;
    // Links as they come from the host, and messages.
    let with_links = |local: Lattice, grid: &ProcessGrid, more: usize| {
        let part = Part::new(local, grid);
        let mut needs = vec![("links", part.links_bytes(double)), ("transfer", 576 * local.volume()), ("more", more)];
        needs.extend(Exchanges::of(part).border(double).needs());
        (needs, None)
    };
    for spatial in [false, true] {
        let smearing = StoutSmearing { rho: 0.1, levels: 2, spatial };
        let predicted = |local, grid: &ProcessGrid| {
            let part = Part::new(local, grid);
            let gradient = part.links_bytes(double) + smearing.gradient_bytes(part, double);
            let smear = StoutSmearing::workspace_bytes(part, double);
            with_links(local, grid, smearing.levels_bytes(part, double) + gradient.max(smear))
        };
        check(&CASES[..3], (&format!("{smearing:?}"), 1.6), predicted, |domain, gauge| {
            let stout = smearing.levels(&GaugeField::upload(domain, gauge).unwrap()).unwrap();
            stout.thin_gradient(stout.smeared().copied().unwrap()).unwrap();
        });
        for sums in [SumsOfStaples::Ape(0.5), SumsOfStaples::USUAL_HYP] {
            let smearing = ProjectedSmearing { sums, levels: 1, spatial, projection: Projection::default() };
            let predicted = |local, grid: &ProcessGrid| {
                with_links(local, grid, (smearing.fields() - 1) * Part::new(local, grid).links_bytes(double))
            };
            check(&CASES[..2], (&format!("{smearing:?}"), 1.6), predicted, |domain, gauge| {
                smearing.smeared(&GaugeField::upload(domain, gauge).unwrap()).unwrap().download().unwrap();
            });
        }
    }
}

#[test]
fn overlapping_domains_take_what_is_predicted() {
    let wilson = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let schwarz = Schwarz { k_max: 4, steps: 4, overlap: 2, ..Default::default() };
    let request = Request { method: Method::GCR_DD, schwarz, tol: 1e-8, ..Request::new(wilson) };
    let predicted = |local, grid: &ProcessGrid| {
        (request.memory(local, grid, 2, None), Some(request.exchanges(local, grid, 2, None)))
    };
    check(&CASES, ("overlapping domains", 2.5), predicted, |domain, gauge| {
        let sources = sources::<Spinor>(domain, 2);
        let alone = domain.grid().size() == 1;
        let request = if alone {
            Request { schwarz: Schwarz { overlap: 0, ..schwarz }, ..request.clone() }
        } else {
            request.clone()
        };
        Configuration::new(domain, gauge).solve(&sources, None, &request, &mut ()).unwrap();
    });
}

#[test]
fn solves_with_multigrid_take_what_is_predicted() {
    let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let clover = Operator::from(CloverParams::isotropic(wilson, 1.0, 1.0));
    let cases = [([1, 1, 1, 1], [4, 4, 8, 8]), ([1, 1, 1, 2], [4, 4, 4, 8]), ([2, 1, 2, 1], [4, 4, 4, 8])];
    // With one right-hand side setup takes most, with many the solve does.
    for (nrhs, precision, pre_smoothing) in
        [(1, Precision::Single, 0), (12, Precision::Half, 0), (12, Precision::Half, 1)]
    {
        let blocks = [Some([2; 4]), Some([1, 1, 1, 2]), None];
        let cycle = CycleParams { pre_smoothing, ..Default::default() };
        let precision = Some(precision);
        let multigrid = MultigridParams { vectors: 8, blocks, improvements: 1, precision, cycle, ..Default::default() };
        let request = Request {
            method: Method::MULTIGRID,
            multigrid,
            precision: Precision::Single,
            tol: 1e-8,
            ..Request::new(&clover)
        };
        let cases = if pre_smoothing == 0 { &cases[..] } else { &cases[..1] };
        check_solves::<Spinor>(cases, (&format!("multigrid, {nrhs}, {cycle:?}"), 2.0), &request, nrhs);
    }
}

#[test]
fn solves_of_staggered_quarks_take_what_is_predicted() {
    // The four solves of each operator on a grid each.
    staggered_solves(CASES.len());
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn solves_of_staggered_quarks_take_what_is_predicted_on_every_grid() {
    staggered_solves(1);
}

fn staggered_solves(one_of: usize) {
    use Precision::{Double, Half, Single};
    let params = StaggeredParams::new(0.4, TimeBoundary::Antiperiodic);
    let operators = [
        StaggeredOperator::naive(params),
        StaggeredOperator::asqtad(params, 0.9),
        StaggeredOperator::hisq(params, 0.0),
    ];
    for (k, operator) in operators.into_iter().enumerate() {
        let name = operator.definition.title;
        let plain = Request { tol: 1e-8, reconstruction: LinkStorage::FULL, ..Request::new(operator) };
        for (j, (precision, nrhs)) in [(Double, 1), (Single, 4), (Half, 3)].into_iter().enumerate() {
            let request = Request { precision, ..plain.clone() };
            let what = format!("{name} in {precision:?}");
            check_solves::<ColourVector>(&share(one_of, k + j), (&what, 2.5), &request, nrhs);
        }
        let masses = [0.4, 0.5, 0.7];
        let operator = StaggeredOperator { theta: THETA, ..operator };
        let request = Request {
            precision: Single,
            reconstruction: LinkStorage::of(12),
            ..Request { operator: operator.into(), ..plain }
        };
        let predicted = |local, grid: &ProcessGrid| {
            let systems = Some(masses.len());
            (request.memory(local, grid, 2, systems), Some(request.exchanges(local, grid, 2, systems)))
        };
        check(
            &share(one_of, k + 3),
            (&format!("{name}, three masses, twisted boundary"), 2.5),
            predicted,
            |domain, gauge| {
                let (sources, configuration) = (sources::<ColourVector>(domain, 2), Configuration::new(domain, gauge));
                configuration.solve_masses(&sources, &masses, ShiftStrategy::MultiShift, &request, &mut ()).unwrap();
            },
        );
    }
}

#[test]
fn ensembles_take_what_is_predicted() {
    for (name, smearing) in [
        ("naive", QuarkSmearing::Thin),
        // Of so many levels that these are most of what is taken.
        ("stout", QuarkSmearing::Stout(StoutSmearing { rho: 0.1, levels: 12, spatial: false })),
        ("asqtad", QuarkSmearing::Paths(PathCoefficients::asqtad(0.9))),
        ("HISQ", QuarkSmearing::Hisq { epsilon: -0.1 }),
    ] {
        let (improved, hisq) = (smearing.is_improved(), matches!(smearing, QuarkSmearing::Hisq { .. }));
        let cases = if let QuarkSmearing::Stout(_) = smearing { &CASES[..1] } else { &CASES[..3] };
        let stout_levels = if let QuarkSmearing::Stout(smearing) = smearing { smearing.levels } else { 0 };
        let ensemble = EnsembleProperties {
            single_links: false,
            pseudofermions: 2,
            improved,
            hisq,
            operators: 1,
            noise: 3,
            stout_levels,
            identities: true,
            wilson: None,
        };
        let periodic = QuarkOperator::new(StaggeredParams::new(0.0, TimeBoundary::Antiperiodic), smearing);
        let twisted = QuarkOperator { theta: THETA, ..periodic };
        let predicted = |ensemble: EnsembleProperties| {
            move |local, grid: &ProcessGrid| (ensemble.memory(Part::new(local, grid)), None)
        };
        // Both take long with HISQ, and differ in the links that evolve only.
        if !hisq {
            check(cases, (&format!("RHMC, {name}"), 3.5), predicted(ensemble.clone()), |domain, gauge| {
                trajectory(domain, gauge, periodic, Precision::Double)
            });
            let what = format!("RHMC, {name}, twisted boundary");
            check(&CASES[1..2], (&what, 3.5), predicted(ensemble.clone()), |domain, gauge| {
                trajectory(domain, gauge, twisted, Precision::Double)
            });
        }
        let single = EnsembleProperties { single_links: true, ..ensemble };
        check(cases, (&format!("RHMC in single, {name}"), 3.5), predicted(single), |domain, gauge| {
            trajectory(domain, gauge, periodic, Precision::Single)
        });
    }
}

#[test]
fn ensembles_of_wilson_quarks_take_what_is_predicted() {
    let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let clover = CloverParams::isotropic(wilson, 1.5, 1.0).with_schur(Schur::Symmetric);
    let plain = WilsonLike::from(wilson);
    let exponential = ExpCloverParams(CloverParams::isotropic(wilson, 1.5, 1.0)).with_schur(Schur::Symmetric);
    for (name, operator, levels, rational) in [
        ("wilson", plain, 0, true),
        ("clover", clover, 2, false),
        ("clover, one flavour", clover, 0, true),
        ("clover, multigrid", clover, 0, false),
        ("exponential clover", exponential, 0, false),
    ] {
        let multigrid = name.contains("multigrid").then(MultigridParams::default);
        let guesses = if rational { 0 } else { 2 };
        let vectors = WilsonVectors {
            pseudofermions: if rational { 1 } else { 2 },
            rational: usize::from(rational),
            exact: !rational,
            single: true,
            has_blocks: operator.dependence() != LinkDependence::None,
            exponential: matches!(operator.dependence(), LinkDependence::Exponential(_)),
            guesses: 2 * guesses,
            multigrid: multigrid.into_iter().collect(),
        };
        let ensemble = EnsembleProperties {
            single_links: false,
            pseudofermions: 0,
            improved: false,
            hisq: false,
            operators: 0,
            noise: 0,
            stout_levels: levels,
            identities: true,
            wilson: Some(vectors),
        };
        let predicted = |local, grid: &ProcessGrid| (ensemble.memory(Part::new(local, grid)), None);
        let stout = (levels > 0).then_some(StoutSmearing { rho: 0.1, levels, spatial: false });
        check(&CASES[..2], (&format!("HMC, {name}"), 3.5), predicted, |domain, gauge| {
            let quarks = WilsonQuarks { stout, ..WilsonQuarks::new(operator) };
            wilson_trajectory(domain, gauge, quarks, (rational, guesses), multigrid);
        });
    }
}

/// A trajectory of two steps, of two flavours split by a twist or of one.
fn wilson_trajectory(
    domain: &Domain,
    gauge: &HostGauge,
    quarks: WilsonQuarks,
    (rational, guesses): (bool, usize),
    multigrid: Option<MultigridParams>,
) {
    let links = GaugeField::upload(domain, gauge).unwrap();
    let two = |quarks, heavier, first| -> Box<dyn Monomial> {
        let method = match (multigrid, first) {
            (None, _) => Method::CG,
            (Some(_), 0) => Method::MULTIGRID,
            (Some(_), _) => Method::BICGSTAB,
        };
        let multigrid = multigrid.unwrap_or_default();
        let solver = Request { multigrid, ..complement_request(method, Precision::Single, 1e-8) };
        let part = TwoFlavours::new(
            domain,
            "two".into(),
            quarks,
            heavier,
            [solver.clone(), solver.clone()],
            Precision::Single,
            first,
        );
        Box::new(part.unwrap().with_guesses(guesses))
    };
    let mut parts: Vec<Box<dyn Monomial>> = if rational {
        static FUNCTIONS: LazyLock<RationalFunctions> = LazyLock::new(|| {
            let tolerances = Tolerances { dynamics: 1e-6, action: 1e-9 };
            rational_functions_of_norm(1, 1, [0.01, 8.0], tolerances, rational::approximate_to).unwrap()
        });
        let solver =
            |single: bool, tol: f64| ShiftedSolver { single, tol: vec![tol], together: false, max_iterations: 10_000 };
        let solvers = [solver(true, 1e-5), solver(false, 1e-10)];
        vec![Box::new(OneFlavour::new(domain, "one".into(), quarks, FUNCTIONS.clone(), solvers, 0, 1).unwrap())]
    } else {
        let heavier = WilsonQuarks { twist: 0.3, ..quarks };
        vec![two(quarks, Some(heavier), 0), two(heavier, None, 1)]
    };
    parts.push(Box::new(BlockDeterminant::new("blocks".into(), quarks, 2)));
    let quarks = (0..parts.len()).collect();
    let level = LevelPlan { gauge: true, quarks, scheme: Scheme::Leapfrog, steps: 2 };
    let plan = Plan {
        gauge: GaugeAction::wilson(5.5),
        single_gauge_force: true,
        length: 0.04,
        levels: vec![level],
        unitarise: Unitarise::Always,
        seed: 1,
        friction: None,
        metropolis_from: 1,
    };
    let mut chain = Chain::new(plan, &links, Precision::Double, parts).unwrap();
    chain.measure_identities(true);
    drop(links);
    chain.trajectory(1, None, false).unwrap();
}

/// A trajectory of two steps, and a condensate.
fn trajectory(domain: &Domain, gauge: &HostGauge, operator: QuarkOperator, precision: Precision) {
    let links = GaugeField::upload(domain, gauge).unwrap();
    // To find them takes longer than a trajectory: all processes have the same ones.
    static FUNCTIONS: LazyLock<RationalFunctions> = LazyLock::new(|| {
        let quarks = [quarks(0.3, "2"), quarks(0.5, "1")];
        let tolerances = Tolerances { dynamics: 1e-5, action: 1e-9 };
        rational_functions(&quarks, 2, 60.0, tolerances, rational::approximate_to).unwrap()
    });
    let functions = FUNCTIONS.clone();
    let solver =
        |single: bool, tol: f64| ShiftedSolver { single, tol: vec![tol], together: false, max_iterations: 10_000 };
    let solvers = [solver(true, 1e-5), solver(false, 1e-10)];
    let group = Pseudofermions::new(domain, "quarks".into(), operator, functions, solvers, 0, 2).unwrap();
    let level = LevelPlan { gauge: true, quarks: vec![0], scheme: Scheme::Leapfrog, steps: 2 };
    let plan = Plan {
        gauge: GaugeAction::one_loop_symanzik(6.5, 0.862),
        // There is no other for links in single.
        single_gauge_force: precision == Precision::Single,
        length: 0.04,
        levels: vec![level],
        unitarise: Unitarise::Always,
        seed: 1,
        friction: None,
        metropolis_from: 1,
    };
    let mut chain = Chain::new(plan, &links, precision, vec![Box::new(group)]).unwrap();
    chain.measure_identities(true);
    drop(links);
    chain.trajectory(1, None, false).unwrap();
    let mut noises = FullField::zero(domain, FieldShape::colours(Precision::Double, 3)).unwrap();
    noise(&mut noises, 0, 1, 1).unwrap();
    condensate(chain.links(), &operator, 0.3, &noises, 1e-8).unwrap();
}
