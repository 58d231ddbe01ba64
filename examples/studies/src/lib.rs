//! The program `ferrite-studies`: the scaling model, and results of papers that are repeated. It has the global flags, the output and
//! the exit codes of the program `ferrite`.
//!
//! | module | study |
//! |---|---|
//! | [`model`] | times of operators and solvers on many GPUs: `docs/scaling-model.md` |
//! | [`accuracy`] | accuracy of each format: figure 6 of Clark et al. 2009 |
//! | [`mixed_precision`] | solvers in mixed precision: tables 3 to 5 and figure 7 of Clark et al. 2009 |
//! | [`rhmc`] | ensembles in several settings of precision: figures 4 to 9 of Bonati et al. 2011 |
//! | [`records`] | types of the JSON objects that studies print and read |
#![deny(clippy::print_stdout, clippy::print_stderr)]
#![forbid(unsafe_code)]

pub mod accuracy;
pub mod mixed_precision;
pub mod model;
pub mod records;
pub mod rhmc;

use clap::{Parser, Subcommand};
use ferrite_cli::{CommandLine, Context, GlobalFlags, formats};
use ferrite_inputs::text;
use ferrite_tasks::{Failure, Outcome, batch, communicator, device, layout, plan, plot, target};
use std::process::ExitCode;

const EXIT_CODES: &str = "\
Exit codes are those of `ferrite`: 0 done, 1 failed after the start, 2 refused before any computation, 130 interrupted.

`ferrite-studies COMMAND --help` shows examples of each command.";

/// Studies with Ferrite: a scaling model, and results of papers.
#[derive(Parser)]
#[command(name = "ferrite-studies", version, about, after_help = EXIT_CODES)]
struct StudiesCommandLine {
    #[command(subcommand)]
    study: Study,
    #[command(flatten)]
    global: GlobalFlags,
}

/// Studies.
#[derive(Subcommand)]
enum Study {
    /// Predict times of operators and solvers on many GPUs from measurements on a few
    Model(Box<model::command::ModelBenchArguments>),
    /// Measure the accuracy of each format
    Accuracy(accuracy::AccuracyArguments),
    /// Measure iterations and time of mixed-precision solvers for Wilson quarks over a range of masses
    MixedPrecision(Box<mixed_precision::MixedPrecisionArguments>),
    /// Compare ensembles in several precision settings: observables, reversibility, acceptance
    Rhmc(Box<rhmc::EnsembleBenchArguments>),
}

impl CommandLine for StudiesCommandLine {
    type Command = Study;
    const FIRST_EXAMPLES: &'static str = "\
Studies with Ferrite:

  mpirun -n 2 ferrite-studies model --save machine.json
  ferrite-studies accuracy --plot accuracy.svg
  ferrite-studies mixed-precision
  ferrite-studies rhmc --paper 003 --out settings

`ferrite-studies COMMAND --help` has examples of each command.
";

    fn parts(self) -> (Study, GlobalFlags) {
        (self.study, self.global)
    }
    fn run(study: Study, context: &Context) -> Outcome {
        match study {
            Study::Model(args) => model::command::run(*args, context),
            Study::Accuracy(args) => accuracy::run(args, context),
            Study::MixedPrecision(args) => mixed_precision::run(&args, context),
            Study::Rhmc(args) => rhmc::run(&args, context),
        }
    }
}

/// Runs the program in this process.
pub fn run_program() -> ExitCode {
    ferrite_cli::run_program::<StudiesCommandLine>()
}
