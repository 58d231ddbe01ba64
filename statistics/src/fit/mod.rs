//! Least squares with correlated data, whose covariance is estimated from the same samples.
//!
//! χ² = Σ_xy (ȳ_x − f(x; p)) (C⁻¹)_xy (ȳ_y − f(y; p)), with the means ȳ of N samples and the covariance C of these means. Samples are
//! configurations, or bins of them where they are correlated ([`bins`](crate::jackknife::bins)). C is estimated once from all samples; the
//! fit is repeated for each mean of the jackknife or the bootstrap, which gives the errors of what is made of the parameters.
//!
//! | module | what |
//! |---|---|
//! | [`least_squares`] | a function with parameters, and its least squares |
//! | [`covariance`] | covariance matrices from samples |
//! | [`quality`] | whether a χ² is as large as it should be |
//! | [`window`] | which of the data are fitted, by an information criterion; the fit |
//! | [`correlator`] | one or two states of a correlator |
//! | [`potential`] | the static potential: Wilson loops, Cornell's form, r₀ |
pub mod correlator;
pub mod covariance;
pub mod least_squares;
pub mod potential;
pub mod quality;
pub mod window;

pub use window::{Fit, FitError, FitSettings, fit};
