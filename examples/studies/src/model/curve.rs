//! Times measured at a few sizes, and interpolation between them.

/// Time in seconds as a function of size, for example of a kernel, whose time is a power of the size between two measurements.
///
/// The time is a curve and not a constant rate: the launch dominates below some ten thousand sites, caches matter for larger sizes, and
/// the bandwidth of the memory for the largest.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeCurve {
    points: Vec<(f64, f64)>,
}

/// Reason why points do not form a curve, with the index of the wrong point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeCurveError {
    /// There are no points.
    #[error("a curve has at least one point")]
    Empty,
    /// The size of this point is not a number, is out of range, or occurs twice.
    #[error("point {0} has a size that is out of range or belongs to another point")]
    Size(usize),
    /// The time of this point is not a number or is out of range.
    #[error("point {0} has a time that is out of range")]
    Time(usize),
}

/// Sorts points by size, and checks that all sizes differ. `smallest` is the lower limit of size and time; the limit itself is allowed if
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
    /// Creates a curve from points (size, seconds) in any order; all numbers must be above 0.
    ///
    /// # Errors
    /// A [`TimeCurveError`] if the points do not form a curve.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Result<Self, TimeCurveError> {
        sorted(points.into_iter().collect(), false).map(|points| TimeCurve { points })
    }
    /// Returns the points (size, seconds) in ascending order of size.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
    /// Returns the time in seconds for a size, interpolated by straight lines through the points in a double logarithmic plot. Below the
    /// smallest size, it is the time of that size, which is the time of a launch. Above the largest size, it is proportional to the size.
    /// It is 0 for size 0.
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

/// Time in seconds as a function of size, interpolated linearly, for small times that are differences of larger ones and may be 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Polyline {
    points: Vec<(f64, f64)>,
}

impl Polyline {
    /// Creates a line from points (size, seconds) in any order; no number may be below 0. Without points the time is 0 for all sizes.
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
    /// Returns the points (size, seconds) in ascending order of size.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
    /// Returns the time in seconds for a size. Below the smallest size, it is the time of that size. Above the largest size, it follows
    /// the last line if that line rises. It is 0 for size 0.
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

/// Latency and bandwidth of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Time of an empty message, in seconds.
    pub latency: f64,
    /// Bandwidth in one direction, in bytes per second.
    pub bandwidth: f64,
}

impl Wire {
    /// Returns the time of a message of `bytes` bytes, in seconds.
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.latency + bytes / self.bandwidth
    }
    /// Fits latency and bandwidth to measured points (bytes, seconds). If the time does not depend on the length, the latency is that of
    /// the fastest message, and the bandwidth is a lower bound.
    pub fn of_measured(points: &[(f64, f64)]) -> Self {
        Wire::fit(points).unwrap_or_else(|| {
            let largest = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).fold(0.0, f64::max);
            let latency = points.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
            Wire { latency, bandwidth: largest(|(bytes, _)| *bytes) / largest(|(_, seconds)| *seconds) }
        })
    }
    /// Fits latency and bandwidth to points (bytes, seconds) by least squares of relative deviations; the latency is not below 0. Returns
    /// `None` if the points do not determine how the time grows with the length: there are fewer than two lengths, or the time falls.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        // Fits t = a + b x, with weights 1/t².
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
