//! The method of Levenberg and Marquardt for functions of few parameters.
use super::covariance::{Whitening, cholesky, solve_cholesky};

/// A function of a place, with parameters.
pub trait Model {
    /// How many parameters there are.
    fn count(&self) -> usize;
    /// f(x; p); ∂f/∂p_k goes to `gradient`.
    fn value(&self, x: f64, parameters: &[f64], gradient: &mut [f64]) -> f64;
}

/// Data to which a function is fitted.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Places.
    pub x: &'a [f64],
    /// Values there.
    pub y: &'a [f64],
    /// Their covariance.
    pub whitening: &'a Whitening,
}

/// Where χ² is smallest.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    /// p
    pub parameters: Vec<f64>,
    /// χ² there.
    pub chi2: f64,
}

/// Residuals r = L⁻¹ (y − f) with C = L Lᵀ, and their derivatives −∂r/∂p, by parameter.
pub(super) fn residuals(model: &dyn Model, data: Data, parameters: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let count = model.count();
    let (mut r, mut jacobian) = (Vec::with_capacity(data.x.len()), vec![vec![0.0; data.x.len()]; count]);
    let mut gradient = vec![0.0; count];
    for (row, (x, y)) in data.x.iter().zip(data.y).enumerate() {
        r.push(y - model.value(*x, parameters, &mut gradient));
        jacobian.iter_mut().zip(&gradient).for_each(|(column, g)| column[row] = *g);
    }
    data.whitening.apply(&mut r);
    jacobian.iter_mut().for_each(|column| data.whitening.apply(column));
    (r, jacobian)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The parameters are found where a step would change χ² by less times 1 + χ²: by 10⁻⁷ standard deviations where the function fits.
const SMALL: f64 = 1e-14;
/// Most steps. Two states that the data can hardly tell apart take some hundred.
const STEPS: usize = 500;

/// The derivatives of the parameters at the minimum with respect to the data, by parameter: B = (Jᵀ J)⁻¹ Jᵀ L⁻¹ with J = L⁻¹ ∂f/∂p.
pub(super) fn response(
    model: &dyn Model,
    x: &[f64],
    whitening: &Whitening,
    parameters: &[f64],
) -> Option<Vec<Vec<f64>>> {
    let (_, jacobian) = residuals(model, Data { x, y: x, whitening }, parameters);
    let count = model.count();
    let scale: Vec<f64> = jacobian.iter().map(|column| dot(column, column).sqrt()).collect();
    let entry = |k: usize| dot(&jacobian[k / count], &jacobian[k % count]) / (scale[k / count] * scale[k % count]);
    let lower = cholesky(&(0..count * count).map(entry).collect::<Vec<_>>(), count)?;
    // L⁻ᵀ J, a column of which goes with each of the data.
    let columns: Vec<Vec<f64>> = jacobian.iter().map(|column| whitening.applied_transposed(column)).collect();
    let mut all = vec![vec![0.0; x.len()]; count];
    for row in 0..x.len() {
        let one: Vec<f64> = (0..count).map(|k| columns[k][row] / scale[k]).collect();
        let solved = solve_cholesky(&lower, &one);
        all.iter_mut().zip(solved).zip(&scale).for_each(|((b, s), scale)| b[row] = s / scale);
    }
    Some(all)
}

/// The minimum of χ² next to where the search starts; `None` where there is none, or parameters are not determined by the data.
pub fn minimise(model: &dyn Model, data: Data, start: &[f64]) -> Option<Minimum> {
    let count = model.count();
    let (mut parameters, mut damping) = (start.to_vec(), 1e-3);
    let (mut r, mut jacobian) = residuals(model, data, &parameters);
    let mut chi2 = dot(&r, &r);
    // What residuals lose by rounding: they are differences of numbers as large as the data.
    let mut whole = data.y.to_vec();
    data.whitening.apply(&mut whole);
    let rounding = 1e-15 * dot(&whole, &whole).sqrt();
    for _ in 0..STEPS {
        // In units in which each parameter alone has the variance 1.
        let scale: Vec<f64> = jacobian.iter().map(|column| dot(column, column).sqrt()).collect();
        if !chi2.is_finite() || scale.iter().any(|s| !(*s > 0.0 && s.is_finite())) {
            return None;
        }
        let gradient: Vec<f64> = jacobian.iter().zip(&scale).map(|(column, s)| dot(column, &r) / s).collect();
        let step = |damping: f64| {
            let entry = |i: usize, j: usize| match i == j {
                true => 1.0 + damping,
                false => dot(&jacobian[i], &jacobian[j]) / (scale[i] * scale[j]),
            };
            let matrix: Vec<f64> = (0..count * count).map(|k| entry(k / count, k % count)).collect();
            Some(solve_cholesky(&cholesky(&matrix, count)?, &gradient))
        };
        if let Some(whole) = step(0.0)
            && dot(&whole, &gradient) < SMALL * (1.0 + chi2) + rounding * rounding
        {
            // What is left is a step of Gauss and Newton, which no comparison of two χ² can judge.
            let better: Vec<f64> = (0..count).map(|k| parameters[k] + whole[k] / scale[k]).collect();
            let (last, _) = residuals(model, data, &better);
            return Some(Minimum { parameters: better, chi2: dot(&last, &last) }).filter(|m| m.chi2.is_finite());
        }
        let Some(tried) = step(damping) else {
            damping = (10.0 * damping).max(1e-3);
            continue;
        };
        let there: Vec<f64> = (0..count).map(|k| parameters[k] + tried[k] / scale[k]).collect();
        let (r_there, jacobian_there) = residuals(model, data, &there);
        let chi2_there = dot(&r_there, &r_there);
        // Differences below rounding are none.
        if chi2_there <= chi2 * (1.0 + 1e-13) + rounding * (chi2.sqrt() + rounding) {
            (parameters, r, jacobian, chi2) = (there, r_there, jacobian_there, chi2_there);
            damping = (0.1 * damping).max(1e-15);
        } else {
            damping *= 10.0;
            if damping > 1e20 {
                return None;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::covariance::{Covariance, CovarianceKind};

    /// a + b x + c x²
    struct Parabola;
    impl Model for Parabola {
        fn count(&self) -> usize {
            3
        }
        fn value(&self, x: f64, p: &[f64], gradient: &mut [f64]) -> f64 {
            gradient.copy_from_slice(&[1.0, x, x * x]);
            p[0] + p[1] * x + p[2] * x * x
        }
    }

    /// Normal equations of a linear function, solved by elimination.
    #[test]
    fn linear_functions_have_their_normal_equations() {
        let samples: Vec<Vec<f64>> = (0..12u32)
            .map(|k| (0..5u32).map(|x| f64::from((k * k * 7 + x * 13 * k + x * x * 5) % 17)).collect())
            .collect();
        let covariance = Covariance::of_mean(&samples, CovarianceKind::Full);
        let x = [0.0, 1.0, 2.0, 3.0, 4.0];
        let y: Vec<f64> = (0..5).map(|k| samples.iter().map(|s| s[k]).sum::<f64>() / 12.0).collect();
        let whitening = covariance.whitening(0..5).unwrap();
        let found = minimise(&Parabola, Data { x: &x, y: &y, whitening: &whitening }, &[0.0, 0.0, 0.0]).unwrap();
        // C⁻¹ by elimination of [C | 1].
        let mut a: Vec<Vec<f64>> = (0..5)
            .map(|i| {
                (0..10).map(|j| if j < 5 { covariance.entry(i, j) } else { f64::from(u8::from(j - 5 == i)) }).collect()
            })
            .collect();
        eliminate(&mut a);
        let inverse = |i: usize, j: usize| a[i][5 + j];
        let power = |x: f64, k: usize| x.powi(k as i32);
        let mut normal: Vec<Vec<f64>> = (0..3)
            .map(|k| {
                let sum = |g: &dyn Fn(usize) -> f64| -> f64 {
                    (0..25).map(|ij| power(x[ij / 5], k) * inverse(ij / 5, ij % 5) * g(ij % 5)).sum()
                };
                (0..4).map(|l| if l < 3 { sum(&|j| power(x[j], l)) } else { sum(&|j| y[j]) }).collect()
            })
            .collect();
        eliminate(&mut normal);
        for k in 0..3 {
            let scale = normal[k][3].abs().max(1.0);
            assert!((found.parameters[k] - normal[k][3]).abs() < 1e-10 * scale, "{k}: {found:?} {normal:?}");
        }
        let residual = |i: usize| y[i] - (0..3).map(|k| normal[k][3] * power(x[i], k)).sum::<f64>();
        let chi2: f64 = (0..25).map(|ij| residual(ij / 5) * inverse(ij / 5, ij % 5) * residual(ij % 5)).sum();
        assert!((found.chi2 / chi2 - 1.0).abs() < 1e-9, "{} {chi2}", found.chi2);
    }

    fn eliminate(a: &mut [Vec<f64>]) {
        for k in 0..a.len() {
            let largest = (k..a.len()).max_by(|i, j| a[*i][k].abs().total_cmp(&a[*j][k].abs())).unwrap();
            a.swap(k, largest);
            let pivot = a[k][k];
            a[k].iter_mut().for_each(|x| *x /= pivot);
            for i in (0..a.len()).filter(|i| *i != k) {
                let (factor, row) = (a[i][k], a[k].clone());
                a[i].iter_mut().zip(row).for_each(|(x, y)| *x -= factor * y);
            }
        }
    }
}
