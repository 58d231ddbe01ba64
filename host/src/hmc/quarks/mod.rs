//! Quarks of an ensemble as users choose them: the keys of a table of quarks, the monomials of the action that quarks become, and the
//! registry of these monomials.
mod one_flavour;
mod rooted;
mod two_flavours;
mod wilson_like;

pub use one_flavour::OneFlavourQuarks;
pub use rooted::RootedQuarks;
pub use two_flavours::TwoFlavourQuarks;

use super::HmcError;
use super::fermions::{QuarkOperator, RationalFunctions, ShiftedSolver};
use super::functions::{Quarks, Tolerances};
use super::links::EvolvingLinks;
use super::monomial::Monomial;
use super::stout::StoutSmearing;
use super::trajectory::MOST_LEVELS;
use crate::domain::Domain;
use crate::multigrid::MultigridParams;
use crate::operators::{Definition, KeyKind, Keys, OPERATORS, choose, names_of_operators};
use crate::solve::Method;
use gpu_kernels::FermionKind;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::{Deref, RangeInclusive};
use std::sync::Arc;

/// All fermion monomials that users can choose. A table of quarks uses the first definition that [fits](MonomialDefinition::flavours) its
/// number of flavours.
pub static MONOMIALS: [&MonomialDefinition; 3] =
    [&rooted::ROOTED, &two_flavours::TWO_FLAVOURS, &one_flavour::ONE_FLAVOUR];

/// Kind of fermion monomial that users can choose.
pub struct MonomialDefinition {
    /// Name of the monomial in documents.
    pub name: &'static str,
    /// Fermion type of the quarks.
    pub kind: FermionKind,
    /// Required number of flavours; `None` for any.
    pub flavours: Option<usize>,
    /// Names and kinds of the monomial's own keys. Keys of the operator, of the [methods](Self::methods) and of [all tables](KEYS_OF_ALL)
    /// are not included.
    pub keys: &'static [QuarkKey],
    /// Methods among which users can choose for the monomial's systems; empty if there is no choice.
    pub methods: &'static [&'static Method],
    /// Message for a key that only other monomials of the same fermion type have: the reason why the key does not apply.
    pub refusal: &'static str,
    /// Function that reads the keys of a table of quarks with the given operator. It returns the quarks, or records errors in the keys and
    /// returns `None`.
    pub resolve: fn(&mut dyn QuarkKeys, Option<&'static Definition>) -> Option<QuarkGroup>,
}

/// Name and kind of a key of a table of quarks.
pub type QuarkKey = (&'static str, KeyKind);

/// Keys that every table of quarks has, without those of the operator and of the monomial.
pub const KEYS_OF_ALL: [QuarkKey; 7] = [
    ("operator", KeyKind::Word),
    ("flavours", KeyKind::Fractions),
    ("dynamics-tol", KeyKind::Numbers),
    ("level", KeyKind::Numbers),
    ("stout-rho", KeyKind::Number),
    ("stout-levels", KeyKind::Count),
    ("stout-spatial", KeyKind::Switch),
];

/// Keys of single solves only. An ensemble makes its multigrid setups itself, and its staggered links include the boundary condition in the
/// last time slice.
const OF_SINGLE_SOLVES: [&str; 3] = ["setup", "check-setup", "spread-boundary"];

/// Returns every key that some table of quarks can have. If both an operator and a monomial have a key, the monomial determines its kind:
/// for example several masses instead of one.
pub fn quark_keys() -> impl Iterator<Item = QuarkKey> {
    let of_operators = OPERATORS.iter().flat_map(|operator| operator.all_keys()).map(|key| (key.name, key.kind));
    let mut seen = BTreeSet::new();
    let all = MONOMIALS.iter().flat_map(|monomial| monomial.all_keys()).chain(of_operators);
    all.filter(move |(name, _)| !OF_SINGLE_SOLVES.contains(name) && seen.insert(*name))
}

/// Keys of a table of quarks as the user typed them.
pub trait QuarkKeys: Keys {
    /// Returns a value as typed.
    fn text(&self, key: &str) -> Option<String>;
    /// Returns a whole number in a range.
    fn count(&mut self, key: &'static str, range: RangeInclusive<usize>) -> Option<usize>;
    /// Returns one or several finite numbers for which `fits` holds; `expected` describes them in messages.
    fn numbers(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<Vec<f64>>;
    /// Returns one or several relative residuals.
    fn residuals(&mut self, key: &'static str) -> Option<Vec<f64>>;
    /// Records the error of a missing value if `understood` is false, unless the key is given with a wrong value.
    fn needed(&mut self, understood: bool, key: &str, example: &str);
    /// Returns the stout smearing of the links that the keys `stout-…` specify.
    fn stout(&mut self) -> Option<StoutSmearing>;
    /// Returns the parameters of multigrid that the keys `mg-…` specify.
    fn multigrid(&mut self) -> MultigridParams;
}

/// Properties of quarks that determine the device memory they need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MonomialNeeds {
    /// Operator of staggered quarks; `None` for other quarks.
    pub operator: Option<QuarkOperator>,
    /// Stout smearing of the operator's links; `None` without stout smearing.
    pub stout: Option<StoutSmearing>,
    /// Total number of pseudofermions in all monomials of the quarks.
    pub pseudofermions: usize,
    /// Number of pseudofermions that share a rational function; 0 without a rational function.
    pub rational: usize,
    /// Whether the diagonal term of the operator consists of blocks that depend on the links, such as a clover term.
    pub has_blocks: bool,
    /// Whether the diagonal term of the operator is the exponential of a clover term.
    pub is_exponential: bool,
    /// Number of stored solutions from which initial guesses are made, for all pseudofermions together.
    pub guesses: usize,
    /// Parameters of multigrid, if multigrid is the method.
    pub multigrid: Option<MultigridParams>,
}

/// Interface of quarks that become monomials of the action.
pub trait QuarkAction: Debug + Send + Sync {
    /// Returns the level of the integrator of each monomial.
    fn levels(&self) -> Vec<usize>;
    /// Returns the number of pseudofermions of all monomials. Each pseudofermion needs a noise vector.
    fn pseudofermions(&self) -> usize {
        self.needs().pseudofermions
    }
    /// Whether the quarks have a rational function.
    fn is_rational(&self) -> bool {
        self.needs().rational > 0
    }
    /// Returns the properties that determine the device memory of the quarks.
    fn needs(&self) -> MonomialNeeds;
    /// Returns the residuals of molecular dynamics for these quarks, a single one or one for each pole; `None` to use the residuals of all
    /// quarks.
    fn dynamics_tol(&self) -> Option<&[f64]>;
    /// *Collective.* Returns the spectral bounds on which rational functions depend; `None` without rational functions. Systems are solved
    /// in the precision of `solver`.
    ///
    /// # Errors
    /// Solvers that give up, and failures of the device.
    fn bounds(&self, links: &EvolvingLinks, solver: &ShiftedSolver, seed: u64) -> Result<Option<[f64; 2]>, HmcError>;
    /// Returns the interval of rational functions for these spectral bounds.
    fn interval(&self, bounds: [f64; 2]) -> [f64; 2];
    /// Returns rational functions for an interval; `None` if none are needed.
    ///
    /// # Errors
    /// Errors of the rational approximation.
    fn functions(&self, interval: [f64; 2]) -> Result<Option<RationalFunctions>, rational::Error>;
    /// Returns the monomials of these quarks. `name` is the name of the quarks, and `first` the number of pseudofermions of earlier quarks.
    /// `solvers` are the solver of molecular dynamics and the solver of heat bath and Metropolis step.
    ///
    /// # Errors
    /// Failures of the device.
    ///
    /// # Panics
    /// If rational functions are needed but `functions` is `None`.
    fn parts(
        &self,
        name: &str,
        domain: &Domain,
        solvers: &[ShiftedSolver; 2],
        functions: Option<RationalFunctions>,
        first: u32,
    ) -> Result<Vec<Box<dyn Monomial>>, HmcError>;
    /// Returns the settings, for records.
    fn describe(&self) -> Map<String, Value>;
    /// Returns the operator and the flavours of staggered quarks, whose condensates can be measured; `None` for other quarks.
    fn staggered(&self) -> Option<(&QuarkOperator, &[Quarks])> {
        None
    }
}

/// Quarks of one table, with a name for reports.
#[derive(Clone, Debug)]
pub struct QuarkGroup {
    /// Name for reports: operator, flavours and masses.
    pub name: String,
    /// Settings of the quarks, from which the monomials of their action are made.
    pub action: Arc<dyn QuarkAction>,
}

impl Deref for QuarkGroup {
    type Target = dyn QuarkAction;
    fn deref(&self) -> &Self::Target {
        &*self.action
    }
}

impl QuarkGroup {
    fn new(name: String, action: impl QuarkAction + 'static) -> Self {
        QuarkGroup { name, action: Arc::new(action) }
    }
    /// Returns the solvers of the quarks: one for molecular dynamics, and one for heat bath and Metropolis step. `of_all` are the solvers
    /// that all quarks share; the key `dynamics-tol` of these quarks replaces the residual of the first one.
    pub fn solvers(&self, of_all: &[ShiftedSolver; 2]) -> [ShiftedSolver; 2] {
        let mut solvers = of_all.clone();
        if let Some(own) = self.dynamics_tol() {
            solvers[0].tol = own.into();
        }
        solvers
    }
    /// Returns the settings and the name of the quarks, for records.
    pub fn describe(&self) -> Value {
        let mut all = self.action.describe();
        all.insert("name".into(), self.name.clone().into());
        Value::Object(all)
    }
    /// Reads the keys of a table of quarks. Returns the quarks, or records errors in the keys and returns `None`.
    pub fn resolve(keys: &mut dyn QuarkKeys) -> Option<Self> {
        let operator = choose(keys, "operator", &names_of_operators().collect::<Vec<_>>());
        keys.needed(operator.is_some(), "operator", "operator = \"asqtad\", \"hisq\" or \"clover\"");
        let kind = operator.map_or(FermionKind::Staggered, |operator| operator.kind);
        let of_kind: Vec<_> = MONOMIALS.into_iter().filter(|monomial| monomial.kind == kind).collect();
        let several = of_kind.iter().filter_map(|monomial| monomial.flavours).max();
        let flavours = several.and_then(|most| keys.count("flavours", 1..=most));
        let fitting = of_kind.iter().find(|monomial| monomial.flavours == flavours).or(of_kind.last());
        let monomial = fitting.expect("there are parts of the action for each kind");
        monomial.refuse_others(keys, operator);
        if kind == FermionKind::Wilson {
            keys.needed(flavours.is_some(), "flavours", "flavours = 2");
        }
        let resolved = (monomial.resolve)(keys, operator);
        resolved.filter(|_| several.is_none() || flavours.is_some())
    }
}

impl MonomialDefinition {
    /// Returns all keys of the monomial except keys of operators.
    pub fn all_keys(&self) -> impl Iterator<Item = QuarkKey> {
        let of_methods = self.methods.iter().flat_map(|method| method.keys).map(|key| (key.name, key.kind));
        let of_methods = of_methods.filter(|(name, _)| !OF_SINGLE_SOLVES.contains(name));
        KEYS_OF_ALL.into_iter().chain(self.keys.iter().copied()).chain(of_methods)
    }
    fn has_key(&self, name: &str) -> bool {
        self.all_keys().any(|(key, _)| key == name)
    }
    /// Records an error for each key that belongs to another operator or another monomial.
    fn refuse_others(&self, keys: &mut dyn QuarkKeys, operator: Option<&'static Definition>) {
        let all: BTreeSet<_> = quark_keys().map(|(name, _)| name).collect();
        let is_own = |key: &str| self.has_key(key) || operator.is_some_and(|operator| operator.has_key(key));
        for key in all.into_iter().filter(|key| !is_own(key)) {
            keys.refuse(key, &self.why_not(key, operator));
        }
    }
    fn why_not(&self, key: &str, operator: Option<&'static Definition>) -> String {
        if MONOMIALS.iter().any(|other| other.kind == self.kind && other.has_key(key)) {
            return self.refusal.into();
        }
        match operator {
            Some(operator) if OPERATORS.iter().any(|other| other.kind == self.kind && other.has_key(key)) => {
                format!("{} quarks do not have this parameter: remove it", operator.name)
            }
            _ => match self.kind {
                FermionKind::Wilson => "applies only to staggered quarks: remove it".into(),
                FermionKind::Staggered => "applies only to Wilson-like quarks: remove it".into(),
            },
        }
    }
}

/// Parses one or several whole numbers in a range, separated by commas.
///
/// # Errors
/// A sentence that names the text that is not such a number.
pub fn whole_numbers(typed: &str, range: &RangeInclusive<usize>) -> Result<Vec<usize>, String> {
    let one = |text: &str| {
        let (text, expected) = (text.trim(), format!("a whole number from {} to {}", range.start(), range.end()));
        match text.replace('_', "").parse::<usize>() {
            Ok(n) if range.contains(&n) => Ok(n),
            Ok(n) if n > *range.end() => Err(format!("'{text}' is too large: give {expected}")),
            Ok(_) => Err(format!("'{text}' is too small: give {expected}")),
            Err(_) => Err(format!("'{text}' is not {expected}")),
        }
    };
    typed.split(',').map(one).collect()
}

/// Parses the value of a key with `read`; returns `None` if the key is not given or `read` fails.
fn parsed<T>(keys: &mut dyn QuarkKeys, key: &'static str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
    let mut found = None;
    keys.parse(key, &mut |typed| {
        found = Some(read(typed)?);
        Ok(())
    });
    found
}

/// Returns the levels of the integrator on which forces act; without the key, only 0, the outermost one.
fn levels(keys: &mut dyn QuarkKeys) -> Vec<usize> {
    parsed(keys, "level", |typed| whole_numbers(typed, &(0..=MOST_LEVELS - 1))).unwrap_or(vec![0])
}

/// Returns the tolerances of rational functions, or their defaults.
fn tolerances(keys: &mut dyn QuarkKeys) -> Tolerances {
    let default = Tolerances::default();
    let mut error = |key| keys.number(key, "a number of at least 1e-15 and below 1", &|x| (1e-15..1.0).contains(&x));
    Tolerances {
        dynamics: error("dynamics-error").unwrap_or(default.dynamics),
        action: error("action-error").unwrap_or(default.action),
    }
}

/// Returns a number with its noun: `1 mass`, `2 masses`.
fn counted(n: usize, one: &str, several: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { several })
}

/// Converts settings to the keys of a record.
fn keys_of(settings: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(keys)) => keys,
        other => unreachable!("settings of quarks have names: {other:?}"),
    }
}
