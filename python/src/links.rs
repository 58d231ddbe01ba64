//! Gauge fields in host memory, and operations on a device with them.
use crate::arrays::{self, Given};
use crate::device::{PyDevice, Stop};
use crate::failure::Returned;
use crate::files::shared;
use crate::host::{on_host, undisturbed};
use crate::typed::Typed;
use ferrite::field::host::HostGauge;
use ferrite::files::ReadOptions;
use ferrite::gauge::generate;
use ferrite::lattice::{Lattice, Section};
use ferrite_records::links::{FlowSteps, LinksDescription, MeasuredLoops};
use ferrite_tasks::grid_device::GridDevice;
use ferrite_tasks::host_fields::check_finite;
use ferrite_tasks::layout::GridRank;
use ferrite_tasks::link_smearing::SmearingRequest;
use ferrite_tasks::links::{self, FixingRequest, FlowRequest, LatticeLinks, QuenchedRequest, describe};
use ferrite_tasks::{Failure, Outcome};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

/// Links of a configuration, or this process's part of them. They never change.
#[pyclass(frozen, module = "ferrite_lqcd._native", name = "Links")]
pub struct PyLinks {
    /// Links on a part of the lattice, which operators on a device share.
    pub own: LatticeLinks,
    /// Device whose other processes have the other parts; `None` if this process has the whole lattice.
    device: Option<Py<PyDevice>>,
}

fn place(device: Option<&Bound<'_, PyDevice>>) -> GridRank {
    device.map_or(GridRank::SINGLE, |device| device.get().place())
}

/// Returns this process's part of a lattice on a device; the whole lattice without a device.
fn part_of(device: Option<&Bound<'_, PyDevice>>, lattice: Extents) -> Outcome<Section> {
    place(device).section(Lattice::new(lattice)?)
}

/// Extents x, y, z and t of a lattice.
pub type Extents = [usize; 4];

impl PyLinks {
    /// Returns links on this process's part of a lattice.
    pub fn new(device: Option<&Bound<'_, PyDevice>>, gauge: HostGauge) -> Outcome<Self> {
        let place = place(device);
        let part = place.section_of(gauge.lattice())?;
        let device = device.filter(|_| place.is_shared()).map(|device| device.clone().unbind());
        Ok(PyLinks { own: LatticeLinks { gauge: Arc::new(gauge), part }, device })
    }
    /// *Collective.* Does work with the links: on their device if several processes have parts of them, otherwise on the host.
    fn together<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&LatticeLinks, Option<&GridDevice>) -> Outcome<T> + Send + 'static,
    ) -> Returned<T> {
        let own = self.own.clone();
        match &self.device {
            Some(device) => device.get().run(py, move |thread, _| work(&own, Some(&thread.device))),
            None => on_host(py, move || work(&own, None)),
        }
    }
    /// Calls `work` on a device, and returns the new links that it creates, with another result.
    fn changed<T: Send + 'static>(
        &self,
        device: &Bound<'_, PyDevice>,
        work: impl FnOnce(&LatticeLinks, &GridDevice, &Stop) -> Outcome<(HostGauge, T)> + Send + 'static,
    ) -> Returned<(Self, T)> {
        let own = self.own.clone();
        let made = device.get().run(device.py(), move |thread, stop| work(&own, &thread.device, stop))?;
        Ok((PyLinks::new(Some(device), made.0)?, made.1))
    }
}

#[pymethods]
impl PyLinks {
    /// *Collective.* Reads links and other records from a file. With a device of several processes, each process reads its part.
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
        device: Option<Bound<'_, PyDevice>>,
    ) -> Returned<(Self, Typed<LinksDescription>)> {
        let lattice = lattice.map(Lattice::of_any_extents).transpose().map_err(Failure::from)?;
        let options = ReadOptions { verify, allow_non_unitary, reunitarise, lattice, record };
        let file = match shared(device.as_ref()) {
            None => on_host(py, move || links::read(None, &path, &options))?,
            Some(device) => device.run(py, move |thread, _| links::read(Some(&thread.device), &path, &options))?,
        };
        let said = Typed(describe(&file));
        Ok((PyLinks::new(device.as_ref(), file.gauge)?, said))
    }
    /// Returns links from an array `[T, Z, Y, X, 4, 3, 3]`.
    #[staticmethod]
    #[pyo3(signature = (given, device = None))]
    fn from_array(given: Given<'_>, device: Option<Bound<'_, PyDevice>>) -> Returned<Self> {
        let numbers = arrays::numbers(&given)?;
        check_finite("links", numbers)?;
        let gauge = HostGauge::from_numbers(given.shape(), numbers).map_err(Failure::from)?;
        Ok(PyLinks::new(device.as_ref(), gauge)?)
    }
    /// Returns unit links.
    #[staticmethod]
    #[pyo3(signature = (lattice, device = None))]
    fn unit(lattice: Extents, device: Option<Bound<'_, PyDevice>>) -> Returned<Self> {
        let part = part_of(device.as_ref(), lattice)?;
        Ok(PyLinks::new(device.as_ref(), HostGauge::unit(part.local))?)
    }
    /// Returns random links: near 1 if `noise` is small, or distributed with the Haar measure without `noise`.
    #[staticmethod]
    #[pyo3(signature = (lattice, seed, noise = None, device = None))]
    fn random(
        py: Python<'_>,
        lattice: Extents,
        seed: u64,
        noise: Option<f64>,
        device: Option<Bound<'_, PyDevice>>,
    ) -> Returned<Self> {
        let part = part_of(device.as_ref(), lattice)?;
        let near = move |noise| generate::weak_field(part, seed, noise);
        let made = on_host(py, move || Ok(noise.map_or_else(|| generate::random(part, seed), near)))?;
        Ok(PyLinks::new(device.as_ref(), made)?)
    }
    /// Returns the extents x, y, z, t of the whole lattice.
    #[getter]
    fn lattice(&self) -> Extents {
        self.own.part.global.size()
    }
    /// Returns NumPy's array interface to the links, without a copy. NumPy keeps this object alive and must not write to it.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let gauge = &self.own.gauge;
        let interface = PyDict::new(py);
        interface.set_item("shape", PyTuple::new(py, gauge.shape())?)?;
        interface.set_item("typestr", if cfg!(target_endian = "little") { "<c16" } else { ">c16" })?;
        interface.set_item("data", (gauge.numbers().as_ptr().addr(), true))?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
    /// Writes the links to a file, whose name determines the format.
    #[pyo3(signature = (path, title, metadata, single = false))]
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        title: String,
        metadata: Vec<(String, String)>,
        single: bool,
    ) -> Returned {
        let texts = (title, metadata);
        match &self.device {
            None => undisturbed(py, || self.own.write(None, &path, texts, single)),
            Some(_) => self.together(py, move |links, device| links.write(device, &path, texts, single)),
        }
    }
    /// *Collective.* Returns four means: plaquettes of all planes, of the spatial and of the temporal planes, and link trace.
    fn plaquette(&self, py: Python<'_>) -> Returned<[f64; 4]> {
        self.together(py, LatticeLinks::plaquettes)
    }
    /// *Collective.* Returns the largest deviation of a link from SU(3).
    fn unitarity(&self, py: Python<'_>) -> Returned<f64> {
        self.together(py, LatticeLinks::unitarity)
    }
    /// Returns plaquette, rectangle, Polyakov loop, energy density and topological charge.
    fn loops(&self, py: Python<'_>, device: &PyDevice) -> Returned<Typed<MeasuredLoops>> {
        let own = self.own.clone();
        device.run(py, move |thread, _| own.loops(&thread.device).map(Typed))
    }
    /// Returns the smeared links.
    fn smear(&self, device: &Bound<'_, PyDevice>, request: Typed<SmearingRequest>) -> Returned<Self> {
        let smear = move |links: &LatticeLinks, device: &_, stop: &Stop| {
            Ok((links.smeared(device, &request.0, &mut || stop.flow())?, ()))
        };
        Ok(self.changed(device, smear)?.0)
    }
    /// Returns the links at the end of a gradient flow, and the energy densities and topological charge at each step.
    fn flow(&self, device: &Bound<'_, PyDevice>, request: Typed<FlowRequest>) -> Returned<(Self, Typed<FlowSteps>)> {
        let (links, steps) =
            self.changed(device, move |links, device, stop| links.flowed(device, &request.0, &mut || stop.flow()))?;
        Ok((links, Typed(steps)))
    }
    /// Fixes the gauge. Returns the links, the deviation θ, the gauge functional and the number of sweeps.
    fn fix(&self, device: &Bound<'_, PyDevice>, request: Typed<FixingRequest>) -> Returned<(Self, ([f64; 2], usize))> {
        self.changed(device, move |links, device, stop| {
            let fixed = links.fixed(device, &request.0, &mut || stop.flow())?;
            Ok((fixed.gauge, ([fixed.theta, fixed.functional], fixed.sweeps)))
        })
    }
}

/// Generates links of SU(3) gauge theory by heat bath and over-relaxation. Returns the links, and the plaquette after each sweep.
#[pyfunction]
#[pyo3(signature = (device, lattice, request, start = None))]
pub fn quenched(
    py: Python<'_>,
    device: &Bound<'_, PyDevice>,
    lattice: Extents,
    request: Typed<QuenchedRequest>,
    start: Option<&PyLinks>,
) -> Returned<(PyLinks, Vec<f64>)> {
    let (part, start) = (part_of(Some(device), lattice)?, start.map(|links| links.own.clone()));
    let (links, plaquettes) = device.get().run(py, move |thread, stop| {
        links::quenched(&thread.device, &part, &request.0, start.as_ref(), &mut || stop.flow())
    })?;
    Ok((PyLinks::new(Some(device), links)?, plaquettes))
}
