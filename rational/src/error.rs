//! How an approximation can fail.

use crate::{Interval, LARGEST_RATIO};
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no approximation.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A power is not written as a fraction, or it is one that cannot be kept.
    #[error("`{text}` is not a power: {reason}; write a fraction of integers such as -1/4 or 3/8")]
    Fraction {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A factor with the power 0.
    #[error("factor {index} of the function, (x + {shift:e})^p, has the power p = 0: leave it out")]
    ZeroPower {
        /// Its place, counted from 0.
        index: usize,
        /// Its c.
        shift: f64,
    },
    /// A factor (x + c)^p with c < 0 or not finite.
    #[error("factor {index} of the function, (x + c)^p, has c = {shift:e}: c has to be finite and not negative")]
    Shift {
        /// Its place, counted from 0.
        index: usize,
        /// Its c.
        shift: f64,
    },
    /// The function has integer powers only.
    #[error("{function} is a rational function itself: it needs no approximation")]
    AlreadyRational {
        /// The function.
        function: String,
    },
    /// A function whose approximations may have poles anywhere.
    #[error(
        "{function} is outside of what can be approximated: its powers, added up in ascending order of the shifts, \
         give {sums}, which have to be all between -1 and 0, or all between 0 and 1; split it into factors for which \
         they are"
    )]
    NotStieltjes {
        /// The function.
        function: String,
        /// p_1, p_1 + p_2, ….
        sums: String,
    },
    /// Not 0 < a < b.
    #[error(
        "[{low:e}, {high:e}] is no interval to approximate on: it has to have 0 < low < high, both finite, and \
         high/low at most {LARGEST_RATIO:e}"
    )]
    Interval {
        /// a.
        low: f64,
        /// b.
        high: f64,
    },
    /// Too low or too high an order.
    #[error("an approximation of order {order} is not possible: the order has to be between 1 and {largest}")]
    Order {
        /// What was asked for.
        order: usize,
        /// The highest one.
        largest: usize,
    },
    /// An order that is far higher than necessary.
    #[error(
        "the approximation of {function} on {interval} has an error of about 10^{exponent} at order {order}, far below \
         what double precision can hold: ask for a lower order, or take a constant"
    )]
    TooExact {
        /// The function.
        function: String,
        /// Where.
        interval: Interval,
        /// The order.
        order: usize,
        /// Estimate of log₁₀ of the error.
        exponent: i64,
    },
    /// A tolerance that is no tolerance.
    #[error(
        "the tolerance {tolerance:e} has to be at least {smallest:e}, which double precision can hold, and below 1"
    )]
    Tolerance {
        /// What was asked for.
        tolerance: f64,
        /// The smallest one.
        smallest: f64,
    },
    /// No order that is allowed meets the tolerance.
    #[error(
        "the approximation of {function} on {interval} has an error of {error:.3e} at order {largest}, the highest one, \
         which is above the tolerance {tolerance:e}: raise it, or shorten the interval"
    )]
    NoOrder {
        /// The function.
        function: String,
        /// Where.
        interval: Interval,
        /// The error at the highest order.
        error: f64,
        /// The highest order.
        largest: usize,
        /// What was asked for.
        tolerance: f64,
    },
    /// A pole or a zero of the approximation is not on the negative axis, in no precision.
    #[error(
        "the approximation of {function} on {interval} at order {order} has {what} that are not all real, negative and \
         different: no shifted systems can be solved with it; try the next order"
    )]
    NotNegative {
        /// "poles" or "zeros".
        what: &'static str,
        /// The function.
        function: String,
        /// Where.
        interval: Interval,
        /// The order.
        order: usize,
    },
    /// The exchange of points did not come to an end.
    #[error(
        "the Remez algorithm did not converge for {function} on {interval} at order {order}: after {exchanges} \
         exchanges the extrema still differ by {spread:.1e} of the error; try the next order"
    )]
    NoConvergence {
        /// The function.
        function: String,
        /// Where.
        interval: Interval,
        /// The order.
        order: usize,
        /// Exchanges done.
        exchanges: usize,
        /// (largest − smallest extremum) / largest.
        spread: f64,
    },
    /// The extrema are equal, but between them the error is larger.
    #[error(
        "the approximation of {function} on {interval} at order {order} has extrema of {level:.3e} and yet an error of \
         {found:.3e} at x = {x:e}; try the next order"
    )]
    NotBest {
        /// The function.
        function: String,
        /// Where.
        interval: Interval,
        /// The order.
        order: usize,
        /// |δ| at the points.
        level: f64,
        /// |δ| somewhere else.
        found: f64,
        /// Where.
        x: f64,
    },
    /// The highest precision did not suffice.
    #[error(
        "the approximation of {function} on {interval} at order {order} needs more than {bits} bits: ask for a lower \
         order, or a shorter interval"
    )]
    Precision {
        /// The function.
        function: String,
        /// Where.
        interval: Interval,
        /// The order.
        order: usize,
        /// The precision that was tried.
        bits: usize,
    },
    /// A coefficient is too large or too small for double precision.
    #[error("{what} of the approximation does not fit into double precision: change the units of x, or the order")]
    Range {
        /// Which one.
        what: String,
    },
    /// An approximation cannot be moved to the interval.
    #[error("the approximation on {have} cannot serve {wanted}: {reason}; compute one for that interval")]
    NotCovered {
        /// Where it is good.
        have: Interval,
        /// What was asked for.
        wanted: Interval,
        /// Why.
        reason: &'static str,
    },
    /// Numbers that were read do not make an approximation.
    #[error("the approximation that was read is not in order: {0}; compute it again")]
    Stored(String),
    /// The file of a cache cannot be read or written.
    #[error("{path}: {reason}")]
    Cache {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
}
