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
use statistics::fit::{Fit, FitError};
use statistics::jackknife::{JackknifeEstimate, Resampling};
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

/// `value` and `error`, or `null`.
pub fn estimate_json(estimate: Option<JackknifeEstimate>) -> Value {
    match estimate {
        Some(JackknifeEstimate { value, error }) => json!({ "value": number(value), "error": number(error) }),
        None => Value::Null,
    }
}

/// `0.4512 ± 0.0023`
pub fn estimate_text(estimate: Option<JackknifeEstimate>) -> String {
    match estimate.map(|e| digits(e.value, e.error)) {
        None => "–".into(),
        Some([value, error]) if error == "–" => value,
        Some([value, error]) => format!("{value} ± {error}"),
    }
}

/// A fit, for JSON: its quantities by their names, the quality, and the windows that were tried. `place` says what the window's ends are.
fn fit_json(fit: &Fit, place: &dyn Fn(usize) -> Value, function: &dyn Fn(usize) -> Value) -> Value {
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
    });
    for (name, quantity) in fit.names.iter().zip(&fit.quantities) {
        object[name] = estimate_json(*quantity);
    }
    let averages = fit.names.iter().zip(&fit.averages).map(|(name, a)| {
        let all = [("value", a.value), ("statistical", a.statistical), ("systematic", a.systematic)];
        (name.to_string(), all.into_iter().map(|(key, x)| (key.to_string(), number(x))).collect())
    });
    object["average"] = if fit.averages.is_empty() { Value::Null } else { Value::Object(averages.collect()) };
    let tried = fit.candidates.iter().take(MOST_WINDOWS).map(|one| {
        json!({
            "function": function(one.function),
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

/// So many windows are told, the most probable first.
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
        FitError::NoMinimum => "; name another window, or fewer states",
    };
    format!("{error}{out}")
}
