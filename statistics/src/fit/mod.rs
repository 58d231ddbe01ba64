//! Least squares with correlated data, whose covariance is estimated from the same samples.
//!
//! χ² = Σ_xy (ȳ_x − f(x; p)) (C⁻¹)_xy (ȳ_y − f(y; p)), with the means ȳ of N samples and the covariance C of these means. Samples are
//! configurations, or bins of them if they are correlated ([`bins`](crate::jackknife::bins)). C is estimated once from all samples; the
//! fit is repeated for each mean of the jackknife or the bootstrap, which gives the errors of quantities computed from the parameters.
//!
//! | module | contents |
//! |---|---|
//! | [`least_squares`] | a function with parameters, and its least-squares fit |
//! | [`covariance`] | covariance matrices from samples |
//! | [`quality`] | expected χ² and p-value of a fit |
//! | [`window`] | choice of the fitted data by an information criterion; the fit |
//! | [`correlator`] | one or two states of a correlator |
//! | [`potential`] | the static potential: Wilson loops, Cornell's form, r₀ |
pub mod correlator;
pub mod covariance;
pub mod least_squares;
pub mod potential;
pub mod quality;
pub mod window;

pub use window::{Fit, FitError, FitSettings, fit};
