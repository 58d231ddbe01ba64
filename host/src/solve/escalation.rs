//! Precision escalation: a system is solved in a pair of formats and, if that fails, in the next better pair, or by another method.
use super::choice::{Advice, Adviser, Fallback, MethodChange};
use super::formats::{Formats, MultigridState};
use super::memory::VECTORS;
use super::methods::{Limits, Method, OperatorPair, PrecisionLevel, PreparedMethod};
use super::report::{Escalation, EscalationError, MultigridReport};
use super::request::{Correction, Request, is_gpu};
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceField, FieldShape, FieldSpace};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{Info, Iteration, Observer, Patience, RhsFailure, SolveError, Step, System, Unsolved, VectorSpace};
use std::iter::successors;
use std::ops::ControlFlow;
use std::time::Instant;

type Escalated<T = ()> = std::result::Result<T, EscalationError>;

/// System on the sites of one parity, with its solution, in double precision.
pub(super) trait ParitySystem {
    /// Returns the space of right-hand side and solution.
    fn space(&self) -> &FieldSpace;
    /// Returns the right-hand side.
    fn rhs(&self) -> &DeviceField;
    /// Returns the solution so far.
    fn solution(&mut self) -> &mut DeviceField;
    /// Returns the true residuals that decide whether the solution is good enough, relative to the sources.
    fn residuals(&mut self) -> Result<Vec<f64>>;
}

/// Outcome of an escalating solve.
pub(super) struct EscalatedSolve {
    /// Report of the solvers.
    pub info: Info,
    /// Formats of fields and links at the end of the solve.
    pub level: PrecisionLevel,
    /// Precision escalations of the solve.
    pub escalations: Vec<Escalation>,
    /// Method with which the solve ended.
    pub method: &'static Method,
    /// Changes of the method during the solve.
    pub method_changes: Vec<MethodChange>,
    /// Methods that were used, in the order of their first use.
    pub tried: Vec<&'static Method>,
    /// True residuals at the end of the solve, relative to the sources.
    pub true_residual: Vec<f64>,
    /// Reason why the solve ended without a solution, if it did.
    pub failure: Option<Unsolved>,
    /// Report of multigrid, if multigrid was the method.
    pub multigrid: Option<MultigridReport>,
    /// Duration of the iteration, in seconds.
    pub seconds: f64,
}

/// Solves a problem from the present solution, in the formats of the request and then in better ones. `tol` is the residual of the system,
/// relative to its right-hand side, at which the residual of [`ParitySystem::residuals`] should be that of the request.
pub(super) fn solve_escalating(
    formats: &dyn Formats,
    problem: &mut dyn ParitySystem,
    tol: f64,
    request: &Request,
    observer: &mut dyn Observer,
) -> Escalated<EscalatedSolve> {
    let mut solve = EscalatingSolve::choose(formats, problem, tol, request)?;
    let mut system = match solve.prepare(observer) {
        Err(SolveError::Cancelled { .. }) => return solve.cancelled_in_setup(),
        made => made?,
    };
    solve.begin()?;
    match solve.try_first(&mut system, observer) {
        Err(SolveError::Cancelled { .. }) => return solve.cancelled_in_setup(),
        changed => {
            if let Some(changed) = changed? {
                system = changed;
            }
        }
    }
    let failure = loop {
        let failure = solve.iterate(&mut system, observer)?;
        if let Some(change) = solve.another_method(failure.as_ref())? {
            if solve.is_solved() {
                break None;
            }
            match solve.change_method(change, observer) {
                Err(SolveError::Cancelled { .. }) => break Some(solve.cancelled()),
                made => system = made?,
            }
            continue;
        }
        match solve.judge(failure) {
            Verdict::Done(failure) => break failure,
            Verdict::Escalate(reason, level) => system = solve.escalate(reason, level, observer)?,
            Verdict::AimAgain => solve.tol *= 0.5 * solve.request.tol / solve.worst(),
        }
    };
    Ok(solve.finish(&system, failure))
}

/// Outcome of a run of a method.
enum Verdict {
    /// The solve ends; it has no solution if there is a failure.
    Done(Option<Unsolved>),
    /// The solve continues in these formats, for this reason.
    Escalate(Unsolved, PrecisionLevel),
    /// The true residual misses the target slightly, so another run with a lower target continues from the present solution.
    AimAgain,
}

/// A solve in progress.
struct EscalatingSolve<'a> {
    formats: &'a dyn Formats,
    problem: &'a mut dyn ParitySystem,
    tol: f64,
    /// The request; its method is the one that is running.
    request: Request,
    /// Maximum number of iterations of all runs.
    limit: usize,
    /// Whether the method was chosen automatically, not requested.
    automatic: bool,
    /// Formats of the request.
    asked: PrecisionLevel,
    level: PrecisionLevel,
    /// Whether the last run had a limit on iterations without progress.
    was_patient: bool,
    adviser: Option<Adviser>,
    fallback: Fallback,
    method_changes: Vec<MethodChange>,
    tried: Vec<&'static Method>,
    escalations: Vec<Escalation>,
    /// Combined report of all runs.
    total: Option<Info>,
    true_residual: Vec<f64>,
    watch: StopWatch,
}

impl<'a> EscalatingSolve<'a> {
    /// *Collective.* Chooses the method to begin with, and its formats.
    fn choose(
        formats: &'a dyn Formats,
        problem: &'a mut dyn ParitySystem,
        tol: f64,
        request: &Request,
    ) -> Escalated<Self> {
        let mut request = request.clone();
        let limit = request.iteration_limit(formats.exact().positive());
        request.max_iterations = Some(limit);
        let choose = request.method.choose;
        if let Some(choose) = choose {
            request.method = choose(formats, &request)?;
        }
        let Request { outer, precision, reconstruction, .. } = request;
        let (asked, automatic) = (PrecisionLevel { outer, precision, reconstruction }, choose.is_some());
        let level = (request.method.first_level)(asked, automatic);
        let fallback = Fallback::new(&request, automatic);
        let adviser = adviser(formats, &request, automatic, tol, problem.space().nrhs())?;
        Ok(EscalatingSolve {
            formats,
            problem,
            tol,
            request,
            limit,
            automatic,
            asked,
            level,
            was_patient: false,
            adviser,
            fallback,
            method_changes: Vec::new(),
            tried: Vec::new(),
            escalations: Vec::new(),
            total: None,
            true_residual: Vec::new(),
            watch: StopWatch::start(),
        })
    }
    /// Prepares the current method in the current formats. If the setup fails for numerical reasons, the method's successor replaces it.
    fn prepare(&mut self, observer: &mut dyn Observer) -> Escalated<MixedSystem> {
        match MixedSystem::new(self.formats, self.level, self.problem, &self.request, observer) {
            Err(error) if self.request.escalate && is_numerical(&error) => match self.request.method.successor {
                Some(successor) => {
                    let reason = format!("{} cannot be set up: {error}", self.request.method.name);
                    (self.request.method, self.level) = (successor, self.asked);
                    let iterations = self.iterations();
                    self.method_changes.push(MethodChange { iterations, method: successor, reason });
                    MixedSystem::new(self.formats, self.level, self.problem, &self.request, observer)
                }
                None => Err(error),
            },
            made => made,
        }
    }
    /// Starts the measurement of time after the system is set up.
    fn begin(&mut self) -> Escalated {
        self.adviser = self.adviser.take().filter(|adviser| adviser.is_for(self.request.method));
        self.formats.domain().backend().synchronize().map_err(DeviceError::from)?;
        self.watch = StopWatch::start();
        Ok(())
    }
    /// Returns the number of iterations of all runs.
    fn iterations(&self) -> usize {
        self.total.as_ref().map_or(0, |info| info.iterations)
    }
    /// Returns the number of iterations that remain.
    fn rest(&self) -> usize {
        self.limit.saturating_sub(self.iterations())
    }
    /// Returns the largest true residual.
    fn worst(&self) -> f64 {
        solvers::worst_residual(&self.true_residual)
    }
    fn is_solved(&self) -> bool {
        self.worst() <= self.request.tol
    }
    /// Returns those levels, from `first` upwards, whose formats exist in this build.
    fn levels(&self, first: PrecisionLevel) -> impl Iterator<Item = PrecisionLevel> + use<'a> {
        let (staggered, formats) = (self.problem.space().shape().is_colours(), self.formats);
        successors(Some(first), move |level| level.next(staggered))
            .filter(move |level| formats.has(level.precision, level.reconstruction))
    }
    /// Returns the next level, if the request allows escalation and there is one.
    fn next_level(&self) -> Option<PrecisionLevel> {
        let next = self.level.next(self.problem.space().shape().is_colours()).filter(|_| self.request.escalate);
        next.and_then(|next| self.levels(next).next())
    }
    /// Returns the patience of the method, if there is a higher precision. Above double precision only the links change.
    fn patience(&self) -> Option<Patience> {
        let may_end = self.level.precision != Precision::Double && self.request.stagnation_window > 0;
        let patience = self.request.method.patience.filter(|_| may_end && self.next_level().is_some());
        patience.map(|of| of(self.formats.domain().global().volume()))
    }
    /// *Collective.* Solves for the first right-hand side of a large batch alone until the adviser has decided. If it advises another method,
    /// returns the system of that method. The trial takes much less time than as many iterations for all right-hand sides, which would be in
    /// vain if multigrid took over. Its solution is discarded, because a batch advances fastest if all right-hand sides begin together.
    fn try_first(&mut self, system: &mut MixedSystem, observer: &mut dyn Observer) -> Escalated<Option<MixedSystem>> {
        let nrhs = self.problem.space().nrhs();
        let Some(adviser) = self.adviser.clone().filter(|adviser| nrhs >= TRIED_BATCH && adviser.may_try()) else {
            return Ok(None);
        };
        // With initial guesses, the first iterations show less.
        let space = FieldSpace::new(self.formats.domain(), self.problem.space().shape());
        let mut norms = vec![0.0; nrhs];
        space.norm2(self.problem.solution(), &mut norms)?;
        if norms.iter().any(|norm| *norm > 0.0) || !system.narrow(1) {
            return Ok(None);
        }
        let mut adviser = adviser.for_trial();
        self.run_trial(system, &mut adviser, observer)?;
        let Some(advice) = adviser.advice().cloned() else {
            // A trial of CG with all right-hand sides would cost too much.
            self.adviser = self.adviser.take().map(|adviser| adviser.with_cg(false));
            return Ok(None);
        };
        self.tried.push(self.request.method);
        let mut system = self.change_method(advice, observer)?;
        if let Some(mut adviser) = self.adviser.take_if(|adviser| adviser.is_for(Method::CG)) {
            system.narrow(1);
            self.run_trial(&mut system, &mut adviser, observer)?;
            if let Some(advice) = adviser.advice().cloned() {
                self.tried.push(self.request.method);
                self.adviser = Some(adviser);
                system = self.change_method(advice, observer)?;
            }
        }
        Ok(Some(system))
    }
    /// *Collective.* Solves for the first right-hand side until the adviser has decided, and discards the solution.
    fn run_trial(&self, system: &mut MixedSystem, adviser: &mut Adviser, observer: &mut dyn Observer) -> Escalated {
        let max_iterations = adviser.trial_iterations().min(self.limit);
        let limits = Limits { tol: self.tol, max_iterations, patience: self.patience(), request: &self.request };
        let mut trial = OfTrial { observer, adviser, is_cancelled: false };
        let ended = system.iterate(&limits, &mut trial);
        let is_cancelled = trial.is_cancelled;
        system.narrow(self.problem.space().nrhs());
        // Numerical failures are left to the solve for all right-hand sides.
        if let Err(error) = ended
            && (is_cancelled || error.info().is_none())
        {
            return Err(error);
        }
        Ok(system.pair.outer_space.zero(&mut system.x)?)
    }
    /// Runs the method, stores the solution, and computes its true residual in double precision. Returns the reason if the method gave up.
    fn iterate(&mut self, system: &mut MixedSystem, observer: &mut dyn Observer) -> Escalated<Option<Unsolved>> {
        let method = self.request.method;
        if !self.tried.contains(&method) {
            self.tried.push(method);
        }
        let patience = self.patience();
        self.was_patient = patience.is_some();
        let (spent, max_iterations) = (self.iterations(), self.fallback.most(method, self.rest()));
        let limits = Limits { tol: self.tol, max_iterations, patience, request: &self.request };
        let mut seen = After { observer, iterations: spent, adviser: self.adviser.as_mut() };
        let (info, failure) = match system.iterate(&limits, &mut seen) {
            Ok(info) => (info, None),
            Err(error) => match error.info().cloned() {
                Some(info) => (info, Some(error.unsolved()?)),
                None => return Err(error),
            },
        };
        self.total = Some(match self.total.take() {
            Some(before) => before.followed_by(info),
            None => info,
        });
        system.hand_back(self.problem)?;
        self.true_residual = self.problem.residuals()?;
        Ok(failure)
    }
    /// *Collective.* Returns the method that continues after a run, if another method should.
    fn another_method(&mut self, failure: Option<&Unsolved>) -> Escalated<Option<Advice>> {
        let advice = self.adviser.as_ref().and_then(Adviser::advice).cloned();
        let goes_to_multigrid = advice.as_ref().is_some_and(|advice| advice.method == Method::MULTIGRID);
        let may_need_cg = self.fallback.is_there() && failure.is_some() && !goes_to_multigrid;
        if may_need_cg && !has_room_for_cg(self.formats, &self.request, self.problem.space().nrhs())? {
            self.fallback.forgo();
        }
        let Some(error) = failure.filter(|_| advice.is_none()) else { return Ok(advice) };
        let (method, rest) = (self.request.method, self.rest());
        let may_help = may_escalate(error, &self.true_residual);
        Ok(if let Some(successor) = method.successor.filter(|_| self.request.escalate) {
            may_help.then(|| Advice::new(successor, format!("{}: {error}", method.name)))
        } else if method == Method::BICGSTAB && self.fallback.is_there() && rest > 0 {
            // More reals for each link hardly help if double precision does not help.
            let is_double = self.level.precision == Precision::Double;
            (is_double && may_help).then(|| Advice::new(self.fallback.take(rest, true), format!("BiCGstab: {error}")))
        } else if !matches!(error, SolveError::Cancelled { .. }) && self.worst() > self.request.tol && rest > 0 {
            let ended = self.next_level().is_none() || !may_help;
            (ended && self.fallback.comes_back(method)).then(|| Advice::new(Method::BICGSTAB, format!("CG: {error}")))
        } else {
            None
        })
    }
    /// Continues with another method, in the formats of the request.
    fn change_method(&mut self, change: Advice, observer: &mut dyn Observer) -> Escalated<MixedSystem> {
        self.watch.pause();
        let (iterations, rest) = (self.iterations(), self.rest());
        let is_multigrid = change.method == Method::MULTIGRID;
        let ends_trial = self.adviser.as_ref().is_some_and(|of| of.is_for(Method::CG) && of.advice().is_some());
        self.request.method = if ends_trial {
            self.fallback.restore();
            change.method
        } else if !is_multigrid && self.fallback.is_there() && rest > 0 {
            // CG takes over instead of BiCGstab, which is too slow now or was too slow before multigrid began.
            self.fallback.take(rest, false)
        } else if change.method == Method::CG && !self.fallback.is_taken() {
            Method::BICGSTAB
        } else {
            change.method
        };
        self.level = (self.request.method.first_level)(self.asked, self.automatic);
        self.method_changes.push(MethodChange { iterations, method: self.request.method, reason: change.reason });
        let made = self.prepare(observer);
        if made.is_ok() {
            let (method, nrhs) = (self.request.method, self.problem.space().nrhs());
            self.adviser = match change.cg_trial {
                Some(trial) if method == Method::CG => Some(Adviser::of_cg(self.tol, trial)),
                trial if ends_trial || trial.is_some() => {
                    let adviser = adviser(self.formats, &self.request, self.automatic, self.tol, nrhs)?;
                    adviser.map(|adviser| adviser.with_cg(false).eager(self.fallback.is_there()))
                }
                _ => {
                    let eager = self.fallback.is_there();
                    (method == Method::MULTIGRID).then(|| Adviser::of_multigrid(self.tol).eager(eager))
                }
            };
            self.formats.domain().backend().synchronize().map_err(DeviceError::from)?;
        }
        self.watch.go_on();
        made
    }
    /// Decides how the solve continues with the same method. The true residual decides, whether or not the solver failed.
    fn judge(&self, failure: Option<Unsolved>) -> Verdict {
        let worst = self.worst();
        if worst <= self.request.tol {
            return Verdict::Done(failure);
        }
        let (failure, has_failed) =
            match failure.map(|error| error.without_converged(|rhs| self.true_residual[rhs] <= self.request.tol)) {
                Some(Ok(error)) => (Some(error), true),
                Some(Err(error)) => (Some(error), false),
                None => (None, false),
            };
        match (failure, self.next_level()) {
            (Some(error), Some(next)) if may_escalate(&error, &self.true_residual) => {
                let level = match self.was_patient && is_plateau(&error) {
                    true => self.levels(next).find(|level| level.precision == Precision::Double).unwrap_or(next),
                    false => next,
                };
                Verdict::Escalate(error, level)
            }
            (Some(error), _) if has_failed => Verdict::Done(Some(error)),
            _ if !worst.is_finite() || self.tol < 1e-16 => Verdict::Done(None),
            _ => Verdict::AimAgain,
        }
    }
    /// Continues in the better formats of `level`.
    fn escalate(
        &mut self,
        reason: Unsolved,
        level: PrecisionLevel,
        observer: &mut dyn Observer,
    ) -> Escalated<MixedSystem> {
        let (iterations, PrecisionLevel { outer, precision, reconstruction }) = (self.iterations(), level);
        self.level = level;
        self.escalations.push(Escalation { iterations, reason, precision, outer, reconstruction });
        MixedSystem::new(self.formats, level, self.problem, &self.request, observer)
    }
    /// Returns the error of a solve that was stopped during the setup of a method.
    fn cancelled(&self) -> Unsolved {
        let info = self.total.clone().expect("a method ran before");
        Unsolved::Cancelled { iteration: info.iterations, info: Box::new(info) }
    }
    /// Returns the outcome of a solve that was stopped during the setup of its first method.
    fn cancelled_in_setup(mut self) -> Escalated<EscalatedSolve> {
        self.true_residual = self.problem.residuals()?;
        let nrhs = self.problem.space().nrhs();
        let info = Info {
            iterations_per_rhs: vec![0; nrhs],
            failed: (0..nrhs).collect(),
            true_residual: self.true_residual.clone(),
            history: self.true_residual.iter().map(|residual| vec![*residual]).collect(),
            ..Info::default()
        };
        let failure = Unsolved::Cancelled { iteration: 0, info: Box::new(info.clone()) };
        Ok(self.outcome(info, Some(failure), None, 0.0))
    }
    /// Returns the outcome of a solve that has ended.
    fn finish(mut self, system: &MixedSystem, failure: Option<Unsolved>) -> EscalatedSolve {
        let (seconds, info) = (self.watch.seconds(), self.total.take().expect("a method ran"));
        let multigrid = system.method.multigrid_report(info.iterations, seconds);
        let failure = failure.map(|error| of_the_whole(error, info.iterations));
        self.outcome(info, failure, multigrid, seconds)
    }
    fn outcome(
        self,
        info: Info,
        failure: Option<Unsolved>,
        multigrid: Option<MultigridReport>,
        seconds: f64,
    ) -> EscalatedSolve {
        let EscalatingSolve { level, request, escalations, method_changes, tried, true_residual, .. } = self;
        EscalatedSolve {
            info,
            level,
            escalations,
            method: request.method,
            method_changes,
            tried,
            true_residual,
            failure,
            multigrid,
            seconds,
        }
    }
}

/// Returns the error of the last run, with the number of iterations of all runs.
fn of_the_whole(mut error: Unsolved, all: usize) -> Unsolved {
    match &mut error {
        SolveError::NoConvergence { iterations, .. } => *iterations = all,
        SolveError::Cancelled { iteration, .. } => *iteration = all,
        _ => {}
    }
    error
}

/// Measures the seconds of iterations, without the setup of a method that takes over from another.
struct StopWatch {
    before: f64,
    since: Instant,
}
impl StopWatch {
    fn start() -> Self {
        StopWatch { before: 0.0, since: Instant::now() }
    }
    fn seconds(&self) -> f64 {
        self.before + self.since.elapsed().as_secs_f64()
    }
    fn pause(&mut self) {
        self.before = self.seconds();
    }
    fn go_on(&mut self) {
        self.since = Instant::now();
    }
}

/// Makes the adviser of a solve that may continue with another method.
fn adviser(
    formats: &dyn Formats,
    request: &Request,
    automatic: bool,
    tol: f64,
    nrhs: usize,
) -> Escalated<Option<Adviser>> {
    let is_reliable = matches!(request.correction, Correction::Reliable { .. });
    Ok(if request.method == Method::MULTIGRID && request.escalate {
        Some(Adviser::of_multigrid(tol).eager(automatic))
    } else if request.method == Method::BICGSTAB && automatic && is_reliable {
        let adviser = match formats.multigrid_state(&request.multigrid)? {
            MultigridState::Impossible => Adviser::without_multigrid(tol),
            state => {
                let is_gpu = is_gpu(Some(formats.domain().backend()));
                Adviser::of_bicgstab(request, tol, nrhs, state != MultigridState::Possible, is_gpu)
            }
        };
        Some(match request.escalate {
            true => adviser.within(request.iteration_limit(None)).with_cg(has_room_for_cg(formats, request, nrhs)?),
            false => adviser,
        })
    } else {
        None
    })
}

/// *Collective.* Whether the device has memory for CG on the normal equations, which has more vectors than BiCGstab.
fn has_room_for_cg(formats: &dyn Formats, request: &Request, nrhs: usize) -> Result<bool> {
    let domain = formats.domain();
    let needs = Request { method: Method::CG, ..request.clone() }.memory(domain.local(), domain.grid(), nrhs, None);
    let needs: usize = needs.iter().filter(|(name, _)| VECTORS.contains(name)).map(|(_, bytes)| bytes).sum();
    let mut without = [f64::from(u8::from(needs > domain.backend().memory()?.free))];
    domain.sum(&mut without)?;
    Ok(without == [0.0])
}

/// Whether the setup of a method failed for numerical reasons.
fn is_numerical(error: &EscalationError) -> bool {
    !matches!(error, SolveError::Backend(_) | SolveError::Invalid(_) | SolveError::Cancelled { .. })
}

/// Whether a right-hand side was given up because its patience ran out. BiCGstab has then lost its short recurrences to rounding. It would
/// lose them again in slightly better formats, so it continues in double precision.
fn is_plateau(error: &Unsolved) -> bool {
    error.info().is_some_and(|info| info.given_up.iter().any(|given_up| given_up.why == RhsFailure::Plateau))
}

/// Whether a higher precision can help, given the true residuals in double precision.
fn may_escalate(error: &Unsolved, true_residual: &[f64]) -> bool {
    match error {
        SolveError::Stagnation { .. } | SolveError::Breakdown { .. } | SolveError::NotPositiveDefinite { .. } => true,
        // A higher precision does not help if the source itself is not a number; its residual is not a number either.
        SolveError::NotANumber { iteration, .. } => *iteration > 0 || true_residual.iter().all(|r| r.is_finite()),
        _ => false,
    }
}

/// Smallest batch whose first right-hand side is tried alone.
const TRIED_BATCH: usize = 4;

/// Observer of a trial, which stops when the adviser has decided. The user's observer receives a step of work for each iteration, and can
/// stop the whole solve.
struct OfTrial<'a> {
    observer: &'a mut dyn Observer,
    adviser: &'a mut Adviser,
    /// Whether the user's observer has stopped the solve.
    is_cancelled: bool,
}
impl Observer for OfTrial<'_> {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self.is_cancelled = self.observer.step(&Step { work: "trial of the first source", done: None }).is_break();
        if self.is_cancelled {
            return ControlFlow::Break(());
        }
        match self.adviser.stops(event, 0) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Observer that adds the iterations of earlier runs, and stops when an adviser recommends it.
struct After<'a> {
    observer: &'a mut dyn Observer,
    iterations: usize,
    /// Adviser, which may also stop the solve.
    adviser: Option<&'a mut Adviser>,
}
impl Observer for After<'_> {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self.observer.iteration(&Iteration { iteration: self.iterations + event.iteration, ..*event })?;
        let before = self.iterations;
        match self.adviser.as_mut().is_some_and(|adviser| adviser.stops(event, before)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
    fn step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.observer.step(step)
    }
}

/// A system in the two precisions of a solver, with the method that solves it.
struct MixedSystem {
    pair: OperatorPair<'static>,
    method: Box<dyn PreparedMethod>,
    /// Right-hand side and solution in the outer precision.
    rhs: DeviceField,
    x: DeviceField,
}

impl MixedSystem {
    fn new(
        formats: &dyn Formats,
        level: PrecisionLevel,
        problem: &mut dyn ParitySystem,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> Escalated<Self> {
        let (domain, nrhs) = (formats.domain(), problem.space().nrhs());
        let exact = formats.exact();
        let positive = exact.positive();
        let outer = match level.outer {
            Precision::Double => exact,
            other => formats.any(other, LinkStorage::FULL)?,
        };
        let sloppy = formats.any(level.precision, level.reconstruction)?;
        let method = (request.method.prepare)(formats, request, level.reconstruction, observer)?;
        formats.release_device_links();
        let space = |precision| FieldSpace::new(domain, formats.shape(precision, nrhs));
        let (outer_space, sloppy_space) = (space(level.outer), space(level.precision));
        let (mut x, mut rhs) = (outer_space.allocate()?, outer_space.allocate()?);
        outer_space.convert_from(problem.rhs(), &mut rhs)?;
        outer_space.convert_from(problem.solution(), &mut x)?;
        let pair = OperatorPair { level, outer_space, outer, sloppy_space, sloppy, positive, adjoint: false };
        Ok(MixedSystem { pair, method, rhs, x })
    }
    /// Restricts the system to its first right-hand sides; returns whether that is possible.
    fn narrow(&self, nrhs: usize) -> bool {
        self.pair.mixed().narrow(nrhs)
    }
    fn hand_back(&self, problem: &mut dyn ParitySystem) -> Result {
        let (kind, nrhs) = (problem.space().kind(), problem.space().nrhs());
        let space = FieldSpace::new(problem.space().domain(), FieldShape::new(kind, Precision::Double, nrhs));
        space.convert_from(&self.x, problem.solution())
    }
    fn iterate(&mut self, limits: &Limits<'_>, observer: &mut dyn Observer) -> Escalated<Info> {
        self.method.iterate(&self.pair, &self.rhs, &mut self.x, limits, observer)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Configuration;
    use super::*;
    use crate::backend::Cpu;
    use crate::domain::Domain;
    use crate::field::FullField;
    use crate::field::host::HostSpinor;
    use crate::gauge::generate;
    use crate::lattice::Lattice;
    use crate::operators::{TimeBoundary, WilsonParams};

    /// Two systems whose check finds the residuals of a test.
    struct Judged {
        space: FieldSpace,
        rhs: DeviceField,
        x: DeviceField,
        residuals: [f64; 2],
    }
    impl ParitySystem for Judged {
        fn space(&self) -> &FieldSpace {
            &self.space
        }
        fn rhs(&self) -> &DeviceField {
            &self.rhs
        }
        fn solution(&mut self) -> &mut DeviceField {
            &mut self.x
        }
        fn residuals(&mut self) -> Result<Vec<f64>> {
            Ok(self.residuals.to_vec())
        }
    }

    /// A solver's failure for a right-hand side is ignored if the check finds it solved.
    #[test]
    fn a_failure_is_that_of_a_right_hand_side_that_failed() {
        let lattice = Lattice::new([2, 2, 2, 4]).unwrap();
        let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
        let gauge = generate::weak_field(lattice, 3, 0.2);
        let configuration = Configuration::new(&domain, &gauge);
        let operator = WilsonParams::from_mass(0.2, TimeBoundary::Antiperiodic);
        // Nobody reaches this.
        let mut request = Request { tol: 1e-30, reconstruction: LinkStorage::FULL, ..Request::new(operator) };
        let formats = configuration.formats(request.operator.clone(), 2).unwrap();
        let solve = |request: &Request, residuals: [f64; 2], second: f64| {
            let space = FieldSpace::new(&domain, formats.shape(Precision::Double, 2));
            let mut eta = FullField::zero(&domain, formats.shape(Precision::Double, 2)).unwrap();
            let mut sources: Vec<HostSpinor> = vec![generate::random_source(lattice, 5), HostSpinor::zero(lattice)];
            if second > 0.0 {
                sources[1] = generate::random_source(lattice, 6);
            }
            eta.upload(&sources).unwrap();
            let (rhs, x) = (eta.even, space.allocate().unwrap());
            let mut problem = Judged { space, rhs, x, residuals };
            solve_escalating(&*formats, &mut problem, request.tol, request, &mut ()).unwrap()
        };
        let about = |request: &Request, residuals: [f64; 2], second: f64| {
            let solved = solve(request, residuals, second);
            let message = solved.failure.map(|failure| failure.to_string());
            (message, solved.escalations.into_iter().map(|step| step.reason.to_string()).collect::<Vec<_>>())
        };
        let named = |message: &Option<String>, rhs: usize, both: bool| {
            let message = message.as_ref().unwrap();
            message.contains(&format!("of right-hand side {rhs} stays")) && message.contains("also given up") == both
        };
        assert!(named(&about(&request, [1.0, 1.0], 1.0).0, 0, true));
        assert!(named(&about(&request, [1.0, 0.0], 1.0).0, 0, false));
        assert!(named(&about(&request, [0.0, 1.0], 1.0).0, 1, false));
        // Where all is well, the reason becomes a note as it is.
        assert!(named(&about(&request, [0.0, 0.0], 1.0).0, 0, true));
        // The solver reports the second one as solved, and the check does not: no solver gave it up.
        assert_eq!(about(&request, [0.0, 1.0], 0.0), (None, vec![]));
        request.precision = Precision::Single;
        let (message, reasons) = about(&request, [0.0, 1.0], 1.0);
        assert!(named(&message, 1, false) && reasons.iter().all(|reason| named(&Some(reason.clone()), 1, false)));
        assert!(!reasons.is_empty());
    }
}
