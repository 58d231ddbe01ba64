//! The stopping rule of all solvers: when a right-hand side has converged, when it is given up, and when a solve ends.
//!
//! | event | call | possible result |
//! |---|---|---|
//! | a reduction | [`RhsFailure::unless_finite`] | `NotANumber` |
//! | a residual of the recurrence | [`ConvergenceHistory::recurrence_residual`], [`StoppingRule::stagnated`] | `Stagnation` |
//! | a true residual | [`StoppingRule::converged`], [`StoppingRule::true_residual`] | convergence, `Stagnation` |
//! | a breakdown | [`StoppingRule::breakdown`] | `Breakdown` |
//! | (p, A p) ≤ 0 | [`StoppingRule::not_positive`] | `NotPositiveDefinite` |
//! | the end of an iteration | [`StoppingRule::stop`] | `Cancelled`, `Stagnation`, `NoConvergence` |
//!
//! A [`ConvergenceHistory`] records the residuals of each right-hand side. [`RhsFailures`] records those that were given up,
//! and makes the error of the solve from them.

use crate::error::SolveError;
use crate::failure::{BreakdownKind, RhsFailure};
use crate::info::{GivenUp, Info};
use crate::params::{Patience, SolverParams};

/// Fraction of the smallest residual so far below which a residual counts as progress.
const PROGRESS: f64 = 0.9;
/// Number of times that the recurrence seemed to have converged, wrongly and without progress in between, after which a
/// right-hand side is given up. The precision is not high enough in this case.
const FALSE_CONVERGENCES: usize = 4;
/// Fraction of ‖b‖ below which rounding may prevent a smaller true residual: about 50 times the precision of double numbers.
const NEAR_ROUNDING: f64 = 1e-14;
/// Minimum number of iterations without progress after which a right-hand side near rounding is given up. The number must
/// also be at least that of the iterations up to the smallest residual.
const LEAST_NEAR_ROUNDING: usize = 500;
/// Number of times that (p, A p) ≤ 0 must occur in sloppy arithmetic before the operator counts as not positive; a single
/// case may be due to rounding.
const CURVATURE_FAILURES: usize = 3;
/// Smallest meaningful residual relative to ‖b‖ in double precision.
pub(crate) const ROUNDING: f64 = 1e-18;

/// Criteria for stopping a solve, from its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoppingRule {
    tol: f64,
    max_iterations: usize,
    max_stalls: usize,
    /// Maximum number of iterations without progress; 0 for no limit.
    stagnation_window: usize,
    patience: Option<Patience>,
    max_breakdowns: usize,
}

/// Convergence history of a right-hand side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvergenceHistory {
    /// Smallest residual of the recurrence that counted as progress; `lowest_at` is its iteration.
    lowest: f64,
    lowest_at: usize,
    /// Norm to which residuals refer; 0 if the solve measures no true residuals.
    norm: f64,
    /// Smallest true residual so far.
    pub best: f64,
    /// Whether the last true residual counted as progress.
    pub progressed: bool,
    stalls: usize,
    false_convergences: usize,
    breakdowns: usize,
}

impl ConvergenceHistory {
    /// Creates the history of a solve that begins with `residual`.
    pub fn new(residual: f64) -> Self {
        Self {
            lowest: residual,
            lowest_at: 0,
            norm: 0.0,
            best: residual,
            progressed: false,
            stalls: 0,
            false_convergences: 0,
            breakdowns: 0,
        }
    }

    /// Returns the history with the norm to which residuals refer, for a solve that measures true residuals.
    pub fn relative_to(self, norm: f64) -> Self {
        Self { norm, ..self }
    }

    /// Whether the smallest true residual is so small that rounding may prevent a smaller one.
    fn is_near_rounding(&self) -> bool {
        self.best <= NEAR_ROUNDING * self.norm
    }

    /// Records the residual of the recurrence after `iteration` iterations of the right-hand side.
    pub fn recurrence_residual(&mut self, residual: f64, iteration: usize) {
        if residual < PROGRESS * self.lowest {
            (self.lowest, self.lowest_at) = (residual, iteration);
        }
    }

    /// Counts how many times in a row, without progress, the recurrence `seemed` to have converged but had not. Must be
    /// called before [`StoppingRule::true_residual`].
    pub fn false_convergence(&mut self, residual: f64, seemed: bool) {
        let before = if residual < PROGRESS * self.best { 0 } else { self.false_convergences };
        self.false_convergences = before + usize::from(seemed);
    }

    /// Returns whether the recurrence wrongly seemed to have converged more than once, without progress in between.
    pub fn repeats_false_convergence(&self) -> bool {
        self.false_convergences > 1
    }

    /// Returns the number of consecutive breakdowns without progress.
    pub fn breakdowns(&self) -> usize {
        self.breakdowns
    }

    /// Resets the count of breakdowns.
    pub fn forget_breakdowns(&mut self) {
        self.breakdowns = 0;
    }
}

impl StoppingRule {
    /// Creates the stopping rule from the parameters of a solve. `stagnation_window` is the default of the method; it
    /// applies if the parameters contain none.
    ///
    /// # Errors
    /// `Invalid` for parameters that are out of range.
    pub fn new<E: std::error::Error>(params: &SolverParams, stagnation_window: usize) -> Result<Self, SolveError<E>> {
        if !(params.tol >= 0.0 && params.tol.is_finite()) {
            return Err(SolveError::Invalid("the tolerance must be a finite number of at least 0"));
        }
        if params.delta.is_some_and(|delta| !(0.0..1.0).contains(&delta)) {
            return Err(SolveError::Invalid("δ must be at least 0 (off) and below 1"));
        }
        if params.patience.is_some_and(|patience| !(patience.share >= 0.0 && patience.share.is_finite())) {
            return Err(SolveError::Invalid(
                "the share of iterations in a patience must be a finite number of at least 0",
            ));
        }
        if params.max_stalls == 0 {
            return Err(SolveError::Invalid("max_stalls must be at least 1"));
        }
        if params.max_breakdowns == 0 {
            return Err(SolveError::Invalid("max_breakdowns must be at least 1"));
        }
        Ok(Self {
            tol: params.tol,
            max_iterations: params.max_iterations,
            max_stalls: params.max_stalls,
            stagnation_window: params.stagnation_window.unwrap_or(stagnation_window),
            patience: params.patience,
            max_breakdowns: params.max_breakdowns,
        })
    }

    /// Returns the target ε ‖b‖ for the residual of a right-hand side with norm `norm`.
    pub fn target(&self, norm: f64) -> f64 {
        self.tol * norm
    }

    /// Returns whether a true residual is at or below its target; false for NaN.
    pub fn converged(residual: f64, target: f64) -> bool {
        residual <= target
    }

    /// Returns the residual of a recurrence at or below which it seems to have converged. The lower bound stops a recurrence
    /// with a tiny or zero target before it underflows.
    pub fn recurrence_target(target: f64, norm: f64) -> f64 {
        target.max(ROUNDING * norm)
    }

    /// Returns whether the residual of the recurrence has made no progress for too long. A recurrence in a sloppy
    /// precision may stagnate at the level of rounding, far above its target, where no update would detect it.
    pub fn stagnated(&self, progress: &ConvergenceHistory, iteration: usize) -> bool {
        let since = iteration - progress.lowest_at;
        let grown = |patience: Patience| patience.least.max((patience.share * progress.lowest_at as f64) as usize);
        self.stagnation_window > 0 && since > self.stagnation_window
            || self.patience.is_some_and(|patience| since > grown(patience))
            || progress.is_near_rounding() && since > LEAST_NEAR_ROUNDING.max(progress.lowest_at)
    }

    /// Records a true residual. If the right-hand side has not `converged` and the residual is no progress, it counts
    /// as a stall if `stalled` is true. Returns the failure if the right-hand side has to be given up.
    pub fn true_residual(
        &self,
        progress: &mut ConvergenceHistory,
        residual: f64,
        converged: bool,
        stalled: bool,
    ) -> Option<RhsFailure> {
        progress.progressed = residual < PROGRESS * progress.best;
        progress.best = progress.best.min(residual);
        if progress.progressed {
            progress.stalls = 0;
        } else if !converged {
            progress.stalls += usize::from(stalled);
            if progress.stalls >= self.max_stalls || progress.false_convergences >= FALSE_CONVERGENCES {
                return Some(RhsFailure::Stagnation);
            }
        }
        None
    }

    /// Counts a breakdown, after the true residual that followed it has been recorded. Returns the failure if the right-hand
    /// side has to be given up.
    pub fn breakdown(&self, progress: &mut ConvergenceHistory, what: BreakdownKind) -> Option<RhsFailure> {
        progress.breakdowns = if progress.progressed { 0 } else { progress.breakdowns + 1 };
        (progress.breakdowns >= self.max_breakdowns).then_some(RhsFailure::Breakdown(what))
    }

    /// Increments `times`, which counts how often the curvature (p, A p) was not positive. Returns a failure of the
    /// operator if the sign is `certain`, or if it was counted [`CURVATURE_FAILURES`] times.
    pub fn not_positive(times: &mut usize, certain: bool, curvature: f64) -> Option<RhsFailure> {
        *times += 1;
        (certain || *times >= CURVATURE_FAILURES).then_some(RhsFailure::NotPositiveDefinite(curvature))
    }

    /// Returns whether the maximum number of iterations was reached.
    pub fn exhausted(&self, iterations: usize) -> bool {
        iterations >= self.max_iterations
    }
    /// Returns the number of iterations up to the limit.
    pub fn left(&self, iterations: usize) -> usize {
        self.max_iterations.saturating_sub(iterations)
    }

    /// Returns the reason why a solve that has not converged ends after an iteration, if there is one. Cancellation
    /// takes precedence over stagnation, and stagnation over the iteration limit.
    pub fn stop(&self, cancelled: bool, stagnated: bool, exhausted: bool) -> Option<StopReason> {
        let reasons = [
            (cancelled, StopReason::Cancelled),
            (stagnated, StopReason::Stagnation),
            (exhausted, StopReason::IterationLimit),
        ];
        reasons.into_iter().find_map(|(applies, stop)| applies.then_some(stop))
    }
}

/// Reason why a solve that has not converged ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The observer requested to stop the solve.
    Cancelled,
    /// No right-hand side makes progress.
    Stagnation,
    /// The maximum number of iterations was reached.
    IterationLimit,
}

/// Right-hand sides that were given up, with reason and iteration, in the caller's order.
#[derive(Debug)]
pub(crate) struct RhsFailures(Vec<Option<(RhsFailure, usize)>>);

impl RhsFailures {
    /// Creates an empty record for `nrhs` right-hand sides.
    pub fn new(nrhs: usize) -> Self {
        Self(vec![None; nrhs])
    }

    /// Records that right-hand side `rhs` was given up.
    pub fn record(&mut self, rhs: usize, failure: RhsFailure, iteration: usize) {
        self.0[rhs] = Some((failure, iteration));
    }

    /// Records the first of `values` that is not finite as a failure of its right-hand side. Returns whether one of
    /// them is not finite.
    pub fn record_not_finite(&mut self, values: &[f64], iteration: usize) -> bool {
        let first = values.iter().position(|v| !v.is_finite());
        first.into_iter().for_each(|rhs| self.record(rhs, RhsFailure::NotANumber, iteration));
        first.is_some()
    }

    /// Returns whether right-hand side `rhs` was given up.
    pub fn contains(&self, rhs: usize) -> bool {
        self.0[rhs].is_some()
    }

    /// Returns whether any right-hand side was given up.
    pub fn any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Returns the indices of the right-hand sides that were given up.
    pub fn list(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|&rhs| self.contains(rhs)).collect()
    }

    /// Writes the right-hand sides that were given up, with their reasons, to a report.
    pub fn report(&self, info: &mut Info) {
        info.failed = self.list();
        let one = |(rhs, failure): (usize, &Option<(RhsFailure, usize)>)| {
            failure.map(|(why, iteration)| GivenUp { rhs, why, iteration })
        };
        info.given_up = self.0.iter().enumerate().filter_map(one).collect();
    }

    /// Returns the error of the first right-hand side that was given up, and adds all that were given up to the report
    /// `info`.
    pub fn error<E: std::error::Error>(&self, mut info: Box<Info>) -> SolveError<E> {
        self.report(&mut info);
        match info.given_up.first().copied() {
            None => self.stopped(StopReason::IterationLimit, info),
            Some(first) => SolveError::about(first, info),
        }
    }

    /// Returns the error of a solve that ended for the reason `stop`. If it stagnated, `self` must already contain the
    /// failed right-hand sides.
    pub fn stopped<E: std::error::Error>(&self, stop: StopReason, mut info: Box<Info>) -> SolveError<E> {
        self.report(&mut info);
        match stop {
            StopReason::Cancelled => SolveError::Cancelled { iteration: info.iterations, info },
            StopReason::IterationLimit => {
                SolveError::NoConvergence { iterations: info.iterations, residual: info.worst_residual(), info }
            }
            StopReason::Stagnation => self.error(info),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn rule(params: SolverParams) -> StoppingRule {
        StoppingRule::new::<Infallible>(&params, 0).unwrap()
    }

    #[test]
    fn stalls_in_a_row_are_stagnation_and_progress_forgives_them() {
        let rule = rule(SolverParams { max_stalls: 2, ..Default::default() });
        let mut progress = ConvergenceHistory::new(1.0);
        let mut after = |residual: f64| rule.true_residual(&mut progress, residual, false, true);
        assert!(after(0.95).is_none());
        // Below nine tenths of the best so far.
        assert!(after(0.8).is_none());
        assert!(after(0.8).is_none());
        assert!(matches!(after(f64::NAN), Some(RhsFailure::Stagnation)));
    }

    #[test]
    fn wrong_convergence_of_the_recurrence_is_stagnation_after_a_few_times() {
        let rule = rule(SolverParams { max_stalls: 100, ..Default::default() });
        let mut progress = ConvergenceHistory::new(1.0);
        for times in 1..=FALSE_CONVERGENCES {
            progress.false_convergence(1.0, true);
            assert_eq!(progress.repeats_false_convergence(), times > 1);
            let failure = rule.true_residual(&mut progress, 1.0, false, false);
            assert_eq!(failure.is_some(), times == FALSE_CONVERGENCES);
        }
    }

    #[test]
    fn windows_count_from_the_last_progress() {
        let windowed = rule(SolverParams { stagnation_window: Some(10), ..Default::default() });
        let mut progress = ConvergenceHistory::new(1.0);
        progress.recurrence_residual(0.5, 7);
        progress.recurrence_residual(0.46, 12);
        assert!(!windowed.stagnated(&progress, 17) && windowed.stagnated(&progress, 18));
        // Without a window in its parameters, a solve has that of its method.
        let of_method = |window| StoppingRule::new::<Infallible>(&SolverParams::default(), window).unwrap();
        assert!(!of_method(0).stagnated(&progress, 1_000_000) && of_method(500).stagnated(&progress, 508));
    }

    #[test]
    fn near_rounding_nobody_waits_for_ever() {
        let rule = rule(SolverParams::default());
        let mut progress = ConvergenceHistory::new(1.0).relative_to(1.0);
        progress.recurrence_residual(1e-15, 800);
        assert!(!rule.stagnated(&progress, 1_000_000), "far above rounding");
        assert!(rule.true_residual(&mut progress, 2e-15, false, false).is_none());
        assert!(!rule.stagnated(&progress, 1600) && rule.stagnated(&progress, 1601));
        // After few iterations at least the minimum number more.
        let mut quick = ConvergenceHistory::new(1e-15).relative_to(1.0);
        quick.recurrence_residual(1e-16, 20);
        assert!(!rule.stagnated(&quick, 520) && rule.stagnated(&quick, 521));
    }

    #[test]
    fn patience_grows_with_the_iterations_of_progress() {
        let patient = rule(SolverParams { patience: Some(Patience { least: 10, share: 0.5 }), ..Default::default() });
        let mut progress = ConvergenceHistory::new(1.0);
        progress.recurrence_residual(0.5, 8);
        assert!(!patient.stagnated(&progress, 18) && patient.stagnated(&progress, 19));
        progress.recurrence_residual(0.1, 100);
        assert!(!patient.stagnated(&progress, 150) && patient.stagnated(&progress, 151));
        // The window still is a limit.
        let both = rule(SolverParams {
            patience: Some(Patience { least: 10, share: 0.5 }),
            stagnation_window: Some(30),
            ..Default::default()
        });
        assert!(!both.stagnated(&progress, 130) && both.stagnated(&progress, 131));
    }

    #[test]
    fn breakdowns_count_until_there_is_progress() {
        let rule = rule(SolverParams { max_breakdowns: 2, ..Default::default() });
        let mut progress = ConvergenceHistory::new(1.0);
        let mut after = |residual: f64| {
            let none = rule.true_residual(&mut progress, residual, false, false);
            assert!(none.is_none());
            rule.breakdown(&mut progress, BreakdownKind::Rho)
        };
        assert!(after(1.0).is_none() && after(0.5).is_none() && after(0.5).is_none());
        assert!(matches!(after(0.5), Some(RhsFailure::Breakdown(BreakdownKind::Rho))));
    }

    #[test]
    fn the_first_reason_and_the_first_right_hand_side_are_reported() {
        let rule = rule(SolverParams { max_iterations: 3, ..Default::default() });
        assert_eq!(rule.stop(true, true, true), Some(StopReason::Cancelled));
        assert_eq!(rule.stop(false, true, true), Some(StopReason::Stagnation));
        assert_eq!(rule.stop(false, false, rule.exhausted(3)), Some(StopReason::IterationLimit));
        assert_eq!(rule.stop(false, false, rule.exhausted(2)), None);
        let mut failures = RhsFailures::new(4);
        failures.record(3, RhsFailure::Stagnation, 5);
        assert!(failures.record_not_finite(&[1.0, f64::INFINITY, f64::NAN, 1.0], 6));
        assert_eq!(failures.list(), [1, 3]);
        let error = failures.error::<Infallible>(Box::default());
        assert!(matches!(error, SolveError::NotANumber { rhs: 1, iteration: 6, .. }), "{error}");
    }
}
