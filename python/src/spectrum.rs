//! Contractions of quark propagators, and sources.
use crate::arrays::{self, Given, Made};
use crate::device::Device;
use crate::failure::{Failure, Outcome};
use crate::host::on_host;
use crate::links::{Extents, Links};
use crate::processes::Cut;
use crate::propagator::{self, Columns, Quark};
use ferrite::Precision;
use ferrite::field::FullField;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::gauge::generate;
use ferrite::lattice::{Lattice, Section};
use ferrite::num_complex::Complex64;
use ferrite::observables::spectrum::gamma::{COUNT, Gamma, name};
use ferrite::observables::spectrum::mesons::Mesons;
use ferrite::observables::spectrum::nucleon::nucleon as nucleon_of;
use ferrite::observables::spectrum::sequential::{self, ChargeLinks, conserved_charge as conserved_charge_of};
use ferrite::observables::spectrum::sequential_nucleon::{
    FLAVOURS, NucleonSink, PROJECTORS, sequential_nucleon_source as nucleon_source_of,
};
use ferrite::observables::spectrum::smearing::{GaussianSmearing, SmearingLinks};
use ferrite::observables::spectrum::staggered::{NAMES, local_mesons, local_nucleon};
use ferrite::operators::{StaggeredPhases, TimeBoundary};
use pyo3::prelude::*;

/// That of the quark whose antiquark a meson has, where it is another one.
fn other<T: Fermion>(first: &Quark<T>, columns: Option<&Columns<'_>>, device: &Device) -> PyResult<Option<Quark<T>>> {
    let Some(columns) = columns else { return Ok(None) };
    let quark = Quark::of(columns, device)?;
    match quark.part() == first.part() {
        true => Ok(Some(quark)),
        false => Err(Failure::input("quark and antiquark are on different lattices").into()),
    }
}

/// *Collective.* Hadrons made on a device of the propagators of a quark and of another one, or the same twice, summed over all processes.
fn contracted<T: Fermion>(
    py: Python<'_>,
    device: &Device,
    (quark, antiquark): (Quark<T>, Option<Quark<T>>),
    make: impl FnOnce(&FullField, &FullField) -> ferrite::domain::Result<Vec<Complex64>> + Send + 'static,
) -> PyResult<Vec<Complex64>> {
    device.run(py, move |thread, _| {
        let domain = thread.domain(&quark.part())?;
        let quark = quark.on(thread, &domain)?;
        let antiquark = antiquark.map(|other| other.on(thread, &domain)).transpose()?;
        let made = make(&quark, antiquark.as_ref().unwrap_or(&quark))?;
        let mut parts: Vec<f64> = made.iter().flat_map(|z| [z.re, z.im]).collect();
        domain.sum(&mut parts)?;
        Ok(parts.chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect())
    })
}

fn inside(origin: Extents, lattice: Lattice) -> PyResult<()> {
    match origin.iter().zip(lattice.size()).all(|(x, extent)| *x < extent) {
        true => Ok(()),
        false => Err(Failure::input(format!("the site {origin:?} is not on a lattice of {lattice}")).into()),
    }
}

/// Mesons with one of the 16 matrices at the sink and one at the source, for each of these pairs: `[momentum, pair, time]`.
#[pyfunction]
pub fn mesons<'py>(
    py: Python<'py>,
    device: &Device,
    quark: Columns<'_>,
    antiquark: Option<Columns<'_>>,
    origin: Extents,
    momenta: Vec<[i32; 3]>,
    pairs: Vec<(usize, usize)>,
) -> PyResult<Made<'py>> {
    let quark = Quark::<Spinor>::of(&quark, device)?;
    let antiquark = other(&quark, antiquark.as_ref(), device)?;
    let lattice = quark.part().global;
    inside(origin, lattice)?;
    pairs.iter().flat_map(|(a, b)| [*a, *b]).try_for_each(known)?;
    let shape = [momenta.len(), pairs.len(), lattice.size()[3]];
    let of = (0..momenta.len()).flat_map(|k| pairs.iter().map(move |pair| (k, *pair))).collect::<Vec<_>>();
    let make = move |quark: &FullField, antiquark: &FullField| {
        let found = Mesons::new(quark, antiquark, origin, &momenta)?;
        let one = |(k, (sink, source))| found.correlator(Gamma::new(sink), Gamma::new(source), k);
        Ok(of.into_iter().flat_map(one).collect())
    };
    let all = contracted(py, device, (quark, antiquark), make)?;
    arrays::array(py, &shape, all)
}

/// The nucleon and its partner: `[momentum, parity, time]`.
#[pyfunction]
pub fn nucleon<'py>(
    py: Python<'py>,
    device: &Device,
    propagator: Columns<'_>,
    origin: Extents,
    momenta: Vec<[i32; 3]>,
    antiperiodic: bool,
) -> PyResult<Made<'py>> {
    let quark = Quark::<Spinor>::of(&propagator, device)?;
    let lattice = quark.part().global;
    inside(origin, lattice)?;
    let boundary = if antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic };
    let count = momenta.len();
    let make = move |quark: &FullField, _: &FullField| {
        let found = nucleon_of(quark, origin, &momenta, boundary)?;
        Ok(found.positive.into_iter().zip(found.negative).flat_map(|(a, b)| [a, b]).flatten().collect())
    };
    let all = contracted(py, device, (quark, None), make)?;
    arrays::array(py, &[count, 2, lattice.size()[3]], all)
}

/// The four local mesons of staggered quarks: `[meson, momentum, time]`.
#[pyfunction]
pub fn staggered_mesons<'py>(
    py: Python<'py>,
    device: &Device,
    quark: Columns<'_>,
    antiquark: Option<Columns<'_>>,
    origin: Extents,
    momenta: Vec<[i32; 3]>,
) -> PyResult<Made<'py>> {
    let quark = Quark::<ColourVector>::of(&quark, device)?;
    let antiquark = other(&quark, antiquark.as_ref(), device)?;
    let lattice = quark.part().global;
    inside(origin, lattice)?;
    let count = momenta.len();
    let make = move |quark: &FullField, antiquark: &FullField| {
        Ok(local_mesons(quark, antiquark, origin, &momenta)?.into_iter().flatten().flatten().collect())
    };
    let all = contracted(py, device, (quark, antiquark), make)?;
    arrays::array(py, &[NAMES.len(), count, lattice.size()[3]], all)
}

/// Names of these mesons.
#[pyfunction]
pub fn staggered_names() -> Vec<&'static str> {
    NAMES.to_vec()
}

/// The local nucleon of staggered quarks: `[momentum, time]`.
#[pyfunction]
pub fn staggered_nucleon<'py>(
    py: Python<'py>,
    device: &Device,
    propagator: Columns<'_>,
    origin: Extents,
    momenta: Vec<[i32; 3]>,
    antiperiodic: bool,
    milc_phases: bool,
) -> PyResult<Made<'py>> {
    let quark = Quark::<ColourVector>::of(&propagator, device)?;
    let lattice = quark.part().global;
    inside(origin, lattice)?;
    let boundary = if antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic };
    let convention = if milc_phases { StaggeredPhases::Milc } else { StaggeredPhases::Lexicographic };
    let count = momenta.len();
    let make = move |quark: &FullField, _: &FullField| {
        Ok(local_nucleon(quark, origin, &momenta, boundary, convention)?.concat())
    };
    let all = contracted(py, device, (quark, None), make)?;
    arrays::array(py, &[count, lattice.size()[3]], all)
}

/// A sink of three-point functions as Python gives it: the number of a meson's matrix, or the nucleon's projector and the current's
/// flavour by their names.
#[derive(FromPyObject)]
pub enum Sink {
    /// A meson's.
    Meson(usize),
    /// The nucleon's.
    Nucleon(String, String),
}

/// What makes η of a propagator's fields.
type MakeSource = Box<dyn FnOnce(Section, &[HostField<Spinor>]) -> Vec<HostField<Spinor>> + Send>;

impl Sink {
    /// For fields on a part of the lattice: how η is made of them, with the momentum, the origin and the time of the sink.
    pub fn source(
        &self,
        part: &Section,
        (momentum, origin, time): ([i32; 3], Extents, usize),
        antiperiodic: bool,
    ) -> PyResult<MakeSource> {
        inside(origin, part.global)?;
        if time >= part.global.size()[3] {
            return Err(Failure::input(format!("time {time} is not on a lattice of {}", part.global)).into());
        }
        match self {
            Sink::Meson(gamma) => {
                known(*gamma)?;
                let gamma = Gamma::new(*gamma);
                Ok(Box::new(move |part, fields| {
                    sequential::sequential_source(part, fields, gamma, momentum, origin, time)
                }))
            }
            Sink::Nucleon(projector, flavour) => {
                let projector = named("projector", &PROJECTORS, projector)?;
                let flavour = named("flavour", &FLAVOURS, flavour)?;
                let boundary = if antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic };
                let sink = NucleonSink { projector, flavour, momentum, time };
                Ok(Box::new(move |part, fields| nucleon_source_of(part, fields, &sink, origin, boundary)))
            }
        }
    }
}

/// η of a propagator through a sink, for all 12 components: `[12, …]`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub fn sequential_source<'py>(
    py: Python<'py>,
    device: Option<Bound<'_, Device>>,
    propagator: Given<'_>,
    sink: Sink,
    momentum: [i32; 3],
    origin: Extents,
    time: usize,
    antiperiodic: bool,
) -> PyResult<Made<'py>> {
    let fields = propagator::fields::<Spinor>(&propagator)?;
    let part = device.map_or(Cut::NONE, |device| device.get().cut()).part(fields[0].lattice())?;
    let make = sink.source(&part, (momentum, origin, time), antiperiodic)?;
    let made = on_host(py, move || Ok(make(part, &fields)))?;
    arrays::stacked(py, &[Spinor::COMPONENTS], &made)
}

fn named<T: Copy>(what: &str, all: &[(&'static str, T)], name: &str) -> Outcome<T> {
    match all.iter().find(|(known, _)| *known == name) {
        Some((_, found)) => Ok(*found),
        None => {
            let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
            Err(Failure::input(format!("'{name}' is no {what}: there are {}", names.join(", "))))
        }
    }
}

/// The conserved charge between source and sink: `[momentum, time]`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub fn conserved_charge<'py>(
    py: Python<'py>,
    device: &Device,
    links: &Links,
    quark: Columns<'_>,
    through: Columns<'_>,
    source: usize,
    origin: Extents,
    momenta: Vec<[i32; 3]>,
    antiperiodic: bool,
) -> PyResult<Made<'py>> {
    let (quark, through) = (Quark::<Spinor>::of(&quark, device)?, Quark::<Spinor>::of(&through, device)?);
    let (gauge, lattice) = (links.gauge.clone(), quark.part().global);
    inside(origin, lattice)?;
    known(source)?;
    if through.part() != quark.part() || links.part != quark.part() {
        return Err(Failure::input("links and propagators are on different lattices").into());
    }
    if device.cut().grid.is_partitioned(3) {
        let why = "the conserved charge needs all times in each process: take a grid of processes (x, y, z, 1)";
        return Err(Failure::input(why).into());
    }
    let boundary = if antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic };
    let count = momenta.len();
    let make = move |quark: &FullField, through: &FullField| {
        let links = ChargeLinks::new(quark.even.domain(), &gauge)?;
        Ok(conserved_charge_of(&links, [quark, through], Gamma::new(source), origin, &momenta, boundary)?.concat())
    };
    let all = contracted(py, device, (quark, Some(through)), make)?;
    arrays::array(py, &[count, lattice.size()[3]], all)
}

/// That a number is one of a product of γ matrices.
fn known(number: usize) -> PyResult<()> {
    match number < COUNT {
        true => Ok(()),
        false => Err(Failure::input(format!("{number} is no product of γ matrices: there are {COUNT}, from 0")).into()),
    }
}

/// Names of the 16 products of γ matrices.
#[pyfunction]
pub fn gamma_names() -> Vec<String> {
    (0..COUNT).map(name).collect()
}

/// A product of γ matrices in the DeGrand–Rossi basis: `[row, column]`.
#[pyfunction]
pub fn gamma_matrix(py: Python<'_>, number: usize) -> PyResult<Made<'_>> {
    known(number)?;
    let gamma = Gamma::new(number);
    let all = (0..16).map(|k| gamma.at(k / 4, k % 4)).collect();
    arrays::array(py, &[4, 4], all)
}

/// Random numbers by their global site, one for each component: `z4` (±1 ± i)/√2, or `gaussian` of variance 1.
#[pyfunction]
pub fn noise<'py>(
    py: Python<'py>,
    lattice: Extents,
    staggered: bool,
    kind: &str,
    seed: u64,
    number: u32,
) -> PyResult<Made<'py>> {
    let lattice = Lattice::new(lattice).map_err(Failure::from)?;
    fn made<T: Fermion>(lattice: Lattice, gaussian: bool, seed: u64, number: u32) -> HostField<T> {
        if gaussian { generate::random_source(lattice, seed) } else { generate::noise_source(lattice, seed, number) }
    }
    let gaussian = kind == "gaussian";
    match staggered {
        true => {
            let field = on_host(py, move || Ok(made::<ColourVector>(lattice, gaussian, seed, number)))?;
            arrays::stacked(py, &[], &[field])
        }
        false => {
            let field = on_host(py, move || Ok(made::<Spinor>(lattice, gaussian, seed, number)))?;
            arrays::stacked(py, &[], &[field])
        }
    }
}

/// Gaussian smearing of fields on links, on a device.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub fn gaussian<'py>(
    py: Python<'py>,
    device: &Device,
    links: &Links,
    given: Given<'_>,
    staggered: bool,
    width: f64,
    steps: usize,
    momentum: [f64; 3],
) -> PyResult<Made<'py>> {
    let smearing = GaussianSmearing { width, steps, momentum };
    if staggered {
        let (fields, axes) = arrays::fields::<ColourVector>(&given)?;
        arrays::stacked(py, &axes, &smeared(py, device, links, fields, smearing)?)
    } else {
        let (fields, axes) = arrays::fields::<Spinor>(&given)?;
        arrays::stacked(py, &axes, &smeared(py, device, links, fields, smearing)?)
    }
}

/// Fields that are smeared at once.
const TOGETHER: usize = 12;

fn smeared<T: Fermion>(
    py: Python<'_>,
    device: &Device,
    links: &Links,
    fields: Vec<HostField<T>>,
    smearing: GaussianSmearing,
) -> PyResult<Vec<HostField<T>>> {
    let (gauge, part, found) = (links.gauge.clone(), links.part, fields[0].lattice());
    if found != gauge.lattice() {
        let why = format!("a field on {found} cannot be smeared with links on {}", gauge.lattice());
        return Err(Failure::input(why).into());
    }
    device.run(py, move |thread, stop| {
        let domain = thread.domain(&part)?;
        let links = SmearingLinks::new(&domain, &gauge, T::KIND, Precision::Double, smearing.momentum)?;
        let mut all = Vec::with_capacity(fields.len());
        for together in fields.chunks(TOGETHER) {
            stop.check()?;
            all.extend(links.smear(&smearing, together)?);
        }
        Ok(all)
    })
}
