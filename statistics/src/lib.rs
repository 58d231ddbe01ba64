//! Statistical analysis of measurements.
//!
//! | module | contents |
//! |---|---|
//! | [`average`] | means of correlated series, with errors that include the autocorrelation |
//! | [`jackknife`] | errors of quantities computed from means, by the jackknife and the bootstrap |
//! | [`effective`] | effective masses of correlators |
//! | [`fit`] | correlated least squares: correlators, the static potential, windows by an information criterion |
//! | [`pcac`] | the quark mass of the axial current |
//! | [`scale`] | t₀ and w₀ of the gradient flow |
//!
//! This is a separate crate because both the library `ferrite` and the crate `report` use it, and neither depends on the other.
#![forbid(unsafe_code)]

pub mod effective;
pub mod fit;
pub mod jackknife;
pub mod pcac;
pub mod scale;

/// Mean of a series, with its error and autocorrelation time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// Mean Σ x_i / n.
    pub mean: f64,
    /// One standard deviation of the mean.
    pub error: f64,
    /// Integrated autocorrelation time, in steps of the series. It is at least ½, the value for independent numbers.
    pub autocorrelation: f64,
}

/// Computes the mean of a series, and its error √(2 τ σ² / n) by the integrated autocorrelation time τ = ½ + Σ_t ρ(t), summed up to the
/// first t ≥ 6 τ (Madras and Sokal 1988). The error of a series of fewer than two numbers is NaN.
pub fn average(series: &[f64]) -> Average {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n as f64;
    let covariance = |t: usize| {
        let pairs = series.iter().zip(&series[t..]);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / (n - t) as f64
    };
    if n < 2 {
        return Average { mean, error: f64::NAN, autocorrelation: f64::NAN };
    }
    let variance = covariance(0);
    if variance == 0.0 {
        return Average { mean, error: 0.0, autocorrelation: 0.5 };
    }
    let mut tau = 0.5;
    for t in 1..n / 2 {
        tau += covariance(t) / variance;
        if t as f64 >= 6.0 * tau {
            break;
        }
    }
    // A smaller τ is not trusted, because anticorrelation by chance could make the error vanish.
    let tau = tau.max(0.5);
    Average { mean, error: (2.0 * tau * variance / (n - 1) as f64).sqrt(), autocorrelation: tau }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::random::Philox;

    #[test]
    fn errors_cover_the_truth() {
        // x' = ρ x + noise: τ = ½ (1 + ρ) / (1 − ρ), variance of x 1 / (1 − ρ²).
        for rho in [0.0, 0.5, 0.8] {
            let mut stream = Philox::new(1, 2, 3);
            let tau = 0.5 * (1.0 + rho) / (1.0 - rho);
            let (runs, length, mut within, mut x, mut taus) = (200, 2000, 0, 0.0, 0.0);
            for _ in 0..runs {
                let series: Vec<f64> = (0..length / 2).flat_map(|_| stream.normal_pair()).collect();
                let series: Vec<f64> = series
                    .iter()
                    .map(|noise| {
                        x = rho * x + noise;
                        x
                    })
                    .collect();
                let average = average(&series);
                within += u32::from(average.mean.abs() < average.error);
                // One estimate has an error of √((4 W + 2) / n), W = 6 τ, and a long tail above: only the mean of all is checked.
                taus += average.autocorrelation;
            }
            assert!((taus / f64::from(runs) / tau - 1.0).abs() < 0.1, "{taus} {tau}");
            assert!((0.56..0.78).contains(&(f64::from(within) / f64::from(runs))), "{rho}: {within} of {runs}");
        }
        assert_eq!(average(&[2.0; 5]), Average { mean: 2.0, error: 0.0, autocorrelation: 0.5 });
    }
}

/// Tests of degenerate data: no input may cause a panic.
#[cfg(test)]
mod degenerate {
    use crate::effective::{CorrelatorShape, effective_masses};
    use crate::fit::correlator::{CorrelatorSettings, fit_correlator};
    use crate::fit::covariance::CovarianceKind;
    use crate::fit::potential::{LoopsAt, potential};
    use crate::jackknife::{Resampling, bins};
    use crate::pcac::{fit_pcac, pcac_masses};
    use crate::{average, scale};
    use proptest::prelude::*;

    /// Generates samples by time, of equal or different lengths, each a factor times a function, with numbers that are often special.
    fn samples() -> impl Strategy<Value = Vec<Vec<f64>>> {
        let special = prop_oneof![
            5 => -2.0..2.0f64,
            2 => Just(0.0),
            2 => Just(1.0),
            1 => Just(-1.0),
            1 => Just(1e-300),
            1 => Just(1e300),
            1 => Just(f64::NAN),
            1 => Just(f64::INFINITY),
        ];
        let energy = prop_oneof![Just(0.0), 0.0..4.0f64, Just(700.0), -1.0..0.0f64];
        let factor = prop_oneof![Just(1.0), special.clone(), 0.9..1.1f64];
        let common = (0..14usize, 0..18usize, energy, prop::collection::vec(factor, 14), any::<bool>()).prop_map(
            |(count, extent, energy, factors, two)| {
                let second = |t: usize| if two { -0.5 * (-1.5 * energy * t as f64).exp() } else { 0.0 };
                let function = |t: usize| (-energy * t as f64).exp() + second(t);
                factors[..count].iter().map(|a| (0..extent).map(|t| a * function(t)).collect()).collect()
            },
        );
        let free = prop::collection::vec(prop::collection::vec(special.clone(), 12), 0..10);
        let ragged = prop::collection::vec(prop::collection::vec(special, 0..12), 0..8);
        prop_oneof![4 => common, 2 => free, 1 => ragged]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn fits_never_panic(
            samples in samples(),
            shape in prop::sample::select(vec![CorrelatorShape::Cosh, CorrelatorShape::Sinh, CorrelatorShape::Exponential]),
            covariance in prop::sample::select(vec![
                None, Some(CovarianceKind::Full), Some(CovarianceKind::Shrunk), Some(CovarianceKind::Diagonal),
            ]),
            states in prop::sample::select(vec![vec![1], vec![2], vec![1, 2]]),
            window in prop::option::of([0..30usize, 0..30usize]),
            bootstrap in any::<bool>(),
        ) {
            let resampling = if bootstrap { Resampling::Bootstrap { draws: 10, seed: 1 } } else { Resampling::Jackknife };
            let settings = CorrelatorSettings { window, states, covariance, resampling };
            let _ = fit_correlator(&samples, shape, &settings);
            let _ = fit_pcac(&samples, 0.1, &settings);
            let loops: Vec<LoopsAt> = (1..if settings.window.is_some() { 6 } else { 2 })
                .map(|r| {
                    let scaled = |s: &Vec<f64>| s.iter().map(|w| w * (-0.1 * f64::from(r)).exp()).collect();
                    LoopsAt { distance: f64::from(r), samples: samples.iter().map(scaled).collect() }
                })
                .collect();
            let _ = potential(&loops, &settings, bootstrap.then_some([1.0, 9.0]));
            for sample in &samples {
                let _ = (effective_masses(sample, shape), average(sample), pcac_masses(sample, sample, 0.1));
                let points: Vec<(f64, f64)> = sample.iter().enumerate().map(|(k, y)| (k as f64, *y)).collect();
                let _ = (scale::t0(&points, 0.3), scale::w0(&points, 0.3));
            }
            let _ = bins(&samples[..samples.len().min(1)], 3);
        }
    }
}
