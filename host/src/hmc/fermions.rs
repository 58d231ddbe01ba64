//! Staggered quarks as pseudofermions: their heat bath, their action and their force.
pub use super::functions::RationalFunctions;
pub use super::hops::{QuarkOperator, QuarkSmearing};
pub use super::poles::{ShiftedSolver, SolverError};

use super::HmcError;
use super::force::Force;
use super::gradient::{self, HopVectors};
use super::links::EvolvingLinks;
use super::momenta::MomentumField;
use super::monomial::Monomial;
use super::poles::{self, SolverCounts};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::{DeviceField, FieldShape, FieldSpace};
use crate::operators::fat_links::Improvement;
use crate::operators::{EvenOddStaggered, Staggered, StaggeredLinks, StaggeredParams};
use crate::solve::{ImprovedLinks, LinkFormatKey};
use gpu_kernels::momenta::{DRAW_NOISE, DrawNoise};
use gpu_kernels::random::purpose;
use gpu_kernels::{FermionKind, Format, LinkStorage, Precision};
use num_complex::Complex64;
use rational::PartialFractions;
use solvers::VectorSpace;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Largest number of pseudofermions that users may request for one table of quarks.
pub const MOST_PSEUDOFERMIONS: usize = 64;

/// Shape of pseudofermions and their noise: colour vectors in double precision.
const VECTORS: FieldShape = FieldShape::colours(Precision::Double, 1);
/// Storage of the links of solvers in single precision and of forces.
const TWO_ROWS: LinkStorage = LinkStorage::of(12);

/// Returns the space of blocks of `nrhs` colour vectors.
fn space(domain: &Domain, precision: Precision, nrhs: usize) -> FieldSpace {
    FieldSpace::new(domain, FieldShape::colours(precision, nrhs))
}

impl QuarkOperator {
    /// Makes A⁄4 + `mass`² on the sites of `parity`, for blocks of `nrhs` vectors in a precision. `storage` is requested for the long
    /// links, or for thin or stout links if there are no long ones. Links in U(3) are stored with their phase or with all reals. The links
    /// are packed once for all masses and both parities.
    pub(crate) fn on(
        &self,
        links: &EvolvingLinks,
        precision: Precision,
        storage: LinkStorage,
        parity: usize,
        mass: f64,
        nrhs: usize,
    ) -> Result<EvenOddStaggered> {
        let storage = self.storage(storage, links.own().domain().backend());
        let format = LinkFormatKey { theta: self.theta, precision, storage };
        let of_one = |stout| Ok::<_, DeviceError>(Arc::new(StaggeredLinks::naive(links.packed(stout, format)?)));
        let packed = match self.smearing {
            QuarkSmearing::Thin => of_one(None)?,
            QuarkSmearing::Stout(smearing) => of_one(Some(smearing))?,
            QuarkSmearing::Paths(paths) => {
                let make = || Improvement::from_paths(&*links.thin(Precision::Double)?, &paths);
                self.improved(links, make)?.packed(format)?
            }
            QuarkSmearing::Hisq { epsilon } => {
                self.improved(links, || links.first_level()?.second(epsilon))?.packed(format)?
            }
        };
        let staggered = Staggered::new(packed, StaggeredParams { mass, ..self.params });
        EvenOddStaggered::shifted(staggered, parity, 0.0, nrhs)
    }
    fn improved(&self, links: &EvolvingLinks, make: impl FnOnce() -> Result<Improvement>) -> Result<Rc<ImprovedLinks>> {
        links.made().improved.get(self.smearing, || Ok(ImprovedLinks::new(make()?)))
    }
}

/// Monomial of staggered quarks with the action Σ ‖r(A) φ‖² of its pseudofermions φ. The pseudofermions are the vectors of one block, and a
/// solver works on all of them at once.
pub struct Pseudofermions {
    name: String,
    operator: QuarkOperator,
    functions: RationalFunctions,
    /// Solvers of molecular dynamics, and of heat bath and Metropolis step.
    solvers: [ShiftedSolver; 2],
    field: DeviceField,
    /// Number of the monomial's first pseudofermion among all pseudofermions of the action.
    first: u32,
    counts: SolverCounts,
    guarded: Cell<usize>,
}

impl Pseudofermions {
    /// Makes a monomial with `count` pseudofermions; `first` is the total number of pseudofermions of earlier monomials. The first of
    /// `solvers` is for molecular dynamics, the second one for heat bath and Metropolis step.
    pub fn new(
        domain: &Domain,
        name: String,
        operator: QuarkOperator,
        functions: RationalFunctions,
        solvers: [ShiftedSolver; 2],
        first: u32,
        count: usize,
    ) -> Result<Self> {
        let field = DeviceField::zero(domain, VECTORS.with_nrhs(count))?;
        let mut this = Pseudofermions {
            name,
            operator,
            functions: functions.clone(),
            solvers,
            field,
            first,
            counts: SolverCounts::default(),
            guarded: Cell::new(0),
        };
        this.set_functions(functions);
        Ok(this)
    }
    /// Returns the hopping term of the monomial's quarks.
    pub fn operator(&self) -> &QuarkOperator {
        &self.operator
    }
    /// Sets the pseudofermions φ on the even sites. Panics unless `field` has one colour vector in double precision for each pseudofermion.
    pub fn set_field(&mut self, field: DeviceField) {
        assert_eq!(field.nrhs(), self.count(), "one vector for each pseudofermion");
        let shape = VECTORS.with_nrhs(self.count());
        assert_eq!(field.shape(), shape, "pseudofermions are colour vectors in double precision");
        self.field = field;
    }
    /// *Collective.* Computes φ† r(A) φ with the rational function r of molecular dynamics. The force is the derivative of this action.
    pub fn dynamics_action(&self, links: &EvolvingLinks) -> std::result::Result<f64, HmcError> {
        let image = self.evaluate(links, &self.functions.dynamics, &self.field)?;
        let mut dots = vec![Complex64::ZERO; self.count()];
        space(self.field.domain(), Precision::Double, self.count()).dot(&self.field, &image, &mut dots)?;
        Ok(dots.iter().map(|dot| dot.re).sum())
    }
    /// Computes r(A) b. The systems are solved in the precision of the action's solver.
    fn evaluate(
        &self,
        links: &EvolvingLinks,
        function: &PartialFractions,
        b: &DeviceField,
    ) -> std::result::Result<DeviceField, HmcError> {
        let (domain, n, solver) = (b.domain(), b.nrhs(), &self.solvers[1]);
        b.expect(domain, VECTORS.with_nrhs(n))?;
        let storage = if solver.single { TWO_ROWS } else { LinkStorage::FULL };
        let operator = self.operator.on(links, solver.precision(), storage, 0, 0.0, n)?;
        let low = space(domain, solver.precision(), n);
        let mut rhs = low.allocate()?;
        low.convert_from(b, &mut rhs)?;
        let x = self.solve(links, &operator, function, solver, true, &rhs)?;
        Ok(poles::sum(function, 0.25, b, &x)?)
    }
    /// Computes 4 (A + σ_j)⁻¹ b for all poles of a function, and true residuals if `check` is set.
    fn solve(
        &self,
        links: &EvolvingLinks,
        operator: &EvenOddStaggered,
        function: &PartialFractions,
        solver: &ShiftedSolver,
        check: bool,
        b: &DeviceField,
    ) -> std::result::Result<Vec<DeviceField>, HmcError> {
        let shifts: Vec<f64> = function.shifts().map(|shift| 0.25 * shift).collect();
        poles::solutions(operator, &shifts, solver, check, b, (&self.name, &self.counts, links.stop()))
    }
}

impl Monomial for Pseudofermions {
    fn kind(&self) -> FermionKind {
        VECTORS.kind
    }
    fn count(&self) -> usize {
        self.field.nrhs()
    }
    /// Computes φ = r ξ.
    fn draw(&mut self, links: &EvolvingLinks, seed: u64, trajectory: u32) -> std::result::Result<f64, HmcError> {
        let mut noise = DeviceField::zero(self.field.domain(), VECTORS.with_nrhs(self.count()))?;
        draw_noise(&mut noise, 0, purpose::PSEUDOFERMIONS, self.first, seed, trajectory)?;
        self.set_from(links, &noise)
    }
    fn set_from(&mut self, links: &EvolvingLinks, noise: &DeviceField) -> std::result::Result<f64, HmcError> {
        self.field = self.evaluate(links, &self.functions.heat_bath, noise)?;
        Ok(norm2(noise)?)
    }
    /// Computes Σ ‖r φ‖².
    fn action(&self, links: &EvolvingLinks) -> std::result::Result<f64, HmcError> {
        Ok(norm2(&self.evaluate(links, &self.functions.action, &self.field)?)?)
    }
    /// Sets the rational functions. If the number of poles changes, the list of residuals for each pole is shortened, or extended with its
    /// last value.
    fn set_functions(&mut self, functions: RationalFunctions) {
        let tol = &mut self.solvers[0].tol;
        if let (true, Some(last)) = (tol.len() > 1, tol.last().copied()) {
            tol.resize(functions.dynamics.poles.len(), last);
        }
        self.functions = functions;
    }
    fn take_iterations(&self) -> usize {
        self.counts.iterations.take()
    }
    fn take_residual(&self) -> f64 {
        self.counts.residual.take()
    }
    fn take_guarded(&self) -> Option<usize> {
        let guarded = self.guarded.take();
        matches!(self.operator.smearing, QuarkSmearing::Hisq { .. }).then_some(guarded)
    }
}

impl Force for Pseudofermions {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn kick(&self, links: &EvolvingLinks, step: f64, momenta: &mut MomentumField) -> std::result::Result<(), HmcError> {
        let (domain, n, solver) = (links.own().domain(), self.count(), &self.solvers[0]);
        let precision = solver.precision();
        let operator = self.operator.on(links, precision, TWO_ROWS, 0, 0.0, n)?;
        let space = space(domain, precision, n);
        let function = &self.functions.dynamics;
        let mut hops = HopVectors::new(domain, precision, n * function.poles.len())?;
        let (mut b, mut odd) = (space.allocate()?, space.allocate()?);
        space.convert_from(&self.field, &mut b)?;
        let x = self.solve(links, &operator, function, solver, false, &b)?;
        for (pole, x) in function.poles.iter().zip(&x) {
            operator.staggered().dslash(1, x, &mut odd)?;
            // `solve` returns 4 (A + σ_j)⁻¹ φ, so both `x` and `odd` are four times too large.
            hops.add(x, &odd, 2.0 * pole.residue / 16.0)?;
        }
        let guarded = gradient::kick(&self.operator, hops, links, step, momenta)?;
        self.guarded.set(self.guarded.get() + guarded);
        Ok(())
    }
}

fn norm2(field: &DeviceField) -> Result<f64> {
    let mut sums = vec![0.0; field.nrhs()];
    space(field.domain(), Precision::Double, field.nrhs()).norm2(field, &mut sums)?;
    Ok(sums.iter().sum())
}

/// Draws colour vectors in double precision on the sites of `parity`. Their numbers are normally distributed with ⟨|z|²⟩ = 1. They depend
/// on `purpose`, the number of the vector, `seed` and `trajectory`, but not on the process grid. The vectors of a block are numbered from
/// `which` on.
///
/// # Panics
/// If a vector has a number of 4096 or more, which would repeat one of the first vectors.
pub(crate) fn draw_noise(
    out: &mut DeviceField,
    parity: u32,
    purpose: u64,
    which: u32,
    seed: u64,
    trajectory: u32,
) -> Result {
    let nrhs = out.nrhs() as u32;
    assert!(which.checked_add(nrhs).is_some_and(|end| end <= 1 << 12), "noise vectors have numbers below 4096");
    let domain = out.domain();
    out.expect(domain, VECTORS.with_nrhs(out.nrhs()))?;
    let (geometry, position) = (domain.geometry(), domain.position());
    let kernel = DrawNoise { out: out.view(), geometry, position, parity, trajectory, purpose, which, seed };
    Ok(domain.backend().launch(&DRAW_NOISE, Format::NONE, &kernel, domain.half_sites(), nrhs)?)
}
