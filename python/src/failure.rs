//! What goes wrong, as exceptions of Python with the library's sentences.
use ferrite::backend::BackendError;
use ferrite::domain::DeviceError;
use ferrite::field::host::{Fermion, FieldError};
use ferrite::files::FileError;
use ferrite::hmc::HmcError;
use ferrite::lattice::LatticeError;
use ferrite::solve::SolveFailure;
use pyo3::prelude::*;

pyo3::create_exception!(
    ferrite_lqcd,
    FerriteError,
    pyo3::exceptions::PyException,
    "What Ferrite refuses or cannot do."
);
pyo3::create_exception!(
    ferrite_lqcd,
    InputError,
    FerriteError,
    "An argument that makes no sense; all that is wrong is listed."
);
pyo3::create_exception!(
    ferrite_lqcd,
    FileProblem,
    FerriteError,
    "A file that cannot be read or written, or whose data is wrong."
);
pyo3::create_exception!(
    ferrite_lqcd,
    DeviceProblem,
    FerriteError,
    "A device that is not there, or has too little memory."
);
pyo3::create_exception!(ferrite_lqcd, SolverProblem, FerriteError, "A solver that found no solution.");

/// Which exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// [`InputError`]
    Input,
    /// [`FileProblem`]
    File,
    /// [`DeviceProblem`]
    Device,
    /// [`SolverProblem`]
    Solver,
    /// [`FerriteError`]
    Other,
}

/// A failure on its way to Python.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which exception.
    pub kind: FailureKind,
    /// A sentence.
    pub message: String,
}

/// What work on a device ends with.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// An argument that makes no sense.
    pub fn input(message: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Input, message: message.into() }
    }
    /// Something else.
    pub fn other(message: impl ToString) -> Self {
        Failure { kind: FailureKind::Other, message: message.to_string() }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let message = failure.message;
        match failure.kind {
            FailureKind::Input => InputError::new_err(message),
            FailureKind::File => FileProblem::new_err(message),
            FailureKind::Device => DeviceProblem::new_err(message),
            FailureKind::Solver => SolverProblem::new_err(message),
            FailureKind::Other => FerriteError::new_err(message),
        }
    }
}

impl From<LatticeError> for Failure {
    fn from(error: LatticeError) -> Self {
        Failure::input(error.to_string())
    }
}
impl From<FieldError> for Failure {
    fn from(error: FieldError) -> Self {
        Failure::input(error.to_string())
    }
}
impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure { kind: FailureKind::File, message: error.to_string() }
    }
}
impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Failure { kind: FailureKind::Device, message: in_python(&error.to_string()) }
    }
}

/// A sentence about a device with Python's words in place of the program's flags.
pub fn in_python(message: &str) -> String {
    message.replace("run with --backend cpu", "choose the CPU with init(\"cpu\")")
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        DeviceError::from(error).into()
    }
}
impl From<HmcError> for Failure {
    fn from(error: HmcError) -> Self {
        let kind = if error.solver().is_some() { FailureKind::Solver } else { FailureKind::Device };
        Failure { kind, message: error.to_string() }
    }
}
impl<T: Fermion> From<SolveFailure<T>> for Failure {
    fn from(failure: SolveFailure<T>) -> Self {
        match failure {
            SolveFailure::Device(error) => error.into(),
            SolveFailure::Solver(ferrite::solvers::SolveError::Backend(error)) => error.into(),
            SolveFailure::Solver(ferrite::solvers::SolveError::Invalid(why)) => Failure::input(why),
            SolveFailure::Schwarz(why) => Failure::input(why.to_string()),
            SolveFailure::Multigrid(why) => Failure::input(why.to_string()),
            other => Failure { kind: FailureKind::Solver, message: other.to_string() },
        }
    }
}
