//! Statistics of series: means with errors, running averages, histograms, and selection of points to draw.
use statistics::{Average, average};
use std::ops::Range;

/// Mean of a series with its error and autocorrelation time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesEstimate {
    /// Mean; NaN without values.
    pub mean: f64,
    /// One standard deviation of the mean; NaN for fewer than two numbers.
    pub error: f64,
    /// Integrated autocorrelation time, in units of the distance between two values; ½ for independent values, NaN for fewer than two.
    pub tau: f64,
    /// One standard deviation of `tau`.
    pub tau_error: f64,
    /// Number of values in the series.
    pub count: usize,
}

/// Length above which the means of blocks may determine the error of a series.
const LONG: usize = 20_000;

/// Returns mean, error and autocorrelation time τ of a series as [`average`] does. The error of τ is τ √((4 W + 2) / n), where W = 6 τ is
/// the window of the sum (Madras and Sokal 1988).
pub fn estimate(values: &[f64]) -> SeriesEstimate {
    let Average { mean, error, autocorrelation: tau } =
        if values.len() > LONG { of_many(values) } else { average(values) };
    let count = values.len();
    let window = (6.0 * tau).ceil();
    SeriesEstimate { mean, error, tau, tau_error: tau * ((4.0 * window + 2.0) / count as f64).sqrt(), count }
}

/// Estimates mean and error of a long series. The cost of the sum over autocorrelations grows with their range. If they extend over more
/// than a few blocks, the means of blocks determine the error.
fn of_many(values: &[f64]) -> Average {
    let block = values.len().div_ceil(LONG);
    let means: Vec<f64> =
        values.chunks_exact(block).map(|block| block.iter().sum::<f64>() / block.len() as f64).collect();
    let Average { error, autocorrelation, .. } = average(&means);
    if autocorrelation <= 2.0 {
        return average(values);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    // Inverts the relation error² = 2 τ σ² / n.
    let tau = error * error * (values.len() - 1) as f64 / (2.0 * squares / values.len() as f64);
    Average { mean, error, autocorrelation: tau }
}

/// Returns `[mean, error]` of the first value, of the first two values, and so on. The errors use the autocorrelation time `tau` of the
/// whole series. The first error is NaN.
pub fn running(values: &[f64], tau: f64) -> Vec<[f64; 2]> {
    let (mut mean, mut squares) = (0.0, 0.0);
    let of = |(j, x): (usize, &f64)| {
        let count = (j + 1) as f64;
        let off = x - mean;
        mean += off / count;
        squares += off * (x - mean);
        let error = if j > 0 { (2.0 * tau * squares / count / (count - 1.0)).sqrt() } else { f64::NAN };
        [mean, error]
    };
    values.iter().enumerate().map(of).collect()
}

/// Histogram of numbers in bins of equal width.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// Count of numbers in each bin. A bin includes its lower end; the last bin also includes its upper end.
    pub counts: Vec<usize>,
    /// Number of values that are not in a bin because they are not finite, or far from the other values.
    pub outside: usize,
}

const BINS: Range<f64> = 1.0..80.0;

/// Counts values in bins of width 2 (q_¾ − q_¼) / ∛n, with the quartiles q (Freedman and Diaconis 1981), over the range of [`limits`].
/// Returns `None` if [`limits`] does.
pub fn histogram(values: &[f64]) -> Option<Histogram> {
    let (low, high) = limits(values)?;
    let [quarter, _, three_quarters] = quartiles(values)?;
    let (range, best) = (high - low, 2.0 * (three_quarters - quarter) / (values.len() as f64).cbrt());
    let bins = if best > 0.0 { (range / best).ceil().clamp(BINS.start, BINS.end) } else { BINS.start } as usize;
    // If all numbers are equal, the histogram gets the width 1.
    let (low, high) = if range > 0.0 { (low, high) } else { (low - 0.5, high + 0.5) };
    let mut found = Histogram { low, high, counts: vec![0; bins], outside: 0 };
    for x in values {
        if (low..=high).contains(x) {
            let bin = ((x - low) / found.width()).floor() as usize;
            found.counts[bin.min(bins - 1)] += 1;
        } else {
            found.outside += 1;
        }
    }
    Some(found)
}

impl Histogram {
    /// Returns the width of a bin.
    pub fn width(&self) -> f64 {
        (self.high - self.low) / self.counts.len() as f64
    }
}

fn quartiles(values: &[f64]) -> Option<[f64; 3]> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.abs() < 1e100).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some([1, 2, 3].map(|quarter| sorted[last * quarter / 4]))
}

/// Returns the smallest and the largest value whose distance from the median is at most 8 times the distance between the quartiles, or
/// eleven standard deviations of a Gaussian. If the quartiles coincide, all values count. Ignores values of modulus 10¹⁰⁰ or more, because
/// their squares would not be finite. Returns `None` if no value is left.
pub fn limits(values: &[f64]) -> Option<(f64, f64)> {
    let [quarter, median, three_quarters] = quartiles(values)?;
    let reach = 8.0 * (three_quarters - quarter);
    let near = |x: &&f64| x.abs() < 1e100 && (reach == 0.0 || (*x - median).abs() <= reach);
    values.iter().filter(near).fold(None, |ends, &x| {
        let (low, high) = ends.unwrap_or((x, x));
        Some((low.min(x), high.max(x)))
    })
}

/// Selects about `most` positions of values for a line: the first and the last value, and the smallest and the largest value of each
/// stretch. The line through them looks like the line through all values.
pub fn thin(values: &[f64], most: usize) -> Vec<usize> {
    if values.len() <= most {
        return (0..values.len()).collect();
    }
    let stretches = (most / 2).max(1);
    let mut places = vec![0];
    for j in 0..stretches {
        let stretch = values.len() * j / stretches..values.len() * (j + 1) / stretches;
        let by = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
        let finite = || stretch.clone().filter(|j| values[*j].is_finite());
        let (low, high) = (finite().min_by(by), finite().max_by(by));
        places.extend(low.into_iter().chain(high));
        // If a stretch has no finite number, one of its numbers is selected to interrupt the line.
        places.extend(low.is_none().then_some(stretch.start));
    }
    places.push(values.len() - 1);
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x' = ρ x + noise with numbers of a linear congruence, whose high bits are good enough here.
    fn correlated(n: usize, rho: f64) -> Vec<f64> {
        let (mut state, mut x) = (12345_u64, 0.0);
        let next = |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            x = rho * x + (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
            x
        };
        (0..n).map(next).collect()
    }

    #[test]
    fn running_averages_end_with_the_average() {
        let values = correlated(500, 0.6);
        let whole = estimate(&values);
        let all = running(&values, whole.tau);
        assert_eq!(all.len(), 500);
        assert_eq!(all[0][0], values[0]);
        assert!(all[0][1].is_nan());
        let [mean, error] = all[499];
        // Two orders of summation of 500 numbers below 2.
        assert!((mean - whole.mean).abs() < 1e-13 && (error / whole.error - 1.0).abs() < 1e-12);
        for n in [2, 17, 300] {
            let mean = values[..n].iter().sum::<f64>() / n as f64;
            let variance = values[..n].iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            let expected = (2.0 * whole.tau * variance / n as f64).sqrt();
            assert!((all[n - 1][0] - mean).abs() < 1e-13 && (all[n - 1][1] / expected - 1.0).abs() < 1e-12, "{n}");
        }
    }

    #[test]
    fn errors_are_those_of_the_library_and_one_number_has_none() {
        let values = correlated(1000, 0.5);
        let (found, expected) = (estimate(&values), average(&values));
        assert_eq!((found.mean, found.error, found.tau), (expected.mean, expected.error, expected.autocorrelation));
        // τ = ½ (1 + ρ) / (1 − ρ) = 1.5 for ρ = ½, with the error that is claimed: four of them.
        assert!((found.tau - 1.5).abs() < 4.0 * found.tau_error && found.tau_error < 0.5, "{found:?}");
        let one = estimate(&[3.0]);
        assert_eq!((one.mean, one.count), (3.0, 1));
        assert!(one.error.is_nan() && one.tau.is_nan() && one.tau_error.is_nan());
        let none = estimate(&[]);
        assert!(none.mean.is_nan() && none.error.is_nan());
    }

    #[test]
    fn long_series_have_the_errors_of_short_ones() {
        // τ = 0.5, 9.5, 499.5 against blocks of 10; errors of τ for n = 2·10⁵ are 0.8, 3.4, 25 %: within three of them.
        for (rho, within) in [(0.0, 0.025), (0.9, 0.11), (0.998, 0.75)] {
            let values = correlated(10 * LONG, rho);
            let tau = 0.5 * (1.0 + rho) / (1.0 - rho);
            let found = estimate(&values);
            assert!((found.tau / tau - 1.0).abs() < within, "{rho}: {found:?}");
            let variance = values.iter().map(|x| (x - found.mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
            let expected = (2.0 * found.tau * variance / values.len() as f64).sqrt();
            assert!((found.error / expected - 1.0).abs() < 1e-4, "{rho}: {found:?}");
        }
    }

    #[test]
    fn histograms_count_every_number_once() {
        let values = correlated(4000, 0.0);
        let found = histogram(&values).unwrap();
        assert_eq!(found.counts.iter().sum::<usize>(), 4000);
        assert_eq!(found.outside, 0);
        // Uniform over [−½, ½): each bin has its share within five √n.
        let share = 4000.0 / found.counts.len() as f64;
        assert!(found.counts.len() > 10);
        assert!(found.counts.iter().all(|n| (*n as f64 - share).abs() < 5.0 * share.sqrt()), "{found:?}");

        // Width 2 · (6 − 2) / ∛8 = 4 needs two bins; 8 is the upper end of the last one.
        let found = histogram(&[1.0, 2.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0]).unwrap();
        assert_eq!((found.low, found.width(), found.counts), (1.0, 3.5, vec![5, 3]));
        let with_outliers = histogram(&[1.0, 2.0, 2.0, 3.0, 4.0, 6.0, 7.0, 1e6, f64::NAN, f64::INFINITY]).unwrap();
        assert_eq!(with_outliers.outside, 3);
        assert_eq!(with_outliers.counts.iter().sum::<usize>(), 7);
        let one = histogram(&[2.0]).unwrap();
        assert_eq!((one.low, one.high, one.counts), (1.5, 2.5, vec![1]));
        assert_eq!(histogram(&[f64::NAN]), None);
        assert_eq!(histogram(&[]), None);
    }

    #[test]
    fn what_is_far_off_does_not_set_limits() {
        assert_eq!(limits(&[1.0, 2.0, 3.0, 4.0, f64::NAN, 1e9]), Some((1.0, 4.0)));
        assert_eq!(limits(&[2.0, 2.0, 2.0, 2.0, 5.0]), Some((2.0, 5.0)));
        assert_eq!(limits(&[]), None);
    }

    #[test]
    fn thinning_keeps_ends_and_extremes() {
        let mut values = correlated(300_000, 0.5);
        (values[123_456], values[200_001]) = (50.0, -70.0);
        let places = thin(&values, 2000);
        assert!(places.len() <= 2002 && places.len() > 1500, "{}", places.len());
        assert_eq!((places[0], *places.last().unwrap()), (0, 299_999));
        assert!(places.contains(&123_456) && places.contains(&200_001));
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(thin(&values[..5], 2000), [0, 1, 2, 3, 4]);
        assert_eq!(thin(&[], 2000), [0_usize; 0]);
        // Stretches of nothing but NaN leave a gap.
        values[1000..50_000].fill(f64::NAN);
        assert!(thin(&values, 2000).iter().any(|j| values[*j].is_nan()));
    }
}
