//! One level of a multigrid cycle: smoothing and coarse-grid correction.

use super::TransferOperator;
use super::report::{Counters, LevelReport};
use crate::error::SolveError;
use crate::preconditioner::{Preconditioner, Work};
use crate::reliable::scale_for;
use crate::traits::{LinearOperator, VectorSpace, narrow_all, with_coefficients};
use num_complex::Complex64;
use std::cell::RefCell;
use std::time::Instant;

/// One level of a multigrid cycle for A z = r, as a preconditioner of the fine space `F`: coarse-grid correction on the space
/// `C`, and smoothing.
///
/// Let S be a smoother, R and P the restriction and prolongation of a transfer, and K a solver for the coarse operator,
/// usually R A P. From z = 0, the level computes:
///
/// 1. pre-smoothing, if there is any: z = S r, ρ = r − A z; otherwise z = 0, ρ = r,
/// 2. coarse-grid correction: z ← z + P K R ρ,
/// 3. post-smoothing: z ← z + S (r − A z).
///
/// In [`gcr`](crate::gcr()) this is the adaptive aggregation multigrid of Brannick et al. (arXiv 0707.4018), Babich et al.
/// (arXiv 1005.3043) and Frommer et al. (arXiv 1303.1377), where the choice of K determines the cycle:
///
/// | K | cycle |
/// |---|---|
/// | a solver, such as [`CaGcr`](crate::CaGcr) or [`InnerGcr`](crate::InnerGcr) with [`Identity`](crate::Identity) | two levels |
/// | another `Level` | V-cycle |
/// | [`InnerGcr`](crate::InnerGcr) around another `Level` | K-cycle |
///
/// Steps 1 and 3 take one application each, in addition to those of the smoother. A smoother is any [`Preconditioner`]:
/// [`MinimumResidual`](crate::MinimumResidual) on the whole or on domains, [`CaGcr`](crate::CaGcr), and
/// [`Converted`](crate::Converted) around them, which makes them run in another precision. S and K stand for inverses in a
/// sum. Unlike in GCR, their scale therefore matters.
///
/// # Norms and formats of limited range
/// Norms are measured only for parts that [need them](Preconditioner::needs_norms): those of R ρ for K and those of r − A z
/// for S take a reduction each. If `C` has a [target norm](VectorSpace::target_norm), ρ is multiplied by a power of two
/// before it is restricted, so that ‖ρ‖ is near the target norm (nothing overflows, since ‖R‖ = 1 for an orthonormal P). The
/// correction is multiplied by the inverse. The scaling needs ‖ρ‖: without pre-smoothing it is ‖r‖, which the caller gives;
/// after pre-smoothing it takes a reduction.
///
/// # Several right-hand sides
/// Right-hand sides are independent: NaN in one of them does not reach the others. Finished ones leave the batch if spaces,
/// operator, transfer, smoothers and K can all become narrower.
///
/// # An example
/// Two levels for a Laplace operator on a ring, with the constant as the only near-null vector.
/// ```
/// use num_complex::Complex64;
/// use solvers::*;
///
/// /// A x(i) = d x(i) − w x(i+1) − w x(i−1) on a ring.
/// struct Ring { d: f64, w: f64 }
/// impl LinearOperator<PlainSpace> for Ring {
///     fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
///         let n = x.len();
///         (0..n).for_each(|i| out[i] = self.d * x[i] - self.w * (x[(i + 1) % n] + x[(i + n - 1) % n]));
///         Ok(())
///     }
///     fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
///         self.apply(x, out)
///     }
///     fn flops(&self) -> f64 { 0.0 }
/// }
///
/// /// Aggregates of four sites: each column of P is ½ on one of them.
/// struct Fours;
/// impl TransferOperator<PlainSpace, PlainSpace> for Fours {
///     fn restrict(&self, fine: &Vec<Complex64>, coarse: &mut Vec<Complex64>) -> Result<(), LengthError> {
///         coarse.iter_mut().zip(fine.chunks(4)).for_each(|(c, f)| *c = 0.5 * f.iter().sum::<Complex64>());
///         Ok(())
///     }
///     fn prolong(&self, coarse: &Vec<Complex64>, fine: &mut Vec<Complex64>) -> Result<(), LengthError> {
///         fine.chunks_mut(4).zip(coarse).for_each(|(f, c)| f.fill(0.5 * c));
///         Ok(())
///     }
/// }
///
/// let (fine, coarse) = (PlainSpace::new(256), PlainSpace::new(64));
/// let mass = 1e-4;
/// let (a, coarse_a) = (Ring { d: 2.0 + mass, w: 1.0 }, Ring { d: 0.5 + mass, w: 0.25 });
/// let v: Vec<_> = (0..64).map(|i| Complex64::from(i as f64)).collect();
/// assert!(galerkin_error(&fine, &a, &coarse, &coarse_a, &Fours, &v)?[0] < 1e-12);
///
/// let smoother = MinimumResidual::on_whole(&fine, &a, MrParams { steps: 3, omega: 0.9 })?;
/// let solver = InnerGcr::new(&coarse, &coarse_a, Identity, InnerGcrParams { steps: 32, tol: 0.1 })?;
/// let cycle = Level::new(&fine, &a, smoother, Fours, &coarse, solver)?;
///
/// let system = Uniform::new(&fine, &a);
/// let (mut b, mut x) = (fine.allocate()?, fine.allocate()?);
/// b[0] = Complex64::ONE;
/// let mut workspace = GcrWorkspace::new(&system, 16)?;
/// let info = gcr(&system, &cycle, &b, &mut x, &GcrParams::default(), &mut workspace, &mut ())?;
/// // Without the cycle 10 000 are not enough.
/// assert!(info.converged && info.iterations < 30);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Level<'a, F: VectorSpace, C: VectorSpace, A: ?Sized, S, T, K> {
    space: &'a F,
    operator: &'a A,
    pre_smoother: Option<S>,
    smoother: S,
    transfer: T,
    coarse_space: &'a C,
    coarse: K,
    memory: RefCell<LevelMemory<F, C>>,
    counters: Counters,
}

struct LevelMemory<F: VectorSpace, C: VectorSpace> {
    /// ρ.
    residual: F::Vector,
    /// Correction to be added to z.
    correction: F::Vector,
    coarse_residual: C::Vector,
    coarse_correction: C::Vector,
    /// ‖ρ_j‖ or ‖R ρ_j‖.
    norms: Vec<f64>,
    /// Powers of two that scale the coarse level.
    scale: Vec<f64>,
}

impl<'a, F, C, A, S, T, K> Level<'a, F, C, A, S, T, K>
where
    F: VectorSpace,
    C: VectorSpace<Error = F::Error>,
    A: LinearOperator<F> + ?Sized,
    S: Preconditioner<F>,
    T: TransferOperator<F, C>,
    K: Preconditioner<C>,
{
    /// Creates a level for `operator` on `space`, with post-smoothing by `smoother` and the solver `coarse` on
    /// `coarse_space`. Allocates two blocks of each space.
    ///
    /// # Errors
    /// `Invalid` if the two spaces have different numbers of right-hand sides; `Backend`.
    pub fn new(
        space: &'a F,
        operator: &'a A,
        smoother: S,
        transfer: T,
        coarse_space: &'a C,
        coarse: K,
    ) -> Result<Self, SolveError<F::Error>> {
        let n = space.nrhs();
        if coarse_space.nrhs() != n {
            return Err(SolveError::Invalid("both spaces of a level must hold the same right-hand sides"));
        }
        let memory = LevelMemory {
            residual: space.allocate()?,
            correction: space.allocate()?,
            coarse_residual: coarse_space.allocate()?,
            coarse_correction: coarse_space.allocate()?,
            norms: vec![0.0; n],
            scale: vec![1.0; n],
        };
        Ok(Self {
            space,
            operator,
            pre_smoother: None,
            smoother,
            transfer,
            coarse_space,
            coarse,
            memory: RefCell::new(memory),
            counters: Counters::default(),
        })
    }

    /// Adds pre-smoothing by `smoother`. It may differ from the smoother after the correction in everything but its type,
    /// which may be `&dyn Preconditioner`.
    #[must_use]
    pub fn with_pre_smoother(self, smoother: S) -> Self {
        Self { pre_smoother: Some(smoother), ..self }
    }

    /// Returns the solver K of the coarse level.
    pub fn coarse(&self) -> &K {
        &self.coarse
    }

    /// Returns the work done so far. Its iterations are those of K; in a K-cycle, these are calls of the next level. Its
    /// seconds include all coarser levels.
    pub fn report(&self) -> LevelReport {
        self.counters.get()
    }

    /// Sets all counters of the report to zero.
    pub fn reset_report(&self) {
        self.counters.reset();
    }

    /// Computes ρ = r − A z, and also ‖ρ_j‖ if `norms` is given.
    fn residual(
        &self,
        r: &F::Vector,
        z: &F::Vector,
        rho: &mut F::Vector,
        norms: Option<&mut [f64]>,
        work: &mut Work,
    ) -> Result<(), F::Error> {
        let n = self.space.nrhs();
        self.operator.apply(z, rho)?;
        work.applications += 1;
        work.flops += self.operator.flops();
        let Some(norms) = norms else {
            let subtract = |ones: &[Complex64]| {
                with_coefficients(n, |_| -Complex64::ONE, |minus| self.space.axpby(ones, r, minus, rho))
            };
            return with_coefficients(n, |_| Complex64::ONE, subtract);
        };
        self.space.sub_norm2(r, rho, norms)?;
        norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
        work.reductions += 1;
        Ok(())
    }
}

impl<F, C, A, S, T, K> Preconditioner<F> for Level<'_, F, C, A, S, T, K>
where
    F: VectorSpace,
    C: VectorSpace<Error = F::Error>,
    A: LinearOperator<F> + ?Sized,
    S: Preconditioner<F>,
    T: TransferOperator<F, C>,
    K: Preconditioner<C>,
{
    fn apply(&self, _: &F, r: &F::Vector, norms: &[f64], z: &mut F::Vector) -> Result<Work, F::Error> {
        let started = Instant::now();
        let LevelMemory { residual, correction, coarse_residual, coarse_correction, norms: own, scale } =
            &mut *self.memory.borrow_mut();
        let (space, n, target) = (self.space, self.space.nrhs(), self.coarse_space.target_norm());
        let (own, scale) = (&mut own[..n], &mut scale[..n]);
        let mut work = Work::default();

        // z = S r, ρ = r − A z
        if let Some(smoother) = &self.pre_smoother {
            work += smoother.apply(space, r, norms, z)?;
            self.residual(r, z, residual, target.map(|_| &mut *own), &mut work)?;
        } else if target.is_some() {
            own.copy_from_slice(norms);
        }
        let rho = if self.pre_smoother.is_some() { &*residual } else { r };

        // z ← z + P K R ρ
        scale.iter_mut().zip(own.iter()).for_each(|(scale, norm)| *scale = scale_for(target, *norm, 1.0));
        let scaled = scale.iter().any(|scale| *scale != 1.0);
        if scaled {
            let multiply = |scale: &[Complex64]| {
                with_coefficients(n, |_| Complex64::ZERO, |zeros| space.axpby(scale, rho, zeros, correction))
            };
            with_coefficients(n, |j| scale[j].into(), multiply)?;
            self.transfer.restrict(correction, coarse_residual)?;
        } else {
            self.transfer.restrict(rho, coarse_residual)?;
        }
        let mut coarse_norms: &[f64] = &[];
        if self.coarse.needs_norms() {
            self.coarse_space.norm2(coarse_residual, own)?;
            own.iter_mut().for_each(|norm| *norm = norm.sqrt());
            work.reductions += 1;
            coarse_norms = own;
        }
        let coarse = self.coarse.apply(self.coarse_space, coarse_residual, coarse_norms, coarse_correction)?;
        if self.pre_smoother.is_none() && !scaled {
            self.transfer.prolong(coarse_correction, z)?;
        } else {
            self.transfer.prolong(coarse_correction, correction)?;
            // Without pre-smoothing z is 0; the coefficient 0 keeps it from being read.
            let before = if self.pre_smoother.is_some() { Complex64::ONE } else { Complex64::ZERO };
            let add = |unscale: &[Complex64]| {
                with_coefficients(n, |_| before, |before| space.axpby(unscale, correction, before, z))
            };
            with_coefficients(n, |j| (1.0 / scale[j]).into(), add)?;
        }
        work += coarse;
        work.flops += 2.0 * self.transfer.flops();

        // z ← z + S (r − A z)
        let wanted = self.smoother.needs_norms();
        self.residual(r, z, residual, wanted.then_some(&mut *own), &mut work)?;
        work += self.smoother.apply_add(space, residual, if wanted { own } else { &[] }, z, correction)?;

        (work.calls, work.iterations) = (1, 1);
        self.counters.add(started, coarse.iterations);
        Ok(work)
    }
    fn needs_norms(&self) -> bool {
        self.pre_smoother.as_ref().map_or(self.coarse_space.target_norm().is_some(), S::needs_norms)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        let parts: [&dyn Fn(usize) -> bool; 7] = [
            &|n| self.coarse.narrow(n),
            &|n| self.coarse_space.narrow(n),
            &|n| self.transfer.narrow(n),
            &|n| self.pre_smoother.as_ref().is_none_or(|smoother| smoother.narrow(n)),
            &|n| self.smoother.narrow(n),
            &|n| self.operator.narrow(n),
            &|n| self.space.narrow(n),
        ];
        narrow_all(self.space.nrhs(), nrhs, &parts)
    }
}
