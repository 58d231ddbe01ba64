//! The folder of a run: what happened, configurations, and the state from which it goes on.
//!
//! | file | what |
//! |---|---|
//! | `trajectories.jsonl` | one line for each trajectory |
//! | `cfg.NNNNNN.ildg` | links after trajectory N |
//! | `state.toml` | the number of the last trajectory, and the names of the files that belong to it |
//! | `state.0.ildg`, `state.1.ildg` | links to go on from, in turns; after a trajectory whose configuration is kept, a second name of that file |
//! | `.lock` | kept open by the process that works here |
//! | `report.html` | what `ferrite report` makes of the lines |
//!
//! `state.toml` is written last and replaces its predecessor in one step: at any moment it names files that are whole. Lines
//! of trajectories that it does not know, half a line among them, are cut off when a run goes on. It has the checksum of its
//! links: in a copy of the folder that was made while the run went on, the two may be of different trajectories.
use super::super::fields::Reading;
use super::super::layout::Layout;
use super::super::world::World;
use super::super::{Failure, Outcome, fields, target};
use crate::cli::config::{Kind, Schema, Settings};
use ferrite::field::host::HostGauge;
use ferrite::files::{FileFormat, FilePrecision, GaugeFile, WriteOptions};
use ferrite::system::atomic;
use ferrite_report::records::trajectories::FILE;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tracing::debug;

const FORMAT: &str = "ferrite.rhmc-state/1";

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
    ("bytes", Kind::Count),
];

/// What a run goes on from, beside links.
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

/// A state, and the files that belong to it.
pub struct Saved {
    /// The state.
    pub state: ChainState,
    links: StoredLinks,
    /// Length of the lines.
    bytes: u64,
}

/// A file with links to go on from.
pub struct StoredLinks {
    name: String,
    /// As its header prints it; not in states of versions that did not keep it.
    checksum: Option<String>,
}

/// The folder.
pub struct RunFolder {
    path: PathBuf,
    /// Of the links: files hold just their bits.
    precision: FilePrecision,
    /// Length of `trajectories.jsonl`.
    bytes: u64,
    /// Keeps other processes away as long as it is open; with rank 0.
    lock: Option<File>,
    /// How a file gets a second name.
    link: fn(&Path, &Path) -> std::io::Result<()>,
}

impl RunFolder {
    /// *Collective.* A folder for a new run; made if it is not there.
    pub fn create(path: &Path, precision: FilePrecision, world: &World) -> Outcome<Self> {
        let mut folder = RunFolder { path: path.into(), precision, bytes: 0, lock: None, link: atomic::link };
        world.once(|| {
            if folder.file("state.toml").exists() {
                let why = "has a run already: go on with it by --resume, or name another folder";
                return Err(Failure::refused(format!("{} {why}", path.display())));
            }
            let refused = |why| Failure::refused(format!("{} cannot be made: {why}", path.display()));
            fs::create_dir_all(path).map_err(refused)?;
            target::check_lines(&folder.lines()).map_err(Failure::refused)?;
            folder.lock()?;
            if fs::metadata(folder.lines()).is_ok_and(|lines| lines.len() > 0) {
                let why =
                    "has trajectories of a run and no state.toml to go on from: name another folder, or move them";
                return Err(Failure::refused(format!("{} {why}", path.display())));
            }
            File::create(folder.lines()).map_err(|why| folder.failed(FILE, why))?;
            Ok(())
        })?;
        Ok(folder)
    }
    /// *Collective.* The folder of a run that goes on, and its state.
    pub fn find(path: &Path, precision: FilePrecision, world: &World) -> Outcome<(Self, Saved)> {
        let mut folder = RunFolder { path: path.into(), precision, bytes: 0, lock: None, link: atomic::link };
        world.once(|| folder.lock())?;
        let saved = world.agree(folder.state())?;
        // What they were made with is in there, too.
        world.once(|| folder.has_lines(saved.bytes))?;
        Ok((folder, saved))
    }
    /// *Collective.* The links of a state. What was written after it is cut off.
    pub fn go_on(&mut self, saved: &Saved, layout: &Layout, world: &World) -> Outcome<HostGauge> {
        let path = self.file(&saved.links.name);
        let lattice = fields::lattice_of(&path, &Reading::default(), world)?;
        if lattice != layout.lattice() {
            let why = format!("this run is on {lattice}, the input says {}", layout.lattice());
            return Err(Failure::refused(format!("{}: {why}", self.path.display())).shared());
        }
        let file = fields::read_gauge(&path, &Reading::default(), layout, world)?;
        let (there, trajectory) = (checksum(&file), saved.state.trajectory);
        if let Some(asked) = saved.links.checksum.as_ref().filter(|asked| there.as_ref() != Some(asked)) {
            let there = there.unwrap_or_else(|| "none".into());
            let why = format!(
                "does not have the links of trajectory {trajectory}, which state.toml goes on from: its checksum is {there} \
                 instead of {asked}. Was the folder copied while the run went on? Copy it again when nothing works in it"
            );
            return Err(Failure::refused(format!("{} {why}", path.display())).shared());
        }
        self.bytes = saved.bytes;
        world.once(|| {
            let lines = OpenOptions::new().write(true).open(self.lines());
            let lines = lines.map_err(|why| self.failed(FILE, why))?;
            lines.set_len(self.bytes).and_then(|()| lines.sync_all()).map_err(|why| self.failed(FILE, why))
        })?;
        Ok(file.gauge)
    }
    /// Refuses a folder whose lines are not all of those that the state knows.
    fn has_lines(&self, bytes: u64) -> Outcome {
        let why = match fs::metadata(self.lines()) {
            Ok(lines) if lines.len() >= bytes => return Ok(()),
            Ok(lines) => {
                let there = lines.len();
                format!("has {there} bytes, and state.toml says {bytes}: restore the file, which has lost lines")
            }
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
                "is missing, and state.toml goes on from it: restore the file, or begin in another folder".into()
            }
            Err(why) => format!("cannot be read: {why}"),
        };
        Err(Failure::refused(format!("{} {why}", self.lines().display())))
    }
    /// Sees to it that no other process works in the folder, and removes what one that was killed has left half written.
    fn lock(&mut self) -> Outcome {
        if !self.path.is_dir() {
            return Ok(());
        }
        let file = target::lock(&self.path).map_err(Failure::refused)?;
        self.lock = Some(file);
        let left = atomic::remove_left(&self.path, |name| Self::is_own(Path::new(name)));
        left.map_err(|why| Failure::failed(format!("{} cannot be cleaned up: {why}", self.path.display())))
    }
    /// Whether a run may write a file of this name.
    pub fn is_own(path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("cfg.") || name.starts_with("state.")
    }
    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
    fn lines(&self) -> PathBuf {
        self.file(FILE)
    }
    fn failed(&self, name: &str, why: std::io::Error) -> Failure {
        Failure::failed(format!("{} cannot be written: {why}", self.file(name).display()))
    }
    fn state(&self) -> Outcome<Saved> {
        let path = self.file("state.toml");
        if !path.exists() {
            let why = match fs::metadata(self.lines()) {
                Ok(lines) if lines.len() == 0 => {
                    "has a run that was ended before its first state: start it without --resume"
                }
                Ok(_) => {
                    "has trajectories of a run and no state.toml to go on from: restore it, or begin in another folder"
                }
                Err(_) => "is not the folder of a run: it has no state.toml",
            };
            return Err(Failure::refused(format!("{} {why}", self.path.display())));
        }
        let mut s = Settings::of(STATE);
        s.file(&path)?;
        let format = s.parsed("format", |text| match text {
            FORMAT => Ok(()),
            other => Err(format!("'{other}' is another format than {FORMAT}")),
        });
        let most = u32::MAX as usize;
        let (trajectory, accepted) = (s.count("trajectory", 0..=most), s.count("accepted", 0..=most));
        // As text: numbers of TOML have a sign.
        let seed = s.parsed("seed", str::parse::<u64>);
        let mut list = |key: &str, fits: &dyn Fn(f64) -> bool| match s.get(key) {
            Some(_) => s.numbers(key, "a number above 0", fits),
            None => Some(Vec::new()),
        };
        let bounds = list("bounds", &|x| x > 0.0);
        let [poles, batches] = ["poles", "batches"].map(|key| {
            let whole = |x: f64| x >= 1.0 && x == x.trunc() && x < f64::from(u32::MAX);
            list(key, &whole).map(|all| all.into_iter().map(|x| x as usize).collect())
        });
        let [start, checksum] = ["start", "checksum"].map(|key| s.get(key).map(|setting| setting.text().into()));
        let (links, bytes) = (s.get("links"), s.count("bytes", 0..=usize::MAX));
        s.finish(&path.display().to_string())?;
        let known = (format, trajectory, accepted, seed, bounds, (poles, batches), links, bytes);
        let (
            Some(()),
            Some(trajectory),
            Some(accepted),
            Some(seed),
            Some(bounds),
            (Some(poles), Some(batches)),
            Some(links),
            Some(bytes),
        ) = known
        else {
            return Err(Failure::refused(format!("{} is not whole: a key is missing", path.display())));
        };
        let (trajectory, accepted, bytes) = (trajectory as u32, accepted as u32, bytes as u64);
        let state = ChainState { trajectory, accepted, seed, bounds, poles, start, batches };
        Ok(Saved { state, links: StoredLinks { name: links.text().into(), checksum }, bytes })
    }
    /// *Collective.* Writes links to go on from, under the name that the last state does not use; with `save` they are kept as
    /// a configuration, too. That is one file with two names where the file system can do it, else two. Either name may go
    /// or get other links later: the file stays under the other one, and no file is ever written into once it has a name.
    pub fn write_links(
        &self,
        trajectory: u32,
        gauge: &HostGauge,
        save: bool,
        layout: &Layout,
        world: &World,
    ) -> Outcome<StoredLinks> {
        let name = format!("state.{}.ildg", trajectory % 2);
        let path = self.file(&name);
        if save {
            let kept = self.file(&format!("cfg.{trajectory:06}.ildg"));
            let checksum = self.write(&kept, gauge, trajectory, layout, world)?;
            // What was read back is what gets the name.
            let linked = if world.speaks() { (self.link)(&kept, &path) } else { Ok(()) };
            if let Err(why) = &linked {
                debug!("{} is written twice: it cannot have two names: {why}", kept.display());
            }
            if world.largest(f64::from(u8::from(linked.is_err())))? == 0.0 {
                return Ok(StoredLinks { name, checksum });
            }
        }
        let checksum = self.write(&path, gauge, trajectory, layout, world)?;
        Ok(StoredLinks { name, checksum })
    }
    /// *Collective.* Makes the state with these links, which were read back, the one to go on from.
    pub fn keep(&self, state: &ChainState, links: &StoredLinks, world: &World) -> Outcome {
        let mut text =
            format!("# The state of a run of `ferrite rhmc`, which goes on from here.\nformat = \"{FORMAT}\"\n");
        let ChainState { trajectory, accepted, seed, bounds, poles, start, batches } = state;
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
        let StoredLinks { name, checksum } = links;
        for (key, value) in [("start", start), ("checksum", checksum)] {
            if let Some(value) = value {
                // JSON escapes as TOML does.
                let _ = writeln!(text, "{key} = {}", Value::from(value.as_str()));
            }
        }
        let _ = write!(text, "links = \"{name}\"\nbytes = {}\n", self.bytes);
        world.once(|| target::write_text(&self.file("state.toml"), &text).map_err(Failure::failed))
    }
    /// *Collective.* Adds a line.
    pub fn add(&mut self, line: &Value, world: &World) -> Outcome {
        let text = format!("{line}\n");
        world.once(|| {
            let file = OpenOptions::new().append(true).open(self.lines());
            let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_data()));
            written.map_err(|why| self.failed(FILE, why))
        })?;
        self.bytes += text.len() as u64;
        Ok(())
    }
    /// *Collective.* Writes links and reads them back; their checksum.
    fn write(
        &self,
        path: &Path,
        gauge: &HostGauge,
        trajectory: u32,
        layout: &Layout,
        world: &World,
    ) -> Outcome<Option<String>> {
        let title = format!("trajectory {trajectory}");
        let options = WriteOptions { format: FileFormat::Ildg, precision: self.precision, title, ..Default::default() };
        fields::write_gauge(path, gauge, &options, layout)?;
        let back = fields::read_gauge(path, &Reading::default(), layout, world)?;
        let same = if back.gauge.links() == gauge.links() {
            Ok(checksum(&back))
        } else {
            Err(Failure::failed(format!("{} does not hold what was written to it", path.display())))
        };
        world.agree(same)
    }
}

/// The checksum of a file, as its header prints it.
fn checksum(file: &GaugeFile) -> Option<String> {
    file.header.checksum.map(|(kind, sum)| kind.print(sum))
}

#[cfg(test)]
mod tests {
    use super::super::super::layout::LayoutChoice;
    use super::*;
    use ferrite::gauge::generate;

    /// Where files cannot have two names, there are two files.
    #[test]
    fn links_are_there_with_and_without_second_names() {
        let world = World::of(comms::Solo::new());
        let lattice = ferrite::lattice::Lattice::new([2; 4]).unwrap();
        let layout = LayoutChoice::from_settings(&mut Settings::of(&[])).cut(&world, lattice, 1).unwrap();
        let gauge = generate::random(layout.section, 1);
        let cannot = |_: &Path, _: &Path| Err(std::io::ErrorKind::Unsupported.into());
        for (name, link) in [("one", atomic::link as fn(&Path, &Path) -> _), ("two", cannot)] {
            let path = std::env::temp_dir().join(format!("ferrite-folder-{name}-{}", std::process::id()));
            let mut folder = RunFolder::create(&path, FilePrecision::Double, &world).unwrap();
            folder.link = link;
            let links = folder.write_links(3, &gauge, true, &layout, &world).unwrap();
            assert_eq!(links.name, "state.1.ildg");
            let [kept, state] = ["cfg.000003.ildg", "state.1.ildg"].map(|name| {
                let file = fields::read_gauge(&path.join(name), &Reading::default(), &layout, &world).unwrap();
                assert_eq!(checksum(&file), links.checksum, "{name}");
                fs::read(path.join(name)).unwrap()
            });
            assert!(links.checksum.is_some() && kept == state);
            // Links of a later trajectory leave the configuration as it is.
            folder.write_links(5, &generate::random(layout.section, 2), false, &layout, &world).unwrap();
            assert!(fs::read(path.join("cfg.000003.ildg")).unwrap() == kept);
            assert!(fs::read(path.join("state.1.ildg")).unwrap() != kept);
            fs::remove_dir_all(&path).unwrap();
        }
    }
}
