//! Operators on tiny lattices as dense matrices: inverses and eigenvalues without any Krylov space.
use ferrite::field::host::{Fermion, HostField};
use ferrite::lattice::Lattice;
use num_complex::Complex64;

/// A square matrix, row by row.
#[derive(Clone, Debug)]
pub struct DenseMatrix {
    /// Number of rows.
    pub size: usize,
    /// Elements, row by row.
    pub elements: Vec<Complex64>,
}

impl DenseMatrix {
    /// Returns the matrix of a linear map of fields: column k is the image of the field whose k-th number is 1.
    pub fn of<T: Fermion>(lattice: Lattice, apply: impl Fn(&HostField<T>) -> HostField<T>) -> Self {
        let size = lattice.volume() * T::COMPONENTS;
        let mut elements = vec![Complex64::ZERO; size * size];
        for column in 0..size {
            let mut unit = HostField::<T>::zero(lattice);
            unit.numbers_mut()[column] = Complex64::ONE;
            for (row, value) in apply(&unit).numbers().iter().enumerate() {
                elements[row * size + column] = *value;
            }
        }
        DenseMatrix { size, elements }
    }
    /// Rows and columns of some numbers only.
    #[must_use]
    pub fn restricted(&self, places: &[usize]) -> Self {
        let elements = places.iter().flat_map(|row| places.iter().map(|column| self.at(*row, *column))).collect();
        DenseMatrix { size: places.len(), elements }
    }
    /// An element.
    pub fn at(&self, row: usize, column: usize) -> Complex64 {
        self.elements[row * self.size + column]
    }
    /// A x
    pub fn times(&self, x: &[Complex64]) -> Vec<Complex64> {
        self.elements.chunks(self.size).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }
    /// Inverts the matrix by Gauss-Jordan elimination with row pivoting. Panics for a singular matrix.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let n = self.size;
        let mut rows: Vec<Vec<Complex64>> = (0..n)
            .map(|row| {
                let unit = (0..n).map(|column| if row == column { Complex64::ONE } else { Complex64::ZERO });
                self.elements[row * n..][..n].iter().copied().chain(unit).collect()
            })
            .collect();
        for k in 0..n {
            let size = |row: usize| rows[row][k].norm_sqr();
            let pivot = (k..n).max_by(|a, b| size(*a).total_cmp(&size(*b))).expect("there are rows");
            rows.swap(k, pivot);
            assert!(rows[k][k].norm() > 1e-12, "a singular matrix");
            let scale = rows[k][k].inv();
            rows[k].iter_mut().for_each(|z| *z *= scale);
            let own = rows[k].clone();
            for (_, other) in rows.iter_mut().enumerate().filter(|(row, _)| *row != k) {
                let factor = other[k];
                other.iter_mut().zip(&own).for_each(|(z, own)| *z -= factor * own);
            }
        }
        DenseMatrix { size: n, elements: rows.iter().flat_map(|row| row[n..].iter().copied()).collect() }
    }
    /// The eigenvalues of A†A in ascending order: A is made orthogonal by rotations of pairs of columns (one-sided Jacobi; Hestenes
    /// 1958), whose norms then are the singular values.
    pub fn squares_of_singular_values(&self) -> Vec<f64> {
        let n = self.size;
        let mut columns: Vec<Vec<Complex64>> =
            (0..n).map(|column| (0..n).map(|row| self.at(row, column)).collect()).collect();
        for _ in 0..60 {
            let mut largest: f64 = 0.0;
            for p in 0..n {
                for q in p + 1..n {
                    let (left, right) = columns.split_at_mut(q);
                    let (a, b) = (&mut left[p], &mut right[0]);
                    let square = |x: &[Complex64]| x.iter().map(Complex64::norm_sqr).sum::<f64>();
                    let (alpha, beta) = (square(a), square(b));
                    let gamma: Complex64 = a.iter().zip(b.iter()).map(|(a, b)| a.conj() * b).sum();
                    let off = gamma.norm() / (alpha * beta).sqrt();
                    if off < 1e-15 || off.is_nan() {
                        continue;
                    }
                    largest = largest.max(off);
                    let phase = gamma / gamma.norm();
                    let zeta = (beta - alpha) / (2.0 * gamma.norm());
                    let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                    let c = 1.0 / (1.0 + t * t).sqrt();
                    let s = c * t;
                    for (a, b) in a.iter_mut().zip(b.iter_mut()) {
                        let turned = *b * phase.conj();
                        (*a, *b) = (*a * c - turned * s, *a * s + turned * c);
                    }
                }
            }
            if largest < 1e-13 {
                break;
            }
        }
        let mut all: Vec<f64> = columns.iter().map(|x| x.iter().map(Complex64::norm_sqr).sum()).collect();
        all.sort_by(f64::total_cmp);
        all
    }
}
