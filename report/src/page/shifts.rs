//! Section on solves for several masses or shifts at once.
use crate::page;
use crate::text::{count, extents, number};
use ferrite_records::operator::OperatorOnLinks;
use ferrite_records::place::PlaceRecord;
use ferrite_records::read::{read_leniently, read_list_leniently};
use ferrite_records::solve::{ShiftSolvers, ShiftsOutcome, SystemOutcome};
use serde_json::Value;
use std::fmt::Write;

/// Maximum number of systems that the table shows.
const MOST: usize = 400;

/// Section of a page on the output of `ferrite solve --masses` or `--shifts` with `--json`.
pub struct ShiftsSection {
    /// Names and values: the systems, the method and the outcome.
    facts: Vec<(&'static str, String)>,
    converged: bool,
    /// Rows of systems: mass or shift, iterations of multi-shift CG and of the refinement, true residual, and the reason if a solver gave
    /// up.
    systems: Vec<[String; 5]>,
    left_out: usize,
}

impl ShiftsSection {
    /// Reads the section from a JSON object; missing keys are left out.
    pub fn read(object: &Value) -> Result<Self, String> {
        let systems: Vec<SystemOutcome> =
            read_list_leniently(&object["systems"]).ok_or("is a solve of several systems without results")?;
        let outcome: ShiftsOutcome = read_leniently(object);
        let operator: OperatorOnLinks = read_leniently(object);
        let place: PlaceRecord = read_leniently(object);
        let solvers: ShiftSolvers = read_leniently(object);
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        let system = |system: &SystemOutcome| {
            let which = match (system.mass, system.shift) {
                (Some(mass), _) => format!("m = {mass}"),
                (None, Some(shift)) => format!("s = {shift}"),
                _ => "–".into(),
            };
            let residual = finite(system.true_residual).map_or("–".into(), |x| format!("{x:.3e}"));
            let [first, refinement] = [system.iterations, system.refinement_iterations].map(|n| n.to_string());
            [which, first, refinement, residual, system.failure.clone().unwrap_or_default()]
        };
        let text = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
        let all = [
            ("operator", text(&operator.operator)),
            ("lattice", (operator.lattice != [0; 4]).then(|| extents(operator.lattice))),
            ("mass", solvers.mass.map(number)),
            ("systems", Some(systems.len().to_string())),
            ("solver", text(&solvers.solver)),
            ("for all systems", text(&solvers.shift_solver)),
            ("precision", text(&outcome.precision)),
            ("reals of a link", text(&outcome.reconstruct)),
            ("requested", finite(outcome.tol).map(|x| format!("{x:.1e}"))),
            ("seconds", finite(outcome.seconds).map(|x| format!("{x:.4}"))),
            ("time of multi-shift CG", finite(outcome.first_seconds).map(|x| format!("{x:.4}"))),
            ("GFLOP/s", finite(outcome.gflops).map(|x| format!("{x:.1}"))),
            ("device", text(&place.device)),
        ];
        Ok(ShiftsSection {
            facts: all.into_iter().filter_map(|(what, value)| Some((what, value?))).collect(),
            converged: outcome.converged,
            systems: systems.iter().take(MOST).map(system).collect(),
            left_out: systems.len().saturating_sub(MOST),
        })
    }
    /// Returns a sentence that summarises the section.
    pub fn sentence(&self) -> String {
        let named = |name: &str| self.facts.iter().find(|(what, _)| *what == name).map(|(_, value)| value.as_str());
        let what: Vec<_> = ["operator", "lattice"].into_iter().filter_map(named).collect();
        let end = if self.converged { "all converged" } else { "NOT all converged" };
        format!("{}, {}, {end}", what.join(" on "), count(self.systems.len() + self.left_out, "system"))
    }
    /// Appends the section to a page with the heading `title`.
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
            let _ = writeln!(html, "<p>{} are not shown.</p>", count(self.left_out, "more system"));
        }
    }
}
