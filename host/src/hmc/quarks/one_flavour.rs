//! One Wilson-like quark, by a rational function.
use super::wilson_like::{WilsonSettings, WilsonTable};
use super::{MonomialDefinition, MonomialNeeds, QuarkAction, QuarkGroup, QuarkKeys, keys_of, tolerances};
use crate::domain::Domain;
use crate::hmc::HmcError;
use crate::hmc::fermions::{MOST_PSEUDOFERMIONS, RationalFunctions, ShiftedSolver};
use crate::hmc::functions::{Tolerances, rational_functions_of_norm};
use crate::hmc::links::EvolvingLinks;
use crate::hmc::monomial::Monomial;
use crate::hmc::spectrum::interval;
use crate::hmc::wilson::one_flavour::OneFlavour;
use crate::hmc::wilson::spectrum::extremes;
use crate::operators::{Definition, KeyKind};
use crate::solve::{Method, Request};
use gpu_kernels::FermionKind;
use serde_json::{Map, Value};

/// Definition of the monomials of one Wilson-like quark.
pub(super) static ONE_FLAVOUR: MonomialDefinition = MonomialDefinition {
    name: "one flavour",
    kind: FermionKind::Wilson,
    flavours: Some(1),
    keys: &[("pseudofermions", KeyKind::Count), ("dynamics-error", KeyKind::Number), ("action-error", KeyKind::Number)],
    methods: &[],
    refusal: "applies only to two flavours, because one flavour is computed with a rational function and CG: remove \
              it, or give flavours = 2",
    resolve,
};

/// One Wilson-like quark with a rational function, which several pseudofermions may share.
#[derive(Clone, Debug)]
pub struct OneFlavourQuarks {
    table: WilsonTable,
    pseudofermions: usize,
    tolerances: Tolerances,
}

fn resolve(keys: &mut dyn QuarkKeys, operator: Option<&'static Definition>) -> Option<QuarkGroup> {
    let pseudofermions = keys.count("pseudofermions", 1..=MOST_PSEUDOFERMIONS).unwrap_or(1);
    let tolerances = tolerances(keys);
    if operator.is_some_and(|operator| operator.partner().is_some()) {
        keys.refuse("flavours", "quarks with a twisted mass are doublets: give flavours = 2");
    }
    let (mut table, called) = WilsonTable::read(keys, operator)?;
    table.spread_levels(keys, 1)?;
    let name = format!("{} quarks 1 at {called}", table.quarks.operator.definition.name);
    Some(QuarkGroup::new(name, OneFlavourQuarks { table, pseudofermions, tolerances }))
}

impl QuarkAction for OneFlavourQuarks {
    fn levels(&self) -> Vec<usize> {
        self.table.levels_of_parts()
    }
    fn needs(&self) -> MonomialNeeds {
        MonomialNeeds { rational: self.pseudofermions, ..self.table.needs(self.pseudofermions) }
    }
    fn dynamics_tol(&self) -> Option<&[f64]> {
        self.table.dynamics_tol.as_deref()
    }
    /// Returns the extreme eigenvalues of K = M̂†M̂.
    fn bounds(&self, links: &EvolvingLinks, solver: &ShiftedSolver, seed: u64) -> Result<Option<[f64; 2]>, HmcError> {
        let (precision, max_iterations) = (solver.precision(), Some(solver.max_iterations));
        let of_quarks = Request::new(self.table.quarks.operator);
        let request = Request { method: Method::CG, precision, tol: 1e-6, max_iterations, ..of_quarks };
        extremes(links, &self.table.quarks, &request, seed).map(Some)
    }
    fn interval(&self, bounds: [f64; 2]) -> [f64; 2] {
        interval(bounds)
    }
    fn functions(&self, interval: [f64; 2]) -> Result<Option<RationalFunctions>, rational::Error> {
        let (count, tolerances) = (self.pseudofermions, self.tolerances);
        rational_functions_of_norm(1, count, interval, tolerances, rational::approximate_to).map(Some)
    }
    fn parts(
        &self,
        name: &str,
        domain: &Domain,
        solvers: &[ShiftedSolver; 2],
        functions: Option<RationalFunctions>,
        first: u32,
    ) -> Result<Vec<Box<dyn Monomial>>, HmcError> {
        let functions = functions.expect("one flavour has a rational function");
        let (quarks, count) = (self.table.quarks, self.pseudofermions);
        let part = OneFlavour::new(domain, name.into(), quarks, functions, solvers.clone(), first, count)?;
        let part: Box<dyn Monomial> = Box::new(part);
        Ok(std::iter::once(part).chain(self.table.determinant(name, 1)).collect())
    }
    fn describe(&self) -> Map<String, Value> {
        let settings = self.table.settings(1, self.pseudofermions);
        keys_of(&WilsonSettings { errors: Some(self.tolerances), ..settings })
    }
}
