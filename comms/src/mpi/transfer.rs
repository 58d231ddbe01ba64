//! Messages that own their memory.

use super::MpiJob;
use super::channel::Channel;
use super::library::usable;
use super::request::Side;
use crate::communicator::{Buffer, CommError, Tag, Transfer};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::thread;
use std::time::{Duration, Instant};

/// Time for which the end of a run waits for dropped sends, after all ranks have arrived there.
const PATIENCE: Duration = Duration::from_secs(2);

/// Message of [`Mpi`](crate::Mpi): a persistent request and its buffer.
///
/// Starting it fails if the address or length of the buffer has changed since the channel was made.
#[derive(Debug)]
pub struct MpiTransfer<B: Buffer> {
    message: ManuallyDrop<MpiMessage<B>>,
}

/// Buffer and channel of a transfer. The buffer lives on the heap and is reached through a raw pointer, so that moving
/// the transfer neither moves a buffer that holds its bytes inline nor asserts unique access to it while MPI uses it.
///
/// MPI may use the memory while the channel is under way for this reason: the address comes from `B::bytes_mut` (or
/// `bytes`), whose borrow of the buffer can last as long as no other code accesses the buffer; and none does, as
/// `buffer` and `buffer_mut` return errors while under way, and dropping leaves the buffer alone until MPI is done. The
/// address is requested again at each start. Nothing is dropped with this struct; [`finish`](Self::finish) takes it
/// apart.
#[derive(Debug)]
struct MpiMessage<B: Buffer> {
    channel: Channel,
    buffer: NonNull<B>,
}

// SAFETY: it owns the buffer, like a Box; the channel returns errors on other threads.
unsafe impl<B: Buffer + Send> Send for MpiMessage<B> {}
// SAFETY: shared references give out only shared references to the buffer.
unsafe impl<B: Buffer + Sync> Sync for MpiMessage<B> {}

/// Returns the address and length of a buffer's bytes. The address is exposed: MPI, which received it earlier, may use
/// it from now on.
fn memory<B: Buffer>(buffer: &mut B, sends: bool) -> (*mut u8, usize) {
    let (address, length) = if sends {
        let bytes = buffer.bytes();
        (bytes.as_ptr().cast_mut(), bytes.len())
    } else {
        let bytes = buffer.bytes_mut();
        (bytes.as_mut_ptr(), bytes.len())
    };
    address.expose_provenance();
    (address, length)
}

impl<B: Buffer> MpiMessage<B> {
    fn start(&mut self) -> Result<(), CommError> {
        self.channel.idle()?;
        let sends = matches!(self.channel, Channel::Sends(..));
        // SAFETY: idle, so no other code uses the buffer.
        let (address, length) = memory(unsafe { self.buffer.as_mut() }, sends);
        if !self.channel.is_for(address, length) {
            let tag = self.channel.tag();
            let message = format!(
                "the buffer for tag {tag} changed its address or length after its channel was made; make a new channel"
            );
            return Err(CommError::Transport { operation: "MPI_Start", message });
        }
        self.channel.start()
    }

    /// Frees the channel of an idle message and returns the buffer.
    fn finish(mut self) -> B {
        self.channel.free();
        // SAFETY: from Box::into_raw, and idle, so no other code uses it; taken once, since `self` goes.
        *unsafe { Box::from_raw(self.buffer.as_ptr()) }
    }
}

impl<B: Buffer> MpiTransfer<B> {
    /// Creates a message. `side` names a rank of the job.
    pub(super) fn new(job: &MpiJob, side: Side, tag: Tag, buffer: B, largest: usize) -> Result<Self, CommError> {
        let mut buffer = Box::new(buffer);
        let (address, length) = memory(&mut *buffer, matches!(side, Side::Sends { .. }));
        // SAFETY: `MpiMessage` keeps the memory while the channel is under way, see its documentation.
        let channel = unsafe { Channel::new(job, side, tag, address, length, largest) }?;
        // SAFETY: a Box is not null.
        let buffer = unsafe { NonNull::new_unchecked(Box::into_raw(buffer)) };
        Ok(Self { message: ManuallyDrop::new(MpiMessage { channel, buffer }) })
    }
}

impl<B: Buffer> Transfer<B> for MpiTransfer<B> {
    fn start(&mut self) -> Result<(), CommError> {
        self.message.start()
    }

    fn test(&mut self) -> Result<bool, CommError> {
        self.message.channel.test()
    }

    fn wait(&mut self) -> Result<(), CommError> {
        self.message.channel.wait()
    }

    fn buffer(&self) -> Result<&B, CommError> {
        self.message.channel.idle()?;
        // SAFETY: idle, and borrowed as `self` is.
        Ok(unsafe { self.message.buffer.as_ref() })
    }

    fn buffer_mut(&mut self) -> Result<&mut B, CommError> {
        self.message.channel.idle()?;
        // SAFETY: idle, and borrowed as `self` is.
        Ok(unsafe { self.message.buffer.as_mut() })
    }

    fn into_buffer(mut self) -> Result<B, CommError> {
        self.wait()?;
        // SAFETY: `self` is forgotten right after.
        let message = unsafe { ManuallyDrop::take(&mut self.message) };
        std::mem::forget(self);
        Ok(message.finish())
    }
}

impl<B: Buffer> Drop for MpiTransfer<B> {
    fn drop(&mut self) {
        // SAFETY: `self.message` is not used again.
        let message = unsafe { ManuallyDrop::take(&mut self.message) };
        let may_be_freed = match &message.channel {
            Channel::Receives(reception) => reception.cancel().is_ok(),
            Channel::Sends(request, _) if request.is_active() => {
                // On a thread that may not call MPI, the buffer is never freed, because the end of the message cannot
                // be detected there.
                if usable(0).is_ok() {
                    keep(message);
                }
                return;
            }
            Channel::Sends(..) => true,
        };
        if may_be_freed {
            drop(message.finish());
        }
    }
}

/// Interface of a dropped send, whatever the type of its buffer.
trait Dropped {
    fn channel(&mut self) -> &mut Channel;
    fn finish(self: Box<Self>);
}

impl<B: Buffer> Dropped for MpiMessage<B> {
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
    fn finish(self: Box<Self>) {
        drop((*self).finish());
    }
}

thread_local! {
    /// Sends that were dropped under way, until they complete.
    static DROPPED: RefCell<Vec<Box<dyn Dropped>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a dropped send until it completes, and frees the sends that have completed.
fn keep<B: Buffer>(message: MpiMessage<B>) {
    let mut dropped = DROPPED.take();
    dropped.push(Box::new(message));
    tidy(&mut dropped);
    DROPPED.with_borrow_mut(|all| all.append(&mut dropped));
}

/// Frees sends that have completed. Must not be called inside a borrow of `DROPPED`: dropping a buffer may drop
/// transfers.
fn tidy(dropped: &mut Vec<Box<dyn Dropped>>) {
    // A failed send has also ended, and no caller is left to receive its error.
    for mut message in dropped.extract_if(.., |message| message.channel().test().unwrap_or(true)) {
        if message.channel().idle().is_ok() {
            message.finish();
        }
    }
}

/// Waits for all dropped sends. All ranks must have ended their work, so that no reception starts any more. Fails if a
/// send is not received within [`PATIENCE`].
pub(super) fn finish_dropped_sends() -> Result<(), CommError> {
    let start = Instant::now();
    loop {
        let mut dropped = DROPPED.take();
        tidy(&mut dropped);
        let Some(first) = dropped.first_mut() else { return Ok(()) };
        let never = match first.channel() {
            Channel::Sends(request, _) => match request.side() {
                Side::Sends { to } | Side::Receives { from: to } => CommError::NeverReceived { tag: request.tag(), to },
            },
            Channel::Receives(_) => return Ok(()),
        };
        DROPPED.with_borrow_mut(|all| all.append(&mut dropped));
        if start.elapsed() > PATIENCE {
            return Err(never);
        }
        thread::sleep(Duration::from_millis(1));
    }
}
