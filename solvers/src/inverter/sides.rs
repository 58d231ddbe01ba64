//! The two operators of a system, each as a [`LinearOperator`].

use crate::operator::{Precise, Sloppy, System};
use crate::traits::{CgStep, Dots, LinearOperator, Overlap};
use num_complex::Complex64;

/// The operator A on the precise space of a system.
pub(super) struct PreciseSide<'a, Y>(pub &'a Y);

impl<Y: System> LinearOperator<Y::Precise> for PreciseSide<'_, Y> {
    fn apply(&self, x: &Precise<Y>, out: &mut Precise<Y>) -> Result<(), Y::Error> {
        self.0.apply(x, out)
    }
    fn apply_dagger(&self, x: &Precise<Y>, out: &mut Precise<Y>) -> Result<(), Y::Error> {
        self.0.apply_dagger(x, out)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.0.narrow(nrhs)
    }
    fn flops(&self) -> f64 {
        self.0.flops()
    }
}

/// The operator Â on the sloppy space of a system.
pub(super) struct SloppySide<'a, Y>(pub &'a Y);

impl<Y: System> LinearOperator<Y::Sloppy> for SloppySide<'_, Y> {
    fn apply(&self, x: &Sloppy<Y>, out: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.0.apply_sloppy(x, out)
    }
    fn apply_dagger(&self, x: &Sloppy<Y>, out: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.0.apply_dagger_sloppy(x, out)
    }
    fn apply_dot(
        &self,
        _: &Y::Sloppy,
        x: &Sloppy<Y>,
        out: &mut Sloppy<Y>,
        w: &Sloppy<Y>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Y::Error> {
        self.0.apply_dot_sloppy(x, out, w, dot, norm2)
    }
    fn apply_dots(
        &self,
        _: &Y::Sloppy,
        x: &Sloppy<Y>,
        out: &mut Sloppy<Y>,
        w: &Sloppy<Y>,
        dots: &mut [Dots],
    ) -> Result<(), Y::Error> {
        self.0.apply_dots_sloppy(x, out, w, dots)
    }
    fn cg_step(
        &self,
        space: &Y::Sloppy,
        from: &CgStep<'_, Sloppy<Y>>,
        out: &mut Sloppy<Y>,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, Y::Error>; 2],
    ) -> Result<(), Y::Error> {
        if from.shift != 0.0 {
            return from.with_two_reductions(space, self, out, curvature, norm2, overlap);
        }
        overlap.into_iter().try_for_each(|overlap| overlap())?;
        self.0.cg_step_sloppy(from, out, curvature, norm2)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.0.narrow(nrhs)
    }
    fn flops(&self) -> f64 {
        self.0.flops_sloppy()
    }
}
