//! Plots as SVG.
use crate::failure::Returned;
use ferrite_report::plot::error_bars::{self, ErrorBarPanel, ErrorBarPlot};
use ferrite_report::plot::{Convergence, CurveStyle, LinePlot, PlottedCurve, convergence, lines};
use ferrite_tasks::Failure;
use pyo3::prelude::*;

/// Plots the residuals of a solve against the iteration. Returns SVG.
#[pyfunction]
pub fn convergence_svg(
    title: String,
    subtitle: String,
    history: Vec<Vec<f64>>,
    updates: Vec<(usize, Vec<f64>)>,
    tol: f64,
) -> Returned<String> {
    let history = history.into_iter().map(|residuals| residuals.into_iter().enumerate().collect()).collect();
    let plot = Convergence { title, subtitle, history, updates: &updates, tol };
    Ok(convergence::svg(&plot).map_err(Failure::failed)?)
}

/// Plots curves with a legend, each given by its name and its points. Returns SVG.
#[pyfunction]
pub fn lines_svg(
    title: String,
    subtitle: String,
    axes: [String; 2],
    logarithmic: bool,
    curves: Vec<(String, Vec<(f64, f64)>)>,
) -> Returned<String> {
    let curve = |(name, points)| PlottedCurve { name, points, style: CurveStyle::Line };
    let [horizontal, vertical] = axes;
    let axes = [horizontal, vertical, String::new()];
    let curves = curves.into_iter().map(curve).collect();
    let plot = LinePlot { title, subtitle, axes, logarithmic: [false, logarithmic], curves };
    Ok(lines::svg(&plot).map_err(Failure::failed)?)
}

/// Plots values with error bars against their index, without values that are NaN. Returns SVG.
#[pyfunction]
pub fn error_bars_svg(
    title: String,
    subtitle: String,
    axes: [String; 2],
    values: Vec<f64>,
    errors: Vec<f64>,
) -> Returned<String> {
    let places = (0..values.len()).map(|k| k.to_string()).collect();
    let at = values.into_iter().zip(errors).map(|(value, error)| [value, error]).collect();
    let [horizontal, axis] = axes;
    let panels = vec![ErrorBarPanel { axis, logarithmic: false, at, range: None }];
    let plot = ErrorBarPlot { title, subtitle, places, horizontal: Some(horizontal), panels };
    Ok(error_bars::svg(&plot).map_err(Failure::failed)?)
}
