//! Forces of molecular dynamics.
use super::HmcError;
use super::action::GaugeAction;
use super::links::EvolvingLinks;
use super::momenta::MomentumField;
use gpu_kernels::Precision;

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

/// A gauge action as a force.
pub struct GaugeActionForce {
    /// The action.
    pub action: GaugeAction,
    /// Whether staples are multiplied in single precision, or in double.
    pub single: bool,
}

impl Force for GaugeActionForce {
    fn name(&self) -> String {
        "gauge".into()
    }
    fn is_of_gauge_action(&self) -> bool {
        true
    }
    fn kick(&self, links: &EvolvingLinks, step: f64, momenta: &mut MomentumField) -> Result<(), HmcError> {
        let precision = if self.single { Precision::Single } else { Precision::Double };
        Ok(self.action.kick(&*links.thin(precision)?, step, momenta)?)
    }
}
