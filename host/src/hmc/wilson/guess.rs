//! Initial guesses of solutions from previous ones (Brower, Ivanenko, Levi and Orginos 1997).
use super::solver::ComplementSolver;
use crate::domain::Result;
use crate::field::{DeviceField, FieldSpace};
use num_complex::Complex64;
use solvers::{LinearOperator, VectorSpace};
use std::cell::RefCell;
use std::collections::VecDeque;

/// The last solutions X of M̂†M̂ X = b in a trajectory, the newest first.
pub(super) struct Guesses {
    most: usize,
    solutions: RefCell<VecDeque<DeviceField>>,
}

/// Part of the norm of a vector, orthogonal to the others, below which the vector is treated as linearly dependent.
const NEW: f64 = 1e-8;

impl Guesses {
    /// Makes an empty store for at most `most` solutions; with 0, no solution is stored.
    pub fn new(most: usize) -> Self {
        Guesses { most, solutions: RefCell::default() }
    }
    /// Drops all stored solutions. The caller must do this before it stores solutions of another system or of another trajectory.
    pub fn clear(&self) {
        self.solutions.borrow_mut().clear();
    }
    /// Stores a copy of a solution; if the store is full, the oldest solution is dropped.
    pub fn keep(&self, space: &FieldSpace, x: &DeviceField) -> Result {
        if self.most == 0 {
            return Ok(());
        }
        let mut solutions = self.solutions.borrow_mut();
        let mut copy = if solutions.len() == self.most { solutions.pop_back() } else { None };
        let mut copy = match copy.take() {
            Some(oldest) => oldest,
            None => space.allocate()?,
        };
        space.copy(x, &mut copy)?;
        solutions.push_front(copy);
        Ok(())
    }
    /// *Collective.* Returns the combination x of the stored solutions for which x† M̂†M̂ x − 2 Re b† x is smallest; `None` without
    /// solutions.
    pub fn guess(&self, system: &ComplementSolver<'_>, b: &DeviceField) -> Result<Option<DeviceField>> {
        let (space, solutions) = (&system.space, self.solutions.borrow());
        let norm = |x: &DeviceField| -> Result<f64> {
            let mut norm2 = [0.0];
            space.norm2(x, &mut norm2)?;
            Ok(norm2[0].sqrt())
        };
        let dot = |x: &DeviceField, y: &DeviceField| -> Result<Complex64> {
            let mut dot = [Complex64::ZERO];
            space.dot(x, y, &mut dot)?;
            Ok(dot[0])
        };
        let one = [Complex64::ONE];
        // `basis` becomes an orthonormal basis of the space that the solutions span, and `images` become the vectors M̂ v for its vectors
        // v. Each vector is orthogonalised twice because of rounding.
        let (mut basis, mut images): (Vec<DeviceField>, Vec<DeviceField>) = (Vec::new(), Vec::new());
        for solution in solutions.iter() {
            let (mut v, mut image) = (space.allocate()?, space.allocate()?);
            space.copy(solution, &mut v)?;
            let before = norm(&v)?;
            for _ in 0..2 {
                for other in &basis {
                    space.axpby(&[-dot(other, &v)?], other, &one, &mut v)?;
                }
            }
            let left = norm(&v)?;
            // Vectors that depend linearly on the others are left out, as are vectors whose norm is NaN.
            if left.is_nan() || left <= NEW * before {
                continue;
            }
            space.axpby(&[Complex64::ZERO], solution, &[Complex64::from(1.0 / left)], &mut v)?;
            system.exact.apply(&v, &mut image)?;
            basis.push(v);
            images.push(image);
        }
        if basis.is_empty() {
            return Ok(None);
        }
        let n = basis.len();
        let mut matrix = vec![vec![Complex64::ZERO; n + 1]; n];
        for i in 0..n {
            for j in 0..n {
                matrix[i][j] = dot(&images[i], &images[j])?;
            }
            matrix[i][n] = dot(&basis[i], b)?;
        }
        let mut guess = space.allocate()?;
        for (factor, v) in solved(matrix).into_iter().zip(&basis) {
            space.axpby(&[factor], v, &one, &mut guess)?;
        }
        Ok(Some(guess))
    }
}

/// Solves A x = b for a positive definite A. The last element of each row is that of b.
fn solved(mut rows: Vec<Vec<Complex64>>) -> Vec<Complex64> {
    let n = rows.len();
    for k in 0..n {
        let pivot = rows[k].clone();
        for row in rows.iter_mut().skip(k + 1) {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(x, above)| *x -= factor * above);
        }
    }
    let mut x = vec![Complex64::ZERO; n];
    for k in (0..n).rev() {
        let known: Complex64 = (k + 1..n).map(|j| rows[k][j] * x[j]).sum();
        x[k] = (rows[k][n] - known) / rows[k][k];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_solved() {
        let z = |re, im| Complex64::new(re, im);
        // Hermitian and positive definite.
        let a = [[z(4.0, 0.0), z(1.0, 2.0)], [z(1.0, -2.0), z(3.0, 0.0)]];
        let x = [z(0.5, -1.0), z(2.0, 0.25)];
        let rows = a.iter().map(|row| vec![row[0], row[1], row[0] * x[0] + row[1] * x[1]]).collect();
        for (found, expected) in solved(rows).into_iter().zip(x) {
            assert!((found - expected).norm() < 1e-14, "{found} {expected}");
        }
    }
}
