//! Layout of ghost zones, and of sites packed for those of neighbours, in the memory of a device.
use crate::backend::{Backend, DeviceBuffer, Event, Ordered};
use crate::domain::Result;

/// Promise that the modules of halo exchange keep.
// SAFETY: memory of messages is touched by a copy or by a message only behind the event, or the end, of what came before;
// zones take turns (see `Exchange`); and addresses of peers are within zones that they have shared, which stay open as long
// as the exchange.
#[allow(unsafe_code)]
pub(super) const ORDERED: Ordered = unsafe { Ordered::promised() };

/// One end of a partitioned direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ZoneEnd {
    /// Direction: 0 to 3 for x to t.
    pub mu: usize,
    /// End: 1 for the forward one, 0 for the backward one.
    pub forward: usize,
}

impl ZoneEnd {
    /// Returns the end of the neighbour at which this process is.
    pub fn opposite(self) -> Self {
        ZoneEnd { forward: 1 - self.forward, ..self }
    }
    /// Returns the tag of the messages that fill the ghost zone of this end.
    pub fn tag(self) -> u16 {
        self.number() as u16
    }
    fn number(self) -> usize {
        2 * self.mu + self.forward
    }
}

/// Bytes between the words of ghost zones.
const WORD: usize = 16;

/// The layout of ghost zones: for each of two turns the zones `[μ][forward]`, one after the other; then a word for each zone, in which the
/// process that writes into it counts the exchanges. All processes have the same layout.
#[derive(Clone, Copy)]
pub(super) struct ZoneLayout {
    /// Bytes of a zone of each direction, 0 where there are none.
    bytes: [usize; 4],
}

impl ZoneLayout {
    /// Returns the layout of zones of `bytes[μ]` bytes.
    pub fn new(bytes: [usize; 4]) -> Self {
        ZoneLayout { bytes }
    }
    pub fn has_zones(&self, mu: usize) -> bool {
        self.bytes[mu] > 0
    }
    /// Returns the bytes of the zone of an end.
    pub fn bytes(&self, end: ZoneEnd) -> usize {
        self.bytes[end.mu]
    }
    /// Returns the bytes of all zones of a turn, and so of what is packed for the neighbours.
    pub fn turn_bytes(&self) -> usize {
        2 * self.bytes.iter().sum::<usize>()
    }
    /// Returns where the zone of an end begins in its turn, and where the sites for the neighbour there begin in packed memory.
    pub fn offset(&self, end: ZoneEnd) -> usize {
        2 * self.bytes[..end.mu].iter().sum::<usize>() + end.forward * self.bytes[end.mu]
    }
    /// Returns where the zone of an end begins.
    pub fn zone(&self, turn: usize, end: ZoneEnd) -> usize {
        turn * self.turn_bytes() + self.offset(end)
    }
    /// Returns where the word of an end's zone is.
    pub fn word(&self, end: ZoneEnd) -> usize {
        2 * self.turn_bytes() + WORD * end.number()
    }
    /// Returns the bytes of the zones of both turns and their words.
    fn zone_bytes(&self) -> usize {
        2 * self.turn_bytes() + 8 * WORD
    }
    /// Returns the bytes that an exchange takes on the device.
    pub fn device_bytes(&self) -> usize {
        self.zone_bytes() + self.turn_bytes()
    }
}

/// The memory of an exchange on the device, and the number of its turn.
pub(super) struct ZoneMemory {
    pub layout: ZoneLayout,
    /// The ghost zones.
    pub zones: DeviceBuffer,
    /// Packed sites that are sent to neighbours.
    pub packed: DeviceBuffer,
    /// Number of the last exchange.
    pub count: u32,
    /// Event after which everything is packed.
    pub ready: Event,
}

impl ZoneMemory {
    pub fn new(backend: &dyn Backend, layout: ZoneLayout) -> Result<Self> {
        let zones = backend.allocate_apart(layout.zone_bytes(), "ghost zones")?;
        let packed = backend.allocate_apart(layout.turn_bytes(), "what other processes' ghost zones get")?;
        Ok(ZoneMemory { layout, zones, packed, count: 0, ready: backend.event(false)? })
    }
    /// Returns the turn of the last exchange.
    pub fn turn(&self) -> usize {
        self.count as usize & 1
    }
    /// Returns the address of an end's zone in this turn.
    pub fn zone(&self, end: ZoneEnd) -> *mut u8 {
        self.zones.address().wrapping_add(self.layout.zone(self.turn(), end))
    }
    /// Returns where sites are packed for the neighbour at an end.
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
