//! The Wilson-clover operator: M = A − ½ D, with A the clover term (Babich, Clark and Joó 2010, eq. 2).
use super::even_odd::EvenOdd;
use super::rows::{Form, Row, Sums};
use super::wilson::{DSLASH_FLOPS, Wilson, WilsonParams};
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceClover, DeviceField, FieldSpace, FullField, ThinGauge};
use crate::halo::{PartialSums, SumTarget};
use gpu_kernels::clover::{CLOVER_APPLY, CloverApply};
use gpu_kernels::{FermionKind, Format};
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
    pub fn term(&self, gauge: &ThinGauge) -> Result<DeviceClover> {
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
pub struct EvenOddClover {
    wilson: Wilson,
    clover: Arc<DeviceClover>,
    schur: Schur,
    odd: RefCell<DeviceField>,
    /// Needed by the symmetric operator's dagger only.
    even: RefCell<DeviceField>,
}

impl EvenOddClover {
    /// For blocks of `nrhs` right-hand sides. `clover` is made of the links of `wilson`.
    ///
    /// # Errors
    /// A term that was made with another mass or anisotropy than those of `wilson`, or lives elsewhere; no memory.
    pub fn new(wilson: Wilson, clover: Arc<DeviceClover>, schur: Schur, nrhs: usize) -> Result<Self> {
        wilson.domain().expect_here("a clover term", clover.domain())?;
        let (found, expected) = (clover.diagonal(), wilson.params().diagonal());
        if found != expected {
            return Err(DeviceError::OtherTerm { found, expected });
        }
        if clover.precision() != wilson.precision() {
            let (found, expected) = (Format::of(clover.precision()), Format::of(wilson.precision()));
            return Err(DeviceError::OtherFormat { found, expected });
        }
        let field = || wilson.zero(nrhs).map(RefCell::new);
        let (odd, even) = (field()?, field()?);
        Ok(EvenOddClover { wilson, clover, schur, odd, even })
    }
    pub(super) fn complement(&self) -> Schur {
        self.schur
    }
    pub(super) fn wilson(&self) -> &Wilson {
        &self.wilson
    }
    fn sides_of(&self, x: &DeviceField) -> u32 {
        self.wilson.sides().of(x.nrhs()) as u32
    }
    fn hop(&self) -> f64 {
        self.wilson.params().hop()
    }
    /// `out` = A x, or A⁻¹ x, on the sites of `parity`.
    pub fn clover(&self, parity: usize, inverse: bool, x: &DeviceField, out: &mut DeviceField) -> Result {
        let clover = if inverse { self.clover.inverse(parity) } else { self.clover.term(parity) };
        self.wilson.expect(&[x, out], self.sides_of(x) as usize)?;
        let kernel = CloverApply { out: out.view(), input: x.view(), clover };
        self.apply_term(&kernel, self.sides_of(x))
    }
    /// `x` ← A⁻¹ x.
    fn divide(&self, parity: usize, x: &mut DeviceField) -> Result {
        self.wilson.expect(&[x], self.sides_of(x) as usize)?;
        let kernel = CloverApply { out: x.view(), input: x.view(), clover: self.clover.inverse(parity) };
        self.apply_term(&kernel, self.sides_of(x))
    }
    /// `out` = A⁻¹ D ψ, or A⁻¹ D† ψ, on the sites of `parity`, in one pass.
    pub fn dslash(&self, parity: usize, dagger: bool, input: &DeviceField, out: &mut DeviceField) -> Result {
        let clover = self.clover.inverse(parity);
        self.wilson.launch(&Row { form: Form::Inverse, clover, ..Row::hops(parity, dagger, input, out) })
    }
    /// `out` = x + b A⁻¹ D ψ on the sites of `parity`, in one pass.
    fn dslash_add(
        &self,
        parity: usize,
        x: &DeviceField,
        (b, input): (f64, &DeviceField),
        out: &mut DeviceField,
    ) -> Result {
        let clover = self.clover.inverse(parity);
        let row = Row::sum(parity, false, (1.0, x), (b, input), out);
        self.wilson.launch(&Row { form: Form::InverseSum, clover, ..row })
    }
    /// `out` = A x + b D ψ, or with D†, on the sites of `parity`, in one pass.
    fn fused_row(
        &self,
        parity: usize,
        dagger: bool,
        x: &DeviceField,
        (b, input): (f64, &DeviceField),
        out: &mut DeviceField,
    ) -> Result {
        let clover = self.clover.term(parity);
        let row = Row::sum(parity, dagger, (1.0, x), (b, input), out);
        self.wilson.launch(&Row { form: Form::CloverSum, clover, ..row })
    }
    /// Applies A or A⁻¹ by itself.
    fn apply_term(&self, kernel: &CloverApply, nrhs: u32) -> Result {
        let (domain, format) = (self.wilson.domain(), Format::of(self.wilson.precision()));
        Ok(domain.backend().launch(&CLOVER_APPLY, format, kernel, domain.half_sites(), nrhs)?)
    }
    fn schur(&self, dagger: bool, x: &DeviceField, out: &mut DeviceField) -> Result {
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

impl EvenOddClover {
    /// The symmetric M̂ x with sums.
    pub(super) fn schur_sums(
        &self,
        x: &DeviceField,
        out: &mut DeviceField,
        sums: (Sums, &DeviceField),
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        let minus_square = -self.hop() * self.hop();
        let mut odd = self.odd.borrow_mut();
        self.dslash(1, false, x, &mut odd)?;
        let row = Row::sum(0, false, (1.0, x), (minus_square, &odd), out);
        let row = Row { form: Form::InverseSum, clover: self.clover.inverse(0), ..row };
        self.wilson.launch_sums(&row, sums, target)
    }
}

impl LinearOperator<FieldSpace> for EvenOddClover {
    fn apply_dot(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> std::result::Result<(), DeviceError> {
        if self.schur == Schur::Asymmetric {
            self.apply(x, out)?;
            space.dot_norm2(out, w, dot, norm2)?;
            dot.iter_mut().for_each(|d| *d = d.conj());
            return Ok(());
        }
        space.dot_of(self.schur_sums(x, out, (Sums::Dot, w), SumTarget::Host)?, dot, norm2)
    }
    fn apply_dots(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        dots: &mut [Dots],
    ) -> std::result::Result<(), DeviceError> {
        if self.schur == Schur::Asymmetric {
            self.apply(x, out)?;
            return space.dots(x, out, w, dots);
        }
        space.dots_of(self.schur_sums(x, out, (Sums::Dots, w), SumTarget::Host)?, dots)
    }
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        self.schur(false, x, out)
    }
    fn apply_dagger(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        self.schur(true, x, out)
    }
    fn narrow(&self, sides: usize) -> bool {
        self.wilson.sides().narrow(sides, self.odd.borrow().nrhs())
    }
    fn flops(&self) -> f64 {
        CLOVER_MATRIX_FLOPS * self.wilson.domain().global().half_volume() as f64
    }
    fn bytes(&self) -> f64 {
        let precision = self.wilson.precision();
        let (spinor, links) = (FermionKind::Wilson.site_bytes(precision), self.wilson.storage().read_bytes(precision));
        let site = 5 * spinor + 2 * links + 2 * precision.clover_bytes();
        (site * self.wilson.domain().global().half_volume()) as f64
    }
}

impl EvenOdd for EvenOddClover {
    fn prepare(&self, eta: &FullField, even: &mut DeviceField) -> Result {
        let mut odd = self.odd.borrow_mut();
        self.clover(1, true, &eta.odd, &mut odd)?;
        self.wilson.dslash_add(0, false, (1.0, &eta.even), (self.hop(), &odd), even)?;
        if self.schur == Schur::Symmetric {
            self.divide(0, even)?;
        }
        Ok(())
    }
    fn reconstruct(&self, eta: &FullField, psi: &mut FullField) -> Result {
        let FullField { even, odd } = psi;
        self.wilson.dslash_add(1, false, (1.0, &eta.odd), (self.hop(), even), odd)?;
        self.divide(1, odd)
    }
    fn row(&self, parity: usize, dagger: bool, psi: &FullField, out: &mut DeviceField) -> Result {
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
