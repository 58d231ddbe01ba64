//! Interior and exteriors of a local lattice.
use gpu_kernels::lattice::{Geometry, Region};

/// A part of the local lattice.
#[derive(Clone, Copy, Debug)]
pub struct RegionPart {
    /// Box that contains the sites.
    pub region: Region,
    /// Number of sites of one parity in the part.
    pub sites: u32,
}

/// Division of the local lattice: the interior, whose hops stay on the lattice, and one exterior for each partitioned direction. An
/// exterior can be computed when the ghost zones of its direction and of those before it are filled. Every site is in exactly one part.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Interior; `None` if the lattice is too thin to have one.
    pub interior: Option<RegionPart>,
    /// Exterior for each direction μ; `None` if μ is not partitioned.
    pub exteriors: [Option<RegionPart>; 4],
}

impl Parts {
    /// Divides a lattice for hops of up to `hops` steps; bit μ of `cut` is set if direction μ is partitioned.
    pub fn new(geometry: &Geometry, cut: u32, hops: u32) -> Self {
        let extents = geometry.size();
        let is_cut = |mu: usize| cut >> mu & 1 == 1;
        // `unreached` returns the first coordinate along μ whose hops do not leave the lattice, and the number of such coordinates.
        let unreached =
            |mu: usize| if is_cut(mu) { (hops, extents[mu].saturating_sub(2 * hops)) } else { (0, extents[mu]) };
        // `edge` returns the remaining coordinates along μ, which are those around the end of the lattice; if the lattice is too thin for
        // an interior, it returns all coordinates.
        let edge = |mu: usize| match extents[mu].checked_sub(hops) {
            Some(start) if 2 * hops < extents[mu] => (start, 2 * hops),
            _ => (0, extents[mu]),
        };
        let part = |intervals: [(u32, u32); 4]| {
            if intervals.iter().any(|(_, length)| *length == 0) {
                return None;
            }
            let region = Region::on(geometry, intervals.map(|(start, _)| start), intervals.map(|(_, length)| length));
            Some(RegionPart { region, sites: region.sites(geometry) })
        };
        let interior = part(std::array::from_fn(unreached));
        // Sites near an end in two directions belong to the later direction.
        let exterior = |mu: usize| {
            let interval = |nu: usize| match nu.cmp(&mu) {
                std::cmp::Ordering::Less => (0, extents[nu]),
                std::cmp::Ordering::Equal => edge(nu),
                std::cmp::Ordering::Greater => unreached(nu),
            };
            if is_cut(mu) { part(std::array::from_fn(interval)) } else { None }
        };
        Parts { interior, exteriors: std::array::from_fn(exterior) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a hop along `mu` from x leaves the lattice.
    fn leaves(x: u32, extent: u32, hops: u32) -> bool {
        x < hops || x + hops >= extent
    }

    #[test]
    fn every_site_is_in_the_part_of_the_last_cut_direction_that_its_hops_leave() {
        for (extents, hops) in [
            ([4, 2, 6, 8], 1),
            ([2, 4, 2, 2], 1),
            ([8, 4, 6, 10], 3),
            ([4, 4, 4, 4], 3),
            ([6, 12, 4, 8], 3),
            ([10, 8, 12, 6], 3),
        ] {
            let geometry = Geometry::new(extents);
            for cut in 0..16u32 {
                let parts = Parts::new(&geometry, cut, hops);
                for parity in 0..2 {
                    let mut owner = vec![None; geometry.half_volume() as usize];
                    let all = [(4, parts.interior)].into_iter().chain(parts.exteriors.into_iter().enumerate());
                    for (number, part) in all {
                        let Some(part) = part else { continue };
                        for i in 0..part.sites {
                            let at = part.region.index(i, &geometry, parity) as usize;
                            assert_eq!(owner[at].replace(number), None, "{extents:?} {cut:04b}: site {at} twice");
                        }
                    }
                    for (at, owner) in owner.into_iter().enumerate() {
                        let s = geometry.site(at as u32, parity);
                        let x = [2 * s.half_x + s.odd_x, s.y, s.z, s.t];
                        let out = |mu: usize| cut >> mu & 1 == 1 && leaves(x[mu], extents[mu], hops);
                        let expected = (0..4).rev().find(|mu| out(*mu)).unwrap_or(4);
                        assert_eq!(owner, Some(expected), "{extents:?} {cut:04b} {hops}: {x:?}");
                    }
                }
            }
        }
    }
}
