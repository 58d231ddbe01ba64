//! Hybrid Monte Carlo, a trajectory at a time.
use crate::device::{Device, Kept};
use crate::failure::{Failure, Outcome};
use crate::keys;
use crate::links::Links;
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
use pyo3::prelude::*;
use serde_json::{Value, json};
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
    last: Option<(u32, String)>,
}

fn number(object: &Value, key: &str) -> Outcome<Option<f64>> {
    match &object[key] {
        Value::Null => Ok(None),
        value => value.as_f64().map(Some).ok_or_else(|| Failure::input(format!("{key} = {value} is not a number"))),
    }
}

fn needed(object: &Value, key: &str) -> Outcome<f64> {
    number(object, key)?.ok_or_else(|| Failure::input(format!("{key} is missing")))
}

fn gauge_action(object: &Value) -> Outcome<GaugeAction> {
    let (beta, name) = (needed(object, "beta")?, object["name"].as_str().unwrap_or_default());
    let u0 = number(object, "u0")?;
    let Some((_, named)) = ActionName::ALL.into_iter().find(|(known, _)| *known == name) else {
        return Err(Failure::input(format!("gauge action '{name}': there are {}", names(&ActionName::ALL))));
    };
    if named == ActionName::LuscherWeisz && u0.is_none() {
        return Err(Failure::input("luscher-weisz needs u0"));
    }
    let mut action = match (named, number(object, "xi")?) {
        (ActionName::Wilson, Some(xi)) => GaugeAction::anisotropic_wilson(beta, xi),
        (_, Some(_)) => return Err(Failure::input(format!("xi goes with wilson, not with {name}"))),
        (named, None) => named.isotropic(beta, u0.unwrap_or(1.0), number(object, "flavours")?),
    };
    for (key, coefficient) in [
        ("plaquette", &mut action.plaquette),
        ("rectangle", &mut action.rectangle),
        ("parallelogram", &mut action.parallelogram),
    ] {
        *coefficient = number(object, key)?.unwrap_or(*coefficient);
    }
    Ok(action)
}

fn scheme(object: &Value, key: &str) -> Outcome<Scheme> {
    let lambda = number(object, "lambda")?.unwrap_or(MINIMUM_NORM);
    let (all, name) = (Scheme::named(lambda), object[key].as_str().unwrap_or("omelyan"));
    let found = all.into_iter().find(|(known, _)| *known == name);
    let (_, scheme) = found.ok_or_else(|| Failure::input(format!("integrator '{name}': there are {}", names(&all))))?;
    Ok(scheme)
}

/// Names in a list.
fn names<T>(all: &[(&'static str, T)]) -> String {
    all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn quark(object: &Value) -> Outcome<QuarkPlan> {
    let name = object["operator"].as_str().unwrap_or_default();
    let parameters: BTreeMap<String, String> =
        serde_json::from_value(object["parameters"].clone()).map_err(Failure::other)?;
    let (operator, _) = keys::resolve(name, parameters)?;
    let levels = object["stout_levels"].as_u64().unwrap_or(1) as usize;
    let stout = number(object, "stout_rho")?.map(|rho| StoutSmearing { rho, levels, spatial: false });
    let title = object["title"].as_str().unwrap_or(name).to_string();
    let list =
        |key: &str| -> Vec<f64> { object[key].as_array().into_iter().flatten().filter_map(Value::as_f64).collect() };
    match (operator, object["kind"].as_str().unwrap_or_default()) {
        (Operator::WilsonLike(operator), "two") => {
            let plain = WilsonQuarks { stout, ..WilsonQuarks::new(operator) };
            let heavier =
                list("heavier").into_iter().filter_map(|mass| match Operator::from(operator).with_mass(mass) {
                    Operator::WilsonLike(operator) => Some((WilsonQuarks { operator, ..plain }, format!("m = {mass}"))),
                    Operator::Staggered(_) => None,
                });
            let twisted =
                list("twists").into_iter().map(|twist| (WilsonQuarks { twist, ..plain }, format!("mu = {twist}")));
            let method = match object["method"].as_str().unwrap_or("cg") {
                "cg" => WilsonMethod::Cg,
                "bicgstab" => WilsonMethod::Bicgstab,
                "multigrid" => WilsonMethod::Multigrid,
                other => return Err(Failure::input(format!("method '{other}': there are cg, bicgstab and multigrid"))),
            };
            let guesses = object["guesses"].as_u64().unwrap_or(0) as usize;
            Ok(QuarkPlan::Two {
                quarks: plain,
                heavier: heavier.chain(twisted).collect(),
                name: title,
                method,
                guesses,
            })
        }
        (Operator::WilsonLike(operator), "one") => {
            Ok(QuarkPlan::One { quarks: WilsonQuarks { stout, ..WilsonQuarks::new(operator) }, name: title })
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
            let flavours: Vec<Fraction> = object["flavours"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|text| text.parse::<Fraction>().map_err(|why| Failure::input(format!("flavours {text}: {why}"))))
                .collect::<Outcome<_>>()?;
            let masses = list("masses");
            if masses.is_empty() || masses.len() != flavours.len() {
                return Err(Failure::input(format!("{} masses with {} flavours", masses.len(), flavours.len())));
            }
            let quarks = masses.into_iter().zip(flavours).map(|(mass, flavours)| Quarks { mass, flavours }).collect();
            let pseudofermions = object["pseudofermions"].as_u64().unwrap_or(1) as usize;
            let operator = QuarkOperator { params: operator.params, smearing, theta: operator.theta };
            Ok(QuarkPlan::Staggered { operator, quarks, pseudofermions, name: title })
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

/// A chain as Python describes it.
fn planned(spec: &Value) -> Outcome<ChainPlan> {
    let quarks = spec["quarks"].as_array().into_iter().flatten().map(quark).collect::<Outcome<Vec<_>>>()?;
    let steps: Vec<usize> = serde_json::from_value(spec["steps"].clone()).map_err(Failure::other)?;
    let gauge_steps = spec["gauge_steps"].as_u64().map(|steps| steps as usize);
    let (outer, inner) = (scheme(spec, "integrator")?, scheme(spec, "gauge_integrator")?);
    let mut levels: Vec<LevelPlan> =
        steps.into_iter().map(|steps| LevelPlan { gauge: false, quarks: Vec::new(), scheme: outer, steps }).collect();
    let mut part = 0;
    for (k, one) in quarks.iter().enumerate() {
        let level = spec["quarks"][k]["level"].as_u64().unwrap_or(0) as usize;
        let count = levels.len();
        let Some(level) = levels.get_mut(level) else {
            return Err(Failure::input(format!("quarks are on level {level}, counted from 0, but steps has {count}")));
        };
        level.quarks.extend(part..part + one.parts());
        part += one.parts();
    }
    match gauge_steps {
        Some(steps) if !quarks.is_empty() => {
            levels.push(LevelPlan { gauge: true, quarks: Vec::new(), scheme: inner, steps });
        }
        _ => levels.iter_mut().last().into_iter().for_each(|innermost| innermost.gauge = true),
    }
    let single = spec["precision"] == "single";
    let solver = |single, tol| ShiftedSolver { single, tol: vec![tol], together: false, max_iterations: 1_000_000 };
    let of_dynamics = number(spec, "dynamics_tol")?.unwrap_or(if single { 1e-6 } else { 1e-8 });
    let solvers = [solver(single, of_dynamics), solver(false, number(spec, "action_tol")?.unwrap_or(1e-12))];
    let plan = Plan {
        gauge: gauge_action(&spec["gauge"])?,
        single_gauge_force: single,
        length: needed(spec, "length")?,
        levels,
        unitarise: Unitarise::default(),
        seed: spec["seed"].as_u64().ok_or_else(|| Failure::input("seed: a whole number from 0"))?,
        friction: number(spec, "friction")?,
        metropolis_from: spec["thermalise"].as_u64().unwrap_or(0) as u32 + 1,
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
    /// A chain from these links on, described by JSON.
    #[staticmethod]
    fn of(py: Python<'_>, device: Py<Device>, links: &Links, spec: &str) -> PyResult<Self> {
        let spec: Value = serde_json::from_str(spec).map_err(Failure::other)?;
        let (planned, gauge, part) = (planned(&spec)?, links.gauge.clone(), links.part);
        let kept = device.get().keep(py, move |thread, _| Running::new(&thread.domain(&part)?, &gauge, planned))?;
        Ok(Chain { kept, device })
    }
    /// Makes a trajectory, unless it is the last one that was made: what became of it, as JSON. Where it is stopped the chain is
    /// what it was before.
    fn trajectory(&self, py: Python<'_>, number: u32, reverse: bool) -> PyResult<String> {
        let kept = self.kept.number();
        self.device.get().run(py, move |thread, stop| {
            let running = thread.kept::<Running>(kept)?;
            if let Some((_, said)) = running.last.as_ref().filter(|(last, _)| *last == number) {
                return Ok(said.clone());
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
            let parts = |energies: &ferrite::hmc::trajectory::Energies| {
                json!({ "gauge": energies.gauge, "kinetic": energies.kinetic, "fermions": energies.fermions })
            };
            let said = json!({
                "number": number,
                "delta_h": outcome.delta,
                "accepted": outcome.accepted,
                "start": parts(&outcome.start),
                "end": parts(&outcome.end),
                "iterations": outcome.iterations,
                "irreversibility": outcome.irreversibility,
                "failure": outcome.failure,
                "plaquette": plaquette.mean,
                "seconds": seconds,
            });
            running.last = Some((number, said.to_string()));
            Ok(said.to_string())
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
