//! All Krylov methods by their names, with memory of their own in each solve.

use crate::common::{Answer, Broken, Dense, Rounding, Space, mixed, shadow};
use SolveMethod::*;
use num_complex::Complex64;
use solvers::inverter::{Inverter, bicgstab as inner_bicgstab, defect_correcting};
use solvers::*;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SolveMethod {
    Cg,
    Cgnr,
    Cgne,
    Bicgstab,
    /// IDR(4) with vectors of [`shadow`].
    Idr,
    /// GCR with a restart after this number of directions.
    Gcr(usize),
    BlockCg,
    BlockCgnr,
    /// Defect correction around BiCGstab, without reliable updates in either of them.
    Defect,
}

/// Solves from the guess `x`.
pub fn solve<Y: System<Error = Broken>>(
    method: SolveMethod,
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &SolverParams,
    observer: &mut dyn Observer,
) -> Answer
where
    Y::Precise: VectorSpace<Vector = Vec<Complex64>>,
    Y::Sloppy: VectorSpace<Vector = Vec<Complex64>>,
{
    let nrhs = system.sloppy().nrhs();
    match method {
        Cg => cg(system, b, x, params, &mut CgWorkspace::new(system)?, observer),
        Cgnr => cgnr(system, b, x, params, &mut CgNormalWorkspace::new(system)?, observer),
        Cgne => cgne(system, b, x, params, &mut CgNormalWorkspace::new(system)?, observer),
        Bicgstab => bicgstab(system, b, x, params, &mut BicgstabWorkspace::new(system)?, observer),
        Idr => {
            let shadow = shadow(b.len() / nrhs, 4, nrhs);
            idr(system, b, x, params, &mut IdrWorkspace::new(system, shadow)?, observer)
        }
        Gcr(k_max) => {
            let params = GcrParams { k_max, ..(*params).into() };
            gcr(system, &Identity, b, x, &params, &mut GcrWorkspace::new(system, k_max)?, observer)
        }
        BlockCg => block_cg(system, b, x, &(*params).into(), &mut BlockCgWorkspace::new(system)?, observer),
        BlockCgnr => block_cgnr(system, b, x, &(*params).into(), &mut BlockCgNormalWorkspace::new(system)?, observer),
        Defect => {
            let params = SolverParams { delta: None, ..*params };
            defect_correcting(params, inner_bicgstab()).invert(system, b, x, &params, observer)
        }
    }
}

/// Solves a dense system of as many right-hand sides as `b` holds from the guess `x` in double precision, with the iteration in `krylov`.
pub fn solve_dense(
    method: SolveMethod,
    krylov: Rounding,
    a: &[Complex64],
    b: &Vec<Complex64>,
    x: &mut Vec<Complex64>,
    params: &SolverParams,
) -> Answer {
    let n = a.len().isqrt();
    mixed!(space, operator, small, sloppy, system: n, b.len() / n, krylov, a);
    if krylov == Rounding::Double {
        return solve(method, &Uniform::new(&space, &operator), b, x, params, &mut ());
    }
    solve(method, &system, b, x, params, &mut ())
}
