//! A cycle of [`gcr`](crate::gcr): its directions, their images, and the scalars that belong to them.

use crate::compact::Compaction;
use crate::error::SolveError;
use crate::failure::BreakdownKind;
use crate::operator::{Sloppy, System};
use crate::preconditioner::Preconditioner;
use crate::reliable::ReliableSolve;
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Method that makes the image of a new direction orthogonal to the images before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orthogonalisation {
    /// Classical Gram-Schmidt: one reduction computes all products with the original image.
    #[default]
    Classical,
    /// Classical Gram-Schmidt, done twice: one more reduction than `Classical`, and images orthogonal to rounding.
    ClassicalTwice,
    /// Modified Gram-Schmidt, as in Algorithm 1: one reduction for each vector, one vector after the other.
    Modified,
}

/// Fraction of the last measured ‖r‖² below which ‖r‖² is measured again instead of computed as a difference. Sums are
/// accurate to about 1e-8 if the numbers of a site are added in single precision.
const CANCELLED: f64 = 1e-4;
/// Relative decrease of the residual (as a vector) below which a step counts as stalled; the next direction is then made from
/// the image.
const STALLED: f64 = 1e-3;

/// Scalars of a cycle, and scratch memory. N = `n`; entry i N + j belongs to direction i and right-hand side j.
pub(crate) struct Cycle {
    n: usize,
    pub k_max: usize,
    /// β_{i,k}, with `k_max` N entries for each k, ordered by i.
    beta: Vec<Complex64>,
    /// α_k.
    alpha: Vec<Complex64>,
    /// γ_k².
    gamma2: Vec<f64>,
    /// χ_i in the update; −β_{i,k} during orthogonalisation.
    chi: Vec<Complex64>,
    dots: Vec<Complex64>,
    /// ‖M̂ p̂_k‖².
    image2: Vec<f64>,
    /// ‖r̂_k‖².
    known: Vec<f64>,
    /// Last ‖r̂‖² that was measured, and not computed as a difference.
    measured: Vec<f64>,
    norms: Vec<f64>,
    left: Vec<Complex64>,
    right: Vec<Complex64>,
    stalled: Vec<bool>,
    broken: Vec<bool>,
    /// Number of steps of each right-hand side in this cycle.
    steps: Vec<usize>,
    /// Number of directions after which a right-hand side requests its restart: k_max, or less after inaccurate cycles.
    length: Vec<usize>,
}

impl Cycle {
    /// Allocates the scalars of a cycle for `n` right-hand sides and up to `k_max` directions.
    pub fn new(n: usize, k_max: usize) -> Self {
        let complex = |length: usize| vec![Complex64::ZERO; length];
        let mut cycle = Self {
            n,
            k_max,
            beta: complex(k_max * k_max * n),
            alpha: complex(k_max * n),
            gamma2: vec![0.0; k_max * n],
            chi: complex(k_max * n),
            dots: Vec::new(),
            image2: Vec::new(),
            known: Vec::new(),
            measured: Vec::new(),
            norms: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
            stalled: Vec::new(),
            broken: Vec::new(),
            steps: Vec::new(),
            length: Vec::new(),
        };
        cycle.begin(n, k_max);
        cycle
    }

    /// Prepares a new solve of `n` right-hand sides, the same number as in [`new`](Self::new), with up to `length`
    /// directions.
    pub fn begin(&mut self, n: usize, length: usize) {
        self.n = n;
        let Self { dots, left, right, image2, known, measured, norms, stalled, broken, .. } = self;
        [dots, left, right].into_iter().for_each(|v| *v = vec![Complex64::ZERO; n]);
        [image2, known, measured, norms].into_iter().for_each(|v| *v = vec![0.0; n]);
        [stalled, broken].into_iter().for_each(|v| *v = vec![false; n]);
        (self.steps, self.length) = (vec![0; n], vec![length; n]);
    }

    /// Applies a compaction between two cycles, when no coefficients of directions need to be kept.
    pub fn rearrange(&mut self, compaction: &Compaction) {
        self.n = compaction.width();
        let Self { dots, left, right, image2, known, measured, norms, stalled, broken, .. } = self;
        [dots, left, right].into_iter().for_each(|v| compaction.scalars(v));
        [image2, known, measured, norms].into_iter().for_each(|v| compaction.scalars(v));
        [stalled, broken].into_iter().for_each(|v| compaction.scalars(v));
        [&mut self.steps, &mut self.length].into_iter().for_each(|v| compaction.scalars(v));
    }

    /// Returns the index of the first β_{·,k}.
    fn row(&self, k: usize) -> usize {
        k * self.k_max * self.n
    }

    /// Computes x̂ ← x̂ + Σ χ_l p̂_l over the first `k` directions, where χ_l + Σ_{i>l} β_{l,i} χ_i = α_l is solved from the
    /// last l to the first.
    pub fn update<S: VectorSpace>(
        &mut self,
        space: &S,
        k: usize,
        p: &[S::Vector],
        correction: &mut S::Vector,
    ) -> Result<(), S::Error> {
        for l in (0..k).rev() {
            for j in 0..self.n {
                let known: Complex64 =
                    (l + 1..k).map(|i| self.beta[self.row(i) + l * self.n + j] * self.chi[i * self.n + j]).sum();
                self.chi[l * self.n + j] = self.alpha[l * self.n + j] - known;
            }
        }
        if k == 0 { Ok(()) } else { space.multi_axpy(&self.chi[..k * self.n], &p[..k], correction) }
    }

    /// Starts a cycle with the residual after a restart.
    pub fn begin_cycle<Y: System>(&mut self, run: &ReliableSolve<'_, Y>) {
        for j in 0..self.n {
            self.known[j] = run.sloppy_norm2(j);
            (self.measured[j], self.steps[j]) = (self.known[j], 0);
            (self.stalled[j], self.broken[j]) = (false, false);
        }
    }

    /// Computes γ_k² = ‖ẑ_k‖² and α_k = (ẑ_k, r̂_k)/γ_k², and writes −α_k to `left`. If orthogonalisation leaves at
    /// most the fraction `breakdown` of the image, the right-hand side waits for its restart.
    pub fn find_alpha<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        k: usize,
        breakdown: f64,
    ) -> Result<(), SolveError<Y::Error>> {
        for j in 0..self.n {
            let at = k * self.n + j;
            (self.alpha[at], self.gamma2[at], self.left[j]) = (Complex64::ZERO, run.state.norm2[j], Complex64::ZERO);
            let finite = self.dots[j].is_finite() && self.gamma2[at].is_finite() && self.image2[j].is_finite();
            if !(run.state.moves(j) && run.check_finite(j, finite)?) {
                continue;
            }
            // With "≤", an image that is zero also counts as a breakdown.
            if self.gamma2[at] <= breakdown.powi(2) * self.image2[j] {
                self.broken[j] = true;
                run.state.waiting[j] = true;
                // A right-hand side that made no step in this cycle restarts, because it has no recurrence to compare
                // with the true residual.
                run.state.restart[j] = self.steps[j] == 0;
                continue;
            }
            let alpha = self.dots[j] / self.gamma2[at];
            (self.alpha[at], self.left[j], self.steps[j]) = (alpha, -alpha, k + 1);
        }
        Ok(())
    }

    /// Sets p̂_k and ẑ_k to 0 for right-hand sides that left the range of the format in this cycle. The coefficients of
    /// these vectors in sums and in r̂ are zero, but zero times infinity is NaN.
    pub fn clear_overflowed<Y: System>(
        &self,
        run: &ReliableSolve<'_, Y>,
        p_k: &mut Sloppy<Y>,
        z_k: &mut Sloppy<Y>,
    ) -> Result<(), Y::Error> {
        if !(0..self.n).any(|j| run.overflowed(j)) {
            return Ok(());
        }
        let stays = |j| if run.overflowed(j) { Complex64::ZERO } else { Complex64::ONE };
        let (zeros, mask): (Vec<_>, Vec<_>) = (0..self.n).map(|j| (Complex64::ZERO, stays(j))).unzip();
        // x̂ is zero within a cycle; it supplies finite numbers for the coefficient 0.
        [p_k, z_k].into_iter().try_for_each(|x| run.system().sloppy().axpby(&zeros, &run.state.correction, &mask, x))
    }

    /// Returns whether the cycle ends after `k` directions, because no right-hand side moves any more.
    pub fn cycle_ends<Y: System>(&self, run: &mut ReliableSolve<'_, Y>, k: usize) -> bool {
        (0..self.n).for_each(|j| run.state.waiting[j] |= k >= self.length[j]);
        !(0..self.n).any(|j| run.state.moves(j))
    }

    /// Adapts the number of directions of each right-hand side after an update. After an inaccurate cycle, it becomes
    /// half of the number of steps; otherwise, it grows by one. Also counts breakdowns.
    pub fn adapt_length<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        k_max: usize,
    ) -> Result<(), SolveError<Y::Error>> {
        for j in 0..self.n {
            let length = if run.inaccurate(j) { self.steps[j] / 2 } else { self.length[j] + 1 };
            self.length[j] = length.clamp(1, k_max);
            if self.broken[j] && run.state.active[j] {
                run.breakdown(j, BreakdownKind::Gamma)?;
            } else {
                run.forget_breakdowns(j);
            }
            run.state.restart[j] = false;
        }
        Ok(())
    }

    /// Computes the next direction p̂_k = K r̂_k, or p̂_k = K ẑ_{k−1} if the last step hardly changed r̂.
    pub fn direction<Y: System, K: Preconditioner<Y::Sloppy> + ?Sized>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        preconditioner: &K,
        k: usize,
        r: &Sloppy<Y>,
        p: &mut [Sloppy<Y>],
        z: &[Sloppy<Y>],
    ) -> Result<(), Y::Error> {
        let space = run.system().sloppy();
        let mut replaced = false;
        for j in 0..self.n {
            let replace = self.stalled[j] && run.state.moves(j);
            replaced |= replace;
            let norm2;
            (self.left[j], self.right[j], norm2) = if replace {
                (Complex64::ONE, Complex64::ZERO, self.gamma2[(k - 1) * self.n + j])
            } else {
                (Complex64::ZERO, Complex64::ONE, self.known[j])
            };
            self.norms[j] = norm2.sqrt();
        }
        let work = if replaced {
            // x̂ is zero within a cycle and can serve as scratch memory.
            space.copy(r, &mut run.state.correction)?;
            space.axpby(&self.left, &z[k - 1], &self.right, &mut run.state.correction)?;
            let work = preconditioner.apply(space, &run.state.correction, &self.norms, &mut p[k])?;
            space.zero(&mut run.state.correction)?;
            work
        } else {
            preconditioner.apply(space, r, &self.norms, &mut p[k])?
        };
        run.preconditioned(work);
        Ok(())
    }

    /// Computes ẑ_k = M̂ p̂_k, orthogonal to the images in `before`. Writes (ẑ_k, r̂) to `dots`, ‖ẑ_k‖² to `state.norm2` and
    /// ‖M̂ p̂_k‖² to `image2`.
    pub fn image<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        how: Orthogonalisation,
        before: &[Sloppy<Y>],
        p_k: &Sloppy<Y>,
        z_k: &mut Sloppy<Y>,
        r: &Sloppy<Y>,
    ) -> Result<(), Y::Error> {
        let (system, n, k) = (run.system(), self.n, before.len());
        let space = system.sloppy();
        run.applied(1);
        if k == 0 {
            system.apply_dot_sloppy(p_k, z_k, r, &mut self.dots, &mut run.state.norm2)?;
            self.dots.iter_mut().for_each(|dot| *dot = dot.conj());
            self.image2.copy_from_slice(&run.state.norm2);
            run.info.reductions += 1;
            return Ok(());
        }
        system.apply_sloppy(p_k, z_k)?;
        let row = self.row(k);
        self.beta[row..row + k * n].fill(Complex64::ZERO);
        let (passes, together) = match how {
            Orthogonalisation::Classical => (1, k),
            Orthogonalisation::ClassicalTwice => (2, k),
            Orthogonalisation::Modified => (1, 1),
        };
        for pass in 0..passes {
            for first in (0..k).step_by(together) {
                let (xs, range) = (&before[first..first + together], first * n..(first + together) * n);
                space.multi_dot(xs, z_k, &mut self.chi[range.clone()], &mut run.state.norm2)?;
                run.info.reductions += 1;
                if pass == 0 && first == 0 {
                    self.image2.copy_from_slice(&run.state.norm2);
                }
                for at in range.clone() {
                    // Right-hand sides that do not move have no valid γ.
                    let beta = if run.state.moves(at % n) { self.chi[at] / self.gamma2[at] } else { Complex64::ZERO };
                    self.beta[row + at] += beta;
                    self.chi[at] = -beta;
                }
                if pass + 1 < passes || first + together < k {
                    space.multi_axpy(&self.chi[range], xs, z_k)?;
                } else {
                    let (dots, norm2) = (&mut self.dots, &mut run.state.norm2);
                    space.multi_axpy_dot_norm2(&self.chi[range], xs, z_k, r, dots, norm2)?;
                    run.info.reductions += 1;
                }
            }
        }
        Ok(())
    }

    /// Computes r̂ ← r̂ − α_k ẑ_k with −α_k from `left`, and writes the new ‖r̂‖² to `state.norm2`.
    pub fn residual<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        k: usize,
        z_k: &Sloppy<Y>,
        r: &mut Sloppy<Y>,
    ) -> Result<(), Y::Error> {
        let space = run.system().sloppy();
        let mut measure = false;
        for j in 0..self.n {
            run.state.norm2[j] = self.known[j];
            self.stalled[j] = false;
            if run.state.moves(j) && !run.overflowed(j) {
                // α minimises ‖r − α z‖, and therefore ‖r‖² = ‖r_new‖² + |α|²‖z‖², where |α|²‖z‖² = ᾱ (z, r).
                let moved = (self.alpha[k * self.n + j].conj() * self.dots[j]).re;
                run.state.norm2[j] -= moved;
                self.stalled[j] = moved <= STALLED.powi(2) * self.known[j];
                measure |= run.state.norm2[j] < CANCELLED * self.measured[j];
            }
        }
        if measure {
            space.axpy_norm2(&self.left, z_k, r, &mut run.state.norm2)?;
            self.measured.copy_from_slice(&run.state.norm2);
            run.info.reductions += 1;
        } else {
            space.axpy(&self.left, z_k, r)?;
        }
        self.known.copy_from_slice(&run.state.norm2);
        Ok(())
    }
}
