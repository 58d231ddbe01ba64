//! The program `ferrite`: dispatch only. Arguments, printing and exit codes are in `cli`, all the work in the library.
mod cli;
mod config;
mod plot;

use cli::{Command, Invocation};
use std::process::ExitCode;

fn main() -> ExitCode {
    let invocation = match Invocation::from_command_line() {
        Ok(invocation) => invocation,
        Err(code) => return code,
    };
    invocation.finish(|command, context| match command {
        Command::Info => cli::info::run(context),
        Command::Generate(args) => cli::generate::run(args, context),
        Command::Links(args) => cli::links::run(args, context),
        Command::Plaquette(args) => cli::plaquette::run(args, context),
        Command::Verify(args) => cli::verify::run(args, context),
        Command::Convert(args) => cli::convert::run(args, context),
        Command::Solve(args) => cli::solve::run(args, context),
        Command::Apply(args) => cli::apply::run(args, context),
        Command::Bench(args) => cli::bench::run(args, context),
        Command::Tune(args) => cli::tune::run(args, context),
        Command::Check(args) => cli::check::run(args, context),
    })
}
