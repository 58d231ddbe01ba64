//! 3×3 matrices on the host: products, distance from SU(3) and U(3), projection to SU(3).
use crate::field::host::{HostGauge, Matrix};
use num_complex::Complex64;
use rayon::prelude::*;

/// Returns the unit matrix.
pub(crate) fn unit() -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| Complex64::from(f64::from(u8::from(i == j)))))
}
/// Computes the matrix product A B.
pub(crate) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j]))
}
/// Computes the Hermitian conjugate A†.
pub(crate) fn adjoint(a: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i].conj()))
}
/// Computes the product A v of a matrix and a vector.
pub(crate) fn times(a: &Matrix, v: &[Complex64; 3]) -> [Complex64; 3] {
    std::array::from_fn(|i| a[i][0] * v[0] + a[i][1] * v[1] + a[i][2] * v[2])
}

/// Returns the distance of a matrix from SU(3): the larger of ‖U U† − 1‖ (Frobenius norm) and |det U − 1|.
pub fn violation(u: &Matrix) -> f64 {
    let third = third_row(&u[0], &u[1]);
    let determinant: Complex64 = (0..3).map(|k| third[k].conj() * u[2][k]).sum();
    let (norm, off) = (violation_of_u3(u), (determinant - 1.0).norm());
    // `f64::max` would ignore a NaN.
    if norm.is_nan() || off.is_nan() { f64::NAN } else { norm.max(off) }
}

/// Returns the distance of a matrix from U(3): the Frobenius norm ‖U U† − 1‖.
pub fn violation_of_u3(u: &Matrix) -> f64 {
    let mut square = 0.0;
    for i in 0..3 {
        for j in 0..3 {
            let product: Complex64 = (0..3).map(|k| u[i][k] * u[j][k].conj()).sum();
            let unit = if i == j { 1.0 } else { 0.0 };
            square += (product - unit).norm_sqr();
        }
    }
    square.sqrt()
}

/// Projects every link to SU(3): Gram–Schmidt orthonormalises rows 0 and 1, and row 2 becomes conj(row 0 × row 1). This removes rounding
/// errors, for example of links that were stored in single precision. A link far from SU(3) becomes some SU(3) matrix.
pub fn reunitarise(gauge: &mut HostGauge) {
    gauge.links_mut().par_iter_mut().for_each(reunitarise_link);
}

impl HostGauge {
    /// Projects every link of the field to SU(3) with [`reunitarise`].
    pub fn reunitarise(&mut self) {
        reunitarise(self);
    }
}

/// Returns the third row of the SU(3) matrix with the first rows `a` and `b`: conj(a × b).
pub(crate) fn third_row(a: &[Complex64; 3], b: &[Complex64; 3]) -> [Complex64; 3] {
    std::array::from_fn(|i| {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        (a[j] * b[k] - a[k] * b[j]).conj()
    })
}

/// Projects a matrix of any size to SU(3) like [`reunitarise`]. Returns false if its first two rows are parallel, nearly parallel, or zero.
pub(crate) fn orthonormalise(u: &mut Matrix) -> bool {
    let norm2 = |row: &[Complex64; 3]| row.iter().map(Complex64::norm_sqr).sum::<f64>();
    let overlap: Complex64 = u[0].iter().zip(&u[1]).map(|(a, b)| a.conj() * b).sum();
    let (first, second) = (norm2(&u[0]), norm2(&u[1]));
    // `sine2` is the squared sine of the angle between the first two rows.
    let sine2 = 1.0 - overlap.norm_sqr() / (first * second);
    let independent = sine2 > 1e-6;
    if independent {
        reunitarise_link(u);
        // After one projection, the second row still contains a part of the first one, of the size of the rounding error divided by the
        // sine. A second projection removes this part.
        if sine2 < 0.01 {
            reunitarise_link(u);
        }
    }
    independent
}

/// Projects a matrix near SU(3) like [`reunitarise`].
pub(crate) fn reunitarise_link(u: &mut Matrix) {
    normalise(&mut u[0]);
    let [first, second, third] = u;
    let overlap: Complex64 = first.iter().zip(&*second).map(|(a, b)| a.conj() * b).sum();
    for (b, a) in second.iter_mut().zip(&*first) {
        *b -= overlap * a;
    }
    normalise(second);
    *third = third_row(first, second);
}

fn normalise(row: &mut [Complex64; 3]) {
    let norm = row.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
    for c in row {
        *c /= norm;
    }
}
