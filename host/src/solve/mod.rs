//! Solving M ψ = η: even-odd preconditioning, the solvers in any pair of precisions, and the check of the solution.
mod batch;
mod choice;
mod configuration;
mod eigenvalues;
mod escalation;
mod formats;
mod links;
mod memory;
mod methods;
pub mod names;
mod report;
mod request;
mod run;
mod scale;
mod schwarz;
pub mod setup_file;
mod shifts;

pub use batch::{BATCH_SIZES, batches, for_batches, in_batches, largest_batch, shifts_in_batches};
pub use choice::MethodChange;
pub use configuration::Configuration;
pub use eigenvalues::{EigenvalueParams, SpectralBounds};
pub(crate) use formats::{BlockMultigrid, Formats};
pub(crate) use links::{ImprovedLinks, LinkCache, LinkFormatKey, Slot};
pub use memory::{apply_memory, widths};
pub use methods::{CountKey, Counts, METHODS, Method, methods_for};
pub(crate) use methods::{Limits, OperatorPair, PrecisionLevel, PreparedMethod};
pub use report::{Escalation, MultigridLevel, MultigridReport, Report, SolveFailure};
pub use request::{Correction, OpenFormats, Request};
pub use run::{Solved, SolvedFields};
pub use schwarz::{Schwarz, SchwarzError};
pub use shifts::{ShiftOutcome, ShiftStrategy, ShiftsReport, SolvedShifts};

use crate::backend::MAX_RHS_PER_LAUNCH;
use crate::domain::{DeviceError, Domain, Result};
use crate::field::host::{Fermion, HostField, HostGauge};
use solvers::Observer;

/// Solves M ψ_j = η_j for all sources together. Sources are spinors for Wilson-like operators and colour vectors for staggered ones. The
/// observer receives every iteration and can stop the solve.
///
/// For several solves on the same links, use a [`Configuration`], which keeps the links on the device.
///
/// If rounding ends the solve above the tolerance, the solutions are returned with a report that has not [converged](Report::converged).
///
/// # Errors
/// [`SolveFailure`], with the best iterates if the solver gave up.
pub fn solve<T: Fermion>(
    domain: &Domain,
    gauge: &HostGauge,
    sources: &[HostField<T>],
    request: &Request,
    observer: &mut dyn Observer,
) -> Solved<T> {
    Configuration::new(domain, gauge).solve(sources, None, request, observer)
}

/// Checks that these right-hand sides can be solved for together, and that all of them are on this process's part of the lattice.
fn expect_sources<T: Fermion>(domain: &Domain, sources: &[HostField<T>], guess: Option<&[HostField<T>]>) -> Result {
    let expected = sources.len();
    if !(1..=MAX_RHS_PER_LAUNCH).contains(&expected) {
        return Err(DeviceError::RightHandSides(expected));
    }
    if let Some(found) = guess.map(<[_]>::len).filter(|found| *found != expected) {
        return Err(DeviceError::OtherCount { found, expected });
    }
    sources.iter().try_for_each(|field| domain.expect("a source", field.lattice()))?;
    guess.into_iter().flatten().try_for_each(|field| domain.expect("a guess", field.lattice()))
}
