//! Analysis of the records of many configurations: fits of hadrons, scales of the gradient flow, the static potential. Results are
//! available as records and as text, for `ferrite fit`, the summary of `ferrite spectrum`, and pages.
//!
//! | module | what |
//! |---|---|
//! | [`hadrons`] | correlators of `ferrite spectrum` |
//! | [`alternating`] | effective masses of correlators in which a state alternates in sign |
//! | [`pcac`] | quark masses of the axial current, from correlators of `ferrite spectrum` |
//! | [`flow`] | t₀, w₀ and the charge along the flow |
//! | [`potential`] | the static potential |
//! | [`traces`] | tr Γ M⁻¹ of `ferrite trace` |
pub mod alternating;
pub mod flow;
pub mod hadrons;
pub mod pcac;
pub mod potential;
pub mod traces;

use crate::records::ensemble::Stream;
use crate::text::{count, digits};
use ferrite_records::fit::{
    EstimateRecord, FunctionFit, ResamplingRecord, SampleCounts, StreamRecord, WindowAverage, WindowFit,
};
use statistics::Average;
use statistics::effective::CorrelatorShape;
use statistics::fit::correlator::CorrelatorSettings;
use statistics::fit::covariance::CovarianceKind;
use statistics::fit::window::{FEWEST_SAMPLES, UnknownGrowth};
use statistics::fit::{Fit, FitError};
use statistics::jackknife::{JackknifeEstimate, MissingMeans, Resampling, bins};
use std::fmt::Write;
use std::ops::Range;

/// Names of the forms in which a correlator can decay in time.
pub const SHAPES: [(&str, CorrelatorShape); 3] =
    [("cosh", CorrelatorShape::Cosh), ("sinh", CorrelatorShape::Sinh), ("exp", CorrelatorShape::Exponential)];
/// Names of the types of covariance matrix of a fit.
pub const COVARIANCES: [(&str, CovarianceKind); 3] =
    [("full", CovarianceKind::Full), ("shrunk", CovarianceKind::Shrunk), ("diagonal", CovarianceKind::Diagonal)];

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, one)| *one == value).map_or("", |(name, _)| name)
}

/// Settings of an analysis: bins, fits, errors and streams.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalysisChoice {
    /// Number of configurations in a bin.
    pub bin: usize,
    /// Settings of fits, both of correlators and of Wilson loops in T.
    pub fits: CorrelatorSettings,
    /// Form in which correlators decay in time; `None` to choose it by the name of the hadron or correlator.
    pub shape: Option<CorrelatorShape>,
    /// Shortest and longest distance in the fit of the potential; `None` to select them by the information criterion.
    pub distances: Option<[f64; 2]>,
    /// Streams to which the configurations belong, in the order of the configurations; bins do not extend across the end of a stream.
    /// Empty for a single series.
    pub streams: Vec<Stream>,
}

impl AnalysisChoice {
    /// Returns default settings with bins of `bin` configurations.
    pub fn with_bin(bin: usize) -> Self {
        AnalysisChoice { bin, fits: CorrelatorSettings::default(), shape: None, distances: None, streams: Vec::new() }
    }
    /// Returns means over bins of samples, where each sample belongs to one configuration. Samples at the end of a stream that do not fill
    /// a bin are left out. If no stream fills a bin, all samples form one bin.
    pub fn binned(&self, samples: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let whole = self.parts(samples.len()).filter(|part| part.len() >= self.bin);
        let all: Vec<Vec<f64>> = whole.flat_map(|part| bins(&samples[part], self.bin)).collect();
        if all.is_empty() && !samples.is_empty() { bins(samples, samples.len()) } else { all }
    }
    /// Returns mean, error and autocorrelation time of a series with one number for each configuration. The numbers are divided into
    /// streams like the configurations.
    pub fn average(&self, series: &[f64]) -> Average {
        average_of_streams(series, &self.parts(series.len()).collect::<Vec<_>>())
    }
    /// Returns the range of configurations of each stream.
    fn parts(&self, configurations: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let known = self.streams.iter().map(|stream| stream.configurations).sum::<usize>() == configurations;
        let lengths: Vec<usize> = match known && configurations > 0 {
            true => self.streams.iter().map(|stream| stream.configurations).collect(),
            false => vec![configurations],
        };
        lengths.into_iter().scan(0, |end, length| {
            *end += length;
            Some(*end - length..*end)
        })
    }
    /// Returns the JSON record of the numbers of configurations and bins, and of the method of error estimation.
    pub fn record(&self, configurations: usize) -> SampleCounts {
        let (kind, draws, seed) = match self.fits.resampling {
            Resampling::Jackknife => ("jackknife", None, None),
            Resampling::Bootstrap { draws, seed } => ("bootstrap", Some(draws), Some(seed)),
        };
        let bins = self.bins(configurations);
        let stream = |one: &Stream| StreamRecord { name: one.name.clone(), configurations: one.configurations };
        SampleCounts {
            configurations,
            bin: self.bin,
            bins,
            left_out: configurations.saturating_sub(bins * self.bin),
            resampling: ResamplingRecord { kind: kind.into(), draws, seed },
            streams: self.streams.iter().map(stream).collect(),
        }
    }
    /// Returns the number of full bins in `configurations` configurations. If there are configurations but no full bin, all of them form
    /// one bin.
    pub fn bins(&self, configurations: usize) -> usize {
        let whole: usize = self.parts(configurations).map(|part| part.len() / self.bin).sum();
        if configurations == 0 { 0 } else { whole.max(1) }
    }
    /// Describes samples and errors: `40 configurations in 20 bins of 2, errors by the jackknife`.
    pub fn sentence(&self, configurations: usize) -> String {
        let mut text = count(configurations, "configuration");
        if self.streams.len() > 1 {
            let _ = write!(text, " of {}", count(self.streams.len(), "stream"));
        }
        if self.bin > 1 {
            let bins = self.bins(configurations);
            let _ = write!(text, " in {} of {}", count(bins, "bin"), self.bin);
            match configurations.saturating_sub(bins * self.bin) {
                0 => {}
                rest if self.streams.len() > 1 => drop(write!(text, ", without {rest} at the ends of streams")),
                rest => drop(write!(text, ", without the last {rest}")),
            }
        }
        match self.fits.resampling {
            Resampling::Jackknife => text += ", jackknife errors",
            Resampling::Bootstrap { draws, .. } => {
                let _ = write!(text, ", bootstrap errors with {}", count(draws, "draw"));
            }
        }
        text
    }
}

/// Returns mean, error and autocorrelation time of a series that consists of several streams. Deviations are from the mean of all
/// streams, as in [`statistics::average`]. Products of deviations are taken within streams only.
fn average_of_streams(series: &[f64], streams: &[Range<usize>]) -> Average {
    if streams.len() < 2 || series.len() < 2 {
        return statistics::average(series);
    }
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n as f64;
    let covariance = |t: usize| {
        let (mut sum, mut pairs) = (0.0, 0);
        for stream in streams.iter().filter(|stream| stream.len() > t) {
            let stream = &series[stream.clone()];
            sum += stream.iter().zip(&stream[t..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
            pairs += stream.len() - t;
        }
        sum / pairs as f64
    };
    let variance = covariance(0);
    if variance == 0.0 {
        return Average { mean, error: 0.0, autocorrelation: 0.5 };
    }
    let longest = streams.iter().map(Range::len).max().unwrap_or(0);
    let mut tau = 0.5;
    for t in 1..longest / 2 {
        tau += covariance(t) / variance;
        if t as f64 >= 6.0 * tau {
            break;
        }
    }
    let tau = tau.max(0.5);
    Average { mean, error: (2.0 * tau * variance / (n - 1) as f64).sqrt(), autocorrelation: tau }
}

/// Returns the JSON record of an estimate; `None` if there is no estimate.
pub fn estimate_record(estimate: Option<JackknifeEstimate>) -> Option<EstimateRecord> {
    let JackknifeEstimate { value, error, missing } = estimate?;
    let [missing, means] = [missing.count, missing.of].map(|n| (missing.count > 0).then_some(n));
    Some(EstimateRecord { value, error, missing, means })
}

/// Returns the JSON records of a list of estimates.
pub fn estimate_records(estimates: &[Option<JackknifeEstimate>]) -> Vec<Option<EstimateRecord>> {
    estimates.iter().copied().map(estimate_record).collect()
}

/// Returns the estimate in a record, or `None` if its value is not finite.
pub fn estimate_of(record: Option<EstimateRecord>) -> Option<JackknifeEstimate> {
    let EstimateRecord { value, error, missing, means } = record.filter(|record| record.value.is_finite())?;
    let missing = MissingMeans { count: missing.unwrap_or(0), of: means.unwrap_or(0) };
    Some(JackknifeEstimate { value, error, missing })
}

/// Formats an estimate as `0.4512 ± 0.0023`, or as `0.4512 (error unknown: 3 of 400 means have no value)`.
pub fn estimate_text(estimate: Option<JackknifeEstimate>) -> String {
    let Some(JackknifeEstimate { value, error, missing }) = estimate else { return "–".into() };
    match (digits(value, error), missing.count) {
        ([value, error], 0) if error == "–" => value,
        ([value, error], 0) => format!("{value} ± {error}"),
        ([value, error], _) if error == "–" => format!("{value} (error unknown: {missing})"),
        ([value, error], _) => format!("{value} ± {error} ({missing})"),
    }
}

/// Formats an estimate for tables. The text for an unknown error is shorter than that of [`estimate_text`]: `0.4512 (3 of 400 missing)`.
pub fn estimate_cell(estimate: Option<JackknifeEstimate>) -> String {
    let Some(JackknifeEstimate { value, error, missing }) = estimate else { return "–".into() };
    let [value, error] = digits(value, error);
    let error = if error == "–" { String::new() } else { format!(" ± {error}") };
    let missing =
        if missing.count == 0 { String::new() } else { format!(" ({} of {} missing)", missing.count, missing.of) };
    value + &error + &missing
}

/// Returns remarks on a fit: functions without a minimum, unknown errors, windows that means leave out, and a χ² that is too large for
/// the function. `functions` are the names of the functions that were tried.
fn remarks(fit: &Fit, functions: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for without in &fit.without_minimum {
        let name = functions.get(without.function).map_or("the function", String::as_str);
        all.push(match (without.windows, without.of) {
            (1, 1) => format!("{name}: chi2 has no minimum"),
            (windows, of) if windows == of => format!("{name}: chi2 has no minimum in any of {}", count(of, "window")),
            (windows, of) => {
                format!("{name}: chi2 has no minimum in {windows} of {}, which are skipped", count(of, "window"))
            }
        });
    }
    if let Some(why) = fit.unknown_growth {
        let advice = match why {
            UnknownGrowth::Singular(_) => "; use more configurations, a shorter window, or --covariance shrunk",
            UnknownGrowth::Degenerate => "; name another window, or fewer states",
        };
        all.push(format!("errors are unknown: {why}{advice}"));
    }
    for (name, average) in fit.names.iter().zip(&fit.averages).filter(|(_, average)| average.left_out > 0) {
        let models = count(average.left_out, "model");
        let percent = 100.0 * average.left_out_probability;
        let name = name.replace('_', " ");
        all.push(format!(
            "{models} with {percent:.1} % of the probability have no value or error and are left out of the mean of \
             the {name}"
        ));
    }
    let best = &fit.best;
    if best.quality.p_value < LEAST_P {
        let per_dof = best.minimum.chi2 / best.quality.expected_chi2;
        all.push(format!(
            "chi2 is {per_dof:.1} times its expected value (p = {:.0e}): the function does not describe the data in this window",
            best.quality.p_value
        ));
    }
    all
}

/// Smallest p-value without a warning; it is exceeded by all but one in 10,000 correct fits.
const LEAST_P: f64 = 1e-4;

/// Returns the JSON record of a fit without its quantities. `place` converts an end of a window. `functions` are the functions that were
/// tried, each with its number of states and its name.
fn fit_record<W>(fit: &Fit, place: &dyn Fn(usize) -> W, functions: &[(usize, String)]) -> FunctionFit<W> {
    let averages = fit.names.iter().zip(&fit.averages).map(|(name, a)| {
        let is_partial = a.left_out > 0;
        let average = WindowAverage {
            value: a.value,
            statistical: a.statistical,
            systematic: a.systematic,
            left_out: is_partial.then_some(a.left_out),
            left_out_probability: is_partial.then_some(a.left_out_probability),
        };
        (name.to_string(), average)
    });
    let tried = fit.candidates.iter().take(MOST_WINDOWS).map(|one| WindowFit {
        function: functions.get(one.function).map(|(states, _)| *states),
        window: one.window.map(place),
        chi2: one.minimum.chi2,
        dof: one.dof,
        p_value: one.quality.p_value,
        probability: one.probability,
        parameters: one.minimum.parameters.clone(),
    });
    let best = &fit.best;
    FunctionFit {
        window: best.window.map(place),
        chi2: best.minimum.chi2,
        dof: best.dof,
        expected_chi2: best.quality.expected_chi2,
        p_value: best.quality.p_value,
        covariance: name_of(&COVARIANCES, fit.covariance).into(),
        shrinkage: fit.shrinkage,
        parameters: Some(best.minimum.parameters.clone()),
        remarks: remarks(fit, &functions.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>()),
        average: Some((!fit.averages.is_empty()).then(|| averages.collect())),
        windows: Some(tried.collect()),
        windows_tried: fit.candidates.len(),
    }
}

/// Returns the JSON record of the quantity `name`, or `None` if it has no value.
fn quantity(fit: &Fit, name: &str) -> Option<EstimateRecord> {
    let place = fit.names.iter().position(|one| *one == name)?;
    estimate_record(*fit.quantities.get(place)?)
}

/// Maximum number of windows in a record; the most probable ones are kept.
const MOST_WINDOWS: usize = 20;

/// Formats the quality of a fit as `chi2/dof = 3.2/5, p = 0.67`, or with the reason why there is no p-value.
fn quality_text(fit: &Fit) -> String {
    let best = &fit.best;
    let expected = Some(best.quality.expected_chi2).filter(|_| fit.covariance != CovarianceKind::Full);
    quality_words("chi2", best.minimum.chi2, best.dof, expected, best.quality.p_value)
        + match fit.covariance {
            CovarianceKind::Full => "",
            CovarianceKind::Shrunk => ", shrunk covariance",
            CovarianceKind::Diagonal => ", without correlations",
        }
}

/// Describes χ² of a fit with its p-value. The text is empty without degrees of freedom. If the p-value is NaN, the text states the
/// reason.
pub(crate) fn quality_words(name: &str, chi2: f64, dof: usize, expected: Option<f64>, p: f64) -> String {
    if dof == 0 {
        return format!("as many parameters as data, so that {name} and p have no meaning");
    }
    if !chi2.is_finite() {
        return format!("no {name}: it is not finite");
    }
    let mut text = format!("{name}/dof = {chi2:.2}/{dof}");
    if let Some(expected) = expected.filter(|expected| expected.is_finite()) {
        let _ = write!(text, " ({expected:.2} expected)");
    }
    match p.is_finite() {
        true => text + &format!(", p {}", p_text(p)),
        false => text + ", no p: the number of bins does not exceed the degrees of freedom",
    }
}

/// Formats a p-value as `= 0.67`, or as `< 0.001` if it would be rounded to 0.
pub(crate) fn p_text(p: f64) -> String {
    match p {
        p if !p.is_finite() => "–".into(),
        p if p < 0.001 => "< 0.001".into(),
        p if p < 0.095 => format!("= {p:.3}"),
        p => format!("= {p:.2}"),
    }
}

/// Formats the mean over windows of a quantity: `mean over 28 windows: 0.4510 ± 0.0022 (statistics) ± 0.0008 (window)`.
fn average_text(fit: &Fit, quantity: usize) -> Option<String> {
    let average = fit.averages.get(quantity)?;
    let [value, error] = digits(average.value, average.statistical);
    let [_, systematic] = digits(average.value, average.systematic);
    let windows = count(fit.candidates.len(), "window");
    if !average.value.is_finite() {
        return Some(format!("no mean over {windows}: no probable window has an error"));
    }
    Some(format!("mean over {windows}: {value} ± {error} (statistics) ± {systematic} (window)"))
}

/// Describes why a fit is not possible and what to change.
pub fn why_not(error: &FitError) -> String {
    if let FitError::FewSamples { found } = error {
        let found = count(*found, "sample");
        return format!("{found}, but a fit needs {FEWEST_SAMPLES}: use more configurations or smaller bins");
    }
    let out = match error {
        FitError::FewSamples { .. } => "",
        FitError::FewData { .. } => ": name a longer window, or fewer states",
        FitError::Singular { .. } => ": use more configurations, a shorter window, or --covariance shrunk",
        FitError::NoMinimum | FitError::MissingMeans(_) => "; name another window, or fewer states",
        FitError::OutsideData { .. } => ": name another window",
        FitError::UnequalSamples { .. } => "",
    };
    format!("{error}{out}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_streams(bin: usize, lengths: &[usize]) -> AnalysisChoice {
        let stream =
            |(k, configurations): (usize, &usize)| Stream { name: format!("{k}.*"), configurations: *configurations };
        let streams = lengths.iter().enumerate().map(stream).collect();
        AnalysisChoice { streams, ..AnalysisChoice::with_bin(bin) }
    }

    #[test]
    fn bins_end_with_their_stream() {
        let samples: Vec<Vec<f64>> = (0..9).map(|k| vec![f64::from(k)]).collect();
        let choice = with_streams(2, &[5, 1, 3]);
        assert_eq!(choice.binned(&samples), [[0.5], [2.5], [6.5]]);
        assert_eq!((choice.bins(9), choice.record(9).left_out), (3, 3));
        assert_eq!(
            choice.sentence(9),
            "9 configurations of 3 streams in 3 bins of 2, without 3 at the ends of streams, jackknife errors"
        );
        // Bins that are longer than every stream: one of all.
        assert_eq!((with_streams(6, &[5, 4]).binned(&samples), with_streams(6, &[5, 4]).bins(9)), (vec![vec![4.0]], 1));
        assert_eq!(with_streams(3, &[9]).binned(&samples), AnalysisChoice::with_bin(3).binned(&samples));
        assert!(AnalysisChoice::with_bin(2).binned(&[]).is_empty());
    }

    /// A chain that steps from one level to another half way is correlated over half of its length; of two chains, each on its own
    /// level, no pair is further apart than a chain is long, and means of equal chains are those of one.
    #[test]
    fn autocorrelations_do_not_cross_streams() {
        let series: Vec<f64> = (0..40).map(|k| f64::from((7 * k) % 5) + if k < 20 { 0.0 } else { 3.0 }).collect();
        let one = AnalysisChoice::with_bin(1).average(&series);
        assert_eq!(one, statistics::average(&series));
        let two = with_streams(1, &[20, 20]).average(&series);
        // By plain sums over pairs within streams.
        let mean = series.iter().sum::<f64>() / 40.0;
        let covariance = |t: usize| {
            let pairs = (0..40 - t).filter(|k| k / 20 == (k + t) / 20);
            let products: Vec<f64> = pairs.map(|k| (series[k] - mean) * (series[k + t] - mean)).collect();
            products.iter().sum::<f64>() / products.len() as f64
        };
        let mut tau = 0.5;
        for t in 1..10 {
            tau += covariance(t) / covariance(0);
            if t as f64 >= 6.0 * tau {
                break;
            }
        }
        // Sums of 40 numbers in another order.
        assert!((two.autocorrelation / tau.max(0.5) - 1.0).abs() < 1e-12 && two.mean == mean, "{two:?} {tau}");
        let error = (2.0 * tau.max(0.5) * covariance(0) / 39.0).sqrt();
        assert!((two.error / error - 1.0).abs() < 1e-12);
        assert_ne!(one.autocorrelation, two.autocorrelation);
    }

    #[test]
    fn what_means_nothing_is_left_out_with_the_reason() {
        assert_eq!(quality_words("chi2", 3.25, 5, None, 0.66), "chi2/dof = 3.25/5, p = 0.66");
        assert_eq!(quality_words("chi2", 3.25, 5, Some(4.0), 1e-9), "chi2/dof = 3.25/5 (4.00 expected), p < 0.001");
        assert_eq!(
            quality_words("χ²", 0.0, 0, None, f64::NAN),
            "as many parameters as data, so that χ² and p have no meaning"
        );
        let few = quality_words("chi2", 3.25, 8, None, f64::NAN);
        assert_eq!(few, "chi2/dof = 3.25/8, no p: the number of bins does not exceed the degrees of freedom");
        assert!(!quality_words("chi2", f64::NAN, 8, Some(f64::NAN), f64::NAN).contains("NaN"));
        assert_eq!([0.042, 0.5, f64::NAN].map(p_text), ["= 0.042", "= 0.50", "–"]);
        assert!(why_not(&FitError::FewSamples { found: 1 }).starts_with("1 sample, but a fit needs 4"));
    }
}
