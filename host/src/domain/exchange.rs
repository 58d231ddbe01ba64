//! Messages around one kind of field, again and again.
#![allow(unsafe_code)]

use super::Result;
use super::peers::Peers;
use super::trace::{Trace, Track};
use super::transport::Transport;
use crate::backend::{Backend, DeviceBuffer, Event, Ordered, Pinned, Stream};
use crate::network::{HostBuffer, Message, Network, Reach};
use comms::{Direction, ProcessGrid};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tracing::warn;

/// What this module and [`peers`](super::peers) keep to.
// SAFETY: memory of messages is touched by a copy or by a message only behind the event, or the end, of what came before;
// zones take turns (see `Exchange`); and addresses of peers are within zones that they have shared, which stay open as long
// as the exchange.
pub(super) const ORDERED: Ordered = unsafe { Ordered::promised() };

/// The ghost zones of one kind of field and the messages that fill them.
///
/// Zones are there twice and take turns. A neighbour that writes into them by itself may do so as soon as it has our
/// message of the exchange before: that was packed after the kernels that read the last but one.
pub(crate) struct Exchange {
    /// `[μ]`: backward and forward end of the directions that have zones. Before the memory that their messages use.
    ends: [Option<[ExchangeEnd; 2]>; 4],
    /// What others sent: `[turn][μ][forward]`, one zone behind the other; then a word for each zone, in which those who
    /// write into it count the exchanges.
    zones: DeviceBuffer,
    /// What others are sent: at the same places what their zone `[μ][forward]` needs.
    packed: DeviceBuffer,
    /// Bytes of all zones of a turn.
    total: usize,
    /// Number of the last exchange.
    count: u32,
    /// There are fields to pack.
    given: Event,
    /// They were packed.
    ready: Event,
    /// The exteriors are done.
    done: Event,
    /// Keeps the neighbours' zones accessible.
    _peers: Peers,
}

/// One end of one direction.
struct ExchangeEnd {
    track: Track,
    /// Where its zone is, and what the neighbour beyond it gets in `packed`.
    offset: usize,
    bytes: usize,
    outgoing: Outgoing,
    incoming: Incoming,
}

/// How the neighbour gets what it needs.
enum Outgoing {
    /// Through memory of the host.
    Message {
        memory: Pinned,
        sender: Box<dyn Message>,
        /// The copy to `memory` is done.
        copied: Event,
        sent: bool,
    },
    /// By a message from this device's memory.
    Straight { sender: Box<dyn Message>, sent: bool },
    /// Into its memory: its zone in both turns, and the word of that zone.
    Peer {
        zones: [Address; 2],
        word: Address,
        /// By the kernel that packs, or by a copy afterwards.
        direct: bool,
        /// The copy is done.
        copied: Event,
    },
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // The memory goes next. An error here has been met before, or its process is gone and so will this one be.
        if let Outgoing::Straight { sender, .. } = self {
            let _ = sender.wait();
        }
    }
}

/// How a zone is filled.
enum Incoming {
    Message {
        memory: Pinned,
        receiver: Box<dyn Message>,
        /// The copy from `memory` is done.
        copied: Event,
        received: bool,
        /// When the message was awaited first, for a timeline.
        since: Option<Instant>,
    },
    /// By a message to this device's memory, one for each turn.
    Straight { receivers: [Box<dyn Message>; 2], started: bool, received: bool, since: Option<Instant> },
    /// By the neighbour itself, which then counts on in the word.
    Peer { word: Address },
}

/// Of device memory. A number, so that it can go from thread to thread.
#[derive(Clone, Copy)]
struct Address(usize);

impl Address {
    fn new(pointer: *mut u8) -> Self {
        Address(pointer as usize)
    }
    fn pointer(self) -> *mut u8 {
        self.0 as *mut u8
    }
}

/// A stream for each end of each direction that is cut.
pub(crate) type Streams = [Option<[Stream; 2]>; 4];

/// Addresses of zones: `[μ][forward]`.
pub(crate) type Zones = [[*mut u8; 2]; 4];

impl ExchangeEnd {
    fn is_straight(&self) -> bool {
        matches!(self.outgoing, Outgoing::Straight { .. }) || matches!(self.incoming, Incoming::Straight { .. })
    }
}

/// Whether messages come from and go to the device's memory: where the network reaches it, but on a CPU only when that is
/// asked for.
fn is_straight(backend: &dyn Backend, network: &dyn Network, transport: Transport) -> bool {
    match network.reach() {
        Reach::Devices => transport != Transport::Host,
        Reach::Host => transport == Transport::Mpi && backend.name() == "cpu",
        Reach::Buffers => false,
    }
}

fn with_streams<'a>(
    ends: &'a mut [Option<[ExchangeEnd; 2]>; 4],
    streams: &'a Streams,
) -> impl Iterator<Item = (&'a mut ExchangeEnd, &'a Stream)> {
    // Where an exchange has an end, there are streams.
    let pairs = ends.iter_mut().zip(streams).filter_map(|(ends, streams)| Some((ends.as_mut()?, streams.as_ref()?)));
    pairs.flat_map(|(ends, streams)| ends.iter_mut().zip(streams))
}

/// How faces leave a process, one bit each.
pub(crate) struct Route;

impl Route {
    /// Into the memory of the neighbour's device.
    pub const PEER: u8 = 1;
    /// By messages from the memory of this device.
    pub const STRAIGHT: u8 = 2;
    /// Through the memory of the host.
    pub const HOST: u8 = 4;
}

/// Bytes between the words of zones.
const WORD: usize = 16;

/// What an exchange runs with.
#[derive(Clone, Copy)]
pub(crate) struct ExchangeContext<'a> {
    pub backend: &'a dyn Backend,
    pub trace: &'a Trace<'a>,
    /// Those of the ends.
    pub streams: &'a Streams,
    /// The stream that packed; `None` for the main order of work.
    pub packing: Option<&'a Stream>,
}

impl Exchange {
    /// Closes the memory of others; what they may still have open comes back.
    pub fn release_peers(self) -> [DeviceBuffer; 2] {
        let Exchange { zones, packed, .. } = self;
        [zones, packed]
    }
    /// Which routes it has, as bits of [`Route`].
    pub fn routes(&self) -> u8 {
        let way = |end: &ExchangeEnd| match &end.outgoing {
            Outgoing::Peer { .. } => Route::PEER,
            Outgoing::Straight { .. } => Route::STRAIGHT,
            Outgoing::Message { .. } => Route::HOST,
        };
        self.ends.iter().flatten().flatten().map(way).fold(0, |all, one| all | one)
    }
    /// *Collective.* For zones of `bytes[μ]` bytes; 0 where no zones are wanted. Warns of what went wrong, unless that was
    /// `warned` before.
    pub fn new(
        backend: &dyn Backend,
        grid: &ProcessGrid,
        network: &dyn Network,
        transport: Transport,
        bytes: [usize; 4],
        warned: &AtomicBool,
    ) -> Result<Self> {
        let total = 2 * bytes.iter().sum::<usize>();
        let zones = backend.allocate_apart(2 * total + 8 * WORD, "ghost zones")?;
        let packed = backend.allocate_apart(total, "what other processes' ghost zones get")?;
        let offset = |mu: usize, forward: usize| 2 * bytes[..mu].iter().sum::<usize>() + forward * bytes[mu];
        let word = |mu: usize, forward: usize| 2 * total + WORD * (2 * mu + forward);
        let rank = network.rank();
        let (peers, problem) = Peers::new(backend, network, transport, &zones, 2 * total)?;
        let straight = is_straight(backend, network, transport);
        let problem = match problem {
            None if transport == Transport::Mpi && !straight => {
                Some("the MPI library does not reach the memory of GPUs".into())
            }
            problem => problem,
        };
        if let Some(problem) = problem
            && !warned.swap(true, Ordering::Relaxed)
        {
            warn!("{problem}; data between GPUs goes through the memory of the host");
        }
        let end = |mu: usize, direction: Direction| -> Result<ExchangeEnd> {
            let neighbour = grid.neighbour(rank, mu, direction);
            let here = usize::from(direction == Direction::Forward);
            // Messages are named after the zone that they fill: that beyond the receiver's forward or backward end.
            let there = 1 - here;
            let tag = |forward: usize| (2 * mu + forward) as u16;
            let memory = || backend.pinned(bytes[mu], "messages", ORDERED);
            let buffer = |memory: &Pinned| HostBuffer(Box::new(memory.clone()));
            let outgoing = match peers.zones_of(backend, neighbour) {
                Some(base) => {
                    let zone = |turn: usize| Address::new(base.wrapping_add(turn * total + offset(mu, there)));
                    Outgoing::Peer {
                        zones: [zone(0), zone(1)],
                        word: Address::new(base.wrapping_add(word(mu, there))),
                        direct: transport != Transport::Copy,
                        copied: backend.event(false)?,
                    }
                }
                None if straight => {
                    let address = packed.address().wrapping_add(offset(mu, here));
                    // SAFETY: `packed` is written in `begin` at the earliest, which waits for the message, as dropping
                    // does.
                    let sender = unsafe { network.sender_at(neighbour, tag(there), address, bytes[mu])? };
                    Outgoing::Straight { sender, sent: false }
                }
                None => {
                    let memory = memory()?;
                    let sender = network.sender(neighbour, tag(there), buffer(&memory))?;
                    Outgoing::Message { memory, sender, copied: backend.event(false)?, sent: false }
                }
            };
            let incoming = if peers.reaches_us(neighbour) {
                Incoming::Peer { word: Address::new(zones.address().wrapping_add(word(mu, here))) }
            } else if straight {
                let receiver = |turn: usize| {
                    let address = zones.address().wrapping_add(turn * total + offset(mu, here));
                    // SAFETY: kernels read the zone after the message's end, and have done so when the next one for this
                    // turn is let in: see `progress`.
                    unsafe { network.receiver_at(neighbour, tag(here), address, bytes[mu]) }
                };
                let receivers = [receiver(0)?, receiver(1)?];
                Incoming::Straight { receivers, started: false, received: false, since: None }
            } else {
                let memory = memory()?;
                let receiver = network.receiver(neighbour, tag(here), buffer(&memory))?;
                Incoming::Message { memory, receiver, copied: backend.event(false)?, received: false, since: None }
            };
            let track = Track::End(mu, here);
            Ok(ExchangeEnd { track, offset: offset(mu, here), bytes: bytes[mu], outgoing, incoming })
        };
        let mut ends = [None, None, None, None];
        for (mu, slot) in ends.iter_mut().enumerate() {
            if bytes[mu] > 0 {
                *slot = Some([end(mu, Direction::Backward)?, end(mu, Direction::Forward)?]);
            }
        }
        let (given, ready, done) = (backend.event(false)?, backend.event(false)?, backend.event(false)?);
        Ok(Exchange { ends, zones, packed, total, count: 0, given, ready, done, _peers: peers })
    }
    fn turn(&self) -> usize {
        self.count as usize & 1
    }
    /// Begins the next exchange: where kernels put what others need, at `[μ][forward]` for the neighbour whose zone
    /// `[μ][forward]` it is: the one behind the backward end for `forward`. They do so on a stream, or in the main order.
    pub fn begin(&mut self, backend: &dyn Backend, packing: Option<&Stream>) -> Result<Zones> {
        if packing.is_some() {
            backend.mark(&self.given, None)?;
            backend.follow(&self.given, packing)?;
        }
        self.count = self.count.wrapping_add(1);
        let turn = self.turn();
        let mut places = [[std::ptr::null_mut(); 2]; 4];
        for (places, ends) in places.iter_mut().zip(&mut self.ends) {
            let Some(ends) = ends else { continue };
            for (here, end) in ends.iter_mut().enumerate() {
                places[1 - here] = match &mut end.outgoing {
                    Outgoing::Peer { zones, direct: true, .. } => zones[turn].pointer(),
                    outgoing => {
                        // What the last exchange sent is still read from this memory.
                        match outgoing {
                            Outgoing::Peer { copied, .. } => backend.follow(copied, packing)?,
                            Outgoing::Straight { sender, .. } => sender.wait()?,
                            Outgoing::Message { .. } => {}
                        }
                        self.packed.address().wrapping_add(end.offset)
                    }
                };
            }
        }
        Ok(places)
    }
    /// Where kernels find what lies beyond, in this exchange.
    pub fn zones(&self) -> Zones {
        let base = self.zones.address().wrapping_add(self.turn() * self.total);
        let mut zones = [[std::ptr::null_mut(); 2]; 4];
        for (zones, ends) in zones.iter_mut().zip(&self.ends) {
            let Some(ends) = ends else { continue };
            for (zone, end) in zones.iter_mut().zip(ends) {
                *zone = base.wrapping_add(end.offset);
            }
        }
        zones
    }
    /// Sends what the launches since [`begin`](Self::begin) have packed and lets the zones be filled; meanwhile launches
    /// `interior`, and `exterior` for one direction after the other as soon as its zones are on their way to the device.
    /// Exteriors go to the stream that packed, beside the interior. With `overlap` off, all is in the main order and the
    /// interior waits too.
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
            let all_sent = self.progress(context)?;
            while next < 4 && self.has_all(next) {
                // The last of the exteriors waits until all messages are sent, so that the other processes can continue.
                if next == 3 && !all_sent {
                    break;
                }
                if self.ends[next].is_some() {
                    self.follow(backend, next, beside)?;
                    if overlap {
                        exterior(next, beside)?;
                    }
                }
                next += 1;
            }
        }
        if !overlap {
            interior()?;
            (0..4).filter(|mu| self.ends[*mu].is_some()).try_for_each(|mu| exterior(mu, None))?;
        }
        // Later work may write to what was packed, and needs what was computed here.
        match (packing, beside) {
            (_, Some(_)) => {
                backend.mark(&self.done, beside)?;
                backend.follow(&self.done, None)?;
            }
            (Some(_), None) => backend.follow(&self.ready, None)?,
            (None, None) => {}
        }
        Ok(())
    }
    /// Starts everything that goes out, and makes ready for what comes in.
    fn send(&mut self, context: ExchangeContext<'_>) -> Result {
        let ExchangeContext { backend, trace, streams, packing } = context;
        let (count, turn) = (self.count, self.turn());
        let direct = self.ends.iter().flatten().flatten().filter_map(|end| match &end.outgoing {
            Outgoing::Peer { word, direct: true, .. } => Some(word.pointer()),
            _ => None,
        });
        let direct: Vec<_> = direct.collect();
        if !direct.is_empty() {
            backend.signal(&direct, count, packing, ORDERED)?;
        }
        let others = self.ends.iter().flatten().flatten().count() > direct.len();
        if others || packing.is_some() {
            backend.mark(&self.ready, packing)?;
        }
        for (end, stream) in with_streams(&mut self.ends, streams) {
            if let Incoming::Straight { started, received, since, .. } = &mut end.incoming {
                (*started, *received, *since) = (false, false, trace.now());
            }
            if let Incoming::Message { receiver, copied, received, since, .. } = &mut end.incoming {
                // The last exchange's copy from this memory is over before the next message is let in.
                while !backend.reached(copied)? {
                    std::hint::spin_loop();
                }
                receiver.start()?;
                (*received, *since) = (false, trace.now());
            }
            match &mut end.outgoing {
                Outgoing::Peer { direct: true, .. } => {}
                Outgoing::Straight { sent, .. } => *sent = false,
                Outgoing::Peer { zones, word, copied, .. } => {
                    backend.follow(&self.ready, Some(stream))?;
                    let to = zones[turn].pointer();
                    let mut copy =
                        || Ok(backend.copy_to_peer(&self.packed, end.offset, to, end.bytes, stream, ORDERED)?);
                    trace.device(backend, end.track, Some(stream), &|| "copy to the neighbour".into(), &mut copy)?;
                    backend.signal(&[word.pointer()], count, Some(stream), ORDERED)?;
                    backend.mark(copied, Some(stream))?;
                }
                Outgoing::Message { memory, sender, copied, sent } => {
                    // The last message is gone before the memory is written again.
                    sender.wait()?;
                    *sent = false;
                    backend.follow(&self.ready, Some(stream))?;
                    let mut copy = || Ok(backend.fetch(&self.packed, end.offset, memory, stream)?);
                    trace.device(backend, end.track, Some(stream), &|| "copy to the host".into(), &mut copy)?;
                    backend.mark(copied, Some(stream))?;
                }
            }
        }
        Ok(())
    }
    /// Sends messages that are ready and passes on those that are here; whether all are sent.
    fn progress(&mut self, context: ExchangeContext<'_>) -> Result<bool> {
        let ExchangeContext { backend, trace, streams, .. } = context;
        let (turn, mut all_sent) = (self.turn(), true);
        let first = turn * self.total;
        let straight = self.ends.iter().flatten().flatten().any(ExchangeEnd::is_straight);
        // Packed, and the kernels done that read the zones of the last but one exchange: those came before.
        let packed = straight && backend.reached(&self.ready)?;
        for (end, stream) in with_streams(&mut self.ends, streams) {
            if let Outgoing::Message { sender, copied, sent, .. } = &mut end.outgoing
                && !*sent
            {
                if backend.reached(copied)? {
                    sender.start()?;
                    *sent = true;
                }
                all_sent &= *sent;
            }
            if let Outgoing::Straight { sender, sent } = &mut end.outgoing {
                if packed && !*sent {
                    sender.start()?;
                    *sent = true;
                }
                all_sent &= *sent;
            }
            if let Incoming::Straight { receivers, started, received, since } = &mut end.incoming {
                if packed && !*started {
                    receivers[turn].start()?;
                    *started = true;
                }
                if *started && !*received && receivers[turn].test()? {
                    *received = true;
                    trace.host(end.track, "message", since.take());
                }
            }
            if let Incoming::Message { memory, receiver, copied, received, since } = &mut end.incoming
                && !*received
                && receiver.test()?
            {
                trace.host(end.track, "message", since.take());
                let mut copy = || Ok(backend.put(memory, &self.zones, first + end.offset, stream)?);
                trace.device(backend, end.track, Some(stream), &|| "copy from the host".into(), &mut copy)?;
                backend.mark(copied, Some(stream))?;
                *received = true;
            }
        }
        Ok(all_sent)
    }
    /// Whether the messages for a direction's zones are here; peers announce themselves to the device.
    fn has_all(&self, mu: usize) -> bool {
        let ends = self.ends[mu].iter().flatten();
        ends.into_iter().all(|end| match &end.incoming {
            Incoming::Message { received, .. } | Incoming::Straight { received, .. } => *received,
            Incoming::Peer { .. } => true,
        })
    }
    /// Lets a stream, or the main order of work, wait until a direction's zones are filled.
    fn follow(&self, backend: &dyn Backend, mu: usize, stream: Option<&Stream>) -> Result {
        let mut words = Vec::with_capacity(2);
        for end in self.ends[mu].iter().flatten() {
            match &end.incoming {
                Incoming::Message { copied, .. } => backend.follow(copied, stream)?,
                // The host has seen its end.
                Incoming::Straight { .. } => {}
                Incoming::Peer { word } => words.push(word.pointer()),
            }
        }
        if words.is_empty() { Ok(()) } else { Ok(backend.await_signal(&words, self.count, stream, ORDERED)?) }
    }
}
