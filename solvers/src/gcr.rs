//! Generalised conjugate residuals with a flexible preconditioner: Babich et al. 2011, Algorithm 1.

use crate::compact::{BatchWidth, Rhs, copy_of_rhs};
use crate::cycle::{Cycle, Orthogonalisation};
use crate::error::SolveError;
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::params::SolverParams;
use crate::preconditioner::Preconditioner;
use crate::reliable::{Criterion, ReliableSolve, ReliableState, UpdatePolicy};
use crate::traits::VectorSpace;

/// Parameters of [`gcr`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcrParams {
    /// Parameters common to all solvers. An iteration takes one application of the operator and one call of the
    /// preconditioner.
    pub solver: SolverParams,
    /// Number k_max of directions after which the method restarts: at least 1, and at most the capacity of the
    /// workspace.
    pub k_max: usize,
    /// Method that makes the image of a new direction orthogonal to the previous images.
    pub orthogonalisation: Orthogonalisation,
}

impl Default for GcrParams {
    fn default() -> Self {
        SolverParams::default().into()
    }
}

impl From<SolverParams> for GcrParams {
    fn from(solver: SolverParams) -> Self {
        Self { solver, k_max: 16, orthogonalisation: Orthogonalisation::Classical }
    }
}

/// Memory of [`gcr`]: two precise and 2 k_max + 2 sloppy blocks, and one more precise block for several right-hand sides. The
/// memory of the preconditioner is not included.
pub struct GcrWorkspace<P: VectorSpace, S: VectorSpace> {
    state: ReliableState<P, S>,
    /// Copy of b; allocated if the batch may become smaller.
    copy: Option<P::Vector>,
    r: S::Vector,
    /// p̂_k.
    p: Vec<S::Vector>,
    /// ẑ_k.
    z: Vec<S::Vector>,
    cycle: Cycle,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> GcrWorkspace<P, S> {
    /// Allocates the workspace for `system` and Krylov spaces of up to `k_max` directions. Any system on the same spaces can
    /// use it.
    pub fn new(
        system: &impl System<Precise = P, Sloppy = S, Error = P::Error>,
        k_max: usize,
    ) -> Result<Self, P::Error> {
        let n = system.precise().nrhs();
        let space = system.sloppy();
        let blocks = || (0..k_max).map(|_| space.allocate()).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            state: ReliableState::new(system)?,
            copy: copy_of_rhs(system)?,
            r: space.allocate()?,
            p: blocks()?,
            z: blocks()?,
            cycle: Cycle::new(n, k_max),
        })
    }
}

/// Solves A x_j = b_j for a general regular A by generalised conjugate residuals with restarts and a flexible preconditioner
/// K (Babich et al. 2011, Algorithm 1). With [`MinimumResidual`](crate::MinimumResidual) on domains as K, the method is GCR-DD.
///
/// A *cycle* begins with r̂₀ = r₀ = b − A x. In its iteration k, in the sloppy space:
///
/// p̂_k = K r̂_k, ẑ_k = M̂ p̂_k − Σ_{i<k} β_{i,k} ẑ_i with β_{i,k} = (ẑ_i, M̂ p̂_k)/γ_i², γ_k² = ‖ẑ_k‖²,
/// α_k = (ẑ_k, r̂_k)/γ_k², r̂_{k+1} = r̂_k − α_k ẑ_k.
///
/// The solution does not change during the cycle; its update is *implicit*. At the end of the cycle, x̂ = Σ χ_i p̂_i with
/// χ_l + Σ_{i>l} β_{l,i} χ_i = α_l; then x ← x + x̂ and r₀ = b − A x in the precise space. A cycle ends with k = k_max, when
/// ‖r̂_k‖ < δ ‖r₀‖, or when the recurrence seems to have converged. Each iteration takes one application, one call of K and
/// two reductions for any k.
///
/// Unlike in the paper, ẑ_k is not divided by γ_k: that saves a pass over memory and keeps ẑ at the size of r̂, which lies
/// well within the range of the format.
///
/// # Rounding
/// Classical Gram-Schmidt in a low precision may lose the orthogonality of the ẑ_i, but the solution does not suffer: M̂
/// p̂_k = ẑ_k + Σ β_{i,k} ẑ_i holds for the β that were used, so M̂ x̂ = Σ α_k ẑ_k and r̂ remains the residual of x̂. Each
/// step still minimises ‖r̂‖ along ẑ_k. Only the minimum over the whole space is lost, which costs iterations. Other errors
/// of low precision end with the cycle; for this reason δ limits its length.
///
/// A cycle is undone if its true residual is not smaller than the one before it. After such a cycle, or one whose true
/// residual is far above that of its recurrence, the next cycle of the right-hand side is half as long, because a repetition
/// would fail in the same way. After each good cycle, the next one may be one step longer.
///
/// # Stalls and breakdowns
/// If (ẑ_k, r̂_k) vanishes, r̂_{k+1} = r̂_k would give the old direction again. The next direction is then K ẑ_k, which
/// enlarges the space as in Arnoldi's process: without a preconditioner, or with a fixed linear one, residuals are those of
/// GMRES. If nothing remains of an image, the affected right-hand side restarts with its current correction.
///
/// # Several right-hand sides
/// Right-hand sides share k, but each has its own coefficients. A right-hand side whose restart is due waits for all others
/// or for k = k_max, so that each takes the same steps as it would alone. [`Info::iterations_per_rhs`] does not count
/// waiting. Finished right-hand sides leave the batch as in [`cg`](crate::cg()#batches-that-become-smaller), if the
/// preconditioner [supports it](Preconditioner::narrow).
///
/// `x` holds the initial guess on entry and the solution on exit (see [`SolveError`] for what it holds on failure).
/// [`Info::reliable_updates`] counts restarts of the block, [`Info::restarts`] counts restarts of right-hand sides that were
/// not finished, and [`Info::preconditioner`] is the work of K.
///
/// # Errors
/// All errors of [`SolveError`] except `NotPositiveDefinite`.
pub fn gcr<Y: System, K: Preconditioner<Y::Sloppy> + ?Sized>(
    system: &Y,
    preconditioner: &K,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &GcrParams,
    workspace: &mut GcrWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let GcrWorkspace { state, copy, r, p, z, cycle: c } = workspace;
    if !(1..=c.k_max).contains(&params.k_max) {
        return Err(SolveError::Invalid(
            "k_max must be at least 1, and at most the number of directions of the workspace",
        ));
    }
    let space = system.sloppy();
    let n = state.full();
    // A batch becomes smaller only if the preconditioner, spaces and operators all support it.
    let mut width = BatchWidth::new(n, |nrhs| preconditioner.narrow(nrhs));
    let copy = copy.as_mut().filter(|_| n == system.precise().nrhs() && width.can_change());
    let (b, policy) = (Rhs::Given(b, copy), UpdatePolicy::Restart);
    let mut run = ReliableSolve::begin(system, b, x, state, &params.solver, policy, Criterion::default())?;
    if run.finished() {
        return run.succeed();
    }
    run.require_iterations()?;
    // r̂₀ = b − A x
    run.demote(r)?;
    c.begin(n, params.k_max);
    c.begin_cycle(&run);
    let mut k = 0;

    while !run.finished() {
        if let Some(compaction) = run.compact()? {
            compaction.vectors(space, r, &mut p[0])?;
            width.set(compaction.width());
            c.rearrange(&compaction);
            c.begin_cycle(&run);
        }
        // p̂_k = K r̂_k
        c.direction(&mut run, preconditioner, k, r, p, z)?;
        // ẑ_k = M̂ p̂_k − Σ β_{i,k} ẑ_i with β_{i,k} = (ẑ_i, M̂ p̂_k)/γ_i²
        let (before, rest) = z.split_at_mut(k);
        let z_k = &mut rest[0];
        c.image(&mut run, params.orthogonalisation, before, &p[k], z_k, r)?;
        // γ_k² = ‖ẑ_k‖², α_k = (ẑ_k, r̂_k)/γ_k²
        c.find_alpha(&mut run, k, params.solver.breakdown)?;
        c.clear_overflowed(&run, &mut p[k], z_k)?;
        // r̂_{k+1} = r̂_k − α_k ẑ_k
        c.residual(&mut run, k, z_k, r)?;
        run.advance()?;
        k += 1;

        if c.cycle_ends(&mut run, k) {
            // χ_l + Σ_{i>l} β_{l,i} χ_i = α_l, x̂ = Σ χ_i p̂_i
            c.update(space, k, p, &mut run.state.correction)?;
            // x ← x + x̂, r̂₀ = b − A x
            run.refresh(r)?;
            c.adapt_length(&mut run, params.k_max)?;
            c.begin_cycle(&run);
            k = 0;
        }
        run.close_with(observer, |correction| c.update(space, k, p, correction))?;
    }
    run.succeed()
}
