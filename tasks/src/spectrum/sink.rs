//! Sinks of three-point functions, and the sequential sources made there.
use crate::{Failure, Outcome, text};
use ferrite::field::host::{Fermion, HostSpinor, Spinor};
use ferrite::lattice::{Lattice, Section};
use ferrite::observables::spectrum::gamma::{COUNT, Gamma};
use ferrite::observables::spectrum::sequential::sequential_source;
use ferrite::observables::spectrum::sequential_nucleon::{
    FLAVOURS, Flavour, NucleonSink, PROJECTORS, SpinProjector, sequential_nucleon_source,
};
use ferrite::operators::TimeBoundary;
use serde::Deserialize;

/// Hadron at a sink.
#[derive(Clone, Copy)]
pub enum SinkOf {
    /// Meson with the matrix Γ.
    Meson(Gamma),
    /// Nucleon with a spin projector, and the flavour of the current.
    Nucleon(SpinProjector, Flavour),
}

impl SinkOf {
    /// Returns the matrix Γ at the source of the contraction that gives the three-point function.
    pub fn source(self) -> Gamma {
        match self {
            SinkOf::Meson(gamma) => gamma,
            SinkOf::Nucleon(..) => Gamma::five(),
        }
    }
    /// Returns the sequential source η for all components, on the sites of `section`. `fields` are the solutions for all components of the
    /// source on these sites; `at` is the place of the sink.
    pub fn sources(self, section: Section, fields: &[HostSpinor], at: &SinkPlace) -> Vec<HostSpinor> {
        let SinkPlace { momentum, origin, time, .. } = *at;
        match self {
            SinkOf::Meson(gamma) => sequential_source(section, fields, gamma, momentum, origin, time),
            SinkOf::Nucleon(projector, flavour) => {
                let sink = NucleonSink { projector, flavour, momentum, time };
                sequential_nucleon_source(section, fields, &sink, origin, boundary(at.antiperiodic))
            }
        }
    }
}

/// Momentum and time of a sink, with the source position of its propagator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SinkPlace {
    /// Momentum in units of 2π/L.
    pub momentum: [i32; 3],
    /// Source position.
    pub origin: [usize; 4],
    /// Time slice of the sink, counted on the whole lattice.
    pub time: usize,
    /// Whether quarks are antiperiodic in t.
    pub antiperiodic: bool,
}

/// Returns the boundary condition of quarks in t.
pub(super) fn boundary(antiperiodic: bool) -> TimeBoundary {
    if antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic }
}

/// Hadron at a sink: a meson by the number of its matrix, or the nucleon by the names of projector and flavour.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum NamedSink {
    /// Number of the matrix Γ of a meson.
    Meson(usize),
    /// Names of the nucleon's spin projector and of the current's flavour.
    Nucleon(String, String),
}

/// Request for the sequential sources at a sink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SinkRequest {
    /// Hadron at the sink.
    pub sink: NamedSink,
    /// Momentum and time of the sink, and the source position.
    #[serde(flatten)]
    pub place: SinkPlace,
}

impl SinkRequest {
    /// Returns the hadron at the sink.
    ///
    /// # Errors
    /// Sites that are not on the lattice, and unknown names.
    pub fn hadron(&self, lattice: Lattice) -> Outcome<SinkOf> {
        check_site(self.place.origin, lattice)?;
        if self.place.time >= lattice.size()[3] {
            return Err(Failure::refused(format!(
                "the time {} of the sink is outside the lattice {lattice}: times are 0 to {}",
                self.place.time,
                lattice.size()[3] - 1
            )));
        }
        Ok(match &self.sink {
            NamedSink::Meson(number) => SinkOf::Meson(gamma(*number)?),
            NamedSink::Nucleon(projector, flavour) => {
                SinkOf::Nucleon(named("projector", &PROJECTORS, projector)?, named("flavour", &FLAVOURS, flavour)?)
            }
        })
    }
    /// Returns the sequential source η for all 12 components on the sites of `fields`, the solutions for the source's components on a
    /// section of the lattice.
    ///
    /// # Errors
    /// Those of [`hadron`](Self::hadron), and another number of fields.
    pub fn sources(&self, section: Section, fields: &[HostSpinor]) -> Outcome<Vec<HostSpinor>> {
        let hadron = self.hadron(section.global)?;
        if fields.len() != Spinor::COMPONENTS {
            let (given, needed) = (text::count(fields.len(), "field"), Spinor::COMPONENTS);
            return Err(Failure::refused(format!("the array holds {given}, but a propagator has {needed}")));
        }
        Ok(hadron.sources(section, fields, &self.place))
    }
}

/// Returns the matrix Γ whose number is `number`: one of the 16 products of γ matrices.
///
/// # Errors
/// A number that none has.
pub fn gamma(number: usize) -> Outcome<Gamma> {
    match number < COUNT {
        true => Ok(Gamma::new(number)),
        false => Err(Failure::refused(format!(
            "{number} is not the number of a product of γ matrices: numbers are 0 to {}",
            COUNT - 1
        ))),
    }
}

/// Fails if a site is outside the lattice.
pub(super) fn check_site(site: [usize; 4], lattice: Lattice) -> Outcome {
    match site.iter().zip(lattice.size()).all(|(x, extent)| *x < extent) {
        true => Ok(()),
        false => Err(Failure::refused(format!(
            "the site {site:?} is outside the lattice {lattice}: the last site is {:?}",
            lattice.size().map(|extent| extent - 1)
        ))),
    }
}

fn named<T: Copy>(what: &str, all: &[(&'static str, T)], name: &str) -> Outcome<T> {
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, found)| *found);
    let names = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| Failure::refused(format!("'{name}' is not a {what}: choose one of {}", names())))
}
