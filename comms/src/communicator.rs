//! The trait through which processes talk.

use thiserror::Error;

/// Tells messages between the same two processes apart. Messages with equal sender, receiver and tag keep their order.
pub type Tag = u16;

/// What can go wrong between processes.
#[derive(Debug, Error)]
pub enum CommError {
    /// A rank that does not exist.
    #[error("there is no rank {rank} among {size} processes")]
    NoSuchRank {
        /// The rank asked for.
        rank: usize,
        /// How many there are.
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
    /// The wait would never end.
    #[error("waiting for a message with tag {tag} from rank {from} that was never sent")]
    NeverSent {
        /// Tag of the message.
        tag: Tag,
        /// Rank of the sender.
        from: usize,
    },
    /// The wait would never end.
    #[error("waiting for rank {to} to receive a message with tag {tag}, which it never will")]
    NeverReceived {
        /// Tag of the message.
        tag: Tag,
        /// Rank of the receiver.
        to: usize,
    },
    /// The buffer of a message under way was asked for, or the message was started twice.
    #[error("the message with tag {tag} is still under way: wait for it first")]
    UnderWay {
        /// Tag of the message.
        tag: Tag,
    },
    /// The library below failed, or the call differs from that of another rank.
    #[error("{operation} failed: {message}")]
    Transport {
        /// What was tried.
        operation: &'static str,
        /// What the library says.
        message: String,
    },
    /// Another rank ended with an error, so that nothing more will come of the run.
    #[error("rank {rank} {message}")]
    RankFailed {
        /// The rank that failed first.
        rank: usize,
        /// How it failed.
        message: String,
    },
    /// Every rank waits for another one, or has ended.
    #[error("no rank can go on: {waits}")]
    Deadlock {
        /// What each rank waits for.
        waits: String,
    },
    /// A communicator belongs to the thread that it was made on, as MPI demands.
    #[error("rank {rank} was used from a thread that is not its own, or after the end of its run")]
    WrongThread {
        /// The rank.
        rank: usize,
    },
}

/// Memory that a message is read from or written to. It belongs to the [`Transfer`] while that exists, so nobody else
/// can touch it while a message is under way.
///
/// `bytes` always gives the same address and length: transports may register the memory once. Pinned host memory is
/// made usable by implementing this trait for its owner. (Memory that the host cannot address will get a trait of its
/// own, with methods of its own on communicators that can use it.)
pub trait Buffer: 'static {
    /// The bytes to send.
    fn bytes(&self) -> &[u8];
    /// The bytes to receive into.
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

/// A message that can be sent (or received) any number of times: a fixed partner, tag and buffer.
///
/// ```text
/// idle ──start──▶ under way ──wait, or test that says true──▶ idle
/// ```
/// The buffer is accessible only while idle. A send may stay under way until its receiver has started: start receptions
/// before waiting for sends.
///
/// Dropping a transfer never waits, so that an error can leave through transfers under way and reach
/// [`Communicator::abort`]. A send goes on, and its buffer is kept until it has come to its end. A reception is given
/// up: its message, if it was already under way, is lost.
pub trait Transfer<B: Buffer> {
    /// Starts the message; does not wait. [`CommError::UnderWay`] when it already is.
    fn start(&mut self) -> Result<(), CommError>;

    /// Whether the message has come to its end. True when idle. Drives progress, so that it may be called in a loop.
    /// After [`CommError::Length`] and [`CommError::Transport`] the transfer is idle; other errors leave it under way.
    fn test(&mut self) -> Result<bool, CommError>;

    /// Waits for the end: a sent buffer may be overwritten, a received one is full. Returns at once when idle.
    fn wait(&mut self) -> Result<(), CommError>;

    /// The buffer, while idle.
    fn buffer(&self) -> Result<&B, CommError>;

    /// The buffer, to be changed, while idle. Must not change its address or length.
    fn buffer_mut(&mut self) -> Result<&mut B, CommError>;

    /// Waits and gives the buffer back. The buffer is lost after an error.
    fn into_buffer(self) -> Result<B, CommError>;
}

/// The processes of a run. Ranks are 0 … size − 1.
///
/// Calls marked *collective* have to be made by all processes, in the same order. The trait is used with static
/// dispatch: one program is generic over the world it runs in.
pub trait Communicator {
    /// A message to another process.
    type Send<B: Buffer>: Transfer<B>;
    /// A message from another process.
    type Receive<B: Buffer>: Transfer<B>;

    /// This process.
    fn rank(&self) -> usize;
    /// Number of processes.
    fn size(&self) -> usize;
    /// This process among those that share its host: picks the GPU.
    fn node_rank(&self) -> usize;
    /// Number of processes on this host.
    fn node_size(&self) -> usize;

    /// *Collective.* Returns when all have called it.
    fn barrier(&self) -> Result<(), CommError>;

    /// *Collective.* `values`_i ← Σ over ranks of `values`_i.
    ///
    /// The order of summation depends on the number of processes only, and every rank gets the same bits: a run
    /// repeated on the same grid repeats bit by bit, and ranks may branch on the result. (A library's own all-reduce
    /// promises neither; implementations bring all values to every rank, which adds them in order of rank.)
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError>;

    /// *Collective.* `values`_i ← maximum over ranks. A NaN on any rank makes the result NaN.
    fn max(&self, values: &mut [f64]) -> Result<(), CommError>;

    /// *Collective.* Copies `bytes` of rank `root` to all. Every rank gives a slice of the same length.
    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError>;

    /// *Collective.* As [`broadcast`](Communicator::broadcast) for a length that only `root` knows.
    fn broadcast_vec(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let mut length = (bytes.len() as u64).to_le_bytes();
        self.broadcast(root, &mut length)?;
        bytes.resize(u64::from_le_bytes(length) as usize, 0);
        self.broadcast(root, bytes)
    }

    /// *Collective.* The bytes of all ranks, in order of rank and of any lengths, on rank `root`; `None` elsewhere.
    fn gather(&self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, CommError>;

    /// *Collective.* The bytes of all ranks, in order of rank and of any lengths, everywhere.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;

    /// Prepares a message to rank `to` (which may be this one) that can be started again and again.
    fn send_channel<B: Buffer>(&self, to: usize, tag: Tag, buffer: B) -> Result<Self::Send<B>, CommError>;

    /// Prepares the reception of a message from rank `from`, of exactly the buffer's length.
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

    /// Ends all processes, from any one of them: prints `message` with the rank on standard error, as one line, and
    /// exits with `code` (1 in place of 0). For errors that other ranks do not know of; errors that all ranks can meet
    /// go through [`agree`](crate::agree).
    fn abort(&self, code: i32, message: &str) -> !;
}
