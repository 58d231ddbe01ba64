//! Ghost zones in device memory that processes of one machine share.
use super::{Connector, ExchangeRound, HaloProgress, HaloTransport};
use crate::backend::{Backend, Event, Stream};
use crate::domain::{Result, Transport};
use crate::halo::zones::{ORDERED, ZoneEnd, ZoneMemory};

/// Transport that writes into the neighbour's ghost zone, and then counts up a word beside it. The neighbour does the same with the zone
/// and the word of this process.
pub(super) struct PeerTransport {
    end: ZoneEnd,
    /// Addresses of the two copies of the neighbour's ghost zone, which are used in turn.
    zones: [Address; 2],
    word: Address,
    /// Address of the word beside this process's ghost zone.
    own_word: Address,
    /// Event after which the copy to the neighbour is done; `None` if the kernel that packs writes into the neighbour's memory.
    copied: Option<Event>,
}

/// Address in device memory, stored as a number so that threads can share it.
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
    /// Connects `end` with the neighbour, whose ghost zones begin at the address `base`. All processes have the same layout of zones.
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
                // The copy of the last exchange must end before its memory is written again.
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
    /// Returns that everything is done: the devices signal progress to each other by words, without the host.
    fn poll(&mut self, _: &ExchangeRound<'_>, _: &Stream) -> Result<HaloProgress> {
        Ok(HaloProgress { sent: true, received: true })
    }
    fn finish(&self, _: &dyn Backend, _: Option<&Stream>) -> Result<Option<*mut u8>> {
        Ok(Some(self.own_word.pointer()))
    }
}
