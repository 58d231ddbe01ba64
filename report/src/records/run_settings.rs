//! Settings of a run in words, from its lines. Keys that a line does not have are left out.
use super::trajectories::RunHistory;
use crate::text::{count, extents, number};
use ferrite_records::ensemble::{
    AnisotropySettings, GaugeSettings, LevelSettings, QuarkSettings, RunSettings, StoutSettings,
};
use ferrite_records::operator::{OperatorParametersRecord, Stout};
use ferrite_records::read::read_leniently;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns names and values that describe the settings of a run.
pub fn facts(run: &RunHistory) -> Vec<(String, String)> {
    let settings = run.settings();
    let found = [
        ("lattice", settings.lattice.map(extents)),
        ("gauge action", gauge(&settings.gauge)),
        ("quarks", each(&settings.quarks, quarks)),
        ("trajectory", trajectory(&settings)),
        ("friction", friction(&settings)),
        ("start", start(&settings)),
        ("links and momenta", known(&settings.links).map(|precision| format!("in {precision} precision"))),
        ("device", device(&settings)),
        ("ferrite", known(&settings.version).map(|version| format!("version {version}"))),
        ("continued", continued(run)),
    ];
    found.into_iter().filter_map(|(what, value)| Some((what.into(), value?))).collect()
}

/// Returns the text, or `None` if it is empty.
fn known(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Describes the gauge action of a run in a few words.
pub fn action(settings: &RunSettings) -> Option<String> {
    let GaugeSettings { action, beta, .. } = &settings.gauge;
    Some(format!("{} gauge action, β = {}", known(action)?, number(*beta)))
}

fn gauge(gauge: &GaugeSettings) -> Option<String> {
    let GaugeSettings { action, beta, plaquette, rectangle, parallelogram, anisotropy } = gauge;
    let mut text = format!("{}, β = {}", known(action)?, number(*beta));
    // Coefficients that equal those of Wilson's action are left out.
    for (name, factor, wilson) in [("c_P", plaquette, 1.0), ("c_R", rectangle, 0.0), ("c_C", parallelogram, 0.0)] {
        if let Some(factor) = factor.filter(|factor| *factor != wilson) {
            text += &format!(", {name} = {factor:.6}").replace('-', "−");
        }
    }
    if let Some(AnisotropySettings { plaquettes, rectangles: [space, time, _] }) = anisotropy {
        for (name, factors) in [("c_P", *plaquettes), ("c_R", [*space, *time])] {
            if factors != [1.0; 2] {
                let [space, time] = factors;
                text += &format!(", {name} times {space:.6} in space and {time:.6} with t").replace('-', "−");
            }
        }
    }
    Some(text)
}

fn each<T>(list: &[T], of: impl Fn(&T) -> Option<String>) -> Option<String> {
    let all: Vec<String> = list.iter().filter_map(of).collect();
    if all.is_empty() { None } else { Some(all.join("; ")) }
}

/// Names of Wilson-like operators, whose rational functions are of M̂†M̂.
const WILSON_LIKE: [&str; 6] = ["wilson", "clover", "exp-clover", "twisted", "twisted-clover", "twisted-exp-clover"];

/// Returns whether the part `part` of the fermion action belongs to Wilson-like quarks. Names of parts begin with those of quarks.
pub fn is_wilson_like(settings: &RunSettings, part: &str) -> bool {
    let of_part = settings.quarks.iter().filter(|one| !one.name.is_empty() && part.starts_with(&one.name));
    of_part.into_iter().any(|one| WILSON_LIKE.contains(&one.operator.as_str()))
}

fn quarks(quarks: &QuarkSettings) -> Option<String> {
    let mut text = known(&quarks.name)?.to_string();
    let OperatorParametersRecord { clover, mu, xi, nu, .. } = read_leniently(&Value::Object(quarks.parameters.clone()));
    let clover = clover.unwrap_or_default();
    let csw = match (clover.csw.map(number), clover.u0) {
        (Some(csw), Some(u0)) if u0 != 1.0 => Some(format!("c_sw = {csw} with u₀ = {}", number(u0))),
        (Some(csw), _) => Some(format!("c_sw = {csw}")),
        _ => clover
            .r
            .zip(clover.t)
            .map(|(r, t)| format!("clover coefficients {} in space and {} with t", number(r), number(t))),
    };
    // Values that equal their defaults are left out.
    let other_than = |value: Option<f64>, usual: f64| value.filter(|x| *x != usual).map(number);
    let is_twisted = quarks.theta.iter().any(|angle| *angle != 0.0);
    let theta = is_twisted.then(|| quarks.theta.iter().copied().map(number).collect::<Vec<_>>().join(","));
    let stout = match &quarks.stout {
        Some(StoutSettings::Smeared(Stout { rho, levels, spatial })) => {
            let place = if *spatial { " in space" } else { "" };
            Some(format!("{} of stout links{place}, ρ = {}", count(*levels, "level"), number(*rho)))
        }
        _ => None,
    };
    let heavier = quarks.hasenbusch.as_deref().filter(|heavier| !heavier.is_empty());
    let facts = [
        csw,
        mu.map(|mu| format!("μ = {}", number(mu))),
        other_than(xi, 1.0).map(|xi| format!("ξ₀ = {xi}")),
        other_than(nu, 1.0).map(|nu| format!("ν = {nu}")),
        other_than(quarks.naik_epsilon, 0.0).map(|epsilon| format!("ε = {epsilon}")),
        theta.map(|theta| format!("θ = {theta}")),
        stout,
        heavier.map(|heavier| format!("divided by heavier quarks at {}", heavier.join(" and "))),
        quarks.pseudofermions.map(|n| count(n, "pseudofermion")),
        known(&quarks.bc_time).map(|boundary| format!("{boundary} in time")),
    ];
    for fact in facts.into_iter().flatten() {
        text += &format!(", {fact}");
    }
    Some(text)
}

/// Returns a description of the momenta's friction between trajectories, or `None` if each trajectory draws new momenta.
fn friction(settings: &RunSettings) -> Option<String> {
    Some(format!("{}: momenta are partly kept between trajectories", number(settings.friction?)))
}

fn trajectory(settings: &RunSettings) -> Option<String> {
    let length = settings.length?;
    let level = |level: &LevelSettings| {
        let forces = match (level.gauge, level.quarks.is_empty()) {
            (true, true) => "gauge force",
            (true, false) => "all forces",
            (false, _) => "quarks' force",
        };
        Some(format!("{forces}: {}, {}", known(&level.integrator)?, count(level.steps, "step")))
    };
    let levels = each(&settings.levels, level).map_or(String::new(), |levels| format!("; {levels}"));
    Some(format!("length {}{levels}", number(length)))
}

fn start(settings: &RunSettings) -> Option<String> {
    let seed = settings.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    Some(format!("{}{seed}", known(&settings.start)?))
}

fn device(settings: &RunSettings) -> Option<String> {
    let name = known(&settings.device)?;
    Some(match settings.layout.processes {
        n if n > 1 => format!("{name}, {n} processes"),
        _ => name.into(),
    })
}

fn continued(run: &RunHistory) -> Option<String> {
    let starts: Vec<String> = run.starts.iter().map(|(number, _)| number.to_string()).collect();
    (starts.len() > 1).then(|| format!("started before trajectories {}", starts.join(", ")))
}

/// Effect of a change of a key on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The distribution of links changes, which requires another run.
    Sampled,
    /// The steps of the chain change, but not the distribution.
    Chain,
}

/// Keys of an input that affect the chain, with `*` for the number of a table, and the settings in which they appear. A setting is a JSON
/// pointer; for `fermion.*` it is relative to the entry of `quarks` unless it begins with `^`. A key has had an effect if one of its
/// settings differs. Other keys only affect, for example, how often results are saved, or which device computes them.
const KEYS: &[(&str, Effect, &[&str])] = {
    use Effect::{Chain, Sampled};
    const COEFFICIENTS: &[&str] =
        &["/gauge/plaquette", "/gauge/rectangle", "/gauge/parallelogram", "/gauge/anisotropy"];
    const CLOVER: &[&str] = &["/clover/space", "/clover/time"];
    const SOLVERS: &[&str] = &[
        "/links",
        "/gauge_force",
        "/solvers/dynamics/precision",
        "/solvers/dynamics/tol",
        "/solvers/action/precision",
        "/solvers/action/tol",
    ];
    const SPLIT: &[&str] = &["/hasenbusch", "/pseudofermions", "/levels", "^/levels"];
    const MULTIGRID: &[&str] = &["/multigrid"];
    &[
        ("thermalise", Chain, &["/thermalise"]),
        ("gauge.beta", Sampled, &["/gauge/beta"]),
        // `gauge.xi` precedes the other keys of the coefficients, so that it is reported if the anisotropy differs although no key does.
        ("gauge.xi", Sampled, COEFFICIENTS),
        ("gauge.action", Sampled, COEFFICIENTS),
        ("gauge.u0", Sampled, COEFFICIENTS),
        ("gauge.u0-time", Sampled, COEFFICIENTS),
        ("gauge.flavours", Sampled, COEFFICIENTS),
        ("gauge.plaquette", Sampled, &["/gauge/plaquette"]),
        ("gauge.rectangle", Sampled, &["/gauge/rectangle"]),
        ("gauge.parallelogram", Sampled, &["/gauge/parallelogram"]),
        (
            "fermion.*.operator",
            Sampled,
            &["/operator", "/paths", "/naik_epsilon", "/clover/space", "/clover/time", "/mu", "/schur", "^/levels"],
        ),
        ("fermion.*.mass", Sampled, &["/mass", "/kappa"]),
        ("fermion.*.kappa", Sampled, &["/mass", "/kappa"]),
        (
            "fermion.*.flavours",
            Sampled,
            &["/flavours", "/pseudofermions", "/levels", "^/levels", "/errors/dynamics", "/errors/action"],
        ),
        ("fermion.*.u0", Sampled, &["/paths", "/clover/space", "/clover/time"]),
        ("fermion.*.naik-epsilon", Sampled, &["/naik_epsilon"]),
        ("fermion.*.bc-time", Sampled, &["/bc_time"]),
        ("fermion.*.theta", Sampled, &["/theta"]),
        ("fermion.*.csw", Sampled, CLOVER),
        ("fermion.*.clover-r", Sampled, CLOVER),
        ("fermion.*.clover-t", Sampled, CLOVER),
        ("fermion.*.xi", Sampled, &["/xi", "/kappa", "/clover/space"]),
        ("fermion.*.nu", Sampled, &["/nu", "/kappa"]),
        ("fermion.*.mu", Sampled, &["/mu"]),
        ("fermion.*.stout-rho", Sampled, &["/stout"]),
        ("fermion.*.stout-levels", Sampled, &["/stout"]),
        ("fermion.*.stout-spatial", Sampled, &["/stout"]),
        ("fermion.*.schur", Chain, &["/schur"]),
        ("fermion.*.hasenbusch-mass", Chain, SPLIT),
        ("fermion.*.hasenbusch-kappa", Chain, SPLIT),
        ("fermion.*.hasenbusch-mu", Chain, SPLIT),
        ("fermion.*.level", Chain, &["/level", "/levels", "^/levels"]),
        ("fermion.*.pseudofermions", Chain, &["/pseudofermions", "/levels", "^/levels"]),
        ("fermion.*.phases", Chain, &["/phases"]),
        ("fermion.*.dynamics-error", Chain, &["/errors/dynamics"]),
        ("fermion.*.action-error", Chain, &["/errors/action"]),
        ("fermion.*.dynamics-tol", Chain, &["/dynamics_tol"]),
        ("fermion.*.method", Chain, &["/method", "/multigrid"]),
        ("fermion.*.guesses", Chain, &["/guesses"]),
        ("fermion.*.mg-vectors", Chain, MULTIGRID),
        ("fermion.*.mg-levels", Chain, MULTIGRID),
        ("fermion.*.mg-block", Chain, MULTIGRID),
        ("fermion.*.mg-smoothing", Chain, MULTIGRID),
        ("fermion.*.mg-relaxations", Chain, MULTIGRID),
        ("fermion.*.mg-improvements", Chain, MULTIGRID),
        ("fermion.*.mg-precision", Chain, MULTIGRID),
        ("trajectory.length", Chain, &["/length"]),
        ("trajectory.friction", Chain, &["/friction"]),
        ("trajectory.steps", Chain, &["/levels"]),
        ("trajectory.integrator", Chain, &["/levels"]),
        ("trajectory.lambda", Chain, &["/levels"]),
        ("trajectory.gauge-steps", Chain, &["/levels"]),
        ("trajectory.gauge-integrator", Chain, &["/levels"]),
        ("trajectory.unitarise", Chain, &["/unitarise"]),
        ("precision.preset", Chain, SOLVERS),
        ("precision.links", Chain, &["/links", "/gauge_force"]),
        ("precision.gauge-force", Chain, &["/gauge_force"]),
        ("precision.dynamics", Chain, &["/solvers/dynamics/precision", "/gauge_force"]),
        ("precision.dynamics-tol", Chain, &["/solvers/dynamics/tol"]),
        ("precision.action", Chain, &["/solvers/action/precision"]),
        ("precision.action-tol", Chain, &["/solvers/action/tol"]),
        ("replay", Chain, &["/replay"]),
    ]
};

/// Returns whether a key of an input affects the chain. `pattern` is the key with `*` in place of the number of a table.
pub fn has_effect(pattern: &str) -> bool {
    KEYS.iter().any(|(key, ..)| *key == pattern)
}

/// A changed value of a key, with its effect on the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Key of the input, including the number of its table.
    pub key: String,
    /// Previous value of the key; `None` if it was not given.
    pub old: Option<String>,
    /// Current value of the key; `None` if it is not given.
    pub new: Option<String>,
    /// Effect of the change.
    pub effect: Effect,
}

impl Change {
    /// Formats the change for an error message, after "made with": `gauge.beta = 5.6, but the input has 5.7`.
    pub fn refused(&self) -> String {
        let key = &self.key;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => format!("{key} = {old}, but the input has {new}"),
            (None, Some(new)) => format!("no {key}, but the input has {new}"),
            (Some(old), None) => format!("{key} = {old}, which the input does not give"),
            (None, None) => format!("another {key}"),
        }
    }
    /// Formats the change for a note: `trajectory.steps = 3 instead of 2`.
    pub fn noted(&self) -> String {
        let key = &self.key;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => format!("{key} = {new} instead of {old}"),
            (None, Some(new)) => format!("{key} = {new}, previously not given"),
            (Some(old), None) => format!("{key}, previously {old}, not given"),
            (None, None) => key.clone(),
        }
    }
}

/// Formats a value as a user types it: `0.5`, `[0.2,0.5]`, `"clover"`.
fn typed(text: &str) -> String {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let are_numbers = parts.iter().all(|part| part.replace('_', "").parse::<f64>().is_ok());
    match (are_numbers, parts.len()) {
        (true, 1) => text.into(),
        (true, _) => format!("[{}]", parts.join(",")),
        (false, _) if matches!(text, "true" | "false") => text.into(),
        (false, _) => format!("{text:?}"),
    }
}

/// Whether two texts have equal values.
fn same_value(a: &str, b: &str) -> bool {
    let numbers = |text: &str| {
        text.split(',').map(|one| one.trim().replace('_', "").parse::<f64>().ok()).collect::<Option<Vec<_>>>()
    };
    a == b || numbers(a).is_some_and(|a| numbers(b) == Some(a))
}

/// Keys of the input at a start of a run, and its tables of quarks; `None` if an older version did not record them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StartInput {
    input: Option<BTreeMap<String, String>>,
    quarks: Option<Vec<IgnoredAny>>,
}

/// Returns the keys whose effect on the chain has changed, each with both values, in the order of an input. A setting may differ although
/// no key does, for example if an older version did not record the keys. Then the key that may have caused the difference is returned, with
/// the values of the setting.
pub fn differences(old: &Value, new: &Value) -> Vec<Change> {
    if !(old.is_object() && new.is_object()) {
        return Vec::new();
    }
    let mut all = Vec::new();
    let [before, now]: [StartInput; 2] = [old, new].map(read_leniently);
    let [tables_before, tables_now] = [&before, &now].map(|of| of.quarks.as_ref().map(Vec::len));
    let mut count = tables_now.unwrap_or(0);
    if let (Some(before), Some(now)) = (tables_before, tables_now)
        && before != now
    {
        let [old, new] = [before, now].map(|n| Some(if n == 1 { "1 table".into() } else { format!("{n} tables") }));
        all.push(Change { key: "[[fermion]]".into(), old, new, effect: Effect::Sampled });
        // If the number of tables differs, tables cannot be matched, and their keys are not compared.
        count = 0;
    }
    let knows_input = before.input.is_some();
    // A missing setting equals null, and missing stout links equal `none`.
    let value = |of: &Value, at: &str| match of.pointer(at) {
        Some(Value::String(none)) if none == "none" => Value::Null,
        found => found.cloned().unwrap_or(Value::Null),
    };
    let differs = |at: &String| {
        let (old, new) = (value(old, at), value(new, at));
        old != new && (knows_input || !old.is_null())
    };
    let rows = || {
        KEYS.iter().flat_map(|(pattern, effect, at)| {
            let numbers: Vec<Option<usize>> =
                if pattern.contains('*') { (0..count).map(Some).collect() } else { vec![None] };
            numbers.into_iter().map(move |number| {
                let key = number.map_or_else(|| (*pattern).into(), |n| pattern.replace('*', &n.to_string()));
                let whole = |at: &&str| match (at.strip_prefix('^'), number) {
                    (Some(root), _) => root.to_string(),
                    (None, Some(n)) => format!("/quarks/{n}{at}"),
                    (None, None) => (*at).to_string(),
                };
                (key, *effect, at.iter().map(whole).collect::<Vec<String>>())
            })
        })
    };
    let mut explained: Vec<String> = Vec::new();
    if let (Some(before), Some(now)) = (&before.input, &now.input) {
        for (key, effect, at) in rows() {
            let [old, new] = [before, now].map(|input| input.get(&key).map(String::as_str));
            let is_same = match (old, new) {
                (Some(old), Some(new)) => same_value(old, new),
                _ => old == new,
            };
            let at: Vec<String> = at.into_iter().filter(&differs).collect();
            if !is_same && !at.is_empty() {
                explained.extend(at);
                all.push(Change { key, old: old.map(typed), new: new.map(typed), effect });
            }
        }
    }
    // The remaining settings differ although no key does: an older version did not record the keys, or another version computes other
    // numbers from them. If several keys may be the cause, the key that affects the fewest settings is reported.
    let mut by_numbers: Vec<(usize, usize, String)> = Vec::new();
    let all_rows: Vec<_> = rows().collect();
    for (row, (_, _, at)) in all_rows.iter().enumerate() {
        for place in at.iter().filter(|place| !explained.contains(place) && differs(place)) {
            match by_numbers.iter_mut().find(|(_, _, known)| known == place) {
                Some(known) if at.len() < known.1 => (known.0, known.1) = (row, at.len()),
                Some(_) => {}
                None => by_numbers.push((row, at.len(), place.clone())),
            }
        }
    }
    by_numbers.sort_by_key(|(row, ..)| *row);
    by_numbers.dedup_by_key(|(row, ..)| *row);
    for (row, _, at) in by_numbers {
        let (key, effect, _) = &all_rows[row];
        let shown = |of: &Value| match value(of, &at) {
            Value::Null | Value::Object(_) => None,
            Value::Array(list) if list.iter().any(Value::is_object) => None,
            value => Some(value.to_string()),
        };
        all.push(Change { key: key.clone(), old: shown(old), new: shown(new), effect: *effect });
    }
    all
}

/// Returns sentences on settings that differ from those of the previous start of the run.
pub fn changes(run: &RunHistory) -> Vec<String> {
    let mut all = Vec::new();
    for pair in run.starts.windows(2) {
        let [(_, old), (number, new)] = pair else { continue };
        let keys: Vec<String> = differences(old, new).iter().map(Change::noted).collect();
        if !keys.is_empty() {
            all.push(format!("From trajectory {number} on, the settings differ from before: {}.", keys.join("; ")));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_reported_in_words_as_far_as_they_are_there() {
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
        assert_eq!(
            changes(&run),
            ["From trajectory 51 on, the settings differ from before: trajectory.length = 1.0 instead of 0.5."]
        );
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
        // Wilson-like quarks.
        let clover = json!({ "name": "clover quarks 2 at kappa = 0.12", "operator": "clover", "mass": 0.1666,
            "clover": { "csw": 1.5, "u0": 1.0, "r": null, "t": null }, "theta": [0.0, 0.0, 0.0, 0.0], "xi": 1.0, "nu": 1.0,
            "stout": { "rho": 0.1, "levels": 1, "spatial": false }, "hasenbusch": ["m = 0.4"], "pseudofermions": 2,
            "bc_time": "antiperiodic" });
        assert_eq!(
            quarks(&read_leniently(&clover)).as_deref(),
            Some(
                "clover quarks 2 at kappa = 0.12, c_sw = 1.5, 1 level of stout links, ρ = 0.1, divided by heavier quarks at \
                 m = 0.4, 2 pseudofermions, antiperiodic in time"
            )
        );
        let twisted = json!({ "name": "twisted quarks 2 at m = 0.1", "operator": "twisted", "mu": 0.05, "clover": null,
            "theta": [0.0, 0.0, 0.0, 0.5], "stout": "none", "hasenbusch": [], "bc_time": "periodic" });
        let reported = "twisted quarks 2 at m = 0.1, μ = 0.05, θ = 0,0,0,0.5, periodic in time";
        assert_eq!(quarks(&read_leniently(&twisted)).as_deref(), Some(reported));
        let run =
            RunHistory { starts: vec![(1, json!({ "friction": 0.4, "quarks": [clover] }))], ..RunHistory::default() };
        let reported: Vec<String> = super::facts(&run).into_iter().map(|(what, _)| what).collect();
        assert_eq!(reported, ["quarks", "friction"]);
        assert!(is_wilson_like(&run.settings(), "clover quarks 2 at kappa = 0.12, m = 0.4"));
        assert!(!is_wilson_like(&run.settings(), "naive flavours 2 at m = 0.05"));
        let anisotropic = json!({ "action": "symanzik-tree", "beta": 3.0, "plaquette": 1.0, "rectangle": 0.0,
            "anisotropy": { "plaquettes": [0.5, 2.0], "rectangles": [1.0, 1.0, 1.0] } });
        let reported = "symanzik-tree, β = 3, c_P times 0.500000 in space and 2.000000 with t";
        assert_eq!(gauge(&read_leniently(&anisotropic)).as_deref(), Some(reported));
    }

    /// Values as typed name what was changed; what has no effect is not named, and neither is what follows from another key.
    #[test]
    fn changes_are_named_as_they_were_typed() {
        let at = |u0: Option<&str>, rectangle: f64| {
            let mut input = json!({ "gauge.beta": "6.80", "gauge.action": "symanzik-tree", "precision.preset": "A" });
            if let Some(u0) = u0 {
                input["gauge.u0"] = json!(u0);
            }
            json!({ "input": input, "gauge": { "beta": 6.8, "plaquette": 1.0, "rectangle": rectangle }, "links": "single",
                "quarks": [{ "schur": "symmetric", "stout": "none" }], "gauge_force": "single" })
        };
        let of = |old: &Value, new: &Value| differences(old, new).iter().map(Change::refused).collect::<Vec<_>>();
        let (with, without) = (at(Some("0.9"), -0.0617), at(None, -0.05));
        assert_eq!(of(&with, &without), ["gauge.u0 = 0.9, which the input does not give"]);
        assert_eq!(of(&without, &with), ["no gauge.u0, but the input has 0.9"]);
        // Equal to a key that is not given.
        assert!(of(&without, &at(Some("1"), -0.05)).is_empty());
        let mut other = with.clone();
        other["input"]["gauge.beta"] = json!("6.8");
        assert!(of(&with, &other).is_empty());
        other["input"]["precision.preset"] = json!("E");
        other["links"] = json!("double");
        other["quarks"][0] = json!({ "schur": "asymmetric", "stout": { "rho": 0.1 } });
        other["input"]["fermion.0.schur"] = json!("asymmetric");
        other["input"]["fermion.0.stout-rho"] = json!("0.1");
        let expected = [
            "fermion.0.stout-rho = 0.1, previously not given",
            "fermion.0.schur = \"asymmetric\", previously not given",
            "precision.preset = \"E\" instead of \"A\"",
        ];
        assert_eq!(differences(&with, &other).iter().map(Change::noted).collect::<Vec<_>>(), expected);
        // Older versions recorded numbers only; settings that they did not record are not compared.
        let older = json!({ "gauge": { "beta": 6.8, "rectangle": -0.0617 }, "quarks": [{ "schur": "asymmetric" }],
            "levels": [{ "steps": 2 }] });
        assert_eq!(of(&older, &without)[0], "gauge.rectangle = -0.0617, but the input has -0.05");
        let mut now = without.clone();
        now["levels"] = json!([{ "steps": 3 }]);
        let expected = [
            "gauge.rectangle = -0.05 instead of -0.0617",
            "fermion.0.schur = \"symmetric\" instead of \"asymmetric\"",
            "trajectory.steps",
        ];
        let found = differences(&older, &now);
        assert_eq!(found.iter().map(Change::noted).collect::<Vec<_>>(), expected);
        let effects: Vec<Effect> = found.iter().map(|change| change.effect).collect();
        assert_eq!(effects, [Effect::Sampled, Effect::Chain, Effect::Chain]);
        assert_eq!(of(&with, &json!({ "quarks": [] }))[0], "[[fermion]] = 1 table, but the input has 0 tables");
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
