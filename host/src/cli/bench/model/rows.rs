//! What is predicted, for JSON, tables and pictures.
use super::flags::Asked;
use comms::ProcessGrid;
use ferrite::bench::model::{
    Cluster, Format, Machine, Measured, Operation, Point, Prediction, SolverModel, SolverTimes, Way, predict, weak_grid,
};
use ferrite::lattice::Lattice;
use serde_json::{Value, json};

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

/// A lattice over some GPUs.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Why.
    pub scaling: Scaling,
    /// Which.
    pub lattice: [usize; 4],
    /// How.
    pub grid: ProcessGrid,
}

impl Cut {
    /// GPUs.
    pub fn gpus(&self) -> usize {
        self.grid.size()
    }
    /// Each one's part.
    pub fn local(&self) -> [usize; 4] {
        self.grid.local_extents(self.lattice)
    }
}

/// A prediction for an operation.
pub struct Row<'a> {
    /// Where.
    pub cut: Cut,
    /// Which.
    pub operation: &'a Operation,
    /// The time.
    pub time: Prediction,
    /// Over all GPUs.
    pub gflops: f64,
    /// The time on one GPU with the same part, or with the whole lattice over the number of GPUs, over this one.
    pub efficiency: f64,
}

/// A prediction for solvers.
pub struct SolverRow {
    /// Where.
    pub cut: Cut,
    /// Of the iteration.
    pub format: Format,
    /// The times.
    pub times: SolverTimes,
}

/// All of them.
pub struct Predictions<'a> {
    /// Of operations, by scaling, operation and number of GPUs.
    pub rows: Vec<Row<'a>>,
    /// Of solvers.
    pub solvers: Vec<SolverRow>,
    /// Numbers of GPUs over which the lattice of strong scaling cannot be cut.
    pub left_out: Vec<usize>,
}

impl<'a> Predictions<'a> {
    /// For the lattices of strong and weak scaling.
    pub fn new(machine: &'a Machine, [lattice, local]: [Lattice; 2], asked: &Asked) -> Self {
        let reach = machine.operations.iter().map(|operation| operation.reach).max().unwrap_or(1);
        let (mut cuts, mut left_out) = (Vec::new(), Vec::new());
        for &gpus in &asked.gpus {
            match ProcessGrid::best(gpus, lattice.size(), reach) {
                Ok(grid) => cuts.push(Cut { scaling: Scaling::Strong, lattice: lattice.size(), grid }),
                Err(_) => left_out.push(gpus),
            }
        }
        for &gpus in &asked.gpus {
            let dims = weak_grid(gpus);
            let whole = std::array::from_fn(|mu| local.size()[mu] * dims[mu]);
            let grid = ProcessGrid::new(dims).ok().filter(|grid| grid.check(whole, reach).is_ok());
            cuts.extend(grid.map(|grid| Cut { scaling: Scaling::Weak, lattice: whole, grid }));
        }
        let mut rows = Vec::new();
        for scaling in [Scaling::Strong, Scaling::Weak] {
            for operation in machine.operations.iter().filter(|operation| asked.shown.has(&operation.format)) {
                let of_scaling = cuts.iter().filter(|cut| cut.scaling == scaling);
                rows.extend(of_scaling.filter_map(|cut| row(machine, operation, *cut, &asked.cluster)));
            }
        }
        let mut formats: Vec<&Format> = Vec::new();
        for operation in machine.operations.iter().filter(|operation| asked.shown.has(&operation.format)) {
            if !formats.contains(&&operation.format) {
                formats.push(&operation.format);
            }
        }
        let mut solvers = Vec::new();
        for format in formats {
            let Some(model) = SolverModel::new(machine, format, &asked.cluster) else { continue };
            for cut in &cuts {
                let Some(mut times) = model.times(cut.lattice, &cut.grid) else { continue };
                if cut.scaling == Scaling::Weak {
                    // A larger lattice is another system, which takes other numbers of iterations.
                    times.solves = None;
                }
                solvers.push(SolverRow { cut: *cut, format: format.clone(), times });
            }
        }
        Predictions { rows, solvers, left_out }
    }
    /// For JSON.
    pub fn rows(&self) -> Vec<Value> {
        let row = |row: &Row<'_>| {
            json!({
                "scaling": row.cut.scaling.name(),
                "operator": row.operation.name,
                "precision": row.operation.format.precision,
                "reconstruct": row.operation.format.reconstruct,
                "gpus": row.cut.gpus(),
                "lattice": row.cut.lattice,
                "grid": row.cut.grid.dims(),
                "local_lattice": row.cut.local(),
                "microseconds": 1e6 * row.time.seconds,
                "alone_microseconds": 1e6 * row.time.alone,
                "exchange_microseconds": 1e6 * row.time.exchange,
                "bound": row.time.bound.name(),
                "gflops": row.gflops,
                "efficiency": row.efficiency,
            })
        };
        self.rows.iter().map(row).collect()
    }
    /// The same for solvers.
    pub fn solver_rows(&self) -> Vec<Value> {
        let row = |SolverRow { cut, format, times }: &SolverRow| {
            json!({
                "scaling": cut.scaling.name(),
                "precision": format.precision,
                "reconstruct": format.reconstruct,
                "gpus": cut.gpus(),
                "lattice": cut.lattice,
                "grid": cut.grid.dims(),
                "iteration_microseconds": 1e6 * times.iteration,
                "gflops": times.gflops,
                "bicgstab_seconds": times.solves.map(|solves| solves.bicgstab),
                "gcr_dd_seconds": times.solves.map(|solves| solves.gcr_dd),
                "gcr_dd_iterations": times.solves.map(|solves| solves.iterations),
                "gcr_dd_extrapolated": times.solves.map(|solves| solves.extrapolated),
                "bicgstab_gflops": times.solves.map(|solves| solves.gflops[0]),
                "gcr_dd_effective_gflops": times.solves.map(|solves| solves.gflops[1]),
            })
        };
        self.solvers.iter().map(row).collect()
    }
}

fn row<'a>(machine: &Machine, operation: &'a Operation, cut: Cut, cluster: &Cluster) -> Option<Row<'a>> {
    let time = predict(machine, operation, (cut.lattice, &cut.grid), cluster, Way::USUAL)?;
    let sites = cut.lattice.iter().product::<usize>() as f64;
    let one = match cut.scaling {
        Scaling::Strong => operation.alone.at(sites) / cut.gpus() as f64,
        Scaling::Weak => time.alone,
    };
    let gflops = operation.flops * sites / time.seconds * 1e-9;
    Some(Row { cut, operation, time, gflops, efficiency: one / time.seconds })
}

/// A measured time and what was predicted for it.
pub struct Compared {
    /// What was measured.
    pub point: Point,
    /// Seconds, or an efficiency.
    pub predicted: f64,
    /// The same.
    pub measured: f64,
    /// How much longer the predicted time is, over the measured one.
    pub deviation: f64,
}

impl Compared {
    /// For JSON.
    pub fn row(&self) -> Value {
        let Compared { point, predicted, measured, deviation } = self;
        let (scaling, factor) = match point.measured {
            Measured::Seconds(_) => (None, 1e6),
            Measured::WeakEfficiency(_) => (Some(Scaling::Weak), 1.0),
            Measured::StrongEfficiency(_) => (Some(Scaling::Strong), 1.0),
        };
        json!({
            "operator": point.operator,
            "precision": point.precision,
            "reconstruct": point.reconstruct,
            "lattice": point.lattice,
            "grid": point.grid.dims(),
            "transport": point.transport,
            "overlap": point.overlap,
            "scaling": scaling.map(Scaling::name),
            "predicted": factor * predicted,
            "measured": factor * measured,
            "deviation": deviation,
        })
    }
}

/// Holds points against a machine; without those of operations or transports that it does not have.
pub fn compare(machine: &Machine, points: &[Point], cluster: &Cluster) -> Vec<Compared> {
    let one = |point: &Point| {
        let (predicted, measured, deviation) = point.compare(machine, cluster)?;
        Some(Compared { point: point.clone(), predicted, measured, deviation })
    };
    points.iter().filter_map(one).collect()
}

/// The one that is furthest off.
pub fn worst(compared: &[Compared]) -> Option<&Compared> {
    compared.iter().max_by(|a, b| a.deviation.abs().total_cmp(&b.deviation.abs()))
}
