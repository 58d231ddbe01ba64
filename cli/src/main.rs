//! The program `ferrite`.
use std::process::ExitCode;

/// Runs the command line of this process.
fn main() -> ExitCode {
    ferrite_cli::run_ferrite()
}
