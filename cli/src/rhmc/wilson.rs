//! Wilson-like quarks in an input, and the parts of the action that they make.
use super::super::{Failure, Outcome, multigrid, stout, text};
use super::course::failed;
use super::input::approximation;
use super::settings::WITHOUT;
use crate::failure::ReadBy;
use ferrite::domain::Domain;
use ferrite::hmc::HmcError;
use ferrite::hmc::fermions::{MOST_PSEUDOFERMIONS, RationalFunctions, ShiftedSolver};
use ferrite::hmc::functions::{Tolerances, rational_functions_of_norm};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::hmc::wilson::determinant::BlockDeterminant;
use ferrite::hmc::wilson::one_flavour::OneFlavour;
use ferrite::hmc::wilson::two_flavours::{MOST_GUESSES, SplitDeterminant};
use ferrite::hmc::wilson::{WilsonMethod, WilsonQuarks, WilsonSolver, spectrum};
use ferrite::multigrid::MultigridParams;
use ferrite::operators::{
    DIVISOR, Definition, Keys, LinkDependence, OPERATORS, Operator, Schur, WilsonLike, is_divisor, operator_named,
};
use ferrite_inputs::values::{Switch, Value as _};
use ferrite_inputs::{Input, RESIDUAL, is_residual};
use serde_json::{Map, Value, json};

/// Quarks of one mass: two, exactly, or one, by a rational function.
#[derive(Clone, Debug)]
pub struct WilsonGroup {
    /// For reports: operator, flavours and mass.
    pub name: String,
    /// M
    operator: WilsonLike,
    /// What makes its links.
    pub stout: Option<StoutSmearing>,
    /// What is said of its parameters.
    described: Map<String, Value>,
    /// 1 or 2.
    flavours: u32,
    /// Operators of heavier quarks that split the determinant, from light to heavy, and how each is called.
    heavier: Vec<(WilsonQuarks, String)>,
    /// Pseudofermions of the rational function.
    pseudofermions: usize,
    tolerances: Tolerances,
    method: WilsonMethod,
    /// Where that is the method, and how it is set up.
    multigrid: Option<MultigridParams>,
    /// How many solutions first guesses are made of.
    guesses: usize,
    /// Residuals of molecular dynamics instead of those of all groups.
    dynamics_tol: Option<f64>,
    /// The level of each pseudofermion of two flavours, or of all of one.
    levels: Vec<usize>,
}

/// The operator of this name, if it is that of Wilson-like quarks.
pub fn definition(name: &str) -> Option<&'static Definition> {
    operator_named(name).filter(|definition| definition.term().is_some())
}

/// Keys of a table `[[fermion]]` as those of an operator.
pub struct InTable<'a> {
    settings: &'a mut Input,
    number: usize,
}

impl<'a> InTable<'a> {
    /// Of the table with this number.
    pub fn new(settings: &'a mut Input, number: usize) -> Self {
        InTable { settings, number }
    }
    fn key(&self, key: &str) -> String {
        format!("fermion.{}.{key}", self.number)
    }
}

impl Keys for InTable<'_> {
    fn is_given(&self, key: &str) -> bool {
        self.settings.get(&self.key(key)).is_some()
    }
    fn number(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<f64> {
        let key = self.key(key);
        self.settings.number(&key, expected, fits)
    }
    fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<usize> {
        let (key, choices) = (self.key(key), words.iter().enumerate().map(|(place, word)| (*word, place)));
        let choices: Vec<_> = choices.collect();
        self.settings.choice(&key, &choices)
    }
    fn parse(&mut self, key: &'static str, parse: &mut dyn FnMut(&str) -> Result<(), String>) {
        let key = self.key(key);
        self.settings.parse(&key, parse);
    }
    fn is_on(&mut self, key: &'static str) -> bool {
        let key = self.key(key);
        self.settings.parsed(&key, Switch::of) == Some(true)
    }
    fn refuse(&mut self, key: &str, why: &str) {
        if let Some(setting) = self.settings.get(&self.key(key)) {
            self.settings.wrong(&setting, why);
        }
    }
    fn conflict(&mut self, key: &str, other: &str, why: &str) {
        let (key, other) = (self.key(key), self.key(other));
        self.settings.conflict(&key, &other, why);
    }
    fn missing(&mut self, why: &str) {
        self.settings.missing(format!("fermion.{}: {why}", self.number));
    }
    /// Within the table.
    fn spelled(&self, key: &str, value: &str) -> String {
        ReadBy::Keys.spelled(key, value)
    }
}

/// Keys of tables that belong to staggered quarks alone.
const OF_STAGGERED: [&str; 2] = ["phases", "naik-epsilon"];
/// Keys of Wilson-like quarks alone, with those of their operators.
pub const OF_WILSON: [&str; 13] = [
    "kappa",
    "csw",
    "clover-r",
    "clover-t",
    "xi",
    "nu",
    "mu",
    "schur",
    "hasenbusch-mass",
    "hasenbusch-kappa",
    "hasenbusch-mu",
    "method",
    "guesses",
];

/// The group of a table whose operator is `definition`; what is wrong the settings know.
pub fn group(s: &mut Input, number: usize, definition: &'static Definition) -> Option<WilsonGroup> {
    let key = |name: &str| format!("fermion.{number}.{name}");
    let resolved = definition.resolve_all(&mut InTable::new(s, number));
    for name in OF_STAGGERED {
        if let Some(setting) = s.get(&key(name)) {
            s.wrong(&setting, "belongs to staggered quarks: leave it out");
        }
    }
    for name in OF_WILSON.into_iter().chain(["u0"]) {
        let own = definition.has_key(name) || !OPERATORS.iter().any(|other| other.has_key(name));
        if let (false, Some(setting)) = (own, s.get(&key(name))) {
            s.wrong(&setting, format!("{} quarks have no such parameter: leave it out", definition.name));
        }
    }
    let flavours = s.count(&key("flavours"), 1..=2);
    s.needed(&key("flavours"), "flavours = 2; for three of one mass give a table with 2 and one with 1");
    let masses = s.numbers(&key("hasenbusch-mass"), "a number", |_| true);
    let kappas = s.numbers(&key("hasenbusch-kappa"), DIVISOR, is_divisor);
    let twists = s.numbers(&key("hasenbusch-mu"), DIVISOR, is_divisor);
    let given = ["hasenbusch-mass", "hasenbusch-kappa", "hasenbusch-mu"].map(key);
    let given: Vec<_> = given.iter().filter(|key| s.was_given(key)).collect();
    if let [one, other, ..] = given[..] {
        s.conflict(one, other, "give one of them");
    }
    let pseudofermions = s.count(&key("pseudofermions"), 1..=MOST_PSEUDOFERMIONS);
    let default = Tolerances::default();
    let (dynamics, action) = (approximation(s, &key("dynamics-error")), approximation(s, &key("action-error")));
    if flavours == Some(2) {
        for name in ["pseudofermions", "dynamics-error", "action-error"] {
            if let Some(setting) = s.get(&key(name)) {
                s.wrong(&setting, "two flavours need no rational function: leave it out");
            }
        }
    } else {
        for name in ["hasenbusch-mass", "hasenbusch-kappa", "hasenbusch-mu", "method", "guesses"] {
            if let Some(setting) = s.get(&key(name)) {
                s.wrong(
                    &setting,
                    "one flavour has a rational function, which CG solves: leave it out, or give flavours = 2",
                );
            }
        }
    }
    if let (Some(1), true, Some(setting)) = (flavours, definition.partner().is_some(), s.get(&key("flavours"))) {
        s.wrong(&setting, "quarks with a twisted mass are doublets: give flavours = 2");
    }
    let methods =
        [("cg", WilsonMethod::Cg), ("bicgstab", WilsonMethod::Bicgstab), ("multigrid", WilsonMethod::Multigrid)];
    let method = s.choice(&key("method"), &methods).unwrap_or_default();
    let multigrid = multigrid::of_keys(s, &format!("fermion.{number}"));
    let multigrid = (method == WilsonMethod::Multigrid).then_some(multigrid);
    match (&multigrid, definition.partner()) {
        (None, _) => {
            multigrid::refuse(s, &format!("fermion.{number}"), multigrid::names(), "belongs to method = \"multigrid\"");
        }
        (Some(_), Some(_)) => {
            let why = "quarks with a twisted mass have no multigrid: give \"cg\" or \"bicgstab\"";
            multigrid::refuse(s, &format!("fermion.{number}"), ["method"].into_iter(), why);
        }
        (Some(_), None) => {}
    }
    let guesses = s.count(&key("guesses"), 0..=MOST_GUESSES).unwrap_or(0);
    let dynamics_tol = s.number(&key("dynamics-tol"), RESIDUAL, is_residual);
    let levels = super::input::levels(s, &key("level"));
    let ((Operator::WilsonLike(operator), described), flavours) = (resolved?, flavours? as u32) else { return None };
    let mass = operator.wilson.mass;
    let called = match s.get(&key("kappa")) {
        Some(setting) => format!("kappa = {}", setting.text()),
        None => format!("m = {mass}"),
    };
    // Masses, and how they are called.
    let of_masses = masses.iter().flatten().map(|mass| (*mass, format!("m = {mass}")));
    let of_kappas = kappas.iter().flatten().map(|kappa| (0.5 / kappa - 4.0, format!("kappa = {kappa}")));
    let heavy: Vec<(f64, String)> = of_masses.chain(of_kappas).collect();
    if heavy.iter().any(|(heavy, _)| *heavy <= mass) || !heavy.is_sorted_by(|(a, _), (b, _)| a <= b) {
        for name in ["hasenbusch-mass", "hasenbusch-kappa"] {
            if let Some(setting) = s.get(&key(name)) {
                s.wrong(
                    &setting,
                    format!("give heavier quarks than those of the table, {called}, from light to heavy"),
                );
            }
        }
        return None;
    }
    if twists.as_ref().is_some_and(|list| !list.is_sorted()) {
        if let Some(setting) = s.get(&key("hasenbusch-mu")) {
            s.wrong(&setting, "give twisted masses from light to heavy");
        }
        return None;
    }
    let stout = stout::of_operator(s, &format!("fermion.{number}"));
    let plain = WilsonQuarks { stout, ..WilsonQuarks::new(operator) };
    let with_mass = |(mass, called): (f64, String)| match Operator::from(operator).with_mass(mass) {
        Operator::WilsonLike(operator) => (WilsonQuarks { operator, ..plain }, called),
        Operator::Staggered(_) => unreachable!("the mass does not change the kind"),
    };
    let twisted = |mu: &f64| (WilsonQuarks { twist: *mu, ..plain }, format!("mu = {mu}"));
    let heavier: Vec<_> = heavy.into_iter().map(with_mass).chain(twists.iter().flatten().map(twisted)).collect();
    let parts = if flavours == 2 { heavier.len() + 1 } else { 1 };
    let levels = levels.unwrap_or(vec![0]);
    if levels.len() != 1 && levels.len() != parts {
        if let Some(setting) = s.get(&key("level")) {
            let why = format!("give one level, or one for each of {}", text::count(parts, "pseudofermion"));
            s.wrong(&setting, why);
        }
        return None;
    }
    let levels = if levels.len() == 1 { vec![levels[0]; parts] } else { levels };
    let name = format!("{} quarks {flavours} at {called}", definition.name);
    let tolerances =
        Tolerances { dynamics: dynamics.unwrap_or(default.dynamics), action: action.unwrap_or(default.action) };
    let pseudofermions = pseudofermions.unwrap_or(1);
    Some(WilsonGroup {
        name,
        operator,
        stout,
        described,
        flavours,
        heavier,
        pseudofermions,
        tolerances,
        method,
        multigrid,
        guesses,
        dynamics_tol,
        levels,
    })
}

impl WilsonGroup {
    fn quarks(&self) -> WilsonQuarks {
        WilsonQuarks { stout: self.stout, ..WilsonQuarks::new(self.operator) }
    }
    /// Whether the blocks of A have a determinant that depends on the links.
    fn has_determinant(&self) -> bool {
        self.quarks().has_determinant()
    }
    /// The level of each part of the action, pseudofermions first. The determinant is cheap: it goes to the innermost.
    pub fn levels(&self) -> Vec<usize> {
        let innermost = self.levels.iter().copied().max();
        self.levels.iter().copied().chain(innermost.filter(|_| self.has_determinant())).collect()
    }
    /// How many vectors of noise it needs.
    pub fn pseudofermions(&self) -> usize {
        if self.flavours == 2 { 1 + self.heavier.len() } else { self.pseudofermions }
    }
    /// Whether it has a rational function.
    pub fn is_rational(&self) -> bool {
        self.flavours == 1
    }
    /// Residuals of its own solver of molecular dynamics, which has shifts of a rational function.
    pub fn rational_tol(&self) -> Option<f64> {
        self.dynamics_tol.filter(|_| self.is_rational())
    }
    /// Pseudofermions that share a rational function; 0 without any.
    pub fn rational(&self) -> usize {
        if self.is_rational() { self.pseudofermions } else { 0 }
    }
    /// How multigrid is set up, where it is the method.
    pub fn multigrid(&self) -> Option<MultigridParams> {
        self.multigrid
    }
    /// Solutions that are kept for first guesses.
    pub fn guesses(&self) -> usize {
        if self.is_rational() { 0 } else { self.guesses * self.pseudofermions() }
    }
    /// Whether A has blocks.
    pub fn has_blocks(&self) -> bool {
        self.operator.dependence() != LinkDependence::None
    }
    /// Whether A is an exponential.
    pub fn is_exponential(&self) -> bool {
        matches!(self.operator.dependence(), LinkDependence::Exponential(_))
    }
    /// *Collective.* Smallest and largest eigenvalue of K = M̂†M̂, where there is a rational function of it.
    pub fn extremes(
        &self,
        links: &EvolvingLinks,
        solver: &ShiftedSolver,
        seed: u64,
    ) -> Result<Option<[f64; 2]>, HmcError> {
        if !self.is_rational() {
            return Ok(None);
        }
        let solver = WilsonSolver { tol: 1e-6, ..self.solver(solver, solver) };
        spectrum::extremes(links, &self.quarks(), solver, seed).map(Some)
    }
    /// Iterations are in the precision of molecular dynamics everywhere: residuals are corrected in double precision.
    fn solver(&self, of_dynamics: &ShiftedSolver, of_this: &ShiftedSolver) -> WilsonSolver {
        WilsonSolver {
            method: self.method,
            precision: of_dynamics.precision(),
            tol: of_this.tol[0],
            max_iterations: of_this.max_iterations,
        }
    }
    /// The parts of the action, with rational functions for the interval of K.
    pub fn parts(
        &self,
        domain: &Domain,
        solvers: &[ShiftedSolver; 2],
        interval: [f64; 2],
        first: u32,
    ) -> Outcome<Vec<Box<dyn Monomial>>> {
        let mut solvers = solvers.clone();
        if let Some(tol) = self.dynamics_tol {
            solvers[0].tol = vec![tol];
        }
        let mut parts: Vec<Box<dyn Monomial>> = Vec::new();
        if self.is_rational() {
            let (name, functions) = (self.name.clone(), self.functions(interval)?);
            let (quarks, count) = (self.quarks(), self.pseudofermions);
            let part = OneFlavour::new(domain, name, quarks, functions, solvers, first, count).map_err(failed)?;
            parts.push(Box::new(part));
        } else {
            let split = SplitDeterminant {
                name: self.name.clone(),
                quarks: self.quarks(),
                heavier: self.heavier.clone(),
                solvers: [&solvers[0], &solvers[1]].map(|solver| self.solver(&solvers[0], solver)),
                precision: solvers[0].precision(),
                guesses: self.guesses,
                multigrid: self.multigrid,
            };
            for part in split.parts(domain, first).map_err(failed)? {
                parts.push(Box::new(part));
            }
        }
        if self.has_determinant() {
            let name = format!("{}, determinant of the clover term", self.name);
            parts.push(Box::new(BlockDeterminant::new(name, self.quarks(), self.flavours)));
        }
        Ok(parts)
    }
    /// Of K on an interval.
    pub fn functions(&self, interval: [f64; 2]) -> Outcome<RationalFunctions> {
        let made = rational_functions_of_norm(
            self.flavours,
            self.pseudofermions,
            interval,
            self.tolerances,
            rational::approximate_to,
        );
        made.map_err(|why| Failure::refused(format!("{}: {why}", self.name)).shared())
    }
    /// For the first line of a run.
    pub fn settings(&self) -> Value {
        let mut all = Value::Object(self.described.clone());
        all["name"] = self.name.as_str().into();
        all["operator"] = self.operator.definition.name.into();
        // As text, as fractions of staggered quarks are.
        all["flavours"] = json!([self.flavours.to_string()]);
        all["bc_time"] = match self.operator.wilson.boundary.sign() {
            sign if sign < 0.0 => "antiperiodic".into(),
            _ => "periodic".into(),
        };
        all["schur"] = match self.operator.schur {
            Schur::Symmetric => "symmetric".into(),
            Schur::Asymmetric => "asymmetric".into(),
        };
        all["hasenbusch"] = self.heavier.iter().map(|(_, name)| name.as_str()).collect();
        all["pseudofermions"] = self.pseudofermions().into();
        all["levels"] = json!(self.levels);
        all["guesses"] = json!(self.guesses);
        all["multigrid"] = self.multigrid.as_ref().map_or(Value::Null, multigrid::settings);
        all["stout"] = match self.stout {
            None => WITHOUT.into(),
            Some(smearing) => json!(stout::record(smearing)),
        };
        if self.is_rational() {
            all["errors"] = json!({ "dynamics": self.tolerances.dynamics, "action": self.tolerances.action });
        }
        all["method"] = match self.method {
            WilsonMethod::Cg => "cg".into(),
            WilsonMethod::Bicgstab => "bicgstab".into(),
            WilsonMethod::Multigrid => "multigrid".into(),
        };
        if let Some(tol) = self.dynamics_tol {
            all["dynamics_tol"] = json!([tol]);
        }
        all
    }
}
