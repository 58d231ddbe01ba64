//! Normal equations, M†M x = M†b or M M† y = b, for solvers of positive systems.

use crate::compact::{Compaction, Rhs};
use crate::error::SolveError;
use crate::failure::RhsFailure;
use crate::info::Info;
use crate::operator::{Precise, Sloppy, System};
use crate::range;
use crate::reliable::ResidualCheck;
use crate::rows::KeptRho;
use crate::stopping::{RhsFailures, StoppingRule};
use crate::traits::{CgStep, VectorSpace};
use num_complex::Complex64;
use std::cell::RefCell;

/// Memory for a solve of normal equations: three precise blocks and one sloppy block, in addition to the memory of the
/// solver.
pub(crate) struct NormalMemory<P: VectorSpace, S: VectorSpace> {
    /// Right-hand side of the normal equations.
    pub rhs: P::Vector,
    /// Vector M x, or the solution y of M M† y = b.
    pub scratch: P::Vector,
    /// Intermediate vector between the two applications.
    precise: RefCell<P::Vector>,
    sloppy: RefCell<S::Vector>,
    /// ‖b_j‖.
    pub norms: Vec<f64>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> NormalMemory<P, S> {
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let space = system.precise();
        Ok(Self {
            rhs: space.allocate()?,
            scratch: space.allocate()?,
            precise: RefCell::new(space.allocate()?),
            sloppy: RefCell::new(system.sloppy().allocate()?),
            norms: vec![0.0; space.nrhs()],
        })
    }
}

/// Parts of a solve of M†M x = M†b: the system, its right-hand side, and the check of the true residual.
pub(crate) struct NormalParts<'a, Y: System> {
    pub system: NormalSystem<'a, Y>,
    pub rhs: &'a mut Precise<Y>,
    pub norms: &'a [f64],
    pub check: OriginalResidual<'a, Y>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> NormalMemory<P, S> {
    /// Computes ‖b_j‖ and M†b, and returns the parts of a solve of M†M x = M†b. `copy` is memory for a copy of b; it is
    /// needed if a batch may become smaller.
    pub fn normal_equations<'a, Y: System<Precise = P, Sloppy = S, Error = P::Error>>(
        &'a mut self,
        system: &'a Y,
        b: &'a P::Vector,
        copy: Option<&'a mut P::Vector>,
    ) -> Result<NormalParts<'a, Y>, SolveError<P::Error>> {
        let Self { rhs, scratch, precise, sloppy, norms } = self;
        norms_of(system.precise(), b, norms, rhs)?;
        system.apply_dagger(b, rhs)?;
        Ok(NormalParts {
            system: NormalSystem { inner: system, error: false, precise, sloppy },
            rhs,
            norms,
            check: OriginalResidual::new(system, b, copy, scratch),
        })
    }

    /// Computes ‖b_j‖. Returns the system M M†, memory for its right-hand side and for y, and ‖b_j‖.
    #[allow(clippy::type_complexity)] // four parts of one thing, taken apart at once
    pub fn error_equations<'a, Y: System<Precise = P, Sloppy = S, Error = P::Error>>(
        &'a mut self,
        system: &'a Y,
        b: &P::Vector,
    ) -> Result<(NormalSystem<'a, Y>, &'a mut P::Vector, &'a mut P::Vector, &'a [f64]), SolveError<P::Error>> {
        let Self { rhs, scratch: y, precise, sloppy, norms } = self;
        norms_of(system.precise(), b, norms, rhs)?;
        Ok((NormalSystem { inner: system, error: true, precise, sloppy }, rhs, y, norms))
    }
}

/// The operator M†M or M M† of a system, as a system of its own.
pub(crate) struct NormalSystem<'a, Y: System> {
    inner: &'a Y,
    /// Whether the operator is M M† instead of M†M.
    error: bool,
    precise: &'a RefCell<Precise<Y>>,
    sloppy: &'a RefCell<Sloppy<Y>>,
}

impl<Y: System> System for NormalSystem<'_, Y> {
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
    /// Takes a step of CG. For M†M, (p, M†M p) = ‖M p‖² follows from the first of the two applications.
    fn cg_step_sloppy(
        &self,
        step: &CgStep<'_, Sloppy<Y>>,
        out: &mut Sloppy<Y>,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Y::Error> {
        if self.error {
            self.apply_dot_sloppy(step.p, out, step.p, curvature, norm2)?;
        } else {
            let mut scratch = self.sloppy.borrow_mut();
            self.inner.apply_dot_sloppy(step.p, &mut scratch, step.p, curvature, norm2)?;
            curvature.iter_mut().zip(&*norm2).for_each(|(curvature, norm2)| *curvature = (*norm2).into());
            self.inner.apply_dagger_sloppy(&scratch, out)?;
        }
        step.residual(self.inner.sloppy(), curvature, out, norm2, &mut || Ok(()))
    }
    fn cg_step_kept_sloppy(
        &self,
        [p, r]: [&Sloppy<Y>; 2],
        out: &mut Sloppy<Y>,
        rho: KeptRho<'_, f64>,
        [curvature, next]: [usize; 2],
    ) -> Result<bool, Y::Error> {
        let Some(kept) = self.inner.sloppy().kept() else { return Ok(false) };
        let mut scratch = self.sloppy.borrow_mut();
        if self.error {
            self.inner.apply_dagger_sloppy(p, &mut scratch)?;
            if !self.inner.apply_dot_kept_sloppy(&scratch, out, p, curvature)? {
                return Ok(false);
            }
        } else {
            if !self.inner.apply_dot_kept_sloppy(p, &mut scratch, p, curvature)? {
                return Ok(false);
            }
            self.inner.apply_dagger_sloppy(&scratch, out)?;
        }
        kept.cg_residual_kept(r, out, rho, curvature, !self.error, next)?;
        Ok(true)
    }
    fn demote(&self, scale: &[f64], from: &Precise<Y>, to: &mut Sloppy<Y>) -> Result<(), Y::Error> {
        self.inner.demote(scale, from, to)
    }
    fn accumulate(&self, scale: &[f64], from: &Sloppy<Y>, to: &mut Precise<Y>) -> Result<(), Y::Error> {
        self.inner.accumulate(scale, from, to)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.inner.narrow(nrhs)
    }
    fn flops(&self) -> f64 {
        2.0 * self.inner.flops()
    }
    fn flops_sloppy(&self) -> f64 {
        2.0 * self.inner.flops_sloppy()
    }
}

/// Measures ‖b_j − M x_j‖ for x in any order of right-hand sides.
pub(crate) struct OriginalResidual<'a, Y: System> {
    system: &'a Y,
    /// Right-hand sides of the caller.
    given: &'a Precise<Y>,
    b: Rhs<'a, Precise<Y>>,
    image: &'a mut Precise<Y>,
    measurements: usize,
    /// Number of right-hand sides in all measurements.
    measured_rhs: usize,
}

impl<'a, Y: System> OriginalResidual<'a, Y> {
    /// Creates the check for right-hand sides `b` of `system`. `image` is memory for M x; `copy` is memory for a copy of b,
    /// given if a batch may become smaller.
    fn new(system: &'a Y, b: &'a Precise<Y>, copy: Option<&'a mut Precise<Y>>, image: &'a mut Precise<Y>) -> Self {
        Self { system, given: b, b: Rhs::Given(b, copy), image, measurements: 0, measured_rhs: 0 }
    }

    /// Converts the report of a solve of M†M x = M†b to a report of M x = b with tolerance `tol`. The counts of
    /// applications then include those for M†b and for the checks.
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
            info.precise_rhs = 2 * info.precise_rhs + self.measured_rhs + self.system.precise().nrhs();
            info.sloppy_applications *= 2;
            info.sloppy_rhs *= 2;
            info.reductions += self.measurements + 1;
            count_flops(self.system, info);
        }
        // If M†b = 0 and b ≠ 0, CG reports convergence at x = 0, which is the best least-squares solution but may miss `tol`.
        let mut info = result?;
        let missed = |residual: &f64| !StoppingRule::converged(*residual, tol);
        let Some(rhs) = info.true_residual.iter().position(missed) else { return Ok(info) };
        info.converged = false;
        let mut failures = RhsFailures::new(info.true_residual.len());
        failures.record(rhs, RhsFailure::Stagnation, info.iterations);
        Err(failures.error(Box::new(info)))
    }
}

impl<'a, Y: System> ResidualCheck<NormalSystem<'a, Y>> for OriginalResidual<'a, Y> {
    fn measure(&mut self, x: &Precise<Y>, out: &mut [f64]) -> Result<(), Y::Error> {
        self.measurements += 1;
        self.measured_rhs += out.len();
        self.system.apply(x, self.image)?;
        self.system.precise().sub_norm2(self.b.get(), self.image, out)?;
        out.iter_mut().for_each(|v| *v = v.sqrt());
        Ok(())
    }
    fn can_move(&self) -> bool {
        self.b.can_move()
    }
    fn follow(&mut self, compaction: &Compaction, scratch: &mut Precise<Y>) -> Result<(), Y::Error> {
        self.b.follow(self.system.precise(), compaction, scratch)
    }
    fn restore(&mut self) {
        self.b = Rhs::Given(self.given, None);
    }
}

/// Computes ‖b_j‖. Returns an error if one of them is out of range. `scratch` loses its content.
fn norms_of<S: VectorSpace>(
    space: &S,
    b: &S::Vector,
    norms: &mut [f64],
    scratch: &mut S::Vector,
) -> Result<(), SolveError<S::Error>> {
    space.norm2(b, norms)?;
    range::check(space, b, norms, scratch)?;
    norms.iter_mut().for_each(|v| *v = v.sqrt());
    Ok(())
}

/// Sets `info.flops` to the operations of all applications.
pub(crate) fn count_flops<Y: System>(system: &Y, info: &mut Info) {
    info.flops = info.precise_rhs as f64 * system.flops() + info.sloppy_rhs as f64 * system.flops_sloppy();
}
