//! Parameters as Python's keyword arguments, under the names of the registry with `_` in place of `-`.
use crate::failure::{Failure, Outcome};
use ferrite::FermionKind;
use ferrite::hmc::quarks::{QuarkGroup, QuarkKeys};
use ferrite::hmc::stout::{LARGEST_RHO, MOST_LEVELS, StoutSmearing};
use ferrite::multigrid::MultigridParams;
use ferrite::operators::{Definition, Keys, OPERATORS, Operator, operator_named};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Parameters with what was found wrong with them.
pub struct Given {
    values: BTreeMap<String, String>,
    used: BTreeSet<String>,
    wrong: Vec<String>,
}

/// How Python calls a parameter.
pub fn in_python(key: &str) -> String {
    key.replace('-', "_")
}

/// A sentence of the registry as Python's users understand it: `bc-time` is `bc_time`, and flags lose their dashes.
pub fn reworded(why: &str) -> String {
    let mut said = why.replace("--", "");
    for key in OPERATORS.iter().flat_map(|definition| definition.all_keys()).filter(|key| key.name.contains('-')) {
        said = said.replace(key.name, &in_python(key.name));
    }
    said
}

impl Given {
    /// From arguments as texts.
    pub fn new(values: BTreeMap<String, String>) -> Self {
        Given { values, used: BTreeSet::new(), wrong: Vec::new() }
    }
    fn get(&mut self, key: &str) -> Option<String> {
        let name = in_python(key);
        let found = self.values.get(&name).cloned();
        self.used.insert(name);
        found
    }
    fn is_wrong(&mut self, key: &str, value: &str, why: &str) {
        self.wrong.push(format!("{} = {value}: {}", in_python(key), reworded(why)));
    }
    /// Everything that is wrong, in one message.
    fn finish(mut self, definition: &Definition) -> Outcome {
        let all: Vec<String> = definition.all_keys().map(|key| in_python(key.name)).collect();
        for name in self.values.keys().filter(|name| !self.used.contains(*name)) {
            self.wrong.push(format!("{name}: {} has no such parameter; there are {}", definition.name, all.join(", ")));
        }
        match self.wrong.as_slice() {
            [] => Ok(()),
            wrong => Err(Failure::input(wrong.join("\n"))),
        }
    }
}

impl Keys for Given {
    fn is_given(&self, key: &str) -> bool {
        self.values.contains_key(&in_python(key))
    }
    fn number(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<f64> {
        let text = self.get(key)?;
        let number = text.parse::<f64>().ok().filter(|x| x.is_finite() && fits(*x));
        if number.is_none() {
            self.is_wrong(key, &text, &format!("expected {expected}"));
        }
        number
    }
    fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<usize> {
        let text = self.get(key)?;
        let found = words.iter().position(|word| *word == text);
        if found.is_none() {
            self.is_wrong(key, &text, &format!("expected {}", words.join(" or ")));
        }
        found
    }
    fn parse(&mut self, key: &'static str, parse: &mut dyn FnMut(&str) -> Result<(), String>) {
        if let Some(text) = self.get(key)
            && let Err(why) = parse(&text)
        {
            self.is_wrong(key, &text, &why);
        }
    }
    fn is_on(&mut self, key: &'static str) -> bool {
        match self.get(key).as_deref() {
            None | Some("False") => false,
            Some("True") => true,
            Some(other) => {
                let other = other.to_string();
                self.is_wrong(key, &other, "expected True or False");
                false
            }
        }
    }
    fn refuse(&mut self, key: &str, why: &str) {
        if let Some(text) = self.get(key) {
            self.is_wrong(key, &text, why);
        }
    }
    fn conflict(&mut self, key: &str, other: &str, why: &str) {
        self.wrong.push(format!("{} and {}: {}", in_python(key), in_python(other), reworded(why)));
    }
    fn missing(&mut self, why: &str) {
        self.wrong.push(reworded(why));
    }
    fn spelled(&self, key: &str, value: &str) -> String {
        if value.is_empty() { in_python(key) } else { format!("{} = {value}", in_python(key)) }
    }
}

impl QuarkKeys for Given {
    fn text(&self, key: &str) -> Option<String> {
        self.values.get(&in_python(key)).cloned()
    }
    fn count(&mut self, key: &'static str, range: RangeInclusive<usize>) -> Option<usize> {
        let text = self.get(key)?;
        let count = text.parse::<usize>().ok().filter(|count| range.contains(count));
        if count.is_none() {
            self.is_wrong(key, &text, &format!("expected a whole number from {} to {}", range.start(), range.end()));
        }
        count
    }
    fn numbers(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<Vec<f64>> {
        let text = self.get(key)?;
        let one = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite() && fits(*x));
        let numbers = text.split(',').map(one).collect::<Option<Vec<_>>>();
        if numbers.is_none() {
            self.is_wrong(key, &text, &format!("expected {expected}"));
        }
        numbers
    }
    fn residuals(&mut self, key: &'static str) -> Option<Vec<f64>> {
        self.numbers(key, "numbers above 0 and below 1", &|x| x > 0.0 && x < 1.0)
    }
    fn needed(&mut self, understood: bool, key: &str, example: &str) {
        if !understood && !self.is_given(key) {
            self.missing(&format!("{} is missing; for example {example}", in_python(key)));
        }
    }
    fn stout(&mut self) -> Option<StoutSmearing> {
        let rho = self.number("stout-rho", "a number from 0 to 0.25", &|rho| (0.0..=LARGEST_RHO).contains(&rho));
        let levels = self.count("stout-levels", 1..=MOST_LEVELS.into()).unwrap_or(1);
        Some(StoutSmearing { rho: rho?, levels, spatial: false })
    }
    fn multigrid(&mut self) -> MultigridParams {
        MultigridParams::default()
    }
}

/// Quarks that become parts of an action, with these parameters.
pub fn quarks(kind: FermionKind, values: BTreeMap<String, String>) -> Outcome<QuarkGroup> {
    let operator = values.get("operator").map(String::as_str).unwrap_or_default();
    let definition = definition(operator)?;
    if definition.kind != kind {
        return Err(Failure::input(format!(
            "{operator} quarks cannot be made so: two and one flavours are for Wilson-like ones"
        )));
    }
    let mut given = Given::new(values);
    let resolved = QuarkGroup::resolve(&mut given);
    given.finish(definition)?;
    resolved.ok_or_else(|| Failure::input("a parameter is missing"))
}

fn definition(name: &str) -> Outcome<&'static Definition> {
    operator_named(name).ok_or_else(|| {
        let names: Vec<&str> = OPERATORS.iter().map(|definition| definition.name).collect();
        Failure::input(format!("'{name}' is no operator: there are {}", names.join(", ")))
    })
}

/// The operator of this name with these parameters, and what is said of it beside an answer.
pub fn resolve(
    name: &str,
    values: BTreeMap<String, String>,
) -> Outcome<(Operator, serde_json::Map<String, serde_json::Value>)> {
    let definition = definition(name)?;
    let mut given = Given::new(values);
    let resolved = definition.resolve_all(&mut given);
    // Solves for several masses have them beside the operator, of which it is then not one.
    let staggered = definition.kind == FermionKind::Staggered;
    let mass = if staggered { given.number("mass", "a number", &|_| true) } else { None };
    given.finish(definition)?;
    let (operator, said) = resolved.ok_or_else(|| Failure::input("a parameter is missing"))?;
    let operator = match mass {
        Some(mass) => operator.with_mass(mass),
        None => operator,
    };
    Ok((operator, said))
}
