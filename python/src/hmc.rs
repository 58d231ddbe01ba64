//! Hybrid Monte Carlo, a trajectory at a time.
use crate::device::{Device, Kept};
use crate::failure::{Failure, Outcome};
use crate::keys;
use crate::links::Links;
use crate::typed::Typed;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::hmc::action::{ActionName, GaugeAction};
use ferrite::hmc::fermions::ShiftedSolver;
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme, Unitarise};
use ferrite::hmc::links::{EvolvingLinks, StopSignal};
use ferrite::hmc::quarks::QuarkGroup;
use ferrite::hmc::trajectory::{Chain as Course, LevelPlan, Plan};
use ferrite::{FermionKind, Precision};
use ferrite_records::ensemble::EnergyParts;
use ferrite_records::object;
use ferrite_tasks::ensemble::{EnsembleError, EnsembleQuarks, energies};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A Markov chain on a device.
#[pyclass(frozen, module = "ferrite_lqcd._native")]
pub struct Chain {
    kept: Kept,
    device: Py<Device>,
}

/// What a chain is made of.
#[derive(Clone)]
struct ChainPlan {
    plan: Plan,
    quarks: Vec<QuarkGroup>,
    solvers: [ShiftedSolver; 2],
    precision: Precision,
}

/// A chain with what its rational functions hold for.
struct Running {
    chain: Course,
    planned: ChainPlan,
    /// Intervals of the rational functions.
    intervals: Vec<[f64; 2]>,
    /// Whether links have moved since the spectrum was looked at.
    has_moved: bool,
    /// The last trajectory, as it was told: somebody may have stopped it when it was done already.
    last: Option<MadeTrajectory>,
}

/// A chain as Python describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct ChainSpec {
    gauge: GaugeSpec,
    quarks: Vec<QuarkSpec>,
    length: f64,
    steps: Vec<usize>,
    gauge_steps: Option<usize>,
    integrator: String,
    gauge_integrator: String,
    seed: u64,
    thermalise: u32,
    precision: String,
    dynamics_tol: Option<f64>,
    action_tol: Option<f64>,
    friction: Option<f64>,
}

/// A gauge action.
#[derive(Clone, Debug, Deserialize)]
struct GaugeSpec {
    name: String,
    beta: f64,
    u0: Option<f64>,
    xi: Option<f64>,
    flavours: Option<f64>,
    plaquette: Option<f64>,
    rectangle: Option<f64>,
    parallelogram: Option<f64>,
}

/// Quarks: `two` or `one` flavours of Wilson-like ones, or `staggered` ones.
#[derive(Clone, Debug, Deserialize)]
struct QuarkSpec {
    kind: String,
    operator: String,
    title: String,
    level: usize,
    parameters: BTreeMap<String, String>,
    stout_rho: Option<f64>,
    stout_levels: Option<usize>,
    #[serde(default)]
    heavier: Vec<f64>,
    #[serde(default)]
    twists: Vec<f64>,
    method: Option<String>,
    guesses: Option<usize>,
    #[serde(default)]
    masses: Vec<f64>,
    #[serde(default)]
    flavours: Vec<String>,
    pseudofermions: Option<usize>,
}

/// A trajectory that was made.
#[derive(Clone, Debug, Serialize)]
struct MadeTrajectory {
    number: u32,
    delta_h: f64,
    accepted: bool,
    start: EnergyParts,
    end: EnergyParts,
    iterations: Vec<[usize; 2]>,
    irreversibility: Option<[f64; 2]>,
    failure: Option<String>,
    plaquette: f64,
    seconds: f64,
}

fn gauge_action(spec: &GaugeSpec) -> Outcome<GaugeAction> {
    let GaugeSpec { beta, name, u0, .. } = spec;
    let (beta, u0) = (*beta, *u0);
    let Some((_, named)) = ActionName::ALL.into_iter().find(|(known, _)| known == name) else {
        return Err(Failure::input(format!("gauge action '{name}': there are {}", names(&ActionName::ALL))));
    };
    if named == ActionName::LuscherWeisz && u0.is_none() {
        return Err(Failure::input("luscher-weisz needs u0"));
    }
    let mut action = match (named, spec.xi) {
        (ActionName::Wilson, Some(xi)) => GaugeAction::anisotropic_wilson(beta, xi),
        (_, Some(_)) => return Err(Failure::input(format!("xi goes with wilson, not with {name}"))),
        (named, None) => named.isotropic(beta, u0.unwrap_or(1.0), spec.flavours),
    };
    for (given, coefficient) in [
        (spec.plaquette, &mut action.plaquette),
        (spec.rectangle, &mut action.rectangle),
        (spec.parallelogram, &mut action.parallelogram),
    ] {
        *coefficient = given.unwrap_or(*coefficient);
    }
    Ok(action)
}

fn scheme(name: &str) -> Outcome<Scheme> {
    let all = Scheme::named(MINIMUM_NORM);
    let found = all.into_iter().find(|(known, _)| *known == name);
    let (_, scheme) = found.ok_or_else(|| Failure::input(format!("integrator '{name}': there are {}", names(&all))))?;
    Ok(scheme)
}

/// Names in a list.
fn names<T>(all: &[(&'static str, T)]) -> String {
    all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn quark(spec: &QuarkSpec) -> Outcome<QuarkGroup> {
    let (kind, flavours) = match spec.kind.as_str() {
        "two" => (FermionKind::Wilson, vec!["2".into()]),
        "one" => (FermionKind::Wilson, vec!["1".into()]),
        _ => (FermionKind::Staggered, spec.flavours.clone()),
    };
    let list = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    let count = |n: Option<usize>| n.map(|n| n.to_string());
    let text = |text: String| Some(text).filter(|text| !text.is_empty());
    // As an input file has them.
    let keys = [
        ("operator", text(spec.operator.clone())),
        ("level", count(Some(spec.level))),
        ("stout_rho", spec.stout_rho.map(|rho| rho.to_string())),
        ("stout_levels", count(spec.stout_levels)),
        ("hasenbusch_mass", text(list(&spec.heavier))),
        ("hasenbusch_mu", text(list(&spec.twists))),
        ("method", spec.method.clone()),
        ("guesses", count(spec.guesses)),
        ("mass", text(list(&spec.masses))),
        ("flavours", text(flavours.join(","))),
        ("pseudofermions", count(spec.pseudofermions)),
    ];
    let mut values = spec.parameters.clone();
    values.extend(keys.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))));
    let mut group = keys::quarks(kind, values)?;
    group.name.clone_from(&spec.title);
    Ok(group)
}

/// Returns the plan of a chain that Python describes.
fn planned(spec: &ChainSpec) -> Outcome<ChainPlan> {
    let quarks = spec.quarks.iter().map(quark).collect::<Outcome<Vec<_>>>()?;
    let (outer, inner) = (scheme(&spec.integrator)?, scheme(&spec.gauge_integrator)?);
    let level = |steps: &usize| LevelPlan { gauge: false, quarks: Vec::new(), scheme: outer, steps: *steps };
    let mut levels: Vec<LevelPlan> = spec.steps.iter().map(level).collect();
    let mut part = 0;
    for one in &quarks {
        for level in one.levels() {
            let count = levels.len();
            let Some(place) = levels.get_mut(level) else {
                return Err(Failure::input(format!(
                    "quarks are on level {level}, counted from 0, but steps has {count}"
                )));
            };
            place.quarks.push(part);
            part += 1;
        }
    }
    match spec.gauge_steps {
        Some(steps) if !quarks.is_empty() => {
            levels.push(LevelPlan { gauge: true, quarks: Vec::new(), scheme: inner, steps });
        }
        _ => levels.iter_mut().last().into_iter().for_each(|innermost| innermost.gauge = true),
    }
    let single = spec.precision == "single";
    let solver = |single, tol| ShiftedSolver { single, tol: vec![tol], together: false, max_iterations: 1_000_000 };
    let of_dynamics = spec.dynamics_tol.unwrap_or(if single { 1e-6 } else { 1e-8 });
    let solvers = [solver(single, of_dynamics), solver(false, spec.action_tol.unwrap_or(1e-12))];
    let plan = Plan {
        gauge: gauge_action(&spec.gauge)?,
        single_gauge_force: single,
        length: spec.length,
        levels,
        unitarise: Unitarise::default(),
        seed: spec.seed,
        friction: spec.friction,
        metropolis_from: spec.thermalise + 1,
    };
    Ok(ChainPlan { plan, quarks, solvers, precision: Precision::Double })
}

impl Running {
    fn new(domain: &Domain, gauge: &ferrite::field::host::HostGauge, planned: ChainPlan) -> Outcome<Self> {
        let thin = GaugeField::upload(domain, gauge)?;
        let links = EvolvingLinks::new(&thin, planned.precision)?;
        let (parts, intervals) = planned.quarks().parts_for(&links).map_err(without_action)?;
        drop(links);
        let chain = Course::new(planned.plan.clone(), &thin, planned.precision, parts)?;
        Ok(Running { chain, planned, intervals, has_moved: false, last: None })
    }
    /// Makes other rational functions where the spectrum has left their interval.
    fn look_at_spectrum(&mut self) -> Outcome {
        let quarks = self.planned.quarks();
        for seen in quarks.look_at_spectrum(self.chain.links(), &self.intervals)? {
            quarks.follow(&mut self.chain, &mut self.intervals, &seen).map_err(without_action)?;
        }
        Ok(())
    }
}

impl ChainPlan {
    fn quarks(&self) -> EnsembleQuarks<'_> {
        EnsembleQuarks { groups: &self.quarks, solvers: &self.solvers, seed: self.plan.seed }
    }
}

fn without_action(error: EnsembleError) -> Failure {
    match error {
        EnsembleError::Hmc(error) => error.into(),
        why @ EnsembleError::Functions { .. } => Failure::input(why.to_string()),
    }
}

#[pymethods]
impl Chain {
    /// A chain from these links on.
    #[staticmethod]
    fn of(py: Python<'_>, device: Py<Device>, links: &Links, spec: Typed<ChainSpec>) -> PyResult<Self> {
        let (planned, gauge, part) = (planned(&spec.0)?, links.gauge.clone(), links.part);
        let kept = device.get().keep(py, move |thread, _| Running::new(&thread.domain(&part)?, &gauge, planned))?;
        Ok(Chain { kept, device })
    }
    /// Makes a trajectory, unless it is the last one that was made: what became of it. Where it is stopped the chain is
    /// what it was before.
    fn trajectory(&self, py: Python<'_>, number: u32, reverse: bool) -> PyResult<Typed<Map<String, Value>>> {
        let kept = self.kept.number();
        self.device.get().run(py, move |thread, stop| {
            let running = thread.kept::<Running>(kept)?;
            if let Some(said) = running.last.as_ref().filter(|last| last.number == number) {
                return Ok(Typed(object(said)));
            }
            let asked = stop.clone();
            running.chain.stop_when(StopSignal::new(move || asked.is_asked()));
            let begin = std::time::Instant::now();
            if running.has_moved {
                running.look_at_spectrum()?;
                running.has_moved = false;
            }
            let outcome = running.chain.trajectory(number, None, reverse)?;
            let seconds = begin.elapsed().as_secs_f64();
            running.has_moved |= outcome.accepted;
            let plaquette = running.chain.links().thin(Precision::Double)?.plaquette()?.0;
            let said = MadeTrajectory {
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
            };
            Ok(Typed(object(running.last.insert(said))))
        })
    }
    /// The links as they are now.
    fn links(&self, py: Python<'_>) -> PyResult<Links> {
        let kept = self.kept.number();
        let gauge = self.device.get().run(py, move |thread, _| {
            let running = thread.kept::<Running>(kept)?;
            Ok(running.chain.links().thin(Precision::Double)?.download()?)
        })?;
        Ok(Links::new(Some(self.device.bind(py)), gauge)?)
    }
}
