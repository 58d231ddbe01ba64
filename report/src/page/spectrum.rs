//! The folder of a spectrum: correlators and effective masses.
use super::figure::{Figure, figure, layer, line, roomy};
use crate::error::ReportError;
use crate::page;
use crate::plot::panel::{LayerShape, Panel, PlotColour};
use crate::records::correlators::{
    AXES, CorrelatorLine, Correlators, HadronChannel, LINES, hadrons, masses_of_first_half,
};
use crate::records::end_of_lines;
use crate::text::{count, digits, escape, extents_in};
use serde_json::{Value, json};
use statistics::jackknife::{JackknifeEstimate, bins, jackknife};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Larger files are none of ours.
const MOST_BYTES: u64 = 1 << 30;

/// All configurations of a folder.
pub struct SpectrumReport {
    name: String,
    /// Of the first line: what is solved for, and where.
    first: Value,
    configurations: usize,
    /// Configurations of a bin of the jackknife.
    bin: usize,
    /// Whether the last line is half written.
    half: bool,
    hadrons: Vec<MeasuredHadron>,
    /// Correlators that there are, and momenta.
    kinds: usize,
}

/// A hadron with what is known of it, at each time from the source.
struct MeasuredHadron {
    name: String,
    correlator: Vec<Option<JackknifeEstimate>>,
    masses: Vec<Option<JackknifeEstimate>>,
}

/// Configurations of a bin in the last run, which says so when it is through; 1 before, and of earlier versions.
fn bin_of(folder: &Path) -> usize {
    let axes = std::fs::read_to_string(folder.join(AXES)).unwrap_or_default();
    let axes: Value = serde_json::from_str(&axes).unwrap_or_default();
    axes["bin"].as_u64().map_or(1, |bin| bin.max(1) as usize)
}

impl SpectrumReport {
    /// Whether a folder is one of `ferrite spectrum`.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(LINES).is_file()
    }
    /// Reads the lines of a folder; of a configuration that is being written, half a line is left out.
    ///
    /// # Errors
    /// What cannot be read, with its line.
    pub fn read(folder: &Path, name: String) -> Result<Self, ReportError> {
        let path = folder.join(LINES);
        let refused = |why: String| ReportError::Unreadable(format!("{}{why}", path.display()));
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        match read {
            Ok(length) if length as u64 > MOST_BYTES => return Err(refused(" is too large for a report".into())),
            Ok(_) => {}
            Err(why) => return Err(refused(format!(" cannot be read: {why}"))),
        }
        Self::parse(name, &bytes, bin_of(folder)).map_err(refused)
    }
    fn parse(name: String, bytes: &[u8], bin: usize) -> Result<Self, String> {
        // A letter of several bytes may be torn, too: only whole lines are text for sure.
        let (whole, rest) = bytes.split_at(end_of_lines(bytes));
        let text = std::str::from_utf8(whole).map_err(|why| format!(" is not text: {why}"))?;
        let (mut first, mut all) = (Value::Null, Vec::<Correlators>::new());
        for (number, text) in text.lines().enumerate() {
            let at = |why: String| format!(", line {}: {why}", number + 1);
            let line: Value = serde_json::from_str(text).map_err(|why| at(format!("this is not JSON: {why}")))?;
            let found = CorrelatorLine::read(&line).map_err(at)?.correlators;
            // With itself: whether all are of as many times.
            if !found.is_like(all.first().unwrap_or(&found)) {
                return Err(at(
                    "it has correlators of other kinds or times than the others, or is on another lattice".into()
                ));
            }
            if all.is_empty() {
                first = line;
            }
            all.push(found);
        }
        if all.is_empty() {
            return Err(" has no configuration yet: ask again when the first one is done".into());
        }
        let kinds = all[0].all.len();
        let channels = hadrons(&all[0]);
        let hadrons = channels.iter().filter_map(|channel| MeasuredHadron::of(channel, &all, bin)).collect();
        Ok(SpectrumReport { name, first, configurations: all.len(), bin, half: !rest.is_empty(), hadrons, kinds })
    }
    /// In words.
    pub fn sentence(&self) -> String {
        let mut text = count(self.configurations, "configuration");
        if let Some(lattice) = extents_in(&self.first["lattice"]) {
            let _ = write!(text, " on {lattice}");
        }
        let names: Vec<_> = self.hadrons.iter().map(|hadron| hadron.name.as_str()).collect();
        let masses = if names.is_empty() { "no effective masses".into() } else { names.join(", ") };
        format!("{text}: {masses}")
    }
    /// What deserves attention.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.half {
            notes.push(format!("The last line of {LINES} is half written and left out."));
        }
        // As many as fill a bin; those at the end that fill none are left out.
        let bins = (self.configurations / self.bin).max(1);
        match (bins, self.bin) {
            (1, 1) => notes.push("One configuration has no errors.".into()),
            (1, _) => notes.push("One bin of configurations has no errors.".into()),
            (n, 1) if n < 10 => notes.push(format!("The errors of {n} configurations are guesses.")),
            (n, bin) if n < 10 => notes.push(format!("The errors of {n} bins of {bin} configurations are guesses.")),
            _ => {}
        }
        notes
    }
    /// For JSON.
    pub fn json(&self) -> Value {
        let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
        let all = |list: &[Option<JackknifeEstimate>]| -> Vec<Value> {
            let one = |e: &JackknifeEstimate| json!({ "value": number(e.value), "error": number(e.error) });
            list.iter().map(|e| e.as_ref().map_or(Value::Null, one)).collect()
        };
        let hadron = |hadron: &MeasuredHadron| json!({ "hadron": hadron.name, "correlator": all(&hadron.correlator), "masses": all(&hadron.masses) });
        json!({
            "configurations": self.configurations,
            "bin": self.bin,
            "half_line": self.half,
            "hadrons": self.hadrons.iter().map(hadron).collect::<Vec<_>>(),
            "notes": self.notes(),
        })
    }
    /// The whole page, which `program` has made.
    ///
    /// # Errors
    /// A picture that cannot be drawn.
    pub fn html(&self, program: &str) -> Result<String, ReportError> {
        let mut html = page::begin(&format!("{}: report of a spectrum", self.name));
        self.put(&mut html)?;
        page::end(&mut html, program, false);
        Ok(html)
    }
    /// All of it, on a page.
    pub(super) fn put(&self, html: &mut String) -> Result<(), ReportError> {
        let _ = writeln!(html, "<h1>{}</h1>\n<p class=\"lead\">{}.</p>", escape(&self.name), escape(&self.sentence()));
        let known = self.facts();
        page::facts(html, known.iter().map(|(what, value)| (what.as_str(), value.as_str())));
        page::notes(html, &self.notes());
        if self.hadrons.is_empty() {
            *html += "<p>None of the correlators is one of those whose effective masses are known.</p>\n";
        }
        for hadron in &self.hadrons {
            page::heading(html, &hadron.name);
            page::put(html, &hadron.correlators(&self.errors())?);
            page::put(html, &hadron.effective(&self.errors())?);
        }
        if !self.hadrons.is_empty() {
            page::heading(html, "Effective masses");
            self.table(html);
        }
        Ok(())
    }
    /// What bars are.
    fn errors(&self) -> String {
        match (self.configurations / self.bin, self.bin) {
            (0 | 1, 1) => "one configuration, no errors".into(),
            (0 | 1, _) => "one bin of configurations, no errors".into(),
            (_, 1) => "errors by the jackknife over configurations".into(),
            (bins, bin) => format!("errors by the jackknife over {bins} bins of {bin} configurations"),
        }
    }
    /// What the first line says of the solve.
    fn facts(&self) -> Vec<(String, String)> {
        let shown = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.into()),
            Value::Array(list) if !list.is_empty() && list.iter().all(|x| x.is_number() || x.is_string()) => {
                let parts = list.iter().map(|x| x.as_str().map_or_else(|| x.to_string(), String::from));
                Some(parts.collect::<Vec<_>>().join(", "))
            }
            _ => None,
        };
        let mut facts = vec![("correlators of a configuration".to_string(), self.kinds.to_string())];
        let mut add = |prefix: &str, object: &Value| {
            for (key, value) in object.as_object().into_iter().flatten() {
                if let Some(value) = shown(value) {
                    facts.push((format!("{prefix}{key}"), value));
                }
            }
        };
        let input = &self.first["input"];
        add("", input);
        for (name, table) in input.as_object().into_iter().flatten().filter(|(_, value)| value.is_object()) {
            add(&format!("{name}."), table);
        }
        facts
    }
    fn table(&self, html: &mut String) {
        *html += "<div class=\"wide\">\n<table>\n<thead><tr><th>t</th>";
        for hadron in &self.hadrons {
            let _ = write!(html, "<th>{}</th>", escape(&hadron.name));
        }
        *html += "</tr></thead>\n<tbody>\n";
        for t in 0..self.hadrons.iter().map(|hadron| hadron.masses.len()).max().unwrap_or(0) {
            let _ = write!(html, "<tr><td>{t}</td>");
            for hadron in &self.hadrons {
                let _ = write!(html, "<td>{}</td>", cell(hadron.masses.get(t).copied().flatten()));
            }
            *html += "</tr>\n";
        }
        *html += "</tbody>\n</table>\n</div>\n";
    }
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.sentence());
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

fn cell(estimate: Option<JackknifeEstimate>) -> String {
    match estimate {
        None => "–".into(),
        Some(JackknifeEstimate { value, error }) => match digits(value, error) {
            [value, error] if error == "–" => value,
            [value, error] => format!("{value} ± {error}"),
        },
    }
}

impl MeasuredHadron {
    /// From the mean of its correlators without momentum; `None` where they are not there, or not all numbers. `bin`
    /// configurations are a bin of the jackknife.
    fn of(channel: &HadronChannel, all: &[Correlators], bin: usize) -> Option<Self> {
        let samples: Vec<Vec<f64>> = all.iter().map(|found| found.mean(&channel.parts)).collect::<Option<_>>()?;
        let samples = bins(&samples, bin);
        let known = |mean: &[f64]| mean.iter().map(|c| Some(*c).filter(|c| c.is_finite())).collect();
        let masses = |mean: &[f64]| masses_of_first_half(mean, channel.shape);
        let (correlator, masses) = (jackknife(&samples, known), jackknife(&samples, masses));
        Some(MeasuredHadron { name: channel.name.clone(), correlator, masses })
    }
    /// log₁₀ |C(t)|: of what falls by orders of magnitude.
    fn correlators(&self, errors: &str) -> Result<Figure, ReportError> {
        let log = |x: f64| x.abs().log10();
        let points = self.correlator.iter().enumerate().filter_map(|(t, estimate)| {
            let JackknifeEstimate { value, error } = (*estimate)?;
            let middle = log(value);
            // A bar that reaches below 0 is as long downwards as upwards.
            let upper = if error.is_finite() { log(value.abs() + error) } else { middle };
            let lower =
                if error.is_finite() && value.abs() > error { log(value.abs() - error) } else { 2.0 * middle - upper };
            let ends = [lower, middle, upper];
            middle.is_finite().then_some(ErrorBar { at: t as f64, ends, crossed: value < 0.0 })
        });
        let points: Vec<_> = points.collect();
        let axes = ["t".into(), format!("log₁₀ |C(t)|, {}", self.name)];
        let negative = points.iter().filter(|point| point.crossed).count();
        let caption = format!(
            "Correlator of the {} without momentum, by the time from the source; {}{}.",
            self.name,
            errors,
            if negative > 0 { "; crosses are negative" } else { "" }
        );
        drawn("Correlator", axes, &points, caption)
    }
    fn effective(&self, errors: &str) -> Result<Figure, ReportError> {
        let points = self.masses.iter().enumerate().filter_map(|(t, estimate)| {
            let JackknifeEstimate { value, error } = (*estimate)?;
            let error = if error.is_finite() { error } else { 0.0 };
            Some(ErrorBar { at: t as f64, ends: [value - error, value, value + error], crossed: false })
        });
        let axes = ["t".into(), format!("a m, {}", self.name)];
        let caption = format!("Effective mass of the {}, from C(t) to C(t + 1); {}.", self.name, errors);
        drawn("Effective mass", axes, &points.collect::<Vec<_>>(), caption)
    }
}

/// A value with its error.
struct ErrorBar {
    /// The time from the source.
    at: f64,
    /// Lower end, value, upper end.
    ends: [f64; 3],
    /// Whether it is marked by a cross instead of a dot.
    crossed: bool,
}

/// Marks with bars of errors, at the ends of which are no caps.
fn drawn(about: &str, axes: [String; 2], points: &[ErrorBar], caption: String) -> Result<Figure, ReportError> {
    let ends = points.iter().flat_map(|point| &point.ends);
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(*y), high.max(*y)));
    let last = points.last().map_or(1.0, |point| point.at);
    let bar = |ErrorBar { at, ends: [lower, _, upper], .. }: &ErrorBar| {
        layer("", PlotColour::Blue, line(vec![(*at, *lower), (*at, *upper)], 2))
    };
    let mut layers: Vec<_> = points.iter().map(bar).collect();
    let marks = |crossed: bool| points.iter().filter(move |point| point.crossed == crossed).map(|p| (p.at, p.ends[1]));
    layers.push(layer("", PlotColour::Blue, LayerShape::Dots(marks(false).collect())));
    layers.push(layer("", PlotColour::Vermilion, LayerShape::Crosses(marks(true).collect())));
    let panel = Panel {
        about: format!("{about} against the time from the source"),
        axes,
        ranges: [-0.5..last + 0.5, if low <= high { roomy((low, high)) } else { 0.0..1.0 }],
        counts: true,
        layers,
    };
    figure(&panel, caption)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn masses_are_those_of_the_correlators() {
        // Torn in the middle of a letter.
        let torn = [lines(3).as_bytes(), b"{\"half\xc3"].concat();
        let spectrum = SpectrumReport::parse("folder".into(), &torn, 1).unwrap();
        assert_eq!(spectrum.sentence(), "3 configurations on 4×4×4×8: pion");
        let json = spectrum.json();
        assert_eq!((&json["configurations"], &json["half_line"]), (&json!(3), &json!(true)));
        for mass in json["hadrons"][0]["masses"].as_array().unwrap() {
            // Noise that is a common factor leaves no error; solved for m to some 1e-15.
            assert!((mass["value"].as_f64().unwrap() - 0.5).abs() < 1e-12 && mass["error"].as_f64().unwrap() < 1e-12);
        }
        // The jackknife's error of a mean: of 0.9, 1, 1.1 it is 0.1/√3.
        let first = &json["hadrons"][0]["correlator"][4];
        assert!((first["error"].as_f64().unwrap() - 0.1 / 3f64.sqrt()).abs() < 1e-12, "{first}");
        let html = spectrum.html("ferrite").unwrap();
        assert_eq!(html.matches("<svg").count(), 2);
        assert!(html.contains("solve.mass") && html.contains("half written") && !html.contains("NaN"));
    }

    #[test]
    fn one_configuration_has_no_errors() {
        let spectrum = SpectrumReport::parse("folder".into(), lines(1).as_bytes(), 1).unwrap();
        assert_eq!(spectrum.json()["hadrons"][0]["masses"][0]["error"], Value::Null);
        assert!(spectrum.html("ferrite").unwrap().contains("no errors"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refused = |text: &str| SpectrumReport::parse("folder".into(), text.as_bytes(), 1).err().unwrap();
        assert!(refused("").contains("no configuration yet"));
        assert!(refused(&(lines(1) + "nothing\n")).starts_with(", line 2: this is not JSON"));
        let other = lines(1).replace("g5", "gx");
        assert!(refused(&(lines(1) + &other)).starts_with(", line 2: it has correlators of other"));
        let elsewhere = lines(1).replace("[4,4,4,8]", "[8,8,8,8]");
        assert!(refused(&(lines(1) + &elsewhere)).contains("is on another lattice"));
    }

    /// Means of 0.85 and 1.05, and the last of 5 that fills no bin: the error of their mean is 0.2/2.
    #[test]
    fn errors_are_over_the_bins_of_the_run() {
        let spectrum = SpectrumReport::parse("folder".into(), lines(5).as_bytes(), 2).unwrap();
        let error = &spectrum.json()["hadrons"][0]["correlator"][4]["error"];
        assert!((error.as_f64().unwrap() - 0.1).abs() < 1e-12, "{error}");
        assert!(spectrum.html("ferrite").unwrap().contains("2 bins of 2 configurations"));
        assert_eq!(spectrum.notes(), ["The errors of 2 bins of 2 configurations are guesses."]);
    }
}
