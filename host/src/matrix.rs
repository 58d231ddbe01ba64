//! Products of 3×3 matrices on the host.
use crate::field::host::Matrix;
use num_complex::Complex64;

/// 1
pub(crate) fn unit() -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| Complex64::from(f64::from(u8::from(i == j)))))
}
/// A B
pub(crate) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j]))
}
/// A†
pub(crate) fn adjoint(a: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i].conj()))
}
/// A v
pub(crate) fn times(a: &Matrix, v: &[Complex64; 3]) -> [Complex64; 3] {
    std::array::from_fn(|i| a[i][0] * v[0] + a[i][1] * v[1] + a[i][2] * v[2])
}
