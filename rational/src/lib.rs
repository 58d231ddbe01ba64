//! Best rational approximations of powers, for the rational hybrid Monte Carlo algorithm.
//!
//! # Application
//! With N_f mass-degenerate flavours of rooted staggered quarks the weight of a gauge field has det(M†M)^{N_f/4}, with
//! M†M on the even sites. Pseudofermions φ put it into the action as φ† (M†M)^{−N_f/4} φ, so that the equation of
//! motion needs the solution of (M†M)^{N_f/4} x = φ instead of a linear system (Bonati, Cossu, D'Elia,
//! Incardona, *QCD simulations with staggered fermions on GPUs*, arXiv:1106.5673, section 2.1, eq. 11, which takes the
//! place of eq. 10). A rational function approximates the power to any requested accuracy on an interval
//! that contains the spectrum,
//!
//! (M†M)^p ≈ R(M†M) = A₀ + Σ_{i=1}^n A_i (M†M + σ_i)^{−1},
//!
//! and multi-shift conjugate gradients solve all n systems at the price of one.
//!
//! | purpose | power | form |
//! |---|---|---|
//! | force, molecular dynamics | −N_f/(4 n_φ) | direct, of low order and loose tolerance |
//! | heat bath φ = R⁻¹ ξ | N_f/(8 n_φ) | inverse of the one in the next row, which makes it exact up to the solver |
//! | action ‖R φ‖², Metropolis | −N_f/(8 n_φ) | direct, of high order |
//!
//! Here n_φ pseudofermions with the n_φ-th root each share a determinant, and groups of quarks with several masses may
//! share a pseudofermion: with x an eigenvalue of −D², f(x) = Π_k (x + 4 m_k²)^{p_k} in MILC's normalisation.
//!
//! # Algorithm
//! For f(x) = Π_k (x + c_k)^{p_k} ([`Power`]) on 0 < a ≤ x ≤ b ([`Interval`]), [`approximate`] finds the unique R of
//! order (n, n), numerator and denominator being polynomials of order n, that has the smallest
//!
//! E = max_{a ≤ x ≤ b} |δ(x)|,  δ(x) = R(x)/f(x) − 1.
//!
//! The solution is recognised by its alternation (Chebyshev): δ takes the values ±E in turn at 2n + 2 points. The Remez
//! algorithm searches for these points in multiple precision, and ends only if the extrema of δ are equal to 10⁻²¹ of
//! their size and no value between them is larger. Coefficients are therefore right to the last digit of double
//! precision.
//!
//! * **Start:** for p = ½ the points are known in terms of elliptic functions (Zolotarev 1877); those of other powers
//!   are near.
//! * **Levelled function:** on 2n + 2 given points, E and R are the eigenvalue and the vector of a matrix pencil.
//! * **Exchange:** points move to the extrema of δ, which are zeros of a rational function.
//! * **Poles and zeros** are found by Laguerre's method, one after the other down the negative axis. Their number
//!   proves that there are no others: all σ_i are real, positive and different.
//!
//! The error falls as exp(−2π n K/K′), K/K′ ≈ π/ln(16 b/a): 5 orders more bring a factor of 100 for b/a = 10⁸.
//!
//! # Rounding
//! For negative powers all A_i are positive, and partial fractions in double precision are as good as their largest
//! term. For positive powers A_i are negative and A₀ is large: at x = a digits cancel, about log₁₀ (b/a)^p of them. If
//! this matters, use x^p = x · x^{p−1}. [`Approximation::check`] computes the accuracy that remains in double
//! precision.
//!
//! # Example
//! ```
//! use rational::{Interval, Power, approximate_to};
//!
//! // Two flavours, one pseudofermion, spectrum of M†M in [1e-4, 5].
//! let spectrum = Interval::new(1e-4, 5.0)?;
//! let force = approximate_to(&Power::new("-1/2".parse()?)?, spectrum, 1e-6)?;
//! let action = approximate_to(&Power::new("-1/4".parse()?)?, spectrum, 1e-12)?;
//! assert_eq!((force.order(), action.order()), (10, 20));
//! for x in [1e-4, 0.01, 1.0, 5.0_f64] {
//!     assert!((force.evaluate(x) * x.sqrt() - 1.0).abs() < 1e-6);
//!     // The function of the heat bath is that of the action, inverted.
//!     assert!((action.inverse().evaluate(x) * action.evaluate(x) - 1.0).abs() < 1e-12);
//! }
//! // The spectrum has moved: the same function serves any interval with the same ratio.
//! let moved = force.covering(Interval::new(2e-4, 9.0)?)?;
//! assert_eq!(moved.error(), force.error());
//! # Ok::<(), rational::Error>(())
//! ```
//! `ferrite rational --power -1/4 --interval 1e-8,1 --order 15` prints an approximation.

#![forbid(unsafe_code)]

mod approximation;
mod cache;
mod error;
mod failure;
mod fraction;
mod function;
mod levelled;
mod partial;
mod product;
mod real;
mod remez;
mod roots;
mod zolotarev;

#[cfg(test)]
mod tests;

pub use approximation::{Approximation, Check, LARGEST_ORDER, SMALLEST_TOLERANCE, approximate, approximate_to};
pub use cache::Cache;
pub use error::Error;
pub use fraction::Fraction;
pub use function::{Factor, Interval, LARGEST_RATIO, Power};
pub use partial::{PartialFractionAccuracy, PartialFractions, Pole};
