//! The Wilson operator: M = (4 + m) − ½ D = (1 − κ D) / (2κ), κ = 1 / (2 (4 + m)), with D of Clark et al. 2009, eq. 1;
//! on an anisotropic lattice M = (1 + 3 ν/ξ_0 + m) − ½ (ν/ξ_0 D_space + D_time).
use super::even_odd::{EvenOdd, Width};
use super::rows::Row;
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceGauge, DeviceSpinor, FullSpinor, SpinorSpace};
use crate::halo::{Beyond, PartialSums, SumTarget};
use gpu_kernels::Reduction;
use gpu_kernels::algebra::Real;
use gpu_kernels::field::Field;
use gpu_kernels::lattice::Region;
use gpu_kernels::storage::{CloverFormat, FourSpins, LinkFormat, Spinors};
use gpu_kernels::wilson::{Hopping, WilsonDslash, WilsonDslashAdd, WilsonDslashAddDot, WilsonDslashAddDots};
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

/// The Wilson operator on links in precision `P` with reconstruction `R`.
pub struct Wilson<P, R> {
    gauge: Arc<DeviceGauge<P, R>>,
    params: WilsonParams,
    beyond: Beyond,
    sides: Width,
}

impl<P, R> Clone for Wilson<P, R> {
    fn clone(&self) -> Self {
        Wilson { gauge: self.gauge.clone(), params: self.params, beyond: self.beyond, sides: Width::default() }
    }
}

impl<P: CloverFormat, R: LinkFormat<P>> Wilson<P, R> {
    /// On the given links.
    pub fn new(gauge: Arc<DeviceGauge<P, R>>, params: WilsonParams) -> Self {
        Wilson { gauge, params, beyond: Beyond::Neighbours, sides: Width::default() }
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
    pub(crate) fn hopping(&self, input: &DeviceSpinor<P>, parity: usize) -> Hopping<P, R> {
        let time = 1.0 / self.params.anisotropy.space();
        Hopping {
            input: input.view(),
            links: self.gauge.links(parity),
            geometry: self.domain().geometry(),
            region: Region::WHOLE,
            parity: parity as u32,
            time: P::Real::from_f64(time),
            time_across: P::Real::from_f64(time * self.params.boundary.sign()),
        }
    }
    /// `out` = D ψ on the sites of `parity`, or D† ψ. `input` lives on the other parity.
    pub fn dslash(&self, parity: usize, dagger: bool, input: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> Result {
        let row = Row::hops(parity, dagger, input, out);
        let out = out.view();
        if dagger {
            self.launch(&row, |hopping| WilsonDslash::<P, R, true> { out, hopping })
        } else {
            self.launch(&row, |hopping| WilsonDslash::<P, R, false> { out, hopping })
        }
    }
    /// `out` = a x + b D ψ on the sites of `parity`, or with D†. `x` is on `parity`, `input` on the other.
    #[allow(clippy::too_many_arguments)]
    pub fn dslash_add(
        &self,
        parity: usize,
        dagger: bool,
        ax: (f64, &DeviceSpinor<P>),
        by: (f64, &DeviceSpinor<P>),
        out: &mut DeviceSpinor<P>,
    ) -> Result {
        let row = Row::sum(parity, dagger, ax, by, out);
        let (out, x) = (out.view(), ax.1.view());
        let (a, b) = (P::Real::from_f64(ax.0), P::Real::from_f64(by.0));
        if dagger {
            self.launch(&row, |hopping| WilsonDslashAdd::<P, R, true> { out, x, a, b, hopping })
        } else {
            self.launch(&row, |hopping| WilsonDslashAdd::<P, R, false> { out, x, a, b, hopping })
        }
    }
    /// `out` = M ψ, or M† ψ, on all sites.
    pub fn full(&self, dagger: bool, psi: &FullSpinor<P>, out: &mut FullSpinor<P>) -> Result {
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
pub struct EvenOddWilson<P, R> {
    wilson: Wilson<P, R>,
    odd: RefCell<DeviceSpinor<P>>,
}

impl<P: CloverFormat, R: LinkFormat<P>> EvenOddWilson<P, R> {
    /// For blocks of `nrhs` right-hand sides.
    pub fn new(wilson: Wilson<P, R>, nrhs: usize) -> Result<Self> {
        let odd = RefCell::new(DeviceSpinor::zero(wilson.domain(), nrhs)?);
        Ok(EvenOddWilson { wilson, odd })
    }
    /// The operator without preconditioning.
    pub fn wilson(&self) -> &Wilson<P, R> {
        &self.wilson
    }
    fn schur(&self, dagger: bool, x: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> Result {
        let kappa = self.wilson.params.kappa();
        let mut odd = self.odd.borrow_mut();
        self.wilson.dslash(1, dagger, x, &mut odd)?;
        self.wilson.dslash_add(0, dagger, (1.0, x), (-kappa * kappa, &odd), out)
    }
}

impl<P: CloverFormat, R: LinkFormat<P>> EvenOddWilson<P, R> {
    /// M̂ x with (w, M̂ x) and ‖M̂ x‖².
    pub(super) fn schur_dot(
        &self,
        x: &DeviceSpinor<P>,
        out: &mut DeviceSpinor<P>,
        w: &DeviceSpinor<P>,
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        self.schur_with(x, out, w, target, |row, w| WilsonDslashAddDot { row, w })
    }
    /// M̂ x with sums, which `with` makes of the second of its two passes.
    fn schur_with<K: Reduction>(
        &self,
        x: &DeviceSpinor<P>,
        out: &mut DeviceSpinor<P>,
        w: &DeviceSpinor<P>,
        target: SumTarget<'_>,
        with: impl Fn(WilsonDslashAdd<P, R, false>, Field<Spinors<P>>) -> K,
    ) -> Result<PartialSums> {
        let kappa = self.wilson.params.kappa();
        let mut odd = self.odd.borrow_mut();
        self.wilson.dslash(1, false, x, &mut odd)?;
        let row = Row::sum(0, false, (1.0, x), (-kappa * kappa, &odd), out);
        let (out, x, a, b) = (out.view(), x.view(), P::Real::ONE, P::Real::from_f64(-kappa * kappa));
        self.wilson.launch_sums(&row, w, target, |hopping| with(WilsonDslashAdd { out, x, a, b, hopping }, w.view()))
    }
}

impl<P: CloverFormat, R: LinkFormat<P>> LinearOperator<SpinorSpace<P>> for EvenOddWilson<P, R> {
    fn apply_dot(
        &self,
        space: &SpinorSpace<P>,
        x: &DeviceSpinor<P>,
        out: &mut DeviceSpinor<P>,
        w: &DeviceSpinor<P>,
        dot: &mut [Complex64],
        norm2: &mut [f64],
    ) -> std::result::Result<(), DeviceError> {
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
        space.dots_of(self.schur_with(x, out, w, SumTarget::Host, |row, w| WilsonDslashAddDots { row, w })?, dots)
    }
    fn apply(&self, x: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> std::result::Result<(), DeviceError> {
        self.schur(false, x, out)
    }
    fn apply_dagger(&self, x: &DeviceSpinor<P>, out: &mut DeviceSpinor<P>) -> std::result::Result<(), DeviceError> {
        self.schur(true, x, out)
    }
    fn narrow(&self, sides: usize) -> bool {
        self.wilson.sides.narrow(sides, self.odd.borrow().nrhs())
    }
    fn flops(&self) -> f64 {
        (DSLASH_FLOPS + DSLASH_ADD_FLOPS) * self.wilson.domain().global().half_volume() as f64
    }
    fn bytes(&self) -> f64 {
        let site = 5 * P::SPINOR_BYTES + 2 * R::READ_BYTES;
        (site * self.wilson.domain().global().half_volume()) as f64
    }
}

impl<P: CloverFormat, R: LinkFormat<P>> EvenOdd<FourSpins, P> for EvenOddWilson<P, R> {
    /// (η_e + κ D_eo η_o) / d
    fn prepare(&self, eta: &FullSpinor<P>, even: &mut DeviceSpinor<P>) -> Result {
        let (kappa, inverse) = (self.wilson.params.kappa(), 1.0 / self.wilson.params.diagonal());
        self.wilson.dslash_add(0, false, (inverse, &eta.even), (inverse * kappa, &eta.odd), even)
    }
    /// ψ_o = η_o / d + κ D_oe ψ_e
    fn reconstruct(&self, eta: &FullSpinor<P>, psi: &mut FullSpinor<P>) -> Result {
        let (kappa, inverse) = (self.wilson.params.kappa(), 1.0 / self.wilson.params.diagonal());
        let FullSpinor { even, odd } = psi;
        self.wilson.dslash_add(1, false, (inverse, &eta.odd), (kappa, even), odd)
    }
    /// The hopping term by itself, then linear algebra.
    fn row(&self, parity: usize, dagger: bool, psi: &FullSpinor<P>, out: &mut DeviceSpinor<P>) -> Result {
        let (diagonal, hop) = (self.wilson.params.diagonal(), self.wilson.params.hop());
        self.wilson.dslash(parity, dagger, psi.parity(1 - parity), out)?;
        let space = SpinorSpace::<P>::new(self.wilson.domain(), out.nrhs());
        let constant = |c: f64| vec![Complex64::new(c, 0.0); out.nrhs()];
        let (a, b) = (constant(diagonal), constant(-hop));
        space.axpby(&a, psi.parity(parity), &b, out)
    }
    fn residual_factor(&self) -> f64 {
        self.wilson.params.diagonal()
    }
}
