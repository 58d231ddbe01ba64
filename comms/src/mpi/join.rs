//! Processes of a communicator that was created by another library of this process, such as mpi4py.

use super::comm::Comm;
use super::{Mpi, MpiJob, library, loneliness};
use crate::communicator::CommError;
use crate::launch::launch;
use mpi::ffi;
use std::sync::Arc;

impl Mpi {
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
    /// `communicator` points to a live `MPI_Comm` of the MPI library with which this program is linked. While this
    /// thread works with it, no other thread of the process calls MPI, unless the library provides
    /// `MPI_THREAD_MULTIPLE`; nor does another thread finalise MPI during that time.
    pub unsafe fn join(communicator: *const std::ffi::c_void) -> Result<Self, CommError> {
        let thread_level = library::join()?;
        if let Some(error) = loneliness(library::world_size()?, launch()) {
            library::leave();
            return Err(error);
        }
        // SAFETY: the caller's promise.
        let comm = unsafe { Comm::duplicate_foreign(*communicator.cast::<ffi::MPI_Comm>())? };
        Ok(Mpi { job: Arc::new(MpiJob::new(comm, thread_level)?), largest: library::LARGEST_COUNT })
    }

    /// Ends the use of MPI that [`join`](Mpi::join) began. Later calls from this thread return errors, and transfers
    /// that are dropped later do not call MPI. On the thread of [`run`](Mpi::run), which ends MPI itself, this function
    /// does nothing.
    pub fn leave(self) {
        library::leave();
    }
}
