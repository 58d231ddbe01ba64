//! State of a solve with reliable updates.

use crate::compact::Compaction;
use crate::operator::System;
use crate::stopping::{ConvergenceHistory, StoppingRule};
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Memory of a solve with reliable updates: precise vectors, x̂, and scalars of right-hand sides. The scalars belong to the
/// current slots of the batch.
pub(crate) struct ReliableState<P: VectorSpace, S: VectorSpace> {
    /// Number of right-hand sides for which the vectors have memory.
    pub(super) full: usize,
    /// Residual b − A x at the last update.
    pub(super) residual: P::Vector,
    /// Vectors x_j with the smallest true residual so far; undefined for each j whose current x_j is the best.
    pub(super) best_x: P::Vector,
    pub(super) x_is_best: Vec<bool>,
    /// Correction x̂: the sum of the steps since the last update.
    pub correction: S::Vector,
    /// Result of the last reduction, usually ‖r_j‖² of the recurrence.
    pub norm2: Vec<f64>,
    /// Whether each right-hand side is still active.
    pub active: Vec<bool>,
    /// Whether each right-hand side has to discard its directions at the next update, or did so at the last one.
    pub restart: Vec<bool>,
    /// Whether each right-hand side takes no steps until the next update.
    pub waiting: Vec<bool>,
    /// Right-hand sides whose recurrence was far below the true residual at the last update.
    pub(super) inaccurate: Vec<bool>,
    /// Right-hand sides that left the range of the sloppy format since the last update.
    pub(super) overflowed: Vec<bool>,
    /// Fraction of the target norm to which the residuals of the sloppy format are brought; smaller after each overflow.
    pub(super) headroom: Vec<f64>,
    /// Right-hand sides whose x_j has to return to the best one.
    pub(super) revert: Vec<bool>,
    /// Norms to which tolerances refer; `target` is the residual at which a right-hand side is finished.
    pub(super) reference: Vec<f64>,
    pub(super) target: Vec<f64>,
    /// ‖r_j‖ of the recurrence; `maximum` is its largest value since the last update.
    pub(super) recurrence: Vec<f64>,
    pub(super) maximum: Vec<f64>,
    /// ‖b_j − A x_j‖ at the last update.
    pub(super) true_residual: Vec<f64>,
    /// Residuals measured by the [check](super::ResidualCheck).
    pub(super) checked: Vec<f64>,
    pub(super) progress: Vec<ConvergenceHistory>,
    /// Scale of the sloppy residual and of x̂ relative to the quantities that they represent.
    pub(super) scale: Vec<f64>,
    pub(super) unscale: Vec<f64>,
    /// Ratio of `scale` to its value before the last update.
    pub(super) rescaled: Vec<f64>,
    pub(super) zeros: Vec<Complex64>,
    pub(super) mask: Vec<Complex64>,
    pub(super) unmask: Vec<Complex64>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> ReliableState<P, S> {
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let n = system.precise().nrhs();
        Ok(Self {
            full: n,
            residual: system.precise().allocate()?,
            best_x: system.precise().allocate()?,
            x_is_best: vec![true; n],
            correction: system.sloppy().allocate()?,
            norm2: vec![0.0; n],
            active: vec![true; n],
            restart: vec![false; n],
            waiting: vec![false; n],
            inaccurate: vec![false; n],
            overflowed: vec![false; n],
            headroom: vec![1.0; n],
            revert: vec![false; n],
            reference: vec![0.0; n],
            target: vec![0.0; n],
            recurrence: vec![0.0; n],
            maximum: vec![0.0; n],
            true_residual: vec![0.0; n],
            checked: vec![0.0; n],
            progress: vec![ConvergenceHistory::new(0.0); n],
            scale: vec![1.0; n],
            unscale: vec![1.0; n],
            rescaled: vec![1.0; n],
            zeros: vec![Complex64::ZERO; n],
            mask: vec![Complex64::ZERO; n],
            unmask: vec![Complex64::ZERO; n],
        })
    }
}

impl<P: VectorSpace, S: VectorSpace> ReliableState<P, S> {
    /// Returns the number of right-hand sides for which the vectors have memory.
    pub fn full(&self) -> usize {
        self.full
    }

    fn flags(&mut self) -> [&mut Vec<bool>; 7] {
        let Self { x_is_best, active, restart, waiting, inaccurate, overflowed, revert, .. } = self;
        [x_is_best, active, restart, waiting, inaccurate, overflowed, revert]
    }

    #[rustfmt::skip]
    fn reals(&mut self) -> [&mut Vec<f64>; 11] {
        let Self {
            norm2, reference, target, recurrence, maximum, true_residual, checked, scale, unscale, rescaled, headroom, ..
        } = self;
        [norm2, reference, target, recurrence, maximum, true_residual, checked, scale, unscale, rescaled, headroom]
    }

    fn coefficients(&mut self) -> [&mut Vec<Complex64>; 3] {
        [&mut self.zeros, &mut self.mask, &mut self.unmask]
    }

    /// Applies a compaction to all scalars.
    pub(super) fn rearrange(&mut self, compaction: &Compaction) {
        self.flags().into_iter().for_each(|v| compaction.scalars(v));
        self.reals().into_iter().for_each(|v| compaction.scalars(v));
        self.coefficients().into_iter().for_each(|v| compaction.scalars(v));
        compaction.scalars(&mut self.progress);
    }

    /// Restores the size of all arrays for the full number of right-hand sides. Their values are undefined.
    pub(super) fn widen(&mut self) {
        let n = self.full;
        self.flags().into_iter().for_each(|v| v.resize(n, false));
        self.reals().into_iter().for_each(|v| v.resize(n, 0.0));
        self.coefficients().into_iter().for_each(|v| v.resize(n, Complex64::ZERO));
        self.progress.resize(n, ConvergenceHistory::new(0.0));
    }

    /// Returns the residual of the recurrence at or below which right-hand side j seems to have converged.
    pub(super) fn recurrence_target(&self, j: usize) -> f64 {
        StoppingRule::recurrence_target(self.target[j], self.reference[j])
    }

    /// Whether the true residual of right-hand side j at the last update agreed with that of the recurrence.
    pub(super) fn agrees(&self, j: usize) -> bool {
        self.recurrence[j] >= 0.5 * self.true_residual[j]
    }

    /// Whether x_j is the best one so far; false if the residual is NaN.
    pub(super) fn has_best(&self, j: usize) -> bool {
        self.x_is_best[j] || self.true_residual[j] <= self.progress[j].best
    }

    /// Returns whether right-hand side j takes part in the next iteration.
    pub fn moves(&self, j: usize) -> bool {
        self.active[j] && !self.waiting[j]
    }

    /// Sets `mask`_j to 1 if `choose` returns true and to 0 otherwise, and `unmask`_j to 1 − `mask`_j.
    pub(super) fn set_masks(&mut self, choose: impl Fn(&Self, usize) -> bool) {
        for j in 0..self.active.len() {
            self.mask[j] = if choose(self, j) { Complex64::ONE } else { Complex64::ZERO };
            self.unmask[j] = Complex64::ONE - self.mask[j];
        }
    }
}
