//! The lattice of a level and how vectors live on it.
use crate::domain::{Domain, Result};
use crate::field::{FieldSpace, FullField};
use crate::lattice::Lattice;
use gpu_kernels::multigrid::spinors_of;
use gpu_kernels::{FermionKind, Precision};

/// A level of multigrid: a lattice, of which each site has some spinors. On the finest one that is one spinor; on a coarse
/// one they hold two numbers for each near-null vector, one of each chirality.
#[derive(Clone)]
pub struct Level {
    /// On whose sites the spinors are.
    domain: Domain,
    /// This process's part of the level's lattice.
    lattice: Lattice,
    spinors: usize,
}

impl Level {
    /// The finest one.
    pub fn finest(domain: &Domain) -> Self {
        Level { domain: domain.clone(), lattice: domain.local(), spinors: 1 }
    }
    /// That whose sites are blocks of this one, for so many near-null vectors.
    ///
    /// # Errors
    /// Blocks that do not divide the lattice into even numbers of them in each direction.
    pub fn coarsened(&self, block: [usize; 4], vectors: usize) -> Result<Self> {
        let fine = self.lattice.size();
        let lattice = Lattice::new(std::array::from_fn(|mu| fine[mu] / block[mu]))?;
        let spinors = spinors_of(vectors as u32) as usize;
        let [x, y, z, t] = lattice.size();
        let domain = self.domain.with_local(Lattice::new([x * spinors, y, z, t])?)?;
        Ok(Level { domain, lattice, spinors })
    }
    /// Where its vectors live: a lattice with a site for each spinor.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// This process's part of its lattice.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }
    /// Spinors of a site.
    pub fn spinors(&self) -> usize {
        self.spinors
    }
    /// The space of vectors on the sites of one parity, in single precision.
    pub fn space(&self, nrhs: usize) -> FieldSpace {
        FieldSpace::new(&self.domain, FermionKind::Wilson, Precision::Single, nrhs)
    }
    /// Vectors on all sites, in single precision, zero.
    pub fn zero(&self, nrhs: usize) -> Result<FullField> {
        FullField::zero(&self.domain, FermionKind::Wilson, Precision::Single, nrhs)
    }
    pub(super) fn extents(&self) -> [u32; 4] {
        self.lattice.size().map(|extent| extent as u32)
    }
}
