//! Molecular dynamics step by step, for interfaces that compose trajectories themselves: momenta, and the actions and forces of gauge fields
//! and quarks.
use crate::Outcome;
use crate::ensemble::chain::{NamedGaugeAction, NamedQuarks, shifted_solver};
use crate::ensemble::quarks::{EnsembleQuarks, Parts, failed, without_action};
use crate::grid_device::GridDevice;
use crate::links::LatticeLinks;
use ferrite::Precision;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::lattice::Section;

/// Momenta on a part of the lattice, in double precision on a device.
pub struct KeptMomenta {
    field: MomentumField,
    part: Section,
}

/// Quarks with their pseudofermions on a device.
pub struct KeptQuarks {
    parts: Parts,
}

/// Solvers of quarks whose trajectories an interface composes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuarkSolvers {
    /// Whether forces are computed in single precision.
    pub single: bool,
    /// Requested tolerance of the solvers for forces; `None` for 1e-6 in single and 1e-8 in double precision.
    pub dynamics_tol: Option<f64>,
    /// Requested tolerance of the solvers for heat bath and action.
    pub action_tol: f64,
    /// Seed of the noise with which spectral bounds are computed.
    pub seed: u64,
}

impl KeptMomenta {
    /// Makes momenta that are zero.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn zero(device: &GridDevice, part: Section) -> Outcome<Self> {
        Ok(KeptMomenta { field: MomentumField::zero(&device.domain(&part)?, Precision::Double)?, part })
    }
    /// Returns the part of the lattice that the momenta are on.
    pub fn part(&self) -> Section {
        self.part
    }
    /// Draws all momenta with the weight exp(−½ Σ |P|²). They do not depend on the process grid.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn draw(&mut self, seed: u64, trajectory: u32) -> Outcome {
        Ok(self.field.draw(seed, trajectory)?)
    }
    /// Replaces the momenta by the traceless anti-Hermitian parts of matrices.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn set(&mut self, matrices: &HostGauge) -> Outcome {
        self.field = MomentumField::upload(self.field.domain(), matrices, Precision::Double)?;
        Ok(())
    }
    /// Returns the momenta as one matrix for each link.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn matrices(&self) -> Outcome<HostGauge> {
        Ok(self.field.download()?)
    }
    /// *Collective.* Returns the kinetic energy ½ Σ |P|², minus its mean 4 for each link.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn kinetic_energy(&self) -> Outcome<f64> {
        Ok(self.field.kinetic_energy()?)
    }
    /// *Collective.* Computes P ← P − ε ∂S, where S is a gauge action and ε is `step`.
    ///
    /// # Errors
    /// An action that does not exist, and failures of the device.
    pub fn kick_by_gauge(
        &mut self,
        device: &GridDevice,
        links: &LatticeLinks,
        action: &NamedGaugeAction,
        step: f64,
    ) -> Outcome {
        let force = GaugeActionForce { action: action.action()?, single: false };
        force.kick(&evolving(device, links)?, step, &mut self.field).map_err(failed)
    }
    /// *Collective.* Computes P ← P − ε ∂S, where S is the action of quarks with their present pseudofermions and ε is `step`.
    ///
    /// # Errors
    /// Solvers that give up, and failures of the device.
    pub fn kick_by_quarks(
        &mut self,
        device: &GridDevice,
        links: &LatticeLinks,
        quarks: &KeptQuarks,
        step: f64,
    ) -> Outcome {
        let links = evolving(device, links)?;
        quarks.parts.iter().try_for_each(|part| part.kick(&links, step, &mut self.field).map_err(failed))
    }
    /// *Collective.* Returns the links exp(ε P) U, made unitary, where ε is `step`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn moved(&self, device: &GridDevice, links: &LatticeLinks, step: f64) -> Outcome<HostGauge> {
        let mut moved = GaugeField::upload(&device.domain(&links.part)?, &links.gauge)?;
        self.field.move_links(&mut moved, step, true)?;
        Ok(moved.download()?)
    }
}

/// *Collective.* Returns the value of a gauge action.
///
/// # Errors
/// An action that does not exist, and failures of the device.
pub fn gauge_action(device: &GridDevice, links: &LatticeLinks, action: &NamedGaugeAction) -> Outcome<f64> {
    Ok(action.action()?.value(&GaugeField::upload(&device.domain(&links.part)?, &links.gauge)?)?)
}

impl KeptQuarks {
    /// *Collective.* Makes quarks, whose rational functions suit the spectrum on these links. Their pseudofermions are zero until
    /// [`draw`](Self::draw).
    ///
    /// # Errors
    /// Parameters that make no sense, solvers that give up, and failures of the device.
    pub fn new(
        device: &GridDevice,
        links: &LatticeLinks,
        quarks: &NamedQuarks,
        solvers: QuarkSolvers,
    ) -> Outcome<Self> {
        let QuarkSolvers { single, dynamics_tol, action_tol, seed } = solvers;
        let of_dynamics = dynamics_tol.unwrap_or(if single { 1e-6 } else { 1e-8 });
        let solvers = [shifted_solver(single, vec![of_dynamics]), shifted_solver(false, vec![action_tol])];
        let groups = [quarks.group()?];
        let quarks = EnsembleQuarks { groups: &groups, solvers: &solvers, seed };
        let (parts, _) = quarks.parts_for(&evolving(device, links)?).map_err(without_action)?;
        Ok(KeptQuarks { parts })
    }
    /// *Collective.* Draws pseudofermions for these links, and returns their action.
    ///
    /// # Errors
    /// Solvers that give up, and failures of the device.
    pub fn draw(&mut self, device: &GridDevice, links: &LatticeLinks, seed: u64, trajectory: u32) -> Outcome<f64> {
        let links = evolving(device, links)?;
        let mut sum = 0.0;
        for part in &mut self.parts {
            sum += part.draw(&links, seed, trajectory).map_err(failed)?;
        }
        Ok(sum)
    }
    /// *Collective.* Returns the action of the pseudofermions on these links.
    ///
    /// # Errors
    /// Solvers that give up, and failures of the device.
    pub fn action(&self, device: &GridDevice, links: &LatticeLinks) -> Outcome<f64> {
        let links = evolving(device, links)?;
        self.parts.iter().try_fold(0.0, |sum, part| Ok(sum + part.action(&links).map_err(failed)?))
    }
}

fn evolving(device: &GridDevice, links: &LatticeLinks) -> Outcome<EvolvingLinks> {
    let uploaded = GaugeField::upload(&device.domain(&links.part)?, &links.gauge)?;
    Ok(EvolvingLinks::new(&uploaded, Precision::Double)?)
}
