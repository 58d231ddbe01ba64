//! A gauge configuration on a device, in every format that solves need.
use super::ladder::{AnyPreconditioner, Formats};
use super::request::{IterationPrecision, Operator, Reconstruction, Schwarz, with_formats};
use crate::dirac::{
    AnySchwarz, BlockOperator, CloverParams, EvenOdd, EvenOddClover, EvenOddWilson, MrInBlocks, Wilson,
};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::host::HostGauge;
use crate::field::{AnyOperator, DeviceClover, DeviceGauge, ThinGauge};
use crate::gauge_fixing::{Transformation, temporal_gauge_on};
use gpu_kernels::storage::{
    CloverFormat, Double, FourSpins, Fp16, Half, LinkFormat, Precision, Recon8, Recon8T, Recon12, Recon12T, Recon18,
    Single,
};
use solvers::MrParams;
use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A clover term in double.
type SharedTerm = Arc<DeviceClover<Double>>;

/// Links on the host, and their copies on a device, each made when it is first needed and kept.
pub struct Configuration<'g> {
    domain: Domain,
    gauge: Cow<'g, HostGauge>,
    staged: RefCell<Option<ThinGauge>>,
    copies: RefCell<HashMap<TypeId, Box<dyn Any>>>,
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
    /// The links in precision `P` with reconstruction `R`.
    pub fn links<P: Precision, R: LinkFormat<P>>(&self) -> Result<Arc<DeviceGauge<P, R>>> {
        let key = TypeId::of::<(P, R)>();
        if let Some(links) = self.copies.borrow().get(&key).and_then(|copy| copy.downcast_ref()) {
            return Ok(Arc::clone(links));
        }
        let links = Arc::new(self.with_staged(|staged| staged.pack::<P, R>())?);
        self.copies.borrow_mut().insert(key, Box::new(links.clone()));
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
        precision: IterationPrecision,
        reconstruction: Reconstruction,
        nrhs: usize,
    ) -> Result<AnyOperator<FourSpins>> {
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
        reconstruction: Reconstruction,
        nrhs: usize,
    ) -> Result<AnySchwarz> {
        expect_kernels(schwarz.precision, reconstruction)?;
        Operators::new(self, operator.into(), nrhs)?.any_schwarz(schwarz, reconstruction)
    }
    /// The reconstruction that can be had: 12 where 8 is asked for and some links are singular, or where there are no
    /// kernels for 8.
    pub(super) fn possible(&self, asked: Reconstruction, precision: IterationPrecision) -> Result<Reconstruction> {
        if !asked.has_singular_links() {
            return Ok(asked);
        }
        let temporal = asked.is_temporal();
        let count = |staged: &ThinGauge| match temporal {
            true => staged.singular_links_in_temporal_gauge(),
            false => staged.singular_links(),
        };
        let singular = match self.singular.get() {
            Some(known) => known,
            None => self.with_staged(count)? > 0,
        };
        self.singular.set(Some(singular));
        let missing = asked == Reconstruction::EightTemporal && !asked.exists_in(precision);
        Ok(if singular || missing { asked.with_two_rows() } else { asked })
    }
}

/// Whether operators of Wilson fermions are there in a format.
pub(super) fn expect_kernels(precision: IterationPrecision, reconstruction: Reconstruction) -> Result {
    match reconstruction.is_for_wilson() {
        true => Ok(()),
        false => Err(DeviceError::NoKernels { operator: "Wilson", precision, reconstruction }),
    }
}

/// One operator on a configuration, in every format.
pub(super) struct Operators<'c, 'g> {
    configuration: &'c Configuration<'g>,
    operator: Operator,
    nrhs: usize,
    term: Option<SharedTerm>,
    /// On the very links, in double.
    exact: Rc<dyn EvenOdd<FourSpins, Double>>,
}

impl<'c, 'g> Operators<'c, 'g> {
    pub fn new(configuration: &'c Configuration<'g>, operator: Operator, nrhs: usize) -> Result<Self> {
        let term = match operator {
            Operator::Wilson(_) => None,
            Operator::Clover(params, _) => Some(configuration.term(params)?),
        };
        let wilson = Wilson::new(configuration.links::<Double, Recon18>()?, operator.wilson());
        let exact = even_odd(operator, wilson, term.clone(), nrhs)?;
        Ok(Operators { configuration, operator, nrhs, term, exact })
    }
    fn with<P: CloverFormat, R: LinkFormat<P>>(&self) -> Result<Rc<dyn EvenOdd<FourSpins, P>>> {
        let wilson = Wilson::new(self.configuration.links::<P, R>()?, self.operator.wilson());
        let term = self.term.as_ref().map(|term| term.convert::<P>()).transpose()?;
        even_odd(self.operator, wilson, term.map(Arc::new), self.nrhs)
    }
}

impl Operators<'_, '_> {
    fn any_schwarz(&self, schwarz: &Schwarz, reconstruction: Reconstruction) -> Result<AnySchwarz> {
        // The end of the whole lattice, beyond which links in temporal gauge are not 1, may lie within a domain.
        let inside = schwarz.overlap > 0 && self.domain().grid().is_partitioned(3);
        let reconstruction =
            if inside && reconstruction.is_temporal() { Reconstruction::Twelve } else { reconstruction };
        macro_rules! make {
            ($precision:ident, $recon:ident) => {
                AnySchwarz::$precision(self.schwarz::<$precision, $recon>(schwarz)?)
            };
        }
        Ok(with_formats!(schwarz.precision, reconstruction, make))
    }
    /// The preconditioner in a format.
    fn schwarz<P: CloverFormat, R: LinkFormat<P>>(&self, schwarz: &Schwarz) -> Result<MrInBlocks<P>> {
        let (wilson, domain) = (self.operator.wilson(), self.domain());
        let params = MrParams { steps: schwarz.steps, omega: schwarz.omega };
        if schwarz.overlap == 0 {
            let block = schwarz.domain.unwrap_or(domain.local().size());
            let term = self.term.as_ref().map(|term| term.convert::<P>()).transpose()?;
            let operator = self.in_blocks(self.configuration.links::<P, R>()?, term, block)?;
            return MrInBlocks::new(operator, params, self.nrhs);
        }
        let width = schwarz.overlap;
        let (links, term) = self.configuration.with_staged(|thin| {
            let thin = thin.with_margin(width as u32)?.expect("the request was checked");
            let term = match self.operator {
                Operator::Clover(params, _) => Some(params.term(&thin)?.convert::<P>()?),
                Operator::Wilson(_) => None,
            };
            Ok((Arc::new(thin.pack::<P, R>()?), term))
        })?;
        let block = links.domain().local().size();
        let operator = self.in_blocks(links, term, block)?;
        MrInBlocks::overlapping(operator, params, self.nrhs, (domain, width), wilson.boundary.sign())
    }
    /// The Schur complement cut into blocks.
    fn in_blocks<P: CloverFormat, R: LinkFormat<P>>(
        &self,
        links: Arc<DeviceGauge<P, R>>,
        term: Option<DeviceClover<P>>,
        block: [usize; 4],
    ) -> Result<Rc<dyn BlockOperator<P>>> {
        let wilson = Wilson::new(links, self.operator.wilson()).in_blocks(block);
        Ok(match (self.operator, term) {
            (Operator::Clover(_, schur), Some(term)) => {
                Rc::new(EvenOddClover::new(wilson, Arc::new(term), schur, self.nrhs)?)
            }
            _ => Rc::new(EvenOddWilson::new(wilson, self.nrhs)?),
        })
    }
}

impl Formats<FourSpins> for Operators<'_, '_> {
    fn domain(&self) -> &Domain {
        self.configuration.domain()
    }
    fn exact(&self) -> Rc<dyn EvenOdd<FourSpins, Double>> {
        self.exact.clone()
    }
    fn release_staged(&self) {
        self.configuration.release_staged();
    }
    fn preconditioner(
        &self,
        schwarz: &Schwarz,
        reconstruction: Reconstruction,
    ) -> Result<Option<AnyPreconditioner<FourSpins>>> {
        Ok(Some(Box::new(self.any_schwarz(schwarz, reconstruction)?)))
    }
    fn any(&self, precision: IterationPrecision, reconstruction: Reconstruction) -> Result<AnyOperator<FourSpins>> {
        macro_rules! make {
            ($precision:ident, $recon:ident) => {
                AnyOperator::$precision(self.with::<$precision, $recon>()?)
            };
        }
        Ok(with_formats!(precision, reconstruction, make))
    }
}

fn even_odd<P: CloverFormat, R: LinkFormat<P>>(
    operator: Operator,
    wilson: Wilson<P, R>,
    term: Option<Arc<DeviceClover<P>>>,
    nrhs: usize,
) -> Result<Rc<dyn EvenOdd<FourSpins, P>>> {
    Ok(match (operator, term) {
        (Operator::Clover(_, schur), Some(term)) => Rc::new(EvenOddClover::new(wilson, term, schur, nrhs)?),
        _ => Rc::new(EvenOddWilson::new(wilson, nrhs)?),
    })
}
