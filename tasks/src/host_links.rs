//! Links of an operator, from files to host memory and on to a device.
use super::communicator::RunCommunicator;
use super::device::Device;
use super::failure::ReadBy;
use super::fields::Reading;
use super::layout::Layout;
use super::plan::{FermionPlan, LinkFiles, PRECISIONS, name_of};
use super::session::Session;
use super::{Failure, Outcome, fields, stout};
use ferrite::domain::Domain;
use ferrite::field::host::HostGauge;
use ferrite::files::GaugeFile;
use ferrite::operators::fat_links::{Improvement, with_phases};
use ferrite::operators::{Operator, StaggeredOperator, StaggeredPhases};
use ferrite::solve::Configuration;
use ferrite::{LinkStorage, Precision};
use std::path::{Path, PathBuf};
use tracing::{debug, info};

/// Links in host memory.
pub enum HostLinks {
    /// Links of a gauge configuration.
    Gauge(Box<GaugeFile>),
    /// Fat and long links, without phases and without the sign of the boundary condition.
    Improved(Box<[HostGauge; 2]>),
}

/// Links from files, with the operator on them and their storage on a device.
pub struct LinksRead {
    /// Links in host memory.
    pub links: HostLinks,
    /// Operator on the links; a tadpole factor from the plaquette has been replaced by its value.
    pub operator: Operator,
    /// Storage of the links on a device.
    pub storage: LinkStorage,
}

impl LinksRead {
    /// *Collective.* Reads the links of a plan, and determines their storage.
    pub fn of(plan: &FermionPlan, layout: &Layout, comm: &RunCommunicator) -> Outcome<Self> {
        let in_u3 = plan.definition().is_in_u3();
        // HISQ makes long links from links projected to U(3), even if the links in the file are in SU(3).
        let default = if in_u3 { LinkStorage::of(13) } else { LinkStorage::of(12) };
        match &plan.links {
            LinkFiles::Gauge(path) => {
                let file = fields::read_gauge(path, &plan.read, layout, comm)?;
                debug!("{}: plaquette {:.10}, {}", path.display(), file.plaquette.mean, plan.lattice);
                let storage = match in_u3 {
                    true => plan.reconstruction.unwrap_or(default),
                    false => storage(path, &plan.read, plan.precision, plan.reconstruction, &file)?,
                };
                let operator = with_tadpole(&plan.operator, path, file.plaquette.mean, plan.read.by)?;
                let storage = plan.reconstruction.map_or(operator.storage(storage), |_| storage);
                Ok(LinksRead { links: HostLinks::Gauge(Box::new(file)), operator, storage })
            }
            LinkFiles::Improved(fat, long) => {
                let reading = plan.read.of_any_links();
                let read = |path: &PathBuf, steps| -> Outcome<HostGauge> {
                    let mut links = fields::read_gauge(path, &reading, layout, comm)?.gauge;
                    let boundary = plan.operator.boundary();
                    with_phases(&mut links, layout.section, steps, StaggeredPhases::Milc, boundary);
                    Ok(links)
                };
                let links = HostLinks::Improved(Box::new([read(fat, 1)?, read(long, 3)?]));
                let (operator, asked) = (plan.operator.clone(), plan.reconstruction);
                let storage = asked.unwrap_or(operator.storage(default));
                Ok(LinksRead { links, operator, storage })
            }
        }
    }
    /// *Collective.* Smears the links on the device if the plan requests stout smearing. The result is the same as for a file of smeared
    /// links.
    pub fn smeared(mut self, plan: &FermionPlan, device: &Device, layout: &Layout, session: &Session) -> Outcome<Self> {
        if let (Some(smearing), LinkFiles::Gauge(path), HostLinks::Gauge(file)) =
            (plan.stout, &plan.links, &mut self.links)
        {
            file.plaquette = stout::smear(smearing, &mut file.gauge, device, layout, session)?;
            let plaquette = file.plaquette.mean;
            debug!("{}: {}, plaquette {plaquette:.10}", path.display(), stout::sentence(smearing));
            self.operator = with_tadpole(&plan.operator, path, plaquette, plan.read.by)?;
        }
        Ok(self)
    }
}

impl HostLinks {
    /// *Collective.* Returns the links as a configuration for solves on a device.
    pub fn on(&self, domain: &Domain) -> Outcome<Configuration<'_>> {
        Ok(match self {
            HostLinks::Gauge(file) => Configuration::new(domain, &file.gauge),
            HostLinks::Improved(both) => Configuration::improved(Improvement::from_host(domain, &both[0], &both[1])?),
        })
    }
}

/// Returns the operator with a number for its tadpole factor. A tadpole factor that depends on the mean plaquette is computed from
/// `plaquette`.
pub fn with_tadpole(operator: &Operator, configuration: &Path, plaquette: f64, given_by: ReadBy) -> Outcome<Operator> {
    let Some(&staggered) = operator.parameters::<StaggeredOperator>() else { return Ok(operator.clone()) };
    staggered.with_plaquette(plaquette).map(Operator::from).ok_or_else(|| {
        let path = configuration.display();
        let u0 = given_by.spelled("u0", "");
        let why = format!(
            "{path}: the mean plaquette is {plaquette:.6}, so that u0, its fourth root, is not a positive number: give \
             {u0} as a number"
        );
        Failure::refused(why).shared()
    })
}

/// Returns the largest deviation from SU(3) at which reconstruction changes the links by less than the precision does.
fn off_su3_limit(precision: Precision) -> f64 {
    match precision {
        Precision::Double => 1e-12,
        Precision::Single => 1e-6,
        Precision::Half => 1e-4,
        Precision::Fp16 => 1e-3,
    }
}

/// Returns the storage of the links: 12 reals if they are in SU(3) well enough, otherwise 18. Fails if fewer than 18 reals are requested
/// for other links.
fn storage(
    path: &Path,
    read: &Reading,
    precision: Precision,
    asked: Option<LinkStorage>,
    file: &GaugeFile,
) -> Outcome<LinkStorage> {
    // If reading projects the links to SU(3), the deviation of the links in the file does not matter.
    let off = if read.options.reunitarise { 0.0 } else { file.unitarity.violation };
    let half = asked.is_some_and(|storage| storage.half);
    let limit = off_su3_limit(if half { Precision::Half } else { precision });
    let (path, precision) = (path.display(), name_of(&PRECISIONS, precision));
    let far = format!(
        "{path}: links deviate from SU(3) by {off:.1e}, but reconstruction in {precision} precision allows {limit:.0e}"
    );
    match asked {
        Some(asked) if asked.reals != 18 && off > limit => {
            let [all, project] = [("reconstruct", "18"), ("reunitarise", "")].map(|(key, v)| read.by.spelled(key, v));
            Err(Failure::refused(format!("{far}; use {all}, or {project} to project them to SU(3)")).shared())
        }
        Some(asked) => Ok(asked),
        None if off > limit => {
            info!("{far}: all 18 reals of a link are kept");
            Ok(LinkStorage::FULL)
        }
        None => Ok(LinkStorage::of(12)),
    }
}
