//! Section on the convergence of a solve.
use super::figure::{Figure, figure, layer, line, roomy};
use crate::error::ReportError;
use crate::page;
use crate::plot::panel::{LayerShape, Panel, PlotColour};
use crate::text::{count, extents, number};
use ferrite_records::operator::OperatorOnLinks;
use ferrite_records::place::PlaceRecord;
use ferrite_records::read::read_leniently;
use ferrite_records::solve::{MethodChangeRecord, MultigridLevelRecord, MultigridRecord, SolveOutcome};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;

/// Maximum number of right-hand sides, and of entries of each history, that are drawn.
const MOST: [usize; 2] = [64, 100_000];
/// Maximum number of points of a curve; more would not be distinguishable.
const POINTS: usize = 2000;
/// Maximum number of multigrid levels, or of changes of the method, that are shown.
const MOST_ROWS: usize = 100;

/// Describes the time of the multigrid setup, also as the number of right-hand sides that could be solved in this time.
fn setup(outcome: &SolveOutcome, nrhs: usize) -> Option<String> {
    let setup = outcome.multigrid.as_ref()?.setup_seconds;
    let each = outcome.seconds / nrhs.max(1) as f64;
    let worth =
        if each > 0.0 { format!(", at the cost of {:.1} right-hand sides", setup / each) } else { String::new() };
    Some(format!("{setup:.3} s{worth}"))
}

/// Describes changes of the method and their reasons, one by one.
fn changes(list: &[MethodChangeRecord]) -> Vec<String> {
    let one = |change: &MethodChangeRecord| match change.iterations {
        0 => format!("Before the first iteration {} was chosen: {}.", change.solver, change.reason),
        n => format!("After {} {} continued: {}.", count(n, "iteration"), change.solver, change.reason),
    };
    list.iter().take(MOST_ROWS).map(one).collect()
}

/// Returns the rows of the table of multigrid levels: lattice, aggregate, near-null vectors, iterations, seconds with and without coarser
/// levels.
fn levels(multigrid: &MultigridRecord) -> Vec<[String; 6]> {
    let list = &multigrid.levels[..multigrid.levels.len().min(MOST_ROWS)];
    let shown = |seconds: f64| format!("{seconds:.3}");
    let level = |(k, level): (usize, &MultigridLevelRecord)| {
        let coarser = list.get(k + 1).map_or(0.0, |coarser| coarser.seconds);
        [
            extents(level.lattice),
            level.block.map_or("–".into(), extents),
            level.vectors.map_or("–".into(), |n| n.to_string()),
            level.iterations.to_string(),
            shown(level.seconds),
            shown(level.seconds - coarser),
        ]
    };
    list.iter().enumerate().map(level).collect()
}

/// Mass in the operator of a solve, if the operator has one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SolvedMass {
    mass: Option<f64>,
}

/// Section of a page on the output of `ferrite solve --json`.
pub struct ConvergenceSection {
    /// Names and values: the system, the method and the outcome.
    facts: Vec<(&'static str, String)>,
    converged: bool,
    iterations: usize,
    /// Changes of the method with their reasons.
    changes: Vec<String>,
    /// Rows of multigrid levels: lattice, aggregates, near-null vectors, iterations, seconds including coarser levels, and seconds in the
    /// level alone.
    levels: Vec<[String; 6]>,
    /// Logarithms log₁₀ of the residuals of each right-hand side.
    history: Vec<Vec<f64>>,
    true_residuals: Vec<f64>,
    tol: f64,
}

impl ConvergenceSection {
    /// Reads the section from a JSON object. If a key is missing, the part of the section that needs it is left out.
    pub fn read(object: &Value) -> Result<Self, String> {
        let outcome: SolveOutcome = read_leniently(object);
        let operator: OperatorOnLinks = read_leniently(object);
        let place: PlaceRecord = read_leniently(object);
        let SolvedMass { mass } = read_leniently(object);
        if object.get("history").is_none() {
            return Err("is a solve without a history".into());
        }
        let logarithms = |list: &[f64], most: usize| list.iter().take(most).map(|x| x.log10()).collect::<Vec<_>>();
        let history: Vec<_> = outcome.history.iter().take(MOST[0]).map(|list| logarithms(list, MOST[1])).collect();
        let text = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        let nrhs = outcome.history.len();
        let all = [
            ("operator", text(&operator.operator)),
            ("lattice", (operator.lattice != [0; 4]).then(|| extents(operator.lattice))),
            ("mass", mass.map(number)),
            ("solver", text(&outcome.solver)),
            ("precision", text(&outcome.precision)),
            ("reals of a link", text(&outcome.reconstruct)),
            ("right-hand sides", Some(nrhs.to_string())),
            ("iterations", Some(outcome.iterations.to_string())),
            ("true residual", finite(outcome.true_residual).map(|x| format!("{x:.3e}"))),
            ("requested", finite(outcome.tol).map(|x| format!("{x:.1e}"))),
            ("seconds", finite(outcome.seconds).map(|x| format!("{x:.4}"))),
            ("GFLOP/s", finite(outcome.gflops).map(|x| format!("{x:.1}"))),
            ("multigrid's setup", setup(&outcome, nrhs)),
            ("device", text(&place.device)),
        ];
        Ok(ConvergenceSection {
            facts: all.into_iter().filter_map(|(what, value)| Some((what, value?))).collect(),
            changes: changes(&outcome.method_changes),
            levels: outcome.multigrid.as_ref().map_or_else(Vec::new, levels),
            converged: outcome.converged,
            iterations: outcome.iterations,
            history,
            true_residuals: logarithms(&outcome.true_residuals, MOST[0]),
            tol: outcome.tol.log10(),
        })
    }
    /// Returns a sentence that summarises the section.
    pub fn sentence(&self) -> String {
        let end = if self.converged { "converged" } else { "NOT converged" };
        let what: Vec<_> = self
            .facts
            .iter()
            .filter(|(what, _)| ["operator", "lattice"].contains(what))
            .map(|(_, v)| v.as_str())
            .collect();
        format!("{}, {end} after {}", what.join(" on "), count(self.iterations, "iteration"))
    }
    /// Appends the section to a page with the heading `title`.
    pub fn put(&self, html: &mut String, title: &str) -> Result<(), ReportError> {
        page::heading(html, &format!("Convergence: {title}"));
        page::facts(html, self.facts.iter().map(|(what, value)| (*what, value.as_str())));
        page::notes(html, &self.changes);
        if !self.levels.is_empty() {
            *html += "<div class=\"wide\">\n<table>\n<thead><tr><th>level of \
                      multigrid</th><th>aggregates</th><th>near-null vectors</th><th>iterations</th><th>seconds with \
                      coarser levels</th><th>seconds without</th></tr></thead>\n<tbody>\n";
            for row in &self.levels {
                let cells: String = row.iter().map(|cell| format!("<td>{}</td>", page::cell(cell))).collect();
                let _ = writeln!(html, "<tr>{cells}</tr>");
            }
            *html += "</tbody>\n</table>\n</div>\n";
        }
        page::put(html, &self.figure()?);
        Ok(())
    }
    fn figure(&self) -> Result<Figure, ReportError> {
        let longest = self.history.iter().map(Vec::len).max().unwrap_or(0);
        let last = (longest.saturating_sub(1)).max(1) as f64;
        let shown =
            self.history.iter().flatten().chain(&self.true_residuals).chain([&self.tol]).filter(|y| y.is_finite());
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(*y), high.max(*y)));
        let x = -0.01 * last..1.02 * last;
        let y = if low < high { roomy((low, high)) } else { -12.0..0.5 };
        let mut layers = Vec::new();
        if self.tol.is_finite() {
            let asked =
                LayerShape::Line { points: vec![(x.start, self.tol), (x.end, self.tol)], width: 1, dashed: true };
            layers.push(layer("requested", PlotColour::Black, asked));
        }
        for (number, of_rhs) in self.history.iter().enumerate() {
            let step = of_rhs.len().div_ceil(POINTS).max(1);
            let points = of_rhs.iter().enumerate().step_by(step).map(|(k, y)| (k as f64, *y)).collect();
            let name = if number == 0 { "recurrence" } else { "" };
            layers.push(layer(name, PlotColour::Blue, line(points, 1)));
        }
        let ends = self.history.iter().zip(&self.true_residuals);
        let ends: Vec<_> = ends.map(|(of_rhs, y)| (of_rhs.len().saturating_sub(1) as f64, *y)).collect();
        if !ends.is_empty() {
            layers.push(layer("true residual", PlotColour::Vermilion, LayerShape::Dots(ends)));
        }
        let panel = Panel {
            about: "Residuals against the iteration".into(),
            axes: ["iteration".into(), "log₁₀ |r| / |b|".into()],
            ranges: [x, y],
            counts: true,
            layers,
        };
        let caption = "Residuals of each right-hand side: those of the recurrence, for the even-odd preconditioned \
                       system, and the final |b − M x| / |b| of the full system, computed in double precision.";
        figure(&panel, caption.into())
    }
}
