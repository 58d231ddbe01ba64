//! Lines of `ferrite spectrum` and an input for it, and correlators made on the CPU to compare with.
use crate::program::{Room, complex, list};
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::FullField;
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::observables::spectrum::gamma::Gamma;
use ferrite::observables::spectrum::mesons::Mesons;
use ferrite::observables::spectrum::nucleon::{Nucleon, nucleon};
use ferrite::observables::spectrum::sequential::{ChargeLinks, conserved_charge};
use ferrite::operators::TimeBoundary;
use num_complex::Complex64;
use serde_json::{Value, json};
use std::fs;

/// The lines of a folder.
pub fn lines(room: &Room, folder: &str) -> Vec<Value> {
    room.lines(&format!("{folder}/correlators.jsonl"))
}

/// A correlator of a line.
pub fn correlator(line: &Value, name: &str, momentum: [i32; 3]) -> Vec<Complex64> {
    let all = line["correlators"].as_array().unwrap();
    let found = all.iter().find(|c| c["name"] == name && c["momentum"] == json!(momentum));
    list(&found.unwrap_or_else(|| panic!("no {name}"))["values"]).iter().map(complex).collect()
}

/// A short input of Wilson quarks in `run.toml`.
pub fn with_wilson_input(room: &Room) {
    let input = "nucleon = false\n[solve]\noperator = \"wilson\"\nmass = 0.3\nprecision = \"single\"\ntol = 1e-6\n";
    fs::write(room.path("run.toml"), input).unwrap();
}

/// Mesons of propagators of a quark and of the one whose antiquark they have, made on the CPU.
pub fn mesons_of(quark: &[HostSpinor], antiquark: &[HostSpinor], origin: [usize; 4], momenta: &[[i32; 3]]) -> Mesons {
    let domain = Domain::single(Cpu::new(None), quark[0].lattice()).unwrap();
    let on = |fields: &[HostSpinor]| FullField::of_host(&domain, fields).unwrap();
    Mesons::new(&on(quark), &on(antiquark), origin, momenta).unwrap()
}

/// The conserved charge between source and sink with the operator's links, made on the CPU: `[momentum][time]`.
pub fn charge_of(
    gauge: &HostGauge,
    [quark, sequential]: [&[HostSpinor]; 2],
    source: Gamma,
    origin: [usize; 4],
    momenta: &[[i32; 3]],
    boundary: TimeBoundary,
) -> Vec<Vec<Complex64>> {
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    let on = |fields: &[HostSpinor]| FullField::of_host(&domain, fields).unwrap();
    let links = ChargeLinks::new(&domain, gauge).unwrap();
    conserved_charge(&links, [&on(quark), &on(sequential)], source, origin, momenta, boundary).unwrap()
}

/// The nucleon and its partner, made on the CPU.
pub fn nucleon_of(quark: &[HostSpinor], origin: [usize; 4], momenta: &[[i32; 3]], boundary: TimeBoundary) -> Nucleon {
    let domain = Domain::single(Cpu::new(None), quark[0].lattice()).unwrap();
    nucleon(&FullField::of_host(&domain, quark).unwrap(), origin, momenta, boundary).unwrap()
}
