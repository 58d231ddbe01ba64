//! Contractions of quark propagators to hadrons with open spins, and their Fourier sums over space.
//!
//! A propagator is a field with a right-hand side for each component of its source, `3 spin + colour`. A contraction gives a
//! few complex numbers at each site. They are stored in arrays `[number][t][z][y][x]`, which [`FourierSum`] sums over one
//! direction after the other.
use crate::Kernel;
use crate::algebra::{Colour, Complex, DiracSpinor, to_degrand_rossi};
use crate::field::Field;
use crate::lattice::{Divisor, Geometry};
use crate::memory::Access;
use crate::storage::{Colours, NumberFormat, SiteKind, Spinors, StaggeredFermion, WilsonFermion};
use crate::transfer::{HostArray, host_link, host_site};

/// Returns a column of a propagator in the DeGrand–Rossi basis.
#[inline(always)]
pub(crate) unsafe fn column<P: NumberFormat>(propagator: &Field, i: u32, column: u32) -> DiracSpinor<f64> {
    to_degrand_rossi(WilsonFermion::cast(unsafe { propagator.load::<Spinors<P>>(i, column) }))
}

/// Contraction Σ_cc' S₁_{sc,s'c'} S₂*_{uc,u'c'} of two propagators at the sites of one parity. A right-hand side is a
/// pair of source spins s' and u', and has 16 numbers with the index `4 s + u`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MesonSpins {
    /// S₁
    pub quark: Field,
    /// S₂
    pub antiquark: Field,
    /// Output array `[pair][4 s + u][site]`.
    pub out: HostArray,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Index `4 s' + u'` of the pair that is the first right-hand side.
    pub first: u32,
}
// SAFETY: call (i, rhs) writes the numbers of its own site and pair only.
unsafe impl<P: NumberFormat> Kernel<Spinors<P>> for MesonSpins {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let (s1, u1) = ((self.first + rhs) / 4, (self.first + rhs) % 4);
        let mut sums = [[Complex::ZERO; 4]; 4];
        for c1 in 0..3 {
            let quark = unsafe { column::<P>(&self.quark, i, 3 * s1 + c1) }.0;
            let antiquark = unsafe { column::<P>(&self.antiquark, i, 3 * u1 + c1) }.0;
            macro_rules! add {
                ($s:literal: $($u:literal)*) => {$(
                    let (Colour([a, b, c]), Colour([d, e, f])) = (quark[$s], antiquark[$u]);
                    let sum = c.mul_add(f.conj(), sums[$s][$u]);
                    sums[$s][$u] = a.mul_add(d.conj(), b.mul_add(e.conj(), sum));
                )*};
            }
            add!(0: 0 1 2 3);
            add!(1: 0 1 2 3);
            add!(2: 0 1 2 3);
            add!(3: 0 1 2 3);
        }
        let put = unsafe { SiteNumbers::new(self.out, &self.geometry, i, self.parity, 16 * rhs) };
        macro_rules! put {
            ($s:literal: $($u:literal)*) => { $(unsafe { put.number(4 * $s + $u, sums[$s][$u]) };)* };
        }
        put!(0: 0 1 2 3);
        put!(1: 0 1 2 3);
        put!(2: 0 1 2 3);
        put!(3: 0 1 2 3);
    }
}

/// Position of a site's numbers in an output array.
pub(crate) struct SiteNumbers {
    out: HostArray,
    first: usize,
    sites: usize,
}

impl SiteNumbers {
    /// Creates a view of the numbers of site `i` in an output array, from index `first` on.
    ///
    /// # Safety
    /// The array has number `first`, and all further numbers that are written, for all sites.
    #[inline(always)]
    pub unsafe fn new(out: HostArray, geometry: &Geometry, i: u32, parity: u32, first: u32) -> Self {
        let sites = 2 * geometry.half_volume() as usize;
        SiteNumbers { out, first: host_site(geometry, i, parity, first), sites }
    }
    /// Writes number `which` of this site, counted from the first number of the view.
    ///
    /// # Safety
    /// The array has this number.
    #[inline(always)]
    pub unsafe fn number(&self, which: usize, z: Complex<f64>) {
        unsafe { self.out.set(self.first + which * self.sites, z) }
    }
}

/// Correlator of the nucleon, C_γγ'(x) = ε_abc ε_a'b'c' G_αβ G̃_β'α' S_{βb,β'b'} [S_{αa,α'a'} S_{γc,γ'c'} − S_{αa,γ'c'}
/// S_{γc,α'a'}], at the sites of one parity, with G = C γ_5 = γ_x γ_z. A right-hand side is a spin γ', and has the
/// numbers `4 γ' + γ`.
///
/// With the vector products over colours of the sink Z_{α'γ',ca'} = ε_a'b'c' Σ_α [S_{α,γ'c'} × (G S G̃)_{α,α'b'}]_c,
///
/// C_γγ' = −Σ_{α'ca'} Z_{α'γ',ca'} S_{γc,α'a'} − Σ_{α'cc'} Z_{α'α',cc'} S_{γc,γ'c'},
///
/// because a' and c' have changed places in the first term of C.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct NucleonSpins {
    /// S
    pub quark: Field,
    /// Output array, `[4 γ' + γ][site]`.
    pub out: HostArray,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}

impl NucleonSpins {
    /// Z_{α'γ',ca'} for all colours c.
    #[inline(always)]
    unsafe fn diquark<P: NumberFormat>(&self, i: u32, [alpha1, gamma1, a1]: [u32; 3]) -> Colour<f64> {
        let mut z = Colour([Complex::ZERO; 3]);
        // The matrix G̃ = −G couples spin 0 to spin 1, and spin 2 to spin 3.
        let (beta1, tilde) = (alpha1 ^ 1, if alpha1 & 1 == 1 { 1.0 } else { -1.0 });
        for turn in 1..3 {
            // `sign` is the sign of ε_a'b'c' times that of G̃.
            let (b1, c1, sign) = ((a1 + turn) % 3, (a1 + 3 - turn) % 3, if turn == 1 { tilde } else { -tilde });
            let q = unsafe { column::<P>(&self.quark, i, 3 * beta1 + b1) }.0;
            let s = unsafe { column::<P>(&self.quark, i, 3 * gamma1 + c1) }.0;
            // `sum` is the cross product S × G Q.
            let sum = cross(s[1], q[0]) - cross(s[0], q[1]) + (cross(s[3], q[2]) - cross(s[2], q[3]));
            z = z + sum.map(|z| z.scale(sign));
        }
        z
    }
}

// SAFETY: call (i, rhs) writes the numbers of its own site and γ' only.
unsafe impl<P: NumberFormat> Kernel<Spinors<P>> for NucleonSpins {
    #[inline(always)]
    unsafe fn site(&self, i: u32, gamma1: u32) {
        let mut sums = [Complex::ZERO; 4];
        macro_rules! subtract {
            ($z:expr, $s:expr) => {{
                let (Colour([x, y, z]), s) = ($z, $s.0);
                subtract!(@ x, y, z, s: 0 1 2 3);
            }};
            (@ $x:ident, $y:ident, $z:ident, $s:ident: $($gamma:literal)*) => {$(
                let Colour([a, b, c]) = $s[$gamma];
                sums[$gamma] = (-$x).mul_add(a, (-$y).mul_add(b, (-$z).mul_add(c, sums[$gamma])));
            )*};
        }
        for alpha1 in 0..4 {
            for a1 in 0..3 {
                unsafe {
                    let z = self.diquark::<P>(i, [alpha1, gamma1, a1]);
                    subtract!(z, column::<P>(&self.quark, i, 3 * alpha1 + a1));
                    let z = self.diquark::<P>(i, [alpha1, alpha1, a1]);
                    subtract!(z, column::<P>(&self.quark, i, 3 * gamma1 + a1));
                }
            }
        }
        let put = unsafe { SiteNumbers::new(self.out, &self.geometry, i, self.parity, 4 * gamma1) };
        unsafe {
            put.number(0, sums[0]);
            put.number(1, sums[1]);
            put.number(2, sums[2]);
            put.number(3, sums[3]);
        }
    }
}

/// ε_abc x_a y_b
#[inline(always)]
fn cross(Colour([a, b, c]): Colour<f64>, Colour([d, e, f]): Colour<f64>) -> Colour<f64> {
    let minor = |p: Complex<f64>, q: Complex<f64>, r: Complex<f64>, s: Complex<f64>| p.mul_add(q, -(r * s));
    Colour([minor(b, f, c, e), minor(c, d, a, f), minor(a, e, b, d)])
}

/// Contractions of staggered quarks at the sites of one parity. Number 0 is Σ_cc' G₁_{cc'} G₂*_{cc'}, and number 1 is
/// det G₁.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StaggeredHadrons {
    /// G₁
    pub quark: Field,
    /// G₂
    pub antiquark: Field,
    /// Output array, `[2][site]`.
    pub out: HostArray,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
}
// SAFETY: call i writes the numbers of its own site only.
unsafe impl<P: NumberFormat> Kernel<Colours<P>> for StaggeredHadrons {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _rhs: u32) {
        macro_rules! column {
            ($of:ident, $c1:literal) => {
                StaggeredFermion::cast(unsafe { self.$of.load::<Colours<P>>(i, $c1) })
            };
        }
        let (a, b, c): (Colour<f64>, Colour<f64>, Colour<f64>) =
            (column!(quark, 0), column!(quark, 1), column!(quark, 2));
        let meson = column!(antiquark, 0).dot(a) + column!(antiquark, 1).dot(b) + column!(antiquark, 2).dot(c);
        let (Colour([x, y, z]), Colour([d, e, f])) = (cross(a, b), c);
        let put = unsafe { SiteNumbers::new(self.out, &self.geometry, i, self.parity, 0) };
        unsafe {
            put.number(0, meson);
            put.number(1, x.mul_add(d, y.mul_add(e, z * f)));
        }
    }
}

/// Conserved charge density V_t at the sites x of one parity. Each spin σ of the source is a right-hand side and has
/// one number:
///
/// Σ_c Σ_s (γ_5)_ss [Σ*_s(x+t̂) ((1 + γ_t) U_t†(x) S(x))_s − Σ*_s(x) ((1 − γ_t) U_t(x) S(x+t̂))_s],
///
/// computed from columns 3 σ + c of S and the columns of Σ that `spins` selects. If x+t̂ crosses the end of the lattice, the
/// result is multiplied by `across`. Lattices are not partitioned in t.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ChargeDensity {
    /// Propagator S on the parity of x.
    pub quark: Field,
    /// Propagator S on the other parity.
    pub quark_ahead: Field,
    /// Propagator Σ on the parity of x.
    pub other: Field,
    /// Propagator Σ on the other parity.
    pub other_ahead: Field,
    /// Links U, `[site][μ][row][column]`.
    pub links: HostArray,
    /// Output array `[σ][site]`.
    pub out: HostArray,
    /// Geometry of the local lattice.
    pub geometry: Geometry,
    /// Parity of the sites to process: 0 for even, 1 for odd.
    pub parity: u32,
    /// Spins that select the columns of Σ: two bits for each σ, the lowest bits for σ = 0.
    pub spins: u32,
    /// Factor of hops across the end of the lattice in t: 1, or −1 for antiperiodic quarks.
    pub across: f64,
}
// SAFETY: call (i, rhs) writes the number of its own site and spin only.
unsafe impl<P: NumberFormat> Kernel<Spinors<P>> for ChargeDensity {
    #[inline(always)]
    unsafe fn site(&self, i: u32, spin: u32) {
        let site = self.geometry.site(i, self.parity);
        let ahead = self.geometry.neighbour(&site, 3, true);
        let u = unsafe { host_link(&self.links, self.geometry.lexicographic(&site), 3) };
        let dagger = u.adjoint();
        let other = (self.spins >> (2 * spin)) & 3;
        let mut sum = Complex::ZERO;
        for c in 0..3 {
            let (mine, its) = (3 * spin + c, 3 * other + c);
            let DiracSpinor([f0, f1, f2, f3]) = unsafe { column::<P>(&self.quark, i, mine) };
            let DiracSpinor([s0, s1, s2, s3]) = unsafe { column::<P>(&self.other_ahead, ahead, its) };
            // The rows of γ_5 (1 + γ_t) are (1, 0, 1, 0), … and (−1, 0, −1, 0), so two products with U are enough.
            let (up, down) = (dagger * (f0 + f2), dagger * (f1 + f3));
            let forwards = (s0 - s2).dot(up) + (s1 - s3).dot(down);
            let DiracSpinor([b0, b1, b2, b3]) = unsafe { column::<P>(&self.quark_ahead, ahead, mine) };
            let DiracSpinor([s0, s1, s2, s3]) = unsafe { column::<P>(&self.other, i, its) };
            let (up, down) = (u * (b0 - b2), u * (b1 - b3));
            let backwards = (s0 + s2).dot(up) + (s1 + s3).dot(down);
            sum = sum + (forwards - backwards);
        }
        if self.geometry.wraps(&site, 3, true) {
            sum = sum.scale(self.across);
        }
        let put = unsafe { SiteNumbers::new(self.out, &self.geometry, i, self.parity, spin) };
        unsafe { put.number(0, sum) };
    }
}

/// Sum over one spatial direction with factors, such as those of momenta: Σ_j f(a, j, b) w_k(j) for an array f
/// `[a][j][b]` and each right-hand side k.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FourierSum {
    /// Input array f, `[a][j][b]`.
    pub from: HostArray,
    /// Array of the factors w, `[k][j]`.
    pub factors: HostArray,
    /// Output array, `[k][a][b]`.
    pub to: HostArray,
    /// Number of values of the index b.
    pub inner: Divisor,
    /// Number of values of the index j.
    pub extent: u32,
    /// Number of pairs (a, b) of indices.
    pub numbers: u32,
    /// Index k of the first right-hand side.
    pub first: u32,
}
// SAFETY: call (i, rhs) writes its own number only.
unsafe impl Kernel<()> for FourierSum {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let ((a, b), k) = (self.inner.divide(i), self.first + rhs);
        let (inner, extent) = (self.inner.get() as usize, self.extent as usize);
        let (from, factors) = (a as usize * extent * inner + b as usize, k as usize * extent);
        let mut sum = Complex::ZERO;
        for j in 0..extent {
            let (f, w) = unsafe {
                (self.from.read(from + j * inner, Access::Shared), self.factors.read(factors + j, Access::Shared))
            };
            sum = f.mul_add(w, sum);
        }
        unsafe { self.to.set(k as usize * self.numbers as usize + i as usize, sum) }
    }
}

crate::kernels! { FAMILY = "contraction";
    setup MESON_SPINS "meson_spins": [MesonSpins] => double_spinors;
    setup NUCLEON_SPINS "nucleon_spins": [NucleonSpins] => double_spinors;
    setup STAGGERED_HADRONS "staggered_hadrons": [StaggeredHadrons] => double_colours;
    setup CHARGE_DENSITY "charge_density": [ChargeDensity] => double_spinors;
    setup FOURIER_SUM "fourier_sum": [FourierSum] => once;
}
