//! Output of a command's result. All results go through this module, so that only the first of several processes prints.
use super::{Failure, GlobalFlags, Outcome, provenance, terminal};
use ferrite_records::program::ErrorRecord;
use ferrite_records::{Record, object};
use serde::Serialize;
use serde_json::Value;
use std::cell::Cell;
use std::io::{ErrorKind, IsTerminal};

/// Assumed reader of standard output, which determines the form of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A person at a terminal, or with `--text`: results are text.
    Person,
    /// A program, with `--json`: results are one JSON object.
    Program,
    /// Unknown, because standard output is a file or a pipe: one JSON object, and the text on standard error.
    Both,
}

impl Reader {
    /// Determines the reader from `--json`, `--text` and whether standard output is a terminal. Under `mpirun`, standard output is often a
    /// terminal.
    pub fn of(global: &GlobalFlags) -> Self {
        match (global.json, global.text) {
            (true, _) => Reader::Program,
            (false, true) => Reader::Person,
            (false, false) if std::io::stdout().is_terminal() => Reader::Person,
            (false, false) => Reader::Both,
        }
    }
}

/// Record as printed, with the version and the commit of the program.
#[derive(Serialize)]
struct PrintedRecord<'a, R> {
    version: &'static str,
    commit: Option<&'static str>,
    #[serde(flatten)]
    record: &'a R,
}

/// Printer of results, as text or as one JSON object.
pub struct Output {
    reader: Reader,
    /// Whether text on standard error is left out.
    quiet: bool,
    speaks: bool,
    done: Cell<bool>,
}

impl Output {
    /// Returns the output of the process with the rank `rank`.
    pub fn new(rank: usize, reader: Reader, quiet: bool) -> Self {
        Self { reader, quiet, speaks: rank == 0, done: Cell::new(false) }
    }
    /// Prints the result of a command: the text, or the record with its schema and the version of the program.
    pub fn record<R: Record>(&self, record: &R, text: impl FnOnce() -> String) -> Outcome {
        if self.reader != Reader::Program {
            self.part(&text())?;
        }
        // If the command writes a file to standard output, the record must not follow it there. The text is already on standard error.
        if terminal::stdout_is_taken() && self.reader == Reader::Both {
            return Ok(());
        }
        if self.reader != Reader::Person { self.object(record) } else { Ok(()) }
    }
    /// Prints a result that is a text in itself, such as an input file. With `--json`, prints the record instead.
    pub fn document<R: Record>(&self, record: &R, text: &str) -> Outcome {
        if self.reader == Reader::Program { self.object(record) } else { self.write(text) }
    }
    /// Prints a part of a result for people as soon as it is known. Prints nothing if the output is JSON, where one object at the end has
    /// the whole result.
    pub fn part(&self, text: &str) -> Outcome {
        match self.reader {
            Reader::Person => self.write(text),
            Reader::Both if self.speaks && !self.quiet => {
                terminal::say(text);
                Ok(())
            }
            Reader::Both | Reader::Program => Ok(()),
        }
    }
    fn object<R: Record>(&self, record: &R) -> Outcome {
        self.done.set(true);
        let printed = PrintedRecord { version: env!("CARGO_PKG_VERSION"), commit: provenance::COMMIT, record };
        let mut all = object(&printed);
        all.insert("schema".into(), R::SCHEMA.into());
        self.write(&format!("{}\n", Value::Object(all)))
    }
    /// Prints the failure of a command: a sentence on standard error. If JSON goes to standard output and no result has been printed, also
    /// prints an object there.
    pub fn failure(&self, failure: &Failure) {
        if !self.speaks {
            return;
        }
        terminal::say(&format!("error: {}\n", failure.message));
        let is_taken = terminal::stdout_is_taken();
        if self.reader != Reader::Person && !self.done.get() && !(is_taken && self.reader == Reader::Both) {
            let _ = self.object(&ErrorRecord { error: failure.record() });
        }
    }
    fn write(&self, text: &str) -> Outcome {
        if !self.speaks {
            return Ok(());
        }
        if terminal::stdout_is_taken() {
            terminal::say(text);
            return Ok(());
        }
        match terminal::print(std::io::stdout().lock(), text) {
            // A reader that closes the pipe has read enough, as in `ferrite … | head -1`.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Failure::failed(format!("the result cannot be written to standard output: {error}"))),
            Ok(()) => Ok(()),
        }
    }
}
