//! Messages through page-locked host memory.
use super::{Connector, ExchangeRound, HaloProgress, HaloTransport};
use crate::backend::{Backend, Event, Pinned, Stream};
use crate::domain::{Result, Transport};
use crate::halo::trace::Track;
use crate::halo::zones::{ORDERED, ZoneEnd, ZoneMemory};
use crate::network::{HostBuffer, Message};
use std::time::Instant;

/// Transport that copies packed sites to the host and sends them from there, and copies received sites from the host to the ghost zone.
pub(super) struct StagedTransport {
    end: ZoneEnd,
    outgoing: Pinned,
    sender: Box<dyn Message>,
    /// Event after which the copy to `outgoing` is done.
    fetched: Event,
    incoming: Pinned,
    receiver: Box<dyn Message>,
    /// Event after which the copy from `incoming` is done.
    put: Event,
    progress: HaloProgress,
    /// Start time of the exchange, if a timeline is requested.
    since: Option<Instant>,
}

impl StagedTransport {
    pub fn new(connector: &Connector<'_>, end: ZoneEnd, neighbour: usize) -> Result<Self> {
        let Connector { backend, network, memory, .. } = *connector;
        let pinned = || backend.pinned(memory.layout.bytes(end), "messages", ORDERED);
        let buffer = |memory: &Pinned| HostBuffer(Box::new(memory.clone()));
        let (outgoing, incoming) = (pinned()?, pinned()?);
        Ok(StagedTransport {
            end,
            sender: network.sender(neighbour, end.opposite().tag(), buffer(&outgoing))?,
            outgoing,
            fetched: backend.event(false)?,
            receiver: network.receiver(neighbour, end.tag(), buffer(&incoming))?,
            incoming,
            put: backend.event(false)?,
            progress: HaloProgress::default(),
            since: None,
        })
    }
}

impl HaloTransport for StagedTransport {
    fn kind(&self) -> Transport {
        Transport::Host
    }
    fn begin(&mut self, _: &dyn Backend, memory: &ZoneMemory, _: Option<&Stream>) -> Result<*mut u8> {
        // The packed memory is free: in the last exchange, its copy to the host ended before the message was sent.
        Ok(memory.packed_for(self.end))
    }
    fn send(&mut self, round: &ExchangeRound<'_>, stream: &Stream) -> Result {
        let ExchangeRound { backend, memory, .. } = round;
        // The last exchange's copy from `incoming` must end before the next message is received.
        while !backend.reached(&self.put)? {
            std::hint::spin_loop();
        }
        self.receiver.start()?;
        (self.progress, self.since) = (HaloProgress::default(), round.trace.now());
        // The last message must be sent before `outgoing` is written again.
        self.sender.wait()?;
        backend.follow(&memory.ready, Some(stream))?;
        round.copy(self.end, stream, "copy to the host", &mut || {
            Ok(backend.fetch(&memory.packed, memory.layout.offset(self.end), &self.outgoing, stream)?)
        })?;
        Ok(backend.mark(&self.fetched, Some(stream))?)
    }
    fn poll(&mut self, round: &ExchangeRound<'_>, stream: &Stream) -> Result<HaloProgress> {
        let (ExchangeRound { backend, memory, .. }, end) = (round, self.end);
        let HaloProgress { sent, received } = &mut self.progress;
        if !*sent && backend.reached(&self.fetched)? {
            self.sender.start()?;
            *sent = true;
        }
        if !*received && self.receiver.test()? {
            round.trace.host(Track::End(end.mu, end.forward), "message", self.since.take());
            let zone = memory.layout.zone(memory.turn(), end);
            round.copy(end, stream, "copy from the host", &mut || {
                Ok(backend.put(&self.incoming, &memory.zones, zone, stream)?)
            })?;
            backend.mark(&self.put, Some(stream))?;
            *received = true;
        }
        Ok(self.progress)
    }
    fn finish(&self, backend: &dyn Backend, stream: Option<&Stream>) -> Result<Option<*mut u8>> {
        backend.follow(&self.put, stream)?;
        Ok(None)
    }
}
