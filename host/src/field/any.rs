//! Fermion fields in a format that is known at run time: the solvers are compiled once for all pairs of precisions.
use super::device::{DeviceField, FieldKind};
use super::space::FieldSpace;
use crate::dirac::EvenOdd;
use crate::domain::{DeviceError, Domain, Result};
use crate::solve::IterationPrecision;
use gpu_kernels::storage::{Double, Fp16, Half, Precision, Single};
use num_complex::Complex64;
use solvers::{Behind, ConvertFrom, Descent, Dots, LinearOperator, ShiftStep, VectorSpace};
use std::rc::Rc;

/// A [`FieldSpace`] in one of the formats.
///
/// # Panics
/// All that it does with vectors panics where one of them has another format.
pub enum AnySpace<K> {
    /// Double precision.
    Double(FieldSpace<K, Double>),
    /// Single precision.
    Single(FieldSpace<K, Single>),
    /// Half precision, 16-bit fixed point.
    Half(FieldSpace<K, Half>),
    /// 16-bit floating point.
    Fp16(FieldSpace<K, Fp16>),
}

/// A block of vectors of an [`AnySpace`].
pub enum AnyField<K> {
    /// Double precision.
    Double(DeviceField<K, Double>),
    /// Single precision.
    Single(DeviceField<K, Single>),
    /// Half precision, 16-bit fixed point.
    Half(DeviceField<K, Half>),
    /// 16-bit floating point.
    Fp16(DeviceField<K, Fp16>),
}

/// An even-odd Dirac operator on an [`AnySpace`].
///
/// # Panics
/// As an [`AnySpace`].
pub enum AnyOperator<K> {
    /// Double precision.
    Double(Rc<dyn EvenOdd<K, Double>>),
    /// Single precision.
    Single(Rc<dyn EvenOdd<K, Single>>),
    /// Half precision, 16-bit fixed point.
    Half(Rc<dyn EvenOdd<K, Half>>),
    /// 16-bit floating point.
    Fp16(Rc<dyn EvenOdd<K, Fp16>>),
}

/// Evaluates an expression with the values inside enums of the same format.
macro_rules! on_format {
    ($subject:expr => $kind:ident($name:ident); $then:expr) => {
        match $subject {
            $kind::Double($name) => $then,
            $kind::Single($name) => $then,
            $kind::Half($name) => $then,
            $kind::Fp16($name) => $then,
        }
    };
    ($($subject:expr => $kind:ident($name:ident)),+; $then:expr) => {
        match ($($subject),+) {
            ($($kind::Double($name)),+) => $then,
            ($($kind::Single($name)),+) => $then,
            ($($kind::Half($name)),+) => $then,
            ($($kind::Fp16($name)),+) => $then,
            _ => unreachable!("vectors, operators and spaces of one solve have one format"),
        }
    };
}

/// The same for a space, several vectors and one more.
macro_rules! all_of_format {
    ($space:expr, $xs:expr, $y:expr; |$s:ident, $all:ident, $one:ident| $then:expr) => {
        all_of_format!(@each $space, $xs, $y, $s, $all, $one, $then, Double Single Half Fp16)
    };
    (@each $space:expr, $xs:expr, $y:expr, $s:ident, $all:ident, $one:ident, $then:expr, $($format:ident)*) => {
        match ($space, $y) {
            $((AnySpace::$format($s), AnyField::$format($one)) => {
                let typed = $xs.iter().map(|x| match x {
                    AnyField::$format(x) => x,
                    _ => unreachable!("vectors of one solve have one format"),
                });
                let $all: Vec<_> = typed.collect();
                $then
            })*
            _ => unreachable!("vectors and spaces of one solve have one format"),
        }
    };
}

impl<K: FieldKind> AnySpace<K> {
    /// Blocks of `nrhs` vectors in `precision`.
    pub fn new(domain: &Domain, nrhs: usize, precision: IterationPrecision) -> Self {
        match precision {
            IterationPrecision::Double => AnySpace::Double(FieldSpace::new(domain, nrhs)),
            IterationPrecision::Single => AnySpace::Single(FieldSpace::new(domain, nrhs)),
            IterationPrecision::Half => AnySpace::Half(FieldSpace::new(domain, nrhs)),
            IterationPrecision::Fp16 => AnySpace::Fp16(FieldSpace::new(domain, nrhs)),
        }
    }
    /// `to` ← `from`, rounded to nearest where that is necessary.
    ///
    /// # Errors
    /// Fields of another domain or number of right-hand sides, and failures of the device.
    ///
    /// # Panics
    /// Where `to` has another precision than the space.
    pub fn read(&self, from: &DeviceField<K, Double>, to: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), to => AnyField(to); convert(s, &vec![1.0; s.nrhs()], from, to))
    }
    /// `to` ← `from`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&self, from: &AnyField<K>, double: &FieldSpace<K, Double>, to: &mut DeviceField<K, Double>) -> Result {
        on_format!(from => AnyField(from); convert(double, &vec![1.0; double.nrhs()], from, to))
    }
}

impl<K: FieldKind> VectorSpace for AnySpace<K> {
    type Vector = AnyField<K>;
    type Error = DeviceError;

    fn nrhs(&self) -> usize {
        on_format!(self => AnySpace(s); s.nrhs())
    }
    fn narrow(&self, sides: usize) -> bool {
        on_format!(self => AnySpace(s); s.narrow(sides))
    }
    fn swap_sides(&self, x: &mut AnyField<K>, sides: (usize, usize), scratch: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), scratch => AnyField(t); s.swap_sides(x, sides, t))
    }
    fn comfortable_norm(&self) -> Option<f64> {
        on_format!(self => AnySpace(s); s.comfortable_norm())
    }
    fn allocate(&self) -> Result<AnyField<K>> {
        Ok(match self {
            AnySpace::Double(s) => AnyField::Double(s.allocate()?),
            AnySpace::Single(s) => AnyField::Single(s.allocate()?),
            AnySpace::Half(s) => AnyField::Half(s.allocate()?),
            AnySpace::Fp16(s) => AnyField::Fp16(s.allocate()?),
        })
    }
    fn zero(&self, x: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x); s.zero(x))
    }
    fn copy(&self, from: &AnyField<K>, to: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), from => AnyField(from), to => AnyField(to); s.copy(from, to))
    }
    fn axpby(&self, a: &[Complex64], x: &AnyField<K>, b: &[Complex64], y: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.axpby(a, x, b, y))
    }
    fn norm2(&self, x: &AnyField<K>, out: &mut [f64]) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x); s.norm2(x, out))
    }
    fn dot(&self, x: &AnyField<K>, y: &AnyField<K>, out: &mut [Complex64]) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.dot(x, y, out))
    }
    fn axpy(&self, a: &[Complex64], x: &AnyField<K>, y: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.axpy(a, x, y))
    }
    fn axpy_norm2(&self, a: &[Complex64], x: &AnyField<K>, y: &mut AnyField<K>, out: &mut [f64]) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.axpy_norm2(a, x, y, out))
    }
    fn dot_norm2(&self, x: &AnyField<K>, y: &AnyField<K>, dot: &mut [Complex64], norm2: &mut [f64]) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.dot_norm2(x, y, dot, norm2))
    }
    fn xpay_norm2(
        &self,
        x: &AnyField<K>,
        a: &[f64],
        y: &mut AnyField<K>,
        out: &mut [f64],
        behind: Behind<'_, DeviceError>,
    ) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.xpay_norm2(x, a, y, out, behind))
    }
    fn sub_norm2(&self, b: &AnyField<K>, r: &mut AnyField<K>, out: &mut [f64]) -> Result {
        on_format!(self => AnySpace(s), b => AnyField(b), r => AnyField(r); s.sub_norm2(b, r, out))
    }
    fn cg_update(
        &self,
        alpha: &[f64],
        beta: &[f64],
        r: &AnyField<K>,
        x: &mut AnyField<K>,
        p: &mut AnyField<K>,
    ) -> Result {
        on_format!(self => AnySpace(s), r => AnyField(r), x => AnyField(x), p => AnyField(p);
            s.cg_update(alpha, beta, r, x, p))
    }
    fn updates_behind(&self) -> usize {
        on_format!(self => AnySpace(s); s.updates_behind())
    }
    fn shift_update(&self, r: &AnyField<K>, steps: &mut [ShiftStep<'_, AnyField<K>>]) -> Result {
        macro_rules! of {
            ($($format:ident)*) => {
                match (self, r) {
                    $((AnySpace::$format(s), AnyField::$format(r)) => {
                        let typed = steps.iter_mut().map(|ShiftStep { a, z, b, x, p }| match (&mut **x, &mut **p) {
                            (AnyField::$format(x), AnyField::$format(p)) => ShiftStep { a, z, b, x, p },
                            _ => unreachable!("vectors of one solve have one format"),
                        });
                        s.shift_update(r, &mut typed.collect::<Vec<_>>())
                    })*
                    _ => unreachable!("vectors and spaces of one solve have one format"),
                }
            };
        }
        of!(Double Single Half Fp16)
    }
    fn mr_update(&self, alpha: &[Complex64], r: &AnyField<K>, x: &mut AnyField<K>, t: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), r => AnyField(r), x => AnyField(x), t => AnyField(t);
            s.mr_update(alpha, r, x, t))
    }
    fn multi_dot(&self, xs: &[AnyField<K>], y: &AnyField<K>, dots: &mut [Complex64], norm2: &mut [f64]) -> Result {
        all_of_format!(self, xs, y; |s, xs, y| s.products(&xs, y, dots, norm2))
    }
    fn multi_axpy(&self, a: &[Complex64], xs: &[AnyField<K>], y: &mut AnyField<K>) -> Result {
        all_of_format!(self, xs, y; |s, xs, y| s.add_all(a, &xs, y))
    }
    fn mixes_sides(&self) -> bool {
        on_format!(self => AnySpace(s); s.mixes_sides())
    }
    fn gram(&self, x: &AnyField<K>, y: &AnyField<K>, out: &mut [Complex64]) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.gram(x, y, out))
    }
    fn block_axpy(&self, a: &[Complex64], x: &AnyField<K>, y: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.block_axpy(a, x, y))
    }
    fn block_scale(&self, a: &[Complex64], x: &AnyField<K>, y: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), x => AnyField(x), y => AnyField(y); s.block_scale(a, x, y))
    }
    fn bicgstab_step(
        &self,
        alpha: &[Complex64],
        omega: &[Complex64],
        beta: &[Complex64],
        v: &AnyField<K>,
        t: &AnyField<K>,
        x: &mut AnyField<K>,
        r: &mut AnyField<K>,
        p: &mut AnyField<K>,
    ) -> Result {
        on_format!(self => AnySpace(s), v => AnyField(v), t => AnyField(t), x => AnyField(x), r => AnyField(r),
            p => AnyField(p);
            s.bicgstab_step(alpha, omega, beta, v, t, x, r, p))
    }
}

/// `to` ← `scale` `from`: names the two spaces, which the compiler cannot infer from their vectors.
fn convert<K: FieldKind, P: Precision, Q: Precision>(
    space: &FieldSpace<K, P>,
    scale: &[f64],
    from: &DeviceField<K, Q>,
    to: &mut DeviceField<K, P>,
) -> Result {
    ConvertFrom::<FieldSpace<K, Q>>::convert(space, scale, from, to)
}

/// `to` ← `to` + `scale` `from`.
fn accumulate<K: FieldKind, P: Precision, Q: Precision>(
    space: &FieldSpace<K, P>,
    scale: &[f64],
    from: &DeviceField<K, Q>,
    to: &mut DeviceField<K, P>,
) -> Result {
    ConvertFrom::<FieldSpace<K, Q>>::accumulate(space, scale, from, to)
}

impl<K: FieldKind> ConvertFrom<AnySpace<K>> for AnySpace<K> {
    fn convert(&self, scale: &[f64], from: &AnyField<K>, to: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), to => AnyField(to);
            on_format!(from => AnyField(from); convert(s, scale, from, to)))
    }
    fn accumulate(&self, scale: &[f64], from: &AnyField<K>, to: &mut AnyField<K>) -> Result {
        on_format!(self => AnySpace(s), to => AnyField(to);
            on_format!(from => AnyField(from); accumulate(s, scale, from, to)))
    }
}

impl<K: FieldKind> LinearOperator<AnySpace<K>> for AnyOperator<K> {
    fn apply(&self, x: &AnyField<K>, out: &mut AnyField<K>) -> Result {
        on_format!(self => AnyOperator(a), x => AnyField(x), out => AnyField(out); a.apply(x, out))
    }
    fn apply_dagger(&self, x: &AnyField<K>, out: &mut AnyField<K>) -> Result {
        on_format!(self => AnyOperator(a), x => AnyField(x), out => AnyField(out); a.apply_dagger(x, out))
    }
    fn apply_dot(
        &self,
        space: &AnySpace<K>,
        x: &AnyField<K>,
        out: &mut AnyField<K>,
        w: &AnyField<K>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result {
        on_format!(self => AnyOperator(a), space => AnySpace(s), x => AnyField(x), out => AnyField(out),
            w => AnyField(w); a.apply_dot(s, x, out, w, dot, norm2))
    }
    fn apply_dots(
        &self,
        space: &AnySpace<K>,
        x: &AnyField<K>,
        out: &mut AnyField<K>,
        w: &AnyField<K>,
        dots: &mut [Dots],
    ) -> Result {
        on_format!(self => AnyOperator(a), space => AnySpace(s), x => AnyField(x), out => AnyField(out),
            w => AnyField(w); a.apply_dots(s, x, out, w, dots))
    }
    fn apply_curvature(
        &self,
        space: &AnySpace<K>,
        shift: f64,
        x: &AnyField<K>,
        out: &mut AnyField<K>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
        behind: Behind<'_, DeviceError>,
    ) -> Result {
        on_format!(self => AnyOperator(a), space => AnySpace(s), x => AnyField(x), out => AnyField(out);
            a.apply_curvature(s, shift, x, out, dot, norm2, behind))
    }
    fn descend(
        &self,
        space: &AnySpace<K>,
        from: &Descent<'_, AnyField<K>>,
        out: &mut AnyField<K>,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        behind: [Behind<'_, DeviceError>; 2],
    ) -> Result {
        let Descent { shift, p, r, rho } = *from;
        on_format!(self => AnyOperator(a), space => AnySpace(s), p => AnyField(p), r => AnyField(r), out => AnyField(out);
            a.descend(s, &Descent { shift, p, r, rho }, out, curvature, norm2, behind))
    }
    fn narrow(&self, sides: usize) -> bool {
        on_format!(self => AnyOperator(a); a.narrow(sides))
    }
    fn flops(&self) -> f64 {
        on_format!(self => AnyOperator(a); a.flops())
    }
    fn bytes(&self) -> f64 {
        on_format!(self => AnyOperator(a); a.bytes())
    }
}
