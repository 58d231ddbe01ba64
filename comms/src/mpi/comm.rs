//! Communicators of the library, with their collective calls as safe functions.

use super::library::{Bytes, LARGEST_COUNT, address_of, check, usable};
use super::reception::Expectations;
use crate::communicator::CommError;
use mpi::ffi;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

/// Tag of messages inside collective calls.
const TAG: c_int = 0;

/// Number types that consist of plain bytes.
///
/// # Safety
/// Every bit pattern is a valid value, and values have no padding.
pub(super) unsafe trait Number: Copy + Default + 'static {}
// SAFETY: true of these three.
unsafe impl Number for f64 {}
// SAFETY: as above.
unsafe impl Number for u64 {}
// SAFETY: as above.
unsafe impl Number for u8 {}

fn bytes_of<T: Number>(numbers: &[T]) -> &[u8] {
    // SAFETY: guaranteed by `Number`.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

fn bytes_of_mut<T: Number>(numbers: &mut [T]) -> &mut [u8] {
    // SAFETY: guaranteed by `Number`.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}

/// Communicator whose collective calls also advance the job's receptions while they wait. The library's own collective
/// calls cannot do that. Non-blocking ones (`MPI_Ibarrier` and similar) could, but are not optimised for speed; Open
/// MPI's gather takes P − 1 messages per rank.
#[derive(Debug)]
pub(super) struct Comm {
    pub(super) handle: ffi::MPI_Comm,
    rank: usize,
    size: usize,
    expectations: Arc<Expectations>,
}

// SAFETY: the handle is a pointer of the library or a number; it is used only where `usable` succeeds, on one thread.
unsafe impl Send for Comm {}
// SAFETY: as above.
unsafe impl Sync for Comm {}

impl Comm {
    /// Returns a communicator of all ranks of the job.
    pub(super) fn duplicate_world() -> Result<Self, CommError> {
        // SAFETY: a constant, which is a live communicator while MPI is usable.
        unsafe { Self::duplicate_foreign(ffi::RSMPI_COMM_WORLD) }
    }

    /// Duplicates a communicator that was created by other code.
    ///
    /// # Safety
    /// `comm` is a live communicator of this library.
    pub(super) unsafe fn duplicate_foreign(comm: ffi::MPI_Comm) -> Result<Self, CommError> {
        let mut tag_limit: *mut c_int = ptr::null_mut();
        let mut found = 0;
        usable(0)?;
        // SAFETY: usable; for this attribute MPI writes a pointer to an int of its own.
        check("MPI_Comm_get_attr", unsafe {
            let out = (&raw mut tag_limit).cast();
            ffi::MPI_Comm_get_attr(ffi::RSMPI_COMM_WORLD, ffi::MPI_TAG_UB as c_int, out, &mut found)
        })?;
        // SAFETY: as above.
        if found != 0 && unsafe { *tag_limit } < c_int::from(u16::MAX) {
            let message = "the MPI library provides fewer than the 65536 message tags that Ferrite needs; use another \
                           MPI library"
                .to_string();
            return Err(CommError::Transport { operation: "MPI_Comm_get_attr", message });
        }
        Self::duplicate_of(comm, Arc::default())
    }

    /// Duplicates a communicator that was created by other code, with its ranks in the order that `order` gives for a rank
    /// and the number of ranks.
    ///
    /// # Safety
    /// As for [`duplicate_foreign`](Self::duplicate_foreign).
    pub(super) unsafe fn reordered_foreign(
        comm: ffi::MPI_Comm,
        order: impl FnOnce(usize, usize) -> usize,
    ) -> Result<Self, CommError> {
        // SAFETY: the caller's promise.
        let own = unsafe { Self::duplicate_foreign(comm)? };
        let mut handle = own.handle;
        let key = order(own.rank, own.size) as c_int;
        usable(own.rank)?;
        // SAFETY: usable; a live communicator. One colour: all ranks stay together.
        check("MPI_Comm_split", unsafe { ffi::MPI_Comm_split(own.handle, 0, key, &mut handle) })?;
        Self::from_handle(handle, Arc::clone(&own.expectations))
    }

    /// Duplicates this communicator: the ranks are the same, but messages of the two never match.
    pub(super) fn duplicate(&self) -> Result<Self, CommError> {
        Self::duplicate_of(self.handle, Arc::clone(&self.expectations))
    }

    fn duplicate_of(comm: ffi::MPI_Comm, expectations: Arc<Expectations>) -> Result<Self, CommError> {
        usable(0)?;
        let mut handle = comm;
        // SAFETY: usable; a live communicator.
        check("MPI_Comm_dup", unsafe { ffi::MPI_Comm_dup(comm, &mut handle) })?;
        Self::from_handle(handle, expectations)
    }

    /// Returns a communicator of the ranks that share memory with this one.
    pub(super) fn on_this_host(&self) -> Result<Self, CommError> {
        usable(self.rank)?;
        let mut handle = self.handle;
        // SAFETY: usable; a live communicator. Key 0: ranks keep their order.
        check("MPI_Comm_split_type", unsafe {
            let (shared, no_hints) = (ffi::RSMPI_COMM_TYPE_SHARED, ffi::RSMPI_INFO_NULL);
            ffi::MPI_Comm_split_type(self.handle, shared, 0, no_hints, &mut handle)
        })?;
        Self::from_handle(handle, Arc::clone(&self.expectations))
    }

    fn from_handle(handle: ffi::MPI_Comm, expectations: Arc<Expectations>) -> Result<Self, CommError> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: usable, checked by the callers; a live communicator; out-pointers to C ints.
        unsafe {
            check("MPI_Comm_set_errhandler", ffi::MPI_Comm_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN))?;
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(handle, &mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(handle, &mut size))?;
        }
        Ok(Self { handle, rank: rank as usize, size: size as usize, expectations })
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn expectations(&self) -> &Arc<Expectations> {
        &self.expectations
    }

    /// *Collective.* Frees the communicator. Called once, just before the end of MPI.
    pub(super) fn free(&self) -> Result<(), CommError> {
        usable(self.rank)?;
        let mut handle = self.handle;
        // SAFETY: usable; the handle is not used any more: `finalise` follows, and makes MPI unusable.
        check("MPI_Comm_free", unsafe { ffi::MPI_Comm_free(&mut handle) })
    }

    /// Sends to one rank and receives from another, or does one of the two, and waits. The lengths must be those that
    /// the other ranks expect.
    fn exchange(
        &self,
        send: Option<(usize, &[u8])>,
        receive: Option<(usize, &mut [u8])>,
        largest: usize,
    ) -> Result<(), CommError> {
        usable(self.rank)?;
        let mut arriving = match receive {
            Some((from, bytes)) => Some((Pending::receive(self, from, bytes, largest)?, from, bytes.len())),
            None => None,
        };
        let mut leaving = None;
        let mut result = Ok(());
        if let Some((to, bytes)) = send {
            match Pending::send(self, to, bytes, largest) {
                Ok(pending) => leaving = Some(pending),
                Err(error) => {
                    // This call must not return before the reception ends. Its message may never come, so the reception
                    // is cancelled.
                    if let Some((pending, ..)) = &mut arriving {
                        pending.cancel();
                    }
                    result = Err(error);
                }
            }
        }
        if let Some((pending, from, length)) = &mut arriving {
            let received = pending.wait(&self.expectations);
            result = result.and(received.and_then(|received| {
                if received == *length {
                    return Ok(());
                }
                let message = format!(
                    "rank {from} gives {received} B, but rank {} expects {length} B; all ranks must make the same calls \
                     with the same lengths",
                    self.rank
                );
                Err(CommError::Transport { operation: "a collective call", message })
            }));
        }
        match leaving {
            Some(mut pending) => result.and(pending.wait(&self.expectations).map(drop)),
            None => result,
        }
    }

    /// Sends a message to a rank that expects it, and waits until it completes.
    pub(super) fn send(&self, to: usize, bytes: &[u8], largest: usize) -> Result<(), CommError> {
        self.exchange(Some((to, bytes)), None, largest)
    }

    /// Receives a message of exactly the length of `bytes` from one rank, and waits until it completes.
    pub(super) fn receive(&self, from: usize, bytes: &mut [u8], largest: usize) -> Result<(), CommError> {
        self.exchange(None, Some((from, bytes)), largest)
    }

    /// Returns the rank `steps` after this one, cyclically.
    fn after(&self, steps: usize) -> usize {
        (self.rank + steps) % self.size
    }

    /// Returns the rank `steps` before this one, cyclically; `steps` is at most the number of ranks.
    fn before(&self, steps: usize) -> usize {
        (self.rank + self.size - steps) % self.size
    }

    /// Waits until all ranks have called this function, by gathering zero bytes from every rank in ⌈log₂ size⌉ steps.
    pub(super) fn barrier(&self) -> Result<(), CommError> {
        self.all_gather::<u8>(&[], &mut [])
    }

    /// Broadcasts along a binomial tree. The length must be equal on all ranks.
    pub(super) fn broadcast(&self, root: usize, bytes: &mut [u8], largest: usize) -> Result<(), CommError> {
        // Positions in the tree count from the root. The parent of a position is the position without its lowest set
        // bit.
        let place = (self.rank + self.size - root) % self.size;
        let rank_at = |place: usize| (place + root) % self.size;
        let lowest = if place == 0 { self.size.next_power_of_two() } else { place & place.wrapping_neg() };
        if place > 0 {
            self.receive(rank_at(place - lowest), bytes, largest)?;
        }
        let mut bit = lowest >> 1;
        while bit > 0 {
            if place + bit < self.size {
                self.send(rank_at(place + bit), bytes, largest)?;
            }
            bit >>= 1;
        }
        Ok(())
    }

    /// Gathers `mine` of every rank into `all` with Bruck's algorithm in ⌈log₂ size⌉ steps. In steps 0, 1, 2 … each
    /// rank gets all that the rank 1, 2, 4 … places further on has collected so far.
    pub(super) fn all_gather<T: Number>(&self, mine: &[T], all: &mut [T]) -> Result<(), CommError> {
        let count = mine.len();
        self.fits("all_gather", count, all.len())?;
        // `turned` holds the contributions of the ranks in order, beginning with this rank and continuing cyclically.
        let mut turned = vec![T::default(); all.len()];
        turned[..count].copy_from_slice(mine);
        let mut have = 1;
        while have < self.size {
            let more = have.min(self.size - have);
            let (old, new) = turned.split_at_mut(have * count);
            let (old, new) = (bytes_of(&old[..more * count]), bytes_of_mut(&mut new[..more * count]));
            self.exchange(Some((self.before(have), old)), Some((self.after(have), new)), LARGEST_COUNT)?;
            have += more;
        }
        let (first, second) = turned.split_at((self.size - self.rank) * count);
        all[self.rank * count..].copy_from_slice(first);
        all[..self.rank * count].copy_from_slice(second);
        Ok(())
    }

    /// Sends part r of `parts` to rank r, which stores it in its `received` at the position of this rank.
    pub(super) fn all_to_all<T: Number>(&self, parts: &[T], received: &mut [T]) -> Result<(), CommError> {
        let count = parts.len() / self.size;
        self.fits("all_to_all", count, parts.len())?;
        self.fits("all_to_all", count, received.len())?;
        let part = |rank: usize| rank * count..(rank + 1) * count;
        received[part(self.rank)].copy_from_slice(&parts[part(self.rank)]);
        for step in 1..self.size {
            let (to, from) = (self.after(step), self.before(step));
            let (leaving, arriving) = (bytes_of(&parts[part(to)]), bytes_of_mut(&mut received[part(from)]));
            self.exchange(Some((to, leaving)), Some((from, arriving)), LARGEST_COUNT)?;
        }
        Ok(())
    }

    /// Checks that the buffer holds exactly `count` numbers of each rank.
    fn fits(&self, operation: &'static str, count: usize, room: usize) -> Result<(), CommError> {
        if count.checked_mul(self.size) == Some(room) {
            return Ok(());
        }
        let message = format!(
            "the buffer has length {room}, but the vectors of {0} ranks have length {count} x {0} together; give a \
             buffer of that length",
            self.size
        );
        Err(CommError::Transport { operation, message })
    }
}

/// Message inside a collective call. The call must wait for its end, because MPI uses memory that is only borrowed.
struct Pending {
    handle: ffi::MPI_Request,
    layout: Bytes,
}

impl Pending {
    fn send(comm: &Comm, to: usize, bytes: &[u8], largest: usize) -> Result<Self, CommError> {
        let layout = Bytes::new(bytes.len(), largest)?;
        let from = address_of(bytes.as_ptr(), bytes.len());
        // SAFETY: a constant.
        let mut pending = Self { handle: unsafe { ffi::RSMPI_REQUEST_NULL }, layout };
        let Bytes { count, datatype, .. } = pending.layout;
        // SAFETY: usable, checked by `exchange`; the type covers `bytes`, which stay alive, as `exchange` waits for the
        // end.
        let code = unsafe { ffi::MPI_Isend(from, count, datatype, to as c_int, TAG, comm.handle, &mut pending.handle) };
        pending.begun("MPI_Isend", code)
    }

    fn receive(comm: &Comm, from: usize, bytes: &mut [u8], largest: usize) -> Result<Self, CommError> {
        let layout = Bytes::new(bytes.len(), largest)?;
        let to = address_of(bytes.as_mut_ptr(), bytes.len());
        // SAFETY: a constant.
        let mut pending = Self { handle: unsafe { ffi::RSMPI_REQUEST_NULL }, layout };
        let Bytes { count, datatype, .. } = pending.layout;
        // SAFETY: as in `send`.
        let code = unsafe { ffi::MPI_Irecv(to, count, datatype, from as c_int, TAG, comm.handle, &mut pending.handle) };
        pending.begun("MPI_Irecv", code)
    }

    fn begun(mut self, operation: &'static str, code: c_int) -> Result<Self, CommError> {
        match check(operation, code) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.layout.free();
                Err(error)
            }
        }
    }

    /// Waits until the message completes. Returns the number of bytes received if the message is a reception.
    fn wait(&mut self, expectations: &Expectations) -> Result<usize, CommError> {
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        let mut done = 0;
        let mut code = ffi::MPI_SUCCESS as c_int;
        // A request that fails has also completed, so an error ends the loop.
        while done == 0 && code == ffi::MPI_SUCCESS as c_int && !expectations.is_empty() {
            expectations.advance_all();
            // SAFETY: usable, checked by `exchange`; a live request, and room for the status that MPI writes.
            code = unsafe { ffi::MPI_Test(&mut self.handle, &mut done, status.as_mut_ptr()) };
        }
        if done == 0 && code == ffi::MPI_SUCCESS as c_int {
            // SAFETY: as above.
            code = unsafe { ffi::MPI_Wait(&mut self.handle, status.as_mut_ptr()) };
        }
        self.layout.free();
        check("MPI_Wait", code)?;
        // SAFETY: written by MPI, and zeros before, which a struct of integers may hold.
        Bytes::of(unsafe { status.assume_init_ref() })
    }

    /// Cancels a reception, so that a wait for it ends without a message.
    fn cancel(&mut self) {
        // SAFETY: usable, checked by `exchange`; a live request, which is waited for next.
        unsafe { ffi::MPI_Cancel(&mut self.handle) };
    }
}
