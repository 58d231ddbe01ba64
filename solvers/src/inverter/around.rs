//! Inverters that run another inverter in another precision.

use super::sides::{PreciseSide, SloppySide};
use super::{Inverter, OneSpace, TwoSpaces};
use crate::defect::{DefectParams, DefectWorkspace, defect_correction};
use crate::error::SolveError;
use crate::info::Info;
use crate::observer::{Iteration, IterationKind, Observer};
use crate::operator::{Mixed, Precise, Sloppy, System, Uniform};
use crate::params::SolverParams;
use crate::traits::{ConvertFrom, LinearOperator, VectorSpace};
use std::cell::RefCell;

/// Inverter that runs another inverter in a sloppy space, with reliable updates; [`mixed_precision`] creates it.
pub struct MixedPrecision<'a, S, I> {
    space: &'a S,
    operator: &'a dyn LinearOperator<S>,
    inner: I,
}

/// Creates an inverter that runs the iteration of `inner` in `space`, where `operator` is the matrix of the system. The
/// operator of the system computes true residuals for reliable updates.
pub fn mixed_precision<'a, S: VectorSpace, I>(
    space: &'a S,
    operator: &'a dyn LinearOperator<S>,
    inner: I,
) -> MixedPrecision<'a, S, I> {
    MixedPrecision { space, operator, inner }
}

impl<Y, S, I> Inverter<Y> for MixedPrecision<'_, S, I>
where
    Y: System,
    Y::Precise: ConvertFrom<S>,
    S: ConvertFrom<Y::Precise> + VectorSpace<Error = Y::Error>,
    I: for<'s> Inverter<TwoSpaces<'s, Y::Precise, S>>,
{
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>> {
        let precise = PreciseSide(system);
        let mixed: TwoSpaces<'_, _, _> = Mixed::new(system.precise(), &precise, self.space, self.operator);
        self.inner.invert(&mixed, b, x, params, observer)
    }
}

/// Inverter that runs defect correction: it solves for one correction after another. [`defect_correcting`] creates it.
pub struct DefectCorrecting<P: VectorSpace, S: VectorSpace, I> {
    params: DefectParams,
    inner: I,
    workspace: Option<DefectWorkspace<P, S>>,
}

/// Creates an inverter that runs [`defect_correction`]; `inner` solves A e = r on the sloppy space of the system. The
/// tolerance and the maximum number of iterations are those passed to [`invert`](Inverter::invert), not those of
/// `params`. `inner` gets all other parameters of the call. The observer receives the corrections, and the iterations
/// of `inner` with a running number.
///
/// Each correction is a separate solve, so the setup of `inner` is repeated for the remaining residual.
pub fn defect_correcting<P: VectorSpace, S: VectorSpace, I>(
    params: impl Into<DefectParams>,
    inner: I,
) -> DefectCorrecting<P, S, I> {
    DefectCorrecting { params: params.into(), inner, workspace: None }
}

impl<P, S, Y, I> Inverter<Y> for DefectCorrecting<P, S, I>
where
    P: VectorSpace,
    S: VectorSpace<Error = P::Error>,
    Y: System<Precise = P, Sloppy = S, Error = P::Error>,
    I: for<'s> Inverter<OneSpace<'s, S>>,
{
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        asked: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>> {
        let Self { params, inner, workspace } = self;
        if workspace.is_none() {
            *workspace = Some(DefectWorkspace::new(system)?);
        }
        let workspace = workspace.as_mut().expect("made above");
        let SolverParams { tol, max_iterations, .. } = *asked;
        let params = DefectParams { solver: SolverParams { tol, max_iterations, ..params.solver }, ..*params };
        let sloppy = SloppySide(system);
        let inside: OneSpace<'_, S> = Uniform::new(system.sloppy(), &sloppy);
        let nested = Nested::new(observer);
        let solve = |r: &Sloppy<Y>, e: &mut Sloppy<Y>, SolverParams { tol, max_iterations, .. }: &SolverParams| {
            let params = SolverParams { tol: *tol, max_iterations: *max_iterations, ..*asked };
            inner.invert(&inside, r, e, &params, &mut nested.inside())
        };
        defect_correction(system, b, x, &params, workspace, solve, &mut nested.outside())
    }
}

/// Passes the events of an outer and an inner solver to one observer.
pub(super) struct Nested<'a> {
    seen: RefCell<Seen<'a>>,
}

struct Seen<'a> {
    observer: &'a mut dyn Observer,
    /// Number of iterations in the inner solves before the current one.
    iterations: usize,
    /// Relative residual at the start of the current inner solve.
    level: f64,
    residuals: Vec<f64>,
}

impl<'a> Nested<'a> {
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self { seen: RefCell::new(Seen { observer, iterations: 0, level: 1.0, residuals: Vec::new() }) }
    }
    /// Returns the observer of the outer solver.
    pub fn outside(&self) -> impl Observer {
        |event: &Iteration<'_>| {
            let mut seen = self.seen.borrow_mut();
            (seen.iterations, seen.level) = (event.iteration, event.worst());
            seen.observer.iteration(event)
        }
    }
    /// Returns the observer of the inner solver.
    pub fn inside(&self) -> impl Observer {
        |event: &Iteration<'_>| {
            let Seen { observer, iterations, level, residuals } = &mut *self.seen.borrow_mut();
            residuals.clear();
            residuals.extend(event.residuals.iter().map(|r| r * *level));
            let iteration = *iterations + event.iteration;
            observer.iteration(&Iteration { iteration, residuals, kind: IterationKind::Iterate })
        }
    }
}
