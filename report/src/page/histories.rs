//! Histories of measurements: one number for each configuration.
use super::figure::{Figure, figure, layer, line, roomy};
use crate::error::ReportError;
use crate::plot::panel::{LayerShape, Panel, PlotColour};
use crate::records::ensemble::Stream;

/// Colours of the streams, which are used in turn.
const COLOURS: [PlotColour; 4] = [PlotColour::Blue, PlotColour::Vermilion, PlotColour::Green, PlotColour::Orange];
/// Largest number of streams for which the legend has names.
const MOST_NAMES: usize = 8;

/// Draws the history of a number: its value on each configuration, in the order of the chain. Each stream has a line of its own.
pub fn history(about: &str, axis: &str, values: &[f64], streams: &[Stream]) -> Result<Figure, ReportError> {
    let finite = || values.iter().copied().filter(|y| y.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let mut layers = Vec::new();
    let mut begin = 0;
    for (number, stream) in streams.iter().enumerate() {
        let end = (begin + stream.configurations).min(values.len());
        let points: Vec<(f64, f64)> = (begin..end).map(|k| ((k + 1) as f64, values[k])).collect();
        begin = end;
        let colour = COLOURS[number % COLOURS.len()];
        let name = stream.name.rsplit('/').next().unwrap_or_default();
        let name = if (2..=MOST_NAMES).contains(&streams.len()) { name } else { "" };
        let through = if streams.len() == 1 { PlotColour::Sky } else { colour };
        layers.push(layer("", through, line(points.clone(), 1)));
        layers.push(layer(name, colour, LayerShape::Dots(points)));
    }
    let panel = Panel {
        about: format!("The {about} by configuration"),
        axes: ["configuration".into(), axis.into()],
        ranges: [0.5..values.len() as f64 + 0.5, if low <= high { roomy((low, high)) } else { 0.0..1.0 }],
        counts: true,
        layers,
    };
    let order = if streams.len() > 1 { ", one stream after the other" } else { "" };
    figure(&panel, format!("The {about} of the configurations in the order of the chain{order}."))
}
