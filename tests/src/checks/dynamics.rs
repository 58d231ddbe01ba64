//! Molecular dynamics on a backend against the same on the CPU, whose forces are derivatives and MILC's in the tests.
use super::wilson_like::THETA;
use crate::report::{CheckReport, Scope, Tolerance};
use ferrite::Precision;
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::Domain;
use ferrite::field::host::{HostColour, HostGauge};
use ferrite::field::{FieldShape, FullField, GaugeField};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, Projection, SumsOfStaples};
use ferrite::gauge::generate;
use ferrite::gauge::loops::{closed_loops, mean_complex_traces, mean_traces, sums_of_paths};
use ferrite::hmc::action::{AnisotropicLattice, GaugeAction};
use ferrite::hmc::fermions::{Pseudofermions, QuarkOperator, QuarkSmearing, RationalFunctions, ShiftedSolver};
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::functions::{Quarks, Tolerances, rational_functions};
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme, Unitarise};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::paths::kick_by_paths;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::trajectory::{Chain, LevelPlan, Plan};
use ferrite::hmc::wilson::WilsonQuarks;
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::one_flavour::OneFlavour;
use ferrite::hmc::wilson::two_flavours::TwoFlavours;
use ferrite::hmc::{HmcError, hop_force, spectrum};
use ferrite::lattice::Lattice;
use ferrite::observables::condensate::{condensate, noise};
use ferrite::observables::flow::{Flow, FlowAction};
use ferrite::observables::polyakov::polyakov_loop;
use ferrite::operators::fat_links::{FirstLevel, PathCoefficients};
use ferrite::operators::{
    BoundaryAngles, CloverParams, ExpCloverParams, LinkDependence, NeighbourHops, Operator, Schur, StaggeredParams,
    StaggeredPhases, TimeBoundary, TwistedCloverParams, TwistedParams, WilsonLike, WilsonParams, covariant_shift,
};
use ferrite::solve::{Method, Request};
use num_complex::Complex64;
use rational::{Fraction, Interval, Power};

type Result<T = ()> = std::result::Result<T, HmcError>;

/// Returns how systems with M̂ are solved in molecular dynamics; the operator is that of the quarks.
pub fn complement_request(method: &'static Method, precision: Precision, tol: f64) -> Request {
    Request { method, precision, tol, ..Request::new(WilsonParams::from_mass(0.0, TimeBoundary::Periodic)) }
}

/// Results by name: links, fields, numbers and residuals.
#[derive(Default)]
struct Found {
    /// Links, each with the largest relative difference allowed; 0 for equal bits.
    links: Vec<(String, HostGauge, f64)>,
    colours: Vec<(String, HostColour)>,
    /// Numbers, each with the largest difference allowed.
    numbers: Vec<(String, f64, f64)>,
    /// Residuals of solutions that were requested to 1e-10.
    residuals: Vec<(String, f64)>,
}

/// Compares molecular dynamics on `backend` with the CPU.
pub fn dynamics(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    for (k, size) in [[2, 4, 6, 8], [4, 6, 2, 4], [8, 8, 8, 4]].into_iter().enumerate() {
        let lattice = Lattice::new(size).expect("even extents");
        let gauge = generate::weak_field(lattice, 40 + k as u64, 0.3);
        one(backend, &gauge, Precision::Double, report)?;
        one(backend, &gauge, Precision::Single, report)?;
    }
    Ok(())
}

fn one(backend: &dyn Backend, gauge: &HostGauge, precision: Precision, report: &mut CheckReport) -> Result {
    let scope = Scope { format: format!("links in {precision}"), detail: gauge.lattice().to_string() };
    let got = all(&Domain::single(backend, gauge.lattice())?, gauge, precision)?;
    let expected = all(&Domain::single(Cpu::new(None), gauge.lattice())?, gauge, precision)?;
    for ((name, got, tolerance), (_, expected, _)) in got.links.iter().zip(&expected.links) {
        // One matrix may be small beside others.
        let tolerance = Tolerance { relative: *tolerance, worst: 1e3 * tolerance };
        report.links(&scope, name, got, expected, tolerance);
    }
    for ((name, got), (_, expected)) in got.colours.into_iter().zip(&expected.colours) {
        report.holds(&scope, &name, got.numbers() == expected.numbers());
    }
    for ((name, got, tolerance), (_, expected, _)) in got.numbers.iter().zip(&expected.numbers) {
        report.number(&scope, name, *got, *expected, 1.0, *tolerance);
    }
    for (name, got) in &got.residuals {
        // The recurrence's residual is not the true one, but in double precision next to it.
        report.holds(&scope, name, (1e-14..1.1e-10).contains(got));
    }
    Ok(())
}

/// Returns the staggered operators with periodic and with twisted boundaries in space.
fn operators() -> [(&'static str, QuarkOperator); 8] {
    let [naive, asqtad, stout, hisq] = plain_operators();
    let twisted = |(_, operator): (&str, QuarkOperator)| QuarkOperator { theta: THETA, ..operator };
    [
        naive,
        stout,
        asqtad,
        hisq,
        ("naive, twisted boundary", twisted(naive)),
        ("stout, twisted boundary", twisted(stout)),
        ("asqtad, twisted boundary", twisted(asqtad)),
        ("HISQ, twisted boundary", twisted(hisq)),
    ]
}

fn plain_operators() -> [(&'static str, QuarkOperator); 4] {
    let params = |phases| StaggeredParams { mass: 0.0, boundary: TimeBoundary::Antiperiodic, phases };
    [
        ("naive", QuarkOperator::new(params(StaggeredPhases::Milc), QuarkSmearing::Thin)),
        (
            "asqtad",
            QuarkOperator::new(
                params(StaggeredPhases::Lexicographic),
                QuarkSmearing::Paths(PathCoefficients::asqtad(0.9)),
            ),
        ),
        (
            "stout",
            QuarkOperator::new(
                params(StaggeredPhases::Milc),
                QuarkSmearing::Stout(StoutSmearing { rho: 0.1, levels: 2, spatial: false }),
            ),
        ),
        ("HISQ", QuarkOperator::new(params(StaggeredPhases::Milc), QuarkSmearing::Hisq { epsilon: -0.1 })),
    ]
}

fn quarks(domain: &Domain, operator: QuarkOperator, single: bool) -> Result<Pseudofermions> {
    let quarks = |mass, n: &str| Quarks { mass, flavours: n.parse().expect("a fraction") };
    let tolerances = Tolerances { dynamics: 1e-5, action: 1e-10 };
    let quarks = [quarks(0.3, "2"), quarks(0.5, "1")];
    let functions = rational_functions(&quarks, 1, 100.0, tolerances, rational::approximate_to);
    let functions = functions.expect("these exist");
    let solver = |single, tol| ShiftedSolver { single, tol: vec![tol], together: false, max_iterations: 10_000 };
    let solvers = [solver(single, if single { 1e-6 } else { 1e-12 }), solver(false, 1e-12)];
    Ok(Pseudofermions::new(domain, "quarks".into(), operator, functions, solvers, 0, 2)?)
}

fn all(domain: &Domain, gauge: &HostGauge, precision: Precision) -> Result<Found> {
    let mut found = Found::default();
    let thin = GaugeField::upload(domain, gauge)?;
    let links = EvolvingLinks::new(&thin, precision)?;
    let in_double = precision == Precision::Double;
    let rounding = if in_double { 1e-15 } else { 3e-7 };

    let mut momenta = MomentumField::zero(domain, precision)?;
    momenta.draw(3, 4)?;
    found.links.push(("momenta".into(), momenta.download()?, 0.0));
    found.numbers.push(("kinetic energy".into(), momenta.kinetic_energy()?, 1e-9));
    let mut field = FullField::zero(domain, FieldShape::colours(Precision::Double, 1))?;
    noise(&mut field, 2, 3, 4)?;
    found.colours.push(("noise".into(), field.download()?.swap_remove(0)));

    let mut kick = |name: String, force: &dyn Force, tolerance: f64| -> Result {
        let mut kicked = MomentumField::zero(domain, precision)?;
        force.kick(&links, 1.0, &mut kicked)?;
        found.links.push((name, kicked.download()?, tolerance));
        Ok(())
    };
    let anisotropic = AnisotropicLattice { xi: 3.0, space: 0.83, time: 0.98 };
    for (name, action) in [
        ("wilson", GaugeAction::wilson(5.5)),
        ("luscher-weisz", GaugeAction::one_loop_symanzik(6.5, 0.86)),
        ("dbw2", GaugeAction::dbw2(0.87)),
        ("anisotropic wilson", GaugeAction::anisotropic_wilson(6.1, 3.2)),
        ("anisotropic symanzik", GaugeAction::anisotropic_symanzik(3.0, anisotropic)),
    ] {
        for single in [false, true] {
            // Forces in double on momenta in single have no kernel: nobody asks for them.
            if single || in_double {
                let tolerance = if single { 2e-6 } else { 1e-14 };
                kick(format!("{name} force, single {single}"), &GaugeActionForce { action, single }, tolerance)?;
            }
        }
    }
    for (name, operator) in operators() {
        for single in [false, true] {
            let mut drawn = quarks(domain, operator, single)?;
            drawn.draw(&links, 5, 6)?;
            // Solutions to 1e-12, and to 1e-6 in single precision.
            let tolerance = if single { 3e-5 } else { 1e-10 + 3.0 * rounding };
            kick(format!("{name} force, single {single}"), &drawn, tolerance)?;
        }
    }
    for (name, operator) in operators() {
        let mut kicked = MomentumField::zero(domain, precision)?;
        hop_force(&operator, (&field.even, &field.odd), &[1.0], &links, 1.0, &mut kicked)?;
        found.links.push((format!("{name} force of two vectors"), kicked.download()?, 10.0 * rounding));
        found.numbers.push((format!("{name}: largest eigenvalue"), spectrum::largest(&links, &operator, 1)?, 1e-4));
        for estimate in condensate(&links, &operator, 0.3, &field, 1e-10)? {
            for part in [estimate.even, estimate.odd] {
                found.numbers.push((format!("{name}: condensate"), part.re, 1e-7));
                found.numbers.push((format!("{name}: condensate, imaginary part"), part.im, 1e-7));
            }
            found.residuals.push((format!("{name}: residual of the condensate"), estimate.residual));
        }
    }
    for unitarise in [false, true] {
        let mut moved = EvolvingLinks::new(&thin, precision)?;
        momenta.move_links(moved.own_mut(), 0.2, unitarise)?;
        let name = format!("links moved, unitarised {unitarise}");
        found.links.push((name, moved.thin(Precision::Double)?.download()?, 3.0 * rounding));
    }
    momenta.scale(-0.5)?;
    let other = momenta.copied()?;
    momenta.add(2.0, 0.25, &other)?;
    found.links.push(("sums of momenta".into(), momenta.download()?, 2.0 * rounding));
    let bent: [Vec<_>; 4] = std::array::from_fn(|mu| {
        let [nu, rho] = [(mu + 1) % 4, (mu + 2) % 4];
        vec![
            (0.7, vec![(mu, true), (nu, true), (mu, false), (nu, false)]),
            (-0.3, vec![(mu, true), (rho, false), (nu, true), (mu, false), (rho, true), (nu, false)]),
        ]
    });
    let lists = bent.each_ref().map(Vec::as_slice);
    found.links.push(("sums of paths".into(), sums_of_paths(&thin, lists)?.download()?, 1e-14));
    let open = bent.iter().flatten().map(|(_, steps)| &steps[1..]);
    for mean in mean_complex_traces(&thin, open)? {
        found.numbers.push(("open paths".into(), mean.re, 1e-12));
        found.numbers.push(("open paths, imaginary part".into(), mean.im, 1e-12));
    }
    let traces = mean_traces(&thin, &closed_loops())?;
    found.numbers.extend(traces.iter().map(|trace| ("closed loops".into(), *trace, 1e-12)));
    let Complex64 { re, im } = polyakov_loop(&thin)?;
    found.numbers.extend([("Polyakov loop".into(), re, 1e-12), ("Polyakov loop, imaginary part".into(), im, 1e-12)]);
    // Links that flow are in double.
    if in_double {
        let mut kicked = MomentumField::zero(domain, precision)?;
        kick_by_paths(&thin, lists, 0.5, &mut kicked)?;
        found.links.push(("force of paths".into(), kicked.download()?, 1e-14));
        let psi = [generate::random_source(domain.section(), 9)];
        let smeared = NeighbourHops::sums(&thin, [true, true, true, false])?.apply((0.4, 0.1), 3, &psi)?;
        found.colours.push(("hops to neighbours".into(), smeared.into_iter().next().expect("one")));
        let shifted = covariant_shift(&thin, (3, false), &psi)?;
        found.colours.push(("covariant shift".into(), shifted.into_iter().next().expect("one")));
        // Random links: some have singular values next to 0.
        let random = GaugeField::upload(domain, &generate::random(gauge.lattice(), 3))?;
        let guarded = FirstLevel::of(&random)?.count_small(5e-5)?;
        found.numbers.push(("small singular values".into(), guarded as f64, 0.0));
        for action in FlowAction::ALL {
            flow(&thin, action, &mut found)?;
        }
        for spatial in [false, true] {
            let smeared = StoutSmearing { rho: 0.1, levels: 2, spatial }.smeared(&thin)?;
            found.links.push((format!("stout links, spatial {spatial}"), smeared.download()?, 1e-14));
            for sums in [SumsOfStaples::Ape(0.6), SumsOfStaples::USUAL_HYP] {
                for projection in [Projection::LargestTrace, Projection::Polar] {
                    let smeared = ProjectedSmearing { sums, levels: 1, spatial, projection }.smeared(&thin)?;
                    let name = format!("{sums:?} links, spatial {spatial}, {projection:?}");
                    found.links.push((name, smeared.download()?, 1e-13));
                }
            }
        }
    }
    for (spatial, levels) in [(false, 2), (true, 1)] {
        let gradient = GaugeField::upload(domain, &generate::random(domain.local(), 8))?.converted(precision)?;
        let stout = StoutSmearing { rho: 0.1, levels, spatial }.levels(&thin)?.converted(precision)?;
        let gradient = stout.thin_gradient(gradient)?.converted(Precision::Double)?.download()?;
        found.links.push((format!("gradient of stout links, spatial {spatial}"), gradient, 20.0 * rounding));
    }
    wilson_like(&links, precision, &mut found)?;
    trajectories(domain, &thin, precision, &mut found)?;
    Ok(found)
}

/// Quarks with every kind of diagonal term, on both complements, split by a mass and by a twist, on thin and on stout links.
fn wilson_like(links: &EvolvingLinks, precision: Precision, found: &mut Found) -> Result {
    let domain = links.own().domain();
    let wilson = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
    let clover = CloverParams::isotropic(wilson, 1.5, 1.0);
    let operators: [(&str, Operator); 5] = [
        ("wilson", wilson.into()),
        ("clover", clover.into()),
        ("twisted", TwistedParams { wilson, mu: 0.2 }.into()),
        ("twisted clover", TwistedCloverParams { clover, mu: 0.2 }.into()),
        ("exponential clover", ExpCloverParams(clover).into()),
    ];
    let interval = Interval::new(0.01, 8.0).expect("an interval");
    let made = |parts: i64| {
        let power = Power::new(Fraction::new(-1, parts).expect("a fraction")).expect("a power");
        rational::approximate_to(&power, interval, 1e-6).expect("there is one")
    };
    let (dynamics, action) = (made(2).direct().clone(), made(4));
    let functions =
        RationalFunctions { dynamics, heat_bath: action.inverse().clone(), action: action.direct().clone() };
    let rounding = if precision == Precision::Double { 1e-15 } else { 3e-7 };
    for (number, (name, operator)) in operators.into_iter().enumerate() {
        let Some(&operator) = operator.parameters::<WilsonLike>() else { continue };
        for schur in [Schur::Symmetric, Schur::Asymmetric] {
            let stout = (number % 2 == 1).then_some(StoutSmearing { rho: 0.1, levels: 1, spatial: false });
            // Half of them with phases: on thin links, and on stout ones.
            let theta = if (schur == Schur::Symmetric) == (number < 2) { BoundaryAngles::default() } else { THETA };
            let plain = WilsonQuarks { stout, ..WilsonQuarks::new(WilsonLike { schur, theta, ..operator }) };
            let heavy = WilsonParams { mass: 0.4, ..operator.wilson };
            let mass = WilsonQuarks { operator: WilsonLike { wilson: heavy, ..plain.operator }, ..plain };
            let (quarks, heavier) = match schur {
                Schur::Symmetric => (plain, mass),
                Schur::Asymmetric => (plain, WilsonQuarks { twist: 0.4, ..plain }),
            };
            for single in [false, true] {
                let low = if single { Precision::Single } else { Precision::Double };
                // Solutions to 1e-12, and forces in single precision.
                let tolerance = if single { 3e-5 } else { 1e-10 + 3.0 * rounding };
                let name = format!("{name} {schur:?}, single {single}");
                let method = if single { Method::BICGSTAB } else { Method::CG };
                let solver = complement_request(method, low, 1e-12);
                let (solvers, heavier) = ([solver.clone(), solver], Some(heavier));
                let mut two = TwoFlavours::new(domain, name.clone(), quarks, heavier, solvers, low, 0)?;
                let shifted =
                    |single, tol| ShiftedSolver { single, tol: vec![tol], together: false, max_iterations: 10_000 };
                let solvers = [shifted(single, if single { 1e-6 } else { 1e-12 }), shifted(false, 1e-12)];
                let mut one = OneFlavour::new(domain, name.clone(), quarks, functions.clone(), solvers, 1, 2)?;
                let blocks = BlockDeterminant::new(name.clone(), quarks, 2);
                found.numbers.push((format!("{name}: noise"), two.draw(links, 5, 6)?, 1e-8));
                one.draw(links, 5, 6)?;
                let mut parts =
                    vec![("two flavours", &two as &dyn Monomial, tolerance), ("one flavour", &one, tolerance)];
                if matches!(operator.dependence(), LinkDependence::Linear(_)) {
                    parts.push(("determinants", &blocks, 1e-11 + 3.0 * rounding));
                }
                for (what, part, tolerance) in parts {
                    let mut kicked = MomentumField::zero(domain, precision)?;
                    part.kick(links, 1.0, &mut kicked)?;
                    found.links.push((format!("{name}: force of {what}"), kicked.download()?, tolerance));
                    found.numbers.push((format!("{name}: action of {what}"), part.action(links)?, 1e-6));
                }
            }
        }
    }
    Ok(())
}

/// The gradient flow and what is measured along it, before the first step and after the second.
fn flow(gauge: &GaugeField, action: FlowAction, found: &mut Found) -> Result {
    let mut flow = Flow::new(gauge, action)?;
    for steps in [0, 2] {
        for _ in 0..steps {
            flow.step(0.02)?;
        }
        let (name, point) = (format!("{action:?} flow, t = {:.2}", flow.time()), flow.look()?);
        let clover = point.clover;
        let energies = [("space", clover.space), ("time", clover.time), ("plaquette", point.plaquette_energy)];
        // Energies are of order one, and so is what the charge adds up.
        found.numbers.extend(energies.map(|(part, energy)| (format!("{name}: energy, {part}"), energy, 1e-11)));
        found.numbers.push((format!("{name}: charge"), clover.charge, 1e-11));
        found.links.push((format!("{name}: links"), flow.links().download()?, 1e-13));
    }
    Ok(())
}

/// Trajectories with all schemes.
fn trajectories(domain: &Domain, device_links: &GaugeField, precision: Precision, found: &mut Found) -> Result {
    let lambda = MINIMUM_NORM;
    for (number, scheme) in [
        Scheme::Leapfrog,
        Scheme::LeapfrogLinksFirst,
        Scheme::Omelyan { lambda },
        Scheme::OmelyanLinksFirst { lambda },
        Scheme::ForceGradient,
        Scheme::ThreeGaugeOneFermion { lambda: 0.2 },
    ]
    .into_iter()
    .enumerate()
    {
        let (single, (name, operator)) = (precision == Precision::Single, operators()[number % 4]);
        let interleaved = matches!(scheme, Scheme::ThreeGaugeOneFermion { .. });
        let levels = if interleaved {
            vec![LevelPlan { gauge: true, quarks: vec![0], scheme, steps: 2 }]
        } else {
            vec![
                LevelPlan { gauge: false, quarks: vec![0], scheme, steps: 2 },
                LevelPlan { gauge: true, quarks: Vec::new(), scheme, steps: 2 },
            ]
        };
        let plan = Plan {
            gauge: GaugeAction::one_loop_symanzik(6.5, 0.86),
            single_gauge_force: single,
            length: 0.2,
            levels,
            unitarise: Unitarise::Always,
            seed: 9,
            friction: None,
            metropolis_from: 0,
        };
        let mut chain = Chain::new(plan, device_links, precision, vec![Box::new(quarks(domain, operator, single)?)])?;
        let outcome = chain.trajectory(1, None, true)?;
        // ΔH is a sum over some ten thousand numbers of order one.
        let tolerance = if single { 0.05 } else { 1e-8 };
        found.numbers.push((format!("ΔH, {name}, {scheme:?}"), outcome.delta, tolerance));
        // The way back leads to the start: what is left is rounding.
        let left = if single { 1e-4 } else { 1e-10 };
        let back = outcome.irreversibility.is_some_and(|back| back.iter().all(|off| *off <= left));
        found.numbers.push((format!("reversibility, {scheme:?}"), if back { 0.0 } else { f64::NAN }, 0.0));
        let moved = chain.links().thin(Precision::Double)?.download()?;
        found.links.push((format!("links after a trajectory, {scheme:?}"), moved, if single { 1e-4 } else { 1e-9 }));
    }
    Ok(())
}
