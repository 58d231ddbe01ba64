//! Reason why a command ended without success: one sentence and an exit code.
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
use std::any::Any;
use std::fmt::Display;
use std::process::ExitCode;

/// Exit codes of the program, on which scripts may rely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Code 0: the command succeeded.
    Done,
    /// Code 1: the command started and failed.
    Failed,
    /// Code 2: the command was refused before anything was computed.
    Refused,
    /// Code 129: SIGHUP stopped the command.
    HungUp,
    /// Code 130: Ctrl-C (SIGINT) or a time limit stopped the command.
    Interrupted,
    /// Code 143: SIGTERM stopped the command.
    Terminated,
}

impl Code {
    /// Returns the code whose number is `number`; [`Code::Failed`] if no code has this number.
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

/// Cause of a failure, from which interfaces of other languages choose an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The request is invalid.
    Input,
    /// A file cannot be read or written, or its data is wrong.
    File,
    /// A device is absent, fails, or has too little memory.
    Device,
    /// A solver found no solution.
    Solver,
    /// Any other cause.
    Other,
}

impl FailureKind {
    const ALL: [Self; 5] = [Self::Input, Self::File, Self::Device, Self::Solver, Self::Other];

    /// Returns the cause whose number is `number`; [`FailureKind::Other`] if no cause has this number.
    pub fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Other)
    }
    /// Returns the number that stands for the cause in messages between processes.
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// Failure of a command: a sentence for people, an exit code for scripts, and the cause for other programs.
#[derive(Debug)]
pub struct Failure {
    /// Exit code of the program.
    pub code: Code,
    /// Cause of the failure.
    pub kind: FailureKind,
    /// Message that states what went wrong, where, and what to do.
    pub message: String,
    shared: bool,
}

impl Failure {
    /// Returns the record of the message and the exit code.
    pub fn record(&self) -> ErrorMessage {
        ErrorMessage { message: self.message.clone(), exit_code: self.code.number() }
    }
    /// Returns a failure with an exit code and a message.
    pub fn new(code: Code, message: impl Display) -> Self {
        let kind = if code == Code::Refused { FailureKind::Input } else { FailureKind::Other };
        Self { code, kind, message: message.to_string(), shared: false }
    }
    /// Returns the failure with the cause `kind`.
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
    /// Returns a failure of work that had started, with exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self::new(Code::Failed, message)
    }
    /// Returns a failure before anything was computed, with exit code 2.
    pub fn refused(message: impl Display) -> Self {
        Self::new(Code::Refused, message)
    }
    /// Returns the failure of a file that could not be read. `by` determines whether the message names flags or keys.
    pub fn reading(error: &FileError, by: ReadBy) -> Self {
        Self { shared: met_by_all(error), ..Self::refused(describe(error, by)) }.of_kind(FailureKind::File)
    }
    /// Returns the failure of a file that could not be written, because of the system or because its format cannot hold the field.
    pub fn writing(error: FileError) -> Self {
        let system = matches!(error.problem, Problem::Io { .. } | Problem::Comm(_));
        let code = if system { Code::Failed } else { Code::Refused };
        Self { shared: met_by_all(&error), ..Self::new(code, error) }.of_kind(FailureKind::File)
    }
    /// Returns the failure of work that panicked, which is a bug of the library. `panic` is what the panic left.
    pub fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
        Self::failed(Self::internal_error(text))
    }
    /// Returns the message for a panic of the library, whose text is `text`.
    pub fn internal_error(text: &str) -> String {
        let version = env!("CARGO_PKG_VERSION");
        format!("internal error of Ferrite {version}: {text} (please report this message and the call that led to it)")
    }
    /// Returns the failure of work that ended because a stop was requested.
    pub fn stopped() -> Self {
        Self::new(Code::Interrupted, "stopped")
    }
}

/// Rewords a message about a device for an interface without flags. `cpu` states how to choose the CPU, and `index` names the number of
/// a GPU.
pub fn without_flags(message: &str, cpu: &str, index: &str) -> String {
    message.replace("run with --backend cpu", cpu).replace("--backend cpu", cpu).replace("--device", index)
}

/// Returns whether all processes have the failure. They do if they read or wrote a file together, unless messages failed.
fn met_by_all(error: &FileError) -> bool {
    !matches!(error.problem, Problem::Comm(_))
}

/// Returns the message for an error of a file, with the flag or key that would accept the file.
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
                "{shown}: this is an input in TOML, not a field: name a file of links or of fermion fields; `ferrite \
                 check {shown}` checks the input"
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
        // For an open boundary, `convert` cannot advise `--reunitarise`, because links of zeros cannot be projected to SU(3).
        Problem::OpenBoundary if by == ReadBy::Convert => return error.to_string(),
        Problem::NotUnitary { .. } | Problem::OpenBoundary => {
            ("--allow-non-unitary", "allow-non-unitary = true", "--allow-non-unitary --reunitarise")
        }
        _ => return error.to_string(),
    };
    match by {
        ReadBy::Flags => format!("{error} ({flag})"),
        ReadBy::Keys => format!("{error} ({key})"),
        ReadBy::Table(table) => format!("{error} ({table}.{})", key.replace(" and ", &format!(" and {table}."))),
        ReadBy::Convert => {
            let shown = error.path.display();
            format!("{error} (`ferrite convert {converted} {shown} copy.npy` makes a copy that can be read)")
        }
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

/// Failure of a file that an interface without flags reads or writes.
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
            (ReadBy::Convert, " (`ferrite convert --no-verify a.lime copy.npy` makes a copy that can be read)"),
        ] {
            assert!(describe(&error, by).ends_with(end), "{}", describe(&error, by));
        }
        let other = FileError { path: "a.lime".into(), problem: Problem::Unwritable { why: "no" } };
        assert_eq!(describe(&other, ReadBy::Flags), other.to_string());
    }
}
