//! Why a command ended without doing what was asked: one sentence and an exit code.
use super::named;
use ferrite::backend::BackendError;
use ferrite::domain::DeviceError;
use ferrite::field::host::Fermion;
use ferrite::files::{FileError, LengthRemedy, Problem};
use ferrite::solve::SolveFailure;
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
    /// The code with this number; [`Code::Failed`] where there is none.
    pub fn from_number(number: u8) -> Self {
        let all = [Self::Done, Self::Refused, Self::HungUp, Self::Interrupted, Self::Terminated];
        all.into_iter().find(|code| code.number() == number).unwrap_or(Self::Failed)
    }
    /// The number.
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

/// A sentence for people and a code for scripts.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What went wrong, where, and what to do.
    pub message: String,
    shared: bool,
}

impl Failure {
    /// Returns the record of message and exit code.
    pub fn record(&self) -> ErrorMessage {
        ErrorMessage { message: self.message.clone(), exit_code: self.code.number() }
    }
    /// With any code.
    pub fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: message.to_string(), shared: false }
    }
    /// The same, known to have met all processes, so that one can tell it and all leave.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }
    /// Whether it has met all processes.
    pub fn is_shared(&self) -> bool {
        self.shared
    }
    /// Started and failed.
    pub fn failed(message: impl Display) -> Self {
        Self::new(Code::Failed, message)
    }
    /// Refused before anything was computed.
    pub fn refused(message: impl Display) -> Self {
        Self::new(Code::Refused, message)
    }
    /// A file that could not be read.
    pub fn reading(error: &FileError, by: ReadBy) -> Self {
        Self { shared: met_by_all(error), ..Self::refused(describe(error, by)) }
    }
    /// A file that could not be written: by the system, or because its format cannot hold the field.
    pub fn writing(error: FileError) -> Self {
        let system = matches!(error.problem, Problem::Io { .. } | Problem::Comm(_));
        let code = if system { Code::Failed } else { Code::Refused };
        Self { shared: met_by_all(&error), ..Self::new(code, error) }
    }
}

/// What many processes read or write fails for all of them, if only they hear of each other.
fn met_by_all(error: &FileError) -> bool {
    !matches!(error.problem, Problem::Comm(_))
}

/// The library speaks of its options; this adds by what users give them.
pub fn describe(error: &FileError, by: ReadBy) -> String {
    match &error.problem {
        Problem::Io { .. } => {
            if let Some(advice) = named::advice_on_pattern(&error.path) {
                return format!("{}: {advice}", error.path.display());
            }
            if error.path.is_dir() {
                return format!("{}: this is a folder: name a file in it", error.path.display());
            }
        }
        Problem::UnknownFormat { .. } if error.path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml")) => {
            let shown = error.path.display();
            return format!(
                "{shown}: this is an input in TOML, and a field is read here; `ferrite check {shown}` finds out which command it is for"
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
        // No projection knows what a link of zeros was.
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
            SolveFailure::Solver(error) => Self::refused(error).shared(),
            SolveFailure::Schwarz(error) => Self::refused(error).shared(),
            SolveFailure::Multigrid(error) => Self::refused(error).shared(),
            SolveFailure::Unfinished { error, .. } => Self::failed(error).shared(),
            failure @ SolveFailure::OutOfRange(_) => Self::failed(failure).shared(),
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Backend(error) => error.into(),
            DeviceError::Comm(_) => Self::failed(error),
            _ => Self::refused(error).shared(),
        }
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Driver { .. } => Self::failed(error),
            _ => Self::refused(error),
        }
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
