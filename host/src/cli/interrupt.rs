//! Ctrl-C: the first asks the running solve to stop, the second ends the program.
use super::world::World;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C is noted instead of ending the program.
pub fn listen() {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(super::Code::Interrupted.number().into());
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        tracing::debug!("Ctrl-C will end the program at once: {error}");
    }
}

/// Processes ask each other at every so many events only.
const INTERVAL: usize = 16;

/// *Collective.* Whether Ctrl-C was pressed, for any of the processes, all of which get the same answer. `event` counts
/// the calls.
pub fn asked_any(world: &World, event: usize) -> bool {
    let asked = ASKED.load(Ordering::Relaxed);
    if world.size() == 1 {
        return asked;
    }
    if !event.is_multiple_of(INTERVAL) {
        return false;
    }
    let mut count = [f64::from(u8::from(asked))];
    // A failure here is that of the next exchange, too, which reports it.
    world.sum(&mut count).is_ok() && count[0] > 0.0
}
