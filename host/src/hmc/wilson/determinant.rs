//! Determinants of the diagonal blocks of Wilson-clover quarks.
use super::forms::{add_force, gradient_of_determinant};
use super::{VECTORS, WilsonQuarks};
use crate::domain::Result;
use crate::field::DeviceField;
use crate::hmc::HmcError;
use crate::hmc::fermions::RationalFunctions;
use crate::hmc::force::Force;
use crate::hmc::links::EvolvingLinks;
use crate::hmc::momenta::MomentumField;
use crate::hmc::monomial::Monomial;
use crate::operators::{LinkDependence, Schur};
use gpu_kernels::wilson_force::{LOG_DETERMINANT, LogDeterminant};
use gpu_kernels::{FermionKind, Format};
use std::ops::Range;

/// Monomial with the action −N Σ ln |det A| of N quarks, minus the value of this action on links that are 1. The sum is over the odd sites
/// for the asymmetric complement and over all sites for the symmetric complement. For a doublet of twisted mass, A is the block of one of
/// the two quarks. The action is 0 if the blocks do not depend on the links, and for the exponential clover term without a twisted mass.
pub struct BlockDeterminant {
    name: String,
    quarks: WilsonQuarks,
    flavours: f64,
}

impl WilsonQuarks {
    /// Whether the determinant of the blocks of A depends on the links, so that the action contains a [`BlockDeterminant`]. The determinant
    /// of the exponential clover term is constant unless there is also a twisted mass.
    pub fn has_determinant(&self) -> bool {
        match self.operator.dependence() {
            LinkDependence::None => false,
            LinkDependence::Linear(_) => true,
            LinkDependence::Exponential(_) => self.operator.definition.partner().is_some(),
        }
    }
}

/// *Collective.* Computes Σ ln |det A| over the even and over the odd sites, minus the values on links that are 1; 0 if the blocks do not
/// depend on the links.
///
/// # Errors
/// Failures of the device.
pub fn log_determinants(quarks: &WilsonQuarks, links: &EvolvingLinks) -> Result<[f64; 2]> {
    if !quarks.has_determinant() {
        return Ok([0.0; 2]);
    }
    let (term, domain) = (quarks.term(links)?, links.own().domain());
    let (mut sums, mut weight) = ([0.0; 2], 0.0);
    for parity in 0..2 {
        let Some(blocks) = term.term().and_then(|term| term.determinant(parity)) else { return Ok([0.0; 2]) };
        weight = blocks.weight;
        let kernel = LogDeterminant { blocks: blocks.blocks, factor: blocks.factor };
        domain.backend().reduce(&LOG_DETERMINANT, Format::NONE, &kernel, (domain.half_sites(), 1), parity)?;
    }
    domain.sums(&mut sums)?;
    Ok(sums.map(|sum| weight * sum))
}

impl BlockDeterminant {
    /// Makes the monomial of `flavours` quarks with one mass.
    pub fn new(name: String, quarks: WilsonQuarks, flavours: u32) -> Self {
        BlockDeterminant { name, quarks, flavours: f64::from(flavours) }
    }
    fn parities(&self) -> Range<usize> {
        match self.quarks.operator.schur {
            Schur::Symmetric => 0..2,
            Schur::Asymmetric => 1..2,
        }
    }
    /// *Collective.* Computes Σ ln |det A|.
    fn log_determinant(&self, links: &EvolvingLinks) -> Result<f64> {
        Ok(log_determinants(&self.quarks, links)?[self.parities()].iter().sum())
    }
}

impl Force for BlockDeterminant {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn kick(&self, links: &EvolvingLinks, step: f64, momenta: &mut MomentumField) -> std::result::Result<(), HmcError> {
        match gradient_of_determinant(&self.quarks, links, self.parities(), -self.flavours)? {
            Some(gradient) => Ok(add_force(&self.quarks, gradient, links, step, momenta)?),
            None => Ok(()),
        }
    }
}

impl Monomial for BlockDeterminant {
    fn kind(&self) -> FermionKind {
        VECTORS.kind
    }
    fn count(&self) -> usize {
        0
    }
    fn draw(&mut self, _: &EvolvingLinks, _: u64, _: u32) -> std::result::Result<f64, HmcError> {
        Ok(0.0)
    }
    fn set_from(&mut self, _: &EvolvingLinks, _: &DeviceField) -> std::result::Result<f64, HmcError> {
        Ok(0.0)
    }
    fn action(&self, links: &EvolvingLinks) -> std::result::Result<f64, HmcError> {
        Ok(-self.flavours * self.log_determinant(links)?)
    }
    fn set_functions(&mut self, _: RationalFunctions) {}
    fn take_iterations(&self) -> usize {
        0
    }
    fn take_residual(&self) -> f64 {
        0.0
    }
}
