//! Lines of `ferrite trace`: tr Γ M⁻¹ / V of configurations, from each noise vector.
use super::ensemble::{Ensemble, LinePosition, Member, RecordLine, Stream, in_order, no_configuration};
use super::measurements::lines_in;
use crate::text::{count, extents, number};
use ferrite_records::measure::TraceLine;
use ferrite_records::object;
use ferrite_records::read::kind;
use serde_json::Value;

/// Schema of a line that `ferrite trace --output` writes, without its version.
pub const TRACE_LINE: &str = "ferrite.traces";
/// Schema of the result that `ferrite trace` prints, without its version.
pub const PRINTED_TRACE: &str = "ferrite.trace";

/// Returns an error if a line has no extents or no noise.
fn is_whole(line: &TraceLine) -> Result<(), String> {
    if line.system.operator.lattice.contains(&0) {
        return Err("lattice is not a list of four extents".into());
    }
    if line.traces.iter().any(|trace| trace.noise.is_empty()) {
        return Err("traces: a trace has no noise".into());
    }
    Ok(())
}

/// Returns a sentence that explains why traces cannot be averaged with `other`, which is at `place`: the lattice, the masses and
/// matrices, or the number of noise vectors differ. Returns `None` if they can be averaged.
fn difference(one: &TraceLine, other: &TraceLine, place: &LinePosition) -> Option<String> {
    let names = |one: &TraceLine| one.traces.iter().map(|t| (t.mass, t.gamma.clone())).collect::<Vec<_>>();
    let traces = |one: &TraceLine| {
        let mut masses: Vec<String> = one.traces.iter().map(|t| number(t.mass)).collect();
        masses.dedup();
        format!("{} of masses {}", count(one.traces.len(), "trace"), masses.join(", "))
    };
    let noise = |one: &TraceLine| one.traces.iter().map(|t| t.noise.len()).max().unwrap_or(0);
    let shown = |what: &str, of: &dyn Fn(&TraceLine) -> String| {
        Some(format!("it has {what} ({}) than {place} ({}): analyse them separately", of(one), of(other)))
    };
    let lattice = |one: &TraceLine| one.system.operator.lattice;
    if lattice(one) != lattice(other) {
        return shown("another lattice", &|one| extents(lattice(one)));
    }
    if names(one) != names(other) {
        return shown("other masses or matrices", &traces);
    }
    if noise(one) != noise(other) {
        return shown("another number of noise vectors", &|one| noise(one).to_string());
    }
    None
}

/// Traces of all configurations over which means are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceHistory {
    /// Traces of all configurations, stream by stream; within a stream, in order of the trajectory number.
    pub all: Vec<TraceLine>,
    /// Streams to which the configurations belong.
    pub streams: Vec<Stream>,
    /// First line that was read.
    pub first: TraceLine,
}

/// Keys of a result on which traces depend; they are compared for lines without an input.
const ABOUT: [&str; 9] = ["operator", "mass", "clover", "mu", "xi", "nu", "theta", "stout", "bc_time"];

impl TraceHistory {
    /// Returns whether a JSON object belongs to `ferrite trace`.
    pub fn is_one(object: &Value) -> bool {
        [TRACE_LINE, PRINTED_TRACE].contains(&kind(object))
    }
    /// Reads lines of `ferrite trace --output`, or the results that the command printed.
    ///
    /// # Errors
    /// A sentence that names the line that lacks a value, does not belong to the others, or repeats the configuration of an earlier line.
    pub fn of(lines: &[RecordLine]) -> Result<Self, String> {
        let (mut all, mut ensemble) = (Vec::<TraceLine>::new(), Ensemble::default());
        for RecordLine { place, value } in lines {
            let at = |why: String| format!("{place}: {why}");
            let lines: Vec<TraceLine> = lines_in(value, TRACE_LINE, PRINTED_TRACE, "trace").map_err(at)?;
            // Coefficients that depend on a measured tadpole factor may differ between configurations of one command, so they are not
            // compared.
            let about: Value = lines.first().map_or(Value::Null, |line| {
                let mut keys = object(&line.system.operator);
                keys.retain(|key, _| ABOUT.contains(&key.as_str()));
                keys.into()
            });
            for found in lines {
                is_whole(&found).map_err(at)?;
                if let (Some(first), Some(before)) = (ensemble.first(), all.first())
                    && let Some(why) = difference(&found, before, first)
                {
                    return Err(at(why));
                }
                ensemble.add(Member::of_line(place, &found, &found.file, about.clone()))?;
                all.push(found);
            }
        }
        let Some(first) = all.first().cloned() else { return Err(no_configuration(lines)) };
        let (order, streams) = ensemble.streams();
        Ok(TraceHistory { all: in_order(all, &order), streams, first })
    }
}
