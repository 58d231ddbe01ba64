//! Trajectories, as records.
use ferrite::hmc::trajectory::Energies;
use ferrite_records::ensemble::EnergyParts;

/// Returns the record of the parts of H.
pub fn energies(energies: &Energies) -> EnergyParts {
    EnergyParts { gauge: energies.gauge, kinetic: energies.kinetic, fermions: energies.fermions }
}
