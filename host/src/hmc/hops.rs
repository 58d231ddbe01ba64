//! Hopping terms of staggered quarks.
use super::stout::StoutSmearing;
use crate::backend::Backend;
use crate::domain::Domain;
use crate::field::HopPhases;
use crate::operators::fat_links::PathCoefficients;
use crate::operators::{BoundaryAngles, StaggeredParams};
use gpu_kernels::LinkStorage;

/// Hopping term of staggered quarks: boundary condition, phases and smearing of the links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuarkOperator {
    /// Boundary condition and phases of the hops; the mass is not used.
    pub params: StaggeredParams,
    /// Smearing of the links over which quarks hop.
    pub smearing: QuarkSmearing,
    /// Angles of twisted boundary conditions.
    pub theta: BoundaryAngles,
}

/// Smearing of the links of staggered quarks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QuarkSmearing {
    /// Thin links.
    Thin,
    /// Stout links (Morningstar and Peardon 2004).
    Stout(StoutSmearing),
    /// Fat and long links that are sums of paths over thin links, like those of asqtad.
    Paths(PathCoefficients),
    /// Two levels of smearing with a projection to U(3) in between, with the correction ε of the Naik term (Follana et al. 2007).
    Hisq {
        /// Correction ε of the Naik term.
        epsilon: f64,
    },
}

impl QuarkSmearing {
    /// Whether the smearing makes fat and long links.
    pub fn is_improved(&self) -> bool {
        matches!(self, QuarkSmearing::Paths(_) | QuarkSmearing::Hisq { .. })
    }
    /// Whether quarks hop over three sites.
    pub(crate) fn has_long_links(&self) -> bool {
        match self {
            QuarkSmearing::Thin | QuarkSmearing::Stout(_) => false,
            QuarkSmearing::Paths(paths) => paths.naik != 0.0,
            QuarkSmearing::Hisq { .. } => true,
        }
    }
}

impl QuarkOperator {
    /// Makes the hopping term without twisted boundary conditions.
    pub fn new(params: StaggeredParams, smearing: QuarkSmearing) -> Self {
        QuarkOperator { params, smearing, theta: BoundaryAngles::default() }
    }
    /// Returns the factors of hops.
    pub(super) fn phases(&self, domain: &Domain) -> HopPhases {
        self.theta.of_hops(domain.global())
    }
    /// Returns the storage of links on a backend if `asked` is requested. Links in U(3) also need the phase of their determinant; a CPU hops
    /// over them faster with all reals.
    pub(super) fn storage(&self, asked: LinkStorage, backend: &dyn Backend) -> LinkStorage {
        let with_phase = || if backend.has_lanes() { asked.with_all_reals() } else { asked.with_phase() };
        match (self.smearing, self.theta.are_zero()) {
            (QuarkSmearing::Thin | QuarkSmearing::Stout(_) | QuarkSmearing::Paths(_), true) => asked,
            (QuarkSmearing::Thin | QuarkSmearing::Stout(_), false) => asked.with_all_reals(),
            (QuarkSmearing::Paths(paths), false) if paths.naik == 0.0 => asked.with_all_reals(),
            (QuarkSmearing::Paths(_), false) | (QuarkSmearing::Hisq { .. }, _) => with_phase(),
        }
    }
}
