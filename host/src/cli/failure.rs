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
}

impl Failure {
    /// With any code.
    pub fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: message.to_string() }
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
        Self::refused(describe(&error))
    }
    /// A file that could not be written: by the system, or because its format cannot hold the field.
    pub fn writing(error: FileError) -> Self {
        let system = matches!(error.problem, Problem::Io { .. } | Problem::Comm(_));
        let code = if system { Code::Failed } else { Code::Refused };
        Self::new(code, describe(&error))
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
            DeviceError::Lattice(_) | DeviceError::Grid(_) => Self::refused(error),
            DeviceError::Comm(_) => Self::failed(error),
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
