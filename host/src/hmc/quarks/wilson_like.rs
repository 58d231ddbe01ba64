//! Tables of Wilson-like quarks with any number of flavours.
use super::{MonomialNeeds, QuarkKeys, levels};
use crate::hmc::functions::Tolerances;
use crate::hmc::monomial::Monomial;
use crate::hmc::stout::StoutSmearing;
use crate::hmc::wilson::WilsonQuarks;
use crate::hmc::wilson::determinant::BlockDeterminant;
use crate::multigrid::{MOST_COARSENINGS, MultigridParams};
use crate::operators::{Definition, LinkDependence, Schur, WilsonLike};
use crate::solve::Method;
use serde::Serialize;
use serde_json::{Map, Value};

/// Table of Wilson-like quarks of one mass.
#[derive(Clone, Debug)]
pub struct WilsonTable {
    /// Operator M and the smearing of its links.
    pub quarks: WilsonQuarks,
    /// Parameters of the operator M as JSON, for records.
    pub described: Map<String, Value>,
    /// Residual of molecular dynamics for these quarks; `None` to use the residual that the ensemble sets for all quarks.
    pub dynamics_tol: Option<Vec<f64>>,
    /// Levels of the integrator: one for each pseudofermion, or a single one for all.
    pub levels: Vec<usize>,
}

impl WilsonTable {
    /// Reads the keys that tables of any number of flavours have. Also returns the mass as text, for names and messages.
    pub(super) fn read(keys: &mut dyn QuarkKeys, operator: Option<&'static Definition>) -> Option<(Self, String)> {
        let resolved = operator?.resolve_all(keys);
        let dynamics_tol = keys.residuals("dynamics-tol");
        if dynamics_tol.as_ref().is_some_and(|list| list.len() > 1) {
            keys.refuse("dynamics-tol", "Wilson-like quarks have one residual: give one number");
        }
        let (levels, stout) = (levels(keys), keys.stout());
        let (operator, described) = resolved?;
        let operator = *operator.parameters::<WilsonLike>()?;
        let called = match keys.text("kappa") {
            Some(kappa) => format!("kappa = {kappa}"),
            None => format!("m = {}", operator.wilson.mass),
        };
        let quarks = WilsonQuarks { stout, ..WilsonQuarks::new(operator) };
        Some((WilsonTable { quarks, described, dynamics_tol, levels }, called))
    }
    /// Repeats a single level for all pseudofermions. Notes a number of levels that is neither 1 nor the number of pseudofermions.
    pub(super) fn spread_levels(&mut self, keys: &mut dyn QuarkKeys, pseudofermions: usize) -> Option<()> {
        match self.levels[..] {
            [level] => self.levels = vec![level; pseudofermions],
            _ if self.levels.len() == pseudofermions => {}
            _ => {
                let others = format!(", or one for each of the {pseudofermions} pseudofermions");
                let others = if pseudofermions == 1 { "" } else { others.as_str() };
                keys.refuse("level", &format!("give one level{others}"));
                return None;
            }
        }
        Some(())
    }
    /// Returns the levels of all monomials, pseudofermions first. The determinant goes to the innermost level, because its force is cheap.
    pub(super) fn levels_of_parts(&self) -> Vec<usize> {
        let innermost = self.levels.iter().copied().max().filter(|_| self.quarks.has_determinant());
        self.levels.iter().copied().chain(innermost).collect()
    }
    /// Returns the monomial of the determinant of the clover blocks A, if these quarks have one.
    pub(super) fn determinant(&self, name: &str, flavours: u32) -> Option<Box<dyn Monomial>> {
        let name = format!("{name}, determinant of the clover term");
        self.quarks.has_determinant().then(|| Box::new(BlockDeterminant::new(name, self.quarks, flavours)) as _)
    }
    pub(super) fn needs(&self, pseudofermions: usize) -> MonomialNeeds {
        let dependence = self.quarks.operator.dependence();
        MonomialNeeds {
            stout: self.quarks.stout,
            pseudofermions,
            has_blocks: dependence != LinkDependence::None,
            is_exponential: matches!(dependence, LinkDependence::Exponential(_)),
            ..Default::default()
        }
    }
    /// Returns the settings of quarks with any number of flavours, for records. They name CG as the method and no heavier quarks, unless
    /// the caller replaces these.
    pub(super) fn settings(&self, flavours: u32, pseudofermions: usize) -> WilsonSettings<'_> {
        let WilsonLike { definition, wilson, schur, .. } = self.quarks.operator;
        WilsonSettings {
            parameters: &self.described,
            operator: definition.name,
            flavours: [flavours.to_string()],
            bc_time: if wilson.boundary.sign() < 0.0 { "antiperiodic" } else { "periodic" },
            schur: match schur {
                Schur::Symmetric => "symmetric",
                Schur::Asymmetric => "asymmetric",
            },
            pseudofermions,
            levels: &self.levels,
            stout: self.quarks.stout.map_or(RecordedStout::Named("none"), RecordedStout::Smeared),
            dynamics_tol: self.dynamics_tol.as_deref(),
            hasenbusch: Vec::new(),
            guesses: 0,
            multigrid: None,
            method: Method::CG.name,
            errors: None,
        }
    }
}

/// Settings of Wilson-like quarks, for records.
#[derive(Serialize)]
pub(super) struct WilsonSettings<'a> {
    /// Parameters of the operator.
    #[serde(flatten)]
    pub parameters: &'a Map<String, Value>,
    pub operator: &'static str,
    /// Number of flavours, written as text because records of staggered quarks contain fractions.
    pub flavours: [String; 1],
    pub bc_time: &'static str,
    pub schur: &'static str,
    pub pseudofermions: usize,
    pub levels: &'a [usize],
    pub stout: RecordedStout,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamics_tol: Option<&'a [f64]>,
    /// Names of the heavier quarks that split the determinant, from light to heavy.
    pub hasenbusch: Vec<&'a str>,
    pub guesses: usize,
    /// Parameters of multigrid, if multigrid is the method.
    pub multigrid: Option<RecordedMultigrid>,
    pub method: &'static str,
    /// Tolerances of the rational function, if the quarks have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Tolerances>,
}

/// Stout links of Wilson-like quarks, for records.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum RecordedStout {
    Smeared(StoutSmearing),
    /// `none`
    Named(&'static str),
}

/// Parameters of multigrid, for records. A parameter that the program chooses is `null`.
#[derive(Serialize)]
pub(super) struct RecordedMultigrid {
    vectors: usize,
    levels: usize,
    blocks: [Option<[usize; 4]>; MOST_COARSENINGS],
    relaxations: usize,
    improvements: usize,
    smoothing: usize,
    precision: Option<String>,
}

impl From<&MultigridParams> for RecordedMultigrid {
    fn from(params: &MultigridParams) -> Self {
        let MultigridParams { vectors, levels, blocks, relaxations, improvements, cycle, precision, .. } = *params;
        let (smoothing, precision) = (cycle.post_smoothing, precision.map(|precision| precision.to_string()));
        RecordedMultigrid { vectors, levels, blocks, relaxations, improvements, smoothing, precision }
    }
}
