//! Choice of the rank that prints when several ranks of one host abort at the same time.

use super::comm::Comm;
use super::library::{check, usable};
use crate::communicator::CommError;
use mpi::ffi;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

const SILENT: u32 = 0;
const SPOKEN: u32 = 1;

/// Number in the shared memory of a host: whether a rank has claimed the right to print. (Messages cannot replace it,
/// because there may be no rank left to answer them.)
#[derive(Debug)]
pub(super) struct Speaker {
    window: ffi::MPI_Win,
    word: *const AtomicU32,
}

// SAFETY: the window is used where `usable` succeeds; the word is atomic, and mapped until `free`.
unsafe impl Send for Speaker {}
// SAFETY: as above.
unsafe impl Sync for Speaker {}

impl Speaker {
    /// *Collective over the ranks of a host.* Creates the shared number.
    pub(super) fn new(node: &Comm) -> Result<Self, CommError> {
        usable(node.rank())?;
        let own = if node.rank() == 0 { size_of::<AtomicU32>() } else { 0 };
        let mut base: *mut c_void = ptr::null_mut();
        let (mut size, mut unit): (ffi::MPI_Aint, c_int) = (0, 0);
        // SAFETY: usable; a live communicator of ranks that share memory; out-pointers to what MPI writes. The segment
        // of rank 0 is not empty, and MPI aligns it for any type.
        unsafe {
            let (mut window, no_hints) = (ffi::RSMPI_WIN_NULL, ffi::RSMPI_INFO_NULL);
            let base: *mut *mut c_void = &mut base;
            let code =
                ffi::MPI_Win_allocate_shared(own as ffi::MPI_Aint, 1, no_hints, node.handle, base.cast(), &mut window);
            check("MPI_Win_allocate_shared", code)?;
            let code = ffi::MPI_Win_shared_query(window, 0, &mut size, &mut unit, base.cast());
            check("MPI_Win_shared_query", code)?;
            let word = (*base).cast::<AtomicU32>().cast_const();
            if node.rank() == 0 {
                (*word).store(SILENT, Ordering::SeqCst);
            }
            node.barrier()?;
            Ok(Self { window, word })
        }
    }

    /// Returns true for the first rank of the host that calls this function, and for any thread that may not call MPI.
    pub(super) fn claim(&self) -> bool {
        if usable(0).is_err() {
            // The calling thread may not call MPI, or MPI has ended and has freed the memory.
            return true;
        }
        // SAFETY: mapped and aligned, see `new`; all ranks use it as an atomic number only.
        let word = unsafe { &*self.word };
        word.compare_exchange(SILENT, SPOKEN, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// *Collective.* Frees the shared memory. Called once, just before the end of MPI.
    pub(super) fn free(&self) -> Result<(), CommError> {
        usable(0)?;
        let mut window = self.window;
        // SAFETY: usable; the end of MPI follows, after which `claim` does not touch the memory.
        check("MPI_Win_free", unsafe { ffi::MPI_Win_free(&mut window) })
    }
}
