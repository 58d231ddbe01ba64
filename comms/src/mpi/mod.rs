//! Processes that `mpirun` or `srun` started, through the crate `mpi`.
//!
//! | file | what it does |
//! |---|---|
//! | `mod.rs` | [`Mpi`]: start and end, collective calls |
//! | `join.rs` | communicators created by other code, such as mpi4py |
//! | `library.rs` | start, end and local calls of the library |
//! | `comm.rs` | the library's communicators and collective calls |
//! | `request.rs` | persistent requests on raw memory |
//! | `reception.rs` | receptions, which check a message's length first |
//! | `channel.rs` | either end of a message on raw memory |
//! | `transfer.rs` | messages that own their memory |
//! | `device.rs` | messages from and to memory that only a device can address |
//! | `speaker.rs` | choice of the failing rank that prints |
//!
//! This file and `reception.rs` do without `unsafe`. The others rely on one rule: **calls of MPI come from the thread
//! that initialised it**, or that joined a communicator, between start and end. A flag of that thread records this
//! (`library::usable`), and every call checks it first. Handles may therefore move to other threads, where they only
//! return errors.

#[allow(unsafe_code)]
mod channel;
#[allow(unsafe_code)]
mod comm;
#[allow(unsafe_code)]
mod device;
#[allow(unsafe_code)]
mod join;
#[allow(unsafe_code)]
mod library;
mod reception;
#[allow(unsafe_code)]
mod request;
#[allow(unsafe_code)]
mod speaker;
#[allow(unsafe_code)]
mod transfer;

pub use device::{DeviceChannels, DeviceTransfer, MpiDeviceTransfer};
pub use join::ForeignCommunicator;
pub use transfer::MpiTransfer;

use crate::communicator::{Buffer, CommError, Communicator, Tag};
use crate::launch::{Launch, launch};
use crate::ordered;
use comm::Comm;
use library::LARGEST_COUNT;
use request::Side;
use speaker::Speaker;
use std::fmt::Display;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Largest number of doubles, of all ranks together, that a sum gathers on every rank. Larger sums use an algorithm
/// that saves bandwidth. A network of 10 GB/s transfers 64 KiB in 7 µs, about as long as the latencies of one call.
const FEW: usize = 8192;
/// Size in bytes of the first message of a broadcast, which contains the length and as many bytes as fit. The size is
/// fixed, so that ranks that disagree about the length can still communicate. Short broadcasts need no second message.
const HEAD: usize = 512;
/// Number of doubles in a piece of a long sum. Summing in pieces limits the memory.
const PIECE: usize = 1 << 20;
/// Time that a rank which aborts without printing leaves the printing rank of its host to end all ranks.
const GRACE: Duration = Duration::from_secs(5);
/// Delay of an abort for each preceding host, at most [`LONGEST_DELAY`] in all.
const DELAY_PER_HOST: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(2);

/// Processes of an MPI job. Cloning gives another handle on the same job.
///
/// See [`run`](Mpi::run) for the start and end of MPI. A handle belongs to the thread that started MPI: calls from
/// other threads fail with [`CommError::WrongThread`]. Messages are persistent requests of MPI.
#[derive(Clone, Debug)]
pub struct Mpi {
    job: Arc<MpiJob>,
    /// Size in bytes above which a message is one item of a derived datatype, because MPI counts items with C's `int`.
    largest: usize,
}

/// Properties of the job, determined once at its start.
#[derive(Debug)]
struct MpiJob {
    /// Duplicate of the world, or of the communicator that was joined, so that messages of other code cannot interfere.
    comm: Comm,
    /// Communicator for collective calls.
    inner: Comm,
    /// Communicator of the ranks on this host.
    node: Comm,
    /// Number of this host, in order of the hosts' lowest ranks.
    node_index: usize,
    speaker: Option<Speaker>,
    thread_level: &'static str,
}

impl Mpi {
    /// *Collective over all processes of the job.* Initialises MPI, runs `body`, and finalises MPI. A process can call
    /// this function only once.
    ///
    /// An error of `body` is treated as local to its rank and ends the job: the message goes to standard error, and all
    /// ranks exit with code 1. A panic does the same with code 101. Errors on which all ranks agree
    /// ([`agree`](crate::agree)) are values: return them inside `T`, and let every rank leave with its code. Handles
    /// and transfers that outlive `body` only return errors.
    ///
    /// Requests `MPI_THREAD_FUNNELED` and fails with less. Also fails if several processes were started but cannot find
    /// each other; other failures end the job.
    pub fn run<T, E: Display>(body: impl FnOnce(&Mpi) -> Result<T, E>) -> Result<T, CommError> {
        let launch = launch();
        let thread_level = library::initialise()?;
        let mpi = match Comm::duplicate_world().and_then(|comm| MpiJob::new(comm, thread_level)) {
            Ok(job) => Mpi { job: Arc::new(job), largest: LARGEST_COUNT },
            // Other ranks may have no error and would wait for this one, so all ranks are ended.
            Err(error) => library::abort(1, &format!("MPI cannot be used: {error}")),
        };
        if let Some(error) = loneliness(mpi.size(), launch) {
            mpi.finalise()?;
            return Err(error);
        }
        match catch_unwind(AssertUnwindSafe(|| body(&mpi))) {
            Ok(Ok(value)) => match mpi.finalise() {
                Ok(()) => Ok(value),
                Err(error) => mpi.abort(1, &format!("MPI cannot be finalised: {error}")),
            },
            Ok(Err(error)) => mpi.abort(1, &error.to_string()),
            Err(panic) => mpi.abort(101, &format!("panicked: {}", crate::panic_message(&*panic))),
        }
    }

    /// Waits for all ranks and finalises MPI.
    fn finalise(&self) -> Result<(), CommError> {
        // A dropped send may still find its receiver until all ranks have arrived here.
        self.job.inner.barrier()?;
        transfer::finish_dropped_sends()?;
        let MpiJob { comm, inner, node, speaker, .. } = &*self.job;
        if let Some(speaker) = speaker {
            speaker.free()?;
        }
        for comm in [node, inner, comm] {
            comm.free()?;
        }
        library::finalise()
    }

    /// Returns the name and version of the library.
    pub fn library_version() -> String {
        library::version()
    }

    /// Returns the level of thread support that the library provides.
    pub fn thread_level(&self) -> &'static str {
        self.job.thread_level
    }

    /// Returns whether the library reports that it can send from and receive into memory of CUDA devices. The function
    /// `MPIX_Query_cuda_support` of the library makes this report; the result is false if the library lacks the
    /// function.
    pub fn is_cuda_aware(&self) -> bool {
        library::cuda_support()
    }

    /// Returns a handle that treats counts above `largest` as too large for MPI, so that tests need no messages of 2
    /// GiB.
    #[doc(hidden)]
    pub fn with_largest_count(&self, largest: usize) -> Self {
        Self { largest: largest.clamp(1, LARGEST_COUNT), ..self.clone() }
    }

    fn known(&self, rank: usize) -> Result<(), CommError> {
        let size = self.size();
        if rank < size { Ok(()) } else { Err(CommError::NoSuchRank { rank, size }) }
    }

    /// Combines the values of all ranks, in order of rank, on every rank.
    fn reduce(&self, values: &mut [f64], combine: fn(&mut [f64], Vec<&[f64]>)) -> Result<(), CommError> {
        let size = self.size();
        library::usable(self.rank())?;
        if size == 1 || values.is_empty() {
            return Ok(());
        }
        if values.len() * size > FEW {
            self.equal_lengths(values.len())?;
        }
        for piece in values.chunks_mut(PIECE) {
            if piece.len() * size <= FEW {
                let mut all = vec![0.0; piece.len() * size];
                self.job.inner.all_gather(piece, &mut all)?;
                combine(piece, all.chunks_exact(piece.len()).collect());
            } else {
                // Each rank combines one part of the values, and all ranks then gather all parts. A part is also
                // combined in order of rank, so the bits are those of a short sum.
                let part = piece.len().div_ceil(size);
                let mut padded = vec![0.0; part * size];
                padded[..piece.len()].copy_from_slice(piece);
                let mut contributions = vec![0.0; part * size];
                self.job.inner.all_to_all(&padded, &mut contributions)?;
                let mut mine = vec![0.0; part];
                combine(&mut mine, contributions.chunks_exact(part).collect());
                self.job.inner.all_gather(&mine, &mut padded)?;
                piece.copy_from_slice(&padded[..piece.len()]);
            }
        }
        Ok(())
    }

    /// Fails on all ranks if `length` differs between ranks.
    fn equal_lengths(&self, length: usize) -> Result<(), CommError> {
        let mut lengths = vec![0u64; self.size()];
        self.job.inner.all_gather(&[length as u64], &mut lengths)?;
        match lengths.iter().position(|l| *l != lengths[0]) {
            None => Ok(()),
            Some(rank) => {
                let message = format!(
                    "rank 0 gives {} numbers, but rank {rank} gives {}; all ranks must give equally many",
                    lengths[0], lengths[rank]
                );
                Err(CommError::Transport { operation: "a sum or maximum", message })
            }
        }
    }

    /// Broadcasts the first message of a broadcast (its head); returns the head and the total length that it contains.
    fn broadcast_head(&self, root: usize, bytes: &[u8]) -> Result<([u8; HEAD], usize), CommError> {
        self.known(root)?;
        let mut head = [0; HEAD];
        if self.rank() == root {
            head[..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            let short = bytes.len().min(HEAD - 8);
            head[8..8 + short].copy_from_slice(&bytes[..short]);
        }
        self.job.inner.broadcast(root, &mut head, self.largest)?;
        let length = head.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Ok((head, length as usize))
    }

    /// Broadcasts the bytes that the head does not contain, into a slice of the total length.
    fn broadcast_rest(&self, root: usize, head: &[u8; HEAD], bytes: &mut [u8]) -> Result<(), CommError> {
        let (start, rest) = bytes.split_at_mut(bytes.len().min(HEAD - 8));
        start.copy_from_slice(&head[8..8 + start.len()]);
        if rest.is_empty() { Ok(()) } else { self.job.inner.broadcast(root, rest, self.largest) }
    }

    /// Returns the bytes of all ranks, concatenated, on `root` (empty elsewhere), and their lengths on every rank.
    fn gather_flat(&self, root: usize, bytes: &[u8]) -> Result<(Vec<u8>, Vec<usize>), CommError> {
        let inner = &self.job.inner;
        let mut lengths = vec![0u64; self.size()];
        inner.all_gather(&[bytes.len() as u64], &mut lengths)?;
        let lengths: Vec<usize> = lengths.into_iter().map(|l| l as usize).collect();
        if self.rank() != root {
            if !bytes.is_empty() {
                inner.send(root, bytes, self.largest)?;
            }
            return Ok((Vec::new(), lengths));
        }
        let mut all = vec![0; lengths.iter().sum()];
        let mut rest = &mut all[..];
        for (rank, length) in lengths.iter().enumerate() {
            let (place, others) = rest.split_at_mut(*length);
            if rank == root {
                place.copy_from_slice(bytes);
            } else if *length > 0 {
                inner.receive(rank, place, self.largest)?;
            }
            rest = others;
        }
        Ok((all, lengths))
    }
}

/// Returns an error if several processes were started together but cannot find each other, for example because `mpirun`
/// belongs to another library or `srun` has no PMI. Each process would otherwise do the whole work.
fn loneliness(world: usize, launch: Option<Launch>) -> Option<CommError> {
    let (variable, started) = launch.and_then(|launch| Some((launch.variable, launch.size?)))?;
    let message = format!(
        "{started} processes were started (according to {variable}), but each process finds only itself; start the \
         processes with the mpirun of {}, or with srun --mpi=pmix",
        library::version()
    );
    (world == 1 && started > 1).then_some(CommError::Transport { operation: "MPI_Init_thread", message })
}

/// Splits gathered bytes into the parts of the ranks.
fn cut(all: &[u8], lengths: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = all;
    let part = |length: &usize| {
        let (part, others) = rest.split_at(*length);
        rest = others;
        part.to_vec()
    };
    lengths.iter().map(part).collect()
}

impl MpiJob {
    fn new(comm: Comm, thread_level: &'static str) -> Result<Self, CommError> {
        let inner = comm.duplicate()?;
        let node = comm.on_this_host()?;
        // `all` holds, for each rank, the lowest rank of its host. The index of a host counts the hosts with a smaller
        // lowest rank.
        let mut lowest = (comm.rank() as u64).to_le_bytes();
        node.broadcast(0, &mut lowest, LARGEST_COUNT)?;
        let lowest = u64::from_le_bytes(lowest);
        let mut all = vec![0u64; comm.size()];
        inner.all_gather(&[lowest], &mut all)?;
        let node_index = all.iter().enumerate().filter(|(rank, l)| **l == *rank as u64 && **l < lowest).count();
        // An error is ignored, because `speaker` only chooses which rank prints.
        let speaker = Speaker::new(&node).ok();
        Ok(Self { comm, inner, node, node_index, speaker, thread_level })
    }
}

impl Communicator for Mpi {
    type Send<B: Buffer> = MpiTransfer<B>;
    type Receive<B: Buffer> = MpiTransfer<B>;

    fn rank(&self) -> usize {
        self.job.comm.rank()
    }
    fn size(&self) -> usize {
        self.job.comm.size()
    }
    fn node_rank(&self) -> usize {
        self.job.node.rank()
    }
    fn node_size(&self) -> usize {
        self.job.node.size()
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.job.inner.barrier()
    }

    /// Adds the values in order of rank. If there are few numbers, all ranks get all of them, by Bruck's algorithm, and
    /// every rank adds them. This takes ⌈log₂ size⌉ latencies, like an all-reduce; gathering and broadcasting would
    /// take twice as many, and an all-reduce of the library does not guarantee the order. For 3 numbers and 256 ranks
    /// every rank receives 6 KB and adds 768 numbers, which takes less than a microsecond. If there are many numbers,
    /// each rank adds a part of them.
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        self.reduce(values, |values, all| ordered::sum(values, all))
    }

    fn max(&self, values: &mut [f64]) -> Result<(), CommError> {
        self.reduce(values, |values, all| ordered::max(values, all))
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError> {
        let (head, sent) = self.broadcast_head(root, bytes)?;
        if sent == bytes.len() {
            return self.broadcast_rest(root, &head, bytes);
        }
        // This rank forwards the rest to other ranks before it returns its error.
        self.broadcast_rest(root, &head, &mut vec![0; sent])?;
        let message = format!(
            "rank {root} gives {sent} B, but rank {} expects {} B; all ranks must give the same length",
            self.rank(),
            bytes.len()
        );
        Err(CommError::Transport { operation: "broadcast", message })
    }

    fn broadcast_vec(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let (head, sent) = self.broadcast_head(root, bytes)?;
        bytes.resize(sent, 0);
        self.broadcast_rest(root, &head, bytes)
    }

    fn gather(&self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, CommError> {
        self.known(root)?;
        let (all, lengths) = self.gather_flat(root, bytes)?;
        Ok((self.rank() == root).then(|| cut(&all, &lengths)))
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let (mut all, lengths) = self.gather_flat(0, bytes)?;
        all.resize(lengths.iter().sum(), 0);
        self.job.inner.broadcast(0, &mut all, self.largest)?;
        Ok(cut(&all, &lengths))
    }

    fn send_channel<B: Buffer>(&self, to: usize, tag: Tag, buffer: B) -> Result<MpiTransfer<B>, CommError> {
        self.known(to)?;
        MpiTransfer::new(&self.job, Side::Sends { to }, tag, buffer, self.largest)
    }

    fn receive_channel<B: Buffer>(&self, from: usize, tag: Tag, buffer: B) -> Result<MpiTransfer<B>, CommError> {
        self.known(from)?;
        MpiTransfer::new(&self.job, Side::Receives { from }, tag, buffer, self.largest)
    }

    /// Prints the message and calls `MPI_Abort`. If ranks of one host abort together, only the first prints; the others
    /// wait until the first ends them. Ranks of later hosts give earlier ones a head start of 0.1 s per host, 2 s at
    /// most.
    ///
    /// On a thread other than MPI's own the process exits with `code` instead, which makes `mpirun` end the job.
    fn abort(&self, code: i32, message: &str) -> ! {
        let first = self.job.speaker.as_ref().is_none_or(Speaker::claim);
        let hosts = u32::try_from(self.job.node_index).unwrap_or(u32::MAX);
        thread::sleep(if first { DELAY_PER_HOST.saturating_mul(hosts).min(LONGEST_DELAY) } else { GRACE });
        library::abort(code, &format!("rank {}: {message}", self.rank()))
    }
}

/// Writes one line to standard error, in one piece, so that lines of several ranks do not mix.
fn say(sentence: &str) {
    let line = format!("{sentence}\n");
    let mut stderr = std::io::stderr().lock();
    // Errors of standard error are ignored, because there is nowhere to report them.
    let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
}
