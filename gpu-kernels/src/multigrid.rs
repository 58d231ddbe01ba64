//! Multigrid: aggregates of sites, near-null vectors on them, and what they make of vectors and of an operator.
//!
//! A vector on any level is a block of spinors in checkerboard order: a site has [`Aggregates::spinors`] of them one after
//! the other, one on the lattice itself. The two halves of a spinor are six numbers of one chirality each; a site with
//! f spinors has 2 f halves, of which the first f have chirality + (upper spins of the DeGrand–Rossi basis), and the others
//! −. Number (χ, k) of a coarse site belongs to near-null vector k restricted to chirality χ: it is number k mod 6 of half
//! χ f + k / 6. So the linear algebra of spinors serves all levels.
//!
//! P takes a coarse vector c to Σ_k V_k(x)|_χ c(A(x), χ, k), with A(x) the aggregate of site x, and R = P†: chirality is
//! preserved, and γ5 P = P γ5 (Babich et al. 2010, arXiv 1005.3043; Clark et al. 2016, arXiv 1612.07873).
use crate::Kernel;
use crate::algebra::{
    Axis, Colour, Complex, DiracSpinor, Projector, Real, Su3, complex, to_degrand_rossi, to_device_basis,
};
use crate::coarse::Matrices;
use crate::field::{Field, ThinLinks};
use crate::lattice::{Bordered, Divisor, Geometry, Position, Site};
use crate::memory::Access;
use crate::random::{Philox, purpose};
use crate::storage::{NumberFormat, Single, Spinors};
use crate::warp::{LANES, Warp, WarpKernel};

/// The body for each number below another, written out.
macro_rules! unrolled {
    ($k:ident < 2: $body:block) => {
        $crate::multigrid::unrolled!(@ $k $body 0 1)
    };
    ($k:ident < 4: $body:block) => {
        $crate::multigrid::unrolled!(@ $k $body 0 1 2 3)
    };
    (@ $k:ident $body:block $($index:literal)*) => {
        $({
            #[allow(non_upper_case_globals, reason = "stands for a variable of a loop")]
            const $k: usize = $index;
            $body
        })*
    };
}
pub(crate) use unrolled;

/// How a lattice is divided into aggregates, each of which is a site of a coarse lattice.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Aggregates {
    fine: Geometry,
    coarse: Geometry,
    block: [Divisor; 4],
    /// Of a row of sites of one parity, or of a whole row where that is odd.
    row: Divisor,
    /// Spinors of a fine site.
    spinors: Divisor,
    /// Spinors of a coarse site.
    coarse_spinors: u32,
}

impl Aggregates {
    /// Of a lattice with `extents` and `spinors` on each site, in blocks that divide it into even numbers of sites in each
    /// direction, for so many near-null `vectors`.
    pub const fn new(extents: [u32; 4], spinors: u32, block: [u32; 4], vectors: u32) -> Self {
        let [x, y, z, t] = extents;
        let [a, b, c, d] = block;
        Aggregates {
            fine: Geometry::new(extents),
            coarse: Geometry::new([x / a, y / b, z / c, t / d]),
            block: [Divisor::new(a), Divisor::new(b), Divisor::new(c), Divisor::new(d)],
            row: Divisor::new(if a % 2 == 0 { a / 2 } else { a }),
            spinors: Divisor::new(spinors),
            coarse_spinors: spinors_of(vectors),
        }
    }
    /// Spinors of a fine site.
    #[inline(always)]
    pub fn spinors(&self) -> u32 {
        self.spinors.get()
    }
    /// How many there are.
    pub fn count(&self) -> u32 {
        2 * self.coarse.half_volume()
    }
    /// Spinors of one parity in an aggregate, or numbers to try for them.
    #[inline(always)]
    fn elements(&self) -> u32 {
        self.row.get() * self.block[1].get() * self.block[2].get() * self.block[3].get() * self.spinors.get()
    }
    /// The first site of an aggregate: those with an even coarse site come first.
    #[inline(always)]
    fn origin(&self, aggregate: u32) -> [u32; 4] {
        let half = self.coarse.half_volume();
        let (parity, index) = if aggregate < half { (0, aggregate) } else { (1, aggregate - half) };
        let s = self.coarse.site(index, parity);
        let [a, b, c, d] = self.block;
        [(2 * s.half_x + s.odd_x) * a.get(), s.y * b.get(), s.z * c.get(), s.t * d.get()]
    }
    /// Spinor number `k` of one parity in the aggregate that begins at a site, if there is such a number.
    #[inline(always)]
    fn element(&self, [x, y, z, t]: [u32; 4], parity: u32, k: u32) -> Option<Element> {
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
        Some(Element { place: [a, b, c, d], at: index * self.spinors.get() + spinor, spinor })
    }
    /// Parity and checkerboard index of the aggregate that a site is in.
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
    /// Whether a step forward in a direction leads out of an aggregate from a place in it.
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
    /// Whether the halves of spinor number `spinor` of a fine site have chirality +.
    #[inline(always)]
    fn upper(&self, spinor: u32) -> [bool; 2] {
        [2 * spinor < self.spinors.get(), 2 * spinor + 1 < self.spinors.get()]
    }
}

/// Spinors of a coarse site for so many near-null vectors.
pub const fn spinors_of(vectors: u32) -> u32 {
    vectors.div_ceil(6)
}

/// A spinor of an aggregate.
#[derive(Clone, Copy)]
struct Element {
    /// Of its site in the aggregate.
    place: [u32; 4],
    /// Of the spinor among those of its parity.
    at: u32,
    /// Number among those of its site.
    spinor: u32,
}

/// Where number (χ, k) of a site is: spinor and number in it.
#[inline(always)]
pub(crate) fn place(spinors: u32, chirality: u32, k: u32) -> (u32, u32) {
    let half = chirality * spinors + k / 6;
    (half / 2, (half & 1) * 6 + k % 6)
}

/// (a, b) of the two halves of two spinors.
#[inline(always)]
fn dots(a: &DiracSpinor<f32>, b: &DiracSpinor<f32>) -> [Complex<f32>; 2] {
    [a.0[0].dot(b.0[0]) + a.0[1].dot(b.0[1]), a.0[2].dot(b.0[2]) + a.0[3].dot(b.0[3])]
}
/// The sums of what two halves have for chirality + and −, as four reals.
#[inline(always)]
fn by_chirality([low, high]: [Complex<f32>; 2], [a, b]: [bool; 2]) -> [f32; 4] {
    let zero = Complex::ZERO;
    let plus = (if a { low } else { zero }) + (if b { high } else { zero });
    let minus = (if a { zero } else { low }) + (if b { zero } else { high });
    [plus.re, plus.im, minus.re, minus.im]
}
/// Each half of a spinor times the factor of its chirality.
#[inline(always)]
fn scaled(s: &DiracSpinor<f32>, [low, high]: [Complex<f32>; 2]) -> DiracSpinor<f32> {
    let [a, b, c, d] = s.0;
    let times = |v: Colour<f32>, z: Complex<f32>| v.map(|x| z * x);
    DiracSpinor([times(a, low), times(b, low), times(c, high), times(d, high)])
}

/// A coarse vector from a fine one: R r = P† r, of the sites of one parity. Number i computes four near-null vectors'
/// numbers of an aggregate.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Restrict {
    /// The near-null vectors on the parity, one for each right-hand side.
    pub vectors: Field,
    /// r
    pub fine: Field,
    /// The coarse vector on even and on odd sites.
    pub coarse: [Field; 2],
    /// The aggregates.
    pub aggregates: Aggregates,
    /// A fourth of the number of near-null vectors.
    pub groups: Divisor,
    /// Parity of the fine vector.
    pub parity: u32,
    /// 1: to what the coarse vector has already.
    pub add: u32,
    /// 1: the fine vector is in the device's spin basis.
    pub spins: u32,
}
// SAFETY: number (i, rhs) writes numbers of its aggregate that belong to its own near-null vectors.
unsafe impl<P: NumberFormat<Real = f32>> WarpKernel<Spinors<P>> for Restrict {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, rhs: u32) {
        let Self { aggregates, .. } = self;
        let (aggregate, group) = self.groups.divide(i);
        let origin = aggregates.origin(aggregate);
        let sums = warp.sum::<16>(|lane| {
            let mut sums = [0.0; 16];
            let mut k = lane;
            while k < aggregates.elements() {
                if let Some(element) = aggregates.element(origin, self.parity, k) {
                    let upper = aggregates.upper(element.spinor);
                    let r = unsafe { self.fine.load::<Spinors<Single>>(element.at, rhs) };
                    let r = if self.spins != 0 { to_degrand_rossi(r) } else { r };
                    unrolled!(v < 4: {
                        let vector = unsafe { self.vectors.load::<Spinors<P>>(element.at, 4 * group + v as u32) };
                        let [a, b, c, d] = by_chirality(dots(&vector, &r), upper);
                        sums[4 * v] += a;
                        sums[4 * v + 1] += b;
                        sums[4 * v + 2] += c;
                        sums[4 * v + 3] += d;
                    });
                }
                k += LANES;
            }
            sums
        });
        warp.once(|| {
            let half = aggregates.coarse.half_volume();
            let odd = aggregate >= half;
            let site = if odd { aggregate - half } else { aggregate };
            let coarse = if odd { &self.coarse[1] } else { &self.coarse[0] };
            let put = |k: u32, chirality: u32, z: Complex<f32>| {
                let (spinor, number) = place(aggregates.coarse_spinors, chirality, k);
                let at = site * aggregates.coarse_spinors + spinor;
                unsafe {
                    let old = if self.add == 0 { Complex::ZERO } else { coarse.number(at, rhs, number, Access::Own) };
                    coarse.put_number(at, rhs, number, old + z);
                }
            };
            unrolled!(v < 4: {
                put(4 * group + v as u32, 0, complex(sums[4 * v], sums[4 * v + 1]));
                put(4 * group + v as u32, 1, complex(sums[4 * v + 2], sums[4 * v + 3]));
            });
        });
    }
}

/// A fine vector from a coarse one, P c, on the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Prolong {
    /// The near-null vectors on the parity, one for each right-hand side.
    pub vectors: Field,
    /// The coarse vector on even and on odd sites.
    pub coarse: [Field; 2],
    /// P c
    pub fine: Field,
    /// The aggregates.
    pub aggregates: Aggregates,
    /// Number of near-null vectors.
    pub count: u32,
    /// Parity of the fine vector.
    pub parity: u32,
    /// 1: the fine vector is in the device's spin basis.
    pub spins: u32,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only.
unsafe impl<P: NumberFormat<Real = f32>> Kernel<Spinors<P>> for Prolong {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let Self { aggregates, .. } = self;
        let (site, spinor) = aggregates.spinors.divide(i);
        let (odd, index) = aggregates.of(&aggregates.fine.site(site, self.parity));
        let coarse = if odd == 0 { &self.coarse[0] } else { &self.coarse[1] };
        let first = index * aggregates.coarse_spinors;
        let number = |chirality: u32, k: u32| {
            let (spinor, number) = place(aggregates.coarse_spinors, chirality, k);
            unsafe { coarse.number(first + spinor, rhs, number, Access::Shared) }
        };
        let [low, high] = aggregates.upper(spinor).map(|upper| u32::from(!upper));
        let mut sum = DiracSpinor::<f32>::ZERO;
        let mut k = 0;
        while k < self.count {
            let vector = unsafe { self.vectors.load::<Spinors<P>>(i, k) };
            let (a, b) = (number(low, k), number(high, k));
            let add = |v: Colour<f32>, c: Complex<f32>, sum: Colour<f32>| v.zip(sum, |v, sum| c.mul_add(v, sum));
            let ([p, q, r, s], [t, u, v, w]) = (vector.0, sum.0);
            sum = DiracSpinor([add(p, a, t), add(q, a, u), add(r, b, v), add(s, b, w)]);
            k += 1;
        }
        let sum = if self.spins != 0 { to_device_basis(sum) } else { sum };
        unsafe { self.fine.store::<Spinors<Single>>(i, rhs, &sum) }
    }
}

/// Vectors of normal random numbers that depend on the seed, the vector, and the site of the whole lattice.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TestVectors {
    /// One for each right-hand side.
    pub out: Field,
    /// The local lattice.
    pub geometry: Geometry,
    /// Where it is in the whole one.
    pub position: Position,
    /// Parity of the sites.
    pub parity: u32,
    /// Number of the first vector.
    pub first: u32,
    /// Seed.
    pub seed: u64,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only.
unsafe impl Kernel<Single> for TestVectors {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let site = self.position.lexicographic(&self.geometry.site(i, self.parity));
        let stream = purpose::TEST_VECTORS | ((self.first + rhs) as u64) << purpose::WHICH | site;
        let mut random = Philox::new(self.seed, stream, 0);
        let mut number = || {
            let [re, im] = random.gaussian_pair();
            complex(re as f32, im as f32)
        };
        let mut colour = || Colour([number(), number(), number()]);
        let vector = DiracSpinor([colour(), colour(), colour(), colour()]);
        unsafe { self.out.store::<Spinors<Single>>(i, rhs, &vector) }
    }
}

/// Makes vectors orthonormal on each aggregate and for each chirality, by Gram-Schmidt's method, done twice. One of which
/// nothing is left becomes zero. Number i is aggregate i.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Orthonormalise {
    /// The vectors on even and on odd sites, one for each right-hand side.
    pub vectors: [Field; 2],
    /// The aggregates.
    pub aggregates: Aggregates,
    /// How many vectors there are.
    pub count: u32,
    /// 1: vectors come in the device's spin basis. They leave in that of chirality.
    pub spins: u32,
}

/// Of the square of a norm: less than this part left means that nothing is.
const NOTHING: f32 = 1e-9;

impl Orthonormalise {
    /// Calls `f` with the spinors of a lane.
    #[inline(always)]
    fn each(&self, origin: [u32; 4], lane: u32, mut f: impl FnMut(&Field, &Element)) {
        let mut k = lane;
        while k < 2 * self.aggregates.elements() {
            let odd = k >= self.aggregates.elements();
            let (parity, number) = if odd { (1, k - self.aggregates.elements()) } else { (0, k) };
            if let Some(element) = self.aggregates.element(origin, parity, number) {
                f(if odd { &self.vectors[1] } else { &self.vectors[0] }, &element);
            }
            k += LANES;
        }
    }
    /// ‖v_k‖² for each chirality.
    #[inline(always)]
    unsafe fn norms(&self, warp: Warp, origin: [u32; 4], k: u32) -> [f32; 2] {
        let [plus, _, minus, _] = warp.sum::<4>(|lane| {
            let mut sums = [0.0; 4];
            self.each(origin, lane, |field, element| {
                let v = unsafe { field.load_own::<Spinors<Single>>(element.at, k) };
                let mine = by_chirality(dots(&v, &v), self.aggregates.upper(element.spinor));
                unrolled!(c < 4: { sums[c] += mine[c]; });
            });
            sums
        });
        [plus, minus]
    }
    /// v_k ← v_k − Σ v_i (v_i, v_k) for each chirality, with up to four i from `first` on.
    #[inline(always)]
    unsafe fn project(&self, warp: Warp, origin: [u32; 4], first: u32, k: u32) {
        // One that comes twice counts once.
        let last = k - 1;
        let index = |v: u32| if first + v < last { first + v } else { last };
        let there = |v: u32| first + v <= last;
        let sums = warp.sum::<16>(|lane| {
            let mut sums = [0.0; 16];
            self.each(origin, lane, |field, element| {
                let upper = self.aggregates.upper(element.spinor);
                let load = |k: u32| unsafe { field.load_own::<Spinors<Single>>(element.at, k) };
                let v_k = load(k);
                unrolled!(v < 4: {
                    let mine = by_chirality(dots(&load(index(v as u32)), &v_k), upper);
                    unrolled!(c < 4: { sums[4 * v + c] += mine[c]; });
                });
            });
            sums
        });
        warp.each(|lane| {
            self.each(origin, lane, |field, element| {
                let upper = self.aggregates.upper(element.spinor);
                let load = |k: u32| unsafe { field.load_own::<Spinors<Single>>(element.at, k) };
                let mut v_k = load(k);
                unrolled!(v < 4: {
                    if there(v as u32) {
                        let [a, b, c, d] = [sums[4 * v], sums[4 * v + 1], sums[4 * v + 2], sums[4 * v + 3]];
                        let minus = upper.map(|upper| if upper { complex(-a, -b) } else { complex(-c, -d) });
                        v_k = v_k.zip(scaled(&load(index(v as u32)), minus), |x, y| x + y);
                    }
                });
                unsafe { field.store::<Spinors<Single>>(element.at, k, &v_k) };
            });
        });
    }
    /// v_k ← a v_k, with a factor for each chirality.
    #[inline(always)]
    unsafe fn scale(&self, warp: Warp, origin: [u32; 4], k: u32, [plus, minus]: [f32; 2]) {
        warp.each(|lane| {
            self.each(origin, lane, |field, element| {
                let factors =
                    self.aggregates.upper(element.spinor).map(|upper| complex(if upper { plus } else { minus }, 0.0));
                unsafe {
                    let v = scaled(&field.load_own::<Spinors<Single>>(element.at, k), factors);
                    field.store::<Spinors<Single>>(element.at, k, &v);
                }
            });
        });
    }
}
// SAFETY: a lane reads and writes spinors of its own only, and number i those of its aggregate.
unsafe impl WarpKernel<Single> for Orthonormalise {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let origin = self.aggregates.origin(i);
        let mut k = 0;
        while k < self.count {
            if self.spins != 0 {
                warp.each(|lane| {
                    self.each(origin, lane, |field, element| unsafe {
                        let v = to_degrand_rossi(field.load_own::<Spinors<Single>>(element.at, k));
                        field.store::<Spinors<Single>>(element.at, k, &v);
                    });
                });
            }
            let before = unsafe { self.norms(warp, origin, k) };
            let mut pass = 0;
            while pass < 2 {
                let mut first = 0;
                while first < k {
                    unsafe { self.project(warp, origin, first, k) };
                    first += 4;
                }
                pass += 1;
            }
            let after = unsafe { self.norms(warp, origin, k) };
            let factor = |after: f32, before: f32| {
                if after > NOTHING * before { crate::memory::reciprocal(after.sqrt_or_zero()) } else { 0.0 }
            };
            unsafe { self.scale(warp, origin, k, [factor(after[0], before[0]), factor(after[1], before[1])]) };
            k += 1;
        }
    }
}

/// The part of near-null vectors that has one chirality, on the sites of one parity: P e, the columns of P.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Chiral {
    /// The near-null vectors, one for each right-hand side.
    pub vectors: Field,
    /// The same with zero for the other chirality.
    pub out: Field,
    /// Spinors of a site.
    pub spinors: Divisor,
    /// 0 for +, 1 for −.
    pub chirality: u32,
    /// 1: in the device's spin basis.
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

/// One of the eight hops of the Wilson operator: c U_μ(x) (1 − γ_μ) ψ(x + μ̂) on the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ForwardHop {
    /// ψ on the other parity.
    pub input: Field,
    /// The result.
    pub out: Field,
    /// The links on the sites of the parity.
    pub links: ThinLinks,
    /// Their lattice.
    pub lattice: Bordered,
    /// The local lattice.
    pub geometry: Geometry,
    /// Parity of the result.
    pub parity: u32,
    /// μ
    pub direction: u32,
    /// c
    pub factor: f64,
    /// c where the hop crosses the end of the lattice in t.
    pub factor_across: f64,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only, on another parity than it reads.
unsafe impl Kernel<Single> for ForwardHop {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let site = self.geometry.site(i, self.parity);
        let at = self.lattice.site(i, self.parity).index;
        let u: Su3<f64> = unsafe { self.links.load(at, self.direction, Access::Shared) };
        let u: Su3<f32> = u.cast();
        macro_rules! hop {
            ($mu:literal $axis:ident) => {{
                let projector = Projector::minus(Axis::$axis);
                let from = self.geometry.neighbour(&site, $mu, true);
                let psi = unsafe { self.input.load::<Spinors<Single>>(from, rhs) };
                let across = $mu == 3 && self.geometry.crosses_end(&site, true);
                let factor = if across { self.factor_across } else { self.factor };
                let mut out = DiracSpinor::ZERO;
                out.add_projected((u * psi.project(projector)).times(factor as f32), projector);
                out
            }};
        }
        let out = match self.direction {
            0 => hop!(0 X),
            1 => hop!(1 Y),
            2 => hop!(2 Z),
            _ => hop!(3 T),
        };
        unsafe { self.out.store::<Spinors<Single>>(i, rhs, &out) }
    }
}

/// Columns of a coarse operator from what the operator makes of columns of P: R w, and where hops leave the aggregate,
/// apart. Number i computes two near-null vectors' rows of two columns of an aggregate.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Project {
    /// The near-null vectors on even and on odd sites, one for each right-hand side.
    pub vectors: [Field; 2],
    /// w on even and on odd sites, one column of a chirality for each right-hand side.
    pub columns: [Field; 2],
    /// For what stays in the aggregate.
    pub inside: Matrices,
    /// For what a hop brings from the next aggregate.
    pub outside: Matrices,
    /// The aggregates.
    pub aggregates: Aggregates,
    /// Half the number of near-null vectors.
    pub pairs: Divisor,
    /// Chirality of the columns.
    pub chirality: u32,
    /// Direction of the hop forward that made w; 4 where it was none.
    pub direction: u32,
    /// 1: to what `inside` has already.
    pub add: u32,
    /// 1: w is in the device's spin basis.
    pub spins: u32,
}
// SAFETY: number i writes elements of its own rows and columns only.
unsafe impl WarpKernel<Single> for Project {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let Self { aggregates, .. } = self;
        let (rest, row) = self.pairs.divide(i);
        let (aggregate, column) = self.pairs.divide(rest);
        let origin = aggregates.origin(aggregate);
        let sums = warp.sum::<32>(|lane| {
            let mut sums = [0.0; 32];
            let mut k = lane;
            while k < 2 * aggregates.elements() {
                let odd = k >= aggregates.elements();
                let (parity, number) = if odd { (1, k - aggregates.elements()) } else { (0, k) };
                if let Some(element) = aggregates.element(origin, parity, number) {
                    let (vectors, columns) =
                        if odd { (&self.vectors[1], &self.columns[1]) } else { (&self.vectors[0], &self.columns[0]) };
                    let upper = aggregates.upper(element.spinor);
                    let out = aggregates.leaves(element.place, self.direction);
                    let load = |field: &Field, k: u32| unsafe { field.load::<Spinors<Single>>(element.at, k) };
                    let w = [0, 1].map(|c| {
                        let w = load(columns, 2 * column + c);
                        if self.spins != 0 { to_degrand_rossi(w) } else { w }
                    });
                    unrolled!(r < 2: {
                        let vector = load(vectors, 2 * row + r as u32);
                        unrolled!(c < 2: {
                            let mine = by_chirality(dots(&vector, &w[c]), upper);
                            unrolled!(v < 4: {
                                sums[16 * c + 8 * r + v] += if out { 0.0 } else { mine[v] };
                                sums[16 * c + 8 * r + 4 + v] += if out { mine[v] } else { 0.0 };
                            });
                        });
                    });
                }
                k += LANES;
            }
            sums
        });
        warp.once(|| {
            let count = 2 * self.pairs.get();
            unrolled!(r < 2: {
                unrolled!(c < 2: {
                    unrolled!(chirality < 2: {
                        let first = 16 * c + 8 * r + 2 * chirality;
                        let z = complex(sums[first], sums[first + 1]);
                        let out = complex(sums[first + 4], sums[first + 5]);
                        let at = (
                            chirality as u32 * count + 2 * row + r as u32,
                            self.chirality * count + 2 * column + c as u32,
                        );
                        unsafe {
                            let old = if self.add == 0 { Complex::ZERO } else { self.inside.get(aggregate, 0, at) };
                            self.inside.set(aggregate, 0, at, old + z);
                            if self.direction < 4 {
                                self.outside.set(aggregate, self.direction, at, out);
                            }
                        }
                    });
                });
            });
        });
    }
}

crate::kernels! { FAMILY = "multigrid";
    by_warps RESTRICT "restrict": [Restrict] => null_vectors;
    kernel PROLONG "prolong": [Prolong] => null_vectors;
    setup_by_warps ORTHONORMALISE "orthonormalise": [Orthonormalise] => single_numbers;
    setup TEST_VECTORS "test_vectors": [TestVectors] => single_numbers;
    setup CHIRAL "chiral": [Chiral] => single_numbers;
    setup FORWARD_HOP "forward_hop": [ForwardHop] => single_numbers;
    setup_by_warps PROJECT "project": [Project] => single_numbers;
}
