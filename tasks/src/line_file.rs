//! The file of `--output` of commands that measure: a line for each configuration that is done, so that the same command resumes.
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

/// Beginning of each line: JSON has its keys in alphabetical order.
const BEGIN: &str = "{\"absolute\":";

/// A file of lines.
pub struct LineFile<L> {
    path: PathBuf,
    /// Keys of the input that determine what is measured.
    input: Map<String, Value>,
    /// Lines that the file had.
    lines: Vec<L>,
    /// Keeps other processes away as long as it is open; with rank 0.
    _lock: Option<File>,
}

impl<L: ConfigurationLine> LineFile<L> {
    /// *Collective.* Opens the file and reads its lines. Refuses a line that was made with another input, and a file that is one of the
    /// configurations or anything else, which is left as it is.
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
            // The lock comes before reading, so that no other process adds lines meanwhile.
            lock = Some(target::lock_file(&path).map_err(Failure::refused)?);
            found = target::lines(&path, BEGIN).map_err(Failure::refused)?;
            Ok(())
        })?;
        // All processes get what the first one finds.
        let text = comm.texts(&found.text)?.swap_remove(0);
        let mut record = LineFile { path, input, lines: Vec::new(), _lock: lock };
        for line in text.lines() {
            let value: Value =
                serde_json::from_str(line).map_err(|why| record.wrong(format!("this is not JSON: {why}")))?;
            record.lines.push(record.checked(&value)?);
        }
        // Not before all lines have turned out to be ours.
        comm.once(|| target::mend_last_line(&record.path, &found).map_err(Failure::failed))?;
        Ok(record)
    }
    /// Returns the failure of a wrong line, the one after those that were read.
    fn wrong(&self, why: String) -> Failure {
        Failure::refused(format!("{}, line {}: {why}", self.path.display(), self.lines.len() + 1)).shared()
    }
    fn checked(&self, line: &Value) -> Outcome<L> {
        match schema(line) {
            Some(schema) if schema == L::SCHEMA => {}
            None if line["plaquette"].is_object() => {
                let why = "an earlier version wrote this line without the contents of the file: name another file";
                return Err(self.wrong(why.into()));
            }
            _ => return Err(self.wrong(format!("the schema is not {}: name another file", L::SCHEMA))),
        }
        if let Some((key, _)) = self.input.iter().find(|(key, value)| line["input"][key] != **value) {
            return Err(self.wrong(format!("it was made with another value of {key}: name another file")));
        }
        let line: L = read(line).map_err(|why| self.wrong(why))?;
        match line.origin() {
            LineOrigin { absolute: Some(_), content: Some(_), .. } => Ok(line),
            _ => Err(self.wrong("absolute or content is missing".into())),
        }
    }
    /// *Collective.* Returns the line of a configuration, if there is one. Refuses a line of a file at this place that held other links.
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
                            "the links in {} have changed since line {} of {} was made from them: name another file, \
                             or delete the line to measure it again",
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
    /// *Collective.* Adds the line of a configuration.
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

/// *Collective.* Measures configurations one after the other, each with the data known beforehand, but for those that have a line of
/// `record` or are listed twice. Returns the lines of all of them, and how the measurement ended: lines from before a failure are a
/// result.
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
    // The lines that exist, before the first measurement.
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
