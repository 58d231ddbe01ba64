//! Batches that become smaller during a solve, and whose full width is restored at its end.

use super::{ReliableSolve, relative};
use crate::compact::Compaction;
use crate::operator::System;

impl<Y: System> ReliableSolve<'_, Y> {
    /// Removes finished right-hand sides from the batch and narrows the system, if the last iteration ended in an update, all
    /// parts support it, and it saves time. The caller applies the returned compaction to its own vectors and scalars.
    ///
    /// In the precise space, the method rearranges x, the best x and b. x̂ is zero at this point, and the residual is scratch
    /// until the next update.
    pub fn compact(&mut self) -> Result<Option<Compaction>, Y::Error> {
        let state = &mut *self.state;
        let width = state.active.len();
        if !self.settled || width == 1 {
            return Ok(None);
        }
        // A right-hand side that was just given up stays if the next update has to restore its best x.
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

    /// Restores the full width and the caller's order of all right-hand sides.
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
