//! Records of ensembles that `ferrite rhmc` generates: trajectories, settings and summary of a run, and forces.
use crate::kernels::KernelTimesRecord;
use crate::observables::{MeanAndError, PlaquetteMeans};
use crate::operator::Stout;
use crate::place::{LayoutRecord, PlaceRecord};
use crate::read::present;
use crate::{Record, real};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Results of one trajectory: a line of `trajectories.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrajectoryLine {
    /// Number of the trajectory, counted from 1.
    pub trajectory: u64,
    /// Whether the trajectory ended with a Metropolis step; the first `thermalise` trajectories are accepted without one.
    pub metropolis: bool,
    /// Whether the end of the trajectory was accepted.
    pub accepted: bool,
    /// ΔH = H(end) − H(start), computed as the sum of the differences of the parts of H; `null` if it is not finite.
    #[serde(deserialize_with = "real::read")]
    pub delta_h: f64,
    /// exp(−ΔH); `null` if it is not finite.
    #[serde(deserialize_with = "real::read")]
    pub exp_minus_delta_h: f64,
    /// Parts of the Hamiltonian H at the start.
    #[serde(default)]
    pub start: EnergyParts,
    /// Parts of the Hamiltonian H at the end.
    #[serde(default)]
    pub end: EnergyParts,
    /// Parts of the fermion action; empty without quarks. Staggered quarks have one part for each `[[fermion]]` of the input; Wilson-like
    /// quarks have one for each pseudofermion of two flavours, one for a rational function, and one for the determinants of a clover term.
    #[serde(default)]
    pub quarks: Vec<QuarkLine>,
    /// Seconds of the trajectory, including its reversal if there is one.
    #[serde(deserialize_with = "real::read")]
    pub seconds: f64,
    /// Seconds of the trajectory, of the spectral bounds and of the observables, without the time for files.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub seconds_with_observables: Option<f64>,
    /// Seconds after the observables: the links are downloaded, and their file is written, synced and read back. There are two files if the
    /// configuration is kept.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub seconds_of_files: Option<f64>,
    /// Message of a solver that gave up, with the quarks and the number of the update; only after such a failure, which rejects the
    /// trajectory. `end` and `delta_h` are `null` after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Reversibility violation: distance between the start of the trajectory and the end of its reversal (Bonati et al. 2011, eqs. 14 and
    /// 15); only with `measure.reversibility`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irreversibility: Option<Irreversibility>,
    /// [Identities of loops and forces](rhmc.md#identities-of-loops-and-forces) on the links before the trajectory; only with
    /// `measure.identities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identities: Option<LoopIdentities>,
    /// Means of Re tr P / 3 over all planes, over the spatial and over the temporal planes, after the Metropolis step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plaquette: Option<PlaquetteMeans>,
    /// Mean of Re tr R / 3 over all 2×1 loops, after the Metropolis step.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub rectangle: Option<f64>,
    /// Polyakov loop: `[re, im]` of the mean over space of tr Π_t U_t / 3.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub polyakov_loop: Option<[f64; 2]>,
    /// Chiral condensate for each mass; absent without quarks and with `measure.condensate = 0`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub condensate: Vec<CondensateLine>,
    /// Times of kernels, as in `ferrite.solve/1`, with `share` relative to `seconds`; only for the second trajectory after each start of
    /// the program (the first, if there is no other), or as `measure.kernels` requests. Timed trajectories take longer than others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<KernelTimesRecord>,
    /// Settings of the run; only on the first line after each start of the program.
    #[serde(default, deserialize_with = "with_current_keys", skip_serializing_if = "Option::is_none")]
    pub run: Option<Value>,
}

impl Record for TrajectoryLine {
    const SCHEMA: &'static str = "ferrite.trajectory/1";
}

/// Reads the settings of a run. Earlier versions call the parallelogram `chair`.
fn with_current_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let mut run = Option::<Value>::deserialize(deserializer)?;
    if let Some(Value::Object(gauge)) = run.as_mut().and_then(|run| run.get_mut("gauge"))
        && let Some(factor) = gauge.remove("chair")
    {
        gauge.insert("parallelogram".into(), factor);
    }
    Ok(run)
}

/// Parts of the Hamiltonian H, whose sum is H.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyParts {
    /// Gauge action.
    #[serde(deserialize_with = "real::read")]
    pub gauge: f64,
    /// Kinetic energy ½ Σ abs(P)² minus its mean.
    #[serde(deserialize_with = "real::read")]
    pub kinetic: f64,
    /// Action of the pseudofermions.
    #[serde(deserialize_with = "real::read")]
    pub fermions: f64,
}

impl Default for EnergyParts {
    /// Returns NaN for each part: the parts are unknown.
    fn default() -> Self {
        EnergyParts { gauge: f64::NAN, kinetic: f64::NAN, fermions: f64::NAN }
    }
}

/// Results for a part of the fermion action in a trajectory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuarkLine {
    /// Operator, flavours and masses, as a readable name.
    pub name: String,
    /// Iterations of the solver, summed over its solves.
    pub iterations: QuarkIterations,
    /// Largest true residual of the solves for heat bath and action, computed in the precision of the solver.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub residual: f64,
    /// Upper bound of the eigenvalues of −D² on the links after the trajectory, or of M̂†M̂ for Wilson-like quarks; at most 0.1 % above the
    /// largest eigenvalue. `None` for parts without a rational function.
    pub largest_eigenvalue: Option<f64>,
    /// Upper estimate of the smallest eigenvalue of M̂†M̂; only for rational functions of Wilson-like quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_eigenvalue: Option<f64>,
    /// Number of links whose force was limited because V†V has an eigenvalue below 5·10⁻⁵, summed over all force evaluations of the
    /// trajectory; only for HISQ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarded_links: Option<usize>,
}

/// Iterations of the solvers in a trajectory, by phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarkIterations {
    /// Iterations in heat bath and Metropolis step.
    pub action: usize,
    /// Iterations in molecular dynamics, not counting the reversed trajectory.
    pub dynamics: usize,
}

/// Distance between the start of a trajectory and the end of its reversal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Irreversibility {
    /// √(Σ ‖U − V‖² / N) of links, where N is eight times the number of links.
    #[serde(deserialize_with = "real::read")]
    pub links: f64,
    /// √(Σ ‖P − Q‖² / N) of momenta.
    #[serde(deserialize_with = "real::read")]
    pub momenta: f64,
}

/// Means of loops, each computed from the links and from the forces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopIdentities {
    /// Mean plaquette from the links and from the forces.
    pub plaquette: Option<LoopAndForce>,
    /// Mean of the 2×1 loops from the links and from the forces; absent on lattices with an extent of 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rectangle: Option<LoopAndForce>,
}

/// Mean over loops, computed from the links and from the forces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopAndForce {
    /// Mean of Re tr W / 3 over the loops W.
    #[serde(deserialize_with = "real::read")]
    pub loops: f64,
    /// Mean of `loops` as computed from the forces; its difference from `loops` has the expectation value 0.
    #[serde(deserialize_with = "real::read")]
    pub forces: f64,
}

/// Chiral condensate on a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CondensateLine {
    /// Mass m in M = m + D/2.
    #[serde(deserialize_with = "real::read")]
    pub mass: f64,
    /// Estimate of ψ̄ψ = tr M⁻¹ / V of one staggered field, which describes four flavours: the mean of the real parts of `noise`.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// Estimates, one from each noise vector ξ.
    #[serde(default)]
    pub noise: Vec<CondensateNoise>,
    /// Largest ‖M†ξ − M†M x‖ / ‖M†ξ‖ of the solves for the condensate, over all vectors and both parities, computed from the solution x in
    /// double precision.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub residual: f64,
}

/// Estimates of a condensate from a noise vector ξ, `[re, im]` of (2/V) Σ ξ†(n) (M⁻¹ ξ)(n).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CondensateNoise {
    /// `[re, im]` of (2/V) Σ ξ†(n) (M⁻¹ ξ)(n) over the even sites.
    #[serde(deserialize_with = "real::read")]
    pub even: [f64; 2],
    /// `[re, im]` of (2/V) Σ ξ†(n) (M⁻¹ ξ)(n) over the odd sites.
    #[serde(deserialize_with = "real::read")]
    pub odd: [f64; 2],
}

/// Settings of a run at one start of the program. A line of an older version, from which keys are missing, can be read with
/// [`read_leniently`](crate::read::read_leniently); these settings are then empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSettings {
    /// Version of the program.
    pub version: String,
    /// Extents of the lattice.
    pub lattice: Option<[usize; 4]>,
    /// Number of the trajectory with which the run ends.
    pub trajectories: Option<u64>,
    /// Seed of the random numbers.
    pub seed: Option<u64>,
    /// Links from which the run began: `cold`, `hot` or a file.
    pub start: String,
    /// Keys of the input that affect the chain, with their values as typed. Keys of a table contain its number, as in `fermion.0.mass`.
    /// `--resume` compares these values. Absent in lines of older versions.
    pub input: BTreeMap<String, String>,
    /// Number of trajectories at the beginning without a Metropolis step.
    pub thermalise: u32,
    /// Gauge action.
    pub gauge: GaugeSettings,
    /// Settings of the quarks of each table `[[fermion]]`.
    pub quarks: Vec<QuarkSettings>,
    /// Length of a trajectory.
    pub length: Option<f64>,
    /// Friction of momenta that are partly kept between trajectories; `None` if each trajectory draws new momenta.
    pub friction: Option<f64>,
    /// Levels of the integrator, outermost first.
    pub levels: Vec<LevelSettings>,
    /// Precision of the links and momenta: `double` or `single`.
    pub links: String,
    /// Precision of products in the gauge force: `double` or `single`.
    pub gauge_force: String,
    /// Solvers of molecular dynamics, heat bath and action.
    pub solvers: PhaseSolvers,
    /// Projection of the links to SU(3): `always` or `never`.
    pub unitarise: String,
    /// Settings of the measurements.
    pub measure: MeasurementSettings,
    /// Folder of the replayed run, as typed; only with `--replay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the first process's device.
    pub device: String,
    /// Processes of the run since this start of the program.
    pub layout: LayoutRecord,
}

/// Gauge action S = (β/3) Σ [c_P Re tr (1 − P) + c_R Re tr (1 − R) + c_C Re tr (1 − C)] over plaquettes, rectangles and parallelograms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GaugeSettings {
    /// Name of the gauge action.
    pub action: String,
    /// Gauge coupling β.
    pub beta: f64,
    /// Coefficient c_P of the plaquettes.
    pub plaquette: Option<f64>,
    /// Coefficient c_R of the rectangles.
    pub rectangle: Option<f64>,
    /// Coefficient c_C of the parallelograms.
    pub parallelogram: Option<f64>,
    /// Factors of the coefficients on anisotropic lattices.
    pub anisotropy: Option<AnisotropySettings>,
}

/// Factors of the coefficients of a gauge action; 1 on isotropic lattices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnisotropySettings {
    /// Factors of c_P for spatial and for temporal plaquettes.
    pub plaquettes: [f64; 2],
    /// Factors of c_R for spatial rectangles, for rectangles with the short side in t, and for rectangles with the long side in t.
    pub rectangles: [f64; 3],
}

/// Settings of the quarks of one table `[[fermion]]`. Wilson-like quarks also have the parameters of their operator, as in
/// `ferrite.solve/1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuarkSettings {
    /// Operator, flavours and masses, as a readable name.
    pub name: String,
    /// Name of the operator: `naive`, `asqtad`, `hisq`, or the name of a Wilson-like operator.
    pub operator: String,
    /// Masses of staggered quarks, or the mass of Wilson-like quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<OneOrSeveral>,
    /// Number of flavours of each mass, a fraction as text.
    pub flavours: Vec<String>,
    /// Number of pseudofermions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pseudofermions: Option<usize>,
    /// Level of the integrator on which the quarks act; only for staggered quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<usize>,
    /// Levels of the integrator on which the pseudofermions act; only for Wilson-like quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<usize>>,
    /// Coefficients of the paths in fat and long links; only for staggered quarks, `None` unless the operator is asqtad.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub paths: Option<Option<PathSettings>>,
    /// Correction ε of the Naik term; only for HISQ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naik_epsilon: Option<f64>,
    /// Relative errors of the rational functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<RationalErrors>,
    /// Boundary condition in time: `antiperiodic` or `periodic`.
    pub bc_time: String,
    /// Angles θ of twisted boundary conditions in x, y, z and t, in radians.
    pub theta: Vec<f64>,
    /// Staggered phases: `milc` or `lexicographic`; only for staggered quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<String>,
    /// Stout smearing of the links. Staggered quarks have it only if links are smeared; Wilson-like quarks have `none` if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stout: Option<StoutSettings>,
    /// Requested tolerances in molecular dynamics; only if the quarks have their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamics_tol: Option<Vec<f64>>,
    /// Names of the heavier quarks in Hasenbusch's factorisation; only for Wilson-like quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hasenbusch: Option<Vec<String>>,
    /// Multigrid settings, named after the keys `mg-…` without `mg-`; only for Wilson-like quarks, `None` unless multigrid is the method.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub multigrid: Option<Option<Value>>,
    /// Parameters of the operator.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// A number, or a list of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrSeveral {
    /// A number.
    One(f64),
    /// A list of numbers.
    Several(Vec<f64>),
}

/// Stout smearing of the links of quarks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoutSettings {
    /// Parameters of the stout smearing.
    Smeared(Stout),
    /// Text `none`: the links are not smeared.
    Named(String),
}

/// Coefficients of paths in fat and long links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathSettings {
    /// Coefficient of the single link.
    pub one_link: f64,
    /// Coefficient of the long link.
    pub naik: f64,
    /// Coefficient of staples of three links.
    pub three: f64,
    /// Coefficient of staples of five links.
    pub five: f64,
    /// Coefficient of staples of seven links.
    pub seven: f64,
    /// Coefficient of the straight staples of five links (Lepage term).
    pub lepage: f64,
}

/// Relative errors of rational functions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RationalErrors {
    /// Relative error of the function for molecular dynamics.
    pub dynamics: f64,
    /// Relative error of the functions for heat bath and action.
    pub action: f64,
}

/// Scheme, number of steps and forces of a level of an integrator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelSettings {
    /// Name of the integration scheme.
    pub integrator: String,
    /// Parameter λ of the scheme; `None` for schemes without it.
    pub lambda: Option<f64>,
    /// Number of steps.
    pub steps: usize,
    /// Whether the gauge force acts on this level.
    pub gauge: bool,
    /// Parts of the fermion action that act on this level, by their index in `quarks` of a trajectory's line.
    pub quarks: Vec<usize>,
}

/// Solvers in the phases of a trajectory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseSolvers {
    /// Solver of molecular dynamics.
    pub dynamics: PhaseSolver,
    /// Solver of heat bath and action.
    pub action: PhaseSolver,
}

/// Precision and tolerances of the solver in a phase of a trajectory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseSolver {
    /// Precision: `double` or `single`.
    pub precision: String,
    /// Requested tolerances: one, or one for each pole.
    pub tol: Vec<f64>,
}

/// Settings of the measurements of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasurementSettings {
    /// Number of trajectories from one measurement to the next.
    pub every: usize,
    /// Number of noise vectors of the condensate.
    pub condensate: usize,
    /// Sizes of the batches in which noise vectors of the condensate are solved.
    pub batches: Vec<usize>,
}

/// Result of `ferrite rhmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RhmcRecord {
    /// Folder of the run.
    pub output: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Number of the first trajectory generated since this start of the program.
    pub first_trajectory: u32,
    /// Number of the last trajectory generated since this start of the program.
    pub last_trajectory: u32,
    /// Number of trajectories accepted since the run began.
    pub accepted: u32,
    /// Means over the trajectories since this start of the program that ended with a Metropolis step; over all of them if none did.
    pub summary: RhmcSummary,
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
}

impl Record for RhmcRecord {
    const SCHEMA: &'static str = "ferrite.rhmc/1";
}

/// Means over the trajectories since a start of the program that ended with a Metropolis step; over all of them if none did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RhmcSummary {
    /// Number of trajectories.
    pub trajectories: usize,
    /// Number of accepted trajectories.
    pub accepted: usize,
    /// Mean and error of exp(−ΔH).
    pub exp_minus_delta_h: MeanAndError,
    /// Mean and error of the plaquette.
    pub plaquette: MeanAndError,
    /// Mean and error of `forces` − `loops` of the identities.
    pub identities: IdentityMeans,
    /// Mean seconds of a trajectory without observables and files. Trajectories with timed kernels are left out if there are others.
    #[serde(deserialize_with = "real::read")]
    pub seconds_per_trajectory: f64,
    /// Mean seconds per trajectory for files.
    #[serde(deserialize_with = "real::read")]
    pub seconds_of_files_per_trajectory: f64,
    /// Fraction of the time outside kernels, averaged over all trajectories with kernel timing; `None` if there are none.
    pub outside_kernels: Option<f64>,
}

/// Means of the difference between loops computed from forces and from links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdentityMeans {
    /// Mean and error for plaquettes; `None` without a mean.
    pub plaquette: Option<MeanAndError>,
    /// Mean and error for 2×1 loops; `None` without a mean.
    pub rectangle: Option<MeanAndError>,
}

/// Result of `ferrite forces`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForcesRecord {
    /// Input file.
    pub input: PathBuf,
    /// File of the links, or `hot` or `cold`.
    pub links: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Number of the trajectory whose random numbers generate the pseudofermions.
    pub trajectory: u32,
    /// Force of each part of the action.
    pub forces: Vec<PartForce>,
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
}

impl Record for ForcesRecord {
    const SCHEMA: &'static str = "ferrite.forces/1";
}

/// Force of one part of the action, with the iterations of its solvers and the time of its evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartForce {
    /// Name of the part of the action, as in `ferrite.trajectory/1`.
    pub name: String,
    /// Level of the integrator, counted from 0, the outermost.
    pub level: usize,
    /// Longest step, in molecular-dynamics time, for which the force is added to the momenta at once.
    pub kick: f64,
    /// Force F: root mean square over links of √(Σ_jk abs(F_jk)²).
    pub rms: f64,
    /// Force F: maximum over links of √(Σ_jk abs(F_jk)²).
    pub max: f64,
    /// Iterations of the solvers; `None` for the gauge action.
    pub iterations: Option<ForceIterations>,
    /// Seconds of one evaluation of the force, including its transfer to the host.
    pub seconds: f64,
}

/// Iterations of the solvers in the evaluation of a force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForceIterations {
    /// Iterations in the heat bath.
    pub heat_bath: usize,
    /// Iterations in the evaluation of the force.
    pub force: usize,
}

/// Results of a single trajectory, for interfaces such as the Python package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MadeTrajectory {
    /// Number of the trajectory, counted from 1.
    pub number: u32,
    /// ΔH = H(end) − H(start); `null` if it is not finite.
    #[serde(deserialize_with = "real::read")]
    pub delta_h: f64,
    /// Whether the end of the trajectory was accepted.
    pub accepted: bool,
    /// Parts of the Hamiltonian H at the start.
    pub start: EnergyParts,
    /// Parts of the Hamiltonian H at the end.
    pub end: EnergyParts,
    /// Iterations of the solvers for each part of the fermion action: `[heat bath and Metropolis step, molecular dynamics]`.
    pub iterations: Vec<[usize; 2]>,
    /// Reversibility violation in links and momenta: distance between the start of the trajectory and the end of its reversal; `None` if it
    /// was not reversed.
    pub irreversibility: Option<[f64; 2]>,
    /// Reason why a solver gave up, which rejects the trajectory; `None` if no solver did.
    pub failure: Option<String>,
    /// Mean plaquette of the links after the Metropolis step.
    pub plaquette: f64,
    /// Seconds of the trajectory.
    pub seconds: f64,
}
