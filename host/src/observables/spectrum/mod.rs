//! Correlators of hadrons from quark propagators.
//!
//! | module | what |
//! |---|---|
//! | [`gamma`] | the 16 products of γ matrices |
//! | [`sources`] | point, wall and noise sources for all components |
//! | [`smearing`] | Gaussian smearing of quarks at either end, on a device |
//! | [`mesons`] | all 16 mesons of two Wilson quarks, at any momentum |
//! | [`sequential`] | three-point functions of mesons, and the conserved charge |
//! | [`sequential_nucleon`] | three-point functions of the nucleon |
//! | [`nucleon`] | the nucleon and its parity partner |
//! | [`staggered`] | local mesons and the local nucleon of staggered quarks |
//! | [`tastes`] | mesons of staggered quarks of any spin and taste |
//! | [`effective`], [`pcac`] | effective masses, the quark mass of the axial current; [`jackknife`](statistics::jackknife) has errors over configurations |
//!
//! Propagators are fields on a device, which also computes mesons and nucleons. Each process sums over its own sites, for all times of the
//! whole lattice; a correlator is the sum over processes. Time is counted from the source.
mod contraction;
pub mod gamma;
pub mod mesons;
pub mod nucleon;
pub mod sequential;
pub mod sequential_nucleon;
pub mod smearing;
pub mod sources;
pub mod staggered;
pub mod tastes;

pub(crate) use contraction::MomentumSums;
pub use contraction::contraction_bytes;
pub use statistics::{effective, pcac};

use crate::field::host::{Fermion, HostField};
use crate::lattice::Section;
use num_complex::Complex64;

/// Returns the phases exp(−i p (x − x₀)) of momenta in units of 2π/L.
pub(crate) fn phases(section: &Section, momenta: &[[i32; 3]], origin: [usize; 4], place: [usize; 4]) -> Vec<Complex64> {
    let extents = section.global.size();
    let phase = |momentum: &[i32; 3]| {
        let turns: f64 = (0..3)
            .map(|k| {
                let steps = place[k] as i64 - origin[k] as i64;
                f64::from(momentum[k]) * steps as f64 / extents[k] as f64
            })
            .sum();
        Complex64::cis(-std::f64::consts::TAU * turns)
    };
    momenta.iter().map(phase).collect()
}

/// Panics unless all fields are on the local lattice of the section.
pub(crate) fn check<T: Fermion>(section: &Section, fields: &[HostField<T>], count: usize) {
    assert_eq!(fields.len(), count, "a propagator has one {} for each component of its source", T::NAME);
    assert!(fields.iter().all(|field| field.lattice() == section.local), "fields are those of the section");
}

#[cfg(test)]
mod tests {
    use crate::backend::Cpu;
    use crate::domain::Domain;
    use crate::field::FullField;
    use crate::field::host::{Fermion, HostField};
    use crate::lattice::Lattice;

    /// Propagators on a CPU.
    pub fn on_cpu<F: Fermion>(lattice: Lattice, propagators: &[&[HostField<F>]]) -> Vec<FullField> {
        let domain = Domain::single(Cpu::new(None), lattice).unwrap();
        propagators.iter().map(|fields| FullField::of_host(&domain, fields).unwrap()).collect()
    }
}
