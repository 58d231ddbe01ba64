//! Fits of `ferrite fit`, and estimates with errors.
use crate::read::present;
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A value with its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateRecord {
    /// Value of the quantity.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// One standard deviation; `null` if it is unknown.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub error: f64,
    /// Number of jackknife or bootstrap means without a value; only if there are any. `error` is then `null`; the bootstrap tolerates up to
    /// 5 % of such means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<usize>,
    /// Number of all jackknife or bootstrap means; only together with `missing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub means: Option<usize>,
}

/// Result of `ferrite fit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitRecord {
    /// Folder or file that was analysed, or the first of several.
    pub path: PathBuf,
    /// All folders and files.
    pub paths: Vec<PathBuf>,
    /// Numbers of configurations and bins.
    #[serde(flatten)]
    pub samples: SampleCounts,
    /// Fits of hadrons; only for folders of `spectrum`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hadrons: Option<Vec<HadronFitRecord>>,
    /// PCAC quark masses, from the axial current; only for folders of `spectrum`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcac: Option<Vec<PcacFitRecord>>,
    /// Means of traces; only for files of `trace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<Vec<TraceMeans>>,
    /// Scales of the gradient flow; only for files of `measure`, `None` without a flow.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub flow: Option<Option<FlowFit>>,
    /// Static potential; only for files of `measure`, `None` without Wilson loops.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub potential: Option<Option<PotentialFit>>,
}

impl Record for FitRecord {
    const SCHEMA: &'static str = "ferrite.fit/1";
}

/// Numbers of configurations and bins in an analysis, and the method of error estimation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleCounts {
    /// Number of configurations.
    pub configurations: usize,
    /// Number of configurations in a bin.
    #[serde(default)]
    pub bin: usize,
    /// Number of bins.
    pub bins: usize,
    /// Number of configurations that are left out because they fill no bin at the end of a chain.
    #[serde(default)]
    pub left_out: usize,
    /// Method of error estimation.
    #[serde(default)]
    pub resampling: ResamplingRecord,
    /// [Chains](analysis.md#several-files-and-chains) that contain the configurations, in order.
    #[serde(default)]
    pub streams: Vec<StreamRecord>,
}

/// Method of error estimation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResamplingRecord {
    /// Method of resampling: `jackknife` or `bootstrap`.
    pub kind: String,
    /// Number of draws; only for `bootstrap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<usize>,
    /// Seed of the draws; only for `bootstrap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// Markov chain whose configurations were analysed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// Name of the chain's files, with `*` in place of the number.
    pub name: String,
    /// Number of configurations.
    pub configurations: usize,
}

/// Window, quality and parameters of a fit. `W` is the type of the ends of the window: a time, T of Wilson loops, or a distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionFit<W> {
    /// First and last time, T of Wilson loops, or distance of the fit window.
    pub window: [W; 2],
    /// χ² of the fit.
    #[serde(deserialize_with = "real::read")]
    pub chi2: f64,
    /// Degrees of freedom: number of data minus number of parameters.
    pub dof: usize,
    /// Expected χ².
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub expected_chi2: f64,
    /// Probability of a larger χ².
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub p_value: f64,
    /// Covariance matrix of the fit: `full`, `shrunk` or `diagonal`.
    #[serde(default)]
    pub covariance: String,
    /// Shrinkage parameter λ of the covariance matrix.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub shrinkage: f64,
    /// Parameters of the function: A_0, E_0, A_1, ln(E_1−E_0), or V₀, α, σ; absent for a single distance.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<f64>>,
    /// Remarks in sentences: functions without a minimum, unknown errors, windows left out of means, and a χ² that is too large.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Mean of each quantity over fit windows; `None` if `--window` was given, absent for a single distance.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub average: Option<Option<BTreeMap<String, WindowAverage>>>,
    /// The 20 most probable windows; absent for a single distance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<WindowFit<W>>>,
    /// Number of windows that were tried.
    #[serde(default)]
    pub windows_tried: usize,
}

/// Mean of a quantity over fit windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowAverage {
    /// Mean over windows.
    #[serde(deserialize_with = "real::read")]
    pub value: f64,
    /// Statistical error of the mean.
    #[serde(deserialize_with = "real::read")]
    pub statistical: f64,
    /// Systematic error of the mean from the choice of the window.
    #[serde(deserialize_with = "real::read")]
    pub systematic: f64,
    /// Number of windows left out because the quantity or its error is missing in them; only if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// Total probability of the windows that were left out; only together with `left_out`.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub left_out_probability: Option<f64>,
}

/// A fit in one of the windows that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowFit<W> {
    /// Number of states; `None` if only one function was tried.
    pub function: Option<usize>,
    /// First and last time, T of Wilson loops, or distance.
    pub window: [W; 2],
    /// χ² of the fit.
    #[serde(deserialize_with = "real::read")]
    pub chi2: f64,
    /// Degrees of freedom: number of data minus number of parameters.
    pub dof: usize,
    /// Probability of a larger χ².
    #[serde(deserialize_with = "real::read")]
    pub p_value: f64,
    /// Probability of the window, its weight in means over windows.
    #[serde(deserialize_with = "real::read")]
    pub probability: f64,
    /// Parameters of the function.
    #[serde(deserialize_with = "real::read")]
    pub parameters: Vec<f64>,
}

/// Fit of the correlator of a hadron, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HadronFitRecord {
    /// Name of the hadron or of the correlator.
    pub hadron: String,
    /// Form of the function: `cosh`, `sinh` or `exp`.
    #[serde(default)]
    pub form: String,
    /// Momentum in units of 2π/L; only from `ferrite fit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<[i32; 3]>,
    /// All momenta over which the correlator is averaged, in units of 2π/L; only from `ferrite fit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momenta: Option<Vec<[i32; 3]>>,
    /// Estimate of the correlator C(t) at each time t.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlator: Option<Vec<Option<EstimateRecord>>>,
    /// Reason why there is no fit; only without a fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Fit of the correlator.
    #[serde(flatten)]
    pub fit: Option<CorrelatorFitRecord>,
}

/// Fit of the states of a correlator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorrelatorFitRecord {
    /// Number of states.
    pub states: usize,
    /// Extent T of the lattice in time.
    pub extent: usize,
    /// Estimate of E_0.
    pub energy: Option<EstimateRecord>,
    /// Estimate of A_0.
    pub amplitude: Option<EstimateRecord>,
    /// Estimate of E_1; only for fits of two states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excited_energy: Option<Option<EstimateRecord>>,
    /// Estimate of A_1; only for fits of two states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excited_amplitude: Option<Option<EstimateRecord>>,
    /// Window and quality of the fit.
    #[serde(flatten)]
    pub fit: FunctionFit<usize>,
}

/// Fit of a PCAC quark mass, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PcacFitRecord {
    /// `pcac`, or with several quarks `light-strange pcac`.
    pub hadron: String,
    /// Improvement coefficient c_A of the axial current.
    #[serde(default)]
    pub c_a: f64,
    /// Estimates of the quark mass m(t) at t = 0 to T/2; the first is `None`.
    #[serde(default)]
    pub masses: Vec<Option<EstimateRecord>>,
    /// Reason why there is no fit; only without a fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Fit of the plateau.
    #[serde(flatten)]
    pub fit: Option<PlateauFitRecord>,
}

/// A fit of a plateau.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlateauFitRecord {
    /// Estimate of the quark mass m.
    pub mass: Option<EstimateRecord>,
    /// Window and quality of the fit.
    #[serde(flatten)]
    pub fit: FunctionFit<usize>,
}

/// Means of a trace over configurations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceMeans {
    /// Bare mass.
    pub mass: f64,
    /// Matrix Γ of tr Γ M⁻¹.
    pub gamma: String,
    /// Estimate of the real part of tr Γ M⁻¹ / V.
    pub real: Option<EstimateRecord>,
    /// Estimate of the imaginary part of tr Γ M⁻¹ / V.
    pub imaginary: Option<EstimateRecord>,
    /// Estimate of the disconnected susceptibility of the real part; `None` with one noise vector or one bin.
    pub disconnected: Option<EstimateRecord>,
}

/// Scales of the gradient flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowFit {
    /// Estimate of t₀ in units of a².
    pub t0: Option<EstimateRecord>,
    /// Estimate of √(8 t₀) in units of a.
    pub sqrt_8_t0: Option<EstimateRecord>,
    /// Estimate of w₀ in units of a.
    pub w0: Option<EstimateRecord>,
    /// Estimate of ⟨Q²⟩ at the last flow time.
    pub charge_squared: Option<EstimateRecord>,
    /// Integrated autocorrelation time of t² E in configurations.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub autocorrelation: f64,
    /// Mean of t² E at each flow time.
    #[serde(default)]
    pub points: Vec<FlowMean>,
}

/// Mean of t² E at a flow time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowMean {
    /// Flow time t in units of a².
    pub t: f64,
    /// Estimate of t² E.
    pub scaled_energy: Option<EstimateRecord>,
}

/// Static potential at all distances, and its fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PotentialFit {
    /// Static potential at each distance.
    pub at: Vec<PotentialRow>,
    /// Fit of V(R) over distances.
    pub cornell: CornellRecord,
    /// Distances that the fit of V(R) leaves out.
    #[serde(default)]
    pub left_out: Vec<LeftOutDistance>,
}

/// Static potential at one separation, and the fit of its Wilson loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PotentialRow {
    /// Separation R, its three components in units of a.
    pub r: [usize; 3],
    /// Length of R in units of a.
    pub distance: f64,
    /// Estimate of V(R).
    pub potential: Option<EstimateRecord>,
    /// Estimate of A_0; only with a fit.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub amplitude: Option<Option<EstimateRecord>>,
    /// Estimate of E_1; only with a fit of two states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excited_energy: Option<Option<EstimateRecord>>,
    /// Estimate of A_1; only with a fit of two states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub excited_amplitude: Option<Option<EstimateRecord>>,
    /// Estimates of ln W(T)/W(T+1) for T = 1, 2, …
    #[serde(default)]
    pub effective: Vec<Option<EstimateRecord>>,
    /// Reason why there is no fit; only without a fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Fit in T of the Wilson loops.
    #[serde(flatten)]
    pub fit: Option<FunctionFit<usize>>,
}

/// Fit of V(R) over distances, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CornellRecord {
    /// Reason why there is no fit; only without a fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Fit of the Cornell form.
    #[serde(flatten)]
    pub fit: Option<CornellFitRecord>,
}

/// Parameters of V(R) = V₀ − α/R + σ R.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CornellFitRecord {
    /// Estimate of the Sommer scale r₀ in units of a.
    pub r0: Option<EstimateRecord>,
    /// Estimate of the scale r₁ in units of a.
    pub r1: Option<EstimateRecord>,
    /// Estimate of the string tension σ in units of a⁻².
    pub string_tension: Option<EstimateRecord>,
    /// Estimate of α.
    pub coulomb: Option<EstimateRecord>,
    /// Estimate of V₀ in units of a⁻¹.
    pub constant: Option<EstimateRecord>,
    /// Window and quality of the fit.
    #[serde(flatten)]
    pub fit: FunctionFit<Option<f64>>,
}

/// A distance that the fit of V(R) leaves out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOutDistance {
    /// Separation R, its three components in units of a.
    pub r: [usize; 3],
    /// Length of R in units of a.
    pub distance: f64,
    /// Reason why the distance is left out.
    pub why: String,
}

/// A fit of a correlator with the numbers of configurations and bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountedFit {
    /// Fit of the correlator.
    #[serde(flatten)]
    pub fit: HadronFitRecord,
    /// Number of configurations.
    pub configurations: usize,
    /// Number of bins.
    pub bins: usize,
}
