//! The reliable update.

use super::outer::set_masks;
use super::{FALSE_CLAIMS, Outer, PROGRESS, Run, Trouble, relative};
use crate::error::SolveError;
use crate::observer::Kind;
use crate::operator::{Sloppy, System};
use crate::traits::VectorSpace;
use std::cmp::Ordering;

impl<Y: System> Run<'_, Y> {
    /// Keeps x_j where it is the best one so far, then x ← x + x̂, x̂ ← 0, r ← b − A x.
    pub(super) fn accumulate(&mut self) -> Result<(), Y::Error> {
        let o = &mut *self.outer;
        if o.x_is_best.iter().all(|best| *best) {
            self.system.precise().copy(self.x, &mut o.best_x)?;
        } else {
            set_masks(o, |o, j| o.x_is_best[j]);
            self.system.precise().axpby(&o.mask, self.x, &o.unmask, &mut o.best_x)?;
        }
        o.x_is_best.fill(false);
        self.system.accumulate(&o.unscale, &o.correction, self.x)?;
        self.system.sloppy().zero(&mut o.correction)?;
        self.true_residual()
    }

    /// Goes back to the best x_j for those marked in `relative` by infinity, if any, and recomputes the residuals.
    pub(super) fn go_back(&mut self) -> Result<(), Y::Error> {
        let o = &mut *self.outer;
        if o.relative.iter().any(|mark| mark.is_infinite()) {
            set_masks(o, |o, j| o.relative[j].is_infinite());
            self.system.precise().axpby(&o.mask, &o.best_x, &o.unmask, self.x)?;
            self.true_residual()?;
        }
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            // An operator that has begun to give NaN does so for the best x, too, of which more is known.
            if o.relative[j].is_infinite() && o.verified[j].is_nan() {
                o.verified[j] = o.best[j];
            }
            o.x_is_best[j] = o.relative[j].is_infinite() || o.verified[j] <= o.best[j];
        }
        Ok(())
    }

    /// The reliable update: x ← x + x̂, x̂ ← 0, r ← b − A x, `r` ← r in the sloppy format.
    ///
    /// Where the true residual is no smaller than the largest of the recurrence since the last update, and the recurrence
    /// says otherwise, it was wrong altogether, and x_j goes back to the best one before. Where both agree there was no
    /// descent to check: another right-hand side wanted the update. (In GCR none can want it for another.)
    ///
    /// Afterwards `outer.restart` marks those that have to begin anew: those marked before, those that went back, and
    /// those that claimed convergence twice without progress in between and were wrong.
    pub fn refresh(&mut self, r: &mut Sloppy<Y>) -> Result<(), SolveError<Y::Error>> {
        self.accumulate()?;
        self.info.reliable_updates += 1;
        self.kind = Kind::ReliableUpdate;
        self.settled = true;
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            // "Not less" instead of "at least": NaN goes back too.
            // After a breakdown the recurrence promised nothing.
            let wrong = o.active[j]
                && !o.restart[j]
                && (self.control.restarting || !o.agrees(j))
                && o.verified[j].partial_cmp(&o.maximum[j]) != Some(Ordering::Less);
            // What moved it last may be what it was given up for.
            let worse = self.troubles[self.slots[j]].is_some() && o.verified[j] > o.best[j];
            o.relative[j] = if wrong && o.verified[j] > o.target[j] || worse || !o.verified[j].is_finite() {
                o.restart[j] = true;
                f64::INFINITY
            } else {
                0.0
            };
            if o.active[j] {
                // Counted as long as there is no progress.
                let claimed = o.iterated[j] <= o.level(j) && o.verified[j] > o.target[j];
                let before = if o.verified[j] < PROGRESS * o.best[j] { 0 } else { o.false_claims[j] };
                o.false_claims[j] = before + usize::from(claimed);
            }
        }
        let finite = |o: &Outer<_, _>, j: usize| o.verified[j].is_finite();
        let lost: Vec<usize> = (0..o.active.len()).filter(|&j| o.active[j] && !finite(o, j)).collect();
        self.go_back()?;
        for rhs in lost {
            self.give_up(rhs, Trouble::NotANumber)?;
        }
        self.accept()?;
        let mut stuck = Vec::new();
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            // Those that have not moved since the last update have the same residual again.
            if let Some(last) = self.info.history[self.slots[j]].last_mut() {
                *last = relative(o.verified[j], o.reference[j]);
            }
            o.waiting[j] = false;
            let forced = o.restart[j] && o.relative[j].is_finite();
            o.restart[j] = o.active[j] && (o.restart[j] || o.false_claims[j] > 1 || self.control.restarting);
            if o.restart[j] {
                self.info.restarts += 1;
                self.kind = Kind::Restart;
            }
            // An honest way down from a peak is no stall, and neither is a slow one that was announced as slow.
            let slow = o.verified[j] > 0.5 * o.maximum[j];
            o.deceived[j] = o.active[j] && !forced && (slow && !o.agrees(j) || o.relative[j].is_infinite());
            o.progressed[j] = o.verified[j] < PROGRESS * o.best[j];
            if o.progressed[j] {
                o.stalls[j] = 0;
            } else if o.active[j] {
                o.stalls[j] += usize::from(o.deceived[j]);
                if o.stalls[j] >= self.control.max_stalls || o.false_claims[j] >= FALSE_CLAIMS {
                    stuck.push(j);
                }
            }
            o.best[j] = o.best[j].min(o.verified[j]);
            o.iterated[j] = o.verified[j];
            o.maximum[j] = o.verified[j];
        }
        if !stuck.is_empty() {
            let better = |o: &Outer<_, _>, j: usize| o.x_is_best[j] || o.verified[j] <= o.best[j];
            for j in 0..o.active.len() {
                o.relative[j] = if stuck.contains(&j) && !better(o, j) { f64::INFINITY } else { 0.0 };
            }
            self.go_back()?;
            for rhs in stuck {
                self.give_up(rhs, Trouble::Stagnation)?;
            }
        }
        Ok(self.demote(r)?)
    }
}
