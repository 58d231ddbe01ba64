//! Answers: against a direct solve, in one and two precisions, for one and several right-hand sides.

use crate::common::{
    Dense, I, Random, Rounding, Space, c, check_claims, direct, distance, general, mixed, norm, plus, positive,
    residual, shadow, uniform,
};
use crate::methods::SolveMethod::{self, *};
use crate::methods::{solve, solve_dense};
use num_complex::Complex64;
use solvers::*;

const ALL: [SolveMethod; 6] = [Cg, Cgnr, Cgne, Bicgstab, Idr, Defect];

/// Large enough for iterations to end before the dimension of the space does it for them.
const N: usize = 160;

fn params(tol: f64) -> SolverParams {
    SolverParams { tol, max_iterations: 5000, ..Default::default() }
}

fn matrix(method: SolveMethod) -> Vec<Complex64> {
    if method == Cg { positive(N, 100.0, 5) } else { general(N, 0.6, 6) }
}

#[test]
fn solutions_agree_with_elimination() {
    for method in ALL {
        let (a, b) = (matrix(method), Random(1).vector(N));
        let mut x = vec![Complex64::ZERO; N];
        let info = solve_dense(method, Rounding::Double, &a, &b, &mut x, &params(1e-12)).unwrap();
        assert!(info.converged && info.true_residual[0] <= 1e-12, "{method:?}");
        check_claims(&a, &b, &x, &info, 1e-12);
        assert!(distance(&x, &direct(&a, &b)) < 1e-9, "{method:?}");
    }
}

#[test]
fn two_precisions_reach_double_precision_in_about_as_many_iterations() {
    for method in ALL {
        let (a, b) = (matrix(method), Random(2).vector(N));
        let run = |precision| {
            let mut x = vec![Complex64::ZERO; N];
            (solve_dense(method, precision, &a, &b, &mut x, &params(1e-12)).unwrap(), x)
        };
        let (plain, _) = run(Rounding::Double);
        for precision in [Rounding::Single, Rounding::Half, Rounding::Narrow] {
            let (info, x) = run(precision);
            check_claims(&a, &b, &x, &info, 1e-12);
            assert!(info.converged && info.reliable_updates >= 2, "{method:?} {precision:?}");
            let factor = match (precision, method) {
                (_, Defect) => 2.0,
                (Rounding::Half | Rounding::Narrow, _) => 2.0,
                _ => 1.3,
            };
            println!("{method:?} {precision:?}: {} of {} iterations", info.iterations, plain.iterations);
            assert!(
                info.iterations as f64 <= factor * plain.iterations as f64 + 2.0,
                "{method:?} {precision:?}: {} instead of {} iterations",
                info.iterations,
                plain.iterations
            );
        }
    }
}

#[test]
fn right_hand_sides_of_any_size_are_brought_into_the_range_of_a_narrow_format() {
    for method in ALL {
        let a = matrix(method);
        mixed!(space, operator, small, sloppy, system: N, 2, Rounding::Narrow, &a);
        let mut b = Random(2).vector(2 * N);
        let mut x = space.allocate().unwrap();
        let middle = solve(method, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap();
        // Powers of two: the same numbers enter the iteration, and the same answer comes out.
        let solution = x.clone();
        let factors = [2f64.powi(60), 2f64.powi(-60)];
        b.iter_mut().enumerate().for_each(|(i, b)| *b *= factors[i / N]);
        x.fill(Complex64::ZERO);
        let info = solve(method, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap();
        check_claims(&a, &b, &x, &info, 1e-10);
        assert_eq!(info.iterations, middle.iterations, "{method:?}");
        assert!((0..2 * N).all(|i| x[i] == solution[i] * factors[i / N]), "{method:?}");
    }
}

#[test]
fn delta_zero_and_one_precision_is_the_plain_method() {
    for method in [Cg, Bicgstab, Idr] {
        let a = matrix(method);
        uniform!(space, operator, system: Space::double(N, 1), &a);
        let b = Random(3).vector(N);
        let mut x = space.allocate().unwrap();
        let info = solve(method, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap();
        // One check of the one claim; the first residual is b itself.
        assert_eq!((info.reliable_updates, info.restarts, info.precise_applications), (1, 0, 1), "{method:?}");
        // Applications and reductions; before its first iteration IDR(4) has P†r.
        let (per_iteration, before) = match method {
            Cg => ((1, 2), (0, 0)),
            Bicgstab => ((2, 2), (0, 0)),
            _ => ((5, 6), (0, 1)),
        };
        assert_eq!(info.sloppy_applications, per_iteration.0 * info.iterations + before.0);
        // ‖b‖, ‖x₀‖, the check.
        assert_eq!(info.reductions, per_iteration.1 * info.iterations + before.1 + 3);
        assert_eq!(info.history[0].len(), info.iterations + 1);
        assert_eq!(operator.applications.get(), info.sloppy_applications + info.precise_applications);
        assert_eq!(info.flops, operator.applications.get() as f64 * operator.flops());
        // Asked for, updates happen in one precision too.
        x.fill(Complex64::ZERO);
        let often = SolverParams { delta: Some(0.1), ..params(1e-10) };
        let asked = solve(method, &system, &b, &mut x, &often, &mut ()).unwrap();
        assert!(asked.reliable_updates > 5 && asked.iterations.abs_diff(info.iterations) <= 3, "{method:?}");
    }
}

#[test]
fn several_right_hand_sides_equal_single_ones() {
    for method in ALL {
        for precision in [Rounding::Double, Rounding::Single] {
            let a = matrix(method);
            // Sizes that differ by powers of ten, one that converges at once (an eigenvector or nearly), one zero.
            let mut b = Random(4).vector(4 * N);
            b[..N].iter_mut().for_each(|v| *v *= 1e6);
            b[2 * N..3 * N].fill(Complex64::ZERO);
            b[3 * N..].iter_mut().enumerate().for_each(|(i, v)| *v = if i == 3 { I } else { Complex64::ZERO });
            let run = |nrhs: usize, b: &Vec<Complex64>| {
                let mut x = vec![Complex64::ZERO; nrhs * N];
                let info = solve_dense(method, precision, &a, b, &mut x, &params(1e-10)).unwrap();
                check_claims(&a, b, &x, &info, 1e-10);
                (x, info)
            };
            let (block, info) = run(4, &b);
            assert_eq!(info.true_residual[2], 0.0);
            for j in [0, 1, 3] {
                let (single, alone) = run(1, &b[j * N..(j + 1) * N].to_vec());
                assert!(distance(&block[j * N..(j + 1) * N], &single) < 1e-7, "{method:?} {precision:?} {j}");
                let (mine, theirs) = (info.iterations_per_rhs[j], alone.iterations);
                if method != Defect {
                    assert!(mine.abs_diff(theirs) <= 2 + theirs / 4, "{method:?} {precision:?} {j}: {mine} {theirs}");
                }
            }
        }
    }
}

#[test]
fn zero_gives_zero_at_once() {
    for method in ALL {
        let a = matrix(method);
        uniform!(space, operator, system: Space::double(N, 2), &a);
        let b = space.allocate().unwrap();
        let mut x = Random(7).vector(2 * N);
        x[3] = c(f64::NAN, 0.0); // the guess is of no interest
        let info = solve(method, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap();
        assert!(info.converged && info.iterations == 0 && norm(&x) == 0.0, "{method:?}");
        assert_eq!(info.true_residual, [0.0, 0.0]);
    }
}

#[test]
fn initial_guesses_are_used() {
    for method in ALL {
        let a = matrix(method);
        uniform!(space, operator, system: Space::double(N, 1), &a);
        let b = Random(8).vector(N);
        let exact = direct(&a, &b);
        let mut x = exact.clone();
        let info = solve(method, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap();
        assert_eq!(info.iterations, 0, "{method:?}");
        assert_eq!(x, exact);

        let mut far = space.allocate().unwrap();
        let from_zero = solve(method, &system, &b, &mut far, &params(1e-10), &mut ()).unwrap();
        let mut near = plus(&exact, 1e-6, &Random(9).vector(N));
        let from_near = solve(method, &system, &b, &mut near, &params(1e-10), &mut ()).unwrap();
        assert!(from_near.iterations < from_zero.iterations, "{method:?}");
        check_claims(&a, &b, &near, &from_near, 1e-10);
    }
}

#[test]
fn ill_conditioned_systems_end_truly_or_with_an_error() {
    const N: usize = 48;
    let a = positive(N, 1e8, 11);
    for method in ALL {
        for precision in [Rounding::Double, Rounding::Single, Rounding::Half, Rounding::Narrow] {
            for tol in [1e-6, 1e-10] {
                let b = Random(12).vector(N);
                let mut x = vec![Complex64::ZERO; N];
                let max_iterations = if precision == Rounding::Narrow { 2_000 } else { 20_000 };
                let limits = SolverParams { max_iterations, ..params(tol) };
                let answer = solve_dense(method, precision, &a, &b, &mut x, &limits);
                let (info, what) = match &answer {
                    Ok(info) => (info, format!("converged in {}", info.iterations)),
                    Err(error) => (error.info().expect("no backend error here"), error.to_string()),
                };
                println!("{method:?} {precision:?} {tol:e}: {what}");
                assert_eq!(info.converged, answer.is_ok());
                let truth = residual(&a, &b, &x);
                if answer.is_ok() {
                    assert!(truth <= 1.01 * tol, "{method:?} {precision:?}: {truth:e}");
                } else {
                    assert!((truth - info.true_residual[0]).abs() <= 1e-3 * truth, "{truth:e} {info:?}");
                    assert!(truth <= 1.001, "{method:?} {precision:?}: worse than nothing, {truth:e}");
                }
                // 1e-10 is below ε κ and out of reach; 1e-6 is not.
                if method == Cg && tol == 1e-6 && precision == Rounding::Single {
                    assert!(answer.is_ok());
                }
            }
        }
    }
}

#[test]
fn a_workspace_serves_many_solves_and_nothing_is_allocated_in_them() {
    let a = positive(N, 100.0, 13);
    mixed!(space, operator, small, sloppy, system: N, 1, Rounding::Single, &a);
    let mut cg_space = CgWorkspace::new(&system).unwrap();
    let mut normal_space = CgNormalWorkspace::new(&system).unwrap();
    let mut bicgstab_space = BicgstabWorkspace::new(&system).unwrap();
    let mut idr_space = IdrWorkspace::new(&system, shadow(N, 4, 1)).unwrap();
    let mut x = space.allocate().unwrap();
    let before = (space.allocations.get(), small.allocations.get());
    let mut first: Option<Vec<Info>> = None;
    for _ in 0..2 {
        let b = Random(14).vector(N);
        let mut infos = Vec::new();
        x.fill(Complex64::ZERO);
        infos.push(cg(&system, &b, &mut x, &SolverParams::default(), &mut cg_space, &mut ()).unwrap());
        x.fill(Complex64::ZERO);
        infos.push(cgnr(&system, &b, &mut x, &SolverParams::default(), &mut normal_space, &mut ()).unwrap());
        x.fill(Complex64::ZERO);
        infos.push(cgne(&system, &b, &mut x, &SolverParams::default(), &mut normal_space, &mut ()).unwrap());
        x.fill(Complex64::ZERO);
        infos.push(bicgstab(&system, &b, &mut x, &SolverParams::default(), &mut bicgstab_space, &mut ()).unwrap());
        x.fill(Complex64::ZERO);
        infos.push(idr(&system, &b, &mut x, &SolverParams::default(), &mut idr_space, &mut ()).unwrap());
        // The same bits each time.
        assert!(first.as_ref().is_none_or(|first| *first == infos));
        first = Some(infos);
    }
    assert_eq!((space.allocations.get(), small.allocations.get()), before);
}

#[test]
fn shifted_and_squared_operators() {
    let a = general(N, 0.6, 15);
    let space = Space::double(N, 2);
    let operator = Dense::new(&space, &a);
    let x = Random(16).vector(2 * N);
    let y = Random(17).vector(2 * N);
    let (mut ax, mut ay) = (space.allocate().unwrap(), space.allocate().unwrap());
    let (mut left, mut right) = ([Complex64::ZERO; 2], [Complex64::ZERO; 2]);
    let shifts = [c(0.5, 2.0), c(-1.0, 0.25)];
    // (y, A x) = (A†y, x) for each.
    let normal = Normal::new(&space, &operator).unwrap();
    let error = NormalError::new(&space, &operator).unwrap();
    let shifted = Shifted::per_rhs(&space, &operator, &shifts);
    let operators: [&dyn LinearOperator<Space>; 4] = [&operator, &normal, &error, &shifted];
    for operator in operators {
        operator.apply(&x, &mut ax).unwrap();
        operator.apply_dagger(&y, &mut ay).unwrap();
        space.dot(&y, &ax, &mut left).unwrap();
        space.dot(&ay, &x, &mut right).unwrap();
        assert!(left.iter().zip(right).all(|(l, r)| (l - r).norm() < 1e-10));
    }
    // (x, M†M x) = ‖M x‖², and the shift acts on each right-hand side.
    normal.apply(&x, &mut ay).unwrap();
    space.dot(&x, &ay, &mut left).unwrap();
    operator.apply(&x, &mut ax).unwrap();
    let mut norms = [0.0; 2];
    space.norm2(&ax, &mut norms).unwrap();
    assert!((0..2).all(|j| (left[j] - norms[j]).norm() < 1e-10 * norms[j]));
    shifted.apply(&x, &mut ay).unwrap();
    for i in 0..2 * N {
        assert!((ay[i] - ax[i] - shifts[i / N] * x[i]).norm() < 1e-13);
    }
    assert_eq!(normal.flops(), 2.0 * operator.flops());
}
