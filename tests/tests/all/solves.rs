//! Solves: every pair of precisions, both ways of correction, every method; precision escalations; how many iterations
//! they take.
use ferrite::Precision;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostSpinor, Spinor};
use ferrite::gauge::generate;
use ferrite::gauge::quenched::{Generator, Start};
use ferrite::lattice::Lattice;
use ferrite::operators::Operator;
use ferrite::operators::{Anisotropy, CloverParams, TimeBoundary, WilsonParams};
use ferrite::solve::{Configuration, Correction, Escalation, Method, Request, SolveFailure, in_batches, solve};
use ferrite_tests::checks::{self, Case};
use ferrite_tests::cut;
use ferrite_tests::testkit::{on_cpu, on_grid};
use solvers::{Iteration, Observer, RhsFailure, SolveError};
use std::ops::ControlFlow;

fn case() -> Case {
    Case::new(generate::weak_field(Lattice::new([2, 4, 6, 8]).unwrap(), 20, 0.2), 21)
}

#[test]
fn every_format_ends_at_its_tolerance() {
    on_cpu(|backend, report| checks::solves(backend, &case(), 0.1, report));
}

#[test]
fn every_scheme_ends_at_its_tolerance() {
    on_cpu(|backend, report| checks::schemes(backend, &case(), 0.1, report));
}

#[test]
fn rows_of_iterations_are_those_that_wait_for_the_host() {
    on_cpu(|backend, report| checks::rows(backend, &case(), report));
}

/// Every method, precision and correction, but not all of their combinations.
#[test]
fn iteration_counts_are_what_they_were() {
    iteration_counts(false);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn all_iteration_counts_are_what_they_were() {
    iteration_counts(true);
}

/// Iterations on a fixed quenched configuration at β = 6.0, not far from the critical κ of 0.157. A change of more than a
/// tenth, or three, is a change of the algorithm or a mistake in it; rounding, which differs between machines, moves them
/// by one or two.
fn iteration_counts(all: bool) {
    use Precision::{Double, Fp16, Half, Single};
    let lattice = Lattice::new([8, 8, 8, 16]).unwrap();
    let source = generate::random_source::<Spinor>(lattice, 1);
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let mut generator = Generator::new(&domain, Start::Cold, 6.0, 7).unwrap();
    for _ in 0..50 {
        generator.sweep(1, 3).unwrap();
    }
    let gauge = generator.gauge().unwrap();
    let configuration = Configuration::new(&domain, &gauge);
    let operator = WilsonParams::from_kappa(0.153, TimeBoundary::Antiperiodic);
    let (reliable, defect) = (Correction::default(), Correction::Defect { inner_tol: 0.01 });
    let mut off = Vec::new();
    let some = [
        (Method::BICGSTAB, Single, reliable, 157),
        (Method::BICGSTAB, Fp16, reliable, 165),
        (Method::BICGSTAB, Half, defect, 193),
        (Method::CG, Double, reliable, 288),
        (Method::CGNE, Half, reliable, 359),
    ];
    let others = [
        (Method::BICGSTAB, Double, reliable, 157),
        (Method::BICGSTAB, Half, reliable, 153),
        (Method::BICGSTAB, Single, defect, 191),
        (Method::CG, Single, reliable, 310),
        (Method::CG, Half, reliable, 348),
        (Method::CG, Half, defect, 472),
        (Method::CGNE, Double, reliable, 288),
    ];
    for (method, precision, correction, expected) in some.into_iter().chain(others.into_iter().filter(|_| all)) {
        let request = Request { method, precision, correction, tol: 1e-12, ..Request::new(operator) };
        let (_, report) = configuration
            .solve(std::slice::from_ref(&source), None, &request, &mut ())
            .unwrap_or_else(|e| panic!("{e}"));
        assert!(report.escalations.is_empty(), "{method:?} {precision:?}: {:?}", report.escalations);
        let got = report.info.iterations;
        let line = format!("{method:?} {precision:?} {correction:?}: {got} iterations, expected {expected}");
        println!("{line}");
        if got.abs_diff(expected) > (expected / 10).max(3) {
            off.push(line);
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}

/// Block CG takes fewer iterations than CG, in one Krylov space for all right-hand sides on the normal equations: the more right-hand
/// sides, the fewer.
#[test]
fn block_cg_takes_fewer_iterations_than_cg() {
    use Precision::{Double, Half, Single};
    let lattice = Lattice::new([4, 4, 4, 8]).unwrap();
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let gauge = generate::weak_field(lattice, 30, 0.3);
    let sources: Vec<_> = (0..12).map(|number| generate::noise_source::<Spinor>(lattice, 31, number)).collect();
    let configuration = Configuration::new(&domain, &gauge);
    let operator = WilsonParams::from_mass(-0.4, TimeBoundary::Antiperiodic);
    for precision in [Double, Single, Half] {
        let iterations = |method: &'static Method, many: usize| {
            let request = Request { method, precision, ..Request::new(operator) };
            let (_, report) = configuration.solve(&sources[..many], None, &request, &mut ()).unwrap();
            assert!(report.converged && report.true_residual.iter().all(|r| *r <= request.tol));
            assert!(report.escalations.is_empty(), "{method:?} {precision:?}: {:?}", report.escalations);
            report.info.iterations
        };
        let plain = [1, 12].map(|many| iterations(Method::CG, many));
        let block = [1, 4, 12].map(|many| iterations(Method::BLOCK_CG, many));
        println!("{precision:?}: CG {plain:?}, block CG {block:?} iterations");
        assert!(block[1] < block[0] && block[2] < block[1] && 4 * block[2] < 3 * plain[1], "{precision:?}");
        let most = if precision == Double { 1 } else { plain[0] / 3 };
        assert!(block[0].abs_diff(plain[0]) <= most, "{precision:?}");
    }
}

/// Clover terms are kept from one solve to the next, and made again where any parameter is another. Residuals would not
/// show a wrong one, since they come from the same term.
#[test]
fn each_solve_has_its_own_clover_term() {
    let lattice = Lattice::new([2, 2, 2, 4]).unwrap();
    let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.2);
    let source = [generate::noise_source::<Spinor>(lattice, 6, 0)];
    let wilson = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let solve = |configuration: &Configuration, operator: Operator| {
        let (solutions, _) = configuration.solve(&source, None, &Request::new(operator), &mut ()).unwrap();
        solutions[0].numbers().to_vec()
    };
    let heavier = WilsonParams { mass: 0.4, ..wilson };
    let anisotropic = WilsonParams { anisotropy: Anisotropy { xi: 1.3, nu: 0.9 }, ..heavier };
    let clover = |wilson, space, time| Operator::from(CloverParams { wilson, space, time });
    let kept = Configuration::new(&domain, &gauge);
    let mut seen: Vec<Vec<_>> = Vec::new();
    // Each clover operator differs from the one before it in one parameter.
    for operator in [
        clover(wilson, 1.0, 1.0),
        clover(wilson, 1.5, 1.0),
        clover(wilson, 1.5, 1.2),
        clover(heavier, 1.5, 1.2),
        clover(anisotropic, 1.5, 1.2),
        wilson.into(),
        clover(wilson, 1.0, 1.0),
    ] {
        let alone = solve(&Configuration::new(&domain, &gauge), operator.clone());
        assert!(solve(&kept, operator.clone()) == alone, "{operator:?}");
        seen.push(alone);
    }
    // And they differ, but for the last, which is the first.
    let last = seen.pop().unwrap();
    assert!(last == seen[0]);
    for (k, solution) in seen.iter().enumerate() {
        assert!(!seen[..k].contains(solution), "operator {k}");
    }
}

/// Ends the second batch after two iterations.
struct StopSecondBatch(usize);
impl Observer for StopSecondBatch {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        if self.0 == 2 && event.iteration == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn batches_come_out_as_one_solve() {
    let lattice = Lattice::new([2, 2, 2, 4]).unwrap();
    let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let gauge = generate::weak_field(lattice, 1, 0.2);
    let sources: Vec<_> = (0..3).map(|number| generate::noise_source::<Spinor>(lattice, 5, number)).collect();
    let request = Request::new(WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic));
    let configuration = Configuration::new(&domain, &gauge);
    let solve = |sizes: &[usize], stop: &mut StopSecondBatch| {
        in_batches(sizes, &sources, None, |sources, guess| {
            stop.0 += 1;
            configuration.solve(sources, guess, &request, stop)
        })
    };
    let (together, whole) = solve(&[3], &mut StopSecondBatch(9)).unwrap();
    let (apart, report) = solve(&[1, 1, 1], &mut StopSecondBatch(9)).unwrap();
    assert!(report.converged && report.true_residual.len() == 3 && report.info.history.len() == 3);
    // A batch is asked for what its most demanding right-hand side needs: an iteration more or less for the others.
    for (apart, together) in report.info.iterations_per_rhs.iter().zip(&whole.info.iterations_per_rhs) {
        assert!(apart.abs_diff(*together) <= 2, "{apart} {together}");
    }
    assert_eq!(Some(&report.info.iterations), report.info.iterations_per_rhs.iter().max());
    assert!(report.info.reductions > whole.info.reductions);
    for (a, b) in together.iter().zip(&apart) {
        let off = a.numbers().iter().zip(b.numbers()).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>();
        // Two residuals of 1e-10, over the smallest singular value of M, which is near the mass on weak fields.
        assert!(off.sqrt() < 2.0 * 1e-10 / 0.2 * sources[0].norm2().sqrt(), "{off}");
    }
    // What comes after a batch that was stopped is left out.
    let Err(SolveFailure::Unfinished { error, solutions, report }) = solve(&[1, 1, 1], &mut StopSecondBatch(0)) else {
        panic!("it was stopped")
    };
    assert!(matches!(error, SolveError::Cancelled { .. }));
    assert!(report.true_residual[0] <= 1e-10 && report.true_residual[1] > 1e-10);
    assert_eq!((report.true_residual[2], report.info.iterations_per_rhs[2], solutions[2].norm2()), (1.0, 0, 0.0));
    assert!(!report.converged && report.info.failed.contains(&2));
    assert!(in_batches::<Spinor>(&[], &[], None, |_, _| unreachable!()).is_err());
}

/// Numbers of 10⁻²⁵ or 10²⁵ have squares that single precision does not hold, and those of 10⁻²¹⁰ or 10²¹⁰ none that double
/// precision does. Factors that are powers of two change no bit of
/// a solve.
#[test]
fn the_size_of_a_source_does_not_matter() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let (gauge, source) = (generate::weak_field(lattice, 20, 0.2), generate::random_source(lattice, 5));
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let configuration = Configuration::new(&domain, &gauge);
    let times = |field: &HostSpinor, factor: f64| {
        let mut field = field.clone();
        field.sites_mut().as_flattened_mut().as_flattened_mut().iter_mut().for_each(|z| *z *= factor);
        field
    };
    for precision in [Precision::Double, Precision::Single, Precision::Half, Precision::Fp16] {
        let operator = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        let request = Request { precision, escalate: false, ..Request::new(operator) };
        let solve = |factor: f64| {
            let sources = [times(&source, factor), source.clone()];
            configuration.solve(&sources, None, &request, &mut ()).unwrap()
        };
        let (usual, expected) = solve(1.0);
        for factor in [-700, -84, 84, 700].map(|exponent| 2f64.powi(exponent)) {
            let (solutions, report) = solve(factor);
            assert!(report.converged && report.info.iterations == expected.info.iterations, "{precision:?} {factor}");
            assert_eq!(times(&solutions[0], 1.0 / factor), usual[0], "{precision:?} {factor}");
            assert_eq!(solutions[1], usual[1], "{precision:?} {factor}");
            assert_eq!(report.info.history, expected.info.history, "{precision:?} {factor}");
            assert_eq!(report.true_residual, expected.true_residual, "{precision:?} {factor}");
            // From a guess, which is of the source's size.
            let solved = configuration.solve(&[times(&source, factor)], Some(&solutions[..1]), &request, &mut ());
            let (again, report) = solved.unwrap();
            assert!(report.info.iterations < 5, "{precision:?} {factor}: {}", report.info.iterations);
            assert!(report.converged && again[0].numbers().iter().any(|z| z.re != 0.0));
        }
    }
}

/// Every method, for sources without a norm in double precision beside one that has one.
/// The shadow space of IDR(s) is the same on every process grid and for every right-hand side of a batch.
#[test]
fn idr_takes_the_same_steps_on_every_grid_and_in_every_batch() {
    let lattice = Lattice::new([4, 4, 8, 8]).unwrap();
    let gauge = generate::weak_field(lattice, 21, 0.4);
    let operator = WilsonParams::from_mass(-0.2, TimeBoundary::Antiperiodic);
    let request = Request { method: Method::IDR, tol: 1e-8, ..Request::new(operator) };
    let histories = |grid: [usize; 4], numbers: &[u32]| {
        let mut found = on_grid(grid, lattice, |domain| {
            let section = domain.section();
            let links = cut::links_of(&section, &gauge);
            let sources: Vec<HostSpinor> =
                numbers.iter().map(|number| generate::noise_source(section, 22, *number)).collect();
            let (_, report) = solve(domain, &links, &sources, &request, &mut ()).unwrap();
            assert!(report.converged && report.method == Method::IDR, "{grid:?}: {report:?}");
            report.info.history
        });
        found.swap_remove(0)
    };
    let alone = histories([1; 4], &[2]);
    let agrees = |history: &[f64]| {
        // Rounding grows with the iterations.
        let early = alone[0].iter().zip(history).take(4);
        history.len().abs_diff(alone[0].len()) <= 1 && early.into_iter().all(|(a, b)| (a - b).abs() <= 1e-9 * a)
    };
    assert!(alone[0].len() > 4, "{alone:?}");
    for grid in [[1, 1, 1, 2], [1, 1, 2, 2], [2, 1, 2, 1]] {
        let cut = histories(grid, &[2]);
        assert!(agrees(&cut[0]), "{grid:?}: {cut:?} {alone:?}");
    }
    let batch = histories([1; 4], &[0, 1, 2]);
    assert!(agrees(&batch[2]), "{batch:?} {alone:?}");
}

#[test]
fn no_source_is_taken_for_zero() {
    let lattice = Lattice::new([2, 4, 4, 4]).unwrap();
    let (gauge, source) = (generate::weak_field(lattice, 20, 0.2), generate::random_source::<Spinor>(lattice, 5));
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let configuration = Configuration::new(&domain, &gauge);
    let times = |field: &HostSpinor, exponent: i32| {
        let mut field = field.clone();
        let [first, second] = [exponent / 2, exponent - exponent / 2].map(|half| 2f64.powi(half));
        field.numbers_mut().iter_mut().for_each(|z| *z = *z * first * second);
        field
    };
    let operator = WilsonParams::from_mass(0.3, TimeBoundary::Antiperiodic);
    let methods = [Method::BICGSTAB, Method::IDR, Method::CG, Method::CGNE, Method::BLOCK_CG, Method::GCR_DD];
    let mut cases: Vec<_> = methods.map(|method| Request { method, ..Request::new(operator) }).into();
    cases.push(Request { correction: Correction::Defect { inner_tol: 0.01 }, ..cases[0].clone() });
    for request in cases {
        let case = format!("{:?} {:?}", request.method, request.correction);
        let zero = HostSpinor::zero(lattice);
        let sources = |small, large| [times(&source, small), source.clone(), times(&source, large), zero.clone()];
        let solve = |sources: &[HostSpinor]| configuration.solve(sources, None, &request, &mut ());
        let (usual, expected) = solve(&sources(0, 0)).unwrap();
        let (solutions, report) = solve(&sources(-900, 900)).unwrap();
        assert!(report.converged && report.info.iterations > 2, "{case}");
        assert_eq!(report.true_residual, expected.true_residual, "{case}");
        let back = [times(&solutions[0], 900), solutions[1].clone(), times(&solutions[2], -900), solutions[3].clone()];
        assert!(back == usual[..] && solutions[3] == zero && report.true_residual[3] == 0.0, "{case}");
        // Solutions are smaller than their sources here, and that of the smallest number has no place.
        let mut smallest = zero.clone();
        smallest.numbers_mut()[5] = f64::from_bits(1).into();
        let error = solve(&[source.clone(), smallest]).unwrap_err();
        assert!(matches!(error, SolveFailure::OutOfRange(1)), "{case}: {error}");
        let apart = in_batches(&[1, 1], &[source.clone(), times(&source, -1070)], None, |sources, _| solve(sources));
        assert!(matches!(apart.unwrap_err(), SolveFailure::OutOfRange(1)), "{case}");
        // What is not a number is not zero either.
        let mut infinite = source.clone();
        infinite.numbers_mut()[0] = f64::INFINITY.into();
        assert!(matches!(solve(&[infinite]), Err(SolveFailure::Unfinished { .. })), "{case}");
    }
}

/// Near an exceptional mass BiCGstab stagnates below double precision, where double does not. That is noticed before twice the
/// iterations of double are spent, and no other precision is tried in between: docs/measurements/solver-stagnation.md.
#[test]
fn stagnation_near_an_exceptional_mass_is_noticed_soon() {
    use Precision::{Double, Fp16, Half, Single};
    let lattice = Lattice::new([8; 4]).unwrap();
    let domain = Domain::single(Cpu::new(None), lattice).unwrap();
    let mut generator = Generator::new(&domain, Start::Cold, 6.0, 7).unwrap();
    for _ in 0..200 {
        generator.sweep(1, 4).unwrap();
    }
    let gauge = generator.gauge().unwrap();
    let configuration = Configuration::new(&domain, &gauge);
    let mut source = HostSpinor::zero(lattice);
    source.numbers_mut()[0] = 1.0.into();
    let operator = WilsonParams::from_mass(-0.88, TimeBoundary::Antiperiodic);
    let solve = |precision| {
        let request = Request { precision, ..Request::new(operator) };
        let (_, report) = configuration.solve(std::slice::from_ref(&source), None, &request, &mut ()).unwrap();
        assert!(report.converged, "{precision:?}");
        report
    };
    let double = solve(Double).info.iterations;
    let mut steps = 0;
    for precision in [Single, Half, Fp16] {
        let report = solve(precision);
        for Escalation { reason, precision: to, .. } in &report.escalations {
            let plateau = reason.info().unwrap().given_up.iter().any(|given_up| given_up.why == RhsFailure::Plateau);
            assert!(!plateau || *to == Double, "{precision:?}: {to:?}");
        }
        // After the last one in double, other links may follow in the same precision.
        let mut from = precision;
        let rises =
            |escalation: &&Escalation| std::mem::replace(&mut from, escalation.precision) != escalation.precision;
        let before: Vec<_> = report.escalations.iter().filter(rises).map(|escalation| escalation.iterations).collect();
        println!("{precision:?}: {} iterations, steps after {before:?}; double {double}", report.info.iterations);
        assert!(before.iter().all(|iterations| *iterations < 2 * double), "{precision:?}: {before:?}, double {double}");
        steps += before.len();
    }
    // Otherwise this shows nothing.
    assert!(steps > 0);
}
