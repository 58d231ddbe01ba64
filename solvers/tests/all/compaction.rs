//! Batches become smaller while they are solved: finished right-hand sides are no longer computed, and nobody outside
//! notices.

use crate::common::{
    Broken, Dense, Random, Rounding, Space, c, distance, hermitian, mixed, norm, positive, product, residual,
    residuals, shifted,
};
use crate::methods::SolveMethod::{self, *};
use crate::methods::{solve, solve_dense};
use num_complex::Complex64;
use solvers::*;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

const N: usize = 160;
const NRHS: usize = 8;

/// A block-diagonal matrix, one block for each right-hand j, that counts how often each is applied to something. It
/// knows a right-hand j by where it is not zero, so it may be moved.
struct Counting<'a> {
    dense: Dense<'a>,
    counts: RefCell<Vec<usize>>,
    /// Whether it says that it treats all right-hand sides alike.
    movable: bool,
    /// Gives NaN for this right-hand j from its application of this number on.
    nan: Option<(usize, usize)>,
    /// Fails when this right-hand j is applied for this time.
    fails: Option<(usize, usize)>,
}

impl<'a> Counting<'a> {
    fn new(space: &'a Space, a: &[Complex64]) -> Self {
        Self { dense: Dense::new(space, a), counts: RefCell::new(vec![0; NRHS]), movable: true, nan: None, fails: None }
    }
    fn count(&self, x: &[Complex64], out: &mut [Complex64]) -> Result<(), Broken> {
        for (x, out) in x.chunks(N).zip(out.chunks_mut(N)).take(self.dense.space.nrhs()) {
            let blocks = x.chunks(N / NRHS).enumerate().filter(|(_, block)| norm(block) > 0.0);
            for (j, _) in blocks {
                let count = &mut self.counts.borrow_mut()[j];
                *count += 1;
                if self.nan.is_some_and(|(which, from)| j == which && *count >= from) {
                    out[j * (N / NRHS)] = c(f64::NAN, 0.0);
                }
                if self.fails == Some((j, *count)) {
                    return Err(Broken);
                }
            }
        }
        Ok(())
    }
}

impl LinearOperator<Space> for Counting<'_> {
    fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.dense.apply(x, out)?;
        self.count(x, out)
    }
    fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), Broken> {
        self.dense.apply_dagger(x, out)?;
        self.count(x, out)
    }
    fn narrow(&self, _: usize) -> bool {
        self.movable
    }
    fn flops(&self) -> f64 {
        self.dense.flops()
    }
}

/// Condition numbers of the blocks: neither sorted, nor the finished ones at the end. The first three are finished in the
/// same iteration, so that one of them fills a batch of six, which is for five.
const KAPPA: [f64; NRHS] = [1.5, 900.0, 1.5, 60.0, 4000.0, 1.5, 200.0, 10.0];

/// Blocks of [`KAPPA`], Hermitian and positive, and right-hand sides in one block each.
fn blocks() -> (Vec<Complex64>, Vec<Complex64>) {
    let size = N / NRHS;
    let (mut a, mut b) = (vec![Complex64::ZERO; N * N], vec![Complex64::ZERO; N * NRHS]);
    for j in 0..NRHS {
        let alike = if KAPPA[j] == KAPPA[0] { 0 } else { j as u64 };
        let block = positive(size, KAPPA[j], 3 + alike);
        let rhs = Random(40 + alike).vector(size);
        for i in 0..size {
            let row = j * size + i;
            a[row * N + j * size..][..size].copy_from_slice(&block[i * size..][..size]);
            b[j * N + row] = rhs[i];
        }
    }
    (a, b)
}

const ALL: [SolveMethod; 6] = [Cg, Cgnr, Cgne, Bicgstab, Idr, Gcr(12)];

/// Applications of an operator in an iteration.
fn per_iteration(method: SolveMethod) -> usize {
    match method {
        Cgnr | Cgne | Bicgstab => 2,
        Idr => 5,
        _ => 1,
    }
}

fn params(tol: f64) -> SolverParams {
    SolverParams { tol, max_iterations: 4000, ..Default::default() }
}

/// The report is about the caller's right-hand sides, in their order.
fn check_report(a: &[Complex64], space: &Space, b: &[Complex64], x: &[Complex64], info: &Info) {
    assert_eq!(space.nrhs(), NRHS, "the space has its width again");
    for (j, truth) in residuals(a, b, x).into_iter().enumerate() {
        assert!((truth - info.true_residual[j]).abs() <= 1e-13 + 1e-6 * truth, "{j}: {truth:e} {info:?}");
        assert_eq!(info.history[j].len(), info.iterations_per_rhs[j] + 1, "{j}");
    }
}

#[test]
fn finished_right_hand_sides_are_no_longer_computed() {
    let (a, b) = blocks();
    for method in ALL {
        let space = Space::double(N, NRHS);
        let operator = Counting::new(&space, &a);
        let system = Uniform::new(&space, &operator);
        let mut x = space.allocate().unwrap();
        let mut narrowest = NRHS;
        let mut watch = |event: &Iteration<'_>| {
            assert_eq!(event.residuals.len(), NRHS);
            narrowest = narrowest.min(space.nrhs());
            ControlFlow::Continue(())
        };
        let info = solve(method, &system, &b, &mut x, &params(1e-10), &mut watch).unwrap();
        check_report(&a, &space, &b, &x, &info);
        assert_eq!(narrowest, 1, "{method:?}");
        let mut own = info.iterations_per_rhs.clone();
        println!("{method:?}: {own:?}, applications {:?}", operator.counts.borrow());
        for j in 0..NRHS {
            // Applications of its iterations and of checks. One may have to wait for two more, or fill a batch.
            let mut later: Vec<usize> = own.iter().copied().filter(|other| *other > own[j]).collect();
            later.sort_unstable();
            let waits = later.get(1).copied().unwrap_or(*own.iter().max().unwrap());
            let most = per_iteration(method) * (waits + 2 * info.reliable_updates + 4);
            assert!(operator.counts.borrow()[j] <= most, "{method:?} {j}: {most}");
            // What it takes alone.
            let mut alone = vec![Complex64::ZERO; N];
            let one = space.rhs(&b, j).to_vec();
            let single = solve_dense(method, Rounding::Double, &a, &one, &mut alone, &params(1e-10)).unwrap();
            // The updates of others cost the normal equations iterations: their condition number is the square, up to 1.6e7,
            // and rounding alone makes 75 iterations of the 20 that exact arithmetic needs.
            let more = if per_iteration(method) == 1 || method == Bicgstab { 10 } else { 2 };
            assert!(own[j].abs_diff(single.iterations) <= 2 + single.iterations / more, "{method:?} {j}: {single:?}");
            assert!(distance(&alone, space.rhs(&x, j)) < 1e-6, "{method:?} {j}");
        }
        // To the last bit what a batch does that stays as wide as it is.
        let fixed = Counting { movable: false, ..Counting::new(&space, &a) };
        let mut y = space.allocate().unwrap();
        let wide = solve(method, &Uniform::new(&space, &fixed), &b, &mut y, &params(1e-10), &mut ()).unwrap();
        assert_eq!(wide.sloppy_rhs, NRHS * wide.sloppy_applications);
        assert!(x == y && wide.history == info.history && wide.true_residual == info.true_residual, "{method:?}");
        // All applications are in the report, and no more.
        let full = NRHS * info.iterations * per_iteration(method);
        assert!(info.sloppy_rhs < 3 * full / 4, "{method:?}: {} of {full}", info.sloppy_rhs);
        let all = (info.sloppy_rhs + info.precise_rhs) as f64 * operator.flops();
        assert_eq!(info.flops, all, "{method:?}");
        own.sort_unstable();
        // An iteration of IDR(4) is five applications.
        assert!(if method == Idr { 2 } else { 3 } * own[0] < own[NRHS - 1], "{own:?}");
    }
}

#[test]
fn two_precisions_and_dense_matrices() {
    // Each right-hand j lies in an invariant space of its own difficulty, spread over all elements.
    let a = hermitian(N, |i| 10f64.powf(-1.3 * (i as f64) / N as f64), 8);
    let mut b = Random(9).vector(N * NRHS);
    for (j, b) in b.chunks_mut(N).enumerate() {
        // A^k leaves little of the small eigenvalues.
        for _ in 0..[8, 0, 12, 3, 1, 6, 8, 2][j] {
            b.copy_from_slice(&product(&a, b));
        }
    }
    for method in ALL {
        for precision in [Rounding::Single, Rounding::Half, Rounding::Narrow] {
            mixed!(space, operator, small, sloppy, system: N, NRHS, precision, &a);
            let mut x = Random(10).vector(N * NRHS);
            let info = solve(method, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap();
            check_report(&a, &space, &b, &x, &info);
            assert!(info.worst_residual() <= 1e-10 && small.nrhs() == NRHS);
            assert!(info.sloppy_rhs < NRHS * info.sloppy_applications, "{method:?} {precision:?}");
        }
    }
}

#[test]
fn one_that_fails_leaves_the_batch_and_is_named_by_its_own_number() {
    let (a, b) = blocks();
    for method in ALL {
        // Before anybody else has left, and after.
        for at in [2, 25] {
            let space = Space::double(N, NRHS);
            let mut operator = Counting::new(&space, &a);
            operator.nan = Some((3, at));
            let system = Uniform::new(&space, &operator);
            let mut x = space.allocate().unwrap();
            let error = solve(method, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap_err();
            assert!(matches!(error, SolveError::NotANumber { rhs: 3, .. }), "{method:?} {error}");
            let info = error.info().unwrap();
            assert_eq!(info.failed, [3], "{method:?}");
            for (j, truth) in residuals(&a, &b, &x).into_iter().enumerate().filter(|(j, _)| *j != 3) {
                assert!(truth <= 1.001e-10, "{method:?} {j}: {truth:e}");
            }
            // The last M†y of CGNE, made for all, meets the NaN too.
            assert!(method == Cgne || x.iter().all(|v| v.is_finite()), "{method:?}");
            assert!(info.sloppy_rhs < NRHS * info.sloppy_applications && space.nrhs() == NRHS, "{method:?}");
        }
    }
}

#[test]
fn a_preconditioner_becomes_smaller_with_its_batch() {
    let (a, b) = blocks();
    for movable in [true, false] {
        let (space, small) = (Space::double(N, NRHS), Space::new(N, NRHS, Rounding::Single));
        let (operator, inside) = (Dense::new(&space, &a), Counting { movable, ..Counting::new(&small, &a) });
        let system = Uniform::new(&space, &operator);
        let params = MrParams { steps: 4, ..Default::default() };
        let k = Converted::new(&small, MinimumResidual::on_whole(&small, &inside, params).unwrap()).unwrap();
        let (mut x, mut workspace) = (space.allocate().unwrap(), GcrWorkspace::new(&system, 8).unwrap());
        // Twice: the second solve has all of them again.
        for _ in 0..2 {
            inside.counts.borrow_mut().fill(0);
            x.fill(Complex64::ZERO);
            let params = GcrParams { k_max: 8, ..Default::default() };
            let info = gcr(&system, &k, &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
            check_report(&a, &space, &b, &x, &info);
            assert_eq!(small.nrhs(), NRHS);
            let counts = inside.counts.borrow();
            let all = 4 * info.preconditioner.calls;
            assert!(info.worst_residual() <= 1e-10 && *counts.iter().max().unwrap() == all, "{counts:?} {all}");
            let applied = (info.sloppy_rhs + info.precise_rhs + counts.iter().sum::<usize>()) as f64;
            assert_eq!(info.flops, applied * operator.flops());
            if movable {
                assert!(info.sloppy_rhs < NRHS * info.sloppy_applications, "{info:?}");
                assert!(2 * counts[2] < all, "{counts:?}");
            } else {
                assert_eq!(info.sloppy_rhs, NRHS * info.sloppy_applications);
                assert_eq!(*counts, [all; NRHS]);
            }
        }
    }
}

#[test]
fn zero_leaves_at_once() {
    let (a, b) = blocks();
    // Half of them, and so many that five are left, which one of these makes six.
    for (method, gone) in ALL.into_iter().flat_map(|method| [(method, &[0, 2, 3, 5][..]), (method, &[0, 3, 5])]) {
        let mut b = b.clone();
        gone.iter().for_each(|j| b[j * N..(j + 1) * N].fill(Complex64::ZERO));
        let left = (NRHS - gone.len()).next_multiple_of(2);
        let space = Space::double(N, NRHS);
        let operator = Counting::new(&space, &a);
        let system = Uniform::new(&space, &operator);
        let mut x = Random(3).vector(N * NRHS);
        let info = solve(method, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap();
        assert!(info.sloppy_rhs <= left * info.sloppy_applications, "{method:?} {info:?}");
        for j in 0..NRHS {
            let (b, x) = (space.rhs(&b, j), space.rhs(&x, j));
            assert!(if norm(b) == 0.0 { norm(x) == 0.0 } else { residual(&a, b, x) <= 1.001e-10 }, "{method:?} {j}");
        }
        assert_eq!(info.iterations_per_rhs[3], 0);
    }
}

#[test]
fn the_width_comes_back_however_a_solve_ends() {
    let (a, b) = blocks();
    for method in ALL {
        let space = Space::double(N, NRHS);
        let mut operator = Counting::new(&space, &a);
        let mut x = space.allocate().unwrap();
        // Stopped by the observer, at the limit, and by the backend.
        let narrow = Cell::new(usize::MAX);
        let mut stop = |_: &Iteration<'_>| {
            narrow.set(space.nrhs());
            if space.nrhs() <= 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let error = solve(method, &Uniform::new(&space, &operator), &b, &mut x, &params(1e-10), &mut stop).unwrap_err();
        assert!(matches!(error, SolveError::Cancelled { .. }) && narrow.get() <= 2, "{method:?} {error}");
        check_report(&a, &space, &b, &x, error.info().unwrap());
        let easy = error.info().unwrap().iterations_per_rhs[3];
        assert!(error.info().unwrap().true_residual[3] <= 1e-10, "{method:?}");

        operator.counts.borrow_mut().fill(0);
        let more = if method == Idr { 0 } else { 5 };
        operator.fails = Some((4, per_iteration(method) * (easy + more)));
        let error = solve(method, &Uniform::new(&space, &operator), &b, &mut x, &params(1e-13), &mut ()).unwrap_err();
        assert!(matches!(error, SolveError::Backend(Broken)), "{method:?} {error}");
        assert_eq!(space.nrhs(), NRHS, "{method:?}");
    }
    // A workspace that was left in the middle of a batch is as good as new.
    let space = Space::double(N, NRHS);
    let mut operator = Counting::new(&space, &a);
    operator.fails = Some((4, 35));
    let mut workspace = CgWorkspace::new(&Uniform::new(&space, &operator)).unwrap();
    let mut x = space.allocate().unwrap();
    let params = SolverParams::default();
    let error = cg(&Uniform::new(&space, &operator), &b, &mut x, &params, &mut workspace, &mut ());
    assert!(matches!(error, Err(SolveError::Backend(Broken))), "{error:?}");
    operator.fails = None;
    x.fill(Complex64::ZERO);
    let info = cg(&Uniform::new(&space, &operator), &b, &mut x, &params, &mut workspace, &mut ()).unwrap();
    check_report(&a, &space, &b, &x, &info);
    // The limit on iterations.
    x.fill(Complex64::ZERO);
    let params = SolverParams { max_iterations: 30, ..params };
    let error = cg(&Uniform::new(&space, &operator), &b, &mut x, &params, &mut workspace, &mut ()).unwrap_err();
    assert!(matches!(error, SolveError::NoConvergence { iterations: 30, .. }), "{error}");
    check_report(&a, &space, &b, &x, error.info().unwrap());
}

#[test]
fn a_shift_for_each_right_hand_side_keeps_them_in_their_places() {
    let (a, b) = blocks();
    let space = Space::double(N, NRHS);
    let operator = Counting::new(&space, &a);
    let shifts: Vec<_> = (0..NRHS).map(|j| c(0.01 * j as f64, 0.0)).collect();
    let different = Shifted::per_rhs(&space, &operator, &shifts);
    let system = Uniform::new(&space, &different);
    let mut x = space.allocate().unwrap();
    let info = solve(Cg, &system, &b, &mut x, &params(1e-10), &mut ()).unwrap();
    assert_eq!(info.sloppy_rhs, NRHS * info.sloppy_applications);
    // The same shift for all is no hindrance, and holds for whoever is left.
    let same = Shifted::new(&space, &operator, c(0.001, 0.0));
    x.fill(Complex64::ZERO);
    let info = solve(Cg, &Uniform::new(&space, &same), &b, &mut x, &params(1e-10), &mut ()).unwrap();
    assert!(info.sloppy_rhs < NRHS * info.sloppy_applications);
    check_report(&shifted(&a, 0.001), &space, &b, &x, &info);
}

#[test]
fn they_leave_multi_shift_solves_too() {
    let (a, b) = blocks();
    let shifts = [0.3, 0.0, 0.01];
    let params = MultiShiftParams { tolerances: &[1e-10], check: true, ..Default::default() };
    let space = Space::double(N, NRHS);
    let mut workspace = MultiShiftWorkspace::new(&space, shifts.len() + 1).unwrap();
    let mut solve = |operator: &Counting<'_>| {
        let mut x = vec![Random(8).vector(N * NRHS); shifts.len()];
        let mut narrowest = NRHS;
        let mut watch = |event: &Iteration<'_>| {
            assert_eq!(event.residuals.len(), NRHS);
            narrowest = narrowest.min(space.nrhs());
            ControlFlow::Continue(())
        };
        let answer = multishift_cg(&space, operator, &shifts, &b, &mut x, &params, &mut workspace, &mut watch);
        assert_eq!(space.nrhs(), NRHS, "the space has its width again");
        (x, answer, narrowest)
    };
    // To the last bit what a batch does that stays as wide as it is.
    let (x, info, narrowest) = solve(&Counting::new(&space, &a));
    let (y, wide, widest) = solve(&Counting { movable: false, ..Counting::new(&space, &a) });
    let (info, wide) = (info.unwrap(), wide.unwrap());
    assert_eq!((narrowest, widest), (1, NRHS));
    assert!(x == y && info.shifts == wide.shifts && info.whole.history == wide.whole.history);
    assert_eq!(wide.whole.sloppy_rhs, NRHS * wide.whole.sloppy_applications);
    assert!(4 * info.whole.sloppy_rhs < 3 * wide.whole.sloppy_rhs, "{info:?}");
    let mut longest = [0; NRHS];
    for (shift, x) in info.shifts.iter().zip(&x) {
        for (j, truth) in residuals(&shifted(&a, shift.shift), &b, x).into_iter().enumerate() {
            assert!(truth <= 1.01e-10 && (truth - shift.true_residual[j]).abs() <= 1e-13, "{j}: {truth:e}");
            longest[j] = shift.iterations[j].max(longest[j]);
        }
    }
    assert_eq!(info.whole.iterations_per_rhs, longest);
    assert!((0..NRHS).all(|j| info.whole.history[j].len() == longest[j] + 1));
    // One that fails is named by its own number, before anybody has left and after.
    for at in [2, 20] {
        let (x, answer, _) = solve(&Counting { nan: Some((3, at)), ..Counting::new(&space, &a) });
        let error = answer.unwrap_err();
        assert!(matches!(error, SolveError::NotANumber { rhs: 3, .. }), "{error}");
        assert_eq!(error.info().unwrap().failed, [3]);
        for (j, truth) in residuals(&a, &b, &x[1]).into_iter().enumerate().filter(|(j, _)| *j != 3) {
            assert!(truth <= 1.01e-10, "{j}: {truth:e}");
        }
    }
    // And stopped in the middle by the backend it is as good as new.
    let (_, answer, _) = solve(&Counting { fails: Some((4, 35)), ..Counting::new(&space, &a) });
    assert!(matches!(answer, Err(SolveError::Backend(Broken))));
    let (again, answer, _) = solve(&Counting::new(&space, &a));
    assert!(again == x && answer.unwrap() == info);
}
