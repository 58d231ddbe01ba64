//! Multi-shift CG: against a direct solve of each shift, against plain CG, and what it leaves alone.

use crate::common::{
    Broken, Dense, Random, Rounding, Space, c, direct, distance, dot, hermitian, mixed, norm, normalised, positive,
    product, residual, residuals, shifted, solved, stop_at,
};
use crate::methods;
use crate::methods::SolveMethod::Cg;
use num_complex::Complex64;
use solvers::*;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

const N: usize = 48;

type Block = Vec<Complex64>;

/// A^k v, normalised.
fn power(a: &[Complex64], v: &[Complex64], k: usize) -> Block {
    (0..k).fold(v.to_vec(), |v, _| normalised(&product(a, &v)))
}

fn blocks(space: &Space, shifts: usize) -> Vec<Block> {
    // The method starts from zero whatever is in x.
    vec![vec![c(f64::NAN, 1.0); space.n * space.nrhs]; shifts]
}

/// Solves in `precision` with new memory. The right-hand sides are as many as `b` holds.
fn solve(
    a: &[Complex64],
    precision: Rounding,
    shifts: &[f64],
    b: &Block,
    params: &MultiShiftParams<'_>,
) -> (Vec<Block>, Result<MultiShiftInfo, SolveError<Broken>>) {
    let n = a.len().isqrt();
    let space = Space::new(n, b.len() / n, precision);
    let operator = Dense::new(&space, a);
    let mut x = blocks(&space, shifts.len());
    let mut workspace = MultiShiftWorkspace::new(&space, shifts.len()).unwrap();
    let before = space.allocations.get();
    let answer = multishift_cg(&space, &operator, shifts, b, &mut x, params, &mut workspace, &mut ());
    assert_eq!(space.allocations.get(), before);
    (x, answer)
}

const TIGHT: MultiShiftParams<'_> = MultiShiftParams {
    solver: SolverParams {
        tol: 1e-15,
        max_iterations: 1000,
        delta: None,
        max_stalls: 5,
        stagnation_window: None,
        patience: None,
        breakdown: 1e-14,
        max_breakdowns: 5,
    },
    tolerances: &[],
    together: false,
    check: true,
};

#[test]
fn each_shift_equals_its_direct_solve() {
    let a = positive(N, 20.0, 1);
    for nrhs in [1, 2, 5] {
        let b = Random(2).vector(nrhs * N);
        // Unsorted, negative (but above −1/20) and zero ones among them.
        for shifts in [&[0.3][..], &[0.0], &[0.5, 0.0], &[2.0, -0.02, 0.0, 0.1, 30.0], &[3.0, 2.0, 1.0, 0.5]] {
            let (x, answer) = solve(&a, Rounding::Double, shifts, &b, &TIGHT);
            let info = answer.unwrap();
            for (i, shift) in shifts.iter().enumerate() {
                let a = shifted(&a, *shift);
                assert_eq!(info.shifts[i].shift, *shift);
                for (j, (b, x)) in b.chunks(N).zip(x[i].chunks(N)).enumerate() {
                    // κ ≤ 33: ε κ and a few roundings for each of some 40 iterations.
                    assert!(distance(x, &direct(&a, b)) < 1e-12, "{nrhs} {shift}: {:e}", distance(x, &direct(&a, b)));
                    let truth = residual(&a, b, x);
                    assert!((truth - info.shifts[i].true_residual[j]).abs() < 1e-14);
                    assert!(info.whole.true_residual[j] >= info.shifts[i].true_residual[j]);
                }
            }
        }
    }
}

#[test]
fn shifts_over_twenty_orders_of_magnitude() {
    let shifts = [1e-14, 1e6, 1e-8, 1e-3, 1.0, 1e12, 1e-10, 1e3, 1e100];
    let a = positive(N, 100.0, 3);
    let b = Random(4).vector(2 * N);
    let params = MultiShiftParams { tolerances: &[1e-13], ..TIGHT };
    let (x, answer) = solve(&a, Rounding::Double, &shifts, &b, &params);
    let info = answer.unwrap();
    assert!(info.whole.iterations > 30);
    for (i, shift) in shifts.iter().enumerate() {
        let a = shifted(&a, *shift);
        for (j, (b, x)) in b.chunks(N).zip(x[i].chunks(N)).enumerate() {
            assert!(distance(x, &direct(&a, b)) < 1e-11, "{shift:e}: {:e}", distance(x, &direct(&a, b)));
            assert!(residual(&a, b, x) < 2e-13, "{shift:e}: {:e}", residual(&a, b, x));
            assert!(info.shifts[i].residual[j] <= 1e-13);
            assert!((info.shifts[i].residual[j] - residual(&a, b, x)).abs() < 1e-13);
        }
        if *shift >= 1e12 {
            // x = b/σ up to λ/σ, after one or two steps.
            assert!(info.shifts[i].iterations.iter().all(|k| *k <= 2), "{shift:e}: {:?}", info.shifts[i].iterations);
        }
    }
}

/// All take as many iterations as the base system alone, even those that have long converged.
#[test]
fn together_they_end_with_the_base_system() {
    let shifts = [1.0, 1e-3, 1e6, 1e100];
    let (a, b) = (positive(N, 100.0, 3), Random(4).vector(2 * N));
    let params = MultiShiftParams { tolerances: &[1e-2, 1e-6, 1e-2, 1e-2], ..TIGHT };
    let (_, alone) = solve(&a, Rounding::Double, &shifts[1..2], &b, &MultiShiftParams { tolerances: &[1e-6], ..TIGHT });
    let (_, each) = solve(&a, Rounding::Double, &shifts, &b, &params);
    let (x, answer) = solve(&a, Rounding::Double, &shifts, &b, &MultiShiftParams { together: true, ..params });
    let (alone, each, info) = (alone.unwrap(), each.unwrap(), answer.unwrap());
    for (i, shift) in shifts.iter().enumerate() {
        assert_eq!(info.shifts[i].iterations, alone.shifts[0].iterations, "{shift:e}");
        let sooner = each.shifts[i].iterations.iter().zip(&info.shifts[i].iterations).all(|(each, all)| each < all);
        assert!(sooner == (i != 1), "{shift:e}");
        assert!(solved(&shifted(&a, *shift), &b, &x[i], 2e-6), "{shift:e}");
    }
}

#[test]
fn differences_far_below_the_base_shift_are_kept() {
    // δ/λ lies between 10⁻¹⁵ and 10⁻⁷, and so does g: formed as 1 − ρ it would begin with no digits, and the residual,
    // which rises a hundredfold here, would carry that on (3·10⁻⁴ in the end).
    let a = positive(N, 1e8, 5);
    let b = Random(6).vector(N);
    let delta = 1e-15;
    let params = MultiShiftParams { tolerances: &[1e-9], ..TIGHT };
    let (x, answer) = solve(&a, Rounding::Double, &[0.0, delta], &b, &params);
    answer.unwrap();
    // dx/dσ = −A⁻¹ x. The second order is δ/λ = 10⁻⁷ of it, as are the roundings of x, 10⁻¹⁶ over 10⁻⁷, and a few more.
    let slope: Block = x[1].iter().zip(&x[0]).map(|(x, y)| (y - x) / delta).collect();
    let expected = direct(&a, &x[0]);
    assert!(distance(&slope, &expected) < 1e-6, "{:e}", distance(&slope, &expected));
}

#[test]
fn equal_shifts_have_equal_solutions() {
    let a = positive(N, 50.0, 7);
    let b = Random(8).vector(2 * N);
    let shifts = [0.2, 0.01, 0.2, 0.01, 0.01];
    let (x, answer) = solve(&a, Rounding::Double, &shifts, &b, &MultiShiftParams::default());
    let info = answer.unwrap();
    assert!(info.whole.converged);
    assert_eq!(x[0], x[2]);
    assert!(x[1] == x[3] && x[3] == x[4]);
    assert_eq!(info.shifts[0].iterations, info.shifts[2].iterations);
    for (x, shift) in x.iter().zip(shifts) {
        assert!(solved(&shifted(&a, shift), &b, x, 1.01e-10));
    }
}

#[test]
fn right_hand_sides_are_independent_and_zero_gives_zero() {
    let a = positive(N, 100.0, 9);
    let shifts = [0.5, 0.001, 0.02];
    let mut b = Random(10).vector(4 * N);
    b[..N].iter_mut().for_each(|v| *v *= 1e6);
    b[N..2 * N].fill(Complex64::ZERO);
    // One that ends after a step: an eigenvector.
    let vector = power(&a, &Random(11).vector(N), 4000);
    b[3 * N..].copy_from_slice(&vector);
    let params = MultiShiftParams::default();
    let (x, answer) = solve(&a, Rounding::Double, &shifts, &b, &params);
    let info = answer.unwrap();
    assert!(info.whole.converged);
    for (i, shift) in shifts.iter().enumerate() {
        assert!(x[i][N..2 * N].iter().all(|v| *v == Complex64::ZERO));
        let report = &info.shifts[i];
        assert_eq!((report.iterations[1], report.residual[1], report.true_residual[1]), (0, 0.0, 0.0));
        assert!(report.iterations[3] <= 2, "{:?}", report.iterations);
        for j in [0, 2, 3] {
            let bj = b[j * N..(j + 1) * N].to_vec();
            assert!(residual(&shifted(&a, *shift), &bj, &x[i][j * N..(j + 1) * N]) < 1.01e-10);
            let (alone, answer) = solve(&a, Rounding::Double, &shifts, &bj, &params);
            // A block changes no bit.
            assert_eq!(alone[i], x[i][j * N..(j + 1) * N]);
            let alone = answer.unwrap();
            assert_eq!(alone.shifts[i].iterations[0], report.iterations[j]);
            assert_eq!(alone.whole.iterations, info.whole.iterations_per_rhs[j]);
            assert_eq!(alone.whole.history[0], info.whole.history[j]);
        }
    }
    assert_eq!(info.whole.iterations_per_rhs[1], 0);
    assert_eq!(info.whole.history[1], [0.0]);

    let (x, answer) = solve(&a, Rounding::Double, &shifts, &vec![Complex64::ZERO; 2 * N], &params);
    let info = answer.unwrap().whole;
    assert!(x.iter().all(|x| norm(x) == 0.0));
    assert!(info.converged && info.iterations == 0 && info.true_residual == [0.0, 0.0]);
}

/// One step of one `shift_update`: the shift, and its coefficients.
type Step = (usize, Vec<f64>, Vec<f64>, Vec<f64>);

/// A space that looks at every update and counts how often the host has to wait.
struct Watched<'a> {
    inner: &'a Space,
    waits: Cell<usize>,
    /// Addresses of the solutions.
    x: RefCell<Vec<*const Block>>,
    updates: RefCell<Vec<Vec<Step>>>,
    cheap: bool,
    late: usize,
}

impl<'a> Watched<'a> {
    fn new(inner: &'a Space) -> Self {
        Self { inner, waits: Cell::new(0), x: RefCell::default(), updates: RefCell::default(), cheap: false, late: 0 }
    }
    fn wait<T>(&self, result: T) -> T {
        self.waits.set(self.waits.get() + 1);
        result
    }
}

impl VectorSpace for Watched<'_> {
    type Vector = Block;
    type Error = Broken;
    fn nrhs(&self) -> usize {
        self.inner.nrhs
    }
    fn allocate(&self) -> Result<Block, Broken> {
        self.inner.allocate()
    }
    fn zero(&self, x: &mut Block) -> Result<(), Broken> {
        self.inner.zero(x)
    }
    fn copy(&self, from: &Block, to: &mut Block) -> Result<(), Broken> {
        self.inner.copy(from, to)
    }
    fn axpby(&self, a: &[Complex64], x: &Block, b: &[Complex64], y: &mut Block) -> Result<(), Broken> {
        self.inner.axpby(a, x, b, y)
    }
    fn norm2(&self, x: &Block, out: &mut [f64]) -> Result<(), Broken> {
        self.wait(self.inner.norm2(x, out))
    }
    fn dot(&self, x: &Block, y: &Block, out: &mut [Complex64]) -> Result<(), Broken> {
        self.wait(self.inner.dot(x, y, out))
    }
    fn dot_norm2(&self, x: &Block, y: &Block, dot: &mut [Complex64], norm2: &mut [f64]) -> Result<(), Broken> {
        self.wait(self.inner.dot_norm2(x, y, dot, norm2))
    }
    fn overlapped_updates(&self) -> usize {
        self.late
    }
    fn shift_update(&self, r: &Block, steps: &mut [ShiftStep<'_, Block>]) -> Result<(), Broken> {
        let place = |x: &Block| self.x.borrow().iter().position(|at| std::ptr::eq(*at, x)).unwrap();
        let record = |s: &ShiftStep<'_, Block>| (place(s.x), s.a.to_vec(), s.z.to_vec(), s.b.to_vec());
        self.updates.borrow_mut().push(steps.iter().map(record).collect());
        if !self.cheap {
            return self.inner.shift_update(r, steps);
        }
        // As a backend would: nothing is read or written where a right-hand side rests.
        for step in steps {
            for j in 0..self.inner.nrhs {
                if step.is_identity(j) {
                    continue;
                }
                let part = j * self.inner.n..(j + 1) * self.inner.n;
                for ((x, p), r) in step.x[part.clone()].iter_mut().zip(&mut step.p[part.clone()]).zip(&r[part]) {
                    *x += step.a[j] * *p;
                    *p = step.z[j] * r + step.b[j] * *p;
                }
            }
        }
        Ok(())
    }
}

struct WatchedDense<'a>(Dense<'a>);
impl LinearOperator<Watched<'_>> for WatchedDense<'_> {
    fn apply(&self, x: &Block, out: &mut Block) -> Result<(), Broken> {
        self.0.apply(x, out)
    }
    fn apply_dagger(&self, x: &Block, out: &mut Block) -> Result<(), Broken> {
        self.0.apply_dagger(x, out)
    }
    fn flops(&self) -> f64 {
        self.0.flops()
    }
}

/// Solves on a watched space. Returns the solutions, the answer, and the number of applications.
fn solve_watched(
    space: &Watched<'_>,
    a: &[Complex64],
    shifts: &[f64],
    b: &Block,
    params: &MultiShiftParams<'_>,
) -> (Vec<Block>, Result<MultiShiftInfo, SolveError<Broken>>, usize) {
    let operator = WatchedDense(Dense::new(space.inner, a));
    let mut x = blocks(space.inner, shifts.len());
    *space.x.borrow_mut() = x.iter().map(|x| x as *const Block).collect();
    let mut workspace = MultiShiftWorkspace::new(space, shifts.len()).unwrap();
    let answer = multishift_cg(space, &operator, shifts, b, &mut x, params, &mut workspace, &mut ());
    (x, answer, operator.0.applications.get())
}

#[test]
fn tolerances_hold_for_each_shift_and_dropped_ones_are_left_alone() {
    let a = positive(N, 50.0, 12);
    let shifts = [0.4, 0.01, 0.05, 0.02];
    let tol = [1e-4, 1e-5, 1e-13, 1e-6];
    let nrhs = 3;
    let mut b = Random(13).vector(nrhs * N);
    // One with little in the directions that take long.
    let smooth = power(&a, &b[N..2 * N], 3);
    b[N..2 * N].copy_from_slice(&smooth);
    let mut answers = Vec::new();
    for (cheap, late) in [(false, 0), (true, 0), (true, 1), (false, 2), (true, usize::MAX)] {
        let space = Space::double(N, nrhs);
        let watched = Watched { cheap, late, ..Watched::new(&space) };
        let params = MultiShiftParams { tolerances: &tol, ..Default::default() };
        let (x, answer, _) = solve_watched(&watched, &a, &shifts, &b, &params);
        let info = answer.unwrap();
        assert!(info.whole.converged);
        let updates = watched.updates.borrow();
        for (i, report) in info.shifts.iter().enumerate() {
            let last = *report.iterations.iter().max().unwrap();
            let steps: Vec<_> = updates.iter().flatten().filter(|step| step.0 == i).collect();
            // Those that are dropped for all right-hand sides take no part; the base has its direction to carry on.
            let expected = if i == 1 { info.whole.iterations - 1 } else { last };
            let count = steps.len();
            assert!(count == expected || i == 1 && count == expected + 1, "{i}: {count} {expected}");
            for j in 0..nrhs {
                let end = report.iterations[j];
                assert!(report.residual[j] <= tol[i] && report.residual[j] > 1e-3 * tol[i]);
                for (k, (_, a, z, b)) in steps.iter().enumerate() {
                    if k < end {
                        assert!(a[j] > 0.0);
                    } else {
                        assert_eq!(a[j], 0.0);
                    }
                    let moves = if i == 1 { k + 1 < info.whole.iterations_per_rhs[j] } else { k + 1 < end };
                    if moves {
                        assert!(z[j] == 1.0 && b[j] > 0.0);
                    } else {
                        assert_eq!((z[j], b[j]), (0.0, 1.0), "{i} {j} {k} {end}");
                    }
                }
                let truth = residual(&shifted(&a, shifts[i]), space.rhs(&b, j), space.rhs(&x[i], j));
                assert!(truth <= 1.01 * tol[i], "{i} {j}: {truth:e}");
                assert!((truth - report.true_residual[j]).abs() < 1e-14);
                // Dropped in time: x is what it was when its residual first fell below the tolerance.
                assert!((truth - report.residual[j]).abs() < 1e-13, "{truth:e} {:e}", report.residual[j]);
            }
        }
        // The third takes longest, although its shift is not the smallest: the others end before.
        assert!(info.shifts[2].iterations[0] == info.whole.iterations_per_rhs[0]);
        assert!(info.shifts[1].iterations[0] < info.whole.iterations_per_rhs[0]);
        assert!(info.shifts[0].iterations[0] < info.shifts[3].iterations[0]);
        answers.push((x, info));
    }
    // When a vector is updated makes no difference to it.
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn a_solve_that_ends_early_leaves_its_last_iterates() {
    let a = positive(N, 50.0, 12);
    let shifts = [0.4, 0.01, 0.05, 0.02];
    let b = Random(13).vector(2 * N);
    let space = Space::double(N, 2);
    let mut answers = Vec::new();
    for late in [0, 1, 2] {
        let params = MultiShiftParams::from(SolverParams { max_iterations: 5, ..Default::default() });
        let (x, error, _) = solve_watched(&Watched { late, ..Watched::new(&space) }, &a, &shifts, &b, &params);
        assert!(matches!(error, Err(SolveError::NoConvergence { iterations: 5, .. })), "{error:?}");
        answers.push(x);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn an_iteration_waits_twice_whatever_the_number_of_shifts() {
    let a = positive(N, 100.0, 14);
    let b = Random(15).vector(2 * N);
    for shifts in [&[0.0][..], &[0.1], &[0.0, 1.0, 2.0], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]] {
        for check in [false, true] {
            let space = Space::double(N, 2);
            let watched = Watched::new(&space);
            let params = MultiShiftParams { check, ..Default::default() };
            let (_, answer, applications) = solve_watched(&watched, &a, shifts, &b, &params);
            let info = answer.unwrap();
            let whole = &info.whole;
            let checks = if check { shifts.len() } else { 0 };
            // ‖b‖ comes first.
            assert_eq!(whole.reductions, 2 * whole.iterations + 1 + checks);
            assert_eq!(watched.waits.get(), whole.reductions);
            assert_eq!((whole.sloppy_applications, whole.precise_applications), (whole.iterations, checks));
            assert_eq!(applications, whole.iterations + checks);
            assert_eq!(whole.flops, 2.0 * applications as f64 * Dense::new(&space, &a).flops());
            // Nothing is claimed that was not looked at.
            assert_eq!(whole.converged, check);
            assert_eq!(whole.true_residual.iter().any(|v| v.is_nan()), !check);
            assert_eq!(whole.worst_residual().is_nan(), !check);
        }
    }
}

#[test]
fn iterations_are_those_of_plain_cg_on_the_base_shift() {
    let a = positive(N, 500.0, 16);
    let b = Random(17).vector(2 * N);
    for shifts in [&[0.01][..], &[0.0, 1.0], &[5.0, 0.3, 0.004, 0.004, 80.0]] {
        let base = shifts.iter().copied().fold(f64::INFINITY, f64::min);
        let space = Space::double(N, 2);
        let operator = Dense::new(&space, &a);
        let plain = Shifted::new(&space, &operator, base.into());
        let mut x = space.allocate().unwrap();
        let params = SolverParams { tol: 1e-9, ..Default::default() };
        let one = methods::solve(Cg, &Uniform::new(&space, &plain), &b, &mut x, &params, &mut ()).unwrap();
        let params = MultiShiftParams { tolerances: &[1e-9], ..Default::default() };
        let (xs, answer) = solve(&a, Rounding::Double, shifts, &b, &params);
        let info = answer.unwrap();
        assert_eq!(info.whole.iterations, one.iterations);
        assert_eq!(info.whole.iterations_per_rhs, one.iterations_per_rhs);
        for (i, shift) in shifts.iter().enumerate() {
            if *shift == base {
                assert_eq!(info.shifts[i].iterations, one.iterations_per_rhs);
                assert!(distance(&xs[i], &x) < 1e-12);
            } else {
                assert!(info.shifts[i].iterations[0] < one.iterations);
            }
        }
        // Its history is the recurrence's throughout; the last entry of plain CG is the true residual.
        for (mine, theirs) in info.whole.history.iter().zip(&one.history) {
            assert_eq!(mine.len(), theirs.len());
            assert!(mine.iter().zip(theirs).all(|(m, t)| (m - t).abs() <= 1e-6 * t + 1e-13));
        }
    }
}

#[test]
fn the_step_of_the_default_is_what_it_says() {
    let nrhs = 40; // more than fit on the stack of the defaults
    let space = Space::double(3, nrhs);
    let mut random = Random(18);
    let r = random.vector(3 * nrhs);
    let (x, p) = (random.vector(3 * nrhs), random.vector(3 * nrhs));
    let coefficients: Vec<Vec<f64>> = (0..3).map(|_| (0..nrhs).map(|_| random.real()).collect()).collect();
    let (mut a, mut z, mut b) = (coefficients[0].clone(), coefficients[1].clone(), coefficients[2].clone());
    (a[7], z[7], b[7]) = (0.0, 0.0, 1.0);
    (a[8], z[8], b[8]) = (0.0, 0.0, 0.5);
    (a[9], z[9], b[9]) = (0.0, 1.0, 1.0);
    (a[10], z[10], b[10]) = (0.5, 0.0, 1.0);
    let rest = (vec![0.0; nrhs], vec![0.0; nrhs], vec![1.0; nrhs]);
    let (mut x0, mut p0, mut x1, mut p1) = (x.clone(), p.clone(), x.clone(), p.clone());
    let (mut x2, mut p2) = (x.clone(), p.clone());
    let mut steps = [
        ShiftStep { a: &a, z: &z, b: &b, x: &mut x0, p: &mut p0 },
        ShiftStep { a: &rest.0, z: &rest.1, b: &rest.2, x: &mut x1, p: &mut p1 },
    ];
    assert!((0..nrhs).all(|j| steps[0].is_identity(j) == (j == 7) && steps[1].is_identity(j)));
    space.shift_update(&r, &mut steps).unwrap();
    for k in 0..3 * nrhs {
        let j = k / 3;
        assert!((x0[k] - (x[k] + a[j] * p[k])).norm() < 1e-15);
        assert!((p0[k] - (z[j] * r[k] + b[j] * p[k])).norm() < 1e-15);
    }
    assert!(x1 == x && p1 == p);
    // The usual step, and that of a direction that goes on alone.
    let (ones, zeros) = (vec![1.0; nrhs], vec![0.0; nrhs]);
    let mut steps = [
        ShiftStep { a: &a, z: &ones, b: &b, x: &mut x1, p: &mut p1 },
        ShiftStep { a: &zeros, z: &ones, b: &b, x: &mut x2, p: &mut p2 },
    ];
    space.shift_update(&r, &mut steps).unwrap();
    for k in 0..3 * nrhs {
        let j = k / 3;
        assert!((x1[k] - (x[k] + a[j] * p[k])).norm() < 1e-15 && x2[k] == x[k]);
        assert!((p1[k] - (r[k] + b[j] * p[k])).norm() < 1e-15 && p2[k] == p1[k]);
    }
    assert_eq!((&x0[21..24], &p0[21..24]), (&x[21..24], &p[21..24]));
}

#[test]
fn the_operator_adds_its_shift_in_one_reduction() {
    let space = Space::double(N, 2);
    let a = positive(N, 10.0, 19);
    let operator = Dense::new(&space, &a);
    let x = Random(20).vector(2 * N);
    let (mut out, mut dots, mut scratch) = (space.allocate().unwrap(), [Complex64::ZERO; 2], [0.0; 2]);
    for shift in [0.0, -0.7, 3.0] {
        let by_reference: &dyn LinearOperator<Space> = &&operator;
        let mut times = 0;
        let mut overlap = || {
            times += 1;
            Ok(())
        };
        by_reference.apply_curvature(&space, shift, &x, &mut out, &mut dots, &mut scratch, &mut overlap).unwrap();
        assert_eq!(times, 1);
        let full = shifted(&a, shift);
        for (j, value) in dots.iter().enumerate() {
            let x = space.rhs(&x, j);
            let image = product(&full, x);
            assert!(distance(space.rhs(&out, j), &image) < 1e-14);
            assert!((value - dot(x, &image)).norm() < 1e-12);
        }
    }
}

#[test]
fn observers_see_the_base_and_can_stop() {
    let a = positive(N, 300.0, 21);
    let b = Random(22).vector(2 * N);
    let shifts = [0.5, 0.0, 0.01];
    let space = Space::double(N, 2);
    let operator = Dense::new(&space, &a);
    let mut workspace = MultiShiftWorkspace::new(&space, 5).unwrap(); // more than needed
    let mut x = blocks(&space, 3);
    let params = MultiShiftParams::default();
    let mut seen = Vec::new();
    let mut watch = |event: &Iteration<'_>| {
        assert_eq!((event.iteration, event.kind), (seen.len() + 1, IterationKind::Iterate));
        seen.push(event.residuals[1]);
        ControlFlow::Continue(())
    };
    let info = multishift_cg(&space, &operator, &shifts, &b, &mut x, &params, &mut workspace, &mut watch).unwrap();
    let length = info.whole.history[1].len();
    assert_eq!(seen[..length - 1], info.whole.history[1][1..]);

    // Every break but that of the last iteration ends the solve, and x is what it had come to.
    for stop in [1, 7, info.whole.iterations - 1] {
        let mut stopped = blocks(&space, 3);
        let mut stop_here = stop_at(stop);
        let answer =
            multishift_cg(&space, &operator, &shifts, &b, &mut stopped, &params, &mut workspace, &mut stop_here);
        let error = answer.unwrap_err();
        assert!(matches!(error, SolveError::Cancelled { iteration, .. } if iteration == stop), "{error}");
        let report = error.info().unwrap();
        assert!(!report.converged && report.iterations == stop);
        for j in 0..2 {
            let truth = |i: usize| residual(&shifted(&a, shifts[i]), space.rhs(&b, j), space.rhs(&stopped[i], j));
            let worst = (0..3).map(truth).fold(0.0, f64::max);
            assert!((worst - report.true_residual[j]).abs() < 1e-13);
            assert!((truth(1) - info.whole.history[j][stop]).abs() < 1e-12);
        }
    }
    // A workspace has no memory of earlier solves.
    let mut again = blocks(&space, 3);
    let second = multishift_cg(&space, &operator, &shifts, &b, &mut again, &params, &mut workspace, &mut ()).unwrap();
    assert_eq!(second, info);
    assert_eq!(again, x);
}

#[test]
fn what_is_not_positive_definite_is_named() {
    let a = hermitian(N, |i| if i == 5 { -0.5 } else { 1.0 + i as f64 }, 23);
    let b = Random(24).vector(2 * N);
    // A itself is indefinite, but A + 0.6 is not.
    let (x, answer) = solve(&a, Rounding::Double, &[0.6, 2.0], &b, &MultiShiftParams::default());
    assert!(answer.unwrap().whole.converged);
    assert!(x.iter().flatten().all(|v| v.is_finite()));
    let (x, answer) = solve(&a, Rounding::Double, &[0.6, 0.4, 2.0], &b, &MultiShiftParams::default());
    let error = answer.unwrap_err();
    assert!(matches!(error, SolveError::NotPositiveDefinite { curvature, .. } if curvature <= 0.0), "{error}");
    assert!(x.iter().flatten().all(|v| v.is_finite()));
    let info = error.info().unwrap();
    let worst = |j: usize| {
        let truth = |(x, shift): (&Block, f64)| residuals(&shifted(&a, shift), &b, x)[j];
        x.iter().zip([0.6, 0.4, 2.0]).map(truth).fold(0.0, f64::max)
    };
    assert!((0..2).all(|j| (worst(j) - info.true_residual[j]).abs() <= 1e-10 * worst(j)), "{info:?}");
    // The zero matrix.
    let zero = vec![Complex64::ZERO; N * N];
    let (_, answer) = solve(&zero, Rounding::Double, &[0.0, 1.0], &b, &MultiShiftParams::default());
    assert!(matches!(answer, Err(SolveError::NotPositiveDefinite { curvature: 0.0, iteration: 0, rhs: 0, .. })));
}

#[test]
fn a_nan_is_reported_with_its_right_hand_side() {
    let a = positive(N, 100.0, 25);
    let clean = Random(26).vector(3 * N);
    for from in [1, 5] {
        let space = Space::double(N, 3);
        let mut operator = Dense::new(&space, &a);
        operator.nan = Some((1, from));
        let mut x = blocks(&space, 2);
        let mut workspace = MultiShiftWorkspace::new(&space, 2).unwrap();
        let params = MultiShiftParams::default();
        let answer = multishift_cg(&space, &operator, &[0.0, 1.0], &clean, &mut x, &params, &mut workspace, &mut ());
        assert!(matches!(answer, Err(SolveError::NotANumber { rhs: 1, iteration, .. }) if iteration == from - 1));
        assert!(x.iter().flatten().all(|v| v.is_finite()));
        // The others have gone on.
        assert_eq!(answer.unwrap_err().info().unwrap().failed, [1]);
        for (x, shift) in x.iter().zip([0.0, 1.0]) {
            let truth = residuals(&shifted(&a, shift), &clean, x);
            assert!(truth[0] <= 1.1e-10 && truth[2] <= 1.1e-10);
        }
    }
    // Nor is it forgotten where the others do not arrive.
    let space = Space::double(N, 3);
    let mut operator = Dense::new(&space, &a);
    operator.nan = Some((1, 3));
    let (mut x, mut workspace) = (blocks(&space, 2), MultiShiftWorkspace::new(&space, 2).unwrap());
    let params = MultiShiftParams::from(SolverParams { max_iterations: 6, ..Default::default() });
    let answer = multishift_cg(&space, &operator, &[0.0, 1.0], &clean, &mut x, &params, &mut workspace, &mut ());
    let Err(SolveError::NoConvergence { info, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(info.failed, [1]);
    let mut b = clean;
    b[2 * N + 4] = c(f64::INFINITY, 0.0);
    let (x, answer) = solve(&a, Rounding::Double, &[0.1], &b, &MultiShiftParams::default());
    assert!(matches!(answer, Err(SolveError::NotANumber { rhs: 2, iteration: 0, .. })));
    assert_eq!(norm(&x[0]), 0.0);
    // (p, A p) is finite, but ‖A p‖² is not.
    let mut wild = vec![Complex64::ZERO; N * N];
    (wild[0], wild[1], wild[N]) = (c(1.0, 0.0), c(1e200, 0.0), c(1e200, 0.0));
    let mut first = vec![Complex64::ZERO; N];
    first[0] = Complex64::ONE;
    let (x, answer) = solve(&wild, Rounding::Double, &[0.0, 1.0], &first, &MultiShiftParams::default());
    assert!(matches!(answer, Err(SolveError::NotANumber { rhs: 0, iteration: 0, .. })));
    assert!(x.iter().all(|x| norm(x) == 0.0));
    // δ α beyond all numbers.
    let tiny: Block = a.iter().map(|v| v * 1e-12).collect();
    b[2 * N + 4] = Complex64::ZERO;
    let (x, answer) = solve(&tiny, Rounding::Double, &[0.0, 1e305], &b, &MultiShiftParams::default());
    assert!(matches!(answer, Err(SolveError::NotANumber { .. })));
    assert!(x.iter().flatten().all(|v| v.is_finite()));
}

#[test]
fn limits_parameters_and_backends() {
    let a = positive(N, 1e6, 27);
    let b = Random(28).vector(2 * N);
    let shifts = [0.0, 0.5];
    for max_iterations in [0, 5] {
        let params = MultiShiftParams::from(SolverParams { max_iterations, ..Default::default() });
        let (x, answer) = solve(&a, Rounding::Double, &shifts, &b, &params);
        let error = answer.unwrap_err();
        assert!(matches!(error, SolveError::NoConvergence { iterations, .. } if iterations == max_iterations));
        let info = error.info().unwrap();
        for (j, truth) in residuals(&a, &b, &x[0]).into_iter().enumerate() {
            assert!((truth - info.true_residual[j]).abs() < 1e-12, "{truth:e} {info:?}");
        }
        assert_eq!(max_iterations == 0, x.iter().all(|x| norm(x) == 0.0));
    }
    // A window that a solve passes well inside, in the first use of a workspace and in the next ones.
    let easy = positive(N, 1e3, 27);
    let space = Space::double(N, 2);
    let operator = Dense::new(&space, &easy);
    let mut workspace = MultiShiftWorkspace::new(&space, 2).unwrap();
    let params = MultiShiftParams::from(SolverParams { stagnation_window: Some(30), ..Default::default() });
    for _ in 0..3 {
        let mut x = blocks(&space, 2);
        let info = multishift_cg(&space, &operator, &shifts, &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
        assert!(info.whole.iterations > 40 && info.whole.history[0][1] > 1.0);
    }
    // A tolerance of one and more is fulfilled by zero.
    let (x, answer) = solve(&a, Rounding::Double, &shifts, &b, &MultiShiftParams { tolerances: &[1.0], ..TIGHT });
    assert_eq!((answer.unwrap().whole.iterations, norm(&x[1])), (0, 0.0));

    let invalid = |shifts: &[f64], tol: &[f64]| {
        let (_, answer) =
            solve(&a, Rounding::Double, shifts, &b, &MultiShiftParams { tolerances: tol, ..Default::default() });
        matches!(answer, Err(SolveError::Invalid(_)))
    };
    assert!(invalid(&[], &[1e-8]));
    assert!(invalid(&shifts, &[1e-8; 3]));
    for tol in [0.0, -1.0, 1e-19, f64::NAN, f64::INFINITY] {
        let params = SolverParams { tol, ..Default::default() };
        let (_, answer) = solve(&a, Rounding::Double, &shifts, &b, &params.into());
        assert!(matches!(answer, Err(SolveError::Invalid(_))), "{tol}");
        assert!(invalid(&shifts, &[tol]) && invalid(&shifts, &[1e-8, tol]), "{tol}");
    }
    for shift in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
        assert!(invalid(&[shift, -f64::MAX], &[1e-8]) && invalid(&[-f64::MAX, shift], &[1e-8]), "{shift}");
    }
    let space = Space::double(N, 2);
    let mut operator = Dense::new(&space, &a);
    let params = MultiShiftParams::default();
    let mut workspace = MultiShiftWorkspace::new(&space, 2).unwrap();
    let answer =
        multishift_cg(&space, &operator, &[0.1; 2], &b, &mut blocks(&space, 3), &params, &mut workspace, &mut ());
    assert!(matches!(answer, Err(SolveError::Invalid(_))));
    let answer =
        multishift_cg(&space, &operator, &[0.1; 3], &b, &mut blocks(&space, 3), &params, &mut workspace, &mut ());
    assert!(matches!(answer, Err(SolveError::Invalid(_))));
    let one = Space::double(N, 1);
    let mut narrow = MultiShiftWorkspace::new(&one, 2).unwrap();
    let answer = multishift_cg(&space, &operator, &[0.1; 2], &b, &mut blocks(&space, 2), &params, &mut narrow, &mut ());
    assert!(matches!(answer, Err(SolveError::Invalid(_))));

    operator.fails_at = 4;
    let answer =
        multishift_cg(&space, &operator, &shifts, &b, &mut blocks(&space, 2), &params, &mut workspace, &mut ());
    assert!(matches!(answer, Err(SolveError::Backend(Broken))));
}

#[test]
fn low_precision_claims_nothing_false_and_stagnates_by_name() {
    let shifts = [0.5, 0.0, 0.03];
    let b = {
        let space = Space::new(N, 1, Rounding::Single);
        let (mut rounded, b) = (space.allocate().unwrap(), Random(29).vector(N));
        space.axpby(&[Complex64::ONE], &b, &[Complex64::ZERO], &mut rounded).unwrap();
        rounded
    };
    // Within reach: found so, and by the same residual that double precision sees.
    let a: Block = positive(N, 100.0, 30).iter().map(|v| c(v.re as f32 as f64, v.im as f32 as f64)).collect();
    let (x, answer) = solve(&a, Rounding::Single, &shifts, &b, &MultiShiftParams { tolerances: &[1e-5], ..TIGHT });
    assert!(answer.unwrap().whole.converged);
    for (x, shift) in x.iter().zip(shifts) {
        assert!(residual(&shifted(&a, shift), &b, x) < 1.1e-5);
    }
    // Below single precision the recurrence goes on to claim anything; the check says what is true.
    let (x, answer) = solve(&a, Rounding::Single, &shifts, &b, &MultiShiftParams { tolerances: &[1e-12], ..TIGHT });
    let info = answer.unwrap();
    assert!(!info.whole.converged);
    for (i, (x, shift)) in x.iter().zip(shifts).enumerate() {
        let truth = residual(&shifted(&a, shift), &b, x);
        assert!(info.shifts[i].residual[0] <= 1e-12 && truth < 1e-5 && truth > 1e-12, "{shift}: {truth:e}");
        // Both residuals are sums in single precision.
        assert!((info.shifts[i].true_residual[0] - truth).abs() < 1e-6);
    }
    // One shift that fails is enough.
    let tol = [1e-12, 1e-5, 1e-5];
    let (_, answer) = solve(&a, Rounding::Single, &shifts, &b, &MultiShiftParams { tolerances: &tol, ..TIGHT });
    let info = answer.unwrap();
    let holds: Vec<_> = info.shifts.iter().zip(tol).map(|(s, tol)| s.true_residual[0] <= tol).collect();
    assert!(holds == [false, true, true] && !info.whole.converged);
    // Where not even the recurrence comes down, the window ends it.
    let a = positive(N, 1e10, 31);
    let params = MultiShiftParams {
        tolerances: &[1e-12],
        check: true,
        ..SolverParams { max_iterations: 100_000, stagnation_window: Some(100), ..Default::default() }.into()
    };
    for precision in [Rounding::Single, Rounding::Half] {
        let (x, answer) = solve(&a, precision, &[0.5, 0.0], &b, &params);
        let error = answer.unwrap_err();
        println!("{precision:?}: {error}");
        // By rounding A is no longer positive: both are true.
        assert!(
            matches!(error, SolveError::Stagnation { rhs: 0, .. } | SolveError::NotPositiveDefinite { rhs: 0, .. }),
            "{error}"
        );
        assert!(x.iter().flatten().all(|v| v.is_finite()) && !error.info().unwrap().converged);
    }
}

#[test]
fn refinement_from_single_to_double_precision() {
    // Babich et al. 2011, section 8.2: all shifts in single precision, then each by mixed CG with that as guess.
    let a = positive(N, 1000.0, 32);
    let shifts = [0.001, 0.01, 0.1, 1.0];
    let b = Random(33).vector(2 * N);
    mixed!(space, operator, small, sloppy, _system: N, 2, Rounding::Single, &a);
    let mut rough = small.allocate().unwrap();
    ConvertFrom::<Space>::convert(&small, &[1.0; 2], &b, &mut rough).unwrap();
    let mut x = blocks(&small, 4);
    let mut workspace = MultiShiftWorkspace::new(&small, 4).unwrap();
    let params = MultiShiftParams { tolerances: &[1e-5], check: false, ..Default::default() };
    multishift_cg(&small, &sloppy, &shifts, &rough, &mut x, &params, &mut workspace, &mut ()).unwrap();
    for (x, shift) in x.iter_mut().zip(shifts) {
        let (precise, sloppy) =
            (Shifted::new(&space, &operator, shift.into()), Shifted::new(&small, &sloppy, shift.into()));
        let system = Mixed::new(&space, &precise, &small, &sloppy);
        let mut memory = CgWorkspace::new(&system).unwrap();
        let params = SolverParams { tol: 1e-12, ..Default::default() };
        let mut cold = space.allocate().unwrap();
        let from_zero = cg(&system, &b, &mut cold, &params, &mut memory, &mut ()).unwrap();
        let refined = cg(&system, &b, x, &params, &mut memory, &mut ()).unwrap();
        assert!(refined.converged && refined.iterations < from_zero.iterations, "{shift}");
        assert!(solved(&shifted(&a, shift), &b, x, 1.01e-12));
    }
}
