//! Two Wilson-like quarks of one mass, exactly.
use super::forms::Forms;
use super::guess::Guesses;
use super::multigrid::EvolvingMultigrid;
use super::solver::WilsonSystem;
use super::{VECTORS, WilsonQuarks, WilsonSolver, draw_noise, norm2, space};
use crate::domain::Domain;
use crate::field::DeviceField;
use crate::hmc::HmcError;
use crate::hmc::fermions::RationalFunctions;
use crate::hmc::force::Force;
use crate::hmc::links::EvolvingLinks;
use crate::hmc::momenta::MomentumField;
use crate::hmc::monomial::Monomial;
use crate::hmc::poles::SolverCounts;
use crate::multigrid::MultigridParams;
use gpu_kernels::{FermionKind, Precision};
use solvers::{LinearOperator, VectorSpace};

/// Largest number of solutions for first guesses that users may ask for.
pub const MOST_GUESSES: usize = 32;

/// A pseudofermion with the action φ† W (M̂†M̂)⁻¹ W† φ for det M̂†M̂ / det W†W, W the operator of heavier quarks, or 1.
pub struct TwoFlavours {
    name: String,
    quarks: WilsonQuarks,
    heavier: Option<WilsonQuarks>,
    /// In molecular dynamics, and for heat bath and Metropolis step.
    solvers: [WilsonSolver; 2],
    /// Of the force.
    precision: Precision,
    field: DeviceField,
    first: u32,
    counts: SolverCounts,
    guesses: Guesses,
    multigrid: Option<EvolvingMultigrid>,
}

/// Two quarks of one mass with heavier ones that split their determinant (Hasenbusch 2001): one pseudofermion for each ratio.
#[derive(Clone, Debug)]
pub struct SplitDeterminant {
    /// Of the quarks, for reports.
    pub name: String,
    /// The quarks.
    pub quarks: WilsonQuarks,
    /// Heavier ones with their names, from light to heavy.
    pub heavier: Vec<(WilsonQuarks, String)>,
    /// In molecular dynamics, and for heat bath and Metropolis step.
    pub solvers: [WilsonSolver; 2],
    /// Of the force.
    pub precision: Precision,
    /// Solutions of a trajectory that first guesses are made of.
    pub guesses: usize,
    /// For the lightest quarks.
    pub multigrid: Option<MultigridParams>,
}

impl SplitDeterminant {
    /// The parts of the action, without that of the blocks of A; `first` is the number of pseudofermions before them.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn parts(&self, domain: &Domain, first: u32) -> Result<Vec<TwoFlavours>, HmcError> {
        let lighter = std::iter::once((self.quarks, None)).chain(self.heavier.iter().map(|(q, name)| (*q, Some(name))));
        let heavier = self.heavier.iter().map(Some).chain([None]);
        let part = |(number, ((quarks, of), heavier))| {
            let (of, heavier): (Option<&String>, Option<&(WilsonQuarks, String)>) = (of, heavier);
            let of = of.map_or(String::new(), |of| format!(", {of}"));
            let over = heavier.map_or(String::new(), |(_, heavier)| format!(", over {heavier}"));
            let (name, heavier) = (format!("{}{of}{over}", self.name), heavier.map(|(quarks, _)| *quarks));
            let first = first + number as u32;
            let part = TwoFlavours::new(domain, name, quarks, heavier, self.solvers, self.precision, first)?;
            let part = part.with_guesses(self.guesses);
            // Heavier quarks are solved sooner than a setup is made.
            Ok(match self.multigrid {
                Some(multigrid) if number == 0 => part.with_multigrid(multigrid),
                _ => part,
            })
        };
        lighter.zip(heavier).enumerate().map(part).collect()
    }
}

impl TwoFlavours {
    /// `first` is the number of pseudofermions before this one in the action; `solvers` are those of molecular dynamics, and of heat
    /// bath and Metropolis step; forces are computed in `precision`, double or single.
    pub fn new(
        domain: &Domain,
        name: String,
        quarks: WilsonQuarks,
        heavier: Option<WilsonQuarks>,
        solvers: [WilsonSolver; 2],
        precision: Precision,
        first: u32,
    ) -> Result<Self, HmcError> {
        let field = DeviceField::zero(domain, VECTORS)?;
        let counts = SolverCounts::default();
        let (guesses, multigrid) = (Guesses::new(0), None);
        Ok(TwoFlavours { name, quarks, heavier, solvers, precision, field, first, counts, guesses, multigrid })
    }
    /// With first guesses in molecular dynamics from the last `count` solutions of a trajectory (Brower et al. 1997). A way back has
    /// other guesses than the way there: residuals have to be so small that this does not matter.
    #[must_use]
    pub fn with_guesses(self, count: usize) -> Self {
        TwoFlavours { guesses: Guesses::new(count), ..self }
    }
    /// With multigrid for the quarks, not the heavier ones, where that is the [method](super::WilsonMethod). It is for operators
    /// without a twisted mass.
    #[must_use]
    pub fn with_multigrid(self, params: MultigridParams) -> Self {
        let multigrid = (!self.quarks.is_twisted()).then(|| EvolvingMultigrid::new(params));
        TwoFlavours { multigrid, ..self }
    }
    /// That of the quarks, solved as in molecular dynamics or, with `told`, as in the Metropolis step.
    fn system<'a>(&'a self, links: &'a EvolvingLinks, told: bool) -> Result<WilsonSystem<'a>, HmcError> {
        let system = WilsonSystem::new(&self.quarks, links, self.solvers[usize::from(told)], told)?;
        let on_links = self.multigrid.as_ref().map(|multigrid| multigrid.on(&self.quarks, links)).transpose();
        let failed = |why| HmcError::Solver { quarks: format!("{}, multigrid", self.name), why: Box::new(why) };
        Ok(system.with_multigrid(on_links.map_err(failed)?))
    }
    /// W† φ
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
    /// dS = 2 Re φ† dW X − 2 Re Y† dM̂ X with M̂†M̂ X = W† φ and Y = M̂ X.
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
    /// W† φ = M̂† ξ
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
                let system = WilsonSystem::new(heavier, links, self.solvers[1], true)?;
                system.solve_dagger(&name, &image, None, &self.counts)?
            }
        };
        Ok(norm2(&space, noise)?)
    }
    /// ‖M̂⁻† W† φ‖²
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
