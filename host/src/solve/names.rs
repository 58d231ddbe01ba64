//! Names of formats and strategies in inputs.
use super::{Report, ShiftStrategy};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{SolveError, Unsolved};

/// Precisions with their names in inputs.
pub const PRECISIONS: [(&str, Precision); 4] = [
    ("double", Precision::Double),
    ("single", Precision::Single),
    ("half", Precision::Half),
    ("fp16", Precision::Fp16),
];
/// Storages of links with their names in inputs.
pub const RECONSTRUCTIONS: [(&str, LinkStorage); 14] = [
    ("18", LinkStorage::FULL),
    ("12", LinkStorage::of(12)),
    ("8", LinkStorage::of(8)),
    ("12t", LinkStorage::of(12).in_temporal_gauge()),
    ("8t", LinkStorage::of(8).in_temporal_gauge()),
    ("18h", LinkStorage::FULL.in_half()),
    ("12h", LinkStorage::of(12).in_half()),
    ("8h", LinkStorage::of(8).in_half()),
    ("13", LinkStorage::of(13)),
    ("9", LinkStorage::of(9)),
    ("13h", LinkStorage::of(13).in_half()),
    ("9h", LinkStorage::of(9).in_half()),
    ("13f", LinkStorage::of(13).in_fine()),
    ("9f", LinkStorage::of(9).in_fine()),
];
/// Precisions that a solver's true residuals can have, with their names in inputs.
pub const OUTER_PRECISIONS: [(&str, Precision); 2] = [("double", Precision::Double), ("single", Precision::Single)];
/// Strategies for several shifts, with their names in inputs.
pub const STRATEGIES: [(&str, ShiftStrategy); 2] =
    [("multishift", ShiftStrategy::MultiShift), ("sequential", ShiftStrategy::Sequential)];

/// Returns the end of an error message about a failed solve: the methods that were tried, and what may help. The text is empty if no method
/// was tried or if the solve was stopped. `solver` formats the name of a method as users request it, such as `--solver cg`, and `more` is
/// the text with which users request more iterations.
pub fn advice(report: &Report, error: &Unsolved, solver: impl Fn(&str) -> String, more: &str) -> String {
    let names: Vec<_> = report.tried.iter().map(|method| method.name).collect();
    if names.is_empty() || matches!(error, SolveError::Cancelled { .. }) {
        return String::new();
    }
    let solver = report.may_help.map(|method| solver(method.name));
    let more = matches!(error, SolveError::NoConvergence { .. }).then(|| more.to_string());
    let help: Vec<_> = solver.into_iter().chain(more).collect();
    let help = if help.is_empty() { String::new() } else { format!("; {} may help", help.join(" or ")) };
    format!("; solvers tried: {}{help}", names.join(", "))
}

/// Returns the name of a value in a list of choices, such as [`PRECISIONS`].
pub fn name_of<T: Copy + PartialEq>(choices: &[(&'static str, T)], value: T) -> &'static str {
    choices.iter().find(|(_, v)| *v == value).map_or("unknown", |(name, _)| name)
}
