//! Staggered operators on a configuration: links in every format, and solves of M ψ = η.
use super::configuration::Configuration;
use super::ladder::Formats;
use super::report::SolveFailure;
use super::request::{Method, Request};
use super::run::{Solved, solve};
use crate::dirac::{EvenOdd, EvenOddStaggered, Form, Staggered, StaggeredLinks, StaggeredParams, TimeBoundary};
use crate::domain::{DeviceError, Domain, Result};
use crate::fat_links::{Improvement, LinkGroup};
use crate::field::FullField;
use crate::field::host::{ColourVector, HostColour, HostGauge};
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{LinearOperator, Observer, SolveError};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Links of a staggered operator on a device, in every format that solves need, each made when it is first needed and
/// kept.
pub struct StaggeredConfiguration<'g> {
    links: Links<'g>,
    /// The antiperiodic boundary condition is spread over all links in t.
    spread: bool,
}

enum Links<'g> {
    Thin(Configuration<'g>),
    Improved(ImprovedConfiguration),
}

struct ImprovedConfiguration {
    links: Improvement,
    copies: RefCell<HashMap<(Precision, LinkStorage), Arc<StaggeredLinks>>>,
    singular: OnceCell<bool>,
}

impl ImprovedConfiguration {
    fn links(&self, precision: Precision, storage: LinkStorage) -> Result<Arc<StaggeredLinks>> {
        if let Some(links) = self.copies.borrow().get(&(precision, storage)) {
            return Ok(Arc::clone(links));
        }
        let links = Arc::new(self.links.pack(precision, storage)?);
        self.copies.borrow_mut().insert((precision, storage), links.clone());
        Ok(links)
    }
    /// Whether there are long links that 8 and 9 reals do not tell.
    fn is_singular(&self) -> Result<bool> {
        if let Some(known) = self.singular.get() {
            return Ok(*known);
        }
        let found = self.links.singular_long_links()? > 0;
        Ok(*self.singular.get_or_init(|| found))
    }
}

impl<'g> StaggeredConfiguration<'g> {
    /// For the naive operator, on thin links.
    pub fn naive(domain: &Domain, gauge: &'g HostGauge) -> Self {
        Self::of(Links::Thin(Configuration::new(domain, gauge)))
    }
    /// For an improved operator.
    pub fn improved(links: Improvement) -> Self {
        Self::of(Links::Improved(ImprovedConfiguration {
            links,
            copies: RefCell::default(),
            singular: OnceCell::new(),
        }))
    }
    fn of(links: Links<'g>) -> Self {
        StaggeredConfiguration { links, spread: false }
    }
    /// With the antiperiodic boundary condition spread over all links in t as factors e^{iπ/T}, as CL2QCD has it, instead
    /// of a sign of those that cross it. Sources and solutions are in that gauge: ψ(t) → e^{−iπt/T} ψ(t) leads there.
    #[must_use]
    pub fn with_spread_boundary(self) -> Self {
        StaggeredConfiguration { spread: true, ..self }
    }
    /// Where the links live.
    pub fn domain(&self) -> &Domain {
        match &self.links {
            Links::Thin(configuration) => configuration.domain(),
            Links::Improved(configuration) => configuration.links.fat.domain(),
        }
    }
    /// The links in a format.
    fn links(&self, precision: Precision, storage: LinkStorage) -> Result<Arc<StaggeredLinks>> {
        match &self.links {
            Links::Thin(thin) => Ok(Arc::new(StaggeredLinks::naive(thin.links(precision, storage)?))),
            Links::Improved(improved) => improved.links(precision, storage),
        }
    }
    /// How links can be stored, thin ones or long ones: as asked for where they are in the group and determined by so many
    /// real numbers. Long links that are not in SU(3) need the phase of their determinant.
    pub fn possible(&self, asked: LinkStorage) -> Result<LinkStorage> {
        let improved = match &self.links {
            Links::Thin(configuration) => return configuration.possible(asked),
            Links::Improved(improved) => improved,
        };
        let fitting = match improved.links.long_group {
            LinkGroup::Su3 => asked,
            LinkGroup::U3 => asked.with_phase(),
            LinkGroup::Neither => asked.with_all_reals(),
        };
        Ok(if fitting.has_singular_links() && improved.is_singular()? { fitting.with_two_rows() } else { fitting })
    }
    /// A request with formats that can be had, or why there are none.
    pub(super) fn checked(
        &self,
        request: &Request<StaggeredParams>,
    ) -> std::result::Result<Request<StaggeredParams>, SolveFailure<ColourVector>> {
        let invalid = |why| SolveFailure::Solver(SolveError::Invalid(why));
        request.check_precisions().map_err(invalid)?;
        if !matches!(request.method, Method::Cg | Method::BlockCg) {
            return Err(invalid("staggered operators are solved by CG or block CG, on M†M itself"));
        }
        let reconstruction = self.format(request.operator, request.precision, request.reconstruction)?;
        Ok(Request { reconstruction, ..*request })
    }
    /// The reconstruction in which an operator can be had, or why there is none.
    fn format(
        &self,
        params: StaggeredParams,
        precision: Precision,
        asked: LinkStorage,
    ) -> std::result::Result<LinkStorage, SolveFailure<ColourVector>> {
        let invalid = |why| SolveFailure::Solver(SolveError::Invalid(why));
        if !StaggeredLinks::exists(true, precision, asked) {
            return Err(invalid(
                "staggered operators are there in double, single and half with 18, 13, 12, 9 or 8 reals, and in single \
                 with 18h, 13h, 12h, 9h or 8h",
            ));
        }
        if matches!(self.links, Links::Thin(_)) && asked.keeps_phase() {
            return Err(invalid(
                "the links of the naive staggered operator are in SU(3): 18, 12 or 8 reals tell them; 13 and 9 are for \
                 long links of improved operators",
            ));
        }
        if self.spread && params.boundary != TimeBoundary::Antiperiodic {
            return Err(invalid("only an antiperiodic boundary condition can be spread over all links in t"));
        }
        Ok(self.possible(asked)?)
    }
    /// M†M on the even sites in a format, for blocks of `nrhs` vectors. Links that a format cannot keep are the caller's
    /// affair: see [`possible`](Self::possible).
    ///
    /// # Errors
    /// [`DeviceError::NoKernels`] for formats of which there are none: see [`StaggeredLinks::exists`]; and failures of the
    /// device.
    pub fn operator(
        &self,
        params: StaggeredParams,
        precision: Precision,
        reconstruction: LinkStorage,
        nrhs: usize,
    ) -> Result<Rc<dyn EvenOdd>> {
        let improved = matches!(self.links, Links::Improved(_));
        if !StaggeredLinks::exists(improved, precision, reconstruction) {
            let operator = if improved { "improved staggered" } else { "naive staggered" };
            return Err(DeviceError::NoKernels { operator, precision, reconstruction });
        }
        StaggeredOperators::new(self, params, 0, 0.0, nrhs)?.any(precision, reconstruction)
    }
    /// M ψ_j, M† ψ_j or M†M ψ_j on all sites for all fields together, with fields and links in a format, and the
    /// reconstruction in use, which is that of [`possible`](Self::possible). M†M is applied as solvers do it, parity by
    /// parity as m² − ¼ D².
    ///
    /// # Errors
    /// Formats that do not exist, and failures of the device.
    pub fn apply(
        &self,
        form: Form,
        fields: &[HostColour],
        params: StaggeredParams,
        (precision, reconstruction): (Precision, LinkStorage),
    ) -> std::result::Result<(Vec<HostColour>, LinkStorage), SolveFailure<ColourVector>> {
        self.domain().expect_sources(fields, None)?;
        let reconstruction = self.format(params, precision, reconstruction)?;
        let twisted = self.twisted(fields);
        let mut images = applied(form, self.links(precision, reconstruction)?, params, &twisted)?;
        self.twist(&mut images, true);
        Ok((images, reconstruction))
    }
    /// To the gauge in which kernels compute, or back from it.
    pub(super) fn twist(&self, fields: &mut [HostColour], back: bool) {
        if !self.spread {
            return;
        }
        let section = self.domain().section();
        for field in fields {
            let extent = section.global.size()[3];
            let angle = if back { -std::f64::consts::PI } else { std::f64::consts::PI } / extent as f64;
            for (index, site) in field.sites_mut().iter_mut().enumerate() {
                let t = section.origin[3] + section.local.coordinates(index)[3];
                let phase = Complex64::cis(angle * t as f64);
                site.iter_mut().for_each(|z| *z *= phase);
            }
        }
    }
    /// `fields` in the gauge in which kernels compute.
    pub(super) fn twisted<'a>(&self, fields: &'a [HostColour]) -> Cow<'a, [HostColour]> {
        if !self.spread {
            return Cow::Borrowed(fields);
        }
        let mut twisted = fields.to_vec();
        self.twist(&mut twisted, false);
        Cow::Owned(twisted)
    }

    /// Solves M ψ_j = η_j for all sources together, from a guess or from zero; m must not be zero.
    /// The method is [`Method::Cg`] or [`Method::BlockCg`], on M†M itself on the even sites. The observer sees every
    /// iteration and can stop it. Where rounding ends the solve above the tolerance, the solutions are returned with a
    /// report that has not converged.
    ///
    /// # Errors
    /// [`SolveFailure`]; where the solver gave up, with the best iterates.
    pub fn solve(
        &self,
        sources: &[HostColour],
        guess: Option<&[HostColour]>,
        request: &Request<StaggeredParams>,
        observer: &mut dyn Observer,
    ) -> Solved<ColourVector> {
        let begin = Instant::now();
        self.domain().expect_sources(sources, guess)?;
        let request = self.checked(request)?;
        if request.operator.mass == 0.0 {
            return Err(SolveFailure::Solver(SolveError::Invalid("the mass of a staggered operator must not be zero")));
        }
        let operators = StaggeredOperators::new(self, request.operator, 0, 0.0, sources.len())?;
        let (sources, guess) = (self.twisted(sources), guess.map(|fields| self.twisted(fields)));
        let back = |mut fields: Vec<HostColour>| {
            self.twist(&mut fields, true);
            fields
        };
        let solved = solve(&operators, &sources, guess.as_deref(), &request, observer, begin);
        solved.map(|(solutions, report)| (back(solutions), report)).map_err(|failure| failure.with_solutions(back))
    }
}

fn applied(
    form: Form,
    links: Arc<StaggeredLinks>,
    params: StaggeredParams,
    fields: &[HostColour],
) -> Result<Vec<HostColour>> {
    let (domain, precision, staggered) = (links.domain().clone(), links.precision(), Staggered::new(links, params));
    let field = || FullField::zero(&domain, FermionKind::Staggered, precision, fields.len());
    let (mut psi, mut out) = (field()?, field()?);
    psi.upload(fields)?;
    match form {
        Form::Plain | Form::Dagger => staggered.full(form == Form::Dagger, &psi, &mut out)?,
        Form::Normal => {
            for parity in 0..2 {
                let normal = EvenOddStaggered::shifted(staggered.clone(), parity, 0.0, fields.len())?;
                normal.apply(psi.parity(parity), out.parity_mut(parity))?;
            }
        }
    }
    out.download()
}

/// M†M + σ on the sites of one parity, in every format.
pub(super) struct StaggeredOperators<'c, 'g> {
    configuration: &'c StaggeredConfiguration<'g>,
    params: StaggeredParams,
    parity: usize,
    shift: f64,
    nrhs: usize,
    exact: Rc<dyn EvenOdd>,
}

impl<'c, 'g> StaggeredOperators<'c, 'g> {
    pub fn new(
        configuration: &'c StaggeredConfiguration<'g>,
        params: StaggeredParams,
        parity: usize,
        shift: f64,
        nrhs: usize,
    ) -> Result<Self> {
        let links = configuration.links(Precision::Double, LinkStorage::FULL)?;
        let exact = Rc::new(EvenOddStaggered::shifted(Staggered::new(links, params), parity, shift, nrhs)?);
        Ok(StaggeredOperators { configuration, params, parity, shift, nrhs, exact })
    }
}

impl Formats for StaggeredOperators<'_, '_> {
    fn domain(&self) -> &Domain {
        self.configuration.domain()
    }
    fn kind(&self) -> FermionKind {
        FermionKind::Staggered
    }
    fn exact(&self) -> Rc<dyn EvenOdd> {
        self.exact.clone()
    }
    fn any(&self, precision: Precision, storage: LinkStorage) -> Result<Rc<dyn EvenOdd>> {
        let StaggeredOperators { params, parity, shift, nrhs, .. } = *self;
        let staggered = Staggered::new(self.configuration.links(precision, storage)?, params);
        Ok(Rc::new(EvenOddStaggered::shifted(staggered, parity, shift, nrhs)?))
    }
    fn release_staged(&self) {
        if let Links::Thin(thin) = &self.configuration.links {
            thin.release_staged();
        }
    }
}
