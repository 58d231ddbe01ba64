//! Conversion of failures to Python exceptions with the library's messages.
use ferrite_tasks::failure::FailureKind;
use ferrite_tasks::{Failure, Outcome};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Exceptions under their Python names, by which pickles find them.
pub mod exceptions {
    use pyo3::create_exception;
    use pyo3::exceptions::PyException;

    create_exception!(ferrite_lqcd, FerriteError, PyException, "A request that Ferrite refuses or cannot carry out.");
    create_exception!(ferrite_lqcd, InputError, FerriteError, "Invalid arguments; the message names what to change.");
    create_exception!(
        ferrite_lqcd,
        FileError,
        FerriteError,
        "A file that cannot be read or written, or whose data is wrong."
    );
    create_exception!(
        ferrite_lqcd,
        DeviceError,
        FerriteError,
        "A device that is absent or fails, or has too little memory."
    );
    create_exception!(
        ferrite_lqcd,
        SolverError,
        FerriteError,
        "A solve that failed, or did not reach the requested tolerance."
    );
}

/// Python exception, raised for a failure or by Python itself.
pub struct Raised(PyErr);

/// Result for Python, or the exception to raise.
pub type Returned<T = ()> = Result<T, Raised>;

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        Raised(error)
    }
}
impl From<Raised> for PyErr {
    fn from(raised: Raised) -> PyErr {
        raised.0
    }
}
impl From<Failure> for Raised {
    fn from(failure: Failure) -> Self {
        let message = failure.message;
        Raised(match failure.kind {
            FailureKind::Input => exceptions::InputError::new_err(message),
            FailureKind::File => exceptions::FileError::new_err(message),
            FailureKind::Device => exceptions::DeviceError::new_err(in_python(&message)),
            FailureKind::Solver => exceptions::SolverError::new_err(message),
            FailureKind::Other => exceptions::FerriteError::new_err(message),
        })
    }
}

/// Rewords a message about a device: replaces the program's flags by the names that Python uses.
pub fn in_python(message: &str) -> String {
    message.replace("run with --backend cpu", "choose the CPU with fe.init(\"cpu\")")
}

/// Returns the message for a panic of the library, whose text is `text`.
#[pyfunction]
pub fn internal_error(text: &str) -> String {
    Failure::internal_error(text)
}

/// Calls `work`, and converts a panic to a failure. A panic is a bug of the library.
pub fn caught<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::of_panic(&*panic)))
}
