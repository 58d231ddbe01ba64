//! Links that are sums and products of links along paths: the fat and long links of improved staggered fermions
//! (Orginos, Toussaint and Sugar 1999), and the projection to U(3) between the two levels of HISQ (Follana et al. 2007).
//!
//! Every staple of a fat link is made from a shorter one: with V = U_μ the three-link staple, from that the five-link
//! one in a further direction, from that the seven-link one; the three-link staple's own staple in its own direction is
//! the Lepage term.
use crate::algebra::elementary::sqrt;
use crate::algebra::{Colour, Complex, Su3};
use crate::field::{Links, Matrices, ThinLinks};
use crate::lattice::{Bordered, Geometry, Region, Site};
use crate::memory::Access;
use crate::storage::{
    Double, Element, Fp16, Half, LinkFormat, Precision, Recon8, Recon8H, Recon8T, Recon9, Recon9H, Recon12, Recon12H,
    Recon12T, Recon13, Recon13H, Recon18, Recon18H, Single,
};
use crate::{Kernel, Reduction};
use core::marker::PhantomData;

/// S(x) = U_ν(x) V(x+ν̂) U†_ν(x+μ̂) + U†_ν(x−ν̂) V(x−ν̂) U_ν(x−ν̂+μ̂), V a path from x to x+μ̂, and F_μ(x) ← F_μ(x) + c S(x).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Staple<T = f64> {
    /// U on the even and on the odd sites.
    pub links: [ThinLinks<T>; 2],
    /// V on the even and on the odd sites.
    pub input: [Matrices<T>; 2],
    /// S on the sites of `parity`.
    pub out: Matrices<T>,
    /// F_μ on the sites of `parity`.
    pub sum: Matrices<T>,
    /// The lattice.
    pub geometry: Geometry,
    /// Parity of the sites.
    pub parity: u32,
    /// μ
    pub mu: u32,
    /// ν
    pub nu: u32,
    /// 0: S is not written.
    pub keep: u32,
    /// c
    pub coefficient: f64,
}

// SAFETY: call i writes S and F_μ at site i only, and reads neither at another site.
unsafe impl<T: Element> Kernel for Staple<T> {
    const NAME: &'static [&'static str] = &["staple", T::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let Staple { geometry: g, mu, nu, parity: here, .. } = *self;
        let there = 1 - here;
        let x = g.site(i, here);
        let (ahead, up, down) = (step(&g, &x, mu, true), step(&g, &x, nu, true), step(&g, &x, nu, false));
        let below = g.site(down, there);
        unsafe {
            let u = |parity: u32, at: u32| of(&self.links, parity).load(at, nu, Access::Shared);
            let v = |at: u32| of(&self.input, there).load(at, Access::Shared);
            let over = u(here, i) * v(up) * u(there, ahead).adjoint();
            let under = u(there, down).adjoint() * v(down) * u(here, step(&g, &below, mu, true));
            let staple = over + under;
            if self.keep != 0 {
                self.out.store(i, &staple);
            }
            self.sum.store(i, &(self.sum.load(i, Access::Own) + staple.scale(T::from_f64(self.coefficient))));
        }
    }
}

/// The one for a parity: written out, an index would be an address in local memory.
#[inline(always)]
pub(crate) fn of<T: Copy>(halves: &[T; 2], parity: u32) -> T {
    if parity == 0 { halves[0] } else { halves[1] }
}
#[inline(always)]
pub(crate) fn step(g: &Geometry, x: &Site, mu: u32, forward: bool) -> u32 {
    g.neighbour(x, mu as usize, forward)
}

/// F_μ(x) = c U_μ(x) for all μ: what sums of staples begin with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ScaleLinks<T = f64> {
    /// U
    pub input: ThinLinks<T>,
    /// F
    pub out: ThinLinks<T>,
    /// c
    pub factor: f64,
}
// SAFETY: call i writes the links of site i only.
unsafe impl<T: Element> Kernel for ScaleLinks<T> {
    const NAME: &'static [&'static str] = &["scale_links", T::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        for mu in 0..4 {
            let factor = T::from_f64(self.factor);
            unsafe { self.out.store(i, mu, &self.input.load(i, mu, Access::Shared).scale(factor)) }
        }
    }
}

/// L_μ(x) = c U_μ(x) U_μ(x+μ̂) U_μ(x+2μ̂)
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LongLinks {
    /// U on the even and on the odd sites.
    pub links: [ThinLinks; 2],
    /// L on the sites of `parity`.
    pub out: ThinLinks,
    /// The lattice.
    pub geometry: Geometry,
    /// Parity of the sites.
    pub parity: u32,
    /// c
    pub factor: f64,
}
// SAFETY: call i writes the links of site i only.
unsafe impl Kernel for LongLinks {
    const NAME: &'static [&'static str] = &["long_links"];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let (g, there) = (self.geometry, 1 - self.parity);
        let x = g.site(i, self.parity);
        for mu in 0..4 {
            let next = step(&g, &x, mu, true);
            let second = step(&g, &g.site(next, there), mu, true);
            unsafe {
                let u = |parity, at| of(&self.links, parity).load(at, mu, Access::Shared);
                let product = u(self.parity, i) * u(there, next) * u(self.parity, second);
                self.out.store(i, mu, &product.scale(self.factor));
            }
        }
    }
}

/// W = V (V†V)^(−1/2), the unitary matrix next to V, for all four links of a site.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ProjectU3 {
    /// V
    pub input: ThinLinks,
    /// W. May be `input` itself.
    pub out: ThinLinks,
}

/// The conjugate cofactors, V^{-†} det(V)*, and det V.
#[inline(always)]
fn cofactors(v: &Su3<f64>) -> (Su3<f64>, Complex<f64>) {
    let [a, b, c] = v.0;
    let cross = |p: [Complex<f64>; 3], q: [Complex<f64>; 3]| {
        let minor = |j: usize, k: usize| (p[j] * q[k] - p[k] * q[j]).conj();
        [minor(1, 2), minor(2, 0), minor(0, 1)]
    };
    let rows = [cross(b, c), cross(c, a), cross(a, b)];
    (Su3(rows), Colour(rows[0]).dot(Colour(a)))
}
/// Σ |V_jk|²
#[inline(always)]
fn norm2(v: &Su3<f64>) -> f64 {
    let [a, b, c] = v.0;
    Colour(a).norm2() + Colour(b).norm2() + Colour(c).norm2()
}

/// The unitary polar factor by Newton's iteration X ← (γ X + X^{-†} / γ) / 2 with γ² = ‖X⁻¹‖ / ‖X‖ (Higham 1986), which
/// converges quadratically, for regular matrices. A singular one gives numbers that are not finite.
#[inline(always)]
pub fn polar(v: &Su3<f64>) -> Su3<f64> {
    // With this scaling nine steps are enough for condition numbers up to 10¹⁵.
    const STEPS: u32 = 10;
    let mut x = *v;
    let mut k = 0;
    while k < STEPS {
        let (cofactors, det) = cofactors(&x);
        let inverse = det.scale(1.0 / det.norm_sqr()); // 1 / det*
        let dual = Su3(cofactors.0.map_rows(|z| z * inverse));
        let gamma = sqrt(sqrt(norm2(&dual) / norm2(&x)));
        x = x.scale(0.5 * gamma) + dual.scale(0.5 / gamma);
        k += 1;
    }
    x
}

/// Unrolled map over the elements of rows.
trait MapRows {
    fn map_rows(self, f: impl Fn(Complex<f64>) -> Complex<f64>) -> Self;
}
impl MapRows for [[Complex<f64>; 3]; 3] {
    #[inline(always)]
    fn map_rows(self, f: impl Fn(Complex<f64>) -> Complex<f64>) -> Self {
        let [a, b, c] = self;
        let row = |[p, q, r]: [Complex<f64>; 3]| [f(p), f(q), f(r)];
        [row(a), row(b), row(c)]
    }
}

// SAFETY: call i reads and writes the links of site i only.
unsafe impl Kernel for ProjectU3 {
    const NAME: &'static [&'static str] = &["project_u3"];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        for mu in 0..4 {
            unsafe { self.out.store(i, mu, &polar(&self.input.load(i, mu, Access::Own))) }
        }
    }
}

/// Σ_μ ‖U†_μ U_μ − 1‖²
#[derive(Clone, Copy)]
#[repr(C)]
pub struct UnitarityViolation {
    /// U on the sites of one parity of the bordered lattice.
    pub links: ThinLinks,
    /// Its lattice.
    pub lattice: Bordered,
    /// Parity of the sites.
    pub parity: u32,
}
// SAFETY: reads only.
unsafe impl Reduction for UnitarityViolation {
    const NAME: &'static [&'static str] = &["unitarity_violation"];
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 1] {
        let at = self.lattice.site(i, self.parity).index;
        let mut sum = 0.0;
        for mu in 0..4 {
            let u = unsafe { self.links.load(at, mu, Access::Shared) };
            sum += norm2(&(u.adjoint() * u - Su3::unit()));
        }
        [sum]
    }
}

/// How many components of the links exceed `bound` / 2^(k/4), for k from 1 to 8.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ComponentsAbove {
    /// The links on the sites of one parity of the bordered lattice.
    pub links: ThinLinks,
    /// Their lattice.
    pub lattice: Bordered,
    /// Parity of the sites.
    pub parity: u32,
    /// No component is larger.
    pub bound: f64,
}
// SAFETY: reads only.
unsafe impl Reduction for ComponentsAbove {
    const NAME: &'static [&'static str] = &["components_above"];
    type Values = [f64; 8];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 8] {
        const ROOT: f64 = 0.840_896_415_253_714_5; // 2^(−1/4)
        let b = self.bound * ROOT;
        let (c, d) = (b * ROOT, b * ROOT * ROOT);
        let e = d * ROOT;
        let levels = [b, c, d, e, b * 0.5, c * 0.5, d * 0.5, e * 0.5];
        let at = self.lattice.site(i, self.parity).index;
        let mut counts = [0.0; 8];
        for mu in 0..4 {
            let u = unsafe { self.links.load(at, mu, Access::Shared) };
            macro_rules! count {
                ($($element:literal)*) => {$(
                    let z = u.0[$element / 3][$element % 3];
                    count!(@levels z, 0 1 2 3 4 5 6 7);
                )*};
                (@levels $z:ident, $($k:literal)*) => {
                    counts = [$(counts[$k]
                        + ($z.re.abs() > levels[$k]) as u32 as f64
                        + ($z.im.abs() > levels[$k]) as u32 as f64),*]
                };
            }
            count!(0 1 2 3 4 5 6 7 8);
        }
        counts
    }
}

/// Links kept once to the links around the sites of one parity, divided by a factor: one link forward and the one that
/// ends at the site, `STEPS` sites behind it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackThin<P, R, const STEPS: usize> {
    /// The links on the even and on the odd sites of the bordered lattice.
    pub input: [ThinLinks; 2],
    /// The links around the sites of the local lattice.
    pub links: Links<P, R>,
    /// The lattice of the input.
    pub lattice: Bordered,
    /// Parity of the sites.
    pub parity: u32,
    /// One over the factor.
    pub scale: f64,
    /// Precision and reconstruction.
    pub format: PhantomData<(P, R)>,
}
// SAFETY: call i writes the links of site i only. Right-hand sides do not exist for links.
unsafe impl<P: Precision, R: LinkFormat<P>, const STEPS: usize> Kernel for PackThin<P, R, STEPS> {
    const NAME: &'static [&'static str] = &[if STEPS == 3 { "pack_long" } else { "pack_links" }, P::NAME, R::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let (g, there) = (&self.lattice.geometry, 1 - self.parity);
        let x = self.lattice.site(i, self.parity);
        macro_rules! direction {
            ($($mu:literal)*) => {$(unsafe {
                let here = of(&self.input, self.parity).load(x.index, $mu, Access::Once);
                let behind = if STEPS == 3 { g.third_neighbour(&x, $mu, false) } else { g.neighbour(&x, $mu, false) };
                let there = of(&self.input, there).load(behind, $mu, Access::Once);
                self.links.store(i, $mu, &here.scale(self.scale), &there.adjoint().scale(self.scale));
            })*};
        }
        direction!(0 1 2 3);
    }
}

/// Counts the links, times `scale`, that start at the local lattice's sites of one parity and that [`Recon8`] cannot keep,
/// nor [`Recon9`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SingularThin {
    /// The links that start at the sites of one parity of the bordered lattice.
    pub links: ThinLinks,
    /// Their lattice.
    pub lattice: Bordered,
    /// The local one.
    pub geometry: Geometry,
    /// Parity of the sites.
    pub parity: u32,
    /// 1: links in t count only across the boundary, as in temporal gauge the others are not kept.
    pub temporal: u32,
    /// What makes them unitary.
    pub scale: f64,
}
// SAFETY: reads only.
unsafe impl Reduction for SingularThin {
    const NAME: &'static [&'static str] = &["singular_thin"];
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 1] {
        let at = self.lattice.site(i, self.parity).index;
        let in_time = self.temporal == 0 || self.geometry.crosses_end(&self.geometry.site(i, self.parity), true);
        let mut count = 0.0;
        for mu in 0..4 {
            if mu < 3 || in_time {
                let u = unsafe { self.links.load(at, mu, Access::Shared) }.scale(self.scale);
                count += Recon8::is_singular(&u) as u32 as f64;
            }
        }
        [count]
    }
}

/// Copies links from one lattice to another: to and from the memory that other processes' links pass through.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CopyThin<T = f64> {
    /// From here.
    pub input: ThinLinks<T>,
    /// Site `i` of this region.
    pub from: Region,
    /// To there.
    pub out: ThinLinks<T>,
    /// Site `i` of this region.
    pub to: Region,
    /// The lattice of the regions.
    pub geometry: Geometry,
    /// Parity of the sites.
    pub parity: u32,
}
// SAFETY: calls write different sites, as regions have each site once.
unsafe impl<T: Element> Kernel for CopyThin<T> {
    const NAME: &'static [&'static str] = &["copy_thin", T::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let index = |region: &Region| region.index(i, &self.geometry, self.parity);
        let (from, to) = (index(&self.from), index(&self.to));
        for mu in 0..4 {
            unsafe { self.out.store(to, mu, &self.input.load(from, mu, Access::Shared)) }
        }
    }
}

crate::entry! { INSTANCES of "smeared":
    kernel "smeared" staple_double: Staple<f64>, registers 0;
    kernel "smeared" staple_single: Staple<f32>, registers 0;
    setup "smeared" scale_links_double: ScaleLinks<f64>, registers 0;
    setup "smeared" scale_links_single: ScaleLinks<f32>, registers 0;
    setup "smeared" long_links: LongLinks, registers 0;
    setup "smeared" project_u3: ProjectU3, registers 0;
    observe "smeared" unitarity_violation: UnitarityViolation, registers 0;
    observe "smeared" components_above: ComponentsAbove, registers 0;
    observe "smeared" singular_thin: SingularThin, registers 0;
    setup "smeared" copy_thin_double: CopyThin<f64>, registers 0;
    setup "smeared" copy_thin_single: CopyThin<f32>, registers 0;
    setup "smeared" pack_links_double_18: PackThin<Double, Recon18, 1>, registers 0;
    setup "smeared" pack_links_double_12: PackThin<Double, Recon12, 1>, registers 0;
    setup "smeared" pack_links_double_8: PackThin<Double, Recon8, 1>, registers 0;
    setup "smeared" pack_links_double_12t: PackThin<Double, Recon12T, 1>, registers 0;
    setup "smeared" pack_links_double_8t: PackThin<Double, Recon8T, 1>, registers 0;
    setup "smeared" pack_links_single_18: PackThin<Single, Recon18, 1>, registers 0;
    setup "smeared" pack_links_single_12: PackThin<Single, Recon12, 1>, registers 0;
    setup "smeared" pack_links_single_8: PackThin<Single, Recon8, 1>, registers 0;
    setup "smeared" pack_links_single_12t: PackThin<Single, Recon12T, 1>, registers 0;
    setup "smeared" pack_links_single_8t: PackThin<Single, Recon8T, 1>, registers 0;
    setup "smeared" pack_links_single_18h: PackThin<Single, Recon18H, 1>, registers 0;
    setup "smeared" pack_links_single_12h: PackThin<Single, Recon12H, 1>, registers 0;
    setup "smeared" pack_links_single_8h: PackThin<Single, Recon8H, 1>, registers 0;
    setup "smeared" pack_links_half_18: PackThin<Half, Recon18, 1>, registers 0;
    setup "smeared" pack_links_half_12: PackThin<Half, Recon12, 1>, registers 0;
    setup "smeared" pack_links_half_8: PackThin<Half, Recon8, 1>, registers 0;
    setup "smeared" pack_links_half_12t: PackThin<Half, Recon12T, 1>, registers 0;
    setup "smeared" pack_links_fp16_18: PackThin<Fp16, Recon18, 1>, registers 0;
    setup "smeared" pack_links_fp16_12: PackThin<Fp16, Recon12, 1>, registers 0;
    setup "smeared" pack_links_fp16_8: PackThin<Fp16, Recon8, 1>, registers 0;
    setup "smeared" pack_links_fp16_12t: PackThin<Fp16, Recon12T, 1>, registers 0;
    setup "smeared" pack_long_single_18h: PackThin<Single, Recon18H, 3>, registers 0;
    setup "smeared" pack_long_single_12h: PackThin<Single, Recon12H, 3>, registers 0;
    setup "smeared" pack_long_single_8h: PackThin<Single, Recon8H, 3>, registers 0;
    setup "smeared" pack_long_double_18: PackThin<Double, Recon18, 3>, registers 0;
    setup "smeared" pack_long_double_12: PackThin<Double, Recon12, 3>, registers 0;
    setup "smeared" pack_long_double_8: PackThin<Double, Recon8, 3>, registers 0;
    setup "smeared" pack_long_single_18: PackThin<Single, Recon18, 3>, registers 0;
    setup "smeared" pack_long_single_12: PackThin<Single, Recon12, 3>, registers 0;
    setup "smeared" pack_long_single_8: PackThin<Single, Recon8, 3>, registers 0;
    setup "smeared" pack_long_half_18: PackThin<Half, Recon18, 3>, registers 0;
    setup "smeared" pack_long_half_12: PackThin<Half, Recon12, 3>, registers 0;
    setup "smeared" pack_long_half_8: PackThin<Half, Recon8, 3>, registers 0;
    setup "smeared" pack_long_double_13: PackThin<Double, Recon13, 3>, registers 0;
    setup "smeared" pack_long_double_9: PackThin<Double, Recon9, 3>, registers 0;
    setup "smeared" pack_long_single_13: PackThin<Single, Recon13, 3>, registers 0;
    setup "smeared" pack_long_single_9: PackThin<Single, Recon9, 3>, registers 0;
    setup "smeared" pack_long_half_13: PackThin<Half, Recon13, 3>, registers 0;
    setup "smeared" pack_long_half_9: PackThin<Half, Recon9, 3>, registers 0;
    setup "smeared" pack_long_single_13h: PackThin<Single, Recon13H, 3>, registers 0;
    setup "smeared" pack_long_single_9h: PackThin<Single, Recon9H, 3>, registers 0;
}
