//! Parameters of operators and quarks as named texts, for interfaces of other languages. Names are those of the registry, with `_` in place
//! of `-`.
use crate::{Failure, Outcome};
use ferrite::FermionKind;
use ferrite::hmc::quarks::{QuarkGroup, QuarkKeys};
use ferrite::hmc::stout::{LARGEST_RHO, MOST_SMEARING_LEVELS, StoutSmearing};
use ferrite::multigrid::MultigridParams;
use ferrite::operators::{Definition, Keys, OPERATORS, Operator, operator_named};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Parameters by name, with the mistakes found in them.
struct NamedTexts {
    values: BTreeMap<String, String>,
    used: BTreeSet<String>,
    wrong: Vec<String>,
}

/// Returns the name of a key in other languages: with `_` in place of each `-`.
pub fn name_of(key: &str) -> String {
    key.replace('-', "_")
}

/// Rewords a sentence of the registry for other languages: `bc-time` becomes `bc_time`, and flags lose their dashes.
pub fn reworded(why: &str) -> String {
    let mut said = why.replace("--", "");
    for key in OPERATORS.iter().flat_map(|definition| definition.all_keys()).filter(|key| key.name.contains('-')) {
        said = said.replace(key.name, &name_of(key.name));
    }
    said
}

impl NamedTexts {
    fn new(values: BTreeMap<String, String>) -> Self {
        NamedTexts { values, used: BTreeSet::new(), wrong: Vec::new() }
    }
    fn get(&mut self, key: &str) -> Option<String> {
        let name = name_of(key);
        let found = self.values.get(&name).cloned();
        self.used.insert(name);
        found
    }
    fn is_wrong(&mut self, key: &str, value: &str, why: &str) {
        self.wrong.push(format!("{} = {value}: {}", name_of(key), reworded(why)));
    }
    /// Fails with a list of all mistakes. Parameters that the operator does not have are mistakes.
    fn finish(mut self, definition: &Definition) -> Outcome {
        let all: Vec<String> = definition.all_keys().map(|key| name_of(key.name)).collect();
        for name in self.values.keys().filter(|name| !self.used.contains(*name)) {
            let (operator, all) = (definition.name, all.join(", "));
            self.wrong.push(format!("{name}: {operator} has no such parameter; its parameters are {all}"));
        }
        match self.wrong.as_slice() {
            [] => Ok(()),
            wrong => Err(Failure::refused(wrong.join("\n"))),
        }
    }
}

impl Keys for NamedTexts {
    fn is_given(&self, key: &str) -> bool {
        self.values.contains_key(&name_of(key))
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
        self.wrong.push(format!("{} and {}: {}", name_of(key), name_of(other), reworded(why)));
    }
    fn missing(&mut self, why: &str) {
        self.wrong.push(reworded(why));
    }
    fn spelled(&self, key: &str, value: &str) -> String {
        if value.is_empty() { name_of(key) } else { format!("{} = {value}", name_of(key)) }
    }
}

impl QuarkKeys for NamedTexts {
    fn text(&self, key: &str) -> Option<String> {
        self.values.get(&name_of(key)).cloned()
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
            self.missing(&format!("{} is missing; give it, for example {example}", name_of(key)));
        }
    }
    fn stout(&mut self) -> Option<StoutSmearing> {
        let rho = self.number("stout-rho", "a number from 0 to 0.25", &|rho| (0.0..=LARGEST_RHO).contains(&rho));
        let levels = self.count("stout-levels", 1..=MOST_SMEARING_LEVELS.into()).unwrap_or(1);
        Some(StoutSmearing { rho: rho?, levels, spatial: false })
    }
    fn multigrid(&mut self) -> MultigridParams {
        MultigridParams::default()
    }
}

/// Returns the quark group that has the parameters `values`.
///
/// # Errors
/// Everything that is wrong with the parameters.
pub fn quarks(kind: FermionKind, values: BTreeMap<String, String>) -> Outcome<QuarkGroup> {
    let operator = values.get("operator").map(String::as_str).unwrap_or_default();
    let definition = definition(operator)?;
    if definition.kind != kind {
        let quarks = if kind == FermionKind::Wilson { "Wilson-like" } else { "staggered" };
        let fitting = OPERATORS.iter().filter(|definition| definition.kind == kind);
        let names: Vec<&str> = fitting.map(|definition| definition.name).collect();
        let why = format!("operator = {operator}: {quarks} quarks need one of the operators {}", names.join(", "));
        return Err(Failure::refused(why));
    }
    let mut given = NamedTexts::new(values);
    let resolved = QuarkGroup::resolve(&mut given);
    given.finish(definition)?;
    resolved.ok_or_else(|| Failure::refused("a parameter is missing"))
}

fn definition(name: &str) -> Outcome<&'static Definition> {
    operator_named(name).ok_or_else(|| {
        let names: Vec<&str> = OPERATORS.iter().map(|definition| definition.name).collect();
        Failure::refused(format!("'{name}' is not an operator: choose one of {}", names.join(", ")))
    })
}

/// Operator, with a record of its parameters under the names of its definition.
pub struct NamedOperator {
    /// Operator with the values of its parameters.
    pub operator: Operator,
    /// Parameters by name, including those that all operators have, such as the mass.
    pub parameters: Map<String, Value>,
}

/// Returns the operator called `name` with the parameters `values`.
///
/// # Errors
/// Everything that is wrong with the parameters.
pub fn operator(name: &str, values: BTreeMap<String, String>) -> Outcome<NamedOperator> {
    let definition = definition(name)?;
    let mut given = NamedTexts::new(values);
    let resolved = definition.resolve_all(&mut given);
    // Solves for several masses take the masses as arguments; their operator has no mass parameter.
    let staggered = definition.kind == FermionKind::Staggered;
    let mass = if staggered { given.number("mass", "a number", &|_| true) } else { None };
    given.finish(definition)?;
    let (operator, mut parameters) = resolved.ok_or_else(|| Failure::refused("a parameter is missing"))?;
    let operator = match mass {
        Some(mass) => operator.with_mass(mass),
        None => operator,
    };
    let of_all: [(&str, Value); 4] = [
        ("operator", name.into()),
        ("mass", operator.mass().into()),
        ("antiperiodic", (operator.boundary().sign() < 0.0).into()),
        ("staggered", staggered.into()),
    ];
    parameters.extend(of_all.map(|(key, value)| (key.to_string(), value)));
    Ok(NamedOperator { operator, parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
    }

    #[test]
    fn operators_have_underscores_in_names_of_parameters() {
        let found = operator("wilson", texts(&[("kappa", "0.125"), ("bc_time", "periodic")])).unwrap();
        assert_eq!((found.operator.mass(), &found.parameters["antiperiodic"]), (0.0, &Value::Bool(false)));
        let found = operator("asqtad", texts(&[("mass", "0.1"), ("u0", "0.9")])).unwrap();
        assert_eq!((found.operator.mass(), &found.parameters["staggered"]), (0.1, &Value::Bool(true)));
    }

    #[test]
    fn all_mistakes_are_in_one_message() {
        let why = operator("wilson", texts(&[("bc_time", "open"), ("csw", "1")])).err().unwrap().message;
        let lines: Vec<&str> = why.lines().collect();
        assert!(
            lines.iter().any(|line| line.starts_with("bc_time = open: expected antiperiodic or periodic")),
            "{why}"
        );
        let other = "csw: wilson has no such parameter; its parameters are mass,";
        assert!(lines.iter().any(|line| line.starts_with(other)), "{why}");
        let why = operator("overlap", BTreeMap::new()).err().unwrap().message;
        assert!(why.starts_with("'overlap' is not an operator: choose one of wilson, clover"), "{why}");
        let why = quarks(FermionKind::Wilson, texts(&[("operator", "asqtad")])).err().unwrap().message;
        assert!(
            why.starts_with("operator = asqtad: Wilson-like quarks need one of the operators wilson, clover"),
            "{why}"
        );
    }
}
