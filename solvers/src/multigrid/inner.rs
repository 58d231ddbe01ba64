//! The Krylov solver inside a multigrid cycle: GCR from z = 0, with one reduction in each step.

use super::clear_rhs;
use super::coefficients::Coefficients;
use super::report::{Counters, LevelReport};
use crate::error::SolveError;
use crate::preconditioner::{Preconditioner, Work};
use crate::traits::{LinearOperator, VectorSpace, narrow_all, with_coefficients};
use num_complex::Complex64;
use std::cell::RefCell;
use std::time::Instant;

/// Parameters of [`InnerGcr`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InnerGcrParams {
    /// Maximum number n of directions, at least 1. The solver needs 2 n + 1 blocks of memory.
    pub steps: usize,
    /// Tolerance ε between 0 and 1: a right-hand side is finished when the residual of the recurrence satisfies ‖ρ_j‖ ≤
    /// ε ‖r_j‖.
    pub tol: f64,
}

/// Returns parameters for the coarse levels of a K-cycle: eight directions, and a tenth of the residual.
impl Default for InnerGcrParams {
    fn default() -> Self {
        Self { steps: 8, tol: 0.1 }
    }
}

/// A few steps of flexible GCR for A z = r from z = 0, as a preconditioner inside cycles. Around a [`Level`](crate::Level) it
/// makes the K-cycle (Notay and Vassilevski, Numer. Linear Algebra Appl. 15 (2008) 473). Without a preconditioner, K =
/// [`Identity`](crate::Identity), it is a solver for the coarsest level.
///
/// From ρ₀ = r, step k is
///
/// p_k = K ρ_k, w = A p_k, β_{i,k} = (q_i, w)/γ_i² for i < k, q_k = w − Σ β_{i,k} q_i, γ_k² = ‖w‖² − Σ |β_{i,k}|² γ_i²,
/// α_k = (w, ρ_k)/γ_k², ρ_{k+1} = ρ_k − α_k q_k,
///
/// and at the end z = Σ χ_l p_l with χ_l + Σ_{i>l} β_{l,i} χ_i = α_l. In exact arithmetic this is [`gcr`](crate::gcr())
/// without restarts (Eisenstat, Elman and Schultz, SIAM J. Numer. Anal. 20 (1983) 345; Babich et al. 2011, Algorithm 1).
///
/// # Savings
/// * Applications: the first residual is r, and the last one is not checked. The outer solver checks its own.
/// * Reductions: there is **one in a step**, since (q_i, w), (ρ_k, w) and ‖w‖² come together. γ_k² follows from them by the
///   theorem of Pythagoras (Smoktunowicz, Barlow and Langou, Numer. Math. 105 (2006) 299), and (q_k, ρ_k) = (w, ρ_k), since
///   ρ_k is orthogonal to the images before. Where the difference cancels, γ_k² < 10⁻² ‖w‖², another reduction measures both
///   on q_k itself. Similarly ‖ρ_{k+1}‖² = ‖ρ_k‖² − |α_k|² γ_k², measured where it is below 10⁻⁴ of the last measured one.
/// * Passes over memory: p_k is not made orthogonal to the directions before it, which would read k vectors in each step,
///   and z is written at the end, when each direction is read once. The last step needs no more than its sums.
///
/// Norms of r are not needed, except by K. If the caller does not give them, the first reduction includes ‖r‖².
///
/// # Several right-hand sides
/// Right-hand sides share k. The block stops when all are finished or after n directions. A right-hand side has coefficients
/// 0 from the step on in which it is finished, has no finite α, or its image vanishes. If no step succeeded, z_j is the first
/// direction, as in [`MinimumResidual`](crate::MinimumResidual). NaN in r_j remains in z_j, and does not reach other
/// right-hand sides.
pub struct InnerGcr<'a, S: VectorSpace, A: ?Sized, K> {
    space: &'a S,
    operator: &'a A,
    preconditioner: K,
    params: InnerGcrParams,
    memory: RefCell<InnerMemory<S>>,
    counters: Counters,
}

struct InnerMemory<S: VectorSpace> {
    /// p_k.
    directions: Vec<S::Vector>,
    /// q_0 … q_{k−1}, followed by ρ and w, so that one call computes all products with w.
    images: Vec<S::Vector>,
    numbers: Coefficients,
}

impl<'a, S: VectorSpace, A: LinearOperator<S> + ?Sized, K: Preconditioner<S>> InnerGcr<'a, S, A, K> {
    /// Creates the solver and allocates 2 n + 1 blocks.
    ///
    /// # Errors
    /// `Invalid` if there is no step, or if the tolerance is not between 0 and 1; `Backend`.
    pub fn new(
        space: &'a S,
        operator: &'a A,
        preconditioner: K,
        params: InnerGcrParams,
    ) -> Result<Self, SolveError<S::Error>> {
        if params.steps == 0 {
            return Err(SolveError::Invalid("the inner GCR needs at least one step"));
        }
        if !(params.tol > 0.0 && params.tol < 1.0) {
            return Err(SolveError::Invalid("the tolerance of the inner GCR must be between 0 and 1"));
        }
        let blocks = |count: usize| (0..count).map(|_| space.allocate()).collect::<Result<Vec<_>, _>>();
        let memory = InnerMemory {
            directions: blocks(params.steps)?,
            images: blocks(params.steps + 1)?,
            numbers: Coefficients::new(space.nrhs(), params.steps),
        };
        Ok(Self {
            space,
            operator,
            preconditioner,
            params,
            memory: RefCell::new(memory),
            counters: Counters::default(),
        })
    }

    /// Returns the preconditioner K.
    pub fn inner(&self) -> &K {
        &self.preconditioner
    }

    /// Returns the work done so far. The iterations of the report are directions.
    pub fn report(&self) -> LevelReport {
        self.counters.get()
    }

    /// Sets all counters of the report to zero.
    pub fn reset_report(&self) {
        self.counters.reset();
    }
}

impl<S: VectorSpace, A: LinearOperator<S> + ?Sized, K> InnerGcr<'_, S, A, K> {
    /// Computes w = A p and, in one reduction, the products of w with the previous images, with ρ and with itself. The first
    /// step also computes ‖ρ‖² if it is missing.
    fn image(
        &self,
        k: usize,
        norms_missing: bool,
        p: &S::Vector,
        images: &mut [S::Vector],
        numbers: &mut Coefficients,
    ) -> Result<(), S::Error> {
        let (space, n) = (self.space, self.space.nrhs());
        let (before, rest) = images.split_at_mut(k + 1);
        let w = &mut rest[0];
        let (dots, norm2) = (&mut numbers.dots, &mut numbers.norm2[..n]);
        if norms_missing {
            self.operator.apply(p, w)?;
            space.multi_gram(&images[..2], &mut dots[..3 * n])?;
            numbers.take_gram();
            return Ok(());
        }
        if k == 0 {
            return self.operator.apply_dot(space, p, w, &before[0], &mut dots[..n], norm2);
        }
        self.operator.apply(p, w)?;
        space.multi_dot(before, w, &mut dots[..(k + 1) * n], norm2)
    }
}

impl<S, A, K> Preconditioner<S> for InnerGcr<'_, S, A, K>
where
    S: VectorSpace,
    A: LinearOperator<S> + ?Sized,
    K: Preconditioner<S>,
{
    fn apply(&self, _: &S, r: &S::Vector, norms: &[f64], z: &mut S::Vector) -> Result<Work, S::Error> {
        let started = Instant::now();
        let InnerMemory { directions, images, numbers } = &mut *self.memory.borrow_mut();
        let (space, InnerGcrParams { steps, tol }) = (self.space, self.params);
        let mut work = Work::default();
        numbers.begin(space.nrhs(), tol, norms);
        space.copy(r, &mut images[0])?;
        let mut k = 0;
        loop {
            // p_k = K ρ
            let norms = if k == 0 { norms } else { numbers.norms() };
            work += self.preconditioner.apply(space, &images[k], norms, &mut directions[k])?;
            self.image(k, norms.is_empty(), &directions[k], images, numbers)?;
            work.reductions += 1;
            // Computes β, γ² and (q_k, ρ).
            let unusable = numbers.project(k);
            let (before, rest) = images.split_at_mut(k);
            let (rho, rest) = rest.split_at_mut(1);
            let (rho, w) = (&mut rho[0], &mut rest[0]);
            if unusable {
                clear_rhs(space, &numbers.unusable, rho, w)?;
                // If k = 0, the direction is kept although it is unusable, because it is the only one.
                if k > 0 {
                    clear_rhs(space, &numbers.unusable, rho, &mut directions[k])?;
                }
            }
            let measured = numbers.cancelled();
            if measured {
                space.multi_axpy(numbers.minus_beta(k), before, w)?;
                space.dot_norm2(w, rho, &mut numbers.dots[..space.nrhs()], &mut numbers.measured[..space.nrhs()])?;
                numbers.take_image(k);
                work.reductions += 1;
            }
            // Computes α_k, and ‖ρ‖² after the step.
            numbers.step(k);
            if k + 1 == steps || numbers.finished() {
                break;
            }
            // q_k = w − Σ β_i q_i, ρ ← ρ − α_k q_k
            if k > 0 && !measured {
                space.multi_axpy(numbers.minus_beta(k), before, w)?;
            }
            let n = space.nrhs();
            if numbers.cancelled() {
                space.axpy_norm2(&numbers.minus_alpha[..n], w, rho, &mut numbers.measured[..n])?;
                numbers.take_residual();
                work.reductions += 1;
                if numbers.finished() {
                    break;
                }
            } else {
                space.axpy(&numbers.minus_alpha[..n], w, rho)?;
            }
            std::mem::swap(rho, w);
            k += 1;
        }
        let made = k + 1;
        let chi = numbers.solution(made);
        let (first, others) = chi.split_at(space.nrhs());
        with_coefficients(first.len(), |_| Complex64::ZERO, |zeros| space.axpby(first, &directions[0], zeros, z))?;
        if made > 1 {
            space.multi_axpy(others, &directions[1..made], z)?;
        }
        work.applications += made;
        work.flops += made as f64 * self.operator.flops();
        (work.calls, work.iterations) = (1, made);
        self.counters.add(started, made);
        Ok(work)
    }
    fn needs_norms(&self) -> bool {
        self.preconditioner.needs_norms()
    }
    fn narrow(&self, nrhs: usize) -> bool {
        let parts: [&dyn Fn(usize) -> bool; 3] =
            [&|n| self.preconditioner.narrow(n), &|n| self.operator.narrow(n), &|n| self.space.narrow(n)];
        narrow_all(self.space.nrhs(), nrhs, &parts)
    }
}
