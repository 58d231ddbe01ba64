//! Workspace of multi-shift CG.

use crate::compact::Compaction;
use crate::stopping::ConvergenceHistory;
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Memory of [`multishift_cg`](super::multishift_cg): two blocks, and one more for each shift. The solutions are not
/// included.
pub struct MultiShiftWorkspace<S: VectorSpace> {
    pub(super) r: S::Vector,
    pub(super) ap: S::Vector,
    /// Directions p_i, divided by ζ_i, in the order of the shifts.
    pub(super) p: Vec<S::Vector>,
    pub(super) nrhs: usize,
    /// ‖b_j‖, in the caller's order.
    pub(super) reference: Vec<f64>,
    // The following arrays have one entry for each current slot of the batch.
    pub(super) active: Vec<bool>,
    pub(super) rho: Vec<f64>,
    pub(super) alpha: Vec<f64>,
    pub(super) beta: Vec<f64>,
    /// β_k/α_k, from which t_{k+1} is computed.
    pub(super) momentum: Vec<f64>,
    pub(super) progress: Vec<ConvergenceHistory>,
    pub(super) relative: Vec<f64>,
    pub(super) norm2: Vec<f64>,
    pub(super) dots: Vec<Complex64>,
    pub(super) left: Vec<Complex64>,
    // The following arrays have one entry for each shift and slot, ordered by shift.
    pub(super) running: Vec<bool>,
    pub(super) zeta: Vec<f64>,
    /// g = 1 − ρ.
    pub(super) gap: Vec<f64>,
    pub(super) a: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) b: Vec<f64>,
}

impl<S: VectorSpace> MultiShiftWorkspace<S> {
    /// Allocates the workspace for up to `shifts` shifts. Any operator on `space` can use it.
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
            progress: Vec::new(),
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

    /// Resets the scalars of all right-hand sides and shifts.
    pub(super) fn reset(&mut self) {
        let (n, all) = (self.nrhs, self.nrhs * self.p.len());
        (self.active, self.running, self.progress) =
            (vec![false; n], vec![false; all], vec![ConvergenceHistory::new(0.0); n]);
        self.slots().into_iter().for_each(|v| *v = vec![0.0; n]);
        self.systems().into_iter().for_each(|v| *v = vec![0.0; all]);
        self.reference = vec![0.0; n];
        (self.dots, self.left) = (vec![Complex64::ZERO; n], vec![Complex64::ZERO; n]);
    }

    fn slots(&mut self) -> [&mut Vec<f64>; 6] {
        let Self { rho, alpha, beta, momentum, relative, norm2, .. } = self;
        [rho, alpha, beta, momentum, relative, norm2]
    }

    fn systems(&mut self) -> [&mut Vec<f64>; 5] {
        let Self { zeta, gap, a, z, b, .. } = self;
        [zeta, gap, a, z, b]
    }

    /// Sets the coefficients of system `at` so that the next updates leave it unchanged.
    pub(super) fn rest(&mut self, at: usize) {
        (self.a[at], self.z[at], self.b[at]) = (0.0, 0.0, 1.0);
    }

    /// Applies the compaction of a batch of `width` slots to all scalars.
    pub(super) fn rearrange(&mut self, compaction: &Compaction, width: usize) {
        compaction.scalars(&mut self.active);
        compaction.scalars(&mut self.progress);
        self.slots().into_iter().for_each(|v| compaction.scalars(v));
        [&mut self.dots, &mut self.left].into_iter().for_each(|v| compaction.scalars(v));
        compaction.rows(&mut self.running, width);
        self.systems().into_iter().for_each(|v| compaction.rows(v, width));
    }
}
