//! Lines of `ferrite measure`: loops, energy density and charge of configurations, the gradient flow, Wilson loops.
use super::content::Content;
use super::ensemble::{Ensemble, Member, Place, RecordLine, Stream, in_order, no_configuration};
use crate::text::{count, number as number_text, value_text};
use serde_json::Value;

/// The schema of a line of `--output`, without its version.
pub const LINE: &str = "ferrite.measurement";
/// The schema of what the command prints, without its version.
pub const PRINTED: &str = "ferrite.measure";

/// A point of the gradient flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowLine {
    /// t
    pub time: f64,
    /// E by the clover-leaf field strength.
    pub energy: f64,
    /// The topological charge.
    pub charge: f64,
}

/// Wilson loops of a separation.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopLine {
    /// R
    pub separation: [u32; 3],
    /// W(R, T) for T = 1, 2, …
    pub values: Vec<f64>,
}

/// What was measured on a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The file, as typed.
    pub file: String,
    /// The lattice.
    pub lattice: Value,
    /// Numbers of the links as they are: names, and values.
    pub numbers: Vec<(&'static str, f64)>,
    /// Along the flow; empty without one.
    pub flow: Vec<FlowLine>,
    /// Wilson loops; empty without them.
    pub loops: Vec<LoopLine>,
}

/// Names of what every line has, and where.
const NUMBERS: [(&str, &str); 8] = [
    ("plaquette", "/plaquette/mean"),
    ("spatial plaquette", "/plaquette/spatial"),
    ("temporal plaquette", "/plaquette/temporal"),
    ("rectangle", "/rectangle"),
    ("Polyakov loop, real part", "/polyakov_loop/0"),
    ("Polyakov loop, imaginary part", "/polyakov_loop/1"),
    ("energy density", ""),
    ("topological charge", "/charge"),
];

fn energy(value: &Value) -> Option<f64> {
    Some(value["energy"]["space"].as_f64()? + value["energy"]["time"].as_f64()?)
}

impl Measurement {
    /// From a line, or from a configuration of what the command prints.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn read(line: &Value) -> Result<Self, String> {
        let file = line["file"].as_str().ok_or("file is missing or not text")?.to_string();
        let number = |(name, place): &(&'static str, &str)| {
            let found = if place.is_empty() { energy(line) } else { line.pointer(place).and_then(Value::as_f64) };
            found.map(|value| (*name, value)).ok_or_else(|| format!("{name} is missing or not a number"))
        };
        let numbers = NUMBERS.iter().map(number).collect::<Result<_, String>>()?;
        let list = |key: &str| match &line[key] {
            Value::Null => Ok(&[][..]),
            Value::Array(list) => Ok(&list[..]),
            _ => Err(format!("{key} is not an array")),
        };
        let point = |value: &Value| {
            let found = || {
                Some(FlowLine { time: value["t"].as_f64()?, energy: energy(value)?, charge: value["charge"].as_f64()? })
            };
            found().ok_or_else(|| "flow: a point has no t, energy or charge".to_string())
        };
        let loops = |value: &Value| {
            let separation = serde_json::from_value(value["r"].clone());
            let values = serde_json::from_value(value["values"].clone());
            match (separation, values) {
                (Ok(separation), Ok(values)) => Ok(LoopLine { separation, values }),
                _ => Err("wilson_loops: r is not three whole numbers, or values are no numbers".to_string()),
            }
        };
        Ok(Measurement {
            file,
            lattice: line["lattice"].clone(),
            numbers,
            flow: list("flow")?.iter().map(point).collect::<Result<_, _>>()?,
            loops: list("wilson_loops")?.iter().map(loops).collect::<Result<_, _>>()?,
        })
    }
    /// A sentence on what keeps this from being averaged with another one, which stands at `place`: the lattice, the times of
    /// the flow, or the loops; `None` where both can be averaged.
    pub fn difference(&self, other: &Self, place: &Place) -> Option<String> {
        let times = |one: &Self| one.flow.iter().map(|point| point.time).collect::<Vec<_>>();
        let kinds = |one: &Self| one.loops.iter().map(|one| (one.separation, one.values.len())).collect::<Vec<_>>();
        let flow = |one: &Self| match one.flow.last() {
            Some(last) => format!("{} up to {}", count(one.flow.len(), "time"), number_text(last.time)),
            None => "none".into(),
        };
        let loops = |one: &Self| match one.loops.first() {
            Some(first) => format!("{} up to T = {}", count(one.loops.len(), "separation"), first.values.len()),
            None => "none".into(),
        };
        let lattice = |one: &Self| value_text(&one.lattice);
        let shown = |what: &str, of: &dyn Fn(&Self) -> String| {
            Some(format!("it has {what} ({}) than {place} ({}): analyse them separately", of(self), of(other)))
        };
        if self.lattice != other.lattice {
            return shown("another lattice", &lattice);
        }
        if times(self) != times(other) {
            return shown("other times of the flow", &flow);
        }
        if kinds(self) != kinds(other) { shown("other Wilson loops", &loops) } else { None }
    }
}

/// All configurations over which means are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasurementRecord {
    /// Configurations stream by stream, within a stream by the number of the trajectory.
    pub all: Vec<Measurement>,
    /// The streams.
    pub streams: Vec<Stream>,
}

/// The schema of an object without its version; empty if it has none.
pub fn kind(object: &Value) -> &str {
    let schema = object["schema"].as_str().unwrap_or_default();
    schema.split_once('/').map_or(schema, |(kind, _)| kind)
}

impl MeasurementRecord {
    /// Whether an object is one of `ferrite measure`.
    pub fn is_one(object: &Value) -> bool {
        [LINE, PRINTED].contains(&kind(object))
    }
    /// Reads lines of `--output`, or the printed result of the command.
    ///
    /// # Errors
    /// The line in which something is missing, which does not belong to the others, or whose configuration has a line
    /// already.
    pub fn of(lines: &[RecordLine]) -> Result<Self, String> {
        let (mut all, mut ensemble) = (Vec::<Measurement>::new(), Ensemble::default());
        for RecordLine { place, value: object } in lines {
            let at = |why: String| format!("{place}: {why}");
            let lines = match kind(object) {
                LINE => std::slice::from_ref(object),
                PRINTED => object["configurations"].as_array().map_or(&[][..], Vec::as_slice),
                other => return Err(at(format!("the schema is '{other}', not that of ferrite measure"))),
            };
            for line in lines {
                let found = Measurement::read(line).map_err(at)?;
                let content = Content::from_json(&line["content"]).map_err(at)?;
                if let (Some(first), Some(before)) = (ensemble.first(), all.first())
                    && let Some(why) = found.difference(before, first)
                {
                    return Err(at(why));
                }
                let name = line["absolute"].as_str().unwrap_or(&found.file).to_string();
                let (input, about) = (line["input"].clone(), Value::Null);
                ensemble.add(Member { place: place.clone(), name, content, input, about })?;
                all.push(found);
            }
        }
        if all.is_empty() {
            return Err(no_configuration(lines));
        }
        let (order, streams) = ensemble.streams();
        Ok(MeasurementRecord { all: in_order(all, &order), streams })
    }
}
