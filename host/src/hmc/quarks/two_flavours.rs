//! Two Wilson-like quarks of one mass, without a rational function, with heavier quarks that split their determinant.
use super::wilson_like::{WilsonSettings, WilsonTable};
use super::{MonomialDefinition, MonomialNeeds, QuarkAction, QuarkGroup, QuarkKeys, keys_of};
use crate::domain::Domain;
use crate::hmc::HmcError;
use crate::hmc::fermions::{RationalFunctions, ShiftedSolver};
use crate::hmc::links::EvolvingLinks;
use crate::hmc::monomial::Monomial;
use crate::hmc::wilson::WilsonQuarks;
use crate::hmc::wilson::two_flavours::{MOST_GUESSES, TwoFlavours};
use crate::multigrid::MultigridParams;
use crate::operators::{DIVISOR, Definition, KeyKind, choose, is_divisor};
use crate::solve::{Method, Request};
use gpu_kernels::FermionKind;
use serde_json::{Map, Value};

/// Definition of the monomials of two Wilson-like quarks of one mass.
pub(super) static TWO_FLAVOURS: MonomialDefinition = MonomialDefinition {
    name: "two flavours",
    kind: FermionKind::Wilson,
    flavours: Some(2),
    keys: &[
        ("hasenbusch-mass", KeyKind::Numbers),
        ("hasenbusch-kappa", KeyKind::Numbers),
        ("hasenbusch-mu", KeyKind::Numbers),
        ("method", KeyKind::Word),
        ("guesses", KeyKind::Count),
    ],
    methods: &[Method::CG, Method::BICGSTAB, Method::MULTIGRID],
    refusal: "applies only to rational functions, which two flavours of Wilson-like quarks do not use: remove it",
    resolve,
};

/// Two Wilson-like quarks of one mass. Heavier quarks can split their determinant into ratios (Hasenbusch 2001), each with a pseudofermion.
#[derive(Clone, Debug)]
pub struct TwoFlavourQuarks {
    table: WilsonTable,
    /// Heavier quarks with their names, from light to heavy.
    heavier: Vec<(WilsonQuarks, String)>,
    method: &'static Method,
    /// Parameters of multigrid, if multigrid is the method.
    multigrid: Option<MultigridParams>,
    /// Number of earlier solutions of a trajectory from which initial guesses are made.
    guesses: usize,
}

fn resolve(keys: &mut dyn QuarkKeys, operator: Option<&'static Definition>) -> Option<QuarkGroup> {
    let masses = keys.numbers("hasenbusch-mass", "a number", &|_| true);
    let kappas = keys.numbers("hasenbusch-kappa", DIVISOR, &is_divisor);
    let twists = keys.numbers("hasenbusch-mu", DIVISOR, &is_divisor);
    let mut given = ["hasenbusch-mass", "hasenbusch-kappa", "hasenbusch-mu"].to_vec();
    given.retain(|key| keys.is_given(key));
    if let [one, other, ..] = given[..] {
        keys.conflict(one, other, "give only one of them");
    }
    let methods: Vec<_> = TWO_FLAVOURS.methods.iter().map(|method| (method.name, *method)).collect();
    let method = choose(keys, "method", &methods).unwrap_or(Method::CG);
    let multigrid = Some(keys.multigrid()).filter(|_| method == Method::MULTIGRID);
    match multigrid {
        None => {
            for key in Method::MULTIGRID.keys {
                keys.refuse(key.name, "applies only to method = \"multigrid\": remove it");
            }
        }
        Some(_) if operator.is_some_and(|operator| operator.partner().is_some()) => {
            keys.refuse(
                "method",
                "multigrid is not available for quarks with a twisted mass: give \"cg\" or \
                                   \"bicgstab\"",
            );
        }
        Some(_) => {}
    }
    let guesses = keys.count("guesses", 0..=MOST_GUESSES).unwrap_or(0);
    let (mut table, called) = WilsonTable::read(keys, operator)?;
    let WilsonQuarks { operator, .. } = table.quarks;
    // `heavy` lists the masses of the heavier quarks, each with its name for messages.
    let of_masses = masses.iter().flatten().map(|mass| (*mass, format!("m = {mass}")));
    let of_kappas = kappas.iter().flatten().map(|kappa| (0.5 / kappa - 4.0, format!("kappa = {kappa}")));
    let heavy: Vec<(f64, String)> = of_masses.chain(of_kappas).collect();
    let mass = operator.wilson.mass;
    if heavy.iter().any(|(heavy, _)| *heavy <= mass) || !heavy.is_sorted_by(|(a, _), (b, _)| a <= b) {
        for key in ["hasenbusch-mass", "hasenbusch-kappa"] {
            let why = format!("the quarks of this table have {called}: list only heavier ones, from light to heavy");
            keys.refuse(key, &why);
        }
        return None;
    }
    if twists.as_ref().is_some_and(|list| !list.is_sorted()) {
        keys.refuse("hasenbusch-mu", "list the twisted masses in ascending order");
        return None;
    }
    let with_mass = |(mass, called): (f64, String)| {
        let operator = operator.of_mass(mass);
        (WilsonQuarks { operator, ..table.quarks }, called)
    };
    let twisted = |mu: &f64| (WilsonQuarks { twist: *mu, ..table.quarks }, format!("mu = {mu}"));
    let heavier: Vec<_> = heavy.into_iter().map(with_mass).chain(twists.iter().flatten().map(twisted)).collect();
    table.spread_levels(keys, heavier.len() + 1)?;
    let name = format!("{} quarks 2 at {called}", operator.definition.name);
    Some(QuarkGroup::new(name, TwoFlavourQuarks { table, heavier, method, multigrid, guesses }))
}

impl TwoFlavourQuarks {
    /// Returns the request for solves with `solver`. The precision of the iteration is always that of molecular dynamics, because residuals
    /// are corrected in double precision.
    fn request(&self, of_dynamics: &ShiftedSolver, solver: &ShiftedSolver) -> Request {
        Request {
            method: self.method,
            precision: of_dynamics.precision(),
            tol: solver.tol[0],
            max_iterations: Some(solver.max_iterations),
            multigrid: self.multigrid.unwrap_or_default(),
            ..Request::new(self.table.quarks.operator)
        }
    }
}

impl QuarkAction for TwoFlavourQuarks {
    fn levels(&self) -> Vec<usize> {
        self.table.levels_of_parts()
    }
    fn needs(&self) -> MonomialNeeds {
        let pseudofermions = 1 + self.heavier.len();
        let guesses = self.guesses * pseudofermions;
        MonomialNeeds { guesses, multigrid: self.multigrid, ..self.table.needs(pseudofermions) }
    }
    fn dynamics_tol(&self) -> Option<&[f64]> {
        self.table.dynamics_tol.as_deref()
    }
    fn bounds(&self, _: &EvolvingLinks, _: &ShiftedSolver, _: u64) -> Result<Option<[f64; 2]>, HmcError> {
        Ok(None)
    }
    fn interval(&self, bounds: [f64; 2]) -> [f64; 2] {
        bounds
    }
    fn functions(&self, _: [f64; 2]) -> Result<Option<RationalFunctions>, rational::Error> {
        Ok(None)
    }
    fn parts(
        &self,
        name: &str,
        domain: &Domain,
        solvers: &[ShiftedSolver; 2],
        _: Option<RationalFunctions>,
        first: u32,
    ) -> Result<Vec<Box<dyn Monomial>>, HmcError> {
        let requests = [&solvers[0], &solvers[1]].map(|solver| self.request(&solvers[0], solver));
        let lighter = std::iter::once((self.table.quarks, None));
        let lighter = lighter.chain(self.heavier.iter().map(|(quarks, name)| (*quarks, Some(name))));
        let heavier = self.heavier.iter().map(Some).chain([None]);
        let mut parts: Vec<Box<dyn Monomial>> = Vec::new();
        for (number, ((quarks, of), heavier)) in lighter.zip(heavier).enumerate() {
            let of = of.map_or(String::new(), |of| format!(", {of}"));
            let over = heavier.map_or(String::new(), |(_, heavier)| format!(", over {heavier}"));
            let (name, heavier) = (format!("{name}{of}{over}"), heavier.map(|(quarks, _)| *quarks));
            let (precision, first) = (solvers[0].precision(), first + number as u32);
            let part = TwoFlavours::new(domain, name, quarks, heavier, requests.clone(), precision, first)?;
            // Only the lightest quarks use multigrid: a solve for heavier quarks takes less time than a setup.
            let part = if number == 0 { part } else { part.without_multigrid() };
            parts.push(Box::new(part.with_guesses(self.guesses)));
        }
        parts.extend(self.table.determinant(name, 2));
        Ok(parts)
    }
    fn describe(&self) -> Map<String, Value> {
        keys_of(&WilsonSettings {
            hasenbusch: self.heavier.iter().map(|(_, name)| &**name).collect(),
            guesses: self.guesses,
            multigrid: self.multigrid.as_ref().map(Into::into),
            method: self.method.name,
            ..self.table.settings(2, 1 + self.heavier.len())
        })
    }
}
