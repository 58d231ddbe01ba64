//! Errors of approximations.

use crate::{Interval, LARGEST_RATIO};
use std::path::PathBuf;
use thiserror::Error;

/// Reason why there is no approximation.
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
    /// A factor has the power 0.
    #[error("factor {index} of the function, (x + {shift:e})^p, has the power p = 0: leave it out")]
    ZeroPower {
        /// Index of the factor, from 0.
        index: usize,
        /// Shift c of the factor.
        shift: f64,
    },
    /// A factor (x + c)^p has c < 0, or c is not finite.
    #[error("factor {index} of the function, (x + c)^p, has c = {shift:e}: c has to be finite and not negative")]
    Shift {
        /// Index of the factor, from 0.
        index: usize,
        /// Shift c of the factor.
        shift: f64,
    },
    /// The function has integer powers only.
    #[error("{function} is a rational function itself: it needs no approximation")]
    AlreadyRational {
        /// Description of the function.
        function: String,
    },
    /// The approximations of the function may have poles anywhere.
    #[error(
        "{function} is outside of what can be approximated: its powers, added up in ascending order of the shifts, \
         give {sums}, which have to be all between -1 and 0, or all between 0 and 1; split it into factors for which \
         they are"
    )]
    NotStieltjes {
        /// Description of the function.
        function: String,
        /// Partial sums p_1, p_1 + p_2, …, as text.
        sums: String,
    },
    /// The interval does not satisfy 0 < a < b.
    #[error(
        "[{low:e}, {high:e}] is no interval to approximate on: it has to have 0 < low < high, both finite, and \
         high/low at most {LARGEST_RATIO:e}"
    )]
    Interval {
        /// Lower end a.
        low: f64,
        /// Upper end b.
        high: f64,
    },
    /// The order is too low or too high.
    #[error("an approximation of order {order} is not possible: the order has to be between 1 and {largest}")]
    Order {
        /// Requested order.
        order: usize,
        /// Highest order that is allowed.
        largest: usize,
    },
    /// The order is far higher than necessary.
    #[error(
        "the approximation of {function} on {interval} has an error of about 10^{exponent} at order {order}, far below \
         what double precision can hold: ask for a lower order, or take a constant"
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
    /// The tolerance is out of range.
    #[error(
        "the tolerance {tolerance:e} has to be at least {smallest:e}, which double precision can hold, and below 1"
    )]
    Tolerance {
        /// Requested tolerance.
        tolerance: f64,
        /// Smallest tolerance that is allowed.
        smallest: f64,
    },
    /// No allowed order meets the tolerance.
    #[error(
        "the approximation of {function} on {interval} has an error of {error:.3e} at order {largest}, the highest one, \
         which is above the tolerance {tolerance:e}: raise it, or shorten the interval"
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
    /// A pole or a zero of the approximation is not on the negative axis, at any precision.
    #[error(
        "the approximation of {function} on {interval} at order {order} has {what} that are not all real, negative and \
         different: no shifted systems can be solved with it; try the next order"
    )]
    NotNegative {
        /// `poles` or `zeros`.
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
        /// Number of exchanges done.
        exchanges: usize,
        /// Spread of the extrema, (largest − smallest)/largest.
        spread: f64,
    },
    /// The extrema are equal, but the error is larger between them.
    #[error(
        "the approximation of {function} on {interval} at order {order} has extrema of {level:.3e} and yet an error of \
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
    /// The highest precision does not suffice.
    #[error(
        "the approximation of {function} on {interval} at order {order} needs more than {bits} bits: ask for a lower \
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
    /// An approximation cannot be moved to the interval.
    #[error("the approximation on {have} cannot serve {wanted}: {reason}; compute one for that interval")]
    NotCovered {
        /// Interval of the existing approximation.
        have: Interval,
        /// Requested interval.
        wanted: Interval,
        /// Reason why the approximation cannot be used.
        reason: &'static str,
    },
    /// Numbers that were read do not form an approximation.
    #[error("the approximation that was read is not in order: {0}; compute it again")]
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
