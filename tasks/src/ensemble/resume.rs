//! Check whether an input can continue the run in a folder.
use super::input::EnsembleInput;
use super::settings;
use super::state::ChainState;
use crate::communicator::RunCommunicator;
use crate::{Failure, Outcome, text};
use ferrite_records::ensemble::RunSettings;
use ferrite_records::object;
use ferrite_records::read::read_leniently;
use ferrite_report::records::run_settings::{Change, Effect, differences};
use ferrite_report::records::trajectories::RunHistory;
use serde_json::Value;
use std::path::Path;
use tracing::{info, warn};

/// Fails if the seed, the quarks or the actions of an input differ from those of the run in `out`, because the links of the run would then
/// not follow one distribution. Warns of changed keys that affect only molecular dynamics or have no effect. `before` has the lines up to
/// the state. `now` has the settings for the next line; its `start` is set to that of the run.
pub fn check(
    state: &mut ChainState,
    input: &EnsembleInput,
    out: &Path,
    before: &RunHistory,
    now: &mut RunSettings,
    comm: &RunCommunicator,
) -> Outcome {
    let refused = |why: String| Err(Failure::refused(format!("{}: {why}", out.display())));
    if state.seed != input.plan.seed {
        return refused(format!(
            "this run has the seed {0}, but the input has the seed {1}: set seed = {0} again, or start in another \
             folder",
            state.seed, input.plan.seed
        ));
    }
    let asked = settings::start(input);
    let other_start = |began: &str| !same_start(began, &asked);
    // A run without trajectories may continue with any input that starts from the same links.
    if state.trajectory == 0 {
        return match state.start.get_or_insert_with(|| asked.clone()) {
            began if other_start(began) => refused(format!(
                "this run began with start = \"{began}\", but the input has start = \"{asked}\": set start = \
                 \"{began}\" again, or start in another folder"
            )),
            began => {
                now.start.clone_from(began);
                Ok(())
            }
        };
    }
    if !comm.speaks() {
        return Ok(());
    }
    let first: RunSettings = before.starts.first().map(|(_, first)| read_leniently(first)).unwrap_or_default();
    let of_first = Some(first.start).filter(|start| !start.is_empty());
    let began = state.start.clone().or(of_first).unwrap_or_else(|| asked.clone());
    if other_start(&began) {
        warn!("start = \"{asked}\" has no effect: this resumed run began with start = \"{began}\"");
    }
    now.start.clone_from(&began);
    state.start = Some(began);
    // The settings are written and read again before the comparison, because numbers in a line may have fewer digits.
    let text = Value::Object(object(now)).to_string();
    let as_read = serde_json::from_str(&text).map_err(Failure::failed)?;
    let last = before.starts.last().map_or(&Value::Null, |(_, last)| last);
    let (other, noted): (Vec<Change>, Vec<Change>) =
        differences(last, &as_read).into_iter().partition(|change| change.effect == Effect::Sampled);
    if !other.is_empty() {
        let other: Vec<String> = other.iter().map(Change::refused).collect();
        return refused(format!(
            "this run was made with {}: restore the values of the run, or start a new run in another folder, for \
             example from a configuration of this run",
            other.join("; ")
        ));
    }
    if input.intervals(&state.bounds).is_none() {
        let (tables, needed) = (input.groups.len(), 2 * input.groups.len());
        return refused(format!(
            "the input has {} [[fermion]], but the state of this run has {} in bounds instead of {needed}: restore \
             the tables of this run, or start in another folder",
            text::count(tables, "table"),
            text::count(state.bounds.len(), "number")
        ));
    }
    if !noted.is_empty() {
        let noted: Vec<String> = noted.iter().map(Change::noted).collect();
        warn!("from trajectory {} on, settings differ from before: {}", state.trajectory + 1, noted.join("; "));
    }
    elsewhere(&before.settings(), now, state.trajectory + 1);
    Ok(())
}

/// Logs changes of the process grid, the version and the backend, which change only the rounding of a chain.
fn elsewhere(last: &RunSettings, now: &RunSettings, number: u32) {
    let grid = |of: &RunSettings| of.layout.grid.map(|processes| processes.to_string()).join(",");
    let pairs = [
        ("the process grid", grid(last), grid(now)),
        ("version", last.version.clone(), now.version.clone()),
        ("the backend", last.backend.clone(), now.backend.clone()),
    ];
    let other: Vec<String> = pairs
        .into_iter()
        .filter(|(_, old, new)| !old.is_empty() && old != new)
        .map(|(what, old, new)| format!("{what} {new} instead of {old}"))
        .collect();
    if !other.is_empty() {
        info!(
            "from trajectory {number} on, the run uses {}: the random numbers are the same, but rounding may differ, \
             so that the chain may differ from that of an uninterrupted run",
            other.join(", ")
        );
    }
}

/// Returns whether two names of the first links mean the same links: a file may be named from different folders.
fn same_start(a: &str, b: &str) -> bool {
    let whole = |name: &str| Path::new(name).canonicalize().ok();
    a == b || (whole(a).is_some() && whole(a) == whole(b))
}
