//! Block CG: the answers of CG in fewer iterations, and what happens where right-hand sides depend on each other.

use crate::common::{
    Answer, Broken, Dense, Random, Rounding, Space, c, check_claims, distance, dot, hermitian, mixed, norm, positive,
    residual, uniform, with_spectrum,
};
use crate::methods::SolveMethod::{self, *};
use crate::methods::{solve, solve_dense};
use num_complex::Complex64;
use solvers::*;

const N: usize = 160;

fn params(tol: f64) -> SolverParams {
    SolverParams { tol, max_iterations: 2000, ..Default::default() }
}

fn block<Y: System<Precise = Space, Sloppy = Space, Error = Broken>>(
    system: &Y,
    b: &Vec<Complex64>,
    x: &mut Vec<Complex64>,
    tol: f64,
) -> Answer {
    solve(BlockCg, system, b, x, &params(tol), &mut ())
}

/// Solves by two methods in double precision, from zero.
fn pair(methods: [SolveMethod; 2], a: &[Complex64], b: &Vec<Complex64>, tol: f64) -> [(Vec<Complex64>, Answer); 2] {
    methods.map(|method| {
        let mut x = vec![Complex64::ZERO; b.len()];
        let answer = solve_dense(method, Rounding::Double, a, b, &mut x, &params(tol));
        (x, answer)
    })
}

/// Solves by block CG and by CG in double precision, from zero.
fn both(a: &[Complex64], b: &Vec<Complex64>, tol: f64) -> [(Vec<Complex64>, Answer); 2] {
    pair([BlockCg, Cg], a, b, tol)
}

/// A few eigenvalues far below the others: 10⁻⁴ to 10⁻³ and 0.3 to 1.
fn gap(small: usize, seed: u64) -> Vec<Complex64> {
    let value = |i: usize| if i < small { 1e-4 * (1 + i) as f64 } else { 0.3 + 0.7 * i as f64 / N as f64 };
    hermitian(N, value, seed)
}

#[test]
fn small_eigenvalues_cost_a_block_fewer_iterations() {
    for seed in 0..4 {
        let a = gap(8, seed);
        let b = Random(20 + seed).vector(8 * N);
        let [(x, info), (y, plain)] = both(&a, &b, 1e-10);
        let (info, plain) = (info.unwrap(), plain.unwrap());
        println!("block CG {}, CG {} iterations", info.iterations, plain.iterations);
        check_claims(&a, &b, &x, &info, 1e-10);
        assert!(info.iterations < plain.iterations / 2, "{} {}", info.iterations, plain.iterations);
        assert_eq!((info.reliable_updates, info.restarts), (1, 0));
        // One for each iteration, and the check; two Gram matrices each, but where a round of factors was repeated.
        assert_eq!(info.sloppy_applications, info.iterations);
        assert!(info.reductions <= 3 * info.iterations + 5, "{info:?}");
        // Residuals of 1e-10 and a smallest eigenvalue of 1e-4.
        for (x, y) in x.chunks(N).zip(y.chunks(N)) {
            assert!(distance(x, y) < 1e-6 * norm(y), "{}", distance(x, y));
        }
    }
}

#[test]
fn one_right_hand_side_is_plain_cg() {
    for (kappa, seed) in [(10.0, 1), (100.0, 2), (1000.0, 3)] {
        let a = positive(N, kappa, seed);
        let b = Random(seed + 4).vector(N);
        let [(x, info), (y, plain)] = both(&a, &b, 1e-10);
        let (info, plain) = (info.unwrap(), plain.unwrap());
        assert_eq!(info.iterations, plain.iterations, "{kappa}");
        assert!(distance(&x, &y) < 1e-10 * kappa * norm(&y));
        for (mine, theirs) in info.history[0].iter().zip(&plain.history[0]).take(20) {
            assert!((mine - theirs).abs() < 1e-10 * theirs, "{mine:e} {theirs:e}");
        }
    }
}

#[test]
fn right_hand_sides_that_depend_on_each_other_are_solved() {
    let a = positive(N, 300.0, 7);
    let one = Random(8).vector(N);
    let two = Random(9).vector(N);
    let three = Random(10).vector(N);
    let mix = |f: &dyn Fn(usize) -> Complex64| (0..N).map(f).collect::<Vec<_>>();
    let cases = [
        ("equal", [one.clone(), one.clone(), two.clone()].concat()),
        ("all equal", [one.clone(), one.clone(), one.clone()].concat()),
        ("a sum", [one.clone(), mix(&|i| 1e-3 * one[i] - 2.0 * two[i]), two.clone()].concat()),
        // Not quite: what is left of the second is far above the tolerance, and below the threshold.
        ("nearly equal", [one.clone(), mix(&|i| one[i] + 1e-8 * three[i]), two.clone()].concat()),
        ("of very different size", [mix(&|i| 1e9 * one[i]), mix(&|i| 1e-9 * two[i]), one.clone()].concat()),
        ("zero", [vec![Complex64::ZERO; N], two.clone(), one.clone()].concat()),
    ];
    for (name, b) in cases {
        let [(x, info), (_, plain)] = both(&a, &b, 1e-12);
        let (info, plain) = (info.unwrap_or_else(|error| panic!("{name}: {error}")), plain.unwrap());
        println!("{name}: {} iterations, {} updates; CG {}", info.iterations, info.reliable_updates, plain.iterations);
        check_claims(&a, &b, &x, &info, 1e-12);
        // What was dropped at first takes a solve of its own, from 1e-8 on.
        let nearly = name == "nearly equal";
        assert_eq!(info.reliable_updates > 1, nearly, "{name}");
        assert!(info.iterations <= plain.iterations * if nearly { 2 } else { 1 }, "{name}");
    }
    // Nothing to do at all.
    let [(x, info), _] = both(&a, &vec![Complex64::ZERO; 3 * N], 1e-10);
    assert!(info.unwrap().iterations == 0 && norm(&x) == 0.0);
    // More right-hand sides than dimensions: the space is exhausted at once.
    let small = positive(5, 10.0, 3);
    let b = Random(4).vector(8 * 5);
    let [(x, info), _] = both(&small, &b, 1e-12);
    let info = info.unwrap();
    check_claims(&small, &b, &x, &info, 1e-12);
    assert!(info.iterations <= 2, "{info:?}");
}

#[test]
fn guesses_are_used_and_finished_ones_are_left_alone() {
    let a = gap(6, 11);
    uniform!(space, operator, system: Space::double(N, 4), &a);
    let b = Random(12).vector(4 * N);
    let mut x = space.allocate().unwrap();
    let cold = block(&system, &b, &mut x, 1e-11).unwrap();
    let done = x[N..2 * N].to_vec();
    x[..N].fill(Complex64::ZERO);
    x[2 * N..].iter_mut().zip(Random(13).vector(2 * N)).for_each(|(x, e)| *x += 1e-3 * e);
    let info = block(&system, &b, &mut x, 1e-10).unwrap();
    check_claims(&a, &b, &x, &info, 1e-10);
    assert!(x[N..2 * N] == done && info.iterations_per_rhs[1] == 0 && cold.iterations > 0);
}

#[test]
fn two_precisions_reach_double_precision() {
    for (precision, more) in [(Rounding::Single, 1.5), (Rounding::Half, 4.0), (Rounding::Narrow, 4.0)] {
        let a = positive(N, 100.0, 14);
        mixed!(space, operator, small, sloppy, system: N, 4, precision, &a);
        let mut b = Random(15).vector(4 * N);
        b[..N].iter_mut().for_each(|b| *b *= 2f64.powi(40));
        let mut x = space.allocate().unwrap();
        let info = block(&system, &b, &mut x, 1e-12).unwrap();
        check_claims(&a, &b, &x, &info, 1e-12);
        let plain = block(&Uniform::new(&space, &operator), &b, &mut space.allocate().unwrap(), 1e-12).unwrap();
        println!(
            "{precision:?}: {} of {} iterations, {} updates",
            info.iterations, plain.iterations, info.reliable_updates
        );
        assert!(info.reliable_updates >= 2 && info.iterations as f64 <= more * plain.iterations as f64);
    }
}

#[test]
fn updates_keep_directions() {
    let a = gap(8, 17);
    uniform!(space, operator, system: Space::double(N, 8), &a);
    let b = Random(18).vector(8 * N);
    let run = |delta: Option<f64>| {
        let params = BlockCgParams::from(SolverParams { delta, ..Default::default() });
        let mut x = space.allocate().unwrap();
        block_cg(&system, &b, &mut x, &params, &mut BlockCgWorkspace::new(&system).unwrap(), &mut ()).unwrap()
    };
    let (never, often) = (run(None), run(Some(0.3)));
    println!("{} iterations, {} with {} updates", never.iterations, often.iterations, often.reliable_updates);
    assert!(often.reliable_updates >= 5 && often.iterations <= never.iterations + 3 && often.restarts == 0);
}

#[test]
fn operators_that_are_not_positive_are_reported() {
    // Eigenvalues of both signs; with as many right-hand sides a diagonal of P†A P that shows nothing.
    for seed in 0..10 {
        let a = hermitian(N, |i| if i % 5 == 0 { -1.0 } else { 1.0 + i as f64 / N as f64 }, seed);
        let b = Random(seed + 30).vector(3 * N);
        let [(x, answer), _] = both(&a, &b, 1e-10);
        let error = answer.unwrap_err();
        assert!(matches!(error, SolveError::NotPositiveDefinite { curvature, .. } if curvature <= 0.0), "{error}");
        let info = error.info().unwrap();
        assert!(info.failed == [0, 1, 2] && info.true_residual.iter().all(|r| *r <= 1.0));
        check_claims(&a, &b, &x, info, 1e-10);
    }
    let [(_, answer), _] = both(&vec![Complex64::ZERO; 16], &Random(2).vector(8), 1e-10);
    assert!(matches!(answer, Err(SolveError::NotPositiveDefinite { curvature: 0.0, iteration: 0, .. })), "{answer:?}");
}

#[test]
fn a_nan_is_reported_with_its_right_hand_side() {
    let a = positive(N, 100.0, 19);
    for from in [1, 6] {
        let space = Space::double(N, 3);
        let mut operator = Dense::new(&space, &a);
        operator.nan = Some((1, from));
        let system = Uniform::new(&space, &operator);
        let b = Random(20).vector(3 * N);
        let mut x = space.allocate().unwrap();
        let error = block(&system, &b, &mut x, 1e-10).unwrap_err();
        assert!(matches!(error, SolveError::NotANumber { rhs: 1, .. }), "{error}");
        assert_eq!(error.info().unwrap().failed, [1], "{from}");
        assert!(x.iter().all(|v| v.is_finite()), "{from}");
        for j in [0, 2] {
            assert!(residual(&a, space.rhs(&b, j), space.rhs(&x, j)) <= 1.001e-10, "{from} {j}");
        }
    }
    let mut b = Random(21).vector(3 * N);
    b[2 * N + 3] = c(f64::NAN, 0.0);
    let [(_, answer), _] = both(&a, &b, 1e-10);
    assert!(matches!(answer, Err(SolveError::NotANumber { rhs: 2, iteration: 0, .. })), "{answer:?}");
}

#[test]
fn limits_parameters_and_workspaces() {
    let a = positive(N, 1e4, 22);
    uniform!(space, operator, system: Space::double(N, 2), &a);
    let b = Random(23).vector(2 * N);
    let mut workspace = BlockCgWorkspace::new(&system).unwrap();
    let mut run = |params: &BlockCgParams| {
        let mut x = space.allocate().unwrap();
        (block_cg(&system, &b, &mut x, params, &mut workspace, &mut ()), x)
    };
    for most in [0, 7] {
        let (answer, x) = run(&BlockCgParams::from(SolverParams { max_iterations: most, ..Default::default() }));
        let error = answer.unwrap_err();
        assert!(matches!(error, SolveError::NoConvergence { iterations, .. } if iterations == most), "{error}");
        check_claims(&a, &b, &x, error.info().unwrap(), 1e-10);
    }
    for dependent in [Some(0.0), Some(1.0), Some(f64::NAN)] {
        assert!(matches!(run(&BlockCgParams { dependent, ..Default::default() }).0, Err(SolveError::Invalid(_))));
    }
    let below = run(&BlockCgParams::from(SolverParams { tol: 0.0, max_iterations: 2000, ..Default::default() })).0;
    assert!(below.unwrap_err().info().unwrap().worst_residual() < 1e-10);
    // The same memory, the same bits.
    let (first, x) = run(&BlockCgParams::default());
    let (second, y) = run(&BlockCgParams::default());
    assert!(first.unwrap() == second.unwrap() && x == y);
}

#[test]
fn general_operators_are_solved_on_their_normal_equations() {
    for seed in 0..3 {
        // Normal, with complex eigenvalues, a few of them small: those of M†M are 10⁻⁴ to 6·10⁻⁴ and 0.1 to 1.
        let value = |i: usize| match i {
            0..6 => 1e-2 * (1.0 + i as f64).sqrt(),
            _ => 0.3 + 0.7 * i as f64 / N as f64,
        };
        let spectrum: Vec<_> = (0..N).map(|i| Complex64::from_polar(value(i), 0.9 * i as f64)).collect();
        let m = with_spectrum(&spectrum, 40 + seed);
        let b = Random(50 + seed).vector(8 * N);
        let [(x, info), (y, plain)] = pair([BlockCgnr, Cgnr], &m, &b, 1e-10);
        let (info, plain) = (info.unwrap(), plain.unwrap());
        println!("block CG {}, CG {} iterations on the normal equations", info.iterations, plain.iterations);
        check_claims(&m, &b, &x, &info, 1e-10);
        assert!(info.iterations < plain.iterations / 2, "{} {}", info.iterations, plain.iterations);
        // M and M† count one each.
        assert_eq!(info.sloppy_applications, 2 * info.iterations);
        for (x, y) in x.chunks(N).zip(y.chunks(N)) {
            assert!(distance(x, y) < 1e-7 * norm(y), "{}", distance(x, y));
        }
        // One right-hand side: what CG does.
        let one = b[..N].to_vec();
        let [(x, info), (y, plain)] = pair([BlockCgnr, Cgnr], &m, &one, 1e-8);
        let (info, plain) = (info.unwrap(), plain.unwrap());
        check_claims(&m, &one, &x, &info, 1e-8);
        assert!(info.iterations.abs_diff(plain.iterations) <= 1, "{} {}", info.iterations, plain.iterations);
        assert_eq!(info.precise_applications, plain.precise_applications);
        assert!(distance(&x, &y) < 1e-5 * norm(&y));
    }
    // Without an inverse least squares are all there is, and no convergence.
    let singular = hermitian(N, |i| if i == 3 { 0.0 } else { 1.0 }, 60);
    let b = Random(61).vector(2 * N);
    let [(x, answer), _] = pair([BlockCgnr, Cgnr], &singular, &b, 1e-10);
    let error = answer.unwrap_err();
    check_claims(&singular, &b, &x, error.info().unwrap(), 1e-10);
    assert!(!error.info().unwrap().converged && x.iter().all(|v| v.is_finite()), "{error}");
}

#[test]
fn plain_vectors_have_blocks_too() {
    let space = PlainSpace::with_nrhs(7, 3);
    let (x, y) = (Random(1).vector(21), Random(2).vector(21));
    let a = Random(3).vector(9);
    let (mut sum, mut scaled) = (y.clone(), vec![c(f64::NAN, 0.0); 21]);
    space.block_axpy(&a, &x, &mut sum).unwrap();
    space.block_scale(&a, &x, &mut scaled).unwrap();
    let mut gram = vec![Complex64::ZERO; 9];
    space.gram(&x, &y, &mut gram).unwrap();
    for j in 0..3 {
        for k in 0..7 {
            let mixed = a[j] * x[k] + a[3 + j] * x[7 + k] + a[6 + j] * x[14 + k];
            assert!((scaled[7 * j + k] - mixed).norm() < 1e-14);
            assert!((sum[7 * j + k] - y[7 * j + k] - mixed).norm() < 1e-14);
        }
        for i in 0..3 {
            assert!((gram[3 * i + j] - dot(&x[7 * i..][..7], &y[7 * j..][..7])).norm() < 1e-14);
        }
    }
    assert!(space.gram(&x[1..].to_vec(), &y, &mut gram).is_err());
}
