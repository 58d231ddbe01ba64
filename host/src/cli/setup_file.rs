//! `--setup FILE`: test vectors of multigrid from an earlier run, or for later ones.
use super::layout::Layout;
use super::{Failure, Outcome};
use crate::cli::failure::ReadBy;
use ferrite::domain::Domain;
use ferrite::field::host::HostGauge;
use ferrite::files::FileError;
use ferrite::files::setup::{SetupHeader, SetupReader, SetupWriter, links_checksum};
use ferrite::multigrid::TestVectors;
use ferrite::operators::{BoundaryAngles, WilsonLike};
use ferrite::solve::{Configuration, Request};
use serde_json::{Value, json};
use std::path::Path;
use tracing::info;

/// The file, and what the links and the operator of this run are.
pub struct SetupFile<'a> {
    path: &'a Path,
    layout: &'a Layout,
    operator: WilsonLike,
    links: String,
    /// Whether it was there when the run began.
    is_there: bool,
}

/// What went wrong with the file or with the device.
enum Trouble {
    File(FileError),
    Device(ferrite::domain::DeviceError),
}
impl From<ferrite::domain::DeviceError> for Trouble {
    fn from(error: ferrite::domain::DeviceError) -> Self {
        Trouble::Device(error)
    }
}

impl<'a> SetupFile<'a> {
    /// *Collective.* For a solve with an operator on this process's part of the links.
    pub fn new(path: &'a Path, layout: &'a Layout, operator: WilsonLike, gauge: &HostGauge) -> Outcome<Self> {
        let network = layout.network();
        let failed = |error: comms::CommError| Failure::failed(error);
        let links = links_checksum(gauge, &layout.section, network).map_err(failed)?;
        let there = network.all_gather(&[u8::from(path.exists())]).map_err(failed)?;
        let is_there = there.first().is_some_and(|first| *first == [1]);
        Ok(SetupFile { path, layout, operator, links, is_there })
    }
    /// The operator, as a setup is told for which it is.
    fn describe(operator: &WilsonLike) -> Value {
        let wilson = operator.wilson;
        json!({
            "operator": operator.definition.name,
            "mass": wilson.mass,
            "xi": wilson.anisotropy.xi,
            "nu": wilson.anisotropy.nu,
            "boundary_sign": wilson.boundary.sign(),
            "theta": operator.theta.0,
            "coefficients": operator.coefficients,
        })
    }
    /// *Collective.* Hands over what the file has, if it is there, and makes a request for as many near-null vectors; `asked`:
    /// their number was asked for.
    pub fn load(
        &self,
        domain: &Domain,
        configuration: &Configuration<'_>,
        request: &mut Request,
        asked: bool,
    ) -> Outcome {
        if !self.is_there {
            return Ok(());
        }
        let (path, remedy) = (self.path.display(), "remove it, or name another file");
        let refused = |why: String| Err(Failure::refused(format!("{path} {why}: {remedy}")).shared());
        let reading = |error: FileError| Failure::reading(&error, ReadBy::default());
        let reader = SetupReader::open(self.layout.share(self.path)).map_err(reading)?;
        let header = reader.header();
        if header.links != self.links {
            return refused(format!(
                "is a setup for links with checksum {}, and these have {}",
                header.links, self.links
            ));
        }
        let mine = Self::describe(&self.operator);
        // Files of earlier versions have no angles, which there were not.
        let untwisted = json!(BoundaryAngles::default().0);
        for key in ["operator", "xi", "nu", "boundary_sign", "theta"] {
            let theirs = header.operator.get(key).unwrap_or(if key == "theta" { &untwisted } else { &Value::Null });
            if *theirs != mine[key] {
                return refused(format!("is a setup for {key} = {theirs}, and this is {}", mine[key]));
            }
        }
        if asked && header.vectors != request.multigrid.vectors {
            let asked = request.multigrid.vectors;
            return refused(format!("has {} vectors, and --mg-vectors asks for {asked}", header.vectors));
        }
        let Some(mass) = header.operator["mass"].as_f64() else { return refused("does not tell its mass".into()) };
        let vectors = TestVectors::from_host(domain, header.vectors, |k| reader.read(k).map_err(Trouble::File));
        let vectors = vectors.map_err(|trouble| match trouble {
            Trouble::File(error) => reading(error),
            Trouble::Device(error) => error.into(),
        })?;
        request.multigrid.vectors = header.vectors;
        let mut operator = self.operator;
        operator.wilson.mass = mass;
        configuration.set_test_vectors(operator, vectors);
        info!("{path}: {} test vectors for multigrid, made for m = {mass}", header.vectors);
        Ok(())
    }
    /// *Collective.* Writes what the run has made, if the file was not there.
    pub fn save(&self, configuration: &Configuration<'_>) -> Outcome {
        let Some((operator, multigrid)) = configuration.multigrid_setup().filter(|_| !self.is_there) else {
            return Ok(());
        };
        let vectors = multigrid.test_vectors();
        let header = SetupHeader::new(self.layout.lattice(), vectors.count(), Self::describe(&operator), &self.links);
        let mut writer = SetupWriter::create(self.layout.share(self.path), header).map_err(Failure::writing)?;
        for k in 0..vectors.count() {
            writer.write(&vectors.to_host(k)?).map_err(Failure::writing)?;
        }
        writer.finish().map_err(Failure::writing)?;
        info!("{}: wrote {} test vectors of multigrid", self.path.display(), vectors.count());
        Ok(())
    }
}
