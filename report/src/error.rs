//! Errors of reports.

/// Reason why a report cannot be made, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// Unreadable input, or input with unexpected content.
    #[error("{0}")]
    Unreadable(String),
    /// Picture that cannot be drawn.
    #[error("{0}")]
    Undrawable(String),
}
