//! Solves for several shifts or masses. Multi-shift CG solves all systems (M†M + σ_i) x_i = b in a precision that is as fast as the
//! tolerance allows, and mixed-precision CG then solves each system from the result (Babich et al. 2011, section 8.2).
use super::configuration::Configuration;
use super::configuration::SystemFormats;
use super::escalation::{EscalatedSolve, ParitySystem, solve_escalating};
use super::formats::Formats;
use super::report::{Escalation, SolveFailure, gflops};
use super::request::Request;
use super::run::norms;
use super::scale::{Exponents, OutOfRange, Scales};
use crate::domain::{DeviceError, Result};
use crate::field::host::{ColourVector, Fermion, HostField};
use crate::field::{DeviceField, FieldShape, FieldSpace, FullField};
use crate::operators::{EvenOdd, StaggeredOperator, StaggeredParams};
use gpu_kernels::{LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{
    Iteration, MultiShiftParams, MultiShiftWorkspace, Observer, SolveError, SolverParams, Unsolved, VectorSpace,
    multishift_cg,
};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

/// Strategy to solve the systems of several shifts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShiftStrategy {
    /// Multi-shift CG for all systems together, then CG for each system to the tolerance.
    #[default]
    MultiShift,
    /// CG for each system separately, from zero.
    Sequential,
}

/// Result for one shift.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftOutcome {
    /// Shift σ.
    pub shift: f64,
    /// Iterations of multi-shift CG until the system was dropped, for the slowest right-hand side, summed over parities.
    pub iterations: usize,
    /// Iterations of the solver that continued after multi-shift CG, summed over parities.
    pub refinement_iterations: usize,
    /// Number of true residuals that the solver after multi-shift CG computed, including the last check.
    pub reliable_updates: usize,
    /// True residual ‖b − (M†M + σ) x‖ / ‖b‖ of each right-hand side, in double precision with the unfused operator; ‖η − M ψ‖ / ‖η‖ for
    /// masses.
    pub true_residual: Vec<f64>,
    /// Precision escalations for this shift.
    pub escalations: Vec<Escalation>,
    /// Reason why the solver gave up, if a true residual is above the tolerance.
    pub failure: Option<Unsolved>,
    /// Reason why a solver gave up although the true residuals of its solutions are at or below the tolerance; `None` otherwise.
    pub gave_up: Option<Unsolved>,
}

/// Report of a solve for several shifts.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftsReport {
    /// Results for the shifts, in the order in which the shifts were given.
    pub shifts: Vec<ShiftOutcome>,
    /// Whether every true residual is at or below the tolerance.
    pub converged: bool,
    /// Precision of multi-shift CG; `None` if each system was solved separately.
    pub first_precision: Option<Precision>,
    /// Storage of the links with which each system was refined, before any escalation.
    pub reconstruction: LinkStorage,
    /// Duration of multi-shift CG, in seconds; 0 if each system was solved separately.
    pub first_seconds: f64,
    /// Duration of all solvers, in seconds, without transfers between host and device.
    pub seconds: f64,
    /// Duration of the solve, in seconds, from the first transfer to the last one.
    pub total_seconds: f64,
    /// Rate of operator applications during [`seconds`](Self::seconds), in 10⁹ operations per second.
    pub gflops: f64,
    /// Whether the observer stopped the solve.
    pub cancelled: bool,
}

/// Solutions, first by shift and then by right-hand side, with their report.
pub type SolvedShifts<F = ColourVector> = std::result::Result<(Vec<Vec<HostField<F>>>, ShiftsReport), SolveFailure<F>>;

/// Reason why block CG and multi-shift CG cannot be combined.
const NO_BLOCKS_OF_SHIFTS: &str = "multi-shift CG has a Krylov space for each right-hand side, but block CG has one \
                                   for all right-hand sides: choose CG, or solve each system separately \
                                   (ShiftStrategy::Sequential)";

/// Relative residual to which multi-shift CG goes in single precision. Below it, the residual of the recurrence departs from the true
/// residual.
const FIRST_TOLERANCE: f64 = 1e-6;

/// Share below which the part of a source on one parity is left out, relative to the other part. Squares of its residuals would be outside
/// the range of double precision.
const NEGLIGIBLE: f64 = 1e-50;

/// Parameter that differs between the systems.
#[derive(Clone, Copy)]
pub(super) enum Series<'a> {
    /// Shifts σ_i of M†M + σ_i.
    Shifts(&'a [f64]),
    /// Masses m_i of M(m_i).
    Masses(&'a [f64]),
}

impl Configuration<'_> {
    /// Solves (M†M + σ_i) x_ij = b_j for all shifts and sources, each to the tolerance of the request. M†M does not mix the parities, so a
    /// parity is solved only if some source is not zero there.
    ///
    /// # Errors
    /// Fails for invalid requests and on failures of the device. Failures of solvers are in the report, with the best iterates.
    pub fn solve_shifts<F: Fermion>(
        &self,
        sources: &[HostField<F>],
        shifts: &[f64],
        strategy: ShiftStrategy,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> SolvedShifts<F> {
        self.compute_series(sources, Series::Shifts(shifts), strategy, request, observer)
    }
    /// Solves M(m_i) ψ_ij = η_j for all masses and sources, as ψ = M† x with (M†M) x = η. The systems of different masses differ only by
    /// the shifts m_i². The mass of the operator in the request is ignored.
    ///
    /// # Errors
    /// As in [`solve_shifts`](Self::solve_shifts).
    pub fn solve_masses<F: Fermion>(
        &self,
        sources: &[HostField<F>],
        masses: &[f64],
        strategy: ShiftStrategy,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> SolvedShifts<F> {
        self.compute_series(sources, Series::Masses(masses), strategy, request, observer)
    }
    fn compute_series<F: Fermion>(
        &self,
        sources: &[HostField<F>],
        series: Series<'_>,
        strategy: ShiftStrategy,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> SolvedShifts<F> {
        let masses = match series {
            Series::Masses(masses) => masses,
            Series::Shifts(shifts) => {
                let finish = |solver: &mut Shifts, i| solver.normal_residuals(i);
                return self.shifted(sources, shifts, strategy, request, observer, finish);
            }
        };
        // The systems of all masses are those of the massless operator with the shifts m_i².
        let massless = Request { operator: request.operator.with_mass(0.0), ..request.clone() };
        let shifts: Vec<f64> = masses.iter().map(|m| m * m).collect();
        let solved = self.shifted(sources, &shifts, strategy, &massless, observer, |solver, i| {
            solver.apply_dagger(i, masses[i])?;
            solver.residuals(i, masses[i])
        });
        solved.map(|(solutions, mut report)| {
            report.shifts.iter_mut().zip(masses).for_each(|(outcome, mass)| outcome.shift = *mass);
            (solutions, report)
        })
    }

    fn shifted<F: Fermion>(
        &self,
        sources: &[HostField<F>],
        shifts: &[f64],
        strategy: ShiftStrategy,
        request: &Request,
        observer: &mut dyn Observer,
        finish: impl Fn(&mut Shifts, usize) -> Result<Vec<f64>>,
    ) -> SolvedShifts<F> {
        let begin = Instant::now();
        let invalid = |why| SolveFailure::Solver(SolveError::Invalid(why));
        super::expect_sources(self.domain(), sources, None)?;
        let opens_links = request.open.precision && request.open.storage;
        let request = self.checked(&request.for_systems(strategy, self.domain().backend()))?;
        if request.method.is_block && strategy == ShiftStrategy::MultiShift {
            return Err(invalid(NO_BLOCKS_OF_SHIFTS));
        }
        if shifts.is_empty() || !shifts.iter().all(|shift| shift.is_finite()) {
            return Err(invalid("at least one shift is needed, and all shifts must be finite numbers"));
        }
        let Some(&operator) = request.operator.parameters::<StaggeredOperator>() else {
            return Err(invalid("several shifts or masses need a staggered operator: solve the systems one by one"));
        };
        let square = operator.params.mass.powi(2);
        if shifts.iter().any(|shift| square + shift <= 0.0) {
            return Err(invalid("m² + σ must be positive for every shift σ: give larger shifts"));
        }
        let exponents = Exponents::of(self.domain(), sources)?;
        let sources = exponents.apply(sources);
        let there = self.spread_phases(&request.operator, &sources);
        let mut solver = Shifts::new(self, operator, &there, shifts, (request.clone(), opens_links))?;
        self.domain().backend().synchronize().map_err(DeviceError::from)?;
        let mut cancelled = false;
        for parity in 0..2 {
            if cancelled || solver.norms.iter().all(|norms| norms[parity] == 0.0) {
                continue;
            }
            cancelled = solver.solve(parity, strategy, observer).map_err(SolveFailure::Solver)?;
        }
        let mut solutions = Vec::new();
        let mut converged = !cancelled;
        for i in 0..shifts.len() {
            let residuals = finish(&mut solver, i)?;
            let good = residuals.iter().all(|r| *r <= request.tol);
            converged &= good;
            let mut failures = std::mem::take(&mut solver.failures[i]).into_iter();
            let outcome = &mut solver.outcomes[i];
            if good {
                outcome.gave_up = failures.next();
            } else {
                let about_others = |error: Unsolved| error.without_converged(|rhs| residuals[rhs] <= request.tol);
                let (of_others, converged): (Vec<_>, Vec<_>) =
                    failures.map(about_others).partition(|answer| answer.is_ok());
                let first = of_others.into_iter().chain(converged).next();
                outcome.failure = first.map(|answer| answer.unwrap_or_else(|error| error));
            }
            outcome.true_residual = residuals;
            solver.scales.undo(&solver.space, &mut solver.x[i])?;
            let mut fields = solver.x[i].download()?;
            self.take_spread_phases_back(&request.operator, &mut fields);
            exponents.undo(self.domain(), &mut fields)?.map_err(|OutOfRange(rhs)| SolveFailure::OutOfRange(rhs))?;
            solutions.push(fields);
        }
        let report = ShiftsReport {
            shifts: solver.outcomes,
            converged,
            first_precision: solver.first_precision,
            reconstruction: request.reconstruction,
            first_seconds: solver.first_seconds,
            seconds: solver.seconds,
            total_seconds: begin.elapsed().as_secs_f64(),
            gflops: gflops(solver.flops, solver.seconds),
            cancelled,
        };
        Ok((solutions, report))
    }
}

/// The systems and their solutions, in double precision.
struct Shifts<'c, 'g> {
    configuration: &'c Configuration<'g>,
    operator: StaggeredOperator,
    request: Request,
    /// Whether the storage of 16-bit links is chosen for each system.
    opens_links: bool,
    space: FieldSpace,
    sources: FullField,
    /// Factors by which sources and solutions are multiplied.
    scales: Scales,
    /// Norms ‖b_j‖ on each parity.
    norms: Vec<[f64; 2]>,
    x: Vec<FullField>,
    outcomes: Vec<ShiftOutcome>,
    /// Reasons why solvers gave up, for each shift and both parities.
    failures: Vec<Vec<Unsolved>>,
    first_precision: Option<Precision>,
    first_seconds: f64,
    seconds: f64,
    flops: f64,
}

impl<'c, 'g> Shifts<'c, 'g> {
    fn new<F: Fermion>(
        configuration: &'c Configuration<'g>,
        operator: StaggeredOperator,
        sources: &[HostField<F>],
        shifts: &[f64],
        (request, opens_links): (Request, bool),
    ) -> Result<Self> {
        let (domain, nrhs) = (configuration.domain(), sources.len());
        let space = FieldSpace::new(domain, FieldShape::colours(Precision::Double, nrhs));
        let mut full = FullField::zero(domain, FieldShape::colours(Precision::Double, nrhs))?;
        full.upload(sources)?;
        let (even, odd) = (norms(&space, &full.even)?, norms(&space, &full.odd)?);
        let scales =
            Scales::of(&even.iter().zip(&odd).map(|(e, o)| e.hypot(*o)).collect::<Vec<_>>(), domain.global().volume());
        scales.apply(&space, &mut full)?;
        let mut norms = [scales.norms(&even), scales.norms(&odd)];
        for parity in 0..2 {
            // Parts of a source that are negligible are set to zero, and so is their norm.
            let negligible = |j: usize| norms[parity][j] <= NEGLIGIBLE * norms[1 - parity][j];
            let counts: Vec<bool> = (0..nrhs).map(|j| !negligible(j)).collect();
            let mask = |counts: &bool| if *counts { Complex64::ONE } else { Complex64::ZERO };
            if counts.contains(&false) {
                let mask: Vec<_> = counts.iter().map(mask).collect();
                let (part, other) = match parity {
                    0 => (&mut full.even, &full.odd),
                    _ => (&mut full.odd, &full.even),
                };
                space.axpby(&vec![Complex64::ZERO; nrhs], other, &mask, part)?;
            }
            norms[parity].iter_mut().zip(counts).filter(|(_, counts)| !counts).for_each(|(norm, _)| *norm = 0.0);
        }
        let [even, odd] = norms;
        let outcome = |shift: &f64| ShiftOutcome {
            shift: *shift,
            iterations: 0,
            refinement_iterations: 0,
            reliable_updates: 0,
            true_residual: Vec::new(),
            escalations: Vec::new(),
            failure: None,
            gave_up: None,
        };
        Ok(Shifts {
            configuration,
            operator,
            request,
            opens_links,
            space,
            sources: full,
            scales,
            norms: even.into_iter().zip(odd).map(|(even, odd)| [even, odd]).collect(),
            x: shifts
                .iter()
                .map(|_| FullField::zero(domain, FieldShape::colours(Precision::Double, nrhs)))
                .collect::<Result<_>>()?,
            outcomes: shifts.iter().map(outcome).collect(),
            failures: vec![Vec::new(); shifts.len()],
            first_precision: None,
            first_seconds: 0.0,
            seconds: 0.0,
            flops: 0.0,
        })
    }
    fn operators(&self, parity: usize, shift: f64) -> Result<SystemFormats<'c, 'g>> {
        SystemFormats::shifted(self.configuration, self.operator, (parity, shift), self.space.nrhs())
    }
    /// Solves the systems on one parity. Returns whether the observer stopped the solve.
    fn solve(
        &mut self,
        parity: usize,
        strategy: ShiftStrategy,
        observer: &mut dyn Observer,
    ) -> std::result::Result<bool, SolveError<DeviceError>> {
        let mut seen = CountingObserver { observer, before: 0, last: 0, stopped: false };
        if strategy == ShiftStrategy::MultiShift {
            self.together(parity, &mut seen)?;
        }
        for i in 0..self.outcomes.len() {
            if seen.stopped {
                break;
            }
            seen.before = seen.last;
            self.refine(parity, i, &mut seen)?;
        }
        Ok(seen.stopped)
    }
    /// Solves all systems by multi-shift CG, in single precision unless the request requires double.
    fn together(
        &mut self,
        parity: usize,
        observer: &mut CountingObserver<'_>,
    ) -> std::result::Result<(), SolveError<DeviceError>> {
        let precision = self.request.first_precision();
        let tol = if precision == Precision::Double { self.request.tol } else { self.request.tol.max(FIRST_TOLERANCE) };
        let shifts: Vec<f64> = self.outcomes.iter().map(|outcome| outcome.shift).collect();
        let square = self.operator.params.mass.powi(2);
        // Multi-shift CG does not correct the rounding of links, so it does not use 16-bit links.
        let operator = self.operators(parity, 0.0)?.any(precision, self.request.reconstruction.half(false))?;
        let space = FieldSpace::new(self.space.domain(), FieldShape::colours(precision, self.space.nrhs()));
        let mut b = space.allocate()?;
        space.convert_from(self.sources.parity(parity), &mut b)?;
        let mut x = shifts.iter().map(|_| space.allocate()).collect::<Result<Vec<DeviceField>>>()?;
        let mut workspace = MultiShiftWorkspace::new(&space, shifts.len())?;
        let solver = SolverParams {
            tol,
            max_iterations: self.request.iteration_limit(shifts.iter().map(|shift| square + shift).reduce(f64::min)),
            stagnation_window: Some(self.request.stagnation_window),
            ..Default::default()
        };
        let params = MultiShiftParams { check: false, together: self.request.shifts_together, ..solver.into() };
        self.space.domain().backend().synchronize().map_err(DeviceError::from)?;
        let start = Instant::now();
        match multishift_cg(&space, &*operator, &shifts, &b, &mut x, &params, &mut workspace, observer) {
            Ok(info) => {
                for (outcome, shift) in self.outcomes.iter_mut().zip(&info.shifts) {
                    outcome.iterations += shift.iterations.iter().copied().max().unwrap_or(0);
                }
                self.flops += info.whole.flops;
            }
            // The next solver begins with the result of multi-shift CG, and reports the failure if this result is of no use.
            Err(error) => match error.info() {
                Some(info) => {
                    self.outcomes.iter_mut().for_each(|outcome| outcome.iterations += info.iterations);
                    self.flops += info.flops;
                }
                None => return Err(error),
            },
        }
        for (full, x) in self.x.iter_mut().zip(&x) {
            self.space.convert_from(x, full.parity_mut(parity))?;
        }
        self.space.domain().backend().synchronize().map_err(DeviceError::from)?;
        let seconds = start.elapsed().as_secs_f64();
        self.first_precision = Some(precision);
        self.first_seconds += seconds;
        self.seconds += seconds;
        Ok(())
    }
    /// Refines the solution of shift number `i` by mixed-precision CG or block CG.
    fn refine(
        &mut self,
        parity: usize,
        i: usize,
        observer: &mut CountingObserver<'_>,
    ) -> std::result::Result<(), SolveError<DeviceError>> {
        let operators = self.operators(parity, self.outcomes[i].shift)?;
        let mut problem = ShiftedParity {
            space: &self.space,
            operator: operators.exact(),
            rhs: self.sources.parity(parity),
            norms: self.norms.iter().map(|norms| norms[parity]).collect(),
            x: self.x[i].parity_mut(parity),
        };
        problem.forget_what_is_no_number()?;
        let mut request = self.request.clone();
        if self.opens_links {
            request.reconstruction = request.links_from(self.operator.params.mass.powi(2) + self.outcomes[i].shift);
        }
        let EscalatedSolve { info, escalations, failure, seconds, .. } =
            solve_escalating(&operators, &mut problem, request.tol, &request, observer)?;
        let outcome = &mut self.outcomes[i];
        outcome.refinement_iterations += info.iterations;
        outcome.reliable_updates += info.reliable_updates;
        outcome.escalations.extend(escalations);
        self.failures[i].extend(failure);
        self.seconds += seconds;
        self.flops += info.flops;
        Ok(())
    }
    /// Computes ‖b − (M†M + σ_i) x_i‖ / ‖b‖ on all sites, with an unfused hopping term and linear algebra.
    fn normal_residuals(&mut self, i: usize) -> Result<Vec<f64>> {
        let exact = self.operators(0, 0.0)?.exact();
        let (mut image, mut normal) = (self.zero()?, self.zero()?);
        for parity in 0..2 {
            exact.apply_parity(parity, false, &self.x[i], image.parity_mut(parity))?;
        }
        let n = self.space.nrhs();
        let (shift, one) = (vec![Complex64::new(self.outcomes[i].shift, 0.0); n], vec![Complex64::ONE; n]);
        for parity in 0..2 {
            exact.apply_parity(parity, true, &image, normal.parity_mut(parity))?;
            self.space.axpby(&shift, self.x[i].parity(parity), &one, normal.parity_mut(parity))?;
        }
        self.relative_to_sources(&mut normal)
    }
    /// Computes x_i ← M† x_i for a mass.
    fn apply_dagger(&mut self, i: usize, mass: f64) -> Result {
        let mut image = self.zero()?;
        let exact = self.with_mass(mass)?;
        for parity in 0..2 {
            exact.apply_parity(parity, true, &self.x[i], image.parity_mut(parity))?;
        }
        self.x[i] = image;
        Ok(())
    }
    /// Computes ‖η − M ψ_i‖ / ‖η‖ for a mass.
    fn residuals(&mut self, i: usize, mass: f64) -> Result<Vec<f64>> {
        let mut image = self.zero()?;
        let exact = self.with_mass(mass)?;
        for parity in 0..2 {
            exact.apply_parity(parity, false, &self.x[i], image.parity_mut(parity))?;
        }
        self.relative_to_sources(&mut image)
    }
    fn with_mass(&self, mass: f64) -> Result<Rc<dyn EvenOdd>> {
        let params = StaggeredParams { mass, ..self.operator.params };
        let operator = StaggeredOperator { params, ..self.operator };
        Ok(SystemFormats::shifted(self.configuration, operator, (0, 0.0), self.space.nrhs())?.exact())
    }
    fn zero(&self) -> Result<FullField> {
        FullField::zero(self.space.domain(), FieldShape::colours(Precision::Double, self.space.nrhs()))
    }
    /// Computes ‖b_j − y_j‖ / ‖b_j‖, or ‖y_j‖ for b_j = 0. `y` is overwritten.
    fn relative_to_sources(&self, y: &mut FullField) -> Result<Vec<f64>> {
        let n = self.space.nrhs();
        let (mut squares, mut parts) = (vec![0.0; n], vec![0.0; n]);
        for parity in 0..2 {
            self.space.sub_norm2(self.sources.parity(parity), y.parity_mut(parity), &mut parts)?;
            squares.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part);
        }
        let relative = |(square, [even, odd]): (f64, &[f64; 2])| {
            let norm = even.hypot(*odd);
            if norm > 0.0 { square.sqrt() / norm } else { square.sqrt() }
        };
        Ok(squares.into_iter().zip(&self.norms).map(relative).collect())
    }
}

/// System (M†M + σ) x = b on the sites of one parity.
struct ShiftedParity<'a> {
    space: &'a FieldSpace,
    operator: Rc<dyn EvenOdd>,
    rhs: &'a DeviceField,
    norms: Vec<f64>,
    x: &'a mut DeviceField,
}

impl ShiftedParity<'_> {
    /// Sets the guess to zero if it is not a number.
    fn forget_what_is_no_number(&mut self) -> Result {
        if norms(self.space, self.x)?.iter().all(|norm| norm.is_finite()) { Ok(()) } else { self.space.zero(self.x) }
    }
}

impl ParitySystem for ShiftedParity<'_> {
    fn space(&self) -> &FieldSpace {
        self.space
    }
    fn rhs(&self) -> &DeviceField {
        self.rhs
    }
    fn solution(&mut self) -> &mut DeviceField {
        self.x
    }
    /// Returns the residuals on this parity; residuals on all sites are checked at the end.
    fn residuals(&mut self) -> Result<Vec<f64>> {
        let (mut image, mut squares) = (self.space.allocate()?, vec![0.0; self.space.nrhs()]);
        self.operator.apply(self.x, &mut image)?;
        self.space.sub_norm2(self.rhs, &mut image, &mut squares)?;
        let relative = |(square, norm): (f64, &f64)| if *norm > 0.0 { square.sqrt() / norm } else { square.sqrt() };
        Ok(squares.into_iter().zip(&self.norms).map(relative).collect())
    }
}

/// Observer that counts iterations over several solvers, and records whether the observer of the user stopped them.
struct CountingObserver<'a> {
    observer: &'a mut dyn Observer,
    before: usize,
    last: usize,
    stopped: bool,
}
impl Observer for CountingObserver<'_> {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self.last = self.before + event.iteration;
        let answer = self.observer.iteration(&Iteration { iteration: self.last, ..*event });
        self.stopped |= answer.is_break();
        answer
    }
}
