//! Solves by GCR.

use crate::common::{Answer, Broken, Dense, Space, uniform};
use num_complex::Complex64;
use solvers::*;
use std::ops::ControlFlow;

pub const WAYS: [Orthogonalisation; 3] =
    [Orthogonalisation::Classical, Orthogonalisation::ClassicalTwice, Orthogonalisation::Modified];

/// Kind and residual of every iterate, as an observer saw them.
pub type Course = Vec<(IterationKind, f64)>;

pub fn solve<Y, K>(system: &Y, k: &K, b: &Precise<Y>, x: &mut Precise<Y>, params: &GcrParams) -> Answer
where
    Y: System<Error = Broken>,
    K: Preconditioner<Y::Sloppy> + ?Sized,
{
    gcr(system, k, b, x, params, &mut GcrWorkspace::new(system, params.k_max)?, &mut ())
}

pub fn gcr_params(k_max: usize, tol: f64) -> GcrParams {
    GcrParams { k_max, ..SolverParams { tol, ..Default::default() }.into() }
}

/// Solves in double precision from zero. The right-hand sides are as many as `b` holds.
pub fn solve_double(a: &[Complex64], b: &Vec<Complex64>, params: &GcrParams) -> (Vec<Complex64>, Info, Course) {
    let n = a.len().isqrt();
    uniform!(space, operator, system: Space::double(n, b.len() / n), a);
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
