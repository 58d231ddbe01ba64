//! A gauge configuration on a device, with its links in every format that solves need.
mod formats;

pub(super) use formats::SystemFormats;

use super::formats::{Formats, MultigridState};
use super::links::{ImprovedLinks, LinkCache, LinkFormatKey, Slot};
use super::methods;
use super::report::SolveFailure;
use super::request::Request;
use super::schwarz::Schwarz;
use crate::domain::{DeviceError, Domain, Result};
use crate::field::host::{Fermion, HostField, HostGauge};
use crate::field::{DeviceClover, DeviceGauge, FieldShape, FullField, GaugeField, HopPhases};
use crate::gauge::fixing::{Transformation, temporal_gauge_on};
use crate::multigrid::{CycleResult, MakeOperator, Multigrid, MultigridParams, NearNullVectors};
use crate::operators::fat_links::Improvement;
use crate::operators::{
    BoundaryAngles, CLOVER, Diagonal, EvenOdd, EvenOddWilson, MrInBlocks, Operator, OperatorForm, OperatorLinks,
    Smearing, StaggeredLinks, StaggeredOperator, TimeBoundary, WilsonLike,
};
use formats::WilsonFormats;
use gpu_kernels::{LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{Observer, SolveError};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Links of a configuration and their copies on a device. Each copy is made when it is first needed, and then kept.
pub struct Configuration<'g> {
    domain: Domain,
    source: LinkSource<'g>,
    device_links: RefCell<Option<GaugeField>>,
    /// Packed links for one set of twisted boundary conditions, and the diagonal term that was used last. Others are dropped, because all
    /// are large.
    cache: LinkCache,
    /// Fat and long links that were used last.
    improved: Slot<Smearing, Rc<ImprovedLinks>>,
    /// Multigrid that was set up last, with its operator.
    multigrid: RefCell<Option<(WilsonLike, Rc<Multigrid>)>>,
    /// Near-null vectors supplied for multigrid, with their operator.
    near_null_vectors: RefCell<Option<(WilsonLike, NearNullVectors)>>,
    /// Clover term that replaces those that would be made from the links.
    given_term: RefCell<Option<Diagonal>>,
    singular: Cell<Option<bool>>,
    /// The configuration in temporal gauge, and the transformation to it.
    temporal: OnceCell<Box<(Configuration<'static>, Transformation)>>,
}

/// Links from which copies are made.
enum LinkSource<'g> {
    /// Links on the host.
    Gauge(Cow<'g, HostGauge>),
    /// Links on the host that others may share.
    Shared(Arc<HostGauge>),
    /// Fat and long links.
    Improved(Rc<ImprovedLinks>),
}

impl<'g> Configuration<'g> {
    /// Makes a configuration from links on the host; nothing is copied yet. `gauge` has the lattice of `domain`.
    pub fn new(domain: &Domain, gauge: &'g HostGauge) -> Self {
        Self::of(domain, LinkSource::Gauge(Cow::Borrowed(gauge)))
    }
    /// Makes a configuration from shared links on the host, and keeps these links alive.
    pub fn of_shared(domain: &Domain, gauge: Arc<HostGauge>) -> Configuration<'static> {
        Configuration::of(domain, LinkSource::Shared(gauge))
    }
    /// Makes a configuration from existing fat and long links. It suits improved staggered operators only.
    pub fn improved(links: Improvement) -> Self {
        Self::of(&links.fat.domain().clone(), LinkSource::Improved(ImprovedLinks::new(links)))
    }
    fn of(domain: &Domain, source: LinkSource<'g>) -> Self {
        Configuration {
            domain: domain.clone(),
            source,
            device_links: RefCell::default(),
            cache: LinkCache::default(),
            improved: Slot::default(),
            multigrid: RefCell::default(),
            given_term: RefCell::default(),
            near_null_vectors: RefCell::default(),
            singular: Cell::default(),
            temporal: OnceCell::new(),
        }
    }
    fn gauge(&self) -> Result<&HostGauge> {
        match &self.source {
            LinkSource::Gauge(gauge) => Ok(gauge),
            LinkSource::Shared(gauge) => Ok(gauge),
            LinkSource::Improved(_) => Err(DeviceError::NoThinLinks),
        }
    }
    /// Returns the configuration in temporal gauge, and the transformation to it.
    pub(super) fn in_temporal_gauge(&self) -> Result<&(Configuration<'static>, Transformation)> {
        if let Some(there) = self.temporal.get() {
            return Ok(there);
        }
        self.expect_own_term("temporal gauge")?;
        let gauge = self.gauge()?;
        self.domain.expect("a gauge field", gauge.lattice())?;
        let (fixed, transformation) = temporal_gauge_on(&self.domain, gauge)?;
        let made = Box::new((Configuration::of(&self.domain, LinkSource::Gauge(Cow::Owned(fixed))), transformation));
        Ok(self.temporal.get_or_init(|| made))
    }
    /// Returns the domain on which the copies are stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the result of `make` for the links in double precision on the device, including the border of this process's part.
    pub(super) fn with_device_links<T>(&self, make: impl FnOnce(&GaugeField) -> Result<T>) -> Result<T> {
        let mut device_links = self.device_links.borrow_mut();
        let device_links = match device_links.take() {
            Some(there) => device_links.insert(there),
            None => device_links.insert(GaugeField::upload(&self.domain, self.gauge()?)?),
        };
        make(device_links)
    }
    /// Frees the links from which copies are made; the next copy uploads them again.
    pub(super) fn release_device_links(&self) {
        self.device_links.take();
    }
    /// Returns the links in a format, with the phases of twisted boundary conditions. Links with phases need all 18 reals.
    ///
    /// # Errors
    /// [`DeviceError::NoThinLinks`] if the configuration has only fat and long links; failures of the device.
    pub fn links(&self, theta: BoundaryAngles, precision: Precision, storage: LinkStorage) -> Result<Arc<DeviceGauge>> {
        let pack =
            |device_links: &GaugeField| Ok(Arc::new(device_links.pack_with(self.phases(theta), precision, storage)?));
        self.cache.packed.retain(|format| format.theta == theta);
        self.cache.packed.get(LinkFormatKey { theta, precision, storage }, || self.with_device_links(pack))
    }
    /// Returns the phases of hops.
    pub(super) fn phases(&self, theta: BoundaryAngles) -> HopPhases {
        theta.of_hops(self.domain.global())
    }
    /// Returns an operator's diagonal term in double precision, and keeps it for further batches of right-hand sides.
    pub(super) fn term(&self, operator: WilsonLike) -> Result<Diagonal> {
        if operator.has_number() {
            return Ok(Diagonal::number(operator.wilson.diagonal()));
        }
        match &*self.given_term.borrow() {
            Some(given) if std::ptr::eq(operator.definition, &CLOVER) => return Ok(given.clone()),
            _ => {}
        }
        self.cache.terms.only(operator.into(), || self.with_device_links(|links| operator.diagonal(links)))
    }
    /// Supplies a clover term in double precision, which replaces those of Wilson-clover operators until the next call. Other operators
    /// have terms made from the links. Solves fail for Wilson-clover operators of another mass than that of the term's [diagonal](DeviceClover::diagonal).
    pub fn set_clover_term(&self, term: DeviceClover) {
        self.multigrid.take();
        *self.given_term.borrow_mut() = Some(term.into());
    }
    /// Fails if a clover term was supplied: `what` needs a term that is made from its own links.
    pub(super) fn expect_own_term(&self, what: &'static str) -> Result {
        if self.given_term.borrow().is_some() { Err(DeviceError::GivenTerm { what }) } else { Ok(()) }
    }
    /// Supplies near-null vectors of an operator on these links, for a multigrid setup with the same number of vectors. They also suit
    /// operators that differ in mass or in the coefficients of the diagonal term.
    pub fn set_near_null_vectors(&self, operator: WilsonLike, vectors: NearNullVectors) {
        // The last setup is dropped, because these vectors replace it.
        self.multigrid.take();
        *self.near_null_vectors.borrow_mut() = Some((operator, vectors));
    }
    /// *Collective.* Sets multigrid up for an operator, ahead of solves with these parameters and this link storage. The observer receives
    /// the [steps](Observer::step) of the setup, and can end it.
    ///
    /// # Errors
    /// Fails for parameters that do not fit the lattice, for a setup that fails or that the observer ends, and on failures of the device.
    pub fn set_up_multigrid(
        &self,
        operator: WilsonLike,
        params: &MultigridParams,
        storage: LinkStorage,
        observer: &mut dyn Observer,
    ) -> CycleResult<Rc<Multigrid>> {
        let made = WilsonFormats::new(self, operator, 1)?.multigrid(params, storage, observer)?;
        Ok(made.expect("Wilson-like operators have multigrid").shared())
    }
    /// Frees the multigrid setup, and forgets near-null vectors that were supplied.
    pub fn forget_multigrid(&self) {
        self.multigrid.take();
        self.near_null_vectors.take();
    }
    /// Returns the multigrid setup that was made last and its operator; `None` if there is none.
    pub fn multigrid_setup(&self) -> Option<(WilsonLike, Rc<Multigrid>)> {
        self.multigrid.borrow().clone()
    }
    /// Returns multigrid for an operator, and keeps it for further batches of right-hand sides.
    pub(super) fn multigrid(
        &self,
        operator: WilsonLike,
        params: &MultigridParams,
        make: &MakeOperator<'_>,
        observer: &mut dyn Observer,
    ) -> CycleResult<Rc<Multigrid>> {
        if let Some((of, multigrid)) = &*self.multigrid.borrow()
            && *of == operator
            && multigrid.params() == params
        {
            return Ok(multigrid.clone());
        }
        // The last setup is dropped first, because two setups at once would take too much memory. Its near-null vectors are kept: they may
        // suit the new operator.
        let fits = |of: &WilsonLike, vectors: &NearNullVectors| {
            of.differs_in_numbers(&operator) && vectors.count() == params.vectors
        };
        let before = self.multigrid.take().map(|(of, there)| (of, there.near_null_vectors().copied()));
        let before = match before {
            Some((of, vectors)) => Some((of, vectors?)),
            None => self.near_null_vectors.take(),
        };
        let vectors = before.filter(|(of, vectors)| fits(of, vectors));
        // `make` borrows the links on the device. Calling it here caches all that the setup needs, before `with_device_links` borrows them
        // for the setup.
        drop((make(Precision::Single, 1)?, make(params.smoother_on(self.domain.backend()), 1)?));
        let mut made = None;
        self.with_device_links(|links| {
            made = Some(match &vectors {
                Some((of, vectors)) => {
                    let improvements = usize::from(operator.wilson.mass < of.wilson.mass);
                    Multigrid::from_near_null_vectors(make, links, params, vectors, improvements, observer)
                }
                None => Multigrid::new(make, links, params, observer),
            });
            Ok(())
        })?;
        let made = made.expect("it was made just now");
        if made.is_err() {
            // The vectors are kept for another attempt.
            *self.near_null_vectors.borrow_mut() = vectors;
        }
        let made = Rc::new(made?);
        *self.multigrid.borrow_mut() = Some((operator, made.clone()));
        Ok(made)
    }
    /// *Collective.* Returns the state of multigrid for an operator, which depends on the free memory of the device.
    pub(super) fn multigrid_state(
        &self,
        operator: WilsonLike,
        params: &MultigridParams,
        nrhs: usize,
    ) -> Result<MultigridState> {
        let there = self.multigrid.borrow();
        let there = there.as_ref().filter(|(_, multigrid)| multigrid.params() == params);
        if let Some((of, _)) = there {
            if *of == operator {
                return Ok(MultigridState::Ready);
            }
            if of.differs_in_numbers(&operator) {
                return Ok(MultigridState::OtherMass);
            }
        }
        let given = self.near_null_vectors.borrow();
        let given = given
            .as_ref()
            .is_some_and(|(of, vectors)| of.differs_in_numbers(&operator) && vectors.count() == params.vectors);
        let local = self.domain.local();
        let fits = params.aggregates(local).is_ok()
            && params.bytes(local, nrhs).peak() <= self.domain.backend().memory()?.free;
        let mut without = [f64::from(u8::from(!fits))];
        self.domain.sum(&mut without)?;
        Ok(match without {
            [0.0] if given => MultigridState::OtherMass,
            [0.0] => MultigridState::Possible,
            _ => MultigridState::Impossible,
        })
    }
    /// Returns fat and long links with a smearing, and keeps them.
    fn improved_links(&self, smearing: Smearing) -> Result<Rc<ImprovedLinks>> {
        if let LinkSource::Improved(links) = &self.source {
            return Ok(links.clone());
        }
        self.improved.only(smearing, || {
            let made = self.with_device_links(|thin| Improvement::of(thin, smearing))?;
            // The operator hops only over fat and long links, so the thin links are not needed for further copies.
            self.release_device_links();
            Ok(ImprovedLinks::new(made))
        })
    }
    /// Returns an operator in every format, for blocks of `nrhs` vectors.
    pub(super) fn formats(&self, operator: Operator, nrhs: usize) -> Result<Box<dyn Formats + '_>> {
        Ok(match operator.parameters() {
            Some(operator) => Box::new(WilsonFormats::new(self, *operator, nrhs)?),
            None => Box::new(SystemFormats::new(self, operator, nrhs)?),
        })
    }
    /// Makes the Schur complement of an operator in a format, for blocks of `nrhs` vectors; for staggered operators, M†M on the even sites.
    /// The caller must ensure that the format can represent the links: see [`possible`](Self::possible) and [`temporal_gauge_on`].
    ///
    /// # Errors
    /// [`DeviceError::NoKernels`] for formats that the operator does not have, and failures of the device.
    pub fn operator(
        &self,
        operator: impl Into<Operator>,
        precision: Precision,
        reconstruction: LinkStorage,
        nrhs: usize,
    ) -> Result<Rc<dyn EvenOdd>> {
        let operator = operator.into();
        operator.expect_kernels(precision, reconstruction)?;
        self.formats(operator, nrhs)?.any(precision, reconstruction)
    }
    /// *Collective.* Makes a Wilson-like operator in double precision, for blocks of `nrhs` vectors. It offers hops and diagonal terms
    /// one by one.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn wilson_like(&self, operator: WilsonLike, nrhs: usize) -> Result<EvenOddWilson> {
        let links = self.links(operator.theta, Precision::Double, LinkStorage::FULL)?;
        operator.on(links, self.term(operator)?, nrhs)
    }
    /// *Collective.* Makes the Schwarz preconditioner of GCR-DD for the Schur complement of a Wilson-like operator.
    ///
    /// # Errors
    /// The errors of [`operator`](Self::operator); [`DeviceError::NoKernels`] for staggered operators.
    ///
    /// # Panics
    /// If [`Schwarz::check`] fails.
    pub fn preconditioner(
        &self,
        operator: impl Into<Operator>,
        schwarz: &Schwarz,
        reconstruction: LinkStorage,
        nrhs: usize,
    ) -> Result<MrInBlocks> {
        let operator = operator.into();
        operator.expect_kernels(schwarz.precision, reconstruction)?;
        let Some(operator) = operator.parameters() else {
            return Err(operator.definition().no_kernels(schwarz.precision, reconstruction, reconstruction));
        };
        WilsonFormats::new(self, *operator, nrhs)?.schwarz(schwarz, reconstruction)
    }
    /// Returns the storage in which the thin or long links of an operator can be kept. The result is `asked` if this storage can represent
    /// the links, and otherwise the next storage with more reals that can.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn possible(&self, operator: &Operator, asked: LinkStorage) -> Result<LinkStorage> {
        match operator.definition().is_improved() {
            true => self.improved_links(operator.smearing())?.possible(operator.theta(), asked),
            false => self.possible_thin(operator.storage(asked)),
        }
    }
    /// Returns the storage in which thin links can be kept: 12 reals if 8 are requested and some links are singular.
    fn possible_thin(&self, asked: LinkStorage) -> Result<LinkStorage> {
        if !asked.has_singular_links() {
            return Ok(asked);
        }
        let temporal = asked.temporal;
        let count = |device_links: &GaugeField| match temporal {
            true => device_links.singular_links_in_temporal_gauge(),
            false => device_links.singular_links(),
        };
        let singular = match self.singular.get() {
            Some(known) => known,
            None => self.with_device_links(count)? > 0,
        };
        self.singular.set(Some(singular));
        Ok(if singular { asked.with_two_rows() } else { asked })
    }
    /// Returns the request with a link storage that is available, or the reason why there is none.
    pub(super) fn checked<T: Fermion>(&self, request: &Request) -> std::result::Result<Request, SolveFailure<T>> {
        let invalid = |why| SolveFailure::Solver(SolveError::Invalid(why));
        let request = &request.on(Some(self.domain.backend()));
        expect_fields::<T>(&request.operator)?;
        request.check_precisions().map_err(invalid)?;
        let reconstruction = self.format(&request.operator, request.precision, request.reconstruction)?;
        if !request.method.kinds.contains(&request.operator.kind()) {
            return Err(invalid(methods::not_for_staggered()));
        }
        let check = (request.method.check)(request, self.domain.local(), self.domain.grid());
        check.map_err(SolveFailure::forget_solutions)?;
        Ok(Request { reconstruction, ..request.clone() })
    }
    /// Returns the link storage in which an operator is available, or the reason why there is none.
    fn format<T: Fermion>(
        &self,
        operator: &Operator,
        precision: Precision,
        asked: LinkStorage,
    ) -> std::result::Result<LinkStorage, SolveFailure<T>> {
        let invalid = |why| Err(SolveFailure::Solver(SolveError::Invalid(why)));
        let Some(staggered) = operator.parameters::<StaggeredOperator>() else {
            operator.expect_kernels(precision, asked)?;
            return Ok(self.possible(operator, operator.compiled_storage(precision, asked))?);
        };
        if !staggered.definition.missing_features(precision, asked).is_empty() {
            operator.expect_kernels(precision, asked)?;
        }
        if !StaggeredLinks::exists(true, precision, asked) {
            return invalid(
                "staggered operators exist in double, single and half precision with links of 18, 13, 12, 9 or 8 \
                 reals, and in single precision also with 18h, 13h, 12h, 9h or 8h, 13f or 9f: choose one of these formats",
            );
        }
        if !staggered.is_improved() && asked.keeps_phase() {
            return invalid(
                "the links of the naive staggered operator are in SU(3): choose 18, 12 or 8 reals; 13 and 9 reals \
                 apply to long links of improved operators",
            );
        }
        if staggered.spread && staggered.params.boundary != TimeBoundary::Antiperiodic {
            return invalid(
                "only an antiperiodic boundary condition can be spread over all links in t: choose an antiperiodic \
                 one, or remove spread-boundary",
            );
        }
        Ok(self.possible(operator, asked)?)
    }
    /// Computes M ψ_j, M† ψ_j or M†M ψ_j for all fields together, with fields and links in a format. Also returns the link storage in use,
    /// which [`possible`](Self::possible) determines. With `complement`, which is for Wilson-like operators, M is the Schur complement that
    /// solvers use, and odd sites of the images are zero. M†M of staggered operators is applied as in solvers, on each parity as m² − ¼ D².
    ///
    /// # Errors
    /// Formats that do not exist, and failures of the device.
    pub fn apply<T: Fermion>(
        &self,
        form: OperatorForm,
        complement: bool,
        fields: &[HostField<T>],
        operator: impl Into<Operator>,
        precision: Precision,
        reconstruction: LinkStorage,
    ) -> std::result::Result<(Vec<HostField<T>>, LinkStorage), SolveFailure<T>> {
        let operator = operator.into();
        expect_fields::<T>(&operator)?;
        super::expect_sources(self.domain(), fields, None)?;
        let reconstruction = self.format(&operator, precision, reconstruction)?;
        let there = self.spread_phases(&operator, fields);
        let mut x = FullField::zero(&self.domain, FieldShape::new(T::KIND, precision, fields.len()))?;
        x.upload(&there)?;
        let mut images = self.apply_on_device(form, complement, x, &operator, reconstruction)?.download()?;
        self.take_spread_phases_back(&operator, &mut images);
        Ok((images, reconstruction))
    }
    /// Computes M ψ_j, M† ψ_j or M†M ψ_j for fields on the device, in the precision of the fields and with all reals of the links.
    ///
    /// # Errors
    /// Fields of another kind, on another lattice or device; a boundary condition that is spread over all links; formats that do not exist;
    /// failures of the device.
    pub fn apply_field(
        &self,
        form: OperatorForm,
        x: FullField,
        operator: impl Into<Operator>,
    ) -> std::result::Result<FullField, SolveFailure> {
        let operator = operator.into();
        for part in [&x.even, &x.odd] {
            part.expect(&self.domain, operator.shape(x.even.precision(), x.even.nrhs()))?;
        }
        if operator.is_spread() {
            let why = "an operator whose boundary condition is spread over all links acts only on fields in host memory: \
                       use Configuration::apply";
            return Err(SolveFailure::Solver(SolveError::Invalid(why)));
        }
        let reconstruction = self.format(&operator, x.even.precision(), LinkStorage::FULL)?;
        Ok(self.apply_on_device(form, false, x, &operator, reconstruction)?)
    }
    fn apply_on_device(
        &self,
        form: OperatorForm,
        complement: bool,
        mut x: FullField,
        operator: &Operator,
        reconstruction: LinkStorage,
    ) -> Result<FullField> {
        let FieldShape { precision, nrhs, .. } = x.even.shape();
        let mut out = FullField::zero(&self.domain, x.even.shape())?;
        let even_odd = operator.even_odd(self, (precision, reconstruction), nrhs)?;
        self.release_device_links();
        match (complement, form) {
            (false, OperatorForm::Normal) => even_odd.normal(&mut x, &mut out)?,
            (false, _) => even_odd.full(form == OperatorForm::Dagger, &x, &mut out)?,
            (true, OperatorForm::Plain) => even_odd.apply(&x.even, &mut out.even)?,
            (true, OperatorForm::Dagger) => even_odd.apply_dagger(&x.even, &mut out.even)?,
            (true, OperatorForm::Normal) => {
                even_odd.apply(&x.even, &mut out.even)?;
                std::mem::swap(&mut x.even, &mut out.even);
                even_odd.apply_dagger(&x.even, &mut out.even)?;
            }
        }
        Ok(out)
    }
    /// Returns `fields` in the gauge in which kernels compute. In this gauge, a boundary condition that is spread over all links in t has
    /// no phases.
    pub(super) fn spread_phases<'a, T: Fermion>(
        &self,
        operator: &Operator,
        fields: &'a [HostField<T>],
    ) -> Cow<'a, [HostField<T>]> {
        if !operator.is_spread() {
            return Cow::Borrowed(fields);
        }
        let mut rotated = fields.to_vec();
        self.multiply_by_phases(std::f64::consts::PI, &mut rotated);
        Cow::Owned(rotated)
    }
    /// Transforms `fields` from the gauge in which kernels compute to the gauge of the user.
    pub(super) fn take_spread_phases_back<T: Fermion>(&self, operator: &Operator, fields: &mut [HostField<T>]) {
        if operator.is_spread() {
            self.multiply_by_phases(-std::f64::consts::PI, fields);
        }
    }
    /// Computes ψ(t) ← e^{i angle t/T} ψ(t) for all fields.
    fn multiply_by_phases<T: Fermion>(&self, angle: f64, fields: &mut [HostField<T>]) {
        let section = self.domain.section();
        let angle = angle / section.global.size()[3] as f64;
        for field in fields {
            for (index, site) in field.sites_mut().iter_mut().enumerate() {
                let t = section.origin[3] + section.local.coordinates(index)[3];
                let phase = Complex64::cis(angle * t as f64);
                let numbers: &mut [Complex64] = bytemuck::cast_slice_mut(std::slice::from_mut(site));
                numbers.iter_mut().for_each(|z| *z *= phase);
            }
        }
    }
}

/// Refuses fields on which an operator does not act.
fn expect_fields<T: Fermion>(operator: &Operator) -> std::result::Result<(), SolveFailure<T>> {
    if operator.kind() == T::KIND {
        return Ok(());
    }
    let why = match T::KIND.spins() {
        1 => "the operator acts on spinors, but the fields are colour vectors: give spinors",
        _ => "the operator acts on colour vectors, but the fields are spinors: give colour vectors",
    };
    Err(SolveFailure::Solver(SolveError::Invalid(why)))
}

impl OperatorLinks for Configuration<'_> {
    fn thin(&self, theta: BoundaryAngles, precision: Precision, storage: LinkStorage) -> Result<Arc<DeviceGauge>> {
        self.links(theta, precision, storage)
    }
    fn fat_and_long(
        &self,
        smearing: Smearing,
        theta: BoundaryAngles,
        precision: Precision,
        storage: LinkStorage,
    ) -> Result<Arc<StaggeredLinks>> {
        let links = self.improved_links(smearing)?;
        links.keep_only(theta);
        links.packed(LinkFormatKey { theta, precision, storage })
    }
    fn diagonal(&self, operator: &Operator) -> Result<Diagonal> {
        self.term(*operator.parameters().expect("only Wilson-like operators have a diagonal term"))
    }
}
