//! A gauge configuration on a device, in every format that solves need.
use super::ladder::{AnyPreconditioner, Formats};
use super::request::{Operator, Schwarz};
use crate::dirac::{BlockOperator, CloverParams, EvenOdd, EvenOddClover, EvenOddWilson, MrInBlocks, Wilson};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::host::HostGauge;
use crate::field::{DeviceClover, DeviceGauge, ThinGauge};
use crate::gauge_fixing::{Transformation, temporal_gauge_on};
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use solvers::MrParams;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A clover term in double.
type SharedTerm = Arc<DeviceClover>;

/// Links on the host, and their copies on a device, each made when it is first needed and kept.
pub struct Configuration<'g> {
    domain: Domain,
    gauge: Cow<'g, HostGauge>,
    staged: RefCell<Option<ThinGauge>>,
    copies: RefCell<HashMap<(Precision, LinkStorage), Arc<DeviceGauge>>>,
    /// The clover term that was used last, and what it was made with.
    term: RefCell<Option<(CloverParams, SharedTerm)>>,
    singular: Cell<Option<bool>>,
    /// The same in temporal gauge, and the way there.
    temporal: OnceCell<Box<(Configuration<'static>, Transformation)>>,
}

impl<'g> Configuration<'g> {
    /// Nothing is copied yet. `gauge` has the lattice of `domain`.
    pub fn new(domain: &Domain, gauge: &'g HostGauge) -> Self {
        Self::of(domain, Cow::Borrowed(gauge))
    }
    fn of(domain: &Domain, gauge: Cow<'g, HostGauge>) -> Self {
        Configuration {
            domain: domain.clone(),
            gauge,
            staged: RefCell::default(),
            copies: RefCell::default(),
            term: RefCell::default(),
            singular: Cell::default(),
            temporal: OnceCell::new(),
        }
    }
    /// The configuration in temporal gauge, and the transformation that leads there.
    pub(super) fn in_temporal_gauge(&self) -> Result<&(Configuration<'static>, Transformation)> {
        if let Some(there) = self.temporal.get() {
            return Ok(there);
        }
        self.domain.expect("a gauge field", self.gauge.lattice())?;
        let (fixed, transformation) = temporal_gauge_on(&self.domain, &self.gauge)?;
        let made = Box::new((Configuration::of(&self.domain, Cow::Owned(fixed)), transformation));
        Ok(self.temporal.get_or_init(|| made))
    }
    /// Where the copies live.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    fn with_staged<T>(&self, make: impl FnOnce(&ThinGauge) -> Result<T>) -> Result<T> {
        let mut staged = self.staged.borrow_mut();
        let staged = match staged.take() {
            Some(there) => staged.insert(there),
            None => staged.insert(ThinGauge::upload(&self.domain, &self.gauge)?),
        };
        make(staged)
    }
    /// Frees what copies are made from. It comes back when another copy is asked for.
    pub(super) fn release_staged(&self) {
        self.staged.take();
    }
    /// The links in a format.
    pub fn links(&self, precision: Precision, storage: LinkStorage) -> Result<Arc<DeviceGauge>> {
        if let Some(links) = self.copies.borrow().get(&(precision, storage)) {
            return Ok(Arc::clone(links));
        }
        let links = Arc::new(self.with_staged(|staged| staged.pack(precision, storage))?);
        self.copies.borrow_mut().insert((precision, storage), links.clone());
        Ok(links)
    }
    /// The clover term, which batches of right-hand sides need one after the other.
    fn term(&self, params: CloverParams) -> Result<SharedTerm> {
        if let Some((of, term)) = &*self.term.borrow()
            && *of == params
        {
            return Ok(Arc::clone(term));
        }
        // Never two of them: they are large.
        self.term.take();
        let term = Arc::new(self.with_staged(|thin| params.term(thin))?);
        *self.term.borrow_mut() = Some((params, Arc::clone(&term)));
        Ok(term)
    }
    /// The Schur complement of an operator in a format, for blocks of `nrhs` vectors. Links that a format cannot keep are
    /// the caller's affair: see [`ThinGauge::singular_links`] and [`temporal_gauge_on`].
    ///
    /// # Errors
    /// [`DeviceError::NoKernels`] for links in 16 bits or with a phase, which are for staggered operators, and failures of
    /// the device.
    pub fn operator(
        &self,
        operator: impl Into<Operator>,
        precision: Precision,
        reconstruction: LinkStorage,
        nrhs: usize,
    ) -> Result<Rc<dyn EvenOdd>> {
        expect_kernels(precision, reconstruction)?;
        Operators::new(self, operator.into(), nrhs)?.any(precision, reconstruction)
    }
    /// *Collective.* The preconditioner of GCR-DD for an operator's Schur complement.
    ///
    /// # Errors
    /// As [`operator`](Self::operator).
    ///
    /// # Panics
    /// On what [`Schwarz::check`] refuses.
    pub fn preconditioner(
        &self,
        operator: impl Into<Operator>,
        schwarz: &Schwarz,
        reconstruction: LinkStorage,
        nrhs: usize,
    ) -> Result<MrInBlocks> {
        expect_kernels(schwarz.precision, reconstruction)?;
        Operators::new(self, operator.into(), nrhs)?.schwarz(schwarz, reconstruction)
    }
    /// How links can be stored: with 12 reals where 8 are asked for and some links are singular.
    pub(super) fn possible(&self, asked: LinkStorage) -> Result<LinkStorage> {
        if !asked.has_singular_links() {
            return Ok(asked);
        }
        let temporal = asked.temporal;
        let count = |staged: &ThinGauge| match temporal {
            true => staged.singular_links_in_temporal_gauge(),
            false => staged.singular_links(),
        };
        let singular = match self.singular.get() {
            Some(known) => known,
            None => self.with_staged(count)? > 0,
        };
        self.singular.set(Some(singular));
        Ok(if singular { asked.with_two_rows() } else { asked })
    }
}

/// Whether operators of Wilson fermions are there in a format, if need be with two rows of each link.
pub(super) fn expect_kernels(precision: Precision, storage: LinkStorage) -> Result {
    match Wilson::exists(precision, with_kernels(precision, storage)) {
        true => Ok(()),
        false => Err(DeviceError::NoKernels { operator: "Wilson", precision, reconstruction: storage }),
    }
}

/// How links are stored for operators of Wilson fermions: as asked for, or with two rows where there are kernels for these
/// only.
pub(super) fn with_kernels(precision: Precision, storage: LinkStorage) -> LinkStorage {
    if Wilson::exists(precision, storage) { storage } else { storage.with_two_rows() }
}

/// One operator on a configuration, in every format.
pub(super) struct Operators<'c, 'g> {
    configuration: &'c Configuration<'g>,
    operator: Operator,
    nrhs: usize,
    term: Option<SharedTerm>,
    /// On the very links, in double.
    exact: Rc<dyn EvenOdd>,
}

impl<'c, 'g> Operators<'c, 'g> {
    pub fn new(configuration: &'c Configuration<'g>, operator: Operator, nrhs: usize) -> Result<Self> {
        let term = match operator {
            Operator::Wilson(_) => None,
            Operator::Clover(params, _) => Some(configuration.term(params)?),
        };
        let wilson = Wilson::new(configuration.links(Precision::Double, LinkStorage::FULL)?, operator.wilson());
        let exact = even_odd(operator, wilson, term.clone(), nrhs)?;
        Ok(Operators { configuration, operator, nrhs, term, exact })
    }
    /// The clover term in a precision, where there is one.
    fn term_in(&self, precision: Precision) -> Result<Option<DeviceClover>> {
        self.term.as_ref().map(|term| term.convert(precision)).transpose()
    }
    /// The preconditioner in a format.
    fn schwarz(&self, schwarz: &Schwarz, storage: LinkStorage) -> Result<MrInBlocks> {
        let (wilson, domain, precision) = (self.operator.wilson(), self.configuration.domain(), schwarz.precision);
        // The end of the whole lattice, beyond which links in temporal gauge are not 1, may lie within a domain.
        let inside = schwarz.overlap > 0 && domain.grid().is_partitioned(3);
        let storage = if inside && storage.temporal { LinkStorage::of(12) } else { storage };
        let storage = with_kernels(precision, storage);
        let params = MrParams { steps: schwarz.steps, omega: schwarz.omega };
        if schwarz.overlap == 0 {
            let block = schwarz.domain.unwrap_or(domain.local().size());
            let links = self.configuration.links(precision, storage)?;
            let operator = self.in_blocks(links, self.term_in(precision)?, block)?;
            return MrInBlocks::new(operator, params, self.nrhs);
        }
        let width = schwarz.overlap;
        let (links, term) = self.configuration.with_staged(|thin| {
            let thin = thin.with_margin(width as u32)?.expect("the request was checked");
            let term = match self.operator {
                Operator::Clover(params, _) => Some(params.term(&thin)?.convert(precision)?),
                Operator::Wilson(_) => None,
            };
            Ok((Arc::new(thin.pack(precision, storage)?), term))
        })?;
        let block = links.domain().local().size();
        let operator = self.in_blocks(links, term, block)?;
        MrInBlocks::overlapping(operator, params, self.nrhs, (domain, width), wilson.boundary.sign())
    }
    /// The Schur complement cut into blocks.
    fn in_blocks(
        &self,
        links: Arc<DeviceGauge>,
        term: Option<DeviceClover>,
        block: [usize; 4],
    ) -> Result<Rc<dyn BlockOperator>> {
        let wilson = Wilson::new(links, self.operator.wilson()).in_blocks(block);
        Ok(match (self.operator, term) {
            (Operator::Clover(_, schur), Some(term)) => {
                Rc::new(EvenOddClover::new(wilson, Arc::new(term), schur, self.nrhs)?)
            }
            _ => Rc::new(EvenOddWilson::new(wilson, self.nrhs)?),
        })
    }
}

impl Formats for Operators<'_, '_> {
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
    fn any(&self, precision: Precision, storage: LinkStorage) -> Result<Rc<dyn EvenOdd>> {
        let storage = with_kernels(precision, storage);
        let wilson = Wilson::new(self.configuration.links(precision, storage)?, self.operator.wilson());
        even_odd(self.operator, wilson, self.term_in(precision)?.map(Arc::new), self.nrhs)
    }
}

fn even_odd(
    operator: Operator,
    wilson: Wilson,
    term: Option<Arc<DeviceClover>>,
    nrhs: usize,
) -> Result<Rc<dyn EvenOdd>> {
    Ok(match (operator, term) {
        (Operator::Clover(_, schur), Some(term)) => Rc::new(EvenOddClover::new(wilson, term, schur, nrhs)?),
        _ => Rc::new(EvenOddWilson::new(wilson, nrhs)?),
    })
}
