//! What is seen of long work: a bar on a terminal, or lines of JSON in a log; of a solve also events for the plot, and signals that ask
//! for an end.
use super::communicator::RunCommunicator;
use super::{interrupt, terminal};
use ferrite_records::object;
use ferrite_records::progress::ProgressLine;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use solvers::{Iteration, IterationKind, Observer, Step};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How progress is shown on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressKind {
    /// A bar on a terminal, nothing elsewhere
    Bar,
    /// A JSON object on a line, at most one each second
    Json,
    /// Nothing
    Off,
}

/// Steps of the bar for each power of ten of the residual.
const STEPS: f64 = 100.0;

/// Watches a solve.
pub struct Watch {
    progress: Progress,
    tol: f64,
    comm: RunCommunicator,
    /// Events so far.
    events: usize,
    /// The part beside the iterations that is under way, or was last.
    part: Option<Part>,
    /// Iterations at which the true residual was computed, and the residuals, one per right-hand side; no number for
    /// those of other batches.
    pub updates: Vec<(usize, Vec<f64>)>,
    /// Of each batch so far: how many right-hand sides it has, and how many updates there were before it.
    batches: Vec<(usize, usize)>,
}

/// Time between two lines of JSON.
const PAUSE: Duration = Duration::from_secs(1);

/// How far work is.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Arc<Lines>>,
    steps: u64,
}

/// Lines of JSON on standard error.
struct Lines {
    /// What the work is: keys of each line.
    work: ProgressLine,
    begin: Instant,
    /// When a line was written last.
    last: Mutex<Option<Instant>>,
}

impl Progress {
    /// Returns the progress of work of so many steps. `work` names it: keys of each line of JSON.
    pub fn new(kind: ProgressKind, work: ProgressLine, steps: u64) -> Self {
        let steps = steps.max(1);
        let is_seen = kind == ProgressKind::Bar && std::io::stderr().is_terminal();
        let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        if is_seen {
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        }
        let lines = || Lines { work, begin: Instant::now(), last: Mutex::new(None) };
        Progress { bar, lines: (kind == ProgressKind::Json).then(|| Arc::new(lines())), steps }
    }
    /// Whether anybody sees it.
    pub fn is_shown(&self) -> bool {
        self.lines.is_some() || !self.bar.is_hidden()
    }
    /// `done` of the steps are done. `tell` returns the bar's text and adds further keys to the line, which is left out where there was
    /// another one a moment ago.
    pub fn at(&self, done: u64, tell: impl FnOnce(&mut ProgressLine) -> String) {
        if let Some(lines) = &self.lines {
            let mut last = lines.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_none_or(|last| last.elapsed() >= PAUSE) {
                *last = Some(Instant::now());
                let mut line = lines.work.clone();
                tell(&mut line);
                lines.write(line, Some(done as f64 / self.steps as f64), lines.begin.elapsed().as_secs_f64());
            }
        } else if !self.bar.is_hidden() {
            self.bar.set_position(done);
            self.bar.set_message(tell(&mut ProgressLine::default()));
        }
    }
    /// As [`Progress::at`], for what is worth a line at any time.
    pub fn reached(&self, done: u64, tell: impl FnOnce(&mut ProgressLine) -> String) {
        if let Some(lines) = &self.lines {
            *lines.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        self.at(done, tell);
    }
    /// The share `done` of a part of the work that began at `begin` is done, such as the setup of a solver before its solve. The line and
    /// the bar say how long the part is expected to take.
    fn part(&self, name: &str, done: Option<f64>, begin: Instant) {
        let seconds = begin.elapsed().as_secs_f64();
        let expected = expected(done, seconds);
        if let Some(lines) = &self.lines {
            let mut last = lines.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_none_or(|last| last.elapsed() >= PAUSE) {
                *last = Some(Instant::now());
                let (work, expected_seconds) = (Some(name.into()), Some(expected));
                let line = ProgressLine { progress: "setup".into(), work, expected_seconds, ..lines.work.clone() };
                lines.write(line, done, seconds);
            }
        } else if !self.bar.is_hidden() {
            self.bar.set_position((done.unwrap_or(0.0) * self.steps as f64) as u64);
            let takes =
                expected.map_or(String::new(), |expected| format!(", about {} in all", super::text::seconds(expected)));
            self.bar.set_message(format!("{name}{takes}"));
        }
    }
    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Lines {
    fn write(&self, mut line: ProgressLine, fraction: Option<f64>, seconds: f64) {
        (line.fraction, line.seconds) = (fraction.map(|fraction| fraction.min(1.0)), seconds);
        terminal::say(&format!("{}\n", Value::Object(object(&line))));
    }
}

/// Seconds that work of which the share `done` took `seconds` takes in all, as soon as that can be foretold.
fn expected(done: Option<f64>, seconds: f64) -> Option<f64> {
    done.filter(|done| *done >= FORETOLD).map(|done| seconds / done)
}

/// Share of work after which its time is foretold.
const FORETOLD: f64 = 0.02;
/// Seconds of a setup that are worth a note.
const LONG: f64 = 10.0;

/// Part of the work of a [`Watch`] that is no iteration.
struct Part {
    name: String,
    begin: Instant,
    done: f64,
    /// Whether a note said how long it takes.
    is_noted: bool,
}

/// The bar that is seen, or was last.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Writes to standard error while no bar is in the way.
pub fn beside<R>(write: impl FnOnce() -> R) -> R {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some(bar) if !bar.is_finished() => bar.suspend(write),
        _ => write(),
    }
}

impl Watch {
    /// Of a solve to `tol`; `work` names it, as in [`Progress::new`].
    pub fn new(tol: f64, kind: ProgressKind, work: ProgressLine, comm: &RunCommunicator) -> Self {
        let length = (-tol.log10().min(0.0) * STEPS).ceil() as u64;
        Watch {
            progress: Progress::new(kind, work, length),
            tol,
            comm: comm.clone(),
            events: 0,
            part: None,
            updates: Vec::new(),
            batches: Vec::new(),
        }
    }
    /// The next `size` right-hand sides come.
    pub fn next_batch(&mut self, size: usize) {
        self.batches.push((size, self.updates.len()));
    }
    /// Right-hand sides of the batches before this one.
    fn before(&self) -> usize {
        self.batches.split_last().map_or(0, |(_, before)| before.iter().map(|(size, _)| size).sum())
    }
    /// The iterations at which true residuals of right-hand side number `j` were computed.
    pub fn iterations_of_updates(&self, j: usize) -> Vec<usize> {
        let (mut begin, mut end, mut before) = (0, self.updates.len(), 0);
        for (size, first) in &self.batches {
            if before > j {
                end = *first;
                break;
            }
            (begin, before) = (*first, before + size);
        }
        self.updates[begin..end].iter().map(|(iteration, _)| *iteration).collect()
    }
    /// The solve has ended.
    pub fn finish(&self) {
        self.progress.finish();
    }
}

impl Observer for Watch {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        if event.kind != IterationKind::Iterate {
            let others = vec![f64::NAN; self.before()];
            self.updates.push((event.iteration, [&others, event.residuals].concat()));
        }
        if self.progress.is_shown() {
            let (worst, iteration, first) = (event.worst(), event.iteration, self.before());
            self.progress.at((-worst.log10().min(0.0) * STEPS) as u64, |line| {
                let tol = super::text::tolerance(self.tol);
                (line.iteration, line.residual, line.tol) = (Some(iteration), Some(worst), Some(self.tol));
                line.rhs = Some([first, first + event.residuals.len()]);
                format!("iteration {iteration}, residual {worst:.1e} of {tol}")
            });
        }
        self.events += 1;
        if interrupt::asked_any(&self.comm, self.events) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    fn step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let done = step.done.unwrap_or(0.0);
        let begins = |part: &Part| part.name != step.work || done < part.done || (done == 0.0 && step.done.is_some());
        if self.part.as_ref().is_none_or(begins) {
            self.part = Some(Part { name: step.work.into(), begin: Instant::now(), done, is_noted: false });
        }
        if let Some(part) = &mut self.part {
            part.done = done;
            let seconds = part.begin.elapsed().as_secs_f64();
            if let Some(expected) = expected(step.done, seconds)
                && seconds >= 1.0
                && !part.is_noted
            {
                part.is_noted = true;
                if expected > LONG {
                    tracing::info!("{} takes about {}", part.name, super::text::seconds(expected));
                }
            }
            self.progress.part(&part.name, step.done, part.begin);
        }
        // Steps take long: there is no time to wait for the next exchange.
        if interrupt::asked_any(&self.comm, 0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_foretold_from_the_share_that_is_done() {
        assert_eq!(expected(Some(0.25), 3.0), Some(12.0));
        assert_eq!([expected(Some(0.0), 0.0), expected(Some(0.01), 3.0), expected(None, 3.0)], [None; 3]);
    }

    #[test]
    fn updates_belong_to_batches() {
        let mut watch =
            Watch::new(1e-9, ProgressKind::Off, ProgressLine::default(), &RunCommunicator::of(comms::Solo::new()));
        watch.updates.push((1, vec![0.5]));
        assert_eq!(watch.iterations_of_updates(3), [1]);
        watch.updates.clear();
        for (size, iterations) in [(2, vec![3, 9]), (1, vec![4]), (3, vec![])] {
            watch.next_batch(size);
            watch.updates.extend(iterations.into_iter().map(|iteration| (iteration, Vec::new())));
        }
        let of: Vec<_> = (0..6).map(|j| watch.iterations_of_updates(j)).collect();
        assert_eq!(of, [vec![3, 9], vec![3, 9], vec![4], vec![], vec![], vec![]]);
        assert_eq!(watch.before(), 3);
    }
}
