//! Plots as SVG.
//!
//! | module | what |
//! |---|---|
//! | [`convergence`] | residuals of a solve against the iteration |
//! | [`lines`] | curves with a legend, on up to two vertical axes |
//! | [`error_bars`] | values with errors at named places, one panel below the other |
//! | [`panel`] | pictures for pages |
pub mod convergence;
pub mod error_bars;
pub mod lines;
pub mod panel;

pub use convergence::Convergence;
pub use error_bars::{ErrorBarPanel, ErrorBarPlot};
pub use lines::{CurveStyle, LinePlot, PlottedCurve};

use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;

/// Reason why a picture cannot be drawn, in the words of the drawing library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DrawError(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for DrawError {
    fn from(why: DrawingAreaErrorKind<E>) -> Self {
        DrawError(why.to_string())
    }
}

/// Returns the range from the smallest to the largest number, with a margin.
fn range(numbers: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (low, high) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low > high {
        return 0.0..1.0;
    }
    let room = if high > low { 0.05 * (high - low) } else { 0.5 };
    low - room..high + room
}

/// Returns log₁₀ x, or `None` for numbers at or below 0, which cannot be drawn.
fn log(x: f64) -> Option<f64> {
    Some(x.log10()).filter(|y| y.is_finite())
}

/// Fills the picture with white, draws title and subtitle, and returns the area below them.
fn below_titles<'a>(root: &Area<'a>, title: &str, subtitle: &str) -> Result<Area<'a>, DrawError> {
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(70);
    let text = |size: f64| TextStyle::from(("sans-serif", size).into_font()).color(&BLACK);
    above.draw(&Text::new(title, (80, 14), text(22.0)))?;
    above.draw(&Text::new(subtitle, (80, 44), text(16.0)))?;
    Ok(below)
}

/// Drawing area of an SVG picture.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
