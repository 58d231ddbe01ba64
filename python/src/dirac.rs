//! Dirac operators on a device, for applications and solves.
use crate::arrays::{self, Given, Made};
use crate::device::{DeviceHandle, PyDevice, Stop};
use crate::failure::Returned;
use crate::links::PyLinks;
use crate::propagator::{self, DevicePropagator, GivenSmearing};
use crate::shared::Shared;
use crate::typed::Typed;
use ferrite::FermionKind;
use ferrite::field::FullField;
use ferrite::lattice::Section;
use ferrite::operators::OperatorForm;
use ferrite_records::operator::OperatorEntry;
use ferrite_records::solve::{MethodEntry, ObservedShifts, ObservedSolve, SetupRecord};
use ferrite_tasks::dirac::{LinkedDirac, ProfileSource, SystemSeries};
use ferrite_tasks::grid_device::GridDevice;
use ferrite_tasks::parameters::{self, NamedOperator};
use ferrite_tasks::solver::SolverSettings;
use ferrite_tasks::spectrum::sink::SinkRequest;
use ferrite_tasks::{Failure, Outcome, catalogue};
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

/// Dirac operator on links on a device.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct Dirac {
    kept: DeviceHandle,
    device: Py<PyDevice>,
    kind: FermionKind,
    part: Section,
    /// Parameters of the operator by name.
    description: Map<String, Value>,
}

/// Returns the form of the operator: `plain`, `dagger` or `normal`.
fn form_of(name: &str) -> OperatorForm {
    match name {
        "plain" => OperatorForm::Plain,
        "dagger" => OperatorForm::Dagger,
        _ => OperatorForm::Normal,
    }
}

impl Dirac {
    fn on<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&GridDevice, &mut LinkedDirac, &mut Stop) -> Outcome<T> + Send + 'static,
    ) -> Returned<T> {
        let number = self.kept.number();
        self.device
            .get()
            .run(py, move |thread, stop| thread.with(number, |device, dirac| work(device, dirac, &mut stop.clone())))
    }
    /// Does `work` that creates a propagator, and returns the propagator, which stays on the device, with the report of its solve.
    fn keep(
        &self,
        py: Python<'_>,
        from: Option<u64>,
        work: impl FnOnce(&GridDevice, &LinkedDirac, Option<&FullField>, &mut Stop) -> Outcome<(FullField, ObservedSolve)>
        + Send
        + 'static,
    ) -> Returned<(DevicePropagator, Typed<ObservedSolve>)> {
        let number = self.kept.number();
        let (kept, report) = self.device.get().keep_beside(py, move |thread, stop| {
            let from = from.map(|from| propagator::field(thread, from)).transpose()?;
            let (field, report) = thread.with(number, |device, dirac: &mut LinkedDirac| {
                work(device, dirac, from.as_deref(), &mut stop.clone())
            })?;
            Ok((Rc::new(field), report))
        })?;
        Ok((DevicePropagator::new(kept, self.device.clone_ref(py), self.part, self.kind), Typed(report)))
    }
}

#[pymethods]
impl Dirac {
    /// Returns the operator called `name` on links, with its parameters as texts.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        device: Py<PyDevice>,
        links: &PyLinks,
        name: &str,
        parameters: BTreeMap<String, String>,
    ) -> Returned<Self> {
        let NamedOperator { operator, parameters: description } = parameters::operator(name, parameters)?;
        let (kind, gauge, part) = (operator.kind(), links.own.gauge.clone(), links.own.part);
        let kept = device.get().keep(py, move |thread, _| LinkedDirac::new(&thread.device, operator, part, gauge))?;
        Ok(Dirac { kept, device, kind, part, description })
    }
    /// Returns the parameters of the operator by name.
    #[getter]
    fn description(&self) -> Typed<Map<String, Value>> {
        Typed(self.description.clone())
    }
    /// Applies the operator in double precision: M ψ, M† ψ or M†M ψ for `plain`, `dagger` or `normal`.
    fn apply<'py>(&self, py: Python<'py>, given: Given<'_>, form: &str) -> Returned<Made<'py>> {
        let ((fields, axes), form) = (arrays::fields(self.kind, &given)?, form_of(form));
        let images = self.on(py, move |_, dirac, stop| dirac.apply(form, &fields, &mut || stop.flow()))?;
        arrays::stacked(py, &axes, &images)
    }
    /// Solves M x = b for all fields of an array. Returns the solutions or the best iterates, and a report.
    #[pyo3(signature = (given, guess, settings))]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        given: Given<'_>,
        guess: Option<Given<'_>>,
        settings: Typed<SolverSettings>,
    ) -> Returned<(Made<'py>, Typed<ObservedSolve>)> {
        let (fields, axes) = arrays::fields(self.kind, &given)?;
        let guess = guess.map(|guess| arrays::fields(self.kind, &guess)).transpose()?.map(|(fields, _)| fields);
        let (solutions, report) =
            self.on(py, move |device, dirac, stop| dirac.solve(device, &fields, guess.as_ref(), &settings.0, stop))?;
        Ok((arrays::stacked(py, &axes, &solutions)?, Typed(report)))
    }
    /// Returns M ψ, M† ψ or M†M ψ for the fields of an array on the device; the result stays there.
    fn apply_on_device(&self, py: Python<'_>, given: &Shared, form: &str) -> Returned<Shared> {
        let (array, shape, form) = (given.array(), given.lengths().to_vec(), form_of(form));
        let of = shape.clone();
        let image = self.on(py, move |_, dirac, _| {
            let count = dirac.fields_of_shape(&of)?;
            dirac.apply_array(form, array.get(), count)
        })?;
        Ok(Shared::new(py, &self.device, image, shape))
    }
    /// Solves M x = b for the fields of an array on the device. The solutions stay there.
    fn solve_on_device(
        &self,
        py: Python<'_>,
        given: &Shared,
        guess: Option<&Shared>,
        settings: Typed<SolverSettings>,
    ) -> Returned<(Shared, Typed<ObservedSolve>)> {
        let (array, shape, guess) = (given.array(), given.lengths().to_vec(), guess.map(Shared::array));
        let of = shape.clone();
        let (solution, report) = self.on(py, move |device, dirac, stop| {
            let count = dirac.fields_of_shape(&of)?;
            let guess = guess.as_ref().map(|guess| guess.get());
            dirac.solve_array(device, (array.get(), count), guess, &settings.0, stop)
        })?;
        Ok((Shared::new(py, &self.device, solution, shape), Typed(report)))
    }
    /// Solves systems that differ by a mass or a shift. `series` is `{"masses": […]}` or `{"shifts": […]}`.
    fn solve_series<'py>(
        &self,
        py: Python<'py>,
        given: Given<'_>,
        series: Typed<SystemSeries>,
        settings: Typed<SolverSettings>,
    ) -> Returned<(Made<'py>, Typed<ObservedShifts>)> {
        let ((fields, axes), Typed(series)) = (arrays::fields(self.kind, &given)?, series);
        let (solutions, report) =
            self.on(py, move |device, dirac, stop| dirac.solve_series(device, &fields, &series, &settings.0, stop))?;
        Ok((arrays::stacked(py, &[&[report.outcome.systems.len()], &axes[..]].concat(), &solutions)?, Typed(report)))
    }
    /// *Collective.* Returns whether the device has enough memory to keep the solutions for all components of a source.
    fn can_keep(&self, py: Python<'_>, settings: Typed<SolverSettings>) -> Returned<bool> {
        self.on(py, move |device, dirac, _| dirac.can_keep(device, &settings.0))
    }
    /// *Collective.* Solves for all components of a source with a profile `[z, y, x]` on one time slice of the whole lattice. The solutions
    /// stay on the device.
    fn propagate(
        &self,
        py: Python<'_>,
        time: usize,
        profile: Option<Given<'_>>,
        smearing: Option<GivenSmearing<'_>>,
        settings: Typed<SolverSettings>,
    ) -> Returned<(DevicePropagator, Typed<ObservedSolve>)> {
        let profile = profile.as_ref().map(arrays::numbers).transpose()?.map(<[_]>::to_vec);
        let source = ProfileSource { time, profile };
        let smearing = smearing.map(|given| propagator::smearing(&given, &self.part)).transpose()?;
        self.keep(py, None, move |device, dirac, _, stop| {
            dirac.propagator(device, &source, smearing.as_ref(), &settings.0, stop)
        })
    }
    /// *Collective.* Solves for the sequential propagator through a sink. The solutions stay on the device.
    fn propagate_through(
        &self,
        py: Python<'_>,
        from: &DevicePropagator,
        sink: Typed<SinkRequest>,
        smearing: Option<GivenSmearing<'_>>,
        settings: Typed<SolverSettings>,
    ) -> Returned<(DevicePropagator, Typed<ObservedSolve>)> {
        if from.part() != self.part || !std::ptr::eq(from.device().get(), self.device.get()) {
            let why =
                "operator and propagator are on different lattices or devices: give both on one lattice and device";
            return Err(Failure::refused(why).into());
        }
        let smearing = smearing.map(|given| propagator::smearing(&given, &self.part)).transpose()?;
        self.keep(py, Some(from.number()), move |device, dirac, from, stop| {
            let from = from.ok_or_else(|| Failure::failed("no propagator is given"))?;
            dirac.propagator_through(device, from, &sink.0, smearing.as_ref(), &settings.0, stop)
        })
    }
    /// Creates the multigrid setup for solves with these settings.
    fn set_up(&self, py: Python<'_>, settings: Typed<SolverSettings>) -> Returned<Typed<SetupRecord>> {
        self.on(py, move |_, dirac, stop| dirac.set_up(&settings.0, stop).map(Typed))
    }
    /// Writes the near-null vectors of the current multigrid setup, and returns their number.
    fn save_setup(&self, py: Python<'_>, path: PathBuf) -> Returned<usize> {
        self.on(py, move |device, dirac, _| dirac.save_setup(device, &path))
    }
    /// Creates a multigrid setup from the near-null vectors of a file.
    fn load_setup(
        &self,
        py: Python<'_>,
        path: PathBuf,
        settings: Typed<SolverSettings>,
    ) -> Returned<Typed<SetupRecord>> {
        self.on(py, move |device, dirac, stop| dirac.load_setup(device, &path, &settings.0, stop).map(Typed))
    }
}

/// Returns the entries of all solution methods.
#[pyfunction]
pub fn solvers() -> Typed<Vec<MethodEntry>> {
    Typed(catalogue::methods())
}

/// Returns the entries of all operators, with Python types for their parameters.
#[pyfunction]
pub fn operators() -> Typed<Vec<OperatorEntry>> {
    let mut all = catalogue::operators();
    for parameter in all.iter_mut().flat_map(|operator| &mut operator.parameters) {
        let of_python = match parameter.kind.as_str() {
            "number" => "float",
            "count" => "int",
            "switch" => "bool",
            "numbers" => "Sequence[float]",
            "text" => "str",
            _ => "str | float",
        };
        parameter.kind = of_python.into();
    }
    Typed(all)
}
