//! Task that smears the links of a configuration.
use crate::link_job::{LinkFilesRequest, LinkJob};
use crate::link_smearing::LinkSmearing;
use crate::session::Session;
use crate::{Outcome, observables, text};
use ferrite::field::GaugeField;
use ferrite::gauge::ape_hyp::ProjectedSmearing;
use ferrite::hmc::stout::StoutSmearing;
use ferrite_records::links::{BeforeAndAfter, SmearRecord, SmearedLoops};

/// Request to smear the links of a configuration.
pub struct SmearRequest {
    /// Files and device.
    pub files: LinkFilesRequest,
    /// Smearing method and its parameters.
    pub smearing: LinkSmearing,
}

impl SmearRequest {
    /// *Collective.* Reads links, smears them, and writes them.
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
