//! Processes of a communicator that was created by another library of this process, such as mpi4py.

use super::comm::Comm;
use super::{Mpi, MpiJob, library, loneliness};
use crate::communicator::CommError;
use crate::launch::launch;
use mpi::ffi;
use std::sync::Arc;

/// Communicator of another library of this process.
#[derive(Clone, Copy, Debug)]
pub struct ForeignCommunicator(ffi::MPI_Comm);

impl ForeignCommunicator {
    /// Reads the communicator at an address.
    ///
    /// # Safety
    /// The address is that of an `MPI_Comm` of the MPI library with which this program is linked.
    pub unsafe fn at(address: *const std::ffi::c_void) -> Self {
        // SAFETY: the caller's promise.
        ForeignCommunicator(unsafe { *address.cast::<ffi::MPI_Comm>() })
    }
    /// Returns the communicator of all processes.
    pub fn world() -> Self {
        // SAFETY: a constant.
        ForeignCommunicator(unsafe { ffi::RSMPI_COMM_WORLD })
    }
}

impl Mpi {
    /// Whether MPI has been initialised in this process.
    pub fn is_initialised() -> bool {
        let mut begun = 0;
        // SAFETY: may be called at any time.
        unsafe { ffi::MPI_Initialized(&mut begun) == ffi::MPI_SUCCESS as i32 && begun != 0 }
    }
    /// *Collective over the communicator.* Joins the processes of a communicator created elsewhere, for calls from this
    /// thread. The code that initialised MPI also finalises it; call [`leave`](Mpi::leave) on this thread before that.
    /// The duplicates of the communicator are not freed.
    ///
    /// # Errors
    /// Fails if MPI is not initialised, is finalised, or has less than `MPI_THREAD_SERIALIZED` and was initialised by another
    /// thread; if this thread uses MPI already; if processes that were started together cannot find
    /// each other; or if the library fails.
    ///
    /// # Safety
    /// The communicator is live. While this thread works with it, no other thread of the process calls MPI, unless the
    /// library provides `MPI_THREAD_MULTIPLE`; nor does another thread finalise MPI during that time.
    pub unsafe fn join(communicator: ForeignCommunicator) -> Result<Self, CommError> {
        // SAFETY: the caller's promise.
        unsafe { Self::join_in_order(communicator, |rank, _| rank) }
    }
    /// *Collective over the communicator.* Joins processes like [`join`](Self::join), in another order: `order` returns the
    /// new rank of this process for its rank in the communicator and the number of processes.
    ///
    /// # Errors
    /// As for [`join`](Self::join).
    ///
    /// # Safety
    /// As for [`join`](Self::join).
    pub unsafe fn join_in_order(
        ForeignCommunicator(communicator): ForeignCommunicator,
        order: impl FnOnce(usize, usize) -> usize,
    ) -> Result<Self, CommError> {
        let thread_level = library::join()?;
        if let Some(error) = loneliness(library::world_size()?, launch()) {
            library::leave();
            return Err(error);
        }
        // SAFETY: the caller's promise.
        let comm = unsafe { Comm::reordered_foreign(communicator, order)? };
        Ok(Mpi { job: Arc::new(MpiJob::new(comm, thread_level)?), largest: library::LARGEST_COUNT })
    }

    /// Ends the use of MPI that [`join`](Mpi::join) began. Later calls from this thread return errors, and transfers
    /// that are dropped later do not call MPI. On the thread of [`run`](Mpi::run), which ends MPI itself, this function
    /// does nothing.
    pub fn leave(self) {
        library::leave();
    }
}
