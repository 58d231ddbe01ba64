//! Command `ferrite bench` with its benchmarks.
mod halo;
mod kernels;
pub mod solver;

pub(super) use kernels::{check_nrhs, lattice_or_default, names, operators};

pub use kernels::{NO_SUCH_KERNELS, exist, memory, operator, timed_operators};

use super::{Context, Outcome};
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  ferrite bench dslash --lattice 32,32,32,32
  ferrite bench blas --precision double
  ferrite bench copy --backend cpu
  mpirun -n 2 ferrite bench halo --trace timeline.json
  ferrite bench solver --operator asqtad --masses 0.1,0.02";

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
    /// Measure iterations and time of solvers for staggered quarks over a range of masses, in every format
    Solver(Box<solver::SolverBenchArguments>),
}

/// Runs the requested benchmark.
pub fn run(args: BenchArguments, context: &Context) -> Outcome {
    match args.what {
        BenchCommand::Dslash(args) => kernels::dslash(args, context),
        BenchCommand::Blas(args) => kernels::run(args, kernels::TimedKernels::Blas, context),
        BenchCommand::Copy(args) => kernels::run(args, kernels::TimedKernels::Copy, context),
        BenchCommand::Halo(args) => halo::run(args, context),
        BenchCommand::Solver(args) => solver::run(*args, context),
    }
}
