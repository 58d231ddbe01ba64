//! Ghost zones that processes of one machine write into each other's device memory.
use super::{Connector, ExchangeRound, HaloProgress, HaloTransport};
use crate::backend::{Backend, Event, Stream};
use crate::domain::{Result, Transport};
use crate::halo::zones::{ORDERED, ZoneEnd, ZoneMemory};

/// Transport that writes into the neighbour's ghost zone, then increments a word beside it; the neighbour does the same here.
pub(super) struct PeerTransport {
    end: ZoneEnd,
    /// The neighbour's ghost zone in both turns, and its word.
    zones: [Address; 2],
    word: Address,
    /// Word of the ghost zone on this device.
    own_word: Address,
    /// Event after which the copy to the neighbour is done; `None` if the kernel that packs writes there directly.
    copied: Option<Event>,
}

/// An address in device memory, as a number, so that it can be passed between threads.
#[derive(Clone, Copy)]
struct Address(usize);

impl Address {
    fn new(base: *mut u8, offset: usize) -> Self {
        Address(base.wrapping_add(offset) as usize)
    }
    fn pointer(self) -> *mut u8 {
        self.0 as *mut u8
    }
}

impl PeerTransport {
    /// Makes the transport. `base` is the address of the neighbour's ghost zones, which are laid out like those here.
    pub fn new(connector: &Connector<'_>, end: ZoneEnd, base: *mut u8) -> Result<Self> {
        let Connector { backend, transport, memory, .. } = *connector;
        let (layout, there) = (&memory.layout, end.opposite());
        Ok(PeerTransport {
            end,
            zones: [0, 1].map(|turn| Address::new(base, layout.zone(turn, there))),
            word: Address::new(base, layout.word(there)),
            own_word: Address::new(memory.zones.address(), layout.word(end)),
            copied: if transport == Transport::Copy { Some(backend.event(false)?) } else { None },
        })
    }
}

impl HaloTransport for PeerTransport {
    fn kind(&self) -> Transport {
        if self.copied.is_some() { Transport::Copy } else { Transport::Direct }
    }
    fn begin(&mut self, backend: &dyn Backend, memory: &ZoneMemory, packing: Option<&Stream>) -> Result<*mut u8> {
        match &self.copied {
            Some(copied) => {
                // The last exchange still copies from this memory.
                backend.follow(copied, packing)?;
                Ok(memory.packed_for(self.end))
            }
            None => Ok(self.zones[memory.turn()].pointer()),
        }
    }
    fn packed_word(&self) -> Option<*mut u8> {
        self.copied.is_none().then(|| self.word.pointer())
    }
    fn send(&mut self, round: &ExchangeRound<'_>, stream: &Stream) -> Result {
        let (ExchangeRound { backend, memory, .. }, Some(copied), end) = (round, &self.copied, self.end) else {
            return Ok(());
        };
        let (offset, to) = (memory.layout.offset(end), self.zones[memory.turn()].pointer());
        backend.follow(&memory.ready, Some(stream))?;
        round.copy(end, stream, "copy to the neighbour", &mut || {
            Ok(backend.copy_to_peer(&memory.packed, offset, to, memory.layout.bytes(end), stream, ORDERED)?)
        })?;
        backend.signal(&[self.word.pointer()], memory.count, Some(stream), ORDERED)?;
        Ok(backend.mark(copied, Some(stream))?)
    }
    /// Leaves everything to the devices, which signal progress by words.
    fn poll(&mut self, _: &ExchangeRound<'_>, _: &Stream) -> Result<HaloProgress> {
        Ok(HaloProgress { sent: true, received: true })
    }
    fn finish(&self, _: &dyn Backend, _: Option<&Stream>) -> Result<Option<*mut u8>> {
        Ok(Some(self.own_word.pointer()))
    }
}
