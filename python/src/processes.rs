//! The processes among which a device's lattices are cut: one, or those of a communicator of mpi4py.
#![cfg_attr(feature = "mpi", allow(unsafe_code))]
use crate::failure::{Failure, Outcome};
use ferrite::comms::{CommError, ProcessGrid, Solo};
use ferrite::lattice::{Lattice, Section};
use ferrite::network::Network;
use std::sync::Arc;

/// How lattices are cut, and which part is this process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Processes in x, y, z, t.
    pub grid: ProcessGrid,
    /// This process.
    pub rank: usize,
}

impl Cut {
    /// Of one process.
    pub const NONE: Cut = Cut { grid: ProcessGrid::SINGLE, rank: 0 };

    /// Whether there are other processes.
    pub fn is_shared(&self) -> bool {
        self.grid.size() > 1
    }
    /// This process's part of a lattice.
    pub fn section(&self, global: Lattice) -> Outcome<Section> {
        if !self.is_shared() {
            return Ok(global.into());
        }
        self.grid.check(global.size(), 0).map_err(|why| Failure::input(why.to_string()))?;
        let local = Lattice::of_any_extents(self.grid.local_extents(global.size()))?;
        Ok(Section { global, origin: self.grid.origin(self.rank, global.size()), local })
    }
    /// The part that a field on these sites is.
    pub fn part(&self, local: Lattice) -> Outcome<Section> {
        let (extents, parts) = (local.size(), self.grid.dims());
        self.section(Lattice::of_any_extents(std::array::from_fn(|mu| extents[mu] * parts[mu]))?)
    }
}

/// The processes, as a device's thread has them.
pub struct Processes {
    /// Messages and sums.
    pub network: Arc<dyn Network>,
    /// How lattices are cut.
    pub cut: Cut,
    /// What was joined.
    #[cfg(feature = "mpi")]
    job: Option<ferrite::comms::Mpi>,
}

impl Processes {
    /// This process alone.
    pub fn alone() -> Self {
        Processes {
            network: Arc::new(Solo::new()),
            cut: Cut::NONE,
            #[cfg(feature = "mpi")]
            job: None,
        }
    }
    /// *Collective.* Those of the communicator at an address, for work on this thread with devices of one kind. Without a grid lattices
    /// are cut in t.
    #[cfg(feature = "mpi")]
    pub fn join(address: usize, grid: Option<[usize; 4]>, kind: &str) -> Outcome<Self> {
        // SAFETY: Python gives the address that mpi4py has for a communicator, and waits. That nothing else calls MPI while a device
        // works, where it was initialised with less than MPI_THREAD_MULTIPLE, is what the package's documentation asks for; mpi4py
        // initialises it so. `leave` comes before mpi4py's end.
        let job = unsafe { ferrite::comms::Mpi::join(std::ptr::with_exposed_provenance(address)) };
        let job = job.map_err(|why| Failure::other(format!("the communicator cannot be joined: {why}")))?;
        let network: Arc<dyn Network> = Arc::new(job.clone());
        let dims = grid.unwrap_or([1, 1, 1, network.size()]);
        let all = network.texts(&format!("{dims:?} and {kind}")).map_err(failed)?;
        if let Some(other) = all.iter().position(|said| *said != all[0]) {
            let (first, other) = (&all[0], format!("{} of rank {other}", all[other]));
            return Err(Failure::input(format!(
                "processes have different grids or devices: {first} of rank 0, {other}"
            )));
        }
        let grid = ProcessGrid::new(dims).map_err(|why| Failure::input(why.to_string()))?;
        if grid.size() != network.size() {
            let (size, [x, y, z, t]) = (network.size(), dims);
            return Err(Failure::input(format!("grid = ({x}, {y}, {z}, {t}) has not the {size} processes of comm")));
        }
        let cut = Cut { grid, rank: network.rank() };
        Ok(Processes { network, cut, job: Some(job) })
    }
    /// Without MPI there are none.
    #[cfg(not(feature = "mpi"))]
    pub fn join(_: usize, _: Option<[usize; 4]>, _: &str) -> Outcome<Self> {
        Err(Failure::input(
            "this build knows no MPI: make a wheel with `cargo xtask wheel --mpi` where the MPI library is, and install that",
        ))
    }
    /// From now on nothing is sent any more.
    pub fn leave(&mut self) {
        *self = Processes {
            #[cfg(feature = "mpi")]
            job: match self.job.take() {
                Some(job) => {
                    job.leave();
                    None
                }
                None => None,
            },
            ..Processes::alone()
        };
    }
    /// *Collective.* The outcome of this process, or the failure of the first that has one.
    pub fn agree<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        if !self.cut.is_shared() {
            return outcome;
        }
        let mine = outcome.as_ref().err().map_or("", |failure| &failure.message);
        let all = self.network.texts(mine).map_err(failed)?;
        match (all.iter().position(|said| !said.is_empty()), outcome) {
            (None, outcome) => outcome,
            (Some(rank), Err(own)) if rank == self.cut.rank => Err(own),
            (Some(rank), _) => Err(Failure::other(format!("rank {rank}: {}", all[rank]))),
        }
    }
    /// *Collective.* The least of what all have.
    pub fn least(&self, number: u64) -> Outcome<u64> {
        let all = self.network.all_gather(&number.to_le_bytes()).map_err(failed)?;
        let numbers = all.iter().filter_map(|bytes| bytes.as_slice().try_into().ok().map(u64::from_le_bytes));
        Ok(numbers.min().unwrap_or(number))
    }
    /// *Collective.* The largest of what all have.
    pub fn largest(&self, number: f64) -> Outcome<f64> {
        let all = self.network.all_gather(&number.to_le_bytes()).map_err(failed)?;
        let numbers = all.iter().filter_map(|bytes| bytes.as_slice().try_into().ok().map(f64::from_le_bytes));
        // NaN is what nobody wants to miss.
        Ok(numbers.fold(number, |most, one| if one > most || one.is_nan() { one } else { most }))
    }
}

/// What a message ended with.
pub fn failed(error: CommError) -> Failure {
    Failure::other(error)
}
