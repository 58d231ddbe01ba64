//! Lattice of a multigrid level, and the layout of vectors on it.
use crate::domain::{Domain, Result};
use crate::field::{DeviceField, FieldShape, FieldSpace, FullField};
use crate::lattice::Lattice;
use gpu_kernels::lattice::{Divisor, Geometry};
use gpu_kernels::multigrid::{CHIRAL, Chiral, RANDOM_VECTORS, RandomVectors, spinors_of};
use gpu_kernels::{Format, Precision};

/// Level of multigrid: a lattice with a number of spinors on each site. The finest level has one spinor on a site. On a coarse level, the
/// spinors of a site hold two numbers for each near-null vector, one of each chirality.
#[derive(Clone)]
pub struct LevelLattice {
    /// Domain on whose sites the spinors are stored.
    domain: Domain,
    /// This process's part of the level's lattice.
    lattice: Lattice,
    spinors: usize,
}

impl LevelLattice {
    /// Returns the finest level.
    pub fn finest(domain: &Domain) -> Self {
        LevelLattice { domain: domain.clone(), lattice: domain.local(), spinors: 1 }
    }
    /// Returns the coarser level whose sites are blocks of this level's sites, for `vectors` near-null vectors.
    ///
    /// # Errors
    /// Blocks that do not divide the lattice into an even number of blocks in each direction.
    pub fn coarsened(&self, block: [usize; 4], vectors: usize) -> Result<Self> {
        let fine = self.lattice.size();
        let lattice = Lattice::new(std::array::from_fn(|mu| fine[mu] / block[mu]))?;
        let spinors = spinors_of(vectors as u32) as usize;
        let [x, y, z, t] = lattice.size();
        let domain = self.domain.with_local(Lattice::new([x * spinors, y, z, t])?)?;
        Ok(LevelLattice { domain, lattice, spinors })
    }
    /// Returns the domain of the level's vectors; its lattice has a site for each spinor.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns this process's part of the level's lattice.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }
    /// Returns the number of spinors on a site.
    pub fn spinors(&self) -> usize {
        self.spinors
    }
    /// Returns the space of vectors on the sites of one parity, in single precision.
    pub fn space(&self, nrhs: usize) -> FieldSpace {
        FieldSpace::new(&self.domain, FieldShape::spinors(Precision::Single, nrhs))
    }
    /// Allocates vectors that are zero on all sites, in single precision.
    pub fn zero(&self, nrhs: usize) -> Result<FullField> {
        FullField::zero(&self.domain, FieldShape::spinors(Precision::Single, nrhs))
    }
    /// Returns random vectors on all sites, in single precision. On the finest level they are the same on every process grid.
    pub(super) fn random(&self, nrhs: usize, seed: u64) -> Result<FullField> {
        let mut vectors = self.zero(nrhs)?;
        (0..2).try_for_each(|parity| self.fill(vectors.parity_mut(parity), parity, 0, seed))?;
        Ok(vectors)
    }
    /// Fills `vectors` with random numbers for the sites of `parity`. The vectors have the numbers from `first` on.
    pub(crate) fn fill(&self, vectors: &mut DeviceField, parity: usize, first: usize, seed: u64) -> Result {
        let kernel = RandomVectors {
            out: vectors.view(),
            geometry: self.domain.geometry(),
            position: self.domain.position(),
            parity: parity as u32,
            first: first as u32,
            seed,
        };
        let (format, sites) = (Format::of(Precision::Single), self.domain.half_sites());
        Ok(self.domain.backend().launch(&RANDOM_VECTORS, format, &kernel, sites, vectors.nrhs() as u32)?)
    }
    /// Computes the part of vectors that has one chirality, 0 for + and 1 for −, on the sites of one parity. If the level uses the device's
    /// spin basis, `x` is in the chiral basis and `out` in the device's basis.
    pub(super) fn one_chirality(&self, chirality: u32, x: &DeviceField, out: &mut DeviceField) -> Result {
        let shape = FieldShape::spinors(Precision::Single, x.nrhs());
        out.expect(&self.domain, shape)?;
        x.expect(&self.domain, shape)?;
        let kernel = Chiral {
            vectors: x.view(),
            out: out.view(),
            spinors: Divisor::new(self.spinors as u32),
            chirality,
            spins: u32::from(self.spinors == 1),
        };
        let (format, sites) = (Format::of(Precision::Single), self.domain.half_sites());
        Ok(self.domain.backend().launch(&CHIRAL, format, &kernel, sites, x.nrhs() as u32)?)
    }
    pub(super) fn extents(&self) -> [u32; 4] {
        self.lattice.size().map(|extent| extent as u32)
    }
    /// Returns the level's sites in the form of kernels. Sites of coarse levels are not in lane order.
    pub(super) fn geometry(&self) -> Geometry {
        if self.spinors == 1 { self.domain.geometry() } else { Geometry::new(self.extents()) }
    }
}
