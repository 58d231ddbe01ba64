//! Messages directly from the memory of one device to that of another.
#![allow(unsafe_code)]

use super::{Connector, ExchangeRound, HaloProgress, HaloTransport};
use crate::backend::{Backend, Stream};
use crate::domain::{Result, Transport};
use crate::halo::trace::Track;
use crate::halo::zones::{ZoneEnd, ZoneMemory};
use crate::network::Message;
use std::time::Instant;

/// Transport that sends packed sites from device memory, and receives the neighbour's sites into the ghost zone.
pub(super) struct MessageTransport {
    end: ZoneEnd,
    sender: Box<dyn Message>,
    /// Receivers of the two copies of the ghost zone, which are used in turn.
    receivers: [Box<dyn Message>; 2],
    progress: HaloProgress,
    /// Start time of the exchange, if a timeline is requested.
    since: Option<Instant>,
}

impl MessageTransport {
    pub fn new(connector: &Connector<'_>, end: ZoneEnd, neighbour: usize) -> Result<Self> {
        let Connector { network, memory, .. } = *connector;
        let bytes = memory.layout.bytes(end);
        // SAFETY: packed memory is written after `begin` at the earliest, which waits for the message, as dropping does.
        let sender = unsafe { network.sender_at(neighbour, end.opposite().tag(), memory.packed_for(end), bytes)? };
        let receiver = |turn: usize| {
            let zone = memory.zones.address().wrapping_add(memory.layout.zone(turn, end));
            // SAFETY: kernels read the zone after the message's end, and have done so when the next one for this turn is admitted:
            // `ExchangeRound::is_packed` checks it.
            unsafe { network.receiver_at(neighbour, end.tag(), zone, bytes) }
        };
        let receivers = [receiver(0)?, receiver(1)?];
        Ok(MessageTransport { end, sender, receivers, progress: HaloProgress::default(), since: None })
    }
}

impl Drop for MessageTransport {
    fn drop(&mut self) {
        // The memory of the message is freed next, so the message must have been sent. An error is ignored: it was reported before, or the
        // neighbour has ended, and this process will end too.
        let _ = self.sender.wait();
    }
}

impl HaloTransport for MessageTransport {
    fn kind(&self) -> Transport {
        Transport::Mpi
    }
    fn begin(&mut self, _: &dyn Backend, memory: &ZoneMemory, _: Option<&Stream>) -> Result<*mut u8> {
        // The message of the last exchange must be sent before its memory is written again.
        self.sender.wait()?;
        Ok(memory.packed_for(self.end))
    }
    fn send(&mut self, round: &ExchangeRound<'_>, _: &Stream) -> Result {
        (self.progress, self.since) = (HaloProgress::default(), round.trace.now());
        Ok(())
    }
    fn poll(&mut self, round: &ExchangeRound<'_>, _: &Stream) -> Result<HaloProgress> {
        let (HaloProgress { sent, received }, receiver) =
            (&mut self.progress, &mut self.receivers[round.memory.turn()]);
        if !*sent && round.is_packed()? {
            self.sender.start()?;
            receiver.start()?;
            *sent = true;
        }
        if *sent && !*received && receiver.test()? {
            *received = true;
            round.trace.host(Track::End(self.end.mu, self.end.forward), "message", self.since.take());
        }
        Ok(self.progress)
    }
    fn finish(&self, _: &dyn Backend, _: Option<&Stream>) -> Result<Option<*mut u8>> {
        // The host has received the message, so no work of the device has to wait.
        Ok(None)
    }
}
