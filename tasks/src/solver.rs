//! Settings of a solver as interfaces of other languages give them: by name, each with a default.
use crate::Failure;
use crate::batches::{BatchChoice, LARGEST_BATCH};
use crate::keys::alternatives;
use crate::parameters::name_of;
use ferrite::Precision;
use ferrite::multigrid::{MOST_COARSENINGS, MOST_VECTORS, MultigridParams};
use ferrite::operators::Operator;
use ferrite::solve::names::{OUTER_PRECISIONS, PRECISIONS, RECONSTRUCTIONS, STRATEGIES};
use ferrite::solve::{CountKey, METHODS, Method, OpenFormats, Request, ShiftStrategy};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Largest number of iterations that can be requested.
pub const MOST_ITERATIONS: usize = 1_000_000_000;

/// Error of a setting whose value is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: expected {expected}")]
pub struct WrongSetting {
    /// Name of the setting.
    pub key: String,
    /// Value of the setting as given.
    pub value: String,
    /// Description of the valid values.
    pub expected: String,
}

impl From<WrongSetting> for Failure {
    fn from(wrong: WrongSetting) -> Self {
        Failure::refused(wrong)
    }
}

impl WrongSetting {
    fn new(key: &str, value: impl Display, expected: impl Display) -> Self {
        WrongSetting { key: key.into(), value: value.to_string(), expected: expected.to_string() }
    }
}

/// Settings of a solve. A missing setting has its default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SolverSettings {
    /// Name of the method in [`METHODS`].
    pub solver: Option<String>,
    /// Name of the precision of the iteration.
    pub precision: Option<String>,
    /// Name of the precision of the solution and of the residuals of reliable updates.
    pub outer: Option<String>,
    /// Name of the link storage, such as `12`: the number of reals stored for each link.
    pub reconstruct: Option<String>,
    /// Requested tolerance ‖b − M x‖ / ‖b‖, above 0 and below 1.
    pub tol: Option<f64>,
    /// Maximum number of iterations.
    pub max_iterations: Option<usize>,
    /// Number of right-hand sides that are solved together.
    pub batch: Option<usize>,
    /// Whether a solve that stagnates continues in a higher precision.
    pub escalate: Option<bool>,
    /// Name of the strategy for several masses or shifts in [`STRATEGIES`].
    pub strategy: Option<String>,
    /// Whether multi-shift CG iterates all systems until the first one has converged.
    #[serde(skip)]
    pub shifts_together: bool,
    /// Parameters of methods that are whole numbers, under their names with `_` between words.
    pub counts: BTreeMap<String, usize>,
    /// Parameters of the multigrid setup.
    #[serde(flatten)]
    pub multigrid: MultigridSettings,
}

/// Parameters of the multigrid setup. A missing parameter has its default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MultigridSettings {
    /// Number of near-null vectors on each level, a multiple of 8.
    pub vectors: Option<usize>,
    /// Number of levels, including the finest.
    pub levels: Option<usize>,
    /// Extents x, y, z and t of the aggregates of each level except the coarsest.
    pub blocks: Option<Vec<[usize; 4]>>,
    /// Number of setup iterations in which the cycle improves its near-null vectors.
    pub improvements: Option<usize>,
    /// Precision of near-null vectors and coarse operators: `half` or `single`.
    pub setup_precision: Option<String>,
}

/// Returns a count if it is within a range.
fn count(key: &str, value: Option<usize>, range: RangeInclusive<usize>) -> Result<Option<usize>, WrongSetting> {
    match value.filter(|count| !range.contains(count)) {
        None => Ok(value),
        Some(count) => {
            Err(WrongSetting::new(key, count, format!("a whole number from {} to {}", range.start(), range.end())))
        }
    }
}

/// Returns the value with this name in `choices`.
fn choice<T: Copy>(key: &str, name: Option<&String>, choices: &[(&'static str, T)]) -> Result<Option<T>, WrongSetting> {
    let Some(name) = name else { return Ok(None) };
    let found = choices.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let names = || choices.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| WrongSetting::new(key, name, names()))
}

impl SolverSettings {
    /// Names of all settings, except those of [`names_of_counts`](Self::names_of_counts).
    pub const NAMES: [&'static str; 14] = [
        "solver",
        "precision",
        "outer",
        "reconstruct",
        "tol",
        "max_iterations",
        "batch",
        "escalate",
        "strategy",
        "vectors",
        "levels",
        "blocks",
        "improvements",
        "setup_precision",
    ];
    /// Returns the names of the parameters of methods that are whole numbers.
    pub fn names_of_counts() -> Vec<String> {
        METHODS.iter().flat_map(|method| method.counts).map(|key| name_of(key.key.name)).collect()
    }
    /// Returns the request for a solve with the operator `operator`.
    ///
    /// # Errors
    /// The first setting whose value is out of range or unknown.
    pub fn request(&self, operator: Operator) -> Result<Request, WrongSetting> {
        let mut request = Request::new(operator);
        if !request.operator.is_positive() {
            request.method = Method::AUTO;
        }
        if let Some(method) = choice("solver", self.solver.as_ref(), &METHODS.map(|method| (method.name, method)))? {
            request.method = method;
        }
        let precision = choice("precision", self.precision.as_ref(), &PRECISIONS)?;
        request.open = OpenFormats { precision: precision.is_none(), storage: self.reconstruct.is_none() };
        request.precision = precision.unwrap_or(Precision::Single);
        request.outer = choice("outer", self.outer.as_ref(), &OUTER_PRECISIONS)?.unwrap_or(request.outer);
        let storage = choice("reconstruct", self.reconstruct.as_ref(), &RECONSTRUCTIONS)?;
        request.reconstruction = storage.unwrap_or(request.reconstruction);
        if let Some(tol) = self.tol {
            if !(tol > 0.0 && tol < 1.0) {
                return Err(WrongSetting::new("tol", tol, "a number above 0 and below 1"));
            }
            request.tol = tol;
        }
        let iterations = count("max_iterations", self.max_iterations, 1..=MOST_ITERATIONS)?;
        request.max_iterations = iterations;
        request.escalate = self.escalate.unwrap_or(request.escalate);
        request.multigrid = self.multigrid.params()?;
        request.shifts_together = self.shifts_together;
        for (name, value) in &self.counts {
            request.counts.set(self.count_key(name, *value, request.method)?, *value);
        }
        Ok(request)
    }
    /// Returns the parameter called `name` of a method.
    fn count_key(&self, name: &str, value: usize, method: &Method) -> Result<&'static CountKey, WrongSetting> {
        let is_named = |key: &&&'static CountKey| name_of(key.key.name) == name;
        let known = METHODS.iter().flat_map(|method| method.counts).find(is_named);
        let all =
            || METHODS.iter().flat_map(|method| method.counts).map(|key| name_of(key.key.name)).collect::<Vec<_>>();
        let known =
            known.ok_or_else(|| WrongSetting::new(name, value, format!("one of the names {}", all().join(", "))))?;
        if !method.has_key(known.key.name) {
            let owners = METHODS.iter().filter(|method| method.has_key(known.key.name)).map(|method| method.name);
            return Err(WrongSetting::new(name, value, format!("solver = {}", alternatives(owners))));
        }
        count(name, Some(value), known.range.clone())?;
        Ok(known)
    }
    /// Returns the choice of the batch size.
    ///
    /// # Errors
    /// A number that no launch takes.
    pub fn batch(&self) -> Result<BatchChoice, WrongSetting> {
        Ok(BatchChoice { requested: count("batch", self.batch, 1..=LARGEST_BATCH)? })
    }
    /// Returns the strategy for several masses or shifts.
    ///
    /// # Errors
    /// An unknown name.
    pub fn strategy(&self) -> Result<ShiftStrategy, WrongSetting> {
        Ok(choice("strategy", self.strategy.as_ref(), &STRATEGIES)?.unwrap_or(ShiftStrategy::MultiShift))
    }
}

impl MultigridSettings {
    /// Returns the multigrid parameters, with defaults for missing ones.
    ///
    /// # Errors
    /// The first parameter whose value is out of range.
    pub fn params(&self) -> Result<MultigridParams, WrongSetting> {
        let default = MultigridParams::default();
        let mut params = MultigridParams {
            vectors: count("vectors", self.vectors, 8..=MOST_VECTORS)?.unwrap_or(default.vectors),
            levels: count("levels", self.levels, 2..=MOST_COARSENINGS + 1)?.unwrap_or(default.levels),
            improvements: count("improvements", self.improvements, 0..=1000)?.unwrap_or(default.improvements),
            precision: choice("setup_precision", self.setup_precision.as_ref(), &PRECISIONS[1..3])?
                .or(default.precision),
            ..default
        };
        let blocks = self.blocks.as_deref().unwrap_or_default();
        if blocks.len() > params.blocks.len() {
            let expected = format!("at most {} blocks, one for each level except the coarsest", params.blocks.len());
            return Err(WrongSetting::new("blocks", format!("{blocks:?}"), expected));
        }
        for (level, block) in blocks.iter().enumerate() {
            params.blocks[level] = Some(*block);
        }
        if !params.vectors.is_multiple_of(8) {
            return Err(WrongSetting::new("vectors", params.vectors, "a multiple of 8"));
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters;

    fn request(solver: Option<&str>, counts: &[(&str, usize)]) -> Result<Request, WrongSetting> {
        let counts = counts.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        let settings = SolverSettings { solver: solver.map(String::from), counts, ..SolverSettings::default() };
        let mass = [("mass".to_string(), "0.1".to_string())].into();
        settings.request(parameters::operator("wilson", mass).unwrap().operator)
    }

    #[test]
    fn parameters_of_methods_are_named_with_underscores() {
        let [key] = Method::IDR.counts else { panic!("IDR(s) has s") };
        assert_eq!(request(Some("idr"), &[("idr_s", 8)]).unwrap().counts.get(key), 8);
        assert_eq!(request(Some("idr"), &[]).unwrap().counts.get(key), key.default);
        let why = |solver, counts: &[_]| request(solver, counts).unwrap_err().to_string();
        assert_eq!(why(Some("idr"), &[("idr_s", 17)]), "idr_s = 17: expected a whole number from 1 to 16");
        assert_eq!(why(Some("cg"), &[("idr_s", 4)]), "idr_s = 4: expected solver = idr");
        assert_eq!(why(Some("idr"), &[("s", 4)]), "s = 4: expected one of the names idr_s");
    }
}
