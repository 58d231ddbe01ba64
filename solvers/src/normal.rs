//! What solvers of positive systems need for general ones, M†M x = M†b or M M† y = b.

use crate::compact::{Plan, Rhs};
use crate::error::SolveError;
use crate::info::Info;
use crate::operator::{Precise, Sloppy, System};
use crate::reliable::Judge;
use crate::traits::{Descent, VectorSpace};
use num_complex::Complex64;
use std::cell::RefCell;

/// A system seen through M†M or M M†.
pub(crate) struct Squared<'a, Y: System> {
    pub inner: &'a Y,
    /// M M† instead of M†M.
    pub error: bool,
    /// For what lies between the two applications.
    pub precise: &'a RefCell<Precise<Y>>,
    pub sloppy: &'a RefCell<Sloppy<Y>>,
}

impl<Y: System> System for Squared<'_, Y> {
    type Error = Y::Error;
    type Precise = Y::Precise;
    type Sloppy = Y::Sloppy;

    fn is_mixed(&self) -> bool {
        self.inner.is_mixed()
    }
    fn precise(&self) -> &Y::Precise {
        self.inner.precise()
    }
    fn sloppy(&self) -> &Y::Sloppy {
        self.inner.sloppy()
    }
    fn apply(&self, x: &Precise<Y>, out: &mut Precise<Y>) -> Result<(), Y::Error> {
        let mut scratch = self.precise.borrow_mut();
        if self.error {
            self.inner.apply_dagger(x, &mut scratch)?;
            self.inner.apply(&scratch, out)
        } else {
            self.inner.apply(x, &mut scratch)?;
            self.inner.apply_dagger(&scratch, out)
        }
    }
    fn apply_dagger(&self, x: &Precise<Y>, out: &mut Precise<Y>) -> Result<(), Y::Error> {
        self.apply(x, out)
    }
    fn apply_sloppy(&self, x: &Sloppy<Y>, out: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        let mut scratch = self.sloppy.borrow_mut();
        if self.error {
            self.inner.apply_dagger_sloppy(x, &mut scratch)?;
            self.inner.apply_sloppy(&scratch, out)
        } else {
            self.inner.apply_sloppy(x, &mut scratch)?;
            self.inner.apply_dagger_sloppy(&scratch, out)
        }
    }
    fn apply_dagger_sloppy(&self, x: &Sloppy<Y>, out: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.apply_sloppy(x, out)
    }
    /// (p, M†M p) = ‖M p‖², which the first of the two applications gives.
    fn descend_sloppy(
        &self,
        from: &Descent<'_, Sloppy<Y>>,
        out: &mut Sloppy<Y>,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Y::Error> {
        if self.error {
            self.apply_dot_sloppy(from.p, out, from.p, curvature, norm2)?;
        } else {
            let mut scratch = self.sloppy.borrow_mut();
            self.inner.apply_dot_sloppy(from.p, &mut scratch, from.p, curvature, norm2)?;
            curvature.iter_mut().zip(&*norm2).for_each(|(curvature, norm2)| *curvature = (*norm2).into());
            self.inner.apply_dagger_sloppy(&scratch, out)?;
        }
        from.finish(self.inner.sloppy(), curvature, out, norm2, &mut || Ok(()))
    }
    fn demote(&self, scale: &[f64], from: &Precise<Y>, to: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.inner.demote(scale, from, to)
    }
    fn accumulate(&self, scale: &[f64], from: &Sloppy<Y>, to: &mut Precise<Y>) -> Result<(), Y::Error> {
        self.inner.accumulate(scale, from, to)
    }
    fn narrow(&self, sides: usize) -> bool {
        self.inner.narrow(sides)
    }
    fn flops(&self) -> f64 {
        2.0 * self.inner.flops()
    }
    fn flops_sloppy(&self) -> f64 {
        2.0 * self.inner.flops_sloppy()
    }
}

/// ‖b − M x‖, in whatever order x comes.
pub(crate) struct Original<'a, Y: System> {
    system: &'a Y,
    /// The caller's.
    given: &'a Precise<Y>,
    b: Rhs<'a, Precise<Y>>,
    image: &'a mut Precise<Y>,
    measurements: usize,
    /// Right-hand sides in all of them.
    sides: usize,
}

impl<'a, Y: System> Original<'a, Y> {
    /// For right-hand sides `b` of `system`, with memory for a copy of them where a batch may become smaller, and for M x.
    pub fn new(system: &'a Y, b: &'a Precise<Y>, copy: Option<&'a mut Precise<Y>>, image: &'a mut Precise<Y>) -> Self {
        Self { system, given: b, b: Rhs::Given(b, copy), image, measurements: 0, sides: 0 }
    }

    /// The account of a solve of M†M x = M†b as one of M x = b, to a residual of `tol`: what was applied how often, the
    /// right-hand side M†b and its norm included.
    pub fn report(
        &self,
        mut result: Result<Info, SolveError<Y::Error>>,
        tol: f64,
    ) -> Result<Info, SolveError<Y::Error>> {
        let info = match &mut result {
            Ok(info) => Some(info),
            Err(error) => error.info_mut(),
        };
        if let Some(info) = info {
            info.precise_applications = 2 * info.precise_applications + self.measurements + 1;
            info.precise_sides = 2 * info.precise_sides + self.sides + self.system.precise().nrhs();
            info.sloppy_applications *= 2;
            info.sloppy_sides *= 2;
            info.reductions += self.measurements + 1;
            count_flops(self.system, info);
        }
        // M†b = 0 with b ≠ 0 looks like an empty right-hand side to CG: x = 0 is then all that least squares can do.
        match result {
            Ok(mut info) => match info.true_residual.iter().position(|v| v.is_nan() || *v > tol) {
                Some(rhs) => {
                    info.converged = false;
                    let (iterations, residual) = (info.iterations, info.true_residual[rhs]);
                    Err(SolveError::Stagnation { iterations, rhs, residual, info: Box::new(info) })
                }
                None => Ok(info),
            },
            error => error,
        }
    }
}

impl<'a, Y: System> Judge<Squared<'a, Y>> for Original<'a, Y> {
    fn measure(&mut self, x: &Precise<Y>, out: &mut [f64]) -> Result<(), Y::Error> {
        self.measurements += 1;
        self.sides += out.len();
        self.system.apply(x, self.image)?;
        self.system.precise().sub_norm2(self.b.get(), self.image, out)?;
        out.iter_mut().for_each(|v| *v = v.sqrt());
        Ok(())
    }
    fn can_move(&self) -> bool {
        self.b.can_move()
    }
    fn follow(&mut self, plan: &Plan, scratch: &mut Precise<Y>) -> Result<(), Y::Error> {
        self.b.follow(self.system.precise(), plan, scratch)
    }
    fn restore(&mut self) {
        self.b = Rhs::Given(self.given, None);
    }
}

/// ‖b_j‖.
pub(crate) fn norms_of<S: VectorSpace>(space: &S, b: &S::Vector, norms: &mut [f64]) -> Result<(), S::Error> {
    space.norm2(b, norms)?;
    norms.iter_mut().for_each(|v| *v = v.sqrt());
    Ok(())
}

/// Operations of all applications.
pub(crate) fn count_flops<Y: System>(system: &Y, info: &mut Info) {
    info.flops = info.precise_sides as f64 * system.flops() + info.sloppy_sides as f64 * system.flops_sloppy();
}
