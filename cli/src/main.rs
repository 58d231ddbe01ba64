//! The program `ferrite`.
use std::process::ExitCode;

/// Runs the command line.
fn main() -> ExitCode {
    ferrite_cli::run_program()
}
