//! The clover term of the Wilson-clover operator (Babich, Clark and Joó 2010, eq. 2), its inverse, and its fusions with the
//! hopping term: [`WilsonDslash`] with [`CloverBlocks`].
//!
//! A(x) = d + (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν(x) with σ_μν = (i/2) \[γ_μ, γ_ν\] and F̂ = (Q − Q†)/8, where Q is the sum of the
//! four plaquettes around x in the plane (μ, ν). In the DeGrand–Rossi basis A has one block for each chirality, d + σ_1 ⊗ (H_yz
//! ∓ H_xt) + σ_2 ⊗ (H_xz ± H_yt) + σ_3 ⊗ (H_xy ∓ H_zt), H_μν = (i/2) c_μν F̂_μν, upper signs for the upper spins.
use crate::Kernel;
use crate::algebra::{Complex, Real, Su3};
use crate::diagonal::{AnyDiagonal, CloverBlocks, DiagonalArguments, SiteDiagonal, TwistedClover};
use crate::dslash::{DslashDot, DslashDots, Plain};
use crate::field::{Clover, Field, ThinLinks};
use crate::lattice::{Bordered, Geometry, Site};
use crate::memory::Access;
use crate::storage::{Block, CloverFormat, Double, HALF, Spinors, StoreClover, lower_index};
use crate::transfer::{HostArray, host_site};
use crate::wilson::{FixedForms, HopForms, Interior, SumForms, WilsonDslash, WilsonFormat};

/// Computes the blocks of the clover term A for the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverTerm {
    /// Links that start at the even and at the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Lattice of the links.
    pub lattice: Bordered,
    /// Blocks of A on the local lattice, times [`HALF`].
    pub out: Clover,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// d
    pub diagonal: f64,
    /// Coefficients c_μν of the spatial planes, then of the planes with t.
    pub coefficients: [f64; 2],
}

impl CloverTerm {
    /// U_μ(x) at the site x.
    #[inline(always)]
    unsafe fn link(&self, (site, parity): (Site, u32), mu: usize) -> Su3<f64> {
        let links = if parity == 0 { self.links[0] } else { self.links[1] };
        unsafe { links.load(site.index, mu as u32, Access::Shared) }
    }
    #[inline(always)]
    fn step(&self, (site, parity): (Site, u32), mu: usize, forward: bool) -> (Site, u32) {
        let g = &self.lattice.geometry;
        (g.site(g.neighbour(&site, mu, forward), 1 - parity), 1 - parity)
    }
    /// The Hermitian matrix H_μν(x) = (i/2) c F̂_μν(x).
    #[inline(always)]
    unsafe fn field_strength(&self, x: (Site, u32), mu: usize, nu: usize, c: f64) -> Su3<f64> {
        unsafe {
            let step = |x, mu, forward| self.step(x, mu, forward);
            let (up, down, right, left) =
                (step(x, mu, true), step(x, mu, false), step(x, nu, true), step(x, nu, false));
            let (down_right, down_left, up_left) = (step(down, nu, true), step(down, nu, false), step(left, mu, true));
            let u = |x, mu| self.link(x, mu);
            // Q is the sum of the four plaquettes that begin and end at x and turn from μ to ν.
            let q = u(x, mu) * u(up, nu) * u(right, mu).adjoint() * u(x, nu).adjoint()
                + u(x, nu) * u(down_right, mu).adjoint() * u(down, nu).adjoint() * u(down, mu)
                + u(down, mu).adjoint() * u(down_left, nu).adjoint() * u(down_left, mu) * u(left, nu)
                + u(left, nu).adjoint() * u(left, mu) * u(up_left, nu) * u(x, mu).adjoint();
            (q - q.adjoint()).times_i().scale(c / 16.0)
        }
    }
}

/// Returns the two blocks d + Σ_k σ_k ⊗ E_k from d and the Hermitian matrices E_k of each chirality, times [`HALF`].
#[inline(always)]
fn block(d: f64, [x, y, z]: [Su3<f64>; 3]) -> Block<f64> {
    // ⎛ d + z    x − i y ⎞
    // ⎝ x + i y  d − z   ⎠
    let mut out = Block::ZERO;
    for i in 0..3 {
        out.diagonal[i] = HALF * (d + z.0[i][i].re);
        out.diagonal[3 + i] = HALF * (d - z.0[i][i].re);
        for j in 0..3 {
            if j < i {
                out.lower[lower_index(i, j)] = z.0[i][j].scale(HALF);
                out.lower[lower_index(3 + i, 3 + j)] = z.0[i][j].scale(-HALF);
            }
            out.lower[lower_index(3 + i, j)] = (x.0[i][j] + y.0[i][j].times_i()).scale(HALF);
        }
    }
    out
}

// SAFETY: call i writes the blocks of site i only.
unsafe impl Kernel<()> for CloverTerm {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let x = (self.lattice.site(i, self.parity), self.parity);
            let [space, time] = self.coefficients;
            let (yz, xt) = (self.field_strength(x, 1, 2, space), self.field_strength(x, 0, 3, time));
            let (xz, yt) = (self.field_strength(x, 0, 2, space), self.field_strength(x, 1, 3, time));
            let (xy, zt) = (self.field_strength(x, 0, 1, space), self.field_strength(x, 2, 3, time));
            let upper = block(self.diagonal, [yz - xt, xz + yt, xy - zt]);
            let lower = block(self.diagonal, [yz + xt, xz - yt, xy + zt]);
            self.out.store::<Double>(i, &[upper, lower]);
        }
    }
}

/// Packs blocks of A from the host for the sites of one parity. The host has two blocks for each site, `[site][chirality]`, each with 21
/// numbers: those of the diagonal, and those below it, row by row.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverPack {
    /// Blocks of A on the host.
    pub host: HostArray,
    /// Blocks of A, times [`HALF`].
    pub out: Clover,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call i writes site i only.
unsafe impl Kernel<()> for CloverPack {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        let first = 42 * host_site(&self.geometry, i, self.parity, 0);
        let mut blocks = [Block::<f64>::ZERO; 2];
        for (chirality, block) in blocks.iter_mut().enumerate() {
            let first = first + 21 * chirality;
            for k in 0..6 {
                block.diagonal[k] = HALF * unsafe { self.host.read(first + k, Access::Once) }.re;
            }
            for k in 0..15 {
                block.lower[k] = unsafe { self.host.read(first + 6 + k, Access::Once) }.scale(HALF);
            }
        }
        unsafe { self.out.store::<Double>(i, &blocks) }
    }
}

/// Inverts the blocks of every site in double precision: `out` = `input`⁻¹.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverInverse {
    /// Blocks of A, times [`HALF`].
    pub input: Clover,
    /// Blocks of A⁻¹, times [`HALF`].
    pub out: Clover,
}
// SAFETY: call i reads and writes site i only.
unsafe impl Kernel<()> for CloverInverse {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let (upper, lower) = (self.input.load::<Double>(i, 0).0, self.input.load::<Double>(i, 1).0);
            self.out.store::<Double>(i, &[inverse(&upper), inverse(&lower)]);
        }
    }
}

/// Returns ½ B⁻¹ from the stored block ½ B: a quarter of its inverse. The decomposition B = L D L† needs a regular B, but not a
/// positive one.
#[inline(always)]
fn inverse(b: &Block<f64>) -> Block<f64> {
    let mut l = [[Complex::<f64>::ZERO; 6]; 6];
    let mut d = [0.0f64; 6];
    for j in 0..6 {
        let mut pivot = b.diagonal[j];
        for k in 0..j {
            pivot -= l[j][k].norm_sqr() * d[k];
        }
        d[j] = pivot;
        let scale = pivot.reciprocal();
        for i in j + 1..6 {
            let mut sum = b.lower[lower_index(i, j)];
            for k in 0..j {
                sum = sum - (l[i][k] * l[j][k].conj()).scale(d[k]);
            }
            l[i][j] = sum.scale(scale);
        }
    }
    // `m` is L⁻¹, a lower triangle with ones on its diagonal. It is computed column by column.
    let mut m = [[Complex::<f64>::ZERO; 6]; 6];
    #[allow(clippy::needless_range_loop, reason = "j is a column of m and a row of m")]
    for j in 0..6 {
        m[j][j] = Complex::ONE;
        for i in j + 1..6 {
            let mut sum = Complex::ZERO;
            for k in j..i {
                sum = sum - l[i][k] * m[k][j];
            }
            m[i][j] = sum;
        }
    }
    // The result is a quarter of L⁻† D⁻¹ L⁻¹.
    let mut out = Block::ZERO;
    for i in 0..6 {
        for j in 0..=i {
            let mut sum = Complex::<f64>::ZERO;
            for k in i..6 {
                sum = sum + (m[k][i].conj() * m[k][j]).scale(0.25 * d[k].reciprocal());
            }
            if i == j {
                out.diagonal[i] = sum.re;
            } else {
                out.lower[lower_index(i, j)] = sum;
            }
        }
    }
    out
}

/// Replaces the blocks of A = d + X by those of d exp(X/d), and computes their inverses, in double precision: the exponential
/// clover term (Francis et al. 2020, eq. 2).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverExponential {
    /// Blocks of A before the launch, and of d exp(X/d) after it, times [`HALF`].
    pub term: Clover,
    /// Blocks of exp(−X/d)/d, times [`HALF`].
    pub inverse: Clover,
    /// d
    pub diagonal: f64,
}
// SAFETY: call i reads and writes site i only.
unsafe impl Kernel<()> for CloverExponential {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let d = self.diagonal;
            let [up, down] = [self.exponential(i, 0, 1.0), self.exponential(i, 1, 1.0)];
            let [up_inverse, down_inverse] = [self.exponential(i, 0, -1.0), self.exponential(i, 1, -1.0)];
            self.inverse.store::<Double>(i, &[scaled(&up_inverse, HALF / d), scaled(&down_inverse, HALF / d)]);
            self.term.store::<Double>(i, &[scaled(&up, HALF * d), scaled(&down, HALF * d)]);
        }
    }
}

impl CloverExponential {
    /// e^{±X/d} for one chirality, from the stored half of A = d + X.
    #[inline(always)]
    unsafe fn exponential(&self, i: u32, chirality: usize, sign: f64) -> Block<f64> {
        let (stored, _) = unsafe { self.term.load::<Double>(i, chirality) };
        let mut x = scaled(&stored, sign / (HALF * self.diagonal));
        let mut k = 0;
        while k < 6 {
            x.diagonal[k] -= sign;
            k += 1;
        }
        exponential(&x)
    }
}

/// c B
#[inline(always)]
pub(crate) fn scaled(b: &Block<f64>, c: f64) -> Block<f64> {
    let mut out = *b;
    let mut k = 0;
    while k < 6 {
        out.diagonal[k] *= c;
        k += 1;
    }
    let mut k = 0;
    while k < 15 {
        out.lower[k] = out.lower[k].scale(c);
        k += 1;
    }
    out
}

/// Returns element (i, j) of a Hermitian block.
#[inline(always)]
fn element(b: &Block<f64>, i: usize, j: usize) -> Complex<f64> {
    if i == j {
        Complex { re: b.diagonal[i], im: 0.0 }
    } else if j < i {
        b.lower[lower_index(i, j)]
    } else {
        b.lower[lower_index(j, i)].conj()
    }
}

/// Returns the product of two Hermitian blocks that commute, which is also Hermitian.
#[inline(always)]
fn product(a: &Block<f64>, b: &Block<f64>) -> Block<f64> {
    let mut out = Block::ZERO;
    for i in 0..6 {
        for j in 0..=i {
            let mut sum = Complex::<f64>::ZERO;
            for k in 0..6 {
                sum = sum + element(a, i, k) * element(b, k, j);
            }
            if i == j {
                out.diagonal[i] = sum.re;
            } else {
                out.lower[lower_index(i, j)] = sum;
            }
        }
    }
    out
}

/// Returns s and 2⁻ˢ, where s is the smallest number of squarings for which no row of X/2ˢ has a sum of absolute values above
/// ½.
#[inline(always)]
fn squarings(x: &Block<f64>) -> (u32, f64) {
    let mut norm = 0.0f64;
    for i in 0..6 {
        let mut sum = 0.0f64;
        for j in 0..6 {
            let z = element(x, i, j);
            sum += (if z.re < 0.0 { -z.re } else { z.re }) + (if z.im < 0.0 { -z.im } else { z.im });
        }
        if sum > norm {
            norm = sum;
        }
    }
    let (mut squarings, mut factor) = (0, 1.0f64);
    // If more than 60 squarings were needed, all numbers of the result would overflow.
    while norm * factor > 0.5 && squarings < 60 {
        factor *= 0.5;
        squarings += 1;
    }
    (squarings, factor)
}

/// exp(X): the power series at X/2ˢ, squared s times.
#[inline(always)]
fn exponential(x: &Block<f64>) -> Block<f64> {
    let (mut squarings, factor) = squarings(x);
    let small = scaled(x, factor);
    // The series in Horner's form is 1 + x (1 + x/2 (1 + x/3 (…))).
    let mut sum = Block::ZERO;
    sum.diagonal = [1.0; 6];
    let mut n = ORDER;
    while n > 0 {
        sum = scaled(&product(&small, &sum), 1.0 / n as f64);
        let mut k = 0;
        while k < 6 {
            sum.diagonal[k] += 1.0;
            k += 1;
        }
        n -= 1;
    }
    while squarings > 0 {
        sum = product(&sum, &sum);
        squarings -= 1;
    }
    sum
}

/// Returns the derivative of exp(X + tH) at t = 0, I = ∫₀¹ exp((1−s) X) H exp(sX) ds. It satisfies tr (H d exp(X)) = tr (I dX).
///
/// I is the upper right block of the exponential of the matrix (X H; 0 X). The series and the squarings of [`exponential`]
/// therefore apply to pairs (E, F) of a diagonal and an upper right block. E is a polynomial of X, and F is Hermitian as well.
#[inline(always)]
pub(crate) fn exponential_derivative(x: &Block<f64>, h: &Block<f64>) -> Block<f64> {
    let (mut squarings, factor) = squarings(x);
    let (x, h) = (scaled(x, factor), scaled(h, factor));
    let (mut sum, mut derivative) = (Block::ZERO, Block::ZERO);
    sum.diagonal = [1.0; 6];
    let mut n = ORDER;
    while n > 0 {
        derivative = scaled(&symmetric_product(&x, &derivative, &h, &sum), 1.0 / n as f64);
        sum = scaled(&product(&x, &sum), 1.0 / n as f64);
        let mut k = 0;
        while k < 6 {
            sum.diagonal[k] += 1.0;
            k += 1;
        }
        n -= 1;
    }
    while squarings > 0 {
        derivative = symmetric_product(&sum, &derivative, &derivative, &sum);
        sum = product(&sum, &sum);
        squarings -= 1;
    }
    derivative
}

/// A B + C D of Hermitian blocks, if this sum is Hermitian.
#[inline(always)]
fn symmetric_product(a: &Block<f64>, b: &Block<f64>, c: &Block<f64>, d: &Block<f64>) -> Block<f64> {
    let mut out = Block::ZERO;
    for i in 0..6 {
        for j in 0..=i {
            let mut sum = Complex::<f64>::ZERO;
            for k in 0..6 {
                sum = sum + element(a, i, k) * element(b, k, j) + element(c, i, k) * element(d, k, j);
            }
            if i == j {
                out.diagonal[i] = sum.re;
            } else {
                out.lower[lower_index(i, j)] = sum;
            }
        }
    }
    out
}

/// Number of terms of the power series of an exponential. The first term that its derivative leaves out is 0.5¹⁴/14! = 7·10⁻¹⁶.
const ORDER: u32 = 14;

/// Computes E = A (A² + μ²)⁻¹ and F = μ (A² + μ²)⁻¹ from the blocks of A, in double precision. The inverse of A + iμγ_5 is E −
/// iγ_5 F.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TwistedCloverInverse {
    /// Blocks of A, times [`HALF`].
    pub input: Clover,
    /// Blocks of E and of F, times [`HALF`].
    pub out: [Clover; 2],
    /// μ
    pub mu: f64,
}
// SAFETY: call i reads and writes site i only.
unsafe impl Kernel<()> for TwistedCloverInverse {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let ((e0, f0), (e1, f1)) = (self.blocks(i, 0), self.blocks(i, 1));
            let [e, f] = self.out;
            e.store::<Double>(i, &[e0, e1]);
            f.store::<Double>(i, &[f0, f1]);
        }
    }
}

impl TwistedCloverInverse {
    /// Returns the blocks of E and of F for one chirality.
    #[inline(always)]
    unsafe fn blocks(&self, i: u32, chirality: usize) -> (Block<f64>, Block<f64>) {
        let (a, _) = unsafe { self.input.load::<Double>(i, chirality) };
        // `square` is half of A² + μ². From it, `inverse` returns half of (A² + μ²)⁻¹.
        let mut square = scaled(&product(&a, &a), 1.0 / HALF);
        let mut k = 0;
        while k < 6 {
            square.diagonal[k] += HALF * self.mu * self.mu;
            k += 1;
        }
        let c = inverse(&square);
        (scaled(&product(&a, &c), 1.0 / HALF), scaled(&c, self.mu))
    }
}

/// Rounds the blocks of A from double precision to precision P.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverConvert {
    /// Blocks of A in double precision.
    pub input: Clover,
    /// Blocks of A in precision P.
    pub out: Clover,
}
// SAFETY: call i writes site i only.
unsafe impl<P: StoreClover> Kernel<P> for CloverConvert {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe { self.out.store::<P>(i, &[0, 1].map(|chirality| self.input.load::<Double>(i, chirality).0)) }
    }
}

/// Computes `out` = A ψ for any kind of diagonal, or A⁻¹ ψ if the arguments describe an inverse.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DiagonalApply {
    /// Field for the result; it may be the field `input`.
    pub out: Field,
    /// ψ
    pub input: Field,
    /// Arguments of A or A⁻¹.
    pub diagonal: DiagonalArguments,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<P: CloverFormat> Kernel<P> for DiagonalApply {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let [image] = AnyDiagonal::apply::<P, 1>(&self.diagonal, i, [self.input.load_own::<Spinors<P>>(i, rhs)]);
            self.out.store::<Spinors<P>>(i, rhs, &image);
        }
    }
}

type WithInverse<F> = Plain<WilsonFormat<F, CloverBlocks, Interior, HopForms>>;
type WithClover<F> = Plain<WilsonFormat<F, CloverBlocks, Interior, SumForms>>;
type WithInverseDot<F> = DslashDot<WilsonFormat<F, CloverBlocks, Interior, FixedForms>>;
type WithInverseDots<F> = DslashDots<WilsonFormat<F, CloverBlocks, Interior, FixedForms>>;
type WithTwist<F> = Plain<WilsonFormat<F, TwistedClover, Interior, HopForms>>;
type WithTwistDots<F> = DslashDots<WilsonFormat<F, TwistedClover, Interior, FixedForms>>;

crate::kernels! { FAMILY = "clover";
    setup CLOVER_TERM "clover_term": [CloverTerm] => once;
    setup CLOVER_PACK "clover_pack": [CloverPack] => once;
    setup CLOVER_INVERSE "clover_inverse": [CloverInverse] => once;
    setup CLOVER_EXPONENTIAL "clover_exponential": [CloverExponential] => once;
    setup TWISTED_CLOVER_INVERSE "twisted_clover_inverse": [TwistedCloverInverse] => once;
    setup CLOVER_CONVERT "clover_convert": [CloverConvert] => precisions;
    kernel DIAGONAL_APPLY "diagonal_apply": [DiagonalApply, in lanes] => precisions;
    kernel CLOVER_DSLASH "clover_dslash": [WilsonDslash as WithInverse, in lanes, any AnyWilsonLinks]
        => double_links, single_links(rhs 2), narrow_links(rhs 2), temporal_links;
    kernel CLOVER_MATRIX "clover_matrix": [WilsonDslash as WithClover, in lanes, any AnyWilsonLinks]
        => double_links, single_links(rhs 2), narrow_links(rhs 2), temporal_links;
    reduce CLOVER_DSLASH_DOT "clover_dslash_dot": [WilsonDslash as WithInverseDot, in lanes, any AnyWilsonLinks]
        => double_links, single_links(rhs 2), narrow_links(rhs 2), temporal_links;
    reduce CLOVER_DSLASH_DOTS "clover_dslash_dots": [WilsonDslash as WithInverseDots, in lanes, any AnyWilsonLinks]
        => double_links, single_links(rhs 2), narrow_links(rhs 2), temporal_links;
    kernel TWISTED_CLOVER_DSLASH "twisted_clover_dslash": [WilsonDslash as WithTwist, any AnyWilsonLinks] => plain_links;
    reduce TWISTED_CLOVER_DSLASH_DOTS "twisted_clover_dslash_dots": [WilsonDslash as WithTwistDots, any AnyWilsonLinks] => plain_links;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::complex;

    type Matrix = [[Complex<f64>; 6]; 6];

    /// Returns a generator of numbers between −1 and 1.
    fn numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    }
    fn times(a: &Matrix, b: &Matrix) -> Matrix {
        core::array::from_fn(|i| core::array::from_fn(|j| (0..6).fold(Complex::ZERO, |sum, k| sum + a[i][k] * b[k][j])))
    }
    fn adjoint(a: &Matrix) -> Matrix {
        core::array::from_fn(|i| core::array::from_fn(|j| a[j][i].conj()))
    }
    fn block(a: &Matrix) -> Block<f64> {
        let mut out = Block::ZERO;
        for (i, row) in a.iter().enumerate() {
            out.diagonal[i] = row[i].re;
            (0..i).for_each(|j| out.lower[lower_index(i, j)] = row[j]);
        }
        out
    }
    /// Returns a unitary matrix: random columns, made orthonormal.
    fn unitary(seed: u64) -> Matrix {
        let mut next = numbers(seed);
        let mut rows: Matrix = [(); 6].map(|()| [(); 6].map(|()| complex(next(), next())));
        for i in 0..6 {
            for _ in 0..2 {
                for j in 0..i {
                    let dot = (0..6).fold(Complex::ZERO, |sum, k| sum + rows[i][k] * rows[j][k].conj());
                    let other = rows[j];
                    rows[i].iter_mut().zip(other).for_each(|(z, w)| *z = *z - dot * w);
                }
            }
            let norm = (0..6).map(|k| rows[i][k].norm_sqr()).sum::<f64>().sqrt();
            rows[i] = rows[i].map(|z| z.scale(1.0 / norm));
        }
        adjoint(&rows)
    }

    /// Compares with eigenvalues: with X = V diag(λ) V† an element of V† F V is that of V† H V, times (e^λ − e^λ') / (λ − λ')
    /// (Daleckii and Krein 1965).
    #[test]
    fn derivatives_of_exponentials_are_those_of_eigenvalues() {
        for (seed, size) in [(1, 0.1), (2, 0.5), (3, 2.0), (4, 7.0), (5, 0.0)] {
            let (v, mut next) = (unitary(seed), numbers(50 + seed));
            let mut lambda = [(); 6].map(|()| size * next());
            // Two that are equal.
            lambda[3] = lambda[1];
            let x: Matrix =
                times(&core::array::from_fn(|i| core::array::from_fn(|j| v[i][j].scale(lambda[j]))), &adjoint(&v));
            let random: Matrix = [(); 6].map(|()| [(); 6].map(|()| complex(next(), next())));
            let h: Matrix = core::array::from_fn(|i| core::array::from_fn(|j| random[i][j] + random[j][i].conj()));
            let inner = times(&adjoint(&v), &times(&h, &v));
            let quotient = |a: f64, b: f64| match 0.5 * (a - b) {
                0.0 => a.exp(),
                half => (0.5 * (a + b)).exp() * half.sinh() / half,
            };
            let inner: Matrix =
                core::array::from_fn(|i| core::array::from_fn(|j| inner[i][j].scale(quotient(lambda[i], lambda[j]))));
            let (expected, got) =
                (block(&times(&v, &times(&inner, &adjoint(&v)))), exponential_derivative(&block(&x), &block(&h)));
            let mut off = 0.0f64;
            (0..6).for_each(|k| off = off.max((got.diagonal[k] - expected.diagonal[k]).abs()));
            (0..15).for_each(|k| off = off.max((got.lower[k] - expected.lower[k]).norm_sqr().sqrt()));
            // Some ten roundings of sums of order e^λ, each squaring doubles them.
            assert!(off < 1e-13 * size.exp(), "{size}: {off:e}");
        }
    }
}
