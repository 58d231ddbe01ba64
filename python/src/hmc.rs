//! Hybrid Monte Carlo, a trajectory at a time.
use crate::device::{Device, Kept};
use crate::failure::{Failure, Outcome};
use crate::keys;
use crate::links::Links;
use crate::typed::Typed;
use ferrite::Precision;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::hmc::action::{ActionName, GaugeAction};
use ferrite::hmc::fermions::{Pseudofermions, QuarkOperator, QuarkSmearing, RationalFunctions, ShiftedSolver};
use ferrite::hmc::functions::{Quarks, Tolerances, rational_functions, rational_functions_of_norm};
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme, Unitarise};
use ferrite::hmc::links::{EvolvingLinks, StopSignal};
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::spectrum::{end_of_interval, interval, largest};
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::trajectory::{Chain as Course, LevelPlan, Plan};
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::one_flavour::OneFlavour;
use ferrite::hmc::wilson::spectrum::extremes;
use ferrite::hmc::wilson::two_flavours::SplitDeterminant;
use ferrite::hmc::wilson::{WilsonMethod, WilsonQuarks, WilsonSolver};
use ferrite::operators::fat_links::PathCoefficients;
use ferrite::operators::{Operator, Smearing, Tadpole};
use ferrite::rational::{self, Fraction};
use ferrite_records::ensemble::EnergyParts;
use ferrite_records::object;
use ferrite_tasks::ensemble::energies;
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
    quarks: Vec<QuarkPlan>,
    solvers: [ShiftedSolver; 2],
    precision: Precision,
}

/// Quarks, with what they need to become parts of the action.
#[derive(Clone)]
enum QuarkPlan {
    Two {
        quarks: WilsonQuarks,
        heavier: Vec<(WilsonQuarks, String)>,
        name: String,
        method: WilsonMethod,
        guesses: usize,
    },
    One {
        quarks: WilsonQuarks,
        name: String,
    },
    Staggered {
        operator: QuarkOperator,
        quarks: Vec<Quarks>,
        pseudofermions: usize,
        name: String,
    },
}

/// A chain with what its rational functions hold for.
struct Running {
    chain: Course,
    quarks: Vec<QuarkPlan>,
    /// Ends of the spectrum that functions are for, by quarks; of staggered ones the upper one alone.
    intervals: Vec<[f64; 2]>,
    /// The first part of the action of each.
    first: Vec<usize>,
    solver: WilsonSolver,
    seed: u64,
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

fn quark(spec: &QuarkSpec) -> Outcome<QuarkPlan> {
    let QuarkSpec { operator: name, title, .. } = spec;
    let (operator, _) = keys::resolve(name, spec.parameters.clone())?;
    let levels = spec.stout_levels.unwrap_or(1);
    let stout = spec.stout_rho.map(|rho| StoutSmearing { rho, levels, spatial: false });
    match (operator, spec.kind.as_str()) {
        (Operator::WilsonLike(operator), "two") => {
            let plain = WilsonQuarks { stout, ..WilsonQuarks::new(operator) };
            let heavier = spec.heavier.iter().filter_map(|mass| match Operator::from(operator).with_mass(*mass) {
                Operator::WilsonLike(operator) => Some((WilsonQuarks { operator, ..plain }, format!("m = {mass}"))),
                Operator::Staggered(_) => None,
            });
            let twisted =
                spec.twists.iter().map(|twist| (WilsonQuarks { twist: *twist, ..plain }, format!("mu = {twist}")));
            let method = match spec.method.as_deref().unwrap_or("cg") {
                "cg" => WilsonMethod::Cg,
                "bicgstab" => WilsonMethod::Bicgstab,
                "multigrid" => WilsonMethod::Multigrid,
                other => return Err(Failure::input(format!("method '{other}': there are cg, bicgstab and multigrid"))),
            };
            let guesses = spec.guesses.unwrap_or(0);
            Ok(QuarkPlan::Two {
                quarks: plain,
                heavier: heavier.chain(twisted).collect(),
                name: title.clone(),
                method,
                guesses,
            })
        }
        (Operator::WilsonLike(operator), "one") => {
            Ok(QuarkPlan::One { quarks: WilsonQuarks { stout, ..WilsonQuarks::new(operator) }, name: title.clone() })
        }
        (Operator::Staggered(operator), "staggered") => {
            let smearing = match (operator.smearing, stout) {
                (Smearing::Asqtad(Tadpole::Given(u0)), None) => QuarkSmearing::Paths(PathCoefficients::asqtad(u0)),
                (Smearing::Asqtad(Tadpole::Plaquette), None) => {
                    return Err(Failure::input("u0 = plaquette changes with the links: give a number"));
                }
                (Smearing::Hisq(epsilon), None) => QuarkSmearing::Hisq { epsilon },
                (Smearing::None, stout) => stout.map_or(QuarkSmearing::Thin, QuarkSmearing::Stout),
                _ => {
                    return Err(Failure::input(
                        "asqtad and HISQ quarks have smeared links of their own: leave stout_rho out",
                    ));
                }
            };
            let flavours: Vec<Fraction> = spec
                .flavours
                .iter()
                .map(|text| text.parse::<Fraction>().map_err(|why| Failure::input(format!("flavours {text}: {why}"))))
                .collect::<Outcome<_>>()?;
            let masses = &spec.masses;
            if masses.is_empty() || masses.len() != flavours.len() {
                return Err(Failure::input(format!("{} masses with {} flavours", masses.len(), flavours.len())));
            }
            let quarks = masses.iter().zip(flavours).map(|(mass, flavours)| Quarks { mass: *mass, flavours }).collect();
            let pseudofermions = spec.pseudofermions.unwrap_or(1);
            let operator = QuarkOperator { params: operator.params, smearing, theta: operator.theta };
            Ok(QuarkPlan::Staggered { operator, quarks, pseudofermions, name: title.clone() })
        }
        _ => Err(Failure::input(format!(
            "{name} quarks cannot be made so: two and one flavours are for Wilson-like ones"
        ))),
    }
}

impl QuarkPlan {
    /// How many parts of the action it has.
    fn parts(&self) -> usize {
        match self {
            QuarkPlan::Two { quarks, heavier, .. } => 1 + heavier.len() + usize::from(quarks.has_determinant()),
            QuarkPlan::One { quarks, .. } => 1 + usize::from(quarks.has_determinant()),
            QuarkPlan::Staggered { .. } => 1,
        }
    }
    /// Rational functions for a spectrum.
    fn functions(&self, interval: [f64; 2]) -> Outcome<Option<RationalFunctions>> {
        let tolerances = Tolerances::default();
        let made = match self {
            QuarkPlan::Two { .. } => return Ok(None),
            QuarkPlan::One { .. } => rational_functions_of_norm(1, 1, interval, tolerances, rational::approximate_to),
            QuarkPlan::Staggered { quarks, pseudofermions, .. } => {
                rational_functions(quarks, *pseudofermions, interval[1], tolerances, rational::approximate_to)
            }
        };
        made.map(Some).map_err(|why| Failure::input(format!("no rational function: {why}")))
    }
    /// Ends of the spectrum; `None` without a rational function.
    fn spectrum(&self, links: &EvolvingLinks, solver: WilsonSolver, seed: u64) -> Outcome<Option<[f64; 2]>> {
        match self {
            QuarkPlan::Two { .. } => Ok(None),
            QuarkPlan::One { quarks, .. } => Ok(Some(extremes(links, quarks, solver, seed)?)),
            QuarkPlan::Staggered { operator, .. } => Ok(Some([0.0, largest(links, operator, seed)?])),
        }
    }
    /// The interval of its rational functions for a spectrum with these ends.
    fn interval(&self, found: [f64; 2]) -> [f64; 2] {
        match self {
            // An interval has a length, whatever the links are.
            QuarkPlan::Staggered { .. } => [0.0, end_of_interval(found[1].max(1.0))],
            _ => interval(found),
        }
    }
    /// Parts of the action; `first` is the number of pseudofermions before them.
    fn make(
        &self,
        domain: &Domain,
        solvers: &[ShiftedSolver; 2],
        interval: [f64; 2],
        first: u32,
    ) -> Outcome<Vec<Box<dyn Monomial>>> {
        let mut parts: Vec<Box<dyn Monomial>> = Vec::new();
        let functions = self.functions(interval)?;
        match (self, functions) {
            (QuarkPlan::Two { quarks, heavier, name, method, guesses }, _) => {
                let precision = solvers[0].precision();
                let split = SplitDeterminant {
                    name: name.clone(),
                    quarks: *quarks,
                    heavier: heavier.clone(),
                    solvers: [&solvers[0], &solvers[1]].map(|solver| wilson_solver(solver, precision, *method)),
                    precision,
                    guesses: *guesses,
                    multigrid: (*method == WilsonMethod::Multigrid).then(Default::default),
                };
                for part in split.parts(domain, first)? {
                    parts.push(Box::new(part));
                }
                if quarks.has_determinant() {
                    parts.push(Box::new(BlockDeterminant::new(format!("{name}, determinant"), *quarks, 2)));
                }
            }
            (QuarkPlan::One { quarks, name }, Some(functions)) => {
                let part = OneFlavour::new(domain, name.clone(), *quarks, functions, solvers.clone(), first, 1)?;
                parts.push(Box::new(part));
                if quarks.has_determinant() {
                    parts.push(Box::new(BlockDeterminant::new(format!("{name}, determinant"), *quarks, 1)));
                }
            }
            (QuarkPlan::Staggered { operator, pseudofermions, name, .. }, Some(functions)) => {
                let (name, count) = (name.clone(), *pseudofermions);
                let made = Pseudofermions::new(domain, name, *operator, functions, solvers.clone(), first, count)?;
                parts.push(Box::new(made));
            }
            (_, None) => return Err(Failure::other("no rational function was made")),
        }
        Ok(parts)
    }
}

fn wilson_solver(solver: &ShiftedSolver, precision: Precision, method: WilsonMethod) -> WilsonSolver {
    WilsonSolver { method, precision, tol: solver.tol[0], max_iterations: solver.max_iterations }
}

fn planned(spec: &ChainSpec) -> Outcome<ChainPlan> {
    let quarks = spec.quarks.iter().map(quark).collect::<Outcome<Vec<_>>>()?;
    let (outer, inner) = (scheme(&spec.integrator)?, scheme(&spec.gauge_integrator)?);
    let level = |steps: &usize| LevelPlan { gauge: false, quarks: Vec::new(), scheme: outer, steps: *steps };
    let mut levels: Vec<LevelPlan> = spec.steps.iter().map(level).collect();
    let mut part = 0;
    for (k, one) in quarks.iter().enumerate() {
        let level = spec.quarks[k].level;
        let count = levels.len();
        let Some(level) = levels.get_mut(level) else {
            return Err(Failure::input(format!("quarks are on level {level}, counted from 0, but steps has {count}")));
        };
        level.quarks.extend(part..part + one.parts());
        part += one.parts();
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
        let ChainPlan { plan, quarks, solvers, precision } = planned;
        let (thin, seed) = (GaugeField::upload(domain, gauge)?, plan.seed);
        let solver = WilsonSolver { tol: 1e-6, ..wilson_solver(&solvers[0], solvers[0].precision(), WilsonMethod::Cg) };
        let (mut parts, mut intervals, mut first, mut fields) = (Vec::new(), Vec::new(), Vec::new(), 0);
        {
            let links = EvolvingLinks::new(&thin, precision)?;
            for one in &quarks {
                let bounds = one.spectrum(&links, solver, seed)?.map_or([0.0, 1.0], |found| one.interval(found));
                let made = one.make(domain, &solvers, bounds, fields)?;
                fields += made.iter().map(|part| part.count() as u32).sum::<u32>();
                first.push(parts.len());
                parts.extend(made);
                intervals.push(bounds);
            }
        }
        let chain = Course::new(plan, &thin, precision, parts)?;
        Ok(Running { chain, quarks, intervals, first, solver, seed, has_moved: false, last: None })
    }
    /// Makes other rational functions where the spectrum has left their interval.
    fn look_at_spectrum(&mut self) -> Outcome {
        for (k, one) in self.quarks.iter().enumerate() {
            let Some(found) = one.spectrum(self.chain.links(), self.solver, self.seed)? else { continue };
            let [low, high] = self.intervals[k];
            let staggered = matches!(one, QuarkPlan::Staggered { .. });
            if found[1] <= high && (staggered || found[0] >= low) {
                continue;
            }
            let wanted = one.interval(found);
            self.intervals[k] = [wanted[0].min(low), wanted[1].max(high)];
            let functions = one.functions(self.intervals[k])?;
            if let (Some(functions), Some(part)) = (functions, self.chain.quarks().nth(self.first[k])) {
                part.set_functions(functions);
            }
        }
        Ok(())
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
