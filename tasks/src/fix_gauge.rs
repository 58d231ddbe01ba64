//! Gauge fixing of configurations to Coulomb or Landau gauge, by over-relaxation.
use crate::link_job::{LinkFilesRequest, LinkJob};
use crate::session::Session;
use crate::{Failure, Outcome};
use ferrite::Precision;
use ferrite::domain::Part;
use ferrite::field::host::HostGauge;
use ferrite::gauge::fixing::relax::{Gauge, Relaxation, omega_for};
use ferrite_records::links::{BeforeAndAfter, FixGaugeRecord};
use std::ops::ControlFlow;
use std::time::Instant;
use tracing::info;

/// Number of sweeps between two measurements of θ.
const LOOK: usize = 10;

/// Returns the name of a gauge in messages.
pub fn name(gauge: Gauge) -> &'static str {
    match gauge {
        Gauge::Coulomb => "Coulomb",
        Gauge::Landau => "Landau",
    }
}

/// Request to fix the gauge of a configuration.
pub struct FixGaugeRequest {
    /// Files and device.
    pub files: LinkFilesRequest,
    /// Gauge to fix.
    pub gauge: Gauge,
    /// Deviation θ from the gauge condition at which the sweeps end.
    pub tol: f64,
    /// Over-relaxation parameter; `None` for a value that depends on the extents of the lattice.
    pub overrelax: Option<f64>,
    /// Maximum number of sweeps.
    pub max_sweeps: usize,
}

impl FixGaugeRequest {
    /// *Collective.* Reads links, fixes their gauge, and writes them if θ has reached the requested tolerance. Returns the record.
    ///
    /// # Errors
    /// Files that cannot be read or written, too little memory, links too far from SU(3), sweeps that do not suffice, a stop, and failures
    /// of the device.
    pub fn fix(&self, session: &Session) -> Outcome<FixGaugeRecord> {
        let needs = |part: Part| vec![("links", part.links_bytes(Precision::Double))];
        let job = LinkJob::begin(&self.files, "fixing the gauge", needs, session)?;
        let (links, record) = self.relax(&job, session)?;
        job.write(&links, &format!("{} gauge, theta = {:.3e}", name(self.gauge), record.theta.after))?;
        Ok(record)
    }
    /// *Collective.* Sweeps until θ is at or below the requested value.
    fn relax(&self, job: &LinkJob<'_>, session: &Session) -> Outcome<(HostGauge, FixGaugeRecord)> {
        let (input, by) = (self.files.input.display(), self.files.reading.by);
        let omega = self.overrelax.unwrap_or_else(|| omega_for(job.lattice, self.gauge));
        let begin = Instant::now();
        let domain = job.layout.domain(job.device.backend())?;
        let mut relaxation = Relaxation::new(&domain, &job.file.gauge, self.gauge, omega)?;
        let (before, plaquette) = (relaxation.state()?, relaxation.plaquette()?.mean);
        let mut now = before;
        session.listen();
        loop {
            // If links are far from SU(3), the gauge transformation of a site may have no projection to SU(3).
            if !now.theta.is_finite() {
                let (sweeps, reunitarise) = (relaxation.sweeps(), by.spelled("reunitarise", ""));
                let why = format!(
                    "{input}: theta is not a number after {sweeps} sweeps, because links are too far from SU(3): \
                     {reunitarise} projects them, or reports a link that cannot be projected"
                );
                return Err(Failure::failed(why).shared());
            }
            if now.theta <= self.tol {
                break;
            }
            if relaxation.sweeps() >= self.max_sweeps {
                let (theta, sweeps, tol) = (now.theta, relaxation.sweeps(), self.tol);
                let [max_sweeps, overrelax] = ["max-sweeps", "overrelax"].map(|key| by.spelled(key, ""));
                let why = format!(
                    "{input}: theta is {theta:.3e} after {sweeps} sweeps, but {tol:e} was requested: increase \
                     {max_sweeps}, or change {overrelax}"
                );
                return Err(Failure::failed(why).shared());
            }
            if session.is_stopped(0) {
                let why = format!("interrupted at theta = {:.3e}; nothing was written", now.theta);
                return Err(session.stopped(why));
            }
            let rest = self.max_sweeps - relaxation.sweeps();
            let mut sweeps = relaxation.sweeps();
            now = relaxation.relax_while(LOOK.min(rest), &mut || {
                sweeps += 1;
                if session.is_stopped(sweeps) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if relaxation.sweeps().is_multiple_of(100 * LOOK) {
                info!("{} sweeps: theta = {:.3e}", relaxation.sweeps(), now.theta);
            }
        }
        let (sweeps, after) = (relaxation.sweeps(), relaxation.plaquette()?.mean);
        let links = relaxation.finish()?;
        let record = FixGaugeRecord {
            links: job.record(),
            gauge: name(self.gauge).to_lowercase(),
            sweeps,
            overrelax: omega,
            tol: self.tol,
            seconds: begin.elapsed().as_secs_f64(),
            theta: BeforeAndAfter { before: before.theta, after: now.theta },
            functional: BeforeAndAfter { before: before.functional, after: now.functional },
            plaquette: BeforeAndAfter { before: plaquette, after },
        };
        Ok((links, record))
    }
}
