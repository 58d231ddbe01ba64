//! Block CG.
use super::super::escalation::EscalationError;
use super::Method;
use super::krylov::{KrylovMethod, prepare};
use crate::domain::DeviceError;
use gpu_kernels::{FermionKind, Precision};
use solvers::{
    BlockCgNormalWorkspace, BlockCgParams, BlockCgWorkspace, Info, Observer, Precise, SolveError, SolverParams, System,
    block_cg, block_cgnr,
};

impl Method {
    /// Block CG, all right-hand sides of a batch in one Krylov space (Dubrulle 2001, BCGrQ), on the normal equations of
    /// the Schur complement; on M†M itself for staggered operators. With one right-hand side it is [`Method::CG`].
    pub const BLOCK_CG: &'static Method = &Method {
        name: "block-cg",
        titles: ["block CG on the normal equations", "block CG"],
        help: "CG with all sources of a batch in one Krylov space",
        kinds: &[FermionKind::Wilson, FermionKind::Staggered],
        is_normal: true,
        is_block: true,
        // One of them is scratch.
        vectors: |_| 5,
        prepare: prepare::<BlockCg>(),
        ..Method::KRYLOV
    };
}

/// The square of the sine of an angle at which a residual counts as dependent on the others: of an iteration in
/// double precision, and of others. Far above the rounding of vectors in 16 bits, squared.
const DEPENDENT: [f64; 2] = [1e-12, 1e-6];

#[derive(Default)]
struct BlockCg;
impl KrylovMethod for BlockCg {
    fn solve<Y: System<Error = DeviceError>>(
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        (positive, precision): (bool, Precision),
        observer: &mut dyn Observer,
    ) -> Result<Info, EscalationError> {
        let dependent = Some(DEPENDENT[usize::from(precision != Precision::Double)]);
        let params = BlockCgParams { solver: *params, dependent };
        if positive {
            let mut workspace = BlockCgWorkspace::new(system).map_err(SolveError::Backend)?;
            return block_cg(system, b, x, &params, &mut workspace, observer);
        }
        let mut workspace = BlockCgNormalWorkspace::new(system).map_err(SolveError::Backend)?;
        block_cgnr(system, b, x, &params, &mut workspace, observer)
    }
}
