//! Extents of a lattice, the order of its sites in host memory and in files, and sums over sites whose bits do not depend on the
//! distribution of the sites.
mod exact;

pub(crate) use exact::FixedPointSum;

/// Extents X, Y, Z, T of a periodic four-dimensional lattice. The sites are ordered lexicographically with x fastest: index = x + X (y + Y
/// (z + Z t)). Operators and devices need even extents, so that even and odd sites alternate. Odd extents are allowed for fields in host
/// memory and in files: see [`of_any_extents`](Self::of_any_extents).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lattice {
    size: [usize; 4],
}

/// Reason why four numbers are not the extents of a lattice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LatticeError {
    /// An extent is odd or zero: even and odd sites would not alternate across the boundary.
    #[error("extent {axis} = {extent} of lattice {size:?}: every extent must be even and at least 2")]
    Odd {
        /// Axis: x, y, z or t.
        axis: char,
        /// Extent that is odd or zero.
        extent: usize,
        /// All four extents.
        size: [usize; 4],
    },
    /// An extent is zero.
    #[error("extent {axis} of lattice {size:?} is 0: every extent must be at least 1")]
    Empty {
        /// Axis: x, y, z or t.
        axis: char,
        /// All four extents.
        size: [usize; 4],
    },
    /// An extent is 2³¹ or more, or there are more sites than [`MOST_SITES`].
    #[error("lattice {size:?} is too large: extents must be below 2³¹, with at most 2⁴⁸ sites in total")]
    TooLarge {
        /// All four extents.
        size: [usize; 4],
    },
}

/// Largest number of sites of a lattice. With less than 2¹⁶ bytes for each site, the number of bytes fits into 64 bits. Random streams use
/// the bits above the site's number for other purposes. [`Domain`](crate::domain::Domain) has a smaller limit for one device.
pub const MOST_SITES: u64 = 1 << 48;

impl Lattice {
    /// Makes a lattice of even extents X, Y, Z, T.
    ///
    /// # Errors
    /// Fails if an extent is odd, zero, or 2³¹ or more, or if there are more sites than [`MOST_SITES`].
    pub fn new(size: [usize; 4]) -> Result<Self, LatticeError> {
        Lattice { size }.require_even()?;
        Self::of_any_extents(size)
    }
    /// Makes a lattice whose extents may be odd, for fields that are read, checked, measured and written on the host. Devices reject it:
    /// see [`Domain`](crate::domain::Domain).
    ///
    /// # Errors
    /// Fails if an extent is zero, or 2³¹ or more, or if there are more sites than [`MOST_SITES`].
    pub fn of_any_extents(size: [usize; 4]) -> Result<Self, LatticeError> {
        if let Some((axis, _)) = ['x', 'y', 'z', 't'].into_iter().zip(size).find(|(_, extent)| *extent == 0) {
            return Err(LatticeError::Empty { axis, size });
        }
        let sites = size.iter().try_fold(1usize, |n, &e| n.checked_mul(e));
        let countable = sites.is_some_and(|n| n as u64 <= MOST_SITES) && size.iter().all(|&e| e < 1 << 31);
        if countable { Ok(Self { size }) } else { Err(LatticeError::TooLarge { size }) }
    }
    /// Returns the lattice of a single time slice.
    #[must_use]
    pub fn of_one_time(&self) -> Self {
        let [x, y, z, _] = self.size;
        Lattice { size: [x, y, z, 1] }
    }
    /// Checks that all extents are even.
    ///
    /// # Errors
    /// [`LatticeError::Odd`] for the first extent that is odd or zero.
    pub fn require_even(&self) -> Result<(), LatticeError> {
        let size = self.size;
        let odd = ['x', 'y', 'z', 't'].into_iter().zip(size).find(|(_, extent)| *extent < 2 || extent % 2 != 0);
        odd.map_or(Ok(()), |(axis, extent)| Err(LatticeError::Odd { axis, extent, size }))
    }
    /// Returns the extents X, Y, Z, T.
    pub fn size(&self) -> [usize; 4] {
        self.size
    }
    /// Returns the number of sites.
    pub fn volume(&self) -> usize {
        self.size.iter().product()
    }
    /// Returns the number of sites of one parity; all extents must be even.
    pub fn half_volume(&self) -> usize {
        self.volume() / 2
    }
    /// Returns the lexicographic index of the site with the coordinates x, y, z, t.
    pub fn index(&self, [x, y, z, t]: [usize; 4]) -> usize {
        let [nx, ny, nz, _] = self.size;
        x + nx * (y + ny * (z + nz * t))
    }
    /// Returns the coordinates of the site with the lexicographic index `index`.
    pub fn coordinates(&self, index: usize) -> [usize; 4] {
        let [nx, ny, nz, _] = self.size;
        [index % nx, index / nx % ny, index / (nx * ny) % nz, index / (nx * ny * nz)]
    }
    /// Returns the parity of a site: (x + y + z + t) mod 2.
    pub fn parity(&self, site: [usize; 4]) -> usize {
        site.iter().sum::<usize>() % 2
    }
    /// Returns the index of the site one step from `index` in direction `mu`, forward or backward, with periodic boundaries.
    pub fn neighbour(&self, index: usize, mu: usize, forward: bool) -> usize {
        let mut site = self.coordinates(index);
        let extent = self.size[mu];
        site[mu] = if forward { (site[mu] + 1) % extent } else { (site[mu] + extent - 1) % extent };
        self.index(site)
    }
}

impl std::fmt::Display for Lattice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [x, y, z, t] = self.size;
        write!(f, "{x}×{y}×{z}×{t}")
    }
}

/// A box of a lattice, such as the part of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The whole lattice.
    pub global: Lattice,
    /// Global coordinates of the first site of the box. They are even if the extents are, except for a box of one time slice.
    pub origin: [usize; 4],
    /// Extents of the box as a lattice, whose sites are counted from the first site of the box.
    pub local: Lattice,
}

impl Section {
    /// Converts the index of a site in the box to its index in the whole lattice.
    pub fn global_index(&self, index: usize) -> usize {
        let site = self.local.coordinates(index);
        self.global.index(std::array::from_fn(|mu| self.origin[mu] + site[mu]))
    }
    /// Returns the coordinates in the box of a site of the whole lattice; `None` if the site is not in the box.
    pub fn locate(&self, site: [usize; 4]) -> Option<[usize; 4]> {
        let local: [usize; 4] = std::array::from_fn(|mu| site[mu].wrapping_sub(self.origin[mu]));
        (0..4).all(|mu| local[mu] < self.local.size[mu]).then_some(local)
    }
    /// Returns the sites of the box at one time of the whole lattice; `None` if the box has no such sites.
    pub fn at_time(&self, time: usize) -> Option<Self> {
        let here = (self.origin[3]..self.origin[3] + self.local.size[3]).contains(&time);
        let [x, y, z, _] = self.origin;
        here.then(|| Section { origin: [x, y, z, time], local: self.local.of_one_time(), ..*self })
    }
    /// Returns the sites of the section as a cuboid of the whole lattice.
    pub(crate) fn cuboid(&self) -> Cuboid {
        Cuboid { origin: self.origin, size: self.local.size }
    }
    /// Returns the sites one step ahead of the box in direction `mu`, across the end of the lattice if necessary; `None` if the box spans
    /// the whole direction.
    pub(crate) fn ahead(&self, mu: usize) -> Option<Cuboid> {
        let Cuboid { mut origin, mut size } = self.cuboid();
        if size[mu] == self.global.size[mu] {
            return None;
        }
        origin[mu] = (origin[mu] + size[mu]) % self.global.size[mu];
        size[mu] = 1;
        Some(Cuboid { origin, size })
    }
}

/// Converts a lattice to the section that contains all of it.
impl From<Lattice> for Section {
    fn from(lattice: Lattice) -> Self {
        Section { global: lattice, origin: [0; 4], local: lattice }
    }
}

/// A box of sites at any position in a lattice, with any extents. Sites are numbered as in a [`Lattice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cuboid {
    /// Coordinates of the first site.
    pub origin: [usize; 4],
    /// Extents of the box.
    pub size: [usize; 4],
}

impl Cuboid {
    pub fn volume(&self) -> usize {
        self.size.iter().product()
    }
    /// Returns the coordinates of the site with number `index` in the box.
    pub fn site(&self, index: usize) -> [usize; 4] {
        let mut rest = index;
        std::array::from_fn(|mu| {
            let step = rest % self.size[mu];
            rest /= self.size[mu];
            self.origin[mu] + step
        })
    }
    /// Returns the number in the box of the site with these coordinates.
    pub fn index(&self, site: [usize; 4]) -> usize {
        (0..4).rev().fold(0, |index, mu| site[mu] - self.origin[mu] + self.size[mu] * index)
    }
    /// Returns the sites that both boxes contain; `None` if there are none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let end = |c: &Self, mu: usize| c.origin[mu] + c.size[mu];
        let origin: [usize; 4] = std::array::from_fn(|mu| self.origin[mu].max(other.origin[mu]));
        let size = std::array::from_fn(|mu| end(self, mu).min(end(other, mu)).saturating_sub(origin[mu]));
        (!size.contains(&0)).then_some(Self { origin, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lattice_for_many_devices_is_counted_in_64_bits() {
        let global = Lattice::new([192, 192, 192, 384]).unwrap();
        assert_eq!(global.volume(), 2_717_908_992);
        let last = [191, 191, 191, 383];
        assert_eq!(global.index(last), global.volume() - 1);
        assert_eq!(global.coordinates(global.volume() - 1), last);
        let section = Section { global, origin: [0, 96, 96, 360], local: Lattice::new([192, 96, 96, 24]).unwrap() };
        assert_eq!(section.global_index(section.local.volume() - 1), global.volume() - 1);
        for size in [[1 << 31, 2, 2, 2], [1 << 12, 1 << 12, 1 << 12, 1 << 13], [1 << 30; 4]] {
            assert_eq!(Lattice::new(size), Err(LatticeError::TooLarge { size }));
        }
        assert!(Lattice::new([1 << 12; 4]).is_ok());
    }

    #[test]
    fn odd_extents_are_for_hosts() {
        let lattice = Lattice::of_any_extents([3, 5, 1, 7]).unwrap();
        assert_eq!(lattice.volume(), 105);
        assert!((0..105).all(|site| lattice.index(lattice.coordinates(site)) == site));
        assert_eq!(lattice.neighbour(0, 2, true), 0);
        let odd = LatticeError::Odd { axis: 'x', extent: 3, size: [3, 5, 1, 7] };
        assert_eq!((lattice.require_even(), Lattice::new([3, 5, 1, 7])), (Err(odd.clone()), Err(odd)));
        let empty = Lattice::of_any_extents([2, 0, 4, 3]);
        assert_eq!(empty, Err(LatticeError::Empty { axis: 'y', size: [2, 0, 4, 3] }));
        assert!(Lattice::of_any_extents([1 << 31, 1, 1, 1]).is_err());
    }
}
