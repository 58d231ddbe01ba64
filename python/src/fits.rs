//! Fits of correlators, and effective masses with errors.
use crate::failure::{Failure, Outcome};
use crate::host::on_host;
use crate::typed::Typed;
use ferrite::statistics::effective::{CorrelatorShape, effective_masses as masses_of};
use ferrite::statistics::fit::correlator::CorrelatorSettings;
use ferrite::statistics::jackknife::{Resampling, bins};
use ferrite_records::fit::HadronFitRecord;
use ferrite_records::object;
use ferrite_report::analysis::hadrons::HadronFit;
use ferrite_report::analysis::{AnalysisChoice, COVARIANCES, SHAPES, why_not};
use ferrite_report::page::correlator_svg;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

fn named<T: Copy>(what: &str, name: &str, all: &[(&str, T)]) -> Outcome<T> {
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let names: Vec<_> = all.iter().map(|(name, _)| format!("'{name}'")).collect();
    found.ok_or_else(|| Failure::input(format!("{what} = '{name}': expected {}", names.join(", "))))
}

/// Correlators of configurations, all of one length and finite.
fn samples(given: &[Vec<f64>], bin: usize) -> Outcome<Vec<Vec<f64>>> {
    let times = given.first().map_or(0, Vec::len);
    if times < 2 || given.iter().any(|one| one.len() != times) {
        return Err(Failure::input("an array [configuration, time] with two times at least is needed"));
    }
    if let Some(wrong) = given.iter().position(|one| one.iter().any(|c| !c.is_finite())) {
        return Err(Failure::input(format!("configuration {wrong}, counted from 0, has a number that is not finite")));
    }
    if !(1..=given.len()).contains(&bin) {
        return Err(Failure::input(format!(
            "bin = {bin}: expected 1 to {}, the number of configurations",
            given.len()
        )));
    }
    Ok(bins(given, bin))
}

/// Returns numbers as JSON has them: `[1,2]`.
fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("[{}]", numbers.join(","))
}

fn resampling(draws: Option<usize>, seed: u64) -> Outcome<Resampling> {
    match draws {
        None => Ok(Resampling::Jackknife),
        Some(draws) if (10..=100_000).contains(&draws) => Ok(Resampling::Bootstrap { draws, seed }),
        Some(draws) => Err(Failure::input(format!("bootstrap = {draws}: expected 10 to 100000 draws"))),
    }
}

/// Settings of a fit, as Python gives them.
#[derive(Clone, Debug, Deserialize)]
pub struct FitSettings {
    bin: usize,
    window: Option<Vec<usize>>,
    states: Vec<usize>,
    covariance: Option<String>,
    bootstrap: Option<usize>,
    seed: u64,
}

/// A fit with numbers of configurations and bins.
#[derive(Clone, Debug, Serialize)]
struct CountedFit {
    #[serde(flatten)]
    fit: HadronFitRecord,
    configurations: usize,
    bins: usize,
}

/// Fits a correlator: the record of the fit, and a picture.
#[pyfunction]
pub fn fit(
    py: Python<'_>,
    correlators: Vec<Vec<f64>>,
    form: &str,
    name: &str,
    settings: Typed<FitSettings>,
) -> PyResult<(Typed<Map<String, Value>>, String)> {
    let Typed(settings) = settings;
    let shape = named("form", form, &SHAPES)?;
    let samples = samples(&correlators, settings.bin)?;
    let times = samples[0].len();
    let window = match settings.window.as_deref() {
        None => None,
        Some(given) => {
            let last = if shape == CorrelatorShape::Exponential { times - 1 } else { times / 2 };
            let found = <[usize; 2]>::try_from(given).ok().filter(|[first, end]| first <= end && *end <= last);
            let why = || format!("window = {}: expected first and last time, of 0 to {last}", list(given));
            Some(found.ok_or_else(|| Failure::input(why()))?)
        }
    };
    let mut states = settings.states;
    let given = list(&states);
    states.sort_unstable();
    states.dedup();
    if states.is_empty() || states.iter().any(|count| ![1, 2].contains(count)) {
        return Err(Failure::input(format!("states = {given}: expected 1, 2, or [1, 2]")).into());
    }
    let covariance = settings.covariance.map(|name| named("covariance", &name, &COVARIANCES)).transpose()?;
    let resampling = resampling(settings.bootstrap, settings.seed)?;
    let fits = CorrelatorSettings { window, states, covariance, resampling };
    // Bins are made above.
    let choice = AnalysisChoice { fits, shape: Some(shape), ..AnalysisChoice::with_bin(1) };
    let (name, configurations) = (name.to_string(), correlators.len());
    on_host(py, move || {
        let found = HadronFit::of(&name, &samples, shape, &choice);
        if let Err(error) = &found.fit {
            return Err(Failure::input(format!("no fit of the {name}: {}", why_not(error))));
        }
        let svg = correlator_svg(&found).map_err(Failure::other)?;
        let fit = CountedFit { fit: found.record(), configurations, bins: samples.len() };
        Ok((Typed(object(&fit)), svg))
    })
}

/// Effective masses of a real correlator: not a number where there is none.
#[pyfunction]
pub fn effective_masses(correlator: Vec<f64>, form: &str) -> PyResult<Vec<f64>> {
    let shape = named("form", form, &SHAPES)?;
    if correlator.len() < 2 {
        return Err(Failure::input("a correlator has two times at least").into());
    }
    Ok(masses_of(&correlator, shape).into_iter().map(|mass| mass.unwrap_or(f64::NAN)).collect())
}

/// Those of the mean of configurations, and their errors.
#[pyfunction]
pub fn effective_estimates(
    py: Python<'_>,
    correlators: Vec<Vec<f64>>,
    form: &str,
    bin: usize,
    bootstrap: Option<usize>,
    seed: u64,
) -> PyResult<(Vec<f64>, Vec<f64>)> {
    let (shape, samples) = (named("form", form, &SHAPES)?, samples(&correlators, bin)?);
    let resampling = resampling(bootstrap, seed)?;
    let found = on_host(py, move || Ok(resampling.estimate(&samples, |mean| masses_of(mean, shape))))?;
    Ok(found.into_iter().map(|one| one.map_or((f64::NAN, f64::NAN), |one| (one.value, one.error))).unzip())
}
