//! GCR against the minima over Krylov spaces, and what its cycles do.

use crate::common::{
    self, Answer, Broken, Dense, Random, Space, c, check_claims, diagonal, dot, general, norm, normalised, plus,
    product, residual, residuals, rotation, uniform, with_spectrum,
};
use crate::cycles::{WAYS, gcr_params, solve, solve_double};
use num_complex::Complex64;
use solvers::*;

const N: usize = 96;

/// The residuals relative to ‖b‖ of a method that minimises them over the Krylov space of `a` and starts anew after `m`
/// steps: orthonormal bases of the spaces and of their images, nothing of which is shared with what is tested.
fn minima(a: &[Complex64], b: &[Complex64], m: usize, steps: usize) -> Vec<f64> {
    // What is left of v when it is made orthogonal to a basis, and normalised.
    let orthonormal = |v: Vec<Complex64>, basis: &[Vec<Complex64>]| {
        normalised(&basis.iter().chain(basis).fold(v, |v, q| plus(&v, -dot(q, &v), q)))
    };
    let mut r = b.to_vec();
    let mut all = vec![1.0];
    while all.len() <= steps {
        let mut space = vec![orthonormal(r.clone(), &[])];
        let mut images: Vec<Vec<Complex64>> = Vec::new();
        for _ in 0..m.min(steps + 1 - all.len()) {
            let image = product(a, space.last().unwrap());
            let q = orthonormal(image.clone(), &images);
            r = plus(&r, -dot(&q, &r), &q);
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
    let turning = rotation(N, |i| 1.0 + (i % 16) as f64 / 8.0);
    let leaning = plus(&turning, 1e-4, &diagonal(&[Complex64::ONE; N]));
    let spiral: Vec<_> = (0..N).map(|i| Complex64::from_polar(1.0 + (i % 7) as f64, i as f64 * 0.03)).collect();
    let real: Vec<_> = Random(3).vector(N).iter().map(|v| c(v.re, 0.0)).collect();
    let cases = [
        ("general", general(N, 0.9, 1), Random(2).vector(N)),
        ("spiral", with_spectrum(&spiral, 4), Random(5).vector(N)),
        ("rotation", turning, real.clone()),
        ("leaning", leaning, real),
    ];
    for (name, a, b) in &cases {
        for k_max in [1, 2, 5, 32] {
            if k_max == 1 && ["rotation", "leaning"].contains(name) {
                continue; // one step does not get away from b
            }
            for orthogonalisation in WAYS {
                let params = GcrParams { orthogonalisation, ..gcr_params(k_max, 1e-9) };
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
    let mut turning = rotation(N, |_| 1.0);
    (0..N).step_by(2).for_each(|i| turning[(i + 1) * N + i] -= i as f64 / N as f64);
    let ones = diagonal(&[Complex64::ONE; N]);
    let real: Vec<_> = Random(3).vector(N).iter().map(|v| c(v.re, 0.0)).collect();
    // In the second case the preconditioner makes K r orthogonal to r.
    for (a, k, b) in [(general(N, 0.9, 6), k, Random(8).vector(N)), (ones, turning, real)] {
        let both: Vec<_> =
            (0..N * N).map(|at| (0..N).map(|l| a[at / N * N + l] * k[l * N + at % N]).sum::<Complex64>()).collect();
        let space = Space::double(N, 1);
        let (operator, k) = (Dense::new(&space, &a), Fixed(Dense::new(&space, &k)));
        let system = Uniform::new(&space, &operator);
        for k_max in [4, 32] {
            let mut x = space.allocate().unwrap();
            let params = gcr_params(k_max, 1e-10);
            let info = solve(&system, &k, &b, &mut x, &params).unwrap();
            check_claims(&a, &b, &x, &info, params.solver.tol);
            for (mine, best) in info.history[0].iter().zip(minima(&both, &b, k_max, info.iterations)) {
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
            let solver = SolverParams { tol, delta: Some(delta), ..Default::default() };
            let (_, info, course) = solve_double(&a, &b, &GcrParams { k_max, ..solver.into() });
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
    let (mut r, mut x) = (b.clone(), vec![Complex64::ZERO; N]);
    let mut directions: Vec<(Vec<Complex64>, Vec<Complex64>)> = Vec::new();
    let mut table = Vec::new();
    for _ in 0..20 {
        let (mut p, mut z) = (r.clone(), product(&a, &r));
        let before = norm(&z);
        for (old_p, old_z) in &directions {
            let beta = dot(old_z, &z) / dot(old_z, old_z);
            (p, z) = (plus(&p, -beta, old_p), plus(&z, -beta, old_z));
        }
        let fraction = norm(&z) / before;
        let alpha = dot(&z, &r) / dot(&z, &z);
        (x, r) = (plus(&x, alpha, &p), plus(&r, -alpha, &z));
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

#[test]
fn lost_orthogonality_costs_iterations_and_no_truth() {
    let a = general(N, 0.9, 24);
    let b = Random(25).vector(2 * N);
    uniform!(space, operator, exact: Space::double(N, 2), &a);
    uniform!(wrong, same, careless: Space { careless: true, ..Space::double(N, 2) }, &a);
    // Ends in the middle of a cycle, where the recurrence has not yet been replaced by the truth.
    let params = GcrParams { k_max: 32, ..SolverParams { max_iterations: 30, ..Default::default() }.into() };
    let run = |answer: Answer, x: &[Complex64]| {
        let error = answer.unwrap_err();
        let info = error.info().unwrap();
        for (j, truth) in residuals(&a, &b, x).into_iter().enumerate() {
            let claimed = info.history[j][30];
            // Some hundred roundings of vectors that are no longer than b, times ‖A⁻¹‖ of about 10.
            assert!((claimed - truth).abs() < 1e-12, "{claimed:e} {truth:e}");
            assert!(info.history[j].is_sorted_by(|before, after| after <= before));
        }
        info.worst_residual()
    };
    let (mut x, mut y) = (space.allocate().unwrap(), space.allocate().unwrap());
    let exact = run(solve(&exact, &Identity, &b, &mut x, &params), &x);
    let careless = run(solve(&careless, &Identity, &b, &mut y, &params), &y);
    println!("after 30 iterations {exact:.3e}, and {careless:.3e} without orthogonality");
    assert!(careless > 1.5 * exact && careless < 0.5);
}
