//! BiCGstab with reliable updates: paper 001, Algorithm 2.

use crate::compact::{Plan, Rhs, shrinks};
use crate::error::{BreakdownKind, SolveError};
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::reliable::{Claim, Control, Outer, Run, Trouble};
use crate::traits::{Dots, VectorSpace};
use num_complex::Complex64;

/// ‖r‖²/‖s‖² below which ‖r‖² is measured and not computed from a difference: sums are good to about 1e-8 where those of
/// one site are added in single precision.
const CANCELLED: f64 = 1e-4;

/// Parameters of [`bicgstab`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BicgstabParams {
    /// ε: the solve ends when ‖b_j − A x_j‖ ≤ ε ‖b_j‖ for every j, by the true residual.
    pub tol: f64,
    /// Most iterations (of two applications each).
    pub max_iterations: usize,
    /// δ of paper 001, Algorithm 2, as in [`CgParams::delta`](crate::CgParams::delta).
    pub delta: Option<f64>,
    /// Updates in a row whose true residual did not fall, although the recurrence's did, after which the solve gives
    /// up.
    pub max_stalls: usize,
    /// Iterations without a new smallest residual after which the solve gives up; 0 for no such limit.
    pub stagnation_window: usize,
    /// Cosine of the angle below which two vectors count as orthogonal, which is a breakdown.
    pub breakdown: f64,
    /// Restarts in a row after breakdowns without progress, after which the solve gives up.
    pub max_breakdowns: usize,
}

impl Default for BicgstabParams {
    fn default() -> Self {
        Self {
            tol: 1e-10,
            max_iterations: 10_000,
            delta: None,
            max_stalls: 5,
            stagnation_window: 0,
            breakdown: 1e-14,
            max_breakdowns: 5,
        }
    }
}

/// Memory of [`bicgstab`]: two precise blocks, six sloppy ones. For several right-hand sides, where a batch can become
/// smaller, a precise block more.
pub struct BicgstabWorkspace<P: VectorSpace, S: VectorSpace> {
    outer: Outer<P, S>,
    copy: Option<P::Vector>,
    r: S::Vector,
    shadow: S::Vector,
    p: S::Vector,
    v: S::Vector,
    t: S::Vector,
    numbers: Numbers,
}

/// The numbers that belong to right-hand sides, by their slots.
#[derive(Default)]
struct Numbers {
    rho: Vec<Complex64>,
    next_rho: Vec<Complex64>,
    alpha: Vec<Complex64>,
    beta: Vec<Complex64>,
    omega: Vec<Complex64>,
    dots: Vec<Complex64>,
    sums: Vec<Dots>,
    left: Vec<Complex64>,
    right: Vec<Complex64>,
    t_norm2: Vec<f64>,
    shadow_norm: Vec<f64>,
    broken: Vec<Option<BreakdownKind>>,
    perturb: Vec<bool>,
    breakdowns: Vec<usize>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> BicgstabWorkspace<P, S> {
    /// Allocates for `system`; reusable for every system on the same spaces.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let space = system.sloppy();
        Ok(Self {
            outer: Outer::new(system)?,
            copy: if shrinks(system) { Some(system.precise().allocate()?) } else { None },
            r: space.allocate()?,
            shadow: space.allocate()?,
            p: space.allocate()?,
            v: space.allocate()?,
            t: space.allocate()?,
            numbers: Numbers::default(),
        })
    }
}

impl Numbers {
    fn new(n: usize) -> Self {
        let mut numbers = Self {
            sums: vec![Dots::default(); n],
            t_norm2: vec![0.0; n],
            shadow_norm: vec![0.0; n],
            broken: vec![None; n],
            perturb: vec![false; n],
            breakdowns: vec![0; n],
            ..Self::default()
        };
        numbers.complex().into_iter().for_each(|v| v.resize(n, Complex64::ZERO));
        numbers
    }

    fn complex(&mut self) -> [&mut Vec<Complex64>; 8] {
        let Self { rho, next_rho, alpha, beta, omega, dots, left, right, .. } = self;
        [rho, next_rho, alpha, beta, omega, dots, left, right]
    }

    fn rearrange(&mut self, plan: &Plan) {
        self.complex().into_iter().for_each(|v| plan.numbers(v));
        plan.numbers(&mut self.sums);
        plan.numbers(&mut self.t_norm2);
        plan.numbers(&mut self.shadow_norm);
        plan.numbers(&mut self.broken);
        plan.numbers(&mut self.perturb);
        plan.numbers(&mut self.breakdowns);
    }
}

/// Solves A x_j = b_j for a general regular A by BiCGstab with reliable updates (paper 001, Algorithm 2).
///
/// Per iteration, in the sloppy space: v = A p, α = ρ/(r̃, v), s = r − α v, t = A s, ω = (t, s)/‖t‖²,
/// x̂ ← x̂ + α p + ω s, r ← s − ω t, ρ' = (r̃, r), β = (ρ'/ρ)(α/ω), p ← r + β (p − ω v). Two applications, and two
/// reductions: ρ' = (r̃, s) − ω (r̃, t) and ‖r‖² = ‖s‖² − |ω|²‖t‖² come out of the sums that ω needs, so that the three
/// updates are one pass over memory. Where such a difference loses digits, it is measured instead. After a reliable
/// update ρ' is that of the new residual; directions and r̃ are kept.
///
/// Where ρ, (r̃, v) or ω vanish, the right-hand side concerned takes what the iteration could still give and begins
/// anew with its true residual as r and r̃; if that breaks down without progress, with r̃ = r + v ‖r‖/‖v‖.
///
/// Right-hand sides that are finished leave the batch as in [`cg`](crate::cg#batches-that-become-smaller).
///
/// `x` holds the initial guess on entry and the solution on exit (see [`SolveError`] for what it holds on failure).
///
/// # Errors
/// All of [`SolveError`] except `NotPositiveDefinite`.
pub fn bicgstab<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &BicgstabParams,
    workspace: &mut BicgstabWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let control = Control {
        tol: params.tol,
        max_iterations: params.max_iterations,
        delta: params.delta,
        max_stalls: params.max_stalls,
        stagnation_window: params.stagnation_window,
        restarting: false,
        together: false,
    };
    let BicgstabWorkspace { outer, copy, r, shadow, p, v, t, numbers } = workspace;
    let space = system.sloppy();
    let mut run = Run::begin(system, Rhs::Given(b, copy.as_mut()), x, outer, control, Claim::default())?;
    if run.finished() {
        return run.succeed();
    }
    run.demote(r)?;
    space.copy(r, shadow)?;
    space.copy(r, p)?;
    *numbers = Numbers::new(space.nrhs());
    for j in 0..space.nrhs() {
        numbers.rho[j] = run.sloppy_norm2(j).into();
        numbers.shadow_norm[j] = run.sloppy_norm2(j).sqrt();
    }
    if params.max_iterations == 0 {
        return Err(run.no_convergence()?);
    }

    loop {
        if let Some(plan) = run.compact()? {
            [&mut *r, shadow, p].into_iter().try_for_each(|x| plan.vectors(space, x, t))?;
            numbers.rearrange(&plan);
        }
        #[rustfmt::skip]
        let Numbers {
            rho, next_rho, alpha, beta, omega, dots, sums, left, right, t_norm2, shadow_norm, broken, perturb, breakdowns,
        } = &mut *numbers;
        let n = rho.len();
        broken.fill(None);
        system.apply_dot_sloppy(p, v, shadow, dots, t_norm2)?;
        run.info.reductions += 1;
        for j in 0..n {
            alpha[j] = Complex64::ZERO;
            if run.outer.active[j] {
                let quotient = rho[j] / dots[j];
                if !dots[j].is_finite() {
                    run.give_up(j, Trouble::NotANumber)?;
                } else if quotient.is_finite() && quotient != Complex64::ZERO {
                    alpha[j] = quotient;
                } else {
                    // s = r, and the stabilising step may still help.
                    broken[j] = Some(BreakdownKind::Alpha);
                }
            }
            left[j] = -alpha[j];
        }
        space.axpy(left, v, r)?;
        system.apply_dots_sloppy(r, t, shadow, sums)?;
        run.info.reductions += 1;
        run.applied(2);
        let mut measure = false;
        for j in 0..n {
            omega[j] = Complex64::ZERO;
            if run.outer.active[j] && !sums[j].is_finite() {
                run.give_up(j, Trouble::NotANumber)?;
            }
            if run.outer.active[j] {
                // ω = (t, s) / (t, t)
                let quotient = sums[j].x_y.conj() / sums[j].y_y;
                if quotient.is_finite() {
                    omega[j] = quotient;
                }
                t_norm2[j] = sums[j].y_y;
                next_rho[j] = sums[j].w_x - omega[j] * sums[j].w_y;
                run.outer.norm2[j] = sums[j].x_x - omega[j].norm_sqr() * t_norm2[j];
                measure |= run.outer.norm2[j] < CANCELLED * sums[j].x_x;
            }
        }
        if measure {
            update(space, alpha, omega, left, p, t, &mut run.outer.correction, r)?;
            space.dot_norm2(r, shadow, next_rho, &mut run.outer.norm2)?;
            next_rho.iter_mut().for_each(|rho| *rho = rho.conj());
            run.info.reductions += 1;
        }
        let mut due = run.advance()?;
        for j in 0..n {
            if !run.outer.active[j] {
                continue;
            }
            let norm2 = run.outer.norm2[j];
            // ω minimises ‖s − ω t‖, therefore ‖s‖² = ‖r‖² + |ω|²‖t‖².
            let moved = omega[j].norm_sqr() * t_norm2[j];
            let what = if broken[j].is_some() {
                broken[j]
            } else if moved <= params.breakdown.powi(2) * (norm2 + moved) {
                Some(BreakdownKind::Omega)
            } else {
                orthogonal(next_rho[j], shadow_norm[j], norm2.sqrt(), params.breakdown).then_some(BreakdownKind::Rho)
            };
            if !run.claims_nothing(j) {
                // One that seems to be done goes on until others want an update too, as long as it can.
                due |= what.is_some() || !((next_rho[j] / rho[j]) * (alpha[j] / omega[j])).is_finite();
                continue;
            }
            broken[j] = what;
            if broken[j].is_some() {
                run.outer.restart[j] = true;
                due = true;
            }
        }

        if due && !measure {
            update(space, alpha, omega, left, p, t, &mut run.outer.correction, r)?;
        }
        if due {
            run.refresh(r)?;
            if !run.finished() {
                space.dot(shadow, r, next_rho)?;
                run.info.reductions += 1;
            }
        }
        let mut anew = false;
        let mut perturbed = false;
        for j in 0..n {
            beta[j] = Complex64::ZERO;
            (left[j], right[j]) = (Complex64::ZERO, Complex64::ONE);
            perturb[j] = false;
            if !run.outer.active[j] {
                continue;
            }
            if due {
                if let Some(what) = broken[j] {
                    breakdowns[j] = if run.progressed(j) { 0 } else { breakdowns[j] + 1 };
                    if breakdowns[j] >= params.max_breakdowns {
                        run.give_up(j, Trouble::Breakdown(what))?;
                        continue;
                    }
                } else if run.progressed(j) {
                    breakdowns[j] = 0;
                }
                let norm = run.sloppy_norm2(j).sqrt();
                if !run.outer.restart[j] && orthogonal(next_rho[j], shadow_norm[j], norm, params.breakdown) {
                    run.info.restarts += 1;
                    run.outer.restart[j] = true;
                }
            }
            if !run.outer.restart[j] {
                // Where r has been rescaled, ρ' brings the factor that p needs to follow.
                beta[j] = (next_rho[j] / rho[j]) * (alpha[j] / omega[j]);
                rho[j] = next_rho[j];
                if !beta[j].is_finite() {
                    if !due {
                        run.give_up(j, Trouble::NotANumber)?;
                        beta[j] = Complex64::ZERO;
                        continue;
                    }
                    // A right-hand side that claimed to have converged, wrongly, with ω = 0.
                    run.info.restarts += 1;
                    run.outer.restart[j] = true;
                }
            }
            if run.outer.restart[j] {
                run.outer.restart[j] = false;
                beta[j] = Complex64::ZERO;
                anew = true;
                // The same r̃ would break down again where nothing has changed.
                perturb[j] = broken[j].is_some() && breakdowns[j] > 0;
                perturbed |= perturb[j];
                (left[j], right[j]) = (Complex64::ONE, Complex64::ZERO);
                rho[j] = run.sloppy_norm2(j).into();
                shadow_norm[j] = run.sloppy_norm2(j).sqrt();
            }
        }
        if anew {
            // r̃_j ← r_j where the right-hand side begins anew.
            space.axpby(left, r, right, shadow)?;
        }
        if perturbed {
            // r̃_j ← r_j + v_j ‖r_j‖/‖v_j‖.
            space.norm2(v, t_norm2)?;
            for j in 0..n {
                let quotient = shadow_norm[j] / t_norm2[j].sqrt();
                perturb[j] &= quotient.is_finite();
                left[j] = if perturb[j] { quotient.into() } else { Complex64::ZERO };
            }
            space.axpy(left, v, shadow)?;
            space.dot(shadow, r, next_rho)?;
            run.info.reductions += 2;
            for j in 0..n {
                if perturb[j] && next_rho[j] != Complex64::ZERO {
                    rho[j] = next_rho[j];
                }
            }
            perturb.fill(false);
        }
        if !(due || measure) {
            space.bicgstab_step(alpha, omega, beta, v, t, &mut run.outer.correction, r, p)?;
        } else if !run.finished() {
            // p ← r + β (p − ω v)
            for j in 0..n {
                (left[j], right[j]) = (-omega[j], Complex64::ONE);
            }
            space.axpy(left, v, p)?;
            space.axpby(right, r, beta, p)?;
        }
        run.close(observer)?;
        if run.finished() {
            return run.succeed();
        }
    }
}

/// x ← x + α p + ω s, r = s − ω t, with s in `r`.
#[allow(clippy::too_many_arguments)]
fn update<S: VectorSpace>(
    space: &S,
    alpha: &[Complex64],
    omega: &[Complex64],
    minus: &mut [Complex64],
    p: &S::Vector,
    t: &S::Vector,
    x: &mut S::Vector,
    r: &mut S::Vector,
) -> Result<(), S::Error> {
    space.axpy(alpha, p, x)?;
    space.axpy(omega, r, x)?;
    minus.iter_mut().zip(omega).for_each(|(minus, omega)| *minus = -omega);
    space.axpy(minus, t, r)
}

/// Whether |(a, b)| is no larger than `cosine` ‖a‖ ‖b‖.
fn orthogonal(product: Complex64, a: f64, b: f64, cosine: f64) -> bool {
    product.norm() <= cosine * a * b
}
