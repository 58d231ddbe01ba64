//! Times of the kernels of a solve, for `--profile`.
use super::device::Device;
use super::{Outcome, text};
use ferrite::backend::KernelTime;
use ferrite_records::kernels as records;

use std::fmt::Write;
use std::time::Instant;

/// Number of kernels in the table; all others share one row.
const ROWS: usize = 20;

/// Profile in progress; empty if none was requested.
pub struct Running(Option<Instant>);

/// Times of the kernels between the start and the end of a profile; empty if none was requested.
pub struct Profile(Option<KernelTimes>);

struct KernelTimes {
    kernels: Vec<KernelTime>,
    /// Seconds from the start to the end of the profile.
    seconds: f64,
}

impl Running {
    /// Starts a profile if `asked`.
    pub fn start(asked: bool, device: &Device) -> Outcome<Self> {
        if asked {
            device.backend().start_profile()?;
        }
        Ok(Running(asked.then(Instant::now)))
    }
    /// Ends the profile and returns its times.
    pub fn end(self, device: &Device) -> Outcome<Profile> {
        let Some(clock) = self.0 else { return Ok(Profile(None)) };
        let kernels = device.backend().end_profile()?;
        Ok(Profile(Some(KernelTimes { kernels, seconds: clock.elapsed().as_secs_f64() })))
    }
}

impl Profile {
    /// Returns the record of the times; `None` if no profile was requested.
    pub fn record(&self) -> Option<records::KernelTimesRecord> {
        self.0.as_ref().map(|times| record(&times.kernels, times.seconds))
    }
    /// Returns a table of the kernels with their times; empty if no profile was requested. With several processes, it has the times of rank
    /// 0.
    pub fn table(&self, processes: usize) -> String {
        let Some(KernelTimes { kernels, seconds }) = &self.0 else { return String::new() };
        let inside = inside(kernels);
        let whose = if processes > 1 { " of rank 0" } else { "" };
        let mut out =
            format!("{inside:.3} s in kernels{whose}, {:.0} % of the time of the solve:\n", 100.0 * inside / seconds);
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

/// Returns the total time of the kernels in seconds.
pub fn inside(kernels: &[KernelTime]) -> f64 {
    kernels.iter().map(|kernel| kernel.seconds).sum()
}

/// Returns the record of kernel times. Their share is relative to `of` seconds.
pub fn record(kernels: &[KernelTime], of: f64) -> records::KernelTimesRecord {
    let seconds = inside(kernels);
    let one =
        |k: &KernelTime| records::KernelTimeRecord { name: k.name.clone(), launches: k.launches, seconds: k.seconds };
    records::KernelTimesRecord { seconds, share: seconds / of, times: kernels.iter().map(one).collect() }
}
