//! Errors by the jackknife: of numbers that are made of the means of samples.

/// A number from the mean over all samples, and its error from the means that leave out one each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JackknifeEstimate {
    /// From all samples.
    pub value: f64,
    /// One standard deviation; NaN from fewer than two samples, or where leaving out one gives no number.
    pub error: f64,
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
}
