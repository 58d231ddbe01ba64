//! Section on measurements on many configurations: means, the gradient flow, the static potential.
use super::figure::Figure;
use super::fitted::{flow_figure, potential_figure};
use super::histories;
use crate::analysis::AnalysisChoice;
use crate::analysis::flow::{FlowAnalysis, LEVEL};
use crate::analysis::potential::PotentialAnalysis;
use crate::error::ReportError;
use crate::page;
use crate::records::ensemble::streams_sentence;
use crate::records::measurements::{MeasurementRecord, NUMBERS, numbers};
use crate::text::{count, digits, escape, extents};
use ferrite_records::measure::MeasurementLine;
use std::fmt::Write;

/// Section of a page on the results of `ferrite measure`.
pub struct MeasurementSection {
    record: MeasurementRecord,
    /// Whether the last line was left out because it is incomplete.
    half: bool,
    choice: AnalysisChoice,
    flow: Option<FlowAnalysis>,
    potential: Option<PotentialAnalysis>,
}

impl MeasurementSection {
    /// Creates the section from the measurements of a file. `half` states whether the last line was left out because it is incomplete.
    pub fn new(record: MeasurementRecord, half: bool) -> Self {
        let choice = AnalysisChoice { streams: record.streams.clone(), ..AnalysisChoice::with_bin(1) };
        let flow = FlowAnalysis::of(&record.all, &choice);
        let potential = PotentialAnalysis::of(&record.all, &choice);
        MeasurementSection { record, half, choice, flow, potential }
    }
    /// Returns a sentence that summarises the section.
    pub fn sentence(&self) -> String {
        let mut text = count(self.record.all.len(), "configuration");
        let _ = write!(text, " on {}", extents(self.record.all[0].lattice));
        let has = [(self.flow.is_some(), "gradient flow"), (self.potential.is_some(), "Wilson loops")];
        let names: Vec<&str> = has.iter().filter(|(there, _)| *there).map(|(_, name)| *name).collect();
        if names.is_empty() { text } else { format!("{text}: {}", names.join(", ")) }
    }
    /// Returns notes on problems that need attention.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.half {
            notes.push("The last line is incomplete and was skipped.".into());
        }
        match self.record.all.len() {
            1 => notes.push("Errors cannot be estimated from one configuration.".into()),
            n if n < 10 => notes.push(format!("{n} configurations are too few for reliable errors.")),
            _ => {}
        }
        notes.extend(streams_sentence(&self.record.streams).map(|streams| format!("{streams}.")));
        notes
    }
    /// Appends the section to a page; `name` is its heading.
    pub fn put(&self, html: &mut String, name: &str) -> Result<(), ReportError> {
        page::heading(html, &format!("Measurements: {name}"));
        let _ = writeln!(html, "<p class=\"lead\">{}.</p>", escape(&self.sentence()));
        page::notes(html, &self.notes());
        self.table(html);
        let errors = match self.record.all.len() {
            1 => "one configuration, no errors".into(),
            n => self.choice.sentence(n),
        };
        if self.record.all.len() > 1 {
            page::put(html, &self.history("plaquette", "plaquette", |one| one.loops.plaquette.mean)?);
        }
        if let Some(flow) = &self.flow {
            let points: Vec<_> = flow.times.iter().copied().zip(flow.scaled.iter().copied()).collect();
            page::put(html, &flow_figure(&points, LEVEL, &errors)?);
            preformatted(html, &flow.text());
            if self.record.all.len() > 1 {
                let charge = |one: &MeasurementLine| one.flow.last().map_or(f64::NAN, |point| point.charge);
                page::put(html, &self.history("topological charge at the end of the flow", "Q", charge)?);
            }
        }
        if let Some(analysis) = &self.potential {
            let at = &analysis.potential.at;
            let points: Vec<_> = at
                .iter()
                .map(|at| (at.distance, at.fit.as_ref().ok().and_then(|found| found.fit.quantities[0])))
                .collect();
            let cornell = analysis.potential.fit.as_ref().ok().map(|fit| {
                let ends = fit.best.window.map(|k| at[analysis.potential.used[k]].distance);
                (fit.best.minimum.parameters.as_slice(), ends)
            });
            page::put(html, &potential_figure(&points, cornell, &errors)?);
            preformatted(html, &analysis.text());
        }
        Ok(())
    }
    /// Appends a table of means to a page, for the quantities that every configuration has.
    fn table(&self, html: &mut String) {
        *html += "<div class=\"wide\">\n<table>\n<thead><tr><th></th><th>mean</th><th>error</th><th>τ, in configurations</th></tr></thead>\n<tbody>\n";
        for (k, name) in NUMBERS.iter().enumerate() {
            let series: Vec<f64> = self.record.all.iter().map(|one| numbers(one)[k]).collect();
            let found = self.choice.average(&series);
            let [mean, error] = digits(found.mean, found.error);
            let tau =
                if found.autocorrelation.is_finite() { format!("{:.1}", found.autocorrelation) } else { "–".into() };
            let [mean, error] = [mean, error].map(|text| page::cell(&text));
            let _ = writeln!(html, "<tr><td>{}</td><td>{mean}</td><td>{error}</td><td>{tau}</td></tr>", escape(name));
        }
        *html += "</tbody>\n</table>\n</div>\n";
    }
    /// Draws the history of a number that `of` takes from each configuration.
    fn history(&self, about: &str, axis: &str, of: impl Fn(&MeasurementLine) -> f64) -> Result<Figure, ReportError> {
        let values: Vec<f64> = self.record.all.iter().map(of).collect();
        histories::history(about, axis, &values, &self.record.streams)
    }
}

/// Appends text to a page in the layout of a terminal.
fn preformatted(html: &mut String, text: &str) {
    let _ = writeln!(html, "<pre>{}</pre>", escape(text));
}
