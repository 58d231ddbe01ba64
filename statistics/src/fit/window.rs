//! Choice of the fitted data and of the function.
//!
//! Each function f with each window of neighbouring data is a model M. With χ² at its minimum, k parameters, and N_cut data left out, its
//! probability is
//!
//! pr(M|D) ∝ exp(−AIC/2), AIC = χ² + 2 k + 2 N_cut
//!
//! (Jay and Neil, arXiv:2008.01069, Phys. Rev. D 103, 114502, without priors). The fit that is reported first is that of the most probable
//! model; the mean over all models is reported beside it, a = Σ pr(M) a_M, with the statistical error √(Σ pr(M) σ²_M) and the error due to
//! the choice of model, √(Σ pr(M) a²_M − a²), as in that paper.
//!
//! If χ² does not contain the full covariance, its mean is not the number of degrees of freedom ν; then χ² ν/⟨χ²⟩ replaces it, with the
//! ⟨χ²⟩ of [`Quality`].
use super::covariance::{Covariance, CovarianceKind, Whitening};
use super::least_squares::{Data, Minimum, Model, minimise, response};
use super::quality::Quality;
use crate::jackknife::{JackknifeEstimate, MissingMeans, Resampling};
use rayon::prelude::*;
use std::ops::Range;

/// Fit function with starting points and derived quantities.
pub trait FitFunction: Model {
    /// Returns parameters from which searches start. The lowest minimum that they find is used.
    fn starts(&self, data: Data) -> Vec<Vec<f64>>;
    /// Returns the names of the quantities derived from the parameters. Functions that are compared must share the first names.
    fn names(&self) -> &'static [&'static str];
    /// Computes the quantities derived from the parameters, in the order of [`names`](Self::names).
    fn quantities(&self, parameters: &[f64]) -> Vec<Option<f64>>;
    /// Returns parameters at the edge of their range if χ² is smallest there and has no minimum in the interior; otherwise `None`.
    fn edge(&self, _data: Data) -> Option<Vec<f64>> {
        None
    }
}

/// Settings for a fit of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitSettings {
    /// First and last datum of the window; `None` to choose them by the Akaike information criterion of Jay
    /// and Neil.
    pub window: Option<[usize; 2]>,
    /// Whether all windows that are tried end with the last datum.
    pub to_end: bool,
    /// Estimator of the covariance; `None` to choose it by [`covariance_for`].
    pub covariance: Option<CovarianceKind>,
    /// Resampling method that yields the errors.
    pub resampling: Resampling,
}

/// Smallest number of samples of a fit. With fewer samples, not even rough errors are known.
pub const FEWEST_SAMPLES: usize = 4;

/// Returns the estimator of the covariance for these numbers of samples and data: the full one with at least four samples for each datum,
/// otherwise the shrunk one.
pub fn covariance_for(samples: usize, data: usize) -> CovarianceKind {
    if samples >= 4 * data { CovarianceKind::Full } else { CovarianceKind::Shrunk }
}

/// Reason why a fit is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// A fit needs more samples.
    #[error("{found} samples, but a fit needs {FEWEST_SAMPLES}")]
    FewSamples {
        /// Number of samples.
        found: usize,
    },
    /// No window has more data than parameters.
    #[error("{data} data for {parameters} parameters: a fit needs more data than parameters")]
    FewData {
        /// Number of data.
        data: usize,
        /// Number of parameters of the function.
        parameters: usize,
    },
    /// The covariance has no inverse in double precision.
    #[error("the covariance of {data} data is not invertible")]
    Singular {
        /// Number of data.
        data: usize,
    },
    /// The window extends beyond the data.
    #[error("the window from {first} to {last} is outside the {data} data, which are counted from 0")]
    OutsideData {
        /// First datum of the window.
        first: usize,
        /// Last datum of the window.
        last: usize,
        /// Number of data.
        data: usize,
    },
    /// The samples have different lengths.
    #[error("sample {sample} has {found} numbers, but the first one has {expected}")]
    UnequalSamples {
        /// Index of the sample, from 0.
        sample: usize,
        /// Length of that sample.
        found: usize,
        /// Length of the first sample.
        expected: usize,
    },
    /// Some means of the jackknife have no value, so they cannot be converted to samples.
    #[error("{0}")]
    MissingMeans(MissingMeans),
    /// χ² has no minimum in any window.
    #[error("χ² has no minimum: the data do not determine the parameters")]
    NoMinimum,
}

/// Model: the fit of one function in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Index of the function in the list of functions to fit.
    pub function: usize,
    /// Indices of the first and of the last datum of the window.
    pub window: [usize; 2],
    /// Minimum of χ².
    pub minimum: Minimum,
    /// Degrees of freedom: number of data minus number of parameters.
    pub dof: usize,
    /// Expected χ² and p-value.
    pub quality: Quality,
    /// Probability of this model; the probabilities of all models add up to 1.
    pub probability: f64,
}

/// Mean of a quantity over models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelAverage {
    /// Mean Σ pr a over models with probability pr and value a.
    pub value: f64,
    /// Statistical error √(Σ pr σ²), where σ is the error in one model.
    pub statistical: f64,
    /// Systematic error √(Σ pr a² − (Σ pr a)²), from the choice of model.
    pub systematic: f64,
    /// Number of models in the mean.
    pub models: usize,
    /// Number of models that are left out because they lack the quantity or its error.
    pub left_out: usize,
    /// Total probability of the models that are left out, relative to that of all models considered for the mean.
    pub left_out_probability: f64,
}

/// A function for which χ² has no minimum in some windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutMinimum {
    /// Index of the function in the list of functions to fit.
    pub function: usize,
    /// Number of windows in which χ² of this function has no minimum.
    pub windows: usize,
    /// Number of windows in which this function was fitted.
    pub of: usize,
}

/// Reason why the errors of a fit are unknown although every mean has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownGrowth {
    /// The covariance without one sample is not invertible for this number of samples.
    #[error("if one of {0} of the samples is left out, the covariance is not invertible")]
    Singular(usize),
    /// The parameters are not determined by the data to first order.
    #[error("the parameters are not determined to first order")]
    Degenerate,
}

/// Result of fitting functions to data in several windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Most probable model.
    pub best: Candidate,
    /// Names of the quantities that the best model determines.
    pub names: &'static [&'static str],
    /// Quantities in the best model, with errors.
    pub quantities: Vec<Option<JackknifeEstimate>>,
    /// Means over models of the quantities that all functions share. Empty if only one model could be fitted.
    pub averages: Vec<ModelAverage>,
    /// All models, the most probable first.
    pub candidates: Vec<Candidate>,
    /// Estimator of the covariance that was used.
    pub covariance: CovarianceKind,
    /// Shrinkage parameter λ of the covariance.
    pub shrinkage: f64,
    /// Inverse Cholesky factor of the covariance in the window of the best model.
    pub whitening: Whitening,
    /// Functions that have no minimum in some or all windows, which are left out.
    pub without_minimum: Vec<WithoutMinimum>,
    /// Reason why the errors of the best model are missing although every mean has a value.
    pub unknown_growth: Option<UnknownGrowth>,
}

/// Index of a function, with its minimum in a window and the covariance there; `None` if it has no minimum.
type FittedFunction = (usize, Option<(Candidate, Whitening)>);

/// Probability relative to the best model below which models do not enter means. Computing the errors of all models would take too long.
const LEAST: f64 = 0.01;

/// Fits functions to the means of samples at the points `x`, in all windows of data within `among`.
///
/// # Errors
/// Returns [`FitError`] if no fit is possible.
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
    let length = samples[0].len().min(x.len());
    if let Some((sample, found)) =
        samples.iter().map(Vec::len).enumerate().find(|(_, found)| *found != samples[0].len())
    {
        return Err(FitError::UnequalSamples { sample, found, expected: samples[0].len() });
    }
    if let Some([first, last]) = settings.window.filter(|[first, last]| first > last || *last >= length) {
        return Err(FitError::OutsideData { first, last, data: length });
    }
    let among = settings.window.map_or(among.start..among.end.min(length), |[first, last]| first..last + 1);
    let fewest = functions.iter().map(|f| f.count()).min().unwrap_or(0);
    if among.len() <= fewest {
        return Err(FitError::FewData { data: among.len(), parameters: fewest });
    }
    let kind = settings.covariance.unwrap_or_else(|| covariance_for(n, among.len()));
    // The shrinkage parameter λ of the covariance depends on all data in it, so the covariance includes only the data `among` which windows
    // are chosen.
    let used: Vec<Vec<f64>> = samples.iter().map(|sample| sample[among.clone()].to_vec()).collect();
    let (x, first) = (&x[among.clone()], among.start);
    let covariance = Covariance::of_mean(&used, kind);
    let mean: Vec<f64> = (0..among.len()).map(|k| used.iter().map(|s| s[k]).sum::<f64>() / n as f64).collect();
    let windows: Vec<Range<usize>> = match settings.window {
        Some(_) => std::iter::once(0..among.len()).collect(),
        None if settings.to_end => (0..among.len()).map(|a| a..among.len()).collect(),
        None => (0..among.len()).flat_map(|a| (a + 1..=among.len()).map(move |b| a..b)).collect(),
    };
    // Returns, for each function, the minimum in the window; `None` if the covariance of the window has no inverse.
    let fitted = |window: &Range<usize>| -> Option<Vec<FittedFunction>> {
        let whitening = covariance.whitening(window.clone())?;
        let data = Data { x: &x[window.clone()], y: &mean[window.clone()], whitening: &whitening };
        let one = |(number, function): (usize, &&dyn FitFunction)| {
            let candidate = lowest(*function, data).map(|minimum| {
                let dof = window.len() - function.count();
                let quality = match kind {
                    CovarianceKind::Full => Quality::correlated(minimum.chi2, dof, n),
                    _ => {
                        let place = (&covariance, window.clone());
                        Quality::of(minimum.chi2, *function, data.x, &minimum.parameters, &whitening, place)
                    }
                };
                let chi2 = match quality.expected_chi2 {
                    expected if expected > 0.0 => minimum.chi2 * dof as f64 / expected,
                    _ => minimum.chi2,
                };
                let criterion = chi2 + 2.0 * (function.count() + among.len() - window.len()) as f64;
                let window = [first + window.start, first + window.end - 1];
                let one = Candidate { function: number, window, minimum, dof, quality, probability: criterion };
                (one, whitening.clone())
            });
            (number, candidate)
        };
        Some(functions.iter().enumerate().filter(|(_, f)| f.count() < window.len()).map(one).collect())
    };
    let fitted: Vec<_> = windows.par_iter().map(fitted).collect();
    let singular = fitted.iter().all(Option::is_none);
    let mut without_minimum: Vec<WithoutMinimum> =
        (0..functions.len()).map(|function| WithoutMinimum { function, windows: 0, of: 0 }).collect();
    let mut tried: Vec<(Candidate, Whitening)> = Vec::new();
    for (function, candidate) in fitted.into_iter().flatten().flatten() {
        without_minimum[function].of += 1;
        match candidate {
            Some(candidate) => tried.push(candidate),
            None => without_minimum[function].windows += 1,
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
            match nearest(function, data, &one.minimum.parameters) {
                Some(parameters) => function.quantities(&parameters),
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
        (estimates, growth.err())
    };
    let (best, whitening) = &tried[0];
    let (names, (quantities, unknown_growth)) = (functions[best.function].names(), again(best, whitening));
    let averages = if tried.len() > 1 {
        let likely = tried.par_iter().filter(|(one, _)| one.probability >= LEAST * best.probability);
        let all: Vec<(f64, Vec<Option<JackknifeEstimate>>)> =
            likely.map(|(one, whitening)| (one.probability, again(one, whitening).0)).collect();
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
        without_minimum: without_minimum.into_iter().filter(|one| one.windows > 0).collect(),
        unknown_growth,
        candidates: tried.into_iter().map(|(one, _)| one).collect(),
    })
}

/// Returns the lowest of the minima that the starts of a function lead to.
fn lowest(function: &dyn FitFunction, data: Data) -> Option<Minimum> {
    let minima = function.starts(data).into_iter().filter_map(|start| minimise(function, data, &start));
    minima.min_by(|a, b| a.chi2.total_cmp(&b.chi2))
}

/// Returns the parameters at the minimum for the mean in `data`, which is not that of all samples. This is the minimum nearest to
/// `parameters`; if there is none, the lowest minimum; otherwise the minimum of χ² at the edge of the parameters.
pub(super) fn nearest(function: &dyn FitFunction, data: Data, parameters: &[f64]) -> Option<Vec<f64>> {
    let near = minimise(function, data, parameters).or_else(|| lowest(function, data));
    near.map(|minimum| minimum.parameters).or_else(|| function.edge(data))
}

/// Computes the factor by which errors of quantities from fits with one covariance are too small. The same samples give both this
/// covariance and, by their scatter, the errors, and the fit gives least weight to directions that happen to scatter most. With the full
/// covariance, errors are too small by √((m − ν)(m − ν − 1)/(m (m − 1))), m = N − 1, on average (Rao 1967). The computed factor is
/// correct for any matrix: it is the scatter of samples that are each fitted with the covariance of all others, divided by their scatter
/// in the actual fit, both to first order.
///
/// # Errors
/// Returns [`UnknownGrowth`] if the factor cannot be computed.
fn growth(
    function: &dyn FitFunction,
    x: &[f64],
    parameters: &[f64],
    whitening: &Whitening,
    (covariance, part): (&Covariance, Range<usize>),
    samples: &[Vec<f64>],
) -> Result<Vec<f64>, UnknownGrowth> {
    let n = samples.len() as f64;
    let mean: Vec<f64> = part.clone().map(|k| samples.iter().map(|s| s[k]).sum::<f64>() / n).collect();
    let slopes = slopes(function, parameters).ok_or(UnknownGrowth::Degenerate)?;
    // Computes the change of the quantities that a deviation of the data causes.
    let seen = |response: &[Vec<f64>], deviation: &[f64]| -> Vec<f64> {
        let moved: Vec<f64> =
            response.iter().map(|b| b.iter().zip(deviation).map(|(b, d)| b * d).sum::<f64>()).collect();
        slopes.iter().map(|slope| slope.iter().zip(&moved).map(|(s, m)| s * m).sum()).collect()
    };
    let all = response(function, x, whitening, parameters).ok_or(UnknownGrowth::Degenerate)?;
    let (mut with, mut without) = (vec![0.0; slopes.len()], vec![0.0; slopes.len()]);
    let mut singular = 0;
    for sample in samples {
        let deviation: Vec<f64> = part.clone().zip(&mean).map(|(k, mean)| sample[k] - mean).collect();
        let Some(others) = covariance.whitening_without(part.clone(), &deviation, samples.len()) else {
            singular += 1;
            continue;
        };
        let others = response(function, x, &others, parameters).ok_or(UnknownGrowth::Degenerate)?;
        with.iter_mut().zip(seen(&all, &deviation)).for_each(|(sum, q)| *sum += q * q);
        without.iter_mut().zip(seen(&others, &deviation)).for_each(|(sum, q)| *sum += q * q);
    }
    if singular > 0 {
        return Err(UnknownGrowth::Singular(singular));
    }
    let ratio = |(with, without): (&f64, &f64)| if *with > 0.0 { (without / with).sqrt() } else { 1.0 };
    Ok(with.iter().zip(&without).map(ratio).collect())
}

/// Computes ∂(quantities)/∂(parameters) by differences, accurate to a few parts in 10⁸. The derivatives of a missing quantity are 0.
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

/// Averages the first `count` quantities over models. A mean leaves out models that lack the quantity or its error, and counts them.
fn average(all: &[(f64, Vec<Option<JackknifeEstimate>>)], count: usize) -> Vec<ModelAverage> {
    let one = |k: usize| {
        let there: Vec<(f64, JackknifeEstimate)> = all
            .iter()
            .filter_map(|(p, quantities)| Some((*p, quantities[k].filter(|q| q.error.is_finite())?)))
            .collect();
        let sum: f64 = there.iter().map(|(p, _)| p).sum();
        let whole: f64 = all.iter().map(|(p, _)| p).sum();
        let mean = |f: &dyn Fn(&JackknifeEstimate) -> f64| there.iter().map(|(p, q)| p * f(q)).sum::<f64>() / sum;
        let value = mean(&|q| q.value);
        ModelAverage {
            value,
            statistical: mean(&|q| q.error * q.error).sqrt(),
            // The variance is computed from deviations, because differences of squares would lose digits.
            systematic: mean(&|q| (q.value - value).powi(2)).sqrt(),
            models: there.len(),
            left_out: all.len() - there.len(),
            left_out_probability: if there.len() < all.len() { 1.0 - sum / whole } else { 0.0 },
        }
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::random::Philox;

    /// a + b x.
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

    /// Checks Rao's formula for 20 samples of 8 independent numbers, m = 19 and ν = 6: squares of errors are too small by 13 · 12 / (19 ·
    /// 18), and for the covariance without a sample, m = 18, 18/12 is replaced by 17/11. The growth scatters by 30 %, and there are 400
    /// values of it.
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
        // Weights from variances alone are noisy too, but far less.
        assert!((1.0..1.25).contains(&diagonal), "{diagonal}");
    }
}
