//! Hopping terms at sites whose neighbours are other processes': every operator's row in one kernel for each precision
//! and reconstruction. A site near a cut is computed here as a whole, with its hops in the order in which they are made
//! elsewhere, so that a cut lattice gives the same bits as a whole one.
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

/// A row of the Wilson or the Wilson-clover operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Form {
    /// D ψ
    Hops,
    /// a x + b D ψ
    Sum,
    /// A⁻¹ D ψ
    Inverse,
    /// x + b A⁻¹ D ψ
    InverseSum,
    /// A x + b D ψ
    CloverSum,
}

/// A row of the Wilson or the Wilson-clover operator, or one with D† instead of D.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WilsonExterior<P: CloverFormat, R> {
    /// The result, on the sites of one parity.
    pub out: Field<Spinors<P>>,
    /// x, on the same parity. May be `out` itself.
    pub x: Field<Spinors<P>>,
    /// Which row.
    pub form: Form,
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
}

impl<P: CloverFormat, R: LinkFormat<P>> WilsonExterior<P, R> {
    /// The result at site `i`, not yet written, and x there, 0 where the row has none.
    #[inline(always)]
    unsafe fn compute<const DAGGER: bool>(&self, i: u32, rhs: u32) -> (Spinor<P::Real>, Spinor<P::Real>) {
        let (a, b) = (self.a, self.b);
        // As the kernels for whole lattices do it, to the last bit.
        let add = |x: Spinor<P::Real>, h: Spinor<P::Real>| {
            x.zip(h, |x, h| complex(b.mul_add(h.re, x.re), b.mul_add(h.im, x.im)))
        };
        unsafe {
            let hops = self.hopping.apply_with::<DAGGER, _>(&self.ghosts, i, rhs);
            let hops = match self.form {
                Form::Inverse | Form::InverseSum => self.clover.apply(i, &hops),
                _ => hops,
            };
            let x = match self.form {
                Form::Hops | Form::Inverse => return (hops, Spinor::ZERO),
                _ => self.x.load_own(i, rhs),
            };
            let out = match self.form {
                Form::Sum => x.zip(hops, |x, h| complex(a.mul_add(x.re, b * h.re), a.mul_add(x.im, b * h.im))),
                Form::CloverSum => add(self.clover.apply(i, &x), hops),
                _ => add(x, hops),
            };
            (out, x)
        }
    }
}

// SAFETY: call (i, rhs) writes element (i, rhs) of `out` only, and reads no other element of it.
unsafe impl<P: CloverFormat, R: LinkFormat<P>> Kernel for WilsonExterior<P, R> {
    const NAME: &'static [&'static str] = &["wilson_exterior", P::NAME, R::NAME];
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.hopping.place(i)
    }
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (out, _) = if self.dagger != 0 { self.compute::<true>(i, rhs) } else { self.compute::<false>(i, rhs) };
            self.out.store(i, rhs, &out)
        }
    }
}

/// A row that also returns the sums of [`RowDots`](crate::row::RowDots). D only, not D†.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct WilsonExteriorDots<P: CloverFormat, R> {
    /// The row.
    pub row: WilsonExterior<P, R>,
    /// w, on the parity of the result. May be x.
    pub w: Field<Spinors<P>>,
}

// SAFETY: as for the row; w is not written.
unsafe impl<P: CloverFormat, R: LinkFormat<P>> Reduction for WilsonExteriorDots<P, R> {
    const NAME: &'static [&'static str] = &["wilson_exterior_dots", P::NAME, R::NAME];
    type Values = [f64; 8];
    const THREADS: u32 = 128;
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        self.row.place(i)
    }
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 8] {
        unsafe {
            let (y, x) = self.row.compute::<false>(i, rhs);
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
            let hops = self.hops.apply(i, rhs);
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

// One kernel for all rows has more in registers than there are: some spill, on the few sites near a cut.
crate::entry! { INSTANCES:
    setup "exterior_double" wilson_exterior_double_18: WilsonExterior<Double, Recon18>, registers 255;
    observe "exterior_double" wilson_exterior_dots_double_18: WilsonExteriorDots<Double, Recon18>, registers 255;
    setup "exterior_double" wilson_exterior_double_12: WilsonExterior<Double, Recon12>, registers 255;
    observe "exterior_double" wilson_exterior_dots_double_12: WilsonExteriorDots<Double, Recon12>, registers 255;
    setup "exterior_double" wilson_exterior_double_8: WilsonExterior<Double, Recon8>, registers 255;
    observe "exterior_double" wilson_exterior_dots_double_8: WilsonExteriorDots<Double, Recon8>, registers 255;
    setup "exterior_double" wilson_exterior_double_12t: WilsonExterior<Double, Recon12T>, registers 255;
    observe "exterior_double" wilson_exterior_dots_double_12t: WilsonExteriorDots<Double, Recon12T>, registers 255;
    setup "exterior_double" wilson_exterior_double_8t: WilsonExterior<Double, Recon8T>, registers 255;
    observe "exterior_double" wilson_exterior_dots_double_8t: WilsonExteriorDots<Double, Recon8T>, registers 255;
    setup "exterior_single" wilson_exterior_single_18: WilsonExterior<Single, Recon18>, registers 232;
    observe "exterior_single" wilson_exterior_dots_single_18: WilsonExteriorDots<Single, Recon18>, registers 232;
    setup "exterior_single" wilson_exterior_single_12: WilsonExterior<Single, Recon12>, registers 232;
    observe "exterior_single" wilson_exterior_dots_single_12: WilsonExteriorDots<Single, Recon12>, registers 232;
    setup "exterior_single" wilson_exterior_single_8: WilsonExterior<Single, Recon8>, registers 232;
    observe "exterior_single" wilson_exterior_dots_single_8: WilsonExteriorDots<Single, Recon8>, registers 232;
    setup "exterior_single" wilson_exterior_single_12t: WilsonExterior<Single, Recon12T>, registers 232;
    observe "exterior_single" wilson_exterior_dots_single_12t: WilsonExteriorDots<Single, Recon12T>, registers 232;
    setup "exterior_single" wilson_exterior_single_8t: WilsonExterior<Single, Recon8T>, registers 232;
    observe "exterior_single" wilson_exterior_dots_single_8t: WilsonExteriorDots<Single, Recon8T>, registers 232;
    setup "exterior_half" wilson_exterior_half_18: WilsonExterior<Half, Recon18>, registers 168;
    observe "exterior_half" wilson_exterior_dots_half_18: WilsonExteriorDots<Half, Recon18>, registers 168;
    setup "exterior_half" wilson_exterior_half_12: WilsonExterior<Half, Recon12>, registers 168;
    observe "exterior_half" wilson_exterior_dots_half_12: WilsonExteriorDots<Half, Recon12>, registers 168;
    setup "exterior_half" wilson_exterior_half_8: WilsonExterior<Half, Recon8>, registers 168;
    observe "exterior_half" wilson_exterior_dots_half_8: WilsonExteriorDots<Half, Recon8>, registers 168;
    setup "exterior_half" wilson_exterior_half_12t: WilsonExterior<Half, Recon12T>, registers 168;
    observe "exterior_half" wilson_exterior_dots_half_12t: WilsonExteriorDots<Half, Recon12T>, registers 168;
    setup "exterior_fp16" wilson_exterior_fp16_18: WilsonExterior<Fp16, Recon18>, registers 168;
    observe "exterior_fp16" wilson_exterior_dots_fp16_18: WilsonExteriorDots<Fp16, Recon18>, registers 168;
    setup "exterior_fp16" wilson_exterior_fp16_12: WilsonExterior<Fp16, Recon12>, registers 168;
    observe "exterior_fp16" wilson_exterior_dots_fp16_12: WilsonExteriorDots<Fp16, Recon12>, registers 168;
    setup "exterior_fp16" wilson_exterior_fp16_8: WilsonExterior<Fp16, Recon8>, registers 168;
    observe "exterior_fp16" wilson_exterior_dots_fp16_8: WilsonExteriorDots<Fp16, Recon8>, registers 168;
    setup "exterior_fp16" wilson_exterior_fp16_12t: WilsonExterior<Fp16, Recon12T>, registers 168;
    observe "exterior_fp16" wilson_exterior_dots_fp16_12t: WilsonExteriorDots<Fp16, Recon12T>, registers 168;
    setup "exterior_colour_double" staggered_exterior_double_18: StaggeredExterior<Naive<Double, Recon18, Ghosts<Double>>>, registers 168;
    observe "exterior_colour_double" staggered_exterior_dot_double_18: StaggeredExteriorDot<Naive<Double, Recon18, Ghosts<Double>>>, registers 168;
    setup "exterior_colour_double" staggered_exterior_double_12: StaggeredExterior<Naive<Double, Recon12, Ghosts<Double>>>, registers 168;
    observe "exterior_colour_double" staggered_exterior_dot_double_12: StaggeredExteriorDot<Naive<Double, Recon12, Ghosts<Double>>>, registers 168;
    setup "exterior_colour_double" staggered_exterior_double_8: StaggeredExterior<Naive<Double, Recon8, Ghosts<Double>>>, registers 168;
    observe "exterior_colour_double" staggered_exterior_dot_double_8: StaggeredExteriorDot<Naive<Double, Recon8, Ghosts<Double>>>, registers 168;
    setup "exterior_colour_single" staggered_exterior_single_18: StaggeredExterior<Naive<Single, Recon18, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" staggered_exterior_dot_single_18: StaggeredExteriorDot<Naive<Single, Recon18, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" staggered_exterior_single_12: StaggeredExterior<Naive<Single, Recon12, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" staggered_exterior_dot_single_12: StaggeredExteriorDot<Naive<Single, Recon12, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" staggered_exterior_single_8: StaggeredExterior<Naive<Single, Recon8, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" staggered_exterior_dot_single_8: StaggeredExteriorDot<Naive<Single, Recon8, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" staggered_exterior_single_18h: StaggeredExterior<Naive<Single, Recon18H, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" staggered_exterior_dot_single_18h: StaggeredExteriorDot<Naive<Single, Recon18H, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" staggered_exterior_single_12h: StaggeredExterior<Naive<Single, Recon12H, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" staggered_exterior_dot_single_12h: StaggeredExteriorDot<Naive<Single, Recon12H, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" staggered_exterior_single_8h: StaggeredExterior<Naive<Single, Recon8H, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" staggered_exterior_dot_single_8h: StaggeredExteriorDot<Naive<Single, Recon8H, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_half" staggered_exterior_half_18: StaggeredExterior<Naive<Half, Recon18, Ghosts<Half>>>, registers 168;
    observe "exterior_colour_half" staggered_exterior_dot_half_18: StaggeredExteriorDot<Naive<Half, Recon18, Ghosts<Half>>>, registers 168;
    setup "exterior_colour_half" staggered_exterior_half_12: StaggeredExterior<Naive<Half, Recon12, Ghosts<Half>>>, registers 168;
    observe "exterior_colour_half" staggered_exterior_dot_half_12: StaggeredExteriorDot<Naive<Half, Recon12, Ghosts<Half>>>, registers 168;
    setup "exterior_colour_half" staggered_exterior_half_8: StaggeredExterior<Naive<Half, Recon8, Ghosts<Half>>>, registers 168;
    observe "exterior_colour_half" staggered_exterior_dot_half_8: StaggeredExteriorDot<Naive<Half, Recon8, Ghosts<Half>>>, registers 168;
    setup "exterior_colour_double" improved_exterior_double_18: StaggeredExterior<Improved<Double, Recon18, Ghosts<Double>>>, registers 168;
    observe "exterior_colour_double" improved_exterior_dot_double_18: StaggeredExteriorDot<Improved<Double, Recon18, Ghosts<Double>>>, registers 168;
    setup "exterior_colour_double" improved_exterior_double_12: StaggeredExterior<Improved<Double, Recon12, Ghosts<Double>>>, registers 168;
    observe "exterior_colour_double" improved_exterior_dot_double_12: StaggeredExteriorDot<Improved<Double, Recon12, Ghosts<Double>>>, registers 168;
    setup "exterior_colour_double" improved_exterior_double_8: StaggeredExterior<Improved<Double, Recon8, Ghosts<Double>>>, registers 168;
    observe "exterior_colour_double" improved_exterior_dot_double_8: StaggeredExteriorDot<Improved<Double, Recon8, Ghosts<Double>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_18: StaggeredExterior<Improved<Single, Recon18, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_18: StaggeredExteriorDot<Improved<Single, Recon18, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_12: StaggeredExterior<Improved<Single, Recon12, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_12: StaggeredExteriorDot<Improved<Single, Recon12, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_8: StaggeredExterior<Improved<Single, Recon8, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_8: StaggeredExteriorDot<Improved<Single, Recon8, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_18h: StaggeredExterior<Improved<Single, Recon18H, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_18h: StaggeredExteriorDot<Improved<Single, Recon18H, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_12h: StaggeredExterior<Improved<Single, Recon12H, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_12h: StaggeredExteriorDot<Improved<Single, Recon12H, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_8h: StaggeredExterior<Improved<Single, Recon8H, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_8h: StaggeredExteriorDot<Improved<Single, Recon8H, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_half" improved_exterior_half_18: StaggeredExterior<Improved<Half, Recon18, Ghosts<Half>>>, registers 168;
    observe "exterior_colour_half" improved_exterior_dot_half_18: StaggeredExteriorDot<Improved<Half, Recon18, Ghosts<Half>>>, registers 168;
    setup "exterior_colour_half" improved_exterior_half_12: StaggeredExterior<Improved<Half, Recon12, Ghosts<Half>>>, registers 168;
    observe "exterior_colour_half" improved_exterior_dot_half_12: StaggeredExteriorDot<Improved<Half, Recon12, Ghosts<Half>>>, registers 168;
    setup "exterior_colour_half" improved_exterior_half_8: StaggeredExterior<Improved<Half, Recon8, Ghosts<Half>>>, registers 168;
    observe "exterior_colour_half" improved_exterior_dot_half_8: StaggeredExteriorDot<Improved<Half, Recon8, Ghosts<Half>>>, registers 168;
    setup "exterior_colour_double" improved_exterior_double_13: StaggeredExterior<Improved<Double, Recon13, Ghosts<Double>>>, registers 168;
    observe "exterior_colour_double" improved_exterior_dot_double_13: StaggeredExteriorDot<Improved<Double, Recon13, Ghosts<Double>>>, registers 168;
    setup "exterior_colour_double" improved_exterior_double_9: StaggeredExterior<Improved<Double, Recon9, Ghosts<Double>>>, registers 168;
    observe "exterior_colour_double" improved_exterior_dot_double_9: StaggeredExteriorDot<Improved<Double, Recon9, Ghosts<Double>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_13: StaggeredExterior<Improved<Single, Recon13, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_13: StaggeredExteriorDot<Improved<Single, Recon13, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_9: StaggeredExterior<Improved<Single, Recon9, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_9: StaggeredExteriorDot<Improved<Single, Recon9, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_13h: StaggeredExterior<Improved<Single, Recon13H, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_13h: StaggeredExteriorDot<Improved<Single, Recon13H, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_single" improved_exterior_single_9h: StaggeredExterior<Improved<Single, Recon9H, Ghosts<Single>>>, registers 168;
    observe "exterior_colour_single" improved_exterior_dot_single_9h: StaggeredExteriorDot<Improved<Single, Recon9H, Ghosts<Single>>>, registers 168;
    setup "exterior_colour_half" improved_exterior_half_13: StaggeredExterior<Improved<Half, Recon13, Ghosts<Half>>>, registers 168;
    observe "exterior_colour_half" improved_exterior_dot_half_13: StaggeredExteriorDot<Improved<Half, Recon13, Ghosts<Half>>>, registers 168;
    setup "exterior_colour_half" improved_exterior_half_9: StaggeredExterior<Improved<Half, Recon9, Ghosts<Half>>>, registers 168;
    observe "exterior_colour_half" improved_exterior_dot_half_9: StaggeredExteriorDot<Improved<Half, Recon9, Ghosts<Half>>>, registers 168;
}
