//! Command `ferrite bench` with its benchmarks.
mod accuracy;
mod halo;
mod kernels;
mod model;
mod rhmc;
mod solver;

pub(super) use kernels::{check_nrhs, lattice_or_default, memory, names, operators};

pub use kernels::timed_operators;

use super::{Context, Outcome};
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  ferrite bench dslash --lattice 32,32,32,32
  ferrite bench blas --precision double
  ferrite bench copy --backend cpu
  mpirun -n 2 ferrite bench halo --trace timeline.json
  mpirun -n 2 ferrite bench model --save machine.json
  ferrite bench accuracy --plot accuracy.svg
  ferrite bench solver --paper 001
  ferrite bench rhmc --paper 003 --out settings";

/// Arguments of `bench`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArguments {
    #[command(subcommand)]
    what: BenchCommand,
}

/// Benchmarks.
#[derive(Subcommand)]
enum BenchCommand {
    /// Time an operator and its hopping term, alone and as a x + b D psi
    Dslash(kernels::Dslash),
    /// Time the linear algebra of the solvers
    Blas(kernels::KernelFlags),
    /// Time a copy in device memory
    Copy(kernels::KernelFlags),
    /// Time exchanges with other processes, by every transport
    Halo(halo::HaloBenchArguments),
    /// Predict times of operators and solvers on many GPUs from measurements on a few
    Model(Box<model::ModelBenchArguments>),
    /// Measure the accuracy of each format
    Accuracy(accuracy::AccuracyArguments),
    /// Compare ensembles in several precision settings: observables, reversibility, acceptance
    Rhmc(Box<rhmc::EnsembleBenchArguments>),
    /// Measure iterations and time of mixed-precision solvers over a range of masses
    Solver(Box<solver::SolverBenchArguments>),
}

/// Runs the requested benchmark.
pub fn run(args: BenchArguments, context: &Context) -> Outcome {
    match args.what {
        BenchCommand::Dslash(args) => kernels::dslash(args, context),
        BenchCommand::Blas(args) => kernels::run(args, kernels::TimedKernels::Blas, context),
        BenchCommand::Copy(args) => kernels::run(args, kernels::TimedKernels::Copy, context),
        BenchCommand::Halo(args) => halo::run(args, context),
        BenchCommand::Model(args) => model::run(*args, context),
        BenchCommand::Accuracy(args) => accuracy::run(args, context),
        BenchCommand::Rhmc(args) => rhmc::run(&args, context),
        BenchCommand::Solver(args) => solver::run(*args, context),
    }
}
