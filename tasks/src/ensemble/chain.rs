//! A Markov chain that an interface describes by names and numbers. It is run one trajectory at a time.

use super::quarks::{EnsembleQuarks, energies, failed, without_action};
use crate::bounds::{at_most, number, positive};
use crate::{Failure, Outcome, parameters};
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::hmc::action::{ActionName, AnisotropicLattice, GaugeAction};
use ferrite::hmc::fermions::ShiftedSolver;
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme, Unitarise};
use ferrite::hmc::links::{EvolvingLinks, StopSignal};
use ferrite::hmc::quarks::QuarkGroup;
use ferrite::hmc::trajectory::{Chain, LevelPlan, MOST_LEVELS, MOST_STEPS, Plan};
use ferrite::{FermionKind, Precision};
use ferrite_records::ensemble::MadeTrajectory;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// Parameters of a gauge action. Absent parameters have the values that the action defines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct GaugeParameters {
    /// Gauge coupling β.
    pub beta: f64,
    /// Tadpole factor of the links; on anisotropic lattices, of the spatial links.
    pub u0: Option<f64>,
    /// Tadpole factor of the links in t, on anisotropic lattices.
    pub u0_time: Option<f64>,
    /// Bare anisotropy ξ_0.
    pub xi: Option<f64>,
    /// Number of quark flavours in the one-loop coefficients.
    pub flavours: Option<f64>,
    /// Coefficient of the plaquettes, in place of the action's own.
    pub plaquette: Option<f64>,
    /// Coefficient of the 2×1 loops, in place of the action's own.
    pub rectangle: Option<f64>,
    /// Coefficient of the parallelograms, in place of the action's own.
    pub parallelogram: Option<f64>,
}

impl GaugeParameters {
    /// Returns the gauge action called `name` with these parameters.
    pub fn action(&self, name: ActionName) -> GaugeAction {
        let GaugeParameters { beta, xi, .. } = *self;
        let [u0, u0_time] = [self.u0, self.u0_time].map(|factor| factor.unwrap_or(1.0));
        let mut action = match (name, xi) {
            (ActionName::Wilson, Some(xi)) => GaugeAction::anisotropic_wilson(beta, xi),
            (ActionName::SymanzikTree, Some(xi)) => {
                GaugeAction::anisotropic_symanzik(beta, AnisotropicLattice { xi, space: u0, time: u0_time })
            }
            (named, _) => named.isotropic(beta, u0, self.flavours),
        };
        action.plaquette = self.plaquette.unwrap_or(action.plaquette);
        action.rectangle = self.rectangle.unwrap_or(action.rectangle);
        action.parallelogram = self.parallelogram.unwrap_or(action.parallelogram);
        action
    }
}

/// Integrators of the levels of molecular dynamics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Integrators {
    /// Integrator of the levels on which quark forces act.
    pub outer: Scheme,
    /// Integrator of the level of the gauge force, if it has its own level.
    pub inner: Scheme,
    /// Number of steps of the level of the gauge force; `None` if it has no level of its own.
    pub gauge_steps: Option<usize>,
}

impl Integrators {
    /// Returns the levels of the integrator, outermost first, with the numbers of steps `steps`. `of_parts` has the index of the level on
    /// which each part of the fermion action acts. Without quarks, the gauge force has no level of its own.
    pub fn levels(&self, steps: &[usize], of_parts: &[usize]) -> Vec<LevelPlan> {
        let level = |(level, steps): (usize, &usize)| {
            let quarks = (0..of_parts.len()).filter(|part| of_parts[*part] == level).collect();
            LevelPlan { gauge: false, quarks, scheme: self.outer, steps: *steps }
        };
        let mut levels: Vec<LevelPlan> = steps.iter().enumerate().map(level).collect();
        match self.gauge_steps {
            Some(steps) if !of_parts.is_empty() => {
                levels.push(LevelPlan { gauge: true, quarks: Vec::new(), scheme: self.inner, steps });
            }
            _ => levels.iter_mut().last().into_iter().for_each(|innermost| innermost.gauge = true),
        }
        levels
    }
}

/// Returns the solver for a phase of a trajectory, in single or double precision. `tol` has one tolerance for all poles, or one for each
/// pole.
pub fn shifted_solver(single: bool, tol: Vec<f64>) -> ShiftedSolver {
    ShiftedSolver { single, tol, together: false, max_iterations: 1_000_000 }
}

/// Name and parameters of a gauge action.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamedGaugeAction {
    /// Name of the action.
    #[serde(alias = "action")]
    pub name: String,
    /// Parameters of the gauge action.
    #[serde(flatten)]
    pub parameters: GaugeParameters,
}

impl NamedGaugeAction {
    /// Returns the gauge action.
    ///
    /// # Errors
    /// A name that does not exist, and parameters that the action does not have.
    pub fn action(&self) -> Outcome<GaugeAction> {
        let NamedGaugeAction { name, parameters } = self;
        let action = named("gauge action", &ActionName::ALL, name)?;
        number("beta", parameters.beta, "a number of at least 0", |beta| beta >= 0.0)?;
        for (name, factor) in [("u0", parameters.u0), ("u0_time", parameters.u0_time), ("xi", parameters.xi)] {
            positive(name, factor.unwrap_or(1.0))?;
        }
        if action == ActionName::LuscherWeisz && parameters.u0.is_none() {
            return Err(Failure::refused("luscher-weisz needs u0"));
        }
        if action != ActionName::Wilson && parameters.xi.is_some() {
            return Err(Failure::refused(format!(
                "xi applies to the gauge action wilson only, not to {name}: remove xi"
            )));
        }
        Ok(parameters.action(action))
    }
}

/// Quarks of a chain, described by names and numbers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NamedQuarks {
    /// Type of the quarks: `two` or `one` for the flavours of Wilson-like quarks, or `staggered`.
    pub kind: String,
    /// Name of the operator.
    pub operator: String,
    /// Name of the quarks in messages and records.
    pub title: String,
    /// Index of the integrator level on which the force of the quarks acts, counted from 0, the outermost.
    pub level: usize,
    /// Parameters of the operator.
    pub parameters: BTreeMap<String, String>,
    /// Parameter ρ of stout smearing; `None` without smearing.
    pub stout_rho: Option<f64>,
    /// Number of steps of stout smearing.
    pub stout_levels: Option<usize>,
    /// Masses of the heavier quarks in Hasenbusch's factorisation.
    pub heavier: Vec<f64>,
    /// Twisted masses in Hasenbusch's factorisation, in place of heavier quarks.
    pub twists: Vec<f64>,
    /// Name of the solver.
    pub method: Option<String>,
    /// Number of earlier solutions from which initial guesses are made.
    pub guesses: Option<usize>,
    /// Masses of staggered quarks.
    pub masses: Vec<f64>,
    /// Number of flavours of each mass, a fraction as text.
    pub flavours: Vec<String>,
    /// Number of pseudofermions.
    pub pseudofermions: Option<usize>,
}

impl NamedQuarks {
    /// Names of all fields except the parameters of the operator.
    pub const NAMES: [&'static str; 13] = [
        "kind",
        "operator",
        "title",
        "level",
        "stout_rho",
        "stout_levels",
        "heavier",
        "twists",
        "method",
        "guesses",
        "masses",
        "flavours",
        "pseudofermions",
    ];
    pub(crate) fn group(&self) -> Outcome<QuarkGroup> {
        let (kind, flavours) = match self.kind.as_str() {
            "two" => (FermionKind::Wilson, "2".into()),
            "one" => (FermionKind::Wilson, "1".into()),
            _ => (FermionKind::Staggered, self.flavours.join(",")),
        };
        let list = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        let count = |n: Option<usize>| n.map(|n| n.to_string());
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        // Parameters become keys and values in the form of an input file.
        let keys = [
            ("operator", text(self.operator.clone())),
            ("level", count(Some(self.level))),
            ("stout_rho", self.stout_rho.map(|rho| rho.to_string())),
            ("stout_levels", count(self.stout_levels)),
            ("hasenbusch_mass", text(list(&self.heavier))),
            ("hasenbusch_mu", text(list(&self.twists))),
            ("method", self.method.clone()),
            ("guesses", count(self.guesses)),
            ("mass", text(list(&self.masses))),
            ("flavours", text(flavours)),
            ("pseudofermions", count(self.pseudofermions)),
        ];
        let mut values = self.parameters.clone();
        values.extend(keys.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))));
        Ok(QuarkGroup { name: self.title.clone(), ..parameters::quarks(kind, values)? })
    }
}

/// Request for a Markov chain: gauge action, quarks, integrators, tolerances and the seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainRequest {
    /// Gauge action.
    pub gauge: NamedGaugeAction,
    /// Quarks, one entry for each fermion monomial.
    #[serde(default)]
    pub quarks: Vec<NamedQuarks>,
    /// Length of a trajectory in molecular-dynamics time; 1 by default.
    #[serde(default = "unit_length")]
    pub length: f64,
    /// Number of steps of each level of quarks, outermost first.
    pub steps: Vec<usize>,
    /// Number of steps of the gauge force within a step of the innermost level of quarks.
    pub gauge_steps: Option<usize>,
    /// Name of the integrator of the quark levels; `omelyan` by default.
    #[serde(default = "omelyan")]
    pub integrator: String,
    /// Name of the integrator of the gauge level; that of the quark levels by default.
    pub gauge_integrator: Option<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of trajectories at the start that are accepted without a Metropolis step.
    #[serde(default)]
    pub thermalise: u32,
    /// Precision of the solvers and forces in molecular dynamics: `single` or `double`, the default.
    #[serde(default = "double")]
    pub precision: String,
    /// Requested tolerance of the solvers in molecular dynamics.
    pub dynamics_tol: Option<f64>,
    /// Requested tolerance of the solvers in heat bath and Metropolis step.
    pub action_tol: Option<f64>,
    /// Friction of the momenta, which are partly kept between trajectories; `None` if each trajectory draws new momenta.
    pub friction: Option<f64>,
}

fn unit_length() -> f64 {
    1.0
}
fn omelyan() -> String {
    "omelyan".into()
}
fn double() -> String {
    "double".into()
}

/// Plan of a chain, from which chains can start on any links.
#[derive(Clone, Debug)]
pub struct ChainPlan {
    plan: Plan,
    groups: Vec<QuarkGroup>,
    solvers: [ShiftedSolver; 2],
}

impl ChainRequest {
    /// Returns the plan of the chain.
    ///
    /// # Errors
    /// Names that do not exist, parameters that make no sense, and quarks on a level that does not exist.
    pub fn plan(&self) -> Outcome<ChainPlan> {
        self.check()?;
        let groups = self.quarks.iter().map(NamedQuarks::group).collect::<Outcome<Vec<_>>>()?;
        let schemes = Scheme::named(MINIMUM_NORM);
        let inner = self.gauge_integrator.as_ref().unwrap_or(&self.integrator);
        let [outer, inner] = [&self.integrator, inner].map(|name| named("integrator", &schemes, name));
        let integrators = Integrators { outer: outer?, inner: inner?, gauge_steps: self.gauge_steps };
        let of_parts: Vec<usize> = groups.iter().flat_map(|group| group.levels()).collect();
        if let Some(level) = of_parts.iter().find(|level| **level >= self.steps.len()) {
            let last = self.steps.len().saturating_sub(1);
            let why = format!(
                "quarks are on level {level}, but the last level in steps is {last}, counted from 0: choose a lower \
                 level, or add a number to steps"
            );
            return Err(Failure::refused(why));
        }
        let single = self.precision == "single";
        let of_dynamics = self.dynamics_tol.unwrap_or(if single { 1e-6 } else { 1e-8 });
        let of_action = self.action_tol.unwrap_or(1e-12);
        let plan = Plan {
            gauge: self.gauge.action()?,
            single_gauge_force: single,
            length: self.length,
            levels: integrators.levels(&self.steps, &of_parts),
            unitarise: Unitarise::default(),
            seed: self.seed,
            friction: self.friction,
            metropolis_from: self.thermalise + 1,
        };
        let solvers = [shifted_solver(single, vec![of_dynamics]), shifted_solver(false, vec![of_action])];
        Ok(ChainPlan { plan, groups, solvers })
    }
}

impl ChainRequest {
    /// Fails for numbers that are out of range.
    fn check(&self) -> Outcome {
        positive("length", self.length)?;
        let levels = self.steps.len();
        if !(1..=MOST_LEVELS).contains(&levels) || self.steps.contains(&0) || self.gauge_steps == Some(0) {
            let why = format!("steps = {:?}: expected numbers above 0 for 1 to {MOST_LEVELS} levels", self.steps);
            return Err(Failure::refused(why));
        }
        let all = self.steps.iter().chain(&self.gauge_steps);
        at_most("steps", all.fold(1, |all: u64, steps| all.saturating_mul(*steps as u64)), MOST_STEPS as u64)?;
        for (name, tol) in [("dynamics_tol", self.dynamics_tol), ("action_tol", self.action_tol)] {
            let tol = tol.unwrap_or(1e-6);
            number(name, tol, "a number of at least 1e-18 and below 1", |tol| (1e-18..1.0).contains(&tol))?;
        }
        positive("friction", self.friction.unwrap_or(1.0))?;
        if !["single", "double"].contains(&self.precision.as_str()) {
            return Err(Failure::refused(format!("precision = {}: expected double or single", self.precision)));
        }
        at_most("thermalise", self.thermalise.into(), u32::MAX as u64 - 2)
    }
}

impl ChainPlan {
    fn quarks(&self) -> EnsembleQuarks<'_> {
        EnsembleQuarks { groups: &self.groups, solvers: &self.solvers, seed: self.plan.seed }
    }
}

/// Chain on a device, with the spectral intervals of its rational functions.
pub struct RunningChain {
    chain: Chain,
    planned: ChainPlan,
    intervals: Vec<[f64; 2]>,
    /// Whether the links have changed since the spectral bounds were measured.
    has_moved: bool,
    /// Record of the last trajectory. An interface that stopped while it was generated may request it again.
    last: Option<MadeTrajectory>,
}

impl RunningChain {
    /// *Collective.* Starts a chain from links.
    ///
    /// # Errors
    /// Rational functions that do not exist, solvers that give up, and failures of the device.
    pub fn new(domain: &Domain, gauge: &HostGauge, planned: ChainPlan) -> Outcome<Self> {
        let device_links = GaugeField::upload(domain, gauge)?;
        let links = EvolvingLinks::new(&device_links, Precision::Double)?;
        let (parts, intervals) = planned.quarks().parts_for(&links).map_err(without_action)?;
        drop(links);
        let chain = Chain::new(planned.plan.clone(), &device_links, Precision::Double, parts).map_err(failed)?;
        Ok(RunningChain { chain, planned, intervals, has_moved: false, last: None })
    }
    /// *Collective.* Generates the trajectory `number` and returns its record. If `number` is that of the last generated trajectory,
    /// returns its record without generating it again. With `reverse`, the trajectory is also run back to its start. A trajectory that is
    /// stopped leaves the chain unchanged.
    ///
    /// # Errors
    /// Solvers that give up, a request to stop, and failures of the device.
    pub fn trajectory(&mut self, number: u32, reverse: bool, stop: StopSignal) -> Outcome<&MadeTrajectory> {
        let is_made = self.last.as_ref().is_some_and(|last| last.number == number);
        if !is_made {
            self.last = Some(self.make(number, reverse, stop)?);
        }
        self.last.as_ref().ok_or_else(Failure::stopped)
    }
    fn make(&mut self, number: u32, reverse: bool, stop: StopSignal) -> Outcome<MadeTrajectory> {
        self.chain.stop_when(stop);
        let begin = Instant::now();
        if self.has_moved {
            self.look_at_spectrum()?;
            self.has_moved = false;
        }
        let outcome = self.chain.trajectory(number, None, reverse).map_err(failed)?;
        let seconds = begin.elapsed().as_secs_f64();
        self.has_moved |= outcome.accepted;
        let plaquette = self.chain.links().thin(Precision::Double)?.plaquette()?.0;
        Ok(MadeTrajectory {
            number,
            delta_h: outcome.delta,
            accepted: outcome.accepted,
            start: energies(&outcome.start),
            end: energies(&outcome.end),
            iterations: outcome.iterations,
            irreversibility: outcome.irreversibility,
            failure: outcome.failure,
            plaquette: plaquette.mean,
            seconds,
        })
    }
    /// Measures the spectral bounds, and makes new rational functions if the bounds have left their intervals.
    fn look_at_spectrum(&mut self) -> Outcome {
        let quarks = self.planned.quarks();
        for seen in quarks.look_at_spectrum(self.chain.links(), &self.intervals).map_err(failed)? {
            quarks.follow(&mut self.chain, &mut self.intervals, &seen).map_err(without_action)?;
        }
        Ok(())
    }
    /// *Collective.* Returns the current links.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn links(&self) -> Outcome<HostGauge> {
        Ok(self.chain.links().thin(Precision::Double)?.download()?)
    }
}

/// Returns the value with the name `name` in the list `all`; the error names `what` is missing.
fn named<T: Copy>(what: &str, all: &[(&'static str, T)], name: &str) -> Outcome<T> {
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let names = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| Failure::refused(format!("{what} '{name}' is not one of {}", names())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ChainRequest {
        let parameters = GaugeParameters { beta: 5.5, ..GaugeParameters::default() };
        ChainRequest {
            gauge: NamedGaugeAction { name: "wilson".into(), parameters },
            quarks: Vec::new(),
            length: 1.0,
            steps: vec![4, 2],
            gauge_steps: None,
            integrator: "omelyan".into(),
            gauge_integrator: None,
            seed: 1,
            thermalise: 2,
            precision: "double".into(),
            dynamics_tol: None,
            action_tol: None,
            friction: None,
        }
    }

    fn light(level: usize) -> NamedQuarks {
        let parameters = [("mass".to_string(), "0.3".to_string())].into();
        NamedQuarks { kind: "two".into(), operator: "wilson".into(), level, parameters, ..NamedQuarks::default() }
    }

    /// Quarks are on their levels, and the gauge action is inside all of them.
    #[test]
    fn the_gauge_action_is_on_the_innermost_level() {
        let levels = |request: &ChainRequest| {
            let plan = request.plan().unwrap().plan;
            plan.levels.into_iter().map(|level| (level.steps, level.gauge, level.quarks)).collect::<Vec<_>>()
        };
        assert_eq!(levels(&request()), [(4, false, vec![]), (2, true, vec![])]);
        let with_quarks = ChainRequest { quarks: vec![light(1), light(0)], gauge_steps: Some(3), ..request() };
        assert_eq!(levels(&with_quarks), [(4, false, vec![1]), (2, false, vec![0]), (3, true, vec![])]);
        assert_eq!(with_quarks.plan().unwrap().plan.metropolis_from, 3);
        // Without quarks there is nothing that a level of its own would be inside of.
        assert_eq!(levels(&ChainRequest { gauge_steps: Some(3), ..request() }), levels(&request()));
        let why = ChainRequest { quarks: vec![light(2)], ..request() }.plan().unwrap_err().message;
        assert!(why.starts_with("quarks are on level 2, but the last level in steps is 1, counted from 0: "), "{why}");
    }

    #[test]
    fn unknown_names_are_reported_with_the_known_ones() {
        let why = |request: ChainRequest| request.plan().unwrap_err().message;
        let action = |name: &str, xi| {
            let parameters = GaugeParameters { beta: 5.5, xi, ..GaugeParameters::default() };
            ChainRequest { gauge: NamedGaugeAction { name: name.into(), parameters }, ..request() }
        };
        assert!(why(action("plaquette", None)).starts_with("gauge action 'plaquette' is not one of wilson, "));
        assert_eq!(why(action("luscher-weisz", None)), "luscher-weisz needs u0");
        assert_eq!(
            why(action("iwasaki", Some(2.0))),
            "xi applies to the gauge action wilson only, not to iwasaki: remove xi"
        );
        let why = why(ChainRequest { integrator: "euler".into(), ..request() });
        assert!(why.starts_with("integrator 'euler' is not one of leapfrog, "), "{why}");
    }
}
