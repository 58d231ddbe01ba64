//! Interface through which methods get an operator in every format that a solve may need.
use super::schwarz::Schwarz;
use crate::domain::{Domain, Result};
use crate::field::{FieldShape, FieldSpace};
use crate::multigrid::{AdjointCycle, CycleResult, MakeOperator, Multigrid, MultigridParams};
use crate::operators::{EvenOdd, EvenOddWilson};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{LevelReport, Observer, Preconditioner};
use std::cell::RefCell;
use std::rc::Rc;

/// Preconditioner of any type.
pub(crate) type AnyPreconditioner = Box<dyn Preconditioner<FieldSpace>>;

/// An operator in every format that a solve may need.
pub(crate) trait Formats {
    /// Returns the domain on which the operator is stored.
    fn domain(&self) -> &Domain;
    /// Returns the shape of the operator's fields.
    fn shape(&self, precision: Precision, nrhs: usize) -> FieldShape;
    /// Returns the operator in double precision, on links with all reals.
    fn exact(&self) -> Rc<dyn EvenOdd>;
    /// Returns the operator in a format.
    fn any(&self, precision: Precision, reconstruction: LinkStorage) -> Result<Rc<dyn EvenOdd>>;
    /// Whether this build has kernels for a format.
    fn has(&self, precision: Precision, reconstruction: LinkStorage) -> bool;
    /// Returns the Schwarz preconditioner with links in this storage, if the operator has one.
    fn preconditioner(&self, _: &Schwarz, _: LinkStorage) -> Result<Option<AnyPreconditioner>> {
        Ok(None)
    }
    /// Returns multigrid for blocks of right-hand sides, if the operator supports it. Its operators have links in this storage. The
    /// observer receives the steps of its setup.
    fn multigrid(
        &self,
        _: &MultigridParams,
        _: LinkStorage,
        _: &mut dyn Observer,
    ) -> CycleResult<Option<BlockMultigrid>> {
        Ok(None)
    }
    /// *Collective.* Returns whether multigrid is possible, and which parts of it exist already.
    fn multigrid_state(&self, _: &MultigridParams) -> Result<MultigridState> {
        Ok(MultigridState::Impossible)
    }
    /// Frees the links from which formats are made. They are uploaded again when needed.
    fn release_device_links(&self);
}

/// State of multigrid for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MultigridState {
    /// Multigrid does not suit the operator, the lattice or the memory.
    Impossible,
    /// Nothing is set up yet.
    Possible,
    /// Near-null vectors of the operator with another mass exist.
    OtherMass,
    /// The setup exists.
    Ready,
}

/// Multigrid with the operators of the finest level, for blocks of right-hand sides.
pub(crate) struct BlockMultigrid {
    multigrid: Rc<Multigrid>,
    operator: EvenOddWilson,
    smoother: EvenOddWilson,
    nrhs: usize,
    reports: RefCell<Vec<LevelReport>>,
}

impl BlockMultigrid {
    /// Combines a multigrid setup with the operators of its finest level, made by `make`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn new(
        multigrid: Rc<Multigrid>,
        params: &MultigridParams,
        make: &MakeOperator<'_>,
        domain: &Domain,
        nrhs: usize,
    ) -> Result<Self> {
        let (operator, smoother) = (make(Precision::Single, nrhs)?, make(params.smoother_on(domain.backend()), nrhs)?);
        Ok(BlockMultigrid { multigrid, operator, smoother, nrhs, reports: RefCell::default() })
    }
    /// Returns the near-null vectors and coarse operators of the setup.
    pub fn multigrid(&self) -> &Multigrid {
        &self.multigrid
    }
    /// Returns a shared pointer to the setup.
    pub fn shared(&self) -> Rc<Multigrid> {
        self.multigrid.clone()
    }
    /// Returns the work of the levels in the last solve, the finest one first.
    pub fn reports(&self) -> Vec<LevelReport> {
        self.reports.borrow().clone()
    }
    /// Passes the cycle for M̂ to `then`, or the cycle for M̂† if `adjoint` is set. The cycle preconditions vectors in single precision.
    pub fn with_cycle(
        &self,
        adjoint: bool,
        then: &mut dyn FnMut(&dyn Preconditioner<FieldSpace>) -> CycleResult,
    ) -> CycleResult {
        self.reports.borrow_mut().clear();
        let BlockMultigrid { operator, smoother, nrhs, reports, .. } = self;
        self.multigrid.with_cycle(operator, smoother, *nrhs, reports, &mut |cycle| match adjoint {
            false => then(cycle),
            true => then(&AdjointCycle::new(cycle, operator, *nrhs)?),
        })
    }
}
