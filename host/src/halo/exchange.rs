//! Messages around one kind of field, again and again.
use super::network::{HostBuffer, Message, Network};
use crate::backend::{Backend, Buffer};
use crate::domain::Result;
use comms::{Direction, ProcessGrid};

/// One end of one direction: what comes from beyond it, and what the neighbour there gets.
struct End<B: Backend> {
    /// Where the zone is in the buffers, and its bytes.
    offset: usize,
    /// What the neighbour gets, and the message.
    outgoing: B::Pinned,
    sender: Box<dyn Message>,
    /// The copy to `outgoing` is done.
    packed: B::Event,
    /// What it sends, and the message.
    incoming: B::Pinned,
    receiver: Box<dyn Message>,
    /// The copy from `incoming` is done.
    arrived: B::Event,
    /// How far this exchange is.
    sent: bool,
    received: bool,
}

/// The ghost zones of one kind of field and the messages that fill them.
pub(crate) struct Exchange<B: Backend> {
    /// What others sent: `[μ][forward]`, one zone behind the other.
    zones: B::Buffer,
    /// What others are sent: at the same places what their zone `[μ][forward]` needs.
    packed: B::Buffer,
    /// `[μ]`: backward and forward end of the directions that are cut.
    ends: [Option<[End<B>; 2]>; 4],
    /// The fields were packed.
    ready: B::Event,
}

/// A stream for each end of each direction that is cut.
pub(crate) type Streams<B> = [Option<[<B as Backend>::Stream; 2]>; 4];

fn of_cut<'a, B: Backend>(
    ends: &'a mut [Option<[End<B>; 2]>; 4],
    streams: &'a Streams<B>,
) -> impl Iterator<Item = (&'a mut End<B>, &'a B::Stream)> {
    // Where an exchange has an end, there are streams.
    let pairs = ends.iter_mut().zip(streams).filter_map(|(ends, streams)| Some((ends.as_mut()?, streams.as_ref()?)));
    pairs.flat_map(|(ends, streams)| ends.iter_mut().zip(streams))
}

/// Addresses of zones: `[μ][forward]`.
pub(crate) type Zones = [[*mut u8; 2]; 4];

impl<B: Backend> Exchange<B> {
    /// *Collective.* For zones of `bytes[μ]` bytes; 0 where no zones are wanted.
    pub fn new(backend: &B, grid: &ProcessGrid, network: &dyn Network, bytes: [usize; 4]) -> Result<Self> {
        let rank = network.rank();
        let total = 2 * bytes.iter().sum::<usize>();
        let zones = backend.allocate(total, "ghost zones")?;
        let packed = backend.allocate(total, "what other processes' ghost zones get")?;
        let mut offset = 0;
        let mut end = |mu: usize, direction: Direction| -> Result<End<B>> {
            let neighbour = grid.neighbour(rank, mu, direction);
            let tag = |forward: bool| 2 * mu as u16 + u16::from(forward);
            let (outgoing, incoming) = (backend.pinned(bytes[mu], "messages")?, backend.pinned(bytes[mu], "messages")?);
            let buffer = |memory: &B::Pinned| HostBuffer(Box::new(memory.clone()));
            // Messages are named after the zone that they fill: that beyond the receiver's forward or backward end.
            let forward = direction == Direction::Forward;
            let end = End {
                offset,
                sender: network.sender(neighbour, tag(!forward), buffer(&outgoing))?,
                receiver: network.receiver(neighbour, tag(forward), buffer(&incoming))?,
                outgoing,
                incoming,
                packed: backend.event(false)?,
                arrived: backend.event(false)?,
                sent: false,
                received: false,
            };
            offset += bytes[mu];
            Ok(end)
        };
        let mut ends = [None, None, None, None];
        for (mu, slot) in ends.iter_mut().enumerate() {
            if bytes[mu] > 0 {
                *slot = Some([end(mu, Direction::Backward)?, end(mu, Direction::Forward)?]);
            }
        }
        Ok(Exchange { zones, packed, ends, ready: backend.event(false)? })
    }
    /// Addresses of the zones in a buffer.
    fn addresses(&self, buffer: &B::Buffer, swapped: bool) -> Zones {
        let mut zones = [[std::ptr::null_mut(); 2]; 4];
        for (zones, ends) in zones.iter_mut().zip(&self.ends) {
            let Some(ends) = ends else { continue };
            for (k, end) in ends.iter().enumerate() {
                zones[if swapped { 1 - k } else { k }] = buffer.address().wrapping_add(end.offset);
            }
        }
        zones
    }
    /// Where kernels find what lies beyond.
    pub fn zones(&self) -> Zones {
        self.addresses(&self.zones, false)
    }
    /// Where kernels put what others need, at `[μ][forward]` for the neighbour whose zone `[μ][forward]` it is: the one
    /// behind the backward end for `forward`.
    pub fn packed(&self) -> Zones {
        self.addresses(&self.packed, true)
    }
    /// Sends what the launches made so far have packed and lets the zones be filled; meanwhile launches `interior`, and
    /// `exterior` for one direction after the other as soon as its zones are on their way to the device. With `overlap`
    /// off, the interior waits too.
    pub fn run(
        &mut self,
        backend: &B,
        streams: &Streams<B>,
        overlap: bool,
        interior: impl FnOnce() -> Result,
        mut exterior: impl FnMut(usize) -> Result,
    ) -> Result {
        backend.mark(&self.ready, None)?;
        for (end, stream) in of_cut(&mut self.ends, streams) {
            // The last exchange's copy from this memory is over before the next message is let in.
            while !backend.reached(&end.arrived)? {
                std::hint::spin_loop();
            }
            end.receiver.start()?;
            // And its message is gone before the memory is written again.
            end.sender.wait()?;
            (end.sent, end.received) = (false, false);
            backend.follow(&self.ready, Some(stream))?;
            backend.fetch(&self.packed, end.offset, &end.outgoing, stream)?;
            backend.mark(&end.packed, Some(stream))?;
        }
        let mut interior = Some(interior);
        if overlap && let Some(interior) = interior.take() {
            interior()?;
        }
        let mut next = 0;
        while next < 4 {
            for (end, stream) in of_cut(&mut self.ends, streams) {
                if !end.sent && backend.reached(&end.packed)? {
                    end.sender.start()?;
                    end.sent = true;
                }
                if !end.received && end.receiver.test()? {
                    backend.put(&end.incoming, &self.zones, end.offset, stream)?;
                    backend.mark(&end.arrived, Some(stream))?;
                    end.received = true;
                }
            }
            let all_sent = self.ends.iter().flatten().flatten().all(|end| end.sent);
            while next < 4 && self.ends[next].as_ref().is_none_or(|ends| ends.iter().all(|end| end.received)) {
                // The last of the exteriors waits until everybody else can go on, too.
                if next == 3 && !all_sent {
                    break;
                }
                if let Some(ends) = &self.ends[next] {
                    for end in ends {
                        backend.follow(&end.arrived, None)?;
                    }
                    if overlap {
                        exterior(next)?;
                    }
                }
                next += 1;
            }
        }
        if let Some(interior) = interior.take() {
            interior()?;
            (0..4).filter(|mu| self.ends[*mu].is_some()).try_for_each(exterior)?;
        }
        Ok(())
    }
}
