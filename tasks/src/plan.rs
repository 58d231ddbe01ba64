//! Data of a solve or of an application of an operator, read and checked from the settings as typed.
use super::communicator::RunCommunicator;
use super::failure::{ReadBy, describe};
use super::fields::{self, Reading, Source, SourceFault, Stack, require_even};
use super::layout::{Cut, Layout, LayoutChoice};
use super::{Outcome, keys, stout, target, text};
use ferrite::FermionKind;
use ferrite::domain::Part;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::files::{Header, ReadOptions, inspect};
use ferrite::halo::Needs;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::lattice::Lattice;
use ferrite::operators::Operator;
use ferrite::operators::{BOUNDARIES, Definition, OPERATORS, Smearing, Tadpole, WILSON, names_of_operators};
pub use ferrite::solve::names::{OUTER_PRECISIONS, PRECISIONS, RECONSTRUCTIONS, STRATEGIES, name_of};
use ferrite::solve::{OpenFormats, ShiftStrategy};
use ferrite::{LinkStorage, Precision};
use ferrite_inputs::values::{Any, AnyWord, Count, Item, LatticeExtents, Numbers, Positive, Rule, Switch, Text, Word};
use ferrite_inputs::{Given, Input, Listed, ValuePlace, vocabularies};
use ferrite_records::operator::{OperatorOnLinks, OperatorWithSources};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

vocabularies! {
    /// Values of `shift-solver`.
    Strategies: ShiftStrategy = STRATEGIES;
}

/// Keys that describe how a gauge field is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct ReadingKeys {
    lattice: Given<LatticeExtents>,
    record: Given<Count<0, 1_000_000>>,
    no_verify: Given<Switch>,
    allow_non_unitary: Given<Switch>,
    reunitarise: Given<Switch>,
}

/// Keys of the links, formats, sources and results.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct FieldKeys {
    gauge: Given<Text>,
    fat: Given<Text>,
    long: Given<Text>,
    source: Listed<Item>,
    sources: Given<Count<1, MOST_SOURCES>>,
    output: Given<Text>,
    precision: Given<AnyWord>,
    reconstruct: Given<AnyWord>,
}

/// Keys for several masses or shifts of a staggered operator.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct SystemKeys {
    masses: Given<Numbers<Positive>>,
    /// Shifts σ in (M†M + σ) x = b.
    pub shifts: Given<Numbers<Any>>,
    /// Strategy for several systems: multi-shift CG or one solve after the other.
    pub shift_solver: Given<Word<Strategies>>,
}

/// Returns the link storage that `reconstruct` names, if `fits` accepts it for `links`. The message about another storage states what it
/// applies to.
fn reconstruction(
    input: &mut Input,
    key: &Given<AnyWord>,
    links: &str,
    fits: impl Fn(LinkStorage) -> bool,
) -> Option<LinkStorage> {
    let name = key.get()?;
    let (fitting, others): (Vec<_>, Vec<_>) = RECONSTRUCTIONS.into_iter().partition(|(_, format)| fits(*format));
    let Some((name, format)) = others.into_iter().find(|(other, _)| other == name) else {
        return input.meaning(key, &fitting);
    };
    let purpose = if format.temporal {
        "selects temporal gauge, which applies only to Wilson fermions"
    } else if format.keeps_phase() {
        "also stores the phase of a link's determinant, which applies only to long links of asqtad and HISQ"
    } else {
        "selects 16-bit links, which apply only to staggered fermions"
    };
    let names: Vec<_> = fitting.iter().map(|(name, _)| *name).collect();
    input.wrong(key, format!("'{name}' {purpose}; for {links} choose one of {}", names.join(", ")));
    None
}

/// Returns the options for reading a gauge field.
pub fn reading(input: &mut Input) -> Reading {
    let keys: ReadingKeys = input.read("");
    let options = ReadOptions {
        verify: !keys.no_verify.is_on(),
        allow_non_unitary: keys.allow_non_unitary.is_on(),
        reunitarise: keys.reunitarise.is_on(),
        lattice: keys.lattice.value(),
        record: keys.record.or(0),
    };
    Reading { options, by: input.given_by() }
}

/// Files from which links are read.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkFiles {
    /// File of a gauge configuration.
    Gauge(PathBuf),
    /// Files of fat and of long links, which contain MILC's phases and the sign of the boundary condition.
    Improved(PathBuf, PathBuf),
}

/// Systems to solve.
#[derive(Clone, Debug, PartialEq)]
pub enum Systems {
    /// One system M ψ = η.
    One,
    /// Systems M ψ = η for these masses of a staggered operator.
    Masses(Vec<f64>),
    /// Systems (M†M + σ) x = b for these shifts of a staggered operator.
    Shifts(Vec<f64>),
}

impl Systems {
    /// Returns the number of systems of a series; `None` for a single system.
    pub fn count(&self) -> Option<usize> {
        match self {
            Systems::One => None,
            Systems::Masses(list) | Systems::Shifts(list) => Some(list.len()),
        }
    }
}

/// Properties of a solve on which the default settings of its solver depend: lattice, sources and precision.
pub struct Wanted {
    /// The whole lattice.
    pub lattice: Lattice,
    /// Number of sources.
    pub sources: usize,
    /// Precision of the iteration.
    pub precision: Precision,
}

/// Operator, fields and formats, which `solve` and `apply` share. They are resolved and checked as far as possible without reading the
/// links.
#[derive(Debug)]
pub struct FermionPlan {
    /// Files of the links.
    pub links: LinkFiles,
    /// Options for reading the links.
    pub read: Reading,
    /// Stout smearing of the links of the operator; `None` without smearing.
    pub stout: Option<StoutSmearing>,
    /// The whole lattice.
    pub lattice: Lattice,
    /// Dirac operator; for several masses, with the smallest mass.
    pub operator: Operator,
    /// Record of the operator's parameters, under the names of its definition.
    parameters: Map<String, Value>,
    /// Systems to solve.
    pub systems: Systems,
    /// Strategy for several masses or shifts.
    pub strategy: ShiftStrategy,
    /// Sources of the right-hand sides.
    pub sources: Vec<Source>,
    /// Precision of fields on the device; an upper limit if a solve leaves the precision open.
    pub precision: Precision,
    /// Requested link storage; `None` for a choice that depends on the links.
    pub reconstruction: Option<LinkStorage>,
    /// Formats of a solve that are chosen for the device.
    pub open: OpenFormats,
    /// File of the result.
    pub output: Option<PathBuf>,
}

impl FermionPlan {
    /// Resolves the input of a solve. Returns `None` if it has mistakes, which are added to the input.
    pub fn for_solve(input: &mut Input) -> Option<Self> {
        Self::resolve(input, true)
    }
    /// Resolves the input of `apply`, where a staggered operator may have any mass.
    pub fn for_apply(input: &mut Input) -> Option<Self> {
        Self::resolve(input, false)
    }
    fn resolve(input: &mut Input, solve: bool) -> Option<Self> {
        let definition = definition(input);
        let staggered = definition.is_some_and(|definition| definition.kind == FermionKind::Staggered);
        let systems = match (staggered, solve) {
            (true, true) => systems(input),
            (true, false) => one_mass(input),
            (false, _) => Some((None, Systems::One)),
        };
        let several = systems.as_ref().is_some_and(|(_, systems)| systems.count().is_some());
        let operator = definition.and_then(|definition| definition.resolve_all(input));
        if let Some(definition) = definition {
            refuse_foreign_keys(input, definition);
        }
        let [masses, shifts] = ["masses", "shifts"].map(|key| input.spelled(key, ""));
        if staggered && !several && systems.is_some() {
            belong_elsewhere(input, &["shift-solver"], &format!("{masses} and {shifts}"));
        }
        if several {
            belong_elsewhere(input, &["guess", "plot"], &format!("solves without {masses} and {shifts}"));
        }
        let keys: FieldKeys = input.read("");
        let read = reading(input);
        let (links, header) = link_files(input, definition, &read);
        let stout = stout::of_operator(input, "");
        let strategy = input.read::<SystemKeys>("").shift_solver.value().unwrap_or_default();
        let lattice = header.as_ref().map(|header| header.lattice);
        let sources = match definition.map(|definition| definition.kind) {
            Some(FermionKind::Staggered) => sources::<ColourVector>(input, lattice),
            _ => sources::<Spinor>(input, lattice),
        };
        let (precision, reconstruction) = formats(input, definition);
        let open = OpenFormats { precision: solve && precision.is_none(), storage: solve && reconstruction.is_none() };
        let may_be_double = !solve || several && strategy == ShiftStrategy::MultiShift;
        let highest = if may_be_double { Precision::Double } else { Precision::Single };
        let fields = sources.as_ref().map_or(1, Vec::len);
        let components = if staggered { ColourVector::COMPONENTS } else { Spinor::COMPONENTS };
        // A list of masses or shifts gives the solutions an axis of their own, even if the list has one element.
        let count = systems.as_ref().and_then(|(_, systems)| systems.count());
        let stack = count.map_or_else(|| Stack::of_sources(fields, components), |count| Stack::Several(count * fields));
        let output = output(input, &keys.output, stack);
        let ((mass, systems), (operator, parameters)) = (systems?, operator?);
        Some(FermionPlan {
            links: links?,
            read,
            stout,
            lattice: header?.lattice,
            operator: mass.map_or(operator.clone(), |mass| operator.with_mass(mass)),
            parameters,
            systems,
            strategy,
            sources: sources?,
            precision: precision.unwrap_or(highest),
            reconstruction,
            open,
            output,
        })
    }
    /// Returns the definition of the operator.
    pub fn definition(&self) -> &'static Definition {
        self.operator.definition()
    }
    /// Partitions the lattice among the processes.
    pub fn cut(&self, layout: &LayoutChoice, comm: &RunCommunicator) -> Outcome<Layout> {
        layout.cut(comm, self.lattice, self.definition().steps())
    }
    /// Returns whether several systems are solved together by multi-shift CG.
    pub fn is_multishift(&self) -> bool {
        self.systems.count().is_some() && self.strategy == ShiftStrategy::MultiShift
    }
    /// Returns the requested link storage. Without a request, returns 18 reals, the storage that needs most memory, because the choice
    /// depends on links that have not been read yet.
    pub fn largest_storage(&self) -> LinkStorage {
        self.reconstruction.unwrap_or(LinkStorage::FULL)
    }
    /// Returns the peak memory of a command on a process's part of the lattice. The links are smeared before the memory `others` is
    /// allocated.
    pub fn with_smearing(&self, cut: Cut, others: Needs) -> Needs {
        stout::with_smearing(self.stout, Part::new(cut.local, &cut.grid), cut.local.volume(), others)
    }
    /// Returns the lattice, the number of sources and the precision, on which the solver's settings depend.
    pub fn wanted(&self) -> Wanted {
        Wanted { lattice: self.lattice, sources: self.sources.len(), precision: self.precision }
    }
    /// Returns the files that are read: links, sources, and initial guesses if there are any.
    pub fn inputs<'a>(&'a self, guesses: &'a [Source]) -> Vec<&'a Path> {
        let links = match &self.links {
            LinkFiles::Gauge(path) => vec![path],
            LinkFiles::Improved(fat, long) => vec![fat, long],
        };
        let fields = self.sources.iter().chain(guesses).filter_map(|source| match source {
            Source::File(path, _) => Some(path.as_path()),
            Source::Point(..) | Source::Random(..) => None,
        });
        links.into_iter().map(PathBuf::as_path).chain(fields).collect()
    }
    /// *Collective.* Returns this process's part of the fields of sources, generated or read.
    pub fn fields<T: Fermion>(&self, sources: &[Source], layout: &Layout) -> Outcome<Vec<HostField<T>>> {
        fields::all_fields(sources, layout)
    }
    /// Returns the leading axes of the solutions: the number of masses or shifts and the number of sources, each only if there are several.
    pub fn block(&self) -> Vec<usize> {
        let inner = (self.sources.len() > 1).then_some(self.sources.len());
        self.systems.count().into_iter().chain(inner).collect()
    }
    /// Returns the record of the system. `operator` is the operator on links that have been read.
    pub fn record(&self, operator: &Operator) -> OperatorWithSources {
        let (gauge, fat, long) = match &self.links {
            LinkFiles::Gauge(path) => (Some(path), None, None),
            LinkFiles::Improved(fat, long) => (None, Some(fat), Some(long)),
        };
        let mut parameters = self.parameters.clone();
        parameters.extend(operator.describe_smearing(gauge.is_none()));
        let operator = OperatorOnLinks {
            operator: self.definition().name.into(),
            gauge: gauge.cloned(),
            fat: fat.cloned(),
            long: long.cloned(),
            stout: self.stout.map(stout::record),
            bc_time: name_of(&BOUNDARIES, self.operator.boundary()).into(),
            lattice: self.lattice.size(),
            parameters,
        };
        OperatorWithSources { operator, sources: self.sources.iter().map(ToString::to_string).collect() }
    }
    /// Describes the system for people: `asqtad operator on 8×8×8×8, u0 = 0.85, antiperiodic`.
    pub fn headline(&self, operator: &Operator) -> String {
        let details = match (&self.links, operator.smearing()) {
            (LinkFiles::Improved(..), _) => ", links as read".into(),
            (_, Smearing::Asqtad(Tadpole::Given(u0))) => format!(", u0 = {}", text::rounded(u0, 6)),
            (_, Smearing::Hisq(epsilon)) if epsilon != 0.0 => format!(", epsilon = {}", text::number(epsilon)),
            _ => String::new(),
        };
        let stout = self.stout.map_or(String::new(), |smearing| format!(", {}", stout::sentence(smearing)));
        let boundary = name_of(&BOUNDARIES, operator.boundary());
        let angles = match operator.theta() {
            theta if theta.are_zero() => String::new(),
            theta => format!(", theta = {}", theta.0.map(text::number).join(",")),
        };
        format!("{} operator on {}{details}{stout}, {boundary}{angles}", self.definition().title, self.lattice)
    }
}

/// Returns the header of the gauge field that a key names, and adds mistakes to the input.
pub fn gauge_header(input: &mut Input, gauge: &Given<Text>, read: &Reading) -> Option<Header> {
    let path = gauge.get()?;
    let header = inspect(path, &read.options).map_err(|error| describe(&error, read.by));
    let header = header.and_then(|header| match header.values_per_site() {
        36 => require_even(path.as_ref(), header.lattice).map(|()| header),
        n => Err(format!(
            "{path}: the file holds {n} complex numbers per site, but a gauge field has 36: name a file of links"
        )),
    });
    header.map_err(|why| input.wrong(gauge, why)).ok()
}

/// Returns the header of the configuration, and adds mistakes to the input.
pub fn configuration_header(input: &mut Input, read: &Reading) -> Option<Header> {
    let keys: FieldKeys = input.read("");
    gauge_header(input, &keys.gauge, read)
}

/// Adds keys that apply to other operators to the mistakes of the input.
fn belong_elsewhere(input: &mut Input, keys: &[&str], operators: &str) {
    for key in keys {
        if let Some(place) = input.get(key) {
            input.wrong(&place, format!("applies only to {operators}; remove it"));
        }
    }
}

/// Key of the operator.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OperatorKey {
    operator: Given<Word<OperatorNames>>,
}
vocabularies! {
    /// Values of `operator`.
    OperatorNames: &'static Definition = names_of_operators();
}

/// Returns the definition of the chosen operator; `None` if its name is invalid.
pub fn definition(input: &mut Input) -> Option<&'static Definition> {
    let chosen = input.read::<OperatorKey>("").operator.value();
    chosen.or_else(|| (!input.was_given("operator")).then_some(&WILSON))
}

/// Returns the places of keys that the operator `chosen` does not have but other operators do, with a message for each.
pub fn foreign_keys(input: &mut Input, chosen: &Definition) -> Vec<(ValuePlace, String)> {
    let of_others =
        OPERATORS.iter().flat_map(|definition| definition.all_keys()).filter(|key| !chosen.has_key(key.name));
    let owners = |key| keys::alternatives(keys::owners(key).map(|definition| definition.name));
    let mut foreign: Vec<_> = of_others.map(|key| (key.name, owners(key.name))).collect();
    if chosen.kind != FermionKind::Staggered {
        foreign.extend(keys::STAGGERED_KEYS.map(|key| (key, staggered_names())));
    }
    let given = foreign.into_iter().filter_map(|(key, owners)| Some((input.get(key)?, owners)));
    let belongs = |owners: String| format!("applies only to {}; remove it", input.spelled("operator", &owners));
    given.map(|(place, owners)| (place, belongs(owners))).collect()
}

/// Reports keys that the operator `chosen` does not have but other operators do, as mistakes of the input.
pub fn refuse_foreign_keys(input: &mut Input, chosen: &Definition) {
    for (setting, why) in foreign_keys(input, chosen) {
        input.wrong(&setting, why);
    }
}

/// Returns the names of the staggered operators: `staggered, asqtad or hisq`.
pub fn staggered_names() -> String {
    let staggered = OPERATORS.into_iter().filter(|definition| definition.kind == FermionKind::Staggered);
    keys::alternatives(staggered.map(|definition| definition.name))
}

/// Returns the requested precision of the iteration and the requested link storage.
fn formats(input: &mut Input, definition: Option<&Definition>) -> (Option<Precision>, Option<LinkStorage>) {
    let keys: FieldKeys = input.read("");
    let Some(definition) = definition.filter(|definition| definition.kind == FermionKind::Staggered) else {
        let precision = input.meaning(&keys.precision, &PRECISIONS);
        let fits = |format: LinkStorage| !format.half && !format.keeps_phase();
        return (precision, reconstruction(input, &keys.reconstruct, "links of Wilson fermions", fits));
    };
    let precision = input.meaning(&keys.precision, &PRECISIONS[..3]);
    let whose = if definition.is_improved() { "long links" } else { "links of the naive staggered operator" };
    let fits = |format: LinkStorage| !format.temporal && (definition.is_improved() || !format.keeps_phase());
    let reconstruction = reconstruction(input, &keys.reconstruct, whose, fits);
    if precision.is_some_and(|precision| precision != Precision::Single)
        && reconstruction.is_some_and(|storage| storage.half)
    {
        let why = format!(
            "links of 16 or 21 bits need {}; to store fields in 16 bits as well, give {} and {} without h or f",
            input.spelled("precision", "single"),
            input.spelled("precision", "half"),
            input.spelled("reconstruct", "")
        );
        input.conflict("reconstruct", "precision", &why);
    }
    (precision, reconstruction)
}

/// Returns the files of `--gauge`, or of `--fat` and `--long`, and the header of the first.
fn link_files(
    input: &mut Input,
    definition: Option<&Definition>,
    read: &Reading,
) -> (Option<LinkFiles>, Option<Header>) {
    let keys: FieldKeys = input.read("");
    let staggered = definition.is_some_and(|definition| definition.kind == FermionKind::Staggered);
    let [gauge, fat, long] = [&keys.gauge, &keys.fat, &keys.long].map(|key| key.get().map(PathBuf::from));
    if !staggered {
        if gauge.is_none() {
            let key = ReadBy::Keys.spelled("gauge", "\"FILE\"");
            input.missing(match input.given_by() {
                ReadBy::Flags => {
                    format!("no gauge field: name the file of a configuration, or give {key} in the input")
                }
                _ => format!("no gauge field: give {}", input.spelled("gauge", "\"FILE\"")),
            });
        }
        return (gauge.map(LinkFiles::Gauge), gauge_header(input, &keys.gauge, read));
    }
    let file = if input.given_by() == ReadBy::Flags { "FILE" } else { "\"FILE\"" };
    match (gauge, fat, long) {
        (Some(gauge), None, None) => (Some(LinkFiles::Gauge(gauge)), gauge_header(input, &keys.gauge, read)),
        (None, Some(fat), Some(long)) => {
            if definition.is_some_and(|definition| !definition.is_improved()) {
                let why = "the naive staggered operator has no fat and long links: give a gauge field instead, or \
                           choose asqtad or hisq";
                input.conflict("fat", "operator", why);
            }
            for key in ["u0", "naik-epsilon", "stout-rho"] {
                if input.get(key).is_some() {
                    let shown = input.spelled(key, "");
                    let why = format!("{shown} has no effect on fat and long links from files: remove {shown}");
                    input.conflict(key, "fat", &why);
                }
            }
            let read = read.of_any_links();
            let (header, other) = (gauge_header(input, &keys.fat, &read), gauge_header(input, &keys.long, &read));
            if let (Some(fat), Some(long)) = (&header, &other)
                && fat.lattice != long.lattice
            {
                let [fat, long] = [fat.lattice, long.lattice];
                let why = format!("fat links are on {fat}, but long links on {long}; give links on one lattice");
                input.conflict("long", "fat", &why);
            }
            (Some(LinkFiles::Improved(fat, long)), header)
        }
        (Some(_), _, _) => {
            let other = if input.get("fat").is_some() { "fat" } else { "long" };
            input.conflict("gauge", other, "give either a gauge field, or fat and long links");
            (None, None)
        }
        (None, None, None) => {
            let [gauge, fat, long] = ["gauge", "fat", "long"].map(|key| input.spelled(key, file));
            input.missing(format!("no links: give {gauge}, or {fat} and {long}"));
            (None, None)
        }
        (None, one, _) => {
            let (here, there) = if one.is_some() { ("fat", "long") } else { ("long", "fat") };
            let needed = input.spelled(there, file);
            input.conflict(here, there, &format!("also needs {needed}"));
            (None, None)
        }
    }
}

/// Returns the mass of a staggered operator for `apply`, with its single system.
fn one_mass(input: &mut Input) -> Option<(Option<f64>, Systems)> {
    if input.get("mass").is_none() {
        input.missing(format!("no mass: give {}", input.spelled("mass", "M")));
    }
    input.number("mass", "a number", |_| true).map(|mass| (Some(mass), Systems::One))
}

/// Reads `--mass`, `--masses`, or `--mass` and `--shifts` of a staggered operator. Returns the mass, which is the smallest of several, and
/// the systems.
fn systems(input: &mut Input) -> Option<(Option<f64>, Systems)> {
    let given = ["mass", "masses", "shifts"].map(|key| input.get(key).is_some());
    let keys: SystemKeys = input.read("");
    let mass = match given[2] {
        true => input.number("mass", "a number of at least 0", |m| m >= 0.0),
        false => input.number("mass", Positive::EXPECTED, Positive::fits),
    };
    match given.into() {
        (true, false, false) => mass.map(|mass| (Some(mass), Systems::One)),
        (false, true, false) => keys.masses.value().map(|masses| {
            let smallest = masses.iter().copied().fold(f64::INFINITY, f64::min);
            (Some(smallest), Systems::Masses(masses))
        }),
        (true, false, true) => {
            let (mass, shifts) = (mass?, keys.shifts.value()?);
            if let Err(why) = has_inverses(mass, &shifts) {
                input.conflict("shifts", "mass", &why);
                return None;
            }
            Some((Some(mass), Systems::Shifts(shifts)))
        }
        (true, true, _) => {
            input.conflict("masses", "mass", "give either one mass or several masses");
            None
        }
        (false, true, true) => {
            input.conflict("shifts", "masses", "several masses are solved as shifts: give either masses or shifts");
            None
        }
        (false, false, true) => {
            let [mass, shifts] = [input.spelled("mass", "M"), input.spelled("shifts", "")];
            input.missing(format!("no mass: also give {mass} with {shifts}"));
            None
        }
        (false, false, false) => {
            let lists = |numbers: &str| match input.given_by() {
                ReadBy::Flags => numbers.to_string(),
                _ => format!("[{}]", numbers.replace(',', ", ")),
            };
            let mass = input.spelled("mass", "M");
            let masses = input.spelled("masses", &lists("M1,M2,..."));
            let shifts = input.spelled("shifts", &lists("S1,S2,..."));
            input.missing(format!("no mass: give {mass}, {masses}, or {mass} with {shifts}"));
            None
        }
    }
}

/// Checks whether M†M + σ is invertible for all shifts σ on any links.
pub fn has_inverses(mass: f64, shifts: &[f64]) -> Result<(), String> {
    match shifts.iter().find(|shift| mass * mass + **shift <= 0.0) {
        Some(bad) => Err(format!(
            "the shift {bad} is not above -m^2 for m = {mass}, so that M^+ M plus this shift may not be invertible; \
             give larger shifts"
        )),
        None => Ok(()),
    }
}

/// Largest number of right-hand sides of one command, which are all in host memory.
const MOST_SOURCES: usize = 4096;

/// Returns all sources, checked against the lattice; adds mistakes to the input.
pub fn sources<T: Fermion>(input: &mut Input, lattice: Option<Lattice>) -> Option<Vec<Source>> {
    let FieldKeys { source: given, sources: number, .. } = input.read("");
    let Some(first) = given.first() else {
        let component = T::AXES.join(",");
        let sources = [format!("point:x,y,z,t,{component}"), "random:SEED".into(), "file:PATH".into()];
        let [point, random, file] = sources.map(|text| match input.given_by() {
            ReadBy::Flags => input.spelled("source", &text),
            _ => input.spelled("source", &format!("\"{text}\"")),
        });
        input.missing(format!("no source: give {point}, {random} or {file}"));
        return None;
    };
    let several = number.value();
    if input.was_given("sources") && several.is_none() {
        // An invalid value of `sources` was already reported.
        return None;
    }
    if given.len() > 1 && several.is_some() {
        let why =
            format!("give a single source, from which the others are made, or remove {}", input.spelled("sources", ""));
        input.conflict("sources", "source", &why);
        return None;
    }
    let mut sources = Vec::new();
    let mut sound = true;
    for one in given.iter() {
        let text = one.get().map_or("", String::as_str);
        let typed = match several {
            Some(n) => Source::several::<T>(text, n),
            None => Source::parse::<T>(text).map(|source| vec![source]).map_err(SourceFault::Source),
        };
        let checked = |source: Source| match lattice {
            Some(lattice) => source.check::<T>(lattice),
            None => Ok(vec![source]),
        };
        let all = typed.and_then(|typed| {
            typed.into_iter().map(checked).collect::<Result<Vec<_>, _>>().map_err(SourceFault::Source)
        });
        sound &= all.is_ok();
        match all {
            Ok(all) => sources.extend(all.into_iter().flatten()),
            Err(SourceFault::Source(why)) => input.wrong(one, why),
            Err(SourceFault::Number(why)) => input.wrong(&number, why),
        }
    }
    if sources.len() > MOST_SOURCES {
        input.wrong(
            first,
            format!(
                "{} sources are given, but one command takes at most {MOST_SOURCES}: use several commands",
                sources.len()
            ),
        );
        sound = false;
    }
    sound.then_some(sources)
}

/// Adds a mistake to the input if there are more sources than one launch can process, for commands that do not use batches.
pub fn are_together(input: &mut Input, sources: usize) {
    let most = ferrite::backend::MAX_RHS_PER_LAUNCH;
    if let (true, Some(place)) = (sources > most, input.get("source")) {
        input.wrong(
            &place,
            format!("{sources} sources are given, but `ferrite apply` takes at most {most}: give fewer sources"),
        );
    }
}

/// Returns an output file for fermion fields. Its name must determine the format, and its folder must be writable.
pub fn output(input: &mut Input, path: &Given<Text>, stack: Stack) -> Option<PathBuf> {
    let text = path.get()?;
    let file = PathBuf::from(text);
    let checked = fields::spinor_format(&file, stack).map(drop).and_then(|()| target::check(&file));
    match checked {
        Ok(()) => Some(file),
        Err(why) => {
            input.wrong(path, why);
            None
        }
    }
}
