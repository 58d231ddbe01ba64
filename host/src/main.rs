//! The program `ferrite`: dispatch only. Arguments, printing and exit codes are in `cli`, all the work in the library.
// Text of others does not reach a terminal as it is: `cli::terminal` prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]
mod cli;

use cli::{Command, Context, Invocation, Outcome, communicator};
use std::ffi::OsString;
use std::process::ExitCode;

/// What the command line says.
pub fn main() -> ExitCode {
    cli::install_panic_hook();
    cli::interrupt::start();
    ferrite(std::env::args_os())
}

/// What these arguments say, the program's name first. Fuzz targets compile this file as a library and begin here.
pub fn ferrite(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    communicator::run(|comm| match Invocation::parse(&arguments, comm) {
        Ok(invocation) => invocation.finish(run),
        Err(code) => Ok(code),
    })
}

fn run(command: Command, context: &Context) -> Outcome {
    match command {
        Command::Info => cli::info::run(context),
        Command::Generate(args) => cli::generate::run(args, context),
        Command::Links(args) => cli::links::run(args, context),
        Command::Plaquette(args) => cli::plaquette::run(args, context),
        Command::Verify(args) => cli::verify::run(args, context),
        Command::Convert(args) => cli::convert::run(args, context),
        Command::FixGauge(args) => cli::fix_gauge::run(args, context),
        Command::Smear(args) => cli::smear::run(args, context),
        Command::Solve(args) => cli::solve::run(args, context),
        Command::Apply(args) => cli::apply::run(args, context),
        Command::Bench(args) => cli::bench::run(args, context),
        Command::Measure(args) => cli::measure::run(&args, context),
        Command::Trace(args) => cli::trace::run(&args, context),
        Command::Eigenvalues(args) => cli::eigenvalues::run(&args, context),
        Command::Spectrum(args) => cli::spectrum::run(&args, context),
        Command::Forces(args) => cli::rhmc::forces::run(&args, context),
        Command::Rational(args) => cli::rational::run(&args, context),
        Command::Rhmc(args) => cli::rhmc::run(&args, context),
        Command::Fit(args) => cli::fit::run(&args, context),
        Command::Report(args) => cli::report::run(&args, context),
        Command::Init(args) => cli::init::run(&args, context),
        Command::Tune(args) => cli::tune::run(args, context),
        Command::Check(args) => cli::check::run(args, context),
        Command::Completions(args) => cli::shell::completions(&args, context),
        Command::Man(args) => cli::shell::man(&args, context),
    }
}
