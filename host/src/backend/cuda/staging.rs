//! Copies between a GPU and host memory through two page-locked pieces. In long copies, all threads fill or empty one piece while the other
//! is transferred. The driver uses one thread, which spends most of its time on page faults if the array is fresh. Short copies to the GPU
//! also use a piece, because the caller may free the data before the driver has read it. Without pieces, a copy waits for its end.
use super::order::Mark;
use super::{Cuda, raw};
use crate::backend::Result;
use cust::sys;
use rayon::prelude::*;
use std::ffi::c_void;
use std::sync::TryLockError;
use tracing::trace;

/// Number of bytes of a piece.
const PIECE: usize = 16 << 20;
/// Number of bytes that a thread copies in one task.
const STRIP: usize = 256 << 10;
/// Number of bytes below which copies from the GPU do not use the pieces.
const LONG: usize = 4 * STRIP;

/// Two page-locked pieces of host memory.
pub(super) struct Staging {
    pieces: [Piece; 2],
    /// Index of the piece that the last copy to the GPU used, 0 or 1.
    next: usize,
}

struct Piece {
    address: *mut u8,
    /// Mark after the last copy to or from the GPU.
    copied: Mark,
}
// SAFETY: an address, used under the mutex around the pieces.
unsafe impl Send for Piece {}

impl Staging {
    fn new(backend: &Cuda) -> Result<Self> {
        let piece = || -> Result<Piece> {
            let copied = backend.new_mark(false)?;
            let mut address = std::ptr::null_mut::<c_void>();
            // SAFETY: writes one address.
            let code = unsafe { sys::cuMemHostAlloc(&mut address, PIECE, 0) };
            raw(code, "allocating page-locked memory", backend.name())?;
            Ok(Piece { address: address.cast(), copied })
        };
        Ok(Staging { pieces: [piece()?, piece()?], next: 0 })
    }
    /// Returns the other piece, which was used before the last one.
    fn next(&mut self) -> &Piece {
        self.next = 1 - self.next;
        &self.pieces[self.next]
    }
}

impl Drop for Piece {
    /// Frees the piece. The context must be current, which holds in `new` and at the end of the backend; the backend waits for all copies
    /// before.
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once, and no copy is on its way.
        unsafe {
            let _ = sys::cuMemFreeHost(self.address.cast());
        }
    }
}

impl Piece {
    /// Waits until the last copy with this piece is done.
    fn wait(&self, device: &str) -> Result {
        // SAFETY: a live handle.
        raw(unsafe { sys::cuEventSynchronize(self.copied.handle()) }, "waiting for a copy", device)
    }
    /// Returns the first `count` bytes of the piece. The caller must hold the mutex and have waited for the last copy.
    #[expect(clippy::mut_from_ref)]
    fn bytes(&self, count: usize) -> &mut [u8] {
        debug_assert!(count <= PIECE);
        // SAFETY: within the allocation; no copy is on its way, and no other thread has the mutex.
        unsafe { std::slice::from_raw_parts_mut(self.address, count) }
    }
}

fn copy(from: &[u8], to: &mut [u8]) {
    if to.len() <= STRIP {
        return to.copy_from_slice(from);
    }
    to.par_chunks_mut(STRIP).zip(from.par_chunks(STRIP)).for_each(|(to, from)| to.copy_from_slice(from));
}

impl Cuda {
    /// Runs `task` with the pieces. Returns `None` if another thread is using them, or if they cannot be allocated.
    fn staged(&self, task: impl FnOnce(&mut Staging) -> Result) -> Option<Result> {
        // `try_lock` prevents a deadlock: while a thread waits for others of its rayon pool, it may be given work that also needs the
        // pieces.
        let mut staging = match self.shared.staging.try_lock() {
            Ok(staging) => staging,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if staging.is_none() {
            match Staging::new(self) {
                Ok(fresh) => *staging = Some(fresh),
                Err(why) => trace!("copies to and from the GPU do not use page-locked memory: {why}"),
            }
        }
        staging.as_mut().map(task)
    }
    /// Copies to an address of the GPU in the main stream; the caller may change `data` afterwards.
    pub(super) fn copy_in(&self, data: &[u8], address: u64) -> Result {
        let queue = &self.shared.queue;
        let direct = |data: *const u8, bytes: usize, address: u64| {
            // SAFETY: the caller's range, or a piece. A piece is left alone until its mark is reached; all else is waited for.
            let code = unsafe { sys::cuMemcpyHtoDAsync_v2(address, data.cast(), bytes, queue.handle()) };
            raw(code, "copying to the GPU", self.name())
        };
        let staged = self.staged(|staging| {
            for (n, part) in data.chunks(PIECE).enumerate() {
                let piece = staging.next();
                piece.wait(self.name())?;
                copy(part, piece.bytes(part.len()));
                direct(piece.address, part.len(), address + (n * PIECE) as u64)?;
                self.place(&piece.copied, queue)?;
            }
            Ok(())
        });
        staged.unwrap_or_else(|| {
            direct(data.as_ptr(), data.len(), address)?;
            queue.wait(self.name())
        })
    }
    /// Copies from an address of the GPU after all work of the main stream.
    pub(super) fn copy_out(&self, address: u64, data: &mut [u8]) -> Result {
        let queue = &self.shared.queue;
        let direct = |address: u64, data: *mut u8, bytes: usize| {
            // SAFETY: the caller's range, or a piece; both are waited for before they are read.
            let code = unsafe { sys::cuMemcpyDtoHAsync_v2(data.cast(), address, bytes, queue.handle()) };
            raw(code, "copying from the GPU", self.name())
        };
        let is_long = data.len() >= LONG;
        let long = |staging: &mut Staging| {
            let total = data.len();
            let begin = |n: usize| {
                let (piece, from) = (&staging.pieces[n % 2], n * PIECE);
                direct(address + from as u64, piece.address, PIECE.min(total - from))?;
                self.place(&piece.copied, queue)
            };
            begin(0)?;
            for (n, part) in data.chunks_mut(PIECE).enumerate() {
                // The next part is copied to the other piece, which has been emptied.
                if (n + 1) * PIECE < total {
                    begin(n + 1)?;
                }
                let piece = &staging.pieces[n % 2];
                piece.wait(self.name())?;
                copy(piece.bytes(part.len()), part);
            }
            Ok(())
        };
        let staged = if is_long { self.staged(long) } else { None };
        match staged {
            Some(result) => result,
            None => {
                direct(address, data.as_mut_ptr(), data.len())?;
                queue.wait(self.name())
            }
        }
    }
}
