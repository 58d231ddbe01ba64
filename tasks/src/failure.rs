//! The reason why a command ended without success: one sentence and an exit code.
use ferrite::backend::BackendError;
use ferrite::domain::DeviceError;
use ferrite::field::host::{Fermion, FieldError};
use ferrite::files::{FileError, LengthRemedy, Problem};
use ferrite::lattice::LatticeError;
use ferrite::solve::SolveFailure;
use ferrite_inputs::files::advice_on_pattern;
use ferrite_inputs::input::Mistakes;
pub use ferrite_inputs::kind::ReadBy;
use ferrite_records::program::ErrorMessage;
use ferrite_report::ReportError;
use solvers::SolveError;
use std::fmt::Display;
use std::process::ExitCode;

/// The exit codes that scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 0: done.
    Done,
    /// 1: started and failed.
    Failed,
    /// 2: refused before anything was computed.
    Refused,
    /// 129: stopped by SIGHUP.
    HungUp,
    /// 130: stopped by Ctrl-C (SIGINT), or by a time limit.
    Interrupted,
    /// 143: stopped by SIGTERM.
    Terminated,
}

impl Code {
    /// Returns the code with this number; [`Code::Failed`] if there is none.
    pub fn from_number(number: u8) -> Self {
        let all = [Self::Done, Self::Refused, Self::HungUp, Self::Interrupted, Self::Terminated];
        all.into_iter().find(|code| code.number() == number).unwrap_or(Self::Failed)
    }
    /// Returns the number of the code.
    pub fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        code.number().into()
    }
}

/// Cause of a failure, by which interfaces of languages choose an exception or a code of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A request that makes no sense.
    Input,
    /// A file that cannot be read or written, or whose data is wrong.
    File,
    /// A device that is absent, fails, or has too little memory.
    Device,
    /// A solver that found no solution.
    Solver,
    /// Anything else.
    Other,
}

impl FailureKind {
    const ALL: [Self; 5] = [Self::Input, Self::File, Self::Device, Self::Solver, Self::Other];

    /// Returns the kind with a number; [`FailureKind::Other`] where there is none.
    pub fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Other)
    }
    /// Returns the number by which processes exchange it.
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// A sentence for people, a code for scripts, and the cause for other programs.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// The cause.
    pub kind: FailureKind,
    /// Message that says what went wrong, where, and what to do.
    pub message: String,
    shared: bool,
}

impl Failure {
    /// Returns the record of message and exit code.
    pub fn record(&self) -> ErrorMessage {
        ErrorMessage { message: self.message.clone(), exit_code: self.code.number() }
    }
    /// Returns a failure with any exit code.
    pub fn new(code: Code, message: impl Display) -> Self {
        let kind = if code == Code::Refused { FailureKind::Input } else { FailureKind::Other };
        Self { code, kind, message: message.to_string(), shared: false }
    }
    /// Returns the failure with another cause.
    #[must_use]
    pub fn of_kind(self, kind: FailureKind) -> Self {
        Self { kind, ..self }
    }
    /// Marks the failure as one that occurred on all processes, so that rank 0 reports it and all exit.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }
    /// Returns whether the failure occurred on all processes.
    pub fn is_shared(&self) -> bool {
        self.shared
    }
    /// Returns a failure of work that was started.
    pub fn failed(message: impl Display) -> Self {
        Self::new(Code::Failed, message)
    }
    /// Returns a refusal, before anything was computed.
    pub fn refused(message: impl Display) -> Self {
        Self::new(Code::Refused, message)
    }
    /// Returns the failure of a file that could not be read.
    pub fn reading(error: &FileError, by: ReadBy) -> Self {
        Self { shared: met_by_all(error), ..Self::refused(describe(error, by)) }.of_kind(FailureKind::File)
    }
    /// Returns the failure of a file that could not be written: by the system, or because its format cannot hold the field.
    pub fn writing(error: FileError) -> Self {
        let system = matches!(error.problem, Problem::Io { .. } | Problem::Comm(_));
        let code = if system { Code::Failed } else { Code::Refused };
        Self { shared: met_by_all(&error), ..Self::new(code, error) }.of_kind(FailureKind::File)
    }
    /// Returns the failure of work that was ended by request.
    pub fn stopped() -> Self {
        Self::new(Code::Interrupted, "stopped")
    }
}

/// Returns whether the failure occurs on all processes: one of a file that many processes read or write does, unless the exchange of
/// messages failed.
fn met_by_all(error: &FileError) -> bool {
    !matches!(error.problem, Problem::Comm(_))
}

/// Describes an error of a file. Adds to the library's message the flag or key by which users give an option.
pub fn describe(error: &FileError, by: ReadBy) -> String {
    match &error.problem {
        Problem::Io { .. } => {
            if let Some(advice) = advice_on_pattern(&error.path) {
                return format!("{}: {advice}", error.path.display());
            }
            if error.path.is_dir() {
                return format!("{}: this is a folder; name a file in it", error.path.display());
            }
        }
        Problem::UnknownFormat { .. } if error.path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml")) => {
            let shown = error.path.display();
            return format!(
                "{shown}: this is an input in TOML, not a field; `ferrite check {shown}` determines the command that \
                 reads it"
            );
        }
        _ => {}
    }
    let (flag, key, converted) = match &error.problem {
        Problem::NeedsLattice { .. } => ("--lattice X,Y,Z,T", "lattice = [X, Y, Z, T]", "--lattice X,Y,Z,T"),
        Problem::Trailing { .. }
        | Problem::Checksum { .. }
        | Problem::ChecksumRule { .. }
        | Problem::HeaderValue { .. }
        | Problem::Optional { .. }
        | Problem::ByteOrder { .. }
        | Problem::Length { remedy: LengthRemedy::WithoutVerification, .. } => {
            ("--no-verify", "no-verify = true", "--no-verify")
        }
        Problem::Length { remedy: LengthRemedy::Extents, .. } => (
            "--lattice X,Y,Z,T --no-verify",
            "lattice = [X, Y, Z, T] and no-verify = true",
            "--lattice X,Y,Z,T --no-verify",
        ),
        // No projection can restore a link of zeros.
        Problem::OpenBoundary if by == ReadBy::Convert => return error.to_string(),
        Problem::NotUnitary { .. } | Problem::OpenBoundary => {
            ("--allow-non-unitary", "allow-non-unitary = true", "--allow-non-unitary --reunitarise")
        }
        _ => return error.to_string(),
    };
    match by {
        ReadBy::Flags => format!("{error} ({flag})"),
        ReadBy::Keys => format!("{error} ({key})"),
        ReadBy::Table(table) => format!("{error} ({table}.{key})"),
        ReadBy::Convert => format!("{error} (`ferrite convert {converted}` makes a copy that can be read)"),
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Self {
        Self::refused(mistakes)
    }
}

impl<F: Fermion> From<SolveFailure<F>> for Failure {
    fn from(failure: SolveFailure<F>) -> Self {
        match failure {
            SolveFailure::Solver(SolveError::Backend(error)) | SolveFailure::Device(error) => error.into(),
            SolveFailure::Solver(error) => {
                let kind =
                    if matches!(error, SolveError::Invalid(_)) { FailureKind::Input } else { FailureKind::Solver };
                Self::refused(error).of_kind(kind).shared()
            }
            SolveFailure::Schwarz(error) => Self::refused(error).shared(),
            SolveFailure::Multigrid(error) => Self::refused(error).shared(),
            SolveFailure::Unfinished { error, .. } => Self::failed(error).of_kind(FailureKind::Solver).shared(),
            failure @ SolveFailure::OutOfRange(_) => Self::failed(failure).of_kind(FailureKind::Solver).shared(),
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Backend(error) => error.into(),
            DeviceError::Comm(_) => Self::failed(error).of_kind(FailureKind::Device),
            _ => Self::refused(error).of_kind(FailureKind::Device).shared(),
        }
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        let code = if matches!(error, BackendError::Driver { .. }) { Code::Failed } else { Code::Refused };
        Self::new(code, error).of_kind(FailureKind::Device)
    }
}

/// A file that an interface without flags reads or writes.
impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self { shared: met_by_all(&error), ..Self::refused(error) }.of_kind(FailureKind::File)
    }
}

impl From<LatticeError> for Failure {
    fn from(error: LatticeError) -> Self {
        Self::refused(error)
    }
}

impl From<FieldError> for Failure {
    fn from(error: FieldError) -> Self {
        Self::refused(error)
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Unreadable(_) => Self::refused(error),
            ReportError::Undrawable(_) => Self::failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody is sent to a flag that the command has not.
    #[test]
    fn advice_is_what_the_command_has() {
        let error =
            FileError { path: "a.lime".into(), problem: Problem::Trailing { offset: 8, extra: 4, another: false } };
        for (by, end) in [
            (ReadBy::Flags, " (--no-verify)"),
            (ReadBy::Keys, " (no-verify = true)"),
            (ReadBy::Table("solve"), " (solve.no-verify = true)"),
            (ReadBy::Convert, " (`ferrite convert --no-verify` makes a copy that can be read)"),
        ] {
            assert!(describe(&error, by).ends_with(end), "{}", describe(&error, by));
        }
        let other = FileError { path: "a.lime".into(), problem: Problem::Unwritable { why: "no" } };
        assert_eq!(describe(&other, ReadBy::Flags), other.to_string());
    }
}
