//! Pictures of a page, with words below.
use crate::error::ReportError;
use crate::plot::DrawError;
use crate::plot::panel::{Layer, LayerShape, Panel, PlotColour, svg};
use std::ops::Range;

/// A picture with words below.
pub struct Figure {
    /// An SVG element.
    pub svg: String,
    /// What it shows.
    pub caption: String,
}

/// A panel with words below.
pub fn figure(panel: &Panel, caption: String) -> Result<Figure, ReportError> {
    let svg = svg(panel).map_err(|why| undrawable(&panel.about, &why))?;
    Ok(Figure { svg, caption })
}

/// A layer with a name for the legend.
pub fn layer(name: &str, colour: PlotColour, shape: LayerShape) -> Layer {
    Layer { name: name.into(), colour, shape }
}

/// A line through points.
pub fn line(points: Vec<(f64, f64)>, width: u32) -> LayerShape {
    LayerShape::Line { points, width, dashed: false }
}

/// Ends with some room beside them.
pub fn roomy((low, high): (f64, f64)) -> Range<f64> {
    let size = low.abs().max(high.abs());
    let room = match high > low {
        true => 0.06 * (high - low),
        false if size > 0.0 => 0.05 * size,
        false => 0.05,
    };
    low - room..high + room
}

/// Why there is no picture of something.
pub fn undrawable(about: &str, why: &DrawError) -> ReportError {
    ReportError::Undrawable(format!("{about} cannot be drawn: {why}"))
}
