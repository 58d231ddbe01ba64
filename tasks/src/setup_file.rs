//! File of `--setup`: near-null vectors of multigrid, from an earlier run or for later ones.
use super::layout::Layout;
use super::{Failure, Outcome};
use crate::failure::ReadBy;
use ferrite::field::host::HostGauge;
use ferrite::files::setup::links_checksum;
use ferrite::operators::WilsonLike;
use ferrite::solve::setup_file::{self, SetupError};
use ferrite::solve::{Configuration, Request};
use std::path::{Path, PathBuf};
use tracing::info;

/// File of a multigrid setup, with the operator and the checksum of the links to which it must belong.
pub struct SetupFile {
    path: PathBuf,
    layout: Layout,
    operator: WilsonLike,
    links: String,
    /// Whether the file existed when the run began.
    is_there: bool,
    /// Whether messages name settings as flags or as keys.
    given_by: ReadBy,
}

impl SetupFile {
    /// *Collective.* Opens the file for a solve with an operator on this process's part of the links.
    pub fn new(
        path: &Path,
        layout: &Layout,
        operator: WilsonLike,
        gauge: &HostGauge,
        given_by: ReadBy,
    ) -> Outcome<Self> {
        let network = layout.network();
        let failed = |error: comms::CommError| Failure::failed(error);
        let links = links_checksum(gauge, &layout.section, network).map_err(failed)?;
        let there = network.all_gather(&[u8::from(path.exists())]).map_err(failed)?;
        let is_there = there.first().is_some_and(|first| *first == [1]);
        Ok(SetupFile { path: path.into(), layout: layout.clone(), operator, links, is_there, given_by })
    }
    /// *Collective.* Reads the near-null vectors of the file, if it exists, into `configuration`, and sets their number in `request`.
    /// `asked` is true if the user requested their number.
    pub fn load(&self, configuration: &Configuration<'_>, request: &mut Request, asked: bool) -> Outcome {
        if !self.is_there {
            return Ok(());
        }
        let (path, expected) = (self.path.display(), asked.then_some(request.multigrid.vectors));
        let refused = |why| Failure::refused(format!("{path} {why}: remove this file, or name another one")).shared();
        let file = self.layout.share(&self.path);
        let loaded = setup_file::load(file, configuration, self.operator, &self.links, expected);
        let loaded = loaded.map_err(|error| match error {
            SetupError::File(error) => Failure::reading(&error, ReadBy::default()),
            SetupError::Device(error) => error.into(),
            SetupError::Vectors { found, asked } => {
                let vectors = self.given_by.spelled("mg-vectors", "");
                let why = format!(
                    "{path} has {found} near-null vectors, but {vectors} requests {asked}: remove {vectors}, or name \
                     another file"
                );
                Failure::refused(why).shared()
            }
            why => refused(why.to_string()),
        })?;
        request.multigrid.vectors = loaded.vectors;
        info!("{path}: read {} near-null vectors of multigrid, made for m = {}", loaded.vectors, loaded.mass);
        Ok(())
    }
    /// *Collective.* Writes the near-null vectors of this run, unless the file existed before.
    pub fn save(&self, configuration: &Configuration<'_>) -> Outcome {
        if self.is_there {
            return Ok(());
        }
        match setup_file::save(self.layout.share(&self.path), configuration, &self.links) {
            Ok(vectors) => info!("{}: wrote {vectors} near-null vectors of multigrid", self.path.display()),
            Err(SetupError::None) => {}
            Err(SetupError::File(error)) => return Err(Failure::writing(error)),
            Err(SetupError::Device(error)) => return Err(error.into()),
            Err(why) => return Err(Failure::failed(why)),
        }
        Ok(())
    }
}
