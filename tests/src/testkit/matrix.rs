//! Square matrices as arrays of rows: on colour, on spin, or on both.
use crate::report::larger;
use nalgebra::DMatrix;
use num_complex::Complex64;
use std::array::from_fn;

/// An N×N matrix by rows.
pub type Square<const N: usize> = [[Complex64; N]; N];

/// The matrix with the elements f(i, j).
pub fn from_elements<const N: usize>(f: impl Fn(usize, usize) -> Complex64) -> Square<N> {
    from_fn(|i| from_fn(|j| f(i, j)))
}
/// 1
pub fn unit<const N: usize>() -> Square<N> {
    from_elements(|i, j| f64::from(u8::from(i == j)).into())
}
/// A†
pub fn adjoint<const N: usize>(a: &Square<N>) -> Square<N> {
    from_elements(|i, j| a[j][i].conj())
}
/// A B
pub fn multiply<const N: usize>(a: &Square<N>, b: &Square<N>) -> Square<N> {
    from_elements(|i, j| (0..N).map(|k| a[i][k] * b[k][j]).sum())
}
/// A + `factor` B
pub fn add<const N: usize>(a: &Square<N>, factor: Complex64, b: &Square<N>) -> Square<N> {
    from_elements(|i, j| a[i][j] + factor * b[i][j])
}
/// `factor` A
pub fn scale<const N: usize>(factor: Complex64, a: &Square<N>) -> Square<N> {
    a.map(|row| row.map(|z| factor * z))
}
/// tr A
pub fn trace<const N: usize>(a: &Square<N>) -> Complex64 {
    (0..N).map(|i| a[i][i]).sum()
}
/// A x
pub fn apply<const N: usize>(a: &Square<N>, x: &[Complex64; N]) -> [Complex64; N] {
    from_fn(|i| (0..N).map(|k| a[i][k] * x[k]).sum())
}
/// The traceless anti-Hermitian part (A − A†)/2 − tr (A − A†)/2N.
pub fn anti_hermitian<const N: usize>(a: &Square<N>) -> Square<N> {
    let half = scale(0.5.into(), &add(a, -Complex64::ONE, &adjoint(a)));
    add(&half, -trace(&half) / N as f64, &unit())
}
/// exp A by its power series, until a term changes nothing.
pub fn exponential<const N: usize>(a: &Square<N>) -> Square<N> {
    let (mut term, mut sum) = (unit(), unit());
    for n in 1..100 {
        term = scale((1.0 / f64::from(n)).into(), &multiply(&term, a));
        if farthest(term.as_flattened(), &[Complex64::ZERO; 144]) < 1e-18 {
            break;
        }
        sum = add(&sum, Complex64::ONE, &term);
    }
    sum
}
/// A⁻¹
///
/// # Panics
/// If A is singular.
pub fn invert<const N: usize>(a: &Square<N>) -> Square<N> {
    let inverse = DMatrix::from_fn(N, N, |i, j| a[i][j]).try_inverse().expect("a regular matrix");
    from_elements(|i, j| inverse[(i, j)])
}
/// det A
pub fn determinant<const N: usize>(a: &Square<N>) -> Complex64 {
    DMatrix::from_fn(N, N, |i, j| a[i][j]).determinant()
}
/// Re tr A† B
pub fn real_product<const N: usize>(a: &Square<N>, b: &Square<N>) -> f64 {
    a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| (a.conj() * b).re).sum()
}
/// The largest |a − b| of numbers in pairs, NaN if there is one.
pub fn farthest(a: &[Complex64], b: &[Complex64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, larger)
}
