//! Lines of `correlators.jsonl`, and the hadrons whose effective masses are known.
use super::ensemble::{Ensemble, LinePosition, Member, RecordLine, Stream, in_order};
use super::inputs::has_spatial_twist;
use super::{RecordLines, read_all};
use crate::error::ReportError;
use crate::text::count;
use ferrite_records::Record;
use ferrite_records::read::{read as read_record, read_leniently, schema};
use ferrite_records::spectrum::{CorrelatorAxes, CorrelatorLine, CorrelatorValues};
use num_complex::Complex64;
use serde_json::{Map, Value};
use statistics::effective::{CorrelatorShape, effective_masses};
use std::path::{Path, PathBuf};

/// Name of the file in a folder of `ferrite spectrum` that has one line for each configuration.
pub const LINES: &str = "correlators.jsonl";
/// Name of the file with the axes of the array of correlators and the number of configurations in a bin.
pub const AXES: &str = "correlators.json";

/// Key of the parameter in which the antiquark of mesons differs from the quark.
const ANTIQUARK: &str = "antiquark";

/// Name of the correlator with ψ̄ γ_x γ_y γ_z ψ = −ψ̄ γ_t γ_5 ψ at the sink and the pion at the source.
pub const AXIAL_PION: &str = "gxgygz-g5";

/// One correlator of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlator {
    /// Name of the correlator, such as `g5`, `nucleon.positive` or `pion`.
    pub name: String,
    /// Momentum in units of 2π/L.
    pub momentum: [i32; 3],
    /// Values C(t), by time from the source.
    pub values: Vec<Complex64>,
}

/// All correlators of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlators {
    /// Correlators, in the same order on each configuration.
    pub all: Vec<Correlator>,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Parameter in which the antiquark of mesons differs from the quark, for a twisted doublet.
    pub antiquark: Option<String>,
}

impl Correlators {
    /// Returns the real part of the mean of the correlators `names` at zero momentum, by time; `None` if one of them is missing.
    pub fn mean(&self, names: &[impl AsRef<str>]) -> Option<Vec<f64>> {
        self.mean_at(names, &[[0; 3]])
    }
    /// Returns the real part of the mean of the correlators `names` over the momenta `momenta`, by time; `None` if one of them is missing.
    pub fn mean_at(&self, names: &[impl AsRef<str>], momenta: &[[i32; 3]]) -> Option<Vec<f64>> {
        let find = |name: &str, momentum| self.all.iter().find(|c| c.name == name && c.momentum == momentum);
        let wanted = names.iter().flat_map(|name| momenta.iter().map(|momentum| find(name.as_ref(), *momentum)));
        let all: Vec<&Correlator> = wanted.collect::<Option<_>>()?;
        let mean = |t: usize| all.iter().map(|c| c.values[t].re).sum::<f64>() / all.len() as f64;
        Some((0..all.first()?.values.len()).map(mean).collect())
    }
    /// Returns whether the correlators of two configurations have the same names and momenta, the same number of times, and equal lattices.
    pub fn is_like(&self, other: &Self) -> bool {
        self.lattice == other.lattice && self.kinds().eq(other.kinds())
    }
    fn kinds(&self) -> impl Iterator<Item = (&str, [i32; 3], usize)> {
        self.all.iter().map(|c| (c.name.as_str(), c.momentum, c.values.len()))
    }
    /// Returns a sentence that explains why these correlators cannot be averaged with `other`, which is at `place`: the lattice, times,
    /// or names of correlators differ. Returns `None` if they can be averaged.
    fn difference(&self, other: &Self, place: &LinePosition) -> Option<String> {
        if self.is_like(other) {
            return None;
        }
        let times = |one: &Self| one.all.first().map_or(0, |c| c.values.len());
        let [mine, its] = [self, other].map(times);
        Some(if self.lattice != other.lattice {
            let [this, first] = [self, other].map(|one| one.lattice.map(|extent| extent.to_string()).join(","));
            format!("its lattice ({this}) differs from that of {place} ({first}): analyse them separately")
        } else if mine != its {
            format!("its number of times ({mine}) differs from that of {place} ({its}): analyse them separately")
        } else {
            let shown = |(name, momentum, _): (&str, [i32; 3], usize)| {
                let momentum = momentum.map(|k| k.to_string()).join(",");
                format!("{name} at momentum {momentum}")
            };
            let missing = |of: &Self, from: &Self| of.kinds().find(|kind| from.kinds().all(|k| k != *kind)).map(shown);
            let what = match (missing(self, other), missing(other, self)) {
                (Some(more), _) => format!("{more}, which {place} does not have"),
                (None, Some(less)) => format!("no {less}, which {place} has"),
                (None, None) => format!("{} in another order than {place}", count(self.all.len(), "correlator")),
            };
            format!("it has {what}: analyse them separately")
        })
    }
    /// Reads the correlators from a line.
    ///
    /// # Errors
    /// A sentence if the correlators differ in length.
    pub fn of(line: &CorrelatorLine) -> Result<Self, String> {
        let one = |CorrelatorValues { name, momentum, values }: &CorrelatorValues| Correlator {
            name: name.clone(),
            momentum: *momentum,
            values: values.iter().map(|[re, im]| Complex64::new(*re, *im)).collect(),
        };
        let all: Vec<Correlator> = line.correlators.iter().map(one).collect();
        let Some(first) = all.first() else { return Err("no correlators".into()) };
        let times = first.values.len();
        if times < 2 {
            let times = count(times, "value");
            return Err(format!("{} has {times}, but a correlator needs one for each time", first.name));
        }
        if let Some(other) = all.iter().find(|c| c.values.len() != times) {
            let (name, own) = (&other.name, count(other.values.len(), "value"));
            return Err(format!("{name} has {own}, but {} has {times}", first.name));
        }
        Ok(Correlators { all, lattice: line.lattice, antiquark: line.antiquark.clone() })
    }
}

/// Reads a line of `ferrite spectrum` from JSON.
///
/// # Errors
/// A sentence that names a missing value.
pub fn correlator_line(value: &Value) -> Result<CorrelatorLine, String> {
    if schema(value) != Some(CorrelatorLine::SCHEMA) {
        let found = schema(value).map_or("the line has no schema".into(), |found| format!("the schema is {found}"));
        return Err(format!("{found}, but {} is expected", CorrelatorLine::SCHEMA));
    }
    read_record(value)
}

/// Correlators of all configurations in folders of `ferrite spectrum`, over which means are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatorRecord {
    /// First line that was read.
    pub first: CorrelatorLine,
    /// Correlators of all configurations, stream by stream; within a stream, in order of the trajectory number.
    pub all: Vec<Correlators>,
    /// Streams to which the configurations belong.
    pub streams: Vec<Stream>,
    /// Whether the last line of a file was left out because it is incomplete.
    pub half: bool,
    /// Number of configurations in a bin, as recorded at the end of the last run; 1 if it is not recorded.
    pub bin: usize,
}

impl CorrelatorRecord {
    /// Returns whether a folder belongs to `ferrite spectrum`.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(LINES).is_file()
    }
    /// Returns whether a line belongs to `ferrite spectrum`.
    pub fn is_one(line: &Value) -> bool {
        schema(line) == Some(CorrelatorLine::SCHEMA)
    }
    /// Reads the lines of a folder. Leaves out an incomplete last line, whose configuration is still being written.
    ///
    /// # Errors
    /// The errors of [`of`](Self::of), and the error of a file that cannot be read.
    pub fn read(folder: &Path) -> Result<Self, ReportError> {
        let paths = [folder.to_path_buf()];
        Self::of(&read_all(&paths)?, &paths).map_err(ReportError::Unreadable)
    }
    /// Reads the lines of folders and files. The size of a bin is the largest that a folder records.
    ///
    /// # Errors
    /// A sentence that names the line that lacks a value, does not belong to the others, or repeats the configuration of an earlier line.
    pub fn of(lines: &RecordLines, paths: &[PathBuf]) -> Result<Self, String> {
        let (mut all, mut ensemble, mut first) = (Vec::<Correlators>::new(), Ensemble::default(), None);
        for RecordLine { place, value } in &lines.lines {
            let at = |why: String| format!("{place}: {why}");
            let line = correlator_line(value).map_err(at)?;
            let correlators = Correlators::of(&line).map_err(at)?;
            if let (Some(first), Some(before)) = (ensemble.first(), all.first())
                && let Some(why) = correlators.difference(before, first)
            {
                return Err(at(why));
            }
            let about = Map::from_iter([(ANTIQUARK.to_string(), line.antiquark.clone().into())]);
            let (name, content, input) = (line.file.clone(), line.content.clone(), line.input.clone());
            ensemble.add(Member { place: place.clone(), name, content, input, about: about.into() })?;
            all.push(correlators);
            first = first.or(Some(line));
        }
        let Some(first) = first else {
            let path = paths.first().map_or_else(String::new, |path| path.display().to_string());
            return Err(format!(
                "{path}: there is no configuration yet; try again after the first one has been measured"
            ));
        };
        let bin = |path: &PathBuf| {
            let axes = std::fs::read_to_string(path.join(AXES)).unwrap_or_default();
            read_leniently::<CorrelatorAxes>(&serde_json::from_str(&axes).unwrap_or_default()).bin
        };
        let bin = paths.iter().map(bin).max().unwrap_or(1).max(1);
        let (order, streams) = ensemble.streams();
        Ok(CorrelatorRecord { first, all: in_order(all, &order), streams, half: !lines.half.is_empty(), bin })
    }
    /// Returns the momenta that are equivalent to `momentum` for the correlators `names`: its images under reflections and rotations of the
    /// lattice that do not change the correlators, and `momentum` itself. Returns no momenta if the correlators are missing at `momentum`.
    pub fn equivalent_momenta(&self, names: &[String], momentum: [i32; 3]) -> Vec<[i32; 3]> {
        let first = &self.all[0];
        let is_there = |momentum: [i32; 3]| {
            names.iter().all(|name| first.all.iter().any(|c| c.name == *name && c.momentum == momentum))
        };
        if !is_there(momentum) {
            return Vec::new();
        }
        // If quarks have twisted boundary conditions in space, no other momentum is equivalent. The same holds for three-point functions,
        // which also have a momentum at the sink.
        if has_spatial_twist(&self.first.input) || names.iter().any(|name| name.contains(':')) {
            return vec![momentum];
        }
        let extents = first.lattice;
        let mut axes: Vec<Vec<[bool; 3]>> = names.iter().map(|name| axes(name)).collect();
        axes.sort_unstable();
        let mut all = Vec::new();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let turn = |parts: &Vec<[bool; 3]>| parts.iter().map(|axes| order.map(|k| axes[k])).collect();
            let mut turned: Vec<Vec<[bool; 3]>> = axes.iter().map(turn).collect();
            turned.sort_unstable();
            if (0..3).any(|k| extents[k] != extents[order[k]]) || turned != axes {
                continue;
            }
            for signs in 0..8 {
                let sign = |k: usize| if signs >> k & 1 == 1 { -1 } else { 1 };
                let other: [i32; 3] = std::array::from_fn(|k| sign(k) * momentum[order[k]]);
                if !all.contains(&other) && is_there(other) {
                    all.push(other);
                }
            }
        }
        all.sort_unstable();
        all
    }
}

/// Returns the spatial directions that the name of a correlator distinguishes: those of its γ matrices, separately for spin and taste.
fn axes(name: &str) -> Vec<[bool; 3]> {
    let own = name.rsplit('.').next().unwrap_or(name);
    own.split('-').map(|part| ["gx", "gy", "gz"].map(|gamma| part.contains(gamma))).collect()
}

/// A hadron with a known effective mass, and its correlators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HadronChannel {
    /// Displayed name of the hadron.
    pub name: String,
    /// Names of the correlators whose mean is taken.
    pub parts: Vec<String>,
    /// Form in which the correlators decay in time.
    pub shape: CorrelatorShape,
}

/// Names of the hadrons that are shown, and of their correlators. Prefixes name the quarks. Other staggered mesons contain states that
/// alternate in time, and have no effective mass of this kind.
const HADRONS: [(&str, &[&str], CorrelatorShape); 4] = [
    ("pion", &["g5"], CorrelatorShape::Cosh),
    ("rho", &["gx", "gy", "gz"], CorrelatorShape::Cosh),
    ("nucleon", &["nucleon.positive"], CorrelatorShape::Exponential),
    ("Goldstone pion", &["pion"], CorrelatorShape::Cosh),
];

/// Hadrons of a quark and the antiquark of its flavour partner in a twisted doublet. Only the pion is independent of the basis of the
/// doublet. ψ̄ γ_k ψ is a mixture of vector and axial vector that depends on the twist, and has no name.
const CHARGED: [(&str, &[&str], CorrelatorShape); 1] = [("charged pion", &["g5"], CorrelatorShape::Cosh)];

/// Returns the hadrons whose correlators exist, in the order in which tables show them.
pub fn hadrons(found: &Correlators) -> Vec<HadronChannel> {
    let known = if found.antiquark.is_some() { &CHARGED[..] } else { &HADRONS[..] };
    let at_rest = || found.all.iter().filter(|c| c.momentum == [0; 3]).map(|c| c.name.as_str());
    let mut channels = Vec::new();
    for (hadron, parts, shape) in known {
        // The names of the quarks precede the name of the correlator: `light-strange.` in `light-strange.g5`. A single quark has no name.
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

/// Staggered hadrons whose correlators contain a state of opposite parity that alternates in sign from one time to the next.
const ALTERNATING: [&str; 8] =
    ["scalar", "vector", "pseudovector", "pion-05", "pion-ij", "pion-i", "pion-s", "nucleon"];
/// Pions by taste that do not visibly alternate, because their partner of opposite parity is an exotic meson.
const PLAIN_TASTES: [&str; 3] = ["pion-i5", "pion-i0", "pion-0"];

/// Returns `Some` if a name consists of spin and taste, such as `gx-gxgy`; the value states whether its spin is γ_5.
fn by_taste(own: &str) -> Option<bool> {
    let gamma = |part: &str| part == "1" || part.starts_with('g');
    let (spin, taste) = own.split_once('-').filter(|_| own != AXIAL_PION)?;
    (gamma(spin) && gamma(taste)).then_some(spin == "g5")
}

fn named_by(found: &Correlators, is_one: impl Fn(&str) -> bool) -> Vec<HadronChannel> {
    let own = |name: &str| is_one(name.rsplit('.').next().unwrap_or(name));
    let all = found.all.iter().filter(|c| c.momentum == [0; 3] && own(&c.name));
    let channel =
        |name: &String| HadronChannel { name: name.clone(), parts: vec![name.clone()], shape: CorrelatorShape::Cosh };
    all.map(|c| channel(&c.name)).collect()
}

/// Returns the correlators at zero momentum in which a state alternates in sign from one time to the next, as in those of most staggered
/// hadrons.
pub fn alternating(found: &Correlators) -> Vec<HadronChannel> {
    named_by(found, |own| ALTERNATING.contains(&own) || by_taste(own) == Some(false))
}

/// Returns the correlators at zero momentum of staggered pions by taste in which no state visibly alternates in sign. Leaves out the pion
/// `g5-g5`, which [`hadrons`] returns.
pub fn plain_tastes(found: &Correlators) -> Vec<HadronChannel> {
    named_by(found, |own| PLAIN_TASTES.contains(&own) || by_taste(own) == Some(true) && own != "g5-g5")
}

/// The two correlators of a PCAC quark mass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcacChannel {
    /// Displayed name: `pcac`, or with several quarks for example `light-strange pcac`.
    pub name: String,
    /// Names of the correlators of the axial current and of the pion.
    pub parts: [String; 2],
}

/// Returns the quark masses for which both correlators exist.
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

/// Returns the effective masses at the times 0 to T/2 − 1. A nucleon is not symmetric in time: its correlator falls for less than half of
/// T.
pub fn masses_of_first_half(correlator: &[f64], shape: CorrelatorShape) -> Vec<Option<f64>> {
    let mut all = effective_masses(correlator, shape);
    all.truncate(correlator.len() / 2);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Checks all momenta with components up to 1: reflections for every correlator, rotations for those that they leave as they are.
    #[test]
    fn equivalent_momenta_leave_correlators_as_they_are() {
        let names = ["g5", "gx", "gy", "gz", "gxgy", "gx-gxgy", "nucleon.positive", "g5:4:gt"];
        let momenta = (0..27).map(|k| [k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1]);
        let one =
            |name: &str, momentum| json!({ "name": name, "momentum": momentum, "values": [[1.0, 0.0], [0.5, 0.0]] });
        let all: Vec<Value> = momenta.flat_map(|momentum| names.map(|name| one(name, momentum))).collect();
        let record = |lattice: [u64; 4]| {
            let line = json!({ "schema": CorrelatorLine::SCHEMA, "configuration": "c.1", "file": "c.1", "lattice": lattice, "correlators": all });
            let place = LinePosition { file: "run".into(), line: 1 };
            let lines = RecordLines { lines: vec![RecordLine { place, value: line }], half: Vec::new() };
            CorrelatorRecord::of(&lines, &[]).unwrap()
        };
        let [cube, flat] = [[4, 4, 4, 2], [4, 4, 8, 2]].map(record);
        let count = |record: &CorrelatorRecord, names: &[&str], momentum| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            record.equivalent_momenta(&names, momentum).len()
        };
        for (names, momentum, on_cube, on_flat) in [
            (&["g5"][..], [1, 0, 0], 6, 4),
            (&["g5"], [0, 0, 1], 6, 2),
            (&["g5"], [1, 1, 0], 12, 4),
            (&["g5"], [1, 1, 1], 8, 8),
            (&["g5"], [0, 0, 0], 1, 1),
            // x stays, y and z are exchanged.
            (&["gx"], [0, 1, 0], 4, 2),
            (&["gx"], [1, 0, 0], 2, 2),
            (&["gx", "gy", "gz"], [1, 0, 0], 6, 4),
            (&["gxgy"], [1, 0, 0], 4, 4),
            // Spin along x, taste in the xy plane: no exchange is left.
            (&["gx-gxgy"], [0, 1, 0], 2, 2),
            (&["nucleon.positive"], [1, 0, 0], 6, 4),
            (&["g5:4:gt"], [1, 0, 0], 1, 1),
            (&["g5"], [2, 0, 0], 0, 0),
        ] {
            assert_eq!(
                (count(&cube, names, momentum), count(&flat, names, momentum)),
                (on_cube, on_flat),
                "{names:?} {momentum:?}"
            );
        }
    }
}
