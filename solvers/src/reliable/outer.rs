//! The state of the outer part of a solve.

use super::ROUNDING;
use crate::compact::Plan;
use crate::operator::System;
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Vectors and per-right-hand-side scalars of the outer part of a solve. The scalars are those of the slots of the batch
/// as it is at the moment.
pub(crate) struct Outer<P: VectorSpace, S: VectorSpace> {
    /// Right-hand sides that the vectors have memory for.
    pub(super) full: usize,
    pub(super) residual: P::Vector,
    /// The x_j with the smallest true residual so far, where x_j itself is not it.
    pub(super) best_x: P::Vector,
    pub(super) x_is_best: Vec<bool>,
    /// x̂.
    pub correction: S::Vector,
    /// Results of the last reduction: ‖r_j‖² of the recurrence.
    pub norm2: Vec<f64>,
    /// The right-hand sides still worked on.
    pub active: Vec<bool>,
    /// Right-hand sides that have to forget their directions at the next update, or just had to.
    pub restart: Vec<bool>,
    /// Right-hand sides that do not move until the next update.
    pub waiting: Vec<bool>,
    pub(super) deceived: Vec<bool>,
    pub(super) reference: Vec<f64>,
    pub(super) target: Vec<f64>,
    pub(super) iterated: Vec<f64>,
    pub(super) maximum: Vec<f64>,
    pub(super) verified: Vec<f64>,
    pub(super) judged: Vec<f64>,
    pub(super) best: Vec<f64>,
    pub(super) progressed: Vec<bool>,
    pub(super) stalls: Vec<usize>,
    pub(super) false_claims: Vec<usize>,
    pub(super) lowest: Vec<f64>,
    pub(super) lowest_at: Vec<usize>,
    pub(super) relative: Vec<f64>,
    /// The sloppy residual and x̂ are `scale` times what they stand for.
    pub(super) scale: Vec<f64>,
    pub(super) unscale: Vec<f64>,
    /// `scale` over that before the last update.
    pub(super) rescaled: Vec<f64>,
    pub(super) zeros: Vec<Complex64>,
    pub(super) mask: Vec<Complex64>,
    pub(super) unmask: Vec<Complex64>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> Outer<P, S> {
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
            deceived: vec![false; n],
            reference: vec![0.0; n],
            target: vec![0.0; n],
            iterated: vec![0.0; n],
            maximum: vec![0.0; n],
            verified: vec![0.0; n],
            judged: vec![0.0; n],
            best: vec![0.0; n],
            progressed: vec![false; n],
            stalls: vec![0; n],
            false_claims: vec![0; n],
            lowest: vec![0.0; n],
            lowest_at: vec![0; n],
            relative: vec![0.0; n],
            scale: vec![1.0; n],
            unscale: vec![1.0; n],
            rescaled: vec![1.0; n],
            zeros: vec![Complex64::ZERO; n],
            mask: vec![Complex64::ZERO; n],
            unmask: vec![Complex64::ZERO; n],
        })
    }
}

impl<P: VectorSpace, S: VectorSpace> Outer<P, S> {
    /// Right-hand sides that it was made for.
    pub fn full(&self) -> usize {
        self.full
    }

    fn flags(&mut self) -> [&mut Vec<bool>; 6] {
        let Self { x_is_best, active, restart, waiting, deceived, progressed, .. } = self;
        [x_is_best, active, restart, waiting, deceived, progressed]
    }

    fn counts(&mut self) -> [&mut Vec<usize>; 3] {
        [&mut self.stalls, &mut self.false_claims, &mut self.lowest_at]
    }

    #[rustfmt::skip]
    fn reals(&mut self) -> [&mut Vec<f64>; 13] {
        let Self {
            norm2, reference, target, iterated, maximum, verified, judged, best, lowest, relative, scale, unscale,
            rescaled, ..
        } = self;
        [
            norm2, reference, target, iterated, maximum, verified, judged, best, lowest, relative, scale, unscale,
            rescaled,
        ]
    }

    fn coefficients(&mut self) -> [&mut Vec<Complex64>; 3] {
        [&mut self.zeros, &mut self.mask, &mut self.unmask]
    }

    /// Follows a plan.
    pub(super) fn rearrange(&mut self, plan: &Plan) {
        self.flags().into_iter().for_each(|v| plan.numbers(v));
        self.counts().into_iter().for_each(|v| plan.numbers(v));
        self.reals().into_iter().for_each(|v| plan.numbers(v));
        self.coefficients().into_iter().for_each(|v| plan.numbers(v));
    }

    /// Makes room for all right-hand sides again, with numbers that mean nothing.
    pub(super) fn widen(&mut self) {
        let n = self.full;
        self.flags().into_iter().for_each(|v| v.resize(n, false));
        self.counts().into_iter().for_each(|v| v.resize(n, 0));
        self.reals().into_iter().for_each(|v| v.resize(n, 0.0));
        self.coefficients().into_iter().for_each(|v| v.resize(n, Complex64::ZERO));
    }

    /// The residual of the recurrence at which it is taken at its word. A target below rounding, zero for instance,
    /// must not make the recurrence run on until it underflows.
    pub(super) fn level(&self, j: usize) -> f64 {
        self.target[j].max(ROUNDING * self.reference[j])
    }

    /// Whether the last update found about the residual that the recurrence had.
    pub(super) fn agrees(&self, j: usize) -> bool {
        self.iterated[j] >= 0.5 * self.verified[j]
    }

    /// Whether right-hand side j takes part in the next iteration.
    pub fn moves(&self, j: usize) -> bool {
        self.active[j] && !self.waiting[j]
    }
}

/// `mask`_j = 1 where `choose`, else 0; `unmask`_j = 1 − `mask`_j.
pub(super) fn set_masks<P: VectorSpace, S: VectorSpace>(
    o: &mut Outer<P, S>,
    choose: impl Fn(&Outer<P, S>, usize) -> bool,
) {
    for j in 0..o.active.len() {
        let chosen = choose(o, j);
        o.mask[j] = if chosen { Complex64::ONE } else { Complex64::ZERO };
        o.unmask[j] = Complex64::ONE - o.mask[j];
    }
}
