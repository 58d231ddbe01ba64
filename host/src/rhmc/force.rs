//! What moves momenta.
use super::Error;
use super::links::MovingLinks;
use super::momenta::MomentumField;
use crate::backend::Backend;

/// A part of the action whose force molecular dynamics follows, for links and momenta in precision `T`.
pub trait Force<B: Backend, T> {
    /// For reports.
    fn name(&self) -> String;
    /// *Collective.* P ← P − ε ∂S. May panic when links and momenta are on different lattices.
    fn push(&self, links: &MovingLinks<B, T>, step: f64, momenta: &mut MomentumField<B, T>) -> Result<(), Error>;
}
