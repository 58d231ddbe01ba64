//! Additive Schwarz: an operator cut into blocks that know nothing of each other, and a few steps of minimum residual in
//! each of them as a preconditioner (Babich et al. 2011, section 8.1).
use super::clover::{EvenOddClover, Schur};
use super::wilson::EvenOddWilson;
use crate::backend::{Backend, view};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{AnyField, AnySpace, DeviceSpinor, SpinorSpace};
use crate::halo::SumTarget;
use gpu_kernels::schwarz::{BlockDot, Blocks, DeviceSums, MrUpdate};
use gpu_kernels::storage::{CloverFormat, Double, FourSpins, Fp16, Half, LinkFormat, Precision, Single};
use solvers::{LinearOperator, MrParams, Preconditioner, VectorSpace, Work};
use std::cell::RefCell;
use std::rc::Rc;

/// The Schur complement of an operator that is cut into blocks.
pub trait BlockOperator<B: Backend, P: Precision>: LinearOperator<SpinorSpace<B, P>> {
    /// Where it lives.
    fn domain(&self) -> &Domain<B>;
    /// Extents of a block.
    fn block(&self) -> [usize; 4];
    /// Whether [`apply_into`](Self::apply_into) is there for a single block.
    #[doc(hidden)]
    fn sums_up(&self) -> bool {
        true
    }
    /// `out` = M̂ x, with (x, out) and ‖out‖², which stay in `sums`; only where the local lattice is one block.
    #[doc(hidden)]
    fn apply_into(&self, x: &DeviceSpinor<B, P>, out: &mut DeviceSpinor<B, P>, sums: &B::Buffer) -> Result<DeviceSums>;
}

impl<B: Backend, P: CloverFormat, R: LinkFormat<P>> BlockOperator<B, P> for EvenOddWilson<B, P, R> {
    fn domain(&self) -> &Domain<B> {
        self.wilson().domain()
    }
    fn block(&self) -> [usize; 4] {
        self.wilson().block()
    }
    fn apply_into(&self, x: &DeviceSpinor<B, P>, out: &mut DeviceSpinor<B, P>, sums: &B::Buffer) -> Result<DeviceSums> {
        let parts = self.schur_dot(x, out, x, SumTarget::Device(sums))?;
        Ok(view::device_sums(sums, parts.stride(), parts.widths()))
    }
}

impl<B: Backend, P: CloverFormat, R: LinkFormat<P>> BlockOperator<B, P> for EvenOddClover<B, P, R> {
    fn domain(&self) -> &Domain<B> {
        self.wilson().domain()
    }
    fn block(&self) -> [usize; 4] {
        self.wilson().block()
    }
    fn sums_up(&self) -> bool {
        self.complement() == Schur::Symmetric
    }
    fn apply_into(&self, x: &DeviceSpinor<B, P>, out: &mut DeviceSpinor<B, P>, sums: &B::Buffer) -> Result<DeviceSums> {
        let parts = self.schur_dot(x, out, x, SumTarget::Device(sums))?;
        Ok(view::device_sums(sums, parts.stride(), parts.widths()))
    }
}

/// n steps of minimum residual in every block, all queued on the device at once: their coefficients are sums that stay
/// there.
pub struct MrInBlocks<B: Backend, P: Precision> {
    operator: Rc<dyn BlockOperator<B, P>>,
    params: MrParams,
    blocks: Blocks,
    fields: RefCell<[DeviceSpinor<B, P>; 2]>,
    sums: B::Buffer,
}

/// Values of a right-hand side and block, at most.
const WIDTH: usize = 8;

impl<B: Backend, P: Precision> MrInBlocks<B, P> {
    /// For blocks of `nrhs` right-hand sides.
    pub fn new(operator: Rc<dyn BlockOperator<B, P>>, params: MrParams, nrhs: usize) -> Result<Self> {
        let domain = operator.domain().clone();
        let blocks = Blocks::new(&domain.geometry(), operator.block().map(|extent| extent as u32));
        let fields = [DeviceSpinor::zero(&domain, nrhs)?, DeviceSpinor::zero(&domain, nrhs)?];
        let bytes = 5 * 8 * WIDTH * nrhs * blocks.count() as usize;
        let sums = domain.backend().allocate(bytes, "sums of Schwarz blocks")?;
        Ok(MrInBlocks { operator, params, blocks, fields: RefCell::new(fields), sums })
    }
    /// z ≈ M̂⁻¹ r in every block.
    fn solve(&self, r: &DeviceSpinor<B, P>, z: &mut DeviceSpinor<B, P>) -> Result<Work> {
        let domain = self.operator.domain();
        let (backend, geometry, nrhs) = (domain.backend(), domain.geometry(), r.nrhs());
        let space = SpinorSpace::<B, P>::new(domain, nrhs);
        let count = self.blocks.count() as usize;
        let [residual, image] = &mut *self.fields.borrow_mut();
        space.copy(r, residual)?;
        for step in 0..self.params.steps {
            let sums = if count == 1 && self.operator.sums_up() {
                self.operator.apply_into(residual, image, &self.sums)?
            } else {
                self.operator.apply(residual, image)?;
                let (r, t) = (residual.view(), image.view());
                let kernel = BlockDot { r, t, blocks: self.blocks, geometry };
                backend.reduce_into(&kernel, self.blocks.sites(), (nrhs * count) as u32, &self.sums, 0)?;
                view::device_sums(&self.sums, 0, [3, 0, 0, 0, 0])
            };
            self.update(step == 0, sums, z, residual, image)?;
            std::mem::swap(residual, image);
        }
        let applications = self.params.steps;
        let flops = applications as f64 * self.operator.flops();
        Ok(Work { calls: 1, local_applications: applications, flops, ..Default::default() })
    }
    fn update(
        &self,
        first: bool,
        sums: DeviceSums,
        z: &mut DeviceSpinor<B, P>,
        residual: &DeviceSpinor<B, P>,
        image: &mut DeviceSpinor<B, P>,
    ) -> Result {
        let domain = self.operator.domain();
        let kernel = MrUpdate {
            x: z.view(),
            r: residual.view(),
            t: image.view(),
            sums,
            blocks: self.blocks,
            geometry: domain.geometry(),
            parity: 0,
            first: u32::from(first),
            relaxation: self.params.omega,
        };
        Ok(domain.backend().launch(&kernel, domain.sites(), z.nrhs() as u32)?)
    }
}

/// [`MrInBlocks`] in a format that is known at run time.
pub enum AnySchwarz<B: Backend> {
    /// Double precision.
    Double(MrInBlocks<B, Double>),
    /// Single precision.
    Single(MrInBlocks<B, Single>),
    /// Half precision, 16-bit fixed point.
    Half(MrInBlocks<B, Half>),
    /// 16-bit floating point.
    Fp16(MrInBlocks<B, Fp16>),
}

impl<B: Backend> Preconditioner<AnySpace<B, FourSpins>> for AnySchwarz<B> {
    fn apply(
        &self,
        _: &AnySpace<B, FourSpins>,
        r: &AnyField<B, FourSpins>,
        _: &[f64],
        z: &mut AnyField<B, FourSpins>,
    ) -> std::result::Result<Work, DeviceError> {
        match (self, r, z) {
            (AnySchwarz::Double(mr), AnyField::Double(r), AnyField::Double(z)) => mr.solve(r, z),
            (AnySchwarz::Single(mr), AnyField::Single(r), AnyField::Single(z)) => mr.solve(r, z),
            (AnySchwarz::Half(mr), AnyField::Half(r), AnyField::Half(z)) => mr.solve(r, z),
            (AnySchwarz::Fp16(mr), AnyField::Fp16(r), AnyField::Fp16(z)) => mr.solve(r, z),
            _ => unreachable!("a preconditioner and its vectors have one format"),
        }
    }
}
