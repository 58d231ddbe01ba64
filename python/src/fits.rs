//! Fits of correlators, and effective masses with errors.
use crate::failure::Returned;
use crate::host::on_host;
use crate::typed::Typed;
use ferrite_records::object;
use ferrite_tasks::fits::{ErrorRequest, FitRequest, masses_of};
use pyo3::prelude::*;
use serde_json::{Map, Value};

/// Fits a correlator. Returns the record of the fit, and a plot as SVG.
#[pyfunction]
pub fn fit(
    py: Python<'_>,
    correlators: Vec<Vec<f64>>,
    request: Typed<FitRequest>,
) -> Returned<(Typed<Map<String, Value>>, String)> {
    on_host(py, move || request.0.fit(&correlators).map(|(fit, svg)| (Typed(object(&fit)), svg)))
}

/// Returns the effective masses of a real correlator from each time to the next; NaN where there is none.
#[pyfunction]
pub fn effective_masses(correlator: Vec<f64>, form: &str) -> Returned<Vec<f64>> {
    Ok(masses_of(&correlator, form)?)
}

/// Returns the effective masses of the mean of a correlator over configurations, each as `[value, error]`.
#[pyfunction]
pub fn effective_estimates(
    py: Python<'_>,
    correlators: Vec<Vec<f64>>,
    form: String,
    request: Typed<ErrorRequest>,
) -> Returned<Vec<[f64; 2]>> {
    on_host(py, move || request.0.effective_masses(&correlators, &form))
}
