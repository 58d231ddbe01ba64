//! Stout links are made by smearing (Morningstar and Peardon 2004):
//!
//! U′_μ(x) = exp(iQ_μ(x)) U_μ(x), iQ_μ(x) = \[ρ C_μ(x) U†_μ(x)\],
//!
//! with the staples C_μ(x) = Σ_{ν≠μ} U_ν(x) U_μ(x+ν̂) U†_ν(x+μ̂) + U†_ν(x−ν̂) U_μ(x−ν̂) U_ν(x−ν̂+μ̂) and the traceless anti-Hermitian part
//! \[X\] = (X − X†)/2 − tr (X − X†)/6.
//!
//! An action of stout links has a gradient with respect to these links. [`StoutLinks::thin_gradient`] turns it, by the chain rule, into the
//! gradient with respect to the links from which they are made.
use super::action::{GaugeAction, GaugeAnisotropy};
use super::momenta::MomentumField;
use crate::backend::{DeviceBuffer, view};
use crate::domain::{Part, Result};
use crate::field::GaugeField;
use gpu_kernels::field::Momenta;
use gpu_kernels::stout::{STOUT_DERIVATIVE, STOUT_GRADIENT, StoutDerivative, StoutGradient};
use gpu_kernels::{Format, Precision};
use serde::Serialize;
use std::ops::ControlFlow;

/// Parameters of stout smearing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StoutSmearing {
    /// Smearing parameter ρ, from 0 to [`LARGEST_RHO`].
    pub rho: f64,
    /// Number of levels: how many times links are replaced by smeared links.
    pub levels: usize,
    /// Whether smearing is spatial: links in t are not smeared, and staples of other links do not reach into t.
    pub spatial: bool,
}

/// Largest value of the smearing parameter ρ. The norm of iQ is at most 6 √3 ρ, and the exponential is accurate to rounding for norms up to
/// 3.
pub const LARGEST_RHO: f64 = 0.25;
/// Largest number of smearing levels of any kind that users may request.
pub const MOST_SMEARING_LEVELS: u16 = u16::MAX;

impl StoutSmearing {
    /// *Collective.* Returns a smeared copy of `links`, in the precision of `links`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn smeared(&self, links: &GaugeField) -> Result<GaugeField> {
        let mut smeared = links.copied()?;
        self.smear(&mut smeared)?;
        Ok(smeared)
    }
    /// *Collective.* Returns a smeared copy like [`smeared`](Self::smeared), and calls `after` after each level. Returns `None` if `after`
    /// returns `Break`, which must happen on all processes or on none.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn smeared_while(
        &self,
        links: &GaugeField,
        after: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<GaugeField>> {
        let mut smeared = links.copied()?;
        Ok(self.smear_while(&mut smeared, after)?.then_some(smeared))
    }
    /// *Collective.* Smears links like [`smear`](Self::smear), and calls `after` after each level. Ends early if `after` returns `Break`,
    /// which must happen on all processes or on none. Returns whether all levels were made.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn smear_while(&self, links: &mut GaugeField, after: &mut dyn FnMut() -> ControlFlow<()>) -> Result<bool> {
        for _ in 0..self.levels {
            self.level(links)?;
            // `after` may be called only when the level is done, and a launch may return before its work is done.
            links.domain().backend().synchronize()?;
            if after().is_break() {
                return Ok(false);
            }
        }
        Ok(true)
    }
    /// *Collective.* Replaces links by smeared links. On the device, this takes memory for a field of momenta in addition to the links.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn smear(&self, links: &mut GaugeField) -> Result {
        (0..self.levels).try_for_each(|_| self.level(links))
    }
    /// *Collective.* Computes the links of every level, in the precision of `links`. The result shares the memory of `links`, which must
    /// therefore not change while the result is in use.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn levels(&self, links: &GaugeField) -> Result<StoutLinks> {
        let mut levels = vec![links.share()];
        for level in 0..self.levels {
            let mut next = levels[level].copied()?;
            self.level(&mut next)?;
            levels.push(next);
        }
        Ok(StoutLinks { smearing: *self, levels })
    }
    /// Returns the bytes of device memory that [`smear`](Self::smear) adds to the links, for a process's part of a lattice.
    pub fn workspace_bytes(part: Part, precision: Precision) -> usize {
        2 * MomentumField::bytes_for(precision, part.sites())
    }
    /// Returns the bytes of device memory that [`StoutLinks`] adds to the thin links.
    pub fn levels_bytes(&self, part: Part, precision: Precision) -> usize {
        self.levels * part.links_bytes(precision)
    }
    /// Returns the bytes of device memory that [`StoutLinks::thin_gradient`] adds to the gradient.
    pub fn gradient_bytes(&self, part: Part, precision: Precision) -> usize {
        if self.levels == 0 { 0 } else { 2 * MomentumField::bytes_for(precision, part.bordered_sites()) }
    }
    /// Smears the links by one level.
    fn level(&self, links: &mut GaugeField) -> Result {
        // U_μ(x) C†_μ(x) is the sum of the plaquettes that contain the link. For Wilson's action with β = 3 ρ, ∂S is therefore the
        // traceless anti-Hermitian part of ρ U_μ(x) C†_μ(x), which is −iQ_μ(x). `kick` subtracts it.
        let anisotropy =
            GaugeAnisotropy { plaquettes: [1.0, if self.spatial { 0.0 } else { 1.0 }], ..GaugeAnisotropy::NONE };
        let staples = GaugeAction { anisotropy, ..GaugeAction::wilson(3.0 * self.rho) };
        let mut iq = MomentumField::zero(links.domain(), links.precision())?;
        staples.kick(links, 1.0, &mut iq)?;
        iq.move_links(links, 1.0, false)
    }
    /// Returns the number of directions, counted from x, whose links are smeared and occur in staples.
    fn directions(&self) -> u32 {
        if self.spatial { 3 } else { 4 }
    }
}

/// Thin links and the smeared links of every level.
pub struct StoutLinks {
    smearing: StoutSmearing,
    /// Links of all levels: the thin links, then the links after each level.
    levels: Vec<GaugeField>,
}

impl StoutLinks {
    /// Returns the parameters of the smearing.
    pub fn smearing(&self) -> StoutSmearing {
        self.smearing
    }
    /// Returns the smeared links of the last level, over which operators hop.
    pub fn smeared(&self) -> &GaugeField {
        &self.levels[self.smearing.levels]
    }
    /// Returns the links of all levels in double or single precision, which is also the precision of their gradients. If the links already
    /// have this precision, the result shares their memory.
    ///
    /// # Errors
    /// A precision of 16 bits, and failures of the device.
    pub fn converted(&self, precision: Precision) -> Result<Self> {
        let levels = self.levels.iter().map(|links| links.converted(precision)).collect::<Result<_>>()?;
        Ok(StoutLinks { smearing: self.smearing, levels })
    }
    /// *Collective.* Computes the gradient of an action with respect to the thin links. `gradient` is its gradient with respect to the
    /// links of the last level. A gradient G satisfies dS = Re Σ tr (G†_μ(x) dU_μ(x)), with a matrix for each link that starts in this
    /// process's part of the lattice. The border of `gradient` need not be filled, and the border of the result has no meaning. Momenta
    /// change by the traceless anti-Hermitian part of U G†.
    ///
    /// # Errors
    /// A gradient on another lattice or in another precision than the links, and failures of the device.
    pub fn thin_gradient(&self, gradient: GaugeField) -> Result<GaugeField> {
        let smeared = self.smeared();
        smeared.domain().expect_here("the gradient of an action", gradient.domain())?;
        gradient.expect_in(smeared.precision())?;
        if self.smearing.levels > 0 {
            let weights = Weights::like(smeared)?;
            for links in self.levels[..self.smearing.levels].iter().rev() {
                self.smearing.propagate(links, &weights, &gradient)?;
            }
        }
        Ok(gradient)
    }
}

/// Field of the weights Λ, a traceless anti-Hermitian matrix for each link, on the bordered lattice of the links.
struct Weights {
    halves: [DeviceBuffer; 2],
    sites: usize,
    precision: Precision,
}

impl Weights {
    fn like(links: &GaugeField) -> Result<Self> {
        let (sites, precision) = (links.bordered_sites() as usize, links.precision());
        let bytes = MomentumField::bytes_for(precision, sites);
        let half = || links.domain().backend().allocate(bytes, "the derivative of stout links");
        Ok(Weights { halves: [half()?, half()?], sites, precision })
    }
    fn views(&self) -> [Momenta; 2] {
        let bytes = MomentumField::site_bytes(self.precision);
        self.halves.each_ref().map(|half| view::momenta(half, self.sites, bytes))
    }
}

impl StoutSmearing {
    /// *Collective.* Turns the gradient with respect to the links of a level into that with respect to `links`, from which the level was
    /// made.
    fn propagate(&self, links: &GaugeField, weights: &Weights, gradient: &GaugeField) -> Result {
        let (domain, format) = (links.domain(), Format::of(links.precision()));
        let (rho, directions) = (self.rho, self.directions());
        // Λ is also needed on sites of neighbouring processes. Computing it on these sites again takes less time than fetching it.
        gradient.fill_border()?;
        let lattice = links.bordered_with_ends();
        for parity in 0..2 {
            let kernel = StoutDerivative {
                links: links.both(),
                gradient: gradient.links(parity),
                weights: weights.views()[parity],
                lattice,
                parity: parity as u32,
                directions,
                rho,
            };
            let sites = lattice.inner.sites(&lattice.geometry);
            domain.backend().launch(&STOUT_DERIVATIVE, format, &kernel, sites, directions)?;
        }
        for parity in 0..2 {
            let kernel = StoutGradient {
                links: links.both(),
                weights: weights.views(),
                gradient: gradient.links(parity),
                lattice: links.bordered(),
                parity: parity as u32,
                directions,
                rho,
            };
            domain.backend().launch(&STOUT_GRADIENT, format, &kernel, domain.half_sites(), directions)?;
        }
        Ok(())
    }
}
