//! Record of the solve for a propagator, for the line of a configuration and for a kept propagator.
use crate::batch::Batches;
use crate::solve;
use ferrite::solve::Report;
use ferrite_records::spectrum::SolveNote;

/// Record of a solve, and whether its propagator was read from a file. A propagator that was read has the record of the original solve,
/// with a new residual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolveAccount {
    /// Residual, iterations, batches and time of the solve.
    pub note: SolveNote,
    /// Whether the propagator was read from a file.
    pub is_read: bool,
}

impl SolveAccount {
    /// Returns the account of a solve that has ended.
    pub fn new(report: &Report, batches: &Batches) -> Self {
        let note = SolveNote {
            true_residual: Some(solve::worst(report)),
            iterations: Some(report.info.iterations),
            batches: Some(batches.sizes.clone()),
            seconds: Some(report.total_seconds),
        };
        SolveAccount { note, is_read: false }
    }
    /// Returns the account of a propagator that was read from a file. It has the record of the original solve, with the residual computed
    /// from the file.
    pub fn of_read(noted: SolveNote, true_residual: f64) -> Self {
        SolveAccount { note: SolveNote { true_residual: Some(true_residual), ..noted }, is_read: true }
    }
}
