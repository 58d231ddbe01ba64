//! Batches that become smaller, and are whole again in the end.

use super::{Outer, Run, relative};
use crate::compact::Plan;
use crate::operator::System;

impl<Y: System> Run<'_, Y> {
    /// Lets right-hand sides that are finished leave the batch, and narrows the system, where the last iteration ended in
    /// an update, it pays and everybody concerned can do it. The plan is for the solver's own vectors and numbers.
    ///
    /// In the precise space x, the best x and b are rearranged. x̂ is zero now, and the residual is scratch until the next
    /// update.
    pub fn compact(&mut self) -> Result<Option<Plan>, Y::Error> {
        let o = &mut *self.outer;
        let width = o.active.len();
        if !self.settled || width == 1 {
            return Ok(None);
        }
        // One that was given up only now may have to go back to its best x, which the next update does.
        let stays = |o: &Outer<_, _>, j: usize| {
            let better = o.x_is_best[j] || o.verified[j] <= o.best[j];
            o.active[j] || self.troubles[self.slots[j]].is_some() && !better
        };
        let Some(plan) = Plan::new(width, |j| stays(o, j)) else { return Ok(None) };
        let judge_can = self.claim.judge.as_ref().is_none_or(|(_, judge)| judge.can_move());
        if !(self.b.can_move() && judge_can && self.width.can_change()) {
            return Ok(None);
        }
        for j in (0..width).filter(|&j| !stays(o, j)) {
            self.left[self.slots[j]] = Some((o.verified[j], o.reference[j]));
            self.shown[self.slots[j]] = relative(o.iterated[j], o.reference[j]);
        }
        let space = self.system.precise();
        plan.vectors(space, self.x, &mut o.residual)?;
        plan.vectors(space, &mut o.best_x, &mut o.residual)?;
        self.b.follow(space, &plan, &mut o.residual)?;
        if let Some((_, judge)) = &mut self.claim.judge {
            judge.follow(&plan, &mut o.residual)?;
        }
        o.rearrange(&plan);
        self.slots.follow(&plan);
        self.width.set(plan.width());
        Ok(Some(plan))
    }

    /// All right-hand sides in the caller's order again, for the report and for the caller.
    pub(super) fn widen(&mut self) -> Result<(), Y::Error> {
        if !self.width.restore() {
            return Ok(());
        }
        let o = &mut *self.outer;
        let space = self.system.precise();
        self.slots.put_back(space, self.x, &mut o.residual)?;
        let mut active = vec![false; o.full];
        for j in 0..o.active.len() {
            self.left[self.slots[j]] = Some((o.verified[j], o.reference[j]));
            active[self.slots[j]] = o.active[j];
        }
        o.widen();
        o.active = active;
        for (side, left) in self.left.iter().enumerate() {
            (o.verified[side], o.reference[side]) = left.unwrap_or((f64::NAN, f64::NAN));
        }
        if let Some((_, judge)) = &mut self.claim.judge {
            judge.restore();
        }
        Ok(())
    }
}
