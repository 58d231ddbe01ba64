//! Differences between the inputs of two results.
//!
//! Lines of results contain the keys on which they depend, as they were typed. Two inputs are equal if they have the same meaning:
//! numbers are compared as numbers, and a missing key has its default.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// First key in which two inputs differ, with both values; a value is `null` if the input does not have the key.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Key with the keys that contain it, separated by dots: `solve.csw`.
    pub key: String,
    /// Value of the key in the first input.
    pub first: Value,
    /// Value of the key in the second input.
    pub second: Value,
}

/// Defaults of the keys of a solve, which are equal for all operators.
const DEFAULTS: [(&str, &str); 15] = [
    ("operator", "wilson"),
    ("bc-time", "antiperiodic"),
    ("theta", "0,0,0,0"),
    ("phases", "milc"),
    ("spread-boundary", "false"),
    ("naik-epsilon", "0"),
    ("u0", "1"),
    ("xi", "1"),
    ("nu", "1"),
    ("record", "0"),
    ("reunitarise", "false"),
    ("stout-rho", "0"),
    ("stout-levels", "1"),
    ("stout-spatial", "false"),
    ("tol", "1e-10"),
];

/// Alternative names of operators, each with the usual name.
const OPERATOR_ALIASES: [(&str, &str); 1] = [("naive", "staggered")];

/// Returns the first key in which two inputs differ in meaning, or `None` if they are equivalent.
pub fn difference(first: &Value, second: &Value) -> Option<Difference> {
    if first == second {
        return None;
    }
    let resolved = |input| resolved(input).and_then(|input| serde_json::to_value(input).ok());
    differing(&resolved(first).unwrap_or(first.clone()), &resolved(second).unwrap_or(second.clone()))
}

fn differing(first: &Value, second: &Value) -> Option<Difference> {
    match (first, second) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.find_map(|key| {
                let [x, y] = [a, b].map(|object| object.get(key).unwrap_or(&Value::Null));
                differing(x, y).map(|below| match below.key.as_str() {
                    "" => Difference { key: key.clone(), ..below },
                    inner => Difference { key: format!("{key}.{inner}"), ..below },
                })
            })
        }
        _ if first == second => None,
        _ => Some(Difference { key: String::new(), first: first.clone(), second: second.clone() }),
    }
}

/// Input with its tables of solves: one table for all quarks, or one for each quark.
#[derive(Serialize, Deserialize)]
struct InputWithSolves {
    #[serde(skip_serializing_if = "Option::is_none")]
    solve: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    quarks: BTreeMap<String, Map<String, Value>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl InputWithSolves {
    fn solves(&mut self) -> impl Iterator<Item = &mut Map<String, Value>> {
        self.solve.iter_mut().chain(self.quarks.values_mut())
    }
}

/// Returns the input with all defaults of its solves filled in, and with numbers in place of texts. Returns `None` if it has no tables of
/// solves.
fn resolved(input: &Value) -> Option<InputWithSolves> {
    let mut input = InputWithSolves::deserialize(input).ok()?;
    input.solves().for_each(resolve);
    Some(input)
}

fn resolve(solve: &mut Map<String, Value>) {
    // Replaces an alternative name of the operator by its usual name.
    if let Some((_, own)) =
        OPERATOR_ALIASES.iter().find(|(alias, _)| solve.get("operator").is_some_and(|name| name == alias))
    {
        solve.insert("operator".into(), (*own).into());
    }
    for (key, default) in DEFAULTS {
        solve.entry(key).or_insert_with(|| default.into());
    }
    for value in solve.values_mut() {
        let Value::String(text) = &*value else { continue };
        let numbers: Option<Vec<f64>> = text.split(',').map(|one| one.trim().replace('_', "").parse().ok()).collect();
        match numbers.as_deref() {
            Some([number]) => *value = (*number).into(),
            Some(several) => *value = several.into(),
            None => {}
        }
    }
}

/// Returns whether the quarks of an input have twisted boundary conditions in space. Momenta of opposite sign then differ.
pub fn has_spatial_twist(input: &Value) -> bool {
    let Some(mut input) = resolved(input) else { return false };
    input.solves().any(|solve| match solve.get("theta") {
        Some(Value::Array(angles)) => angles.iter().take(3).any(|angle| *angle != 0.0),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn inputs_differ_by_what_they_mean() {
        let input = |solve: Value| json!({ "source": "point", "solve": solve });
        let plain = input(json!({ "mass": "0.05" }));
        let same = input(json!({ "operator": "wilson", "mass": "5e-2", "theta": "0.0, 0,0.0,0", "tol": "1e-10" }));
        assert_eq!(difference(&plain, &same), None);
        let other = input(json!({ "operator": "clover", "mass": "0.05", "csw": "1.5" }));
        let found = difference(&plain, &other).unwrap();
        let expected = Difference { key: "solve.operator".into(), first: json!("wilson"), second: json!("clover") };
        assert_eq!(found, expected);
        let source = json!({ "source": "wall", "solve": { "mass": "0.05" } });
        assert_eq!(difference(&plain, &source).unwrap().key, "source");
        let noise = |seed: u64| json!({ "noise": { "vectors": 4, "seed": seed } });
        let found = difference(&noise(1), &noise(2)).unwrap();
        assert_eq!((found.key.as_str(), found.first, found.second), ("noise.seed", json!(1), json!(2)));
    }

    #[test]
    fn twists_are_found() {
        assert!(!has_spatial_twist(&json!({ "solve": { "theta": "0,0,0,3.1" } })));
        assert!(has_spatial_twist(&json!({ "solve": { "theta": "0.1,0,0,0" } })));
        assert!(has_spatial_twist(&json!({ "quarks": { "a": {}, "b": { "theta": "0,0,1,0" } } })));
        assert!(!has_spatial_twist(&json!({ "quarks": { "a": {} }, "source": "point" })));
    }
}
