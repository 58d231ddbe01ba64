//! Predictions for strong and weak scaling, and their deviation from measured values.
use super::{
    Cluster, Decomposition, FormatNames, HaloMode, Machine, MeasuredPoint, MeasuredValue, OperationTimes, Prediction,
    SolverModel, SolverTimes, predict, weak_grid,
};
use crate::records::{ComparedRow, PredictedCallRow, PredictedSolverRow};
use comms::ProcessGrid;

/// Request for predictions: lattices, numbers of GPUs, cluster and formats.
#[derive(Clone, Debug)]
pub struct PredictionRequest {
    /// Extents of the whole lattice in strong scaling.
    pub strong: [usize; 4],
    /// Extents of the local lattice of each GPU in weak scaling.
    pub weak: [usize; 4],
    /// Numbers of GPUs to predict.
    pub gpus: Vec<usize>,
    /// Hosts and the network between them.
    pub cluster: Cluster,
    /// Formats to predict.
    pub formats: FormatFilter,
}

/// Filter of formats by the names of their precision and reconstruction; `None` selects all of the machine.
#[derive(Clone, Debug, Default)]
pub struct FormatFilter {
    /// Precisions of the fields to show.
    pub precisions: Option<Vec<&'static str>>,
    /// Reconstructions of the links to show.
    pub links: Option<Vec<&'static str>>,
}

impl FormatFilter {
    /// Whether the filter selects `format`.
    pub fn has(&self, format: &FormatNames) -> bool {
        let is_in = |names: &Option<Vec<&str>>, name: &str| names.as_ref().is_none_or(|names| names.contains(&name));
        is_in(&self.precisions, &format.precision) && is_in(&self.links, &format.reconstruct)
    }
}

/// Kind of scaling: strong or weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Strong scaling: the whole lattice is the same for all numbers of GPUs.
    Strong,
    /// Weak scaling: the local lattice is the same for all numbers of GPUs.
    Weak,
}

impl Scaling {
    /// Returns the name of the kind of scaling: `strong` or `weak`.
    pub fn name(self) -> &'static str {
        match self {
            Scaling::Strong => "strong",
            Scaling::Weak => "weak",
        }
    }
}

/// A lattice on a number of GPUs, in strong or weak scaling.
#[derive(Clone, Copy, Debug)]
pub struct ScalingCase {
    /// Kind of scaling.
    pub scaling: Scaling,
    /// The lattice, and the grid of processes that partitions it.
    pub cut: Decomposition,
}

/// Predicted time and speed of an operation.
pub struct PredictedOperation<'a> {
    /// Kind of scaling, lattice and grid of processes.
    pub case: ScalingCase,
    /// Operation with its measured times.
    pub operation: &'a OperationTimes,
    /// Predicted time of a call.
    pub time: Prediction,
    /// Speed of all GPUs together, in 10⁹ floating-point operations per second.
    pub gflops: f64,
    /// Parallel efficiency. In weak scaling it is the time on one GPU with the same local lattice, divided by the predicted time. In
    /// strong scaling it is the time on one GPU with the whole lattice, divided by the number of GPUs and by the predicted time.
    pub efficiency: f64,
}

/// Predicted times of the solvers in one format.
pub struct PredictedSolver {
    /// Kind of scaling, lattice and grid of processes.
    pub case: ScalingCase,
    /// Format of the iteration.
    pub format: FormatNames,
    /// Predicted times of iterations and solves.
    pub times: SolverTimes,
}

/// Predictions of all operations and solvers.
pub struct Predictions<'a> {
    /// Predictions of operations, ordered by scaling, operation and number of GPUs.
    pub operations: Vec<PredictedOperation<'a>>,
    /// Predictions of solvers for all formats and cases.
    pub solvers: Vec<PredictedSolver>,
    /// Numbers of GPUs that are left out because the lattice of strong scaling cannot be partitioned over them.
    pub left_out: Vec<usize>,
}

impl<'a> Predictions<'a> {
    /// Predicts the times of all operations and solvers for the lattices of strong and weak scaling.
    pub fn new(machine: &'a Machine, asked: &PredictionRequest) -> Self {
        let reach = machine.operations.iter().map(|operation| operation.reach).max().unwrap_or(1);
        let (mut cases, mut left_out) = (Vec::new(), Vec::new());
        for &gpus in &asked.gpus {
            match ProcessGrid::best(gpus, asked.strong, reach) {
                Ok(grid) => {
                    let cut = Decomposition { lattice: asked.strong, grid };
                    cases.push(ScalingCase { scaling: Scaling::Strong, cut });
                }
                Err(_) => left_out.push(gpus),
            }
        }
        for &gpus in &asked.gpus {
            let dims = weak_grid(gpus);
            let lattice = std::array::from_fn(|mu| asked.weak[mu] * dims[mu]);
            let grid = ProcessGrid::new(dims).ok().filter(|grid| grid.check(lattice, reach).is_ok());
            let case = |grid| ScalingCase { scaling: Scaling::Weak, cut: Decomposition { lattice, grid } };
            cases.extend(grid.map(case));
        }
        let shown = || machine.operations.iter().filter(|operation| asked.formats.has(&operation.format));
        let mut operations = Vec::new();
        for scaling in [Scaling::Strong, Scaling::Weak] {
            for operation in shown() {
                let of_scaling = cases.iter().filter(|case| case.scaling == scaling);
                operations.extend(of_scaling.filter_map(|case| predicted(machine, operation, *case, &asked.cluster)));
            }
        }
        let mut formats: Vec<&FormatNames> = Vec::new();
        for operation in shown() {
            if !formats.contains(&&operation.format) {
                formats.push(&operation.format);
            }
        }
        let mut solvers = Vec::new();
        for format in formats {
            let Some(model) = SolverModel::new(machine, format, &asked.cluster) else { continue };
            for case in &cases {
                let Some(mut times) = model.times(&case.cut) else { continue };
                if case.scaling == Scaling::Weak {
                    // A solve on a larger lattice takes a different number of iterations, which is unknown.
                    times.solves = None;
                }
                solvers.push(PredictedSolver { case: *case, format: format.clone(), times });
            }
        }
        Predictions { operations, solvers, left_out }
    }
    /// Returns the JSON records of the predictions of operations.
    pub fn operation_rows(&self) -> Vec<PredictedCallRow> {
        let row = |row: &PredictedOperation<'_>| PredictedCallRow {
            scaling: row.case.scaling.name().into(),
            operator: row.operation.name.clone(),
            precision: row.operation.format.precision.clone(),
            reconstruct: row.operation.format.reconstruct.clone(),
            gpus: row.case.cut.gpus(),
            lattice: row.case.cut.lattice,
            grid: row.case.cut.grid.dims(),
            local_lattice: row.case.cut.local(),
            microseconds: 1e6 * row.time.seconds,
            alone_microseconds: 1e6 * row.time.alone,
            exchange_microseconds: 1e6 * row.time.exchange,
            bound: row.time.bound.name().into(),
            gflops: row.gflops,
            efficiency: row.efficiency,
        };
        self.operations.iter().map(row).collect()
    }
    /// Returns the JSON records of the predictions of solvers.
    pub fn solver_rows(&self) -> Vec<PredictedSolverRow> {
        let row = |PredictedSolver { case: ScalingCase { scaling, cut }, format, times }: &PredictedSolver| {
            PredictedSolverRow {
                scaling: scaling.name().into(),
                precision: format.precision.clone(),
                reconstruct: format.reconstruct.clone(),
                gpus: cut.gpus(),
                lattice: cut.lattice,
                grid: cut.grid.dims(),
                iteration_microseconds: 1e6 * times.iteration,
                gflops: times.gflops,
                bicgstab_seconds: times.solves.map(|solves| solves.bicgstab),
                gcr_dd_seconds: times.solves.map(|solves| solves.gcr_dd),
                gcr_dd_iterations: times.solves.map(|solves| solves.iterations),
                gcr_dd_extrapolated: times.solves.map(|solves| solves.extrapolated),
                bicgstab_gflops: times.solves.map(|solves| solves.gflops[0]),
                gcr_dd_effective_gflops: times.solves.map(|solves| solves.gflops[1]),
            }
        };
        self.solvers.iter().map(row).collect()
    }
}

fn predicted<'a>(
    machine: &Machine,
    operation: &'a OperationTimes,
    case: ScalingCase,
    cluster: &Cluster,
) -> Option<PredictedOperation<'a>> {
    let time = predict(machine, operation, &case.cut, cluster, HaloMode::USUAL)?;
    let sites = case.cut.sites();
    let one = match case.scaling {
        Scaling::Strong => operation.alone.at(sites) / case.cut.gpus() as f64,
        Scaling::Weak => time.alone,
    };
    let gflops = operation.flops * sites / time.seconds * 1e-9;
    Some(PredictedOperation { case, operation, time, gflops, efficiency: one / time.seconds })
}

/// A measured value with its prediction.
pub struct Comparison {
    /// Operation and lattice that were measured, with the measured value.
    pub point: MeasuredPoint,
    /// Predicted time in seconds, or predicted efficiency.
    pub predicted: f64,
    /// Measured time in seconds, or measured efficiency.
    pub measured: f64,
    /// Relative excess of the predicted time over the measured time; 0.1 means 10 % longer.
    pub deviation: f64,
}

impl Comparison {
    /// Returns the JSON record of the comparison.
    pub fn row(&self) -> ComparedRow {
        let Comparison { point, predicted, measured, deviation } = self;
        let (scaling, factor) = match point.measured {
            MeasuredValue::Seconds(_) => (None, 1e6),
            MeasuredValue::WeakEfficiency(_) => (Some(Scaling::Weak), 1.0),
            MeasuredValue::StrongEfficiency(_) => (Some(Scaling::Strong), 1.0),
        };
        ComparedRow {
            operator: point.operator.clone(),
            precision: point.precision.clone(),
            reconstruct: point.reconstruct.clone(),
            lattice: point.cut.lattice,
            grid: point.cut.grid.dims(),
            transport: point.transport.clone(),
            overlap: point.overlap,
            scaling: scaling.map(|scaling| scaling.name().into()),
            measured: factor * measured,
            predicted: factor * predicted,
            deviation: *deviation,
        }
    }
}

/// Compares points with the predictions of a machine. Leaves out points whose operation or transport the machine lacks.
pub fn compare(machine: &Machine, points: &[MeasuredPoint], cluster: &Cluster) -> Vec<Comparison> {
    let one = |point: &MeasuredPoint| {
        let (predicted, measured, deviation) = point.compare(machine, cluster)?;
        Some(Comparison { point: point.clone(), predicted, measured, deviation })
    };
    points.iter().filter_map(one).collect()
}

/// Returns the comparison with the largest absolute deviation.
pub fn worst(compared: &[Comparison]) -> Option<&Comparison> {
    compared.iter().max_by(|a, b| a.deviation.abs().total_cmp(&b.deviation.abs()))
}
