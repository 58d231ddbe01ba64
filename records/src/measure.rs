//! Measurements of `ferrite measure` and `ferrite trace`.
use crate::configuration::Content;
use crate::observables::{FieldStrengthRecord, FlowPointRecord, LoopsRecord, WilsonLoopsRecord};
use crate::operator::OperatorWithSources;
use crate::read::present;
use crate::{Record, real};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Origin of a line of `--output`; empty for a configuration that is only printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineOrigin {
    /// Schema of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The file from the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absolute: Option<String>,
    /// What the file held: `bytes`, `crc32` and `modified_ns`, as in `ferrite.correlators/1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// The keys that the result depends on: a file takes one input only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// A line of a configuration in a file of `--output`.
pub trait ConfigurationLine: Record + DeserializeOwned + Clone {
    /// Returns the origin of the line.
    fn origin(&self) -> &LineOrigin;
    /// Returns the line with another origin.
    #[must_use]
    fn with_origin(self, origin: LineOrigin) -> Self;
}

/// Measurements on a configuration, printed by `ferrite measure` and a line of its `--output`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasurementLine {
    /// Origin of the line.
    #[serde(flatten)]
    pub origin: LineOrigin,
    /// The configuration.
    pub file: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Plaquette, rectangle, Polyakov loop.
    #[serde(flatten)]
    pub loops: LoopsRecord,
    /// Energy density and charge.
    #[serde(flatten)]
    pub field_strength: FieldStrengthRecord,
    /// With `--flow`: points after every `--flow-every` steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<FlowPointRecord>,
    /// With `--flow`, in units of a², from all steps: where t² E reaches 0.3; `None` where it does not.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub t0: Option<Option<f64>>,
    /// With `--flow`, in units of a, from all steps: √t where t d/dt t² E reaches 0.3; `None` where it does not.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub w0: Option<Option<f64>>,
    /// With `--loops`: Wilson loops of each separation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wilson_loops: Vec<WilsonLoopsRecord>,
}

impl Record for MeasurementLine {
    const SCHEMA: &'static str = "ferrite.measurement/1";
}

impl ConfigurationLine for MeasurementLine {
    fn origin(&self) -> &LineOrigin {
        &self.origin
    }
    fn with_origin(self, origin: LineOrigin) -> Self {
        MeasurementLine { origin, ..self }
    }
}

/// The input of `ferrite measure`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasurementInput {
    /// The gradient flow, or `None`.
    pub flow: Option<FlowInput>,
    /// Wilson loops, or `None`.
    pub loops: Option<LoopInput>,
    /// Whether links are projected to SU(3).
    pub reunitarise: bool,
    /// Number of the field in its file.
    pub record: usize,
}

/// A gradient flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowInput {
    /// Its last time.
    pub end: f64,
    /// Length of a step.
    pub step: f64,
    /// Name of the action.
    pub action: String,
    /// Steps from one point that is shown to the next.
    pub every: u32,
}

/// Wilson loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopInput {
    /// Longest R along an axis.
    pub distance: usize,
    /// Longest T.
    pub time: usize,
    /// Whether there are loops off the axes.
    pub off_axis: bool,
    /// Smearing of the links, or `None`.
    pub smearing: Option<LoopSmearing>,
}

/// Smearing of the links of loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopSmearing {
    /// `ape` or `hyp`.
    pub kind: String,
    /// Shares of the staples.
    pub alpha: Vec<f64>,
    /// Number of steps.
    pub levels: usize,
}

/// The result of `ferrite measure`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureRecord {
    /// Measurements on each configuration.
    pub configurations: Vec<MeasurementLine>,
    /// `cpu` or `cuda`.
    pub backend: String,
    /// The device of the first process, for people.
    pub device: String,
}

impl Record for MeasureRecord {
    const SCHEMA: &'static str = "ferrite.measure/1";
}

/// Traces on a configuration, printed by `ferrite trace` and a line of its `--output`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceLine {
    /// Origin of the line.
    #[serde(flatten)]
    pub origin: LineOrigin,
    /// The configuration.
    pub file: PathBuf,
    /// Traces for each mass and Γ.
    pub traces: Vec<TraceRecord>,
    /// The largest true residual, ‖η − M ψ‖ / ‖η‖.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub residual: f64,
    /// Iterations of all solves; of several masses those of multi-shift CG and of all refinements.
    #[serde(default)]
    pub iterations: usize,
    /// Seconds of this configuration.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub seconds: f64,
    /// Operator and links.
    #[serde(flatten)]
    pub system: OperatorWithSources,
}

impl Record for TraceLine {
    const SCHEMA: &'static str = "ferrite.traces/1";
}

impl ConfigurationLine for TraceLine {
    fn origin(&self) -> &LineOrigin {
        &self.origin
    }
    fn with_origin(self, origin: LineOrigin) -> Self {
        TraceLine { origin, ..self }
    }
}

/// A trace on a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// Mass.
    pub mass: f64,
    /// `1`, `gx` … `g5`.
    pub gamma: String,
    /// `[re, im]` of tr Γ M⁻¹ / V from each noise vector.
    pub noise: Vec<[f64; 2]>,
    /// Mean over the noise vectors, `[re, im]`.
    #[serde(default = "unknown_pair", deserialize_with = "real::read")]
    pub mean: [f64; 2],
    /// Error of the mean, `[re, im]`; `None` from one vector.
    #[serde(default = "unknown_pair", deserialize_with = "real::read")]
    pub error: [f64; 2],
}

fn unknown_pair() -> [f64; 2] {
    [f64::NAN; 2]
}

/// The input of `ferrite trace`. Keys that a line does not have, read with [`read_leniently`](crate::read::read_leniently), are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceInput {
    /// Keys on which the solution depends, as typed.
    pub solve: Map<String, Value>,
    /// The noise.
    pub noise: NoiseInput,
}

/// Noise of `ferrite trace`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoiseInput {
    /// Number of vectors on each configuration.
    pub vectors: u32,
    /// Seed of the noise.
    pub seed: Option<u64>,
    /// `z2` or `z4`.
    pub kind: String,
    /// Dilution.
    pub dilution: DilutionInput,
}

/// Dilution of noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DilutionInput {
    /// Times: `all`, or the distance of those that are solved for together; or `None`.
    pub times: Option<DilutedTimes>,
    /// Whether spins are solved for one by one.
    pub spin: bool,
    /// Whether colours are.
    pub colour: bool,
    /// Whether parities are.
    pub parity: bool,
}

/// Dilution in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DilutedTimes {
    /// Times whose distance is a multiple of this are solved for together.
    Every(usize),
    /// `all`
    Named(String),
}

/// The result of `ferrite trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracesRecord {
    /// Traces on each configuration.
    pub configurations: Vec<TraceLine>,
    /// `cpu` or `cuda`.
    pub backend: String,
    /// The device of the first process, for people.
    pub device: String,
}

impl Record for TracesRecord {
    const SCHEMA: &'static str = "ferrite.trace/1";
}
