//! Persistent requests: messages that are started repeatedly, on memory that is owned elsewhere.

use super::library::{Bytes, address_of, check, usable};
use crate::communicator::{CommError, Tag};
use mpi::ffi;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// End of a message: sender or receiver.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// Sends to rank `to`.
    Sends { to: usize },
    /// Receives from rank `from`.
    Receives { from: usize },
}

/// Request of `MPI_Send_init` or `MPI_Recv_init`. Dropping it does nothing: see [`free`](Self::free).
#[derive(Debug)]
pub(super) struct MpiRequest {
    handle: ffi::MPI_Request,
    layout: Bytes,
    address: *mut u8,
    length: usize,
    comm: ffi::MPI_Comm,
    /// Rank of this process, for errors.
    rank: usize,
    side: Side,
    tag: Tag,
    active: bool,
}

// SAFETY: handles are used only where `usable` succeeds, on one thread, and the memory behind `address` only by MPI.
unsafe impl Send for MpiRequest {}
// SAFETY: as above; shared references only read plain numbers.
unsafe impl Sync for MpiRequest {}

impl MpiRequest {
    /// Prepares a message of `length` bytes at `address`. MPI accesses the memory only between the start and the end of
    /// the message.
    ///
    /// # Safety
    /// MPI may use the memory, for reading if this side sends and for writing if it receives, from each
    /// [`start`](Self::start) to the end of that message. `comm` lives as long, `rank` is the rank of this process in
    /// it, and `side` names a rank of it.
    pub(super) unsafe fn new(
        (comm, rank): (ffi::MPI_Comm, usize),
        side: Side,
        tag: Tag,
        address: *mut u8,
        length: usize,
        largest: usize,
    ) -> Result<Self, CommError> {
        usable(rank)?;
        let layout = Bytes::new(length, largest)?;
        // SAFETY: a constant.
        let handle = unsafe { ffi::RSMPI_REQUEST_NULL };
        let mut new = Self { handle, layout, address, length, comm, rank, side, tag, active: false };
        match new.initialise() {
            Ok(()) => Ok(new),
            Err(error) => {
                new.free();
                Err(error)
            }
        }
    }

    /// Creates the request in the library.
    fn initialise(&mut self) -> Result<(), CommError> {
        let Bytes { count, datatype, .. } = self.layout;
        let (bytes, tag) = (address_of(self.address, self.length), c_int::from(self.tag));
        // SAFETY: usable, checked by the callers; a live communicator with this rank. Memory as `new` requires; it is
        // not accessed yet.
        unsafe {
            match self.side {
                Side::Sends { to } => {
                    let to = to as c_int;
                    let code = ffi::MPI_Send_init(bytes, count, datatype, to, tag, self.comm, &mut self.handle);
                    check("MPI_Send_init", code)
                }
                Side::Receives { from } => {
                    let from = from as c_int;
                    let code = ffi::MPI_Recv_init(bytes, count, datatype, from, tag, self.comm, &mut self.handle);
                    check("MPI_Recv_init", code)
                }
            }
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    pub(super) fn tag(&self) -> Tag {
        self.tag
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Returns whether the request was made for `length` bytes at `address`.
    pub(super) fn is_for(&self, address: *mut u8, length: usize) -> bool {
        (self.address, self.length) == (address, length)
    }

    pub(super) fn start(&mut self) -> Result<(), CommError> {
        if self.active {
            return Err(CommError::UnderWay { tag: self.tag });
        }
        usable(self.rank)?;
        // Open MPI frees even a persistent request when its message ends with an error, so the request is created
        // again.
        // SAFETY: a constant.
        if self.handle == unsafe { ffi::RSMPI_REQUEST_NULL } {
            self.initialise()?;
        }
        // SAFETY: usable; an inactive request; memory as `new` requires.
        check("MPI_Start", unsafe { ffi::MPI_Start(&mut self.handle) })?;
        self.active = true;
        Ok(())
    }

    /// Returns whether the message has completed. Calls MPI once, or not at all when idle.
    pub(super) fn test(&mut self) -> Result<bool, CommError> {
        if !self.active {
            return Ok(true);
        }
        usable(self.rank)?;
        let mut done = 0;
        // SAFETY: usable; an active request; MPI has a pointer that stands for no status.
        let code = unsafe { ffi::MPI_Test(&mut self.handle, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        if code == ffi::MPI_SUCCESS as c_int && done == 0 {
            return Ok(false);
        }
        self.active = false;
        check("MPI_Test", code).map(|()| true)
    }

    pub(super) fn wait(&mut self) -> Result<(), CommError> {
        if !self.active {
            return Ok(());
        }
        usable(self.rank)?;
        // SAFETY: usable; an active request; MPI has a pointer that stands for no status.
        let code = unsafe { ffi::MPI_Wait(&mut self.handle, ffi::RSMPI_STATUS_IGNORE) };
        self.active = false;
        check("MPI_Wait", code)
    }

    pub(super) fn usable(&self) -> Result<(), CommError> {
        usable(self.rank)
    }

    /// Returns the length of the next message for this request, if one is announced.
    pub(super) fn announced(&self, from: usize) -> Result<Option<usize>, CommError> {
        usable(self.rank)?;
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        let mut there = 0;
        // SAFETY: usable; a live communicator with this rank; out-pointers to what MPI writes.
        check("MPI_Iprobe", unsafe {
            ffi::MPI_Iprobe(from as c_int, c_int::from(self.tag), self.comm, &mut there, status.as_mut_ptr())
        })?;
        if there == 0 {
            return Ok(None);
        }
        // SAFETY: written by MPI, and zeros before, which a struct of integers may hold.
        Bytes::of(unsafe { status.assume_init_ref() }).map(Some)
    }

    /// Receives the next message, of `length` bytes, and discards it.
    pub(super) fn discard(&self, from: usize, length: usize, largest: usize) -> Result<(), CommError> {
        usable(self.rank)?;
        let mut layout = Bytes::new(length, largest)?;
        let mut sink = vec![0u8; length];
        let (from, tag) = (from as c_int, c_int::from(self.tag));
        // SAFETY: usable; the type covers `sink`.
        let code = unsafe {
            let to = address_of(sink.as_mut_ptr(), length);
            ffi::MPI_Recv(to, layout.count, layout.datatype, from, tag, self.comm, ffi::RSMPI_STATUS_IGNORE)
        };
        layout.free();
        check("MPI_Recv", code)
    }

    /// Frees the request if it is idle and MPI is still usable; otherwise does nothing.
    pub(super) fn free(&mut self) {
        if self.active || usable(self.rank).is_err() {
            return;
        }
        self.layout.free();
        // SAFETY: a constant.
        if self.handle != unsafe { ffi::RSMPI_REQUEST_NULL } {
            // SAFETY: usable; an inactive request. MPI sets the handle to null.
            unsafe { ffi::MPI_Request_free(&mut self.handle) };
        }
    }
}
