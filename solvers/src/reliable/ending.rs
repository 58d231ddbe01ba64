//! The end of a solve with reliable updates, and its continuation without a right-hand side that failed.

use super::{ReliableSolve, relative};
use crate::error::SolveError;
use crate::failure::RhsFailure;
use crate::info::Info;
use crate::observer::{Iteration, Observer};
use crate::operator::{Sloppy, System};
use crate::stopping::StopReason;

impl<Y: System> ReliableSolve<'_, Y> {
    /// Ends an iteration: calls the observer, and returns an error if there is a reason to stop the solve.
    pub fn close(&mut self, observer: &mut dyn Observer) -> Result<(), SolveError<Y::Error>> {
        self.close_with(observer, |_| Ok(()))
    }

    /// Ends an iteration like [`close`](ReliableSolve::close), for a solver that does not keep x̂ up to date. If the solve is
    /// stopped, `complete` first adds the missing part to x̂.
    pub fn close_with(
        &mut self,
        observer: &mut dyn Observer,
        complete: impl FnOnce(&mut Sloppy<Y>) -> Result<(), Y::Error>,
    ) -> Result<(), SolveError<Y::Error>> {
        let state = &*self.state;
        for j in 0..state.active.len() {
            self.shown[self.slots[j]] = relative(state.recurrence[j], state.reference[j]);
        }
        let iteration = self.info.iterations;
        let cancelled =
            observer.iteration(&Iteration { iteration, residuals: &self.shown, kind: self.kind }).is_break();
        if self.finished() {
            return Ok(());
        }
        let active = (0..state.active.len()).filter(|&j| state.active[j]);
        let own = |j: usize| self.info.iterations_per_rhs[self.slots[j]];
        let (stagnated, others): (Vec<usize>, Vec<usize>) =
            active.partition(|&j| self.rule.stagnated(&state.progress[j], own(j)));
        let Some(stop) = self.rule.stop(cancelled, others.is_empty(), self.rule.exhausted(iteration)) else {
            return stagnated.into_iter().try_for_each(|rhs| self.give_up(rhs, RhsFailure::Plateau));
        };
        complete(&mut self.state.correction)?;
        if stop == StopReason::Stagnation {
            // Failures are recorded only after the best x has been restored, because `settle` treats failed right-hand sides
            // differently.
            self.settle(true)?;
            stagnated.iter().for_each(|&j| self.failures.record(self.slots[j], RhsFailure::Plateau, iteration));
            return Err(self.failure()?);
        }
        Err(self.stopped(stop)?)
    }

    /// Returns the error of a solve that ended with `stop`, after x has become the best x.
    pub(super) fn stopped(&mut self, stop: StopReason) -> Result<SolveError<Y::Error>, Y::Error> {
        self.settle(true)?;
        let info = self.take_info()?;
        Ok(self.failures.stopped(stop, info))
    }

    /// Gives up the right-hand side in slot `rhs`; its x returns to the best one at the next update. Returns an error if no
    /// other right-hand side is active.
    pub fn give_up(&mut self, rhs: usize, failure: RhsFailure) -> Result<(), SolveError<Y::Error>> {
        let iteration = self.info.iterations;
        let state = &mut *self.state;
        if state.active.iter().enumerate().any(|(j, active)| *active && j != rhs) {
            (state.active[rhs], state.restart[rhs], state.waiting[rhs]) = (false, false, false);
            self.failures.record(self.slots[rhs], failure, iteration);
            return Ok(());
        }
        // After NaN or a breakdown, x̂ is not added to x.
        match failure {
            RhsFailure::NotANumber | RhsFailure::Breakdown(_) => self.settle(false)?,
            RhsFailure::NotPositiveDefinite(_) => self.settle(true)?,
            RhsFailure::Stagnation | RhsFailure::Plateau => {}
        }
        self.failures.record(self.slots[rhs], failure, iteration);
        Err(self.failure()?)
    }

    /// Returns the error of the first right-hand side that was given up.
    pub(super) fn failure(&mut self) -> Result<SolveError<Y::Error>, Y::Error> {
        let info = self.take_info()?;
        Ok(self.failures.error(info))
    }

    /// Restores the best x_j of each right-hand side before a solve ends; first adds x̂ to x if `try_correction` is true.
    fn settle(&mut self, try_correction: bool) -> Result<(), Y::Error> {
        if try_correction {
            self.accumulate()?;
        }
        let state = &mut *self.state;
        for j in 0..state.active.len() {
            // A finished x has not changed; its residual differs from the best one by rounding only.
            let moved = state.active[j] || self.failures.contains(self.slots[j]);
            state.revert[j] = moved && !state.has_best(j);
        }
        self.go_back()
    }

    /// Completes the report with true residuals and operations, and returns it.
    fn take_info(&mut self) -> Result<Box<Info>, Y::Error> {
        self.widen()?;
        let state = &mut *self.state;
        if let Some((norms, check)) = &mut self.criterion.check {
            check.measure(self.x, &mut state.checked)?;
            for j in 0..state.active.len() {
                self.info.true_residual[j] = relative(state.checked[j], norms[j]);
            }
        } else {
            for j in 0..state.active.len() {
                // If b_j = 0, x_j = 0 is exact.
                let exact = state.reference[j] == 0.0;
                self.info.true_residual[j] = if exact { 0.0 } else { state.true_residual[j] / state.reference[j] };
            }
        }
        let info = &mut self.info;
        self.failures.report(info);
        info.converged = !state.active.contains(&true) && info.failed.is_empty();
        info.flops = info.precise_rhs as f64 * self.system.flops()
            + info.sloppy_rhs as f64 * self.system.flops_sloppy()
            + self.preconditioner_flops;
        Ok(Box::new(std::mem::take(info)))
    }

    /// Returns the report of a completed solve, or the error of the first right-hand side that was given up.
    pub fn succeed(mut self) -> Result<Info, SolveError<Y::Error>> {
        debug_assert!(self.finished());
        if self.failures.any() {
            return Err(self.failure()?);
        }
        Ok(*self.take_info()?)
    }
}
