//! Reading and checking of the lines of `trajectories.jsonl`.
use super::inputs::Difference;
use super::sampled::sampled_difference;
use crate::error::ReportError;
use crate::text::value_text;
use ferrite_records::Record;
use ferrite_records::ensemble::{RunSettings, TrajectoryLine};
use ferrite_records::read::{read as record, read_leniently, schema};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Name of the file in the folder of a run that has one line for each trajectory.
pub const FILE: &str = "trajectories.jsonl";

/// All lines of a run of `ferrite rhmc`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunHistory {
    /// Trajectories in the order of their numbers.
    pub trajectories: Vec<TrajectoryLine>,
    /// Names of the groups of quarks.
    pub names: Vec<String>,
    /// Number of the first trajectory after each start of the program, with the settings of this start.
    pub starts: Vec<(u64, Value)>,
    /// Whether the last line was left out because it is incomplete.
    pub half: bool,
}

/// Key of the checksum of a line, which is its last key.
const SEAL: &str = "crc32";

/// Returns the text of a line with the checksum as its last key, such as `"crc32":"0123abcd"`. The checksum is computed from all text
/// before this key.
pub fn sealed(line: &Value) -> String {
    let mut text = line.to_string();
    // Removes the closing brace; the object has at least one key, so a comma follows.
    text.truncate(text.len() - 1);
    let sum = crc32fast::hash(text.as_bytes());
    format!("{text},\"{SEAL}\":\"{sum:08x}\"}}")
}

/// Returns an error if the checksum of a line does not match. Lines of older versions have no checksum.
fn is_sealed(text: &[u8], line: &Value) -> Result<(), String> {
    let Some(asked) = line.get(SEAL) else { return Ok(()) };
    let end = format!(",\"{SEAL}\":{asked}}}");
    let advice = "restore it, or remove crc32 from it if the change was intended";
    let Some(before) = text.strip_suffix(end.as_bytes()) else {
        return Err(format!("{SEAL} is not the last key: the line was changed; {advice}"));
    };
    let there = format!("{:08x}", crc32fast::hash(before));
    if *asked != there {
        return Err(format!(
            "{SEAL} is {asked}, but the text before it has \"{there}\": the line was changed; {advice}"
        ));
    }
    Ok(())
}

/// Reads the lines of the run in `folder`.
///
/// # Errors
/// A sentence that names the missing file or the invalid line.
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
            "{shown}: there is no trajectory yet; try again after the first one has ended"
        )));
    }
    Ok(run)
}

/// Reads and checks the lines of a run; `what` is the name of their file.
///
/// # Errors
/// A sentence that names the invalid line, with the reason.
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
            // Each line is written together with its newline. A last line without a newline is therefore still being written, or the
            // machine stopped while it was written.
            Err(_) if !ended => run.half = true,
            Err(why) => {
                let column = why.column();
                return Err(broken(format!(
                    "this is not JSON at column {column}, but only the last line may be incomplete; restore the file \
                     or remove the line"
                )));
            }
        }
    }
}

impl RunHistory {
    fn add(&mut self, value: &Value) -> Result<(), String> {
        let own = TrajectoryLine::SCHEMA;
        match schema(value) {
            Some(schema) if schema == own => {}
            Some(other) => return Err(format!("schema is {other}, but this program reads {own}")),
            None => return Err(format!("schema is missing; it must be {own}")),
        }
        let mut line: TrajectoryLine = record(value)?;
        let this = line.trajectory;
        if let Some(last) = self.trajectories.last()
            && last.trajectory >= this
        {
            let advice = "lines must be in order, each once; report each chain from a separate folder";
            // Every line has one trajectory, so the index gives the line.
            return Err(match self.trajectories.iter().position(|one| one.trajectory == this) {
                Some(at) => format!("trajectory {this} occurs twice, first in line {}: {advice}", at + 1),
                None => {
                    let (last, line) = (last.trajectory, self.trajectories.len());
                    format!("trajectory {this} comes after trajectory {last} of line {line}: {advice}")
                }
            });
        }
        for quarks in &line.quarks {
            if !self.names.contains(&quarks.name) {
                self.names.push(quarks.name.clone());
            }
        }
        let run = line.run.take();
        self.trajectories.push(line);
        if let Some(settings) = run {
            if let Some((began, before)) = self.starts.last()
                && let Some(Difference { key, first, second }) = sampled_difference(before, &settings)
            {
                let line = self.trajectories.iter().position(|one| one.trajectory == *began).map_or(1, |at| at + 1);
                let [now, before] = [second, first].map(|value| value_text(&value));
                return Err(format!(
                    "{key} is {now}, but {before} in line {line}: these trajectories are from another ensemble; report \
                     each ensemble from a separate folder"
                ));
            }
            self.starts.push((this, settings));
        }
        Ok(())
    }
    /// Returns the settings of the last start of the program. Settings that the line of this start does not have are empty.
    pub fn settings(&self) -> RunSettings {
        self.starts.last().map(|(_, settings)| read_leniently(settings)).unwrap_or_default()
    }
    /// Returns the number of trajectories without a Metropolis step at the beginning of the run.
    pub fn thermalisation(&self) -> usize {
        self.trajectories.iter().take_while(|t| !t.metropolis).count()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ferrite_records::ensemble::{Irreversibility, LoopAndForce, LoopIdentities, QuarkIterations};
    use ferrite_records::observables::PlaquetteMeans;
    use serde_json::json;

    /// A line as `ferrite rhmc` writes it.
    pub fn line(number: u64, delta: f64) -> Value {
        json!({
            "schema": TrajectoryLine::SCHEMA, "trajectory": number, "accepted": delta < 0.5, "metropolis": number > 2,
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
        assert_eq!((one.trajectory, one.accepted, one.metropolis, one.delta_h), (1, true, false, 0.25));
        assert_eq!(one.plaquette, Some(PlaquetteMeans { mean: 0.5025, spatial: 0.51, temporal: 0.495 }));
        assert_eq!((one.polyakov_loop, one.seconds_with_observables), (Some([0.03, -0.04]), Some(3.0)));
        assert_eq!(one.irreversibility, Some(Irreversibility { links: 1e-12, momenta: 2e-12 }));
        // A sum of two numbers, rounded and read again: two units of 2⁻⁵⁴.
        assert!(one.condensate.len() == 1 && one.condensate[0].mass == 0.05);
        assert!((one.condensate[0].mean - 0.425).abs() < 1.2e-16 && one.condensate[0].residual.is_nan());
        let quarks = &one.quarks[0];
        assert_eq!(quarks.iterations, QuarkIterations { action: 40, dynamics: 1001 });
        assert_eq!((quarks.largest_eigenvalue, quarks.smallest_eigenvalue), (Some(17.5), None));
        assert_eq!(run.trajectories[1].irreversibility, None);
        let identities = LoopIdentities { plaquette: Some(LoopAndForce { loops: 0.5, forces: 0.75 }), rectangle: None };
        assert_eq!((one.identities, run.trajectories[1].identities), (Some(identities), None));

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
        assert!(one.delta_h.is_nan() && one.exp_minus_delta_h.is_nan() && one.rectangle.unwrap().is_nan());
        assert!(one.plaquette.unwrap().temporal.is_nan() && one.plaquette.unwrap().spatial == 0.51);
        assert!(one.condensate[0].mean.is_nan());
    }

    /// Lines of two chains in one file.
    #[test]
    fn joined_chains_are_refused() {
        let joined = |numbers: &[u64]| refused(&file(&numbers.iter().map(|n| line(*n, 0.0)).collect::<Vec<_>>()));
        let why = joined(&[1, 2, 4, 2, 5]);
        assert!(
            why.starts_with("run/trajectories.jsonl, line 4: trajectory 2 occurs twice, first in line 2: "),
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
        assert!(why.starts_with("run/trajectories.jsonl, line 3: gauge.beta is 5.6, but 5.5 in line 2: "), "{why}");
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
        assert!(one.condensate.is_empty() && one.quarks.is_empty() && one.plaquette.is_none());
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
            ("trajectory", json!(1), "trajectory 1 occurs twice, first in line 1: lines must be in order"),
            ("trajectory", json!(-1), "trajectory: invalid value: integer `-1`"),
            ("accepted", json!(1), "accepted: invalid type: integer `1`, expected a boolean"),
            ("delta_h", json!("small"), "delta_h: invalid type: string \"small\""),
            ("plaquette", json!({ "mean": 1.0 }), "plaquette: missing field `spatial`"),
            ("polyakov_loop", json!([1.0]), "polyakov_loop: invalid length 1"),
            ("condensate", json!([{ "mass": 0.1 }]), "condensate[0]: missing field `mean`"),
            ("condensate", json!(0.1), "condensate: invalid type: floating point `0.1`"),
            (
                "quarks",
                json!([{ "name": "q", "iterations": { "action": 1 } }]),
                "quarks[0].iterations: missing field `dynamics`",
            ),
        ] {
            let message = with(key, value);
            assert!(message.starts_with("run/trajectories.jsonl, line 2: ") && message.contains(why), "{message}");
        }
        assert!(refused("[]\n").contains("schema is missing"));
    }
}
