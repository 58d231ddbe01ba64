//! CG for the error.
use super::super::escalation::EscalationError;
use super::Method;
use super::krylov::{KrylovMethod, prepare};
use crate::domain::DeviceError;
use gpu_kernels::Precision;
use solvers::{CgNormalWorkspace, Info, Observer, Precise, SolveError, SolverParams, System, cgne};

impl Method {
    /// CG for the error, M M† y = b with x = M†y (CGNE).
    pub const CGNE: &'static Method = &Method {
        name: "cgne",
        titles: ["CG for the error (M M^+)"; 2],
        help: "x = M^+ y, M M^+ y = b",
        is_normal: true,
        vectors: |_| 4,
        prepare: prepare::<Cgne>(),
        ..Method::KRYLOV
    };
}

#[derive(Default)]
struct Cgne;
impl KrylovMethod for Cgne {
    fn solve<Y: System<Error = DeviceError>>(
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        _: (bool, Precision),
        observer: &mut dyn Observer,
    ) -> Result<Info, EscalationError> {
        let mut workspace = CgNormalWorkspace::new(system).map_err(SolveError::Backend)?;
        cgne(system, b, x, params, &mut workspace, observer)
    }
}
