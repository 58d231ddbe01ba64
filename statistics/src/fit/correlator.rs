//! Fits of one or two states to a correlator.
//!
//! C(t) = Σ_n A_n (e^{−E_n t} ± e^{−E_n (T − t)}), with + for a cosh, − for a sinh, and without the second term for an exponential.
use super::covariance::CovarianceKind;
use super::least_squares::{Data, Model, Place, descend, dot};
use super::window::{Fit, FitError, FitFunction, FitSettings, fit};
use crate::effective::CorrelatorShape;
use crate::jackknife::Resampling;
use std::ops::Range;

/// Fit function with one or two states. Its parameters are A_0 and E_0, and for the second state A_1 and ln(E_1 − E_0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States {
    /// Time dependence of each state.
    pub shape: CorrelatorShape,
    /// Extent T of the lattice in time, in lattice units.
    pub extent: usize,
    /// Number of states, 1 or 2.
    pub count: usize,
}

impl States {
    /// Returns the contribution of a state with energy E at time t for A = 1, and its derivative with respect to E.
    fn of(self, energy: f64, t: f64) -> [f64; 2] {
        let (near, far) = ((-energy * t).exp(), self.extent as f64 - t);
        let sign = match self.shape {
            CorrelatorShape::Exponential => return [near, -t * near],
            CorrelatorShape::Cosh => 1.0,
            CorrelatorShape::Sinh => -1.0,
        };
        let back = sign * (-energy * far).exp();
        [near + back, -t * near - far * back]
    }
    /// Computes the fit function C(t) for the given parameters.
    pub fn at(self, parameters: &[f64], t: f64) -> f64 {
        self.value(t, parameters, &mut vec![0.0; 2 * self.count])
    }
}

impl Model for States {
    fn count(&self) -> usize {
        2 * self.count
    }
    fn value(&self, t: f64, p: &[f64], gradient: &mut [f64]) -> f64 {
        let [ground, slope] = self.of(p[1], t);
        (gradient[0], gradient[1]) = (ground, p[0] * slope);
        let mut value = p[0] * ground;
        if self.count == 2 {
            let gap = p[3].exp();
            let [excited, slope] = self.of(p[1] + gap, t);
            value += p[2] * excited;
            gradient[1] += p[2] * slope;
            (gradient[2], gradient[3]) = (excited, p[2] * slope * gap);
        }
        value
    }
}

/// Exponents k of the energies 1.125^k at which the search starts, in units of the inverse spacing of the times; the energies are 0.005
/// to 17.
const ENERGIES: std::ops::RangeInclusive<i32> = -45..=24;
/// Smallest difference of the exponents of two starts.
const APART: usize = 3;
/// Largest number of starts of a search. Those with the smallest χ² are used.
const STARTS: usize = 8;

/// Minimum of χ² for given energies of the states, over all amplitudes of either sign (variable projection: Golub and Pereyra 1973).
struct Projected {
    /// L⁻¹ times the time dependence of each state, normalised to length 1.
    columns: Vec<Vec<f64>>,
    /// Lengths of the columns before normalisation.
    lengths: Vec<f64>,
    /// Derivatives of the columns with respect to the energies, without the derivative of the normalisation.
    slopes: Vec<Vec<f64>>,
}

impl Projected {
    /// Computes the columns at the given energies; returns `None` if a state underflows or overflows.
    fn at(states: States, data: Data, energies: &[f64]) -> Option<Self> {
        let mut found = Projected { columns: Vec::new(), lengths: Vec::new(), slopes: Vec::new() };
        for energy in energies {
            let (mut column, mut slope): (Vec<f64>, Vec<f64>) =
                data.x.iter().map(|t| states.of(*energy, *t)).map(|[value, slope]| (value, slope)).unzip();
            data.whitening.apply(&mut column);
            data.whitening.apply(&mut slope);
            let length = dot(&column, &column).sqrt();
            column.iter_mut().chain(&mut slope).for_each(|c| *c /= length);
            found.columns.push(column);
            found.slopes.push(slope);
            found.lengths.push(length);
        }
        found.lengths.iter().all(|length| (1e-300..1e300).contains(length)).then_some(found)
    }
    /// Returns the amplitudes of the columns and the residual of the whitened data, or `None` for two states that double precision cannot
    /// distinguish.
    fn project(&self, y: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
        let amplitudes = match &self.columns[..] {
            [one] => vec![dot(one, y)],
            [one, two] => {
                // `rest` is the component of the second state that is orthogonal to the first.
                let cosine = dot(one, two);
                let rest: Vec<f64> = two.iter().zip(one).map(|(two, one)| two - cosine * one).collect();
                let square = dot(&rest, &rest);
                let second = dot(&rest, y) / square;
                (square > 1e-20).then(|| vec![dot(one, y) - cosine * second, second])?
            }
            _ => return None,
        };
        let mut left = y.to_vec();
        for (a, column) in amplitudes.iter().zip(&self.columns) {
            left.iter_mut().zip(column).for_each(|(y, c)| *y -= a * c);
        }
        Some((amplitudes, left))
    }
    /// Returns the residuals and derivatives at these energies with the best amplitudes (Kaufman 1975).
    fn place(&self, energies: Vec<f64>, y: &[f64]) -> Option<Place> {
        let (amplitudes, left) = self.project(y)?;
        let slope = |(a, slope): (&f64, &Vec<f64>)| {
            let moved: Vec<f64> = slope.iter().map(|s| a * s).collect();
            Some(self.project(&moved)?.1)
        };
        let slopes = amplitudes.iter().zip(&self.slopes).map(slope).collect::<Option<Vec<_>>>()?;
        Place::with(energies, &left, slopes)
    }
}

impl States {
    /// Returns the sets of energies on a grid that have the smallest χ² and are separated from each other; each set has one energy for
    /// each state.
    fn grid(self, data: Data, y: &[f64]) -> Vec<Vec<f64>> {
        let spacing = data.x.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        // A single exponential may rise. In a fit of two exponentials, a rising one is noise or a state that propagates
        // backwards, and not a ground state.
        let rises = self.shape == CorrelatorShape::Exponential && self.count == 1;
        let signs: &[f64] = if rises { &[1.0, -1.0] } else { &[1.0] };
        let mut energies: Vec<f64> =
            signs.iter().flat_map(|sign| ENERGIES.map(move |k| sign * 1.125f64.powi(k) / spacing)).collect();
        energies.sort_by(f64::total_cmp);
        energies.retain(|energy| Projected::at(self, data, &[*energy]).is_some());
        let Some(all) = Projected::at(self, data, &energies) else { return Vec::new() };
        let along: Vec<f64> = all.columns.iter().map(|column| dot(column, y)).collect();
        // `gain` returns the decrease of χ² by states i and j together, or by a single state if i = j.
        let gain = |i: usize, j: usize| {
            if i == j {
                return along[i] * along[i];
            }
            let cosine = dot(&all.columns[i], &all.columns[j]);
            let (a, b, rest) = (along[i], along[j], 1.0 - cosine * cosine);
            if rest > 1e-10 { (a * a + b * b - 2.0 * cosine * a * b) / rest } else { f64::NEG_INFINITY }
        };
        let count = energies.len();
        let mut places: Vec<(f64, usize, usize)> = if self.count == 1 {
            (0..count).map(|i| (gain(i, i), i, i)).collect()
        } else {
            (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j))).map(|(i, j)| (gain(i, j), i, j)).collect()
        };
        places.retain(|(gain, ..)| gain.is_finite());
        places.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
        let mut chosen: Vec<(usize, usize)> = Vec::new();
        for (_, i, j) in places {
            if chosen.len() < STARTS && chosen.iter().all(|(k, l)| i.abs_diff(*k) >= APART || j.abs_diff(*l) >= APART) {
                chosen.push((i, j));
            }
        }
        chosen.into_iter().map(|(i, j)| energies[i..=j].iter().copied().step_by((j - i).max(1)).collect()).collect()
    }
}

impl States {
    /// Computes the energies of two states by least squares from the recurrence that data without noise obey (Prony 1795): S² C = (S_0 +
    /// S_1) S C − S_0 S_1 C. For exponentials, S C(t) = C(t+1) and a state has S = e^{−E}; for a cosh or sinh, S C(t) = C(t+1) + C(t−1)
    /// and a state has S = 2 cosh E. Returns `None` if the times are not equally spaced, or if the solutions are not energies.
    fn prony(self, data: Data) -> Option<Vec<f64>> {
        let Data { x, y, .. } = data;
        let spacing = x[1] - x[0];
        if self.count != 2 || x.windows(2).any(|pair| (pair[1] - pair[0] - spacing).abs() > 1e-9 * spacing) {
            return None;
        }
        let periodic = self.shape != CorrelatorShape::Exponential;
        let shifted = |y: &[f64]| -> Vec<f64> {
            match periodic {
                true => y.windows(3).map(|three| three[0] + three[2]).collect(),
                false => y[1..].to_vec(),
            }
        };
        let once = shifted(y);
        let twice = shifted(&once);
        let offset = usize::from(periodic);
        // The equations are divided by the data, because relative noise grows slowly.
        let (mut matrix, mut right) = ([[0.0; 2]; 2], [0.0; 2]);
        for (k, twice) in twice.iter().enumerate() {
            let (y, once) = (y[k + 2 * offset], once[k + offset]);
            let row = [once / y, -1.0];
            for i in 0..2 {
                (0..2).for_each(|j| matrix[i][j] += row[i] * row[j]);
                right[i] += row[i] * twice / y;
            }
        }
        let determinant = matrix[0][0] * matrix[1][1] - matrix[0][1] * matrix[1][0];
        let sum = (right[0] * matrix[1][1] - matrix[0][1] * right[1]) / determinant;
        let product = (matrix[0][0] * right[1] - right[0] * matrix[1][0]) / determinant;
        let root = (0.25 * sum * sum - product).sqrt();
        let energy = |s: f64| if periodic { (0.5 * s).acosh() } else { -s.ln() } / spacing;
        let energies = vec![energy(0.5 * sum + root), energy(0.5 * sum - root)];
        (energies.iter().all(|energy| energy.is_finite()) && energies[0] != energies[1]).then_some(energies)
    }
}

impl FitFunction for States {
    fn starts(&self, data: Data) -> Vec<Vec<f64>> {
        let mut y = data.y.to_vec();
        data.whitening.apply(&mut y);
        let at = |energies: Vec<f64>| Projected::at(*self, data, &energies)?.place(energies, &y);
        let start = |energies: Vec<f64>| {
            let mut energies = descend(&at, at(energies)?, 1e-2).parameters;
            // A cosh or sinh is the same for E and −E, up to its sign.
            if self.shape != CorrelatorShape::Exponential {
                energies.iter_mut().for_each(|energy| *energy = energy.abs());
            }
            energies.sort_by(f64::total_cmp);
            if self.count == 2 && energies[0] < 0.0 {
                return None;
            }
            let projected = Projected::at(*self, data, &energies)?;
            let (amplitudes, _) = projected.project(&y)?;
            let amplitude = |k: usize| amplitudes[k] / projected.lengths[k];
            Some(match energies[..] {
                [energy] => vec![amplitude(0), energy],
                [ground, excited, ..] => vec![amplitude(0), ground, amplitude(1), (excited - ground).ln()],
                [] => return None,
            })
        };
        self.prony(data).into_iter().chain(self.grid(data, &y)).filter_map(start).collect()
    }
    fn edge(&self, data: Data) -> Option<Vec<f64>> {
        // A cosh depends on E² only. If the data are closest to a cosine, χ² is smallest at the edge E = 0, where e^{E T/2} C(t)/A = 2 +
        // E² (T/2 − t)² + …
        if self.count != 1 || self.shape != CorrelatorShape::Cosh {
            return None;
        }
        let whitened = |values: Vec<f64>| {
            let mut values = values;
            data.whitening.apply(&mut values);
            values
        };
        let constant = whitened(vec![2.0; data.x.len()]);
        let slope = whitened(data.x.iter().map(|t| (0.5 * self.extent as f64 - t).powi(2)).collect());
        let mut rest = whitened(data.y.to_vec());
        let amplitude = dot(&constant, &rest) / dot(&constant, &constant);
        rest.iter_mut().zip(&constant).for_each(|(r, c)| *r -= amplitude * c);
        (amplitude * dot(&slope, &rest) <= 0.0).then(|| vec![amplitude, 0.0])
    }
    fn names(&self) -> &'static [&'static str] {
        &["energy", "amplitude", "excited_energy", "excited_amplitude"][..2 * self.count]
    }
    fn quantities(&self, p: &[f64]) -> Vec<Option<f64>> {
        // Expresses a state with E < 0 by −E: e^{E t} ± e^{E (T − t)} = ±e^{E T} (e^{−E t} ± e^{−E (T − t)}).
        let turned = |energy: f64, amplitude: f64| {
            let growth = (-energy * self.extent as f64).exp();
            match self.shape {
                CorrelatorShape::Cosh if energy < 0.0 => [-energy, amplitude * growth],
                CorrelatorShape::Sinh if energy < 0.0 => [-energy, -amplitude * growth],
                _ => [energy, amplitude],
            }
        };
        let mut all = vec![turned(p[1], p[0])];
        if self.count == 2 {
            all.push(turned(p[1] + p[3].exp(), p[2]));
        }
        all.sort_by(|a, b| a[0].total_cmp(&b[0]));
        all.into_iter().flatten().map(|x| Some(x).filter(|x| x.is_finite())).collect()
    }
}

/// Settings for the fit of a correlator.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatorSettings {
    /// First and last time of the window; `None` to choose them by the information criterion.
    pub window: Option<[usize; 2]>,
    /// Numbers of states to try: 1, 2, or both.
    pub states: Vec<usize>,
    /// Estimator of the covariance; `None` to choose it by the number of samples.
    pub covariance: Option<CovarianceKind>,
    /// Resampling method that yields the errors.
    pub resampling: Resampling,
}

impl Default for CorrelatorSettings {
    fn default() -> Self {
        CorrelatorSettings { window: None, states: vec![1], covariance: None, resampling: Resampling::Jackknife }
    }
}

/// Fit of a correlator: the function of the most probable model, and the result.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatorFit {
    /// Function of the most probable model.
    pub states: States,
    /// Result of the fit; its data are indexed by time.
    pub fit: Fit,
}

impl CorrelatorFit {
    /// Evaluates the fit function C(t) with the parameters of the fit.
    pub fn at(&self, t: f64) -> f64 {
        self.states.at(&self.fit.best.minimum.parameters, t)
    }
}

/// Averages C(t) and ±C(T − t) for correlators that are even or odd under t → T − t. The result contains the times up to T/2; other
/// correlators stay as they are.
pub fn folded(samples: &[Vec<f64>], shape: CorrelatorShape) -> Vec<Vec<f64>> {
    let sign = match shape {
        CorrelatorShape::Cosh => 1.0,
        CorrelatorShape::Sinh => -1.0,
        CorrelatorShape::Exponential => return samples.to_vec(),
    };
    let fold = |c: &Vec<f64>| {
        let extent = c.len();
        if extent == 0 {
            return Vec::new();
        }
        let half = |t: usize| if t == 0 { c[0] } else { 0.5 * (c[t] + sign * c[extent - t]) };
        (0..=extent / 2).map(half).collect()
    };
    samples.iter().map(fold).collect()
}

/// Returns the times that a window may contain. They begin at 1, because source and sink coincide at 0. They end at T/2 if the correlator
/// is symmetric in time, and otherwise below T/2. They also end where the mean changes its sign, or where its error exceeds half its
/// size.
pub fn usable(samples: &[Vec<f64>], shape: CorrelatorShape, extent: usize) -> Range<usize> {
    let last = match shape {
        CorrelatorShape::Cosh => extent / 2,
        CorrelatorShape::Sinh => extent.saturating_sub(1) / 2,
        CorrelatorShape::Exponential => (extent / 2).saturating_sub(1),
    };
    1..sure(samples, 1..last + 1)
}

/// Returns the end of the usable data in a range: the first index whose mean has another sign than the first one, or is at most twice its
/// error.
pub(super) fn sure(samples: &[Vec<f64>], range: Range<usize>) -> usize {
    let n = samples.len() as f64;
    let known = |k: usize| {
        let mean = samples.iter().map(|s| s[k]).sum::<f64>() / n;
        let square = samples.iter().map(|s| (s[k] - mean).powi(2)).sum::<f64>();
        (mean, (square / (n * (n - 1.0).max(1.0))).sqrt())
    };
    let sign = if range.is_empty() { 1.0 } else { known(range.start).0.signum() };
    range
        .clone()
        .find(|k| {
            let (mean, error) = known(*k);
            // A mean or an error that is NaN is not usable.
            (sign * mean).is_nan() || error.is_nan() || sign * mean <= 2.0 * error
        })
        .unwrap_or(range.end)
}

/// Fits the function of one or two states to a correlator. Each sample contains the values at times 0 to T − 1.
///
/// # Errors
/// Returns [`FitError`] if no fit is possible.
pub fn fit_correlator(
    samples: &[Vec<f64>],
    shape: CorrelatorShape,
    settings: &CorrelatorSettings,
) -> Result<CorrelatorFit, FitError> {
    let extent = samples.first().map_or(0, Vec::len);
    if let Some((sample, found)) = samples.iter().map(Vec::len).enumerate().find(|(_, found)| *found != extent) {
        return Err(FitError::UnequalSamples { sample, found, expected: extent });
    }
    let folded = folded(samples, shape);
    let times: Vec<f64> = (0..folded.first().map_or(0, Vec::len)).map(|t| t as f64).collect();
    let functions: Vec<States> = settings.states.iter().map(|count| States { shape, extent, count: *count }).collect();
    let all: Vec<&dyn FitFunction> = functions.iter().map(|f| f as &dyn FitFunction).collect();
    let CorrelatorSettings { window, covariance, resampling, .. } = *settings;
    let among = if extent == 0 { 0..0 } else { usable(&folded, shape, extent) };
    let fit = fit(&all, &times, &folded, among, &FitSettings { window, to_end: false, covariance, resampling })?;
    Ok(CorrelatorFit { states: functions[fit.best.function], fit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::window::WithoutMinimum;
    use crate::jackknife::JackknifeEstimate;
    use gpu_kernels::random::Philox;

    const SHAPES: [CorrelatorShape; 3] = [CorrelatorShape::Cosh, CorrelatorShape::Sinh, CorrelatorShape::Exponential];

    #[test]
    fn derivatives_are_those_of_the_function() {
        for shape in SHAPES {
            for (count, p) in [(1, vec![1.3, 0.4]), (2, vec![1.3, 0.4, -0.7, -0.9])] {
                let states = States { shape, extent: 16, count };
                for t in [1.0, 5.0, 8.0] {
                    let mut gradient = vec![0.0; 2 * count];
                    states.value(t, &p, &mut gradient);
                    for k in 0..2 * count {
                        let step = 1e-5;
                        let beside = |sign: f64| {
                            let mut q = p.clone();
                            q[k] += sign * step;
                            states.at(&q, t)
                        };
                        let slope = (beside(1.0) - beside(-1.0)) / (2.0 * step);
                        // Rounding of values near 1 over the step, and the third derivative, below 100, times step²/6.
                        assert!((slope - gradient[k]).abs() < 1e-16 / step + 2e-9, "{shape:?} {count} {t} {k}");
                    }
                }
            }
        }
    }

    /// Returns samples that scatter by 1e-3 of their mean, which is the function itself: pairs of equal deviations with opposite signs.
    fn around(truth: &[f64], pairs: u64) -> Vec<Vec<f64>> {
        let mut random = Philox::new(3, 1, 4);
        let mut all = Vec::new();
        for _ in 0..pairs {
            let noise: Vec<f64> = truth.iter().map(|c| 1e-3 * c * random.normal_pair()[0]).collect();
            all.push(truth.iter().zip(&noise).map(|(c, n)| c + n).collect());
            all.push(truth.iter().zip(&noise).map(|(c, n)| c - n).collect());
        }
        all
    }

    /// Recovers the parameters. The mean has only rounding errors: 1e-16 against errors of 1e-3/√N, so that energies are accurate to 1e-12
    /// or better for one state, and to 1e-8 for two states, which are distinguished by small differences.
    #[test]
    fn functions_are_found_again() {
        for shape in SHAPES {
            for (count, p, tolerance) in [(1, vec![0.3, 0.45], 1e-11), (2, vec![0.3, 0.45, 0.5, (0.6f64).ln()], 1e-7)] {
                let states = States { shape, extent: 24, count };
                let truth: Vec<f64> = (0..24).map(|t| states.at(&p, f64::from(t))).collect();
                let samples = around(&truth, 100);
                for window in [None, Some([2, 10])] {
                    let settings = CorrelatorSettings { states: vec![count], window, ..Default::default() };
                    let found = fit_correlator(&samples, shape, &settings).unwrap();
                    let [energy, amplitude] = [found.fit.quantities[0].unwrap(), found.fit.quantities[1].unwrap()];
                    assert!((energy.value - 0.45).abs() < tolerance, "{shape:?} {count}: {energy:?}");
                    assert!((amplitude.value - 0.3).abs() < 10.0 * tolerance, "{amplitude:?}");
                    assert!(
                        found.fit.best.minimum.chi2 < 1e-9 && energy.error > 0.0,
                        "{shape:?} {count} {window:?} {energy:?}"
                    );
                    if count == 2 {
                        let excited = found.fit.quantities[2].unwrap();
                        assert!((excited.value - 1.05).abs() < 10.0 * tolerance, "{excited:?}");
                    }
                    // Among functions that fit everywhere, the window with most data is the most probable.
                    let most = usable(&folded(&samples, shape), shape, 24);
                    assert_eq!(found.fit.best.window, window.unwrap_or([1, most.end - 1]));
                }
            }
        }
    }

    /// Returns samples of a cosh with correlated noise: neighbouring times share random numbers.
    fn experiment(number: u64, samples: u64, excited: f64) -> Vec<Vec<f64>> {
        let mut random = Philox::new(11, number, 7);
        let states = States { shape: CorrelatorShape::Cosh, extent: 16, count: 2 };
        let truth: Vec<f64> = (0..16).map(|t| states.at(&[1.0, 0.4, excited, 0.0], f64::from(t))).collect();
        (0..samples)
            .map(|_| {
                let mut walk = random.normal_pair()[0];
                let noise: Vec<f64> = (0..16)
                    .map(|_| {
                        walk = 0.8 * walk + 0.6 * random.normal_pair()[0];
                        walk
                    })
                    .collect();
                truth.iter().zip(noise).map(|(c, z)| c * (1.0 + 0.05 * z)).collect()
            })
            .collect()
    }

    /// Returns the fraction of experiments in which the truth is within one error, and the mean p-value.
    fn coverage(experiments: u64, samples: u64, excited: f64, settings: &CorrelatorSettings) -> (f64, f64) {
        let (mut within, mut p) = (0, 0.0);
        for number in 0..experiments {
            let found = fit_correlator(&experiment(number, samples, excited), CorrelatorShape::Cosh, settings).unwrap();
            let JackknifeEstimate { value, error, .. } = found.fit.quantities[0].unwrap();
            within += u32::from((value - 0.4).abs() < error);
            p += found.fit.best.quality.p_value / experiments as f64;
        }
        (f64::from(within) / experiments as f64, p)
    }

    /// Checks 68.3 % of 200 experiments, ± 3.3 %, within three of these; p-values are uniform, their mean ½ ± 0.29/√200, within four of
    /// these. For shrunk covariances they are too small: ⟨χ²⟩ mistakes the scatter of the few samples for the truth. Without
    /// [`growth`](super::super::window) the errors from 20 samples cover the truth in 48 % of the cases with the full covariance.
    #[test]
    fn errors_cover_the_truth() {
        let window = Some([1, 8]);
        for (samples, covariance, resampling) in [
            (60, CovarianceKind::Full, Resampling::Jackknife),
            (60, CovarianceKind::Diagonal, Resampling::Jackknife),
            (60, CovarianceKind::Full, Resampling::Bootstrap { draws: 100, seed: 1 }),
            (20, CovarianceKind::Full, Resampling::Jackknife),
            (20, CovarianceKind::Shrunk, Resampling::Jackknife),
            (20, CovarianceKind::Diagonal, Resampling::Jackknife),
        ] {
            let settings = CorrelatorSettings { window, covariance: Some(covariance), resampling, states: vec![1] };
            let (within, p) = coverage(200, samples, 0.0, &settings);
            assert!((0.58..0.78).contains(&within), "{covariance:?} {resampling:?}: {within}");
            let rough = covariance == CovarianceKind::Shrunk;
            assert!((p - 0.5).abs() < if rough { 0.15 } else { 0.08 }, "{covariance:?} {resampling:?}: p {p}");
        }
    }

    /// Fits data with a second state that is visible only at early times: the window chosen by the criterion excludes these times, and the
    /// mean over windows covers the truth with both errors.
    #[test]
    fn windows_leave_out_excited_states() {
        let settings = CorrelatorSettings::default();
        let (mut within, mut early) = (0, 0);
        for number in 0..100 {
            let fit = fit_correlator(&experiment(number, 200, 0.2), CorrelatorShape::Cosh, &settings).unwrap().fit;
            let average = fit.averages[0];
            let error = average.statistical.hypot(average.systematic);
            within += u32::from((average.value - 0.4).abs() < error);
            early += u32::from(fit.best.window[0] == 1);
            let sum: f64 = fit.candidates.iter().map(|one| one.probability).sum();
            assert!((sum - 1.0).abs() < 1e-12 && fit.candidates[0] == fit.best);
        }
        assert!(early == 0 && within >= 55, "{early} {within}");
    }

    /// Returns samples of C(t) with relative noise that neighbouring times share.
    fn noisy(truth: &[f64], samples: usize, noise: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut random = Philox::new(31, seed, 9);
        let one = |_| {
            let mut walk = random.normal_pair()[0];
            let value = |c: &f64| {
                walk = 0.8 * walk + 0.6 * random.normal_pair()[0];
                c * (1.0 + noise * walk)
            };
            truth.iter().map(value).collect()
        };
        (0..samples).map(one).collect()
    }

    /// Fits 60 correlators for each of which all means of the jackknife have a minimum, with noise from 10⁻⁵, where differences of χ² are
    /// lost in rounding, to 0.1. The error of the energy is compared with that of minima found by bisection of dχ²/dE, in which the
    /// amplitude follows from a linear equation.
    #[test]
    fn every_mean_has_its_minimum() {
        for (number, (energy, extent, noise)) in
            [(0.5, 48, 1e-5), (0.8, 48, 0.03), (1.2, 48, 1e-3), (2.5, 64, 0.03), (2.0, 48, 1e-3), (0.05, 64, 0.1)]
                .into_iter()
                .flat_map(|case| std::iter::repeat_n(case, 10))
                .enumerate()
        {
            let shape = SHAPES[number % 3];
            let states = States { shape, extent, count: 1 };
            let truth: Vec<f64> = (0..extent).map(|t| states.at(&[1.0, energy], t as f64)).collect();
            let samples = noisy(&truth, 120, noise, number as u64);
            let window = [2, 12];
            let covariance = Some(CovarianceKind::Full);
            let settings = CorrelatorSettings { window: Some(window), covariance, ..Default::default() };
            let fit = fit_correlator(&samples, shape, &settings).unwrap().fit;
            let found = fit.quantities[0].unwrap();
            assert!(found.missing.count == 0 && found.error > 0.0, "{number}: {found:?}");

            let folded = folded(&samples, shape);
            let times: Vec<f64> = (window[0]..=window[1]).map(|t| t as f64).collect();
            let slope = |y: &[f64], energy: f64| {
                let whitened = |mut v: Vec<f64>| {
                    fit.whitening.apply(&mut v);
                    v
                };
                let f = whitened(times.iter().map(|t| states.of(energy, *t)[0]).collect());
                let g = whitened(times.iter().map(|t| states.of(energy, *t)[1]).collect());
                let y = whitened(y.to_vec());
                let amplitude = dot(&f, &y) / dot(&f, &f);
                amplitude * (0..y.len()).map(|k| g[k] * (amplitude * f[k] - y[k])).sum::<f64>()
            };
            let minimum = |y: &[f64]| {
                let mut width = 1e-9;
                let sign = |energy: f64| slope(y, energy) > 0.0;
                while sign(found.value - width) || !sign(found.value + width) {
                    width *= 2.0;
                }
                let (mut low, mut high) = (found.value - width, found.value + width);
                for _ in 0..60 {
                    let middle = 0.5 * (low + high);
                    (low, high) = if sign(middle) { (low, middle) } else { (middle, high) };
                }
                0.5 * (low + high)
            };
            let n = samples.len() as f64;
            let at = |k: usize| window[0] + k;
            let sums: Vec<f64> = (0..times.len()).map(|k| folded.iter().map(|s| s[at(k)]).sum()).collect();
            let all: Vec<f64> = folded
                .iter()
                .map(|s| minimum(&(0..times.len()).map(|k| (sums[k] - s[at(k)]) / (n - 1.0)).collect::<Vec<_>>()))
                .collect();
            let mean = all.iter().sum::<f64>() / n;
            let error = (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() * (n - 1.0) / n).sqrt();
            // Rao's growth for 120 samples and 9 degrees of freedom is 1.09, and scatters by some percent.
            let growth = found.error / error;
            assert!((1.02..1.2).contains(&growth), "{number}: {shape:?} {found:?} {error} {growth}");
        }
    }

    /// Fits second states of either sign, as occur with smeared sources and point sinks; of both functions together the one with two
    /// states is chosen.
    #[test]
    fn second_states_may_have_either_sign() {
        for (number, second) in [0.4, -0.4, -0.7, 0.9, -0.2, -0.95].into_iter().enumerate() {
            for shape in SHAPES {
                let states = States { shape, extent: 32, count: 2 };
                let p = [1.0, 0.3, second, (0.8f64).ln()];
                let truth: Vec<f64> = (0..32).map(|t| states.at(&p, f64::from(t))).collect();
                let samples = noisy(&truth, 200, 0.01, number as u64);
                for count in [vec![2], vec![1, 2]] {
                    let settings = CorrelatorSettings { states: count, window: Some([1, 12]), ..Default::default() };
                    let found = fit_correlator(&samples, shape, &settings).unwrap();
                    let quantities: Vec<JackknifeEstimate> = found.fit.quantities.iter().map(|q| q.unwrap()).collect();
                    for (k, truth) in [0.3, 1.0, 1.1, second].into_iter().enumerate() {
                        // One in 15000 for each of 144 numbers.
                        let JackknifeEstimate { value, error, .. } = quantities[k];
                        assert!((value - truth).abs() < 4.0 * error, "{shape:?} {second} {k}: {value} {error}");
                    }
                    assert_eq!((found.states.count, &found.fit.without_minimum[..]), (2, &[][..]));
                }
            }
        }
    }

    /// Fits a pair of complex energies, which two real ones approximate best if they are equal: χ² has no minimum with two energies.
    #[test]
    fn functions_without_a_minimum_are_counted() {
        let truth: Vec<f64> = (0..20).map(f64::from).map(|t| (-0.5 * t).exp() * (0.3 * (t - 4.0)).cos()).collect();
        let samples = around(&truth, 40);
        let settings = CorrelatorSettings { states: vec![1, 2], window: Some([1, 7]), ..Default::default() };
        let found = fit_correlator(&samples, CorrelatorShape::Exponential, &settings).unwrap();
        let without = WithoutMinimum { function: 1, windows: 1, of: 1 };
        assert_eq!((found.states.count, found.fit.without_minimum), (1, vec![without]));
    }

    /// Fits samples that differ by a factor, which the amplitude absorbs: nothing remains that χ² could measure.
    #[test]
    fn a_common_factor_has_no_quality() {
        let states = States { shape: CorrelatorShape::Exponential, extent: 20, count: 1 };
        let truth: Vec<f64> = (0..20).map(|t| states.at(&[1.0, 0.4], f64::from(t))).collect();
        let samples: Vec<Vec<f64>> =
            (0..40).map(|k| truth.iter().map(|c| c * (1.0 + 0.01 * f64::from(k % 5))).collect()).collect();
        for covariance in [CovarianceKind::Diagonal, CovarianceKind::Shrunk] {
            let covariance = Some(covariance);
            let settings = CorrelatorSettings { window: Some([1, 8]), covariance, ..Default::default() };
            let Ok(found) = fit_correlator(&samples, states.shape, &settings) else { continue };
            assert!((found.fit.quantities[0].unwrap().value - 0.4).abs() < 1e-12);
            let quality = found.fit.best.quality;
            assert!(quality.expected_chi2 == 0.0 && quality.p_value.is_nan(), "{quality:?}");
        }
    }

    #[test]
    fn what_cannot_be_fitted_is_reported() {
        let settings = CorrelatorSettings::default();
        let samples = experiment(1, 12, 0.0);
        let shape = CorrelatorShape::Cosh;
        assert_eq!(fit_correlator(&samples[..3], shape, &settings), Err(FitError::FewSamples { found: 3 }));
        assert_eq!(fit_correlator(&[], shape, &settings), Err(FitError::FewSamples { found: 0 }));
        let with = |window, covariance| {
            let settings = CorrelatorSettings { window: Some(window), covariance, ..Default::default() };
            fit_correlator(&samples[..6], shape, &settings).err()
        };
        assert_eq!(with([3, 4], None), Some(FitError::FewData { data: 2, parameters: 2 }));
        assert_eq!(with([1, 8], Some(CovarianceKind::Full)), Some(FitError::Singular { data: 8 }));
        assert_eq!(with([1, 8], None), None);
        assert_eq!(with([1, 9], None), Some(FitError::OutsideData { first: 1, last: 9, data: 9 }));
        assert_eq!(with([5, 2], None), Some(FitError::OutsideData { first: 5, last: 2, data: 9 }));
        let mut unequal = samples.clone();
        unequal[4].pop();
        let expected = FitError::UnequalSamples { sample: 4, found: 15, expected: 16 };
        assert_eq!(fit_correlator(&unequal, shape, &settings), Err(expected));
    }
}
