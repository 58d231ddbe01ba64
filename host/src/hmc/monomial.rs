//! Monomials: parts of the fermion action.
use super::HmcError;
use super::force::Force;
use super::functions::RationalFunctions;
use super::links::EvolvingLinks;
use crate::field::DeviceField;
use gpu_kernels::FermionKind;

/// Part of the fermion action, with or without pseudofermions.
pub trait Monomial: Force {
    /// Returns the fermion type of the pseudofermions.
    fn kind(&self) -> FermionKind;
    /// Returns the number of pseudofermions.
    fn count(&self) -> usize;
    /// *Collective.* Draws pseudofermions for links from noise ξ with ⟨|ξ|²⟩ = 1 for each complex number, and returns Σ |ξ|².
    fn draw(&mut self, links: &EvolvingLinks, seed: u64, trajectory: u32) -> Result<f64, HmcError>;
    /// *Collective.* Computes pseudofermions from given noise ξ and returns Σ |ξ|². The noise is on the even sites, in double precision,
    /// with one vector for each pseudofermion.
    fn set_from(&mut self, links: &EvolvingLinks, noise: &DeviceField) -> Result<f64, HmcError>;
    /// *Collective.* Computes the action of the Metropolis step.
    fn action(&self, links: &EvolvingLinks) -> Result<f64, HmcError>;
    /// Sets other rational functions for a changed spectrum, if the monomial has rational functions.
    fn set_functions(&mut self, functions: RationalFunctions);
    /// Drops solutions that forces keep as initial guesses, so that the next force is computed as at the start of a trajectory.
    fn forget_guesses(&self) {}
    /// Returns the solver iterations of all pseudofermions since the last call.
    fn take_iterations(&self) -> usize;
    /// Returns the largest true residual of heat bath and action since the last call, in the precision of the solver. Molecular dynamics
    /// computes no true residuals.
    fn take_residual(&self) -> f64;
    /// Returns the number of links whose forces were guarded since the last call, over all evaluations. A force is kept from growing
    /// without bounds if the projection of a HISQ link to U(3) has a singular value near 0. `None` for other quarks.
    fn take_guarded(&self) -> Option<usize> {
        None
    }
}
