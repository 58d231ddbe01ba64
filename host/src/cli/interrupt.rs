//! Signals that ask for an end: Ctrl-C, and those of batch systems, `mpirun` and terminals that close. Work that looks for
//! them stops by itself at the first and keeps what it has; a second one, and the first for all other work, ends the program
//! at once. Either way no temporary file is left.
use super::Code;
use super::communicator::RunCommunicator;
use ferrite::system::atomic;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The signal that came, of any of the processes; 0: none.
static ASKED: AtomicI32 = AtomicI32::new(0);
/// Whether the running work looks for signals.
static LISTENING: AtomicBool = AtomicBool::new(false);
/// Whether another process speaks for this one.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Begins to wait for signals, in a thread of its own. A hang-up that is ignored, as under `nohup`, stays so.
pub fn start() {
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let is_heard = |signal: &i32| *signal != SIGHUP || ignored & (1 << (SIGHUP - 1)) == 0;
    let waits = Signals::new([SIGINT, SIGTERM, SIGHUP].into_iter().filter(is_heard)).and_then(|mut signals| {
        std::thread::Builder::new().name("signals".into()).spawn(move || signals.forever().for_each(heard))
    });
    if let Err(error) = waits {
        // Then they end the program at once, as they do without a word from us.
        tracing::debug!("nobody waits for signals: {error}");
    }
}

/// Notes a signal, or ends the program.
fn heard(signal: i32) {
    let is_first = ASKED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if is_first && LISTENING.load(Ordering::Relaxed) {
        return;
    }
    // Held until the process is gone: nobody makes another temporary file.
    let _closing = atomic::close();
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
    if !SILENT.load(Ordering::Relaxed) {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "error: ended by {name}; no unfinished file is left");
    }
    // Not `exit`: other threads are at work, and what MPI does at an exit it does not do for them.
    signal_hook::low_level::exit(code_of(signal).number().into());
}

/// Leaves it to another process to say why this one ended.
pub fn be_silent() {
    SILENT.store(true, Ordering::Relaxed);
}

/// From now on the first signal is noted for [`asked_any`].
pub fn listen() {
    LISTENING.store(true, Ordering::Relaxed);
}

fn code_of(signal: i32) -> Code {
    match signal {
        SIGTERM => Code::Terminated,
        SIGHUP => Code::HungUp,
        _ => Code::Interrupted,
    }
}

/// The exit code of work that was asked to end: that of the signal; of Ctrl-C where there was none, as at the end of a time.
pub fn code() -> Code {
    code_of(ASKED.load(Ordering::Relaxed))
}

/// Signals that a process ignores, one bit each from the lowest on, as Linux tells of it; none where that is not known.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Processes ask each other at every so many events only.
const INTERVAL: usize = 16;

/// *Collective.* Whether an end was asked for, of any of the processes, all of which get the same answer, and know the signal.
/// `event` counts the calls.
pub fn asked_any(comm: &RunCommunicator, event: usize) -> bool {
    let asked = ASKED.load(Ordering::Relaxed);
    if comm.size() == 1 {
        return asked != 0;
    }
    if !event.is_multiple_of(INTERVAL) {
        return false;
    }
    // A failure here is that of the next exchange, too, which reports it.
    let signal = comm.largest(f64::from(asked)).map_or(0, |signal| signal as i32);
    if signal != 0 {
        ASKED.store(signal, Ordering::Relaxed);
    }
    signal != 0
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
