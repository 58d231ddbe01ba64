//! Positions of the sites of a box in a file that has the sites of the whole lattice in lexicographic order.
use crate::lattice::{Cuboid, Section};
use std::ops::Range;

/// The sites of a box, divided into runs that are contiguous in the file. A run is a row in x, or a plane if the box spans the lattice in
/// x, and so on. If the box is smaller than the lattice in t only, it is a single run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    whole: [usize; 4],
    sites: Cuboid,
    /// Number of sites in a run.
    length: usize,
}

impl Runs {
    fn new(whole: [usize; 4], sites: Cuboid) -> Self {
        // A run includes the first direction in which the box is smaller than the lattice.
        let cut = (0..3).find(|&mu| sites.size[mu] < whole[mu]).unwrap_or(3);
        Self { whole, sites, length: sites.size[..=cut].iter().product() }
    }
    /// Returns contiguous pieces of the file for a range of sites, which are numbered in the order of the box. A piece is the number of its
    /// first site in the whole lattice, and its number of sites.
    pub fn pieces(&self, sites: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
        let whole = Cuboid { origin: [0; 4], size: self.whole };
        let mut at = sites.start;
        std::iter::from_fn(move || {
            if at >= sites.end {
                return None;
            }
            let count = (self.length - at % self.length).min(sites.end - at);
            let first = whole.index(self.sites.site(at));
            at += count;
            Some((first, count))
        })
    }
    /// Returns the runs of the time slice with number `t` in a section.
    pub fn of_slice(section: &Section, t: usize) -> Self {
        let Cuboid { mut origin, mut size } = section.cuboid();
        (origin[3], size[3]) = (origin[3] + t, 1);
        Self::new(section.global.size(), Cuboid { origin, size })
    }
    /// Returns the runs of the even sites of a section, for a file that contains only the even sites of the lattice. The section must begin
    /// at even coordinates.
    ///
    /// Among the sites 2k and 2k + 1, which are neighbours in x, one is even; it is number k among the even sites. The even sites are
    /// therefore numbered like the sites of a lattice of half the extent in x.
    pub fn of_even_sites(section: &Section) -> Self {
        let halved = |[x, y, z, t]: [usize; 4]| [x / 2, y, z, t];
        let Cuboid { origin, size } = section.cuboid();
        Self::new(halved(section.global.size()), Cuboid { origin: halved(origin), size: halved(size) })
    }
}

impl From<&Section> for Runs {
    fn from(section: &Section) -> Self {
        Self::new(section.global.size(), section.cuboid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;

    fn section(global: [usize; 4], origin: [usize; 4], local: [usize; 4]) -> Section {
        Section { global: Lattice::new(global).unwrap(), origin, local: Lattice::new(local).unwrap() }
    }

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        let global = [4, 6, 4, 8];
        for (local, length) in [
            ([4, 6, 4, 8], 768),
            ([4, 6, 4, 2], 192),
            ([4, 6, 2, 8], 48),
            ([4, 2, 4, 8], 8),
            ([4, 2, 2, 2], 8),
            ([2, 6, 4, 8], 2),
        ] {
            let section = section(global, [0; 4], local);
            let runs = Runs::from(&section);
            assert_eq!(
                runs.pieces(0..section.local.volume())
                    .map(|(_, count)| count)
                    .collect::<std::collections::HashSet<_>>(),
                [length].into()
            );
        }
    }

    #[test]
    fn even_sites_are_numbered_among_themselves() {
        let section = section([4, 6, 4, 8], [2, 2, 0, 4], [2, 4, 4, 2]);
        let global = section.global;
        let is_even = |index: &usize| global.parity(global.coordinates(*index)) == 0;
        let even: Vec<usize> = (0..global.volume()).filter(is_even).collect();
        let mine = (0..section.local.volume()).map(|site| section.global_index(site)).filter(is_even);
        let runs = Runs::of_even_sites(&section);
        let numbers = runs.pieces(0..section.local.half_volume()).flat_map(|(first, count)| first..first + count);
        assert_eq!(numbers.map(|number| even[number]).collect::<Vec<_>>(), mine.collect::<Vec<_>>());
    }

    #[test]
    fn pieces_are_the_sites_of_the_section_in_its_order() {
        let section = section([4, 6, 4, 8], [2, 2, 0, 4], [2, 4, 4, 2]);
        let runs = Runs::from(&section);
        let sites = |range: Range<usize>| -> Vec<usize> {
            runs.pieces(range).flat_map(|(first, count)| first..first + count).collect()
        };
        let expected: Vec<_> = (0..section.local.volume()).map(|site| section.global_index(site)).collect();
        assert_eq!(sites(0..expected.len()), expected);
        for range in [0..0, 3..4, 1..30, 17..64] {
            assert_eq!(sites(range.clone()), expected[range]);
        }
        let line = |length: usize| [length, 1, 1, 1];
        let line = Runs::new(line(768), Cuboid { origin: [5, 0, 0, 0], size: line(295) });
        assert_eq!(line.pieces(0..295).collect::<Vec<_>>(), [(5, 295)]);
        assert_eq!(line.pieces(10..20).collect::<Vec<_>>(), [(15, 10)]);
    }
}
