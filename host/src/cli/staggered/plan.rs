//! What a staggered solve or application is about: operator, links, masses and sources, from settings.
use crate::cli::device::DeviceChoice;
use crate::cli::fields::{Reading, Source};
use crate::cli::layout::Layout;
use crate::cli::method::Wanted;
use crate::cli::plan::{
    BOUNDARIES, PRECISIONS, belong_elsewhere, gauge_header, output, reading, reconstruction, sources,
};
use crate::cli::world::World;
use crate::cli::{Failure, Outcome};
use crate::config::Settings;
use ferrite::dirac::{StaggeredParams, StaggeredPhases, TimeBoundary};
use ferrite::field::host::{ColourVector, HostColour};
use ferrite::files::Header;
use ferrite::lattice::Lattice;
use ferrite::solve::{LinkStorage, Precision, ShiftStrategy};
use std::path::PathBuf;

/// Names of the phases.
pub const PHASES: [(&str, StaggeredPhases); 2] =
    [("milc", StaggeredPhases::Milc), ("lexicographic", StaggeredPhases::Lexicographic)];
/// Names of the ways to solve for several shifts.
pub const STRATEGIES: [(&str, ShiftStrategy); 2] =
    [("multishift", ShiftStrategy::MultiShift), ("sequential", ShiftStrategy::Sequential)];
/// Keys of other operators.
pub const FOREIGN_KEYS: [&str; 7] = ["kappa", "xi", "nu", "csw", "clover-r", "clover-t", "schur"];

/// The tadpole factor of asqtad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tadpole {
    /// As given.
    Given(f64),
    /// The fourth root of the mean plaquette.
    Plaquette,
}

impl Tadpole {
    /// A number above 0, or `plaquette`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            _ if text == "plaquette" => Ok(Tadpole::Plaquette),
            Ok(u0) if u0.is_finite() && u0 > 0.0 => Ok(Tadpole::Given(u0)),
            _ => Err(format!("'{text}' is neither a number above 0 nor 'plaquette'")),
        }
    }
}

/// Which operator, and what its links are made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Thin links.
    Naive,
    /// Asqtad.
    Asqtad(Tadpole),
    /// HISQ with the correction ε of the Naik term.
    Hisq(f64),
}

impl Kind {
    /// From `--operator`, `--u0` and `--naik-epsilon`.
    pub fn from_settings(settings: &mut Settings) -> Option<Self> {
        let kind = settings.choice("operator", &[("staggered", 0), ("asqtad", 1), ("hisq", 2)])?;
        let epsilon = settings.number("naik-epsilon", "a number", |_| true);
        let tadpole = settings.parsed("u0", Tadpole::parse);
        if kind != 1 {
            belong_elsewhere(settings, &["u0"], "--operator asqtad");
        }
        if kind != 2 {
            belong_elsewhere(settings, &["naik-epsilon"], "--operator hisq");
        }
        Some(match kind {
            0 => Kind::Naive,
            1 => Kind::Asqtad(tadpole.unwrap_or(Tadpole::Given(1.0))),
            _ => Kind::Hisq(epsilon.unwrap_or(0.0)),
        })
    }
    /// The tadpole factor on a configuration with this mean plaquette; 1 for operators that have none.
    pub fn u0(self, configuration: &str, plaquette: f64) -> Outcome<f64> {
        match self {
            Kind::Asqtad(Tadpole::Given(u0)) => Ok(u0),
            Kind::Asqtad(Tadpole::Plaquette) if plaquette > 0.0 => Ok(plaquette.powf(0.25)),
            Kind::Asqtad(Tadpole::Plaquette) => Err(Failure::refused(format!(
                "{configuration}: the mean plaquette {plaquette:.6} has no fourth root: give --u0 a number"
            ))),
            Kind::Naive | Kind::Hisq(_) => Ok(1.0),
        }
    }
    /// Its name among the values of `--operator`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Naive => "staggered",
            Kind::Asqtad(_) => "asqtad",
            Kind::Hisq(_) => "hisq",
        }
    }
    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Naive => "naive staggered",
            Kind::Asqtad(_) => "asqtad",
            Kind::Hisq(_) => "HISQ",
        }
    }
}

/// Where links come from.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkFiles {
    /// A gauge configuration.
    Gauge(PathBuf),
    /// Fat and long links, with MILC's phases and the boundary condition in them.
    Improved(PathBuf, PathBuf),
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Masses {
    /// M ψ = η for one mass.
    One(f64),
    /// M ψ = η for several masses.
    Several(Vec<f64>),
    /// (M†M + σ) x = b for one mass and several shifts.
    Shifts(f64, Vec<f64>),
}

impl Masses {
    /// How many solutions each source has.
    pub fn count(&self) -> usize {
        match self {
            Masses::One(_) => 1,
            Masses::Several(list) | Masses::Shifts(_, list) => list.len(),
        }
    }
}

/// Operator, fields and formats: what `solve` and `apply` have in common, resolved as far as that is possible without
/// reading the links.
#[derive(Debug)]
pub struct StaggeredPlan {
    /// The operator.
    pub kind: Kind,
    /// The links.
    pub links: LinkFiles,
    /// How to read a configuration.
    pub read: Reading,
    /// Extents.
    pub lattice: Lattice,
    /// Boundary condition in t.
    pub boundary: TimeBoundary,
    /// Whether it is spread over all links in t.
    pub spread: bool,
    /// Signs of hops.
    pub phases: StaggeredPhases,
    /// Masses and shifts.
    pub masses: Masses,
    /// How several are solved.
    pub strategy: ShiftStrategy,
    /// Right-hand sides.
    pub sources: Vec<Source>,
    /// Precision of the iteration.
    pub precision: Precision,
    /// `None`: whatever the links allow.
    pub reconstruction: Option<LinkStorage>,
    /// Where the result goes.
    pub output: Option<PathBuf>,
}

impl StaggeredPlan {
    /// Resolves the settings of a solve. `None` if something is wrong, which `settings` then lists.
    pub fn for_solve(settings: &mut Settings) -> Option<Self> {
        let masses = masses(settings);
        Self::resolve(settings, masses)
    }
    /// Resolves those of an application, which has one mass, and any.
    pub fn for_apply(settings: &mut Settings) -> Option<Self> {
        if settings.get("mass").is_none() {
            settings.missing("no mass: give --mass M");
        }
        let mass = settings.number("mass", "a number", |_| true);
        Self::resolve(settings, mass.map(Masses::One))
    }
    /// Whether several systems are solved together by multi-shift CG.
    pub fn is_multishift(&self) -> bool {
        !matches!(self.masses, Masses::One(_)) && self.strategy == ShiftStrategy::MultiShift
    }
    fn resolve(settings: &mut Settings, masses: Option<Masses>) -> Option<Self> {
        let kind = Kind::from_settings(settings);
        belong_elsewhere(settings, &FOREIGN_KEYS, "other operators: --operator wilson or clover");
        let read = reading(settings);
        let (links, header) = link_files(settings, kind, &read);
        let boundary = settings.choice("bc-time", &BOUNDARIES).unwrap_or_default();
        let phases = settings.choice("phases", &PHASES).unwrap_or_default();
        let spread = settings.is_on("spread-boundary");
        if spread && boundary == TimeBoundary::Periodic {
            settings.conflict("spread-boundary", "bc-time", "only an antiperiodic boundary condition can be spread");
        }
        let several = masses.as_ref().is_some_and(|masses| !matches!(masses, Masses::One(_)));
        if !several && masses.is_some() {
            belong_elsewhere(settings, &["shift-solver"], "--masses and --shifts");
        }
        if several {
            belong_elsewhere(settings, &["guess", "plot"], "solves for one mass");
        }
        let strategy = settings.choice("shift-solver", &STRATEGIES).unwrap_or_default();
        let lattice = header.as_ref().map(|header| header.lattice);
        let sources = sources::<ColourVector>(settings, lattice);
        let precision = settings.choice("precision", &PRECISIONS[..3]).unwrap_or_default();
        let naive = kind == Some(Kind::Naive);
        let whose = if naive { "links of the naive staggered operator" } else { "long links" };
        let fits = |format: LinkStorage| !(format.temporal || naive && format.keeps_phase());
        let reconstruction = reconstruction(settings, whose, fits);
        if precision != Precision::Single && reconstruction.is_some_and(|storage| storage.half) {
            settings.conflict(
                "reconstruct",
                "precision",
                "links in 16 bits go with --precision single, or all is half",
            );
        }
        let fields = sources.as_ref().map_or(1, Vec::len) * masses.as_ref().map_or(1, Masses::count);
        // Several masses make a block with an axis of their own, even if there is one of each.
        let several = masses.as_ref().is_some_and(|masses| !matches!(masses, Masses::One(_)));
        let output = output(settings, "output", if several { fields.max(2) } else { fields });
        Some(StaggeredPlan {
            kind: kind?,
            links: links?,
            read,
            lattice: header?.lattice,
            boundary,
            spread,
            phases,
            masses: masses?,
            strategy,
            sources: sources?,
            precision,
            reconstruction,
            output,
        })
    }
    /// For the solver's settings.
    pub fn wanted(&self) -> Wanted {
        Wanted { lattice: self.lattice, sources: self.sources.len(), precision: self.precision }
    }
    /// Steps of the longest hop.
    pub fn hops(&self) -> usize {
        if self.kind == Kind::Naive { 1 } else { 3 }
    }
    /// Cuts the lattice over the processes.
    pub fn cut(&self, device: &DeviceChoice, world: &World) -> Outcome<Layout> {
        device.layout.cut(world, self.lattice, self.hops())
    }
    /// *Collective.* Makes or reads this process's part of fields.
    pub fn fields(&self, sources: &[Source], layout: &Layout) -> Outcome<Vec<HostColour>> {
        sources.iter().map(|source| source.field(layout)).collect()
    }
    /// The parameters of the operator; of the smallest mass where there are several.
    pub fn params(&self) -> StaggeredParams {
        let mass = match &self.masses {
            Masses::One(mass) | Masses::Shifts(mass, _) => *mass,
            Masses::Several(masses) => masses.iter().copied().fold(f64::INFINITY, f64::min),
        };
        StaggeredParams { mass, boundary: self.boundary, phases: self.phases }
    }
    /// Shape of a block of solutions: by mass or shift and by source, where there are several.
    pub fn block(&self) -> Vec<usize> {
        let outer = match &self.masses {
            Masses::One(_) => None,
            Masses::Several(list) | Masses::Shifts(_, list) => Some(list.len()),
        };
        let inner = (self.sources.len() > 1).then_some(self.sources.len());
        outer.into_iter().chain(inner).collect()
    }
}

/// `--gauge`, or `--fat` and `--long`, and the header of the first.
fn link_files(settings: &mut Settings, kind: Option<Kind>, read: &Reading) -> (Option<LinkFiles>, Option<Header>) {
    let path = |settings: &Settings, key: &str| settings.get(key).map(|setting| PathBuf::from(setting.text()));
    let [gauge, fat, long] = ["gauge", "fat", "long"].map(|key| path(settings, key));
    match (gauge, fat, long) {
        (Some(gauge), None, None) => (Some(LinkFiles::Gauge(gauge)), gauge_header(settings, "gauge", read)),
        (None, Some(fat), Some(long)) => {
            if kind == Some(Kind::Naive) {
                settings.conflict("fat", "operator", "the naive operator has no fat links");
            }
            for key in ["u0", "naik-epsilon"] {
                if settings.get(key).is_some() {
                    settings.conflict(key, "fat", "these fat links are made already");
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
            settings.missing("no links: give --gauge FILE, or --fat FILE and --long FILE");
            (None, None)
        }
        (None, one, _) => {
            let (here, there) = if one.is_some() { ("fat", "long") } else { ("long", "fat") };
            settings.conflict(here, there, &format!("needs --{there} FILE beside it"));
            (None, None)
        }
    }
}

/// `--mass`, `--masses`, or `--mass` and `--shifts`.
fn masses(settings: &mut Settings) -> Option<Masses> {
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
        (true, false, false) => mass.map(Masses::One),
        (false, true, false) => masses.map(Masses::Several),
        (true, false, true) => {
            let (mass, shifts) = (mass?, shifts?);
            if let Err(why) = has_inverses(mass, &shifts) {
                settings.conflict("shifts", "mass", &why);
                return None;
            }
            Some(Masses::Shifts(mass, shifts))
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
            settings.missing("no mass: give --mass M beside --shifts");
            None
        }
        (false, false, false) => {
            settings.missing("no mass: give --mass M, --masses M1,M2,..., or --mass M with --shifts S1,S2,...");
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
