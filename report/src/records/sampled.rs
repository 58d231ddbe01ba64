//! Settings on which the distribution of links depends.
use super::inputs::Difference;
use ferrite_records::read::read_leniently;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Keys of the settings of quarks on which the distribution of links depends.
const OF_QUARKS: [&str; 12] =
    ["operator", "mass", "flavours", "paths", "naik_epsilon", "bc_time", "theta", "clover", "xi", "nu", "mu", "stout"];

/// Settings of a start of a run on which the distribution of links depends, together with other settings of the gauge action and quarks.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SampledSettings {
    lattice: Value,
    gauge: Map<String, Value>,
    /// Settings of the quarks; `None` if the line does not have them.
    quarks: Option<Vec<Map<String, Value>>>,
}

/// Returns the first difference between the settings of two starts of a run, among those on which the distribution of links depends:
/// lattice, gauge action and quarks. A setting that one of the starts does not have is not compared.
pub fn sampled_difference(old: &Value, new: &Value) -> Option<Difference> {
    let [old, new]: [SampledSettings; 2] = [old, new].map(read_leniently);
    let known = |key: String, first: &Value, second: &Value| {
        let differ = !first.is_null() && !second.is_null() && first != second;
        differ.then(|| Difference { key, first: first.clone(), second: second.clone() })
    };
    let value = |of: &Map<String, Value>, key: &str| of.get(key).cloned().unwrap_or_default();
    let mut of_gauge =
        old.gauge.iter().filter_map(|(key, first)| known(format!("gauge.{key}"), first, &value(&new.gauge, key)));
    let groups = old.quarks.zip(new.quarks);
    let number = groups
        .as_ref()
        .and_then(|(old, new)| known("the number of groups of quarks".into(), &old.len().into(), &new.len().into()));
    let pairs = groups.into_iter().flat_map(|(old, new)| old.into_iter().zip(new)).zip(1..);
    let mut of_quarks = pairs.flat_map(|((first, second), group)| {
        OF_QUARKS.map(|key| known(format!("{key} of the quarks {group}"), &value(&first, key), &value(&second, key)))
    });
    known("lattice".into(), &old.lattice, &new.lattice)
        .or_else(|| of_gauge.next())
        .or(number)
        .or_else(|| of_quarks.find_map(|found| found))
}
