//! Propagators that stay on a device from their solves to hadrons.
use crate::arrays::{self, Given, Made};
use crate::device::{Device, DeviceThread, Kept};
use crate::failure::Returned;
use crate::links::Links;
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

/// The solutions for all components of a source, in the memory of a device.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct DevicePropagator {
    kept: Kept,
    device: Py<Device>,
    part: Section,
    kind: FermionKind,
}

impl DevicePropagator {
    /// What a device keeps under a number: an `Rc<FullField>`.
    pub fn new(kept: Kept, device: Py<Device>, part: Section, kind: FermionKind) -> Self {
        DevicePropagator { kept, device, part, kind }
    }
    /// Under which number the device's thread has it.
    pub fn number(&self) -> u64 {
        self.kept.number()
    }
    /// The device.
    pub fn device(&self) -> &Py<Device> {
        &self.device
    }
    /// Which part of the lattice it is.
    pub fn part(&self) -> Section {
        self.part
    }
}

#[pymethods]
impl DevicePropagator {
    /// Where it is.
    #[getter(device)]
    fn its_device(&self, py: Python<'_>) -> Py<Device> {
        self.device.clone_ref(py)
    }
    /// That of its array: `[12, t, z, y, x, 4, 3]`, or `[3, t, z, y, x, 3]`.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        propagator_shape(self.kind, &self.part)
    }
    /// A copy in the memory of the host.
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
    /// Smeared at all times, on the device.
    fn gaussian(
        &self,
        py: Python<'_>,
        links: Bound<'_, Links>,
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

/// What is kept under a number.
pub fn field(thread: &mut DeviceThread, number: u64) -> Outcome<Rc<FullField>> {
    Ok(thread.kept::<Rc<FullField>>(number)?.clone())
}

/// Gaussian smearing as Python gives it: links, width, steps and momentum.
pub type GivenSmearing<'py> = (Bound<'py, Links>, f64, usize, [f64; 3]);

/// Returns Python's smearing for fields on a part of the lattice.
pub fn smearing((links, width, steps, momentum): &GivenSmearing<'_>, part: &Section) -> Outcome<LinkedSmearing> {
    let own = &links.get().own;
    if own.part != *part {
        return Err(Failure::refused("links and propagators are on different lattices"));
    }
    let smearing = GaussianSmearing { width: *width, steps: *steps, momentum: *momentum };
    Ok(LinkedSmearing { gauge: own.gauge.clone(), smearing })
}

/// A propagator as Python gives it.
#[derive(FromPyObject)]
pub enum Columns<'py> {
    /// In the memory of the device on which it is used.
    OnDevice(Bound<'py, DevicePropagator>),
    /// An array.
    Array(Given<'py>),
}

/// A propagator on its way to a device's thread.
pub enum Quark {
    /// It is there.
    Kept(u64, Section),
    /// One field for each component of the source, and the part of the lattice that they are on.
    Host(HostFields, Section),
}

impl Quark {
    /// That of Python, which has to be one of quarks of this kind, for a device.
    pub fn of(kind: FermionKind, columns: &Columns<'_>, device: &Device) -> Outcome<Self> {
        match columns {
            Columns::Array(given) => {
                let fields = arrays::propagator(kind, given)?;
                let part = device.place().section_of(fields.lattice()?)?;
                Ok(Quark::Host(fields, part))
            }
            Columns::OnDevice(there) => {
                let there = there.get();
                if there.kind != kind {
                    let shape = there.shape();
                    return Err(Failure::refused(format!("a propagator of shape {shape:?} is one of other quarks")));
                }
                if !std::ptr::eq(there.device.get(), device) {
                    return Err(Failure::refused("a propagator is on another device"));
                }
                Ok(Quark::Kept(there.number(), there.part))
            }
        }
    }
    /// Which part of the lattice it is on.
    pub fn part(&self) -> Section {
        match self {
            Quark::Kept(_, part) | Quark::Host(_, part) => *part,
        }
    }
    /// On the device.
    pub fn on(self, thread: &mut DeviceThread) -> Outcome<Rc<FullField>> {
        match self {
            Quark::Kept(number, _) => field(thread, number),
            Quark::Host(fields, part) => Ok(Rc::new(on_device(&thread.device, &part, &fields)?)),
        }
    }
}
