//! Records of the correlators that `ferrite spectrum` computes, and of their summary.
use crate::configuration::ContentRecord;
use crate::fit::{EstimateRecord, HadronFitRecord, PcacFitRecord};
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Correlators of one configuration: a line of `correlators.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrelatorLine {
    /// File of the configuration, as typed.
    pub configuration: PathBuf,
    /// Absolute path of the configuration's file.
    pub file: String,
    /// Length, checksum and time of change of the configuration's file: `bytes`, `crc32` of all bytes, and `modified_ns`, the time of the
    /// last write in nanoseconds since 1970 as text; `None` in lines of earlier versions.
    pub content: Option<ContentRecord>,
    /// Keys of the input on which the correlators depend. All lines of a folder have the same input.
    #[serde(default)]
    pub input: Value,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Mean plaquette of the configuration's links; `None` in lines of earlier versions if all propagators were read.
    pub plaquette: Option<f64>,
    /// Parameter in which the antiquark of mesons differs from the quark, `-mu`; only for twisted mass, where mesons are
    /// [charged](spectrum.md#twisted-mass).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub antiquark: Option<String>,
    /// Source positions, over which the correlators are averaged.
    #[serde(default)]
    pub origins: Vec<[usize; 4]>,
    /// Number of sites at which the source is one or noise: 1 for point and shell sources.
    #[serde(default)]
    pub source_sites: usize,
    /// Solves of all propagators: the largest residual, and total iterations and seconds. For a propagator that was
    /// [read](spectrum.md#kept-propagators), the residual is computed from the propagator, and the other values are those of the original
    /// solve. Values are `null` if they are unknown because an earlier version kept the propagator.
    #[serde(flatten)]
    pub together: SolveNote,
    /// Number of propagators that were read.
    #[serde(default)]
    pub propagators_read: usize,
    /// Solve of each propagator; only with several source positions or quarks, or with solves for three-point functions or tastes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solves: Option<Vec<PropagatorSolve>>,
    /// Correlators of the configuration.
    pub correlators: Vec<CorrelatorValues>,
}

impl Record for CorrelatorLine {
    const SCHEMA: &'static str = "ferrite.correlators/1";
}

/// Keys on which correlators depend besides their configuration: the `input` of a [`CorrelatorLine`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct CorrelatorInput {
    /// Source without its position.
    #[serde(flatten)]
    pub source: SourceInput,
    /// Source position; only for a single source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<[usize; 4]>,
    /// Source positions; only for several sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<Vec<[usize; 4]>>,
    /// Number of source times at each source position; only if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<usize>,
    /// Keys on which the solution depends, as typed; only for a single quark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solve: Option<BTreeMap<String, String>>,
    /// Quarks by name; only for several quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarks: Option<BTreeMap<String, QuarkOfCorrelators>>,
    /// Names of the mesons; only for several quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesons: Option<Vec<String>>,
    /// Gaussian smearing of quarks at the sink; `None` without smearing.
    pub sink: Option<ShellInput>,
    /// Number of momenta.
    pub momenta: usize,
    /// Three-point functions; only if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub three_point: Option<ThreePointInput>,
    /// Whether nucleons are computed.
    pub nucleon: bool,
    /// Whether the correlator of the axial current with the pion at the source is computed; absent if it is not, as in folders of earlier
    /// versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pcac: bool,
    /// Names of mesons of staggered quarks by spin and taste; absent without such mesons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tastes: Vec<String>,
}

/// Keys on which a propagator depends besides its configuration: the `input` of a [`PropagatorRecord`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PropagatorInput {
    /// Type, seed and smearing of the source.
    #[serde(flatten)]
    pub source: SourceInput,
    /// Source position.
    pub origin: [usize; 4],
    /// Keys on which the solution depends, as typed.
    pub solve: BTreeMap<String, String>,
}

/// Type, seed and smearing of a source, without its position.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceInput {
    /// Type of the source: `point`, `shell`, `wall` or `noise`.
    pub source: String,
    /// Seed of the noise; `None` for other sources.
    pub seed: Option<u64>,
    /// Gaussian smearing of a shell source; `None` for other sources.
    pub shell: Option<ShellInput>,
}

/// Gaussian smearing of quarks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShellInput {
    /// Width of the Gaussian in units of a.
    pub width: f64,
    /// Number of smearing steps.
    pub steps: usize,
    /// Weight of a link relative to its staples in APE smearing.
    pub ape_weight: f64,
    /// Number of steps of APE smearing.
    pub ape_steps: usize,
    /// Momentum of the quarks for which the smearing is optimal, in units of 2π/L; only with momentum smearing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<[f64; 3]>,
}

/// Settings of one quark in a spectrum of several quarks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuarkOfCorrelators {
    /// Keys on which the solution of the quark depends, as typed.
    #[serde(flatten)]
    pub solve: BTreeMap<String, String>,
    /// Momentum of the quark's own smearing, in units of 2π/L; only if the quark has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<[f64; 3]>,
}

/// Three-point functions in an input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreePointInput {
    /// Hadron: `nucleon`; absent for mesons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hadron: Option<String>,
    /// Projectors of the nucleon; only for the nucleon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projectors: Option<Vec<String>>,
    /// Matrix Γ at the sink; only for mesons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Separations in time of source and sink.
    pub separations: Vec<usize>,
    /// Momentum at the sink, in units of 2π/L.
    pub momentum: [i32; 3],
    /// Whether the conserved charge is one of the currents.
    pub charge: bool,
}

/// Residual, iterations and time of the solve of a propagator. Values that an earlier version did not record are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SolveNote {
    /// Largest ‖b − M x‖ / ‖b‖ over all components, computed in double precision.
    pub true_residual: Option<f64>,
    /// Iterations of the slowest component.
    pub iterations: Option<usize>,
    /// Sizes of the batches in which the components were solved.
    pub batches: Option<Vec<usize>>,
    /// Seconds of the solve.
    pub seconds: Option<f64>,
}

/// Residual, iterations and time of the solve of one of several propagators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PropagatorSolve {
    /// Residual, iterations, seconds and batches of the solve.
    #[serde(flatten)]
    pub note: SolveNote,
    /// Whether the propagator was read from a file.
    pub read: bool,
    /// Name of the quark; empty for a single quark.
    pub quark: String,
    /// Source position.
    pub origin: [usize; 4],
    /// Separation in time of source and sink; only for a solve through the sink of a three-point function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separation: Option<usize>,
    /// Projector of the nucleon at the sink; only for three-point functions of the nucleon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projector: Option<String>,
    /// Flavour of the current in the nucleon, `u` or `d`; only for three-point functions of the nucleon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavour: Option<String>,
    /// Directions in which source and sink are shifted, such as `xz`; only with `tastes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<String>,
}

/// Values of a correlator on a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrelatorValues {
    /// Name of the correlator. With several quarks it begins with their names: `light-strange.g5`, `light.nucleon.positive`. Three-point
    /// functions: `g5:4:gt`, `nucleon.unpolarised:4:u:gt`. With `pcac`: `gxgygz-g5`, Γ at sink and source. With `tastes`: `pion-i5`, or
    /// spin and taste, as `gx-gxgy`.
    pub name: String,
    /// Momentum in units of 2π/L.
    pub momentum: [i32; 3],
    /// `[re, im]` of the correlator for each time from the source.
    pub values: Vec<[f64; 2]>,
}

/// Axes of the array of correlators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CorrelatorAxes {
    /// Names of the axes of the array: `configuration`, `correlator` and `time`.
    pub axes: Vec<String>,
    /// Number of configurations in a bin.
    pub bin: usize,
    /// Configurations along the axis `configuration`.
    pub configurations: Vec<String>,
    /// Correlators along the axis `correlator`.
    pub correlators: Vec<CorrelatorName>,
}

impl Record for CorrelatorAxes {
    const SCHEMA: &'static str = "ferrite.correlator-axes/1";
}

/// Name and momentum of a correlator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrelatorName {
    /// Name of the correlator.
    pub name: String,
    /// Momentum in units of 2π/L.
    pub momentum: [i32; 3],
}

/// Record beside the file of a kept propagator: its configuration, checksum, solve and input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PropagatorRecord {
    /// Absolute path of the configuration's file.
    pub configuration: String,
    /// Length, checksum and time of change of the configuration's file, as in a line of correlators.
    pub content: Option<ContentRecord>,
    /// [Checksum](formats.md#folder-of-ferrite-spectrum) of the fields; `None` in files of earlier versions.
    pub checksum: Option<String>,
    /// Solve for the propagator.
    pub solve: SolveNote,
    /// Keys of the input on which the propagator depends.
    pub input: Value,
}

impl Record for PropagatorRecord {
    const SCHEMA: &'static str = "ferrite.propagator/1";
}

/// Result of `ferrite spectrum`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpectrumRecord {
    /// Folder of the results.
    pub output: PathBuf,
    /// Files of the configurations, as typed.
    pub configurations: Vec<String>,
    /// Files that were written.
    pub files: Vec<PathBuf>,
    /// Effective masses of hadrons.
    pub effective_masses: Vec<HadronMasses>,
    /// Correlators of the hadrons in `effective_masses`; for the ρ, the mean over x, y and z.
    pub correlators: Vec<HadronValues>,
    /// Fits of hadrons, as `hadrons` of [`ferrite.fit/1`](#ferritefit1), without `correlator`.
    pub fits: Vec<HadronFitRecord>,
    /// PCAC quark masses, as in [`ferrite.fit/1`](#ferritefit1), empty unless the input has `pcac = true`.
    pub pcac: Vec<PcacFitRecord>,
    /// Bins of the errors.
    pub jackknife: JackknifeRecord,
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the first process's device.
    pub device: String,
}

impl Record for SpectrumRecord {
    const SCHEMA: &'static str = "ferrite.spectrum/1";
}

/// Effective masses of a hadron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HadronMasses {
    /// Name of the hadron; with several quarks `light-strange pion`.
    pub hadron: String,
    /// Estimates of the effective mass from each time to the next; `None` where there is none.
    pub masses: Vec<Option<EstimateRecord>>,
}

/// Correlator of a hadron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HadronValues {
    /// Name of the hadron.
    pub hadron: String,
    /// Estimates of C(t).
    pub values: Vec<Option<EstimateRecord>>,
}

/// Bins of the jackknife.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JackknifeRecord {
    /// Number of configurations in a bin.
    pub bin: usize,
    /// Number of bins. Errors need at least two bins.
    pub bins: usize,
    /// Number of configurations that are left out because they fill no bin.
    pub left_out: usize,
}

/// Report of a folder of `ferrite spectrum`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpectrumReportRecord {
    /// Folder of the correlators.
    pub folder: PathBuf,
    /// File of the page.
    pub output: PathBuf,
    /// Number of configurations.
    pub configurations: usize,
    /// Number of configurations in a bin, taken from the last run that ended; the errors use these bins.
    pub bin: usize,
    /// Whether the last line is incomplete, in which case it is ignored.
    pub half_line: bool,
    /// Hadrons of the report.
    pub hadrons: Vec<ReportedHadron>,
    /// PCAC quark masses, as in [`ferrite.fit/1`](#ferritefit1).
    pub pcac: Vec<PcacFitRecord>,
    /// Correlators with a state that [alternates](spectrum.md#effective-masses) in sign.
    pub alternating: Vec<AlternatingRecord>,
    /// Sentences on points that need attention.
    pub notes: Vec<String>,
}

impl Record for SpectrumReportRecord {
    const SCHEMA: &'static str = "ferrite.report/1";
}

/// A hadron in a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportedHadron {
    /// Name of the hadron.
    pub hadron: String,
    /// Correlator at each time from the source.
    pub correlator: Vec<Option<MeanOfTime>>,
    /// Effective masses from each time to the next.
    pub masses: Vec<Option<MeanOfTime>>,
    /// Fit of the correlator, as in [`ferrite.fit/1`](#ferritefit1).
    pub fit: HadronFitRecord,
}

/// A mean with its error at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanOfTime {
    /// Mean over configurations.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// Error of the mean.
    #[serde(deserialize_with = "real::read")]
    pub error: f64,
}

/// Correlator in which a state alternates in sign, with its effective masses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlternatingRecord {
    /// Name of the correlator.
    pub hadron: String,
    /// Estimates of C(t).
    pub correlator: Vec<Option<EstimateRecord>>,
    /// Effective masses of the state that does not alternate.
    pub masses: Vec<Option<EstimateRecord>>,
    /// Effective masses of the alternating state.
    pub partner: Vec<Option<EstimateRecord>>,
}
