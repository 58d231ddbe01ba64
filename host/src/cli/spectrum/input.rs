//! The input of `ferrite spectrum`, checked.
use super::super::batch::BatchChoice;
use super::super::device::DeviceChoice;
use super::super::plan::{definition, foreign_keys};
use super::super::{Context, Failure, Outcome, keys};
use super::SpectrumArguments;
use crate::cli::config::{Kind, Schema, Settings};
use ferrite::FermionKind;
use ferrite::lattice::Lattice;
use ferrite::observables::spectrum::gamma::{COUNT, name};
use ferrite::operators::{Definition, OPERATORS};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tracing::warn;

/// Its own keys; those of `ferrite solve` are in a table `solve`.
const SCHEMA: Schema = &[
    ("configurations", Kind::Texts),
    ("source", Kind::Word),
    ("origin", Kind::Extents),
    ("sink", Kind::Word),
    ("momenta", Kind::Count),
    ("seed", Kind::Count),
    ("nucleon", Kind::Switch),
    ("propagators", Kind::Text),
    ("batch", Kind::Count),
    ("bin", Kind::Count),
    ("plot", Kind::Texts),
    ("shell.width", Kind::Number),
    ("shell.steps", Kind::Count),
    ("shell.ape-weight", Kind::Number),
    ("shell.ape-steps", Kind::Count),
];

/// Keys of a solve that have no meaning here.
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

/// What a quark begins from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// One site.
    Point,
    /// One site, smeared.
    Shell,
    /// All sites of a time.
    Wall,
    /// Noise at all sites of a time.
    Noise,
}

/// Names of the sources.
pub const SOURCES: [(&str, SourceKind); 4] = [
    ("point", SourceKind::Point),
    ("shell", SourceKind::Shell),
    ("wall", SourceKind::Wall),
    ("noise", SourceKind::Noise),
];

/// Gaussian smearing of quarks, on smeared links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shell {
    /// w
    pub width: f64,
    /// n
    pub steps: usize,
    /// Weight of a link against its staples in each step of APE smearing.
    pub ape_weight: f64,
    /// Steps of APE smearing.
    pub ape_steps: usize,
}

/// An input.
#[derive(Debug)]
pub struct SpectrumInput {
    /// The configurations, in their order, as typed.
    pub configurations: Vec<PathBuf>,
    /// What quarks begin from.
    pub source: SourceKind,
    /// Where.
    pub origin: [usize; 4],
    /// Momenta of hadrons, in units of 2π/L.
    pub momenta: Vec<[i32; 3]>,
    /// Of the noise.
    pub seed: u64,
    /// Smearing, where source or sink are smeared.
    pub shell: Option<Shell>,
    /// Whether quarks are smeared where they end.
    pub shell_sink: bool,
    /// Whether nucleons are made.
    pub nucleon: bool,
    /// Folder of propagators that are kept.
    pub propagators: Option<PathBuf>,
    /// How many components of a source go together.
    pub batch: BatchChoice,
    /// Configurations of a bin of the jackknife.
    pub bin: usize,
    /// Names of further correlators whose effective masses are shown.
    pub plot: Vec<String>,
    /// Whether quarks are staggered.
    pub staggered: bool,
    /// How the other quark of a doublet is called, where it differs from the one that is solved for.
    pub partner: Option<&'static str>,
    /// Where it is computed.
    pub device: DeviceChoice,
    /// The table of the solve.
    solve: Settings,
}

impl SpectrumInput {
    /// Reads the file and the settings beside it; all mistakes at once.
    pub fn read(args: &SpectrumArguments, context: &Context) -> Outcome<Self> {
        let mut s = Settings::with_solve(SCHEMA, "solve");
        s.file(&args.input)?;
        s.set(&args.set);
        s.flags("configurations", &args.configurations);
        s.flag("batch", args.batch.as_deref());
        context.add_to(&mut s);
        let device = DeviceChoice::from_settings(&mut s);
        let mut solve = s.solve();
        for key in ELSEWHERE {
            if let Some(setting) = solve.get(key) {
                s.wrong(&setting, "belongs to `ferrite solve`");
            }
        }
        if let Some(setting) = solve.get("batch") {
            s.wrong(&setting, "is not a key of the solve here: give batch = N before all tables, or --batch N");
        }
        context.add_to(&mut solve);
        let chosen = definition(&mut solve.clone());
        for (setting, why) in chosen.map_or_else(Vec::new, |chosen| foreign_keys(&mut solve, chosen)) {
            s.wrong(&setting, why);
        }
        let staggered = chosen.is_some_and(|definition| definition.kind == FermionKind::Staggered);
        let partner = chosen.and_then(Definition::partner);
        let configurations: Vec<PathBuf> = s.all("configurations").iter().map(|one| one.text().into()).collect();
        if configurations.is_empty() && !s.was_refused("configurations") {
            s.missing("no configurations: name them behind the input, or configurations = [\"cfg.000100.ildg\"] in it");
        }
        let source = s.choice("source", &SOURCES).unwrap_or(SourceKind::Point);
        let shell_sink = s.choice("sink", &[("point", false), ("shell", true)]).unwrap_or(false);
        let origin = s.parsed("origin", |text| {
            let numbers: Option<Vec<usize>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
            let four = numbers.and_then(|numbers| <[usize; 4]>::try_from(numbers).ok());
            four.ok_or_else(|| format!("'{text}': expected four whole numbers x,y,z,t"))
        });
        let most = s.count("momenta", 0..=12).unwrap_or(0) as i32;
        let seed = s.count("seed", 0..=usize::MAX).unwrap_or(1) as u64;
        let shell = shell(&mut s, source == SourceKind::Shell || shell_sink);
        if let Some(note) = shell.and_then(|shell| shell.note(staggered)) {
            warn!("{note}");
        }
        let possible = !staggered && partner.is_none() && source != SourceKind::Noise;
        let nucleon = s.get("nucleon").map_or(possible, |_| s.is_on("nucleon"));
        let at_one_time = matches!(source, SourceKind::Wall | SourceKind::Noise);
        let no_nucleon = "nucleons are made of Wilson and clover quarks: take it out, or say false, for staggered ones";
        let no_partner = partner.map_or_else(String::new, |other| {
            format!(
                "a nucleon has both quarks of a doublet, of which only one is solved for: the other has {other}; take it \
                 out, or say false"
            )
        });
        for (key, refused, why) in [
            (
                "momenta",
                staggered && most > 0,
                "local mesons of staggered quarks are made without momentum: take it out",
            ),
            ("nucleon", staggered && nucleon, no_nucleon),
            ("nucleon", partner.is_some() && nucleon, &no_partner),
            ("momenta", at_one_time && most > 0, "a source at all sites of a time has no momentum but 0"),
            ("nucleon", source == SourceKind::Noise && nucleon, "three quarks from one noise are noise"),
            ("seed", source != SourceKind::Noise, "belongs to source = \"noise\""),
        ] {
            if let (true, Some(setting)) = (refused, s.get(key)) {
                s.wrong(&setting, why);
            }
        }
        let batch = BatchChoice::from_settings(&mut s, "batch");
        let bin = s.count("bin", 1..=1_000_000).unwrap_or(1);
        let plot = plot(&mut s, staggered, nucleon);
        let propagators = s.get("propagators").map(|folder| PathBuf::from(folder.text()));
        s.finish(&args.input.display().to_string())?;
        Ok(SpectrumInput {
            configurations,
            source,
            origin: origin.unwrap_or_default(),
            momenta: momenta(most),
            seed,
            shell,
            shell_sink,
            nucleon,
            propagators,
            batch,
            bin,
            plot,
            staggered,
            partner,
            device,
            solve,
        })
    }
    /// The settings of a solve on one configuration for the sources, as `ferrite solve` knows them.
    pub fn solve_settings(&self, configuration: &Path) -> Settings {
        let mut solve = self.solve.clone();
        solve.put("gauge", &[configuration.display().to_string()], "configurations");
        // Places of the sources' components; what the sources are is decided here.
        let [x, y, z, t] = self.origin;
        let point = |component: String| format!("point:{x},{y},{z},{t},{component}");
        let points: Vec<String> = if self.staggered {
            (0..3).map(|colour| point(colour.to_string())).collect()
        } else {
            (0..12).map(|k| point(format!("{},{}", k / 3, k % 3))).collect()
        };
        solve.put("source", &points, "origin");
        solve
    }
    /// What decides what a propagator is, but for its configuration.
    pub fn of_propagator(&self) -> Value {
        let physics: BTreeMap<&str, String> =
            physics().filter_map(|key| Some((key, self.solve.get(key)?.text().to_string()))).collect();
        let smeared = self.source == SourceKind::Shell;
        json!({
            "source": SOURCES.iter().find(|(_, kind)| *kind == self.source).map(|(name, _)| *name),
            "origin": self.origin,
            "seed": (self.source == SourceKind::Noise).then_some(self.seed),
            "shell": self.shell.filter(|_| smeared).map(Shell::json),
            "solve": physics,
        })
    }
    /// What decides what correlators are, but for their configuration.
    pub fn of_correlators(&self) -> Value {
        let mut all = self.of_propagator();
        all["sink"] = json!(self.shell.filter(|_| self.shell_sink).map(Shell::json));
        all["momenta"] = json!(self.momenta.len());
        all["nucleon"] = json!(self.nucleon);
        all
    }
    /// Operator, mass, source and sink, for people.
    pub fn title(&self) -> String {
        let of = |key: &str, shown: &str| {
            let text = self.solve.get(key).map(|setting| setting.text().to_string());
            text.map_or(String::new(), |text| format!("{shown}{text}"))
        };
        let source = SOURCES.iter().find(|(_, kind)| *kind == self.source).map_or("", |(name, _)| *name);
        let sink = if self.shell_sink { "shell" } else { "point" };
        let quark: String = [("operator", ""), ("mass", ", m = "), ("kappa", ", kappa = "), ("mu", ", mu = ")]
            .map(|(key, shown)| of(key, shown))
            .concat();
        format!("{quark}, {source} to {sink}")
    }
    /// At how many sites the source is one or noise, before it is smeared: the correlator of a wall or of noise is a sum
    /// over so many points.
    pub fn source_sites(&self, lattice: Lattice) -> usize {
        let space: usize = lattice.size()[..3].iter().product();
        match self.source {
            SourceKind::Point | SourceKind::Shell => 1,
            SourceKind::Wall | SourceKind::Noise if self.staggered => space / 8,
            SourceKind::Wall | SourceKind::Noise => space,
        }
    }
    /// Whether source and momenta are on the lattice.
    pub fn check(&self, lattice: Lattice) -> Outcome {
        let size = lattice.size();
        if self.origin.iter().zip(size).any(|(x, extent)| *x >= extent) {
            let why = format!("origin {:?} is outside the lattice {lattice}, which counts from 0", self.origin);
            return Err(Failure::refused(why));
        }
        let far = |p: &&[i32; 3]| p.iter().zip(size).any(|(p, extent)| 2 * p.unsigned_abs() as usize > extent);
        if let Some(p) = self.momenta.iter().find(far) {
            let why = format!("momenta: {p:?} in units of 2π/L is beyond the edge of the zone on {lattice}");
            return Err(Failure::refused(why));
        }
        Ok(())
    }
}

impl Shell {
    /// A sentence, where the steps are so long that the highest modes grow instead of falling: (1 + w² Δ/(4 n))ⁿ has
    /// eigenvalues from (1 − 3 w²/n)ⁿ to 1, those of steps of two sites from (1 − 3 w²/(4 n))ⁿ.
    fn note(self, staggered: bool) -> Option<String> {
        let Shell { width, steps, .. } = self;
        let (lowest, square) = (if staggered { 0.375 } else { 1.5 }, width * width);
        (steps as f64 <= lowest * square).then(|| {
            format!(
                "shell.steps = {steps}: a shell of width {width} is no Gaussian with {} steps or less, which make the highest \
                 modes larger; good ones have more than {}",
                (lowest * square).floor(),
                (2.0 * lowest * square).floor(),
            )
        })
    }
    fn json(self) -> Value {
        let Shell { width, steps, ape_weight, ape_steps } = self;
        json!({ "width": width, "steps": steps, "ape_weight": ape_weight, "ape_steps": ape_steps })
    }
}

/// Keys of a solve that decide what its solution is.
pub fn physics() -> impl Iterator<Item = &'static str> {
    let of_operators = OPERATORS.iter().flat_map(|definition| definition.all_keys()).filter(|key| !key.technical);
    keys::PHYSICS.into_iter().chain(of_operators.map(|key| key.name))
}

/// All momenta whose square is at most `most`, the smallest first.
fn momenta(most: i32) -> Vec<[i32; 3]> {
    let reach = f64::from(most).sqrt() as i32;
    let line = || -reach..=reach;
    let all = line().flat_map(|x| line().flat_map(move |y| line().map(move |z| [x, y, z])));
    let square = |p: &[i32; 3]| p.iter().map(|k| k * k).sum::<i32>();
    let mut all: Vec<[i32; 3]> = all.filter(|p| square(p) <= most).collect();
    all.sort_by_key(|p| (square(p), *p));
    all
}

/// Correlators that are to be shown besides the usual hadrons.
fn plot(s: &mut Settings, staggered: bool, nucleon: bool) -> Vec<String> {
    let mut names: Vec<String> = if staggered { Vec::new() } else { (0..COUNT).map(name).collect() };
    if nucleon && !staggered {
        names.extend(["nucleon.positive", "nucleon.negative"].map(String::from));
    }
    let all = s.all("plot");
    for setting in &all {
        if staggered {
            s.wrong(setting, "local mesons of staggered quarks but the pion alternate in time: take it out");
        } else if !names.iter().any(|name| name == setting.text()) {
            s.wrong(setting, format!("'{}' is none of {}", setting.text(), names.join(", ")));
        }
    }
    all.iter().map(|setting| setting.text().to_string()).collect()
}

/// The smearing, if some is `needed`.
fn shell(s: &mut Settings, needed: bool) -> Option<Shell> {
    let width = s.number("shell.width", "a number above 0", |w| w > 0.0);
    let steps = s.count("shell.steps", 1..=10_000);
    let ape_weight = s.number("shell.ape-weight", "a number above 0", |w| w > 0.0);
    let ape_steps = s.count("shell.ape-steps", 0..=1000);
    for key in ["shell.width", "shell.steps", "shell.ape-weight", "shell.ape-steps"] {
        match (needed, s.get(key)) {
            (true, None) if !key.contains("ape") && !s.was_given(key) => {
                s.missing(format!("{key} is missing: a shell is (1 + w² Δ/(4 n))ⁿ of a point"));
            }
            (false, Some(setting)) => s.wrong(&setting, "belongs to source = \"shell\" or sink = \"shell\""),
            _ => {}
        }
    }
    let ape_weight = ape_weight.unwrap_or(2.5);
    Some(Shell { width: width?, steps: steps?, ape_weight, ape_steps: ape_steps.unwrap_or(0) }).filter(|_| needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where (1 − 3 w²/n)ⁿ is −1 or less.
    #[test]
    fn few_steps_are_no_gaussian() {
        let note = |width, steps, staggered| Shell { width, steps, ape_weight: 2.5, ape_steps: 0 }.note(staggered);
        assert!(
            note(2.0, 6, false).is_some_and(|note| note.contains("6 steps or less") && note.contains("more than 12"))
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
