//! Repeated exchange of ghost zones of equal size with the neighbours.
use super::peers::Peers;
use super::trace::Trace;
use super::transport::{Connector, ExchangeRound, HaloTransport};
use super::zones::{ORDERED, ZoneEnd, ZoneLayout, ZoneMemory};
use crate::backend::{Backend, Event, Stream};
use crate::domain::{Domain, Result, Transport};
use comms::Direction;
use tracing::warn;

/// Ghost zones of one size, and the connections with the neighbours that fill them.
///
/// Each zone exists twice, and the two copies are used in turn. A neighbour may write directly into a zone as soon as it has received this
/// process's message of the previous exchange. That message was packed after all kernels that read the zone in the exchange before.
pub(super) struct Exchange {
    /// Backward and forward neighbour for each direction μ that has zones. Neighbours must be dropped before `memory`, which their messages
    /// use.
    neighbours: [Option<[Neighbour; 2]>; 4],
    memory: ZoneMemory,
    /// Event after which fields can be packed: their values are complete.
    given: Event,
    /// Event after which the exteriors are computed.
    done: Event,
    /// Access to the zones of the neighbours, which stays open.
    _peers: Peers,
}

/// Connection with the process at one end of a direction.
struct Neighbour {
    end: ZoneEnd,
    transport: Box<dyn HaloTransport>,
}

/// Streams for the backward and forward end of each partitioned direction.
pub(super) type Streams = [Option<[Stream; 2]>; 4];

/// Addresses of zones, indexed by `[μ][forward]`.
pub(crate) type Zones = [[*mut u8; 2]; 4];

/// Device, streams and timeline of an exchange.
#[derive(Clone, Copy)]
pub(super) struct ExchangeContext<'a> {
    pub backend: &'a dyn Backend,
    pub trace: Trace<'a>,
    /// Streams of the partitioned directions, one for each end of a direction.
    pub streams: &'a Streams,
    /// Stream that packs faces; `None` for the main stream.
    pub packing: Option<&'a Stream>,
}

impl Exchange {
    /// *Collective.* Makes an exchange of zones of `bytes[μ]` bytes; a direction without zones has 0. If the requested transport is not
    /// available, a warning is printed, unless `warned` is set already.
    pub fn new(domain: &Domain, bytes: [usize; 4], warned: &mut bool) -> Result<Self> {
        let (backend, network, transport) = (domain.backend(), domain.network(), domain.transport());
        let memory = ZoneMemory::new(backend, ZoneLayout::new(bytes))?;
        let (peers, problem) = Peers::new(backend, network, transport, &memory.zones, 2 * memory.layout.turn_bytes())?;
        let connector = Connector { backend, network, transport, peers: &peers, memory: &memory };
        let unreached = transport == Transport::Mpi && !connector.messages_reach_devices();
        let problem = problem.or_else(|| unreached.then(|| "the MPI library cannot access GPU memory".into()));
        if let Some(problem) = problem
            && !std::mem::replace(warned, true)
        {
            let path = if connector.messages_reach_devices() { "as MPI messages" } else { "through host memory" };
            warn!("{problem}; faces between the affected GPUs are sent {path}");
        }
        let neighbour = |mu: usize, direction: Direction| -> Result<Neighbour> {
            let end = ZoneEnd { mu, forward: usize::from(direction == Direction::Forward) };
            let transport = connector.connect(end, domain.grid().neighbour(network.rank(), mu, direction))?;
            Ok(Neighbour { end, transport })
        };
        let mut neighbours = [None, None, None, None];
        for (mu, slot) in neighbours.iter_mut().enumerate() {
            if memory.layout.has_zones(mu) {
                *slot = Some([neighbour(mu, Direction::Backward)?, neighbour(mu, Direction::Forward)?]);
            }
        }
        let (given, done) = (backend.event(false)?, backend.event(false)?);
        Ok(Exchange { neighbours, memory, given, done, _peers: peers })
    }
    /// Closes the memory of other processes, and returns this process's memory, which other processes may still have open.
    pub fn release_peers(self) -> ZoneMemory {
        self.memory
    }
    fn neighbours(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.iter().flatten().flatten()
    }
    /// Returns the transports by which faces leave this process.
    pub fn transports(&self) -> impl Iterator<Item = Transport> {
        self.neighbours().map(|neighbour| neighbour.transport.kind())
    }
    /// Begins the next exchange, and returns the places for packed faces. Place `[μ][forward]` is for the neighbour whose zone
    /// `[μ][forward]` the face fills: for a forward zone, this is the neighbour at the backward end. The kernels that pack run on the
    /// stream `packing`, or on the main stream.
    pub fn begin(&mut self, backend: &dyn Backend, packing: Option<&Stream>) -> Result<Zones> {
        if packing.is_some() {
            backend.mark(&self.given, None)?;
            backend.follow(&self.given, packing)?;
        }
        self.memory.count = self.memory.count.wrapping_add(1);
        let mut places = [[std::ptr::null_mut(); 2]; 4];
        for Neighbour { end, transport } in self.neighbours.iter_mut().flatten().flatten() {
            places[end.mu][end.opposite().forward] = transport.begin(backend, &self.memory, packing)?;
        }
        Ok(places)
    }
    /// Returns the addresses of this process's ghost zones in the present exchange.
    pub fn zones(&self) -> Zones {
        let mut zones = [[std::ptr::null_mut(); 2]; 4];
        for Neighbour { end, .. } in self.neighbours() {
            zones[end.mu][end.forward] = self.memory.zone(*end);
        }
        zones
    }
    /// Sends the faces that were packed since [`begin`](Self::begin), and fills the zones. Meanwhile it launches `interior`, and then
    /// `exterior` for each direction as soon as its zones are filled or are being copied to the device. The exteriors run beside the
    /// interior, on the stream that packed. Without `overlap`, interior and exteriors follow the exchange on the main stream.
    pub fn run(
        &mut self,
        context: ExchangeContext<'_>,
        overlap: bool,
        interior: &mut dyn FnMut() -> Result,
        exterior: &mut dyn FnMut(usize, Option<&Stream>) -> Result,
    ) -> Result {
        let ExchangeContext { backend, packing, .. } = context;
        self.send(context)?;
        if overlap {
            interior()?;
        }
        let beside = packing.filter(|_| overlap);
        let mut next = 0;
        while next < 4 {
            let (all_sent, received) = self.poll(context)?;
            while next < 4 && received[next] {
                // The last exterior is launched only after all messages are sent. Otherwise, another process might wait for this one.
                if next == 3 && !all_sent {
                    break;
                }
                if self.neighbours[next].is_some() {
                    self.finish(backend, next, beside)?;
                    if overlap {
                        exterior(next, beside)?;
                    }
                }
                next += 1;
            }
        }
        if !overlap {
            interior()?;
            (0..4).filter(|mu| self.neighbours[*mu].is_some()).try_for_each(|mu| exterior(mu, None))?;
        }
        // Later work of the main stream may write to the packed memory, and needs the results of this exchange.
        match (packing, beside) {
            (_, Some(_)) => {
                backend.mark(&self.done, beside)?;
                backend.follow(&self.done, None)?;
            }
            (Some(_), None) => backend.follow(&self.memory.ready, None)?,
            (None, None) => {}
        }
        Ok(())
    }
    /// Starts to send all packed faces, and prepares to receive.
    fn send(&mut self, context: ExchangeContext<'_>) -> Result {
        let ExchangeContext { backend, packing, .. } = context;
        let words: Vec<_> = self.neighbours().filter_map(|neighbour| neighbour.transport.packed_word()).collect();
        if !words.is_empty() {
            backend.signal(&words, self.memory.count, packing, ORDERED)?;
        }
        if self.neighbours().count() > words.len() || packing.is_some() {
            backend.mark(&self.memory.ready, packing)?;
        }
        self.for_each(context, |neighbour, round, stream| neighbour.transport.send(round, stream))
    }
    /// Progresses all messages. Returns whether all are sent, and for each direction whether the host has received those for its zones.
    fn poll(&mut self, context: ExchangeContext<'_>) -> Result<(bool, [bool; 4])> {
        let (mut all_sent, mut received) = (true, [true; 4]);
        self.for_each(context, |Neighbour { end, transport }, round, stream| {
            let progress = transport.poll(round, stream)?;
            all_sent &= progress.sent;
            received[end.mu] &= progress.received;
            Ok(())
        })?;
        Ok((all_sent, received))
    }
    /// Calls `work` for each neighbour, with the stream of its end.
    fn for_each(
        &mut self,
        context: ExchangeContext<'_>,
        mut work: impl FnMut(&mut Neighbour, &ExchangeRound<'_>, &Stream) -> Result,
    ) -> Result {
        let round = ExchangeRound::new(context.backend, context.trace, &self.memory);
        // A direction with a neighbour always has streams.
        let streams = context.streams.iter().map(|streams| streams.iter().flatten());
        let pairs = self.neighbours.iter_mut().zip(streams);
        let mut pairs = pairs.flat_map(|(neighbours, streams)| neighbours.iter_mut().flatten().zip(streams));
        pairs.try_for_each(|(neighbour, stream)| work(neighbour, &round, stream))
    }
    /// Makes a stream, or the main stream, wait until the zones of a direction are filled.
    fn finish(&self, backend: &dyn Backend, mu: usize, stream: Option<&Stream>) -> Result {
        let mut words = Vec::with_capacity(2);
        for neighbour in self.neighbours[mu].iter().flatten() {
            words.extend(neighbour.transport.finish(backend, stream)?);
        }
        if words.is_empty() { Ok(()) } else { Ok(backend.await_signal(&words, self.memory.count, stream, ORDERED)?) }
    }
}
