//! Compressed storage of links, and the reconstruction of their other elements.
use super::fine::Fine18;
use crate::LinkStorage;
use crate::algebra::{Complex, Real, Su3, complex, phase_from_quarter_tangent, quarter_tangent};
use core::marker::PhantomData;

/// Choice of the elements of a link that are stored, and the reconstruction of the others.
pub trait Reconstruct: Copy + Send + Sync + 'static {
    /// The storage as a value.
    const STORAGE: LinkStorage;
    /// Number of complex numbers that are stored for each link.
    const KEPT: usize;
    /// Whether the phase φ of the determinant is also stored, as tan(φ/4), for links in U(3).
    const PHASE: bool = false;
    /// Storage of all nine elements, each in the same number format.
    type Full: Reconstruct;
    /// Whether links in t are the unit matrix, except across the boundary. Hops in t then read only the links across it.
    const TEMPORAL: bool = false;
    /// Returns the matrix from its stored numbers. `phase` is called only if a phase is stored.
    fn expand<T: Real>(kept: impl Fn(usize) -> Complex<T>, phase: impl Fn() -> T) -> Su3<T>;
    /// Returns stored number `j` of a matrix.
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64>;
}

/// Storage of all nine complex elements of a link, 18 reals.
#[derive(Clone, Copy, Debug)]
pub struct Recon18;
/// Storage of two rows of a matrix in SU(3), 12 reals. The third row follows from unitarity (Clark et al. 2009, appendix A.1).
#[derive(Clone, Copy, Debug)]
pub struct Recon12;
/// Storage of the two rows a and b of a matrix in U(3) and of the phase φ of its determinant, 13 reals. The third row
/// is e^{iφ} (a × b)*.
#[derive(Clone, Copy, Debug)]
pub struct Recon13;

impl Reconstruct for Recon18 {
    type Full = Recon18;
    const STORAGE: LinkStorage = LinkStorage::of(18);
    const KEPT: usize = 9;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>, _: impl Fn() -> T) -> Su3<T> {
        Su3([[at(0), at(1), at(2)], [at(3), at(4), at(5)], [at(6), at(7), at(8)]])
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        u.0[j / 3][j % 3]
    }
}
impl Reconstruct for Recon12 {
    type Full = Recon18;
    const STORAGE: LinkStorage = LinkStorage::of(12);
    const KEPT: usize = 6;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>, _: impl Fn() -> T) -> Su3<T> {
        Su3::from_two_rows([at(0), at(1), at(2)], [at(3), at(4), at(5)])
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        u.0[j / 3][j % 3]
    }
}
impl Reconstruct for Recon13 {
    type Full = Recon18;
    const STORAGE: LinkStorage = LinkStorage::of(13);
    const KEPT: usize = 6;
    const PHASE: bool = true;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>, phase: impl Fn() -> T) -> Su3<T> {
        let Su3([a, b, [n1, n2, n3]]) = Su3::from_two_rows([at(0), at(1), at(2)], [at(3), at(4), at(5)]);
        let det = phase_from_quarter_tangent(phase());
        Su3([a, b, [det * n1, det * n2, det * n3]])
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        u.0[j / 3][j % 3]
    }
}

/// Storage of the minimal eight reals of a matrix in SU(3) with rows a, b, c: a_2, a_3, b_1 and the phases φ of a_1 and
/// c_1 (Clark et al. 2009, appendix A.2), each phase as tan(φ/4). The storage is singular if a_2 = a_3 = 0: see
/// [`Recon8::is_singular`].
#[derive(Clone, Copy, Debug)]
pub struct Recon8;
/// Storage of the minimal nine reals of a matrix U in U(3): those of [`Recon8`] and the phase of the determinant D. Two
/// rows of U are orthogonal, and their cross product is D times the complex conjugate of the third row. Therefore D
/// b_1* and D c_1* replace b_1* and c_1* in the formulae of [`Recon8`]. No root of D is taken. The storage is singular
/// for the same matrices as [`Recon8`].
#[derive(Clone, Copy, Debug)]
pub struct Recon9;

/// Returns the complex number with square modulus `square` (zero if negative) and phase φ, which is given as tan(φ/4).
#[inline(always)]
fn polar<T: Real>(square: T, phase: T) -> Complex<T> {
    phase_from_quarter_tangent(phase).scale(square.sqrt_or_zero())
}

impl Recon8 {
    /// Returns whether |a_2|² + |a_3|² of the first row a is so small that the reconstruction would lose more than
    /// three digits.
    #[inline(always)]
    pub fn is_singular(u: &Su3<f64>) -> bool {
        u.0[0][1].norm_sqr() + u.0[0][2].norm_sqr() < 1e-6
    }
}

/// Returns a_1, c_1 and 1 / (|a_2|² + |a_3|²) from the stored numbers, with |a_1|² = 1 − |a_2|² − |a_3|² and |c_1|² = 1 −
/// |a_1|² − |b_1|².
#[inline(always)]
fn first_column<T: Real>(
    phases: Complex<T>,
    a2: Complex<T>,
    a3: Complex<T>,
    b1: Complex<T>,
) -> (Complex<T>, Complex<T>, T) {
    let rest = a2.re.mul_add(a2.re, a2.im.mul_add(a2.im, a3.norm_sqr()));
    let a1 = polar(T::ONE - rest, phases.re);
    let c1 = polar((-b1.re).mul_add(b1.re, (-b1.im).mul_add(b1.im, rest)), phases.im);
    (a1, c1, rest.reciprocal())
}
/// Returns the matrix of determinant D from its first row and column, with 1 / (|a_2|² + |a_3|²), D b_1* and D c_1*.
#[inline(always)]
fn from_row_and_column<T: Real>(
    [a1, a2, a3]: [Complex<T>; 3],
    [b1, c1]: [Complex<T>; 2],
    inverse: T,
    [b, c]: [Complex<T>; 2],
) -> Su3<T> {
    let (d2, d3) = (a2.scale(inverse), a3.scale(inverse));
    let minus_a1 = -a1.conj();
    let (along_b, along_c) = (minus_a1 * b1, minus_a1 * c1);
    let b2 = along_b.mul_add(d2, -(c * d3.conj()));
    let b3 = along_b.mul_add(d3, c * d2.conj());
    let c2 = along_c.mul_add(d2, b * d3.conj());
    let c3 = along_c.mul_add(d3, -(b * d2.conj()));
    Su3([[a1, a2, a3], [b1, b2, b3], [c1, c2, c3]])
}

impl Reconstruct for Recon8 {
    type Full = Recon18;
    const STORAGE: LinkStorage = LinkStorage::of(8);
    const KEPT: usize = 4;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>, _: impl Fn() -> T) -> Su3<T> {
        let (a2, a3, b1) = (at(1), at(2), at(3));
        let (a1, c1, inverse) = first_column(at(0), a2, a3, b1);
        from_row_and_column([a1, a2, a3], [b1, c1], inverse, [b1.conj(), c1.conj()])
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        match j {
            0 => complex(quarter_tangent(u.0[0][0]), quarter_tangent(u.0[2][0])),
            1 => u.0[0][1],
            2 => u.0[0][2],
            _ => u.0[1][0],
        }
    }
}
impl Reconstruct for Recon9 {
    type Full = Recon18;
    const STORAGE: LinkStorage = LinkStorage::of(9);
    const KEPT: usize = 4;
    const PHASE: bool = true;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>, phase: impl Fn() -> T) -> Su3<T> {
        let (a2, a3, b1) = (at(1), at(2), at(3));
        let (a1, c1, inverse) = first_column(at(0), a2, a3, b1);
        let det = phase_from_quarter_tangent(phase());
        from_row_and_column([a1, a2, a3], [b1, c1], inverse, [det * b1.conj(), det * c1.conj()])
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        Recon8::reduce(u, j)
    }
}

/// Storage of links in temporal gauge (Clark et al. 2009, section 4.3), as reconstruction `R`. Links in t are the unit
/// matrix except across the boundary, and only there are they read.
#[derive(Clone, Copy, Debug)]
pub struct Temporal<R>(PhantomData<R>);

macro_rules! temporal {
    ($recon:ident) => {
        impl Reconstruct for Temporal<$recon> {
            type Full = Recon18;
            const STORAGE: LinkStorage = $recon::STORAGE.in_temporal_gauge();
            const KEPT: usize = $recon::KEPT;
            const TEMPORAL: bool = true;
            #[inline(always)]
            fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>, phase: impl Fn() -> T) -> Su3<T> {
                $recon::expand(at, phase)
            }
            #[inline(always)]
            fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
                $recon::reduce(u, j)
            }
        }
    };
}
temporal!(Recon12);
temporal!(Recon8);

/// Storage of links in temporal gauge with the reconstruction [`Recon12`].
pub type Recon12T = Temporal<Recon12>;
/// Storage of links in temporal gauge with the reconstruction [`Recon8`].
pub type Recon8T = Temporal<Recon8>;

/// Storage of links in 16-bit fixed point for fields in single precision, as reconstruction `R` in
/// [`Half`](super::Half). CG with fields in 16 bits does not converge reliably for ill-conditioned operators, because
/// its directions become far larger than the residuals that are added to them. With links rounded to 16 bits, the
/// operator remains a fixed matrix. Links are most of the data that staggered operators read.
#[derive(Clone, Copy, Debug)]
pub struct InHalf<R>(PhantomData<R>);
/// Storage of long links in 16 bits, as in [`InHalf`], beside fat links of 21 bits ([`Fine18`]). Rounding of fat links to 16
/// bits changes small eigenvalues so much that CG for light quarks takes many more iterations.
#[derive(Clone, Copy, Debug)]
pub struct BesideFine<R>(PhantomData<R>);

macro_rules! in_16_bits {
    ($($wrapper:ident<$recon:ident> as $alias:ident, $storage:ident, full $full:ty: $beside:literal;)*) => {$(
        impl Reconstruct for $wrapper<$recon> {
            type Full = $full;
            const STORAGE: LinkStorage = $recon::STORAGE.$storage();
            const KEPT: usize = $recon::KEPT;
            const PHASE: bool = $recon::PHASE;
            #[inline(always)]
            fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>, phase: impl Fn() -> T) -> Su3<T> {
                $recon::expand(at, phase)
            }
            #[inline(always)]
            fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
                $recon::reduce(u, j)
            }
        }
        #[doc = concat!("[`", stringify!($recon), "`] in 16 bits beside ", $beside, ".")]
        pub type $alias = $wrapper<$recon>;
    )*};
}
in_16_bits! {
    InHalf<Recon18> as Recon18H, in_half, full Recon18H: "fields in single precision";
    InHalf<Recon12> as Recon12H, in_half, full Recon18H: "fields in single precision";
    InHalf<Recon8> as Recon8H, in_half, full Recon18H: "fields in single precision";
    InHalf<Recon13> as Recon13H, in_half, full Recon18H: "fields in single precision";
    InHalf<Recon9> as Recon9H, in_half, full Recon18H: "fields in single precision";
    BesideFine<Recon13> as Recon13F, in_fine, full Fine18: "fat links of 21 bits";
    BesideFine<Recon9> as Recon9F, in_fine, full Fine18: "fat links of 21 bits";
}
