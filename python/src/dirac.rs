//! Dirac operators on a device: applying them, and solving.
use crate::arrays::{self, Given, Made};
use crate::device::{Device, DeviceThread, Kept, Stop};
use crate::failure::{Failure, FailureKind, Outcome};
use crate::keys;
use crate::links::Links;
use crate::processes::failed;
use crate::propagator::{self, DevicePropagator, GivenShell, OneTime, Shell, of_profile};
use crate::shared::Shared;
use crate::spectrum::Sink;
use crate::typed::Typed;
use ferrite::backend::MAX_RHS_PER_LAUNCH;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, Fermion, HostField, HostGauge, Spinor};
use ferrite::field::{DeviceArray, FieldShape, FullField};
use ferrite::files::SharedFile;
use ferrite::files::setup::links_checksum;
use ferrite::lattice::{Lattice, Section};
use ferrite::multigrid::{Coarsening, Multigrid};
use ferrite::num_complex::Complex64;
use ferrite::observables::spectrum::contraction_bytes;
use ferrite::operators::{Definition, Key, KeyKind, OPERATORS, Operator, OperatorForm, WilsonLike};
use ferrite::solve::setup_file::{self, SetupError};
use ferrite::solve::{
    Configuration, METHODS, Report, Request, SolveFailure, for_batches, in_batches, names, shifts_in_batches,
};
use ferrite::solvers::{Iteration, IterationKind, Observer, Step, Unsolved};
use ferrite::{FermionKind, LinkStorage, Precision};
use ferrite_records::solve::{ShiftsOutcome, SolveOutcome};
use ferrite_tasks::batches::{BatchChoice, bytes};
use ferrite_tasks::outcome::{self, SystemKind};
use ferrite_tasks::solver::SolverSettings;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// A Dirac operator on the links of a device, in every format that was asked for so far.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct Dirac {
    kept: Kept,
    device: Py<Device>,
    operator: Operator,
    part: Section,
    gauge: Arc<HostGauge>,
    /// What is known of it.
    description: Map<String, Value>,
}

/// `plain`, `dagger` or `normal`.
fn form_of(name: &str) -> OperatorForm {
    match name {
        "plain" => OperatorForm::Plain,
        "dagger" => OperatorForm::Dagger,
        _ => OperatorForm::Normal,
    }
}

/// Watches a solve: keeps its true residuals, and ends it when that is requested.
struct Watch {
    stop: Stop,
    updates: Vec<(usize, Vec<f64>)>,
}

impl Observer for Watch {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        if event.kind != IterationKind::Iterate {
            self.updates.push((event.iteration, event.residuals.to_vec()));
        }
        self.stop.flow()
    }
    fn step(&mut self, _: &Step<'_>) -> ControlFlow<()> {
        self.stop.flow()
    }
}

impl Watch {
    fn new(stop: &Stop) -> Self {
        Watch { stop: stop.clone(), updates: Vec::new() }
    }
}

/// Multigrid, where its aggregates fit this process's part of the lattice; `stop` ends its setup.
fn set_up(
    configuration: &Configuration<'_>,
    operator: WilsonLike,
    request: &Request,
    stop: &Stop,
) -> Outcome<Rc<Multigrid>> {
    let local = configuration.domain().local();
    request.multigrid.aggregates(local).map_err(|why| Failure::input(why.to_string()))?;
    let storage = configuration.possible(&request.operator, request.reconstruction)?;
    let made = configuration.set_up_multigrid(operator, &request.multigrid, storage, &mut Watch::new(stop));
    made.map_err(|error| SolveFailure::<Spinor>::Solver(error).into())
}

/// A multigrid setup.
#[derive(Serialize)]
struct SetupRecord {
    seconds: f64,
    levels: Vec<SetupLevel>,
    /// Near-null vectors of the finest level.
    vectors: usize,
}

/// A level with a coarser one.
#[derive(Serialize)]
struct SetupLevel {
    block: Vec<usize>,
    vectors: usize,
}

impl SetupRecord {
    fn new(multigrid: &Multigrid) -> Self {
        let level = |level: &Coarsening| SetupLevel { block: level.space.block().into(), vectors: level.space.count() };
        let levels: Vec<SetupLevel> = multigrid.levels().iter().map(level).collect();
        let vectors = levels.first().map_or(0, |level| level.vectors);
        SetupRecord { seconds: multigrid.seconds(), levels, vectors }
    }
}

/// Report of a solve.
#[derive(Serialize)]
pub struct SolveReport {
    #[serde(flatten)]
    outcome: SolveOutcome,
    failure: Option<String>,
    /// Iterations at which true residuals were computed, with those of the right-hand sides of the batch.
    updates: Vec<(usize, Vec<f64>)>,
}

impl SolveReport {
    fn new(request: &Request, report: &Report, watch: Watch, failure: Option<Unsolved>) -> Self {
        let failure = failure.map(|error| {
            let advice = names::advice(report, &error, |name| format!("solver=\"{name}\""), "a larger max_iterations");
            format!("{error}{advice}")
        });
        SolveReport { outcome: outcome::solve(report, request.tol), failure, updates: watch.updates }
    }
}

/// Report of a solve for several masses or shifts.
#[derive(Serialize)]
pub struct ShiftsSolveReport {
    #[serde(flatten)]
    outcome: ShiftsOutcome,
    failure: Option<String>,
}

/// Splits right-hand sides into batches: as requested, or as memory allows.
fn sizes(
    thread: &DeviceThread,
    request: &Request,
    local: Lattice,
    n: usize,
    batch: BatchChoice,
    (systems, beside): (Option<usize>, usize),
) -> Outcome<Vec<usize>> {
    let free = thread.free()?.saturating_sub(beside);
    let needs = |nrhs: usize| request.memory(local, &thread.processes.cut.grid, nrhs, systems);
    let (batches, needed) = batch.split_with_needs(free, n, needs);
    if batch.requested.is_none() && bytes(&needed) > free {
        return Err(Failure {
            kind: FailureKind::Device,
            message: format!(
                "the solve needs {:.2} GB on {}, of which {:.2} GB are free: use a smaller lattice, a lower precision, or \
                 another device",
                bytes(&needed) as f64 * 1e-9,
                thread.backend.device(),
                free as f64 * 1e-9
            ),
        });
    }
    Ok(batches.sizes)
}

/// Work with an operator's links on the device.
fn with_configuration<T>(
    thread: &mut DeviceThread,
    number: u64,
    work: impl FnOnce(&mut DeviceThread, &Configuration<'static>) -> Outcome<T>,
) -> Outcome<T> {
    let configuration = std::mem::take(thread.kept::<Option<Configuration<'static>>>(number)?);
    let Some(configuration) = configuration else {
        return Err(Failure::other(
            "an internal error has ended the operator's last work, and left it incomplete: make it anew",
        ));
    };
    let done = work(thread, &configuration);
    *thread.kept(number)? = Some(configuration);
    done
}

/// Most fields of an array on a device that are applied to or solved for together.
const TOGETHER: usize = 16;

/// Solutions and a report.
type Answer<T, R> = (Vec<HostField<T>>, R);

impl Dirac {
    /// Returns the request that settings make, and how many right-hand sides are solved together.
    fn request(&self, settings: &SolverSettings) -> Outcome<(Request, BatchChoice)> {
        Ok((settings.request(self.operator.clone())?, settings.batch()?))
    }
    fn on<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut DeviceThread, &Configuration<'static>, &Stop) -> Outcome<T> + Send + 'static,
    ) -> PyResult<T> {
        let number = self.kept.number();
        self.device.get().run(py, move |thread, stop| {
            with_configuration(thread, number, |thread, configuration| work(thread, configuration, stop))
        })
    }
    /// *Collective.* Solves for all components of a source of one time, and leaves the solutions on the device.
    fn keep_propagator<T: Fermion>(
        &self,
        py: Python<'_>,
        settings: SolverSettings,
        source: impl FnOnce(&mut DeviceThread) -> Outcome<OneTime<T>> + Send + 'static,
    ) -> PyResult<(DevicePropagator, Typed<SolveReport>)> {
        let (request, batch) = self.request(&settings)?;
        let (part, number) = (self.part, self.kept.number());
        let (kept, report) = self.device.get().keep_beside(py, move |thread, stop| {
            let source = source(thread)?;
            let work = |thread: &mut DeviceThread, configuration: &Configuration<'_>| {
                let (domain, count) = (configuration.domain(), T::COMPONENTS);
                let mut request = Request { sources: count, ..request };
                let whole = 2 * FieldShape::new(T::KIND, Precision::Double, count).bytes(part.local.half_volume());
                let sizes = sizes(thread, &request, part.local, count, batch, (None, whole))?;
                request.reconstruction = configuration.possible(&request.operator, request.reconstruction)?;
                let (mut watch, mut solutions) = (Watch::new(stop), None);
                let solved = for_batches::<Spinor>(&sizes, count, false, |batch| {
                    let some = match &source {
                        Some((time, fields)) => FullField::of_time(domain, *time, &fields[batch.clone()])?,
                        None => FullField::zero(domain, FieldShape::new(T::KIND, Precision::Double, batch.len()))?,
                    };
                    let (found, report, error) = configuration.solve_fields(some, None, &request, &mut watch)?;
                    if batch.len() == count {
                        solutions = Some(found);
                    } else {
                        let all = match &mut solutions {
                            Some(all) => all,
                            None => solutions
                                .insert(FullField::zero(domain, FieldShape::new(T::KIND, Precision::Double, count))?),
                        };
                        all.set_rhs(batch.start, found)?;
                    }
                    Ok((report, error))
                });
                let (report, failure) = solved?;
                let report = SolveReport::new(&request, &report, watch, failure);
                let mut solutions = solutions.ok_or_else(|| Failure::other("nothing was solved for"))?;
                // Changing the spin basis rounds: an array of the solutions, and what is made of it, has the same bits.
                solutions.pack(&solutions.unpack()?)?;
                Ok((Rc::new(solutions), report))
            };
            with_configuration(thread, number, work)
        })?;
        Ok((DevicePropagator::new(kept, self.device.clone_ref(py), self.part, T::KIND), Typed(report)))
    }
    fn apply_to<T: Fermion>(
        &self,
        py: Python<'_>,
        given: &Given<'_>,
        form: OperatorForm,
    ) -> PyResult<(Vec<HostField<T>>, Vec<usize>)> {
        let (fields, axes) = arrays::fields::<T>(given)?;
        let operator = self.operator.clone();
        let images = self.on(py, move |_, configuration, stop| {
            let mut images = Vec::with_capacity(fields.len());
            for batch in fields.chunks(MAX_RHS_PER_LAUNCH) {
                stop.check()?;
                let (precision, links) = (ferrite::Precision::Double, LinkStorage::FULL);
                images.extend(configuration.apply(form, false, batch, &operator, precision, links)?.0);
            }
            Ok(images)
        })?;
        Ok((images, axes))
    }
    /// Fields in the memory of the device, as a kernel takes them, and all axes of their array.
    fn shared(&self, array: &Shared) -> Outcome<(usize, Vec<usize>)> {
        let own: &[usize] = match self.operator.kind() {
            FermionKind::Wilson => Spinor::SHAPE,
            FermionKind::Staggered => ColourVector::SHAPE,
        };
        let (front, field) = array.axes(4 + own.len())?;
        let expected: Vec<usize> = self.part.local.size().into_iter().rev().chain(own.iter().copied()).collect();
        if field != expected {
            return Err(Failure::input(format!("fields of the operator have the shape {expected:?}, not {field:?}")));
        }
        let count = front.iter().product();
        if !(1..=TOGETHER).contains(&count) {
            return Err(Failure::input(format!("{count} fields on a device: 1 to {TOGETHER} are computed together")));
        }
        Ok((count, [front, field].concat()))
    }
    /// An array as a field of the device.
    fn field(kind: FermionKind, domain: &Domain, count: usize, array: &DeviceArray) -> Outcome<FullField> {
        let mut field = FullField::zero(domain, FieldShape::new(kind, ferrite::Precision::Double, count))?;
        field.pack(array)?;
        Ok(field)
    }
    fn solve_for<T: Fermion>(
        &self,
        py: Python<'_>,
        given: &Given<'_>,
        guess: Option<&Given<'_>>,
        settings: SolverSettings,
    ) -> PyResult<(Answer<T, SolveReport>, Vec<usize>)> {
        let (fields, axes) = arrays::fields::<T>(given)?;
        let guess = guess.map(arrays::fields::<T>).transpose()?.map(|(fields, _)| fields);
        let (request, batch) = self.request(&settings)?;
        let lattice = self.part.local;
        let answer = self.on(py, move |thread, configuration, stop| {
            let finite = arrays::check_finite_fields("b", &fields);
            let finite =
                finite.and_then(|()| arrays::check_finite_fields("guess", guess.as_deref().unwrap_or_default()));
            thread.processes.agree(finite)?;
            let mut request = Request { sources: fields.len(), ..request };
            let sizes = sizes(thread, &request, lattice, fields.len(), batch, (None, 0))?;
            request.reconstruction = configuration.possible(&request.operator, request.reconstruction)?;
            let mut watch = Watch::new(stop);
            let solved = in_batches(&sizes, &fields, guess.as_deref(), |sources, guess| {
                configuration.solve(sources, guess, &request, &mut watch)
            });
            match solved {
                Ok((solutions, report)) => Ok((solutions, SolveReport::new(&request, &report, watch, None))),
                Err(SolveFailure::Unfinished { error, solutions, report }) => {
                    Ok((solutions, SolveReport::new(&request, &report, watch, Some(error))))
                }
                Err(failure) => Err(failure.into()),
            }
        })?;
        Ok((answer, axes))
    }
    fn solve_series_for<T: Fermion>(
        &self,
        py: Python<'_>,
        given: &Given<'_>,
        (shifts, values): (bool, Vec<f64>),
        settings: SolverSettings,
    ) -> PyResult<(Answer<T, ShiftsSolveReport>, Vec<usize>)> {
        let (fields, axes) = arrays::fields::<T>(given)?;
        let (request, batch) = self.request(&settings)?;
        let strategy = settings.strategy().map_err(Failure::from)?;
        let (lattice, count) = (self.part.local, values.len());
        let answer = self.on(py, move |thread, configuration, stop| {
            thread.processes.agree(arrays::check_finite_fields("b", &fields))?;
            let sizes = sizes(thread, &request, lattice, fields.len(), batch, (Some(count), 0))?;
            let mut watch = Watch::new(stop);
            let (solutions, report) = shifts_in_batches(&sizes, &fields, |sources| match shifts {
                true => configuration.solve_shifts(sources, &values, strategy, &request, &mut watch),
                false => configuration.solve_masses(sources, &values, strategy, &request, &mut watch),
            })?;
            let kind = if shifts { SystemKind::Shift } else { SystemKind::Mass };
            let outcome = outcome::shifts(&request, &report, kind, &values);
            Ok((solutions.into_iter().flatten().collect::<Vec<_>>(), ShiftsSolveReport { outcome, failure: None }))
        })?;
        Ok((answer, [&[count], &axes[..]].concat()))
    }
}

impl Dirac {
    fn propagate_of<T: Fermion>(
        &self,
        py: Python<'_>,
        (time, profile): (usize, Option<Given<'_>>),
        shell: Option<GivenShell<'_>>,
        settings: SolverSettings,
    ) -> PyResult<(DevicePropagator, Typed<SolveReport>)> {
        let source = of_profile::<T>(&self.part, time, profile)?;
        let shell = shell.map(|shell| Shell::of(&shell, &self.part)).transpose()?;
        self.keep_propagator::<T>(py, settings, move |thread| {
            let fields = source.as_ref().map_or(&[][..], |(_, fields)| fields);
            thread.processes.agree(arrays::check_finite_fields("the source", fields))?;
            match shell {
                Some(shell) => shell.smear(thread, source),
                None => Ok(source),
            }
        })
    }
}

#[pymethods]
impl Dirac {
    /// The operator of a name on links, with its parameters as texts.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        device: Py<Device>,
        links: &Links,
        name: &str,
        parameters: BTreeMap<String, String>,
    ) -> PyResult<Self> {
        let (operator, mut said) = keys::resolve(name, parameters)?;
        let (gauge, part) = (links.gauge.clone(), links.part);
        let on = gauge.clone();
        let kept =
            device.get().keep(py, move |thread, _| Ok(Some(Configuration::of_shared(&thread.domain(&part)?, on))))?;
        said.insert("operator".into(), name.into());
        said.insert("mass".into(), operator.mass().into());
        said.insert("antiperiodic".into(), (operator.boundary().sign() < 0.0).into());
        said.insert("staggered".into(), (operator.kind() == FermionKind::Staggered).into());
        Ok(Dirac { kept, device, operator, part, gauge, description: said })
    }
    /// What is known of it.
    #[getter]
    fn description(&self) -> Typed<Map<String, Value>> {
        Typed(self.description.clone())
    }
    /// M ψ, M† ψ or M†M ψ: `plain`, `dagger` or `normal`, in double precision.
    fn apply<'py>(&self, py: Python<'py>, given: Given<'_>, form: &str) -> PyResult<Made<'py>> {
        let form = form_of(form);
        match self.operator.kind() {
            FermionKind::Wilson => {
                let (images, axes) = self.apply_to::<Spinor>(py, &given, form)?;
                arrays::stacked(py, &axes, &images)
            }
            FermionKind::Staggered => {
                let (images, axes) = self.apply_to::<ColourVector>(py, &given, form)?;
                arrays::stacked(py, &axes, &images)
            }
        }
    }
    /// Solves M x = b for all fields of an array, with settings: the solutions, or the best iterates, and a report.
    #[pyo3(signature = (given, guess, settings))]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        given: Given<'_>,
        guess: Option<Given<'_>>,
        settings: Typed<SolverSettings>,
    ) -> PyResult<(Made<'py>, Typed<SolveReport>)> {
        match self.operator.kind() {
            FermionKind::Wilson => {
                let ((fields, report), axes) = self.solve_for::<Spinor>(py, &given, guess.as_ref(), settings.0)?;
                Ok((arrays::stacked(py, &axes, &fields)?, Typed(report)))
            }
            FermionKind::Staggered => {
                let ((fields, report), axes) =
                    self.solve_for::<ColourVector>(py, &given, guess.as_ref(), settings.0)?;
                Ok((arrays::stacked(py, &axes, &fields)?, Typed(report)))
            }
        }
    }
    /// The same of an array on the device, whose image stays there.
    fn apply_on_device(&self, py: Python<'_>, given: &Shared, form: &str) -> PyResult<Shared> {
        let (count, shape) = self.shared(given)?;
        let (array, operator, form) = (given.array(), self.operator.clone(), form_of(form));
        let image = self.on(py, move |thread, configuration, _| {
            let domain = configuration.domain();
            let field = Self::field(operator.kind(), domain, count, array.get())?;
            let image = configuration.apply_field(form, field, operator)?.unpack()?;
            thread.backend.synchronize()?;
            Ok(image)
        })?;
        Ok(Shared::new(py, &self.device, image, shape))
    }
    /// The same of an array on the device, whose solutions stay there.
    fn solve_on_device(
        &self,
        py: Python<'_>,
        given: &Shared,
        guess: Option<&Shared>,
        settings: Typed<SolverSettings>,
    ) -> PyResult<(Shared, Typed<SolveReport>)> {
        let (count, shape) = self.shared(given)?;
        let (array, operator) = (given.array(), self.operator.clone());
        let guess = guess.map(Shared::array);
        let (request, _) = self.request(&settings.0)?;
        let (solution, report) = self.on(py, move |thread, configuration, stop| {
            let mut request = Request { sources: count, ..request };
            request.reconstruction = configuration.possible(&request.operator, request.reconstruction)?;
            let domain = configuration.domain();
            let field = |array: &DeviceArray| Self::field(operator.kind(), domain, count, array);
            let (source, guess) = (field(array.get())?, guess.map(|guess| field(guess.get())).transpose()?);
            let mut watch = Watch::new(stop);
            let (solution, report, failure) = configuration.solve_fields(source, guess, &request, &mut watch)?;
            if report.true_residual.iter().any(|residual| residual.is_nan()) {
                // The array is not looked at before, as it may be large and the host far.
                let mut numbers = vec![Complex64::ZERO; array.get().len()];
                array.get().download(0, &mut numbers)?;
                thread.processes.agree(arrays::check_finite("b", &numbers))?;
            }
            let report = SolveReport::new(&request, &report, watch, failure);
            let solution = solution.unpack()?;
            thread.backend.synchronize()?;
            Ok((solution, report))
        })?;
        Ok((Shared::new(py, &self.device, solution, shape), Typed(report)))
    }
    /// Solves (M†M + σ_i) x_i = b, or M(m_i) x_i = b, for all of several shifts or masses.
    fn solve_series<'py>(
        &self,
        py: Python<'py>,
        given: Given<'_>,
        shifts: bool,
        values: Vec<f64>,
        settings: Typed<SolverSettings>,
    ) -> PyResult<(Made<'py>, Typed<ShiftsSolveReport>)> {
        let ((fields, report), axes) =
            self.solve_series_for::<ColourVector>(py, &given, (shifts, values), settings.0)?;
        Ok((arrays::stacked(py, &axes, &fields)?, Typed(report)))
    }
    /// *Collective.* Whether solutions for all components of a source may stay on the device beside a solve for half of them, and hadrons be
    /// made of two such propagators.
    fn can_keep(&self, py: Python<'_>, settings: Typed<SolverSettings>) -> PyResult<bool> {
        let ((request, _), part, kind) = (self.request(&settings.0)?, self.part, self.operator.kind());
        self.on(py, move |thread, _, _| {
            let (free, grid) = (thread.free()?, thread.processes.cut.grid);
            let together = if kind == FermionKind::Wilson { 6 } else { 2 };
            let solve: usize = request.memory(part.local, &grid, together, None).iter().map(|(_, bytes)| bytes).sum();
            Ok(solve + contraction_bytes(kind, part.local.volume(), 2) <= free)
        })
    }
    /// *Collective.* Solves for all components of a source with a profile `[z, y, x]` at one time of the whole lattice, smeared by a shell if there is
    /// one; solutions stay on the device.
    fn propagate(
        &self,
        py: Python<'_>,
        time: usize,
        profile: Option<Given<'_>>,
        shell: Option<GivenShell<'_>>,
        settings: Typed<SolverSettings>,
    ) -> PyResult<(DevicePropagator, Typed<SolveReport>)> {
        match self.operator.kind() {
            FermionKind::Wilson => self.propagate_of::<Spinor>(py, (time, profile), shell, settings.0),
            FermionKind::Staggered => self.propagate_of::<ColourVector>(py, (time, profile), shell, settings.0),
        }
    }
    /// *Collective.* The propagator through a sink at a time of the whole lattice: of a meson with a matrix, or of the nucleon with
    /// projector and flavour; smeared there by a shell if there is one.
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn propagate_through(
        &self,
        py: Python<'_>,
        from: &DevicePropagator,
        sink: Sink,
        momentum: [i32; 3],
        origin: [usize; 4],
        time: usize,
        antiperiodic: bool,
        shell: Option<GivenShell<'_>>,
        settings: Typed<SolverSettings>,
    ) -> PyResult<(DevicePropagator, Typed<SolveReport>)> {
        let (part, number) = (self.part, from.number());
        if from.part() != part || !std::ptr::eq(from.device().get(), self.device.get()) {
            return Err(Failure::input("operator and propagator are on different lattices or devices").into());
        }
        let made = sink.source(&part, (momentum, origin, time), antiperiodic)?;
        let shell = shell.map(|shell| Shell::of(&shell, &part)).transpose()?;
        self.keep_propagator::<Spinor>(py, settings.0, move |thread| {
            let local = time.checked_sub(part.origin[3]).filter(|local| *local < part.local.size()[3]);
            let field = propagator::field(thread, number)?;
            let mut there = local.map(|local| Outcome::Ok((local, field.at_time::<Spinor>(local)?))).transpose()?;
            if let Some(shell) = &shell {
                there = shell.smear(thread, there)?;
            }
            let section = part.at_time(time);
            let sources = there.zip(section).map(|((local, fields), section)| (local, made(section, &fields)));
            match &shell {
                Some(shell) => shell.smear(thread, sources),
                None => Ok(sources),
            }
        })
    }
    /// Sets multigrid up.
    fn set_up(&self, py: Python<'_>, settings: Typed<SolverSettings>) -> PyResult<Typed<SetupRecord>> {
        let (request, _) = self.request(&settings.0)?;
        let Some(&operator) = self.operator.parameters::<WilsonLike>() else {
            return Err(Failure::input("staggered operators have no multigrid").into());
        };
        self.on(py, move |_, configuration, stop| {
            let made = set_up(configuration, operator, &request, stop)?;
            Ok(Typed(SetupRecord::new(&made)))
        })
    }
    /// Writes the test vectors of the multigrid setup that there is, and gives their number.
    fn save_setup(&self, py: Python<'_>, path: PathBuf) -> PyResult<usize> {
        let (gauge, part) = (self.gauge.clone(), self.part);
        self.on(py, move |thread, configuration, _| {
            let links = links_of(thread, &part, &gauge)?;
            let saved = setup_file::save(file_of(thread, &path, &part), configuration, &links);
            saved.map_err(|why| setup_failure(&path, why))
        })
    }
    /// Sets multigrid up with the near-null vectors of a file.
    fn load_setup(
        &self,
        py: Python<'_>,
        path: PathBuf,
        settings: Typed<SolverSettings>,
    ) -> PyResult<Typed<SetupRecord>> {
        let (mut request, _) = self.request(&settings.0)?;
        let Some(&operator) = self.operator.parameters::<WilsonLike>() else {
            return Err(Failure::input("staggered operators have no multigrid").into());
        };
        let (gauge, part) = (self.gauge.clone(), self.part);
        self.on(py, move |thread, configuration, stop| {
            let (file, links) = (file_of(thread, &path, &part), links_of(thread, &part, &gauge)?);
            let loaded = setup_file::load(file, configuration, operator, &links, None);
            let loaded = loaded.map_err(|why| setup_failure(&path, why))?;
            request.multigrid.vectors = loaded.vectors;
            let made = set_up(configuration, operator, &request, stop)?;
            Ok(Typed(SetupRecord::new(&made)))
        })
    }
}

/// By what a setup knows links.
fn links_of(thread: &DeviceThread, part: &Section, gauge: &HostGauge) -> Outcome<String> {
    links_checksum(gauge, part, &*thread.processes.network).map_err(failed)
}

/// A file that a device's processes have together.
fn file_of<'a>(thread: &'a DeviceThread, path: &'a Path, part: &Section) -> SharedFile<'a> {
    SharedFile::new(path, &*thread.processes.network).part(part)
}

fn setup_failure(path: &Path, why: SetupError) -> Failure {
    match why {
        SetupError::File(error) => error.into(),
        SetupError::Device(error) => error.into(),
        SetupError::None => Failure::input("multigrid was not set up: D.setup() does"),
        why => Failure { kind: FailureKind::File, message: format!("{} {why}", path.display()) },
    }
}

/// A method of solves.
#[derive(Clone, Debug, Serialize)]
pub struct SolverEntry {
    name: &'static str,
    title: &'static str,
    help: &'static str,
    wilson: bool,
    staggered: bool,
}

/// All methods of solves.
#[pyfunction]
pub fn solvers() -> Typed<Vec<SolverEntry>> {
    let all = METHODS.iter().map(|method| {
        let fits = |kind| method.kinds.contains(&kind);
        let ([title, title_staggered], wilson) = (method.titles, fits(FermionKind::Wilson));
        SolverEntry {
            name: method.name,
            title: if wilson { title } else { title_staggered },
            help: method.help,
            wilson,
            staggered: fits(FermionKind::Staggered),
        }
    });
    Typed(all.collect())
}

/// An operator of the registry.
#[derive(Clone, Debug, Serialize)]
pub struct OperatorEntry {
    name: &'static str,
    title: &'static str,
    formula: &'static str,
    staggered: bool,
    parameters: Vec<ParameterEntry>,
}

/// A parameter of an operator.
#[derive(Clone, Debug, Serialize)]
struct ParameterEntry {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    help: String,
    default: Option<&'static str>,
}

/// All operators with their parameters.
#[pyfunction]
pub fn operators() -> Typed<Vec<OperatorEntry>> {
    let kind = |key: &Key| match key.kind {
        KeyKind::Number => "float",
        KeyKind::Count => "int",
        KeyKind::Switch => "bool",
        KeyKind::Extents | KeyKind::Sites | KeyKind::Numbers | KeyKind::Fractions => "Sequence[float]",
        KeyKind::Text | KeyKind::Texts => "str",
        // Some words may be numbers, such as a tadpole factor.
        KeyKind::Word if key.example.starts_with('"') => "str",
        KeyKind::Word => "str | float",
    };
    let parameter = |key: &Key| ParameterEntry {
        name: keys::in_python(key.name),
        kind: kind(key),
        help: keys::reworded(key.help),
        default: key.default,
    };
    let one = |definition: &&'static Definition| OperatorEntry {
        name: definition.name,
        title: definition.title,
        formula: definition.formula,
        staggered: definition.kind == FermionKind::Staggered,
        parameters: definition.all_keys().map(parameter).collect(),
    };
    Typed(OPERATORS.iter().map(one).collect())
}
