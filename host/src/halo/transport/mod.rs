//! Transports of packed sites to a neighbour's ghost zone, and of the neighbour's to this process's.
mod message;
mod peer;
mod staged;

use super::peers::Peers;
use super::trace::{Trace, Track};
use super::zones::{ZoneEnd, ZoneMemory};
use crate::backend::{Backend, Stream};
use crate::domain::{Result, Transport};
use crate::network::{Network, Reach};
use message::MessageTransport;
use peer::PeerTransport;
use staged::StagedTransport;
use std::cell::Cell;

/// The connection with the neighbour at one end of a partitioned direction: sends what the neighbour's ghost zone needs, and fills the
/// ghost zone of this end. In each exchange the methods are called in the order in which they are declared here.
pub(super) trait HaloTransport: Send {
    /// Returns the transport by which sites leave this process.
    fn kind(&self) -> Transport;
    /// Returns where a kernel on `packing` puts the sites for the neighbour, once that memory is free.
    fn begin(&mut self, backend: &dyn Backend, memory: &ZoneMemory, packing: Option<&Stream>) -> Result<*mut u8>;
    /// Returns the neighbour's word that counts exchanges, if the kernel that packs fills the ghost zone directly.
    fn packed_word(&self) -> Option<*mut u8> {
        None
    }
    /// Queues on `stream` what follows the packing, and starts to receive the neighbour's sites.
    fn send(&mut self, round: &ExchangeRound<'_>, stream: &Stream) -> Result;
    /// Starts what the host has to start, and returns the progress of the exchange on the host.
    fn poll(&mut self, round: &ExchangeRound<'_>, stream: &Stream) -> Result<HaloProgress>;
    /// Makes later work of `stream` wait for the ghost zone, or returns the word that has to count up before that work.
    fn finish(&self, backend: &dyn Backend, stream: Option<&Stream>) -> Result<Option<*mut u8>>;
}

/// State of an exchange that is under way.
pub(super) struct ExchangeRound<'a> {
    backend: &'a dyn Backend,
    trace: Trace<'a>,
    memory: &'a ZoneMemory,
    /// Whether everything is packed, if the device has been queried.
    packed: Cell<Option<bool>>,
}

impl<'a> ExchangeRound<'a> {
    pub fn new(backend: &'a dyn Backend, trace: Trace<'a>, memory: &'a ZoneMemory) -> Self {
        ExchangeRound { backend, trace, memory, packed: Cell::new(None) }
    }
    /// Whether everything is packed, and so the kernels are done that read the ghost zones of the last but one exchange, which came before
    /// the packing. Queries the device once.
    fn is_packed(&self) -> Result<bool> {
        let packed = self.packed.get().map_or_else(|| self.backend.reached(&self.memory.ready), Ok)?;
        self.packed.set(Some(packed));
        Ok(packed)
    }
    /// Queues a copy on the stream of an end, and records it under a name.
    fn copy(&self, end: ZoneEnd, stream: &Stream, name: &str, copy: &mut dyn FnMut() -> Result) -> Result {
        self.trace.device(self.backend, Track::End(end.mu, end.forward), Some(stream), &|| name.into(), copy)
    }
}

/// Progress of an exchange with a neighbour on the host.
#[derive(Clone, Copy, Default)]
pub(super) struct HaloProgress {
    pub sent: bool,
    pub received: bool,
}

/// Connects the ends of an exchange with their neighbours.
pub(super) struct Connector<'a> {
    pub backend: &'a dyn Backend,
    pub network: &'a dyn Network,
    /// The requested transport.
    pub transport: Transport,
    pub peers: &'a Peers,
    pub memory: &'a ZoneMemory,
}

impl Connector<'_> {
    /// Whether messages come from and go to the device's memory: where the network reaches it, but on a CPU only if that is requested.
    pub fn messages_reach_devices(&self) -> bool {
        match self.network.reach() {
            Reach::Devices => self.transport != Transport::Host,
            Reach::Host => self.transport == Transport::Mpi && self.backend.name() == "cpu",
            Reach::Buffers => false,
        }
    }
    /// Connects `end` with process `neighbour` by the best available transport.
    pub fn connect(&self, end: ZoneEnd, neighbour: usize) -> Result<Box<dyn HaloTransport>> {
        Ok(match self.peers.zones_of(self.backend, neighbour) {
            Some(base) => Box::new(PeerTransport::new(self, end, base)?),
            None if self.messages_reach_devices() => Box::new(MessageTransport::new(self, end, neighbour)?),
            None => Box::new(StagedTransport::new(self, end, neighbour)?),
        })
    }
}
