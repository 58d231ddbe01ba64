//! Conjugate gradients for Hermitian positive definite operators.

use crate::compact::{Compaction, Rhs, copy_of_rhs};
use crate::error::SolveError;
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, Sloppy, System};
use crate::params::SolverParams;
use crate::reliable::{Criterion, ReliableSolve, ReliableState, UpdatePolicy};
use crate::rows::{KeptRho, RowOfSums, places};
use crate::stopping::StoppingRule;
use crate::traits::{CgStep, VectorSpace};
use num_complex::Complex64;

/// Memory of [`cg`]: two precise and four sloppy blocks, and one more precise block if a batch of several right-hand sides
/// can become smaller.
pub struct CgWorkspace<P: VectorSpace, S: VectorSpace> {
    memory: CgMemory<P, S>,
    copy: Option<P::Vector>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> CgWorkspace<P, S> {
    /// Allocates the workspace for `system`. Any system on the same spaces can use it.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        Ok(Self { memory: CgMemory::new(system)?, copy: copy_of_rhs(system)? })
    }
}

/// Vectors and scalars of the CG iteration, for any system.
pub(crate) struct CgMemory<P: VectorSpace, S: VectorSpace> {
    state: ReliableState<P, S>,
    r: S::Vector,
    p: S::Vector,
    ap: S::Vector,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> CgMemory<P, S> {
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let space = system.sloppy();
        Ok(Self {
            state: ReliableState::new(system)?,
            r: space.allocate()?,
            p: space.allocate()?,
            ap: space.allocate()?,
        })
    }
}

/// Solves A x_j = b_j for a Hermitian positive definite A by conjugate gradients with reliable updates.
///
/// Per iteration, in the sloppy space: α = ‖r‖²/(p, A p), x̂ ← x̂ + α p, r ← r − α A p, β = ‖r_new‖²/‖r_old‖², p ← r + β p.
/// An iteration takes one application and two reductions. A reliable update (Clark et al. 2009, Algorithm 2) keeps the search
/// direction, but first makes it orthogonal to the new residual. In exact arithmetic it is orthogonal already; without this
/// step, the next β would mix the rounding errors of the old residual into all later directions.
///
/// `x` holds the initial guess on entry and the solution on exit (see [`SolveError`] for what it holds on failure).
///
/// # Batches that become smaller
/// A right-hand side that is finished or was given up keeps its x while the others continue. At an update, the remaining
/// right-hand sides may fit into one of the [`WIDTHS`](crate::WIDTHS) that is at most three quarters of the batch. They then
/// move to the front of all blocks, and neither operators nor linear algebra compute the others any more, except for as many
/// as fill up this width. Spaces and operators must support [narrowing](VectorSpace::narrow); [`System::narrow`] checks all
/// of them. The solve needs memory for a copy of b, because the caller's b must not be rearranged. x and the report are
/// always in the caller's order.
///
/// # Errors
/// All errors of [`SolveError`] except `Breakdown`. (p, A p) ≤ 0 is `NotPositiveDefinite`.
pub fn cg<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &SolverParams,
    workspace: &mut CgWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let CgWorkspace { memory, copy } = workspace;
    cg_on(system, Rhs::Given(b, copy.as_mut()), x, params, memory, observer, Criterion::default())
}

/// Solves A x = b like [`cg`]; `criterion` decides when a right-hand side has converged.
pub(crate) fn cg_on<'a, Y: System>(
    system: &'a Y,
    b: Rhs<'a, Precise<Y>>,
    x: &'a mut Precise<Y>,
    params: &SolverParams,
    memory: &'a mut CgMemory<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
    criterion: Criterion<'a, Y>,
) -> Result<Info, SolveError<Y::Error>> {
    let CgMemory { state, r, p, ap } = memory;
    let space = system.sloppy();
    let mut run = ReliableSolve::begin(system, b, x, state, params, UpdatePolicy::Half, criterion)?;
    if run.finished() {
        return run.succeed();
    }
    run.require_iterations()?;
    // r = b − A x, p = r, ρ = ‖r‖²
    run.demote(r)?;
    space.copy(r, p)?;
    let mut c = CgScalars::new(&run, space.nrhs());

    while !run.finished() {
        if let Some(compaction) = run.compact()? {
            compaction.vectors(space, r, ap)?;
            compaction.vectors(space, p, ap)?;
            c.rearrange(&compaction);
        }
        let row = c.run_row(&mut run, [&mut *r, p, ap], observer)?;
        let missed = row.unwrap_or_default();
        if row.is_none() {
            // Computes (p, A p), r' = r − α A p and ‖r'‖²; r' overwrites A p.
            let rho = c.rho_of_active(&run);
            let step = CgStep { shift: 0.0, p: &*p, r: &*r, rho: &rho };
            system.cg_step_sloppy(&step, ap, &mut c.p_ap, &mut run.state.norm2)?;
            std::mem::swap(r, ap);
        }
        run.applied(1);
        run.info.reductions += 2;
        // α = ρ / (p, A p)
        let failed = c.find_alpha(&mut run)?;

        let due = run.advance()? || failed || missed;
        if !due {
            // β = ρ' / ρ with ρ' = ‖r'‖²
            c.find_beta(&run);
            // x̂ ← x̂ + α p, p ← r' + β p
            space.cg_update(&c.alpha, &c.beta, r, &mut run.state.correction, p)?;
        } else {
            // x̂ ← x̂ + α p
            space.axpy(&c.complex_alpha(), p, &mut run.state.correction)?;
            // x ← x + x̂, r ← b − A x
            run.refresh(r)?;
        }
        if due && !run.finished() {
            // p ← r + β (p − (r, p)/‖r‖² r)
            space.dot(r, p, &mut c.r_p)?;
            run.info.reductions += 1;
            let (of_r, of_p) = c.orthogonal_direction(&mut run);
            space.axpby(&of_r, r, &of_p, p)?;
        }
        run.close(observer)?;
    }
    run.succeed()
}

/// Scalars of the iteration, one for each slot of the batch.
struct CgScalars {
    /// ρ = ‖r‖².
    rho: Vec<f64>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
    /// (p, A p).
    p_ap: Vec<Complex64>,
    /// (r, p).
    r_p: Vec<Complex64>,
    /// Whether p = r, for each slot.
    fresh: Vec<bool>,
    /// Number of times that (p, A p) was not positive, for each slot.
    not_positive: Vec<usize>,
}

impl CgScalars {
    fn new<Y: System>(run: &ReliableSolve<'_, Y>, n: usize) -> Self {
        Self {
            rho: (0..n).map(|j| run.sloppy_norm2(j)).collect(),
            alpha: vec![0.0; n],
            beta: vec![0.0; n],
            p_ap: vec![Complex64::ZERO; n],
            r_p: vec![Complex64::ZERO; n],
            fresh: vec![true; n],
            not_positive: vec![0; n],
        }
    }

    fn rearrange(&mut self, compaction: &Compaction) {
        [&mut self.rho, &mut self.alpha, &mut self.beta].into_iter().for_each(|v| compaction.scalars(v));
        [&mut self.p_ap, &mut self.r_p].into_iter().for_each(|v| compaction.scalars(v));
        compaction.scalars(&mut self.fresh);
        compaction.scalars(&mut self.not_positive);
    }

    /// Runs several iterations in a row on the device, the last one up to its sums, if the system can and the next update is far
    /// enough away. Returns whether an update became due in an iteration before the last one; `None` if nothing was done.
    fn run_row<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        [r, p, ap]: [&mut Sloppy<Y>; 3],
        observer: &mut dyn Observer,
    ) -> Result<Option<bool>, SolveError<Y::Error>> {
        let (system, count) = (run.system(), run.iterations_in_a_row());
        let Some(kept) = system.sloppy().kept().filter(|_| count > 1) else { return Ok(None) };
        let given = self.rho_of_active(run);
        for k in 0..count {
            // t = A p, r' = r − α t
            let rho = KeptRho::of_iteration(&given, k);
            if !system.cg_step_kept_sloppy([p, r], ap, rho, places(k))? {
                return Ok(None);
            }
            std::mem::swap(r, ap);
            if k + 1 < count {
                // x̂ ← x̂ + α p, p ← r' + β p
                kept.cg_update_kept(r, &mut run.state.correction, p, rho, places(k)[1])?;
            }
        }
        let sums = RowOfSums::new(kept.kept_sums(2 * count)?, self.rho.len());
        let mut due = false;
        for k in 0..count {
            for j in 0..self.rho.len() {
                let [norm2, curvature, ..] = *sums.at(places(k)[1], j) else {
                    unreachable!("a place has eight numbers")
                };
                (run.state.norm2[j], self.p_ap[j]) = (norm2, curvature.into());
            }
            if k + 1 < count {
                run.applied(1);
                run.info.reductions += 2;
                due |= self.find_alpha(run)?;
                due |= run.advance()?;
                self.find_beta(run);
                run.close(observer)?;
            }
        }
        Ok(Some(due))
    }

    /// Returns ρ for active right-hand sides, and 0 for finished ones, so that their x does not change.
    fn rho_of_active<Y: System>(&self, run: &ReliableSolve<'_, Y>) -> Vec<f64> {
        self.rho.iter().zip(&run.state.active).map(|(rho, active)| if *active { *rho } else { 0.0 }).collect()
    }

    /// Computes α = ρ / (p, A p). If the quotient is not positive, α is 0 and the right-hand side restarts or is given up.
    /// Returns whether a quotient was not positive.
    fn find_alpha<Y: System>(&mut self, run: &mut ReliableSolve<'_, Y>) -> Result<bool, SolveError<Y::Error>> {
        let mut failed = false;
        for j in 0..self.rho.len() {
            self.alpha[j] = 0.0;
            if !(run.state.active[j] && run.check_finite(j, self.p_ap[j].is_finite())?) {
                continue;
            }
            let curvature = self.p_ap[j].re;
            if curvature > 0.0 && (self.rho[j] / curvature).is_finite() {
                self.alpha[j] = self.rho[j] / curvature;
                continue;
            }
            failed = true;
            let certain = !run.system().is_mixed() || self.fresh[j];
            let failure = StoppingRule::not_positive(&mut self.not_positive[j], certain, curvature);
            if run.unless_failed(j, failure)? {
                run.state.restart[j] = true;
            }
        }
        Ok(failed)
    }

    /// Computes β = ρ' / ρ and ρ ← ρ' = ‖r'‖².
    fn find_beta<Y: System>(&mut self, run: &ReliableSolve<'_, Y>) {
        for j in 0..self.rho.len() {
            let new = run.state.norm2[j];
            self.beta[j] = if run.state.active[j] { new / self.rho[j] } else { 0.0 };
            (self.rho[j], self.fresh[j]) = (new, false);
        }
    }

    fn complex_alpha(&self) -> Vec<Complex64> {
        self.alpha.iter().map(|alpha| (*alpha).into()).collect()
    }

    /// Returns the coefficients of r and p in p ← r + β (p − (r, p)/‖r‖² r) after an update, or in p ← r for right-hand sides
    /// that restart. Sets ρ ← ‖r‖².
    fn orthogonal_direction<Y: System>(&mut self, run: &mut ReliableSolve<'_, Y>) -> (Vec<Complex64>, Vec<Complex64>) {
        let n = self.rho.len();
        let (mut of_r, mut of_p) = (vec![Complex64::ONE; n], vec![Complex64::ZERO; n]);
        for j in 0..n {
            let new = run.sloppy_norm2(j);
            self.fresh[j] = !run.state.active[j] || run.state.restart[j] || !self.r_p[j].is_finite();
            if !self.fresh[j] {
                let beta = new / (self.rho[j] * run.rescaled(j));
                (of_r[j], of_p[j]) = (1.0 - beta * self.r_p[j] / new, beta.into());
            }
            self.rho[j] = new;
            run.state.restart[j] = false;
        }
        (of_r, of_p)
    }
}
