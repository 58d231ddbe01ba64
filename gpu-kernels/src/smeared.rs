//! Links that are sums and products of links along paths: the fat and long links of improved staggered fermions
//! (Orginos, Toussaint and Sugar 1999), and the projection to U(3) between the two levels of HISQ (Follana et al. 2007).
//!
//! Each staple of a fat link is made from a shorter one. V = U_μ gives the three-link staple, which gives the five-link staple
//! in another direction, which gives the seven-link staple. The staple of the three-link staple in its own direction is the
//! Lepage term.
use crate::algebra::{Colour, Complex, Hermitian, Real, Su3, complex};
use crate::field::{Links, Matrices, ThinLinks};
use crate::lattice::{Bordered, Geometry, Region, Site};
use crate::memory::Access;
use crate::storage::{Element, NumberFormat, Recon8, StoreLinks};
use crate::{Kernel, Reduction};
use core::marker::PhantomData;

/// Staples S(x) = U_ν(x) V(x+ν̂) U†_ν(x+μ̂) + U†_ν(x−ν̂) V(x−ν̂) U_ν(x−ν̂+μ̂), where V is a path from x to x+μ̂, and
/// their sum F_μ(x) ← F_μ(x) + c S(x).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Staple {
    /// Links U that start at the even and at the odd sites.
    pub links: [ThinLinks; 2],
    /// Paths V on the even and on the odd sites.
    pub input: [Matrices; 2],
    /// Staples S on the sites of `parity`.
    pub out: Matrices,
    /// Sum F_μ on the sites of `parity`, to which the kernel adds.
    pub sum: Matrices,
    /// Geometry of the bordered lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// μ
    pub mu: u32,
    /// ν
    pub nu: u32,
    /// 1 to store S, 0 if only the sum is needed.
    pub keep: u32,
    /// c
    pub coefficient: f64,
}

// SAFETY: call i writes S and F_μ at site i only, and reads neither at another site.
unsafe impl<T: Element> Kernel<T> for Staple {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let Staple { geometry: g, mu, nu, parity, .. } = *self;
        unsafe {
            let staple = staple_at::<T>(&self.links, &self.input, &g, (&g.site_for::<T>(i, parity), parity), (mu, nu));
            if self.keep != 0 {
                self.out.store(i, &staple);
            }
            self.sum.store(i, &(self.sum.load::<T>(i, Access::Own) + staple.scale(T::from_f64(self.coefficient))));
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.geometry.group_sites()
    }
}

/// S(x), the sum of the two staples of V in direction ν, at a site of a parity.
///
/// # Safety
/// The sites of the staples exist, and nothing writes links or V meanwhile.
#[inline(always)]
pub(crate) unsafe fn staple_at<T: Element>(
    u: &[ThinLinks; 2],
    v: &[Matrices; 2],
    g: &Geometry,
    (x, here): (&Site, u32),
    (mu, nu): (u32, u32),
) -> Su3<T> {
    let there = 1 - here;
    let (ahead, up, down) = (step(g, x, mu, true), step(g, x, nu, true), step(g, x, nu, false));
    let below = g.site_for::<T>(down, there);
    unsafe {
        let over = (link::<T>(u, here, x.index, nu) * matrix(v, there, up)).settled();
        let over = (over * link(u, there, ahead, nu).adjoint()).settled();
        let under = (link::<T>(u, there, down, nu).adjoint() * matrix(v, there, down)).settled();
        let under = under * link(u, here, step(g, &below, mu, true), nu);
        over + under
    }
}

/// Returns the element for a parity. It is selected by a branch, because an index would be an address in local memory.
#[inline(always)]
pub(crate) fn of<T: Copy>(halves: &[T; 2], parity: u32) -> T {
    if parity == 0 { halves[0] } else { halves[1] }
}
/// U_μ at a site. This is a function and not a closure, because its code is large if `T` is a vector.
///
/// # Safety
/// The site exists, and nothing writes the link meanwhile.
#[inline(always)]
pub(crate) unsafe fn link<T: Element>(links: &[ThinLinks; 2], parity: u32, at: u32, mu: u32) -> Su3<T> {
    unsafe { of(links, parity).load(at, mu, Access::Shared) }
}
/// Returns the matrix of a site, in fields with one matrix on each site.
///
/// # Safety
/// The contract of [`link`] holds.
#[inline(always)]
pub(crate) unsafe fn matrix<T: Element>(matrices: &[Matrices; 2], parity: u32, at: u32) -> Su3<T> {
    unsafe { of(matrices, parity).load(at, Access::Shared) }
}
#[inline(always)]
pub(crate) fn step(g: &Geometry, x: &Site, mu: u32, forward: bool) -> u32 {
    g.neighbour(x, mu as usize, forward)
}

/// Scales links, F_μ(x) = c_μ U_μ(x) for all μ. The kernel initialises sums of staples, and applies the phases of a
/// boundary condition to links.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ScaleLinks {
    /// U
    pub input: ThinLinks,
    /// Scaled links F; they may be the field `input`.
    pub out: ThinLinks,
    /// c_μ
    pub factors: [Complex<f64>; 4],
}
// SAFETY: call i reads and writes the links of site i only.
unsafe impl<T: Element> Kernel<T> for ScaleLinks {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        macro_rules! direction {
            ($($mu:literal)*) => {$(
                let c = self.factors[$mu];
                let c = complex(T::from_f64(c.re), T::from_f64(c.im));
                unsafe { self.out.store(i, $mu, &self.input.load::<T>(i, $mu, Access::Own).times(c)) }
            )*};
        }
        direction!(0 1 2 3);
    }
}

/// Long links L_μ(x) = c U_μ(x) U_μ(x+μ̂) U_μ(x+2μ̂).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LongLinks {
    /// Links U that start at the even and at the odd sites.
    pub links: [ThinLinks; 2],
    /// Long links L on the sites of `parity`.
    pub out: ThinLinks,
    /// Geometry of the bordered lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// c
    pub factor: f64,
}
// SAFETY: call i writes the links of site i only.
unsafe impl<T: Element> Kernel<T> for LongLinks {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let (g, there) = (self.geometry, 1 - self.parity);
        let x = g.site_for::<T>(i, self.parity);
        for mu in 0..4 {
            let next = step(&g, &x, mu, true);
            let second = step(&g, &g.site_for::<T>(next, there), mu, true);
            unsafe {
                let u = &self.links;
                let product =
                    link::<T>(u, self.parity, i, mu) * link(u, there, next, mu) * link(u, self.parity, second, mu);
                self.out.store(i, mu, &product.scale(T::from_f64(self.factor)));
            }
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.geometry.group_sites()
    }
}

/// Projects all four links V of a site to W = V (V†V)^(−1/2), the unitary matrix closest to V.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ProjectU3 {
    /// V
    pub input: ThinLinks,
    /// Projected links W; they may be the field `input`.
    pub out: ThinLinks,
}

/// (p × q)*
#[inline(always)]
fn cross<T: Real>(p: [Complex<T>; 3], q: [Complex<T>; 3]) -> [Complex<T>; 3] {
    macro_rules! minor {
        ($j:literal, $k:literal) => {
            (p[$j] * q[$k] - p[$k] * q[$j]).conj()
        };
    }
    [minor!(1, 2), minor!(2, 0), minor!(0, 1)]
}
/// Returns the conjugate cofactors, V^{-†} det(V)*, and det V.
#[inline(always)]
fn cofactors<T: Real>(v: &Su3<T>) -> (Su3<T>, Complex<T>) {
    let [a, b, c] = v.0;
    let rows = [cross(b, c), cross(c, a), cross(a, b)];
    (Su3(rows), Colour(rows[0]).dot(Colour(a)))
}
/// Σ |V_jk|²
#[inline(always)]
fn norm2<T: Real>(v: &Su3<T>) -> T {
    let [a, b, c] = v.0;
    Colour(a).norm2() + Colour(b).norm2() + Colour(c).norm2()
}

/// Returns the unitary polar factor of a regular matrix. Newton's iteration X ← (γ X + X^{-†} / γ) / 2 with γ² = ‖X⁻¹‖
/// / ‖X‖ (Higham 1986) converges quadratically. For a singular matrix, the elements of the result are not finite.
#[inline(always)]
pub fn polar<T: Real>(v: &Su3<T>) -> Su3<T> {
    // Nine steps suffice with this scaling for condition numbers up to 10¹⁵; the tenth is a safety margin.
    const STEPS: u32 = 10;
    let mut x = *v;
    let mut k = 0;
    while k < STEPS {
        let (cofactors, det) = cofactors(&x);
        let inverse = det.scale(T::ONE.over(det.norm_sqr())); // 1 / det*
        let dual = cofactors.map(|z| z * inverse);
        let (half, gamma) = (T::from_f64(0.5), norm2(&dual).over(norm2(&x)).root().root());
        x = x.scale(half * gamma) + dual.scale(half.over(gamma));
        k += 1;
    }
    x
}

// SAFETY: call i reads and writes the links of site i only.
unsafe impl<T: Element> Kernel<T> for ProjectU3 {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        for mu in 0..4 {
            unsafe { self.out.store(i, mu, &polar(&self.input.load::<T>(i, mu, Access::Own))) }
        }
    }
}

/// Projects one matrix V on each site to W, the matrix in SU(3) with the largest Re tr (W V†).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ProjectSu3 {
    /// Matrices V before the launch, and W after it.
    pub matrices: Matrices,
}

/// Number of halvings that reduce an angle between 0 and π to the rounding error of double precision.
const HALVINGS: u32 = 54;

/// Returns e^{iθ} with sin θ = r sin t and cos θ ≥ 0, for `x` = e^{it} and 0 ≤ r ≤ 1. The cosine keeps its digits if sin θ is
/// close to 1.
#[inline(always)]
fn refracted(r: f64, x: Complex<f64>) -> Complex<f64> {
    let along = r * x.re;
    complex(along.mul_add(along, (1.0 - r) * (1.0 + r)).sqrt_or_zero(), r * x.im)
}

/// Returns the e^{iθ_k} with the largest Σ_k σ_k cos θ_k among those with product e^{iψ} = `whole`, for 0 ≤ ψ ≤ π and positive
/// σ_k. The first σ_k must be the smallest.
///
/// At an extremum all σ_k sin θ_k are equal. At the maximum the angles are not negative, their sum is ψ, and only the first may
/// exceed π/2. As a function of θ_0 = t, their sum A(t) increases up to t = π/2 and is concave above, from A(0) = 0 to A(π) = π
/// ≥ ψ. Bisection on 0 ≤ t ≤ π finds the smallest t with A(t) = ψ, which is the maximum. It needs no trigonometric functions,
/// because angles are halved and compared as unit complex numbers.
#[inline(always)]
fn largest_phases([least, second, third]: [f64; 3], whole: Complex<f64>) -> [Complex<f64>; 3] {
    let (second, third) = (least / second, least / third);
    let (mut low, mut high, mut x) = (complex(1.0, 0.0), complex(-1.0, 0.0), complex(0.0, 1.0));
    let mut step = 0;
    while step < HALVINGS {
        // `sum` is e^{iA(t)}, where A(t) is at most 3π/2.
        let sum = x * refracted(second, x) * refracted(third, x);
        let excess = sum * whole.conj();
        // If the angles A(t) and ψ are close, the sign of A(t) − ψ follows from its sine; otherwise it follows from the
        // cosines of the angles.
        let is_high = if excess.re > 0.0 { excess.im > 0.0 } else { sum.im < 0.0 || sum.re < whole.re };
        if is_high {
            high = x;
        } else {
            low = x;
        }
        let between = low + high;
        x = between.scale(1.0 / between.norm_sqr().sqrt_or_zero());
        step += 1;
    }
    [x, refracted(second, x), refracted(third, x)]
}

/// Returns the matrix W in SU(3) with the largest Re tr (W V†). With the polar decomposition V = U H and H = E σ E†, W
/// = U E e^{iθ} E†, where the phases θ maximise Σ_k σ_k cos θ_k for det W = 1. The number of steps is fixed, and does
/// not depend on how close the σ_k are to each other. For a singular V, the elements of W are not finite.
#[inline(always)]
pub fn largest_in_su3(v: &Su3<f64>) -> Su3<f64> {
    let u = polar(v);
    let ([a, b, c], e) = Hermitian::part_of(u.adjoint() * *v).eigen();
    let det = u.determinant();
    let whole = det.conj().scale(1.0 / det.norm_sqr().sqrt_or_zero());
    // Complex conjugation of `whole` conjugates the phases, so the phases are computed for angles from 0 to π only.
    let is_below = whole.im < 0.0;
    let whole = if is_below { whole.conj() } else { whole };
    let (is_first, is_second) = (a <= b && a <= c, b <= c);
    let sizes = if is_first {
        [a, b, c]
    } else if is_second {
        [b, a, c]
    } else {
        [c, a, b]
    };
    let [x, y, z] = largest_phases(sizes, whole);
    let phases = if is_first {
        [x, y, z]
    } else if is_second {
        [y, x, z]
    } else {
        [y, z, x]
    };
    let [x, y, z] = if is_below { [phases[0].conj(), phases[1].conj(), phases[2].conj()] } else { phases };
    let row = |[p, q, r]: [Complex<f64>; 3]| [p * x, q * y, r * z];
    let turned = Su3([row(e.0[0]), row(e.0[1]), row(e.0[2])]);
    (u * turned * e.adjoint()).unitarised()
}

// SAFETY: call i reads and writes matrix i only.
unsafe impl Kernel<()> for ProjectSu3 {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe { self.matrices.store(i, &largest_in_su3(&self.matrices.load::<f64>(i, Access::Own))) }
    }
}

/// Violation of unitarity, Σ_μ ‖U†_μ U_μ − 1‖², summed over the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct UnitarityViolation {
    /// Links U that start at the sites of one parity of the bordered lattice.
    pub links: ThinLinks,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: reads only.
unsafe impl Reduction<()> for UnitarityViolation {
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 1] {
        let at = self.lattice.site(i, self.parity).index;
        let mut sum = 0.0;
        for mu in 0..4 {
            let u = unsafe { self.links.load::<f64>(at, mu, Access::Shared) };
            sum += norm2(&(u.adjoint() * u - Su3::unit()));
        }
        [sum]
    }
}

/// Numbers of link components whose absolute value exceeds `bound` / 2^(k/4), one number for each k from 1 to 8.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ComponentsAbove {
    /// Links that start at the sites of one parity of the bordered lattice.
    pub links: ThinLinks,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Bound that the absolute values of all components do not exceed.
    pub bound: f64,
}
// SAFETY: reads only.
unsafe impl Reduction<()> for ComponentsAbove {
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
            let u = unsafe { self.links.load::<f64>(at, mu, Access::Shared) };
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

/// Copies links that are stored once to the layout with two links for each site and direction: the link that starts at
/// a site and the link that ends there, each times a complex factor that depends on the direction. Links are one site
/// long, or three for [`ThreeSites`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackThin {
    /// Links that start at the even and at the odd sites of the bordered lattice.
    pub input: [ThinLinks; 2],
    /// The copied links, around the sites of the local lattice.
    pub links: Links,
    /// Lattice of the field `input`.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Complex factors of the four directions.
    pub factors: [Complex<f64>; 4],
}
/// Format wrapper for links and hops that are three sites long.
pub struct ThreeSites<F>(PhantomData<F>);

#[cfg(target_arch = "x86_64")]
impl<F: crate::format::LaneFormat<V>, V> crate::format::LaneFormat<V> for ThreeSites<F> {
    type In = ThreeSites<F::In>;
    const LANES: usize = F::LANES;
}

// SAFETY: call i writes the links of site i only. Right-hand sides do not exist for links.
unsafe impl<P: NumberFormat, R: StoreLinks<P>> Kernel<(P, R)> for PackThin {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe { self.pack::<P, R, 1>(i) }
    }
}
// SAFETY: as above.
unsafe impl<P: NumberFormat, R: StoreLinks<P>> Kernel<ThreeSites<(P, R)>> for PackThin {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe { self.pack::<P, R, 3>(i) }
    }
}

impl PackThin {
    /// Packs the links of site `i`, each `STEPS` sites long.
    #[inline(always)]
    unsafe fn pack<P: NumberFormat, R: StoreLinks<P>, const STEPS: usize>(&self, i: u32) {
        let (g, there) = (&self.lattice.geometry, 1 - self.parity);
        let x = self.lattice.site(i, self.parity);
        macro_rules! direction {
            ($($mu:literal)*) => {$(unsafe {
                let here = of(&self.input, self.parity).load::<f64>(x.index, $mu, Access::Once);
                let behind = if STEPS == 3 { g.third_neighbour(&x, $mu, false) } else { g.neighbour(&x, $mu, false) };
                let there = of(&self.input, there).load::<f64>(behind, $mu, Access::Once);
                let c = self.factors[$mu];
                self.links.store::<P, R>(i, $mu, &here.times(c), &there.times(c).adjoint());
            })*};
        }
        direction!(0 1 2 3);
    }
}

/// Counts links that neither [`Recon8`] nor [`Recon9`](crate::storage::Recon9) can represent after multiplication by
/// `scale`, among those that start at the local lattice's sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SingularThin {
    /// Links that start at the sites of one parity of the bordered lattice.
    pub links: ThinLinks,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// 1 to count links in t only across the boundary, because temporal gauge stores no other links in t; else 0.
    pub temporal: u32,
    /// Factor that makes the links unitary.
    pub scale: f64,
}
// SAFETY: reads only.
unsafe impl Reduction<()> for SingularThin {
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 1] {
        let at = self.lattice.site(i, self.parity).index;
        let in_time = self.temporal == 0 || self.geometry.crosses_end(&self.geometry.site(i, self.parity), true).any();
        let mut count = 0.0;
        for mu in 0..4 {
            if mu < 3 || in_time {
                let u = unsafe { self.links.load::<f64>(at, mu, Access::Shared) }.scale(self.scale);
                count += Recon8::is_singular(&u) as u32 as f64;
            }
        }
        [count]
    }
}

/// Copies links from one region to another, for example to and from the buffers for links of other processes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CopyThin {
    /// Source of the links.
    pub input: ThinLinks,
    /// Region to read; call `i` reads its site number `i`.
    pub from: Region,
    /// Destination of the links.
    pub out: ThinLinks,
    /// Region to write; call `i` writes its site number `i`.
    pub to: Region,
    /// Lattice of both regions.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: calls write different sites, as regions have each site once.
unsafe impl<T: Element> Kernel<T> for CopyThin {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let index = |region: &Region| region.index(i, &self.geometry, self.parity);
        let (from, to) = (index(&self.from), index(&self.to));
        for mu in 0..4 {
            unsafe { self.out.store(to, mu, &self.input.load::<T>(from, mu, Access::Shared)) }
        }
    }
}

crate::kernels! { FAMILY = "smeared";
    kernel STAPLE "staple": [Staple, in lanes] => real_numbers;
    setup SCALE_LINKS "scale_links": [ScaleLinks, in lanes] => real_numbers;
    setup LONG_LINKS "long_links": [LongLinks, in lanes] => double_numbers;
    setup PROJECT_U3 "project_u3": [ProjectU3, in lanes] => double_numbers;
    setup PROJECT_SU3 "project_su3": [ProjectSu3] => once;
    observe UNITARITY_VIOLATION "unitarity_violation": [UnitarityViolation] => once;
    observe COMPONENTS_ABOVE "components_above": [ComponentsAbove] => once;
    observe SINGULAR_THIN "singular_thin": [SingularThin] => once;
    setup COPY_THIN "copy_thin": [CopyThin] => real_numbers;
    setup PACK_LINKS "pack_links": [PackThin] => wide_links, narrow_links, temporal_links, half_staggered_links, fine_links;
    setup PACK_LONG "pack_long": [PackThin as ThreeSites] => staggered_links, unitary_links;
}
