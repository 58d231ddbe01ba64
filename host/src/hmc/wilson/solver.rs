//! Solution of systems with M̂ of Wilson-like quarks, by the methods of [`solve`](crate::solve).
use super::multigrid::EvolvingMultigrid;
use super::{TwistedComplement, WilsonQuarks, space};
use crate::domain::{Domain, Result};
use crate::field::{DeviceField, FieldShape, FieldSpace};
use crate::hmc::HmcError;
use crate::hmc::fermions::SolverError;
use crate::hmc::links::EvolvingLinks;
use crate::hmc::poles::{PATIENCE, SolverCounts};
use crate::multigrid::{CycleResult, MultigridParams};
use crate::operators::{EvenOdd, OperatorForm};
use crate::solve::{
    BlockMultigrid, Correction, Formats, Limits, Method, OperatorPair, PrecisionLevel, PreparedMethod, Request,
};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{Info, LinearOperator, Normal, Observer, SolveError, VectorSpace, worse_residual};
use std::cell::RefCell;
use std::rc::Rc;

/// Number of iterations without a new smallest residual after which a restarting method gives up; it could otherwise stagnate for ever.
const WINDOW: usize = 500;

/// M̂ of quarks in double precision and in the precision of iterations, with a method that solves its systems.
pub(super) struct ComplementSolver<'a> {
    pub space: FieldSpace,
    pub exact: Rc<TwistedComplement>,
    sloppy: Rc<TwistedComplement>,
    quarks: WilsonQuarks,
    links: &'a EvolvingLinks,
    request: Request,
    multigrid: Option<&'a EvolvingMultigrid>,
    /// Method prepared for the operator, made when it is first used.
    method: RefCell<Option<Box<dyn PreparedMethod>>>,
    /// Whether true residuals are recorded.
    noted: bool,
}

/// Adjoint operator M̂†.
struct Adjoint<'a>(&'a TwistedComplement);
impl LinearOperator<FieldSpace> for Adjoint<'_> {
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> Result {
        self.0.apply_dagger(x, out)
    }
    fn apply_dagger(&self, x: &DeviceField, out: &mut DeviceField) -> Result {
        self.0.apply(x, out)
    }
    fn flops(&self) -> f64 {
        self.0.flops()
    }
}

impl<'a> ComplementSolver<'a> {
    /// Prepares to solve systems with one right-hand side, by the method of `request` and with its precision and limits. True residuals are
    /// recorded if `noted` is set. CG replaces multigrid for operators with a twist, whose spectrum does not suit BiCGstab. BiCGstab
    /// replaces multigrid for other operators if `multigrid` is `None`.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn new(
        quarks: &WilsonQuarks,
        links: &'a EvolvingLinks,
        request: &Request,
        multigrid: Option<&'a EvolvingMultigrid>,
        noted: bool,
    ) -> Result<Self> {
        let method = match request.method == Method::MULTIGRID {
            true if quarks.is_twisted() => Method::CG,
            true if multigrid.is_none() => Method::BICGSTAB,
            _ => request.method,
        };
        let stagnation_window = if method.restarts { WINDOW } else { 0 };
        // An iteration in double precision uses the same operator as the check, so it needs no reliable updates: δ is 0.
        let delta = (request.precision == Precision::Double).then_some(0.0);
        let correction = Correction::Reliable { delta };
        let operator = quarks.operator.into();
        let request = Request { operator, method, correction, stagnation_window, ..*request };
        let space = space(links.own().domain(), Precision::Double, 1);
        let exact = Rc::new(quarks.on(links, Precision::Double, 1)?);
        let sloppy = match request.precision {
            Precision::Double => Rc::clone(&exact),
            precision => Rc::new(quarks.on(links, precision, 1)?),
        };
        let (quarks, method) = (*quarks, RefCell::default());
        Ok(ComplementSolver { space, exact, sloppy, quarks, links, request, multigrid, method, noted })
    }
    /// Computes \[X, Y\] with M̂†M̂ X = b and Y = M̂ X, from a guess of X. Methods of the normal equations solve for X at once; other
    /// methods solve M̂† Y = b, and then M̂ X = Y.
    pub fn solve_normal(
        &self,
        name: &str,
        b: &DeviceField,
        guess: Option<DeviceField>,
        counts: &SolverCounts,
    ) -> std::result::Result<[DeviceField; 2], HmcError> {
        let mut x = match guess {
            Some(guess) => guess,
            None => self.space.allocate()?,
        };
        if self.request.method.is_normal {
            let mut y = self.space.allocate()?;
            self.solve(name, OperatorForm::Normal, b, &mut x, counts)?;
            self.exact.apply(&x, &mut y)?;
            return Ok([x, y]);
        }
        let before = counts.iterations.get();
        let y = self.solve_dagger(name, b, Some(&x), counts)?;
        self.solve(name, OperatorForm::Plain, &y, &mut x, counts)?;
        if let (Some(multigrid), false) = (self.used_multigrid(), self.noted) {
            multigrid.note(counts.iterations.get() - before);
        }
        Ok([x, y])
    }
    /// Solves M̂† Y = b for Y, from a guess of (M̂†M̂)⁻¹ b. Methods of the normal equations ignore the guess.
    pub fn solve_dagger(
        &self,
        name: &str,
        b: &DeviceField,
        guess: Option<&DeviceField>,
        counts: &SolverCounts,
    ) -> std::result::Result<DeviceField, HmcError> {
        if self.request.method.is_normal {
            let [_, y] = self.solve_normal(name, b, None, counts)?;
            return Ok(y);
        }
        let mut y = self.space.allocate()?;
        if let Some(guess) = guess {
            self.exact.apply(guess, &mut y)?;
        }
        self.solve(name, OperatorForm::Dagger, b, &mut y, counts)?;
        Ok(y)
    }
    /// Solves for x from the guess in it, and records the work of the method. If the method gave up, true residuals decide whether the
    /// tolerance was reached.
    fn solve(
        &self,
        name: &str,
        form: OperatorForm,
        b: &DeviceField,
        x: &mut DeviceField,
        counts: &SolverCounts,
    ) -> std::result::Result<(), HmcError> {
        let failed = |why| HmcError::Solver { quarks: name.into(), why: Box::new(why) };
        let in_setup = |why| HmcError::Solver { quarks: format!("{name}, multigrid"), why: Box::new(why) };
        self.prepare().map_err(in_setup)?;
        let old = self.used_multigrid().filter(|multigrid| multigrid.is_used());
        let mut solved = self.iterate(form, b, x);
        if let (Some(multigrid), Err(error)) = (old, &solved)
            && !matches!(error, SolveError::Backend(_) | SolveError::Cancelled { .. })
        {
            // The setup belongs to earlier links that differ too much. `method`, which holds the setup, is dropped before the refresh,
            // because two setups at once would take too much memory.
            self.method.take();
            multigrid.refresh(&self.quarks, self.links).map_err(failed)?;
            self.prepare().map_err(in_setup)?;
            solved = self.iterate(form, b, x);
        }
        let info = solved.or_else(|error| error.unless_converged(self.request.tol)).map_err(failed)?;
        counts.iterations.set(counts.iterations.get() + info.iterations_per_rhs.iter().sum::<usize>());
        if self.noted {
            counts.residual.set(info.true_residual.iter().copied().fold(counts.residual.get(), worse_residual));
        }
        Ok(())
    }
    /// Returns the setup that follows the links, if multigrid is the method.
    fn used_multigrid(&self) -> Option<&'a EvolvingMultigrid> {
        self.multigrid.filter(|_| self.request.method == Method::MULTIGRID)
    }
    fn prepare(&self) -> std::result::Result<(), SolverError> {
        if self.method.borrow().is_none() {
            let (storage, mut stop) = (self.quarks.storage(self.request.precision), self.links.setup_stop().clone());
            let made = (self.request.method.prepare)(self, &self.request, storage, &mut stop)?;
            self.method.replace(Some(made));
        }
        Ok(())
    }
    /// Runs the method on M̂, M̂† or M̂†M̂.
    fn iterate(
        &self,
        form: OperatorForm,
        b: &DeviceField,
        x: &mut DeviceField,
    ) -> std::result::Result<Info, SolverError> {
        let (tol, precision) = (self.request.tol, self.request.precision);
        let max_iterations = self.request.iteration_limit(None);
        let sloppy_space = space(self.space.domain(), precision, 1);
        let outer = in_form(form, &self.exact, &self.space)?;
        let sloppy = match precision {
            Precision::Double => Rc::clone(&outer),
            _ => in_form(form, &self.sloppy, &sloppy_space)?,
        };
        let pair = OperatorPair {
            level: PrecisionLevel {
                outer: Precision::Double,
                precision,
                reconstruction: self.quarks.storage(precision),
            },
            outer_space: space(self.space.domain(), Precision::Double, 1),
            outer,
            sloppy_space,
            sloppy,
            positive: (form == OperatorForm::Normal).then_some(0.0),
            adjoint: form == OperatorForm::Dagger,
        };
        let limits = Limits { tol, max_iterations, patience: Some(PATIENCE), request: &self.request };
        let method = self.method.borrow();
        let method = method.as_ref().expect("it is prepared before it is used");
        let solved = method.iterate(&pair, b, x, &limits, &mut self.links.stop().clone());
        if let Some(multigrid) = self.used_multigrid() {
            multigrid.set_used();
        }
        solved
    }
}

/// Returns M̂, M̂† or M̂†M̂.
fn in_form<'a>(
    form: OperatorForm,
    complement: &'a Rc<TwistedComplement>,
    space: &FieldSpace,
) -> Result<Rc<dyn LinearOperator<FieldSpace> + 'a>> {
    Ok(match form {
        OperatorForm::Plain => Rc::clone(complement) as _,
        OperatorForm::Dagger => Rc::new(Adjoint(complement)),
        OperatorForm::Normal => Rc::new(Normal::new(space, &**complement)?),
    })
}

/// Formats of M̂ without the twist of factors.
impl Formats for ComplementSolver<'_> {
    fn domain(&self) -> &Domain {
        self.links.own().domain()
    }
    fn shape(&self, precision: Precision, nrhs: usize) -> FieldShape {
        FieldShape::spinors(precision, nrhs)
    }
    fn exact(&self) -> Rc<dyn EvenOdd> {
        self.exact.inner.clone()
    }
    fn any(&self, precision: Precision, _: LinkStorage) -> Result<Rc<dyn EvenOdd>> {
        Ok(Rc::new(self.quarks.complement(self.links, precision, 1)?))
    }
    fn has(&self, precision: Precision, storage: LinkStorage) -> bool {
        self.quarks.operator.definition.exists(precision, storage)
    }
    fn multigrid(
        &self,
        _: &MultigridParams,
        _: LinkStorage,
        observer: &mut dyn Observer,
    ) -> CycleResult<Option<BlockMultigrid>> {
        self.multigrid.map(|multigrid| multigrid.on(&self.quarks, self.links, observer)).transpose()
    }
    fn release_device_links(&self) {}
}
