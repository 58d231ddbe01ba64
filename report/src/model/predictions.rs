//! What is predicted for strong and weak scaling, and how far it is from what was measured.
use super::{
    Cluster, Decomposition, FormatNames, HaloMode, Machine, MeasuredPoint, MeasuredValue, OperationTimes, Prediction,
    SolverModel, SolverTimes, predict, weak_grid,
};
use comms::ProcessGrid;
use ferrite_records::bench::{ComparedRow, PredictedCallRow, PredictedSolverRow};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct PredictionRequest {
    /// The lattice of strong scaling.
    pub strong: [usize; 4],
    /// What each GPU has in weak scaling.
    pub weak: [usize; 4],
    /// Numbers of GPUs.
    pub gpus: Vec<usize>,
    /// Hosts and their network.
    pub cluster: Cluster,
    /// Which formats.
    pub formats: FormatFilter,
}

/// Formats to show, by name; all of the machine's, where none were asked for.
#[derive(Clone, Debug, Default)]
pub struct FormatFilter {
    /// Of fields.
    pub precisions: Option<Vec<&'static str>>,
    /// Of links.
    pub links: Option<Vec<&'static str>>,
}

impl FormatFilter {
    /// Whether this one is shown.
    pub fn has(&self, format: &FormatNames) -> bool {
        let is_in = |names: &Option<Vec<&str>>, name: &str| names.as_ref().is_none_or(|names| names.contains(&name));
        is_in(&self.precisions, &format.precision) && is_in(&self.links, &format.reconstruct)
    }
}

/// A kind of scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// One lattice for all.
    Strong,
    /// As much for each GPU, whatever their number.
    Weak,
}

impl Scaling {
    /// `strong` or `weak`.
    pub fn name(self) -> &'static str {
        match self {
            Scaling::Strong => "strong",
            Scaling::Weak => "weak",
        }
    }
}

/// A lattice over some GPUs, for a kind of scaling.
#[derive(Clone, Copy, Debug)]
pub struct ScalingCase {
    /// Why.
    pub scaling: Scaling,
    /// Which, and how it is cut.
    pub cut: Decomposition,
}

/// A prediction for an operation.
pub struct PredictedOperation<'a> {
    /// Where.
    pub case: ScalingCase,
    /// Which.
    pub operation: &'a OperationTimes,
    /// The time.
    pub time: Prediction,
    /// Over all GPUs.
    pub gflops: f64,
    /// The time on one GPU with the same part, or with the whole lattice over the number of GPUs, over this one.
    pub efficiency: f64,
}

/// A prediction for solvers.
pub struct PredictedSolver {
    /// Where.
    pub case: ScalingCase,
    /// Of the iteration.
    pub format: FormatNames,
    /// The times.
    pub times: SolverTimes,
}

/// All of them.
pub struct Predictions<'a> {
    /// Of operations, by scaling, operation and number of GPUs.
    pub operations: Vec<PredictedOperation<'a>>,
    /// Of solvers.
    pub solvers: Vec<PredictedSolver>,
    /// Numbers of GPUs over which the lattice of strong scaling cannot be cut.
    pub left_out: Vec<usize>,
}

impl<'a> Predictions<'a> {
    /// For the lattices of strong and weak scaling.
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
                    // A larger lattice is another system, which takes other numbers of iterations.
                    times.solves = None;
                }
                solvers.push(PredictedSolver { case: *case, format: format.clone(), times });
            }
        }
        Predictions { operations, solvers, left_out }
    }
    /// Returns the records of operations.
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
    /// Returns the records of solvers.
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

/// A measured time and what was predicted for it.
pub struct Comparison {
    /// What was measured.
    pub point: MeasuredPoint,
    /// Seconds, or an efficiency.
    pub predicted: f64,
    /// The same.
    pub measured: f64,
    /// How much longer the predicted time is, over the measured one.
    pub deviation: f64,
}

impl Comparison {
    /// Returns the record of the comparison.
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

/// Holds points against a machine; without those of operations or transports that it does not have.
pub fn compare(machine: &Machine, points: &[MeasuredPoint], cluster: &Cluster) -> Vec<Comparison> {
    let one = |point: &MeasuredPoint| {
        let (predicted, measured, deviation) = point.compare(machine, cluster)?;
        Some(Comparison { point: point.clone(), predicted, measured, deviation })
    };
    points.iter().filter_map(one).collect()
}

/// The one that is furthest off.
pub fn worst(compared: &[Comparison]) -> Option<&Comparison> {
    compared.iter().max_by(|a, b| a.deviation.abs().total_cmp(&b.deviation.abs()))
}
