//! The force of staggered fermions.
//!
//! For pseudofermions with the action S = φ† r(A) φ, r(A) = a_0 + Σ_j a_j (A + σ_j)⁻¹ and A = −D² on the even sites, let
//! x_j = (A + σ_j)⁻¹ φ, and Z_j be x_j on even and D x_j on odd sites. Then
//!
//! dS = 2 Re Σ_j a_j Σ_{n even} x_j†(n) (dD D x_j)(n) = Re Σ_{n,μ} tr (G†_μ(n) dF_μ(n)),
//!
//! G_μ(n) = 2 Σ_j a_j ε(n) η_μ(n) Z_j(n) Z_j†(n+μ̂), where F are the links that D hops over and ε(n) = ±1 on even and odd
//! sites. For links of three sites, n+3μ̂ replaces n+μ̂. In the following, D x_j includes the coefficient, because one of the
//! two vectors that a hop joins is a D x_j.
//!
//! If F is made from thin links by paths, gradients are propagated backward through the construction of F. For a staple
//!
//! S(x) = U_ν(x) V(x+ν̂) U†_ν(x+μ̂) + U†_ν(x−ν̂) V(x−ν̂) U_ν(x−ν̂+μ̂)
//!
//! of a path V from x to x+μ̂, with the gradient G of S, that of V is the [`Staple`](crate::smeared::Staple) of G, and that
//! of U_ν, with z = y−μ̂,
//!
//! G(y) U_ν(y+μ̂) V†(y+ν̂) + V(y) U_ν(y+μ̂) G†(y+ν̂) + G†(z) U_ν(z) V(z+ν̂) + V†(z) U_ν(z) G(z+ν̂).
//!
//! Between the two levels of HISQ, gradients are propagated backward through the projection W = V (V†V)^(−1/2) to U(3): see
//! [`ProjectionGradient`].
use crate::algebra::{AntiHermitian, Complex, Hermitian, Real, Su3};
use crate::field::{Field, Matrices, Momenta, ThinLinks};
use crate::format::Between;
use crate::lattice::{Bordered, Geometry, Site};
use crate::memory::Access;
use crate::smeared::{ThreeSites, link, matrix, of, step};
use crate::staggered::Phases;
use crate::storage::{Colours, Element, NumberFormat};
use crate::{Kernel, Reduction};

/// Vectors Z_j, stored as right-hand sides, with the factors of a hop between two sites.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HopPairs {
    /// Vectors Z_j on the even and on the odd sites of the bordered lattice.
    pub vectors: [Field; 2],
    /// Number of vectors Z_j.
    pub count: u32,
    /// η
    pub phases: Phases,
    /// Sign of hops across the end of the whole lattice in t. It is used only if t is not partitioned; otherwise the
    /// ghost sites of Z contain the sign.
    pub across: f64,
}

impl HopPairs {
    /// Σ_j ε(n) η_μ(n) Z_j(n) Z_j†(n + s μ̂), with s = 1 or s = 3.
    ///
    /// # Safety
    /// Vectors exist at both sites.
    #[inline(always)]
    unsafe fn sum<P: NumberFormat>(&self, g: &Geometry, n: &Site, parity: u32, mu: u32, steps: u32) -> Su3<P::Real> {
        let (ahead, crosses) = if steps == 3 {
            (g.third_neighbour(n, mu as usize, true), g.crosses_end_in_three(n, true))
        } else {
            (g.neighbour(n, mu as usize, true), g.crosses_end(n, true))
        };
        let (here, there) = (of(&self.vectors, parity), of(&self.vectors, 1 - parity));
        let mut sum = Su3::ZERO;
        let mut j = 0;
        while j < self.count {
            let product =
                unsafe { Su3::outer(here.load::<Colours<P>>(n.index, j), there.load::<Colours<P>>(ahead, j)) };
            sum = sum + product;
            j += 1;
        }
        let sign = if parity == 0 { P::Real::ONE } else { -P::Real::ONE };
        let sign = if mu == 3 { sign.times_where(crosses, P::Real::from_f64(self.across)) } else { sign };
        sum.scale(self.phases.times(g, n, mu, sign))
    }
}

/// Adds the force of hops over thin links to the momenta: P_μ(n) ← P_μ(n) + ε A, where A is the traceless
/// anti-Hermitian part of U_μ(n) G†_μ(n). The direction μ takes the place of the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct NaiveForce {
    /// Z
    pub pairs: HopPairs,
    /// Links U that start at the sites of `parity` of the bordered lattice.
    pub links: ThinLinks,
    /// Momenta P of the links that start at the sites of `parity`.
    pub momenta: Momenta,
    /// Lattice of Z and of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// ε
    pub step: f64,
}
// SAFETY: call (i, μ) reads and writes P_μ at site i only.
unsafe impl<P: NumberFormat, T: Element> Kernel<Between<Colours<P>, T>> for NaiveForce {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let n = self.lattice.site_for::<P::Real>(i, self.parity);
        unsafe {
            let gradient = self.pairs.sum::<P>(&self.lattice.geometry, &n, self.parity, mu, 1);
            let product = self.links.load::<P::Real>(n.index, mu, Access::Shared) * gradient.adjoint();
            self.momenta.add::<T, _>(i, mu, self.step, AntiHermitian::part_of(product));
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// Gradient of the hops, G_μ(n) = c Σ_j ε(n) η_μ(n) Z_j(n) Z_j†(n + s μ̂), on all sites of the bordered lattice, with s
/// = 1, or s = 3 for [`ThreeSites`]. Values in the border have no meaning. The direction μ takes the place of the
/// right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HopGradient {
    /// Z
    pub pairs: HopPairs,
    /// Gradient G on the sites of `parity`.
    pub out: ThinLinks,
    /// Geometry of the bordered lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// c
    pub factor: f64,
}
// SAFETY: call (i, μ) writes G_μ at site i only.
unsafe impl<P: NumberFormat> Kernel<Colours<P>> for HopGradient {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        unsafe { self.over::<P, 1>(i, mu) }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.geometry.group_sites()
    }
}
// SAFETY: as above.
unsafe impl<P: NumberFormat> Kernel<ThreeSites<Colours<P>>> for HopGradient {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        unsafe { self.over::<P, 3>(i, mu) }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.geometry.group_sites()
    }
}

impl HopGradient {
    /// Computes the gradient of hops over `STEPS` sites, 1 or 3.
    #[inline(always)]
    unsafe fn over<P: NumberFormat, const STEPS: u32>(&self, i: u32, mu: u32) {
        let n = self.geometry.site_for::<P::Real>(i, self.parity);
        unsafe {
            let gradient = self.pairs.sum::<P>(&self.geometry, &n, self.parity, mu, STEPS);
            self.out.store::<P::Real>(i, mu, &gradient.scale(P::Real::from_f64(self.factor)));
        }
    }
}

/// Adds the contribution of a staple of V in direction ν to the gradient of U_ν. The gradient with respect to the
/// staple is `c` G.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StapleGradient {
    /// Links U that start at the even and at the odd sites.
    pub links: [ThinLinks; 2],
    /// V, the paths from x to x+μ̂, on the even and on the odd sites.
    pub path: [Matrices; 2],
    /// Gradient G on the even and on the odd sites.
    pub gradient: [Matrices; 2],
    /// Gradient of U_ν on the sites of `parity`, to which the kernel adds.
    pub sum: Matrices,
    /// Geometry of the bordered lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// μ
    pub mu: u32,
    /// ν
    pub nu: u32,
    /// c
    pub coefficient: f64,
}
// SAFETY: call i writes the gradient at site i only, which it reads nowhere else.
unsafe impl<T: Element> Kernel<T> for StapleGradient {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let StapleGradient { geometry: g, mu, nu, parity: here, .. } = *self;
        let there = 1 - here;
        let y = g.site_for::<T>(i, here);
        let (ahead, behind, up) = (step(&g, &y, mu, true), step(&g, &y, mu, false), step(&g, &y, nu, true));
        let above = step(&g, &g.site_for::<T>(behind, there), nu, true);
        unsafe {
            let (v, w) = (&self.path, &self.gradient);
            let right = {
                let side = link::<T>(&self.links, there, ahead, nu);
                let first = matrix(w, here, i) * (side * matrix(v, there, up).adjoint()).settled();
                (first + matrix(v, here, i) * (side * matrix(w, there, up).adjoint()).settled()).settled()
            };
            let left = {
                let side = link::<T>(&self.links, there, behind, nu);
                let first = (matrix(w, there, behind).adjoint() * side).settled() * matrix(v, here, above);
                first + (matrix(v, there, behind).adjoint() * side).settled() * matrix(w, here, above)
            };
            let sum = self.sum.load::<T>(i, Access::Own) + (right + left).scale(T::from_f64(self.coefficient));
            self.sum.store(i, &sum);
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.geometry.group_sites()
    }
}

/// Adds the contributions of long links U_μ(x) U_μ(x+μ̂) U_μ(x+2μ̂) to the gradients of U. The gradient with respect to
/// the long links is `c` G. The direction μ takes the place of the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LongGradient {
    /// Links U that start at the even and at the odd sites.
    pub links: [ThinLinks; 2],
    /// Gradient G on the even and on the odd sites.
    pub gradient: [ThinLinks; 2],
    /// Gradient of U on the sites of `parity`, to which the kernel adds.
    pub sum: ThinLinks,
    /// Geometry of the bordered lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// c
    pub coefficient: f64,
}
// SAFETY: call (i, μ) writes the gradient of U_μ at site i only, which it reads nowhere else.
unsafe impl<T: Element> Kernel<T> for LongGradient {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let (g, here, there) = (self.geometry, self.parity, 1 - self.parity);
        let y = g.site_for::<T>(i, here);
        let ahead = g.site_for::<T>(step(&g, &y, mu, true), there);
        let behind = g.site_for::<T>(step(&g, &y, mu, false), there);
        let (second, last) = (step(&g, &ahead, mu, true), step(&g, &behind, mu, false));
        unsafe {
            let (u, w) = (&self.links, &self.gradient);
            let after = link::<T>(u, there, ahead.index, mu).adjoint();
            let before = link::<T>(u, there, behind.index, mu).adjoint();
            let sum = link(w, here, i, mu) * (link(u, here, second, mu).adjoint() * after);
            let sum = sum + before * (link(w, there, behind.index, mu) * after);
            let sum = sum + before * (link(u, here, last, mu).adjoint() * link(w, here, last, mu));
            let sum = self.sum.load::<T>(i, mu, Access::Own) + sum.scale(T::from_f64(self.coefficient));
            self.sum.store(i, mu, &sum);
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.geometry.group_sites()
    }
}

/// Combination of matrices, X ← a X + b Y, where X and Y have one matrix on each site.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CombineMatrices {
    /// X
    pub out: Matrices,
    /// Y
    pub input: Matrices,
    /// Factor a of X; if a = 0, X is not read.
    pub a: f64,
    /// b
    pub b: f64,
}
// SAFETY: call i reads and writes matrix i only.
unsafe impl<T: Element> Kernel<T> for CombineMatrices {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let y = self.input.load::<T>(i, Access::Shared).scale(T::from_f64(self.b));
            let sum = if self.a == 0.0 { y } else { y + self.out.load::<T>(i, Access::Own).scale(T::from_f64(self.a)) };
            self.out.store(i, &sum);
        }
    }
}

/// Converts the gradient G of W = V (V†V)^(−1/2), the matrix in U(3) closest to V, into the gradient of V: G ← 2 W Y. The
/// direction μ takes the place of the right-hand side.
///
/// With H = (V†V)^(1/2) = W†V and dW = W X, where X is anti-Hermitian, dV = dW H + W dH gives
///
/// H X + X H = W†dV − dV†W,
///
/// whose solution in the basis of the eigenvectors of H divides by sums of eigenvalues, h_j + h_k. This map is self-adjoint, so
/// that Re tr(G†dW) = Re tr((2 W Y)†dV) with H Y + Y H = (W†G − G†W)/2. It is the derivative that Wong and Woloshyn (2007) and
/// Bazavov et al. (2010, appendix C) write with the matrices of V†V.
///
/// A small singular value h of V makes the gradient large. If the smallest h² is below `cutoff`, every h in the sums is
/// replaced by √(h² + cutoff), as in MILC's force (Bazavov et al. 2010). [`SmallSingularValues`] counts such links.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ProjectionGradient {
    /// V
    pub links: ThinLinks,
    /// W
    pub unitary: ThinLinks,
    /// G
    pub gradient: ThinLinks,
    /// Threshold for the smallest h²: if it is below `cutoff`, `cutoff` is added to every h².
    pub cutoff: f64,
}

/// (V†V)^(1/2), computed from V and the unitary matrix W closest to V.
#[inline(always)]
fn hermitian_factor<T: Real>(v: Su3<T>, w: Su3<T>) -> Hermitian<T> {
    Hermitian::part_of(w.adjoint() * v)
}

/// Returns the smallest of three numbers.
#[inline(always)]
fn smallest<T: Real>([a, b, c]: [T; 3]) -> T {
    let first = (b - a).where_positive(a, b);
    (c - first).where_positive(first, c)
}

/// Returns the gradient with respect to V, computed from V, W, the gradient with respect to W, and the cutoff, as
/// [`ProjectionGradient`] describes.
#[inline(always)]
pub fn gradient_before_projection<T: Real>(v: Su3<T>, w: Su3<T>, gradient: Su3<T>, cutoff: T) -> Su3<T> {
    let (h, e) = hermitian_factor(v, w).eigen();
    let least = smallest(h);
    let guard = (least.mul_add(-least, cutoff)).where_positive(cutoff, T::ZERO);
    let [p, q, r] = h;
    macro_rules! guarded {
        ($h:ident) => {
            $h.mul_add($h, guard).sqrt_or_zero()
        };
    }
    let (p, q, r) = (guarded!(p), guarded!(q), guarded!(r));
    let of_w = w.adjoint() * gradient;
    // `turned` is W†G − G†W in the basis of the eigenvectors of H. Division by h_j + h_k changes it to 2 Y.
    let turned = (e.adjoint() * (of_w - of_w.adjoint()) * e).0;
    let (pq, pr, qr) = ((p + q).reciprocal(), (p + r).reciprocal(), (q + r).reciprocal());
    let (pp, qq, rr) = ((p + p).reciprocal(), (q + q).reciprocal(), (r + r).reciprocal());
    macro_rules! divided {
        ($($sum:ident $j:literal $k:literal),*) => {
            [$(turned[$j][$k].scale($sum)),*]
        };
    }
    let first: [Complex<T>; 3] = divided!(pp 0 0, pq 0 1, pr 0 2);
    let second = divided!(pq 1 0, qq 1 1, qr 1 2);
    let third = divided!(pr 2 0, qr 2 1, rr 2 2);
    w * (e * Su3([first, second, third]) * e.adjoint())
}

// SAFETY: call (i, μ) reads and writes link μ of site i only.
unsafe impl<T: Element> Kernel<T> for ProjectionGradient {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        unsafe {
            let (v, w) = (self.links.load::<T>(i, mu, Access::Shared), self.unitary.load::<T>(i, mu, Access::Shared));
            let gradient = self.gradient.load::<T>(i, mu, Access::Own);
            self.gradient.store(i, mu, &gradient_before_projection(v, w, gradient, T::from_f64(self.cutoff)));
        }
    }
}

/// Counts the links V that have a singular value whose square is below `cutoff`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SmallSingularValues {
    /// Links V that start at the sites of one parity of the bordered lattice.
    pub links: ThinLinks,
    /// Unitary matrices W = V (V†V)^(−1/2) of the links V.
    pub unitary: ThinLinks,
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Threshold for the square of a singular value.
    pub cutoff: f64,
}
// SAFETY: reads only.
unsafe impl Reduction<()> for SmallSingularValues {
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 1] {
        let at = self.lattice.site(i, self.parity).index;
        let (mut count, mut mu) = (0.0, 0);
        while mu < 4 {
            let (v, w) = unsafe {
                (self.links.load::<f64>(at, mu, Access::Shared), self.unitary.load::<f64>(at, mu, Access::Shared))
            };
            let least = smallest(hermitian_factor(v, w).eigen().0);
            count += (least * least < self.cutoff) as u32 as f64;
            mu += 1;
        }
        [count]
    }
}

crate::kernels! { FAMILY = "fermion_force";
    kernel NAIVE_FORCE "naive_force": [NaiveForce, in lanes] => fermion_forces;
    kernel HOP_GRADIENT "hop_gradient": [HopGradient, in lanes] => wide_colours;
    kernel LONG_HOP_GRADIENT "long_hop_gradient": [HopGradient as ThreeSites, in lanes] => wide_colours;
    kernel STAPLE_GRADIENT "staple_gradient": [StapleGradient, in lanes] => real_numbers;
    kernel LONG_GRADIENT "long_gradient": [LongGradient, in lanes] => real_numbers;
    kernel COMBINE_MATRICES "combine_matrices": [CombineMatrices, in lanes] => real_numbers;
    kernel PROJECTION_GRADIENT "projection_gradient": [ProjectionGradient, in lanes] => real_numbers;
    observe SMALL_SINGULAR_VALUES "small_singular_values": [SmallSingularValues] => once;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::complex;
    use crate::smeared::polar;

    /// Returns a random matrix with numbers between −1 and 1.
    fn matrix(seed: u64) -> Su3<f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        Su3([(); 3].map(|()| [(); 3].map(|()| complex(next(), next()))))
    }
    /// Re tr (A†B)
    fn product(a: Su3<f64>, b: Su3<f64>) -> f64 {
        (a.adjoint() * b).re_trace()
    }

    /// Compares with finite differences of the projection.
    #[test]
    fn gradients_are_those_of_the_projection() {
        for seed in 1..40 {
            let (mut v, g, d) = (matrix(seed), matrix(100 + seed), matrix(200 + seed));
            if seed % 4 == 0 {
                // Singular values that are equal, and then nearly equal.
                v = polar(&v).scale(0.7);
            } else if seed % 4 == 1 {
                v = polar(&v).scale(0.7) + matrix(300 + seed).scale(1e-7);
            }
            let h = 1e-3 * polar_condition(v);
            let at = |t: f64| product(g, polar(&(v + d.scale(t))));
            let pair = |k: f64| at(k * h) - at(-k * h);
            let expected = (45.0 * pair(1.0) - 9.0 * pair(2.0) + pair(3.0)) / (60.0 * h);
            let got = product(gradient_before_projection(v, polar(&v), g, 5e-5), d);
            assert!((got - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{seed}: {got} instead of {expected}");
        }
    }
    /// Returns the smallest singular value.
    fn polar_condition(v: Su3<f64>) -> f64 {
        smallest(hermitian_factor(v, polar(&v)).eigen().0)
    }

    /// Checks that below the cutoff a gradient does not grow any more.
    #[test]
    fn small_singular_values_are_guarded() {
        let (v, g, cutoff) = (matrix(7), matrix(8), 5e-5);
        let w = polar(&v);
        let (_, e) = hermitian_factor(v, w).eigen();
        let with = |least: f64| {
            let h = Hermitian { diagonal: [least, 0.9, 1.1], upper: [Complex::ZERO; 3] }.matrix();
            let made = gradient_before_projection(w * (e * h * e.adjoint()), w, g, cutoff);
            product(made, made).sqrt()
        };
        let (above, below, far_below) = (with(0.0072), with(0.007), with(1e-6));
        let unguarded = {
            let h = Hermitian { diagonal: [1e-6, 0.9, 1.1], upper: [Complex::ZERO; 3] }.matrix();
            let made = gradient_before_projection(w * (e * h * e.adjoint()), w, g, 0.0);
            product(made, made).sqrt()
        };
        assert!(above > below && far_below < 1.5 * above && unguarded > 1e3 * far_below);
    }
}
