//! Adaptive multigrid for Wilson-like operators: aggregates of sites, near-null vectors on them, coarse operators, and the
//! cycle as a preconditioner (Babich et al. 2010, arXiv 1005.3043; Frommer et al. 2014, arXiv 1303.1377; Clark et al. 2016,
//! arXiv 1612.07873). The algebra of cycles is in the crate `solvers`.
mod adjoint;
mod check;
mod coarse;
mod cycle;
mod level;
mod near_null_vectors;
mod null_space;
mod params;
mod setup;
mod transfer;

pub(crate) use adjoint::AdjointCycle;
pub use check::LevelCheck;
pub use coarse::{CoarseOperator, CoarseSchur};
pub use cycle::{Coarsening, CycleResult, Finest, with_cycle};
pub(crate) use cycle::{OUTER_DELTA, OUTER_DIRECTIONS};
pub use level::LevelLattice;
pub use near_null_vectors::NearNullVectors;
pub use null_space::NullSpace;
pub use params::{CycleParams, MOST_COARSENINGS, MOST_VECTORS, MultigridError, MultigridParams};
pub(crate) use setup::MultigridBytes;
pub use setup::{MakeOperator, Multigrid};
pub use transfer::{EvenTransfer, FineDiagonal};
