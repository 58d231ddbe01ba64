//! A fixed number of MR (minimum residual) sweeps: the block solver of the Schwarz preconditioner (Babich et al. 2011, section 8.1).

use crate::compact::narrow_both;
use crate::error::SolveError;
use crate::preconditioner::{Preconditioner, Work};
use crate::traits::{LinearOperator, VectorSpace};
use num_complex::Complex64;
use std::cell::RefCell;

/// Parameters of [`MinimumResidual`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MrParams {
    /// Number n of steps; each takes one application. Babich et al. 2011 use 10 steps.
    pub steps: usize,
    /// Relaxation ω between 0 and 2: the length of each step relative to the step that reaches the minimum. A value above 1
    /// is over-relaxation, which may be faster if several steps follow each other.
    pub omega: f64,
}

impl Default for MrParams {
    fn default() -> Self {
        Self { steps: 10, omega: 1.0 }
    }
}

/// Minimum residual with n steps from z = 0, as a preconditioner for a space with the same vectors as `D`.
///
/// With ρ = r on entry, each step is t = A ρ, α = ω (t, ρ)/‖t‖², z ← z + α ρ, ρ ← ρ − α t. It takes one application, which
/// also computes the sums, and one pass over memory. The method has no tolerance and no test of convergence, so that all
/// processes take the same number of steps without communication about it.
///
/// # Additive Schwarz
/// On a [space of domains](VectorSpace#sums-over-domains) with an operator that ends at the faces of the domains, the method
/// solves each domain independently, with its own α. This is the Schwarz preconditioner, or block Jacobi if domains do not
/// overlap. On a space of whole vectors with the full operator it is plain MR.
///
/// # Numbers
/// A domain without a finite α keeps its z. In the first step its z becomes its r instead (A_d r_d = 0, or an overflow, or
/// r_d = 0). The failure does not affect the other domains, and is not an error. NaN in r_d itself remains in z_d, where the
/// outer solver detects it.
pub struct MinimumResidual<'a, D: VectorSpace, A: ?Sized> {
    space: &'a D,
    operator: &'a A,
    params: MrParams,
    local: bool,
    /// Whether later applications use the α of the first one.
    fixed: bool,
    memory: RefCell<MrMemory<D>>,
}

struct MrMemory<D: VectorSpace> {
    vectors: [D::Vector; 2],
    alpha: Vec<Complex64>,
    left: Vec<Complex64>,
    right: Vec<Complex64>,
    dots: Vec<Complex64>,
    norm2: Vec<f64>,
    /// α of each step of an earlier application, ordered by step; empty if there are none, or if they are not valid.
    kept: Vec<Complex64>,
}

impl<D: VectorSpace> MrMemory<D> {
    /// Resizes the scalars to `n`, the number of right-hand sides in domains.
    fn resize(&mut self, n: usize) {
        let Self { alpha, left, right, dots, norm2, .. } = self;
        [alpha, left, right, dots].into_iter().for_each(|v| v.resize(n, Complex64::ZERO));
        norm2.resize(n, 0.0);
        self.kept.clear();
    }
}

impl<'a, D: VectorSpace, A: LinearOperator<D> + ?Sized> MinimumResidual<'a, D, A> {
    /// Creates an additive Schwarz preconditioner from an operator that stays within domains, on the space of these domains.
    /// Allocates two blocks.
    ///
    /// # Errors
    /// `Invalid` if `params` has no steps or an ω that is not between 0 and 2; `Backend`.
    pub fn on_domains(space: &'a D, operator: &'a A, params: MrParams) -> Result<Self, SolveError<D::Error>> {
        Self::new(space, operator, params, true)
    }

    /// Creates a preconditioner from an operator that acts on whole vectors, with sums over all of their elements.
    /// Allocates two blocks.
    ///
    /// # Errors
    /// The errors of [`on_domains`](MinimumResidual::on_domains).
    pub fn on_whole(space: &'a D, operator: &'a A, params: MrParams) -> Result<Self, SolveError<D::Error>> {
        Self::new(space, operator, params, false)
    }

    fn new(space: &'a D, operator: &'a A, params: MrParams, local: bool) -> Result<Self, SolveError<D::Error>> {
        if params.steps == 0 {
            return Err(SolveError::Invalid("minimum residual needs at least one step"));
        }
        if !(params.omega > 0.0 && params.omega < 2.0) {
            return Err(SolveError::Invalid("the relaxation ω of minimum residual must be between 0 and 2"));
        }
        let mut memory = MrMemory {
            vectors: [space.allocate()?, space.allocate()?],
            alpha: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
            dots: Vec::new(),
            norm2: Vec::new(),
            kept: Vec::new(),
        };
        memory.resize(space.nrhs());
        Ok(Self { space, operator, params, local, fixed: false, memory: RefCell::new(memory) })
    }
}

impl<D: VectorSpace, A: ?Sized> MinimumResidual<'_, D, A> {
    /// Returns the preconditioner in a form that uses the α of its first application in all later ones, which therefore
    /// need no sums. Each application is then the same polynomial in A. Smoothing is as good, because the residuals are
    /// similar. The α are measured again if one of them is 0, or for another number of right-hand sides.
    #[must_use]
    pub fn with_fixed_steps(self) -> Self {
        Self { fixed: true, ..self }
    }
}

impl<S, D, A> Preconditioner<S> for MinimumResidual<'_, D, A>
where
    S: VectorSpace,
    D: VectorSpace<Vector = S::Vector, Error = S::Error>,
    A: LinearOperator<D> + ?Sized,
{
    fn apply(&self, _: &S, r: &S::Vector, _: &[f64], z: &mut S::Vector) -> Result<Work, S::Error> {
        let MrMemory { vectors: [rho, t], alpha, left, right, dots, norm2, kept } = &mut *self.memory.borrow_mut();
        let (space, MrParams { steps, omega }) = (self.space, self.params);
        let measure = kept.len() != steps * alpha.len();
        if measure {
            kept.clear();
        }
        let mut done = 0;
        let mut step = |rho: &S::Vector, t: &mut S::Vector, alpha: &mut [Complex64]| -> Result<(), S::Error> {
            let of_step = done * alpha.len();
            done += 1;
            if !measure {
                alpha.copy_from_slice(&kept[of_step..][..alpha.len()]);
                return self.operator.apply(rho, t);
            }
            self.operator.apply_dot(space, rho, t, rho, dots, norm2)?;
            for (alpha, (dot, norm2)) in alpha.iter_mut().zip(dots.iter().zip(norm2.iter())) {
                // (t, ρ) = conj (ρ, t). If the quotient is 0/0 or not finite, α is 0 and no step is taken.
                let quotient = omega * dot.conj() / norm2;
                *alpha = if quotient.is_finite() { quotient } else { Complex64::ZERO };
            }
            if self.fixed && !alpha.contains(&Complex64::ZERO) {
                kept.extend_from_slice(alpha);
            }
            Ok(())
        };

        // z is 0 at the start, so the residual is r and z is not read.
        step(r, t, alpha)?;
        right.fill(Complex64::ZERO);
        for (left, alpha) in left.iter_mut().zip(alpha.iter()) {
            *left = if *alpha == Complex64::ZERO { Complex64::ONE } else { *alpha };
        }
        space.axpby(left, r, right, z)?;
        if steps > 1 {
            left.fill(Complex64::ONE);
            right.iter_mut().zip(alpha.iter()).for_each(|(right, alpha)| *right = -alpha);
            space.axpby(left, r, right, t)?;
        }
        for done in 1..steps {
            std::mem::swap(rho, t);
            step(rho, t, alpha)?;
            if done + 1 < steps {
                space.mr_update(alpha, rho, z, t)?;
            } else {
                // The residual after the last step is not needed.
                space.axpy(alpha, rho, z)?;
            }
        }

        let flops = steps as f64 * self.operator.flops();
        let mut work = Work { calls: 1, iterations: steps, flops, ..Work::default() };
        let reductions = if measure { steps } else { 0 };
        if self.local {
            (work.local_applications, work.local_reductions) = (steps, reductions);
        } else {
            (work.applications, work.reductions) = (steps, reductions);
        }
        Ok(work)
    }
    fn needs_norms(&self) -> bool {
        false
    }
    /// Narrows if the space and the operator can. Domains cannot be narrowed, because their space has its own order of
    /// right-hand sides.
    fn narrow(&self, nrhs: usize) -> bool {
        let can = !self.local && narrow_both(self.space, self.operator, nrhs);
        if can {
            self.memory.borrow_mut().resize(self.space.nrhs());
        }
        can
    }
}
