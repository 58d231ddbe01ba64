//! Propagators that stay on a device, from their solves to the contractions.
use crate::arrays::{self, Given, Made};
use crate::device::{DeviceHandle, DeviceThread, PyDevice};
use crate::failure::Returned;
use crate::links::PyLinks;
use ferrite::FermionKind;
use ferrite::field::FullField;
use ferrite::lattice::Section;
use ferrite::num_complex::Complex64;
use ferrite::observables::spectrum::smearing::GaussianSmearing;
use ferrite_tasks::dirac::{LinkedSmearing, on_device, propagator_shape};
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::{Failure, Outcome};
use pyo3::prelude::*;
use std::rc::Rc;

/// Solutions for all components of a source, in device memory.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct DevicePropagator {
    kept: DeviceHandle,
    device: Py<PyDevice>,
    part: Section,
    kind: FermionKind,
}

impl DevicePropagator {
    /// Returns a propagator from the `Rc<FullField>` that the thread of a device keeps.
    pub fn new(kept: DeviceHandle, device: Py<PyDevice>, part: Section, kind: FermionKind) -> Self {
        DevicePropagator { kept, device, part, kind }
    }
    /// Returns the number under which the device's thread keeps the propagator.
    pub fn number(&self) -> u64 {
        self.kept.number()
    }
    /// Returns the device that keeps the propagator.
    pub fn device(&self) -> &Py<PyDevice> {
        &self.device
    }
    /// Returns the part of the lattice that the propagator is on.
    pub fn part(&self) -> Section {
        self.part
    }
}

#[pymethods]
impl DevicePropagator {
    /// Returns the device that keeps the propagator.
    #[getter(device)]
    fn its_device(&self, py: Python<'_>) -> Py<PyDevice> {
        self.device.clone_ref(py)
    }
    /// Returns the shape of the array: `[12, t, z, y, x, 4, 3]`, or `[3, t, z, y, x, 3]`.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        propagator_shape(self.kind, &self.part)
    }
    /// Returns a copy in host memory as a NumPy array.
    fn numpy<'py>(&self, py: Python<'py>) -> Returned<Made<'py>> {
        let number = self.number();
        let numbers = self.device.get().run(py, move |thread, _| {
            let array = field(thread, number)?.unpack()?;
            let mut numbers = vec![Complex64::ZERO; array.len()];
            array.download(0, &mut numbers)?;
            Ok(numbers)
        })?;
        arrays::array(py, &self.shape(), numbers)
    }
    /// Returns the propagator on the device with Gaussian smearing on all time slices.
    fn gaussian(
        &self,
        py: Python<'_>,
        links: Bound<'_, PyLinks>,
        width: f64,
        steps: usize,
        momentum: [f64; 3],
    ) -> Returned<DevicePropagator> {
        let smearing = smearing(&(links, width, steps, momentum), &self.part)?;
        let (number, part) = (self.number(), self.part);
        let kept = self.device.get().keep(py, move |thread, _| {
            let field = field(thread, number)?;
            Ok(Rc::new(smearing.copy_of(&thread.device, &part, &field)?))
        })?;
        Ok(DevicePropagator { kept, device: self.device.clone_ref(py), part, kind: self.kind })
    }
}

/// Returns the propagator that the thread of a device keeps under a number.
pub fn field(thread: &mut DeviceThread, number: u64) -> Outcome<Rc<FullField>> {
    Ok(thread.kept::<Rc<FullField>>(number)?.clone())
}

/// Gaussian smearing as Python passes it: links, width, steps and momentum.
pub type GivenSmearing<'py> = (Bound<'py, PyLinks>, f64, usize, [f64; 3]);

/// Converts the Gaussian smearing that Python passes, for fields on a part of the lattice.
pub fn smearing((links, width, steps, momentum): &GivenSmearing<'_>, part: &Section) -> Outcome<LinkedSmearing> {
    let own = &links.get().own;
    if own.part != *part {
        return Err(Failure::refused(
            "the links of the Gaussian smearing are on another lattice than the propagator: give both on one lattice",
        ));
    }
    let smearing = GaussianSmearing { width: *width, steps: *steps, momentum: *momentum };
    Ok(LinkedSmearing { gauge: own.gauge.clone(), smearing })
}

/// Propagator as Python passes it.
#[derive(FromPyObject)]
pub enum GivenPropagator<'py> {
    /// Propagator in the memory of the device that uses it.
    OnDevice(Bound<'py, DevicePropagator>),
    /// Propagator in a NumPy array.
    Array(Given<'py>),
}

/// Propagator in the form in which it is sent to the thread of a device.
pub enum SentPropagator {
    /// Number of a propagator on the device, and its part of the lattice.
    Kept(u64, Section),
    /// Fields of a propagator, one for each component of the source, and their part of the lattice.
    Host(HostFields, Section),
}

impl SentPropagator {
    /// Converts a propagator for the thread of a device. Fails if it does not belong to quarks of the type `kind`, or
    /// if it is on another device.
    pub fn of(kind: FermionKind, columns: &GivenPropagator<'_>, device: &PyDevice) -> Outcome<Self> {
        match columns {
            GivenPropagator::Array(given) => {
                let fields = arrays::propagator(kind, given)?;
                let part = device.place().section_of(fields.lattice()?)?;
                Ok(SentPropagator::Host(fields, part))
            }
            GivenPropagator::OnDevice(there) => {
                let there = there.get();
                if there.kind != kind {
                    let shape = there.shape();
                    let both = ["staggered", "Wilson-like"];
                    let [quarks, found] = if kind == FermionKind::Staggered { both } else { [both[1], both[0]] };
                    return Err(Failure::refused(format!(
                        "a propagator of {quarks} quarks is expected, but the given one, of shape {shape:?}, is of \
                         {found} quarks: give a propagator of {quarks} quarks"
                    )));
                }
                if !std::ptr::eq(there.device.get(), device) {
                    return Err(Failure::refused(
                        "the propagator is on another device: use the device on which it was computed",
                    ));
                }
                Ok(SentPropagator::Kept(there.number(), there.part))
            }
        }
    }
    /// Returns the part of the lattice that the propagator is on.
    pub fn part(&self) -> Section {
        match self {
            SentPropagator::Kept(_, part) | SentPropagator::Host(_, part) => *part,
        }
    }
    /// Returns the propagator on the device. Copies it there if it is in host memory.
    pub fn on(self, thread: &mut DeviceThread) -> Outcome<Rc<FullField>> {
        match self {
            SentPropagator::Kept(number, _) => field(thread, number),
            SentPropagator::Host(fields, part) => Ok(Rc::new(on_device(&thread.device, &part, &fields)?)),
        }
    }
}
