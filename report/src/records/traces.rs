//! Lines of `ferrite trace`: tr Γ M⁻¹ / V of configurations, from each noise vector.
use super::content::Content;
use super::ensemble::{Ensemble, Member, Place, RecordLine, Stream, in_order, no_configuration};
use super::measurements::kind;
use crate::text::{count, extents, number};
use serde_json::Value;

/// The schema of a line of `--output`, without its version.
pub const LINE: &str = "ferrite.traces";
/// The schema of what the command prints, without its version.
pub const PRINTED: &str = "ferrite.trace";

/// A trace on a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceLine {
    /// m
    pub mass: f64,
    /// What Γ is called.
    pub gamma: String,
    /// Real and imaginary part from each noise vector.
    pub noise: Vec<[f64; 2]>,
}

/// What was measured on a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceMeasurement {
    /// The file, as typed.
    pub file: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// All traces.
    pub traces: Vec<TraceLine>,
}

impl TraceMeasurement {
    /// From a line, or from a configuration of what the command prints.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn read(line: &Value) -> Result<Self, String> {
        let file = line["file"].as_str().ok_or("file is missing or not text")?.to_string();
        let lattice = serde_json::from_value(line["lattice"].clone()).map_err(|_| "lattice is not four extents")?;
        let one = |value: &Value| {
            let noise: Vec<[f64; 2]> = serde_json::from_value(value["noise"].clone()).ok()?;
            let (mass, gamma) = (value["mass"].as_f64()?, value["gamma"].as_str()?.to_string());
            Some(TraceLine { mass, gamma, noise }).filter(|one| !one.noise.is_empty())
        };
        let traces = line["traces"].as_array().ok_or("traces is missing or not an array")?;
        let traces: Option<Vec<TraceLine>> = traces.iter().map(one).collect();
        let traces = traces.ok_or("traces: a trace has no mass, gamma or noise")?;
        Ok(TraceMeasurement { file, lattice, traces })
    }
    /// A sentence on what keeps this from being averaged with another one, which stands at `place`: the lattice, masses and
    /// matrices, or the number of noise vectors; `None` where both can be averaged.
    pub fn difference(&self, other: &Self, place: &Place) -> Option<String> {
        let names = |one: &Self| one.traces.iter().map(|t| (t.mass, t.gamma.clone())).collect::<Vec<_>>();
        let traces = |one: &Self| {
            let mut masses: Vec<String> = one.traces.iter().map(|t| number(t.mass)).collect();
            masses.dedup();
            format!("{} of masses {}", count(one.traces.len(), "trace"), masses.join(", "))
        };
        let noise = |one: &Self| one.traces.iter().map(|t| t.noise.len()).max().unwrap_or(0);
        let shown = |what: &str, of: &dyn Fn(&Self) -> String| {
            Some(format!("it has {what} ({}) than {place} ({}): analyse them separately", of(self), of(other)))
        };
        if self.lattice != other.lattice {
            return shown("another lattice", &|one| extents(one.lattice));
        }
        if names(self) != names(other) {
            return shown("other masses or matrices", &traces);
        }
        if noise(self) != noise(other) {
            return shown("another number of noise vectors", &|one| noise(one).to_string());
        }
        None
    }
}

/// All configurations over which means are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRecord {
    /// Configurations stream by stream, within a stream by the number of the trajectory.
    pub all: Vec<TraceMeasurement>,
    /// The streams.
    pub streams: Vec<Stream>,
    /// The first line: operator and noise.
    pub first: Value,
}

/// Keys of a result on which traces depend, for lines without an input.
const ABOUT: [&str; 9] = ["operator", "mass", "clover", "mu", "xi", "nu", "theta", "stout", "bc_time"];

impl TraceRecord {
    /// Whether an object is one of `ferrite trace`.
    pub fn is_one(object: &Value) -> bool {
        [LINE, PRINTED].contains(&kind(object))
    }
    /// Reads lines of `--output`, or the printed result of the command.
    ///
    /// # Errors
    /// The line in which something is missing, which does not belong to the others, or whose configuration has a line
    /// already.
    pub fn of(lines: &[RecordLine]) -> Result<Self, String> {
        let (mut all, mut ensemble, mut described) = (Vec::<TraceMeasurement>::new(), Ensemble::default(), Value::Null);
        for RecordLine { place, value: object } in lines {
            let at = |why: String| format!("{place}: {why}");
            let lines = match kind(object) {
                LINE => std::slice::from_ref(object),
                PRINTED => object["configurations"].as_array().map_or(&[][..], Vec::as_slice),
                other => return Err(at(format!("the schema is '{other}', not that of ferrite trace"))),
            };
            // Coefficients with a tadpole factor differ between configurations of one command.
            let about: Value = lines.first().map_or(Value::Null, |line| {
                ABOUT.iter().map(|key| (key.to_string(), line[*key].clone())).collect::<serde_json::Map<_, _>>().into()
            });
            for line in lines {
                let found = TraceMeasurement::read(line).map_err(at)?;
                let content = Content::from_json(&line["content"]).map_err(at)?;
                if let (Some(first), Some(before)) = (ensemble.first(), all.first())
                    && let Some(why) = found.difference(before, first)
                {
                    return Err(at(why));
                }
                let name = line["absolute"].as_str().unwrap_or(&found.file).to_string();
                let (input, about) = (line["input"].clone(), about.clone());
                ensemble.add(Member { place: place.clone(), name, content, input, about })?;
                if described.is_null() {
                    described = line.clone();
                }
                all.push(found);
            }
        }
        if all.is_empty() {
            return Err(no_configuration(lines));
        }
        let (order, streams) = ensemble.streams();
        Ok(TraceRecord { all: in_order(all, &order), streams, first: described })
    }
}
