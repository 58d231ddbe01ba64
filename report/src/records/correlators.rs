//! The lines of `correlators.jsonl`, and the hadrons whose effective masses are known.
use super::content::Content;
use super::{end_of_lines, read_bytes};
use crate::error::ReportError;
use num_complex::Complex64;
use serde_json::{Value, json};
use statistics::effective::{CorrelatorShape, effective_masses};
use std::path::{Path, PathBuf};

/// One line for each configuration, in the folder of a spectrum.
pub const LINES: &str = "correlators.jsonl";
/// What the axes of the array are, and configurations of a bin.
pub const AXES: &str = "correlators.json";

/// The schema of a line.
pub const SCHEMA: &str = "ferrite.correlators/1";

/// The key of a line with what the antiquark of its mesons has that the quark has not, such as `-mu`. It is there where both
/// are those of a twisted doublet, and mesons are charged.
pub const ANTIQUARK: &str = "antiquark";

/// ψ̄ γ_x γ_y γ_z ψ, which is −ψ̄ γ_t γ_5 ψ, at the sink with the pion at the source.
pub const AXIAL_PION: &str = "gxgygz-g5";

/// A correlator of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlator {
    /// `g5`, `nucleon.positive`, `pion` …
    pub name: String,
    /// In units of 2π/L.
    pub momentum: [i32; 3],
    /// By time from the source.
    pub values: Vec<Complex64>,
}

/// All of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlators {
    /// In the same order for each configuration.
    pub all: Vec<Correlator>,
    /// Lattice, plaquette, residuals.
    pub about: Value,
}

impl Correlators {
    /// Real parts of the mean of some correlators without momentum; `None` where one is not there.
    pub fn mean(&self, names: &[impl AsRef<str>]) -> Option<Vec<f64>> {
        let find = |name: &_| self.all.iter().find(|c| c.name == AsRef::<str>::as_ref(name) && c.momentum == [0; 3]);
        let all: Vec<&Correlator> = names.iter().map(find).collect::<Option<_>>()?;
        let mean = |t: usize| all.iter().map(|c| c.values[t].re).sum::<f64>() / names.len() as f64;
        Some((0..all[0].values.len()).map(mean).collect())
    }
    /// Whether both have the same kinds of correlators, at as many times, on the same lattice.
    pub fn is_like(&self, other: &Self) -> bool {
        let kind = |c: &Correlator| (c.name.clone(), c.momentum, c.values.len());
        let times = self.all.first().map(|c| c.values.len());
        self.about["lattice"] == other.about["lattice"]
            && self.all.iter().map(kind).eq(other.all.iter().map(kind))
            && self.all.iter().all(|c| Some(c.values.len()) == times)
    }
    /// The correlators as a line has them.
    pub fn to_json(&self) -> Value {
        let one = |c: &Correlator| {
            let values: Vec<[f64; 2]> = c.values.iter().map(|z| [z.re, z.im]).collect();
            json!({ "name": c.name, "momentum": c.momentum, "values": values })
        };
        self.all.iter().map(one).collect()
    }
}

/// A line, read.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatorLine {
    /// The file of the configuration, as typed.
    pub typed: PathBuf,
    /// The same from the root.
    pub canonical: String,
    /// What it held; `None` of a line of an earlier version.
    pub content: Option<Content>,
    /// Its correlators.
    pub correlators: Correlators,
}

impl CorrelatorLine {
    /// From a line.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn read(line: &Value) -> Result<Self, String> {
        let text = |value: &Value, key: &str| {
            value[key].as_str().map(String::from).ok_or_else(|| format!("{key} is missing or not text"))
        };
        if text(line, "schema")? != SCHEMA {
            return Err(format!("the schema is not {SCHEMA}"));
        }
        let list = line["correlators"].as_array().ok_or("correlators is missing or no array")?;
        let one = |value: &Value| {
            let wrong = |what: &str| format!("correlators: {what}");
            let momentum: [i32; 3] = serde_json::from_value(value["momentum"].clone())
                .map_err(|_| wrong("a momentum is not three integers"))?;
            let values: Vec<[f64; 2]> = serde_json::from_value(value["values"].clone())
                .map_err(|_| wrong("values are not pairs of numbers"))?;
            let values = values.into_iter().map(|[re, im]| Complex64::new(re, im)).collect();
            Ok(Correlator { name: text(value, "name")?, momentum, values })
        };
        let all = list.iter().map(one).collect::<Result<Vec<_>, String>>()?;
        if all.is_empty() {
            return Err("there are no correlators".into());
        }
        if let Some(first) = all.first() {
            let times = first.values.len();
            if times < 2 {
                return Err(format!("{} has {times} values, a correlator has one for each time", first.name));
            }
            if let Some(other) = all.iter().find(|c| c.values.len() != times) {
                let (name, own) = (&other.name, other.values.len());
                return Err(format!("{name} has {own} values, but {} has {times}", first.name));
            }
        }
        Ok(CorrelatorLine {
            typed: text(line, "configuration")?.into(),
            canonical: text(line, "file")?,
            content: Content::from_json(&line["content"])?,
            correlators: Correlators { all, about: json!({ "lattice": line["lattice"], ANTIQUARK: line[ANTIQUARK] }) },
        })
    }
}

/// All lines of a folder of `ferrite spectrum`.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatorRecord {
    /// The first line: what is solved for, and where.
    pub first: Value,
    /// Of each configuration.
    pub all: Vec<Correlators>,
    /// Whether the last line is half written, and left out.
    pub half: bool,
    /// Configurations of a bin in the last run, which says so when it is through; 1 before, and of earlier versions.
    pub bin: usize,
}

impl CorrelatorRecord {
    /// Whether a folder is one of `ferrite spectrum`.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(LINES).is_file()
    }
    /// Reads the lines of a folder; of a configuration that is being written, half a line is left out.
    ///
    /// # Errors
    /// What cannot be read, with its line.
    pub fn read(folder: &Path) -> Result<Self, ReportError> {
        let path = folder.join(LINES);
        let mut record = Self::parse(&read_bytes(&path)?)
            .map_err(|why| ReportError::Unreadable(format!("{}{why}", path.display())))?;
        let axes = std::fs::read_to_string(folder.join(AXES)).unwrap_or_default();
        let axes: Value = serde_json::from_str(&axes).unwrap_or_default();
        record.bin = axes["bin"].as_u64().map_or(1, |bin| bin.max(1) as usize);
        Ok(record)
    }
    /// From the lines.
    ///
    /// # Errors
    /// What follows the name of the file in a sentence.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        // A letter of several bytes may be torn, too: only whole lines are text for sure.
        let (whole, rest) = bytes.split_at(end_of_lines(bytes));
        let text = std::str::from_utf8(whole).map_err(|why| format!(" is not text: {why}"))?;
        let (mut first, mut all) = (Value::Null, Vec::<Correlators>::new());
        for (number, text) in text.lines().enumerate() {
            let at = |why: String| format!(", line {}: {why}", number + 1);
            let line: Value = serde_json::from_str(text).map_err(|why| at(format!("this is not JSON: {why}")))?;
            let found = CorrelatorLine::read(&line).map_err(at)?.correlators;
            // With itself: whether all are of as many times.
            if !found.is_like(all.first().unwrap_or(&found)) {
                return Err(at(
                    "it has correlators of other kinds or times than the others, or is on another lattice".into()
                ));
            }
            if all.is_empty() {
                first = line;
            }
            all.push(found);
        }
        if all.is_empty() {
            return Err(" has no configuration yet: ask again when the first one is done".into());
        }
        Ok(CorrelatorRecord { first, all, half: !rest.is_empty(), bin: 1 })
    }
}

/// A hadron whose effective mass is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HadronChannel {
    /// For people.
    pub name: String,
    /// Names of its correlators, whose mean is taken.
    pub parts: Vec<String>,
    /// How they fall.
    pub shape: CorrelatorShape,
}

/// Hadrons that are shown, with their correlators, which follow the names of their quarks. Other staggered mesons have states
/// that alternate in time, and no effective mass of this kind.
const HADRONS: [(&str, &[&str], CorrelatorShape); 4] = [
    ("pion", &["g5"], CorrelatorShape::Cosh),
    ("rho", &["gx", "gy", "gz"], CorrelatorShape::Cosh),
    ("nucleon", &["nucleon.positive"], CorrelatorShape::Exponential),
    ("Goldstone pion", &["pion"], CorrelatorShape::Cosh),
];

/// Those of a quark and the antiquark of the other quark of a twisted doublet. The pion is the same in any basis of the
/// doublet; ψ̄ γ_k ψ is a mixture of vector and axial vector that depends on the twist, and has no name.
const CHARGED: [(&str, &[&str], CorrelatorShape); 1] = [("charged pion", &["g5"], CorrelatorShape::Cosh)];

/// The hadrons that are shown of correlators, in the order of the table for all quarks.
pub fn hadrons(found: &Correlators) -> Vec<HadronChannel> {
    let known = if found.about[ANTIQUARK].is_string() { &CHARGED[..] } else { &HADRONS[..] };
    let at_rest = || found.all.iter().filter(|c| c.momentum == [0; 3]).map(|c| c.name.as_str());
    let mut channels = Vec::new();
    for (hadron, parts, shape) in known {
        // `light-strange.` of `light-strange.g5`; nothing where there is one quark.
        let quarks = at_rest().filter_map(|name| name.strip_suffix(parts[0]));
        for quarks in quarks.filter(|quarks| quarks.is_empty() || quarks.ends_with('.')) {
            let parts: Vec<String> = parts.iter().map(|part| format!("{quarks}{part}")).collect();
            if parts.iter().all(|part| at_rest().any(|name| name == part)) {
                let of = quarks.strip_suffix('.').map_or(String::new(), |quarks| format!("{quarks} "));
                channels.push(HadronChannel { name: format!("{of}{hadron}"), parts, shape: *shape });
            }
        }
    }
    channels
}

/// Correlators of a quark mass of the axial current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcacChannel {
    /// `pcac`, of several quarks `light-strange pcac`.
    pub name: String,
    /// Names of the axial current and of the pion.
    pub parts: [String; 2],
}

/// Those that there are.
pub fn pcac_channels(found: &Correlators) -> Vec<PcacChannel> {
    let at_rest = || found.all.iter().filter(|c| c.momentum == [0; 3]).map(|c| c.name.as_str());
    let one = |axial: &str| {
        let quarks = axial.strip_suffix(AXIAL_PION).filter(|quarks| quarks.is_empty() || quarks.ends_with('.'))?;
        let pion = format!("{quarks}g5");
        let of = quarks.strip_suffix('.').map_or(String::new(), |quarks| format!("{quarks} "));
        let name = format!("{of}pcac");
        at_rest().any(|name| name == pion).then(|| PcacChannel { name, parts: [axial.into(), pion] })
    };
    at_rest().filter_map(one).collect()
}

/// Effective masses in the first half of the extent: those of the nucleon fall for less than half of it.
pub fn masses_of_first_half(correlator: &[f64], shape: CorrelatorShape) -> Vec<Option<f64>> {
    let mut all = effective_masses(correlator, shape);
    all.truncate(correlator.len() / 2);
    all
}
