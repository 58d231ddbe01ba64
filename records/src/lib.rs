//! The JSON objects that Ferrite prints and the lines that it keeps in files, as types. The program, the Python package and other
//! interfaces write them, and reports read them, so that every key is defined once. Comments of fields are the
//! tables of keys in `docs/output.md` of the repository: `cargo xtask book --keys` writes them.
//!
//! | module | records |
//! |---|---|
//! | [`bench`](mod@bench) | benchmarks |
//! | [`configuration`] | files of configurations |
//! | [`ensemble`] | trajectories, settings and summaries of ensembles; forces |
//! | [`fit`] | fits, estimates with errors |
//! | [`links`] | gauge fields that are generated, changed, converted or verified |
//! | [`measure`] | measurements and traces on configurations |
//! | [`observables`] | observables of links |
//! | [`place`] | place of a computation: backend, device, processes |
//! | [`operator`] | operators with their links and sources; `ferrite apply`, eigenvalues |
//! | [`spectrum`] | correlators, and their summary |
//! | [`solve`] | solves with one operator, and for several masses or shifts |
//! | [`kernels`] | times of kernels |
//! | [`program`] | errors, the machine, inputs, block sizes, predictions |
//! | [`progress`] | progress of long tasks |
//! | [`rational`] | rational functions |
//! | [`report`] | reports |
//! | [`read`] | reading of records |
//! | [`real`] | numbers that are `null` if they are not finite |
//!
//! A record is an object with a [`Record::SCHEMA`], such as `ferrite.solve/1`. Within a version of a schema keys may be added, but none
//! is removed and none changes its meaning.
#![forbid(unsafe_code)]

pub mod bench;
pub mod configuration;
pub mod ensemble;
pub mod fit;
pub mod kernels;
pub mod links;
pub mod measure;
pub mod observables;
pub mod operator;
pub mod place;
pub mod program;
pub mod progress;
pub mod rational;
pub mod read;
pub mod real;
pub mod report;
pub mod solve;
pub mod spectrum;

use serde::Serialize;
use serde_json::{Map, Value};

/// JSON object whose key `schema` names the kind of the object and the version of its keys.
pub trait Record: Serialize {
    /// Name and version of the keys, such as `ferrite.solve/1`.
    const SCHEMA: &'static str;

    /// Returns the object without its schema. Numbers that are not finite are `null`.
    ///
    /// # Panics
    /// If the type is not an object, which is an error in its definition.
    fn object(&self) -> Map<String, Value> {
        object(self)
    }
    /// Returns the JSON object with its schema, as written to files.
    fn with_schema(&self) -> Value {
        let mut object = self.object();
        object.insert("schema".into(), Self::SCHEMA.into());
        Value::Object(object)
    }
}

/// Converts a type with named fields to a JSON object. Numbers that are not finite become `null`.
///
/// # Panics
/// If the type is not an object, which is an error in its definition.
pub fn object<T: Serialize + ?Sized>(fields: &T) -> Map<String, Value> {
    match serde_json::to_value(fields) {
        Ok(Value::Object(object)) => object,
        other => panic!("a record is an object with texts as keys: {other:?}"),
    }
}
