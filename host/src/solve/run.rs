//! The course of a solve: the solver, the check of its answer, and the ladder of precisions.
use super::configuration::{Configuration, Operators};
use super::report::{Climb, Report, SolveFailure};
use super::request::{Correction, IterationPrecision, Method, Reconstruction, Request};
use crate::backend::Backend;
use crate::dirac::EvenOdd;
use crate::domain::{DeviceError, Domain, Result};
use crate::field::host::{HostField, HostSpinor, Spinor};
use crate::field::{AnyField, AnyOperator, AnySpace, DeviceField, FieldKind, FieldSpace, FullField};
use gpu_kernels::storage::Double;
use solvers::{
    BicgstabParams, BicgstabWorkspace, CgNormalWorkspace, CgParams, CgWorkspace, DefectParams, DefectWorkspace, Info,
    Iteration, Kind, Mixed, Observer, Precise, SolveError, System, Uniform, VectorSpace, bicgstab, cg, cgne, cgnr,
    defect_correction,
};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

type SolverError = SolveError<DeviceError>;
/// Solutions and what is known of them.
pub type Solved<T> = std::result::Result<(Vec<HostField<T>>, Report), SolveFailure<T>>;

impl<B: Backend> Configuration<'_, B> {
    /// Solves M ψ_j = η_j for all sources together, from a guess or from zero. The observer sees every iteration and
    /// can stop it.
    ///
    /// # Errors
    /// [`SolveFailure`]; where the solver gave up, with the best iterates.
    pub fn solve(
        &self,
        sources: &[HostSpinor],
        guess: Option<&[HostSpinor]>,
        request: &Request,
        observer: &mut impl Observer,
    ) -> Solved<Spinor> {
        if !request.reconstruction.is_temporal() {
            return self.solve_here(sources, guess, request, observer);
        }
        let (fixed, transformation) = self.in_temporal_gauge();
        let rotate = |fields: &[HostSpinor]| {
            let mut rotated = fields.to_vec();
            rotated.iter_mut().for_each(|field| transformation.apply(field));
            rotated
        };
        let back = |mut fields: Vec<HostSpinor>| {
            fields.iter_mut().for_each(|field| transformation.apply_inverse(field));
            fields
        };
        let solved = fixed.solve_here(&rotate(sources), guess.map(rotate).as_deref(), request, observer);
        solved.map(|(solutions, report)| (back(solutions), report)).map_err(|failure| failure.with_solutions(back))
    }
    /// The same, in the gauge of this configuration.
    fn solve_here(
        &self,
        sources: &[HostSpinor],
        guess: Option<&[HostSpinor]>,
        request: &Request,
        observer: &mut impl Observer,
    ) -> Solved<Spinor> {
        let begin = Instant::now();
        let request = Request { reconstruction: self.possible(request.reconstruction, request.precision)?, ..*request };
        request.check_precisions().map_err(|why| SolveFailure::Solver(SolveError::Invalid(why)))?;
        let operators = Operators::new(self, request.operator, sources.len())?;
        solve(&operators, sources, guess, &request, observer, begin)
    }
}

/// An operator on a configuration in every format that a solve may need.
pub(super) trait Formats<B: Backend, K: FieldKind> {
    /// Where it lives.
    fn domain(&self) -> &Domain<B>;
    /// On the very links, in double.
    fn exact(&self) -> Rc<dyn EvenOdd<B, K, Double>>;
    /// In a format.
    fn any(&self, precision: IterationPrecision, reconstruction: Reconstruction) -> Result<AnyOperator<B, K>>;
    /// Frees what the formats are made from; it comes back when it is needed.
    fn release_staged(&self);
}

/// Solves M ψ_j = η_j for all sources together. The reconstruction is one that can be had; `begin` is when the user's call
/// began.
pub(super) fn solve<B: Backend, K: FieldKind, O: Copy>(
    formats: &impl Formats<B, K>,
    sources: &[HostField<K::Host>],
    guess: Option<&[HostField<K::Host>]>,
    request: &Request<O>,
    observer: &mut impl Observer,
    begin: Instant,
) -> Solved<K::Host> {
    let nrhs = sources.len();
    let mut rung = Rung { outer: request.outer, precision: request.precision, reconstruction: request.reconstruction };
    let mut system = Levels::new(formats, rung, nrhs)?;
    let mut problem = Problem::new(formats.domain(), formats.exact(), sources, guess)?;
    formats.release_staged();

    // What the solver is asked for is a residual of the Schur complement, relative to its right-hand side.
    let mut tol = request.tol * problem.residual_ratio();
    formats.domain().backend().synchronize().map_err(DeviceError::from)?;
    let start = Instant::now();
    let mut x = system.outer_space.allocate()?;
    let mut rhs = system.outer_space.allocate()?;
    system.outer_space.read(&problem.rhs, &mut rhs)?;
    system.outer_space.read(&problem.psi.even, &mut x)?;
    let mut climbs: Vec<Climb> = Vec::new();
    let mut total: Option<Info> = None;
    let mut true_residual;
    let failure = loop {
        let spent = total.as_ref().map_or(0, |info| info.iterations);
        let mut seen = After { observer, iterations: spent };
        let left = Request { max_iterations: request.max_iterations.saturating_sub(spent), ..*request };
        let (info, failure) = match system.iterate(rung, &rhs, &mut x, tol, &left, &mut seen) {
            Ok(info) => (info, None),
            Err(error) => match error.info().cloned() {
                Some(info) => (info, Some(error)),
                None => return Err(SolveFailure::Solver(error)),
            },
        };
        let iterations = spent + info.iterations;
        total = Some(match total {
            Some(before) => before.followed_by(info),
            None => info,
        });
        system.outer_space.write(&x, &problem.space, &mut problem.psi.even)?;
        true_residual = problem.residuals()?;
        let worst = true_residual.iter().copied().fold(0.0, f64::max);
        match failure {
            Some(error) => {
                let Some(next) = rung.next().filter(|_| request.ladder && may_climb(&error)) else {
                    break Some(error);
                };
                rung = next;
                climbs.push(Climb {
                    iterations,
                    reason: error.to_string(),
                    precision: rung.precision,
                    outer: rung.outer,
                    reconstruction: rung.reconstruction,
                });
                system = Levels::new(formats, rung, nrhs)?;
                formats.release_staged();
                x = system.outer_space.allocate()?;
                rhs = system.outer_space.allocate()?;
                system.outer_space.read(&problem.rhs, &mut rhs)?;
                system.outer_space.read(&problem.psi.even, &mut x)?;
            }
            None if worst <= request.tol || !worst.is_finite() || tol < 1e-16 => break None,
            // The full system's residual is not quite the one that was aimed at: aim again, from where we are.
            None => tol *= 0.5 * request.tol / worst,
        }
    };
    let mut info = total.expect("the loop ran");
    let seconds = start.elapsed().as_secs_f64();
    let solutions = problem.psi.download()?;
    info.converged = failure.is_none() && true_residual.iter().all(|&r| r <= request.tol);
    let report = Report {
        converged: info.converged,
        gflops: info.flops / seconds * 1e-9,
        info,
        precision: rung.precision,
        outer: rung.outer,
        reconstruction: rung.reconstruction,
        climbs,
        true_residual,
        seconds,
        total_seconds: begin.elapsed().as_secs_f64(),
    };
    match failure {
        None => Ok((solutions, report)),
        Some(error) => Err(SolveFailure::Unfinished { error, solutions, report: Box::new(report) }),
    }
}

/// A rung of the ladder.
#[derive(Clone, Copy, PartialEq)]
struct Rung {
    outer: IterationPrecision,
    precision: IterationPrecision,
    reconstruction: Reconstruction,
}

impl Rung {
    /// The next one up: from 16-bit floating to fixed point, which has more digits; then the iteration becomes as precise
    /// as the solver's check, then the check double, then the iteration too, and at last on the very links.
    fn next(self) -> Option<Rung> {
        use IterationPrecision as P;
        match self {
            Rung { precision: P::Fp16, .. } => Some(Rung { precision: P::Half, ..self }),
            Rung { precision: P::Half, .. } => Some(Rung { precision: P::Single, ..self }),
            Rung { outer: P::Single, .. } => Some(Rung { outer: P::Double, ..self }),
            Rung { precision: P::Single, .. } => Some(Rung { precision: P::Double, ..self }),
            Rung { reconstruction: Reconstruction::Eighteen, .. } => None,
            _ => Some(Rung { reconstruction: Reconstruction::Eighteen, ..self }),
        }
    }
}

/// Whether more precision can help.
fn may_climb(error: &SolverError) -> bool {
    match error {
        SolveError::Stagnation { .. } | SolveError::Breakdown { .. } | SolveError::NotPositiveDefinite { .. } => true,
        // Not where the source is no number to begin with.
        SolveError::NotANumber { iteration, .. } => *iteration > 0,
        _ => false,
    }
}

/// Counts on from the iterations of the solves before.
struct After<'a, O> {
    observer: &'a mut O,
    iterations: usize,
}
impl<O: Observer> Observer for After<'_, O> {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self.observer.iteration(&Iteration { iteration: self.iterations + event.iteration, ..*event })
    }
}

/// The system in the two precisions of a solver.
struct Levels<B: Backend, K> {
    outer_space: AnySpace<B, K>,
    outer: AnyOperator<B, K>,
    sloppy_space: AnySpace<B, K>,
    sloppy: AnyOperator<B, K>,
    /// Whether the operator is Hermitian and positive.
    positive: bool,
}

impl<B: Backend, K: FieldKind> Levels<B, K> {
    fn new(formats: &impl Formats<B, K>, rung: Rung, nrhs: usize) -> Result<Self> {
        let domain = formats.domain();
        Ok(Levels {
            outer_space: AnySpace::new(domain, nrhs, rung.outer),
            outer: match rung.outer {
                IterationPrecision::Double => AnyOperator::Double(formats.exact()),
                other => formats.any(other, Reconstruction::Eighteen)?,
            },
            sloppy_space: AnySpace::new(domain, nrhs, rung.precision),
            sloppy: formats.any(rung.precision, rung.reconstruction)?,
            positive: formats.exact().is_positive(),
        })
    }
    /// Runs the method asked for.
    fn iterate<O: Copy>(
        &self,
        rung: Rung,
        rhs: &AnyField<B, K>,
        x: &mut AnyField<B, K>,
        tol: f64,
        request: &Request<O>,
        observer: &mut impl Observer,
    ) -> std::result::Result<Info, SolverError> {
        let system = Mixed::new(&self.outer_space, &self.outer, &self.sloppy_space, &self.sloppy);
        match request.correction {
            Correction::Reliable { delta } => {
                // On the very same links and in the same precision the iteration needs no reliable updates.
                // Reconstructed links are others, if only a little: those of a file in single precision are unitary to
                // 1e-7 only, and so far from their reconstruction.
                let default = match rung.reconstruction {
                    _ if rung.precision != rung.outer => None,
                    Reconstruction::Eighteen => Some(0.0),
                    _ => Some(1e-4),
                };
                krylov(&system, rhs, x, tol, delta.or(default), self.positive, request, observer)
            }
            Correction::Defect { inner_tol } => {
                let inner = Uniform::new(&self.sloppy_space, &self.sloppy);
                let max_iterations = request.max_iterations;
                let params = DefectParams { tol, inner_tol, max_iterations, max_corrections: 1000, max_stalls: 3 };
                let mut workspace = DefectWorkspace::new(&system).map_err(SolveError::Backend)?;
                let seen = RefCell::new(Nested { observer, iterations: 0, level: 1.0, residuals: Vec::new() });
                let solve = |r: &AnyField<B, K>, e: &mut AnyField<B, K>, asked: &solvers::InnerRequest| {
                    let mut inside = |event: &Iteration<'_>| seen.borrow_mut().inside(event);
                    let request = Request { max_iterations: asked.max_iterations, ..*request };
                    krylov(&inner, r, e, asked.tol, Some(0.0), self.positive, &request, &mut inside)
                };
                let mut outside = |event: &Iteration<'_>| seen.borrow_mut().outside(event);
                defect_correction(&system, rhs, x, &params, &mut workspace, solve, &mut outside)
            }
        }
    }
}

/// Shows the iterations of inner and outer solver to one observer.
struct Nested<'a, O> {
    observer: &'a mut O,
    /// Of the inner solves before.
    iterations: usize,
    /// The residual that the inner solve began with.
    level: f64,
    residuals: Vec<f64>,
}
impl<O: Observer> Nested<'_, O> {
    fn outside(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        (self.iterations, self.level) = (event.iteration, event.worst());
        self.observer.iteration(event)
    }
    fn inside(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self.residuals.clear();
        self.residuals.extend(event.residuals.iter().map(|r| r * self.level));
        let iteration = self.iterations + event.iteration;
        self.observer.iteration(&Iteration { iteration, residuals: &self.residuals, kind: Kind::Iterate })
    }
}

/// Runs the Krylov method asked for.
#[allow(clippy::too_many_arguments)]
fn krylov<Y: System<Error = DeviceError>, O: Copy>(
    system: &Y,
    rhs: &Precise<Y>,
    x: &mut Precise<Y>,
    tol: f64,
    delta: Option<f64>,
    positive: bool,
    request: &Request<O>,
    observer: &mut impl Observer,
) -> std::result::Result<Info, SolverError> {
    let Request { max_iterations, stagnation_window, .. } = *request;
    match request.method {
        Method::Bicgstab => {
            let params = BicgstabParams { tol, max_iterations, delta, stagnation_window, ..Default::default() };
            let mut workspace = BicgstabWorkspace::new(system).map_err(SolveError::Backend)?;
            bicgstab(system, rhs, x, &params, &mut workspace, observer)
        }
        Method::Cg | Method::Cgne if positive => {
            let params = CgParams { tol, max_iterations, delta, stagnation_window, ..Default::default() };
            let mut workspace = CgWorkspace::new(system).map_err(SolveError::Backend)?;
            cg(system, rhs, x, &params, &mut workspace, observer)
        }
        Method::Cg | Method::Cgne => {
            let params = CgParams { tol, max_iterations, delta, stagnation_window, ..Default::default() };
            let mut workspace = CgNormalWorkspace::new(system).map_err(SolveError::Backend)?;
            match request.method {
                Method::Cg => cgnr(system, rhs, x, &params, &mut workspace, observer),
                _ => cgne(system, rhs, x, &params, &mut workspace, observer),
            }
        }
    }
}

/// The full system in double, and its answer.
struct Problem<B: Backend, K: FieldKind> {
    space: FieldSpace<B, K, Double>,
    operator: Rc<dyn EvenOdd<B, K, Double>>,
    eta: FullField<B, K, Double>,
    psi: FullField<B, K, Double>,
    /// Of the Schur complement.
    rhs: DeviceField<B, K, Double>,
    /// ‖η_j‖
    source_norms: Vec<f64>,
    /// ‖η̂_j‖
    rhs_norms: Vec<f64>,
}

impl<B: Backend, K: FieldKind> Problem<B, K> {
    fn new(
        domain: &Domain<B>,
        operator: Rc<dyn EvenOdd<B, K, Double>>,
        sources: &[HostField<K::Host>],
        guess: Option<&[HostField<K::Host>]>,
    ) -> Result<Self> {
        let nrhs = sources.len();
        let space = FieldSpace::<B, K, Double>::new(domain, nrhs);
        let mut eta = FullField::zero(domain, nrhs)?;
        eta.upload(sources)?;
        let mut psi = FullField::zero(domain, nrhs)?;
        if let Some(guess) = guess {
            psi.upload(guess)?;
        }
        let mut rhs = space.allocate()?;
        operator.prepare(&eta, &mut rhs)?;
        let (even, odd) = (norms(&space, &eta.even)?, norms(&space, &eta.odd)?);
        let source_norms = even.into_iter().zip(odd).map(|(e, o)| e.hypot(o)).collect();
        let rhs_norms = norms(&space, &rhs)?;
        Ok(Problem { space, operator, eta, psi, rhs, source_norms, rhs_norms })
    }
    /// What a relative residual of the full system is worth as one of the Schur complement, at most 1.
    fn residual_ratio(&self) -> f64 {
        let pairs = self.source_norms.iter().zip(&self.rhs_norms).filter(|(_, rhs)| **rhs > 0.0);
        let smallest = pairs.map(|(source, rhs)| source / rhs).fold(f64::INFINITY, f64::min);
        (smallest / self.operator.residual_factor()).min(1.0)
    }
    /// ψ_o from ψ_e, then ‖η_j − M ψ_j‖ / ‖η_j‖, zero for η_j = 0 and ψ_j = 0.
    fn residuals(&mut self) -> Result<Vec<f64>> {
        self.operator.reconstruct(&self.eta, &mut self.psi)?;
        let nrhs = self.space.nrhs();
        let (mut squares, mut parts) = (vec![0.0; nrhs], vec![0.0; nrhs]);
        let mut image = self.space.allocate()?;
        for parity in 0..2 {
            self.operator.row(parity, false, &self.psi, &mut image)?;
            self.space.sub_norm2(self.eta.parity(parity), &mut image, &mut parts)?;
            squares.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part);
        }
        let relative = |(square, norm): (f64, &f64)| if *norm > 0.0 { square.sqrt() / norm } else { square.sqrt() };
        Ok(squares.into_iter().zip(&self.source_norms).map(relative).collect())
    }
}

/// ‖x_j‖
fn norms<B: Backend, K: FieldKind>(
    space: &FieldSpace<B, K, Double>,
    x: &DeviceField<B, K, Double>,
) -> Result<Vec<f64>> {
    let mut norms = vec![0.0; space.nrhs()];
    space.norm2(x, &mut norms)?;
    norms.iter_mut().for_each(|n| *n = n.sqrt());
    Ok(norms)
}
