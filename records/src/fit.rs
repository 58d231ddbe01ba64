//! Fits of `ferrite fit`, and estimates with errors.
use crate::read::present;
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A value with its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateRecord {
    /// The value.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// One standard deviation; `None` where it is unknown.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub error: f64,
    /// Number of means of the jackknife or the bootstrap without a value, where there are any; `error` is then `None`, except that the
    /// bootstrap tolerates 5 % of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<usize>,
    /// Number of all means, beside `missing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub means: Option<usize>,
}

/// The result of `ferrite fit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitRecord {
    /// The folder, or the file: the first one.
    pub path: PathBuf,
    /// All folders and files.
    pub paths: Vec<PathBuf>,
    /// Configurations and bins.
    #[serde(flatten)]
    pub samples: SampleCounts,
    /// Of a folder of `spectrum`: fits of hadrons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hadrons: Option<Vec<HadronFitRecord>>,
    /// Of a folder of `spectrum`: quark masses of the axial current.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcac: Option<Vec<PcacFitRecord>>,
    /// Of a file of `trace`: means of traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<Vec<TraceMeans>>,
    /// Of a file of `measure`: scales of the gradient flow; `None` without a flow.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub flow: Option<Option<FlowFit>>,
    /// Of a file of `measure`: the static potential; `None` without loops.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub potential: Option<Option<PotentialFit>>,
}

impl Record for FitRecord {
    const SCHEMA: &'static str = "ferrite.fit/1";
}

/// Configurations and bins of an analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleCounts {
    /// Number of configurations.
    pub configurations: usize,
    /// Number of configurations that are a bin.
    #[serde(default)]
    pub bin: usize,
    /// Number of bins.
    pub bins: usize,
    /// Number of configurations at the ends of streams that fill no bin.
    #[serde(default)]
    pub left_out: usize,
    /// How errors are made.
    #[serde(default)]
    pub resampling: ResamplingRecord,
    /// [Chains](analysis.md#several-files-and-chains) of which the configurations are, in order.
    #[serde(default)]
    pub streams: Vec<StreamRecord>,
}

/// How errors are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResamplingRecord {
    /// `jackknife` or `bootstrap`.
    pub kind: String,
    /// Draws of the bootstrap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<usize>,
    /// Seed of the bootstrap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// The file, with `*` in the place of the number.
    pub name: String,
    /// Number of configurations.
    pub configurations: usize,
}

/// A fit of a function. `W` is an end of a window: a time, T of loops, or a distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionFit<W> {
    /// First and last time, T of loops, or distance.
    pub window: [W; 2],
    /// χ².
    #[serde(deserialize_with = "real::read")]
    pub chi2: f64,
    /// Data less parameters.
    pub dof: usize,
    /// The χ² to be expected.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub expected_chi2: f64,
    /// The probability of a larger χ².
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub p_value: f64,
    /// `full`, `shrunk` or `diagonal`.
    #[serde(default)]
    pub covariance: String,
    /// λ of the covariance.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub shrinkage: f64,
    /// Parameters of the function: A_0, E_0, A_1, ln(E_1−E_0); V₀, α, σ. Not at a single distance.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<f64>>,
    /// Sentences: functions without a minimum, unknown errors, windows left out of means, a χ² that is too large.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Mean of each quantity over windows; `None` where `--window` was given. Not at a single distance.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub average: Option<Option<BTreeMap<String, WindowAverage>>>,
    /// The 20 most probable windows. Not at a single distance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<WindowFit<W>>>,
    /// Number of windows that were tried.
    #[serde(default)]
    pub windows_tried: usize,
}

/// Mean of a quantity over windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowAverage {
    /// The mean.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// Its statistical error.
    #[serde(deserialize_with = "real::read")]
    pub statistical: f64,
    /// Its error from the choice of a window.
    #[serde(deserialize_with = "real::read")]
    pub systematic: f64,
    /// Number of windows that are left out because the quantity or its error is missing there, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// Their probability.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub left_out_probability: Option<f64>,
}

/// A fit in a window that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowFit<W> {
    /// Number of states; `None` where one function was tried.
    pub function: Option<usize>,
    /// First and last time, T of loops, or distance.
    pub window: [W; 2],
    /// χ².
    #[serde(deserialize_with = "real::read")]
    pub chi2: f64,
    /// Data less parameters.
    pub dof: usize,
    /// The probability of a larger χ².
    #[serde(deserialize_with = "real::read")]
    pub p_value: f64,
    /// The probability of the window.
    #[serde(deserialize_with = "real::read")]
    pub probability: f64,
    /// Parameters of the function.
    #[serde(deserialize_with = "real::read")]
    pub parameters: Vec<f64>,
}

/// A fit of a correlator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HadronFitRecord {
    /// Name of the hadron or of the correlator.
    pub hadron: String,
    /// `cosh`, `sinh` or `exp`.
    #[serde(default)]
    pub form: String,
    /// Of `ferrite fit` only: the momentum in units of 2π/L.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<[i32; 3]>,
    /// Of `ferrite fit` only: all momenta over which the correlator is averaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momenta: Option<Vec<[i32; 3]>>,
    /// C(t).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlator: Option<Vec<Option<EstimateRecord>>>,
    /// Why there is no fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The fit.
    #[serde(flatten)]
    pub fit: Option<CorrelatorFitRecord>,
}

/// States of a correlator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrelatorFitRecord {
    /// Number of states.
    pub states: usize,
    /// T.
    pub extent: usize,
    /// Estimate of E_0.
    pub energy: Option<EstimateRecord>,
    /// Estimate of A_0.
    pub amplitude: Option<EstimateRecord>,
    /// Estimate of E_1 of two states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excited_energy: Option<Option<EstimateRecord>>,
    /// Estimate of A_1 of two states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excited_amplitude: Option<Option<EstimateRecord>>,
    /// Window and quality.
    #[serde(flatten)]
    pub fit: FunctionFit<usize>,
}

/// A fit of a quark mass of the axial current.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PcacFitRecord {
    /// `pcac`, of several quarks `light-strange pcac`.
    pub hadron: String,
    /// c_A of the improved axial current.
    #[serde(default)]
    pub c_a: f64,
    /// Estimates of m(t) at t = 0 to T/2, the first `None`.
    #[serde(default)]
    pub masses: Vec<Option<EstimateRecord>>,
    /// Why there is no fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The fit.
    #[serde(flatten)]
    pub fit: Option<PlateauFitRecord>,
}

/// A plateau.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlateauFitRecord {
    /// Estimate of m.
    pub mass: Option<EstimateRecord>,
    /// Window and quality.
    #[serde(flatten)]
    pub fit: FunctionFit<usize>,
}

/// Means of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceMeans {
    /// Mass.
    pub mass: f64,
    /// Γ.
    pub gamma: String,
    /// Estimate of the real part of tr Γ M⁻¹ / V.
    pub real: Option<EstimateRecord>,
    /// Estimate of the imaginary part.
    pub imaginary: Option<EstimateRecord>,
    /// Estimate of the disconnected susceptibility of the real part; `None` with one noise vector or one bin.
    pub disconnected: Option<EstimateRecord>,
}

/// Scales of the gradient flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowFit {
    /// Estimate of t₀ (a²).
    pub t0: Option<EstimateRecord>,
    /// Estimate of √(8 t₀) (a).
    pub sqrt_8_t0: Option<EstimateRecord>,
    /// Estimate of w₀ (a).
    pub w0: Option<EstimateRecord>,
    /// Estimate of ⟨Q²⟩ at the last time.
    pub charge_squared: Option<EstimateRecord>,
    /// Autocorrelation time of t² E in configurations.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub autocorrelation: f64,
    /// Points of the flow.
    #[serde(default)]
    pub points: Vec<FlowMean>,
}

/// t² E at a time of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowMean {
    /// Time.
    pub t: f64,
    /// Estimate of t² E.
    pub scaled_energy: Option<EstimateRecord>,
}

/// The static potential.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PotentialFit {
    /// The potential at each distance.
    pub at: Vec<PotentialRow>,
    /// The fit of V(R).
    pub cornell: CornellRecord,
    /// Distances that this fit leaves out.
    #[serde(default)]
    pub left_out: Vec<LeftOutDistance>,
}

/// The potential at a distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PotentialRow {
    /// R.
    pub r: [usize; 3],
    /// Its length.
    pub distance: f64,
    /// Estimate of V(R).
    pub potential: Option<EstimateRecord>,
    /// Estimate of A_0, where there is a fit.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub amplitude: Option<Option<EstimateRecord>>,
    /// Estimate of E_1, where there is a fit of two states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excited_energy: Option<Option<EstimateRecord>>,
    /// Estimate of A_1, where there is a fit of two states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excited_amplitude: Option<Option<EstimateRecord>>,
    /// Estimates of ln W(T)/W(T+1) for T = 1, 2, …
    #[serde(default)]
    pub effective: Vec<Option<EstimateRecord>>,
    /// Why there is no fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The fit.
    #[serde(flatten)]
    pub fit: Option<FunctionFit<usize>>,
}

/// The fit of V(R).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CornellRecord {
    /// Why there is no fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The fit.
    #[serde(flatten)]
    pub fit: Option<CornellFitRecord>,
}

/// Parameters of V(R).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CornellFitRecord {
    /// Estimate of r₀ (a).
    pub r0: Option<EstimateRecord>,
    /// Estimate of r₁ (a).
    pub r1: Option<EstimateRecord>,
    /// Estimate of σ (a⁻²).
    pub string_tension: Option<EstimateRecord>,
    /// Estimate of α.
    pub coulomb: Option<EstimateRecord>,
    /// Estimate of V₀ (a⁻¹).
    pub constant: Option<EstimateRecord>,
    /// Window and quality.
    #[serde(flatten)]
    pub fit: FunctionFit<Option<f64>>,
}

/// A distance that the fit of V(R) leaves out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOutDistance {
    /// R.
    pub r: [usize; 3],
    /// Its length.
    pub distance: f64,
    /// Why.
    pub why: String,
}

/// A fit of a correlator with numbers of configurations and bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountedFit {
    /// The fit.
    #[serde(flatten)]
    pub fit: HadronFitRecord,
    /// Number of configurations.
    pub configurations: usize,
    /// Number of bins.
    pub bins: usize,
}
