//! Figures of a page: pictures with captions.
use crate::error::ReportError;
use crate::plot::DrawError;
use crate::plot::panel::{Layer, LayerShape, Panel, PlotColour, svg};
use std::ops::Range;

/// A picture with a caption.
pub struct Figure {
    /// Picture as the text of an SVG element.
    pub svg: String,
    /// Caption of the picture.
    pub caption: String,
}

/// Draws a panel, and returns it together with a caption.
pub fn figure(panel: &Panel, caption: String) -> Result<Figure, ReportError> {
    let svg = svg(panel).map_err(|why| undrawable(&panel.about, &why))?;
    Ok(Figure { svg, caption })
}

/// Returns a layer of a panel; `name` appears in the legend.
pub fn layer(name: &str, colour: PlotColour, shape: LayerShape) -> Layer {
    Layer { name: name.into(), colour, shape }
}

/// Returns a solid line through points; `width` is in pixels.
pub fn line(points: Vec<(f64, f64)>, width: u32) -> LayerShape {
    LayerShape::Line { points, width, dashed: false }
}

/// Returns the range with a margin added at its lower and its upper end.
pub fn roomy((low, high): (f64, f64)) -> Range<f64> {
    let size = low.abs().max(high.abs());
    let room = match high > low {
        true => 0.06 * (high - low),
        false if size > 0.0 => 0.05 * size,
        false => 0.05,
    };
    low - room..high + room
}

/// Returns the error of a picture that cannot be drawn; `about` describes the picture.
pub fn undrawable(about: &str, why: &DrawError) -> ReportError {
    ReportError::Undrawable(format!("{about} cannot be drawn: {why}"))
}
