//! Operators on tiny lattices as dense matrices: inverses and eigenvalues without any Krylov space.
use super::even_sites;
use ferrite::field::host::{Fermion, HostField};
use ferrite::lattice::Lattice;
use nalgebra::{DMatrix, DVector};
use num_complex::Complex64;

/// A dense matrix.
pub type DenseMatrix = DMatrix<Complex64>;

/// Returns the places of the numbers of a field.
pub fn all_numbers<T: Fermion>(lattice: Lattice) -> Vec<usize> {
    (0..lattice.volume() * T::COMPONENTS).collect()
}

/// Returns the places of the numbers of a field on even sites.
pub fn even_numbers<T: Fermion>(lattice: Lattice) -> Vec<usize> {
    even_sites(lattice).flat_map(|x| T::COMPONENTS * x..T::COMPONENTS * (x + 1)).collect()
}

/// Returns the numbers of a field at some places.
pub fn chosen<T: Fermion>(field: &HostField<T>, places: &[usize]) -> DVector<Complex64> {
    DVector::from_iterator(places.len(), places.iter().map(|place| field.numbers()[*place]))
}

/// Returns the matrix of a linear map of fields in the numbers at some places: a column is the image of the field with a single 1.
pub fn dense<T: Fermion>(
    lattice: Lattice,
    places: &[usize],
    apply: impl Fn(&HostField<T>) -> HostField<T>,
) -> DenseMatrix {
    let column = |place: &usize| {
        let mut unit = HostField::<T>::zero(lattice);
        unit.numbers_mut()[*place] = Complex64::ONE;
        chosen(&apply(&unit), places)
    };
    DMatrix::from_columns(&places.iter().map(column).collect::<Vec<_>>())
}

/// Returns A⁻¹ x.
///
/// # Panics
/// If A is singular.
pub fn divide(a: &DenseMatrix, x: &DVector<Complex64>) -> DVector<Complex64> {
    a.clone().lu().solve(x).expect("a regular matrix")
}

/// Returns ln |det A|.
pub fn log_determinant(a: &DenseMatrix) -> f64 {
    a.clone().lu().u().diagonal().iter().map(|pivot| pivot.norm().ln()).sum()
}

/// Returns Aᵖ of a positive definite Hermitian matrix.
pub fn power(a: &DenseMatrix, p: f64) -> DenseMatrix {
    let eigen = a.clone().symmetric_eigen();
    let powers = eigen.eigenvalues.map(|value| Complex64::from(value.powf(p)));
    &eigen.eigenvectors * DMatrix::from_diagonal(&powers) * eigen.eigenvectors.adjoint()
}

/// Returns the smallest and the largest eigenvalue of A†A.
pub fn squares_of_singular_values(a: &DenseMatrix) -> [f64; 2] {
    let all = a.singular_values();
    [all.min().powi(2), all.max().powi(2)]
}
