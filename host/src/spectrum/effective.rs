//! Effective masses, and errors by the jackknife.

/// How a correlator falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// cosh m (T/2 − t): the same forwards and backwards.
    Cosh,
    /// exp(−m t): forwards only.
    Exponential,
}

/// m between t and t + 1 for each t, from C(t)/C(t+1); `None` where no m gives that ratio. With [`Shape::Cosh`] there are T/2
/// of them, else T − 1.
pub fn effective_masses(correlator: &[f64], shape: Shape) -> Vec<Option<f64>> {
    let extent = correlator.len();
    let last = if shape == Shape::Cosh { extent / 2 } else { extent.saturating_sub(1) };
    let one = |t: usize| {
        let ratio = correlator[t] / correlator[t + 1];
        match shape {
            Shape::Exponential => Some(ratio.ln()).filter(|m| m.is_finite()),
            Shape::Cosh => cosh_mass(ratio, 0.5 * extent as f64 - t as f64),
        }
    };
    (0..last).map(one).collect()
}

/// m with cosh(m d) / cosh(m (d − 1)) = `ratio`, which grows with m from 1 on for d ≥ ½ (for d = ½ it is always 1).
fn cosh_mass(ratio: f64, distance: f64) -> Option<f64> {
    // cosh, without its growth: cosh(m d) = e^{m d} (1 + e^{−2 m d}) / 2.
    let of = |m: f64| {
        let (a, b) = (m * distance, m * (distance - 1.0));
        (a.abs() - b.abs()).exp() * (1.0 + (-2.0 * a.abs()).exp()) / (1.0 + (-2.0 * b.abs()).exp())
    };
    if !ratio.is_finite() || ratio < 1.0 {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while of(high) < ratio {
        high *= 2.0;
        if high > 1e3 {
            return None;
        }
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if of(middle) < ratio {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(0.5 * (low + high))
}

/// A number from the mean over all samples, and its error from the means that leave out one each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
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
pub fn jackknife(samples: &[Vec<f64>], f: impl Fn(&[f64]) -> Vec<Option<f64>>) -> Vec<Option<Estimate>> {
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
        Some(Estimate { value, error })
    };
    f(&mean).into_iter().enumerate().map(estimate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_of_pure_states() {
        for m in [1e-3, 0.1, 0.7, 3.0] {
            for extent in [4, 7, 32] {
                let half = 0.5 * extent as f64;
                let cosh: Vec<f64> = (0..extent).map(|t| (m * (half - t as f64)).cosh()).collect();
                let masses = effective_masses(&cosh, Shape::Cosh);
                assert_eq!(masses.len(), extent / 2);
                for (t, found) in masses.iter().enumerate() {
                    // Next to the middle of an odd extent both times are equally far from it.
                    if half - t as f64 > 0.6 {
                        assert!((found.unwrap() / m - 1.0).abs() < 1e-7 / m.min(1.0), "{m} {extent} {t}: {found:?}");
                    }
                }
                let falling: Vec<f64> = (0..extent).map(|t| (-m * t as f64).exp()).collect();
                let masses = effective_masses(&falling, Shape::Exponential);
                assert!(masses.len() == extent - 1 && masses.iter().all(|found| (found.unwrap() - m).abs() < 1e-12));
            }
        }
        assert_eq!(effective_masses(&[1.0, 2.0, 1.0, 2.0], Shape::Cosh)[0], None);
        assert_eq!(effective_masses(&[1.0, -2.0], Shape::Exponential), [None]);
    }

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
            let Estimate { value, error } = found[k].unwrap();
            assert!((value - 2.5 * factor).abs() < 1e-12 && (error - factor * (variance / 4.0).sqrt()).abs() < 1e-12);
        }
        let single = jackknife(&samples[..1], |mean| vec![Some(mean[0]), None]);
        assert!(single[0].unwrap().error.is_nan() && single[1].is_none());
        assert!(jackknife(&[], |_| vec![Some(1.0)]).is_empty());
    }
}
