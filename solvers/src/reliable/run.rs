//! A solve under way: its beginning, its numbers, and when an update is due.

use super::{Claim, Control, HISTORY, Outer, PROGRESS, Trouble, URGENT, relative, scale_for};
use crate::compact::{Rhs, Slots, Width};
use crate::error::SolveError;
use crate::info::Info;
use crate::observer::Kind;
use crate::operator::{Precise, Sloppy, System};
use crate::preconditioner::Work;
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// A solve under way.
pub(crate) struct Run<'a, Y: System> {
    pub(super) system: &'a Y,
    pub(super) b: Rhs<'a, Precise<Y>>,
    pub(super) x: &'a mut Precise<Y>,
    pub outer: &'a mut Outer<Y::Precise, Y::Sloppy>,
    pub(super) control: Control,
    pub(super) delta: f64,
    pub(super) claim: Claim<'a, Y>,
    pub info: Info,
    pub(super) kind: Kind,
    /// What happened to those that were given up, and in which iteration, in the caller's order.
    pub(super) troubles: Vec<Option<(Trouble, usize)>>,
    pub(super) slots: Slots,
    /// What is known of all right-hand sides, in the caller's order: relative residuals for the observer; for those that
    /// have left, true residuals and what they refer to.
    pub(super) shown: Vec<f64>,
    pub(super) left: Vec<Option<(f64, f64)>>,
    pub(super) width: Width<'a>,
    /// Whether x has all steps and x̂ none.
    pub(super) settled: bool,
    /// Of all right-hand sides.
    pub(super) preconditioner_flops: f64,
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
            slots: Slots::new(n),
            shown: vec![0.0; n],
            left: vec![None; n],
            width: Width::new(n, |sides| system.narrow(sides)),
            settled: true,
            preconditioner_flops: 0.0,
        };
        run.first_residual()?;
        Ok(run)
    }

    /// What is being solved.
    pub fn system(&self) -> &'a Y {
        self.system
    }

    pub(super) fn first_residual(&mut self) -> Result<(), SolveError<Y::Error>> {
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
    pub(super) fn true_residual(&mut self) -> Result<(), Y::Error> {
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
    pub(super) fn accept(&mut self) -> Result<(), Y::Error> {
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
                    let aim = self.control.tol * norms[self.slots[j]];
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

    /// Counts applications of the sloppy operator.
    pub fn applied(&mut self, times: usize) {
        self.info.sloppy_applications += times;
        self.info.sloppy_sides += times * self.outer.active.len();
    }

    /// Counts what a preconditioner did for the right-hand sides that are left.
    pub fn preconditioned(&mut self, work: Work) {
        self.info.preconditioner += work;
        self.preconditioner_flops += work.flops * self.outer.active.len() as f64;
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
            let side = self.slots[j];
            self.info.iterations_per_rhs[side] += 1;
            if norm < PROGRESS * o.lowest[j] {
                (o.lowest[j], o.lowest_at[j]) = (norm, self.info.iterations_per_rhs[side]);
            }
            let mine = norm <= o.level(j) || norm < self.delta * o.maximum[j];
            urgent |= norm <= URGENT * o.level(j) || norm < self.delta.powi(2) * o.maximum[j];
            moving += 1;
            wanting += usize::from(mine);
            o.waiting[j] = mine && self.control.restarting;
            self.info.history[side].push(relative(norm, o.reference[j]));
        }
        let enough = if self.control.together { wanting == moving } else { 2 * wanting >= moving || urgent };
        Ok(wanting > 0 && enough)
    }
}
