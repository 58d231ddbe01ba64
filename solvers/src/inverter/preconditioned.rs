//! Preconditioning: of a system by an operator, and of GCR by an inverter.

use super::around::Nested;
use super::sides::PreciseSide;
use super::{Inverter, OneSpace};
use crate::defect::{DefectParams, DefectWorkspace, defect_correction};
use crate::error::SolveError;
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, System, Uniform};
use crate::params::SolverParams;
use crate::preconditioner::{Preconditioner, Work};
use crate::traits::{LinearOperator, VectorSpace};
use std::cell::RefCell;

/// Inverter that solves a system with an operator L on both sides, L A L†; [`preconditioned`] creates it.
pub struct Preconditioned<L, I> {
    left: L,
    inner: I,
}

/// Creates an inverter that solves L A L† y = L r by `inner` and adds L† y to x. The product L A L† is Hermitian and
/// positive if A is, so that `inner` may be CG. The closer L†L is to A⁻¹, the fewer iterations `inner` takes.
///
/// The solve is in the precise space of the system; within [`defect_correcting`](super::defect_correcting), this is the
/// sloppy space of the outer system. The residuals of `inner` are those of L A L†. The tolerance refers to A: if `inner` has
/// converged and b − A x is still too large, `inner` solves for the remaining residual, as in [`defect_correction`].
pub fn preconditioned<L, I>(left: L, inner: I) -> Preconditioned<L, I> {
    Preconditioned { left, inner }
}

impl<Y, L, I> Inverter<Y> for Preconditioned<L, I>
where
    Y: System,
    L: LinearOperator<Y::Precise>,
    I: for<'s> Inverter<OneSpace<'s, Y::Precise>>,
{
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        asked: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>> {
        let (space, operator) = (system.precise(), PreciseSide(system));
        let (mut rhs, mut y, image) = (space.allocate()?, space.allocate()?, RefCell::new(space.allocate()?));
        let both = BothSides { operator: &operator, left: &self.left, image };
        let both: OneSpace<'_, Y::Precise> = Uniform::new(space, &both);
        let outside = Uniform::new(space, &operator);
        let params = DefectParams { solver: *asked, inner_tol: f64::MIN_POSITIVE, ..(*asked).into() };
        let nested = Nested::new(observer);
        let solve = |r: &Precise<Y>, e: &mut Precise<Y>, request: &SolverParams| {
            self.left.apply(r, &mut rhs)?;
            space.zero(&mut y)?;
            let solved = self.inner.invert(&both, &rhs, &mut y, request, &mut nested.inside());
            self.left.apply_dagger(&y, e)?;
            solved
        };
        defect_correction(&outside, b, x, &params, &mut DefectWorkspace::new(&outside)?, solve, &mut nested.outside())
    }
}

/// The operator L A L†.
struct BothSides<'a, S: VectorSpace, A, L> {
    operator: &'a A,
    left: &'a L,
    image: RefCell<S::Vector>,
}

impl<S: VectorSpace, A: LinearOperator<S>, L: LinearOperator<S>> LinearOperator<S> for BothSides<'_, S, A, L> {
    fn apply(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        let mut image = self.image.borrow_mut();
        self.left.apply_dagger(x, out)?;
        self.operator.apply(out, &mut image)?;
        self.left.apply(&image, out)
    }
    fn apply_dagger(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        let mut image = self.image.borrow_mut();
        self.left.apply_dagger(x, out)?;
        self.operator.apply_dagger(out, &mut image)?;
        self.left.apply(&image, out)
    }
    fn flops(&self) -> f64 {
        self.operator.flops() + 2.0 * self.left.flops()
    }
}

/// Preconditioner that runs an inverter; [`as_preconditioner`] creates it.
pub struct InverterPreconditioner<'a, S, I> {
    operator: &'a dyn LinearOperator<S>,
    params: SolverParams,
    inner: RefCell<I>,
}

/// Creates a preconditioner K of [`gcr`](super::gcr): K r is the solution of A z = r by `inner` from z = 0, however the solve
/// ends. A is `operator`, which may approximate the outer operator. The tolerance and the number of iterations in `params`
/// determine the accuracy of K.
pub fn as_preconditioner<S: VectorSpace, I>(
    operator: &dyn LinearOperator<S>,
    params: SolverParams,
    inner: I,
) -> InverterPreconditioner<'_, S, I> {
    InverterPreconditioner { operator, params, inner: RefCell::new(inner) }
}

impl<S: VectorSpace, I: for<'s> Inverter<OneSpace<'s, S>>> Preconditioner<S> for InverterPreconditioner<'_, S, I> {
    fn apply(&self, space: &S, r: &S::Vector, _: &[f64], z: &mut S::Vector) -> Result<Work, S::Error> {
        space.zero(z)?;
        let system: OneSpace<'_, S> = Uniform::new(space, self.operator);
        let solved = self.inner.borrow_mut().invert(&system, r, z, &self.params, &mut ());
        let info = match solved {
            Ok(info) => info,
            Err(SolveError::Backend(error)) => return Err(error),
            Err(mut error) => error.info_mut().map(std::mem::take).unwrap_or_default(),
        };
        Ok(Work {
            calls: 1,
            iterations: info.iterations,
            applications: info.precise_applications + info.sloppy_applications,
            reductions: info.reductions,
            flops: info.flops / space.nrhs() as f64,
            ..Work::default()
        })
    }
    fn needs_norms(&self) -> bool {
        false
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.operator.narrow(nrhs)
    }
}
