//! Signals that ask for an end: Ctrl-C, and those of batch systems, `mpirun` and terminals that close. The first asks the
//! running work to stop, the second ends the program.
use super::communicator::RunCommunicator;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on such signals are noted instead of ending the program. A hang-up that is ignored, as under `nohup`, stays so.
pub fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && ignored & (1 << (SIGHUP - 1)) != 0 {
                continue;
            }
            // In this order, so that the first signal does not find the mark that it makes.
            let code = super::Code::Interrupted.number().into();
            let second = flag::register_conditional_shutdown(signal, code, ASKED.clone());
            if let Err(error) = second.and_then(|_| flag::register(signal, ASKED.clone())) {
                tracing::debug!("signal {signal} will end the program at once: {error}");
            }
        }
    });
}

/// Signals that a process ignores, one bit each from the lowest on, as Linux tells of it; none where that is not known.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Processes ask each other at every so many events only.
const INTERVAL: usize = 16;

/// *Collective.* Whether an end was asked for, of any of the processes, all of which get the same answer. `event` counts
/// the calls.
pub fn asked_any(comm: &RunCommunicator, event: usize) -> bool {
    let asked = ASKED.load(Ordering::Relaxed);
    if comm.size() == 1 {
        return asked;
    }
    if !event.is_multiple_of(INTERVAL) {
        return false;
    }
    let mut count = [f64::from(u8::from(asked))];
    // A failure here is that of the next exchange, too, which reports it.
    comm.sum(&mut count).is_ok() && count[0] > 0.0
}

#[cfg(test)]
mod tests {
    #[test]
    fn ignored_signals_are_read() {
        assert_eq!(super::ignored("Name:\tferrite\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(super::ignored("SigIgn:\tmany\n"), 0);
        assert_eq!(super::ignored(""), 0);
    }
}
