//! Parts of the fermion action.
use super::HmcError;
use super::force::Force;
use super::functions::RationalFunctions;
use super::links::EvolvingLinks;
use crate::field::DeviceField;
use gpu_kernels::FermionKind;

/// A part of the fermion action, with pseudofermions or without: what other codes call a monomial.
pub trait Monomial: Force {
    /// What its pseudofermions are.
    fn kind(&self) -> FermionKind;
    /// How many it has.
    fn count(&self) -> usize;
    /// *Collective.* Draws pseudofermions for links from noise ξ with ⟨|ξ|²⟩ = 1 for each complex number, and gives Σ |ξ|².
    fn draw(&mut self, links: &EvolvingLinks, seed: u64, trajectory: u32) -> Result<f64, HmcError>;
    /// *Collective.* The same for given noise on the even sites, in double precision and one vector for each pseudofermion.
    fn set_from(&mut self, links: &EvolvingLinks, noise: &DeviceField) -> Result<f64, HmcError>;
    /// *Collective.* The action of the Metropolis step.
    fn action(&self, links: &EvolvingLinks) -> Result<f64, HmcError>;
    /// Other rational functions, as the spectrum asks for them, where it has such.
    fn set_functions(&mut self, functions: RationalFunctions);
    /// Drops solutions that forces keep for their next first guess, so that the next force is that of a trajectory's start.
    fn forget_guesses(&self) {}
    /// Iterations of solvers since this was asked last, those of all pseudofermions together.
    fn take_iterations(&self) -> usize;
    /// The largest true residual of a system of heat bath or action since this was asked last, in the precision of the solver;
    /// molecular dynamics does not look.
    fn take_residual(&self) -> f64;
    /// In how many links forces were kept from growing without bounds since this was asked last, those of all evaluations
    /// together: links of HISQ whose projection to U(3) has a singular value next to 0. `None` for other quarks.
    fn take_guarded(&self) -> Option<usize> {
        None
    }
}
