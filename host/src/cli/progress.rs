//! What is seen of a running solve: a bar on a terminal, events for the plot, and Ctrl-C.
use super::interrupt;
use super::world::World;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use solvers::{Iteration, Kind, Observer};
use std::io::IsTerminal;
use std::ops::ControlFlow;

/// Steps of the bar for each power of ten of the residual.
const STEPS: f64 = 100.0;

/// Watches a solve.
pub struct Watch {
    bar: ProgressBar,
    tol: f64,
    world: World,
    /// Events so far.
    events: usize,
    /// Iterations at which the true residual was computed, and the residuals, one per right-hand side.
    pub updates: Vec<(usize, Vec<f64>)>,
}

/// A bar of `length` steps if `visible` and standard error is a terminal.
pub fn bar(length: u64, visible: bool) -> ProgressBar {
    let visible = visible && std::io::stderr().is_terminal();
    let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length.max(1)), target);
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

impl Watch {
    /// With a bar if `visible` and standard error is a terminal.
    pub fn new(tol: f64, visible: bool, world: &World) -> Self {
        let length = (-tol.log10().min(0.0) * STEPS).ceil() as u64;
        Watch { bar: bar(length, visible), tol, world: world.clone(), events: 0, updates: Vec::new() }
    }
    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Watch {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        if event.kind != Kind::Iterate {
            self.updates.push((event.iteration, event.residuals.to_vec()));
        }
        if !self.bar.is_hidden() {
            let worst = event.worst();
            self.bar.set_position((-worst.log10().min(0.0) * STEPS) as u64);
            self.bar.set_message(format!("iteration {}, residual {worst:.1e} of {:.0e}", event.iteration, self.tol));
        }
        self.events += 1;
        if interrupt::asked_any(&self.world, self.events) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
