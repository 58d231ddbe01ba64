//! Messages between ranks that share memory, matched in the order in which they were started, as in MPI.

use crate::communicator::Tag;
use std::collections::{HashMap, VecDeque};

/// Sender, receiver and tag. Messages and receptions with the same lane are matched in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) tag: Tag,
}

/// Number of a message or reception that was started. Later ones have larger tickets.
pub(crate) type Ticket = u64;

/// Unmatched messages and receptions of a lane. At most one of the queues is not empty.
#[derive(Debug, Default)]
struct Queues {
    sent: VecDeque<(Ticket, Vec<u8>)>,
    posted: VecDeque<Ticket>,
}

/// Messages that were sent and receptions that were started, by lane.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    lanes: HashMap<Lane, Queues>,
    /// Messages already matched with a reception, by the ticket of the reception.
    arrived: HashMap<Ticket, Vec<u8>>,
    /// Memory of received messages, reused so that a repeated exchange allocates nothing.
    spare: Vec<Vec<u8>>,
    last: Ticket,
}

impl Mailbox {
    fn ticket(&mut self) -> Ticket {
        self.last += 1;
        self.last
    }

    /// Returns empty memory for a message.
    pub(crate) fn memory(&mut self) -> Vec<u8> {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        memory
    }

    /// Returns the memory of a message to the pool.
    pub(crate) fn recycle(&mut self, memory: Vec<u8>) {
        self.spare.push(memory);
    }

    /// Sends a message and returns its ticket.
    pub(crate) fn send(&mut self, lane: Lane, message: Vec<u8>) -> Ticket {
        let ticket = self.ticket();
        let queues = self.lanes.entry(lane).or_default();
        match queues.posted.pop_front() {
            Some(reception) => {
                self.arrived.insert(reception, message);
            }
            None => queues.sent.push_back((ticket, message)),
        }
        ticket
    }

    /// Returns whether a reception has taken the message `ticket`.
    pub(crate) fn is_taken(&self, lane: Lane, ticket: Ticket) -> bool {
        let oldest = self.lanes.get(&lane).and_then(|queues| queues.sent.front());
        oldest.is_none_or(|(oldest, _)| *oldest > ticket)
    }

    /// Starts a reception and returns its ticket.
    pub(crate) fn post(&mut self, lane: Lane) -> Ticket {
        let ticket = self.ticket();
        let queues = self.lanes.entry(lane).or_default();
        match queues.sent.pop_front() {
            Some((_, message)) => {
                self.arrived.insert(ticket, message);
            }
            None => queues.posted.push_back(ticket),
        }
        ticket
    }

    /// Returns whether the message of a reception has arrived.
    pub(crate) fn has_arrived(&self, ticket: Ticket) -> bool {
        self.arrived.contains_key(&ticket)
    }

    /// Takes the message of a reception, if it has arrived.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Vec<u8>> {
        self.arrived.remove(&ticket)
    }

    /// Abandons a reception. Its message is lost if it has already arrived.
    pub(crate) fn cancel(&mut self, lane: Lane, ticket: Ticket) {
        if let Some(message) = self.arrived.remove(&ticket) {
            self.recycle(message);
        } else if let Some(queues) = self.lanes.get_mut(&lane) {
            queues.posted.retain(|posted| *posted != ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = Lane { from: 0, to: 1, tag: 3 };

    #[test]
    fn messages_and_receptions_match_in_the_order_of_their_starts() {
        let mut mailbox = Mailbox::default();
        let (first, second) = (mailbox.post(LANE), mailbox.post(LANE));
        let a = mailbox.send(LANE, vec![1]);
        assert!(mailbox.is_taken(LANE, a) && mailbox.has_arrived(first) && !mailbox.has_arrived(second));
        mailbox.send(LANE, vec![2]);
        let c = mailbox.send(LANE, vec![3]);
        assert!(!mailbox.is_taken(LANE, c));
        assert_eq!(mailbox.take(second), Some(vec![2]));
        assert_eq!(mailbox.take(first), Some(vec![1]));
        assert_eq!(mailbox.take(first), None);
        // Another tag between the same ranks, and the opposite direction, are separate lanes.
        let other = [Lane { tag: 4, ..LANE }, Lane { from: 1, to: 0, tag: 3 }].map(|lane| mailbox.post(lane));
        assert!(!mailbox.is_taken(LANE, c) && !other.iter().any(|t| mailbox.has_arrived(*t)));
        let third = mailbox.post(LANE);
        assert!(mailbox.is_taken(LANE, c));
        assert_eq!(mailbox.take(third), Some(vec![3]));
    }

    #[test]
    fn a_reception_that_was_given_up_takes_no_message() {
        let mut mailbox = Mailbox::default();
        let (first, second) = (mailbox.post(LANE), mailbox.post(LANE));
        mailbox.cancel(LANE, first);
        mailbox.send(LANE, vec![1]);
        assert_eq!(mailbox.take(second), Some(vec![1]));
        // Already matched: the message is lost.
        mailbox.send(LANE, vec![2]);
        let third = mailbox.post(LANE);
        mailbox.cancel(LANE, third);
        mailbox.send(LANE, vec![3]);
        let fourth = mailbox.post(LANE);
        assert_eq!(mailbox.take(fourth), Some(vec![3]));
        assert_eq!(mailbox.spare.len(), 1);
    }
}
