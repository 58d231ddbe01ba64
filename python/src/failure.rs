//! What goes wrong, as exceptions of Python with the library's sentences.
use ferrite::backend::BackendError;
use ferrite::domain::DeviceError;
use ferrite::field::host::{Fermion, FieldError};
use ferrite::files::FileError;
use ferrite::hmc::HmcError;
use ferrite::lattice::LatticeError;
use ferrite::solve::SolveFailure;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Exceptions, under the names that they have in Python, by which pickles find them.
pub mod exceptions {
    use pyo3::create_exception;
    use pyo3::exceptions::PyException;

    create_exception!(ferrite_lqcd, FerriteError, PyException, "A request that Ferrite refuses or cannot carry out.");
    create_exception!(
        ferrite_lqcd,
        InputError,
        FerriteError,
        "Arguments that make no sense; the message lists all of them."
    );
    create_exception!(
        ferrite_lqcd,
        FileError,
        FerriteError,
        "A file that cannot be read or written, or whose data is wrong."
    );
    create_exception!(ferrite_lqcd, DeviceError, FerriteError, "A device that is absent, or has too little memory.");
    create_exception!(ferrite_lqcd, SolverError, FerriteError, "A solver that found no solution.");
}

/// Which exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// [`InputError`](exceptions::InputError)
    Input,
    /// [`FileError`](exceptions::FileError)
    File,
    /// [`DeviceError`](exceptions::DeviceError)
    Device,
    /// [`SolverError`](exceptions::SolverError)
    Solver,
    /// [`FerriteError`](exceptions::FerriteError)
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

/// The outcome of work, on a device or on the host.
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

/// The message for a panic of the library with this text.
#[pyfunction]
pub fn internal_error(text: &str) -> String {
    format!(
        "internal error of Ferrite {}; please report it with this message and the call that led to it: {text}",
        env!("CARGO_PKG_VERSION")
    )
}

/// Does work, and makes a failure of a panic, which is a mistake of the library.
pub fn caught<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Failure::other(internal_error(&text.unwrap_or_default())))
    })
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        let message = failure.message;
        match failure.kind {
            FailureKind::Input => exceptions::InputError::new_err(message),
            FailureKind::File => exceptions::FileError::new_err(message),
            FailureKind::Device => exceptions::DeviceError::new_err(message),
            FailureKind::Solver => exceptions::SolverError::new_err(message),
            FailureKind::Other => exceptions::FerriteError::new_err(message),
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

impl From<ferrite_tasks::solver::WrongSetting> for Failure {
    fn from(wrong: ferrite_tasks::solver::WrongSetting) -> Self {
        Failure::input(wrong.to_string())
    }
}
