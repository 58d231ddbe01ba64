//! Zolotarev's solution for p = ½, in double precision: the starting points of the exchange, and an estimate of the
//! error.
//!
//! The best approximation of √y of order (n, n) on [y_a, y_b], relative error, is known in closed form [Zolotarev 1877;
//! Akhiezer, *Elements of the theory of elliptic functions*, 1970, chapter 9]. With N = 2n + 1, κ² = y_a/y_b and complete
//! elliptic integrals K = K(κ), K′ = K(√(1 − κ²)), its error has its N + 1 extrema at y_b dn²(j K′/N; √(1 − κ²)),
//! j = 0 … N, and its level is (1 − ℓ)/(1 + ℓ), where ℓ has the nome exp(−π N K/K′) in its complement.
//!
//! Other powers have the same singularities, so their points are near these.

use crate::{Interval, Power};
use std::f64::consts::{LN_2, PI};

/// Computes the arithmetic-geometric mean of two positive numbers.
fn agm(mut a: f64, mut b: f64) -> f64 {
    // The convergence is quadratic: 40 steps suffice for any two numbers of double precision.
    for _ in 0..40 {
        (a, b) = (0.5 * (a + b), (a * b).sqrt());
    }
    a
}

/// Computes the elliptic integrals (K, K′) for κ² = `ratio` = y_a/y_b; `complement` is 1 − κ².
fn integrals(ratio: f64, complement: f64) -> (f64, f64) {
    (PI / (2.0 * agm(1.0, complement.sqrt())), PI / (2.0 * agm(1.0, ratio.sqrt())))
}

/// Condenser formed by the cut of a function on the negative real axis and the interval [y_a, y_b].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condenser {
    ratio: f64,
    complement: f64,
}

impl Condenser {
    /// Creates the condenser for a cut from −∞ to 0 and the interval from `low` = y_a to `high` = y_b. `length` is y_b
    /// − y_a, which would be inaccurate if it were computed from ends that are close.
    pub fn new(low: f64, high: f64, length: f64) -> Self {
        Self { ratio: low / high, complement: length / high }
    }

    /// Returns the logarithm of exp(−π N K/K′) with N = 2 n + 1 for order n. The level is about 4 |sin πp| times this
    /// exponential.
    pub fn log_scale(self, order: usize) -> f64 {
        let (k, k_prime) = integrals(self.ratio, self.complement);
        -PI * (2 * order + 1) as f64 * k / k_prime
    }

    /// Computes (y_j − y_a)/(y_b − y_a), from 0 to 1, for y_j = y_b dn²(j K′/n), j = 0 … n. For n = 2 · order + 1 the
    /// y_j are the extrema.
    pub fn points(self, n: usize) -> Vec<f64> {
        let (k, k_prime) = integrals(self.ratio, self.complement);
        // u is in units of the quarter period K′. Both series converge by a factor of at least exp(π) for each term.
        let position = |u: f64| {
            if self.complement > 0.5 {
                // dn(u) = π/(2K) Σ_m sech(π (u − 2m K′)/(2K)). All terms are positive, so the sum is accurate for
                // small y.
                let term = |m: i32| (0.5 * PI * k_prime / k * (u - 2.0 * f64::from(m))).cosh().recip();
                let dn = 0.5 * PI / k * (-15..=15).map(term).sum::<f64>();
                (dn * dn - self.ratio) / self.complement
            } else {
                // The position is cn²(u). With cn(0) = 1, cn is proportional to Σ_m t_m cos((2m + 1) π u/(2K′)), where
                // t_m = q^m/(1 + q^{2m+1}).
                let nome = (-PI * k / k_prime).exp();
                let term = |m: i32| nome.powi(m) / (1.0 + nome.powi(2 * m + 1));
                let sum = |u: f64| (0..15).map(|m| term(m) * (0.5 * PI * u * f64::from(2 * m + 1)).cos()).sum::<f64>();
                (sum(u) / sum(0.0)).powi(2)
            }
        };
        let mut positions: Vec<f64> = (0..=n).map(|j| position((n - j) as f64 / n as f64)).collect();
        (positions[0], positions[n]) = (0.0, 1.0);
        positions
    }
}

/// The [`Condenser`] of a function of y = x + c₁, constructed from the interval of x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZolotarevStart {
    condenser: Condenser,
    /// Lower end y_a. The next two fields are y_b − y_a, and the length of the cut [−span, 0] unless it extends to
    /// −∞.
    low: f64,
    length: f64,
    span: Option<f64>,
}

impl ZolotarevStart {
    pub fn new(function: &Power, interval: Interval) -> Self {
        let origin = function.factors().first().map_or(0.0, |factor| factor.shift);
        let (low, high) = (interval.low() + origin, interval.high() + origin);
        let length = interval.high() - interval.low();
        let span = function.cut();
        let condenser = match span {
            None => Condenser::new(low, high, length),
            // w = y/(y + span) maps the cut to a cut from −∞ to 0, and rational functions of y to rational functions
            // of w.
            Some(span) => {
                let map = |y: f64| y / (y + span);
                Condenser::new(map(low), map(high), length / (low + span) * (span / (high + span)))
            }
        };
        Self { condenser, low, length, span }
    }

    /// Returns log₂ (y_b/y_a).
    pub fn log2_ratio(self) -> f64 {
        (self.length / self.low).ln_1p() / LN_2
    }

    /// Returns the logarithm of the scale exp(−π N K/K′) of the error at order n, with N = 2 n + 1.
    pub fn log_scale(self, order: usize) -> f64 {
        self.condenser.log_scale(order)
    }

    /// Returns `n` + 1 positions in the interval of x, from 0 to 1, where the exchange starts.
    pub fn points(self, n: usize) -> Vec<f64> {
        let mut points = self.condenser.points(n);
        if let Some(span) = self.span {
            let low = self.low + span;
            points.iter_mut().for_each(|at| *at *= low / (low + (1.0 - *at) * self.length));
        }
        points
    }
}
