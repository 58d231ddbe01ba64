//! Batches that become smaller, and are restored in the end.

use super::{ReliableSolve, relative};
use crate::compact::Compaction;
use crate::operator::System;

impl<Y: System> ReliableSolve<'_, Y> {
    /// Lets finished right-hand sides leave the batch, and narrows the system, if the last iteration ended in an update, if it
    /// pays, and if all parts support it. The returned compaction is for the solver's own vectors and scalars.
    ///
    /// In the precise space x, the best x and b are rearranged. x̂ is zero now, and the residual is scratch until the next
    /// update.
    pub fn compact(&mut self) -> Result<Option<Compaction>, Y::Error> {
        let state = &mut *self.state;
        let width = state.active.len();
        if !self.settled || width == 1 {
            return Ok(None);
        }
        // A right-hand side that was given up only now may have to return to its best x at the next update.
        let stays: Vec<bool> = (0..width)
            .map(|j| state.active[j] || self.failures.contains(self.slots[j]) && !state.has_best(j))
            .collect();
        let Some(compaction) = Compaction::new(width, |j| stays[j]) else { return Ok(None) };
        let check_can = self.criterion.check.as_ref().is_none_or(|(_, check)| check.can_move());
        if !(self.b.can_move() && check_can && self.width.can_change()) {
            return Ok(None);
        }
        for j in (0..width).filter(|&j| !stays[j]) {
            self.left[self.slots[j]] = Some((state.true_residual[j], state.reference[j]));
            self.shown[self.slots[j]] = relative(state.recurrence[j], state.reference[j]);
        }
        let space = self.system.precise();
        compaction.vectors(space, self.x, &mut state.residual)?;
        compaction.vectors(space, &mut state.best_x, &mut state.residual)?;
        self.b.follow(space, &compaction, &mut state.residual)?;
        if let Some((_, check)) = &mut self.criterion.check {
            check.follow(&compaction, &mut state.residual)?;
        }
        state.rearrange(&compaction);
        self.slots.follow(&compaction);
        self.width.set(compaction.width());
        Ok(Some(compaction))
    }

    /// Restores the caller's order of all right-hand sides, for the report and for the caller.
    pub(super) fn widen(&mut self) -> Result<(), Y::Error> {
        if !self.width.restore() {
            return Ok(());
        }
        let state = &mut *self.state;
        let space = self.system.precise();
        self.slots.put_back(space, self.x, &mut state.residual)?;
        let mut active = vec![false; state.full];
        for j in 0..state.active.len() {
            self.left[self.slots[j]] = Some((state.true_residual[j], state.reference[j]));
            active[self.slots[j]] = state.active[j];
        }
        state.widen();
        state.active = active;
        for (rhs, left) in self.left.iter().enumerate() {
            (state.true_residual[rhs], state.reference[rhs]) = left.unwrap_or((f64::NAN, f64::NAN));
        }
        if let Some((_, check)) = &mut self.criterion.check {
            check.restore();
        }
        Ok(())
    }
}
