//! Time of a solver's iterations.
use super::predict::in_domains;
use super::{Cluster, Decomposition, FormatNames, HaloMode, LocalVolume, Machine, OperationTimes, TimeCurve, predict};

/// Operations of a solver on a machine in one format.
#[derive(Clone, Copy, Debug)]
pub struct SolverModel<'a> {
    machine: &'a Machine,
    cluster: &'a Cluster,
    precision: &'a str,
    /// Even-odd matrix; for staggered operators M†M with its sum.
    matrix: &'a OperationTimes,
    /// Even-odd matrix with sums, for Wilson and clover operators.
    with_sums: Option<&'a OperationTimes>,
    algebra: AlgebraCosts<'a>,
    /// Matrix and `axpy` in double precision, for true residuals, if the machine has them.
    precise: Option<(&'a OperationTimes, &'a TimeCurve)>,
}

/// Linear algebra of an iteration.
#[derive(Clone, Copy, Debug)]
struct AlgebraCosts<'a> {
    /// Times of a sum: of its kernel, and until the host has its value.
    norm2: [&'a TimeCurve; 2],
    /// Times of an operation that moves three fields.
    axpy: &'a TimeCurve,
    axpy_norm2: &'a TimeCurve,
    /// Times of an operation that moves five fields.
    cg_update: &'a TimeCurve,
    /// Times of an operation that moves eight fields; only for spinors.
    bicgstab_step: Option<&'a TimeCurve>,
}

/// Predicted seconds of the solvers on one lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverTimes {
    /// Seconds of an iteration of BiCGstab for Wilson and clover operators, of CG on M†M for staggered operators.
    pub iteration: f64,
    /// 10⁹ floating-point operations of the matrix per second of these iterations, of all GPUs.
    pub gflops: f64,
    /// Seconds of a solve with BiCGstab and of one with GCR-DD, for the machine's [`IterationCounts`](super::IterationCounts); `None`
    /// without these counts, in other precisions, and for staggered operators.
    pub solves: Option<Solves>,
}

/// Predicted seconds of two solves of one system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solves {
    /// Seconds with BiCGstab.
    pub bicgstab: f64,
    /// Seconds with GCR-DD, whose domains are the local lattices of the processes.
    pub gcr_dd: f64,
    /// Number of iterations of GCR-DD.
    pub iterations: f64,
    /// Whether the iterations were extrapolated to domains smaller than those for which they were counted.
    pub extrapolated: bool,
    /// 10⁹ floating-point operations of the matrix in BiCGstab per second of its solve, and per second of the solve with GCR-DD, the
    /// "effective BiCGstab performance" of Babich et al. 2011, section 9.1.
    pub gflops: [f64; 2],
}

impl<'a> SolverModel<'a> {
    /// Builds the model of a format; `None` if the machine lacks an operation. Without double precision there are times of iterations, but
    /// none of solves.
    pub fn new(machine: &'a Machine, format: &'a FormatNames, cluster: &'a Cluster) -> Option<Self> {
        let matrix = |name: &str, precision: &str| {
            machine.operation(&format!("{}_{name}", machine.operator), precision, &format.reconstruct)
        };
        let algebra = |name: &str| machine.algebra(name, &format.precision);
        Some(SolverModel {
            machine,
            cluster,
            precision: &format.precision,
            matrix: matrix("matrix", &format.precision)?,
            with_sums: matrix("matrix_sums", &format.precision),
            precise: matrix("matrix", "double").zip(machine.algebra("axpy", "double")),
            algebra: AlgebraCosts {
                norm2: [algebra("norm2_kernel")?, algebra("norm2")?],
                axpy: algebra("axpy")?,
                axpy_norm2: algebra("axpy_norm2")?,
                cg_update: algebra("cg_update")?,
                bicgstab_step: algebra("bicgstab_step"),
            },
        })
    }
    /// Predicts times for a partitioned lattice; `None` if the time of the matrix cannot be predicted.
    pub fn times(&self, cut: &Decomposition) -> Option<SolverTimes> {
        let sites = LocalVolume::new(cut, 1).sites;
        let sum = self.machine.sum(cut.gpus(), self.cluster);
        let matrix = self.applied(self.matrix, cut)?;
        let flops = self.matrix.flops * sites * cut.gpus() as f64;
        let AlgebraCosts { axpy, axpy_norm2, cg_update, .. } = self.algebra;
        let Some((step, with_sums)) = self.algebra.bicgstab_step.zip(self.with_sums) else {
            // The matrix has one of the two sums; measured times of both include the wait.
            let iteration = matrix + axpy_norm2.at(sites) + cg_update.at(sites) + sum;
            return Some(SolverTimes { iteration, gflops: flops / iteration * 1e-9, solves: None });
        };
        let wait = self.wait(sites) + sum;
        let iteration = 2.0 * self.applied(with_sums, cut)? + axpy.at(sites) + step.at(sites);
        // A true residual: the sloppy solution is added to the precise one, the matrix is applied, the residual is computed
        // and converted, and the host waits for its norm.
        let update =
            self.precise.and_then(|(matrix, axpy)| Some(self.applied(matrix, cut)? + 2.0 * axpy.at(sites) + wait));
        let counted = self.machine.iterations.as_ref().filter(|counted| counted.precision == self.precision);
        let solves = counted.zip(update).and_then(|(counted, update)| {
            let iterations = counted.gcr_dd(sites)?;
            // Number of directions to which a result of the matrix is made orthogonal, averaged over a cycle.
            let cycle = iterations / counted.restarts.max(1.0);
            let before = ((cycle - 1.0) / 2.0).max(0.0);
            // The sums stay on the device, and the host does not wait for them.
            let domains = (in_domains(with_sums, cut) - self.wait(sites)).max(0.0);
            let moved = |fields: f64| moved(axpy, step, fields, sites);
            let in_domains = moved(2.0) + counted.steps as f64 * (domains + cg_update.at(sites));
            // All products in one pass, the sum and two more products in the next, then the residual.
            let orthogonal = moved(before + 1.0) + moved(before + 3.0) + axpy.at(sites);
            let one = matrix + in_domains + orthogonal + 2.0 * wait;
            let restart = update + moved(cycle + 2.0);
            let bicgstab = counted.once + counted.bicgstab * iteration + counted.updates * update;
            let gcr_dd = counted.once + iterations * one + counted.restarts * restart;
            let gflops = [bicgstab, gcr_dd].map(|seconds| 2.0 * flops * counted.bicgstab / seconds * 1e-9);
            let extrapolated = counted.is_extrapolated(sites);
            Some(Solves { bicgstab, gcr_dd, iterations, extrapolated, gflops })
        });
        Some(SolverTimes { iteration, gflops: 2.0 * flops / iteration * 1e-9, solves })
    }
    /// Returns the seconds of one application of a matrix.
    fn applied(&self, matrix: &OperationTimes, cut: &Decomposition) -> Option<f64> {
        predict(self.machine, matrix, cut, self.cluster, HaloMode::USUAL).map(|predicted| predicted.seconds)
    }
    /// Returns the additional seconds of waiting for a sum relative to its kernel.
    fn wait(&self, sites: f64) -> f64 {
        let [kernel, waited] = self.algebra.norm2.map(|curve| curve.at(sites));
        (waited - kernel).max(0.0)
    }
}

/// Returns the seconds in which `fields` fields are read or written: on the line through three fields (`axpy`) and eight fields (updates of
/// BiCGstab).
fn moved(axpy: &TimeCurve, step: &TimeCurve, fields: f64, sites: f64) -> f64 {
    let (three, eight) = (axpy.at(sites), step.at(sites));
    let each = ((eight - three) / 5.0).max(0.0);
    (three + (fields - 3.0) * each).max(0.0)
}
