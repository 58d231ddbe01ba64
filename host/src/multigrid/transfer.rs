//! Restriction and prolongation between even-odd preconditioned systems.
use super::coarse::CoarseOperator;
use super::null_space::NullSpace;
use crate::domain::Result;
use crate::field::{DeviceField, FieldSpace, FullField};
use std::cell::{Cell, RefCell};

/// Factor that turns a residual of the Schur complement on even sites into a residual of the whole system: A_ee if the complement was
/// divided by A_ee.
pub trait FineDiagonal {
    /// Computes `out` = A_ee r for the first `nrhs` right-hand sides; returns `None` if A_ee is 1.
    fn apply(&self, r: &DeviceField, out: &mut DeviceField, nrhs: usize) -> Option<Result>;
}

/// Restriction R and prolongation P between the even sites of a level and those of the next coarser level. Odd coarse sites are eliminated
/// in the restriction and reconstructed in the prolongation. A vector on the even fine sites stands for a vector on all fine sites whose
/// odd half satisfies the equations of the odd sites exactly, so that the residual on odd sites is zero.
pub struct EvenTransfer<'a, D> {
    space: &'a NullSpace,
    coarse: &'a CoarseOperator,
    diagonal: D,
    memory: RefCell<TransferWorkspace>,
    nrhs: Cell<usize>,
}

struct TransferWorkspace {
    fine: DeviceField,
    coarse: FullField,
    /// X⁻¹ b_o of the last restricted residual.
    odd: DeviceField,
}

impl<'a, D: FineDiagonal> EvenTransfer<'a, D> {
    /// Creates the transfer of blocks of `nrhs` right-hand sides between a level and the next coarser one.
    ///
    /// # Errors
    /// Too little memory.
    pub fn new(space: &'a NullSpace, coarse: &'a CoarseOperator, diagonal: D, nrhs: usize) -> Result<Self> {
        let memory = TransferWorkspace {
            fine: space.fine().zero(nrhs)?.even,
            coarse: space.coarse().zero(nrhs)?,
            odd: space.coarse().zero(nrhs)?.odd,
        };
        Ok(EvenTransfer { space, coarse, diagonal, memory: RefCell::new(memory), nrhs: Cell::new(nrhs) })
    }
    /// Computes the right-hand side b̂ of the coarse system, `coarse`, from a residual of the fine system, `fine`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn restrict(&self, fine: &DeviceField, coarse: &mut DeviceField) -> Result {
        let (memory, nrhs) = (&mut *self.memory.borrow_mut(), self.nrhs.get());
        let residual = match self.diagonal.apply(fine, &mut memory.fine, nrhs) {
            None => fine,
            Some(done) => {
                done?;
                &memory.fine
            }
        };
        self.space.restrict(0, residual, &mut memory.coarse, false, nrhs)?;
        self.coarse.prepare(&memory.coarse, coarse, &mut memory.odd, nrhs)
    }
    /// Computes the vector `fine` on the fine level from a solution `coarse` of the coarse system that was restricted last.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn prolong(&self, coarse: &DeviceField, fine: &mut DeviceField) -> Result {
        let (memory, nrhs) = (&mut *self.memory.borrow_mut(), self.nrhs.get());
        let space = FieldSpace::new(self.space.coarse().domain(), coarse.shape().with_nrhs(nrhs));
        solvers::VectorSpace::copy(&space, coarse, &mut memory.coarse.even)?;
        self.coarse.reconstruct(&memory.odd, &mut memory.coarse, nrhs)?;
        self.space.prolong(0, &memory.coarse, fine, nrhs)
    }
    /// Limits later transfers to the first `nrhs` right-hand sides. Returns whether the transfer has memory for them; if not, the limit
    /// does not change.
    pub fn narrow(&self, nrhs: usize) -> bool {
        let fits = (1..=self.memory.borrow().fine.nrhs()).contains(&nrhs);
        if fits {
            self.nrhs.set(nrhs);
        }
        fits
    }
}
