//! The input of `ferrite rhmc`, checked.
use super::super::batch::{self, BatchChoice};
use super::super::device::DeviceChoice;
use super::super::{Failure, Outcome, multigrid, stout, text};
use super::precision::{PrecisionKeys, precisions};
use super::wilson::{InTable, WilsonGroup};
use crate::batch::BatchSize;
use crate::keys;
use ferrite::Precision;
use ferrite::hmc::action::{ActionName, AnisotropicLattice, GaugeAction};
use ferrite::hmc::fermions::{MOST_PSEUDOFERMIONS, QuarkOperator, QuarkSmearing, ShiftedSolver};
use ferrite::hmc::functions::{Quarks, Tolerances};
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme, Unitarise};
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::trajectory::{LevelPlan, MOST_LEVELS, MOST_STEPS, Plan};
use ferrite::lattice::Lattice;
use ferrite::operators::fat_links::PathCoefficients;
use ferrite::operators::{
    ASQTAD, BoundaryAngles, DIVISOR, Definition, HISQ, STAGGERED, StaggeredParams, StaggeredPhases, TimeBoundary,
    is_divisor, names_of_operators,
};
use ferrite_inputs::values::{
    Any, AnyWord, Count, Counts, Divisor, Kind, LatticeExtents, NonNegative, Number, Residual, Text, Value, Word,
};
use ferrite_inputs::{Given, Input, InputKind, RESIDUAL, Schema, is_residual, rules, vocabularies};
use ferrite_report::records::run_settings;
use rational::Fraction;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

vocabularies! {
    /// Names of gauge actions.
    Actions: ActionName = ActionName::ALL;
    /// When links are made unitary.
    Unitarisations: Unitarise = [("always", Unitarise::Always), ("never", Unitarise::Never)];
}
rules! {
    /// Parameters of minimum-norm integrators.
    Lambda: "a number above 0 and below 0.5", |x| x > 0.0 && x < 0.5;
}

/// Largest number of a trajectory.
const LAST: usize = u32::MAX as usize - 1;

/// Keys that are in no table.
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
    steps: Given<Counts<1, MOST_STEPS>>,
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
    /// An earlier name: reported under the present one.
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

/// Keys of a table `fermion`.
const FERMION: [(&str, Kind); 36] = [
    ("operator", Kind::Word),
    ("u0", Kind::Number),
    ("naik-epsilon", Kind::Numbers),
    ("mass", Kind::Numbers),
    ("flavours", Kind::Fractions),
    ("pseudofermions", Kind::Count),
    ("bc-time", Kind::Word),
    ("theta", Kind::Numbers),
    ("phases", Kind::Word),
    ("dynamics-error", Kind::Number),
    ("action-error", Kind::Number),
    ("dynamics-tol", Kind::Numbers),
    ("level", Kind::Numbers),
    ("kappa", Kind::Number),
    ("csw", Kind::Number),
    ("clover-r", Kind::Number),
    ("clover-t", Kind::Number),
    ("xi", Kind::Number),
    ("nu", Kind::Number),
    ("mu", Kind::Number),
    ("schur", Kind::Word),
    ("hasenbusch-mass", Kind::Numbers),
    ("hasenbusch-kappa", Kind::Numbers),
    ("hasenbusch-mu", Kind::Numbers),
    ("method", Kind::Word),
    ("guesses", Kind::Count),
    ("mg-vectors", Kind::Count),
    ("mg-levels", Kind::Count),
    ("mg-block", Kind::Texts),
    ("mg-smoothing", Kind::Count),
    ("mg-relaxations", Kind::Count),
    ("mg-improvements", Kind::Count),
    ("mg-precision", Kind::Word),
    ("stout-rho", Kind::Number),
    ("stout-levels", Kind::Count),
    ("stout-spatial", Kind::Switch),
];

/// All keys.
pub static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let own = Schema::new(Some(InputKind::Ensemble))
        .with::<EnsembleKeys>("")
        .with::<TrajectoryKeys>("trajectory")
        .with::<GaugeKeys>("gauge")
        .with_keys("fermion.*", FERMION)
        .with::<PrecisionKeys>("precision")
        .with::<MeasureKeys>("measure");
    keys::with_every_input(own)
});

/// Where an ensemble begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartLinks {
    /// All links 1.
    Cold,
    /// Independent links with the Haar measure.
    Hot,
    /// Links of a file.
    File(PathBuf),
}

/// A group of quarks that share pseudofermions.
#[derive(Clone, Debug)]
pub struct QuarkGroup {
    /// For reports: masses and flavours.
    pub name: String,
    /// Hops.
    pub operator: QuarkOperator,
    /// Masses and numbers of flavours.
    pub quarks: Vec<Quarks>,
    /// How many pseudofermions.
    pub pseudofermions: usize,
    /// Errors of approximations.
    pub tolerances: Tolerances,
    /// Residuals of its own solver of molecular dynamics, one or one for each pole, instead of those of all groups.
    pub dynamics_tol: Option<Vec<f64>>,
    /// The level of the integrator on which its force acts.
    pub level: usize,
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Noise vectors for each condensate.
    pub condensate: usize,
    /// Residual of its solves.
    pub condensate_tol: f64,
    /// How many noise vectors go together.
    pub batch: BatchChoice,
    /// After every so many trajectories.
    pub every: usize,
    /// The way back after every so many trajectories; 0 for never.
    pub reversibility: usize,
    /// Number of trajectories from one measurement of identities to the next; 0 for never.
    pub identities: usize,
    /// When times of kernels are taken.
    pub kernels: Timed,
}

/// Trajectories whose kernels are timed, which makes them slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// The second one after each start of the program; the first, in which memory is taken and kernels are loaded for the
    /// first time, only where there is no second one.
    Second,
    /// Every so many; 0 for never.
    Every(usize),
}

/// The input.
#[derive(Clone, Debug)]
pub struct EnsembleInput {
    /// The lattice.
    pub lattice: Lattice,
    /// The number of the last trajectory.
    pub trajectories: u32,
    /// The first links.
    pub start: StartLinks,
    /// A configuration is kept after every so many trajectories.
    pub save_every: u32,
    /// Whether links and momenta are in single precision.
    pub single_links: bool,
    /// The name of the gauge action.
    pub gauge_action: String,
    /// Gauge action and integrator.
    pub plan: Plan,
    /// Staggered quarks.
    pub groups: Vec<QuarkGroup>,
    /// Wilson-like quarks; there are not both.
    pub wilson: Vec<WilsonGroup>,
    /// Solvers of molecular dynamics, and of heat bath and Metropolis step.
    pub solvers: [ShiftedSolver; 2],
    /// Observables.
    pub measure: Measure,
    /// Where to compute.
    pub device: DeviceChoice,
    /// Keys that were given and have an effect on the chain, as they were typed.
    pub keys: BTreeMap<String, String>,
}

impl QuarkGroup {
    /// What makes its links, where they are stout links.
    pub fn stout(&self) -> Option<StoutSmearing> {
        match self.operator.smearing {
            QuarkSmearing::Stout(smearing) => Some(smearing),
            _ => None,
        }
    }
}

impl EnsembleInput {
    /// Of links and momenta.
    pub fn precision(&self) -> Precision {
        if self.single_links { Precision::Single } else { Precision::Double }
    }
    /// Reads the file and the settings beside it; all mistakes at once.
    pub fn read(path: &Path, set: &[String], add: impl FnOnce(&mut Input)) -> Outcome<Self> {
        let mut input = Input::new(&SCHEMA);
        input.file(path)?;
        input.set(set);
        add(&mut input);
        Self::of(&mut input, &path.display().to_string())
    }
    /// Reads an input, which `what` names; all mistakes at once.
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
        let (mut groups, mut wilson, mut kinds) = (Vec::new(), Vec::new(), [false; 2]);
        for number in 0..tables {
            let name = s.get(&format!("fermion.{number}.operator")).map(|name| name.text().to_string());
            let definition = name.as_ref().and_then(|name| super::wilson::definition(name));
            kinds[usize::from(definition.is_some())] |= name.is_some();
            match definition {
                Some(definition) => wilson.extend(super::wilson::group(s, number, definition)),
                None => groups.extend(group(s, number)),
            }
        }
        if kinds == [true; 2] {
            s.missing("staggered and Wilson-like quarks do not go together: give tables [[fermion]] of one kind");
        }
        number_duplicates(groups.iter_mut().map(|group| &mut group.name));
        number_duplicates(wilson.iter_mut().map(|group: &mut WilsonGroup| &mut group.name));
        let of_parts: Vec<usize> =
            groups.iter().map(|group| group.level).chain(wilson.iter().flat_map(WilsonGroup::levels)).collect();
        let trajectory: TrajectoryKeys = s.read("trajectory");
        let (length, levels, unitarise) = integrator(s, &trajectory, tables, &of_parts);
        let friction = trajectory.friction.value();
        let (single_links, single_gauge_force, solvers) = precisions(s, &groups, &wilson);
        let keys: MeasureKeys = s.read("measure");
        let measure = Measure {
            condensate: keys.condensate.or(usize::from(wilson.is_empty())),
            condensate_tol: keys.condensate_tol.or(1e-8),
            batch: batch::choice(&keys.batch),
            every: keys.every.or(1),
            reversibility: keys.reversibility.or(0),
            identities: keys.identities.or(0),
            kernels: keys.kernels.value().map_or(Timed::Second, Timed::Every),
        };
        if tables == 0 {
            without_quarks(s);
        } else if !wilson.is_empty() {
            for key in ["measure.condensate", "measure.condensate-tol", "measure.batch"] {
                if let Some(setting) = s.get(key) {
                    s.wrong(&setting, "condensates are measured of staggered quarks only: leave it out");
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
            wilson,
            solvers,
            measure,
            device,
            keys: s.typed(run_settings::has_effect),
        })
    }
    /// The solvers of a group: of molecular dynamics, and of heat bath and Metropolis step.
    pub fn solvers_of(&self, group: &QuarkGroup) -> [ShiftedSolver; 2] {
        let mut solvers = self.solvers.clone();
        if let Some(own) = &group.dynamics_tol {
            solvers[0].tol.clone_from(own);
        }
        solvers
    }
    /// How many numbers a state has for the bounds of spectra: one for each group of staggered quarks, two for each of Wilson-like ones.
    pub fn bounds(&self) -> usize {
        self.groups.len() + 2 * self.wilson.len()
    }
    /// Names of the groups of quarks.
    pub fn names(&self) -> Vec<&str> {
        let staggered = self.groups.iter().map(|group| group.name.as_str());
        staggered.chain(self.wilson.iter().map(|group| group.name.as_str())).collect()
    }
    /// Steps of the longest hop or path.
    pub fn hops(&self) -> usize {
        if self.groups.iter().any(|group| group.operator.smearing.is_improved()) { 3 } else { 1 }
    }
    /// Whether there are quarks of a mass in the ensemble: flavours of all groups with this operator, less those that only
    /// divide the determinant of a group.
    pub fn has_flavours(&self, operator: &QuarkOperator, mass: f64) -> bool {
        let of_operator = self.groups.iter().filter(|group| group.operator == *operator);
        let all = of_operator.flat_map(|group| &group.quarks).filter(|quarks| quarks.mass == mass);
        all.map(|quarks| quarks.flavours.value()).sum::<f64>() > 1e-9
    }
}

/// Groups that have the same name, because they differ in other things, get a number.
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

/// The error of a rational function in double precision.
pub fn approximation(s: &mut Input, key: &str) -> Option<f64> {
    s.number(key, "a number of at least 1e-15 and below 1", |x| (1e-15..1.0).contains(&x))
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
    let (action, beta, u0) = (action?, keys.beta.value()?, keys.u0.or(1.0));
    let mut made = match (action, xi) {
        (ActionName::Wilson, Some(xi)) => GaugeAction::anisotropic_wilson(beta, xi),
        (ActionName::SymanzikTree, Some(xi)) => {
            let lattice = AnisotropicLattice { xi, space: u0, time: keys.u0_time.or(1.0) };
            GaugeAction::anisotropic_symanzik(beta, lattice)
        }
        (named, _) => named.isotropic(beta, u0, keys.flavours.value()),
    };
    made.plaquette = keys.plaquette.or(made.plaquette);
    made.rectangle = keys.rectangle.or(made.rectangle);
    made.parallelogram = keys.parallelogram.or(made.parallelogram);
    s.wrong(&keys.chair, "the loop (μ, ν, ρ, −μ, −ν, −ρ) is a parallelogram: write gauge.parallelogram");
    Some(made)
}

/// Keys that an action has no use for.
fn refuse_what_it_has_not(s: &mut Input, action: ActionName, anisotropic: bool) {
    let mut refuse = |unless: bool, key: &str, why: &str| {
        if let (false, Some(setting)) = (unless, s.get(key)) {
            s.wrong(&setting, why);
        }
    };
    refuse(action.has_tadpole_factor(), "gauge.u0", "this action has no tadpole factor: leave it out");
    let has_quarks = action == ActionName::LuscherWeisz;
    refuse(has_quarks, "gauge.flavours", "only \"luscher-weisz\" has coefficients that depend on quarks: leave it out");
    refuse(action.can_be_anisotropic(), "gauge.xi", "anisotropic actions are \"wilson\" and \"symanzik-tree\"");
    let has_time = action == ActionName::SymanzikTree && anisotropic;
    refuse(
        has_time,
        "gauge.u0-time",
        "only \"symanzik-tree\" with gauge.xi has a tadpole factor of its own in t: leave it out",
    );
    let key = "gauge.parallelogram";
    refuse(!anisotropic, key, "anisotropic actions have no parallelograms: leave it out, or gauge.xi");
}

fn group(s: &mut Input, number: usize) -> Option<QuarkGroup> {
    let key = |name: &str| format!("fermion.{number}.{name}");
    // Wilson-like quarks are not here.
    let kind = s.choice(&key("operator"), &names_of_operators().collect::<Vec<_>>()).and_then(QuarkKind::of);
    s.needed(&key("operator"), "operator = \"asqtad\", \"hisq\" or \"clover\"");
    let of_wilson = super::wilson::OF_WILSON.into_iter().chain(multigrid::names());
    multigrid::refuse(s, &format!("fermion.{number}"), of_wilson, "belongs to Wilson-like quarks: leave it out");
    let level = levels(s, &key("level")).unwrap_or(vec![0]);
    if let ([_, _, ..], Some(setting)) = (&level[..], s.get(&key("level"))) {
        s.wrong(&setting, "the pseudofermions of staggered quarks are on one level: give one number");
    }
    let u0 = s.number(&key("u0"), "a number above 0, of at least 1e-3", |x| x >= 1e-3);
    if kind == Some(QuarkKind::Asqtad) {
        s.needed(&key("u0"), "u0 = 0.86, of asqtad's paths");
    } else if let Some(setting) = s.get(&key("u0")) {
        s.wrong(&setting, "only asqtad quarks have a tadpole factor: leave it out");
    }
    let masses = s.numbers(&key("mass"), DIVISOR, is_divisor);
    s.needed(&key("mass"), "mass = [0.05]");
    let flavours = s.parse(&key("flavours"), |typed| {
        let one = |text: &str| match text.trim().parse::<Fraction>() {
            Ok(n) if n.value() != 0.0 => Ok(n),
            Ok(_) => Err("0 flavours: leave them out".into()),
            Err(why) => Err(why.to_string()),
        };
        typed.split(',').map(one).collect::<Result<Vec<_>, _>>()
    });
    s.needed(&key("flavours"), "flavours = [2]");
    let pseudofermions = s.count(&key("pseudofermions"), 1..=MOST_PSEUDOFERMIONS).unwrap_or(1);
    let times = [("antiperiodic", TimeBoundary::Antiperiodic), ("periodic", TimeBoundary::Periodic)];
    let boundary = s.choice(&key("bc-time"), &times).unwrap_or_default();
    let theta = BoundaryAngles::resolve(&mut InTable::new(s, number));
    let phases = [("milc", StaggeredPhases::Milc), ("lexicographic", StaggeredPhases::Lexicographic)];
    let phases = s.choice(&key("phases"), &phases).unwrap_or_default();
    let default = Tolerances::default();
    let tolerances = Tolerances {
        dynamics: approximation(s, &key("dynamics-error")).unwrap_or(default.dynamics),
        action: approximation(s, &key("action-error")).unwrap_or(default.action),
    };
    let dynamics_tol = s.numbers(&key("dynamics-tol"), RESIDUAL, is_residual);
    let epsilon = naik_epsilon(s, &key("naik-epsilon"), kind, masses.as_deref());
    let stout = stout::of_operator(s, &format!("fermion.{number}"));
    if let (Some(QuarkKind::Asqtad | QuarkKind::Hisq), Some(setting)) = (kind, s.get(&key("stout-rho"))) {
        let why = "asqtad and HISQ quarks have smeared links of their own: leave it out; naive and Wilson-like quarks have stout links";
        s.wrong(&setting, why);
        return None;
    }
    let (kind, masses, flavours) = (kind?, masses?, flavours?);
    if masses.len() != flavours.len() {
        if let Some(setting) = s.get(&key("flavours")) {
            s.wrong(
                &setting,
                format!("{} for {}", text::count(flavours.len(), "number"), text::count(masses.len(), "mass")),
            );
        }
        return None;
    }
    let params = StaggeredParams { mass: 0.0, boundary, phases };
    let (smearing, title) = match kind {
        QuarkKind::Naive => (stout.map_or(QuarkSmearing::Thin, QuarkSmearing::Stout), "naive"),
        QuarkKind::Asqtad => (QuarkSmearing::Paths(PathCoefficients::asqtad(u0?)), "asqtad"),
        QuarkKind::Hisq => (QuarkSmearing::Hisq { epsilon: epsilon? }, "hisq"),
    };
    let quarks: Vec<Quarks> =
        masses.iter().zip(&flavours).map(|(mass, flavours)| Quarks { mass: *mass, flavours: *flavours }).collect();
    let one = |quarks: &Quarks| format!("{} at m = {}", quarks.flavours, quarks.mass);
    let names: Vec<_> = quarks.iter().map(one).collect();
    let mut name = format!("{title} flavours {}", names.join(" and "));
    if let QuarkSmearing::Hisq { epsilon } = smearing
        && epsilon != 0.0
    {
        name += &format!(" with epsilon = {epsilon}");
    }
    if !theta.are_zero() {
        name += &format!(" with theta = {:?}", theta.0);
    }
    let operator = QuarkOperator { params, smearing, theta };
    let level = level[0];
    Some(QuarkGroup { name, operator, quarks, pseudofermions, tolerances, dynamics_tol, level })
}

/// Returns the names of all quarks, as `operator` of a table `[[fermion]]` takes them.
pub fn quark_operators() -> impl Iterator<Item = &'static str> {
    names_of_operators().map(|(name, _)| name)
}

/// Staggered quarks by name.
#[derive(Clone, Copy, PartialEq)]
enum QuarkKind {
    Naive,
    Asqtad,
    Hisq,
}

impl QuarkKind {
    /// The kind with this operator, if it is a staggered one.
    fn of(definition: &Definition) -> Option<Self> {
        let kinds = [(&STAGGERED, QuarkKind::Naive), (&ASQTAD, QuarkKind::Asqtad), (&HISQ, QuarkKind::Hisq)];
        kinds.into_iter().find(|(own, _)| *own == definition).map(|(_, kind)| kind)
    }
}

/// The ε of a group, 0 where none is given: one number, or one for each mass, which have to be equal.
fn naik_epsilon(s: &mut Input, key: &str, kind: Option<QuarkKind>, masses: Option<&[f64]>) -> Option<f64> {
    let given = s.numbers(key, "a number", |_| true);
    let Some(setting) = s.get(key) else { return Some(0.0) };
    if kind.is_some_and(|kind| kind != QuarkKind::Hisq) {
        s.wrong(&setting, "only HISQ has such a correction of the Naik term: leave it out");
        return None;
    }
    let given = given?;
    if given.iter().any(|epsilon| *epsilon != given[0]) {
        let why = "masses of a group share pseudofermions, and so one operator: give quarks with another naik-epsilon a \
                   table [[fermion]] of their own";
        s.wrong(&setting, why);
        return None;
    }
    if let (2.., Some(masses)) = (given.len(), masses)
        && given.len() != masses.len()
    {
        let numbers = text::count(given.len(), "number");
        s.wrong(&setting, format!("{numbers} for {}: one is enough", text::count(masses.len(), "mass")));
        return None;
    }
    given.first().copied()
}

/// Keys that only quarks make use of.
const OF_QUARKS: [(&str, &str); 7] = [
    ("precision.dynamics", "there is nothing to solve"),
    ("precision.dynamics-tol", "there is nothing to solve"),
    ("precision.action", "there is nothing to solve"),
    ("precision.action-tol", "there is nothing to solve"),
    ("measure.condensate", "there are no condensates"),
    ("measure.condensate-tol", "there are no condensates"),
    ("measure.batch", "there are no condensates"),
];

/// Notes keys that have no effect in an input without quarks.
fn without_quarks(s: &mut Input) {
    for (key, why) in OF_QUARKS {
        if let Some(setting) = s.get(key) {
            s.wrong(&setting, format!("without quarks {why}: leave it out, or give a table [[fermion]]"));
        }
    }
}

/// Levels of the integrator that forces act on.
pub fn levels(s: &mut Input, key: &str) -> Option<Vec<usize>> {
    s.parsed(key, Counts::<0, { MOST_LEVELS - 1 }>::of)
}

/// Returns the length of a trajectory, the levels, and when links are made unitary; `of_parts` has the level of each part of
/// the fermion action.
fn integrator(
    s: &mut Input,
    keys: &TrajectoryKeys,
    groups: usize,
    of_parts: &[usize],
) -> (f64, Vec<LevelPlan>, Unitarise) {
    let (length, all_steps) = (keys.length.or(1.0), keys.steps.value());
    // All steps of a trajectory on the innermost level of quarks.
    let product = |steps: &Vec<usize>| steps.iter().fold(1usize, |product, steps| product.saturating_mul(*steps));
    let steps = all_steps.as_ref().map(product);
    if let Some(all) = &all_steps {
        if all.len() > 1 && groups == 0 {
            s.wrong(&keys.steps, "without quarks there is one level: give one number");
        } else if all.len() > MOST_LEVELS {
            s.wrong(&keys.steps, format!("there are at most {MOST_LEVELS} levels"));
        } else if product(all) > MOST_STEPS {
            let why = format!("these are {} steps, but a trajectory has at most {MOST_STEPS}", product(all));
            s.wrong(&keys.steps, why);
        }
        if let Some(level) = of_parts.iter().find(|level| **level >= all.len()) {
            let why =
                format!("some quarks are on level {level}, counted from 0, but trajectory.steps has {}", all.len());
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
            "{inner} in each of {outer} trajectory.steps make {} steps, but a trajectory has at most {MOST_STEPS}",
            outer * inner
        );
        s.wrong(&keys.gauge_steps, why);
    }
    let interleaved = |scheme| matches!(scheme, Scheme::ThreeGaugeOneFermion { .. });
    for (key, scheme) in [("trajectory.gauge-steps", outer), ("trajectory.gauge-integrator", inner)] {
        if let (true, Some(place)) = (interleaved(scheme) && groups > 0, s.get(key)) {
            let why = "3g1f has the steps of the gauge action between those of the quarks: it has no inner level, and is \
                       none";
            s.wrong(&place, why);
        }
    }
    if let (true, Some([_, _, ..])) = (interleaved(outer), all_steps.as_deref()) {
        s.wrong(&keys.steps, "3g1f has one level: give one number");
    }
    // A key without an effect is a mistake.
    let nested = s.was_given("trajectory.gauge-steps");
    for key in ["trajectory.gauge-steps", "trajectory.gauge-integrator"] {
        if let Some(place) = s.get(key) {
            if groups == 0 {
                s.wrong(&place, "without quarks there is one level, with trajectory.steps: leave it out");
            } else if !nested {
                s.wrong(&place, "belongs to the inner level: give trajectory.gauge-steps, too");
            }
        }
    }
    let uses_lambda =
        |scheme| matches!(scheme, Scheme::Omelyan { .. } | Scheme::OmelyanLinksFirst { .. }) || interleaved(scheme);
    if !(uses_lambda(outer) || nested && uses_lambda(inner)) {
        s.wrong(&keys.lambda, "only the Omelyan integrators use it, and 3g1f: leave it out");
    }
    let unitarise = keys.unitarise.value().unwrap_or_default();
    let level = |(level, steps): (usize, usize)| {
        let quarks = (0..of_parts.len()).filter(|part| of_parts[*part] == level).collect();
        LevelPlan { gauge: false, quarks, scheme: outer, steps }
    };
    let mut levels: Vec<LevelPlan> = all_steps.unwrap_or(vec![1]).into_iter().enumerate().map(level).collect();
    match gauge_steps {
        Some(steps) if groups > 0 => levels.push(LevelPlan { gauge: true, quarks: Vec::new(), scheme: inner, steps }),
        _ => levels.iter_mut().last().into_iter().for_each(|innermost| innermost.gauge = true),
    }
    (length, levels, unitarise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::operators::ALIASES;

    /// Describes the run of an input with these keys, without the device.
    fn resolved(keys: &[String]) -> Outcome<String> {
        let mut settings = Input::new(&SCHEMA);
        settings.set(keys);
        let input = EnsembleInput::of(&mut settings, "the input")?;
        let EnsembleInput { lattice, trajectories, start, save_every, single_links, plan, .. } = &input;
        let EnsembleInput { groups, wilson, solvers, measure, .. } = &input;
        let chain = format!("{lattice} {trajectories} {start:?} {save_every} {single_links} {plan:?} {solvers:?}");
        Ok(format!("{chain} {groups:?} {wilson:?} {measure:?}"))
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
        SCHEMA.keys().filter(|(name, _)| keys::EVERY_INPUT.kind_of(name).is_none())
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
            let mut keys = inputs().swap_remove(5).1;
            keys.extend(sets.iter().map(|set| format!("precision.{set}")));
            let mut settings = Input::new(&SCHEMA);
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
        assert!(why.contains("links in single precision need forces in single precision"), "{why}");
    }
}
