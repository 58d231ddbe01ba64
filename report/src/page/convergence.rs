//! The convergence of a solve.
use super::figure::{Figure, figure, layer, line, roomy};
use crate::error::ReportError;
use crate::page;
use crate::plot::panel::{LayerShape, Panel, PlotColour};
use crate::text::{count, extents_in, value_text};
use serde_json::Value;
use std::fmt::Write;

/// More right-hand sides, or entries of a history, are not drawn.
const MOST: [usize; 2] = [64, 100_000];
/// More points than this are not told apart.
const POINTS: usize = 2000;
/// More levels, or changes of the method, are not shown.
const MOST_ROWS: usize = 100;

/// What the setup of multigrid took, and how many solves it is worth.
fn setup(object: &Value, nrhs: usize) -> Option<String> {
    let setup = object["multigrid"]["setup_seconds"].as_f64()?;
    let each = object["seconds"].as_f64()? / nrhs.max(1) as f64;
    let worth = if each > 0.0 { format!(", as long as {:.1} right-hand sides", setup / each) } else { String::new() };
    Some(format!("{setup:.3} s{worth}"))
}

/// Why the method changed.
fn changes(list: &Value) -> Vec<String> {
    let one = |change: &Value| {
        let after = count(change["iterations"].as_u64()? as usize, "iteration");
        Some(format!("After {after} {} went on: {}.", change["solver"].as_str()?, change["reason"].as_str()?))
    };
    list.as_array().into_iter().flatten().take(MOST_ROWS).filter_map(one).collect()
}

/// What levels are, and did.
fn levels(list: &Value) -> Vec<[String; 6]> {
    let list: Vec<_> = list.as_array().into_iter().flatten().take(MOST_ROWS).collect();
    let seconds = |k: usize| list.get(k).and_then(|level| level["seconds"].as_f64());
    let shown = |seconds: Option<f64>| seconds.map_or("–".into(), |seconds| format!("{seconds:.3}"));
    let level = |(k, level): (usize, &&Value)| {
        let alone = seconds(k).map(|all| all - seconds(k + 1).unwrap_or(0.0));
        let whole = |key: &str| level[key].as_u64().map_or("–".into(), |n| n.to_string());
        let extents = |key: &str| extents_in(&level[key]).unwrap_or("–".into());
        [extents("lattice"), extents("block"), whole("vectors"), whole("iterations"), shown(seconds(k)), shown(alone)]
    };
    list.iter().enumerate().map(level).collect()
}

/// What `ferrite solve --json` printed.
pub struct ConvergenceSection {
    /// What was solved, how, and what came of it.
    facts: Vec<(&'static str, String)>,
    converged: bool,
    iterations: u64,
    /// Why the method changed on the way.
    changes: Vec<String>,
    /// Of multigrid: lattice, aggregates, near-null vectors, iterations, seconds, those in coarser levels included, and in the level
    /// alone.
    levels: Vec<[String; 6]>,
    /// log₁₀ of residuals by right-hand side.
    history: Vec<Vec<f64>>,
    true_residuals: Vec<f64>,
    tol: f64,
}

impl ConvergenceSection {
    /// Takes what is there of an object.
    pub fn read(object: &Value) -> Result<Self, String> {
        let numbers = |value: &Value, most: usize| -> Vec<f64> {
            let list = value.as_array().into_iter().flatten().take(most);
            list.map(|number| number.as_f64().map_or(f64::NAN, f64::log10)).collect()
        };
        let all = object["history"].as_array().ok_or("is a solve without a history")?;
        let history: Vec<_> = all.iter().take(MOST[0]).map(|of_rhs| numbers(of_rhs, MOST[1])).collect();
        let text = |key: &str| match &object[key] {
            Value::String(text) => Some(text.clone()),
            number @ Value::Number(_) => Some(value_text(number)),
            _ => None,
        };
        let mut facts = Vec::new();
        let lattice = extents_in(&object["lattice"]);
        let sums = [
            ("operator", text("operator")),
            ("lattice", lattice),
            ("mass", text("mass")),
            ("solver", text("solver")),
            ("precision", text("precision")),
            ("reals of a link", text("reconstruct")),
            ("right-hand sides", Some(all.len().to_string())),
            ("iterations", text("iterations")),
            ("true residual", object["true_residual"].as_f64().map(|x| format!("{x:.3e}"))),
            ("asked", object["tol"].as_f64().map(|x| format!("{x:.1e}"))),
            ("seconds", object["seconds"].as_f64().map(|x| format!("{x:.4}"))),
            ("GFLOP/s", object["gflops"].as_f64().map(|x| format!("{x:.1}"))),
            ("multigrid's setup", setup(object, all.len())),
            ("device", text("device")),
        ];
        for (what, value) in sums {
            facts.extend(value.map(|value| (what, value)));
        }
        Ok(ConvergenceSection {
            facts,
            changes: changes(&object["method_changes"]),
            levels: levels(&object["multigrid"]["levels"]),
            converged: object["converged"].as_bool().unwrap_or(false),
            iterations: object["iterations"].as_u64().unwrap_or(0),
            history,
            true_residuals: numbers(&object["true_residuals"], MOST[0]),
            tol: object["tol"].as_f64().map_or(f64::NAN, f64::log10),
        })
    }
    /// In words.
    pub fn sentence(&self) -> String {
        let end = if self.converged { "converged" } else { "NOT converged" };
        let what: Vec<_> = self
            .facts
            .iter()
            .filter(|(what, _)| ["operator", "lattice"].contains(what))
            .map(|(_, v)| v.as_str())
            .collect();
        format!("{}, {end} after {}", what.join(" on "), count(self.iterations as usize, "iteration"))
    }
    /// The section.
    pub fn put(&self, html: &mut String, title: &str) -> Result<(), ReportError> {
        page::heading(html, &format!("Convergence: {title}"));
        page::facts(html, self.facts.iter().map(|(what, value)| (*what, value.as_str())));
        page::notes(html, &self.changes);
        if !self.levels.is_empty() {
            *html += "<div class=\"wide\">\n<table>\n<thead><tr><th>level of multigrid</th><th>aggregates</th>\
                      <th>near-null vectors</th><th>iterations</th><th>seconds with coarser levels</th><th>without</th></tr>\
                      </thead>\n<tbody>\n";
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
            layers.push(layer("asked", PlotColour::Black, asked));
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
        let caption = "Residuals of each right-hand side: in the recurrence, of the even-odd preconditioned system, and at \
                       the end |b − M x| / |b| of the full one, computed in double.";
        figure(&panel, caption.into())
    }
}
