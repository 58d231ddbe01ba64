//! Multigrid for the systems of a trajectory, whose near-null vectors follow the links.
use super::{WilsonQuarks, even, space};
use crate::domain::Result;
use crate::field::{DeviceField, FieldSpace};
use crate::hmc::links::EvolvingLinks;
use crate::multigrid::{CycleResult, Multigrid, MultigridParams};
use crate::operators::{EvenOddWilson, Schur};
use gpu_kernels::Precision;
use solvers::{Preconditioner, VectorSpace, Work};
use std::cell::{Cell, RefCell};

/// Multigrid of one operator. It is set up anew in each trajectory, so that a chain that goes on from a file takes the same steps, and
/// refreshed within one when solves have become longer.
pub(super) struct EvolvingMultigrid {
    params: MultigridParams,
    setup: RefCell<Option<Multigrid>>,
    /// Iterations of the first solve of molecular dynamics with this setup.
    first: Cell<Option<usize>>,
    /// Whether the next solve waits for a refreshed setup.
    is_worn: Cell<bool>,
    /// Whether a solve was made with it.
    is_used: Cell<bool>,
}

/// A setup is worn where a solve takes so many times the iterations of the first one with it.
const WORN: f64 = 1.4;
/// How often the cycle improves near-null vectors of links a few steps before.
const IMPROVEMENTS: usize = 1;

impl EvolvingMultigrid {
    /// Nothing yet.
    pub fn new(params: MultigridParams) -> Self {
        let (setup, first) = Default::default();
        EvolvingMultigrid { params, setup, first, is_worn: Cell::new(false), is_used: Cell::new(false) }
    }
    /// From here on another trajectory.
    pub fn clear(&self) {
        self.setup.take();
        self.start();
    }
    fn start(&self) {
        self.first.set(None);
        self.is_worn.set(false);
        self.is_used.set(false);
    }
    /// *Collective.* For an operator on links as they are now: a setup where there is none, and a refreshed one where it is worn.
    pub fn on<'a>(&'a self, quarks: &WilsonQuarks, links: &'a EvolvingLinks) -> CycleResult<MultigridOnLinks<'a>> {
        let make = maker(*quarks, links);
        let params = self.params.smoothing_on(links.own().domain().backend(), &quarks.operator);
        let precision = params.smoother_on(links.own().domain().backend());
        let (operator, smoother) = (make(Precision::Single, 1)?, make(precision, 1)?);
        let on_links = MultigridOnLinks { evolving: self, quarks: *quarks, links, params, operator, smoother };
        if self.setup.borrow().is_none() {
            let thin = quarks.links(links, Precision::Double)?;
            let made = Multigrid::new(&make, &thin, &on_links.params, &mut links.setup_stop().clone())?;
            *self.setup.borrow_mut() = Some(made);
            self.start();
        } else if self.is_worn.get() {
            on_links.refresh()?;
        }
        Ok(on_links)
    }
    /// Takes note of the iterations of a solve of molecular dynamics.
    pub fn note(&self, iterations: usize) {
        match self.first.get() {
            None => self.first.set(Some(iterations)),
            Some(first) => self.is_worn.set(iterations as f64 > WORN * first as f64),
        }
    }
}

/// The operator in a precision, for blocks of so many right-hand sides.
fn maker(quarks: WilsonQuarks, links: &EvolvingLinks) -> impl Fn(Precision, usize) -> Result<EvenOddWilson> {
    move |precision, nrhs| quarks.complement(links, precision, nrhs)
}

/// Multigrid and the operators of its finest level on links that stay as they are.
pub(super) struct MultigridOnLinks<'a> {
    evolving: &'a EvolvingMultigrid,
    quarks: WilsonQuarks,
    links: &'a EvolvingLinks,
    params: MultigridParams,
    operator: EvenOddWilson,
    smoother: EvenOddWilson,
}

impl MultigridOnLinks<'_> {
    /// Whose it is.
    pub fn evolving(&self) -> &EvolvingMultigrid {
        self.evolving
    }
    /// Whether the setup may be that of other links: then [`refresh`](Self::refresh) may help where a solve failed.
    pub fn may_be_old(&self) -> bool {
        self.evolving.is_used.get()
    }
    /// *Collective.* Makes the setup one for these links.
    pub fn refresh(&self) -> CycleResult {
        let make = maker(self.quarks, self.links);
        let thin = self.quarks.links(self.links, Precision::Double)?;
        // Never two of them: they are large.
        let Some(before) = self.evolving.setup.take() else { return Ok(()) };
        let vectors = before.test_vectors().copied()?;
        drop(before);
        let mut stop = self.links.setup_stop().clone();
        let made = Multigrid::from_test_vectors(&make, &thin, &self.params, &vectors, IMPROVEMENTS, &mut stop)?;
        *self.evolving.setup.borrow_mut() = Some(made);
        self.evolving.start();
        Ok(())
    }
    /// *Collective.* Hands the cycle for M̂, or that for M̂†, to `then`: a preconditioner of vectors in single precision.
    pub fn with_cycle(
        &self,
        dagger: bool,
        then: &mut dyn FnMut(&dyn Preconditioner<FieldSpace>) -> CycleResult,
    ) -> CycleResult {
        let (setup, reports) = (self.evolving.setup.borrow(), RefCell::default());
        let setup = setup.as_ref().expect("it is made before it is used");
        let done = setup.with_cycle(&self.operator, &self.smoother, 1, &reports, &mut |cycle| {
            if !dagger {
                return then(cycle);
            }
            let field = || space(self.links.own().domain(), Precision::Single, 1).allocate().map(RefCell::new);
            then(&AdjointCycle { cycle, operator: &self.operator, scratch: [field()?, field()?] })
        });
        self.evolving.is_used.set(true);
        done
    }
}

/// K′ = γ_5 A K A⁻¹ γ_5 for the symmetric complement, and γ_5 K γ_5 for the asymmetric one, A on the even sites: what K is for M̂, this
/// is for M̂†.
struct AdjointCycle<'a> {
    cycle: &'a dyn Preconditioner<FieldSpace>,
    operator: &'a EvenOddWilson,
    scratch: [RefCell<DeviceField>; 2],
}

impl AdjointCycle<'_> {
    /// `out` = A⁻¹ x, or A x, for the symmetric complement, and x for the other.
    fn divide(&self, space: &FieldSpace, inverse: bool, x: &DeviceField, out: &mut DeviceField) -> Result {
        match self.operator.complement() {
            Schur::Symmetric => self.operator.apply_diagonal(even(inverse, false), x, out),
            Schur::Asymmetric => space.copy(x, out),
        }
    }
}

impl Preconditioner<FieldSpace> for AdjointCycle<'_> {
    fn apply(&self, space: &FieldSpace, r: &DeviceField, _: &[f64], z: &mut DeviceField) -> Result<Work> {
        let [first, second] = &self.scratch;
        let (mut first, mut second) = (first.borrow_mut(), second.borrow_mut());
        // iγ_5 before and −iγ_5 after.
        self.operator.twist(1.0, r, &first)?;
        self.divide(space, true, &first, &mut second)?;
        let mut norms = vec![0.0; if self.cycle.needs_norms() { space.nrhs() } else { 0 }];
        if !norms.is_empty() {
            space.norm2(&second, &mut norms)?;
            norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
        }
        let work = self.cycle.apply(space, &second, &norms, &mut first)?;
        self.divide(space, false, &first, &mut second)?;
        self.operator.twist(-1.0, &second, z)?;
        Ok(work)
    }
    fn needs_norms(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_solves_ask_for_another_setup() {
        let multigrid = EvolvingMultigrid::new(MultigridParams::default());
        for (iterations, is_worn) in [(20, false), (28, false), (29, true)] {
            multigrid.note(iterations);
            assert_eq!(multigrid.is_worn.get(), is_worn, "{iterations}");
        }
        // Another trajectory has another measure.
        multigrid.clear();
        assert!(!multigrid.is_worn.get());
        multigrid.note(60);
        multigrid.note(70);
        assert!(!multigrid.is_worn.get());
    }
}
