//! Plaquettes, link trace and unitarity of a configuration.
use crate::Outcome;
use crate::device::DeviceChoice;
use crate::fields::{Reading, any_lattice_of, read_gauge};
use crate::observables::plaquettes;
use crate::session::Session;
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::files::GaugeFile;
use ferrite::halo::Exchanges;
use ferrite_records::links::PlaquetteRecord;
use std::path::Path;

/// *Collective.* Measures plaquettes, link trace and unitarity on the device, or in host memory if an extent of the lattice is odd.
///
/// # Errors
/// A file that cannot be read, too little memory, and failures of the device.
pub fn measure(path: &Path, reading: &Reading, choice: &DeviceChoice, session: &Session) -> Outcome<PlaquetteRecord> {
    let comm = &session.comm;
    let lattice = any_lattice_of(path, reading, comm)?;
    let (device, layout) = if lattice.require_even().is_ok() {
        (Some(choice.open(comm)?), choice.layout.cut(comm, lattice, 1)?)
    } else {
        choice.start_threads(comm)?;
        (None, choice.layout.cut_for_host(comm, lattice)?)
    };
    let GaugeFile { gauge, plaquette, link_trace, unitarity, .. } = read_gauge(path, reading, &layout, comm)?;
    let (plaquette, link_trace) = match &device {
        None => (plaquette, link_trace),
        Some(device) => {
            let (part, read) = (Part::new(layout.local(), layout.grid()), 576 * layout.local().volume());
            let mut needs = vec![
                ("transfer of links from the host", read),
                ("links in double", part.links_bytes(Precision::Double)),
            ];
            needs.extend(Exchanges::of(part).border(Precision::Double).needs());
            device.require_all(comm, &needs, "the plaquette")?;
            GaugeField::upload(&layout.domain(device.backend())?, &gauge)?.plaquette()?
        }
    };
    Ok(PlaquetteRecord {
        file: path.into(),
        lattice: lattice.size(),
        plaquette: plaquettes(&plaquette),
        link_trace,
        unitarity_violation: unitarity.violation,
        backend: device.as_ref().map_or("host", |device| device.name()).into(),
        device: device.map(|device| device.describe()),
        layout: layout.record(),
    })
}
