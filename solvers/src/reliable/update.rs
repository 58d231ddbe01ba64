//! The reliable update: the true residual replaces that of the recurrence.

use super::{ReliableSolve, UpdatePolicy, relative};
use crate::error::SolveError;
use crate::failure::RhsFailure;
use crate::observer::IterationKind;
use crate::operator::{Sloppy, System};
use crate::traits::VectorSpace;
use std::cmp::Ordering;

impl<Y: System> ReliableSolve<'_, Y> {
    /// Saves x_j if it is the best one so far; then computes x ← x + x̂, x̂ ← 0 and r ← b − A x.
    pub(super) fn accumulate(&mut self) -> Result<(), Y::Error> {
        let state = &mut *self.state;
        if state.x_is_best.iter().all(|best| *best) {
            self.system.precise().copy(self.x, &mut state.best_x)?;
        } else {
            state.set_masks(|state, j| state.x_is_best[j]);
            self.system.precise().axpby(&state.mask, self.x, &state.unmask, &mut state.best_x)?;
        }
        state.x_is_best.fill(false);
        self.system.accumulate(&state.unscale, &state.correction, self.x)?;
        self.system.sloppy().zero(&mut state.correction)?;
        self.true_residual()
    }

    /// Restores the best x_j of the right-hand sides marked in `revert`, and recomputes the residuals if there are any.
    pub(super) fn go_back(&mut self) -> Result<(), Y::Error> {
        let state = &mut *self.state;
        if state.revert.contains(&true) {
            state.set_masks(|state, j| state.revert[j]);
            self.system.precise().axpby(&state.mask, &state.best_x, &state.unmask, self.x)?;
            self.true_residual()?;
        }
        let state = &mut *self.state;
        for j in 0..state.active.len() {
            let best = state.progress[j].best;
            // If the operator gives NaN even for the best x, the known residual of the best x is used.
            if state.revert[j] && state.true_residual[j].is_nan() {
                state.true_residual[j] = best;
            }
            state.x_is_best[j] = state.revert[j] || state.true_residual[j] <= best;
        }
        Ok(())
    }

    /// Makes the reliable update: x ← x + x̂, x̂ ← 0, r ← b − A x, `r` ← r in the sloppy format.
    ///
    /// If the true residual is not smaller than the largest residual of the recurrence since the last update, and the two
    /// disagree, the recurrence was wrong, and x_j returns to the best one before. If the two agree, there was no descent to
    /// check, because another right-hand side requested the update. (In GCR, no right-hand side can request it for another
    /// one.)
    ///
    /// A right-hand side that left the range of the sloppy format also returns to the best x_j, unless its residual is smaller.
    ///
    /// On return, `state.restart` marks right-hand sides that have to restart: those marked before, those that returned to an
    /// earlier x, and those that seemed to have converged twice without progress in between.
    pub fn refresh(&mut self, r: &mut Sloppy<Y>) -> Result<(), SolveError<Y::Error>> {
        self.accumulate()?;
        self.info.reliable_updates += 1;
        self.kind = IterationKind::ReliableUpdate;
        self.settled = true;
        // x̂ may leave the range of the sloppy format although the recurrence stays in it.
        for j in 0..self.state.active.len() {
            if self.state.active[j] && !self.state.overflowed[j] && !self.state.true_residual[j].is_finite() {
                self.rescale(j);
            }
        }
        self.mark_reverts();
        let state = &*self.state;
        let lost = |j: &usize| state.active[*j] && !state.overflowed[*j] && !state.true_residual[*j].is_finite();
        let lost: Vec<usize> = (0..state.active.len()).filter(lost).collect();
        self.go_back()?;
        for rhs in lost {
            self.give_up(rhs, RhsFailure::NotANumber)?;
        }
        self.accept()?;
        let stagnating = self.record_true_residuals();
        if !stagnating.is_empty() {
            let state = &mut *self.state;
            for j in 0..state.active.len() {
                state.revert[j] = stagnating.contains(&j) && !state.has_best(j);
            }
            self.go_back()?;
            for rhs in stagnating {
                self.give_up(rhs, RhsFailure::Stagnation)?;
            }
        }
        self.state.overflowed.fill(false);
        Ok(self.demote(r)?)
    }

    /// Marks the right-hand sides whose x_j became worse since the last update, and counts false convergence.
    fn mark_reverts(&mut self) {
        let state = &mut *self.state;
        for j in 0..state.active.len() {
            let residual = state.true_residual[j];
            // The comparison is "not less", so that NaN is also reverted. Right-hand sides that restart after a breakdown are
            // left out: their recurrence is not expected to agree with the true residual.
            let wrong = state.active[j]
                && !state.restart[j]
                && (self.policy == UpdatePolicy::Restart || !state.agrees(j))
                && residual.partial_cmp(&state.maximum[j]) != Some(Ordering::Less);
            // A right-hand side that was given up or overflowed may have a worse x_j since the last update.
            let moved_away = self.failures.contains(self.slots[j]) || state.overflowed[j];
            let worse = moved_away && residual > state.progress[j].best;
            state.revert[j] = wrong && residual > state.target[j] || worse || !residual.is_finite();
            state.restart[j] |= state.revert[j];
            if state.active[j] {
                let seemed = state.recurrence[j] <= state.recurrence_target(j) && residual > state.target[j];
                state.progress[j].false_convergence(residual, seemed);
            }
        }
    }

    /// Records the true residuals, and marks the right-hand sides that restart. Returns those that stagnate.
    fn record_true_residuals(&mut self) -> Vec<usize> {
        let mut stagnating = Vec::new();
        let state = &mut *self.state;
        for j in 0..state.active.len() {
            let residual = state.true_residual[j];
            // A right-hand side that has not moved since the last update gets the same residual again.
            if let Some(last) = self.info.history[self.slots[j]].last_mut() {
                *last = relative(residual, state.reference[j]);
            }
            state.waiting[j] = false;
            let forced = state.restart[j] && !state.revert[j];
            let anew = state.restart[j]
                || state.progress[j].repeats_false_convergence()
                || self.policy == UpdatePolicy::Restart;
            state.restart[j] = state.active[j] && anew;
            if state.restart[j] {
                self.info.restarts += 1;
                self.kind = IterationKind::Restart;
            }
            // A residual that fell well below the peak of the recurrence is not a stall. A slow descent that the recurrence
            // also shows is not one either.
            let slow = residual > 0.5 * state.maximum[j];
            state.inaccurate[j] = state.active[j] && !forced && (slow && !state.agrees(j) || state.revert[j]);
            let (converged, stalled) = (!state.active[j], state.inaccurate[j]);
            if self.rule.true_residual(&mut state.progress[j], residual, converged, stalled).is_some() {
                stagnating.push(j);
            }
            (state.recurrence[j], state.maximum[j]) = (residual, residual);
        }
        stagnating
    }
}
