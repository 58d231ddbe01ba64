//! Memory that processes need in order to share a lattice: borders of links, ghost zones and messages.
//!
//! The sizes follow from the extents before anything is allocated, so that a run that does not fit into memory can be rejected at once.
use super::zones::ZoneLayout;
use crate::domain::Part;
use crate::field::{FieldShape, GaugeField};
use gpu_kernels::Precision;
use gpu_kernels::ghost::zone_steps;
use gpu_kernels::storage::{PADDING, padded};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// List of the users of memory, with the number of bytes that each needs.
pub type Needs = Vec<(&'static str, usize)>;

impl Part {
    /// Returns the number of bytes of a [`GaugeField`] with its border, on both parities.
    pub fn links_bytes(&self, precision: Precision) -> usize {
        2 * GaugeField::bytes_for(precision, self.bordered_sites())
    }
    /// Returns, for each direction, the number of sites of one parity in the message that fills a border of `border[μ]` sites. Directions
    /// are filled one after another, and each message includes the borders that are already filled.
    fn slabs(&self, border: [u32; 4]) -> [usize; 4] {
        let local = self.local.size();
        std::array::from_fn(|mu| {
            let extent = |nu: usize| match nu.cmp(&mu) {
                Ordering::Less => local[nu] + 2 * border[nu] as usize,
                Ordering::Equal => border[nu] as usize,
                Ordering::Greater => local[nu],
            };
            (0..4).map(extent).product::<usize>() / 2
        })
    }
}

/// Type of fermion field whose faces are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaloField {
    /// Spinors of Wilson-like operators, with hops of one step; half spinors are exchanged.
    Spinors,
    /// Colour vectors; the value is the number of steps of the longest hop.
    Colours(u32),
}

/// Exchanges with the neighbours that a run will make. Each is allocated when it is first needed, and kept as long as the
/// [`Domain`](crate::domain::Domain); fields whose ghost zones have equal sizes share one.
///
/// For each end of each partitioned direction, an exchange has two ghost zones and the packed sites for the neighbour in device memory. If
/// faces go through host memory, it also has two messages in page-locked memory.
#[derive(Clone, Debug)]
pub struct Exchanges {
    part: Part,
    /// Sizes in bytes of the zones for each direction, one entry for each exchange.
    zones: BTreeSet<[usize; 4]>,
}

impl Exchanges {
    /// Returns an empty set of exchanges for a local lattice.
    pub fn of(part: Part) -> Self {
        Exchanges { part, zones: BTreeSet::new() }
    }
    fn add(&mut self, zones: [usize; 4]) {
        if zones != [0; 4] {
            self.zones.insert(zones);
        }
    }
    /// Adds the exchanges of an operator's hops on fields in one precision to the set, for each number of right-hand sides in `nrhs`.
    #[must_use]
    pub fn hops(mut self, what: HaloField, precision: Precision, nrhs: &[usize]) -> Self {
        let (steps, bytes) = match what {
            HaloField::Spinors => (1, precision.half_spinor_bytes()),
            HaloField::Colours(steps) => (steps, FieldShape::colours(precision, 1).site_bytes()),
        };
        let faces = self.part.local.size().map(|extent| self.part.sites() / extent);
        self.zones_of(faces, steps, bytes, nrhs);
        self
    }
    /// Adds the exchanges of hops on a coarse level to the set, for each number of right-hand sides in `nrhs`. The level has the local
    /// extents `local` and `spinors` spinors in single precision on each site.
    #[must_use]
    pub fn level(mut self, local: [usize; 4], spinors: usize, nrhs: &[usize]) -> Self {
        let half_volume = local.iter().product::<usize>() / 2;
        let faces = local.map(|extent| half_volume / extent * spinors);
        self.zones_of(faces, 1, FieldShape::spinors(Precision::Single, 1).site_bytes(), nrhs);
        self
    }
    /// Adds the exchange of the links of a coarse level to the set. The level has the local extents `local`, and a link has `bytes` bytes.
    #[must_use]
    pub fn level_links(mut self, local: [usize; 4], bytes: usize) -> Self {
        let volume: usize = local.iter().product();
        let zone = |mu: usize| if self.part.grid.is_partitioned(mu) { volume / local[mu] * bytes } else { 0 };
        self.add(std::array::from_fn(zone));
        self
    }
    /// Adds exchanges of zones of `layers` layers, for each number of right-hand sides. A layer has `faces[μ]` elements of `bytes` bytes.
    fn zones_of(&mut self, faces: [usize; 4], layers: u32, bytes: usize, nrhs: &[usize]) {
        for nrhs in nrhs {
            let zone = |mu: usize| match self.part.grid.is_partitioned(mu) {
                true => zone_steps(faces[mu] as u32, layers) as usize * PADDING * bytes * nrhs,
                false => 0,
            };
            self.add(std::array::from_fn(zone));
        }
    }
    /// Adds the exchanges that fill the border of a [`GaugeField`] in `precision` to the set.
    #[must_use]
    pub fn border(mut self, precision: Precision) -> Self {
        let slabs = self.part.slabs(self.part.border());
        self.slabs(slabs.map(|sites| 2 * GaugeField::bytes_for(precision, sites)));
        self
    }
    /// Adds the exchanges that fill a ghost zone to the set, for each number of right-hand sides in `nrhs`. The ghost zone is `width` sites
    /// wide, and the fields have `site_bytes` bytes per site.
    #[must_use]
    pub fn ghost_zone(mut self, width: u32, site_bytes: usize, nrhs: &[usize]) -> Self {
        let slabs = self.part.slabs(self.part.width(width));
        for nrhs in nrhs {
            self.slabs(slabs.map(|sites| padded(sites) * site_bytes * nrhs));
        }
        self
    }
    /// Adds one exchange for each direction; `messages[μ]` is the size of its zones in bytes.
    fn slabs(&mut self, messages: [usize; 4]) {
        for (mu, bytes) in messages.into_iter().enumerate() {
            let mut zones = [0; 4];
            zones[mu] = bytes;
            self.add(zones);
        }
    }
    /// Returns the number of bytes that all exchanges need on the device.
    pub fn device_bytes(&self) -> usize {
        self.zones.iter().map(|zones| ZoneLayout::new(*zones).device_bytes()).sum()
    }
    /// Returns the number of bytes that all exchanges need in page-locked host memory. This memory is needed only for messages that go
    /// through host memory: on the CPU, with the transport [`Host`](crate::domain::Transport::Host), and between machines if the MPI
    /// library cannot access device memory.
    pub fn pinned_bytes(&self) -> usize {
        self.zones.iter().map(|zones| 4 * zones.iter().sum::<usize>()).sum()
    }
    /// Returns a description of the exchanges, and the number of bytes that they need on the device; `None` if there are no exchanges.
    pub fn needs(&self) -> Option<(&'static str, usize)> {
        Some(("ghost zones and messages", self.device_bytes())).filter(|(_, bytes)| *bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;
    use comms::ProcessGrid;

    fn part(local: [usize; 4], grid: [usize; 4]) -> Part {
        Part::new(Lattice::new(local).unwrap(), &ProcessGrid::new(grid).unwrap())
    }

    #[test]
    fn borders_are_where_the_lattice_is_cut() {
        assert_eq!(part([8, 4, 4, 6], [1; 4]).bordered_sites(), 8 * 4 * 4 * 6 / 2);
        assert_eq!(part([8, 4, 4, 6], [2, 1, 1, 2]).border(), [4, 0, 0, 4]);
        assert_eq!(part([8, 4, 4, 6], [2, 1, 1, 2]).bordered_sites(), 16 * 4 * 4 * 14 / 2);
        // Two where a part is thin, in all directions.
        assert_eq!(part([8, 4, 2, 6], [2, 1, 2, 1]).border(), [2, 0, 2, 0]);
    }

    #[test]
    fn fields_of_equally_large_zones_share_them() {
        let part = part([4, 4, 4, 8], [1, 1, 1, 2]);
        let double = |nrhs: &[usize]| Exchanges::of(part).hops(HaloField::Spinors, Precision::Double, nrhs);
        // 32 sites of a face, one tile, of 96 bytes: two zones and a packed face at each of two ends.
        assert_eq!(double(&[1]).device_bytes(), 6 * 32 * 96 + 128);
        assert_eq!(double(&[1]).pinned_bytes(), 4 * 32 * 96);
        let both = double(&[1]).hops(HaloField::Spinors, Precision::Single, &[2]);
        assert_eq!(both.device_bytes(), double(&[1]).device_bytes());
        assert_eq!(double(&[0]).needs(), None);
        // Nobody to talk to.
        let alone = Exchanges::of(super::tests::part([4; 4], [1; 4])).border(Precision::Double);
        assert_eq!(alone.hops(HaloField::Colours(3), Precision::Half, &[1, 2]).device_bytes(), 0);
    }
}
