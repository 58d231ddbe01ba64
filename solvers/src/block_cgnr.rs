//! Block CG on the normal equations, for operators that are not positive.

use crate::block_cg::{BlockCgParams, BlockCgWorkspace, block_cg_on};
use crate::compact::Rhs;
use crate::error::SolveError;
use crate::info::Info;
use crate::normal::{NormalMemory, NormalParts};
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::reliable::Criterion;
use crate::traits::VectorSpace;

/// Memory of [`block_cgnr`]: that of [`block_cg`](crate::block_cg()), three more precise blocks and one more sloppy block.
pub struct BlockCgNormalWorkspace<P: VectorSpace, S: VectorSpace> {
    block: BlockCgWorkspace<P, S>,
    normal: NormalMemory<P, S>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> BlockCgNormalWorkspace<P, S> {
    /// Allocates the workspace for `system`. Any system on the same spaces can use it.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        Ok(Self { block: BlockCgWorkspace::new(system)?, normal: NormalMemory::new(system)? })
    }
}

/// Solves M x_j = b_j for a general M by [`block_cg`](crate::block_cg()) on the normal equations, M†M x = M†b.
///
/// [`block_cgnr`] relates to [`cgnr`](crate::cgnr()) as block CG does to [`cg`](crate::cg()): x_j minimises ‖b_j − M x_j‖
/// over the sum of the Krylov spaces of all right-hand sides. The tolerance is that of the original system, ‖b_j − M x_j‖ ≤ ε
/// ‖b_j‖, computed with the precise M. [`Info::history`] and the observer show the residual of the normal equations.
/// Applications of M and M† count one each.
///
/// # Errors
/// The errors of [`block_cg`](crate::block_cg()). A singular M ends in `Stagnation` or `NotPositiveDefinite`.
pub fn block_cgnr<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &BlockCgParams,
    workspace: &mut BlockCgNormalWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let BlockCgNormalWorkspace { block, normal } = workspace;
    // Solves M†M x = M†b until ‖b − M x‖ is small enough.
    let NormalParts { system, rhs, norms, mut check } = normal.normal_equations(system, b, None)?;
    let criterion = Criterion { reference: None, check: Some((norms, &mut check)) };
    let result = block_cg_on(&system, Rhs::Own(rhs), x, params, block, observer, criterion);
    check.report(result, params.solver.tol)
}
