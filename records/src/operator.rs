//! Records of Dirac operators with their links and sources, of their results and of their eigenvalues.
use crate::place::{LayoutRecord, PlaceRecord};
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Description of a Dirac operator and of the files of its links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorOnLinks {
    /// Name of the operator, a value of `--operator`.
    pub operator: String,
    /// File of the configuration; `None` with `--fat` and `--long`.
    pub gauge: Option<PathBuf>,
    /// File of fat links.
    pub fat: Option<PathBuf>,
    /// File of long links.
    pub long: Option<PathBuf>,
    /// Stout smearing of the links in the operator.
    pub stout: Option<Stout>,
    /// Boundary condition in time: `antiperiodic` or `periodic`.
    pub bc_time: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Parameters of the operator, under the names of its definition.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// Description of a Dirac operator, of the files of its links, and of the sources to which it is applied or for which systems are solved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorWithSources {
    /// Operator and links.
    #[serde(flatten)]
    pub operator: OperatorOnLinks,
    /// Sources, as typed.
    pub sources: Vec<String>,
}

/// Stout smearing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stout {
    /// Parameter ρ of the smearing.
    pub rho: f64,
    /// Number of smearing steps.
    pub levels: usize,
    /// Whether only spatial links are smeared, by spatial staples.
    pub spatial: bool,
}

/// Parameters of an operator; the operator has those of its definition. A record from which keys are missing can be read with
/// [`read_leniently`](crate::read::read_leniently); these parameters are then `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorParametersRecord {
    /// Hopping parameter: factor of the hopping term relative to the diagonal term.
    pub kappa: Option<f64>,
    /// Bare anisotropy ξ_0.
    pub xi: Option<f64>,
    /// Bare velocity of light ν.
    pub nu: Option<f64>,
    /// Parameters of the clover term; `None` without a clover term.
    pub clover: Option<CloverParameters>,
    /// Twisted mass μ.
    pub mu: Option<f64>,
    /// Angles θ of twisted boundary conditions in x, y, z and t, in radians.
    pub theta: Option<[f64; 4]>,
}

/// Parameters of a clover term.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloverParameters {
    /// Factor c of the clover term (i/2) Σ_{μ<ν} c σ_μν F_μν of M in the spatial planes.
    pub space: Option<f64>,
    /// Factor c of the clover term (i/2) Σ_{μ<ν} c σ_μν F_μν of M in the temporal planes.
    pub time: Option<f64>,
    /// Coefficient of `--csw`: c = csw / u0³ in all planes; `None` if `r` and `t` were given.
    pub csw: Option<f64>,
    /// Tadpole factor of `--u0`; `None` if `r` and `t` were given.
    pub u0: Option<f64>,
    /// Coefficient of `--clover-r`: c = r / ξ_0 in the spatial planes; `None` if `csw` was given.
    pub r: Option<f64>,
    /// Coefficient of `--clover-t`: c = t in the temporal planes; `None` if `csw` was given.
    pub t: Option<f64>,
    /// Form of the Schur complement: `symmetric` (1 − ¼ A⁻¹ D A⁻¹ D) or `asymmetric` (A − ¼ D A⁻¹ D).
    pub schur: Option<String>,
}

/// Result of `ferrite apply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplyRecord {
    /// Operator, links and sources.
    #[serde(flatten)]
    pub system: OperatorWithSources,
    /// Bare mass.
    pub mass: f64,
    /// Whether the Hermitian conjugate was applied.
    pub dagger: bool,
    /// Whether M†M was applied.
    pub normal: bool,
    /// Whether the Schur complement was applied; false for staggered operators.
    pub schur: bool,
    /// Precision of the fields.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// File of the results M b.
    pub output: PathBuf,
    /// Squared norm of each result M b.
    #[serde(deserialize_with = "real::read")]
    pub norm2: Vec<f64>,
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
}

impl Record for ApplyRecord {
    const SCHEMA: &'static str = "ferrite.apply/1";
}

/// Result of `ferrite eigenvalues`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EigenvaluesRecord {
    /// Eigenvalues on each configuration.
    pub configurations: Vec<EigenvaluesLine>,
    /// Requested maximum residual of a Ritz vector, relative to its Ritz value.
    pub tol: f64,
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the first process's device.
    pub device: String,
}

impl Record for EigenvaluesRecord {
    const SCHEMA: &'static str = "ferrite.eigenvalues/1";
}

/// Extreme eigenvalues on a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EigenvaluesLine {
    /// File of the configuration.
    pub file: PathBuf,
    /// Operator and links.
    #[serde(flatten)]
    pub system: OperatorWithSources,
    /// Bare mass.
    pub mass: f64,
    /// Processes and their grid.
    pub layout: LayoutRecord,
    /// Largest eigenvalue of M̂†M̂.
    pub largest: LargestRecord,
    /// Smallest eigenvalue of M̂†M̂, by the Lanczos method for the inverse.
    pub smallest: SmallestRecord,
    /// Condition number: ratio of the largest to the smallest eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub condition: f64,
    /// Spectral bounds of D†D = −D² for staggered operators; `None` for other operators.
    pub d_dagger_d: Option<SpectrumRange>,
}

/// Estimate of the largest eigenvalue, with an interval that contains an eigenvalue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LargestRecord {
    /// Estimate of the eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// Lower end of an interval that contains an eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub low: f64,
    /// Upper end of an interval that contains an eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub high: f64,
    /// Number of Lanczos steps.
    pub steps: usize,
}

/// Estimate of the smallest eigenvalue, with an interval that contains an eigenvalue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmallestRecord {
    /// Estimate of the eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// Lower end of an interval that contains an eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub low: f64,
    /// Upper end of an interval that contains an eigenvalue; `null` if it is unknown.
    #[serde(deserialize_with = "real::read")]
    pub high: f64,
    /// Number of Lanczos steps.
    pub steps: usize,
    /// Number of CG iterations in all Lanczos steps.
    pub iterations: usize,
}

/// Spectral bounds of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpectrumRange {
    /// Smallest eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub smallest: f64,
    /// Largest eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub largest: f64,
}

/// Entry of an operator in the list of all operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEntry {
    /// Name of the operator.
    pub name: String,
    /// Name of the operator in sentences.
    pub title: String,
    /// Formula of the operator.
    pub formula: String,
    /// Whether the fields have one spin component (staggered fermions).
    pub staggered: bool,
    /// Parameters of the operator.
    pub parameters: Vec<ParameterEntry>,
}

/// Entry of a parameter in the list of all operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterEntry {
    /// Name of the parameter, with `_` between words.
    pub name: String,
    /// Type of the value: `number`, `count`, `switch`, `numbers`, `text` or `text or number`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Description of the parameter.
    pub help: String,
    /// Default value; `None` if there is none.
    pub default: Option<String>,
}
