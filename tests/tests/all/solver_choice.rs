//! `auto` where BiCGstab and multigrid fail: CG on the normal equations takes over, or the error says what was tried.
use crate::program::*;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::HostSpinor;
use ferrite::gauge::generate;
use ferrite::gauge::quenched::{Generator, Start};
use ferrite::lattice::Lattice;
use ferrite::multigrid::MultigridParams;
use ferrite::operators::{TimeBoundary, TwistedParams, WilsonParams};
use ferrite::solve::{Configuration, Method, Request, SolveFailure, names};
use ferrite_tests::wilson_like_reference::WilsonLikeDirac;
use serde_json::Value;
use std::fs;
use std::ops::ControlFlow;

/// Links of a case.
#[derive(Clone, Copy)]
enum CaseLinks {
    /// A weak field with this noise.
    Weak(f64),
    /// A quenched configuration at β = 5.7.
    Quenched,
    /// Independent random links.
    Random,
}

/// A system that BiCGstab and multigrid are bad at.
struct HardCase {
    size: [usize; 4],
    links: CaseLinks,
    kappa: f64,
    mu: f64,
    max_iterations: usize,
}

/// Near maximal twist, where eigenvalues lie all around zero, and on rough links at masses where single ones come close to it
/// (exceptional configurations): with many iterations and with few, and on a lattice that is too small for multigrid.
#[test]
fn cg_takes_over_where_others_fail() {
    let small = [4, 4, 4, 4];
    let case = |size, links, kappa, mu, max_iterations| HardCase { size, links, kappa, mu, max_iterations };
    let cases = [
        case(small, CaseLinks::Weak(0.1), 0.205, 0.01, 10_000),
        case(small, CaseLinks::Weak(0.1), 0.205, 0.001, 10_000),
        case(small, CaseLinks::Weak(0.2), 0.21, 0.01, 10_000),
        case(small, CaseLinks::Weak(0.1), 0.25, 0.05, 10_000),
        case(small, CaseLinks::Weak(0.3), 0.19, 1e-4, 10_000),
        case([4, 4, 4, 8], CaseLinks::Weak(0.1), 0.205, 0.01, 10_000),
        case(small, CaseLinks::Weak(0.1), 0.205, 0.01, 600),
        case([2, 2, 2, 4], CaseLinks::Weak(0.1), 0.205, 0.01, 300),
        case([4, 4, 4, 8], CaseLinks::Quenched, 0.5 / 2.7, 0.0, 10_000),
        case(small, CaseLinks::Random, 0.25, 1e-3, 600),
    ];
    let multigrid = MultigridParams { vectors: 8, relaxations: 2, improvements: 1, ..Default::default() };
    let (mut by_cg, mut solved) = (0, 0);
    for (number, HardCase { size, links, kappa, mu, max_iterations }) in cases.into_iter().enumerate() {
        let lattice = Lattice::new(size).unwrap();
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        let seed = 40 + number as u64;
        let gauge = match links {
            CaseLinks::Weak(noise) => generate::weak_field(lattice, seed, noise),
            CaseLinks::Random => generate::random(lattice, seed),
            CaseLinks::Quenched => {
                let mut generator = Generator::new(&domain, Start::Cold, 5.7, seed).unwrap();
                (0..30).for_each(|_| generator.sweep(1, 4).unwrap());
                generator.gauge().unwrap()
            }
        };
        let sources: Vec<HostSpinor> = [50, 51].map(|seed| generate::random_source(lattice, seed)).into();
        let wilson = WilsonParams::from_mass(0.5 / kappa - 4.0, TimeBoundary::Antiperiodic);
        let operator = TwistedParams { wilson, mu };
        // As for the twelve columns of a propagator.
        let request = Request {
            method: Method::AUTO,
            multigrid,
            sources: 12,
            max_iterations: Some(max_iterations),
            ..Request::new(operator)
        };
        let reference = WilsonLikeDirac::twisted(&gauge, wilson, [0.0; 2], mu);
        match Configuration::new(&domain, &gauge).solve(&sources, None, &request, &mut ()) {
            Ok((solutions, report)) => {
                println!("{number}: {:?} after {}, {:?}", report.method, report.info.iterations, report.method_changes);
                assert!(report.converged, "{number}: {report:?}");
                for (source, solution) in sources.iter().zip(&solutions) {
                    let residual = reference.residual(source, solution);
                    // Both in double precision, with sums in another order.
                    assert!(residual <= 1.001 * request.tol, "{number}: {residual}");
                }
                assert!(report.info.iterations <= max_iterations, "{number}: {report:?}");
                assert!(report.tried.contains(&report.method), "{number}: {report:?}");
                (by_cg, solved) = (by_cg + usize::from(report.method == Method::CG), solved + 1);
            }
            Err(SolveFailure::Unfinished { error, report, .. }) => {
                let advice = names::advice(&report, &error, |name| format!("--solver {name}"), "more iterations");
                println!("{number}: {error}{advice}");
                assert!(
                    advice.starts_with("; solvers tried: bicgstab") && report.tried.contains(&Method::CG),
                    "{advice}"
                );
            }
            Err(error) => panic!("{number}: {error}"),
        }
    }
    // Otherwise this shows nothing.
    assert!(by_cg >= 5 && solved >= 8, "{by_cg} by CG, {solved} solved");
}

/// Near maximal twist, BiCGstab needs many times the iterations of CG. `auto` takes hardly more iterations than CG, for one source and for a
/// batch, which the first source decides.
#[test]
fn cg_takes_over_before_others_fail() {
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let gauge = generate::weak_field(lattice, 40, 0.1);
    let configuration = Configuration::new(&domain, &gauge);
    let sources: Vec<HostSpinor> = (0..4).map(|seed| generate::random_source(lattice, 50 + seed)).collect();
    let wilson = WilsonParams::from_mass(0.5 / 0.205 - 4.0, TimeBoundary::Antiperiodic);
    // BiCGstab has made 60 iterations when it gives way, but none for a batch.
    for (count, before) in [(1, 60), (4, 0)] {
        let solve = |method| {
            let request = Request { method, ..Request::new(TwistedParams { wilson, mu: 0.01 }) };
            configuration.solve(&sources[..count], None, &request, &mut ()).expect("it converges").1
        };
        let [auto, cg] = [Method::AUTO, Method::CG].map(solve);
        let iterations = [&auto, &cg].map(|report| report.info.iterations);
        println!("{count}: {iterations:?}: {:?}", auto.method_changes);
        assert_eq!((auto.method, auto.method_changes.len()), (Method::CG, 1));
        // The first iterate is not zero but BiCGstab's, so CG may need a few iterations more.
        assert!(iterations[0] <= before + iterations[1] + 10, "{iterations:?}");
    }
}

/// A solve in which BiCGstab does not fail is the same with the automatic choice as with BiCGstab.
#[test]
fn a_solve_that_goes_well_is_by_bicgstab_alone() {
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let (gauge, domain) = (generate::weak_field(lattice, 7, 0.1), Domain::single(Cpu::new(None), lattice).unwrap());
    let source: HostSpinor = generate::random_source(lattice, 8);
    let solve = |method| {
        let request = Request { method, ..Request::new(WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic)) };
        Configuration::new(&domain, &gauge).solve(std::slice::from_ref(&source), None, &request, &mut ()).unwrap()
    };
    let [auto, bicgstab] = [Method::AUTO, Method::BICGSTAB].map(solve);
    assert!(auto.0 == bicgstab.0 && auto.1.info.history == bicgstab.1.info.history);
    assert_eq!((auto.1.tried, auto.1.may_help), (vec![Method::BICGSTAB], None));
}

/// Errors of failed solves name what was tried and what may help, in the words of the command.
#[test]
fn failures_name_solvers_that_may_help() {
    let room = Room::with_weak_field();
    let solve =
        "solve --gauge weak.ildg --operator twisted --kappa 0.205 --mu 0.01 --source random:1 --max-iterations 20";
    for (solver, words) in [
        ("bicgstab", "no convergence in 20 iterations"),
        ("bicgstab", "; solvers tried: bicgstab; --solver cg or a larger --max-iterations may help; |b - Mx|"),
        ("cg", "; solvers tried: cg; --solver auto or a larger --max-iterations may help; |b - Mx|"),
        ("cgne", "; solvers tried: cgne; --solver auto or"),
        ("gcr-dd", "; solvers tried: gcr-dd; --solver cg or"),
        ("auto", "; solvers tried: bicgstab; --solver cg or"),
    ] {
        room.fails(1, &format!("{solve} --solver {solver}"), &[words]);
    }
    let trace = "trace weak.ildg --operator twisted --kappa 0.205 --mu 0.01 --noise 1 --max-iterations 20";
    room.fails(1, trace, &["weak.ildg: the solve did not converge", "; solvers tried: bicgstab; --solver cg or"]);
    let input = "configurations = [\"weak.ildg\"]\n[solve]\noperator = \"twisted\"\nkappa = 0.205\nmu = 0.01\nmax-iterations = 20\n";
    fs::write(room.path("s.toml"), input).unwrap();
    let words = "; solvers tried: bicgstab; solver = \"cg\" in [solve] or a larger max-iterations in [solve] may help";
    room.fails(1, "spectrum s.toml --out s", &["weak.ildg: the solve did not converge", words]);
    // A staggered operator has no other solver.
    let staggered = "solve --gauge weak.ildg --operator staggered --mass 0.001 --source random:1 --max-iterations 3";
    room.fails(1, staggered, &["; solvers tried: cg; a larger --max-iterations may help; |b - Mx|"]);
}

/// The twelve columns of a propagator, and what the answer says of them.
#[test]
fn propagators_near_maximal_twist_are_solved_by_cg() {
    let room = Room::with_weak_field();
    let few = "--mg-vectors 8 --mg-improvements 1 --mg-relaxations 2";
    let solve =
        "solve --gauge weak.ildg --operator twisted --kappa 0.205 --mu 0.01 --source point:0,0,0,0 --sources 12";
    let found = room.json(&format!("{solve} {few}"));
    assert_eq!((&found["solver"], &found["converged"]), (&"cg".into(), &true.into()));
    assert!(found["true_residual"].as_f64().unwrap() <= 1e-10 && found["iterations"].as_u64().unwrap() < 1000);
    let changes: Vec<&Value> = found["method_changes"].as_array().unwrap().iter().map(|one| &one["solver"]).collect();
    assert_eq!(changes.last(), Some(&&"cg".into()), "{changes:?}");
}

/// Checks that the trial of the first source changes nothing if BiCGstab remains, and that an observer can stop it.
#[test]
fn a_trial_of_the_first_source_leaves_no_trace() {
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let mut generator = Generator::new(&domain, Start::Cold, 5.7, 3).unwrap();
    (0..30).for_each(|_| generator.sweep(1, 4).unwrap());
    let gauge = generator.gauge().unwrap();
    let configuration = Configuration::new(&domain, &gauge);
    let sources: Vec<HostSpinor> = (0..4).map(|seed| generate::random_source(lattice, 60 + seed)).collect();
    let multigrid = MultigridParams { vectors: 8, relaxations: 2, improvements: 1, ..Default::default() };
    let of_mass = |method, mass| Request {
        method,
        multigrid,
        ..Request::new(WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic))
    };
    let mut trial = TrialSteps { count: 0, last: 200 };
    let (chosen, report) =
        configuration.solve(&sources, None, &of_mass(Method::AUTO, -0.9), &mut trial).expect("it converges");
    assert!(trial.count >= 30, "a trial of {} iterations", trial.count);
    let (asked, of_bicgstab) =
        configuration.solve(&sources, None, &of_mass(Method::BICGSTAB, -0.9), &mut ()).expect("it converges");
    assert_eq!((report.method, report.info.iterations), (Method::BICGSTAB, of_bicgstab.info.iterations));
    assert_eq!(report.info.history, of_bicgstab.info.history);
    assert!(chosen.iter().zip(&asked).all(|(chosen, asked)| chosen == asked), "the same bits");
    // The observer stops only once.
    let mut stops = TrialSteps { count: 0, last: 10 };
    match configuration.solve(&sources, None, &of_mass(Method::AUTO, -0.9), &mut stops) {
        Err(SolveFailure::Unfinished { error, .. }) => {
            assert!(matches!(error, solvers::SolveError::Cancelled { .. }), "{error}");
        }
        other => panic!("stopped: {:?}", other.map(|(_, report)| report)),
    }
    assert_eq!(stops.count, 10);
}

/// Observer that counts steps of a trial, and stops the solve at the last one.
struct TrialSteps {
    count: usize,
    last: usize,
}
impl solvers::Observer for TrialSteps {
    fn iteration(&mut self, _: &solvers::Iteration<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn step(&mut self, step: &solvers::Step<'_>) -> ControlFlow<()> {
        self.count += usize::from(step.work.starts_with("trial"));
        if self.count == self.last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
