//! Wilson-like operators M = A − h D, even-odd preconditioned, with A diagonal in the sites.
use super::diagonal::{Diagonal, DiagonalForm};
use super::even_odd::EvenOdd;
use super::wilson::{DSLASH_FLOPS, Wilson};
use super::wilson_hop::{DslashSums, WilsonHop};
use crate::domain::{DeviceError, Result};
use crate::domain::{PartialSums, SumTarget};
use crate::field::{DeviceField, FieldShape, FieldSpace, FullField};
use gpu_kernels::Format;
use gpu_kernels::clover::{DIAGONAL_APPLY, DiagonalApply};
use gpu_kernels::diagonal::DiagonalArguments;
use num_complex::Complex64;
use solvers::{Dots, LinearOperator, VectorSpace};
use std::cell::RefCell;

/// Form of the Schur complement of the even sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schur {
    /// Symmetric complement M̂ = 1 − h² A_ee⁻¹ D_eo A_oo⁻¹ D_oe.
    #[default]
    Symmetric,
    /// Asymmetric complement M̂ = A_ee − h² D_eo A_oo⁻¹ D_oe.
    Asymmetric,
}

/// Schur complement M̂ of a Wilson-like operator on the even sites, or on the sites that [`on_parity`](Self::on_parity) chooses, with the conversion of the full system M ψ = η to M̂ ψ_e = η̂ and back
/// (Clark et al. 2009, eq. 2; Babich, Clark and Joó 2010).
///
/// A is s B. If A is a number, as for the Wilson operator, B is 1; otherwise s is 1. With κ = h/s, M̂ = 1 − κ² B⁻¹ D B⁻¹ D and η̂ = A⁻¹
/// (η_e + κ D B⁻¹ η_o).
pub struct EvenOddWilson {
    wilson: Wilson,
    diagonal: Diagonal,
    schur: Schur,
    parity: usize,
    odd: RefCell<DeviceField>,
    /// Intermediate field for the dagger of the symmetric complement and for M itself; `None` if A is a number.
    even: Option<RefCell<DeviceField>>,
}

impl EvenOddWilson {
    /// Makes the Schur complement of the Wilson operator M = d − h D, for blocks of `nrhs` right-hand sides.
    ///
    /// # Errors
    /// Too little memory.
    pub fn new(wilson: Wilson, nrhs: usize) -> Result<Self> {
        let diagonal = Diagonal::number(wilson.params().diagonal());
        Self::with_diagonal(wilson, diagonal, Schur::Symmetric, nrhs)
    }
    /// Makes the Schur complement with a diagonal term that was made from the links of `wilson`.
    ///
    /// # Errors
    /// A term with another mass or anisotropy than those of `wilson`, in another precision, or on another device; too little memory.
    pub fn with_diagonal(wilson: Wilson, diagonal: impl Into<Diagonal>, schur: Schur, nrhs: usize) -> Result<Self> {
        let diagonal = diagonal.into();
        diagonal.check(&wilson)?;
        let field = || wilson.zero(nrhs).map(RefCell::new);
        let even = diagonal.term().map(|_| field()).transpose()?;
        let odd = field()?;
        Ok(EvenOddWilson { wilson, diagonal, schur, parity: 0, odd, even })
    }
    /// Returns the complement on the sites of a parity, for which "even" stands in descriptions of M̂. Only M̂ and M̂† are on these sites;
    /// conversions of the full system are those of the even sites.
    #[must_use]
    pub fn on_parity(self, parity: usize) -> Self {
        EvenOddWilson { parity, ..self }
    }
    /// Returns the Wilson operator, which computes the hopping term.
    pub fn wilson(&self) -> &Wilson {
        &self.wilson
    }
    pub(crate) fn complement(&self) -> Schur {
        self.schur
    }
    /// Returns κ = h/s, the factor of a hop after division by s.
    fn kappa(&self) -> f64 {
        self.wilson.params().hop() / self.diagonal.scale()
    }
    /// Computes `out` = B⁻¹ D ψ, or B⁻† D† ψ if `dagger` is set, on the sites of `parity` in one pass. B is 1 for the Wilson operator and A
    /// for other operators.
    pub fn dslash(&self, parity: usize, dagger: bool, input: &DeviceField, out: &mut DeviceField) -> Result {
        self.wilson.launch(&self.with_inverse(WilsonHop::hops(parity, dagger, input, out)))
    }
    /// Computes `out` = A x, A⁻¹ x, A† x or A⁻† x, as `form` selects, on the sites of one parity.
    pub fn apply_diagonal(&self, form: DiagonalForm, x: &DeviceField, out: &mut DeviceField) -> Result {
        let diagonal = match (self.diagonal.term(), form.inverse) {
            (None, true) => DiagonalArguments::mass(1.0 / self.diagonal.scale()),
            _ => self.diagonal.arguments(form),
        };
        self.launch_diagonal(diagonal, x, out)
    }
    /// Computes `out` = iμγ_5 x. `out` may be `x`.
    pub(crate) fn twist(&self, mu: f64, x: &DeviceField, out: &DeviceField) -> Result {
        self.launch_diagonal(DiagonalArguments::twisted(0.0, mu, false), x, out)
    }
    /// Computes h A_oo⁻¹ D ψ_e, or h A_oo⁻† D† ψ_e if `dagger` is set. This is the odd half of a vector for which M ψ, or M† ψ, vanishes on
    /// odd sites.
    pub(crate) fn extend(&self, dagger: bool, even: &DeviceField, odd: &mut DeviceField) -> Result {
        self.dslash(1, dagger, even, odd)?;
        self.space(even.nrhs()).axpby(
            &vec![Complex64::ZERO; even.nrhs()],
            even,
            &vec![self.kappa().into(); even.nrhs()],
            odd,
        )
    }
    /// Launches the kernel that applies the diagonal term. `out` may be `x`.
    fn launch_diagonal(&self, diagonal: DiagonalArguments, x: &DeviceField, out: &DeviceField) -> Result {
        let (nrhs, domain) = (self.wilson.nrhs().of(x.nrhs()), self.wilson.domain());
        self.wilson.expect(&[x, out], FieldShape::spinors(self.wilson.precision(), nrhs))?;
        let kernel = DiagonalApply { out: out.view(), input: x.view(), diagonal };
        let format = Format::of(self.wilson.precision());
        Ok(domain.backend().launch(&DIAGONAL_APPLY, format, &kernel, domain.half_sites(), nrhs as u32)?)
    }
    /// Computes `x` ← B⁻¹ x.
    fn divide(&self, parity: usize, x: &mut DeviceField) -> Result {
        if self.diagonal.term().is_none() {
            return Ok(());
        }
        self.launch_diagonal(self.diagonal.arguments(DiagonalForm { parity, inverse: true, dagger: false }), x, x)
    }
    fn space(&self, nrhs: usize) -> FieldSpace {
        FieldSpace::new(self.wilson.domain(), FieldShape::spinors(self.wilson.precision(), nrhs))
    }
    /// Returns a product whose hops are divided by B.
    fn with_inverse<'a>(&self, hop: WilsonHop<'a>) -> WilsonHop<'a> {
        let form = DiagonalForm { parity: hop.parity, inverse: true, dagger: hop.dagger };
        WilsonHop { diagonal: self.diagonal.arguments(form), interior: self.diagonal.kernels().inverse, ..hop }
    }
    fn schur(&self, dagger: bool, x: &DeviceField, out: &mut DeviceField) -> Result {
        let (kappa, here, there) = (self.kappa(), self.parity, 1 - self.parity);
        let mut odd = self.odd.borrow_mut();
        match (self.schur, dagger, &self.even) {
            // M̂ x = x − κ² B⁻¹ D B⁻¹ D x. If B is 1, M̂† x has D† in place of D.
            (Schur::Symmetric, false, _) | (Schur::Symmetric, true, None) => {
                self.dslash(there, dagger, x, &mut odd)?;
                let hop = WilsonHop::sum(here, dagger, (1.0, x), (-kappa * kappa, &odd), out);
                self.wilson.launch(&self.with_inverse(hop))
            }
            // M̂† x = x − κ² D† B⁻† D† B⁻† x
            (Schur::Symmetric, true, Some(even)) => {
                let mut even = even.borrow_mut();
                self.apply_diagonal(DiagonalForm { parity: here, inverse: true, dagger: true }, x, &mut even)?;
                self.dslash(there, true, &even, &mut odd)?;
                self.wilson.dslash_add(here, true, (1.0, x), (-kappa * kappa, &odd), out)
            }
            // M̂ x = A x − h κ D B⁻¹ D x
            (Schur::Asymmetric, ..) => {
                self.dslash(there, dagger, x, &mut odd)?;
                let diagonal = self.diagonal.arguments(DiagonalForm { parity: here, inverse: false, dagger });
                let hop = -self.wilson.params().hop() * kappa;
                match self.diagonal.kernels().term {
                    Some(interior) => {
                        let hop = WilsonHop::sum(here, dagger, (1.0, x), (hop, &odd), out);
                        self.wilson.launch(&WilsonHop { diagonal, interior, ..hop })
                    }
                    None => {
                        self.launch_diagonal(diagonal, x, out)?;
                        self.wilson.launch(&WilsonHop::sum(here, dagger, (1.0, out), (hop, &odd), out))
                    }
                }
            }
        }
    }
    /// Computes the symmetric M̂ x with sums.
    pub(super) fn schur_sums(
        &self,
        x: &DeviceField,
        out: &mut DeviceField,
        sums: (DslashSums, &DeviceField),
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        let kappa = self.kappa();
        let mut odd = self.odd.borrow_mut();
        self.dslash(1 - self.parity, false, x, &mut odd)?;
        let hop = self.with_inverse(WilsonHop::sum(self.parity, false, (1.0, x), (-kappa * kappa, &odd), out));
        self.wilson.launch_sums(&hop, self.diagonal.kernels(), sums, target)
    }
}

impl LinearOperator<FieldSpace> for EvenOddWilson {
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
            return space.dot_norm2_of(w, out, dot, norm2);
        }
        space.dot_of(self.schur_sums(x, out, (DslashSums::Dot, w), SumTarget::Host)?, dot, norm2)
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
        space.dots_of(self.schur_sums(x, out, (DslashSums::Dots, w), SumTarget::Host)?, dots)
    }
    fn apply_dot_kept(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        place: usize,
    ) -> std::result::Result<bool, DeviceError> {
        let symmetric = self.schur == Schur::Symmetric;
        Ok(symmetric && space.keep(place, 3, |target| self.schur_sums(x, out, (DslashSums::Dot, w), target))?)
    }
    fn apply_dots_kept(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        place: usize,
    ) -> std::result::Result<bool, DeviceError> {
        let symmetric = self.schur == Schur::Symmetric;
        Ok(symmetric && space.keep(place, 8, |target| self.schur_sums(x, out, (DslashSums::Dots, w), target))?)
    }
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        self.schur(false, x, out)
    }
    fn apply_dagger(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        self.schur(true, x, out)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        self.wilson.nrhs().narrow(nrhs, self.odd.borrow().nrhs())
    }
    /// Counts two hopping terms, two diagonal terms and a vector sum.
    fn flops(&self) -> f64 {
        (2.0 * DSLASH_FLOPS + 2.0 * self.diagonal.flops() + 48.0) * self.wilson.domain().global().half_volume() as f64
    }
}

impl EvenOdd for EvenOddWilson {
    /// Computes η̂ = A⁻¹ (η_e + κ D B⁻¹ η_o), without A⁻¹ for the asymmetric complement.
    fn prepare(&self, eta: &FullField, even: &mut DeviceField) -> Result {
        let inverse = match self.schur {
            Schur::Symmetric => 1.0 / self.diagonal.scale(),
            Schur::Asymmetric => 1.0,
        };
        let hop = inverse * self.kappa();
        if self.diagonal.term().is_none() {
            return self.wilson.dslash_add(0, false, (inverse, &eta.even), (hop, &eta.odd), even);
        }
        let mut odd = self.odd.borrow_mut();
        self.apply_diagonal(DiagonalForm { parity: 1, inverse: true, dagger: false }, &eta.odd, &mut odd)?;
        self.wilson.dslash_add(0, false, (inverse, &eta.even), (hop, &odd), even)?;
        match self.schur {
            Schur::Symmetric => self.divide(0, even),
            Schur::Asymmetric => Ok(()),
        }
    }
    /// Computes ψ_o = A⁻¹ (η_o + h D ψ_e) = B⁻¹ (η_o / s + κ D ψ_e).
    fn reconstruct(&self, eta: &FullField, psi: &mut FullField) -> Result {
        let FullField { even, odd } = psi;
        let inverse = 1.0 / self.diagonal.scale();
        self.wilson.dslash_add(1, false, (inverse, &eta.odd), (self.kappa(), even), odd)?;
        self.divide(1, odd)
    }
    fn apply_parity(&self, parity: usize, dagger: bool, psi: &FullField, out: &mut DeviceField) -> Result {
        let (here, there, hop) = (psi.parity(parity), psi.parity(1 - parity), self.wilson.params().hop());
        match &self.even {
            Some(image) => {
                let mut image = image.borrow_mut();
                self.apply_diagonal(DiagonalForm { parity, inverse: false, dagger }, here, &mut image)?;
                self.wilson.dslash_add(parity, dagger, (1.0, &image), (-hop, there), out)
            }
            // As a check, M is computed by kernels other than those of M̂: first the hopping term, and then its sum with the diagonal term
            // by linear algebra.
            None => {
                self.wilson.dslash(parity, dagger, there, out)?;
                let factor = |c: f64| vec![Complex64::from(c); out.nrhs()];
                let (a, b) = (factor(self.diagonal.scale()), factor(-hop));
                self.space(out.nrhs()).axpby(&a, here, &b, out)
            }
        }
    }
    fn full(&self, dagger: bool, psi: &FullField, out: &mut FullField) -> Result {
        if self.diagonal.term().is_none() {
            return self.wilson.full(dagger, psi, out);
        }
        (0..2).try_for_each(|parity| self.apply_parity(parity, dagger, psi, out.parity_mut(parity)))
    }
    fn residual_factor(&self) -> f64 {
        match self.schur {
            // A is close to d, its value on unit links.
            Schur::Symmetric => self.wilson.params().diagonal(),
            Schur::Asymmetric => 1.0,
        }
    }
}
