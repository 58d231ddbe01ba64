//! Account of the solve for a propagator, for the line of a configuration and beside a propagator that is kept.
use crate::batch::Batches;
use crate::solve;
use ferrite::solve::Report;
use ferrite_records::spectrum::SolveNote;

/// Account of a solve. For a propagator that was read, it is the account of the solve that made it, but for the residual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolveAccount {
    /// Residual, iterations, batches and seconds.
    pub note: SolveNote,
    /// Whether the propagator was read.
    pub is_read: bool,
}

impl SolveAccount {
    /// Returns the account of a solve that has just ended.
    pub fn new(report: &Report, batches: &Batches) -> Self {
        let note = SolveNote {
            true_residual: Some(solve::worst(report)),
            iterations: Some(report.info.iterations),
            batches: Some(batches.sizes.clone()),
            seconds: Some(report.total_seconds),
        };
        SolveAccount { note, is_read: false }
    }
    /// Returns the account of a propagator that was read, as recorded with it but for its residual.
    pub fn of_read(noted: SolveNote, true_residual: f64) -> Self {
        SolveAccount { note: SolveNote { true_residual: Some(true_residual), ..noted }, is_read: true }
    }
}
