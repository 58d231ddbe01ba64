//! Repeated exchange of ghost zones of one size with the neighbours.
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
/// Zones exist twice and take turns. A neighbour that writes directly into them may do so as soon as it has this process's message of the
/// previous exchange, which was packed after the kernels that read the zones of the exchange before that.
pub(super) struct Exchange {
    /// Backward and forward neighbour `[μ]` in the directions that have zones. Declared before the memory that their messages use, so that
    /// it is dropped first.
    neighbours: [Option<[Neighbour; 2]>; 4],
    memory: ZoneMemory,
    /// Event after which fields can be packed.
    given: Event,
    /// Event after which the exteriors are done.
    done: Event,
    /// Access to the neighbours' zones, kept open.
    _peers: Peers,
}

/// The process at one end of a direction.
struct Neighbour {
    end: ZoneEnd,
    transport: Box<dyn HaloTransport>,
}

/// A stream for each end of each direction that is cut.
pub(super) type Streams = [Option<[Stream; 2]>; 4];

/// Addresses of zones: `[μ][forward]`.
pub(crate) type Zones = [[*mut u8; 2]; 4];

/// Device, streams and timeline of an exchange.
#[derive(Clone, Copy)]
pub(super) struct ExchangeContext<'a> {
    pub backend: &'a dyn Backend,
    pub trace: Trace<'a>,
    /// Streams of the ends of directions.
    pub streams: &'a Streams,
    /// Stream that packed; `None` for the main order of work.
    pub packing: Option<&'a Stream>,
}

impl Exchange {
    /// *Collective.* Makes an exchange for zones of `bytes[μ]` bytes; 0 where no zones are needed. Warns of failed transports, unless a
    /// warning was printed before (`warned`).
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
            warn!("{problem}; data between GPUs goes through host memory");
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
    /// Closes the memory of other processes, and returns the memory that they may still have open.
    pub fn release_peers(self) -> ZoneMemory {
        self.memory
    }
    fn neighbours(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.iter().flatten().flatten()
    }
    /// Returns the transports by which sites leave this process.
    pub fn transports(&self) -> impl Iterator<Item = Transport> {
        self.neighbours().map(|neighbour| neighbour.transport.kind())
    }
    /// Begins the next exchange. Returns where kernels put what others need: `[μ][forward]` is for the neighbour that owns zone
    /// `[μ][forward]`, which for `forward` is the one at the backward end. The kernels run on the stream `packing`, or in the main order.
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
    /// Returns the addresses of the ghost zones in this exchange.
    pub fn zones(&self) -> Zones {
        let mut zones = [[std::ptr::null_mut(); 2]; 4];
        for Neighbour { end, .. } in self.neighbours() {
            zones[end.mu][end.forward] = self.memory.zone(*end);
        }
        zones
    }
    /// Sends what the launches since [`begin`](Self::begin) have packed and fills the zones; meanwhile launches `interior`, and `exterior`
    /// for one direction after the other as soon as its zones are on their way to the device. Exteriors go to the stream that packed,
    /// beside the interior. With `overlap` off, all is in the main order and the interior waits too.
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
                // The last of the exteriors waits until all messages are sent, so that the other processes can continue.
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
        // Later work may write to the packed memory, and needs the results of this exchange.
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
    /// Starts everything that is sent, and prepares to receive.
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
    /// Progresses all messages. Returns whether all are sent, and for each direction whether those for its zones have arrived, as far as
    /// the host is involved.
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
    /// Applies `work` to one neighbour after the other, with the stream of its end.
    fn for_each(
        &mut self,
        context: ExchangeContext<'_>,
        mut work: impl FnMut(&mut Neighbour, &ExchangeRound<'_>, &Stream) -> Result,
    ) -> Result {
        let round = ExchangeRound::new(context.backend, context.trace, &self.memory);
        // Where an exchange has a neighbour, there are streams.
        let streams = context.streams.iter().map(|streams| streams.iter().flatten());
        let pairs = self.neighbours.iter_mut().zip(streams);
        let mut pairs = pairs.flat_map(|(neighbours, streams)| neighbours.iter_mut().flatten().zip(streams));
        pairs.try_for_each(|(neighbour, stream)| work(neighbour, &round, stream))
    }
    /// Makes a stream, or the main order of work, wait until a direction's zones are filled.
    fn finish(&self, backend: &dyn Backend, mu: usize, stream: Option<&Stream>) -> Result {
        let mut words = Vec::with_capacity(2);
        for neighbour in self.neighbours[mu].iter().flatten() {
            words.extend(neighbour.transport.finish(backend, stream)?);
        }
        if words.is_empty() { Ok(()) } else { Ok(backend.await_signal(&words, self.memory.count, stream, ORDERED)?) }
    }
}
