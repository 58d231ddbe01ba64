//! The multigrid cycle, for blocks of right-hand sides.
use super::coarse::{CoarseOperator, CoarseSchur};
use super::null_space::NullSpace;
use super::params::CycleParams;
use super::transfer::{EvenTransfer, FineDiagonal};
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceField, FieldShape, FieldSpace};
use crate::operators::{DiagonalForm, EvenOddWilson, Schur};
use solvers::{
    CaGcr, CaGcrParams, Converted, InnerGcr, LevelReport, MinimumResidual, MrParams, Preconditioner, SolveError,
    TransferOperator,
};
use std::cell::RefCell;

/// One coarsening step: the near-null vectors of a level, and the operator on the next coarser level.
pub struct Coarsening {
    /// Near-null vectors, which define prolongation P and restriction R.
    pub space: NullSpace,
    /// Operator on the coarser level.
    pub operator: CoarseOperator,
}

/// Number of directions of GCR around a cycle. GCR takes two or three dozen iterations in total.
pub(crate) const OUTER_DIRECTIONS: usize = 8;
/// δ of GCR around a cycle in single precision. The residual falls by two thirds in an iteration, and restarts lose directions.
pub(crate) const OUTER_DELTA: f64 = 1e-3;

/// Result of work that can fail in a solver or in the construction of a solver.
pub type CycleResult<T = ()> = std::result::Result<T, SolveError<DeviceError>>;

/// Operators of the finest level, for blocks of right-hand sides.
#[derive(Clone, Copy)]
pub struct Finest<'a> {
    /// Operator in single precision.
    pub operator: &'a EvenOddWilson,
    /// Operator of the smoother, in the smoother's precision.
    pub smoother: &'a EvenOddWilson,
}

struct WilsonDiagonal<'a>(&'a EvenOddWilson);
impl FineDiagonal for WilsonDiagonal<'_> {
    fn apply(&self, r: &DeviceField, out: &mut DeviceField, _: usize) -> Option<Result> {
        let form = DiagonalForm { parity: 0, inverse: false, dagger: false };
        (self.0.complement() == Schur::Symmetric).then(|| self.0.apply_diagonal(form, r, out))
    }
}
struct CoarseDiagonal<'a>(&'a CoarseOperator);
impl FineDiagonal for CoarseDiagonal<'_> {
    fn apply(&self, r: &DeviceField, out: &mut DeviceField, nrhs: usize) -> Option<Result> {
        Some(self.0.apply_diagonal(false, 0, r, out, nrhs))
    }
}

impl<D: FineDiagonal> TransferOperator<FieldSpace, FieldSpace> for EvenTransfer<'_, D> {
    fn restrict(&self, fine: &DeviceField, coarse: &mut DeviceField) -> Result {
        EvenTransfer::restrict(self, fine, coarse)
    }
    fn prolong(&self, coarse: &DeviceField, fine: &mut DeviceField) -> Result {
        EvenTransfer::prolong(self, coarse, fine)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        EvenTransfer::narrow(self, nrhs)
    }
}

/// Makes the multigrid cycle of all levels for blocks of `nrhs` right-hand sides, and passes it to `then`. Appends the work of each level
/// to `reports`, the finest level first.
///
/// # Errors
/// Errors of `then`; too little memory.
pub fn with_cycle(
    finest: Finest<'_>,
    levels: &[Coarsening],
    params: &CycleParams,
    nrhs: usize,
    reports: &RefCell<Vec<LevelReport>>,
    then: &mut dyn FnMut(&dyn Preconditioner<FieldSpace>) -> CycleResult,
) -> CycleResult {
    let [first, below @ ..] = levels else { return Err(SolveError::Invalid("multigrid needs at least two levels")) };
    let space = first.space.fine().space(nrhs);
    let narrow =
        FieldSpace::new(first.space.fine().domain(), FieldShape::spinors(finest.smoother.wilson().precision(), nrhs));
    with_coarse(&first.operator, below, params, nrhs, reports, &mut |coarse| {
        let smoother = |steps: usize| -> CycleResult<_> {
            let params = MrParams { steps, omega: params.omega };
            Ok(Converted::new(
                &narrow,
                MinimumResidual::on_whole(&narrow, finest.smoother, params)?.with_fixed_steps(),
            )?)
        };
        let pre = (params.pre_smoothing > 0).then(|| smoother(params.pre_smoothing)).transpose()?;
        let coarse_space = first.space.coarse().space(nrhs);
        let transfer = EvenTransfer::new(&first.space, &first.operator, WilsonDiagonal(finest.operator), nrhs)?;
        let post = smoother(params.post_smoothing)?;
        let level = solvers::Level::new(&space, finest.operator, post, transfer, &coarse_space, coarse)?;
        let level = match pre {
            Some(pre) => level.with_pre_smoother(pre),
            None => level,
        };
        let done = then(&level);
        reports.borrow_mut().push(level.report());
        done
    })
}

/// Passes the solver of a coarse level to `then`, for blocks of `nrhs` right-hand sides, and adds the work of each level to `reports`.
fn with_coarse(
    operator: &CoarseOperator,
    below: &[Coarsening],
    params: &CycleParams,
    nrhs: usize,
    reports: &RefCell<Vec<LevelReport>>,
    then: &mut dyn FnMut(&dyn Preconditioner<FieldSpace>) -> CycleResult,
) -> CycleResult {
    let space = operator.level().space(nrhs);
    let schur = CoarseSchur::new(operator, nrhs)?;
    let [first, rest @ ..] = below else {
        let solver = CaGcr::new(&space, &schur, params.coarsest)?;
        let done = then(&solver);
        reports.borrow_mut().push(solver.report());
        return done;
    };
    with_coarse(&first.operator, rest, params, nrhs, reports, &mut |coarse| {
        // One cycle of communication-avoiding GCR equals `basis` steps of GCR, but waits for the device only once.
        let smoother = |basis: usize| CaGcr::new(&space, &schur, CaGcrParams { basis, max_cycles: 1, tol: 0.5 });
        let coarse_space = first.space.coarse().space(nrhs);
        let transfer = EvenTransfer::new(&first.space, &first.operator, CoarseDiagonal(operator), nrhs)?;
        let post = smoother(params.coarse_smoothing)?;
        let level = solvers::Level::new(&space, &schur, post, transfer, &coarse_space, coarse)?;
        let solver = InnerGcr::new(&space, &schur, level, params.inner_for(nrhs))?;
        let done = then(&solver);
        reports.borrow_mut().push(solver.report());
        done
    })
}
