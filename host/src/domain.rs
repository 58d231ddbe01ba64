//! Where a calculation lives: a device, this process's part of the lattice, and the other processes.
use crate::backend::{Backend, BackendError};
use crate::lattice::{Lattice, LatticeError};
use comms::{CommError, Communicator, GridError, ProcessGrid, Solo};
use gpu_kernels::lattice::Geometry;
use std::sync::Arc;

/// Why fields could not be made, moved or computed with.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The device.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The other processes.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The extents.
    #[error(transparent)]
    Lattice(#[from] LatticeError),
    /// The process grid.
    #[error(transparent)]
    Grid(#[from] GridError),
}

/// A result of work on a device.
pub type Result<T = ()> = std::result::Result<T, DeviceError>;

/// Global sums: the part of a [`Communicator`] that linear algebra needs, as an object.
pub trait GlobalSum: Send + Sync {
    /// `values`_i ← Σ over processes of `values`_i, in a fixed order.
    fn sum(&self, values: &mut [f64]) -> std::result::Result<(), CommError>;
}
impl<C: Communicator + Send + Sync> GlobalSum for C {
    fn sum(&self, values: &mut [f64]) -> std::result::Result<(), CommError> {
        Communicator::sum(self, values)
    }
}

/// A device and the part of a lattice that it holds. Cheap to clone.
#[derive(Clone)]
pub struct Domain<B> {
    backend: B,
    shape: Arc<Shape>,
}

struct Shape {
    global: Lattice,
    local: Lattice,
    grid: ProcessGrid,
    world: Box<dyn GlobalSum>,
}

impl<B: Backend> Domain<B> {
    /// The whole lattice on one device.
    pub fn single(backend: B, lattice: Lattice) -> Result<Self> {
        Self::new(backend, lattice, ProcessGrid::new([1; 4])?, Solo::new())
    }
    /// The part of `global` that falls to this process of `grid`.
    pub fn new(backend: B, global: Lattice, grid: ProcessGrid, world: impl GlobalSum + 'static) -> Result<Self> {
        let local = Lattice::new(grid.local_extents(global.size()))?;
        Ok(Domain { backend, shape: Arc::new(Shape { global, local, grid, world: Box::new(world) }) })
    }
    /// The device.
    pub fn backend(&self) -> &B {
        &self.backend
    }
    /// The lattice of all processes together.
    pub fn global(&self) -> Lattice {
        self.shape.global
    }
    /// This process's part.
    pub fn local(&self) -> Lattice {
        self.shape.local
    }
    /// How the lattice is cut.
    pub fn grid(&self) -> &ProcessGrid {
        &self.shape.grid
    }
    /// Local sites of one parity.
    pub fn sites(&self) -> u32 {
        self.local().half_volume() as u32
    }
    /// The local lattice as kernels see it.
    pub fn geometry(&self) -> Geometry {
        Geometry::new(self.local().size().map(|e| e as u32))
    }
    /// Waits for the reductions launched so far and sums them over all processes.
    pub fn sums(&self, out: &mut [f64]) -> Result {
        self.backend.sums(out)?;
        self.shape.world.sum(out)?;
        Ok(())
    }
}
