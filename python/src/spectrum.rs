//! Contractions of quark propagators, and their sources.
use crate::arrays::{self, Given, Made};
use crate::device::PyDevice;
use crate::failure::Returned;
use crate::host::on_host;
use crate::links::PyLinks;
use crate::propagator::{GivenPropagator, GivenSmearing, SentPropagator, smearing};
use crate::typed::Typed;
use ferrite::FermionKind;
use ferrite::lattice::Lattice;
use ferrite::observables::spectrum::gamma::{COUNT, name};
use ferrite::observables::spectrum::staggered::NAMES;
use ferrite_tasks::Failure;
use ferrite_tasks::host_fields::{HostFields, components};
use ferrite_tasks::layout::GridRank;
use ferrite_tasks::spectrum::contraction::Contraction;
use ferrite_tasks::spectrum::sink::{SinkRequest, gamma};
use pyo3::prelude::*;

/// *Collective.* Returns correlators from the propagators of one or two quarks. Only the conserved charge needs the links.
#[pyfunction]
#[pyo3(signature = (device, request, quark, other = None, links = None))]
pub fn contract<'py>(
    py: Python<'py>,
    device: &PyDevice,
    request: Typed<Contraction>,
    quark: GivenPropagator<'_>,
    other: Option<GivenPropagator<'_>>,
    links: Option<&PyLinks>,
) -> Returned<Made<'py>> {
    let Typed(request) = request;
    let of = |columns: &GivenPropagator<'_>| SentPropagator::of(request.kind(), columns, device);
    let (quark, other) = (of(&quark)?, other.as_ref().map(of).transpose()?);
    let part = quark.part();
    let both = if links.is_some() { "links and propagators" } else { "the propagators of quark and antiquark" };
    if other.iter().map(SentPropagator::part).chain(links.map(|links| links.own.part)).any(|other| other != part) {
        return Err(Failure::refused(format!("{both} are on different lattices: give both on one lattice")).into());
    }
    request.check(&part, device.place())?;
    let (shape, gauge) = (request.shape(&part), links.map(|links| links.own.gauge.clone()));
    let all = device.run(py, move |thread, _| {
        let quark = quark.on(thread)?;
        let other = other.map(|other| other.on(thread)).transpose()?;
        request.correlators(&quark, other.as_ref().unwrap_or(&quark), gauge.as_deref())
    })?;
    arrays::array(py, &shape, all)
}

/// Returns the names of the local mesons of staggered quarks.
#[pyfunction]
pub fn staggered_names() -> Vec<&'static str> {
    NAMES.to_vec()
}

/// Returns the sequential source η at a sink, made from a propagator, for all 12 components: `[12, …]`.
#[pyfunction]
pub fn sequential_source<'py>(
    py: Python<'py>,
    device: Option<Bound<'_, PyDevice>>,
    propagator: Given<'_>,
    sink: Typed<SinkRequest>,
) -> Returned<Made<'py>> {
    let (fields, Typed(sink)) = (arrays::propagator(FermionKind::Wilson, &propagator)?, sink);
    let place = device.map_or(GridRank::SINGLE, |device| device.get().place());
    let part = place.section_of(fields.lattice()?)?;
    let HostFields::Wilson(fields) = fields else { return Err(Failure::refused("quarks without spins").into()) };
    let made = on_host(py, move || Ok(HostFields::from(sink.sources(part, &fields)?)))?;
    arrays::stacked(py, &[components(FermionKind::Wilson)], &made)
}

/// Returns the names of the 16 matrices Γ, products of γ matrices.
#[pyfunction]
pub fn gamma_names() -> Vec<String> {
    (0..COUNT).map(name).collect()
}

/// Returns the matrix Γ number `number` in the DeGrand–Rossi basis: `[row, column]`.
#[pyfunction]
pub fn gamma_matrix(py: Python<'_>, number: usize) -> Returned<Made<'_>> {
    let gamma = gamma(number)?;
    arrays::array(py, &[4, 4], (0..16).map(|k| gamma.at(k / 4, k % 4)).collect())
}

/// Returns a field of random numbers, which depend on the global site: noise (±1 ± i)/√2 for `z4`, or normal numbers of variance 1 for
/// `gaussian`.
#[pyfunction]
pub fn noise<'py>(
    py: Python<'py>,
    lattice: [usize; 4],
    staggered: bool,
    kind: &str,
    seed: u64,
    number: u32,
) -> Returned<Made<'py>> {
    let (lattice, is_gaussian) = (Lattice::new(lattice).map_err(Failure::from)?, kind == "gaussian");
    let made = move || Ok(HostFields::noise(arrays::kind(staggered), lattice, is_gaussian, seed, number));
    arrays::stacked(py, &[], &on_host(py, made)?)
}

/// Applies Gaussian smearing to fields on links, on a device.
#[pyfunction]
pub fn gaussian<'py>(
    py: Python<'py>,
    device: &PyDevice,
    given: Given<'_>,
    staggered: bool,
    smeared: GivenSmearing<'_>,
) -> Returned<Made<'py>> {
    let part = smeared.0.get().own.part;
    let ((fields, axes), smearing) = (arrays::fields(arrays::kind(staggered), &given)?, smearing(&smeared, &part)?);
    let smeared =
        device.run(py, move |thread, stop| smearing.fields(&thread.device, &part, &fields, &mut || stop.flow()))?;
    arrays::stacked(py, &axes, &smeared)
}
