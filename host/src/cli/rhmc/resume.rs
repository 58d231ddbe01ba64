//! Whether an input goes on with the run in a folder.
use super::super::report::{data, settings::changed};
use super::super::world::World;
use super::super::{Failure, Outcome};
use super::folder::State;
use super::input::Input;
use super::settings;
use serde_json::Value;
use std::path::Path;
use tracing::warn;

/// Refuses an input that has other seeds, quarks or actions than the run in `out`, whose links would then be of no
/// distribution; warns of what only changes how the chain moves. `now` is what the next line will tell of the settings.
pub fn goes_on(state: &State, input: &Input, out: &Path, now: &Value, world: &World) -> Outcome {
    let refused = |why: String| Err(Failure::refused(format!("{}: {why}", out.display())));
    if state.seed != input.plan.seed {
        return refused(format!("this run has the seed {}, the input says {}", state.seed, input.plan.seed));
    }
    if state.bounds.len() != input.groups.len() {
        return refused("this run has another number of quarks".into());
    }
    // A run that has made no trajectory yet may still become any.
    if state.trajectory == 0 || !world.speaks() {
        return Ok(());
    }
    let before = data::read(out)?;
    // As they will be when they are read: digits of numbers may be lost on the way.
    let now: Value = serde_json::from_str(&now.to_string()).map_err(Failure::failed)?;
    let other = settings::sampled_differently(before.settings(), &now);
    if !other.is_empty() {
        return refused(format!(
            "this run was made with {}: leave that as it was, or begin another run in another folder, from one of these \
             configurations if that is wanted",
            other.join("; ")
        ));
    }
    let keys = changed(before.settings(), &now);
    if !keys.is_empty() {
        warn!("from trajectory {} on, settings are others than before: {}", state.trajectory + 1, keys.join(", "));
    }
    Ok(())
}
