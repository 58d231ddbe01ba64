//! Wilson loops of measurements.
use crate::failure::ReadBy;
use crate::session::Session;
use crate::{Failure, Outcome};
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::gauge::ape_hyp::{ProjectedSmearing, SumsOfStaples};
use ferrite::halo::Needs;
use ferrite::lattice::Lattice;
use ferrite::observables::wilson_loops::{self, WilsonLoops};
use ferrite_records::measure::{LoopInput, LoopSmearing};
use std::path::Path;

/// Request for Wilson loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopRequest {
    /// Largest distance R along an axis, in units of a.
    pub distance: usize,
    /// Largest time T, in units of a.
    pub time: usize,
    /// Whether separations off the axes are included.
    pub off_axis: bool,
    /// Smearing of the spatial links; `None` for links as read.
    pub smearing: Option<ProjectedSmearing>,
}

impl LoopRequest {
    /// Returns the record of the settings on which the loops depend.
    pub(super) fn record(&self) -> LoopInput {
        let smearing = self.smearing.map(|smearing| {
            let (kind, alpha) = match smearing.sums {
                SumsOfStaples::Ape(alpha) => ("ape", vec![alpha]),
                SumsOfStaples::Hyp(alpha) => ("hyp", alpha.to_vec()),
            };
            LoopSmearing { kind: kind.into(), alpha, levels: smearing.levels }
        });
        LoopInput { distance: self.distance, time: self.time, off_axis: self.off_axis, smearing }
    }
    /// Fails if the loops are larger than half of a lattice: beyond half of it they are shorter the other way round.
    pub(super) fn check(&self, path: &Path, lattice: Lattice, by: ReadBy) -> Outcome {
        let [x, y, z, t] = lattice.size();
        let (space, half) = (x.min(y).min(z) / 2, t / 2);
        if self.distance <= space && self.time <= half {
            return Ok(());
        }
        let (path, loops) = (path.display(), by.spelled("loops", &format!("{},{}", self.distance, self.time)));
        let why = format!("{path}: {loops} exceeds half of the extents of {lattice}: give at most {space},{half}");
        Err(Failure::refused(why))
    }
    /// Returns the memory that smearing needs on the device, by name.
    pub(super) fn needs(&self, part: Part) -> Needs {
        let links = part.links_bytes(Precision::Double);
        self.smearing.iter().map(|smearing| ("smeared links", smearing.fields() * links)).collect()
    }
    /// Returns the host memory that the loops need, in bytes per site.
    pub(super) fn host_bytes_per_site(&self, lattice: Lattice) -> usize {
        wilson_loops::bytes(lattice, self.off_axis) / lattice.volume() + 2 * 576
    }
    /// *Collective.* Measures the loops of links, which are given on the device and on the host. A stop takes effect after a smearing step
    /// or a separation.
    pub(super) fn measure(
        &self,
        links: &GaugeField,
        gauge: &HostGauge,
        path: &Path,
        session: &Session,
    ) -> Outcome<Vec<WilsonLoops>> {
        let stopped = || session.stopped_during(&format!("Wilson loops of {}", path.display()));
        let of = |gauge: &HostGauge| {
            let (distance, time) = (self.distance, self.time);
            wilson_loops::wilson_loops_while(gauge, distance, time, self.off_axis, &mut || session.flow())
        };
        let found = match &self.smearing {
            None => of(gauge),
            Some(smearing) => {
                let smeared = smearing.smeared_while(links, &mut || session.flow())?;
                of(&smeared.ok_or_else(stopped)?.download()?)
            }
        };
        let found = found.ok_or_else(stopped)?;
        if found.iter().flat_map(|one| &one.values).all(|w| w.is_finite()) {
            return Ok(found);
        }
        Err(Failure::failed(format!(
            "{}: the Wilson loops are not numbers: check the links with `ferrite verify`",
            path.display()
        ))
        .shared())
    }
}
