//! Inverters of inverters: deflation, preconditioning and precisions put together.

use crate::common::{
    Broken, Dense, Random, Rounding, Space, direct, distance, general, hermitian, normalised, plus, positive, residual,
    residuals, shadow, shifted, solved, uniform,
};
use num_complex::Complex64;
use solvers::inverter::*;
use solvers::{Info, Iteration, LinearOperator, Mixed, SolveError, SolverParams, Uniform, VectorSpace};
use std::ops::ControlFlow;

const N: usize = 120;
const TOL: f64 = 1e-10;

fn params(tol: f64) -> SolverParams {
    SolverParams { tol, ..Default::default() }
}

/// Eigenvalues of which the lowest `low` are far below 1, and the others spread from 1 to 10.
fn light(low: usize) -> Vec<f64> {
    let rest = N - low;
    (0..N)
        .map(|i| if i < low { 1e-5 * (i + 1) as f64 } else { 10f64.powf((i - low) as f64 / (rest - 1) as f64) })
        .collect()
}

/// The eigenvector of a matrix next to a number, by inverse iteration.
fn eigenvector(a: &[Complex64], value: f64, seed: u64) -> Vec<Complex64> {
    let next = shifted(a, -value * (1.0 + 1e-7));
    (0..4).fold(Random(seed).vector(N), |v, _| normalised(&direct(&next, &v)))
}

/// Iterations after which the residual of CG has fallen to `tol` by the bound of Chebyshev polynomials, ‖r_k‖ ≤ 2 √κ ρ^k ‖r₀‖ with
/// ρ = (√κ − 1)/(√κ + 1).
fn bound(kappa: f64, tol: f64) -> usize {
    let root = kappa.sqrt();
    ((2.0 * root / tol).ln() / ((root + 1.0) / (root - 1.0)).ln()).ceil() as usize
}

/// A matrix with light eigenvalues, these, and their eigenvectors.
fn with_light(low: usize) -> (Vec<Complex64>, Vec<f64>, Vec<Vec<Complex64>>) {
    let values = light(low);
    let a = hermitian(N, |i| values[i], 5);
    let vectors = (0..low).map(|i| eigenvector(&a, values[i], 40 + i as u64)).collect();
    (a, values[..low].to_vec(), vectors)
}

#[test]
fn deflated_cg_converges_as_the_other_eigenvalues_predict() {
    let low = 6;
    let (a, values, vectors) = with_light(low);
    for nrhs in [1, 3] {
        uniform!(space, operator, system: Space::double(N, nrhs), &a);
        let b = Random(6).vector(N * nrhs);
        let blocks: Vec<_> = vectors.chunks(nrhs).map(<[_]>::concat).collect();
        let solve = |inverter: &mut dyn Inverter<_>| {
            let mut x = space.allocate().unwrap();
            let info: Info = inverter.invert(&system, &b, &mut x, &params(TOL), &mut ()).unwrap();
            assert!(solved(&a, &b, &x, 1.001 * TOL));
            info
        };
        let plain = solve(&mut cg());
        let before = operator.applications.get();
        let info = solve(&mut deflated(blocks, values.clone(), cg()));
        println!("{nrhs}: {} of {} iterations, bound {}", info.iterations, plain.iterations, bound(10.0, TOL));
        assert!(info.iterations <= bound(10.0, TOL) && bound(10.0, TOL) < plain.iterations);
        assert_eq!(operator.applications.get() - before, info.precise_applications + info.sloppy_applications);
        // The matrix that has 1 in the place of each light eigenvalue takes as many.
        let mut heavy = light(low);
        heavy[..low].fill(1.0);
        let operator = Dense::new(&space, &hermitian(N, |i| heavy[i], 5));
        let mut x = space.allocate().unwrap();
        let easy = cg().invert(&Uniform::new(&space, &operator), &b, &mut x, &params(TOL), &mut ()).unwrap();
        assert!(info.iterations.abs_diff(easy.iterations) <= 2, "{} {}", info.iterations, easy.iterations);
    }
}

#[test]
fn wrong_vectors_give_the_right_solution() {
    let (a, values, _) = with_light(6);
    uniform!(space, operator, system: Space::double(N, 2), &a);
    let b = Random(7).vector(2 * N);
    let wrong = |i: u64| Random(80 + i).vector(2 * N);
    let mut x = space.allocate().unwrap();
    let mut inverter = deflated((0..3).map(wrong).collect(), values.clone(), cg());
    let info = inverter.invert(&system, &b, &mut x, &params(1e-9), &mut ()).unwrap();
    assert!(info.converged);
    assert!(solved(&a, &b, &x, 1.001e-9));
    // What cannot be eigenvalues, or not of these vectors.
    for values in [vec![1.0; 5], vec![1.0, 2.0, 0.0, 4.0, 5.0, 6.0], vec![f64::NAN; 6]] {
        let mut inverter = deflated((0..3).map(wrong).collect(), values, cg());
        let error = inverter.invert(&system, &b, &mut x, &params(TOL), &mut ()).unwrap_err();
        assert!(matches!(error, SolveError::Invalid(_)), "{error}");
    }
}

#[test]
fn defect_correction_deflates_anew_with_rough_vectors() {
    let (a, values, mut vectors) = with_light(6);
    for (i, v) in vectors.iter_mut().enumerate() {
        *v = plus(v, 1e-9, &Random(60 + i as u64).vector(N));
    }
    uniform!(space, operator, system: Space::double(N, 1), &a);
    let b = Random(8).vector(N);
    let solve = |inverter: &mut dyn Inverter<_>| {
        let mut x = space.allocate().unwrap();
        let info: Info = inverter.invert(&system, &b, &mut x, &params(1e-11), &mut ()).unwrap();
        assert!(residual(&a, &b, &x) <= 1.001e-11);
        info.iterations
    };
    let once = solve(&mut deflated(vectors.clone(), values.clone(), cg()));
    let outer = solvers::DefectParams { inner_tol: 1e-3, ..Default::default() };
    let anew = solve(&mut defect_correcting(outer, deflated(vectors, values, cg())));
    println!("{once} iterations, {anew} with vectors used anew");
    assert!(anew < once, "{anew} {once}");
}

#[test]
fn double_precision_is_reached_with_single_inside() {
    let a = positive(N, 300.0, 9);
    let (space, small) = (Space::double(N, 2), Space::new(N, 2, Rounding::Single));
    let (operator, sloppy) = (Dense::new(&space, &a), Dense::new(&small, &a));
    let (uniform, mixed) = (Uniform::new(&space, &operator), Mixed::new(&space, &operator, &small, &sloppy));
    let b = Random(10).vector(2 * N);
    let check = |x: &Vec<Complex64>, info: &Info| {
        assert!(info.converged);
        assert!(solved(&a, &b, x, 1.01e-12));
        for (b, x) in b.chunks(N).zip(x.chunks(N)) {
            assert!(distance(x, &direct(&a, b)) <= 300.0 * 1.01e-12);
        }
        // The work was done in single.
        assert!(info.sloppy_applications > 4 * info.precise_applications, "{info:?}");
    };
    let mut x = space.allocate().unwrap();
    let info = mixed_precision(&small, &sloppy, cg()).invert(&uniform, &b, &mut x, &params(1e-12), &mut ()).unwrap();
    check(&x, &info);
    // To the last bit the solve of both at once.
    let mut y = space.allocate().unwrap();
    let same = cg().invert(&mixed, &b, &mut y, &params(1e-12), &mut ()).unwrap();
    assert!(x == y && info.history == same.history);
    x.fill(Complex64::ZERO);
    let mut inverter = defect_correcting(params(0.0), bicgstab());
    let info = inverter.invert(&mixed, &b, &mut x, &params(1e-12), &mut ()).unwrap();
    check(&x, &info);
}

#[test]
fn inverters_are_the_functions_of_their_names_and_keep_their_memory() {
    let (n, a) = (N, general(N, 0.6, 11));
    let hermitian = positive(N, 100.0, 12);
    let shadow = |space: &Space| Ok(shadow(N, 4, space.nrhs));
    for matrix in [&hermitian, &a] {
        uniform!(space, operator, system: Space::double(n, 2), matrix);
        let b = Random(13).vector(2 * n);
        let p = params(TOL);
        let (mut x, mut y) = (space.allocate().unwrap(), space.allocate().unwrap());
        let mut check = |inverter: &mut dyn Inverter<_>, expected: &dyn Fn(&mut Vec<Complex64>) -> Info| {
            y.fill(Complex64::ZERO);
            let expected = expected(&mut y);
            x.fill(Complex64::ZERO);
            let info: Info = inverter.invert(&system, &b, &mut x, &p, &mut ()).unwrap();
            assert!(x == y && info == expected);
            let before = space.allocations.get();
            x.fill(Complex64::ZERO);
            assert!(inverter.invert(&system, &b, &mut x, &p, &mut ()).unwrap() == info && x == y);
            assert_eq!(space.allocations.get(), before);
        };
        macro_rules! same {
            ($inverter:expr, $function:ident, $params:expr, $workspace:expr $(, $k:expr)?) => {
                check(&mut $inverter, &|y| {
                    solvers::$function(&system, $($k,)? &b, y, $params, &mut $workspace.unwrap(), &mut ()).unwrap()
                })
            };
        }
        let block = solvers::BlockCgParams { solver: p, dependent: None };
        let gcr_params = solvers::GcrParams { k_max: 12, ..p.into() };
        same!(cgnr(), cgnr, &p, solvers::CgNormalWorkspace::new(&system));
        same!(cgne(), cgne, &p, solvers::CgNormalWorkspace::new(&system));
        same!(bicgstab(), bicgstab, &p, solvers::BicgstabWorkspace::new(&system));
        same!(block_cgnr(None), block_cgnr, &block, solvers::BlockCgNormalWorkspace::new(&system));
        same!(idr(shadow), idr, &p, solvers::IdrWorkspace::new(&system, shadow(&space).unwrap()));
        let one = &solvers::Identity;
        same!(gcr(12, solvers::Identity), gcr, &gcr_params, solvers::GcrWorkspace::new(&system, 12), one);
        if matrix == &hermitian {
            same!(cg(), cg, &p, solvers::CgWorkspace::new(&system));
            same!(block_cg(None), block_cg, &block, solvers::BlockCgWorkspace::new(&system));
        }
    }
}

/// Multiplies each component by a number.
struct DiagonalScaling(Vec<f64>);
impl LinearOperator<Space> for DiagonalScaling {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        out.iter_mut().zip(x).enumerate().for_each(|(i, (out, x))| *out = self.0[i % N] * x);
        Ok(())
    }
    fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.apply(x, out)
    }
    fn flops(&self) -> f64 {
        2.0 * N as f64
    }
}

#[test]
fn a_preconditioner_takes_away_what_it_knows() {
    // A = D A₀ D with a D over four orders of magnitude; L = D⁻¹.
    let easy = positive(N, 10.0, 14);
    let d: Vec<f64> = (0..N).map(|i| 10f64.powf(4.0 * (i % 17) as f64 / 16.0 - 2.0)).collect();
    let a: Vec<_> = easy.iter().enumerate().map(|(at, v)| d[at / N] * v * d[at % N]).collect();
    uniform!(space, operator, system: Space::double(N, 2), &a);
    let b = Random(15).vector(2 * N);
    let inverse = || DiagonalScaling(d.iter().map(|d| 1.0 / d).collect());
    let mut events = Vec::new();
    let mut watch = |event: &Iteration<'_>| {
        events.push(event.iteration);
        ControlFlow::Continue(())
    };
    let mut x = Random(16).vector(2 * N);
    let mut inverter = preconditioned(inverse(), cg());
    let info = inverter.invert(&system, &b, &mut x, &params(TOL), &mut watch).unwrap();
    for (j, truth) in residuals(&a, &b, &x).into_iter().enumerate() {
        assert!(truth <= 1.001 * TOL && (truth - info.true_residual[j]).abs() <= 1e-12);
    }
    // One solve, and perhaps a short second one.
    assert!(info.iterations <= 2 * bound(10.0, TOL), "{}", info.iterations);
    assert!(events.is_sorted() && *events.last().unwrap() == info.iterations);
    x.fill(Complex64::ZERO);
    let plain = cg().invert(&system, &b, &mut x, &params(TOL), &mut ());
    let plain = plain.map_or_else(|error| error.info().unwrap().iterations, |info| info.iterations);
    assert!(plain > 4 * info.iterations, "{plain} {}", info.iterations);
    // In single precision within double.
    let small = Space::new(N, 2, Rounding::Single);
    let sloppy = Dense::new(&small, &a);
    let mixed = Mixed::new(&space, &operator, &small, &sloppy);
    x.fill(Complex64::ZERO);
    let outer = solvers::DefectParams { inner_tol: 1e-3, ..Default::default() };
    let info = defect_correcting(outer, preconditioned(inverse(), cg()))
        .invert(&mixed, &b, &mut x, &params(TOL), &mut ())
        .unwrap();
    assert!(info.converged && residual(&a, space.rhs(&b, 1), space.rhs(&x, 1)) <= 1.001 * TOL);
}

#[test]
fn an_inverter_preconditions_gcr() {
    let a = general(N, 0.9, 17);
    let space = Space::double(N, 2);
    let (operator, inside) = (Dense::new(&space, &a), Dense::new(&space, &a));
    let system = Uniform::new(&space, &operator);
    let b = Random(18).vector(2 * N);
    let mut x = space.allocate().unwrap();
    let rough = SolverParams { tol: 0.1, max_iterations: 4, ..Default::default() };
    let mut inverter = gcr(16, as_preconditioner(&inside, rough, bicgstab()));
    let info = inverter.invert(&system, &b, &mut x, &params(TOL), &mut ()).unwrap();
    assert!(solved(&a, &b, &x, 1.001 * TOL));
    let work = info.preconditioner;
    assert_eq!(work.applications, inside.applications.get());
    assert!(work.calls == info.iterations && work.iterations > 2 * work.calls && work.iterations <= 4 * work.calls);
    x.fill(Complex64::ZERO);
    let plain = gcr(16, solvers::Identity).invert(&system, &b, &mut x, &params(TOL), &mut ()).unwrap();
    assert!(3 * info.iterations < plain.iterations, "{} {}", info.iterations, plain.iterations);
}
