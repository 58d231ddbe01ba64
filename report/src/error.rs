//! Errors of reports.

/// Reason why a report cannot be made; the text is a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// An input cannot be read, or has unexpected content.
    #[error("{0}")]
    Unreadable(String),
    /// A picture cannot be drawn.
    #[error("{0}")]
    Undrawable(String),
}
