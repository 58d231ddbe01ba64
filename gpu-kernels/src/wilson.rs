//! Wilson hopping term between the parities (Clark et al. 2009, eq. 1):
//! (D ψ)(x) = Σ_μ P^{−μ} U_μ(x) ψ(x+μ̂) + P^{+μ} U†_μ(x−μ̂) ψ(x−μ̂), and the forms of it that solvers need.
use crate::Kernel;
use crate::algebra::{Axis, Projector, Real, Scaled, Spinor, complex};
use crate::field::{Field, Links};
use crate::ghost::{Nothing, SpinorsBeyond};
use crate::lattice::{Geometry, Region};
use crate::row::{Row, RowDot, RowDots};
use crate::sides::{Stage, Together, each_side, in_order_of, one_of_its_sides};
use crate::storage::{
    Double, Fp16, Half, LinkFormat, Precision, Recon8, Recon8T, Recon12, Recon12T, Recon18, Single, Slots, Spinors,
    Staged, staged_bytes,
};

/// The hopping term from the other parity to the sites of `parity`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Hopping<P: Precision, R> {
    /// ψ on the other parity.
    pub input: Field<Spinors<P>>,
    /// Links around the sites of `parity`.
    pub links: Links<P, R>,
    /// The lattice.
    pub geometry: Geometry,
    /// Which sites are computed.
    pub region: Region,
    /// Parity of the output.
    pub parity: u32,
    /// Factor of the hops in t: 1, or an anisotropy.
    pub time: P::Real,
    /// Factor of the hops in t across the boundary: `time` times the sign of the boundary condition.
    pub time_across: P::Real,
}

impl<P: Precision, R: LinkFormat<P>> Hopping<P, R> {
    /// As [`Kernel::place`].
    #[inline(always)]
    pub fn place(&self, i: u32) -> u32 {
        self.region.index(i, &self.geometry, self.parity)
    }
    /// As [`Kernel::place_together`].
    #[inline(always)]
    pub fn place_together(&self, i: u32) -> u32 {
        self.region.index_in_columns(i, &self.geometry, self.parity)
    }
    /// (D ψ)(x), or (D† ψ)(x) = (γ_5 D γ_5 ψ)(x), which has the projectors exchanged, on a lattice that is not cut, for N
    /// right-hand sides from `first` on.
    ///
    /// # Safety
    /// Site `i` exists and nothing writes `input` meanwhile.
    #[inline(always)]
    pub unsafe fn apply<const DAGGER: bool, const N: usize>(&self, i: u32, first: u32) -> [Spinor<P::Real>; N] {
        unsafe { self.apply_with::<DAGGER, N, _>(&Nothing, i, first) }
    }
    /// The same where hops that leave the local lattice find what is `beyond`.
    ///
    /// # Safety
    /// As [`apply`](Self::apply).
    #[inline(always)]
    pub unsafe fn apply_with<const DAGGER: bool, const N: usize, B: SpinorsBeyond<P>>(
        &self,
        beyond: &B,
        i: u32,
        first: u32,
    ) -> [Spinor<P::Real>; N] {
        let g = &self.geometry;
        let x = g.site(i, self.parity);
        let mut sums = [Spinor::ZERO; N];
        // A hop of all right-hand sides with the link `which` of a direction, forward or not.
        macro_rules! hop {
            ($mu:literal, $links:ident.$which:ident, $forward:literal, $projector:ident) => {
                let across = $mu == 3 && g.crosses_end(&x, $forward);
                let neighbour = g.neighbour(&x, $mu, $forward);
                let mut hops = [Scaled::ZERO; N];
                each_side!(k < N: {
                    let rhs = first + k as u32;
                    hops[k] = match unsafe { beyond.projected(g, &x, rhs, ($mu, $forward), $projector) } {
                        Some(h) => h,
                        None => unsafe { self.input.projected(neighbour, rhs, $projector) },
                    };
                    if $mu == 3 {
                        hops[k] = hops[k].times(self.time_factor(across));
                    }
                });
                let hops = unsafe { $links.$which(hops, across) };
                each_side!(k < N: {
                    sums[k].add_projected(hops[k], $projector);
                    sums[k] = beyond.settled(sums[k]);
                });
            };
        }
        macro_rules! direction {
            ($mu:literal, $axis:ident) => {
                let links = unsafe { self.links.direction(i, $mu) };
                let (mut minus, mut plus) = (Projector::minus(Axis::$axis), Projector::plus(Axis::$axis));
                if DAGGER {
                    (minus, plus) = (plus, minus);
                }
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
    #[inline(always)]
    fn time_factor(&self, across: bool) -> P::Real {
        if across { self.time_across } else { self.time }
    }
}

impl<P: Precision, R: LinkFormat<P, Pair: Slots>> Stage for Hopping<P, R> {
    type Staged = Hopping<P, Staged<R>>;
    const BYTES: usize = staged_bytes::<P, R>();
    #[inline(always)]
    unsafe fn stage(&self, i: u32) -> Self::Staged {
        let Hopping { input, links, geometry, region, parity, time, time_across } = *self;
        Hopping { input, links: unsafe { links.stage(i) }, geometry, region, parity, time, time_across }
    }
    #[inline(always)]
    fn turned(staged: Self::Staged, first: u32) -> Self::Staged {
        Hopping { links: staged.links.turned(first), ..staged }
    }
}

/// [`Stage`] for a kernel with a hopping term and nothing else that is kept.
macro_rules! stage_hopping {
    ($kernel:ident { $($field:ident),* }, P: $bound:ident, R $(, const $dagger:ident)?) => {
        impl<P: $bound, R: LinkFormat<P, Pair: Slots> $(, const $dagger: bool)?> Stage for $kernel<P, R $(, $dagger)?> {
            type Staged = $kernel<P, Staged<R> $(, $dagger)?>;
            const BYTES: usize = Hopping::<P, R>::BYTES;
            #[inline(always)]
            unsafe fn stage(&self, i: u32) -> Self::Staged {
                let hopping = unsafe { self.hopping.stage(i) };
                $kernel { $($field: self.$field,)* hopping }
            }
            #[inline(always)]
            fn turned(staged: Self::Staged, first: u32) -> Self::Staged {
                $kernel { hopping: Hopping::<P, R>::turned(staged.hopping, first), ..staged }
            }
        }
    };
}
pub(crate) use stage_hopping;

/// out = D ψ, or D† ψ.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WilsonDslash<P: Precision, R, const DAGGER: bool> {
    /// The result, on the sites of one parity.
    pub out: Field<Spinors<P>>,
    /// The hopping term.
    pub hopping: Hopping<P, R>,
}

// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only.
unsafe impl<P: Precision, R: LinkFormat<P>, const DAGGER: bool> Kernel for WilsonDslash<P, R, DAGGER> {
    const NAME: &'static [&'static str] =
        &[if DAGGER { "wilson_dslash_dagger" } else { "wilson_dslash" }, P::NAME, R::NAME];
    in_order_of!(hopping);
    one_of_its_sides!();
}
// SAFETY: as for one.
unsafe impl<P: Precision, R: LinkFormat<P>, const DAGGER: bool> Together for WilsonDslash<P, R, DAGGER> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) {
        let hops = unsafe { self.hopping.apply::<DAGGER, N>(i, first) };
        each_side!(k < N: {
            unsafe { self.out.store(i, first + k as u32, &hops[k]) }
        });
    }
}
stage_hopping!(WilsonDslash { out }, P: Precision, R, const DAGGER);

/// out = a x + b D ψ, or with D†: one factor of the even-odd Schur complement, or the full operator's row.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WilsonDslashAdd<P: Precision, R, const DAGGER: bool> {
    /// The result, on the sites of one parity.
    pub out: Field<Spinors<P>>,
    /// x, on the same parity. May be `out` itself.
    pub x: Field<Spinors<P>>,
    /// Factor of x.
    pub a: P::Real,
    /// Factor of the hopping term.
    pub b: P::Real,
    /// The hopping term.
    pub hopping: Hopping<P, R>,
}

// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only, and reads no other element of it.
unsafe impl<P: Precision, R: LinkFormat<P>, const DAGGER: bool> Kernel for WilsonDslashAdd<P, R, DAGGER> {
    const NAME: &'static [&'static str] =
        &[if DAGGER { "wilson_dslash_add_dagger" } else { "wilson_dslash_add" }, P::NAME, R::NAME];
    in_order_of!(hopping);
    one_of_its_sides!();
}
// SAFETY: as for one.
unsafe impl<P: Precision, R: LinkFormat<P>, const DAGGER: bool> Together for WilsonDslashAdd<P, R, DAGGER> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) {
        unsafe { self.store::<N>(i, first) }
    }
}
stage_hopping!(WilsonDslashAdd { out, x, a, b }, P: Precision, R, const DAGGER);

// SAFETY: reads element (i, rhs) of `x` only, which may be `out`.
unsafe impl<P: Precision, R: LinkFormat<P>, const DAGGER: bool> Row for WilsonDslashAdd<P, R, DAGGER> {
    type Format = Spinors<P>;
    const DOT: &'static [&'static str] = &["wilson_dslash_add_dot", P::NAME, R::NAME];
    const DOTS: &'static [&'static str] = &["wilson_dslash_add_dots", P::NAME, R::NAME];
    fn out(&self) -> &Field<Spinors<P>> {
        &self.out
    }
    in_order_of!(hopping);
    #[inline(always)]
    unsafe fn compute<const N: usize>(&self, i: u32, first: u32) -> [[Spinor<P::Real>; 2]; N] {
        let hops = unsafe { self.hopping.apply::<DAGGER, N>(i, first) };
        let (a, b) = (self.a, self.b);
        let mut rows = [[Spinor::ZERO; 2]; N];
        each_side!(k < N: {
            let x = unsafe { self.x.load_own(i, first + k as u32) };
            let out = x.zip(hops[k], |x, h| complex(a.mul_add(x.re, b * h.re), a.mul_add(x.im, b * h.im)));
            rows[k] = [out, x];
        });
        rows
    }
}

/// [`WilsonDslashAdd`] with the sums that CG and the first half step of BiCGstab need.
pub type WilsonDslashAddDot<P, R> = RowDot<WilsonDslashAdd<P, R, false>>;
/// [`WilsonDslashAdd`] with the sums that the second half step of BiCGstab needs.
pub type WilsonDslashAddDots<P, R> = RowDots<WilsonDslashAdd<P, R, false>>;

crate::entry! { INSTANCES of "wilson":
    kernel "wilson_double" wilson_dslash_double_18: WilsonDslash<Double, Recon18, false>, registers 232, looped 1 at 204;
    kernel "wilson_double" wilson_dslash_dagger_double_18: WilsonDslash<Double, Recon18, true>, registers 232, looped 1 at 204;
    kernel "wilson_double" wilson_dslash_add_double_18: WilsonDslashAdd<Double, Recon18, false>, registers 232, looped 1 at 208;
    kernel "wilson_double" wilson_dslash_add_dagger_double_18: WilsonDslashAdd<Double, Recon18, true>, registers 232, looped 1 at 208;
    kernel "wilson_double" wilson_dslash_double_12: WilsonDslash<Double, Recon12, false>, registers 232, looped 1 at 200;
    kernel "wilson_double" wilson_dslash_dagger_double_12: WilsonDslash<Double, Recon12, true>, registers 232, looped 1 at 192;
    kernel "wilson_double" wilson_dslash_add_double_12: WilsonDslashAdd<Double, Recon12, false>, registers 232, looped 1 at 168;
    kernel "wilson_double" wilson_dslash_add_dagger_double_12: WilsonDslashAdd<Double, Recon12, true>, registers 232, looped 1 at 176;
    kernel "wilson_single" wilson_dslash_single_18: WilsonDslash<Single, Recon18, false>, registers 168, looped 1 at 140;
    kernel "wilson_single" wilson_dslash_dagger_single_18: WilsonDslash<Single, Recon18, true>, registers 168, looped 1 at 140;
    kernel "wilson_single" wilson_dslash_add_single_18: WilsonDslashAdd<Single, Recon18, false>, registers 168, looped 1 at 140;
    kernel "wilson_single" wilson_dslash_add_dagger_single_18: WilsonDslashAdd<Single, Recon18, true>, registers 168, looped 1 at 140;
    kernel "wilson_single" wilson_dslash_single_12: WilsonDslash<Single, Recon12, false>, registers 168, looped 1 at 122;
    kernel "wilson_single" wilson_dslash_dagger_single_12: WilsonDslash<Single, Recon12, true>, registers 168, looped 1 at 126;
    kernel "wilson_single" wilson_dslash_add_single_12: WilsonDslashAdd<Single, Recon12, false>, registers 168, looped 1 at 119;
    kernel "wilson_single" wilson_dslash_add_dagger_single_12: WilsonDslashAdd<Single, Recon12, true>, registers 168, looped 1 at 119;
    kernel "wilson_half" wilson_dslash_half_18: WilsonDslash<Half, Recon18, false>, registers 96, sides 2 at 120;
    kernel "wilson_half" wilson_dslash_dagger_half_18: WilsonDslash<Half, Recon18, true>, registers 96, sides 2 at 120;
    kernel "wilson_half" wilson_dslash_add_half_18: WilsonDslashAdd<Half, Recon18, false>, registers 96, sides 2 at 116;
    kernel "wilson_half" wilson_dslash_add_dagger_half_18: WilsonDslashAdd<Half, Recon18, true>, registers 96, sides 2 at 116;
    kernel "wilson_half" wilson_dslash_half_12: WilsonDslash<Half, Recon12, false>, registers 96, sides 2 at 128;
    kernel "wilson_half" wilson_dslash_dagger_half_12: WilsonDslash<Half, Recon12, true>, registers 96, sides 2 at 112;
    kernel "wilson_half" wilson_dslash_add_half_12: WilsonDslashAdd<Half, Recon12, false>, registers 96, sides 2 at 112;
    kernel "wilson_half" wilson_dslash_add_dagger_half_12: WilsonDslashAdd<Half, Recon12, true>, registers 96, sides 2 at 112;
    kernel "wilson_fp16" wilson_dslash_fp16_18: WilsonDslash<Fp16, Recon18, false>, registers 100, sides 2 at 144;
    kernel "wilson_fp16" wilson_dslash_dagger_fp16_18: WilsonDslash<Fp16, Recon18, true>, registers 100, sides 2 at 144;
    kernel "wilson_fp16" wilson_dslash_add_fp16_18: WilsonDslashAdd<Fp16, Recon18, false>, registers 112, sides 2 at 116;
    kernel "wilson_fp16" wilson_dslash_add_dagger_fp16_18: WilsonDslashAdd<Fp16, Recon18, true>, registers 112, sides 2 at 132;
    kernel "wilson_fp16" wilson_dslash_fp16_12: WilsonDslash<Fp16, Recon12, false>, registers 96, sides 2 at 120;
    kernel "wilson_fp16" wilson_dslash_dagger_fp16_12: WilsonDslash<Fp16, Recon12, true>, registers 96, sides 2 at 120;
    kernel "wilson_fp16" wilson_dslash_add_fp16_12: WilsonDslashAdd<Fp16, Recon12, false>, registers 97, sides 2 at 124;
    kernel "wilson_fp16" wilson_dslash_add_dagger_fp16_12: WilsonDslashAdd<Fp16, Recon12, true>, registers 97, sides 2 at 115;
    kernel "wilson_double" wilson_dslash_double_8: WilsonDslash<Double, Recon8, false>, registers 255, looped 1 at 188;
    kernel "wilson_double" wilson_dslash_dagger_double_8: WilsonDslash<Double, Recon8, true>, registers 255, looped 1 at 188;
    kernel "wilson_double" wilson_dslash_add_double_8: WilsonDslashAdd<Double, Recon8, false>, registers 255, looped 1 at 192;
    kernel "wilson_double" wilson_dslash_add_dagger_double_8: WilsonDslashAdd<Double, Recon8, true>, registers 255, looped 1 at 192;
    kernel "wilson_single" wilson_dslash_single_8: WilsonDslash<Single, Recon8, false>, registers 128, looped 1 at 136;
    kernel "wilson_single" wilson_dslash_dagger_single_8: WilsonDslash<Single, Recon8, true>, registers 128, looped 1 at 136;
    kernel "wilson_single" wilson_dslash_add_single_8: WilsonDslashAdd<Single, Recon8, false>, registers 128, looped 1 at 144;
    kernel "wilson_single" wilson_dslash_add_dagger_single_8: WilsonDslashAdd<Single, Recon8, true>, registers 128, looped 1 at 144;
    kernel "wilson_half" wilson_dslash_half_8: WilsonDslash<Half, Recon8, false>, registers 96, sides 2 at 112;
    kernel "wilson_half" wilson_dslash_dagger_half_8: WilsonDslash<Half, Recon8, true>, registers 96, sides 2 at 112;
    kernel "wilson_half" wilson_dslash_add_half_8: WilsonDslashAdd<Half, Recon8, false>, registers 96, sides 2 at 116;
    kernel "wilson_half" wilson_dslash_add_dagger_half_8: WilsonDslashAdd<Half, Recon8, true>, registers 96, sides 2 at 112;
    kernel "wilson_fp16" wilson_dslash_fp16_8: WilsonDslash<Fp16, Recon8, false>, registers 112, sides 2 at 128;
    kernel "wilson_fp16" wilson_dslash_dagger_fp16_8: WilsonDslash<Fp16, Recon8, true>, registers 96, sides 2 at 128;
    kernel "wilson_fp16" wilson_dslash_add_fp16_8: WilsonDslashAdd<Fp16, Recon8, false>, registers 112, sides 2 at 124;
    kernel "wilson_fp16" wilson_dslash_add_dagger_fp16_8: WilsonDslashAdd<Fp16, Recon8, true>, registers 96, sides 2 at 124;
    reduce "wilson_double" wilson_dslash_add_dot_double_18: WilsonDslashAddDot<Double, Recon18>, registers 255;
    reduce "wilson_double" wilson_dslash_add_dots_double_18: WilsonDslashAddDots<Double, Recon18>, registers 255;
    reduce "wilson_double" wilson_dslash_add_dot_double_12: WilsonDslashAddDot<Double, Recon12>, registers 255;
    reduce "wilson_double" wilson_dslash_add_dots_double_12: WilsonDslashAddDots<Double, Recon12>, registers 255;
    reduce "wilson_double" wilson_dslash_add_dot_double_8: WilsonDslashAddDot<Double, Recon8>, registers 255;
    reduce "wilson_double" wilson_dslash_add_dots_double_8: WilsonDslashAddDots<Double, Recon8>, registers 255;
    reduce "wilson_single" wilson_dslash_add_dot_single_18: WilsonDslashAddDot<Single, Recon18>, registers 176, looped 1 at 148;
    reduce "wilson_single" wilson_dslash_add_dots_single_18: WilsonDslashAddDots<Single, Recon18>, registers 168, looped 1 at 156;
    reduce "wilson_single" wilson_dslash_add_dot_single_12: WilsonDslashAddDot<Single, Recon12>, registers 168, looped 1 at 136;
    reduce "wilson_single" wilson_dslash_add_dots_single_12: WilsonDslashAddDots<Single, Recon12>, registers 168, looped 1 at 123;
    reduce "wilson_single" wilson_dslash_add_dot_single_8: WilsonDslashAddDot<Single, Recon8>, registers 168, looped 1 at 140;
    reduce "wilson_single" wilson_dslash_add_dots_single_8: WilsonDslashAddDots<Single, Recon8>, registers 168, looped 1 at 148;
    reduce "wilson_half" wilson_dslash_add_dot_half_18: WilsonDslashAddDot<Half, Recon18>, registers 112, sides 2 at 128;
    reduce "wilson_half" wilson_dslash_add_dots_half_18: WilsonDslashAddDots<Half, Recon18>, registers 112, sides 2 at 120;
    reduce "wilson_half" wilson_dslash_add_dot_half_12: WilsonDslashAddDot<Half, Recon12>, registers 112, sides 2 at 128;
    reduce "wilson_half" wilson_dslash_add_dots_half_12: WilsonDslashAddDots<Half, Recon12>, registers 120, sides 2 at 128;
    reduce "wilson_half" wilson_dslash_add_dot_half_8: WilsonDslashAddDot<Half, Recon8>, registers 112, sides 2 at 124;
    reduce "wilson_half" wilson_dslash_add_dots_half_8: WilsonDslashAddDots<Half, Recon8>, registers 112, sides 2 at 120;
    reduce "wilson_fp16" wilson_dslash_add_dot_fp16_18: WilsonDslashAddDot<Fp16, Recon18>, registers 112, sides 2 at 120;
    reduce "wilson_fp16" wilson_dslash_add_dots_fp16_18: WilsonDslashAddDots<Fp16, Recon18>, registers 120, sides 2 at 160;
    reduce "wilson_fp16" wilson_dslash_add_dot_fp16_12: WilsonDslashAddDot<Fp16, Recon12>, registers 112, sides 2 at 128;
    reduce "wilson_fp16" wilson_dslash_add_dots_fp16_12: WilsonDslashAddDots<Fp16, Recon12>, registers 120, sides 2 at 112;
    reduce "wilson_fp16" wilson_dslash_add_dot_fp16_8: WilsonDslashAddDot<Fp16, Recon8>, registers 112, sides 2 at 112;
    reduce "wilson_fp16" wilson_dslash_add_dots_fp16_8: WilsonDslashAddDots<Fp16, Recon8>, registers 120, sides 2 at 160;
    kernel "wilson_double_t" wilson_dslash_double_12t: WilsonDslash<Double, Recon12T, false>, registers 232;
    kernel "wilson_double_t" wilson_dslash_dagger_double_12t: WilsonDslash<Double, Recon12T, true>, registers 232;
    kernel "wilson_double_t" wilson_dslash_add_double_12t: WilsonDslashAdd<Double, Recon12T, false>, registers 240;
    kernel "wilson_double_t" wilson_dslash_add_dagger_double_12t: WilsonDslashAdd<Double, Recon12T, true>, registers 240;
    kernel "wilson_single_t" wilson_dslash_single_12t: WilsonDslash<Single, Recon12T, false>, registers 176;
    kernel "wilson_single_t" wilson_dslash_dagger_single_12t: WilsonDslash<Single, Recon12T, true>, registers 168;
    kernel "wilson_single_t" wilson_dslash_add_single_12t: WilsonDslashAdd<Single, Recon12T, false>, registers 168;
    kernel "wilson_single_t" wilson_dslash_add_dagger_single_12t: WilsonDslashAdd<Single, Recon12T, true>, registers 168;
    kernel "wilson_half_t" wilson_dslash_half_12t: WilsonDslash<Half, Recon12T, false>, registers 96;
    kernel "wilson_half_t" wilson_dslash_dagger_half_12t: WilsonDslash<Half, Recon12T, true>, registers 96;
    kernel "wilson_half_t" wilson_dslash_add_half_12t: WilsonDslashAdd<Half, Recon12T, false>, registers 96;
    kernel "wilson_half_t" wilson_dslash_add_dagger_half_12t: WilsonDslashAdd<Half, Recon12T, true>, registers 96;
    kernel "wilson_fp16_t" wilson_dslash_fp16_12t: WilsonDslash<Fp16, Recon12T, false>, registers 96;
    kernel "wilson_fp16_t" wilson_dslash_dagger_fp16_12t: WilsonDslash<Fp16, Recon12T, true>, registers 96;
    kernel "wilson_fp16_t" wilson_dslash_add_fp16_12t: WilsonDslashAdd<Fp16, Recon12T, false>, registers 112;
    kernel "wilson_fp16_t" wilson_dslash_add_dagger_fp16_12t: WilsonDslashAdd<Fp16, Recon12T, true>, registers 96;
    kernel "wilson_double_t" wilson_dslash_double_8t: WilsonDslash<Double, Recon8T, false>, registers 255;
    kernel "wilson_double_t" wilson_dslash_dagger_double_8t: WilsonDslash<Double, Recon8T, true>, registers 255;
    kernel "wilson_double_t" wilson_dslash_add_double_8t: WilsonDslashAdd<Double, Recon8T, false>, registers 255;
    kernel "wilson_double_t" wilson_dslash_add_dagger_double_8t: WilsonDslashAdd<Double, Recon8T, true>, registers 255;
    kernel "wilson_single_t" wilson_dslash_single_8t: WilsonDslash<Single, Recon8T, false>, registers 128;
    kernel "wilson_single_t" wilson_dslash_dagger_single_8t: WilsonDslash<Single, Recon8T, true>, registers 128;
    kernel "wilson_single_t" wilson_dslash_add_single_8t: WilsonDslashAdd<Single, Recon8T, false>, registers 136;
    kernel "wilson_single_t" wilson_dslash_add_dagger_single_8t: WilsonDslashAdd<Single, Recon8T, true>, registers 136;
    reduce "wilson_double_t" wilson_dslash_add_dot_double_12t: WilsonDslashAddDot<Double, Recon12T>, registers 255;
    reduce "wilson_double_t" wilson_dslash_add_dots_double_12t: WilsonDslashAddDots<Double, Recon12T>, registers 255;
    reduce "wilson_double_t" wilson_dslash_add_dot_double_8t: WilsonDslashAddDot<Double, Recon8T>, registers 255;
    reduce "wilson_double_t" wilson_dslash_add_dots_double_8t: WilsonDslashAddDots<Double, Recon8T>, registers 255;
    reduce "wilson_single_t" wilson_dslash_add_dot_single_12t: WilsonDslashAddDot<Single, Recon12T>, registers 168;
    reduce "wilson_single_t" wilson_dslash_add_dots_single_12t: WilsonDslashAddDots<Single, Recon12T>, registers 168;
    reduce "wilson_single_t" wilson_dslash_add_dot_single_8t: WilsonDslashAddDot<Single, Recon8T>, registers 168;
    reduce "wilson_single_t" wilson_dslash_add_dots_single_8t: WilsonDslashAddDots<Single, Recon8T>, registers 168;
    reduce "wilson_half_t" wilson_dslash_add_dot_half_12t: WilsonDslashAddDot<Half, Recon12T>, registers 112;
    reduce "wilson_half_t" wilson_dslash_add_dots_half_12t: WilsonDslashAddDots<Half, Recon12T>, registers 120;
    reduce "wilson_fp16_t" wilson_dslash_add_dot_fp16_12t: WilsonDslashAddDot<Fp16, Recon12T>, registers 112;
    reduce "wilson_fp16_t" wilson_dslash_add_dots_fp16_12t: WilsonDslashAddDots<Fp16, Recon12T>, registers 120;
}
