//! Observables of links, as records.
use ferrite::gauge::measure::Plaquettes;
use ferrite_records::observables::PlaquetteMeans;

/// Returns the record of plaquettes.
pub fn plaquettes(&Plaquettes { mean, spatial, temporal }: &Plaquettes) -> PlaquetteMeans {
    PlaquetteMeans { mean, spatial, temporal }
}
