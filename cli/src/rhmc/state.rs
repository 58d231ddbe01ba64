//! The text of a state: what a run resumes from, beside links.
//!
//! Its last line is a checksum of those above it, and it has that of the lines of trajectories that it knows. So a number that
//! was changed by hand, or by a disk, is not resumed from.
use super::super::{Failure, Outcome, target};
use crate::config::{Kind, Schema, Settings};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const FORMAT: &str = "ferrite.rhmc-state/2";

/// Of versions that kept no checksum of the state and of lines.
const OLDER: &str = "ferrite.rhmc-state/1";

/// The key of the last line.
const SEAL: &str = "crc32";

const STATE: Schema = &[
    ("format", Kind::Word),
    ("trajectory", Kind::Count),
    ("accepted", Kind::Count),
    ("seed", Kind::Text),
    ("bounds", Kind::Numbers),
    ("poles", Kind::Numbers),
    ("start", Kind::Text),
    ("batches", Kind::Numbers),
    ("links", Kind::Text),
    ("checksum", Kind::Text),
    ("momenta", Kind::Text),
    ("momenta-checksum", Kind::Text),
    ("bytes", Kind::Count),
    ("lines", Kind::Text),
    (SEAL, Kind::Text),
];

/// What a run resumes from, beside links.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainState {
    /// The last trajectory.
    pub trajectory: u32,
    /// How many were accepted.
    pub accepted: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Upper bounds of the spectra that the rational functions of each group are made for.
    pub bounds: Vec<f64>,
    /// For how many poles of each group's molecular dynamics residuals were given, where they are given one by one; empty in
    /// states of versions that did not keep it.
    pub poles: Vec<usize>,
    /// The links that the run began with, as an input names them; not in states of versions that did not keep it.
    pub start: Option<String>,
    /// How the noise vectors of a condensate are split: their sums are rounded otherwise in other batches.
    pub batches: Vec<usize>,
}

/// A file with links, or with momenta, to resume from.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredLinks {
    /// In the folder of the run.
    pub name: String,
    /// As its header prints it; not in states of versions that did not keep it.
    pub checksum: Option<String>,
}

/// A state, and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The state.
    pub state: ChainState,
    /// The links.
    pub links: StoredLinks,
    /// Momenta, where trajectories keep them.
    pub momenta: Option<StoredLinks>,
    /// Length of the lines.
    pub bytes: u64,
    /// CRC-32 of the lines; not in states of versions that did not keep it.
    pub lines: Option<u32>,
}

impl Saved {
    /// The text of a file.
    pub fn text(&self) -> String {
        let mut text = format!("# A state of `ferrite rhmc`, to resume from.\nformat = \"{FORMAT}\"\n");
        let ChainState { trajectory, accepted, seed, bounds, poles, start, batches } = &self.state;
        let _ = write!(text, "trajectory = {trajectory}\naccepted = {accepted}\nseed = \"{seed}\"\n");
        if !bounds.is_empty() {
            // With all digits.
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
                // JSON escapes as TOML does.
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
    /// Writes a file, whole or not at all.
    pub fn write(&self, path: &Path) -> Outcome {
        target::write_text(path, &self.text()).map_err(Failure::failed)
    }
    /// Reads a file.
    pub fn read(path: &Path) -> Outcome<Self> {
        let shown = path.display();
        let mut s = Settings::of(STATE);
        s.file(path)?;
        let format = s.parsed("format", |text| match text {
            FORMAT => Ok(true),
            OLDER => Ok(false),
            other => Err(format!("'{other}' is not {FORMAT}: continue with the version that wrote it")),
        });
        let most = u32::MAX as usize;
        let (trajectory, accepted) = (s.count("trajectory", 0..=most), s.count("accepted", 0..=most));
        // As text: numbers of TOML have a sign.
        let seed = s.parsed("seed", str::parse::<u64>);
        let mut list = |key: &str, expected: &str, fits: &dyn Fn(f64) -> bool| match s.get(key) {
            Some(_) => s.numbers(key, expected, fits),
            None => Some(Vec::new()),
        };
        let bounds = list("bounds", "a number of at least 0", &|x| x >= 0.0);
        let [poles, batches] = ["poles", "batches"].map(|key| {
            let whole = |x: f64| x >= 1.0 && x == x.trunc() && x < f64::from(u32::MAX);
            list(key, "a number above 0", &whole).map(|all| all.into_iter().map(|x| x as usize).collect())
        });
        let [start, checksum, of_momenta] =
            ["start", "checksum", "momenta-checksum"].map(|key| s.get(key).map(|setting| String::from(setting.text())));
        let file = |name: &str| match Path::new(name).components().count() {
            1 if Path::new(name).file_name().is_some() => Ok(name.to_string()),
            _ => Err(format!("'{name}' is not the name of a file of this folder")),
        };
        let (links, momenta) = (s.parsed("links", file), s.parsed("momenta", file));
        let bytes = s.count("bytes", 0..=usize::MAX);
        let mut sum = |key: &str| s.parsed(key, checksum_of);
        let (lines, seal) = (sum("lines"), sum(SEAL));
        s.finish(&shown.to_string())?;
        let missing =
            |key: &str| Failure::refused(format!("{shown} is incomplete: {key} is missing; restore the file"));
        let sealed = format.ok_or_else(|| missing("format"))?;
        match seal {
            // A key of this name at the end of a file of an older version is none that it wrote.
            Some(seal) => is_sealed(path, seal)?,
            None if sealed => return Err(missing(SEAL)),
            None => {}
        }
        if sealed && lines.is_none() {
            return Err(missing("lines"));
        }
        let state = ChainState {
            trajectory: trajectory.ok_or_else(|| missing("trajectory"))? as u32,
            accepted: accepted.ok_or_else(|| missing("accepted"))? as u32,
            seed: seed.ok_or_else(|| missing("seed"))?,
            bounds: bounds.ok_or_else(|| missing("bounds"))?,
            poles: poles.ok_or_else(|| missing("poles"))?,
            start,
            batches: batches.ok_or_else(|| missing("batches"))?,
        };
        let links = StoredLinks { name: links.ok_or_else(|| missing("links"))?, checksum };
        if sealed && links.checksum.is_none() {
            return Err(missing("checksum"));
        }
        let momenta = momenta.map(|name| StoredLinks { name, checksum: of_momenta });
        if momenta.as_ref().is_some_and(|momenta| momenta.checksum.is_none()) {
            return Err(missing("momenta-checksum"));
        }
        Ok(Saved { state, links, momenta, bytes: bytes.ok_or_else(|| missing("bytes"))? as u64, lines })
    }
}

/// A checksum as it is written.
fn checksum_of(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 16) {
        Ok(sum) if text.len() == 8 => Ok(sum),
        _ => Err(format!("'{text}' is not a checksum of eight hexadecimal digits")),
    }
}

/// Refuses a file whose last line is not the checksum of those above it.
fn is_sealed(path: &Path, seal: u32) -> Outcome {
    let shown = path.display();
    let text = fs::read(path).map_err(|why| Failure::refused(format!("{shown}: cannot be read: {why}")))?;
    let last = format!("{SEAL} = \"{seal:08x}\"\n");
    let Some(above) = text.strip_suffix(last.as_bytes()) else {
        let why =
            format!("{SEAL} is not in its last line: something was added after the run wrote it; restore the file");
        return Err(Failure::refused(format!("{shown}: {why}")));
    };
    let there = crc32fast::hash(above);
    if there != seal {
        let line = above.iter().filter(|byte| **byte == b'\n').count() + 1;
        return Err(Failure::refused(format!(
            "{shown}:{line}: {SEAL} is {seal:08x}, and the lines above it make {there:08x}: one of them was changed after the \
             run wrote it; restore the file"
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
        assert!(Saved::read(&path).unwrap_err().message.contains("crc32 is not in its last line"));
        fs::remove_file(path).unwrap();
    }
}
