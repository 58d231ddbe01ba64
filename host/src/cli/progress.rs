//! What is seen of a running solve: a bar on a terminal, events for the plot, and signals that ask for an end.
use super::communicator::RunCommunicator;
use super::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use solvers::{Iteration, IterationKind, Observer};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// Steps of the bar for each power of ten of the residual.
const STEPS: f64 = 100.0;

/// Watches a solve.
pub struct Watch {
    bar: ProgressBar,
    tol: f64,
    comm: RunCommunicator,
    /// Events so far.
    events: usize,
    /// Iterations at which the true residual was computed, and the residuals, one per right-hand side; no number for
    /// those of other batches.
    pub updates: Vec<(usize, Vec<f64>)>,
    /// Of each batch so far: how many right-hand sides it has, and how many updates there were before it.
    batches: Vec<(usize, usize)>,
}

/// A bar of `length` steps if `visible` and standard error is a terminal.
pub fn bar(length: u64, visible: bool) -> ProgressBar {
    let visible = visible && std::io::stderr().is_terminal();
    let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length.max(1)), target);
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    if visible {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
    }
    bar
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
    /// With a bar if `visible` and standard error is a terminal.
    pub fn new(tol: f64, visible: bool, comm: &RunCommunicator) -> Self {
        let length = (-tol.log10().min(0.0) * STEPS).ceil() as u64;
        Watch {
            bar: bar(length, visible),
            tol,
            comm: comm.clone(),
            events: 0,
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
    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Watch {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        if event.kind != IterationKind::Iterate {
            let others = vec![f64::NAN; self.before()];
            self.updates.push((event.iteration, [&others, event.residuals].concat()));
        }
        if !self.bar.is_hidden() {
            let worst = event.worst();
            self.bar.set_position((-worst.log10().min(0.0) * STEPS) as u64);
            self.bar.set_message(format!(
                "iteration {}, residual {worst:.1e} of {}",
                event.iteration,
                super::text::tolerance(self.tol)
            ));
        }
        self.events += 1;
        if interrupt::asked_any(&self.comm, self.events) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_belong_to_batches() {
        let mut watch = Watch::new(1e-9, false, &RunCommunicator::of(comms::Solo::new()));
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
