//! Hermitian 3×3 matrices and their eigenvalues.
use super::{Complex, Real, Su3, complex};

/// A Hermitian 3×3 matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hermitian<T> {
    /// Elements of the diagonal, which are real.
    pub diagonal: [T; 3],
    /// Elements (0, 1), (0, 2) and (1, 2) of the matrix. The elements below the diagonal are their complex conjugates.
    pub upper: [Complex<T>; 3],
}

/// Rotation between two axes p and q: e_p ← c e_p − s* e_q, e_q ← s e_p + c e_q.
#[derive(Clone, Copy)]
struct Rotation<T> {
    cos: T,
    sin: Complex<T>,
    /// Increase of the eigenvalue of q, equal to the decrease of that of p.
    gain: T,
}

/// Returns the rotation that makes z = H_pq vanish, by the smaller of two angles (Jacobi 1846): with d = (H_qq − H_pp)/2 its
/// tangent is sign(d) |z| / (|d| + √(d² + |z|²)). For z = 0 it is the identity.
#[inline(always)]
fn rotation<T: Real>(p: T, q: T, z: Complex<T>) -> Rotation<T> {
    let d = (q - p) * T::from_f64(0.5);
    let (sign, size) = (d.where_positive(T::ONE, -T::ONE), d.where_positive(d, -d));
    // The floor is far below rounding; it changes 0/0 to 0. The rotation remains unitary, because the floor changes
    // only its angle.
    let floor = T::from_f64(1e-18) * (p.where_positive(p, -p) + q.where_positive(q, -q)) + T::from_f64(1e-37);
    let factor = sign * (size + d.mul_add(d, z.norm_sqr()).sqrt_or_zero() + floor).reciprocal();
    let tangent = z.scale(factor);
    let cos = (T::ONE + tangent.norm_sqr()).sqrt_or_zero().reciprocal();
    let gain = tangent.re.mul_add(z.re, tangent.im * z.im);
    Rotation { cos, sin: tangent.scale(cos), gain }
}

impl<T: Real> Rotation<T> {
    /// c x − s y
    #[inline(always)]
    fn first(&self, x: Complex<T>, y: Complex<T>) -> Complex<T> {
        (-self.sin).mul_add(y, x.scale(self.cos))
    }
    /// c x − s* y
    #[inline(always)]
    fn first_conj(&self, x: Complex<T>, y: Complex<T>) -> Complex<T> {
        (-self.sin.conj()).mul_add(y, x.scale(self.cos))
    }
    /// s x + c y
    #[inline(always)]
    fn second(&self, x: Complex<T>, y: Complex<T>) -> Complex<T> {
        self.sin.mul_add(x, y.scale(self.cos))
    }
    /// s* x + c y
    #[inline(always)]
    fn second_conj(&self, x: Complex<T>, y: Complex<T>) -> Complex<T> {
        self.sin.conj().mul_add(x, y.scale(self.cos))
    }
}

impl<T: Real> Hermitian<T> {
    /// Returns the Hermitian part (X + X†)/2 of a matrix X.
    #[inline(always)]
    pub fn part_of(x: Su3<T>) -> Self {
        let x = x.0;
        macro_rules! element {
            ($j:literal, $k:literal) => {
                (x[$j][$k] + x[$k][$j].conj()).scale(T::from_f64(0.5))
            };
        }
        Hermitian {
            diagonal: [x[0][0].re, x[1][1].re, x[2][2].re],
            upper: [element!(0, 1), element!(0, 2), element!(1, 2)],
        }
    }
    /// Returns the eigenvalues h_k, in no particular order, and the unitary matrix E whose columns are the
    /// eigenvectors, so that H = E diag(h) E†. Jacobi rotations keep E unitary to rounding. Small eigenvalues have the
    /// same absolute accuracy as large ones, even if they are close to each other.
    #[inline(always)]
    pub fn eigen(self) -> ([T; 3], Su3<T>) {
        // Off-diagonal elements decrease quadratically, and finally cubically. Five rounds are enough in double
        // precision; the sixth is a safety margin.
        const ROUNDS: u32 = 6;
        let [mut h0, mut h1, mut h2] = self.diagonal;
        let [mut a, mut b, mut c] = self.upper;
        let mut e = Su3::unit().0;
        // Rotates columns p and q of E, row by row.
        macro_rules! turn {
            ($r:ident, $p:literal, $q:literal) => {{
                turn!(@row $r, 0, $p, $q);
                turn!(@row $r, 1, $p, $q);
                turn!(@row $r, 2, $p, $q);
            }};
            (@row $r:ident, $row:literal, $p:literal, $q:literal) => {
                (e[$row][$p], e[$row][$q]) =
                    ($r.first_conj(e[$row][$p], e[$row][$q]), $r.second(e[$row][$p], e[$row][$q]))
            };
        }
        let mut round = 0;
        while round < ROUNDS {
            let r = rotation(h0, h1, a);
            (h0, h1, a) = (h0 - r.gain, h1 + r.gain, Complex::ZERO);
            (b, c) = (r.first(b, c), r.second_conj(b, c));
            turn!(r, 0, 1);
            let r = rotation(h0, h2, b);
            (h0, h2, b) = (h0 - r.gain, h2 + r.gain, Complex::ZERO);
            (a, c) = (r.first(a, c.conj()), r.second(a.conj(), c));
            turn!(r, 0, 2);
            let r = rotation(h1, h2, c);
            (h1, h2, c) = (h1 - r.gain, h2 + r.gain, Complex::ZERO);
            (a, b) = (r.first_conj(a, b), r.second(a, b));
            turn!(r, 1, 2);
            round += 1;
        }
        ([h0, h1, h2], Su3(e))
    }
    /// Returns the matrix with all nine elements.
    #[inline(always)]
    pub fn matrix(self) -> Su3<T> {
        let ([d, e, f], [a, b, c]) = (self.diagonal, self.upper);
        let real = |x: T| complex(x, T::ZERO);
        Su3([[real(d), a, b], [a.conj(), real(e), c], [b.conj(), c.conj(), real(f)]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(x: Su3<f64>) -> f64 {
        x.0.iter().flatten().map(|z| z.norm_sqr().sqrt()).fold(0.0, f64::max)
    }

    /// Checks eigenvalues of all sizes, distinct and equal ones, diagonal matrices and zero.
    #[test]
    fn eigenvectors_are_unitary_and_make_up_the_matrix() {
        let off = |scale: f64| [complex(0.3 * scale, -0.2 * scale), complex(-0.7 * scale, 0.1), complex(0.05, scale)];
        let cases = [
            Hermitian { diagonal: [1.0, 2.0, -0.5], upper: off(1.0) },
            Hermitian { diagonal: [1.0, 1.0, 1.0], upper: off(1e-9) },
            Hermitian { diagonal: [1.0, 1.0, 1.0], upper: [Complex::ZERO; 3] },
            Hermitian { diagonal: [1.0, 1.0 + 1e-15, 1.0], upper: [complex(1e-200, 0.0); 3] },
            Hermitian { diagonal: [0.0; 3], upper: [complex(1.0, 0.0), complex(0.0, 1.0), complex(0.3, 0.3)] },
            Hermitian { diagonal: [1e-7, 1.0, 3.0], upper: [complex(1e-8, 0.0), Complex::ZERO, complex(0.0, 1e-3)] },
            Hermitian { diagonal: [0.0; 3], upper: [Complex::ZERO; 3] },
        ];
        for matrix in cases {
            let (h, e) = matrix.eigen();
            assert!(largest(e.adjoint() * e - Su3::unit()) < 3e-15, "{matrix:?}");
            let made = e * Hermitian { diagonal: h, upper: [Complex::ZERO; 3] }.matrix() * e.adjoint();
            let size = largest(matrix.matrix());
            assert!(largest(made - matrix.matrix()) <= 4e-15 * size, "{matrix:?}: {made:?}");
        }
    }
}
