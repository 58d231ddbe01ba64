//! Systems that GCR cannot solve end in the right error, with a true report, and never in a wrong claim. GCR solves those that are solvable
//! in spite of trouble.

use crate::common::{
    Answer, Broken, Dense, Random, Rounding, Space, c, direct, distance, general, hermitian, mixed, norm, plus,
    product, residual, residuals, stop_at, uniform, with_spectrum,
};
use crate::cycles::{gcr_params, solve};
use num_complex::Complex64;
use solvers::*;
use std::cell::Cell;
use std::ops::ControlFlow;

const N: usize = 48;

/// Solves in double precision without a preconditioner.
fn run(a: &[Complex64], b: &Vec<Complex64>, x: &mut Vec<Complex64>, params: &GcrParams) -> Answer {
    uniform!(space, operator, system: Space::double(a.len().isqrt(), b.len() / a.len().isqrt()), a);
    solve(&system, &Identity, b, x, params)
}

/// A preconditioner given by a function of call, residual and answer.
struct Custom<F>(Cell<usize>, F);

impl<F: Fn(usize, &[Complex64], &mut [Complex64])> Custom<F> {
    fn new(f: F) -> Self {
        Self(Cell::new(0), f)
    }
}

impl<F: Fn(usize, &[Complex64], &mut [Complex64])> Preconditioner<Space> for Custom<F> {
    fn apply(&self, _: &Space, r: &Vec<Complex64>, _: &[f64], z: &mut Vec<Complex64>) -> Result<Work, Broken> {
        self.0.set(self.0.get() + 1);
        (self.1)(self.0.get(), r, z);
        Ok(Work { calls: 1, ..Work::default() })
    }
}

/// A preconditioner that multiplies by a number, which depends on the call.
fn scaled<C: Into<Complex64>>(factor: impl Fn(usize) -> C) -> impl Preconditioner<Space> {
    Custom::new(move |call, r: &[Complex64], z: &mut [Complex64]| {
        let factor = factor(call).into();
        z.iter_mut().zip(r).for_each(|(z, r)| *z = factor * r);
    })
}

fn check_report(error: &SolveError<Broken>, a: &[Complex64], b: &[Complex64], x: &[Complex64]) {
    let info = error.info().unwrap();
    for (j, truth) in residuals(a, b, x).into_iter().enumerate() {
        assert!((truth - info.true_residual[j]).abs() <= 1e-12 * truth.max(1.0), "{error} {truth:e} {info:?}");
    }
    assert!(!info.converged);
}

#[test]
fn singular_matrices_never_count_as_solved() {
    let zeros = || vec![Complex64::ZERO; N];
    for seed in 0..20 {
        // b has a part outside the image of A: half of ‖b‖² or less.
        let values: Vec<_> = (0..N).map(|i| c(if i < 2 { 0.0 } else { i as f64 }, 0.3 * (i % 3) as f64)).collect();
        let values: Vec<_> = values.iter().map(|v| if v.re == 0.0 { Complex64::ZERO } else { *v }).collect();
        let a = with_spectrum(&values, seed);
        let b = Random(seed + 50).vector(N);
        for k_max in [1, 4, 16, 60] {
            let mut x = zeros();
            let params = GcrParams { k_max, ..SolverParams { max_iterations: 3000, ..Default::default() }.into() };
            let error = run(&a, &b, &mut x, &params).unwrap_err();
            println!("{k_max}: {error}");
            check_report(&error, &a, &b, &x);
            let what = matches!(error, SolveError::Stagnation { .. } | SolveError::Breakdown { .. });
            assert!(what, "{error}");
            assert!(error.info().unwrap().true_residual[0] > 1e-3);
        }
    }
    // In its image a singular matrix can be solved.
    let a = hermitian(N, |i| i as f64 / N as f64, 3);
    let b = product(&a, &Random(4).vector(N));
    let mut x = zeros();
    let info = run(&a, &b, &mut x, &gcr_params(N, 1e-9)).unwrap();
    assert!(info.converged && residual(&a, &b, &x) <= 1.01e-9);

    // The zero matrix, and one that b is not seen by.
    let b = Random(5).vector(N);
    let mut x = Random(6).vector(N);
    let guess = x.clone();
    let error = run(&vec![Complex64::ZERO; N * N], &b, &mut x, &GcrParams::default()).unwrap_err();
    assert!(matches!(error, SolveError::Breakdown { what: BreakdownKind::Gamma, rhs: 0, .. }), "{error}");
    assert_eq!(error.info().unwrap().true_residual, [1.0]);
    assert_eq!(x, guess);
    assert!(error.to_string().contains("γ = 0"));
}

#[test]
fn a_breakdown_of_one_right_hand_side_is_named_and_does_no_harm_to_the_others() {
    // A = 0 on the second half: what lies there cannot be solved.
    let mut a = general(N, 0.5, 7);
    for i in 0..N {
        for k in 0..N {
            if i >= N / 2 || k >= N / 2 {
                a[i * N + k] = Complex64::ZERO;
            }
        }
    }
    let mut b = Random(8).vector(3 * N);
    (0..3 * N).for_each(|i| {
        let upper = i % N < N / 2;
        if upper == (i / N == 1) {
            b[i] = Complex64::ZERO;
        }
    });
    let mut x = vec![Complex64::ZERO; 3 * N];
    let params = GcrParams::from(SolverParams { max_breakdowns: 3, ..Default::default() });
    let error = run(&a, &b, &mut x, &params).unwrap_err();
    assert!(matches!(error, SolveError::Breakdown { what: BreakdownKind::Gamma, rhs: 1, .. }), "{error}");
    check_report(&error, &a, &b, &x);
    let info = error.info().unwrap();
    assert_eq!((info.reliable_updates, info.true_residual[1]), (3, 1.0));
    assert!(info.true_residual[0] < 1e-4 && info.true_residual[2] < 1e-4, "{info:?}");
}

#[test]
fn an_exhausted_space_leads_to_a_restart_and_not_to_an_error() {
    // Two eigenvalues: the space is full after two directions, to rounding. In single precision what is left then is
    // enough for no more than a part of the tolerance.
    let values: Vec<_> = (0..N).map(|i| if i % 2 == 0 { c(1.0, 0.0) } else { c(0.0, 3.0) }).collect();
    let a = with_spectrum(&values, 9);
    for precision in [Rounding::Double, Rounding::Single, Rounding::Half] {
        mixed!(space, operator, small, sloppy, system: N, 1, precision, &a);
        for delta in [0.0, 0.1] {
            for k_max in [2, 8, 32] {
                let b = Random(10).vector(N);
                let mut x = space.allocate().unwrap();
                let solver = SolverParams { delta: Some(delta), tol: 1e-13, ..Default::default() };
                let info = solve(&system, &Identity, &b, &mut x, &GcrParams { k_max, ..solver.into() });
                let info = info.unwrap_or_else(|error| panic!("{precision:?} {delta} {k_max}: {error}"));
                println!("{precision:?} {delta} {k_max}: {} {}", info.iterations, info.reliable_updates);
                assert!(residual(&a, &b, &x) <= 1.01e-13);
            }
        }
    }
}

#[test]
fn a_cycle_that_was_wrong_is_undone_and_followed_by_shorter_ones() {
    // The sloppy operator is wrong by a third: long cycles minimise something else.
    let a = general(N, 0.5, 11);
    let wrong = plus(&a, 0.1, &Random(12).vector(N * N));
    let space = Space::double(N, 1);
    let operator = Dense::new(&space, &a);
    let sloppy = Dense::new(&space, &wrong);
    let system = Mixed::new(&space, &operator, &space, &sloppy);
    let b = Random(13).vector(N);
    let mut x = space.allocate().unwrap();
    let solver = SolverParams { delta: Some(0.0), tol: 1e-6, max_iterations: 3000, ..Default::default() };
    let params = GcrParams { k_max: 32, ..solver.into() };
    let mut worst = 0.0f64;
    let mut lengths = vec![0];
    let mut watch = |event: &Iteration<'_>| {
        *lengths.last_mut().unwrap() += 1;
        if event.kind != IterationKind::Iterate {
            worst = worst.max(event.worst());
            lengths.push(0);
        }
        ControlFlow::Continue(())
    };
    let mut workspace = GcrWorkspace::new(&system, 32).unwrap();
    let answer = gcr(&system, &Identity, &b, &mut x, &params, &mut workspace, &mut watch);
    println!("{lengths:?} {worst}");
    assert!(answer.unwrap().converged && residual(&a, &b, &x) <= 1.01e-6);
    // The recurrence believes in the first one up to the end, and so on. Nothing ever gets worse than the guess.
    assert!(lengths[0] > 20 && lengths[1] == lengths[0] / 2 && lengths[2] == lengths[1] / 2, "{lengths:?}");
    assert!(lengths.is_sorted_by(|before, after| *after <= before + 1) && worst <= 1.0, "{lengths:?}");
    assert!(lengths[4..].iter().all(|length| *length < 8), "{lengths:?}");
}

#[test]
fn each_right_hand_side_has_cycles_of_its_own_length() {
    // On the first half the sloppy operator has the wrong sign, and needs three steps to the end; on the second half it
    // is right, and slow.
    let half = N / 2;
    let slow = general(half, 0.98, 27);
    let matrix = |sign: f64| -> Vec<Complex64> {
        (0..N * N)
            .map(|at| match (at / N, at % N) {
                (i, k) if i >= half && k >= half => slow[(i - half) * half + k - half],
                (i, k) if i == k => c(sign * (1 + i % 3) as f64, 0.0),
                _ => Complex64::ZERO,
            })
            .collect()
    };
    let space = Space::double(N, 2);
    let (precise, sloppy) = (matrix(1.0), matrix(-1.0));
    let (operator, sloppy) = (Dense::new(&space, &precise), Dense::new(&space, &sloppy));
    let mut b = Random(28).vector(2 * N);
    b[half..N + half].fill(Complex64::ZERO);
    let mut x = space.allocate().unwrap();
    // Waiting for seven iterations is no stagnation.
    let (delta, stagnation_window) = (Some(1e-3), Some(6));
    let solver = SolverParams { delta, max_iterations: 20, stagnation_window, ..Default::default() };
    let params = GcrParams { k_max: 10, ..solver.into() };
    let system = Mixed::new(&space, &operator, &space, &sloppy);
    let error = solve(&system, &Identity, &b, &mut x, &params).unwrap_err();
    let info = error.info().unwrap();
    // 3 and half of that, against 10 and 10. What was wrong is undone.
    assert_eq!((&info.iterations_per_rhs[..], info.reliable_updates), (&[4, 20][..], 2), "{info:?}");
    assert!(info.true_residual[0] == 1.0 && info.true_residual[1] < 0.5 && x[..N].iter().all(|x| x.norm() == 0.0));
    // The history has the truth of each restart, also where others went on for a while.
    let history = &info.history[0];
    assert!(history.len() == 5 && history[2] < 0.5 && history[3] == 1.0 && history[4] == 1.0, "{history:?}");

    // Memory in which a solve ended while one was waiting is as good as new.
    let mut used = GcrWorkspace::new(&system, 10).unwrap();
    let short = GcrParams { solver: SolverParams { max_iterations: 5, ..params.solver }, ..params };
    gcr(&system, &Identity, &b, &mut x, &short, &mut used, &mut ()).unwrap_err();
    let sound = Uniform::new(&space, &operator);
    let mut again = |workspace: &mut GcrWorkspace<Space, Space>| {
        x.fill(Complex64::ZERO);
        gcr(&sound, &Identity, &b, &mut x, &GcrParams { k_max: 10, ..Default::default() }, workspace, &mut ()).unwrap()
    };
    assert_eq!(again(&mut used), again(&mut GcrWorkspace::new(&sound, 10).unwrap()));
}

#[test]
fn slow_but_honest_convergence_is_no_stagnation() {
    // One direction at a time on a matrix that resists: some per mille from the residual in each cycle.
    let values: Vec<_> =
        (0..N).map(|i| Complex64::from_polar(1.0, 1.52 * (i as f64 / (N - 1) as f64 * 2.0 - 1.0))).collect();
    let a = with_spectrum(&values, 14);
    let b = Random(15).vector(N);
    for k_max in [1, 2] {
        let mut x = vec![Complex64::ZERO; N];
        let info = run(&a, &b, &mut x, &gcr_params(k_max, 1e-4)).unwrap();
        println!("{k_max}: {} iterations", info.iterations);
        assert!(info.iterations > [5000, 60][k_max - 1] && residual(&a, &b, &x) <= 1.01e-4);
    }
    // Breakdowns that are over do not count any more, and neither do those of an earlier solve in the same memory.
    uniform!(space, operator, system: Space::double(N, 1), &a);
    let mut workspace = GcrWorkspace::new(&system, 1).unwrap();
    let params = GcrParams { k_max: 1, ..SolverParams { tol: 1e-3, max_breakdowns: 2, ..Default::default() }.into() };
    let mut x = space.allocate().unwrap();
    let zero = scaled(|_| Complex64::ZERO);
    let error = gcr(&system, &zero, &b, &mut x, &params, &mut workspace, &mut ()).unwrap_err();
    assert!(matches!(error, SolveError::Breakdown { iteration: 2, .. }), "{error}");
    let hiccups = scaled(|call| if [1, 20, 521, 523].contains(&call) { 0.0 } else { 1.0 });
    let info = gcr(&system, &hiccups, &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
    assert!(info.iterations > 1000 && info.iterations_per_rhs[0] == info.iterations - 4);
    // With a short window it is given up, and what was reached is kept.
    let mut x = vec![Complex64::ZERO; N];
    let params =
        GcrParams { k_max: 1, ..SolverParams { tol: 1e-4, stagnation_window: Some(3), ..Default::default() }.into() };
    let error = run(&a, &b, &mut x, &params).unwrap_err();
    assert!(matches!(error, SolveError::Stagnation { rhs: 0, .. }), "{error}");
    check_report(&error, &a, &b, &x);
    assert!(error.info().unwrap().true_residual[0] < 1.0);
    assert_eq!(error.info().unwrap().given_up[0].why, RhsFailure::Plateau);
}

#[test]
fn nan_is_reported_with_its_right_hand_side() {
    let a = general(N, 0.8, 16);
    let clean = Random(17).vector(3 * N);
    let params = GcrParams { k_max: 4, ..Default::default() };
    let mut passed = 0;
    for from in 1..14 {
        let space = Space::double(N, 3);
        let mut operator = Dense::new(&space, &a);
        operator.nan = Some((1, from));
        let mut x = space.allocate().unwrap();
        let error = solve(&Uniform::new(&space, &operator), &Identity, &clean, &mut x, &params).unwrap_err();
        assert!(matches!(error, SolveError::NotANumber { rhs: 1, .. }), "{error}");
        assert!(x.iter().all(|v| v.is_finite()));
        // The best before survives: that of the last restart.
        let before = residual(&a, space.rhs(&clean, 0), space.rhs(&x, 0));
        assert!(before <= 1.0 && (from < 6 || before < 0.5), "{from}: {before}");
        passed += usize::from(before < 1.0);
    }
    assert!(passed > 5);
    // From a preconditioner, of infinite size, and in b.
    uniform!(space, operator, system: Space::double(N, 3), &a);
    for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
        let k = Custom::new(|call, r: &[Complex64], z: &mut [Complex64]| {
            z.copy_from_slice(r);
            if call == 6 {
                z[2 * N + 5] = c(poison, 0.0);
            }
        });
        let mut x = space.allocate().unwrap();
        let error = solve(&system, &k, &clean, &mut x, &params).unwrap_err();
        assert!(matches!(error, SolveError::NotANumber { rhs: 2, iteration: 5, .. }), "{error}");
        assert!(x.iter().all(|v| v.is_finite()));
    }
    let mut b = clean;
    b[2 * N + 4] = c(f64::INFINITY, 0.0);
    let mut x = vec![Complex64::ZERO; 3 * N];
    let error = run(&a, &b, &mut x, &params).unwrap_err();
    assert!(matches!(error, SolveError::NotANumber { rhs: 2, iteration: 0, .. }), "{error}");
}

#[test]
fn preconditioners_may_be_useless_erratic_or_of_any_scale() {
    let a = general(N, 0.8, 18);
    let b = Random(19).vector(N);
    uniform!(space, operator, system: Space::double(N, 1), &a);
    let params = GcrParams { k_max: 8, ..Default::default() };
    let mut x = space.allocate().unwrap();
    let zero = scaled(|_| Complex64::ZERO);
    let error = solve(&system, &zero, &b, &mut x, &params).unwrap_err();
    assert!(matches!(error, SolveError::Breakdown { what: BreakdownKind::Gamma, .. }), "{error}");
    assert_eq!(error.info().unwrap().preconditioner.calls, params.solver.max_breakdowns);
    assert_eq!(norm(&x), 0.0);

    // From the twelfth call on: the fourth of the second cycle gives that one's progress, and then come seven in vain.
    let late = scaled(|call| if call < 12 { 1.0 } else { 0.0 });
    let patient = GcrParams { solver: SolverParams { max_breakdowns: 7, ..params.solver }, ..params };
    let error = solve(&system, &late, &b, &mut x, &patient).unwrap_err();
    assert!(matches!(error, SolveError::Breakdown { what: BreakdownKind::Gamma, iteration: 19, .. }), "{error}");
    check_report(&error, &a, &b, &x);
    assert_eq!(error.info().unwrap().iterations_per_rhs, [11]);

    x.fill(Complex64::ZERO);
    let plain = run(&a, &b, &mut x, &params).unwrap();
    let solution = x.clone();
    // Another scale in each call, down to a hundred orders of magnitude: the same course.
    let scaled = scaled(|call| Complex64::from_polar(2f64.powi([7, 90, -200][call % 3]), call as f64));
    let mut x = space.allocate().unwrap();
    let info = solve(&system, &scaled as &dyn Preconditioner<Space>, &b, &mut x, &params).unwrap();
    assert_eq!(info.iterations, plain.iterations);
    assert!(distance(&x, &solution) < 1e-8 && residual(&a, &b, &x) <= 1.01e-10);
    // Noise of half the size of r, another each time.
    let noisy = Custom::new(|call, r: &[Complex64], z: &mut [Complex64]| {
        let size = 0.5 * norm(r) / (N as f64).sqrt();
        z.copy_from_slice(&plus(r, size, &Random(call as u64).vector(N)));
    });
    let mut x = space.allocate().unwrap();
    let info = solve(&system, &noisy, &b, &mut x, &params).unwrap();
    assert!(info.converged && residual(&a, &b, &x) <= 1.01e-10);
    assert!(distance(&x, &direct(&a, &b)) < 1e-8);
}

#[test]
fn observers_see_every_iterate_and_what_was_done_until_they_stop_is_kept() {
    let a = general(N, 0.8, 20);
    uniform!(space, operator, system: Space::double(N, 2), &a);
    let b = Random(21).vector(2 * N);
    let params = GcrParams { k_max: 6, ..Default::default() };
    let mut workspace = GcrWorkspace::new(&system, 6).unwrap();
    let mut x = space.allocate().unwrap();
    let mut seen = 0;
    let mut watch = |event: &Iteration<'_>| {
        seen += 1;
        assert_eq!(event.iteration, seen);
        ControlFlow::Continue(())
    };
    let whole = gcr(&system, &Identity, &b, &mut x, &params, &mut workspace, &mut watch).unwrap();
    assert_eq!(seen, whole.iterations);
    // In the middle of a cycle, at a restart, in the first iteration.
    for at in [1, 2, 5, 6, 7, 15, 18] {
        let mut x = space.allocate().unwrap();
        let error = gcr(&system, &Identity, &b, &mut x, &params, &mut workspace, &mut stop_at(at)).unwrap_err();
        assert!(matches!(error, SolveError::Cancelled { iteration, .. } if iteration == at), "{error}");
        check_report(&error, &a, &b, &x);
        let info = error.info().unwrap();
        for j in 0..2 {
            // The same as if the solve had gone on.
            assert!((info.true_residual[j] - whole.history[j][at]).abs() < 1e-12, "{at}");
        }
        // No more iterations than allowed, with the same outcome.
        let mut y = space.allocate().unwrap();
        let params = GcrParams { solver: SolverParams { max_iterations: at, ..params.solver }, ..params };
        let error = gcr(&system, &Identity, &b, &mut y, &params, &mut workspace, &mut ()).unwrap_err();
        assert!(matches!(error, SolveError::NoConvergence { iterations, .. } if iterations == at), "{error}");
        assert_eq!(x, y);
    }
}

#[test]
fn limits_and_parameters() {
    let a = general(N, 0.8, 22);
    let b = Random(23).vector(N);
    let mut x = vec![Complex64::ZERO; N];
    let error =
        run(&a, &b, &mut x, &GcrParams::from(SolverParams { max_iterations: 0, ..Default::default() })).unwrap_err();
    assert!(matches!(error, SolveError::NoConvergence { iterations: 0, .. }), "{error}");
    // Below what double precision can reach: no claim, and no endless loop.
    for tol in [0.0, 1e-18] {
        for k_max in [1, 16] {
            x.fill(Complex64::ZERO);
            let error = run(&a, &b, &mut x, &gcr_params(k_max, tol)).unwrap_err();
            assert!(matches!(error, SolveError::Stagnation { .. }), "{error}");
            assert!(error.info().unwrap().worst_residual() < 1e-14, "{error}");
        }
    }
    // A sloppy operator that is another one altogether.
    let space = Space::double(N, 1);
    let (operator, other) = (Dense::new(&space, &a), Dense::new(&space, &general(N, 3.0, 24)));
    let system = Mixed::new(&space, &operator, &space, &other);
    x.fill(Complex64::ZERO);
    let error = solve(&system, &Identity, &b, &mut x, &GcrParams::default()).unwrap_err();
    assert!(matches!(error, SolveError::Stagnation { .. }), "{error}");
    check_report(&error, &a, &b, &x);
    assert!(error.info().unwrap().true_residual[0] <= 1.0 && error.info().unwrap().iterations < 200, "{error}");

    for params in [
        GcrParams::from(SolverParams { tol: f64::NAN, ..Default::default() }),
        GcrParams::from(SolverParams { tol: -1.0, ..Default::default() }),
        GcrParams::from(SolverParams { delta: Some(1.5), ..Default::default() }),
        GcrParams::from(SolverParams { delta: Some(f64::NAN), ..Default::default() }),
        GcrParams::from(SolverParams { max_stalls: 0, ..Default::default() }),
        GcrParams::from(SolverParams { max_breakdowns: 0, ..Default::default() }),
        GcrParams { k_max: 0, ..Default::default() },
    ] {
        assert!(matches!(run(&a, &b, &mut x, &params), Err(SolveError::Invalid(_))), "{params:?}");
    }
    let system = Uniform::new(&space, &operator);
    let mut small = GcrWorkspace::new(&system, 4).unwrap();
    let answer = gcr(&system, &Identity, &b, &mut x, &GcrParams::default(), &mut small, &mut ());
    assert!(matches!(answer, Err(SolveError::Invalid(why)) if why.contains("workspace")));
    // Memory for another number of right-hand sides.
    let two = Space::double(N, 2);
    let operator = Dense::new(&two, &a);
    let (mut x, b) = (two.allocate().unwrap(), two.allocate().unwrap());
    let params = GcrParams { k_max: 4, ..Default::default() };
    let answer = gcr(&Uniform::new(&two, &operator), &Identity, &b, &mut x, &params, &mut small, &mut ());
    assert!(matches!(answer, Err(SolveError::Invalid(_))));
}

/// Fails at its fourth call.
struct Failing(Cell<usize>);

impl Preconditioner<Space> for Failing {
    fn apply(&self, space: &Space, r: &Vec<Complex64>, norms: &[f64], z: &mut Vec<Complex64>) -> Result<Work, Broken> {
        self.0.set(self.0.get() + 1);
        if self.0.get() == 4 { Err(Broken) } else { Identity.apply(space, r, norms, z) }
    }
}

#[test]
fn errors_of_the_backend_pass_through() {
    let a = general(N, 0.8, 25);
    let space = Space::double(N, 1);
    let mut operator = Dense::new(&space, &a);
    let b = Random(26).vector(N);
    let mut x = space.allocate().unwrap();
    let answer = solve(&Uniform::new(&space, &operator), &Failing(Cell::new(0)), &b, &mut x, &GcrParams::default());
    assert!(matches!(answer, Err(SolveError::Backend(Broken))));
    assert_eq!(operator.applications.get(), 3);
    operator.fails_at = 5;
    let answer = solve(&Uniform::new(&space, &operator), &Identity, &b, &mut x, &GcrParams::default());
    assert!(matches!(answer, Err(SolveError::Backend(Broken))));
}
