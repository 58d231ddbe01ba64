//! State shared by the ranks of a process: messages, collective calls under way, waiting ranks, and failures.

use super::{Cause, RankFailure};
use crate::communicator::CommError;
use crate::mailbox::{Lane, Mailbox, Ticket};
use std::fmt::{self, Display};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

/// World of all ranks. One lock is enough: it is held briefly, and never while bytes are copied.
#[derive(Debug)]
pub(super) struct ThreadWorld {
    owners: Vec<OnceLock<ThreadId>>,
    state: Mutex<ThreadsState>,
    /// Condition variables, each of which wakes one rank.
    wake: Vec<Condvar>,
}

/// State protected by the lock.
#[derive(Debug)]
pub(super) struct ThreadsState {
    pub(super) mailbox: Mailbox,
    round: Round,
    ranks: Vec<Doing>,
    failure: Option<RankFailure>,
    /// List of the ranks' waits if the failure is a deadlock.
    deadlock: Option<String>,
}

/// Activity of a rank.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Works,
    Waits(Wait),
    Ended,
}

/// Condition on which a rank waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// Waits for the message of a reception.
    Message { lane: Lane, ticket: Ticket },
    /// Waits for the receiver of a message.
    Receiver { lane: Lane, ticket: Ticket },
    /// Waits for the contributions of the other ranks to a collective call.
    Others { operation: &'static str, round: u64 },
}

impl Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { lane, .. } => {
                write!(f, "waits for a message with tag {} from rank {}", lane.tag, lane.from)
            }
            Self::Receiver { lane, .. } => {
                write!(f, "waits for rank {} to receive its message with tag {}", lane.to, lane.tag)
            }
            Self::Others { operation, .. } => write!(f, "waits for the other ranks in {operation}"),
        }
    }
}

/// State of the collective call under way.
#[derive(Debug, Default)]
struct Round {
    number: u64,
    /// Number and call of the first rank that arrived.
    first: Option<(usize, CollectiveCall)>,
    arrived: usize,
    contributions: Vec<Vec<u8>>,
    /// Result of the previous round. It stays until all ranks have arrived at the current round, because they have then
    /// read it.
    done: Arc<Vec<Vec<u8>>>,
}

/// Properties of a collective call that have to be equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CollectiveCall {
    pub(super) operation: &'static str,
    pub(super) root: Option<usize>,
    pub(super) length: Option<usize>,
}

impl Display for CollectiveCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation)?;
        if let Some(root) = self.root {
            write!(f, " with root {root}")?;
        }
        self.length.map_or(Ok(()), |length| write!(f, " with length {length}"))
    }
}

impl ThreadsState {
    fn is_over(&self, wait: &Wait) -> bool {
        match *wait {
            Wait::Message { ticket, .. } => self.mailbox.has_arrived(ticket),
            Wait::Receiver { lane, ticket } => self.mailbox.is_taken(lane, ticket),
            Wait::Others { round, .. } => self.round.number != round,
        }
    }

    /// Returns an error if some rank has failed, which ends all waiting.
    fn whole(&self) -> Result<(), CommError> {
        match (&self.deadlock, &self.failure) {
            (Some(waits), _) => Err(CommError::Deadlock { waits: waits.clone() }),
            (None, Some(f)) => Err(CommError::RankFailed { rank: f.rank, message: f.cause.to_string() }),
            (None, None) => Ok(()),
        }
    }

    /// Checks that a wait can still end. It cannot end after a failure, or if it depends on a rank that has ended, or
    /// if it depends on the waiting rank itself while that rank is blocked (`blocked`).
    pub(super) fn can_end(&self, wait: &Wait, blocked: bool) -> Result<(), CommError> {
        self.whole()?;
        let ended = |rank: usize| matches!(self.ranks[rank], Doing::Ended);
        match *wait {
            Wait::Message { lane: Lane { from, to, tag }, .. } if ended(from) || (blocked && from == to) => {
                Err(CommError::NeverSent { tag, from })
            }
            Wait::Receiver { lane: Lane { from, to, tag }, .. } if ended(to) || (blocked && from == to) => {
                Err(CommError::NeverReceived { tag, to })
            }
            _ => Ok(()),
        }
    }

    /// Returns a list of what the ranks wait for if no rank works and no wait is over. (A rank that was woken counts as
    /// waiting until its thread runs again, so each wait is checked.)
    fn stuck(&self) -> Option<String> {
        let idle = |doing: &Doing| match doing {
            Doing::Works => false,
            Doing::Waits(wait) => !self.is_over(wait),
            Doing::Ended => true,
        };
        let describe = |(rank, doing): (usize, &Doing)| match doing {
            Doing::Waits(wait) => format!("rank {rank} {wait}"),
            _ => format!("rank {rank} has ended"),
        };
        let waits = || self.ranks.iter().enumerate().map(describe).collect::<Vec<_>>().join("; ");
        self.ranks.iter().all(idle).then(waits)
    }
}

impl ThreadWorld {
    pub(super) fn new(size: usize) -> Self {
        let state = ThreadsState {
            mailbox: Mailbox::default(),
            round: Round { contributions: vec![Vec::new(); size], ..Round::default() },
            ranks: vec![Doing::Works; size],
            failure: None,
            deadlock: None,
        };
        Self {
            owners: (0..size).map(|_| OnceLock::new()).collect(),
            state: Mutex::new(state),
            wake: (0..size).map(|_| Condvar::new()).collect(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.wake.len()
    }

    /// Binds the rank to this thread.
    pub(super) fn begin(&self, rank: usize) {
        self.owners[rank].get_or_init(|| thread::current().id());
    }

    fn on_its_thread(&self, rank: usize) -> bool {
        self.owners[rank].get() == Some(&thread::current().id())
    }

    /// Locks the state for a call of a rank from its own thread.
    pub(super) fn enter(&self, rank: usize) -> Result<MutexGuard<'_, ThreadsState>, CommError> {
        if self.on_its_thread(rank) { Ok(self.lock()) } else { Err(CommError::WrongThread { rank }) }
    }

    /// Locks the state. Code that holds it does not panic half-way, so a poisoned lock is ignored.
    pub(super) fn lock(&self) -> MutexGuard<'_, ThreadsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self, rank: usize) {
        self.wake[rank].notify_all();
    }

    fn wake_all(&self) {
        self.wake.iter().for_each(Condvar::notify_all);
    }

    pub(super) fn failure(&self) -> Option<RankFailure> {
        self.lock().failure.clone()
    }

    /// Records the failure of a rank, unless another rank failed before, and wakes all ranks.
    pub(super) fn fail(&self, rank: usize, cause: Cause) {
        let mut state = self.lock();
        state.ranks[rank] = Doing::Ended;
        state.failure.get_or_insert(RankFailure { rank, cause });
        self.wake_all();
    }

    /// Records that a rank has returned.
    pub(super) fn end(&self, rank: usize) {
        let mut state = self.lock();
        state.ranks[rank] = Doing::Ended;
        self.wake_all();
    }

    /// Blocks until a wait is over or cannot end.
    pub(super) fn block<'a>(
        &'a self,
        rank: usize,
        mut state: MutexGuard<'a, ThreadsState>,
        wait: Wait,
    ) -> Result<MutexGuard<'a, ThreadsState>, CommError> {
        loop {
            state.ranks[rank] = Doing::Works;
            if state.is_over(&wait) {
                return Ok(state);
            }
            state.can_end(&wait, true)?;
            state.ranks[rank] = Doing::Waits(wait);
            if let Some(waits) = state.stuck() {
                let error = CommError::Deadlock { waits: waits.clone() };
                state.deadlock = Some(waits);
                state.failure.get_or_insert(RankFailure { rank, cause: Cause::Error(error.to_string()) });
                self.wake_all();
                return Err(error);
            }
            state = self.wake[rank].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Collects the contributions of all ranks on every rank, in order of rank.
    pub(super) fn collective(
        &self,
        rank: usize,
        call: CollectiveCall,
        bytes: Vec<u8>,
    ) -> Result<Arc<Vec<Vec<u8>>>, CommError> {
        let mut state = self.enter(rank)?;
        state.whole()?;
        let round = &mut state.round;
        let (first, expected) = *round.first.get_or_insert((rank, call));
        if call != expected {
            let message = format!(
                "rank {rank} calls {call}, but rank {first} calls {expected}; all ranks must make the same calls"
            );
            return Err(CommError::Transport { operation: call.operation, message });
        }
        round.contributions[rank] = bytes;
        round.arrived += 1;
        if round.arrived < self.size() {
            let wait = Wait::Others { operation: call.operation, round: round.number };
            state = self.block(rank, state, wait)?;
        } else {
            let contributions = std::mem::replace(&mut round.contributions, vec![Vec::new(); self.size()]);
            round.done = Arc::new(contributions);
            round.number += 1;
            round.first = None;
            round.arrived = 0;
            self.wake_all();
        }
        Ok(Arc::clone(&state.round.done))
    }
}
