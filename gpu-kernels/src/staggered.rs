//! Staggered hopping terms between the parities:
//! (D ψ)(x) = Σ_μ η_μ(x) \[F_μ(x) ψ(x+μ̂) − F†_μ(x−μ̂) ψ(x−μ̂) + L_μ(x) ψ(x+3μ̂) − L†_μ(x−3μ̂) ψ(x−3μ̂)\]
//! (Babich et al. 2011, eqs. 3 and 4). [`Naive`] has thin links for F and no L, [`Improved`] fat and long links.
//!
//! Links are kept without the phases η_μ and without the sign of the boundary condition: thin links stay in SU(3), long
//! ones of asqtad are a number times SU(3), those of HISQ a number times U(3), and all can be reconstructed.
use crate::Kernel;
use crate::algebra::{Colour, Real, ScaledColour, Su3, complex};
use crate::field::{Field, Links};
use crate::ghost::{ColoursBeyond, Ghosts, Nothing};
use crate::lattice::{Geometry, Region, Site};
use crate::row::{Row, RowDot};
use crate::sides::{Together, each_side, in_order_of, one_of_its_sides};
use crate::storage::{
    Colours, Double, Half, LinkFormat, Precision, Recon8, Recon8H, Recon9, Recon9H, Recon12, Recon12H, Recon13,
    Recon13H, Recon18, Recon18H, Reconstruct, Single,
};

/// Signs η_μ(x) that depend on which coordinates are odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Phases(u64);

impl Phases {
    /// η_μ = (−1)^(sum of the coordinates whose bits are set in `counted[μ]`), bit 0 for x to bit 3 for t.
    pub const fn new(counted: [u32; 4]) -> Self {
        // Bit 16 μ + k: whether η_μ is −1 where the coordinates are odd whose bits are set in k.
        let mut table = 0;
        let mut bit = 0;
        while bit < 64 {
            let odd = (counted[bit / 16] & (bit % 16) as u32).count_ones() & 1;
            table |= (odd as u64) << bit;
            bit += 1;
        }
        Phases(table)
    }
    /// η_μ `factor` at a site.
    #[inline(always)]
    pub(crate) fn times<T: Real>(self, x: &Site, mu: u32, factor: T) -> T {
        let odd = x.odd_x | (x.y & 1) << 1 | (x.z & 1) << 2 | (x.t & 1) << 3;
        if (self.0 >> (16 * mu + odd)) & 1 == 1 { -factor } else { factor }
    }
}

/// A staggered hopping term from the other parity to the sites of one.
pub trait Hops: Copy + Send + Sync + 'static {
    /// Of the fields.
    type Precision: Precision;
    /// The same hops where those that leave the local lattice find ghosts.
    type Ghosted: Hops<Precision = Self::Precision>;
    /// Names of the entry points of D, of a x + b D, of that with sums, and of both near other processes' sites, without
    /// and with sums.
    const NAMES: [&'static [&'static str]; 5];
    /// (D ψ)(x) for N right-hand sides from `first` on.
    ///
    /// # Safety
    /// Site `i` exists and nothing writes the input meanwhile.
    unsafe fn apply<const N: usize>(&self, i: u32, first: u32) -> [Vector<Self>; N];
    /// As [`Kernel::place`].
    fn place(&self, i: u32) -> u32;
    /// As [`Kernel::place_together`].
    fn place_together(&self, i: u32) -> u32;
}

/// A colour vector of a hopping term.
pub type Vector<H> = Colour<Number<H>>;
/// A real number of a hopping term.
pub type Number<H> = <<H as Hops>::Precision as Precision>::Real;

/// Hops over one link.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Naive<P: Precision, R, B = Nothing> {
    /// ψ on the other parity.
    pub input: Field<Colours<P>>,
    /// F around the sites of `parity`, over `factor`.
    pub links: Links<P, R>,
    /// The lattice.
    pub geometry: Geometry,
    /// Which sites are computed.
    pub region: Region,
    /// η
    pub phases: Phases,
    /// Parity of the output.
    pub parity: u32,
    /// What the stored links are to be multiplied with.
    pub factor: P::Real,
    /// Sign of hops across the boundary in t.
    pub across: P::Real,
    /// What hops find that leave the local lattice.
    pub beyond: B,
}

/// Hops over one fat and one long link.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Improved<P: Precision, R: Reconstruct, B = Nothing> {
    /// The hops over fat links.
    pub near: Naive<P, R::Full, B>,
    /// L_μ(x) and L†_μ(x−3μ̂) around the sites, over `factor`.
    pub long: Links<P, R>,
    /// What the stored long links are to be multiplied with.
    pub factor: P::Real,
}

/// sum + f u v
#[inline(always)]
fn add<T: Real>(sum: Colour<T>, f: T, u: Su3<T>, v: ScaledColour<T>) -> Colour<T> {
    let (hop, f) = (u * v.vector, f * v.scale);
    hop.zip(sum, |h, s| complex(f.mul_add(h.re, s.re), f.mul_add(h.im, s.im)))
}

impl<P: Precision, R> Naive<P, R> {
    /// The same hops where those that leave the local lattice find ghosts.
    pub fn with(self, beyond: Ghosts<P>) -> Naive<P, R, Ghosts<P>> {
        let Naive { input, links, geometry, region, phases, parity, factor, across, beyond: Nothing } = self;
        Naive { input, links, geometry, region, phases, parity, factor, across, beyond }
    }
}

impl<P: Precision, R: LinkFormat<P>, B: ColoursBeyond<P>> Naive<P, R, B> {
    /// Adds f u ψ to the sums of N right-hand sides, with ψ 1 or 3 steps from `x`.
    #[inline(always)]
    unsafe fn add_hop<const N: usize>(
        &self,
        (x, way, steps): (&Site, (usize, bool), u32),
        first: u32,
        (f, u): (P::Real, Su3<P::Real>),
        sums: &mut [Colour<P::Real>; N],
    ) {
        let (field, at) = self.beyond.locate(&self.input, &self.geometry, x, way, steps);
        each_side!(k < N: {
            sums[k] = add(sums[k], f, u, unsafe { field.scaled(at, first + k as u32) });
        });
    }
    /// Adds both hops in direction `mu`, a constant where this is inlined.
    #[inline(always)]
    unsafe fn add_hops<const N: usize>(&self, x: &Site, first: u32, mu: usize, sums: &mut [Colour<P::Real>; N]) {
        unsafe {
            let pair = self.links.pair(x.index, mu);
            let eta = self.phases.times(x, mu as u32, self.factor);
            let sign = |forward| if mu == 3 && self.geometry.crosses_end(x, forward) { eta * self.across } else { eta };
            self.add_hop((x, (mu, true), 1), first, (sign(true), R::forward(&pair)), sums);
            self.add_hop((x, (mu, false), 1), first, (-sign(false), R::backward(&pair)), sums);
        }
    }
}

impl<P: Precision, R: LinkFormat<P>, B: ColoursBeyond<P>> Improved<P, R, B>
where
    R::Full: LinkFormat<P>,
{
    /// Adds both hops over long links in direction `mu`.
    #[inline(always)]
    unsafe fn add_long_hops<const N: usize>(&self, x: &Site, first: u32, mu: usize, sums: &mut [Colour<P::Real>; N]) {
        let Naive { geometry, phases, across, .. } = &self.near;
        unsafe {
            let pair = self.long.pair(x.index, mu);
            let eta = phases.times(x, mu as u32, self.factor);
            let sign = |forward| if mu == 3 && geometry.crosses_end_in_three(x, forward) { eta * *across } else { eta };
            self.near.add_hop((x, (mu, true), 3), first, (sign(true), R::forward(&pair)), sums);
            self.near.add_hop((x, (mu, false), 3), first, (-sign(false), R::backward(&pair)), sums);
        }
    }
}

impl<P: Precision, R: LinkFormat<P>, B: ColoursBeyond<P> + Send + Sync + 'static> Hops for Naive<P, R, B> {
    type Precision = P;
    type Ghosted = Naive<P, R, Ghosts<P>>;
    const NAMES: [&'static [&'static str]; 5] = [
        &["staggered_dslash", P::NAME, R::NAME],
        &["staggered_dslash_add", P::NAME, R::NAME],
        &["staggered_dslash_add_dot", P::NAME, R::NAME],
        &["staggered_exterior", P::NAME, R::NAME],
        &["staggered_exterior_dot", P::NAME, R::NAME],
    ];
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.region.index(i, &self.geometry, self.parity)
    }
    #[inline(always)]
    fn place_together(&self, i: u32) -> u32 {
        self.region.index_in_columns(i, &self.geometry, self.parity)
    }
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, i: u32, first: u32) -> [Colour<P::Real>; N] {
        let x = self.geometry.site(i, self.parity);
        let mut sums = [Colour::ZERO; N];
        macro_rules! direction {
            ($($mu:literal)*) => {$(unsafe { self.add_hops(&x, first, $mu, &mut sums) };)*};
        }
        direction!(0 1 2 3);
        sums
    }
}

impl<P: Precision, R: LinkFormat<P>, B: ColoursBeyond<P> + Send + Sync + 'static> Hops for Improved<P, R, B>
where
    R::Full: LinkFormat<P>,
{
    type Precision = P;
    type Ghosted = Improved<P, R, Ghosts<P>>;
    const NAMES: [&'static [&'static str]; 5] = [
        &["improved_dslash", P::NAME, R::NAME],
        &["improved_dslash_add", P::NAME, R::NAME],
        &["improved_dslash_add_dot", P::NAME, R::NAME],
        &["improved_exterior", P::NAME, R::NAME],
        &["improved_exterior_dot", P::NAME, R::NAME],
    ];
    in_order_of!(near);
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, i: u32, first: u32) -> [Colour<P::Real>; N] {
        let x = self.near.geometry.site(i, self.near.parity);
        let mut sums = [Colour::ZERO; N];
        macro_rules! direction {
            ($($mu:literal)*) => {$(
                unsafe { self.near.add_hops(&x, first, $mu, &mut sums) };
                unsafe { self.add_long_hops(&x, first, $mu, &mut sums) };
            )*};
        }
        direction!(0 1 2 3);
        sums
    }
}

/// out = D ψ
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Dslash<H: Hops> {
    /// The result, on the sites of one parity.
    pub out: Field<Colours<H::Precision>>,
    /// The hopping term.
    pub hops: H,
}
// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only.
unsafe impl<H: Hops> Kernel for Dslash<H> {
    const NAME: &'static [&'static str] = H::NAMES[0];
    in_order_of!(hops);
    one_of_its_sides!();
}
// SAFETY: as for one.
unsafe impl<H: Hops> Together for Dslash<H> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) {
        let hops = unsafe { self.hops.apply::<N>(i, first) };
        each_side!(k < N: {
            unsafe { self.out.store(i, first + k as u32, &hops[k]) }
        });
    }
}

/// out = a x + b D ψ: a row of M, or the last factor of M†M on one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DslashAdd<H: Hops> {
    /// The result, on the sites of one parity.
    pub out: Field<Colours<H::Precision>>,
    /// x, on the same parity. May be `out` itself.
    pub x: Field<Colours<H::Precision>>,
    /// Factor of x.
    pub a: Number<H>,
    /// Factor of the hopping term.
    pub b: Number<H>,
    /// The hopping term.
    pub hops: H,
}
// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only, and reads no other element of it.
unsafe impl<H: Hops> Kernel for DslashAdd<H> {
    const NAME: &'static [&'static str] = H::NAMES[1];
    in_order_of!(hops);
    one_of_its_sides!();
}
// SAFETY: as for one.
unsafe impl<H: Hops> Together for DslashAdd<H> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) {
        unsafe { self.store::<N>(i, first) }
    }
}
// SAFETY: reads element (i, rhs) of `x` only, which may be `out`.
unsafe impl<H: Hops> Row for DslashAdd<H> {
    type Format = Colours<H::Precision>;
    const DOT: &'static [&'static str] = H::NAMES[2];
    /// For BiCGstab, which a positive operator does not need.
    const DOTS: &'static [&'static str] = &[];
    fn out(&self) -> &Field<Self::Format> {
        &self.out
    }
    in_order_of!(hops);
    #[inline(always)]
    unsafe fn compute<const N: usize>(&self, i: u32, first: u32) -> [[Vector<H>; 2]; N] {
        let hops = unsafe { self.hops.apply::<N>(i, first) };
        let (a, b) = (self.a, self.b);
        let mut rows = [[Colour::ZERO; 2]; N];
        each_side!(k < N: {
            let x = unsafe { self.x.load_own(i, first + k as u32) };
            let out = x.zip(hops[k], |x, h| complex(a.mul_add(x.re, b * h.re), a.mul_add(x.im, b * h.im)));
            rows[k] = [out, x];
        });
        rows
    }
}

crate::entry! { INSTANCES of "staggered":
    kernel "staggered_double" staggered_dslash_double_18: Dslash<Naive<Double, Recon18>>, registers 168, sides 4 at 188, sides 3 at 137;
    kernel "staggered_double" staggered_dslash_add_double_18: DslashAdd<Naive<Double, Recon18>>, registers 168, sides 4 at 196, sides 3 at 144;
    reduce "staggered_double" staggered_dslash_add_dot_double_18: RowDot<DslashAdd<Naive<Double, Recon18>>>, registers 168, sides 4 at 200, sides 3 at 136, sides 2 at 168;
    kernel "staggered_double" staggered_dslash_double_12: Dslash<Naive<Double, Recon12>>, registers 168, sides 4 at 188, sides 3 at 148;
    kernel "staggered_double" staggered_dslash_add_double_12: DslashAdd<Naive<Double, Recon12>>, registers 168, sides 4 at 192, sides 3 at 144;
    reduce "staggered_double" staggered_dslash_add_dot_double_12: RowDot<DslashAdd<Naive<Double, Recon12>>>, registers 168, sides 4 at 187, sides 3 at 144, sides 2 at 168;
    kernel "staggered_double" staggered_dslash_double_8: Dslash<Naive<Double, Recon8>>, registers 128, sides 4 at 184, sides 3 at 144;
    kernel "staggered_double" staggered_dslash_add_double_8: DslashAdd<Naive<Double, Recon8>>, registers 128, sides 4 at 184, sides 3 at 144;
    reduce "staggered_double" staggered_dslash_add_dot_double_8: RowDot<DslashAdd<Naive<Double, Recon8>>>, registers 168, sides 4 at 184, sides 3 at 120, sides 2 at 168;
    kernel "staggered_single" staggered_dslash_single_18: Dslash<Naive<Single, Recon18>>, registers 104, sides 4 at 121, sides 3 at 108;
    kernel "staggered_single" staggered_dslash_add_single_18: DslashAdd<Naive<Single, Recon18>>, registers 104, sides 4 at 120, sides 3 at 128;
    reduce "staggered_single" staggered_dslash_add_dot_single_18: RowDot<DslashAdd<Naive<Single, Recon18>>>, registers 168, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "staggered_single" staggered_dslash_single_12: Dslash<Naive<Single, Recon12>>, registers 104, sides 4 at 120, sides 3 at 116;
    kernel "staggered_single" staggered_dslash_add_single_12: DslashAdd<Naive<Single, Recon12>>, registers 104, sides 4 at 120, sides 3 at 120;
    reduce "staggered_single" staggered_dslash_add_dot_single_12: RowDot<DslashAdd<Naive<Single, Recon12>>>, registers 168, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "staggered_single" staggered_dslash_single_8: Dslash<Naive<Single, Recon8>>, registers 96, sides 4 at 120, sides 3 at 112;
    kernel "staggered_single" staggered_dslash_add_single_8: DslashAdd<Naive<Single, Recon8>>, registers 96, sides 4 at 120, sides 3 at 112;
    reduce "staggered_single" staggered_dslash_add_dot_single_8: RowDot<DslashAdd<Naive<Single, Recon8>>>, registers 168, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "staggered_half" staggered_dslash_half_18: Dslash<Naive<Half, Recon18>>, registers 72, sides 4 at 116, sides 3 at 96;
    kernel "staggered_half" staggered_dslash_add_half_18: DslashAdd<Naive<Half, Recon18>>, registers 72, sides 4 at 112, sides 3 at 96;
    reduce "staggered_half" staggered_dslash_add_dot_half_18: RowDot<DslashAdd<Naive<Half, Recon18>>>, registers 96, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "staggered_half" staggered_dslash_half_12: Dslash<Naive<Half, Recon12>>, registers 64, sides 4 at 112, sides 3 at 96;
    kernel "staggered_half" staggered_dslash_add_half_12: DslashAdd<Naive<Half, Recon12>>, registers 64, sides 4 at 112, sides 3 at 96;
    reduce "staggered_half" staggered_dslash_add_dot_half_12: RowDot<DslashAdd<Naive<Half, Recon12>>>, registers 96, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "staggered_half" staggered_dslash_half_8: Dslash<Naive<Half, Recon8>>, registers 72, sides 4 at 112, sides 3 at 96;
    kernel "staggered_half" staggered_dslash_add_half_8: DslashAdd<Naive<Half, Recon8>>, registers 72, sides 4 at 112, sides 3 at 96;
    reduce "staggered_half" staggered_dslash_add_dot_half_8: RowDot<DslashAdd<Naive<Half, Recon8>>>, registers 96, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "staggered_single_h" staggered_dslash_single_18h: Dslash<Naive<Single, Recon18H>>, registers 104, sides 4 at 120, sides 3 at 112;
    kernel "staggered_single_h" staggered_dslash_add_single_18h: DslashAdd<Naive<Single, Recon18H>>, registers 104, sides 4 at 120, sides 3 at 112;
    reduce "staggered_single_h" staggered_dslash_add_dot_single_18h: RowDot<DslashAdd<Naive<Single, Recon18H>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "staggered_single_h" staggered_dslash_single_12h: Dslash<Naive<Single, Recon12H>>, registers 104, sides 4 at 120, sides 3 at 112;
    kernel "staggered_single_h" staggered_dslash_add_single_12h: DslashAdd<Naive<Single, Recon12H>>, registers 104, sides 4 at 120, sides 3 at 112;
    reduce "staggered_single_h" staggered_dslash_add_dot_single_12h: RowDot<DslashAdd<Naive<Single, Recon12H>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "staggered_single_h" staggered_dslash_single_8h: Dslash<Naive<Single, Recon8H>>, registers 104, sides 4 at 120, sides 3 at 112;
    kernel "staggered_single_h" staggered_dslash_add_single_8h: DslashAdd<Naive<Single, Recon8H>>, registers 104, sides 4 at 120, sides 3 at 112;
    reduce "staggered_single_h" staggered_dslash_add_dot_single_8h: RowDot<DslashAdd<Naive<Single, Recon8H>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_double" improved_dslash_double_18: Dslash<Improved<Double, Recon18>>, registers 168, sides 4 at 224, sides 3 at 208;
    kernel "improved_double" improved_dslash_add_double_18: DslashAdd<Improved<Double, Recon18>>, registers 168, sides 4 at 232, sides 3 at 216;
    reduce "improved_double" improved_dslash_add_dot_double_18: RowDot<DslashAdd<Improved<Double, Recon18>>>, registers 176, sides 4 at 216, sides 3 at 200, sides 2 at 168;
    kernel "improved_double" improved_dslash_double_12: Dslash<Improved<Double, Recon12>>, registers 168, sides 4 at 220, sides 3 at 164;
    kernel "improved_double" improved_dslash_add_double_12: DslashAdd<Improved<Double, Recon12>>, registers 168, sides 4 at 224, sides 3 at 156;
    reduce "improved_double" improved_dslash_add_dot_double_12: RowDot<DslashAdd<Improved<Double, Recon12>>>, registers 168, sides 4 at 208, sides 3 at 160, sides 2 at 168;
    kernel "improved_double" improved_dslash_double_8: Dslash<Improved<Double, Recon8>>, registers 168, sides 4 at 216, sides 3 at 176;
    kernel "improved_double" improved_dslash_add_double_8: DslashAdd<Improved<Double, Recon8>>, registers 168, sides 4 at 216, sides 3 at 172;
    reduce "improved_double" improved_dslash_add_dot_double_8: RowDot<DslashAdd<Improved<Double, Recon8>>>, registers 168, sides 4 at 219, sides 3 at 200, sides 2 at 200;
    kernel "improved_single" improved_dslash_single_18: Dslash<Improved<Single, Recon18>>, registers 168, sides 4 at 128, sides 3 at 116;
    kernel "improved_single" improved_dslash_add_single_18: DslashAdd<Improved<Single, Recon18>>, registers 168, sides 4 at 124, sides 3 at 116;
    reduce "improved_single" improved_dslash_add_dot_single_18: RowDot<DslashAdd<Improved<Single, Recon18>>>, registers 168, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_single" improved_dslash_single_12: Dslash<Improved<Single, Recon12>>, registers 168, sides 4 at 128, sides 3 at 120;
    kernel "improved_single" improved_dslash_add_single_12: DslashAdd<Improved<Single, Recon12>>, registers 168, sides 4 at 124, sides 3 at 124;
    reduce "improved_single" improved_dslash_add_dot_single_12: RowDot<DslashAdd<Improved<Single, Recon12>>>, registers 168, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_single" improved_dslash_single_8: Dslash<Improved<Single, Recon8>>, registers 168, sides 4 at 128, sides 3 at 128;
    kernel "improved_single" improved_dslash_add_single_8: DslashAdd<Improved<Single, Recon8>>, registers 168, sides 4 at 123, sides 3 at 126;
    reduce "improved_single" improved_dslash_add_dot_single_8: RowDot<DslashAdd<Improved<Single, Recon8>>>, registers 168, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_half" improved_dslash_half_18: Dslash<Improved<Half, Recon18>>, registers 96, sides 4 at 112, sides 3 at 96;
    kernel "improved_half" improved_dslash_add_half_18: DslashAdd<Improved<Half, Recon18>>, registers 96, sides 4 at 112, sides 3 at 96;
    reduce "improved_half" improved_dslash_add_dot_half_18: RowDot<DslashAdd<Improved<Half, Recon18>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_half" improved_dslash_half_12: Dslash<Improved<Half, Recon12>>, registers 96, sides 4 at 112, sides 3 at 96;
    kernel "improved_half" improved_dslash_add_half_12: DslashAdd<Improved<Half, Recon12>>, registers 96, sides 4 at 112, sides 3 at 96;
    reduce "improved_half" improved_dslash_add_dot_half_12: RowDot<DslashAdd<Improved<Half, Recon12>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_half" improved_dslash_half_8: Dslash<Improved<Half, Recon8>>, registers 96, sides 4 at 112, sides 3 at 96;
    kernel "improved_half" improved_dslash_add_half_8: DslashAdd<Improved<Half, Recon8>>, registers 96, sides 4 at 112, sides 3 at 100;
    reduce "improved_half" improved_dslash_add_dot_half_8: RowDot<DslashAdd<Improved<Half, Recon8>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_single_h" improved_dslash_single_18h: Dslash<Improved<Single, Recon18H>>, registers 104, sides 4 at 126, sides 3 at 120;
    kernel "improved_single_h" improved_dslash_add_single_18h: DslashAdd<Improved<Single, Recon18H>>, registers 104, sides 4 at 120, sides 3 at 112;
    reduce "improved_single_h" improved_dslash_add_dot_single_18h: RowDot<DslashAdd<Improved<Single, Recon18H>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_single_h" improved_dslash_single_12h: Dslash<Improved<Single, Recon12H>>, registers 104, sides 4 at 128, sides 3 at 108;
    kernel "improved_single_h" improved_dslash_add_single_12h: DslashAdd<Improved<Single, Recon12H>>, registers 104, sides 4 at 120, sides 3 at 112;
    reduce "improved_single_h" improved_dslash_add_dot_single_12h: RowDot<DslashAdd<Improved<Single, Recon12H>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_single_h" improved_dslash_single_8h: Dslash<Improved<Single, Recon8H>>, registers 104, sides 4 at 128, sides 3 at 112;
    kernel "improved_single_h" improved_dslash_add_single_8h: DslashAdd<Improved<Single, Recon8H>>, registers 104, sides 4 at 114, sides 3 at 112;
    reduce "improved_single_h" improved_dslash_add_dot_single_8h: RowDot<DslashAdd<Improved<Single, Recon8H>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_u3_double" improved_dslash_double_13: Dslash<Improved<Double, Recon13>>, registers 168, sides 4 at 220, sides 3 at 176;
    kernel "improved_u3_double" improved_dslash_add_double_13: DslashAdd<Improved<Double, Recon13>>, registers 168, sides 4 at 212, sides 3 at 168;
    reduce "improved_u3_double" improved_dslash_add_dot_double_13: RowDot<DslashAdd<Improved<Double, Recon13>>>, registers 168, sides 4 at 224, sides 3 at 155, sides 2 at 168;
    kernel "improved_u3_double" improved_dslash_double_9: Dslash<Improved<Double, Recon9>>, registers 168, sides 4 at 196, sides 3 at 200;
    kernel "improved_u3_double" improved_dslash_add_double_9: DslashAdd<Improved<Double, Recon9>>, registers 168, sides 4 at 192, sides 3 at 200;
    reduce "improved_u3_double" improved_dslash_add_dot_double_9: RowDot<DslashAdd<Improved<Double, Recon9>>>, registers 168, sides 4 at 216, sides 3 at 200, sides 2 at 200;
    kernel "improved_u3_single" improved_dslash_single_13: Dslash<Improved<Single, Recon13>>, registers 168, sides 4 at 128, sides 3 at 128;
    kernel "improved_u3_single" improved_dslash_add_single_13: DslashAdd<Improved<Single, Recon13>>, registers 168, sides 4 at 128, sides 3 at 116;
    reduce "improved_u3_single" improved_dslash_add_dot_single_13: RowDot<DslashAdd<Improved<Single, Recon13>>>, registers 168, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_u3_single" improved_dslash_single_9: Dslash<Improved<Single, Recon9>>, registers 168, sides 4 at 127, sides 3 at 120;
    kernel "improved_u3_single" improved_dslash_add_single_9: DslashAdd<Improved<Single, Recon9>>, registers 168, sides 4 at 128, sides 3 at 127;
    reduce "improved_u3_single" improved_dslash_add_dot_single_9: RowDot<DslashAdd<Improved<Single, Recon9>>>, registers 168, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_u3_half" improved_dslash_half_13: Dslash<Improved<Half, Recon13>>, registers 96, sides 4 at 112, sides 3 at 96;
    kernel "improved_u3_half" improved_dslash_add_half_13: DslashAdd<Improved<Half, Recon13>>, registers 96, sides 4 at 112, sides 3 at 96;
    reduce "improved_u3_half" improved_dslash_add_dot_half_13: RowDot<DslashAdd<Improved<Half, Recon13>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_u3_half" improved_dslash_half_9: Dslash<Improved<Half, Recon9>>, registers 96, sides 4 at 112, sides 3 at 96;
    kernel "improved_u3_half" improved_dslash_add_half_9: DslashAdd<Improved<Half, Recon9>>, registers 96, sides 4 at 112, sides 3 at 100;
    reduce "improved_u3_half" improved_dslash_add_dot_half_9: RowDot<DslashAdd<Improved<Half, Recon9>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_u3_single_h" improved_dslash_single_13h: Dslash<Improved<Single, Recon13H>>, registers 103, sides 4 at 127, sides 3 at 112;
    kernel "improved_u3_single_h" improved_dslash_add_single_13h: DslashAdd<Improved<Single, Recon13H>>, registers 104, sides 4 at 128, sides 3 at 116;
    reduce "improved_u3_single_h" improved_dslash_add_dot_single_13h: RowDot<DslashAdd<Improved<Single, Recon13H>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
    kernel "improved_u3_single_h" improved_dslash_single_9h: Dslash<Improved<Single, Recon9H>>, registers 104, sides 4 at 128, sides 3 at 112;
    kernel "improved_u3_single_h" improved_dslash_add_single_9h: DslashAdd<Improved<Single, Recon9H>>, registers 104, sides 4 at 128, sides 3 at 116;
    reduce "improved_u3_single_h" improved_dslash_add_dot_single_9h: RowDot<DslashAdd<Improved<Single, Recon9H>>>, registers 128, sides 4 at 128, sides 3 at 128, sides 2 at 128;
}
