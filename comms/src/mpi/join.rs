//! The processes of a communicator that another library of this process has made, such as mpi4py.

use super::comm::Comm;
use super::{Mpi, MpiJob, library, loneliness};
use crate::communicator::CommError;
use crate::launch::launch;
use mpi::ffi;
use std::sync::Arc;

impl Mpi {
    /// *Collective over the communicator.* Joins the processes of a communicator that somebody else has made, for calls from this
    /// thread. Whoever initialised MPI finalises it; before that, [`leave`](Mpi::leave) is to be called on this thread. Our
    /// duplicates of the communicator are not freed.
    ///
    /// # Errors
    /// MPI that is not initialised, or finalised, or has less than `MPI_THREAD_SERIALIZED`, since this thread need not be the
    /// one that initialised it; a thread that has MPI already; processes that were started together and do not find each other;
    /// those of the library.
    ///
    /// # Safety
    /// `communicator` points to an `MPI_Comm` that is alive, of the MPI library with which this program is linked. While this
    /// thread works with it, no other thread of the process calls MPI, unless the library gives `MPI_THREAD_MULTIPLE`; nor does
    /// one finalise it then.
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

    /// The end of what [`join`](Mpi::join) began: from here on calls of this thread, and messages that are dropped, only give
    /// errors. It does nothing on the thread of [`run`](Mpi::run), which ends MPI itself.
    pub fn leave(self) {
        library::leave();
    }
}
