//! A solve with reliable updates in progress: its start, its scalars, and the decision when an update is due.

use super::{Criterion, HISTORY, ReliableState, URGENT, UpdatePolicy, relative, scale_for};
use crate::compact::{BatchSlots, BatchWidth, Rhs};
use crate::error::SolveError;
use crate::failure::{BreakdownKind, RhsFailure};
use crate::info::Info;
use crate::observer::IterationKind;
use crate::operator::{Precise, Sloppy, System};
use crate::params::SolverParams;
use crate::preconditioner::Work;
use crate::range;
use crate::stopping::{ConvergenceHistory, RhsFailures, StopReason, StoppingRule};
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Default of [`SolverParams::stagnation_window`] for methods that restart, in iterations.
const RESTARTED_WINDOW: usize = 500;

/// Factor by which an overflow reduces the residuals in a format of limited range; a power of two.
const HEADROOM_STEP: f64 = 1.0 / 64.0;
/// Minimum fraction of the target norm; below it, small numbers lose too many digits.
const SMALLEST_HEADROOM: f64 = HEADROOM_STEP * HEADROOM_STEP;

/// A solve with reliable updates in progress.
pub(crate) struct ReliableSolve<'a, Y: System> {
    pub(super) system: &'a Y,
    pub(super) b: Rhs<'a, Precise<Y>>,
    pub(super) x: &'a mut Precise<Y>,
    pub state: &'a mut ReliableState<Y::Precise, Y::Sloppy>,
    pub(super) rule: StoppingRule,
    pub(super) policy: UpdatePolicy,
    delta: f64,
    pub(super) criterion: Criterion<'a, Y>,
    pub info: Info,
    pub(super) kind: IterationKind,
    pub(super) failures: RhsFailures,
    pub(super) slots: BatchSlots,
    /// Relative residuals of all right-hand sides for the observer, in the caller's order. For right-hand sides that have
    /// left the batch, `left` is the true residual and its reference norm.
    pub(super) shown: Vec<f64>,
    pub(super) left: Vec<Option<(f64, f64)>>,
    pub(super) width: BatchWidth<'a>,
    /// Whether x contains all steps and x̂ is zero.
    pub(super) settled: bool,
    /// Floating-point operations of the preconditioner for all right-hand sides.
    pub(super) preconditioner_flops: f64,
}

impl<'a, Y: System> ReliableSolve<'a, Y> {
    /// Computes norms, targets and the first residual. Right-hand sides with b_j = 0 get x_j = 0 and are finished.
    pub fn begin(
        system: &'a Y,
        b: Rhs<'a, Precise<Y>>,
        x: &'a mut Precise<Y>,
        state: &'a mut ReliableState<Y::Precise, Y::Sloppy>,
        params: &SolverParams,
        policy: UpdatePolicy,
        criterion: Criterion<'a, Y>,
    ) -> Result<Self, SolveError<Y::Error>> {
        let rule = StoppingRule::new(params, if policy == UpdatePolicy::Restart { RESTARTED_WINDOW } else { 0 })?;
        let n = state.full;
        if n != system.precise().nrhs() {
            return Err(SolveError::Invalid("the workspace was made for another number of right-hand sides"));
        }
        // Results of an earlier solve must not appear in the report.
        state.widen();
        state.true_residual.fill(f64::NAN);
        state.reference.fill(f64::NAN);
        let mut run = Self {
            system,
            b,
            x,
            state,
            rule,
            policy,
            delta: params.delta.unwrap_or(if system.is_mixed() { 0.1 } else { 0.0 }),
            criterion,
            info: Info::begin(n, params.max_iterations.saturating_add(1).min(HISTORY)),
            kind: IterationKind::Iterate,
            failures: RhsFailures::new(n),
            slots: BatchSlots::new(n),
            shown: vec![0.0; n],
            left: vec![None; n],
            width: BatchWidth::new(n, |nrhs| system.narrow(nrhs)),
            settled: true,
            preconditioner_flops: 0.0,
        };
        run.first_residual()?;
        Ok(run)
    }

    /// Returns an error if the maximum number of iterations is 0.
    pub fn require_iterations(&mut self) -> Result<(), SolveError<Y::Error>> {
        if self.rule.exhausted(0) { Err(self.stopped(StopReason::IterationLimit)?) } else { Ok(()) }
    }

    /// Returns the number of iterations up to the limit.
    pub fn iterations_left(&self) -> usize {
        self.rule.left(self.info.iterations)
    }
    /// Returns the residuals of right-hand side j after each of its iterations.
    pub fn history(&self, j: usize) -> &[f64] {
        &self.info.history[self.slots[j]]
    }
    /// Returns the factor by which the residual of right-hand side j has to decrease until it requests an update.
    pub fn distance_to_update(&self, j: usize) -> f64 {
        let state = &*self.state;
        state.recurrence[j] / state.recurrence_target(j).max(self.delta * state.maximum[j])
    }

    /// Returns the system to solve.
    pub fn system(&self) -> &'a Y {
        self.system
    }

    fn first_residual(&mut self) -> Result<(), SolveError<Y::Error>> {
        let space = self.system.precise();
        let state = &mut *self.state;
        space.norm2(self.b.get(), &mut state.norm2)?;
        self.info.reductions += 1;
        // Only a right-hand side of the caller is checked. One that the solver made comes from a right-hand side that
        // was checked.
        if let Rhs::Given(b, _) = &self.b {
            range::check(space, *b, &state.norm2, &mut state.residual)?;
        }
        if self.failures.record_not_finite(&state.norm2, 0) {
            return Err(self.failure()?);
        }
        for j in 0..state.norm2.len() {
            let norm = state.norm2[j].sqrt();
            state.true_residual[j] = norm;
            state.reference[j] = self.criterion.reference.map_or(norm, |reference| reference[j]);
            state.target[j] = self.rule.target(state.reference[j]);
            state.active[j] = state.reference[j] > 0.0;
            state.mask[j] = if state.active[j] { Complex64::ONE } else { Complex64::ZERO };
            (state.restart[j], state.waiting[j]) = (false, false);
            (state.checked[j], state.x_is_best[j]) = (0.0, true);
            (state.scale[j], state.unscale[j]) = (1.0, 1.0);
            (state.headroom[j], state.overflowed[j]) = (1.0, false);
        }
        if !state.active.contains(&true) {
            space.zero(self.x)?;
        } else {
            if state.active.contains(&false) {
                space.axpby(&state.zeros, self.b.get(), &state.mask, self.x)?;
            }
            space.norm2(self.x, &mut state.norm2)?;
            self.info.reductions += 1;
            if state.norm2.iter().all(|v| *v == 0.0) {
                // In the usual case x = 0, the residual is b, which saves an application.
                space.copy(self.b.get(), &mut state.residual)?;
            } else {
                self.true_residual()?;
            }
        }
        if self.failures.record_not_finite(&self.state.true_residual, 0) {
            return Err(self.failure()?);
        }
        self.system.sloppy().zero(&mut self.state.correction)?;
        self.accept()?;
        let state = &mut *self.state;
        for j in 0..state.active.len() {
            let residual = state.true_residual[j];
            (state.recurrence[j], state.maximum[j]) = (residual, residual);
            state.progress[j] = ConvergenceHistory::new(residual).relative_to(state.reference[j]);
            self.info.history[j].push(relative(residual, state.reference[j]));
        }
        Ok(())
    }

    /// Computes r ← b − A x and its norms.
    pub(super) fn true_residual(&mut self) -> Result<(), Y::Error> {
        let state = &mut *self.state;
        self.system.apply(self.x, &mut state.residual)?;
        self.system.precise().sub_norm2(self.b.get(), &mut state.residual, &mut state.norm2)?;
        self.info.precise_applications += 1;
        self.info.precise_rhs += state.active.len();
        self.info.reductions += 1;
        for (residual, norm2) in state.true_residual.iter_mut().zip(&state.norm2) {
            *residual = norm2.sqrt();
        }
        Ok(())
    }

    /// Finishes the right-hand sides whose true residuals are small enough. If a check measures another residual, the target
    /// of a right-hand side that fails the check is lowered in proportion.
    pub(super) fn accept(&mut self) -> Result<(), Y::Error> {
        let state = &mut *self.state;
        let converged: Vec<usize> = (0..state.active.len())
            .filter(|&j| state.active[j] && StoppingRule::converged(state.true_residual[j], state.target[j]))
            .collect();
        if converged.is_empty() {
            return Ok(());
        }
        let Some((norms, check)) = &mut self.criterion.check else {
            converged.into_iter().for_each(|j| state.active[j] = false);
            return Ok(());
        };
        check.measure(self.x, &mut state.checked)?;
        for j in converged {
            let target = self.rule.target(norms[self.slots[j]]);
            if StoppingRule::converged(state.checked[j], target) {
                state.active[j] = false;
            } else {
                let lowest = state.target[j].min(state.true_residual[j]);
                state.target[j] = 0.5 * lowest * (target / state.checked[j]).max(1e-4);
            }
        }
        Ok(())
    }

    /// Converts the residual to the sloppy format, scaled so that it lies well within the range of the format.
    pub fn demote(&mut self, to: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        let target_norm = self.system.sloppy().target_norm();
        let state = &mut *self.state;
        for j in 0..state.scale.len() {
            let before = state.scale[j];
            if state.active[j] {
                let target = target_norm.map(|target| target * state.headroom[j]);
                state.scale[j] = scale_for(target, state.true_residual[j], before);
            }
            state.unscale[j] = 1.0 / state.scale[j];
            state.rescaled[j] = state.scale[j] / before;
        }
        self.system.demote(&state.scale, &state.residual, to)
    }

    /// Adds `times` applications of the sloppy operator to the counts of the solve.
    pub fn applied(&mut self, times: usize) {
        self.info.sloppy_applications += times;
        self.info.sloppy_rhs += times * self.state.active.len();
    }

    /// Adds the work of a preconditioner for the right-hand sides in the batch to the counts of the solve.
    pub fn preconditioned(&mut self, work: Work) {
        self.info.preconditioner += work;
        self.preconditioner_flops += work.flops * self.state.active.len() as f64;
    }

    /// Returns whether every right-hand side is finished.
    pub fn finished(&self) -> bool {
        !self.state.active.contains(&true)
    }

    /// Returns ‖r_j‖² of the sloppy r_j at the last update.
    pub fn sloppy_norm2(&self, j: usize) -> f64 {
        (self.state.true_residual[j] * self.state.scale[j]).powi(2)
    }

    /// Returns the ratio of the scales of the sloppy r_j after and before the last update.
    pub fn rescaled(&self, j: usize) -> f64 {
        self.state.rescaled[j]
    }

    /// Returns whether right-hand side j has converged according to the recurrence.
    pub fn seems_converged(&self, j: usize) -> bool {
        self.state.recurrence[j] <= self.state.recurrence_target(j)
    }

    /// Returns whether the true residual of right-hand side j made progress at the last update.
    pub fn progressed(&self, j: usize) -> bool {
        self.state.progress[j].progressed
    }

    /// Returns whether the last update found a true residual of right-hand side j far above that of the recurrence.
    pub fn inaccurate(&self, j: usize) -> bool {
        self.state.inaccurate[j]
    }

    /// Returns the number of consecutive breakdowns without progress of right-hand side j.
    pub fn breakdowns(&self, j: usize) -> usize {
        self.state.progress[j].breakdowns()
    }

    /// Counts a breakdown of right-hand side j after its update, and gives the right-hand side up after too many
    /// breakdowns. Returns whether the right-hand side continues.
    pub fn breakdown(&mut self, j: usize, what: BreakdownKind) -> Result<bool, SolveError<Y::Error>> {
        let failure = self.rule.breakdown(&mut self.state.progress[j], what);
        self.unless_failed(j, failure)
    }

    /// Resets the breakdown count of right-hand side j.
    pub fn forget_breakdowns(&mut self, j: usize) {
        self.state.progress[j].forget_breakdowns();
    }

    /// Checks whether a reduction is `finite`. If not, right-hand side j restarts on a smaller scale with the next
    /// update, which is due in this iteration or at the end of a cycle of GCR. If no smaller scale is left, the
    /// right-hand side is given up. Returns whether the right-hand side takes part in the rest of this iteration.
    pub fn check_finite(&mut self, j: usize, finite: bool) -> Result<bool, SolveError<Y::Error>> {
        if finite || self.state.overflowed[j] {
            return Ok(finite);
        }
        if self.rescale(j) {
            return Ok(false);
        }
        self.unless_failed(j, RhsFailure::unless_finite(finite))
    }

    /// Marks right-hand side j for a restart on a smaller scale at the next update. Returns false if the sloppy format has a
    /// wide range, or after too many restarts.
    pub(super) fn rescale(&mut self, j: usize) -> bool {
        let state = &mut *self.state;
        if self.system.sloppy().target_norm().is_none() || state.headroom[j] <= SMALLEST_HEADROOM {
            return false;
        }
        state.headroom[j] *= HEADROOM_STEP;
        (state.overflowed[j], state.restart[j]) = (true, true);
        true
    }

    /// Returns the fraction of the target norm to which residuals are scaled in the sloppy format: the smallest
    /// fraction of all active right-hand sides.
    pub fn headroom(&self) -> f64 {
        let active = self.state.headroom.iter().zip(&self.state.active).filter(|(_, active)| **active);
        active.fold(1.0, |smallest, (headroom, _)| headroom.min(smallest))
    }

    /// Returns whether an active right-hand side is in the range of the sloppy format.
    pub fn any_in_range(&self) -> bool {
        self.state.active.iter().zip(&self.state.overflowed).any(|(active, overflowed)| *active && !overflowed)
    }
    /// Returns whether right-hand side j left the range of the sloppy format since the last update.
    pub fn overflowed(&self, j: usize) -> bool {
        self.state.overflowed[j]
    }

    /// Gives up right-hand side j if `failure` is `Some`. Returns whether the right-hand side continues.
    pub fn unless_failed(&mut self, j: usize, failure: Option<RhsFailure>) -> Result<bool, SolveError<Y::Error>> {
        failure.map_or(Ok(()), |failure| self.give_up(j, failure))?;
        Ok(failure.is_none())
    }

    /// Reads the new ‖r_j‖² of the recurrence from `state.norm2`, and returns whether an update is due. If an update discards
    /// directions, right-hand sides that request one wait until it is made.
    pub fn advance(&mut self) -> Result<bool, SolveError<Y::Error>> {
        self.info.iterations += 1;
        self.kind = IterationKind::Iterate;
        self.settled = false;
        let (mut moving, mut wanting, mut urgent) = (0, 0, false);
        let mut overflow = false;
        for j in 0..self.state.active.len() {
            let finite = self.state.norm2[j].is_finite() && !self.state.overflowed[j];
            if !(self.state.moves(j) && self.check_finite(j, finite)?) {
                if self.state.moves(j) && self.state.overflowed[j] {
                    // The true residual of the next update replaces this entry of the history.
                    let (residual, rhs) = (self.state.recurrence[j], self.slots[j]);
                    self.info.iterations_per_rhs[rhs] += 1;
                    self.info.history[rhs].push(relative(residual, self.state.reference[j]));
                    self.state.waiting[j] = self.policy == UpdatePolicy::Restart;
                    overflow = true;
                }
                continue;
            }
            let (state, rhs) = (&mut *self.state, self.slots[j]);
            let norm = state.norm2[j].sqrt() * state.unscale[j];
            state.recurrence[j] = norm;
            state.maximum[j] = state.maximum[j].max(norm);
            self.info.iterations_per_rhs[rhs] += 1;
            state.progress[j].recurrence_residual(norm, self.info.iterations_per_rhs[rhs]);
            let target = state.recurrence_target(j);
            let wants = norm <= target || norm < self.delta * state.maximum[j];
            urgent |= norm <= URGENT * target || norm < self.delta.powi(2) * state.maximum[j];
            moving += 1;
            wanting += usize::from(wants);
            state.waiting[j] = wants && self.policy == UpdatePolicy::Restart;
            self.info.history[rhs].push(relative(norm, state.reference[j]));
        }
        let enough = if self.policy == UpdatePolicy::All { wanting == moving } else { 2 * wanting >= moving || urgent };
        Ok(overflow || wanting > 0 && enough)
    }
}
