//! One Wilson-like quark by a rational function (Clark and Kennedy 2007).
use super::forms::Forms;
use super::{TwistedComplement, VECTORS, WilsonQuarks, draw_noise, norm2, space};
use crate::domain::Domain;
use crate::field::DeviceField;
use crate::hmc::HmcError;
use crate::hmc::fermions::{RationalFunctions, ShiftedSolver};
use crate::hmc::force::Force;
use crate::hmc::links::EvolvingLinks;
use crate::hmc::momenta::MomentumField;
use crate::hmc::monomial::Monomial;
use crate::hmc::poles::{self, SolverCounts};
use gpu_kernels::{FermionKind, Precision};
use num_complex::Complex64;
use rational::PartialFractions;
use solvers::{LinearOperator, Normal, VectorSpace};

/// Monomial of Wilson-like quarks with the action Σ ‖r(K) φ‖² of n pseudofermions φ, where K = M̂†M̂. For the weight |det M̂|^N, r²
/// approximates K^{−N/2n}.
pub struct OneFlavour {
    name: String,
    quarks: WilsonQuarks,
    /// Rational functions of K.
    functions: RationalFunctions,
    /// Solvers of molecular dynamics, and of heat bath and Metropolis step.
    solvers: [ShiftedSolver; 2],
    field: DeviceField,
    first: u32,
    counts: SolverCounts,
}

impl OneFlavour {
    /// Makes a monomial with `count` pseudofermions; `first` is the total number of pseudofermions of earlier monomials. The first of
    /// `solvers` is for molecular dynamics, the second one for heat bath and Metropolis step.
    pub fn new(
        domain: &Domain,
        name: String,
        quarks: WilsonQuarks,
        functions: RationalFunctions,
        solvers: [ShiftedSolver; 2],
        first: u32,
        count: usize,
    ) -> Result<Self, HmcError> {
        let field = DeviceField::zero(domain, VECTORS.with_nrhs(count))?;
        let counts = SolverCounts::default();
        Ok(OneFlavour { name, quarks, functions, solvers, field, first, counts })
    }
    /// *Collective.* Computes φ† r(K) φ with the rational function r of molecular dynamics. The force is the derivative of this action.
    pub fn dynamics_action(&self, links: &EvolvingLinks) -> Result<f64, HmcError> {
        let image = self.evaluate(links, &self.functions.dynamics, &self.field)?;
        let mut dots = vec![Complex64::ZERO; self.field.nrhs()];
        space(self.field.domain(), Precision::Double, self.field.nrhs()).dot(&self.field, &image, &mut dots)?;
        Ok(dots.iter().map(|dot| dot.re).sum())
    }
    /// Computes r(K) b.
    fn evaluate(
        &self,
        links: &EvolvingLinks,
        function: &PartialFractions,
        b: &DeviceField,
    ) -> Result<DeviceField, HmcError> {
        let (domain, n, solver) = (b.domain(), b.nrhs(), &self.solvers[1]);
        let low = space(domain, solver.precision(), n);
        let mut rhs = low.allocate()?;
        low.convert_from(b, &mut rhs)?;
        let x = self.solve(links, &self.quarks.on(links, solver.precision(), n)?, function, solver, true, &rhs)?;
        Ok(poles::sum(function, 1.0, b, &x)?)
    }
    /// Computes (K + σ_j)⁻¹ b for all poles of a function, and true residuals if `check` is set.
    fn solve(
        &self,
        links: &EvolvingLinks,
        operator: &TwistedComplement,
        function: &PartialFractions,
        solver: &ShiftedSolver,
        check: bool,
        b: &DeviceField,
    ) -> Result<Vec<DeviceField>, HmcError> {
        let space = space(b.domain(), b.precision(), b.nrhs());
        let normal = Normal::new(&space, operator)?;
        let shifts: Vec<f64> = function.shifts().collect();
        poles::solutions(&normal, &shifts, solver, check, b, (&self.name, &self.counts, links.stop()))
    }
}

impl Force for OneFlavour {
    fn name(&self) -> String {
        self.name.clone()
    }
    /// Computes dS = −2 Re Σ_j a_j Y_j† dM̂ X_j with X_j = (K + σ_j)⁻¹ φ and Y_j = M̂ X_j.
    fn kick(&self, links: &EvolvingLinks, step: f64, momenta: &mut MomentumField) -> Result<(), HmcError> {
        let (domain, n, solver) = (links.own().domain(), self.field.nrhs(), &self.solvers[0]);
        let (precision, function) = (solver.precision(), &self.functions.dynamics);
        let (operator, space) = (self.quarks.on(links, precision, n)?, space(domain, precision, n));
        let (mut b, mut image) = (space.allocate()?, space.allocate()?);
        space.convert_from(&self.field, &mut b)?;
        let x = self.solve(links, &operator, function, solver, false, &b)?;
        let mut forms = Forms::new(domain, self.quarks, precision, n * x.len())?;
        for (pole, x) in function.poles.iter().zip(&x) {
            operator.apply(x, &mut image)?;
            forms.add(&operator, x, &image, &image, -2.0 * pole.residue)?;
        }
        Ok(forms.kick(links, step, momenta)?)
    }
}

impl Monomial for OneFlavour {
    fn kind(&self) -> FermionKind {
        VECTORS.kind
    }
    fn count(&self) -> usize {
        self.field.nrhs()
    }
    /// Computes φ = r ξ.
    fn draw(&mut self, links: &EvolvingLinks, seed: u64, trajectory: u32) -> Result<f64, HmcError> {
        let mut noise = DeviceField::zero(self.field.domain(), VECTORS.with_nrhs(self.count()))?;
        draw_noise(&mut noise, self.first, seed, trajectory)?;
        self.set_from(links, &noise)
    }
    fn set_from(&mut self, links: &EvolvingLinks, noise: &DeviceField) -> Result<f64, HmcError> {
        self.field = self.evaluate(links, &self.functions.heat_bath, noise)?;
        Ok(norm2(&space(noise.domain(), Precision::Double, noise.nrhs()), noise)?)
    }
    /// Computes Σ ‖r φ‖².
    fn action(&self, links: &EvolvingLinks) -> Result<f64, HmcError> {
        let image = self.evaluate(links, &self.functions.action, &self.field)?;
        Ok(norm2(&space(image.domain(), Precision::Double, image.nrhs()), &image)?)
    }
    fn set_functions(&mut self, functions: RationalFunctions) {
        self.functions = functions;
    }
    fn take_iterations(&self) -> usize {
        self.counts.iterations.take()
    }
    fn take_residual(&self) -> f64 {
        self.counts.residual.take()
    }
}
