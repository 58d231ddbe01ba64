//! The lines of `trajectories.jsonl`, read.
use super::inputs::Difference;
use super::sampled::sampled_difference;
use crate::error::ReportError;
use crate::text::value_text;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The schema of a line.
pub const SCHEMA: &str = "ferrite.trajectory/1";

/// The file in the folder of a run.
pub const FILE: &str = "trajectories.jsonl";

/// What is known of one trajectory. Numbers that the line has as `null` are NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct TrajectoryRecord {
    /// Its number.
    pub number: u64,
    /// Whether its end was accepted.
    pub accepted: bool,
    /// Whether it had a Metropolis step.
    pub metropolis: bool,
    /// ΔH
    pub delta: f64,
    /// exp(−ΔH)
    pub exp_minus_delta: f64,
    /// Seconds.
    pub seconds: f64,
    /// Seconds with observables.
    pub whole: Option<f64>,
    /// Seconds of files of links, after that.
    pub files: Option<f64>,
    /// Share of the seconds inside kernels, where their times were taken.
    pub inside: Option<f64>,
    /// Mean, spatial and temporal plaquette.
    pub plaquette: Option<[f64; 3]>,
    /// Mean rectangle.
    pub rectangle: Option<f64>,
    /// Real and imaginary part.
    pub polyakov: Option<[f64; 2]>,
    /// Masses and condensates.
    pub condensates: Vec<[f64; 2]>,
    /// Of links and momenta.
    pub irreversibility: Option<[f64; 2]>,
    /// Plaquettes and rectangles from forces less those of the links.
    pub identities: [Option<f64>; 2],
    /// Groups of quarks.
    pub quarks: Vec<QuarkRecord>,
}

/// What is known of a group of quarks in one trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct QuarkRecord {
    /// Which of [`RunHistory::names`] is its.
    pub name: usize,
    /// Iterations in heat bath and Metropolis step, and in molecular dynamics.
    pub iterations: [f64; 2],
    /// The largest eigenvalue of −D² of staggered quarks, or of M̂†M̂ of Wilson-like quarks; `None` of a part of the action that has
    /// no rational function.
    pub largest: Option<f64>,
    /// The smallest eigenvalue of M̂†M̂, of rational functions of Wilson-like quarks only.
    pub smallest: Option<f64>,
}

/// All lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunHistory {
    /// In the order of their numbers.
    pub trajectories: Vec<TrajectoryRecord>,
    /// Names of groups of quarks.
    pub names: Vec<String>,
    /// Where the program was started, and the settings that it had then.
    pub starts: Vec<(u64, Value)>,
    /// Whether the last line is half written.
    pub half: bool,
}

/// The key of a line's checksum, its last one.
const SEAL: &str = "crc32";

/// A line with its checksum: `"crc32":"0123abcd"` as its last key, of all text before it.
pub fn sealed(line: &Value) -> String {
    let mut text = line.to_string();
    // It is an object, and never an empty one.
    text.truncate(text.len() - 1);
    let sum = crc32fast::hash(text.as_bytes());
    format!("{text},\"{SEAL}\":\"{sum:08x}\"}}")
}

/// Refuses a line whose checksum is not its own. Lines of older versions have none.
fn is_sealed(text: &[u8], line: &Value) -> Result<(), String> {
    let Some(asked) = line.get(SEAL) else { return Ok(()) };
    let end = format!(",\"{SEAL}\":{asked}}}");
    let advice = "restore it, or take crc32 out of it if the change was meant";
    let Some(before) = text.strip_suffix(end.as_bytes()) else {
        return Err(format!("{SEAL} is not the last key, as it was written: the line was changed; {advice}"));
    };
    let there = format!("{:08x}", crc32fast::hash(before));
    if asked.as_str() != Some(&there) {
        return Err(format!(
            "{SEAL} is {asked}, and the text before it makes \"{there}\": the line was changed; {advice}"
        ));
    }
    Ok(())
}

/// Reads the lines of the run in a folder.
///
/// # Errors
/// What is missing, or which line is not as it should be.
pub fn read(folder: &Path) -> Result<RunHistory, ReportError> {
    let path = folder.join(FILE);
    let shown = path.display();
    if !path.exists() {
        let why = "is not the folder of a run of ferrite rhmc or ferrite spectrum: it has no trajectories.jsonl and no \
                   correlators.jsonl";
        return Err(ReportError::Unreadable(format!("{} {why}", folder.display())));
    }
    let unread = |why: std::io::Error| ReportError::Unreadable(format!("{shown} cannot be read: {why}"));
    let run = parse(BufReader::new(File::open(&path).map_err(unread)?), &shown.to_string())?;
    if run.trajectories.is_empty() {
        return Err(ReportError::Unreadable(format!(
            "{shown} has no trajectory yet: try again when the first one is done"
        )));
    }
    Ok(run)
}

/// Reads lines; `what` names their file.
///
/// # Errors
/// Which line is not as it should be, and why.
pub fn parse(mut lines: impl BufRead, what: &str) -> Result<RunHistory, ReportError> {
    let (mut run, mut bytes, mut number) = (RunHistory::default(), Vec::new(), 0);
    loop {
        bytes.clear();
        number += 1;
        let read = lines.read_until(b'\n', &mut bytes);
        if read.map_err(|why| ReportError::Unreadable(format!("{what} cannot be read: {why}")))? == 0 {
            return Ok(run);
        }
        let broken = |why: String| ReportError::Unreadable(format!("{what}, line {number}: {why}"));
        let (ended, line) = match bytes.strip_suffix(b"\n") {
            Some(line) => (true, line),
            None => (false, bytes.as_slice()),
        };
        match serde_json::from_slice::<Value>(line) {
            Ok(value) => is_sealed(line, &value).and_then(|()| run.add(&value)).map_err(broken)?,
            // A line is written with its end in one go: this one is being written, or was when the machine went down.
            Err(_) if !ended => run.half = true,
            Err(why) => {
                let column = why.column();
                return Err(broken(format!(
                    "this is not JSON at column {column}, and only a last line may be cut short; restore the file or \
                     take the line out"
                )));
            }
        }
    }
}

impl RunHistory {
    fn add(&mut self, line: &Value) -> Result<(), String> {
        match line["schema"].as_str() {
            Some(SCHEMA) => {}
            Some(other) => return Err(format!("schema is {other}, and this program reads {SCHEMA}")),
            None => return Err(format!("there is no schema, which has to be {SCHEMA}")),
        }
        let this = line["trajectory"].as_u64().ok_or("trajectory is missing or not a whole number")?;
        if let Some(last) = self.trajectories.last()
            && last.number >= this
        {
            let advice = "lines belong in order, once each; report each chain from a folder of its own";
            // Every line is of a trajectory.
            return Err(match self.trajectories.iter().position(|one| one.number == this) {
                Some(at) => format!("trajectory {this} is there twice, first in line {}: {advice}", at + 1),
                None => {
                    let (last, line) = (last.number, self.trajectories.len());
                    format!("trajectory {this} comes after trajectory {last} of line {line}: {advice}")
                }
            });
        }
        let quarks = list(line, "quarks")?.iter().map(|quarks| self.quarks(quarks));
        let quarks = quarks.collect::<Result<Vec<_>, _>>()?;
        let condensates = list(line, "condensate")?.iter();
        let condensates = condensates.map(|one| {
            let inside = |key| number(one, key).map_err(|why| format!("condensate: {why}"));
            Ok([inside("mass")?, inside("mean")?])
        });
        self.trajectories.push(TrajectoryRecord {
            number: this,
            accepted: switch(line, "accepted")?,
            metropolis: switch(line, "metropolis")?,
            delta: number(line, "delta_h")?,
            exp_minus_delta: number(line, "exp_minus_delta_h")?,
            seconds: number(line, "seconds")?,
            whole: optional(line, "seconds_with_observables", as_number)?,
            files: optional(line, "seconds_of_files", as_number)?,
            inside: optional(line, "kernels", |kernels| number(kernels, "share"))?,
            plaquette: optional(line, "plaquette", |planes| numbers(planes, ["mean", "spatial", "temporal"]))?,
            rectangle: optional(line, "rectangle", as_number)?,
            polyakov: optional(line, "polyakov_loop", |pair| match pair.as_array().map(Vec::as_slice) {
                Some([re, im]) => Ok([as_number(re)?, as_number(im)?]),
                _ => Err("not a pair of numbers".into()),
            })?,
            condensates: condensates.collect::<Result<_, String>>()?,
            irreversibility: optional(line, "irreversibility", |off| numbers(off, ["links", "momenta"]))?,
            identities: optional(line, "identities", |both| {
                let off = |of: &Value| numbers(of, ["loops", "forces"]).map(|[loops, forces]| forces - loops);
                Ok([optional(both, "plaquette", off)?, optional(both, "rectangle", off)?])
            })?
            .unwrap_or_default(),
            quarks,
        });
        if let Some(settings) = line.get("run") {
            let mut settings = settings.clone();
            // What lines of earlier versions call the parallelogram.
            if let Some(gauge) = settings.get_mut("gauge").and_then(Value::as_object_mut)
                && let Some(factor) = gauge.remove("chair")
            {
                gauge.insert("parallelogram".into(), factor);
            }
            if let Some((began, before)) = self.starts.last()
                && let Some(Difference { key, first, second }) = sampled_difference(before, &settings)
            {
                let line = self.trajectories.iter().position(|one| one.number == *began).map_or(1, |at| at + 1);
                let [now, before] = [second, first].map(|value| value_text(&value));
                return Err(format!(
                    "{key} is {now}, and {before} in line {line}: these are trajectories of another ensemble; report each \
                     from a folder of its own"
                ));
            }
            self.starts.push((this, settings));
        }
        Ok(())
    }
    fn quarks(&mut self, quarks: &Value) -> Result<QuarkRecord, String> {
        let name = quarks["name"].as_str().ok_or("quarks: name is missing or not a text")?;
        let name = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        });
        let inside = |why: String| format!("quarks: {why}");
        let eigenvalue = |key: &str| match &quarks[key] {
            Value::Null => Ok(None),
            value => as_number(value).map(Some).map_err(|why| inside(format!("{key} is {why}"))),
        };
        Ok(QuarkRecord {
            name,
            iterations: numbers(&quarks["iterations"], ["action", "dynamics"])
                .map_err(|why| inside(format!("iterations: {why}")))?,
            largest: eigenvalue("largest_eigenvalue")?,
            smallest: eigenvalue("smallest_eigenvalue")?,
        })
    }
    /// The last settings; `null` where no line tells any.
    pub fn settings(&self) -> &Value {
        self.starts.last().map_or(&Value::Null, |(_, settings)| settings)
    }
    /// How many trajectories at the beginning had no Metropolis step.
    pub fn thermalisation(&self) -> usize {
        self.trajectories.iter().take_while(|t| !t.metropolis).count()
    }
}

fn as_number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Null => Ok(f64::NAN),
        value => value.as_f64().ok_or_else(|| "not a number".into()),
    }
}

fn number(of: &Value, key: &str) -> Result<f64, String> {
    let value = of.get(key).ok_or_else(|| format!("{key} is missing"))?;
    as_number(value).map_err(|why| format!("{key} is {why}"))
}

fn numbers<const N: usize>(of: &Value, keys: [&str; N]) -> Result<[f64; N], String> {
    let mut found = [0.0; N];
    for (one, key) in found.iter_mut().zip(keys) {
        *one = number(of, key)?;
    }
    Ok(found)
}

fn switch(of: &Value, key: &str) -> Result<bool, String> {
    of[key].as_bool().ok_or_else(|| format!("{key} is missing or neither true nor false"))
}

fn list<'a>(of: &'a Value, key: &str) -> Result<&'a [Value], String> {
    match of.get(key) {
        None => Ok(&[]),
        Some(list) => list.as_array().map(Vec::as_slice).ok_or_else(|| format!("{key} is not an array")),
    }
}

fn optional<T>(of: &Value, key: &str, read: impl FnOnce(&Value) -> Result<T, String>) -> Result<Option<T>, String> {
    of.get(key).map(read).transpose().map_err(|why| format!("{key}: {why}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// A line as `ferrite rhmc` writes it.
    pub fn line(number: u64, delta: f64) -> Value {
        json!({
            "schema": SCHEMA, "trajectory": number, "accepted": delta < 0.5, "metropolis": number > 2,
            "delta_h": delta, "exp_minus_delta_h": (-delta).exp(),
            "start": { "gauge": 1.0, "kinetic": 2.0, "fermions": 3.0 },
            "end": { "gauge": 1.0, "kinetic": 2.0, "fermions": 3.0 + delta },
            "quarks": [{
                "name": "naive flavours 2 at m = 0.05",
                "iterations": { "action": 40, "dynamics": 1000 + number },
                "largest_eigenvalue": 17.5,
            }],
            "seconds": 2.5, "seconds_with_observables": 3.0,
            "plaquette": { "mean": 0.5 + 0.01 * delta, "spatial": 0.51, "temporal": 0.49 + 0.02 * delta },
            "rectangle": 0.25, "polyakov_loop": [0.03, -0.04],
            "condensate": [{
                "mass": 0.05, "mean": 0.4 + 0.1 * delta, "noise": [{ "even": [0.4, 0.0], "odd": [0.4, 0.0] }],
            }],
        })
    }

    fn file(lines: &[Value]) -> String {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn refused(text: &str) -> String {
        match parse(text.as_bytes(), "run/trajectories.jsonl").unwrap_err() {
            ReportError::Unreadable(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_are_read_and_half_a_last_one_is_left_out() {
        let mut first = line(1, 0.25);
        first["run"] = json!({ "lattice": [4, 4, 4, 8], "gauge": { "chair": 0.5 } });
        first["irreversibility"] = json!({ "links": 1e-12, "momenta": 2e-12 });
        first["identities"] = json!({ "plaquette": { "loops": 0.5, "forces": 0.75 } });
        let text = file(&[first, line(2, 1.5), line(4, 0.0)]);
        let run = parse(text.as_bytes(), "lines").unwrap();
        assert!(!run.half);
        assert_eq!(run.starts, [(1, json!({ "lattice": [4, 4, 4, 8], "gauge": { "parallelogram": 0.5 } }))]);
        assert_eq!(run.thermalisation(), 2);
        let one = &run.trajectories[0];
        assert_eq!((one.number, one.accepted, one.metropolis, one.delta), (1, true, false, 0.25));
        assert_eq!((one.plaquette, one.polyakov), (Some([0.5025, 0.51, 0.495]), Some([0.03, -0.04])));
        assert_eq!((one.irreversibility, one.whole), (Some([1e-12, 2e-12]), Some(3.0)));
        // A sum of two numbers, rounded and read again: two units of 2⁻⁵⁴.
        assert!(one.condensates.len() == 1 && one.condensates[0][0] == 0.05);
        assert!((one.condensates[0][1] - 0.425).abs() < 1.2e-16);
        assert_eq!(
            one.quarks,
            [QuarkRecord { name: 0, iterations: [40.0, 1001.0], largest: Some(17.5), smallest: None }]
        );
        assert_eq!(run.trajectories[1].irreversibility, None);
        assert_eq!((one.identities, run.trajectories[1].identities), ([Some(0.25), None], [None, None]));

        // The last line cut at any place, its end excepted: it is whole then.
        let last = file(&[line(4, 0.0)]).len();
        for cut in 2..last {
            let half = parse(&text.as_bytes()[..text.len() - cut], "lines").unwrap();
            assert_eq!((half.trajectories.len(), half.half), (2, true), "{cut}");
        }
        let whole = parse(&text.as_bytes()[..text.len() - 1], "lines").unwrap();
        assert_eq!((whole.trajectories.len(), whole.half), (3, false));
    }

    #[test]
    fn numbers_that_are_none_are_read_as_such() {
        let mut none = line(1, 0.0);
        for key in ["delta_h", "exp_minus_delta_h", "rectangle"] {
            none[key] = Value::Null;
        }
        none["plaquette"]["temporal"] = Value::Null;
        none["condensate"][0]["mean"] = Value::Null;
        let run = parse(file(&[none]).as_bytes(), "lines").unwrap();
        let one = &run.trajectories[0];
        assert!(one.delta.is_nan() && one.exp_minus_delta.is_nan() && one.rectangle.unwrap().is_nan());
        assert!(one.plaquette.unwrap()[2].is_nan() && one.plaquette.unwrap()[1] == 0.51);
        assert!(one.condensates[0][1].is_nan());
    }

    /// Lines of two chains in one file.
    #[test]
    fn joined_chains_are_refused() {
        let joined = |numbers: &[u64]| refused(&file(&numbers.iter().map(|n| line(*n, 0.0)).collect::<Vec<_>>()));
        let why = joined(&[1, 2, 4, 2, 5]);
        assert!(
            why.starts_with("run/trajectories.jsonl, line 4: trajectory 2 is there twice, first in line 2: "),
            "{why}"
        );
        let why = joined(&[1, 2, 4, 3]);
        assert!(why.contains("line 4: trajectory 3 comes after trajectory 4 of line 3: "), "{why}");
        let with = |number, beta: f64, length: f64| {
            let mut line = line(number, 0.0);
            line["run"] =
                json!({ "lattice": [4, 4, 4, 8], "gauge": { "action": "wilson", "beta": beta }, "length": length });
            line
        };
        // Another length of trajectories samples the same ensemble.
        assert_eq!(parse(file(&[with(1, 5.5, 1.0), with(2, 5.5, 0.5)]).as_bytes(), "lines").unwrap().starts.len(), 2);
        let why = refused(&file(&[line(1, 0.0), with(2, 5.5, 1.0), with(3, 5.6, 1.0)]));
        assert!(why.starts_with("run/trajectories.jsonl, line 3: gauge.beta is 5.6, and 5.5 in line 2: "), "{why}");
    }

    #[test]
    fn a_gauge_run_has_no_quarks() {
        let mut gauge = line(1, 0.0);
        gauge["quarks"] = json!([]);
        for key in ["condensate", "plaquette", "rectangle", "polyakov_loop"] {
            gauge.as_object_mut().unwrap().remove(key);
        }
        let run = parse(file(&[gauge]).as_bytes(), "lines").unwrap();
        let one = &run.trajectories[0];
        assert!(one.condensates.is_empty() && one.quarks.is_empty() && one.plaquette.is_none());
    }

    #[test]
    fn broken_lines_are_named() {
        let whole = file(&[line(1, 0.0)]);
        let text = format!("{whole}{}\n{}", &whole[..40], file(&[line(3, 0.0)]));
        let message = refused(&text);
        assert!(message.starts_with("run/trajectories.jsonl, line 2: this is not JSON at column 40,"), "{message}");
        // A line with its end is no line that is being written.
        assert!(refused(&format!("{whole}{{\n")).contains("line 2"));
        assert!(refused(&format!("{whole}\n")).contains("line 2"));
        let with = |key: &str, value: Value| {
            let mut broken = line(2, 0.0);
            broken[key] = value;
            refused(&format!("{whole}{broken}\n"))
        };
        for (key, value, why) in [
            ("schema", json!("ferrite.trajectory/2"), "schema is ferrite.trajectory/2"),
            ("trajectory", json!(1), "trajectory 1 is there twice, first in line 1: lines belong in order"),
            ("trajectory", json!(-1), "trajectory is missing or not a whole number"),
            ("accepted", json!(1), "accepted is missing or neither true nor false"),
            ("delta_h", json!("small"), "delta_h is not a number"),
            ("plaquette", json!({ "mean": 1.0 }), "plaquette: spatial is missing"),
            ("polyakov_loop", json!([1.0]), "polyakov_loop: not a pair of numbers"),
            ("condensate", json!([{ "mass": 0.1 }]), "condensate: mean is missing"),
            ("condensate", json!(0.1), "condensate is not an array"),
            (
                "quarks",
                json!([{ "name": "q", "iterations": { "action": 1 } }]),
                "quarks: iterations: dynamics is missing",
            ),
        ] {
            let message = with(key, value);
            assert!(message.starts_with("run/trajectories.jsonl, line 2: ") && message.contains(why), "{message}");
        }
        assert!(refused("[]\n").contains("there is no schema"));
    }
}
