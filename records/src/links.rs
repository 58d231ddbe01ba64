//! Records of gauge fields that are generated, changed, converted or verified.
use crate::observables::{FieldStrengthRecord, LoopsRecord, PlaquetteMeans};
use crate::place::{LayoutRecord, PlaceRecord};
use crate::program::ErrorMessage;
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Result of `ferrite generate`. Only `ferrite generate quenched` gives the keys from `files` on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenerateRecord {
    /// File of the configuration.
    pub output: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Seed of the random numbers.
    pub seed: Option<u64>,
    /// Processes and their grid.
    pub layout: LayoutRecord,
    /// Plaquette of the generated links.
    pub plaquette: GeneratedPlaquette,
    /// Files that were written; only from `generate quenched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<PathBuf>>,
    /// Seconds of the sweeps; only from `generate quenched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Backend: `cpu` or `cuda`; only from `generate quenched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Description of the first process's device; only from `generate quenched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Sweeps of the run; only from `generate quenched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quenched: Option<QuenchedSweeps>,
}

impl Record for GenerateRecord {
    const SCHEMA: &'static str = "ferrite.generate/1";
}

/// Plaquette of generated links. Only `ferrite generate quenched` gives keys other than `mean`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratedPlaquette {
    /// Plaquette of the last configuration.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// Mean over all sweeps after `--thermalise`; only from `generate quenched`.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub average: Option<f64>,
    /// One standard deviation of `average`; only from `generate quenched`.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Integrated autocorrelation time in sweeps, ½ if sweeps are independent; only from `generate quenched`.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub autocorrelation: Option<f64>,
}

/// Numbers of sweeps and coupling of a quenched run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuenchedSweeps {
    /// Gauge coupling β.
    pub beta: f64,
    /// Number of sweeps by which the initial links had been generated.
    pub first_sweep: u32,
    /// Number of the last sweep.
    pub last_sweep: u32,
    /// Number of sweeps at the beginning that are neither written nor averaged.
    pub thermalise: u32,
    /// Number of averaged sweeps, which follow those of `thermalise`.
    pub sweeps: u32,
    /// Number of over-relaxation updates in a sweep.
    pub overrelax: u32,
}

/// Result of `ferrite plaquette`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaquetteRecord {
    /// File of the configuration.
    pub file: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Mean of Re tr P / 3 over all planes, over the spatial planes xy, xz and yz, and over the temporal planes xt, yt and zt.
    pub plaquette: PlaquetteMeans,
    /// Mean of Re tr U / 3 over all links.
    #[serde(deserialize_with = "real::read")]
    pub link_trace: f64,
    /// Maximum over links of ‖U U† − 1‖ and abs(det U − 1).
    #[serde(deserialize_with = "real::read")]
    pub unitarity_violation: f64,
    /// Backend: `cpu`, `cuda`, or `host` for a lattice with an odd extent.
    pub backend: String,
    /// Description of the first process's device; `None` for the backend `host`.
    pub device: Option<String>,
    /// Processes and their grid.
    pub layout: LayoutRecord,
}

impl Record for PlaquetteRecord {
    const SCHEMA: &'static str = "ferrite.plaquette/1";
}

/// Result of `ferrite verify`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifyRecord {
    /// File that was verified.
    pub file: PathBuf,
    /// Whether the file was read without an error.
    pub ok: bool,
    /// Error, as in `ferrite.error/1`; only if `ok` is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorMessage>,
    /// Properties of the file; only if `ok` is true.
    #[serde(flatten)]
    pub verified: Option<VerifiedFile>,
}

impl Record for VerifyRecord {
    const SCHEMA: &'static str = "ferrite.verify/1";
}

/// Properties of a file that was read without an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifiedFile {
    /// Kind of the fields: `gauge`, `spinor` or `colour vector`.
    pub field: String,
    /// Name of the format.
    pub format: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Precision of the numbers.
    pub precision: String,
    /// Number of fields in the file, or of columns of a propagator.
    pub fields: usize,
    /// Checksum of the file.
    pub checksum: ChecksumRecord,
    /// Properties that differ from the header and were accepted: `length`, `checksum`, `plaquette`, `link trace`.
    pub differs: Vec<String>,
    /// Remarks on entries of the header that were ignored.
    pub notes: Vec<String>,
    /// Squared norm of all spinors or colour vectors in the file; only for fermion fields.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub norm2: Option<f64>,
    /// Properties of the links; only for gauge fields.
    #[serde(flatten)]
    pub links: Option<VerifiedLinks>,
    /// Processes and their grid.
    pub layout: LayoutRecord,
}

/// Plaquette, trace, unitarity and boundary of the links of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifiedLinks {
    /// Plaquette of the links.
    pub plaquette: VerifiedPlaquette,
    /// Mean of Re tr U / 3 over all links.
    #[serde(deserialize_with = "real::read")]
    pub link_trace: f64,
    /// Maximum over links of ‖U U† − 1‖ and abs(det U − 1).
    #[serde(deserialize_with = "real::read")]
    pub unitarity_violation: f64,
    /// Whether all U_t at t = T − 1 are zero.
    pub open_boundary: bool,
}

/// Plaquette of the links of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifiedPlaquette {
    /// Means over planes.
    #[serde(flatten)]
    pub means: PlaquetteMeans,
    /// Plaquette stated in the header; `None` if the header has none.
    pub stored: Option<f64>,
}

/// Kind of a file's checksum and result of its check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChecksumRecord {
    /// Result of the check: `verified`, `absent` or `mismatch`.
    pub status: String,
    /// Kind of the checksum; only if the file has a checksum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Result of `ferrite convert`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConvertRecord {
    /// File that was read.
    pub input: PathBuf,
    /// File that was written.
    pub output: PathBuf,
    /// Kind of the fields: `gauge`, `spinor` or `colour vector`.
    pub field: String,
    /// Number of fields that were converted.
    pub fields: usize,
    /// Name of the format.
    pub format: String,
    /// Precision of the numbers.
    pub precision: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Metadata of the input that was not copied.
    pub left_out: Vec<String>,
    /// Processes and their grid.
    pub layout: LayoutRecord,
}

impl Record for ConvertRecord {
    const SCHEMA: &'static str = "ferrite.convert/1";
}

/// Files, format and device of a command that changes links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedLinks {
    /// File that was read.
    pub input: PathBuf,
    /// File that was written.
    pub output: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Name of the format.
    pub format: String,
    /// Precision of the numbers in the file.
    pub precision: String,
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
}

/// Result of `ferrite fix-gauge`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixGaugeRecord {
    /// Files and device.
    #[serde(flatten)]
    pub links: ChangedLinks,
    /// Gauge: `coulomb` or `landau`.
    pub gauge: String,
    /// Number of sweeps.
    pub sweeps: usize,
    /// Over-relaxation parameter.
    pub overrelax: f64,
    /// Requested deviation θ from the gauge condition.
    pub tol: f64,
    /// Seconds of the sweeps.
    pub seconds: f64,
    /// Deviation θ = Σ tr Δ Δ† / (3 V) from the gauge condition.
    pub theta: BeforeAndAfter<f64>,
    /// Mean of Re tr U / 3 over the directions of the gauge condition.
    pub functional: BeforeAndAfter<f64>,
    /// Mean plaquette.
    pub plaquette: BeforeAndAfter<f64>,
}

impl Record for FixGaugeRecord {
    const SCHEMA: &'static str = "ferrite.fix-gauge/1";
}

/// A value before and after a change of links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeforeAndAfter<T> {
    /// Value of the links that were read.
    pub before: T,
    /// Value of the links that were written.
    pub after: T,
}

/// Result of `ferrite smear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmearRecord {
    /// Files and device.
    #[serde(flatten)]
    pub links: ChangedLinks,
    /// Smearing method: `stout`, `ape` or `hyp`.
    pub kind: String,
    /// Parameter ρ of stout smearing; `None` for other methods.
    pub rho: Option<f64>,
    /// Weights of the staples: one for `ape`, three for `hyp`; `None` for `stout`.
    pub alpha: Option<Vec<f64>>,
    /// Number of smearing steps.
    pub levels: usize,
    /// Whether only spatial links are smeared, by spatial staples.
    pub spatial: bool,
    /// Plaquettes before and after smearing.
    #[serde(flatten)]
    pub loops: BeforeAndAfter<SmearedLoops>,
}

impl Record for SmearRecord {
    const SCHEMA: &'static str = "ferrite.smear/1";
}

/// Plaquettes of links before or after smearing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmearedLoops {
    /// Mean of Re tr P / 3 over planes.
    pub plaquette: PlaquetteMeans,
}

/// Result of `ferrite links`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinksRecord {
    /// File of the configuration.
    pub input: PathBuf,
    /// File of fat links, with MILC's phases and the sign of the boundary condition.
    pub fat: PathBuf,
    /// File of long links, with MILC's phases and the sign of the boundary condition.
    pub long: PathBuf,
    /// Name of the operator whose links were made: `asqtad` or `hisq`.
    pub operator: String,
    /// Tadpole factor `u0` (`null` for HISQ) and correction ε `naik_epsilon` of the Naik term (`null` for asqtad).
    #[serde(flatten)]
    pub smearing: Map<String, Value>,
    /// Boundary condition in time: `antiperiodic` or `periodic`.
    pub bc_time: String,
    /// Largest modulus of an element of the fat links.
    pub largest_fat: f64,
    /// Largest modulus of an element of the long links.
    pub largest_long: f64,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
}

impl Record for LinksRecord {
    const SCHEMA: &'static str = "ferrite.links/1";
}

/// Description of a file of links, passed with the links to interfaces of other languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinksDescription {
    /// Format of the file.
    pub format: String,
    /// Precision of the numbers in the file.
    pub precision: String,
    /// Kind of the checksum and whether it matches the data, or `none`.
    pub checksum: String,
    /// Mean plaquette stated in the header; `None` if the header has none.
    pub plaquette: Option<f64>,
    /// Mean link trace stated in the header; `None` if the header has none.
    pub link_trace: Option<f64>,
    /// Keys and values of the header, or types and texts of LIME records.
    pub metadata: Vec<(String, String)>,
    /// Remarks on unusual properties of the file.
    pub notes: Vec<String>,
}

/// Loops, energy density and topological charge of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredLoops {
    /// Means of plaquettes, rectangles and the Polyakov loop.
    #[serde(flatten)]
    pub loops: LoopsRecord,
    /// Energy density and topological charge.
    #[serde(flatten)]
    pub field_strength: FieldStrengthRecord,
}

/// Steps of a gradient flow, and its scales.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSteps {
    /// Flow time in units of a², energy density from the clover-leaf field strength, energy density from plaquettes, and topological charge
    /// at each step.
    pub points: Vec<[f64; 4]>,
    /// Scale t₀ in units of a²; `None` if the flow does not reach it.
    pub t0: Option<f64>,
    /// Scale w₀ in units of a; `None` if the flow does not reach it.
    pub w0: Option<f64>,
}
