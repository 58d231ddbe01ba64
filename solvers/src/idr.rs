//! IDR(s) with reliable updates: van Gijzen and Sonneveld 2011, the variant with bi-orthogonal directions.

use crate::compact::{Compaction, Rhs, copy_of_rhs};
use crate::error::SolveError;
use crate::failure::BreakdownKind;
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, Sloppy, System};
use crate::params::SolverParams;
use crate::reliable::{Criterion, ReliableSolve, ReliableState, UpdatePolicy};
use crate::small::minus;
use crate::traits::{Dots, VectorSpace};
use num_complex::Complex64;

/// Cosine of the angle between r and A r below which ω is enlarged (van Gijzen and Sonneveld 2011, section 4.2).
const SMALLEST_COSINE: f64 = 0.7;

/// Memory of [`idr`] with s shadow vectors: two precise and 3 s + 3 sloppy blocks, and one more precise block if a batch of
/// several right-hand sides can become smaller.
pub struct IdrWorkspace<P: VectorSpace, S: VectorSpace> {
    state: ReliableState<P, S>,
    copy: Option<P::Vector>,
    r: S::Vector,
    /// Vector v, and t = A r.
    t: S::Vector,
    /// p_i.
    shadow: Vec<S::Vector>,
    /// ‖p_i‖, with one row for each i.
    shadow_norms: Vec<f64>,
    /// u_i.
    u: Vec<S::Vector>,
    /// g_i = A u_i.
    g: Vec<S::Vector>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> IdrWorkspace<P, S> {
    /// Allocates the workspace for `system`. Any system on the same spaces can use it. The vectors p_1 … p_s in `shadow` span
    /// the shadow space; they must be unrelated to the operator, for example random. If each is equal in all right-hand
    /// sides, a right-hand side takes the same steps in a batch as alone.
    pub fn new(
        system: &impl System<Precise = P, Sloppy = S, Error = P::Error>,
        shadow: Vec<S::Vector>,
    ) -> Result<Self, P::Error> {
        let (space, s) = (system.sloppy(), shadow.len());
        let blocks = || (0..s).map(|_| space.allocate()).collect::<Result<Vec<_>, _>>();
        let mut shadow_norms = vec![0.0; s * space.nrhs()];
        shadow.iter().zip(shadow_norms.chunks_exact_mut(space.nrhs())).try_for_each(|(p, out)| space.norm2(p, out))?;
        shadow_norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
        Ok(Self {
            state: ReliableState::new(system)?,
            copy: copy_of_rhs(system)?,
            r: space.allocate()?,
            t: space.allocate()?,
            shadow,
            shadow_norms,
            u: blocks()?,
            g: blocks()?,
        })
    }
}

/// Solves A x_j = b_j for a general regular A by induced dimension reduction with reliable updates (van Gijzen and Sonneveld, ACM
/// TOMS 38, 5, 2011).
///
/// s is the number of shadow vectors in the workspace. Residuals lie in spaces G_0 ⊃ G_1 ⊃ …, each with G_{j+1} = (1 − ω
/// A)(G_j ∩ P^⊥). An iteration advances from one space to the next. Let f = P†r, and μ_{i,k} = (p_i, g_k), which is lower
/// triangular. For k = 1 … s, an iteration computes, in the sloppy space,
///
/// M c = f in rows and columns k … s, v = r − Σ_{i≥k} c_i g_i, u_k = ω v + Σ_{i≥k} c_i u_i, g_k = A u_k,
/// (u_k, g_k) ← (u_k, g_k) − Σ_{i<k} α_i (u_i, g_i) with α such that g_k ⊥ p_1 … p_{k−1},
/// β = f_k/μ_{k,k}, r ← r − β g_k, x̂ ← x̂ + β u_k, f_i ← f_i − β μ_{i,k}.
///
/// Then t = A r, ω = (t, r)/‖t‖², enlarged if r and t are nearly orthogonal, x̂ ← x̂ + ω r and r ← r − ω t. An iteration thus
/// takes s + 1 applications and s + 2 reductions. IDR(1) is BiCGstab except for the enlarged ω. With larger s the residual
/// falls more regularly, and with fewer applications if BiCGstab is slow.
///
/// Reliable updates keep the directions. If μ_{k,k} or ω vanishes, the affected right-hand side adds the current correction
/// and restarts with its true residual.
///
/// Right-hand sides that are finished leave the batch as in [`cg`](crate::cg()#batches-that-become-smaller).
///
/// `x` holds the initial guess on entry and the solution on exit (see [`SolveError`] for what it holds on failure).
///
/// # Errors
/// All errors of [`SolveError`] except `NotPositiveDefinite`.
pub fn idr<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &SolverParams,
    workspace: &mut IdrWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let IdrWorkspace { state, copy, r, t, shadow, shadow_norms, u, g } = workspace;
    let (space, s) = (system.sloppy(), shadow.len());
    if s == 0 {
        return Err(SolveError::Invalid("IDR(s) needs at least one shadow vector"));
    }
    let b = Rhs::Given(b, copy.as_mut());
    let mut run = ReliableSolve::begin(system, b, x, state, params, UpdatePolicy::Half, Criterion::default())?;
    if run.finished() {
        return run.succeed();
    }
    run.require_iterations()?;
    // r = b − A x, U = G = 0, M = 1, ω = 1, f = P†r
    run.demote(r)?;
    let mut c = IdrScalars::new(space.nrhs(), s, params.breakdown, shadow_norms);
    c.begin(&mut run, &vec![true; space.nrhs()], r, [shadow, u, g])?;

    while !run.finished() {
        if let Some(compaction) = run.compact()? {
            let vectors = shadow.iter_mut().chain(u.iter_mut()).chain(g.iter_mut());
            vectors.chain([&mut *r]).try_for_each(|x| compaction.vectors(space, x, t))?;
            c.rearrange(&compaction);
        }
        c.broken.fill(None);
        for k in 0..s {
            let ((u_before, u_after), (g_before, g_after)) = (u.split_at_mut(k), g.split_at_mut(k));
            // M c = f
            c.find_c(&run, k);
            // v = r − Σ_{i≥k} c_i g_i
            space.copy(r, t)?;
            space.multi_axpy(&minus(&c.c[k * c.nrhs()..]), g_after, t)?;
            let ((u_k, u_after), g_k) = (u_after.split_first_mut().expect("k < s"), &mut g_after[0]);
            // u_k = ω v + Σ_{i≥k} c_i u_i
            let (c_k, c_after) = c.c[k * c.nrhs()..].split_at(c.nrhs());
            space.axpby(&c.omega, t, c_k, u_k)?;
            space.multi_axpy(c_after, u_after, u_k)?;
            // g_k = A u_k
            system.apply_sloppy(u_k, g_k)?;
            // (u_k, g_k) ← (u_k, g_k) − Σ_{i<k} α_i (u_i, g_i), μ_{i,k} = (p_i, g_k)
            space.multi_dot(shadow, g_k, &mut c.dots, &mut c.norm2)?;
            c.find_alpha(&mut run, k)?;
            space.multi_axpy(&c.minus_alpha, u_before, u_k)?;
            space.multi_axpy(&c.minus_alpha, g_before, g_k)?;
            // x̂ ← x̂ + β u_k, r ← r − β g_k, f_i ← f_i − β μ_{i,k}
            c.find_beta(&run, k);
            space.axpy(&c.beta, u_k, &mut run.state.correction)?;
            space.axpy(&minus(&c.beta), g_k, r)?;
        }
        // t = A r, ω = (t, r) / ‖t‖²
        system.apply_dots_sloppy(r, t, r, &mut c.sums)?;
        c.find_omega(&mut run)?;
        // x̂ ← x̂ + ω r, r ← r − ω t
        space.mr_update(&c.omega, r, &mut run.state.correction, t)?;
        std::mem::swap(r, t);
        // f = P†r
        space.multi_dot(shadow, r, &mut c.f, &mut run.state.norm2)?;
        run.applied(s + 1);
        run.info.reductions += s + 2;

        if run.advance()? | c.find_breakdowns(&mut run) {
            // x ← x + x̂, r ← b − A x
            run.refresh(r)?;
            if !run.finished() {
                let anew = c.find_restarts(&mut run)?;
                c.begin(&mut run, &anew, r, [shadow, u, g])?;
            }
        }
        run.close(observer)?;
    }
    run.succeed()
}

/// Scalars of the iteration; each row has one number for each slot of the batch.
struct IdrScalars {
    s: usize,
    /// Cosine of an angle at or below which two vectors count as orthogonal.
    breakdown: f64,
    /// f_i = (p_i, r), in s rows.
    f: Vec<Complex64>,
    /// μ_{i,k} in row i s + k.
    mu: Vec<Complex64>,
    /// c_i, in s rows.
    c: Vec<Complex64>,
    /// −α_i, in k rows.
    minus_alpha: Vec<Complex64>,
    beta: Vec<Complex64>,
    omega: Vec<Complex64>,
    /// (p_i, A u_k), in s rows.
    dots: Vec<Complex64>,
    /// ‖A u_k‖².
    norm2: Vec<f64>,
    /// ‖p_i‖, in s rows.
    shadow_norms: Vec<f64>,
    /// Sums over x = r, y = t and w = r.
    sums: Vec<Dots>,
    broken: Vec<Option<BreakdownKind>>,
}

impl IdrScalars {
    fn new(n: usize, s: usize, breakdown: f64, shadow_norms: &[f64]) -> Self {
        let zeros = |rows: usize| vec![Complex64::ZERO; rows * n];
        Self {
            s,
            breakdown,
            f: zeros(s),
            mu: zeros(s * s),
            c: zeros(s),
            minus_alpha: Vec::new(),
            beta: zeros(1),
            omega: zeros(1),
            dots: zeros(s),
            norm2: vec![0.0; n],
            shadow_norms: shadow_norms.to_vec(),
            sums: vec![Dots::default(); n],
            broken: vec![None; n],
        }
    }

    fn nrhs(&self) -> usize {
        self.omega.len()
    }

    fn rearrange(&mut self, compaction: &Compaction) {
        let n = self.nrhs();
        [&mut self.f, &mut self.mu, &mut self.c, &mut self.dots].into_iter().for_each(|v| compaction.rows(v, n));
        [&mut self.beta, &mut self.omega].into_iter().for_each(|v| compaction.scalars(v));
        compaction.scalars(&mut self.norm2);
        compaction.rows(&mut self.shadow_norms, n);
        compaction.scalars(&mut self.sums);
        compaction.scalars(&mut self.broken);
    }

    /// Sets U = G = 0, M = 1 and ω = 1 for the right-hand sides that restart (`anew`), and f = P†r for all.
    fn begin<Y: System>(
        &mut self,
        run: &mut ReliableSolve<'_, Y>,
        anew: &[bool],
        r: &Sloppy<Y>,
        [shadow, u, g]: [&mut [Sloppy<Y>]; 3],
    ) -> Result<(), Y::Error> {
        let (space, n, s) = (run.system().sloppy(), self.nrhs(), self.s);
        if anew.contains(&true) {
            let old: Vec<_> = anew.iter().map(|anew| if *anew { Complex64::ZERO } else { Complex64::ONE }).collect();
            u.iter_mut().chain(g).try_for_each(|x| space.axpby(&vec![Complex64::ZERO; n], r, &old, x))?;
        }
        for j in (0..n).filter(|&j| anew[j]) {
            self.omega[j] = Complex64::ONE;
            for (row, mu) in self.mu.iter_mut().skip(j).step_by(n).enumerate() {
                *mu = if row / s == row % s { Complex64::ONE } else { Complex64::ZERO };
            }
        }
        run.info.reductions += 1;
        space.multi_dot(shadow, r, &mut self.f, &mut self.norm2)
    }

    /// Whether right-hand side j still takes steps in this iteration.
    fn moves<Y: System>(&self, run: &ReliableSolve<'_, Y>, j: usize) -> bool {
        run.state.active[j] && self.broken[j].is_none() && !run.overflowed(j)
    }

    /// Solves M c = f in rows and columns from k on. Sets c = 0 and ω = 0 for right-hand sides that take no step.
    fn find_c<Y: System>(&mut self, run: &ReliableSolve<'_, Y>, k: usize) {
        let (n, s) = (self.nrhs(), self.s);
        for j in 0..n {
            for i in k..s {
                let known: Complex64 = (k..i).map(|l| self.mu[(i * s + l) * n + j] * self.c[l * n + j]).sum();
                self.c[i * n + j] = (self.f[i * n + j] - known) / self.mu[(i * s + i) * n + j];
            }
            if !(k..s).all(|i| self.c[i * n + j].is_finite()) {
                self.broken[j] = Some(BreakdownKind::Mu);
            }
            if !self.moves(run, j) {
                (k..s).for_each(|i| self.c[i * n + j] = Complex64::ZERO);
                self.omega[j] = Complex64::ZERO;
            }
        }
    }

    /// Computes the α_i that make g_k orthogonal to p_i with i < k, and the resulting μ_{i,k} with i ≥ k.
    fn find_alpha<Y: System>(&mut self, run: &mut ReliableSolve<'_, Y>, k: usize) -> Result<(), SolveError<Y::Error>> {
        let (n, s) = (self.nrhs(), self.s);
        self.minus_alpha.clear();
        self.minus_alpha.resize(k * n, Complex64::ZERO);
        for j in 0..n {
            let finite = self.norm2[j].is_finite();
            if !(self.moves(run, j) && run.check_finite(j, finite)?) {
                continue;
            }
            for i in 0..k {
                let alpha = self.dots[i * n + j] / self.mu[(i * s + i) * n + j];
                self.minus_alpha[i * n + j] = -alpha;
                (i + 1..s).for_each(|l| self.dots[l * n + j] -= alpha * self.mu[(l * s + i) * n + j]);
            }
            (k..s).for_each(|i| self.mu[(i * s + k) * n + j] = self.dots[i * n + j]);
            if self.dots[k * n + j].norm() <= self.breakdown * self.shadow_norms[k * n + j] * self.norm2[j].sqrt() {
                self.broken[j] = Some(BreakdownKind::Mu);
            }
        }
        Ok(())
    }

    /// Computes β = f_k / μ_{k,k} and f_i ← f_i − β μ_{i,k}.
    fn find_beta<Y: System>(&mut self, run: &ReliableSolve<'_, Y>, k: usize) {
        let (n, s) = (self.nrhs(), self.s);
        for j in 0..n {
            self.beta[j] = Complex64::ZERO;
            let beta = self.f[k * n + j] / self.mu[(k * s + k) * n + j];
            if !(self.moves(run, j) && beta.is_finite()) {
                continue;
            }
            self.beta[j] = beta;
            (k..s).for_each(|i| self.f[i * n + j] -= beta * self.mu[(i * s + k) * n + j]);
        }
    }

    /// Computes ω = (t, r) / ‖t‖². If the cosine |(t, r)| / (‖t‖ ‖r‖) is below [`SMALLEST_COSINE`], multiplies ω by their
    /// ratio.
    fn find_omega<Y: System>(&mut self, run: &mut ReliableSolve<'_, Y>) -> Result<(), SolveError<Y::Error>> {
        for (j, sums) in self.sums.iter().enumerate() {
            self.omega[j] = Complex64::ZERO;
            if !(run.state.active[j] && run.check_finite(j, sums.is_finite())?) {
                continue;
            }
            let cosine = sums.x_y.norm() / (sums.x_x * sums.y_y).sqrt();
            if cosine > self.breakdown {
                self.omega[j] = sums.x_y.conj() / sums.y_y * (SMALLEST_COSINE / cosine).max(1.0);
            } else {
                self.broken[j] = self.broken[j].or(Some(BreakdownKind::Omega));
            }
        }
        Ok(())
    }

    /// Marks the right-hand sides that broke down in this iteration for a restart. Returns whether one of them requires a
    /// reliable update.
    fn find_breakdowns<Y: System>(&self, run: &mut ReliableSolve<'_, Y>) -> bool {
        let broken = |j: &usize| run.state.active[*j] && self.broken[*j].is_some() && !run.overflowed(*j);
        let broken: Vec<usize> = (0..self.nrhs()).filter(broken).collect();
        broken.iter().for_each(|&j| run.state.restart[j] |= !run.seems_converged(j));
        !broken.is_empty()
    }

    /// Counts the breakdowns after an update. Returns the right-hand sides that restart.
    fn find_restarts<Y: System>(&self, run: &mut ReliableSolve<'_, Y>) -> Result<Vec<bool>, SolveError<Y::Error>> {
        let mut anew = vec![false; self.nrhs()];
        for (j, anew) in anew.iter_mut().enumerate() {
            if !run.state.active[j] {
                continue;
            }
            if let Some(what) = self.broken[j] {
                *anew = run.breakdown(j, what)?;
            } else if run.progressed(j) {
                run.forget_breakdowns(j);
            }
            *anew |= run.state.active[j] && std::mem::take(&mut run.state.restart[j]);
        }
        Ok(anew)
    }
}
