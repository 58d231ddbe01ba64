//! Near-null vectors of the finest level.
use super::level::LevelLattice;
use crate::domain::{Domain, Result};
use crate::field::host::HostSpinor;
use crate::field::{DeviceField, FieldShape, FieldSpace, FullField};
use gpu_kernels::Precision;
use solvers::VectorSpace;

/// Possible numbers of near-null vectors that are relaxed and improved together, in order of preference.
const TOGETHER: [usize; 3] = [12, 16, 8];

/// Returns how many of `count` near-null vectors are relaxed and improved together.
pub(super) fn together(count: usize) -> usize {
    TOGETHER.into_iter().find(|width| count.is_multiple_of(*width)).unwrap_or(count)
}

/// Near-null vectors of a multigrid setup on the even sites of the finest level, in blocks of vectors that are improved together. A setup
/// from stored vectors needs no relaxation of random vectors.
pub struct NearNullVectors {
    blocks: Vec<DeviceField>,
}

impl NearNullVectors {
    /// Returns random vectors, which are the same on every process grid.
    pub(super) fn random(finest: &LevelLattice, count: usize, seed: u64) -> Result<Self> {
        let width = together(count);
        let block = |number: usize| {
            let mut vectors = DeviceField::zero(finest.domain(), FieldShape::spinors(Precision::Single, width))?;
            finest.fill(&mut vectors, 0, number * width, seed)?;
            Ok(vectors)
        };
        (0..count / width).map(block).collect::<Result<_>>().map(|blocks| NearNullVectors { blocks })
    }
    /// Copies `count` vectors from the host to the device. `next` returns the vector with a given number, counted from 0; the values on odd
    /// sites are ignored.
    ///
    /// # Errors
    /// Errors of `next`, fields on another lattice, failures of the device.
    pub fn from_host<E: From<crate::domain::DeviceError>>(
        domain: &Domain,
        count: usize,
        mut next: impl FnMut(usize) -> std::result::Result<HostSpinor, E>,
    ) -> std::result::Result<Self, E> {
        let width = together(count);
        let space = FieldSpace::new(domain, FieldShape::spinors(Precision::Single, width));
        let mut one = FullField::zero(domain, FieldShape::spinors(Precision::Single, 1))?;
        let single = FieldSpace::new(domain, FieldShape::spinors(Precision::Single, 1));
        let mut blocks = Vec::new();
        for first in (0..count).step_by(width) {
            let mut block = space.allocate()?;
            for j in 0..width {
                one.upload(&[next(first + j)?])?;
                single.copy_to_rhs(&one.even, &mut block, j)?;
            }
            blocks.push(block);
        }
        Ok(NearNullVectors { blocks })
    }
    /// Copies vector `k` to the host; its values on odd sites are zero.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn to_host(&self, k: usize) -> Result<HostSpinor> {
        let width = self.width();
        let block = &self.blocks[k / width];
        let (domain, precision) = (block.domain(), block.precision());
        let mut one = FullField::zero(domain, FieldShape::spinors(precision, 1))?;
        FieldSpace::new(domain, FieldShape::spinors(precision, 1)).copy_from_rhs(block, k % width, &mut one.even)?;
        Ok(one.download()?.remove(0))
    }
    /// Returns the number of vectors.
    pub fn count(&self) -> usize {
        self.width() * self.blocks.len()
    }
    fn width(&self) -> usize {
        self.blocks.first().map_or(0, DeviceField::nrhs)
    }
    /// Returns a copy of the vectors.
    pub(crate) fn copied(&self) -> Result<Self> {
        self.converted(self.blocks.first().map_or(Precision::Single, DeviceField::precision))
    }
    /// Returns the vectors in another precision.
    pub(super) fn converted(&self, precision: Precision) -> Result<Self> {
        let copy = |vectors: &DeviceField| {
            let space = FieldSpace::new(vectors.domain(), FieldShape::spinors(precision, vectors.nrhs()));
            let mut copy = space.allocate()?;
            space.convert_from(vectors, &mut copy)?;
            Ok(copy)
        };
        self.blocks.iter().map(copy).collect::<Result<_>>().map(|blocks| NearNullVectors { blocks })
    }
    pub(super) fn blocks(&self) -> &[DeviceField] {
        &self.blocks
    }
    pub(super) fn blocks_mut(&mut self) -> &mut [DeviceField] {
        &mut self.blocks
    }
}
