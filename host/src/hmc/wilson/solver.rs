//! How systems of Wilson-like quarks are solved.
use super::{TwistedComplement, WilsonQuarks, space};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceField, FieldSpace};
use crate::hmc::HmcError;
use crate::hmc::links::EvolvingLinks;
use crate::hmc::poles::SolverCounts;
use gpu_kernels::Precision;
use solvers::{
    BicgstabWorkspace, CgWorkspace, Info, LinearOperator, Mixed, Normal, SolveError, SolverParams, Uniform,
    VectorSpace, bicgstab, cg, worse_residual,
};

/// Methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WilsonMethod {
    /// CG on M̂†M̂.
    #[default]
    Cg,
    /// BiCGstab on M̂† and then on M̂.
    Bicgstab,
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
pub(super) struct WilsonSystem {
    pub space: FieldSpace,
    pub exact: TwistedComplement,
    sloppy: Option<(FieldSpace, TwistedComplement)>,
    solver: WilsonSolver,
    /// Whether true residuals are noted.
    told: bool,
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

impl WilsonSystem {
    /// For one right-hand side; true residuals are noted where they are `told`.
    pub fn new(quarks: &WilsonQuarks, links: &EvolvingLinks, solver: WilsonSolver, told: bool) -> Result<Self> {
        let domain: &Domain = links.own().domain();
        let sloppy = match solver.precision {
            Precision::Double => None,
            precision => Some((space(domain, precision, 1), quarks.on(links, precision, 1)?)),
        };
        let space = space(domain, Precision::Double, 1);
        Ok(WilsonSystem { space, exact: quarks.on(links, Precision::Double, 1)?, sloppy, solver, told })
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
            WilsonMethod::Bicgstab => {
                y = self.solve_dagger(name, b, Some(&x), counts)?;
                let solved = match &self.sloppy {
                    None => self.bicgstab(&Uniform::new(&self.space, &self.exact), &y, &mut x)?,
                    Some((low, operator)) => {
                        self.bicgstab(&Mixed::new(&self.space, &self.exact, low, operator), &y, &mut x)?
                    }
                };
                self.count(name, solved, counts)?;
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
        let solved = match &self.sloppy {
            None => self.bicgstab(&Uniform::new(&self.space, &Dagger(&self.exact)), b, &mut y)?,
            Some((low, operator)) => {
                let (exact, operator) = (Dagger(&self.exact), Dagger(operator));
                self.bicgstab(&Mixed::new(&self.space, &exact, low, &operator), b, &mut y)?
            }
        };
        self.count(name, solved, counts)?;
        Ok(y)
    }
    fn params(&self) -> SolverParams {
        SolverParams { tol: self.solver.tol, max_iterations: self.solver.max_iterations, ..Default::default() }
    }
    fn cg<Y>(&self, system: &Y, b: &DeviceField, x: &mut DeviceField) -> Result<Solved>
    where
        Y: solvers::System<Precise = FieldSpace, Sloppy = FieldSpace, Error = DeviceError>,
    {
        Ok(cg(system, b, x, &self.params(), &mut CgWorkspace::new(system)?, &mut ()))
    }
    fn bicgstab<Y>(&self, system: &Y, b: &DeviceField, x: &mut DeviceField) -> Result<Solved>
    where
        Y: solvers::System<Precise = FieldSpace, Sloppy = FieldSpace, Error = DeviceError>,
    {
        Ok(bicgstab(system, b, x, &self.params(), &mut BicgstabWorkspace::new(system)?, &mut ()))
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
