//! Exchange of points: Remez' second algorithm for rational functions.
//!
//! R of order (n, n) is the best approximation of f > 0 on [y_a, y_b], in relative error, if and only if δ(y) =
//! R(y)/f(y) − 1 takes its largest modulus at 2n + 2 points with alternating signs (Chebyshev; Akhiezer, *Theory of
//! approximation*, chapter 2), provided that no common factor can be divided out. The algorithm has 2n + 2 points,
//! finds the R whose δ alternates between ±E on them ([`levelled`](crate::levelled)), moves each point to the nearest
//! extremum of δ, and repeats. Near the end each exchange doubles the number of digits.
//!
//! Extrema are found without f: (log R/f)′ is a rational function, because R is given by its poles and zeros. For f =
//! y^p it has 2n zeros, so that the extrema that are searched for are the only ones. For products of powers this does
//! not follow, so δ is checked between the points at the end.

use crate::failure::RemezFailure;
use crate::levelled::levelled;
use crate::product::Product;
use crate::real::{BigFloat, Bits, Target, abs, double, geometric_mean, positive};

/// Best approximation with the quantities that prove that it is the best.
#[derive(Clone, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests look at the proof"))]
pub(crate) struct Minimax {
    pub product: Product,
    /// Largest relative error |E| of the approximation.
    pub error: BigFloat,
    /// Points where the error δ has the absolute value |E|; there are 2n + 2.
    pub points: Vec<BigFloat>,
    /// Relative spread of |δ| over the points: (largest − smallest)/largest.
    pub spread: BigFloat,
    /// Number of exchanges that the algorithm made.
    pub exchanges: usize,
}

/// Largest number of exchanges.
const EXCHANGES: usize = 60;

/// Base-2 exponent of the relative spread of the extrema at convergence. 2⁻⁷⁰ = 10⁻²¹ makes coefficients correct to
/// the last digit of double precision.
const SPREAD_BITS: usize = 70;

/// Relative accuracy of y to which extrema are bracketed, in bits. One more step of Newton's method doubles the
/// number of bits; the error of δ is the square, 2⁻⁹⁶.
const EXTREMUM_BITS: usize = 24;

/// Number of steps into which each interval between neighbouring points is divided for the final check of δ.
const CHECKS: i64 = 6;

/// Computes the best approximation of order n on [y_a, y_b].
pub(crate) fn minimax(
    target: &Target,
    low: &BigFloat,
    high: &BigFloat,
    start: &[f64],
) -> Result<Minimax, RemezFailure> {
    let precision = target.precision;
    let length = high - low;
    let mut points: Vec<BigFloat> = start.iter().map(|at| low + &length * precision.real(*at)).collect();
    let n = points.len();
    (points[0], points[n - 1]) = (low.clone(), high.clone());
    let mut values = evaluated(target, &points)?;
    // The poles lie on the negative axis approximately as the points lie on the positive one.
    let mut poles: Vec<BigFloat> = points[1..n - 1].iter().step_by(2).cloned().collect();
    let mut level = precision.integer(0);
    let mut last_spread: Option<BigFloat> = None;
    for exchanges in 1..=EXCHANGES {
        let solution = levelled(&points, &values, &poles, &level, precision).ok_or(RemezFailure::Precision)?;
        let product = Product::new(&solution, precision)?;
        if !reproduces(&product, &solution.level, &points, &values, precision) {
            return Err(RemezFailure::Precision);
        }
        points = exchange(&product, target, &points, &solution.level, low, high);
        values = evaluated(target, &points)?;
        let deviations: Vec<BigFloat> =
            points.iter().zip(&values).map(|(y, f)| deviation(&product, y, f, precision)).collect();
        if !deviations.windows(2).all(|pair| positive(&pair[0]) != positive(&pair[1])) {
            return Err(RemezFailure::Precision);
        }
        let sizes: Vec<BigFloat> = deviations.iter().map(abs).collect();
        let largest = sizes.iter().fold(&sizes[0], |a, b| if b > a { b } else { a });
        let smallest = sizes.iter().fold(&sizes[0], |a, b| if b < a { b } else { a });
        let spread = (largest - smallest) / largest;
        if spread < precision.tiny(SPREAD_BITS) {
            let error = largest.clone();
            check_between(&product, target, &points, &error)?;
            return Ok(Minimax { product, error, points, spread, exchanges });
        }
        if last_spread.is_some_and(|last| last < precision.tiny(20) && spread >= last) {
            return Err(RemezFailure::Precision);
        }
        last_spread = Some(spread);
        (poles, level) = (product.poles, solution.level);
    }
    let spread = last_spread.map_or(1.0, |spread| double(&spread));
    Err(RemezFailure::NoConvergence { exchanges: EXCHANGES, spread })
}

/// Evaluates f at the points. Fails if the points are not in ascending order.
fn evaluated(target: &Target, points: &[BigFloat]) -> Result<Vec<BigFloat>, RemezFailure> {
    if !points.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err(RemezFailure::Precision);
    }
    Ok(points.iter().map(|y| target.evaluate(y)).collect())
}

/// Computes δ = R/f − 1.
fn deviation(product: &Product, y: &BigFloat, f: &BigFloat, precision: Bits) -> BigFloat {
    product.evaluate(y) / f - precision.integer(1)
}

/// Whether the poles and zeros are so accurate that δ at the points is ±E to the required accuracy.
fn reproduces(product: &Product, level: &BigFloat, points: &[BigFloat], values: &[BigFloat], precision: Bits) -> bool {
    let allowed = abs(level) * precision.tiny(SPREAD_BITS + 10);
    points.iter().zip(values).enumerate().all(|(i, (y, f))| {
        let wanted = if i % 2 == 0 { level.clone() } else { -level };
        abs(&(deviation(product, y, f, precision) - wanted)) < allowed
    })
}

/// Moves each point to the nearest extremum of δ with the sign of the point.
pub(crate) fn exchange(
    product: &Product,
    target: &Target,
    points: &[BigFloat],
    level: &BigFloat,
    low: &BigFloat,
    high: &BigFloat,
) -> Vec<BigFloat> {
    let slope = |y: &BigFloat| {
        let (r, f) = (product.log_derivatives(y, target.precision), target.log_derivatives(y));
        (r.0 - f.0, r.1 - f.1)
    };
    let at = |i: usize| {
        let y = &points[i];
        // `maximum` is true if δ has a maximum near this point, and false if it has a minimum there.
        let maximum = positive(level) == i.is_multiple_of(2);
        let rises = |y: &BigFloat| {
            let (first, second) = slope(y);
            // The derivatives are those of log(R/f), or of its negative near a minimum.
            if maximum { (first, second) } else { (-first, -second) }
        };
        let first = rises(y).0;
        let right = positive(&first);
        let limit = match (right, i) {
            (true, i) => points.get(i + 1).unwrap_or(high),
            (false, 0) => low,
            (false, i) => &points[i - 1],
        };
        if first == BigFloat::ZERO || y == limit {
            return y.clone();
        }
        match turn(&rises, y, limit, right) {
            Some(falling) if right => climb(&rises, y, &falling, y, target.precision),
            Some(falling) => climb(&rises, &falling, y, y, target.precision),
            // ±δ rises up to the limit.
            None => limit.clone(),
        }
    };
    (0..points.len()).map(at).collect()
}

/// Finds a point between y and the limit where ±δ falls, since it must fall before the next point of opposite sign.
/// Returns `None` if there is none.
fn turn(
    rises: &impl Fn(&BigFloat) -> (BigFloat, BigFloat),
    y: &BigFloat,
    limit: &BigFloat,
    right: bool,
) -> Option<BigFloat> {
    let down = |y: &BigFloat| positive(&rises(y).0) != right;
    let mut places = vec![y.clone(), limit.clone()];
    if down(limit) {
        return Some(limit.clone());
    }
    // Seven rounds examine at most 2⁷ points.
    for _ in 0..7 {
        let between: Vec<BigFloat> = places.windows(2).map(|pair| geometric_mean(&pair[0], &pair[1])).collect();
        if let Some(found) = between.iter().find(|y| down(y)) {
            return Some(found.clone());
        }
        let mut finer = Vec::with_capacity(2 * places.len());
        for (place, between) in places.iter().zip(&between) {
            finer.extend([place.clone(), between.clone()]);
        }
        finer.extend(places.pop());
        places = finer;
    }
    None
}

/// Finds the zero of a falling function between `low`, where it is positive, and `high`, where it is negative. Uses
/// Newton's method, and bisection on a logarithmic scale if a step leaves the bracket.
fn climb(
    rises: &impl Fn(&BigFloat) -> (BigFloat, BigFloat),
    low: &BigFloat,
    high: &BigFloat,
    start: &BigFloat,
    precision: Bits,
) -> BigFloat {
    let (mut low, mut high, mut y) = (low.clone(), high.clone(), start.clone());
    for _ in 0..200 {
        let (first, second) = rises(&y);
        if first == BigFloat::ZERO {
            return y;
        }
        if positive(&first) {
            low = y.clone();
        } else {
            high = y.clone();
        }
        let newton = (second != BigFloat::ZERO).then(|| &y - &first / &second);
        let next = match newton {
            Some(next) if next > low && next < high => next,
            _ => geometric_mean(&low, &high),
        };
        let close = abs(&(&next - &y)) < &y * precision.tiny(EXTREMUM_BITS);
        y = next;
        if close {
            break;
        }
    }
    y
}

/// Checks that |δ| between the points does not exceed the error E.
pub(crate) fn check_between(
    product: &Product,
    target: &Target,
    points: &[BigFloat],
    error: &BigFloat,
) -> Result<(), RemezFailure> {
    let precision = target.precision;
    let allowed = error + error * precision.tiny(40);
    for pair in points.windows(2) {
        for step in 1..CHECKS {
            let y = &pair[0] + (&pair[1] - &pair[0]) * precision.integer(step) / precision.integer(CHECKS);
            let found = abs(&deviation(product, &y, &target.evaluate(&y), precision));
            if found > allowed {
                let [level, found] = [error, &found].map(double);
                return Err(RemezFailure::NotBest { level, found, y });
            }
        }
    }
    Ok(())
}
