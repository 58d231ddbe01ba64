//! The Wilson-clover operator: M = A − ½ D, with A the clover term (Babich, Clark and Joó 2010, eq. 2).
use super::even_odd::EvenOdd;
use super::rows::{Form, Row};
use super::wilson::{DSLASH_FLOPS, Wilson, WilsonParams};
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceClover, DeviceSpinor, FullSpinor, SpinorSpace, ThinGauge};
use crate::halo::{PartialSums, SumTarget};
use gpu_kernels::Reduction;
use gpu_kernels::algebra::Real;
use gpu_kernels::clover::{
    CloverApply, CloverDslash, CloverDslashAdd, CloverDslashAddDot, CloverDslashAddDots, CloverRow,
};
use gpu_kernels::field::Field;
use gpu_kernels::storage::{CloverFormat, Double, FourSpins, LinkFormat, Spinors};
use num_complex::Complex64;
use solvers::{Dots, LinearOperator, VectorSpace};
use std::cell::RefCell;
use std::sync::Arc;

/// Operations of the clover term per site, as everybody counts them.
pub const CLOVER_FLOPS: f64 = 504.0;
/// Operations of the even-odd matrix per site: two hopping terms, two clover terms, one vector sum (Babich, Clark and
/// Joó 2010).
pub const CLOVER_MATRIX_FLOPS: f64 = 2.0 * DSLASH_FLOPS + 2.0 * CLOVER_FLOPS + 48.0;

/// What a Wilson-clover operator needs besides links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CloverParams {
    /// Mass, boundary condition, anisotropy.
    pub wilson: WilsonParams,
    /// The factor of σ_μν F̂_μν in the spatial planes.
    pub space: f64,
    /// The factor in the temporal planes.
    pub time: f64,
}

impl CloverParams {
    /// On an isotropic lattice with tadpole factor u_0: both coefficients c_sw / u_0³.
    pub fn isotropic(wilson: WilsonParams, c_sw: f64, u0: f64) -> Self {
        let coefficient = c_sw / u0.powi(3);
        CloverParams { wilson, space: coefficient, time: coefficient }
    }
    /// With Chroma's clovCoeffR and clovCoeffT: the spatial coefficient is clovCoeffR / ξ_0.
    pub fn anisotropic(wilson: WilsonParams, coefficient_r: f64, coefficient_t: f64) -> Self {
        CloverParams { wilson, space: coefficient_r / wilson.anisotropy.xi, time: coefficient_t }
    }
    /// The clover term of these parameters on `gauge`.
    pub fn term(&self, gauge: &ThinGauge) -> Result<DeviceClover<Double>> {
        DeviceClover::new(gauge, self.wilson.diagonal(), self.space, self.time)
    }
}

/// Which Schur complement of the even sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schur {
    /// M̂ = 1 − ¼ A_ee⁻¹ D_eo A_oo⁻¹ D_oe
    #[default]
    Symmetric,
    /// M̂ = A_ee − ¼ D_eo A_oo⁻¹ D_oe
    Asymmetric,
}

/// The even-odd Wilson-clover operator.
pub struct EvenOddClover<P, R> {
    wilson: Wilson<P, R>,
    clover: Arc<DeviceClover<P>>,
    schur: Schur,
    odd: RefCell<DeviceSpinor<P>>,
    /// Needed by the symmetric operator's dagger only.
    even: RefCell<DeviceSpinor<P>>,
}

impl<P: CloverFormat, R: LinkFormat<P>> EvenOddClover<P, R> {
    /// For blocks of `nrhs` right-hand sides. `clover` is made of the links of `wilson`.
    ///
    /// # Errors
    /// A term that was made with another mass or anisotropy than those of `wilson`, or lives elsewhere; no memory.
    pub fn new(wilson: Wilson<P, R>, clover: Arc<DeviceClover<P>>, schur: Schur, nrhs: usize) -> Result<Self> {
        wilson.domain().expect_here("a clover term", clover.domain())?;
        let (found, expected) = (clover.diagonal(), wilson.params().diagonal());
        if found != expected {
            return Err(DeviceError::OtherTerm { found, expected });
        }
        let field = || DeviceSpinor::zero(wilson.domain(), nrhs).map(RefCell::new);
        let (odd, even) = (field()?, field()?);
        Ok(EvenOddClover { wilson, clover, schur, odd, even })
    }
    pub(super) fn complement(&self) -> Schur {
        self.schur
    }
    pub(super) fn wilson(&self) -> &Wilson<P, R> {
        &self.wilson
    }
    fn sides_of(&self, x: &DeviceSpinor<P>) -> u32 {
        self.wilson.sides().of(x.nrhs()) as u32
    }
    fn hop(&self) -> f64 {
        self.wilson.params().hop()
    }
    /// `out` = A x, or A⁻¹ x, on the sites of `parity`.
    pub fn clover(&self, parity: usize, inverse: bool, x: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> Result {
        let clover = if inverse { self.clover.inverse(parity) } else { self.clover.term(parity) };
        [x, &*out].into_iter().try_for_each(|field| field.expect(self.wilson.domain(), self.sides_of(x) as usize))?;
        let kernel = CloverApply { out: out.view(), input: x.view(), clover };
        Ok(self.wilson.domain().backend().launch(&kernel, self.wilson.domain().half_sites(), self.sides_of(x))?)
    }
    /// `x` ← A⁻¹ x.
    fn divide(&self, parity: usize, x: &mut DeviceSpinor<P>) -> Result {
        x.expect(self.wilson.domain(), self.sides_of(x) as usize)?;
        let kernel = CloverApply { out: x.view(), input: x.view(), clover: self.clover.inverse(parity) };
        Ok(self.wilson.domain().backend().launch(&kernel, self.wilson.domain().half_sites(), self.sides_of(x))?)
    }
    /// `out` = A⁻¹ D ψ, or A⁻¹ D† ψ, on the sites of `parity`, in one pass.
    pub fn dslash(&self, parity: usize, dagger: bool, input: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> Result {
        let inverse = self.clover.inverse(parity);
        let row = Row { form: Form::Inverse, clover: inverse, ..Row::hops(parity, dagger, input, out) };
        let out = out.view();
        if dagger {
            self.wilson.launch(&row, |hopping| CloverDslash::<P, R, true> { out, inverse, hopping })
        } else {
            self.wilson.launch(&row, |hopping| CloverDslash::<P, R, false> { out, inverse, hopping })
        }
    }
    /// `out` = x + b A⁻¹ D ψ on the sites of `parity`, in one pass.
    fn dslash_add(
        &self,
        parity: usize,
        x: &DeviceSpinor<P>,
        (b, input): (f64, &DeviceSpinor<P>),
        out: &mut DeviceSpinor<P>,
    ) -> Result {
        let inverse = self.clover.inverse(parity);
        let row = Row { form: Form::InverseSum, clover: inverse, ..Row::sum(parity, false, (1.0, x), (b, input), out) };
        let (out, x, b) = (out.view(), x.view(), P::Real::from_f64(b));
        self.wilson.launch(&row, |hopping| CloverDslashAdd { out, x, b, inverse, hopping })
    }
    /// `out` = A x + b D ψ, or with D†, on the sites of `parity`, in one pass.
    fn fused_row(
        &self,
        parity: usize,
        dagger: bool,
        x: &DeviceSpinor<P>,
        (b, input): (f64, &DeviceSpinor<P>),
        out: &mut DeviceSpinor<P>,
    ) -> Result {
        let clover = self.clover.term(parity);
        let row = Row { form: Form::CloverSum, clover, ..Row::sum(parity, dagger, (1.0, x), (b, input), out) };
        let (out, x, b) = (out.view(), x.view(), P::Real::from_f64(b));
        if dagger {
            self.wilson.launch(&row, |hopping| CloverRow::<P, R, true> { out, x, b, clover, hopping })
        } else {
            self.wilson.launch(&row, |hopping| CloverRow::<P, R, false> { out, x, b, clover, hopping })
        }
    }
    fn schur(&self, dagger: bool, x: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> Result {
        let minus_square = -self.hop() * self.hop();
        let mut odd = self.odd.borrow_mut();
        match (self.schur, dagger) {
            (Schur::Symmetric, false) => {
                self.dslash(1, false, x, &mut odd)?;
                self.dslash_add(0, x, (minus_square, &odd), out)
            }
            (Schur::Symmetric, true) => {
                let mut even = self.even.borrow_mut();
                self.clover(0, true, x, &mut even)?;
                self.dslash(1, true, &even, &mut odd)?;
                self.wilson.dslash_add(0, true, (1.0, x), (minus_square, &odd), out)
            }
            (Schur::Asymmetric, _) => {
                self.dslash(1, dagger, x, &mut odd)?;
                self.fused_row(0, dagger, x, (minus_square, &odd), out)
            }
        }
    }
}

impl<P: CloverFormat, R: LinkFormat<P>> EvenOddClover<P, R> {
    /// The symmetric M̂ x with (w, M̂ x) and ‖M̂ x‖².
    pub(super) fn schur_dot(
        &self,
        x: &DeviceSpinor<P>,
        out: &mut DeviceSpinor<P>,
        w: &DeviceSpinor<P>,
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        self.schur_with(x, out, w, target, |row, w| CloverDslashAddDot { row, w })
    }
    /// The symmetric M̂ x with sums, which `with` makes of the second of its two passes.
    fn schur_with<K: Reduction>(
        &self,
        x: &DeviceSpinor<P>,
        out: &mut DeviceSpinor<P>,
        w: &DeviceSpinor<P>,
        target: SumTarget<'_>,
        with: impl Fn(CloverDslashAdd<P, R>, Field<Spinors<P>>) -> K,
    ) -> Result<PartialSums> {
        let minus_square = -self.hop() * self.hop();
        let mut odd = self.odd.borrow_mut();
        self.dslash(1, false, x, &mut odd)?;
        let inverse = self.clover.inverse(0);
        let row = Row::sum(0, false, (1.0, x), (minus_square, &odd), out);
        let row = Row { form: Form::InverseSum, clover: inverse, ..row };
        let (out, x, b) = (out.view(), x.view(), P::Real::from_f64(minus_square));
        self.wilson
            .launch_sums(&row, w, target, |hopping| with(CloverDslashAdd { out, x, b, inverse, hopping }, w.view()))
    }
}

impl<P: CloverFormat, R: LinkFormat<P>> LinearOperator<SpinorSpace<P>> for EvenOddClover<P, R> {
    fn apply_dot(
        &self,
        space: &SpinorSpace<P>,
        x: &DeviceSpinor<P>,
        out: &mut DeviceSpinor<P>,
        w: &DeviceSpinor<P>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> std::result::Result<(), DeviceError> {
        if self.schur == Schur::Asymmetric {
            self.apply(x, out)?;
            space.dot_norm2(out, w, dot, norm2)?;
            dot.iter_mut().for_each(|d| *d = d.conj());
            return Ok(());
        }
        space.dot_of(self.schur_dot(x, out, w, SumTarget::Host)?, dot, norm2)
    }
    fn apply_dots(
        &self,
        space: &SpinorSpace<P>,
        x: &DeviceSpinor<P>,
        out: &mut DeviceSpinor<P>,
        w: &DeviceSpinor<P>,
        dots: &mut [Dots],
    ) -> std::result::Result<(), DeviceError> {
        if self.schur == Schur::Asymmetric {
            self.apply(x, out)?;
            return space.dots(x, out, w, dots);
        }
        space.dots_of(self.schur_with(x, out, w, SumTarget::Host, |row, w| CloverDslashAddDots { row, w })?, dots)
    }
    fn apply(&self, x: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> std::result::Result<(), DeviceError> {
        self.schur(false, x, out)
    }
    fn apply_dagger(&self, x: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> std::result::Result<(), DeviceError> {
        self.schur(true, x, out)
    }
    fn narrow(&self, sides: usize) -> bool {
        self.wilson.sides().narrow(sides, self.odd.borrow().nrhs())
    }
    fn flops(&self) -> f64 {
        CLOVER_MATRIX_FLOPS * self.wilson.domain().global().half_volume() as f64
    }
    fn bytes(&self) -> f64 {
        let site = 5 * P::SPINOR_BYTES + 2 * R::READ_BYTES + 2 * P::CLOVER_BYTES;
        (site * self.wilson.domain().global().half_volume()) as f64
    }
}

impl<P: CloverFormat, R: LinkFormat<P>> EvenOdd<FourSpins, P> for EvenOddClover<P, R> {
    fn prepare(&self, eta: &FullSpinor<P>, even: &mut DeviceSpinor<P>) -> Result {
        let mut odd = self.odd.borrow_mut();
        self.clover(1, true, &eta.odd, &mut odd)?;
        self.wilson.dslash_add(0, false, (1.0, &eta.even), (self.hop(), &odd), even)?;
        if self.schur == Schur::Symmetric {
            self.divide(0, even)?;
        }
        Ok(())
    }
    fn reconstruct(&self, eta: &FullSpinor<P>, psi: &mut FullSpinor<P>) -> Result {
        let FullSpinor { even, odd } = psi;
        self.wilson.dslash_add(1, false, (1.0, &eta.odd), (self.hop(), even), odd)?;
        self.divide(1, odd)
    }
    fn row(&self, parity: usize, dagger: bool, psi: &FullSpinor<P>, out: &mut DeviceSpinor<P>) -> Result {
        let (here, there) = (psi.parity(parity), psi.parity(1 - parity));
        let mut image = self.even.borrow_mut();
        self.clover(parity, false, here, &mut image)?;
        self.wilson.dslash_add(parity, dagger, (1.0, &image), (-self.hop(), there), out)
    }
    fn residual_factor(&self) -> f64 {
        match self.schur {
            // A is close to its diagonal.
            Schur::Symmetric => self.wilson.params().diagonal(),
            Schur::Asymmetric => 1.0,
        }
    }
}
