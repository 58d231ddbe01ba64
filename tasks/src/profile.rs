//! `--profile`: how long each kernel of a solve ran.
use super::device::Device;
use super::{Outcome, text};
use ferrite::backend::KernelTime;
use ferrite_records::kernels as records;

use std::fmt::Write;
use std::time::Instant;

/// Rows of the table; the rest is one row.
const ROWS: usize = 20;

/// Times that are being taken, if they were asked for.
pub struct Running(Option<Instant>);

/// Times that were taken.
pub struct Profile(Option<KernelTimes>);

struct KernelTimes {
    kernels: Vec<KernelTime>,
    /// Seconds of the whole, from the clock.
    seconds: f64,
}

impl Running {
    /// Starts taking times, if `asked`.
    pub fn start(asked: bool, device: &Device) -> Outcome<Self> {
        if asked {
            device.backend().start_profile()?;
        }
        Ok(Running(asked.then(Instant::now)))
    }
    /// Ends taking times and returns them.
    pub fn end(self, device: &Device) -> Outcome<Profile> {
        let Some(clock) = self.0 else { return Ok(Profile(None)) };
        let kernels = device.backend().end_profile()?;
        Ok(Profile(Some(KernelTimes { kernels, seconds: clock.elapsed().as_secs_f64() })))
    }
}

impl Profile {
    /// Returns the record of the times; `None` without times.
    pub fn record(&self) -> Option<records::KernelTimesRecord> {
        self.0.as_ref().map(|times| record(&times.kernels, times.seconds))
    }
    /// Returns a table; empty without times. Of several processes this is the first one's.
    pub fn table(&self, processes: usize) -> String {
        let Some(KernelTimes { kernels, seconds }) = &self.0 else { return String::new() };
        let inside = inside(kernels);
        let whose = if processes > 1 { " of rank 0" } else { "" };
        let mut out = format!("{inside:.3} s in kernels{whose}, {:.0} % of the time:\n", 100.0 * inside / seconds);
        let _ = writeln!(out, "{:<44} {:>9} {:>12} {:>8}", "kernel", "launches", "us each", "share");
        let mut row = |name: &str, launches: u64, seconds: f64| {
            let (each, share) = (1e6 * seconds / launches as f64, 100.0 * seconds / inside);
            let _ = writeln!(out, "{name:<44} {launches:>9} {each:>12.2} {share:>7.1}%");
        };
        let (shown, rest) = kernels.split_at(kernels.len().min(ROWS));
        shown.iter().for_each(|kernel| row(&kernel.name, kernel.launches, kernel.seconds));
        if !rest.is_empty() {
            let launches = rest.iter().map(|kernel| kernel.launches).sum();
            row(
                &format!("({})", text::count(rest.len(), "other kernel")),
                launches,
                rest.iter().map(|k| k.seconds).sum(),
            );
        }
        out
    }
}

/// Returns the seconds in kernels.
pub fn inside(kernels: &[KernelTime]) -> f64 {
    kernels.iter().map(|kernel| kernel.seconds).sum()
}

/// Returns the record of times of kernels, with their share of these seconds.
pub fn record(kernels: &[KernelTime], of: f64) -> records::KernelTimesRecord {
    let seconds = inside(kernels);
    let one =
        |k: &KernelTime| records::KernelTimeRecord { name: k.name.clone(), launches: k.launches, seconds: k.seconds };
    records::KernelTimesRecord { seconds, share: seconds / of, times: kernels.iter().map(one).collect() }
}
