//! Correlators of `ferrite spectrum`, and its summary.
use crate::configuration::Content;
use crate::fit::{EstimateRecord, HadronFitRecord, PcacFitRecord};
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A line of `correlators.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrelatorLine {
    /// The file, as typed.
    pub configuration: PathBuf,
    /// The file from the root.
    pub file: String,
    /// What the file held: `bytes`, `crc32` of all bytes, and `modified_ns`, when it was last written, in nanoseconds since 1970 as text;
    /// `None` in lines of earlier versions.
    pub content: Option<Content>,
    /// The keys that decide what the correlators are: a folder takes one input only.
    #[serde(default)]
    pub input: Value,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Mean plaquette of its links; in lines of earlier versions `None` where all propagators were read.
    pub plaquette: Option<f64>,
    /// Of twisted mass only: what the antiquark of mesons has that the quark has not, `-mu`; mesons are
    /// [charged](spectrum.md#twisted-mass).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub antiquark: Option<String>,
    /// Origins of all sources, whose correlators are averaged.
    #[serde(default)]
    pub origins: Vec<[usize; 4]>,
    /// Number of sites at which the source is one or noise: 1 for points and shells.
    #[serde(default)]
    pub source_sites: usize,
    /// Solves of all propagators: the largest residual, and iterations and seconds added up. Of a propagator that was
    /// [read](spectrum.md#kept-propagators) the residual is computed from what was read, and the rest is that of the solve which made it;
    /// `None` where that is not known, as it was kept by an earlier version.
    #[serde(flatten)]
    pub together: SolveNote,
    /// Number of propagators that were read.
    #[serde(default)]
    pub propagators_read: usize,
    /// With several origins, quarks or further solves only: the solve for each propagator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solves: Option<Vec<PropagatorSolve>>,
    /// Correlators.
    pub correlators: Vec<CorrelatorValues>,
}

impl Record for CorrelatorLine {
    const SCHEMA: &'static str = "ferrite.correlators/1";
}

/// The `input` of a [`CorrelatorLine`]: keys on which correlators depend besides their configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct CorrelatorInput {
    /// The source.
    #[serde(flatten)]
    pub source: SourceInput,
    /// Origin of the only source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<[usize; 4]>,
    /// Origins of several sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<Vec<[usize; 4]>>,
    /// Number of times with sources at each origin, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<usize>,
    /// The only quark: keys on which its solution depends, as typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solve: Option<BTreeMap<String, String>>,
    /// Several quarks by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarks: Option<BTreeMap<String, QuarkOfCorrelators>>,
    /// Names of the mesons of several quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesons: Option<Vec<String>>,
    /// Smearing of quarks at the sink; `None` without it.
    pub sink: Option<ShellInput>,
    /// Number of momenta.
    pub momenta: usize,
    /// Three-point functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub three_point: Option<ThreePointInput>,
    /// Whether there are nucleons.
    pub nucleon: bool,
    /// Whether there is the axial current with the pion at the source; missing where there is not, as in folders of earlier versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pcac: bool,
    /// Names of mesons of staggered quarks by spin and taste.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tastes: Vec<String>,
}

/// The `input` of a [`PropagatorRecord`]: keys on which a propagator depends besides its configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PropagatorInput {
    /// The source.
    #[serde(flatten)]
    pub source: SourceInput,
    /// Origin of the source.
    pub origin: [usize; 4],
    /// Keys on which the solution depends, as typed.
    pub solve: BTreeMap<String, String>,
}

/// A source without its origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceInput {
    /// `point`, `shell`, `wall` or `noise`.
    pub source: String,
    /// Seed of noise; `None` of other sources.
    pub seed: Option<u64>,
    /// Smearing of a shell; `None` of other sources.
    pub shell: Option<ShellInput>,
}

/// Gaussian smearing of quarks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShellInput {
    /// Width.
    pub width: f64,
    /// Number of steps.
    pub steps: usize,
    /// Weight of a link against its staples in APE smearing.
    pub ape_weight: f64,
    /// Steps of APE smearing.
    pub ape_steps: usize,
    /// Momentum of the quarks for which smearing is best, in units of 2π/L, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<[f64; 3]>,
}

/// One of several quarks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuarkOfCorrelators {
    /// Keys on which its solution depends, as typed.
    #[serde(flatten)]
    pub solve: BTreeMap<String, String>,
    /// Momentum of its own shells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<[f64; 3]>,
}

/// Three-point functions of an input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreePointInput {
    /// `nucleon`; `None` of mesons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hadron: Option<String>,
    /// Projectors of the nucleon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projectors: Option<Vec<String>>,
    /// Matrix at the sink of mesons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Times between source and sink.
    pub separations: Vec<usize>,
    /// Momentum at the sink, in units of 2π/L.
    pub momentum: [i32; 3],
    /// Whether the conserved charge is one of the currents.
    pub charge: bool,
}

/// The solve for a propagator. What is not known, as earlier versions noted nothing, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SolveNote {
    /// Largest ‖b − M x‖ / ‖b‖ of all components, computed in double.
    pub true_residual: Option<f64>,
    /// Iterations of the slowest component.
    pub iterations: Option<usize>,
    /// Numbers of components that were solved together.
    pub batches: Option<Vec<usize>>,
    /// Seconds of the solve.
    pub seconds: Option<f64>,
}

/// The solve for one of several propagators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PropagatorSolve {
    /// Its own residual, iterations, seconds and batches.
    #[serde(flatten)]
    pub note: SolveNote,
    /// Whether the propagator was read.
    pub read: bool,
    /// Name of the quark, empty for the only one.
    pub quark: String,
    /// Origin of the source.
    pub origin: [usize; 4],
    /// Separation, where it goes through the sink of a three-point function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separation: Option<usize>,
    /// Projector of the nucleon at that sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projector: Option<String>,
    /// `u` or `d`, flavour of the current in that nucleon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavour: Option<String>,
    /// With `tastes`: directions in which source and sink are shifted, such as `xz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<String>,
}

/// A correlator of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrelatorValues {
    /// Name: of several quarks behind theirs, `light-strange.g5`, `light.nucleon.positive`; of three-point functions `g5:4:gt`,
    /// `nucleon.unpolarised:4:u:gt`; with `pcac` `gxgygz-g5`, Γ at sink and source; with `tastes` `pion-i5`, or spin and taste `gx-gxgy`.
    pub name: String,
    /// Momentum in units of 2π/L.
    pub momentum: [i32; 3],
    /// `[re, im]` by time from the source.
    pub values: Vec<[f64; 2]>,
}

/// Axes of the array of correlators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CorrelatorAxes {
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Configurations of a bin.
    pub bin: usize,
    /// Names along the first axis.
    pub configurations: Vec<String>,
    /// Names along the second axis.
    pub correlators: Vec<CorrelatorName>,
}

impl Record for CorrelatorAxes {
    const SCHEMA: &'static str = "ferrite.correlator-axes/1";
}

/// Name and momentum of a correlator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrelatorName {
    /// Name.
    pub name: String,
    /// Momentum in units of 2π/L.
    pub momentum: [i32; 3],
}

/// The record beside a kept propagator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PropagatorRecord {
    /// File of the configuration from the root.
    pub configuration: String,
    /// What the file held, as in a line of correlators.
    pub content: Option<Content>,
    /// [Checksum](formats.md#folder-of-ferrite-spectrum) of the fields; `None` in files of earlier versions.
    pub checksum: Option<String>,
    /// The solve.
    pub solve: SolveNote,
    /// The keys that decide what the propagator is.
    pub input: Value,
}

impl Record for PropagatorRecord {
    const SCHEMA: &'static str = "ferrite.propagator/1";
}

/// The result of `ferrite spectrum`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpectrumRecord {
    /// The folder.
    pub output: PathBuf,
    /// Configurations, as typed.
    pub configurations: Vec<String>,
    /// Files that were written.
    pub files: Vec<PathBuf>,
    /// Effective masses of hadrons.
    pub effective_masses: Vec<HadronMasses>,
    /// Correlators of the same hadrons, the ρ's the mean over x, y and z.
    pub correlators: Vec<HadronValues>,
    /// Fits of hadrons, as `hadrons` of [`ferrite.fit/1`](#ferritefit1), without `correlator`.
    pub fits: Vec<HadronFitRecord>,
    /// Quark masses of the axial current, as in [`ferrite.fit/1`](#ferritefit1), empty unless the input has `pcac = true`.
    pub pcac: Vec<PcacFitRecord>,
    /// Bins that errors are over.
    pub jackknife: JackknifeRecord,
    /// `cpu` or `cuda`.
    pub backend: String,
    /// The device of the first process, for people.
    pub device: String,
}

impl Record for SpectrumRecord {
    const SCHEMA: &'static str = "ferrite.spectrum/1";
}

/// Effective masses of a hadron.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HadronMasses {
    /// Name of the hadron, of several quarks `light-strange pion`.
    pub hadron: String,
    /// Estimates from each time to the next, or `None` where there is none.
    pub masses: Vec<Option<EstimateRecord>>,
}

/// The correlator of a hadron.
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
    /// Configurations of a bin.
    pub bin: usize,
    /// Number of bins. Of one bin there are no errors.
    pub bins: usize,
    /// Configurations at the end that fill none.
    pub left_out: usize,
}

/// The report of a folder of `ferrite spectrum`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpectrumReportRecord {
    /// The folder.
    pub folder: PathBuf,
    /// The page.
    pub output: PathBuf,
    /// Number of configurations.
    pub configurations: usize,
    /// Configurations of a bin in the last run that ended, which errors are over.
    pub bin: usize,
    /// Whether the last line is half written, which is left out.
    pub half_line: bool,
    /// Hadrons.
    pub hadrons: Vec<ReportedHadron>,
    /// Quark masses of the axial current, as in [`ferrite.fit/1`](#ferritefit1).
    pub pcac: Vec<PcacFitRecord>,
    /// Correlators with a state that [alternates](spectrum.md#effective-masses).
    pub alternating: Vec<AlternatingRecord>,
    /// Sentences on what deserves attention.
    pub notes: Vec<String>,
}

impl Record for SpectrumReportRecord {
    const SCHEMA: &'static str = "ferrite.report/1";
}

/// A hadron of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportedHadron {
    /// Name of the hadron.
    pub hadron: String,
    /// Correlator at each time from the source.
    pub correlator: Vec<Option<MeanOfTime>>,
    /// Effective masses from each time to the next.
    pub masses: Vec<Option<MeanOfTime>>,
    /// The fit, as in [`ferrite.fit/1`](#ferritefit1).
    pub fit: HadronFitRecord,
}

/// A value with its error at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanOfTime {
    /// The value.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// The error.
    #[serde(deserialize_with = "real::read")]
    pub error: f64,
}

/// A correlator in which a state alternates in sign.
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
