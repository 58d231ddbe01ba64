//! Lines of `ferrite measure`: loops, energy density and charge of configurations, the gradient flow, Wilson loops.
use super::ensemble::{Ensemble, LinePosition, Member, RecordLine, Stream, in_order, no_configuration};
use crate::text::{count, number as number_text};
use ferrite_records::measure::MeasurementLine;
use ferrite_records::read::{kind, read};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Schema of a line that `ferrite measure --output` writes, without its version.
pub const MEASUREMENT_LINE: &str = "ferrite.measurement";
/// Schema of the result that `ferrite measure` prints, without its version.
pub const PRINTED_MEASUREMENT: &str = "ferrite.measure";

/// Names of the eight observables that are measured on the links before any flow.
pub const NUMBERS: [&str; 8] = [
    "plaquette",
    "spatial plaquette",
    "temporal plaquette",
    "rectangle",
    "Polyakov loop, real part",
    "Polyakov loop, imaginary part",
    "energy density",
    "topological charge",
];

/// Returns the values of the observables in [`NUMBERS`], in this order.
pub fn numbers(line: &MeasurementLine) -> [f64; 8] {
    let (loops, field_strength) = (&line.loops, &line.field_strength);
    let (plaquette, [re, im]) = (loops.plaquette, loops.polyakov_loop);
    [
        plaquette.mean,
        plaquette.spatial,
        plaquette.temporal,
        loops.rectangle,
        re,
        im,
        field_strength.energy.sum(),
        field_strength.charge,
    ]
}

/// Returns an error if a number of a measurement is not finite.
fn is_finite(line: &MeasurementLine) -> Result<(), String> {
    let missing = NUMBERS.iter().zip(numbers(line)).find(|(_, value)| !value.is_finite());
    match missing {
        Some((name, _)) => Err(format!("{name} is missing or not a number")),
        None if line.flow.iter().any(|point| !(point.energy.sum() + point.charge).is_finite()) => {
            Err("flow: a point has no energy or charge".into())
        }
        None => Ok(()),
    }
}

/// Returns a sentence that explains why a measurement cannot be averaged with `other`, which is at `place`: the lattice, the flow times,
/// or the loops differ. Returns `None` if they can be averaged.
fn difference(one: &MeasurementLine, other: &MeasurementLine, place: &LinePosition) -> Option<String> {
    let times = |one: &MeasurementLine| one.flow.iter().map(|point| point.t).collect::<Vec<_>>();
    let kinds =
        |one: &MeasurementLine| one.wilson_loops.iter().map(|one| (one.r, one.values.len())).collect::<Vec<_>>();
    let flow = |one: &MeasurementLine| match one.flow.last() {
        Some(last) => format!("{} up to {}", count(one.flow.len(), "time"), number_text(last.t)),
        None => "none".into(),
    };
    let loops = |one: &MeasurementLine| match one.wilson_loops.first() {
        Some(first) => format!("{} up to T = {}", count(one.wilson_loops.len(), "separation"), first.values.len()),
        None => "none".into(),
    };
    let shown = |what: &str, of: &dyn Fn(&MeasurementLine) -> String| {
        Some(format!("it has {what} ({}) than {place} ({}): analyse them separately", of(one), of(other)))
    };
    if one.lattice != other.lattice {
        return shown("another lattice", &|one| one.lattice.map(|extent| extent.to_string()).join(","));
    }
    if times(one) != times(other) {
        return shown("other times of the flow", &flow);
    }
    if kinds(one) != kinds(other) { shown("other Wilson loops", &loops) } else { None }
}

/// Measurements of all configurations over which means are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasurementRecord {
    /// Measurements of all configurations, stream by stream; within a stream, in order of the trajectory number.
    pub all: Vec<MeasurementLine>,
    /// Streams to which the configurations belong.
    pub streams: Vec<Stream>,
}

/// Configurations in the printed result of a command.
#[derive(Deserialize)]
struct PrintedLines<L> {
    #[serde(default = "Vec::new")]
    configurations: Vec<L>,
}

/// Returns the lines in a JSON object: the object itself if it is a line, or the configurations of a printed result.
pub(super) fn lines_in<L: DeserializeOwned>(
    object: &Value,
    line: &str,
    printed: &str,
    command: &str,
) -> Result<Vec<L>, String> {
    match kind(object) {
        found if found == line => Ok(vec![read(object)?]),
        found if found == printed => Ok(read::<PrintedLines<L>>(object)?.configurations),
        "" => Err(format!("the line has no schema, but that of ferrite {command} is expected")),
        other => Err(format!("the schema is '{other}' instead of that of ferrite {command}")),
    }
}

impl MeasurementRecord {
    /// Returns whether a JSON object belongs to `ferrite measure`.
    pub fn is_one(object: &Value) -> bool {
        [MEASUREMENT_LINE, PRINTED_MEASUREMENT].contains(&kind(object))
    }
    /// Reads lines of `ferrite measure --output`, or the results that the command printed.
    ///
    /// # Errors
    /// A sentence that names the line that lacks a value, does not belong to the others, or repeats the configuration of an earlier line.
    pub fn of(lines: &[RecordLine]) -> Result<Self, String> {
        let (mut all, mut ensemble) = (Vec::<MeasurementLine>::new(), Ensemble::default());
        for RecordLine { place, value: object } in lines {
            let at = |why: String| format!("{place}: {why}");
            for found in
                lines_in::<MeasurementLine>(object, MEASUREMENT_LINE, PRINTED_MEASUREMENT, "measure").map_err(at)?
            {
                is_finite(&found).map_err(at)?;
                if let (Some(first), Some(before)) = (ensemble.first(), all.first())
                    && let Some(why) = difference(&found, before, first)
                {
                    return Err(at(why));
                }
                ensemble.add(Member::of_line(place, &found, &found.file, Value::Null))?;
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
