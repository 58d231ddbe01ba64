//! Multi-shift conjugate gradients: (A + σ_i) x_i = b for many shifts at the price of one Krylov space.
//!
//! Jegerlehner, hep-lat/9612014 (CG-M); paper 004, eq. 4 and section 8.2. CG on A + σ₀, the *base system* with the
//! smallest shift, is
//!
//! α_k = ‖r_k‖²/(p_k, (A + σ₀) p_k),  r_{k+1} = r_k − α_k (A + σ₀) p_k,  β_k = ‖r_{k+1}‖²/‖r_k‖²,
//! p_{k+1} = r_{k+1} + β_k p_k.
//!
//! From x = 0 the Krylov spaces of all A + σ_i are the same, and CG residuals of the same degree are collinear:
//! r^i_k = ζ^i_k r_k with ζ^i_0 = 1. So each further system costs two vector updates and no application.
//!
//! # The recurrence
//! Eliminating p from CG gives r_{k+1} = (1 + t_k) r_k − α_k (A + σ₀) r_k − t_k r_{k−1} with t_k = α_k β_{k−1}/α_{k−1}
//! and t_0 = 0. Comparing coefficients with the same formula for A + σ_i, δ = σ_i − σ₀ ≥ 0, gives for the ratio
//! ρ_{k+1} = ζ_{k+1}/ζ_k
//!
//! e_{k+1} = δ α_k + t_k g_k,  ρ_{k+1} = 1/(1 + e_{k+1}),  g_{k+1} = 1 − ρ_{k+1} = e_{k+1} ρ_{k+1},  g_0 = 0.
//!
//! **Rounding.** α, t, δ and g are not negative, so e is a sum of positive terms and 1 − ρ is never formed as a
//! difference: each step keeps its digits however small δ is, and 0 < ρ ≤ 1 holds in floating point too.
//!
//! **Range.** ζ is a falling product. System i is dropped as soon as ζ ‖r‖ ≤ τ ‖b‖, and τ ≥ [`SMALLEST_TOLERANCE`] =
//! 10⁻¹⁸. CG keeps ‖r‖ ≤ √κ ‖b‖, κ the condition number of A + σ₀. Hence every ζ from which a step starts is larger
//! than 10⁻¹⁸/√κ and far from underflow; only the step that drops the system can go further down, and its ζ is used
//! once: for the last contribution to x_i, α ζ ≈ 1/δ for a large δ. What remains is the overflow of e itself, at
//! δ α > 10³⁰⁸, and that is reported as not a number.
//!
//! **Directions.** The direction of system i is kept as p^i/ζ^i. With it the updates are
//!
//! x_i ← x_i + α_k ζ_{k+1} p_i,  p_i ← r_{k+1} + β_k ρ_{k+1} p_i,
//!
//! so that p_i has the size of r, in any format, whatever ζ is, and the coefficient of r is 1.
//!
//! # Order of work
//! Only the base system's direction is needed for the next application, and an iteration has to know two sums
//! ([`LinearOperator::descend`], which may know the first one on the device only). So
//! updates of other systems can be queued behind the two reductions of the *next* iteration: a device does them while sums
//! travel to the host, and coefficients back. [`VectorSpace::updates_behind`] says how many pay. They need r_{k+1} until
//! then, hence r_{k+2} takes the place of (A + σ₀) p, and the two blocks change their roles.

use crate::compact::{Plan, Slots, Width, narrow_both};
use crate::error::SolveError;
use crate::info::Info;
use crate::observer::{Iteration, Kind, Observer};
use crate::reliable::{HISTORY, PROGRESS, ROUNDING, Trouble, failure, relative};
use crate::traits::{Descent, LinearOperator, ShiftStep, VectorSpace, with_coefficients};
use num_complex::Complex64;

/// With less, the recurrence would run on until it underflows.
const SMALLEST_TOLERANCE: f64 = ROUNDING;

/// Parameters of [`multishift_cg`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiShiftParams<'a> {
    /// τ_i: system i is dropped for right-hand side j when the recurrence's residual is at most τ_i ‖b_j‖. One entry
    /// for each shift, or a single one for all: `tol: &[1e-8]`. At least 10⁻¹⁸.
    pub tol: &'a [f64],
    /// Most iterations.
    pub max_iterations: usize,
    /// Iterations without a new smallest residual of the base system after which the solve gives up; 0 for no such
    /// limit.
    pub stagnation_window: usize,
    /// Whether to compute b_j − (A + σ_i) x_ij for all i at the end, which costs one application for each shift.
    /// Without it there is only the recurrence's word, which is worth less the lower the precision.
    pub check: bool,
}

impl Default for MultiShiftParams<'_> {
    fn default() -> Self {
        Self { tol: &[1e-10], max_iterations: 10_000, stagnation_window: 0, check: true }
    }
}

impl MultiShiftParams<'_> {
    fn tolerance(&self, shift: usize) -> f64 {
        if let [one] = self.tol { *one } else { self.tol[shift] }
    }

    fn validate<E: std::error::Error>(&self, shifts: &[f64]) -> Result<(), SolveError<E>> {
        if shifts.is_empty() {
            return Err(SolveError::Invalid("a multi-shift solve needs at least one shift"));
        }
        if self.tol.len() != 1 && self.tol.len() != shifts.len() {
            return Err(SolveError::Invalid("a multi-shift solve needs one tolerance, or one for each shift"));
        }
        if !self.tol.iter().all(|tol| *tol >= SMALLEST_TOLERANCE && tol.is_finite()) {
            return Err(SolveError::Invalid(
                "the tolerances of a multi-shift solve have to be finite and at least 1e-18, below which double \
                 precision means nothing",
            ));
        }
        let (low, high) = shifts.iter().fold((shifts[0], shifts[0]), |(low, high), s| (s.min(low), s.max(high)));
        // min and max skip NaN.
        if !(shifts.iter().all(|s| s.is_finite()) && (high - low).is_finite()) {
            return Err(SolveError::Invalid("the shifts and their differences have to be finite numbers"));
        }
        Ok(())
    }
}

/// What [`multishift_cg`] reached for one shift.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftInfo {
    /// σ_i.
    pub shift: f64,
    /// The iteration after which right-hand side j was dropped.
    pub iterations: Vec<usize>,
    /// The recurrence's ‖b_j − (A + σ_i) x_ij‖ / ‖b_j‖ at that moment, 0 for b_j = 0.
    pub residual: Vec<f64>,
    /// The same from the operator, in the precision of the solve; NaN where it was not computed.
    pub true_residual: Vec<f64>,
}

/// The report of [`multishift_cg`].
#[derive(Clone, Debug, PartialEq)]
pub struct MultiShiftInfo {
    /// The solve as a whole. The history is that of the base system, whose residual is the largest of all;
    /// `true_residual` has, for each right-hand side, the largest of all shifts, NaN without
    /// [`check`](MultiShiftParams::check); `converged` says that all those computed are within their tolerances, hence
    /// it is false without `check`. Applications in the iteration count as sloppy ones, those of the check as precise.
    pub whole: Info,
    /// Shift by shift, in the order of the caller.
    pub shifts: Vec<ShiftInfo>,
}

/// Memory of [`multishift_cg`]: two blocks, and one for each shift. The solutions come on top.
pub struct MultiShiftWorkspace<S: VectorSpace> {
    r: S::Vector,
    ap: S::Vector,
    /// p_i of the module's description, in the order of the shifts.
    p: Vec<S::Vector>,
    nrhs: usize,
    /// ‖b_j‖ in the order of the caller.
    reference: Vec<f64>,
    // One entry for each slot of the batch as it is at the moment.
    active: Vec<bool>,
    rho: Vec<f64>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
    /// β_k/α_k, from which t_{k+1} is made.
    momentum: Vec<f64>,
    lowest: Vec<f64>,
    lowest_at: Vec<usize>,
    relative: Vec<f64>,
    norm2: Vec<f64>,
    dots: Vec<Complex64>,
    left: Vec<Complex64>,
    // One entry for each shift and slot, those of one shift together.
    running: Vec<bool>,
    zeta: Vec<f64>,
    /// g = 1 − ρ.
    gap: Vec<f64>,
    a: Vec<f64>,
    z: Vec<f64>,
    b: Vec<f64>,
}

impl<S: VectorSpace> MultiShiftWorkspace<S> {
    /// Allocates for up to `shifts` shifts; reusable for every operator on `space`.
    pub fn new(space: &S, shifts: usize) -> Result<Self, S::Error> {
        let mut workspace = Self {
            r: space.allocate()?,
            ap: space.allocate()?,
            p: (0..shifts).map(|_| space.allocate()).collect::<Result<_, _>>()?,
            nrhs: space.nrhs(),
            reference: Vec::new(),
            active: Vec::new(),
            rho: Vec::new(),
            alpha: Vec::new(),
            beta: Vec::new(),
            momentum: Vec::new(),
            lowest: Vec::new(),
            lowest_at: Vec::new(),
            relative: Vec::new(),
            norm2: Vec::new(),
            dots: Vec::new(),
            left: Vec::new(),
            running: Vec::new(),
            zeta: Vec::new(),
            gap: Vec::new(),
            a: Vec::new(),
            z: Vec::new(),
            b: Vec::new(),
        };
        workspace.reset();
        Ok(workspace)
    }

    /// Numbers for all right-hand sides and shifts, as good as new.
    fn reset(&mut self) {
        let (n, all) = (self.nrhs, self.nrhs * self.p.len());
        (self.active, self.lowest_at, self.running) = (vec![false; n], vec![0; n], vec![false; all]);
        self.slots().into_iter().for_each(|v| *v = vec![0.0; n]);
        self.systems().into_iter().for_each(|v| *v = vec![0.0; all]);
        self.reference = vec![0.0; n];
        (self.dots, self.left) = (vec![Complex64::ZERO; n], vec![Complex64::ZERO; n]);
    }

    fn slots(&mut self) -> [&mut Vec<f64>; 7] {
        let Self { rho, alpha, beta, momentum, lowest, relative, norm2, .. } = self;
        [rho, alpha, beta, momentum, lowest, relative, norm2]
    }

    fn systems(&mut self) -> [&mut Vec<f64>; 5] {
        let Self { zeta, gap, a, z, b, .. } = self;
        [zeta, gap, a, z, b]
    }

    /// Leaves a system as it is in the next updates.
    fn rest(&mut self, at: usize) {
        (self.a[at], self.z[at], self.b[at]) = (0.0, 0.0, 1.0);
    }

    /// Follows a plan for a batch that is so wide.
    fn rearrange(&mut self, plan: &Plan, width: usize) {
        plan.numbers(&mut self.active);
        plan.numbers(&mut self.lowest_at);
        self.slots().into_iter().for_each(|v| plan.numbers(v));
        [&mut self.dots, &mut self.left].into_iter().for_each(|v| plan.numbers(v));
        plan.rows(&mut self.running, width);
        self.systems().into_iter().for_each(|v| plan.rows(v, width));
    }
}

/// Solves (A + σ_i) x_ij = b_j for all shifts σ_i and right-hand sides j by multi-shift conjugate gradients
/// (Jegerlehner, hep-lat/9612014; paper 004, eq. 4), in one precision.
///
/// A is Hermitian and A + min σ positive definite. The shifts may come in any order, and more than once. An iteration
/// is one application and two reductions, as in [`cg`](crate::cg), and one
/// [`shift_update`](VectorSpace::shift_update) of all systems that still move. The number of iterations is that of CG
/// on the smallest shift, unless a larger one has so small a tolerance that it takes longer.
///
/// Right-hand sides that are finished for all shifts leave the batch, if space and operator can
/// [narrow](VectorSpace::narrow).
///
/// `x` has one block for each shift. What it holds on entry is of no interest: the method has to start from zero.
/// Afterwards `x[i]` is the solution for `shifts[i]`.
///
/// # What the answer means
/// Residuals of all systems have to stay multiples of one vector, so there are no reliable updates: `Ok` means that the
/// **recurrence** fell below each tolerance. In low precision truth may be far above. With
/// [`check`](MultiShiftParams::check) the report has the true residuals of this precision, and `whole.converged`
/// compares them with the tolerances. To get further (paper 004, section 8.2), solve each system by [`cg`](crate::cg)
/// on a [`Mixed`](crate::Mixed) system of [`Shifted`](crate::Shifted) operators, with `x[i]` as guess.
///
/// There is no scaling either: b and x live in the same format, so digits of b that the format has lost are lost before
/// the solve. Formats of limited range ([`VectorSpace::comfortable_norm`]) want b to be brought near their comfortable
/// norm when it is converted, and still end where the residual leaves their range, three or four digits below. They
/// are no good choice here.
///
/// # Errors
/// `NoConvergence`, `Stagnation`, `NotPositiveDefinite`, `NotANumber`, `Cancelled`, `Invalid`, `Backend`. All but the
/// last two leave the last iterates in x, dropped ones as they were when they were dropped, and carry the
/// [`whole`](MultiShiftInfo::whole) of the report, with true residuals whether a check was asked for or not.
#[allow(clippy::too_many_arguments)] // the operator and its space come apart: there is no second precision to pair
pub fn multishift_cg<S: VectorSpace, A: LinearOperator<S> + ?Sized>(
    space: &S,
    operator: &A,
    shifts: &[f64],
    b: &S::Vector,
    x: &mut [S::Vector],
    params: &MultiShiftParams<'_>,
    workspace: &mut MultiShiftWorkspace<S>,
    observer: &mut dyn Observer,
) -> Result<MultiShiftInfo, SolveError<S::Error>> {
    let mut run = Run::begin(space, operator, shifts, b, x, params, workspace)?;
    while !run.finished() {
        let iteration = run.info.whole.iterations;
        if iteration >= params.max_iterations {
            return Err(run.no_convergence()?);
        }
        run.compact()?;
        run.iterate()?;
        let iteration = iteration + 1;
        let event = Iteration { iteration, residuals: &run.shown, kind: Kind::Iterate };
        let answer = observer.iteration(&event);
        if run.finished() {
            break;
        }
        if answer.is_break() {
            return Err(SolveError::Cancelled { iteration, info: run.report()? });
        }
        let window = params.stagnation_window;
        let stuck = |j: &usize| window > 0 && run.w.active[*j] && iteration - run.w.lowest_at[*j] > window;
        for slot in (0..run.w.active.len()).filter(stuck).collect::<Vec<_>>() {
            run.give_up(slot, Trouble::Stagnation);
        }
    }
    if run.troubles.iter().any(Option::is_some) {
        return Err(run.failure()?);
    }
    run.catch_up()?;
    run.widen()?;
    if params.check {
        run.measure()?;
    }
    run.count_flops();
    Ok(run.info)
}

/// The updates of the base system and of all others that move.
fn steps<'b, V>(
    base: usize,
    x: &'b mut [V],
    p: &'b mut [V],
    [a, z, b]: [&'b [f64]; 3],
) -> (ShiftStep<'b, V>, Vec<ShiftStep<'b, V>>) {
    let n = a.len() / p.len();
    let (mut of_base, mut others) = (None, Vec::new());
    let rows = a.chunks_exact(n).zip(z.chunks_exact(n)).zip(b.chunks_exact(n));
    for (i, ((x, p), ((a, z), b))) in x.iter_mut().zip(p).zip(rows).enumerate() {
        let step = ShiftStep { a, z, b, x, p };
        if i == base {
            of_base = Some(step);
        } else if moves(&step) {
            others.push(step);
        }
    }
    (of_base.expect("the base is one of the systems"), others)
}

/// Whether a system does not rest for all right-hand sides.
fn moves<V>(step: &ShiftStep<'_, V>) -> bool {
    !(0..step.a.len()).all(|j| step.rests(j))
}

/// A solve under way.
struct Run<'a, S: VectorSpace, A: ?Sized> {
    space: &'a S,
    operator: &'a A,
    shifts: &'a [f64],
    /// The index of the smallest shift.
    base: usize,
    rhs: &'a S::Vector,
    x: &'a mut [S::Vector],
    params: &'a MultiShiftParams<'a>,
    w: &'a mut MultiShiftWorkspace<S>,
    info: MultiShiftInfo,
    /// What happened to right-hand sides that were given up, and in which iteration, in the order of the caller.
    troubles: Vec<Option<(Trouble, usize)>>,
    slots: Slots,
    /// Relative residuals of the base system for the observer, in the order of the caller.
    shown: Vec<f64>,
    /// How many systems have the updates of the last iteration before them: the last of those that moved.
    late: usize,
    width: Width<'a>,
}

impl<'a, S: VectorSpace, A: LinearOperator<S> + ?Sized> Run<'a, S, A> {
    /// x = 0, r = p = b. Right-hand sides with b_j = 0, and tolerances of 1 and more, are finished by that.
    fn begin(
        space: &'a S,
        operator: &'a A,
        shifts: &'a [f64],
        rhs: &'a S::Vector,
        x: &'a mut [S::Vector],
        params: &'a MultiShiftParams<'a>,
        w: &'a mut MultiShiftWorkspace<S>,
    ) -> Result<Self, SolveError<S::Error>> {
        params.validate(shifts)?;
        if x.len() != shifts.len() {
            return Err(SolveError::Invalid("a multi-shift solve needs one block of solutions for each shift"));
        }
        if w.nrhs != space.nrhs() {
            return Err(SolveError::Invalid("the workspace was made for another number of right-hand sides"));
        }
        if w.p.len() < shifts.len() {
            return Err(SolveError::Invalid("the workspace was made for fewer shifts"));
        }
        let n = w.nrhs;
        let reserve = params.max_iterations.saturating_add(1).min(HISTORY);
        let whole = Info {
            iterations_per_rhs: vec![0; n],
            history: (0..n).map(|_| Vec::with_capacity(reserve)).collect(),
            true_residual: vec![f64::NAN; n],
            ..Info::default()
        };
        let one = |shift: &f64| ShiftInfo {
            shift: *shift,
            iterations: vec![0; n],
            residual: vec![0.0; n],
            true_residual: vec![f64::NAN; n],
        };
        let info = MultiShiftInfo { whole, shifts: shifts.iter().map(one).collect() };
        let base = (0..shifts.len()).min_by(|i, j| shifts[*i].total_cmp(&shifts[*j])).unwrap_or(0);
        w.reset();
        let mut run = Self {
            space,
            operator,
            shifts,
            base,
            rhs,
            x,
            params,
            w,
            info,
            troubles: vec![None; n],
            slots: Slots::new(n),
            shown: vec![0.0; n],
            late: 0,
            width: Width::new(n, |sides| narrow_both(space, operator, sides)),
        };
        for x in run.x.iter_mut() {
            space.zero(x)?;
        }
        space.norm2(rhs, &mut run.w.norm2)?;
        run.info.whole.reductions += 1;
        if let Some(rhs) = run.w.norm2.iter().position(|v| !v.is_finite()) {
            let info = Box::new(run.info.whole);
            return Err(SolveError::NotANumber { iteration: 0, rhs, info });
        }
        run.start()?;
        Ok(run)
    }

    fn start(&mut self) -> Result<(), S::Error> {
        let n = self.w.nrhs;
        let w = &mut *self.w;
        for j in 0..n {
            let norm = w.norm2[j].sqrt();
            (w.rho[j], w.reference[j], w.lowest[j], w.lowest_at[j]) = (w.norm2[j], norm, norm, 0);
            (w.alpha[j], w.beta[j], w.momentum[j], w.active[j]) = (0.0, 0.0, 0.0, false);
            w.relative[j] = relative(norm, norm);
            self.shown[j] = w.relative[j];
            self.info.whole.history[j].push(w.relative[j]);
        }
        for (i, info) in self.info.shifts.iter_mut().enumerate() {
            for j in 0..n {
                let at = i * n + j;
                (w.zeta[at], w.gap[at]) = (1.0, 0.0);
                w.running[at] = w.relative[j] > self.params.tolerance(i);
                w.active[j] |= w.running[at];
                info.residual[j] = w.relative[j];
            }
        }
        if self.finished() {
            return Ok(());
        }
        self.space.copy(self.rhs, &mut self.w.r)?;
        for p in &mut self.w.p[..self.shifts.len()] {
            self.space.copy(self.rhs, p)?;
        }
        Ok(())
    }

    /// Whether all shifts are finished for all right-hand sides.
    fn finished(&self) -> bool {
        !self.w.active.contains(&true)
    }

    /// Lets right-hand sides that are finished leave the batch, if it pays.
    fn compact(&mut self) -> Result<(), S::Error> {
        let (space, width) = (self.space, self.w.active.len());
        let Some(plan) = Plan::new(width, |j| self.w.active[j]) else { return Ok(()) };
        if !self.width.can_change() {
            return Ok(());
        }
        self.catch_up()?;
        let MultiShiftWorkspace { r, ap: scratch, p, .. } = &mut *self.w;
        plan.vectors(space, r, scratch)?;
        self.x.iter_mut().zip(p).try_for_each(|(x, p)| {
            plan.vectors(space, x, scratch)?;
            plan.vectors(space, p, scratch)
        })?;
        self.w.rearrange(&plan, width);
        self.slots.follow(&plan);
        self.width.set(plan.width());
        Ok(())
    }

    /// All right-hand sides in the order of the caller again.
    fn widen(&mut self) -> Result<(), S::Error> {
        if self.width.restore() {
            let (space, scratch) = (self.space, &mut self.w.ap);
            self.x.iter_mut().try_for_each(|x| self.slots.put_back(space, x, scratch))?;
            self.w.norm2.resize(self.w.nrhs, 0.0);
        }
        Ok(())
    }

    /// One iteration of CG on the base system, and what follows from it for the others.
    fn iterate(&mut self) -> Result<(), SolveError<S::Error>> {
        let (n, space) = (self.w.active.len(), self.space);
        // Those that are not active stay where they are.
        let rho: Vec<f64> = (0..n).map(|j| if self.w.active[j] { self.w.rho[j] } else { 0.0 }).collect();
        let MultiShiftWorkspace { r, ap, p, dots, norm2, a, z, b, .. } = &mut *self.w;
        let (base, mut others) = steps(self.base, self.x, p, [a, z, b]);
        let from = others.len() - self.late;
        let (left, right) = others[from..].split_at_mut(self.late.div_ceil(2));
        let [mut left, mut right] = [left, right].map(|late| || space.shift_update(r, late));
        let from = Descent { shift: self.shifts[self.base], p: base.p, r, rho: &rho };
        self.operator.descend(space, &from, ap, dots, norm2, [&mut left, &mut right])?;
        self.info.whole.sloppy_applications += 1;
        self.info.whole.sloppy_sides += n;
        self.info.whole.reductions += 2;
        let alpha: Vec<f64> = (0..n).map(|j| from.alpha(j, dots[j])).collect();
        std::mem::swap(r, ap);
        // No x has been touched for this iteration yet, and all are free of what went wrong.
        for (j, rho) in rho.into_iter().enumerate() {
            let (dot, norm2) = (self.w.dots[j], self.w.norm2[j]);
            if !self.w.active[j] {
                continue;
            }
            if !(dot.is_finite() && norm2.is_finite()) {
                self.give_up(j, Trouble::NotANumber);
            } else if !(dot.re > 0.0 && (rho / dot.re).is_finite()) {
                self.give_up(j, Trouble::NotPositive(dot.re));
            }
        }
        self.w.alpha.copy_from_slice(&alpha);
        for slot in self.recur() {
            self.give_up(slot, Trouble::NotANumber);
            for at in (slot..n * self.shifts.len()).step_by(n) {
                self.w.rest(at);
            }
        }
        Ok(self.update()?)
    }

    /// Leaves x_ij as they are for all shifts; the other right-hand sides go on, where there are any.
    fn give_up(&mut self, slot: usize, trouble: Trouble) {
        self.troubles[self.slots[slot]] = Some((trouble, self.info.whole.iterations));
        let w = &mut *self.w;
        w.active[slot] = false;
        for at in (slot..w.running.len()).step_by(w.active.len()) {
            w.running[at] = false;
        }
    }

    /// What went wrong for the first of the right-hand sides that were given up.
    fn failure(&mut self) -> Result<SolveError<S::Error>, S::Error> {
        Ok(failure(self.report()?, &self.troubles))
    }

    /// β, ζ and all that is made of them, from the new ‖r_j‖² in `norm2`. Answers with the slots for which a ζ left the
    /// range of numbers.
    fn recur(&mut self) -> Vec<usize> {
        let mut lost = Vec::new();
        let w = &mut *self.w;
        let n = w.active.len();
        let order = self.slots.first(n);
        let whole = &mut self.info.whole;
        whole.iterations += 1;
        for (j, &side) in order.iter().enumerate() {
            if !w.active[j] {
                continue;
            }
            let norm = w.norm2[j].sqrt();
            w.beta[j] = w.norm2[j] / w.rho[j];
            w.rho[j] = w.norm2[j];
            w.relative[j] = relative(norm, w.reference[side]);
            self.shown[side] = w.relative[j];
            if norm < PROGRESS * w.lowest[j] {
                (w.lowest[j], w.lowest_at[j]) = (norm, whole.iterations);
            }
            whole.iterations_per_rhs[side] += 1;
            whole.history[side].push(w.relative[j]);
            w.active[j] = false;
        }
        for (i, info) in self.info.shifts.iter_mut().enumerate() {
            let delta = self.shifts[i] - self.shifts[self.base];
            for (j, &side) in order.iter().enumerate() {
                let at = i * n + j;
                w.rest(at);
                if !w.running[at] {
                    continue;
                }
                let e = w.alpha[j] * (delta + w.momentum[j] * w.gap[at]);
                if !e.is_finite() {
                    lost.push(j);
                    w.running[at] = false;
                    continue;
                }
                let ratio = 1.0 / (1.0 + e);
                w.gap[at] = e * ratio;
                w.zeta[at] *= ratio;
                w.a[at] = w.alpha[j] * w.zeta[at];
                info.iterations[side] = whole.iterations;
                info.residual[side] = w.zeta[at] * w.relative[j];
                w.running[at] = info.residual[side] > self.params.tolerance(i);
                if w.running[at] {
                    // A dropped system needs its direction no more, and is spared that half of its last update.
                    (w.z[at], w.b[at]) = (1.0, w.beta[j] * ratio);
                    w.active[j] = true;
                }
            }
        }
        for j in 0..n {
            if w.active[j] {
                // The direction of the base system spans the Krylov space: it goes on although its x may be finished.
                let at = self.base * n + j;
                (w.z[at], w.b[at]) = (1.0, w.beta[j]);
                w.momentum[j] = w.beta[j] / w.alpha[j];
            }
        }
        lost.dedup();
        lost
    }

    /// The vector updates of all systems that move, but for those that pay later.
    fn update(&mut self) -> Result<(), S::Error> {
        let n = self.w.active.len();
        let MultiShiftWorkspace { r, p, a, z, b, left, dots: right, .. } = &mut *self.w;
        if self.slots.first(n).iter().any(|&side| self.troubles[side].is_some()) {
            // A residual that is not a number, times 0, is none either: anything finite takes its place.
            for j in 0..n {
                let failed = self.troubles[self.slots[j]].is_some();
                (left[j], right[j]) = (f64::from(u8::from(failed)).into(), f64::from(u8::from(!failed)).into());
            }
            self.space.axpby(left, self.rhs, right, r)?;
        }
        let (base, mut others) = steps(self.base, self.x, p, [a, z, b]);
        self.late = others.len().min(self.space.updates_behind().saturating_mul(2));
        others.truncate(others.len() - self.late);
        others.extend(Some(base).filter(moves));
        self.space.shift_update(r, &mut others)
    }

    /// The vector updates that are late, where no iteration comes that would do them.
    fn catch_up(&mut self) -> Result<(), S::Error> {
        let MultiShiftWorkspace { r, p, a, z, b, .. } = &mut *self.w;
        let (_, mut others) = steps(self.base, self.x, p, [a, z, b]);
        let from = others.len() - std::mem::take(&mut self.late);
        self.space.shift_update(r, &mut others[from..])
    }

    /// Computes the true residuals of all systems, with A p as scratch.
    fn measure(&mut self) -> Result<(), S::Error> {
        let n = self.w.nrhs;
        let w = &mut *self.w;
        let whole = &mut self.info.whole;
        whole.true_residual.fill(0.0);
        whole.converged = true;
        for (i, info) in self.info.shifts.iter_mut().enumerate() {
            self.operator.apply(&self.x[i], &mut w.ap)?;
            if info.shift != 0.0 {
                with_coefficients(n, |_| info.shift.into(), |shift| self.space.axpy(shift, &self.x[i], &mut w.ap))?;
            }
            self.space.sub_norm2(self.rhs, &mut w.ap, &mut w.norm2)?;
            whole.precise_applications += 1;
            whole.reductions += 1;
            for j in 0..n {
                let residual = relative(w.norm2[j].sqrt(), w.reference[j]);
                info.true_residual[j] = residual;
                whole.converged &= residual <= self.params.tolerance(i);
                let worst = &mut whole.true_residual[j];
                // NaN wins and stays.
                *worst = if residual <= *worst || worst.is_nan() { *worst } else { residual };
            }
        }
        Ok(())
    }

    fn count_flops(&mut self) {
        let whole = &mut self.info.whole;
        whole.precise_sides = self.w.nrhs * whole.precise_applications;
        whole.flops = (whole.precise_sides + whole.sloppy_sides) as f64 * self.operator.flops();
    }

    /// Closes the report of a solve that failed.
    fn report(&mut self) -> Result<Box<Info>, S::Error> {
        self.catch_up()?;
        self.widen()?;
        self.measure()?;
        self.count_flops();
        // The tolerances may hold by chance, but the solve did not come to its end.
        self.info.whole.converged = false;
        self.info.whole.failed = (0..self.troubles.len()).filter(|&j| self.troubles[j].is_some()).collect();
        Ok(Box::new(std::mem::take(&mut self.info.whole)))
    }

    fn no_convergence(&mut self) -> Result<SolveError<S::Error>, S::Error> {
        let info = self.report()?;
        Ok(SolveError::NoConvergence { iterations: info.iterations, residual: info.worst_residual(), info })
    }
}
