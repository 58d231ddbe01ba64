//! Systems that cannot be solved end in the right error, with a true report, and never in a wrong claim.

use crate::common::{
    Answer, Broken, Dense, Random, Rounding, Space, c, distance, general, hermitian, mixed, positive, product,
    residual, residuals, rotation, solved, stop_at, uniform,
};
use crate::methods::SolveMethod::{self, *};
use crate::methods::{solve, solve_dense};
use num_complex::Complex64;
use solvers::*;
use std::ops::ControlFlow;

const N: usize = 32;

fn run(
    method: SolveMethod,
    a: &[Complex64],
    b: &Vec<Complex64>,
    x: &mut Vec<Complex64>,
    params: &SolverParams,
) -> Answer {
    solve_dense(method, Rounding::Double, a, b, x, params)
}

/// Limits of a solve that may have a long way to go.
fn long() -> SolverParams {
    SolverParams { max_iterations: 2000, ..Default::default() }
}

#[test]
fn indefinite_matrices_are_named() {
    for seed in 0..20 {
        let a = hermitian(N, |i| if i % 2 == 0 { 1.0 + i as f64 } else { -1.0 - i as f64 }, seed);
        let b = Random(seed + 100).vector(N);
        let mut x = vec![Complex64::ZERO; N];
        let error = run(Cg, &a, &b, &mut x, &SolverParams::default()).unwrap_err();
        assert!(matches!(error, SolveError::NotPositiveDefinite { curvature, .. } if curvature <= 0.0), "{error}");
        let info = error.info().unwrap();
        assert!((residual(&a, &b, &x) - info.true_residual[0]).abs() < 1e-12);
        assert!(info.true_residual[0] <= 1.0 && !info.converged);
    }
}

#[test]
fn singular_matrices_never_count_as_solved() {
    for seed in 0..10 {
        // b has a part outside the image of A.
        let a = hermitian(N, |i| if i == 0 { 0.0 } else { i as f64 }, seed);
        let b = Random(seed + 50).vector(N);
        for method in [Cg, Bicgstab, Cgnr, Cgne] {
            let mut x = vec![Complex64::ZERO; N];
            let error = run(method, &a, &b, &mut x, &long()).unwrap_err();
            let (info, truth) = (error.info().unwrap(), residual(&a, &b, &x));
            println!("{error}");
            assert!(!info.converged && truth > 1e-3);
            assert!((truth - info.true_residual[0]).abs() <= 1e-6 * truth.max(1.0), "{error} {truth:e} {info:?}");
        }
    }
    // The zero matrix, and M†b = 0 with b ≠ 0.
    let zero = vec![Complex64::ZERO; N * N];
    let b = Random(3).vector(N);
    let mut x = vec![Complex64::ZERO; N];
    assert!(matches!(
        run(Cg, &zero, &b, &mut x, &SolverParams::default()),
        Err(SolveError::NotPositiveDefinite { curvature: 0.0, iteration: 0, rhs: 0, .. })
    ));
    assert!(matches!(run(Bicgstab, &zero, &b, &mut x, &long()), Err(SolveError::Breakdown { .. })));
    let error = run(Cgnr, &zero, &b, &mut x, &SolverParams::default()).unwrap_err();
    assert!(matches!(error, SolveError::Stagnation { .. }), "{error}");
    assert_eq!(error.info().unwrap().true_residual, [1.0]);
    assert!(run(Cgne, &zero, &b, &mut x, &SolverParams::default()).is_err());
}

#[test]
fn bicgstab_breaks_down_on_a_rotation() {
    // Real, A† = −A, real b: (b, A b) = 0 and (A b, b) = 0, so that neither α nor ω exist.
    let a = rotation(N, |_| 1.0);
    let b: Vec<_> = (0..N).map(|i| c(1.0 + (i % 5) as f64, 0.0)).collect();
    let mut x = vec![Complex64::ZERO; N];
    let error = run(Bicgstab, &a, &b, &mut x, &long()).unwrap_err();
    assert!(matches!(error, SolveError::Breakdown { rhs: 0, .. }), "{error}");
    assert!(error.info().unwrap().restarts > 1);
    // One step of CGNE or CGNR does it.
    assert_eq!(run(Cgnr, &a, &b, &mut x, &SolverParams::default()).unwrap().iterations, 1);
}

#[test]
fn bicgstab_recovers_from_a_breakdown() {
    // b = e₀ and (e₀, A e₀) = 0: neither α nor ω exist with r̃ = r, but with another shadow residual they do.
    let mut a = general(N, 0.3, 4);
    a[0] = Complex64::ZERO;
    let (mut b, mut x) = (vec![Complex64::ZERO; N], vec![Complex64::ZERO; N]);
    b[0] = Complex64::ONE;
    let info = run(Bicgstab, &a, &b, &mut x, &long()).unwrap();
    assert!(info.restarts >= 1 && residual(&a, &b, &x) <= 1.01e-10);
}

/// Right-hand side 1 of 3 was given up, and the others have their solutions.
fn only_one_fails(a: &[Complex64], b: &[Complex64], x: &[Complex64], error: &SolveError<Broken>) {
    let info = error.info().unwrap();
    assert!(info.failed == [1] && !info.converged, "{error}: {info:?}");
    for (j, truth) in residuals(a, b, x).into_iter().enumerate() {
        assert!((truth - info.true_residual[j]).abs() <= 1e-6 * truth, "{error}: {truth:e} {info:?}");
        assert!(if j == 1 { truth > 1e-10 && truth <= 1.0 } else { truth <= 1.001e-10 }, "{error}: {truth:e}");
    }
}

#[test]
fn one_that_has_no_solution_does_not_hold_up_the_others() {
    // A singular matrix, and one right-hand side with a part outside its image.
    for seed in 0..10 {
        let a = hermitian(N, |i| if i == 0 { 0.0 } else { i as f64 }, 70 + seed);
        let image = |seed: u64| product(&a, &Random(seed).vector(N));
        let b = [image(100 + seed), Random(200 + seed).vector(N), image(300 + seed)].concat();
        for (method, window) in [(Cg, 200), (Bicgstab, 500), (Gcr(16), 500)] {
            let params = SolverParams { stagnation_window: Some(window), ..Default::default() };
            let mut x = vec![Complex64::ZERO; 3 * N];
            let error = run(method, &a, &b, &mut x, &params).unwrap_err();
            only_one_fails(&a, &b, &x, &error);
        }
    }
}

#[test]
fn all_that_were_given_up_are_named() {
    let a = hermitian(N, |i| if i == 0 { 0.0 } else { i as f64 }, 90);
    let b = Random(91).vector(3 * N);
    let params = SolverParams { stagnation_window: Some(100), ..Default::default() };
    let error = run(Cg, &a, &b, &mut vec![Complex64::ZERO; 3 * N], &params).unwrap_err();
    let info = error.info().unwrap();
    assert_eq!(info.failed, [0, 1, 2]);
    let named = |(rhs, given_up): (usize, &GivenUp)| {
        given_up.rhs == rhs && matches!(given_up.why, RhsFailure::NotPositiveDefinite(_)) && given_up.iteration > 0
    };
    assert!(info.given_up.len() == 3 && info.given_up.iter().enumerate().all(named), "{info:?}");
    let message = error.to_string();
    assert!(
        message.contains("right-hand side 0") && message.ends_with("right-hand sides 1, 2 were also given up"),
        "{message}"
    );
}

#[test]
fn a_nan_is_reported_with_its_right_hand_side() {
    let a = positive(N, 100.0, 5);
    let clean = Random(6).vector(3 * N);
    for (from, method) in [1, 5].into_iter().flat_map(|from| [(from, Cg), (from, Bicgstab), (from, Gcr(8))]) {
        let space = Space::double(N, 3);
        let mut operator = Dense::new(&space, &a);
        operator.nan = Some((1, from));
        let mut x = space.allocate().unwrap();
        let system = Uniform::new(&space, &operator);
        let error = solve(method, &system, &clean, &mut x, &SolverParams::default(), &mut ()).unwrap_err();
        assert!(matches!(error, SolveError::NotANumber { rhs: 1, .. }), "{method:?} {from}");
        assert!(x.iter().all(|v| v.is_finite()), "{method:?} {from}");
        only_one_fails(&a, &clean, &x, &error);
    }
    let mut b = clean;
    b[2 * N + 4] = c(f64::INFINITY, 0.0);
    let mut x = vec![Complex64::ZERO; 3 * N];
    let error = run(Cg, &a, &b, &mut x, &SolverParams::default()).unwrap_err();
    assert!(matches!(error, SolveError::NotANumber { rhs: 2, iteration: 0, .. }), "{error}");
    for method in [Cgnr, Cgne] {
        let answer = run(method, &a, &b, &mut x, &SolverParams::default());
        assert!(matches!(answer, Err(SolveError::NotANumber { rhs: 2, .. })), "{answer:?}");
    }
}

#[test]
fn the_worst_residual_is_a_nan_wherever_it_stands() {
    let worst = |residuals: &[f64]| Info { true_residual: residuals.to_vec(), ..Info::default() }.worst_residual();
    assert_eq!(worst(&[0.5, 0.75, 0.25]), 0.75);
    for residuals in [[f64::NAN, 0.5, 0.25], [0.5, f64::NAN, 0.25], [0.5, 0.25, f64::NAN]] {
        assert!(worst(&residuals).is_nan(), "{residuals:?}");
    }
}

#[test]
fn observers_see_every_iterate_and_can_stop() {
    let a = positive(N, 30.0, 7);
    mixed!(space, operator, small, sloppy, system: N, 1, Rounding::Single, &a);
    let b = Random(8).vector(N);
    let mut x = space.allocate().unwrap();
    let mut workspace = CgWorkspace::new(&system).unwrap();
    let mut seen = Vec::new();
    let mut updates = 0;
    let mut watch = |event: &Iteration<'_>| {
        assert_eq!(event.iteration, seen.len() + 1);
        seen.push(event.worst());
        updates += usize::from(event.kind != IterationKind::Iterate);
        ControlFlow::Continue(())
    };
    let info = cg(&system, &b, &mut x, &SolverParams::default(), &mut workspace, &mut watch).unwrap();
    assert_eq!(seen, info.history[0][1..]);
    assert_eq!(updates, info.reliable_updates);

    x.fill(Complex64::ZERO);
    let error = cg(&system, &b, &mut x, &SolverParams::default(), &mut workspace, &mut stop_at(7)).unwrap_err();
    assert!(matches!(error, SolveError::Cancelled { iteration: 7, .. }), "{error}");
    // What was done until then is in x.
    let info = error.info().unwrap();
    assert!((residual(&a, &b, &x) - info.true_residual[0]).abs() < 1e-12 && info.true_residual[0] < 1.0);
}

#[test]
fn limits_and_parameters() {
    let a = positive(N, 1e6, 9);
    let b = Random(10).vector(2 * N);
    let mut x = vec![Complex64::ZERO; 2 * N];
    let error = run(Cg, &a, &b, &mut x, &SolverParams { max_iterations: 5, ..Default::default() }).unwrap_err();
    assert!(matches!(error, SolveError::NoConvergence { iterations: 5, .. }), "{error}");
    // The residual of CG may rise at first: then the guess is the best iterate.
    assert!(error.info().unwrap().true_residual.iter().all(|r| *r <= 1.0));
    let error = run(Cg, &a, &b, &mut x, &SolverParams { max_iterations: 0, ..Default::default() }).unwrap_err();
    assert!(matches!(error, SolveError::NoConvergence { iterations: 0, .. }), "{error}");
    // Below what double precision can reach: no claim, and no endless loop.
    for tol in [0.0, 1e-18] {
        x.fill(Complex64::ZERO);
        let error = run(Cg, &a, &b, &mut x, &SolverParams { tol, ..Default::default() }).unwrap_err();
        assert!(matches!(error, SolveError::Stagnation { .. } | SolveError::NoConvergence { .. }), "{error}");
        assert!(error.info().unwrap().worst_residual() < 1e-10, "{error}");
    }
    let error = run(Cg, &a, &b, &mut x, &SolverParams { stagnation_window: Some(20), tol: 0.0, ..Default::default() });
    assert!(matches!(error, Err(SolveError::Stagnation { .. })));
    for params in [
        SolverParams { tol: f64::NAN, ..Default::default() },
        SolverParams { tol: -1.0, ..Default::default() },
        SolverParams { delta: Some(1.5), ..Default::default() },
        SolverParams { max_stalls: 0, ..Default::default() },
    ] {
        assert!(matches!(run(Cg, &a, &b, &mut x, &params), Err(SolveError::Invalid(_))));
    }
}

#[test]
fn errors_of_the_backend_pass_through() {
    let a = positive(N, 100.0, 11);
    let space = Space::double(N, 1);
    let mut operator = Dense::new(&space, &a);
    operator.fails_at = 4;
    let system = Uniform::new(&space, &operator);
    let b = Random(12).vector(N);
    let mut x = space.allocate().unwrap();
    let error = cg(&system, &b, &mut x, &SolverParams::default(), &mut CgWorkspace::new(&system).unwrap(), &mut ());
    assert!(matches!(error.unwrap_err().unsolved(), Err(Broken)));
}

#[test]
fn defect_correction_tolerates_weak_inner_solves_and_reports_useless_ones() {
    let a = general(N, 0.5, 13);
    uniform!(space, operator, system: Space::double(N, 2), &a);
    let b = Random(14).vector(2 * N);
    let mut workspace = DefectWorkspace::new(&system).unwrap();
    let mut inner_workspace = BicgstabWorkspace::new(&system).unwrap();
    let mut x = space.allocate().unwrap();
    // Two iterations are never enough for the inner solver, but each pass helps.
    let weak = |r: &Vec<Complex64>, e: &mut Vec<Complex64>, request: &SolverParams| {
        let params = SolverParams { tol: request.tol, max_iterations: 2, ..Default::default() };
        bicgstab(&system, r, e, &params, &mut inner_workspace, &mut ())
    };
    let info = defect_correction(&system, &b, &mut x, &DefectParams::default(), &mut workspace, weak, &mut ()).unwrap();
    assert!(info.converged && info.reliable_updates > 3);
    assert!(solved(&a, &b, &x, 1.001e-10));
    // One that answers nonsense: the guess survives.
    let guess = Random(15).vector(2 * N);
    let mut x = guess.clone();
    let nonsense = |r: &Vec<Complex64>, e: &mut Vec<Complex64>, _: &SolverParams| {
        e.iter_mut().zip(r).for_each(|(e, r)| *e = -10.0 * r);
        Ok(Info::default())
    };
    let error = defect_correction(&system, &b, &mut x, &DefectParams::default(), &mut workspace, nonsense, &mut ());
    assert!(matches!(error, Err(SolveError::Stagnation { .. })), "{error:?}");
    assert!(distance(&x, &guess) < 1e-12);
    // One that answers NaN: the guess survives, too.
    let mut x = guess.clone();
    let poison = |_: &Vec<Complex64>, e: &mut Vec<Complex64>, _: &SolverParams| {
        e[N + 1] = c(f64::NAN, 0.0);
        Ok(Info::default())
    };
    let error = defect_correction(&system, &b, &mut x, &DefectParams::default(), &mut workspace, poison, &mut ());
    assert!(matches!(error, Err(SolveError::NotANumber { rhs: 1, .. })), "{error:?}");
    assert_eq!(x, guess);
}

#[test]
fn updates_of_others_are_no_stalls() {
    // Each right-hand side calls for updates in its own time, and sees those of eleven others, most of which bring it
    // nothing new.
    for seed in 0..12 {
        let (n, nrhs) = (96, 12);
        let a = general(n, 0.93, 40 + seed);
        let b = Random(60 + seed).vector(n * nrhs);
        let mut x = vec![Complex64::ZERO; n * nrhs];
        let params = SolverParams { tol: 1e-11, delta: Some(0.5), ..Default::default() };
        let info = solve_dense(Bicgstab, Rounding::Single, &a, &b, &mut x, &params).unwrap();
        assert!(info.restarts == 0 && info.reliable_updates > 15, "{seed}: {info:?}");
        assert!(solved(&a, &b, &x, 1.001e-11));
    }
}

#[test]
fn a_batch_has_hardly_more_updates_than_each_by_itself() {
    let (n, nrhs) = (96, 12);
    for seed in 0..6 {
        let a = general(n, 0.93, 40 + seed);
        let b = Random(60 + seed).vector(n * nrhs);
        let params = SolverParams { tol: 1e-11, ..Default::default() };
        let updates = |b: &[Complex64]| {
            let mut x = vec![Complex64::ZERO; b.len()];
            let info = solve_dense(Bicgstab, Rounding::Single, &a, &b.to_vec(), &mut x, &params).unwrap();
            assert!(solved(&a, b, &x, 1.001e-11));
            info.reliable_updates
        };
        let together = updates(&b);
        let most = b.chunks(n).map(updates).max().unwrap();
        // A few more at the end, where half of those that are left finish at a time.
        assert!(together <= most + 4, "{seed}: {together}, {most}");
    }
}
