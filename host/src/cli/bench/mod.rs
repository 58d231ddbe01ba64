//! `ferrite bench`.
mod accuracy;
mod halo;
mod kernels;
mod model;
mod rhmc;
mod solver;

pub(super) use kernels::{check_nrhs, lattice_or_default, memory, names, operators};

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
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

/// What is measured.
#[derive(Subcommand)]
enum What {
    /// The hopping term of an operator, by itself and as a x + b D psi, and the operator
    Dslash(kernels::Dslash),
    /// Linear algebra of the solvers
    Blas(kernels::Common),
    /// A copy in the device's memory
    Copy(kernels::Common),
    /// Exchanges with other processes, in every way
    Halo(halo::Arguments),
    /// A model of operators and solvers on many GPUs, from measurements on a few
    Model(Box<model::Arguments>),
    /// How exact each format is
    Accuracy(accuracy::Arguments),
    /// Ensembles in several settings of precision: observables, reversibility, acceptance
    Rhmc(Box<rhmc::Arguments>),
    /// Iterations and time of mixed-precision solvers over a range of masses
    Solver(Box<solver::Arguments>),
}

/// Measures and prints.
pub fn run(args: Arguments, context: &Context) -> Outcome {
    match args.what {
        What::Dslash(args) => kernels::dslash(args, context),
        What::Blas(args) => kernels::run(args, kernels::What::Blas, context),
        What::Copy(args) => kernels::run(args, kernels::What::Copy, context),
        What::Halo(args) => halo::run(args, context),
        What::Model(args) => model::run(*args, context),
        What::Accuracy(args) => accuracy::run(args, context),
        What::Rhmc(args) => rhmc::run(&args, context),
        What::Solver(args) => solver::run(*args, context),
    }
}
