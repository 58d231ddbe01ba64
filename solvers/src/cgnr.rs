//! CGNR: conjugate gradients on the normal equations, for operators that are not positive.

use crate::cg::{CgMemory, cg_on};
use crate::compact::{Rhs, copy_of_rhs};
use crate::error::SolveError;
use crate::info::Info;
use crate::normal::{NormalMemory, NormalParts};
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::params::SolverParams;
use crate::reliable::Criterion;
use crate::traits::VectorSpace;

/// Memory of [`cgnr`] and [`cgne`](crate::cgne()): that of [`cg`](crate::cg()), three more precise blocks and one more sloppy
/// block.
pub struct CgNormalWorkspace<P: VectorSpace, S: VectorSpace> {
    pub(crate) cg: CgMemory<P, S>,
    pub(crate) normal: NormalMemory<P, S>,
    /// Copy of b for [`cgnr`]; the right-hand side of the normal equations belongs to the solver.
    copy: Option<P::Vector>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> CgNormalWorkspace<P, S> {
    /// Allocates the workspace for `system`. Any system on the same spaces can use it.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        Ok(Self { cg: CgMemory::new(system)?, normal: NormalMemory::new(system)?, copy: copy_of_rhs(system)? })
    }
}

/// Solves M x_j = b_j for a general M by conjugate gradients on the normal equations, M†M x = M†b.
///
/// The tolerance is that of the original system: the solve ends when ‖b_j − M x_j‖ ≤ ε ‖b_j‖, computed with the precise M.
/// The iteration computes only ‖M†(b − M x)‖. Its target starts at ε ‖M†b‖ and is lowered, without losing the search
/// directions, until the original residual is small enough. `Info::history` and the observer show the residual of the normal
/// equations, `Info::true_residual` that of the original system. Applications of M and M† count one each.
///
/// x minimises ‖b − M x‖ over the Krylov space. A singular M ends in `Stagnation` (or `NotPositiveDefinite`) with the
/// least-squares solution in x.
///
/// # Errors
/// The errors of [`cg`](crate::cg()).
pub fn cgnr<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &SolverParams,
    workspace: &mut CgNormalWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let CgNormalWorkspace { cg, normal, copy } = workspace;
    // Solves M†M x = M†b until ‖b − M x‖ is small enough.
    let NormalParts { system, rhs, norms, mut check } = normal.normal_equations(system, b, copy.as_mut())?;
    let criterion = Criterion { reference: None, check: Some((norms, &mut check)) };
    let result = cg_on(&system, Rhs::Own(rhs), x, params, cg, observer, criterion);
    check.report(result, params.tol)
}
