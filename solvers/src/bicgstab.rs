//! BiCGstab with reliable updates: Clark et al. 2009, Algorithm 2.

use crate::compact::{Compaction, Rhs, copy_of_rhs};
use crate::error::SolveError;
use crate::failure::{BreakdownKind, RhsFailure};
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, Sloppy, System};
use crate::params::SolverParams;
use crate::reliable::{Criterion, ReliableSolve, ReliableState, UpdatePolicy};
use crate::rows::{KeptRho, RowOfSums, places};
use crate::small::minus;
use crate::traits::{Dots, VectorSpace};
use num_complex::Complex64;

/// Threshold of ‖r‖²/‖s‖² below which ‖r‖² is measured instead of computed as a difference. Sums are accurate to about 1e-8
/// if the numbers of a site are added in single precision.
const CANCELLED: f64 = 1e-4;

/// Memory of [`bicgstab`]: two precise and six sloppy blocks, and one more precise block if a batch of several right-hand
/// sides can become smaller.
pub struct BicgstabWorkspace<P: VectorSpace, S: VectorSpace> {
    state: ReliableState<P, S>,
    copy: Option<P::Vector>,
    vectors: BicgstabVectors<S>,
}

/// Sloppy vectors of BiCGstab.
struct BicgstabVectors<S: VectorSpace> {
    /// Residual r; s between the two applications.
    r: S::Vector,
    /// Shadow residual r̃.
    shadow: S::Vector,
    p: S::Vector,
    v: S::Vector,
    t: S::Vector,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> BicgstabWorkspace<P, S> {
    /// Allocates the workspace for `system`. Any system on the same spaces can use it.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let space = system.sloppy();
        Ok(Self {
            state: ReliableState::new(system)?,
            copy: copy_of_rhs(system)?,
            vectors: BicgstabVectors {
                r: space.allocate()?,
                shadow: space.allocate()?,
                p: space.allocate()?,
                v: space.allocate()?,
                t: space.allocate()?,
            },
        })
    }
}

/// Solves A x_j = b_j for a general regular A by BiCGstab with reliable updates (Clark et al. 2009, Algorithm 2).
///
/// Per iteration, in the sloppy space: v = A p, α = ρ/(r̃, v), s = r − α v, t = A s, ω = (t, s)/‖t‖², x̂ ← x̂ + α p + ω s, r
/// ← s − ω t, ρ' = (r̃, r), β = (ρ'/ρ)(α/ω), p ← r + β (p − ω v). An iteration takes two applications and two reductions:
/// ρ' = (r̃, s) − ω (r̃, t) and ‖r‖² = ‖s‖² − |ω|²‖t‖² follow from the sums that ω needs, so that one pass over memory makes
/// the three updates. If such a difference loses digits, the quantity is measured instead. After a reliable update ρ' is that
/// of the new residual; directions and r̃ are kept.
///
/// If ρ, (r̃, v) or ω vanishes, the affected right-hand side adds the current correction and restarts with its true residual
/// as r and r̃. If the restart breaks down without progress, the next one uses r̃ = r + v ‖r‖/‖v‖.
///
/// Right-hand sides that are finished leave the batch as in [`cg`](crate::cg()#batches-that-become-smaller).
///
/// `x` holds the initial guess on entry and the solution on exit (see [`SolveError`] for what it holds on failure).
///
/// # Errors
/// All errors of [`SolveError`] except `NotPositiveDefinite`.
pub fn bicgstab<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &SolverParams,
    workspace: &mut BicgstabWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let BicgstabWorkspace { state, copy, vectors: BicgstabVectors { r, shadow, p, v, t } } = workspace;
    let space = system.sloppy();
    let b = Rhs::Given(b, copy.as_mut());
    let mut run = ReliableSolve::begin(system, b, x, state, params, UpdatePolicy::Half, Criterion::default())?;
    if run.finished() {
        return run.succeed();
    }
    run.require_iterations()?;
    // r = b − A x, r̃ = p = r, ρ = ‖r‖²
    run.demote(r)?;
    space.copy(r, shadow)?;
    space.copy(r, p)?;
    let mut c = BicgstabScalars::new(&run, space.nrhs(), params.breakdown);

    while !run.finished() {
        if let Some(compaction) = run.compact()? {
            [&mut *r, shadow, p].into_iter().try_for_each(|x| compaction.vectors(space, x, t))?;
            c.rearrange(&compaction);
        }
        let row = c.run_row(&mut run, [&mut *r, p, v, t], shadow, observer)?;
        let missed = row.unwrap_or_default();
        if row.is_some() {
            c.find_alpha(&mut run)?;
        } else {
            // v = A p, α = ρ / (r̃, v)
            system.apply_dot_sloppy(p, v, shadow, &mut c.shadow_v, &mut c.scratch)?;
            c.find_alpha(&mut run)?;
            // s = r − α v overwrites r
            space.axpy(&minus(&c.alpha), v, r)?;
            // t = A s, ω = (t, s) / ‖t‖²
            system.apply_dots_sloppy(r, t, shadow, &mut c.sums)?;
        }
        run.info.reductions += 2;
        run.applied(2);
        // ρ' = (r̃, s) − ω (r̃, t), ‖r'‖² = ‖s‖² − |ω|² ‖t‖²
        let cancelled = c.find_omega(&mut run)?;
        if cancelled {
            // x̂ ← x̂ + α p + ω s, r' = s − ω t
            c.update(space, p, t, &mut run.state.correction, r)?;
            // ρ' = (r̃, r'), ‖r'‖²
            space.dot_norm2_of(shadow, r, &mut c.next_rho, &mut run.state.norm2)?;
            run.info.reductions += 1;
        }

        let due = run.advance()? | c.find_breakdowns(&mut run) | missed;
        if due {
            // If a vector is not finite, even a coefficient of 0 would make x̂ NaN.
            if !cancelled && run.any_in_range() {
                // x̂ ← x̂ + α p + ω s, r' = s − ω t
                c.update(space, p, t, &mut run.state.correction, r)?;
            }
            // x ← x + x̂, r ← b − A x
            run.refresh(r)?;
            if !run.finished() {
                // ρ' = (r̃, r)
                space.dot(shadow, r, &mut c.next_rho)?;
                run.info.reductions += 1;
            }
        }
        // β = (ρ'/ρ) (α/ω), ρ ← ρ'; right-hand sides that restart get β = 0 and r̃ = r
        let anew = c.find_beta(&mut run, due)?;
        c.restart_shadow(&mut run, &anew, r, v, shadow)?;
        if !(due || cancelled) {
            // x̂ ← x̂ + α p + ω s, r ← s − ω t, p ← r + β (p − ω v)
            space.bicgstab_step(&c.alpha, &c.omega, &c.beta, v, t, &mut run.state.correction, r, p)?;
        } else if !run.finished() {
            // p ← r + β (p − ω v)
            space.axpy(&minus(&c.omega), v, p)?;
            space.axpby(&vec![Complex64::ONE; c.omega.len()], r, &c.beta, p)?;
        }
        run.close(observer)?;
    }
    run.succeed()
}

/// Scalars of the iteration, one for each slot of the batch.
struct BicgstabScalars {
    /// Cosine of an angle at or below which two vectors count as orthogonal.
    breakdown: f64,
    rho: Vec<Complex64>,
    /// ρ' = (r̃, r').
    next_rho: Vec<Complex64>,
    alpha: Vec<Complex64>,
    beta: Vec<Complex64>,
    omega: Vec<Complex64>,
    /// (r̃, v).
    shadow_v: Vec<Complex64>,
    /// Sums over x = s, y = t and w = r̃.
    sums: Vec<Dots>,
    scratch: Vec<f64>,
    shadow_norm: Vec<f64>,
    broken: Vec<Option<BreakdownKind>>,
}

impl BicgstabScalars {
    fn new<Y: System>(run: &ReliableSolve<'_, Y>, n: usize, breakdown: f64) -> Self {
        let zeros = || vec![Complex64::ZERO; n];
        Self {
            breakdown,
            rho: (0..n).map(|j| run.sloppy_norm2(j).into()).collect(),
            next_rho: zeros(),
            alpha: zeros(),
            beta: zeros(),
            omega: zeros(),
            shadow_v: zeros(),
            sums: vec![Dots::default(); n],
            scratch: vec![0.0; n],
            shadow_norm: (0..n).map(|j| run.sloppy_norm2(j).sqrt()).collect(),
            broken: vec![None; n],
        }
    }

    fn rearrange(&mut self, compaction: &Compaction) {
        let Self { rho, next_rho, alpha, beta, omega, shadow_v, .. } = self;
        [rho, next_rho, alpha, beta, omega, shadow_v].into_iter().for_each(|v| compaction.scalars(v));
        [&mut self.scratch, &mut self.shadow_norm].into_iter().for_each(|v| compaction.scalars(v));
        compaction.scalars(&mut self.sums);
        compaction.scalars(&mut self.broken);
    }

    /// Runs several iterations in a row on the device, the last one up to its sums, if the system can and the next update is far
    /// enough away. Returns whether an update became due in an iteration before the last one; `None` if nothing was done.
    fn run_row<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        [r, p, v, t]: [&mut Sloppy<Y>; 4],
        shadow: &Sloppy<Y>,
        observer: &mut dyn Observer,
    ) -> Result<Option<bool>, SolveError<Y::Error>> {
        let (system, count) = (run.system(), run.iterations_in_a_row());
        let Some(kept) = system.sloppy().kept().filter(|_| count > 1) else { return Ok(None) };
        let active = self.rho.iter().zip(&run.state.active);
        let given: Vec<Complex64> = active.map(|(rho, active)| if *active { *rho } else { Complex64::ZERO }).collect();
        for k in 0..count {
            let (rho, [shadow_v, dots]) = (KeptRho::of_iteration(&given, k), places(k));
            // v = A p, s = r − α v, t = A s
            if !system.apply_dot_kept_sloppy(p, v, shadow, shadow_v)? {
                return Ok(None);
            }
            kept.bicgstab_half_kept(v, r, rho, shadow_v)?;
            if !system.apply_dots_kept_sloppy(r, t, shadow, dots)? {
                // No row is possible, and this first iteration goes on with sums on the host.
                system.apply_dots_sloppy(r, t, shadow, &mut self.sums)?;
                let sums = RowOfSums::new(kept.kept_sums(1)?, self.rho.len());
                self.take_shadow_v(&sums, shadow_v);
                return Ok(Some(false));
            }
            if k + 1 < count {
                // x̂ ← x̂ + α p + ω s, r ← s − ω t, p ← r + β (p − ω v)
                kept.bicgstab_step_kept(v, t, &mut run.state.correction, r, p, rho, places(k))?;
            }
        }
        let sums = RowOfSums::new(kept.kept_sums(2 * count)?, self.rho.len());
        let mut due = false;
        for k in 0..count {
            let [shadow_v, dots] = places(k);
            self.take_shadow_v(&sums, shadow_v);
            for (j, all) in self.sums.iter_mut().enumerate() {
                let sums = sums.at(dots, j);
                let complex = |k: usize| Complex64::new(sums[k], sums[k + 1]);
                *all = Dots { x_y: complex(0), w_x: complex(2), w_y: complex(4), x_x: sums[6], y_y: sums[7] };
            }
            if k + 1 < count {
                run.info.reductions += 2;
                run.applied(2);
                self.find_alpha(run)?;
                if self.find_omega(run)? {
                    // A difference that lost its digits is not looked at until the end of the row.
                    run.state.norm2.iter_mut().zip(&self.sums).for_each(|(n, s)| *n = n.max(CANCELLED * s.x_x));
                }
                due |= run.advance()? | self.find_breakdowns(run);
                self.next_iteration(run);
                run.close(observer)?;
            }
        }
        Ok(Some(due))
    }

    /// Reads (r̃, v) from a place.
    fn take_shadow_v(&mut self, sums: &RowOfSums, place: usize) {
        for (j, shadow_v) in self.shadow_v.iter_mut().enumerate() {
            let [re, im, ..] = *sums.at(place, j) else { unreachable!("a place has eight numbers") };
            *shadow_v = Complex64::new(re, im);
        }
    }

    /// Computes ρ ← ρ' for the next iteration of a row.
    fn next_iteration<Y: System>(&mut self, run: &ReliableSolve<'_, Y>) {
        for j in 0..self.rho.len() {
            if run.state.active[j] {
                self.rho[j] = self.next_rho[j];
            }
        }
    }

    /// Computes α = ρ / (r̃, v), or 0 if the quotient is zero or not finite.
    fn find_alpha<Y: System>(&mut self, run: &mut ReliableSolve<'_, Y>) -> Result<(), SolveError<Y::Error>> {
        self.broken.fill(None);
        for j in 0..self.rho.len() {
            self.alpha[j] = Complex64::ZERO;
            if !(run.state.active[j] && run.check_finite(j, self.shadow_v[j].is_finite())?) {
                continue;
            }
            let alpha = self.rho[j] / self.shadow_v[j];
            if alpha.is_finite() && alpha != Complex64::ZERO {
                self.alpha[j] = alpha;
            } else {
                // α = 0 gives s = r; the stabilising step may still reduce the residual.
                self.broken[j] = Some(BreakdownKind::Alpha);
            }
        }
        Ok(())
    }

    /// Computes ω = (t, s) / ‖t‖², ρ' = (r̃, s) − ω (r̃, t) and ‖r'‖² = ‖s‖² − |ω|² ‖t‖². Returns whether ‖r'‖² lost too many
    /// digits.
    fn find_omega<Y: System>(&mut self, run: &mut ReliableSolve<'_, Y>) -> Result<bool, SolveError<Y::Error>> {
        let mut cancelled = false;
        for (j, sums) in self.sums.iter().enumerate() {
            self.omega[j] = Complex64::ZERO;
            if !(run.state.active[j] && run.check_finite(j, sums.is_finite())?) {
                continue;
            }
            let omega = sums.x_y.conj() / sums.y_y;
            if omega.is_finite() {
                self.omega[j] = omega;
            }
            self.next_rho[j] = sums.w_x - self.omega[j] * sums.w_y;
            run.state.norm2[j] = sums.x_x - self.omega[j].norm_sqr() * sums.y_y;
            cancelled |= run.state.norm2[j] < CANCELLED * sums.x_x;
        }
        Ok(cancelled)
    }

    /// Computes x̂ ← x̂ + α p + ω s and r = s − ω t; `r` contains s on entry.
    fn update<S: VectorSpace>(
        &self,
        space: &S,
        p: &S::Vector,
        t: &S::Vector,
        x: &mut S::Vector,
        r: &mut S::Vector,
    ) -> Result<(), S::Error> {
        space.axpy(&self.alpha, p, x)?;
        space.axpy(&self.omega, r, x)?;
        space.axpy(&minus(&self.omega), t, r)
    }

    /// Marks the right-hand sides that break down in this iteration and have to restart. Returns whether one of them requires
    /// a reliable update.
    fn find_breakdowns<Y: System>(&mut self, run: &mut ReliableSolve<'_, Y>) -> bool {
        let mut due = false;
        for j in 0..self.rho.len() {
            if !run.state.active[j] || run.overflowed(j) {
                continue;
            }
            let norm2 = run.state.norm2[j];
            // ω minimises ‖s − ω t‖, and therefore ‖s‖² = ‖r‖² + |ω|²‖t‖².
            let moved = self.omega[j].norm_sqr() * self.sums[j].y_y;
            let what = if self.broken[j].is_some() {
                self.broken[j]
            } else if moved <= self.breakdown.powi(2) * (norm2 + moved) {
                Some(BreakdownKind::Omega)
            } else {
                self.orthogonal(j, norm2.sqrt()).then_some(BreakdownKind::Rho)
            };
            if run.seems_converged(j) {
                // A right-hand side that seems to have converged delays its update until others request one, unless it breaks
                // down.
                due |= what.is_some() || !self.quotient(j).is_finite();
                continue;
            }
            self.broken[j] = what;
            if what.is_some() {
                run.state.restart[j] = true;
                due = true;
            }
        }
        due
    }

    /// Computes β = (ρ'/ρ) (α/ω), and ρ ← ρ'. Returns the right-hand sides that restart, with β = 0: those marked by a
    /// reliable update (if `due`), and those that break down with the new residual.
    fn find_beta<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        due: bool,
    ) -> Result<Vec<bool>, SolveError<Y::Error>> {
        let mut anew = vec![false; self.rho.len()];
        for (j, anew) in anew.iter_mut().enumerate() {
            self.beta[j] = Complex64::ZERO;
            if !run.state.active[j] || due && !self.after_update(run, j)? {
                continue;
            }
            if !run.state.restart[j] {
                // If r was rescaled, ρ' contains the scale factor, so β rescales p as well.
                let beta = self.quotient(j);
                self.rho[j] = self.next_rho[j];
                if beta.is_finite() {
                    self.beta[j] = beta;
                } else if due {
                    // The recurrence seemed to have converged with ω = 0, but the true residual has not.
                    run.info.restarts += 1;
                    run.state.restart[j] = true;
                } else {
                    run.give_up(j, RhsFailure::NotANumber)?;
                    continue;
                }
            }
            if run.state.restart[j] {
                run.state.restart[j] = false;
                *anew = true;
                self.rho[j] = run.sloppy_norm2(j).into();
                self.shadow_norm[j] = run.sloppy_norm2(j).sqrt();
            }
        }
        Ok(anew)
    }

    /// Counts a breakdown that led to the last update, and restarts the right-hand side if r̃ is orthogonal to the new
    /// residual. Returns whether the right-hand side continues.
    fn after_update<Y: System>(&self, run: &mut ReliableSolve<'_, Y>, j: usize) -> Result<bool, SolveError<Y::Error>> {
        if let Some(what) = self.broken[j] {
            if !run.breakdown(j, what)? {
                return Ok(false);
            }
        } else if run.progressed(j) {
            run.forget_breakdowns(j);
        }
        if !run.state.restart[j] && self.orthogonal(j, run.sloppy_norm2(j).sqrt()) {
            run.info.restarts += 1;
            run.state.restart[j] = true;
        }
        Ok(true)
    }

    /// Sets r̃_j ← r_j for each right-hand side j that restarts (`anew`). After a breakdown without progress, sets r̃_j ←
    /// r_j + v_j ‖r_j‖/‖v_j‖ and ρ_j = (r̃_j, r_j) instead.
    fn restart_shadow<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        anew: &[bool],
        r: &Sloppy<Y>,
        v: &Sloppy<Y>,
        shadow: &mut Sloppy<Y>,
    ) -> Result<(), Y::Error> {
        let (space, n) = (run.system().sloppy(), anew.len());
        let mask = |chosen: bool| if chosen { Complex64::ONE } else { Complex64::ZERO };
        if anew.contains(&true) {
            let (of_r, of_shadow): (Vec<_>, Vec<_>) = anew.iter().map(|anew| (mask(*anew), mask(!anew))).unzip();
            space.axpby(&of_r, r, &of_shadow, shadow)?;
        }
        // A second restart with r̃ = r would break down in the same way.
        let again = |j: usize| anew[j] && self.broken[j].is_some() && run.breakdowns(j) > 0;
        let again: Vec<bool> = (0..n).map(again).collect();
        if !again.contains(&true) {
            return Ok(());
        }
        space.norm2(v, &mut self.scratch)?;
        let size: Vec<f64> = (0..n).map(|j| self.shadow_norm[j] / self.scratch[j].sqrt()).collect();
        let perturbed: Vec<bool> = (0..n).map(|j| again[j] && size[j].is_finite()).collect();
        let of_v: Vec<Complex64> =
            (0..n).map(|j| if perturbed[j] { size[j].into() } else { Complex64::ZERO }).collect();
        space.axpy(&of_v, v, shadow)?;
        space.dot(shadow, r, &mut self.next_rho)?;
        run.info.reductions += 2;
        for j in (0..n).filter(|&j| perturbed[j]) {
            if self.next_rho[j] != Complex64::ZERO {
                self.rho[j] = self.next_rho[j];
            }
        }
        Ok(())
    }

    /// Returns β = (ρ'/ρ) (α/ω).
    fn quotient(&self, j: usize) -> Complex64 {
        (self.next_rho[j] / self.rho[j]) * (self.alpha[j] / self.omega[j])
    }

    /// Whether r̃ is orthogonal to a residual with norm `norm`, where ρ' is their product.
    fn orthogonal(&self, j: usize, norm: f64) -> bool {
        self.next_rho[j].norm() <= self.breakdown * self.shadow_norm[j] * norm
    }
}
