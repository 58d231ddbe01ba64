//! Dirac operators on links that stay on a device, for interfaces that make an operator once and use it many times: applications, solves,
//! propagators and multigrid setups.
use crate::batches::{BatchChoice, bytes};
use crate::bounds::{at_most, positive};
use crate::eigenvalues::{self, EigenvalueSettings};
use crate::failure::FailureKind;
use crate::grid_device::GridDevice;
use crate::host_fields::{HeldFermion, HostFields, check_finite, check_finite_fields, components, site_shape};
use crate::outcome::{self, SystemKind};
use crate::solver::{MOST_ITERATIONS, SolverSettings};
use crate::spectrum::one_time::{self, OneTime};
use crate::spectrum::sink::SinkRequest;
use crate::spectrum::spatial::SpatialWork;
use crate::{Failure, Outcome, with_fields};
use ferrite::backend::MAX_RHS_PER_LAUNCH;
use ferrite::field::host::{ColourVector, Fermion, HostField, HostGauge, Spinor};
use ferrite::field::{DeviceArray, FieldShape, FullField};
use ferrite::files::setup::links_checksum;
use ferrite::gauge::generate;
use ferrite::lattice::Section;
use ferrite::multigrid::{Coarsening, Multigrid};
use ferrite::observables::spectrum::contraction_bytes;
use ferrite::observables::spectrum::smearing::{GaussianSmearing, SmearingLinks};
use ferrite::operators::fat_links::Improvement;
use ferrite::operators::{Operator, OperatorForm, WilsonLike};
use ferrite::solve::setup_file::{self, SetupError};
use ferrite::solve::{Configuration, Report, Request, SolveFailure, in_batches, names, shifts_in_batches};
use ferrite::{FermionKind, LinkStorage, Precision};
use ferrite_records::operator::{LargestRecord, SmallestRecord};
use ferrite_records::solve::{ObservedShifts, ObservedSolve, SetupLevel, SetupRecord};
use num_complex::Complex64;
use serde::Deserialize;
use solvers::{Iteration, IterationKind, Observer, SolveError, Step, Unsolved};
use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Dirac operator with its links. The device keeps the links in every format that a solve or a product has used.
pub struct LinkedDirac {
    configuration: Configuration<'static>,
    operator: Operator,
    part: Section,
    /// Links of the configuration; `None` for fat and long links.
    gauge: Option<Arc<HostGauge>>,
    /// Checksum that identifies the links in a file of a multigrid setup.
    checksum: OnceCell<String>,
}

/// Gaussian smearing of sources and sinks, with its links.
#[derive(Clone)]
pub struct LinkedSmearing {
    /// Links on the sites of the fields that are smeared.
    pub gauge: Arc<HostGauge>,
    /// Parameters of the Gaussian smearing.
    pub smearing: GaussianSmearing,
}

/// Source on one time slice that has the same spatial profile for each spin and colour.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSource {
    /// Time slice, counted on the whole lattice.
    pub time: usize,
    /// Spatial profile `[z, y, x]` on this process's part of the lattice; `None` is allowed on processes that do not have the time slice.
    pub profile: Option<Vec<Complex64>>,
}

/// Masses or shifts of a series of systems, which are solved with one staggered operator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemSeries {
    /// Values of σ in (M†M + σ) x = b.
    Shifts(Vec<f64>),
    /// Values of the mass m in M(m) x = b.
    Masses(Vec<f64>),
}

/// Largest number of fields in an array on a device.
const TOGETHER: usize = 16;

/// Largest number of fields that are smeared together.
const SMEARED_TOGETHER: usize = 12;

/// Observer that records the true residuals of a solve and passes all events on to another observer.
struct TrueResiduals<'a> {
    observer: &'a mut dyn Observer,
    updates: Vec<(usize, Vec<f64>)>,
}

impl<'a> TrueResiduals<'a> {
    fn new(observer: &'a mut dyn Observer) -> Self {
        TrueResiduals { observer, updates: Vec::new() }
    }
    /// Returns the record of a solve with the true residuals.
    fn record(self, request: &Request, report: &Report, failure: Option<Unsolved>) -> ObservedSolve {
        let failure = failure.map(|error| {
            let advice = names::advice(report, &error, |name| format!("solver=\"{name}\""), "a larger max_iterations");
            format!("{error}{advice}")
        });
        ObservedSolve { outcome: outcome::solve(report, request.tol), failure, updates: self.updates }
    }
}

impl Observer for TrueResiduals<'_> {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        if event.kind != IterationKind::Iterate {
            self.updates.push((event.iteration, event.residuals.to_vec()));
        }
        self.observer.iteration(event)
    }
    fn step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.observer.step(step)
    }
}

/// Converts the failure of a solve. Invalid settings become a failure that all processes share.
fn refused<F: Fermion>(failure: SolveFailure<F>) -> Failure {
    match failure {
        SolveFailure::Solver(SolveError::Invalid(why)) => Failure::refused(why).shared(),
        failure => failure.into(),
    }
}

impl LinkedDirac {
    /// Creates an operator on the links `gauge`, which are on the sites of `part` of the lattice.
    ///
    /// # Errors
    /// Links of another device; failures of the device.
    pub fn new(device: &GridDevice, operator: Operator, part: Section, gauge: Arc<HostGauge>) -> Outcome<Self> {
        let configuration = Configuration::of_shared(&device.domain(&part)?, gauge.clone());
        Ok(LinkedDirac { configuration, operator, part, gauge: Some(gauge), checksum: OnceCell::new() })
    }
    /// Creates an improved staggered operator on existing fat and long links, which are on the sites of `part` of the lattice.
    pub fn improved(operator: Operator, part: Section, links: Improvement) -> Self {
        let configuration = Configuration::improved(links);
        LinkedDirac { configuration, operator, part, gauge: None, checksum: OnceCell::new() }
    }
    /// Replaces the operator by another one on the same links.
    pub fn set_operator(&mut self, operator: Operator) {
        self.operator = operator;
    }
    /// Returns the links of all operators, with what solves and products have made of them.
    pub fn configuration(&self) -> &Configuration<'static> {
        &self.configuration
    }
    /// Returns whether the operator acts on Wilson or on staggered fermions.
    pub fn kind(&self) -> FermionKind {
        self.operator.kind()
    }
    /// Returns the number of fermion fields in a device array whose shape is `shape`.
    ///
    /// # Errors
    /// Arrays of other fields, and too many fields.
    pub fn fields_of_shape(&self, shape: &[usize]) -> Outcome<usize> {
        let own = site_shape(self.kind());
        let Some(front) = shape.len().checked_sub(4 + own.len()) else {
            let axes = 4 + own.len();
            return Err(Failure::refused(format!(
                "an array of shape {shape:?} is not a field: a field of this operator has at least {axes} axes"
            )));
        };
        let (front, field) = shape.split_at(front);
        let expected: Vec<usize> = self.part.local.size().into_iter().rev().chain(own.iter().copied()).collect();
        if field != expected {
            let why = format!("the shape of a field of this operator is {expected:?}, not {field:?}");
            return Err(Failure::refused(why));
        }
        let count = front.iter().product();
        if !(1..=TOGETHER).contains(&count) {
            let why = format!(
                "{count} fields are given, but a device computes 1 to {TOGETHER} fields together: give 1 to {TOGETHER}"
            );
            return Err(Failure::refused(why));
        }
        Ok(count)
    }
    /// *Collective.* Returns M ψ, M† ψ or M†M ψ, as `form` selects, in double precision for each field ψ in host memory.
    ///
    /// # Errors
    /// Fields of another kind or lattice, a request to stop, and failures of the device.
    pub fn apply(
        &self,
        form: OperatorForm,
        fields: &HostFields,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Outcome<HostFields> {
        with_fields!(fields, fields => {
            let mut images = Vec::with_capacity(fields.len());
            for batch in fields.chunks(MAX_RHS_PER_LAUNCH) {
                check(go_on)?;
                let (precision, links) = (Precision::Double, LinkStorage::FULL);
                let found = self.configuration.apply(form, false, batch, &self.operator, precision, links);
                images.extend(found.map_err(refused)?.0);
            }
            Ok(images.into())
        })
    }
    /// *Collective.* Returns M ψ, M† ψ or M†M ψ, as `form` selects, in double precision for each of the `count` fields ψ in an array on the
    /// device.
    ///
    /// # Errors
    /// An array of another device, and failures of the device.
    pub fn apply_array(&self, form: OperatorForm, array: &DeviceArray, count: usize) -> Outcome<DeviceArray> {
        let field = self.field(array, count)?;
        let image = self.configuration.apply_field(form, field, &self.operator).map_err(refused)?.unpack()?;
        self.configuration.domain().backend().synchronize()?;
        Ok(image)
    }
    /// *Collective.* Solves M x = b for each field b. Returns the solutions, or the best iterates if the solver gave up.
    ///
    /// # Errors
    /// Settings that make no sense, numbers that are not finite, too little memory, and failures of the device.
    pub fn solve(
        &self,
        device: &GridDevice,
        fields: &HostFields,
        guess: Option<&HostFields>,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(HostFields, ObservedSolve)> {
        with_fields!(fields, fields => self.solve_fields(device, fields, guess, settings, observer))
    }
    fn solve_fields<F: HeldFermion>(
        &self,
        device: &GridDevice,
        fields: &[HostField<F>],
        guess: Option<&HostFields>,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(HostFields, ObservedSolve)>
    where
        HostFields: From<Vec<HostField<F>>>,
    {
        let (request, batch) = self.request(settings)?;
        let other = || Failure::refused("b and guess are fields of different kinds: give two fields of one kind");
        let guess = guess.map(|guess| F::held(guess).ok_or_else(other)).transpose()?;
        let finite = check_finite_fields("b", fields);
        device.comm().agree(finite.and_then(|()| check_finite_fields("guess", guess.unwrap_or_default())))?;
        let request = Request { sources: fields.len(), ..request };
        let sizes = self.sizes(device, &request, fields.len(), batch, (None, 0))?;
        let request = self.possible(request)?;
        let mut residuals = TrueResiduals::new(observer);
        let solved = in_batches(&sizes, fields, guess, |sources, guess| {
            self.configuration.solve(sources, guess, &request, &mut residuals)
        });
        let (solutions, report, error) = match solved {
            Ok((solutions, report)) => (solutions, report, None),
            Err(SolveFailure::Unfinished { error, solutions, report }) => (solutions, *report, Some(error)),
            Err(failure) => return Err(refused(failure)),
        };
        Ok((solutions.into(), residuals.record(&request, &report, error)))
    }
    /// *Collective.* Solves M x = b for each field b of an array on the device. Returns the solutions, or the best iterates if the solver
    /// gave up.
    ///
    /// # Errors
    /// Settings that make no sense, numbers that are not finite, and failures of the device.
    pub fn solve_array(
        &self,
        device: &GridDevice,
        (array, count): (&DeviceArray, usize),
        guess: Option<&DeviceArray>,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(DeviceArray, ObservedSolve)> {
        let (request, _) = self.request(settings)?;
        let request = self.possible(Request { sources: count, ..request })?;
        let (source, guess) = (self.field(array, count)?, guess.map(|guess| self.field(guess, count)).transpose()?);
        let mut residuals = TrueResiduals::new(observer);
        let solved = self.configuration.solve_fields(source, guess, &request, &mut residuals);
        let (solution, report, failure) = solved.map_err(refused)?;
        if report.true_residual.iter().any(|residual| residual.is_nan()) {
            // The array is not checked before the solve, because it may be large and its download slow.
            let mut numbers = vec![Complex64::ZERO; array.len()];
            array.download(0, &mut numbers)?;
            device.comm().agree(check_finite("b", &numbers))?;
        }
        let solution = solution.unpack()?;
        self.configuration.domain().backend().synchronize()?;
        Ok((solution, residuals.record(&request, &report, failure)))
    }
    /// *Collective.* Solves systems of a staggered operator that differ by a mass or a shift. Returns the solutions system by system: all
    /// solutions of the first system, then all solutions of the second one, and so on.
    ///
    /// # Errors
    /// Fields that are not staggered, settings that make no sense, numbers that are not finite, too little memory, and failures of the
    /// device.
    pub fn solve_series(
        &self,
        device: &GridDevice,
        fields: &HostFields,
        series: &SystemSeries,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(HostFields, ObservedShifts)> {
        let (request, batch) = self.request(settings)?;
        let strategy = settings.strategy()?;
        let request = request.for_systems(strategy, self.configuration.domain().backend());
        let staggered = || {
            Failure::refused("several masses or shifts need a staggered operator: solve with an operator for each mass")
        };
        let fields = ColourVector::held(fields).ok_or_else(staggered)?;
        device.comm().agree(check_finite_fields("b", fields))?;
        let (kind, values) = match series {
            SystemSeries::Shifts(shifts) => (SystemKind::Shift, shifts),
            SystemSeries::Masses(masses) => (SystemKind::Mass, masses),
        };
        let sizes = self.sizes(device, &request, fields.len(), batch, (Some(values.len()), 0))?;
        let configuration = &self.configuration;
        let solved = shifts_in_batches(&sizes, fields, |sources| match series {
            SystemSeries::Shifts(shifts) => configuration.solve_shifts(sources, shifts, strategy, &request, observer),
            SystemSeries::Masses(masses) => configuration.solve_masses(sources, masses, strategy, &request, observer),
        });
        let (solutions, report) = solved.map_err(refused)?;
        let outcome = outcome::shifts(&request, &report, kind, values);
        let solutions: Vec<_> = solutions.into_iter().flatten().collect();
        Ok((solutions.into(), ObservedShifts { outcome, failure: None }))
    }
    /// *Collective.* Returns whether propagators can stay on the device: whether its free memory suffices for a solve for half of a
    /// source's components and for a contraction of two propagators.
    ///
    /// # Errors
    /// Settings that make no sense, and failures of the device.
    pub fn can_keep(&self, device: &GridDevice, settings: &SolverSettings) -> Outcome<bool> {
        let ((request, _), kind, local) = (self.request(settings)?, self.kind(), self.part.local);
        let together = if kind == FermionKind::Wilson { 6 } else { 2 };
        let solve = bytes(&request.memory(local, &device.place().grid, together, None));
        Ok(solve + contraction_bytes(kind, local.volume(), 2) <= device.free()?)
    }
    /// *Collective.* Solves for all components of a source, which is smeared if `smearing` is given. The solutions stay on the device.
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    pub fn propagator(
        &self,
        device: &GridDevice,
        source: &ProfileSource,
        smearing: Option<&LinkedSmearing>,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(FullField, ObservedSolve)> {
        match self.kind() {
            FermionKind::Wilson => self.propagator_of::<Spinor>(device, source, smearing, settings, observer),
            FermionKind::Staggered => self.propagator_of::<ColourVector>(device, source, smearing, settings, observer),
        }
    }
    fn propagator_of<F: Fermion>(
        &self,
        device: &GridDevice,
        source: &ProfileSource,
        smearing: Option<&LinkedSmearing>,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(FullField, ObservedSolve)> {
        let fields = one_time::of_profile::<F>(&self.part, source.time, source.profile.as_deref())?;
        let finite = check_finite_fields("the source", fields.as_ref().map_or(&[][..], |(_, fields)| fields));
        device.comm().agree(finite)?;
        let sources = self.smeared(device, fields, smearing)?;
        self.solved(device, &sources, settings, observer)
    }
    /// *Collective.* Solves for the sequential propagator through a sink, whose sources are made from the propagator `from`. If `smearing`
    /// is given, smears `from` at the sink and also the sequential sources. The solutions stay on the device.
    ///
    /// # Errors
    /// As [`solve`](Self::solve), and a sink that does not exist.
    pub fn propagator_through(
        &self,
        device: &GridDevice,
        from: &FullField,
        sink: &SinkRequest,
        smearing: Option<&LinkedSmearing>,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(FullField, ObservedSolve)> {
        let hadron = sink.hadron(self.part.global)?;
        let section = self.part.at_time(sink.place.time);
        let at_sink = |section: &Section| -> Outcome<_> {
            let local = section.origin[3] - self.part.origin[3];
            Ok((local, from.at_time::<Spinor>(local)?))
        };
        let there = section.as_ref().map(at_sink).transpose()?;
        let there = self.smeared(device, there, smearing)?;
        let made =
            |((local, fields), section): ((usize, Vec<_>), _)| (local, hadron.sources(section, &fields, &sink.place));
        let sources = self.smeared(device, there.zip(section).map(made), smearing)?;
        self.solved(device, &sources, settings, observer)
    }
    /// *Collective.* Solves for all components of a source on one time slice.
    fn solved<F: Fermion>(
        &self,
        device: &GridDevice,
        sources: &OneTime<F>,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(FullField, ObservedSolve)> {
        let ((request, batch), domain) = (self.request(settings)?, self.configuration.domain());
        let (request, count) = (Request { sources: F::COMPONENTS, ..request }, F::COMPONENTS);
        let whole = 2 * FieldShape::new(F::KIND, Precision::Double, count).bytes(self.part.local.half_volume());
        let sizes = self.sizes(device, &request, count, batch, (None, whole))?;
        let request = self.possible(request)?;
        let mut residuals = TrueResiduals::new(observer);
        let solved = one_time::solved(sources, &sizes, [domain, domain], |source| {
            self.configuration.solve_fields(source, None, &request, &mut residuals)
        });
        let (mut solutions, report, error) = solved.map_err(refused)?;
        // Rounding in a change of the spin basis alters the solutions. This step gives them the bits of an array that was made from them.
        solutions.pack(&solutions.unpack()?)?;
        Ok((solutions, residuals.record(&request, &report, error)))
    }
    /// *Collective.* Smears fields of one time slice if `smearing` is given.
    fn smeared<F: Fermion>(
        &self,
        device: &GridDevice,
        sources: OneTime<F>,
        smearing: Option<&LinkedSmearing>,
    ) -> Outcome<OneTime<F>> {
        let Some(LinkedSmearing { gauge, smearing }) = smearing else { return Ok(sources) };
        let domain = device.domain_of_two_times(&self.part)?;
        Ok(one_time::worked_on(&domain, gauge, sources, SpatialWork::Smearing(*smearing))?)
    }
    /// *Collective.* Creates the multigrid setup for solves with the settings `settings`. Returns a record of its time and levels.
    ///
    /// # Errors
    /// Staggered operators, settings that make no sense, a request to stop, and failures of the device.
    pub fn set_up(&self, settings: &SolverSettings, observer: &mut dyn Observer) -> Outcome<SetupRecord> {
        let (request, _) = self.request(settings)?;
        self.set_up_for(&request, observer)
    }
    fn set_up_for(&self, request: &Request, observer: &mut dyn Observer) -> Outcome<SetupRecord> {
        let configuration = &self.configuration;
        request.multigrid.aggregates(configuration.domain().local()).map_err(Failure::refused)?;
        let storage = configuration.possible(&request.operator, request.reconstruction)?;
        let made = configuration.set_up_multigrid(self.wilson_like()?, &request.multigrid, storage, observer);
        let multigrid = made.map_err(|error| refused(SolveFailure::<Spinor>::Solver(error)))?;
        Ok(setup_record(&multigrid))
    }
    /// Returns the current multigrid setup; `None` if there is none.
    pub fn setup(&self) -> Option<Rc<Multigrid>> {
        self.configuration.multigrid_setup().map(|(_, setup)| setup)
    }
    /// Frees the multigrid setup.
    pub fn forget_setup(&self) {
        self.configuration.forget_multigrid();
    }
    /// *Collective.* Writes the near-null vectors of the current multigrid setup to a file. Returns the number of vectors.
    ///
    /// # Errors
    /// No setup, a file that cannot be written, and failures of the device.
    pub fn save_setup(&self, device: &GridDevice, path: &Path) -> Outcome<usize> {
        let links = self.checksum(device)?;
        device.with_file(path, |file| {
            setup_file::save(file.part(&self.part), &self.configuration, links).map_err(|why| of_setup(path, why))
        })
    }
    /// *Collective.* Creates a multigrid setup from the near-null vectors of a file.
    ///
    /// # Errors
    /// As [`set_up`](Self::set_up), and a file that is damaged or of other links or another operator.
    pub fn load_setup(
        &self,
        device: &GridDevice,
        path: &Path,
        settings: &SolverSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<SetupRecord> {
        let (mut request, _) = self.request(settings)?;
        let (operator, links) = (self.wilson_like()?, self.checksum(device)?);
        let loaded = device.with_file(path, |file| {
            let loaded = setup_file::load(file.part(&self.part), &self.configuration, operator, links, None);
            loaded.map_err(|why| of_setup(path, why))
        })?;
        request.multigrid.vectors = loaded.vectors;
        self.set_up_for(&request, observer)
    }
    /// *Collective.* Returns the smallest and the largest eigenvalue of M̂†M̂, where M̂ is the even-odd preconditioned operator on the even
    /// sites; of M†M for staggered operators.
    ///
    /// # Errors
    /// Settings that make no sense, solvers that give up, and failures of the device.
    pub fn eigenvalues(
        &self,
        settings: &EigenvalueSettings,
        observer: &mut dyn Observer,
    ) -> Outcome<(SmallestRecord, LargestRecord)> {
        positive("tol", settings.tol)?;
        at_most("steps", settings.steps as u64, MOST_ITERATIONS as u64)?;
        at_most("max_iterations", settings.max_iterations as u64, MOST_ITERATIONS as u64)?;
        let domain = self.configuration.domain();
        let mut start = FullField::zero(domain, FieldShape::new(self.kind(), Precision::Double, 1))?;
        match self.kind() {
            FermionKind::Wilson => start.upload(&[generate::random_source::<Spinor>(self.part, settings.seed)])?,
            FermionKind::Staggered => {
                start.upload(&[generate::random_source::<ColourVector>(self.part, settings.seed)])?
            }
        }
        let bounds = self.configuration.spectral_bounds(&self.operator, &start, &settings.params(), observer);
        Ok(eigenvalues::records(&bounds.map_err(refused)?))
    }
    fn wilson_like(&self) -> Outcome<WilsonLike> {
        let operator = self.operator.parameters::<WilsonLike>().copied();
        let other = || Failure::refused("multigrid applies to Wilson-like operators only: choose another solver");
        operator.ok_or_else(other)
    }
    /// *Collective.* Returns the checksum of the links, which is computed once.
    fn checksum(&self, device: &GridDevice) -> Outcome<&str> {
        if let Some(known) = self.checksum.get() {
            return Ok(known);
        }
        let none = || Failure::refused("fat and long links have no checksum, which a file of a multigrid setup needs");
        let gauge = self.gauge.as_ref().ok_or_else(none)?;
        let links = links_checksum(gauge, &self.part, &*device.comm().network()).map_err(Failure::failed)?;
        Ok(self.checksum.get_or_init(|| links))
    }
    /// Returns the request that corresponds to settings, and the choice of the batch size.
    fn request(&self, settings: &SolverSettings) -> Outcome<(Request, BatchChoice)> {
        Ok((settings.request(self.operator.clone())?, settings.batch()?))
    }
    /// Returns a request with its open formats chosen, and with a link storage that is possible for these links.
    fn possible(&self, request: Request) -> Outcome<Request> {
        let request = request.on(Some(self.configuration.domain().backend()));
        let reconstruction = self.configuration.possible(&request.operator, request.reconstruction)?;
        Ok(Request { reconstruction, ..request })
    }
    /// *Collective.* Returns the sizes of the batches: as requested, or as large as memory allows if `beside` bytes stay free.
    fn sizes(
        &self,
        device: &GridDevice,
        request: &Request,
        n: usize,
        batch: BatchChoice,
        (systems, beside): (Option<usize>, usize),
    ) -> Outcome<Vec<usize>> {
        let needs = |nrhs: usize| request.memory(self.part.local, &device.place().grid, nrhs, systems);
        Ok(device.split(batch, n, beside, needs)?.sizes)
    }
    /// Returns an array on the device as fields in double precision.
    fn field(&self, array: &DeviceArray, count: usize) -> Outcome<FullField> {
        let shape = FieldShape::new(self.kind(), Precision::Double, count);
        let mut field = FullField::zero(self.configuration.domain(), shape)?;
        field.pack(array)?;
        Ok(field)
    }
}

impl LinkedSmearing {
    /// *Collective.* Smears fields in host memory on all time slices.
    ///
    /// # Errors
    /// Fields on another lattice than the links, a request to stop, and failures of the device.
    pub fn fields(
        &self,
        device: &GridDevice,
        part: &Section,
        fields: &HostFields,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Outcome<HostFields> {
        let found = fields.lattice()?;
        if found != self.gauge.lattice() {
            let own = self.gauge.lattice();
            let why = format!("a field on {found} cannot be smeared with links on {own}: give a field on {own}");
            return Err(Failure::refused(why));
        }
        let links = self.links(device, part, fields.kind())?;
        with_fields!(fields, fields => {
            let mut all = Vec::with_capacity(fields.len());
            for together in fields.chunks(SMEARED_TOGETHER) {
                check(go_on)?;
                all.extend(links.smear(&self.smearing, together)?);
            }
            Ok(all.into())
        })
    }
    /// *Collective.* Returns a smeared copy of the fields `field` on the device. All time slices are smeared.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn copy_of(&self, device: &GridDevice, part: &Section, field: &FullField) -> Outcome<FullField> {
        let links = self.links(device, part, field.even.kind())?;
        let copy = field.rhs(0..field.even.nrhs(), links.domain())?;
        Ok(links.smear_on_device(&self.smearing, copy)?)
    }
    fn links(&self, device: &GridDevice, part: &Section, kind: FermionKind) -> Outcome<SmearingLinks> {
        let (domain, momentum) = (device.domain(part)?, self.smearing.momentum);
        Ok(SmearingLinks::new(&domain, &self.gauge, kind, Precision::Double, momentum)?)
    }
}

/// Copies the fields of a propagator from host memory to the device.
///
/// # Errors
/// Fields on another lattice; failures of the device.
pub fn on_device(device: &GridDevice, part: &Section, fields: &HostFields) -> Outcome<FullField> {
    let domain = device.domain(part)?;
    Ok(with_fields!(fields, fields => FullField::of_host(&domain, fields)?))
}

/// Returns the shape of a propagator's array on a part of the lattice.
pub fn propagator_shape(kind: FermionKind, part: &Section) -> Vec<usize> {
    let sites = part.local.size().into_iter().rev();
    [components(kind)].into_iter().chain(sites).chain(site_shape(kind).iter().copied()).collect()
}

/// Returns an error if the interface requests to stop.
pub(crate) fn check(go_on: &mut dyn FnMut() -> ControlFlow<()>) -> Outcome {
    if go_on().is_break() { Err(Failure::stopped()) } else { Ok(()) }
}

fn setup_record(multigrid: &Multigrid) -> SetupRecord {
    let level = |level: &Coarsening| SetupLevel { block: level.space.block().into(), vectors: level.space.count() };
    let levels: Vec<SetupLevel> = multigrid.levels().iter().map(level).collect();
    let vectors = levels.first().map_or(0, |level| level.vectors);
    SetupRecord { seconds: multigrid.seconds(), levels, vectors }
}

fn of_setup(path: &Path, why: SetupError) -> Failure {
    match why {
        SetupError::File(error) => error.into(),
        SetupError::Device(error) => error.into(),
        why @ SetupError::None => Failure::refused(why),
        why => Failure::refused(format!("{} {why}", path.display())).of_kind(FailureKind::File),
    }
}
