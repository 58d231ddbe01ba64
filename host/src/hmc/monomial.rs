//! Monomials: parts of the fermion action.
use super::HmcError;
use super::force::Force;
use super::functions::RationalFunctions;
use super::links::EvolvingLinks;
use crate::field::DeviceField;
use gpu_kernels::FermionKind;

/// A monomial: a part of the fermion action, with pseudofermions or without.
pub trait Monomial: Force {
    /// Returns the fermion type of the pseudofermions.
    fn kind(&self) -> FermionKind;
    /// Returns the number of pseudofermions.
    fn count(&self) -> usize;
    /// *Collective.* Draws pseudofermions for links from noise ξ with ⟨|ξ|²⟩ = 1 for each complex number, and returns Σ |ξ|².
    fn draw(&mut self, links: &EvolvingLinks, seed: u64, trajectory: u32) -> Result<f64, HmcError>;
    /// *Collective.* Computes pseudofermions for links from given noise ξ on the even sites, in double precision and one vector for each
    /// pseudofermion, and returns Σ |ξ|².
    fn set_from(&mut self, links: &EvolvingLinks, noise: &DeviceField) -> Result<f64, HmcError>;
    /// *Collective.* Computes the action of the Metropolis step.
    fn action(&self, links: &EvolvingLinks) -> Result<f64, HmcError>;
    /// Sets other rational functions, which the spectrum requires, if the monomial has such functions.
    fn set_functions(&mut self, functions: RationalFunctions);
    /// Drops solutions that forces keep for their next initial guess, so that the next force is that of a trajectory's start.
    fn forget_guesses(&self) {}
    /// Returns the iterations of solvers since the last call, those of all pseudofermions together.
    fn take_iterations(&self) -> usize;
    /// Returns the largest true residual of a system of heat bath or action since the last call, in the precision of the solver; molecular
    /// dynamics does not compute it.
    fn take_residual(&self) -> f64;
    /// Returns the number of links whose forces were kept from growing without bounds since the last call, those of all evaluations
    /// together: links of HISQ whose projection to U(3) has a singular value near 0. `None` for other quarks.
    fn take_guarded(&self) -> Option<usize> {
        None
    }
}
