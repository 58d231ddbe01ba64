//! A performance model: from what one GPU and one pair of GPUs do to what many would.
//!
//! A [`Machine`] has what was measured: kernels alone on one GPU at several sizes, exchanges with nothing else to do, what
//! sites near a cut cost, the time of a sum. [`predict()`] makes of that the time of an operator on a lattice that is cut
//! over the GPUs of a [`Cluster`], [`SolverModel`] that of a solver. All of it is pure arithmetic: the library `ferrite`
//! measures, and the program hands its numbers over. `docs/scaling-model.md` has the formulas and says what is measured and
//! what is assumed.
//!
//! The picture behind it is that of Babich et al. 2011, sections 6 and 7: what is inside is computed while faces travel,
//! and the time of a hop is that of the slower one.
//!
//! [`predictions`] has tables of predictions for strong and weak scaling, [`table`] prints and [`pictures`] draws them.
mod cluster;
mod curve;
mod cuts;
mod file;
pub mod pictures;
mod points;
mod predict;
pub mod predictions;
mod solver;
pub mod table;

pub use cluster::{Cluster, Decomposition, LocalVolume, weak_grid};
pub use curve::{Polyline, TimeCurve, TimeCurveError, Wire};
pub use cuts::{CutTimes, OperationCutTimes, exchange_bytes};
pub use file::ModelFileError;
pub use points::{MeasuredPoint, MeasuredValue, points_from_json};
pub use predict::{Bound, HaloMode, Prediction, predict};
pub use solver::{SolverModel, SolverTimes, Solves};

/// The most GPUs that anything is predicted for.
pub const MOST_GPUS: usize = 65_536;

/// What was measured of a kind of GPU and of what joins them in a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// For people.
    pub device: String,
    /// Processes that measured.
    pub processes: usize,
    /// `wilson`, `clover`, `staggered` or `asqtad`.
    pub operator: String,
    /// The operator's parts, in each format.
    pub operations: Vec<OperationTimes>,
    /// Linear algebra on fields of the operator's kind.
    pub algebra: Vec<AlgebraTimes>,
    /// Exchanges of faces between GPUs of one host with nothing else to do; the usual one first.
    pub exchanges: Vec<ExchangeTimes>,
    /// Seconds of one of the ⌈log₂ N⌉ steps of a sum over the N processes of one host (`docs/comms.md`).
    pub sum_step: f64,
    /// IterationCounts that solvers take, where they were counted.
    pub iterations: Option<IterationCounts>,
}

/// The names of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatNames {
    /// `double`, `single`, `half` or `fp16`.
    pub precision: String,
    /// `18`, `12` …; empty where there are no links.
    pub reconstruct: String,
}

/// An operation of one operator in one format, with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationTimes {
    /// As `ferrite bench dslash` has it: `clover_dslash`, `clover_matrix` ….
    pub name: String,
    /// In which format.
    pub format: FormatNames,
    /// Steps of the longest hop.
    pub reach: usize,
    /// Hopping terms in a call, each with an exchange.
    pub hops: usize,
    /// Sums over all processes that a call waits for.
    pub sums: usize,
    /// Bytes of a site in a message.
    pub zone_bytes: usize,
    /// Operations of a call for each site of the lattice, of which a call treats one half.
    pub flops: f64,
    /// Seconds of a call against local sites, on one GPU without neighbours.
    pub alone: TimeCurve,
    /// `[μ]`: what a hop takes longer where direction μ is cut and its message comes in time, against sites of the exterior.
    pub beside: [Polyline; 4],
    /// `[μ]`: seconds of the exterior by itself, against its sites.
    pub exterior: [Polyline; 4],
}

/// An operation of linear algebra, with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgebraTimes {
    /// `axpy`, `norm2` ….
    pub name: String,
    /// Of the fields.
    pub precision: String,
    /// Seconds of a call against local sites.
    pub alone: TimeCurve,
}

/// A way for faces to travel, with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeTimes {
    /// `direct`, `copy`, `mpi` or `host`.
    pub transport: String,
    /// Seconds of an exchange, packing included, against the bytes that a process sends to all its neighbours.
    pub wire: Wire,
}

/// IterationCounts of a solve, and how often the true residual was computed. They do not follow from anything here: they belong
/// to a configuration, a mass and a tolerance, and were counted.
#[derive(Clone, Debug, PartialEq)]
pub struct IterationCounts {
    /// Where they were counted.
    pub source: String,
    /// In which precision.
    pub precision: String,
    /// Of BiCGstab.
    pub bicgstab: f64,
    /// Its reliable updates.
    pub updates: f64,
    /// Of GCR-DD by the sites of a domain, all sites counted.
    pub gcr_dd: Vec<(f64, f64)>,
    /// Its restarts.
    pub restarts: f64,
    /// Steps of minimum residual in a domain, in each iteration.
    pub steps: usize,
    /// Seconds that a solve takes whatever its iterations are: fields, the start, the check of its answer in double.
    pub once: f64,
}

impl IterationCounts {
    /// Of the clover operator, as `docs/measurements/scaling.md` has them under "BiCGstab and GCR-DD".
    pub fn counted() -> Self {
        let volume = |x: usize, t: usize| (x * x * x * t) as f64;
        IterationCounts {
            source: "clover, c_sw 1.5, m -0.35, quenched 32x32x32x64, beta 6.0, to 1e-10, k_max 16 (scaling.md)".into(),
            precision: "half".into(),
            bicgstab: 172.0,
            updates: 11.0,
            gcr_dd: vec![(volume(16, 16), 82.0), (volume(32, 32), 48.0), (volume(32, 64), 37.0)],
            restarts: 10.0,
            steps: 10,
            // 4.5 on one GPU, 4.1 on two: `docs/measurements/scaling-model.md`, "Solvers".
            once: 4.3e-3,
        }
    }
    /// Of GCR-DD with domains of so many sites: straight lines against the logarithm, also below the smallest counted
    /// domain. Above the largest, its number: that domain had all sites there were. `None` without a count.
    pub fn gcr_dd(&self, sites: f64) -> Option<f64> {
        let counted = self.sorted();
        let (last, n) = *counted.last()?;
        if sites >= last || counted.len() == 1 {
            return Some(n);
        }
        let after = counted.partition_point(|(there, _)| *there < sites).max(1);
        let ((a, at_a), (b, at_b)) = (counted[after - 1], counted[after]);
        Some((at_a + (at_b - at_a) * (sites / a).ln() / (b / a).ln()).max(1.0))
    }
    /// Whether domains of so many sites are smaller than any for which iterations were counted.
    pub fn is_beyond(&self, sites: f64) -> bool {
        self.sorted().first().is_none_or(|(smallest, _)| sites < *smallest)
    }
    fn sorted(&self) -> Vec<(f64, f64)> {
        let mut counted = self.gcr_dd.clone();
        counted.sort_by(|a, b| a.0.total_cmp(&b.0));
        counted
    }
}

impl Machine {
    /// An operation in a format.
    pub fn operation(&self, name: &str, precision: &str, reconstruct: &str) -> Option<&OperationTimes> {
        let is = |o: &&OperationTimes| {
            o.name == name && o.format.precision == precision && o.format.reconstruct == reconstruct
        };
        self.operations.iter().find(is)
    }
    /// Seconds of linear algebra against local sites.
    pub fn algebra(&self, name: &str, precision: &str) -> Option<&TimeCurve> {
        self.algebra.iter().find(|a| a.name == name && a.precision == precision).map(|a| &a.alone)
    }
    /// The way for faces of this name; the usual one without.
    pub fn exchange(&self, transport: Option<&str>) -> Option<&ExchangeTimes> {
        self.exchanges.iter().find(|exchange| transport.is_none_or(|name| exchange.transport == name))
    }
    /// Seconds from a launch until the host has seen what came of it: the quickest waited-for sum of one process.
    pub fn round_trip(&self) -> f64 {
        let norms = self.algebra.iter().filter(|a| a.name == "norm2");
        let quickest = norms.map(|a| a.alone.points()[0].1).min_by(f64::total_cmp);
        quickest.unwrap_or(0.0)
    }
    /// Seconds that a sum over all processes takes longer than one over the sites of one: ⌈log₂ N⌉ messages one after the
    /// other. With several hosts each of them counts as one between hosts, as it is for ranks at the edge of a host.
    pub fn sum(&self, gpus: usize, cluster: &Cluster) -> f64 {
        let steps = gpus.next_power_of_two().ilog2();
        let step = if cluster.has_network(gpus) { self.sum_step.max(cluster.network.latency) } else { self.sum_step };
        f64::from(steps) * step
    }
}

#[cfg(test)]
mod tests;
