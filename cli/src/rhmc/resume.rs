//! Whether an input can continue the run in a folder.
use super::super::communicator::RunCommunicator;
use super::super::{Failure, Outcome};
use super::input::EnsembleInput;
use super::settings;
use super::state::ChainState;
use ferrite_report::records::run_settings::{Change, Effect, differences};
use ferrite_report::records::trajectories::RunHistory;
use serde_json::Value;
use std::path::Path;
use tracing::{info, warn};

/// Refuses an input that has other seeds, quarks or actions than the run in `out`, whose links would then be of no
/// distribution; warns of what only changes how the chain moves, or has no effect. `before` are the lines of the state, and `now`
/// is what the next line will tell of the settings: its `start` becomes that of the run.
pub fn check(
    state: &mut ChainState,
    input: &EnsembleInput,
    out: &Path,
    before: &RunHistory,
    now: &mut Value,
    comm: &RunCommunicator,
) -> Outcome {
    let refused = |why: String| Err(Failure::refused(format!("{}: {why}", out.display())));
    if state.seed != input.plan.seed {
        return refused(format!("this run has the seed {}, the input says {}", state.seed, input.plan.seed));
    }
    let asked = settings::start(input);
    let other_start = |began: &str| !same_start(began, &asked);
    // A run that has made no trajectory yet may still become any with the links that it has.
    if state.trajectory == 0 {
        if state.bounds.len() != input.bounds() {
            // Those of other quarks: they are found anew.
            state.bounds = vec![0.0; input.bounds()];
        }
        return match state.start.get_or_insert_with(|| asked.clone()) {
            began if other_start(began) => refused(format!(
                "this run began with start = {began}, the input says {asked}: restore that value, or begin in another folder"
            )),
            began => {
                now["start"] = began.as_str().into();
                Ok(())
            }
        };
    }
    if !comm.speaks() {
        return Ok(());
    }
    let (first, last) = (before.starts.first().map_or(&Value::Null, |(_, first)| first), before.settings());
    let began =
        state.start.clone().or_else(|| first["start"].as_str().map(String::from)).unwrap_or_else(|| asked.clone());
    if other_start(&began) {
        warn!("start = {asked} has no effect: this resumed run began with start = {began}");
    }
    now["start"] = began.as_str().into();
    state.start = Some(began);
    // As they will be when they are read: digits of numbers may be lost on the way.
    let now: Value = serde_json::from_str(&now.to_string()).map_err(Failure::failed)?;
    let (other, noted): (Vec<Change>, Vec<Change>) =
        differences(last, &now).into_iter().partition(|change| change.effect == Effect::Sampled);
    if !other.is_empty() {
        let other: Vec<String> = other.iter().map(Change::refused).collect();
        return refused(format!(
            "this run was made with {}: restore these values, or begin a new run in another folder, which may start from one \
             of these configurations",
            other.join("; ")
        ));
    }
    if state.bounds.len() != input.bounds() {
        return refused("this run has another number of [[fermion]] tables than the input".into());
    }
    if !noted.is_empty() {
        let noted: Vec<String> = noted.iter().map(Change::noted).collect();
        warn!("from trajectory {} on, settings differ from before: {}", state.trajectory + 1, noted.join("; "));
    }
    elsewhere(last, &now, state.trajectory + 1);
    Ok(())
}

/// Notes what changes the rounding of a chain, and nothing else of it.
fn elsewhere(last: &Value, now: &Value, number: u32) {
    let grid = |of: &Value| {
        let dims = of["layout"]["grid"].as_array()?;
        Some(dims.iter().map(Value::to_string).collect::<Vec<_>>().join(","))
    };
    let word = |of: &Value, key: &str| of[key].as_str().map(String::from);
    let pairs = [
        ("the process grid", grid(last), grid(now)),
        ("version", word(last, "version"), word(now, "version")),
        ("the backend", word(last, "backend"), word(now, "backend")),
    ];
    let other: Vec<String> = pairs
        .into_iter()
        .filter_map(|(what, old, new)| Some((what, old?, new?)))
        .filter(|(_, old, new)| old != new)
        .map(|(what, old, new)| format!("{what} {new} instead of {old}"))
        .collect();
    if !other.is_empty() {
        info!(
            "from trajectory {number} on, the run has {}: random numbers are the same, but rounding may differ, so that the chain \
             need not be bit for bit what it would have been",
            other.join(", ")
        );
    }
}

/// Whether two ways to name a start mean the same: a file may be named from another folder.
fn same_start(a: &str, b: &str) -> bool {
    let whole = |name: &str| Path::new(name).canonicalize().ok();
    a == b || (whole(a).is_some() && whole(a) == whole(b))
}
