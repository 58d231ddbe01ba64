//! The multigrid setup of solves in a [`setup`](crate::files::setup) file, with the operator and the links that it is for.
use super::Configuration;
use crate::domain::DeviceError;
use crate::files::setup::{SetupHeader, SetupReader, SetupWriter};
use crate::files::{FileError, SharedFile};
use crate::multigrid::TestVectors;
use crate::operators::WilsonLike;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a file gives no setup for a solve.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A setup for something else: what follows the name of the file in a sentence.
    #[error("{0}")]
    Other(String),
    /// A setup with another number of vectors.
    #[error("has {found} vectors, and {asked} are asked for")]
    Vectors {
        /// In the file.
        found: usize,
        /// That were asked for.
        asked: usize,
    },
    /// There is nothing to be written.
    #[error("multigrid was not set up")]
    None,
}

/// What a file gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadedSetup {
    /// How many test vectors.
    pub vectors: usize,
    /// The mass that they were made for.
    pub mass: f64,
}

/// The operator that a setup is for, in its header.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SetupOperator {
    operator: Option<String>,
    mass: Option<f64>,
    xi: Option<f64>,
    nu: Option<f64>,
    boundary_sign: Option<f64>,
    /// Zero in files of earlier versions, which had no angles.
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

/// *Collective.* Hands the test vectors of a file to the configuration, for the next setup for this operator, whose mass and
/// coefficients may be others. `links` is the [checksum](crate::files::setup::links_checksum) of the configuration's links; of other
/// numbers of vectors than `expected` the file is refused.
///
/// # Errors
/// A file that cannot be read or is damaged, a setup for other links, another operator or another number of vectors, and
/// failures of the device.
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
        return refused(format!("is a setup for links with checksum {}, and these have {links}", header.links));
    }
    let stored = match SetupOperator::deserialize(&header.operator) {
        Ok(stored) => stored,
        Err(why) => return refused(format!("does not describe its operator: {why}")),
    };
    let (theirs, mine) = (stored.to_json(), SetupOperator::from(&operator).to_json());
    for key in ["operator", "xi", "nu", "boundary_sign", "theta"] {
        if theirs[key] != mine[key] {
            return refused(format!("is a setup for {key} = {}, and this is {}", theirs[key], mine[key]));
        }
    }
    if let Some(asked) = expected.filter(|asked| *asked != header.vectors) {
        return Err(SetupError::Vectors { found: header.vectors, asked });
    }
    let Some(mass) = stored.mass else { return refused("does not tell its mass".into()) };
    let read = |k| reader.read(k).map_err(SetupError::File);
    let vectors = TestVectors::from_host(configuration.domain(), header.vectors, read)?;
    let mut of = operator;
    of.wilson.mass = mass;
    configuration.set_test_vectors(of, vectors);
    Ok(LoadedSetup { vectors: header.vectors, mass })
}

/// *Collective.* Writes the test vectors of the setup that the configuration has, and gives their number.
///
/// # Errors
/// [`SetupError::None`] without a setup, a file that cannot be written, and failures of the device.
pub fn save(file: SharedFile<'_>, configuration: &Configuration<'_>, links: &str) -> Result<usize, SetupError> {
    let (operator, multigrid) = configuration.multigrid_setup().ok_or(SetupError::None)?;
    let (vectors, lattice) = (multigrid.test_vectors(), configuration.domain().global());
    let header = SetupHeader::new(lattice, vectors.count(), SetupOperator::from(&operator).to_json(), links);
    let mut writer = SetupWriter::create(file, header)?;
    for k in 0..vectors.count() {
        writer.write(&vectors.to_host(k)?)?;
    }
    writer.finish()?;
    Ok(vectors.count())
}
