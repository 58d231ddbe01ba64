//! Solving M ψ = η: even-odd preconditioning, the solvers in any pair of precisions, and the check of the answer.
mod batch;
mod configuration;
mod ladder;
mod memory;
mod report;
mod request;
mod run;
mod scale;
mod shifts;
mod staggered;

pub use batch::{BATCH_SIZES, batches, in_batches, largest_batch, shifts_in_batches};
pub use configuration::Configuration;
pub use gpu_kernels::{LinkStorage, Precision};
pub use memory::{staggered_apply_memory, staggered_link_bytes};
pub use report::{Climb, Report, SolveFailure};
pub use request::{Correction, Method, Operator, Request, Schwarz, SchwarzError};
pub use run::Solved;
pub use shifts::{ShiftOutcome, ShiftStrategy, ShiftsReport, SolvedShifts};
pub use staggered::StaggeredConfiguration;

use crate::domain::Domain;
use crate::field::host::{HostGauge, HostSpinor};
use solvers::Observer;

/// Solves M ψ_j = η_j for all sources together. The observer sees every iteration and can stop it.
///
/// For several solves on the same links make a [`Configuration`], which keeps them on the device.
///
/// Where rounding ends the solve above the tolerance, the solutions are returned with a report that has not
/// [converged](Report::converged).
///
/// # Errors
/// [`SolveFailure`]; where the solver gave up, with the best iterates.
pub fn solve_wilson(
    domain: &Domain,
    gauge: &HostGauge,
    sources: &[HostSpinor],
    request: &Request,
    observer: &mut dyn Observer,
) -> Result<(Vec<HostSpinor>, Report), SolveFailure> {
    Configuration::new(domain, gauge).solve(sources, None, request, observer)
}
