//! Types that are dicts in Python, whose keys are the names of the fields.
use pyo3::prelude::*;
use pythonize::{PythonizeError, depythonize, pythonize};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Value of type `T` that Python passes or receives as a dict or a list.
pub struct Typed<T>(pub T);

impl<T: DeserializeOwned> FromPyObject<'_, '_> for Typed<T> {
    type Error = PythonizeError;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> Result<Self, PythonizeError> {
        depythonize(&object).map(Typed)
    }
}

impl<'py, T: Serialize> IntoPyObject<'py> for Typed<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PythonizeError;
    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, PythonizeError> {
        pythonize(py, &self.0)
    }
}
