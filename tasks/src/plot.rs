//! Pictures as files.
pub use ferrite_report::plot::Convergence;

use super::target;
use ferrite_report::plot::{DrawError, LinePlot, convergence, lines};
use std::path::Path;

/// Draws the convergence of a solve to a file that appears whole or not at all.
pub fn write(path: &Path, plot: &Convergence) -> Result<(), String> {
    write_svg(path, convergence::svg(plot))
}

/// Draws curves to a file that appears whole or not at all.
pub fn write_lines(path: &Path, plot: &LinePlot) -> Result<(), String> {
    write_svg(path, lines::svg(plot))
}

/// Writes a picture, if it could be drawn, to a file that appears whole or not at all.
pub fn write_svg(path: &Path, drawn: Result<String, DrawError>) -> Result<(), String> {
    let svg = drawn.map_err(|why| format!("{}: cannot be drawn: {why}", path.display()))?;
    target::write_text(path, &svg)
}
