//! States of a correlator.
//!
//! C(t) = Σ_n A_n (e^{−E_n t} ± e^{−E_n (T − t)}), with + for a cosh, − for a sinh, and without the second term for an exponential; one or
//! two states.
use super::covariance::CovarianceKind;
use super::least_squares::{Data, Model, minimise};
use super::window::{Fit, FitError, FitFunction, FitSettings, fit};
use crate::effective::CorrelatorShape;
use crate::jackknife::Resampling;
use std::ops::Range;

/// One or two states. Parameters: A_0, E_0, and of the second state A_1 and ln(E_1 − E_0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States {
    /// How each falls.
    pub shape: CorrelatorShape,
    /// T
    pub extent: usize,
    /// 1 or 2.
    pub count: usize,
}

impl States {
    /// What a state of this energy has at t for A = 1, and its derivative with respect to the energy.
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
    /// C(t)
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

/// Amplitudes of given energies.
struct Amplitudes(States, Vec<f64>);

impl Model for Amplitudes {
    fn count(&self) -> usize {
        self.1.len()
    }
    fn value(&self, t: f64, p: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.iter_mut().zip(&self.1).for_each(|(g, energy)| *g = self.0.of(*energy, t)[0]);
        gradient.iter().zip(p).map(|(g, a)| g * a).sum()
    }
}

impl FitFunction for States {
    fn starts(&self, data: Data) -> Vec<Vec<f64>> {
        // ln C(t)/C(t+1), the slowest: what is left at late times, but for noise and for the other half of a cosh.
        let (x, y) = (data.x, data.y);
        let slopes = (0..x.len() - 1).map(|k| (y[k] / y[k + 1]).ln() / (x[k + 1] - x[k])).filter(|m| m.is_finite());
        let slopes: Vec<f64> = slopes.collect();
        let mut sorted = slopes.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(0.1);
        // A cosh begins at an energy that is not 0, where it would stay.
        let ground = if self.shape == CorrelatorShape::Exponential { middle } else { middle.abs().max(0.02) };
        let energies = match self.count {
            1 => vec![vec![ground]],
            _ => {
                [0.2, 0.5, 1.0].iter().map(|gap| vec![(ground - 0.25 * gap).max(0.5 * ground), gap + ground]).collect()
            }
        };
        let whole = |energies: Vec<f64>| {
            let amplitudes =
                minimise(&Amplitudes(*self, energies.clone()), data, &vec![0.0; energies.len()])?.parameters;
            Some(match energies[..] {
                [ground] => vec![amplitudes[0], ground],
                [ground, excited, ..] => vec![amplitudes[0], ground, amplitudes[1], (excited - ground).ln()],
                [] => return None,
            })
        };
        energies.into_iter().filter_map(whole).collect()
    }
    fn names(&self) -> &'static [&'static str] {
        &["energy", "amplitude", "excited_energy", "excited_amplitude"][..2 * self.count]
    }
    fn quantities(&self, p: &[f64]) -> Vec<Option<f64>> {
        // The same function with −E in the place of E: e^{E t} ± e^{E (T − t)} = ±e^{E T} (e^{−E t} ± e^{−E (T − t)}).
        let turned = |energy: f64, amplitude: f64| {
            let growth = (-energy * self.extent as f64).exp();
            match self.shape {
                CorrelatorShape::Cosh if energy < 0.0 => [-energy, amplitude * growth],
                CorrelatorShape::Sinh if energy < 0.0 => [-energy, -amplitude * growth],
                _ => [energy, amplitude],
            }
        };
        let mut all = turned(p[1], p[0]).to_vec();
        if self.count == 2 {
            all.extend(turned(p[1] + p[3].exp(), p[2]));
        }
        all.into_iter().map(|x| Some(x).filter(|x| x.is_finite())).collect()
    }
}

/// How a correlator is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatorSettings {
    /// First and last time; `None`: by the criterion.
    pub window: Option<[usize; 2]>,
    /// Numbers of states that are tried: 1, 2, or both.
    pub states: Vec<usize>,
    /// How the covariance is estimated; `None`: by the number of samples.
    pub covariance: Option<CovarianceKind>,
    /// Where errors come from.
    pub resampling: Resampling,
}

impl Default for CorrelatorSettings {
    fn default() -> Self {
        CorrelatorSettings { window: None, states: vec![1], covariance: None, resampling: Resampling::Jackknife }
    }
}

/// A fit of a correlator.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatorFit {
    /// The function of the fit that is told.
    pub states: States,
    /// The fit; its data are counted by time.
    pub fit: Fit,
}

impl CorrelatorFit {
    /// C(t) of the fit.
    pub fn at(&self, t: f64) -> f64 {
        self.states.at(&self.fit.best.minimum.parameters, t)
    }
}

/// Correlators that are the same forwards and backwards, or but for their sign, as means of both: of times up to T/2.
pub fn folded(samples: &[Vec<f64>], shape: CorrelatorShape) -> Vec<Vec<f64>> {
    let sign = match shape {
        CorrelatorShape::Cosh => 1.0,
        CorrelatorShape::Sinh => -1.0,
        CorrelatorShape::Exponential => return samples.to_vec(),
    };
    let fold = |c: &Vec<f64>| {
        let extent = c.len();
        let half = |t: usize| if t == 0 { c[0] } else { 0.5 * (c[t] + sign * c[extent - t]) };
        (0..=extent / 2).map(half).collect()
    };
    samples.iter().map(fold).collect()
}

/// Times that a window may have: from 1 on, for at 0 source and sink touch, up to T/2 where the correlator is the same backwards, else for
/// less than half of T; and as long as the mean has the sign that it has at 1, and an error of at most half of it.
pub fn usable(samples: &[Vec<f64>], shape: CorrelatorShape, extent: usize) -> Range<usize> {
    let last = match shape {
        CorrelatorShape::Cosh => extent / 2,
        CorrelatorShape::Sinh => extent.saturating_sub(1) / 2,
        CorrelatorShape::Exponential => (extent / 2).saturating_sub(1),
    };
    1..sure(samples, 1..last + 1)
}

/// The end of the data, from the first of a range on, whose mean has the sign of the first one's and is twice its error at least.
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
            // What is no number is not sure, either.
            (sign * mean).is_nan() || error.is_nan() || sign * mean <= 2.0 * error
        })
        .unwrap_or(range.end)
}

/// Fits a correlator, of samples by time from 0 to T − 1.
///
/// # Errors
/// [`FitError`].
pub fn fit_correlator(
    samples: &[Vec<f64>],
    shape: CorrelatorShape,
    settings: &CorrelatorSettings,
) -> Result<CorrelatorFit, FitError> {
    let extent = samples.first().map_or(0, Vec::len);
    let folded = folded(samples, shape);
    let times: Vec<f64> = (0..folded.first().map_or(0, Vec::len)).map(|t| t as f64).collect();
    let functions: Vec<States> = settings.states.iter().map(|count| States { shape, extent, count: *count }).collect();
    let all: Vec<&dyn FitFunction> = functions.iter().map(|f| f as &dyn FitFunction).collect();
    let CorrelatorSettings { window, covariance, resampling, .. } = *settings;
    let among = if samples.is_empty() { 0..0 } else { usable(&folded, shape, extent) };
    let fit = fit(&all, &times, &folded, among, &FitSettings { window, to_end: false, covariance, resampling })?;
    Ok(CorrelatorFit { states: functions[fit.best.function], fit })
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// Samples that scatter by 1e-3 of their mean, which is the function itself: pairs of equal deviations with opposite signs.
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

    /// The mean has only rounding: 1e-16 against errors of 1e-3/√N, so that energies are known to 1e-12 and better of one state, of two
    /// states, which are told apart by small differences, to 1e-8.
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
                    // Of functions that fit everywhere the window with most data is the most probable.
                    let most = usable(&folded(&samples, shape), shape, 24);
                    assert_eq!(found.fit.best.window, window.unwrap_or([1, most.end - 1]));
                }
            }
        }
    }

    /// A cosh with correlated noise: of numbers that neighbours share.
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

    /// How often the truth is within one error, and the mean p-value, of this many experiments.
    fn coverage(experiments: u64, samples: u64, excited: f64, settings: &CorrelatorSettings) -> (f64, f64) {
        let (mut within, mut p) = (0, 0.0);
        for number in 0..experiments {
            let found = fit_correlator(&experiment(number, samples, excited), CorrelatorShape::Cosh, settings).unwrap();
            let JackknifeEstimate { value, error } = found.fit.quantities[0].unwrap();
            within += u32::from((value - 0.4).abs() < error);
            p += found.fit.best.quality.p_value / experiments as f64;
        }
        (f64::from(within) / experiments as f64, p)
    }

    /// 68.3 % of 200 experiments, ± 3.3 %, within three of these; p-values are uniform, their mean ½ ± 0.29/√200, within four of these. Of
    /// shrunk covariances they are too small: ⟨χ²⟩ takes the few samples' own scatter for the truth. Without [`growth`](super::super::window)
    /// 20 samples cover the truth in 48 % with the whole covariance.
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

    /// With a second state that early times have and late ones have not: the window by the criterion leaves them out, and the mean over
    /// windows covers the truth with both errors.
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

    #[test]
    fn what_cannot_be_fitted_is_told() {
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
    }
}
