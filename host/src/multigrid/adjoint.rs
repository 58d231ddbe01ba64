//! Multigrid cycle for the adjoint of an operator.
use super::cycle::CycleResult;
use crate::domain::Result;
use crate::field::{DeviceField, FieldShape, FieldSpace};
use crate::operators::{DiagonalForm, EvenOddWilson, Schur};
use gpu_kernels::Precision;
use solvers::{Preconditioner, VectorSpace, Work};
use std::cell::RefCell;

/// Cycle K′ that is for M̂† what the cycle K is for M̂. K′ = γ_5 A K A⁻¹ γ_5 for the symmetric complement, with A on the even sites, and
/// γ_5 K γ_5 for the asymmetric one.
pub(crate) struct AdjointCycle<'a> {
    cycle: &'a dyn Preconditioner<FieldSpace>,
    operator: &'a EvenOddWilson,
    scratch: [RefCell<DeviceField>; 2],
}

impl<'a> AdjointCycle<'a> {
    /// Makes the cycle of the adjoint operator from `cycle`, the cycle of `operator`, for blocks of `nrhs` vectors. `operator` must be in
    /// single precision.
    pub fn new(
        cycle: &'a dyn Preconditioner<FieldSpace>,
        operator: &'a EvenOddWilson,
        nrhs: usize,
    ) -> CycleResult<Self> {
        let space = FieldSpace::new(operator.wilson().domain(), FieldShape::spinors(Precision::Single, nrhs));
        let field = || space.allocate().map(RefCell::new);
        Ok(AdjointCycle { cycle, operator, scratch: [field()?, field()?] })
    }
    /// Computes `out` = A x for the symmetric complement, or A⁻¹ x if `inverse` is set. Copies x for the asymmetric complement.
    fn divide(&self, space: &FieldSpace, inverse: bool, x: &DeviceField, out: &mut DeviceField) -> Result {
        let form = DiagonalForm { parity: 0, inverse, dagger: false };
        match self.operator.complement() {
            Schur::Symmetric => self.operator.apply_diagonal(form, x, out),
            Schur::Asymmetric => space.copy(x, out),
        }
    }
}

impl Preconditioner<FieldSpace> for AdjointCycle<'_> {
    fn apply(&self, space: &FieldSpace, r: &DeviceField, _: &[f64], z: &mut DeviceField) -> Result<Work> {
        let [first, second] = &self.scratch;
        let (mut first, mut second) = (first.borrow_mut(), second.borrow_mut());
        // γ_5 is applied as iγ_5 before the cycle and as −iγ_5 after it.
        self.operator.twist(1.0, r, &first)?;
        self.divide(space, true, &first, &mut second)?;
        let mut norms = vec![0.0; if self.cycle.needs_norms() { space.nrhs() } else { 0 }];
        if !norms.is_empty() {
            space.norm2(&second, &mut norms)?;
            norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
        }
        let work = self.cycle.apply(space, &second, &norms, &mut first)?;
        self.divide(space, false, &first, &mut second)?;
        self.operator.twist(-1.0, &second, z)?;
        Ok(work)
    }
    fn needs_norms(&self) -> bool {
        false
    }
}
