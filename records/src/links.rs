//! Gauge fields that commands generate, change, convert and verify.
use crate::observables::{FieldStrengthRecord, LoopsRecord, PlaquetteMeans};
use crate::place::{Layout, Place};
use crate::program::ErrorMessage;
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The result of `ferrite generate`. The keys from `files` on are those of `ferrite generate quenched`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenerateRecord {
    /// File of the configuration.
    pub output: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Seed of the random numbers.
    pub seed: Option<u64>,
    /// Processes.
    pub layout: Layout,
    /// The plaquette.
    pub plaquette: GeneratedPlaquette,
    /// Files that were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<PathBuf>>,
    /// Seconds of the sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// `cpu` or `cuda`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The device of the first process, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quenched: Option<QuenchedSweeps>,
}

impl Record for GenerateRecord {
    const SCHEMA: &'static str = "ferrite.generate/1";
}

/// The plaquette of generated links. All keys but the first are those of `ferrite generate quenched`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratedPlaquette {
    /// Plaquette of the last configuration.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// Mean over all sweeps after `--thermalise`.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub average: Option<f64>,
    /// One standard deviation of that mean.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Integrated autocorrelation time in sweeps; ½: independent.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub autocorrelation: Option<f64>,
}

/// Sweeps of a quenched run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuenchedSweeps {
    /// β
    pub beta: f64,
    /// Sweeps that made the links of the start.
    pub first_sweep: u32,
    /// Number of the last sweep.
    pub last_sweep: u32,
    /// Sweeps that are neither written nor averaged.
    pub thermalise: u32,
    /// Sweeps after these.
    pub sweeps: u32,
    /// Over-relaxation updates in a sweep.
    pub overrelax: u32,
}

/// The result of `ferrite plaquette`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaquetteRecord {
    /// The configuration.
    pub file: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Mean of Re tr P / 3 over all, the xy, xz and yz, and the xt, yt and zt planes.
    pub plaquette: PlaquetteMeans,
    /// Mean of Re tr U / 3.
    #[serde(deserialize_with = "real::read")]
    pub link_trace: f64,
    /// The larger of ‖U U† − 1‖ and abs(det U − 1) of the worst link.
    #[serde(deserialize_with = "real::read")]
    pub unitarity_violation: f64,
    /// `cpu`, `cuda`, or `host` for a lattice with an odd extent.
    pub backend: String,
    /// The device of the first process, for people; `None` on the host.
    pub device: Option<String>,
    /// Processes.
    pub layout: Layout,
}

impl Record for PlaquetteRecord {
    const SCHEMA: &'static str = "ferrite.plaquette/1";
}

/// The result of `ferrite verify`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifyRecord {
    /// The file.
    pub file: PathBuf,
    /// Whether it was read without an error.
    pub ok: bool,
    /// The error, as in `ferrite.error/1`, if not `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorMessage>,
    /// The file, if `ok`.
    #[serde(flatten)]
    pub verified: Option<VerifiedFile>,
}

impl Record for VerifyRecord {
    const SCHEMA: &'static str = "ferrite.verify/1";
}

/// A file that was read without an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifiedFile {
    /// `gauge`, `spinor` or `colour vector`.
    pub field: String,
    /// Name of the format.
    pub format: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Precision of the numbers.
    pub precision: String,
    /// Number of fields in the file, or of columns of a propagator.
    pub fields: usize,
    /// The checksum.
    pub checksum: ChecksumRecord,
    /// Values that differ from the header and were accepted: `length`, `checksum`, `plaquette`, `link trace`.
    pub differs: Vec<String>,
    /// Sentences about entries of headers that were ignored.
    pub notes: Vec<String>,
    /// Squared norm of all spinors or colour vectors that were read.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub norm2: Option<f64>,
    /// Values of links.
    #[serde(flatten)]
    pub links: Option<VerifiedLinks>,
    /// Processes.
    pub layout: Layout,
}

/// Values of the links of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifiedLinks {
    /// The plaquette.
    pub plaquette: VerifiedPlaquette,
    /// Mean of Re tr U / 3.
    #[serde(deserialize_with = "real::read")]
    pub link_trace: f64,
    /// The larger of ‖U U† − 1‖ and abs(det U − 1) of the worst link.
    #[serde(deserialize_with = "real::read")]
    pub unitarity_violation: f64,
    /// Whether all U_t at t = T − 1 are zero.
    pub open_boundary: bool,
}

/// The plaquette of the links of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerifiedPlaquette {
    /// Means over planes.
    #[serde(flatten)]
    pub means: PlaquetteMeans,
    /// The plaquette of the header, or `None`.
    pub stored: Option<f64>,
}

/// The checksum of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChecksumRecord {
    /// `verified`, `absent` or `mismatch`.
    pub status: String,
    /// Kind of the checksum, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// The result of `ferrite convert`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConvertRecord {
    /// File that was read.
    pub input: PathBuf,
    /// File that was written.
    pub output: PathBuf,
    /// `gauge`, `spinor` or `colour vector`.
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
    /// Processes.
    pub layout: Layout,
}

impl Record for ConvertRecord {
    const SCHEMA: &'static str = "ferrite.convert/1";
}

/// Links that were read, changed and written.
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
    pub place: Place,
}

/// The result of `ferrite fix-gauge`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixGaugeRecord {
    /// Files and device.
    #[serde(flatten)]
    pub links: ChangedLinks,
    /// `coulomb` or `landau`.
    pub gauge: String,
    /// Number of sweeps.
    pub sweeps: usize,
    /// Factor of over-relaxation.
    pub overrelax: f64,
    /// Requested θ.
    pub tol: f64,
    /// Seconds of the sweeps.
    pub seconds: f64,
    /// θ = Σ tr Δ Δ† / (3 V) of the divergence.
    pub theta: BeforeAndAfter<f64>,
    /// Mean of Re tr U / 3 over the directions that count.
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

/// The result of `ferrite smear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmearRecord {
    /// Files and device.
    #[serde(flatten)]
    pub links: ChangedLinks,
    /// `stout`, `ape` or `hyp`.
    pub kind: String,
    /// ρ of stout links, else `None`.
    pub rho: Option<f64>,
    /// One share of the staples for `ape`, three for `hyp`; else `None`.
    pub alpha: Option<Vec<f64>>,
    /// Number of steps.
    pub levels: usize,
    /// Whether only links in space are smeared, by staples in space.
    pub spatial: bool,
    /// Plaquettes before and after.
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

/// The result of `ferrite links`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinksRecord {
    /// The configuration.
    pub input: PathBuf,
    /// File of fat links, with MILC's phases and the sign of the boundary condition.
    pub fat: PathBuf,
    /// File of long links, likewise.
    pub long: PathBuf,
    /// `asqtad` or `hisq`.
    pub operator: String,
    /// Tadpole factor `u0`, or `None` for HISQ, and `naik_epsilon`, ε, or `None` for asqtad.
    #[serde(flatten)]
    pub smearing: Map<String, Value>,
    /// `antiperiodic` or `periodic`.
    pub bc_time: String,
    /// The largest modulus of an element of all fat links.
    pub largest_fat: f64,
    /// The largest modulus of an element of all long links.
    pub largest_long: f64,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Device and processes.
    #[serde(flatten)]
    pub place: Place,
}

impl Record for LinksRecord {
    const SCHEMA: &'static str = "ferrite.links/1";
}

/// A file of links, beside its links, for interfaces of other languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinksDescription {
    /// Format of the file.
    pub format: String,
    /// Precision of its numbers.
    pub precision: String,
    /// Kind of the checksum and whether it is that of the data, or `none`.
    pub checksum: String,
    /// Mean plaquette of the header; `None` without.
    pub plaquette: Option<f64>,
    /// Mean link trace of the header; `None` without.
    pub link_trace: Option<f64>,
    /// Further entries of the header.
    pub metadata: Vec<(String, String)>,
    /// Remarks on what was unusual.
    pub notes: Vec<String>,
}

/// Loops, energy density and charge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredLoops {
    /// Loops.
    #[serde(flatten)]
    pub loops: LoopsRecord,
    /// Energy density and charge.
    #[serde(flatten)]
    pub field_strength: FieldStrengthRecord,
}

/// Steps of a gradient flow, and its scales.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSteps {
    /// Time, energy density, energy density by plaquettes, and charge at each step.
    pub points: Vec<[f64; 4]>,
    /// t₀; `None` where the flow does not reach it.
    pub t0: Option<f64>,
    /// w₀; `None` where the flow does not reach it.
    pub w0: Option<f64>,
}
