//! Errors of quantities computed from the means of samples, by the jackknife and the bootstrap.

/// Estimate from the mean over all samples. Its error comes from other means: those that leave out one sample each (jackknife), or those
/// of samples drawn with replacement (bootstrap).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JackknifeEstimate {
    /// Value from the mean of all samples.
    pub value: f64,
    /// Error of the value, one standard deviation. It is NaN with fewer than two samples, or if too many of the
    /// jackknife or bootstrap means have no value: any mean in the jackknife, more than the fraction [`MOST_MISSING`]
    /// in the bootstrap.
    pub error: f64,
    /// Number of jackknife or bootstrap means that have no value.
    pub missing: MissingMeans,
}

impl JackknifeEstimate {
    /// Creates an estimate without missing means.
    pub fn new(value: f64, error: f64) -> Self {
        JackknifeEstimate { value, error, missing: MissingMeans::default() }
    }
}

/// Number of jackknife or bootstrap means that have no value, for example because a fit has no minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingMeans {
    /// Number of means without a value.
    pub count: usize,
    /// Number of all jackknife or bootstrap means.
    pub of: usize,
}

impl std::fmt::Display for MissingMeans {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let MissingMeans { count, of } = self;
        write!(f, "{count} of {of} means {} no value", if *count == 1 { "has" } else { "have" })
    }
}

/// Largest fraction of bootstrap means that may lack a value. The error is then the standard deviation of the means
/// that have a value, which is accurate to a few per cent. The jackknife allows no missing mean, because its error is a
/// sum over all samples.
pub const MOST_MISSING: f64 = 0.05;

/// Resampling method that computes the errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resampling {
    /// Jackknife: means that leave out one sample each.
    #[default]
    Jackknife,
    /// Bootstrap: means of as many samples as there are, drawn with replacement (Efron 1979).
    Bootstrap {
        /// Number of bootstrap means.
        draws: usize,
        /// Seed of the random draws: the same seed gives the same errors.
        seed: u64,
    },
}

impl Resampling {
    /// Applies `f` to the mean of the samples, and computes errors. Samples must have equal lengths. `f` must always return equally many
    /// numbers, of which some may be missing.
    pub fn estimate(
        self,
        samples: &[Vec<f64>],
        f: impl Fn(&[f64]) -> Vec<Option<f64>>,
    ) -> Vec<Option<JackknifeEstimate>> {
        match self {
            Resampling::Jackknife => jackknife(samples, f),
            Resampling::Bootstrap { draws, seed } => bootstrap(samples, draws, seed, f),
        }
    }
}

/// Computes the sum over samples for each component.
fn sums(samples: &[Vec<f64>]) -> Vec<f64> {
    (0..samples.first().map_or(0, Vec::len)).map(|k| samples.iter().map(|sample| sample[k]).sum()).collect()
}

/// Combines the values from the mean of all samples with errors. `error` computes an error from Σ (x − x̄)² over the other means that
/// have a value, and from their number.
fn estimates(
    values: Vec<Option<f64>>,
    others: &[Vec<Option<f64>>],
    most_missing: f64,
    error: impl Fn(f64, usize) -> f64,
) -> Vec<Option<JackknifeEstimate>> {
    let estimate = |(k, value): (usize, Option<f64>)| {
        let there: Vec<f64> = others.iter().filter_map(|other| other[k]).collect();
        let missing = MissingMeans { count: others.len() - there.len(), of: others.len() };
        let error = if there.len() > 1 && missing.count as f64 <= most_missing * missing.of as f64 {
            let mean = there.iter().sum::<f64>() / there.len() as f64;
            error(there.iter().map(|x| (x - mean).powi(2)).sum(), there.len())
        } else {
            f64::NAN
        };
        Some(JackknifeEstimate { value: value?, error, missing })
    };
    values.into_iter().enumerate().map(estimate).collect()
}

/// Applies `f` to the mean of the samples, with errors by the bootstrap. The error is the standard deviation of `f` applied to `draws`
/// means of n samples drawn with replacement, times √(n/(n − 1)); for the mean itself, this is the error of the mean.
pub fn bootstrap(
    samples: &[Vec<f64>],
    draws: usize,
    seed: u64,
    f: impl Fn(&[f64]) -> Vec<Option<f64>>,
) -> Vec<Option<JackknifeEstimate>> {
    let n = samples.len();
    let Some(length) = samples.first().map(Vec::len) else { return Vec::new() };
    let mean: Vec<f64> = sums(samples).into_iter().map(|sum| sum / n as f64).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn = || {
        let mut sum = vec![0.0; length];
        for _ in 0..n {
            let sample = &samples[random.usize(..n)];
            sum.iter_mut().zip(sample).for_each(|(sum, x)| *sum += x);
        }
        sum.iter_mut().for_each(|sum| *sum /= n as f64);
        f(&sum)
    };
    let others: Vec<Vec<Option<f64>>> = if n > 1 { (0..draws).map(|_| drawn()).collect() } else { Vec::new() };
    let error = |square: f64, count: usize| (square / (count - 1) as f64 * n as f64 / (n - 1) as f64).sqrt();
    estimates(f(&mean), &others, MOST_MISSING, error)
}

/// Applies `f` to the mean of the samples, with errors by the jackknife. Samples, one for each configuration, must have equal lengths.
/// `f` must always return equally many numbers, of which some may be missing.
pub fn jackknife(samples: &[Vec<f64>], f: impl Fn(&[f64]) -> Vec<Option<f64>>) -> Vec<Option<JackknifeEstimate>> {
    let n = samples.len();
    if n == 0 {
        return Vec::new();
    }
    let sums = sums(samples);
    let mean: Vec<f64> = sums.iter().map(|sum| sum / n as f64).collect();
    let without = |left: &Vec<f64>| f(&mean_without(&sums, left, n));
    let others: Vec<Vec<Option<f64>>> = if n > 1 { samples.iter().map(without).collect() } else { Vec::new() };
    estimates(f(&mean), &others, 0.0, |square, count| (square * (count - 1) as f64 / count as f64).sqrt())
}

/// Computes the mean of all n samples without one of them, `left`, from their sums.
fn mean_without(sums: &[f64], left: &[f64], n: usize) -> Vec<f64> {
    sums.iter().zip(left).map(|(sum, own)| (sum - own) / (n - 1) as f64).collect()
}

/// Converts numbers computed from means into samples v_i = f + (n − 1) (f̄ − f_i), where f_i comes from the mean without sample i. Their
/// mean is f of the mean of all samples, and the covariance of their mean is that of the jackknife, so that they can be fitted like
/// samples.
///
/// # Errors
/// Returns the number of means without a value. All means count as missing if f of the mean of all samples has no value, or if there are
/// fewer than two samples.
pub fn pseudo_values(
    samples: &[Vec<f64>],
    f: impl Fn(&[f64]) -> Option<Vec<f64>>,
) -> Result<Vec<Vec<f64>>, MissingMeans> {
    let n = samples.len();
    let sums = sums(samples);
    let all = MissingMeans { count: n, of: n };
    let whole = f(&sums.iter().map(|sum| sum / n as f64).collect::<Vec<_>>()).filter(|_| n > 1).ok_or(all)?;
    let others: Vec<Vec<f64>> = samples.iter().filter_map(|left| f(&mean_without(&sums, left, n))).collect();
    if others.len() < n {
        return Err(MissingMeans { count: n - others.len(), of: n });
    }
    let mean = |k: usize| others.iter().map(|other| other[k]).sum::<f64>() / n as f64;
    let means: Vec<f64> = (0..whole.len()).map(mean).collect();
    let value = |(k, other): (usize, &f64)| whole[k] + (n - 1) as f64 * (means[k] - other);
    Ok(others.iter().map(|other| other.iter().enumerate().map(value).collect()).collect())
}

/// Averages each `size` consecutive samples to a bin, so that the jackknife leaves out whole bins. If samples are correlated, bins longer
/// than the correlation are independent. Samples at the end that do not fill a bin are left out; fewer than `size` samples form a single
/// bin. Panics if `size` is 0.
pub fn bins(samples: &[Vec<f64>], size: usize) -> Vec<Vec<f64>> {
    assert!(size > 0, "a bin holds a sample at least");
    let mean = |bin: &[Vec<f64>]| -> Vec<f64> {
        let sum = |k: usize| bin.iter().map(|sample| sample[k]).sum::<f64>() / bin.len() as f64;
        (0..bin[0].len()).map(sum).collect()
    };
    match samples.len() {
        0 => Vec::new(),
        n if n < size => vec![mean(samples)],
        _ => samples.chunks_exact(size).map(mean).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks samples that come in equal pairs: without bins the error is √2 times too small, up to one in n − 1.
    #[test]
    fn bins_are_samples() {
        let pairs: Vec<Vec<f64>> = (0..20).map(|k: i32| vec![f64::from((7 * (k / 2)) % 10)]).collect();
        let error = |samples: &[Vec<f64>]| jackknife(samples, |mean| vec![Some(mean[0])])[0].unwrap().error;
        let binned = bins(&pairs, 2);
        assert_eq!((binned.len(), bins(&pairs, 3).len(), bins(&pairs, 30).len()), (10, 6, 1));
        assert!((error(&binned) / error(&pairs) - (19.0f64 / 9.0).sqrt()).abs() < 1e-12);
        assert_eq!(bins(&pairs, 3)[1], vec![(pairs[3][0] + pairs[4][0] + pairs[5][0]) / 3.0]);
        assert!(bins(&[], 2).is_empty() && bins(&pairs, 1) == pairs);
    }

    /// Checks that for the mean itself the jackknife's error is the error of the mean.
    #[test]
    fn errors_of_means() {
        let samples: Vec<Vec<f64>> = [1.0, 2.0, 4.0, 3.0].iter().map(|x| vec![*x, 10.0 * x]).collect();
        let found = jackknife(&samples, |mean| mean.iter().map(|x| Some(*x)).collect());
        let variance = [1.0f64, 2.0, 4.0, 3.0].iter().map(|x| (x - 2.5).powi(2)).sum::<f64>() / 3.0;
        for (k, factor) in [(0, 1.0), (1, 10.0)] {
            let JackknifeEstimate { value, error, .. } = found[k].unwrap();
            assert!((value - 2.5 * factor).abs() < 1e-12 && (error - factor * (variance / 4.0).sqrt()).abs() < 1e-12);
        }
        let single = jackknife(&samples[..1], |mean| vec![Some(mean[0]), None]);
        assert!(single[0].unwrap().error.is_nan() && single[1].is_none());
        assert!(jackknife(&[], |_| vec![Some(1.0)]).is_empty());
    }

    /// Compares the error of the mean with that of the jackknife; they differ by the finite number of draws, 1/√(2 draws) of the error,
    /// within 5 of these. The error of the square is 2 x times as large up to terms of order 1/n, and is checked in the same way.
    #[test]
    fn bootstrap_agrees_with_the_jackknife() {
        let samples: Vec<Vec<f64>> = (0..40).map(|k: i32| vec![3.0 + f64::from((7 * k) % 40) / 10.0]).collect();
        let f = |mean: &[f64]| vec![Some(mean[0]), Some(mean[0] * mean[0])];
        let (draws, seed) = (2000, 5);
        let found = Resampling::Bootstrap { draws, seed }.estimate(&samples, f);
        let exact = Resampling::Jackknife.estimate(&samples, f);
        for (found, exact) in found.iter().zip(&exact) {
            let (found, exact) = (found.unwrap(), exact.unwrap());
            assert_eq!(found.value, exact.value);
            assert!((found.error / exact.error - 1.0).abs() < 5.0 / (2.0 * draws as f64).sqrt(), "{found:?} {exact:?}");
        }
        assert_eq!(found, bootstrap(&samples, draws, seed, f));
        assert_ne!(found, bootstrap(&samples, draws, seed + 1, f));
        assert!(bootstrap(&samples[..1], 10, 1, f)[0].unwrap().error.is_nan());
    }

    /// Checks the counts. Without the largest sample the mean is 2, without another one above 2.3: one mean of the jackknife has no value,
    /// so the error is missing. The bootstrap's error comes from the other means, if these are 95 % of all.
    #[test]
    fn means_without_a_value_are_counted() {
        let samples: Vec<Vec<f64>> = [1.0, 2.0, 4.0, 3.0].iter().map(|x| vec![*x]).collect();
        let above = |limit: f64| move |mean: &[f64]| vec![Some(mean[0]).filter(|x| *x > limit), Some(mean[0])];
        let found = jackknife(&samples, above(2.2));
        assert!(found[0].unwrap().error.is_nan() && found[1].unwrap().error > 0.0);
        assert_eq!(found[0].unwrap().missing, MissingMeans { count: 1, of: 4 });
        assert_eq!(found[0].unwrap().missing.to_string(), "1 of 4 means has no value");
        assert_eq!(found[1].unwrap().missing, MissingMeans { count: 0, of: 4 });
        assert_eq!(jackknife(&samples, above(3.0))[0], None);
        // Four equal draws of the smallest sample, whose mean is 1, have probability 1/256; means of at most 1.75 have 35/256.
        for (limit, missing, known) in [(1.1, 1..12, true), (1.8, 90..190, false)] {
            let [some, all] = [0, 1].map(|k| bootstrap(&samples, 1000, 1, above(limit))[k].unwrap());
            assert!(missing.contains(&some.missing.count) && some.missing.of == 1000, "{some:?}");
            assert_eq!(some.error.is_finite(), known);
            assert!(!known || (some.error / all.error - 1.0).abs() < 0.05);
        }
    }

    /// Checks that the mean of the pseudo-values and its error are those of the jackknife.
    #[test]
    fn pseudo_values_are_samples() {
        let samples: Vec<Vec<f64>> = [1.0, 2.0, 4.0, 3.0].iter().map(|x| vec![*x]).collect();
        let f = |mean: &[f64]| Some(vec![mean[0].powi(3), 1.0 / mean[0]]);
        let pseudo = pseudo_values(&samples, f).unwrap();
        let found = jackknife(&pseudo, |mean| mean.iter().map(|x| Some(*x)).collect());
        let exact = jackknife(&samples, |mean| f(mean).unwrap().into_iter().map(Some).collect());
        for (found, exact) in found.iter().zip(&exact) {
            let (found, exact) = (found.unwrap(), exact.unwrap());
            // Rounded a few times.
            assert!((found.value / exact.value - 1.0).abs() < 1e-13 && (found.error / exact.error - 1.0).abs() < 1e-13);
        }
        assert_eq!(pseudo_values(&samples[..1], f), Err(MissingMeans { count: 1, of: 1 }));
        // The mean without the largest sample is 2, and those without another one are above 2.3.
        let some = |mean: &[f64]| (mean[0] > 2.2).then(|| vec![mean[0]]);
        assert_eq!(pseudo_values(&samples, some), Err(MissingMeans { count: 1, of: 4 }));
    }
}
