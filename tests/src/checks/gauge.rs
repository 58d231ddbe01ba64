//! Observables of the gauge field.
use super::Case;
use crate::accuracy::summation;
use crate::reference::plaquettes;
use crate::report::CheckReport;
use ferrite::backend::Backend;
use ferrite::domain::Result;
use ferrite::field::GaugeField;
use ferrite::gauge::measure;

/// Plaquettes and link trace on the device, against the reference and the host's own measurement.
pub fn plaquette(backend: &dyn Backend, case: &Case, report: &mut CheckReport) -> Result {
    let gauge = GaugeField::upload(&case.domain(backend)?, &case.gauge)?;
    let (device, trace) = gauge.plaquette()?;
    let (host, [spatial, temporal]) = (measure::plaquette(&case.gauge), plaquettes(&case.gauge));
    let links = case.gauge.links();
    let traces: f64 = links.iter().map(|u| (u[0][0] + u[1][1] + u[2][2]).re / 3.0).sum();
    let scope = case.scope("double", "");
    let tolerance = summation(27 * links.len());
    for (name, device, host, expected) in [
        ("plaquette, spatial", device.spatial, host.spatial, spatial),
        ("plaquette, temporal", device.temporal, host.temporal, temporal),
        ("plaquette, mean", device.mean, host.mean, (spatial + temporal) / 2.0),
        ("link trace", trace, measure::link_trace(&case.gauge), traces / links.len() as f64),
    ] {
        report.number(&scope, name, device, expected, 1.0, tolerance);
        report.number(&scope, &format!("{name}, host"), host, expected, 1.0, tolerance);
    }
    let again = gauge.plaquette()?;
    report.holds(&scope, "plaquette, bits when repeated", again == (device, trace));
    Ok(())
}
