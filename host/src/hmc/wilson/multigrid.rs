//! Multigrid for the systems of a trajectory. Its near-null vectors follow the links.
use super::WilsonQuarks;
use crate::hmc::links::EvolvingLinks;
use crate::multigrid::{CycleResult, Multigrid, MultigridParams};
use crate::solve::BlockMultigrid;
use gpu_kernels::Precision;
use solvers::Observer;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Multigrid of one operator. Each trajectory makes a new setup, so that a chain that continues from a file takes the same steps. Within a
/// trajectory the setup is refreshed if solves have become longer.
pub(super) struct EvolvingMultigrid {
    params: MultigridParams,
    setup: RefCell<Option<Rc<Multigrid>>>,
    /// Iterations of the first solve of molecular dynamics with the present setup.
    first: Cell<Option<usize>>,
    /// Whether the setup is refreshed before the next solve.
    is_worn: Cell<bool>,
    /// Whether the setup was used in a solve.
    is_used: Cell<bool>,
}

/// Ratio of the iterations of a solve to those of the first solve, above which the setup counts as worn.
const WORN: f64 = 1.4;
/// Number of times that a refresh improves the near-null vectors of earlier links.
const IMPROVEMENTS: usize = 1;

impl EvolvingMultigrid {
    /// Makes multigrid with these parameters; the setup is made when it is first needed.
    pub fn new(params: MultigridParams) -> Self {
        let (setup, first) = Default::default();
        EvolvingMultigrid { params, setup, first, is_worn: Cell::new(false), is_used: Cell::new(false) }
    }
    /// Drops the setup, so that the next trajectory makes a new one.
    pub fn clear(&self) {
        self.setup.take();
        self.forget();
    }
    fn start(&self, setup: Multigrid) {
        self.setup.replace(Some(Rc::new(setup)));
        self.forget();
    }
    fn forget(&self) {
        self.first.set(None);
        self.is_worn.set(false);
        self.is_used.set(false);
    }
    /// *Collective.* Returns multigrid for an operator on the present links. Makes the setup if there is none, and refreshes it if solves
    /// with it have become too long.
    pub fn on(
        &self,
        quarks: &WilsonQuarks,
        links: &EvolvingLinks,
        observer: &mut dyn Observer,
    ) -> CycleResult<BlockMultigrid> {
        let params = self.params_on(quarks, links);
        let make = |precision, nrhs| quarks.complement(links, precision, nrhs);
        if self.setup.borrow().is_none() {
            let gauge = quarks.links(links, Precision::Double)?;
            self.start(Multigrid::new(&make, &gauge, &params, observer)?);
        } else if self.is_worn.get() {
            self.refresh(quarks, links)?;
        }
        let setup = self.setup.borrow().clone().expect("it was made just now");
        Ok(BlockMultigrid::new(setup, &params, &make, links.own().domain(), 1)?)
    }
    /// *Collective.* Refreshes the setup for these links: its near-null vectors are improved and coarse operators are made again.
    pub fn refresh(&self, quarks: &WilsonQuarks, links: &EvolvingLinks) -> CycleResult {
        let params = self.params_on(quarks, links);
        let make = |precision, nrhs| quarks.complement(links, precision, nrhs);
        let gauge = quarks.links(links, Precision::Double)?;
        // The old setup is dropped before a new one is made: two setups at once would take too much memory.
        let Some(before) = self.setup.take() else { return Ok(()) };
        let vectors = before.near_null_vectors().copied()?;
        drop(before);
        let mut stop = links.setup_stop().clone();
        self.start(Multigrid::from_near_null_vectors(&make, &gauge, &params, &vectors, IMPROVEMENTS, &mut stop)?);
        Ok(())
    }
    fn params_on(&self, quarks: &WilsonQuarks, links: &EvolvingLinks) -> MultigridParams {
        self.params.smoothing_on(links.own().domain().backend(), &quarks.operator)
    }
    /// Records the number of iterations of a solve of molecular dynamics. If it is too large, the setup is refreshed before the next solve.
    pub fn note(&self, iterations: usize) {
        match self.first.get() {
            None => self.first.set(Some(iterations)),
            Some(first) => self.is_worn.set(iterations as f64 > WORN * first as f64),
        }
    }
    /// Records that a solve has used the setup.
    pub fn set_used(&self) {
        self.is_used.set(true);
    }
    /// Whether a solve has used the setup. If a later solve fails, the links may have changed too much since the setup was made, and
    /// [`refresh`](Self::refresh) may help.
    pub fn is_used(&self) -> bool {
        self.is_used.get()
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
