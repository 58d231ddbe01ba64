//! Layout of ghost zones in device memory, and of the packed sites for the zones of neighbours.
use crate::backend::{Backend, DeviceBuffer, Event, Ordered};
use crate::domain::Result;

/// Promise of the exchange: memory of messages and zones of peers is used in an order without races.
// SAFETY: memory of messages is touched by a copy or by a message only behind the event, or the end, of what came before;
// zones take turns (see `Exchange`); and addresses of peers are within zones that they have shared, which stay open as long
// as the exchange.
#[allow(unsafe_code)]
pub(super) const ORDERED: Ordered = unsafe { Ordered::promised() };

/// One end of a partitioned direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ZoneEnd {
    /// Direction μ: 0 to 3 for x to t.
    pub mu: usize,
    /// End of the direction: 1 for forward, 0 for backward.
    pub forward: usize,
}

impl ZoneEnd {
    /// Returns the end at which the neighbour has its connection with this process.
    pub fn opposite(self) -> Self {
        ZoneEnd { forward: 1 - self.forward, ..self }
    }
    /// Returns the tag of messages that fill the ghost zone of this end.
    pub fn tag(self) -> u16 {
        self.number() as u16
    }
    fn number(self) -> usize {
        2 * self.mu + self.forward
    }
}

/// Number of bytes from one word of a ghost zone to the next.
const WORD: usize = 16;

/// Layout of ghost zones. For each of the two turns there are the zones `[μ][forward]` in a row. After them, each zone has a word, in which
/// the process that writes into the zone counts the exchanges. All processes have the same layout.
#[derive(Clone, Copy)]
pub(super) struct ZoneLayout {
    /// Number of bytes of a zone for each direction; 0 for a direction without zones.
    bytes: [usize; 4],
}

impl ZoneLayout {
    /// Makes the layout of zones of `bytes[μ]` bytes.
    pub fn new(bytes: [usize; 4]) -> Self {
        ZoneLayout { bytes }
    }
    pub fn has_zones(&self, mu: usize) -> bool {
        self.bytes[mu] > 0
    }
    /// Returns the number of bytes of the zone at an end.
    pub fn bytes(&self, end: ZoneEnd) -> usize {
        self.bytes[end.mu]
    }
    /// Returns the number of bytes of all zones of a turn, which is also the number of bytes of the packed sites for all neighbours.
    pub fn turn_bytes(&self) -> usize {
        2 * self.bytes.iter().sum::<usize>()
    }
    /// Returns the offset in bytes for an end: that of its zone in a turn, and also that of the packed sites for the neighbour at this end.
    pub fn offset(&self, end: ZoneEnd) -> usize {
        2 * self.bytes[..end.mu].iter().sum::<usize>() + end.forward * self.bytes[end.mu]
    }
    /// Returns the offset in bytes of the zone at an end in a turn, 0 or 1.
    pub fn zone(&self, turn: usize, end: ZoneEnd) -> usize {
        turn * self.turn_bytes() + self.offset(end)
    }
    /// Returns the offset in bytes of the word in which the process that writes into the zone at an end counts the exchanges.
    pub fn word(&self, end: ZoneEnd) -> usize {
        2 * self.turn_bytes() + WORD * end.number()
    }
    /// Returns the number of bytes of the zones of both turns, with their words.
    fn zone_bytes(&self) -> usize {
        2 * self.turn_bytes() + 8 * WORD
    }
    /// Returns the number of bytes that an exchange needs on the device.
    pub fn device_bytes(&self) -> usize {
        self.zone_bytes() + self.turn_bytes()
    }
}

/// Device memory of an exchange, and the number of the last exchange.
pub(super) struct ZoneMemory {
    pub layout: ZoneLayout,
    /// Ghost zones of both turns, followed by the words that count exchanges.
    pub zones: DeviceBuffer,
    /// Packed sites for the neighbours.
    pub packed: DeviceBuffer,
    /// Number of the last exchange.
    pub count: u32,
    /// Event that occurs when all faces are packed.
    pub ready: Event,
}

impl ZoneMemory {
    pub fn new(backend: &dyn Backend, layout: ZoneLayout) -> Result<Self> {
        let zones = backend.allocate_apart(layout.zone_bytes(), "ghost zones")?;
        let packed =
            backend.allocate_apart(layout.turn_bytes(), "faces to be sent to ghost zones of other processes")?;
        Ok(ZoneMemory { layout, zones, packed, count: 0, ready: backend.event(false)? })
    }
    /// Returns the turn of the last exchange, 0 or 1.
    pub fn turn(&self) -> usize {
        self.count as usize & 1
    }
    /// Returns the address of the zone at an end in the turn of the last exchange.
    pub fn zone(&self, end: ZoneEnd) -> *mut u8 {
        self.zones.address().wrapping_add(self.layout.zone(self.turn(), end))
    }
    /// Returns the address of the packed sites for the neighbour at an end.
    pub fn packed_for(&self, end: ZoneEnd) -> *mut u8 {
        self.packed.address().wrapping_add(self.layout.offset(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_and_words_follow_each_other_without_overlap() {
        let layout = ZoneLayout::new([0, 48, 16, 32]);
        let ends = |mu: usize| [ZoneEnd { mu, forward: 0 }, ZoneEnd { mu, forward: 1 }];
        let ends: Vec<ZoneEnd> = (1..4).flat_map(ends).collect();
        let zones = [0, 1].into_iter().flat_map(|turn| ends.iter().map(move |end| (turn, *end)));
        let mut next = 0;
        for (turn, end) in zones {
            assert_eq!(layout.zone(turn, end), next);
            next += layout.bytes(end);
        }
        // Two turns of two zones each of 96 bytes; packed memory has as much as one turn.
        assert_eq!(next, 2 * 2 * 96);
        let words: Vec<usize> = ends.iter().map(|end| layout.word(*end)).collect();
        assert!(words[0] >= next && words.is_sorted_by(|a, b| a + 4 <= *b));
        assert!(words.last().unwrap() + 4 <= layout.device_bytes() - 2 * 96);
    }

    #[test]
    fn a_message_has_the_tag_of_the_zone_that_it_fills() {
        let all = (0..4).flat_map(|mu| [0, 1].map(|forward| ZoneEnd { mu, forward }));
        let tags: Vec<u16> = all.clone().map(ZoneEnd::tag).collect();
        assert_eq!(tags, [0, 1, 2, 3, 4, 5, 6, 7]);
        // What leaves by the backward end fills the neighbour's forward zone.
        assert!(all.into_iter().all(|end| end.opposite().tag() == end.tag() ^ 1));
    }
}
