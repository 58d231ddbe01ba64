//! Section on traces of many configurations: condensates, quark loops, disconnected susceptibilities.
use super::histories;
use crate::analysis::traces::{TraceAnalysis, traces};
use crate::analysis::{AnalysisChoice, estimate_text};
use crate::error::ReportError;
use crate::page;
use crate::records::ensemble::streams_sentence;
use crate::records::traces::TraceHistory;
use crate::text::{count, escape, extents, number, value_text};
use ferrite_records::measure::{DilutedTimes, DilutionInput, TraceInput, TraceLine};
use ferrite_records::read::read_leniently;
use std::fmt::Write;

/// Section of a page on the results of `ferrite trace`.
pub struct TraceSection {
    record: TraceHistory,
    /// Whether the last line was left out because it is incomplete.
    half: bool,
    choice: AnalysisChoice,
    found: Vec<TraceAnalysis>,
}

/// Maximum number of histories on a page; histories of Γ = 1 come before the others.
const MOST_HISTORIES: usize = 8;

impl TraceSection {
    /// Creates the section from the lines of a file. `half` states whether the last line was left out because it is incomplete.
    pub fn new(record: TraceHistory, half: bool) -> Self {
        let choice = AnalysisChoice { streams: record.streams.clone(), ..AnalysisChoice::with_bin(1) };
        let found = traces(&record.all, &choice);
        TraceSection { record, half, choice, found }
    }
    /// Returns a sentence that summarises the section.
    pub fn sentence(&self) -> String {
        let configurations = count(self.record.all.len(), "configuration");
        let mut masses: Vec<String> = self.found.iter().map(|one| number(one.mass)).collect();
        masses.dedup();
        let lattice = self
            .record
            .all
            .first()
            .map_or(String::new(), |one| format!(" on {}", extents(one.system.operator.lattice)));
        format!("{configurations}{lattice}: {}, m = {}", count(self.found.len(), "trace"), masses.join(", "))
    }
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.half {
            notes.push("The last line is incomplete and was skipped.".into());
        }
        match self.record.all.len() {
            1 => notes.push("Errors and the susceptibility cannot be estimated from one configuration.".into()),
            n if n < 10 => notes.push(format!("{n} configurations are too few for reliable errors.")),
            _ => {}
        }
        if self.vectors() == 1 {
            notes.push("The susceptibility needs at least two noise vectors on each configuration.".into());
        }
        notes.extend(streams_sentence(&self.record.streams).map(|streams| format!("{streams}.")));
        notes
    }
    fn vectors(&self) -> usize {
        let first = self.record.all.first().and_then(|one| one.traces.first());
        first.map_or(0, |one| one.noise.len())
    }
    /// Returns names and values that describe the operator and the noise, from the first line.
    fn facts(&self) -> Vec<(String, String)> {
        let TraceLine { origin, system, .. } = &self.record.first;
        let TraceInput { solve, noise } = origin.input.as_ref().map(read_leniently).unwrap_or_default();
        let mut facts: Vec<(String, String)> =
            solve.iter().map(|(key, value)| (key.clone(), value_text(value))).collect();
        if facts.is_empty() && !system.operator.operator.is_empty() {
            facts.push(("operator".into(), system.operator.operator.clone()));
        }
        facts.push(("noise vectors".into(), self.vectors().to_string()));
        if !noise.kind.is_empty() {
            facts.push(("kind of noise".into(), noise.kind));
        }
        facts.extend(noise.seed.map(|seed| ("seed".into(), seed.to_string())));
        let DilutionInput { times, spin, colour, parity } = noise.dilution;
        let times = times.map(|times| match times {
            DilutedTimes::Every(n) => format!("times {n}"),
            DilutedTimes::Named(name) => format!("times {name}"),
        });
        let others = [("colour", colour), ("parity", parity), ("spin", spin)];
        let others = others.into_iter().filter(|(_, is_split)| *is_split).map(|(name, _)| name.to_string());
        let parts: Vec<String> = others.chain(times).collect();
        if !parts.is_empty() {
            facts.push(("dilution".into(), parts.join(", ")));
        }
        facts
    }
    /// Appends the section to a page; `name` is its heading.
    pub fn put(&self, html: &mut String, name: &str) -> Result<(), ReportError> {
        page::heading(html, &format!("Traces: {name}"));
        let _ = writeln!(html, "<p class=\"lead\">{}.</p>", escape(&self.sentence()));
        let facts = self.facts();
        page::facts(html, facts.iter().map(|(what, value)| (what.as_str(), value.as_str())));
        page::notes(html, &self.notes());
        let tau = |k: usize| self.choice.average(&self.series(k)).autocorrelation;
        let taus: Vec<Option<f64>> =
            (0..self.found.len()).map(tau).map(|tau| Some(tau).filter(|t| t.is_finite())).collect();
        table(html, &self.found, &taus);
        if self.record.all.len() > 1 {
            let mut shown: Vec<usize> = (0..self.found.len()).collect();
            shown.sort_by_key(|k| self.found[*k].gamma != "1");
            for k in shown.iter().take(MOST_HISTORIES) {
                let TraceAnalysis { mass, gamma, .. } = &self.found[*k];
                let what = if gamma == "1" { "condensate".into() } else { format!("trace with Γ = {gamma}") };
                let about = format!("{what}, Re tr Γ M⁻¹ / V, at m = {}", number(*mass));
                let figure = histories::history(&about, &what, &self.series(*k), &self.record.streams)?;
                page::put(html, &figure);
            }
            if shown.len() > MOST_HISTORIES {
                let rest = count(shown.len() - MOST_HISTORIES, "trace");
                let _ = writeln!(html, "<p>The table has {rest} more, whose histories are not shown.</p>");
            }
        }
        Ok(())
    }
    /// Returns the real part of a trace on each configuration, averaged over the noise vectors.
    fn series(&self, trace: usize) -> Vec<f64> {
        let mean = |noise: &[[f64; 2]]| noise.iter().map(|z| z[0]).sum::<f64>() / noise.len() as f64;
        self.record.all.iter().map(|one| mean(&one.traces[trace].noise)).collect()
    }
}

/// Appends a table of means over configurations to a page. `taus` has the autocorrelation time of each trace; if it is empty, the table has
/// no such column.
pub fn table(html: &mut String, found: &[TraceAnalysis], taus: &[Option<f64>]) {
    *html += "<div class=\"wide\">\n<table>\n<thead><tr><th>m</th><th>Γ</th><th>Re tr Γ M⁻¹ / V</th><th>Im tr Γ M⁻¹ / V</th>\
              <th>χ</th>";
    if !taus.is_empty() {
        *html += "<th>τ</th>";
    }
    *html += "</tr></thead>\n<tbody>\n";
    for (k, one) in found.iter().enumerate() {
        let [re, im, disconnected] =
            [one.real, one.imaginary, one.disconnected].map(|one| page::cell(&estimate_text(one)));
        let (mass, gamma) = (number(one.mass), escape(&one.gamma));
        let _ = write!(html, "<tr><td>{mass}</td><td>{gamma}</td><td>{re}</td><td>{im}</td><td>{disconnected}</td>");
        if let Some(tau) = taus.get(k) {
            let tau = tau.map_or("–".into(), |tau| format!("{tau:.1}"));
            let _ = write!(html, "<td>{tau}</td>");
        }
        *html += "</tr>\n";
    }
    *html += "</tbody>\n</table>\n</div>\n<p>χ is the disconnected susceptibility of the real part";
    if !taus.is_empty() {
        *html += ", τ the integrated autocorrelation time of the real part in configurations";
    }
    *html += ".</p>\n";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::lines_of;
    use serde_json::{Value, json};

    fn line(file: &str, z: f64, vectors: usize) -> Value {
        let noise: Vec<[f64; 2]> = (0..vectors).map(|k| [z + 0.01 * k as f64, 0.0]).collect();
        json!({
            "schema": "ferrite.traces/1", "file": file, "absolute": format!("/x/{file}"), "lattice": [4, 4, 4, 8],
            "input": { "solve": { "operator": "staggered", "masses": "0.1,0.3" }, "noise": { "vectors": vectors, "seed": 1 } },
            "traces": [{ "mass": 0.1, "gamma": "1", "noise": noise }, { "mass": 0.3, "gamma": "1", "noise": noise }],
        })
    }

    fn section(lines: &[Value]) -> TraceSection {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        TraceSection::new(TraceHistory::of(&lines_of(text.as_bytes(), "t.jsonl").unwrap().0).unwrap(), false)
    }

    #[test]
    fn traces_are_a_table_and_histories() {
        let lines: Vec<Value> = (0..12).map(|k| line(&format!("c.{k}"), 0.5 + 0.01 * f64::from(k % 5), 2)).collect();
        let section = section(&lines);
        assert_eq!(section.sentence(), "12 configurations on 4×4×4×8: 2 traces, m = 0.1, 0.3");
        let mut html = String::new();
        section.put(&mut html, "t.jsonl").unwrap();
        assert!(
            html.matches("<svg").count() == 2 && html.contains("disconnected susceptibility of the real part, τ"),
            "{html}"
        );
        assert!(!html.contains("NaN") && html.contains("<dt>operator</dt><dd>staggered</dd>"), "{html}");
    }

    #[test]
    fn one_configuration_and_one_vector_say_what_is_missing() {
        let section = section(&[line("c.1", 0.5, 1)]);
        let mut html = String::new();
        section.put(&mut html, "t.jsonl").unwrap();
        assert!(
            html.contains("Errors and the susceptibility cannot be estimated")
                && html.contains("needs at least two noise vectors"),
            "{html}"
        );
        assert!(!html.contains("<svg") && !html.contains("NaN"), "{html}");
    }
}
