//! Conjugate gradients for Hermitian positive definite operators, and CGNR and CGNE for all others.

use crate::compact::{Plan, Rhs, shrinks};
use crate::error::SolveError;
use crate::info::Info;
use crate::normal::{Original, Squared, count_flops, norms_of};
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::reliable::{Claim, Control, Outer, Run, Trouble};
use crate::traits::{Descent, VectorSpace};
use num_complex::Complex64;
use std::cell::RefCell;

/// In sloppy arithmetic (p, A p) ≤ 0 may be rounding: it has to happen this often before the operator is blamed.
const CURVATURE_FAILURES: usize = 3;

/// Parameters of [`cg`], [`cgnr`] and [`cgne`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CgParams {
    /// ε: the solve ends when ‖b_j − A x_j‖ ≤ ε ‖b_j‖ for every j, by the true residual.
    pub tol: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// δ of paper 001, Algorithm 2: a right-hand side wants a reliable update when its residual is below δ times the
    /// largest since the last update, or when it claims to have converged. One is made, of all, when half of the batch
    /// want one or one cannot wait: its residual is below δ² times the largest, or a tenth of what is asked for. With
    /// δ = 0 only claims count. `None` is 0.1 for a system of two precisions and 0 for one.
    pub delta: Option<f64>,
    /// Updates in a row whose true residual did not fall, although the recurrence's did, after which the solve gives
    /// up.
    pub max_stalls: usize,
    /// Iterations without a new smallest residual after which the solve gives up; 0 for no such limit.
    pub stagnation_window: usize,
}

impl Default for CgParams {
    fn default() -> Self {
        Self { tol: 1e-10, max_iterations: 10_000, delta: None, max_stalls: 5, stagnation_window: 0 }
    }
}

impl CgParams {
    fn control(&self) -> Control {
        Control {
            tol: self.tol,
            max_iterations: self.max_iterations,
            delta: self.delta,
            max_stalls: self.max_stalls,
            stagnation_window: self.stagnation_window,
            restarting: false,
            together: false,
        }
    }
}

/// Memory of [`cg`]: two precise blocks, four sloppy ones. For several right-hand sides, where a batch can become smaller,
/// a precise block more.
pub struct CgWorkspace<P: VectorSpace, S: VectorSpace> {
    core: Core<P, S>,
    copy: Option<P::Vector>,
}

/// That of the iteration itself.
struct Core<P: VectorSpace, S: VectorSpace> {
    outer: Outer<P, S>,
    r: S::Vector,
    p: S::Vector,
    ap: S::Vector,
    numbers: Numbers,
}

/// The numbers that belong to right-hand sides, by their slots.
struct Numbers {
    rho: Vec<f64>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
    fresh: Vec<bool>,
    failures: Vec<usize>,
    dots: Vec<Complex64>,
    left: Vec<Complex64>,
    right: Vec<Complex64>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> CgWorkspace<P, S> {
    /// Allocates for `system`; reusable for every system on the same spaces.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        Ok(Self { core: Core::new(system)?, copy: copy_of_rhs(system)? })
    }
}

/// Memory for a copy of b, where a solve may need one.
fn copy_of_rhs<P: VectorSpace>(
    system: &impl System<Precise = P, Error = P::Error>,
) -> Result<Option<P::Vector>, P::Error> {
    Ok(if shrinks(system) { Some(system.precise().allocate()?) } else { None })
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> Core<P, S> {
    fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let space = system.sloppy();
        Ok(Self {
            outer: Outer::new(system)?,
            r: space.allocate()?,
            p: space.allocate()?,
            ap: space.allocate()?,
            numbers: Numbers::new(space.nrhs()),
        })
    }
}

impl Numbers {
    fn new(n: usize) -> Self {
        let complex = || vec![Complex64::ZERO; n];
        Self {
            rho: vec![0.0; n],
            alpha: vec![0.0; n],
            beta: vec![0.0; n],
            fresh: vec![true; n],
            failures: vec![0; n],
            dots: complex(),
            left: complex(),
            right: complex(),
        }
    }

    fn rearrange(&mut self, plan: &Plan) {
        let Self { rho, alpha, beta, fresh, failures, dots, left, right } = self;
        [rho, alpha, beta].into_iter().for_each(|v| plan.numbers(v));
        [dots, left, right].into_iter().for_each(|v| plan.numbers(v));
        plan.numbers(fresh);
        plan.numbers(failures);
    }
}

/// Solves A x_j = b_j for a Hermitian positive definite A by conjugate gradients with reliable updates.
///
/// Per iteration, in the sloppy space: α = ‖r‖²/(p, A p), x̂ ← x̂ + α p, r ← r − α A p, β = ‖r_new‖²/‖r_old‖²,
/// p ← r + β p; one application and two reductions. At a reliable update (paper 001, Algorithm 2) the search direction
/// is kept, but made orthogonal to the new residual first: in exact arithmetic it is, and without this the next β
/// would mix the rounding errors of the old residual into all later directions.
///
/// `x` holds the initial guess on entry and the solution on exit (see [`SolveError`] for what it holds on failure).
///
/// # Batches that become smaller
/// A right-hand side that is finished, or was given up, stays as it is while the others go on. At the first update after
/// which those that are left fit into one of [`WIDTHS`](crate::WIDTHS) of no more than three quarters of the batch, they
/// move to the front of all blocks, and others are no longer computed but for as many as make up this width: neither by the
/// operators nor in linear algebra. That needs spaces and operators that can [narrow](VectorSpace::narrow)
/// ([`System::narrow`] asks all of them), and memory for a copy of b, because it is the caller's and must not be
/// rearranged. x and the report are in the caller's order, always.
///
/// # Errors
/// All of [`SolveError`] except `Breakdown`. (p, A p) ≤ 0 is `NotPositiveDefinite`.
pub fn cg<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &CgParams,
    workspace: &mut CgWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let CgWorkspace { core, copy } = workspace;
    cg_core(system, Rhs::Given(b, copy.as_mut()), x, params, core, observer, Claim::default())
}

fn cg_core<'a, Y: System>(
    system: &'a Y,
    b: Rhs<'a, Precise<Y>>,
    x: &'a mut Precise<Y>,
    params: &CgParams,
    workspace: &'a mut Core<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
    claim: Claim<'a, Y>,
) -> Result<Info, SolveError<Y::Error>> {
    let Core { outer, r, p, ap, numbers } = workspace;
    let space = system.sloppy();
    let mut run = Run::begin(system, b, x, outer, params.control(), claim)?;
    if run.finished() {
        return run.succeed();
    }
    run.demote(r)?;
    space.copy(r, p)?;
    *numbers = Numbers::new(space.nrhs());
    for j in 0..space.nrhs() {
        numbers.rho[j] = run.sloppy_norm2(j);
    }
    if params.max_iterations == 0 {
        return Err(run.no_convergence()?);
    }

    loop {
        if let Some(plan) = run.compact()? {
            plan.vectors(space, r, ap)?;
            plan.vectors(space, p, ap)?;
            numbers.rearrange(&plan);
        }
        let Numbers { rho, alpha, beta, fresh, failures, dots, left, right } = &mut *numbers;
        let n = rho.len();
        for j in 0..n {
            // Those that are finished stay where they are.
            alpha[j] = if run.outer.active[j] { rho[j] } else { 0.0 };
        }
        let from = Descent { shift: 0.0, p: &*p, r: &*r, rho: alpha };
        system.descend_sloppy(&from, ap, dots, &mut run.outer.norm2)?;
        std::mem::swap(r, ap);
        run.applied(1);
        run.info.reductions += 2;
        let mut forced = false;
        for j in 0..n {
            alpha[j] = 0.0;
            if !run.outer.active[j] {
                continue;
            }
            let curvature = dots[j].re;
            if !dots[j].is_finite() {
                run.give_up(j, Trouble::NotANumber)?;
                continue;
            }
            if curvature > 0.0 && (rho[j] / curvature).is_finite() {
                alpha[j] = rho[j] / curvature;
            } else {
                failures[j] += 1;
                if !system.is_mixed() || fresh[j] || failures[j] >= CURVATURE_FAILURES {
                    run.give_up(j, Trouble::NotPositive(curvature))?;
                } else {
                    run.outer.restart[j] = true;
                }
                forced = true;
            }
        }

        if !(run.advance()? || forced) {
            for j in 0..n {
                let new = run.outer.norm2[j];
                beta[j] = if run.outer.active[j] { new / rho[j] } else { 0.0 };
                (rho[j], fresh[j]) = (new, false);
            }
            space.cg_update(alpha, beta, r, &mut run.outer.correction, p)?;
        } else {
            for j in 0..n {
                left[j] = alpha[j].into();
            }
            space.axpy(left, p, &mut run.outer.correction)?;
            run.refresh(r)?;
            if !run.finished() {
                space.dot(r, p, dots)?;
                run.info.reductions += 1;
                for j in 0..n {
                    let new = run.sloppy_norm2(j);
                    fresh[j] = !run.outer.active[j] || run.outer.restart[j] || !dots[j].is_finite();
                    (left[j], right[j]) = if fresh[j] {
                        (Complex64::ONE, Complex64::ZERO)
                    } else {
                        // p ← r + β (p − (r, p)/‖r‖² r)
                        let beta = new / (rho[j] * run.rescaled(j));
                        (1.0 - beta * dots[j] / new, beta.into())
                    };
                    rho[j] = new;
                    run.outer.restart[j] = false;
                }
                space.axpby(left, r, right, p)?;
            }
        }
        run.close(observer)?;
        if run.finished() {
            return run.succeed();
        }
    }
}

/// Memory of [`cgnr`] and [`cgne`]: that of [`cg`], three precise blocks more and a sloppy one.
pub struct CgNormalWorkspace<P: VectorSpace, S: VectorSpace> {
    cg: Core<P, S>,
    /// For b of [`cgnr`]; that of the normal equations is the solver's own.
    copy: Option<P::Vector>,
    rhs: P::Vector,
    temporary: P::Vector,
    precise: RefCell<P::Vector>,
    sloppy: RefCell<S::Vector>,
    norms: Vec<f64>,
    residuals: Vec<f64>,
    mask: Vec<Complex64>,
    ones: Vec<Complex64>,
    zeros: Vec<Complex64>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> CgNormalWorkspace<P, S> {
    /// Allocates for `system`; reusable for every system on the same spaces.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let n = system.precise().nrhs();
        Ok(Self {
            cg: Core::new(system)?,
            copy: copy_of_rhs(system)?,
            rhs: system.precise().allocate()?,
            temporary: system.precise().allocate()?,
            precise: RefCell::new(system.precise().allocate()?),
            sloppy: RefCell::new(system.sloppy().allocate()?),
            norms: vec![0.0; n],
            residuals: vec![0.0; n],
            mask: vec![Complex64::ZERO; n],
            ones: vec![Complex64::ONE; n],
            zeros: vec![Complex64::ZERO; n],
        })
    }
}

/// Solves M x_j = b_j for a general M by conjugate gradients on the normal equations, M†M x = M†b.
///
/// The tolerance is that of the original system: the solve ends when ‖b_j − M x_j‖ ≤ ε ‖b_j‖, computed with the precise
/// M. The iteration only sees ‖M†(b − M x)‖; its target starts at ε ‖M†b‖ and is lowered, without losing the search
/// directions, until the original residual is small enough. `Info::history` and the observer show the residual of the
/// normal equations, `Info::true_residual` that of the original system; applications of M and M† count one each.
///
/// x minimises ‖b − M x‖ over the Krylov space: a singular M ends in `Stagnation` (or `NotPositiveDefinite`) with the
/// least-squares solution in x.
///
/// # Errors
/// As [`cg`].
pub fn cgnr<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &CgParams,
    workspace: &mut CgNormalWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let CgNormalWorkspace { cg, copy, rhs, temporary, precise, sloppy, norms, .. } = workspace;
    let space = system.precise();
    norms_of(space, b, norms)?;
    system.apply_dagger(b, rhs)?;
    let squared = Squared { inner: system, error: false, precise, sloppy };
    let mut judge = Original::new(system, b, copy.as_mut(), temporary);
    let claim = Claim { reference: None, judge: Some((&norms[..], &mut judge)) };
    let result = cg_core(&squared, Rhs::Own(rhs), x, params, cg, observer, claim);
    judge.report(result, params.tol)
}

/// Solves M x_j = b_j for a general M by conjugate gradients on M M† y = b − M x₀, x = x₀ + M†y.
///
/// The residual that CG iterates is that of the original system, b − M x, so the tolerance needs no translation. x is
/// the solution next to x₀: the error is smallest over the Krylov space, while the residual oscillates more than that
/// of [`cgnr`]. Applications of M and M† count one each.
///
/// # Errors
/// As [`cg`].
pub fn cgne<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &CgParams,
    workspace: &mut CgNormalWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    params.control().check()?;
    let CgNormalWorkspace { cg, rhs, temporary: y, precise, sloppy, norms, residuals, mask, ones, zeros, .. } =
        workspace;
    let space = system.precise();
    let n = norms.len();
    norms_of(space, b, norms)?;
    let mut total = Info { iterations_per_rhs: vec![0; n], history: vec![Vec::new(); n], ..Info::default() };
    total.reductions += 1;
    for j in 0..n {
        mask[j] = if norms[j] == 0.0 { Complex64::ZERO } else { Complex64::ONE };
    }
    // b_j = 0 gives x_j = 0, whatever the guess.
    space.axpby(zeros, b, mask, x)?;
    let squared = Squared { inner: system, error: true, precise, sloppy };
    let mut worst = f64::INFINITY;
    loop {
        // r ← b − M x: before the first pass from the guess, after each pass the check of its claim.
        system.apply(x, rhs)?;
        space.sub_norm2(b, rhs, residuals)?;
        total.precise_applications += 1;
        total.precise_sides += n;
        total.reductions += 1;
        let mut left = 0.0f64;
        for j in 0..n {
            residuals[j] = if norms[j] == 0.0 { 0.0 } else { residuals[j].sqrt() / norms[j] };
            // A NaN shall win, so that the next pass reports it.
            left = if residuals[j] > left || residuals[j].is_nan() { residuals[j] } else { left };
        }
        total.true_residual.clone_from(residuals);
        total.converged = left <= params.tol;
        count_flops(system, &mut total);
        if total.converged {
            return Ok(total);
        }
        let spent = total.iterations;
        if spent > 0 && spent >= params.max_iterations {
            return Err(SolveError::NoConvergence { iterations: spent, residual: left, info: Box::new(total) });
        }
        if left >= worst {
            let rhs = residuals.iter().position(|v| *v == left).unwrap_or(0);
            return Err(SolveError::Stagnation { iterations: spent, rhs, residual: left, info: Box::new(total) });
        }
        worst = left;

        space.zero(y)?;
        let pass = CgParams { max_iterations: params.max_iterations - spent, ..*params };
        let claim = Claim { reference: Some(&norms[..]), judge: None };
        let mut outside = |event: &crate::Iteration<'_>| {
            observer.iteration(&crate::Iteration { iteration: event.iteration + spent, ..*event })
        };
        let mut result = cg_core(&squared, Rhs::Own(rhs), y, &pass, cg, &mut outside, claim);
        let info = match &mut result {
            Ok(info) => info,
            Err(error) => match error.info_mut() {
                Some(info) => info,
                None => return result,
            },
        };
        system.apply_dagger(y, rhs)?;
        space.axpby(ones, rhs, ones, x)?;
        total.precise_applications += 1 + 2 * info.precise_applications;
        total.precise_sides += n + 2 * info.precise_sides;
        total.sloppy_applications += 2 * info.sloppy_applications;
        total.sloppy_sides += 2 * info.sloppy_sides;
        total.reductions += info.reductions;
        total.reliable_updates += info.reliable_updates;
        total.restarts += info.restarts;
        total.iterations += info.iterations;
        total.failed.clone_from(&info.failed);
        for j in 0..n {
            total.iterations_per_rhs[j] += info.iterations_per_rhs[j];
            // A pass begins with what the one before ended with.
            let again = usize::from(!total.history[j].is_empty()).min(info.history[j].len());
            total.history[j].extend(info.history[j].drain(..).skip(again));
        }
        if let Err(mut error) = result {
            system.apply(x, rhs)?;
            space.sub_norm2(b, rhs, residuals)?;
            total.precise_applications += 1;
            total.precise_sides += n;
            total.reductions += 1;
            for j in 0..n {
                residuals[j] = if norms[j] == 0.0 { 0.0 } else { residuals[j].sqrt() / norms[j] };
            }
            total.true_residual.clone_from(residuals);
            count_flops(system, &mut total);
            error.replace_info(total);
            return Err(error);
        }
    }
}
