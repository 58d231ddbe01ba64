//! IDR(s): residuals against their definition, and breakdowns.

use crate::common::{
    Answer, Dense, Random, Rounding, Space, adjoint, c, direct, distance, dot, general, hermitian, norm, plus, product,
    residual, rotation, shadow, uniform, with_spectrum,
};
use crate::methods::SolveMethod::Idr;
use crate::methods::solve;
use num_complex::Complex64;
use solvers::*;

const N: usize = 40;

fn run(a: &[Complex64], b: &Vec<Complex64>, x: &mut Vec<Complex64>, shadow: Vec<Vec<Complex64>>) -> Answer {
    uniform!(space, operator, system: Space::double(N, b.len() / N), a);
    let params = SolverParams { max_iterations: 500, ..Default::default() };
    idr(&system, b, x, &params, &mut IdrWorkspace::new(&system, shadow)?, &mut ())
}

/// (1 − ω A) x.
fn step(a: &[Complex64], omega: Complex64, x: &[Complex64]) -> Vec<Complex64> {
    plus(x, -omega, &product(a, x))
}

/// Sleijpen, Sonneveld and van Gijzen 2010: the residual after j iterations is Π_{i≤j} (1 − ω_i A) z with the one z of r₀ + A K_{js}(A, r₀)
/// that is orthogonal to the block Krylov space of A† and the shadow vectors, in j powers; and ω_j is that of the least residual, enlarged
/// where the cosine is below 0.7.
#[test]
fn residuals_are_those_of_the_definition() {
    for (s, seed) in [(1, 3), (2, 4), (3, 5), (4, 6)] {
        let (a, b) = (general(N, 0.8, seed), Random(seed + 10).vector(N));
        let adjoint = adjoint(&a);
        let p = shadow(N, s, 1);
        let mut x = vec![Complex64::ZERO; N];
        let info = run(&a, &b, &mut x, p.clone()).unwrap();
        let mut omegas: Vec<Complex64> = Vec::new();
        for j in 1..=3 {
            // z = b − Σ y_l k_l with the Krylov vectors k_l = A^{l+1} b, and (q, z) = 0.
            let mut krylov = vec![product(&a, &b)];
            let mut left = p.clone();
            while krylov.len() < j * s {
                krylov.push(product(&a, krylov.last().unwrap()));
            }
            while left.len() < j * s {
                left.push(product(&adjoint, &left[left.len() - s]));
            }
            let matrix: Vec<_> = left.iter().flat_map(|q| krylov.iter().map(|k| dot(q, k))).collect();
            let rhs: Vec<_> = left.iter().map(|q| dot(q, &b)).collect();
            let y = direct(&matrix, &rhs);
            let mut r = krylov.iter().zip(y).fold(b.clone(), |r, (k, y)| plus(&r, -y, k));
            omegas.iter().for_each(|omega| r = step(&a, *omega, &r));
            let t = product(&a, &r);
            let cosine = dot(&t, &r).norm() / (norm(&t) * norm(&r));
            omegas.push(dot(&t, &r) / norm(&t).powi(2) * (0.7 / cosine).max(1.0));
            let expected = norm(&step(&a, omegas[j - 1], &r)) / norm(&b);
            let found = info.history[0][j];
            assert!((found - expected).abs() <= 1e-6 * expected, "s = {s}, iteration {j}: {found:e} {expected:e}");
        }
    }
}

/// IDR(4) takes fewer applications than BiCGstab where BiCGstab is slow.
#[test]
fn more_shadow_vectors_save_applications() {
    // Eigenvalues on a circle that comes close to 0.
    let n = 160;
    let values: Vec<_> =
        (0..n).map(|i| 1.0 + 0.97 * Complex64::cis(0.1 + std::f64::consts::TAU * i as f64 / n as f64)).collect();
    let a = with_spectrum(&values, 7);
    let b = Random(8).vector(n);
    uniform!(space, operator, system: Space::double(n, 1), &a);
    let applications = |solve: &dyn Fn(&mut Vec<Complex64>) -> Info| {
        let mut x = space.allocate().unwrap();
        let info = solve(&mut x);
        assert!(residual(&a, &b, &x) <= 1.001e-10);
        info.sloppy_applications
    };
    let params = SolverParams::default();
    let bicgstab = applications(&|x| {
        bicgstab(&system, &b, x, &params, &mut BicgstabWorkspace::new(&system).unwrap(), &mut ()).unwrap()
    });
    let idr = [1, 2, 4, 8].map(|s| {
        applications(&|x| {
            idr(&system, &b, x, &params, &mut IdrWorkspace::new(&system, shadow(n, s, 1)).unwrap(), &mut ()).unwrap()
        })
    });
    println!("BiCGstab {bicgstab}, IDR(1, 2, 4, 8) {idr:?}");
    assert!(idr[2] < bicgstab && idr[2] < idr[0] && idr[3] <= idr[2], "{bicgstab} {idr:?}");
}

/// A† = −A with A² = −1: BiCGstab finds neither α nor ω for real vectors. Two directions of IDR(2) are the Krylov space.
#[test]
fn a_rotation_is_solved() {
    let a = rotation(N, |_| 1.0);
    let b: Vec<_> = (0..N).map(|i| c(1.0 + (i % 5) as f64, 0.0)).collect();
    let mut x = vec![Complex64::ZERO; N];
    let info = run(&a, &b, &mut x, shadow(N, 2, 1)).unwrap();
    assert!(info.iterations <= 2 && residual(&a, &b, &x) <= 1e-10, "{info:?}");
}

/// A shadow vector of zeros makes μ = 0 in each iteration, from which the right-hand side begins anew.
#[test]
fn breakdowns_are_recovered_from() {
    let (a, b) = (general(N, 0.3, 4), Random(5).vector(N));
    let mut p = shadow(N, 3, 1);
    p[1].fill(Complex64::ZERO);
    let mut x = vec![Complex64::ZERO; N];
    let info = run(&a, &b, &mut x, p).unwrap();
    assert!(info.restarts > 1 && distance(&x, &direct(&a, &b)) < 1e-9, "{info:?}");
}

#[test]
fn what_has_no_solution_ends_in_an_error() {
    // Nothing but breakdowns.
    let (zero, b) = (vec![Complex64::ZERO; N * N], Random(3).vector(N));
    let mut x = vec![Complex64::ZERO; N];
    let error = run(&zero, &b, &mut x, shadow(N, 4, 1)).unwrap_err();
    assert!(matches!(error, SolveError::Breakdown { what: BreakdownKind::Mu, rhs: 0, .. }), "{error}");
    assert!(error.to_string().ends_with("orthogonal to its shadow vector (μ = 0)"), "{error}");
    // A part of b outside the image of A.
    for seed in 0..10 {
        let (a, b) = (hermitian(N, |i| i as f64, seed), Random(seed + 50).vector(N));
        x.fill(Complex64::ZERO);
        let error = run(&a, &b, &mut x, shadow(N, 4, 1)).unwrap_err();
        let (info, truth) = (error.info().unwrap(), residual(&a, &b, &x));
        assert!(!info.converged && truth > 1e-3 && truth <= 1.001, "{error}");
        assert!((truth - info.true_residual[0]).abs() <= 1e-6 * truth, "{error} {truth:e} {info:?}");
    }
    // No shadow vectors.
    let a = general(N, 0.3, 4);
    assert!(matches!(run(&a, &b, &mut x, Vec::new()), Err(SolveError::Invalid(_))));
}

#[test]
fn a_nan_is_reported_with_its_right_hand_side() {
    let (a, b) = (general(N, 0.5, 5), Random(6).vector(3 * N));
    for from in [1, 5, 12] {
        for precision in [Rounding::Double, Rounding::Narrow] {
            let (space, small) = (Space::double(N, 3), Space::new(N, 3, precision));
            let (operator, mut sloppy) = (Dense::new(&space, &a), Dense::new(&small, &a));
            sloppy.nan = Some((1, from));
            let system = Mixed::new(&space, &operator, &small, &sloppy);
            let mut x = space.allocate().unwrap();
            let error = solve(Idr, &system, &b, &mut x, &SolverParams::default(), &mut ()).unwrap_err();
            assert!(matches!(error, SolveError::NotANumber { rhs: 1, .. }), "{precision:?} {from}: {error}");
            assert!(x.iter().all(|v| v.is_finite()));
            for j in [0, 2] {
                assert!(residual(&a, space.rhs(&b, j), space.rhs(&x, j)) <= 1.001e-10, "{precision:?} {from}");
            }
        }
    }
}
