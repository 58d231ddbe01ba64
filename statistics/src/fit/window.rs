//! Which of the data are fitted, and with which function.
//!
//! Each function f and each window of neighbouring data is a model M, whose probability is, with χ² at its minimum, k parameters, and
//! N_cut of the data left out,
//!
//! pr(M|D) ∝ exp(−AIC/2), AIC = χ² + 2 k + 2 N_cut
//!
//! (Jay and Neil, arXiv:2008.01069, Phys. Rev. D 103, 114502, without priors). The fit that is told first is that of the most
//! probable model; beside it stands the mean over all models, a = Σ pr(M) a_M, with the statistical error √(Σ pr(M) σ²_M) and that of the
//! choice √(Σ pr(M) a²_M − a²), as there.
//!
//! Where χ² does not have the whole covariance, it is as large as its number of degrees of freedom ν no longer; then χ² ν/⟨χ²⟩ stands
//! for it, with the ⟨χ²⟩ of [`Quality`].
use super::covariance::{Covariance, CovarianceKind, Whitening};
use super::least_squares::{Data, Minimum, Model, minimise, response};
use super::quality::Quality;
use crate::jackknife::{JackknifeEstimate, Resampling};
use std::ops::Range;

/// A function that is fitted, with what is known about it.
pub trait FitFunction: Model {
    /// Parameters to begin from; the smallest of the minima that are found counts.
    fn starts(&self, data: Data) -> Vec<Vec<f64>>;
    /// Names of what is made of the parameters. Those of several functions that are compared begin with the same ones.
    fn names(&self) -> &'static [&'static str];
    /// What is made of the parameters.
    fn quantities(&self, parameters: &[f64]) -> Vec<Option<f64>>;
}

/// How data are fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitSettings {
    /// First and last of the data; `None`: by the criterion.
    pub window: Option<[usize; 2]>,
    /// Whether all windows that are tried end with the last of the data.
    pub to_end: bool,
    /// How the covariance is estimated; `None`: by [`covariance_for`].
    pub covariance: Option<CovarianceKind>,
    /// Where errors come from.
    pub resampling: Resampling,
}

/// The fewest samples of a fit: of fewer the errors are not known even roughly.
pub const FEWEST_SAMPLES: usize = 4;

/// The covariance for so many samples of so many data: the whole one for at least four samples for each of the data, the shrunk one for
/// fewer.
pub fn covariance_for(samples: usize, data: usize) -> CovarianceKind {
    if samples >= 4 * data { CovarianceKind::Full } else { CovarianceKind::Shrunk }
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Too few samples.
    #[error("{found} samples, and a fit needs {FEWEST_SAMPLES}")]
    FewSamples {
        /// How many there are.
        found: usize,
    },
    /// No window has more data than parameters.
    #[error("{data} data for {parameters} parameters: a fit needs more data than parameters")]
    FewData {
        /// How many there are.
        data: usize,
        /// How many parameters the function has.
        parameters: usize,
    },
    /// The covariance has no inverse.
    #[error("the covariance of {data} data has no inverse")]
    Singular {
        /// How many data there are.
        data: usize,
    },
    /// No minimum.
    #[error("χ² has no minimum: the data do not determine the parameters")]
    NoMinimum,
}

/// A window, tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Which of the functions.
    pub function: usize,
    /// First and last of the data.
    pub window: [usize; 2],
    /// The minimum.
    pub minimum: Minimum,
    /// Data less parameters.
    pub dof: usize,
    /// What χ² should be.
    pub quality: Quality,
    /// Its probability among all.
    pub probability: f64,
}

/// A mean over models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelAverage {
    /// Σ pr a
    pub value: f64,
    /// √(Σ pr σ²)
    pub statistical: f64,
    /// √(Σ pr a² − (Σ pr a)²)
    pub systematic: f64,
}

/// A fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The model that is told: the most probable one.
    pub best: Candidate,
    /// Names of the quantities of its function.
    pub names: &'static [&'static str],
    /// The quantities of its function, with errors.
    pub quantities: Vec<Option<JackknifeEstimate>>,
    /// Means over models of the quantities that all functions have; none where the window was given for one function.
    pub averages: Vec<ModelAverage>,
    /// All models, the most probable first.
    pub candidates: Vec<Candidate>,
    /// How the covariance was estimated.
    pub covariance: CovarianceKind,
    /// λ
    pub shrinkage: f64,
    /// The covariance in the window of the best model.
    pub whitening: Whitening,
}

/// Models that are less probable than the best one by more than this do not count in means: their errors would have to be computed.
const LEAST: f64 = 0.01;

/// Fits functions to the means of samples at the places `x`; `among` are the data that may be used.
///
/// # Errors
/// [`FitError`].
pub fn fit(
    functions: &[&dyn FitFunction],
    x: &[f64],
    samples: &[Vec<f64>],
    among: Range<usize>,
    settings: &FitSettings,
) -> Result<Fit, FitError> {
    let n = samples.len();
    if n < FEWEST_SAMPLES {
        return Err(FitError::FewSamples { found: n });
    }
    let among = settings.window.map_or(among, |[first, last]| first..last + 1);
    let fewest = functions.iter().map(|f| f.count()).min().unwrap_or(0);
    if among.len() <= fewest {
        return Err(FitError::FewData { data: among.len(), parameters: fewest });
    }
    let kind = settings.covariance.unwrap_or_else(|| covariance_for(n, among.len()));
    // Of the data that may be used, and of no others: λ depends on which they are.
    let used: Vec<Vec<f64>> = samples.iter().map(|sample| sample[among.clone()].to_vec()).collect();
    let (x, first) = (&x[among.clone()], among.start);
    let covariance = Covariance::of_mean(&used, kind);
    let mean: Vec<f64> = (0..among.len()).map(|k| used.iter().map(|s| s[k]).sum::<f64>() / n as f64).collect();
    let windows: Vec<Range<usize>> = match settings.window {
        Some(_) => std::iter::once(0..among.len()).collect(),
        None if settings.to_end => (0..among.len()).map(|a| a..among.len()).collect(),
        None => (0..among.len()).flat_map(|a| (a + 1..=among.len()).map(move |b| a..b)).collect(),
    };
    let (mut tried, mut singular) = (Vec::new(), true);
    for window in windows {
        let Some(whitening) = covariance.whitening(window.clone()) else { continue };
        singular = false;
        let data = Data { x: &x[window.clone()], y: &mean[window.clone()], whitening: &whitening };
        for (number, function) in functions.iter().enumerate().filter(|(_, f)| f.count() < window.len()) {
            let minima = function.starts(data).into_iter().filter_map(|start| minimise(*function, data, &start));
            let Some(minimum) = minima.min_by(|a, b| a.chi2.total_cmp(&b.chi2)) else { continue };
            let dof = window.len() - function.count();
            let quality = match kind {
                CovarianceKind::Full => Quality::correlated(minimum.chi2, dof, n),
                _ => {
                    let place = (&covariance, window.clone());
                    Quality::of(minimum.chi2, *function, data.x, &minimum.parameters, &whitening, place)
                }
            };
            let chi2 = minimum.chi2 * dof as f64 / quality.expected_chi2;
            let criterion = chi2 + 2.0 * (function.count() + among.len() - window.len()) as f64;
            let window = [first + window.start, first + window.end - 1];
            let one = Candidate { function: number, window, minimum, dof, quality, probability: criterion };
            tried.push((one, whitening.clone()));
        }
    }
    if tried.is_empty() {
        return Err(if singular { FitError::Singular { data: among.len() } } else { FitError::NoMinimum });
    }
    let least = tried.iter().map(|(one, _)| one.probability).fold(f64::INFINITY, f64::min);
    tried.iter_mut().for_each(|(one, _)| one.probability = (-0.5 * (one.probability - least)).exp());
    let sum: f64 = tried.iter().map(|(one, _)| one.probability).sum();
    tried.iter_mut().for_each(|(one, _)| one.probability /= sum);
    tried.sort_by(|(a, _), (b, _)| b.probability.total_cmp(&a.probability));
    let again = |one: &Candidate, whitening: &Whitening| {
        let function = functions[one.function];
        let part = one.window[0] - first..one.window[1] - first + 1;
        let mut estimates = settings.resampling.estimate(&used, |mean| {
            let data = Data { x: &x[part.clone()], y: &mean[part.clone()], whitening };
            match minimise(function, data, &one.minimum.parameters) {
                Some(minimum) => function.quantities(&minimum.parameters),
                None => vec![None; function.names().len()],
            }
        });
        let place = (&covariance, part.clone());
        let growth = growth(function, &x[part.clone()], &one.minimum.parameters, whitening, place, &used);
        for (k, estimate) in estimates.iter_mut().enumerate() {
            if let Some(estimate) = estimate {
                estimate.error *= growth.as_ref().map_or(f64::NAN, |growth| growth[k]);
            }
        }
        estimates
    };
    let (best, whitening) = &tried[0];
    let (names, quantities) = (functions[best.function].names(), again(best, whitening));
    let averages = if tried.len() > 1 {
        let likely = tried.iter().filter(|(one, _)| one.probability >= LEAST * best.probability);
        let all: Vec<(f64, Vec<Option<JackknifeEstimate>>)> =
            likely.map(|(one, whitening)| (one.probability, again(one, whitening))).collect();
        average(&all, functions.iter().map(|f| f.names().len()).min().unwrap_or(0))
    } else {
        Vec::new()
    };
    Ok(Fit {
        best: best.clone(),
        names,
        quantities,
        averages,
        covariance: kind,
        shrinkage: covariance.shrinkage(),
        whitening: whitening.clone(),
        candidates: tried.into_iter().map(|(one, _)| one).collect(),
    })
}

/// By what errors of quantities from fits with one covariance are too small. That covariance is of the same samples whose scatter makes the
/// errors, and the fit weighs least what happens to scatter most in them: with the whole covariance errors are too small by
/// √((m − ν)(m − ν − 1)/(m (m − 1))), m = N − 1, on the average (Rao 1967). Here, which is right for any matrix: the scatter of samples,
/// each seen by the fit with the covariance of all others, over their scatter in the fit as it is, both to first order. `None` where
/// a covariance without a sample has no inverse.
fn growth(
    function: &dyn FitFunction,
    x: &[f64],
    parameters: &[f64],
    whitening: &Whitening,
    (covariance, part): (&Covariance, Range<usize>),
    samples: &[Vec<f64>],
) -> Option<Vec<f64>> {
    let n = samples.len() as f64;
    let mean: Vec<f64> = part.clone().map(|k| samples.iter().map(|s| s[k]).sum::<f64>() / n).collect();
    let slopes = slopes(function, parameters)?;
    // What a deviation of the data does to quantities.
    let seen = |response: &[Vec<f64>], deviation: &[f64]| -> Vec<f64> {
        let moved: Vec<f64> =
            response.iter().map(|b| b.iter().zip(deviation).map(|(b, d)| b * d).sum::<f64>()).collect();
        slopes.iter().map(|slope| slope.iter().zip(&moved).map(|(s, m)| s * m).sum()).collect()
    };
    let all = response(function, x, whitening, parameters)?;
    let (mut with, mut without) = (vec![0.0; slopes.len()], vec![0.0; slopes.len()]);
    for sample in samples {
        let deviation: Vec<f64> = part.clone().zip(&mean).map(|(k, mean)| sample[k] - mean).collect();
        let others = covariance.whitening_without(part.clone(), &deviation, samples.len())?;
        let others = response(function, x, &others, parameters)?;
        with.iter_mut().zip(seen(&all, &deviation)).for_each(|(sum, q)| *sum += q * q);
        without.iter_mut().zip(seen(&others, &deviation)).for_each(|(sum, q)| *sum += q * q);
    }
    Some(
        with.iter()
            .zip(&without)
            .map(|(with, without)| if *with > 0.0 { (without / with).sqrt() } else { 1.0 })
            .collect(),
    )
}

/// ∂(quantities)/∂(parameters) by differences, to a few parts in 10⁸; 0 of a quantity that there is not.
fn slopes(function: &dyn FitFunction, parameters: &[f64]) -> Option<Vec<Vec<f64>>> {
    let there = function.quantities(parameters);
    let mut all = vec![vec![0.0; parameters.len()]; there.len()];
    for k in 0..parameters.len() {
        let step = 1e-6 * parameters[k].abs().max(1e-12);
        let beside = |sign: f64| {
            let mut moved = parameters.to_vec();
            moved[k] += sign * step;
            function.quantities(&moved)
        };
        for (row, (up, down)) in all.iter_mut().zip(beside(1.0).into_iter().zip(beside(-1.0))) {
            row[k] = up.zip(down).map_or(0.0, |(up, down)| (up - down) / (2.0 * step));
        }
    }
    Some(all).filter(|all| all.iter().flatten().all(|s| s.is_finite()))
}

/// Of the first `count` quantities; a model that lacks one, or its error, does not count for it.
fn average(all: &[(f64, Vec<Option<JackknifeEstimate>>)], count: usize) -> Vec<ModelAverage> {
    let one = |k: usize| {
        let there: Vec<(f64, JackknifeEstimate)> = all
            .iter()
            .filter_map(|(p, quantities)| Some((*p, quantities[k].filter(|q| q.error.is_finite())?)))
            .collect();
        let sum: f64 = there.iter().map(|(p, _)| p).sum();
        let mean = |f: &dyn Fn(&JackknifeEstimate) -> f64| there.iter().map(|(p, q)| p * f(q)).sum::<f64>() / sum;
        let value = mean(&|q| q.value);
        // The variance from deviations: differences of squares would lose its digits.
        let systematic = mean(&|q| (q.value - value).powi(2)).sqrt();
        ModelAverage { value, statistical: mean(&|q| q.error * q.error).sqrt(), systematic }
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::random::Philox;

    /// a + b x
    struct Line;
    impl Model for Line {
        fn count(&self) -> usize {
            2
        }
        fn value(&self, x: f64, p: &[f64], gradient: &mut [f64]) -> f64 {
            gradient.copy_from_slice(&[1.0, x]);
            p[0] + p[1] * x
        }
    }
    impl FitFunction for Line {
        fn starts(&self, _: Data) -> Vec<Vec<f64>> {
            vec![vec![0.0; 2]]
        }
        fn names(&self) -> &'static [&'static str] {
            &["value", "slope"]
        }
        fn quantities(&self, p: &[f64]) -> Vec<Option<f64>> {
            p.iter().copied().map(Some).collect()
        }
    }

    /// Rao's formula for 20 samples of 8 independent numbers, m = 19 and ν = 6: squares of errors are too small by
    /// 13 · 12 / (19 · 18), and the covariance without a sample, m = 18, has 17/11 in the place of 18/12. The scatter of the growth is
    /// 30 %, and there are 400 of it.
    #[test]
    fn errors_grow_as_by_raos_formula() {
        let (experiments, count, n) = (400, 20, 8);
        let x: Vec<f64> = (0..n).map(f64::from).collect();
        let (mut sum, mut diagonal) = (0.0, 0.0);
        for number in 0..experiments {
            let mut random = Philox::new(23, number, 3);
            let samples: Vec<Vec<f64>> =
                (0..count).map(|_| (0..n).map(|_| random.normal_pair()[0]).collect()).collect();
            let mean: Vec<f64> =
                (0..n as usize).map(|k| samples.iter().map(|s| s[k]).sum::<f64>() / f64::from(count)).collect();
            for (kind, total) in [(CovarianceKind::Full, &mut sum), (CovarianceKind::Diagonal, &mut diagonal)] {
                let covariance = Covariance::of_mean(&samples, kind);
                let whitening = covariance.whitening(0..n as usize).unwrap();
                let data = Data { x: &x, y: &mean, whitening: &whitening };
                let minimum = minimise(&Line, data, &[0.0, 0.0]).unwrap();
                let place = (&covariance, 0..n as usize);
                let found = growth(&Line, &x, &minimum.parameters, &whitening, place, &samples).unwrap();
                *total += found[1] * found[1] / experiments as f64;
            }
        }
        let expected = (19.0 / 13.0) * (17.0 / 11.0);
        assert!((sum / expected - 1.0).abs() < 0.1, "{sum} {expected}");
        // Weights that come of variances alone are noisy, too, by far less.
        assert!((1.0..1.25).contains(&diagonal), "{diagonal}");
    }
}
