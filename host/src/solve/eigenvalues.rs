//! Spectral bounds of the operators that solvers invert, on the even sites: M̂†M̂ of Wilson-like operators, and M†M of staggered ones.
use super::configuration::Configuration;
use super::report::SolveFailure;
use crate::field::{DeviceField, FieldSpace, FullField};
use crate::operators::Operator;
use gpu_kernels::{LinkStorage, Precision};
use solvers::{
    LargestEigenvalue, LinearOperator, Normal, Observer, SmallestEigenvalue, SolverParams, Uniform, VectorSpace,
    largest_eigenvalue, smallest_eigenvalue,
};

/// Spectral bounds of an operator: its smallest and its largest eigenvalue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralBounds {
    /// Smallest eigenvalue, from the Lanczos method for the inverse operator.
    pub smallest: SmallestEigenvalue,
    /// Largest eigenvalue, from the Lanczos method.
    pub largest: LargestEigenvalue,
}

/// Parameters of the search for spectral bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EigenvalueParams {
    /// Maximum number of Lanczos steps for each bound.
    pub steps: usize,
    /// Requested residual of the Ritz vector, relative to the Ritz value.
    pub tol: f64,
    /// Parameters of CG in each step for the smallest eigenvalue.
    pub solver: SolverParams,
}

impl Configuration<'_> {
    /// *Collective.* Computes the smallest and the largest eigenvalue of M̂†M̂, where M̂ is the Schur complement of an operator on the even
    /// sites. For staggered operators, computes those of M†M on the even sites, which are the same on the odd sites. Works in double
    /// precision with all reals of the links. On the even sites, `start` should contain a part of every eigenvector, as noise does; its odd
    /// sites are ignored.
    ///
    /// # Errors
    /// A `start` that is not one field in double precision on this lattice, failures of the device, and failures of the solver if the
    /// operator is singular.
    pub fn spectral_bounds(
        &self,
        operator: impl Into<Operator>,
        start: &FullField,
        params: &EigenvalueParams,
        observer: &mut dyn Observer,
    ) -> std::result::Result<SpectralBounds, SolveFailure> {
        let operator = operator.into();
        let shape = operator.shape(Precision::Double, 1);
        start.even.expect(self.domain(), shape)?;
        let storage = self.possible(&operator, operator.storage(LinkStorage::FULL))?;
        let complement = self.operator(operator, Precision::Double, storage, 1)?;
        let space = FieldSpace::new(self.domain(), shape);
        if complement.positive().is_some() {
            bounds(&space, &*complement, &start.even, params, observer)
        } else {
            bounds(&space, &Normal::new(&space, &*complement)?, &start.even, params, observer)
        }
    }
}

fn bounds<A: LinearOperator<FieldSpace> + ?Sized>(
    space: &FieldSpace,
    operator: &A,
    start: &DeviceField,
    params: &EigenvalueParams,
    observer: &mut dyn Observer,
) -> std::result::Result<SpectralBounds, SolveFailure> {
    let EigenvalueParams { steps, tol, solver } = params;
    let mut vector = space.allocate()?;
    space.copy(start, &mut vector)?;
    let largest =
        largest_eigenvalue(space, operator, &mut vector, *steps, *tol, observer).map_err(SolveFailure::Solver)?;
    space.copy(start, &mut vector)?;
    let system = Uniform::new(space, operator);
    let smallest = smallest_eigenvalue(&system, &mut vector, *steps, *tol, solver, observer);
    Ok(SpectralBounds { smallest: smallest.map_err(SolveFailure::Solver)?, largest })
}
