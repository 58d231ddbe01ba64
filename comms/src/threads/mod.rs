//! Ranks that are threads of one process, for tests and for programs that try many ranks without MPI.

mod transfer;
mod world;

pub use transfer::ThreadTransfer;

use crate::communicator::{Buffer, CommError, Communicator, Tag};
use crate::ordered;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use world::{CollectiveCall, ThreadWorld};

/// Stack size of a rank's thread in bytes. It is the usual size for the main thread of a process, so that a program's
/// `main` also runs as a rank.
const STACK: usize = 8 << 20;

/// Communicator of a rank that [`Threads::run`] started as a thread. Cloning gives another handle on the same rank.
///
/// The implementation is at least as strict as MPI, so that code which works here works there: a rank belongs to its
/// thread ([`CommError::WrongThread`] elsewhere), a send completes only when its receiver has started (MPI guarantees
/// no more, and does so for long messages), and collective calls must match. Where MPI hangs, this type returns an
/// error: when it waits for a message that can no longer come ([`CommError::NeverSent`], [`CommError::Deadlock`]), or
/// for a rank that has failed ([`CommError::RankFailed`]). Only a loop over [`test`](crate::Transfer::test) can still
/// run forever.
///
/// ```
/// use comms::{CommError, Communicator, Threads, Transfer};
///
/// // Every rank sends its number to the next one, around the end.
/// let results = Threads::run(4, |world| {
///     let (rank, size) = (world.rank(), world.size());
///     let receive = world.receive((rank + size - 1) % size, 0, vec![0u8; 1])?;
///     let send = world.send((rank + 1) % size, 0, vec![rank as u8])?;
///     send.into_buffer()?;
///     let mut sum = [rank as f64];
///     world.sum(&mut sum)?;
///     Ok::<_, CommError>((receive.into_buffer()?[0], sum[0]))
/// })?;
/// assert_eq!(results, [(3, 6.0), (0, 6.0), (1, 6.0), (2, 6.0)]);
/// # Ok::<(), comms::RankFailure>(())
/// ```
#[derive(Clone, Debug)]
pub struct Threads {
    world: Arc<ThreadWorld>,
    rank: usize,
}

/// Failure of a run of [`Threads`]: the first rank that failed, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankFailure {
    /// The rank that failed.
    pub rank: usize,
    /// Cause of the failure.
    pub cause: Cause,
}

/// Cause of a rank's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The rank returned an error.
    Error(String),
    /// The rank panicked.
    Panic(String),
    /// The rank called [`Communicator::abort`].
    Abort {
        /// Exit code that a process would have returned.
        code: i32,
        /// Message that a process would have printed.
        message: String,
    },
}

impl Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(message) => write!(f, "failed: {message}"),
            Self::Panic(message) => write!(f, "panicked: {message}"),
            Self::Abort { code, message } => write!(f, "aborted with code {code}: {message}"),
        }
    }
}

impl Display for RankFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} {}", self.rank, self.cause)
    }
}

impl std::error::Error for RankFailure {}

/// Payload of the panic that unwinds a rank that aborts.
struct Aborted;

impl Threads {
    /// Runs `body` on `size` threads, one per rank, and returns their results in order of rank.
    ///
    /// The first error, panic or [`abort`](Communicator::abort) of a rank ends all: ranks that wait for others, now or
    /// later, get [`CommError::RankFailed`]. `abort` does not end the process: it unwinds the rank's thread, without
    /// the message of a panic, and the run returns [`Cause::Abort`]. (Destructors therefore run, and a `catch_unwind`
    /// in `body` keeps the rank alive, but cannot save the run.)
    pub fn run<T, E, F>(size: usize, body: F) -> Result<Vec<T>, RankFailure>
    where
        T: Send,
        E: Display,
        F: Fn(Threads) -> Result<T, E> + Sync,
    {
        let world = Arc::new(ThreadWorld::new(size));
        let (body, shared) = (&body, &world);
        let results: Vec<Option<T>> = thread::scope(|scope| {
            let start = |rank| {
                let builder = thread::Builder::new().name(format!("rank {rank}")).stack_size(STACK);
                let started = builder.spawn_scoped(scope, move || Self::rank_thread(shared, rank, body));
                started.map_err(|e| {
                    shared.fail(rank, Cause::Error(format!("the thread of the rank could not be started: {e}")))
                })
            };
            let threads: Vec<_> = (0..size).map(start).collect();
            threads.into_iter().map(|thread| thread.ok()?.join().ok()?).collect()
        });
        match world.failure() {
            Some(failure) => Err(failure),
            None => Ok(results.into_iter().flatten().collect()),
        }
    }

    /// Runs the body of a rank on its thread; returns `None` after a failure, which is then recorded in the world.
    fn rank_thread<T, E: Display>(
        world: &Arc<ThreadWorld>,
        rank: usize,
        body: &impl Fn(Threads) -> Result<T, E>,
    ) -> Option<T> {
        world.begin(rank);
        let comm = Threads { world: Arc::clone(world), rank };
        match catch_unwind(AssertUnwindSafe(|| body(comm))) {
            Ok(Ok(value)) => {
                world.end(rank);
                return Some(value);
            }
            Ok(Err(error)) => world.fail(rank, Cause::Error(error.to_string())),
            // The cause of an abort is already recorded.
            Err(panic) if panic.is::<Aborted>() => {}
            Err(panic) => world.fail(rank, Cause::Panic(crate::panic_message(&*panic))),
        }
        None
    }

    /// Combines `values` of all ranks in order of rank, in one collective call.
    fn reduce(
        &self,
        operation: &'static str,
        values: &mut [f64],
        combine: impl for<'a> FnOnce(&mut [f64], Vec<&'a [f64]>),
    ) -> Result<(), CommError> {
        let bytes = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let call = CollectiveCall { operation, root: None, length: Some(values.len()) };
        let all = self.world.collective(self.rank, call, bytes)?;
        let number = |bytes: &[u8; 8]| f64::from_ne_bytes(*bytes);
        let all: Vec<Vec<f64>> = all.iter().map(|b| b.as_chunks().0.iter().map(number).collect()).collect();
        combine(values, all.iter().map(Vec::as_slice).collect());
        Ok(())
    }

    fn known(&self, rank: usize) -> Result<(), CommError> {
        let size = self.world.size();
        if rank < size { Ok(()) } else { Err(CommError::NoSuchRank { rank, size }) }
    }
}

impl Communicator for Threads {
    type Send<B: Buffer> = ThreadTransfer<B>;
    type Receive<B: Buffer> = ThreadTransfer<B>;

    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.world.size()
    }
    fn node_rank(&self) -> usize {
        self.rank
    }
    fn node_size(&self) -> usize {
        self.world.size()
    }

    fn barrier(&self) -> Result<(), CommError> {
        let call = CollectiveCall { operation: "barrier", root: None, length: None };
        self.world.collective(self.rank, call, Vec::new()).map(drop)
    }

    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        self.reduce("sum", values, |values, all| ordered::sum(values, all))
    }

    fn max(&self, values: &mut [f64]) -> Result<(), CommError> {
        self.reduce("max", values, |values, all| ordered::max(values, all))
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError> {
        self.known(root)?;
        let call = CollectiveCall { operation: "broadcast", root: Some(root), length: Some(bytes.len()) };
        let mine = if root == self.rank { bytes.to_vec() } else { Vec::new() };
        bytes.copy_from_slice(&self.world.collective(self.rank, call, mine)?[root]);
        Ok(())
    }

    fn gather(&self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, CommError> {
        self.known(root)?;
        let call = CollectiveCall { operation: "gather", root: Some(root), length: None };
        let all = self.world.collective(self.rank, call, bytes.to_vec())?;
        Ok((root == self.rank).then(|| all.to_vec()))
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let call = CollectiveCall { operation: "all_gather", root: None, length: None };
        Ok(self.world.collective(self.rank, call, bytes.to_vec())?.to_vec())
    }

    fn send_channel<B: Buffer>(&self, to: usize, tag: Tag, buffer: B) -> Result<ThreadTransfer<B>, CommError> {
        self.known(to)?;
        Ok(ThreadTransfer::send(&self.world, self.rank, to, tag, buffer))
    }

    fn receive_channel<B: Buffer>(&self, from: usize, tag: Tag, buffer: B) -> Result<ThreadTransfer<B>, CommError> {
        self.known(from)?;
        Ok(ThreadTransfer::receive(&self.world, self.rank, from, tag, buffer))
    }

    /// Ends the run, but not the process: see [`Threads::run`].
    fn abort(&self, code: i32, message: &str) -> ! {
        let code = if code == 0 { 1 } else { code };
        self.world.fail(self.rank, Cause::Abort { code, message: message.to_string() });
        // `resume_unwind` prints no message, unlike `panic!`: the caller of `run` reports the failure.
        resume_unwind(Box::new(Aborted))
    }
}
