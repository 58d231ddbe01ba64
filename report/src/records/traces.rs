//! Lines of `ferrite trace`: tr Γ M⁻¹ / V of configurations, from each noise vector.
use super::measurements::kind;
use super::read_lines;
use crate::error::ReportError;
use serde_json::Value;
use std::path::Path;

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
    /// Whether both have the same traces on the same lattice.
    pub fn is_like(&self, other: &Self) -> bool {
        let names = |one: &Self| one.traces.iter().map(|t| (t.mass, t.gamma.clone())).collect::<Vec<_>>();
        self.lattice == other.lattice && names(self) == names(other)
    }
}

/// All configurations of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRecord {
    /// In the order of the lines.
    pub all: Vec<TraceMeasurement>,
    /// Whether the last line is half written, and left out.
    pub half: bool,
}

impl TraceRecord {
    /// Whether an object is one of `ferrite trace`.
    pub fn is_one(object: &Value) -> bool {
        [LINE, PRINTED].contains(&kind(object))
    }
    /// From the lines of `--output`, or from what the command prints.
    ///
    /// # Errors
    /// What is missing, or does not belong together: `line N: …`.
    pub fn of(objects: &[Value], half: bool) -> Result<Self, String> {
        let mut all: Vec<TraceMeasurement> = Vec::new();
        for (number, object) in objects.iter().enumerate() {
            let at = |why: String| format!("line {}: {why}", number + 1);
            let lines = match kind(object) {
                LINE => std::slice::from_ref(object),
                PRINTED => object["configurations"].as_array().map_or(&[][..], Vec::as_slice),
                other => return Err(at(format!("the schema is '{other}', not that of ferrite trace"))),
            };
            for line in lines {
                let found = TraceMeasurement::read(line).map_err(at)?;
                if !found.is_like(all.first().unwrap_or(&found)) {
                    return Err(at(
                        "it has other masses or matrices than the first one, or is on another lattice".into()
                    ));
                }
                all.push(found);
            }
        }
        if all.is_empty() {
            return Err("there is no configuration yet".into());
        }
        Ok(TraceRecord { all, half })
    }
    /// Reads a file; `None` where its first object is not one of `ferrite trace`.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn find(path: &Path) -> Result<Option<Self>, ReportError> {
        let (objects, half) = read_lines(path)?;
        if !objects.first().is_some_and(Self::is_one) {
            return Ok(None);
        }
        let refused = |why: String| ReportError::Unreadable(format!("{}: {why}", path.display()));
        Self::of(&objects, half).map(Some).map_err(refused)
    }
}
