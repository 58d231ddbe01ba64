//! Page on the folder of a spectrum: correlators and effective masses.
use super::figure::Figure;
use super::fitted::{ErrorBar, FittedCurve, FittedFigure, alternating_figure, correlator_figure, pcac_figure};
use crate::analysis::alternating::AlternatingMasses;
use crate::analysis::hadrons::HadronFit;
use crate::analysis::pcac::PcacFit;
use crate::analysis::{AnalysisChoice, estimate_cell};
use crate::error::ReportError;
use crate::page;
use crate::records::correlators::{
    CorrelatorRecord, Correlators, HadronChannel, LINES, alternating, hadrons, masses_of_first_half, pcac_channels,
    plain_tastes,
};
use crate::records::ensemble::streams_sentence;
use crate::text::{count, escape, extents, value_text};
use ferrite_records::spectrum::{CorrelatorLine, MeanOfTime, ReportedHadron, SpectrumReportRecord};
use serde_json::{Map, Value};
use statistics::jackknife::{JackknifeEstimate, jackknife};
use std::fmt::Write;
use std::path::Path;

/// Maximum number of hadrons in each table.
const COLUMNS: usize = 4;

/// Report on all configurations of a folder of `ferrite spectrum`.
pub struct SpectrumReport {
    name: String,
    /// First line of the folder, which has operator, links and sources.
    first: CorrelatorLine,
    configurations: usize,
    /// Settings of the analysis, with bins and streams.
    choice: AnalysisChoice,
    /// Whether the last line was left out because it is incomplete.
    half: bool,
    hadrons: Vec<MeasuredHadron>,
    /// Fits of quark masses from the axial current.
    pcac: Vec<PcacFit>,
    /// Correlators in which one state alternates in sign.
    alternating: Vec<AlternatingMasses>,
    /// Number of correlators of a configuration; each momentum counts separately.
    kinds: usize,
}

/// Correlator and effective masses of a hadron at each time from the source.
struct MeasuredHadron {
    name: String,
    masses: Vec<Option<JackknifeEstimate>>,
    /// Correlator C(t) and its fit in the most probable window.
    fit: HadronFit,
}

impl SpectrumReport {
    /// Reads the report from the lines in a folder.
    ///
    /// # Errors
    /// The errors of [`CorrelatorRecord::read`].
    pub fn read(folder: &Path, name: String) -> Result<Self, ReportError> {
        Ok(Self::of(name, CorrelatorRecord::read(folder)?))
    }
    /// Creates the report of a record that has at least one configuration.
    pub(super) fn of(name: String, record: CorrelatorRecord) -> Self {
        let CorrelatorRecord { first, all, streams, half, bin } = record;
        let choice = AnalysisChoice { streams, ..AnalysisChoice::with_bin(bin) };
        let known: Vec<HadronChannel> = hadrons(&all[0]).into_iter().chain(plain_tastes(&all[0])).collect();
        let hadrons = known.iter().filter_map(|channel| MeasuredHadron::of(channel, &all, &choice)).collect();
        let channels = pcac_channels(&all[0]);
        let pcac = channels.iter().filter_map(|channel| PcacFit::of(channel, &all, 0.0, &choice)).collect();
        let alternating = alternating(&all[0]);
        let alternating =
            alternating.iter().filter_map(|channel| AlternatingMasses::of(channel, &all, &choice)).collect();
        let (configurations, kinds) = (all.len(), all[0].all.len());
        SpectrumReport { name, first, configurations, choice, half, hadrons, pcac, alternating, kinds }
    }
    /// Returns a sentence that summarises the report.
    pub fn sentence(&self) -> String {
        let mut text = count(self.configurations, "configuration");
        let _ = write!(text, " on {}", extents(self.first.lattice));
        let names: Vec<_> = self.hadrons.iter().map(|hadron| hadron.name.as_str()).collect();
        let alternating = self.alternating.iter().map(|one| one.name.as_str());
        let names: Vec<&str> = names.into_iter().chain(alternating).collect();
        let masses = if names.is_empty() { "no effective masses".into() } else { names.join(", ") };
        format!("{text}: {masses}")
    }
    /// Returns notes on problems that need attention.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.half {
            notes.push(format!("The last line of {LINES} is incomplete and was skipped."));
        }
        // `bins` counts full bins only, because configurations that do not fill a bin are left out.
        match (self.choice.bins(self.configurations), self.choice.bin) {
            (1, 1) => notes.push("Errors cannot be estimated from one configuration.".into()),
            (1, _) => notes.push("Errors cannot be estimated from one bin of configurations.".into()),
            (n, 1) if n < 10 => notes.push(format!("{n} configurations are too few for reliable errors.")),
            (n, bin) if n < 10 => {
                notes.push(format!("{n} bins of {bin} configurations are too few for reliable errors."))
            }
            _ => {}
        }
        notes.extend(streams_sentence(&self.choice.streams).map(|streams| format!("{streams}.")));
        notes
    }
    /// Returns the JSON record of the report; `path` is the path of the page.
    pub fn record(&self, folder: &Path, path: &Path) -> SpectrumReportRecord {
        let all = |list: &[Option<JackknifeEstimate>]| {
            list.iter().map(|e| e.map(|e| MeanOfTime { value: e.value, error: e.error })).collect()
        };
        let hadron = |hadron: &MeasuredHadron| ReportedHadron {
            hadron: hadron.name.clone(),
            correlator: all(&hadron.fit.correlator),
            masses: all(&hadron.masses),
            fit: hadron.fit.record(),
        };
        SpectrumReportRecord {
            folder: folder.into(),
            output: path.into(),
            configurations: self.configurations,
            bin: self.choice.bin,
            half_line: self.half,
            hadrons: self.hadrons.iter().map(hadron).collect(),
            pcac: self.pcac.iter().map(PcacFit::record).collect(),
            alternating: self.alternating.iter().map(AlternatingMasses::record).collect(),
            notes: self.notes(),
        }
    }
    /// Returns the page in HTML; the footer names `program` as its maker.
    ///
    /// # Errors
    /// Fails if a picture cannot be drawn.
    pub fn html(&self, program: &str) -> Result<String, ReportError> {
        let mut html = page::begin(&format!("{}: report of a spectrum", self.name));
        self.put(&mut html)?;
        page::end(&mut html, program, page::RunsOnPage::None);
        Ok(html)
    }
    /// Appends the report to a page.
    pub(super) fn put(&self, html: &mut String) -> Result<(), ReportError> {
        let _ = writeln!(html, "<h1>{}</h1>\n<p class=\"lead\">{}.</p>", escape(&self.name), escape(&self.sentence()));
        let known = self.facts();
        page::facts(html, known.iter().map(|(what, value)| (what.as_str(), value.as_str())));
        page::notes(html, &self.notes());
        if self.hadrons.is_empty() && self.alternating.is_empty() {
            *html += "<p>No effective masses are known for these correlators.</p>\n";
        }
        for hadron in &self.hadrons {
            page::heading(html, &hadron.name);
            let _ = writeln!(html, "<p>{}</p>", page::sentence(&hadron.fit.text()));
            page::put(html, &hadron.correlators(&self.errors())?);
            page::put(html, &hadron.effective(&self.errors())?);
        }
        for quark in &self.pcac {
            page::heading(html, &quark.name);
            let _ = writeln!(html, "<p>{}</p>", page::sentence(&quark.text()));
            page::put(html, &pcac_figure(&quark.name, &quark.masses, quark.plateau(), &self.errors())?);
        }
        for one in &self.alternating {
            page::heading(html, &one.name);
            page::put(html, &correlator_figure(&one.name, &one.correlator, None, &self.errors())?);
            page::put(html, &alternating_figure(&one.name, [&one.masses, &one.partner], &self.errors())?);
        }
        if !self.hadrons.is_empty() || !self.alternating.is_empty() {
            page::heading(html, "Effective masses");
            self.table(html);
        }
        Ok(())
    }
    /// Describes how the error bars were computed.
    fn errors(&self) -> String {
        match (self.choice.bins(self.configurations), self.choice.bin) {
            (0 | 1, 1) => "one configuration, no errors".into(),
            (0 | 1, _) => "one bin of configurations, no errors".into(),
            (_, 1) => "jackknife errors over configurations".into(),
            (bins, bin) => format!("jackknife errors over {bins} bins of {bin} configurations"),
        }
    }
    /// Returns names and values that describe the solves, from the first line.
    fn facts(&self) -> Vec<(String, String)> {
        let shown = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) => Some(value_text(value)),
            Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.into()),
            Value::Array(list) if !list.is_empty() && list.iter().all(|x| x.is_number() || x.is_string()) => {
                Some(list.iter().map(value_text).collect::<Vec<_>>().join(", "))
            }
            _ => None,
        };
        let mut facts = vec![("correlators of a configuration".to_string(), self.kinds.to_string())];
        let mut add = |prefix: &str, table: &Map<String, Value>| {
            let known = table.iter().filter_map(|(key, value)| Some((format!("{prefix}{key}"), shown(value)?)));
            facts.extend(known);
        };
        if let Value::Object(input) = &self.first.input {
            add("", input);
            for (name, value) in input {
                if let Value::Object(table) = value {
                    add(&format!("{name}."), table);
                }
            }
        }
        facts
    }
    fn table(&self, html: &mut String) {
        let mut columns: Vec<(String, &[Option<JackknifeEstimate>])> =
            self.hadrons.iter().map(|hadron| (hadron.name.clone(), &hadron.masses[..])).collect();
        for one in &self.alternating {
            columns.push((one.name.clone(), &one.masses));
            columns.push((format!("{}, parity partner", one.name), &one.partner));
        }
        // The hadrons are divided among several tables, because one table would be wider than a small screen.
        for columns in columns.chunks(COLUMNS) {
            *html += "<div class=\"wide\">\n<table>\n<thead><tr><th>t</th>";
            for (name, _) in columns {
                let _ = write!(html, "<th>{}</th>", escape(name));
            }
            *html += "</tr></thead>\n<tbody>\n";
            for t in 0..columns.iter().map(|(_, masses)| masses.len()).max().unwrap_or(0) {
                let _ = write!(html, "<tr><td>{t}</td>");
                for (_, masses) in columns {
                    let mass = estimate_cell(masses.get(t).copied().flatten());
                    let _ = write!(html, "<td>{}</td>", page::cell(&mass));
                }
                *html += "</tr>\n";
            }
            *html += "</tbody>\n</table>\n</div>\n";
        }
    }
    /// Returns the report as text for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.sentence());
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        for hadron in &self.hadrons {
            text += &hadron.fit.text();
        }
        for quark in &self.pcac {
            text += &quark.text();
        }
        text
    }
}

impl MeasuredHadron {
    /// Fits the mean of the hadron's correlators at rest; returns `None` if they are missing or not all finite.
    fn of(channel: &HadronChannel, all: &[Correlators], choice: &AnalysisChoice) -> Option<Self> {
        let samples: Vec<Vec<f64>> = all.iter().map(|found| found.mean(&channel.parts)).collect::<Option<_>>()?;
        let fit = HadronFit::of(&channel.name, &samples, channel.shape, choice);
        let masses = jackknife(&choice.binned(&samples), |mean| masses_of_first_half(mean, channel.shape));
        Some(MeasuredHadron { name: channel.name.clone(), masses, fit })
    }
    /// Draws C(t) with the fitted function.
    fn correlators(&self, errors: &str) -> Result<Figure, ReportError> {
        let fit = self.fit.fit.as_ref().ok().map(|found| {
            let best = &found.fit.best;
            (found.states, best.minimum.parameters.as_slice(), best.window)
        });
        correlator_figure(&self.name, &self.fit.correlator, fit, errors)
    }
    fn effective(&self, errors: &str) -> Result<Figure, ReportError> {
        let bars = self.masses.iter().enumerate().filter_map(|(t, m)| ErrorBar::of(t as f64, *m));
        // Draws the energy of the fit as a horizontal line through its window.
        let curve = self.fit.fit.as_ref().ok().and_then(|found| {
            let (energy, window) = (found.fit.quantities[0]?.value, found.fit.best.window.map(|t| t as f64));
            Some(FittedCurve::of("fit".into(), window, window, |_| energy))
        });
        let figure = FittedFigure {
            about: "Effective mass against the time from the source".into(),
            axes: ["t".into(), format!("a m, {}", self.name)],
            counts: true,
            bars: &bars.collect::<Vec<_>>(),
            curve,
            levels: Vec::new(),
        };
        figure.drawn(format!("Effective mass of the {}, from C(t) to C(t + 1); {}.", self.name, errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{RecordLines, lines_of};
    use serde_json::json;

    fn record_of(spectrum: &SpectrumReport) -> SpectrumReportRecord {
        spectrum.record(Path::new("folder"), Path::new("report.html"))
    }

    /// C(t) = cosh m (T/2 − t), with noise that means cancel.
    fn lines(n: usize) -> String {
        let line = |j: usize| {
            let noise = 1.0 + 0.1 * (j as f64 - (n as f64 - 1.0) / 2.0);
            let values: Vec<[f64; 2]> = (0..8).map(|t| [noise * (0.5 * (4.0 - t as f64)).cosh(), 0.0]).collect();
            let correlators = json!([{ "name": "g5", "momentum": [0, 0, 0], "values": values }]);
            let file = format!("cfg.{j}");
            json!({
                "schema": "ferrite.correlators/1", "configuration": file, "file": file, "lattice": [4, 4, 4, 8],
                "input": { "source": "point", "solve": { "mass": "0.1" } }, "correlators": correlators,
            })
        };
        (0..n).map(|j| format!("{}\n", line(j))).collect()
    }

    fn record(bytes: &[u8]) -> Result<CorrelatorRecord, String> {
        const FILE: &str = "folder/correlators.jsonl";
        let (lines, half) = lines_of(bytes, FILE).map_err(|why| why.in_file(FILE))?;
        let half = half.then(|| "folder".into()).into_iter().collect();
        CorrelatorRecord::of(&RecordLines { lines, half }, &["folder".into()])
    }

    #[test]
    fn masses_are_those_of_the_correlators() {
        // Torn in the middle of a letter.
        let torn = [lines(3).as_bytes(), b"{\"half\xc3"].concat();
        let spectrum = SpectrumReport::of("folder".into(), record(&torn).unwrap());
        // A last line that lacks nothing but its end is whole.
        let unended = record(lines(3).trim_end().as_bytes()).unwrap();
        assert_eq!((unended.all.len(), unended.half), (3, false));
        assert_eq!(spectrum.sentence(), "3 configurations on 4×4×4×8: pion");
        let record = record_of(&spectrum);
        assert_eq!((record.configurations, record.half_line), (3, true));
        for mass in record.hadrons[0].masses.iter().map(|mass| mass.unwrap()) {
            // Noise that is a common factor leaves no error; solved for m to some 1e-15.
            assert!((mass.value - 0.5).abs() < 1e-12 && mass.error < 1e-12);
        }
        // The jackknife's error of a mean: of 0.9, 1, 1.1 it is 0.1/√3.
        let first = record.hadrons[0].correlator[4].unwrap();
        assert!((first.error - 0.1 / 3f64.sqrt()).abs() < 1e-12, "{first:?}");
        let html = spectrum.html("ferrite").unwrap();
        assert_eq!(html.matches("<svg").count(), 2);
        assert!(html.contains("solve.mass") && html.contains("incomplete") && !html.contains("NaN"));
    }

    /// A state of 0.6 beside one of 0.9 that alternates in sign.
    #[test]
    fn alternating_correlators_have_effective_masses_of_both_parities() {
        let line = |j: usize| {
            let noise = 1.0 + 0.01 * (j as f64 - 2.0);
            let value = |t: usize| {
                let wave = |m: f64| (-m * t as f64).exp() + (-m * (16 - t) as f64).exp();
                [noise * (wave(0.6) + if t.is_multiple_of(2) { wave(0.9) } else { -wave(0.9) }), 0.0]
            };
            let values: Vec<[f64; 2]> = (0..16).map(value).collect();
            let correlators = json!([{ "name": "scalar", "momentum": [0, 0, 0], "values": values }]);
            let file = format!("cfg.{j}");
            json!({ "schema": "ferrite.correlators/1", "configuration": file, "file": file, "lattice": [8, 8, 8, 16],
                "correlators": correlators })
        };
        let text: String = (0..5).map(|j| format!("{}\n", line(j))).collect();
        let spectrum = SpectrumReport::of("folder".into(), record(text.as_bytes()).unwrap());
        assert_eq!(spectrum.sentence(), "5 configurations on 8×8×8×16: scalar");
        let one = &record_of(&spectrum).alternating[0];
        for (masses, mass) in [(&one.masses, 0.6), (&one.partner, 0.9)] {
            let found = masses[4].unwrap();
            // A common factor cancels.
            assert!((found.value - mass).abs() < 1e-9 && found.error < 1e-9, "{one:?}");
            assert!(masses[1].is_none());
        }
        let html = spectrum.html("ferrite").unwrap();
        assert_eq!(html.matches("<svg").count(), 2);
        assert!(html.contains("scalar, parity partner") && html.contains("crosses: the parity partner"), "{html}");
    }

    #[test]
    fn one_configuration_has_no_errors() {
        let spectrum = SpectrumReport::of("folder".into(), record(lines(1).as_bytes()).unwrap());
        assert!(record_of(&spectrum).hadrons[0].masses[0].unwrap().error.is_nan());
        assert!(spectrum.html("ferrite").unwrap().contains("no errors"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refused = |text: &str| record(text.as_bytes()).unwrap_err();
        assert!(refused("").contains("no configuration yet"));
        let line_2 = |why: &str| format!("folder/correlators.jsonl, line 2: {why}");
        assert!(refused(&(lines(1) + "nothing\n")).starts_with(&line_2("this is not JSON")));
        let other = lines(1).replace("g5", "gx");
        let why = refused(&(lines(1) + &other));
        assert!(
            why.starts_with(&line_2("it has gx at momentum 0,0,0, which folder/correlators.jsonl, line 1")),
            "{why}"
        );
        let elsewhere = lines(1).replace("[4,4,4,8]", "[8,8,8,8]");
        assert!(refused(&(lines(1) + &elsewhere)).contains("its lattice (8,8,8,8) differs from that of"));
        let heavier = lines(1).replace("0.1", "0.2").replace("cfg.0", "cfg.1");
        let why = refused(&(lines(1) + &heavier));
        assert!(why.contains("solve.mass is 0.2, but 0.1 in folder/correlators.jsonl, line 1"), "{why}");
        assert!(refused(&(lines(1) + &lines(1))).contains("cfg.0 occurs twice, first in"));
    }

    /// Means of 0.85 and 1.05, and the last of 5 that fills no bin: the error of their mean is 0.2/2.
    #[test]
    fn errors_are_over_the_bins_of_the_run() {
        let record = CorrelatorRecord { bin: 2, ..record(lines(5).as_bytes()).unwrap() };
        let spectrum = SpectrumReport::of("folder".into(), record);
        let error = record_of(&spectrum).hadrons[0].correlator[4].unwrap().error;
        assert!((error - 0.1).abs() < 1e-12, "{error}");
        assert!(spectrum.html("ferrite").unwrap().contains("2 bins of 2 configurations"));
        assert_eq!(spectrum.notes(), ["2 bins of 2 configurations are too few for reliable errors."]);
    }
}
