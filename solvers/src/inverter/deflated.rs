//! Deflation by eigenvectors.

use super::Inverter;
use crate::error::SolveError;
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::params::SolverParams;
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Inverter whose initial guess solves the system in a space of eigenvectors; [`deflated`] creates it.
pub struct Deflated<V, I> {
    vectors: Vec<V>,
    eigenvalues: Vec<f64>,
    inner: I,
    residual: Option<V>,
}

/// Creates an inverter that runs `inner` from the initial guess x + Σ_i v_i (v_i, b − A x)/λ_i, where v_i are orthonormal
/// eigenvectors of a Hermitian A and λ_i their eigenvalues. The initial residual of `inner` has no component in their space,
/// so CG converges as if A had only the other eigenvalues, until the residual has fallen to the accuracy of the vectors. From
/// there on CG converges as without the vectors, unless [`defect_correcting`](super::defect_correcting) around it deflates
/// anew. The vectors only change the initial guess, so inaccurate vectors cannot make a solution wrong.
///
/// The vectors are in the precise space. For N right-hand sides, a block holds N eigenvectors, and `eigenvalues` has N
/// numbers for each block. Unused places in the last block are zero, with any nonzero eigenvalue. With several right-hand
/// sides, the space must [mix](VectorSpace::mixes_rhs) them.
pub fn deflated<V, I>(vectors: Vec<V>, eigenvalues: Vec<f64>, inner: I) -> Deflated<V, I> {
    Deflated { vectors, eigenvalues, inner, residual: None }
}

impl<Y: System, I: Inverter<Y>> Inverter<Y> for Deflated<Precise<Y>, I> {
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>> {
        let (space, n) = (system.precise(), system.precise().nrhs());
        if self.eigenvalues.len() != n * self.vectors.len() {
            return Err(SolveError::Invalid("deflation needs one eigenvalue for each vector"));
        }
        if self.eigenvalues.iter().any(|value| *value == 0.0 || !value.is_finite()) {
            return Err(SolveError::Invalid("deflation needs finite eigenvalues other than 0"));
        }
        if n > 1 && !space.mixes_rhs() {
            return Err(SolveError::Invalid("deflation of several right-hand sides needs a space that mixes them"));
        }
        if self.residual.is_none() {
            self.residual = Some(space.allocate()?);
        }
        let r = self.residual.as_mut().expect("made above");
        // r = b − A x
        let (mut norm2, mut products) = (vec![0.0; n], vec![Complex64::ZERO; n * n]);
        system.apply(x, r)?;
        space.sub_norm2(b, r, &mut norm2)?;
        // x ← x + Σ v (v, r) / λ
        for (v, eigenvalues) in self.vectors.iter().zip(self.eigenvalues.chunks_exact(n)) {
            if n == 1 {
                space.dot(v, r, &mut products)?
            } else {
                space.gram(v, r, &mut products)?
            };
            products
                .chunks_exact_mut(n)
                .zip(eigenvalues)
                .for_each(|(row, value)| row.iter_mut().for_each(|p| *p /= value));
            if n == 1 {
                space.axpy(&products, v, x)?
            } else {
                space.block_axpy(&products, v, x)?
            };
        }
        let count = |info: &mut Info| {
            info.precise_applications += 1;
            info.precise_rhs += n;
            info.reductions += 1 + self.vectors.len();
            info.flops += n as f64 * system.flops();
        };
        let mut solved = self.inner.invert(system, b, x, params, observer);
        match &mut solved {
            Ok(info) => count(info),
            Err(error) => error.info_mut().into_iter().for_each(count),
        }
        solved
    }
}
