//! Records of measurements and traces on configurations.
use crate::configuration::ContentRecord;
use crate::observables::{FieldStrengthRecord, FlowPointRecord, LoopsRecord, WilsonLoopsRecord};
use crate::operator::OperatorWithSources;
use crate::read::present;
use crate::{Record, real};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Origin of a line in the file of `--output`; empty for a configuration that is printed but not written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineOrigin {
    /// Schema of the line; only in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Absolute path of the configuration's file; only in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absolute: Option<String>,
    /// Length, checksum and modification time of the configuration's file: `bytes`, `crc32` and `modified_ns`, as in
    /// `ferrite.correlators/1`; only in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentRecord>,
    /// Keys of the input on which the result depends; only in files. All lines of a file have the same input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// Record of one configuration that is a line in the file of `--output`.
pub trait ConfigurationLine: Record + DeserializeOwned + Clone {
    /// Returns the origin of the line.
    fn origin(&self) -> &LineOrigin;
    /// Returns the line with another origin.
    #[must_use]
    fn with_origin(self, origin: LineOrigin) -> Self;
}

/// Measurements on a configuration: a part of the result of `ferrite measure`, and a line of its `--output`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasurementLine {
    /// Origin of the line.
    #[serde(flatten)]
    pub origin: LineOrigin,
    /// File of the configuration.
    pub file: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Plaquette, rectangle and Polyakov loop.
    #[serde(flatten)]
    pub loops: LoopsRecord,
    /// Energy density and topological charge.
    #[serde(flatten)]
    pub field_strength: FieldStrengthRecord,
    /// Points of the gradient flow, one after every `--flow-every` steps; only with `--flow`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<FlowPointRecord>,
    /// Scale t₀ in units of a², the flow time at which t² E reaches 0.3, from all steps; only with `--flow`, `None` if the flow does not
    /// reach it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub t0: Option<Option<f64>>,
    /// Scale w₀ in units of a, √t at the flow time at which t d/dt t² E reaches 0.3, from all steps; only with `--flow`, `None` if the flow
    /// does not reach it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub w0: Option<Option<f64>>,
    /// Wilson loops of each separation; only with `--loops`.
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

/// Settings of `ferrite measure` that its lines depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasurementInput {
    /// Gradient flow; `None` without a flow.
    pub flow: Option<FlowInput>,
    /// Wilson loops; `None` without loops.
    pub loops: Option<LoopInput>,
    /// Whether the links are projected to SU(3).
    pub reunitarise: bool,
    /// Number, counted from 0, of the gauge field in a LIME file with several fields.
    pub record: usize,
}

/// Parameters of a gradient flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowInput {
    /// Last flow time in units of a².
    pub end: f64,
    /// Length of a step in units of a².
    pub step: f64,
    /// Name of the action of the flow.
    pub action: String,
    /// Number of steps from one point of the output to the next.
    pub every: u32,
}

/// Parameters of Wilson loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopInput {
    /// Largest separation R along an axis, in units of a.
    pub distance: usize,
    /// Largest time T of the loops, in units of a.
    pub time: usize,
    /// Whether separations off the axes are included.
    pub off_axis: bool,
    /// Smearing of the spatial links; `None` without smearing.
    pub smearing: Option<LoopSmearing>,
}

/// Smearing of the links in Wilson loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopSmearing {
    /// Smearing method: `ape` or `hyp`.
    pub kind: String,
    /// Weights of the staples.
    pub alpha: Vec<f64>,
    /// Number of smearing steps.
    pub levels: usize,
}

/// Result of `ferrite measure`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureRecord {
    /// Measurements on each configuration.
    pub configurations: Vec<MeasurementLine>,
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the first process's device.
    pub device: String,
}

impl Record for MeasureRecord {
    const SCHEMA: &'static str = "ferrite.measure/1";
}

/// Traces on a configuration: a part of the result of `ferrite trace`, and a line of its `--output`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceLine {
    /// Origin of the line.
    #[serde(flatten)]
    pub origin: LineOrigin,
    /// File of the configuration.
    pub file: PathBuf,
    /// Traces for each mass and Γ.
    pub traces: Vec<TraceRecord>,
    /// Largest true residual ‖η − M ψ‖ / ‖η‖.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub residual: f64,
    /// Total number of iterations of the solves. For several masses, it includes multi-shift CG and all refinements.
    #[serde(default)]
    pub iterations: usize,
    /// Seconds for the configuration.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub seconds: f64,
    /// Operator, links and sources.
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

/// Estimates of tr Γ M⁻¹ / V on a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// Bare mass.
    pub mass: f64,
    /// Matrix Γ: `1`, `gx` … `g5`.
    pub gamma: String,
    /// `[re, im]` of tr Γ M⁻¹ / V, one from each noise vector.
    pub noise: Vec<[f64; 2]>,
    /// Mean of tr Γ M⁻¹ / V over the noise vectors, `[re, im]`.
    #[serde(default = "unknown_pair", deserialize_with = "real::read")]
    pub mean: [f64; 2],
    /// Error of the mean, `[re, im]`; `null` for a single noise vector.
    #[serde(default = "unknown_pair", deserialize_with = "real::read")]
    pub error: [f64; 2],
}

fn unknown_pair() -> [f64; 2] {
    [f64::NAN; 2]
}

/// Settings of `ferrite trace` that its lines depend on. A line from which keys are missing can be read with
/// [`read_leniently`](crate::read::read_leniently); these settings are then empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceInput {
    /// Keys on which the solutions depend, as typed.
    pub solve: Map<String, Value>,
    /// Number, type and dilution of the noise vectors.
    pub noise: NoiseInput,
}

/// Noise vectors of `ferrite trace`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoiseInput {
    /// Number of noise vectors on each configuration.
    pub vectors: u32,
    /// Seed of the noise vectors.
    pub seed: Option<u64>,
    /// Type of the noise: `z2` or `z4`.
    pub kind: String,
    /// Dilution of the noise vectors.
    pub dilution: DilutionInput,
}

/// Dilution of noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DilutionInput {
    /// Dilution in time: `all`, or the distance between times that are solved together; `None` without dilution in time.
    pub times: Option<DilutedTimes>,
    /// Whether the noise is diluted in spin.
    pub spin: bool,
    /// Whether the noise is diluted in colour.
    pub colour: bool,
    /// Whether the noise is diluted in parity.
    pub parity: bool,
}

/// Dilution of noise vectors in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DilutedTimes {
    /// Distance between times that are solved together.
    Every(usize),
    /// Text `all`: each time is solved separately.
    Named(String),
}

/// Result of `ferrite trace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracesRecord {
    /// Traces on each configuration.
    pub configurations: Vec<TraceLine>,
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the first process's device.
    pub device: String,
}

impl Record for TracesRecord {
    const SCHEMA: &'static str = "ferrite.trace/1";
}
