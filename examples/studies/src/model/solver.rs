//! Time of the iterations of a solver.
use super::predict::in_domains;
use super::{Cluster, Decomposition, FormatNames, HaloMode, LocalVolume, Machine, OperationTimes, TimeCurve, predict};

/// Model of the solvers on a machine in one format: the operations that they consist of.
#[derive(Clone, Copy, Debug)]
pub struct SolverModel<'a> {
    machine: &'a Machine,
    cluster: &'a Cluster,
    precision: &'a str,
    /// Even-odd matrix; M†M with its sum for staggered operators.
    matrix: &'a OperationTimes,
    /// Even-odd matrix with sums, for Wilson and clover operators.
    with_sums: Option<&'a OperationTimes>,
    algebra: AlgebraCosts<'a>,
    /// Matrix and `axpy` in double precision for true residuals; `None` if the machine does not have them.
    precise: Option<(&'a OperationTimes, &'a TimeCurve)>,
}

/// Times of the linear algebra in an iteration.
#[derive(Clone, Copy, Debug)]
struct AlgebraCosts<'a> {
    /// Times of a sum: that of its kernel, and that until the host has its value.
    norm2: [&'a TimeCurve; 2],
    /// Times of an operation that moves three fields.
    axpy: &'a TimeCurve,
    axpy_norm2: &'a TimeCurve,
    /// Times of an operation that moves five fields.
    cg_update: &'a TimeCurve,
    /// Times of an operation that moves eight fields; only for spinors.
    bicgstab_step: Option<&'a TimeCurve>,
}

/// Predicted times of the solvers on one lattice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverTimes {
    /// Time of an iteration in seconds: of BiCGstab for Wilson and clover operators, of CG on M†M for staggered operators.
    pub iteration: f64,
    /// Speed of the matrix in these iterations on all GPUs together, in 10⁹ floating-point operations per second.
    pub gflops: f64,
    /// Times of a solve with BiCGstab and of one with GCR-DD, for the machine's [`IterationCounts`](super::IterationCounts). `None`
    /// without these counts, in other precisions, and for staggered operators.
    pub solves: Option<Solves>,
}

/// Predicted times of solving one system with BiCGstab and with GCR-DD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solves {
    /// Time with BiCGstab, in seconds.
    pub bicgstab: f64,
    /// Time with GCR-DD, in seconds. Its domains are the local lattices of the processes.
    pub gcr_dd: f64,
    /// Number of iterations of GCR-DD.
    pub iterations: f64,
    /// Whether the number of iterations was extrapolated to domains smaller than the counted ones.
    pub extrapolated: bool,
    /// Speed of all GPUs in 10⁹ floating-point operations of the matrix per second: of the solve with BiCGstab, and of that with GCR-DD
    /// if it did the operations of BiCGstab. The latter is the "effective BiCGstab performance" of Babich et al. 2011, section 9.1.
    pub gflops: [f64; 2],
}

impl<'a> SolverModel<'a> {
    /// Creates the model of a format; returns `None` if the machine lacks an operation. Without times in double precision, the model
    /// predicts iterations but no solves.
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
    /// Predicts the times for a partitioned lattice; returns `None` if the time of the matrix cannot be predicted.
    pub fn times(&self, cut: &Decomposition) -> Option<SolverTimes> {
        let sites = LocalVolume::new(cut, 1).sites;
        let sum = self.machine.sum(cut.gpus(), self.cluster);
        let matrix = self.applied(self.matrix, cut)?;
        let flops = self.matrix.flops * sites * cut.gpus() as f64;
        let AlgebraCosts { axpy, axpy_norm2, cg_update, .. } = self.algebra;
        let Some((step, with_sums)) = self.algebra.bicgstab_step.zip(self.with_sums) else {
            // An iteration of CG has two sums, one in the application of the matrix and one in `axpy_norm2`. The measured times of both
            // include the wait of the host.
            let iteration = matrix + axpy_norm2.at(sites) + cg_update.at(sites) + sum;
            return Some(SolverTimes { iteration, gflops: flops / iteration * 1e-9, solves: None });
        };
        let wait = self.wait(sites) + sum;
        let iteration = 2.0 * self.applied(with_sums, cut)? + axpy.at(sites) + step.at(sites);
        // To compute a true residual, a reliable update adds the sloppy solution to the precise one, applies the matrix, and computes and
        // converts the residual; the host then waits for its norm.
        let update =
            self.precise.and_then(|(matrix, axpy)| Some(self.applied(matrix, cut)? + 2.0 * axpy.at(sites) + wait));
        let counted = self.machine.iterations.as_ref().filter(|counted| counted.precision == self.precision);
        let solves = counted.zip(update).and_then(|(counted, update)| {
            let iterations = counted.gcr_dd(sites)?;
            // `cycle` is the average number of directions between two restarts, and `before` the average number of earlier directions at an
            // iteration.
            let cycle = iterations / counted.restarts.max(1.0);
            let before = ((cycle - 1.0) / 2.0).max(0.0);
            // The host does not wait for sums in domains, because they stay on the device.
            let domains = (in_domains(with_sums, cut) - self.wait(sites)).max(0.0);
            let moved = |fields: f64| moved(axpy, step, fields, sites);
            let in_domains = moved(2.0) + counted.steps as f64 * (domains + cg_update.at(sites));
            // Orthogonalisation takes three passes: one computes the inner products with the earlier directions, one subtracts their sum
            // and computes two more inner products, and one updates the residual.
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
    /// Returns the time of one application of a matrix, in seconds.
    fn applied(&self, matrix: &OperationTimes, cut: &Decomposition) -> Option<f64> {
        predict(self.machine, matrix, cut, self.cluster, HaloMode::USUAL).map(|predicted| predicted.seconds)
    }
    /// Returns the time of waiting for a sum, in seconds, in addition to that of its kernel.
    fn wait(&self, sites: f64) -> f64 {
        let [kernel, waited] = self.algebra.norm2.map(|curve| curve.at(sites));
        (waited - kernel).max(0.0)
    }
}

/// Returns the time in seconds to read or write `fields` fields, from the line through the times for three fields (`axpy`) and eight
/// fields (updates of BiCGstab).
fn moved(axpy: &TimeCurve, step: &TimeCurve, fields: f64, sites: f64) -> f64 {
    let (three, eight) = (axpy.at(sites), step.at(sites));
    let each = ((eight - three) / 5.0).max(0.0);
    (three + (fields - 3.0) * each).max(0.0)
}
