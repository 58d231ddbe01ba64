//! Between NumPy arrays and fields of the library, which have the same axes: `[t, z, y, x]` and then those of a site.
use crate::failure::{Failure, Outcome};
use ferrite::field::host::{Fermion, HostField, HostGauge};
use ferrite::num_complex::Complex64;
use numpy::ndarray::{ArrayD, IxDyn};
use numpy::{IntoPyArray, PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// An array of complex numbers in C order, as `numpy.ascontiguousarray` makes it.
pub type Given<'py> = PyReadonlyArrayDyn<'py, Complex64>;
/// One for Python.
pub type Made<'py> = Bound<'py, PyArrayDyn<Complex64>>;

/// An array of Python's of these numbers.
pub fn array<'py>(py: Python<'py>, shape: &[usize], numbers: Vec<Complex64>) -> PyResult<Made<'py>> {
    let array = ArrayD::from_shape_vec(IxDyn(shape), numbers);
    Ok(array.map_err(|why| Failure::other(format!("an array cannot be made: {why}")))?.into_pyarray(py))
}

/// The numbers of an array in C order.
pub fn numbers<'a>(given: &'a Given<'_>) -> Outcome<&'a [Complex64]> {
    given.as_slice().map_err(|_| Failure::input("an array is not in C order: numpy.ascontiguousarray makes it so"))
}

/// Refuses numbers that are not finite; `what` names them.
pub fn check_finite(what: &str, numbers: &[Complex64]) -> Outcome {
    match numbers.iter().position(|number| !number.is_finite()) {
        None => Ok(()),
        Some(place) => Err(Failure::input(format!(
            "{what}: number {place} of the array, counted from 0 in C order, is {}: every number has to be finite",
            numbers[place]
        ))),
    }
}

/// Refuses fields with numbers that are not finite; `what` names their array.
pub fn check_finite_fields<T: Fermion>(what: &str, fields: &[HostField<T>]) -> Outcome {
    let is_infinite = |field: &HostField<T>| field.numbers().iter().any(|number| !number.is_finite());
    match fields.iter().position(is_infinite) {
        None => Ok(()),
        Some(field) => check_finite(&format!("{what}, field {field} counted from 0"), fields[field].numbers()),
    }
}

/// A gauge field of an array `[T, Z, Y, X, 4, 3, 3]`.
pub fn gauge(given: &Given<'_>) -> Outcome<HostGauge> {
    Ok(HostGauge::from_numbers(given.shape(), numbers(given)?)?)
}

/// Fields of an array with any axes before those of a field, and these axes.
pub fn fields<T: Fermion>(given: &Given<'_>) -> Outcome<(Vec<HostField<T>>, Vec<usize>)> {
    let shape = given.shape();
    let own = 4 + T::SHAPE.len();
    let Some(front) = shape.len().checked_sub(own) else {
        return Err(HostField::<T>::from_numbers(shape, numbers(given)?)
            .map(|_| ())
            .err()
            .map_or_else(|| Failure::other("a field has too few axes"), Failure::from));
    };
    let (axes, field) = shape.split_at(front);
    let (count, size) = (axes.iter().product::<usize>(), field.iter().product::<usize>());
    if count == 0 || size == 0 {
        return Err(Failure::input(format!("an array of shape {shape:?} holds no field")));
    }
    let fields = numbers(given)?.chunks_exact(size).map(|one| HostField::from_numbers(field, one));
    Ok((fields.collect::<Result<_, _>>()?, axes.to_vec()))
}

/// Fields as one array with these axes in front.
pub fn stacked<'py, T: Fermion>(py: Python<'py>, axes: &[usize], fields: &[HostField<T>]) -> PyResult<Made<'py>> {
    let Some(first) = fields.first() else { return Err(Failure::other("there are no fields").into()) };
    let shape = [axes, &first.shape()].concat();
    let mut all = Vec::with_capacity(shape.iter().product());
    py.detach(|| fields.iter().for_each(|field| all.extend_from_slice(field.numbers())));
    array(py, &shape, all)
}
