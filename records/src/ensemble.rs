//! Ensembles of `ferrite rhmc`: lines of trajectories, settings of a run, its summary, forces.
use crate::kernels::KernelTimes;
use crate::observables::{MeanAndError, PlaquetteMeans};
use crate::operator::Stout;
use crate::place::{Layout, Place};
use crate::read::present;
use crate::{Record, real};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A line of `trajectories.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrajectoryLine {
    /// Number of the trajectory, from 1 on.
    pub trajectory: u64,
    /// Whether it ended with a Metropolis step; the first `thermalise` trajectories are accepted as they are.
    pub metropolis: bool,
    /// Whether its end was accepted.
    pub accepted: bool,
    /// ΔH = H(end) − H(start), summed part by part; `None` where it is not finite.
    #[serde(deserialize_with = "real::read")]
    pub delta_h: f64,
    /// exp(−ΔH); `None` where it is not finite.
    #[serde(deserialize_with = "real::read")]
    pub exp_minus_delta_h: f64,
    /// Parts of H at the start.
    #[serde(default)]
    pub start: EnergyParts,
    /// Parts of H at the end.
    #[serde(default)]
    pub end: EnergyParts,
    /// Each part of the fermion action, none without quarks. Staggered quarks have one for each `[[fermion]]` of the input;
    /// Wilson-like ones one for each pseudofermion of two flavours, one for a rational function, and one for the determinants of a
    /// clover term.
    #[serde(default)]
    pub quarks: Vec<QuarkLine>,
    /// Seconds of the trajectory, with its reversal if there is one.
    #[serde(deserialize_with = "real::read")]
    pub seconds: f64,
    /// Seconds with the spectrum and the observables, without files.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub seconds_with_observables: Option<f64>,
    /// Seconds after that: to download the links, and to write, sync and read back their file, or two where a configuration is kept.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub seconds_of_files: Option<f64>,
    /// Only where a solver gave up on the way: its message, with the quarks, and the move of how many; then the trajectory was rejected,
    /// and `end` and `delta_h` are `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Only with `measure.reversibility`: distance from the start at which the reversed trajectory ends (Bonati et al. 2011, eqs. 14 and
    /// 15).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irreversibility: Option<Irreversibility>,
    /// Only with `measure.identities`: the [identities](rhmc.md#identities-of-loops-and-forces) on the links before the trajectory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identities: Option<LoopIdentities>,
    /// Mean of Re tr P / 3 after the Metropolis step, over all, the spatial, and the temporal planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plaquette: Option<PlaquetteMeans>,
    /// Mean of Re tr R / 3 over all 2×1 loops.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub rectangle: Option<f64>,
    /// `[re, im]` of the mean over space of tr Π_t U_t / 3.
    #[serde(default, deserialize_with = "real::read", skip_serializing_if = "Option::is_none")]
    pub polyakov_loop: Option<[f64; 2]>,
    /// The condensate for each mass; not without quarks or with `measure.condensate = 0`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub condensate: Vec<CondensateLine>,
    /// Times of kernels, for the second trajectory of each start (for the first, if there is no other), or as `measure.kernels` says:
    /// as in `ferrite.solve/1`, with the `share` of `seconds`, which are more than those of a trajectory that is not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<KernelTimes>,
    /// Only on the first line after each start of the program: its settings.
    #[serde(default, deserialize_with = "with_current_keys", skip_serializing_if = "Option::is_none")]
    pub run: Option<Value>,
}

impl Record for TrajectoryLine {
    const SCHEMA: &'static str = "ferrite.trajectory/1";
}

/// Reads settings of a run, in which earlier versions call the parallelogram `chair`.
fn with_current_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let mut run = Option::<Value>::deserialize(deserializer)?;
    if let Some(Value::Object(gauge)) = run.as_mut().and_then(|run| run.get_mut("gauge"))
        && let Some(factor) = gauge.remove("chair")
    {
        gauge.insert("parallelogram".into(), factor);
    }
    Ok(run)
}

/// Parts of H.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyParts {
    /// The gauge action.
    #[serde(deserialize_with = "real::read")]
    pub gauge: f64,
    /// ½ Σ abs(P)² less its mean.
    #[serde(deserialize_with = "real::read")]
    pub kinetic: f64,
    /// The action of the pseudofermions.
    #[serde(deserialize_with = "real::read")]
    pub fermions: f64,
}

impl Default for EnergyParts {
    /// Unknown parts.
    fn default() -> Self {
        EnergyParts { gauge: f64::NAN, kinetic: f64::NAN, fermions: f64::NAN }
    }
}

/// A part of the fermion action in a trajectory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuarkLine {
    /// Operator, flavours and masses, for people.
    pub name: String,
    /// Iterations of the solver, summed over its solves.
    pub iterations: QuarkIterations,
    /// The largest true residual of a system that was solved for heat bath or action, in the precision of that solver.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub residual: f64,
    /// Upper bound, to a thousandth, of the eigenvalues of −D² on the links after the trajectory; of M̂†M̂ of Wilson-like quarks, and
    /// `None` for parts without a rational function.
    pub largest_eigenvalue: Option<f64>,
    /// Only for rational functions of Wilson-like quarks: the smallest eigenvalue of M̂†M̂, from above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_eigenvalue: Option<f64>,
    /// Only for HISQ: number of links in which forces of the trajectory were kept from growing, since V†V has an eigenvalue below
    /// 5·10⁻⁵, in all evaluations together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarded_links: Option<usize>,
}

/// Iterations of solvers in a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarkIterations {
    /// Iterations in heat bath and Metropolis step.
    pub action: usize,
    /// Iterations in molecular dynamics, without the reversed trajectory.
    pub dynamics: usize,
}

/// Distance from the start at which a reversed trajectory ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Irreversibility {
    /// √(Σ ‖U − V‖² / N) of links, N eight for each link.
    #[serde(deserialize_with = "real::read")]
    pub links: f64,
    /// √(Σ ‖P − Q‖² / N) of momenta.
    #[serde(deserialize_with = "real::read")]
    pub momenta: f64,
}

/// Loops and the same from forces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopIdentities {
    /// Identity of the plaquettes.
    pub plaquette: Option<LoopAndForce>,
    /// Identity of the 2×1 loops; not on lattices with an extent of 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rectangle: Option<LoopAndForce>,
}

/// A mean over loops, from the links and from the forces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopAndForce {
    /// Mean of Re tr / 3 over the loops.
    #[serde(deserialize_with = "real::read")]
    pub loops: f64,
    /// The same from the forces; the difference has the mean 0.
    #[serde(deserialize_with = "real::read")]
    pub forces: f64,
}

/// A condensate on a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CondensateLine {
    /// m in M = m + D/2.
    #[serde(deserialize_with = "real::read")]
    pub mass: f64,
    /// Estimate of ψ̄ψ = tr M⁻¹ / V of one staggered field, which is four flavours: the mean of the real parts of `noise`.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// Estimates from each noise vector ξ.
    #[serde(default)]
    pub noise: Vec<CondensateNoise>,
    /// The largest ‖M†ξ − M†M x‖ / ‖M†ξ‖ of these solves, of all vectors and both parities, computed from the solution x in double
    /// precision.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub residual: f64,
}

/// Estimates of a condensate from a noise vector ξ, `[re, im]` of (2/V) Σ ξ†(n) (M⁻¹ ξ)(n).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CondensateNoise {
    /// `[re, im]` of (2/V) Σ ξ†(n) (M⁻¹ ξ)(n) over the even sites.
    #[serde(deserialize_with = "real::read")]
    pub even: [f64; 2],
    /// The same over the odd sites.
    #[serde(deserialize_with = "real::read")]
    pub odd: [f64; 2],
}

/// Settings of a run at a start. Keys that lines of older versions do not have, read with
/// [`read_leniently`](crate::read::read_leniently), are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSettings {
    /// Version of the program.
    pub version: String,
    /// Extents of the lattice.
    pub lattice: Option<[usize; 4]>,
    /// Number of the last trajectory.
    pub trajectories: Option<u64>,
    /// Seed of the random numbers.
    pub seed: Option<u64>,
    /// `cold`, `hot` or a file: the links that the run began with.
    pub start: String,
    /// Keys of the input that have an effect on the chain, as they were typed, with the number of a table: `fermion.0.mass`. `--resume`
    /// compares them. Not in lines of older versions.
    pub input: BTreeMap<String, String>,
    /// Number of the first trajectories without a Metropolis step.
    pub thermalise: u32,
    /// The gauge action.
    pub gauge: GaugeSettings,
    /// Groups of quarks.
    pub quarks: Vec<QuarkSettings>,
    /// Length of a trajectory.
    pub length: Option<f64>,
    /// Friction of the momenta between trajectories; `None` where momenta are new in each.
    pub friction: Option<f64>,
    /// Levels of the integrator from the outermost inwards.
    pub levels: Vec<LevelSettings>,
    /// Precision of links and momenta: `double` or `single`.
    pub links: String,
    /// Precision of products in the gauge force: `double` or `single`.
    pub gauge_force: String,
    /// Solvers.
    pub solvers: PhaseSolvers,
    /// Projection of links to SU(3): `always` or `never`.
    pub unitarise: String,
    /// Measurements.
    pub measure: MeasurementSettings,
    /// Only with `--replay`: the folder, as typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// `cpu` or `cuda`.
    pub backend: String,
    /// The device of the first process, for people.
    pub device: String,
    /// Processes of this start.
    pub layout: Layout,
}

/// A gauge action, S = (β/3) Σ [c_P Re tr (1 − P) + c_R Re tr (1 − R) + c_C Re tr (1 − C)] over plaquettes, rectangles and parallelograms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GaugeSettings {
    /// Name of the gauge action.
    pub action: String,
    /// β
    pub beta: f64,
    /// c_P
    pub plaquette: Option<f64>,
    /// c_R
    pub rectangle: Option<f64>,
    /// c_C
    pub parallelogram: Option<f64>,
    /// Factors of anisotropic lattices.
    pub anisotropy: Option<AnisotropySettings>,
}

/// Factors of the coefficients of a gauge action, 1 on isotropic lattices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnisotropySettings {
    /// Factors of c_P for plaquettes in space and for those with t.
    pub plaquettes: [f64; 2],
    /// Factors of c_R for rectangles in space, for those with their short side and for those with their long side in t.
    pub rectangles: [f64; 3],
}

/// Quarks of a run. Wilson-like ones have the parameters of their operator besides, as `ferrite.solve/1` has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuarkSettings {
    /// Operator, flavours and masses, for people.
    pub name: String,
    /// Name of the operator: `naive`, `asqtad` or `hisq`, or that of a Wilson-like operator.
    pub operator: String,
    /// Masses of staggered quarks, or the mass of Wilson-like ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<OneOrSeveral>,
    /// Flavours of each mass, fractions as text.
    pub flavours: Vec<String>,
    /// Number of pseudofermions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pseudofermions: Option<usize>,
    /// Level of the integrator of staggered quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<usize>,
    /// Levels of the pseudofermions of Wilson-like quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<usize>>,
    /// Coefficients of asqtad's fat and long links, `None` for other staggered quarks.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub paths: Option<Option<PathSettings>>,
    /// ε of HISQ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naik_epsilon: Option<f64>,
    /// Relative errors of the rational functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<RationalErrors>,
    /// `antiperiodic` or `periodic`.
    pub bc_time: String,
    /// Angles θ of twisted boundary conditions.
    pub theta: Vec<f64>,
    /// `milc` or `lexicographic`, of staggered quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<String>,
    /// Stout links: of staggered quarks where there are any, of Wilson-like quarks `none` where there are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stout: Option<StoutSettings>,
    /// Residuals of molecular dynamics, only where the group has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamics_tol: Option<Vec<f64>>,
    /// Names of the heavier quarks of Wilson-like quarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hasenbusch: Option<Vec<String>>,
    /// Keys `mg-…` of Wilson-like quarks, `None` where multigrid is not the method.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub multigrid: Option<Option<Value>>,
    /// Parameters of the operator.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// A number, or a list of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrSeveral {
    /// A number.
    One(f64),
    /// A list.
    Several(Vec<f64>),
}

/// Stout links of quarks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoutSettings {
    /// Their smearing.
    Smeared(Stout),
    /// `none`
    Named(String),
}

/// Coefficients of paths in fat and long links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathSettings {
    /// Coefficient of the link itself.
    pub one_link: f64,
    /// Coefficient of the long link.
    pub naik: f64,
    /// Coefficient of staples of three links.
    pub three: f64,
    /// Coefficient of staples of five links.
    pub five: f64,
    /// Coefficient of staples of seven links.
    pub seven: f64,
    /// Coefficient of the straight staples of five links.
    pub lepage: f64,
}

/// Relative errors of rational functions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RationalErrors {
    /// Error of the function for molecular dynamics.
    pub dynamics: f64,
    /// Error of the functions for heat bath and action.
    pub action: f64,
}

/// A level of an integrator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelSettings {
    /// Name of the scheme.
    pub integrator: String,
    /// λ; `None` for schemes without it.
    pub lambda: Option<f64>,
    /// Number of steps.
    pub steps: usize,
    /// Whether the gauge force acts here.
    pub gauge: bool,
    /// Parts of the fermion action that act here, counted as in `quarks` of the line.
    pub quarks: Vec<usize>,
}

/// Solvers of a trajectory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseSolvers {
    /// The solver of molecular dynamics.
    pub dynamics: PhaseSolver,
    /// The solver of heat bath and action.
    pub action: PhaseSolver,
}

/// A solver of a part of a trajectory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseSolver {
    /// Precision: `double` or `single`.
    pub precision: String,
    /// One residual, or one for each pole.
    pub tol: Vec<f64>,
}

/// Measurements of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasurementSettings {
    /// Number of trajectories from one measurement to the next.
    pub every: usize,
    /// Number of noise vectors of a condensate.
    pub condensate: usize,
    /// Noise vectors of a condensate that are solved together, one batch after the other.
    pub batches: Vec<usize>,
}

/// The result of `ferrite rhmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RhmcRecord {
    /// Folder of the run.
    pub output: PathBuf,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// The first trajectory that this start of the program made.
    pub first_trajectory: u32,
    /// The last trajectory that this start of the program made.
    pub last_trajectory: u32,
    /// Trajectories accepted since the run began.
    pub accepted: u32,
    /// Summary of this start.
    pub summary: RhmcSummary,
    /// Device and processes.
    #[serde(flatten)]
    pub place: Place,
}

impl Record for RhmcRecord {
    const SCHEMA: &'static str = "ferrite.rhmc/1";
}

/// Means over the trajectories of a start.
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
    /// Seconds of a trajectory without observables and files, and without trajectories whose kernels were timed, where there are others.
    #[serde(deserialize_with = "real::read")]
    pub seconds_per_trajectory: f64,
    /// Seconds of files for a trajectory.
    #[serde(deserialize_with = "real::read")]
    pub seconds_of_files_per_trajectory: f64,
    /// Share of the time outside kernels, mean of all trajectories whose kernels were timed; `None` without them.
    pub outside_kernels: Option<f64>,
}

/// Means of identities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdentityMeans {
    /// Plaquettes; `None` where there is no mean.
    pub plaquette: Option<MeanAndError>,
    /// 2×1 loops; `None` where there is no mean.
    pub rectangle: Option<MeanAndError>,
}

/// The result of `ferrite forces`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForcesRecord {
    /// The input file.
    pub input: PathBuf,
    /// The file of the links, `hot` or `cold`.
    pub links: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Number of the trajectory whose noise makes the pseudofermions.
    pub trajectory: u32,
    /// Force of each part of the action.
    pub forces: Vec<PartForce>,
    /// Device and processes.
    #[serde(flatten)]
    pub place: Place,
}

impl Record for ForcesRecord {
    const SCHEMA: &'static str = "ferrite.forces/1";
}

/// The force of a part of the action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartForce {
    /// Name of the part of the action, as in `ferrite.trajectory/1`.
    pub name: String,
    /// Level of the integrator, from 0, the outermost.
    pub level: usize,
    /// The longest time for which it changes momenta at once.
    pub kick: f64,
    /// Root mean square over links of √(Σ_jk abs(F_jk)²).
    pub rms: f64,
    /// Largest value over links of it.
    pub max: f64,
    /// Iterations of solvers; `None` for the gauge action.
    pub iterations: Option<ForceIterations>,
    /// Seconds of the force.
    pub seconds: f64,
}

/// Iterations of solvers for a force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForceIterations {
    /// Iterations in the heat bath.
    pub heat_bath: usize,
    /// Iterations in the force.
    pub force: usize,
}

/// A trajectory that an interface has asked for by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MadeTrajectory {
    /// Number of the trajectory, from 1 on.
    pub number: u32,
    /// ΔH = H(end) − H(start); `None` where it is not finite.
    #[serde(deserialize_with = "real::read")]
    pub delta_h: f64,
    /// Whether its end was accepted.
    pub accepted: bool,
    /// Parts of H at the start.
    pub start: EnergyParts,
    /// Parts of H at the end.
    pub end: EnergyParts,
    /// Iterations of solvers for each part of the fermion action, in heat bath and Metropolis step, and in molecular dynamics.
    pub iterations: Vec<[usize; 2]>,
    /// Distances in links and momenta of the way back from the start; `None` where it was not gone.
    pub irreversibility: Option<[f64; 2]>,
    /// Why a solver gave up, with which the trajectory is rejected.
    pub failure: Option<String>,
    /// Mean plaquette of the links that are kept.
    pub plaquette: f64,
    /// Seconds of the trajectory.
    pub seconds: f64,
}
