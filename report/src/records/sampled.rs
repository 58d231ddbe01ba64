//! Settings on which the distribution of links depends.
use super::inputs::Difference;
use serde_json::Value;

/// Keys of quarks on which the distribution of links depends.
const OF_QUARKS: [&str; 12] =
    ["operator", "mass", "flavours", "paths", "naik_epsilon", "bc_time", "theta", "clover", "xi", "nu", "mu", "stout"];

/// The first setting on which the distribution of links depends and by which two starts differ: lattice, gauge action, or quarks. A
/// setting that one of them does not have is not compared.
pub fn sampled_difference(old: &Value, new: &Value) -> Option<Difference> {
    let known = |key: String, first: &Value, second: &Value| {
        let differ = !first.is_null() && !second.is_null() && first != second;
        differ.then(|| Difference { key, first: first.clone(), second: second.clone() })
    };
    let gauge = old["gauge"].as_object().into_iter().flatten();
    let mut of_gauge = gauge.filter_map(|(key, first)| known(format!("gauge.{key}"), first, &new["gauge"][key]));
    let groups = [old, new].map(|one| one["quarks"].as_array().map_or(&[][..], Vec::as_slice));
    let number = known("the number of groups of quarks".into(), &groups[0].len().into(), &groups[1].len().into());
    let both = old["quarks"].is_array() && new["quarks"].is_array();
    let mut of_quarks = groups[0].iter().zip(groups[1]).zip(1..).flat_map(|((first, second), group)| {
        let one = move |key: &&str| known(format!("{key} of the quarks {group}"), &first[*key], &second[*key]);
        OF_QUARKS.iter().filter_map(one).collect::<Vec<_>>()
    });
    known("lattice".into(), &old["lattice"], &new["lattice"])
        .or_else(|| of_gauge.next())
        .or_else(|| number.filter(|_| both))
        .or_else(|| of_quarks.next())
}
