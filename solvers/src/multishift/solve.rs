//! A multi-shift solve in progress.

use super::{MultiShiftInfo, MultiShiftParams, MultiShiftWorkspace, ShiftInfo};
use crate::compact::{BatchSlots, BatchWidth, Compaction, narrow_both};
use crate::error::SolveError;
use crate::failure::RhsFailure;
use crate::info::{Info, worse_residual};
use crate::observer::{Iteration, IterationKind, Observer};
use crate::range;
use crate::reliable::{HISTORY, relative};
use crate::stopping::{ConvergenceHistory, RhsFailures, StopReason, StoppingRule};
use crate::traits::{CgStep, LinearOperator, ShiftStep, VectorSpace, with_coefficients};

/// A multi-shift solve in progress.
pub(super) struct MultiShiftSolve<'a, S: VectorSpace, A: ?Sized> {
    space: &'a S,
    operator: &'a A,
    shifts: &'a [f64],
    /// Index of the smallest shift, which defines the base system.
    base: usize,
    rhs: &'a S::Vector,
    x: &'a mut [S::Vector],
    params: &'a MultiShiftParams<'a>,
    w: &'a mut MultiShiftWorkspace<S>,
    info: MultiShiftInfo,
    rule: StoppingRule,
    failures: RhsFailures,
    slots: BatchSlots,
    /// Relative residuals of the base system for the observer, in the caller's order.
    shown: Vec<f64>,
    /// Number of systems, the last of those that moved, whose updates of the last iteration are still to be made.
    late: usize,
    width: BatchWidth<'a>,
}

impl<'a, S: VectorSpace, A: LinearOperator<S> + ?Sized> MultiShiftSolve<'a, S, A> {
    /// Sets x = 0 and r = p = b. Right-hand sides with b_j = 0 are finished at once, as are shifts with a tolerance of 1 or
    /// more.
    pub fn begin(
        space: &'a S,
        operator: &'a A,
        shifts: &'a [f64],
        rhs: &'a S::Vector,
        x: &'a mut [S::Vector],
        params: &'a MultiShiftParams<'a>,
        w: &'a mut MultiShiftWorkspace<S>,
    ) -> Result<Self, SolveError<S::Error>> {
        params.validate(shifts)?;
        let rule = StoppingRule::new(&params.solver, 0)?;
        if x.len() != shifts.len() {
            return Err(SolveError::Invalid("a multi-shift solve needs one block of solutions for each shift"));
        }
        if w.nrhs != space.nrhs() {
            return Err(SolveError::Invalid("the workspace was made for another number of right-hand sides"));
        }
        if w.p.len() < shifts.len() {
            return Err(SolveError::Invalid("the workspace was made for fewer shifts"));
        }
        let n = w.nrhs;
        let whole = Info::begin(n, params.solver.max_iterations.saturating_add(1).min(HISTORY));
        let one = |shift: &f64| ShiftInfo {
            shift: *shift,
            iterations: vec![0; n],
            residual: vec![0.0; n],
            true_residual: vec![f64::NAN; n],
        };
        let info = MultiShiftInfo { whole, shifts: shifts.iter().map(one).collect() };
        let base = (0..shifts.len()).min_by(|i, j| shifts[*i].total_cmp(&shifts[*j])).unwrap_or(0);
        w.reset();
        let mut run = Self {
            space,
            operator,
            shifts,
            base,
            rhs,
            x,
            params,
            w,
            info,
            rule,
            failures: RhsFailures::new(n),
            slots: BatchSlots::new(n),
            shown: vec![0.0; n],
            late: 0,
            width: BatchWidth::new(n, |nrhs| narrow_both(space, operator, nrhs)),
        };
        for x in run.x.iter_mut() {
            space.zero(x)?;
        }
        space.norm2(rhs, &mut run.w.norm2)?;
        run.info.whole.reductions += 1;
        range::check(space, rhs, &run.w.norm2, &mut run.w.r)?;
        if run.failures.record_not_finite(&run.w.norm2, 0) {
            return Err(run.failures.error(Box::new(run.info.whole)));
        }
        run.start()?;
        Ok(run)
    }

    fn start(&mut self) -> Result<(), S::Error> {
        let n = self.w.nrhs;
        let w = &mut *self.w;
        for j in 0..n {
            let norm = w.norm2[j].sqrt();
            (w.rho[j], w.reference[j], w.progress[j]) = (w.norm2[j], norm, ConvergenceHistory::new(norm));
            (w.alpha[j], w.beta[j], w.momentum[j], w.active[j]) = (0.0, 0.0, 0.0, false);
            w.relative[j] = relative(norm, norm);
            self.shown[j] = w.relative[j];
            self.info.whole.history[j].push(w.relative[j]);
        }
        for (i, info) in self.info.shifts.iter_mut().enumerate() {
            for j in 0..n {
                let at = i * n + j;
                (w.zeta[at], w.gap[at]) = (1.0, 0.0);
                w.running[at] = !StoppingRule::converged(
                    w.relative[j],
                    self.params.tolerance(if self.params.together { self.base } else { i }),
                );
                w.active[j] |= w.running[at];
                info.residual[j] = w.relative[j];
            }
        }
        if self.finished() {
            return Ok(());
        }
        self.space.copy(self.rhs, &mut self.w.r)?;
        for p in &mut self.w.p[..self.shifts.len()] {
            self.space.copy(self.rhs, p)?;
        }
        Ok(())
    }

    /// Returns whether all shifts are finished for all right-hand sides.
    pub fn finished(&self) -> bool {
        !self.w.active.contains(&true)
    }

    /// Returns an error if the maximum number of iterations was reached.
    pub fn check_limit(&mut self) -> Result<(), SolveError<S::Error>> {
        let exhausted = self.rule.exhausted(self.info.whole.iterations);
        self.rule.stop(false, false, exhausted).map_or(Ok(()), |stop| Err(self.stopped(stop)?))
    }

    /// Removes finished right-hand sides from the batch if that saves time.
    pub fn compact(&mut self) -> Result<(), S::Error> {
        let (space, width) = (self.space, self.w.active.len());
        let Some(compaction) = Compaction::new(width, |j| self.w.active[j]) else { return Ok(()) };
        if !self.width.can_change() {
            return Ok(());
        }
        self.catch_up()?;
        let MultiShiftWorkspace { r, ap: scratch, p, .. } = &mut *self.w;
        compaction.vectors(space, r, scratch)?;
        self.x.iter_mut().zip(p).try_for_each(|(x, p)| {
            compaction.vectors(space, x, scratch)?;
            compaction.vectors(space, p, scratch)
        })?;
        self.w.rearrange(&compaction, width);
        self.slots.follow(&compaction);
        self.width.set(compaction.width());
        Ok(())
    }

    /// Restores the caller's order of all right-hand sides.
    fn widen(&mut self) -> Result<(), S::Error> {
        if self.width.restore() {
            let (space, scratch) = (self.space, &mut self.w.ap);
            self.x.iter_mut().try_for_each(|x| self.slots.put_back(space, x, scratch))?;
            self.w.norm2.resize(self.w.nrhs, 0.0);
        }
        Ok(())
    }

    /// Takes one step of CG on the base system: computes α, r and ‖r_j‖². The updates that the previous iteration left
    /// for later overlap with the reductions of the step.
    pub fn base_step(&mut self) -> Result<(), S::Error> {
        let (n, space) = (self.w.active.len(), self.space);
        // With ρ = 0, right-hand sides that are not active keep x and r.
        let rho: Vec<f64> = (0..n).map(|j| if self.w.active[j] { self.w.rho[j] } else { 0.0 }).collect();
        let MultiShiftWorkspace { r, ap, p, dots, norm2, a, z, b, .. } = &mut *self.w;
        let (base, mut others) = steps(self.base, self.x, p, [a, z, b]);
        let from = others.len() - self.late;
        let (first, second) = others[from..].split_at_mut(self.late.div_ceil(2));
        let [mut first, mut second] = [first, second].map(|late| || space.shift_update(r, late));
        let step = CgStep { shift: self.shifts[self.base], p: base.p, r, rho: &rho };
        self.operator.cg_step(space, &step, ap, dots, norm2, [&mut first, &mut second])?;
        self.info.whole.sloppy_applications += 1;
        self.info.whole.sloppy_rhs += n;
        self.info.whole.reductions += 2;
        let alpha: Vec<f64> = (0..n).map(|j| step.alpha(j, dots[j])).collect();
        std::mem::swap(r, ap);
        // No x has been updated in this iteration, so a failure has not reached any x.
        for j in (0..n).filter(|&j| self.w.active[j]).collect::<Vec<_>>() {
            let (dot, norm2) = (self.w.dots[j], self.w.norm2[j]);
            let positive = dot.re > 0.0 && (rho[j] / dot.re).is_finite();
            let failure = RhsFailure::unless_finite(dot.is_finite() && norm2.is_finite())
                .or_else(|| if positive { None } else { StoppingRule::not_positive(&mut 0, true, dot.re) });
            failure.into_iter().for_each(|failure| self.give_up(j, failure));
        }
        self.w.alpha.copy_from_slice(&alpha);
        self.info.whole.iterations += 1;
        Ok(())
    }

    /// Gives up the right-hand side in slot `slot`: its x_ij stay as they are for all shifts. The other right-hand sides
    /// continue.
    fn give_up(&mut self, slot: usize, failure: RhsFailure) {
        self.failures.record(self.slots[slot], failure, self.info.whole.iterations);
        let w = &mut *self.w;
        w.active[slot] = false;
        for at in (slot..w.running.len()).step_by(w.active.len()) {
            w.running[at] = false;
        }
    }

    /// Computes β = ‖r'‖²/‖r‖² of the base system, from the new ‖r_j‖² in `norm2`.
    pub fn find_beta(&mut self) {
        let w = &mut *self.w;
        let whole = &mut self.info.whole;
        for (j, &rhs) in self.slots.first(w.active.len()).iter().enumerate().filter(|(j, _)| w.active[*j]) {
            let norm = w.norm2[j].sqrt();
            w.beta[j] = w.norm2[j] / w.rho[j];
            w.rho[j] = w.norm2[j];
            w.relative[j] = relative(norm, w.reference[rhs]);
            self.shown[rhs] = w.relative[j];
            w.progress[j].recurrence_residual(norm, whole.iterations);
            whole.iterations_per_rhs[rhs] += 1;
            whole.history[rhs].push(w.relative[j]);
        }
    }

    /// Computes ζ of all systems and the coefficients of their updates. Drops the systems whose residuals are small enough.
    pub fn find_zeta(&mut self) {
        let w = &mut *self.w;
        let (n, iteration, together, base) =
            (w.active.len(), self.info.whole.iterations, self.params.together, self.base);
        // A right-hand side is active if the solve of at least one of its systems continues.
        w.active.fill(false);
        let mut lost = Vec::new();
        for (i, info) in self.info.shifts.iter_mut().enumerate() {
            // δ = σ_i − σ₀
            let delta = self.shifts[i] - self.shifts[self.base];
            for (j, &rhs) in self.slots.first(n).iter().enumerate() {
                let at = i * n + j;
                w.rest(at);
                if !w.running[at] {
                    continue;
                }
                // e = δ α + t g with t = α m, where m is β/α of the previous step.
                let e = w.alpha[j] * (delta + w.momentum[j] * w.gap[at]);
                if !e.is_finite() {
                    lost.push(j);
                    w.running[at] = false;
                    continue;
                }
                // ρ = 1/(1 + e), g = e ρ, ζ ← ρ ζ
                let ratio = 1.0 / (1.0 + e);
                w.gap[at] = e * ratio;
                w.zeta[at] *= ratio;
                w.a[at] = w.alpha[j] * w.zeta[at];
                info.iterations[rhs] = iteration;
                info.residual[rhs] = w.zeta[at] * w.relative[j];
                // The base system has ζ = 1, so its residual is that of the recurrence.
                let (judge, residual) = if together { (base, w.relative[j]) } else { (i, info.residual[rhs]) };
                w.running[at] = !StoppingRule::converged(residual, self.params.tolerance(judge));
                if w.running[at] {
                    // A dropped system no longer needs its direction, so its last update leaves p as it is.
                    (w.z[at], w.b[at]) = (1.0, w.beta[j] * ratio);
                    w.active[j] = true;
                }
            }
        }
        for j in (0..n).filter(|&j| w.active[j]) {
            // The base system moves even if its x is finished, because its direction spans the Krylov space.
            let at = self.base * n + j;
            (w.z[at], w.b[at]) = (1.0, w.beta[j]);
            w.momentum[j] = w.beta[j] / w.alpha[j];
        }
        lost.dedup();
        for slot in lost {
            self.give_up(slot, RhsFailure::NotANumber);
            (slot..n * self.shifts.len()).step_by(n).for_each(|at| self.w.rest(at));
        }
    }

    /// Makes the vector updates of all systems that move, except for the updates that overlap with the next step.
    pub fn update(&mut self) -> Result<(), S::Error> {
        let n = self.w.active.len();
        let MultiShiftWorkspace { r, p, a, z, b, left, dots: right, .. } = &mut *self.w;
        if self.slots.first(n).iter().any(|&rhs| self.failures.contains(rhs)) {
            // 0 · NaN is NaN, so b replaces the residual of a failed right-hand side.
            for j in 0..n {
                let failed = self.failures.contains(self.slots[j]);
                (left[j], right[j]) = (f64::from(u8::from(failed)).into(), f64::from(u8::from(!failed)).into());
            }
            self.space.axpby(left, self.rhs, right, r)?;
        }
        let (base, mut others) = steps(self.base, self.x, p, [a, z, b]);
        self.late = others.len().min(self.space.overlapped_updates().saturating_mul(2));
        others.truncate(others.len() - self.late);
        others.extend(Some(base).filter(moves));
        self.space.shift_update(r, &mut others)
    }

    /// Makes the late vector updates, if no further iteration will make them.
    fn catch_up(&mut self) -> Result<(), S::Error> {
        let MultiShiftWorkspace { r, p, a, z, b, .. } = &mut *self.w;
        let (_, mut others) = steps(self.base, self.x, p, [a, z, b]);
        let from = others.len() - std::mem::take(&mut self.late);
        self.space.shift_update(r, &mut others[from..])
    }

    /// Computes the true residuals of all systems. A p is overwritten.
    fn measure(&mut self) -> Result<(), S::Error> {
        let n = self.w.nrhs;
        let w = &mut *self.w;
        let whole = &mut self.info.whole;
        whole.true_residual.fill(0.0);
        whole.converged = true;
        for (i, info) in self.info.shifts.iter_mut().enumerate() {
            self.operator.apply(&self.x[i], &mut w.ap)?;
            if info.shift != 0.0 {
                with_coefficients(n, |_| info.shift.into(), |shift| self.space.axpy(shift, &self.x[i], &mut w.ap))?;
            }
            self.space.sub_norm2(self.rhs, &mut w.ap, &mut w.norm2)?;
            whole.precise_applications += 1;
            whole.reductions += 1;
            for j in 0..n {
                let residual = relative(w.norm2[j].sqrt(), w.reference[j]);
                info.true_residual[j] = residual;
                whole.converged &= StoppingRule::converged(residual, self.params.tolerance(i));
                whole.true_residual[j] = worse_residual(whole.true_residual[j], residual);
            }
        }
        Ok(())
    }

    fn count_flops(&mut self) {
        let whole = &mut self.info.whole;
        whole.precise_rhs = self.w.nrhs * whole.precise_applications;
        whole.flops = (whole.precise_rhs + whole.sloppy_rhs) as f64 * self.operator.flops();
    }

    /// Completes and returns the report of a solve that failed.
    fn report(&mut self) -> Result<Box<Info>, S::Error> {
        self.catch_up()?;
        self.widen()?;
        self.measure()?;
        self.count_flops();
        // A failed solve has not converged, even if all residuals happen to be within their tolerances.
        self.info.whole.converged = false;
        self.failures.report(&mut self.info.whole);
        Ok(Box::new(std::mem::take(&mut self.info.whole)))
    }

    /// Returns the error of a solve that ended with `stop`.
    fn stopped(&mut self, stop: StopReason) -> Result<SolveError<S::Error>, S::Error> {
        let info = self.report()?;
        Ok(self.failures.stopped(stop, info))
    }

    /// Ends an iteration: calls the observer, and gives up right-hand sides that stagnate.
    pub fn close(&mut self, observer: &mut dyn Observer) -> Result<(), SolveError<S::Error>> {
        let iteration = self.info.whole.iterations;
        let event = Iteration { iteration, residuals: &self.shown, kind: IterationKind::Iterate };
        let cancelled = observer.iteration(&event).is_break();
        if self.finished() {
            return Ok(());
        }
        if let Some(stop) = self.rule.stop(cancelled, false, false) {
            return Err(self.stopped(stop)?);
        }
        let w = &*self.w;
        let stagnated = |j: &usize| w.active[*j] && self.rule.stagnated(&w.progress[*j], iteration);
        for slot in (0..w.active.len()).filter(stagnated).collect::<Vec<_>>() {
            self.give_up(slot, RhsFailure::Plateau);
        }
        Ok(())
    }

    /// Returns the report of a completed solve, or the error of the first right-hand side that was given up.
    pub fn succeed(mut self) -> Result<MultiShiftInfo, SolveError<S::Error>> {
        if self.failures.any() {
            let info = self.report()?;
            return Err(self.failures.error(info));
        }
        self.catch_up()?;
        self.widen()?;
        if self.params.check {
            self.measure()?;
        }
        self.count_flops();
        Ok(self.info)
    }
}

/// Returns the update of the base system, and the updates of all other systems that move.
fn steps<'b, V>(
    base: usize,
    x: &'b mut [V],
    p: &'b mut [V],
    [a, z, b]: [&'b [f64]; 3],
) -> (ShiftStep<'b, V>, Vec<ShiftStep<'b, V>>) {
    let n = a.len() / p.len();
    let (mut of_base, mut others) = (None, Vec::new());
    let rows = a.chunks_exact(n).zip(z.chunks_exact(n)).zip(b.chunks_exact(n));
    for (i, ((x, p), ((a, z), b))) in x.iter_mut().zip(p).zip(rows).enumerate() {
        let step = ShiftStep { a, z, b, x, p };
        if i == base {
            of_base = Some(step);
        } else if moves(&step) {
            others.push(step);
        }
    }
    (of_base.expect("the base is one of the systems"), others)
}

/// Returns whether the update changes a right-hand side.
fn moves<V>(step: &ShiftStep<'_, V>) -> bool {
    !(0..step.a.len()).all(|j| step.is_identity(j))
}
