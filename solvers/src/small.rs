//! Small dense N × N matrices, stored by rows, for the host part of block methods.

use nalgebra::DMatrixView;
use num_complex::Complex64;

/// Returns a view of the transpose of `a`: nalgebra stores matrices by columns.
fn transposed(n: usize, a: &[Complex64]) -> DMatrixView<'_, Complex64> {
    DMatrixView::from_slice(a, n, n)
}

/// Returns the matrix product a b.
pub(crate) fn product(n: usize, a: &[Complex64], b: &[Complex64]) -> Vec<Complex64> {
    (transposed(n, b) * transposed(n, a)).as_slice().to_vec()
}

/// Returns the Hermitian conjugate a†.
pub(crate) fn adjoint(n: usize, a: &[Complex64]) -> Vec<Complex64> {
    transposed(n, a).adjoint().as_slice().to_vec()
}

/// Returns −a.
pub(crate) fn minus(a: &[Complex64]) -> Vec<Complex64> {
    a.iter().map(|a| -a).collect()
}

/// Factorised Gram matrix G = W†W of a block W: W = Q S with Q†Q = 1, and Q = W T.
///
/// The factorisation is Cholesky's with pivots, on G scaled to a unit diagonal. A pivot is the squared sine of the angle
/// between a vector and the vectors taken before it. If all remaining pivots are at or below a threshold, their vectors are
/// *dropped*: their columns of Q, rows of S and columns of T are zero. Their columns of S contain their components in the
/// space of the other vectors.
pub(crate) struct GramFactor {
    /// Matrix S of W = Q S.
    pub s: Vec<Complex64>,
    /// Matrix T of Q = W T.
    pub t: Vec<Complex64>,
    /// Whether each vector of Q is nonzero.
    pub kept: Vec<bool>,
    /// Smallest accepted pivot; 1 if there is none.
    pub smallest: f64,
    /// First vector that was dropped, and its pivot in the units of G.
    pub dropped: Option<(usize, f64)>,
}

impl GramFactor {
    /// Factorises the Hermitian part of `g` in the rows and columns selected by `there`, whose entries must be finite. Drops
    /// vectors whose scaled pivot is at or below `threshold`, or with G_jj ≤ `floor`.
    pub fn new(n: usize, g: &[Complex64], there: &[bool], threshold: f64, floor: f64) -> Self {
        let norm2 = |j: usize| g[j * n + j].re;
        let usable: Vec<bool> = (0..n).map(|j| there[j] && norm2(j) > floor).collect();
        let root: Vec<f64> = (0..n).map(|j| if usable[j] { norm2(j).sqrt() } else { 1.0 }).collect();
        let mut factor = Self {
            s: vec![Complex64::ZERO; n * n],
            t: vec![Complex64::ZERO; n * n],
            kept: vec![false; n],
            smallest: 1.0,
            dropped: (0..n).find(|&j| there[j] && !usable[j]).map(|j| (j, norm2(j))),
        };
        let Self { s, t, kept, smallest, dropped } = &mut factor;
        let mut rest: Vec<f64> = usable.iter().map(|usable| if *usable { 1.0 } else { 0.0 }).collect();
        let mut order: Vec<usize> = Vec::with_capacity(n);
        loop {
            let left = (0..n).filter(|&j| usable[j] && !kept[j]);
            // Of several equal pivots the first is taken, so that the result is reproducible.
            let Some(k) = left.reduce(|k, j| if rest[j] > rest[k] { j } else { k }) else { break };
            // The loop also ends if the pivot is NaN.
            if rest[k].partial_cmp(&threshold) != Some(std::cmp::Ordering::Greater) {
                *dropped = dropped.or(Some((k, rest[k] * norm2(k))));
                break;
            }
            *smallest = smallest.min(rest[k]);
            let pivot = rest[k].sqrt();
            s[k * n + k] = pivot.into();
            for j in (0..n).filter(|&j| usable[j] && !kept[j] && j != k) {
                let entry = 0.5 * (g[k * n + j] + g[j * n + k].conj()) / (root[k] * root[j]);
                let known: Complex64 = order.iter().map(|&i| s[i * n + k].conj() * s[i * n + j]).sum();
                s[k * n + j] = (entry - known) / pivot;
                rest[j] -= s[k * n + j].norm_sqr();
            }
            // T_k = (e_k − Σ T_i S_ik) / S_kk
            for row in 0..n {
                let known: Complex64 = order.iter().map(|&i| t[row * n + i] * s[i * n + k]).sum();
                let unit = if row == k { Complex64::ONE } else { Complex64::ZERO };
                t[row * n + k] = (unit - known) / pivot;
            }
            kept[k] = true;
            order.push(k);
        }
        for at in 0..n * n {
            s[at] *= root[at % n];
            t[at] /= root[at / n];
        }
        factor
    }

    /// Returns G⁻¹ = T T† in the rows and columns that were kept, and zero in the others.
    pub fn inverse(&self) -> Vec<Complex64> {
        let n = self.kept.len();
        product(n, &self.t, &adjoint(n, &self.t))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gram(n: usize, vectors: &[Vec<Complex64>]) -> Vec<Complex64> {
        let dot = |x: &[Complex64], y: &[Complex64]| x.iter().zip(y).map(|(x, y)| x.conj() * y).sum::<Complex64>();
        (0..n * n).map(|at| dot(&vectors[at / n], &vectors[at % n])).collect()
    }

    /// Returns vectors of pseudo-random numbers.
    fn vectors(n: usize, length: usize) -> Vec<Vec<Complex64>> {
        let number = |k: usize| ((k * k * 7919 + 31 * k) % 1009) as f64 / 504.5 - 1.0;
        let entry = |j: usize, i: usize| Complex64::new(number(j * 101 + i), number(j * 37 + 3 * i + 500));
        (0..n).map(|j| (0..length).map(|i| entry(j, i)).collect()).collect()
    }

    #[test]
    fn factors_are_those_of_the_gram_matrix() {
        let n = 5;
        let mut vectors = vectors(n, 30);
        // Sizes that differ by powers of ten.
        vectors[2].iter_mut().for_each(|v| *v *= 1e-9);
        let g = gram(n, &vectors);
        let factor = GramFactor::new(n, &g, &[true; 5], 1e-12, 0.0);
        assert!(factor.kept.iter().all(|kept| *kept) && factor.dropped.is_none());
        let back = product(n, &adjoint(n, &factor.s), &factor.s);
        let one = product(n, &factor.s, &factor.t);
        let solved = product(n, &factor.inverse(), &g);
        for i in 0..n {
            for j in 0..n {
                let size = (g[i * n + i].re * g[j * n + j].re).sqrt();
                assert!((back[i * n + j] - g[i * n + j]).norm() < 1e-13 * size);
                let unit = if i == j { 1.0 } else { 0.0 };
                assert!((one[i * n + j] - unit).norm() < 1e-12, "{i} {j}");
                let ratio = (g[j * n + j].re / g[i * n + i].re).sqrt();
                assert!((solved[i * n + j] - unit).norm() < 1e-12 * ratio.max(1.0), "{i} {j}");
            }
        }
    }

    #[test]
    fn what_depends_on_others_is_dropped_and_known_by_them() {
        let n = 4;
        let mut vectors = vectors(n, 20);
        vectors[3] = vectors[1].iter().map(|v| v * 3.0).collect();
        vectors[0].fill(Complex64::ZERO);
        let factor = GramFactor::new(n, &gram(n, &vectors), &[true; 4], 1e-12, 0.0);
        assert_eq!(factor.kept, [false, true, true, false]);
        for i in 0..n {
            // The fourth vector is three times the second in every row of S, and row and column of what was dropped vanish.
            assert!((factor.s[i * n + 3] - 3.0 * factor.s[i * n + 1]).norm() < 1e-12);
            assert!(factor.s[3 * n + i] == Complex64::ZERO && factor.s[i] == Complex64::ZERO);
            assert!(factor.t[i * n + 3] == Complex64::ZERO && factor.t[i * n] == Complex64::ZERO);
        }
        // Entries of a vector that is not selected are ignored.
        let mut g = gram(n, &vectors);
        (0..n).for_each(|i| (g[i * n], g[i]) = (f64::NAN.into(), f64::NAN.into()));
        let factor = GramFactor::new(n, &g, &[false, true, true, true], 1e-12, 0.0);
        assert_eq!(factor.kept, [false, true, true, false]);
    }

    #[test]
    fn an_indefinite_matrix_has_a_pivot_that_says_so() {
        // Eigenvalues 3 and −1, and a diagonal that shows nothing.
        let g = [1.0, 2.0, 2.0, 1.0].map(Complex64::from);
        let factor = GramFactor::new(2, &g, &[true; 2], 1e-14, 0.0);
        assert!(matches!(factor.dropped, Some((1, pivot)) if (pivot + 3.0).abs() < 1e-14), "{:?}", factor.dropped);
    }
}
