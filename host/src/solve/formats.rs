//! One operator on a configuration, in every format that a solve may need.
use super::configuration::Configuration;
use super::request::Schwarz;
use crate::domain::{Domain, Result};
use crate::field::{DeviceGauge, FieldShape, FieldSpace};
use crate::multigrid::{AdjointCycle, CycleResult, MakeOperator, Multigrid, MultigridParams};
use crate::operators::{
    BlockOperator, Diagonal, EvenOdd, EvenOddStaggered, EvenOddWilson, MrInBlocks, Operator, StaggeredOperator, Wilson,
    WilsonLike,
};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{LevelReport, MrParams, Observer, Preconditioner};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A preconditioner of some kind.
pub(crate) type AnyPreconditioner = Box<dyn Preconditioner<FieldSpace>>;

/// An operator in every format that a solve may need.
pub(crate) trait Formats {
    /// Where it lives.
    fn domain(&self) -> &Domain;
    /// The shape of its fields.
    fn shape(&self, precision: Precision, nrhs: usize) -> FieldShape;
    /// On the very links, in double.
    fn exact(&self) -> Rc<dyn EvenOdd>;
    /// In a format.
    fn any(&self, precision: Precision, reconstruction: LinkStorage) -> Result<Rc<dyn EvenOdd>>;
    /// Whether this build has a format.
    fn has(&self, precision: Precision, reconstruction: LinkStorage) -> bool;
    /// The preconditioner of GCR in a format, if the operator has one.
    fn preconditioner(&self, _: &Schwarz, _: LinkStorage) -> Result<Option<AnyPreconditioner>> {
        Ok(None)
    }
    /// Multigrid for blocks of right-hand sides, with operators whose links are stored in this way, if there is any for
    /// the operator. The observer sees the steps of its setup.
    fn multigrid(
        &self,
        _: &MultigridParams,
        _: LinkStorage,
        _: &mut dyn Observer,
    ) -> CycleResult<Option<BlockMultigrid>> {
        Ok(None)
    }
    /// *Collective.* Whether multigrid can be had, and how much of it is there.
    fn multigrid_state(&self, _: &MultigridParams) -> Result<MultigridState> {
        Ok(MultigridState::Impossible)
    }
    /// Frees what the formats are made from; it comes back when it is needed.
    fn release_staged(&self);
}

/// What there is of multigrid for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MultigridState {
    /// It does not go with the operator, the lattice or the memory.
    Impossible,
    /// Nothing yet.
    Possible,
    /// Near-null vectors of the operator with another mass.
    OtherMass,
    /// All.
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
    /// A setup with the operators of its finest level, which `make` makes.
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
    /// Near-null vectors and coarse operators.
    pub fn multigrid(&self) -> &Multigrid {
        &self.multigrid
    }
    /// The same, to keep.
    pub fn shared(&self) -> Rc<Multigrid> {
        self.multigrid.clone()
    }
    /// What the levels did in the last solve, the finest one first.
    pub fn reports(&self) -> Vec<LevelReport> {
        self.reports.borrow().clone()
    }
    /// Hands the cycle for M̂, or that for M̂†, to `then`: a preconditioner of vectors in single precision.
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

/// The Schur complement of a Wilson-like operator.
pub(super) struct WilsonFormats<'c, 'g> {
    configuration: &'c Configuration<'g>,
    operator: WilsonLike,
    nrhs: usize,
    /// In double.
    term: Diagonal,
    exact: Rc<dyn EvenOdd>,
}

impl<'c, 'g> WilsonFormats<'c, 'g> {
    pub fn new(configuration: &'c Configuration<'g>, operator: WilsonLike, nrhs: usize) -> Result<Self> {
        let term = configuration.term(operator)?;
        let links = configuration.links(operator.theta, Precision::Double, LinkStorage::FULL)?;
        let exact = Rc::new(operator.on(links, term.clone(), nrhs)?);
        Ok(WilsonFormats { configuration, operator, nrhs, term, exact })
    }
    fn storage(&self, precision: Precision, storage: LinkStorage) -> LinkStorage {
        Operator::from(self.operator).compiled_storage(precision, storage)
    }
    /// The preconditioner in a format.
    pub fn schwarz(&self, schwarz: &Schwarz, storage: LinkStorage) -> Result<MrInBlocks> {
        let (domain, precision) = (self.configuration.domain(), schwarz.precision);
        // The end of the whole lattice, beyond which links in temporal gauge are not 1, may lie within a domain.
        let inside = schwarz.overlap > 0 && domain.grid().is_partitioned(3);
        let storage = if inside && storage.temporal { LinkStorage::of(12) } else { storage };
        let storage = self.storage(precision, storage);
        let params = MrParams { steps: schwarz.steps, omega: schwarz.omega };
        if schwarz.overlap == 0 {
            let block = schwarz.domain.unwrap_or(domain.local().size());
            let links = self.configuration.links(self.operator.theta, precision, storage)?;
            let operator = self.in_blocks(links, self.term.convert(precision)?, block)?;
            return MrInBlocks::new(operator, params, self.nrhs);
        }
        let width = schwarz.overlap;
        let (links, term) = self.configuration.with_staged(|thin| {
            let thin = thin.with_ghost_zone(width as u32)?.expect("the request was checked");
            let term = self.operator.diagonal(&thin)?.convert(precision)?;
            let phases = self.configuration.phases(self.operator.theta);
            Ok((Arc::new(thin.pack_with(phases, precision, storage)?), term))
        })?;
        let block = links.domain().local().size();
        let operator = self.in_blocks(links, term, block)?;
        let across = self.operator.wilson.boundary.sign();
        MrInBlocks::overlapping(operator, params, self.nrhs, domain, width, across)
    }
    /// The Schur complement in a format.
    fn in_format(&self, precision: Precision, storage: LinkStorage, nrhs: usize) -> Result<EvenOddWilson> {
        let storage = self.storage(precision, storage);
        let links = self.configuration.links(self.operator.theta, precision, storage)?;
        self.operator.on(links, self.term.convert(precision)?, nrhs)
    }
    /// The Schur complement cut into blocks.
    fn in_blocks(&self, links: Arc<DeviceGauge>, term: Diagonal, block: [usize; 4]) -> Result<Rc<dyn BlockOperator>> {
        let wilson = Wilson::new(links, self.operator.wilson).in_blocks(block);
        Ok(Rc::new(EvenOddWilson::with_diagonal(wilson, term, self.operator.schur, self.nrhs)?))
    }
}

impl Formats for WilsonFormats<'_, '_> {
    fn domain(&self) -> &Domain {
        self.configuration.domain()
    }
    fn shape(&self, precision: Precision, nrhs: usize) -> FieldShape {
        FieldShape::spinors(precision, nrhs)
    }
    fn exact(&self) -> Rc<dyn EvenOdd> {
        self.exact.clone()
    }
    fn release_staged(&self) {
        self.configuration.release_staged();
    }
    fn preconditioner(&self, schwarz: &Schwarz, storage: LinkStorage) -> Result<Option<AnyPreconditioner>> {
        Ok(Some(Box::new(self.schwarz(schwarz, storage)?)))
    }
    fn has(&self, precision: Precision, storage: LinkStorage) -> bool {
        self.operator.definition.exists(precision, self.storage(precision, storage))
    }
    fn any(&self, precision: Precision, storage: LinkStorage) -> Result<Rc<dyn EvenOdd>> {
        Ok(Rc::new(self.in_format(precision, storage, self.nrhs)?))
    }
    fn multigrid(
        &self,
        params: &MultigridParams,
        storage: LinkStorage,
        observer: &mut dyn Observer,
    ) -> CycleResult<Option<BlockMultigrid>> {
        let make = |precision, nrhs| self.in_format(precision, storage, nrhs);
        let params = params.smoothing_on(self.configuration.domain().backend(), &self.operator);
        let multigrid = self.configuration.multigrid(self.operator, &params, &make, observer)?;
        Ok(Some(BlockMultigrid::new(multigrid, &params, &make, self.domain(), self.nrhs)?))
    }
    fn multigrid_state(&self, params: &MultigridParams) -> Result<MultigridState> {
        // A build may do without some formats.
        let params = params.smoothing_on(self.configuration.domain().backend(), &self.operator);
        let backend = self.configuration.domain().backend();
        let formats = [Precision::Single, params.precision_on(backend), params.smoother_on(backend)];
        if !formats.into_iter().all(|precision| self.has(precision, LinkStorage::FULL)) {
            return Ok(MultigridState::Impossible);
        }
        self.configuration.multigrid_state(self.operator, &params, self.nrhs)
    }
}

/// Makes an even-odd system in a format.
type MakeSystem<'c> = Box<dyn Fn(Precision, LinkStorage) -> Result<Rc<dyn EvenOdd>> + 'c>;

/// The even-odd system of any operator.
pub(super) struct SystemFormats<'c, 'g> {
    configuration: &'c Configuration<'g>,
    operator: Operator,
    make: MakeSystem<'c>,
    exact: Rc<dyn EvenOdd>,
}

impl<'c, 'g> SystemFormats<'c, 'g> {
    /// The Schur complement.
    pub fn new(configuration: &'c Configuration<'g>, operator: Operator, nrhs: usize) -> Result<Self> {
        let of_system = operator.clone();
        let make = move |precision, storage| of_system.even_odd(configuration, (precision, storage), nrhs);
        Self::made(configuration, operator, Box::new(make))
    }
    /// M†M + σ of a staggered operator on the sites of one parity.
    pub fn shifted(
        configuration: &'c Configuration<'g>,
        operator: StaggeredOperator,
        (parity, shift): (usize, f64),
        nrhs: usize,
    ) -> Result<Self> {
        let make = move |precision, storage| -> Result<Rc<dyn EvenOdd>> {
            let staggered = operator.on(configuration, precision, storage)?;
            Ok(Rc::new(EvenOddStaggered::shifted(staggered, parity, shift, nrhs)?))
        };
        Self::made(configuration, operator.into(), Box::new(make))
    }
    fn made(configuration: &'c Configuration<'g>, operator: Operator, make: MakeSystem<'c>) -> Result<Self> {
        let exact = make(Precision::Double, LinkStorage::FULL)?;
        Ok(SystemFormats { configuration, operator, make, exact })
    }
}

impl Formats for SystemFormats<'_, '_> {
    fn domain(&self) -> &Domain {
        self.configuration.domain()
    }
    fn shape(&self, precision: Precision, nrhs: usize) -> FieldShape {
        self.operator.shape(precision, nrhs)
    }
    fn exact(&self) -> Rc<dyn EvenOdd> {
        self.exact.clone()
    }
    fn has(&self, precision: Precision, storage: LinkStorage) -> bool {
        self.operator.definition().exists(precision, storage)
    }
    fn any(&self, precision: Precision, storage: LinkStorage) -> Result<Rc<dyn EvenOdd>> {
        (self.make)(precision, storage)
    }
    fn release_staged(&self) {
        self.configuration.release_staged();
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::Cpu;
    use crate::domain::{Domain, Result};
    use crate::field::host::HostSpinor;
    use crate::gauge::generate;
    use crate::halo::HaloField;
    use crate::lattice::Lattice;
    use crate::operators::{
        BoundaryAngles, Definition, EvenOdd, Operator, OperatorForm, OperatorLinks, OperatorParameters, TimeBoundary,
        WILSON, WilsonLike, WilsonParams,
    };
    use crate::solve::{Configuration, Request};
    use gpu_kernels::{LinkStorage, Precision};
    use std::any::Any;
    use std::rc::Rc;

    /// Parameters of a family of their own, whose operator is Wilson's.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct OtherFamily(f64);

    impl OtherFamily {
        fn wilson(self) -> WilsonLike {
            WilsonParams::from_mass(self.0, TimeBoundary::Antiperiodic).into()
        }
    }

    impl OperatorParameters for OtherFamily {
        fn definition(&self) -> &'static Definition {
            &WILSON
        }
        fn mass(&self) -> f64 {
            self.0
        }
        fn with_mass(&self, mass: f64) -> Operator {
            OtherFamily(mass).into()
        }
        fn theta(&self) -> BoundaryAngles {
            BoundaryAngles::default()
        }
        fn with_theta(&self, _: BoundaryAngles) -> Operator {
            (*self).into()
        }
        fn boundary(&self) -> TimeBoundary {
            TimeBoundary::Antiperiodic
        }
        fn equals(&self, other: &dyn Any) -> bool {
            other.downcast_ref() == Some(self)
        }
        fn even_odd(
            &self,
            links: &dyn OperatorLinks,
            format: (Precision, LinkStorage),
            nrhs: usize,
        ) -> Result<Rc<dyn EvenOdd>> {
            self.wilson().even_odd(links, format, nrhs)
        }
        fn is_positive(&self) -> bool {
            false
        }
        fn kept_fields(&self) -> usize {
            1
        }
        fn halo_field(&self) -> HaloField {
            HaloField::Spinors
        }
        fn link_bytes(&self, precision: Precision, storage: LinkStorage, sites: usize) -> usize {
            self.wilson().link_bytes(precision, storage, sites)
        }
    }

    #[test]
    fn operators_of_any_family_are_solved_and_applied() {
        let lattice = Lattice::new([4; 4]).unwrap();
        let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
        let gauge = generate::weak_field(lattice, 3, 0.3);
        let configuration = Configuration::new(&domain, &gauge);
        let sources: [HostSpinor; 2] = [1, 2].map(|seed| generate::random_source(lattice, seed));
        let operators = [Operator::from(OtherFamily(0.2)), OtherFamily(0.2).wilson().into()];
        assert!(operators[0].parameters::<WilsonLike>().is_none() && operators[0] != operators[1]);
        assert!(operators[0].with_mass(0.2) == operators[0] && operators[0].with_mass(0.3) != operators[0]);
        let [(other, report), (wilson, _)] = operators.each_ref().map(|operator| {
            let request = Request { precision: Precision::Single, ..Request::new(operator) };
            configuration.solve(&sources, None, &request, &mut ()).unwrap()
        });
        assert!(report.converged && other == wilson);
        for form in [OperatorForm::Plain, OperatorForm::Dagger, OperatorForm::Normal] {
            let [other, wilson] = operators.each_ref().map(|operator| {
                let format = (Precision::Double, LinkStorage::FULL);
                configuration.apply(form, false, &sources, operator, format.0, format.1).unwrap().0
            });
            assert!(other == wilson, "{form:?}");
        }
    }
}
