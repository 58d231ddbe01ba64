//! The scalar coefficients of [`InnerGcr`](super::InnerGcr).

use num_complex::Complex64;

/// Ratio of ‖q‖² to ‖w‖² below which ‖q‖² is measured instead of computed as a difference. Vectors in 16 bits are orthogonal
/// to about 10⁻³, so at this ratio the difference and the step α are accurate to ten per cent.
const DIFFERENCE: f64 = 1e-2;
/// Ratio of ‖ρ‖² to the last measured one below which ‖ρ‖² is measured instead of computed as a difference. Sums are accurate
/// to about 1e-8 if the numbers of a site are added in single precision.
const CANCELLED: f64 = 1e-4;
/// Fraction of an image at or below which the remaining part counts as zero.
const BREAKDOWN: f64 = 1e-14;

/// Coefficients of a solve. N = `n`; entry i N + j belongs to direction i and right-hand side j.
pub(super) struct Coefficients {
    n: usize,
    steps: usize,
    tol2: f64,
    /// β_{i,k}, with `steps` N entries for each k, ordered by i.
    beta: Vec<Complex64>,
    /// α_k.
    alpha: Vec<Complex64>,
    /// γ_k².
    gamma2: Vec<f64>,
    /// χ_l in the solution; −β_{i,k} during a step.
    chi: Vec<Complex64>,
    /// Inner products (q_i, w) for all previous directions i, followed by (ρ, w).
    pub dots: Vec<Complex64>,
    /// ‖w‖².
    pub norm2: Vec<f64>,
    /// Values of ‖q_k‖² or ‖ρ‖² that were measured and not computed as differences.
    pub measured: Vec<f64>,
    /// (q_k, ρ).
    q_rho: Vec<Complex64>,
    /// −α_k.
    pub minus_alpha: Vec<Complex64>,
    /// ‖ρ‖².
    rho2: Vec<f64>,
    /// Last ‖ρ‖² that was measured, and not computed as a difference.
    rho2_measured: Vec<f64>,
    /// ε² ‖r‖².
    goal2: Vec<f64>,
    norms: Vec<f64>,
    /// Right-hand sides that are neither finished nor broken down.
    active: Vec<bool>,
    /// Right-hand sides with scalars of this step that are not finite.
    pub unusable: Vec<bool>,
    /// Right-hand sides with a difference that lost digits and has to be measured.
    cancelled: Vec<bool>,
}

impl Coefficients {
    /// Allocates the coefficients for up to `n` right-hand sides and up to `steps` directions.
    pub fn new(n: usize, steps: usize) -> Self {
        let complex = |length: usize| vec![Complex64::ZERO; length];
        let (real, flags) = (|length: usize| vec![0.0; length], || vec![false; n]);
        Self {
            n,
            steps,
            tol2: 0.0,
            beta: complex(steps * steps * n),
            alpha: complex(steps * n),
            gamma2: real(steps * n),
            chi: complex(steps * n),
            // The first step may store the Gram matrix of two vectors here.
            dots: complex((steps + 1).max(3) * n),
            norm2: real(n),
            measured: real(n),
            q_rho: complex(n),
            minus_alpha: complex(n),
            rho2: real(n),
            rho2_measured: real(n),
            goal2: real(n),
            norms: real(n),
            active: flags(),
            unusable: flags(),
            cancelled: flags(),
        }
    }

    /// Prepares a new solve of `n` right-hand sides, at most as many as in [`new`](Self::new). `norms` may be empty.
    pub fn begin(&mut self, n: usize, tol: f64, norms: &[f64]) {
        (self.n, self.tol2) = (n, tol * tol);
        self.active.fill(true);
        norms.iter().enumerate().for_each(|(j, norm)| self.set_first_residual(j, norm * norm));
    }

    fn set_first_residual(&mut self, j: usize, rho2: f64) {
        (self.rho2[j], self.rho2_measured[j], self.goal2[j]) = (rho2, rho2, self.tol2 * rho2);
        self.active[j] = rho2 != 0.0;
    }

    /// Computes the sums of the first step from the Gram matrix of ρ and w in `dots`.
    pub fn take_gram(&mut self) {
        let n = self.n;
        for j in 0..n {
            self.set_first_residual(j, self.dots[j].re);
            (self.dots[j], self.norm2[j]) = (self.dots[n + j], self.dots[2 * n + j].re);
        }
    }

    /// Returns the norm ‖ρ_j‖ for every right-hand side j.
    pub fn norms(&mut self) -> &[f64] {
        self.norms.iter_mut().zip(&self.rho2).for_each(|(norm, rho2)| *norm = rho2.sqrt());
        &self.norms[..self.n]
    }

    /// Returns whether every right-hand side is finished.
    pub fn finished(&self) -> bool {
        !self.active[..self.n].contains(&true)
    }

    /// Returns the index of the first β_{·,k}.
    fn row(&self, k: usize) -> usize {
        k * self.steps * self.n
    }

    /// Computes β_{i,k}, γ_k² and (q_k, ρ) from the sums. A right-hand side whose sums are not finite is finished and
    /// marked as `unusable`. Returns whether such a right-hand side exists.
    pub fn project(&mut self, k: usize) -> bool {
        let (n, row) = (self.n, self.row(k));
        for j in 0..n {
            let finite = (0..=k).all(|i| self.dots[i * n + j].is_finite()) && self.norm2[j].is_finite();
            self.unusable[j] = !finite;
            self.active[j] &= finite;
            let mut gamma2 = self.norm2[j];
            for i in 0..k {
                let at = i * n + j;
                let beta = if self.active[j] { self.dots[at] / self.gamma2[at] } else { Complex64::ZERO };
                (self.beta[row + at], self.chi[at]) = (beta, -beta);
                gamma2 -= beta.norm_sqr() * self.gamma2[at];
            }
            self.gamma2[k * n + j] = gamma2;
            self.q_rho[j] = self.dots[k * n + j].conj();
            self.cancelled[j] = self.active[j] && gamma2 < DIFFERENCE * self.norm2[j];
        }
        self.unusable[..n].contains(&true)
    }

    /// Returns the coefficients −β_{i,k} for all i < k.
    pub fn minus_beta(&self, k: usize) -> &[Complex64] {
        &self.chi[..k * self.n]
    }

    /// Returns whether γ_k² or ‖ρ‖² of some right-hand side has to be measured.
    pub fn cancelled(&self) -> bool {
        self.cancelled[..self.n].contains(&true)
    }

    /// Copies γ_k² from `measured` and (q_k, ρ) from `dots`, for right-hand sides that had to be measured.
    pub fn take_image(&mut self, k: usize) {
        for j in (0..self.n).filter(|&j| self.cancelled[j]) {
            (self.gamma2[k * self.n + j], self.q_rho[j]) = (self.measured[j], self.dots[j]);
        }
    }

    /// Computes α_k = (q_k, ρ)/γ_k², and ‖ρ‖² after the step along q_k.
    pub fn step(&mut self, k: usize) {
        for j in 0..self.n {
            let (at, gamma2) = (k * self.n + j, self.gamma2[k * self.n + j]);
            self.cancelled[j] = false;
            let alpha = self.q_rho[j] / gamma2;
            // With "≤", `nothing_left` is also true for an image that is zero.
            let nothing_left = gamma2 <= BREAKDOWN.powi(2) * self.norm2[j];
            self.active[j] &= !nothing_left && alpha.is_finite();
            self.alpha[at] = if self.active[j] { alpha } else { Complex64::ZERO };
            self.minus_alpha[j] = -self.alpha[at];
            if self.active[j] {
                // α minimises ‖ρ − α q‖, and therefore ‖ρ‖² = ‖ρ_new‖² + |α|² ‖q‖².
                self.rho2[j] = (self.rho2[j] - alpha.norm_sqr() * gamma2).max(0.0);
                self.cancelled[j] = self.rho2[j] < CANCELLED * self.rho2_measured[j];
                self.active[j] = self.cancelled[j] || self.rho2[j] > self.goal2[j];
            }
        }
    }

    /// Copies ‖ρ‖² from `measured`, for right-hand sides that had to be measured.
    pub fn take_residual(&mut self) {
        for j in (0..self.n).filter(|&j| self.cancelled[j]) {
            (self.rho2[j], self.rho2_measured[j]) = (self.measured[j], self.measured[j]);
            self.active[j] = self.rho2[j] > self.goal2[j];
        }
    }

    /// Solves χ_l + Σ_{i>l} β_{l,i} χ_i = α_l from the last of `k` directions to the first. If no step succeeded, the
    /// solution is the first direction.
    pub fn solution(&mut self, k: usize) -> &[Complex64] {
        let n = self.n;
        for l in (0..k).rev() {
            for j in 0..n {
                let known: Complex64 =
                    (l + 1..k).map(|i| self.beta[self.row(i) + l * n + j] * self.chi[i * n + j]).sum();
                self.chi[l * n + j] = self.alpha[l * n + j] - known;
            }
        }
        for j in 0..n {
            if (0..k).all(|l| self.alpha[l * n + j] == Complex64::ZERO) {
                self.chi[j] = Complex64::ONE;
            }
        }
        &self.chi[..k * n]
    }
}
