//! Names of formats for users.
use super::{Report, ShiftStrategy};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{SolveError, Unsolved};

/// Names of the precisions.
pub const PRECISIONS: [(&str, Precision); 4] = [
    ("double", Precision::Double),
    ("single", Precision::Single),
    ("half", Precision::Half),
    ("fp16", Precision::Fp16),
];
/// Names of the reconstructions.
pub const RECONSTRUCTIONS: [(&str, LinkStorage); 12] = [
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
];
/// Names of the precisions that a solver's true residuals can have.
pub const OUTER_PRECISIONS: [(&str, Precision); 2] = [("double", Precision::Double), ("single", Precision::Single)];
/// Names of the strategies for several shifts.
pub const STRATEGIES: [(&str, ShiftStrategy); 2] =
    [("multishift", ShiftStrategy::MultiShift), ("sequential", ShiftStrategy::Sequential)];

/// Returns the methods that a failed solve tried, and what may help, for the end of an error message; empty if none was tried. `solver`
/// formats a method as users request it, such as `--solver cg`, and `more` is how they request more iterations.
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

/// Returns the name of a value in one of the lists above.
pub fn name_of<T: Copy + PartialEq>(choices: &[(&'static str, T)], value: T) -> &'static str {
    choices.iter().find(|(_, v)| *v == value).map_or("unknown", |(name, _)| name)
}
