//! Sinks of three-point functions, and the sources that propagators make there.
use crate::{Failure, Outcome};
use ferrite::field::host::{Fermion, HostSpinor, Spinor};
use ferrite::lattice::{Lattice, Section};
use ferrite::observables::spectrum::gamma::{COUNT, Gamma};
use ferrite::observables::spectrum::sequential::sequential_source;
use ferrite::observables::spectrum::sequential_nucleon::{
    FLAVOURS, Flavour, NucleonSink, PROJECTORS, SpinProjector, sequential_nucleon_source,
};
use ferrite::operators::TimeBoundary;
use serde::Deserialize;

/// The hadron at a sink.
#[derive(Clone, Copy)]
pub enum SinkOf {
    /// A meson, with its Γ.
    Meson(Gamma),
    /// The nucleon, with a current of a flavour.
    Nucleon(SpinProjector, Flavour),
}

impl SinkOf {
    /// Returns the source's Γ of the meson as whose correlator the three-point function is made.
    pub fn source(self) -> Gamma {
        match self {
            SinkOf::Meson(gamma) => gamma,
            SinkOf::Nucleon(..) => Gamma::five(),
        }
    }
    /// Returns η for all components, made of the solutions for all sources at an origin, `fields`, on the sites of a section of the sink's
    /// time.
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

/// Momentum and time of a sink, and the source of its propagator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SinkPlace {
    /// Momentum in units of 2π/L.
    pub momentum: [i32; 3],
    /// Source position.
    pub origin: [usize; 4],
    /// Time on the whole lattice.
    pub time: usize,
    /// Whether quarks change their sign at the end of the lattice in t.
    pub antiperiodic: bool,
}

/// Returns the boundary condition in t.
pub(super) fn boundary(antiperiodic: bool) -> TimeBoundary {
    if antiperiodic { TimeBoundary::Antiperiodic } else { TimeBoundary::Periodic }
}

/// A hadron at a sink, by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum NamedSink {
    /// Number of a meson's product of γ matrices.
    Meson(usize),
    /// Projector of the nucleon, and flavour of the current.
    Nucleon(String, String),
}

/// A request for the sources that a propagator makes at a sink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SinkRequest {
    /// The hadron.
    pub sink: NamedSink,
    /// Momentum, source and time.
    #[serde(flatten)]
    pub place: SinkPlace,
}

impl SinkRequest {
    /// Returns the hadron at the sink on a lattice.
    ///
    /// # Errors
    /// Sites that are not on the lattice, and unknown names.
    pub fn hadron(&self, lattice: Lattice) -> Outcome<SinkOf> {
        check_site(self.place.origin, lattice)?;
        if self.place.time >= lattice.size()[3] {
            return Err(Failure::refused(format!("time {} is outside the lattice {lattice}", self.place.time)));
        }
        Ok(match &self.sink {
            NamedSink::Meson(number) => SinkOf::Meson(gamma(*number)?),
            NamedSink::Nucleon(projector, flavour) => {
                SinkOf::Nucleon(named("projector", &PROJECTORS, projector)?, named("flavour", &FLAVOURS, flavour)?)
            }
        })
    }
    /// Returns η for all 12 components on the sites that the fields of a propagator have, a section of the lattice.
    ///
    /// # Errors
    /// Those of [`hadron`](Self::hadron), and another number of fields.
    pub fn sources(&self, section: Section, fields: &[HostSpinor]) -> Outcome<Vec<HostSpinor>> {
        let hadron = self.hadron(section.global)?;
        if fields.len() != Spinor::COMPONENTS {
            return Err(Failure::refused(format!("{} fields are not a propagator of 12 components", fields.len())));
        }
        Ok(hadron.sources(section, fields, &self.place))
    }
}

/// Returns the product of γ matrices with a number.
///
/// # Errors
/// A number that none has.
pub fn gamma(number: usize) -> Outcome<Gamma> {
    match number < COUNT {
        true => Ok(Gamma::new(number)),
        false => Err(Failure::refused(format!(
            "{number} is not the number of a product of γ matrices: there are \
                                               {COUNT}, from 0"
        ))),
    }
}

/// Refuses a site that is not on a lattice.
pub(super) fn check_site(site: [usize; 4], lattice: Lattice) -> Outcome {
    match site.iter().zip(lattice.size()).all(|(x, extent)| *x < extent) {
        true => Ok(()),
        false => Err(Failure::refused(format!("the site {site:?} is outside the lattice {lattice}"))),
    }
}

fn named<T: Copy>(what: &str, all: &[(&'static str, T)], name: &str) -> Outcome<T> {
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, found)| *found);
    let names = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| Failure::refused(format!("'{name}' is not a {what}: choose one of {}", names())))
}
