//! Operators of a configuration in every format. The two modules depend on each other: a configuration creates the operators, and they take
//! their links from it.
use super::Configuration;
use crate::domain::{Domain, Result};
use crate::field::{DeviceGauge, FieldShape};
use crate::multigrid::{CycleResult, MultigridParams};
use crate::operators::{
    BlockOperator, Diagonal, EvenOdd, EvenOddStaggered, EvenOddWilson, MrInBlocks, Operator, StaggeredOperator, Wilson,
    WilsonLike,
};
use crate::solve::Schwarz;
use crate::solve::formats::{AnyPreconditioner, BlockMultigrid, Formats, MultigridState};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{MrParams, Observer};
use std::rc::Rc;
use std::sync::Arc;

/// Schur complement of a Wilson-like operator in every format.
pub(in crate::solve) struct WilsonFormats<'c, 'g> {
    configuration: &'c Configuration<'g>,
    operator: WilsonLike,
    nrhs: usize,
    /// Diagonal term in double precision.
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
    /// Makes the Schwarz preconditioner with the parameters `schwarz`, on links in `storage`.
    pub fn schwarz(&self, schwarz: &Schwarz, storage: LinkStorage) -> Result<MrInBlocks> {
        let (domain, precision) = (self.configuration.domain(), schwarz.precision);
        // An overlapping domain may contain the end of the whole lattice in t, across which links in temporal gauge are not 1, so such
        // links cannot be used.
        let has_end_within = schwarz.overlap > 0 && domain.grid().is_partitioned(3);
        let storage = if has_end_within && storage.temporal { LinkStorage::of(12) } else { storage };
        let storage = self.storage(precision, storage);
        let params = MrParams { steps: schwarz.steps, omega: schwarz.omega };
        if schwarz.overlap == 0 {
            let block = schwarz.domain.unwrap_or(domain.local().size());
            let links = self.configuration.links(self.operator.theta, precision, storage)?;
            let operator = self.in_blocks(links, self.term.convert(precision)?, block)?;
            return MrInBlocks::new(operator, params, self.nrhs);
        }
        let width = schwarz.overlap;
        self.configuration.expect_own_term("overlapping blocks")?;
        let (links, term) = self.configuration.with_device_links(|gauge| {
            let gauge = gauge.with_ghost_zone(width as u32)?.expect("the request was checked");
            let term = self.operator.diagonal(&gauge)?.convert(precision)?;
            let phases = self.configuration.phases(self.operator.theta);
            Ok((Arc::new(gauge.pack_with(phases, precision, storage)?), term))
        })?;
        let block = links.domain().local().size();
        let operator = self.in_blocks(links, term, block)?;
        let across = self.operator.wilson.boundary.sign();
        MrInBlocks::overlapping(operator, params, self.nrhs, domain, width, across)
    }
    /// Makes the Schur complement in a format.
    fn in_format(&self, precision: Precision, storage: LinkStorage, nrhs: usize) -> Result<EvenOddWilson> {
        let storage = self.storage(precision, storage);
        let links = self.configuration.links(self.operator.theta, precision, storage)?;
        self.operator.on(links, self.term.convert(precision)?, nrhs)
    }
    /// Makes the Schur complement divided into independent blocks.
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
    fn release_device_links(&self) {
        self.configuration.release_device_links();
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
        // Multigrid is impossible if this build lacks one of its formats.
        let params = params.smoothing_on(self.configuration.domain().backend(), &self.operator);
        let backend = self.configuration.domain().backend();
        let formats = [Precision::Single, params.precision_on(backend), params.smoother_on(backend)];
        if !formats.into_iter().all(|precision| self.has(precision, LinkStorage::FULL)) {
            return Ok(MultigridState::Impossible);
        }
        self.configuration.multigrid_state(self.operator, &params, self.nrhs)
    }
}

/// Function that makes an even-odd system in a format.
type MakeSystem<'c> = Box<dyn Fn(Precision, LinkStorage) -> Result<Rc<dyn EvenOdd>> + 'c>;

/// Even-odd system of an operator of any family in every format.
pub(in crate::solve) struct SystemFormats<'c, 'g> {
    configuration: &'c Configuration<'g>,
    operator: Operator,
    make: MakeSystem<'c>,
    exact: Rc<dyn EvenOdd>,
}

impl<'c, 'g> SystemFormats<'c, 'g> {
    /// Prepares an operator's Schur complement for use in any format.
    pub fn new(configuration: &'c Configuration<'g>, operator: Operator, nrhs: usize) -> Result<Self> {
        let of_system = operator.clone();
        let make = move |precision, storage| of_system.even_odd(configuration, (precision, storage), nrhs);
        Self::made(configuration, operator, Box::new(make))
    }
    /// Prepares M†M + σ of a staggered operator, on the sites of one parity, for use in any format.
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
    fn release_device_links(&self) {
        self.configuration.release_device_links();
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
