//! Block conjugate gradients: N systems in one Krylov space.

use crate::compact::Rhs;
use crate::error::SolveError;
use crate::failure::RhsFailure;
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::params::SolverParams;
use crate::reliable::{Criterion, ReliableSolve, ReliableState, UpdatePolicy};
use crate::small::{GramFactor, adjoint, minus, product};
use crate::stopping::StoppingRule;
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Scaled pivot of P†A P at or below which it does not count as positive. P†A P has a unit diagonal, and double precision has
/// 16 digits.
const POSITIVE: f64 = 1e-14;
/// Squared norm of a new residual direction below which the direction is rounding; its predecessor has norm 1. The value is
/// about 20 ε².
const ROUNDING_NORM2: f64 = 1e-30;
/// Pivot in the factors of W†W below which a second round follows, because Q = W T is orthonormal only to ε divided by the
/// pivot.
const SMALL_PIVOT: f64 = 1e-3;
/// Threshold of the remainder of a vector below which the second round drops it, although the first round called it
/// independent.
const SECOND_THRESHOLD: f64 = 0.1;

/// Parameters of [`block_cg`] and [`block_cgnr`](crate::block_cgnr()).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockCgParams {
    /// Parameters common to all solvers.
    pub solver: SolverParams,
    /// Threshold of linear dependence: a residual is dependent on the others if the squared sine of its angle to their
    /// span is at or below this value. `None` means 10⁻¹² for a system of one precision and 10⁻⁶ for a system of two.
    /// The value must be well above the relative error of sums.
    pub dependent: Option<f64>,
}

impl From<SolverParams> for BlockCgParams {
    fn from(solver: SolverParams) -> Self {
        Self { solver, dependent: None }
    }
}

/// Memory of [`block_cg`]: two precise and five sloppy blocks.
pub struct BlockCgWorkspace<P: VectorSpace, S: VectorSpace> {
    state: ReliableState<P, S>,
    blocks: BlockVectors<S>,
}

/// Sloppy vectors of block CG.
struct BlockVectors<S: VectorSpace> {
    /// Q: an orthonormal basis of the residuals; a dropped direction is zero.
    q: S::Vector,
    /// P: search directions.
    p: S::Vector,
    /// Image T = A P of the search directions.
    t: S::Vector,
    scratch: S::Vector,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> BlockCgWorkspace<P, S> {
    /// Allocates the workspace for `system`. Any system on the same spaces can use it.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let space = system.sloppy();
        let blocks = BlockVectors {
            q: space.allocate()?,
            p: space.allocate()?,
            t: space.allocate()?,
            scratch: space.allocate()?,
        };
        Ok(Self { state: ReliableState::new(system)?, blocks })
    }
}

/// Solves A x_j = b_j for a Hermitian positive definite A in the sum of the Krylov spaces of all right-hand sides.
///
/// The method is block CG (O'Leary 1980) in the form BCGrQ of Dubrulle, "Retooling the method of block conjugate gradients",
/// Electronic Transactions on Numerical Analysis 12 (2001) 216; Clark et al., Computer Physics Communications 233 (2018) 29
/// use it on GPUs. The residuals are R = Q C with Q†Q = 1. Per iteration, in the sloppy space:
///
/// T = A P, α = (P†T)⁻¹, X̂ ← X̂ + P α C, Q' S = Q − T α, C ← S C, P ← Q' + P S†.
///
/// An iteration takes one application and two Gram matrices. Each x_j is the best vector (in the norm of A) of a space N
/// times as large as that of [`cg`](crate::cg()). Therefore [`cg`](crate::cg()) needs more iterations: many more if there are
/// a few small eigenvalues, ideally no more than N of them. The cost of linear algebra grows with N², and on the host with
/// N³.
///
/// # Independence
/// Q and S come from Cholesky factors of the Gram matrix, with pivots, and from a second factorisation if a pivot is small. A
/// residual that depends on the others is dropped, for example that of an equal right-hand side: its vectors of Q and P are
/// zero from then on, and C expresses it by the others. The part of it outside their space returns with the next update.
///
/// # Updates
/// After a reliable update, Q C is the true residual of the right-hand sides that are not finished, and P ← Q − P α T†Q,
/// which is conjugate to the last directions in spite of rounding. Right-hand sides continue until the recurrence of each has
/// converged, so [`Info::iterations_per_rhs`] is that of the slowest; the block does not become smaller in between.
///
/// `x` holds the initial guess on entry and the solution on exit (see [`SolveError`] for what it holds on failure).
/// The spaces have to [mix right-hand sides](VectorSpace::mixes_rhs).
///
/// # Errors
/// The errors of [`cg`](crate::cg()). If P†A P is not positive, all right-hand sides fail. If a right-hand side has NaN, only
/// this one fails and the others restart.
pub fn block_cg<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &BlockCgParams,
    workspace: &mut BlockCgWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    block_cg_on(system, Rhs::Given(b, None), x, params, workspace, observer, Criterion::default())
}

/// Solves A X = B like [`block_cg`]; `criterion` decides when a right-hand side has converged.
pub(crate) fn block_cg_on<'a, Y: System>(
    system: &'a Y,
    b: Rhs<'a, Precise<Y>>,
    x: &'a mut Precise<Y>,
    params: &BlockCgParams,
    workspace: &'a mut BlockCgWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
    criterion: Criterion<'a, Y>,
) -> Result<Info, SolveError<Y::Error>> {
    let threshold = params.dependent.unwrap_or(if system.is_mixed() { 1e-6 } else { 1e-12 });
    if !(threshold > 0.0 && threshold < 1.0) {
        return Err(SolveError::Invalid("the sine of the angle of dependence must be between 0 and 1"));
    }
    if !system.sloppy().mixes_rhs() {
        return Err(SolveError::Invalid(
            "block CG needs operations that mix right-hand sides, which this space does not have",
        ));
    }
    let BlockCgWorkspace { state, blocks } = workspace;
    let mut run = ReliableSolve::begin(system, b, x, state, &params.solver, UpdatePolicy::All, criterion)?;
    if run.finished() {
        return run.succeed();
    }
    run.require_iterations()?;
    let mut block = BlockMatrices::new(system, threshold);
    // P may contain NaN from an earlier solve, and a coefficient of zero would not remove it.
    block.space.zero(&mut blocks.p)?;
    // Q C = R = B − A X, P = Q
    run.demote(&mut blocks.scratch)?;
    block.factor_residuals(&mut run, blocks)?;
    block.space.copy(&blocks.q, &mut blocks.p)?;

    while !run.finished() {
        // T = A P
        system.apply_sloppy(&blocks.p, &mut blocks.t)?;
        run.applied(1);
        // α = (P†T)⁻¹
        let alpha = block.find_alpha(&mut run, blocks)?;
        // X̂ ← X̂ + P α C, Q' S = Q − T α, C ← S C
        let s = alpha.as_ref().map(|alpha| block.step(&mut run, alpha, blocks)).transpose()?.flatten();
        // ‖r_j‖² = Σ_i |C_ij|²
        block.norms(&mut run.state.norm2);
        let due = run.advance()?;
        match s {
            // P ← Q' + P S†
            Some(s) if !due => block.new_directions(&adjoint(block.n, &s), blocks)?,
            // x ← x + x̂, r ← b − A x
            _ => block.update(&mut run, alpha.as_deref(), blocks)?,
        }
        run.close(observer)?;
    }
    run.succeed()
}

/// N × N matrices of block CG, and the operations on them.
struct BlockMatrices<'a, S: VectorSpace> {
    space: &'a S,
    n: usize,
    /// Stored norm of a vector of norm 1 in Q: the power of two next to the target norm of the format, or less after an
    /// overflow. P and T have the same factor.
    unit: f64,
    largest_unit: f64,
    threshold: f64,
    /// C in R = Q C.
    c: Vec<Complex64>,
    /// Whether each vector of Q and P is nonzero.
    kept: Vec<bool>,
    /// Whether P = Q.
    fresh: bool,
    /// Number of times that P†A P was not positive although rounding may have made the directions dependent.
    not_positive: usize,
}

impl<'a, S: VectorSpace> BlockMatrices<'a, S> {
    fn new<Y: System<Sloppy = S>>(system: &'a Y, threshold: f64) -> Self {
        let space = system.sloppy();
        let n = space.nrhs();
        let unit = space.target_norm().map_or(1.0, |norm| 2f64.powi(norm.log2().round() as i32));
        let c = vec![Complex64::ZERO; n * n];
        Self { space, n, unit, largest_unit: unit, threshold, c, kept: vec![false; n], fresh: true, not_positive: 0 }
    }

    /// Computes X†Y.
    fn gram<Y: System<Sloppy = S, Error = S::Error>>(
        &self,
        run: &mut ReliableSolve<'_, Y>,
        x: &S::Vector,
        y: &S::Vector,
    ) -> Result<Vec<Complex64>, S::Error> {
        let mut out = vec![Complex64::ZERO; self.n * self.n];
        self.space.gram(x, y, &mut out)?;
        run.info.reductions += 1;
        out.iter_mut().for_each(|v| *v /= self.unit * self.unit);
        Ok(out)
    }

    /// Writes ‖r_j‖² to `out`.
    fn norms(&self, out: &mut [f64]) {
        for (j, out) in out.iter_mut().enumerate() {
            *out = (0..self.n).map(|i| self.c[i * self.n + j].norm_sqr()).sum();
        }
    }

    /// Sets each vector of `x` for which `stays` is false to zero, whatever its content. `p` supplies finite numbers.
    fn keep_only(&self, stays: impl Fn(usize) -> bool, p: &S::Vector, x: &mut S::Vector) -> Result<(), S::Error> {
        let mask: Vec<_> = (0..self.n).map(|j| Complex64::from(if stays(j) { 1.0 } else { 0.0 })).collect();
        self.space.axpby(&vec![Complex64::ZERO; self.n], p, &mask, x)
    }

    /// Factorises the residuals of the active right-hand sides, which `scratch` contains, as Q C.
    fn factor_residuals<Y: System<Sloppy = S, Error = S::Error>>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        blocks: &mut BlockVectors<S>,
    ) -> Result<(), SolveError<S::Error>> {
        self.c.fill(Complex64::ZERO);
        let mut scale = vec![Complex64::ZERO; self.n];
        for (j, scale) in scale.iter_mut().enumerate() {
            let norm = run.sloppy_norm2(j).sqrt();
            self.kept[j] = run.state.active[j] && norm > 0.0;
            if self.kept[j] {
                // The vectors are scaled to equal norms before they are orthonormalised.
                (self.c[j * self.n + j], *scale) = (norm.into(), (self.unit / norm).into());
            }
        }
        self.keep_only(|j| self.kept[j], &blocks.p, &mut blocks.scratch)?;
        self.space.axpby(&scale, &blocks.scratch, &vec![Complex64::ZERO; self.n], &mut blocks.q)?;
        if self.orthonormalise(run, blocks)?.is_none() {
            self.active(run).into_iter().try_for_each(|rhs| run.give_up(rhs, RhsFailure::NotANumber))?;
        }
        Ok(())
    }

    /// Returns (P†T)⁻¹, or `None` if P has to restart.
    fn find_alpha<Y: System<Sloppy = S, Error = S::Error>>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        blocks: &mut BlockVectors<S>,
    ) -> Result<Option<Vec<Complex64>>, SolveError<S::Error>> {
        let g = self.gram(run, &blocks.p, &blocks.t)?;
        let bad = |j: usize| (0..self.n).any(|i| !g[i * self.n + j].is_finite());
        if (0..self.n).any(bad) {
            let lost: Vec<usize> = (0..self.n).filter(|&j| bad(j) && self.kept[j]).collect();
            if !lost.is_empty() {
                for rhs in lost {
                    run.check_finite(rhs, false)?;
                }
                return Ok(None);
            }
            // An operator may return NaN or infinity for a zero vector; these values must not reach the other right-hand
            // sides.
            self.keep_only(|j| self.kept[j], &blocks.p, &mut blocks.t)?;
        }
        let factor = GramFactor::new(self.n, &g, &self.kept, POSITIVE, 0.0);
        let Some((_, curvature)) = factor.dropped else { return Ok(Some(factor.inverse())) };
        if let Some(failure) = StoppingRule::not_positive(&mut self.not_positive, self.fresh, curvature) {
            self.active(run).into_iter().try_for_each(|rhs| run.give_up(rhs, failure))?;
        }
        Ok(None)
    }

    /// Computes X̂ ← X̂ + P α C, Q' S = Q − T α and C ← S C. Returns S, or `None` if Q' is out of range and all right-hand
    /// sides restart.
    fn step<Y: System<Sloppy = S, Error = S::Error>>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        alpha: &[Complex64],
        blocks: &mut BlockVectors<S>,
    ) -> Result<Option<Vec<Complex64>>, SolveError<S::Error>> {
        let mut steps = product(self.n, alpha, &self.c);
        steps.iter_mut().for_each(|v| *v /= self.unit);
        self.space.block_axpy(&steps, &blocks.p, &mut run.state.correction)?;
        self.space.block_axpy(&minus(alpha), &blocks.t, &mut blocks.q)?;
        let s = self.orthonormalise(run, blocks)?;
        if s.is_none() {
            self.active(run).into_iter().try_for_each(|rhs| run.check_finite(rhs, false).map(|_| ()))?;
        }
        Ok(s)
    }

    /// Makes the reliable update. Sets P ← Q if `alpha` is missing or a right-hand side restarts, else P ← Q − P α T†Q.
    fn update<Y: System<Sloppy = S, Error = S::Error>>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        alpha: Option<&[Complex64]>,
        blocks: &mut BlockVectors<S>,
    ) -> Result<(), SolveError<S::Error>> {
        if alpha.is_none() {
            run.state.restart.clone_from(&run.state.active);
        }
        // X ← X + X̂, Q C = B − A X
        run.refresh(&mut blocks.scratch)?;
        if run.finished() {
            return Ok(());
        }
        // `unit` never increases, so the search directions P can be kept.
        self.unit = self.unit.min(self.largest_unit * run.headroom());
        self.factor_residuals(run, blocks)?;
        self.fresh = run.state.restart.contains(&true);
        match alpha {
            Some(alpha) if !self.fresh => {
                // T†Q
                let overlap = self.gram(run, &blocks.t, &blocks.q)?;
                self.new_directions(&minus(&product(self.n, alpha, &overlap)), blocks)?;
            }
            _ => self.space.copy(&blocks.q, &mut blocks.p)?,
        }
        run.state.restart.fill(false);
        Ok(())
    }

    /// Computes Q' S = Q and C ← S C. Returns S, or `None` if Q is not finite.
    fn orthonormalise<Y: System<Sloppy = S, Error = S::Error>>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        blocks: &mut BlockVectors<S>,
    ) -> Result<Option<Vec<Complex64>>, S::Error> {
        let Some(first) = self.orthogonalise_once(run, blocks, self.threshold)? else { return Ok(None) };
        if first.smallest >= SMALL_PIVOT {
            return Ok(Some(first.s));
        }
        let second = self.orthogonalise_once(run, blocks, SECOND_THRESHOLD)?;
        Ok(second.map(|second| product(self.n, &second.s, &first.s)))
    }

    fn orthogonalise_once<Y: System<Sloppy = S, Error = S::Error>>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        blocks: &mut BlockVectors<S>,
        threshold: f64,
    ) -> Result<Option<GramFactor>, S::Error> {
        let g = self.gram(run, &blocks.q, &blocks.q)?;
        if g.iter().any(|v| !v.is_finite()) {
            return Ok(None);
        }
        let factor = GramFactor::new(self.n, &g, &self.kept, threshold, ROUNDING_NORM2);
        self.space.block_scale(&factor.t, &blocks.q, &mut blocks.scratch)?;
        std::mem::swap(&mut blocks.q, &mut blocks.scratch);
        self.c = product(self.n, &factor.s, &self.c);
        self.kept.clone_from(&factor.kept);
        Ok(Some(factor))
    }

    /// Computes P ← Q + P β.
    fn new_directions(&mut self, beta: &[Complex64], blocks: &mut BlockVectors<S>) -> Result<(), S::Error> {
        let BlockVectors { q, p, scratch, .. } = blocks;
        self.space.block_scale(beta, p, scratch)?;
        self.space.axpy(&vec![Complex64::ONE; self.n], q, scratch)?;
        std::mem::swap(p, scratch);
        self.fresh = false;
        Ok(())
    }

    /// Returns the right-hand sides that are still active.
    fn active<Y: System<Sloppy = S, Error = S::Error>>(&self, run: &ReliableSolve<'_, Y>) -> Vec<usize> {
        (0..self.n).filter(|&j| run.state.active[j]).collect()
    }
}
