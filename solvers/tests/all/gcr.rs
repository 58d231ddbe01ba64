//! GCR: against elimination, in one and two precisions, for one and several right-hand sides.

use crate::common::{
    Dense, I, Random, Rounding, Space, c, check_claims, direct, distance, general, mixed, norm, plus, product,
    residual, uniform,
};
use crate::cycles::{WAYS, gcr_params, solve, solve_double};
use num_complex::Complex64;
use solvers::*;

const N: usize = 96;

#[test]
fn solutions_agree_with_elimination() {
    for n in [1, 2, 3, 7, 24, 60, 150] {
        let a = general(n, 0.6, n as u64);
        for k_max in [1, 2, 3, 8, 16, 32] {
            for nrhs in 1..4 {
                let b = Random(k_max as u64).vector(nrhs * n);
                let (x, info, _) = solve_double(&a, &b, &gcr_params(k_max, 1e-12));
                check_claims(&a, &b, &x, &info, 1e-12);
                assert!(info.converged && info.iterations_per_rhs.iter().max() <= Some(&info.iterations));
                for j in 0..nrhs {
                    let exact = direct(&a, &b[j * n..(j + 1) * n]);
                    // ‖A⁻¹‖ is at most some 10 here.
                    assert!(distance(&x[j * n..(j + 1) * n], &exact) < 1e-10, "{n} {k_max} {nrhs}");
                    // The whole space is enough; rounding may ask for a second cycle.
                    assert!(k_max < n || info.iterations_per_rhs[j] <= n + 2, "{n} {k_max}: {info:?}");
                }
            }
        }
    }
}

#[test]
fn two_precisions_reach_the_precise_one_in_about_as_many_iterations() {
    let a = general(N, 0.8, 11);
    let b = Random(12).vector(2 * N);
    for (precise, tol) in [(Rounding::Double, 1e-12), (Rounding::Single, 2e-6)] {
        let space = Space::new(N, 2, precise);
        let operator = Dense::new(&space, &a);
        let mut rounded = b.clone();
        space.round(&mut rounded);
        let mut x = space.allocate().unwrap();
        let params = GcrParams::from(SolverParams { tol, ..Default::default() });
        let plain = solve(&Uniform::new(&space, &operator), &Identity, &rounded, &mut x, &params).unwrap();
        for krylov in [Rounding::Single, Rounding::Half, Rounding::Narrow] {
            let small = Space::new(N, 2, krylov);
            let sloppy = Dense::new(&small, &a);
            let system = Mixed::new(&space, &operator, &small, &sloppy);
            for delta in [0.3, 0.1, 0.01] {
                for orthogonalisation in WAYS {
                    x.fill(Complex64::ZERO);
                    let solver = SolverParams { delta: Some(delta), ..params.solver };
                    let params = GcrParams { solver, orthogonalisation, ..params };
                    let info = solve(&system, &Identity, &rounded, &mut x, &params).unwrap();
                    println!("{precise:?} {krylov:?} {delta} {orthogonalisation:?}: {}", info.iterations);
                    // Single: A and x have been rounded, 1e-7 each, and the sum over a row has 96 terms.
                    let rounding = if precise == Rounding::Single { 1e-6 } else { 1e-13 };
                    for j in 0..2 {
                        let truth = residual(&operator.a, space.rhs(&rounded, j), space.rhs(&x, j));
                        assert!(truth <= tol + rounding, "{precise:?} {krylov:?}: {truth:e}");
                    }
                    // Restarts cost a few iterations; the rounding of half precision hardly any.
                    assert!(info.iterations <= plain.iterations + plain.iterations / 4 + 2, "{krylov:?} {info:?}");
                }
            }
        }
    }
}

#[test]
fn without_delta_low_precision_works_for_nothing() {
    // Why Algorithm 1 has δ: a cycle that goes on below what its format resolves adds iterations, and no digits.
    let a = general(N, 0.4, 13);
    let b = Random(14).vector(N);
    mixed!(space, operator, small, sloppy, system: N, 1, Rounding::Half, &a);
    let iterations = |delta: f64| {
        let mut x = space.allocate().unwrap();
        let params = GcrParams { k_max: 32, ..SolverParams { delta: Some(delta), ..Default::default() }.into() };
        let info = solve(&system, &Identity, &b, &mut x, &params).unwrap();
        check_claims(&a, &b, &x, &info, params.solver.tol);
        info.iterations
    };
    let (with, without) = (iterations(0.1), iterations(0.0));
    println!("{with} iterations with δ, {without} without");
    assert!(without as f64 > 1.3 * with as f64);
}

#[test]
fn right_hand_sides_of_any_size_are_brought_into_the_range_of_a_narrow_format() {
    let a = general(N, 0.6, 15);
    mixed!(space, operator, small, sloppy, system: N, 2, Rounding::Narrow, &a);
    let mut b = Random(16).vector(2 * N);
    let mut x = space.allocate().unwrap();
    let params = GcrParams::default();
    let middle = solve(&system, &Identity, &b, &mut x, &params).unwrap();
    let solution = x.clone();
    let factors = [2f64.powi(60), 2f64.powi(-60)];
    b.iter_mut().enumerate().for_each(|(i, b)| *b *= factors[i / N]);
    x.fill(Complex64::ZERO);
    let info = solve(&system, &Identity, &b, &mut x, &params).unwrap();
    check_claims(&a, &b, &x, &info, params.solver.tol);
    assert_eq!(info.iterations, middle.iterations);
    assert!((0..2 * N).all(|i| x[i] == solution[i] * factors[i / N]));
}

#[test]
fn several_right_hand_sides_take_the_steps_of_single_ones() {
    let a = general(N, 0.8, 17);
    // Sizes that differ by powers of ten, zero, an easy one, one that is solved by its guess.
    let mut b = Random(18).vector(5 * N);
    b[..N].iter_mut().for_each(|v| *v *= 1e6);
    b[2 * N..3 * N].fill(Complex64::ZERO);
    let easy: Vec<_> = (0..N).map(|i| if i == 3 { I } else { Complex64::ZERO }).collect();
    b[3 * N..4 * N].copy_from_slice(&plus(&product(&a, &easy), 1e-7, &easy));
    let mut guess = vec![Complex64::ZERO; 5 * N];
    guess[3 * N..4 * N].copy_from_slice(&easy);
    guess[4 * N..].copy_from_slice(&direct(&a, &b[4 * N..]));
    for krylov in [Rounding::Double, Rounding::Single, Rounding::Half] {
        for (delta, k_max) in [(0.0, 8), (0.1, 16), (0.3, 32)] {
            let params = GcrParams { k_max, ..SolverParams { delta: Some(delta), ..Default::default() }.into() };
            let run = |b: &[Complex64], guess: &[Complex64]| {
                mixed!(space, operator, small, sloppy, system: N, b.len() / N, krylov, &a);
                let mut x = guess.to_vec();
                let info = solve(&system, &Identity, &b.to_vec(), &mut x, &params).unwrap();
                check_claims(&a, b, &x, &info, params.solver.tol);
                (x, info)
            };
            let (block, info) = run(&b, &guess);
            assert_eq!(info.iterations_per_rhs[2], 0);
            assert_eq!(info.iterations_per_rhs[4], 0);
            assert_eq!(block[4 * N..], guess[4 * N..]);
            for j in [0, 1, 3] {
                let (single, alone) = run(&b[j * N..(j + 1) * N], &guess[j * N..(j + 1) * N]);
                assert_eq!(info.iterations_per_rhs[j], alone.iterations, "{krylov:?} {delta} {j}");
                assert_eq!(info.history[j].len(), alone.history[0].len());
                for (mine, theirs) in info.history[j].iter().zip(&alone.history[0]) {
                    // Norms are measured at other moments, so the last digits differ.
                    assert!((mine - theirs).abs() <= 1e-3 * theirs, "{krylov:?} {delta} {j}: {mine:e} {theirs:e}");
                }
                assert!(distance(&block[j * N..(j + 1) * N], &single) < 1e-8, "{krylov:?} {delta} {j}");
            }
            // One that is ready waits, and the others lose nothing.
            assert!(info.iterations >= *info.iterations_per_rhs.iter().max().unwrap());
        }
    }
}

#[test]
fn zero_gives_zero_at_once_and_guesses_are_used() {
    let a = general(N, 0.6, 19);
    uniform!(space, operator, system: Space::double(N, 2), &a);
    let params = GcrParams::default();
    let mut x = Random(7).vector(2 * N);
    x[3] = c(f64::NAN, 0.0); // the guess is of no interest
    let info = solve(&system, &Identity, &space.allocate().unwrap(), &mut x, &params).unwrap();
    assert!(info.converged && info.iterations == 0 && norm(&x) == 0.0);
    assert_eq!(info.true_residual, [0.0, 0.0]);

    let b = Random(20).vector(2 * N);
    let exact: Vec<_> = (0..2).flat_map(|j| direct(&a, space.rhs(&b, j))).collect();
    let mut x = exact.clone();
    let info = solve(&system, &Identity, &b, &mut x, &params).unwrap();
    assert_eq!((info.iterations, info.reliable_updates, info.preconditioner.calls), (0, 0, 0));
    assert_eq!(x, exact);
    let mut far = space.allocate().unwrap();
    let from_zero = solve(&system, &Identity, &b, &mut far, &params).unwrap();
    let mut near = plus(&exact, 1e-6, &Random(21).vector(2 * N));
    let from_near = solve(&system, &Identity, &b, &mut near, &params).unwrap();
    assert!(from_near.iterations < from_zero.iterations);
    check_claims(&a, &b, &near, &from_near, params.solver.tol);
}

#[test]
fn counts_are_true_and_nothing_is_allocated() {
    let a = general(N, 0.8, 22);
    uniform!(space, operator, system: Space::double(N, 1), &a);
    let b = Random(23).vector(N);
    // More directions than are used.
    let mut workspace = GcrWorkspace::new(&system, 20).unwrap();
    assert_eq!(space.allocations.get(), 2 + 2 * 20 + 2);
    let mut x = space.allocate().unwrap();
    let before = space.allocations.get();
    let mut run = |orthogonalisation| {
        x.fill(Complex64::ZERO);
        operator.applications.set(0);
        let params = GcrParams { k_max: 8, orthogonalisation, ..Default::default() };
        let info = gcr(&system, &Identity, &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
        assert_eq!(info.sloppy_applications, info.iterations);
        assert_eq!(info.precise_applications, info.reliable_updates);
        assert_eq!(operator.applications.get(), info.sloppy_applications + info.precise_applications);
        assert_eq!(info.flops, operator.applications.get() as f64 * operator.flops());
        assert_eq!(info.history[0].len(), info.iterations + 1);
        info
    };
    let [once, twice, modified] = WAYS.map(&mut run);
    // ‖b‖, ‖x₀‖, one for each check; one in the first iteration of a cycle and two in each other; one more where ‖r‖² has
    // fallen by 1e-4 since it was last measured. A cycle of 8 takes about a factor 6 from the residual here.
    assert_eq!(once.reductions, 2 + once.reliable_updates + 2 * once.iterations - once.reliable_updates);
    assert_eq!(twice.reductions - once.reductions, once.iterations - once.reliable_updates);
    // One by one: k + 1 in iteration k > 0 of a cycle.
    let sum = |k: usize| 1 + (1..k).map(|k| k + 1).sum::<usize>();
    let (cycles, last) = (modified.iterations / 8, modified.iterations % 8);
    let expected = cycles * sum(8) + if last > 0 { sum(last) } else { 0 };
    assert_eq!(modified.reductions, 2 + modified.reliable_updates + expected);
    // The same bits each time.
    assert_eq!(run(Orthogonalisation::Classical), once);
    // Where the residual falls faster, ‖r‖² comes from a reduction of its own after each two digits.
    let easy = general(N, 0.2, 22);
    let fast = Dense::new(&space, &easy);
    x.fill(Complex64::ZERO);
    let params = GcrParams { k_max: 20, ..Default::default() };
    let info = gcr(&Uniform::new(&space, &fast), &Identity, &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
    let (mut more, mut measured) = (0, 1.0);
    for residual in &info.history[0][1..] {
        if residual * residual < 1e-4 * measured {
            (more, measured) = (more + 1, residual * residual);
        }
    }
    assert!(info.reliable_updates == 1 && more >= 4, "{more} {info:?}");
    assert_eq!(info.reductions, 3 + 2 * info.iterations - 1 + more);
    assert_eq!(space.allocations.get(), before);
}
