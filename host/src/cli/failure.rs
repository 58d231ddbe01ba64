//! Why a command ended without doing what was asked: one sentence and an exit code.
use ferrite::backend::BackendError;
use ferrite::domain::DeviceError;
use ferrite::files::{FileError, Problem};
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
    /// 130: interrupted by the user, as shells count it.
    Interrupted,
}

impl Code {
    /// The code with this number; [`Code::Failed`] where there is none.
    pub fn from_number(number: u8) -> Self {
        let all = [Self::Done, Self::Refused, Self::Interrupted];
        all.into_iter().find(|code| code.number() == number).unwrap_or(Self::Failed)
    }
    /// The number.
    pub fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::Interrupted => 130,
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
    pub fn reading(error: FileError) -> Self {
        Self::of_file(Code::Refused, &error)
    }
    /// A file that could not be written: by the system, or because its format cannot hold the field.
    pub fn writing(error: FileError) -> Self {
        let system = matches!(error.problem, Problem::Io { .. } | Problem::Comm(_));
        let code = if system { Code::Failed } else { Code::Refused };
        Self::of_file(code, &error)
    }
    /// What many processes read or write fails for all of them, if only they hear of each other.
    fn of_file(code: Code, error: &FileError) -> Self {
        let shared = !matches!(error.problem, Problem::Comm(_));
        Self { shared, ..Self::new(code, describe(error)) }
    }
}

/// The library speaks of its options; this program has flags for them.
pub fn describe(error: &FileError) -> String {
    let flag = match &error.problem {
        Problem::NeedsLattice { .. } => " (--lattice X,Y,Z,T)",
        Problem::Trailing { .. } | Problem::Checksum { .. } | Problem::HeaderValue { .. } => " (--no-verify)",
        Problem::NotUnitary { .. } => " (--allow-non-unitary)",
        _ => "",
    };
    format!("{error}{flag}")
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
