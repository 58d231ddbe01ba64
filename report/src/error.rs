//! Why something cannot be reported.

/// Why something cannot be reported: a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// It cannot be read, or is not what it should be.
    #[error("{0}")]
    Unreadable(String),
    /// A picture cannot be drawn.
    #[error("{0}")]
    Undrawable(String),
}
