//! How much memory it takes to share a lattice: borders of links, and what processes keep for the messages that they
//! exchange.
//!
//! All of it is known from the extents before anything is allocated, so that a run that does not fit is refused at once.
use crate::field::{DeviceField, ThinGauge};
use crate::lattice::Lattice;
use crate::rhmc::condensate::condensate_bytes;
use crate::rhmc::momenta::MomentumField;
use crate::solve::BATCH_SIZES;
use comms::ProcessGrid;
use gpu_kernels::ghost::zone_tiles;
use gpu_kernels::storage::TILE;
use gpu_kernels::{FermionKind, Precision};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Names of what takes memory, with its bytes.
pub type Needs = Vec<(&'static str, usize)>;

/// The part of a lattice that one process has, and in which directions others have the rest.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    local: Lattice,
    grid: ProcessGrid,
}

impl Part {
    /// Of `local` extents, in a grid of processes.
    pub fn new(local: Lattice, grid: &ProcessGrid) -> Self {
        Part { local, grid: *grid }
    }
    /// Sites of one parity.
    pub fn sites(&self) -> usize {
        self.local.half_volume()
    }
    /// Sites of the border of [links that are kept once](ThinGauge) at both ends of each direction that is cut: 4, for paths
    /// that reach three sites far, or 2 where the part has no more.
    pub fn border(&self) -> [u32; 4] {
        let cut = (0..4).filter(|mu| self.grid.is_partitioned(*mu));
        let thinnest = cut.map(|mu| self.local.size()[mu]).min().unwrap_or(4);
        self.width(if thinnest < 4 { 2 } else { 4 })
    }
    /// `width` in the directions that are cut.
    fn width(&self, width: u32) -> [u32; 4] {
        std::array::from_fn(|mu| if self.grid.is_partitioned(mu) { width } else { 0 })
    }
    /// Sites of one parity with that border.
    pub fn bordered_sites(&self) -> usize {
        let border = self.border();
        (0..4).map(|mu| self.local.size()[mu] + 2 * border[mu] as usize).product::<usize>() / 2
    }
    /// Bytes of links that are kept once, on both parities and with their border.
    pub fn links_bytes(&self, precision: Precision) -> usize {
        2 * ThinGauge::bytes_for(precision, self.bordered_sites())
    }
    /// Sites of one parity in the message that fills a border of this width, for each direction: those that are cut are
    /// filled one after the other, each with the borders that are there already.
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

/// Kinds of fields that travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travelling {
    /// Halves of spinors, over one step.
    Spinors,
    /// Colour vectors, over so many steps.
    Colours(u32),
}

/// The exchanges with neighbours that a run makes. Each is made when it is first needed, and kept as long as the
/// [`Domain`](crate::domain::Domain) lives; fields whose ghost zones are equally large share one.
///
/// An exchange has, for each end of each direction that is cut, two ghost zones, which take turns, and what is packed for
/// the neighbour, on the device; and two messages in page-locked memory of the host where they go that way.
#[derive(Clone, Debug)]
pub struct Exchanges {
    part: Part,
    /// Bytes of the zones of each direction.
    zones: BTreeSet<[usize; 4]>,
}

/// Words in which neighbours count exchanges: 8, each in its 16 bytes.
const COUNTERS: usize = 8 * 16;

impl Exchanges {
    /// None yet.
    pub fn of(part: Part) -> Self {
        Exchanges { part, zones: BTreeSet::new() }
    }
    fn add(&mut self, zones: [usize; 4]) {
        if zones != [0; 4] {
            self.zones.insert(zones);
        }
    }
    /// Those of an operator's hops on fields in a precision, once for each of these numbers of right-hand sides.
    #[must_use]
    pub fn hops(mut self, what: Travelling, precision: Precision, sides: &[usize]) -> Self {
        let (steps, bytes) = match what {
            Travelling::Spinors => (1, precision.half_spinor_bytes()),
            Travelling::Colours(steps) => (steps, FermionKind::Staggered.site_bytes(precision)),
        };
        for nrhs in sides {
            let zone = |mu: usize| {
                let face = (self.part.sites() / self.part.local.size()[mu]) as u32;
                let cut = self.part.grid.is_partitioned(mu);
                if cut { zone_tiles(face, steps) as usize * TILE * bytes * nrhs } else { 0 }
            };
            self.add(std::array::from_fn(zone));
        }
        self
    }
    /// Those that bring up to date the border of links that are kept once.
    #[must_use]
    pub fn border(mut self, precision: Precision) -> Self {
        let slabs = self.part.slabs(self.part.border());
        self.slabs(slabs.map(|sites| 2 * ThinGauge::bytes_for(precision, sites)));
        self
    }
    /// Those that fetch a margin of `width` sites around fields of so many bytes a site.
    #[must_use]
    pub fn margin(mut self, width: u32, site_bytes: usize, sides: &[usize]) -> Self {
        let slabs = self.part.slabs(self.part.width(width));
        for nrhs in sides {
            self.slabs(slabs.map(|sites| sites.div_ceil(TILE) * TILE * site_bytes * nrhs));
        }
        self
    }
    /// One exchange for each direction.
    fn slabs(&mut self, messages: [usize; 4]) {
        for (mu, bytes) in messages.into_iter().enumerate() {
            let mut zones = [0; 4];
            zones[mu] = bytes;
            self.add(zones);
        }
    }
    /// Bytes on the device.
    pub fn device_bytes(&self) -> usize {
        self.zones.iter().map(|zones| 6 * zones.iter().sum::<usize>() + COUNTERS).sum()
    }
    /// Bytes of page-locked memory of the host, where messages go through it: always on the CPU, on GPUs with the transport
    /// [`Host`](crate::halo::Transport::Host) and to neighbours on other machines.
    pub fn pinned_bytes(&self) -> usize {
        self.zones.iter().map(|zones| 4 * zones.iter().sum::<usize>()).sum()
    }
    /// With a name for them, if there are any.
    pub fn needs(&self) -> Option<(&'static str, usize)> {
        Some(("ghost zones and messages", self.device_bytes())).filter(|(_, bytes)| *bytes > 0)
    }
}

/// The numbers of right-hand sides that a solver works on while those of a block of `nrhs` finish, the block itself first.
/// Solvers drop what has finished when a quarter has, and go on with one of the [usual sizes](BATCH_SIZES).
pub fn widths(nrhs: usize) -> Vec<usize> {
    let narrower = BATCH_SIZES.into_iter().filter(|size| 4 * size <= 3 * nrhs);
    std::iter::once(nrhs).chain(narrower).collect()
}

/// What an [ensemble](crate::rhmc) is made of, as far as it takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ensemble {
    /// Whether links and momenta are in single precision.
    pub single_links: bool,
    /// Pseudofermions of the group that has most; 0 without quarks.
    pub pseudofermions: usize,
    /// Whether quarks hop over fat and long links.
    pub improved: bool,
    /// Noise vectors of a condensate that are solved for together; 0 without condensates.
    pub noise: usize,
}

/// Vectors of a group, for each pseudofermion: as many as rational functions have poles at most, but for rare ones.
const POLES: usize = 24;

impl Ensemble {
    /// Device memory of a process with such a part of the lattice, with names for what takes it.
    pub fn memory(&self, part: Part) -> Needs {
        let (sites, wide) = (part.sites(), part.bordered_sites());
        let (thin, momenta) =
            (part.links_bytes(Precision::Double), 2 * MomentumField::bytes_for(Precision::Double, sites));
        let mut needs = vec![("links and their copies", 6 * thin), ("momenta", 2 * momenta)];
        let mut exchanges = Exchanges::of(part).border(Precision::Double);
        if self.single_links {
            exchanges = exchanges.border(Precision::Single);
        }
        if self.pseudofermions > 0 {
            // Solutions and directions for all poles, and pairs of vectors with those of the neighbours around.
            let vector = |sites| DeviceField::bytes_for(FermionKind::Staggered, Precision::Double, sites, 1);
            let of_forces = self.pseudofermions * ((2 * POLES + 8) * vector(sites) + 2 * POLES * vector(wide));
            // Condensates are measured when there is no force.
            let vectors = of_forces.max(condensate_bytes(sites, self.noise));
            needs.push(("vectors of solvers, forces and condensates", vectors));
            needs.push(("links of operators", 4 * thin));
            let hops = Travelling::Colours(if self.improved { 3 } else { 1 });
            let sides: Vec<usize> = [self.pseudofermions, self.noise].into_iter().flat_map(widths).collect();
            let width = part.border().into_iter().max().unwrap_or(0);
            for precision in [Precision::Double, Precision::Single] {
                let pairs = [POLES * self.pseudofermions];
                exchanges = exchanges.hops(hops, precision, &sides).margin(
                    width,
                    FermionKind::Staggered.site_bytes(precision),
                    &pairs,
                );
            }
        }
        if self.improved {
            needs.push(("fat and long links, their gradients and paths", 10 * thin));
        }
        needs.extend(exchanges.needs());
        needs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn solvers_become_narrower_by_a_quarter_at_least() {
        assert_eq!(widths(12), [12, 8, 6, 4, 3, 2, 1]);
        assert_eq!(widths(4), [4, 3, 2, 1]);
        assert_eq!(widths(1), [1]);
        assert_eq!(widths(0), [0]);
    }

    #[test]
    fn fields_of_equally_large_zones_share_them() {
        let part = part([4, 4, 4, 8], [1, 1, 1, 2]);
        let double = |sides: &[usize]| Exchanges::of(part).hops(Travelling::Spinors, Precision::Double, sides);
        // 32 sites of a face, one tile, of 96 bytes: two zones and a packed face at each of two ends.
        assert_eq!(double(&[1]).device_bytes(), 6 * 32 * 96 + 128);
        assert_eq!(double(&[1]).pinned_bytes(), 4 * 32 * 96);
        let both = double(&[1]).hops(Travelling::Spinors, Precision::Single, &[2]);
        assert_eq!(both.device_bytes(), double(&[1]).device_bytes());
        assert_eq!(double(&[0]).needs(), None);
        // Nobody to talk to.
        let alone = Exchanges::of(super::tests::part([4; 4], [1; 4])).border(Precision::Double);
        assert_eq!(alone.hops(Travelling::Colours(3), Precision::Half, &[1, 2]).device_bytes(), 0);
    }
}
