//! What a solve or an application of an operator needs, resolved and checked from settings as typed.
use super::communicator::RunCommunicator;
use super::failure::{ReadBy, describe};
use super::fields::{self, Reading, Source, Stack, require_even};
use super::layout::{Cut, Layout, LayoutChoice};
use super::method::Wanted;
use super::{Outcome, keys, stout, target, text};
use crate::config::{Setting, Settings};
use ferrite::FermionKind;
use ferrite::domain::Part;
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::files::{Header, ReadOptions, inspect};
use ferrite::halo::Needs;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::lattice::Lattice;
use ferrite::operators::Operator;
use ferrite::operators::{BOUNDARIES, Definition, OPERATORS, Smearing, Tadpole, WILSON, names_of_operators};
use ferrite::solve::ShiftStrategy;
pub use ferrite::solve::names::{OUTER_PRECISIONS, PRECISIONS, RECONSTRUCTIONS, STRATEGIES, name_of};
use ferrite::{LinkStorage, Precision};
use ferrite_records::object;
use ferrite_records::operator::OperatorOnLinks;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// `--reconstruct`, of those that `fits` accepts for `links`; for the others it says what they are for.
pub fn reconstruction(settings: &mut Settings, links: &str, fits: impl Fn(LinkStorage) -> bool) -> Option<LinkStorage> {
    let setting = settings.get("reconstruct")?;
    let (fitting, others): (Vec<_>, Vec<_>) = RECONSTRUCTIONS.into_iter().partition(|(_, format)| fits(*format));
    let Some((name, format)) = others.into_iter().find(|(name, _)| *name == setting.text()) else {
        return settings.choice("reconstruct", &fitting);
    };
    let purpose = if format.temporal {
        "is for Wilson fermions in temporal gauge"
    } else if format.keeps_phase() {
        "keeps the phase of a determinant, which long links of asqtad and HISQ may have and links in SU(3) have not"
    } else {
        "is for staggered fermions"
    };
    let names: Vec<_> = fitting.iter().map(|(name, _)| *name).collect();
    settings.wrong(&setting, format!("'{name}' {purpose}; for {links} there are {}", names.join(", ")));
    None
}

/// How the gauge field is read: `--lattice`, `--record`, `--no-verify`, `--allow-non-unitary`, `--reunitarise`.
pub fn reading(settings: &mut Settings) -> Reading {
    let options = ReadOptions {
        verify: !settings.is_on("no-verify"),
        allow_non_unitary: settings.is_on("allow-non-unitary"),
        reunitarise: settings.is_on("reunitarise"),
        lattice: settings.parsed("lattice", text::lattice),
        record: settings.count("record", 0..=1_000_000).unwrap_or(0),
    };
    Reading { options, by: settings.given_by() }
}

/// Where links come from.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkFiles {
    /// A gauge configuration.
    Gauge(PathBuf),
    /// Fat and long links, with MILC's phases and the boundary condition in them.
    Improved(PathBuf, PathBuf),
}

/// Which systems are solved.
#[derive(Clone, Debug, PartialEq)]
pub enum Systems {
    /// M ψ = η.
    One,
    /// M ψ = η for several masses of a staggered operator.
    Masses(Vec<f64>),
    /// (M†M + σ) x = b for several shifts of a staggered operator.
    Shifts(Vec<f64>),
}

impl Systems {
    /// How many there are, where there are several.
    pub fn count(&self) -> Option<usize> {
        match self {
            Systems::One => None,
            Systems::Masses(list) | Systems::Shifts(list) => Some(list.len()),
        }
    }
}

/// Operator, fields and formats: what `solve` and `apply` have in common, resolved as far as that is possible without
/// reading the links.
#[derive(Debug)]
pub struct FermionPlan {
    /// The links.
    pub links: LinkFiles,
    /// How to read them.
    pub read: Reading,
    /// How they are smeared before the operator is made of them.
    pub stout: Option<StoutSmearing>,
    /// Extents.
    pub lattice: Lattice,
    /// The operator; of several masses with the smallest.
    pub operator: Operator,
    /// What is said of its parameters.
    parameters: Map<String, Value>,
    /// What is solved.
    pub systems: Systems,
    /// How several systems are solved.
    pub strategy: ShiftStrategy,
    /// Right-hand sides.
    pub sources: Vec<Source>,
    /// Precision of the device's fields.
    pub precision: Precision,
    /// `None`: whatever the links allow.
    pub reconstruction: Option<LinkStorage>,
    /// Where the result goes.
    pub output: Option<PathBuf>,
}

impl FermionPlan {
    /// Resolves the settings of a solve. `None` if something is wrong, which `settings` then lists.
    pub fn for_solve(settings: &mut Settings) -> Option<Self> {
        Self::resolve(settings, true)
    }
    /// Resolves those of an application: of one operator, whose mass may be any.
    pub fn for_apply(settings: &mut Settings) -> Option<Self> {
        Self::resolve(settings, false)
    }
    fn resolve(settings: &mut Settings, solve: bool) -> Option<Self> {
        let definition = definition(settings);
        let staggered = definition.is_some_and(|definition| definition.kind == FermionKind::Staggered);
        let systems = match (staggered, solve) {
            (true, true) => systems(settings),
            (true, false) => one_mass(settings),
            (false, _) => Some((None, Systems::One)),
        };
        let several = systems.as_ref().is_some_and(|(_, systems)| systems.count().is_some());
        let operator = definition.and_then(|definition| definition.resolve_all(settings));
        if let Some(definition) = definition {
            refuse_foreign_keys(settings, definition);
        }
        if staggered && !several && systems.is_some() {
            let [masses, shifts] = ["masses", "shifts"].map(|key| settings.spelled(key, ""));
            belong_elsewhere(settings, &["shift-solver"], &format!("{masses} and {shifts}"));
        }
        if several {
            belong_elsewhere(settings, &["guess", "plot"], "solves for one mass");
        }
        let read = reading(settings);
        let (links, header) = link_files(settings, definition, &read);
        let stout = stout::of_operator(settings, "");
        let strategy = settings.choice("shift-solver", &STRATEGIES).unwrap_or_default();
        let lattice = header.as_ref().map(|header| header.lattice);
        let sources = match definition.map(|definition| definition.kind) {
            Some(FermionKind::Staggered) => sources::<ColourVector>(settings, lattice),
            _ => sources::<Spinor>(settings, lattice),
        };
        let (precision, reconstruction) = formats(settings, definition);
        let fields = sources.as_ref().map_or(1, Vec::len);
        let components = if staggered { ColourVector::COMPONENTS } else { Spinor::COMPONENTS };
        // Several systems make a block with an axis of their own, even if there is one of each.
        let count = systems.as_ref().and_then(|(_, systems)| systems.count());
        let stack = count.map_or_else(|| Stack::of_sources(fields, components), |count| Stack::Several(count * fields));
        let output = output(settings, "output", stack);
        let ((mass, systems), (operator, parameters)) = (systems?, operator?);
        Some(FermionPlan {
            links: links?,
            read,
            stout,
            lattice: header?.lattice,
            operator: mass.map_or(operator, |mass| operator.with_mass(mass)),
            parameters,
            systems,
            strategy,
            sources: sources?,
            precision,
            reconstruction,
            output,
        })
    }
    /// What is known of the operator before its parameters.
    pub fn definition(&self) -> &'static Definition {
        self.operator.definition()
    }
    /// Cuts the lattice over the processes.
    pub fn cut(&self, layout: &LayoutChoice, comm: &RunCommunicator) -> Outcome<Layout> {
        layout.cut(comm, self.lattice, self.definition().steps())
    }
    /// Whether several systems are solved together by multi-shift CG.
    pub fn is_multishift(&self) -> bool {
        self.systems.count().is_some() && self.strategy == ShiftStrategy::MultiShift
    }
    /// The link storage asked for, or the one that takes most memory as long as the links have not been seen.
    pub fn largest_storage(&self) -> LinkStorage {
        self.reconstruction.unwrap_or(LinkStorage::FULL)
    }
    /// The memory of a command on a process's part of the lattice, with that for smearing links, which comes before.
    pub fn with_smearing(&self, cut: Cut, others: Needs) -> Needs {
        stout::with_smearing(self.stout, Part::new(cut.local, &cut.grid), cut.local.volume(), others)
    }
    /// For the solver's settings.
    pub fn wanted(&self) -> Wanted {
        Wanted { lattice: self.lattice, sources: self.sources.len(), precision: self.precision }
    }
    /// Files that are read: links, sources, and guesses if there are any.
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
    /// *Collective.* Makes or reads this process's part of fields.
    pub fn fields<T: Fermion>(&self, sources: &[Source], layout: &Layout) -> Outcome<Vec<HostField<T>>> {
        fields::all_fields(sources, layout)
    }
    /// Shape of a block of solutions: by mass or shift and by source, where there are several.
    pub fn block(&self) -> Vec<usize> {
        let inner = (self.sources.len() > 1).then_some(self.sources.len());
        self.systems.count().into_iter().chain(inner).collect()
    }
    /// Returns the record of operator, links and sources, with the operator on links that have been read.
    pub fn record(&self, operator: &Operator) -> OperatorOnLinks {
        let (gauge, fat, long) = match &self.links {
            LinkFiles::Gauge(path) => (Some(path), None, None),
            LinkFiles::Improved(fat, long) => (None, Some(fat), Some(long)),
        };
        let mut parameters = self.parameters.clone();
        parameters.extend(operator.describe_smearing(gauge.is_none()));
        OperatorOnLinks {
            operator: self.definition().name.into(),
            gauge: gauge.cloned(),
            fat: fat.cloned(),
            long: long.cloned(),
            stout: self.stout.map(stout::record),
            bc_time: name_of(&BOUNDARIES, self.operator.boundary()).into(),
            lattice: self.lattice.size(),
            sources: self.sources.iter().map(ToString::to_string).collect(),
            parameters,
        }
    }
    /// Returns the object of that record.
    pub fn value(&self, operator: &Operator) -> Value {
        Value::Object(object(&self.record(operator)))
    }
    /// `asqtad operator on 8×8×8×8, u0 = 0.85, antiperiodic`
    pub fn headline(&self, operator: &Operator) -> String {
        let details = match (&self.links, operator) {
            (LinkFiles::Improved(..), _) => ", links as read".into(),
            (_, Operator::Staggered(operator)) => match operator.smearing {
                Smearing::Asqtad(Tadpole::Given(u0)) => format!(", u0 = {}", text::rounded(u0, 6)),
                Smearing::Hisq(epsilon) if epsilon != 0.0 => format!(", epsilon = {}", text::number(epsilon)),
                _ => String::new(),
            },
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

/// An object with the keys of all.
pub fn merged<const N: usize>(mut object: Value, more: [Value; N]) -> Value {
    for more in more {
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
    }
    object
}

/// The header of the gauge field that a key names.
pub fn gauge_header(settings: &mut Settings, key: &str, read: &Reading) -> Option<Header> {
    let gauge = settings.get(key)?;
    let header = inspect(gauge.text(), &read.options).map_err(|error| describe(&error, read.by));
    let header = header.and_then(|header| match header.values_per_site() {
        36 => require_even(gauge.text().as_ref(), header.lattice).map(|()| header),
        n => Err(format!("{}: holds {n} numbers per site, a gauge field has 36", gauge.text())),
    });
    header.map_err(|why| settings.wrong(&gauge, why)).ok()
}

/// Notes keys that belong to other operators than the one chosen.
pub fn belong_elsewhere(settings: &mut Settings, keys: &[&str], operators: &str) {
    for key in keys {
        if let Some(setting) = settings.get(key) {
            settings.wrong(&setting, format!("belongs to {operators}"));
        }
    }
}

/// The operator of `--operator`.
pub fn definition(settings: &mut Settings) -> Option<&'static Definition> {
    if settings.get("operator").is_none() && !settings.was_refused("operator") {
        return Some(&WILSON);
    }
    let names: Vec<_> = names_of_operators().collect();
    settings.choice("operator", &names)
}

/// Settings of other operators than the one chosen, and what is wrong with each.
pub fn foreign_keys(settings: &mut Settings, chosen: &Definition) -> Vec<(Setting, String)> {
    let of_others =
        OPERATORS.iter().flat_map(|definition| definition.all_keys()).filter(|key| !chosen.has_key(key.name));
    let owners = |key| keys::alternatives(keys::owners(key).map(|definition| definition.name));
    let mut foreign: Vec<_> = of_others.map(|key| (key.name, owners(key.name))).collect();
    if chosen.kind != FermionKind::Staggered {
        foreign.extend(keys::STAGGERED.map(|key| (key, staggered_names())));
    }
    let given = foreign.into_iter().filter_map(|(key, owners)| Some((settings.get(key)?, owners)));
    let belongs = |owners: String| format!("belongs to {}", settings.spelled("operator", &owners));
    given.map(|(setting, owners)| (setting, belongs(owners))).collect()
}

/// Notes keys that belong to other operators than the one chosen.
pub fn refuse_foreign_keys(settings: &mut Settings, chosen: &Definition) {
    for (setting, why) in foreign_keys(settings, chosen) {
        settings.wrong(&setting, why);
    }
}

/// Names of the staggered operators: `staggered, asqtad or hisq`.
pub fn staggered_names() -> String {
    let staggered = OPERATORS.into_iter().filter(|definition| definition.kind == FermionKind::Staggered);
    keys::alternatives(staggered.map(|definition| definition.name))
}

/// `--precision` and `--reconstruct`.
fn formats(settings: &mut Settings, definition: Option<&Definition>) -> (Precision, Option<LinkStorage>) {
    let Some(links) = definition.and_then(Definition::staggered) else {
        // Around a multigrid cycle there is little to do, and more than single precision is of no use. Where BiCGstab may be
        // as fast, its precision is the usual one.
        let multigrid = settings.get("solver").is_some_and(|solver| solver.text() == "multigrid");
        let usual = if multigrid { Precision::Single } else { Precision::default() };
        let precision = settings.choice("precision", &PRECISIONS).unwrap_or(usual);
        let fits = |format: LinkStorage| !format.half && !format.keeps_phase();
        return (precision, reconstruction(settings, "links of Wilson fermions", fits));
    };
    let precision = settings.choice("precision", &PRECISIONS[..3]).unwrap_or_default();
    let whose = if links.improved { "long links" } else { "links of the naive staggered operator" };
    let fits = |format: LinkStorage| !format.temporal && (links.improved || !format.keeps_phase());
    let reconstruction = reconstruction(settings, whose, fits);
    if precision != Precision::Single && reconstruction.is_some_and(|storage| storage.half) {
        let why = format!("links in 16 bits go with {}, or all is half", settings.spelled("precision", "single"));
        settings.conflict("reconstruct", "precision", &why);
    }
    (precision, reconstruction)
}

/// `--gauge`, or `--fat` and `--long`, and the header of the first.
fn link_files(
    settings: &mut Settings,
    definition: Option<&Definition>,
    read: &Reading,
) -> (Option<LinkFiles>, Option<Header>) {
    let path = |settings: &Settings, key: &str| settings.get(key).map(|setting| PathBuf::from(setting.text()));
    let staggered = definition.is_some_and(|definition| definition.kind == FermionKind::Staggered);
    let [gauge, fat, long] = ["gauge", "fat", "long"].map(|key| path(settings, key));
    if !staggered {
        if gauge.is_none() {
            let key = ReadBy::Keys.spelled("gauge", "\"FILE\"");
            settings.missing(match settings.given_by() {
                ReadBy::Flags => {
                    format!("no gauge field: name the file of a configuration, or give {key} in the input")
                }
                _ => format!("no gauge field: give {}", settings.spelled("gauge", "\"FILE\"")),
            });
        }
        return (gauge.map(LinkFiles::Gauge), gauge_header(settings, "gauge", read));
    }
    match (gauge, fat, long) {
        (Some(gauge), None, None) => (Some(LinkFiles::Gauge(gauge)), gauge_header(settings, "gauge", read)),
        (None, Some(fat), Some(long)) => {
            if definition.is_some_and(|definition| !definition.is_improved()) {
                settings.conflict("fat", "operator", "the naive operator has no fat links");
            }
            for key in ["u0", "naik-epsilon", "stout-rho"] {
                if settings.get(key).is_some() {
                    settings.conflict(key, "fat", "these fat links have been made already");
                }
            }
            let read = read.of_any_links();
            let (header, other) = (gauge_header(settings, "fat", &read), gauge_header(settings, "long", &read));
            if let (Some(fat), Some(long)) = (&header, &other)
                && fat.lattice != long.lattice
            {
                let why = format!("fat links are on {}, long ones on {}", fat.lattice, long.lattice);
                settings.conflict("long", "fat", &why);
            }
            (Some(LinkFiles::Improved(fat, long)), header)
        }
        (Some(_), _, _) => {
            let other = if settings.get("fat").is_some() { "fat" } else { "long" };
            settings.conflict("gauge", other, "give a gauge field, or fat and long links");
            (None, None)
        }
        (None, None, None) => {
            let [gauge, fat, long] = ["gauge", "fat", "long"].map(|key| settings.spelled(key, "FILE"));
            settings.missing(format!("no links: give {gauge}, or {fat} and {long}"));
            (None, None)
        }
        (None, one, _) => {
            let (here, there) = if one.is_some() { ("fat", "long") } else { ("long", "fat") };
            let needed = settings.spelled(there, "FILE");
            settings.conflict(here, there, &format!("needs {needed} beside it"));
            (None, None)
        }
    }
}

/// The mass of a staggered operator that is applied.
fn one_mass(settings: &mut Settings) -> Option<(Option<f64>, Systems)> {
    if settings.get("mass").is_none() {
        settings.missing(format!("no mass: give {}", settings.spelled("mass", "M")));
    }
    settings.number("mass", "a number", |_| true).map(|mass| (Some(mass), Systems::One))
}

/// `--mass`, `--masses`, or `--mass` and `--shifts` of a staggered operator: the mass, the smallest of several, and what is
/// solved.
fn systems(settings: &mut Settings) -> Option<(Option<f64>, Systems)> {
    let given = |settings: &Settings, key| settings.get(key).is_some();
    let has_shifts = given(settings, "shifts");
    let mass = if has_shifts {
        settings.number("mass", "a number that is not negative", |m| m >= 0.0)
    } else {
        settings.number("mass", "a number above 0", |m| m > 0.0)
    };
    let masses = settings.numbers("masses", "a number above 0", |m| m > 0.0);
    let shifts = settings.numbers("shifts", "a number", |_| true);
    match (given(settings, "mass"), given(settings, "masses"), has_shifts) {
        (true, false, false) => mass.map(|mass| (Some(mass), Systems::One)),
        (false, true, false) => masses.map(|masses| {
            let smallest = masses.iter().copied().fold(f64::INFINITY, f64::min);
            (Some(smallest), Systems::Masses(masses))
        }),
        (true, false, true) => {
            let (mass, shifts) = (mass?, shifts?);
            if let Err(why) = has_inverses(mass, &shifts) {
                settings.conflict("shifts", "mass", &why);
                return None;
            }
            Some((Some(mass), Systems::Shifts(shifts)))
        }
        (true, true, _) => {
            settings.conflict("masses", "mass", "give one mass, or several");
            None
        }
        (false, true, true) => {
            settings.conflict("shifts", "masses", "masses are shifts already");
            None
        }
        (false, false, true) => {
            let [mass, shifts] = [settings.spelled("mass", "M"), settings.spelled("shifts", "")];
            settings.missing(format!("no mass: give {mass} beside {shifts}"));
            None
        }
        (false, false, false) => {
            let lists = |numbers: &str| match settings.given_by() {
                ReadBy::Flags => numbers.to_string(),
                _ => format!("[{}]", numbers.replace(',', ", ")),
            };
            let mass = settings.spelled("mass", "M");
            let masses = settings.spelled("masses", &lists("M1,M2,..."));
            let shifts = settings.spelled("shifts", &lists("S1,S2,..."));
            settings.missing(format!("no mass: give {mass}, {masses}, or {mass} with {shifts}"));
            None
        }
    }
}

/// Whether M†M + σ has an inverse for all shifts σ, whatever the links.
pub fn has_inverses(mass: f64, shifts: &[f64]) -> Result<(), String> {
    match shifts.iter().find(|shift| mass * mass + **shift <= 0.0) {
        Some(bad) => Err(format!("m^2 + {bad} is not above 0, so that M^+ M + {bad} may have no inverse")),
        None => Ok(()),
    }
}

/// Most right-hand sides of one command: they are all in the host's memory.
const MOST_SOURCES: usize = 4096;

/// All sources, checked against the lattice.
pub fn sources<T: Fermion>(settings: &mut Settings, lattice: Option<Lattice>) -> Option<Vec<Source>> {
    let given = settings.all("source");
    let several = settings.count("sources", 1..=MOST_SOURCES);
    if given.is_empty() {
        let component = T::AXES.join(",");
        let source = settings.spelled("source", &format!("point:x,y,z,t,{component}"));
        settings.missing(format!("no source: give {source}, random:SEED or file:PATH"));
        return None;
    }
    if settings.was_given("sources") && several.is_none() {
        // What the sources would be nobody knows.
        return None;
    }
    if given.len() > 1 && several.is_some() {
        settings.conflict("sources", "source", "give a single source, from which the others follow");
        return None;
    }
    let mut sources = Vec::new();
    let mut sound = true;
    for setting in &given {
        let typed = match several {
            Some(n) => Source::several::<T>(setting.text(), n),
            None => Source::parse::<T>(setting.text()).map(|source| vec![source]),
        };
        let checked = |source: Source| match lattice {
            Some(lattice) => source.check::<T>(lattice),
            None => Ok(vec![source]),
        };
        match typed.and_then(|typed| typed.into_iter().map(checked).collect::<Result<Vec<_>, _>>()) {
            Ok(all) => sources.extend(all.into_iter().flatten()),
            Err(why) => {
                settings.wrong(setting, why);
                sound = false;
            }
        }
    }
    if sources.len() > MOST_SOURCES {
        settings.wrong(&given[0], format!("{} sources, but one command takes at most {MOST_SOURCES}", sources.len()));
        sound = false;
    }
    sound.then_some(sources)
}

/// Refuses more sources than kernels can treat at once, for commands that do not split them.
pub fn are_together(settings: &mut Settings, sources: usize) {
    let most = ferrite::backend::MAX_RHS_PER_LAUNCH;
    if let (true, Some(setting)) = (sources > most, settings.get("source")) {
        settings.wrong(&setting, format!("{sources} sources, but at most {most} can be applied to together"));
    }
}

/// An output file for fermion fields: its format must be known from the name and its folder writable.
pub fn output(settings: &mut Settings, key: &str, stack: Stack) -> Option<PathBuf> {
    settings.parsed(key, |text| {
        let path = PathBuf::from(text);
        fields::spinor_format(&path, stack)?;
        target::check(&path)?;
        Ok::<_, String>(path)
    })
}
