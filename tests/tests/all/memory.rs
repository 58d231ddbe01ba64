//! The memory that `ferrite check` predicts is as much as runs take, on one process and on several.
use crate::spy::Spy;
use comms::{ProcessGrid, Threads};
use ferrite::FermionKind;
use ferrite::domain::Domain;
use ferrite::domain::Part;
use ferrite::field::host::{ColourVector, Fermion, HostField, HostGauge, Spinor};
use ferrite::field::{FullField, GaugeField};
use ferrite::gauge::generate;
use ferrite::halo::{Exchanges, Needs};
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::fermions::{Pseudofermions, QuarkOperator, ShiftedSolver};
use ferrite::hmc::functions::{Quarks, Tolerances, rational_functions};
use ferrite::hmc::integrator::{Scheme, Unitarise};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::trajectory::{Chain, LevelPlan, Plan};
use ferrite::lattice::Lattice;
use ferrite::observables::condensate::{condensate, noise};
use ferrite::observables::memory::Ensemble;
use ferrite::operators::Operator;
use ferrite::operators::fat_links::PathCoefficients;
use ferrite::operators::{CloverParams, StaggeredOperator, StaggeredParams, TimeBoundary, WilsonParams};
use ferrite::solve::{Configuration, Correction, Method, Request, Schwarz, ShiftStrategy};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::cut;

/// Grids, with the extents of a part: some thin, some cut in all directions.
const CASES: [([usize; 4], [usize; 4]); 4] = [
    ([1, 1, 1, 1], [4, 4, 4, 8]),
    ([1, 1, 1, 2], [4, 4, 6, 4]),
    ([2, 1, 2, 1], [4, 6, 4, 4]),
    ([2, 2, 2, 2], [4, 4, 4, 4]),
];

/// Does `work` on every process and holds what it allocated against what was predicted: no less, and not more than a few
/// times as much, which would keep runs from starting that fit.
fn check(
    cases: &[([usize; 4], [usize; 4])],
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
fn solves_of_wilson_quarks_take_what_is_foretold() {
    use Precision::{Double, Half, Single};
    let wilson = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let clover = Operator::from(CloverParams::isotropic(wilson, 1.0, 1.0));
    let plain = Request { tol: 1e-8, reconstruction: LinkStorage::of(12), ..Request::new(wilson) };
    let defect = Correction::Defect { inner_tol: 0.1 };
    let requests = [
        ("Wilson, BiCGstab in half", Request { precision: Half, ..plain }),
        (
            "Wilson, CG in single around single",
            Request { method: Method::Cg, precision: Single, outer: Single, tol: 1e-5, ..plain },
        ),
        ("clover, BiCGstab in single", Request { operator: clover, precision: Single, ..plain }),
        ("clover, defect correction", Request { operator: clover, correction: defect, precision: Half, ..plain }),
        (
            "clover, GCR-DD",
            Request {
                operator: clover,
                method: Method::GcrDd,
                precision: Single,
                schwarz: Schwarz { k_max: 4, steps: 4, ..Default::default() },
                ..plain
            },
        ),
        ("Wilson in double", Request { precision: Double, reconstruction: LinkStorage::FULL, ..plain }),
    ];
    for (name, request) in requests {
        for nrhs in [1, 4] {
            let predicted = |local, grid: &ProcessGrid| {
                (request.memory(local, grid, nrhs, None), Some(request.exchanges(local, grid, nrhs, None)))
            };
            check(&CASES, (&format!("{name}, {nrhs}"), 2.5), predicted, |domain, gauge| {
                let sources = sources::<Spinor>(domain, nrhs);
                Configuration::new(domain, gauge).solve(&sources, None, &request, &mut ()).unwrap();
            });
        }
    }
}

#[test]
fn overlapping_domains_take_what_is_foretold() {
    let wilson = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let schwarz = Schwarz { k_max: 4, steps: 4, overlap: 2, ..Default::default() };
    let request = Request { method: Method::GcrDd, schwarz, tol: 1e-8, ..Request::new(wilson) };
    let predicted = |local, grid: &ProcessGrid| {
        (request.memory(local, grid, 2, None), Some(request.exchanges(local, grid, 2, None)))
    };
    check(&CASES, ("overlapping domains", 2.5), predicted, |domain, gauge| {
        let sources = sources::<Spinor>(domain, 2);
        let alone = domain.grid().size() == 1;
        let request = if alone { Request { schwarz: Schwarz { overlap: 0, ..schwarz }, ..request } } else { request };
        Configuration::new(domain, gauge).solve(&sources, None, &request, &mut ()).unwrap();
    });
}

#[test]
fn solves_of_staggered_quarks_take_what_is_foretold() {
    use Precision::{Double, Half, Single};
    let params = StaggeredParams::new(0.4, TimeBoundary::Antiperiodic);
    for operator in
        [StaggeredOperator::naive(params), StaggeredOperator::asqtad(params, 0.9), StaggeredOperator::hisq(params, 0.0)]
    {
        let name = operator.definition.title;
        let plain = Request { tol: 1e-8, reconstruction: LinkStorage::FULL, ..Request::new(operator) };
        for (precision, nrhs) in [(Double, 1), (Single, 4), (Half, 3)] {
            let request = Request { precision, ..plain };
            let predicted = |local, grid: &ProcessGrid| {
                (request.memory(local, grid, nrhs, None), Some(request.exchanges(local, grid, nrhs, None)))
            };
            check(&CASES, (&format!("{name} in {precision:?}"), 2.5), predicted, |domain, gauge| {
                let sources = sources(domain, nrhs);
                Configuration::new(domain, gauge).solve::<ColourVector>(&sources, None, &request, &mut ()).unwrap();
            });
        }
        let masses = [0.4, 0.5, 0.7];
        let request = Request { precision: Single, ..plain };
        let predicted = |local, grid: &ProcessGrid| {
            let systems = Some(masses.len());
            (request.memory(local, grid, 2, systems), Some(request.exchanges(local, grid, 2, systems)))
        };
        check(&CASES, (&format!("{name}, three masses"), 2.5), predicted, |domain, gauge| {
            let (sources, configuration) = (sources::<ColourVector>(domain, 2), Configuration::new(domain, gauge));
            configuration.solve_masses(&sources, &masses, ShiftStrategy::MultiShift, &request, &mut ()).unwrap();
        });
    }
}

#[test]
fn ensembles_take_what_is_foretold() {
    for (name, paths) in [("naive", None), ("asqtad", Some(PathCoefficients::asqtad(0.9)))] {
        let ensemble = Ensemble { single_links: false, pseudofermions: 2, improved: paths.is_some(), noise: 3 };
        let operator = QuarkOperator { params: StaggeredParams::new(0.0, TimeBoundary::Antiperiodic), paths };
        let predicted =
            |ensemble: Ensemble| move |local, grid: &ProcessGrid| (ensemble.memory(Part::new(local, grid)), None);
        check(&CASES[..3], (&format!("RHMC, {name}"), 3.5), predicted(ensemble), |domain, gauge| {
            trajectory(domain, gauge, operator, Precision::Double)
        });
        let single = Ensemble { single_links: true, ..ensemble };
        check(&CASES[..3], (&format!("RHMC in single, {name}"), 3.5), predicted(single), |domain, gauge| {
            trajectory(domain, gauge, operator, Precision::Single)
        });
    }
}

/// A trajectory of two steps, and a condensate.
fn trajectory(domain: &Domain, gauge: &HostGauge, operator: QuarkOperator, precision: Precision) {
    let thin = GaugeField::upload(domain, gauge).unwrap();
    let quarks = [("2", 0.3), ("1", 0.5)].map(|(flavours, mass)| Quarks { mass, flavours: flavours.parse().unwrap() });
    let tolerances = Tolerances { dynamics: 1e-5, action: 1e-9 };
    let functions = rational_functions(&quarks, 2, 60.0, tolerances, rational::approximate_to).unwrap();
    let solver = |single: bool, tol: f64| ShiftedSolver { single, tol: vec![tol], max_iterations: 10_000 };
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
        metropolis_from: 1,
    };
    let mut chain = Chain::new(plan, &thin, precision, vec![group]).unwrap();
    drop(thin);
    chain.trajectory(1, None, false).unwrap();
    let mut noises = FullField::zero(domain, FermionKind::Staggered, Precision::Double, 3).unwrap();
    noise(&mut noises, 0, 1, 1).unwrap();
    let links = EvolvingLinks::new(&GaugeField::upload(domain, gauge).unwrap(), precision).unwrap();
    condensate(&links, &operator, 0.3, &noises, 1e-8).unwrap();
}
