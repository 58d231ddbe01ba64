//! What a solve or an application of an operator needs, resolved and checked from settings as typed.
use super::failure::{ReadBy, describe};
use super::fields::{self, Reading, Source};
use super::target;
use super::text;
use crate::config::Settings;
use ferrite::dirac::{Anisotropy, CloverParams, Schur, TimeBoundary, WilsonParams};
use ferrite::field::host::{Fermion, Spinor};
use ferrite::files::{Header, ReadOptions, inspect};
use ferrite::lattice::Lattice;
use ferrite::solve::{LinkStorage, Method, Operator, Precision};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Names of the precisions.
pub const PRECISIONS: [(&str, Precision); 4] = [
    ("double", Precision::Double),
    ("single", Precision::Single),
    ("half", Precision::Half),
    ("fp16", Precision::Fp16),
];
/// Names of the reconstructions.
pub const RECONSTRUCTIONS: [(&str, LinkStorage); 12] = [
    ("18", LinkStorage::FULL),
    ("12", LinkStorage::of(12)),
    ("8", LinkStorage::of(8)),
    ("12t", LinkStorage::of(12).in_temporal_gauge()),
    ("8t", LinkStorage::of(8).in_temporal_gauge()),
    ("18h", LinkStorage::FULL.in_half()),
    ("12h", LinkStorage::of(12).in_half()),
    ("8h", LinkStorage::of(8).in_half()),
    ("13", LinkStorage::of(13)),
    ("9", LinkStorage::of(9)),
    ("13h", LinkStorage::of(13).in_half()),
    ("9h", LinkStorage::of(9).in_half()),
];
/// Names of the methods.
pub const METHODS: [(&str, Method); 5] = [
    ("bicgstab", Method::Bicgstab),
    ("cg", Method::Cg),
    ("cgne", Method::Cgne),
    ("block-cg", Method::BlockCg),
    ("gcr-dd", Method::GcrDd),
];
/// Names of the precisions that a solver's true residuals can have.
pub const OUTER_PRECISIONS: [(&str, Precision); 2] = [("double", Precision::Double), ("single", Precision::Single)];
/// Names of the boundary conditions.
pub const BOUNDARIES: [(&str, TimeBoundary); 2] =
    [("antiperiodic", TimeBoundary::Antiperiodic), ("periodic", TimeBoundary::Periodic)];

/// Names of the Schur complements.
pub const SCHURS: [(&str, Schur); 2] = [("symmetric", Schur::Symmetric), ("asymmetric", Schur::Asymmetric)];

/// The coefficients of the clover term as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coefficients {
    /// c_sw and u_0.
    Improvement(f64, f64),
    /// Chroma's clovCoeffR and clovCoeffT.
    Anisotropic(f64, f64),
}

/// The name of a value in one of the lists above.
pub fn name_of<T: Copy + PartialEq>(choices: &[(&'static str, T)], value: T) -> &'static str {
    choices.iter().find(|(_, v)| *v == value).map_or("unknown", |(name, _)| name)
}

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
    Reading { options, by: settings.inside().map_or(ReadBy::Flags, ReadBy::Table) }
}

/// Operator, fields and formats: what `solve` and `apply` have in common.
#[derive(Debug)]
pub struct Plan {
    /// The configuration.
    pub gauge: PathBuf,
    /// How to read it.
    pub read: Reading,
    /// What its header says.
    pub header: Header,
    /// The operator.
    pub operator: Operator,
    /// The clover coefficients, if the operator has them.
    pub coefficients: Option<Coefficients>,
    /// Right-hand sides.
    pub sources: Vec<Source>,
    /// Precision of the device's fields.
    pub precision: Precision,
    /// `None`: whatever the links allow.
    pub reconstruction: Option<LinkStorage>,
    /// Where the result goes.
    pub output: Option<PathBuf>,
}

impl Plan {
    /// The lattice.
    pub fn lattice(&self) -> Lattice {
        self.header.lattice
    }
    /// The operator's name among the values of `--operator`.
    pub fn operator_name(&self) -> &'static str {
        match self.operator {
            Operator::Wilson(_) => "wilson",
            Operator::Clover(..) => "clover",
        }
    }
    /// The clover term for JSON: what was typed, the coefficients that come out of it, and the Schur complement.
    pub fn clover(&self) -> Value {
        let (Operator::Clover(params, schur), Some(coefficients)) = (self.operator, self.coefficients) else {
            return Value::Null;
        };
        let (csw, u0, r, t) = match coefficients {
            Coefficients::Improvement(csw, u0) => (Some(csw), Some(u0), None, None),
            Coefficients::Anisotropic(r, t) => (None, None, Some(r), Some(t)),
        };
        json!({
            "csw": csw, "u0": u0, "r": r, "t": t,
            "space": params.space, "time": params.time,
            "schur": name_of(&SCHURS, schur),
        })
    }
    /// Resolves the common settings. `None` if something is wrong, which `settings` then lists.
    pub fn from_settings(settings: &mut Settings) -> Option<Self> {
        let operator = operator(settings);
        let read = reading(settings);
        let gauge = settings.get("gauge");
        if gauge.is_none() {
            settings.missing("no gauge field: give --gauge FILE, or gauge = \"FILE\" in the input file");
        }
        let header = gauge_header(settings, "gauge", &read);
        let lattice = header.as_ref().map(|header| header.lattice);
        let sources = sources::<Spinor>(settings, lattice);
        let precision = settings.choice("precision", &PRECISIONS).unwrap_or_default();
        let wilson = |format: LinkStorage| !format.half && !format.keeps_phase();
        let reconstruction = reconstruction(settings, "links of Wilson fermions", wilson);
        let output = output(settings, "output", sources.as_ref().map_or(1, Vec::len));
        let (operator, coefficients) = operator?;
        Some(Plan {
            gauge: gauge?.text().into(),
            read,
            header: header?,
            operator,
            coefficients,
            sources: sources?,
            precision,
            reconstruction,
            output,
        })
    }
}

/// The header of the gauge field that a key names.
pub fn gauge_header(settings: &mut Settings, key: &str, read: &Reading) -> Option<Header> {
    let gauge = settings.get(key)?;
    let header = inspect(gauge.text(), &read.options).map_err(|error| describe(&error, read.by));
    let header = header.and_then(|header| match header.values_per_site() {
        36 => Ok(header),
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

/// Names of the operators, and whether a clover term belongs to them; staggered ones have plans of their own, and are
/// here for the sentence that lists the names.
const OPERATORS: [(&str, Option<bool>); 5] =
    [("wilson", Some(false)), ("clover", Some(true)), ("staggered", None), ("asqtad", None), ("hisq", None)];

/// Whom the keys of staggered operators belong to.
pub const STAGGERED_OWNERS: &str = "staggered operators: --operator staggered, asqtad or hisq";
/// Keys of staggered operators.
pub const STAGGERED_KEYS: [&str; 8] =
    ["masses", "shifts", "shift-solver", "naik-epsilon", "fat", "long", "phases", "spread-boundary"];
/// Keys of the clover term.
pub const CLOVER_KEYS: [&str; 5] = ["csw", "u0", "clover-r", "clover-t", "schur"];

/// The operator from `--operator` and all that describes it.
fn operator(settings: &mut Settings) -> Option<(Operator, Option<Coefficients>)> {
    let clover = settings.choice("operator", &OPERATORS).flatten();
    let wilson = wilson(settings);
    belong_elsewhere(settings, &STAGGERED_KEYS, STAGGERED_OWNERS);
    if clover != Some(true) {
        // After a name that is none of the two, its keys are no further mistakes.
        if clover == Some(false) || settings.get("operator").is_none() {
            for key in CLOVER_KEYS {
                if let Some(setting) = settings.get(key) {
                    settings.wrong(&setting, "belongs to the clover operator, which --operator clover selects");
                }
            }
        }
        return wilson.map(|params| (params.into(), None));
    }
    let schur = settings.choice("schur", &SCHURS).unwrap_or_default();
    let coefficients = coefficients(settings);
    let (wilson, coefficients) = (wilson?, coefficients?);
    let params = match coefficients {
        Coefficients::Improvement(csw, u0) => CloverParams::isotropic(wilson, csw, u0),
        Coefficients::Anisotropic(r, t) => CloverParams::anisotropic(wilson, r, t),
    };
    Some((Operator::Clover(params, schur), Some(coefficients)))
}

/// From `--csw` and `--u0`, or from `--clover-r` and `--clover-t`.
fn coefficients(settings: &mut Settings) -> Option<Coefficients> {
    let csw = settings.number("csw", "a number", |_| true);
    let u0 = settings.number("u0", "a number above 0", |u0| u0 > 0.0);
    let [r, t] = ["clover-r", "clover-t"].map(|key| settings.number(key, "a number", |_| true));
    let given = |key| settings.get(key).is_some();
    let (has_csw, has_u0, has_r, has_t) = (given("csw"), given("u0"), given("clover-r"), given("clover-t"));
    match (has_csw, has_r || has_t) {
        (false, false) => {
            settings.missing("no clover coefficient: give --csw C, or --clover-r CR with --clover-t CT");
            None
        }
        (true, true) => {
            let other = if has_r { "clover-r" } else { "clover-t" };
            settings.conflict("csw", other, "give csw, or clover-r with clover-t");
            None
        }
        (true, false) => {
            for key in ["xi", "nu"] {
                if settings.get(key).is_some() {
                    settings.conflict("csw", key, "on an anisotropic lattice give clover-r and clover-t");
                }
            }
            let u0 = if has_u0 { u0 } else { Some(1.0) };
            Some(Coefficients::Improvement(csw?, u0?))
        }
        (false, true) => {
            if let Some(setting) = settings.get("u0") {
                settings.wrong(&setting, "belongs to csw; clover-r and clover-t are the coefficients in use");
            }
            if has_r != has_t {
                let (here, there) = if has_r { ("clover-r", "clover-t") } else { ("clover-t", "clover-r") };
                settings.conflict(here, there, &format!("needs {there} beside it"));
            }
            Some(Coefficients::Anisotropic(r?, t?))
        }
    }
}

/// Mass, boundary condition and anisotropy from `--mass` or `--kappa`, `--bc-time`, `--xi` and `--nu`.
fn wilson(settings: &mut Settings) -> Option<WilsonParams> {
    let boundary = settings.choice("bc-time", &BOUNDARIES).unwrap_or_default();
    let mut anisotropy = |key| settings.number(key, "a number above 0", |x| x > 0.0).unwrap_or(1.0);
    let anisotropy = Anisotropy { xi: anisotropy("xi"), nu: anisotropy("nu") };
    // The diagonal of M, which everything is divided by, must not vanish.
    let lowest = -1.0 - 3.0 * anisotropy.space();
    let mass = settings.number("mass", &format!("a number above {lowest}"), |m| m > lowest);
    let kappa = settings.number("kappa", "a number above 0", |k| k > 0.0);
    match (settings.get("mass"), settings.get("kappa")) {
        (None, None) => settings.missing("no mass: give --mass M or --kappa K"),
        (Some(_), Some(_)) => settings.conflict("mass", "kappa", "give one of them: kappa = 1 / (2 (4 + mass))"),
        (None, Some(_)) => {
            for key in ["xi", "nu"] {
                if settings.get(key).is_some() {
                    settings.conflict("kappa", key, "on an anisotropic lattice give the mass");
                }
            }
        }
        _ => {}
    }
    let isotropic = mass.map(|mass| WilsonParams::from_mass(mass, boundary));
    let isotropic = isotropic.or(kappa.map(|kappa| WilsonParams::from_kappa(kappa, boundary)));
    isotropic.map(|params| WilsonParams { anisotropy, ..params })
}

/// Most right-hand sides of one command: they are all in the host's memory.
const MOST_SOURCES: usize = 4096;

/// All sources, checked against the lattice.
pub fn sources<T: Fermion>(settings: &mut Settings, lattice: Option<Lattice>) -> Option<Vec<Source>> {
    let given = settings.all("source");
    let several = settings.count("sources", 1..=MOST_SOURCES);
    if given.is_empty() {
        let component = T::AXES.join(",");
        settings.missing(format!("no source: give --source point:x,y,z,t,{component}, random:SEED or file:PATH"));
        return None;
    }
    if settings.was_given("sources") && several.is_none() {
        // What the sources would be nobody knows.
        return None;
    }
    if given.len() > 1 && several.is_some() {
        settings.conflict("sources", "source", "give one source with it, from which the others follow");
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
    let most = ferrite::backend::MAX_RHS;
    if let (true, Some(setting)) = (sources > most, settings.get("source")) {
        settings.wrong(&setting, format!("{sources} sources, but at most {most} can be applied to together"));
    }
}

/// An output file for `fields` fermion fields: its format must be known from the name and its folder writable.
pub fn output(settings: &mut Settings, key: &str, fields: usize) -> Option<PathBuf> {
    settings.parsed(key, |text| {
        let path = PathBuf::from(text);
        fields::spinor_format(&path, fields)?;
        target::check(&path)?;
        Ok::<_, String>(path)
    })
}
