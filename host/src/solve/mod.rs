//! Solving M ψ = η: even-odd preconditioning, the solvers in any pair of precisions, and the check of the answer.
mod batch;
mod configuration;
mod formats;
mod ladder;
mod memory;
mod report;
mod request;
mod run;
mod scale;
mod shifts;

pub use crate::dirac::Operator;
pub use batch::{BATCH_SIZES, batches, in_batches, largest_batch, shifts_in_batches};
pub use configuration::Configuration;
pub use gpu_kernels::{LinkStorage, Precision};
pub use memory::{apply_memory, staggered_link_bytes};
pub use report::{Climb, Report, SolveFailure};
pub use request::{Correction, Method, Request, Schwarz, SchwarzError};
pub use run::Solved;
pub use shifts::{ShiftOutcome, ShiftStrategy, ShiftsReport, SolvedShifts};

use crate::domain::Domain;
use crate::field::host::{Fermion, HostField, HostGauge};
use solvers::Observer;

/// Solves M ψ_j = η_j for all sources together: spinors for Wilson-like operators, colour vectors for staggered ones. The
/// observer sees every iteration and can stop it.
///
/// For several solves on the same links make a [`Configuration`], which keeps them on the device.
///
/// Where rounding ends the solve above the tolerance, the solutions are returned with a report that has not
/// [converged](Report::converged).
///
/// # Errors
/// [`SolveFailure`]; where the solver gave up, with the best iterates.
pub fn solve<T: Fermion>(
    domain: &Domain,
    gauge: &HostGauge,
    sources: &[HostField<T>],
    request: &Request,
    observer: &mut dyn Observer,
) -> Solved<T> {
    Configuration::new(domain, gauge).solve(sources, None, request, observer)
}
