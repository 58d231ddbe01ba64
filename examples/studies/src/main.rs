//! The program `ferrite-studies`.
use std::process::ExitCode;

/// Runs the command line of this process.
fn main() -> ExitCode {
    ferrite_studies::run_program()
}
