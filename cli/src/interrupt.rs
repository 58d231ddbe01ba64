//! Signals that request the program to stop: Ctrl-C, and signals of batch systems, `mpirun` and closing terminals. Work that polls for them
//! stops at the first signal after its current step, and keeps its results. A second signal, or the first one during other work, ends the
//! program at once. Temporary files are removed in both cases.
use super::Code;
use ferrite::system::atomic;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// Number of the first signal that this process received; 0 for none.
static ASKED: AtomicI32 = AtomicI32::new(0);
/// Whether the running work polls for signals.
static LISTENING: AtomicBool = AtomicBool::new(false);
/// Whether the work is done, or has failed, and the process is about to exit.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Signals about which no message is printed, as a bit mask.
static SILENT: AtomicU32 = AtomicU32::new(0);

/// Starts a thread that waits for signals. If SIGHUP is ignored, as under `nohup`, it stays ignored.
pub fn start() {
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let is_heard = |signal: &i32| *signal != SIGHUP || ignored & (1 << (SIGHUP - 1)) == 0;
    let waits = Signals::new([SIGINT, SIGTERM, SIGHUP].into_iter().filter(is_heard)).and_then(|mut signals| {
        std::thread::Builder::new().name("signals".into()).spawn(move || signals.forever().for_each(heard))
    });
    if let Err(error) = waits {
        // Without the thread, signals have their default effect and end the program at once.
        tracing::debug!("signals are not handled: {error}");
    }
}

/// Records a signal if work polls for signals; otherwise ends the program.
fn heard(signal: i32) {
    let is_first = ASKED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if is_first && LISTENING.load(Ordering::Relaxed) {
        return;
    }
    // When a process exits with an error, `mpirun` sends SIGTERM to the others, which may still be printing their own errors. The first
    // signal that arrives while this process ends is therefore ignored.
    if ENDING.swap(false, Ordering::Relaxed) {
        SILENT.store(u32::MAX, Ordering::Relaxed);
        return;
    }
    // The guard is held until the process exits, so that no thread creates another temporary file.
    let _closing = atomic::close();
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
    if SILENT.load(Ordering::Relaxed) & (1 << signal) == 0 {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "error: stopped by {name}; unfinished files were removed");
    }
    // Exit handlers, such as those of MPI, must not run, because other threads are still running.
    signal_hook::low_level::exit(code_of(signal).number().into());
}

/// Selects which messages about signals one of several processes prints. Only the process for which `speaks` is true prints them, except on
/// SIGTERM, which `mpirun` sends to all other processes when one has failed.
#[cfg(feature = "mpi")]
pub fn is_one_of_several(speaks: bool) {
    SILENT.store(if speaks { 1 << SIGTERM } else { u32::MAX }, Ordering::Relaxed);
}

/// Ignores the first signal from now on, because the process is about to exit with an exit code of its own.
pub fn end() {
    ENDING.store(true, Ordering::Relaxed);
}

/// Announces that work polls [`asked`] from now on, so that the first signal is recorded.
pub fn listen() {
    LISTENING.store(true, Ordering::Relaxed);
    tracing::debug!("from now on, a signal stops the work after its current step");
}

fn code_of(signal: i32) -> Code {
    match signal {
        SIGTERM => Code::Terminated,
        SIGHUP => Code::HungUp,
        _ => Code::Interrupted,
    }
}

/// Returns the exit code for the first signal that this process received; `None` without a signal.
pub fn asked() -> Option<Code> {
    match ASKED.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(code_of(signal)),
    }
}

/// Returns the signals that a process ignores, as a bit mask, from the text of its `/proc/…/status`; 0 if unknown.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
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
