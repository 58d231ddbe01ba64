//! Operators composed of operators, and the pairing of a precise and a sloppy operator.

use crate::rows::KeptRho;
use crate::traits::{CgStep, ConvertFrom, Dots, LinearOperator, Overlap, VectorSpace, narrow_all, with_coefficients};
use num_complex::Complex64;
use std::cell::RefCell;

/// The operator M†M: Hermitian, and positive definite if M is regular. Solving M†M x = M†b by CG is CGNR.
pub struct Normal<S: VectorSpace, A> {
    operator: A,
    scratch: RefCell<S::Vector>,
}

impl<S: VectorSpace, A: LinearOperator<S>> Normal<S, A> {
    /// Wraps `operator` (or a reference to it) and allocates the vector for M x.
    pub fn new(space: &S, operator: A) -> Result<Self, S::Error> {
        Ok(Self { operator, scratch: RefCell::new(space.allocate()?) })
    }

    /// Returns the operator M.
    pub fn inner(&self) -> &A {
        &self.operator
    }
}

impl<S: VectorSpace, A: LinearOperator<S>> LinearOperator<S> for Normal<S, A> {
    fn apply(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        let mut scratch = self.scratch.borrow_mut();
        self.operator.apply(x, &mut scratch)?;
        self.operator.apply_dagger(&scratch, out)
    }
    fn apply_dagger(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        self.apply(x, out)
    }
    /// Takes a step of CG with (p, (M†M + σ) p) = ‖M p‖² + σ ‖p‖². If the sums of M p stay on the device, there is one wait
    /// instead of two.
    fn cg_step(
        &self,
        space: &S,
        from: &CgStep<'_, S::Vector>,
        out: &mut S::Vector,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, S::Error>; 2],
    ) -> Result<(), S::Error> {
        const PLACE: usize = 0;
        if let Some(kept) = space.kept() {
            let mut scratch = self.scratch.borrow_mut();
            // Only the sums for BiCGstab contain ‖p‖².
            let is_kept = match from.shift == 0.0 {
                true => self.operator.apply_dot_kept(space, from.p, &mut scratch, from.p, PLACE)?,
                false => self.operator.apply_dots_kept(space, from.p, &mut scratch, from.p, PLACE)?,
            };
            if is_kept {
                self.operator.apply_dagger(&scratch, out)?;
                return kept.cg_step_kept(from, out, PLACE, curvature, norm2, overlap);
            }
        }
        from.with_two_reductions(space, self, out, curvature, norm2, overlap)
    }
    fn cg_step_kept(
        &self,
        space: &S,
        [p, r]: [&S::Vector; 2],
        out: &mut S::Vector,
        rho: KeptRho<'_, f64>,
        [curvature, next]: [usize; 2],
    ) -> Result<bool, S::Error> {
        let Some(kept) = space.kept() else { return Ok(false) };
        let mut scratch = self.scratch.borrow_mut();
        if !self.operator.apply_dot_kept(space, p, &mut scratch, p, curvature)? {
            return Ok(false);
        }
        self.operator.apply_dagger(&scratch, out)?;
        kept.cg_residual_kept(r, out, rho, curvature, true, next)?;
        Ok(true)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.operator.narrow(nrhs)
    }
    fn flops(&self) -> f64 {
        2.0 * self.operator.flops()
    }
}

/// The operator M M†. CGNE solves M M† y = b by CG; the solution of M x = b is x = M†y.
pub struct NormalError<S: VectorSpace, A> {
    operator: A,
    scratch: RefCell<S::Vector>,
}

impl<S: VectorSpace, A: LinearOperator<S>> NormalError<S, A> {
    /// Wraps `operator` (or a reference to it) and allocates the vector for M†x.
    pub fn new(space: &S, operator: A) -> Result<Self, S::Error> {
        Ok(Self { operator, scratch: RefCell::new(space.allocate()?) })
    }

    /// Returns the operator M.
    pub fn inner(&self) -> &A {
        &self.operator
    }
}

impl<S: VectorSpace, A: LinearOperator<S>> LinearOperator<S> for NormalError<S, A> {
    fn apply(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        let mut scratch = self.scratch.borrow_mut();
        self.operator.apply_dagger(x, &mut scratch)?;
        self.operator.apply(&scratch, out)
    }
    fn apply_dagger(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        self.apply(x, out)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.operator.narrow(nrhs)
    }
    fn flops(&self) -> f64 {
        2.0 * self.operator.flops()
    }
}

/// The operator A + σ, with one shift σ for each right-hand side. A real σ keeps a Hermitian operator Hermitian.
pub struct Shifted<'a, S, A> {
    space: &'a S,
    operator: A,
    shift: Vec<Complex64>,
    conjugate: Vec<Complex64>,
    ones: Vec<Complex64>,
}

impl<'a, S: VectorSpace, A: LinearOperator<S>> Shifted<'a, S, A> {
    /// Creates A + σ with the same shift for every right-hand side.
    pub fn new(space: &'a S, operator: A, shift: Complex64) -> Self {
        Self::per_rhs(space, operator, &vec![shift; space.nrhs()])
    }

    /// Creates A + σ_j with shift σ_j for right-hand side j.
    ///
    /// # Panics
    /// If `shifts` does not have one entry per right-hand side.
    pub fn per_rhs(space: &'a S, operator: A, shifts: &[Complex64]) -> Self {
        assert_eq!(shifts.len(), space.nrhs(), "one shift per right-hand side");
        Self {
            space,
            operator,
            shift: shifts.to_vec(),
            conjugate: shifts.iter().map(Complex64::conj).collect(),
            ones: vec![Complex64::ONE; shifts.len()],
        }
    }
}

impl<S: VectorSpace, A: LinearOperator<S>> LinearOperator<S> for Shifted<'_, S, A> {
    fn apply(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        self.operator.apply(x, out)?;
        let n = self.space.nrhs();
        self.space.axpby(&self.shift[..n], x, &self.ones[..n], out)
    }
    fn apply_dagger(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        self.operator.apply_dagger(x, out)?;
        let n = self.space.nrhs();
        self.space.axpby(&self.conjugate[..n], x, &self.ones[..n], out)
    }
    /// Narrows only if all shifts are equal.
    fn narrow(&self, nrhs: usize) -> bool {
        self.shift.iter().all(|shift| *shift == self.shift[0]) && self.operator.narrow(nrhs)
    }
    /// Returns the operations of the operator A. The shift is linear algebra, which is not counted.
    fn flops(&self) -> f64 {
        self.operator.flops()
    }
}

/// Operator of a linear system in two precisions: a precise one for true residuals, and a sloppy one for most of the
/// work. [`Uniform`] and [`Mixed`] are the usual implementations; solvers accept any implementation.
pub trait System {
    /// Error type of both spaces.
    type Error: std::error::Error + Send + Sync + 'static;
    /// Space of b, x and the true residual.
    type Precise: VectorSpace<Error = Self::Error>;
    /// Space of the Krylov iteration.
    type Sloppy: VectorSpace<Error = Self::Error>;

    /// Whether the sloppy space is less precise than the precise one. The default of δ depends on it.
    fn is_mixed(&self) -> bool {
        true
    }
    /// Returns the precise space.
    fn precise(&self) -> &Self::Precise;
    /// Returns the sloppy space.
    fn sloppy(&self) -> &Self::Sloppy;
    /// Computes `out` ← A x in the precise space.
    fn apply(&self, x: &Precise<Self>, out: &mut Precise<Self>) -> Result<(), Self::Error>;
    /// Computes `out` ← A† x in the precise space.
    fn apply_dagger(&self, x: &Precise<Self>, out: &mut Precise<Self>) -> Result<(), Self::Error>;
    /// Computes `out` ← Â x in the sloppy space.
    fn apply_sloppy(&self, x: &Sloppy<Self>, out: &mut Sloppy<Self>) -> Result<(), Self::Error>;
    /// Computes `out` ← Â† x in the sloppy space.
    fn apply_dagger_sloppy(&self, x: &Sloppy<Self>, out: &mut Sloppy<Self>) -> Result<(), Self::Error>;
    /// Computes `out` ← Â x in the sloppy space, and the sums (w_j, Â x_j) and ‖Â x_j‖².
    fn apply_dot_sloppy(
        &self,
        x: &Sloppy<Self>,
        out: &mut Sloppy<Self>,
        w: &Sloppy<Self>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Self::Error> {
        self.apply_sloppy(x, out)?;
        self.sloppy().dot_norm2_of(w, out, dot, norm2)
    }
    /// Computes `out` ← Â x in the sloppy space, and the sums of [`LinearOperator::apply_dots`].
    fn apply_dots_sloppy(
        &self,
        x: &Sloppy<Self>,
        out: &mut Sloppy<Self>,
        w: &Sloppy<Self>,
        dots: &mut [Dots],
    ) -> Result<(), Self::Error> {
        self.apply_sloppy(x, out)?;
        self.sloppy().dots(x, out, w, dots)
    }
    /// Takes the CG step of [`LinearOperator::cg_step`] in the sloppy space, with σ = 0.
    fn cg_step_sloppy(
        &self,
        from: &CgStep<'_, Sloppy<Self>>,
        out: &mut Sloppy<Self>,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), Self::Error> {
        self.apply_dot_sloppy(from.p, out, from.p, curvature, norm2)?;
        from.residual(self.sloppy(), curvature, out, norm2, &mut || Ok(()))
    }
    /// Computes `out` ← Â x in the sloppy space, with sums for a place on the device: [`LinearOperator::apply_dot_kept`].
    fn apply_dot_kept_sloppy(
        &self,
        _x: &Sloppy<Self>,
        _out: &mut Sloppy<Self>,
        _w: &Sloppy<Self>,
        _place: usize,
    ) -> Result<bool, Self::Error> {
        Ok(false)
    }
    /// Computes `out` ← Â x in the sloppy space, with sums for a place on the device: [`LinearOperator::apply_dots_kept`].
    fn apply_dots_kept_sloppy(
        &self,
        _x: &Sloppy<Self>,
        _out: &mut Sloppy<Self>,
        _w: &Sloppy<Self>,
        _place: usize,
    ) -> Result<bool, Self::Error> {
        Ok(false)
    }
    /// Takes the CG step of [`LinearOperator::cg_step_kept`] in the sloppy space.
    fn cg_step_kept_sloppy(
        &self,
        _vectors: [&Sloppy<Self>; 2],
        _out: &mut Sloppy<Self>,
        _rho: KeptRho<'_, f64>,
        _places: [usize; 2],
    ) -> Result<bool, Self::Error> {
        Ok(false)
    }
    /// Computes `to`_j ← `scale`_j `from`_j, rounded to the sloppy format.
    fn demote(&self, scale: &[f64], from: &Precise<Self>, to: &mut Sloppy<Self>) -> Result<(), Self::Error>;
    /// Computes `to`_j ← `to`_j + `scale`_j `from`_j, added in the precise format.
    fn accumulate(&self, scale: &[f64], from: &Sloppy<Self>, to: &mut Precise<Self>) -> Result<(), Self::Error>;
    /// Narrows both spaces and both operators by [`VectorSpace::narrow`] and [`LinearOperator::narrow`], or none of them.
    /// Returns whether it did. The default returns false.
    fn narrow(&self, _nrhs: usize) -> bool {
        false
    }
    /// Returns the floating-point operations of one precise application for one right-hand side.
    fn flops(&self) -> f64;
    /// Returns the floating-point operations of one sloppy application for one right-hand side.
    fn flops_sloppy(&self) -> f64;
}

/// Vector type of the precise space of a system.
pub type Precise<Y> = <<Y as System>::Precise as VectorSpace>::Vector;
/// Vector type of the sloppy space of a system.
pub type Sloppy<Y> = <<Y as System>::Sloppy as VectorSpace>::Vector;

/// A system that is solved in one precision.
pub struct Uniform<'a, S, A: ?Sized> {
    space: &'a S,
    operator: &'a A,
}

impl<'a, S: VectorSpace, A: LinearOperator<S> + ?Sized> Uniform<'a, S, A> {
    /// Creates the system of `operator` on `space`.
    pub fn new(space: &'a S, operator: &'a A) -> Self {
        Self { space, operator }
    }
}

impl<S: VectorSpace, A: LinearOperator<S> + ?Sized> System for Uniform<'_, S, A> {
    type Error = S::Error;
    type Precise = S;
    type Sloppy = S;

    fn is_mixed(&self) -> bool {
        false
    }
    fn precise(&self) -> &S {
        self.space
    }
    fn sloppy(&self) -> &S {
        self.space
    }
    fn apply(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        self.operator.apply(x, out)
    }
    fn apply_dagger(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        self.operator.apply_dagger(x, out)
    }
    fn apply_sloppy(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        self.operator.apply(x, out)
    }
    fn apply_dagger_sloppy(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), S::Error> {
        self.operator.apply_dagger(x, out)
    }
    fn apply_dot_sloppy(
        &self,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), S::Error> {
        self.operator.apply_dot(self.space, x, out, w, dot, norm2)
    }
    fn apply_dots_sloppy(
        &self,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        dots: &mut [Dots],
    ) -> Result<(), S::Error> {
        self.operator.apply_dots(self.space, x, out, w, dots)
    }
    fn apply_dot_kept_sloppy(
        &self,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        place: usize,
    ) -> Result<bool, S::Error> {
        self.operator.apply_dot_kept(self.space, x, out, w, place)
    }
    fn apply_dots_kept_sloppy(
        &self,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        place: usize,
    ) -> Result<bool, S::Error> {
        self.operator.apply_dots_kept(self.space, x, out, w, place)
    }
    fn cg_step_kept_sloppy(
        &self,
        vectors: [&S::Vector; 2],
        out: &mut S::Vector,
        rho: KeptRho<'_, f64>,
        places: [usize; 2],
    ) -> Result<bool, S::Error> {
        self.operator.cg_step_kept(self.space, vectors, out, rho, places)
    }
    fn cg_step_sloppy(
        &self,
        from: &CgStep<'_, S::Vector>,
        out: &mut S::Vector,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), S::Error> {
        self.operator.cg_step(self.space, from, out, curvature, norm2, [&mut || Ok(()), &mut || Ok(())])
    }
    fn demote(&self, scale: &[f64], from: &S::Vector, to: &mut S::Vector) -> Result<(), S::Error> {
        if scale.iter().all(|s| *s == 1.0) {
            return self.space.copy(from, to);
        }
        with_coefficients(
            scale.len(),
            |j| scale[j].into(),
            |scale| {
                with_coefficients(scale.len(), |_| Complex64::ZERO, |zeros| self.space.axpby(scale, from, zeros, to))
            },
        )
    }
    fn accumulate(&self, scale: &[f64], from: &S::Vector, to: &mut S::Vector) -> Result<(), S::Error> {
        with_coefficients(scale.len(), |j| scale[j].into(), |scale| self.space.axpy(scale, from, to))
    }
    fn narrow(&self, nrhs: usize) -> bool {
        narrow((self.space, self.operator), (self.space, self.operator), nrhs)
    }
    fn flops(&self) -> f64 {
        self.operator.flops()
    }
    fn flops_sloppy(&self) -> f64 {
        self.operator.flops()
    }
}

/// A system whose iteration runs in a sloppy precision, with true residuals in a precise one.
pub struct Mixed<'a, P, A: ?Sized, S, B: ?Sized> {
    precise: &'a P,
    operator: &'a A,
    sloppy: &'a S,
    sloppy_operator: &'a B,
}

impl<'a, P, A, S, B> Mixed<'a, P, A, S, B>
where
    P: ConvertFrom<S>,
    S: ConvertFrom<P> + VectorSpace<Error = P::Error>,
    A: LinearOperator<P> + ?Sized,
    B: LinearOperator<S> + ?Sized,
{
    /// Creates the system of `operator` on `precise`; `sloppy_operator` is the same matrix on `sloppy`.
    ///
    /// # Panics
    /// If the two spaces do not have the same number of right-hand sides.
    pub fn new(precise: &'a P, operator: &'a A, sloppy: &'a S, sloppy_operator: &'a B) -> Self {
        assert_eq!(precise.nrhs(), sloppy.nrhs(), "both spaces hold the same right-hand sides");
        Self { precise, operator, sloppy, sloppy_operator }
    }
}

impl<P, A, S, B> System for Mixed<'_, P, A, S, B>
where
    P: ConvertFrom<S>,
    S: ConvertFrom<P> + VectorSpace<Error = P::Error>,
    A: LinearOperator<P> + ?Sized,
    B: LinearOperator<S> + ?Sized,
{
    type Error = P::Error;
    type Precise = P;
    type Sloppy = S;

    fn precise(&self) -> &P {
        self.precise
    }
    fn sloppy(&self) -> &S {
        self.sloppy
    }
    fn apply(&self, x: &P::Vector, out: &mut P::Vector) -> Result<(), P::Error> {
        self.operator.apply(x, out)
    }
    fn apply_dagger(&self, x: &P::Vector, out: &mut P::Vector) -> Result<(), P::Error> {
        self.operator.apply_dagger(x, out)
    }
    fn apply_sloppy(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), P::Error> {
        self.sloppy_operator.apply(x, out)
    }
    fn apply_dagger_sloppy(&self, x: &S::Vector, out: &mut S::Vector) -> Result<(), P::Error> {
        self.sloppy_operator.apply_dagger(x, out)
    }
    fn apply_dot_sloppy(
        &self,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), P::Error> {
        self.sloppy_operator.apply_dot(self.sloppy, x, out, w, dot, norm2)
    }
    fn apply_dots_sloppy(
        &self,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        dots: &mut [Dots],
    ) -> Result<(), P::Error> {
        self.sloppy_operator.apply_dots(self.sloppy, x, out, w, dots)
    }
    fn apply_dot_kept_sloppy(
        &self,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        place: usize,
    ) -> Result<bool, P::Error> {
        self.sloppy_operator.apply_dot_kept(self.sloppy, x, out, w, place)
    }
    fn apply_dots_kept_sloppy(
        &self,
        x: &S::Vector,
        out: &mut S::Vector,
        w: &S::Vector,
        place: usize,
    ) -> Result<bool, P::Error> {
        self.sloppy_operator.apply_dots_kept(self.sloppy, x, out, w, place)
    }
    fn cg_step_kept_sloppy(
        &self,
        vectors: [&S::Vector; 2],
        out: &mut S::Vector,
        rho: KeptRho<'_, f64>,
        places: [usize; 2],
    ) -> Result<bool, P::Error> {
        self.sloppy_operator.cg_step_kept(self.sloppy, vectors, out, rho, places)
    }
    fn cg_step_sloppy(
        &self,
        from: &CgStep<'_, S::Vector>,
        out: &mut S::Vector,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result<(), P::Error> {
        let nothing: [Overlap<'_, P::Error>; 2] = [&mut || Ok(()), &mut || Ok(())];
        self.sloppy_operator.cg_step(self.sloppy, from, out, curvature, norm2, nothing)
    }
    fn demote(&self, scale: &[f64], from: &P::Vector, to: &mut S::Vector) -> Result<(), P::Error> {
        self.sloppy.convert(scale, from, to)
    }
    fn accumulate(&self, scale: &[f64], from: &S::Vector, to: &mut P::Vector) -> Result<(), P::Error> {
        self.precise.accumulate(scale, from, to)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        narrow((self.precise, self.operator), (self.sloppy, self.sloppy_operator), nrhs)
    }
    fn flops(&self) -> f64 {
        self.operator.flops()
    }
    fn flops_sloppy(&self) -> f64 {
        self.sloppy_operator.flops()
    }
}

/// Narrows two spaces and their operators, or leaves all of them as they are. Returns whether it did.
fn narrow<P, A, S, B>((precise, a): (&P, &A), (sloppy, b): (&S, &B), nrhs: usize) -> bool
where
    P: VectorSpace,
    A: LinearOperator<P> + ?Sized,
    S: VectorSpace,
    B: LinearOperator<S> + ?Sized,
{
    let parts: [&dyn Fn(usize) -> bool; 4] =
        [&|n| precise.narrow(n), &|n| sloppy.narrow(n), &|n| a.narrow(n), &|n| b.narrow(n)];
    narrow_all(precise.nrhs(), nrhs, &parts)
}
