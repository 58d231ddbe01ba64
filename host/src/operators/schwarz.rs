//! Additive Schwarz preconditioner: the operator is divided into independent blocks, and a few steps of minimum residual are done in each
//! of them (Babich et al. 2011, section 8.1).
use super::even_odd::Width;
use super::wilson_hop::DslashSums;
use super::wilson_like::{EvenOddWilson, Schur};
use crate::backend::{Call, DeviceBuffer, LAUNCH_SUMS, view};
use crate::domain::SumTarget;
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceField, FieldShape, FieldSpace};
use gpu_kernels::lattice::Region;
use gpu_kernels::schwarz::{BLOCK_DOT, BlockDot, Blocks, MR_UPDATE, SchwarzMrUpdate};
use gpu_kernels::sums::DeviceSums;
use gpu_kernels::transfer::{COPY_REGION, CopySites};
use gpu_kernels::{Format, Precision};
use solvers::{LinearOperator, MrParams, Preconditioner, VectorSpace, Work};
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum number of blocks, over all right-hand sides, for which one launch computes sums.
const BLOCKS: usize = LAUNCH_SUMS / 3;

/// Schur complement of an operator that is divided into independent blocks.
pub trait BlockOperator: LinearOperator<FieldSpace> {
    /// Returns the domain on which the operator is stored.
    fn domain(&self) -> &Domain;
    /// Returns the precision of the operator's fields.
    fn precision(&self) -> Precision;
    /// Returns the extents of a block.
    fn block(&self) -> [usize; 4];
    /// Whether [`apply_into`](Self::apply_into) is available for a single block.
    #[doc(hidden)]
    fn sums_up(&self) -> bool;
    /// Computes `out` = M̂ x, with the sums (x, out) and ‖out‖², which stay in `sums`. The local lattice must be a single block.
    #[doc(hidden)]
    fn apply_into(&self, x: &DeviceField, out: &mut DeviceField, sums: &DeviceBuffer) -> Result<DeviceSums>;
}

impl BlockOperator for EvenOddWilson {
    fn domain(&self) -> &Domain {
        self.wilson().domain()
    }
    fn precision(&self) -> Precision {
        self.wilson().precision()
    }
    fn block(&self) -> [usize; 4] {
        self.wilson().block()
    }
    fn sums_up(&self) -> bool {
        self.complement() == Schur::Symmetric
    }
    fn apply_into(&self, x: &DeviceField, out: &mut DeviceField, sums: &DeviceBuffer) -> Result<DeviceSums> {
        let parts = self.schur_sums(x, out, (DslashSums::Dot, x), SumTarget::Device(sums, 0))?;
        Ok(view::device_sums(sums, 0, parts.stride(), parts.widths()))
    }
}

/// Preconditioner with n steps of minimum residual in every block. All steps are queued on the device at once, because the sums from which
/// their coefficients are computed stay on the device.
pub struct MrInBlocks {
    operator: Rc<dyn BlockOperator>,
    params: MrParams,
    blocks: Blocks,
    /// Number of right-hand sides on which the preconditioner works.
    nrhs: Width,
    fields: RefCell<[DeviceField; 2]>,
    sums: DeviceBuffer,
    overlap: Option<OverlappingParts>,
}

/// Conversion of vectors of each process's part to vectors of overlapping domains.
struct OverlappingParts {
    /// Domain of the processes' parts, without overlap.
    parts: Domain,
    /// Width, in sites, by which a domain extends into its neighbours' parts.
    width: u32,
    /// Factor of a hop across the end of the whole lattice in t.
    across: f64,
    /// Vector given to the overlapping domain, and the solution computed from it.
    given: RefCell<[DeviceField; 2]>,
}

/// Largest number of sums for a right-hand side and a block.
const WIDTH: usize = 8;

impl MrInBlocks {
    /// Makes the preconditioner for blocks of `nrhs` right-hand sides.
    ///
    /// # Errors
    /// Too little memory.
    ///
    /// # Panics
    /// If the extents of the operator's blocks are odd or do not divide those of its local lattice.
    pub fn new(operator: Rc<dyn BlockOperator>, params: MrParams, nrhs: usize) -> Result<Self> {
        let domain = operator.domain().clone();
        let blocks = Blocks::new(&domain.geometry(), operator.block().map(|extent| extent as u32));
        let field = || DeviceField::zero(&domain, FieldShape::spinors(operator.precision(), nrhs));
        let fields = [field()?, field()?];
        let bytes = 5 * 8 * WIDTH * nrhs * blocks.count() as usize;
        let sums = domain.backend().allocate(bytes, "sums of Schwarz blocks")?;
        let nrhs = Width::default();
        Ok(MrInBlocks { operator, params, blocks, nrhs, fields: RefCell::new(fields), sums, overlap: None })
    }
    /// *Collective.* Makes the preconditioner in overlapping domains (restricted additive Schwarz, Cai and Sarkis 1999). `operator` acts on
    /// this process's part of `parts` with a ghost zone of `width` sites of its neighbours. Vectors are stored on the parts, without ghost
    /// zones: before a solve, a domain receives its neighbours' values in its ghost zone, and the solution in the ghost zone is dropped.
    /// `across` is the factor of a hop across the end of the whole lattice in t.
    ///
    /// # Errors
    /// Too little memory.
    ///
    /// # Panics
    /// As in [`new`](Self::new).
    pub fn overlapping(
        operator: Rc<dyn BlockOperator>,
        params: MrParams,
        nrhs: usize,
        parts: &Domain,
        width: usize,
        across: f64,
    ) -> Result<Self> {
        let field = || DeviceField::zero(operator.domain(), FieldShape::spinors(operator.precision(), nrhs));
        let (parts, width, given) = (parts.clone(), width as u32, RefCell::new([field()?, field()?]));
        Ok(MrInBlocks {
            overlap: Some(OverlappingParts { parts, width, across, given }),
            ..Self::new(operator, params, nrhs)?
        })
    }
    /// Returns the shape of the vectors.
    fn shape(&self, nrhs: usize) -> FieldShape {
        FieldShape::spinors(self.operator.precision(), nrhs)
    }
    /// Computes z ≈ M̂⁻¹ r in every domain.
    fn solve(&self, r: &DeviceField, z: &mut DeviceField) -> Result<Work> {
        let Some(OverlappingParts { parts, width, across, given }) = &self.overlap else {
            return self.in_blocks(r, z);
        };
        let nrhs = self.nrhs.of(r.nrhs());
        let [wide_r, wide_z] = &mut *given.borrow_mut();
        r.expect(parts, self.shape(nrhs))?;
        z.expect(parts, self.shape(nrhs))?;
        wide_r.expect(self.operator.domain(), self.shape(nrhs))?;
        if let Some(halo) = parts.halo()? {
            halo.fill_ghost_zone(r, nrhs, wide_r, 0, *width, *across)?;
        }
        let work = self.in_blocks(wide_r, wide_z)?;
        let (from, to) = (parts.bordered_by(parts.border(*width)).inner, Region::WHOLE);
        let geometry = wide_z.domain().geometry();
        let (input, out) = (wide_z.view(), z.view());
        let kernel = CopySites { input, from, out, to, geometry, parity: 0, factor: 1.0 };
        parts.backend().launch(&COPY_REGION, z.format(), &kernel, parts.half_sites(), nrhs as u32)?;
        // The operations of `work` are those of one domain, so they are multiplied by the number of domains.
        Ok(Work { flops: work.flops * parts.grid().size() as f64, ..work })
    }
    /// Computes z ≈ M̂⁻¹ r in every block of the operator's lattice.
    fn in_blocks(&self, r: &DeviceField, z: &mut DeviceField) -> Result<Work> {
        let domain = self.operator.domain();
        let (backend, geometry, nrhs) = (domain.backend(), domain.geometry(), self.nrhs.of(r.nrhs()));
        z.expect(domain, self.shape(nrhs))?;
        let space = FieldSpace::new(domain, self.shape(nrhs));
        let count = self.blocks.count() as usize;
        let [residual, image] = &mut *self.fields.borrow_mut();
        space.copy(r, residual)?;
        for step in 0..self.params.steps {
            let sums = if count == 1 && self.operator.sums_up() {
                self.operator.apply_into(residual, image, &self.sums)?
            } else {
                self.operator.apply(residual, image)?;
                let (r, t) = (residual.view(), image.view());
                let all = nrhs * count;
                for first in (0..all).step_by(BLOCKS) {
                    let kernel = BlockDot { r, t, blocks: self.blocks, geometry, parity: 0, first: first as u32 };
                    let some = BLOCKS.min(all - first) as u32;
                    let call = Call::of_sum(&BLOCK_DOT, residual.format(), &kernel)?;
                    backend.sum_into(None, call, self.blocks.sites(), some, (&self.sums, 3 * first))?;
                }
                view::device_sums(&self.sums, 0, 0, [3, 0, 0, 0, 0])
            };
            self.update(step == 0, nrhs, sums, z, residual, image)?;
            std::mem::swap(residual, image);
        }
        let applications = self.params.steps;
        let flops = applications as f64 * self.operator.flops();
        Ok(Work { calls: 1, local_applications: applications, flops, ..Default::default() })
    }
    fn update(
        &self,
        first: bool,
        nrhs: usize,
        sums: DeviceSums,
        z: &mut DeviceField,
        residual: &DeviceField,
        image: &mut DeviceField,
    ) -> Result {
        let domain = self.operator.domain();
        let kernel = SchwarzMrUpdate {
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
        let format = Format::of(self.operator.precision());
        Ok(domain.backend().launch(&MR_UPDATE, format, &kernel, domain.half_sites(), nrhs as u32)?)
    }
    /// Restricts work to the first `nrhs` right-hand sides, if the operator supports it.
    fn narrow(&self, nrhs: usize) -> bool {
        self.operator.narrow(nrhs) && self.nrhs.narrow(nrhs, self.fields.borrow()[0].nrhs())
    }
}

impl Preconditioner<FieldSpace> for MrInBlocks {
    fn apply(
        &self,
        _: &FieldSpace,
        r: &DeviceField,
        _: &[f64],
        z: &mut DeviceField,
    ) -> std::result::Result<Work, DeviceError> {
        self.solve(r, z)
    }
    fn needs_norms(&self) -> bool {
        false
    }
    fn narrow(&self, nrhs: usize) -> bool {
        MrInBlocks::narrow(self, nrhs)
    }
}
