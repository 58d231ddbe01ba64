//! The world of one process.

use crate::communicator::{Buffer, CommError, Communicator, Tag, Transfer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One process: sums are what they were, and messages go to oneself. Cloning gives another handle on the same world.
#[derive(Clone, Debug, Default)]
pub struct Solo {
    mailbox: Arc<Mutex<Mailbox>>,
}

/// Messages sent and not yet received.
#[derive(Debug, Default)]
struct Mailbox {
    messages: BTreeMap<Tag, VecDeque<Vec<u8>>>,
    /// Memory of received messages, used again so that a repeated exchange allocates nothing.
    spare: Vec<Vec<u8>>,
}

impl Solo {
    /// A world of one process.
    pub fn new() -> Self {
        Self::default()
    }

    fn only_rank_0(rank: usize) -> Result<(), CommError> {
        if rank == 0 { Ok(()) } else { Err(CommError::NoSuchRank { rank, size: 1 }) }
    }

    fn transfer<B: Buffer>(&self, rank: usize, tag: Tag, buffer: B, sends: bool) -> Result<SoloTransfer<B>, CommError> {
        Self::only_rank_0(rank)?;
        Ok(SoloTransfer { mailbox: Arc::clone(&self.mailbox), tag, buffer, sends, under_way: false })
    }
}

/// A message to oneself: a copy made when it is started, and another when it is waited for.
#[derive(Debug)]
pub struct SoloTransfer<B: Buffer> {
    mailbox: Arc<Mutex<Mailbox>>,
    tag: Tag,
    buffer: B,
    sends: bool,
    under_way: bool,
}

impl<B: Buffer> SoloTransfer<B> {
    fn idle(&self) -> Result<(), CommError> {
        if self.under_way { Err(CommError::UnderWay { tag: self.tag }) } else { Ok(()) }
    }
}

/// A panic elsewhere leaves the queues whole, so a poisoned lock is no reason to stop.
fn lock(mailbox: &Mutex<Mailbox>) -> MutexGuard<'_, Mailbox> {
    mailbox.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Buffer> Transfer<B> for SoloTransfer<B> {
    fn start(&mut self) -> Result<(), CommError> {
        self.idle()?;
        if self.sends {
            let mut mailbox = lock(&self.mailbox);
            let mut message = mailbox.spare.pop().unwrap_or_default();
            message.clear();
            message.extend_from_slice(self.buffer.bytes());
            mailbox.messages.entry(self.tag).or_default().push_back(message);
        }
        self.under_way = true;
        Ok(())
    }

    fn test(&mut self) -> Result<bool, CommError> {
        if self.under_way && !self.sends {
            let mut mailbox = lock(&self.mailbox);
            let Some(message) = mailbox.messages.get_mut(&self.tag).and_then(VecDeque::pop_front) else {
                return Ok(false);
            };
            let (sent, expected) = (message.len(), self.buffer.bytes().len());
            if sent == expected {
                self.buffer.bytes_mut().copy_from_slice(&message);
            }
            mailbox.spare.push(message);
            self.under_way = false;
            if sent != expected {
                return Err(CommError::Length { tag: self.tag, sent, expected });
            }
        }
        self.under_way = false;
        Ok(true)
    }

    /// Nobody else could still send the message, so an empty mailbox is an error ([`CommError::NeverSent`]) and not a
    /// reason to wait. The transfer stays under way.
    fn wait(&mut self) -> Result<(), CommError> {
        if self.test()? { Ok(()) } else { Err(CommError::NeverSent { tag: self.tag, from: 0 }) }
    }

    fn buffer(&self) -> Result<&B, CommError> {
        self.idle().map(|()| &self.buffer)
    }

    fn buffer_mut(&mut self) -> Result<&mut B, CommError> {
        self.idle().map(|()| &mut self.buffer)
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
        std::process::exit(code)
    }
}
