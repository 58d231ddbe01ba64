//! Processes: their number, the partitioning of the lattice among them, and their communication.
//!
//! * [`ProcessGrid`] partitions a four-dimensional periodic lattice into equal boxes, one per process.
//! * [`Communicator`] is the interface of a process to the others. [`Solo`] is a single process, whose messages go to
//!   itself. The ranks of [`Threads`] are threads, for tests. The ranks of `Mpi`, with the feature `mpi`, are the
//!   processes that `mpirun` or `srun` started; [`launched_by_mpi`] returns whether one of them started this process.
//! * [`agree`] gives all ranks the same error if one of them fails.
//!
//! `docs/comms.md` explains the order of sums, which calls are collective, and how runs end.
//!
//! ```
//! use comms::{Communicator, Direction, ProcessGrid, Solo, Transfer};
//!
//! let grid = ProcessGrid::best(8, [16, 16, 16, 32], 1)?;
//! assert_eq!(grid.dims(), [1, 1, 2, 4]);
//! assert_eq!(grid.local_extents([16, 16, 16, 32]), [16, 16, 8, 8]);
//! assert_eq!(grid.neighbour(0, 3, Direction::Backward), 6);
//!
//! let world = Solo::new();
//! let receive = world.receive(0, 7, vec![0u8; 3])?;
//! let send = world.send(0, 7, vec![1u8, 2, 3])?;
//! assert_eq!(receive.into_buffer()?, [1, 2, 3]);
//! send.into_buffer()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]
#![deny(unsafe_code)]

mod agree;
mod communicator;
mod grid;
mod launch;
mod mailbox;
#[cfg(feature = "mpi")]
mod mpi;
mod ordered;
mod solo;
mod threads;

pub use agree::{Disagreement, agree};
pub use communicator::{Buffer, CommError, Communicator, Tag, Transfer};
pub use grid::{Direction, GridError, Misfit, ProcessGrid};
pub use launch::{Launch, launch, launched_by_mpi};
#[cfg(feature = "mpi")]
pub use mpi::{DeviceChannels, DeviceTransfer, ForeignCommunicator, Mpi, MpiDeviceTransfer, MpiTransfer};
pub use solo::{Solo, SoloTransfer};
pub use threads::{Cause, RankFailure, ThreadTransfer, Threads};

/// Returns the message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_string()
}
