//! Answers: against a direct solve, in one and two precisions, for one and several right-hand sides.

use crate::common::{
    Broken, Dense, I, Random, Rounding, Space, c, direct, distance, general, norm, positive, residual,
};
use num_complex::Complex64;
use solvers::*;

type Answer = Result<Info, SolveError<Broken>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum SolveMethod {
    Cg,
    Cgnr,
    Cgne,
    Bicgstab,
    Idr,
    /// Defect correction around BiCGstab.
    Defect,
}
use SolveMethod::*;

const ALL: [SolveMethod; 6] = [Cg, Cgnr, Cgne, Bicgstab, Idr, Defect];

#[derive(Clone, Copy)]
struct SolveLimits {
    tol: f64,
    delta: Option<f64>,
    max_iterations: usize,
}

const USUAL: SolveLimits = SolveLimits { tol: 1e-10, delta: None, max_iterations: 5000 };

fn solve<Y: System<Error = Broken>>(
    method: SolveMethod,
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    o: SolveLimits,
) -> Answer
where
    Y::Sloppy: VectorSpace<Vector = Vec<Complex64>>,
    Y::Precise: VectorSpace<Vector = Vec<Complex64>>,
{
    let params = SolverParams { tol: o.tol, delta: o.delta, max_iterations: o.max_iterations, ..Default::default() };
    match method {
        Cg => cg(system, b, x, &params, &mut CgWorkspace::new(system)?, &mut ()),
        Cgnr => cgnr(system, b, x, &params, &mut CgNormalWorkspace::new(system)?, &mut ()),
        Cgne => cgne(system, b, x, &params, &mut CgNormalWorkspace::new(system)?, &mut ()),
        Bicgstab => bicgstab(system, b, x, &params, &mut BicgstabWorkspace::new(system)?, &mut ()),
        Idr => idr(system, b, x, &params, &mut IdrWorkspace::new(system, shadow(system.sloppy().nrhs()))?, &mut ()),
        Defect => {
            let inner_system = Inner(system);
            let mut inner = BicgstabWorkspace::new(&inner_system)?;
            // There are no reliable updates in either of the solvers.
            let params = SolverParams { delta: None, ..params };
            let solver = |r: &Vec<Complex64>, e: &mut Vec<Complex64>, inner_params: &SolverParams| {
                bicgstab(&inner_system, r, e, inner_params, &mut inner, &mut ())
            };
            defect_correction(system, b, x, &params.into(), &mut DefectWorkspace::new(system)?, solver, &mut ())
        }
    }
}

/// The sloppy half of a system as an operator and a system of its own.
struct Inner<'a, Y>(&'a Y);

impl<Y: System> System for Inner<'_, Y> {
    type Error = Y::Error;
    type Precise = Y::Sloppy;
    type Sloppy = Y::Sloppy;
    fn is_mixed(&self) -> bool {
        false
    }
    fn precise(&self) -> &Y::Sloppy {
        self.0.sloppy()
    }
    fn sloppy(&self) -> &Y::Sloppy {
        self.0.sloppy()
    }
    fn apply(&self, x: &Sloppy<Y>, out: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.0.apply_sloppy(x, out)
    }
    fn apply_dagger(&self, x: &Sloppy<Y>, out: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.0.apply_dagger_sloppy(x, out)
    }
    fn apply_sloppy(&self, x: &Sloppy<Y>, out: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.0.apply_sloppy(x, out)
    }
    fn apply_dagger_sloppy(&self, x: &Sloppy<Y>, out: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.0.apply_dagger_sloppy(x, out)
    }
    fn demote(&self, scale: &[f64], from: &Sloppy<Y>, to: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        let (scale, zeros): (Vec<_>, Vec<_>) = scale.iter().map(|s| (Complex64::from(s), Complex64::ZERO)).unzip();
        self.0.sloppy().axpby(&scale, from, &zeros, to)
    }
    fn accumulate(&self, scale: &[f64], from: &Sloppy<Y>, to: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        let scale: Vec<_> = scale.iter().map(Complex64::from).collect();
        self.0.sloppy().axpy(&scale, from, to)
    }
    fn flops(&self) -> f64 {
        self.0.flops_sloppy()
    }
    fn flops_sloppy(&self) -> f64 {
        self.0.flops_sloppy()
    }
}

/// Large enough for iterations to end before the dimension of the space does it for them.
const N: usize = 160;

/// The shadow vectors of IDR(4), the same for all right-hand sides.
fn shadow(nrhs: usize) -> Vec<Vec<Complex64>> {
    (0..4).map(|i| Random(90 + i).vector(N).repeat(nrhs)).collect()
}

fn matrix(method: SolveMethod) -> Vec<Complex64> {
    if method == Cg { positive(N, 100.0, 5) } else { general(N, 0.6, 6) }
}

/// Whatever is claimed has to be so; claims and the independent residual agree up to rounding.
fn check_claims(a: &[Complex64], space: &Space, b: &[Complex64], x: &[Complex64], info: &Info, tol: f64) {
    for j in 0..space.nrhs {
        let (bj, xj) = (space.rhs(b, j), space.rhs(x, j));
        if norm(bj) == 0.0 {
            assert_eq!(norm(xj), 0.0);
            continue;
        }
        let truth = residual(a, bj, xj);
        let rounding = 1e-13 * (1.0 + norm(xj) / norm(bj));
        assert!((truth - info.true_residual[j]).abs() <= rounding, "{truth:e} {:e}", info.true_residual[j]);
        if info.converged {
            assert!(truth <= tol + rounding, "claimed {tol:e}, is {truth:e}");
        }
    }
}

#[test]
fn solutions_agree_with_elimination() {
    for method in ALL {
        let a = matrix(method);
        let space = Space::double(N, 1);
        let operator = Dense::new(&space, &a);
        let system = Uniform::new(&space, &operator);
        let b = Random(1).vector(N);
        let mut x = space.allocate().unwrap();
        let info = solve(method, &system, &b, &mut x, SolveLimits { tol: 1e-12, ..USUAL }).unwrap();
        assert!(info.converged && info.true_residual[0] <= 1e-12, "{method:?}");
        check_claims(&a, &space, &b, &x, &info, 1e-12);
        assert!(distance(&x, &direct(&a, &b)) < 1e-9, "{method:?}");
    }
}

#[test]
fn two_precisions_reach_double_precision_in_about_as_many_iterations() {
    for method in ALL {
        let a = matrix(method);
        let space = Space::double(N, 1);
        let operator = Dense::new(&space, &a);
        let b = Random(2).vector(N);
        let uniform = Uniform::new(&space, &operator);
        let mut x = space.allocate().unwrap();
        let plain = solve(method, &uniform, &b, &mut x, SolveLimits { tol: 1e-12, ..USUAL }).unwrap();
        for precision in [Rounding::Single, Rounding::Half, Rounding::Narrow] {
            let small = Space::new(N, 1, precision);
            let sloppy = Dense::new(&small, &a);
            let system = Mixed::new(&space, &operator, &small, &sloppy);
            x.fill(Complex64::ZERO);
            let info = solve(method, &system, &b, &mut x, SolveLimits { tol: 1e-12, ..USUAL }).unwrap();
            check_claims(&a, &space, &b, &x, &info, 1e-12);
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
        let space = Space::double(N, 2);
        let operator = Dense::new(&space, &a);
        let small = Space::new(N, 2, Rounding::Narrow);
        let sloppy = Dense::new(&small, &a);
        let system = Mixed::new(&space, &operator, &small, &sloppy);
        let mut b = Random(2).vector(2 * N);
        let mut x = space.allocate().unwrap();
        let middle = solve(method, &system, &b, &mut x, USUAL).unwrap();
        // Powers of two: the same numbers enter the iteration, and the same answer comes out.
        let solution = x.clone();
        let factors = [2f64.powi(60), 2f64.powi(-60)];
        b.iter_mut().enumerate().for_each(|(i, b)| *b *= factors[i / N]);
        x.fill(Complex64::ZERO);
        let info = solve(method, &system, &b, &mut x, USUAL).unwrap();
        check_claims(&a, &space, &b, &x, &info, USUAL.tol);
        assert_eq!(info.iterations, middle.iterations, "{method:?}");
        assert!((0..2 * N).all(|i| x[i] == solution[i] * factors[i / N]), "{method:?}");
    }
}

#[test]
fn delta_zero_and_one_precision_is_the_plain_method() {
    for method in [Cg, Bicgstab, Idr] {
        let a = matrix(method);
        let space = Space::double(N, 1);
        let operator = Dense::new(&space, &a);
        let system = Uniform::new(&space, &operator);
        let b = Random(3).vector(N);
        let mut x = space.allocate().unwrap();
        let info = solve(method, &system, &b, &mut x, USUAL).unwrap();
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
        let asked = solve(method, &system, &b, &mut x, SolveLimits { delta: Some(0.1), ..USUAL }).unwrap();
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
                let space = Space::double(N, nrhs);
                let operator = Dense::new(&space, &a);
                let small = Space::new(N, nrhs, precision);
                let sloppy = Dense::new(&small, &a);
                let mut x = space.allocate().unwrap();
                let info = if precision == Rounding::Double {
                    solve(method, &Uniform::new(&space, &operator), b, &mut x, USUAL).unwrap()
                } else {
                    solve(method, &Mixed::new(&space, &operator, &small, &sloppy), b, &mut x, USUAL).unwrap()
                };
                check_claims(&a, &space, b, &x, &info, USUAL.tol);
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
        let space = Space::double(N, 2);
        let operator = Dense::new(&space, &a);
        let system = Uniform::new(&space, &operator);
        let b = space.allocate().unwrap();
        let mut x = Random(7).vector(2 * N);
        x[3] = c(f64::NAN, 0.0); // the guess is of no interest
        let info = solve(method, &system, &b, &mut x, USUAL).unwrap();
        assert!(info.converged && info.iterations == 0 && norm(&x) == 0.0, "{method:?}");
        assert_eq!(info.true_residual, [0.0, 0.0]);
    }
}

#[test]
fn initial_guesses_are_used() {
    for method in ALL {
        let a = matrix(method);
        let space = Space::double(N, 1);
        let operator = Dense::new(&space, &a);
        let system = Uniform::new(&space, &operator);
        let b = Random(8).vector(N);
        let exact = direct(&a, &b);
        let mut x = exact.clone();
        let info = solve(method, &system, &b, &mut x, USUAL).unwrap();
        assert_eq!(info.iterations, 0, "{method:?}");
        assert_eq!(x, exact);

        let mut far = space.allocate().unwrap();
        let from_zero = solve(method, &system, &b, &mut far, USUAL).unwrap();
        let mut near: Vec<_> = exact.iter().zip(Random(9).vector(N)).map(|(x, e)| x + 1e-6 * e).collect();
        let from_near = solve(method, &system, &b, &mut near, USUAL).unwrap();
        assert!(from_near.iterations < from_zero.iterations, "{method:?}");
        check_claims(&a, &space, &b, &near, &from_near, USUAL.tol);
    }
}

#[test]
fn ill_conditioned_systems_end_truly_or_with_an_error() {
    const N: usize = 48;
    let a = positive(N, 1e8, 11);
    for method in ALL {
        for precision in [Rounding::Double, Rounding::Single, Rounding::Half, Rounding::Narrow] {
            for tol in [1e-6, 1e-10] {
                let space = Space::double(N, 1);
                let operator = Dense::new(&space, &a);
                let small = Space::new(N, 1, precision);
                let sloppy = Dense::new(&small, &a);
                let b = Random(12).vector(N);
                let mut x = space.allocate().unwrap();
                let max_iterations = if precision == Rounding::Narrow { 2_000 } else { 20_000 };
                let o = SolveLimits { tol, max_iterations, ..USUAL };
                let answer = if precision == Rounding::Double {
                    solve(method, &Uniform::new(&space, &operator), &b, &mut x, o)
                } else {
                    solve(method, &Mixed::new(&space, &operator, &small, &sloppy), &b, &mut x, o)
                };
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
    let space = Space::double(N, 1);
    let operator = Dense::new(&space, &a);
    let small = Space::new(N, 1, Rounding::Single);
    let sloppy = Dense::new(&small, &a);
    let system = Mixed::new(&space, &operator, &small, &sloppy);
    let mut cg_space = CgWorkspace::new(&system).unwrap();
    let mut normal_space = CgNormalWorkspace::new(&system).unwrap();
    let mut bicgstab_space = BicgstabWorkspace::new(&system).unwrap();
    let mut idr_space = IdrWorkspace::new(&system, shadow(1)).unwrap();
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
