//! The trait through which processes communicate.

use thiserror::Error;

/// Number that distinguishes messages between the same two processes. Messages with equal sender, receiver and tag keep
/// their order.
pub type Tag = u16;

/// Error in the communication between processes.
#[derive(Debug, Error)]
pub enum CommError {
    /// The requested rank does not exist.
    #[error("rank {rank} does not exist: there are {size} processes")]
    NoSuchRank {
        /// The requested rank.
        rank: usize,
        /// Number of processes.
        size: usize,
    },
    /// Sender and receiver disagree about the length of a message.
    #[error("a message with tag {tag} has {sent} bytes, but the receiver expects {expected}")]
    Length {
        /// Tag of the message.
        tag: Tag,
        /// Bytes sent.
        sent: usize,
        /// Bytes that the receiving buffer holds.
        expected: usize,
    },
    /// No rank can still send the message for which a reception waits.
    #[error("waiting for a message with tag {tag} from rank {from}, which never sent it")]
    NeverSent {
        /// Tag of the message.
        tag: Tag,
        /// Rank of the sender.
        from: usize,
    },
    /// No rank can still receive the message for whose receiver a send waits.
    #[error("waiting for rank {to} to receive a message with tag {tag}, which it never does")]
    NeverReceived {
        /// Tag of the message.
        tag: Tag,
        /// Rank of the receiver.
        to: usize,
    },
    /// The buffer of a message was requested, or the message was started, while the message is under way.
    #[error("the message with tag {tag} is not complete: wait for it first")]
    UnderWay {
        /// Tag of the message.
        tag: Tag,
    },
    /// The underlying library failed, or the call differs from that of another rank.
    #[error("{operation} failed: {message}")]
    Transport {
        /// Name of the operation that failed.
        operation: &'static str,
        /// Error message of the library.
        message: String,
    },
    /// Another rank ended with an error, so the run cannot finish.
    #[error("rank {rank} {message}")]
    RankFailed {
        /// The rank that failed first.
        rank: usize,
        /// Description of the failure.
        message: String,
    },
    /// Every rank waits for another one or has ended.
    #[error("no rank can continue: {waits}")]
    Deadlock {
        /// List of all ranks with the operation that each waits for.
        waits: String,
    },
    /// A communicator was called from a thread other than its own, or after the end of its run.
    #[error("rank {rank} was used from another thread than its own, or after the end of its run")]
    WrongThread {
        /// Rank of the communicator.
        rank: usize,
    },
}

/// Memory that a message is read from or written to. The [`Transfer`] owns it, so no other code can access it while a
/// message is under way.
///
/// `bytes` always returns the same address and length, because transports may register the memory once. Implement this
/// trait for the owner of pinned host memory to make that memory usable. (Memory that the host cannot address has
/// separate methods: see the trait `DeviceChannels` of the feature `mpi`.)
pub trait Buffer: 'static {
    /// Returns the bytes to send.
    fn bytes(&self) -> &[u8];
    /// Returns the bytes to receive into.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Buffer for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Buffer for Box<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// Message that can be sent (or received) any number of times, with a fixed partner, tag and buffer.
///
/// ```text
/// idle ──start──▶ under way ──wait, or test that returns true──▶ idle
/// ```
/// The buffer is accessible only while idle. A send may stay under way until its reception has started, so start
/// receptions before you wait for sends.
///
/// Dropping a transfer never waits, so that an error can propagate past transfers under way and reach
/// [`Communicator::abort`]. A send continues, and its buffer is kept until it completes. A reception is abandoned, and
/// its message is lost if it is already under way.
pub trait Transfer<B: Buffer> {
    /// Starts the message without waiting. Fails with [`CommError::UnderWay`] if it was already started.
    fn start(&mut self) -> Result<(), CommError>;

    /// Returns whether the message has completed; true when idle. This call drives progress, so it may be used in a
    /// loop. After [`CommError::Length`] and [`CommError::Transport`] the transfer is idle; other errors leave it under
    /// way.
    fn test(&mut self) -> Result<bool, CommError>;

    /// Waits until the message completes. Afterwards a sent buffer may be overwritten, and a received buffer is full.
    /// Returns at once when idle.
    fn wait(&mut self) -> Result<(), CommError>;

    /// Returns the buffer of an idle transfer.
    fn buffer(&self) -> Result<&B, CommError>;

    /// Returns the buffer of an idle transfer for modification. Its address and length must not change.
    fn buffer_mut(&mut self) -> Result<&mut B, CommError>;

    /// Waits until the message completes and returns the buffer. After an error the buffer is lost.
    fn into_buffer(self) -> Result<B, CommError>;
}

/// Communication among the processes of a run, which have the ranks 0 … size − 1.
///
/// Calls marked *collective* have to be made by all processes in the same order. The trait is used with static
/// dispatch: one program is generic over its kind of communicator.
pub trait Communicator {
    /// Message to another process.
    type Send<B: Buffer>: Transfer<B>;
    /// Message from another process.
    type Receive<B: Buffer>: Transfer<B>;

    /// Returns the rank of this process.
    fn rank(&self) -> usize;
    /// Returns the number of processes.
    fn size(&self) -> usize;
    /// Returns the local rank, the number of this process among those on its host; it selects the GPU.
    fn node_rank(&self) -> usize;
    /// Returns the number of processes on this host.
    fn node_size(&self) -> usize;

    /// *Collective.* Waits until all processes have called this function.
    fn barrier(&self) -> Result<(), CommError>;

    /// *Collective.* Replaces each of `values` by its sum over all ranks.
    ///
    /// The order of summation depends only on the number of processes, and every rank gets the same bits: a run
    /// repeated on the same grid is bit-identical, and ranks may branch on the result. (The all-reduce of a library
    /// guarantees neither; implementations add the values in order of rank.)
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError>;

    /// *Collective.* Replaces each of `values` by its maximum over all ranks. A NaN on any rank makes the result NaN.
    fn max(&self, values: &mut [f64]) -> Result<(), CommError>;

    /// *Collective.* Copies `bytes` of rank `root` to all ranks. Every rank passes a slice of the same length.
    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError>;

    /// *Collective.* Acts like [`broadcast`](Communicator::broadcast) for data whose length is known only on `root`.
    fn broadcast_vec(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let mut length = (bytes.len() as u64).to_le_bytes();
        self.broadcast(root, &mut length)?;
        bytes.resize(u64::from_le_bytes(length) as usize, 0);
        self.broadcast(root, bytes)
    }

    /// *Collective.* Returns the bytes of all ranks in order of rank on rank `root`, and `None` elsewhere. Lengths may
    /// differ between ranks.
    fn gather(&self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, CommError>;

    /// *Collective.* Returns the bytes of all ranks in order of rank on every rank. Lengths may differ between ranks.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;

    /// Prepares a message to rank `to` (which may be this one) that can be started repeatedly.
    fn send_channel<B: Buffer>(&self, to: usize, tag: Tag, buffer: B) -> Result<Self::Send<B>, CommError>;

    /// Prepares the reception of a message from rank `from`. The message must have exactly the length of the buffer.
    fn receive_channel<B: Buffer>(&self, from: usize, tag: Tag, buffer: B) -> Result<Self::Receive<B>, CommError>;

    /// Starts a message to rank `to`.
    fn send<B: Buffer>(&self, to: usize, tag: Tag, buffer: B) -> Result<Self::Send<B>, CommError> {
        let mut transfer = self.send_channel(to, tag, buffer)?;
        transfer.start()?;
        Ok(transfer)
    }

    /// Starts the reception of a message from rank `from`.
    fn receive<B: Buffer>(&self, from: usize, tag: Tag, buffer: B) -> Result<Self::Receive<B>, CommError> {
        let mut transfer = self.receive_channel(from, tag, buffer)?;
        transfer.start()?;
        Ok(transfer)
    }

    /// Ends all processes of the run. Prints `message` with the rank on standard error, as one line, and exits with
    /// `code`, or with 1 if `code` is 0. Use this function for errors that occur on some ranks only, and
    /// [`agree`](crate::agree) for errors that can occur on all ranks.
    fn abort(&self, code: i32, message: &str) -> !;
}
