//! Times measured at a few sizes, and interpolation between them.

/// Seconds as a function of size, for work such as that of a kernel whose time is a power of its size between two measurements.
///
/// The time is a curve, not a constant rate: below some ten thousand sites the launch dominates, for large sizes the bandwidth of the
/// memory, and caches between the two.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeCurve {
    points: Vec<(f64, f64)>,
}

/// Reason why points do not form a curve: the point, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeCurveError {
    /// No points.
    #[error("a curve has at least one point")]
    Empty,
    /// Size that is not a number, is out of range, or occurs twice.
    #[error("point {0} has a size that is out of range or belongs to another point")]
    Size(usize),
    /// Time that is not a number or is out of range.
    #[error("point {0} has a time that is out of range")]
    Time(usize),
}

/// Sorts points by size and checks that all sizes differ; `smallest` is the lower limit of size and time, which is itself allowed if
/// `or_equal` is true.
fn sorted(mut points: Vec<(f64, f64)>, or_equal: bool) -> Result<Vec<(f64, f64)>, TimeCurveError> {
    let fits = |x: f64| x.is_finite() && (x > 0.0 || or_equal && x == 0.0);
    for (k, (size, seconds)) in points.iter().enumerate() {
        let twice = points[..k].iter().any(|(other, _)| other == size);
        if twice || !fits(*size) {
            return Err(TimeCurveError::Size(k));
        }
        if !fits(*seconds) {
            return Err(TimeCurveError::Time(k));
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if points.is_empty() { Err(TimeCurveError::Empty) } else { Ok(points) }
}

impl TimeCurve {
    /// Builds a curve from (size, seconds) in any order, all of them above 0.
    ///
    /// # Errors
    /// A [`TimeCurveError`] if the points do not form a curve.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Result<Self, TimeCurveError> {
        sorted(points.into_iter().collect(), false).map(|points| TimeCurve { points })
    }
    /// Returns (size, seconds), the smallest size first.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
    /// Returns seconds for a size, interpolated by straight lines through the points in a double logarithmic plot. Below the smallest size
    /// it is the time of that size, which is the time of a launch; above the largest it is proportional to the size; 0 for size 0.
    pub fn at(&self, size: f64) -> f64 {
        if size <= 0.0 {
            return 0.0;
        }
        let after = self.points.partition_point(|(there, _)| *there < size);
        match (after.checked_sub(1).map(|before| self.points[before]), self.points.get(after)) {
            (_, Some(&(there, seconds))) if there == size => seconds,
            (None, Some(&(_, seconds))) => seconds,
            (Some((last, seconds)), None) => seconds * size / last,
            (Some((a, at_a)), Some(&(b, at_b))) => at_a * (at_b / at_a).powf((size / a).ln() / (b / a).ln()),
            (None, None) => 0.0,
        }
    }
}

/// Seconds as a function of size, interpolated linearly, for small times that are differences of larger ones and may be 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Polyline {
    points: Vec<(f64, f64)>,
}

impl Polyline {
    /// Builds a line from (size, seconds) in any order, none below 0; without points the time is 0 for all sizes.
    ///
    /// # Errors
    /// A [`TimeCurveError`] if the points do not form a curve.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Result<Self, TimeCurveError> {
        match sorted(points.into_iter().collect(), true) {
            Ok(points) => Ok(Polyline { points }),
            Err(TimeCurveError::Empty) => Ok(Polyline::default()),
            Err(error) => Err(error),
        }
    }
    /// Returns (size, seconds), the smallest size first.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
    /// Returns seconds for a size. Below the smallest size it is the time of that size; above the largest it follows the last line if that
    /// rises; 0 for size 0.
    pub fn at(&self, size: f64) -> f64 {
        if size <= 0.0 {
            return 0.0;
        }
        let after = self.points.partition_point(|(there, _)| *there < size);
        let line = |(a, at_a): (f64, f64), (b, at_b): (f64, f64)| at_a + (at_b - at_a) * (size - a) / (b - a);
        match (&self.points[..after], &self.points[after..]) {
            ([.., a], [b, ..]) => line(*a, *b),
            ([.., a, b], []) => line(*a, *b).max(b.1),
            ([(_, seconds)], []) | ([], [(_, seconds), ..]) => *seconds,
            ([], []) => 0.0,
        }
    }
}

/// Latency and bandwidth of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Seconds of an empty message.
    pub latency: f64,
    /// Bytes per second in one direction.
    pub bandwidth: f64,
}

impl Wire {
    /// Returns the seconds of a message.
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.latency + bytes / self.bandwidth
    }
    /// Fits latency and bandwidth to measured (bytes, seconds). If the time does not depend on the length, the latency is that of the
    /// fastest message, and the bandwidth is a lower bound.
    pub fn of_measured(points: &[(f64, f64)]) -> Self {
        Wire::fit(points).unwrap_or_else(|| {
            let largest = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).fold(0.0, f64::max);
            let latency = points.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
            Wire { latency, bandwidth: largest(|(bytes, _)| *bytes) / largest(|(_, seconds)| *seconds) }
        })
    }
    /// Fits latency and bandwidth to (bytes, seconds) by least squares of relative deviations, with a latency not below 0. `None` if the
    /// points do not determine how time grows with bytes: there are fewer than two sizes, or the time falls.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        // Weighted with 1/t², for a and b in a + b x = t.
        let mut sums = [0.0; 5];
        for &(x, t) in points {
            let terms = [1.0, x, x * x, t, x * t];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term / (t * t));
        }
        let [w, x, xx, t, xt] = sums;
        let determinant = w * xx - x * x;
        let (mut latency, mut slope) = ((t * xx - xt * x) / determinant, (w * xt - x * t) / determinant);
        if latency < 0.0 {
            (latency, slope) = (0.0, xt / xx);
        }
        let several = points.iter().any(|(x, _)| *x != points[0].0);
        (several && latency.is_finite() && slope.is_finite() && slope > 0.0)
            .then(|| Wire { latency, bandwidth: 1.0 / slope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_through_its_points() {
        let points = [(4096.0, 5e-6), (262_144.0, 2e-5), (2_097_152.0, 1.5e-4)];
        let curve = TimeCurve::new([points[2], points[0], points[1]]).unwrap();
        for (size, seconds) in points {
            assert_eq!(curve.at(size), seconds);
        }
        assert_eq!(curve.points(), points);
        // In the middle of a line of the double logarithmic plot: geometric means. Powers are good to some roundings.
        let middle = curve.at((262_144.0f64 * 2_097_152.0).sqrt());
        assert!((middle / (2e-5f64 * 1.5e-4).sqrt() - 1.0).abs() < 1e-14, "{middle}");
        assert_eq!(curve.at(16.0), 5e-6);
        assert_eq!(curve.at(0.0), 0.0);
        assert!((curve.at(4.0 * 2_097_152.0) / 6e-4 - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_polyline_goes_through_its_points() {
        let line = Polyline::new([(0.0, 0.0), (10.0, 1.0), (20.0, 4.0)]).unwrap();
        for (size, seconds) in [(0.0, 0.0), (5.0, 0.5), (10.0, 1.0), (15.0, 2.5), (20.0, 4.0), (30.0, 7.0)] {
            assert_eq!(line.at(size), seconds, "{size}");
        }
        // One that falls at its end falls no further, one without a beginning at 0 has a floor.
        let line = Polyline::new([(10.0, 3.0), (20.0, 2.0)]).unwrap();
        assert_eq!([1.0, 15.0, 20.0, 100.0].map(|size| line.at(size)), [3.0, 2.5, 2.0, 2.0]);
        assert_eq!(Polyline::new([(10.0, 3.0)]).unwrap().at(40.0), 3.0);
        assert_eq!(Polyline::default().at(40.0), 0.0);
    }

    #[test]
    fn points_that_are_no_curve() {
        assert_eq!(TimeCurve::new([]), Err(TimeCurveError::Empty));
        for size in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(TimeCurve::new([(1.0, 1.0), (size, 1.0)]), Err(TimeCurveError::Size(1)));
            assert_eq!(TimeCurve::new([(1.0, size)]), Err(TimeCurveError::Time(0)));
        }
        assert_eq!(TimeCurve::new([(1.0, 1.0), (2.0, 1.0), (1.0, 2.0)]), Err(TimeCurveError::Size(2)));
        assert_eq!(Polyline::new([(1.0, -1.0)]), Err(TimeCurveError::Time(0)));
        assert_eq!(Polyline::new([]), Ok(Polyline::default()));
    }

    #[test]
    fn a_wire_is_found_from_its_messages() {
        let wire = Wire { latency: 8e-6, bandwidth: 2.5e11 };
        let points = [1e4, 1e5, 1e6, 1e7].map(|bytes| (bytes, wire.seconds(bytes)));
        let found = Wire::fit(&points).unwrap();
        // The smallest slope is a difference of numbers whose ratio is about 5: some roundings.
        assert!((found.latency / wire.latency - 1.0).abs() < 1e-12, "{found:?}");
        assert!((found.bandwidth / wire.bandwidth - 1.0).abs() < 1e-12, "{found:?}");
        // The latency of these would be below 0.
        let found = Wire::fit(&[(1e4, 1e-6), (1e6, 2e-4)]).unwrap();
        assert!(found.latency == 0.0 && found.bandwidth > 5e9 && found.bandwidth < 1e10, "{found:?}");
        assert_eq!(Wire::fit(&[(1e4, 1e-6), (1e4, 2e-6)]), None);
        assert_eq!(Wire::fit(&[(1e4, 2e-6), (1e6, 1e-6)]), None);
        assert_eq!(Wire::fit(&[]), None);
    }
}
