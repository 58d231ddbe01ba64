//! The Wilson operator: M = (4 + m) − ½ D = (1 − κ D) / (2κ), κ = 1 / (2 (4 + m)), with D of Clark et al. 2009, eq. 1;
//! on an anisotropic lattice M = (1 + 3 ν/ξ_0 + m) − ½ (ν/ξ_0 D_space + D_time).
use super::even_odd::{EvenOdd, Width};
use super::rows::{Row, Sums};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceField, DeviceGauge, FieldSpace, FullField};
use crate::halo::{Beyond, PartialSums, SumTarget};
use gpu_kernels::lattice::Region;
use gpu_kernels::wilson::{Hopping, WILSON_ROW};
use gpu_kernels::{FermionKind, Format, LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{Dots, LinearOperator, VectorSpace};
use std::cell::RefCell;
use std::sync::Arc;

/// Floating-point operations of the hopping term per site, as everybody counts them.
pub const DSLASH_FLOPS: f64 = 1320.0;
/// Operations of a x + b D ψ per site: two more for each of the 24 real components.
pub const DSLASH_ADD_FLOPS: f64 = DSLASH_FLOPS + 48.0;

/// How fermions continue across the end of the lattice in t. They are periodic in space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeBoundary {
    /// ψ(t + T) = ψ(t)
    Periodic,
    /// ψ(t + T) = −ψ(t), as thermodynamics wants it.
    #[default]
    Antiperiodic,
}

impl TimeBoundary {
    /// The factor of a hop across the boundary.
    pub fn sign(self) -> f64 {
        match self {
            TimeBoundary::Periodic => 1.0,
            TimeBoundary::Antiperiodic => -1.0,
        }
    }
}

/// Different lattice spacings in space and time, as Chroma counts: ξ_0 is the bare ratio of the spacings, ν the bare
/// velocity of light. The hops in space are multiplied by ν/ξ_0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anisotropy {
    /// ξ_0
    pub xi: f64,
    /// ν
    pub nu: f64,
}

impl Default for Anisotropy {
    /// The isotropic lattice.
    fn default() -> Self {
        Anisotropy { xi: 1.0, nu: 1.0 }
    }
}

impl Anisotropy {
    /// ν/ξ_0, the factor of the hops in space.
    pub fn space(&self) -> f64 {
        self.nu / self.xi
    }
}

/// What a Wilson operator needs besides links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonParams {
    /// Bare mass m.
    pub mass: f64,
    /// Boundary condition in t.
    pub boundary: TimeBoundary,
    /// Lattice spacings.
    pub anisotropy: Anisotropy,
}

impl WilsonParams {
    /// From the bare mass, on an isotropic lattice.
    pub fn from_mass(mass: f64, boundary: TimeBoundary) -> Self {
        WilsonParams { mass, boundary, anisotropy: Anisotropy::default() }
    }
    /// From κ = 1 / (2 (4 + m)), on an isotropic lattice.
    pub fn from_kappa(kappa: f64, boundary: TimeBoundary) -> Self {
        Self::from_mass(0.5 / kappa - 4.0, boundary)
    }
    /// The diagonal of M: 1 + 3 ν/ξ_0 + m, which is 4 + m on an isotropic lattice.
    pub fn diagonal(&self) -> f64 {
        1.0 + 3.0 * self.anisotropy.space() + self.mass
    }
    /// The factor of the hopping term D̃ in M: M = diagonal − `hop` D̃. Kernels compute D̃ = D_space + (ξ_0/ν) D_time.
    pub fn hop(&self) -> f64 {
        0.5 * self.anisotropy.space()
    }
    /// `hop` over `diagonal`: κ on an isotropic lattice.
    pub fn kappa(&self) -> f64 {
        self.hop() / self.diagonal()
    }
}

/// The Wilson operator, on links in some precision and storage.
pub struct Wilson {
    gauge: Arc<DeviceGauge>,
    params: WilsonParams,
    beyond: Beyond,
    sides: Width,
}

impl Clone for Wilson {
    fn clone(&self) -> Self {
        Wilson { gauge: self.gauge.clone(), params: self.params, beyond: self.beyond, sides: Width::default() }
    }
}

impl Wilson {
    /// On the given links.
    pub fn new(gauge: Arc<DeviceGauge>, params: WilsonParams) -> Self {
        Wilson { gauge, params, beyond: Beyond::Neighbours, sides: Width::default() }
    }
    /// Whether there are kernels for a format.
    pub fn exists(precision: Precision, storage: LinkStorage) -> bool {
        WILSON_ROW.0.instance(Format::with_links(precision, storage)).is_some()
    }
    /// The same in blocks of these extents, which divide the local lattice, with ψ = 0 beyond the ends of a block: the
    /// operator of an additive Schwarz preconditioner. It needs no messages.
    #[must_use]
    pub fn in_blocks(self, extents: [usize; 4]) -> Self {
        Wilson { beyond: Beyond::Blocks(extents), ..self }
    }
    /// Extents of the parts that know nothing of each other.
    pub(super) fn block(&self) -> [usize; 4] {
        match self.beyond {
            Beyond::Neighbours => self.domain().global().size(),
            Beyond::Blocks(extents) => extents,
        }
    }
    /// The right-hand sides that rows are computed for.
    pub(super) fn sides(&self) -> &Width {
        &self.sides
    }
    pub(super) fn beyond(&self) -> Beyond {
        self.beyond
    }
    /// κ and boundary condition.
    pub fn params(&self) -> WilsonParams {
        self.params
    }
    /// Where the links live.
    pub fn domain(&self) -> &Domain {
        self.gauge.domain()
    }
    /// The precision of links and fields.
    pub fn precision(&self) -> Precision {
        self.gauge.precision()
    }
    /// How the links are stored.
    pub fn storage(&self) -> LinkStorage {
        self.gauge.storage()
    }
    /// Of kernels for its rows.
    pub(super) fn format(&self) -> Format {
        Format::with_links(self.precision(), self.storage())
    }
    /// A field of its precision, zero everywhere.
    pub(super) fn zero(&self, nrhs: usize) -> Result<DeviceField> {
        DeviceField::zero(self.domain(), FermionKind::Wilson, self.precision(), nrhs)
    }
    /// Whether fields are where the links are, in their precision, with so many right-hand sides.
    pub(super) fn expect(&self, fields: &[&DeviceField], nrhs: usize) -> Result {
        let kind = (FermionKind::Wilson, self.precision());
        fields.iter().try_for_each(|field| field.expect(self.domain(), kind, nrhs))
    }
    pub(crate) fn hopping(&self, input: &DeviceField, parity: usize) -> Hopping {
        let time = 1.0 / self.params.anisotropy.space();
        Hopping {
            input: input.view(),
            links: self.gauge.links(parity),
            geometry: self.domain().geometry(),
            region: Region::WHOLE,
            parity: parity as u32,
            time: time.into(),
            time_across: (time * self.params.boundary.sign()).into(),
        }
    }
    /// `out` = D ψ on the sites of `parity`, or D† ψ. `input` lives on the other parity.
    pub fn dslash(&self, parity: usize, dagger: bool, input: &DeviceField, out: &mut DeviceField) -> Result {
        self.launch(&Row::hops(parity, dagger, input, out))
    }
    /// `out` = a x + b D ψ on the sites of `parity`, or with D†. `x` is on `parity`, `input` on the other.
    #[allow(clippy::too_many_arguments)]
    pub fn dslash_add(
        &self,
        parity: usize,
        dagger: bool,
        ax: (f64, &DeviceField),
        by: (f64, &DeviceField),
        out: &mut DeviceField,
    ) -> Result {
        self.launch(&Row::sum(parity, dagger, ax, by, out))
    }
    /// `out` = M ψ, or M† ψ, on all sites.
    pub fn full(&self, dagger: bool, psi: &FullField, out: &mut FullField) -> Result {
        let (diagonal, hop) = (self.params.diagonal(), self.params.hop());
        for parity in 0..2 {
            let (x, input) = (psi.parity(parity), psi.parity(1 - parity));
            self.dslash_add(parity, dagger, (diagonal, x), (-hop, input), out.parity_mut(parity))?;
        }
        Ok(())
    }
}

/// The Schur complement on the even sites, M̂ = 1 − κ² D_eo D_oe (Clark et al. 2009, eq. 2), and the way from the full
/// system M ψ = η to M̂ ψ_e = (η_e + κ D_eo η_o) / d and back, with d the diagonal of M.
pub struct EvenOddWilson {
    wilson: Wilson,
    odd: RefCell<DeviceField>,
}

impl EvenOddWilson {
    /// For blocks of `nrhs` right-hand sides.
    pub fn new(wilson: Wilson, nrhs: usize) -> Result<Self> {
        let odd = RefCell::new(wilson.zero(nrhs)?);
        Ok(EvenOddWilson { wilson, odd })
    }
    /// The operator without preconditioning.
    pub fn wilson(&self) -> &Wilson {
        &self.wilson
    }
    fn schur(&self, dagger: bool, x: &DeviceField, out: &mut DeviceField) -> Result {
        let kappa = self.wilson.params.kappa();
        let mut odd = self.odd.borrow_mut();
        self.wilson.dslash(1, dagger, x, &mut odd)?;
        self.wilson.dslash_add(0, dagger, (1.0, x), (-kappa * kappa, &odd), out)
    }
}

impl EvenOddWilson {
    /// M̂ x with sums.
    pub(super) fn schur_sums(
        &self,
        x: &DeviceField,
        out: &mut DeviceField,
        sums: (Sums, &DeviceField),
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        let kappa = self.wilson.params.kappa();
        let mut odd = self.odd.borrow_mut();
        self.wilson.dslash(1, false, x, &mut odd)?;
        self.wilson.launch_sums(&Row::sum(0, false, (1.0, x), (-kappa * kappa, &odd), out), sums, target)
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
        space.dots_of(self.schur_sums(x, out, (Sums::Dots, w), SumTarget::Host)?, dots)
    }
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        self.schur(false, x, out)
    }
    fn apply_dagger(&self, x: &DeviceField, out: &mut DeviceField) -> std::result::Result<(), DeviceError> {
        self.schur(true, x, out)
    }
    fn narrow(&self, sides: usize) -> bool {
        self.wilson.sides.narrow(sides, self.odd.borrow().nrhs())
    }
    fn flops(&self) -> f64 {
        (DSLASH_FLOPS + DSLASH_ADD_FLOPS) * self.wilson.domain().global().half_volume() as f64
    }
    fn bytes(&self) -> f64 {
        let precision = self.wilson.precision();
        let site = 5 * FermionKind::Wilson.site_bytes(precision) + 2 * self.wilson.storage().read_bytes(precision);
        (site * self.wilson.domain().global().half_volume()) as f64
    }
}

impl EvenOdd for EvenOddWilson {
    /// (η_e + κ D_eo η_o) / d
    fn prepare(&self, eta: &FullField, even: &mut DeviceField) -> Result {
        let (kappa, inverse) = (self.wilson.params.kappa(), 1.0 / self.wilson.params.diagonal());
        self.wilson.dslash_add(0, false, (inverse, &eta.even), (inverse * kappa, &eta.odd), even)
    }
    /// ψ_o = η_o / d + κ D_oe ψ_e
    fn reconstruct(&self, eta: &FullField, psi: &mut FullField) -> Result {
        let (kappa, inverse) = (self.wilson.params.kappa(), 1.0 / self.wilson.params.diagonal());
        let FullField { even, odd } = psi;
        self.wilson.dslash_add(1, false, (inverse, &eta.odd), (kappa, even), odd)
    }
    /// The hopping term by itself, then linear algebra.
    fn row(&self, parity: usize, dagger: bool, psi: &FullField, out: &mut DeviceField) -> Result {
        let (diagonal, hop) = (self.wilson.params.diagonal(), self.wilson.params.hop());
        self.wilson.dslash(parity, dagger, psi.parity(1 - parity), out)?;
        let space = FieldSpace::new(self.wilson.domain(), FermionKind::Wilson, self.wilson.precision(), out.nrhs());
        let constant = |c: f64| vec![Complex64::new(c, 0.0); out.nrhs()];
        let (a, b) = (constant(diagonal), constant(-hop));
        space.axpby(&a, psi.parity(parity), &b, out)
    }
    fn residual_factor(&self) -> f64 {
        self.wilson.params.diagonal()
    }
}
