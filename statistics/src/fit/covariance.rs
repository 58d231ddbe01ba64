//! Covariance matrices of means, estimated from samples.
use std::ops::Range;

use nalgebra::{Cholesky, DMatrix, DVectorViewMut};

/// Estimator of the covariance of the mean of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CovarianceKind {
    /// Sample covariance, without changes.
    Full,
    /// Covariance whose correlations are multiplied by 1 − λ. λ = Σ_{x≠y} Var(r_xy) / Σ_{x≠y} r_xy², at most 1, minimises the expected
    /// distance to the true covariance (Schäfer and Strimmer 2005). It is intended for so few samples that the inverse of the full matrix
    /// is noise.
    Shrunk,
    /// Diagonal covariance, without correlations.
    Diagonal,
}

/// Covariance of the mean of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariance {
    count: usize,
    /// Standard deviations of the mean.
    errors: Vec<f64>,
    /// Sample correlations, row by row.
    correlations: Vec<f64>,
    /// Shrinkage parameter λ.
    shrinkage: f64,
}

impl Covariance {
    /// Estimates the covariance of the mean of samples, at least two of them and all of equal length.
    pub fn of_mean(samples: &[Vec<f64>], kind: CovarianceKind) -> Self {
        let (n, count) = (samples.len(), samples.first().map_or(0, Vec::len));
        let number = n as f64;
        let mean = |k: usize| samples.iter().map(|sample| sample[k]).sum::<f64>() / number;
        let means: Vec<f64> = (0..count).map(mean).collect();
        let variance = |k: usize| samples.iter().map(|s| (s[k] - means[k]).powi(2)).sum::<f64>() / (number - 1.0);
        let deviations: Vec<f64> = (0..count).map(|k| variance(k).sqrt()).collect();
        // A quantity that does not vary gets no correlations, because dividing by its deviation would give NaN.
        let standard =
            |s: &Vec<f64>, k: usize| if deviations[k] > 0.0 { (s[k] - means[k]) / deviations[k] } else { 0.0 };
        let z: Vec<Vec<f64>> = samples.iter().map(|s| (0..count).map(|k| standard(s, k)).collect()).collect();
        let mut correlations = vec![0.0; count * count];
        let (mut variances, mut squares) = (0.0, 0.0);
        for i in 0..count {
            correlations[i * count + i] = 1.0;
            for j in 0..i {
                let sum: f64 = z.iter().map(|z| z[i] * z[j]).sum();
                let r = sum / (number - 1.0);
                (correlations[i * count + j], correlations[j * count + i]) = (r, r);
                let spread: f64 = z.iter().map(|z| (z[i] * z[j] - sum / number).powi(2)).sum();
                variances += spread * number / (number - 1.0).powi(3);
                squares += r * r;
            }
        }
        let shrinkage = match kind {
            CovarianceKind::Full => 0.0,
            CovarianceKind::Shrunk if squares > 0.0 => (variances / squares).min(1.0),
            CovarianceKind::Shrunk | CovarianceKind::Diagonal => 1.0,
        };
        let errors = deviations.into_iter().map(|d| d / number.sqrt()).collect();
        Covariance { count, errors, correlations, shrinkage }
    }
    /// Returns the shrinkage parameter λ; correlations are multiplied by 1 − λ.
    pub fn shrinkage(&self) -> f64 {
        self.shrinkage
    }
    /// Returns the standard deviations of the mean.
    pub fn errors(&self) -> &[f64] {
        &self.errors
    }
    /// Returns the sample covariance of means i and j, without shrinkage.
    pub fn entry(&self, i: usize, j: usize) -> f64 {
        self.errors[i] * self.errors[j] * self.correlations[i * self.count + j]
    }
    /// Returns L⁻¹ of C = L Lᵀ for a range of the means, or `None` if C has no inverse in double precision.
    pub fn whitening(&self, part: Range<usize>) -> Option<Whitening> {
        let (n, start) = (part.len(), part.start);
        let entry = |i: usize, j: usize| self.correlations[(start + i) * self.count + start + j];
        Whitening::of(&self.errors[part], |i, j| if i == j { 1.0 } else { (1.0 - self.shrinkage) * entry(i, j) }, n)
    }
    /// Returns L⁻¹ for the covariance without one sample. `deviation` is the deviation of this sample from the mean of all `samples`
    /// samples; λ is unchanged.
    pub(super) fn whitening_without(&self, part: Range<usize>, deviation: &[f64], samples: usize) -> Option<Whitening> {
        let (n, number) = (part.len(), samples as f64);
        // The covariance of samples is that of the mean times the number of samples.
        let left = |i: usize, j: usize| {
            let all = number * self.entry(part.start + i, part.start + j);
            ((number - 1.0) * all - number / (number - 1.0) * deviation[i] * deviation[j]) / (number - 2.0)
        };
        let errors: Vec<f64> = (0..n).map(|i| left(i, i).sqrt()).collect();
        let entry = |i: usize, j: usize| match i == j {
            true => 1.0,
            false => (1.0 - self.shrinkage) * left(i, j) / (errors[i] * errors[j]),
        };
        Whitening::of(&errors, entry, n)
    }
}

/// Matrix L⁻¹ of C = L Lᵀ, which transforms means to independent numbers of variance 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Whitening {
    /// Cholesky factor of the correlations.
    lower: DMatrix<f64>,
    errors: Vec<f64>,
}

impl Whitening {
    fn of(errors: &[f64], correlation: impl Fn(usize, usize) -> f64, n: usize) -> Option<Self> {
        if errors.iter().any(|e| !(*e > 0.0 && e.is_finite())) {
            return None;
        }
        // The correlations are factorised instead of the covariances, so that means of different magnitude lose no digits.
        let lower = Cholesky::new(DMatrix::from_fn(n, n, correlation))?.l();
        // Correlations are accurate to about 1e-16, so a pivot below 1e-14 is a rounding error. The diagonal of L contains the square roots
        // of the pivots.
        if lower.diagonal().min() < 1e-7 {
            return None;
        }
        Some(Whitening { lower, errors: errors.to_vec() })
    }
    /// Replaces v by L⁻¹ v.
    pub fn apply(&self, v: &mut [f64]) {
        v.iter_mut().zip(&self.errors).for_each(|(v, e)| *v /= e);
        let n = v.len();
        // The diagonal has no zeros, so a solution exists.
        self.lower.solve_lower_triangular_mut(&mut DVectorViewMut::from_slice(v, n));
    }
    /// Estimates how much rounding of v may change L⁻¹ v: a few units of the last digit of each v_k, propagated by the columns of L⁻¹.
    pub(super) fn rounding(&self, v: &[f64]) -> f64 {
        let column = |k: usize| {
            let mut unit = vec![0.0; v.len()];
            unit[k] = v[k];
            self.apply(&mut unit);
            unit.iter().map(|x| x * x).sum::<f64>()
        };
        16.0 * f64::EPSILON * (0..v.len()).map(column).sum::<f64>().sqrt()
    }
    /// Computes L⁻ᵀ v.
    pub(super) fn applied_transposed(&self, v: &[f64]) -> Vec<f64> {
        let (mut x, n) = (v.to_vec(), v.len());
        self.lower.tr_solve_lower_triangular_mut(&mut DVectorViewMut::from_slice(&mut x, n));
        x.iter_mut().zip(&self.errors).for_each(|(x, e)| *x /= e);
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks three samples of three numbers by hand: deviations (−1, 0, 1), (1, 0, −1) and (−1, 2, −1).
    #[test]
    fn covariances_are_those_of_the_mean() {
        let samples = [vec![0.0, 6.0, 4.0], vec![1.0, 5.0, 7.0], vec![2.0, 4.0, 4.0]];
        let covariance = Covariance::of_mean(&samples, CovarianceKind::Full);
        let expected = [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 3.0]];
        for (i, row) in expected.iter().enumerate() {
            for (j, entry) in row.iter().enumerate() {
                assert!((covariance.entry(i, j) - entry / 3.0).abs() < 1e-15, "{i} {j}");
            }
        }
        // The first two numbers are equal up to the sign.
        assert_eq!(covariance.whitening(0..2), None);
        let whitening = covariance.whitening(1..3).unwrap();
        let mut v = [1.0, 2.0];
        whitening.apply(&mut v);
        assert!((v[0] - 3f64.sqrt()).abs() < 1e-14 && (v[1] - 2.0).abs() < 1e-14, "{v:?}");
        let diagonal = Covariance::of_mean(&samples, CovarianceKind::Diagonal);
        assert_eq!((diagonal.shrinkage(), diagonal.entry(0, 1)), (1.0, covariance.entry(0, 1)));
        assert!(diagonal.whitening(0..2).is_some());
        // z = (−1, 0, 1), (1, 0, −1), (−1, 2, −1)/√3. Products −1, 0, −1: mean −2/3, squares of deviations 2/3; 1/√3 (1, 0, −1) twice: 2/3.
        // Var(r) = 2/3 · 3/8 = 1/4 each, Σ r² = 1: λ = 3/4.
        let shrunk = Covariance::of_mean(&samples, CovarianceKind::Shrunk);
        assert!((shrunk.shrinkage() - 0.75).abs() < 1e-14, "{}", shrunk.shrinkage());
        let constant = [vec![1.0, 2.0], vec![1.0, 3.0]];
        assert_eq!(Covariance::of_mean(&constant, CovarianceKind::Diagonal).whitening(0..1), None);
    }
}
