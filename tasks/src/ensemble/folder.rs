//! Folder of a run: trajectories, configurations, and the states from which the run can resume.
//!
//! | file | content |
//! |---|---|
//! | `trajectories.jsonl` | one line for each trajectory |
//! | `cfg.NNNNNN.ildg` | links after trajectory N |
//! | `cfg.NNNNNN.toml` | state after trajectory N, for `--resume-from` |
//! | `momenta.NNNNNN.ildg` | momenta after trajectory N, if `trajectory.friction` keeps them |
//! | `state.toml`, `state.previous.toml` | last state, and the state before it |
//! | `state.NNNNNN.ildg` | links of these two states; their momenta are in `state.NNNNNN.momenta.ildg` |
//! | `before.K` | files that `--resume-from` has set aside |
//! | `.lock` | file that the process working in the folder keeps open |
//! | `report.html` | page that `ferrite report` makes from the trajectories |
//!
//! `state.toml` is written last and replaces its predecessor in one step, so that it always refers to complete files. When a run resumes,
//! lines after the state, including an incomplete one, are cut off. The state has checksums of itself, of its links and of its lines. In a
//! copy of the folder that was made during a run, these may belong to different trajectories. If one does not fit, the run resumes from the
//! previous state, which has other files.
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

/// Name of the file of the last state.
const LAST: &str = "state.toml";

/// Name of the file of the state before the last.
const PREVIOUS: &str = "state.previous.toml";

/// Beginning of a run: new, or from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The run is new.
    New,
    /// The run resumes from its last state.
    Last,
    /// The run resumes from its state after this trajectory.
    From(u32),
}

/// State and fields from which a run resumes, with the folder and the lines of the run.
pub struct FoundRun {
    /// Folder of the run.
    pub folder: RunFolder,
    /// State from which the run resumes.
    pub saved: Saved,
    /// This process's part of the links and momenta.
    pub fields: ChainFields,
    /// Lines of the trajectories up to the state, on rank 0; empty on other processes.
    pub lines: RunHistory,
}

/// Folder of a run, with the length and the checksum of the lines in `trajectories.jsonl`.
pub struct RunFolder {
    path: PathBuf,
    /// Precision of the files of links, which is that of the links in memory. Momenta are written in double precision.
    precision: FilePrecision,
    /// Length of `trajectories.jsonl` in bytes.
    bytes: u64,
    /// CRC-32 of the bytes of `trajectories.jsonl`, on rank 0.
    sum: crc32fast::Hasher,
    /// State in the file `state.toml`.
    last: Option<Saved>,
    /// File that keeps other processes out of the folder while it is open, on rank 0.
    lock: Option<File>,
}

/// This process's part of the fields from which a chain continues.
pub struct ChainFields {
    /// Links.
    pub gauge: HostGauge,
    /// Momenta; `None` if each trajectory draws new momenta.
    pub momenta: Option<HostGauge>,
}

/// Files of links and momenta that were written for a state, and whether copies are kept as a configuration.
pub struct WrittenLinks {
    links: StoredLinks,
    momenta: Option<StoredLinks>,
    kept: bool,
}

/// Returns the names of the files of a configuration: its links and its state.
fn configuration(trajectory: u32) -> [String; 2] {
    ["ildg", "toml"].map(|end| format!("cfg.{trajectory:06}.{end}"))
}

/// Returns the name of the file of momenta that belongs to a configuration. It does not begin with `cfg`, so that it is not taken for a
/// file of links.
fn momenta_of_configuration(trajectory: u32) -> String {
    format!("momenta.{trajectory:06}.ildg")
}

/// Returns the number of the trajectory to which a file of a configuration belongs, from the file's name.
fn trajectory_of(name: &str) -> Option<u32> {
    let of_links = name.strip_prefix("cfg.").and_then(|rest| rest.strip_suffix(".ildg").or(rest.strip_suffix(".toml")));
    let number = of_links.or_else(|| name.strip_prefix("momenta.")?.strip_suffix(".ildg"))?;
    number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl RunFolder {
    fn at(path: &Path, precision: FilePrecision) -> Self {
        RunFolder { path: path.into(), precision, bytes: 0, sum: crc32fast::Hasher::new(), last: None, lock: None }
    }
    /// *Collective.* Opens a folder for a new run, and creates it if it does not exist.
    pub fn create(path: &Path, precision: FilePrecision, comm: &RunCommunicator) -> Outcome<Self> {
        let mut folder = Self::at(path, precision);
        comm.once(|| {
            if [LAST, PREVIOUS].iter().any(|name| folder.file(name).exists()) {
                let why = "contains a run: continue the run with --resume, or choose another folder";
                return Err(Failure::refused(format!("{} {why}", path.display())));
            }
            let refused = |why| Failure::refused(format!("{} cannot be created: {why}", path.display()));
            fs::create_dir_all(path).map_err(refused)?;
            target::check_lines(&folder.lines()).map_err(Failure::refused)?;
            folder.lock()?;
            if fs::metadata(folder.lines()).is_ok_and(|lines| lines.len() > 0) {
                let why = format!(
                    "contains trajectories of a run but no state.toml to resume from: choose another folder, or move \
                     {FILE} away"
                );
                return Err(Failure::refused(format!("{} {why}", path.display())));
            }
            File::create(folder.lines()).map_err(|why| folder.failed(FILE, why))?;
            Ok(())
        })?;
        Ok(folder)
    }
    /// *Collective.* Locks the folder of a run and removes unfinished files from it. Returns the folder with the state and the fields from
    /// which the run resumes: those after trajectory `from`, or the last ones if `from` is `None`. If `from` is `None` and the last state
    /// or one of its files is damaged, the run resumes from the previous state.
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
                        format!("; the run cannot resume from the previous state, {PREVIOUS}, either")
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
    /// Fails if the folder has no state.
    fn has_states(&self) -> Outcome {
        if [LAST, PREVIOUS].iter().any(|name| self.file(name).exists()) {
            return Ok(());
        }
        let why = match fs::metadata(self.lines()) {
            Ok(lines) if lines.len() == 0 => {
                "contains a run that ended before its first state was written: start the run again without --resume"
            }
            Ok(_) => {
                "contains trajectories of a run but no state.toml to resume from: restore state.toml, or start in \
                 another folder"
            }
            Err(_) => "is not the folder of a run, because state.toml is missing: name the folder of a run",
        };
        Err(Failure::refused(format!("{} {why}", self.path.display())))
    }
    /// Returns the name of the file of the state after `trajectory`.
    fn state_after(&self, trajectory: u32) -> Outcome<String> {
        let [links, state] = configuration(trajectory);
        if self.file(&state).exists() {
            return Ok(state);
        }
        // The last and the previous state exist even without a configuration.
        let is_it = |name: &&str| Saved::read(&self.file(name)).is_ok_and(|saved| saved.state.trajectory == trajectory);
        if let Some(name) = [LAST, PREVIOUS].into_iter().find(|name| is_it(name)) {
            return Ok(name.into());
        }
        let folder = self.path.display();
        if self.file(&links).exists() {
            return Err(Failure::refused(format!(
                "{folder}: an earlier version of Ferrite wrote {links} without {state}: start in another folder with \
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
            [] => "no configuration was saved: resume after the last trajectory with --resume".into(),
            [one] => format!("only the configuration of trajectory {one} was saved"),
            [few @ .., last] if few.len() < 10 => {
                let few: Vec<String> = few.iter().map(u32::to_string).collect();
                format!("the configurations of trajectories {} and {last} were saved", few.join(", "))
            }
            [first, .., last] => {
                format!("{} configurations of trajectories from {first} to {last} were saved", there.len())
            }
        };
        let why =
            format!("--resume-from {trajectory}: the run has no configuration of trajectory {trajectory}; {which}");
        Err(Failure::refused(format!("{folder}: {why}")))
    }
    /// *Collective.* Returns a state with its links and lines if they fit together. The inner failure reports links on a lattice other than
    /// that of the input, which no other state could mend.
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
            let why = format!(
                "this run is on {lattice}, but the input has {}: restore the lattice of the run, or start in another \
                 folder",
                layout.lattice()
            );
            return Ok(Err(Failure::refused(format!("{}: {why}", self.path.display())).shared()));
        }
        let trajectory = saved.state.trajectory;
        let read = |stored: &StoredLinks, what: &str, reading: &Reading| {
            let path = self.file(&stored.name);
            let file = fields::read_gauge(&path, reading, layout, comm)?;
            let there = checksum(&file);
            if let Some(asked) = stored.checksum.as_ref().filter(|asked| there.as_ref() != Some(asked)) {
                let there =
                    there.as_deref().map_or("it has no checksum".into(), |there| format!("its checksum is {there}"));
                let why = format!(
                    "does not contain the {what} of trajectory {trajectory}, to which {name} refers: {there}, but \
                     {name} states {asked}; if the folder was copied during the run, copy it again when no process \
                     uses it"
                );
                return Err(Failure::refused(format!("{} {why}", path.display())).shared());
            }
            Ok((file.gauge, there))
        };
        let (gauge, there) = read(&saved.links, "links", &Reading::default())?;
        let momenta = saved.momenta.as_ref().map(|stored| read(stored, "momenta", &of_momenta())).transpose()?;
        if saved.lines.is_none() && comm.speaks() {
            info!(
                "{} was written by a version of Ferrite without checksums of states, and is checked against {FILE} \
                 only; the next trajectory adds a checksum",
                state.display()
            );
        }
        // A state of an earlier version has no checksum of the lines. The checksum has been computed by now, and is written when this state
        // becomes the previous one.
        saved.lines = Some(self.sum.clone().finalize());
        saved.links.checksum = there;
        Ok(Ok((saved, ChainFields { gauge, momenta: momenta.map(|(momenta, _)| momenta) }, lines)))
    }
    /// *Collective.* Prepares the folder so that the run resumes from its last state. Cuts off the lines that were written after this
    /// state.
    pub fn continue_from(&mut self, saved: &Saved, comm: &RunCommunicator) -> Outcome {
        self.bytes = saved.bytes;
        self.last = Some(saved.clone());
        comm.once(|| self.cut_lines())
    }
    fn cut_lines(&self) -> Outcome {
        let cut = || {
            let lines = OpenOptions::new().write(true).open(self.lines())?;
            // If the file is shorter than the state requires, only the end of its last line is missing: `lines_of` refuses other files.
            let length = lines.metadata()?.len();
            if length + 1 == self.bytes {
                lines.write_all_at(b"\n", length)?;
            }
            lines.set_len(self.bytes)?;
            lines.sync_all()
        };
        cut().map_err(|why| self.failed(FILE, why))
    }
    /// *Collective.* Prepares the folder so that the run resumes from a state other than the last one. First sets aside the configurations
    /// and lines after this state.
    pub fn go_back(&mut self, saved: &Saved, fields: &ChainFields, layout: &Layout, comm: &RunCommunicator) -> Outcome {
        comm.once(|| self.set_aside(saved))?;
        self.bytes = saved.bytes;
        // The run resumes from files of its own, because the user may move a configuration away.
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
    /// Moves the files of trajectories after the state into a new folder `before.K`, with a copy of all lines.
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
    /// Returns the lines that belong to a state. Fails if the file has other lines.
    fn lines_of(&mut self, saved: &Saved, name: &str) -> Outcome<RunHistory> {
        let (path, bytes) = (self.lines(), saved.bytes);
        let refused = |why: String| Err(Failure::refused(format!("{} {why}", path.display())));
        let all = match fs::read(&path) {
            // An editor may have removed the end of the last line. The checksum shows that nothing else is missing.
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
            return differs("bytes", bytes.to_string(), "end in the middle of a line".into());
        }
        if [count, last] != [u64::from(state.trajectory); 2] {
            return differs(
                "trajectory",
                state.trajectory.to_string(),
                format!("contain {}, up to trajectory {last}", text::count(count as usize, "line")),
            );
        }
        let accepted = run.trajectories.iter().filter(|one| one.accepted).count();
        if accepted != state.accepted as usize {
            return differs(
                "accepted",
                state.accepted.to_string(),
                format!("contain {}", text::count(accepted, "accepted trajectory")),
            );
        }
        let seed = |run: &Value| read_leniently::<RunSettings>(run).seed.filter(|seed| *seed != state.seed);
        let other = run.starts.iter().find_map(|(_, run)| seed(run));
        if let Some(other) = other {
            return differs("seed", state.seed.to_string(), format!("record the seed {other}"));
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
    /// Locks the folder against other processes, and removes incomplete files of a killed process.
    fn lock(&mut self) -> Outcome {
        if !self.path.is_dir() {
            return Ok(());
        }
        let file = target::lock(&self.path).map_err(Failure::refused)?;
        self.lock = Some(file);
        let left = atomic::remove_left(&self.path, |name| Self::is_own(Path::new(name)));
        left.map_err(|why| {
            Failure::failed(format!("unfinished files in {} cannot be removed: {why}", self.path.display()))
        })
    }
    /// Returns whether `path` has the name of a file that a run writes.
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
    /// *Collective.* Writes the links, and the momenta if trajectories keep them, from which the run can resume. With `save`, also writes
    /// them as a configuration in separate files, so that damage to one file does not affect the other.
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
        // Momenta are written in double precision: the third number on a diagonal is minus the sum of the other two, and single precision
        // cannot hold it.
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
    /// *Collective.* Records `state`, with the files `written` of its links, as the last state of the run. The former last state becomes
    /// the previous one.
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
                // An old file that cannot be removed takes space but does no harm.
                let _ = fs::remove_file(self.file(&name));
            }
        }
        Ok(())
    }
    /// *Collective.* Adds a line to `trajectories.jsonl`.
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
    /// *Collective.* Writes links or momenta in a precision, reads them back, and returns their checksum.
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
            Err(Failure::failed(format!(
                "{}: the file read back differs from the data that were written: check the file system",
                path.display()
            )))
        };
        comm.agree(same)
    }
}

/// Returns the options for reading momenta, whose matrices are not in SU(3).
fn of_momenta() -> Reading {
    Reading::default().of_any_links()
}

/// Returns the checksum of a file as text, from its header.
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
