//! Near-null vectors on aggregates: prolongation and restriction.
use super::level::LevelLattice;
use crate::backend::view;
use crate::domain::Result;
use crate::field::{DeviceField, FieldShape, FieldSpace, FullField};
use gpu_kernels::lattice::Divisor;
use gpu_kernels::multigrid::{
    AggregateGram, Aggregates, COMBINE, Combine, FACTORISE, Factorise, GRAM, PROLONG, Prolong, RESTRICT, Restrict,
    Squares, TO_CHIRAL_BASIS, ToChiralBasis,
};
use gpu_kernels::warp::LANES;
use gpu_kernels::{Format, Precision};

/// A step of Cholesky QR.
struct CholeskyQrStep {
    /// Shift of the diagonal, relative to the diagonal.
    shift: f32,
    /// Least share of ‖v‖² that must remain of a vector after the components along earlier vectors are removed.
    least: f32,
}
/// Steps of Cholesky QR. Products of vectors of norm 1 are accurate to a few 1e-7. With shifts a hundred times larger, two steps change the
/// part of a vector that is orthogonal to the others from σ² to about σ²/(σ² + 4e-10). A part below 1e-2 consists of rounding errors only.
const STEPS: [CholeskyQrStep; 3] = [
    CholeskyQrStep { shift: 2e-5, least: 0.0 },
    CholeskyQrStep { shift: 2e-5, least: 0.0 },
    CholeskyQrStep { shift: 0.0, least: 1e-2 },
];

/// Near-null vectors of a level, orthonormal on each aggregate for each chirality, and the coarse level that they span. P maps coarse
/// vectors to fine vectors, and R = P† maps fine vectors to coarse vectors.
pub struct NullSpace {
    fine: LevelLattice,
    coarse: LevelLattice,
    block: [usize; 4],
    vectors: FullField,
}

impl NullSpace {
    /// Makes near-null vectors from the right-hand sides of `vectors`, a field in single precision on the level `fine`. The extents of an
    /// aggregate are `block`.
    ///
    /// # Errors
    /// Blocks that do not divide the lattice; failures of the device.
    pub fn new(fine: &LevelLattice, block: [usize; 4], vectors: FullField) -> Result<Self> {
        let count = vectors.even.nrhs();
        let coarse = fine.coarsened(block, count)?;
        let mut space = NullSpace { fine: fine.clone(), coarse, block, vectors };
        if space.spins() != 0 {
            for vectors in space.views() {
                space.launch_single(&TO_CHIRAL_BASIS, &ToChiralBasis { vectors }, fine.domain().half_sites(), count)?;
            }
        }
        space.orthonormalise()?;
        Ok(space)
    }
    /// Makes the vectors orthonormal on each aggregate for each chirality, by Cholesky factorisations of the matrices of their scalar
    /// products.
    fn orthonormalise(&mut self) -> Result {
        let (aggregates, count, backend) = (self.aggregates(), self.count(), self.fine.domain().backend());
        let matrices = || {
            let bytes = Squares::bytes(aggregates.count() as usize, count);
            backend.allocate(bytes, "scalar products of near-null vectors")
        };
        let (gram, inverse) = (matrices()?, matrices()?);
        let view = |buffer| view::squares(buffer, aggregates.count() as usize, count);
        let (gram, inverse, vectors) = (view(&gram), view(&inverse), self.views());
        let (rows, columns) = (count as u32 / 8, count as u32 / 4);
        for CholeskyQrStep { shift, least } in STEPS {
            let products =
                AggregateGram { vectors, gram, aggregates, rows: Divisor::new(rows), columns: Divisor::new(columns) };
            let warps = 2 * aggregates.count();
            self.launch_single(&GRAM, &products, LANES * warps * rows * columns, 1)?;
            self.launch_single(&FACTORISE, &Factorise { gram, inverse, shift, least }, LANES * warps, 1)?;
            let combine = Combine { vectors, factors: inverse, aggregates };
            self.launch_single(&COMBINE, &combine, LANES * aggregates.count(), 1)?;
        }
        Ok(())
    }
    /// Returns the fine level, to which vectors are prolonged.
    pub fn fine(&self) -> &LevelLattice {
        &self.fine
    }
    /// Returns the coarse level, to which vectors are restricted.
    pub fn coarse(&self) -> &LevelLattice {
        &self.coarse
    }
    /// Returns the extents of an aggregate.
    pub fn block(&self) -> [usize; 4] {
        self.block
    }
    /// Returns the number of near-null vectors.
    pub fn count(&self) -> usize {
        self.vectors.even.nrhs()
    }
    /// Returns the precision of the stored vectors.
    pub fn precision(&self) -> Precision {
        self.vectors.even.precision()
    }
    /// Returns the near-null vectors in another precision. Coarse operators can be made only from vectors in single precision.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn converted(&self, precision: Precision) -> Result<Self> {
        let mut vectors = FullField::zero(self.fine.domain(), FieldShape::spinors(precision, self.count()))?;
        let space = FieldSpace::new(self.fine.domain(), FieldShape::spinors(precision, self.count()));
        for parity in 0..2 {
            space.convert_from(self.vectors.parity(parity), vectors.parity_mut(parity))?;
        }
        Ok(NullSpace { fine: self.fine.clone(), coarse: self.coarse.clone(), block: self.block, vectors })
    }
    pub(super) fn aggregates(&self) -> Aggregates {
        let block = self.block.map(|extent| extent as u32);
        Aggregates::new(self.fine.geometry(), self.fine.spinors() as u32, block, self.count() as u32)
    }
    pub(super) fn views(&self) -> [gpu_kernels::field::Field; 2] {
        [self.vectors.even.view(), self.vectors.odd.view()]
    }
    /// Returns 1 if fields of the level are in the device's spin basis, otherwise 0.
    pub(super) fn spins(&self) -> u32 {
        u32::from(self.fine.spinors() == 1)
    }
    /// Launches a kernel for fields in single precision.
    pub(super) fn launch_single<A: Copy>(
        &self,
        kernel: &gpu_kernels::Instances<A>,
        arguments: &A,
        n: u32,
        nrhs: usize,
    ) -> Result {
        let backend = self.fine.domain().backend();
        Ok(backend.launch(kernel, Format::of(Precision::Single), arguments, n, nrhs as u32)?)
    }
    /// Applies R to a fine vector in single precision on the sites of `parity`, for the first `nrhs` right-hand sides. The result is added
    /// to `coarse` if `add` is set, and otherwise replaces it.
    ///
    /// # Errors
    /// Fields of other levels or formats; failures of the device.
    pub fn restrict(
        &self,
        parity: usize,
        fine: &DeviceField,
        coarse: &mut FullField,
        add: bool,
        nrhs: usize,
    ) -> Result {
        self.expect(fine, coarse, nrhs)?;
        let groups = self.count() as u32 / 8;
        let kernel = Restrict {
            vectors: self.vectors.parity(parity).view(),
            fine: fine.view(),
            coarse: [coarse.even.view(), coarse.odd.view()],
            aggregates: self.aggregates(),
            groups: Divisor::new(groups),
            parity: parity as u32,
            add: u32::from(add),
            spins: self.spins(),
        };
        let threads = LANES * self.aggregates().groups() * groups;
        let backend = self.fine.domain().backend();
        Ok(backend.launch(&RESTRICT, self.vectors.even.format(), &kernel, threads, nrhs as u32)?)
    }
    /// Applies P to a coarse vector on the sites of `parity`, for the first `nrhs` right-hand sides. The result replaces `fine`.
    ///
    /// # Errors
    /// The errors of [`restrict`](Self::restrict).
    pub fn prolong(&self, parity: usize, coarse: &FullField, fine: &mut DeviceField, nrhs: usize) -> Result {
        self.expect(fine, coarse, nrhs)?;
        let kernel = Prolong {
            vectors: self.vectors.parity(parity).view(),
            coarse: [coarse.even.view(), coarse.odd.view()],
            fine: fine.view(),
            aggregates: self.aggregates(),
            count: self.count() as u32,
            parity: parity as u32,
            spins: self.spins(),
        };
        let (backend, sites) = (self.fine.domain().backend(), self.fine.domain().half_sites());
        Ok(backend.launch(&PROLONG, self.vectors.even.format(), &kernel, sites, nrhs as u32)?)
    }
    /// Computes the columns of P of one chirality on the sites of `parity`, one for each near-null vector, over all aggregates together.
    pub(super) fn columns(&self, parity: usize, chirality: u32, out: &mut DeviceField) -> Result {
        self.fine.one_chirality(chirality, self.vectors.parity(parity), out)
    }
    fn expect(&self, fine: &DeviceField, coarse: &FullField, nrhs: usize) -> Result {
        let shape = FieldShape::spinors(Precision::Single, nrhs);
        fine.expect(self.fine.domain(), shape)?;
        (0..2).try_for_each(|parity| coarse.parity(parity).expect(self.coarse.domain(), shape))
    }
}
