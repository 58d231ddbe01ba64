//! Communication-avoiding GCR: one reduction for every s applications.

use super::clear_rhs;
use super::report::{Counters, LevelReport};
use crate::compact::narrow_both;
use crate::error::SolveError;
use crate::preconditioner::{Preconditioner, Work};
use crate::traits::{LinearOperator, VectorSpace, with_coefficients};
use num_complex::Complex64;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::time::Instant;

/// Squared sine of the angle between an image and the previous ones at or below which the basis ends. Sums over a site in
/// single precision are accurate to 1e-8.
const DEPENDENT: f64 = 1e-8;
/// Smallest ratio of ‖ρ‖² after a cycle to ‖ρ‖² before it that is trusted, given the accuracy of sums.
const CANCELLED: f64 = 1e-7;
/// Value used for ‖A v‖/‖v‖ if A v is not finite.
const OVERFLOWED: f64 = 1024.0;
/// Maximum of |log₂ τ|, so that τ stays in the range of single precision.
const LARGEST: f64 = 100.0;

/// Parameters of [`CaGcr`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaGcrParams {
    /// Number s of applications in a cycle, at least 1. The solver needs s + 1 blocks of memory. Values above 8 to 12
    /// are seldom faster, because the vectors of the basis become almost parallel.
    pub basis: usize,
    /// Maximum number of cycles, at least 1.
    pub max_cycles: usize,
    /// Tolerance ε between 0 and 1: a right-hand side is finished when ‖ρ_j‖ ≤ ε ‖r_j‖ after a cycle. With a single
    /// cycle, the tolerance has no effect.
    pub tol: f64,
}

/// Returns parameters for a smoother: one cycle of four applications.
impl Default for CaGcrParams {
    fn default() -> Self {
        Self { basis: 4, max_cycles: 1, tol: 0.1 }
    }
}

/// GCR(s) for A z = r from z = 0 with **one reduction in a cycle** of s applications, as a preconditioner. It serves as a
/// solver for the coarsest level, where reductions dominate the time, and as a smoother on all levels.
///
/// From ρ = r, a cycle makes the basis v₀ = ρ, v_{i+1} = τ A v_i. It computes the Gram matrix of v₀ … v_s in one reduction
/// ([`VectorSpace::multi_gram`]), and minimises ‖ρ − Σ y_i v_{i+1}‖ over y on the host, in double precision:
///
/// G y = g with G_{ab} = (v_{a+1}, v_{b+1}), g_a = (v_{a+1}, v₀); z ← z + τ Σ y_i v_i, ρ ← ρ − Σ y_i v_{i+1}.
///
/// In exact arithmetic residuals are those of GCR restarted after s steps, that is of GMRES(s). The s-step form is that of
/// Chronopoulos (SIAM J. Numer. Anal. 28 (1991) 1776) and Hoemmen (thesis, UC Berkeley 2010, chapter 3). The last cycle leaves
/// ρ as it is.
///
/// # Numbers
/// G is scaled to a unit diagonal and factorised by Cholesky's method, up to the first image whose angle to the previous ones
/// is below 10⁻⁴. The Krylov space is smaller in this case, and later images are not used. The growth of ‖v_i‖ does not
/// matter, so τ = 1, except in formats with a [target norm](VectorSpace::target_norm). In these formats τ_j is a power of two
/// that keeps ‖v_i‖ near ‖v₀‖, from the growth in the previous Gram matrix; it costs a pass over memory for each application,
/// but no reduction. If a basis overflows nonetheless, its finite part is used.
///
/// Norms of r are not needed. All right-hand sides make the same number of cycles; a finished one keeps its z. If no step was
/// found, z_j is r_j, as in [`MinimumResidual`](crate::MinimumResidual). NaN in r_j remains in z_j, and does not reach other
/// right-hand sides.
pub struct CaGcr<'a, S: VectorSpace, A: ?Sized> {
    space: &'a S,
    operator: &'a A,
    params: CaGcrParams,
    memory: RefCell<CaGcrMemory<S>>,
    counters: Counters,
}

struct CaGcrMemory<S: VectorSpace> {
    /// v₀ = ρ, v₁ … v_s.
    basis: Vec<S::Vector>,
    /// Entry k N + j belongs to pair k and right-hand side j.
    gram: Vec<Complex64>,
    /// τ_j.
    tau: Vec<f64>,
    /// Coefficients τ y_i of v_i in the update of z.
    directions: Vec<Complex64>,
    /// Coefficients −y_i of v_{i+1} in the update of ρ.
    images: Vec<Complex64>,
    /// ε² ‖r_j‖².
    goal2: Vec<f64>,
    /// Right-hand sides that are not finished.
    active: Vec<bool>,
    /// Right-hand sides that have made a step.
    moved: Vec<bool>,
    /// Number of finite vectors of the basis.
    finite: Vec<usize>,
}

impl<'a, S: VectorSpace, A: LinearOperator<S> + ?Sized> CaGcr<'a, S, A> {
    /// Creates the solver and allocates s + 1 blocks.
    ///
    /// # Errors
    /// `Invalid` if the basis is empty, if there is no cycle, or if the tolerance is not between 0 and 1; `Backend`.
    pub fn new(space: &'a S, operator: &'a A, params: CaGcrParams) -> Result<Self, SolveError<S::Error>> {
        let CaGcrParams { basis: s, max_cycles, tol } = params;
        if s == 0 || max_cycles == 0 {
            return Err(SolveError::Invalid("communication-avoiding GCR needs at least one vector and one cycle"));
        }
        if !(tol > 0.0 && tol < 1.0) {
            return Err(SolveError::Invalid("the tolerance of communication-avoiding GCR must be between 0 and 1"));
        }
        let n = space.nrhs();
        let memory = CaGcrMemory {
            basis: (0..=s).map(|_| space.allocate()).collect::<Result<_, _>>()?,
            gram: vec![Complex64::ZERO; (s + 1) * (s + 2) / 2 * n],
            tau: vec![1.0; n],
            directions: vec![Complex64::ZERO; s * n],
            images: vec![Complex64::ZERO; s * n],
            goal2: vec![0.0; n],
            active: vec![true; n],
            moved: vec![false; n],
            finite: vec![s + 1; n],
        };
        Ok(Self { space, operator, params, memory: RefCell::new(memory), counters: Counters::default() })
    }

    /// Returns the work done so far. The iterations of the report are applications of the operator.
    pub fn report(&self) -> LevelReport {
        self.counters.get()
    }

    /// Sets all counters of the report to zero.
    pub fn reset_report(&self) {
        self.counters.reset();
    }
}

impl<S: VectorSpace> CaGcrMemory<S> {
    /// Computes v_{i+1} = τ A v_i, and the Gram matrix of all v_i.
    fn make_basis<A: LinearOperator<S> + ?Sized>(&mut self, space: &S, operator: &A) -> Result<(), S::Error> {
        let n = space.nrhs();
        for i in 1..self.basis.len() {
            let (before, rest) = self.basis.split_at_mut(i);
            let (x, image) = (&before[i - 1], &mut rest[0]);
            operator.apply(x, image)?;
            if self.tau[..n].iter().any(|tau| *tau != 1.0) {
                let mut scale = |tau: &[Complex64]| {
                    with_coefficients(n, |_| Complex64::ZERO, |zeros| space.axpby(zeros, x, tau, image))
                };
                with_coefficients(n, |j| self.tau[j].into(), &mut scale)?;
            }
        }
        let pairs = self.basis.len() * (self.basis.len() + 1) / 2;
        space.multi_gram(&self.basis, &mut self.gram[..pairs * n])
    }

    /// Computes y_j and the remaining ‖ρ_j‖² for right-hand side j of `n`.
    fn solve(&mut self, (j, n): (usize, usize), tol: f64) {
        let s = self.basis.len() - 1;
        let gram = |a: usize, b: usize| self.gram[(a + b * (b + 1) / 2) * n + j];
        let whole = |b: usize| (0..=b).all(|a| gram(a, b).is_finite());
        let finite = (0..=s).find(|&b| !whole(b)).unwrap_or(s + 1);
        let images = finite.saturating_sub(1);
        let rho2 = gram(0, 0).re;
        if !self.moved[j] {
            self.goal2[j] = tol * tol * rho2;
        }
        let (y, reduction) = if self.active[j] { least_squares(images, gram) } else { (Vec::new(), 0.0) };
        self.finite[j] = finite;
        for i in 0..s {
            let y = y.get(i).copied().unwrap_or_default();
            (self.directions[i * n + j], self.images[i * n + j]) = (self.tau[j] * y, -y);
        }
        if reduction > 0.0 {
            self.moved[j] = true;
            self.active[j] = (rho2 - reduction).max(CANCELLED * rho2) > self.goal2[j];
        } else if images == s || finite == 0 {
            self.active[j] = false;
        }
    }

    /// Sets τ_j for right-hand side j of `n`: a power of two that keeps ‖τ A v‖ near ‖v‖, from the growth of this basis.
    fn adapt_scale(&mut self, (j, n): (usize, usize)) {
        let norm2 = |b: usize| self.gram[(b + b * (b + 1) / 2) * n + j].re;
        let growth = match self.finite[j] {
            0 => return,
            1 => OVERFLOWED,
            finite => (norm2(finite - 1) / norm2(0)).powf(0.5 / (finite - 1) as f64),
        };
        let exponent = (self.tau[j] / growth).log2().round();
        if exponent.abs() <= LARGEST {
            self.tau[j] = 2f64.powi(exponent as i32);
        }
    }

    /// Sets basis vectors that are not finite to zero, because even a coefficient of zero would give NaN.
    fn clear(&mut self, space: &S, unusable: &mut Vec<bool>) -> Result<(), S::Error> {
        let n = space.nrhs();
        let (residual, images) = self.basis.split_first_mut().expect("a basis has two vectors at least");
        for (i, image) in images.iter_mut().enumerate() {
            unusable.clear();
            unusable.extend(self.finite[..n].iter().map(|finite| i + 1 >= *finite));
            if unusable.contains(&true) {
                clear_rhs(space, unusable, residual, image)?;
            }
        }
        Ok(())
    }
}

/// Returns the y that minimises ‖v₀ − Σ y_a v_{a+1}‖ over a < `s`, from the products (v_a, v_b) with a ≤ b, and also ‖Σ y_a
/// v_{a+1}‖². Entries of y for images that depend on the previous ones are missing.
fn least_squares(s: usize, gram: impl Fn(usize, usize) -> Complex64) -> (Vec<Complex64>, f64) {
    let root: Vec<f64> = (0..s).map(|a| gram(a + 1, a + 1).re.sqrt()).collect();
    // Row k of `lower` has L_{ki} for i ≤ k, where L L† is G scaled to a unit diagonal; `half` is L⁻¹ g.
    let (mut lower, mut half): (Vec<Vec<Complex64>>, Vec<Complex64>) = (Vec::new(), Vec::new());
    for k in 0..s {
        let mut row: Vec<Complex64> = Vec::with_capacity(k + 1);
        for i in 0..k {
            let known: Complex64 = (0..i).map(|l| row[l] * lower[i][l].conj()).sum();
            row.push((gram(i + 1, k + 1).conj() / (root[i] * root[k]) - known) / lower[i][i]);
        }
        let pivot = 1.0 - row.iter().map(|l| l.norm_sqr()).sum::<f64>();
        // The loop also ends if the pivot is NaN.
        if root[k] == 0.0 || pivot.partial_cmp(&DEPENDENT) != Some(Ordering::Greater) {
            break;
        }
        let known: Complex64 = row.iter().zip(&half).map(|(l, h)| l * h).sum();
        row.push(pivot.sqrt().into());
        half.push((gram(0, k + 1).conj() / root[k] - known) / row[k]);
        lower.push(row);
    }
    let mut y = half.clone();
    for k in (0..y.len()).rev() {
        let known: Complex64 = (k + 1..y.len()).map(|i| lower[i][k].conj() * y[i]).sum();
        y[k] = (half[k] - known) / lower[k][k];
    }
    y.iter_mut().zip(&root).for_each(|(y, root)| *y /= root);
    (y, half.iter().map(|h| h.norm_sqr()).sum())
}

impl<S, A> Preconditioner<S> for CaGcr<'_, S, A>
where
    S: VectorSpace,
    A: LinearOperator<S> + ?Sized,
{
    fn apply(&self, _: &S, r: &S::Vector, _: &[f64], z: &mut S::Vector) -> Result<Work, S::Error> {
        let started = Instant::now();
        let memory = &mut *self.memory.borrow_mut();
        let (space, n, CaGcrParams { basis: s, max_cycles, tol }) = (self.space, self.space.nrhs(), self.params);
        memory.active.fill(true);
        memory.moved.fill(false);
        space.copy(r, &mut memory.basis[0])?;
        let mut cycles = 0;
        loop {
            memory.make_basis(space, self.operator)?;
            (0..n).for_each(|j| memory.solve((j, n), tol));
            if memory.finite[..n].iter().any(|finite| *finite <= s) {
                memory.clear(space, &mut Vec::with_capacity(n))?;
            }
            // z ← z + τ Σ y_i v_i
            let (directions, images) = (&memory.directions[..s * n], &memory.images[..s * n]);
            if cycles == 0 {
                let first = |zeros: &[Complex64]| space.axpby(&directions[..n], &memory.basis[0], zeros, z);
                with_coefficients(n, |_| Complex64::ZERO, first)?;
                space.multi_axpy(&directions[n..], &memory.basis[1..s], z)?;
            } else {
                space.multi_axpy(directions, &memory.basis[..s], z)?;
            }
            cycles += 1;
            if cycles == max_cycles || !memory.active[..n].contains(&true) {
                break;
            }
            // ρ ← ρ − Σ y_i v_{i+1}
            let (residual, rest) = memory.basis.split_first_mut().expect("a basis has two vectors at least");
            space.multi_axpy(images, rest, residual)?;
            if space.target_norm().is_some() {
                (0..n).for_each(|j| memory.adapt_scale((j, n)));
            }
        }
        if space.target_norm().is_some() {
            (0..n).for_each(|j| memory.adapt_scale((j, n)));
        }
        if memory.moved[..n].contains(&false) {
            let kept = |j: usize| if memory.moved[j] { Complex64::ONE } else { Complex64::ZERO };
            let replace = |ones: &[Complex64]| {
                with_coefficients(n, |j| Complex64::ONE - ones[j], |others| space.axpby(others, r, ones, z))
            };
            with_coefficients(n, kept, replace)?;
        }
        let applications = cycles * s;
        self.counters.add(started, applications);
        Ok(Work {
            calls: 1,
            iterations: applications,
            applications,
            reductions: cycles,
            flops: applications as f64 * self.operator.flops(),
            ..Work::default()
        })
    }
    fn needs_norms(&self) -> bool {
        false
    }
    fn narrow(&self, nrhs: usize) -> bool {
        narrow_both(self.space, self.operator, nrhs)
    }
}
