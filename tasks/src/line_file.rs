//! The file of `--output` of commands that measure. It has one line for each finished configuration, so that the same command resumes.
use super::communicator::RunCommunicator;
use super::configured::{Configured, Match};
use super::session::Session;
use super::{Failure, Outcome, target};
use ferrite_records::measure::{ConfigurationLine, LineOrigin};
use ferrite_records::read::{read, schema};
use serde_json::{Map, Value};
use std::fs::File;
use std::path::{Path, PathBuf};
use tracing::info;

/// Beginning of each line. JSON has its keys in alphabetical order, so `absolute` is the first.
const BEGIN: &str = "{\"absolute\":";

/// File with one line of JSON for each configuration.
pub struct LineFile<L> {
    path: PathBuf,
    /// Keys of the input on which the lines depend.
    input: Map<String, Value>,
    /// Lines that were in the file when it was opened.
    lines: Vec<L>,
    /// File that keeps other processes away while it is open, on rank 0.
    _lock: Option<File>,
}

impl<L: ConfigurationLine> LineFile<L> {
    /// *Collective.* Opens the file and reads its lines. Fails, without changing the file, if a line belongs to another input or the file
    /// is not one of such lines, for example a configuration.
    pub fn open(
        path: PathBuf,
        input: Map<String, Value>,
        configurations: &[Configured],
        comm: &RunCommunicator,
    ) -> Outcome<Self> {
        let (mut found, mut lock) = (target::Lines::default(), None);
        let read: Vec<&Path> = configurations.iter().map(|configuration| configuration.typed.as_path()).collect();
        target::claim(comm, &read, &[&path])?;
        comm.once(|| {
            target::check_lines(&path).map_err(Failure::refused)?;
            // The file is locked before it is read, so that no other process adds lines in between.
            lock = Some(target::lock_file(&path).map_err(Failure::refused)?);
            found = target::lines(&path, BEGIN).map_err(Failure::refused)?;
            Ok(())
        })?;
        // All processes continue with the lines that the first process read.
        let text = comm.texts(&found.text)?.swap_remove(0);
        let mut record = LineFile { path, input, lines: Vec::new(), _lock: lock };
        for line in text.lines() {
            let value: Value =
                serde_json::from_str(line).map_err(|why| record.wrong(format!("this is not JSON: {why}")))?;
            record.lines.push(record.checked(&value)?);
        }
        // The last line is mended only after all lines have proved to be lines of this command.
        comm.once(|| target::mend_last_line(&record.path, &found).map_err(Failure::failed))?;
        Ok(record)
    }
    /// Returns the failure for the line that follows those read so far.
    fn wrong(&self, why: String) -> Failure {
        Failure::refused(format!("{}, line {}: {why}", self.path.display(), self.lines.len() + 1)).shared()
    }
    fn checked(&self, line: &Value) -> Outcome<L> {
        match schema(line) {
            Some(schema) if schema == L::SCHEMA => {}
            None if line["plaquette"].is_object() => {
                let why = "an earlier version wrote this line, without a checksum of the configuration: name another \
                           file";
                return Err(self.wrong(why.into()));
            }
            None => return Err(self.wrong("the line has no schema: name another file".into())),
            Some(found) => {
                return Err(self.wrong(format!("the schema is {found} instead of {}: name another file", L::SCHEMA)));
            }
        }
        if let Some((key, _)) = self.input.iter().find(|(key, value)| line["input"][key] != **value) {
            return Err(self.wrong(format!("the line was made with another value of {key}: name another file")));
        }
        let line: L = read(line).map_err(|why| self.wrong(why))?;
        match line.origin() {
            LineOrigin { absolute: Some(_), content: Some(_), .. } => Ok(line),
            _ => {
                Err(self.wrong("the key absolute or content is missing: restore the line, or name another file".into()))
            }
        }
    }
    /// *Collective.* Returns the line of a configuration, or `None`. Fails if the file has a line for other links at the same path.
    pub fn find(&self, configuration: &mut Configured, comm: &RunCommunicator) -> Outcome<Option<L>> {
        let mut found = None;
        comm.once(|| {
            for (number, line) in self.lines.iter().enumerate() {
                let LineOrigin { absolute, content, .. } = line.origin();
                match configuration.compare(absolute.as_deref().unwrap_or_default(), content.as_ref(), None)? {
                    Match::Other => {}
                    Match::Same => {
                        found = Some(number);
                        return Ok(());
                    }
                    Match::Replaced => {
                        return Err(Failure::refused(format!(
                            "the links in {} have changed since line {} of {} was written: name another output file, \
                             or delete the line to measure the configuration again",
                            configuration.typed.display(),
                            number + 1,
                            self.path.display()
                        )));
                    }
                }
            }
            Ok(())
        })?;
        let number = comm.texts(&found.map_or(String::new(), |number| number.to_string()))?.swap_remove(0);
        Ok(number.parse::<usize>().ok().and_then(|number| self.lines.get(number).cloned()))
    }
    /// *Collective.* Adds the line of a configuration to the file, and returns the line.
    pub fn add(&self, configuration: &mut Configured, found: L, comm: &RunCommunicator) -> Outcome<L> {
        let line = found.with_origin(LineOrigin {
            schema: Some(L::SCHEMA.into()),
            absolute: Some(configuration.canonical.clone()),
            content: Some(configuration.hold(comm)?.clone()),
            input: Some(Value::Object(self.input.clone())),
        });
        let object = Value::Object(line.object());
        comm.once(|| target::append_line(&self.path, &object).map_err(Failure::failed))?;
        Ok(line)
    }
}

/// *Collective.* Measures configurations in order, each with the data given for it. With a file `record`, skips configurations that have a
/// line in it or occur twice. Returns the lines of all configurations. If a measurement fails after the first line, returns the lines so
/// far together with the failure.
///
/// # Errors
/// Failures before there is a line.
pub fn measure_all<T, L: ConfigurationLine>(
    record: Option<&LineFile<L>>,
    configurations: impl IntoIterator<Item = (Configured, T)>,
    session: &Session,
    mut one: impl FnMut(&mut Configured, T) -> Outcome<L>,
) -> Outcome<(Vec<L>, Outcome)> {
    let comm = &session.comm;
    // Lines in the file are looked up before the first measurement, so that mistakes are found early.
    let mut rest: Vec<(Configured, T, Option<L>)> = Vec::new();
    for (mut configuration, known) in configurations {
        let there = record.map(|record| record.find(&mut configuration, comm)).transpose()?.flatten();
        if record.is_some() && configuration.is_among(rest.iter_mut().map(|(other, ..)| other), comm)? {
            continue;
        }
        rest.push((configuration, known, there));
    }
    session.listen();
    let mut lines = Vec::new();
    for (mut configuration, known, there) in rest {
        if let Some(line) = there {
            info!("{}: already done", configuration.typed.display());
            lines.push(line);
            continue;
        }
        match one(&mut configuration, known) {
            Ok(line) => lines.push(line),
            Err(failure) if lines.is_empty() => return Err(failure),
            Err(failure) => return Ok((lines, Err(failure))),
        }
    }
    Ok((lines, Ok(())))
}
