//! Multigrid: aggregates of sites, the near-null vectors on them, restriction and prolongation, and the projection of
//! operators.
//!
//! A vector on any level is a block of spinors in checkerboard order. A site has [`Aggregates::spinors`] of them one after the
//! other; on the lattice itself it has one. The two halves of a spinor are six numbers of one chirality each. A site with f
//! spinors has 2 f halves, of which the first f have chirality + (upper spins of the DeGrand–Rossi basis), and the others
//! chirality −. Number (χ, k) of a coarse site belongs to near-null vector k restricted to chirality χ: it is number k mod 6 of
//! half χ f + k / 6. The linear algebra of spinors therefore serves all levels.
//!
//! P takes a coarse vector c to Σ_k V_k(x)|_χ c(A(x), χ, k), where A(x) is the aggregate of site x, and R = P†. Chirality is
//! preserved: γ5 P = P γ5 (Babich et al. 2010, arXiv 1005.3043; Clark et al. 2016, arXiv 1612.07873).
use crate::Kernel;
use crate::algebra::{
    Axis, Colour, Complex, DiracSpinor, Projector, Real, Su3, complex, to_degrand_rossi, to_device_basis,
};
use crate::coarse::{CoarseTiles, place};
use crate::field::{Field, ThinLinks};
use crate::ghost::{Ghosts, SpinorGhosts};
use crate::lattice::{Bordered, Divisor, Geometry, Position, Region, Site};
use crate::memory::{Access, Global};
use crate::multi_rhs::{MultiRhsKernel, each_rhs};
use crate::random::{Philox, purpose};
use crate::storage::{NumberFormat, Single, Spinors};
use crate::unrolled::unrolled;
use crate::warp::{LANES, Warp, WarpKernel, each_column};
#[cfg(target_arch = "nvptx64")]
use crate::{
    device::LoopedWarpKernel,
    tensor_cores::{Column, QuadRows, TileSums},
};

/// Division of a lattice into aggregates. Each aggregate is a site of a coarse lattice.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Aggregates {
    fine: Geometry,
    coarse: Geometry,
    block: [Divisor; 4],
    /// Length of a row of an aggregate: its number of sites of one parity, or of all sites if their number is odd.
    row: Divisor,
    /// Number of spinors of a fine site.
    spinors: Divisor,
    /// Number of spinors of a coarse site.
    coarse_spinors: u32,
    /// Binary logarithm of the number of aggregates, consecutive in x, to which a warp restricts together.
    along: u32,
    /// Binary logarithm of the number of spinors of one parity in a row of an aggregate, if a warp restricts to several
    /// aggregates.
    within: u32,
}

/// Aggregate on which a lane works.
#[derive(Clone, Copy)]
struct LaneAggregate {
    /// First site of the aggregate.
    origin: [u32; 4],
    /// Whether the coarse site is odd.
    odd: bool,
    /// Index of the coarse site.
    site: u32,
}

/// Binary logarithm of the maximum number of aggregates to restrict to together. Rows of four are as long as a cache line.
const MOST_ALONG: u32 = 2;
/// Minimum number of groups of aggregates. Fewer groups would give too few warps for a GPU.
const LEAST_GROUPS: u32 = 1024;

impl Aggregates {
    /// Divides the lattice `fine`, with `spinors` spinors on each site, into blocks of extents `block` for `vectors`
    /// near-null vectors. The number of blocks in each direction must be even.
    pub const fn new(fine: Geometry, spinors: u32, block: [u32; 4], vectors: u32) -> Self {
        let [x, y, z, t] = fine.size();
        let [a, b, c, d] = block;
        let row = if a % 2 == 0 { a / 2 } else { a };
        let coarse = [x / a, y / b, z / c, t / d];
        let count = coarse[0] * coarse[1] * coarse[2] * coarse[3];
        let (mut along, mut within) = (0, 0);
        if a % 2 == 0 && (row * spinors).is_power_of_two() {
            within = (row * spinors).ilog2();
            while along < MOST_ALONG
                && within + along < LANES.ilog2()
                && coarse[0].is_multiple_of(2 << along)
                && count >> (along + 1) >= LEAST_GROUPS
            {
                along += 1;
            }
        }
        Aggregates {
            fine,
            coarse: Geometry::new(coarse),
            block: [Divisor::new(a), Divisor::new(b), Divisor::new(c), Divisor::new(d)],
            row: Divisor::new(row),
            spinors: Divisor::new(spinors),
            coarse_spinors: spinors_of(vectors),
            along,
            within,
        }
    }
    /// Returns the number of groups of aggregates. A warp restricts to one group at a time.
    pub fn groups(&self) -> u32 {
        self.count() >> self.along
    }
    /// Returns aggregate number `j` of a group.
    #[inline(always)]
    fn member(&self, group: u32, j: u32) -> LaneAggregate {
        if self.along == 0 {
            let (aggregate, half) = (self.numbered(group), self.coarse.half_volume());
            let (odd, site) = if aggregate < half { (false, aggregate) } else { (true, aggregate - half) };
            return LaneAggregate { origin: self.origin(aggregate), odd, site };
        }
        let first = group << (self.along - 1);
        let s = self.coarse.site(first, 0);
        let x = 2 * s.half_x + j;
        let [a, b, c, d] = self.block;
        let origin = [x * a.get(), s.y * b.get(), s.z * c.get(), s.t * d.get()];
        LaneAggregate { origin, odd: (x + s.y + s.z + s.t) & 1 != 0, site: first + j / 2 }
    }
    /// Returns the aggregate of a group on which a lane works, and the number of the lane's first element. The stride between
    /// its elements is the number of lanes of an aggregate. Consecutive lanes have consecutive elements in rows of the whole
    /// group.
    #[inline(always)]
    fn of_lane(&self, lane: u32) -> (u32, u32) {
        let (within, rows) = (lane & ((1 << self.within) - 1), lane >> (self.within + self.along));
        ((lane >> self.within) & ((1 << self.along) - 1), rows << self.within | within)
    }
    /// Returns the number of spinors at a fine site.
    #[inline(always)]
    pub fn spinors(&self) -> u32 {
        self.spinors.get()
    }
    /// Returns the number of aggregates.
    pub fn count(&self) -> u32 {
        2 * self.coarse.half_volume()
    }
    /// Returns the number of spinors of one parity in an aggregate, or an upper limit if its extent in x is odd.
    #[inline(always)]
    fn elements(&self) -> u32 {
        self.row.get() * self.block[1].get() * self.block[2].get() * self.block[3].get() * self.spinors.get()
    }
    /// Returns the aggregate that call `i` of a launch computes. Neighbours in x, which have different parity, are consecutive,
    /// so that each memory transaction serves both.
    #[inline(always)]
    fn numbered(&self, i: u32) -> u32 {
        i / 2 + (i % 2) * self.coarse.half_volume()
    }
    /// Returns the coordinates of the first site of an aggregate. Aggregates whose coarse site is even come first.
    #[inline(always)]
    fn origin(&self, aggregate: u32) -> [u32; 4] {
        let half = self.coarse.half_volume();
        let (parity, index) = if aggregate < half { (0, aggregate) } else { (1, aggregate - half) };
        let s = self.coarse.site(index, parity);
        let [a, b, c, d] = self.block;
        [(2 * s.half_x + s.odd_x) * a.get(), s.y * b.get(), s.z * c.get(), s.t * d.get()]
    }
    /// Returns spinor number `k` of one parity in the aggregate that begins at the given site; `None` if the number does not
    /// exist.
    #[inline(always)]
    fn element(&self, [x, y, z, t]: [u32; 4], parity: u32, k: u32) -> Option<AggregateSpinor> {
        let (site, spinor) = self.spinors.divide(k);
        let (row, a) = self.row.divide(site);
        let (plane, b) = self.block[1].divide(row);
        let (d, c) = self.block[2].divide(plane);
        let odd = (x + y + b + z + c + t + d + parity) & 1;
        let a = if self.block[0].get() & 1 == 0 {
            2 * a + odd
        } else if a & 1 == odd {
            a
        } else {
            return None;
        };
        let index = self.fine.index_of([x + a, y + b, z + c, t + d]);
        Some(AggregateSpinor { place: [a, b, c, d], at: index * self.spinors.get() + spinor, spinor })
    }
    /// Returns number `k` of one parity and chirality among the half spinors of an aggregate; `None` if the number does not
    /// exist. There are as many half spinors of one chirality as spinors.
    #[inline(always)]
    fn half_element(&self, origin: [u32; 4], parity: u32, k: u32, chirality: u32) -> Option<HalfElement> {
        let AggregateSpinor { place, at, spinor } = self.element(origin, parity, k)?;
        let half = chirality * self.spinors.get() + spinor;
        Some(HalfElement { place, at: at - spinor + half / 2, which: half % 2 })
    }
    /// Returns the parity and the checkerboard index of the coarse site of the aggregate that holds a site.
    #[inline(always)]
    fn of(&self, s: &Site) -> (u32, u32) {
        let place = [2 * s.half_x + s.odd_x, s.y, s.z, s.t];
        macro_rules! coordinate {
            ($mu:literal) => {
                self.block[$mu].divide(place[$mu]).0
            };
        }
        let [x, y, z, t] = [coordinate!(0), coordinate!(1), coordinate!(2), coordinate!(3)];
        ((x + y + z + t) & 1, self.coarse.index_of([x, y, z, t]))
    }
    /// Returns whether a step forward in `direction` leads from a place in an aggregate to another aggregate.
    #[inline(always)]
    fn leaves(&self, [x, y, z, t]: [u32; 4], direction: u32) -> bool {
        let [a, b, c, d] = self.block;
        match direction {
            0 => x + 1 == a.get(),
            1 => y + 1 == b.get(),
            2 => z + 1 == c.get(),
            3 => t + 1 == d.get(),
            _ => false,
        }
    }
    /// Returns, for both halves of spinor number `spinor` of a fine site, whether their chirality is +.
    #[inline(always)]
    fn upper(&self, spinor: u32) -> [bool; 2] {
        [2 * spinor < self.spinors.get(), 2 * spinor + 1 < self.spinors.get()]
    }
}

/// Returns the number of spinors at a coarse site for `vectors` near-null vectors.
pub const fn spinors_of(vectors: u32) -> u32 {
    vectors.div_ceil(6)
}

/// Spinor of an aggregate.
#[derive(Clone, Copy)]
struct AggregateSpinor {
    /// Coordinates of the site in the aggregate.
    place: [u32; 4],
    /// Index of the spinor among all spinors of its parity.
    at: u32,
    /// Number of the spinor at its site.
    spinor: u32,
}

/// Half of a spinor of an aggregate.
#[derive(Clone, Copy)]
struct HalfElement {
    /// Coordinates of the site in the aggregate.
    place: [u32; 4],
    /// Index of the spinor among all spinors of its parity.
    at: u32,
    /// Half of the spinor, 0 or 1.
    which: u32,
}

/// (a, b) for each of the two halves of two spinors.
#[inline(always)]
fn dots(a: &DiracSpinor<f32>, b: &DiracSpinor<f32>) -> [Complex<f32>; 2] {
    [a.0[0].dot(b.0[0]) + a.0[1].dot(b.0[1]), a.0[2].dot(b.0[2]) + a.0[3].dot(b.0[3])]
}
/// Returns the sums of the numbers of two halves for chirality + and for chirality −, as four reals.
#[inline(always)]
fn by_chirality([low, high]: [Complex<f32>; 2], [a, b]: [bool; 2]) -> [f32; 4] {
    let zero = Complex::ZERO;
    let plus = (if a { low } else { zero }) + (if b { high } else { zero });
    let minus = (if a { zero } else { low }) + (if b { zero } else { high });
    [plus.re, plus.im, minus.re, minus.im]
}
/// Multiplies each half of a spinor by the factor of its chirality.
#[inline(always)]
fn scaled(s: &DiracSpinor<f32>, [low, high]: [Complex<f32>; 2]) -> DiracSpinor<f32> {
    let [a, b, c, d] = s.0;
    let times = |v: Colour<f32>, z: Complex<f32>| v.map(|x| z * x);
    DiracSpinor([times(a, low), times(b, low), times(c, high), times(d, high)])
}

/// Returns the spinor `to` plus each half of the spinor `s` times the factor of its chirality.
#[inline(always)]
fn scaled_add(s: &DiracSpinor<f32>, [low, high]: [Complex<f32>; 2], to: &DiracSpinor<f32>) -> DiracSpinor<f32> {
    let add = |v: Colour<f32>, z: Complex<f32>, to: Colour<f32>| v.zip(to, |v, to| z.mul_add(v, to));
    let ([a, b, c, d], [e, f, g, h]) = (s.0, to.0);
    DiracSpinor([add(a, low, e), add(b, low, f), add(c, high, g), add(d, high, h)])
}

/// Restriction R r = P† r of a fine vector r to a coarse one, from the sites of one parity. Call i computes the numbers
/// of eight near-null vectors in a group of aggregates.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Restrict {
    /// Near-null vectors on the sites of one parity, one for each right-hand side.
    pub vectors: Field,
    /// r
    pub fine: Field,
    /// Coarse vector on the even and on the odd coarse sites.
    pub coarse: [Field; 2],
    /// Division of the fine lattice into aggregates.
    pub aggregates: Aggregates,
    /// An eighth of the number of near-null vectors.
    pub groups: Divisor,
    /// Parity of the sites of the fine vector.
    pub parity: u32,
    /// 1 to add to the coarse vector, 0 to overwrite it.
    pub add: u32,
    /// 1 if the fine vector is in the device's spin basis, 0 if it is in the chiral spin basis.
    pub spins: u32,
}

// SAFETY: number (i, rhs) writes numbers of its aggregates that belong to its own near-null vectors.
unsafe impl<P: NumberFormat<Real = f32>> WarpKernel<Spinors<P>> for Restrict {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, rhs: u32) {
        let Self { aggregates, .. } = self;
        let (aggregate, group) = self.groups.divide(i);
        warp.sum_complex::<32>(
            [aggregates.within, aggregates.along],
            |lane| {
                let (j, mut k) = aggregates.of_lane(lane);
                let origin = aggregates.member(aggregate, j).origin;
                let mut sums = [0.0; 32];
                while k < aggregates.elements() {
                    if let Some(element) = aggregates.element(origin, self.parity, k) {
                        let upper = aggregates.upper(element.spinor);
                        let fine = unsafe { self.fine(element.at, rhs) };
                        unrolled!(v < 8: {
                            let vector = unsafe { self.vectors.load::<Spinors<P>>(element.at, 8 * group + v as u32) };
                            let mine = by_chirality(dots(&vector, &fine), upper);
                            unrolled!(c < 4: { sums[4 * v + c] += mine[c]; });
                        });
                    }
                    k += LANES >> aggregates.along;
                }
                sums
            },
            |j, number, z| unsafe {
                let to = aggregates.member(aggregate, j);
                self.put(&to, number % 2, 8 * group + number / 2, rhs, z);
            },
        );
    }
}
impl Restrict {
    /// r at a site, in the spin basis of chirality.
    #[inline(always)]
    unsafe fn fine(&self, at: u32, rhs: u32) -> DiracSpinor<f32> {
        let r = unsafe { self.fine.load::<Spinors<Single>>(at, rhs) };
        if self.spins != 0 { to_degrand_rossi(r) } else { r }
    }
    /// Stores number (χ, k) of an aggregate.
    #[inline(always)]
    unsafe fn put(&self, to: &LaneAggregate, chirality: u32, k: u32, rhs: u32, z: Complex<f32>) {
        let coarse = if to.odd { self.coarse[1] } else { self.coarse[0] };
        let spinors = self.aggregates.coarse_spinors;
        let (spinor, number) = place(spinors, chirality, k);
        let at = to.site * spinors + spinor;
        unsafe {
            let old = if self.add == 0 { Complex::ZERO } else { coarse.number(at, rhs, number, Access::Own) };
            coarse.put_number(at, rhs, number, old + z);
        }
    }
}

/// Returns the six numbers of each of the two halves of a spinor.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn halves(s: &DiracSpinor<f32>) -> [[Complex<f32>; 6]; 2] {
    let [Colour([a, b, c]), Colour([d, e, f]), Colour([g, h, i]), Colour([j, k, l])] = s.0;
    [[a, b, c, d, e, f], [g, h, i, j, k, l]]
}

#[cfg(target_arch = "nvptx64")]
impl Restrict {
    /// Computes the numbers of eight near-null vectors in an aggregate for right-hand sides `first` … `first` + 15 on tensor
    /// cores. Rows are right-hand sides, columns are vectors, and each lane of a quad has its own spinors. With `ONE`, fine
    /// sites have one spinor, and their number in an aggregate is a multiple of four.
    #[inline(always)]
    unsafe fn on_tensor_cores<P: NumberFormat<Real = f32>, const ONE: bool>(
        &self,
        warp: Warp,
        from: &LaneAggregate,
        group: u32,
        [first, nrhs]: [u32; 2],
    ) {
        let Self { aggregates, .. } = self;
        let (g, t) = (warp.lane() / 4, warp.lane() % 4);
        let rhs = [first + g, first + 8 + g].map(|rhs| rhs.min(nrhs - 1));
        let mut sums = [TileSums::ZERO; 2];
        let mut k = t;
        while k - t < aggregates.elements() {
            let found =
                if ONE || k < aggregates.elements() { aggregates.element(from.origin, self.parity, k) } else { None };
            // A lane without an element reads the element of the first site, and contributes nothing.
            let AggregateSpinor { at, spinor, .. } =
                found.unwrap_or(AggregateSpinor { place: [0; 4], at: 0, spinor: 0 });
            let upper = aggregates.upper(spinor);
            let (near, far, vector) = unsafe {
                let vector = self.vectors.load::<Spinors<P>>(at, 8 * group + g);
                (halves(&self.fine(at, rhs[0])), halves(&self.fine(at, rhs[1])), halves(&vector))
            };
            unrolled!(half < 2: {
                unrolled!(c < 6: {
                    let rows = [near[half][c], far[half][c]];
                    let column = Column::new(vector[half][c].conj());
                    if ONE {
                        sums[half].add_quads(&QuadRows::new(rows), &column);
                    } else {
                        let rows = QuadRows::new(if found.is_some() { rows } else { [Complex::ZERO; 2] });
                        let column = column.only_if(found.is_some());
                        sums[0].add_quads(&rows, &column.only_if(upper[half]));
                        sums[1].add_quads(&rows, &column.only_if(!upper[half]));
                    }
                });
            });
            k += 4;
        }
        unrolled!(chirality < 2: {
            unrolled!(number < 4: {
                let (rhs, k) = (first + g + 8 * (number as u32 / 2), 8 * group + 2 * t + number as u32 % 2);
                if rhs < nrhs {
                    let z = complex(sums[chirality].re[number], sums[chirality].im[number]);
                    unsafe { self.put(from, chirality as u32, k, rhs, z) };
                }
            });
        });
        warp.wait();
    }
}
// SAFETY: as above; each member of each group falls to one number. Lanes read right-hand sides that exist, and write no others;
// all of them take the same branches.
#[cfg(target_arch = "nvptx64")]
unsafe impl<P: NumberFormat<Real = f32>> LoopedWarpKernel<Spinors<P>> for Restrict {
    #[inline(always)]
    unsafe fn warp_looped<const N: usize>(&self, warp: Warp, i: u32, nrhs: u32) {
        const { assert!(N == 16) };
        let Self { aggregates, .. } = self;
        let (number, group) = self.groups.divide(i);
        let one = aggregates.spinors() == 1 && aggregates.elements().is_multiple_of(4);
        // A warp processes the same member of several groups, as many groups as a group has members. Warps of these
        // groups then read rows of one group at the same time.
        let last = (1 << aggregates.along) - 1;
        let together = aggregates.groups() & last == 0;
        let mut step = 0;
        while step <= last {
            let (which, member) = if together { (number & !last | step, number & last) } else { (number, step) };
            let from = aggregates.member(which, member);
            let mut first = 0;
            while first < nrhs {
                unsafe {
                    if one {
                        self.on_tensor_cores::<P, true>(warp, &from, group, [first, nrhs]);
                    } else {
                        self.on_tensor_cores::<P, false>(warp, &from, group, [first, nrhs]);
                    }
                }
                first += N as u32;
            }
            step += 1;
        }
    }
}

/// Prolongation P c of a coarse vector c to a fine one, on the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Prolong {
    /// Near-null vectors on the sites of one parity, one for each right-hand side.
    pub vectors: Field,
    /// Coarse vector c on the even and on the odd coarse sites.
    pub coarse: [Field; 2],
    /// Fine vector P c.
    pub fine: Field,
    /// Division of the fine lattice into aggregates.
    pub aggregates: Aggregates,
    /// Number of near-null vectors.
    pub count: u32,
    /// Parity of the sites of the fine vector.
    pub parity: u32,
    /// 1 to store the fine vector in the device's spin basis, 0 to store it in the chiral spin basis.
    pub spins: u32,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only.
unsafe impl<P: NumberFormat<Real = f32>> Kernel<Spinors<P>> for Prolong {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe { <Self as MultiRhsKernel<Spinors<P>>>::multi_rhs::<1>(self, i, rhs) }
    }
}
// SAFETY: as above.
unsafe impl<P: NumberFormat<Real = f32>> MultiRhsKernel<Spinors<P>> for Prolong {
    #[inline(always)]
    unsafe fn multi_rhs<const N: usize>(&self, i: u32, first: u32) {
        let Self { aggregates, .. } = self;
        let (site, spinor) = aggregates.spinors.divide(i);
        let (odd, index) = aggregates.of(&aggregates.fine.site(site, self.parity));
        let coarse = if odd == 0 { &self.coarse[0] } else { &self.coarse[1] };
        let of_site = index * aggregates.coarse_spinors;
        let [low, high] = aggregates.upper(spinor).map(|upper| u32::from(!upper));
        let mut sums = [DiracSpinor::<f32>::ZERO; N];
        let mut k = 0;
        while k < self.count {
            let vector = unsafe { self.vectors.load::<Spinors<P>>(i, k) };
            let (at_low, at_high) =
                (place(aggregates.coarse_spinors, low, k), place(aggregates.coarse_spinors, high, k));
            each_rhs!(j < N: {
                let number = |(spinor, number): (u32, u32)| unsafe {
                    coarse.number(of_site + spinor, first + j as u32, number, Access::Shared)
                };
                sums[j] = scaled_add(&vector, [number(at_low), number(at_high)], &sums[j]);
            });
            k += 1;
        }
        each_rhs!(j < N: {
            let sum = if self.spins != 0 { to_device_basis(sums[j]) } else { sums[j] };
            unsafe { self.fine.store::<Spinors<Single>>(i, first + j as u32, &sum) }
        });
    }
}

/// Draws a complex number with normally distributed real and imaginary parts.
#[inline(always)]
fn random_number(random: &mut Philox) -> Complex<f32> {
    let [re, im] = random.gaussian_pair();
    complex(re as f32, im as f32)
}

/// Draws vectors of normal random numbers that depend on the seed, the index of the vector, and the site of the whole
/// lattice.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RandomVectors {
    /// Random vectors, one for each right-hand side.
    pub out: Field,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Position of the local lattice in the whole lattice.
    pub position: Position,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Index of the first vector, which selects its random numbers.
    pub first: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only.
unsafe impl Kernel<Single> for RandomVectors {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let site = self.position.lexicographic(&self.geometry.site(i, self.parity));
        let stream = purpose::NEAR_NULL_VECTORS | ((self.first + rhs) as u64) << purpose::WHICH | site;
        let mut random = Philox::new(self.seed, stream, 0);
        macro_rules! colour {
            () => {
                Colour([random_number(&mut random), random_number(&mut random), random_number(&mut random)])
            };
        }
        let vector = DiracSpinor([colour!(), colour!(), colour!(), colour!()]);
        unsafe { self.out.store::<Spinors<Single>>(i, rhs, &vector) }
    }
}

/// Converts vectors from the device's spin basis to the chiral spin basis.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ToChiralBasis {
    /// Vectors to convert, one for each right-hand side.
    pub vectors: Field,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl Kernel<Single> for ToChiralBasis {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let v = to_degrand_rossi(self.vectors.load_own::<Spinors<Single>>(i, rhs));
            self.vectors.store::<Spinors<Single>>(i, rhs, &v);
        }
    }
}

/// Inner products of vectors on an aggregate. Vectors v give the rows of a matrix, vectors w its columns.
#[derive(Clone, Copy)]
struct Tile<'a> {
    aggregates: &'a Aggregates,
    /// The vectors v on even and on odd sites.
    rows: &'a [Field; 2],
    /// The vectors w on even and on odd sites.
    columns: &'a [Field; 2],
    /// Coordinates of the aggregate's first site.
    origin: [u32; 4],
    chirality: u32,
    /// Number of the first of eight rows.
    row: u32,
    /// Number of the first of four columns.
    column: u32,
}

impl Tile<'_> {
    /// Returns a lane's contribution to the products (v_r, w_c), which have number 4 r + c. It comes from the sites whose place
    /// in the aggregate satisfies `keep`.
    ///
    /// # Safety
    /// The vectors exist, and nothing writes them while the kernel runs.
    #[inline(always)]
    unsafe fn of_lane(&self, lane: u32, keep: impl Fn([u32; 4]) -> bool) -> [f32; 64] {
        let mut sums = [0.0; 64];
        let elements = self.aggregates.elements();
        let mut k = lane;
        while k < 2 * elements {
            let odd = k >= elements;
            let (parity, number) = if odd { (1, k - elements) } else { (0, k) };
            let (rows, columns) =
                if odd { (&self.rows[1], &self.columns[1]) } else { (&self.rows[0], &self.columns[0]) };
            if let Some(element) = self.aggregates.half_element(self.origin, parity, number, self.chirality)
                && keep(element.place)
            {
                let load = |field: &Field, k: u32| unsafe { field.half_spinor(element.at, k, element.which) };
                let w = [0, 1, 2, 3].map(|c| load(columns, self.column + c));
                unrolled!(r < 8: {
                    let v = load(rows, self.row + r as u32).map(|z| z.conj());
                    unrolled!(c < 4: {
                        let at = 2 * (4 * r + c);
                        let sum = complex(sums[at], sums[at + 1]);
                        let sum = v[2].mul_add(w[c][2], v[1].mul_add(w[c][1], v[0].mul_add(w[c][0], sum)));
                        let sum = v[5].mul_add(w[c][5], v[4].mul_add(w[c][4], v[3].mul_add(w[c][3], sum)));
                        sums[at] = sum.re;
                        sums[at + 1] = sum.im;
                    });
                });
            }
            k += LANES;
        }
        sums
    }
}

/// Square matrices, two for each aggregate, one for each chirality: `[aggregate][chirality][row][column]`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Squares {
    base: Global,
    /// Number of rows of a matrix.
    size: u32,
}

impl Squares {
    /// Creates a view of square matrices with `size` rows at `base`.
    ///
    /// # Safety
    /// The matrices stay at `base`, for all aggregates, while a kernel runs that holds the view or a copy of it.
    pub unsafe fn new(base: *mut u8, size: u32) -> Self {
        Squares { base: Global(base), size }
    }
    /// Returns the number of bytes of the matrices of `size` rows for `aggregates` aggregates.
    pub const fn bytes(aggregates: usize, size: usize) -> usize {
        2 * aggregates * size * size * 8
    }
    /// Returns the address of an element of matrix number `which` = 2 `aggregate` + `chirality`.
    #[inline(always)]
    unsafe fn at(&self, which: u32, row: u32, column: u32) -> Global {
        let matrix = which as u64 * (self.size * self.size) as u64;
        unsafe { self.base.offset(8 * (matrix + (row * self.size + column) as u64) as usize) }
    }
    /// Reads an element. The same warp may have written it.
    #[inline(always)]
    unsafe fn get(&self, which: u32, row: u32, column: u32) -> Complex<f32> {
        unsafe {
            let at = self.at(which, row, column);
            complex(at.load4(0, Access::Own), at.load4(4, Access::Own))
        }
    }
    /// Reads four consecutive elements of a row from an even column on. Nothing may write them while the kernel runs.
    #[inline(always)]
    unsafe fn four(&self, which: u32, row: u32, column: u32) -> [Complex<f32>; 4] {
        unsafe {
            let at = self.at(which, row, column);
            let two = |offset: usize| crate::storage::two_singles(at.load16(offset, Access::Shared));
            let ([a, b], [c, d]) = (two(0), two(16));
            [a, b, c, d]
        }
    }
    /// Writes an element of matrix number `which`.
    #[inline(always)]
    unsafe fn set(&self, which: u32, row: u32, column: u32, z: Complex<f32>) {
        unsafe {
            let at = self.at(which, row, column);
            at.store4(0, z.re);
            at.store4(4, z.im);
        }
    }
}

/// Gram matrix G = V† V of vectors V on each aggregate, for each chirality, on and above the diagonal. Call i computes
/// eight rows of four columns.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AggregateGram {
    /// Vectors V on the even and on the odd sites, one for each right-hand side.
    pub vectors: [Field; 2],
    /// G
    pub gram: Squares,
    /// Division of the fine lattice into aggregates.
    pub aggregates: Aggregates,
    /// An eighth of the number of vectors V.
    pub rows: Divisor,
    /// A fourth of the number of vectors V.
    pub columns: Divisor,
}
// SAFETY: number i writes elements of its own rows and columns only.
unsafe impl WarpKernel<Single> for AggregateGram {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let (rest, row) = self.rows.divide(i);
        let (number, column) = self.columns.divide(rest);
        let (row, column) = (8 * row, 4 * column);
        if row >= column + 4 {
            return;
        }
        let which = 2 * self.aggregates.numbered(number / 2) + number % 2;
        let tile = Tile {
            aggregates: &self.aggregates,
            rows: &self.vectors,
            columns: &self.vectors,
            origin: self.aggregates.origin(which / 2),
            chirality: which % 2,
            row,
            column,
        };
        warp.sum_complex::<64>(
            [0, 0],
            |lane| unsafe { tile.of_lane(lane, |_| true) },
            |_, number, z| unsafe { self.gram.set(which, row + number / 4, column + number % 4, z) },
        );
    }
}

/// Inverse Cholesky factor T = U⁻¹ that makes vectors V orthonormal, for each aggregate and chirality, where G + s diag
/// G = U† U and U is upper triangular. If the part of a vector that is independent of the previous vectors is too
/// small, its column of T is zero. Call i computes matrix i.
///
/// G is rounded to single precision, so that one such step is not enough for nearly dependent vectors. Enough are two steps
/// with a shift s of several times the rounding error and one without. This is shifted Cholesky QR (Fukaya et al. 2020, arXiv
/// 1809.11085), with a shift that is relative to the length of each vector.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Factorise {
    /// Gram matrices G, which the kernel overwrites.
    pub gram: Squares,
    /// T
    pub inverse: Squares,
    /// s
    pub shift: f32,
    /// Smallest accepted part of ‖v‖² that is independent of the vectors before v; below it, the column of v is zero.
    pub least: f32,
}
// SAFETY: number i works on matrices of its own; lanes have columns of their own, and read others' after they wait.
unsafe impl WarpKernel<Single> for Factorise {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let (gram, inverse, size) = (&self.gram, &self.inverse, self.gram.size);
        let get = |row: u32, column: u32| unsafe { gram.get(i, row, column) };
        // First, the diagonal of T receives the diagonal of G.
        warp.each(|lane| {
            each_column(lane, size, |column| unsafe {
                let norm = get(column, column).re;
                let mut row = 0;
                while row < size {
                    inverse.set(i, row, column, complex(if row == column { norm } else { 0.0 }, 0.0));
                    row += 1;
                }
                gram.set(i, column, column, complex(norm + self.shift * norm, 0.0));
            });
        });
        let mut p = 0;
        while p < size {
            let (left, norm) = (get(p, p).re, unsafe { inverse.get(i, p, p) }.re);
            let factor = if left > self.least * norm { crate::memory::reciprocal(left.sqrt_or_zero()) } else { 0.0 };
            warp.wait();
            warp.each(|lane| {
                each_column(lane, size, |column| unsafe {
                    if column == p {
                        inverse.set(i, p, p, complex(factor, 0.0));
                    } else if column > p {
                        gram.set(i, p, column, get(p, column).scale(factor));
                    }
                });
            });
            warp.each(|lane| {
                each_column(lane, size, |column| {
                    let mine = get(p, column);
                    let mut row = p + 1;
                    while row <= column {
                        let z = (-get(p, row).conj()).mul_add(mine, get(row, column));
                        unsafe { gram.set(i, row, column, z) };
                        row += 1;
                    }
                });
            });
            p += 1;
        }
        warp.each(|lane| {
            each_column(lane, size, |column| {
                let mut row = column;
                while row > 0 {
                    row -= 1;
                    let mut sum = Complex::ZERO;
                    let mut k = row + 1;
                    while k <= column {
                        sum = get(row, k).mul_add(unsafe { inverse.get(i, k, column) }, sum);
                        k += 1;
                    }
                    unsafe { inverse.set(i, row, column, sum.scale(-inverse.get(i, row, row).re)) };
                }
            });
        });
    }
}

/// Combination of vectors, V ← V T, on each aggregate for each chirality, with upper triangular matrices T. Call i
/// computes aggregate i.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Combine {
    /// Vectors V on the even and on the odd sites.
    pub vectors: [Field; 2],
    /// T
    pub factors: Squares,
    /// Division of the fine lattice into aggregates.
    pub aggregates: Aggregates,
}
// SAFETY: a lane reads and writes spinors of its own only, and number i those of its aggregate.
unsafe impl WarpKernel<Single> for Combine {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let Self { aggregates, factors, .. } = self;
        let i = aggregates.numbered(i);
        let (origin, elements) = (aggregates.origin(i), aggregates.elements());
        warp.each(|lane| {
            let mut k = lane;
            while k < 2 * elements {
                let odd = k >= elements;
                let (parity, number) = if odd { (1, k - elements) } else { (0, k) };
                if let Some(element) = aggregates.element(origin, parity, number) {
                    let field = if odd { &self.vectors[1] } else { &self.vectors[0] };
                    let [low, high] = aggregates.upper(element.spinor).map(|upper| 2 * i + u32::from(!upper));
                    // Columns are computed from the last to the first, because each needs the old values of the columns
                    // before it.
                    let mut first = factors.size;
                    while first > 0 {
                        first -= 4;
                        let mut sums = [DiracSpinor::<f32>::ZERO; 4];
                        let mut j = 0;
                        while j < first + 4 {
                            unsafe {
                                let v = field.load_own::<Spinors<Single>>(element.at, j);
                                let (low, high) = (factors.four(low, j, first), factors.four(high, j, first));
                                unrolled!(c < 4: { sums[c] = scaled_add(&v, [low[c], high[c]], &sums[c]); });
                            }
                            j += 1;
                        }
                        unrolled!(c < 4: {
                            unsafe { field.store::<Spinors<Single>>(element.at, first + c as u32, &sums[c]) };
                        });
                    }
                }
                k += LANES;
            }
        });
    }
}

/// Copies the near-null vectors on the sites of one parity and keeps only one chirality, which gives columns of the
/// prolongation P.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Chiral {
    /// Near-null vectors, one for each right-hand side.
    pub vectors: Field,
    /// Result: the vectors with zeros for the other chirality.
    pub out: Field,
    /// Number of spinors of a site.
    pub spinors: Divisor,
    /// Chirality to keep: 0 for +, 1 for −.
    pub chirality: u32,
    /// 1 to store the result in the device's spin basis, 0 to store it in the chiral spin basis.
    pub spins: u32,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl Kernel<Single> for Chiral {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let (_, spinor) = self.spinors.divide(i);
        let [low, high] = [2 * spinor, 2 * spinor + 1].map(|half| {
            let lower = half >= self.spinors.get();
            complex(if lower == (self.chirality != 0) { 1.0 } else { 0.0 }, 0.0)
        });
        unsafe {
            let v = scaled(&self.vectors.load::<Spinors<Single>>(i, rhs), [low, high]);
            let v = if self.spins != 0 { to_device_basis(v) } else { v };
            self.out.store::<Spinors<Single>>(i, rhs, &v);
        }
    }
}

/// One of the eight hops of the Wilson operator: c U_μ(x) (1 − γ_μ) ψ(x + μ̂) on the sites of one parity in a region.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ForwardHop {
    /// Field ψ on the sites of the other parity.
    pub input: Field,
    /// Field for the result.
    pub out: Field,
    /// Links that start at the sites of `parity`.
    pub links: ThinLinks,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Sites at which the result is computed.
    pub region: Region,
    /// Source of spinors for hops that leave the local lattice.
    pub ghosts: Ghosts,
    /// Parity of the sites of the result: 0 for even, 1 for odd.
    pub parity: u32,
    /// μ
    pub direction: u32,
    /// c
    pub factor: f64,
    /// Factor c of hops that cross the end of the lattice in t.
    pub factor_across: f64,
    /// 1 to store the result in the chiral spin basis, 0 to store it in the device's basis.
    pub chiral: u32,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only, on another parity than it reads.
unsafe impl Kernel<Single> for ForwardHop {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let index = self.region.index(i, &self.geometry, self.parity);
        let site = self.geometry.site(index, self.parity);
        let at = self.lattice.site(index, self.parity).index;
        let u: Su3<f64> = unsafe { self.links.load(at, self.direction, Access::Shared) };
        let u: Su3<f32> = u.cast();
        macro_rules! hop {
            ($mu:literal $axis:ident) => {{
                let projector = Projector::minus(Axis::$axis);
                let (way, geometry) = (($mu, true), &self.geometry);
                let psi = match unsafe { self.ghosts.projected::<Single, _>(geometry, &site, rhs, way, projector) } {
                    Some(psi) => psi,
                    None => unsafe {
                        self.input.projected::<Single, _>(geometry.neighbour(&site, $mu, true), rhs, projector)
                    },
                };
                let across = $mu == 3 && self.geometry.crosses_end(&site, true).any();
                let factor = if across { self.factor_across } else { self.factor };
                let mut out = DiracSpinor::ZERO;
                out.add_projected((u * psi).times(factor as f32), projector);
                out
            }};
        }
        let out = match self.direction {
            0 => hop!(0 X),
            1 => hop!(1 Y),
            2 => hop!(2 Z),
            _ => hop!(3 T),
        };
        let out = if self.chiral != 0 { to_degrand_rossi(out) } else { out };
        unsafe { self.out.store::<Spinors<Single>>(index, rhs, &out) }
    }
}

/// Columns R w of a coarse operator, where w are products of the fine operator with columns of P. Contributions of hops
/// that leave the aggregate are kept separate. Call i computes the rows of eight near-null vectors of one chirality in
/// four columns of an aggregate.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Project {
    /// Near-null vectors on the even and on the odd sites, one for each right-hand side.
    pub vectors: [Field; 2],
    /// Products w on the even and on the odd sites, one column of one chirality for each right-hand side, in the chiral
    /// spin basis.
    pub columns: [Field; 2],
    /// Contributions from sites of the same aggregate.
    pub inside: CoarseTiles,
    /// Contributions of hops from the next aggregate.
    pub outside: CoarseTiles,
    /// Division of the fine lattice into aggregates.
    pub aggregates: Aggregates,
    /// An eighth of the number of near-null vectors.
    pub row_groups: Divisor,
    /// A fourth of the number of near-null vectors.
    pub column_groups: Divisor,
    /// Chirality of the columns.
    pub chirality: u32,
    /// Direction of the forward hop that produced w; 4 if w does not come from a hop.
    pub direction: u32,
    /// 1 to add to the values of `inside`, 0 to overwrite them.
    pub add: u32,
}
// SAFETY: number i writes elements of its own rows and columns only.
unsafe impl WarpKernel<Single> for Project {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let Self { aggregates, .. } = self;
        let (rest, row) = self.row_groups.divide(i);
        let (number, column) = self.column_groups.divide(rest);
        let (aggregate, chirality) = (aggregates.numbered(number / 2), number % 2);
        let (row, column) = (8 * row, 4 * column);
        let tile = Tile {
            aggregates,
            rows: &self.vectors,
            columns: &self.columns,
            origin: aggregates.origin(aggregate),
            chirality,
            row,
            column,
        };
        let count = 8 * self.row_groups.get();
        let at = |number: u32| (chirality * count + row + number / 4, self.chirality * count + column + number % 4);
        warp.sum_complex::<64>(
            [0, 0],
            |lane| unsafe { tile.of_lane(lane, |place| !aggregates.leaves(place, self.direction)) },
            |_, number, z| unsafe {
                let old = if self.add == 0 { Complex::ZERO } else { self.inside.get(aggregate, 0, at(number)) };
                self.inside.set(aggregate, 0, at(number), old + z);
            },
        );
        if self.direction < 4 {
            warp.sum_complex::<64>(
                [0, 0],
                |lane| unsafe { tile.of_lane(lane, |place| aggregates.leaves(place, self.direction)) },
                |_, number, z| unsafe { self.outside.set(aggregate, self.direction, at(number), z) },
            );
        }
    }
}

crate::kernels! { FAMILY = "multigrid";
    by_warps RESTRICT "restrict": [Restrict] => null_vectors(looped 16);
    kernel PROLONG "prolong": [Prolong] => null_vectors(rhs 4);
    setup TO_CHIRAL_BASIS "to_chiral_basis": [ToChiralBasis] => single_numbers;
    setup_by_warps GRAM "gram_of_aggregates": [AggregateGram] => single_numbers;
    setup_by_warps FACTORISE "factorise": [Factorise] => single_numbers;
    setup_by_warps COMBINE "combine": [Combine] => single_numbers;
    setup RANDOM_VECTORS "test_vectors": [RandomVectors] => single_numbers;
    setup CHIRAL "chiral": [Chiral] => single_numbers;
    setup FORWARD_HOP "forward_hop": [ForwardHop] => single_numbers;
    setup_by_warps PROJECT "project": [Project] => single_numbers;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// Checks that lanes of a group cover all elements of its aggregates, each once, and that groups cover all aggregates.
    #[test]
    fn groups_of_aggregates_cover_the_lattice() {
        for (extents, spinors, block, along) in [
            ([32, 32, 32, 64], 1, [4, 4, 4, 4], 2),
            ([24, 24, 24, 64], 1, [4, 4, 4, 4], 1),
            ([16, 16, 16, 16], 1, [2, 2, 2, 2], 2),
            ([16, 16, 16, 32], 4, [2, 2, 2, 2], 2),
            ([16, 16, 16, 32], 3, [2, 2, 2, 2], 0),
            ([12, 12, 12, 24], 1, [3, 3, 3, 4], 0),
            ([24, 12, 24, 24], 1, [6, 1, 2, 2], 0),
            ([8, 8, 8, 16], 1, [4, 4, 4, 4], 0),
        ] {
            let aggregates = Aggregates::new(Geometry::new(extents), spinors, block, 24);
            let (count, half) = (aggregates.count(), aggregates.coarse.half_volume());
            assert_eq!((aggregates.along, aggregates.groups() << along), (along, count), "{extents:?}, {block:?}");
            let mut seen = vec![false; count as usize];
            for group in 0..aggregates.groups() {
                for j in 0..1 << along {
                    let LaneAggregate { origin, odd, site } = aggregates.member(group, j);
                    let aggregate = site + if odd { half } else { 0 };
                    assert_eq!(origin, aggregates.origin(aggregate));
                    assert!(!std::mem::replace(&mut seen[aggregate as usize], true));
                }
            }
            assert!(!seen.contains(&false));
            let elements = aggregates.elements();
            let mut found = vec![0; (elements << along) as usize];
            for lane in 0..LANES {
                let (j, mut k) = aggregates.of_lane(lane);
                while k < elements {
                    found[(j * elements + k) as usize] += 1;
                    k += LANES >> along;
                }
            }
            assert!(found.iter().all(|times| *times == 1), "{extents:?}, {block:?}");
        }
    }
}
