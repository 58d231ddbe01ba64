//! Lane order: sites in groups of 16 that vector registers of a CPU compute together.
//!
//! The lattice is halved in all directions, into 16 sub-lattices of equal shape (Boyle et al. 2015, arXiv 1512.03487). A group has a site of
//! each at the same place of all, in lanes that follow each other in memory: bit μ of a lane's number says in which half of direction
//! μ its sub-lattice is. Extents are multiples of four, so that all sites of a group have the same parity. The neighbours of a group's
//! sites are those of the next group, lane by lane; beyond the end of the sub-lattices they are those of the first group again, where lanes
//! that differ in bit μ have changed places.
//!
//! Kernels get the number of a group in place of the index of a site, with `GROUP` set, and with a number m in the bits above [`LANES`]'s
//! groups: lane j of a vector is lane j ⊕ m of the group. So m says which part of a group a vector that is shorter has, and which lanes change
//! places.
use super::{Geometry, Site, Where};

/// Sites of a group.
pub const LANES: u32 = 16;
/// Marks the number of a group.
pub(super) const GROUP: u32 = 1 << 31;
/// Where m is.
pub(super) const TURN: u32 = 27;

/// What a kernel gets for group number `number` and the lanes from number `first` on.
#[inline(always)]
pub const fn group(number: u32, first: u32) -> u32 {
    GROUP | first << TURN | number
}
/// The number of a group.
#[inline(always)]
pub(super) const fn number(group: u32) -> u32 {
    group & ((1 << TURN) - 1)
}
/// The first site of a group, and m.
#[inline(always)]
pub const fn first_and_turn(group: u32) -> (u32, u32) {
    (LANES * number(group), group >> TURN & (LANES - 1))
}

impl Geometry {
    /// The lanes of a group whose steps in t cross the end of the whole lattice, an odd number of times.
    #[inline(always)]
    pub(super) fn lanes_crossing_end(&self, s: &Site, forward: bool, steps: u32) -> Where {
        if !self.has_end(forward) {
            return Where(0);
        }
        // Lanes of the first and of the second half in t.
        let crosses = |second: u32| {
            let t = s.t + second * (self.t / 2);
            if steps == 3 {
                self.three_cross(t, forward)
            } else if forward {
                t + 1 == self.t
            } else {
                t == 0
            }
        };
        let (_, turn) = first_and_turn(s.index);
        let lanes_of_second = if turn & 8 == 0 { 0xff00 } else { 0x00ff };
        let of = |second: u32, lanes: u32| if crosses(second) { lanes } else { 0 };
        Where(of(0, lanes_of_second ^ 0xffff) | of(1, lanes_of_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Region;
    use std::vec;

    const EXTENTS: [[u32; 4]; 3] = [[4, 4, 4, 4], [8, 4, 12, 16], [12, 8, 4, 8]];

    fn coordinates(s: &Site) -> [u32; 4] {
        [2 * s.half_x + s.odd_x, s.y, s.z, s.t]
    }

    /// Each site has an index of its own, its neighbours are one and three steps away, and lexicographic order is that of the lattice.
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
                let (start, length) = ([2, 1, 0, 3], [2, 4, 3, 2]);
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

    /// The neighbours of a group are those of its sites, and so is where they cross the end.
    #[test]
    fn groups_have_the_neighbours_of_their_sites() {
        for extents in EXTENTS {
            let g = Geometry::new(extents).in_lane_order();
            for parity in 0..2 {
                let mut seen = vec![false; g.half_volume() as usize];
                for number in 0..g.half_volume() / LANES {
                    for first in [0, 4, 8, 12] {
                        let index = group(number, first);
                        let x = g.site_or_group(index, parity, true);
                        let sites = |index: u32| {
                            let (site, turn) = first_and_turn(index);
                            [0, 1, 2, 3].map(|j| site + (j ^ turn))
                        };
                        for (lane, site) in sites(index).into_iter().enumerate() {
                            assert!(!std::mem::replace(&mut seen[site as usize], true));
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
                        }
                    }
                }
                assert!(!seen.contains(&false));
            }
        }
    }
}
