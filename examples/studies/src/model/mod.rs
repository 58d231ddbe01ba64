//! Performance model: predicts the performance of many GPUs from measurements on one GPU and on a pair of GPUs.
//!
//! A [`Machine`] has the measurements: kernels without neighbours on one GPU at several sizes, exchanges without computation
//! beside them, costs of exterior sites, and the time of a sum. From these, [`predict()`] computes the time of an operator on
//! a lattice that is partitioned over the GPUs of a [`Cluster`], and [`SolverModel`] the time of a solver. The model is pure
//! arithmetic: the library `ferrite` measures, and [`command`] passes the numbers to the model. `docs/scaling-model.md` has
//! the formulas, and states which quantities are measured and which are assumed.
//!
//! The model follows Babich et al. 2011, sections 6 and 7: the interior is computed while faces travel, and the time of a hop
//! is that of the slower of the two.
//!
//! [`predictions`] has tables of predictions for strong and weak scaling, which [`table`] prints and [`pictures`] draws.
mod cluster;
pub mod command;
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

/// Maximum number of GPUs for which predictions are made.
pub const MOST_GPUS: usize = 65_536;

/// Measurements of one kind of GPU and of the connections between GPUs of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Description of the device.
    pub device: String,
    /// Number of processes with which the machine was measured.
    pub processes: usize,
    /// Name of the measured operator: `wilson`, `clover`, `staggered` or `asqtad`.
    pub operator: String,
    /// Operations of the operator, in each format.
    pub operations: Vec<OperationTimes>,
    /// Linear algebra on fields of the operator's kind.
    pub algebra: Vec<AlgebraTimes>,
    /// Exchanges of faces between GPUs of one host without simultaneous computation; the usual transport is the first.
    pub exchanges: Vec<ExchangeTimes>,
    /// Time of one of the ⌈log₂ N⌉ steps of a sum over the N processes of one host, in seconds (`docs/comms.md`).
    pub sum_step: f64,
    /// Numbers of iterations of solvers, if they were counted.
    pub iterations: Option<IterationCounts>,
}

/// Names of the precision and the reconstruction of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatNames {
    /// Precision of the fields: `double`, `single`, `half` or `fp16`.
    pub precision: String,
    /// Reconstruction of the links: `18`, `12` …; empty if there are no links.
    pub reconstruct: String,
}

/// An operation of one operator in one format, with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationTimes {
    /// Name of the operation as in `ferrite bench dslash`: `clover_dslash`, `clover_matrix` ….
    pub name: String,
    /// Format of the fields and links.
    pub format: FormatNames,
    /// Length of the longest hop in lattice units.
    pub reach: usize,
    /// Number of hopping terms in a call; each has an exchange.
    pub hops: usize,
    /// Number of sums over all processes that a call waits for.
    pub sums: usize,
    /// Number of bytes of a site in a message.
    pub zone_bytes: usize,
    /// Floating-point operations of a call, divided by the number of sites of the whole lattice; a call computes half of these sites.
    pub flops: f64,
    /// Time of a call in seconds, on one GPU without neighbours, as a function of the number of local sites.
    pub alone: TimeCurve,
    /// Additional time of a hop in seconds, indexed by μ, if direction μ is partitioned and its message arrives in time; a function of
    /// the number of exterior sites.
    pub beside: [Polyline; 4],
    /// Time of the exterior alone in seconds, indexed by μ, as a function of the number of exterior sites.
    pub exterior: [Polyline; 4],
}

/// An operation of linear algebra, with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgebraTimes {
    /// Name of the operation: `axpy`, `norm2` ….
    pub name: String,
    /// Precision of the fields.
    pub precision: String,
    /// Time of a call in seconds, as a function of the number of local sites.
    pub alone: TimeCurve,
}

/// Time of an exchange of faces by one transport.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeTimes {
    /// Name of the transport: `direct`, `copy`, `mpi` or `host`.
    pub transport: String,
    /// Time of an exchange, including packing, as a function of the number of bytes that a process sends to all its neighbours.
    pub wire: Wire,
}

/// Numbers of iterations and of true residuals of a solve. The model cannot predict them; they were counted for one configuration, mass
/// and tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct IterationCounts {
    /// Source of the counts, as a text.
    pub source: String,
    /// Precision of the solves whose iterations were counted.
    pub precision: String,
    /// Number of iterations of BiCGstab.
    pub bicgstab: f64,
    /// Number of reliable updates of BiCGstab.
    pub updates: f64,
    /// Numbers of iterations of GCR-DD, each with the number of sites of both parities in a domain.
    pub gcr_dd: Vec<(f64, f64)>,
    /// Number of restarts of GCR-DD.
    pub restarts: f64,
    /// Number of minimum-residual steps in a domain in each iteration.
    pub steps: usize,
    /// Time of a solve that does not depend on its iterations, in seconds: for fields, the start, and the check of the solution in double
    /// precision.
    pub once: f64,
}

impl IterationCounts {
    /// Returns the counts of the clover operator from `docs/measurements/scaling.md`, section "BiCGstab and GCR-DD".
    pub fn counted() -> Self {
        let volume = |x: usize, t: usize| (x * x * x * t) as f64;
        IterationCounts {
            source: "clover, c_sw = 1.5, m = -0.35, quenched 32x32x32x64 at beta = 6.0, tolerance 1e-10, k_max = 16 \
                     (docs/measurements/scaling.md)"
                .into(),
            precision: "half".into(),
            bicgstab: 172.0,
            updates: 11.0,
            gcr_dd: vec![(volume(16, 16), 82.0), (volume(32, 32), 48.0), (volume(32, 64), 37.0)],
            restarts: 10.0,
            steps: 10,
            // Average of the fixed costs that were measured: 4.5 ms of a solve on one GPU and 4.1 ms on two
            // (`docs/measurements/scaling-model.md`, "Solvers").
            once: 4.3e-3,
        }
    }
    /// Returns the number of iterations of GCR-DD for domains of `sites` sites, interpolated linearly in the logarithm of the size, and
    /// extrapolated below the smallest counted domain. Above the largest counted domain, which was the whole lattice, it is the number of
    /// that domain. Returns `None` without counts.
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
    /// Whether domains of `sites` sites are smaller than all domains for which iterations were counted.
    pub fn is_extrapolated(&self, sites: f64) -> bool {
        self.sorted().first().is_none_or(|(smallest, _)| sites < *smallest)
    }
    fn sorted(&self) -> Vec<(f64, f64)> {
        let mut counted = self.gcr_dd.clone();
        counted.sort_by(|a, b| a.0.total_cmp(&b.0));
        counted
    }
}

impl Machine {
    /// Returns an operation in a format, or `None` if the machine does not have it.
    pub fn operation(&self, name: &str, precision: &str, reconstruct: &str) -> Option<&OperationTimes> {
        let is = |o: &&OperationTimes| {
            o.name == name && o.format.precision == precision && o.format.reconstruct == reconstruct
        };
        self.operations.iter().find(is)
    }
    /// Returns the time of a linear-algebra operation in seconds, as a function of the number of local sites.
    pub fn algebra(&self, name: &str, precision: &str) -> Option<&TimeCurve> {
        self.algebra.iter().find(|a| a.name == name && a.precision == precision).map(|a| &a.alone)
    }
    /// Returns the times of a transport by its name, or of the usual transport if `transport` is `None`.
    pub fn exchange(&self, transport: Option<&str>) -> Option<&ExchangeTimes> {
        self.exchanges.iter().find(|exchange| transport.is_none_or(|name| exchange.transport == name))
    }
    /// Returns the time from a launch until its result is available on the host, in seconds: that of the fastest sum of one process that
    /// the host waits for.
    pub fn round_trip(&self) -> f64 {
        let norms = self.algebra.iter().filter(|a| a.name == "norm2");
        let quickest = norms.map(|a| a.alone.points()[0].1).min_by(f64::total_cmp);
        quickest.unwrap_or(0.0)
    }
    /// Returns the additional time of a sum over all processes, in seconds, relative to a sum over the sites of one process. It is the
    /// time of ⌈log₂ N⌉ consecutive messages. With several hosts, each message counts as one between hosts, as for ranks at the edge of a
    /// host.
    pub fn sum(&self, gpus: usize, cluster: &Cluster) -> f64 {
        let steps = gpus.next_power_of_two().ilog2();
        let step = if cluster.has_network(gpus) { self.sum_step.max(cluster.network.latency) } else { self.sum_step };
        f64::from(steps) * step
    }
}

#[cfg(test)]
mod tests;
