//! Receptions, which check the length of a message before MPI writes it.
//!
//! Open MPI 4.1 writes a message that is longer than its reception past the end of the buffer if it is long enough to
//! be copied straight from the sender's memory, and accepts one that is a byte too long if it comes from the same
//! process. The request of a reception therefore starts only when its message is announced with the right length. This
//! costs little: the data of long messages moves only inside calls of MPI, whether a request waits for them or not, and
//! short ones are copied once more.
//!
//! A sender may rely on receptions that have started. All blocking code of this module, including collective calls,
//! therefore advances all of them ([`Expectations::advance_all`]).

use super::request::{MpiRequest, Side};
use crate::communicator::{CommError, Tag};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Receptions that expect a message, in the order in which they were started. Among receptions with the same sender and
/// tag, only the first may take a message.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    list: Mutex<Vec<(MpiLane, Arc<Mutex<Expected>>)>>,
}

/// Sender and tag of a message.
type MpiLane = (usize, Tag);

/// Request, and the stage that its reception has reached.
#[derive(Debug)]
struct Expected {
    request: MpiRequest,
    largest: usize,
    stage: ReceptionStage,
}

#[derive(Debug)]
enum ReceptionStage {
    Idle,
    /// The reception is in the list of expectations.
    Expecting,
    /// The request is active.
    Arriving,
    /// The message does not fit; the value is the length that was sent.
    WrongLength(usize),
}

/// Locks a mutex, ignoring poisoning: code that holds these locks does not panic half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Expected {
    /// Starts the request if its message is announced; returns true if so.
    fn advance(&mut self, from: usize) -> Result<bool, CommError> {
        let Some(sent) = self.request.announced(from)? else { return Ok(false) };
        if sent == self.request.length() {
            // The request matches the announced message, which is the oldest of its lane: no other code receives on
            // this lane.
            self.request.start()?;
            self.stage = ReceptionStage::Arriving;
        } else {
            self.request.discard(from, sent, self.largest)?;
            self.stage = ReceptionStage::WrongLength(sent);
        }
        Ok(true)
    }
}

impl Expectations {
    /// Looks for the message of the first reception of a lane; returns true if it was found.
    fn advance(&self, lane: MpiLane) -> Result<bool, CommError> {
        let mut list = lock(&self.list);
        let Some(first) = list.iter().position(|(l, _)| *l == lane) else { return Ok(false) };
        let advanced = lock(&list[first].1).advance(lane.0)?;
        if advanced {
            list.remove(first);
        }
        Ok(advanced)
    }

    /// Looks for the messages of all receptions. Errors are reported again when the reception itself is tested.
    pub(super) fn advance_all(&self) {
        let mut list = lock(&self.list);
        let mut i = 0;
        while i < list.len() {
            let (lane, expected) = &list[i];
            let first = !list[..i].iter().any(|(l, _)| l == lane);
            if first && lock(expected).advance(lane.0).unwrap_or(false) {
                list.remove(i);
            } else {
                i += 1;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.list).is_empty()
    }
}

/// Receiving end of a channel.
#[derive(Debug)]
pub(super) struct MpiReception {
    all: Arc<Expectations>,
    lane: MpiLane,
    expected: Arc<Mutex<Expected>>,
}

impl MpiReception {
    /// Creates the reception of `request`, which must be a receiving request.
    pub(super) fn new(request: MpiRequest, all: Arc<Expectations>, largest: usize) -> Self {
        let (Side::Receives { from } | Side::Sends { to: from }) = request.side();
        let lane = (from, request.tag());
        Self { all, lane, expected: Arc::new(Mutex::new(Expected { request, largest, stage: ReceptionStage::Idle })) }
    }

    pub(super) fn tag(&self) -> Tag {
        self.lane.1
    }

    pub(super) fn is_under_way(&self) -> bool {
        !matches!(lock(&self.expected).stage, ReceptionStage::Idle)
    }

    pub(super) fn is_for(&self, address: *mut u8, length: usize) -> bool {
        lock(&self.expected).request.is_for(address, length)
    }

    pub(super) fn start(&self) -> Result<(), CommError> {
        if self.is_under_way() {
            return Err(CommError::UnderWay { tag: self.tag() });
        }
        lock(&self.expected).request.usable()?;
        lock(&self.expected).stage = ReceptionStage::Expecting;
        lock(&self.all.list).push((self.lane, Arc::clone(&self.expected)));
        Ok(())
    }

    /// Returns whether the message is complete; `None` if it is not yet announced.
    fn look(&self) -> Result<Option<bool>, CommError> {
        let mut expected = lock(&self.expected);
        match expected.stage {
            ReceptionStage::Idle => Ok(Some(true)),
            ReceptionStage::Expecting => Ok(None),
            ReceptionStage::Arriving => {
                let done = expected.request.test();
                if !expected.request.is_active() {
                    expected.stage = ReceptionStage::Idle;
                }
                done.map(Some)
            }
            ReceptionStage::WrongLength(sent) => {
                expected.stage = ReceptionStage::Idle;
                Err(CommError::Length { tag: self.tag(), sent, expected: expected.request.length() })
            }
        }
    }

    pub(super) fn test(&self) -> Result<bool, CommError> {
        loop {
            if let Some(done) = self.look()? {
                return Ok(done);
            }
            if !self.all.advance(self.lane)? {
                return Ok(false);
            }
        }
    }

    pub(super) fn wait(&self) -> Result<(), CommError> {
        while !self.test()? {
            self.all.advance_all();
        }
        Ok(())
    }

    /// Abandons a message under way. Waits only if the message has begun to arrive. Afterwards MPI does not write to
    /// the memory any more, unless this call fails.
    pub(super) fn cancel(&self) -> Result<(), CommError> {
        lock(&self.all.list).retain(|(_, expected)| !Arc::ptr_eq(expected, &self.expected));
        let mut expected = lock(&self.expected);
        let result = expected.request.wait();
        if expected.request.is_active() {
            return result;
        }
        expected.stage = ReceptionStage::Idle;
        Ok(())
    }

    /// Frees the request if it is idle, and does nothing while it is active.
    pub(super) fn free(&self) {
        lock(&self.expected).request.free();
    }
}
