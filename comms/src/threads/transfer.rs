//! Messages between threads.

use super::world::{ThreadWorld, Wait};
use crate::communicator::{Buffer, CommError, Tag, Transfer};
use crate::mailbox::{Lane, Ticket};
use std::sync::Arc;
use std::thread;

/// Message between ranks of [`Threads`](crate::Threads): copied once when it is started, and again when the receiver
/// waits for it.
#[derive(Debug)]
pub struct ThreadTransfer<B: Buffer> {
    buffer: B,
    state: State,
}

/// State of a transfer without its buffer, so that the buffer can be moved out.
#[derive(Debug)]
struct State {
    world: Arc<ThreadWorld>,
    rank: usize,
    lane: Lane,
    sends: bool,
    /// Ticket of the message while it is under way.
    ticket: Option<Ticket>,
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket
            && !self.sends
        {
            self.world.lock().mailbox.cancel(self.lane, ticket);
        }
    }
}

impl State {
    fn idle(&self) -> Result<(), CommError> {
        if self.ticket.is_some() { Err(CommError::UnderWay { tag: self.lane.tag }) } else { Ok(()) }
    }

    /// Returns the condition on which a transfer under way waits.
    fn wait_of(&self, ticket: Ticket) -> Wait {
        let lane = self.lane;
        if self.sends { Wait::Receiver { lane, ticket } } else { Wait::Message { lane, ticket } }
    }
}

impl<B: Buffer> ThreadTransfer<B> {
    pub(super) fn send(world: &Arc<ThreadWorld>, rank: usize, to: usize, tag: Tag, buffer: B) -> Self {
        let lane = Lane { from: rank, to, tag };
        Self { buffer, state: State { world: Arc::clone(world), rank, lane, sends: true, ticket: None } }
    }

    pub(super) fn receive(world: &Arc<ThreadWorld>, rank: usize, from: usize, tag: Tag, buffer: B) -> Self {
        let lane = Lane { from, to: rank, tag };
        Self { buffer, state: State { world: Arc::clone(world), rank, lane, sends: false, ticket: None } }
    }

    /// Copies a message that has arrived into the buffer.
    fn receive_message(&mut self, message: Vec<u8>) -> Result<(), CommError> {
        let (sent, expected) = (message.len(), self.buffer.bytes().len());
        if sent == expected {
            self.buffer.bytes_mut().copy_from_slice(&message);
        }
        self.state.world.lock().mailbox.recycle(message);
        if sent == expected { Ok(()) } else { Err(CommError::Length { tag: self.state.lane.tag, sent, expected }) }
    }
}

impl<B: Buffer> Transfer<B> for ThreadTransfer<B> {
    fn start(&mut self) -> Result<(), CommError> {
        self.state.idle()?;
        let State { world, rank, lane, sends, .. } = &self.state;
        let mut state = world.enter(*rank)?;
        let ticket = if *sends {
            let mut message = state.mailbox.memory();
            // The copy is made without the lock. Messages of one lane come from one thread, so they keep their order.
            drop(state);
            message.extend_from_slice(self.buffer.bytes());
            state = world.lock();
            let ticket = state.mailbox.send(*lane, message);
            world.wake(lane.to);
            ticket
        } else {
            let ticket = state.mailbox.post(*lane);
            world.wake(lane.from);
            ticket
        };
        drop(state);
        self.state.ticket = Some(ticket);
        Ok(())
    }

    fn test(&mut self) -> Result<bool, CommError> {
        let Some(ticket) = self.state.ticket else { return Ok(true) };
        let mut state = self.state.world.enter(self.state.rank)?;
        if self.state.sends {
            if state.mailbox.is_taken(self.state.lane, ticket) {
                drop(state);
                self.state.ticket = None;
                return Ok(true);
            }
        } else if let Some(message) = state.mailbox.take(ticket) {
            drop(state);
            self.state.ticket = None;
            return self.receive_message(message).map(|()| true);
        }
        state.can_end(&self.state.wait_of(ticket), false)?;
        drop(state);
        // A caller that polls `test` in a loop waits for another thread, which may need this core.
        thread::yield_now();
        Ok(false)
    }

    fn wait(&mut self) -> Result<(), CommError> {
        let Some(ticket) = self.state.ticket else { return Ok(()) };
        let world = &self.state.world;
        let mut state = world.block(self.state.rank, world.enter(self.state.rank)?, self.state.wait_of(ticket))?;
        let message = state.mailbox.take(ticket);
        drop(state);
        self.state.ticket = None;
        message.map_or(Ok(()), |message| self.receive_message(message))
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
