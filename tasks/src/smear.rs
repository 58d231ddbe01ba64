//! Configurations of smeared links.
use crate::link_job::{LinkFilesRequest, LinkJob};
use crate::session::Session;
use crate::{Outcome, observables, text};
use ferrite::Precision;
use ferrite::domain::{Part, Result};
use ferrite::field::GaugeField;
use ferrite::gauge::ape_hyp::{ProjectedSmearing, SumsOfStaples};
use ferrite::halo::Needs;
use ferrite::hmc::stout::StoutSmearing;
use ferrite_records::links::{BeforeAndAfter, SmearRecord, SmearedLoops};

/// Smearing of links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkSmearing {
    /// Stout links.
    Stout(StoutSmearing),
    /// APE and HYP links.
    Projected(ProjectedSmearing),
}

impl LinkSmearing {
    /// Returns the memory that it takes on a device, with names.
    fn needs(&self, part: Part) -> Needs {
        let fields = |count: usize| count * part.links_bytes(Precision::Double);
        match self {
            LinkSmearing::Stout(_) => vec![
                ("links and smeared links", fields(2)),
                ("staples", StoutSmearing::workspace_bytes(part, Precision::Double)),
            ],
            LinkSmearing::Projected(smearing) => vec![("links and smeared links", fields(smearing.fields()))],
        }
    }
    fn smeared(&self, links: &GaugeField) -> Result<GaugeField> {
        match self {
            LinkSmearing::Stout(smearing) => smearing.smeared(links),
            LinkSmearing::Projected(smearing) => smearing.smeared(links),
        }
    }
    /// Describes smeared links for people: `stout links in space, rho = 0.1`.
    pub fn title(&self) -> String {
        let place = |spatial| if spatial { " in space" } else { "" };
        match self {
            LinkSmearing::Stout(StoutSmearing { rho, spatial, .. }) => {
                format!("stout links{}, rho = {}", place(*spatial), text::number(*rho))
            }
            LinkSmearing::Projected(ProjectedSmearing { sums, spatial, .. }) => {
                let (name, shares) = match sums {
                    SumsOfStaples::Ape(alpha) => ("APE", text::number(*alpha)),
                    SumsOfStaples::Hyp(alpha) => ("HYP", alpha.map(text::number).join(", ")),
                };
                format!("{name}-smeared links{}, alpha = {shares}", place(*spatial))
            }
        }
    }
    /// Returns the name, ρ of stout links, and shares of staples of the others.
    fn parameters(&self) -> (&'static str, Option<f64>, Option<Vec<f64>>) {
        match self {
            LinkSmearing::Stout(StoutSmearing { rho, .. }) => ("stout", Some(*rho), None),
            LinkSmearing::Projected(ProjectedSmearing { sums: SumsOfStaples::Ape(alpha), .. }) => {
                ("ape", None, Some(vec![*alpha]))
            }
            LinkSmearing::Projected(ProjectedSmearing { sums: SumsOfStaples::Hyp(alpha), .. }) => {
                ("hyp", None, Some(alpha.to_vec()))
            }
        }
    }
}

/// A configuration to smear.
pub struct SmearRequest {
    /// Files and device.
    pub files: LinkFilesRequest,
    /// The smearing.
    pub smearing: LinkSmearing,
}

impl SmearRequest {
    /// *Collective.* Reads, smears and writes links.
    ///
    /// # Errors
    /// Files that cannot be read or written, too little memory, and failures of the device.
    pub fn smear(&self, session: &Session) -> Outcome<SmearRecord> {
        let SmearRequest { files, smearing } = self;
        let job = LinkJob::begin(files, "smearing", |part| smearing.needs(part), session)?;
        let (links, plaquettes) = {
            let links = GaugeField::upload(&job.layout.domain(job.device.backend())?, &job.file.gauge)?;
            let smeared = smearing.smeared(&links)?;
            (smeared.download()?, [links.plaquette()?.0, smeared.plaquette()?.0])
        };
        let (levels, spatial) = match smearing {
            LinkSmearing::Stout(StoutSmearing { levels, spatial, .. })
            | LinkSmearing::Projected(ProjectedSmearing { levels, spatial, .. }) => (*levels, *spatial),
        };
        job.write(&links, &format!("{}, {}", smearing.title(), text::count(levels, "level")))?;
        let [before, after] =
            plaquettes.each_ref().map(|means| SmearedLoops { plaquette: observables::plaquettes(means) });
        let (kind, rho, alpha) = smearing.parameters();
        let loops = BeforeAndAfter { before, after };
        Ok(SmearRecord { links: job.record(), kind: kind.into(), rho, alpha, levels, spatial, loops })
    }
}
