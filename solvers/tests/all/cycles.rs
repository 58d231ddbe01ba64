//! Solves by GCR, and what every one of them has to satisfy.

use crate::common::{Broken, Dense, Space, norm, residual};
use num_complex::Complex64;
use solvers::*;
use std::ops::ControlFlow;

pub type Answer = Result<Info, SolveError<Broken>>;

/// Kind and residual of every iterate, as an observer saw them.
pub type Course = Vec<(IterationKind, f64)>;

pub fn solve<Y, K>(system: &Y, k: &K, b: &Precise<Y>, x: &mut Precise<Y>, params: &GcrParams) -> Answer
where
    Y: System<Error = Broken>,
    K: Preconditioner<Y::Sloppy> + ?Sized,
{
    gcr(system, k, b, x, params, &mut GcrWorkspace::new(system, params.k_max)?, &mut ())
}

/// Solves in double precision from zero. The right-hand sides are as many as `b` holds.
pub fn solve_double(a: &[Complex64], b: &Vec<Complex64>, params: &GcrParams) -> (Vec<Complex64>, Info, Course) {
    let n = a.len().isqrt();
    let space = Space::double(n, b.len() / n);
    let operator = Dense::new(&space, a);
    let system = Uniform::new(&space, &operator);
    let mut x = space.allocate().unwrap();
    let mut course = Course::new();
    let mut watch = |event: &Iteration<'_>| {
        course.push((event.kind, event.worst()));
        ControlFlow::Continue(())
    };
    let mut workspace = GcrWorkspace::new(&system, params.k_max).unwrap();
    let info = gcr(&system, &Identity, b, &mut x, params, &mut workspace, &mut watch).unwrap();
    (x, info, course)
}

/// Whatever is claimed has to be so; claims and the independent residual agree up to rounding.
pub fn check_claims(a: &[Complex64], b: &[Complex64], x: &[Complex64], info: &Info, tol: f64) {
    let n = a.len().isqrt();
    for (j, (b, x)) in b.chunks(n).zip(x.chunks(n)).enumerate() {
        if norm(b) == 0.0 {
            assert_eq!(norm(x), 0.0);
            continue;
        }
        let truth = residual(a, b, x);
        let rounding = 1e-13 * (1.0 + norm(x) / norm(b));
        assert!((truth - info.true_residual[j]).abs() <= rounding, "{truth:e} {:e}", info.true_residual[j]);
        if info.converged {
            assert!(truth <= tol + rounding, "claimed {tol:e}, is {truth:e}");
        }
    }
}
