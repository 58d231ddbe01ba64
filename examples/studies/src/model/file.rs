//! Files of machines: JSON with the schema `ferrite.machine/1`.
use super::{
    AlgebraTimes, ExchangeTimes, FormatNames, IterationCounts, Machine, OperationTimes, Polyline, TimeCurve,
    TimeCurveError, Wire,
};
use crate::records::{
    BicgstabIterations, DomainIterations, ExchangeRecord, GcrDdIterations, MachineAlgebra, MachineDirections,
    MachineIterations, MachineOperation, MachinePoint, MachineRecord,
};
use ferrite_records::{Record, read};
use serde_json::Value;

/// Reason why a text is not a valid machine file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// The text is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// A field is missing or has another type.
    #[error("{0}")]
    Type(String),
    /// A field has an invalid value.
    #[error("{place} is not {expected}")]
    Wrong {
        /// Path of the field in the file, or "the file".
        place: String,
        /// Expected value.
        expected: String,
    },
}

pub(super) fn wrong(place: impl Into<String>, expected: impl Into<String>) -> ModelFileError {
    ModelFileError::Wrong { place: place.into(), expected: expected.into() }
}

/// Returns `number` if it is at least `least`, or above `least` unless `or_equal` is true; otherwise an error.
pub(super) fn number(place: &str, number: f64, least: f64, or_equal: bool) -> Result<f64, ModelFileError> {
    match number.is_finite() && (number > least || or_equal && number == least) {
        true => Ok(number),
        false => Err(wrong(
            format!("{place} = {number}"),
            format!("a number {} {least}", if or_equal { "of at least" } else { "above" }),
        )),
    }
}

/// Returns `number` if it is at least `least` and small enough for exact sums; otherwise an error.
pub(super) fn count(place: &str, number: usize, least: usize) -> Result<usize, ModelFileError> {
    match number >= least && u32::try_from(number).is_ok() {
        true => Ok(number),
        false => Err(wrong(format!("{place} = {number}"), format!("a whole number from {least} to {}", u32::MAX))),
    }
}

/// Converts times by number of sites from microseconds to seconds.
fn seconds(points: &[MachinePoint]) -> impl Iterator<Item = (f64, f64)> {
    points.iter().map(|point| (point.sites, 1e-6 * point.microseconds))
}
fn curve(place: &str, points: &[MachinePoint]) -> Result<TimeCurve, ModelFileError> {
    TimeCurve::new(seconds(points)).map_err(|why| broken(place, points, "above 0", &why))
}
fn polyline(place: &str, points: &[MachinePoint]) -> Result<Polyline, ModelFileError> {
    Polyline::new(seconds(points)).map_err(|why| broken(place, points, "of at least 0", &why))
}
fn broken(place: &str, points: &[MachinePoint], range: &str, why: &TimeCurveError) -> ModelFileError {
    match why {
        TimeCurveError::Empty => wrong(place, "a list of at least one point"),
        TimeCurveError::Size(k) => wrong(
            format!("{place}[{k}].sites = {}", points[*k].sites),
            format!("a number {range}, different from the sites of all other points"),
        ),
        TimeCurveError::Time(k) => {
            wrong(format!("{place}[{k}].microseconds = {}", points[*k].microseconds), format!("a number {range}"))
        }
    }
}
fn lines(place: &str, all: &MachineDirections) -> Result<[Polyline; 4], ModelFileError> {
    let line = |axis: &str, points: &[MachinePoint]| polyline(&format!("{place}.{axis}"), points);
    Ok([line("x", &all.x)?, line("y", &all.y)?, line("z", &all.z)?, line("t", &all.t)?])
}

fn points(points: &[(f64, f64)]) -> Vec<MachinePoint> {
    points.iter().map(|&(sites, seconds)| MachinePoint { sites, microseconds: seconds * 1e6 }).collect()
}
fn directions(lines: &[Polyline; 4]) -> MachineDirections {
    let [x, y, z, t] = lines.each_ref().map(|line| points(line.points()));
    MachineDirections { x, y, z, t }
}

impl Machine {
    /// Returns the machine as the JSON text of a machine file.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", self.record().with_schema())
    }
    fn record(&self) -> MachineRecord {
        let operation = |o: &OperationTimes| MachineOperation {
            operator: o.name.clone(),
            precision: o.format.precision.clone(),
            reconstruct: o.format.reconstruct.clone(),
            reach: o.reach,
            hops: o.hops,
            sums: o.sums,
            zone_bytes: o.zone_bytes,
            flops: o.flops,
            alone: points(o.alone.points()),
            beside: directions(&o.beside),
            exterior: directions(&o.exterior),
        };
        let algebra = |a: &AlgebraTimes| MachineAlgebra {
            operator: a.name.clone(),
            precision: a.precision.clone(),
            alone: points(a.alone.points()),
        };
        let exchange = |e: &ExchangeTimes| ExchangeRecord {
            transport: e.transport.clone(),
            latency_microseconds: e.wire.latency * 1e6,
            gbps: e.wire.bandwidth * 1e-9,
        };
        let counts = |i: &IterationCounts| MachineIterations {
            source: i.source.clone(),
            precision: i.precision.clone(),
            bicgstab: BicgstabIterations { iterations: i.bicgstab, updates: i.updates },
            gcr_dd: GcrDdIterations {
                domains: i.gcr_dd.iter().map(|&(sites, iterations)| DomainIterations { sites, iterations }).collect(),
                restarts: i.restarts,
                steps: i.steps,
            },
            once_microseconds: Some(i.once * 1e6),
        };
        MachineRecord {
            device: self.device.clone(),
            processes: self.processes,
            operator: self.operator.clone(),
            operations: self.operations.iter().map(operation).collect(),
            algebra: self.algebra.iter().map(algebra).collect(),
            exchanges: self.exchanges.iter().map(exchange).collect(),
            sum_step_microseconds: self.sum_step * 1e6,
            iterations: self.iterations.as_ref().map(counts),
        }
    }
    /// Reads a machine from the text of a machine file.
    ///
    /// # Errors
    /// A [`ModelFileError`] that names the wrong field and the expected value.
    pub fn from_json(text: &str) -> Result<Self, ModelFileError> {
        let file: Value = serde_json::from_str(text)?;
        if !file.is_object() {
            return Err(wrong("the file", "a JSON object"));
        }
        if read::schema(&file) != Some(MachineRecord::SCHEMA) {
            let place = read::schema(&file).map_or("schema".into(), |found| format!("schema = \"{found}\""));
            return Err(wrong(place, format!("\"{}\"", MachineRecord::SCHEMA)));
        }
        let file: MachineRecord = read::read(&file).map_err(ModelFileError::Type)?;
        let operation = |(k, o): (usize, &MachineOperation)| -> Result<OperationTimes, ModelFileError> {
            let place = |key: &str| format!("operations[{k}].{key}");
            Ok(OperationTimes {
                name: o.operator.clone(),
                format: FormatNames { precision: o.precision.clone(), reconstruct: o.reconstruct.clone() },
                reach: count(&place("reach"), o.reach, 1)?,
                hops: count(&place("hops"), o.hops, 1)?,
                sums: count(&place("sums"), o.sums, 0)?,
                zone_bytes: count(&place("zone_bytes"), o.zone_bytes, 1)?,
                flops: number(&place("flops"), o.flops, 0.0, false)?,
                alone: curve(&place("alone"), &o.alone)?,
                beside: lines(&place("beside"), &o.beside)?,
                exterior: lines(&place("exterior"), &o.exterior)?,
            })
        };
        let algebra = |(k, a): (usize, &MachineAlgebra)| -> Result<AlgebraTimes, ModelFileError> {
            let alone = curve(&format!("algebra[{k}].alone"), &a.alone)?;
            Ok(AlgebraTimes { name: a.operator.clone(), precision: a.precision.clone(), alone })
        };
        let exchange = |(k, e): (usize, &ExchangeRecord)| -> Result<ExchangeTimes, ModelFileError> {
            let place = |key: &str| format!("exchanges[{k}].{key}");
            let latency = 1e-6 * number(&place("latency_microseconds"), e.latency_microseconds, 0.0, true)?;
            let bandwidth = 1e9 * number(&place("gbps"), e.gbps, 0.0, false)?;
            Ok(ExchangeTimes { transport: e.transport.clone(), wire: Wire { latency, bandwidth } })
        };
        if file.operations.is_empty() {
            return Err(wrong("operations", "a list of at least one operation"));
        }
        if file.exchanges.is_empty() {
            return Err(wrong("exchanges", "a list of at least one transport"));
        }
        Ok(Machine {
            processes: count("processes", file.processes, 1)?,
            operations: file.operations.iter().enumerate().map(operation).collect::<Result<_, _>>()?,
            algebra: file.algebra.iter().enumerate().map(algebra).collect::<Result<_, _>>()?,
            exchanges: file.exchanges.iter().enumerate().map(exchange).collect::<Result<_, _>>()?,
            sum_step: 1e-6 * number("sum_step_microseconds", file.sum_step_microseconds, 0.0, true)?,
            iterations: file.iterations.map(iterations).transpose()?,
            device: file.device,
            operator: file.operator,
        })
    }
}

fn iterations(all: MachineIterations) -> Result<IterationCounts, ModelFileError> {
    let domains = &all.gcr_dd.domains;
    let place = |key: &str| format!("iterations.{key}");
    for (k, domain) in domains.iter().enumerate() {
        let place = |key: &str| place(&format!("gcr_dd.domains[{k}].{key}"));
        number(&place("sites"), domain.sites, 0.0, false)?;
        number(&place("iterations"), domain.iterations, 0.0, false)?;
        if domains[..k].iter().any(|other| other.sites == domain.sites) {
            return Err(wrong(
                format!("{} = {}", place("sites"), domain.sites),
                "different from the sites of all other domains",
            ));
        }
    }
    Ok(IterationCounts {
        bicgstab: number(&place("bicgstab.iterations"), all.bicgstab.iterations, 0.0, false)?,
        updates: number(&place("bicgstab.updates"), all.bicgstab.updates, 0.0, true)?,
        gcr_dd: domains.iter().map(|domain| (domain.sites, domain.iterations)).collect(),
        restarts: number(&place("gcr_dd.restarts"), all.gcr_dd.restarts, 0.0, true)?,
        steps: count(&place("gcr_dd.steps"), all.gcr_dd.steps, 0)?,
        // Files of older versions do not have the field `once_microseconds`.
        once: 1e-6 * number(&place("once_microseconds"), all.once_microseconds.unwrap_or(0.0), 0.0, true)?,
        source: all.source,
        precision: all.precision,
    })
}
