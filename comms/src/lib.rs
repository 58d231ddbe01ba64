//! Processes: how many there are, how the lattice is cut among them, and how they talk.
//!
//! * [`ProcessGrid`] cuts a four-dimensional periodic lattice into equal boxes, one per process.
//! * [`Communicator`] is what a process needs to talk to the others. [`Solo`] is the world of one process, in which
//!   everything works and messages go to oneself.
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

#![forbid(unsafe_code)]

mod communicator;
mod grid;
mod solo;

pub use communicator::{Buffer, CommError, Communicator, Tag, Transfer};
pub use grid::{Direction, GridError, Misfit, ProcessGrid};
pub use solo::{Solo, SoloTransfer};
