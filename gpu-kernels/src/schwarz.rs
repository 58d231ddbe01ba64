//! Additive Schwarz method: independent blocks of the lattice, each with its own system (Babich et al. 2011, section 8.1). A
//! few MR sweeps in every block suffice. Their coefficients stay on the device, so that the host does not wait for them.
use crate::algebra::{Complex, complex};
use crate::dslash::dot;
use crate::field::Field;
use crate::lattice::{Divisor, Geometry, Site};
use crate::storage::{NumberFormat, SiteFormat, Spinors};
use crate::sums::DeviceSums;
use crate::{Kernel, Reduction};

/// Division of the local lattice into equal blocks with even extents.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Blocks {
    half_x: Divisor,
    y: Divisor,
    z: Divisor,
    t: Divisor,
    /// Number of blocks along x, y and z.
    counts: [Divisor; 3],
    all: Divisor,
}

impl Blocks {
    /// Placeholder without blocks, for kernels that do not use blocks.
    pub const NONE: Blocks = {
        let one = Divisor::new(1);
        Blocks { half_x: one, y: one, z: one, t: one, counts: [one; 3], all: one }
    };
    /// Divides the lattice into blocks of `extents`, which must be even.
    pub fn new(geometry: &Geometry, extents: [u32; 4]) -> Self {
        let size = geometry.size();
        let count = |mu: usize| {
            assert!(extents[mu].is_multiple_of(2) && size[mu].is_multiple_of(extents[mu]), "blocks divide the lattice");
            size[mu] / extents[mu]
        };
        let counts = [count(0), count(1), count(2)].map(Divisor::new);
        let all = Divisor::new(count(0) * count(1) * count(2) * count(3));
        let [x, y, z, t] = extents;
        Blocks { half_x: Divisor::new(x / 2), y: Divisor::new(y), z: Divisor::new(z), t: Divisor::new(t), counts, all }
    }
    /// Returns the local lattice as a single block.
    pub fn one(geometry: &Geometry) -> Self {
        Self::new(geometry, geometry.size())
    }
    /// Returns the number of blocks.
    pub fn count(&self) -> u32 {
        self.all.get()
    }
    /// Returns the number of sites of one parity in a block.
    pub fn sites(&self) -> u32 {
        self.half_x.get() * self.y.get() * self.z.get() * self.t.get()
    }
    /// Returns the extents of a block.
    pub fn extents(&self) -> [u32; 4] {
        [2 * self.half_x.get(), self.y.get(), self.z.get(), self.t.get()]
    }
    /// Returns the number of the block that contains a site.
    #[inline(always)]
    fn of(&self, s: &Site) -> u32 {
        let [nx, ny, nz] = self.counts;
        let along = |d: Divisor, c: u32| d.divide(c).0;
        let (x, y) = (along(self.half_x, s.half_x), along(self.y, s.y));
        let (z, t) = (along(self.z, s.z), along(self.t, s.t));
        x + nx.get() * (y + ny.get() * (z + nz.get() * t))
    }
    /// Returns the checkerboard index of site `i` of a block among the sites of a parity.
    #[inline(always)]
    fn index(&self, i: u32, block: u32, (geometry, parity): (&Geometry, u32)) -> u32 {
        let [nx, ny, nz] = self.counts;
        let (rest, x) = nx.divide(block);
        let (rest, y) = ny.divide(rest);
        let (t, z) = nz.divide(rest);
        let (row, k) = self.half_x.divide(i);
        let (plane, j) = self.y.divide(row);
        let (m, l) = self.z.divide(plane);
        let (half_x, y) = (x * self.half_x.get() + k, y * self.y.get() + j);
        let (z, t) = (z * self.z.get() + l, t * self.t.get() + m);
        geometry.of_half(half_x, [y, z, t], parity)
    }
    /// Returns whether a step from a site leads out of its block.
    #[inline(always)]
    pub fn leaves(&self, s: &Site, mu: usize, forward: bool) -> bool {
        let (here, extent) = match mu {
            0 => (2 * self.half_x.divide(s.half_x).1 + s.odd_x, 2 * self.half_x.get()),
            1 => (self.y.divide(s.y).1, self.y.get()),
            2 => (self.z.divide(s.z).1, self.z.get()),
            _ => (self.t.divide(s.t).1, self.t.get()),
        };
        if forward { here + 1 == extent } else { here == 0 }
    }
}

/// Inner products \[Re (r, t), Im (r, t), ‖t‖²\] in each block. Call `rhs` of the launch computes block d of D for
/// right-hand side j, where j D + d = `first` + `rhs`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BlockDot {
    /// r
    pub r: Field,
    /// t
    pub t: Field,
    /// Division of the lattice into blocks.
    pub blocks: Blocks,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites of the fields: 0 for even, 1 for odd.
    pub parity: u32,
    /// Number of sums that earlier launches computed.
    pub first: u32,
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction<F> for BlockDot {
    type Values = [f64; 3];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 3] {
        let (rhs, block) = self.blocks.all.divide(self.first + rhs);
        let i = self.blocks.index(i, block, (&self.geometry, self.parity));
        unsafe { dot(self.t.load::<F>(i, rhs), self.r.load::<F>(i, rhs)) }
    }
}

/// MR step in every block with t = A r: x ← x + ω α r and t ← r − ω α t, the new residual, where α = (t, r) / ‖t‖² is
/// computed for each block. A block whose α is not finite keeps its x and r.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SchwarzMrUpdate {
    /// x
    pub x: Field,
    /// r
    pub r: Field,
    /// Vector t = A r before the launch, and the new residual after it.
    pub t: Field,
    /// Sums (r, t) and ‖t‖² of each block.
    pub sums: DeviceSums,
    /// Division of the lattice into blocks, one for each sum.
    pub blocks: Blocks,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites of the fields: 0 for even, 1 for odd.
    pub parity: u32,
    /// 1 if x is still 0, so that it is not read; else 0.
    pub first: u32,
    /// ω
    pub relaxation: f64,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<P: NumberFormat> Kernel<P> for SchwarzMrUpdate {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let block = self.blocks.of(&self.geometry.site(i, self.parity));
            let [re, im, norm2] = self.sums.dot(rhs * self.blocks.count() + block);
            let factor = self.relaxation / norm2;
            // The product (t, r) is the complex conjugate of (r, t).
            let alpha = complex(factor * re, -factor * im);
            let sane = (alpha.re * 0.0 == 0.0) && (alpha.im * 0.0 == 0.0);
            let alpha: Complex<P::Real> = if sane { alpha.cast() } else { Complex::ZERO };
            let r = self.r.load::<Spinors<P>>(i, rhs);
            let x = if self.first != 0 {
                r.map(|r| alpha * r)
            } else {
                r.zip(self.x.load_own::<Spinors<P>>(i, rhs), |r, x| alpha.mul_add(r, x))
            };
            self.x.store::<Spinors<P>>(i, rhs, &x);
            // If α is not finite, t is not read, because a NaN in this block must not remain in the field.
            let t = if sane { self.t.load_own::<Spinors<P>>(i, rhs).zip(r, |t, r| (-alpha).mul_add(t, r)) } else { r };
            self.t.store::<Spinors<P>>(i, rhs, &t);
        }
    }
}

crate::kernels! { FAMILY = "schwarz";
    reduce BLOCK_DOT "block_dot": [BlockDot] => spinors;
    kernel MR_UPDATE "mr_update": [SchwarzMrUpdate] => precisions;
}
