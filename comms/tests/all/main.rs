//! All tests of the crate's interface. They are one program, which links once and runs them side by side.

// What every communicator has to pass; the program `mpi_check` has it too.
#[path = "../../src/bin/mpi_check/checks.rs"]
mod checks;

mod grid;
mod mpi;
mod solo;
mod threads;
