//! Links of staggered operators: from files to host memory, and from there to a device.
use super::plan::{Kind, LinkFiles, StaggeredPlan};
use crate::cli::layout::Layout;
use crate::cli::solve::allowed_reconstruction;
use crate::cli::world::World;
use crate::cli::{Failure, Outcome, fields};
use ferrite::dirac::StaggeredPhases;
use ferrite::domain::Domain;
use ferrite::fat_links::{FatLinkError, Improvement, PathCoefficients, with_phases};
use ferrite::field::ThinGauge;
use ferrite::field::host::HostGauge;
use ferrite::solve::{LinkStorage, StaggeredConfiguration};
use std::path::PathBuf;

/// Links in host memory.
pub enum HostLinks {
    /// A gauge configuration.
    Thin(Box<HostGauge>),
    /// Fat and long links, without phases and boundary condition.
    Improved(Box<[HostGauge; 2]>),
}

/// *Collective.* Reads the links; answers with the reconstruction and the tadpole factor too.
pub fn read_links(plan: &StaggeredPlan, layout: &Layout, world: &World) -> Outcome<(HostLinks, LinkStorage, f64)> {
    let hisq = matches!(plan.kind, Kind::Hisq(_));
    let default = if hisq { LinkStorage::of(13) } else { LinkStorage::of(12) };
    match &plan.links {
        LinkFiles::Gauge(path) => {
            let file = fields::read_gauge(path, &plan.read, layout, world)?;
            let asked = plan.reconstruction;
            // HISQ's long links are made of links that were projected to U(3), wherever those of the file are.
            let reconstruction = match hisq {
                true => asked.unwrap_or(default),
                false => allowed_reconstruction(path, &plan.read.options, plan.precision, asked, &file)?,
            };
            let u0 = plan.kind.u0(&path.display().to_string(), file.plaquette.mean).map_err(Failure::shared)?;
            Ok((HostLinks::Thin(Box::new(file.gauge)), reconstruction, u0))
        }
        LinkFiles::Improved(fat, long) => {
            let reading = plan.read.of_any_links();
            let read = |path: &PathBuf, steps| -> Outcome<HostGauge> {
                let mut links = fields::read_gauge(path, &reading, layout, world)?.gauge;
                with_phases(&mut links, layout.section, steps, StaggeredPhases::Milc, plan.boundary);
                Ok(links)
            };
            let links = Box::new([read(fat, 1)?, read(long, 3)?]);
            Ok((HostLinks::Improved(links), plan.reconstruction.unwrap_or(default), 1.0))
        }
    }
}

/// Copies the links to a device, and fattens them.
pub fn configuration<'g>(
    kind: Kind,
    domain: &Domain,
    links: &'g HostLinks,
    u0: f64,
) -> Outcome<StaggeredConfiguration<'g>> {
    Ok(match links {
        HostLinks::Improved(both) => {
            StaggeredConfiguration::improved(Improvement::from_host(domain, &both[0], &both[1])?)
        }
        HostLinks::Thin(gauge) if kind == Kind::Naive => StaggeredConfiguration::naive(domain, gauge),
        HostLinks::Thin(gauge) => {
            StaggeredConfiguration::improved(improvement(kind, &ThinGauge::upload(domain, gauge)?, u0)?)
        }
    })
}

/// Fat and long links of an improved operator.
pub fn improvement(kind: Kind, thin: &ThinGauge, u0: f64) -> Outcome<Improvement> {
    let refused = |error| match error {
        FatLinkError::Device(error) => error.into(),
        error @ FatLinkError::Singular { .. } => Failure::refused(error).shared(),
    };
    match kind {
        Kind::Hisq(epsilon) => Improvement::hisq(thin, epsilon).map_err(refused),
        _ => Ok(Improvement::from_paths(thin, &PathCoefficients::asqtad(u0))?),
    }
}
