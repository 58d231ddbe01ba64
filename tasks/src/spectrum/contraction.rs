//! Contractions of propagators on a device to correlators of hadrons.
use super::sink::{boundary, check_site, gamma};
use crate::layout::GridRank;
use crate::{Failure, Outcome};
use ferrite::FermionKind;
use ferrite::field::FullField;
use ferrite::field::host::HostGauge;
use ferrite::lattice::Section;
use ferrite::observables::spectrum::mesons::Mesons;
use ferrite::observables::spectrum::nucleon::nucleon;
use ferrite::observables::spectrum::sequential::{ChargeLinks, conserved_charge};
use ferrite::observables::spectrum::staggered::{NAMES, local_mesons, local_nucleon};
use ferrite::operators::StaggeredPhases;
use num_complex::Complex64;
use serde::Deserialize;

/// Kind of hadron whose correlators a contraction computes. It determines the axes of the array.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "hadron", rename_all = "kebab-case")]
pub enum HadronRequest {
    /// Mesons, one for each pair of matrices at sink and source: `[momentum, pair, time]`.
    Mesons {
        /// Numbers of the two matrices of each pair, `[sink, source]`.
        pairs: Vec<[usize; 2]>,
    },
    /// Nucleon and its parity partner: `[momentum, parity, time]`.
    Nucleon {
        /// Whether quarks are antiperiodic in t.
        antiperiodic: bool,
    },
    /// Four local mesons of staggered quarks: `[meson, momentum, time]`.
    StaggeredMesons,
    /// Local nucleon of staggered quarks: `[momentum, time]`.
    StaggeredNucleon {
        /// Whether quarks are antiperiodic in t.
        antiperiodic: bool,
        /// Whether the operator has MILC's phases, not lexicographic ones.
        milc_phases: bool,
    },
    /// Conserved charge between source and sink, from a propagator and a sequential propagator: `[momentum, time]`.
    Charge {
        /// Number of the matrix at the source.
        source: usize,
        /// Whether quarks are antiperiodic in t.
        antiperiodic: bool,
    },
}

/// Request for a contraction of the propagators of one or two quarks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Contraction {
    /// Hadron whose correlators are computed.
    #[serde(flatten)]
    pub hadron: HadronRequest,
    /// Source position.
    pub origin: [usize; 4],
    /// Momenta in units of 2π/L.
    pub momenta: Vec<[i32; 3]>,
}

impl Contraction {
    /// Returns the type of quarks that the hadron contains: Wilson-like or staggered.
    pub fn kind(&self) -> FermionKind {
        match self.hadron {
            HadronRequest::StaggeredMesons | HadronRequest::StaggeredNucleon { .. } => FermionKind::Staggered,
            _ => FermionKind::Wilson,
        }
    }
    /// Returns the extents of the axes of the correlators.
    pub fn shape(&self, part: &Section) -> Vec<usize> {
        let (momenta, times) = (self.momenta.len(), part.global.size()[3]);
        match &self.hadron {
            HadronRequest::Mesons { pairs } => vec![momenta, pairs.len(), times],
            HadronRequest::Nucleon { .. } => vec![momenta, 2, times],
            HadronRequest::StaggeredMesons => vec![NAMES.len(), momenta, times],
            HadronRequest::StaggeredNucleon { .. } | HadronRequest::Charge { .. } => vec![momenta, times],
        }
    }
    /// Fails if the correlators cannot be computed from propagators on a part of the lattice.
    ///
    /// # Errors
    /// A source position that is not on the lattice, matrices that do not exist, and the conserved charge where several processes share the
    /// times.
    pub fn check(&self, part: &Section, place: GridRank) -> Outcome {
        check_site(self.origin, part.global)?;
        match &self.hadron {
            HadronRequest::Mesons { pairs } => {
                pairs.as_flattened().iter().try_for_each(|number| gamma(*number).map(|_| ()))
            }
            HadronRequest::Charge { source, .. } => {
                gamma(*source)?;
                let why = "the conserved charge needs all times in each process: choose a process grid (X, Y, Z, 1)";
                if place.grid.is_partitioned(3) { Err(Failure::refused(why)) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
    /// *Collective.* Returns the correlators from the propagators of one or two quarks, summed over all processes. `Charge`, the conserved
    /// charge, is the only request that needs the links.
    ///
    /// # Errors
    /// Failures of the device or of messages.
    pub fn correlators(
        &self,
        quark: &FullField,
        other: &FullField,
        gauge: Option<&HostGauge>,
    ) -> Outcome<Vec<Complex64>> {
        let (domain, origin, momenta) = (quark.even.domain(), self.origin, &self.momenta[..]);
        let own = match &self.hadron {
            HadronRequest::Mesons { pairs } => {
                let found = Mesons::new(quark, other, origin, momenta)?;
                let mut all = Vec::new();
                for momentum in 0..momenta.len() {
                    for [sink, source] in pairs {
                        all.extend(found.correlator(gamma(*sink)?, gamma(*source)?, momentum));
                    }
                }
                all
            }
            HadronRequest::Nucleon { antiperiodic } => {
                let found = nucleon(quark, origin, momenta, boundary(*antiperiodic))?;
                found.positive.into_iter().zip(found.negative).flat_map(|(a, b)| [a, b]).flatten().collect()
            }
            HadronRequest::StaggeredMesons => {
                local_mesons(quark, other, origin, momenta)?.into_iter().flatten().flatten().collect()
            }
            HadronRequest::StaggeredNucleon { antiperiodic, milc_phases } => {
                let phases = if *milc_phases { StaggeredPhases::Milc } else { StaggeredPhases::Lexicographic };
                local_nucleon(quark, origin, momenta, boundary(*antiperiodic), phases)?.concat()
            }
            HadronRequest::Charge { source, antiperiodic } => {
                let gauge =
                    gauge.ok_or_else(|| Failure::refused("the conserved charge needs links, but none are given: give the gauge field, or leave out the charge"))?;
                let (links, source) = (ChargeLinks::new(domain, gauge)?, gamma(*source)?);
                conserved_charge(&links, [quark, other], source, origin, momenta, boundary(*antiperiodic))?.concat()
            }
        };
        let mut parts: Vec<f64> = own.iter().flat_map(|z| [z.re, z.im]).collect();
        domain.sum(&mut parts)?;
        Ok(parts.chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect())
    }
}
