//! CG on the normal equations of the Schur complement, or on an operator that is Hermitian and positive itself.
use super::super::escalation::EscalationError;
use super::Method;
use super::krylov::{KrylovMethod, prepare};
use crate::domain::DeviceError;
use gpu_kernels::{FermionKind, Precision};
use solvers::{CgNormalWorkspace, CgWorkspace, Info, Observer, Precise, SolveError, SolverParams, System, cg, cgnr};

impl Method {
    /// CG on the normal equations of the Schur complement, M†M x = M†b (CGNR); on M†M itself for staggered operators.
    pub const CG: &'static Method = &Method {
        name: "cg",
        titles: ["CG on the normal equations", "CG"],
        help: "on the normal equations",
        kinds: &[FermionKind::Wilson, FermionKind::Staggered],
        is_normal: true,
        vectors: |_| 4,
        prepare: prepare::<Cg>(),
        ..Method::KRYLOV
    };
}

#[derive(Default)]
struct Cg;
impl KrylovMethod for Cg {
    fn solve<Y: System<Error = DeviceError>>(
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        (positive, _): (bool, Precision),
        observer: &mut dyn Observer,
    ) -> Result<Info, EscalationError> {
        if positive {
            let mut workspace = CgWorkspace::new(system).map_err(SolveError::Backend)?;
            return cg(system, b, x, params, &mut workspace, observer);
        }
        let mut workspace = CgNormalWorkspace::new(system).map_err(SolveError::Backend)?;
        cgnr(system, b, x, params, &mut workspace, observer)
    }
}
