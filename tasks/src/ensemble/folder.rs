//! The folder of a run: what happened, configurations, and the states from which it can continue.
//!
//! | file | what |
//! |---|---|
//! | `trajectories.jsonl` | one line for each trajectory |
//! | `cfg.NNNNNN.ildg` | links after trajectory N |
//! | `cfg.NNNNNN.toml` | the state that goes with them, for `--resume-from` |
//! | `momenta.NNNNNN.ildg` | and momenta, where `trajectory.friction` keeps them |
//! | `state.toml`, `state.previous.toml` | the last state, and the one before it |
//! | `state.NNNNNN.ildg` | links of these two, and beside them `state.NNNNNN.momenta.ildg` |
//! | `before.K` | what `--resume-from` has set aside |
//! | `.lock` | kept open by the process that works here |
//! | `report.html` | what `ferrite report` makes of the lines |
//!
//! `state.toml` is written last and replaces its predecessor in one step: at any moment it names files that are whole. Lines
//! of trajectories that it does not know, half a line among them, are cut off when a run resumes. It has checksums of itself, of
//! its links and of its lines: in a copy of the folder that was made during a run, these may be of different
//! trajectories. Where one of them does not fit, the run resumes from the state before, whose files are others.
use super::state::{ChainState, Saved, StoredLinks};
use crate::communicator::RunCommunicator;
use crate::fields::Reading;
use crate::layout::Layout;
use crate::{Failure, Outcome, fields, target, text};
use ferrite::field::host::HostGauge;
use ferrite::files::{FilePrecision, GaugeFile, ILDG, WriteOptions};
use ferrite::system::atomic;
use ferrite_records::Record;
use ferrite_records::ensemble::{RunSettings, TrajectoryLine};
use ferrite_records::read::read_leniently;
use ferrite_report::records::trajectories::{self, FILE, RunHistory};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tracing::{info, warn};

/// The last state.
const LAST: &str = "state.toml";

/// The state before it.
const PREVIOUS: &str = "state.previous.toml";

/// Beginning of a run: new, or from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// A new run.
    New,
    /// The last state of the run.
    Last,
    /// The state of the run after this trajectory.
    From(u32),
}

/// Folder, state and fields that a run resumes from.
pub struct FoundRun {
    /// The folder.
    pub folder: RunFolder,
    /// The state.
    pub saved: Saved,
    /// This process's part of the fields.
    pub fields: ChainFields,
    /// The lines of the state; with rank 0.
    pub lines: RunHistory,
}

/// The folder.
pub struct RunFolder {
    path: PathBuf,
    /// Precision of files with links, which hold just their bits. Momenta are in double.
    precision: FilePrecision,
    /// Length of `trajectories.jsonl`.
    bytes: u64,
    /// CRC-32 of its bytes; with rank 0.
    sum: crc32fast::Hasher,
    /// The state that `state.toml` has.
    last: Option<Saved>,
    /// Keeps other processes away as long as it is open; with rank 0.
    lock: Option<File>,
}

/// A process's part of the fields from which a chain continues.
pub struct ChainFields {
    /// Links.
    pub gauge: HostGauge,
    /// Momenta, where trajectories keep them.
    pub momenta: Option<HostGauge>,
}

/// Links that were written, and whether a configuration also holds them.
pub struct WrittenLinks {
    links: StoredLinks,
    momenta: Option<StoredLinks>,
    kept: bool,
}

/// Returns the names of the links and of the state of a configuration.
fn configuration(trajectory: u32) -> [String; 2] {
    ["ildg", "toml"].map(|end| format!("cfg.{trajectory:06}.{end}"))
}

/// Returns the name of the file of momenta that belongs to a configuration. It differs from names of links, so that nobody takes momenta
/// for links.
fn momenta_of_configuration(trajectory: u32) -> String {
    format!("momenta.{trajectory:06}.ildg")
}

/// Returns the trajectory of a configuration, by the name of one of its files.
fn trajectory_of(name: &str) -> Option<u32> {
    let of_links = name.strip_prefix("cfg.").and_then(|rest| rest.strip_suffix(".ildg").or(rest.strip_suffix(".toml")));
    let number = of_links.or_else(|| name.strip_prefix("momenta.")?.strip_suffix(".ildg"))?;
    number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl RunFolder {
    fn at(path: &Path, precision: FilePrecision) -> Self {
        RunFolder { path: path.into(), precision, bytes: 0, sum: crc32fast::Hasher::new(), last: None, lock: None }
    }
    /// *Collective.* Opens a folder for a new run; makes it if it does not exist.
    pub fn create(path: &Path, precision: FilePrecision, comm: &RunCommunicator) -> Outcome<Self> {
        let mut folder = Self::at(path, precision);
        comm.once(|| {
            if [LAST, PREVIOUS].iter().any(|name| folder.file(name).exists()) {
                let why = "contains a run: continue it with --resume, or choose another folder";
                return Err(Failure::refused(format!("{} {why}", path.display())));
            }
            let refused = |why| Failure::refused(format!("{} cannot be created: {why}", path.display()));
            fs::create_dir_all(path).map_err(refused)?;
            target::check_lines(&folder.lines()).map_err(Failure::refused)?;
            folder.lock()?;
            if fs::metadata(folder.lines()).is_ok_and(|lines| lines.len() > 0) {
                let why =
                    "contains trajectories of a run but no state.toml to resume from: choose another folder, or move \
                     them";
                return Err(Failure::refused(format!("{} {why}", path.display())));
            }
            File::create(folder.lines()).map_err(|why| folder.failed(FILE, why))?;
            Ok(())
        })?;
        Ok(folder)
    }
    /// *Collective.* Returns the folder of a resumed run, with all that it resumes from; nothing in it is changed. Where the last
    /// state is damaged, or a file that belongs to it, that is the state before.
    pub fn find(
        path: &Path,
        from: Option<u32>,
        precision: FilePrecision,
        layout: &Layout,
        comm: &RunCommunicator,
    ) -> Outcome<FoundRun> {
        let mut folder = Self::at(path, precision);
        comm.once(|| folder.lock())?;
        let mut name = String::from(LAST);
        comm.once(|| folder.has_states())?;
        if let Some(trajectory) = from {
            name = comm.agree(folder.state_after(trajectory))?;
        }
        let found = match folder.candidate(&name, layout, comm) {
            Err(why) if from.is_none() => match folder.candidate(PREVIOUS, layout, comm) {
                Ok(found) => {
                    if let Ok((saved, ..)) = &found {
                        warn!(
                            "{}; resuming from the previous state, {PREVIOUS}, after trajectory {}",
                            why.message, saved.state.trajectory
                        );
                    }
                    found
                }
                Err(other) => {
                    let there = comm.largest(f64::from(u8::from(folder.file(PREVIOUS).exists())))? > 0.0;
                    let also = if there && other.message != why.message {
                        format!("; the previous state, {PREVIOUS}, cannot be resumed either")
                    } else {
                        String::new()
                    };
                    return Err(Failure::new(why.code, format!("{}{also}", why.message)).shared());
                }
            },
            found => found?,
        };
        let (saved, fields, lines) = found?;
        Ok(FoundRun { folder, saved, fields, lines })
    }
    /// Refuses a folder that has no state at all.
    fn has_states(&self) -> Outcome {
        if [LAST, PREVIOUS].iter().any(|name| self.file(name).exists()) {
            return Ok(());
        }
        let why = match fs::metadata(self.lines()) {
            Ok(lines) if lines.len() == 0 => {
                "contains a run that ended before its first state was written: start it without --resume"
            }
            Ok(_) => {
                "contains trajectories of a run but no state.toml to resume from: restore it, or start in another \
                 folder"
            }
            Err(_) => "is not the folder of a run: it has no state.toml",
        };
        Err(Failure::refused(format!("{} {why}", self.path.display())))
    }
    /// Returns the name of the state after this trajectory.
    fn state_after(&self, trajectory: u32) -> Outcome<String> {
        let [links, state] = configuration(trajectory);
        if self.file(&state).exists() {
            return Ok(state);
        }
        // The last two states also exist without a configuration.
        let is_it = |name: &&str| Saved::read(&self.file(name)).is_ok_and(|saved| saved.state.trajectory == trajectory);
        if let Some(name) = [LAST, PREVIOUS].into_iter().find(|name| is_it(name)) {
            return Ok(name.into());
        }
        let folder = self.path.display();
        if self.file(&links).exists() {
            return Err(Failure::refused(format!(
                "{folder}: {links} has no {state}, because an earlier version wrote it: start in another folder with \
                 start = \"{}\"",
                self.file(&links).display()
            )));
        }
        let mut there: Vec<u32> = self
            .names()?
            .iter()
            .filter(|name| name.ends_with(".toml"))
            .filter_map(|name| trajectory_of(name))
            .collect();
        there.sort_unstable();
        let which = match there.as_slice() {
            [] => "no trajectory has one".into(),
            [one] => format!("only trajectory {one} has one"),
            [few @ .., last] if few.len() < 10 => {
                let few: Vec<String> = few.iter().map(u32::to_string).collect();
                format!("trajectories {} and {last} have one", few.join(", "))
            }
            [first, .., last] => format!("{} trajectories from {first} to {last} have one", there.len()),
        };
        let why = format!("--resume-from {trajectory}: the run has no configuration of that trajectory; {which}");
        Err(Failure::refused(format!("{folder}: {why}")))
    }
    /// *Collective.* Returns a state with links and lines, if all of them fit. Links on another lattice than the input's are a
    /// failure that no other state mends, and so the inner one.
    fn candidate(
        &mut self,
        name: &str,
        layout: &Layout,
        comm: &RunCommunicator,
    ) -> Outcome<Outcome<(Saved, ChainFields, RunHistory)>> {
        let state = self.file(name);
        let mut saved = comm.agree(Saved::read(&state))?;
        let mut lines = RunHistory::default();
        comm.once(|| {
            lines = self.lines_of(&saved, name)?;
            Ok(())
        })?;
        let path = self.file(&saved.links.name);
        let lattice = fields::lattice_of(&path, &Reading::default(), comm)?;
        if lattice != layout.lattice() {
            let why = format!("this run is on {lattice}, but the input has {}", layout.lattice());
            return Ok(Err(Failure::refused(format!("{}: {why}", self.path.display())).shared()));
        }
        let trajectory = saved.state.trajectory;
        let read = |stored: &StoredLinks, what: &str, reading: &Reading| {
            let path = self.file(&stored.name);
            let file = fields::read_gauge(&path, reading, layout, comm)?;
            let there = checksum(&file);
            if let Some(asked) = stored.checksum.as_ref().filter(|asked| there.as_ref() != Some(asked)) {
                let there = there.as_deref().unwrap_or("none");
                let why = format!(
                    "does not contain the {what} of trajectory {trajectory}, from which {name} resumes: its checksum \
                     is {there} instead of {asked}. If the folder was copied during the run, copy it again when no \
                     process uses it"
                );
                return Err(Failure::refused(format!("{} {why}", path.display())).shared());
            }
            Ok((file.gauge, there))
        };
        let (gauge, there) = read(&saved.links, "links", &Reading::default())?;
        let momenta = saved.momenta.as_ref().map(|stored| read(stored, "momenta", &of_momenta())).transpose()?;
        if saved.lines.is_none() && comm.speaks() {
            info!(
                "{} was written by a version without checksums of states: it is checked against {FILE} only; the next \
                 trajectory adds a checksum",
                state.display()
            );
        }
        // Checksums that the state lacked are known now, and are kept when it becomes the previous state.
        saved.lines = Some(self.sum.clone().finalize());
        saved.links.checksum = there;
        Ok(Ok((saved, ChainFields { gauge, momenta: momenta.map(|(momenta, _)| momenta) }, lines)))
    }
    /// *Collective.* Makes the last state what the run resumes from: lines that were written after it are cut off.
    pub fn continue_from(&mut self, saved: &Saved, comm: &RunCommunicator) -> Outcome {
        self.bytes = saved.bytes;
        self.last = Some(saved.clone());
        comm.once(|| self.cut_lines())
    }
    fn cut_lines(&self) -> Outcome {
        let cut = || {
            let lines = OpenOptions::new().write(true).open(self.lines())?;
            // Only the end of the last line of a state may be missing: `lines_of` refuses other lines.
            let length = lines.metadata()?.len();
            if length + 1 == self.bytes {
                lines.write_all_at(b"\n", length)?;
            }
            lines.set_len(self.bytes)?;
            lines.sync_all()
        };
        cut().map_err(|why| self.failed(FILE, why))
    }
    /// *Collective.* Makes a state that is not the last one what the run resumes from: configurations and lines after it are set aside
    /// first.
    pub fn go_back(&mut self, saved: &Saved, fields: &ChainFields, layout: &Layout, comm: &RunCommunicator) -> Outcome {
        comm.once(|| self.set_aside(saved))?;
        self.bytes = saved.bytes;
        // A configuration may be moved away, so that the run resumes from files of its own.
        let links = self.write_fields(saved.state.trajectory, fields, false, layout, comm)?;
        self.keep(&saved.state, &links, comm)?;
        comm.once(|| {
            // The previous state belongs to the chain that was set aside.
            match fs::remove_file(self.file(PREVIOUS)) {
                Err(why) if why.kind() != ErrorKind::NotFound => return Err(self.failed(PREVIOUS, why)),
                _ => {}
            }
            self.cut_lines()
        })
    }
    /// Moves files of later trajectories than the state into a folder of their own, with a copy of all lines.
    fn set_aside(&self, saved: &Saved) -> Outcome {
        let trajectory = saved.state.trajectory;
        let names = self.names()?;
        let later: Vec<&String> =
            names.iter().filter(|name| trajectory_of(name).is_some_and(|n| n > trajectory)).collect();
        let length = fs::metadata(self.lines()).map_err(|why| self.failed(FILE, why))?.len();
        if later.is_empty() && length <= saved.bytes {
            return Ok(());
        }
        let (aside, name) = (1..)
            .find_map(|number| {
                let name = format!("before.{number}");
                match fs::create_dir(self.file(&name)) {
                    Err(why) if why.kind() == ErrorKind::AlreadyExists => None,
                    made => {
                        Some(made.map(|()| (self.file(&name), name.clone())).map_err(|why| self.failed(&name, why)))
                    }
                }
            })
            .expect("some number is free")?;
        let copied = fs::copy(self.lines(), aside.join(FILE)).and_then(|_| File::open(aside.join(FILE))?.sync_all());
        copied.map_err(|why| self.failed(&format!("{name}/{FILE}"), why))?;
        for file in later {
            fs::rename(self.file(file), aside.join(file)).map_err(|why| self.failed(file, why))?;
        }
        info!("files of trajectories after {trajectory} were moved to {}, with a copy of {FILE}", aside.display());
        Ok(())
    }
    /// Returns the lines that belong to a state; refuses a file whose lines are others.
    fn lines_of(&mut self, saved: &Saved, name: &str) -> Outcome<RunHistory> {
        let (path, bytes) = (self.lines(), saved.bytes);
        let refused = |why: String| Err(Failure::refused(format!("{} {why}", path.display())));
        let all = match fs::read(&path) {
            // An editor may have taken the end of the last line off. The checksum shows that nothing else is missing.
            Ok(all) if all.len() as u64 + 1 == bytes && !all.ends_with(b"\n") => [&all[..], b"\n"].concat(),
            Ok(all) => all,
            Err(why) if why.kind() == ErrorKind::NotFound => {
                return refused(format!(
                    "is missing, but {name} refers to it: restore the file, or start in another folder"
                ));
            }
            Err(why) => return refused(format!("cannot be read: {why}")),
        };
        let Some(lines) = usize::try_from(bytes).ok().and_then(|bytes| all.get(..bytes)) else {
            let there = all.len();
            return refused(format!(
                "has {there} bytes, but {name} states {bytes}: lines are missing; restore the file"
            ));
        };
        let mut sum = crc32fast::Hasher::new();
        sum.update(lines);
        self.sum = sum.clone();
        let run = trajectories::parse(lines, &path.display().to_string())?;
        let there = sum.finalize();
        if let Some(asked) = saved.lines.filter(|asked| *asked != there) {
            return refused(format!(
                "does not contain the lines that {name} refers to: the lines up to trajectory {} have the checksum \
                 {there:08x} instead of lines = \"{asked:08x}\"; restore both files from one copy of the folder",
                saved.state.trajectory
            ));
        }
        let state = &saved.state;
        let differs = |key: &str, value: String, other: String| {
            let state = self.file(name);
            Err(Failure::refused(format!(
                "{}: {key} = {value}, but the first {bytes} bytes of {FILE} {other}: restore the file that was changed",
                state.display()
            )))
        };
        let (count, last) = (run.trajectories.len() as u64, run.trajectories.last().map_or(0, |last| last.trajectory));
        if run.half {
            return differs("bytes", bytes.to_string(), "do not end with a line".into());
        }
        if [count, last] != [u64::from(state.trajectory); 2] {
            return differs(
                "trajectory",
                state.trajectory.to_string(),
                format!("have {}, up to trajectory {last}", text::count(count as usize, "line")),
            );
        }
        let accepted = run.trajectories.iter().filter(|one| one.accepted).count();
        if accepted != state.accepted as usize {
            return differs(
                "accepted",
                state.accepted.to_string(),
                format!("have {}", text::count(accepted, "accepted trajectory")),
            );
        }
        let seed = |run: &Value| read_leniently::<RunSettings>(run).seed.filter(|seed| *seed != state.seed);
        let other = run.starts.iter().find_map(|(_, run)| seed(run));
        if let Some(other) = other {
            return differs("seed", state.seed.to_string(), format!("have the seed {other}"));
        }
        Ok(run)
    }
    /// Returns the names of the files in the folder.
    fn names(&self) -> Outcome<Vec<String>> {
        let cannot = |why| Failure::refused(format!("{} cannot be read: {why}", self.path.display()));
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(cannot)? {
            all.extend(entry.map_err(cannot)?.file_name().into_string());
        }
        Ok(all)
    }
    /// Keeps other processes out of the folder, and removes files that a killed process has left half written.
    fn lock(&mut self) -> Outcome {
        if !self.path.is_dir() {
            return Ok(());
        }
        let file = target::lock(&self.path).map_err(Failure::refused)?;
        self.lock = Some(file);
        let left = atomic::remove_left(&self.path, |name| Self::is_own(Path::new(name)));
        left.map_err(|why| Failure::failed(format!("{} cannot be cleaned up: {why}", self.path.display())))
    }
    /// Returns whether a run may write a file of this name.
    pub fn is_own(path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ["cfg.", "momenta.", "state."].iter().any(|begin| name.starts_with(begin))
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
    /// *Collective.* Writes links to resume from, with momenta if there are any; with `save` also as a configuration. These are separate
    /// files, so that damage to one leaves the other.
    pub fn write_fields(
        &self,
        trajectory: u32,
        fields: &ChainFields,
        save: bool,
        layout: &Layout,
        comm: &RunCommunicator,
    ) -> Outcome<WrittenLinks> {
        let write = |name: String, field: &HostGauge, stored: (FilePrecision, Reading)| -> Outcome<StoredLinks> {
            let checksum = self.write(&self.file(&name), field, trajectory, stored, layout, comm)?;
            Ok(StoredLinks { name, checksum })
        };
        let of_links = || (self.precision, Reading::default());
        // Always in double: the third number on a diagonal is minus the sum of the other two, which single precision cannot hold.
        let of_momenta = || (FilePrecision::Double, of_momenta());
        if save {
            let [kept, _] = configuration(trajectory);
            write(kept, &fields.gauge, of_links())?;
            if let Some(momenta) = &fields.momenta {
                write(momenta_of_configuration(trajectory), momenta, of_momenta())?;
            }
        }
        let momenta = fields
            .momenta
            .as_ref()
            .map(|momenta| write(format!("state.{trajectory:06}.momenta.ildg"), momenta, of_momenta()));
        let links = write(format!("state.{trajectory:06}.ildg"), &fields.gauge, of_links())?;
        Ok(WrittenLinks { links, momenta: momenta.transpose()?, kept: save })
    }
    /// *Collective.* Makes the state with these links, which were read back, the one to resume from, and the last one the one
    /// before.
    pub fn keep(&mut self, state: &ChainState, written: &WrittenLinks, comm: &RunCommunicator) -> Outcome {
        let lines = Some(self.sum.clone().finalize());
        let (links, momenta) = (written.links.clone(), written.momenta.clone());
        let saved = Saved { state: state.clone(), links, momenta, bytes: self.bytes, lines };
        comm.once(|| {
            if written.kept {
                let [name, text] = configuration(state.trajectory);
                let links = StoredLinks { name, ..saved.links.clone() };
                let of_momenta = |stored: &StoredLinks| StoredLinks {
                    name: momenta_of_configuration(state.trajectory),
                    ..stored.clone()
                };
                let momenta = saved.momenta.as_ref().map(of_momenta);
                Saved { links, momenta, ..saved.clone() }.write(&self.file(&text))?;
            }
            if let Some(last) = &self.last {
                last.write(&self.file(PREVIOUS))?;
            }
            saved.write(&self.file(LAST))?;
            self.remove_links_of_older_states(&saved)
        })?;
        self.last = Some(saved);
        Ok(())
    }
    fn remove_links_of_older_states(&self, saved: &Saved) -> Outcome {
        let needed = |name: &String| {
            let states = [Some(saved), self.last.as_ref()].into_iter().flatten();
            states
                .flat_map(|state| [Some(&state.links), state.momenta.as_ref()])
                .flatten()
                .any(|file| file.name == *name)
        };
        for name in self.names()? {
            if name.starts_with("state.") && name.ends_with(".ildg") && !needed(&name) {
                // Files that stay take space, but do no harm.
                let _ = fs::remove_file(self.file(&name));
            }
        }
        Ok(())
    }
    /// *Collective.* Adds a line.
    pub fn add(&mut self, line: &TrajectoryLine, comm: &RunCommunicator) -> Outcome {
        let text = format!("{}\n", trajectories::sealed(&line.with_schema()));
        comm.once(|| {
            let file = OpenOptions::new().append(true).open(self.lines());
            let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_data()));
            written.map_err(|why| self.failed(FILE, why))
        })?;
        self.bytes += text.len() as u64;
        self.sum.update(text.as_bytes());
        Ok(())
    }
    /// *Collective.* Writes links or momenta in a precision and reads them back; their checksum.
    fn write(
        &self,
        path: &Path,
        gauge: &HostGauge,
        trajectory: u32,
        (precision, reading): (FilePrecision, Reading),
        layout: &Layout,
        comm: &RunCommunicator,
    ) -> Outcome<Option<String>> {
        let title = format!("trajectory {trajectory}");
        let options = WriteOptions { format: &ILDG, precision, title, ..Default::default() };
        fields::write_gauge(path, gauge, &options, layout)?;
        let back = fields::read_gauge(path, &reading, layout, comm)?;
        let same = if back.gauge.links() == gauge.links() {
            Ok(checksum(&back))
        } else {
            Err(Failure::failed(format!("{} does not contain the data that was written to it", path.display())))
        };
        comm.agree(same)
    }
}

/// Returns the options for reading momenta, which are matrices but not in SU(3).
fn of_momenta() -> Reading {
    Reading::default().of_any_links()
}

/// Returns the checksum of a file, as its header prints it.
fn checksum(file: &GaugeFile) -> Option<String> {
    file.header.checksum.map(|(kind, sum)| kind.print(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_known_by_their_names() {
        for trajectory in [0, 3, 999_999, 1_000_000] {
            let names = configuration(trajectory);
            assert!(names.iter().all(|name| trajectory_of(name) == Some(trajectory)), "{names:?}");
            assert_eq!(trajectory_of(&momenta_of_configuration(trajectory)), Some(trajectory));
        }
        for other in
            ["cfg.ildg", "cfg..toml", "cfg.+1.ildg", "cfg.000001.npy", "state.000001.ildg", "momenta.000001.toml"]
        {
            assert_eq!(trajectory_of(other), None, "{other}");
        }
    }
}
