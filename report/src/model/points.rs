//! MeasuredValue times to hold predictions against.
use super::file::{JsonField, ModelFileError};
use super::{Cluster, Decomposition, FormatNames, HaloMode, LocalVolume, MOST_GPUS, Machine, SolverModel, predict};
use comms::ProcessGrid;
use serde_json::Value;

/// What the file says that it is, with its version; it may also be what `ferrite bench dslash --json` printed.
const SCHEMA: &str = "ferrite.scaling-points/1";
/// What `ferrite bench dslash` prints.
const BENCH: &str = "ferrite.bench/1";
/// The largest lattice that times of a machine could be drawn out to with any meaning: 8192⁴.
const MOST_SITES: usize = 1 << 52;

/// What was measured of an operation on a lattice that is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// `clover_dslash` …; or `bicgstab` or `gcr_dd`, of which seconds are those of a solve with the machine's
    /// [`IterationCounts`](super::IterationCounts), in the usual way.
    pub operator: String,
    /// Of fields.
    pub precision: String,
    /// Of links.
    pub reconstruct: String,
    /// The lattice, and how it was cut.
    pub cut: Decomposition,
    /// How faces travelled within a host; `None`: the usual way.
    pub transport: Option<String>,
    /// Whether the interior was computed meanwhile.
    pub overlap: bool,
    /// The number.
    pub measured: MeasuredValue,
}

/// A measured number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeasuredValue {
    /// Seconds of a call.
    Seconds(f64),
    /// The time on one GPU with the same local lattice over this one.
    WeakEfficiency(f64),
    /// The time on one GPU with the whole lattice over this one times the number of GPUs.
    StrongEfficiency(f64),
}

impl MeasuredPoint {
    /// Predicted and measured seconds, or efficiencies, and how much longer the predicted time is than the measured one:
    /// 0.1 is 10 % longer. `None` where the machine has no such operation or transport.
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
    /// Seconds of a solve.
    fn solve(&self, machine: &Machine, cluster: &Cluster) -> Option<f64> {
        let format = FormatNames { precision: self.precision.clone(), reconstruct: self.reconstruct.clone() };
        let solves = SolverModel::new(machine, &format, cluster)?.times(&self.cut)?.solves?;
        Some(if self.operator == "gcr_dd" { solves.gcr_dd } else { solves.bicgstab })
    }
}

/// The points of a file.
///
/// # Errors
/// Which field is wrong, and what it should be.
pub fn points_from_json(text: &str) -> Result<Vec<MeasuredPoint>, ModelFileError> {
    let file: Value = serde_json::from_str(text)?;
    let root = JsonField::root(&file);
    let schema = root.at("schema");
    match file["schema"].as_str() {
        Some(SCHEMA) => {
            let points = root.at("points").list()?;
            points.into_iter().map(|point| read(&point, grid(&point.at("grid"))?, PointMode::of(&point)?)).collect()
        }
        Some(BENCH) => {
            let layout = root.at("layout");
            let (grid, way, rows) = (grid(&layout.at("grid"))?, PointMode::of(&layout)?, root.at("rows").list()?);
            // Others have more right-hand sides, or no links.
            let of_one = |row: &JsonField<'_>| row.at("nrhs").count(1).is_ok_and(|n| n == 1) && row.links();
            rows.into_iter().filter(of_one).map(|row| read(&row, grid, way.clone())).collect()
        }
        _ => schema.wrong(&format!("\"{SCHEMA}\", or \"{BENCH}\" as `ferrite bench dslash --json` prints it")),
    }
}

impl JsonField<'_> {
    fn links(&self) -> bool {
        self.at("reconstruct").text().is_ok_and(|name| !name.is_empty())
    }
}

/// Four numbers whose product is no larger than `most`, of which there are so many `things` then.
fn extents(field: &JsonField<'_>, most: usize, things: &str) -> Result<[usize; 4], ModelFileError> {
    let numbers: Result<Vec<usize>, ModelFileError> = field.list()?.iter().map(|n| n.count(1)).collect();
    let numbers: [usize; 4] = numbers?.try_into().or_else(|_| field.wrong("a list of four numbers"))?;
    let product = numbers.iter().try_fold(1usize, |product, n| product.checked_mul(*n));
    match product.filter(|product| *product <= most) {
        Some(_) => Ok(numbers),
        None => field.wrong(&format!("four numbers that make at most {most} {things}")),
    }
}
fn grid(field: &JsonField<'_>) -> Result<ProcessGrid, ModelFileError> {
    ProcessGrid::new(extents(field, MOST_GPUS, "processes")?).or_else(|_| field.wrong("a grid of processes"))
}

/// How faces travelled.
#[derive(Clone)]
struct PointMode {
    transport: Option<String>,
    overlap: bool,
}

impl PointMode {
    /// As an object says it; the fastest one with overlap, where it says nothing.
    fn of(object: &JsonField<'_>) -> Result<Self, ModelFileError> {
        let transport = object.optional("transport").map(|name| name.text()).transpose()?;
        let overlap = object.optional("overlap").map_or(Ok(true), |overlap| overlap.yes_or_no())?;
        Ok(PointMode { transport, overlap })
    }
}

fn read(
    point: &JsonField<'_>,
    grid: ProcessGrid,
    PointMode { transport, overlap }: PointMode,
) -> Result<MeasuredPoint, ModelFileError> {
    let lattice = extents(&point.at("lattice"), MOST_SITES, "sites")?;
    grid.check(lattice, 1).or_else(|why| point.at("lattice").wrong(&format!("one that fits its grid: {why}")))?;
    let measured = match (point.optional("microseconds"), point.optional("efficiency")) {
        (Some(time), None) => MeasuredValue::Seconds(1e-6 * time.number(0.0, false)?),
        (None, Some(efficiency)) => {
            let efficiency = efficiency.number(0.0, false)?;
            let scaling = point.at("scaling");
            match scaling.text()?.as_str() {
                "weak" => MeasuredValue::WeakEfficiency(efficiency),
                "strong" => MeasuredValue::StrongEfficiency(efficiency),
                _ => return scaling.wrong("\"weak\" or \"strong\""),
            }
        }
        _ => return point.wrong("a point with either microseconds, or efficiency and scaling"),
    };
    Ok(MeasuredPoint {
        operator: point.at("operator").text()?,
        precision: point.at("precision").text()?,
        reconstruct: point.at("reconstruct").text()?,
        cut: Decomposition { lattice, grid },
        transport,
        overlap,
        measured,
    })
}
