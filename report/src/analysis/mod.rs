//! What is made of the records of many configurations: fits of hadrons, scales of the gradient flow, the static potential. As JSON and
//! as text, for `ferrite fit`, the summary of `ferrite spectrum`, and pages.
//!
//! | module | what |
//! |---|---|
//! | [`hadrons`] | correlators of `ferrite spectrum` |
//! | [`pcac`] | quark masses of the axial current, from correlators of `ferrite spectrum` |
//! | [`flow`] | t₀, w₀ and the charge along the flow |
//! | [`potential`] | the static potential |
//! | [`traces`] | tr Γ M⁻¹ of `ferrite trace` |
pub mod flow;
pub mod hadrons;
pub mod pcac;
pub mod potential;
pub mod traces;

use crate::text::{count, digits};
use serde_json::{Value, json};
use statistics::effective::CorrelatorShape;
use statistics::fit::correlator::CorrelatorSettings;
use statistics::fit::covariance::CovarianceKind;
use statistics::fit::window::UnknownGrowth;
use statistics::fit::{Fit, FitError};
use statistics::jackknife::{JackknifeEstimate, MissingMeans, Resampling};
use std::fmt::Write;

/// Names of the ways in which a correlator falls.
pub const SHAPES: [(&str, CorrelatorShape); 3] =
    [("cosh", CorrelatorShape::Cosh), ("sinh", CorrelatorShape::Sinh), ("exp", CorrelatorShape::Exponential)];
/// Names of the covariances of a fit.
pub const COVARIANCES: [(&str, CovarianceKind); 3] =
    [("full", CovarianceKind::Full), ("shrunk", CovarianceKind::Shrunk), ("diagonal", CovarianceKind::Diagonal)];

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, one)| *one == value).map_or("", |(name, _)| name)
}

/// How records are analysed.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalysisChoice {
    /// Configurations of a bin.
    pub bin: usize,
    /// Of fits of correlators, and of Wilson loops in T.
    pub fits: CorrelatorSettings,
    /// How correlators fall; `None`: as hadrons are known to, and a cosh for others.
    pub shape: Option<CorrelatorShape>,
    /// Shortest and longest distance of the potential's fit; `None`: by the criterion.
    pub distances: Option<[f64; 2]>,
}

impl AnalysisChoice {
    /// Everything by itself, with bins of so many configurations.
    pub fn with_bin(bin: usize) -> Self {
        AnalysisChoice { bin, fits: CorrelatorSettings::default(), shape: None, distances: None }
    }
    /// Configurations, bins, and how errors are made, for JSON.
    pub fn json(&self, configurations: usize) -> Value {
        let resampling = match self.fits.resampling {
            Resampling::Jackknife => json!({ "kind": "jackknife" }),
            Resampling::Bootstrap { draws, seed } => json!({ "kind": "bootstrap", "draws": draws, "seed": seed }),
        };
        let bins = self.bins(configurations);
        json!({
            "configurations": configurations,
            "bin": self.bin,
            "bins": bins,
            "left_out": configurations.saturating_sub(bins * self.bin),
            "resampling": resampling,
        })
    }
    fn bins(&self, configurations: usize) -> usize {
        if configurations == 0 { 0 } else { (configurations / self.bin).max(1) }
    }
    /// `40 configurations in 20 bins of 2, errors by the jackknife`
    pub fn sentence(&self, configurations: usize) -> String {
        let mut text = count(configurations, "configuration");
        if self.bin > 1 {
            let bins = self.bins(configurations);
            let _ = write!(text, " in {} of {}", count(bins, "bin"), self.bin);
            match configurations.saturating_sub(bins * self.bin) {
                0 => {}
                rest => drop(write!(text, ", the last {rest} left out")),
            }
        }
        match self.fits.resampling {
            Resampling::Jackknife => text += ", errors by the jackknife",
            Resampling::Bootstrap { draws, .. } => {
                let _ = write!(text, ", errors by the bootstrap with {}", count(draws, "draw"));
            }
        }
        text
    }
}

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

/// `value` and `error`, or `null`; and `missing` of `means` where some means of the jackknife or the bootstrap have no value.
pub fn estimate_json(estimate: Option<JackknifeEstimate>) -> Value {
    let Some(JackknifeEstimate { value, error, missing }) = estimate else { return Value::Null };
    let mut object = json!({ "value": number(value), "error": number(error) });
    if missing.count > 0 {
        (object["missing"], object["means"]) = (json!(missing.count), json!(missing.of));
    }
    object
}

/// Reads what [`estimate_json`] writes.
pub fn estimate_of(value: &Value) -> Option<JackknifeEstimate> {
    let whole = |key: &str| value[key].as_u64().unwrap_or(0) as usize;
    let missing = MissingMeans { count: whole("missing"), of: whole("means") };
    let error = value["error"].as_f64().unwrap_or(f64::NAN);
    Some(JackknifeEstimate { value: value["value"].as_f64()?, error, missing })
}

/// `0.4512 ± 0.0023`; `0.4512 (error unknown: 3 of 400 means have no value)`
pub fn estimate_text(estimate: Option<JackknifeEstimate>) -> String {
    let Some(JackknifeEstimate { value, error, missing }) = estimate else { return "–".into() };
    match (digits(value, error), missing.count) {
        ([value, error], 0) if error == "–" => value,
        ([value, error], 0) => format!("{value} ± {error}"),
        ([value, error], _) if error == "–" => format!("{value} (error unknown: {missing})"),
        ([value, error], _) => format!("{value} ± {error} ({missing})"),
    }
}

/// The short form of [`estimate_text`] for tables: `0.4512 (3 of 400 missing)`.
pub fn estimate_cell(estimate: Option<JackknifeEstimate>) -> String {
    let Some(JackknifeEstimate { value, error, missing }) = estimate else { return "–".into() };
    let [value, error] = digits(value, error);
    let error = if error == "–" { String::new() } else { format!(" ± {error}") };
    let missing =
        if missing.count == 0 { String::new() } else { format!(" ({} of {} missing)", missing.count, missing.of) };
    value + &error + &missing
}

/// Remarks on a fit: what has no minimum, which errors are unknown, what is left out of means, and whether χ² is too large for the
/// function. `functions` are the names of the functions that were tried.
fn remarks(fit: &Fit, functions: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for without in &fit.without_minimum {
        let name = functions.get(without.function).map_or("the function", String::as_str);
        all.push(match (without.windows, without.of) {
            (1, 1) => format!("{name}: chi2 has no minimum"),
            (windows, of) if windows == of => format!("{name}: chi2 has no minimum in any of {}", count(of, "window")),
            (windows, of) => {
                format!("{name}: chi2 has no minimum in {windows} of {}, which are left out", count(of, "window"))
            }
        });
    }
    if let Some(why) = fit.unknown_growth {
        let advice = match why {
            UnknownGrowth::Singular(_) => "; take more configurations, a shorter window, or --covariance shrunk",
            UnknownGrowth::Degenerate => "; name another window, or fewer states",
        };
        all.push(format!("errors are unknown: {why}{advice}"));
    }
    for (name, average) in fit.names.iter().zip(&fit.averages).filter(|(_, average)| average.left_out > 0) {
        let models = count(average.left_out, "model");
        let percent = 100.0 * average.left_out_probability;
        let name = name.replace('_', " ");
        all.push(format!(
            "{models} with {percent:.1} % of the probability left out of the mean of the {name}: no value or error"
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

/// Fits with a smaller p are warned of: one in 10,000 good ones.
const LEAST_P: f64 = 1e-4;

/// A fit, for JSON: its quantities by their names, the quality, remarks, and the windows that were tried. `place` converts an end of a
/// window, `functions` are the functions that were tried, for JSON and by name.
fn fit_json(fit: &Fit, place: &dyn Fn(usize) -> Value, functions: &[(Value, String)]) -> Value {
    let window = |window: [usize; 2]| window.map(place);
    let mut object = json!({
        "window": window(fit.best.window),
        "chi2": number(fit.best.minimum.chi2),
        "dof": fit.best.dof,
        "expected_chi2": number(fit.best.quality.expected_chi2),
        "p_value": number(fit.best.quality.p_value),
        "covariance": name_of(&COVARIANCES, fit.covariance),
        "shrinkage": number(fit.shrinkage),
        "parameters": fit.best.minimum.parameters,
        "remarks": remarks(fit, &functions.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>()),
    });
    for (name, quantity) in fit.names.iter().zip(&fit.quantities) {
        object[name] = estimate_json(*quantity);
    }
    let averages = fit.names.iter().zip(&fit.averages).map(|(name, a)| {
        let all = [("value", a.value), ("statistical", a.statistical), ("systematic", a.systematic)];
        let mut object: serde_json::Map<String, Value> =
            all.into_iter().map(|(key, x)| (key.to_string(), number(x))).collect();
        if a.left_out > 0 {
            object.insert("left_out".into(), json!(a.left_out));
            object.insert("left_out_probability".into(), number(a.left_out_probability));
        }
        (name.to_string(), Value::Object(object))
    });
    object["average"] = if fit.averages.is_empty() { Value::Null } else { Value::Object(averages.collect()) };
    let tried = fit.candidates.iter().take(MOST_WINDOWS).map(|one| {
        json!({
            "function": functions.get(one.function).map(|(value, _)| value),
            "window": window(one.window),
            "chi2": number(one.minimum.chi2),
            "dof": one.dof,
            "p_value": number(one.quality.p_value),
            "probability": number(one.probability),
            "parameters": one.minimum.parameters,
        })
    });
    object["windows"] = tried.collect();
    object["windows_tried"] = json!(fit.candidates.len());
    object
}

/// The most windows in JSON, the most probable ones.
const MOST_WINDOWS: usize = 20;

/// `χ²/dof = 3.2/5, p = 0.67`
fn quality_text(fit: &Fit) -> String {
    let best = &fit.best;
    let mut text = format!("chi2/dof = {:.2}/{}", best.minimum.chi2, best.dof);
    if fit.covariance != CovarianceKind::Full {
        let _ = write!(text, " ({:.2} expected)", best.quality.expected_chi2);
    }
    if best.quality.p_value.is_finite() {
        let _ = write!(text, ", p = {:.2}", best.quality.p_value);
    }
    text + match fit.covariance {
        CovarianceKind::Full => "",
        CovarianceKind::Shrunk => ", shrunk covariance",
        CovarianceKind::Diagonal => ", without correlations",
    }
}

/// `mean over 28 windows: 0.4510 ± 0.0022 (statistics) ± 0.0008 (window)`, of the quantity with this number.
fn average_text(fit: &Fit, quantity: usize) -> Option<String> {
    let average = fit.averages.get(quantity)?;
    let [value, error] = digits(average.value, average.statistical);
    let [_, systematic] = digits(average.value, average.systematic);
    let windows = count(fit.candidates.len(), "window");
    Some(format!("mean over {windows}: {value} ± {error} (statistics) ± {systematic} (window)"))
}

/// Why there is no fit, with the way out.
pub fn why_not(error: &FitError) -> String {
    let out = match error {
        FitError::FewSamples { .. } => ": more configurations, or smaller bins, are needed",
        FitError::FewData { .. } => ": name a longer window, or fewer states",
        FitError::Singular { .. } => ": more configurations, a shorter window, or --covariance shrunk are needed",
        FitError::NoMinimum | FitError::MissingMeans(_) => "; name another window, or fewer states",
        FitError::OutsideData { .. } => ": name another window",
        FitError::UnequalSamples { .. } => "",
    };
    format!("{error}{out}")
}
