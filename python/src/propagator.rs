//! Propagators that stay on a device from their solves to hadrons.
use crate::arrays::{self, Given, Made};
use crate::device::{Device, DeviceThread, Kept};
use crate::failure::{Failure, Outcome};
use crate::links::Links;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, Fermion, HostField, HostGauge, Spinor};
use ferrite::field::{FieldShape, FullField};
use ferrite::lattice::{Lattice, Section};
use ferrite::num_complex::Complex64;
use ferrite::observables::spectrum::smearing::{GaussianSmearing, SmearingLinks};
use ferrite::{FermionKind, Precision};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use std::rc::Rc;
use std::sync::Arc;

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
    fn components(&self) -> &'static [usize] {
        match self.kind {
            FermionKind::Wilson => Spinor::SHAPE,
            FermionKind::Staggered => ColourVector::SHAPE,
        }
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
        let own = self.components();
        let sites = self.part.local.size().into_iter().rev();
        [own.iter().product()].into_iter().chain(sites).chain(own.iter().copied()).collect()
    }
    /// A copy in the memory of the host.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Made<'py>> {
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
        links: &Links,
        width: f64,
        steps: usize,
        momentum: [f64; 3],
    ) -> PyResult<DevicePropagator> {
        let smearing = GaussianSmearing { width, steps, momentum };
        let (number, kind, part, gauge) = (self.number(), self.kind, self.part, links.gauge.clone());
        same_part(links, &part)?;
        let kept = self.device.get().keep(py, move |thread, _| {
            let (domain, field) = (thread.domain(&part)?, field(thread, number)?);
            let on = SmearingLinks::new(&domain, &gauge, kind, Precision::Double, smearing.momentum)?;
            let copy = field.rhs(0..field.even.nrhs(), &domain)?;
            Ok(Rc::new(on.smear_on_device(&smearing, copy)?))
        })?;
        Ok(DevicePropagator { kept, device: self.device.clone_ref(py), part, kind })
    }
}

/// That links are on the sites of a propagator.
fn same_part(links: &Links, part: &Section) -> Outcome {
    match links.part == *part {
        true => Ok(()),
        false => Err(Failure::input("links and propagators are on different lattices")),
    }
}

/// What is kept under a number.
pub fn field(thread: &mut DeviceThread, number: u64) -> Outcome<Rc<FullField>> {
    Ok(thread.kept::<Rc<FullField>>(number)?.clone())
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
pub enum Quark<T> {
    /// It is there.
    Kept(u64, Section),
    /// One field for each component of the source, and the part of the lattice that they are on.
    Host(Vec<HostField<T>>, Section),
}

impl<T: Fermion> Quark<T> {
    /// That of Python, which has to be one of quarks of this kind, for a device.
    pub fn of(columns: &Columns<'_>, device: &Device) -> PyResult<Self> {
        match columns {
            Columns::Array(given) => {
                let fields = fields::<T>(given)?;
                let part = device.cut().part(fields[0].lattice())?;
                Ok(Quark::Host(fields, part))
            }
            Columns::OnDevice(there) => {
                let there = there.get();
                if there.kind != T::KIND {
                    let shape = there.shape();
                    return Err(
                        Failure::input(format!("a propagator of shape {shape:?} is one of other quarks")).into()
                    );
                }
                if !std::ptr::eq(there.device.get(), device) {
                    return Err(Failure::input("a propagator is on another device").into());
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
    pub fn on(self, thread: &mut DeviceThread, domain: &Domain) -> Outcome<Rc<FullField>> {
        match self {
            Quark::Kept(number, _) => field(thread, number),
            Quark::Host(fields, _) => Ok(Rc::new(FullField::of_host(domain, &fields)?)),
        }
    }
}

/// Fields of a propagator in an array: one for each component of its source.
pub fn fields<T: Fermion>(given: &Given<'_>) -> PyResult<Vec<HostField<T>>> {
    let (fields, axes) = arrays::fields::<T>(given)?;
    if axes != [T::COMPONENTS] {
        let (shape, count) = (given.shape(), T::COMPONENTS);
        let why = format!("an array of shape {shape:?} is no propagator, which has one axis of {count} in front");
        return Err(Failure::input(why).into());
    }
    Ok(fields)
}

/// Fields of one time of this process's part, and which; `None` where it has other times.
pub type OneTime<T> = Option<(usize, Vec<HostField<T>>)>;

/// How sources and sinks are smeared: links and the rest.
#[derive(Clone)]
pub struct Shell {
    gauge: Arc<HostGauge>,
    smearing: GaussianSmearing,
}

/// A shell as Python gives it: links, width, steps and momentum.
pub type GivenShell<'py> = (Bound<'py, Links>, f64, usize, [f64; 3]);

impl Shell {
    /// That of Python, for fields on a part of the lattice.
    pub fn of((links, width, steps, momentum): &GivenShell<'_>, part: &Section) -> Outcome<Self> {
        same_part(links.get(), part)?;
        let smearing = GaussianSmearing { width: *width, steps: *steps, momentum: *momentum };
        Ok(Shell { gauge: links.get().gauge.clone(), smearing })
    }
    /// *Collective.* Fields of one time smeared, on a lattice of two times in each process.
    pub fn smear<T: Fermion>(&self, thread: &DeviceThread, sources: OneTime<T>) -> Outcome<OneTime<T>> {
        let [x, y, z, _] = self.gauge.lattice().size();
        let domain = thread.domain_of(Lattice::new([x, y, z, 2])?)?;
        let (time, fields) = sources.map_or((None, Vec::new()), |(time, fields)| (Some(time), fields));
        let links = (&*self.gauge, time.unwrap_or(0));
        let on = SmearingLinks::of_time(&domain, links, T::KIND, Precision::Double, self.smearing.momentum)?;
        let field = match time {
            Some(_) => FullField::of_time(&domain, 0, &fields)?,
            None => FullField::zero(&domain, FieldShape::new(T::KIND, Precision::Double, T::COMPONENTS))?,
        };
        let smeared = on.smear_on_device(&self.smearing, field)?.at_time(0)?;
        Ok(time.map(|time| (time, smeared)))
    }
}

/// All components of a source with this profile, `[z, y, x]`, at a local time; none where the process has not that time.
pub fn of_profile<T: Fermion>(part: &Section, time: usize, profile: Option<Given<'_>>) -> Outcome<OneTime<T>> {
    let Some(local) = time.checked_sub(part.origin[3]).filter(|local| *local < part.local.size()[3]) else {
        return Ok(None);
    };
    let lattice = part.local.of_one_time();
    let Some(profile) = profile else { return Err(Failure::other("a source has no profile")) };
    let numbers = arrays::numbers(&profile)?;
    if numbers.len() != lattice.volume() {
        return Err(Failure::input(format!("a profile of shape {:?} is not that of {lattice}", profile.shape())));
    }
    let one = |component: usize| {
        let mut field = HostField::<T>::zero(lattice);
        let sites = field.numbers_mut().chunks_exact_mut(T::COMPONENTS);
        sites.zip(numbers).for_each(|(site, value)| site[component] = *value);
        field
    };
    Ok(Some((local, (0..T::COMPONENTS).map(one).collect())))
}
