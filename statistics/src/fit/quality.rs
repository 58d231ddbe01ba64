//! Quality of a fit: expected χ² and p-value.
use super::covariance::{Covariance, Whitening};
use super::least_squares::{Data, Model, residuals};
use statrs::function::beta::checked_beta_reg;
use statrs::function::gamma::checked_gamma_ur;
use std::ops::Range;

/// Quality of a fit: the mean χ² with the correct function, and the probability of a larger χ².
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Expected χ²: the number of degrees of freedom if χ² contains the full covariance. Otherwise it is tr (1 − P) L⁻¹ C L⁻ᵀ, with the
    /// sample covariance C, the matrix L Lᵀ used in χ², and the projector P to L⁻¹ ∂f/∂p (Bruno and Sommer 2022).
    pub expected_chi2: f64,
    /// Probability of a larger χ². With the full covariance from N samples, χ² (N − ν)/(ν (N − 1)) has the F distribution with ν and N −
    /// ν degrees of freedom (Hotelling 1931; Toussaint and Freeman 2008). Otherwise χ² is approximated by a multiple of a χ² distribution
    /// with the same mean and variance (Satterthwaite 1946). The value is NaN if ν ≥ N with the full covariance, or if the expected χ² is
    /// 0 because changes of the parameters can absorb all differences of the samples.
    pub p_value: f64,
}

impl Quality {
    /// Returns the quality of a fit with the full covariance of `samples` samples. The p-value is NaN unless there are more samples than
    /// degrees of freedom.
    pub fn correlated(chi2: f64, dof: usize, samples: usize) -> Self {
        let (nu, rest) = (dof as f64, samples as f64 - dof as f64);
        let f = chi2 * rest / (nu * (samples as f64 - 1.0));
        // The p-value is NaN if there are not more samples than degrees of freedom, or if χ² is NaN.
        let p_value = checked_beta_reg(0.5 * rest, 0.5 * nu, rest / (rest + nu * f)).unwrap_or(f64::NAN);
        Quality { expected_chi2: nu, p_value }
    }
    /// Returns the quality of a fit whose χ² uses a matrix other than the full covariance.
    pub fn of(
        chi2: f64,
        model: &dyn Model,
        x: &[f64],
        parameters: &[f64],
        whitening: &Whitening,
        covariance: (&Covariance, Range<usize>),
    ) -> Self {
        let (covariance, part) = covariance;
        let n = part.len();
        // R is L⁻¹ C L⁻ᵀ. Because C is symmetric, its columns are whitened first, and then the rows of the result.
        let mut columns: Vec<Vec<f64>> =
            part.clone().map(|j| part.clone().map(|i| covariance.entry(i, j)).collect()).collect();
        columns.iter_mut().for_each(|column| whitening.apply(column));
        let mut rows: Vec<Vec<f64>> = (0..n).map(|i| columns.iter().map(|column| column[i]).collect()).collect();
        rows.iter_mut().for_each(|row| whitening.apply(row));
        let before: f64 = (0..n).map(|i| rows[i][i]).sum();
        // Makes an orthonormal basis of L⁻¹ ∂f/∂p. This basis is projected out of R later, from both sides.
        let data = Data { x, y: x, whitening };
        let mut basis: Vec<Vec<f64>> = Vec::new();
        for mut column in residuals(model, data, parameters).1 {
            let length = |column: &[f64]| column.iter().map(|x| x * x).sum::<f64>().sqrt();
            let whole = length(&column);
            // Two passes make the column orthogonal to the basis up to rounding errors.
            for _ in 0..2 {
                basis.iter().for_each(|b| take_off(&mut column, b));
            }
            let norm = length(&column);
            // A derivative that depends on the others up to rounding adds no direction.
            if norm > 1e-12 * whole {
                column.iter_mut().for_each(|x| *x /= norm);
                basis.push(column);
            }
        }
        for b in &basis {
            rows.iter_mut().for_each(|row| take_off(row, b));
        }
        let mut columns: Vec<Vec<f64>> = (0..n).map(|j| rows.iter().map(|row| row[j]).collect()).collect();
        for b in &basis {
            columns.iter_mut().for_each(|column| take_off(column, b));
        }
        let expected: f64 = (0..n).map(|i| columns[i][i]).sum();
        // If changes of the parameters can absorb all differences of the samples, only rounding errors remain.
        if expected.is_nan() || expected <= 1e-10 * before {
            return Quality { expected_chi2: 0.0, p_value: f64::NAN };
        }
        let squares: f64 = columns.iter().flatten().map(|x| x * x).sum();
        let (scale, shape) = (squares / expected, expected * expected / squares);
        let p_value =
            if chi2 > 0.0 { checked_gamma_ur(0.5 * shape, 0.5 * chi2 / scale).unwrap_or(f64::NAN) } else { 1.0 };
        Quality { expected_chi2: expected, p_value }
    }
}

/// Replaces v by v − b (b, v), where b has length 1.
fn take_off(v: &mut [f64], b: &[f64]) {
    let along: f64 = v.iter().zip(b).map(|(v, b)| v * b).sum();
    v.iter_mut().zip(b).for_each(|(v, b)| *v -= along * b);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks two degrees of freedom, for which the tail of F is (1 + 2 f/d)^{−d/2}, and many samples, for which the tail of χ² is
    /// exp(−χ²/2).
    #[test]
    fn tails_are_those_of_the_distributions() {
        for (chi2, samples) in [(1.0, 12), (5.0, 12), (3.0, 30)] {
            let d = f64::from(samples - 2);
            let f = chi2 * d / (2.0 * f64::from(samples - 1));
            let found = Quality::correlated(chi2, 2, samples as usize);
            assert!((found.p_value - (1.0 + 2.0 * f / d).powf(-0.5 * d)).abs() < 1e-12, "{found:?}");
        }
        assert!((Quality::correlated(3.0, 2, 10_000_000).p_value - (-1.5f64).exp()).abs() < 1e-6);
        assert!(Quality::correlated(3.0, 4, 4).p_value.is_nan());
    }
}
