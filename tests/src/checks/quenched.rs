//! Checks of the quenched generator and of gauge fixing, which change links by themselves: the same on every backend.
use crate::report::{CheckReport, Scope};
use crate::testkit::farthest_links;
use ferrite::backend::{Backend, Cpu};
use ferrite::domain::{Domain, Result};
use ferrite::gauge::fixing::relax::{Gauge, Relaxation, functional, theta};
use ferrite::gauge::generate;
use ferrite::gauge::measure;
use ferrite::gauge::quenched::{Generator, Start};
use ferrite::lattice::Lattice;

/// Heat bath and over-relaxation on `backend` against the same on one thread of the CPU, link by link. A decision that
/// came out differently would be seen as a distance of order one.
pub fn quenched(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    let lattice = Lattice::new([4, 4, 6, 8])?;
    // Small β: the proposals from the Haar measure.
    for (beta, start) in [(6.0, Start::Hot), (0.3, Start::Hot), (5.7, Start::Cold)] {
        let mut here = Generator::new(&Domain::single(backend, lattice)?, start, beta, 77)?;
        let mut there = Generator::new(&Domain::single(Cpu::new(Some(1)), lattice)?, start, beta, 77)?;
        let scope = Scope { format: "double".into(), detail: format!("{lattice} β = {beta}") };
        let initial = here.gauge()?;
        report.error(&scope, "quenched: upload and download", farthest_links(&initial, &there.gauge()?), 0.0);
        for _ in 0..2 {
            here.sweep(1, 1)?;
            there.sweep(1, 1)?;
        }
        let (ours, theirs) = (here.gauge()?, there.gauge()?);
        report.error(&scope, "quenched: links", farthest_links(&ours, &theirs), 1e-12);
        report.holds(&scope, "quenched: links have moved", farthest_links(&ours, &initial) > 0.1);
        report.error(&scope, "quenched: unitarity", measure::unitarity(&ours).violation, 1e-14);
        let (device, host) = (here.plaquette()?, measure::plaquette(&ours));
        report.number(&scope, "quenched: spatial plaquette", device.spatial, host.spatial, 1.0, 1e-13);
        report.number(&scope, "quenched: temporal plaquette", device.temporal, host.temporal, 1.0, 1e-13);
    }
    Ok(())
}

/// Relaxation to Coulomb and Landau gauge on `backend` against the same on one thread of the CPU, link by link, and the
/// divergence against that of the host.
pub fn gauge_fixing(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    for (size, noise) in [([4, 4, 6, 8], 0.3), ([2, 4, 6, 2], 0.5), ([8, 8, 8, 16], 0.2)] {
        let lattice = Lattice::new(size)?;
        let start = generate::weak_field(lattice, 9, noise);
        for kind in [Gauge::Coulomb, Gauge::Landau] {
            let mut here = Relaxation::new(&Domain::single(backend, lattice)?, &start, kind, 1.5)?;
            let mut there = Relaxation::new(&Domain::single(Cpu::new(Some(1)), lattice)?, &start, kind, 1.5)?;
            let scope = Scope { format: "double".into(), detail: format!("{lattice} {kind:?}") };
            let (ours, theirs) = (here.relax(3)?, there.relax(3)?);
            let first = theta(&start, kind);
            report.holds(&scope, "gauge fixing: less divergence", ours.theta < 0.5 * first);
            // Sums in another order; differences of turns of 1e-16 grow in six passes.
            report.number(&scope, "gauge fixing: theta", ours.theta, theirs.theta, theirs.theta, 1e-11);
            let (here, there) = (here.finish()?, there.finish()?);
            report.error(&scope, "gauge fixing: links", farthest_links(&here, &there), 1e-12);
            report.error(&scope, "gauge fixing: unitarity", measure::unitarity(&here).violation, 1e-14);
            let expected = theta(&here, kind);
            report.number(&scope, "gauge fixing: theta, host", ours.theta, expected, expected, 1e-12);
            report.number(&scope, "gauge fixing: functional", ours.functional, functional(&here, kind), 1.0, 1e-13);
            let (before, after) = (measure::plaquette(&start).mean, measure::plaquette(&here).mean);
            report.number(&scope, "gauge fixing: plaquette stays", after, before, 1.0, 1e-13);
        }
    }
    Ok(())
}
