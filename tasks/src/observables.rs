//! Observables of links, as records.
use ferrite::gauge::measure::Plaquettes;
use ferrite::observables::field_strength::FieldStrengths;
use ferrite::observables::flow::FlowPoint;
use ferrite::observables::loops::LoopMeans;
use ferrite::observables::wilson_loops::WilsonLoops;
use ferrite_records::observables::{
    EnergyDensity, FieldStrengthRecord, FlowPointRecord, LoopsRecord, PlaquetteMeans, WilsonLoopsRecord,
};

/// Returns the record of the mean plaquettes.
pub fn plaquettes(&Plaquettes { mean, spatial, temporal }: &Plaquettes) -> PlaquetteMeans {
    PlaquetteMeans { mean, spatial, temporal }
}

/// Returns the record of the loops that are measured on every configuration.
pub fn loops(LoopMeans { plaquette, rectangle, polyakov }: &LoopMeans) -> LoopsRecord {
    LoopsRecord { plaquette: plaquettes(plaquette), rectangle: *rectangle, polyakov_loop: [polyakov.re, polyakov.im] }
}

/// Returns the record of the energy density and the topological charge.
pub fn field_strength(&FieldStrengths { space, time, charge }: &FieldStrengths) -> FieldStrengthRecord {
    FieldStrengthRecord { energy: EnergyDensity { space, time }, charge }
}

/// Returns the record of a point of the gradient flow.
pub fn flow_point(point: &FlowPoint) -> FlowPointRecord {
    let FieldStrengthRecord { energy, charge } = field_strength(&point.clover);
    FlowPointRecord { t: point.time, energy, plaquette_energy: point.plaquette_energy, charge }
}

/// Returns the record of Wilson loops.
pub fn wilson_loops(loops: &WilsonLoops) -> WilsonLoopsRecord {
    WilsonLoopsRecord { r: loops.separation, values: loops.values.clone() }
}
