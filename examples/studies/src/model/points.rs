//! Measured values with which predictions are compared.
use super::file::{ModelFileError, count, number, wrong};
use super::{Cluster, Decomposition, FormatNames, HaloMode, LocalVolume, MOST_GPUS, Machine, SolverModel, predict};
use crate::records::ScalingPoints;
use comms::ProcessGrid;
use ferrite_records::bench::{BenchRecord, ScalingPoint, TimedCall};
use ferrite_records::{Record, read};
use serde_json::Value;

/// Maximum number of sites of a lattice to which times can be extrapolated reasonably: 8192⁴.
const MOST_SITES: usize = 1 << 52;

/// Measured value of an operation or a solve on a partitioned lattice.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// Name of the operation, such as `clover_dslash`; or `bicgstab` or `gcr_dd` for a solve, whose time is that with the machine's
    /// [`IterationCounts`](super::IterationCounts) and the usual transport.
    pub operator: String,
    /// Precision of the fields.
    pub precision: String,
    /// Reconstruction of the links.
    pub reconstruct: String,
    /// The lattice, and the grid of processes that partitions it.
    pub cut: Decomposition,
    /// Transport of faces within a host; `None` for the usual one.
    pub transport: Option<String>,
    /// Whether the interior was computed while faces travelled.
    pub overlap: bool,
    /// Measured time in seconds, or efficiency.
    pub measured: MeasuredValue,
}

/// Measured value of a point: a time or an efficiency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeasuredValue {
    /// Time of a call, in seconds.
    Seconds(f64),
    /// Time on one GPU with the same local lattice, divided by the measured time.
    WeakEfficiency(f64),
    /// Time on one GPU with the whole lattice, divided by the product of the measured time and the number of GPUs.
    StrongEfficiency(f64),
}

impl MeasuredPoint {
    /// Returns the predicted and the measured time in seconds, or efficiencies, and the relative excess of the predicted time over the
    /// measured time (0.1 means 10 % longer). Returns `None` if the machine lacks the operation or transport.
    pub fn compare(&self, machine: &Machine, cluster: &Cluster) -> Option<(f64, f64, f64)> {
        if let ("bicgstab" | "gcr_dd", MeasuredValue::Seconds(measured)) = (self.operator.as_str(), self.measured) {
            let predicted = self.solve(machine, cluster)?;
            return Some((predicted, measured, predicted / measured - 1.0));
        }
        let operation = machine.operation(&self.operator, &self.precision, &self.reconstruct)?;
        let mode = HaloMode { transport: self.transport.as_deref(), overlap: self.overlap };
        let predicted = predict(machine, operation, &self.cut, cluster, mode)?;
        let whole = LocalVolume::new(&Decomposition::single(self.cut.lattice), operation.reach).sites;
        let (predicted, measured, slower) = match self.measured {
            MeasuredValue::Seconds(measured) => (predicted.seconds, measured, predicted.seconds / measured),
            MeasuredValue::WeakEfficiency(measured) => {
                let efficiency = predicted.alone / predicted.seconds;
                (efficiency, measured, measured / efficiency)
            }
            MeasuredValue::StrongEfficiency(measured) => {
                let efficiency = operation.alone.at(whole) / (predicted.seconds * self.cut.gpus() as f64);
                (efficiency, measured, measured / efficiency)
            }
        };
        Some((predicted, measured, slower - 1.0))
    }
    /// Returns the predicted time of a solve, in seconds.
    fn solve(&self, machine: &Machine, cluster: &Cluster) -> Option<f64> {
        let format = FormatNames { precision: self.precision.clone(), reconstruct: self.reconstruct.clone() };
        let solves = SolverModel::new(machine, &format, cluster)?.times(&self.cut)?.solves?;
        Some(if self.operator == "gcr_dd" { solves.gcr_dd } else { solves.bicgstab })
    }
}

/// Reads the points from a file of points, or from the output of `ferrite bench dslash --json`.
///
/// # Errors
/// A [`ModelFileError`] that names the wrong field and the expected value.
pub fn points_from_json(text: &str) -> Result<Vec<MeasuredPoint>, ModelFileError> {
    let file: Value = serde_json::from_str(text)?;
    match read::schema(&file) {
        Some(ScalingPoints::SCHEMA) => {
            let file: ScalingPoints = read::read(&file).map_err(ModelFileError::Type)?;
            let point = |(k, point): (usize, &ScalingPoint)| {
                let place = format!("points[{k}]");
                let cut = grid(&format!("{place}.grid"), point.grid.unwrap_or_default())?;
                measured(&place, point, cut)
            };
            file.points.iter().enumerate().map(point).collect()
        }
        Some(BenchRecord::SCHEMA) => {
            let file: BenchRecord = read::read(&file).map_err(ModelFileError::Type)?;
            let layout = &file.place.layout;
            let cut = grid("layout.grid", layout.grid)?;
            let point = |(k, row): (usize, &TimedCall)| {
                let point = ScalingPoint {
                    operator: row.operator.clone(),
                    precision: row.precision.clone(),
                    reconstruct: row.reconstruct.clone(),
                    lattice: Some(row.lattice),
                    microseconds: Some(row.microseconds),
                    transport: layout.transport.clone(),
                    overlap: layout.overlap,
                    ..ScalingPoint::default()
                };
                measured(&format!("rows[{k}]"), &point, cut)
            };
            // The other rows have several right-hand sides, or are operations without links.
            let of_one = |(_, row): &(usize, &TimedCall)| row.nrhs == 1 && !row.reconstruct.is_empty();
            file.rows.iter().enumerate().filter(of_one).map(point).collect()
        }
        _ => {
            let (points, bench) = (ScalingPoints::SCHEMA, BenchRecord::SCHEMA);
            let place = read::schema(&file).map_or("schema".into(), |found| format!("schema = \"{found}\""));
            Err(wrong(place, format!("\"{points}\" or \"{bench}\", which `ferrite bench dslash --json` prints")))
        }
    }
}

/// Returns four extents if their product, the number of `things`, is at most `most`; otherwise an error.
fn extents(place: &str, numbers: [usize; 4], most: usize, things: &str) -> Result<[usize; 4], ModelFileError> {
    for (k, n) in numbers.into_iter().enumerate() {
        count(&format!("{place}[{k}]"), n, 1)?;
    }
    let product = numbers.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
    match product.filter(|product| *product <= most) {
        Some(_) => Ok(numbers),
        None => Err(wrong(
            format!("{place} = {numbers:?}"),
            format!("a list of four numbers whose product, the number of {things}, is at most {most}"),
        )),
    }
}
fn grid(place: &str, numbers: [usize; 4]) -> Result<ProcessGrid, ModelFileError> {
    ProcessGrid::new(extents(place, numbers, MOST_GPUS, "processes")?).map_err(|_| wrong(place, "a grid of processes"))
}

/// Reads a point. By default it was measured with the fastest transport and with overlap.
fn measured(place: &str, point: &ScalingPoint, grid: ProcessGrid) -> Result<MeasuredPoint, ModelFileError> {
    let at = |key: &str| format!("{place}.{key}");
    let lattice = extents(&at("lattice"), point.lattice.unwrap_or_default(), MOST_SITES, "sites")?;
    grid.check(lattice, 1)
        .map_err(|why| wrong(at("lattice"), format!("a lattice that fits the process grid {grid}: {why}")))?;
    let measured = match (point.microseconds, point.efficiency) {
        (Some(time), None) => MeasuredValue::Seconds(1e-6 * number(&at("microseconds"), time, 0.0, false)?),
        (None, Some(efficiency)) => {
            let efficiency = number(&at("efficiency"), efficiency, 0.0, false)?;
            match point.scaling.as_deref() {
                Some("weak") => MeasuredValue::WeakEfficiency(efficiency),
                Some("strong") => MeasuredValue::StrongEfficiency(efficiency),
                _ => return Err(wrong(at("scaling"), "\"weak\" or \"strong\"")),
            }
        }
        _ => return Err(wrong(place, "a point with either microseconds, or efficiency and scaling")),
    };
    let text = |key: &str, text: &str| match text {
        "" => Err(wrong(at(key), "a text")),
        text => Ok(text.to_string()),
    };
    Ok(MeasuredPoint {
        operator: text("operator", &point.operator)?,
        precision: text("precision", &point.precision)?,
        reconstruct: text("reconstruct", &point.reconstruct)?,
        cut: Decomposition { lattice, grid },
        transport: point.transport.clone(),
        overlap: point.overlap.unwrap_or(true),
        measured,
    })
}
