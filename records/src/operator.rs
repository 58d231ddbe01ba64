//! The operator of a task, its links and its sources; its images and its eigenvalues.
use crate::place::{Layout, Place};
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A Dirac operator on links from files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorOnLinks {
    /// Name of the operator, one of those of `--operator`.
    pub operator: String,
    /// The configuration; `None` with `--fat` and `--long`.
    pub gauge: Option<PathBuf>,
    /// File of fat links.
    pub fat: Option<PathBuf>,
    /// File of long links.
    pub long: Option<PathBuf>,
    /// Stout smearing of the links that the operator is made of.
    pub stout: Option<Stout>,
    /// `antiperiodic` or `periodic`.
    pub bc_time: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Parameters of the operator, by the keys of its definition.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// A Dirac operator on links from files, and the sources that it is applied to or solved for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorWithSources {
    /// The operator.
    #[serde(flatten)]
    pub operator: OperatorOnLinks,
    /// The sources as given.
    pub sources: Vec<String>,
}

/// Stout smearing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stout {
    /// ρ
    pub rho: f64,
    /// Number of steps.
    pub levels: usize,
    /// Whether only links in space are smeared, by staples in space.
    pub spatial: bool,
}

/// Parameters of operators, of which each has those of its definition. Keys that a record does not have, read with
/// [`read_leniently`](crate::read::read_leniently), are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorParameters {
    /// Hopping term's factor over the diagonal.
    pub kappa: Option<f64>,
    /// Bare anisotropy ξ_0.
    pub xi: Option<f64>,
    /// Bare velocity of light ν.
    pub nu: Option<f64>,
    /// Parameters of the clover term; `None` without one.
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
    /// Factor c of (i/2) Σ_{μ<ν} c σ_μν F_μν in M, in the spatial planes.
    pub space: Option<f64>,
    /// The same in the temporal planes.
    pub time: Option<f64>,
    /// `--csw`: c = csw / u0³ in all planes; `None` if `r` and `t` were given.
    pub csw: Option<f64>,
    /// `--u0`; `None` if `r` and `t` were given.
    pub u0: Option<f64>,
    /// `--clover-r`: c = r / ξ_0 in the spatial planes; or `None`.
    pub r: Option<f64>,
    /// `--clover-t`: c = t in the temporal planes; or `None`.
    pub t: Option<f64>,
    /// `symmetric` (1 − ¼ A⁻¹ D A⁻¹ D) or `asymmetric` (A − ¼ D A⁻¹ D).
    pub schur: Option<String>,
}

/// The result of `ferrite apply`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplyRecord {
    /// The operator and the sources.
    #[serde(flatten)]
    pub system: OperatorWithSources,
    /// Bare mass.
    pub mass: f64,
    /// Whether the Hermitian conjugate was applied.
    pub dagger: bool,
    /// Whether M†M was applied.
    pub normal: bool,
    /// Whether the Schur complement was applied; false of staggered operators.
    pub schur: bool,
    /// Precision of the fields.
    pub precision: String,
    /// Reals stored of a link.
    pub reconstruct: String,
    /// File of the images.
    pub output: PathBuf,
    /// Squared norm of each image.
    #[serde(deserialize_with = "real::read")]
    pub norm2: Vec<f64>,
    /// Device and processes.
    #[serde(flatten)]
    pub place: Place,
}

impl Record for ApplyRecord {
    const SCHEMA: &'static str = "ferrite.apply/1";
}

/// The result of `ferrite eigenvalues`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EigenvaluesRecord {
    /// Eigenvalues on each configuration.
    pub configurations: Vec<EigenvaluesLine>,
    /// Requested relative accuracy of Ritz vectors.
    pub tol: f64,
    /// `cpu` or `cuda`.
    pub backend: String,
    /// The device of the first process, for people.
    pub device: String,
}

impl Record for EigenvaluesRecord {
    const SCHEMA: &'static str = "ferrite.eigenvalues/1";
}

/// Eigenvalues on a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EigenvaluesLine {
    /// The configuration.
    pub file: PathBuf,
    /// The operator.
    #[serde(flatten)]
    pub system: OperatorWithSources,
    /// Bare mass.
    pub mass: f64,
    /// Processes.
    pub layout: Layout,
    /// The largest eigenvalue of M̂†M̂.
    pub largest: LargestRecord,
    /// The smallest eigenvalue of M̂†M̂, by Lanczos for the inverse.
    pub smallest: SmallestRecord,
    /// The largest over the smallest.
    #[serde(deserialize_with = "real::read")]
    pub condition: f64,
    /// Ends of D†D = −D² of staggered operators; else `None`.
    pub d_dagger_d: Option<SpectrumRange>,
}

/// The largest eigenvalue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LargestRecord {
    /// The value.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// Lower end of an interval with an eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub low: f64,
    /// Upper end of that interval.
    #[serde(deserialize_with = "real::read")]
    pub high: f64,
    /// Steps of Lanczos.
    pub steps: usize,
}

/// The smallest eigenvalue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmallestRecord {
    /// The value.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// Lower end of an interval with an eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub low: f64,
    /// Upper end of that interval; `None` where nothing is known yet.
    #[serde(deserialize_with = "real::read")]
    pub high: f64,
    /// Steps of Lanczos.
    pub steps: usize,
    /// Iterations of CG.
    pub iterations: usize,
}

/// Ends of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpectrumRange {
    /// The smallest eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub smallest: f64,
    /// The largest eigenvalue.
    #[serde(deserialize_with = "real::read")]
    pub largest: f64,
}

/// An operator in the list of all operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEntry {
    /// Name of the operator.
    pub name: String,
    /// Name in sentences.
    pub title: String,
    /// Formula.
    pub formula: String,
    /// Whether fields have no spins.
    pub staggered: bool,
    /// Parameters of the operator.
    pub parameters: Vec<ParameterEntry>,
}

/// A parameter in the list of all operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterEntry {
    /// Name of the parameter, with `_` between words.
    pub name: String,
    /// `number`, `count`, `switch`, `numbers`, `text` or `text or number`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Description.
    pub help: String,
    /// Value where none is given; `None` where there is no such value.
    pub default: Option<String>,
}
