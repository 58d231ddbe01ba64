//! Lane order: sites in groups of 16 or 8. A CPU computes a group at once in vector registers (virtual nodes).
//!
//! The sites of a group follow from one site by translations by half of the lattice in any directions (Boyle et al. 2015, arXiv
//! 1512.03487). If extents are multiples of four, there are 16 such sites, and bit μ of a lane's number is set if it is in the
//! second half of direction μ. Translation by a half with an odd extent changes the parity, so that only the 8 translations
//! with an even number of odd halves remain. The last direction with an odd half, or x if its half is odd, has no bit: the half
//! of a lane in that direction follows from the other bits.
//!
//! The lattice thus consists of sub-lattices of equal shape. A group has one site of each, at the same place, in lanes that are
//! consecutive in memory. The neighbours of a group's sites are the sites of the next group, lane by lane. Across the end of
//! the sub-lattices, they are the sites of the first group, with lanes that differ in bit μ exchanged. If the half is odd, they
//! are also shifted by half of the lattice in the direction without a bit. In that direction sub-lattices have no end.
//!
//! A kernel gets the number of a group in place of the index of a site, with `GROUP` set and with a number m in the bits above
//! the group's number: lane j of a vector is lane j ⊕ m of the group. The number m thus encodes the part of a group that a
//! shorter vector holds, and the exchange of lanes. The number of a group is its first site divided by 8.
use super::{Geometry, MOST_LANES, ODD_HALVES, Order, Site, SubLatticeExtents, Where};

/// Smallest number of sites in a group.
pub const LEAST_LANES: u32 = 8;
/// Flag that marks an index as the number of a group.
pub(super) const GROUP: u32 = 1 << 31;
/// Position of the number m in an index.
pub(super) const TURN: u32 = 27;

/// Returns the index that a kernel gets for the sites from number `first` on, if groups have `sites` sites.
#[inline(always)]
pub const fn group(first: u32, sites: u32) -> u32 {
    let lane = first & (sites - 1);
    GROUP | lane << TURN | ((first - lane) / LEAST_LANES)
}
/// Returns the number of a group.
#[inline(always)]
pub(super) const fn number(group: u32) -> u32 {
    group & ((1 << TURN) - 1)
}
/// Returns the first site of a group, and the number m that encodes its exchange of lanes.
#[inline(always)]
pub const fn first_and_turn(group: u32) -> (u32, u32) {
    (LEAST_LANES * number(group), group >> TURN & (MOST_LANES - 1))
}

/// Returns 1 if an odd number of the four bits is set, else 0.
#[inline(always)]
const fn parity(bits: u32) -> u32 {
    0x6996 >> bits & 1
}

/// Assignment of lanes to the halves of the lattice.
#[derive(Clone, Copy)]
pub(super) struct Halves {
    /// Bits of the directions in which half of the lattice is an odd number of sites.
    odd: u32,
    /// The direction with an odd half for which lanes have no bit; 4 if there is none.
    rest: u32,
}

impl Halves {
    /// Halves with an even number of sites in each direction.
    pub(super) const EVEN: Self = Self::new(0);
    /// Returns whether halves have an even number of sites in each direction.
    #[inline(always)]
    pub(super) const fn is_even(self) -> bool {
        self.odd == 0
    }
    #[inline(always)]
    const fn new(odd: u32) -> Self {
        let rest = if odd == 0 {
            4
        } else if odd & 1 == 1 {
            0
        } else {
            odd.ilog2()
        };
        Halves { odd, rest }
    }
    /// Returns the number of bits of a lane.
    #[inline(always)]
    pub(super) const fn bits(self) -> u32 {
        if self.odd == 0 { 4 } else { 3 }
    }
    /// Returns the number of sites of a group.
    #[inline(always)]
    pub(super) const fn sites(self) -> u32 {
        1 << self.bits()
    }
    /// Returns the number of unused bits in the number of a group, which is the group's first site divided by 8.
    #[inline(always)]
    pub(super) const fn units(self) -> u32 {
        self.bits() - LEAST_LANES.ilog2()
    }
    /// Returns the bits of the directions in which a sub-lattice has half of the lattice's extent.
    #[inline(always)]
    pub(super) const fn halved(self) -> u32 {
        0b1111 & !(1 << self.rest)
    }
    /// Returns the bits of all directions in whose second half a lane is, from the bits of the directions that a lane's number
    /// contains.
    #[inline(always)]
    const fn with_rest(self, directions: u32) -> u32 {
        directions | (parity(directions & self.odd) << self.rest) & 0b1111
    }
    /// Returns the bits of the directions in whose second half a lane is.
    #[inline(always)]
    const fn of_lane(self, lane: u32) -> u32 {
        let below = lane & ((1 << self.rest) - 1);
        self.with_rest(below | (lane & !below) << 1)
    }
    /// Returns the lane that is in the second halves of these directions, or the bits of a lane that stand for them.
    #[inline(always)]
    const fn lane(self, directions: u32) -> u32 {
        let below = directions & ((1 << self.rest) - 1);
        below | (directions & !((2 << self.rest) - 1)) >> 1
    }
    /// Returns the lanes of a vector that are in the second half of an odd number of the directions, for a group with number m
    /// = `turn`.
    #[inline(always)]
    fn in_second(self, directions: u32, turn: u32) -> Where {
        // A lane is in the second half of the direction without a bit if it is in the second half of an odd number of
        // the other odd directions.
        let others = if directions >> self.rest & 1 == 0 { 0 } else { self.odd };
        let bits = self.lane(directions ^ others);
        // Bit j of element k is set if j and k have an odd number of set bits in common.
        const LANES: [u16; 16] = {
            let mut lanes = [0; 16];
            let mut k = 0;
            while k < 256 {
                lanes[k / 16] |= (parity(((k / 16) & (k % 16)) as u32) as u16) << (k % 16);
                k += 1;
            }
            lanes
        };
        let lanes = LANES[bits as usize] as u32;
        Where(if parity(bits & turn) == 0 { lanes } else { lanes ^ 0xffff })
    }
}

impl Order {
    /// Returns the change of an index from sub-lattice to sub-lattice in direction `mu`: the bits that flip, and an additional
    /// increment for a site of the first sub-lattice.
    #[inline(always)]
    pub(super) fn across_halves(&self, s: &Site, mu: usize) -> (u32, u32) {
        let Halves { odd, rest } = self.halves;
        let is_odd = odd >> mu & 1 == 1 && mu as u32 != rest;
        (self.halves.lane(1 << mu) * self.lanes, if is_odd { s.shift } else { 0 })
    }
}

impl Geometry {
    #[inline(always)]
    pub(super) const fn halves(&self) -> Halves {
        Halves::new(self.ends >> ODD_HALVES)
    }
    /// Returns the lanes of a group whose steps in t cross the end of the whole lattice an odd number of times.
    #[inline(always)]
    pub(super) fn lanes_crossing_end(&self, s: &Site, forward: bool, steps: u32) -> Where {
        if !self.has_end(forward) {
            return Where::NOWHERE;
        }
        let crosses = |t: u32| {
            if steps == 3 {
                self.three_cross(t, forward)
            } else if forward {
                t + 1 == self.t
            } else {
                t == 0
            }
        };
        // `first` and `second` state whether the lanes of the first and of the second half in t cross the end.
        let half = self.t / 2;
        let (first, second) = (crosses(s.t), crosses(if s.t < half { s.t + half } else { s.t - half }));
        let Where(lanes) = self.halves().in_second(1 << 3, first_and_turn(s.index).1);
        Where(if first { lanes ^ 0xffff } else { 0 } | if second { lanes } else { 0 })
    }
    /// Returns the lanes of a group whose sum of coordinates in `directions`, one bit each, differs in parity from the sum at
    /// the group's own place; none for a site.
    #[inline(always)]
    pub(crate) fn lanes_of_other_parity(&self, s: &Site, directions: u32) -> Where {
        let halves = self.halves();
        if !s.group || halves.odd == 0 {
            return Where::NOWHERE;
        }
        halves.in_second(directions & halves.odd, first_and_turn(s.index).1)
    }
    /// Returns the site that is half of the lattice further in each of `directions`, one bit each.
    #[inline(always)]
    fn translated(&self, s: &Site, directions: u32) -> Site {
        let [x, y, z, t] = self.size();
        let moved = |c: u32, extent: u32, mu: u32| {
            let to = c + (directions >> mu & 1) * (extent / 2);
            if to >= extent { to - extent } else { to }
        };
        let to = moved(2 * s.half_x + s.odd_x, x, 0);
        let (y, z, t) = (moved(s.y, y, 1), moved(s.z, z, 2), moved(s.t, t, 3));
        Site { half_x: to >> 1, odd_x: to & 1, y, z, t, ..*s }
    }
    /// Returns a site from the site at the same place of the first sub-lattice, which already has the index of the result. A
    /// group stays in the first sub-lattice.
    #[inline(always)]
    pub(super) fn at_own_place(&self, s: Site) -> Site {
        let halves = self.halves();
        if halves.odd != 0 {
            return self.with_odd_halves(&s);
        }
        if s.group || !self.is_in_lane_order() {
            return s;
        }
        let SubLatticeExtents { half_x, y, z, t } = self.extents(self.order(false));
        let start = |mu: u32, extent: u32| (s.index >> mu & 1) * extent;
        let (half_x, y) = (s.half_x + start(0, half_x.get()), s.y + start(1, y.get()));
        Site { half_x, y, z: s.z + start(2, z.get()), t: s.t + start(3, t), ..s }
    }
    /// Returns the site at the same place of the first sub-lattice, with the index of `s`.
    #[inline(always)]
    pub(super) fn at_first_place(&self, s: &Site) -> Site {
        if s.group || !self.is_in_lane_order() {
            return *s;
        }
        if self.halves().odd != 0 {
            return self.with_odd_halves(s);
        }
        let SubLatticeExtents { half_x, y, z, t } = self.extents(self.order(false));
        let place = |c: u32, extent: u32| if c >= extent { c - extent } else { c };
        let (half_x, y) = (place(s.half_x, half_x.get()), place(s.y, y.get()));
        Site { half_x, y, z: place(s.z, z.get()), t: place(s.t, t), ..*s }
    }
    /// Converts a site of the first sub-lattice to the actual one, or back, if halves are odd. It is not inlined, because it
    /// would otherwise be compiled into every kernel.
    #[inline(never)]
    fn with_odd_halves(&self, s: &Site) -> Site {
        let (halves, order) = (self.halves(), self.order_of(s));
        let s = if s.group { *s } else { self.translated(s, halves.of_lane(s.index & (halves.sites() - 1))) };
        // `to` is the site that is half of the lattice further in the direction without a bit.
        let to = self.translated(&s, 1 << halves.rest);
        let extents = self.extents(order);
        let (nx, ny, nz) = (extents.half_x.get(), extents.y.get(), extents.z.get());
        let (from, to, stride) = match halves.rest {
            0 => (s.half_x, to.half_x, 1),
            1 => (s.y, to.y, nx),
            2 => (s.z, to.z, nx * ny),
            _ => (s.t, to.t, nx * ny * nz),
        };
        Site { shift: to.wrapping_sub(from).wrapping_mul(stride) << order.unit, ..s }
    }
    /// Returns the index of a site in lane order from its coordinates.
    #[inline(always)]
    pub(super) fn of_place(&self, s: &Site) -> u32 {
        let (halves, order) = (self.halves(), self.order(false));
        let [x, y, z, t] = self.size();
        let second = |c: u32, extent: u32, mu: u32| ((2 * c >= extent) as u32) << mu;
        let directions =
            second(2 * s.half_x + s.odd_x, x, 0) | second(s.y, y, 1) | second(s.z, z, 2) | second(s.t, t, 3);
        let directions = halves.with_rest(directions & halves.halved());
        let first = self.translated(s, directions);
        let extents = self.extents(order);
        let (nx, ny, nz) = (extents.half_x.get(), extents.y.get(), extents.z.get());
        let number = first.half_x + nx * (first.y + ny * (first.z + nz * first.t));
        number << order.unit | halves.lane(directions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Region;
    use std::vec::Vec;

    /// Lattices with no half that is an odd number of sites, and with one, two, three and four, with and without x among them.
    const EXTENTS: [[u32; 4]; 11] = [
        [4, 4, 4, 4],
        [8, 4, 12, 16],
        [12, 8, 4, 8],
        [4, 8, 4, 6],
        [4, 2, 8, 4],
        [10, 4, 4, 8],
        [2, 4, 6, 8],
        [8, 6, 4, 10],
        [4, 6, 2, 10],
        [6, 6, 6, 6],
        [2, 2, 2, 2],
    ];

    fn coordinates(s: &Site) -> [u32; 4] {
        [2 * s.half_x + s.odd_x, s.y, s.z, s.t]
    }

    /// Checks that each site has a unique index, that its neighbours are one and three steps away, and that lexicographic order
    /// is that of the lattice.
    #[test]
    fn sites_are_where_they_are_without_lanes() {
        for extents in EXTENTS {
            let (plain, lanes) = (Geometry::new(extents), Geometry::new(extents).in_lane_order());
            assert!(lanes.is_in_lane_order() && !plain.is_in_lane_order());
            for parity in 0..2 {
                for i in 0..plain.half_volume() {
                    let here = plain.site(i, parity);
                    let index = lanes.index_of(coordinates(&here));
                    let there = lanes.site(index, parity);
                    assert_eq!((coordinates(&there), there.index), (coordinates(&here), index));
                    assert_eq!(lanes.lexicographic(&there), plain.lexicographic(&here));
                    for mu in 0..4 {
                        let face = plain.face_index(&here, mu);
                        assert_eq!(lanes.face_index(&there, mu), face);
                        assert_eq!(lanes.of_face(face, mu, coordinates(&here)[mu], parity), index);
                        for forward in [false, true] {
                            let at = |g: &Geometry, i: u32| coordinates(&g.site(i, 1 - parity));
                            let one = lanes.neighbour(&there, mu, forward);
                            assert_eq!(at(&lanes, one), at(&plain, plain.neighbour(&here, mu, forward)));
                            let three = lanes.third_neighbour(&there, mu, forward);
                            assert_eq!(at(&lanes, three), at(&plain, plain.third_neighbour(&here, mu, forward)));
                        }
                    }
                }
                let start = [0, 1, 2, 3].map(|mu| [2, 1, 0, 3][mu] % extents[mu]);
                let length = [0, 1, 2, 3].map(|mu| [2, 4, 3, 2][mu].min(extents[mu]));
                let (region, layers) = (
                    Region::new(start, length),
                    Region::on(&plain, [0, 0, 0, 1], [extents[0], extents[1], extents[2], 2]),
                );
                for region in [region, layers] {
                    for i in 0..region.sites(&plain) {
                        let at = |g: &Geometry| coordinates(&g.site(region.index(i, g, parity), parity));
                        assert_eq!(at(&lanes), at(&plain));
                    }
                }
            }
        }
    }

    /// Checks that the neighbours of a group, or of a part of it, are those of its sites, including crossings of the end and
    /// odd coordinates.
    #[test]
    fn groups_have_the_neighbours_of_their_sites() {
        for extents in EXTENTS {
            let g = Geometry::new(extents).in_lane_order();
            let together = g.group_sites();
            let all_even = extents.iter().all(|extent| extent.is_multiple_of(4));
            assert_eq!(together, if all_even { 16 } else { 8 });
            for (parity, width) in [(0, 4), (1, 4), (0, 8), (1, 8), (0, 16), (1, 16)] {
                if width > together {
                    continue;
                }
                for first in (0..g.half_volume()).step_by(width as usize) {
                    let index = group(first, together);
                    let x = g.site_or_group(index, parity, true);
                    let sites = |index: u32| {
                        let (site, turn) = first_and_turn(index);
                        (0..width).map(|j| site + (j ^ turn)).collect::<Vec<_>>()
                    };
                    assert_eq!(sites(index), (first..first + width).collect::<Vec<_>>());
                    for (lane, site) in sites(index).into_iter().enumerate() {
                        let s = g.site(site, parity);
                        for mu in 0..4 {
                            for forward in [false, true] {
                                assert_eq!(sites(g.neighbour(&x, mu, forward))[lane], g.neighbour(&s, mu, forward));
                                let three = g.third_neighbour(&x, mu, forward);
                                assert_eq!(sites(three)[lane], g.third_neighbour(&s, mu, forward));
                            }
                        }
                        for forward in [false, true] {
                            assert_eq!(g.crosses_end(&x, forward).is(lane), g.crosses_end(&s, forward).any());
                            let three = g.crosses_end_in_three(&x, forward);
                            assert_eq!(three.is(lane), g.crosses_end_in_three(&s, forward).any());
                        }
                        for directions in 0..16 {
                            let sum =
                                |s: &Site| (0..4).map(|mu| (directions >> mu & 1) * coordinates(s)[mu]).sum::<u32>();
                            let other = g.lanes_of_other_parity(&x, directions);
                            assert_eq!(other.is(lane), (sum(&s) ^ sum(&x)) & 1 == 1);
                        }
                    }
                }
            }
        }
    }

    /// Checks the neighbours of a group whose lanes are exchanged: two steps lead to the same place as from a site.
    #[test]
    fn groups_with_changed_places_have_the_neighbours_of_their_sites() {
        for extents in EXTENTS {
            let g = Geometry::new(extents).in_lane_order();
            let together = g.group_sites();
            for first in (0..g.half_volume()).step_by(together as usize) {
                let x = g.site_or_group(group(first, together), 0, true);
                for (mu, nu) in [(0, 3), (1, 0), (2, 1), (3, 2)] {
                    for forward in [false, true] {
                        let next = g.site_or_group(g.neighbour(&x, mu, forward), 1, true);
                        let (last, turn) = first_and_turn(g.neighbour(&next, nu, true));
                        for lane in 0..together {
                            let of_site = g.site(g.neighbour(&g.site(first + lane, 0), mu, forward), 1);
                            assert_eq!(last + (lane ^ turn), g.neighbour(&of_site, nu, true));
                            assert_eq!(
                                g.crosses_end(&next, true).is(lane as usize),
                                g.crosses_end(&of_site, true).any()
                            );
                            let other = g.lanes_of_other_parity(&next, 0b1011).is(lane as usize);
                            let sum = |s: &Site| coordinates(s)[0] + coordinates(s)[1] + coordinates(s)[3];
                            assert_eq!(other, (sum(&of_site) ^ sum(&next)) & 1 == 1);
                        }
                    }
                }
            }
        }
    }
}
