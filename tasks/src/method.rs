//! Settings of a solve from flags and input: the solver, its precisions and its limits.
use super::batch::{self, BatchChoice, BatchSize};
use super::fields::Source;
use super::layout::Cut;
use super::multigrid;
use super::plan::Wanted;
use super::schwarz;
use super::text;
use super::{Failure, Outcome};
use ferrite::FermionKind;
use ferrite::field::host::{ColourVector, Fermion, Spinor};
use ferrite::multigrid::MultigridParams;
use ferrite::operators::Operator;
use ferrite::solve::names::{OUTER_PRECISIONS, PRECISIONS, RECONSTRUCTIONS, name_of};
use ferrite::solve::{Correction, Counts, METHODS, Method, Report, Request, Schwarz, methods_for};
use ferrite::{LinkStorage, Precision};
use ferrite_inputs::values::{AnyWord, Count, Number, Residual, Switch, Text, Word};
use ferrite_inputs::{Given, Input, rules, vocabularies};
use serde::Deserialize;
use std::iter;
use std::path::PathBuf;

/// Settings of a solve, resolved from its keys.
pub struct SolveScheme {
    /// Requested tolerance: relative true residual at which the solve ends.
    pub tol: f64,
    /// Initial guesses, one for each source; `None` for zero.
    pub guess: Option<Vec<Source>>,
    /// Requested number of right-hand sides in a batch.
    pub batch: BatchChoice,
    method: &'static Method,
    max_iterations: Option<usize>,
    outer: Precision,
    correction: Correction,
    schwarz: Schwarz,
    multigrid: MultigridParams,
    /// File of the multigrid setup; `None` without `--setup`.
    pub setup: Option<PathBuf>,
    /// Whether the input requests a number of near-null vectors.
    pub asks_for_vectors: bool,
    counts: Counts,
    sources: usize,
    escalate: bool,
    /// Whether CG acts on the operator itself, which is positive for staggered operators.
    positive: bool,
}

vocabularies! {
    /// Values of `outer`, the precision of the solution and of the residuals of reliable updates.
    OuterPrecisions: Precision = OUTER_PRECISIONS;
    /// Values of `correction`; `true` for defect correction.
    Corrections: bool = [("reliable", false), ("defect", true)];
}
rules! {
    /// Factor δ by which residuals fall between two true residuals.
    Fraction: "a number of at least 0 and below 1", |d| (0.0..1.0).contains(&d);
}

/// Keys of the solver and of its limits.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct SolverKeys {
    solver: Given<AnyWord>,
    tol: Given<Number<Residual>>,
    max_iterations: Given<Count<1, 1_000_000_000>>,
    outer: Given<Word<OuterPrecisions>>,
    guess: Given<Text>,
    batch: Given<BatchSize>,
    correction: Given<Word<Corrections>>,
    delta: Given<Number<Fraction>>,
    inner_tol: Given<Number<Residual>>,
    no_escalation: Given<Switch>,
    setup: Given<Text>,
    check_setup: Given<Switch>,
}

impl SolveScheme {
    /// Reads the keys of a solver for a type of fermions, and adds mistakes to the input.
    pub fn of(input: &mut Input, kind: FermionKind, wanted: Option<Wanted>) -> Self {
        let keys: SolverKeys = input.read("");
        // The first method in the list is the default.
        let methods = methods_for(kind);
        let method = input.meaning(&keys.solver, &methods).unwrap_or(methods[0].1);
        let outer = keys.outer.value().unwrap_or_default();
        if outer == Precision::Single && wanted.as_ref().is_some_and(|w| w.precision == Precision::Double) {
            let lower = input.spelled("precision", "single or half");
            let why = format!("an outer precision of single excludes an iteration in double: give {lower}");
            input.conflict("outer", "precision", &why);
        }
        let guess = match kind {
            FermionKind::Wilson => guess::<Spinor>(input, &keys.guess, wanted.as_ref()),
            FermionKind::Staggered => guess::<ColourVector>(input, &keys.guess, wanted.as_ref()),
        };
        let correction = correction(input, &keys, method);
        refuse_keys_of_others(input, method);
        SolveScheme {
            guess,
            batch: batch::choice(&keys.batch),
            correction,
            schwarz: schwarz::resolve(input, wanted.as_ref().map(|w| w.lattice)),
            multigrid: MultigridParams { check: keys.check_setup.is_on(), ..multigrid::of_keys(input, "") },
            setup: keys.setup.get().map(PathBuf::from),
            asks_for_vectors: input.get("mg-vectors").is_some(),
            counts: counts(input),
            sources: wanted.as_ref().map_or(0, |wanted| wanted.sources),
            positive: kind == FermionKind::Staggered,
            escalate: !keys.no_escalation.is_on(),
            method,
            tol: keys.tol.or(1e-10),
            max_iterations: keys.max_iterations.get().copied(),
            outer,
        }
    }
    /// Fails if the options of the method do not fit the partition of the lattice.
    pub fn check(&self, operator: Operator, cut: Cut) -> Outcome {
        let request = Request { schwarz: self.schwarz, multigrid: self.multigrid, ..Request::new(operator) };
        (self.method.check)(&request, cut.local, &cut.grid).map_err(Failure::from)
    }
    /// Returns the request that the library receives for a solve with these settings.
    pub fn request(&self, operator: Operator, precision: Precision, reconstruction: LinkStorage) -> Request {
        Request {
            method: self.method,
            precision,
            outer: self.outer,
            reconstruction,
            tol: self.tol,
            max_iterations: self.max_iterations,
            correction: self.correction,
            schwarz: self.schwarz,
            multigrid: self.multigrid,
            counts: self.counts,
            sources: self.sources,
            escalate: self.escalate,
            ..Request::new(operator)
        }
    }
    /// Returns the method that the input requests.
    pub fn asked(&self) -> &'static Method {
        self.method
    }
    /// Returns the name of the method `taken` in sentences. The name depends on whether the operator is staggered.
    pub fn title(&self, taken: &Method) -> &'static str {
        taken.titles[usize::from(self.positive)]
    }
    /// Returns whether all right-hand sides of a batch share a Krylov space.
    pub fn is_block(&self) -> bool {
        self.method.is_block
    }
    /// Returns the name of the correction of the iteration: `reliable` (reliable updates) or `defect` (defect correction).
    pub fn correction(&self) -> &'static str {
        self.correction.name()
    }
    /// Returns the entries of a residual history, each with its iteration. Reliable updates have an entry for each iteration, and defect
    /// correction has one for each correction. `updates` has the iterations at which true residuals were computed.
    pub fn iterations_of(&self, history: &[f64], updates: &[usize]) -> Vec<(usize, f64)> {
        let defect = matches!(self.correction, Correction::Defect { .. });
        let corrections = || std::iter::once(0).chain(updates.iter().copied());
        match defect {
            true => corrections().zip(history.iter().copied()).collect(),
            false => history.iter().copied().enumerate().collect(),
        }
    }
    /// Describes the solve for people: solver, precisions, link storage and correction.
    pub fn describe(&self, report: &Report) -> String {
        let solver = self.title(report.method);
        let outer = match report.outer {
            Precision::Double => String::new(),
            other => format!(" in {}", name_of(&OUTER_PRECISIONS, other)),
        };
        let correction = match self.correction {
            Correction::Reliable { .. } => String::new(),
            Correction::Defect { inner_tol } => format!(", defect correction with inner solves to {inner_tol:e}"),
        };
        let domains = match self.method == Method::GCR_DD {
            true => format!(
                ", {} in {}, in {} precision",
                text::count(self.schwarz.steps, "minimum-residual step"),
                match self.schwarz.domain {
                    Some([x, y, z, t]) => format!("domains of {x}×{y}×{z}×{t}"),
                    None if self.schwarz.overlap > 0 => {
                        format!(
                            "one domain for each process with an overlap of {}",
                            text::count(self.schwarz.overlap, "site")
                        )
                    }
                    None => "one domain for each process".into(),
                },
                name_of(&PRECISIONS, self.schwarz.precision)
            ),
            false => String::new(),
        };
        let precision = name_of(&PRECISIONS, report.precision);
        let recon = name_of(&RECONSTRUCTIONS, report.reconstruction);
        format!("{solver}, {precision}{outer} precision, recon {recon}{correction}{domains}")
    }
}

fn correction(input: &mut Input, keys: &SolverKeys, method: &Method) -> Correction {
    let (defect, delta, inner_tol) = (keys.correction.is_on(), keys.delta.value(), keys.inner_tol.value());
    let (stray, owner) = if defect { ("delta", "reliable") } else { ("inner-tol", "defect") };
    if let Some(place) = input.get(stray) {
        let owner = input.spelled("correction", owner);
        input.wrong(&place, format!("applies only to {owner}; remove it"));
    }
    if defect && method.restarts {
        let why = format!(
            "{} uses GCR, whose restarts from true residuals make defect correction useless: remove {}",
            method.name,
            input.spelled("correction", "")
        );
        input.conflict("correction", "solver", &why);
    }
    if defect { Correction::Defect { inner_tol: inner_tol.unwrap_or(1e-2) } } else { Correction::Reliable { delta } }
}

/// Reads the parameters of methods that are whole numbers.
fn counts(input: &mut Input) -> Counts {
    let mut counts = Counts::default();
    for count in METHODS.iter().flat_map(|method| method.counts) {
        if let Some(value) = input.count(count.key.name, count.range.clone()) {
            counts.set(count, value);
        }
    }
    counts
}

/// Adds keys of methods other than `method` to the mistakes of the input.
fn refuse_keys_of_others(input: &mut Input, method: &Method) {
    // A method that chooses among others also accepts their keys.
    for owner in METHODS.iter().filter(|owner| !owner.is_choice()) {
        for key in owner.keys.iter().filter(|key| !method.has_key(key.name)) {
            let Some(place) = input.get(key.name) else { continue };
            let choices = METHODS.iter().filter(|other| other.is_choice() && other.has_key(key.name));
            let names: Vec<_> = iter::once(owner).chain(choices).map(|method| method.name).collect();
            let owners = input.spelled("solver", &names.join(" and "));
            input.wrong(&place, format!("applies only to {owners}; remove it"));
        }
    }
}

/// Reads the file of `--guess`, which must contain one field for each source.
fn guess<T: Fermion>(input: &mut Input, path: &Given<Text>, wanted: Option<&Wanted>) -> Option<Vec<Source>> {
    let fields = |path: &str| {
        let source = Source::parse::<T>(&format!("file:{path}"))?;
        let Some(wanted) = wanted else { return Ok(vec![source]) };
        let fields = source.check::<T>(wanted.lattice)?;
        match (fields.len(), wanted.sources) {
            (there, needed) if there == needed => Ok(fields),
            (there, needed) => Err(format!(
                "{path}: the file holds {}, but there {} {}: give a field for each source",
                text::count(there, "field"),
                if needed == 1 { "is" } else { "are" },
                text::count(needed, "source")
            )),
        }
    };
    fields(path.get()?).map_err(|why| input.wrong(path, why)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(correction: Correction) -> SolveScheme {
        SolveScheme {
            tol: 1e-10,
            guess: None,
            batch: BatchChoice::default(),
            method: Method::BICGSTAB,
            max_iterations: Some(10),
            outer: Precision::Double,
            correction,
            schwarz: Schwarz::default(),
            multigrid: MultigridParams::default(),
            setup: None,
            asks_for_vectors: false,
            counts: Counts::default(),
            sources: 1,
            escalate: true,
            positive: false,
        }
    }

    #[test]
    fn entries_of_a_history_are_where_they_were_made() {
        let history = [1.0, 0.1, 0.01];
        let reliable = scheme(Correction::default()).iterations_of(&history, &[2]);
        assert_eq!(reliable, [(0, 1.0), (1, 0.1), (2, 0.01)]);
        let defect = scheme(Correction::Defect { inner_tol: 0.1 }).iterations_of(&history, &[7, 15]);
        assert_eq!(defect, [(0, 1.0), (7, 0.1), (15, 0.01)]);
    }
}
