//! Sites of one parity, their coordinates and neighbours.
//!
//! Sites of a parity are counted by the checkerboard index i = lexicographic index / 2, x fastest.

/// Divides by a number that is known when the kernel is launched, without a division.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Divisor {
    divisor: u32,
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// For dividends below 2³¹ and divisors from 1 to 2³¹.
    pub const fn new(divisor: u32) -> Self {
        assert!(divisor != 0 && divisor <= 1 << 31);
        // With s = ⌈log₂ d⌉ and m = ⌈2^(31+s) / d⌉ < 2³², ⌊n m / 2^(31+s)⌋ = ⌊n / d⌋ for every n < 2³¹.
        let s = divisor.next_power_of_two().trailing_zeros();
        let multiplier = (1u64 << (31 + s)).div_ceil(divisor as u64) as u32;
        Divisor { divisor, multiplier, shift: 31 + s }
    }
    /// The divisor.
    #[inline(always)]
    pub fn get(self) -> u32 {
        self.divisor
    }
    /// Quotient and remainder.
    #[inline(always)]
    pub fn divide(self, n: u32) -> (u32, u32) {
        let q = ((n as u64 * self.multiplier as u64) >> self.shift) as u32;
        (q, n - q * self.divisor)
    }
}

/// The local lattice as kernels see it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Geometry {
    half_x: Divisor,
    y: Divisor,
    z: Divisor,
    t: u32,
}

/// A site of a given parity.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Checkerboard index.
    pub index: u32,
    /// x / 2.
    pub half_x: u32,
    /// x mod 2.
    pub odd_x: u32,
    /// Coordinate y.
    pub y: u32,
    /// Coordinate z.
    pub z: u32,
    /// Coordinate t.
    pub t: u32,
}

impl Geometry {
    /// From even extents X, Y, Z, T with fewer than 2³¹ sites.
    pub const fn new([x, y, z, t]: [u32; 4]) -> Self {
        Geometry { half_x: Divisor::new(x / 2), y: Divisor::new(y), z: Divisor::new(z), t }
    }
    /// Sites of one parity.
    #[inline(always)]
    pub fn half_volume(&self) -> u32 {
        self.half_x.get() * self.y.get() * self.z.get() * self.t
    }
    /// Extents X, Y, Z, T.
    pub fn size(&self) -> [u32; 4] {
        [2 * self.half_x.get(), self.y.get(), self.z.get(), self.t]
    }
    /// The site of `parity` with checkerboard index `index`.
    #[inline(always)]
    pub fn site(&self, index: u32, parity: u32) -> Site {
        let (row, half_x) = self.half_x.divide(index);
        let (plane, y) = self.y.divide(row);
        let (t, z) = self.z.divide(plane);
        Site { index, half_x, odd_x: (y + z + t + parity) & 1, y, z, t }
    }
    /// Lexicographic index of a site.
    #[inline(always)]
    pub fn lexicographic(&self, s: &Site) -> u32 {
        2 * s.index + s.odd_x
    }
    /// Checkerboard index, among the sites of the other parity, of the neighbour one step forward (`true`) or backward
    /// in direction `mu`. `mu` and `forward` are constants where this is inlined.
    #[inline(always)]
    pub fn neighbour(&self, s: &Site, mu: usize, forward: bool) -> u32 {
        let nx = self.half_x.get();
        let (here, extent, stride) = match mu {
            0 => (s.half_x, nx, 1),
            1 => (s.y, self.y.get(), nx),
            2 => (s.z, self.z.get(), nx * self.y.get()),
            _ => (s.t, self.t, nx * self.y.get() * self.z.get()),
        };
        // In x, two sites of opposite parity share x / 2: one of the two steps does not change it.
        let moves = mu != 0 || (s.odd_x == 1) == forward;
        let wrap = (extent - 1) * stride;
        let moved = if forward {
            if here + 1 == extent { s.index - wrap } else { s.index + stride }
        } else if here == 0 {
            s.index + wrap
        } else {
            s.index - stride
        };
        if moves { moved } else { s.index }
    }
    /// The same three steps away.
    #[inline(always)]
    pub fn third_neighbour(&self, s: &Site, mu: usize, forward: bool) -> u32 {
        let nx = self.half_x.get();
        // In x, where two sites of opposite parity share x / 2, three steps change it by one or two.
        let (here, extent, stride, steps) = match mu {
            0 => (s.half_x, nx, 1, if (s.odd_x == 1) == forward { 2 } else { 1 }),
            1 => (s.y, self.y.get(), nx, 3),
            2 => (s.z, self.z.get(), nx * self.y.get(), 3),
            _ => (s.t, self.t, nx * self.y.get() * self.z.get(), 3),
        };
        // On the smallest lattices three steps go once around, in x with its extent halved even twice.
        let once = if steps >= extent { steps - extent } else { steps };
        let steps = if once >= extent { once - extent } else { once };
        let to = if forward {
            let to = here + steps;
            if to >= extent { to - extent } else { to }
        } else if here < steps {
            here + extent - steps
        } else {
            here - steps
        };
        s.index.wrapping_add(to.wrapping_sub(here).wrapping_mul(stride))
    }
    /// Whether three steps in t cross the end of the lattice an odd number of times.
    #[inline(always)]
    pub fn wraps_in_three(&self, s: &Site, forward: bool) -> bool {
        if forward { (s.t + 3 >= self.t) != (s.t + 3 >= 2 * self.t) } else { (s.t < 3) != (s.t + self.t < 3) }
    }
    /// True where a step in direction `mu` leaves the lattice and comes back at the other side.
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
