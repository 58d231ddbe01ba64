//! How systems of Wilson-like quarks are solved.
use super::multigrid::MultigridOnLinks;
use super::{TwistedComplement, WilsonQuarks, space};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceField, FieldSpace};
use crate::hmc::HmcError;
use crate::hmc::links::{EvolvingLinks, StopSignal};
use crate::hmc::poles::{PATIENCE, SolverCounts};
use crate::multigrid::{OUTER_DELTA, OUTER_DIRECTIONS};
use gpu_kernels::Precision;
use solvers::{
    BicgstabWorkspace, CgWorkspace, Converted, GcrParams, GcrWorkspace, Info, LinearOperator, Mixed, Normal,
    SolveError, SolverParams, Uniform, VectorSpace, bicgstab, cg, gcr, worse_residual,
};

/// Methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WilsonMethod {
    /// CG on M̂†M̂.
    #[default]
    Cg,
    /// BiCGstab on M̂† and then on M̂.
    Bicgstab,
    /// GCR on M̂† and then on M̂, preconditioned by a multigrid cycle, for an operator that has one. For others BiCGstab, or CG where they
    /// have a twist, whose spectrum BiCGstab does not like.
    Multigrid,
}

/// How systems are solved: in double precision with iterations in another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WilsonSolver {
    /// How.
    pub method: WilsonMethod,
    /// Of the iterations.
    pub precision: Precision,
    /// Relative residual.
    pub tol: f64,
    /// Most iterations of a system.
    pub max_iterations: usize,
}

/// M̂ of quarks in double and in the precision of iterations.
pub(super) struct WilsonSystem<'a> {
    pub space: FieldSpace,
    pub exact: TwistedComplement,
    sloppy: Option<(FieldSpace, TwistedComplement)>,
    solver: WilsonSolver,
    multigrid: Option<MultigridOnLinks<'a>>,
    /// Whether true residuals are noted.
    told: bool,
    stop: StopSignal,
}

/// M̂†
struct Dagger<'a>(&'a TwistedComplement);
impl LinearOperator<FieldSpace> for Dagger<'_> {
    fn apply(&self, x: &DeviceField, out: &mut DeviceField) -> Result {
        self.0.apply_dagger(x, out)
    }
    fn apply_dagger(&self, x: &DeviceField, out: &mut DeviceField) -> Result {
        self.0.apply(x, out)
    }
    fn flops(&self) -> f64 {
        self.0.flops()
    }
    fn bytes(&self) -> f64 {
        self.0.bytes()
    }
}

type Solved = std::result::Result<Info, SolveError<DeviceError>>;

impl<'a> WilsonSystem<'a> {
    /// For one right-hand side; true residuals are noted where they are `told`.
    pub fn new(quarks: &WilsonQuarks, links: &EvolvingLinks, solver: WilsonSolver, told: bool) -> Result<Self> {
        let domain: &Domain = links.own().domain();
        let sloppy = match solver.precision {
            Precision::Double => None,
            precision => Some((space(domain, precision, 1), quarks.on(links, precision, 1)?)),
        };
        let space = space(domain, Precision::Double, 1);
        let exact = quarks.on(links, Precision::Double, 1)?;
        let method = match solver.method {
            WilsonMethod::Multigrid if quarks.is_twisted() => WilsonMethod::Cg,
            method => method,
        };
        let solver = WilsonSolver { method, ..solver };
        Ok(WilsonSystem { space, exact, sloppy, solver, multigrid: None, told, stop: links.stop().clone() })
    }
    /// With multigrid for its operator, where that is the method.
    pub fn with_multigrid(self, multigrid: Option<MultigridOnLinks<'a>>) -> Self {
        let multigrid = multigrid.filter(|_| self.solver.method == WilsonMethod::Multigrid);
        WilsonSystem { multigrid, ..self }
    }
    /// \[X, Y\] with M̂†M̂ X = b and Y = M̂ X, from a guess of X.
    pub fn solve_normal(
        &self,
        name: &str,
        b: &DeviceField,
        guess: Option<DeviceField>,
        counts: &SolverCounts,
    ) -> std::result::Result<[DeviceField; 2], HmcError> {
        let mut y = self.space.allocate()?;
        let mut x = match guess {
            Some(guess) => guess,
            None => self.space.allocate()?,
        };
        match self.solver.method {
            WilsonMethod::Cg => {
                let exact = Normal::new(&self.space, &self.exact)?;
                let solved = match &self.sloppy {
                    None => self.cg(&Uniform::new(&self.space, &exact), b, &mut x)?,
                    Some((low, operator)) => {
                        let operator = Normal::new(low, operator)?;
                        self.cg(&Mixed::new(&self.space, &exact, low, &operator), b, &mut x)?
                    }
                };
                self.count(name, solved, counts)?;
                self.exact.apply(&x, &mut y)?;
            }
            WilsonMethod::Bicgstab | WilsonMethod::Multigrid => {
                let before = counts.iterations.get();
                y = self.solve_dagger(name, b, Some(&x), counts)?;
                self.invert(name, false, &y, &mut x, counts)?;
                if let (Some(multigrid), false) = (&self.multigrid, self.told) {
                    multigrid.evolving().note(counts.iterations.get() - before);
                }
            }
        }
        Ok([x, y])
    }
    /// Y with M̂† Y = b, from a guess of (M̂†M̂)⁻¹ b.
    pub fn solve_dagger(
        &self,
        name: &str,
        b: &DeviceField,
        guess: Option<&DeviceField>,
        counts: &SolverCounts,
    ) -> std::result::Result<DeviceField, HmcError> {
        if self.solver.method == WilsonMethod::Cg {
            let [_, y] = self.solve_normal(name, b, None, counts)?;
            return Ok(y);
        }
        let mut y = self.space.allocate()?;
        if let Some(guess) = guess {
            self.exact.apply(guess, &mut y)?;
        }
        self.invert(name, true, b, &mut y, counts)?;
        Ok(y)
    }
    /// x with M̂ x = b, or M̂† x = b, from a guess.
    fn invert(
        &self,
        name: &str,
        dagger: bool,
        b: &DeviceField,
        x: &mut DeviceField,
        counts: &SolverCounts,
    ) -> std::result::Result<(), HmcError> {
        let solve = |x: &mut DeviceField| match (&self.sloppy, dagger) {
            (None, false) => self.iterate(&Uniform::new(&self.space, &self.exact), dagger, b, x),
            (None, true) => self.iterate(&Uniform::new(&self.space, &Dagger(&self.exact)), dagger, b, x),
            (Some((low, operator)), false) => {
                self.iterate(&Mixed::new(&self.space, &self.exact, low, operator), dagger, b, x)
            }
            (Some((low, operator)), true) => {
                let (exact, operator) = (Dagger(&self.exact), Dagger(operator));
                self.iterate(&Mixed::new(&self.space, &exact, low, &operator), dagger, b, x)
            }
        };
        let was_old = self.multigrid.as_ref().is_some_and(MultigridOnLinks::may_be_old);
        let mut solved = solve(x)?;
        if let (true, Some(multigrid), Err(error)) = (was_old, &self.multigrid, &solved)
            && !matches!(error, SolveError::Backend(_) | SolveError::Cancelled { .. })
        {
            // Near-null vectors of links that are too far away.
            let refreshed = multigrid.refresh();
            refreshed.map_err(|why| HmcError::Solver { quarks: name.into(), why: Box::new(why) })?;
            solved = solve(x)?;
        }
        self.count(name, solved, counts)
    }
    /// By GCR with multigrid where there is some, else by BiCGstab.
    fn iterate<Y>(&self, system: &Y, dagger: bool, b: &DeviceField, x: &mut DeviceField) -> Result<Solved>
    where
        Y: solvers::System<Precise = FieldSpace, Sloppy = FieldSpace, Error = DeviceError>,
    {
        let Some(multigrid) = &self.multigrid else { return self.bicgstab(system, b, x) };
        let delta = self.sloppy.as_ref().map(|_| OUTER_DELTA);
        let params = GcrParams { k_max: OUTER_DIRECTIONS, ..SolverParams { delta, ..self.params() }.into() };
        let mut workspace = GcrWorkspace::new(system, params.k_max)?;
        let single = space(self.space.domain(), Precision::Single, 1);
        let (mut solved, mut stop) = (None, self.stop.clone());
        let used = multigrid.with_cycle(dagger, &mut |cycle| {
            solved = Some(match self.solver.precision {
                Precision::Single => gcr(system, cycle, b, x, &params, &mut workspace, &mut stop),
                _ => gcr(system, &Converted::new(&single, cycle)?, b, x, &params, &mut workspace, &mut stop),
            });
            Ok(())
        });
        Ok(used.and_then(|()| solved.expect("the cycle was used")))
    }
    fn params(&self) -> SolverParams {
        SolverParams {
            tol: self.solver.tol,
            max_iterations: self.solver.max_iterations,
            patience: Some(PATIENCE),
            ..Default::default()
        }
    }
    fn cg<Y>(&self, system: &Y, b: &DeviceField, x: &mut DeviceField) -> Result<Solved>
    where
        Y: solvers::System<Precise = FieldSpace, Sloppy = FieldSpace, Error = DeviceError>,
    {
        Ok(cg(system, b, x, &self.params(), &mut CgWorkspace::new(system)?, &mut self.stop.clone()))
    }
    fn bicgstab<Y>(&self, system: &Y, b: &DeviceField, x: &mut DeviceField) -> Result<Solved>
    where
        Y: solvers::System<Precise = FieldSpace, Sloppy = FieldSpace, Error = DeviceError>,
    {
        Ok(bicgstab(system, b, x, &self.params(), &mut BicgstabWorkspace::new(system)?, &mut self.stop.clone()))
    }
    /// Notes what a solver did. One that gave up may have reached the tolerance: true residuals decide.
    fn count(&self, name: &str, solved: Solved, counts: &SolverCounts) -> std::result::Result<(), HmcError> {
        let info = solved
            .or_else(|error| error.unless_converged(self.solver.tol))
            .map_err(|error| HmcError::Solver { quarks: name.into(), why: Box::new(error) })?;
        counts.iterations.set(counts.iterations.get() + info.iterations_per_rhs.iter().sum::<usize>());
        if self.told {
            counts.residual.set(info.true_residual.iter().copied().fold(counts.residual.get(), worse_residual));
        }
        Ok(())
    }
}
