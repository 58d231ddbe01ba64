//! One operator on a configuration, in every format that a solve may need.
use super::configuration::{Configuration, with_kernels};
use super::request::Schwarz;
use crate::domain::{Domain, Result};
use crate::field::{DeviceGauge, FieldSpace};
use crate::operators::{
    BlockOperator, Diagonal, EvenOdd, EvenOddStaggered, EvenOddWilson, MrInBlocks, Staggered, StaggeredOperator,
    Wilson, WilsonLike,
};
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use solvers::{MrParams, Preconditioner};
use std::rc::Rc;
use std::sync::Arc;

/// A preconditioner of some kind.
pub(super) type AnyPreconditioner = Box<dyn Preconditioner<FieldSpace>>;

/// An operator in every format that a solve may need.
pub(super) trait Formats {
    /// Where it lives.
    fn domain(&self) -> &Domain;
    /// Of the fields.
    fn kind(&self) -> FermionKind;
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
    /// Frees what the formats are made from; it comes back when it is needed.
    fn release_staged(&self);
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
        let wilson = Wilson::new(configuration.links(Precision::Double, LinkStorage::FULL)?, operator.wilson);
        let exact = Rc::new(EvenOddWilson::with_diagonal(wilson, term.clone(), operator.schur, nrhs)?);
        Ok(WilsonFormats { configuration, operator, nrhs, term, exact })
    }
    fn storage(&self, precision: Precision, storage: LinkStorage) -> LinkStorage {
        with_kernels(&self.operator.into(), precision, storage)
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
            let links = self.configuration.links(precision, storage)?;
            let operator = self.in_blocks(links, self.term.convert(precision)?, block)?;
            return MrInBlocks::new(operator, params, self.nrhs);
        }
        let width = schwarz.overlap;
        let (links, term) = self.configuration.with_staged(|thin| {
            let thin = thin.with_margin(width as u32)?.expect("the request was checked");
            let term = self.operator.diagonal(&thin)?.convert(precision)?;
            Ok((Arc::new(thin.pack(precision, storage)?), term))
        })?;
        let block = links.domain().local().size();
        let operator = self.in_blocks(links, term, block)?;
        let across = self.operator.wilson.boundary.sign();
        MrInBlocks::overlapping(operator, params, self.nrhs, domain, width, across)
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
    fn kind(&self) -> FermionKind {
        FermionKind::Wilson
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
        let storage = self.storage(precision, storage);
        let wilson = Wilson::new(self.configuration.links(precision, storage)?, self.operator.wilson);
        let term = self.term.convert(precision)?;
        Ok(Rc::new(EvenOddWilson::with_diagonal(wilson, term, self.operator.schur, self.nrhs)?))
    }
}

/// M†M + σ of a staggered operator on the sites of one parity.
pub(super) struct StaggeredFormats<'c, 'g> {
    configuration: &'c Configuration<'g>,
    operator: StaggeredOperator,
    parity: usize,
    shift: f64,
    nrhs: usize,
    exact: Rc<dyn EvenOdd>,
}

impl<'c, 'g> StaggeredFormats<'c, 'g> {
    pub fn new(
        configuration: &'c Configuration<'g>,
        operator: StaggeredOperator,
        parity: usize,
        shift: f64,
        nrhs: usize,
    ) -> Result<Self> {
        let links = configuration.staggered_links(&operator, Precision::Double, LinkStorage::FULL)?;
        let exact = Rc::new(EvenOddStaggered::shifted(Staggered::new(links, operator.params), parity, shift, nrhs)?);
        Ok(StaggeredFormats { configuration, operator, parity, shift, nrhs, exact })
    }
}

impl Formats for StaggeredFormats<'_, '_> {
    fn domain(&self) -> &Domain {
        self.configuration.domain()
    }
    fn kind(&self) -> FermionKind {
        FermionKind::Staggered
    }
    fn exact(&self) -> Rc<dyn EvenOdd> {
        self.exact.clone()
    }
    fn has(&self, precision: Precision, storage: LinkStorage) -> bool {
        self.operator.definition.exists(precision, storage)
    }
    fn any(&self, precision: Precision, storage: LinkStorage) -> Result<Rc<dyn EvenOdd>> {
        let StaggeredFormats { operator, parity, shift, nrhs, .. } = *self;
        let links = self.configuration.staggered_links(&operator, precision, storage)?;
        let staggered = Staggered::new(links, operator.params);
        Ok(Rc::new(EvenOddStaggered::shifted(staggered, parity, shift, nrhs)?))
    }
    fn release_staged(&self) {
        self.configuration.release_staged();
    }
}
