//! The gradient flow: links follow the gradient of an action, dV/dt = −g² (∂S) V, and become smooth (Lüscher 2010).
//!
//! The Zeuthen flow has no discretisation errors of order a² of its own (Ramos and Sint 2016). With the force F_μ(x) = −g² ∂S of Symanzik's
//! action at tree level it is dV_μ(x)/dt = [(1 + (1/12) ∇*_μ ∇_μ) F_μ(x)] V_μ(x), where
//!
//! ∇*_μ ∇_μ F_μ(x) = V_μ(x) F_μ(x+μ̂) V†_μ(x) + V†_μ(x−μ̂) F_μ(x−μ̂) V_μ(x−μ̂) − 2 F_μ(x).
//!
//! A step is Lüscher's third-order Runge–Kutta scheme. With the force Z_i at W_i, which is −g² ∂S or the force of the Zeuthen flow,
//!
//! W_1 = exp(¼ ε Z_0) W_0, W_2 = exp(8/9 ε Z_1 − 17/36 ε Z_0) W_1, W_3 = exp(¾ ε Z_2 − 8/9 ε Z_1 + 17/36 ε Z_0) W_2.
use super::field_strength::{FieldStrengths, field_strengths};
use crate::domain::{Part, Result};
use crate::field::GaugeField;
use crate::halo::Needs;
use crate::hmc::HmcError;
use crate::hmc::action::GaugeAction;
use crate::hmc::force::{Force, GaugeActionForce};
use crate::hmc::links::EvolvingLinks;
use crate::hmc::momenta::MomentumField;
use gpu_kernels::gauge_force::{FORCE_MATRICES, ForceMatrices, ZEUTHEN_FORCE, ZeuthenForce};
use gpu_kernels::{Format, Precision};

/// Choice of the force of the flow: the gradient of an action, or the force of the Zeuthen flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowAction {
    /// Wilson flow.
    #[default]
    Wilson,
    /// Flow of Symanzik's action at tree level.
    Symanzik,
    /// Zeuthen flow: Symanzik's action at tree level, to whose force those of neighbouring links are added.
    Zeuthen,
}

/// Largest number of integration steps of a gradient flow that users may request.
pub const MOST_FLOW_STEPS: u64 = 1_000_000;

impl FlowAction {
    /// All choices of the force of the flow.
    pub const ALL: [FlowAction; 3] = [FlowAction::Wilson, FlowAction::Symanzik, FlowAction::Zeuthen];
    /// Returns the name of the flow in inputs: `wilson`, `symanzik` or `zeuthen`.
    pub fn name(self) -> &'static str {
        match self {
            FlowAction::Wilson => "wilson",
            FlowAction::Symanzik => "symanzik",
            FlowAction::Zeuthen => "zeuthen",
        }
    }
    /// Returns g² S as an action with a β. Momenta that follow this action are twice as large as −g² ∂S in the normalisation of the flow.
    fn action(self) -> GaugeAction {
        match self {
            FlowAction::Wilson => GaugeAction::wilson(3.0),
            // The factors are 5/3 for plaquettes and −1/12 for rectangles.
            FlowAction::Symanzik | FlowAction::Zeuthen => GaugeAction::tree_level_symanzik(5.0, 1.0),
        }
    }
}

/// Gradient flow of links, in double precision.
pub struct Flow {
    links: EvolvingLinks,
    velocity: MomentumField,
    force: GaugeActionForce,
    neighbours: Option<NeighbourForces>,
    time: f64,
}

/// Fields for the force of the Zeuthen flow.
struct NeighbourForces {
    own: MomentumField,
    /// Forces of this part as matrices; the border has those of other processes.
    matrices: GaugeField,
}

impl NeighbourForces {
    fn new(links: &GaugeField) -> Result<Self> {
        let own = MomentumField::zero(links.domain(), Precision::Double)?;
        Ok(NeighbourForces { own, matrices: GaugeField::empty(links.domain(), Precision::Double)? })
    }
    /// *Collective.* Computes `velocity` ← `velocity` + ε (1 + (1/12) ∇*_μ ∇_μ) F_μ.
    fn kick(
        &mut self,
        force: &GaugeActionForce,
        links: &EvolvingLinks,
        step: f64,
        velocity: &mut MomentumField,
    ) -> std::result::Result<(), HmcError> {
        self.own.scale(0.0)?;
        force.kick(links, 1.0, &mut self.own)?;
        let (links, matrices, format) = (links.own(), &self.matrices, Format::of(Precision::Double));
        let (domain, lattice) = (links.domain(), links.bordered());
        for parity in 0..2 {
            let kernel = ForceMatrices {
                momenta: self.own.view(parity),
                out: matrices.links(parity),
                lattice,
                parity: parity as u32,
            };
            domain.backend().launch(&FORCE_MATRICES, format, &kernel, domain.half_sites(), 4)?;
        }
        matrices.fill_border()?;
        for parity in 0..2 {
            let kernel = ZeuthenForce {
                links: links.both(),
                forces: matrices.both(),
                momenta: velocity.view(parity),
                lattice,
                parity: parity as u32,
                step,
            };
            domain.backend().launch(&ZEUTHEN_FORCE, format, &kernel, domain.half_sites(), 4)?;
        }
        Ok(())
    }
}

/// Observables of the links at one flow time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPoint {
    /// Flow time t, in units of a².
    pub time: f64,
    /// Energy densities and topological charge from the clover-leaf field strength.
    pub clover: FieldStrengths,
    /// Energy density from plaquettes, 2 Σ Re tr (1 − P) for each site.
    pub plaquette_energy: f64,
}

impl FlowPoint {
    /// *Collective.* Measures the observables of `links`, which have the flow time `time`.
    pub fn of(links: &GaugeField, time: f64) -> Result<Self> {
        let (plaquette, _) = links.plaquette()?;
        let clover = field_strengths(links)?;
        Ok(FlowPoint { time, clover, plaquette_energy: 36.0 * (1.0 - plaquette.mean) })
    }
    /// Returns t² E, where E is the energy density from the clover-leaf field strength.
    pub fn scaled(&self) -> f64 {
        self.time * self.time * self.clover.energy()
    }
}

impl Flow {
    /// *Collective.* Starts a flow with the force `action` from a copy of `links`, in double precision.
    pub fn new(links: &GaugeField, action: FlowAction) -> Result<Self> {
        let force = GaugeActionForce { action: action.action(), single: false };
        let velocity = MomentumField::zero(links.domain(), Precision::Double)?;
        let neighbours = (action == FlowAction::Zeuthen).then(|| NeighbourForces::new(links)).transpose()?;
        Ok(Flow { links: EvolvingLinks::new(links, Precision::Double)?, velocity, force, neighbours, time: 0.0 })
    }
    /// Returns the device memory that a flow adds to its initial links, for a process's part of a lattice: bytes for each named use.
    pub fn needs(action: FlowAction, part: Part) -> Needs {
        let links = part.links_bytes(Precision::Double);
        let momenta = 2 * MomentumField::bytes_for(Precision::Double, part.sites());
        let mut needs = vec![("links that flow", links), ("their momenta", momenta)];
        if action == FlowAction::Zeuthen {
            needs.push(("forces of neighbours", momenta + links));
        }
        needs
    }
    /// Returns the present flow time t, in units of a².
    pub fn time(&self) -> f64 {
        self.time
    }
    /// Returns the links at the present flow time.
    pub fn links(&self) -> &GaugeField {
        self.links.own()
    }
    /// *Collective.* Advances the flow by the flow time `step`.
    pub fn step(&mut self, step: f64) -> std::result::Result<(), HmcError> {
        // `velocity` keeps the exponent of the previous move. It enters the second and the third move with the factors −17/9 and −1.
        for (kept, added) in [(0.0, 0.25), (-17.0 / 9.0, 8.0 / 9.0), (-1.0, 0.75)] {
            self.velocity.scale(kept)?;
            match &mut self.neighbours {
                None => self.force.kick(&self.links, added * step, &mut self.velocity)?,
                Some(forces) => forces.kick(&self.force, &self.links, added * step, &mut self.velocity)?,
            }
            self.velocity.move_links(self.links.own_mut(), 1.0, false)?;
        }
        self.time += step;
        Ok(())
    }
    /// *Collective.* Measures the observables of the links at the present flow time.
    pub fn look(&self) -> Result<FlowPoint> {
        FlowPoint::of(self.links(), self.time)
    }
}

/// Returns the flow time at which t² E reaches `level` (0.3 for t₀), interpolated between two points; `None` if t² E does not reach it. E
/// is the energy density from the clover-leaf field strength.
pub fn scale_t0(points: &[FlowPoint], level: f64) -> Option<f64> {
    statistics::scale::t0(&scaled(points), level)
}

/// Returns √t at the flow time t at which t d/dt t² E reaches `level` (0.3 for w₀); `None` if it does not. Derivatives are computed as
/// differences between neighbouring points.
pub fn scale_w0(points: &[FlowPoint], level: f64) -> Option<f64> {
    statistics::scale::w0(&scaled(points), level)
}

fn scaled(points: &[FlowPoint]) -> Vec<(f64, f64)> {
    points.iter().map(|point| (point.time, point.scaled())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_where_curves_cross() {
        let clover = |energy: f64| FieldStrengths { space: 0.5 * energy, time: 0.5 * energy, charge: 0.0 };
        // t² E = t / 2.
        let points: Vec<FlowPoint> = (1..40)
            .map(|k| {
                let time = 0.05 * f64::from(k);
                FlowPoint { time, clover: clover(0.5 / time), plaquette_energy: 0.0 }
            })
            .collect();
        assert!((scale_t0(&points, 0.3).unwrap() - 0.6).abs() < 1e-12);
        assert!((scale_w0(&points, 0.3).unwrap() - 0.6f64.sqrt()).abs() < 1e-12);
        assert_eq!((scale_t0(&points, 2.0), scale_w0(&points[..2], 0.3)), (None, None));
    }
}
