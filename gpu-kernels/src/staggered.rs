//! Staggered hopping terms between the parities:
//! (D ψ)(x) = Σ_μ η_μ(x) \[F_μ(x) ψ(x+μ̂) − F†_μ(x−μ̂) ψ(x−μ̂) + L_μ(x) ψ(x+3μ̂) − L†_μ(x−3μ̂) ψ(x−3μ̂)\]
//! (Babich et al. 2011, eqs. 3 and 4). [`Naive`] has thin links for F and no L, [`Improved`] fat and long links.
//!
//! Links are stored without the phases η_μ and without the sign of the boundary condition. Thin links therefore stay in SU(3),
//! long links of asqtad are a number times SU(3), long links of HISQ are a number times U(3), and all can be reconstructed.
use crate::algebra::{Colour, Real, Scalar, ScaledColour, Su3, complex};
use crate::dslash::{Dslash, DslashDot, Plain, Then};
use crate::field::{Field, Links};
use crate::format::Linked;
use crate::ghost::{ColourGhosts, Ghosts, NoGhosts};
use crate::lattice::{Geometry, Neighbours, Region, Site};
use crate::multi_rhs::each_rhs;
use crate::storage::{Colours, HopLinks, ImprovedHops, NumberFormat};
use crate::wilson::{Exterior, Interior};
use core::marker::PhantomData;

/// Signs η_μ(x) of staggered fermions, which depend on the parities of the coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Phases(u64);

impl Phases {
    /// Creates the signs η_μ = (−1)^(sum of coordinates), where the sum contains the coordinates whose bits are set in
    /// `counted[μ]`; bit 0 stands for x and bit 3 for t.
    pub const fn new(counted: [u32; 4]) -> Self {
        // Bit 16 μ + k is set if η_μ is −1 at sites where exactly the coordinates of the bits in k are odd.
        let mut table = 0;
        let mut bit = 0;
        while bit < 64 {
            let odd = (counted[bit / 16] & (bit % 16) as u32).count_ones() & 1;
            table |= (odd as u64) << bit;
            bit += 1;
        }
        Phases(table)
    }
    /// η_μ times `factor` at the site x.
    #[inline(always)]
    pub(crate) fn times<T: Real>(self, lattice: &Geometry, x: &Site, mu: u32, factor: T) -> T {
        let odd = x.odd_x | (x.y & 1) << 1 | (x.z & 1) << 2 | (x.t & 1) << 3;
        let factor = if (self.0 >> (16 * mu + odd)) & 1 == 1 { -factor } else { factor };
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let others = lattice.lanes_of_other_parity(x, self.counted(mu));
            if others.any() {
                return factor.times_where(others, -T::ONE);
            }
        }
        _ = lattice;
        factor
    }
    /// Returns the bits of the coordinates that η_μ counts.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    const fn counted(self, mu: u32) -> u32 {
        let table = (self.0 >> (16 * mu)) as u32;
        table >> 1 & 1 | table >> 1 & 2 | table >> 2 & 4 | table >> 5 & 8
    }
}

/// Arguments of a staggered operator at the sites of one parity: D ψ, or a x + b D ψ. The format of the kernel
/// determines whether the hopping term has one link or two in each direction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StaggeredDslash {
    /// Field for the result, on the sites of one parity.
    pub out: Field,
    /// Field x on the parity of `out`; it may be the field `out`.
    pub x: Field,
    /// Field w of the inner products, on the parity of `out`; it may be the field x.
    pub w: Field,
    /// 0 to compute D ψ alone, 1 to compute a x + b D ψ.
    pub sum: u32,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Factor of x.
    pub a: Scalar,
    /// Factor of the hopping term.
    pub b: Scalar,
    /// Field ψ on the sites of the other parity.
    pub input: Field,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Sites at which the result is computed.
    pub region: Region,
    /// η
    pub phases: Phases,
    /// Sign of hops across the boundary of the lattice in t.
    pub across: Scalar,
    /// Links F_μ(x) and F†_μ(x−μ̂) around the sites, divided by `factor`.
    pub links: Links,
    /// Factor that multiplies the stored links.
    pub factor: Scalar,
    /// Long links L_μ(x) and L†_μ(x−3μ̂) around the sites, divided by `long_factor`.
    pub long: Links,
    /// Factor that multiplies the stored long links.
    pub long_factor: Scalar,
    /// Ghost zones of the input, for hops that leave the local lattice.
    pub ghosts: Ghosts,
}

/// sum + f u v
#[inline(always)]
fn add<T: Real>(sum: Colour<T>, f: T, u: Su3<T>, v: ScaledColour<T>) -> Colour<T> {
    let (hop, f) = (u * v.vector, f * v.scale);
    hop.zip(sum, |h, s| complex(f.mul_add(h.re, s.re), f.mul_add(h.im, s.im)))
}

impl StaggeredDslash {
    /// Adds f u ψ to the sums of N right-hand sides, where ψ is at a neighbour.
    #[inline(always)]
    unsafe fn add_hop<P: NumberFormat, S: ColourPart, const N: usize, const STEPS: u32>(
        &self,
        (neighbours, way): (&Neighbours<STEPS>, (usize, bool)),
        first: u32,
        (f, u): (P::Real, Su3<P::Real>),
        sums: &mut [Colour<P::Real>; N],
    ) {
        let (field, at) = S::ghosts(self).locate(&self.input, neighbours, way);
        each_rhs!(k < N: {
            sums[k] = add(sums[k], f, u, unsafe { field.scaled::<P>(at, first + k as u32) });
        });
        P::Real::settle(sums);
    }
    /// Adds both hops in direction `mu`, over fat links or over long links. `mu` is a constant after inlining.
    #[inline(always)]
    unsafe fn add_hops<P: NumberFormat, R: HopLinks<P>, S: ColourPart, const N: usize, const STEPS: u32>(
        &self,
        (x, neighbours): (&Site, &Neighbours<STEPS>),
        first: u32,
        mu: usize,
        sums: &mut [Colour<P::Real>; N],
    ) {
        let (links, factor) = if STEPS == 3 { (&self.long, self.long_factor) } else { (&self.links, self.factor) };
        unsafe {
            let pair = links.pair::<P, R>(x.index, mu);
            let eta = self.phases.times(&self.geometry, x, mu as u32, P::Real::of(factor));
            let across = P::Real::of(self.across);
            macro_rules! sign {
                ($forward:literal) => {
                    if mu == 3 { eta.times_where(neighbours.cross_end($forward), across) } else { eta }
                };
            }
            self.add_hop::<P, S, N, STEPS>(
                (neighbours, (mu, true)),
                first,
                (sign!(true), R::forward_link(&pair)),
                sums,
            );
            self.add_hop::<P, S, N, STEPS>(
                (neighbours, (mu, false)),
                first,
                (-sign!(false), R::backward_link(&pair)),
                sums,
            );
        }
    }
}

/// Hopping term of a staggered operator.
pub trait Hops<P: NumberFormat>: 'static {
    /// (D ψ)(x) at site `i` for N right-hand sides from `first` on.
    ///
    /// # Safety
    /// Site `i` exists and nothing writes the input meanwhile.
    unsafe fn apply<S: ColourPart, const N: usize>(
        dslash: &StaggeredDslash,
        i: u32,
        first: u32,
    ) -> [Colour<P::Real>; N];
}
/// Hopping term with hops over one link.
pub struct Naive<R>(PhantomData<R>);
/// Hopping term with hops over a fat link and a long link.
pub struct Improved<R>(PhantomData<R>);

impl<P: NumberFormat, R: HopLinks<P>> Hops<P> for Naive<R> {
    #[inline(always)]
    unsafe fn apply<S: ColourPart, const N: usize>(
        dslash: &StaggeredDslash,
        i: u32,
        first: u32,
    ) -> [Colour<P::Real>; N] {
        let x = dslash.geometry.site_for::<P::Real>(i, dslash.parity);
        let near = (&x, &dslash.geometry.neighbours::<1>(&x));
        let mut sums = [Colour::ZERO; N];
        macro_rules! direction {
            ($($mu:literal)*) => {$(unsafe { dslash.add_hops::<P, R, S, N, 1>(near, first, $mu, &mut sums) };)*};
        }
        direction!(0 1 2 3);
        sums
    }
}

impl<P: NumberFormat, R: ImprovedHops<P>> Hops<P> for Improved<R> {
    #[inline(always)]
    unsafe fn apply<S: ColourPart, const N: usize>(
        dslash: &StaggeredDslash,
        i: u32,
        first: u32,
    ) -> [Colour<P::Real>; N] {
        let x = dslash.geometry.site_for::<P::Real>(i, dslash.parity);
        let near = (&x, &dslash.geometry.neighbours::<1>(&x));
        let far = (&x, &dslash.geometry.neighbours::<3>(&x));
        let mut sums = [Colour::ZERO; N];
        macro_rules! direction {
            ($($mu:literal)*) => {$(
                unsafe { dslash.add_hops::<P, R::Fat, S, N, 1>(near, first, $mu, &mut sums) };
                unsafe { dslash.add_hops::<P, R, S, N, 3>(far, first, $mu, &mut sums) };
            )*};
        }
        direction!(0 1 2 3);
        sums
    }
}

/// Part of the sites for which a kernel on colour vectors is compiled: [`Interior`] or [`Exterior`].
pub trait ColourPart: 'static {
    /// Source of colour vectors for hops that leave the local lattice.
    type GhostSource: ColourGhosts;
    /// Whether kernels with sums may compute several sites in a thread ([`Dslash::LOOPS`]).
    const LOOPS: bool;
    /// Returns the source of colour vectors from the arguments.
    fn ghosts(dslash: &StaggeredDslash) -> &Self::GhostSource;
}
impl ColourPart for Interior {
    type GhostSource = NoGhosts;
    const LOOPS: bool = true;
    #[inline(always)]
    fn ghosts(_: &StaggeredDslash) -> &NoGhosts {
        &NoGhosts
    }
}
impl ColourPart for Exterior {
    type GhostSource = Ghosts;
    const LOOPS: bool = false;
    #[inline(always)]
    fn ghosts(dslash: &StaggeredDslash) -> &Ghosts {
        &dslash.ghosts
    }
}

/// Format of [`StaggeredDslash`] in precision `P` with hopping term `H`, for sites `S`. With `FIXED`, the kernel always
/// adds x, as kernels with sums need it.
pub struct StaggeredFormat<P, H, S, const FIXED: bool>(PhantomData<(P, H, S)>);

// SAFETY: reads element (i, rhs) of `x` only, which may be `out`.
unsafe impl<P, H, S, const FIXED: bool> Dslash<StaggeredFormat<P, H, S, FIXED>> for StaggeredDslash
where
    P: NumberFormat,
    H: Hops<P>,
    S: ColourPart,
{
    type Sites = Colours<P>;
    const LOOPS: bool = S::LOOPS;
    #[inline(always)]
    fn out(&self) -> &Field {
        &self.out
    }
    #[inline(always)]
    fn w(&self) -> &Field {
        &self.w
    }
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.region.index(i, &self.geometry, self.parity)
    }
    #[inline(always)]
    fn place_multi_rhs(&self, i: u32) -> u32 {
        self.region.index_in_columns(i, &self.geometry, self.parity)
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        if self.links.in_lanes() && self.long.in_lanes() { self.region.group_sites(&self.geometry) } else { 1 }
    }
    #[inline(always)]
    unsafe fn compute<const N: usize, T: Then<[[Colour<P::Real>; 2]; N]>>(
        &self,
        i: u32,
        first: u32,
        then: T,
    ) -> T::Output {
        let hops = unsafe { H::apply::<S, N>(self, i, first) };
        let (a, b) = (P::Real::of(self.a), P::Real::of(self.b));
        let mut results = [[Colour::ZERO; 2]; N];
        if !FIXED && self.sum == 0 {
            each_rhs!(k < N: {
                results[k] = [hops[k], Colour::ZERO];
            });
        } else {
            each_rhs!(k < N: {
                let x = unsafe { self.x.load_own::<Colours<P>>(i, first + k as u32) };
                let out = x.zip(hops[k], |x, h| complex(a.mul_add(x.re, b * h.re), a.mul_add(x.im, b * h.im)));
                results[k] = [out, x];
            });
        }
        then.take(results)
    }
}

type NaiveFormat<F, S, const FIXED: bool> =
    StaggeredFormat<<F as Linked>::Precision, Naive<<F as Linked>::Links>, S, FIXED>;
type ImprovedFormat<F, S, const FIXED: bool> =
    StaggeredFormat<<F as Linked>::Precision, Improved<<F as Linked>::Links>, S, FIXED>;
pub(crate) type NaivePlain<F> = Plain<NaiveFormat<F, Interior, false>>;
pub(crate) type NaiveDot<F> = DslashDot<NaiveFormat<F, Interior, true>>;
pub(crate) type NaiveExterior<F> = Plain<NaiveFormat<F, Exterior, false>>;
pub(crate) type NaiveExteriorDot<F> = DslashDot<NaiveFormat<F, Exterior, true>>;
pub(crate) type ImprovedPlain<F> = Plain<ImprovedFormat<F, Interior, false>>;
pub(crate) type ImprovedDot<F> = DslashDot<ImprovedFormat<F, Interior, true>>;
pub(crate) type ImprovedExterior<F> = Plain<ImprovedFormat<F, Exterior, false>>;
pub(crate) type ImprovedExteriorDot<F> = DslashDot<ImprovedFormat<F, Exterior, true>>;

#[cfg(target_arch = "x86_64")]
mod lanes {
    use super::StaggeredFormat;
    use crate::algebra::Real;
    use crate::format::LaneFormat;
    use crate::storage::{HasLanes, InLanes, VectorSet};

    impl<P: HasLanes, H, S, V: VectorSet, const FIXED: bool> LaneFormat<V> for StaggeredFormat<P, H, S, FIXED> {
        type In = StaggeredFormat<InLanes<P, V>, H, S, FIXED>;
        const LANES: usize = <P::In<V> as Real>::LANES;
    }
}

crate::kernels! { FAMILY = "staggered";
    kernel STAGGERED_DSLASH "staggered_dslash": [StaggeredDslash as NaivePlain, in lanes, any AnyStaggeredLinks] => staggered_links(rhs 4, rhs 3);
    reduce STAGGERED_DSLASH_DOT "staggered_dslash_dot": [StaggeredDslash as NaiveDot, in lanes, any AnyStaggeredLinks]
        => staggered_links(rhs 4, rhs 3, rhs 2);
    kernel IMPROVED_DSLASH "improved_dslash": [StaggeredDslash as ImprovedPlain, in lanes, any AnyLongLinks]
        => staggered_links(rhs 4, rhs 3), unitary_links(rhs 4, rhs 3), links_beside_fine(rhs 4, rhs 3);
    reduce IMPROVED_DSLASH_DOT "improved_dslash_dot": [StaggeredDslash as ImprovedDot, in lanes, any AnyLongLinks]
        => staggered_links(rhs 4, rhs 3, rhs 2), unitary_links(rhs 4, rhs 3, rhs 2), links_beside_fine(rhs 4, rhs 3, rhs 2);
}
