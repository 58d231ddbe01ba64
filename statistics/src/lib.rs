//! What is made of measured numbers.
//!
//! | module | what |
//! |---|---|
//! | [`average`] | means of correlated series, with errors that know of the correlation |
//! | [`jackknife`] | errors of what is made of means, by the jackknife and the bootstrap |
//! | [`effective`] | effective masses of correlators |
//! | [`fit`] | correlated least squares: correlators, the static potential, windows by an information criterion |
//! | [`pcac`] | the quark mass of the axial current |
//! | [`scale`] | t₀ and w₀ of the gradient flow |
//!
//! A crate of its own, because both the library `ferrite` and the reports need it and neither needs the other.
#![forbid(unsafe_code)]

pub mod effective;
pub mod fit;
pub mod jackknife;
pub mod pcac;
pub mod scale;

/// The mean of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// Σ x_i / n
    pub mean: f64,
    /// One standard deviation of the mean.
    pub error: f64,
    /// The integrated autocorrelation time, in steps of the series: ½ for independent numbers, and not less.
    pub autocorrelation: f64,
}

/// Mean and error by the integrated autocorrelation time τ = ½ + Σ_t ρ(t), summed up to the first t ≥ 6 τ (Madras and
/// Sokal 1988); the error is √(2 τ σ² / n). A series of fewer than two numbers has no error: NaN.
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
    // Anticorrelation is believed only so far: by chance it could make an error vanish.
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
                // One estimate has an error of √((4 W + 2) / n), W = 6 τ, and a long tail above: the mean of all counts.
                taus += average.autocorrelation;
            }
            assert!((taus / f64::from(runs) / tau - 1.0).abs() < 0.1, "{taus} {tau}");
            assert!((0.56..0.78).contains(&(f64::from(within) / f64::from(runs))), "{rho}: {within} of {runs}");
        }
        assert_eq!(average(&[2.0; 5]), Average { mean: 2.0, error: 0.0, autocorrelation: 0.5 });
    }
}
