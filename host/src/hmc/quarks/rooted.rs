//! Staggered quarks of any number of flavours, by rational functions.
use super::{
    MonomialDefinition, MonomialNeeds, QuarkAction, QuarkGroup, QuarkKeys, counted, keys_of, levels, parsed, tolerances,
};
use crate::domain::Domain;
use crate::hmc::HmcError;
use crate::hmc::fermions::{
    MOST_PSEUDOFERMIONS, Pseudofermions, QuarkOperator, QuarkSmearing, RationalFunctions, ShiftedSolver,
};
use crate::hmc::functions::{Quarks, Tolerances, rational_functions};
use crate::hmc::links::EvolvingLinks;
use crate::hmc::monomial::Monomial;
use crate::hmc::spectrum::{end_of_interval, largest};
use crate::hmc::stout::StoutSmearing;
use crate::operators::fat_links::PathCoefficients;
use crate::operators::{
    ASQTAD, BoundaryAngles, DIVISOR, Definition, HISQ, KeyKind, STAGGERED, StaggeredParams, StaggeredPhases,
    TimeBoundary, choose, is_divisor,
};
use gpu_kernels::FermionKind;
use rational::Fraction;
use serde::Serialize;
use serde_json::{Map, Value};

/// Definition of the monomials of staggered quarks that share pseudofermions.
pub(super) static ROOTED: MonomialDefinition = MonomialDefinition {
    name: "rooted",
    kind: FermionKind::Staggered,
    flavours: None,
    keys: &[
        ("mass", KeyKind::Numbers),
        ("pseudofermions", KeyKind::Count),
        ("dynamics-error", KeyKind::Number),
        ("action-error", KeyKind::Number),
        ("u0", KeyKind::Number),
        ("naik-epsilon", KeyKind::Numbers),
        ("bc-time", KeyKind::Word),
        ("theta", KeyKind::Numbers),
        ("phases", KeyKind::Word),
    ],
    methods: &[],
    refusal: "",
    resolve,
};

/// Staggered quarks of one or several masses that share pseudofermions.
#[derive(Clone, Debug)]
pub struct RootedQuarks {
    /// Operator: parameters, smearing and boundary angles.
    pub operator: QuarkOperator,
    /// Mass and number of flavours of each quark.
    pub quarks: Vec<Quarks>,
    /// Number of pseudofermions.
    pub pseudofermions: usize,
    /// Tolerances of the rational approximations.
    pub tolerances: Tolerances,
    /// Residuals of molecular dynamics, a single one or one for each pole; `None` to use the residuals that the ensemble sets for all
    /// quarks.
    pub dynamics_tol: Option<Vec<f64>>,
    /// Level of the integrator on which the force acts.
    pub level: usize,
}

fn resolve(keys: &mut dyn QuarkKeys, operator: Option<&'static Definition>) -> Option<QuarkGroup> {
    let is = |definition: &'static Definition| operator == Some(definition);
    let level = levels(keys);
    if level.len() > 1 {
        keys.refuse("level", "the pseudofermions of staggered quarks share one level: give one number");
    }
    let u0 = keys.number("u0", "a number of at least 1e-3", &|x| x >= 1e-3);
    match is(&ASQTAD) {
        true => keys.needed(u0.is_some(), "u0", "u0 = 0.86"),
        false => keys.refuse("u0", "of all staggered quarks, only asqtad quarks have a tadpole factor: remove it"),
    }
    let masses = keys.numbers("mass", DIVISOR, &is_divisor);
    keys.needed(masses.is_some(), "mass", "mass = [0.05]");
    let flavours = parsed(keys, "flavours", |typed| {
        let one = |text: &str| match text.trim().parse::<Fraction>() {
            Ok(n) if n.value() != 0.0 => Ok(n),
            Ok(_) => Err("a mass with 0 flavours has no effect: remove the mass and the 0, or the whole table if it \
                          has no other mass"
                .into()),
            Err(why) => Err(why.to_string()),
        };
        typed.split(',').map(one).collect::<Result<Vec<_>, String>>()
    });
    keys.needed(flavours.is_some(), "flavours", "flavours = [2]");
    let pseudofermions = keys.count("pseudofermions", 1..=MOST_PSEUDOFERMIONS).unwrap_or(1);
    let times = [("antiperiodic", TimeBoundary::Antiperiodic), ("periodic", TimeBoundary::Periodic)];
    let boundary = choose(keys, "bc-time", &times).unwrap_or_default();
    let theta = BoundaryAngles::resolve(keys);
    let phases = [("milc", StaggeredPhases::Milc), ("lexicographic", StaggeredPhases::Lexicographic)];
    let phases = choose(keys, "phases", &phases).unwrap_or_default();
    let (tolerances, dynamics_tol) = (tolerances(keys), keys.residuals("dynamics-tol"));
    let epsilon = naik_epsilon(keys, operator, masses.as_deref());
    let stout = keys.stout();
    if (is(&ASQTAD) || is(&HISQ)) && keys.is_given("stout-rho") {
        let why = "stout links apply to naive and Wilson-like quarks only, because asqtad and HISQ quarks have their \
                   own smeared links: remove stout-rho";
        keys.refuse("stout-rho", why);
        return None;
    }
    let (operator, masses, flavours) = (operator?, masses?, flavours?);
    if masses.len() != flavours.len() {
        let (numbers, of) = (counted(flavours.len(), "number", "numbers"), counted(masses.len(), "mass", "masses"));
        keys.refuse("flavours", &format!("{numbers} for {of}: give one number for each mass"));
        return None;
    }
    let params = StaggeredParams { mass: 0.0, boundary, phases };
    let smearing = match operator {
        _ if *operator == STAGGERED => stout.map_or(QuarkSmearing::Thin, QuarkSmearing::Stout),
        _ if *operator == ASQTAD => QuarkSmearing::Paths(PathCoefficients::asqtad(u0?)),
        _ if *operator == HISQ => QuarkSmearing::Hisq { epsilon: epsilon? },
        _ => return None,
    };
    let quarks: Vec<Quarks> =
        masses.iter().zip(&flavours).map(|(mass, flavours)| Quarks { mass: *mass, flavours: *flavours }).collect();
    let one = |quarks: &Quarks| format!("{} at m = {}", quarks.flavours, quarks.mass);
    let names: Vec<_> = quarks.iter().map(one).collect();
    let mut name = format!("{} flavours {}", title(&smearing), names.join(" and "));
    if let QuarkSmearing::Hisq { epsilon } = smearing
        && epsilon != 0.0
    {
        name += &format!(" with epsilon = {epsilon}");
    }
    if !theta.are_zero() {
        name += &format!(" with theta = {:?}", theta.0);
    }
    let operator = QuarkOperator { params, smearing, theta };
    let level = level[0];
    Some(QuarkGroup::new(name, RootedQuarks { operator, quarks, pseudofermions, tolerances, dynamics_tol, level }))
}

/// Returns the name of the operator with this smearing of links.
fn title(smearing: &QuarkSmearing) -> &'static str {
    match smearing {
        QuarkSmearing::Thin | QuarkSmearing::Stout(_) => "naive",
        QuarkSmearing::Paths(_) => "asqtad",
        QuarkSmearing::Hisq { .. } => "hisq",
    }
}

/// Returns the ε of all quarks of a table, or 0 if none is given. Users give one number, or one for each mass, which must all be equal.
fn naik_epsilon(
    keys: &mut dyn QuarkKeys,
    operator: Option<&'static Definition>,
    masses: Option<&[f64]>,
) -> Option<f64> {
    const KEY: &str = "naik-epsilon";
    let given = keys.numbers(KEY, "a number", &|_| true);
    if !keys.is_given(KEY) {
        return Some(0.0);
    }
    if operator.is_some_and(|operator| *operator != HISQ) {
        keys.refuse(KEY, "only HISQ has a correction of the Naik term: remove it");
        return None;
    }
    let given = given?;
    if given.iter().any(|epsilon| *epsilon != given[0]) {
        let why = "the masses of a table share pseudofermions and therefore one operator: give quarks with another \
                   naik-epsilon a separate table [[fermion]]";
        keys.refuse(KEY, why);
        return None;
    }
    if let (2.., Some(masses)) = (given.len(), masses)
        && given.len() != masses.len()
    {
        let (numbers, of) = (counted(given.len(), "number", "numbers"), counted(masses.len(), "mass", "masses"));
        keys.refuse(KEY, &format!("{numbers} for {of}: give one number for all masses"));
        return None;
    }
    given.first().copied()
}

impl QuarkAction for RootedQuarks {
    fn levels(&self) -> Vec<usize> {
        vec![self.level]
    }
    fn needs(&self) -> MonomialNeeds {
        let stout = match self.operator.smearing {
            QuarkSmearing::Stout(smearing) => Some(smearing),
            _ => None,
        };
        MonomialNeeds {
            operator: Some(self.operator),
            stout,
            pseudofermions: self.pseudofermions,
            rational: self.pseudofermions,
            ..Default::default()
        }
    }
    fn dynamics_tol(&self) -> Option<&[f64]> {
        self.dynamics_tol.as_deref()
    }
    /// Returns bounds of A = −D², which has no negative eigenvalues.
    fn bounds(&self, links: &EvolvingLinks, _: &ShiftedSolver, seed: u64) -> Result<Option<[f64; 2]>, HmcError> {
        Ok(Some([0.0, largest(links, &self.operator, seed)?]))
    }
    fn interval(&self, [_, largest]: [f64; 2]) -> [f64; 2] {
        // The lower limit of 1 gives the interval a positive length for any links.
        [0.0, end_of_interval(largest.max(1.0))]
    }
    fn functions(&self, [_, end]: [f64; 2]) -> Result<Option<RationalFunctions>, rational::Error> {
        let RootedQuarks { quarks, pseudofermions, tolerances, .. } = self;
        rational_functions(quarks, *pseudofermions, end, *tolerances, rational::approximate_to).map(Some)
    }
    fn parts(
        &self,
        name: &str,
        domain: &Domain,
        solvers: &[ShiftedSolver; 2],
        functions: Option<RationalFunctions>,
        first: u32,
    ) -> Result<Vec<Box<dyn Monomial>>, HmcError> {
        let functions = functions.expect("staggered quarks have rational functions");
        let (name, solvers, count) = (name.into(), solvers.clone(), self.pseudofermions);
        let part = Pseudofermions::new(domain, name, self.operator, functions, solvers, first, count)?;
        Ok(vec![Box::new(part)])
    }
    fn describe(&self) -> Map<String, Value> {
        let QuarkOperator { params, smearing, theta } = &self.operator;
        keys_of(&RootedSettings {
            operator: title(smearing),
            mass: self.quarks.iter().map(|quarks| quarks.mass).collect(),
            flavours: self.quarks.iter().map(|quarks| quarks.flavours.to_string()).collect(),
            pseudofermions: self.pseudofermions,
            level: self.level,
            paths: match smearing {
                QuarkSmearing::Paths(paths) => Some(*paths),
                _ => None,
            },
            errors: self.tolerances,
            bc_time: match params.boundary {
                TimeBoundary::Antiperiodic => "antiperiodic",
                TimeBoundary::Periodic => "periodic",
            },
            theta: theta.0,
            phases: match params.phases {
                StaggeredPhases::Milc => "milc",
                StaggeredPhases::Lexicographic => "lexicographic",
            },
            naik_epsilon: match smearing {
                QuarkSmearing::Hisq { epsilon } => Some(*epsilon),
                _ => None,
            },
            stout: match smearing {
                QuarkSmearing::Stout(smearing) => Some(*smearing),
                _ => None,
            },
            dynamics_tol: self.dynamics_tol.as_deref(),
        })
    }
    fn staggered(&self) -> Option<(&QuarkOperator, &[Quarks])> {
        Some((&self.operator, &self.quarks))
    }
}

/// Settings of staggered quarks, for records. The last three keys are left out if they are not given, so that records of earlier versions
/// compare equal.
#[derive(Serialize)]
struct RootedSettings<'a> {
    operator: &'static str,
    mass: Vec<f64>,
    /// Numbers of flavours, as text since they are fractions.
    flavours: Vec<String>,
    pseudofermions: usize,
    level: usize,
    paths: Option<PathCoefficients>,
    errors: Tolerances,
    bc_time: &'static str,
    theta: [f64; 4],
    phases: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    naik_epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stout: Option<StoutSmearing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dynamics_tol: Option<&'a [f64]>,
}
