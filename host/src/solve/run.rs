//! The course of a solve: the solver, the check of its answer, and the ladder of precisions.
use super::configuration::{Configuration, Operators};
use super::report::{Climb, Report, SolveFailure};
use super::request::{Correction, IterationPrecision, Method, Reconstruction, Request};
use crate::backend::Backend;
use crate::dirac::EvenOdd;
use crate::domain::{DeviceError, Result};
use crate::field::host::HostSpinor;
use crate::field::{AnyOperator, AnySpace, AnySpinor, DeviceSpinor, FullSpinor, SpinorSpace};
use gpu_kernels::storage::Double;
use solvers::{
    BicgstabParams, BicgstabWorkspace, CgNormalWorkspace, CgParams, DefectParams, DefectWorkspace, Info, Iteration,
    Kind, Mixed, Observer, Precise, SolveError, System, Uniform, VectorSpace, bicgstab, cgne, cgnr, defect_correction,
};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

type SolverError = SolveError<DeviceError>;

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
    ) -> std::result::Result<(Vec<HostSpinor>, Report), SolveFailure> {
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
        match fixed.solve_here(&rotate(sources), guess.map(rotate).as_deref(), request, observer) {
            Ok((solutions, report)) => Ok((back(solutions), report)),
            Err(SolveFailure::Unfinished { error, solutions, report }) => {
                Err(SolveFailure::Unfinished { error, solutions: back(solutions), report })
            }
            Err(failure) => Err(failure),
        }
    }
    /// The same, in the gauge of this configuration.
    fn solve_here(
        &self,
        sources: &[HostSpinor],
        guess: Option<&[HostSpinor]>,
        request: &Request,
        observer: &mut impl Observer,
    ) -> std::result::Result<(Vec<HostSpinor>, Report), SolveFailure> {
        let begin = Instant::now();
        let nrhs = sources.len();
        let reconstruction = self.possible(request.reconstruction, request.precision)?;
        let mut rung = Rung { outer: request.outer, precision: request.precision, reconstruction };
        rung.check().map_err(|why| SolveFailure::Solver(SolveError::Invalid(why)))?;
        let operators = Operators::new(self, request.operator, nrhs)?;
        let mut system = Levels::new(self, &operators, rung, nrhs)?;
        let mut problem = Problem::new(self, operators.exact(), sources, guess)?;
        self.release_staged();

        // What the solver is asked for is a residual of the Schur complement, relative to its right-hand side.
        let mut tol = request.tol * problem.residual_ratio();
        self.domain().backend().synchronize().map_err(DeviceError::from)?;
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
                    system = Levels::new(self, &operators, rung, nrhs)?;
                    self.release_staged();
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
}

/// A rung of the ladder.
#[derive(Clone, Copy, PartialEq)]
struct Rung {
    outer: IterationPrecision,
    precision: IterationPrecision,
    reconstruction: Reconstruction,
}

impl Rung {
    fn check(&self) -> std::result::Result<(), &'static str> {
        use IterationPrecision as P;
        match (self.outer, self.precision) {
            (P::Double, _) | (P::Single, P::Single | P::Half | P::Fp16) => Ok(()),
            (P::Single, P::Double) => Err("the outer precision must not be below that of the iteration"),
            (P::Half | P::Fp16, _) => Err("the outer precision is double or single"),
        }
    }
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
struct Levels<B: Backend> {
    outer_space: AnySpace<B>,
    outer: AnyOperator<B>,
    sloppy_space: AnySpace<B>,
    sloppy: AnyOperator<B>,
}

impl<B: Backend> Levels<B> {
    fn new(configuration: &Configuration<B>, operators: &Operators<B>, rung: Rung, nrhs: usize) -> Result<Self> {
        let domain = configuration.domain();
        Ok(Levels {
            outer_space: AnySpace::new(domain, nrhs, rung.outer),
            outer: match rung.outer {
                IterationPrecision::Double => AnyOperator::Double(operators.exact()),
                other => operators.any(other, Reconstruction::Eighteen)?,
            },
            sloppy_space: AnySpace::new(domain, nrhs, rung.precision),
            sloppy: operators.any(rung.precision, rung.reconstruction)?,
        })
    }
    /// Runs the method asked for.
    fn iterate(
        &self,
        rung: Rung,
        rhs: &AnySpinor<B>,
        x: &mut AnySpinor<B>,
        tol: f64,
        request: &Request,
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
                krylov(&system, rhs, x, tol, delta.or(default), request, observer)
            }
            Correction::Defect { inner_tol } => {
                let inner = Uniform::new(&self.sloppy_space, &self.sloppy);
                let max_iterations = request.max_iterations;
                let params = DefectParams { tol, inner_tol, max_iterations, max_corrections: 1000, max_stalls: 3 };
                let mut workspace = DefectWorkspace::new(&system).map_err(SolveError::Backend)?;
                let seen = RefCell::new(Nested { observer, iterations: 0, level: 1.0, residuals: Vec::new() });
                let solve = |r: &AnySpinor<B>, e: &mut AnySpinor<B>, asked: &solvers::InnerRequest| {
                    let mut inside = |event: &Iteration<'_>| seen.borrow_mut().inside(event);
                    let request = Request { max_iterations: asked.max_iterations, ..*request };
                    krylov(&inner, r, e, asked.tol, Some(0.0), &request, &mut inside)
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
fn krylov<Y: System<Error = DeviceError>>(
    system: &Y,
    rhs: &Precise<Y>,
    x: &mut Precise<Y>,
    tol: f64,
    delta: Option<f64>,
    request: &Request,
    observer: &mut impl Observer,
) -> std::result::Result<Info, SolverError> {
    let Request { max_iterations, stagnation_window, .. } = *request;
    match request.method {
        Method::Bicgstab => {
            let params = BicgstabParams { tol, max_iterations, delta, stagnation_window, ..Default::default() };
            let mut workspace = BicgstabWorkspace::new(system).map_err(SolveError::Backend)?;
            bicgstab(system, rhs, x, &params, &mut workspace, observer)
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
struct Problem<B: Backend> {
    space: SpinorSpace<B, Double>,
    operator: Rc<dyn EvenOdd<B, Double>>,
    eta: FullSpinor<B, Double>,
    psi: FullSpinor<B, Double>,
    /// Of the Schur complement.
    rhs: DeviceSpinor<B, Double>,
    /// ‖η_j‖
    source_norms: Vec<f64>,
    /// ‖η̂_j‖
    rhs_norms: Vec<f64>,
}

impl<B: Backend> Problem<B> {
    fn new(
        configuration: &Configuration<B>,
        operator: Rc<dyn EvenOdd<B, Double>>,
        sources: &[HostSpinor],
        guess: Option<&[HostSpinor]>,
    ) -> Result<Self> {
        let (domain, nrhs) = (configuration.domain(), sources.len());
        let space = SpinorSpace::<B, Double>::new(domain, nrhs);
        let mut eta = FullSpinor::zero(domain, nrhs)?;
        eta.upload(sources)?;
        let mut psi = FullSpinor::zero(domain, nrhs)?;
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
fn norms<B: Backend>(space: &SpinorSpace<B, Double>, x: &DeviceSpinor<B, Double>) -> Result<Vec<f64>> {
    let mut norms = vec![0.0; space.nrhs()];
    space.norm2(x, &mut norms)?;
    norms.iter_mut().for_each(|n| *n = n.sqrt());
    Ok(norms)
}
