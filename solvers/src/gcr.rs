//! Generalised conjugate residuals with a flexible preconditioner: paper 004, Algorithm 1.

use crate::compact::{Rhs, Width, shrinks};
use crate::cycle::Cycle;
use crate::error::{BreakdownKind, SolveError};
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::preconditioner::Preconditioner;
use crate::reliable::{Claim, Control, Outer, Run, Trouble};
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// How the image of a new direction is made orthogonal to those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orthogonalisation {
    /// Classical Gram-Schmidt: all products with the image as it came, in one reduction.
    #[default]
    Classical,
    /// Classical Gram-Schmidt, done twice: one reduction more, and orthogonal to rounding.
    ClassicalTwice,
    /// Modified Gram-Schmidt, as Algorithm 1 is written: one vector after the other, and a reduction for each.
    Modified,
}

/// Parameters of [`gcr`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcrParams {
    /// ε: the solve ends when ‖b_j − A x_j‖ ≤ ε ‖b_j‖ for every j, by the true residual.
    pub tol: f64,
    /// Most iterations, of one application and one call of the preconditioner each.
    pub max_iterations: usize,
    /// δ of paper 004, Algorithm 1: a restart is made when ‖r̂_k‖ < δ ‖r₀‖, r₀ being the true residual at the last one.
    /// 0 switches that off. `None` is 0.1 for a system of two precisions and 0 for one.
    pub delta: Option<f64>,
    /// k_max: directions after which a restart is made. At most as many as the workspace has.
    pub k_max: usize,
    /// How images are made orthogonal.
    pub orthogonalisation: Orthogonalisation,
    /// Restarts in a row whose true residual did not fall, although the recurrence's did, after which the solve gives
    /// up.
    pub max_stalls: usize,
    /// Iterations of a right-hand side without a new smallest residual after which the solve gives up; 0 for no such
    /// limit. Unlike CG and BiCGstab, a method that restarts may stay where it is for ever.
    pub stagnation_window: usize,
    /// The fraction of an image that has to be left when it is orthogonal to those before it; with less it is a
    /// combination of them, which is a breakdown.
    pub breakdown: f64,
    /// Restarts in a row after breakdowns without progress, after which the solve gives up.
    pub max_breakdowns: usize,
}

impl Default for GcrParams {
    fn default() -> Self {
        Self {
            tol: 1e-10,
            max_iterations: 10_000,
            delta: None,
            k_max: 16,
            orthogonalisation: Orthogonalisation::Classical,
            max_stalls: 5,
            stagnation_window: 500,
            breakdown: 1e-14,
            max_breakdowns: 5,
        }
    }
}

/// Memory of [`gcr`]: two precise blocks, and 2 k_max + 2 sloppy ones, and a precise one more for several right-hand
/// sides. That of the preconditioner comes on top.
pub struct GcrWorkspace<P: VectorSpace, S: VectorSpace> {
    outer: Outer<P, S>,
    /// For b, where the batch may become smaller.
    copy: Option<P::Vector>,
    r: S::Vector,
    /// p̂_k.
    p: Vec<S::Vector>,
    /// ẑ_k.
    z: Vec<S::Vector>,
    c: Cycle,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> GcrWorkspace<P, S> {
    /// Allocates for `system` and Krylov spaces of up to `k_max` directions; reusable for every system on the same
    /// spaces.
    pub fn new(
        system: &impl System<Precise = P, Sloppy = S, Error = P::Error>,
        k_max: usize,
    ) -> Result<Self, P::Error> {
        let n = system.precise().nrhs();
        let space = system.sloppy();
        let blocks = || (0..k_max).map(|_| space.allocate()).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            outer: Outer::new(system)?,
            copy: if shrinks(system) { Some(system.precise().allocate()?) } else { None },
            r: space.allocate()?,
            p: blocks()?,
            z: blocks()?,
            c: Cycle::new(n, k_max),
        })
    }
}

/// Solves A x_j = b_j for a general regular A by generalised conjugate residuals with restarts and a flexible
/// preconditioner K (paper 004, Algorithm 1). With [`MinimumResidual`](crate::MinimumResidual) on domains as K this is
/// GCR-DD.
///
/// A *cycle* begins with r̂₀ = r₀ = b − A x. In its iteration k, in the sloppy space:
///
/// p̂_k = K r̂_k, ẑ_k = M̂ p̂_k − Σ_{i<k} β_{i,k} ẑ_i with β_{i,k} = (ẑ_i, M̂ p̂_k)/γ_i², γ_k² = ‖ẑ_k‖²,
/// α_k = (ẑ_k, r̂_k)/γ_k², r̂_{k+1} = r̂_k − α_k ẑ_k.
///
/// The solution is not touched, hence *implicit* update. It happens at the end of the cycle: x̂ = Σ χ_i p̂_i with
/// χ_l + Σ_{i>l} β_{l,i} χ_i = α_l, then x ← x + x̂ and r₀ = b − A x in the precise space. A cycle ends with k = k_max,
/// when ‖r̂_k‖ < δ ‖r₀‖, or when the recurrence claims to have converged. One application, one call of K and two
/// reductions in each iteration, whatever k is.
///
/// Other than in the paper ẑ_k is not divided by γ_k: that saves a pass over memory, and keeps ẑ at the size of r̂, which
/// lies well in the range of the format.
///
/// # Rounding
/// If the ẑ_i lose their orthogonality, as they do after classical Gram-Schmidt in a low precision, the solution is
/// none the worse: M̂ p̂_k = ẑ_k + Σ β_{i,k} ẑ_i holds for the β that were used, whatever they are, so M̂ x̂ = Σ α_k ẑ_k
/// and r̂ remains the residual of x̂. Each step still minimises ‖r̂‖ along ẑ_k. What is lost is that the minimum over the
/// whole space is kept, that is, iterations. Other errors of low precision end with the cycle; hence δ.
///
/// A cycle whose true residual is no smaller than that before it is undone. After this one, or another that promised
/// far more than it kept, the next cycle of the right-hand side is half as long, for a repetition would go wrong in the
/// same way; after each good one a cycle may be one step longer.
///
/// # Stalls and breakdowns
/// Where (ẑ_k, r̂_k) vanishes, r̂_{k+1} = r̂_k would give the same direction again. The next one is then K ẑ_k, which
/// enlarges the space as Arnoldi's process does: without a preconditioner, or with a fixed linear one, residuals are
/// those of GMRES. Where nothing is left of an image, the right-hand side concerned goes to its restart with what it
/// has.
///
/// # Several right-hand sides
/// share k, each with its own coefficients. One whose restart is due waits until all others are there or k = k_max: each
/// takes the same steps as it would alone. [`Info::iterations_per_rhs`] does not count waiting. Those that are finished
/// leave the batch as in [`cg`](crate::cg#batches-that-become-smaller), if the preconditioner
/// [can](Preconditioner::narrow).
///
/// `x` holds the initial guess on entry and the solution on exit (see [`SolveError`] for what it holds on failure).
/// [`Info::reliable_updates`] counts restarts of the block, [`Info::restarts`] those of its right-hand sides that had to
/// go on, [`Info::preconditioner`] what K did.
///
/// # Errors
/// All of [`SolveError`] except `NotPositiveDefinite`.
pub fn gcr<Y: System, K: Preconditioner<Y::Sloppy> + ?Sized>(
    system: &Y,
    preconditioner: &K,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &GcrParams,
    workspace: &mut GcrWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let control = Control {
        tol: params.tol,
        max_iterations: params.max_iterations,
        delta: params.delta,
        max_stalls: params.max_stalls,
        stagnation_window: params.stagnation_window,
        restarting: true,
        together: false,
    };
    let GcrWorkspace { outer, copy, r, p, z, c } = workspace;
    if !(1..=c.k_max).contains(&params.k_max) {
        return Err(SolveError::Invalid(
            "k_max has to be at least 1, and at most the number of directions that the workspace was made for",
        ));
    }
    if params.max_breakdowns == 0 {
        return Err(SolveError::Invalid("max_breakdowns has to be at least 1"));
    }
    let space = system.sloppy();
    let n = outer.full();
    // Batches become smaller if all concerned can.
    let mut width = Width::new(n, |sides| preconditioner.narrow(sides));
    let copy = copy.as_mut().filter(|_| n == system.precise().nrhs() && width.can_change());
    let mut run = Run::begin(system, Rhs::Given(b, copy), x, outer, control, Claim::default())?;
    if run.finished() {
        return run.succeed();
    }
    if params.max_iterations == 0 {
        return Err(run.no_convergence()?);
    }
    run.demote(r)?;
    c.begin(n, params.k_max);
    c.begin_cycle(&run);
    let mut k = 0;

    loop {
        if let Some(plan) = run.compact()? {
            plan.vectors(space, r, &mut p[0])?;
            width.set(plan.width());
            c.rearrange(&plan);
            c.begin_cycle(&run);
        }
        let n = c.n;
        c.direction(&mut run, preconditioner, k, r, p, z)?;
        let (before, rest) = z.split_at_mut(k);
        let z_k = &mut rest[0];
        c.image(&mut run, params.orthogonalisation, before, &p[k], z_k, r)?;
        for j in 0..n {
            let at = k * n + j;
            (c.alpha[at], c.gamma2[at], c.left[j]) = (Complex64::ZERO, run.outer.norm2[j], Complex64::ZERO);
            if !run.outer.moves(j) {
                continue;
            }
            if !(c.dots[j].is_finite() && c.gamma2[at].is_finite() && c.image2[j].is_finite()) {
                run.give_up(j, Trouble::NotANumber)?;
                continue;
            }
            // Also where the image is zero.
            if c.gamma2[at] <= params.breakdown.powi(2) * c.image2[j] {
                c.broken[j] = true;
                run.outer.waiting[j] = true;
                // Where nothing was done, nothing was promised.
                run.outer.restart[j] = c.steps[j] == 0;
                continue;
            }
            let alpha = c.dots[j] / c.gamma2[at];
            (c.alpha[at], c.left[j], c.steps[j]) = (alpha, -alpha, k + 1);
        }
        c.residual(&mut run, k, z_k, r)?;
        run.advance()?;
        k += 1;
        for j in 0..n {
            run.outer.waiting[j] |= k >= c.reach[j];
        }

        if !(0..n).any(|j| run.outer.moves(j)) {
            c.update(space, k, p, &mut run.outer.correction)?;
            run.refresh(r)?;
            for j in 0..n {
                let reach = if run.deceived(j) { c.steps[j] / 2 } else { c.reach[j] + 1 };
                c.reach[j] = reach.clamp(1, params.k_max);
                let in_vain = c.broken[j] && run.outer.active[j] && !run.progressed(j);
                c.breakdowns[j] = if in_vain { c.breakdowns[j] + 1 } else { 0 };
                if c.breakdowns[j] >= params.max_breakdowns {
                    run.give_up(j, Trouble::Breakdown(BreakdownKind::Gamma))?;
                }
                run.outer.restart[j] = false;
            }
            k = 0;
            c.begin_cycle(&run);
        }
        run.close_with(observer, |correction| c.update(space, k, p, correction))?;
        if run.finished() {
            return run.succeed();
        }
    }
}
