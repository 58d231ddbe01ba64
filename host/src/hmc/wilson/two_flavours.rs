//! Two Wilson-like quarks of one mass, without a rational function.
use super::forms::Forms;
use super::guess::Guesses;
use super::multigrid::EvolvingMultigrid;
use super::solver::ComplementSolver;
use super::{VECTORS, WilsonQuarks, draw_noise, norm2, space};
use crate::domain::Domain;
use crate::field::DeviceField;
use crate::hmc::HmcError;
use crate::hmc::fermions::RationalFunctions;
use crate::hmc::force::Force;
use crate::hmc::links::EvolvingLinks;
use crate::hmc::momenta::MomentumField;
use crate::hmc::monomial::Monomial;
use crate::hmc::poles::SolverCounts;
use crate::solve::{Method, Request};
use gpu_kernels::{FermionKind, Precision};
use solvers::{LinearOperator, VectorSpace};

/// Largest number of solutions that users may request for initial guesses.
pub const MOST_GUESSES: usize = 32;

/// Pseudofermion with the action φ† W (M̂†M̂)⁻¹ W† φ, whose weight is det M̂†M̂ / det W†W. W is the operator of heavier quarks, or 1
/// without them.
pub struct TwoFlavours {
    name: String,
    quarks: WilsonQuarks,
    heavier: Option<WilsonQuarks>,
    /// Solvers of molecular dynamics, and of heat bath and Metropolis step.
    solvers: [Request; 2],
    /// Precision of the force.
    precision: Precision,
    field: DeviceField,
    first: u32,
    counts: SolverCounts,
    guesses: Guesses,
    multigrid: Option<EvolvingMultigrid>,
}

impl TwoFlavours {
    /// Makes the pseudofermion. `first` is the total number of pseudofermions of earlier monomials. `solvers` are the requests for
    /// molecular dynamics and for heat bath and Metropolis step; only their method, precision, limits and multigrid parameters are used.
    /// Forces are computed in `precision`, double or single. If [`Method::MULTIGRID`] is requested, `quarks` use it unless they are
    /// twisted. Other quarks use BiCGstab instead, or CG if they are twisted.
    pub fn new(
        domain: &Domain,
        name: String,
        quarks: WilsonQuarks,
        heavier: Option<WilsonQuarks>,
        solvers: [Request; 2],
        precision: Precision,
        first: u32,
    ) -> Result<Self, HmcError> {
        let field = DeviceField::zero(domain, VECTORS)?;
        let counts = SolverCounts::default();
        let guesses = Guesses::new(0);
        let with_multigrid = solvers.iter().find(|request| request.method == Method::MULTIGRID && !quarks.is_twisted());
        let multigrid = with_multigrid.map(|request| EvolvingMultigrid::new(request.multigrid));
        Ok(TwoFlavours { name, quarks, heavier, solvers, precision, field, first, counts, guesses, multigrid })
    }
    /// Makes initial guesses in molecular dynamics from the last `count` solutions of a trajectory (Brower et al. 1997). In a reversibility
    /// check, the guesses differ from those of the trajectory, so residuals must be small enough that guesses do not matter.
    #[must_use]
    pub fn with_guesses(self, count: usize) -> Self {
        TwoFlavours { guesses: Guesses::new(count), ..self }
    }
    /// Replaces multigrid by another method, if multigrid is the method of the solvers.
    #[must_use]
    pub(in crate::hmc) fn without_multigrid(self) -> Self {
        TwoFlavours { multigrid: None, ..self }
    }
    /// Returns M̂ of the quarks, solved as in molecular dynamics or, with `noted`, as in the Metropolis step.
    fn system<'a>(&'a self, links: &'a EvolvingLinks, noted: bool) -> Result<ComplementSolver<'a>, HmcError> {
        let (request, multigrid) = (&self.solvers[usize::from(noted)], self.multigrid.as_ref());
        Ok(ComplementSolver::new(&self.quarks, links, request, multigrid, noted)?)
    }
    /// Computes W† φ.
    fn rhs(&self, links: &EvolvingLinks) -> Result<DeviceField, HmcError> {
        let mut out = space(self.field.domain(), Precision::Double, 1).allocate()?;
        match &self.heavier {
            None => space(self.field.domain(), Precision::Double, 1).copy(&self.field, &mut out)?,
            Some(heavier) => heavier.on(links, Precision::Double, 1)?.apply_dagger(&self.field, &mut out)?,
        }
        Ok(out)
    }
}

impl Force for TwoFlavours {
    fn name(&self) -> String {
        self.name.clone()
    }
    /// Computes dS = 2 Re φ† dW X − 2 Re Y† dM̂ X with M̂†M̂ X = W† φ and Y = M̂ X.
    fn kick(&self, links: &EvolvingLinks, step: f64, momenta: &mut MomentumField) -> Result<(), HmcError> {
        let (domain, system) = (links.own().domain(), self.system(links, false)?);
        let rhs = self.rhs(links)?;
        let guess = self.guesses.guess(&system, &rhs)?;
        let [x, y] = system.solve_normal(&self.name, &rhs, guess, &self.counts)?;
        self.guesses.keep(&system.space, &x)?;
        let mut forms = Forms::new(domain, self.quarks, self.precision, 2)?;
        let on = |quarks: &WilsonQuarks| quarks.on(links, self.precision, 1);
        let low = space(domain, self.precision, 1);
        let convert = |from: &DeviceField| -> crate::domain::Result<DeviceField> {
            let mut to = low.allocate()?;
            low.convert_from(from, &mut to)?;
            Ok(to)
        };
        let (x_low, y_low) = (convert(&x)?, convert(&y)?);
        forms.add(&on(&self.quarks)?, &x_low, &y_low, &y_low, -2.0)?;
        if let Some(heavier) = &self.heavier {
            let mut image = low.allocate()?;
            let operator = on(heavier)?;
            operator.apply(&x_low, &mut image)?;
            forms.add(&operator, &x_low, &image, &convert(&self.field)?, 2.0)?;
        }
        Ok(forms.kick(links, step, momenta)?)
    }
}

impl Monomial for TwoFlavours {
    fn kind(&self) -> FermionKind {
        VECTORS.kind
    }
    fn count(&self) -> usize {
        1
    }
    fn draw(&mut self, links: &EvolvingLinks, seed: u64, trajectory: u32) -> Result<f64, HmcError> {
        let mut noise = DeviceField::zero(self.field.domain(), VECTORS)?;
        draw_noise(&mut noise, self.first, seed, trajectory)?;
        self.set_from(links, &noise)
    }
    /// Computes W† φ = M̂† ξ.
    fn set_from(&mut self, links: &EvolvingLinks, noise: &DeviceField) -> Result<f64, HmcError> {
        self.guesses.clear();
        self.multigrid.iter().for_each(EvolvingMultigrid::clear);
        let space = space(noise.domain(), Precision::Double, 1);
        let mut image = space.allocate()?;
        self.quarks.on(links, Precision::Double, 1)?.apply_dagger(noise, &mut image)?;
        self.field = match &self.heavier {
            None => image,
            Some(heavier) => {
                let name = format!("{}, heat bath", self.name);
                let system = ComplementSolver::new(heavier, links, &self.solvers[1], None, true)?;
                system.solve_dagger(&name, &image, None, &self.counts)?
            }
        };
        Ok(norm2(&space, noise)?)
    }
    /// Computes ‖M̂⁻† W† φ‖².
    fn action(&self, links: &EvolvingLinks) -> Result<f64, HmcError> {
        let rhs = self.rhs(links)?;
        let y = self.system(links, true)?.solve_dagger(&self.name, &rhs, None, &self.counts)?;
        Ok(norm2(&space(y.domain(), Precision::Double, 1), &y)?)
    }
    fn set_functions(&mut self, _: RationalFunctions) {}
    fn forget_guesses(&self) {
        self.guesses.clear();
    }
    fn take_iterations(&self) -> usize {
        self.counts.iterations.take()
    }
    fn take_residual(&self) -> f64 {
        self.counts.residual.take()
    }
}
