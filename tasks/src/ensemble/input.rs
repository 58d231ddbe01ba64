//! Input of `ferrite rhmc`, checked.
use super::chain::{GaugeParameters, Integrators};
use super::precision::{PrecisionKeys, precisions};
use super::quarks::EnsembleQuarks;
use super::table::InTable;
use crate::batch::BatchSize;
use crate::batch::{self, BatchChoice};
use crate::device::DeviceChoice;
use crate::keys;
use crate::{Failure, Outcome};
use ferrite::hmc::action::{ActionName, GaugeAction};
use ferrite::hmc::fermions::{QuarkOperator, ShiftedSolver};
use ferrite::hmc::functions::Quarks;
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme, Unitarise};
use ferrite::hmc::quarks::{QuarkGroup, quark_keys};
use ferrite::hmc::trajectory::{LevelPlan, MOST_LEVELS, MOST_STEPS, Plan};
use ferrite::lattice::Lattice;
use ferrite::operators::{names_of_operators, operator_named};
use ferrite::{FermionKind, Precision};
use ferrite_inputs::values::{
    Any, AnyWord, Count, CountList, Divisor, LatticeExtents, NonNegative, Number, Residual, Text, Word,
};
use ferrite_inputs::{Given, Input, InputKind, Schema, ValuePlace, rules, vocabularies};
use ferrite_report::records::run_settings;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

vocabularies! {
    /// Values of `gauge.action`.
    Actions: ActionName = ActionName::ALL;
    /// Values of `trajectory.unitarise`.
    Unitarisations: Unitarise = [("always", Unitarise::Always), ("never", Unitarise::Never)];
}
rules! {
    /// Parameter λ of minimum-norm integrators.
    Lambda: "a number above 0 and below 0.5", |x| x > 0.0 && x < 0.5;
}

/// Largest number of a trajectory that users may request.
const LAST: usize = u32::MAX as usize - 1;

/// Keys outside tables.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct EnsembleKeys {
    lattice: Given<LatticeExtents>,
    trajectories: Given<Count<0, LAST>>,
    seed: Given<Count<0, { usize::MAX }>>,
    start: Given<Text>,
    thermalise: Given<Count<0, LAST>>,
    save_every: Given<Count<1, LAST>>,
}

/// Keys of the table `trajectory`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct TrajectoryKeys {
    length: Given<Number<Divisor>>,
    friction: Given<Number<Divisor>>,
    steps: Given<CountList<1, MOST_STEPS>>,
    integrator: Given<AnyWord>,
    lambda: Given<Number<Lambda>>,
    gauge_steps: Given<Count<1, MOST_STEPS>>,
    gauge_integrator: Given<AnyWord>,
    unitarise: Given<Word<Unitarisations>>,
}

/// Keys of the table `gauge`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct GaugeKeys {
    action: Given<Word<Actions>>,
    beta: Given<Number<NonNegative>>,
    u0: Given<Number<Divisor>>,
    u0_time: Given<Number<Divisor>>,
    xi: Given<Number<Divisor>>,
    flavours: Given<Number<NonNegative>>,
    plaquette: Given<Number<Any>>,
    rectangle: Given<Number<Any>>,
    parallelogram: Given<Number<Any>>,
    /// Earlier name of `parallelogram`; its use is an error that gives the present name.
    chair: Given<Number<Any>>,
}

/// Keys of the table `measure`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct MeasureKeys {
    condensate: Given<Count<0, 1000>>,
    condensate_tol: Given<Number<Residual>>,
    batch: Given<BatchSize>,
    every: Given<Count<1, LAST>>,
    reversibility: Given<Count<0, LAST>>,
    identities: Given<Count<0, LAST>>,
    kernels: Given<Count<0, LAST>>,
}

/// Schema of the input: all keys with their tables.
pub static ENSEMBLE_SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let own = Schema::new(Some(InputKind::Ensemble))
        .with::<EnsembleKeys>("")
        .with::<TrajectoryKeys>("trajectory")
        .with::<GaugeKeys>("gauge")
        .with_keys("fermion.*", quark_keys())
        .with::<PrecisionKeys>("precision")
        .with::<MeasureKeys>("measure");
    keys::with_every_input(own)
});

/// Links from which an ensemble starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartLinks {
    /// Unit links.
    Cold,
    /// Independent random links, distributed with the Haar measure.
    Hot,
    /// Links of the file with this path.
    File(PathBuf),
}

/// Settings of the measurements in an ensemble.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Number of noise vectors for each condensate.
    pub condensate: usize,
    /// Requested tolerance of the solves for condensates.
    pub condensate_tol: f64,
    /// Requested number of noise vectors that are solved together.
    pub batch: BatchChoice,
    /// Number of trajectories from one measurement to the next.
    pub every: usize,
    /// Number of trajectories from one reversibility check to the next; 0 for never.
    pub reversibility: usize,
    /// Number of trajectories from one measurement of identities to the next; 0 for never.
    pub identities: usize,
    /// Choice of the trajectories whose kernels are timed.
    pub kernels: Timed,
}

/// Choice of the trajectories whose kernels are timed. Timing makes them slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// The second trajectory after each start of the program. The first, in which memory is allocated and kernels are loaded, is timed only
    /// if there is no second one.
    Second,
    /// Every trajectory whose number is a multiple of this number; none for 0.
    Every(usize),
}

/// Checked input of an ensemble.
#[derive(Clone, Debug)]
pub struct EnsembleInput {
    /// The whole lattice.
    pub lattice: Lattice,
    /// Number of the last trajectory.
    pub trajectories: u32,
    /// Links from which the ensemble starts.
    pub start: StartLinks,
    /// Number of trajectories from one kept configuration to the next.
    pub save_every: u32,
    /// Whether the links and momenta are stored in single precision; otherwise in double precision.
    pub single_links: bool,
    /// Name of the gauge action.
    pub gauge_action: String,
    /// Plan of the chain: gauge action, integrator, seed, and number of the first trajectory with a Metropolis step.
    pub plan: Plan,
    /// Quark groups, one for each table `[[fermion]]`; all staggered or all Wilson-like.
    pub groups: Vec<QuarkGroup>,
    /// Solvers of molecular dynamics (first), and of heat bath and Metropolis step (second).
    pub solvers: [ShiftedSolver; 2],
    /// Settings of the measurements.
    pub measure: Measure,
    /// Device on which to compute.
    pub device: DeviceChoice,
    /// Keys of the input that affect the chain, with their values as typed.
    pub keys: BTreeMap<String, String>,
}

impl EnsembleInput {
    /// Returns the precision of links and momenta.
    pub fn precision(&self) -> Precision {
        if self.single_links { Precision::Single } else { Precision::Double }
    }
    /// Reads the input file `path`, the assignments `set` and the keys that `add` adds. Fails with a list of all mistakes.
    pub fn read(path: &Path, set: &[String], add: impl FnOnce(&mut Input)) -> Outcome<Self> {
        let mut input = Input::new(&ENSEMBLE_SCHEMA);
        input.file(path)?;
        input.set(set);
        add(&mut input);
        Self::of(&mut input, &path.display().to_string())
    }
    /// Converts an input to the settings of an ensemble. Fails with a list of all mistakes; `what` names the input in the message.
    pub fn of(s: &mut Input, what: &str) -> Outcome<Self> {
        let device = DeviceChoice::of(s);
        let keys: EnsembleKeys = s.read("");
        let (lattice, trajectories, seed) = (keys.lattice.value(), keys.trajectories.value(), keys.seed.value());
        s.needed("lattice", "lattice = [16, 16, 16, 32]");
        s.needed("trajectories", "trajectories = 100");
        s.needed("seed", "seed = 1");
        let start = match keys.start.get().map(String::as_str) {
            None | Some("cold") => StartLinks::Cold,
            Some("hot") => StartLinks::Hot,
            Some(file) => StartLinks::File(file.into()),
        };
        let (thermalise, save_every) = (keys.thermalise.or(0), keys.save_every.or(1));
        let gauge = gauge_action(s);
        let gauge_action = s.get("gauge.action").map_or_else(String::new, |name| name.text().into());
        let tables = s.tables("fermion");
        let resolved = (0..tables).filter_map(|number| QuarkGroup::resolve(&mut InTable::new(s, number)));
        let mut groups: Vec<QuarkGroup> = resolved.collect();
        let kinds = kinds(s, tables);
        if kinds.len() > 1 {
            s.missing("staggered and Wilson-like quarks cannot be combined: give tables [[fermion]] of one kind");
        }
        number_duplicates(groups.iter_mut().map(|group| &mut group.name));
        let of_parts: Vec<usize> = groups.iter().flat_map(|group| group.levels()).collect();
        let trajectory: TrajectoryKeys = s.read("trajectory");
        let (length, levels, unitarise) = integrator(s, &trajectory, tables, &of_parts);
        let are_wilson_like = groups.iter().any(|group| group.staggered().is_none());
        let friction = trajectory.friction.value();
        let (single_links, single_gauge_force, solvers) = precisions(s, &groups);
        let keys: MeasureKeys = s.read("measure");
        let measure = Measure {
            condensate: keys.condensate.or(usize::from(!are_wilson_like)),
            condensate_tol: keys.condensate_tol.or(1e-8),
            batch: batch::choice(&keys.batch),
            every: keys.every.or(1),
            reversibility: keys.reversibility.or(0),
            identities: keys.identities.or(0),
            kernels: keys.kernels.value().map_or(Timed::Second, Timed::Every),
        };
        if tables == 0 {
            without_quarks(s);
        } else if are_wilson_like {
            for key in ["measure.condensate", "measure.condensate-tol", "measure.batch"] {
                if let Some(setting) = s.get(key) {
                    s.wrong(&setting, format!("condensates are measured for staggered quarks only: remove {key}"));
                }
            }
        }
        s.finish(what)?;
        let (Some(lattice), Some(trajectories), Some(seed), Some(gauge)) = (lattice, trajectories, seed, gauge) else {
            return Err(Failure::refused(format!("{what} is incomplete")));
        };
        let plan = Plan {
            gauge,
            single_gauge_force,
            length,
            levels,
            unitarise,
            friction,
            seed: seed as u64,
            metropolis_from: thermalise as u32 + 1,
        };
        Ok(EnsembleInput {
            lattice,
            trajectories: trajectories as u32,
            start,
            save_every: save_every as u32,
            single_links,
            gauge_action,
            plan,
            groups,
            solvers,
            measure,
            device,
            keys: s.typed(run_settings::has_effect),
        })
    }
    /// Returns the quark groups with their solvers and the seed.
    pub fn quarks(&self) -> EnsembleQuarks<'_> {
        EnsembleQuarks { groups: &self.groups, solvers: &self.solvers, seed: self.plan.seed }
    }
    /// Returns whether there are Wilson-like quarks.
    pub fn has_wilson_like(&self) -> bool {
        self.groups.iter().any(|group| group.staggered().is_none())
    }
    /// Returns the intervals of the rational functions of the quark groups, whose ends are the numbers `bounds` of a state; `None` if there
    /// are too many or too few numbers. States of earlier versions, which had staggered quarks only, contain the upper ends alone.
    pub fn intervals(&self, bounds: &[f64]) -> Option<Vec<[f64; 2]>> {
        match bounds.len() {
            n if n == 2 * self.groups.len() => Some(bounds.as_chunks().0.to_vec()),
            n if n == self.groups.len() => Some(bounds.iter().map(|end| [0.0, *end]).collect()),
            _ => None,
        }
    }
    /// Returns the operator and the quark flavours of each group of staggered quarks.
    pub fn staggered(&self) -> impl Iterator<Item = (&QuarkOperator, &[Quarks])> {
        self.groups.iter().filter_map(|group| group.staggered())
    }
    /// Returns the names of the quark groups.
    pub fn names(&self) -> Vec<&str> {
        self.groups.iter().map(|group| group.name.as_str()).collect()
    }
    /// Returns the length, in sites, of the longest hop or straight path of links: 3 for fat and long links, otherwise 1.
    pub fn hops(&self) -> usize {
        if self.staggered().any(|(operator, _)| operator.smearing.is_improved()) { 3 } else { 1 }
    }
    /// Returns whether the ensemble contains quarks with this operator and mass: whether the sum of their flavours over all groups is
    /// positive. Flavours in a denominator count as negative.
    pub fn has_flavours(&self, operator: &QuarkOperator, mass: f64) -> bool {
        let of_operator = self.staggered().filter(|(own, _)| *own == operator);
        let all = of_operator.flat_map(|(_, quarks)| quarks).filter(|quarks| quarks.mass == mass);
        all.map(|quarks| quarks.flavours.value()).sum::<f64>() > 1e-9
    }
}

/// Returns the types of fermions that the tables `[[fermion]]` name, each once.
fn kinds(s: &Input, tables: usize) -> Vec<FermionKind> {
    let named = |number| s.get(&format!("fermion.{number}.operator"));
    let kind = |name: ValuePlace| operator_named(name.text()).map_or(FermionKind::Staggered, |operator| operator.kind);
    let mut kinds: Vec<_> = (0..tables).filter_map(named).map(kind).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Adds a number to the names of quark groups that have the same name.
fn number_duplicates<'a>(names: impl Iterator<Item = &'a mut String>) {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        let same = seen.iter().filter(|other| *other == name).count();
        seen.push(name.clone());
        if same > 0 {
            *name += &format!(" ({})", same + 1);
        }
    }
}

fn gauge_action(s: &mut Input) -> Option<GaugeAction> {
    let keys: GaugeKeys = s.read("gauge");
    let example = "gauge.action = \"wilson\", \"symanzik-tree\", \"luscher-weisz\", \"iwasaki\" or \"dbw2\"";
    s.needed("gauge.action", example);
    s.needed("gauge.beta", "gauge.beta = 5.6");
    let (action, xi) = (keys.action.value(), keys.xi.value());
    if action == Some(ActionName::LuscherWeisz) {
        s.needed("gauge.u0", "gauge.u0 = 0.86");
    }
    if let Some(action) = action {
        refuse_what_it_has_not(s, action, xi.is_some());
    }
    let (action, beta) = (action?, keys.beta.value()?);
    let parameters = GaugeParameters {
        beta,
        u0: keys.u0.value(),
        u0_time: keys.u0_time.value(),
        xi,
        flavours: keys.flavours.value(),
        plaquette: keys.plaquette.value(),
        rectangle: keys.rectangle.value(),
        parallelogram: keys.parallelogram.value(),
    };
    s.wrong(
        &keys.chair,
        "the loop (μ, ν, ρ, −μ, −ν, −ρ) is a parallelogram: write gauge.parallelogram instead of gauge.chair",
    );
    Some(parameters.action(action))
}

/// Notes keys that a gauge action does not use as mistakes.
fn refuse_what_it_has_not(s: &mut Input, action: ActionName, anisotropic: bool) {
    let mut refuse = |unless: bool, key: &str, why: &str| {
        if let (false, Some(setting)) = (unless, s.get(key)) {
            s.wrong(&setting, why);
        }
    };
    refuse(
        action.has_tadpole_factor(),
        "gauge.u0",
        "only \"symanzik-tree\" and \"luscher-weisz\" have a tadpole factor: remove gauge.u0",
    );
    let has_quarks = action == ActionName::LuscherWeisz;
    refuse(
        has_quarks,
        "gauge.flavours",
        "only \"luscher-weisz\" has coefficients that depend on quarks: remove gauge.flavours",
    );
    refuse(
        action.can_be_anisotropic(),
        "gauge.xi",
        "only \"wilson\" and \"symanzik-tree\" can be anisotropic: remove gauge.xi",
    );
    let has_time = action == ActionName::SymanzikTree && anisotropic;
    refuse(
        has_time,
        "gauge.u0-time",
        "only \"symanzik-tree\" with gauge.xi has a separate tadpole factor in t: remove gauge.u0-time",
    );
    let key = "gauge.parallelogram";
    refuse(!anisotropic, key, "anisotropic actions have no parallelograms: remove gauge.parallelogram or gauge.xi");
}

/// Returns the names that `operator` of a table `[[fermion]]` accepts.
pub fn quark_operators() -> impl Iterator<Item = &'static str> {
    names_of_operators().map(|(name, _)| name)
}

/// Keys that have no effect without quarks, with the reason.
const OF_QUARKS: [(&str, &str); 7] = [
    ("precision.dynamics", "no solver is used"),
    ("precision.dynamics-tol", "no solver is used"),
    ("precision.action", "no solver is used"),
    ("precision.action-tol", "no solver is used"),
    ("measure.condensate", "there are no condensates"),
    ("measure.condensate-tol", "there are no condensates"),
    ("measure.batch", "there are no condensates"),
];

/// Notes keys that have no effect without quarks as mistakes.
fn without_quarks(s: &mut Input) {
    for (key, why) in OF_QUARKS {
        if let Some(setting) = s.get(key) {
            s.wrong(&setting, format!("without quarks, {why}: remove {key}, or give a table [[fermion]]"));
        }
    }
}

/// Returns the length of a trajectory, the levels of the integrator, and when links are made unitary. `of_parts` has the level of each part
/// of the fermion action.
fn integrator(
    s: &mut Input,
    keys: &TrajectoryKeys,
    groups: usize,
    of_parts: &[usize],
) -> (f64, Vec<LevelPlan>, Unitarise) {
    let (length, all_steps) = (keys.length.or(1.0), keys.steps.value());
    // `product` returns the number of steps that the innermost level of quarks makes in a trajectory.
    let product = |steps: &Vec<usize>| steps.iter().fold(1usize, |product, steps| product.saturating_mul(*steps));
    let steps = all_steps.as_ref().map(product);
    if let Some(all) = &all_steps {
        if all.len() > 1 && groups == 0 {
            s.wrong(&keys.steps, "without quarks, there is only one level: give one number");
        } else if all.len() > MOST_LEVELS {
            let why =
                format!("{} levels are given, but at most {MOST_LEVELS} are allowed: give fewer numbers", all.len());
            s.wrong(&keys.steps, why);
        } else if product(all) > MOST_STEPS {
            let why = format!(
                "the product is {} steps, but a trajectory has at most {MOST_STEPS}: use fewer steps",
                product(all)
            );
            s.wrong(&keys.steps, why);
        }
        if let Some(level) = of_parts.iter().find(|level| **level >= all.len()) {
            let why = format!(
                "some quarks are on level {level}, but the last level in trajectory.steps is {}, counted from 0: \
                 choose a lower level, or add a number to trajectory.steps",
                all.len().saturating_sub(1)
            );
            s.wrong(&keys.steps, why);
        }
    }
    s.needed("trajectory.steps", "trajectory.steps = 20");
    let lambda = keys.lambda.or(MINIMUM_NORM);
    let schemes = Scheme::named(lambda);
    let outer = s.meaning(&keys.integrator, &schemes).unwrap_or(Scheme::Omelyan { lambda });
    let inner = s.meaning(&keys.gauge_integrator, &schemes).unwrap_or(outer);
    let gauge_steps = keys.gauge_steps.value();
    if let (Some(outer), Some(inner)) = (steps, gauge_steps)
        && outer * inner > MOST_STEPS
    {
        let why = format!(
            "{inner} steps of the gauge action in each of {outer} steps are {} steps, but a trajectory has at most \
             {MOST_STEPS}: use fewer steps",
            outer * inner
        );
        s.wrong(&keys.gauge_steps, why);
    }
    let interleaved = |scheme| matches!(scheme, Scheme::ThreeGaugeOneFermion { .. });
    for (key, scheme) in [("trajectory.gauge-steps", outer), ("trajectory.gauge-integrator", inner)] {
        if let (true, Some(place)) = (interleaved(scheme) && groups > 0, s.get(key)) {
            let why = "3g1f neither has nor can be an inner level, because it places the steps of the gauge action \
                       between those of the quarks: remove the key, or choose another integrator";
            s.wrong(&place, why);
        }
    }
    if let (true, Some([_, _, ..])) = (interleaved(outer), all_steps.as_deref()) {
        s.wrong(&keys.steps, "3g1f has only one level: give one number");
    }
    // A key that has no effect with the other keys is a mistake.
    let nested = s.was_given("trajectory.gauge-steps");
    for key in ["trajectory.gauge-steps", "trajectory.gauge-integrator"] {
        if let Some(place) = s.get(key) {
            if groups == 0 {
                s.wrong(&place, format!("without quarks, the only level is that of trajectory.steps: remove {key}"));
            } else if !nested {
                let why = "there is no inner level without trajectory.gauge-steps: also give trajectory.gauge-steps, or \
                           remove trajectory.gauge-integrator";
                s.wrong(&place, why);
            }
        }
    }
    let uses_lambda =
        |scheme| matches!(scheme, Scheme::Omelyan { .. } | Scheme::OmelyanLinksFirst { .. }) || interleaved(scheme);
    if !(uses_lambda(outer) || nested && uses_lambda(inner)) {
        s.wrong(&keys.lambda, "only the Omelyan integrators and 3g1f use trajectory.lambda: remove it");
    }
    let unitarise = keys.unitarise.value().unwrap_or_default();
    let levels = Integrators { outer, inner, gauge_steps }.levels(all_steps.as_deref().unwrap_or(&[1]), of_parts);
    (length, levels, unitarise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::operators::{ALIASES, ASQTAD, Definition};
    use ferrite_inputs::values::Kind;

    /// Describes the run of an input with these keys, without the device.
    fn resolved(keys: &[String]) -> Outcome<String> {
        let mut settings = Input::new(&ENSEMBLE_SCHEMA);
        settings.set(keys);
        let input = EnsembleInput::of(&mut settings, "the input")?;
        let EnsembleInput { lattice, trajectories, start, save_every, single_links, plan, .. } = &input;
        let EnsembleInput { groups, solvers, measure, .. } = &input;
        let chain = format!("{lattice} {trajectories} {start:?} {save_every} {single_links} {plan:?} {solvers:?}");
        Ok(format!("{chain} {groups:?} {measure:?}"))
    }

    /// An input for each operator.
    fn inputs() -> Vec<(String, Vec<String>)> {
        let common = [
            "lattice=4,4,4,4",
            "trajectories=2",
            "seed=1",
            "gauge.action=wilson",
            "gauge.beta=5.5",
            "trajectory.steps=4,2",
            "trajectory.gauge-steps=2",
            "fermion.0.mass=0.3",
            "fermion.0.flavours=2",
        ];
        let with = |(name, definition): (&'static str, &'static Definition)| {
            let mut all: Vec<String> = common.iter().map(|key| (*key).into()).collect();
            all.push(format!("fermion.0.operator={name}"));
            for (key, value) in [("csw", "1.2"), ("mu", "0.1")] {
                all.extend(definition.has_key(key).then(|| format!("fermion.0.{key}={value}")));
            }
            if *definition == ASQTAD {
                all.push("fermion.0.u0=0.9".into());
            }
            (name.to_string(), all)
        };
        names_of_operators().map(with).collect()
    }

    /// Keys that only ensembles have.
    fn own_keys() -> impl Iterator<Item = (&'static str, Kind)> {
        ENSEMBLE_SCHEMA.keys().filter(|(name, _)| keys::EVERY_INPUT.kind_of(name).is_none())
    }

    /// A value of a key that is not its default.
    fn other_value(key: &str, kind: Kind) -> &'static str {
        match (key, kind) {
            ("start", _) => "hot",
            ("trajectory.integrator" | "trajectory.gauge-integrator", _) => "leapfrog",
            ("trajectory.unitarise", _) => "never",
            ("gauge.action", _) => "iwasaki",
            ("fermion.*.operator", _) => "wilson",
            ("fermion.*.bc-time", _) => "periodic",
            ("fermion.*.phases", _) => "lexicographic",
            ("fermion.*.schur", _) => "asymmetric",
            ("fermion.*.method", _) => "bicgstab",
            ("fermion.*.mg-precision", _) => "single",
            ("fermion.*.mg-vectors", _) => "16",
            ("fermion.*.theta", _) => "0.37,0,0,0",
            ("fermion.*.level", _) => "1",
            ("fermion.*.hasenbusch-mass", _) => "0.9",
            ("fermion.*.stout-rho", _) => "0.1",
            ("precision.preset", _) => "E",
            ("precision.links" | "precision.action", _) => "single",
            ("precision.gauge-force" | "precision.dynamics", _) => "double",
            ("precision.action-tol" | "precision.dynamics-tol" | "fermion.*.dynamics-tol", _) => "1e-7",
            (_, Kind::Number | Kind::Numbers) => "0.37",
            (_, Kind::Count) => "3",
            (_, Kind::Fractions) => "1",
            (_, Kind::Switch) => "true",
            (_, Kind::Texts | Kind::Extents) => "2,2,2,2",
            (_, other) => panic!("{key}: a value of {other:?}"),
        }
    }

    #[test]
    fn every_key_has_an_effect_or_is_refused() {
        for (operator, base) in inputs() {
            let before = resolved(&base).unwrap_or_else(|why| panic!("{operator}: {}", why.message));
            for (pattern, kind) in own_keys() {
                let key = pattern.replace('*', "0");
                let mut keys: Vec<String> =
                    base.iter().filter(|one| !one.starts_with(&format!("{key}="))).cloned().collect();
                if pattern == "fermion.*.operator" && operator == "wilson" {
                    continue;
                }
                keys.push(format!("{key}={}", other_value(pattern, kind)));
                if let Ok(after) = resolved(&keys) {
                    assert_ne!(after, before, "{operator}: {} has no effect and is not refused", keys.last().unwrap());
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_reason_are_refused() {
        for (operator, base) in inputs() {
            let numbers = own_keys().filter(|(_, kind)| matches!(kind, Kind::Number | Kind::Numbers));
            for (pattern, _) in numbers {
                let key = pattern.replace('*', "0");
                let rest = base.iter().filter(|one| !one.starts_with(&format!("{key}="))).cloned();
                for value in ["1e308", "-1e308", "nan", "inf"] {
                    let keys: Vec<String> = rest.clone().chain([format!("{key}={value}")]).collect();
                    let why = resolved(&keys).expect_err(&format!("{operator}: {key} = {value}")).message;
                    assert!(why.contains(&key), "{operator}: {key} = {value}: {why}");
                }
            }
        }
    }

    #[test]
    fn operators_have_the_names_that_they_have_elsewhere() {
        let all = inputs();
        let of = |name: &str| resolved(&all.iter().find(|(own, _)| own == name).expect(name).1).unwrap();
        for (alias, own) in ALIASES {
            assert_eq!(of(alias), of(own));
        }
    }

    /// docs/rhmc.md, "Precision": `[links, gauge force, dynamics, action]` in single.
    #[test]
    fn precisions_are_those_of_the_document() {
        let single = |sets: &[&str]| {
            let mut keys = inputs().into_iter().find(|(name, _)| name == "staggered").expect("naive quarks").1;
            keys.extend(sets.iter().map(|set| format!("precision.{set}")));
            let mut settings = Input::new(&ENSEMBLE_SCHEMA);
            settings.set(&keys);
            let input = EnsembleInput::of(&mut settings, "the input").map_err(|why| why.message)?;
            let [dynamics, action] = input.solvers.each_ref().map(|solver| solver.single);
            Ok::<_, String>([input.single_links, input.plan.single_gauge_force, dynamics, action])
        };
        let (yes, no) = (true, false);
        for (sets, expected) in [
            (&[][..], [no, yes, yes, no]),
            (&["dynamics=double"], [no, no, no, no]),
            (&["dynamics=single"], [no, yes, yes, no]),
            (&["dynamics=double", "gauge-force=single"], [no, yes, no, no]),
            (&["gauge-force=double"], [no, no, yes, no]),
            (&["links=single"], [yes, yes, yes, no]),
            (&["links=single", "dynamics=double"], [yes, yes, no, no]),
            (&["action=single", "action-tol=1e-7"], [no, yes, yes, yes]),
            (&["preset=A"], [yes, yes, no, no]),
            (&["preset=B"], [yes, yes, no, no]),
            (&["preset=C"], [yes, yes, no, no]),
            (&["preset=D"], [yes, yes, no, no]),
            (&["preset=E"], [yes, yes, yes, yes]),
            (&["preset=F"], [yes, yes, yes, no]),
            (&["preset=G"], [yes, yes, yes, no]),
            (&["preset=A", "links=double"], [no, no, no, no]),
            (&["preset=F", "links=double"], [no, yes, yes, no]),
            (&["preset=F", "links=double", "dynamics=double"], [no, no, no, no]),
        ] {
            assert_eq!(single(sets), Ok(expected), "{sets:?}");
        }
        let why = single(&["preset=A", "gauge-force=double"]).unwrap_err();
        assert!(why.contains("links in single precision need precision.gauge-force = \"single\""), "{why}");
    }
}
