//! Forces of molecular dynamics.
use super::HmcError;
use super::action::GaugeAction;
use super::links::EvolvingLinks;
use super::momenta::MomentumField;
use gpu_kernels::Precision;

/// Part of the action whose force acts in molecular dynamics.
pub trait Force {
    /// Returns the name of the force for reports.
    fn name(&self) -> String;
    /// Whether the force is that of the gauge action. [Some integrators](super::integrator::Scheme::ThreeGaugeOneFermion) evaluate the
    /// gauge force more often than other forces.
    fn is_of_gauge_action(&self) -> bool {
        false
    }
    /// *Collective.* Computes P ← P − ε ∂S, where ε is `step`. May panic if links and momenta are on different lattices.
    fn kick(&self, links: &EvolvingLinks, step: f64, momenta: &mut MomentumField) -> Result<(), HmcError>;
}

/// Force of a gauge action in molecular dynamics.
pub struct GaugeActionForce {
    /// Gauge action whose force acts.
    pub action: GaugeAction,
    /// Whether the force is computed from links in single precision instead of double precision.
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
