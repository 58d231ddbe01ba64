//! The Krylov solvers inside of cycles: minima over the spaces that they span, few reductions, and right-hand sides that
//! leave each other alone.

use crate::common::{
    Broken, Dense, Random, Rounding, Space, c, diagonal, direct, distance, dot, general, norm, normalised, plus,
    positive, product, uniform, with_spectrum,
};
use crate::cycles;
use num_complex::Complex64;
use solvers::*;
use std::cell::{Cell, RefCell};

type Block = Vec<Complex64>;

const N: usize = 40;

/// min ‖r − Σ y_k w_k‖ by modified Gram-Schmidt, done twice.
fn smallest_residual(r: &[Complex64], images: &[Block]) -> f64 {
    let (mut r, mut basis) = (r.to_vec(), Vec::<Block>::new());
    let remove = |from: &[Complex64], x: &[Complex64]| plus(from, -dot(x, from), x);
    for image in images {
        let mut w = image.clone();
        for _ in 0..2 {
            w = normalised(&basis.iter().fold(w, |w, q| remove(&w, q)));
        }
        r = remove(&r, &w);
        basis.push(w);
    }
    norm(&r)
}

/// A r, A² r, …
fn powers(a: &[Complex64], r: &[Complex64], count: usize) -> Vec<Block> {
    std::iter::successors(Some(product(a, r)), |x| Some(product(a, x))).take(count).collect()
}

/// ‖r − A z‖.
fn left(a: &[Complex64], r: &[Complex64], z: &[Complex64]) -> f64 {
    norm(&plus(r, -1.0, &product(a, z)))
}

fn gcr_params(steps: usize, tol: f64) -> InnerGcrParams {
    InnerGcrParams { steps, tol }
}

fn ca_params(basis: usize, max_cycles: usize, tol: f64) -> CaGcrParams {
    CaGcrParams { basis, max_cycles, tol }
}

fn norms(r: &[Complex64], n: usize) -> Vec<f64> {
    r.chunks(n).map(norm).collect()
}

fn apply<K: Preconditioner<Space>>(k: &K, space: &Space, r: &Block, norms: &[f64]) -> (Block, Work) {
    let mut z = Random(99).vector(r.len());
    let work = k.apply(space, r, norms, &mut z).unwrap();
    (z, work)
}

#[test]
fn residuals_are_minima_over_krylov_spaces() {
    let matrices = [general(N, 0.9, 3), general(N, 0.5, 4), positive(N, 100.0, 5)];
    for a in matrices {
        let space = Space::double(N, 1);
        let operator = Dense::new(&space, &a);
        let r = Random(8).vector(N);
        for steps in 1..=10 {
            let expected = smallest_residual(&r, &powers(&a, &r, steps));
            let gcr = InnerGcr::new(&space, &operator, Identity, gcr_params(steps, 1e-9)).unwrap();
            let found = left(&a, &r, &apply(&gcr, &space, &r, &[]).0);
            assert!((found / expected - 1.0).abs() < 1e-10, "{steps}: {found:e} {expected:e}");
            // Powers of a matrix become parallel, those of a Hermitian one soonest: what comes later is not used.
            let ca = CaGcr::new(&space, &operator, ca_params(steps, 1, 0.1)).unwrap();
            let found = left(&a, &r, &apply(&ca, &space, &r, &[]).0);
            let usable = smallest_residual(&r, &powers(&a, &r, steps.min(6)));
            assert!((0.999999 * expected..=1.000001 * usable).contains(&found), "{steps}: {found:e} {expected:e}");
        }
    }
}

#[test]
fn cycles_begin_where_the_last_one_ended() {
    let a = general(N, 0.8, 3);
    let space = Space::double(N, 1);
    let operator = Dense::new(&space, &a);
    let r = Random(8).vector(N);
    let cycle = CaGcr::new(&space, &operator, ca_params(4, 1, 0.1)).unwrap();
    let (mut z, mut rho) = (vec![Complex64::ZERO; N], r.clone());
    for cycles in 1..=4 {
        let step = apply(&cycle, &space, &rho, &[]).0;
        (z, rho) = (plus(&z, 1.0, &step), plus(&rho, -1.0, &product(&a, &step)));
        let ca = CaGcr::new(&space, &operator, ca_params(4, cycles, 1e-9)).unwrap();
        let (together, work) = apply(&ca, &space, &r, &[]);
        assert!(distance(&together, &z) < 1e-11, "{cycles}");
        assert_eq!((work.reductions, work.applications), (cycles, 4 * cycles));
    }
}

/// Another diagonal matrix each time. Keeps what it was asked.
struct Changing(RefCell<Vec<Block>>);

impl Preconditioner<Space> for Changing {
    fn apply(&self, _: &Space, r: &Block, norms: &[f64], z: &mut Block) -> Result<Work, Broken> {
        assert!((norm(r) / norms[0] - 1.0).abs() < 1e-10, "norms are those of the residuals");
        let mut random = Random(100 + self.0.borrow().len() as u64);
        z.iter_mut().zip(r).for_each(|(z, r)| *z = (2.0 + random.complex()) * r);
        self.0.borrow_mut().push(z.clone());
        Ok(Work { calls: 1, iterations: 5, flops: 7.0, ..Work::default() })
    }
}

#[test]
fn preconditioners_may_change_from_step_to_step() {
    let a = general(N, 0.9, 3);
    let space = Space::double(N, 1);
    let operator = Dense::new(&space, &a);
    let r = Random(8).vector(N);
    for steps in 1..=8 {
        let gcr =
            InnerGcr::new(&space, &operator, Changing(RefCell::new(Vec::new())), gcr_params(steps, 1e-9)).unwrap();
        assert!(gcr.needs_norms());
        let (z, work) = apply(&gcr, &space, &r, &norms(&r, N));
        let images: Vec<_> = gcr.inner().0.borrow().iter().map(|p| product(&a, p)).collect();
        let expected = smallest_residual(&r, &images);
        let found = left(&a, &r, &z);
        assert!((found / expected - 1.0).abs() < 1e-10, "{steps}: {found:e} {expected:e}");
        assert_eq!((work.calls, work.iterations, work.applications), (1, steps, steps));
        assert_eq!(work.flops, steps as f64 * (7.0 + operator.flops()));
    }
}

/// Almost the same direction each time, and NaN for the second right-hand side from a given call on.
struct Parallel {
    calls: Cell<usize>,
    nan_from: usize,
}

impl Preconditioner<Space> for Parallel {
    fn apply(&self, space: &Space, r: &Block, _: &[f64], z: &mut Block) -> Result<Work, Broken> {
        self.calls.set(self.calls.get() + 1);
        let (fixed, mut other) = (Random(50).vector(r.len()), Random(50 + self.calls.get() as u64));
        z.iter_mut().zip(fixed).for_each(|(z, fixed)| *z = fixed + 3e-8 * other.complex());
        if self.calls.get() >= self.nan_from && space.nrhs() > 1 {
            z[N + 3] = c(0.0, f64::NAN);
        }
        Ok(Work::default())
    }
    fn needs_norms(&self) -> bool {
        false
    }
}

#[test]
fn what_cancels_is_measured() {
    let a = general(N, 0.9, 3);
    let space = Space::double(N, 1);
    let operator = Dense::new(&space, &a);
    let r = Random(8).vector(N);
    let directions: Vec<Block> = (1..=4)
        .map(|call| {
            let mut p = vec![Complex64::ZERO; N];
            Parallel { calls: Cell::new(call - 1), nan_from: 9 }.apply(&space, &r, &[], &mut p).unwrap();
            p
        })
        .collect();
    for steps in 1..=4 {
        let parallel = Parallel { calls: Cell::new(0), nan_from: 9 };
        let gcr = InnerGcr::new(&space, &operator, parallel, gcr_params(steps, 1e-9)).unwrap();
        let (z, work) = apply(&gcr, &space, &r, &[]);
        let images: Vec<_> = directions[..steps].iter().map(|p| product(&a, p)).collect();
        let (found, expected) = (left(&a, &r, &z), smallest_residual(&r, &images));
        // The squared sines of their angles are 10⁻¹⁵: a difference of squares knows nothing of them, and classical
        // Gram-Schmidt leaves them orthogonal to a tenth, which moves the residual by the square of that.
        assert!((found / expected - 1.0).abs() < 1e-2, "{steps}: {found:e} {expected:e}");
        assert_eq!(work.reductions, 2 * steps - 1);
    }
}

#[test]
fn a_direction_that_is_not_a_number_is_left_out() {
    let a = general(N, 0.8, 3);
    let r = Random(8).vector(2 * N);
    let space = Space::double(N, 2);
    let operator = Dense::new(&space, &a);
    let solve = |steps: usize, nan_from: usize| {
        let parallel = Parallel { calls: Cell::new(0), nan_from };
        apply(&InnerGcr::new(&space, &operator, parallel, gcr_params(steps, 1e-9)).unwrap(), &space, &r, &[]).0
    };
    for nan_from in 2..=4 {
        let (broken, healthy, short) = (solve(4, nan_from), solve(4, 9), solve(nan_from - 1, 9));
        assert_eq!(bits(&space, &broken, 0), bits(&space, &healthy, 0));
        assert!(distance(space.rhs(&broken, 1), space.rhs(&short, 1)) < 1e-13, "{nan_from}");
    }
    // The outer solver is to see it if there is nothing else.
    assert!(norm(space.rhs(&solve(4, 1), 1)).is_nan());
}

#[test]
fn one_reduction_in_a_step_or_a_cycle() {
    let a = general(N, 0.7, 3);
    let space = Space::double(N, 3);
    let operator = Dense::new(&space, &a);
    let r = Random(8).vector(3 * N);
    let gcr = InnerGcr::new(&space, &operator, Identity, gcr_params(6, 1e-9)).unwrap();
    let ca = CaGcr::new(&space, &operator, ca_params(6, 3, 1e-9)).unwrap();
    assert!(!gcr.needs_norms() && !Preconditioner::<Space>::needs_norms(&ca));
    let allocations = space.allocations.get();
    let count = |k: &dyn Preconditioner<Space>, norms: &[f64]| {
        let before = (space.reductions.get(), operator.applications.get());
        let (z, work) = apply(&k, &space, &r, norms);
        assert_eq!(space.reductions.get() - before.0, work.reductions);
        assert_eq!(operator.applications.get() - before.1, work.applications);
        assert_eq!(work.flops, work.applications as f64 * operator.flops());
        (z, work.reductions, work.applications)
    };
    let (without, reductions, applications) = count(&gcr, &[]);
    assert_eq!((reductions, applications), (6, 6));
    let (with, reductions, applications) = count(&gcr, &norms(&r, N));
    // The first one comes from the operator, which is asked for the norm of the image.
    assert_eq!((reductions, applications), (6, 6));
    assert!(distance(&with, &without) < 1e-14);
    let (_, reductions, applications) = count(&ca, &[]);
    assert_eq!((reductions, applications), (3, 18));
    assert_eq!(space.allocations.get(), allocations);
    let (report, other) = (gcr.report(), ca.report());
    assert_eq!((report.calls, report.iterations, other.calls, other.iterations), (2, 12, 1, 18));
    assert!(report.seconds > 0.0 && report.seconds < 60.0);
    gcr.reset_report();
    ca.reset_report();
    assert_eq!((gcr.report(), ca.report()), (LevelReport::default(), LevelReport::default()));
}

#[test]
fn they_stop_at_the_tolerance() {
    for (a, seed) in [(general(N, 0.9, 3), 1), (general(N, 0.6, 4), 2), (positive(N, 50.0, 5), 3)] {
        let space = Space::double(N, 2);
        let operator = Dense::new(&space, &a);
        let r = Random(seed).vector(2 * N);
        for tol in [0.5, 0.1, 1e-3, 1e-7, 1e-11] {
            let worst = |z: &Block| {
                let each = r.chunks(N).zip(z.chunks(N)).map(|(r, z)| left(&a, r, z) / norm(r));
                each.fold(0.0, f64::max)
            };
            let gcr = InnerGcr::new(&space, &operator, Identity, gcr_params(N, tol)).unwrap();
            let (z, work) = apply(&gcr, &space, &r, &[]);
            assert!(worst(&z) <= 1.0001 * tol && work.iterations <= N, "{tol:e}: {:e}", worst(&z));
            // One step less is not enough.
            let short =
                InnerGcr::new(&space, &operator, Identity, gcr_params((work.iterations - 1).max(1), tol)).unwrap();
            let (z, _) = apply(&short, &space, &r, &[]);
            assert!(worst(&z) > tol || work.iterations == 1, "{tol:e}");

            let ca = CaGcr::new(&space, &operator, ca_params(5, 200, tol)).unwrap();
            let (z, work) = apply(&ca, &space, &r, &[]);
            assert!(worst(&z) <= 1.0001 * tol && work.reductions < 200, "{tol:e}: {:e}", worst(&z));
        }
    }
}

/// Bits of one right-hand side.
fn bits(space: &Space, z: &Block, j: usize) -> Vec<[u64; 2]> {
    space.rhs(z, j).iter().map(|z| [z.re.to_bits(), z.im.to_bits()]).collect()
}

#[test]
fn right_hand_sides_leave_each_other_alone() {
    // Eigenvectors are solved in one step; those of the eigenvalue zero have no image.
    let mut values: Vec<_> = (0..N).map(|i| c(1.0 + 0.1 * i as f64, 0.3 * (i % 3) as f64)).collect();
    values[0] = Complex64::ZERO;
    let a = with_spectrum(&values, 3);
    // A diagonal matrix has eigenvectors to the last bit.
    for (a, exact) in [(a, false), (diagonal(&values), true)] {
        let mut r = Random(8).vector(6 * N);
        r[N..2 * N].fill(Complex64::ZERO);
        r[2 * N + 5] = c(f64::NAN, 0.0);
        if exact {
            r[3 * N..5 * N].fill(Complex64::ZERO);
            (r[3 * N], r[4 * N + 7]) = (c(2.0, 0.0), c(1.0, 3.0));
        }
        let block = Space::double(N, 6);
        let operator = Dense::new(&block, &a);
        let single = Space::double(N, 1);
        let alone = Dense::new(&single, &a);
        let gcr = |params| {
            let together = InnerGcr::new(&block, &operator, Identity, params).unwrap();
            let z = apply(&together, &block, &r, &[]).0;
            let k = InnerGcr::new(&single, &alone, Identity, params).unwrap();
            (z, (0..6).map(|j| apply(&k, &single, &block.rhs(&r, j).to_vec(), &[]).0).collect::<Vec<_>>())
        };
        let ca = |params| {
            let together = CaGcr::new(&block, &operator, params).unwrap();
            let z = apply(&together, &block, &r, &[]).0;
            let k = CaGcr::new(&single, &alone, params).unwrap();
            (z, (0..6).map(|j| apply(&k, &single, &block.rhs(&r, j).to_vec(), &[]).0).collect::<Vec<_>>())
        };
        let cases = [
            gcr(gcr_params(1, 0.1)),
            gcr(gcr_params(8, 0.3)),
            gcr(gcr_params(12, 1e-6)),
            ca(ca_params(1, 1, 0.1)),
            ca(ca_params(4, 5, 0.3)),
            ca(ca_params(6, 8, 1e-6)),
        ];
        for (case, (z, singles)) in cases.iter().enumerate() {
            for (j, alone) in singles.iter().enumerate().filter(|(j, _)| *j != 2) {
                assert!(block.rhs(z, j).iter().all(|z| z.is_finite()), "{case} {j}");
                assert!(block.rhs(z, j) == alone, "{case} {j}");
            }
            assert_eq!(norm(block.rhs(z, 1)), 0.0, "{case}");
            assert!(norm(block.rhs(z, 2)).is_nan(), "{case}");
            if exact {
                // Without an image it is r.
                assert_eq!(bits(&block, z, 3), bits(&block, &r, 3), "{case}");
                let expected = r[4 * N + 7] / values[7];
                assert!((z[4 * N + 7] - expected).norm() < 1e-14, "{case}");
            }
        }
    }
}

#[test]
fn what_is_not_a_number_later_ends_a_right_hand_side_with_what_it_has() {
    let a = general(N, 0.8, 3);
    let r = Random(8).vector(3 * N);
    for from in 1..=4 {
        let space = Space::double(N, 3);
        let mut operator = Dense::new(&space, &a);
        let solve = |operator: &Dense<'_>, count: usize| {
            let gcr = InnerGcr::new(&space, operator, Identity, gcr_params(count, 1e-9)).unwrap();
            let z = apply(&gcr, &space, &r, &[]).0;
            operator.applications.set(0);
            let ca = CaGcr::new(&space, operator, ca_params(count, 1, 0.1)).unwrap();
            let pair = [z, apply(&ca, &space, &r, &[]).0];
            operator.applications.set(0);
            pair
        };
        let (healthy, short) = (solve(&operator, 5), solve(&operator, (from - 1).max(1)));
        operator.nan = Some((1, from));
        let broken = solve(&operator, 5);
        for ((broken, healthy), short) in broken.iter().zip(&healthy).zip(&short) {
            for j in [0, 2] {
                assert_eq!(bits(&space, broken, j), bits(&space, healthy, j), "{from}");
            }
            let expected = if from == 1 { &r } else { short };
            assert!(distance(space.rhs(broken, 1), space.rhs(expected, 1)) < 1e-13, "{from}");
        }
    }
}

#[test]
fn low_precision_and_limited_range() {
    let a: Block = general(N, 0.8, 3).iter().map(|a| 40.0 * a).collect();
    let r = Random(8).vector(N);
    let exact = smallest_residual(&r, &powers(&a, &r, 6)) / norm(&r);
    for precision in [Rounding::Single, Rounding::Half, Rounding::Narrow] {
        let space = Space::new(N, 1, precision);
        let operator = Dense::new(&space, &a);
        let size = space.target_norm().unwrap_or(1.0) / norm(&r);
        let r: Block = r.iter().map(|r| size * r).collect();
        let relative = |z: &Block| left(&a, &r, z) / norm(&r);
        let gcr = InnerGcr::new(&space, &operator, Identity, gcr_params(6, 1e-3)).unwrap();
        let found = relative(&apply(&gcr, &space, &r, &[]).0);
        assert!(found < 1.05 * exact, "{precision:?}: {found:e} {exact:e}");
        // 40⁶ is beyond the range of 16 bits. What is finite is used, and gives the scale for the next call.
        let ca = CaGcr::new(&space, &operator, ca_params(6, 1, 0.1)).unwrap();
        let first = relative(&apply(&ca, &space, &r, &[]).0);
        let second = relative(&apply(&ca, &space, &r, &[]).0);
        assert!(second < 1.05 * exact, "{precision:?}: {second:e} {exact:e}");
        assert!(
            first < 0.7 && (first > second || precision != Rounding::Narrow),
            "{precision:?}: {first:e} {second:e}"
        );
    }
}

#[test]
fn gcr_outside_solves_with_either_inside() {
    let a = general(N, 0.9, 3);
    uniform!(space, operator, system: Space::double(N, 2), &a);
    let b = Random(8).vector(2 * N);
    let solve = |k: &dyn Preconditioner<Space>| {
        let mut x = space.allocate().unwrap();
        let info = cycles::solve(&system, k, &b, &mut x, &GcrParams::default()).unwrap();
        for (b, x) in b.chunks(N).zip(x.chunks(N)) {
            assert!(distance(x, &direct(&a, b)) < 1e-8);
        }
        info.iterations
    };
    let plain = solve(&Identity);
    let gcr = solve(&InnerGcr::new(&space, &operator, Identity, InnerGcrParams::default()).unwrap());
    let ca = solve(&CaGcr::new(&space, &operator, CaGcrParams::default()).unwrap());
    assert!(3 * gcr < plain && 2 * ca < plain, "{plain} {gcr} {ca}");
}

#[test]
fn parameters_are_checked() {
    let space = Space::double(N, 1);
    let a = general(N, 0.9, 3);
    let operator = Dense::new(&space, &a);
    let invalid = |error: Option<SolveError<Broken>>| matches!(error, Some(SolveError::Invalid(_)));
    for (steps, tol) in [(0, 0.1), (4, 0.0), (4, 1.0), (4, -0.1), (4, f64::NAN), (4, f64::INFINITY)] {
        assert!(invalid(InnerGcr::new(&space, &operator, Identity, gcr_params(steps, tol)).err()), "{steps} {tol}");
        assert!(invalid(CaGcr::new(&space, &operator, ca_params(steps, 1, tol)).err()), "{steps} {tol}");
    }
    assert!(invalid(CaGcr::new(&space, &operator, ca_params(4, 0, 0.1)).err()));
}

#[test]
fn products_of_many_vectors_come_in_their_order() {
    // The default of the trait, on a space that has nothing of its own.
    let (space, n) = (PlainSpace::with_nrhs(N, 3), 3);
    let xs: Vec<Block> = (0..4).map(|seed| Random(seed).vector(n * N)).collect();
    let mut out = vec![Complex64::ZERO; 10 * n];
    space.multi_gram(&xs, &mut out).unwrap();
    let counted = Space::double(N, 3);
    let mut other = out.clone();
    counted.multi_gram(&xs, &mut other).unwrap();
    assert_eq!(counted.reductions.get(), 1);
    for b in 0..4 {
        for a in 0..=b {
            for j in 0..n {
                let (x, y) = (&xs[a][j * N..][..N], &xs[b][j * N..][..N]);
                let expected = dot(x, y);
                let at = (a + b * (b + 1) / 2) * n + j;
                assert!((out[at] - expected).norm() < 1e-13 && (other[at] - expected).norm() < 1e-13, "{a} {b} {j}");
            }
        }
    }
}
