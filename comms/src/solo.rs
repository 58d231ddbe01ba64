//! The world of one process.

use crate::communicator::{Buffer, CommError, Communicator, Tag, Transfer};
use crate::mailbox::{Lane, Mailbox, Ticket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// World of one process: sums are unchanged, and messages go to the process itself. Cloning gives another handle on the
/// same world.
#[derive(Clone, Debug, Default)]
pub struct Solo {
    mailbox: Arc<Mutex<Mailbox>>,
}

impl Solo {
    /// Creates a world of one process.
    pub fn new() -> Self {
        Self::default()
    }

    fn only_rank_0(rank: usize) -> Result<(), CommError> {
        if rank == 0 { Ok(()) } else { Err(CommError::NoSuchRank { rank, size: 1 }) }
    }

    fn transfer<B: Buffer>(&self, rank: usize, tag: Tag, buffer: B, sends: bool) -> Result<SoloTransfer<B>, CommError> {
        Self::only_rank_0(rank)?;
        let lane = Lane { from: 0, to: 0, tag };
        Ok(SoloTransfer { buffer, state: SoloState { mailbox: Arc::clone(&self.mailbox), lane, sends, ticket: None } })
    }
}

/// Message of a process to itself: copied once when it is started, and again when it is waited for.
#[derive(Debug)]
pub struct SoloTransfer<B: Buffer> {
    buffer: B,
    state: SoloState,
}

/// State of a transfer without its buffer, so that the buffer can be moved out.
#[derive(Debug)]
struct SoloState {
    mailbox: Arc<Mutex<Mailbox>>,
    lane: Lane,
    sends: bool,
    /// Ticket of the message while it is under way.
    ticket: Option<Ticket>,
}

impl SoloState {
    fn idle(&self) -> Result<(), CommError> {
        if self.ticket.is_some() { Err(CommError::UnderWay { tag: self.lane.tag }) } else { Ok(()) }
    }
}

impl Drop for SoloState {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket
            && !self.sends
        {
            lock(&self.mailbox).cancel(self.lane, ticket);
        }
    }
}

/// Locks the mailbox. A panic elsewhere leaves the queues intact, so a poisoned lock is ignored.
fn lock(mailbox: &Mutex<Mailbox>) -> MutexGuard<'_, Mailbox> {
    mailbox.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Buffer> Transfer<B> for SoloTransfer<B> {
    fn start(&mut self) -> Result<(), CommError> {
        self.state.idle()?;
        let mut mailbox = lock(&self.state.mailbox);
        self.state.ticket = Some(if self.state.sends {
            let mut message = mailbox.memory();
            message.extend_from_slice(self.buffer.bytes());
            mailbox.send(self.state.lane, message)
        } else {
            mailbox.post(self.state.lane)
        });
        Ok(())
    }

    fn test(&mut self) -> Result<bool, CommError> {
        let Some(ticket) = self.state.ticket else { return Ok(true) };
        if !self.state.sends {
            let mut mailbox = lock(&self.state.mailbox);
            let Some(message) = mailbox.take(ticket) else { return Ok(false) };
            self.state.ticket = None;
            let (sent, expected) = (message.len(), self.buffer.bytes().len());
            if sent == expected {
                self.buffer.bytes_mut().copy_from_slice(&message);
            }
            mailbox.recycle(message);
            if sent != expected {
                return Err(CommError::Length { tag: self.state.lane.tag, sent, expected });
            }
        }
        self.state.ticket = None;
        Ok(true)
    }

    /// Returns [`CommError::NeverSent`] if the mailbox is empty: no other process could still send the message. The
    /// transfer stays under way.
    fn wait(&mut self) -> Result<(), CommError> {
        if self.test()? { Ok(()) } else { Err(CommError::NeverSent { tag: self.state.lane.tag, from: 0 }) }
    }

    fn buffer(&self) -> Result<&B, CommError> {
        self.state.idle().map(|()| &self.buffer)
    }

    fn buffer_mut(&mut self) -> Result<&mut B, CommError> {
        self.state.idle().map(|()| &mut self.buffer)
    }

    fn into_buffer(mut self) -> Result<B, CommError> {
        self.wait()?;
        Ok(self.buffer)
    }
}

impl Communicator for Solo {
    type Send<B: Buffer> = SoloTransfer<B>;
    type Receive<B: Buffer> = SoloTransfer<B>;

    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn node_rank(&self) -> usize {
        0
    }
    fn node_size(&self) -> usize {
        1
    }
    fn barrier(&self) -> Result<(), CommError> {
        Ok(())
    }
    fn sum(&self, _: &mut [f64]) -> Result<(), CommError> {
        Ok(())
    }
    fn max(&self, _: &mut [f64]) -> Result<(), CommError> {
        Ok(())
    }
    fn broadcast(&self, root: usize, _: &mut [u8]) -> Result<(), CommError> {
        Self::only_rank_0(root)
    }
    fn gather(&self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, CommError> {
        Self::only_rank_0(root)?;
        Ok(Some(vec![bytes.to_vec()]))
    }
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        Ok(vec![bytes.to_vec()])
    }
    fn send_channel<B: Buffer>(&self, to: usize, tag: Tag, buffer: B) -> Result<SoloTransfer<B>, CommError> {
        self.transfer(to, tag, buffer, true)
    }
    fn receive_channel<B: Buffer>(&self, from: usize, tag: Tag, buffer: B) -> Result<SoloTransfer<B>, CommError> {
        self.transfer(from, tag, buffer, false)
    }
    fn abort(&self, code: i32, message: &str) -> ! {
        eprintln!("rank 0: {message}");
        std::process::exit(if code == 0 { 1 } else { code })
    }
}
