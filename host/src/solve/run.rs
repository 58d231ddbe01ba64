//! Steps of a solve: the even-odd system, its iteration with precision escalation, reconstruction, and the check of the solution.
use super::configuration::Configuration;
use super::escalation::{EscalatedSolve, ParitySystem, solve_escalating};
use super::formats::{Formats, MultigridState};
use super::methods::Method;
use super::report::{Report, SolveFailure, gflops};
use super::request::Request;
use super::scale::{Exponents, OutOfRange, Scales};
use crate::domain::{Domain, Result};
use crate::field::host::{ColourVector, Fermion, HostField, Spinor};
use crate::field::{DeviceField, FieldShape, FieldSpace, FullField};
use crate::operators::{EvenOdd, Operator, OperatorForm};
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use solvers::{Observer, SolveError, Unsolved, VectorSpace};
use std::rc::Rc;
use std::time::Instant;

/// Fault of a staggered operator that is not positive definite.
const NO_MASS: &str = "the mass of the staggered operator is 0: give another mass";

/// Solutions with their report. The solutions need not have converged: see [`Report::converged`].
pub type Solved<T> = std::result::Result<(Vec<HostField<T>>, Report), SolveFailure<T>>;

impl Configuration<'_> {
    /// Solves M ψ_j = η_j for all sources together, from a guess or from zero. Sources are spinors for Wilson-like operators and colour
    /// vectors for staggered operators. The mass of a staggered operator must not be zero. The observer receives every iteration and can
    /// stop the solve.
    ///
    /// If rounding ends the solve above the tolerance, the solutions are returned with a report that has not converged.
    ///
    /// # Errors
    /// [`SolveFailure`], with the best iterates if the solver gave up.
    pub fn solve<F: Fermion>(
        &self,
        sources: &[HostField<F>],
        guess: Option<&[HostField<F>]>,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> Solved<F> {
        let begin = Instant::now();
        super::expect_sources(self.domain(), sources, guess)?;
        if request.operator.is_positive() && request.operator.mass() == 0.0 {
            return Err(SolveFailure::Solver(SolveError::Invalid(NO_MASS)));
        }
        let exponents = Exponents::of(self.domain(), sources)?;
        let sources = exponents.apply(sources);
        let guess = guess.map(|guess| exponents.apply_to_guess(self.domain(), guess)).transpose()?;
        let solved = self.solve_in_range(&sources, guess.as_deref(), request, observer, begin);
        let restore = |solutions: &mut [HostField<F>]| -> std::result::Result<(), SolveFailure<F>> {
            exponents.undo(self.domain(), solutions)?.map_err(|OutOfRange(rhs)| SolveFailure::OutOfRange(rhs))
        };
        match solved {
            Ok((mut solutions, report)) => restore(&mut solutions).map(|()| (solutions, report)),
            Err(SolveFailure::Unfinished { error, mut solutions, report }) => {
                restore(&mut solutions)?;
                Err(SolveFailure::Unfinished { error, solutions, report })
            }
            Err(other) => Err(other),
        }
    }
    /// Solves M ψ_j = η_j for sources on the device, in double precision. Squares of their numbers must be representable in double
    /// precision. Solutions stay on the device; if the solver gave up, the reason is returned with them. For links in temporal gauge, and
    /// for a boundary condition that is spread over all links, fields are copied to the host and back.
    ///
    /// # Errors
    /// [`SolveFailure`]
    pub fn solve_fields(
        &self,
        sources: FullField,
        guess: Option<FullField>,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> SolvedFields {
        let begin = Instant::now();
        let invalid = |why| Err(SolveFailure::Solver(SolveError::Invalid(why)));
        let operator = &request.operator;
        if operator.is_positive() && operator.mass() == 0.0 {
            return invalid(NO_MASS);
        }
        if operator.kind() != sources.even.kind() {
            return invalid(
                "the fields do not match the operator: Wilson-like operators act on spinors, staggered ones \
                            on colour vectors",
            );
        }
        let nrhs = sources.even.nrhs();
        for field in std::iter::once(&sources).chain(&guess) {
            for part in [&field.even, &field.odd] {
                part.expect(self.domain(), operator.shape(Precision::Double, nrhs))?;
            }
        }
        if operator.is_spread() || operator.storage(request.reconstruction).temporal {
            return match operator.kind() {
                FermionKind::Wilson => self.solve_on_host::<Spinor>(sources, guess, request, observer),
                FermionKind::Staggered => self
                    .solve_on_host::<ColourVector>(sources, guess, request, observer)
                    .map_err(SolveFailure::forget_solutions),
            };
        }
        let request = match operator.kind() {
            FermionKind::Wilson => self.checked::<Spinor>(request)?,
            FermionKind::Staggered => self.checked::<ColourVector>(request).map_err(SolveFailure::forget_solutions)?,
        };
        let formats = self.formats(request.operator.clone(), nrhs)?;
        solve_on_device(&*formats, sources, guess, &request, observer, begin)
    }
    /// *Collective.* Returns the residuals ‖η_j − M ψ_j‖ / ‖η_j‖ of the full system for sources and solutions on the device, in double
    /// precision with all reals of the links. It is the equivalent of [`Report::true_residual`] for solutions from elsewhere. If η_j is
    /// zero, the residual is ‖M ψ_j‖.
    ///
    /// # Errors
    /// Solutions of another kind, precision or number than the sources; fields on another lattice or device; failures of the device.
    pub fn true_residuals(
        &self,
        sources: &FullField,
        solutions: FullField,
        operator: impl Into<Operator>,
    ) -> std::result::Result<Vec<f64>, SolveFailure> {
        let operator = operator.into();
        let nrhs = sources.even.nrhs();
        let shape = operator.shape(Precision::Double, nrhs);
        for field in [sources, &solutions] {
            for part in [&field.even, &field.odd] {
                part.expect(self.domain(), shape)?;
            }
        }
        let mut images = if operator.is_spread() {
            // The phases of the spread boundary condition are applied to fields on the host.
            let solutions = solutions.download::<ColourVector>()?;
            let applied =
                self.apply(OperatorForm::Plain, false, &solutions, operator, Precision::Double, LinkStorage::FULL);
            let (images, _) = applied.map_err(SolveFailure::forget_solutions)?;
            FullField::of_host(self.domain(), &images)?
        } else {
            self.apply_field(OperatorForm::Plain, solutions, operator)?
        };
        let space = FieldSpace::new(self.domain(), shape);
        let (even, odd) = (norms(&space, &sources.even)?, norms(&space, &sources.odd)?);
        let (mut squares, mut parts) = (vec![0.0; nrhs], vec![0.0; nrhs]);
        for parity in 0..2 {
            space.sub_norm2(sources.parity(parity), images.parity_mut(parity), &mut parts)?;
            squares.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part);
        }
        let norms = even.into_iter().zip(odd).map(|(even, odd)| even.hypot(odd));
        let relative = |(square, norm): (f64, f64)| if norm > 0.0 { square.sqrt() / norm } else { square.sqrt() };
        Ok(squares.into_iter().zip(norms).map(relative).collect())
    }
    /// Performs [`solve_fields`](Self::solve_fields) through the host.
    fn solve_on_host<F: Fermion>(
        &self,
        sources: FullField,
        guess: Option<FullField>,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> std::result::Result<(FullField, Report, Option<Unsolved>), SolveFailure<F>> {
        // Each field is dropped after its copy, so that its memory on the device is free for the solve.
        let to_host = |field: FullField| field.download::<F>();
        let (sources, guess) = (to_host(sources)?, guess.map(to_host).transpose()?);
        let (solutions, report, error) = match self.solve(&sources, guess.as_deref(), request, observer) {
            Ok((solutions, report)) => (solutions, report, None),
            Err(SolveFailure::Unfinished { error, solutions, report }) => (solutions, *report, Some(error)),
            Err(failure) => return Err(failure),
        };
        Ok((FullField::of_host(self.domain(), &solutions)?, report, error))
    }
    /// Solves for sources on the host whose norms double precision can represent.
    fn solve_in_range<F: Fermion>(
        &self,
        sources: &[HostField<F>],
        guess: Option<&[HostField<F>]>,
        request: &Request,
        observer: &mut dyn Observer,
        begin: Instant,
    ) -> Solved<F> {
        let temporal = request.operator.storage(request.reconstruction).temporal;
        if temporal && request.operator.kind() == FermionKind::Wilson {
            let (fixed, transformation) = self.in_temporal_gauge()?;
            let rotate = |fields: &[HostField<F>]| {
                let mut rotated = fields.to_vec();
                rotated.iter_mut().for_each(|field| transformation.apply(field));
                rotated
            };
            let back =
                |fields: &mut [HostField<F>]| fields.iter_mut().for_each(|field| transformation.apply_inverse(field));
            let solved = fixed.solve_here(&rotate(sources), guess.map(rotate).as_deref(), request, observer, begin);
            return taken_back(solved, back);
        }
        let there = |fields| self.spread_phases(&request.operator, fields);
        let solved = self.solve_here(&there(sources), guess.map(there).as_deref(), request, observer, begin);
        taken_back(solved, |fields| self.take_spread_phases_back(&request.operator, fields))
    }
    /// Solves for sources on the host in the gauge in which kernels compute.
    fn solve_here<F: Fermion>(
        &self,
        sources: &[HostField<F>],
        guess: Option<&[HostField<F>]>,
        request: &Request,
        observer: &mut dyn Observer,
        begin: Instant,
    ) -> Solved<F> {
        let request = self.checked(request)?;
        let formats = self.formats(request.operator.clone(), sources.len())?;
        solve(&*formats, sources, guess, &request, observer, begin)
    }
}

/// Applies a gauge transformation to the solutions, back to the gauge of the user.
fn taken_back<F: Fermion>(solved: Solved<F>, back: impl Fn(&mut [HostField<F>])) -> Solved<F> {
    let back = |mut fields: Vec<HostField<F>>| {
        back(&mut fields);
        fields
    };
    solved.map(|(solutions, report)| (back(solutions), report)).map_err(|failure| failure.with_solutions(back))
}

/// Solves for sources on the host, with a link storage that is available. `begin` is the time at which the user's call began.
fn solve<F: Fermion>(
    formats: &dyn Formats,
    sources: &[HostField<F>],
    guess: Option<&[HostField<F>]>,
    request: &Request,
    observer: &mut dyn Observer,
    begin: Instant,
) -> Solved<F> {
    let field = || FullField::zero(formats.domain(), FieldShape::new(F::KIND, Precision::Double, sources.len()));
    let uploaded = |fields: &[HostField<F>]| -> Result<FullField> {
        let mut there = field()?;
        there.upload(fields)?;
        Ok(there)
    };
    let (eta, guess) = (uploaded(sources)?, guess.map(uploaded).transpose()?);
    let (psi, mut report, failure) = solve_on_device(formats, eta, guess, request, observer, begin)?;
    let solutions = psi.download()?;
    report.total_seconds = begin.elapsed().as_secs_f64();
    match failure {
        None => Ok((solutions, report)),
        Some(error) => Err(SolveFailure::Unfinished { error, solutions, report: Box::new(report) }),
    }
}

/// Solutions on the device with their report, and the reason why a solver gave up, if it did.
pub type SolvedFields = std::result::Result<(FullField, Report, Option<Unsolved>), SolveFailure>;

/// Solves M ψ_j = η_j for all sources together, on the device.
fn solve_on_device<F: Fermion>(
    formats: &dyn Formats,
    eta: FullField,
    guess: Option<FullField>,
    request: &Request,
    observer: &mut dyn Observer,
    begin: Instant,
) -> std::result::Result<(FullField, Report, Option<Unsolved>), SolveFailure<F>> {
    let mut problem = FullSystem::new(formats.domain(), formats.exact(), eta, guess)?;
    // The solver's tolerance is for the residual of the Schur complement, relative to its right-hand side.
    let tol = request.tol * problem.residual_ratio();
    let escalated = solve_escalating(formats, &mut problem, tol, request, observer).map_err(SolveFailure::Solver)?;
    let EscalatedSolve {
        mut info,
        level,
        escalations,
        method,
        method_changes,
        tried,
        true_residual,
        failure,
        multigrid,
        seconds,
    } = escalated;
    problem.scales.undo(&problem.space, &mut problem.psi)?;
    // Only the true residual in double precision decides, even if a solver gave up.
    info.converged = true_residual.iter().all(|&r| r <= request.tol);
    let (failure, gave_up) = match failure {
        Some(error) if info.converged && !matches!(error, SolveError::Cancelled { .. }) => (None, Some(error)),
        other => (other, None),
    };
    info.forget_converged(|rhs| true_residual[rhs] <= request.tol);
    let may_help = match &failure {
        Some(error) => may_help(formats, request, &tried, error)?,
        None => None,
    };
    let report = Report {
        converged: info.converged,
        gflops: gflops(info.flops, seconds),
        info,
        precision: level.precision,
        outer: level.outer,
        reconstruction: level.reconstruction,
        escalations,
        method,
        method_changes,
        tried,
        may_help,
        gave_up,
        true_residual,
        multigrid,
        seconds,
        total_seconds: begin.elapsed().as_secs_f64(),
    };
    Ok((problem.psi, report, failure))
}

/// *Collective.* Returns a method that was not tried and may help if a Wilson-like system was not solved. CG on the normal equations comes
/// first, because it depends least on the positions of the eigenvalues.
fn may_help(
    formats: &dyn Formats,
    request: &Request,
    tried: &[&Method],
    error: &Unsolved,
) -> Result<Option<&'static Method>> {
    let is_hopeless = match error {
        SolveError::Cancelled { .. } | SolveError::Invalid(_) | SolveError::OutOfRange { .. } => true,
        // Iteration 0 means that the source itself is not a number.
        SolveError::NotANumber { iteration, .. } => *iteration == 0,
        _ => false,
    };
    if is_hopeless || formats.exact().positive().is_some() {
        return Ok(None);
    }
    Ok(if !tried.iter().any(|method| method.is_normal) {
        Some(Method::CG)
    } else if tried.iter().all(|method| method.is_normal) {
        Some(Method::AUTO)
    } else if !tried.contains(&Method::MULTIGRID)
        && formats.multigrid_state(&request.multigrid)? != MultigridState::Impossible
    {
        Some(Method::MULTIGRID)
    } else {
        None
    })
}

/// The full system in double precision, with its solution.
struct FullSystem {
    space: FieldSpace,
    operator: Rc<dyn EvenOdd>,
    eta: FullField,
    psi: FullField,
    /// Factors by which η and ψ are multiplied.
    scales: Scales,
    /// Right-hand side of the Schur complement.
    rhs: DeviceField,
    /// Norms ‖η_j‖.
    source_norms: Vec<f64>,
    /// Norms ‖η̂_j‖.
    rhs_norms: Vec<f64>,
}

impl FullSystem {
    fn new(domain: &Domain, operator: Rc<dyn EvenOdd>, mut eta: FullField, guess: Option<FullField>) -> Result<Self> {
        let shape = eta.even.shape().with_precision(Precision::Double);
        let space = FieldSpace::new(domain, shape);
        let mut psi = guess.map_or_else(|| FullField::zero(domain, shape), Ok)?;
        let (even, odd) = (norms(&space, &eta.even)?, norms(&space, &eta.odd)?);
        let source_norms: Vec<f64> = even.into_iter().zip(odd).map(|(e, o)| e.hypot(o)).collect();
        let scales = Scales::of(&source_norms, domain.global().volume());
        scales.apply(&space, &mut eta)?;
        scales.apply(&space, &mut psi)?;
        let source_norms = scales.norms(&source_norms);
        let mut rhs = space.allocate()?;
        operator.prepare(&eta, &mut rhs)?;
        let rhs_norms = norms(&space, &rhs)?;
        Ok(FullSystem { space, operator, eta, psi, scales, rhs, source_norms, rhs_norms })
    }
    /// Returns the relative residual of the Schur complement, divided by the relative residual of the full system to which it leads; at
    /// most 1.
    fn residual_ratio(&self) -> f64 {
        let pairs = self.source_norms.iter().zip(&self.rhs_norms).filter(|(_, rhs)| **rhs > 0.0);
        let smallest = pairs.map(|(source, rhs)| source / rhs).fold(f64::INFINITY, f64::min);
        // The factor may be negative, for example for a negative mass.
        (smallest / self.operator.residual_factor().abs()).min(1.0)
    }
}

impl ParitySystem for FullSystem {
    fn space(&self) -> &FieldSpace {
        &self.space
    }
    fn rhs(&self) -> &DeviceField {
        &self.rhs
    }
    fn solution(&mut self) -> &mut DeviceField {
        &mut self.psi.even
    }
    /// Computes ψ_o from ψ_e, then the residuals ‖η_j − M ψ_j‖ / ‖η_j‖, or ‖M ψ_j‖ for η_j = 0.
    fn residuals(&mut self) -> Result<Vec<f64>> {
        self.operator.reconstruct(&self.eta, &mut self.psi)?;
        let nrhs = self.space.nrhs();
        let (mut squares, mut parts) = (vec![0.0; nrhs], vec![0.0; nrhs]);
        let mut image = self.space.allocate()?;
        for parity in 0..2 {
            self.operator.apply_parity(parity, false, &self.psi, &mut image)?;
            self.space.sub_norm2(self.eta.parity(parity), &mut image, &mut parts)?;
            squares.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part);
        }
        let relative = |(square, norm): (f64, &f64)| if *norm > 0.0 { square.sqrt() / norm } else { square.sqrt() };
        Ok(squares.into_iter().zip(&self.source_norms).map(relative).collect())
    }
}

/// Computes ‖x_j‖.
pub(super) fn norms(space: &FieldSpace, x: &DeviceField) -> Result<Vec<f64>> {
    let mut norms = vec![0.0; space.nrhs()];
    space.norm2(x, &mut norms)?;
    norms.iter_mut().for_each(|n| *n = n.sqrt());
    Ok(norms)
}
