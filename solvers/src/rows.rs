//! Iterations that a device runs one after another without waiting for the host.
//!
//! An iteration of CG or BiCGstab needs one or two sums before it can go on. On a small lattice the host spends more time on
//! waiting for them than the device on everything else. Spaces that [keep sums](KeptSums) on the device compute α, β and ω
//! there, for several iterations in a row; the host then gets all sums at once, and treats each iteration as if it had waited
//! for it. An update that becomes due in between is made at the end of the row. Rows are short enough for that to be rare: at
//! most half of the iterations that the solve needs to the next update at its present rate.

use crate::operator::System;
use crate::reliable::ReliableSolve;
use crate::traits::{CgStep, Overlap};
use num_complex::Complex64;

/// Largest number of iterations in a row.
const MOST_IN_A_ROW: usize = 8;
/// Number of the last iterations from which the present rate is determined.
const RATE_OVER: usize = 16;

/// Number of places for the sums of a space: two for each iteration in a row.
pub const SUM_PLACES: usize = 2 * MOST_IN_A_ROW;
/// Number of sums in a place for each right-hand side. Only the first ones are used if there are fewer sums.
pub const SUMS_IN_PLACE: usize = 8;

/// Scalars ρ_j at the start of an iteration: ‖r_j‖² in CG, (r̃_j, r_j) in BiCGstab.
#[derive(Clone, Copy, Debug)]
pub struct KeptRho<'a, T> {
    /// Scalars that the host knows; 0 for a right-hand side that takes no step.
    pub given: &'a [T],
    /// Place of the sums of the previous iteration, from which the device computes the others. `None` if all are `given`.
    pub place: Option<usize>,
}

impl<'a, T> KeptRho<'a, T> {
    /// Returns the scalars of iteration number `k` of a row. The sums from which ρ of the next iteration follows are in the
    /// second place of each.
    pub(crate) fn of_iteration(given: &'a [T], k: usize) -> Self {
        KeptRho { given, place: k.checked_sub(1).map(|before| places(before)[1]) }
    }
}

/// Returns the places for the sums of iteration number `k` of a row.
pub(crate) fn places(k: usize) -> [usize; 2] {
    [2 * k, 2 * k + 1]
}

/// Linear algebra with coefficients that follow from sums on the device. There are [`SUM_PLACES`] places for sums, numbered
/// from 0, with [`SUMS_IN_PLACE`] numbers for each right-hand side.
///
/// Operators write the sums of a product to a place by [`LinearOperator::apply_dot_kept`](crate::LinearOperator::apply_dot_kept)
/// and [`LinearOperator::apply_dots_kept`](crate::LinearOperator::apply_dots_kept): \[Re (w, y), Im (w, y), ‖y‖²\] of y = A x,
/// or the sums of [`Dots`](crate::Dots) in the order Re (x, y), Im (x, y), Re (w, x), Im (w, x), Re (w, y), Im (w, y), ‖x‖²,
/// ‖y‖².
pub trait KeptSums {
    /// Type of a block of N vectors.
    type Vector;
    /// Error of the backend.
    type Error;

    /// Computes t_j ← r_j − α_j t_j with α = ρ/κ, and writes \[‖t_j‖², κ_j\] of the new t to place `to`. The curvature κ is the
    /// first number in place `curvature`, or ‖y‖² there if `squared` is true. If α_j is not positive and finite, t_j ← r_j.
    #[allow(clippy::too_many_arguments)] // one kernel, all of whose operands are needed
    fn cg_residual_kept(
        &self,
        r: &Self::Vector,
        t: &mut Self::Vector,
        rho: KeptRho<'_, f64>,
        curvature: usize,
        squared: bool,
        to: usize,
    ) -> Result<(), Self::Error>;
    /// Takes the second half of a CG step on M†M + σ, after t = M†y was computed with y = M p: t_j ← r_j − α_j (t_j + σ p_j) with α =
    /// ρ/κ. The curvature κ is ‖y‖² + σ ‖p‖²; `place` has the eight sums over x = p, y and w = p, or three of y if σ = 0. Waits for
    /// `curvature`_j = κ_j and `norm2`_j = ‖t_j‖². The functions in `overlap` run meanwhile.
    #[allow(clippy::too_many_arguments)] // one kernel, all of whose operands are needed
    fn cg_step_kept(
        &self,
        step: &CgStep<'_, Self::Vector>,
        t: &mut Self::Vector,
        place: usize,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, Self::Error>; 2],
    ) -> Result<(), Self::Error>;
    /// Computes x_j ← x_j + α_j p_j and p_j ← r_j + β_j p_j, with α = ρ/κ and β = ‖r‖²/ρ from the sums that
    /// [`cg_residual_kept`](KeptSums::cg_residual_kept) wrote to place `next`. If α_j is not positive and finite, x_j
    /// does not change; if β_j is not finite, p_j ← r_j.
    fn cg_update_kept(
        &self,
        r: &Self::Vector,
        x: &mut Self::Vector,
        p: &mut Self::Vector,
        rho: KeptRho<'_, f64>,
        next: usize,
    ) -> Result<(), Self::Error>;
    /// Computes r_j ← r_j − α_j v_j, with α = ρ/(r̃, v) and (r̃, v) from place `shadow_v`. If α_j is not finite, r_j does not
    /// change.
    fn bicgstab_half_kept(
        &self,
        v: &Self::Vector,
        r: &mut Self::Vector,
        rho: KeptRho<'_, Complex64>,
        shadow_v: usize,
    ) -> Result<(), Self::Error>;
    /// Makes the updates of [`bicgstab_step`](crate::VectorSpace::bicgstab_step) with α = ρ/(r̃, v), ω = (t, s)/‖t‖² and β =
    /// (ρ'/ρ)(α/ω), from the sums in the two places: (r̃, v), and the eight sums over s, t and r̃. Coefficients that are not
    /// finite are 0. If a sum over s, t or r̃ is not finite, nothing changes.
    #[allow(clippy::too_many_arguments)] // one kernel, all of whose operands are needed
    fn bicgstab_step_kept(
        &self,
        v: &Self::Vector,
        t: &Self::Vector,
        x: &mut Self::Vector,
        r: &mut Self::Vector,
        p: &mut Self::Vector,
        rho: KeptRho<'_, Complex64>,
        places: [usize; 2],
    ) -> Result<(), Self::Error>;
    /// Waits for all work, and returns the numbers in the first `count` places: number k of right-hand side j in place i has the
    /// index (i N + j) · [`SUMS_IN_PLACE`] + k.
    fn kept_sums(&self, count: usize) -> Result<Vec<f64>, Self::Error>;
}

/// Sums of a row of iterations.
pub(crate) struct RowOfSums {
    values: Vec<f64>,
    nrhs: usize,
}

impl RowOfSums {
    pub fn new(values: Vec<f64>, nrhs: usize) -> Self {
        Self { values, nrhs }
    }
    /// Returns the numbers of right-hand side j in a place.
    pub fn at(&self, place: usize, j: usize) -> &[f64] {
        &self.values[(place * self.nrhs + j) * SUMS_IN_PLACE..][..SUMS_IN_PLACE]
    }
}

impl<Y: System> ReliableSolve<'_, Y> {
    /// Returns the number of iterations to run before the host looks at residuals again, between 1 and [`MOST_IN_A_ROW`]: half
    /// of those that the fastest right-hand side needs to its next update at its present rate.
    pub fn iterations_in_a_row(&self) -> usize {
        let moving = (0..self.state.active.len()).filter(|&j| self.state.moves(j));
        let distance = moving.map(|j| self.iterations_to_update(j)).fold(f64::INFINITY, f64::min);
        let row = (0.5 * distance).clamp(1.0, MOST_IN_A_ROW as f64) as usize;
        row.min(self.iterations_left()).max(1)
    }

    /// Returns the number of iterations to the next update of right-hand side j, estimated from its residuals. It is 0 if there
    /// is no estimate yet, and infinite if the residual grows.
    fn iterations_to_update(&self, j: usize) -> f64 {
        let history = self.history(j);
        let [.., now] = history else { return 0.0 };
        let before = history.len().saturating_sub(RATE_OVER + 1);
        let steps = history.len() - 1 - before;
        if steps == 0 {
            return 0.0;
        }
        let rate = (history[before] / now).ln() / steps as f64;
        let distance = self.distance_to_update(j).ln();
        if rate.is_nan() || distance.is_nan() {
            0.0
        } else if rate <= 0.0 {
            f64::INFINITY
        } else {
            distance / rate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_each_other() {
        let all: Vec<usize> = (0..MOST_IN_A_ROW).flat_map(places).collect();
        assert_eq!(all, (0..SUM_PLACES).collect::<Vec<_>>());
        assert_eq!(KeptRho::of_iteration(&[1.0], 0).place, None);
        assert_eq!(KeptRho::of_iteration(&[1.0], 3).place, Some(5));
    }

    #[test]
    fn sums_are_found_by_place_and_right_hand_side() {
        let values: Vec<f64> = (0..2 * 3 * SUMS_IN_PLACE).map(|k| k as f64).collect();
        let sums = RowOfSums::new(values, 3);
        assert_eq!((sums.at(0, 0)[0], sums.at(0, 2)[7], sums.at(1, 0)[0], sums.at(1, 2)[1]), (0.0, 23.0, 24.0, 41.0));
    }
}
