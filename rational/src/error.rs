//! Errors of approximations.

use crate::{Interval, LARGEST_RATIO};
use std::path::PathBuf;
use thiserror::Error;

/// Reason why an approximation cannot be computed, read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The power is not a fraction, or its numbers are too large.
    #[error("`{text}` is not a power: {reason}; write a fraction of integers such as -1/4 or 3/8")]
    Fraction {
        /// Text of the power.
        text: String,
        /// Reason for the rejection.
        reason: &'static str,
    },
    /// The power of a factor is 0.
    #[error("factor {index} of the function, (x + {shift:e})^p, has the power p = 0: remove it")]
    ZeroPower {
        /// Index of the factor, from 0.
        index: usize,
        /// Shift c of the factor.
        shift: f64,
    },
    /// The shift c of a factor (x + c)^p is negative or not finite.
    #[error("factor {index} of the function, (x + c)^p, has c = {shift:e}: c must be finite and at least 0")]
    Shift {
        /// Index of the factor, from 0.
        index: usize,
        /// Shift c of the factor.
        shift: f64,
    },
    /// All powers of the function are integers, so it needs no approximation.
    #[error("{function} is a rational function itself and needs no approximation")]
    AlreadyRational {
        /// Description of the function.
        function: String,
    },
    /// Approximations of the function may have poles off the negative axis.
    #[error(
        "{function} cannot be approximated: its powers, added up in ascending order of the shifts, give {sums}, which \
         must be all between -1 and 0, or all between 0 and 1; split it into factors for which they are"
    )]
    NotStieltjes {
        /// Description of the function.
        function: String,
        /// Partial sums p_1, p_1 + p_2, …, as text.
        sums: String,
    },
    /// The interval does not satisfy 0 < a < b.
    #[error(
        "[{low:e}, {high:e}] is not a valid interval: 0 < low < high is required, both finite, and high/low at most \
         {LARGEST_RATIO:e}"
    )]
    Interval {
        /// Lower end a.
        low: f64,
        /// Upper end b.
        high: f64,
    },
    /// The order is too low or too high.
    #[error("an approximation of order {order} is not possible: the order must be between 1 and {largest}")]
    Order {
        /// Requested order.
        order: usize,
        /// Highest order that is allowed.
        largest: usize,
    },
    /// The error at this order would be smaller than any use requires.
    #[error(
        "the approximation of {function} on {interval} has an error of about 10^{exponent} at order {order}, far below \
         double precision: choose a lower order, or use a constant"
    )]
    TooExact {
        /// Description of the function.
        function: String,
        /// Interval of the approximation.
        interval: Interval,
        /// Order of the approximation.
        order: usize,
        /// Estimate of log₁₀ of the error.
        exponent: i64,
    },
    /// The tolerance is too small, or 1 or larger.
    #[error("the tolerance {tolerance:e} must be at least {smallest:e}, the limit of double precision, and below 1")]
    Tolerance {
        /// Requested tolerance.
        tolerance: f64,
        /// Smallest tolerance that is allowed.
        smallest: f64,
    },
    /// No order up to the largest meets the tolerance.
    #[error(
        "the approximation of {function} on {interval} has an error of {error:.3e} at order {largest}, the highest \
         order, which is above the tolerance {tolerance:e}: raise the tolerance, or shorten the interval"
    )]
    NoOrder {
        /// Description of the function.
        function: String,
        /// Interval of the approximation.
        interval: Interval,
        /// Error at the highest order.
        error: f64,
        /// Highest order that is allowed.
        largest: usize,
        /// Requested tolerance.
        tolerance: f64,
    },
    /// A pole or a zero of the approximation is not on the negative axis, at any precision that was tried.
    #[error(
        "the approximation of {function} on {interval} at order {order} has {what} that are not all real, negative and \
         different, so that it cannot be used with shifted systems; try the next order"
    )]
    NotNegative {
        /// The part that is not on the negative axis: `poles` or `zeros`.
        what: &'static str,
        /// Description of the function.
        function: String,
        /// Interval of the approximation.
        interval: Interval,
        /// Order of the approximation.
        order: usize,
    },
    /// The exchange of points did not converge.
    #[error(
        "the Remez algorithm did not converge for {function} on {interval} at order {order}: after {exchanges} \
         exchanges the extrema still differ by {spread:.1e} of the error; try the next order"
    )]
    NoConvergence {
        /// Description of the function.
        function: String,
        /// Interval of the approximation.
        interval: Interval,
        /// Order of the approximation.
        order: usize,
        /// Number of exchanges that were done.
        exchanges: usize,
        /// Spread of the extrema, (largest − smallest)/largest.
        spread: f64,
    },
    /// The extrema are equal, but |δ| is larger between them.
    #[error(
        "the approximation of {function} on {interval} at order {order} has extrema of {level:.3e}, but an error of \
         {found:.3e} at x = {x:e}; try the next order"
    )]
    NotBest {
        /// Description of the function.
        function: String,
        /// Interval of the approximation.
        interval: Interval,
        /// Order of the approximation.
        order: usize,
        /// |δ| at the extrema.
        level: f64,
        /// Larger |δ| found between the extrema.
        found: f64,
        /// Argument x at which the larger error was found.
        x: f64,
    },
    /// The largest precision does not suffice.
    #[error(
        "the approximation of {function} on {interval} at order {order} needs more than {bits} bits: choose a lower \
         order, or a shorter interval"
    )]
    Precision {
        /// Description of the function.
        function: String,
        /// Interval of the approximation.
        interval: Interval,
        /// Order of the approximation.
        order: usize,
        /// Highest precision that was tried, in bits.
        bits: usize,
    },
    /// A coefficient is too large or too small for double precision.
    #[error("{what} of the approximation does not fit into double precision: change the units of x, or the order")]
    Range {
        /// Description of the coefficient.
        what: String,
    },
    /// An approximation cannot be scaled to the requested interval.
    #[error("the approximation on {have} cannot be used on {wanted}: {reason}; compute one for that interval")]
    NotCovered {
        /// Interval of the existing approximation.
        have: Interval,
        /// Requested interval.
        wanted: Interval,
        /// Reason why the approximation cannot be used.
        reason: &'static str,
    },
    /// A stored approximation is not valid; the text describes the fault.
    #[error("the stored approximation is invalid: {0}; compute it again")]
    Stored(String),
    /// The file of a cache cannot be read or written.
    #[error("{path}: {reason}")]
    Cache {
        /// Path of the file.
        path: PathBuf,
        /// Description of the error and advice.
        reason: String,
    },
}
