//! Gauge fields, in the memory of the host, and what is made of them on a device.
use crate::arrays::{self, Given};
use crate::device::{Device, DeviceThread};
use crate::failure::{Failure, Outcome};
use crate::host::{on_host, undisturbed};
use crate::processes::Cut;
use crate::typed::Typed;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::files::formats::endings_of_gauge_files;
use ferrite::files::{
    Checksum, FileFormat, FilePrecision, GaugeFile, ReadOptions, SharedFile, WriteOptions, inspect, read_gauge,
    write_gauge,
};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, SumsOfStaples};
use ferrite::gauge::fixing::relax::{self, Relaxation, omega_for};
use ferrite::gauge::quenched::{Generator, Start};
use ferrite::gauge::{generate, measure};
use ferrite::hmc::stout::StoutSmearing;
use ferrite::lattice::{Lattice, Section};
use ferrite::observables::field_strength::field_strengths;
use ferrite::observables::flow::{Flow, FlowAction, FlowPoint, scale_t0, scale_w0};
use ferrite::observables::loops::LoopMeans;
use ferrite_records::object;
use ferrite_records::observables::{FieldStrengthRecord, LoopsRecord};
use ferrite_tasks::observables;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// Links of a configuration, or this process's part of them. They never change.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct Links {
    /// Operators on a device share them.
    pub gauge: Arc<HostGauge>,
    /// Which part they are.
    pub part: Section,
    /// The device whose processes have the other parts, where there are any.
    device: Option<Py<Device>>,
}

impl Links {
    /// Those on the sites that a device has.
    pub fn new(device: Option<&Bound<'_, Device>>, gauge: HostGauge) -> Outcome<Self> {
        let cut = device.map_or(Cut::NONE, |device| device.get().cut());
        let part = cut.part(gauge.lattice())?;
        let device = device.filter(|_| cut.is_shared()).map(|device| device.clone().unbind());
        Ok(Links { gauge: Arc::new(gauge), part, device })
    }
    /// *Collective.* Measures links of several processes, or of this one alone.
    fn measured<T: Send + 'static>(
        &self,
        py: Python<'_>,
        alone: impl FnOnce(&HostGauge) -> T + Send + 'static,
        together: impl FnOnce(&mut DeviceThread, &Section, &HostGauge) -> Outcome<T> + Send + 'static,
    ) -> PyResult<T> {
        let (gauge, part) = (self.gauge.clone(), self.part);
        match &self.device {
            Some(device) => device.get().run(py, move |thread, _| together(thread, &part, &gauge)),
            None => on_host(py, move || Ok(alone(&gauge))),
        }
    }
}

/// This process's part of a lattice.
fn part_of(device: Option<&Bound<'_, Device>>, lattice: Lattice) -> Outcome<Section> {
    device.map_or(Cut::NONE, |device| device.get().cut()).section(lattice)
}

/// Extents x, y, z, t.
pub type Extents = [usize; 4];

/// What a file said beside its links.
#[derive(Clone, Debug, Serialize)]
struct FileDescription {
    format: String,
    precision: String,
    checksum: String,
    plaquette: Option<f64>,
    link_trace: Option<f64>,
    metadata: Vec<(String, String)>,
    notes: Vec<String>,
}

fn description(file: &GaugeFile) -> FileDescription {
    let header = &file.header;
    let checksum = match &file.checksum {
        Checksum::Verified(kind) => format!("{} verified", kind.name()),
        Checksum::Absent => "none".into(),
        Checksum::Mismatch { kind, .. } => format!("{} differs", kind.name()),
    };
    FileDescription {
        format: header.format.to_string(),
        precision: header.precision.to_string(),
        checksum,
        plaquette: header.plaquette.map(|printed| printed.value),
        link_trace: header.link_trace.map(|printed| printed.value),
        metadata: header.metadata.clone(),
        notes: header.notes.clone(),
    }
}

/// Loops, energy density and charge.
#[derive(Clone, Debug, Serialize)]
struct MeasuredLoops {
    #[serde(flatten)]
    loops: LoopsRecord,
    #[serde(flatten)]
    field_strength: FieldStrengthRecord,
}

/// Time, energy density, that of plaquettes, and charge at each step of a flow, and its scales.
#[derive(Clone, Debug, Serialize)]
struct FlowSteps {
    points: Vec<[f64; 4]>,
    t0: Option<f64>,
    w0: Option<f64>,
}

#[pymethods]
impl Links {
    /// *Collective.* Reads a file, and what it says beside its links; with a device of several processes, each its part.
    #[staticmethod]
    #[pyo3(signature = (path, verify = true, allow_non_unitary = false, reunitarise = false, lattice = None, record = 0, device = None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        verify: bool,
        allow_non_unitary: bool,
        reunitarise: bool,
        lattice: Option<Extents>,
        record: usize,
        device: Option<Bound<'_, Device>>,
    ) -> PyResult<(Self, Typed<Map<String, Value>>)> {
        let lattice = lattice.map(Lattice::of_any_extents).transpose().map_err(Failure::from)?;
        let options = ReadOptions { verify, allow_non_unitary, reunitarise, lattice, record };
        let file = match device.as_ref().map(Bound::get).filter(|device| device.cut().is_shared()) {
            None => on_host(py, move || Ok(read_gauge(&path, &options)?))?,
            Some(device) => device.run(py, move |thread, _| {
                let file = SharedFile::new(&path, &*thread.processes.network);
                let header = inspect(file, &options)?;
                let part = thread.processes.cut.section(header.lattice)?;
                Ok(read_gauge(file.part(&part), &options)?)
            })?,
        };
        let said = Typed(object(&description(&file)));
        Ok((Links::new(device.as_ref(), file.gauge)?, said))
    }
    /// Of an array `[T, Z, Y, X, 4, 3, 3]`.
    #[staticmethod]
    #[pyo3(signature = (given, device = None))]
    fn from_array(given: Given<'_>, device: Option<Bound<'_, Device>>) -> PyResult<Self> {
        arrays::check_finite("links", arrays::numbers(&given)?)?;
        Ok(Links::new(device.as_ref(), arrays::gauge(&given)?)?)
    }
    /// All links 1.
    #[staticmethod]
    #[pyo3(signature = (lattice, device = None))]
    fn unit(lattice: Extents, device: Option<Bound<'_, Device>>) -> PyResult<Self> {
        let part = part_of(device.as_ref(), Lattice::new(lattice).map_err(Failure::from)?)?;
        Ok(Links::new(device.as_ref(), HostGauge::unit(part.local))?)
    }
    /// Near 1 for small `noise`, or by the Haar measure without.
    #[staticmethod]
    #[pyo3(signature = (lattice, seed, noise = None, device = None))]
    fn random(
        py: Python<'_>,
        lattice: Extents,
        seed: u64,
        noise: Option<f64>,
        device: Option<Bound<'_, Device>>,
    ) -> PyResult<Self> {
        let part = part_of(device.as_ref(), Lattice::new(lattice).map_err(Failure::from)?)?;
        let made = on_host(py, move || {
            Ok(match noise {
                Some(noise) => generate::weak_field(part, seed, noise),
                None => generate::random(part, seed),
            })
        })?;
        Ok(Links::new(device.as_ref(), made)?)
    }
    /// Extents x, y, z, t of the whole lattice.
    #[getter]
    fn lattice(&self) -> Extents {
        self.part.global.size()
    }
    /// How NumPy sees the links without a copy: it keeps this object alive, and must not write.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let numbers = self.gauge.numbers();
        let interface = PyDict::new(py);
        interface.set_item("shape", pyo3::types::PyTuple::new(py, self.gauge.shape())?)?;
        interface.set_item("typestr", if cfg!(target_endian = "little") { "<c16" } else { ">c16" })?;
        interface.set_item("data", (numbers.as_ptr().addr(), true))?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
    /// Writes a file; its name tells the format.
    #[pyo3(signature = (path, title, metadata, single = false))]
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        title: String,
        metadata: Vec<(String, String)>,
        single: bool,
    ) -> PyResult<()> {
        let Some(format) = FileFormat::of_gauge_file(&path) else {
            let why = format!("the format is unclear from the name; end it in {}", endings_of_gauge_files());
            return Err(Failure::input(format!("{}: {why}", path.display())).into());
        };
        let precision = if single { FilePrecision::Single } else { FilePrecision::Double };
        let options = WriteOptions { format, precision, title, metadata, ..Default::default() };
        let (gauge, part) = (self.gauge.clone(), self.part);
        match &self.device {
            None => undisturbed(py, || Ok(write_gauge(&path, &gauge, &options)?)),
            Some(device) => device.get().run(py, move |thread, _| {
                let file = SharedFile::new(&path, &*thread.processes.network).part(&part);
                Ok(write_gauge(file, &gauge, &options)?)
            }),
        }
    }
    /// *Collective.* Mean plaquettes: of all planes, of those in space, of those with t; and the link trace.
    fn plaquette(&self, py: Python<'_>) -> PyResult<[f64; 4]> {
        let alone = |gauge: &HostGauge| (measure::plaquette(gauge), measure::link_trace(gauge));
        let (found, trace) = self.measured(py, alone, |thread, part, gauge| {
            Ok(GaugeField::upload(&thread.domain(part)?, gauge)?.plaquette()?)
        })?;
        Ok([found.mean, found.spatial, found.temporal, trace])
    }
    /// *Collective.* How far the worst link is off SU(3).
    fn unitarity(&self, py: Python<'_>) -> PyResult<f64> {
        let alone = |gauge: &HostGauge| measure::unitarity(gauge).violation;
        self.measured(py, alone, |thread, _, gauge| thread.processes.largest(measure::unitarity(gauge).violation))
    }
    /// Loops, energy density and charge.
    fn loops(&self, py: Python<'_>, device: &Device) -> PyResult<Typed<MeasuredLoops>> {
        let (gauge, part) = (self.gauge.clone(), self.part);
        device.run(py, move |thread, _| {
            let links = GaugeField::upload(&thread.domain(&part)?, &gauge)?;
            Ok(Typed(MeasuredLoops {
                loops: observables::loops(&LoopMeans::of(&links)?),
                field_strength: observables::field_strength(&field_strengths(&links)?),
            }))
        })
    }
    /// Smeared links: `stout` with ρ, `ape` with α, `hyp` with three α.
    fn smear(
        &self,
        py: Python<'_>,
        device: &Bound<'_, Device>,
        kind: &str,
        weights: Vec<f64>,
        levels: usize,
        spatial: bool,
    ) -> PyResult<Self> {
        let projected = |sums| Smearing::Projected(ProjectedSmearing { sums, levels, spatial });
        let smearing = match (kind, weights.as_slice()) {
            ("stout", &[rho]) => Smearing::Stout(StoutSmearing { rho, levels, spatial }),
            ("ape", &[alpha]) => projected(SumsOfStaples::Ape(alpha)),
            ("hyp", &[first, second, third]) => projected(SumsOfStaples::Hyp([first, second, third])),
            _ => return Err(Failure::input(format!("no smearing: {kind} with {} weights", weights.len())).into()),
        };
        let (gauge, part) = (self.gauge.clone(), self.part);
        let smeared = device.get().run(py, move |thread, stop| {
            let links = GaugeField::upload(&thread.domain(&part)?, &gauge)?;
            let smeared = match smearing {
                Smearing::Stout(smearing) => smearing.smeared_while(&links, &mut || stop.flow())?,
                Smearing::Projected(smearing) => smearing.smeared_while(&links, &mut || stop.flow())?,
            };
            stop.check()?;
            let Some(smeared) = smeared else { return Err(Failure::other("stopped")) };
            Ok(smeared.download()?)
        })?;
        Ok(Links::new(Some(device), smeared)?)
    }
    /// Links that have flowed, and energies and charge at each step.
    fn flow(
        &self,
        py: Python<'_>,
        device: &Bound<'_, Device>,
        action: &str,
        time: f64,
        step: f64,
    ) -> PyResult<(Self, Typed<FlowSteps>)> {
        let Some(action) = FlowAction::ALL.into_iter().find(|known| known.name() == action) else {
            let names = FlowAction::ALL.map(FlowAction::name).join(", ");
            return Err(Failure::input(format!("'{action}' is no flow: there are {names}")).into());
        };
        let (gauge, part) = (self.gauge.clone(), self.part);
        let (links, points) = device.get().run(py, move |thread, stop| {
            let links = GaugeField::upload(&thread.domain(&part)?, &gauge)?;
            let mut flow = Flow::new(&links, action)?;
            let mut points = vec![flow.look()?];
            // As many whole steps as there are, and a shorter last one.
            while time - flow.time() > 1e-9 * step {
                stop.check()?;
                flow.step(step.min(time - flow.time()))?;
                points.push(flow.look()?);
            }
            let point =
                |point: &FlowPoint| [point.time, point.clover.energy(), point.plaquette_energy, point.clover.charge];
            let (t0, w0) = (scale_t0(&points, 0.3), scale_w0(&points, 0.3));
            let steps = FlowSteps { points: points.iter().map(point).collect(), t0, w0 };
            Ok((flow.links().download()?, Typed(steps)))
        })?;
        Ok((Links::new(Some(device), links)?, points))
    }
    /// Links in a gauge; θ, the functional and sweeps.
    #[pyo3(signature = (device, gauge, tol, overrelax = None, max_sweeps = 20_000))]
    fn fix(
        &self,
        py: Python<'_>,
        device: &Bound<'_, Device>,
        gauge: &str,
        tol: f64,
        overrelax: Option<f64>,
        max_sweeps: usize,
    ) -> PyResult<(Self, [f64; 2], usize)> {
        let kind = match gauge {
            "coulomb" => relax::Gauge::Coulomb,
            "landau" => relax::Gauge::Landau,
            other => {
                return Err(Failure::input(format!("'{other}' is no gauge: there are 'coulomb' and 'landau'")).into());
            }
        };
        let (links, part) = (self.gauge.clone(), self.part);
        let (fixed, state, sweeps) = device.get().run(py, move |thread, stop| {
            let omega = overrelax.unwrap_or_else(|| omega_for(part.global, kind));
            let mut relaxation = Relaxation::new(&thread.domain(&part)?, &links, kind, omega)?;
            let mut state = relaxation.state()?;
            // NaN, too, ends it.
            while state.theta > tol {
                stop.check()?;
                if relaxation.sweeps() >= max_sweeps {
                    let (theta, sweeps) = (state.theta, relaxation.sweeps());
                    return Err(Failure::other(format!(
                        "theta is {theta:.3e} after {sweeps} sweeps, asked was {tol:e}: give max_sweeps more, or another overrelax"
                    )));
                }
                let rest = 10.min(max_sweeps - relaxation.sweeps());
                state = relaxation.relax_while(rest, &mut || stop.flow())?;
            }
            if !state.theta.is_finite() {
                return Err(Failure::input("theta is not a number: links are too far from SU(3)"));
            }
            let sweeps = relaxation.sweeps();
            Ok((relaxation.finish()?, state, sweeps))
        })?;
        Ok((Links::new(Some(device), fixed)?, [state.theta, state.functional], sweeps))
    }
}

/// How links are smeared.
#[derive(Clone, Copy)]
enum Smearing {
    Stout(StoutSmearing),
    Projected(ProjectedSmearing),
}

/// SU(3) gauge theory by heat bath and over-relaxation: the links and the plaquette after each sweep.
#[pyfunction]
#[pyo3(signature = (device, lattice, beta, seed, sweeps, overrelax, hot, start = None, passes = 0))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub fn quenched(
    py: Python<'_>,
    device: &Bound<'_, Device>,
    lattice: Extents,
    beta: f64,
    seed: u64,
    sweeps: u32,
    overrelax: u32,
    hot: bool,
    start: Option<&Links>,
    passes: u32,
) -> PyResult<(Links, Vec<f64>)> {
    let part = part_of(Some(device), Lattice::new(lattice).map_err(Failure::from)?)?;
    if start.is_some_and(|links| links.part != part) {
        return Err(Failure::input(
            "the links to start from are on another lattice, or other processes have its parts",
        )
        .into());
    }
    let start = start.map(|links| links.gauge.clone());
    let (links, plaquettes) = device.get().run(py, move |thread, stop| -> Outcome<_> {
        let start = match &start {
            Some(links) => Start::Links(links, passes),
            None if hot => Start::Hot,
            None => Start::Cold,
        };
        let mut generator = Generator::new(&thread.domain(&part)?, start, beta, seed)?;
        let mut plaquettes = Vec::new();
        for _ in 0..sweeps {
            stop.check()?;
            generator.sweep_while(1, overrelax, &mut |_| stop.flow())?;
            stop.check()?;
            plaquettes.push(generator.plaquette()?.mean);
        }
        Ok((generator.gauge()?, plaquettes))
    })?;
    Ok((Links::new(Some(device), links)?, plaquettes))
}
