//! Spinors in a format that is known at run time: the solvers are compiled once for all pairs of precisions.
use super::space::SpinorSpace;
use super::spinor::DeviceSpinor;
use crate::backend::Backend;
use crate::dirac::EvenOdd;
use crate::domain::{DeviceError, Domain, Result};
use crate::solve::IterationPrecision;
use gpu_kernels::storage::{Double, Fp16, Half, Precision, Single};
use num_complex::Complex64;
use solvers::{ConvertFrom, Dots, LinearOperator, VectorSpace};
use std::rc::Rc;

/// A [`SpinorSpace`] in one of the formats.
pub enum AnySpace<B> {
    /// Double precision.
    Double(SpinorSpace<B, Double>),
    /// Single precision.
    Single(SpinorSpace<B, Single>),
    /// Half precision, 16-bit fixed point.
    Half(SpinorSpace<B, Half>),
    /// 16-bit floating point.
    Fp16(SpinorSpace<B, Fp16>),
}

/// A block of vectors of an [`AnySpace`].
pub enum AnySpinor<B: Backend> {
    /// Double precision.
    Double(DeviceSpinor<B, Double>),
    /// Single precision.
    Single(DeviceSpinor<B, Single>),
    /// Half precision, 16-bit fixed point.
    Half(DeviceSpinor<B, Half>),
    /// 16-bit floating point.
    Fp16(DeviceSpinor<B, Fp16>),
}

/// An even-odd Dirac operator on an [`AnySpace`].
pub enum AnyOperator<B: Backend> {
    /// Double precision.
    Double(Rc<dyn EvenOdd<B, Double>>),
    /// Single precision.
    Single(Rc<dyn EvenOdd<B, Single>>),
    /// Half precision, 16-bit fixed point.
    Half(Rc<dyn EvenOdd<B, Half>>),
    /// 16-bit floating point.
    Fp16(Rc<dyn EvenOdd<B, Fp16>>),
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

impl<B: Backend> AnySpace<B> {
    /// Blocks of `nrhs` vectors in `precision`.
    pub fn new(domain: &Domain<B>, nrhs: usize, precision: IterationPrecision) -> Self {
        match precision {
            IterationPrecision::Double => AnySpace::Double(SpinorSpace::new(domain, nrhs)),
            IterationPrecision::Single => AnySpace::Single(SpinorSpace::new(domain, nrhs)),
            IterationPrecision::Half => AnySpace::Half(SpinorSpace::new(domain, nrhs)),
            IterationPrecision::Fp16 => AnySpace::Fp16(SpinorSpace::new(domain, nrhs)),
        }
    }
    /// `to` ← `from`, rounded to nearest where that is necessary.
    pub fn read(&self, from: &DeviceSpinor<B, Double>, to: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnySpace(s), to => AnySpinor(to); convert(s, &vec![1.0; s.nrhs()], from, to))
    }
    /// `to` ← `from`.
    pub fn write(
        &self,
        from: &AnySpinor<B>,
        double: &SpinorSpace<B, Double>,
        to: &mut DeviceSpinor<B, Double>,
    ) -> Result {
        on_format!(from => AnySpinor(from); convert(double, &vec![1.0; double.nrhs()], from, to))
    }
}

impl<B: Backend> VectorSpace for AnySpace<B> {
    type Vector = AnySpinor<B>;
    type Error = DeviceError;

    fn nrhs(&self) -> usize {
        on_format!(self => AnySpace(s); s.nrhs())
    }
    fn comfortable_norm(&self) -> Option<f64> {
        on_format!(self => AnySpace(s); s.comfortable_norm())
    }
    fn allocate(&self) -> Result<AnySpinor<B>> {
        Ok(match self {
            AnySpace::Double(s) => AnySpinor::Double(s.allocate()?),
            AnySpace::Single(s) => AnySpinor::Single(s.allocate()?),
            AnySpace::Half(s) => AnySpinor::Half(s.allocate()?),
            AnySpace::Fp16(s) => AnySpinor::Fp16(s.allocate()?),
        })
    }
    fn zero(&self, x: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnySpace(s), x => AnySpinor(x); s.zero(x))
    }
    fn copy(&self, from: &AnySpinor<B>, to: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnySpace(s), from => AnySpinor(from), to => AnySpinor(to); s.copy(from, to))
    }
    fn axpby(&self, a: &[Complex64], x: &AnySpinor<B>, b: &[Complex64], y: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnySpace(s), x => AnySpinor(x), y => AnySpinor(y); s.axpby(a, x, b, y))
    }
    fn norm2(&self, x: &AnySpinor<B>, out: &mut [f64]) -> Result {
        on_format!(self => AnySpace(s), x => AnySpinor(x); s.norm2(x, out))
    }
    fn dot(&self, x: &AnySpinor<B>, y: &AnySpinor<B>, out: &mut [Complex64]) -> Result {
        on_format!(self => AnySpace(s), x => AnySpinor(x), y => AnySpinor(y); s.dot(x, y, out))
    }
    fn axpy(&self, a: &[Complex64], x: &AnySpinor<B>, y: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnySpace(s), x => AnySpinor(x), y => AnySpinor(y); s.axpy(a, x, y))
    }
    fn axpy_norm2(&self, a: &[Complex64], x: &AnySpinor<B>, y: &mut AnySpinor<B>, out: &mut [f64]) -> Result {
        on_format!(self => AnySpace(s), x => AnySpinor(x), y => AnySpinor(y); s.axpy_norm2(a, x, y, out))
    }
    fn dot_norm2(&self, x: &AnySpinor<B>, y: &AnySpinor<B>, dot: &mut [Complex64], norm2: &mut [f64]) -> Result {
        on_format!(self => AnySpace(s), x => AnySpinor(x), y => AnySpinor(y); s.dot_norm2(x, y, dot, norm2))
    }
    fn sub_norm2(&self, b: &AnySpinor<B>, r: &mut AnySpinor<B>, out: &mut [f64]) -> Result {
        on_format!(self => AnySpace(s), b => AnySpinor(b), r => AnySpinor(r); s.sub_norm2(b, r, out))
    }
    fn cg_update(
        &self,
        alpha: &[f64],
        beta: &[f64],
        r: &AnySpinor<B>,
        x: &mut AnySpinor<B>,
        p: &mut AnySpinor<B>,
    ) -> Result {
        on_format!(self => AnySpace(s), r => AnySpinor(r), x => AnySpinor(x), p => AnySpinor(p);
            s.cg_update(alpha, beta, r, x, p))
    }
    fn bicgstab_step(
        &self,
        alpha: &[Complex64],
        omega: &[Complex64],
        beta: &[Complex64],
        v: &AnySpinor<B>,
        t: &AnySpinor<B>,
        x: &mut AnySpinor<B>,
        r: &mut AnySpinor<B>,
        p: &mut AnySpinor<B>,
    ) -> Result {
        on_format!(self => AnySpace(s), v => AnySpinor(v), t => AnySpinor(t), x => AnySpinor(x), r => AnySpinor(r),
            p => AnySpinor(p);
            s.bicgstab_step(alpha, omega, beta, v, t, x, r, p))
    }
}

/// `to` ← `scale` `from`: names the two spaces, which the compiler cannot infer from their vectors.
fn convert<B: Backend, P: Precision, Q: Precision>(
    space: &SpinorSpace<B, P>,
    scale: &[f64],
    from: &DeviceSpinor<B, Q>,
    to: &mut DeviceSpinor<B, P>,
) -> Result {
    ConvertFrom::<SpinorSpace<B, Q>>::convert(space, scale, from, to)
}

/// `to` ← `to` + `scale` `from`.
fn accumulate<B: Backend, P: Precision, Q: Precision>(
    space: &SpinorSpace<B, P>,
    scale: &[f64],
    from: &DeviceSpinor<B, Q>,
    to: &mut DeviceSpinor<B, P>,
) -> Result {
    ConvertFrom::<SpinorSpace<B, Q>>::accumulate(space, scale, from, to)
}

impl<B: Backend> ConvertFrom<AnySpace<B>> for AnySpace<B> {
    fn convert(&self, scale: &[f64], from: &AnySpinor<B>, to: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnySpace(s), to => AnySpinor(to);
            on_format!(from => AnySpinor(from); convert(s, scale, from, to)))
    }
    fn accumulate(&self, scale: &[f64], from: &AnySpinor<B>, to: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnySpace(s), to => AnySpinor(to);
            on_format!(from => AnySpinor(from); accumulate(s, scale, from, to)))
    }
}

impl<B: Backend> LinearOperator<AnySpace<B>> for AnyOperator<B> {
    fn apply(&self, x: &AnySpinor<B>, out: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnyOperator(a), x => AnySpinor(x), out => AnySpinor(out); a.apply(x, out))
    }
    fn apply_dagger(&self, x: &AnySpinor<B>, out: &mut AnySpinor<B>) -> Result {
        on_format!(self => AnyOperator(a), x => AnySpinor(x), out => AnySpinor(out); a.apply_dagger(x, out))
    }
    fn apply_dot(
        &self,
        space: &AnySpace<B>,
        x: &AnySpinor<B>,
        out: &mut AnySpinor<B>,
        w: &AnySpinor<B>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result {
        on_format!(self => AnyOperator(a), space => AnySpace(s), x => AnySpinor(x), out => AnySpinor(out),
            w => AnySpinor(w); a.apply_dot(s, x, out, w, dot, norm2))
    }
    fn apply_dots(
        &self,
        space: &AnySpace<B>,
        x: &AnySpinor<B>,
        out: &mut AnySpinor<B>,
        w: &AnySpinor<B>,
        dots: &mut [Dots],
    ) -> Result {
        on_format!(self => AnyOperator(a), space => AnySpace(s), x => AnySpinor(x), out => AnySpinor(out),
            w => AnySpinor(w); a.apply_dots(s, x, out, w, dots))
    }
    fn flops(&self) -> f64 {
        on_format!(self => AnyOperator(a); a.flops())
    }
    fn bytes(&self) -> f64 {
        on_format!(self => AnyOperator(a); a.bytes())
    }
}
