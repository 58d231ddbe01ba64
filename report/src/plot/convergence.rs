//! Plots of the residuals of a solve against the iteration.
use super::{DrawError, below_titles, log, panel};
use plotters::prelude::*;

/// Plot of the residuals of a solve against the iteration.
pub struct Convergence<'a> {
    /// Title of the plot: lattice and operator.
    pub title: String,
    /// Subtitle of the plot: solver and precision.
    pub subtitle: String,
    /// Iterations with relative residuals, for each right-hand side.
    pub history: Vec<Vec<(usize, f64)>>,
    /// Iterations at which true residuals were computed, with the true residuals of all right-hand sides.
    pub updates: &'a [(usize, Vec<f64>)],
    /// Requested tolerance, drawn as a line.
    pub tol: f64,
}

/// Draws the plot, and returns the text of the SVG file.
///
/// # Errors
/// The error of the drawing library, if it fails.
pub fn svg(plot: &Convergence) -> Result<String, DrawError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (960, 600)).into_drawing_area();
        let shown = || plot.history.iter().flatten().filter_map(|(_, residual)| log(*residual));
        let bottom = shown().chain(log(plot.tol)).fold(0.0, f64::min).floor() - 0.5;
        let top = shown().fold(0.0, f64::max).ceil() + 0.2;
        let last = plot.history.iter().flatten().map(|(iteration, _)| *iteration).fold(1, usize::max);
        let below = below_titles(&root, &plot.title, &plot.subtitle)?;
        let mut chart = ChartBuilder::on(&below)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..last as f64, bottom..top)?;
        chart
            .configure_mesh()
            .max_light_lines(1)
            .light_line_style(WHITE)
            .x_desc("iteration")
            .y_desc("log10 |r| / |b|")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style(("sans-serif", 14))
            .draw()?;
        if let Some(y) = log(plot.tol) {
            chart.draw_series(LineSeries::new([(0.0, y), (last as f64, y)], BLACK.mix(0.4)))?;
        }
        for (j, history) in plot.history.iter().enumerate() {
            let colour = panel::of_curve(j);
            let points = history.iter().filter_map(|(k, r)| Some((*k as f64, log(*r)?)));
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            let marks = plot.updates.iter().filter_map(|(k, r)| Some((*k as f64, log(*r.get(j)?)?)));
            chart.draw_series(marks.map(|at| Circle::new(at, 4, colour.filled())))?;
        }
        let note = "circles: true residuals b - A x of the even-odd system; grey: requested tolerance";
        let style = TextStyle::from(("sans-serif", 13.0).into_font()).color(&BLACK);
        below.draw(&Text::new(note, (90, 4), style))?;
        root.present()?;
    }
    Ok(svg)
}
