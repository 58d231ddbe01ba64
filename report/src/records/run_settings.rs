//! Settings of a run, as its lines tell them, in words. What is not there, or not as expected, is left out.
use super::trajectories::RunHistory;
use crate::text::extents_in;
use serde_json::Value;

/// What the run is: names and values.
pub fn facts(run: &RunHistory) -> Vec<(String, String)> {
    let settings = run.settings();
    let found = [
        ("lattice", lattice(settings)),
        ("gauge action", gauge(&settings["gauge"])),
        ("quarks", each(&settings["quarks"], quarks)),
        ("trajectory", trajectory(settings)),
        ("start", start(settings)),
        ("links and momenta", settings["links"].as_str().map(|precision| format!("in {precision} precision"))),
        ("device", device(settings)),
        ("ferrite", settings["version"].as_str().map(|version| format!("version {version}"))),
        ("continued", continued(run)),
    ];
    found.into_iter().filter_map(|(what, value)| Some((what.into(), value?))).collect()
}

/// `X×Y×Z×T`.
pub fn lattice(settings: &Value) -> Option<String> {
    extents_in(&settings["lattice"])
}

/// A few words on the gauge action.
pub fn action(settings: &Value) -> Option<String> {
    let gauge = &settings["gauge"];
    Some(format!("{} gauge action, β = {}", gauge["action"].as_str()?, gauge["beta"].as_f64()?))
}

fn gauge(gauge: &Value) -> Option<String> {
    let mut text = format!("{}, β = {}", gauge["action"].as_str()?, gauge["beta"].as_f64()?);
    // What is as in Wilson's action is not told.
    let names = [("c_P", "plaquette", 1.0), ("c_R", "rectangle", 0.0), ("c_C", "parallelogram", 0.0)];
    for (name, factor, wilson) in names.iter().filter_map(|(name, key, is)| Some((name, gauge[*key].as_f64()?, is))) {
        if factor != *wilson {
            text += &format!(", {name} = {factor:.6}").replace('-', "−");
        }
    }
    for (name, key, count) in [("c_P", "plaquettes", 2), ("c_R", "rectangles", 3)] {
        let factors: Vec<f64> =
            gauge["anisotropy"][key].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        if let ([space, time, ..], true) = (&factors[..], factors.len() == count)
            && (*space, *time) != (1.0, 1.0)
        {
            text += &format!(", {name} times {space:.6} in space and {time:.6} with t").replace('-', "−");
        }
    }
    Some(text)
}

fn each(list: &Value, of: impl Fn(&Value) -> Option<String>) -> Option<String> {
    let all: Vec<String> = list.as_array()?.iter().filter_map(of).collect();
    if all.is_empty() { None } else { Some(all.join("; ")) }
}

fn quarks(quarks: &Value) -> Option<String> {
    let mut text = quarks["name"].as_str()?.to_string();
    match quarks["pseudofermions"].as_u64() {
        None => {}
        Some(1) => text += ", 1 pseudofermion",
        Some(n) => text += &format!(", {n} pseudofermions"),
    }
    if let Some(boundary) = quarks["bc_time"].as_str() {
        text += &format!(", {boundary} in time");
    }
    Some(text)
}

fn trajectory(settings: &Value) -> Option<String> {
    let length = settings["length"].as_f64()?;
    let level = |level: &Value| {
        let (scheme, steps) = (level["integrator"].as_str()?, level["steps"].as_u64()?);
        let forces = match (level["gauge"].as_bool()?, level["quarks"].as_array()?.is_empty()) {
            (true, true) => "gauge force",
            (true, false) => "all forces",
            (false, _) => "quarks' force",
        };
        Some(format!("{forces}: {scheme}, {steps} steps"))
    };
    let levels = each(&settings["levels"], level).map_or(String::new(), |levels| format!("; {levels}"));
    Some(format!("length {length}{levels}"))
}

fn start(settings: &Value) -> Option<String> {
    let mut text = settings["start"].as_str()?.to_string();
    if let Some(seed) = settings["seed"].as_u64() {
        text += &format!(", seed {seed}");
    }
    Some(text)
}

fn device(settings: &Value) -> Option<String> {
    let name = settings["device"].as_str()?;
    Some(match settings["layout"]["processes"].as_u64() {
        Some(n) if n > 1 => format!("{name}, {n} processes"),
        _ => name.into(),
    })
}

fn continued(run: &RunHistory) -> Option<String> {
    let starts: Vec<String> = run.starts.iter().map(|(number, _)| number.to_string()).collect();
    (starts.len() > 1).then(|| format!("started before trajectories {}", starts.join(", ")))
}

/// Keys that do not change what is sampled.
const HARMLESS: [&str; 7] = ["version", "trajectories", "backend", "device", "layout", "start", "measure"];

/// Names of settings that are others, and not harmless, in order.
pub fn changed<'a>(old: &'a Value, new: &'a Value) -> Vec<&'a str> {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return Vec::new() };
    let other = |key: &&String| old.get(*key) != new.get(*key) && !HARMLESS.contains(&key.as_str());
    let all = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    let mut keys: Vec<&str> = all.filter(other).map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Sentences on settings that are others than those of the start before.
pub fn changes(run: &RunHistory) -> Vec<String> {
    let mut all = Vec::new();
    for pair in run.starts.windows(2) {
        let [(_, old), (number, new)] = pair else { continue };
        let keys = changed(old, new);
        if !keys.is_empty() {
            all.push(format!("From trajectory {number} on the settings differ from before: {}.", keys.join(", ")));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_told_in_words_as_far_as_they_are_there() {
        let first = json!({
            "version": "0.1.0", "lattice": [8, 8, 8, 4], "trajectories": 100, "seed": 7, "start": "cold", "length": 0.5,
            "gauge": { "action": "luscher-weisz", "beta": 6.8, "rectangle": -0.08, "parallelogram": 0.0 },
            "levels": [
                { "integrator": "omelyan", "steps": 12, "gauge": false, "quarks": [0] },
                { "integrator": "leapfrog", "steps": 3, "gauge": true, "quarks": [] }
            ],
            "quarks": [{ "name": "naive flavours 2 at m = 0.05", "pseudofermions": 2, "bc_time": "antiperiodic" }],
            "links": "double", "device": "CPU", "layout": { "processes": 4 }
        });
        let mut second = first.clone();
        second["length"] = json!(1.0);
        second["device"] = json!("another");
        let mut run = RunHistory { starts: vec![(1, first.clone())], ..RunHistory::default() };
        assert!(changes(&run).is_empty());
        run.starts.push((51, second));
        assert_eq!(changes(&run), ["From trajectory 51 on the settings differ from before: length."]);
        run.starts.reverse();
        let facts: Vec<String> = facts(&run).into_iter().map(|(what, value)| format!("{what}: {value}")).collect();
        let expected = [
            "lattice: 8×8×8×4",
            "gauge action: luscher-weisz, β = 6.8, c_R = −0.080000",
            "quarks: naive flavours 2 at m = 0.05, 2 pseudofermions, antiperiodic in time",
            "trajectory: length 0.5; quarks' force: omelyan, 12 steps; gauge force: leapfrog, 3 steps",
            "start: cold, seed 7",
            "links and momenta: in double precision",
            "device: CPU, 4 processes",
            "ferrite: version 0.1.0",
            "continued: started before trajectories 51, 1",
        ];
        assert_eq!(facts, expected);
        let anisotropic = json!({ "action": "symanzik-tree", "beta": 3.0, "plaquette": 1.0, "rectangle": 0.0,
            "anisotropy": { "plaquettes": [0.5, 2.0], "rectangles": [1.0, 1.0, 1.0] } });
        let told = "symanzik-tree, β = 3, c_P times 0.500000 in space and 2.000000 with t";
        assert_eq!(gauge(&anisotropic).as_deref(), Some(told));
    }

    #[test]
    fn settings_of_another_shape_are_left_out() {
        for settings in [json!(null), json!([1]), json!({ "lattice": [1, 2], "gauge": 3, "quarks": {}, "levels": 1 })] {
            let run = RunHistory { starts: vec![(1, settings)], ..RunHistory::default() };
            assert!(facts(&run).is_empty());
        }
        assert!(facts(&RunHistory::default()).is_empty());
    }
}
