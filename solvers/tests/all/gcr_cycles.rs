//! GCR against the minima over Krylov spaces, and what its cycles do.

use crate::common::{self, Broken, Dense, Random, Space, c, general, norm, residual, with_spectrum};
use crate::cycles::{Answer, check_claims, solve, solve_double};
use num_complex::Complex64;
use solvers::*;

const N: usize = 96;

const WAYS: [Orthogonalisation; 3] =
    [Orthogonalisation::Classical, Orthogonalisation::ClassicalTwice, Orthogonalisation::Modified];

/// The residuals relative to ‖b‖ of a method that minimises them over the Krylov space of `a` and starts anew after `m`
/// steps: orthonormal bases of the spaces and of their images, nothing of which is shared with what is tested.
fn minima(a: &[Complex64], b: &[Complex64], m: usize, steps: usize) -> Vec<f64> {
    let n = b.len();
    let apply =
        |x: &[Complex64]| -> Vec<Complex64> { (0..n).map(|i| (0..n).map(|k| a[i * n + k] * x[k]).sum()).collect() };
    // What is left of v when it is made orthogonal to a basis, and normalised.
    let orthonormal = |mut v: Vec<Complex64>, basis: &[Vec<Complex64>]| {
        for q in basis.iter().chain(basis) {
            let s: Complex64 = q.iter().zip(&v).map(|(q, v)| q.conj() * v).sum();
            v.iter_mut().zip(q).for_each(|(v, q)| *v -= s * q);
        }
        let size = norm(&v);
        v.iter().map(|v| v / size).collect::<Vec<_>>()
    };
    let mut r = b.to_vec();
    let mut all = vec![1.0];
    while all.len() <= steps {
        let mut space = vec![orthonormal(r.clone(), &[])];
        let mut images: Vec<Vec<Complex64>> = Vec::new();
        for _ in 0..m.min(steps + 1 - all.len()) {
            let image = apply(space.last().unwrap());
            let q = orthonormal(image.clone(), &images);
            let s: Complex64 = q.iter().zip(&r).map(|(q, r)| q.conj() * r).sum();
            r.iter_mut().zip(&q).for_each(|(r, q)| *r -= s * q);
            images.push(q);
            space.push(orthonormal(image, &space));
            all.push(norm(&r) / norm(b));
        }
    }
    all
}

#[test]
fn residuals_are_the_minima_over_krylov_spaces() {
    // The last two stall: real and A† = −A, so that (b, A b) = 0, alone and with a part that does not stall.
    let mut rotation = vec![Complex64::ZERO; N * N];
    for i in (0..N).step_by(2) {
        let angle = c(1.0 + (i % 16) as f64 / 8.0, 0.0);
        (rotation[i * N + i + 1], rotation[(i + 1) * N + i]) = (angle, -angle);
    }
    let mut leaning = rotation.clone();
    (0..N).for_each(|i| leaning[i * N + i] = c(1e-4, 0.0));
    let spiral: Vec<_> = (0..N).map(|i| Complex64::from_polar(1.0 + (i % 7) as f64, i as f64 * 0.03)).collect();
    let real: Vec<_> = Random(3).vector(N).iter().map(|v| c(v.re, 0.0)).collect();
    let cases = [
        ("general", general(N, 0.9, 1), Random(2).vector(N)),
        ("spiral", with_spectrum(&spiral, 4), Random(5).vector(N)),
        ("rotation", rotation, real.clone()),
        ("leaning", leaning, real),
    ];
    for (name, a, b) in &cases {
        for k_max in [1, 2, 5, 32] {
            if k_max == 1 && ["rotation", "leaning"].contains(name) {
                continue; // one step does not get away from b
            }
            for orthogonalisation in WAYS {
                let params =
                    GcrParams { k_max, orthogonalisation, ..SolverParams { tol: 1e-9, ..Default::default() }.into() };
                let (x, info, _) = solve_double(a, b, &params);
                check_claims(a, b, &x, &info, params.solver.tol);
                let expected = minima(a, b, k_max, info.iterations);
                for (k, (mine, best)) in info.history[0].iter().zip(&expected).enumerate() {
                    // Condition numbers below 100, and some ten roundings of each ‖r‖.
                    let rounding = 1e-12 + 1e-6 * best;
                    assert!((mine - best).abs() <= rounding, "{name} {k_max} {orthogonalisation:?} {k}: {mine} {best}");
                }
                // Nothing is done after the minimum is small enough.
                assert!(expected[info.iterations - 1] > 0.999 * params.solver.tol, "{name} {k_max}");
                assert_eq!(info.restarts, (info.iterations - 1) / k_max, "{name} {k_max}");
            }
        }
    }
}

/// A matrix as a preconditioner.
struct Fixed<'a>(Dense<'a>);

impl Preconditioner<Space> for Fixed<'_> {
    fn apply(&self, _: &Space, r: &Vec<Complex64>, norms: &[f64], z: &mut Vec<Complex64>) -> Result<Work, Broken> {
        for (j, norm) in norms.iter().enumerate() {
            let truth = common::norm(self.0.space.rhs(r, j));
            assert!((norm - truth).abs() <= 1e-6 * truth, "norm of {j}: {norm} for {truth}");
        }
        self.0.apply(r, z)?;
        Ok(Work { calls: 1, applications: 1, flops: 5.0, ..Work::default() })
    }
}

#[test]
fn a_fixed_preconditioner_gives_the_minima_of_the_preconditioned_matrix() {
    let k = general(N, 0.5, 7);
    let mut rotation = vec![Complex64::ZERO; N * N];
    for i in (0..N).step_by(2) {
        (rotation[i * N + i + 1], rotation[(i + 1) * N + i]) = (Complex64::ONE, c(-1.0 - i as f64 / N as f64, 0.0));
    }
    let ones: Vec<_> = (0..N * N).map(|at| c(if at % (N + 1) == 0 { 1.0 } else { 0.0 }, 0.0)).collect();
    let real: Vec<_> = Random(3).vector(N).iter().map(|v| c(v.re, 0.0)).collect();
    // In the second case the preconditioner makes K r orthogonal to r.
    for (a, k, b) in [(general(N, 0.9, 6), k, Random(8).vector(N)), (ones, rotation, real)] {
        let product: Vec<_> =
            (0..N * N).map(|at| (0..N).map(|l| a[at / N * N + l] * k[l * N + at % N]).sum::<Complex64>()).collect();
        let space = Space::double(N, 1);
        let (operator, k) = (Dense::new(&space, &a), Fixed(Dense::new(&space, &k)));
        let system = Uniform::new(&space, &operator);
        for k_max in [4, 32] {
            let mut x = space.allocate().unwrap();
            let params = GcrParams { k_max, ..SolverParams { tol: 1e-10, ..Default::default() }.into() };
            let info = solve(&system, &k, &b, &mut x, &params).unwrap();
            check_claims(&a, &b, &x, &info, params.solver.tol);
            for (mine, best) in info.history[0].iter().zip(minima(&product, &b, k_max, info.iterations)) {
                assert!((mine - best).abs() <= 1e-12 + 1e-6 * best, "{mine} {best}");
            }
            let work = Work { calls: info.iterations, applications: info.iterations, ..Work::default() };
            assert_eq!(info.preconditioner, Work { flops: 5.0 * info.iterations as f64, ..work });
            let applications = info.sloppy_applications + info.precise_applications;
            assert_eq!(info.flops, applications as f64 * operator.flops() + info.preconditioner.flops);
        }
    }
}

#[test]
fn restarts_follow_the_rule_of_delta() {
    let a = general(N, 0.9, 9);
    let b = Random(10).vector(N);
    let tol = 1e-10;
    let mut updates = Vec::new();
    for delta in [0.0, 1e-4, 0.01, 0.1, 0.5, 0.9] {
        for k_max in [1, 4, 32] {
            let (_, info, course) = solve_double(
                &a,
                &b,
                &GcrParams { k_max, ..SolverParams { tol, delta: Some(delta), ..Default::default() }.into() },
            );
            let (mut start, mut k) = (1.0, 0);
            for (kind, residual) in &course {
                k += 1;
                let due = k == k_max || *residual < delta * start || *residual <= tol;
                assert_eq!(
                    due,
                    *kind != IterationKind::Iterate,
                    "δ = {delta}, k_max = {k_max}: {k} {residual:e} of {start:e}"
                );
                if due {
                    (start, k) = (*residual, 0);
                }
            }
            assert_eq!(course.iter().filter(|(kind, _)| *kind == IterationKind::Restart).count(), info.restarts);
            assert_eq!(course.last().unwrap().0, IterationKind::ReliableUpdate);
            assert_eq!(info.restarts + 1, info.reliable_updates);
            if k_max == 32 {
                updates.push(info.reliable_updates);
            }
        }
    }
    assert!(updates.is_sorted() && updates[5] > 4 * updates[1], "{updates:?}");
    // The defaults: 0 for one precision, 0.1 for two.
    let count = |delta| {
        let space = Space::double(N, 1);
        let operator = Dense::new(&space, &a);
        let system = Mixed::new(&space, &operator, &space, &operator);
        let mut x = space.allocate().unwrap();
        let params = GcrParams { k_max: 32, ..SolverParams { delta, ..Default::default() }.into() };
        solve(&system, &Identity, &b, &mut x, &params).unwrap().reliable_updates
    };
    assert!(count(None) == count(Some(0.1)) && count(None) == updates[3] && count(Some(0.0)) == updates[0]);
}

#[test]
fn a_cycle_ends_where_little_is_left_of_an_image() {
    let a = general(N, 0.9, 26);
    let b = Random(27).vector(N);
    // GCR as in textbooks, where directions are combined as their images are. The fraction of each image that is left,
    // and the residual of the solution after it.
    let apply =
        |x: &[Complex64]| -> Vec<Complex64> { (0..N).map(|i| (0..N).map(|k| a[i * N + k] * x[k]).sum()).collect() };
    let dot = |x: &[Complex64], y: &[Complex64]| x.iter().zip(y).map(|(x, y)| x.conj() * y).sum::<Complex64>();
    let (mut r, mut x) = (b.clone(), vec![Complex64::ZERO; N]);
    let mut directions: Vec<(Vec<Complex64>, Vec<Complex64>)> = Vec::new();
    let mut table = Vec::new();
    for _ in 0..20 {
        let (mut p, mut z) = (r.clone(), apply(&r));
        let before = norm(&z);
        for (old_p, old_z) in &directions {
            let beta = dot(old_z, &z) / dot(old_z, old_z);
            for i in 0..N {
                p[i] -= beta * old_p[i];
                z[i] -= beta * old_z[i];
            }
        }
        let fraction = norm(&z) / before;
        let alpha = dot(&z, &r) / dot(&z, &z);
        for i in 0..N {
            x[i] += alpha * p[i];
            r[i] -= alpha * z[i];
        }
        directions.push((p, z));
        table.push((fraction, residual(&a, &b, &x)));
    }
    let smallest = table.iter().map(|row| row.0).fold(1.0, f64::min);
    println!("{table:?}");
    for limit in [0.99 * smallest, 0.5 * (1.0 + smallest), 0.9, 0.8, 0.7, 0.6] {
        let params = GcrParams {
            k_max: 20,
            ..SolverParams { breakdown: limit, max_iterations: 20, ..Default::default() }.into()
        };
        let space = Space::double(N, 1);
        let operator = Dense::new(&space, &a);
        let mut x = space.allocate().unwrap();
        let error = solve(&Uniform::new(&space, &operator), &Identity, &b, &mut x, &params).unwrap_err();
        let info = error.info().unwrap();
        let first = table.iter().position(|row| row.0 <= limit).unwrap_or(20);
        // The steps before it are taken; with the next iteration another cycle begins.
        assert!((info.history[0][first] - table[first - 1].1).abs() < 1e-12, "{limit} {first}");
        assert_eq!(info.iterations_per_rhs[0] == 20, first == 20, "{limit} {first} {info:?}");
    }
}

/// A space whose products of several vectors are wrong by some per cent, as if orthogonality were lost on the way.
struct Careless(Space);

impl VectorSpace for Careless {
    type Vector = Vec<Complex64>;
    type Error = Broken;
    fn nrhs(&self) -> usize {
        self.0.nrhs()
    }
    fn allocate(&self) -> Result<Vec<Complex64>, Broken> {
        self.0.allocate()
    }
    fn zero(&self, x: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.0.zero(x)
    }
    fn copy(&self, from: &Vec<Complex64>, to: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.0.copy(from, to)
    }
    fn axpby(
        &self,
        a: &[Complex64],
        x: &Vec<Complex64>,
        b: &[Complex64],
        y: &mut Vec<Complex64>,
    ) -> Result<(), Broken> {
        self.0.axpby(a, x, b, y)
    }
    fn norm2(&self, x: &Vec<Complex64>, out: &mut [f64]) -> Result<(), Broken> {
        self.0.norm2(x, out)
    }
    fn dot(&self, x: &Vec<Complex64>, y: &Vec<Complex64>, out: &mut [Complex64]) -> Result<(), Broken> {
        self.0.dot(x, y, out)
    }
    fn multi_dot(
        &self,
        xs: &[Vec<Complex64>],
        y: &Vec<Complex64>,
        dots: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Broken> {
        self.0.multi_dot(xs, y, dots, norm2)?;
        dots.iter_mut().enumerate().for_each(|(i, dot)| *dot *= c(0.95 + 0.02 * (i % 4) as f64, 0.01));
        Ok(())
    }
}

/// A matrix on that space.
struct OnCareless<'a>(&'a Dense<'a>);

impl LinearOperator<Careless> for OnCareless<'_> {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.0.apply(x, out)
    }
    fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.0.apply_dagger(x, out)
    }
    fn flops(&self) -> f64 {
        self.0.flops()
    }
}

#[test]
fn lost_orthogonality_costs_iterations_and_no_truth() {
    let a = general(N, 0.9, 24);
    let b = Random(25).vector(2 * N);
    let (space, careless) = (Space::double(N, 2), Careless(Space::double(N, 2)));
    let operator = Dense::new(&space, &a);
    // Ends in the middle of a cycle, where the recurrence has not yet been replaced by the truth.
    let params = GcrParams { k_max: 32, ..SolverParams { max_iterations: 30, ..Default::default() }.into() };
    let run = |answer: Answer, x: &[Complex64]| {
        let error = answer.unwrap_err();
        let info = error.info().unwrap();
        for j in 0..2 {
            let (claimed, truth) = (info.history[j][30], residual(&a, space.rhs(&b, j), space.rhs(x, j)));
            // Some hundred roundings of vectors that are no longer than b, times ‖A⁻¹‖ of about 10.
            assert!((claimed - truth).abs() < 1e-12, "{claimed:e} {truth:e}");
            assert!(info.history[j].is_sorted_by(|before, after| after <= before));
        }
        info.worst_residual()
    };
    let (mut x, mut y) = (space.allocate().unwrap(), space.allocate().unwrap());
    let exact = run(solve(&Uniform::new(&space, &operator), &Identity, &b, &mut x, &params), &x);
    let careless = run(solve(&Uniform::new(&careless, &OnCareless(&operator)), &Identity, &b, &mut y, &params), &y);
    println!("after 30 iterations {exact:.3e}, and {careless:.3e} without orthogonality");
    assert!(careless > 1.5 * exact && careless < 0.5);
}
