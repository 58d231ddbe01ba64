//! Forces of molecular dynamics.
use super::HmcError;
use super::links::EvolvingLinks;
use super::momenta::MomentumField;

/// A part of the action whose force molecular dynamics follows.
pub trait Force {
    /// For reports.
    fn name(&self) -> String;
    /// Whether it is that of the gauge action, which [some integrators](super::integrator::Scheme::ThreeGaugeOneFermion) take more often.
    fn is_of_gauge_action(&self) -> bool {
        false
    }
    /// *Collective.* P ← P − ε ∂S. May panic when links and momenta are on different lattices.
    fn kick(&self, links: &EvolvingLinks, step: f64, momenta: &mut MomentumField) -> Result<(), HmcError>;
}
