//! Input of `ferrite spectrum`, checked.
use crate::batch::{self, BatchChoice, BatchSize};
use crate::device::DeviceChoice;
use crate::keys::{self, SOLVE};
use crate::named::{self, is_field};
use crate::plan::{definition, foreign_keys};
use crate::{Failure, Outcome, text};
use ferrite::FermionKind;
use ferrite::lattice::Lattice;
use ferrite::observables::spectrum::gamma::{COUNT, name};
use ferrite::observables::spectrum::sequential_nucleon::{PROJECTORS, SpinProjector};
use ferrite::observables::spectrum::smearing::MOST_SMEARING_STEPS;
use ferrite::observables::spectrum::tastes::{PIONS, SpinTaste};
use ferrite::operators::Definition;
use ferrite_inputs::values::{
    Any, AnyWord, Count, Item, Number, Numbers, Positive, SiteCoordinates, SiteItem, Switch, Text, Three, Word,
    WordItem,
};
use ferrite_inputs::{Given, Input, InputKind, Listed, Schema, none_of, rules, vocabularies};
use ferrite_records::spectrum::{
    CorrelatorInput, PropagatorInput, QuarkOfCorrelators, ShellInput, SourceInput, ThreePointInput,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tracing::warn;

vocabularies! {
    /// Values of `source`.
    Sources: SourceKind = SOURCES;
    /// Values of `sink`; `true` for a smeared sink.
    Sinks: bool = [("point", false), ("shell", true)];
    /// Values of `three-point.hadron`; `true` for the nucleon.
    Hadrons: bool = [("meson", false), ("nucleon", true)];
    /// Values of `three-point.projectors`, the spin projectors of the nucleon.
    Projectors: SpinProjector = PROJECTORS;
}
rules! {
    /// Separations in time of source and sink, as typed.
    Times: "a whole number of times from 1 to 4096", |x| x >= 1.0 && x.fract() == 0.0 && x <= 4096.0;
}

/// Keys outside tables.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct SpectrumKeys {
    configurations: Listed<Item>,
    source: Given<Word<Sources>>,
    origin: Given<SiteCoordinates>,
    origins: Listed<SiteItem>,
    times: Given<Count<1, 4096>>,
    sink: Given<Word<Sinks>>,
    momenta: Given<Count<0, 12>>,
    seed: Given<Count<0, { usize::MAX }>>,
    nucleon: Given<Switch>,
    pcac: Given<Switch>,
    propagators: Given<Text>,
    batch: Given<BatchSize>,
    bin: Given<Count<1, 1_000_000>>,
    plot: Listed<Item>,
    mesons: Listed<Item>,
    tastes: Listed<Item>,
}

/// Keys of the table `three-point`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct ThreePointKeys {
    hadron: Given<Word<Hadrons>>,
    separations: Given<Numbers<Times>>,
    sink: Given<AnyWord>,
    projectors: Listed<WordItem<Projectors>>,
    momentum: Given<Three<Any>>,
    charge: Given<Switch>,
}

/// Keys of a table `[[quark]]`, besides those of its solve.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct SpectrumQuarkKeys {
    name: Given<Text>,
    momentum: Given<Three<Any>>,
}

/// Keys of the table `shell`, the Gaussian smearing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct ShellKeys {
    width: Given<Number<Positive>>,
    steps: Given<Count<1, MOST_SMEARING_STEPS>>,
    ape_weight: Given<Number<Positive>>,
    ape_steps: Given<Count<0, 1000>>,
    momentum: Given<Three<Any>>,
}

/// Schema of the input: all keys with their tables. Keys of `ferrite solve` are in the table `solve`.
pub static SPECTRUM_SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let own = Schema::new(Some(InputKind::Spectrum))
        .with::<SpectrumKeys>("")
        .with::<ThreePointKeys>("three-point")
        .with::<SpectrumQuarkKeys>("quark.*")
        .with::<ShellKeys>("shell");
    keys::with_every_input(own).with_solves("solve", "quark", &SOLVE)
});

/// Keys of a solve that do not apply to a spectrum.
const ELSEWHERE: [&str; 14] = [
    "setup",
    "gauge",
    "source",
    "sources",
    "output",
    "save-source",
    "plot",
    "guess",
    "masses",
    "shifts",
    "keep-unconverged",
    "profile",
    "fat",
    "long",
];

/// Type of the sources of quarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// Source at one site.
    Point,
    /// Source at one site, with Gaussian smearing.
    Shell,
    /// Source at all sites of a time slice.
    Wall,
    /// Noise source at all sites of a time slice.
    Noise,
}

/// Names of the types of sources.
pub const SOURCES: [(&str, SourceKind); 4] = [
    ("point", SourceKind::Point),
    ("shell", SourceKind::Shell),
    ("wall", SourceKind::Wall),
    ("noise", SourceKind::Noise),
];

/// Gaussian smearing of quarks, on links with APE smearing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shell {
    /// Width w of the Gaussian in units of a.
    pub width: f64,
    /// Number n of smearing steps.
    pub steps: usize,
    /// Weight of a link relative to its staples in APE smearing.
    pub ape_weight: f64,
    /// Number of steps of APE smearing.
    pub ape_steps: usize,
    /// Momentum of the quarks at which the smeared operators couple best, in units of 2π/L.
    pub momentum: [f64; 3],
}

/// Settings of a quark: its name, smearing and solve.
#[derive(Debug)]
pub struct QuarkInput {
    /// Name of the quark; empty if there is only one.
    pub name: String,
    /// Momentum of the quark's smearing, in units of 2π/L; `None` for the momentum in the table `shell`.
    momentum: Option<[f64; 3]>,
    /// Settings of the solve for the quark.
    solve: Input,
}

/// Hadron at source and sink of three-point functions.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreePointHadron {
    /// Meson with the matrix Γ of this number.
    Meson(usize),
    /// Nucleon with these spin projectors, in order.
    Nucleon(Vec<SpinProjector>),
}

/// Settings of three-point functions.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreePoint {
    /// Hadron at source and sink.
    pub hadron: ThreePointHadron,
    /// Separations in time of source and sink, in ascending order.
    pub separations: Vec<usize>,
    /// Momentum at the sink, in units of 2π/L.
    pub momentum: [i32; 3],
    /// Whether the conserved charge is one of the currents.
    pub charge: bool,
}

/// Meson of staggered quarks: the mean over operators of one spin and taste.
#[derive(Clone, Debug, PartialEq)]
pub struct TasteMeson {
    /// Name of the meson's correlators.
    pub name: String,
    /// Operators whose correlators are averaged.
    pub operators: Vec<SpinTaste>,
}

/// Input file of a spectrum, with the settings that were typed beside it.
#[derive(Clone, Debug, Default)]
pub struct SpectrumSource {
    /// Path of the input file in TOML.
    pub input: PathBuf,
    /// Configurations in place of those in the file; empty to use those of the file.
    pub configurations: Vec<String>,
    /// Number of components of a source to solve together, as typed.
    pub batch: Option<String>,
    /// Assignments `KEY=VALUE`, which replace values in the file.
    pub set: Vec<String>,
}

/// Checked input of a spectrum.
#[derive(Debug)]
pub struct SpectrumInput {
    /// Files of the configurations, in order, as typed.
    pub configurations: Vec<PathBuf>,
    /// Type of the sources.
    pub source: SourceKind,
    /// Source positions at the first source time.
    origins: Vec<[usize; 4]>,
    /// Number of equidistant source times at each source position.
    times: usize,
    /// Settings of the quarks, at least one.
    pub quarks: Vec<QuarkInput>,
    /// Quark and antiquark of each meson, by index in `quarks`.
    pub mesons: Vec<[usize; 2]>,
    /// Mesons of staggered quarks by spin and taste.
    pub tastes: Vec<TasteMeson>,
    /// Momenta of hadrons, in units of 2π/L.
    pub momenta: Vec<[i32; 3]>,
    /// Seed of the noise.
    pub seed: u64,
    /// Gaussian smearing; `None` if neither source nor sink is smeared.
    pub shell: Option<Shell>,
    /// Whether quarks are smeared at the sink.
    pub shell_sink: bool,
    /// Settings of three-point functions; `None` if none are computed.
    pub three_point: Option<ThreePoint>,
    /// Whether nucleons are computed.
    pub nucleon: bool,
    /// Whether the correlator of the axial current with the pion at the source is computed.
    pub pcac: bool,
    /// Folder of kept propagators; `None` if propagators are not kept.
    pub propagators: Option<PathBuf>,
    /// Requested number of components of a source that are solved together.
    pub batch: BatchChoice,
    /// Number of configurations in a bin of the jackknife.
    pub bin: usize,
    /// Names of additional correlators whose effective masses are shown.
    pub plot: Vec<String>,
    /// Whether quarks are staggered.
    pub staggered: bool,
    /// Name of the parameter that has the opposite sign for the other quark of a twisted doublet; `None` without twisted mass.
    pub partner: Option<&'static str>,
    /// Device that computes.
    pub device: DeviceChoice,
}

impl SpectrumInput {
    /// Reads the input file and the settings typed beside it. `add` adds the values of flags. Fails with a list of all mistakes.
    pub fn read(args: &SpectrumSource, add: impl Fn(&mut Input)) -> Outcome<Self> {
        let mut s = Input::new(&SPECTRUM_SCHEMA);
        if let (true, Some(input)) =
            (is_field(&args.input), args.configurations.iter().find(|name| !is_field(name.as_ref())))
        {
            let (input, configuration) = (Path::new(input).display(), args.input.display());
            let why = format!(
                "{configuration} is a configuration; give the input before it: ferrite spectrum {input} {configuration}"
            );
            return Err(Failure::refused(why));
        }
        s.file(&args.input)?;
        s.set(&args.set);
        if !args.configurations.is_empty() {
            s.put("configurations", &args.configurations, "the configurations");
        }
        s.flag("batch", args.batch.as_deref());
        add(&mut s);
        let device = DeviceChoice::of(&mut s);
        let keys: SpectrumKeys = s.read("");
        let mut quarks = quarks(&mut s);
        let mut definitions = Vec::new();
        for QuarkInput { solve, .. } in &mut quarks {
            for key in ELSEWHERE {
                if let Some(setting) = solve.get(key) {
                    match SPECTRUM_SCHEMA.kind_of(key).is_some() {
                        true => s.wrong(
                            &setting,
                            format!("{key} is not a key of this table: write it above the first table"),
                        ),
                        false => s.wrong(&setting, "does not apply to `ferrite spectrum`; remove it"),
                    }
                }
            }
            if let Some(setting) = solve.get("batch") {
                s.wrong(&setting, "batch is not a key of this table: write batch = N above the first table");
            }
            add(solve);
            let chosen = definition(&mut solve.clone());
            for (setting, why) in chosen.map_or_else(Vec::new, |chosen| foreign_keys(solve, chosen)) {
                s.wrong(&setting, why);
            }
            definitions.extend(chosen);
        }
        let staggered = definitions.iter().any(|definition| definition.kind == FermionKind::Staggered);
        let partner = definitions.iter().find_map(|definition| definition.partner());
        agree(&mut s, &quarks, &definitions);
        let (mesons, tastes) = (mesons(&mut s, &keys.mesons, &quarks), tastes(&mut s, &keys.tastes));
        let configurations = configurations(&mut s, &keys.configurations);
        if keys.configurations.is_empty() && !s.was_refused("configurations") {
            s.missing(
                "no configurations: name them after the input, or write configurations = [\"cfg.000100.ildg\"] in the \
                 input",
            );
        }
        let source = keys.source.or(SourceKind::Point);
        let shell_sink = keys.sink.is_on();
        let (origins, times) = (origins(&mut s, &keys), keys.times.or(1));
        let most = keys.momenta.or(0) as i32;
        let seed = keys.seed.or(1) as u64;
        let shell = shell(&mut s, source == SourceKind::Shell || shell_sink);
        if let Some(note) = shell.and_then(|shell| shell.note(staggered)) {
            warn!("{note}");
        }
        let possible = !staggered && partner.is_none() && source != SourceKind::Noise;
        let nucleon = if s.get("nucleon").is_some() { keys.nucleon.is_on() } else { possible };
        let spreads =
            quarks.iter().any(|quark| quark.solve.get("spread-boundary").is_some_and(|on| on.text() == "true"));
        let pcac = keys.pcac.is_on();
        let at_one_time = matches!(source, SourceKind::Wall | SourceKind::Noise);
        let no_partner = partner.map_or_else(String::new, |other| {
            format!(
                "a nucleon needs both quarks of a doublet, but only one is computed (the other has {other}); remove \
                 nucleon, or set nucleon = false"
            )
        });
        for (key, refused, why) in [
            (
                "nucleon",
                nucleon && spreads,
                "nucleons are not available for quarks with spread-boundary: remove nucleon",
            ),
            ("nucleon", partner.is_some() && nucleon, &no_partner),
            (
                "momenta",
                at_one_time && most > 0,
                "a source on a whole time slice has zero momentum only: remove momenta, or choose a point or \
                 Gaussian-smeared source",
            ),
            (
                "nucleon",
                source == SourceKind::Noise && nucleon,
                "a nucleon needs three independent propagators, which a noise source cannot provide; remove nucleon, \
                 or choose a point or wall source",
            ),
            ("seed", source != SourceKind::Noise, "applies only to source = \"noise\"; remove it"),
            ("pcac", pcac && staggered, "the PCAC mass applies to Wilson-like quarks only; remove pcac"),
            ("pcac", pcac && shell_sink, "the axial current is local: set sink = \"point\", or remove pcac"),
        ] {
            if let (true, Some(setting)) = (refused, s.get(key)) {
                s.wrong(&setting, why);
            }
        }
        let turns = quarks.iter().any(|quark| quark.solve.get("theta").is_some());
        let why = match source {
            _ if !staggered => Some("tastes apply to staggered quarks only; remove the key"),
            _ if shell_sink || source != SourceKind::Point => {
                Some("mesons with a taste need point sources and sinks; remove tastes")
            }
            _ if turns => {
                Some("mesons with a taste are not available with twisted boundary conditions; remove tastes or theta")
            }
            _ => None,
        };
        if let (Some(why), Some(setting)) = (why, s.all("tastes").first()) {
            s.wrong(setting, why);
        }
        let three_point = three_point(&mut s, &quarks);
        if three_point.is_some() {
            let why = match source {
                _ if staggered => Some("three-point functions are not available for staggered quarks"),
                _ if partner.is_some() => {
                    Some("three-point functions of a twisted doublet need both of its quarks, but only one is computed")
                }
                SourceKind::Point | SourceKind::Shell => None,
                SourceKind::Wall | SourceKind::Noise => {
                    Some("three-point functions need point or Gaussian-smeared sources")
                }
            };
            if let (Some(why), Some(setting)) = (why, s.get("three-point.separations")) {
                s.wrong(&setting, format!("{why}: remove the table three-point"));
            }
        }
        let batch = batch::choice(&keys.batch);
        let bin = keys.bin.or(1);
        let plot = plot(&mut s, &keys.plot, staggered, &correlator_names(&quarks, &mesons, nucleon));
        let propagators = keys.propagators.get().map(PathBuf::from);
        s.finish(&args.input.display().to_string())?;
        Ok(SpectrumInput {
            configurations,
            source,
            origins,
            times,
            quarks,
            mesons,
            tastes,
            momenta: momenta(most),
            seed,
            shell,
            shell_sink,
            three_point,
            nucleon,
            pcac,
            propagators,
            batch,
            bin,
            plot,
            staggered,
            partner,
            device,
        })
    }
    /// Returns whether some correlators need further solves, in addition to one propagator of each quark.
    pub fn has_further_solves(&self) -> bool {
        self.three_point.is_some() || !self.tastes.is_empty()
    }
    /// Returns all source positions on a lattice, at all source times.
    pub fn origins(&self, lattice: Lattice) -> Vec<[usize; 4]> {
        let extent = lattice.size()[3];
        let at = |[x, y, z, t]: [usize; 4], k: usize| [x, y, z, (t + k * extent / self.times) % extent];
        self.origins.iter().flat_map(|origin| (0..self.times).map(move |k| at(*origin, k))).collect()
    }
    /// Returns the first source position, which is valid on any lattice.
    pub fn first_origin(&self) -> [usize; 4] {
        self.origins[0]
    }
    /// Returns whether there are several source positions.
    pub fn has_several_origins(&self) -> bool {
        self.origins.len() * self.times > 1
    }
    /// Returns the beginning of the names of a meson's correlators: the names of its quarks, if there are several quarks.
    pub fn meson(&self, pair: [usize; 2]) -> String {
        meson(&self.quarks, pair)
    }
    /// Returns the beginning of the names of a baryon's correlators: the name of its quark, if there are several quarks.
    pub fn baryon(&self, quark: usize) -> String {
        baryon(&self.quarks[quark])
    }
    /// Returns an input with the keys of `ferrite solve`, for the solve for a quark from a source position on a configuration.
    pub fn solve_settings(&self, quark: usize, origin: [usize; 4], configuration: &Path) -> Input {
        let mut solve = self.quarks[quark].solve.clone();
        solve.put("gauge", &[configuration.display().to_string()], "configurations");
        // The names of points state the position and the components of the sources. Their type follows from the key `source` of the input.
        let [x, y, z, t] = origin;
        let point = |component: String| format!("point:{x},{y},{z},{t},{component}");
        let points: Vec<String> = if self.staggered {
            (0..3).map(|colour| point(colour.to_string())).collect()
        } else {
            (0..12).map(|k| point(format!("{},{}", k / 3, k % 3))).collect()
        };
        solve.put("source", &points, "origin");
        solve
    }
    /// Returns the Gaussian smearing of a quark; `None` without smearing.
    pub fn shell_of(&self, quark: usize) -> Option<Shell> {
        self.shell.map(|shell| Shell { momentum: self.quarks[quark].momentum.unwrap_or(shell.momentum), ..shell })
    }
    /// Returns the name of the type of sources.
    fn source_name(&self) -> &'static str {
        SOURCES.iter().find(|(_, kind)| *kind == self.source).map_or("", |(name, _)| name)
    }
    /// Returns the record of the source without its position, with the Gaussian smearing `shell`.
    fn source_input(&self, shell: Option<Shell>) -> SourceInput {
        SourceInput {
            source: self.source_name().into(),
            seed: (self.source == SourceKind::Noise).then_some(self.seed),
            shell: shell.filter(|_| self.source == SourceKind::Shell).map(Into::into),
        }
    }
    /// Returns the keys on which a propagator depends in addition to its configuration.
    pub fn of_propagator(&self, quark: usize, origin: [usize; 4]) -> PropagatorInput {
        let (source, solve) = (self.source_input(self.shell_of(quark)), self.quarks[quark].physics());
        PropagatorInput { source, origin, solve }
    }
    /// Returns the keys on which correlators depend in addition to their configuration.
    pub fn of_correlators(&self) -> CorrelatorInput {
        let several = self.origins.len() > 1;
        let mut all = CorrelatorInput {
            source: self.source_input(self.shell),
            origin: (!several).then(|| self.first_origin()),
            origins: several.then(|| self.origins.clone()),
            times: Some(self.times).filter(|times| *times > 1),
            sink: self.shell.filter(|_| self.shell_sink).map(Into::into),
            momenta: self.momenta.len(),
            three_point: self.three_point.as_ref().map(Into::into),
            nucleon: self.nucleon,
            pcac: self.pcac,
            tastes: self.tastes.iter().map(|one| one.name.clone()).collect(),
            ..Default::default()
        };
        match self.quarks.as_slice() {
            [only] if only.name.is_empty() => all.solve = Some(only.physics()),
            several => {
                let one = |quark: &QuarkInput| {
                    (quark.name.clone(), QuarkOfCorrelators { solve: quark.physics(), momentum: quark.momentum })
                };
                all.quarks = Some(several.iter().map(one).collect());
                all.mesons = Some(self.mesons.iter().map(|pair| self.meson_name(*pair)).collect());
            }
        }
        all
    }
    fn meson_name(&self, [quark, antiquark]: [usize; 2]) -> String {
        format!("{}-{}", self.quarks[quark].name, self.quarks[antiquark].name)
    }
    /// Describes the quarks, the source and the sink for people.
    pub fn title(&self) -> String {
        let source = self.source_name();
        let sink = if self.shell_sink { "shell" } else { "point" };
        let quarks: Vec<String> = self.quarks.iter().map(QuarkInput::title).collect();
        let sources = if self.has_several_origins() {
            format!(" from {} source positions", self.origins.len() * self.times)
        } else {
            String::new()
        };
        format!("{}, {source} to {sink}{sources}", quarks.join(", "))
    }
    /// Returns the number of sites at which the source is one or noise before smearing. The correlator of a wall or noise source is a sum
    /// over this many points.
    pub fn source_sites(&self, lattice: Lattice) -> usize {
        let space: usize = lattice.size()[..3].iter().product();
        match self.source {
            SourceKind::Point | SourceKind::Shell => 1,
            SourceKind::Wall | SourceKind::Noise if self.staggered => space / 8,
            SourceKind::Wall | SourceKind::Noise => space,
        }
    }
    /// Fails unless source positions, source times, separations and momenta fit the lattice.
    pub fn check(&self, lattice: Lattice) -> Outcome {
        let size = lattice.size();
        for origin in &self.origins {
            if origin.iter().zip(size).any(|(x, extent)| *x >= extent) {
                let last = size.map(|extent| extent - 1);
                let why = format!("origin {origin:?} is outside the lattice {lattice}: the last site is {last:?}");
                return Err(Failure::refused(why));
            }
        }
        if !size[3].is_multiple_of(self.times) {
            let why = format!(
                "times = {}: sources are at equal distances in t, but {lattice} has {} times: give a divisor of {}",
                self.times, size[3], size[3]
            );
            return Err(Failure::refused(why));
        }
        let separations = self.three_point.iter().flat_map(|three| &three.separations);
        if let Some(far) = separations.copied().find(|separation| *separation >= size[3]) {
            let why = format!(
                "three-point.separations: {far} is too large for {lattice}, which has {} times: give at most {}",
                size[3],
                size[3] - 1
            );
            return Err(Failure::refused(why));
        }
        let mut sources = HashMap::new();
        for origin in self.origins(lattice) {
            if let Some(other) = sources.insert(self.distinction(origin), origin) {
                let why = format!(
                    "origins: {other:?} and {origin:?} give the same source, which would count twice: remove one"
                );
                return Err(Failure::refused(why));
            }
        }
        let far = |p: &&[i32; 3]| p.iter().zip(size).any(|(p, extent)| 2 * p.unsigned_abs() as usize > extent);
        let sinks = self.three_point.iter().map(|three| &three.momentum);
        if let Some(p) = self.momenta.iter().chain(sinks).find(far) {
            let why = format!(
                "the momentum {p:?}, in units of 2π/L, is outside the Brillouin zone of {lattice}: reduce momenta or \
                 three-point.momentum, so that components are at most L/2"
            );
            return Err(Failure::refused(why));
        }
        Ok(())
    }
    /// Returns the coordinates on which the source at a position depends; two positions with the same coordinates give the same source.
    fn distinction(&self, [x, y, z, t]: [usize; 4]) -> [usize; 4] {
        match (self.source, self.staggered) {
            (SourceKind::Point | SourceKind::Shell, _) => [x, y, z, t],
            (SourceKind::Wall | SourceKind::Noise, true) => [x % 2, y % 2, z % 2, t],
            (SourceKind::Wall | SourceKind::Noise, false) => [0, 0, 0, t],
        }
    }
}

impl QuarkInput {
    /// Returns the keys on which the solution of this quark depends, with their values as typed.
    fn physics(&self) -> BTreeMap<String, String> {
        keys::physics().filter_map(|key| Some((key.to_string(), self.solve.get(key)?.text().to_string()))).collect()
    }
    /// Describes the operator and the mass for people.
    fn title(&self) -> String {
        let of = |key: &str, shown: &str| {
            let text = self.solve.get(key).map(|setting| setting.text().to_string());
            text.map_or(String::new(), |text| format!("{shown}{text}"))
        };
        let all = [("operator", ""), ("mass", ", m = "), ("kappa", ", kappa = "), ("mu", ", mu = ")];
        let name = if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) };
        name + &all.map(|(key, shown)| of(key, shown)).concat()
    }
}

impl Shell {
    /// Returns a warning if the smearing has so few steps that it amplifies the highest modes. (1 + w² Δ/(4 n))ⁿ has eigenvalues from (1 −
    /// 3 w²/n)ⁿ to 1; with steps of two sites, from (1 − 3 w²/(4 n))ⁿ to 1.
    fn note(self, staggered: bool) -> Option<String> {
        let Shell { width, steps, .. } = self;
        let (lowest, square) = (if staggered { 0.375 } else { 1.5 }, width * width);
        (steps as f64 <= lowest * square).then(|| {
            format!(
                "shell.steps = {steps}: smearing of width {width} is not Gaussian with {} or fewer, which amplify the \
                 highest modes; use more than {}",
                text::count((lowest * square) as usize, "step"),
                text::count((2.0 * lowest * square) as usize, "step"),
            )
        })
    }
}

impl From<Shell> for ShellInput {
    fn from(Shell { width, steps, ape_weight, ape_steps, momentum }: Shell) -> Self {
        let momentum = Some(momentum).filter(|momentum| *momentum != [0.0; 3]);
        ShellInput { width, steps, ape_weight, ape_steps, momentum }
    }
}

impl From<&ThreePoint> for ThreePointInput {
    fn from(ThreePoint { hadron, separations, momentum, charge }: &ThreePoint) -> Self {
        let all = ThreePointInput {
            separations: separations.clone(),
            momentum: *momentum,
            charge: *charge,
            ..Default::default()
        };
        match hadron {
            ThreePointHadron::Meson(gamma) => ThreePointInput { sink: Some(name(*gamma).to_string()), ..all },
            ThreePointHadron::Nucleon(projectors) => ThreePointInput {
                hadron: Some("nucleon".into()),
                projectors: Some(projectors.iter().map(|projector| projector.name().to_string()).collect()),
                ..all
            },
        }
    }
}

/// Returns all momenta whose square is at most `most`, smallest first.
fn momenta(most: i32) -> Vec<[i32; 3]> {
    let reach = f64::from(most).sqrt() as i32;
    let line = || -reach..=reach;
    let all = line().flat_map(|x| line().flat_map(move |y| line().map(move |z| [x, y, z])));
    let square = |p: &[i32; 3]| p.iter().map(|k| k * k).sum::<i32>();
    let mut all: Vec<[i32; 3]> = all.filter(|p| square(p) <= most).collect();
    all.sort_by_key(|p| (square(p), *p));
    all
}

/// Returns the files that the names and patterns in `configurations` stand for. A pattern without a match is a mistake of the input.
fn configurations(s: &mut Input, names: &Listed<Item>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in names.iter() {
        match named::matches(name.get().map_or("", String::as_str)) {
            Ok(found) => files.extend(found),
            Err(why) => s.wrong(name, why),
        }
    }
    files
}

/// Returns the settings of the quarks. Each table `[[quark]]` takes keys that it does not have from the table `solve`. Without such tables,
/// `solve` describes the only quark.
fn quarks(s: &mut Input) -> Vec<QuarkInput> {
    let tables = s.tables("quark");
    if tables == 0 {
        return vec![QuarkInput { name: String::new(), momentum: None, solve: s.solve() }];
    }
    let mut quarks: Vec<QuarkInput> = Vec::new();
    for number in 0..tables {
        let SpectrumQuarkKeys { name, momentum } = s.read(&format!("quark.{number}"));
        let key = format!("quark.{number}.name");
        match name.get() {
            None if !s.was_refused(&key) => s.missing(format!(
                "{key} is missing: give each quark a name, because the names of mesons contain those of their quarks"
            )),
            None => {}
            Some(text) => {
                let word = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                if text.is_empty() || !word {
                    s.wrong(&name, format!("'{text}' is not a name: use letters, digits and '_' only"));
                } else if quarks.iter().any(|other| other.name == *text) {
                    s.wrong(&name, format!("two quarks have the name '{text}': rename one of them"));
                }
            }
        }
        let name = name.value().unwrap_or_default();
        quarks.push(QuarkInput { name, momentum: momentum.value(), solve: s.solve_of(number) });
    }
    quarks
}

/// Reads the table `three-point`; `None` without three-point functions.
fn three_point(s: &mut Input, quarks: &[QuarkInput]) -> Option<ThreePoint> {
    let keys: ThreePointKeys = s.read("three-point");
    let is_nucleon = keys.hadron.is_on();
    if is_nucleon {
        s.wrong(&keys.sink, "applies only to three-point.hadron = \"meson\"; remove it");
    } else if let Some(place) = s.get("three-point.projectors") {
        s.wrong(&place, "applies only to three-point.hadron = \"nucleon\"; remove it");
    }
    let names: Vec<String> = (0..COUNT).map(name).collect();
    let number = |gamma: &String| names.iter().position(|name| name == gamma);
    let gamma = keys.sink.get().map(number);
    if let (Some(None), Some(typed)) = (gamma, keys.sink.get()) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        s.wrong(&keys.sink, none_of("sink", typed, &names));
    }
    let momentum = keys.momentum.value().unwrap_or_default();
    if momentum.iter().any(|p| p.fract() != 0.0) {
        s.wrong(&keys.momentum, format!("expected whole numbers, in units of 2π/L, not {momentum:?}"));
    }
    let charge = keys.charge.is_on();
    if charge && quarks.iter().any(|quark| quark.solve.get("theta").is_some()) {
        let why = "the conserved charge is not available with twisted boundary conditions; remove three-point.charge \
                   or theta";
        s.wrong(&keys.charge, why);
    }
    if !s.was_given("three-point.separations") {
        for key in ["hadron", "sink", "projectors", "momentum", "charge"] {
            if let Some(place) = s.get(&format!("three-point.{key}")) {
                s.wrong(&place, "needs three-point.separations, the times between source and sink");
            }
        }
    }
    let mut separations: Vec<usize> = keys.separations.value()?.into_iter().map(|t| t as usize).collect();
    separations.sort_unstable();
    separations.dedup();
    let hadron = match is_nucleon {
        true => ThreePointHadron::Nucleon(projectors(&keys.projectors)),
        false => ThreePointHadron::Meson(gamma.flatten().unwrap_or(15)),
    };
    Some(ThreePoint { hadron, separations, momentum: momentum.map(|p| p as i32), charge })
}

/// Returns the requested projectors in order; the unpolarised one if none is requested.
fn projectors(requested: &Listed<WordItem<Projectors>>) -> Vec<SpinProjector> {
    let mut projectors: Vec<SpinProjector> = requested.iter().filter_map(Given::value).collect();
    projectors.sort_unstable();
    projectors.dedup();
    if projectors.is_empty() { vec![SpinProjector::Unpolarised] } else { projectors }
}

/// Adds differences between quarks that a meson cannot have to the mistakes of the input.
fn agree(s: &mut Input, quarks: &[QuarkInput], definitions: &[&Definition]) {
    let [first, others @ ..] = quarks else { return };
    let text = |quark: &QuarkInput, key: &str| quark.solve.get(key).map(|setting| setting.text().to_string());
    for quark in others {
        for key in ["bc-time", "lattice", "record"] {
            if text(quark, key) != text(first, key) {
                let (name, other) = (&quark.name, &first.name);
                s.missing(format!("{key} of the quarks {other} and {name} differs: give it in the table solve only"));
            }
        }
    }
    let of_kind = |kind: FermionKind| definitions.iter().position(|definition| definition.kind == kind);
    let kinds = [FermionKind::Staggered, FermionKind::Wilson].map(of_kind);
    if let ([Some(a), Some(b)], true) = (kinds, quarks.len() == definitions.len()) {
        s.missing(format!(
            "[[quark]]: \"{}\" is staggered, but \"{}\" is Wilson-like, and a meson needs two quarks of one kind: \
             measure staggered and Wilson-like quarks with separate inputs",
            quarks[a].name, quarks[b].name
        ));
    }
    if others.is_empty() {
        return;
    }
    if let Some(twisted) = definitions.iter().find(|definition| definition.partner().is_some()) {
        s.missing(format!(
            "[[quark]]: mesons of {} quarks need both quarks of one doublet: remove the tables [[quark]], and describe \
             one quark in the table solve",
            twisted.name
        ));
    }
}

/// Returns the pairs of quarks whose mesons are computed: the requested ones, or all.
fn mesons(s: &mut Input, names: &Listed<Item>, quarks: &[QuarkInput]) -> Vec<[usize; 2]> {
    let n = quarks.len();
    let all = || (0..n).flat_map(|a| (a..n).map(move |b| [a, b])).collect();
    if names.is_empty() {
        return all();
    }
    let mut pairs = Vec::new();
    for one in names.iter() {
        let Some(text) = one.get() else { continue };
        let place = |name: &str| quarks.iter().position(|quark| quark.name == name && !name.is_empty());
        let pair = text.split_once('-').and_then(|(a, b)| Some([place(a.trim())?, place(b.trim())?]));
        match pair {
            None if quarks[0].name.is_empty() => {
                s.wrong(one, "applies only to inputs with tables [[quark]]; remove it")
            }
            None => {
                let names: Vec<&str> = quarks.iter().map(|quark| quark.name.as_str()).collect();
                let of = names.join(", ");
                s.wrong(one, format!("'{text}' is not QUARK-ANTIQUARK, where each is one of {of}"));
            }
            Some(pair) if pairs.contains(&pair) => s.wrong(one, format!("'{text}' occurs twice; remove one")),
            Some(pair) => pairs.push(pair),
        }
    }
    pairs
}

/// Reads the mesons by spin and taste: `pions` for all pions, the name of one pion, or an operator.
fn tastes(s: &mut Input, names: &Listed<Item>) -> Vec<TasteMeson> {
    let pion = |(name, operators): &(&str, &[&str])| TasteMeson {
        name: (*name).into(),
        operators: operators.iter().filter_map(|one| one.parse().ok()).collect(),
    };
    let mut all: Vec<TasteMeson> = Vec::new();
    for name in names.iter() {
        let Some(text) = name.get() else { continue };
        let found: Vec<TasteMeson> = match PIONS.iter().find(|(name, _)| *name == text) {
            _ if text == "pions" => PIONS.iter().map(pion).collect(),
            Some(one) => vec![pion(one)],
            None => match text.parse() {
                Ok(operator) => vec![TasteMeson { name: text.clone(), operators: vec![operator] }],
                Err(why) => {
                    let names: Vec<&str> = PIONS.iter().map(|(name, _)| *name).collect();
                    s.wrong(name, format!("{why}; give pions for all pions, or one of {}", names.join(", ")));
                    continue;
                }
            },
        };
        match found.iter().find(|one| all.iter().any(|known| known.name == one.name)) {
            Some(twice) => s.wrong(name, format!("'{}' occurs twice; remove one", twice.name)),
            None => all.extend(found),
        }
    }
    all
}

/// Returns the source positions of `origin` or `origins`; the site 0 if neither is given.
fn origins(s: &mut Input, keys: &SpectrumKeys) -> Vec<[usize; 4]> {
    if s.get("origin").is_some() && s.get("origins").is_some() {
        s.conflict(
            "origin",
            "origins",
            "origin gives one source position, and origins gives several: remove one of the two keys",
        );
    }
    let sites: Vec<[usize; 4]> = keys.origins.iter().filter_map(Given::value).chain(keys.origin.value()).collect();
    if s.was_given("origins") && s.all("origins").is_empty() && !s.was_refused("origins") {
        s.missing("origins is empty: give sites, such as [[0, 0, 0, 0], [0, 0, 0, 8]]");
    }
    if sites.is_empty() { vec![[0; 4]] } else { sites }
}

/// Returns the first part of the names of a meson's correlators, such as `light-strange.`; empty if there is only one quark.
fn meson(quarks: &[QuarkInput], [quark, antiquark]: [usize; 2]) -> String {
    match (&quarks[quark].name, &quarks[antiquark].name) {
        (quark, _) if quark.is_empty() => String::new(),
        (quark, antiquark) => format!("{quark}-{antiquark}."),
    }
}

/// Returns the first part of the names of a baryon's correlators, such as `light.`; empty if there is only one quark.
fn baryon(quark: &QuarkInput) -> String {
    if quark.name.is_empty() { String::new() } else { format!("{}.", quark.name) }
}

/// Returns the names of all correlators of Wilson-like quarks.
fn correlator_names(quarks: &[QuarkInput], mesons: &[[usize; 2]], nucleon: bool) -> Vec<String> {
    let of_mesons =
        mesons.iter().flat_map(|pair| (0..COUNT).map(|number| format!("{}{}", meson(quarks, *pair), name(number))));
    let of_nucleons = quarks
        .iter()
        .filter(|_| nucleon)
        .flat_map(|quark| ["positive", "negative"].map(|parity| format!("{}nucleon.{parity}", baryon(quark))));
    of_mesons.chain(of_nucleons).collect()
}

/// Returns the additional correlators whose effective masses are shown.
fn plot(s: &mut Input, requested: &Listed<Item>, staggered: bool, names: &[String]) -> Vec<String> {
    for one in requested.iter() {
        let Some(text) = one.get() else { continue };
        if staggered {
            s.wrong(one, "for staggered quarks, effective masses are shown for the Goldstone pion only; remove plot");
        } else if !names.contains(text) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            s.wrong(one, none_of("plot", text, &names));
        }
    }
    requested.iter().filter_map(Given::value).collect()
}

/// Reads the table `shell`. It is required if `needed`; otherwise its keys are mistakes.
fn shell(s: &mut Input, needed: bool) -> Option<Shell> {
    let keys: ShellKeys = s.read("shell");
    let momenta = (0..s.tables("quark")).map(|number| format!("quark.{number}.momentum"));
    let of_shell = ["width", "steps", "ape-weight", "ape-steps", "momentum"].map(|key| format!("shell.{key}"));
    for key in of_shell.into_iter().chain(momenta) {
        match (needed, s.get(&key)) {
            (true, None) if ["shell.width", "shell.steps"].contains(&key.as_str()) && !s.was_given(&key) => {
                s.missing(format!(
                    "{key} is missing: Gaussian smearing (1 + w² Δ/(4 n))ⁿ needs the width w and the number of steps n"
                ));
            }
            (false, Some(place)) => {
                s.wrong(&place, "applies only to source = \"shell\" or sink = \"shell\"; remove it")
            }
            _ => {}
        }
    }
    let momentum = keys.momentum.value().unwrap_or_default();
    let (ape_weight, ape_steps) = (keys.ape_weight.or(2.5), keys.ape_steps.or(0));
    Some(Shell { width: keys.width.value()?, steps: keys.steps.value()?, ape_weight, ape_steps, momentum })
        .filter(|_| needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where (1 − 3 w²/n)ⁿ is −1 or less.
    #[test]
    fn few_steps_are_no_gaussian() {
        let note = |width, steps, staggered| {
            Shell { width, steps, ape_weight: 2.5, ape_steps: 0, momentum: [0.0; 3] }.note(staggered)
        };
        assert!(
            note(2.0, 6, false)
                .is_some_and(|note| note.contains("6 steps or fewer") && note.contains("more than 12 steps"))
        );
        assert_eq!((note(2.0, 7, false), note(2.0, 2, true)), (None, None));
        assert!(note(2.0, 1, true).is_some());
    }

    #[test]
    fn momenta_come_in_shells() {
        assert_eq!(momenta(0), [[0, 0, 0]]);
        let one = momenta(1);
        assert_eq!((one.len(), one[0]), (7, [0, 0, 0]));
        assert_eq!((momenta(2).len(), momenta(3).len(), momenta(4).len()), (19, 27, 33));
    }
}
