//! Errors of numbers that are made of the means of samples: by the jackknife and the bootstrap.

/// A number from the mean over all samples, and its error from the means that leave out one each, or from those of the bootstrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JackknifeEstimate {
    /// From all samples.
    pub value: f64,
    /// One standard deviation; NaN from fewer than two samples, or where one of these means gives no number.
    pub error: f64,
}

/// Where errors come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resampling {
    /// Means that leave out one sample each.
    #[default]
    Jackknife,
    /// Means of as many samples as there are, drawn with replacement (Efron 1979).
    Bootstrap {
        /// How many such means.
        draws: usize,
        /// Of the random numbers: the same seed gives the same errors.
        seed: u64,
    },
}

impl Resampling {
    /// What `f` makes of the mean of the samples, with errors. Samples have equal lengths; `f` gives equally many numbers each time,
    /// some of which it may not have.
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

/// The same by the bootstrap: the error is the standard deviation of what `f` makes of the mean of n samples, drawn with
/// replacement `draws` times, times √(n/(n − 1)), so that for the mean itself it is that of the mean.
pub fn bootstrap(
    samples: &[Vec<f64>],
    draws: usize,
    seed: u64,
    f: impl Fn(&[f64]) -> Vec<Option<f64>>,
) -> Vec<Option<JackknifeEstimate>> {
    let n = samples.len();
    let Some(length) = samples.first().map(Vec::len) else { return Vec::new() };
    let mean: Vec<f64> = (0..length).map(|k| samples.iter().map(|sample| sample[k]).sum::<f64>() / n as f64).collect();
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
    let estimate = |(k, value): (usize, Option<f64>)| {
        let all: Option<Vec<f64>> = others.iter().map(|other| other[k]).collect();
        let error = match all {
            Some(all) if all.len() > 1 => {
                let mean = all.iter().sum::<f64>() / all.len() as f64;
                let square: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
                (square / (all.len() - 1) as f64 * n as f64 / (n - 1) as f64).sqrt()
            }
            _ => f64::NAN,
        };
        Some(JackknifeEstimate { value: value?, error })
    };
    f(&mean).into_iter().enumerate().map(estimate).collect()
}

/// Samples of numbers that are made of means: v_i = f + (n − 1) (f̄ − f_i), with f_i from the mean that leaves out sample i. Their
/// mean is f of the mean of all, and the covariance of their mean is that of the jackknife, so that what can be fitted to samples can be
/// fitted to such numbers. `None` where one of the means gives no number, or of fewer than two samples.
pub fn pseudo_values(samples: &[Vec<f64>], f: impl Fn(&[f64]) -> Option<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = samples.len();
    let length = samples.first().filter(|_| n > 1)?.len();
    let sums: Vec<f64> = (0..length).map(|k| samples.iter().map(|sample| sample[k]).sum()).collect();
    let whole = f(&sums.iter().map(|sum| sum / n as f64).collect::<Vec<_>>())?;
    let without =
        |left: &Vec<f64>| f(&sums.iter().zip(left).map(|(sum, own)| (sum - own) / (n - 1) as f64).collect::<Vec<_>>());
    let others: Vec<Vec<f64>> = samples.iter().map(without).collect::<Option<_>>()?;
    let mean = |k: usize| others.iter().map(|other| other[k]).sum::<f64>() / n as f64;
    let means: Vec<f64> = (0..whole.len()).map(mean).collect();
    let value = |(k, other): (usize, &f64)| whole[k] + (n - 1) as f64 * (means[k] - other);
    Some(others.iter().map(|other| other.iter().enumerate().map(value).collect()).collect())
}

/// Means of `size` samples one after the other, so that the jackknife leaves out whole bins: where samples are correlated,
/// bins that are longer than the correlation are not. Samples at the end that fill no bin are left out; where all of them fill
/// none, there is one bin of all. Panics where `size` is 0.
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

/// What `f` makes of the mean of the samples, with errors by the jackknife. Samples, one for each configuration, have equal
/// lengths; `f` gives equally many numbers each time, some of which it may not have.
pub fn jackknife(samples: &[Vec<f64>], f: impl Fn(&[f64]) -> Vec<Option<f64>>) -> Vec<Option<JackknifeEstimate>> {
    let n = samples.len();
    let Some(length) = samples.first().map(Vec::len) else { return Vec::new() };
    let sums: Vec<f64> = (0..length).map(|k| samples.iter().map(|sample| sample[k]).sum()).collect();
    let mean: Vec<f64> = sums.iter().map(|sum| sum / n as f64).collect();
    let without = |left: &Vec<f64>| -> Vec<f64> {
        sums.iter().zip(left).map(|(sum, own)| (sum - own) / (n - 1) as f64).collect()
    };
    let others: Vec<Vec<Option<f64>>> =
        if n > 1 { samples.iter().map(|sample| f(&without(sample))).collect() } else { Vec::new() };
    let estimate = |(k, value): (usize, Option<f64>)| {
        let value = value?;
        let all: Option<Vec<f64>> = others.iter().map(|other| other[k]).collect();
        let error = match all {
            Some(all) if n > 1 => {
                let mean = all.iter().sum::<f64>() / n as f64;
                let square: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
                (square * (n - 1) as f64 / n as f64).sqrt()
            }
            _ => f64::NAN,
        };
        Some(JackknifeEstimate { value, error })
    };
    f(&mean).into_iter().enumerate().map(estimate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of samples that come in equal pairs the error is √2 times too small without bins, but for one in n − 1.
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

    /// For the mean itself the jackknife's error is that of the mean.
    #[test]
    fn errors_of_means() {
        let samples: Vec<Vec<f64>> = [1.0, 2.0, 4.0, 3.0].iter().map(|x| vec![*x, 10.0 * x]).collect();
        let found = jackknife(&samples, |mean| mean.iter().map(|x| Some(*x)).collect());
        let variance = [1.0f64, 2.0, 4.0, 3.0].iter().map(|x| (x - 2.5).powi(2)).sum::<f64>() / 3.0;
        for (k, factor) in [(0, 1.0), (1, 10.0)] {
            let JackknifeEstimate { value, error } = found[k].unwrap();
            assert!((value - 2.5 * factor).abs() < 1e-12 && (error - factor * (variance / 4.0).sqrt()).abs() < 1e-12);
        }
        let single = jackknife(&samples[..1], |mean| vec![Some(mean[0]), None]);
        assert!(single[0].unwrap().error.is_nan() && single[1].is_none());
        assert!(jackknife(&[], |_| vec![Some(1.0)]).is_empty());
    }

    /// Of the mean the error is that of the mean but for the finite number of draws, 1/√(2 draws) of it: 5 of these here. Of its
    /// square, whose error is 2 x times as large but for terms of order 1/n, the same.
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

    /// Their mean and its error are those of the jackknife.
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
        assert_eq!(pseudo_values(&samples[..1], f), None);
    }
}
