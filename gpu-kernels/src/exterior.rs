//! Hopping terms at sites whose neighbours are other processes': one kernel for rows of a kind, in each precision and
//! reconstruction. A site near a cut is computed here as a whole, with its hops in the order in which they are made
//! elsewhere, so that a cut lattice gives the same bits as a whole one; in half precision to rounding, for projected
//! spinors travel with norms of their own.
use crate::algebra::{Real, Spinor, complex};
use crate::field::{Clover, Field};
use crate::ghost::Ghosts;
use crate::row::{dot, dots};
use crate::staggered::{Hops, Improved, Naive, Number, Vector};
use crate::storage::{
    CloverFormat, Colours, Double, Fp16, Half, LinkFormat, Recon8, Recon8H, Recon8T, Recon9, Recon9H, Recon12,
    Recon12H, Recon12T, Recon13, Recon13H, Recon18, Recon18H, Single, Spinors,
};
use crate::wilson::Hopping;
use crate::{Kernel, Reduction};
use core::marker::PhantomData;

/// What a row of a Wilson operator makes of the hops at a site, and of x there.
pub trait Form: Copy + Send + Sync + 'static {
    /// Of the kernel, and of the one with sums.
    const NAMES: [&'static str; 2];
    /// The result; `x` gives x.
    ///
    /// # Safety
    /// Site `i` exists.
    unsafe fn finish<P: CloverFormat, R>(
        row: &WilsonExterior<P, R, Self>,
        i: u32,
        hops: Spinor<P::Real>,
        x: Option<Spinor<P::Real>>,
    ) -> Spinor<P::Real>;
}

/// D ψ, or a x + b D ψ.
#[derive(Clone, Copy)]
pub struct Plain;
/// A⁻¹ D ψ, or x + b A⁻¹ D ψ.
#[derive(Clone, Copy)]
pub struct Inverse;
/// A x + b D ψ.
#[derive(Clone, Copy)]
pub struct CloverSum;

// All of them do it as the kernels for whole lattices, to the last bit.
impl Form for Plain {
    const NAMES: [&'static str; 2] = ["wilson_exterior", "wilson_exterior_dots"];
    #[inline(always)]
    unsafe fn finish<P: CloverFormat, R>(
        row: &WilsonExterior<P, R, Self>,
        _: u32,
        hops: Spinor<P::Real>,
        x: Option<Spinor<P::Real>>,
    ) -> Spinor<P::Real> {
        let (a, b) = (row.a, row.b);
        match x {
            Some(x) => x.zip(hops, |x, h| complex(a.mul_add(x.re, b * h.re), a.mul_add(x.im, b * h.im))),
            None => hops,
        }
    }
}
impl Form for Inverse {
    const NAMES: [&'static str; 2] = ["clover_exterior", "clover_exterior_dots"];
    #[inline(always)]
    unsafe fn finish<P: CloverFormat, R>(
        row: &WilsonExterior<P, R, Self>,
        i: u32,
        hops: Spinor<P::Real>,
        x: Option<Spinor<P::Real>>,
    ) -> Spinor<P::Real> {
        let hops = unsafe { row.clover.apply(i, &hops) };
        match x {
            Some(x) => add(x, row.b, hops),
            None => hops,
        }
    }
}
impl Form for CloverSum {
    const NAMES: [&'static str; 2] = ["clover_row_exterior", "clover_row_exterior_dots"];
    #[inline(always)]
    unsafe fn finish<P: CloverFormat, R>(
        row: &WilsonExterior<P, R, Self>,
        i: u32,
        hops: Spinor<P::Real>,
        x: Option<Spinor<P::Real>>,
    ) -> Spinor<P::Real> {
        match x {
            Some(x) => add(unsafe { row.clover.apply(i, &x) }, row.b, hops),
            None => hops,
        }
    }
}

#[inline(always)]
fn add<T: Real>(x: Spinor<T>, b: T, h: Spinor<T>) -> Spinor<T> {
    x.zip(h, |x, h| complex(b.mul_add(h.re, x.re), b.mul_add(h.im, x.im)))
}

/// A row of the Wilson or the Wilson-clover operator, or one with D† instead of D.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WilsonExterior<P: CloverFormat, R, F> {
    /// The result, on the sites of one parity.
    pub out: Field<Spinors<P>>,
    /// x, on the same parity. May be `out` itself.
    pub x: Field<Spinors<P>>,
    /// 0: the row has no x.
    pub sum: u32,
    /// 1: with D†.
    pub dagger: u32,
    /// Factor of x.
    pub a: P::Real,
    /// Factor of the hopping term.
    pub b: P::Real,
    /// A or A⁻¹ on the parity of the result, where the row has one.
    pub clover: Clover<P>,
    /// The hopping term.
    pub hopping: Hopping<P, R>,
    /// What it reads beyond the ends of the local lattice.
    pub ghosts: Ghosts<P>,
    /// The row.
    pub form: PhantomData<F>,
}

// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only, and reads no other element of it.
unsafe impl<P: CloverFormat, R: LinkFormat<P>, F: Form> Kernel for WilsonExterior<P, R, F> {
    const NAME: &'static [&'static str] = &[F::NAMES[0], P::NAME, R::NAME];
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.hopping.place(i)
    }
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let [hops] = if self.dagger != 0 {
                self.hopping.apply_with::<true, 1, _>(&self.ghosts, i, rhs)
            } else {
                self.hopping.apply_with::<false, 1, _>(&self.ghosts, i, rhs)
            };
            let x = if self.sum != 0 { Some(self.x.load_own(i, rhs)) } else { None };
            self.out.store(i, rhs, &F::finish(self, i, hops, x))
        }
    }
}

/// A row with x that also returns the sums of [`RowDots`](crate::row::RowDots). D only, not D†.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WilsonExteriorDots<P: CloverFormat, R, F> {
    /// The row.
    pub row: WilsonExterior<P, R, F>,
    /// w, on the parity of the result. May be x.
    pub w: Field<Spinors<P>>,
}

// SAFETY: as for the row; w is not written.
unsafe impl<P: CloverFormat, R: LinkFormat<P>, F: Form> Reduction for WilsonExteriorDots<P, R, F> {
    const NAME: &'static [&'static str] = &[F::NAMES[1], P::NAME, R::NAME];
    type Values = [f64; 8];
    const THREADS: u32 = 128;
    const LOOPS: bool = false;
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.row.place(i)
    }
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 8] {
        unsafe {
            let [hops] = self.row.hopping.apply_with::<false, 1, _>(&self.row.ghosts, i, rhs);
            let x = self.row.x.load_own(i, rhs);
            let y = F::finish(&self.row, i, hops, Some(x));
            self.row.out.store(i, rhs, &y);
            dots(x, y, self.w.load(i, rhs))
        }
    }
}

/// A row of a staggered operator: D ψ, or a x + b D ψ.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StaggeredExterior<H: Hops> {
    /// The result, on the sites of one parity.
    pub out: Field<Colours<H::Precision>>,
    /// x, on the same parity. May be `out` itself.
    pub x: Field<Colours<H::Precision>>,
    /// 0: D ψ alone.
    pub sum: u32,
    /// Factor of x.
    pub a: Number<H>,
    /// Factor of the hopping term.
    pub b: Number<H>,
    /// The hopping term.
    pub hops: H,
}

impl<H: Hops> StaggeredExterior<H> {
    #[inline(always)]
    unsafe fn compute(&self, i: u32, rhs: u32) -> Vector<H> {
        unsafe {
            let [hops] = self.hops.apply::<1>(i, rhs);
            if self.sum == 0 {
                return hops;
            }
            let (x, a, b) = (self.x.load_own(i, rhs), self.a, self.b);
            x.zip(hops, |x, h| complex(a.mul_add(x.re, b * h.re), a.mul_add(x.im, b * h.im)))
        }
    }
}

// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only, and reads no other element of it.
unsafe impl<H: Hops> Kernel for StaggeredExterior<H> {
    const NAME: &'static [&'static str] = H::NAMES[3];
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.hops.place(i)
    }
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe { self.out.store(i, rhs, &self.compute(i, rhs)) }
    }
}

/// A row that also returns \[Re (w, out), Im (w, out), ‖out‖²\].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StaggeredExteriorDot<H: Hops> {
    /// The row.
    pub row: StaggeredExterior<H>,
    /// w, on the same parity. May be x.
    pub w: Field<Colours<H::Precision>>,
}

// SAFETY: as for the row; w is not written.
unsafe impl<H: Hops> Reduction for StaggeredExteriorDot<H> {
    const NAME: &'static [&'static str] = H::NAMES[4];
    type Values = [f64; 3];
    const THREADS: u32 = 128;
    const LOOPS: bool = false;
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.row.place(i)
    }
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 3] {
        unsafe {
            let out = self.row.compute(i, rhs);
            self.row.out.store(i, rhs, &out);
            dot(out, self.w.load(i, rhs))
        }
    }
}

crate::entry! { INSTANCES of "exterior":
    kernel "exterior_double" wilson_exterior_double_18: WilsonExterior<Double, Recon18, Plain>, registers 255;
    kernel "exterior_double" clover_exterior_double_18: WilsonExterior<Double, Recon18, Inverse>, registers 255;
    kernel "exterior_double" clover_row_exterior_double_18: WilsonExterior<Double, Recon18, CloverSum>, registers 255;
    reduce "exterior_double" wilson_exterior_dots_double_18: WilsonExteriorDots<Double, Recon18, Plain>, registers 255;
    reduce "exterior_double" clover_exterior_dots_double_18: WilsonExteriorDots<Double, Recon18, Inverse>, registers 255;
    kernel "exterior_double" wilson_exterior_double_12: WilsonExterior<Double, Recon12, Plain>, registers 255;
    kernel "exterior_double" clover_exterior_double_12: WilsonExterior<Double, Recon12, Inverse>, registers 255;
    kernel "exterior_double" clover_row_exterior_double_12: WilsonExterior<Double, Recon12, CloverSum>, registers 255;
    reduce "exterior_double" wilson_exterior_dots_double_12: WilsonExteriorDots<Double, Recon12, Plain>, registers 255;
    reduce "exterior_double" clover_exterior_dots_double_12: WilsonExteriorDots<Double, Recon12, Inverse>, registers 255;
    kernel "exterior_double" wilson_exterior_double_8: WilsonExterior<Double, Recon8, Plain>, registers 255;
    kernel "exterior_double" clover_exterior_double_8: WilsonExterior<Double, Recon8, Inverse>, registers 255;
    kernel "exterior_double" clover_row_exterior_double_8: WilsonExterior<Double, Recon8, CloverSum>, registers 255;
    reduce "exterior_double" wilson_exterior_dots_double_8: WilsonExteriorDots<Double, Recon8, Plain>, registers 255;
    reduce "exterior_double" clover_exterior_dots_double_8: WilsonExteriorDots<Double, Recon8, Inverse>, registers 255;
    kernel "exterior_double" wilson_exterior_double_12t: WilsonExterior<Double, Recon12T, Plain>, registers 255;
    kernel "exterior_double" clover_exterior_double_12t: WilsonExterior<Double, Recon12T, Inverse>, registers 255;
    kernel "exterior_double" clover_row_exterior_double_12t: WilsonExterior<Double, Recon12T, CloverSum>, registers 255;
    reduce "exterior_double" wilson_exterior_dots_double_12t: WilsonExteriorDots<Double, Recon12T, Plain>, registers 255;
    reduce "exterior_double" clover_exterior_dots_double_12t: WilsonExteriorDots<Double, Recon12T, Inverse>, registers 255;
    kernel "exterior_double" wilson_exterior_double_8t: WilsonExterior<Double, Recon8T, Plain>, registers 255;
    kernel "exterior_double" clover_exterior_double_8t: WilsonExterior<Double, Recon8T, Inverse>, registers 255;
    kernel "exterior_double" clover_row_exterior_double_8t: WilsonExterior<Double, Recon8T, CloverSum>, registers 255;
    reduce "exterior_double" wilson_exterior_dots_double_8t: WilsonExteriorDots<Double, Recon8T, Plain>, registers 255;
    reduce "exterior_double" clover_exterior_dots_double_8t: WilsonExteriorDots<Double, Recon8T, Inverse>, registers 255;
    kernel "exterior_single" wilson_exterior_single_18: WilsonExterior<Single, Recon18, Plain>, registers 168;
    kernel "exterior_single" clover_exterior_single_18: WilsonExterior<Single, Recon18, Inverse>, registers 168;
    kernel "exterior_single" clover_row_exterior_single_18: WilsonExterior<Single, Recon18, CloverSum>, registers 168;
    reduce "exterior_single" wilson_exterior_dots_single_18: WilsonExteriorDots<Single, Recon18, Plain>, registers 208;
    reduce "exterior_single" clover_exterior_dots_single_18: WilsonExteriorDots<Single, Recon18, Inverse>, registers 208;
    kernel "exterior_single" wilson_exterior_single_12: WilsonExterior<Single, Recon12, Plain>, registers 168;
    kernel "exterior_single" clover_exterior_single_12: WilsonExterior<Single, Recon12, Inverse>, registers 168;
    kernel "exterior_single" clover_row_exterior_single_12: WilsonExterior<Single, Recon12, CloverSum>, registers 168;
    reduce "exterior_single" wilson_exterior_dots_single_12: WilsonExteriorDots<Single, Recon12, Plain>, registers 208;
    reduce "exterior_single" clover_exterior_dots_single_12: WilsonExteriorDots<Single, Recon12, Inverse>, registers 208;
    kernel "exterior_single" wilson_exterior_single_8: WilsonExterior<Single, Recon8, Plain>, registers 168;
    kernel "exterior_single" clover_exterior_single_8: WilsonExterior<Single, Recon8, Inverse>, registers 168;
    kernel "exterior_single" clover_row_exterior_single_8: WilsonExterior<Single, Recon8, CloverSum>, registers 168;
    reduce "exterior_single" wilson_exterior_dots_single_8: WilsonExteriorDots<Single, Recon8, Plain>, registers 208;
    reduce "exterior_single" clover_exterior_dots_single_8: WilsonExteriorDots<Single, Recon8, Inverse>, registers 208;
    kernel "exterior_single" wilson_exterior_single_12t: WilsonExterior<Single, Recon12T, Plain>, registers 168;
    kernel "exterior_single" clover_exterior_single_12t: WilsonExterior<Single, Recon12T, Inverse>, registers 168;
    kernel "exterior_single" clover_row_exterior_single_12t: WilsonExterior<Single, Recon12T, CloverSum>, registers 168;
    reduce "exterior_single" wilson_exterior_dots_single_12t: WilsonExteriorDots<Single, Recon12T, Plain>, registers 208;
    reduce "exterior_single" clover_exterior_dots_single_12t: WilsonExteriorDots<Single, Recon12T, Inverse>, registers 208;
    kernel "exterior_single" wilson_exterior_single_8t: WilsonExterior<Single, Recon8T, Plain>, registers 168;
    kernel "exterior_single" clover_exterior_single_8t: WilsonExterior<Single, Recon8T, Inverse>, registers 168;
    kernel "exterior_single" clover_row_exterior_single_8t: WilsonExterior<Single, Recon8T, CloverSum>, registers 168;
    reduce "exterior_single" wilson_exterior_dots_single_8t: WilsonExteriorDots<Single, Recon8T, Plain>, registers 208;
    reduce "exterior_single" clover_exterior_dots_single_8t: WilsonExteriorDots<Single, Recon8T, Inverse>, registers 208;
    kernel "exterior_half" wilson_exterior_half_18: WilsonExterior<Half, Recon18, Plain>, registers 128;
    kernel "exterior_half" clover_exterior_half_18: WilsonExterior<Half, Recon18, Inverse>, registers 128;
    kernel "exterior_half" clover_row_exterior_half_18: WilsonExterior<Half, Recon18, CloverSum>, registers 128;
    reduce "exterior_half" wilson_exterior_dots_half_18: WilsonExteriorDots<Half, Recon18, Plain>, registers 168;
    reduce "exterior_half" clover_exterior_dots_half_18: WilsonExteriorDots<Half, Recon18, Inverse>, registers 168;
    kernel "exterior_half" wilson_exterior_half_12: WilsonExterior<Half, Recon12, Plain>, registers 128;
    kernel "exterior_half" clover_exterior_half_12: WilsonExterior<Half, Recon12, Inverse>, registers 128;
    kernel "exterior_half" clover_row_exterior_half_12: WilsonExterior<Half, Recon12, CloverSum>, registers 128;
    reduce "exterior_half" wilson_exterior_dots_half_12: WilsonExteriorDots<Half, Recon12, Plain>, registers 168;
    reduce "exterior_half" clover_exterior_dots_half_12: WilsonExteriorDots<Half, Recon12, Inverse>, registers 168;
    kernel "exterior_half" wilson_exterior_half_8: WilsonExterior<Half, Recon8, Plain>, registers 128;
    kernel "exterior_half" clover_exterior_half_8: WilsonExterior<Half, Recon8, Inverse>, registers 128;
    kernel "exterior_half" clover_row_exterior_half_8: WilsonExterior<Half, Recon8, CloverSum>, registers 128;
    reduce "exterior_half" wilson_exterior_dots_half_8: WilsonExteriorDots<Half, Recon8, Plain>, registers 168;
    reduce "exterior_half" clover_exterior_dots_half_8: WilsonExteriorDots<Half, Recon8, Inverse>, registers 168;
    kernel "exterior_half" wilson_exterior_half_12t: WilsonExterior<Half, Recon12T, Plain>, registers 128;
    kernel "exterior_half" clover_exterior_half_12t: WilsonExterior<Half, Recon12T, Inverse>, registers 128;
    kernel "exterior_half" clover_row_exterior_half_12t: WilsonExterior<Half, Recon12T, CloverSum>, registers 128;
    reduce "exterior_half" wilson_exterior_dots_half_12t: WilsonExteriorDots<Half, Recon12T, Plain>, registers 168;
    reduce "exterior_half" clover_exterior_dots_half_12t: WilsonExteriorDots<Half, Recon12T, Inverse>, registers 168;
    kernel "exterior_fp16" wilson_exterior_fp16_18: WilsonExterior<Fp16, Recon18, Plain>, registers 128;
    kernel "exterior_fp16" clover_exterior_fp16_18: WilsonExterior<Fp16, Recon18, Inverse>, registers 128;
    kernel "exterior_fp16" clover_row_exterior_fp16_18: WilsonExterior<Fp16, Recon18, CloverSum>, registers 128;
    reduce "exterior_fp16" wilson_exterior_dots_fp16_18: WilsonExteriorDots<Fp16, Recon18, Plain>, registers 168;
    reduce "exterior_fp16" clover_exterior_dots_fp16_18: WilsonExteriorDots<Fp16, Recon18, Inverse>, registers 168;
    kernel "exterior_fp16" wilson_exterior_fp16_12: WilsonExterior<Fp16, Recon12, Plain>, registers 128;
    kernel "exterior_fp16" clover_exterior_fp16_12: WilsonExterior<Fp16, Recon12, Inverse>, registers 128;
    kernel "exterior_fp16" clover_row_exterior_fp16_12: WilsonExterior<Fp16, Recon12, CloverSum>, registers 128;
    reduce "exterior_fp16" wilson_exterior_dots_fp16_12: WilsonExteriorDots<Fp16, Recon12, Plain>, registers 168;
    reduce "exterior_fp16" clover_exterior_dots_fp16_12: WilsonExteriorDots<Fp16, Recon12, Inverse>, registers 168;
    kernel "exterior_fp16" wilson_exterior_fp16_8: WilsonExterior<Fp16, Recon8, Plain>, registers 128;
    kernel "exterior_fp16" clover_exterior_fp16_8: WilsonExterior<Fp16, Recon8, Inverse>, registers 128;
    kernel "exterior_fp16" clover_row_exterior_fp16_8: WilsonExterior<Fp16, Recon8, CloverSum>, registers 128;
    reduce "exterior_fp16" wilson_exterior_dots_fp16_8: WilsonExteriorDots<Fp16, Recon8, Plain>, registers 168;
    reduce "exterior_fp16" clover_exterior_dots_fp16_8: WilsonExteriorDots<Fp16, Recon8, Inverse>, registers 168;
    kernel "exterior_fp16" wilson_exterior_fp16_12t: WilsonExterior<Fp16, Recon12T, Plain>, registers 128;
    kernel "exterior_fp16" clover_exterior_fp16_12t: WilsonExterior<Fp16, Recon12T, Inverse>, registers 128;
    kernel "exterior_fp16" clover_row_exterior_fp16_12t: WilsonExterior<Fp16, Recon12T, CloverSum>, registers 128;
    reduce "exterior_fp16" wilson_exterior_dots_fp16_12t: WilsonExteriorDots<Fp16, Recon12T, Plain>, registers 168;
    reduce "exterior_fp16" clover_exterior_dots_fp16_12t: WilsonExteriorDots<Fp16, Recon12T, Inverse>, registers 168;
    kernel "exterior_colour_double" staggered_exterior_double_18: StaggeredExterior<Naive<Double, Recon18, Ghosts<Double>>>, registers 168;
    reduce "exterior_colour_double" staggered_exterior_dot_double_18: StaggeredExteriorDot<Naive<Double, Recon18, Ghosts<Double>>>, registers 168;
    kernel "exterior_colour_double" staggered_exterior_double_12: StaggeredExterior<Naive<Double, Recon12, Ghosts<Double>>>, registers 168;
    reduce "exterior_colour_double" staggered_exterior_dot_double_12: StaggeredExteriorDot<Naive<Double, Recon12, Ghosts<Double>>>, registers 168;
    kernel "exterior_colour_double" staggered_exterior_double_8: StaggeredExterior<Naive<Double, Recon8, Ghosts<Double>>>, registers 168;
    reduce "exterior_colour_double" staggered_exterior_dot_double_8: StaggeredExteriorDot<Naive<Double, Recon8, Ghosts<Double>>>, registers 184;
    kernel "exterior_colour_single" staggered_exterior_single_18: StaggeredExterior<Naive<Single, Recon18, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" staggered_exterior_dot_single_18: StaggeredExteriorDot<Naive<Single, Recon18, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" staggered_exterior_single_12: StaggeredExterior<Naive<Single, Recon12, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" staggered_exterior_dot_single_12: StaggeredExteriorDot<Naive<Single, Recon12, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" staggered_exterior_single_8: StaggeredExterior<Naive<Single, Recon8, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" staggered_exterior_dot_single_8: StaggeredExteriorDot<Naive<Single, Recon8, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" staggered_exterior_single_18h: StaggeredExterior<Naive<Single, Recon18H, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" staggered_exterior_dot_single_18h: StaggeredExteriorDot<Naive<Single, Recon18H, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" staggered_exterior_single_12h: StaggeredExterior<Naive<Single, Recon12H, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" staggered_exterior_dot_single_12h: StaggeredExteriorDot<Naive<Single, Recon12H, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" staggered_exterior_single_8h: StaggeredExterior<Naive<Single, Recon8H, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" staggered_exterior_dot_single_8h: StaggeredExteriorDot<Naive<Single, Recon8H, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_half" staggered_exterior_half_18: StaggeredExterior<Naive<Half, Recon18, Ghosts<Half>>>, registers 168;
    reduce "exterior_colour_half" staggered_exterior_dot_half_18: StaggeredExteriorDot<Naive<Half, Recon18, Ghosts<Half>>>, registers 168;
    kernel "exterior_colour_half" staggered_exterior_half_12: StaggeredExterior<Naive<Half, Recon12, Ghosts<Half>>>, registers 168;
    reduce "exterior_colour_half" staggered_exterior_dot_half_12: StaggeredExteriorDot<Naive<Half, Recon12, Ghosts<Half>>>, registers 168;
    kernel "exterior_colour_half" staggered_exterior_half_8: StaggeredExterior<Naive<Half, Recon8, Ghosts<Half>>>, registers 168;
    reduce "exterior_colour_half" staggered_exterior_dot_half_8: StaggeredExteriorDot<Naive<Half, Recon8, Ghosts<Half>>>, registers 168;
    kernel "exterior_colour_double" improved_exterior_double_18: StaggeredExterior<Improved<Double, Recon18, Ghosts<Double>>>, registers 176;
    reduce "exterior_colour_double" improved_exterior_dot_double_18: StaggeredExteriorDot<Improved<Double, Recon18, Ghosts<Double>>>, registers 168;
    kernel "exterior_colour_double" improved_exterior_double_12: StaggeredExterior<Improved<Double, Recon12, Ghosts<Double>>>, registers 168;
    reduce "exterior_colour_double" improved_exterior_dot_double_12: StaggeredExteriorDot<Improved<Double, Recon12, Ghosts<Double>>>, registers 168;
    kernel "exterior_colour_double" improved_exterior_double_8: StaggeredExterior<Improved<Double, Recon8, Ghosts<Double>>>, registers 168;
    reduce "exterior_colour_double" improved_exterior_dot_double_8: StaggeredExteriorDot<Improved<Double, Recon8, Ghosts<Double>>>, registers 184;
    kernel "exterior_colour_single" improved_exterior_single_18: StaggeredExterior<Improved<Single, Recon18, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_18: StaggeredExteriorDot<Improved<Single, Recon18, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" improved_exterior_single_12: StaggeredExterior<Improved<Single, Recon12, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_12: StaggeredExteriorDot<Improved<Single, Recon12, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" improved_exterior_single_8: StaggeredExterior<Improved<Single, Recon8, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_8: StaggeredExteriorDot<Improved<Single, Recon8, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" improved_exterior_single_18h: StaggeredExterior<Improved<Single, Recon18H, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_18h: StaggeredExteriorDot<Improved<Single, Recon18H, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" improved_exterior_single_12h: StaggeredExterior<Improved<Single, Recon12H, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_12h: StaggeredExteriorDot<Improved<Single, Recon12H, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" improved_exterior_single_8h: StaggeredExterior<Improved<Single, Recon8H, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_8h: StaggeredExteriorDot<Improved<Single, Recon8H, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_half" improved_exterior_half_18: StaggeredExterior<Improved<Half, Recon18, Ghosts<Half>>>, registers 168;
    reduce "exterior_colour_half" improved_exterior_dot_half_18: StaggeredExteriorDot<Improved<Half, Recon18, Ghosts<Half>>>, registers 168;
    kernel "exterior_colour_half" improved_exterior_half_12: StaggeredExterior<Improved<Half, Recon12, Ghosts<Half>>>, registers 168;
    reduce "exterior_colour_half" improved_exterior_dot_half_12: StaggeredExteriorDot<Improved<Half, Recon12, Ghosts<Half>>>, registers 168;
    kernel "exterior_colour_half" improved_exterior_half_8: StaggeredExterior<Improved<Half, Recon8, Ghosts<Half>>>, registers 168;
    reduce "exterior_colour_half" improved_exterior_dot_half_8: StaggeredExteriorDot<Improved<Half, Recon8, Ghosts<Half>>>, registers 168;
    kernel "exterior_colour_double" improved_exterior_double_13: StaggeredExterior<Improved<Double, Recon13, Ghosts<Double>>>, registers 168;
    reduce "exterior_colour_double" improved_exterior_dot_double_13: StaggeredExteriorDot<Improved<Double, Recon13, Ghosts<Double>>>, registers 168;
    kernel "exterior_colour_double" improved_exterior_double_9: StaggeredExterior<Improved<Double, Recon9, Ghosts<Double>>>, registers 168;
    reduce "exterior_colour_double" improved_exterior_dot_double_9: StaggeredExteriorDot<Improved<Double, Recon9, Ghosts<Double>>>, registers 184;
    kernel "exterior_colour_single" improved_exterior_single_13: StaggeredExterior<Improved<Single, Recon13, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_13: StaggeredExteriorDot<Improved<Single, Recon13, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" improved_exterior_single_9: StaggeredExterior<Improved<Single, Recon9, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_9: StaggeredExteriorDot<Improved<Single, Recon9, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" improved_exterior_single_13h: StaggeredExterior<Improved<Single, Recon13H, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_13h: StaggeredExteriorDot<Improved<Single, Recon13H, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_single" improved_exterior_single_9h: StaggeredExterior<Improved<Single, Recon9H, Ghosts<Single>>>, registers 168;
    reduce "exterior_colour_single" improved_exterior_dot_single_9h: StaggeredExteriorDot<Improved<Single, Recon9H, Ghosts<Single>>>, registers 168;
    kernel "exterior_colour_half" improved_exterior_half_13: StaggeredExterior<Improved<Half, Recon13, Ghosts<Half>>>, registers 168;
    reduce "exterior_colour_half" improved_exterior_dot_half_13: StaggeredExteriorDot<Improved<Half, Recon13, Ghosts<Half>>>, registers 168;
    kernel "exterior_colour_half" improved_exterior_half_9: StaggeredExterior<Improved<Half, Recon9, Ghosts<Half>>>, registers 168;
    reduce "exterior_colour_half" improved_exterior_dot_half_9: StaggeredExteriorDot<Improved<Half, Recon9, Ghosts<Half>>>, registers 168;
}
