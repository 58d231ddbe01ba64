//! Stout links (Morningstar and Peardon 2004):
//!
//! U′_μ(x) = exp(iQ_μ(x)) U_μ(x), iQ_μ(x) = \[ρ C_μ(x) U†_μ(x)\],
//!
//! with the staples C_μ(x) = Σ_{ν≠μ} U_ν(x) U_μ(x+ν̂) U†_ν(x+μ̂) + U†_ν(x−ν̂) U_μ(x−ν̂) U_ν(x−ν̂+μ̂) and the traceless anti-Hermitian part
//! \[X\] = (X − X†)/2 − tr (X − X†)/6.
use super::action::{Anisotropy, GaugeAction};
use super::momenta::MomentumField;
use crate::domain::Result;
use crate::field::GaugeField;
use gpu_kernels::Precision;

/// How links are smeared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoutSmearing {
    /// ρ
    pub rho: f64,
    /// How many times links are replaced by smeared ones.
    pub levels: usize,
    /// Links in t stay as they are, and others have no staples that reach into t.
    pub spatial: bool,
}

impl StoutSmearing {
    /// *Collective.* Smeared copies of links in double precision.
    ///
    /// # Errors
    /// Links in another precision, and failures of the device.
    pub fn smeared(&self, links: &GaugeField) -> Result<GaugeField> {
        links.expect_in(Precision::Double)?;
        // U_μ(x) C†_μ(x) is the sum of the plaquettes with the link, whose force is that of Wilson's action: with β = 3 ρ it is
        // [ρ U_μ(x) C†_μ(x)] = −iQ_μ(x), which is subtracted.
        let anisotropy = Anisotropy { plaquettes: [1.0, if self.spatial { 0.0 } else { 1.0 }], ..Anisotropy::NONE };
        let staples = GaugeAction { anisotropy, ..GaugeAction::wilson(3.0 * self.rho) };
        let mut smeared = links.copied()?;
        for _ in 0..self.levels {
            let mut iq = MomentumField::zero(links.domain(), Precision::Double)?;
            staples.kick(&smeared, 1.0, &mut iq)?;
            iq.move_links(&mut smeared, 1.0, false)?;
        }
        Ok(smeared)
    }
}
