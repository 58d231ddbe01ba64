//! Vectors of numbers in host memory, for operators that have no storage format of their own.

use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Number of terms in a partial sum, which is computed before it is added to the others. Shorter sums have smaller rounding
/// errors, and a fixed length gives reproducible bits.
const PIECE: usize = 256;

/// Space of complex vectors of one length as plain `Vec<Complex64>`, in double precision, for user-defined operators.
///
/// A block of N right-hand sides is one `Vec` of N times the length, ordered by right-hand side. One thread computes sums in
/// a fixed order, so the same input gives the same bits everywhere.
///
/// ```
/// use num_complex::Complex64;
/// use solvers::{CgWorkspace, LengthError, LinearOperator, PlainSpace, SolverParams, Uniform, VectorSpace, cg};
///
/// /// A x(i) = (2 + m²) x(i) − x(i+1) − x(i−1) on a ring.
/// struct Laplace { m2: f64 }
/// impl LinearOperator<PlainSpace> for Laplace {
///     fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
///         let n = x.len();
///         for i in 0..n {
///             out[i] = (2.0 + self.m2) * x[i] - x[(i + 1) % n] - x[(i + n - 1) % n];
///         }
///         Ok(())
///     }
///     fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
///         self.apply(x, out)
///     }
///     fn flops(&self) -> f64 { 6.0 * 64.0 }
/// }
///
/// let (space, operator) = (PlainSpace::new(64), Laplace { m2: 0.1 });
/// let system = Uniform::new(&space, &operator);
/// let (mut b, mut x) = (space.allocate()?, space.allocate()?);
/// b[0] = Complex64::ONE;
/// let info = cg(&system, &b, &mut x, &SolverParams::default(), &mut CgWorkspace::new(&system)?, &mut ())?;
/// assert!(info.converged);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainSpace {
    length: usize,
    nrhs: usize,
}

/// Error of a vector whose length differs from that of its space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a vector has {found} numbers, but its space has {expected}")]
pub struct LengthError {
    /// Number of complex numbers in a block of the space.
    pub expected: usize,
    /// Number of complex numbers in the vector.
    pub found: usize,
}

impl PlainSpace {
    /// Creates a space of vectors of `length` complex numbers, with one right-hand side.
    pub fn new(length: usize) -> Self {
        Self::with_nrhs(length, 1)
    }
    /// Creates a space of blocks of `nrhs` vectors, each of `length` complex numbers. A block has at least one vector.
    pub fn with_nrhs(length: usize, nrhs: usize) -> Self {
        Self { length, nrhs: nrhs.max(1) }
    }
    /// Returns the length of one vector.
    pub fn length(&self) -> usize {
        self.length
    }

    fn check(&self, x: &[Complex64]) -> Result<(), LengthError> {
        let (expected, found) = (self.length * self.nrhs, x.len());
        if expected == found { Ok(()) } else { Err(LengthError { expected, found }) }
    }
    /// Returns Σ_i x_i a_{iN+j} for number `k` of right-hand side j.
    fn mixed(&self, a: &[Complex64], x: &[Complex64], j: usize, k: usize) -> Complex64 {
        (0..self.nrhs).map(|i| x[i * self.length + k] * a[i * self.nrhs + j]).sum()
    }
    /// Returns the numbers of right-hand side j. The length of `x` must have been checked.
    fn part<'a>(&self, x: &'a [Complex64], j: usize) -> &'a [Complex64] {
        &x[j * self.length..][..self.length]
    }
}

impl VectorSpace for PlainSpace {
    type Vector = Vec<Complex64>;
    type Error = LengthError;

    fn nrhs(&self) -> usize {
        self.nrhs
    }
    fn allocate(&self) -> Result<Vec<Complex64>, LengthError> {
        Ok(vec![Complex64::ZERO; self.length * self.nrhs])
    }
    fn zero(&self, x: &mut Vec<Complex64>) -> Result<(), LengthError> {
        self.check(x)?;
        x.fill(Complex64::ZERO);
        Ok(())
    }
    fn copy(&self, from: &Vec<Complex64>, to: &mut Vec<Complex64>) -> Result<(), LengthError> {
        self.check(from)?;
        self.check(to)?;
        to.copy_from_slice(from);
        Ok(())
    }
    fn axpby(
        &self,
        a: &[Complex64],
        x: &Vec<Complex64>,
        b: &[Complex64],
        y: &mut Vec<Complex64>,
    ) -> Result<(), LengthError> {
        self.check(x)?;
        self.check(y)?;
        for (j, (a, b)) in a.iter().zip(b).enumerate() {
            let y = y[j * self.length..][..self.length].iter_mut();
            for (x, y) in self.part(x, j).iter().zip(y) {
                // With b = 0 the old value is not read, because it may be NaN.
                *y = if *b == Complex64::ZERO { a * x } else { a * x + b * *y };
            }
        }
        Ok(())
    }
    fn norm2(&self, x: &Vec<Complex64>, out: &mut [f64]) -> Result<(), LengthError> {
        self.check(x)?;
        for (j, out) in out.iter_mut().enumerate() {
            let pieces = self.part(x, j).chunks(PIECE);
            *out = pieces.map(|piece| piece.iter().map(|x| x.norm_sqr()).sum::<f64>()).sum();
        }
        Ok(())
    }
    fn dot(&self, x: &Vec<Complex64>, y: &Vec<Complex64>, out: &mut [Complex64]) -> Result<(), LengthError> {
        self.check(x)?;
        self.check(y)?;
        for (j, out) in out.iter_mut().enumerate() {
            let pieces = self.part(x, j).chunks(PIECE).zip(self.part(y, j).chunks(PIECE));
            *out = pieces.map(|(x, y)| x.iter().zip(y).map(|(x, y)| x.conj() * y).sum::<Complex64>()).sum();
        }
        Ok(())
    }
    fn mixes_rhs(&self) -> bool {
        true
    }
    fn gram(&self, x: &Vec<Complex64>, y: &Vec<Complex64>, out: &mut [Complex64]) -> Result<(), LengthError> {
        self.check(x)?;
        self.check(y)?;
        for (at, out) in out.iter_mut().enumerate() {
            let (x, y) = (self.part(x, at / self.nrhs), self.part(y, at % self.nrhs));
            let pieces = x.chunks(PIECE).zip(y.chunks(PIECE));
            *out = pieces.map(|(x, y)| x.iter().zip(y).map(|(x, y)| x.conj() * y).sum::<Complex64>()).sum();
        }
        Ok(())
    }
    fn block_axpy(&self, a: &[Complex64], x: &Vec<Complex64>, y: &mut Vec<Complex64>) -> Result<(), LengthError> {
        self.check(x)?;
        self.check(y)?;
        for (at, y) in y.iter_mut().enumerate() {
            *y += self.mixed(a, x, at / self.length, at % self.length);
        }
        Ok(())
    }
    fn block_scale(&self, a: &[Complex64], x: &Vec<Complex64>, y: &mut Vec<Complex64>) -> Result<(), LengthError> {
        self.check(x)?;
        self.check(y)?;
        for (at, y) in y.iter_mut().enumerate() {
            *y = self.mixed(a, x, at / self.length, at % self.length);
        }
        Ok(())
    }
}
