//! Transports of packed sites to a neighbour's ghost zone, and of the neighbour's sites to this process's ghost zone.
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

/// Connection with the neighbour at one end of a partitioned direction. It sends the sites for the neighbour's ghost zone, and fills the
/// ghost zone of this end. Each exchange calls the methods in the order of their declaration.
pub(super) trait HaloTransport: Send {
    /// Returns the kind of transport by which sites leave this process.
    fn kind(&self) -> Transport;
    /// Waits until the memory for packed sites is free, and returns its address. Kernels on the stream `packing`, or on the main stream,
    /// write there.
    fn begin(&mut self, backend: &dyn Backend, memory: &ZoneMemory, packing: Option<&Stream>) -> Result<*mut u8>;
    /// Returns the address of the neighbour's word that counts exchanges, if the kernel that packs writes directly into the ghost zone.
    fn packed_word(&self) -> Option<*mut u8> {
        None
    }
    /// Queues the work that follows packing on `stream`, and starts to receive the neighbour's sites.
    fn send(&mut self, round: &ExchangeRound<'_>, stream: &Stream) -> Result;
    /// Starts messages that are ready, and returns the progress of the exchange on the host.
    fn poll(&mut self, round: &ExchangeRound<'_>, stream: &Stream) -> Result<HaloProgress>;
    /// Makes later work of `stream` wait for the ghost zone. Alternatively returns the address of a word; later work must wait until the
    /// word has reached the number of the exchange.
    fn finish(&self, backend: &dyn Backend, stream: Option<&Stream>) -> Result<Option<*mut u8>>;
}

/// State of an exchange in progress.
pub(super) struct ExchangeRound<'a> {
    backend: &'a dyn Backend,
    trace: Trace<'a>,
    memory: &'a ZoneMemory,
    /// Whether all faces are packed; `None` if the device has not been queried.
    packed: Cell<Option<bool>>,
}

impl<'a> ExchangeRound<'a> {
    pub fn new(backend: &'a dyn Backend, trace: Trace<'a>, memory: &'a ZoneMemory) -> Self {
        ExchangeRound { backend, trace, memory, packed: Cell::new(None) }
    }
    /// Whether all faces are packed. The kernels that read the ghost zones two exchanges ago are then done too, because they came before
    /// the packing. Queries the device at most once in a call of `poll` for all neighbours.
    fn is_packed(&self) -> Result<bool> {
        let packed = self.packed.get().map_or_else(|| self.backend.reached(&self.memory.ready), Ok)?;
        self.packed.set(Some(packed));
        Ok(packed)
    }
    /// Queues a copy on the stream of an end, and records it in the timeline under a name.
    fn copy(&self, end: ZoneEnd, stream: &Stream, name: &str, copy: &mut dyn FnMut() -> Result) -> Result {
        self.trace.device(self.backend, Track::End(end.mu, end.forward), Some(stream), &|| name.into(), copy)
    }
}

/// Progress of an exchange with one neighbour, as far as the host is involved.
#[derive(Clone, Copy, Default)]
pub(super) struct HaloProgress {
    pub sent: bool,
    pub received: bool,
}

/// Maker of the connections of an exchange with the neighbours.
pub(super) struct Connector<'a> {
    pub backend: &'a dyn Backend,
    pub network: &'a dyn Network,
    /// Requested transport of faces.
    pub transport: Transport,
    pub peers: &'a Peers,
    pub memory: &'a ZoneMemory,
}

impl Connector<'_> {
    /// Whether messages are sent directly from the memory of the device and received into it. With a network that reaches devices, this is
    /// the case unless the transport `Host` is requested. With a network that reaches host memory, it is the case only on a CPU and if the
    /// transport `Mpi` is requested.
    pub fn messages_reach_devices(&self) -> bool {
        match self.network.reach() {
            Reach::Devices => self.transport != Transport::Host,
            Reach::Host => self.transport == Transport::Mpi && self.backend.name() == "cpu",
            Reach::Buffers => false,
        }
    }
    /// Connects `end` with the process `neighbour` by the best available transport.
    pub fn connect(&self, end: ZoneEnd, neighbour: usize) -> Result<Box<dyn HaloTransport>> {
        Ok(match self.peers.zones_of(self.backend, neighbour) {
            Some(base) => Box::new(PeerTransport::new(self, end, base)?),
            None if self.messages_reach_devices() => Box::new(MessageTransport::new(self, end, neighbour)?),
            None => Box::new(StagedTransport::new(self, end, neighbour)?),
        })
    }
}
