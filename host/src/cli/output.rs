//! Standard output. Everything that the program prints as a result goes through here, so that of several processes
//! only the first one speaks.
use super::{Failure, Outcome, provenance};
use serde_json::{Value, json};
use std::cell::Cell;
use std::io::{ErrorKind, Write};

/// Prints results: as text, or as one JSON object.
pub struct Output {
    json: bool,
    speaks: bool,
    done: Cell<bool>,
}

impl Output {
    /// For the process with this rank.
    pub fn new(rank: usize, json: bool) -> Self {
        Self { json, speaks: rank == 0, done: Cell::new(false) }
    }
    /// Whether this process is the one that prints.
    pub fn speaks(&self) -> bool {
        self.speaks
    }
    /// Prints the result of a command: `text`, or `object` with the name of its schema and the program's version.
    pub fn result(&self, schema: &str, object: Value, text: impl FnOnce() -> String) -> Outcome {
        self.done.set(true);
        if self.json {
            let mut all =
                json!({ "schema": schema, "version": env!("CARGO_PKG_VERSION"), "commit": provenance::COMMIT });
            if let (Value::Object(all), Value::Object(object)) = (&mut all, object) {
                all.extend(object);
            }
            self.write(&format!("{all}\n"))
        } else {
            self.write(&text())
        }
    }
    /// Prints a part of a result as soon as it is there, for people; with JSON everything is one object at the end.
    pub fn part(&self, text: &str) -> Outcome {
        if self.json { Ok(()) } else { self.write(text) }
    }
    /// Prints why a command failed: a sentence on standard error, and an object on standard output if JSON was asked
    /// for and no result has been printed.
    pub fn failure(&self, failure: &Failure) {
        if !self.speaks {
            return;
        }
        // There is nobody left to tell if standard error is closed.
        let _ = writeln!(std::io::stderr(), "error: {}", failure.message);
        if self.json && !self.done.get() {
            let error = json!({ "message": failure.message, "exit_code": failure.code.number() });
            let _ = self.result("ferrite.error/1", json!({ "error": error }), String::new);
        }
    }
    fn write(&self, text: &str) -> Outcome {
        if !self.speaks {
            return Ok(());
        }
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            // Whoever reads has seen enough: `ferrite … | head -1`.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Failure::failed(format!("the result cannot be written to standard output: {error}"))),
            Ok(()) => Ok(()),
        }
    }
}
