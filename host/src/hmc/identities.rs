//! Consistency of forces with the distribution of the links: Schwinger-Dyson identities of loops.
//!
//! For a function F of the links and a distribution with the weight exp(−S), integration by parts gives ⟨ΔF⟩ = ⟨∂F · ∂S⟩. Here Δ = Σ ∂_a
//! ∂_a and the product are sums over all links and over the eight directions iλ_a/√2 of each link. In F = Σ Re tr L over loops L of n
//! different links, each link contributes Σ_a (iλ_a/√2)² = −8/3. Hence ΔF = −(8/3) n F, and with the force −∂S of molecular dynamics
//!
//! ⟨Σ Re tr L⟩ = ⟨∂F · (−∂S)⟩ / (8n/3):
//!
//! The forces thus give a second measurement of the mean of the loops. Links and pseudofermions φ that were just drawn have the joint
//! distribution exp(−S(U, φ)), to which the identity applies.
use super::HmcError;
use super::action::GaugeAction;
use super::force::Force;
use super::links::EvolvingLinks;
use super::momenta::MomentumField;
use crate::domain::Result;
use crate::field::GaugeField;
use crate::gauge::loops::{LoopKind, LoopPath, closed_loops, mean_traces};
use gpu_kernels::Precision;

/// Mean of Re tr L / 3 over loops L, measured in two ways: from the loops themselves and from the forces. Both measurements have the same
/// mean over an ensemble.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopIdentity {
    /// Mean of Re tr L / 3 over the loops.
    pub loops: f64,
    /// Normalised scalar product of the gradient of the loops and the force of the whole action, with the same expectation value as
    /// `loops`.
    pub forces: f64,
}

impl LoopIdentity {
    /// Returns `forces` − `loops`, whose mean over an ensemble is 0.
    pub fn off(&self) -> f64 {
        self.forces - self.loops
    }
}

/// Schwinger–Dyson identities of loops, measured on the links and pseudofermions at the start of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Identities {
    /// Identity of plaquettes.
    pub plaquette: LoopIdentity,
    /// Identity of rectangles of two links by one; `None` if the lattice has an extent of 2, where such a rectangle contains a link twice.
    pub rectangle: Option<LoopIdentity>,
}

impl Identities {
    /// *Collective.* Measures the identities on `links`. `forces` must contain the forces of all parts of the action, which are summed.
    ///
    /// # Errors
    /// Errors of the forces, and failures of the device.
    pub fn of<'a>(
        links: &EvolvingLinks,
        forces: impl IntoIterator<Item = &'a dyn Force>,
    ) -> std::result::Result<Self, HmcError> {
        let thin = links.thin(Precision::Double)?;
        let mut force = MomentumField::zero(thin.domain(), Precision::Double)?;
        for part in forces {
            part.kick(links, 1.0, &mut force)?;
        }
        let loops = closed_loops();
        let of = |kind| loops.iter().filter(|path| path.kind == kind).cloned().collect::<Vec<LoopPath>>();
        let plaquette = identity(&thin, &of(LoopKind::Plaquette), GaugeAction::wilson(LOOPS), &mut force)?;
        let has_rectangles = thin.domain().global().size().iter().all(|extent| *extent > 2);
        let rectangle = has_rectangles
            .then(|| {
                let action = GaugeAction { plaquette: 0.0, rectangle: 1.0, ..GaugeAction::wilson(LOOPS) };
                identity(&thin, &of(LoopKind::Rectangle), action, &mut force)
            })
            .transpose()?;
        Ok(Identities { plaquette, rectangle })
    }
}

/// β of Wilson's action for which −∂S is ∂W, with W = Σ Re tr P.
const LOOPS: f64 = 3.0;

/// *Collective.* Measures the identity of loops of one kind. The sum of these loops is −S of `action` up to a constant. `force` is changed
/// temporarily and restored up to rounding.
fn identity(
    links: &GaugeField,
    paths: &[LoopPath],
    action: GaugeAction,
    force: &mut MomentumField,
) -> Result<LoopIdentity> {
    let mut gradient = MomentumField::zero(links.domain(), Precision::Double)?;
    action.kick(links, 1.0, &mut gradient)?;
    let product = scalar_product(force, &gradient)?;
    let traces = mean_traces(links, paths)?;
    let volume = links.domain().global().volume() as f64;
    let links_of_all: usize = paths.iter().map(|path| path.steps.len()).sum();
    // Σ Re tr L is product / (8n/3) for loops of n links; the mean divides it by 3 times the number of loops.
    let forces = product / (8.0 * links_of_all as f64 * volume);
    Ok(LoopIdentity { loops: traces.iter().sum::<f64>() / (3 * traces.len()) as f64, forces })
}

/// *Collective.* Returns Σ Re tr P†Q over all links, from the norms of P + Q and P − Q.
fn scalar_product(p: &mut MomentumField, q: &MomentumField) -> Result<f64> {
    p.add(1.0, 1.0, q)?;
    let plus = p.kinetic_energy()?;
    p.add(1.0, -2.0, q)?;
    let minus = p.kinetic_energy()?;
    p.add(1.0, 1.0, q)?;
    Ok(0.5 * (plus - minus))
}
