//! Wilson-like quarks: hybrid Monte Carlo on the even-odd preconditioned system (Duane, Kennedy, Pendleton and Roweth 1987;
//! Jansen and Liu 1996).
//!
//! For the asymmetric complement M̂ = A_ee − h² D_eo A_oo⁻¹ D_oe, det M = det A_oo det M̂. The symmetric complement is A_ee⁻¹ times that
//! M̂, so that det M = det A_ee det A_oo det M̂. The blocks of A have an action of their own ([`determinant`]) unless their determinant is
//! constant, as for the exponential clover term. M̂ has pseudofermions: for two quarks exactly ([`two_flavours`]), for one quark by a
//! rational function ([`one_flavour`]).
//!
//! Heavier quarks split det M̂†M̂ into factors, each with its own pseudofermion (Hasenbusch 2001). They have another mass, or a twist iμγ_5
//! beside A_ee: M̂(μ) = M̂ + iμγ_5 for the asymmetric complement and M̂ + iμ A_ee⁻¹ γ_5 for the symmetric one. The twist does not change
//! the determinants of A (Lüscher and Schaefer 2013).

mod forms;
mod guess;
mod multigrid;
mod solver;

pub mod determinant;
pub mod one_flavour;
pub mod shifted;
pub mod spectrum;
pub mod two_flavours;

use super::links::EvolvingLinks;
use super::stout::StoutSmearing;
use crate::domain::{Domain, Result};
use crate::field::{DeviceField, FieldShape, FieldSpace, GaugeField, HermitianBlocks};
use crate::operators::{Diagonal, DiagonalForm, EvenOddWilson, Operator, Schur, Wilson, WilsonLike};
use crate::solve::LinkFormatKey;
use gpu_kernels::momenta::{DRAW_SPINOR_NOISE, DrawNoise};
use gpu_kernels::random::purpose;
use gpu_kernels::{Format, LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{Dots, LinearOperator, VectorSpace};
use std::cell::RefCell;
use std::rc::Rc;

/// Dirac operator of quarks with its Schur complement M̂ and a twist μ. The operator of the pseudofermions is M̂ + iμ γ_5 for the
/// asymmetric complement and M̂ + iμ A_ee⁻¹ γ_5 for the symmetric one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonQuarks {
    /// Operator M.
    pub operator: WilsonLike,
    /// Twist μ of Hasenbusch's factors; the twisted mass of the quarks themselves is a parameter of `operator`.
    pub twist: f64,
    /// Stout smearing of the operator's links; `None` if the operator uses the links that evolve.
    pub stout: Option<StoutSmearing>,
}

/// Shape of pseudofermions and their noise: spinors in double precision.
const VECTORS: FieldShape = FieldShape::spinors(Precision::Double, 1);

/// Returns the space of blocks of `nrhs` spinor fields.
fn space(domain: &Domain, precision: Precision, nrhs: usize) -> FieldSpace {
    FieldSpace::new(domain, FieldShape::spinors(precision, nrhs))
}

impl WilsonQuarks {
    /// Makes quarks without a twist, whose operator uses the evolving links without smearing.
    pub fn new(operator: WilsonLike) -> Self {
        WilsonQuarks { operator, twist: 0.0, stout: None }
    }
    /// Whether the operator has a twisted mass or the twist of a Hasenbusch factor.
    fn is_twisted(&self) -> bool {
        self.twist != 0.0 || self.operator.definition.partner().is_some()
    }
    /// Returns the operator's links in a precision. They have no phases of twisted boundary conditions, which only hops include.
    fn links(&self, links: &EvolvingLinks, precision: Precision) -> Result<Rc<GaugeField>> {
        links.smeared(self.stout, precision)
    }
    /// Returns A, in double precision. It is made once for all parts of the action.
    fn term(&self, links: &EvolvingLinks) -> Result<Diagonal> {
        let make = || self.operator.diagonal(&*self.links(links, Precision::Double)?);
        links.cache(self.stout).terms.get(self.operator.into(), make)
    }
    /// Returns C of A = d exp(C/d), in double precision. It is made once for all masses.
    fn exponent(&self, links: &EvolvingLinks, coefficients: [f64; 2]) -> Result<Rc<[HermitianBlocks; 2]>> {
        let make = || HermitianBlocks::of_field_strength(&*self.links(links, Precision::Double)?, coefficients);
        links.cache(self.stout).exponents.get(coefficients, || make().map(Rc::new))
    }
    /// Returns the storage of links in a precision: all reals in double precision, otherwise two rows if there are kernels for them.
    fn storage(&self, precision: Precision) -> LinkStorage {
        let two_rows = LinkStorage::of(12);
        match precision == Precision::Double || !self.operator.definition.exists(precision, two_rows) {
            true => LinkStorage::FULL,
            false => Operator::from(self.operator).storage(two_rows),
        }
    }
    /// Makes M̂ without the twist of Hasenbusch's factors in a precision, for blocks of `nrhs` vectors.
    fn complement(&self, links: &EvolvingLinks, precision: Precision, nrhs: usize) -> Result<EvenOddWilson> {
        let format = LinkFormatKey { theta: self.operator.theta, precision, storage: self.storage(precision) };
        let term = self.term(links)?;
        let term = if precision == Precision::Double { term } else { term.convert(precision)? };
        let wilson = Wilson::new(links.packed(self.stout, format)?, self.operator.wilson);
        EvenOddWilson::with_diagonal(wilson, term, self.operator.schur, nrhs)
    }
    /// Makes M̂ in a precision, for blocks of `nrhs` vectors.
    fn on(&self, links: &EvolvingLinks, precision: Precision, nrhs: usize) -> Result<TwistedComplement> {
        let inner = Rc::new(self.complement(links, precision, nrhs)?);
        let space = space(links.own().domain(), precision, nrhs);
        let scratch = RefCell::new(space.allocate()?);
        Ok(TwistedComplement { inner, schur: self.operator.schur, twist: self.twist, space, scratch })
    }
}

/// Operator M̂ with iμ γ_5 added to A_ee.
struct TwistedComplement {
    inner: Rc<EvenOddWilson>,
    schur: Schur,
    twist: f64,
    space: FieldSpace,
    scratch: RefCell<DeviceField>,
}

/// Returns the form of the diagonal term on even sites.
const fn even(inverse: bool, dagger: bool) -> DiagonalForm {
    DiagonalForm { parity: 0, inverse, dagger }
}

impl TwistedComplement {
    fn ones(&self) -> Vec<Complex64> {
        vec![Complex64::ONE; self.space.nrhs()]
    }
    /// Computes A_ee⁻† y for the symmetric complement, or copies y for the asymmetric one.
    fn divided(&self, y: &DeviceField, out: &mut DeviceField) -> Result {
        match self.schur {
            Schur::Symmetric => self.inner.apply_diagonal(even(true, true), y, out),
            Schur::Asymmetric => self.space.copy(y, out),
        }
    }
}

impl LinearOperator<FieldSpace> for TwistedComplement {
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> Result {
        self.inner.apply(x, out)?;
        if self.twist == 0.0 {
            return Ok(());
        }
        let mut scratch = self.scratch.borrow_mut();
        self.inner.twist(self.twist, x, &scratch)?;
        if self.schur == Schur::Asymmetric {
            return self.space.axpby(&self.ones(), &scratch, &self.ones(), out);
        }
        let mut image = self.space.allocate()?;
        self.inner.apply_diagonal(even(true, false), &scratch, &mut image)?;
        self.space.copy(&image, &mut scratch)?;
        self.space.axpby(&self.ones(), &scratch, &self.ones(), out)
    }
    fn apply_dagger(&self, x: &DeviceField, out: &mut DeviceField) -> Result {
        self.inner.apply_dagger(x, out)?;
        if self.twist == 0.0 {
            return Ok(());
        }
        let mut scratch = self.scratch.borrow_mut();
        self.divided(x, &mut scratch)?;
        self.inner.twist(-self.twist, &scratch, &scratch)?;
        self.space.axpby(&self.ones(), &scratch, &self.ones(), out)
    }
    fn apply_dot(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> Result {
        if self.twist == 0.0 {
            return self.inner.apply_dot(space, x, out, w, dot, norm2);
        }
        self.apply(x, out)?;
        space.dot_norm2_of(w, out, dot, norm2)
    }
    fn apply_dots(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        dots: &mut [Dots],
    ) -> Result {
        if self.twist == 0.0 {
            return self.inner.apply_dots(space, x, out, w, dots);
        }
        self.apply(x, out)?;
        space.dots(x, out, w, dots)
    }
    fn apply_dot_kept(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        place: usize,
    ) -> Result<bool> {
        Ok(self.twist == 0.0 && self.inner.apply_dot_kept(space, x, out, w, place)?)
    }
    fn apply_dots_kept(
        &self,
        space: &FieldSpace,
        x: &DeviceField,
        out: &mut DeviceField,
        w: &DeviceField,
        place: usize,
    ) -> Result<bool> {
        Ok(self.twist == 0.0 && self.inner.apply_dots_kept(space, x, out, w, place)?)
    }
    fn flops(&self) -> f64 {
        self.inner.flops()
    }
}

/// Draws spinors on the even sites, as [`draw_noise`] draws colour vectors. Their numbers are normally distributed with ⟨|z|²⟩ = 1.
///
/// [`draw_noise`]: super::fermions::draw_noise
///
/// # Panics
/// If a vector has a number of 4096 or more.
fn draw_noise(out: &mut DeviceField, which: u32, seed: u64, trajectory: u32) -> Result {
    draw_noise_for(out, purpose::PSEUDOFERMIONS, which, seed, trajectory)
}

/// Draws noise like [`draw_noise`] for another purpose than pseudofermions.
fn draw_noise_for(out: &mut DeviceField, purpose: u64, which: u32, seed: u64, trajectory: u32) -> Result {
    let (nrhs, domain) = (out.nrhs() as u32, out.domain());
    assert!(which.checked_add(nrhs).is_some_and(|end| end <= 1 << 12), "noise vectors have numbers below 4096");
    out.expect(domain, VECTORS.with_nrhs(out.nrhs()))?;
    let (geometry, position) = (domain.geometry(), domain.position());
    let kernel = DrawNoise { out: out.view(), geometry, position, parity: 0, trajectory, purpose, which, seed };
    Ok(domain.backend().launch(&DRAW_SPINOR_NOISE, Format::NONE, &kernel, domain.half_sites(), nrhs)?)
}

/// Computes Σ_j ‖x_j‖².
fn norm2(space: &FieldSpace, x: &DeviceField) -> Result<f64> {
    let mut sums = vec![0.0; space.nrhs()];
    space.norm2(x, &mut sums)?;
    Ok(sums.iter().sum())
}
