//! Processes that partition lattices: the grid of an application, and its communicator.
use crate::functions::QudaCommsMap;
use ferrite::comms::ProcessGrid;
use ferrite_tasks::communicator::RunCommunicator;
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Grid of an application: its extents, and the rank at each place.
#[derive(Clone, Debug)]
pub struct ApplicationGrid {
    grid: ProcessGrid,
    /// Ranks in the application's communicator, in the order of the ranks of the grid.
    ranks: Vec<usize>,
}

impl ApplicationGrid {
    /// Asks an application for the ranks of all places. Without a function, t varies fastest.
    ///
    /// # Errors
    /// Grids that are empty, and ranks that are there twice or missing.
    ///
    /// # Safety
    /// `map` may be called with the coordinates of all places and `data`.
    pub unsafe fn new(dims: [usize; 4], map: QudaCommsMap, data: *mut c_void) -> Outcome<Self> {
        let grid = ProcessGrid::new(dims).map_err(Failure::refused)?;
        let rank = |place: usize| {
            let at = grid.coordinates(place);
            match map {
                // SAFETY: the caller's promise.
                Some(map) => unsafe { map(at.map(|x| x as i32).as_ptr(), data) },
                None => at.iter().zip(dims).fold(0, |rank, (x, n)| rank * n as i32 + *x as i32),
            }
        };
        let ranks: Vec<i32> = (0..grid.size()).map(rank).collect();
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        if sorted.iter().enumerate().any(|(n, rank)| *rank != n as i32) {
            return Err(Failure::refused(format!(
                "func: the ranks {ranks:?} of the places in the grid are not those of {} processes",
                grid.size()
            )));
        }
        Ok(ApplicationGrid { grid, ranks: ranks.into_iter().map(|rank| rank as usize).collect() })
    }
    /// Returns the extents of the grid.
    pub fn dims(&self) -> [usize; 4] {
        self.grid.dims()
    }
    /// Returns the number of processes.
    pub fn size(&self) -> usize {
        self.grid.size()
    }
    /// Returns the rank in the grid of a process of the application.
    #[cfg(feature = "mpi")]
    fn place_of(&self, rank: usize) -> usize {
        self.ranks.iter().position(|known| *known == rank).unwrap_or(rank)
    }
}

#[cfg(feature = "mpi")]
mod with_mpi {
    use super::{ApplicationGrid, Failure, Outcome, RunCommunicator, c_void};
    use ferrite::comms::{Communicator, ForeignCommunicator, Mpi};
    use std::cell::{Cell, RefCell};

    thread_local! {
        static GIVEN: Cell<Option<ForeignCommunicator>> = const { Cell::new(None) };
        static JOINED: RefCell<Option<Mpi>> = const { RefCell::new(None) };
    }

    /// Keeps the communicator of an application.
    ///
    /// # Safety
    /// `address` is that of an `MPI_Comm`.
    pub unsafe fn give(address: *mut c_void) {
        // SAFETY: the caller's promise.
        GIVEN.set(Some(unsafe { ForeignCommunicator::at(address) }));
    }
    /// *Collective.* Joins the processes of the application, in the order of its grid.
    pub fn join(grid: &ApplicationGrid) -> Outcome<Option<RunCommunicator>> {
        if grid.size() == 1 {
            return Ok(None);
        }
        if !Mpi::is_initialised() {
            let why = "MPI is not initialised: call MPI_Init before initQuda, or set a grid of one process";
            return Err(Failure::refused(why));
        }
        let mut found = None;
        // SAFETY: the application has initialised MPI with this communicator, and does not use it during calls.
        let joined = unsafe {
            Mpi::join_in_order(GIVEN.get().unwrap_or_else(ForeignCommunicator::world), |rank, size| {
                found = Some(size);
                grid.place_of(rank)
            })
        };
        let joined = joined.map_err(|why| Failure::failed(format!("the processes cannot be joined: {why}")))?;
        if let Some(size) = found.filter(|size| *size != grid.size()) {
            let all = grid.size();
            return Err(Failure::refused(format!(
                "the grid has {all} places, but the communicator has {size} processes"
            )));
        }
        JOINED.set(Some(joined.clone()));
        Ok(Some(RunCommunicator::of(joined)))
    }
    /// Returns the rank of this process; 0 if it works alone.
    pub fn rank() -> usize {
        JOINED.with_borrow(|joined| joined.as_ref().map_or(0, Communicator::rank))
    }
    /// Ends the use of MPI by this library.
    pub fn leave() {
        if let Some(joined) = JOINED.take() {
            joined.leave();
        }
    }
    /// Ends all processes with a sentence, if there are several.
    pub fn abort(sentence: &str) {
        if let Some(joined) = JOINED.take() {
            joined.abort(1, sentence);
        }
    }
}

#[cfg(not(feature = "mpi"))]
mod with_mpi {
    use super::{ApplicationGrid, Failure, Outcome, RunCommunicator, c_void};

    /// Does nothing, because this build does not include MPI.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn give(_: *mut c_void) {}
    /// Fails for several processes, because this build does not include MPI.
    pub fn join(grid: &ApplicationGrid) -> Outcome<Option<RunCommunicator>> {
        match grid.size() {
            1 => Ok(None),
            size => Err(Failure::refused(format!(
                "the grid has {size} processes, but this build does not include MPI: make the library with `cargo xtask \
                 capi --mpi`"
            ))),
        }
    }
    /// Returns 0, the rank of a process that works alone.
    pub fn rank() -> usize {
        0
    }
    /// Does nothing.
    pub fn leave() {}
    /// Does nothing.
    pub fn abort(_: &str) {}
}
pub use with_mpi::{abort, give, join, leave, rank};

/// Keeps the communicator of an application for [`join`]. Applications that were built without MPI give a null pointer.
///
/// # Safety
/// `address` is null or that of an `MPI_Comm`.
pub unsafe fn set_communicator(address: *mut c_void) -> Outcome {
    if !address.is_null() {
        // SAFETY: the caller's promise.
        unsafe { give(address) };
    }
    Ok(())
}
