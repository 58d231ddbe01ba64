//! Sites of one parity, their coordinates and neighbours.
//!
//! Sites of a parity are numbered by the checkerboard index i = lexicographic index / 2, x fastest, or on a CPU in lane order
//! ([`lanes`]).
//!
//! This module and [`storage`](crate::storage) depend on each other: an index refers to a group of sites if numbers hold
//! several sites, and a field finds its numbers by such an index.
#[cfg(not(target_arch = "nvptx64"))]
pub mod lanes;

use crate::algebra::Real;
use crate::storage::Element;

/// Divisor that is fixed when the kernel is launched. Division by it needs no division instruction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Divisor {
    divisor: u32,
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// Creates a divisor between 1 and 2³¹, for dividends below 2³¹.
    pub const fn new(divisor: u32) -> Self {
        assert!(divisor != 0 && divisor <= 1 << 31);
        // For s = ⌈log₂ d⌉ and m = ⌈2^(31+s) / d⌉ < 2³², ⌊n m / 2^(31+s)⌋ = ⌊n / d⌋ holds for every n < 2³¹.
        let s = divisor.next_power_of_two().trailing_zeros();
        let multiplier = (1u64 << (31 + s)).div_ceil(divisor as u64) as u32;
        Divisor { divisor, multiplier, shift: 31 + s }
    }
    /// Returns the divisor.
    #[inline(always)]
    pub const fn get(self) -> u32 {
        self.divisor
    }
    /// Returns division by the divisor halved `times` times, where halving must leave no remainder.
    #[inline(always)]
    const fn halved(self, times: u32) -> Self {
        Divisor { divisor: self.divisor >> times, multiplier: self.multiplier, shift: self.shift - times }
    }
    /// Returns the quotient and the remainder of `n`.
    #[inline(always)]
    pub fn divide(self, n: u32) -> (u32, u32) {
        let q = ((n as u64 * self.multiplier as u64) >> self.shift) as u32;
        (q, n - q * self.divisor)
    }
}

/// Geometry of the local lattice in the form that kernels use.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Geometry {
    half_x: Divisor,
    y: Divisor,
    z: Divisor,
    t: u32,
    /// Flags: [`UPPER_END`] and [`LOWER_END`] for ends in t that are ends of the whole lattice, and [`LANE_ORDER`]. From bit
    /// [`ODD_HALVES`] on they contain, in lane order, the directions in which half of the lattice is an odd number of sites.
    ends: u32,
    columns: Columns,
}

/// Order in which a launch for several right-hand sides traverses the lattice. Columns along t keep vectors in the second-level
/// cache until the next sites in t read them. All numbers count pairs of rows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Columns {
    /// Width of a column in y.
    y: Divisor,
    /// Width of a column in z.
    z: Divisor,
    /// Length of a column in t.
    t: Divisor,
    /// Number of columns next to each other in y.
    beside: Divisor,
}

impl Columns {
    /// Maximum width of a column in pairs of rows, in y and in z.
    const WIDEST: u32 = 8;

    const fn new([_, y, z, t]: [u32; 4]) -> Self {
        let (wide, deep) = (Self::width(y / 2), Self::width(z / 2));
        let along = if t < 2 { 1 } else { t / 2 };
        Columns {
            y: Divisor::new(wide),
            z: Divisor::new(deep),
            t: Divisor::new(along),
            beside: Divisor::new(if y < 2 { 1 } else { y / 2 / wide }),
        }
    }
    /// Returns the largest divisor of `pairs` up to [`WIDEST`](Self::WIDEST).
    const fn width(pairs: u32) -> u32 {
        let mut width = Self::WIDEST;
        while !pairs.is_multiple_of(width) {
            width -= 1;
        }
        width
    }
}

/// Flag for a local lattice that contains the last time slice of the whole lattice.
pub const UPPER_END: u32 = 1;
/// Flag for a local lattice that contains the first time slice of the whole lattice.
pub const LOWER_END: u32 = 2;
/// Flag of sites in lane order, which exists on a CPU only.
const LANE_ORDER: u32 = 4;
/// Position of the first of the four bits for directions with an odd half.
const ODD_HALVES: u32 = 3;

/// Maximum number of sites that a CPU computes together.
pub const MOST_LANES: u32 = 16;

/// Truth value for each site of a group, or for one site: bit j for site j.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Where(u32);

impl Where {
    /// Truth value that is false for all sites.
    pub const NOWHERE: Where = Where(0);
    /// Creates the truth value for a single site.
    #[inline(always)]
    const fn one(is: bool) -> Self {
        Where(is as u32)
    }
    /// Returns whether the truth value is true for the single site, or for any site of the group.
    #[inline(always)]
    pub const fn any(self) -> bool {
        self.0 != 0
    }
    /// Returns the truth values as bits: bit j for site j of the group.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self.0
    }
    /// Returns whether the condition is true for site `lane` of the group.
    #[cfg(test)]
    const fn is(self, lane: usize) -> bool {
        self.0 >> lane & 1 != 0
    }
}

/// Returns whether an index is that of the first site or of the first group.
#[inline(always)]
pub const fn is_first(index: u32) -> bool {
    #[cfg(not(target_arch = "nvptx64"))]
    let index = index & !lanes::GROUP;
    index == 0
}

/// Returns the index of part `part` of a group, if numbers of type `T` hold fewer sites than the group has. Otherwise
/// returns `index`.
#[inline(always)]
pub fn part_of_group<T: Real>(index: u32, part: usize) -> u32 {
    #[cfg(not(target_arch = "nvptx64"))]
    return index ^ ((T::LANES * part) as u32) << lanes::TURN;
    #[cfg(target_arch = "nvptx64")]
    {
        _ = part;
        index
    }
}

/// Site of one parity, or a group of such sites.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Checkerboard index of the site.
    pub index: u32,
    /// Half of the coordinate x, rounded down.
    pub half_x: u32,
    /// Remainder of x / 2, 0 or 1.
    pub odd_x: u32,
    /// Coordinate y.
    pub y: u32,
    /// Coordinate z.
    pub z: u32,
    /// Coordinate t.
    pub t: u32,
    /// Whether this is a group of sites. The index is then that of the group, and the coordinates are those of its site in the
    /// first sub-lattice.
    #[cfg(not(target_arch = "nvptx64"))]
    group: bool,
    /// Additional increment of the index if a step leads to the other half of the lattice and that half is an odd number of
    /// sites.
    #[cfg(not(target_arch = "nvptx64"))]
    shift: u32,
}

/// Meaning of an index: sites in checkerboard order, sites in lane order, or groups.
#[derive(Clone, Copy)]
struct Order {
    /// Bits of the directions in which the lattice is halved.
    halved: u32,
    /// Logarithm of the distance between the indices of neighbouring sites in x / 2 in one sub-lattice: the distance is 1 <<
    /// `unit`.
    unit: u32,
    /// Value of the index bit that holds the lowest bit of a lane's number; 0 without lanes.
    #[cfg(not(target_arch = "nvptx64"))]
    lanes: u32,
    /// Assignment of lanes to the halves of the lattice.
    #[cfg(not(target_arch = "nvptx64"))]
    halves: lanes::Halves,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Order {
    /// Returns the order of sites, or that of groups, of a lattice in lane order.
    #[inline(always)]
    const fn in_lanes(halves: lanes::Halves, group: bool) -> Self {
        let (unit, lanes) = if group { (halves.units(), 1 << lanes::TURN) } else { (halves.bits(), 1) };
        Order { halved: halves.halved(), unit, lanes, halves }
    }
}

/// Position of a site in its sub-lattice along a direction, with the steps of its index.
struct Along {
    here: u32,
    extent: u32,
    /// Distance between the indices of neighbours.
    stride: u32,
    /// Bits of an index that flip between sub-lattices.
    turn: u32,
    /// Increment of an index between sub-lattices.
    shift: u32,
}

impl Along {
    /// Returns the index of the site at the same place of the next sub-lattice.
    #[inline(always)]
    const fn of_next(&self, index: u32) -> u32 {
        (index ^ self.turn).wrapping_add(self.shift)
    }
}

/// Extents of the sub-lattices of an order. They are those of the whole lattice if it is not halved.
struct SubLatticeExtents {
    half_x: Divisor,
    y: Divisor,
    z: Divisor,
    t: u32,
}

impl Geometry {
    /// Creates a lattice from even extents X, Y, Z, T with fewer than 2³¹ sites.
    pub const fn new(extents: [u32; 4]) -> Self {
        Self::part(extents, UPPER_END | LOWER_END)
    }
    /// Creates a part of a larger lattice. `ends` contains [`UPPER_END`] if the part has the last time slice, and
    /// [`LOWER_END`] if it has the first.
    pub const fn part([x, y, z, t]: [u32; 4], ends: u32) -> Self {
        let columns = Columns::new([x, y, z, t]);
        Geometry { half_x: Divisor::new(x / 2), y: Divisor::new(y), z: Divisor::new(z), t, ends, columns }
    }
    /// Returns the lattice with its sites in lane order if its extents are even; otherwise returns it unchanged. Only
    /// kernels on a CPU support this order.
    #[must_use]
    pub fn in_lane_order(self) -> Self {
        let size = self.size();
        if size.iter().any(|extent| !extent.is_multiple_of(2)) {
            return self;
        }
        let odd: u32 = (0..4).map(|mu| (size[mu] / 2 % 2) << mu).sum();
        Geometry { ends: self.ends & (UPPER_END | LOWER_END) | LANE_ORDER | odd << ODD_HALVES, ..self }
    }
    /// Returns whether the sites are in lane order.
    #[inline(always)]
    pub const fn is_in_lane_order(&self) -> bool {
        cfg!(not(target_arch = "nvptx64")) && self.ends & LANE_ORDER != 0
    }
    /// Returns the number of sites in a group: a kernel on a CPU may compute that many sites together, starting at a
    /// multiple of the number.
    #[inline(always)]
    pub const fn group_sites(&self) -> u32 {
        #[cfg(not(target_arch = "nvptx64"))]
        if self.is_in_lane_order() {
            return self.halves().sites();
        }
        1
    }
    /// Returns the number of sites of one parity.
    #[inline(always)]
    pub fn half_volume(&self) -> u32 {
        self.half_x.get() * self.y.get() * self.z.get() * self.t
    }
    /// Returns the extents X, Y, Z, T.
    pub const fn size(&self) -> [u32; 4] {
        [2 * self.half_x.get(), self.y.get(), self.z.get(), self.t]
    }
    /// Returns the order of sites, or that of groups.
    #[inline(always)]
    const fn order(&self, group: bool) -> Order {
        #[cfg(not(target_arch = "nvptx64"))]
        if group || self.is_in_lane_order() {
            return Order::in_lanes(self.halves(), group);
        }
        _ = group;
        Order {
            halved: 0,
            unit: 0,
            #[cfg(not(target_arch = "nvptx64"))]
            lanes: 0,
            #[cfg(not(target_arch = "nvptx64"))]
            halves: self.halves(),
        }
    }
    #[inline(always)]
    const fn order_of(&self, s: &Site) -> Order {
        #[cfg(not(target_arch = "nvptx64"))]
        return self.order(s.group);
        #[cfg(target_arch = "nvptx64")]
        {
            _ = s;
            self.order(false)
        }
    }
    #[inline(always)]
    const fn extents(&self, order: Order) -> SubLatticeExtents {
        let bits = order.halved;
        SubLatticeExtents {
            half_x: self.half_x.halved(bits & 1),
            y: self.y.halved(bits >> 1 & 1),
            z: self.z.halved(bits >> 2 & 1),
            t: self.t >> (bits >> 3 & 1),
        }
    }
    /// Returns the site of parity `parity` with the checkerboard index `index`.
    #[inline(always)]
    pub fn site(&self, index: u32, parity: u32) -> Site {
        self.site_or_group(index, parity, false)
    }
    /// Returns the site of parity `parity` with index `index`, for kernels that compute with numbers of type `T`. If
    /// `T` is a vector, the index is that of a group.
    #[inline(always)]
    pub fn site_for<T: Element>(&self, index: u32, parity: u32) -> Site {
        self.site_or_group(index, parity, T::LANES > 1)
    }
    #[inline(always)]
    fn site_or_group(&self, index: u32, parity: u32, group: bool) -> Site {
        let order = self.order(group);
        let extents = self.extents(order);
        #[cfg(not(target_arch = "nvptx64"))]
        let number = (if group { lanes::number(index) } else { index }) >> order.unit;
        #[cfg(target_arch = "nvptx64")]
        let number = index;
        let (row, half_x) = extents.half_x.divide(number);
        let (plane, y) = extents.y.divide(row);
        let (t, z) = extents.z.divide(plane);
        let site = Site {
            index,
            half_x,
            odd_x: (y + z + t + parity) & 1,
            y,
            z,
            t,
            #[cfg(not(target_arch = "nvptx64"))]
            group,
            #[cfg(not(target_arch = "nvptx64"))]
            shift: 0,
        };
        #[cfg(not(target_arch = "nvptx64"))]
        let site = self.at_own_place(site);
        site
    }
    /// Returns the checkerboard index of site number `i` in the order of columns.
    #[inline(always)]
    fn in_columns(&self, i: u32) -> u32 {
        #[cfg(not(target_arch = "nvptx64"))]
        if self.is_in_lane_order() {
            return i;
        }
        let (row, half_x) = self.half_x.divide(i);
        // The eight rows of a block of 2×2×2 rows in y, z and t are consecutive. The blocks of a column follow each other first in y, then
        // in z, then in t.
        let (dy, dz, dt) = (row & 1, (row >> 1) & 1, (row >> 2) & 1);
        let (rest, y) = self.columns.y.divide(row >> 3);
        let (rest, z) = self.columns.z.divide(rest);
        let (column, t) = self.columns.t.divide(rest);
        let (column_z, column_y) = self.columns.beside.divide(column);
        let y = 2 * (y + self.columns.y.get() * column_y) + dy;
        let z = 2 * (z + self.columns.z.get() * column_z) + dz;
        half_x + self.half_x.get() * (y + self.y.get() * (z + self.z.get() * (2 * t + dt)))
    }
    /// Returns the checkerboard index of the site with coordinates x, y, z, t.
    #[inline(always)]
    pub fn index_of(&self, [x, y, z, t]: [u32; 4]) -> u32 {
        self.of_half(x >> 1, [y, z, t], x + y + z + t)
    }
    /// Returns the lexicographic index of a site.
    #[inline(always)]
    pub fn lexicographic(&self, s: &Site) -> u32 {
        #[cfg(not(target_arch = "nvptx64"))]
        if self.is_in_lane_order() {
            let [nx, ny, nz, _] = self.size();
            return 2 * s.half_x + s.odd_x + nx * (s.y + ny * (s.z + nz * s.t));
        }
        2 * s.index + s.odd_x
    }
    /// Returns the position of a site of the first sub-lattice along direction `mu`.
    #[inline(always)]
    fn along(&self, s: &Site, order: Order, mu: usize) -> Along {
        let SubLatticeExtents { half_x, y, z, t } = self.extents(order);
        let nx = half_x.get() << order.unit;
        let (here, extent, stride) = match mu {
            0 => (s.half_x, half_x.get(), 1 << order.unit),
            1 => (s.y, y.get(), nx),
            2 => (s.z, z.get(), nx * y.get()),
            _ => (s.t, t, nx * y.get() * z.get()),
        };
        #[cfg(not(target_arch = "nvptx64"))]
        let (turn, shift) = order.across_halves(s, mu);
        #[cfg(target_arch = "nvptx64")]
        let (turn, shift) = (0, 0);
        Along { here, extent, stride, turn, shift }
    }
    /// Returns the checkerboard index of the neighbour one step forward (if `forward`) or backward in direction `mu`.
    /// The neighbour has the other parity. `mu` and `forward` are constants after inlining.
    #[inline(always)]
    pub fn neighbour(&self, s: &Site, mu: usize, forward: bool) -> u32 {
        // The site is copied on a CPU only. On a GPU, the copy would be in local memory.
        #[cfg(not(target_arch = "nvptx64"))]
        let s = &self.at_first_place(s);
        self.neighbour_of_first(s, self.order_of(s), mu, forward)
    }
    /// Returns the neighbour of a site that is at its place in the first sub-lattice, like [`neighbour`](Self::neighbour).
    #[inline(always)]
    fn neighbour_of_first(&self, s: &Site, order: Order, mu: usize, forward: bool) -> u32 {
        let along = self.along(s, order, mu);
        let Along { here, extent, stride, .. } = along;
        // In x, two sites of opposite parity share x / 2, so that one of the two steps does not change it.
        let moves = mu != 0 || (s.odd_x == 1) == forward;
        let wrap = (extent - 1) * stride;
        let moved = if forward {
            if here + 1 == extent { along.of_next(s.index - wrap) } else { s.index + stride }
        } else if here == 0 {
            along.of_next(s.index + wrap)
        } else {
            s.index - stride
        };
        if moves { moved } else { s.index }
    }
    /// Returns the checkerboard index of the site three steps forward (if `forward`) or backward in direction `mu`.
    #[inline(always)]
    pub fn third_neighbour(&self, s: &Site, mu: usize, forward: bool) -> u32 {
        // The site is copied on a CPU only. On a GPU, the copy would be in local memory.
        #[cfg(not(target_arch = "nvptx64"))]
        let s = &self.at_first_place(s);
        self.third_neighbour_of_first(s, self.order_of(s), mu, forward)
    }
    /// Returns the neighbour of a site that is at its place in the first sub-lattice, like [`third_neighbour`](Self::third_neighbour).
    #[inline(always)]
    fn third_neighbour_of_first(&self, s: &Site, order: Order, mu: usize, forward: bool) -> u32 {
        let along = self.along(s, order, mu);
        let Along { here, extent, stride, turn, .. } = along;
        // In x, two sites of opposite parity share x / 2, so that three steps change it by one or two.
        let steps = if mu > 0 {
            3
        } else if (s.odd_x == 1) == forward {
            2
        } else {
            1
        };
        // On the smallest lattices, `steps` may be as large as `extent`, or in x twice as large. Each turn around the
        // lattice subtracts `extent`.
        let once = if steps >= extent { steps - extent } else { steps };
        let rest = if once >= extent { once - extent } else { once };
        // If half of the lattice is one site, `steps` may be three times `extent`.
        #[cfg(not(target_arch = "nvptx64"))]
        let rest = if rest >= extent { rest - extent } else { rest };
        let to = if forward {
            let to = here + rest;
            if to >= extent { to - extent } else { to }
        } else if here < rest {
            here + extent - rest
        } else {
            here - rest
        };
        let moved = s.index.wrapping_add(to.wrapping_sub(here).wrapping_mul(stride));
        // The sub-lattice changes if the steps go around the lattice an odd number of times.
        let around = if forward { here + steps - to } else { to + steps - here };
        if turn == 0 || (around == 0 || around == 2 * extent) { moved } else { along.of_next(moved) }
    }
    /// Returns the neighbours of a site that are `STEPS` steps away, one or three.
    #[inline(always)]
    pub fn neighbours<'a, const STEPS: u32>(&'a self, site: &'a Site) -> Neighbours<'a, STEPS> {
        Neighbours {
            geometry: self,
            site,
            #[cfg(not(target_arch = "nvptx64"))]
            all: self.all_neighbours::<STEPS>(site),
        }
    }
    #[inline(always)]
    fn step<const STEPS: u32>(&self, s: &Site, order: Order, mu: usize, forward: bool) -> u32 {
        if STEPS == 3 {
            self.third_neighbour_of_first(s, order, mu, forward)
        } else {
            self.neighbour_of_first(s, order, mu, forward)
        }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(never)]
    fn all_neighbours<const STEPS: u32>(&self, s: &Site) -> [[u32; 2]; 4] {
        if s.group && self.halves().is_even() {
            // The order of most lattices is a constant here, which saves most of the arithmetic.
            return self.steps::<STEPS>(s, Order::in_lanes(lanes::Halves::EVEN, true));
        }
        self.steps::<STEPS>(&self.at_first_place(s), self.order_of(s))
    }
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    fn steps<const STEPS: u32>(&self, s: &Site, order: Order) -> [[u32; 2]; 4] {
        macro_rules! steps {
            ($($mu:literal)*) => {
                [$([self.step::<STEPS>(s, order, $mu, false), self.step::<STEPS>(s, order, $mu, true)]),*]
            };
        }
        steps!(0 1 2 3)
    }
    /// Returns the index of a site among the sites of its parity in its layer, where a layer has one value of the
    /// coordinate `mu`. Neighbours across the end of the local lattice have the same index in their layers.
    #[inline(always)]
    pub fn face_index(&self, s: &Site, mu: usize) -> u32 {
        let (nx, ny, nz) = (self.half_x.get(), self.y.get(), self.z.get());
        match mu {
            // Sites of one parity alternate in y, so half of the lexicographic index in (y, z, t) counts them.
            0 => (s.y + ny * (s.z + nz * s.t)) >> 1,
            1 => s.half_x + nx * (s.z + nz * s.t),
            2 => s.half_x + nx * (s.y + ny * s.t),
            _ => s.half_x + nx * (s.y + ny * s.z),
        }
    }
    /// Returns the number of sites of one parity in a layer, where a layer has one value of the coordinate `mu`.
    #[inline(always)]
    pub fn face_sites(&self, mu: usize) -> u32 {
        let (nx, ny, nz) = (self.half_x.get(), self.y.get(), self.z.get());
        match mu {
            0 => (ny * nz * self.t) >> 1,
            1 => nx * nz * self.t,
            2 => nx * ny * self.t,
            _ => nx * ny * nz,
        }
    }
    /// Returns the checkerboard index of site `f` of the layer in which coordinate `mu` has the value `c`. The function
    /// is the inverse of [`face_index`](Self::face_index).
    #[inline(always)]
    pub fn of_face(&self, f: u32, mu: usize, c: u32, parity: u32) -> u32 {
        let (nx, ny, nz) = (self.half_x.get(), self.y.get(), self.z.get());
        let (half_x, y, z, t);
        match mu {
            0 => {
                let (plane, even_y) = self.y.divide(2 * f);
                (t, z) = self.z.divide(plane);
                y = even_y + ((c + z + t + parity) & 1);
                half_x = c >> 1;
            }
            1 => {
                let (plane, k) = self.half_x.divide(f);
                (t, z) = self.z.divide(plane);
                (half_x, y) = (k, c);
            }
            2 => {
                let (plane, k) = self.half_x.divide(f);
                (t, y) = self.y.divide(plane);
                (half_x, z) = (k, c);
            }
            _ if self.is_in_lane_order() => {
                let (row, k) = self.half_x.divide(f);
                ((z, y), half_x, t) = (self.y.divide(row), k, c);
            }
            _ => return f + nx * ny * nz * c,
        }
        self.of_half(half_x, [y, z, t], parity)
    }
    /// Returns the checkerboard index of the site with coordinates x / 2, y, z, t; only the lowest bit of `parity` matters.
    #[inline(always)]
    pub(crate) fn of_half(&self, half_x: u32, [y, z, t]: [u32; 3], parity: u32) -> u32 {
        #[cfg(not(target_arch = "nvptx64"))]
        if self.is_in_lane_order() {
            let odd_x = (y + z + t + parity) & 1;
            return self.of_place(&Site { index: 0, half_x, odd_x, y, z, t, group: false, shift: 0 });
        }
        _ = parity;
        half_x + self.half_x.get() * (y + self.y.get() * (z + self.z.get() * t))
    }
    /// Returns the number of layers by which `steps` steps in direction `mu` leave the local lattice; 0 if they stay in
    /// it. The lattice must have at least `steps` sites in this direction.
    #[inline(always)]
    pub fn layers_out(&self, s: &Site, mu: usize, forward: bool, steps: u32) -> u32 {
        let (here, extent) = match mu {
            0 => (2 * s.half_x + s.odd_x, 2 * self.half_x.get()),
            1 => (s.y, self.y.get()),
            2 => (s.z, self.z.get()),
            _ => (s.t, self.t),
        };
        let to_end = if forward { extent - 1 - here } else { here };
        steps.saturating_sub(to_end)
    }
    /// Returns a truth value for each site of `s`: whether a step in t crosses the end of the whole lattice.
    #[inline(always)]
    pub fn crosses_end(&self, s: &Site, forward: bool) -> Where {
        #[cfg(not(target_arch = "nvptx64"))]
        if s.group {
            return self.lanes_crossing_end(s, forward, 1);
        }
        Where::one(self.wraps(s, 3, forward) && self.has_end(forward))
    }
    /// Returns a truth value for each site of `s`: whether three steps in t cross the end of the whole lattice an odd
    /// number of times.
    #[inline(always)]
    pub fn crosses_end_in_three(&self, s: &Site, forward: bool) -> Where {
        #[cfg(not(target_arch = "nvptx64"))]
        if s.group {
            return self.lanes_crossing_end(s, forward, 3);
        }
        Where::one(self.three_cross(s.t, forward) && self.has_end(forward))
    }
    /// Returns whether three steps in t go around the lattice an odd number of times.
    #[inline(always)]
    const fn three_cross(&self, t: u32, forward: bool) -> bool {
        if forward { (t + 3 >= self.t) != (t + 3 >= 2 * self.t) } else { (t < 3) != (t + self.t < 3) }
    }
    #[inline(always)]
    fn has_end(&self, forward: bool) -> bool {
        self.ends & (if forward { UPPER_END } else { LOWER_END }) != 0
    }
    /// Returns whether a step in direction `mu` leaves the local lattice. With periodic boundaries, such a step returns
    /// at the opposite end.
    #[inline(always)]
    pub fn wraps(&self, s: &Site, mu: usize, forward: bool) -> bool {
        let (here, extent) = match mu {
            0 => (2 * s.half_x + s.odd_x, 2 * self.half_x.get()),
            1 => (s.y, self.y.get()),
            2 => (s.z, self.z.get()),
            _ => (s.t, self.t),
        };
        if forward { here + 1 == extent } else { here == 0 }
    }
}

/// Neighbours of a site at a distance of `STEPS` steps, one or three. A GPU computes each neighbour where it is used. A
/// CPU computes all of them in advance in a separate function, because index arithmetic inside a hopping term would
/// make compilers keep sums in memory.
#[derive(Clone, Copy)]
pub struct Neighbours<'a, const STEPS: u32> {
    geometry: &'a Geometry,
    site: &'a Site,
    #[cfg(not(target_arch = "nvptx64"))]
    all: [[u32; 2]; 4],
}

impl<const STEPS: u32> Neighbours<'_, STEPS> {
    /// Returns the checkerboard index of the neighbour in direction `mu`, forward or backward.
    #[inline(always)]
    pub fn at(&self, mu: usize, forward: bool) -> u32 {
        #[cfg(not(target_arch = "nvptx64"))]
        return self.all[mu][forward as usize];
        #[cfg(target_arch = "nvptx64")]
        self.geometry.step::<STEPS>(self.site, self.geometry.order(false), mu, forward)
    }
    /// Returns the number of layers by which the neighbour in direction `mu` is outside the local lattice; 0 if it is
    /// inside.
    #[inline(always)]
    pub fn layers_out(&self, mu: usize, forward: bool) -> u32 {
        self.geometry.layers_out(self.site, mu, forward, STEPS)
    }
    /// Returns the index of the neighbour in direction `mu` in the ghost zone, where `layer` ≥ 1 is the neighbour's
    /// layer.
    #[inline(always)]
    pub fn ghost_index(&self, mu: usize, layer: u32) -> u32 {
        self.geometry.face_index(self.site, mu) + layer.wrapping_sub(1).wrapping_mul(self.geometry.face_sites(mu))
    }
    /// Returns a truth value for each site: whether `STEPS` steps in t cross the end of the whole lattice an odd number
    /// of times.
    #[inline(always)]
    pub fn cross_end(&self, forward: bool) -> Where {
        if STEPS == 3 {
            self.geometry.crosses_end_in_three(self.site, forward)
        } else {
            self.geometry.crosses_end(self.site, forward)
        }
    }
}

/// Sites of one parity that a launch computes: all sites, or the sites of a box that may wrap around the ends of the
/// lattice.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Region {
    /// Kind of the region: [`ALL`], [`LAYERS`] or [`BOX`].
    kind: u32,
    start: [u32; 4],
    half_x: Divisor,
    y: Divisor,
    z: Divisor,
    t: u32,
    /// Checkerboard index of the first site, and the index that wraps to 0, for regions of kind [`ALL`] and [`LAYERS`].
    run: [u32; 2],
}

const ALL: u32 = 0;
/// Kind of a region of whole layers across t, whose sites are consecutive.
const LAYERS: u32 = 1;
const BOX: u32 = 2;

impl Region {
    /// Region of all sites of the lattice.
    pub const WHOLE: Self = {
        let one = Divisor::new(1);
        Region { kind: ALL, start: [0; 4], half_x: one, y: one, z: one, t: 1, run: [0, u32::MAX] }
    };
    /// Creates a box of sites that begins at `start` and wraps around the ends of the lattice if necessary. The extents
    /// x, y, z, t of the box are at least 1 and at most those of the lattice, and x is even.
    pub const fn new(start: [u32; 4], [x, y, z, t]: [u32; 4]) -> Self {
        assert!(x.is_multiple_of(2) && t > 0);
        let (half_x, y, z) = (Divisor::new(x / 2), Divisor::new(y), Divisor::new(z));
        Region { kind: BOX, start, half_x, y, z, t, run: [0; 2] }
    }
    /// Creates the box of extents `length` that begins at `start`, for the lattice `geometry`. The sites and their
    /// order are those of [`new`](Self::new), but index computations are cheaper if the box consists of whole time
    /// slices.
    pub fn on(geometry: &Geometry, start: [u32; 4], length: [u32; 4]) -> Self {
        let region = Self::new(start, length);
        let size = geometry.size();
        if start[..3] != [0; 3] || length[..3] != size[..3] {
            return region;
        }
        let run = [start[3] * geometry.face_sites(3), geometry.half_volume()];
        Region { kind: LAYERS, run, ..region }
    }
    /// Returns whether the region is the whole lattice.
    #[inline(always)]
    pub const fn is_whole(&self) -> bool {
        self.kind == ALL
    }
    /// Returns the number of sites that a kernel on this region may compute together, like [`Geometry::group_sites`].
    #[inline(always)]
    pub const fn group_sites(&self, geometry: &Geometry) -> u32 {
        if self.is_whole() { geometry.group_sites() } else { 1 }
    }
    /// Returns the number of sites of one parity in the region.
    pub fn sites(&self, geometry: &Geometry) -> u32 {
        match self.kind {
            ALL => geometry.half_volume(),
            _ => self.half_x.get() * self.y.get() * self.z.get() * self.t,
        }
    }
    /// Returns the checkerboard index of the region's site number `i`.
    #[inline(always)]
    pub fn index(&self, i: u32, geometry: &Geometry, parity: u32) -> u32 {
        if self.kind == BOX || self.kind == LAYERS && geometry.is_in_lane_order() {
            return self.in_box(i, geometry, parity);
        }
        let [first, end] = self.run;
        let index = first + i;
        if index >= end { index - end } else { index }
    }
    /// Returns the checkerboard index of the region's site number `i`. If the region is the whole lattice, its sites
    /// are in the order of columns along t.
    #[inline(always)]
    pub fn index_in_columns(&self, i: u32, geometry: &Geometry, parity: u32) -> u32 {
        if self.kind == ALL { geometry.in_columns(i) } else { self.in_box(i, geometry, parity) }
    }
    #[inline(always)]
    fn in_box(&self, i: u32, geometry: &Geometry, parity: u32) -> u32 {
        let around = |c: u32, extent: u32| if c >= extent { c - extent } else { c };
        let (row, k) = self.half_x.divide(i);
        let (plane, y) = self.y.divide(row);
        let (t, z) = self.z.divide(plane);
        let [x0, y0, z0, t0] = self.start;
        let (nx, ny, nz) = (geometry.half_x.get(), geometry.y.get(), geometry.z.get());
        let (y, z, t) = (around(y0 + y, ny), around(z0 + z, nz), around(t0 + t, geometry.t));
        // If x0 is odd, the first even x is one step further.
        let even = (y + z + t + parity + 1) & 1;
        let half_x = around((x0 >> 1) + k + (x0 & even), nx);
        geometry.of_half(half_x, [y, z, t], parity)
    }
}

/// Local lattice with a border of neighbouring processes' sites in the partitioned directions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Bordered {
    /// Geometry of the local lattice with its border, as one lattice. Hops across the ends of the border have no
    /// meaning.
    pub geometry: Geometry,
    /// Sites of the local lattice, as a region of the bordered lattice.
    pub inner: Region,
}

impl Bordered {
    /// Creates a bordered lattice from a local lattice that has no border.
    pub const fn bare(geometry: Geometry) -> Self {
        Bordered { geometry, inner: Region::WHOLE }
    }
    /// Returns site `i` of the local lattice as a site of the bordered lattice. A site has the same parity in both,
    /// because the widths of borders are even.
    #[inline(always)]
    pub fn site(&self, i: u32, parity: u32) -> Site {
        self.geometry.site(self.inner.index(i, &self.geometry, parity), parity)
    }
    /// Returns site `i` of the local lattice as a site of the bordered lattice, for kernels that compute with numbers
    /// of type `T`. If `T` is a vector, `i` and the result are groups.
    #[inline(always)]
    pub fn site_for<T: Element>(&self, i: u32, parity: u32) -> Site {
        self.geometry.site_for::<T>(self.inner.index(i, &self.geometry, parity), parity)
    }
    /// Returns the number of sites that a kernel on the local lattice may compute together, like
    /// [`Geometry::group_sites`].
    #[inline(always)]
    pub const fn group_sites(&self) -> u32 {
        self.inner.group_sites(&self.geometry)
    }
}

/// Position of the local lattice in the whole lattice.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Position {
    /// Coordinates in the whole lattice of the first site of the local lattice.
    pub origin: [u32; 4],
    /// Extents X, Y and Z of the whole lattice.
    pub extents: [u32; 3],
}

impl Position {
    /// Returns the lexicographic index, in the whole lattice, of a site of the local lattice. Random numbers depend on
    /// this index.
    #[inline(always)]
    pub fn lexicographic(&self, s: &Site) -> u64 {
        let ([x0, y0, z0, t0], [nx, ny, nz]) = (self.origin, self.extents);
        let (x, y, z, t) = (x0 + 2 * s.half_x + s.odd_x, y0 + s.y, z0 + s.z, t0 + s.t);
        x as u64 + nx as u64 * (y as u64 + ny as u64 * (z as u64 + nz as u64 * t as u64))
    }
}
