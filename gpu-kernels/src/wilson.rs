//! Wilson-like operators M = A − ½ D, where A is diagonal in sites and D is the hopping term between the parities (Clark et al.
//! 2009, eq. 1): (D ψ)(x) = Σ_μ P^{−μ} U_μ(x) ψ(x+μ̂) + P^{+μ} U†_μ(x−μ̂) ψ(x−μ̂).
#[cfg(target_arch = "nvptx64")]
use crate::algebra::Sign;
use crate::algebra::{Axis, DiracSpinor, Projector, ProjectorSign, Real, Scalar, Scaled, complex};
#[cfg(not(target_arch = "nvptx64"))]
use crate::algebra::{Complex, HalfSpinor, RuntimeSign, row_times};
use crate::diagonal::{DiagonalArguments, Mass, SiteDiagonal, TwistedMass};
use crate::dslash::{Dslash, DslashDot, DslashDots, Plain, Then};
use crate::field::{Field, Links};
use crate::ghost::{Ghosts, NoGhosts, SpinorGhosts};
use crate::lattice::{Geometry, Region, Where};
#[cfg(target_arch = "nvptx64")]
use crate::memory::opaque;
use crate::multi_rhs::{StageLinks, each_rhs};
use crate::storage::{CloverFormat, HopLinks, LinkFormat, NumberFormat, Slots, Spinors, Staged, staged_bytes};
use core::marker::PhantomData;
#[cfg(not(target_arch = "nvptx64"))]
use core::mem::MaybeUninit;

/// Hopping term from the sites of the other parity to the sites of `parity`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Hopping {
    /// Field ψ on the sites of the other parity.
    pub input: Field,
    /// Links around the sites of `parity`.
    pub links: Links,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Sites at which the result is computed.
    pub region: Region,
    /// Parity of the sites of the result: 0 for even, 1 for odd.
    pub parity: u32,
    /// Factor of the hops in t: 1, or the anisotropy.
    pub time: Scalar,
    /// Factor of the hops in t across the boundary: `time` times the sign of the boundary condition.
    pub time_across: Scalar,
}

impl Hopping {
    /// Computes (D ψ)(x) if `sign` is +, or (D† ψ)(x) = (γ_5 D γ_5 ψ)(x) if it is −, for N right-hand sides from
    /// `first` on. D† has the projectors of opposite sign. Hops that leave the local lattice read from `ghosts`.
    ///
    /// # Safety
    /// Site `i` exists and nothing writes `input` meanwhile.
    #[inline(always)]
    pub unsafe fn apply<P, R, B, S, const N: usize>(
        &self,
        sign: S,
        ghosts: &B,
        i: u32,
        first: u32,
    ) -> [DiracSpinor<P::Real>; N]
    where
        P: NumberFormat,
        R: HopLinks<P>,
        B: SpinorGhosts,
        S: ProjectorSign,
    {
        let g = &self.geometry;
        let x = g.site_for::<P::Real>(i, self.parity);
        let neighbours = g.neighbours::<1>(&x);
        let mut sums = [DiracSpinor::ZERO; N];
        // Applies one link of a direction, the forward or the backward one, to the projected spinors of all right-hand
        // sides.
        macro_rules! hop {
            ($mu:literal, $links:ident.$which:ident, $forward:literal, $projector:ident) => {
                let neighbour = neighbours.at($mu, $forward);
                let across = if $mu == 3 { neighbours.cross_end($forward) } else { Where::NOWHERE };
                let mut hops = [Scaled::ZERO; N];
                each_rhs!(k < N: {
                    let rhs = first + k as u32;
                    hops[k] = match unsafe { ghosts.projected::<P, _>(g, &x, rhs, ($mu, $forward), $projector) } {
                        Some(h) => h,
                        None => unsafe { self.input.projected::<P, _>(neighbour, rhs, $projector) },
                    };
                    if $mu == 3 {
                        hops[k] = hops[k].times(self.time_factor::<P>(across));
                    }
                });
                let hops = unsafe { $links.$which(hops, across.any()) };
                each_rhs!(k < N: {
                    sums[k].add_projected(hops[k], $projector);
                    sums[k] = ghosts.black_box::<P>(sums[k]);
                });
                P::Real::settle(&mut sums);
            };
        }
        macro_rules! direction {
            ($mu:literal, $axis:ident) => {
                let links = unsafe { self.links.direction::<P, R>(i, $mu) };
                let plus = Projector { axis: Axis::$axis, sign };
                let minus = plus.opposite();
                hop!($mu, links.forward, true, minus);
                hop!($mu, links.backward, false, plus);
            };
        }
        direction!(0, X);
        direction!(1, Y);
        direction!(2, Z);
        direction!(3, T);
        sums
    }
    /// Computes (D ψ)(x) if `plain` is set, else (D† ψ)(x), for one right-hand side, to the same bits as [`apply`](Self::apply).
    ///
    /// This is the form for groups of sites on a CPU: first all projected spinors are written to memory, then D ψ is computed
    /// colour by colour. Registers hold the sums of one colour; those of all colours would move to memory and back at each hop. Numbers are
    /// in single or double precision, so that projected spinors have no scale but the factor 2 of projectors in t.
    ///
    /// # Safety
    /// The contract of [`apply`](Self::apply) holds.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    unsafe fn apply_by_colours<P, R, B>(&self, plain: bool, ghosts: &B, i: u32, rhs: u32) -> DiracSpinor<P::Real>
    where
        P: NumberFormat,
        R: HopLinks<P>,
        B: SpinorGhosts,
    {
        let g = &self.geometry;
        let x = g.site_for::<P::Real>(i, self.parity);
        let neighbours = g.neighbours::<1>(&x);
        let sign = RuntimeSign::new(plain);
        // Projected spinors. In t, the projector P^{−t} has the lower spins, P^{+t} the upper ones.
        let mut hops = [[MaybeUninit::<HalfSpinor<P::Real>>::uninit(); 2]; 4];
        macro_rules! project {
            ($($mu:literal $axis:ident)*) => {$(
                let plus = Projector { axis: Axis::$axis, sign };
                project!(@hop $mu, true, plus.opposite(), 0);
                project!(@hop $mu, false, plus, 1);
            )*};
            (@hop $mu:literal, $forward:expr, $projector:expr, $place:literal) => {
                let hop = match unsafe { ghosts.projected::<P, _>(g, &x, rhs, ($mu, $forward), $projector) } {
                    Some(hop) => hop,
                    None => unsafe { self.input.projected::<P, _>(neighbours.at($mu, $forward), rhs, $projector) },
                };
                hops[$mu][$place].write(hop.value);
                P::Real::settle(&mut hops[$mu][$place]);
            };
        }
        project!(0 X 1 Y 2 Z);
        project!(@hop 3, plain, Projector::minus(Axis::T), 0);
        project!(@hop 3, !plain, Projector::plus(Axis::T), 1);
        let two = P::Real::ONE + P::Real::ONE;
        let lower_factor = two * self.time_factor::<P>(neighbours.cross_end(plain));
        let upper_factor = two * self.time_factor::<P>(neighbours.cross_end(!plain));
        let pairs = unsafe {
            [
                self.links.pair::<P, R>(i, 0),
                self.links.pair::<P, R>(i, 1),
                self.links.pair::<P, R>(i, 2),
                self.links.pair::<P, R>(i, 3),
            ]
        };
        let mut sums = MaybeUninit::<DiracSpinor<P::Real>>::uninit();
        macro_rules! colours {
            ($($j:literal)*) => {$(
                let [mut a, mut b, mut c, mut d] = [Complex::<P::Real>::ZERO; 4];
                colours!(@directions $j a b c d: 0 X, 1 Y, 2 Z);
                // The sign of D† in x, y and z.
                let lower = sign.of(P::Real::ONE);
                (c, d) = (c.scale(lower), d.scale(lower));
                let [e, f] = colours!(@product $j, 3, plain, 0);
                (c, d) = (colours!(@add c, lower_factor, e), colours!(@add d, lower_factor, f));
                let [e, f] = colours!(@product $j, 3, !plain, 1);
                (a, b) = (colours!(@add a, upper_factor, e), colours!(@add b, upper_factor, f));
                colours!(@write sums $j: 0 a, 1 b, 2 c, 3 d);
                P::Real::settle(&mut sums);
            )*};
            (@directions $j:literal $a:ident $b:ident $c:ident $d:ident: $($mu:literal $axis:ident),*) => {$(
                let product = colours!(@product $j, $mu, true, 0);
                [$a, $b, $c, $d] = Projector::minus(Axis::$axis).add_colour([$a, $b, $c, $d], product);
                let product = colours!(@product $j, $mu, false, 1);
                [$a, $b, $c, $d] = Projector::plus(Axis::$axis).add_colour([$a, $b, $c, $d], product);
            )*};
            (@add $sum:ident, $factor:ident, $hop:ident) => {
                complex($factor.mul_add($hop.re, $sum.re), $factor.mul_add($hop.im, $sum.im))
            };
            (@write $sums:ident $j:literal: $($spin:literal $sum:ident),*) => {$(
                unsafe { (&raw mut (*$sums.as_mut_ptr()).0[$spin].0[$j]).write($sum) };
            )*};
            // Row j of a link times both spins of a projected spinor.
            (@product $j:literal, $mu:literal, $forward:expr, $place:literal) => {{
                let mut pair = pairs[$mu];
                P::Real::settle(&mut pair);
                let row = R::link_row::<$j>(&pair, $forward);
                let HalfSpinor([e, f]) = unsafe { hops[$mu][$place].assume_init_ref() };
                [row_times(row, e.0), row_times(row, f.0)]
            }};
        }
        colours!(0 1 2);
        unsafe { sums.assume_init() }
    }
    #[inline(always)]
    fn time_factor<P: NumberFormat>(&self, across: Where) -> P::Real {
        P::Real::where_or(across, self.time_across, self.time)
    }
}

/// Arguments of a Wilson-like operator at the sites of one parity. The arguments of the diagonal term contain A or A⁻¹.
/// The operator has one of the following forms, or one with D† in place of D:
///
/// | | without x | with x |
/// |---|---|---|
/// | A is the mass | D ψ | a x + b D ψ |
/// | others, inverse | A⁻¹ D ψ | x + b A⁻¹ D ψ |
/// | others | – | A x + b D ψ |
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct WilsonDslash {
    /// Field for the result, on the sites of one parity.
    pub out: Field,
    /// Field x on the parity of `out`; it may be the field `out`.
    pub x: Field,
    /// Field w of the inner products, on the parity of `out`; it may be the field x.
    pub w: Field,
    /// 0 to compute the form without x, 1 to compute the form with x.
    pub sum: u32,
    /// 1 to apply D† in place of D, else 0.
    pub dagger: u32,
    /// Factor of the hopping term.
    pub b: Scalar,
    /// Diagonal term A or A⁻¹ on the parity of `out`.
    pub diagonal: DiagonalArguments,
    /// Hopping term D.
    pub hopping: Hopping,
    /// Ghost zones of the input, outside the ends of the local lattice or of a block.
    pub ghosts: Ghosts,
}

/// Part of the sites for which a kernel on spinors is compiled: [`Interior`] or [`Exterior`].
pub trait SitePart: 'static {
    /// Source of spinors for hops that leave the local lattice.
    type GhostSource: SpinorGhosts;
    /// Whether kernels with sums may compute several sites in a thread ([`Dslash::LOOPS`]).
    const LOOPS: bool;
    /// Returns the source of spinors from the arguments.
    fn ghosts(dslash: &WilsonDslash) -> &Self::GhostSource;
}
/// Interior sites, whose hops stay within the local lattice.
pub struct Interior;
/// Exterior sites, whose hops read from ghost zones. All hops of a site near a partitioned boundary are computed
/// together, in the usual order, so that a partitioned lattice gives the same bits as a lattice that is not
/// partitioned. In half precision, results agree only to rounding, because projected spinors are sent with norms of
/// their own.
pub struct Exterior;

impl SitePart for Interior {
    type GhostSource = NoGhosts;
    const LOOPS: bool = true;
    #[inline(always)]
    fn ghosts(_: &WilsonDslash) -> &NoGhosts {
        &NoGhosts
    }
}
impl SitePart for Exterior {
    type GhostSource = Ghosts;
    const LOOPS: bool = false;
    #[inline(always)]
    fn ghosts(dslash: &WilsonDslash) -> &Ghosts {
        &dslash.ghosts
    }
}

/// Format of [`WilsonDslash`] for fields and links of format `F`, diagonal term `A`, sites `S` and the forms `W`.
pub struct WilsonFormat<F, A, S, W>(PhantomData<(F, A, S, W)>);

/// Set of the forms of [`WilsonDslash`] that a kernel computes. Forms that are not in the set take no registers.
pub trait Forms: 'static {
    /// Whether the kernel applies A⁻¹ if the diagonal is not a number; `None` if the arguments decide.
    const INVERSE: Option<bool> = Some(true);
    /// Whether the kernel always has x, and D instead of D†.
    const FIXED: bool = false;
}
/// Set of the forms D ψ and a x + b D ψ, or A⁻¹ D ψ and x + b A⁻¹ D ψ.
pub struct HopForms;
/// Set of the form A x + b D ψ alone.
pub struct SumForms;
/// Set of all forms of [`WilsonDslash`].
pub struct AllForms;
/// Set of the forms a x + b D ψ and x + b A⁻¹ D ψ, which kernels with sums compute.
pub struct FixedForms;

impl Forms for HopForms {}
impl Forms for SumForms {
    const INVERSE: Option<bool> = Some(false);
}
impl Forms for AllForms {
    const INVERSE: Option<bool> = None;
}
impl Forms for FixedForms {
    const FIXED: bool = true;
}

// SAFETY: reads element (i, rhs) of `x` only, which may be `out`.
unsafe impl<P, R, A, S, W> Dslash<WilsonFormat<(P, R), A, S, W>> for WilsonDslash
where
    P: CloverFormat,
    R: HopLinks<P>,
    A: SiteDiagonal,
    S: SitePart,
    W: Forms,
{
    type Sites = Spinors<P>;
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
        self.hopping.region.index(i, &self.hopping.geometry, self.hopping.parity)
    }
    #[inline(always)]
    fn place_multi_rhs(&self, i: u32) -> u32 {
        self.hopping.region.index_in_columns(i, &self.hopping.geometry, self.hopping.parity)
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        let Hopping { links, region, geometry, .. } = &self.hopping;
        if links.in_lanes() { region.group_sites(geometry) } else { 1 }
    }
    #[inline(always)]
    unsafe fn compute<const N: usize, T: Then<[[DiracSpinor<P::Real>; 2]; N]>>(
        &self,
        i: u32,
        first: u32,
        then: T,
    ) -> T::Output {
        let plain = W::FIXED || self.dagger == 0;
        unsafe {
            // On a GPU, D and D† each have their own copy of all code up to the writes. In measurements, shared code at the end needed more
            // registers, which cost 7 % of the speed in half precision with several right-hand sides (docs/measurements/redesign.md).
            #[cfg(target_arch = "nvptx64")]
            return if plain {
                let hops = self.hopping.apply::<P, R, _, _, N>(Sign::Plus, S::ghosts(self), i, first);
                then.take(A::combine::<P, W, N>(self, i, first, hops))
            } else {
                let (dslash, i) = (self.elsewhere(), opaque(i));
                let hops = dslash.hopping.apply::<P, R, _, _, N>(Sign::Minus, S::ghosts(&dslash), i, first);
                then.take(A::combine::<P, W, N>(&dslash, i, first, hops))
            };
            // On a CPU, D and D† share all code.
            #[cfg(not(target_arch = "nvptx64"))]
            {
                if const { N == 1 && P::Real::LANES > 1 } {
                    let hops = self.hopping.apply_by_colours::<P, R, _>(plain, S::ghosts(self), i, first);
                    return then.take(A::combine::<P, W, N>(self, i, first, [hops; N]));
                }
                let hops = self.hopping.apply::<P, R, _, _, N>(RuntimeSign::new(plain), S::ghosts(self), i, first);
                then.take(A::combine::<P, W, N>(self, i, first, hops))
            }
        }
    }
}

impl WilsonDslash {
    /// Returns the arguments with addresses that compilers treat as different. Compilers would otherwise hoist the loads of
    /// both branches, and all links into registers that are not available.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn elsewhere(&self) -> Self {
        WilsonDslash { hopping: Hopping { links: self.hopping.links.for_rhs(opaque(0)), ..self.hopping }, ..*self }
    }
    /// x at site `i`.
    #[inline(always)]
    pub(crate) unsafe fn x<P: NumberFormat>(&self, i: u32, rhs: u32) -> DiracSpinor<P::Real> {
        unsafe { self.x.load_own::<Spinors<P>>(i, rhs) }
    }
    /// Returns x at site `i` for N right-hand sides from `first` on.
    #[inline(always)]
    pub(crate) unsafe fn all_x<P: NumberFormat, const N: usize>(
        &self,
        i: u32,
        first: u32,
    ) -> [DiracSpinor<P::Real>; N] {
        let mut x = [DiracSpinor::ZERO; N];
        each_rhs!(k < N: {
            x[k] = unsafe { self.x::<P>(i, first + k as u32) };
        });
        x
    }
}

/// a x + b h
#[inline(always)]
pub(crate) fn linear<T: Real>(a: T, x: DiracSpinor<T>, b: T, h: DiracSpinor<T>) -> DiracSpinor<T> {
    x.zip(h, |x, h| complex(a.mul_add(x.re, b * h.re), a.mul_add(x.im, b * h.im)))
}
/// x + b h
#[inline(always)]
pub(crate) fn add<T: Real>(x: DiracSpinor<T>, b: T, h: DiracSpinor<T>) -> DiracSpinor<T> {
    x.zip(h, |x, h| complex(b.mul_add(h.re, x.re), b.mul_add(h.im, x.im)))
}

impl<P, R, A, S, W> StageLinks<WilsonFormat<(P, R), A, S, W>> for WilsonDslash
where
    P: NumberFormat,
    R: LinkFormat<P, Pair: Slots>,
{
    type Staged = WilsonFormat<(P, Staged<R>), A, S, W>;
    const BYTES: usize = staged_bytes::<P, R>();
    #[inline(always)]
    unsafe fn stage(&self, i: u32) -> Self {
        let links = unsafe { self.hopping.links.stage::<P, R>(i) };
        WilsonDslash { hopping: Hopping { links, ..self.hopping }, ..*self }
    }
    #[inline(always)]
    fn for_rhs(staged: Self, first: u32) -> Self {
        let links = staged.hopping.links.for_rhs(first);
        WilsonDslash { hopping: Hopping { links, ..staged.hopping }, ..staged }
    }
}

#[cfg(target_arch = "x86_64")]
impl<F: crate::format::LaneFormat<V>, A, S, W, V: crate::storage::VectorSet> crate::format::LaneFormat<V>
    for WilsonFormat<F, A, S, W>
{
    type In = WilsonFormat<F::In, A, S, W>;
    const LANES: usize = F::LANES;
}

type WithMass<F> = Plain<WilsonFormat<F, Mass, Interior, HopForms>>;
type WithMassDot<F> = DslashDot<WilsonFormat<F, Mass, Interior, FixedForms>>;
type WithMassDots<F> = DslashDots<WilsonFormat<F, Mass, Interior, FixedForms>>;
type WithTwistedMass<F> = Plain<WilsonFormat<F, TwistedMass, Interior, HopForms>>;
type WithTwistedMassDots<F> = DslashDots<WilsonFormat<F, TwistedMass, Interior, FixedForms>>;

crate::kernels! { FAMILY = "wilson";
    kernel WILSON_DSLASH "wilson_dslash": [WilsonDslash as WithMass, in lanes, any AnyWilsonLinks]
        => wide_links(looped 1), narrow_links(rhs 2), temporal_links;
    reduce WILSON_DSLASH_DOT "wilson_dslash_dot": [WilsonDslash as WithMassDot, in lanes, any AnyWilsonLinks]
        => double_links, single_links(looped 1), narrow_links(rhs 2), temporal_links;
    reduce WILSON_DSLASH_DOTS "wilson_dslash_dots": [WilsonDslash as WithMassDots, in lanes, any AnyWilsonLinks]
        => double_links, single_links(looped 1), narrow_links(rhs 2), temporal_links;
    kernel TWISTED_DSLASH "twisted_dslash": [WilsonDslash as WithTwistedMass, any AnyWilsonLinks] => plain_links;
    reduce TWISTED_DSLASH_DOTS "twisted_dslash_dots": [WilsonDslash as WithTwistedMassDots, any AnyWilsonLinks] => plain_links;
}
