//! The time of a solver's iterations.
use super::predict::in_domains;
use super::{Cluster, Curve, Format, Machine, Operation, Part, Way, predict};
use comms::ProcessGrid;

/// What a solver is made of on a machine, in one format.
#[derive(Clone, Copy, Debug)]
pub struct SolverModel<'a> {
    machine: &'a Machine,
    cluster: &'a Cluster,
    precision: &'a str,
    /// The even-odd matrix as one or two operations.
    matrix: [Option<&'a Operation>; 2],
    /// The same in double, for true residuals.
    precise: [Option<&'a Operation>; 2],
    algebra: Costs<'a>,
    precise_axpy: &'a Curve,
}

/// Linear algebra of an iteration.
#[derive(Clone, Copy, Debug)]
struct Costs<'a> {
    /// A sum, as a kernel and waited for.
    norm2: [&'a Curve; 2],
    /// Three fields moved.
    axpy: &'a Curve,
    axpy_norm2: &'a Curve,
    /// Five fields moved.
    cg_update: &'a Curve,
    /// Eight fields moved; for spinors only.
    bicgstab_step: Option<&'a Curve>,
}

/// What is predicted of the solvers on one lattice. Seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverTimes {
    /// An iteration of BiCGstab for Wilson and clover operators, of CG on M†M for staggered ones.
    pub iteration: f64,
    /// 10⁹ operations of the matrix per second of these iterations, of all GPUs.
    pub gflops: f64,
    /// A solve with BiCGstab and one with GCR-DD, for the machine's [`Iterations`](super::Iterations); `None` without them,
    /// in other precisions than theirs, and for staggered operators.
    pub solves: Option<Solves>,
}

/// Two solves of one system. Seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solves {
    /// With BiCGstab.
    pub bicgstab: f64,
    /// With GCR-DD, whose domains are the parts of the processes.
    pub gcr_dd: f64,
    /// Iterations of GCR-DD.
    pub iterations: f64,
    /// 10⁹ operations of the matrix in BiCGstab, per second of its solve and of that with GCR-DD: the "effective BiCGstab
    /// performance" of Babich et al. 2011, section 9.1.
    pub gflops: [f64; 2],
}

impl<'a> SolverModel<'a> {
    /// In a format; `None` where the machine lacks something, such as double precision.
    pub fn new(machine: &'a Machine, format: &'a Format, cluster: &'a Cluster) -> Option<Self> {
        let matrix = |precision: &str| -> Option<[Option<&'a Operation>; 2]> {
            let operation =
                |name: &str| machine.operation(&format!("{}_{name}", machine.operator), precision, &format.reconstruct);
            match operation("matrix") {
                Some(matrix) => Some([Some(matrix), None]),
                None => Some([Some(operation("dslash")?), Some(operation("dslash_add")?)]),
            }
        };
        let algebra = |name: &str| machine.algebra(name, &format.precision);
        Some(SolverModel {
            machine,
            cluster,
            precision: &format.precision,
            matrix: matrix(&format.precision)?,
            precise: matrix("double")?,
            algebra: Costs {
                norm2: [algebra("norm2_kernel")?, algebra("norm2")?],
                axpy: algebra("axpy")?,
                axpy_norm2: algebra("axpy_norm2")?,
                cg_update: algebra("cg_update")?,
                bicgstab_step: algebra("bicgstab_step"),
            },
            precise_axpy: machine.algebra("axpy", "double")?,
        })
    }
    /// What is predicted for a lattice that is cut; `None` where that cannot be said of a matrix of it.
    pub fn times(&self, lattice: [usize; 4], grid: &ProcessGrid) -> Option<SolverTimes> {
        let sites = Part::new(lattice, grid, 1).sites;
        let sum = self.machine.sum(grid.size(), self.cluster);
        let matrix = self.applied(&self.matrix, lattice, grid)?;
        let flops: f64 = self.matrix.iter().flatten().map(|o| o.flops).sum::<f64>() * sites * grid.size() as f64;
        let Costs { axpy, axpy_norm2, cg_update, .. } = self.algebra;
        let Some(step) = self.algebra.bicgstab_step else {
            // The matrix has one of the two sums; both are waited for where they are measured.
            let iteration = matrix + axpy_norm2.at(sites) + cg_update.at(sites) + sum;
            return Some(SolverTimes { iteration, gflops: flops / iteration * 1e-9, solves: None });
        };
        let wait = self.wait(sites) + sum;
        let iteration = 2.0 * (matrix + wait) + axpy.at(sites) + step.at(sites);
        // A true residual: the sloppy solution is added to the precise one, the matrix applied, the residual made and
        // converted, and its norm waited for.
        let update = self.applied(&self.precise, lattice, grid)? + 2.0 * self.precise_axpy.at(sites) + wait;
        let counted = self.machine.iterations.as_ref().filter(|counted| counted.precision == self.precision);
        let solves = counted.and_then(|counted| {
            let iterations = counted.gcr_dd(sites)?;
            // Directions that an image is made orthogonal to, on average over a cycle.
            let cycle = iterations / counted.restarts.max(1.0);
            let before = ((cycle - 1.0) / 2.0).max(0.0);
            let domains: f64 =
                self.matrix.iter().flatten().map(|operation| in_domains(operation, lattice, grid)).sum();
            let moved = |fields: f64| moved(axpy, step, fields, sites);
            let in_domains = moved(2.0) + counted.steps as f64 * (domains + cg_update.at(sites));
            // All products in one pass, the sum and two more products in the next, then the residual.
            let orthogonal = moved(before + 1.0) + moved(before + 3.0) + axpy.at(sites);
            let one = matrix + in_domains + orthogonal + 2.0 * wait;
            let restart = update + moved(cycle + 2.0);
            let bicgstab = counted.bicgstab * iteration + counted.updates * update;
            let gcr_dd = iterations * one + counted.restarts * restart;
            let gflops = [bicgstab, gcr_dd].map(|seconds| 2.0 * flops * counted.bicgstab / seconds * 1e-9);
            Some(Solves { bicgstab, gcr_dd, iterations, gflops })
        });
        Some(SolverTimes { iteration, gflops: 2.0 * flops / iteration * 1e-9, solves })
    }
    /// One application of the matrix.
    fn applied(&self, matrix: &[Option<&Operation>; 2], lattice: [usize; 4], grid: &ProcessGrid) -> Option<f64> {
        let parts = matrix.iter().flatten();
        parts.map(|o| predict(self.machine, o, (lattice, grid), self.cluster, Way::USUAL).map(|p| p.seconds)).sum()
    }
    /// What waiting for a sum takes longer than its kernel.
    fn wait(&self, sites: f64) -> f64 {
        let [kernel, waited] = self.algebra.norm2.map(|curve| curve.at(sites));
        (waited - kernel).max(0.0)
    }
}

/// Seconds in which so many fields are read or written: on the line through three (`axpy`) and eight (BiCGstab's updates).
fn moved(axpy: &Curve, step: &Curve, fields: f64, sites: f64) -> f64 {
    let (three, eight) = (axpy.at(sites), step.at(sites));
    let each = ((eight - three) / 5.0).max(0.0);
    (three + (fields - 3.0) * each).max(0.0)
}
