//! The Levenberg-Marquardt method for functions with few parameters.
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use super::covariance::Whitening;

/// Fit function f(x; p) with parameters p.
pub trait Model: Sync {
    /// Returns the number of parameters.
    fn count(&self) -> usize;
    /// Computes f(x; p), and stores ∂f/∂p_k in `gradient`.
    fn value(&self, x: f64, parameters: &[f64], gradient: &mut [f64]) -> f64;
}

/// Data of a fit: arguments, values and covariance.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Arguments x of the data.
    pub x: &'a [f64],
    /// Values of the data.
    pub y: &'a [f64],
    /// Inverse Cholesky factor L⁻¹ of the covariance of the data.
    pub whitening: &'a Whitening,
}

/// Minimum of χ²: the parameters and the value of χ² there.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    /// Parameters p at which χ² is minimal.
    pub parameters: Vec<f64>,
    /// Value of χ² at the minimum.
    pub chi2: f64,
}

/// Computes the residuals r = L⁻¹ (y − f) with C = L Lᵀ, and the derivatives −∂r/∂p for each parameter.
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

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Largest number of steps of the Levenberg-Marquardt search; two nearly degenerate states take several hundred.
const STEPS: usize = 500;
/// Largest number of steps of Newton's method, each of which doubles the number of digits.
const NEWTON_STEPS: usize = 30;
/// Predicted decreases of χ² below which Newton's method begins; the first corresponds to 0.01 standard deviations from the minimum. If
/// Newton's method fails, because χ² is far from quadratic, the search continues down to the next value.
const HANDOVER: [f64; 3] = [1e-4, 1e-8, 1e-12];
/// Predicted decrease of χ² that is accepted at a minimum, unless rounding leaves more. It corresponds to 10⁻⁵ standard deviations;
/// jackknife means of 1000 samples differ by 0.03.
const LEFT: f64 = 1e-10;
/// Step of numerical second derivatives, in standard deviations. The truncation error is 10⁻⁶ standard deviations, and the rounding error
/// is smaller.
const DIFFERENCE: f64 = 1e-3;

/// Computes the derivatives of each parameter at the minimum with respect to the data: B = (Jᵀ J)⁻¹ Jᵀ L⁻¹ with J = L⁻¹ ∂f/∂p.
pub(super) fn response(
    model: &dyn Model,
    x: &[f64],
    whitening: &Whitening,
    parameters: &[f64],
) -> Option<Vec<Vec<f64>>> {
    let (_, jacobian) = residuals(model, Data { x, y: x, whitening }, parameters);
    let count = model.count();
    let scale: Vec<f64> = jacobian.iter().map(|column| dot(column, column).sqrt()).collect();
    let entry = |i: usize, j: usize| dot(&jacobian[i], &jacobian[j]) / (scale[i] * scale[j]);
    let normal = Cholesky::new(DMatrix::from_fn(count, count, entry))?;
    // The columns are those of L⁻ᵀ J; each of their entries belongs to one datum.
    let columns: Vec<Vec<f64>> = jacobian.iter().map(|column| whitening.applied_transposed(column)).collect();
    let mut all = vec![vec![0.0; x.len()]; count];
    for row in 0..x.len() {
        let solved = normal.solve(&DVector::from_fn(count, |k, _| columns[k][row] / scale[k]));
        all.iter_mut().zip(&solved).zip(&scale).for_each(|((b, s), scale)| b[row] = s / scale);
    }
    Some(all)
}

/// χ² and its derivatives at one point of the parameter space.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) parameters: Vec<f64>,
    jacobian: Vec<Vec<f64>>,
    /// Inverse of the standard deviation that each parameter would have alone: |J_k|.
    scale: Vec<f64>,
    /// Descent direction −½ ∂χ²/∂p.
    descent: Vec<f64>,
    chi2: f64,
}

/// Solves A x = b, where `factor` factorises A in units of `scale`.
fn solved(factor: &Cholesky<f64, Dyn>, b: &[f64], scale: &[f64]) -> Vec<f64> {
    over(factor.solve(&DVector::from_vec(over(b, scale))).as_slice(), scale)
}

/// Computes x_k / scale_k.
fn over(x: &[f64], scale: &[f64]) -> Vec<f64> {
    x.iter().zip(scale).map(|(x, s)| x / s).collect()
}

impl Place {
    fn at(model: &dyn Model, data: Data, parameters: Vec<f64>) -> Option<Self> {
        let (r, jacobian) = residuals(model, data, &parameters);
        Place::with(parameters, &r, jacobian)
    }
    /// Creates the point with residuals r and the derivatives −∂r/∂p of each parameter. Returns `None` if these are not finite, or if a
    /// parameter has no effect.
    pub(super) fn with(parameters: Vec<f64>, r: &[f64], jacobian: Vec<Vec<f64>>) -> Option<Self> {
        let chi2 = dot(r, r);
        let scale: Vec<f64> = jacobian.iter().map(|column| dot(column, column).sqrt()).collect();
        let usable = chi2.is_finite() && scale.iter().all(|s| *s > 0.0 && s.is_finite());
        let descent = jacobian.iter().map(|column| dot(column, r)).collect();
        usable.then_some(Place { parameters, jacobian, scale, descent, chi2 })
    }
    fn moved(&self, step: &[f64]) -> Vec<f64> {
        self.parameters.iter().zip(step).map(|(p, d)| p + d).collect()
    }
    /// Computes the damped Gauss-Newton step, (JᵀJ + damping · diag JᵀJ)⁻¹ Jᵀ r, and the decrease of χ² that is predicted without
    /// damping.
    fn gauss_newton(&self, damping: f64) -> Option<(Vec<f64>, f64)> {
        let count = self.parameters.len();
        let entry = |i: usize, j: usize| match i == j {
            true => 1.0 + damping,
            false => dot(&self.jacobian[i], &self.jacobian[j]) / (self.scale[i] * self.scale[j]),
        };
        let damped = Cholesky::new(DMatrix::from_fn(count, count, entry))?;
        let step = solved(&damped, &self.descent, &self.scale);
        let decrease = dot(&step, &self.descent);
        Some((step, decrease))
    }
}

/// Cholesky factor L of H = L Lᵀ, where H contains the second derivatives of ½ χ², computed from differences of the first ones.
struct Curvature {
    /// Inverse units of the parameters, in which the diagonal of H is near 1.
    scale: Vec<f64>,
    factor: Cholesky<f64, Dyn>,
}

impl Curvature {
    /// Computes the curvature at a point; returns `None` if H is not positive definite, so that no minimum is nearby.
    fn at(model: &dyn Model, data: Data, place: &Place) -> Option<Self> {
        let (count, scale) = (place.parameters.len(), place.scale.clone());
        let descent = |k: usize, sign: f64| {
            let mut there = place.parameters.clone();
            there[k] += sign * DIFFERENCE / scale[k];
            let (r, jacobian) = residuals(model, data, &there);
            over(&jacobian.iter().map(|column| dot(column, &r)).collect::<Vec<_>>(), &scale)
        };
        let column = |k: usize| -> Vec<f64> {
            descent(k, 1.0).iter().zip(descent(k, -1.0)).map(|(up, down)| (down - up) / (2.0 * DIFFERENCE)).collect()
        };
        let columns: Vec<Vec<f64>> = (0..count).map(column).collect();
        let symmetric = |i: usize, j: usize| 0.5 * (columns[i][j] + columns[j][i]);
        let factor = Cholesky::new(DMatrix::from_fn(count, count, symmetric))?;
        factor.l_dirty().iter().all(|x| x.is_finite()).then_some(Curvature { scale, factor })
    }
    /// Computes the Newton step, H⁻¹ Jᵀ r, and the predicted decrease of χ².
    fn newton(&self, place: &Place) -> (Vec<f64>, f64) {
        let step = solved(&self.factor, &place.descent, &self.scale);
        let decrease = dot(&step, &place.descent);
        (step, decrease)
    }
}

/// Finds the minimum of χ² nearest to the start; returns `None` if there is none, for example because the data do not determine the
/// parameters.
///
/// The Levenberg-Marquardt search compares values of χ². Rounding makes these equal at about 10⁻⁸ standard deviations from the minimum,
/// or earlier if the data are strongly correlated. Newton's method needs no comparison: it finds the zero of the derivatives.
pub fn minimise(model: &dyn Model, data: Data, start: &[f64]) -> Option<Minimum> {
    let at = |parameters| Place::at(model, data, parameters);
    let mut place = at(start.to_vec())?;
    for enough in HANDOVER {
        place = descend(&at, place, enough);
        if let Some(Place { parameters, chi2, .. }) = polish(model, data, &place) {
            return Some(Minimum { parameters, chi2 });
        }
    }
    None
}

/// Takes Levenberg-Marquardt steps until the predicted decrease of the Gauss-Newton step is less than `enough`, or until no step lowers
/// χ².
pub(super) fn descend(at: &dyn Fn(Vec<f64>) -> Option<Place>, mut place: Place, enough: f64) -> Place {
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        if place.gauss_newton(0.0).is_some_and(|(_, decrease)| decrease < enough) || damping > 1e20 {
            break;
        }
        let tried = place.gauss_newton(damping).and_then(|(step, _)| at(place.moved(&step)));
        match tried {
            Some(there) if there.chi2 < place.chi2 => {
                place = there;
                damping = (0.1 * damping).max(1e-15);
            }
            _ => damping = (10.0 * damping).max(1e-3),
        }
    }
    place
}

/// Takes Newton steps while they become smaller; returns `None` if they do not lead to a minimum. Second derivatives are recomputed only
/// if the steps shrink slowly.
fn polish(model: &dyn Model, data: Data, from: &Place) -> Option<Place> {
    let (mut place, mut curvature, mut fresh) = (from.clone(), Curvature::at(model, data, from)?, true);
    let (mut step, mut decrease) = curvature.newton(&place);
    // Far from a minimum, Newton's method may lead to any point.
    if decrease > 1.0 {
        return None;
    }
    for _ in 0..NEWTON_STEPS {
        let next = Place::at(model, data, place.moved(&step))?;
        let (next_step, next_decrease) = curvature.newton(&next);
        if next_decrease < if fresh { 0.25 } else { 0.01 } * decrease {
            (place, step, decrease, fresh) = (next, next_step, next_decrease, false);
        } else if fresh || decrease <= LEFT {
            // The steps have reached rounding, or they do not converge.
            break;
        } else {
            (curvature, fresh) = (Curvature::at(model, data, &place)?, true);
            (step, decrease) = curvature.newton(&place);
        }
    }
    (decrease <= LEFT || decrease <= data.whitening.rounding(data.y).powi(2)).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::covariance::{Covariance, CovarianceKind};

    /// a + b x + c x².
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

    /// Compares a linear function with its normal equations, solved by elimination.
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
