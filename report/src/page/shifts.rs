//! Solves for several masses or shifts at once.
use crate::page;
use crate::text::{count, extents_in, value_text};
use serde_json::Value;
use std::fmt::Write;

/// More systems are not shown.
const MOST: usize = 400;

/// What `ferrite solve --masses` or `--shifts` printed with `--json`.
pub struct ShiftsSection {
    /// What was solved, how, and what came of it.
    facts: Vec<(&'static str, String)>,
    converged: bool,
    /// Mass or shift, iterations of multi-shift CG and of the refinement, true residual, why a solver gave up.
    systems: Vec<[String; 5]>,
    left_out: usize,
}

impl ShiftsSection {
    /// Takes what is there of an object.
    pub fn read(object: &Value) -> Result<Self, String> {
        let systems = object["systems"].as_array().ok_or("is a solve of several systems without systems")?;
        let system = |system: &Value| {
            let which = match (system["mass"].as_f64(), system["shift"].as_f64()) {
                (Some(mass), _) => format!("m = {mass}"),
                (None, Some(shift)) => format!("s = {shift}"),
                _ => "–".into(),
            };
            let whole = |key: &str| system[key].as_u64().map_or("–".into(), |n| n.to_string());
            let residual = system["true_residual"].as_f64().map_or("–".into(), |x| format!("{x:.3e}"));
            let failure = system["failure"].as_str().unwrap_or_default().to_string();
            [which, whole("iterations"), whole("refinement_iterations"), residual, failure]
        };
        let text = |key: &str| match &object[key] {
            Value::String(text) => Some(text.clone()),
            number @ Value::Number(_) => Some(value_text(number)),
            _ => None,
        };
        let all = [
            ("operator", text("operator")),
            ("lattice", extents_in(&object["lattice"])),
            ("mass", text("mass")),
            ("systems", Some(systems.len().to_string())),
            ("solver", text("solver")),
            ("of all systems", text("shift_solver")),
            ("precision", text("precision")),
            ("reals of a link", text("reconstruct")),
            ("asked", object["tol"].as_f64().map(|x| format!("{x:.1e}"))),
            ("seconds", object["seconds"].as_f64().map(|x| format!("{x:.4}"))),
            ("of these for multi-shift CG", object["first_seconds"].as_f64().map(|x| format!("{x:.4}"))),
            ("GFLOP/s", object["gflops"].as_f64().map(|x| format!("{x:.1}"))),
            ("device", text("device")),
        ];
        Ok(ShiftsSection {
            facts: all.into_iter().filter_map(|(what, value)| Some((what, value?))).collect(),
            converged: object["converged"].as_bool().unwrap_or(false),
            systems: systems.iter().take(MOST).map(system).collect(),
            left_out: systems.len().saturating_sub(MOST),
        })
    }
    /// In words.
    pub fn sentence(&self) -> String {
        let named = |name: &str| self.facts.iter().find(|(what, _)| *what == name).map(|(_, value)| value.as_str());
        let what: Vec<_> = ["operator", "lattice"].into_iter().filter_map(named).collect();
        let end = if self.converged { "all converged" } else { "NOT all converged" };
        format!("{}, {}, {end}", what.join(" on "), count(self.systems.len() + self.left_out, "system"))
    }
    /// The section.
    pub fn put(&self, html: &mut String, title: &str) {
        page::heading(html, &format!("Several systems: {title}"));
        page::facts(html, self.facts.iter().map(|(what, value)| (*what, value.as_str())));
        *html += "<div class=\"wide\">\n<table>\n<thead><tr><th>system</th><th>iterations of multi-shift CG</th>\
                  <th>of its refinement</th><th>true residual</th><th>remark</th></tr></thead>\n<tbody>\n";
        for row in &self.systems {
            let cells: String = row.iter().map(|cell| format!("<td>{}</td>", page::cell(cell))).collect();
            let _ = writeln!(html, "<tr>{cells}</tr>");
        }
        *html += "</tbody>\n</table>\n</div>\n";
        if self.left_out > 0 {
            let _ = writeln!(html, "<p>{} are left out.</p>", count(self.left_out, "more system"));
        }
    }
}
