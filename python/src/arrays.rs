//! Conversion between NumPy arrays and fields of the library. Both have the same axes: `[t, z, y, x]`, followed by those of a site.
use crate::failure::Returned;
use ferrite::FermionKind;
use ferrite::num_complex::Complex64;
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::{Failure, Outcome};
use numpy::ndarray::{ArrayD, IxDyn};
use numpy::{IntoPyArray, PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// Array of complex numbers that Python passes, in C order as from `numpy.ascontiguousarray`.
pub type Given<'py> = PyReadonlyArrayDyn<'py, Complex64>;
/// Array of complex numbers that is returned to Python.
pub type Made<'py> = Bound<'py, PyArrayDyn<Complex64>>;

/// Returns a NumPy array of the shape `shape` from numbers in C order.
pub fn array<'py>(py: Python<'py>, shape: &[usize], numbers: Vec<Complex64>) -> Returned<Made<'py>> {
    let array = ArrayD::from_shape_vec(IxDyn(shape), numbers);
    Ok(array.map_err(|why| Failure::failed(format!("the array cannot be created: {why}")))?.into_pyarray(py))
}

/// Returns the numbers of an array in C order.
pub fn numbers<'a>(given: &'a Given<'_>) -> Outcome<&'a [Complex64]> {
    given
        .as_slice()
        .map_err(|_| Failure::refused("the array is not in C order: convert it with numpy.ascontiguousarray"))
}

/// Converts an array to fields. Also returns the extents of the axes before those of a field.
pub fn fields(kind: FermionKind, given: &Given<'_>) -> Outcome<(HostFields, Vec<usize>)> {
    HostFields::of_array(kind, given.shape(), numbers(given)?)
}

/// Converts an array to the fields of a propagator, one field for each component of the source.
pub fn propagator(kind: FermionKind, given: &Given<'_>) -> Outcome<HostFields> {
    HostFields::of_propagator(kind, given.shape(), numbers(given)?)
}

/// Returns fields as one array, whose leading axes have the extents `axes`.
pub fn stacked<'py>(py: Python<'py>, axes: &[usize], fields: &HostFields) -> Returned<Made<'py>> {
    let shape = [axes, &fields.shape()?].concat();
    let all = py.detach(|| fields.numbers());
    array(py, &shape, all)
}

/// Returns the type of fermions: staggered or Wilson-like.
pub fn kind(staggered: bool) -> FermionKind {
    if staggered { FermionKind::Staggered } else { FermionKind::Wilson }
}
