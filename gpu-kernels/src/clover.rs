//! The clover term of the Wilson-clover operator (Babich, Clark and Joó 2010, eq. 2), its inverse, and its fusions with
//! the hopping term.
//!
//! A(x) = d + (i/2) Σ_{μ<ν} c_μν σ_μν F̂_μν(x) with σ_μν = (i/2) \[γ_μ, γ_ν\] and F̂ = (Q − Q†)/8, Q the sum of the four
//! plaquettes around x in the plane (μ, ν). In the DeGrand–Rossi basis it is one block for each chirality,
//! d + σ_1 ⊗ (H_yz ∓ H_xt) + σ_2 ⊗ (H_xz ± H_yt) + σ_3 ⊗ (H_xy ∓ H_zt), H_μν = (i/2) c_μν F̂_μν, upper signs for the upper
//! spins.
use crate::Kernel;
use crate::algebra::{Complex, Real, Spinor, Su3, complex};
use crate::field::{Clover, Field, ThinLinks};
use crate::lattice::{Bordered, Site};
use crate::memory::Access;
use crate::row::{Row, RowDot, RowDots};
use crate::sides::{Stage, Together, each_side, in_order_of, one_of_its_sides};
use crate::storage::{
    Block, CloverFormat, Double, Fp16, Half, LinkFormat, Precision, Recon8, Recon8T, Recon12, Recon12T, Recon18,
    Single, Slots, Spinors, Staged, lower_index,
};
use crate::wilson::{Hopping, stage_hopping};

/// Stored blocks carry this factor: the two changes of spin basis around them are made without their 1/√2.
pub const HALF: f64 = 0.5;

/// Computes the blocks of A for the sites of one parity.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverTerm {
    /// The links on the even and on the odd sites of the bordered lattice.
    pub links: [ThinLinks; 2],
    /// Their lattice.
    pub lattice: Bordered,
    /// The result, on the local lattice.
    pub out: Clover<Double>,
    /// Parity of the sites.
    pub parity: u32,
    /// d
    pub diagonal: f64,
    /// c_μν of the spatial planes and of the temporal planes.
    pub coefficients: [f64; 2],
}

impl CloverTerm {
    /// U_μ at a site.
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
    /// H_μν(x) = (i/2) c F̂_μν(x), Hermitian.
    #[inline(always)]
    unsafe fn field_strength(&self, x: (Site, u32), mu: usize, nu: usize, c: f64) -> Su3<f64> {
        unsafe {
            let step = |x, mu, forward| self.step(x, mu, forward);
            let (up, down, right, left) =
                (step(x, mu, true), step(x, mu, false), step(x, nu, true), step(x, nu, false));
            let (down_right, down_left, up_left) = (step(down, nu, true), step(down, nu, false), step(left, mu, true));
            let u = |x, mu| self.link(x, mu);
            // The four plaquettes that begin and end at x and turn from μ to ν.
            let q = u(x, mu) * u(up, nu) * u(right, mu).adjoint() * u(x, nu).adjoint()
                + u(x, nu) * u(down_right, mu).adjoint() * u(down, nu).adjoint() * u(down, mu)
                + u(down, mu).adjoint() * u(down_left, nu).adjoint() * u(down_left, mu) * u(left, nu)
                + u(left, nu).adjoint() * u(left, mu) * u(up_left, nu) * u(x, mu).adjoint();
            (q - q.adjoint()).times_i().scale(c / 16.0)
        }
    }
}

/// The two blocks d + Σ_k σ_k ⊗ E_k from d and the Hermitian matrices E_k of each chirality, times [`HALF`].
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
unsafe impl Kernel for CloverTerm {
    const NAME: &'static [&'static str] = &["clover_term"];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let x = (self.lattice.site(i, self.parity), self.parity);
            let [space, time] = self.coefficients;
            let h = |mu, nu, c| self.field_strength(x, mu, nu, c);
            let (yz, xt) = (h(1, 2, space), h(0, 3, time));
            let (xz, yt) = (h(0, 2, space), h(1, 3, time));
            let (xy, zt) = (h(0, 1, space), h(2, 3, time));
            let upper = block(self.diagonal, [yz - xt, xz + yt, xy - zt]);
            let lower = block(self.diagonal, [yz + xt, xz - yt, xy + zt]);
            self.out.store(i, &[upper, lower]);
        }
    }
}

/// Inverts the blocks of every site: out = input⁻¹, in double.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverInverse {
    /// Blocks of A, times [`HALF`].
    pub input: Clover<Double>,
    /// Blocks of A⁻¹, times [`HALF`].
    pub out: Clover<Double>,
}
// SAFETY: call i reads and writes site i only.
unsafe impl Kernel for CloverInverse {
    const NAME: &'static [&'static str] = &["clover_inverse"];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe {
            let one = |chirality| {
                let (block, _) = self.input.load(i, chirality);
                inverse(&block)
            };
            self.out.store(i, &[one(0), one(1)]);
        }
    }
}

/// (½ B)⁻¹ = 2 B⁻¹, stored as ½ B⁻¹: a quarter of the inverse of what is stored. By B = L D L†, which needs B regular,
/// not positive.
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
    // Columns of L⁻¹, a lower triangle with ones on its diagonal.
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
    // B⁻¹ = L⁻† D⁻¹ L⁻¹
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

/// Rounds the blocks to another precision.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverConvert<P> {
    /// In double.
    pub input: Clover<Double>,
    /// In precision P.
    pub out: Clover<P>,
}
// SAFETY: call i writes site i only.
unsafe impl<P: CloverFormat> Kernel for CloverConvert<P> {
    const NAME: &'static [&'static str] = &["clover_convert", P::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        unsafe { self.out.store(i, &[self.input.load(i, 0).0, self.input.load(i, 1).0]) }
    }
}

/// out = A ψ, or A⁻¹ ψ with the inverse's blocks.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverApply<P: Precision> {
    /// The result. May be `input` itself.
    pub out: Field<Spinors<P>>,
    /// ψ
    pub input: Field<Spinors<P>>,
    /// A or A⁻¹.
    pub clover: Clover<P>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<P: CloverFormat> Kernel for CloverApply<P> {
    const NAME: &'static [&'static str] = &["clover_apply", P::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe { self.out.store(i, rhs, &self.clover.apply(i, &self.input.load_own(i, rhs))) }
    }
}

/// out = A⁻¹ D ψ, or A⁻¹ D† ψ: the first factor of the Schur complement.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverDslash<P: Precision, R, const DAGGER: bool> {
    /// The result, on the sites of one parity.
    pub out: Field<Spinors<P>>,
    /// A⁻¹ on that parity.
    pub inverse: Clover<P>,
    /// The hopping term.
    pub hopping: Hopping<P, R>,
}
// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only.
unsafe impl<P: CloverFormat, R: LinkFormat<P>, const DAGGER: bool> Kernel for CloverDslash<P, R, DAGGER> {
    const NAME: &'static [&'static str] =
        &[if DAGGER { "clover_dslash_dagger" } else { "clover_dslash" }, P::NAME, R::NAME];
    in_order_of!(hopping);
    one_of_its_sides!();
}
// SAFETY: as for one.
unsafe impl<P: CloverFormat, R: LinkFormat<P>, const DAGGER: bool> Together for CloverDslash<P, R, DAGGER> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) {
        let out = unsafe { self.inverse.apply_all(i, self.hopping.apply::<DAGGER, N>(i, first)) };
        each_side!(k < N: {
            unsafe { self.out.store(i, first + k as u32, &out[k]) }
        });
    }
}
stage_hopping!(CloverDslash { out, inverse }, P: CloverFormat, R, const DAGGER);

/// out = x + b A⁻¹ D ψ: the symmetric Schur complement's last factor.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverDslashAdd<P: Precision, R> {
    /// The result, on the sites of one parity.
    pub out: Field<Spinors<P>>,
    /// x, on the same parity. May be `out` itself.
    pub x: Field<Spinors<P>>,
    /// Factor of the hopping term.
    pub b: P::Real,
    /// A⁻¹ on that parity.
    pub inverse: Clover<P>,
    /// The hopping term.
    pub hopping: Hopping<P, R>,
}
// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only, and reads no other element of it.
unsafe impl<P: CloverFormat, R: LinkFormat<P>> Kernel for CloverDslashAdd<P, R> {
    const NAME: &'static [&'static str] = &["clover_dslash_add", P::NAME, R::NAME];
    in_order_of!(hopping);
    one_of_its_sides!();
}
// SAFETY: as for one.
unsafe impl<P: CloverFormat, R: LinkFormat<P>> Together for CloverDslashAdd<P, R> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) {
        unsafe { self.store::<N>(i, first) }
    }
}
stage_hopping!(CloverDslashAdd { out, x, b, inverse }, P: CloverFormat, R);

// SAFETY: reads element (i, rhs) of `x` only, which may be `out`.
unsafe impl<P: CloverFormat, R: LinkFormat<P>> Row for CloverDslashAdd<P, R> {
    type Format = Spinors<P>;
    const DOT: &'static [&'static str] = &["clover_dslash_add_dot", P::NAME, R::NAME];
    const DOTS: &'static [&'static str] = &["clover_dslash_add_dots", P::NAME, R::NAME];
    fn out(&self) -> &Field<Spinors<P>> {
        &self.out
    }
    in_order_of!(hopping);
    #[inline(always)]
    unsafe fn compute<const N: usize>(&self, i: u32, first: u32) -> [[Spinor<P::Real>; 2]; N] {
        let hops = unsafe { self.inverse.apply_all(i, self.hopping.apply::<false, N>(i, first)) };
        let mut rows = [[Spinor::ZERO; 2]; N];
        each_side!(k < N: {
            let x = unsafe { self.x.load_own(i, first + k as u32) };
            rows[k] = [sum(x, self.b, hops[k]), x];
        });
        rows
    }
}

/// [`CloverDslashAdd`] with the sums that CG and the first half step of BiCGstab need.
pub type CloverDslashAddDot<P, R> = RowDot<CloverDslashAdd<P, R>>;
/// [`CloverDslashAdd`] with the sums that the second half step of BiCGstab needs.
pub type CloverDslashAddDots<P, R> = RowDots<CloverDslashAdd<P, R>>;

/// out = A x + b D ψ, or with D†: the full operator's row, and the asymmetric Schur complement's last factor.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CloverRow<P: Precision, R, const DAGGER: bool> {
    /// The result, on the sites of one parity.
    pub out: Field<Spinors<P>>,
    /// x, on the same parity. May be `out` itself.
    pub x: Field<Spinors<P>>,
    /// Factor of the hopping term.
    pub b: P::Real,
    /// A on that parity.
    pub clover: Clover<P>,
    /// The hopping term.
    pub hopping: Hopping<P, R>,
}
// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only, and reads no other element of it.
unsafe impl<P: CloverFormat, R: LinkFormat<P>, const DAGGER: bool> Kernel for CloverRow<P, R, DAGGER> {
    const NAME: &'static [&'static str] = &[if DAGGER { "clover_row_dagger" } else { "clover_row" }, P::NAME, R::NAME];
    in_order_of!(hopping);
    one_of_its_sides!();
}
// SAFETY: as for one.
unsafe impl<P: CloverFormat, R: LinkFormat<P>, const DAGGER: bool> Together for CloverRow<P, R, DAGGER> {
    #[inline(always)]
    unsafe fn sides<const N: usize>(&self, i: u32, first: u32) {
        let hops = unsafe { self.hopping.apply::<DAGGER, N>(i, first) };
        let mut x = [Spinor::ZERO; N];
        each_side!(k < N: {
            x[k] = unsafe { self.x.load_own(i, first + k as u32) };
        });
        let x = unsafe { self.clover.apply_all(i, x) };
        each_side!(k < N: {
            unsafe { self.out.store(i, first + k as u32, &sum(x[k], self.b, hops[k])) }
        });
    }
}
stage_hopping!(CloverRow { out, x, b, clover }, P: CloverFormat, R, const DAGGER);

/// x + b h
#[inline(always)]
fn sum<T: Real>(x: Spinor<T>, b: T, h: Spinor<T>) -> Spinor<T> {
    x.zip(h, |x, h| complex(b.mul_add(h.re, x.re), b.mul_add(h.im, x.im)))
}

crate::entry! { INSTANCES of "clover":
    setup "clover_setup" clover_term: CloverTerm, registers 0;
    setup "clover_setup" clover_inverse: CloverInverse, registers 0;
    setup "clover_setup" clover_convert_double: CloverConvert<Double>, registers 0;
    setup "clover_setup" clover_convert_single: CloverConvert<Single>, registers 0;
    setup "clover_setup" clover_convert_half: CloverConvert<Half>, registers 0;
    setup "clover_setup" clover_convert_fp16: CloverConvert<Fp16>, registers 0;
    kernel "clover_double" clover_apply_double: CloverApply<Double>, registers 0;
    kernel "clover_single" clover_apply_single: CloverApply<Single>, registers 0;
    kernel "clover_half" clover_apply_half: CloverApply<Half>, registers 0;
    kernel "clover_fp16" clover_apply_fp16: CloverApply<Fp16>, registers 0;
    kernel "clover_double" clover_dslash_double_18: CloverDslash<Double, Recon18, false>, registers 255;
    kernel "clover_double" clover_dslash_dagger_double_18: CloverDslash<Double, Recon18, true>, registers 255;
    kernel "clover_double" clover_dslash_add_double_18: CloverDslashAdd<Double, Recon18>, registers 255;
    kernel "clover_double" clover_row_double_18: CloverRow<Double, Recon18, false>, registers 255;
    kernel "clover_double" clover_row_dagger_double_18: CloverRow<Double, Recon18, true>, registers 255;
    kernel "clover_double" clover_dslash_double_12: CloverDslash<Double, Recon12, false>, registers 255;
    kernel "clover_double" clover_dslash_dagger_double_12: CloverDslash<Double, Recon12, true>, registers 255;
    kernel "clover_double" clover_dslash_add_double_12: CloverDslashAdd<Double, Recon12>, registers 255;
    kernel "clover_double" clover_row_double_12: CloverRow<Double, Recon12, false>, registers 255;
    kernel "clover_double" clover_row_dagger_double_12: CloverRow<Double, Recon12, true>, registers 255;
    kernel "clover_double" clover_dslash_double_8: CloverDslash<Double, Recon8, false>, registers 255;
    kernel "clover_double" clover_dslash_dagger_double_8: CloverDslash<Double, Recon8, true>, registers 255;
    kernel "clover_double" clover_dslash_add_double_8: CloverDslashAdd<Double, Recon8>, registers 255;
    kernel "clover_double" clover_row_double_8: CloverRow<Double, Recon8, false>, registers 255;
    kernel "clover_double" clover_row_dagger_double_8: CloverRow<Double, Recon8, true>, registers 255;
    kernel "clover_single" clover_dslash_single_18: CloverDslash<Single, Recon18, false>, registers 168, sides 2 at 168;
    kernel "clover_single" clover_dslash_dagger_single_18: CloverDslash<Single, Recon18, true>, registers 168, sides 2 at 168;
    kernel "clover_single" clover_dslash_add_single_18: CloverDslashAdd<Single, Recon18>, registers 168, sides 2 at 140;
    kernel "clover_single" clover_row_single_18: CloverRow<Single, Recon18, false>, registers 168, sides 2 at 152;
    kernel "clover_single" clover_row_dagger_single_18: CloverRow<Single, Recon18, true>, registers 168, sides 2 at 144;
    kernel "clover_single" clover_dslash_single_12: CloverDslash<Single, Recon12, false>, registers 168, sides 2 at 156;
    kernel "clover_single" clover_dslash_dagger_single_12: CloverDslash<Single, Recon12, true>, registers 168, sides 2 at 156;
    kernel "clover_single" clover_dslash_add_single_12: CloverDslashAdd<Single, Recon12>, registers 168, sides 2 at 140;
    kernel "clover_single" clover_row_single_12: CloverRow<Single, Recon12, false>, registers 168, sides 2 at 168;
    kernel "clover_single" clover_row_dagger_single_12: CloverRow<Single, Recon12, true>, registers 168, sides 2 at 168;
    kernel "clover_single" clover_dslash_single_8: CloverDslash<Single, Recon8, false>, registers 168, sides 2 at 140;
    kernel "clover_single" clover_dslash_dagger_single_8: CloverDslash<Single, Recon8, true>, registers 168, sides 2 at 140;
    kernel "clover_single" clover_dslash_add_single_8: CloverDslashAdd<Single, Recon8>, registers 168, sides 2 at 140;
    kernel "clover_single" clover_row_single_8: CloverRow<Single, Recon8, false>, registers 168, sides 2 at 152;
    kernel "clover_single" clover_row_dagger_single_8: CloverRow<Single, Recon8, true>, registers 168, sides 2 at 156;
    kernel "clover_half" clover_dslash_half_18: CloverDslash<Half, Recon18, false>, registers 128, sides 2 at 120;
    kernel "clover_half" clover_dslash_dagger_half_18: CloverDslash<Half, Recon18, true>, registers 128, sides 2 at 116;
    kernel "clover_half" clover_dslash_add_half_18: CloverDslashAdd<Half, Recon18>, registers 128, sides 2 at 120;
    kernel "clover_half" clover_row_half_18: CloverRow<Half, Recon18, false>, registers 128, sides 2 at 152;
    kernel "clover_half" clover_row_dagger_half_18: CloverRow<Half, Recon18, true>, registers 128, sides 2 at 152;
    kernel "clover_half" clover_dslash_half_12: CloverDslash<Half, Recon12, false>, registers 128, sides 2 at 128;
    kernel "clover_half" clover_dslash_dagger_half_12: CloverDslash<Half, Recon12, true>, registers 128, sides 2 at 112;
    kernel "clover_half" clover_dslash_add_half_12: CloverDslashAdd<Half, Recon12>, registers 128, sides 2 at 112;
    kernel "clover_half" clover_row_half_12: CloverRow<Half, Recon12, false>, registers 128, sides 2 at 148;
    kernel "clover_half" clover_row_dagger_half_12: CloverRow<Half, Recon12, true>, registers 128, sides 2 at 148;
    kernel "clover_half" clover_dslash_half_8: CloverDslash<Half, Recon8, false>, registers 128, sides 2 at 116;
    kernel "clover_half" clover_dslash_dagger_half_8: CloverDslash<Half, Recon8, true>, registers 128, sides 2 at 112;
    kernel "clover_half" clover_dslash_add_half_8: CloverDslashAdd<Half, Recon8>, registers 128, sides 2 at 116;
    kernel "clover_half" clover_row_half_8: CloverRow<Half, Recon8, false>, registers 128, sides 2 at 152;
    kernel "clover_half" clover_row_dagger_half_8: CloverRow<Half, Recon8, true>, registers 128, sides 2 at 152;
    kernel "clover_fp16" clover_dslash_fp16_18: CloverDslash<Fp16, Recon18, false>, registers 128, sides 2 at 132;
    kernel "clover_fp16" clover_dslash_dagger_fp16_18: CloverDslash<Fp16, Recon18, true>, registers 128, sides 2 at 132;
    kernel "clover_fp16" clover_dslash_add_fp16_18: CloverDslashAdd<Fp16, Recon18>, registers 128, sides 2 at 144;
    kernel "clover_fp16" clover_row_fp16_18: CloverRow<Fp16, Recon18, false>, registers 128, sides 2 at 140;
    kernel "clover_fp16" clover_row_dagger_fp16_18: CloverRow<Fp16, Recon18, true>, registers 128, sides 2 at 144;
    kernel "clover_fp16" clover_dslash_fp16_12: CloverDslash<Fp16, Recon12, false>, registers 128, sides 2 at 128;
    kernel "clover_fp16" clover_dslash_dagger_fp16_12: CloverDslash<Fp16, Recon12, true>, registers 128, sides 2 at 128;
    kernel "clover_fp16" clover_dslash_add_fp16_12: CloverDslashAdd<Fp16, Recon12>, registers 128, sides 2 at 120;
    kernel "clover_fp16" clover_row_fp16_12: CloverRow<Fp16, Recon12, false>, registers 128, sides 2 at 144;
    kernel "clover_fp16" clover_row_dagger_fp16_12: CloverRow<Fp16, Recon12, true>, registers 128, sides 2 at 144;
    kernel "clover_fp16" clover_dslash_fp16_8: CloverDslash<Fp16, Recon8, false>, registers 128, sides 2 at 120;
    kernel "clover_fp16" clover_dslash_dagger_fp16_8: CloverDslash<Fp16, Recon8, true>, registers 128, sides 2 at 124;
    kernel "clover_fp16" clover_dslash_add_fp16_8: CloverDslashAdd<Fp16, Recon8>, registers 128, sides 2 at 124;
    kernel "clover_fp16" clover_row_fp16_8: CloverRow<Fp16, Recon8, false>, registers 128, sides 2 at 144;
    kernel "clover_fp16" clover_row_dagger_fp16_8: CloverRow<Fp16, Recon8, true>, registers 128, sides 2 at 144;
    reduce "clover_double" clover_dslash_add_dot_double_18: CloverDslashAddDot<Double, Recon18>, registers 255;
    reduce "clover_double" clover_dslash_add_dots_double_18: CloverDslashAddDots<Double, Recon18>, registers 255;
    reduce "clover_double" clover_dslash_add_dot_double_12: CloverDslashAddDot<Double, Recon12>, registers 255;
    reduce "clover_double" clover_dslash_add_dots_double_12: CloverDslashAddDots<Double, Recon12>, registers 255;
    reduce "clover_double" clover_dslash_add_dot_double_8: CloverDslashAddDot<Double, Recon8>, registers 255;
    reduce "clover_double" clover_dslash_add_dots_double_8: CloverDslashAddDots<Double, Recon8>, registers 255;
    reduce "clover_single" clover_dslash_add_dot_single_18: CloverDslashAddDot<Single, Recon18>, registers 168, sides 2 at 140;
    reduce "clover_single" clover_dslash_add_dots_single_18: CloverDslashAddDots<Single, Recon18>, registers 168, sides 2 at 112;
    reduce "clover_single" clover_dslash_add_dot_single_12: CloverDslashAddDot<Single, Recon12>, registers 168, sides 2 at 152;
    reduce "clover_single" clover_dslash_add_dots_single_12: CloverDslashAddDots<Single, Recon12>, registers 168, sides 2 at 112;
    reduce "clover_single" clover_dslash_add_dot_single_8: CloverDslashAddDot<Single, Recon8>, registers 168, sides 2 at 112;
    reduce "clover_single" clover_dslash_add_dots_single_8: CloverDslashAddDots<Single, Recon8>, registers 168, sides 2 at 112;
    reduce "clover_half" clover_dslash_add_dot_half_18: CloverDslashAddDot<Half, Recon18>, registers 128, sides 2 at 128;
    reduce "clover_half" clover_dslash_add_dots_half_18: CloverDslashAddDots<Half, Recon18>, registers 128, sides 2 at 152;
    reduce "clover_half" clover_dslash_add_dot_half_12: CloverDslashAddDot<Half, Recon12>, registers 128, sides 2 at 128;
    reduce "clover_half" clover_dslash_add_dots_half_12: CloverDslashAddDots<Half, Recon12>, registers 128, sides 2 at 152;
    reduce "clover_half" clover_dslash_add_dot_half_8: CloverDslashAddDot<Half, Recon8>, registers 128, sides 2 at 124;
    reduce "clover_half" clover_dslash_add_dots_half_8: CloverDslashAddDots<Half, Recon8>, registers 128, sides 2 at 152;
    reduce "clover_fp16" clover_dslash_add_dot_fp16_18: CloverDslashAddDot<Fp16, Recon18>, registers 128, sides 2 at 128;
    reduce "clover_fp16" clover_dslash_add_dots_fp16_18: CloverDslashAddDots<Fp16, Recon18>, registers 128, sides 2 at 160;
    reduce "clover_fp16" clover_dslash_add_dot_fp16_12: CloverDslashAddDot<Fp16, Recon12>, registers 128, sides 2 at 120;
    reduce "clover_fp16" clover_dslash_add_dots_fp16_12: CloverDslashAddDots<Fp16, Recon12>, registers 128, sides 2 at 160;
    reduce "clover_fp16" clover_dslash_add_dot_fp16_8: CloverDslashAddDot<Fp16, Recon8>, registers 128, sides 2 at 128;
    reduce "clover_fp16" clover_dslash_add_dots_fp16_8: CloverDslashAddDots<Fp16, Recon8>, registers 128, sides 2 at 152;
    kernel "clover_double_t" clover_dslash_double_12t: CloverDslash<Double, Recon12T, false>, registers 255;
    kernel "clover_double_t" clover_dslash_dagger_double_12t: CloverDslash<Double, Recon12T, true>, registers 255;
    kernel "clover_double_t" clover_dslash_add_double_12t: CloverDslashAdd<Double, Recon12T>, registers 255;
    kernel "clover_double_t" clover_row_double_12t: CloverRow<Double, Recon12T, false>, registers 255;
    kernel "clover_double_t" clover_row_dagger_double_12t: CloverRow<Double, Recon12T, true>, registers 255;
    kernel "clover_double_t" clover_dslash_double_8t: CloverDslash<Double, Recon8T, false>, registers 255;
    kernel "clover_double_t" clover_dslash_dagger_double_8t: CloverDslash<Double, Recon8T, true>, registers 255;
    kernel "clover_double_t" clover_dslash_add_double_8t: CloverDslashAdd<Double, Recon8T>, registers 255;
    kernel "clover_double_t" clover_row_double_8t: CloverRow<Double, Recon8T, false>, registers 255;
    kernel "clover_double_t" clover_row_dagger_double_8t: CloverRow<Double, Recon8T, true>, registers 255;
    kernel "clover_single_t" clover_dslash_single_12t: CloverDslash<Single, Recon12T, false>, registers 168;
    kernel "clover_single_t" clover_dslash_dagger_single_12t: CloverDslash<Single, Recon12T, true>, registers 168;
    kernel "clover_single_t" clover_dslash_add_single_12t: CloverDslashAdd<Single, Recon12T>, registers 168;
    kernel "clover_single_t" clover_row_single_12t: CloverRow<Single, Recon12T, false>, registers 168;
    kernel "clover_single_t" clover_row_dagger_single_12t: CloverRow<Single, Recon12T, true>, registers 168;
    kernel "clover_single_t" clover_dslash_single_8t: CloverDslash<Single, Recon8T, false>, registers 168;
    kernel "clover_single_t" clover_dslash_dagger_single_8t: CloverDslash<Single, Recon8T, true>, registers 168;
    kernel "clover_single_t" clover_dslash_add_single_8t: CloverDslashAdd<Single, Recon8T>, registers 168;
    kernel "clover_single_t" clover_row_single_8t: CloverRow<Single, Recon8T, false>, registers 168;
    kernel "clover_single_t" clover_row_dagger_single_8t: CloverRow<Single, Recon8T, true>, registers 168;
    kernel "clover_half_t" clover_dslash_half_12t: CloverDslash<Half, Recon12T, false>, registers 128;
    kernel "clover_half_t" clover_dslash_dagger_half_12t: CloverDslash<Half, Recon12T, true>, registers 128;
    kernel "clover_half_t" clover_dslash_add_half_12t: CloverDslashAdd<Half, Recon12T>, registers 128;
    kernel "clover_half_t" clover_row_half_12t: CloverRow<Half, Recon12T, false>, registers 128;
    kernel "clover_half_t" clover_row_dagger_half_12t: CloverRow<Half, Recon12T, true>, registers 128;
    kernel "clover_fp16_t" clover_dslash_fp16_12t: CloverDslash<Fp16, Recon12T, false>, registers 128;
    kernel "clover_fp16_t" clover_dslash_dagger_fp16_12t: CloverDslash<Fp16, Recon12T, true>, registers 128;
    kernel "clover_fp16_t" clover_dslash_add_fp16_12t: CloverDslashAdd<Fp16, Recon12T>, registers 128;
    kernel "clover_fp16_t" clover_row_fp16_12t: CloverRow<Fp16, Recon12T, false>, registers 128;
    kernel "clover_fp16_t" clover_row_dagger_fp16_12t: CloverRow<Fp16, Recon12T, true>, registers 128;
    reduce "clover_double_t" clover_dslash_add_dot_double_12t: CloverDslashAddDot<Double, Recon12T>, registers 255;
    reduce "clover_double_t" clover_dslash_add_dots_double_12t: CloverDslashAddDots<Double, Recon12T>, registers 255;
    reduce "clover_double_t" clover_dslash_add_dot_double_8t: CloverDslashAddDot<Double, Recon8T>, registers 255;
    reduce "clover_double_t" clover_dslash_add_dots_double_8t: CloverDslashAddDots<Double, Recon8T>, registers 255;
    reduce "clover_single_t" clover_dslash_add_dot_single_12t: CloverDslashAddDot<Single, Recon12T>, registers 168;
    reduce "clover_single_t" clover_dslash_add_dots_single_12t: CloverDslashAddDots<Single, Recon12T>, registers 168;
    reduce "clover_single_t" clover_dslash_add_dot_single_8t: CloverDslashAddDot<Single, Recon8T>, registers 168;
    reduce "clover_single_t" clover_dslash_add_dots_single_8t: CloverDslashAddDots<Single, Recon8T>, registers 168;
    reduce "clover_half_t" clover_dslash_add_dot_half_12t: CloverDslashAddDot<Half, Recon12T>, registers 128;
    reduce "clover_half_t" clover_dslash_add_dots_half_12t: CloverDslashAddDots<Half, Recon12T>, registers 128;
    reduce "clover_fp16_t" clover_dslash_add_dot_fp16_12t: CloverDslashAddDot<Fp16, Recon12T>, registers 128;
    reduce "clover_fp16_t" clover_dslash_add_dots_fp16_12t: CloverDslashAddDots<Fp16, Recon12T>, registers 128;
}
