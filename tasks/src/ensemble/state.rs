//! Text file of a state from which a run resumes, without its links.
//!
//! The last line is a checksum of the lines above it. Another checksum covers the lines of trajectories up to the state. A number that was
//! changed by hand or by a disk is therefore found before the run resumes.
use crate::{Failure, Outcome, target};
use ferrite_inputs::values::{Count, Kind, Meaning, NonNegative, Numbers, Parsed, Text};
use ferrite_inputs::{Given, Input, Schema, rules};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

const FORMAT: &str = "ferrite.rhmc-state/2";

/// Format of states of earlier versions, which have no checksums of the state and of the lines.
const OLDER: &str = "ferrite.rhmc-state/1";

/// Key of the last line, the checksum of the lines above it.
const SEAL: &str = "crc32";

rules! {
    /// Numbers of poles or of right-hand sides, as typed.
    Whole: "a number above 0", |x| x >= 1.0 && x == x.trunc() && x < f64::from(u32::MAX);
}

/// Keys of a state's file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct StateKeys {
    format: Given<Meaning<IsSealed>>,
    trajectory: Given<Count<0, { u32::MAX as usize }>>,
    accepted: Given<Count<0, { u32::MAX as usize }>>,
    /// Seed as text, because TOML integers are signed and cannot hold all seeds.
    seed: Given<Meaning<Seed>>,
    bounds: Given<Numbers<NonNegative>>,
    poles: Given<Numbers<Whole>>,
    start: Given<Text>,
    batches: Given<Numbers<Whole>>,
    links: Given<Meaning<FileName>>,
    checksum: Given<Text>,
    momenta: Given<Meaning<FileName>>,
    momenta_checksum: Given<Text>,
    bytes: Given<Count<0, { usize::MAX }>>,
    lines: Given<Meaning<HexChecksum>>,
    crc32: Given<Meaning<HexChecksum>>,
}

static STATE: LazyLock<Schema> = LazyLock::new(|| Schema::new(None).with::<StateKeys>(""));

/// Value of `format`: whether states of the format have a checksum of themselves.
#[derive(Debug)]
struct IsSealed;
impl Parsed for IsSealed {
    type Out = bool;
    const KIND: Kind = Kind::Word;
    fn parse(text: &str) -> Result<bool, String> {
        match text {
            FORMAT => Ok(true),
            OLDER => Ok(false),
            other => Err(format!("'{other}' is not {FORMAT}: resume with the version of Ferrite that wrote the state")),
        }
    }
}

/// Value of `seed`, a number from 0 to 2⁶⁴ − 1.
#[derive(Debug)]
struct Seed;
impl Parsed for Seed {
    type Out = u64;
    fn parse(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_: std::num::ParseIntError| {
            format!("'{text}' is not a whole number from 0 to 2^64 - 1: restore the state")
        })
    }
}

/// Name of a file in the folder of the state.
#[derive(Debug)]
struct FileName;
impl Parsed for FileName {
    type Out = String;
    fn parse(name: &str) -> Result<String, String> {
        match Path::new(name).components().count() {
            1 if Path::new(name).file_name().is_some() => Ok(name.to_string()),
            _ => Err(format!("'{name}' is not the name of a file in the folder of the state: restore the state")),
        }
    }
}

/// A checksum in eight hexadecimal digits.
#[derive(Debug)]
struct HexChecksum;
impl Parsed for HexChecksum {
    type Out = u32;
    fn parse(text: &str) -> Result<u32, String> {
        match u32::from_str_radix(text, 16) {
            Ok(sum) if text.len() == 8 => Ok(sum),
            _ => Err(format!("'{text}' is not a checksum of eight hexadecimal digits: restore the state")),
        }
    }
}

/// State from which a run resumes, without its links.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainState {
    /// Number of the last trajectory.
    pub trajectory: u32,
    /// Number of accepted trajectories since the run began.
    pub accepted: u32,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Lower and upper end of the interval of the rational functions of each quark group, one group after the other; 0 for groups without
    /// any.
    pub bounds: Vec<f64>,
    /// Number of poles of each quark group, for which its tolerances in molecular dynamics are given; empty in states of earlier versions.
    pub poles: Vec<usize>,
    /// Links from which the run started, as named in the input; `None` in states of earlier versions.
    pub start: Option<String>,
    /// Sizes of the batches of noise vectors. Batches of other sizes would round sums differently.
    pub batches: Vec<usize>,
}

/// File of links or momenta from which a run resumes.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredLinks {
    /// Name of the file in the folder of the run.
    pub name: String,
    /// Checksum of the links or momenta, as stated in the file's header; `None` in states of earlier versions.
    pub checksum: Option<String>,
}

/// State of a run, with the files and the lines that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// State of the chain.
    pub state: ChainState,
    /// File of the links.
    pub links: StoredLinks,
    /// File of the momenta; `None` if trajectories do not keep them.
    pub momenta: Option<StoredLinks>,
    /// Length in bytes of the lines of `trajectories.jsonl` up to the state.
    pub bytes: u64,
    /// CRC-32 of the lines of `trajectories.jsonl` up to the state; `None` in states of earlier versions.
    pub lines: Option<u32>,
}

impl Saved {
    /// Returns the text of the state's file.
    pub fn text(&self) -> String {
        let mut text = format!("# A state of `ferrite rhmc`, to resume from.\nformat = \"{FORMAT}\"\n");
        let ChainState { trajectory, accepted, seed, bounds, poles, start, batches } = &self.state;
        let _ = write!(text, "trajectory = {trajectory}\naccepted = {accepted}\nseed = \"{seed}\"\n");
        if !bounds.is_empty() {
            // `{:?}` prints all digits of the numbers.
            let _ = writeln!(text, "bounds = {bounds:?}");
        }
        for (key, list) in [("poles", poles), ("batches", batches)] {
            if !list.is_empty() {
                let _ = writeln!(text, "{key} = {list:?}");
            }
        }
        let StoredLinks { name, checksum } = &self.links;
        for (key, value) in [("start", start), ("checksum", checksum)] {
            if let Some(value) = value {
                // Strings in JSON are escaped as in TOML.
                let _ = writeln!(text, "{key} = {}", Value::from(value.as_str()));
            }
        }
        if let Some(StoredLinks { name, checksum }) = &self.momenta {
            for (key, value) in [("momenta", Some(name)), ("momenta-checksum", checksum.as_ref())] {
                if let Some(value) = value {
                    let _ = writeln!(text, "{key} = {}", Value::from(value.as_str()));
                }
            }
        }
        let _ = write!(text, "links = {}\nbytes = {}\n", Value::from(name.as_str()), self.bytes);
        if let Some(lines) = self.lines {
            let _ = writeln!(text, "lines = \"{lines:08x}\"");
        }
        let seal = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "{SEAL} = \"{seal:08x}\"");
        text
    }
    /// Writes the state to a file, which is replaced as a whole or not at all.
    pub fn write(&self, path: &Path) -> Outcome {
        target::write_text(path, &self.text()).map_err(Failure::failed)
    }
    /// Reads a state from a file, and checks its checksum.
    pub fn read(path: &Path) -> Outcome<Self> {
        let shown = path.display();
        let mut s = Input::new(&STATE);
        s.file(path)?;
        let keys: StateKeys = s.read("");
        s.finish(&shown.to_string())?;
        let missing =
            |key: &str| Failure::refused(format!("{shown} is incomplete: {key} is missing; restore the file"));
        let sealed = keys.format.value().ok_or_else(|| missing("format"))?;
        match keys.crc32.value() {
            // States of earlier versions have no key `crc32`. If a user added one, it is checked as well.
            Some(seal) => is_sealed(path, seal)?,
            None if sealed => return Err(missing(SEAL)),
            None => {}
        }
        let lines = keys.lines.value();
        if sealed && lines.is_none() {
            return Err(missing("lines"));
        }
        let whole = |list: &Given<Numbers<Whole>>| {
            list.get().map_or_else(Vec::new, |all| all.iter().map(|x| *x as usize).collect())
        };
        let state = ChainState {
            trajectory: keys.trajectory.value().ok_or_else(|| missing("trajectory"))? as u32,
            accepted: keys.accepted.value().ok_or_else(|| missing("accepted"))? as u32,
            seed: keys.seed.value().ok_or_else(|| missing("seed"))?,
            bounds: keys.bounds.value().unwrap_or_default(),
            poles: whole(&keys.poles),
            start: keys.start.value(),
            batches: whole(&keys.batches),
        };
        let name = keys.links.value().ok_or_else(|| missing("links"))?;
        let links = StoredLinks { name, checksum: keys.checksum.value() };
        if sealed && links.checksum.is_none() {
            return Err(missing("checksum"));
        }
        let momenta = keys.momenta.value().map(|name| StoredLinks { name, checksum: keys.momenta_checksum.value() });
        if momenta.as_ref().is_some_and(|momenta| momenta.checksum.is_none()) {
            return Err(missing("momenta-checksum"));
        }
        Ok(Saved { state, links, momenta, bytes: keys.bytes.value().ok_or_else(|| missing("bytes"))? as u64, lines })
    }
}

/// Fails unless the last line of a file is the checksum of the lines above it.
fn is_sealed(path: &Path, seal: u32) -> Outcome {
    let shown = path.display();
    let text = fs::read(path).map_err(|why| Failure::refused(format!("{shown} cannot be read: {why}")))?;
    let last = format!("{SEAL} = \"{seal:08x}\"\n");
    let Some(above) = text.strip_suffix(last.as_bytes()) else {
        let why =
            format!("{SEAL} is not in the last line: the file was changed after the run wrote it; restore the file");
        return Err(Failure::refused(format!("{shown}: {why}")));
    };
    let there = crc32fast::hash(above);
    if there != seal {
        let line = above.iter().filter(|byte| **byte == b'\n').count() + 1;
        return Err(Failure::refused(format!(
            "{shown}:{line}: {SEAL} is {seal:08x}, but the lines above it have the checksum {there:08x}: a line was \
             changed after the run wrote it; restore the file"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whichever byte of a state is changed, it is refused.
    #[test]
    fn a_state_with_another_byte_is_refused() {
        let path = std::env::temp_dir().join(format!("ferrite-state-{}.toml", std::process::id()));
        let state = ChainState {
            trajectory: 12,
            accepted: 10,
            seed: 7,
            bounds: vec![17.25, 0.1 + 0.2],
            poles: vec![9, 10],
            start: Some("a \"file\"\\of.links".into()),
            batches: vec![2, 1],
        };
        let links = StoredLinks { name: "state.000012.ildg".into(), checksum: Some("1 2".into()) };
        let momenta = StoredLinks { name: "state.000012.momenta.ildg".into(), checksum: Some("3 4".into()) };
        let saved = Saved { state, links, momenta: Some(momenta), bytes: 4711, lines: Some(0xa0b) };
        saved.write(&path).unwrap();
        assert_eq!(Saved::read(&path).unwrap(), saved);
        let text = saved.text();
        for (at, byte) in text.bytes().enumerate() {
            for other in [byte ^ 1, b'0', b'\n'] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = other;
                fs::write(&path, &bytes).unwrap();
                if other != byte {
                    let why = Saved::read(&path).unwrap_err().message;
                    assert!(why.contains("ferrite-state-"), "{why}");
                }
            }
        }
        for end in 0..text.len() {
            fs::write(&path, &text[..end]).unwrap();
            Saved::read(&path).unwrap_err();
        }
        fs::write(&path, format!("{text}# a remark\n")).unwrap();
        assert!(Saved::read(&path).unwrap_err().message.contains("crc32 is not in the last line"));
        fs::remove_file(path).unwrap();
    }
}
