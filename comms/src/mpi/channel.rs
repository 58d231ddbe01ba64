//! Sending or receiving end of a message, on memory that is owned elsewhere.

use super::MpiJob;
use super::reception::{Expectations, MpiReception};
use super::request::{MpiRequest, Side};
use crate::communicator::{CommError, Tag};
use std::sync::Arc;

/// Message to or from another rank that can be started repeatedly.
#[derive(Debug)]
pub(super) enum Channel {
    Sends(MpiRequest, Arc<Expectations>),
    Receives(MpiReception),
}

impl Channel {
    /// Creates a channel for a message of `length` bytes at `address`.
    ///
    /// # Safety
    /// MPI may use the memory, for reading if this side sends and for writing if it receives, from each
    /// [`start`](Self::start) to the end of that message. `side` names a rank of the job.
    pub(super) unsafe fn new(
        job: &MpiJob,
        side: Side,
        tag: Tag,
        address: *mut u8,
        length: usize,
        largest: usize,
    ) -> Result<Self, CommError> {
        let comm = (job.comm.handle, job.comm.rank());
        // SAFETY: as the caller promises.
        let request = unsafe { MpiRequest::new(comm, side, tag, address, length, largest) }?;
        let expectations = Arc::clone(job.comm.expectations());
        Ok(match side {
            Side::Sends { .. } => Self::Sends(request, expectations),
            Side::Receives { .. } => Self::Receives(MpiReception::new(request, expectations, largest)),
        })
    }

    pub(super) fn tag(&self) -> Tag {
        match self {
            Self::Sends(request, _) => request.tag(),
            Self::Receives(reception) => reception.tag(),
        }
    }

    /// Returns an error while the message is under way.
    pub(super) fn idle(&self) -> Result<(), CommError> {
        let under_way = match self {
            Self::Sends(request, _) => request.is_active(),
            Self::Receives(reception) => reception.is_under_way(),
        };
        if under_way { Err(CommError::UnderWay { tag: self.tag() }) } else { Ok(()) }
    }

    /// Returns whether the channel was made for `length` bytes at `address`.
    pub(super) fn is_for(&self, address: *mut u8, length: usize) -> bool {
        match self {
            Self::Sends(request, _) => request.is_for(address, length),
            Self::Receives(reception) => reception.is_for(address, length),
        }
    }

    pub(super) fn start(&mut self) -> Result<(), CommError> {
        match self {
            Self::Sends(request, _) => request.start(),
            Self::Receives(reception) => reception.start(),
        }
    }

    pub(super) fn test(&mut self) -> Result<bool, CommError> {
        match self {
            Self::Sends(request, _) => request.test(),
            Self::Receives(reception) => reception.test(),
        }
    }

    pub(super) fn wait(&mut self) -> Result<(), CommError> {
        match self {
            Self::Sends(request, expectations) => {
                while !expectations.is_empty() && !request.test()? {
                    expectations.advance_all();
                }
                request.wait()
            }
            Self::Receives(reception) => reception.wait(),
        }
    }

    /// Frees an idle channel. Does nothing while MPI still uses the channel.
    pub(super) fn free(&mut self) {
        match self {
            Self::Sends(request, _) => request.free(),
            Self::Receives(reception) => reception.free(),
        }
    }
}
