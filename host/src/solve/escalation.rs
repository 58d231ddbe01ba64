//! Precision escalation: a system is solved in a pair of formats and, where that fails, in the next better one.
use super::choice::{Adviser, Fallback, MethodChange};
use super::formats::{AnyPreconditioner, BlockMultigrid, Formats, MultigridState};
use super::memory::VECTORS;
use super::report::{Escalation, MultigridLevel, MultigridReport};
use super::request::{Correction, Method, Request, Schwarz};
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceField, FieldSpace};
use crate::multigrid::{OUTER_DELTA, OUTER_DIRECTIONS};
use crate::operators::EvenOdd;
use gpu_kernels::{LinkStorage, Precision};
use solvers::{
    BicgstabWorkspace, BlockCgNormalWorkspace, BlockCgParams, BlockCgWorkspace, CgNormalWorkspace, CgWorkspace,
    Converted, DefectParams, DefectWorkspace, GcrParams, GcrWorkspace, Info, Iteration, IterationKind, Mixed, Observer,
    Patience, Precise, RhsFailure, SolveError, SolverParams, Step, System, Uniform, Unsolved, VectorSpace, bicgstab,
    block_cg, block_cgnr, cg, cgne, cgnr, defect_correction, gcr,
};
use std::cell::RefCell;
use std::iter::successors;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

pub(super) type EscalationError = SolveError<DeviceError>;

/// A system with its answer, in double, on the sites of one parity.
pub(super) trait ParitySystem {
    /// Where both live.
    fn space(&self) -> &FieldSpace;
    /// The right-hand side.
    fn rhs(&self) -> &DeviceField;
    /// The solution so far.
    fn solution(&mut self) -> &mut DeviceField;
    /// True residuals, by which the answer is judged, relative to the sources.
    fn residuals(&mut self) -> Result<Vec<f64>>;
}

/// How an escalating solve ended.
pub(super) struct EscalatedSolve {
    /// The solvers' own account.
    pub info: Info,
    /// The formats at the end.
    pub level: PrecisionLevel,
    /// The escalations.
    pub escalations: Vec<Escalation>,
    /// The method at the end.
    pub method: Method,
    /// How the solve came to it.
    pub method_changes: Vec<MethodChange>,
    /// The methods that were used, the first one first.
    pub tried: Vec<Method>,
    /// Judged residuals at the end.
    pub true_residual: Vec<f64>,
    /// Why it ended without a solution.
    pub failure: Option<Unsolved>,
    /// What multigrid did.
    pub multigrid: Option<MultigridReport>,
    /// Time of the iteration.
    pub seconds: f64,
}

/// Solves a problem from the solution that is there, in the formats of the request and then in better ones. `tol` is the
/// residual of the system, relative to its right-hand side, at which the judged one ought to be that of the request.
pub(super) fn solve_escalating(
    formats: &dyn Formats,
    problem: &mut dyn ParitySystem,
    mut tol: f64,
    request: &Request,
    observer: &mut dyn Observer,
) -> std::result::Result<EscalatedSolve, EscalationError> {
    let mut request = *request;
    let automatic = request.method == Method::Auto;
    if automatic {
        let ready = formats.multigrid_state(&request.multigrid)? == MultigridState::Ready;
        request.method = if ready { Method::Multigrid } else { Method::Bicgstab };
    }
    let asked =
        PrecisionLevel { outer: request.outer, precision: request.precision, reconstruction: request.reconstruction };
    let mut level = asked.of(request.method, automatic);
    let mut adviser = adviser(formats, &request, automatic, tol, problem.space().nrhs())?;
    let mut method_changes: Vec<MethodChange> = Vec::new();
    let mut fallback = Fallback::new(&request, automatic);
    let mut tried: Vec<Method> = Vec::new();
    // Where multigrid cannot be set up for the numbers that it meets, BiCGstab solves.
    let make =
        |problem: &mut dyn ParitySystem,
         request: &mut Request,
         level: &mut PrecisionLevel,
         changes: &mut Vec<MethodChange>,
         iterations: usize,
         observer: &mut dyn Observer| match MixedSystem::new(formats, *level, problem, request, observer) {
            Err(error) if may_do_without_multigrid(request, &error) => {
                (request.method, *level) = (Method::Bicgstab, asked);
                changes.push(MethodChange::without_multigrid(iterations, &error));
                MixedSystem::new(formats, *level, problem, request, observer)
            }
            made => made,
        };
    let mut system = match make(problem, &mut request, &mut level, &mut method_changes, 0, observer) {
        Err(SolveError::Cancelled { .. }) => {
            let true_residual = problem.residuals()?;
            let nrhs = problem.space().nrhs();
            let info = Info {
                iterations_per_rhs: vec![0; nrhs],
                failed: (0..nrhs).collect(),
                true_residual: true_residual.clone(),
                history: true_residual.iter().map(|residual| vec![*residual]).collect(),
                ..Info::default()
            };
            return Ok(EscalatedSolve {
                failure: Some(Unsolved::Cancelled { iteration: 0, info: Box::new(info.clone()) }),
                info,
                level,
                escalations: Vec::new(),
                method: request.method,
                method_changes,
                tried,
                true_residual,
                multigrid: None,
                seconds: 0.0,
            });
        }
        made => made?,
    };
    adviser = adviser.filter(|adviser| adviser.is_for(request.method));
    formats.domain().backend().synchronize().map_err(DeviceError::from)?;
    let mut watch = StopWatch::start();
    let mut escalations: Vec<Escalation> = Vec::new();
    let mut total: Option<Info> = None;
    let mut true_residual;
    let failure = loop {
        let spent = total.as_ref().map_or(0, |info| info.iterations);
        if !tried.contains(&request.method) {
            tried.push(request.method);
        }
        let mut seen = After { observer, iterations: spent, adviser: adviser.as_mut() };
        // A build may do without some formats.
        let staggered = problem.space().is_staggered();
        let levels = |first: PrecisionLevel| {
            let above = successors(Some(first), |level| level.next(staggered));
            above.filter(|level| formats.has(level.precision, level.reconstruction))
        };
        let next = level.next(staggered).and_then(|level| levels(level).next()).filter(|_| request.escalate);
        // Above double precision there are other links only.
        let has_patience = level.precision != Precision::Double && request.method == Method::Bicgstab;
        let patience = patience(formats.domain().global().volume());
        let patience = next.map(|_| patience).filter(|_| has_patience && request.stagnation_window > 0);
        let left = request.max_iterations.saturating_sub(spent);
        let left = Request { max_iterations: fallback.most(request.method, left), ..request };
        let (info, failure) = match system.iterate(level, tol, patience, &left, &mut seen) {
            Ok(info) => (info, None),
            Err(error) => match error.info().cloned() {
                Some(info) => (info, Some(error.unsolved()?)),
                None => return Err(error),
            },
        };
        let iterations = spent + info.iterations;
        total = Some(match total {
            Some(before) => before.followed_by(info),
            None => info,
        });
        system.hand_back(problem)?;
        true_residual = problem.residuals()?;
        let worst = solvers::worst_residual(&true_residual);
        let advice = adviser.as_ref().and_then(Adviser::advice).cloned();
        let goes_to_multigrid = advice.as_ref().is_some_and(|advice| advice.method == Method::Multigrid);
        let may_need_cg = fallback.is_there() && failure.is_some() && !goes_to_multigrid;
        if may_need_cg && !has_room_for_cg(formats, &request, problem.space().nrhs())? {
            fallback.forgo();
        }
        let rest = request.max_iterations.saturating_sub(iterations);
        let another_method = match (failure.as_ref(), advice) {
            (_, Some(advice)) => Some((advice.method, advice.reason)),
            (Some(error), None) if request.method == Method::Multigrid && request.escalate => {
                may_escalate(error, &true_residual).then(|| (Method::Bicgstab, format!("multigrid: {error}")))
            }
            // Links with more reals hardly help where double precision does not.
            (Some(error), None) if request.method == Method::Bicgstab && fallback.is_there() && rest > 0 => {
                let is_double = level.precision == Precision::Double;
                (is_double && may_escalate(error, &true_residual))
                    .then(|| (fallback.take(rest, true), format!("BiCGstab: {error}")))
            }
            (Some(error), None)
                if !matches!(error, SolveError::Cancelled { .. }) && worst > request.tol && rest > 0 =>
            {
                let ended = next.is_none() || !may_escalate(error, &true_residual);
                (ended && fallback.comes_back(request.method)).then(|| (Method::Bicgstab, format!("CG: {error}")))
            }
            _ => None,
        };
        match another_method {
            Some(_) if worst <= request.tol => break None,
            Some((next, reason)) => {
                watch.pause();
                request.method = match next {
                    // BiCGstab was given up as slow before multigrid, or is now.
                    Method::Bicgstab | Method::Cg if fallback.is_there() && rest > 0 => fallback.take(rest, false),
                    Method::Cg if !fallback.is_taken() => Method::Bicgstab,
                    other => other,
                };
                level = asked.of(request.method, automatic);
                method_changes.push(MethodChange { iterations, method: request.method, reason });
                let made = make(problem, &mut request, &mut level, &mut method_changes, iterations, observer);
                if matches!(made, Err(SolveError::Cancelled { .. })) {
                    watch.go_on();
                    let info = total.clone().expect("the loop ran");
                    break Some(Unsolved::Cancelled { iteration: iterations, info: Box::new(info) });
                }
                system = made?;
                let eager = fallback.is_there();
                adviser = (request.method == Method::Multigrid).then(|| Adviser::of_multigrid(tol).eager(eager));
                formats.domain().backend().synchronize().map_err(DeviceError::from)?;
                watch.go_on();
                continue;
            }
            None => {}
        }
        // The judged residual decides, whatever the solver could not do.
        let (failure, has_failed) = match failure {
            Some(error) if worst > request.tol || worst.is_nan() => {
                match error.without_converged(|rhs| true_residual[rhs] <= request.tol) {
                    Ok(error) => (Some(error), true),
                    Err(error) => (Some(error), false),
                }
            }
            other => (other, false),
        };
        match (failure, next) {
            (failure, _) if worst <= request.tol => break failure,
            (Some(error), Some(next)) if may_escalate(&error, &true_residual) => {
                level = match patience.is_some() && is_plateau(&error) {
                    true => levels(next).find(|level| level.precision == Precision::Double).unwrap_or(next),
                    false => next,
                };
                escalations.push(Escalation {
                    iterations,
                    reason: error,
                    precision: level.precision,
                    outer: level.outer,
                    reconstruction: level.reconstruction,
                });
                system = MixedSystem::new(formats, level, problem, &request, observer)?;
            }
            (Some(error), _) if has_failed => break Some(error),
            _ if !worst.is_finite() || tol < 1e-16 => break None,
            // The judged residual is not quite the one that was aimed at: aim again, from where we are.
            _ => tol *= 0.5 * request.tol / worst,
        }
    };
    let seconds = watch.seconds();
    let info = total.expect("the loop ran");
    let multigrid = system.multigrid.as_ref().map(|multigrid| multigrid_report(multigrid, info.iterations, seconds));
    let (method, failure) = (request.method, failure.map(|error| of_the_whole(error, info.iterations)));
    Ok(EscalatedSolve {
        info,
        level,
        escalations,
        method,
        method_changes,
        tried,
        true_residual,
        failure,
        multigrid,
        seconds,
    })
}

/// The error of the last part of a solve, with the iterations of all parts.
fn of_the_whole(mut error: Unsolved, all: usize) -> Unsolved {
    match &mut error {
        SolveError::NoConvergence { iterations, .. } => *iterations = all,
        SolveError::Cancelled { iteration, .. } => *iteration = all,
        _ => {}
    }
    error
}

/// Seconds of iterations, without the setup of a method that takes over from another.
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

/// Who watches a solve that may end with another method.
fn adviser(
    formats: &dyn Formats,
    request: &Request,
    automatic: bool,
    tol: f64,
    nrhs: usize,
) -> std::result::Result<Option<Adviser>, EscalationError> {
    Ok(match request.method {
        Method::Multigrid if request.escalate => Some(Adviser::of_multigrid(tol).eager(automatic)),
        Method::Bicgstab if automatic && matches!(request.correction, Correction::Reliable { .. }) => {
            let adviser = match formats.multigrid_state(&request.multigrid)? {
                MultigridState::Impossible => Adviser::without_multigrid(tol),
                state => Adviser::of_bicgstab(request, tol, nrhs, state != MultigridState::Possible),
            };
            Some(if request.escalate { adviser.within(request.max_iterations) } else { adviser })
        }
        _ => None,
    })
}

/// *Collective.* Whether there is memory for CG on the normal equations, which has more vectors than BiCGstab.
fn has_room_for_cg(formats: &dyn Formats, request: &Request, nrhs: usize) -> Result<bool> {
    let domain = formats.domain();
    let needs = Request { method: Method::Cg, ..*request }.memory(domain.local(), domain.grid(), nrhs, None);
    let needs: usize = needs.iter().filter(|(name, _)| VECTORS.contains(name)).map(|(_, bytes)| bytes).sum();
    let mut without = [f64::from(u8::from(needs > domain.backend().memory()?.free))];
    domain.sum(&mut without)?;
    Ok(without == [0.0])
}

/// Whether a solve goes on without multigrid whose setup failed for the numbers that it met.
fn may_do_without_multigrid(request: &Request, error: &EscalationError) -> bool {
    let numbers = !matches!(error, SolveError::Backend(_) | SolveError::Invalid(_) | SolveError::Cancelled { .. });
    request.method == Method::Multigrid && request.escalate && numbers
}

/// What multigrid did in a solve with so many iterations.
fn multigrid_report(block: &BlockMultigrid, iterations: usize, seconds: f64) -> MultigridReport {
    let (multigrid, done) = (block.multigrid(), block.reports());
    let coarsenings = multigrid.levels();
    let level = |depth: usize| {
        let below = coarsenings.get(depth);
        let lattice = match depth {
            0 => coarsenings[0].space.fine().lattice(),
            _ => coarsenings[depth - 1].operator.level().lattice(),
        };
        // The finest level is the preconditioner of the solver whose iterations are known.
        let report = done.get(depth).copied().unwrap_or_default();
        MultigridLevel {
            lattice: lattice.size(),
            block: below.map(|below| below.space.block()),
            vectors: below.map(|below| below.space.count()),
            iterations: if depth == 0 { iterations } else { report.iterations },
            seconds: if depth == 0 { seconds } else { report.seconds },
            check: multigrid.checks().get(depth).copied(),
        }
    };
    MultigridReport { setup_seconds: multigrid.seconds(), levels: (0..=coarsenings.len()).map(level).collect() }
}

/// δ of CG on a positive operator that is kept in 16 bits. What the iteration solves has other small eigenvalues, so that
/// it has to hear of the true residual far more often than rounding alone asks for: docs/measurements/staggered.md.
const HALF_DELTA: f64 = 0.6;

/// The square of the sine of an angle at which block CG takes a residual to depend on the others: of an iteration in
/// double precision, and of others. Far above the rounding of vectors in 16 bits, squared.
const DEPENDENT: [f64; 2] = [1e-12, 1e-6];

/// Of BiCGstab below double precision, as long as there is a higher one. Solves at small masses on large lattices have plateaus
/// by nature, exceptional configurations are those of small lattices; docs/measurements/solver-stagnation.md has what the
/// numbers are chosen by.
fn patience(sites: usize) -> Patience {
    let size = (sites as f64 / 4096.0).sqrt().max(1.0);
    Patience { least: (150.0 * size) as usize, share: 0.5 }
}

/// Whether a right-hand side was given up because it ran out of patience. BiCGstab has then lost its short recurrences to
/// rounding, and would lose them again in formats that are only a little better: it goes to double precision at once.
fn is_plateau(error: &Unsolved) -> bool {
    error.info().is_some_and(|info| info.given_up.iter().any(|given_up| given_up.why == RhsFailure::Plateau))
}

/// The formats of one level of precision escalation.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct PrecisionLevel {
    pub outer: Precision,
    pub precision: Precision,
    pub reconstruction: LinkStorage,
}

impl PrecisionLevel {
    /// That with which a method begins. Around multigrid there is little to do: 16 bits are of no use, nor is double precision
    /// where the method was not asked for.
    fn of(self, method: Method, automatic: bool) -> Self {
        let short = matches!(self.precision, Precision::Half | Precision::Fp16);
        let single = method == Method::Multigrid && (short || automatic);
        PrecisionLevel { precision: if single { Precision::Single } else { self.precision }, ..self }
    }
    /// The next level: from 16-bit floating to fixed point, which has more digits; then the iteration becomes as precise
    /// as the solver's check, then the check double, then the iteration too, and at last on the very links. `half_links`: there
    /// are kernels for links in 16 bits beside fields in single precision.
    fn next(self, half_links: bool) -> Option<PrecisionLevel> {
        use Precision as P;
        match self {
            PrecisionLevel { precision: P::Fp16, .. } => Some(PrecisionLevel { precision: P::Half, ..self }),
            // Staggered operators, whose CG fails in half for its vectors, keep the links in 16 bits first.
            PrecisionLevel { precision: P::Half, .. } => {
                let reconstruction = self.reconstruction.half(half_links);
                Some(PrecisionLevel { precision: P::Single, reconstruction, ..self })
            }
            PrecisionLevel { precision: P::Single, .. } if self.reconstruction.half => {
                Some(PrecisionLevel { reconstruction: self.reconstruction.half(false), ..self })
            }
            PrecisionLevel { outer: P::Single, .. } => Some(PrecisionLevel { outer: P::Double, ..self }),
            PrecisionLevel { precision: P::Single, .. } => Some(PrecisionLevel { precision: P::Double, ..self }),
            PrecisionLevel { reconstruction: LinkStorage { reals: 18, .. }, .. } => None,
            _ => Some(PrecisionLevel { reconstruction: LinkStorage::FULL, ..self }),
        }
    }
}

/// Whether more precision can help, where the residuals are these in double.
fn may_escalate(error: &Unsolved, true_residual: &[f64]) -> bool {
    match error {
        SolveError::Stagnation { .. } | SolveError::Breakdown { .. } | SolveError::NotPositiveDefinite { .. } => true,
        // Not where the source is not a number to begin with, whose residual is none either.
        SolveError::NotANumber { iteration, .. } => *iteration > 0 || true_residual.iter().all(|r| r.is_finite()),
        _ => false,
    }
}

/// Counts on from the iterations of the solves before, and listens to an adviser.
struct After<'a> {
    observer: &'a mut dyn Observer,
    iterations: usize,
    /// Who may stop the solve, too.
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

/// The system in the two precisions of a solver.
struct MixedSystem {
    outer_space: FieldSpace,
    outer: Rc<dyn EvenOdd>,
    sloppy_space: FieldSpace,
    sloppy: Rc<dyn EvenOdd>,
    /// Whether the operator is Hermitian and positive.
    positive: bool,
    /// For GCR, and the space that it works in.
    preconditioner: Option<(FieldSpace, AnyPreconditioner)>,
    multigrid: Option<BlockMultigrid>,
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
    ) -> std::result::Result<Self, EscalationError> {
        let (domain, nrhs) = (formats.domain(), problem.space().nrhs());
        let exact = formats.exact();
        let positive = exact.is_positive();
        let outer = match level.outer {
            Precision::Double => exact,
            other => formats.any(other, LinkStorage::FULL)?,
        };
        let sloppy = formats.any(level.precision, level.reconstruction)?;
        let preconditioner = match request.method {
            Method::GcrDd => formats.preconditioner(&request.schwarz, level.reconstruction)?,
            _ => None,
        };
        let multigrid = match request.method {
            Method::Multigrid => formats.multigrid(&request.multigrid, level.reconstruction, observer)?,
            _ => None,
        };
        let space = |precision| FieldSpace::new(domain, formats.kind(), precision, nrhs);
        let preconditioner = preconditioner.map(|inner| (space(request.schwarz.precision), inner));
        formats.release_staged();
        let (outer_space, sloppy_space) = (space(level.outer), space(level.precision));
        let (mut x, mut rhs) = (outer_space.allocate()?, outer_space.allocate()?);
        outer_space.convert_from(problem.rhs(), &mut rhs)?;
        outer_space.convert_from(problem.solution(), &mut x)?;
        Ok(MixedSystem { outer_space, outer, sloppy_space, sloppy, positive, preconditioner, multigrid, rhs, x })
    }
    fn hand_back(&self, problem: &mut dyn ParitySystem) -> Result {
        let (kind, nrhs) = (problem.space().kind(), problem.space().nrhs());
        let space = FieldSpace::new(problem.space().domain(), kind, Precision::Double, nrhs);
        space.convert_from(&self.x, problem.solution())
    }
    /// Runs the method asked for.
    fn iterate(
        &mut self,
        level: PrecisionLevel,
        tol: f64,
        patience: Option<Patience>,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> std::result::Result<Info, EscalationError> {
        let MixedSystem { outer_space, outer, sloppy_space, sloppy, positive, preconditioner, multigrid, rhs, x } =
            self;
        let (positive, system) = (*positive, Mixed::new(outer_space, &**outer, sloppy_space, &**sloppy));
        if request.method == Method::GcrDd {
            let Some((space, inner)) = preconditioner else {
                return Err(SolveError::Invalid(
                    "GCR with the Schwarz preconditioner is for Wilson and clover operators",
                ));
            };
            let Correction::Reliable { delta } = request.correction else {
                return Err(SolveError::Invalid("GCR restarts by itself: it has no defect correction"));
            };
            let Request { max_iterations, stagnation_window, schwarz: Schwarz { k_max, .. }, .. } = *request;
            let stagnation_window = Some(stagnation_window);
            let solver = SolverParams { tol, max_iterations, delta, stagnation_window, ..Default::default() };
            let params = GcrParams { k_max, ..solver.into() };
            let converted = Converted::new(&*space, &**inner).map_err(SolveError::Backend)?;
            let mut workspace = GcrWorkspace::new(&system, k_max).map_err(SolveError::Backend)?;
            return gcr(&system, &converted, rhs, x, &params, &mut workspace, observer);
        }
        if request.method == Method::Multigrid {
            let Some(multigrid) = multigrid else {
                return Err(SolveError::Invalid("multigrid is for Wilson-like operators"));
            };
            let Correction::Reliable { delta } = request.correction else {
                return Err(SolveError::Invalid("GCR restarts by itself: it has no defect correction"));
            };
            let Request { max_iterations, stagnation_window, .. } = *request;
            let stagnation_window = Some(stagnation_window);
            let delta = delta.or((level.precision == Precision::Single).then_some(OUTER_DELTA));
            let solver = SolverParams { tol, max_iterations, delta, stagnation_window, ..Default::default() };
            let params = GcrParams { k_max: OUTER_DIRECTIONS, ..solver.into() };
            let mut workspace = GcrWorkspace::new(&system, params.k_max).map_err(SolveError::Backend)?;
            let single = FieldSpace::new(sloppy_space.domain(), sloppy_space.kind(), Precision::Single, rhs.nrhs());
            let mut solved = None;
            multigrid.with_cycle(&mut |cycle| {
                let (workspace, observer) = (&mut workspace, &mut *observer);
                solved = Some(match level.precision {
                    Precision::Single => gcr(&system, cycle, rhs, x, &params, workspace, observer),
                    _ => gcr(&system, &Converted::new(&single, cycle)?, rhs, x, &params, workspace, observer),
                });
                Ok(())
            })?;
            return solved.expect("the cycle was used");
        }
        let dependent = DEPENDENT[usize::from(level.precision != Precision::Double)];
        match request.correction {
            Correction::Reliable { delta } => {
                // On the very same links and in the same precision the iteration needs no reliable updates.
                // Reconstructed links are others, if only a little: those of a file in single precision are unitary to
                // 1e-7 only, and so far from their reconstruction.
                let half = level.precision == Precision::Half || level.reconstruction.half;
                let default = match level.reconstruction {
                    _ if positive && half => Some(HALF_DELTA),
                    _ if level.precision != level.outer || level.reconstruction.half => None,
                    LinkStorage::FULL => Some(0.0),
                    _ => Some(1e-4),
                };
                let terms = Terms { tol, patience, delta: delta.or(default), dependent, positive };
                krylov(&system, rhs, x, terms, request, observer)
            }
            Correction::Defect { inner_tol } => {
                let inner = Uniform::new(sloppy_space, &**sloppy);
                let max_iterations = request.max_iterations;
                let solver = SolverParams { tol, max_iterations, max_stalls: 3, ..Default::default() };
                let params = DefectParams { solver, inner_tol, max_corrections: 1000 };
                let mut workspace = DefectWorkspace::new(&system).map_err(SolveError::Backend)?;
                let seen = RefCell::new(Nested { observer, iterations: 0, level: 1.0, residuals: Vec::new() });
                let solve = |r: &DeviceField, e: &mut DeviceField, asked: &SolverParams| {
                    let mut inside = |event: &Iteration<'_>| seen.borrow_mut().inside(event);
                    let request = Request { max_iterations: asked.max_iterations, ..*request };
                    let terms = Terms { tol: asked.tol, patience, delta: Some(0.0), dependent, positive };
                    krylov(&inner, r, e, terms, &request, &mut inside)
                };
                let mut outside = |event: &Iteration<'_>| seen.borrow_mut().outside(event);
                defect_correction(&system, rhs, x, &params, &mut workspace, solve, &mut outside)
            }
        }
    }
}

/// Shows the iterations of inner and outer solver to one observer.
struct Nested<'a> {
    observer: &'a mut dyn Observer,
    /// Of the inner solves before.
    iterations: usize,
    /// The residual that the inner solve began with.
    level: f64,
    residuals: Vec<f64>,
}
impl Nested<'_> {
    fn outside(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        (self.iterations, self.level) = (event.iteration, event.worst());
        self.observer.iteration(event)
    }
    fn inside(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self.residuals.clear();
        self.residuals.extend(event.residuals.iter().map(|r| r * self.level));
        let iteration = self.iterations + event.iteration;
        self.observer.iteration(&Iteration { iteration, residuals: &self.residuals, kind: IterationKind::Iterate })
    }
}

/// What a Krylov method is asked for beside the request.
#[derive(Clone, Copy)]
struct Terms {
    tol: f64,
    patience: Option<Patience>,
    delta: Option<f64>,
    /// Of block CG.
    dependent: f64,
    /// Whether the operator is Hermitian and positive.
    positive: bool,
}

/// Runs the Krylov method asked for.
fn krylov<Y: System<Error = DeviceError>>(
    system: &Y,
    rhs: &Precise<Y>,
    x: &mut Precise<Y>,
    terms: Terms,
    request: &Request,
    observer: &mut dyn Observer,
) -> std::result::Result<Info, EscalationError> {
    let Terms { tol, patience, delta, dependent, positive } = terms;
    let (max_iterations, stagnation_window) = (request.max_iterations, Some(request.stagnation_window));
    let params = SolverParams { tol, max_iterations, delta, stagnation_window, patience, ..Default::default() };
    match request.method {
        Method::Bicgstab => {
            let mut workspace = BicgstabWorkspace::new(system).map_err(SolveError::Backend)?;
            bicgstab(system, rhs, x, &params, &mut workspace, observer)
        }
        Method::GcrDd | Method::Multigrid | Method::Auto => {
            unreachable!("it is not one of those that take reliable updates")
        }
        Method::Cg | Method::Cgne if positive => {
            let mut workspace = CgWorkspace::new(system).map_err(SolveError::Backend)?;
            cg(system, rhs, x, &params, &mut workspace, observer)
        }
        Method::Cg | Method::Cgne => {
            let mut workspace = CgNormalWorkspace::new(system).map_err(SolveError::Backend)?;
            match request.method {
                Method::Cg => cgnr(system, rhs, x, &params, &mut workspace, observer),
                _ => cgne(system, rhs, x, &params, &mut workspace, observer),
            }
        }
        Method::BlockCg => {
            let params = BlockCgParams { solver: params, dependent: Some(dependent) };
            if positive {
                let mut workspace = BlockCgWorkspace::new(system).map_err(SolveError::Backend)?;
                block_cg(system, rhs, x, &params, &mut workspace, observer)
            } else {
                let mut workspace = BlockCgNormalWorkspace::new(system).map_err(SolveError::Backend)?;
                block_cgnr(system, rhs, x, &params, &mut workspace, observer)
            }
        }
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

    /// Two systems, of which the check finds what a test says.
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

    /// What the solver cannot do for some right-hand side is of no interest where the check finds it solved.
    #[test]
    fn a_failure_is_that_of_a_right_hand_side_that_failed() {
        let lattice = Lattice::new([2, 2, 2, 4]).unwrap();
        let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
        let gauge = generate::weak_field(lattice, 3, 0.2);
        let configuration = Configuration::new(&domain, &gauge);
        let operator = WilsonParams::from_mass(0.2, TimeBoundary::Antiperiodic);
        // Nobody reaches this.
        let mut request = Request { tol: 1e-30, reconstruction: LinkStorage::FULL, ..Request::new(operator) };
        let formats = configuration.formats(request.operator, 2).unwrap();
        let solve = |request: &Request, residuals: [f64; 2], second: f64| {
            let space = FieldSpace::new(&domain, formats.kind(), Precision::Double, 2);
            let mut eta = FullField::zero(&domain, formats.kind(), Precision::Double, 2).unwrap();
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
            message.contains(&format!("of right-hand side {rhs} stays")) && message.contains("given up too") == both
        };
        assert!(named(&about(&request, [1.0, 1.0], 1.0).0, 0, true));
        assert!(named(&about(&request, [1.0, 0.0], 1.0).0, 0, false));
        assert!(named(&about(&request, [0.0, 1.0], 1.0).0, 1, false));
        // Where all is well, the reason becomes a note as it is.
        assert!(named(&about(&request, [0.0, 0.0], 1.0).0, 0, true));
        // The solver calls the second one solved, and the check does not: nobody gave that one up.
        assert_eq!(about(&request, [0.0, 1.0], 0.0), (None, vec![]));
        request.precision = Precision::Single;
        let (message, reasons) = about(&request, [0.0, 1.0], 1.0);
        assert!(named(&message, 1, false) && reasons.iter().all(|reason| named(&Some(reason.clone()), 1, false)));
        assert!(!reasons.is_empty());
    }
}
