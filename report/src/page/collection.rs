//! Reports of several files and folders, and of results other than runs of RHMC: output of commands with `--json`, and timelines.
use super::convergence::ConvergenceSection;
use super::fits::FitSection;
use super::measurements::MeasurementSection;
use super::rhmc::RhmcReport;
use super::scaling::{Benchmark, ScalingSection};
use super::shifts::ShiftsSection;
use super::spectrum::SpectrumReport;
use super::timeline::TimelineSection;
use super::traces::TraceSection;
use crate::error::ReportError;
use crate::page::{self, folder_name};
use crate::records::correlators::CorrelatorRecord;
use crate::records::ensemble::{LinePosition, RecordLine};
use crate::records::measurements::MeasurementRecord;
use crate::records::traces::TraceHistory;
use crate::records::{NotJson, RecordLines, lines_of, trajectories};
use ferrite_records::read::{kind, schema};
use ferrite_records::report::{CollectionRecord, SectionRecord};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a file to read, in bytes. Ferrite does not write larger files.
const MOST_BYTES: u64 = 1 << 30;

/// List of the objects that can be reported, for messages.
const KINDS: &str = "a folder of ferrite rhmc or spectrum, a file of ferrite measure or trace, output of solve, fit, \
                     bench dslash or ferrite-studies model with --json, a job's log with such output, points for \
                     ferrite-studies model --measured, or a timeline of bench halo --trace";

/// One object of a report, with its section.
enum ReportObject {
    Run(Box<RhmcReport>),
    Spectrum(Box<SpectrumReport>),
    Measurements(Box<MeasurementSection>),
    Traces(Box<TraceSection>),
    Fit(Box<FitSection>),
    Solve(ConvergenceSection),
    Shifts(ShiftsSection),
    Timeline(TimelineSection),
    /// An object that contributes to the section on scaling, which all such objects share.
    Scaling,
}

/// Report of several files and folders on one page.
pub struct CollectionReport {
    items: Vec<(PathBuf, ReportObject)>,
    scaling: ScalingSection,
}

impl CollectionReport {
    /// Reads the files and folders `paths`. Means of a run leave out the first `skip` trajectories, or by default those without a
    /// Metropolis step.
    ///
    /// # Errors
    /// A [`ReportError`] that names the file that cannot be read or reported.
    pub fn read(paths: &[PathBuf], skip: Option<usize>) -> Result<Self, ReportError> {
        let (mut items, mut scaling) = (Vec::new(), ScalingSection::default());
        for path in paths {
            if path.is_dir() && CorrelatorRecord::is_in(path) {
                let spectrum = SpectrumReport::read(path, folder_name(path))?;
                items.push((path.clone(), ReportObject::Spectrum(Box::new(spectrum))));
                continue;
            }
            if path.is_dir() {
                let report = RhmcReport::new(folder_name(path), trajectories::read(path)?, skip);
                items.push((path.clone(), ReportObject::Run(Box::new(report))));
                continue;
            }
            let (all, half) = objects(path)?;
            // Measurements in a file form one section, although a log may contain other results between them.
            let (measured, all) = parted(all, MeasurementRecord::is_one);
            if !measured.is_empty() {
                let record = MeasurementRecord::of(&measured).map_err(ReportError::Unreadable)?;
                let section = MeasurementSection::new(record, half);
                items.push((path.clone(), ReportObject::Measurements(Box::new(section))));
            }
            let (traces, all) = parted(all, TraceHistory::is_one);
            if !traces.is_empty() {
                let record = TraceHistory::of(&traces).map_err(ReportError::Unreadable)?;
                items.push((path.clone(), ReportObject::Traces(Box::new(TraceSection::new(record, half)))));
            }
            let (correlators, others) = parted(all, CorrelatorRecord::is_one);
            if !correlators.is_empty() {
                let lines = RecordLines { lines: correlators, half: half.then(|| path.clone()).into_iter().collect() };
                let record = CorrelatorRecord::of(&lines, std::slice::from_ref(path));
                let spectrum = SpectrumReport::of(title(path), record.map_err(ReportError::Unreadable)?);
                items.push((path.clone(), ReportObject::Spectrum(Box::new(spectrum))));
            }
            for RecordLine { value, .. } in others {
                let item = item(&value, &mut scaling).map_err(|why| refused(path, &why))?;
                items.push((path.clone(), item));
            }
        }
        Ok(CollectionReport { items, scaling })
    }
    /// Returns the page in HTML; the footer names `program` as its maker.
    ///
    /// # Errors
    /// Fails if a picture cannot be drawn.
    pub fn html(&self, program: &str) -> Result<String, ReportError> {
        let mut html = page::begin("ferrite report");
        html += "<h1>Report</h1>\n";
        for (number, (path, item)) in self.items.iter().enumerate() {
            match item {
                ReportObject::Run(report) => report.put(&mut html, &format!("part-{number}-"))?,
                ReportObject::Spectrum(spectrum) => spectrum.put(&mut html)?,
                ReportObject::Measurements(section) => section.put(&mut html, &title(path))?,
                ReportObject::Traces(section) => section.put(&mut html, &title(path))?,
                ReportObject::Fit(fit) => fit.put(&mut html, &title(path))?,
                ReportObject::Solve(solve) => solve.put(&mut html, &title(path))?,
                ReportObject::Shifts(shifts) => shifts.put(&mut html, &title(path)),
                ReportObject::Timeline(timeline) => timeline.put(&mut html, &title(path)),
                ReportObject::Scaling => {}
            }
        }
        self.scaling.put(&mut html)?;
        let runs = self.items.iter().filter_map(|(_, item)| match item {
            ReportObject::Run(report) => Some(report.runs()),
            _ => None,
        });
        page::end(&mut html, program, runs.max().unwrap_or(page::RunsOnPage::None));
        Ok(html)
    }
    /// Returns the JSON record of the report; `output` is the path of the page.
    pub fn record(&self, output: &Path) -> CollectionRecord {
        let section = |(path, item): &(PathBuf, ReportObject)| SectionRecord {
            path: path.clone(),
            kind: item.kind().into(),
            text: self.text_of(item),
        };
        CollectionRecord { output: output.into(), sections: self.items.iter().map(section).collect() }
    }
    /// Returns the report as text for a terminal.
    pub fn text(&self) -> String {
        self.items.iter().map(|(path, item)| format!("{}: {}\n", path.display(), self.text_of(item))).collect()
    }
    fn text_of(&self, item: &ReportObject) -> String {
        match item {
            ReportObject::Run(report) => report.sentence(),
            ReportObject::Spectrum(spectrum) => spectrum.sentence(),
            ReportObject::Measurements(section) => section.sentence(),
            ReportObject::Traces(section) => section.sentence(),
            ReportObject::Fit(fit) => fit.sentence(),
            ReportObject::Solve(solve) => solve.sentence(),
            ReportObject::Shifts(shifts) => shifts.sentence(),
            ReportObject::Timeline(timeline) => timeline.sentence(),
            ReportObject::Scaling => self.scaling.sentence(),
        }
    }
}

impl ReportObject {
    fn kind(&self) -> &'static str {
        match self {
            ReportObject::Run(_) => "rhmc",
            ReportObject::Spectrum(_) => "spectrum",
            ReportObject::Measurements(_) => "measurements",
            ReportObject::Traces(_) => "traces",
            ReportObject::Fit(_) => "fit",
            ReportObject::Solve(_) => "convergence",
            ReportObject::Shifts(_) => "shifts",
            ReportObject::Timeline(_) => "timeline",
            ReportObject::Scaling => "scaling",
        }
    }
}

fn title(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn refused(path: &Path, why: &str) -> ReportError {
    ReportError::Unreadable(format!("{}: {why}", path.display()))
}

/// Splits lines into those whose value satisfies `is_one` and the others.
fn parted(lines: Vec<RecordLine>, is_one: impl Fn(&Value) -> bool) -> (Vec<RecordLine>, Vec<RecordLine>) {
    lines.into_iter().partition(|line| is_one(&line.value))
}

/// Returns the objects of a file, which has one object in total or one in each line. Also returns whether the last line was left out
/// because it is incomplete.
fn objects(path: &Path) -> Result<(Vec<RecordLine>, bool), ReportError> {
    let length = fs::metadata(path).map_err(|why| refused(path, &format!("cannot be read: {why}")))?.len();
    if length > MOST_BYTES {
        return Err(refused(path, &format!("is too large for a report; a report reads {KINDS}")));
    }
    let bytes = fs::read(path).map_err(|why| refused(path, &format!("cannot be read: {why}")))?;
    let file = path.display().to_string();
    match lines_of(&bytes, &file) {
        Ok((lines, half)) if !lines.is_empty() => Ok((lines, half)),
        found => match logged(&bytes, &file) {
            logged if !logged.is_empty() => Ok((logged, false)),
            _ => {
                let at = |why: NotJson| format!(" at line {}, column {}", why.line, why.column);
                let place = found.err().map_or_else(String::new, at);
                Err(refused(path, &format!("is not JSON{place}; a report reads {KINDS}")))
            }
        },
    }
}

/// Returns the results in a job's log that can be reported. Text and other results are ignored.
fn logged(bytes: &[u8], file: &str) -> Vec<RecordLine> {
    let name: Arc<str> = file.into();
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..);
    let objects = lines.filter_map(|(text, line)| {
        let place = LinePosition { file: name.clone(), line };
        Some(RecordLine { place, value: serde_json::from_slice(text).ok()? })
    });
    objects.filter(|line| REPORTED.contains(&kind(&line.value))).collect()
}

/// Schemas of the objects that can be reported, without their version.
const REPORTED: [&str; 11] = [
    "ferrite.solve",
    "ferrite.solve_shifts",
    "ferrite.bench",
    "ferrite.bench-model",
    "ferrite.scaling-points",
    "ferrite.measure",
    "ferrite.measurement",
    "ferrite.trace",
    "ferrite.traces",
    "ferrite.correlators",
    "ferrite.fit",
];

/// Reads an object according to its schema. Adds a benchmark to the section on scaling.
fn item(object: &Value, scaling: &mut ScalingSection) -> Result<ReportObject, String> {
    if TimelineSection::is_one(object) {
        return TimelineSection::read(object).map(ReportObject::Timeline);
    }
    match kind(object) {
        "ferrite.solve" => ConvergenceSection::read(object).map(ReportObject::Solve),
        "ferrite.fit" => FitSection::read(object).map(|fit| ReportObject::Fit(Box::new(fit))),
        "ferrite.solve_shifts" => ShiftsSection::read(object).map(ReportObject::Shifts),
        "ferrite.bench" => scaling.add_benchmark(Benchmark::read(object)?).map(|()| ReportObject::Scaling),
        "ferrite.bench-model" => scaling.add_points(&object["rows"]).map(|()| ReportObject::Scaling),
        "ferrite.scaling-points" => scaling.add_points(&object["points"]).map(|()| ReportObject::Scaling),
        "" => Err(format!("has no schema; a report reads {KINDS}")),
        _ => Err(format!("has the schema {}; a report reads {KINDS}", schema(object).unwrap_or_default())),
    }
}
