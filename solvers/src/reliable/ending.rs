//! How a solve ends, or goes on without a right-hand side.

use super::{Run, relative};
use crate::error::{BreakdownKind, SolveError};
use crate::info::Info;
use crate::observer::{Iteration, Observer};
use crate::operator::{Sloppy, System};

/// Why a right-hand side is given up while others go on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    NotANumber,
    Stagnation,
    Breakdown(BreakdownKind),
    /// With (p, A p).
    NotPositive(f64),
}

/// The error about the first right-hand side that was given up.
pub(crate) fn failure<E: std::error::Error>(info: Box<Info>, troubles: &[Option<(Trouble, usize)>]) -> SolveError<E> {
    let first = (0..troubles.len()).find_map(|j| Some((j, troubles[j]?)));
    match first {
        None => SolveError::NoConvergence { iterations: info.iterations, residual: info.worst_residual(), info },
        Some((rhs, (Trouble::NotANumber, iteration))) => SolveError::NotANumber { iteration, rhs, info },
        Some((rhs, (Trouble::Stagnation, iterations))) => {
            SolveError::Stagnation { iterations, rhs, residual: info.true_residual[rhs], info }
        }
        Some((rhs, (Trouble::Breakdown(what), iteration))) => SolveError::Breakdown { what, iteration, rhs, info },
        Some((rhs, (Trouble::NotPositive(curvature), iteration))) => {
            SolveError::NotPositiveDefinite { curvature, iteration, rhs, info }
        }
    }
}

impl<Y: System> Run<'_, Y> {
    /// Ends an iteration: tells the observer and looks at the limits.
    pub fn close(&mut self, observer: &mut dyn Observer) -> Result<(), SolveError<Y::Error>> {
        self.close_with(observer, |_| Ok(()))
    }

    /// [`close`](Run::close) for a solver that does not keep x̂ up to date: before the solve is given up, `complete`
    /// adds to it what is missing.
    pub fn close_with(
        &mut self,
        observer: &mut dyn Observer,
        complete: impl FnOnce(&mut Sloppy<Y>) -> Result<(), Y::Error>,
    ) -> Result<(), SolveError<Y::Error>> {
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            self.shown[self.slots[j]] = relative(o.iterated[j], o.reference[j]);
        }
        let event = Iteration { iteration: self.info.iterations, residuals: &self.shown, kind: self.kind };
        let answer = observer.iteration(&event);
        if self.finished() {
            return Ok(());
        }
        let iteration = self.info.iterations;
        let window = self.control.stagnation_window;
        let (o, own) = (&*self.outer, |j: usize| self.info.iterations_per_rhs[self.slots[j]]);
        let stuck = |j: &usize| window > 0 && o.active[*j] && own(*j) - o.lowest_at[*j] > window;
        let stuck: Vec<usize> = (0..o.active.len()).filter(stuck).collect();
        let all_stuck = stuck.len() == o.active.iter().filter(|active| **active).count();
        if !answer.is_break() && !all_stuck && iteration < self.control.max_iterations {
            for rhs in stuck {
                self.give_up(rhs, Trouble::Stagnation)?;
            }
            return Ok(());
        }
        complete(&mut self.outer.correction)?;
        if answer.is_break() {
            self.settle(true)?;
            return Err(SolveError::Cancelled { iteration, info: self.take_info()? });
        }
        if all_stuck {
            self.settle(true)?;
            stuck.iter().for_each(|&j| self.troubles[self.slots[j]] = Some((Trouble::Stagnation, iteration)));
            return Err(self.failure()?);
        }
        Err(self.no_convergence()?)
    }

    pub fn no_convergence(&mut self) -> Result<SolveError<Y::Error>, Y::Error> {
        self.settle(true)?;
        let info = self.take_info()?;
        Ok(SolveError::NoConvergence { iterations: info.iterations, residual: info.worst_residual(), info })
    }

    /// Goes on without the right-hand side in slot `rhs`, whose x goes back to the best one at the next update; an error
    /// where there is no other to go on with.
    pub fn give_up(&mut self, rhs: usize, trouble: Trouble) -> Result<(), SolveError<Y::Error>> {
        let iteration = self.info.iterations;
        let o = &mut *self.outer;
        if o.active.iter().enumerate().any(|(j, active)| *active && j != rhs) {
            (o.active[rhs], o.restart[rhs], o.waiting[rhs]) = (false, false, false);
            self.troubles[self.slots[rhs]] = Some((trouble, iteration));
            return Ok(());
        }
        // What failed in the last steps is not added to x.
        match trouble {
            Trouble::NotANumber | Trouble::Breakdown(_) => self.settle(false)?,
            Trouble::NotPositive(_) => self.settle(true)?,
            Trouble::Stagnation => {}
        }
        self.troubles[self.slots[rhs]] = Some((trouble, iteration));
        Err(self.failure()?)
    }

    /// What went wrong for the first of the right-hand sides that were given up.
    fn failure(&mut self) -> Result<SolveError<Y::Error>, Y::Error> {
        let info = self.take_info()?;
        Ok(failure(info, &self.troubles))
    }

    /// The error of a right-hand side, or a first guess, that is not finite.
    pub(super) fn not_a_number(&mut self, rhs: usize) -> SolveError<Y::Error> {
        self.troubles[rhs] = Some((Trouble::NotANumber, 0));
        self.failure().unwrap_or_else(SolveError::Backend)
    }

    /// Before giving up: adds x̂ to x if `try_correction`, and goes back to the best x_j.
    pub(super) fn settle(&mut self, try_correction: bool) -> Result<(), Y::Error> {
        if try_correction {
            self.accumulate()?;
        }
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            // Finished ones have not moved; recomputing them gives rounding of the same value.
            let better = o.verified[j] <= o.best[j]; // NaN is not
            let worse = (o.active[j] || self.troubles[self.slots[j]].is_some()) && !o.x_is_best[j] && !better;
            o.relative[j] = if worse { f64::INFINITY } else { 0.0 };
        }
        self.go_back()
    }

    /// Closes the report: true residuals, flops.
    fn take_info(&mut self) -> Result<Box<Info>, Y::Error> {
        self.widen()?;
        let o = &mut *self.outer;
        if let Some((norms, judge)) = &mut self.claim.judge {
            judge.measure(self.x, &mut o.judged)?;
            for j in 0..o.active.len() {
                self.info.true_residual[j] = relative(o.judged[j], norms[j]);
            }
        } else {
            for j in 0..o.active.len() {
                // A right-hand side with b_j = 0 has x_j = 0.
                let exact = o.reference[j] == 0.0;
                self.info.true_residual[j] = if exact { 0.0 } else { o.verified[j] / o.reference[j] };
            }
        }
        let info = &mut self.info;
        info.failed = (0..self.troubles.len()).filter(|&j| self.troubles[j].is_some()).collect();
        info.converged = !o.active.contains(&true) && info.failed.is_empty();
        info.flops = info.precise_sides as f64 * self.system.flops()
            + info.sloppy_sides as f64 * self.system.flops_sloppy()
            + self.preconditioner_flops;
        Ok(Box::new(std::mem::take(info)))
    }

    /// The report of a solve that came to its end, or what went wrong for the first of those that were given up.
    pub fn succeed(mut self) -> Result<Info, SolveError<Y::Error>> {
        debug_assert!(self.finished());
        if self.troubles.iter().any(Option::is_some) {
            return Err(self.failure()?);
        }
        Ok(*self.take_info()?)
    }
}
