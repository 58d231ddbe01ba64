//! Solves that are compiled with their backend.
use super::configuration::Configuration;
use super::request::Request;
use super::run::Solved;
use super::shifts::{Series, ShiftStrategy, SolvedShifts};
use super::staggered::StaggeredConfiguration;
use crate::backend::Backend;
use crate::dirac::StaggeredParams;
use crate::field::host::{ColourVector, HostColour, HostSpinor, Spinor};
use solvers::{Iteration, Observer};
use std::ops::ControlFlow;

/// The solves of a backend, as functions that are not generic.
///
/// What is generic over the backend is compiled with each program that calls it: a solve with all its precisions, links
/// and methods takes minutes, after each change of the program. So [`Configuration::solve`] and its like find the
/// solve here, in a `static` of the crate that the backend is in: see [`Backend::solves`].
pub struct Solves<B: Backend> {
    pub(super) spinors: OfSpinors<B>,
    pub(super) colours: OfColours<B>,
    pub(super) series: OfSeries<B>,
}
type OfSpinors<B> =
    fn(&Configuration<'_, B>, &[HostSpinor], Option<&[HostSpinor]>, &Request, &mut dyn Observer) -> Solved<Spinor>;
type OfColours<B> = fn(
    &StaggeredConfiguration<'_, B>,
    &[HostColour],
    Option<&[HostColour]>,
    &Request<StaggeredParams>,
    &mut dyn Observer,
) -> Solved<ColourVector>;
type OfSeries<B> = fn(
    &StaggeredConfiguration<'_, B>,
    &[HostColour],
    Series<'_>,
    ShiftStrategy,
    &Request<StaggeredParams>,
    &mut dyn Observer,
) -> SolvedShifts;

impl<B: Backend> Solves<B> {
    /// For a `static` of the backend's crate.
    #[expect(clippy::new_without_default, reason = "a static needs a constant function")]
    pub const fn new() -> Self {
        Solves {
            spinors: |configuration, sources, guess, request, observer| {
                configuration.compute(sources, guess, request, &mut Seen(observer))
            },
            colours: |configuration, sources, guess, request, observer| {
                configuration.compute(sources, guess, request, &mut Seen(observer))
            },
            series: |configuration, sources, series, strategy, request, observer| {
                configuration.compute_series(sources, series, strategy, request, &mut Seen(observer))
            },
        }
    }
}

/// An observer whose type has no part in what is compiled.
struct Seen<'a>(&'a mut dyn Observer);
impl Observer for Seen<'_> {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self.0.iteration(event)
    }
}
