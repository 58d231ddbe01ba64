//! Plots written to files.
pub use ferrite_report::plot::Convergence;

use super::target;
use ferrite_report::plot::{DrawError, LinePlot, convergence, lines};
use std::path::Path;

/// Writes a plot of the convergence of a solve to the file `path`. The file is written as a whole or not at all.
pub fn write(path: &Path, plot: &Convergence) -> Result<(), String> {
    write_svg(path, convergence::svg(plot))
}

/// Writes a plot of curves to the file `path`. The file is written as a whole or not at all.
pub fn write_lines(path: &Path, plot: &LinePlot) -> Result<(), String> {
    write_svg(path, lines::svg(plot))
}

/// Writes a plot to the file `path`. Fails if the plot could not be drawn. The file is written as a whole or not at
/// all.
pub fn write_svg(path: &Path, drawn: Result<String, DrawError>) -> Result<(), String> {
    let svg = drawn.map_err(|why| format!("{}: the plot cannot be drawn: {why}", path.display()))?;
    target::write_text(path, &svg)
}
