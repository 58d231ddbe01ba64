//! Multigrid setups in [`setup`](crate::files::setup) files, with the operator and the links for which they were made.
use super::Configuration;
use crate::domain::DeviceError;
use crate::files::setup::{SetupHeader, SetupReader, SetupWriter};
use crate::files::{FileError, SharedFile};
use crate::multigrid::NearNullVectors;
use crate::operators::WilsonLike;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reason why a setup file cannot be used for a solve or written.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A failure of the device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A setup for other links or another operator, or with an incomplete description of its operator. The text continues a sentence that
    /// begins with the name of the file.
    #[error("{0}")]
    Other(String),
    /// A setup with another number of vectors than requested.
    #[error("has {found} vectors, but {asked} are requested")]
    Vectors {
        /// Number of vectors in the file.
        found: usize,
        /// Requested number of vectors.
        asked: usize,
    },
    /// No multigrid setup exists that could be written.
    #[error("there is no multigrid setup to save: set multigrid up first")]
    None,
}

/// Properties of a setup that was read from a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadedSetup {
    /// Number of near-null vectors.
    pub vectors: usize,
    /// Mass for which the vectors were made.
    pub mass: f64,
}

/// Operator of a setup, as the header of the file describes it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SetupOperator {
    operator: Option<String>,
    mass: Option<f64>,
    xi: Option<f64>,
    nu: Option<f64>,
    boundary_sign: Option<f64>,
    /// Angles of twisted boundary conditions; zero in files of earlier versions, which had no twisted boundary conditions.
    theta: [f64; 4],
    coefficients: Vec<f64>,
}

impl From<&WilsonLike> for SetupOperator {
    fn from(operator: &WilsonLike) -> Self {
        let wilson = operator.wilson;
        SetupOperator {
            operator: Some(operator.definition.name.into()),
            mass: Some(wilson.mass),
            xi: Some(wilson.anisotropy.xi),
            nu: Some(wilson.anisotropy.nu),
            boundary_sign: Some(wilson.boundary.sign()),
            theta: operator.theta.0,
            coefficients: operator.coefficients.into(),
        }
    }
}

impl SetupOperator {
    fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("a structure of numbers and a text")
    }
}

/// *Collective.* Reads the near-null vectors of a file into the configuration, for the next multigrid setup for this operator. The operator
/// in the file may have another mass and other coefficients of its diagonal term. `links` is the
/// [checksum](crate::files::setup::links_checksum) of the configuration's links. A file with another number of vectors than `expected` is
/// refused.
///
/// # Errors
/// A file that cannot be read or is damaged; a setup for other links, another operator or another number of vectors; failures of the
/// device.
pub fn load(
    file: SharedFile<'_>,
    configuration: &Configuration<'_>,
    operator: WilsonLike,
    links: &str,
    expected: Option<usize>,
) -> Result<LoadedSetup, SetupError> {
    let refused = |why: String| Err(SetupError::Other(why));
    let reader = SetupReader::open(file)?;
    let header = reader.header();
    if header.links != links {
        return refused(format!(
            "is a setup for links with checksum {}, but the links of this solve have {links}",
            header.links
        ));
    }
    let stored = match SetupOperator::deserialize(&header.operator) {
        Ok(stored) => stored,
        Err(why) => return refused(format!("does not describe its operator: {why}")),
    };
    let (theirs, mine) = (stored.to_json(), SetupOperator::from(&operator).to_json());
    for key in ["operator", "xi", "nu", "boundary_sign", "theta"] {
        if theirs[key] != mine[key] {
            let shown = |value: &Value| match (key, value.as_f64()) {
                ("boundary_sign", Some(sign)) if sign < 0.0 => "antiperiodic".into(),
                ("boundary_sign", Some(_)) => "periodic".into(),
                _ => value.to_string(),
            };
            let name = if key == "boundary_sign" { "bc-time" } else { key };
            let [theirs, mine] = [shown(&theirs[key]), shown(&mine[key])];
            return refused(format!("is a setup for {name} = {theirs}, but this solve has {name} = {mine}"));
        }
    }
    if let Some(asked) = expected.filter(|asked| *asked != header.vectors) {
        return Err(SetupError::Vectors { found: header.vectors, asked });
    }
    let Some(mass) = stored.mass else { return refused("does not contain the mass of its operator".into()) };
    let read = |k| reader.read(k).map_err(SetupError::File);
    let vectors = NearNullVectors::from_host(configuration.domain(), header.vectors, read)?;
    let mut of = operator;
    of.wilson.mass = mass;
    configuration.set_near_null_vectors(of, vectors);
    Ok(LoadedSetup { vectors: header.vectors, mass })
}

/// *Collective.* Writes the near-null vectors of the configuration's multigrid setup to a file, and returns their number.
///
/// # Errors
/// [`SetupError::None`] without a setup; a file that cannot be written; failures of the device.
pub fn save(file: SharedFile<'_>, configuration: &Configuration<'_>, links: &str) -> Result<usize, SetupError> {
    let (operator, multigrid) = configuration.multigrid_setup().ok_or(SetupError::None)?;
    let (vectors, lattice) = (multigrid.near_null_vectors(), configuration.domain().global());
    let header = SetupHeader::new(lattice, vectors.count(), SetupOperator::from(&operator).to_json(), links);
    let mut writer = SetupWriter::create(file, header)?;
    for k in 0..vectors.count() {
        writer.write(&vectors.to_host(k)?)?;
    }
    writer.finish()?;
    Ok(vectors.count())
}
