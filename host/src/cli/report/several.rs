//! Reports of several things, and of others than runs of RHMC: what commands printed with `--json`, and timelines.
use super::scaling::{Benchmark, Scaling};
use super::shifts::Shifts;
use super::solves::Solve;
use super::spectrum::{self, Spectrum};
use super::timeline::Timeline;
use super::{Report, data, name, page};
use crate::cli::{Failure, Outcome};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Larger files are none of ours.
const MOST_BYTES: u64 = 1 << 30;

/// What can be reported, for messages.
const KINDS: &str = "a folder of ferrite rhmc or spectrum, what solve, bench dslash or bench model print with --json, a job's log with such \
                     lines, points for bench model --measured, or a timeline of bench halo --trace";

/// One thing to report.
enum Part {
    Run(Box<Report>),
    Spectrum(Box<Spectrum>),
    Solve(Solve),
    Shifts(Shifts),
    Timeline(Timeline),
    /// All scaling goes into one section.
    Scaling,
}

/// Several things on one page.
pub struct Several {
    parts: Vec<(PathBuf, Part)>,
    scaling: Scaling,
}

impl Several {
    /// Reads everything.
    pub fn read(paths: &[PathBuf], skip: Option<usize>) -> Outcome<Self> {
        let (mut parts, mut scaling) = (Vec::new(), Scaling::default());
        for path in paths {
            if path.is_dir() && spectrum::is_one(path) {
                let spectrum = Spectrum::read(path, name(path))?;
                parts.push((path.clone(), Part::Spectrum(Box::new(spectrum))));
                continue;
            }
            if path.is_dir() {
                let report = Report::new(name(path), data::read(path)?, skip);
                parts.push((path.clone(), Part::Run(Box::new(report))));
                continue;
            }
            for object in objects(path)? {
                let part = part(&object, &mut scaling).map_err(|why| refused(path, &why))?;
                parts.push((path.clone(), part));
            }
        }
        Ok(Several { parts, scaling })
    }
    /// The page.
    pub fn html(&self) -> Result<String, String> {
        let mut html = page::begin("ferrite report");
        html += "<h1>Report</h1>\n";
        for (number, (path, part)) in self.parts.iter().enumerate() {
            match part {
                Part::Run(report) => page::run(&mut html, report, &format!("part-{number}-"))?,
                Part::Spectrum(spectrum) => spectrum.put(&mut html)?,
                Part::Solve(solve) => solve.put(&mut html, &title(path))?,
                Part::Shifts(shifts) => shifts.put(&mut html, &title(path)),
                Part::Timeline(timeline) => timeline.put(&mut html, &title(path)),
                Part::Scaling => {}
            }
        }
        self.scaling.put(&mut html)?;
        page::end(&mut html, self.parts.iter().any(|(_, part)| matches!(part, Part::Run(_))));
        Ok(html)
    }
    /// For JSON.
    pub fn json(&self, output: &Path) -> Value {
        let section = |(path, part): &(PathBuf, Part)| {
            let (kind, text) = (part.kind(), self.text_of(part));
            json!({ "path": path, "kind": kind, "text": text })
        };
        json!({ "output": output, "sections": self.parts.iter().map(section).collect::<Vec<_>>() })
    }
    /// For a terminal.
    pub fn text(&self) -> String {
        self.parts.iter().map(|(path, part)| format!("{}: {}\n", path.display(), self.text_of(part))).collect()
    }
    fn text_of(&self, part: &Part) -> String {
        match part {
            Part::Run(report) => report.sentence(),
            Part::Spectrum(spectrum) => spectrum.sentence(),
            Part::Solve(solve) => solve.sentence(),
            Part::Shifts(shifts) => shifts.sentence(),
            Part::Timeline(timeline) => timeline.sentence(),
            Part::Scaling => self.scaling.sentence(),
        }
    }
}

impl Part {
    fn kind(&self) -> &'static str {
        match self {
            Part::Run(_) => "rhmc",
            Part::Spectrum(_) => "spectrum",
            Part::Solve(_) => "convergence",
            Part::Shifts(_) => "shifts",
            Part::Timeline(_) => "timeline",
            Part::Scaling => "scaling",
        }
    }
}

fn title(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::refused(format!("{}: {why}", path.display()))
}

/// The objects of a file: one, or one in each line.
fn objects(path: &Path) -> Outcome<Vec<Value>> {
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
            _ => Err(refused(path, &format!("is no JSON ({whole}); a report is of {KINDS}"))),
        },
    }
}

/// The results in the log of a job that can be reported, among lines for people and other results.
fn logged(bytes: &[u8]) -> Vec<Value> {
    let objects = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    objects.filter(|object| REPORTED.contains(&kind(object))).collect()
}

/// Schemas, without version, that a part is made of.
const REPORTED: [&str; 5] =
    ["ferrite.solve", "ferrite.solve_shifts", "ferrite.bench", "ferrite.bench-model", "ferrite.scaling-points"];

/// The schema of an object without its version; empty if it has none.
fn kind(object: &Value) -> &str {
    let schema = object["schema"].as_str().unwrap_or_default();
    schema.split_once('/').map_or(schema, |(kind, _)| kind)
}

/// What an object is. Benchmarks join the scaling.
fn part(object: &Value, scaling: &mut Scaling) -> Result<Part, String> {
    if Timeline::is_one(object) {
        return Timeline::read(object).map(Part::Timeline);
    }
    match kind(object) {
        "ferrite.solve" => Solve::read(object).map(Part::Solve),
        "ferrite.solve_shifts" => Shifts::read(object).map(Part::Shifts),
        "ferrite.bench" => scaling.add_benchmark(Benchmark::read(object)?).map(|()| Part::Scaling),
        "ferrite.bench-model" => scaling.add_points(&object["rows"]).map(|()| Part::Scaling),
        "ferrite.scaling-points" => scaling.add_points(&object["points"]).map(|()| Part::Scaling),
        "" => Err(format!("has no schema; a report is of {KINDS}")),
        _ => Err(format!("has the schema {}; a report is of {KINDS}", object["schema"].as_str().unwrap_or_default())),
    }
}
