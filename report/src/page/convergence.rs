//! The convergence of a solve.
use super::figure::{Figure, figure, layer, line, roomy};
use crate::error::ReportError;
use crate::page;
use crate::plot::panel::{LayerShape, Panel, PlotColour};
use crate::text::{count, extents_in};
use serde_json::Value;

/// More right-hand sides, or entries of a history, are not drawn.
const MOST: [usize; 2] = [64, 100_000];
/// More points than this are not told apart.
const POINTS: usize = 2000;

/// What `ferrite solve --json` printed.
pub struct ConvergenceSection {
    /// What was solved, how, and what came of it.
    facts: Vec<(&'static str, String)>,
    converged: bool,
    iterations: u64,
    /// log₁₀ of residuals by right-hand of_rhs.
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
            Value::Number(number) => Some(number.to_string()),
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
            ("device", text("device")),
        ];
        for (what, value) in sums {
            facts.extend(value.map(|value| (what, value)));
        }
        Ok(ConvergenceSection {
            facts,
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
        let caption = "Residuals of each right-hand of_rhs: in the recurrence, of the even-odd preconditioned system, and at \
                       the end |b − M x| / |b| of the full one, computed in double.";
        figure(&panel, caption.into())
    }
}
