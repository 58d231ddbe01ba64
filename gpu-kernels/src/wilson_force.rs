//! The force of Wilson-like fermions.
//!
//! Forces are made of forms B = Re Σ_j Y_j† M X_j with M = A − h D̃. The vectors are taken not to depend on the links: dB = Re
//! Σ_{n,μ} tr (G†_μ(n) dU_μ(n)). G is the sum of two parts.
//!
//! **Hops.** D̃ has P^{∓μ} = 1 ∓ γ_μ beside U_μ and U†_μ ([`wilson`](crate::wilson)), so that
//!
//! G_μ(n) = −h f_μ(n) Σ_j [Y_j(n) (P^{−μ} X_j(n+μ̂))† + X_j(n) (P^{+μ} Y_j(n+μ̂))†],
//!
//! summed over spins, where f is 1, or in t the anisotropy with the sign of the boundary condition.
//!
//! **The clover term** is A = d + (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν ([`clover`](crate::clover)). With the trace R_μν = Σ_j tr_spin
//! (σ_μν X_j Y_j†) the form changes by Re tr (W_μν dQ_μν), where W_μν = (i c_μν / 16) (R_μν + R†_μν) is anti-Hermitian and Q_μν
//! is the sum of the four plaquettes around a site. The same expression with A⁻¹ in place of Σ_j X_j Y_j† is the derivative of
//! tr ln A. Each plaquette with U_μ(n) is in the Q of its four corners. Let A, B and C be its three other links on the way from
//! n+μ̂ back to n, and W_1 to W_4 the W at its corners n+μ̂, n+μ̂±ν̂, n±ν̂ and n. Then
//!
//! G†_μ(n) = Σ ± \[(W_1 A + A W_2) B C + A B (W_3 C + C W_4)\],
//!
//! with the sign plus for plaquettes that turn from μ to ν > μ. (Wilson-clover by HMC: Jansen and Liu 1996.)
//!
//! **The exponential clover term** d exp(C/d), where C is the clover term without d, changes by ∫₀¹ exp(sC/d) dC exp((1−s)C/d)
//! ds. Under a trace with Z = Σ_j X_j Y_j† this is Re tr (Z′ dC) with Z′ = ∫₀¹ exp((1−s)C/d) Z exp(sC/d) ds. C is Hermitian, so
//! that the Hermitian part of Z is sufficient, one block for each chirality. Its Z′ is Hermitian as well, and gives W as A⁻¹
//! does. ln det A does not change, because tr C = 0.
use crate::algebra::{Axis, Colour, Complex, Projector, Real, Su3, elementary};
use crate::clover::{exponential_derivative, scaled};
use crate::field::{Clover, Field, ThinLinks};
use crate::lattice::{Bordered, Site};
use crate::memory::{Access, opaque};
use crate::smeared::{link, of, step};
use crate::storage::{Block, CloverFormat, Double, Element, NumberFormat, Spinors, StoreBlock, lower_index};
use crate::{Kernel, Reduction};

/// Adds the contribution of hops between the vectors X and Y to the gradient G. The direction μ takes the place of the
/// right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SpinorHopGradient {
    /// Vectors X on the even and on the odd sites, with a border in the partitioned directions.
    pub x: [Field; 2],
    /// Vectors Y on the even and on the odd sites, with a border in the partitioned directions.
    pub y: [Field; 2],
    /// Number of vectors X, and of vectors Y.
    pub count: u32,
    /// Lattice of the vectors X and Y.
    pub vectors: Bordered,
    /// Gradient G on the sites of `parity` of the bordered lattice.
    pub gradient: ThinLinks,
    /// Lattice of the gradient.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// −h
    pub factor: f64,
    /// Anisotropy of hops in t.
    pub time: f64,
    /// Sign of hops across the end of the whole lattice in t. It is used only if t is not partitioned; otherwise the
    /// border of the vectors contains the sign.
    pub across: f64,
}

// SAFETY: call (i, μ) reads and writes G_μ at site i only.
unsafe impl<P: NumberFormat> Kernel<P> for SpinorHopGradient {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        unsafe {
            match mu {
                0 => self.along::<P>(i, 0, Axis::X),
                1 => self.along::<P>(i, 1, Axis::Y),
                2 => self.along::<P>(i, 2, Axis::Z),
                _ => self.along::<P>(i, 3, Axis::T),
            }
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.vectors.group_sites().min(self.lattice.group_sites())
    }
}

impl SpinorHopGradient {
    /// Computes the contribution of hops in one direction.
    #[inline(always)]
    unsafe fn along<P: NumberFormat>(&self, i: u32, mu: u32, axis: Axis) {
        let g = &self.vectors.geometry;
        let n = self.vectors.site_for::<P::Real>(i, self.parity);
        let (ahead, there) = (g.neighbour(&n, mu as usize, true), 1 - self.parity);
        let (minus, plus) = (Projector::minus(axis), Projector::plus(axis));
        let mut sum = Su3::<P::Real>::ZERO;
        let mut j = 0;
        while j < self.count {
            unsafe {
                // Half spinors hold two of the four spins of P X and P Y. The sum over these two spins is half of that over all four, which
                // is twice the required sum because P² = 2 P; the factors cancel.
                let here = of(&self.y, self.parity).projected::<P, _>(n.index, j, minus).value.0;
                let next = of(&self.x, there).projected::<P, _>(ahead, j, minus).value.0;
                sum = (sum + Su3::outer(here[0], next[0]) + Su3::outer(here[1], next[1])).settled();
                let here = of(&self.x, self.parity).projected::<P, _>(n.index, j, plus).value.0;
                let next = of(&self.y, there).projected::<P, _>(ahead, j, plus).value.0;
                sum = (sum + Su3::outer(here[0], next[0]) + Su3::outer(here[1], next[1])).settled();
            }
            j += 1;
        }
        // In t, projectors keep two spins and double each of them.
        let factor = if mu == 3 { 2.0 * self.factor * self.time } else { self.factor };
        let factor = P::Real::from_f64(factor);
        let factor =
            if mu == 3 { factor.times_where(g.crosses_end(&n, true), P::Real::from_f64(self.across)) } else { factor };
        let at = self.lattice.site_for::<P::Real>(i, self.parity).index;
        unsafe {
            let sum = self.gradient.load::<P::Real>(at, mu, Access::Own) + sum.scale(factor);
            self.gradient.store(at, mu, &sum);
        }
    }
}

/// Matrices W of all planes on the sites of one parity of a bordered lattice. The planes (y, z), (x, z), (x, y) are
/// stored like links in the first three directions of the first field, and the planes (x, t), (y, t), (z, t) like those
/// of the second.
pub type Insertions = [ThinLinks; 2];

/// Computes the matrices W on the sites of one parity from Σ_j X_j Y_j†. A number k from 0 to 2 takes the place of the
/// right-hand side. It stands for two planes, those of σ_{k+1} in both chiralities.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PairInsertion {
    /// Vectors X on the sites of `parity`.
    pub x: Field,
    /// Vectors Y on the sites of `parity`.
    pub y: Field,
    /// Number of vectors X, and of vectors Y.
    pub count: u32,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Matrices W on the sites of `parity` of the bordered lattice.
    pub out: Insertions,
    /// Lattice of the matrices `out`.
    pub lattice: Bordered,
    /// Coefficients c_μν of the spatial planes, then of the planes with t.
    pub coefficients: [f64; 2],
}

// SAFETY: call (i, k) writes matrices number k at site i only.
unsafe impl<P: NumberFormat> Kernel<P> for PairInsertion {
    #[inline(always)]
    unsafe fn site(&self, i: u32, k: u32) {
        let (mut upper, mut lower) = (Su3::<P::Real>::ZERO, Su3::<P::Real>::ZERO);
        let mut j = 0;
        while j < self.count {
            let ([a, b, c, d], [p, q, r, s]) =
                unsafe { (self.x.load::<Spinors<P>>(i, j).0, self.y.load::<Spinors<P>>(i, j).0) };
            // The two spins of a chirality are √2 times the upper or the lower spins of the DeGrand–Rossi basis.
            let ([u, v], [w, z]) = (pauli(k, [a - c, b - d]), pauli(k, [a + c, b + d]));
            upper = (upper + Su3::outer(u, p - r) + Su3::outer(v, q - s)).settled();
            lower = (lower + Su3::outer(w, p + r) + Su3::outer(z, q + s)).settled();
            j += 1;
        }
        let at = self.lattice.site_for::<P::Real>(i, self.parity).index;
        unsafe { store(&self.out, (at, k), [upper, lower], self.coefficients.map(|c| 0.5 * c)) }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// σ_{k+1} applied to two spins.
#[inline(always)]
fn pauli<T: Real>(k: u32, [u, v]: [Colour<T>; 2]) -> [Colour<T>; 2] {
    match k {
        0 => [v, u],
        1 => [v.map(|z| -z.times_i()), u.map(|z| z.times_i())],
        _ => [u, v.map(|z| -z)],
    }
}

/// Stores W in the two planes of number k from tr_spin (σ_{k+1} Z) for Z in both chiralities. A has σ_1 with H_yz ∓ H_xt, σ_2
/// with H_xz ± H_yt and σ_3 with H_xy ∓ H_zt, with upper signs for the upper spins.
#[inline(always)]
unsafe fn store<T: Element>(out: &Insertions, (at, k): (u32, u32), [upper, lower]: [Su3<T>; 2], c: [f64; 2]) {
    let (space, time) = (upper + lower, if k == 1 { upper - lower } else { lower - upper });
    unsafe {
        out[0].store(at, k, &insertion(space, c[0]));
        out[1].store(at, k, &insertion(time, c[1]));
    }
}

/// (i c / 16) (R + R†)
#[inline(always)]
fn insertion<T: Real>(r: Su3<T>, c: f64) -> Su3<T> {
    (r + r.adjoint()).times_i().scale(T::from_f64(c / 16.0)).settled()
}

/// Hermitian part of Σ_j X_j Y_j† on the sites of one parity. The chirality takes the place of the right-hand side: 0 for the
/// upper spins of the DeGrand–Rossi basis, 1 for the lower spins.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PairBlocks {
    /// Vectors X on the sites of one parity.
    pub x: Field,
    /// Vectors Y on the sites of one parity.
    pub y: Field,
    /// Number of vectors X, and of vectors Y.
    pub count: u32,
    /// Blocks of the result, times ½ like the stored blocks of a clover term.
    pub out: Clover,
}

// SAFETY: call (i, chirality) writes this block of site i only.
unsafe impl<P: StoreBlock> Kernel<P> for PairBlocks {
    #[inline(always)]
    unsafe fn site(&self, i: u32, chirality: u32) {
        let sign = if chirality == 0 { -P::Real::ONE } else { P::Real::ONE };
        let mut sum = Block::<P::Real>::ZERO;
        let mut j = 0;
        while j < self.count {
            let (u, v) = unsafe {
                (two_spins(self.x.load::<Spinors<P>>(i, j).0, sign), two_spins(self.y.load::<Spinors<P>>(i, j).0, sign))
            };
            macro_rules! row {
                ($a:literal: $($b:literal)*) => {
                    sum.diagonal[$a] = sum.diagonal[$a] + (u[$a].re * v[$a].re + u[$a].im * v[$a].im);
                    $(
                        let product = u[$a] * v[$b].conj() + v[$a] * u[$b].conj();
                        sum.lower[lower_index($a, $b)] = sum.lower[lower_index($a, $b)] + product;
                    )*
                };
            }
            row!(0: );
            row!(1: 0);
            row!(2: 0 1);
            row!(3: 0 1 2);
            row!(4: 0 1 2 3);
            row!(5: 0 1 2 3 4);
            j += 1;
        }
        // Spins are √2 times too large. Elements off the diagonal are twice those of the Hermitian part.
        let mut out = scaled(&in_double(&sum), 0.25 * crate::storage::HALF);
        let mut k = 0;
        while k < 6 {
            out.diagonal[k] *= 2.0;
            k += 1;
        }
        unsafe { self.out.store_block::<P>(i, chirality as usize, &out) }
    }
}

/// √2 times the upper two spins (sign −1) or the lower two spins (sign 1) of the DeGrand–Rossi basis, each with three colours.
#[inline(always)]
fn two_spins<T: Real>([a, b, c, d]: [Colour<T>; 4], sign: T) -> [Complex<T>; 6] {
    let (a, b, c, d) = (a.0, b.0, c.0, d.0);
    [
        a[0] + c[0].scale(sign),
        a[1] + c[1].scale(sign),
        a[2] + c[2].scale(sign),
        b[0] + d[0].scale(sign),
        b[1] + d[1].scale(sign),
        b[2] + d[2].scale(sign),
    ]
}

/// Computes Z′ = ∫₀¹ exp((1−s)C/d) Z exp(sC/d) ds for Hermitian blocks Z, in double precision, and adds it to `out` or
/// overwrites `out` with it. The chirality takes the place of the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ExponentialDerivative {
    /// Blocks of C in double precision, times ½ like the stored blocks of a clover term.
    pub term: Clover,
    /// Blocks of Z, times ½ like the stored blocks of a clover term.
    pub blocks: Clover,
    /// Blocks of the sum of Z′, times ½ like the stored blocks of a clover term.
    pub out: Clover,
    /// d
    pub diagonal: f64,
    /// 1 to add to `out`, 0 to overwrite it without reading it.
    pub add: u32,
}

// SAFETY: call (i, chirality) reads and writes this block of site i only.
unsafe impl<P: StoreBlock> Kernel<P> for ExponentialDerivative {
    #[inline(always)]
    unsafe fn site(&self, i: u32, chirality: u32) {
        let at = chirality as usize;
        unsafe {
            let (term, _) = self.term.load::<Double>(i, at);
            let x = scaled(&term, 1.0 / (crate::storage::HALF * self.diagonal));
            let mut sum = exponential_derivative(&x, &in_double(&self.blocks.load::<P>(i, at).0));
            if self.add != 0 {
                let before = in_double(&self.out.load::<P>(i, at).0);
                let mut k = 0;
                while k < 6 {
                    sum.diagonal[k] += before.diagonal[k];
                    k += 1;
                }
                let mut k = 0;
                while k < 15 {
                    sum.lower[k] = sum.lower[k] + before.lower[k];
                    k += 1;
                }
            }
            self.out.store_block::<P>(i, at, &sum);
        }
    }
}

#[inline(always)]
fn in_double<T: Real>(b: &Block<T>) -> Block<f64> {
    let mut out = Block::<f64>::ZERO;
    let mut k = 0;
    while k < 6 {
        out.diagonal[k] = b.diagonal[k].to_f64();
        k += 1;
    }
    let mut k = 0;
    while k < 15 {
        out.lower[k] = Complex { re: b.lower[k].re.to_f64(), im: b.lower[k].im.to_f64() };
        k += 1;
    }
    out
}

/// Computes the matrices W on the sites of one parity from a multiple of A⁻¹, or from other Hermitian blocks. The
/// number k of [`PairInsertion`] takes the place of the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BlockInsertion {
    /// Blocks of A⁻¹ on the sites of `parity`, times ½ like the stored blocks of a clover term.
    pub blocks: Clover,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Matrices W on the sites of `parity` of the bordered lattice.
    pub out: Insertions,
    /// Lattice of the matrices `out`.
    pub lattice: Bordered,
    /// Factor that multiplies A⁻¹.
    pub factor: f64,
    /// Coefficients c_μν of the spatial planes, then of the planes with t.
    pub coefficients: [f64; 2],
}

// SAFETY: call (i, k) writes matrices number k at site i only.
unsafe impl<P: CloverFormat> Kernel<P> for BlockInsertion {
    #[inline(always)]
    unsafe fn site(&self, i: u32, k: u32) {
        let at = self.lattice.site_for::<P::Real>(i, self.parity).index;
        unsafe {
            let (block, scale) = self.blocks.load::<P>(i, 0);
            let upper = spin_trace(k, &block).scale(scale);
            let (block, scale) = self.blocks.load::<P>(i, 1);
            let lower = spin_trace(k, &block).scale(scale);
            let factor = self.factor / crate::storage::HALF;
            store(&self.out, (at, k), [upper, lower], self.coefficients.map(|c| factor * c));
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

/// tr_spin (σ_{k+1} Z) of a Hermitian block Z.
#[inline(always)]
fn spin_trace<T: Real>(k: u32, z: &Block<T>) -> Su3<T> {
    let mut out = Su3::ZERO;
    let mut a = 0;
    while a < 3 {
        let mut b = 0;
        while b < 3 {
            // `below` and `above` are elements (a, b) of the lower left 3×3 matrix of Z and of its adjoint.
            let (below, above) = (z.lower[lower_index(3 + a, b)], z.lower[lower_index(3 + b, a)].conj());
            out.0[a][b] = match k {
                0 => below + above,
                1 => (above - below).times_i(),
                _ => element(z, a, b) - element(z, 3 + a, 3 + b),
            };
            b += 1;
        }
        a += 1;
    }
    out
}

/// Returns element (i, j) of a Hermitian block.
#[inline(always)]
fn element<T: Real>(z: &Block<T>, i: usize, j: usize) -> Complex<T> {
    if i == j {
        Complex { re: z.diagonal[i], im: T::ZERO }
    } else if j < i {
        z.lower[lower_index(i, j)]
    } else {
        z.lower[lower_index(j, i)].conj()
    }
}

/// Sum of ln |det Z| over both blocks of every site, where Z is the stored block times a factor that brings
/// determinants near 1.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LogDeterminant {
    /// Blocks on the sites of one parity, in double precision.
    pub blocks: Clover,
    /// Factor that multiplies the stored blocks.
    pub factor: f64,
}
// SAFETY: reads only.
unsafe impl Reduction<()> for LogDeterminant {
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) -> [f64; 1] {
        let (upper, lower) = unsafe { (self.blocks.load::<Double>(i, 0).0, self.blocks.load::<Double>(i, 1).0) };
        let product = self.determinant(&upper) * self.determinant(&lower);
        let product = if product < 0.0 { -product } else { product };
        // The result is NaN if a block is singular or the product is not finite.
        let is_normal = product > f64::MIN_POSITIVE && product < f64::MAX;
        [if is_normal { elementary::ln(product) } else { f64::NAN }]
    }
}
impl LogDeterminant {
    /// det Z, computed as the product of the pivots of Z = L D L†.
    #[inline(always)]
    fn determinant(&self, b: &Block<f64>) -> f64 {
        let mut l = [[Complex::<f64>::ZERO; 6]; 6];
        let (mut d, mut product) = ([0.0f64; 6], 1.0);
        for j in 0..6 {
            let mut pivot = b.diagonal[j] * self.factor;
            for k in 0..j {
                pivot -= l[j][k].norm_sqr() * d[k];
            }
            d[j] = pivot;
            product *= pivot;
            let scale = pivot.reciprocal();
            for i in j + 1..6 {
                let mut sum = b.lower[lower_index(i, j)].scale(self.factor);
                for k in 0..j {
                    sum = sum - (l[i][k] * l[j][k].conj()).scale(d[k]);
                }
                l[i][j] = sum.scale(scale);
            }
        }
        product
    }
}

/// Adds the contribution of the field strength in the clover term to the gradient G. The direction μ takes the place of
/// the right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverGradient {
    /// Links U that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Matrices W on the even and on the odd sites of the bordered lattice.
    pub insertions: [Insertions; 2],
    /// Gradient G on the sites of `parity` of the bordered lattice.
    pub gradient: ThinLinks,
    /// Lattice of the links, the matrices W and the gradient.
    pub lattice: Bordered,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}

// SAFETY: call (i, μ) reads and writes G_μ at site i only.
unsafe impl<T: Element> Kernel<T> for CloverGradient {
    #[inline(always)]
    unsafe fn site(&self, i: u32, mu: u32) {
        let (g, here, there) = (self.lattice.geometry, self.parity, 1 - self.parity);
        let n = self.lattice.site_for::<T>(i, here);
        let ahead = g.site_for::<T>(step(&g, &n, mu, true), there);
        let mut sum = Su3::<T>::ZERO;
        let mut nu = 0;
        while nu < 4 {
            if nu != mu {
                unsafe {
                    sum = self.add_plaquette::<T, true>(sum, (&n, &ahead), (mu, nu));
                    sum = self.add_plaquette::<T, false>(sum, (&n, &ahead), (mu, nu));
                }
            }
            nu += 1;
        }
        unsafe {
            let sum = self.gradient.load::<T>(n.index, mu, Access::Own) + sum.adjoint();
            self.gradient.store(n.index, mu, &sum);
        }
    }
    #[inline(always)]
    fn group_sites(&self) -> u32 {
        self.lattice.group_sites()
    }
}

impl CloverGradient {
    /// Adds ± \[(W_1 A + A W_2) B C + A B (W_3 C + C W_4)\] of the plaquette in direction ν, or against it, to `sum`. Products
    /// are computed one after the other, and links are read again instead of kept, because registers are few.
    #[inline(always)]
    unsafe fn add_plaquette<T: Element, const FORWARD: bool>(
        &self,
        sum: Su3<T>,
        (n, ahead): (&Site, &Site),
        (mu, nu): (u32, u32),
    ) -> Su3<T> {
        let (g, here, there) = (&self.lattice.geometry, self.parity, 1 - self.parity);
        let (side, corner) = (step(g, n, nu, FORWARD), step(g, ahead, nu, FORWARD));
        // a and c are the sites at which the links A and C start. They have the lower coordinate in direction ν.
        let (a, c) = if FORWARD { ((there, ahead.index), (here, n.index)) } else { ((here, corner), (there, side)) };
        // The matrix W of a plane has the orientation from the lower direction to the higher one.
        let sign = if FORWARD == (mu < nu) { T::ONE } else { -T::ONE };
        let again = |(parity, at): (u32, u32)| (parity, opaque(at));
        unsafe {
            let link = self.side::<T, FORWARD>(a, nu);
            let path = (self.insertion::<T>(there, ahead.index, mu, nu) * link).settled();
            let path = (path + link * self.insertion::<T>(here, corner, mu, nu)).settled();
            let path = (path * self.side::<T, false>((there, side), mu)).settled();
            let path = match FORWARD {
                true => (path * self.side::<T, false>(c, nu)).settled(),
                false => (path * self.side::<T, true>(c, nu)).settled(),
            };
            let sum = (sum + path.scale(sign)).settled();
            let link = if FORWARD { self.side::<T, false>(again(c), nu) } else { self.side::<T, true>(again(c), nu) };
            let path = (self.insertion::<T>(there, side, mu, nu) * link).settled();
            let path = (path + link * self.insertion::<T>(here, n.index, mu, nu)).settled();
            let path = (self.side::<T, false>(again((there, side)), mu) * path).settled();
            let path = (self.side::<T, FORWARD>(again(a), nu) * path).settled();
            (sum + path.scale(sign)).settled()
        }
    }
    /// Returns U_ν at a site if `PLAIN`, or its Hermitian conjugate otherwise.
    #[inline(always)]
    unsafe fn side<T: Element, const PLAIN: bool>(&self, (parity, at): (u32, u32), nu: u32) -> Su3<T> {
        let u = unsafe { link::<T>(&self.links, parity, at, nu) };
        if PLAIN { u } else { u.adjoint() }
    }
    /// W of the plane (μ, ν) at a site.
    #[inline(always)]
    unsafe fn insertion<T: Element>(&self, parity: u32, at: u32, mu: u32, nu: u32) -> Su3<T> {
        let [space, time] = of(&self.insertions, parity);
        let field = if mu == 3 || nu == 3 { time } else { space };
        // A spatial plane has the number of the direction that it does not contain; a plane with t has the number of
        // its other direction. The sum μ + ν is 1, 2 or 3 for the planes (x, y), (x, z), (y, z).
        let plane = if mu == 3 || nu == 3 { mu + nu - 3 } else { 3 - mu - nu };
        unsafe { field.load(at, plane, Access::Shared) }
    }
}

crate::kernels! { FAMILY = "wilson_force";
    kernel SPINOR_HOP_GRADIENT "spinor_hop_gradient": [SpinorHopGradient, in lanes] => wide_precisions;
    kernel PAIR_INSERTION "pair_insertion": [PairInsertion, in lanes] => wide_precisions;
    kernel BLOCK_INSERTION "block_insertion": [BlockInsertion, in lanes] => wide_precisions;
    setup PAIR_BLOCKS "pair_blocks": [PairBlocks] => wide_precisions;
    setup EXPONENTIAL_DERIVATIVE "exponential_derivative": [ExponentialDerivative] => wide_precisions;
    observe LOG_DETERMINANT "log_determinant": [LogDeterminant] => once;
    setup CLOVER_GRADIENT "clover_gradient": [CloverGradient, in lanes] => real_numbers;
}
