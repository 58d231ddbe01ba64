//! Reports of several things, and of others than runs of RHMC: what commands printed with `--json`, and timelines.
use super::convergence::ConvergenceSection;
use super::fits::FitSection;
use super::measurements::MeasurementSection;
use super::rhmc::RhmcReport;
use super::scaling::{Benchmark, ScalingSection};
use super::shifts::ShiftsSection;
use super::spectrum::SpectrumReport;
use super::timeline::TimelineSection;
use crate::error::ReportError;
use crate::page::{self, folder_name};
use crate::records::correlators::CorrelatorRecord;
use crate::records::measurements::{MeasurementRecord, kind};
use crate::records::trajectories;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Larger files are none of ours.
const MOST_BYTES: u64 = 1 << 30;

/// What can be reported, for messages.
const KINDS: &str = "a folder of ferrite rhmc or spectrum, a file of ferrite measure, what solve, fit, bench dslash or bench model print with \
                     --json, a job's log with such lines, points for bench model --measured, or a timeline of bench halo --trace";

/// One thing to report.
enum Item {
    Run(Box<RhmcReport>),
    Spectrum(Box<SpectrumReport>),
    Measurements(Box<MeasurementSection>),
    Fit(Box<FitSection>),
    Solve(ConvergenceSection),
    Shifts(ShiftsSection),
    Timeline(TimelineSection),
    /// All scaling goes into one section.
    Scaling,
}

/// Several things on one page.
pub struct CollectionReport {
    items: Vec<(PathBuf, Item)>,
    scaling: ScalingSection,
}

impl CollectionReport {
    /// Reads everything; of each run the first `skip` trajectories do not count, or those without Metropolis step.
    ///
    /// # Errors
    /// What cannot be read, or is nothing that a report is of.
    pub fn read(paths: &[PathBuf], skip: Option<usize>) -> Result<Self, ReportError> {
        let (mut items, mut scaling) = (Vec::new(), ScalingSection::default());
        for path in paths {
            if path.is_dir() && CorrelatorRecord::is_in(path) {
                let spectrum = SpectrumReport::read(path, folder_name(path))?;
                items.push((path.clone(), Item::Spectrum(Box::new(spectrum))));
                continue;
            }
            if path.is_dir() {
                let report = RhmcReport::new(folder_name(path), trajectories::read(path)?, skip);
                items.push((path.clone(), Item::Run(Box::new(report))));
                continue;
            }
            let all = objects(path)?;
            // Configurations of a file belong together; those of a log stand among other results.
            let (measured, others): (Vec<Value>, Vec<Value>) = all.into_iter().partition(MeasurementRecord::is_one);
            if !measured.is_empty() {
                let record = MeasurementRecord::of(&measured, false).map_err(|why| refused(path, &why))?;
                items.push((path.clone(), Item::Measurements(Box::new(MeasurementSection::new(record)))));
            }
            for object in others {
                let item = item(&object, &mut scaling).map_err(|why| refused(path, &why))?;
                items.push((path.clone(), item));
            }
        }
        Ok(CollectionReport { items, scaling })
    }
    /// The page, which `program` has made.
    ///
    /// # Errors
    /// A picture that cannot be drawn.
    pub fn html(&self, program: &str) -> Result<String, ReportError> {
        let mut html = page::begin("ferrite report");
        html += "<h1>Report</h1>\n";
        for (number, (path, item)) in self.items.iter().enumerate() {
            match item {
                Item::Run(report) => report.put(&mut html, &format!("part-{number}-"))?,
                Item::Spectrum(spectrum) => spectrum.put(&mut html)?,
                Item::Measurements(section) => section.put(&mut html, &title(path))?,
                Item::Fit(fit) => fit.put(&mut html, &title(path))?,
                Item::Solve(solve) => solve.put(&mut html, &title(path))?,
                Item::Shifts(shifts) => shifts.put(&mut html, &title(path)),
                Item::Timeline(timeline) => timeline.put(&mut html, &title(path)),
                Item::Scaling => {}
            }
        }
        self.scaling.put(&mut html)?;
        page::end(&mut html, program, self.items.iter().any(|(_, item)| matches!(item, Item::Run(_))));
        Ok(html)
    }
    /// For JSON.
    pub fn json(&self, output: &Path) -> Value {
        let section = |(path, item): &(PathBuf, Item)| {
            let (kind, text) = (item.kind(), self.text_of(item));
            json!({ "path": path, "kind": kind, "text": text })
        };
        json!({ "output": output, "sections": self.items.iter().map(section).collect::<Vec<_>>() })
    }
    /// For a terminal.
    pub fn text(&self) -> String {
        self.items.iter().map(|(path, item)| format!("{}: {}\n", path.display(), self.text_of(item))).collect()
    }
    fn text_of(&self, item: &Item) -> String {
        match item {
            Item::Run(report) => report.sentence(),
            Item::Spectrum(spectrum) => spectrum.sentence(),
            Item::Measurements(section) => section.sentence(),
            Item::Fit(fit) => fit.sentence(),
            Item::Solve(solve) => solve.sentence(),
            Item::Shifts(shifts) => shifts.sentence(),
            Item::Timeline(timeline) => timeline.sentence(),
            Item::Scaling => self.scaling.sentence(),
        }
    }
}

impl Item {
    fn kind(&self) -> &'static str {
        match self {
            Item::Run(_) => "rhmc",
            Item::Spectrum(_) => "spectrum",
            Item::Measurements(_) => "measurements",
            Item::Fit(_) => "fit",
            Item::Solve(_) => "convergence",
            Item::Shifts(_) => "shifts",
            Item::Timeline(_) => "timeline",
            Item::Scaling => "scaling",
        }
    }
}

fn title(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn refused(path: &Path, why: &str) -> ReportError {
    ReportError::Unreadable(format!("{}: {why}", path.display()))
}

/// The objects of a file: one, or one in each line.
fn objects(path: &Path) -> Result<Vec<Value>, ReportError> {
    let length = fs::metadata(path).map_err(|why| refused(path, &format!("cannot be read: {why}")))?.len();
    if length > MOST_BYTES {
        return Err(refused(path, &format!("is too large for a report; it can have {KINDS}")));
    }
    let bytes = fs::read(path).map_err(|why| refused(path, &format!("cannot be read: {why}")))?;
    let whole = match serde_json::from_slice::<Value>(&bytes) {
        Ok(value) => return Ok(vec![value]),
        Err(why) => why,
    };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let all: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => match logged(&bytes) {
            logged if !logged.is_empty() => Ok(logged),
            _ => Err(refused(path, &format!("is not JSON ({whole}); a report is of {KINDS}"))),
        },
    }
}

/// The results in the log of a job that can be reported, among lines for people and other results.
fn logged(bytes: &[u8]) -> Vec<Value> {
    let objects = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    objects.filter(|object| REPORTED.contains(&kind(object))).collect()
}

/// Schemas, without version, that an item is made of.
const REPORTED: [&str; 8] = [
    "ferrite.solve",
    "ferrite.solve_shifts",
    "ferrite.bench",
    "ferrite.bench-model",
    "ferrite.scaling-points",
    "ferrite.measure",
    "ferrite.measurement",
    "ferrite.fit",
];

/// What an object is. Benchmarks join the scaling.
fn item(object: &Value, scaling: &mut ScalingSection) -> Result<Item, String> {
    if TimelineSection::is_one(object) {
        return TimelineSection::read(object).map(Item::Timeline);
    }
    match kind(object) {
        "ferrite.solve" => ConvergenceSection::read(object).map(Item::Solve),
        "ferrite.fit" => FitSection::read(object).map(|fit| Item::Fit(Box::new(fit))),
        "ferrite.solve_shifts" => ShiftsSection::read(object).map(Item::Shifts),
        "ferrite.bench" => scaling.add_benchmark(Benchmark::read(object)?).map(|()| Item::Scaling),
        "ferrite.bench-model" => scaling.add_points(&object["rows"]).map(|()| Item::Scaling),
        "ferrite.scaling-points" => scaling.add_points(&object["points"]).map(|()| Item::Scaling),
        "" => Err(format!("has no schema; a report is of {KINDS}")),
        _ => Err(format!("has the schema {}; a report is of {KINDS}", object["schema"].as_str().unwrap_or_default())),
    }
}
