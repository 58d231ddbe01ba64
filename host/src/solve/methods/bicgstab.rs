//! BiCGstab on the Schur complement.
use super::super::escalation::EscalationError;
use super::Method;
use super::krylov::{KrylovMethod, prepare};
use crate::domain::DeviceError;
use gpu_kernels::Precision;
use solvers::{BicgstabWorkspace, Info, Observer, Patience, Precise, SolveError, SolverParams, System, bicgstab};

impl Method {
    /// BiCGstab on the Schur complement.
    pub const BICGSTAB: &'static Method = &Method {
        name: "bicgstab",
        titles: ["BiCGstab"; 2],
        patience: Some(patience),
        vectors: |_| 6,
        prepare: prepare::<Bicgstab>(),
        ..Method::KRYLOV
    };
}

/// Solves at small masses on large lattices have plateaus by nature, exceptional configurations are those of small lattices;
/// docs/measurements/solver-stagnation.md has what the numbers are chosen by.
fn patience(sites: usize) -> Patience {
    let size = (sites as f64 / 4096.0).sqrt().max(1.0);
    Patience { least: (150.0 * size) as usize, share: 0.5 }
}

#[derive(Default)]
struct Bicgstab;
impl KrylovMethod for Bicgstab {
    fn solve<Y: System<Error = DeviceError>>(
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        _: (bool, Precision),
        observer: &mut dyn Observer,
    ) -> Result<Info, EscalationError> {
        let mut workspace = BicgstabWorkspace::new(system).map_err(SolveError::Backend)?;
        bicgstab(system, b, x, params, &mut workspace, observer)
    }
}
