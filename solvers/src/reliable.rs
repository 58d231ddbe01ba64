//! What CG, BiCGstab and GCR share: the bookkeeping of reliable updates (paper 001, Algorithm 2).
//!
//! The solution is x + x̂: x in the precise space, and x̂, the sum of the steps since the last update, in the sloppy
//! one. An update adds x̂ to x, clears it and replaces the recurrence's residual by b − A x. A right-hand side wants one
//! when ‖r̂_j‖ < δ M_j, M_j being the largest residual since the last update, and **when it seems to have converged**: only
//! a residual from the precise operator finishes a right-hand side.
//!
//! An update is one of all right-hand sides, and costs as much as several iterations. Of a batch the first to want one
//! would have all of them updated far more often than each needs it, so an update is due when half of those that move want
//! one, or one of them has gone on for so long that it should not wait ([`URGENT`]). Block CG makes one when every
//! right-hand side wants it.
//!
//! GCR has no recurrence that could go on after an update: all its directions are forgotten then. A right-hand side for
//! which an update is due *waits* until all others want one too, so that none costs another its directions.
//!
//! CG and BiCGstab let right-hand sides that are finished leave the batch after an update ([`Run::compact`]). What
//! belongs to a right-hand side is found by its slot from then on; reports are in the caller's order throughout.

use crate::compact::{Plan, Rhs, Width};
use crate::error::{BreakdownKind, SolveError};
use crate::info::Info;
use crate::observer::{Iteration, Kind, Observer};
use crate::operator::{Precise, Sloppy, System};
use crate::traits::VectorSpace;
use num_complex::Complex64;
use std::cmp::Ordering;

/// A residual counts as progress when it is below this fraction of the best one so far.
pub(crate) const PROGRESS: f64 = 0.9;
/// Wrong claims of convergence without progress in between after which the precision is blamed.
const FALSE_CLAIMS: usize = 4;
/// A right-hand side that wanted an update does not wait for others below this fraction of the residual at which it did,
/// or below that of δ: what the sloppy precision got wrong since the last update is far smaller still.
const URGENT: f64 = 0.1;
/// No residual relative to ‖b‖ below this means anything in double precision.
pub(crate) const ROUNDING: f64 = 1e-18;
/// Histories are reserved for this many iterations at most; longer ones grow.
pub(crate) const HISTORY: usize = 10_000;

/// The parameters that all solvers with reliable updates have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    pub tol: f64,
    pub max_iterations: usize,
    pub delta: Option<f64>,
    pub max_stalls: usize,
    pub stagnation_window: usize,
    /// Whether each update forgets all directions (GCR). Updates may then be due when nothing much was promised: only
    /// a truth that is far from the recurrence counts against the precision.
    pub restarting: bool,
    /// Whether an update is due only when each right-hand side wants one: where all go on together in any case.
    pub together: bool,
}

impl Control {
    pub fn check<E: std::error::Error>(&self) -> Result<(), SolveError<E>> {
        if !(self.tol >= 0.0 && self.tol.is_finite()) {
            return Err(SolveError::Invalid("the tolerance has to be a finite number that is not negative"));
        }
        if self.delta.is_some_and(|delta| !(0.0..1.0).contains(&delta)) {
            return Err(SolveError::Invalid("δ has to be at least 0 (off) and below 1"));
        }
        if self.max_stalls == 0 {
            return Err(SolveError::Invalid("max_stalls has to be at least 1"));
        }
        Ok(())
    }
}

/// Vectors and per-right-hand-side scalars of the outer part of a solve. The scalars are those of the slots of the batch
/// as it is at the moment.
pub(crate) struct Outer<P: VectorSpace, S: VectorSpace> {
    /// Right-hand sides that the vectors have memory for.
    full: usize,
    residual: P::Vector,
    /// The x_j with the smallest true residual so far, where x_j itself is not it.
    best_x: P::Vector,
    x_is_best: Vec<bool>,
    /// x̂.
    pub correction: S::Vector,
    /// Results of the last reduction: ‖r_j‖² of the recurrence.
    pub norm2: Vec<f64>,
    /// The right-hand sides still worked on.
    pub active: Vec<bool>,
    /// Right-hand sides that have to forget their directions at the next update, or just had to.
    pub restart: Vec<bool>,
    /// Right-hand sides that do not move until the next update.
    pub waiting: Vec<bool>,
    deceived: Vec<bool>,
    reference: Vec<f64>,
    target: Vec<f64>,
    iterated: Vec<f64>,
    maximum: Vec<f64>,
    verified: Vec<f64>,
    judged: Vec<f64>,
    best: Vec<f64>,
    progressed: Vec<bool>,
    stalls: Vec<usize>,
    false_claims: Vec<usize>,
    lowest: Vec<f64>,
    lowest_at: Vec<usize>,
    relative: Vec<f64>,
    /// The sloppy residual and x̂ are `scale` times what they stand for.
    scale: Vec<f64>,
    unscale: Vec<f64>,
    /// `scale` over that before the last update.
    rescaled: Vec<f64>,
    zeros: Vec<Complex64>,
    mask: Vec<Complex64>,
    unmask: Vec<Complex64>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> Outer<P, S> {
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let n = system.precise().nrhs();
        Ok(Self {
            full: n,
            residual: system.precise().allocate()?,
            best_x: system.precise().allocate()?,
            x_is_best: vec![true; n],
            correction: system.sloppy().allocate()?,
            norm2: vec![0.0; n],
            active: vec![true; n],
            restart: vec![false; n],
            waiting: vec![false; n],
            deceived: vec![false; n],
            reference: vec![0.0; n],
            target: vec![0.0; n],
            iterated: vec![0.0; n],
            maximum: vec![0.0; n],
            verified: vec![0.0; n],
            judged: vec![0.0; n],
            best: vec![0.0; n],
            progressed: vec![false; n],
            stalls: vec![0; n],
            false_claims: vec![0; n],
            lowest: vec![0.0; n],
            lowest_at: vec![0; n],
            relative: vec![0.0; n],
            scale: vec![1.0; n],
            unscale: vec![1.0; n],
            rescaled: vec![1.0; n],
            zeros: vec![Complex64::ZERO; n],
            mask: vec![Complex64::ZERO; n],
            unmask: vec![Complex64::ZERO; n],
        })
    }
}

impl<P: VectorSpace, S: VectorSpace> Outer<P, S> {
    /// Right-hand sides that it was made for.
    pub fn full(&self) -> usize {
        self.full
    }

    fn flags(&mut self) -> [&mut Vec<bool>; 6] {
        let Self { x_is_best, active, restart, waiting, deceived, progressed, .. } = self;
        [x_is_best, active, restart, waiting, deceived, progressed]
    }

    fn counts(&mut self) -> [&mut Vec<usize>; 3] {
        [&mut self.stalls, &mut self.false_claims, &mut self.lowest_at]
    }

    #[rustfmt::skip]
    fn reals(&mut self) -> [&mut Vec<f64>; 13] {
        let Self {
            norm2, reference, target, iterated, maximum, verified, judged, best, lowest, relative, scale, unscale,
            rescaled, ..
        } = self;
        [
            norm2, reference, target, iterated, maximum, verified, judged, best, lowest, relative, scale, unscale,
            rescaled,
        ]
    }

    fn coefficients(&mut self) -> [&mut Vec<Complex64>; 3] {
        [&mut self.zeros, &mut self.mask, &mut self.unmask]
    }

    /// Follows a plan.
    fn rearrange(&mut self, plan: &Plan) {
        self.flags().into_iter().for_each(|v| plan.numbers(v));
        self.counts().into_iter().for_each(|v| plan.numbers(v));
        self.reals().into_iter().for_each(|v| plan.numbers(v));
        self.coefficients().into_iter().for_each(|v| plan.numbers(v));
    }

    /// Makes room for all right-hand sides again, with numbers that mean nothing.
    fn widen(&mut self) {
        let n = self.full;
        self.flags().into_iter().for_each(|v| v.resize(n, false));
        self.counts().into_iter().for_each(|v| v.resize(n, 0));
        self.reals().into_iter().for_each(|v| v.resize(n, 0.0));
        self.coefficients().into_iter().for_each(|v| v.resize(n, Complex64::ZERO));
    }

    /// The residual of the recurrence at which it is taken at its word. A target below rounding, zero for instance,
    /// must not make the recurrence run on until it underflows.
    fn level(&self, j: usize) -> f64 {
        self.target[j].max(ROUNDING * self.reference[j])
    }

    /// Whether the last update found about the residual that the recurrence had.
    fn agrees(&self, j: usize) -> bool {
        self.iterated[j] >= 0.5 * self.verified[j]
    }

    /// Whether right-hand side j takes part in the next iteration.
    pub fn moves(&self, j: usize) -> bool {
        self.active[j] && !self.waiting[j]
    }
}

/// Measures the residual the caller cares about, ‖b_j − M x_j‖, where the iterated one is that of another system
/// (CGNR iterates M†(b − M x)).
pub(crate) trait Judge<Y: System> {
    /// Measures.
    fn measure(&mut self, x: &Precise<Y>, out: &mut [f64]) -> Result<(), Y::Error>;
    /// Whether it can follow a plan.
    fn can_move(&self) -> bool;
    /// Follows a plan: x comes in another order from now on. `scratch` loses its content.
    fn follow(&mut self, plan: &Plan, scratch: &mut Precise<Y>) -> Result<(), Y::Error>;
    /// x comes in the caller's order again, and follows no more plans.
    fn restore(&mut self);
}

/// What differs between a plain solve and one made on behalf of another system.
pub(crate) struct Claim<'a, Y: System> {
    /// The norms that tolerances refer to; ‖b_j‖ where absent.
    pub reference: Option<&'a [f64]>,
    /// The norms that judged residuals refer to, in the caller's order, and the judge.
    pub judge: Option<(&'a [f64], &'a mut (dyn Judge<Y> + 'a))>,
}

impl<Y: System> Default for Claim<'_, Y> {
    fn default() -> Self {
        Self { reference: None, judge: None }
    }
}

/// Why a right-hand side is given up while others go on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    NotANumber,
    Stagnation,
    Breakdown(BreakdownKind),
    /// With (p, A p).
    NotPositive(f64),
}

/// The error about the first right-hand side that was given up.
pub(crate) fn failure<E: std::error::Error>(info: Box<Info>, troubles: &[Option<(Trouble, usize)>]) -> SolveError<E> {
    let first = (0..troubles.len()).find_map(|j| Some((j, troubles[j]?)));
    match first {
        None => SolveError::NoConvergence { iterations: info.iterations, residual: info.worst_residual(), info },
        Some((rhs, (Trouble::NotANumber, iteration))) => SolveError::NotANumber { iteration, rhs, info },
        Some((rhs, (Trouble::Stagnation, iterations))) => {
            SolveError::Stagnation { iterations, rhs, residual: info.true_residual[rhs], info }
        }
        Some((rhs, (Trouble::Breakdown(what), iteration))) => SolveError::Breakdown { what, iteration, rhs, info },
        Some((rhs, (Trouble::NotPositive(curvature), iteration))) => {
            SolveError::NotPositiveDefinite { curvature, iteration, rhs, info }
        }
    }
}

/// A solve under way.
pub(crate) struct Run<'a, Y: System> {
    system: &'a Y,
    b: Rhs<'a, Precise<Y>>,
    x: &'a mut Precise<Y>,
    pub outer: &'a mut Outer<Y::Precise, Y::Sloppy>,
    control: Control,
    delta: f64,
    claim: Claim<'a, Y>,
    pub info: Info,
    kind: Kind,
    /// What happened to those that were given up, and in which iteration, in the caller's order.
    troubles: Vec<Option<(Trouble, usize)>>,
    /// The caller's right-hand side in each slot; those that left the batch come last.
    order: Vec<usize>,
    /// The slots that have changed places, in the order of time.
    swaps: Vec<(usize, usize)>,
    /// What is known of all right-hand sides, in the caller's order: relative residuals for the observer; for those that
    /// have left, true residuals and what they refer to.
    shown: Vec<f64>,
    left: Vec<Option<(f64, f64)>>,
    width: Width<'a>,
    /// Whether x has all steps and x̂ none.
    settled: bool,
}

impl<'a, Y: System> Run<'a, Y> {
    /// Computes norms, targets and the first residual. Right-hand sides with b_j = 0 get x_j = 0 and are finished.
    pub fn begin(
        system: &'a Y,
        b: Rhs<'a, Precise<Y>>,
        x: &'a mut Precise<Y>,
        outer: &'a mut Outer<Y::Precise, Y::Sloppy>,
        control: Control,
        claim: Claim<'a, Y>,
    ) -> Result<Self, SolveError<Y::Error>> {
        control.check()?;
        let n = outer.full;
        if n != system.precise().nrhs() {
            return Err(SolveError::Invalid("the workspace was made for another number of right-hand sides"));
        }
        let delta = control.delta.unwrap_or(if system.is_mixed() { 0.1 } else { 0.0 });
        let reserve = control.max_iterations.saturating_add(1).min(HISTORY);
        let info = Info {
            iterations_per_rhs: vec![0; n],
            history: (0..n).map(|_| Vec::with_capacity(reserve)).collect(),
            true_residual: vec![f64::NAN; n],
            ..Info::default()
        };
        // What an earlier solve left here must not enter the report of this one.
        outer.widen();
        outer.verified.fill(f64::NAN);
        outer.reference.fill(f64::NAN);
        let mut run = Self {
            system,
            b,
            x,
            outer,
            control,
            delta,
            claim,
            info,
            kind: Kind::Iterate,
            troubles: vec![None; n],
            order: (0..n).collect(),
            swaps: Vec::new(),
            shown: vec![0.0; n],
            left: vec![None; n],
            width: Width::new(n, |sides| system.narrow(sides)),
            settled: true,
        };
        run.first_residual()?;
        Ok(run)
    }

    /// What is being solved.
    pub fn system(&self) -> &'a Y {
        self.system
    }

    fn first_residual(&mut self) -> Result<(), SolveError<Y::Error>> {
        let space = self.system.precise();
        let o = &mut *self.outer;
        space.norm2(self.b.get(), &mut o.norm2)?;
        self.info.reductions += 1;
        if let Some(rhs) = o.norm2.iter().position(|v| !v.is_finite()) {
            return Err(self.not_a_number(rhs));
        }
        for j in 0..o.norm2.len() {
            o.verified[j] = o.norm2[j].sqrt();
            o.reference[j] = self.claim.reference.map_or(o.verified[j], |reference| reference[j]);
            o.target[j] = self.control.tol * o.reference[j];
            o.active[j] = o.reference[j] > 0.0;
            o.mask[j] = if o.active[j] { Complex64::ONE } else { Complex64::ZERO };
            (o.restart[j], o.stalls[j], o.false_claims[j], o.lowest_at[j]) = (false, 0, 0, 0);
            o.waiting[j] = false;
            (o.judged[j], o.best[j], o.x_is_best[j]) = (0.0, f64::INFINITY, true);
            (o.scale[j], o.unscale[j]) = (1.0, 1.0);
        }
        if !o.active.contains(&true) {
            space.zero(self.x)?;
        } else {
            if o.active.contains(&false) {
                space.axpby(&o.zeros, self.b.get(), &o.mask, self.x)?;
            }
            space.norm2(self.x, &mut o.norm2)?;
            self.info.reductions += 1;
            if o.norm2.iter().all(|v| *v == 0.0) {
                // The usual case, and it saves an application: r = b.
                space.copy(self.b.get(), &mut o.residual)?;
            } else {
                self.true_residual()?;
            }
        }
        let o = &mut *self.outer;
        if let Some(rhs) = o.verified.iter().position(|v| !v.is_finite()) {
            return Err(self.not_a_number(rhs));
        }
        self.system.sloppy().zero(&mut o.correction)?;
        self.accept()?;
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            o.iterated[j] = o.verified[j];
            o.maximum[j] = o.verified[j];
            o.best[j] = o.verified[j];
            o.lowest[j] = o.verified[j];
            self.info.history[j].push(relative(o.verified[j], o.reference[j]));
        }
        Ok(())
    }

    /// r ← b − A x and its norms.
    fn true_residual(&mut self) -> Result<(), Y::Error> {
        let o = &mut *self.outer;
        self.system.apply(self.x, &mut o.residual)?;
        self.system.precise().sub_norm2(self.b.get(), &mut o.residual, &mut o.norm2)?;
        self.info.precise_applications += 1;
        self.info.precise_sides += o.active.len();
        self.info.reductions += 1;
        for (verified, norm2) in o.verified.iter_mut().zip(&o.norm2) {
            *verified = norm2.sqrt();
        }
        Ok(())
    }

    /// Finishes the right-hand sides whose true residuals allow it. Where another residual is judged, the target of
    /// those that failed is lowered in proportion.
    fn accept(&mut self) -> Result<(), Y::Error> {
        let o = &mut *self.outer;
        let claims = |o: &Outer<Y::Precise, Y::Sloppy>, j: usize| o.active[j] && o.verified[j] <= o.target[j];
        let Some((norms, judge)) = &mut self.claim.judge else {
            for j in 0..o.active.len() {
                if claims(o, j) {
                    o.active[j] = false;
                }
            }
            return Ok(());
        };
        if (0..o.active.len()).any(|j| claims(o, j)) {
            judge.measure(self.x, &mut o.judged)?;
            for j in 0..o.active.len() {
                if claims(o, j) {
                    let aim = self.control.tol * norms[self.order[j]];
                    if o.judged[j] <= aim {
                        o.active[j] = false;
                    } else {
                        o.target[j] = 0.5 * o.target[j].min(o.verified[j]) * (aim / o.judged[j]).max(1e-4);
                    }
                }
            }
        }
        Ok(())
    }

    /// The residual in the sloppy format, scaled so that it lies well in its range.
    pub fn demote(&mut self, to: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        let comfortable = self.system.sloppy().comfortable_norm();
        let o = &mut *self.outer;
        for j in 0..o.scale.len() {
            let before = o.scale[j];
            if o.active[j] {
                o.scale[j] = scale_for(comfortable, o.verified[j], before);
            }
            o.unscale[j] = 1.0 / o.scale[j];
            o.rescaled[j] = o.scale[j] / before;
        }
        self.system.demote(&o.scale, &o.residual, to)
    }

    /// Lets right-hand sides that are finished leave the batch, and narrows the system, where the last iteration ended in
    /// an update, it pays and everybody concerned can do it. The plan is for the solver's own vectors and numbers.
    ///
    /// In the precise space x, the best x and b are rearranged. x̂ is zero now, and the residual is scratch until the next
    /// update.
    pub fn compact(&mut self) -> Result<Option<Plan>, Y::Error> {
        let o = &mut *self.outer;
        let width = o.active.len();
        if !self.settled || width == 1 {
            return Ok(None);
        }
        // One that was given up only now may have to go back to its best x, which the next update does.
        let stays = |o: &Outer<_, _>, j: usize| {
            let better = o.x_is_best[j] || o.verified[j] <= o.best[j];
            o.active[j] || self.troubles[self.order[j]].is_some() && !better
        };
        let Some(plan) = Plan::new(width, |j| stays(o, j)) else { return Ok(None) };
        let judge_can = self.claim.judge.as_ref().is_none_or(|(_, judge)| judge.can_move());
        if !(self.b.can_move() && judge_can && self.width.can_change()) {
            return Ok(None);
        }
        for j in (0..width).filter(|&j| !stays(o, j)) {
            self.left[self.order[j]] = Some((o.verified[j], o.reference[j]));
            self.shown[self.order[j]] = relative(o.iterated[j], o.reference[j]);
        }
        let space = self.system.precise();
        plan.vectors(space, self.x, &mut o.residual)?;
        plan.vectors(space, &mut o.best_x, &mut o.residual)?;
        self.b.follow(space, &plan, &mut o.residual)?;
        if let Some((_, judge)) = &mut self.claim.judge {
            judge.follow(&plan, &mut o.residual)?;
        }
        o.rearrange(&plan);
        plan.swaps().iter().for_each(|&(i, j)| self.order.swap(i, j));
        self.swaps.extend(plan.swaps());
        self.width.set(plan.width());
        Ok(Some(plan))
    }

    /// All right-hand sides in the caller's order again, for the report and for the caller.
    fn widen(&mut self) -> Result<(), Y::Error> {
        if !self.width.restore() {
            return Ok(());
        }
        let o = &mut *self.outer;
        let space = self.system.precise();
        self.swaps.iter().rev().try_for_each(|&(i, j)| space.swap_sides(self.x, (i, j), &mut o.residual))?;
        let mut active = vec![false; o.full];
        for j in 0..o.active.len() {
            self.left[self.order[j]] = Some((o.verified[j], o.reference[j]));
            active[self.order[j]] = o.active[j];
        }
        o.widen();
        o.active = active;
        for (side, left) in self.left.iter().enumerate() {
            (o.verified[side], o.reference[side]) = left.unwrap_or((f64::NAN, f64::NAN));
        }
        if let Some((_, judge)) = &mut self.claim.judge {
            judge.restore();
        }
        Ok(())
    }

    /// Counts applications of the sloppy operator.
    pub fn applied(&mut self, times: usize) {
        self.info.sloppy_applications += times;
        self.info.sloppy_sides += times * self.outer.active.len();
    }

    /// Whether every right-hand side is finished.
    pub fn finished(&self) -> bool {
        !self.outer.active.contains(&true)
    }

    /// ‖r_j‖² at the last update, of the sloppy r_j.
    pub fn sloppy_norm2(&self, j: usize) -> f64 {
        (self.outer.verified[j] * self.outer.scale[j]).powi(2)
    }

    /// The factor between the sloppy r_j after the last update and before.
    pub fn rescaled(&self, j: usize) -> f64 {
        self.outer.rescaled[j]
    }

    /// Whether the recurrence does not claim convergence.
    pub fn claims_nothing(&self, j: usize) -> bool {
        self.outer.iterated[j] > self.outer.level(j)
    }

    /// Whether the last update brought a smaller residual than all before for right-hand side j.
    pub fn progressed(&self, j: usize) -> bool {
        self.outer.progressed[j]
    }

    /// Whether the last update found that the recurrence had promised far more than was true.
    pub fn deceived(&self, j: usize) -> bool {
        self.outer.deceived[j]
    }

    /// Takes the recurrence's new ‖r_j‖² from `outer.norm2` and says whether an update is due. Where directions do not
    /// survive an update, those that want one wait from now on.
    pub fn advance(&mut self) -> Result<bool, SolveError<Y::Error>> {
        self.info.iterations += 1;
        self.kind = Kind::Iterate;
        self.settled = false;
        let (mut moving, mut wanting, mut urgent) = (0, 0, false);
        for j in 0..self.outer.active.len() {
            let o = &mut *self.outer;
            if !o.moves(j) {
                continue;
            }
            if !o.norm2[j].is_finite() {
                self.give_up(j, Trouble::NotANumber)?;
                continue;
            }
            let norm = o.norm2[j].sqrt() * o.unscale[j];
            o.iterated[j] = norm;
            o.maximum[j] = o.maximum[j].max(norm);
            let side = self.order[j];
            self.info.iterations_per_rhs[side] += 1;
            if norm < PROGRESS * o.lowest[j] {
                (o.lowest[j], o.lowest_at[j]) = (norm, self.info.iterations_per_rhs[side]);
            }
            let below = |factor: f64| norm <= factor * o.level(j) || norm < factor * self.delta * o.maximum[j];
            let mine = below(1.0);
            urgent |= below(URGENT);
            moving += 1;
            wanting += usize::from(mine);
            o.waiting[j] = mine && self.control.restarting;
            self.info.history[side].push(relative(norm, o.reference[j]));
        }
        let enough = if self.control.together { wanting == moving } else { 2 * wanting >= moving || urgent };
        Ok(wanting > 0 && enough)
    }

    /// Keeps x_j where it is the best one so far, then x ← x + x̂, x̂ ← 0, r ← b − A x.
    fn accumulate(&mut self) -> Result<(), Y::Error> {
        let o = &mut *self.outer;
        if o.x_is_best.iter().all(|best| *best) {
            self.system.precise().copy(self.x, &mut o.best_x)?;
        } else {
            set_masks(o, |o, j| o.x_is_best[j]);
            self.system.precise().axpby(&o.mask, self.x, &o.unmask, &mut o.best_x)?;
        }
        o.x_is_best.fill(false);
        self.system.accumulate(&o.unscale, &o.correction, self.x)?;
        self.system.sloppy().zero(&mut o.correction)?;
        self.true_residual()
    }

    /// Goes back to the best x_j for those marked in `relative` by infinity, if any, and recomputes the residuals.
    fn go_back(&mut self) -> Result<(), Y::Error> {
        let o = &mut *self.outer;
        if o.relative.iter().any(|mark| mark.is_infinite()) {
            set_masks(o, |o, j| o.relative[j].is_infinite());
            self.system.precise().axpby(&o.mask, &o.best_x, &o.unmask, self.x)?;
            self.true_residual()?;
        }
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            // An operator that has begun to give NaN does so for the best x, too, of which more is known.
            if o.relative[j].is_infinite() && o.verified[j].is_nan() {
                o.verified[j] = o.best[j];
            }
            o.x_is_best[j] = o.relative[j].is_infinite() || o.verified[j] <= o.best[j];
        }
        Ok(())
    }

    /// The reliable update: x ← x + x̂, x̂ ← 0, r ← b − A x, `r` ← r in the sloppy format.
    ///
    /// Where the true residual is no smaller than the largest of the recurrence since the last update, and the recurrence
    /// says otherwise, it was wrong altogether, and x_j goes back to the best one before. Where both agree there was no
    /// descent to check: another right-hand side wanted the update. (In GCR none can want it for another.)
    ///
    /// Afterwards `outer.restart` marks those that have to begin anew: those marked before, those that went back, and
    /// those that claimed convergence twice without progress in between and were wrong.
    pub fn refresh(&mut self, r: &mut Sloppy<Y>) -> Result<(), SolveError<Y::Error>> {
        self.accumulate()?;
        self.info.reliable_updates += 1;
        self.kind = Kind::ReliableUpdate;
        self.settled = true;
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            // "Not less" instead of "at least": NaN goes back too.
            // After a breakdown the recurrence promised nothing.
            let wrong = o.active[j]
                && !o.restart[j]
                && (self.control.restarting || !o.agrees(j))
                && o.verified[j].partial_cmp(&o.maximum[j]) != Some(Ordering::Less);
            // What moved it last may be what it was given up for.
            let worse = self.troubles[self.order[j]].is_some() && o.verified[j] > o.best[j];
            o.relative[j] = if wrong && o.verified[j] > o.target[j] || worse || !o.verified[j].is_finite() {
                o.restart[j] = true;
                f64::INFINITY
            } else {
                0.0
            };
            if o.active[j] {
                // Counted as long as there is no progress.
                let claimed = o.iterated[j] <= o.level(j) && o.verified[j] > o.target[j];
                let before = if o.verified[j] < PROGRESS * o.best[j] { 0 } else { o.false_claims[j] };
                o.false_claims[j] = before + usize::from(claimed);
            }
        }
        let finite = |o: &Outer<_, _>, j: usize| o.verified[j].is_finite();
        let lost: Vec<usize> = (0..o.active.len()).filter(|&j| o.active[j] && !finite(o, j)).collect();
        self.go_back()?;
        for rhs in lost {
            self.give_up(rhs, Trouble::NotANumber)?;
        }
        self.accept()?;
        let mut stuck = Vec::new();
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            // Those that have not moved since the last update have the same residual again.
            if let Some(last) = self.info.history[self.order[j]].last_mut() {
                *last = relative(o.verified[j], o.reference[j]);
            }
            o.waiting[j] = false;
            let forced = o.restart[j] && o.relative[j].is_finite();
            o.restart[j] = o.active[j] && (o.restart[j] || o.false_claims[j] > 1 || self.control.restarting);
            if o.restart[j] {
                self.info.restarts += 1;
                self.kind = Kind::Restart;
            }
            // An honest way down from a peak is no stall, and neither is a slow one that was announced as slow.
            let slow = o.verified[j] > 0.5 * o.maximum[j];
            o.deceived[j] = o.active[j] && !forced && (slow && !o.agrees(j) || o.relative[j].is_infinite());
            o.progressed[j] = o.verified[j] < PROGRESS * o.best[j];
            if o.progressed[j] {
                o.stalls[j] = 0;
            } else if o.active[j] {
                o.stalls[j] += usize::from(o.deceived[j]);
                if o.stalls[j] >= self.control.max_stalls || o.false_claims[j] >= FALSE_CLAIMS {
                    stuck.push(j);
                }
            }
            o.best[j] = o.best[j].min(o.verified[j]);
            o.iterated[j] = o.verified[j];
            o.maximum[j] = o.verified[j];
        }
        if !stuck.is_empty() {
            let better = |o: &Outer<_, _>, j: usize| o.x_is_best[j] || o.verified[j] <= o.best[j];
            for j in 0..o.active.len() {
                o.relative[j] = if stuck.contains(&j) && !better(o, j) { f64::INFINITY } else { 0.0 };
            }
            self.go_back()?;
            for rhs in stuck {
                self.give_up(rhs, Trouble::Stagnation)?;
            }
        }
        Ok(self.demote(r)?)
    }

    /// Ends an iteration: tells the observer and looks at the limits.
    pub fn close(&mut self, observer: &mut impl Observer) -> Result<(), SolveError<Y::Error>> {
        self.close_with(observer, |_| Ok(()))
    }

    /// [`close`](Run::close) for a solver that does not keep x̂ up to date: before the solve is given up, `complete`
    /// adds to it what is missing.
    pub fn close_with(
        &mut self,
        observer: &mut impl Observer,
        complete: impl FnOnce(&mut Sloppy<Y>) -> Result<(), Y::Error>,
    ) -> Result<(), SolveError<Y::Error>> {
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            self.shown[self.order[j]] = relative(o.iterated[j], o.reference[j]);
        }
        let event = Iteration { iteration: self.info.iterations, residuals: &self.shown, kind: self.kind };
        let answer = observer.iteration(&event);
        if self.finished() {
            return Ok(());
        }
        let iteration = self.info.iterations;
        let window = self.control.stagnation_window;
        let (o, own) = (&*self.outer, |j: usize| self.info.iterations_per_rhs[self.order[j]]);
        let stuck = |j: &usize| window > 0 && o.active[*j] && own(*j) - o.lowest_at[*j] > window;
        let stuck: Vec<usize> = (0..o.active.len()).filter(stuck).collect();
        let all_stuck = stuck.len() == o.active.iter().filter(|active| **active).count();
        if !answer.is_break() && !all_stuck && iteration < self.control.max_iterations {
            for rhs in stuck {
                self.give_up(rhs, Trouble::Stagnation)?;
            }
            return Ok(());
        }
        complete(&mut self.outer.correction)?;
        if answer.is_break() {
            self.settle(true)?;
            return Err(SolveError::Cancelled { iteration, info: self.take_info()? });
        }
        if all_stuck {
            self.settle(true)?;
            stuck.iter().for_each(|&j| self.troubles[self.order[j]] = Some((Trouble::Stagnation, iteration)));
            return Err(self.failure()?);
        }
        Err(self.no_convergence()?)
    }

    pub fn no_convergence(&mut self) -> Result<SolveError<Y::Error>, Y::Error> {
        self.settle(true)?;
        let info = self.take_info()?;
        Ok(SolveError::NoConvergence { iterations: info.iterations, residual: info.worst_residual(), info })
    }

    /// Goes on without the right-hand side in slot `rhs`, whose x goes back to the best one at the next update; an error
    /// where there is no other to go on with.
    pub fn give_up(&mut self, rhs: usize, trouble: Trouble) -> Result<(), SolveError<Y::Error>> {
        let iteration = self.info.iterations;
        let o = &mut *self.outer;
        if o.active.iter().enumerate().any(|(j, active)| *active && j != rhs) {
            (o.active[rhs], o.restart[rhs], o.waiting[rhs]) = (false, false, false);
            self.troubles[self.order[rhs]] = Some((trouble, iteration));
            return Ok(());
        }
        // What failed in the last steps is not added to x.
        match trouble {
            Trouble::NotANumber | Trouble::Breakdown(_) => self.settle(false)?,
            Trouble::NotPositive(_) => self.settle(true)?,
            Trouble::Stagnation => {}
        }
        self.troubles[self.order[rhs]] = Some((trouble, iteration));
        Err(self.failure()?)
    }

    /// What went wrong for the first of the right-hand sides that were given up.
    fn failure(&mut self) -> Result<SolveError<Y::Error>, Y::Error> {
        let info = self.take_info()?;
        Ok(failure(info, &self.troubles))
    }

    /// The error of a right-hand side, or a first guess, that is not finite.
    fn not_a_number(&mut self, rhs: usize) -> SolveError<Y::Error> {
        self.troubles[rhs] = Some((Trouble::NotANumber, 0));
        self.failure().unwrap_or_else(SolveError::Backend)
    }

    /// Before giving up: adds x̂ to x if `try_correction`, and goes back to the best x_j.
    fn settle(&mut self, try_correction: bool) -> Result<(), Y::Error> {
        if try_correction {
            self.accumulate()?;
        }
        let o = &mut *self.outer;
        for j in 0..o.active.len() {
            // Finished ones have not moved; recomputing them gives rounding of the same value.
            let better = o.verified[j] <= o.best[j]; // NaN is not
            let worse = (o.active[j] || self.troubles[self.order[j]].is_some()) && !o.x_is_best[j] && !better;
            o.relative[j] = if worse { f64::INFINITY } else { 0.0 };
        }
        self.go_back()
    }

    /// Closes the report: true residuals, flops.
    fn take_info(&mut self) -> Result<Box<Info>, Y::Error> {
        self.widen()?;
        let o = &mut *self.outer;
        if let Some((norms, judge)) = &mut self.claim.judge {
            judge.measure(self.x, &mut o.judged)?;
            for j in 0..o.active.len() {
                self.info.true_residual[j] = relative(o.judged[j], norms[j]);
            }
        } else {
            for j in 0..o.active.len() {
                // A right-hand side with b_j = 0 has x_j = 0.
                let exact = o.reference[j] == 0.0;
                self.info.true_residual[j] = if exact { 0.0 } else { o.verified[j] / o.reference[j] };
            }
        }
        let info = &mut self.info;
        info.failed = (0..self.troubles.len()).filter(|&j| self.troubles[j].is_some()).collect();
        info.converged = !o.active.contains(&true) && info.failed.is_empty();
        info.flops = info.precise_sides as f64 * self.system.flops()
            + info.sloppy_sides as f64 * self.system.flops_sloppy()
            + o.active.len() as f64 * info.preconditioner.flops;
        Ok(Box::new(std::mem::take(info)))
    }

    /// The report of a solve that came to its end, or what went wrong for the first of those that were given up.
    pub fn succeed(mut self) -> Result<Info, SolveError<Y::Error>> {
        debug_assert!(self.finished());
        if self.troubles.iter().any(Option::is_some) {
            return Err(self.failure()?);
        }
        Ok(*self.take_info()?)
    }
}

/// `mask`_j = 1 where `choose`, else 0; `unmask`_j = 1 − `mask`_j.
fn set_masks<P: VectorSpace, S: VectorSpace>(o: &mut Outer<P, S>, choose: impl Fn(&Outer<P, S>, usize) -> bool) {
    for j in 0..o.active.len() {
        let chosen = choose(o, j);
        o.mask[j] = if chosen { Complex64::ONE } else { Complex64::ZERO };
        o.unmask[j] = Complex64::ONE - o.mask[j];
    }
}

/// The power of two that brings `norm` next to the comfortable norm of a format; `before` where that has no meaning.
pub(crate) fn scale_for(comfortable: Option<f64>, norm: f64, before: f64) -> f64 {
    /// Keeps the factor in the range of single precision.
    const LARGEST: f64 = 100.0;
    match comfortable {
        Some(target) if norm > 0.0 && norm.is_finite() => {
            2f64.powi((target / norm).log2().round().clamp(-LARGEST, LARGEST) as i32)
        }
        _ => before,
    }
}

/// `norm / reference`, with 0/0 = 0 for right-hand sides that vanish.
pub(crate) fn relative(norm: f64, reference: f64) -> f64 {
    if reference == 0.0 && norm == 0.0 { 0.0 } else { norm / reference }
}
