//! Propagators kept in a folder, and checks whether results belong to the same input.
use super::account::SolveAccount;
use super::input::SpectrumInput;
use crate::communicator::RunCommunicator;
use crate::configured::{Configured, Match};
use crate::failure::ReadBy;
use crate::layout::Layout;
use crate::{Failure, Outcome, fields, target, text};
use ferrite::field::host::{Fermion, HostField};
use ferrite::files::payload::checksum_of_fields;
use ferrite::files::{self, Problem, ReadOptions};
use ferrite::lattice::Lattice;
use ferrite::system::atomic;
use ferrite_records::read::read;
use ferrite_records::spectrum::{PropagatorRecord, SolveNote};
use ferrite_records::{Record, object};
use ferrite_report::records::inputs;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracing::{info, warn};

/// Files of a kept propagator: an array, and a record of its configuration and input.
pub struct KeptPropagator {
    array: PathBuf,
    about: PathBuf,
    input: Value,
}

impl KeptPropagator {
    /// Returns the files of the propagator of a quark from a source position on a configuration; `None` if propagators are not kept. The
    /// names of the files contain the quark and the source position if there are several.
    pub fn of(input: &SpectrumInput, configuration: &Configured, quark: usize, origin: [usize; 4]) -> Option<Self> {
        let folder = input.propagators.as_ref()?;
        let mut name = typed_name(configuration);
        if input.quarks.len() > 1 {
            name += &format!(".{}", input.quarks[quark].name);
        }
        if input.has_several_origins() {
            name += &format!(".{}", origin.map(|x| x.to_string()).join("_"));
        }
        let place = |ending: &str| folder.join(format!("{name}.{ending}"));
        let input = Value::Object(object(&input.of_propagator(quark, origin)));
        Some(KeptPropagator { array: place("npy"), about: place("json"), input })
    }
    /// Returns the files of the propagators of all quarks from all source positions on a configuration.
    fn all<'a>(
        input: &'a SpectrumInput,
        configuration: &'a Configured,
        lattice: Lattice,
    ) -> impl Iterator<Item = Self> + 'a {
        let origins = input.origins(lattice).into_iter();
        let of_quarks = move |origin| (0..input.quarks.len()).map(move |quark| (quark, origin));
        origins
            .flat_map(of_quarks)
            .filter_map(|(quark, origin)| KeptPropagator::of(input, configuration, quark, origin))
    }
    /// *Collective.* Checks before the first solve that the configurations have different names in the folder, and that existing
    /// propagators belong to their links and to this input.
    pub fn check_all(
        input: &SpectrumInput,
        configurations: &mut [Configured],
        lattice: Lattice,
        comm: &RunCommunicator,
    ) -> Outcome {
        let Some(folder) = &input.propagators else { return Ok(()) };
        let mut names: HashMap<String, &Path> = HashMap::new();
        for configuration in configurations.iter() {
            let name = typed_name(configuration);
            if let Some(first) = names.insert(name.clone(), &configuration.typed) {
                let (first, second, folder) = (first.display(), configuration.typed.display(), folder.display());
                let why = format!(
                    "{first} and {second} would both store propagators in files that begin with {folder}/{name}: \
                     measure them in two runs with different propagators = \"FOLDER\""
                );
                return Err(Failure::refused(why).shared());
            }
        }
        comm.once(|| {
            for configuration in configurations.iter_mut() {
                let all: Vec<_> = KeptPropagator::all(input, configuration, lattice).collect();
                for kept in all.iter().filter(|kept| kept.is_there()) {
                    kept.check(configuration)?;
                }
            }
            Ok(())
        })
    }
    /// Returns the files of propagators that will be written for configurations.
    pub fn to_write(input: &SpectrumInput, configurations: &[Configured], lattice: Lattice) -> Vec<PathBuf> {
        let all = configurations.iter().flat_map(|one| KeptPropagator::all(input, one, lattice));
        all.filter(|kept| !kept.is_there()).flat_map(|kept| [kept.array, kept.about]).collect()
    }
    fn is_there(&self) -> bool {
        self.array.is_file() && self.about.is_file()
    }
    /// *Collective.* Returns the fields of a kept propagator; `None` if it does not exist or is damaged. A warning names a damaged file.
    ///
    /// # Errors
    /// Fields of another configuration or input, and files that cannot be read.
    pub fn read<T: Fermion>(
        &self,
        configuration: &mut Configured,
        layout: &Layout,
        comm: &RunCommunicator,
    ) -> Outcome<Option<KeptFields<T>>> {
        if comm.largest(f64::from(u8::from(!self.is_there())))? > 0.0 {
            return Ok(None);
        }
        let mut mine = String::new();
        comm.once(|| {
            mine = serde_json::to_string(&self.check(configuration)?).map_err(Failure::failed)?;
            Ok(())
        })?;
        let about = comm.texts(&mine)?.swap_remove(0);
        let about: PropagatorRecord = serde_json::from_str(&about).map_err(|why| {
            Failure::failed(format!("the processes could not exchange {}: {why}", self.about.display()))
        })?;
        match self.whole(&about, layout)? {
            Ok(fields) => Ok(Some(KeptFields { fields, solved: about.solve })),
            Err(why) => {
                self.warn_of_another_solve(&why);
                Ok(None)
            }
        }
    }
    /// *Collective.* Returns the fields of the array, or a sentence that describes its damage.
    fn whole<T: Fermion>(
        &self,
        about: &PropagatorRecord,
        layout: &Layout,
    ) -> Outcome<Result<Vec<HostField<T>>, String>> {
        let options = ReadOptions { lattice: Some(layout.lattice()), ..Default::default() };
        let fields = match files::read_fermions::<T>(layout.share(&self.array), &options) {
            Ok(file) => file.fields,
            Err(error) if matches!(error.problem, Problem::Io { .. } | Problem::Comm(_)) => {
                return Err(Failure::reading(&error, ReadBy::Convert));
            }
            Err(error) => return Ok(Err(error.problem.to_string())),
        };
        if fields.len() != T::COMPONENTS {
            let found = text::count(fields.len(), "field");
            return Ok(Err(format!("the file holds {found}, but a propagator has {}", T::COMPONENTS)));
        }
        let Some(noted) = &about.checksum else {
            // Arrays of earlier versions have no checksum. The true residual shows whether they are complete.
            return Ok(Ok(fields));
        };
        let found = self.checksum(&fields, layout)?;
        if found == *noted {
            return Ok(Ok(fields));
        }
        Ok(Err(format!(
            "the checksum of the data is {found}, but {} records {noted}: the file was damaged after it was written",
            self.about.display()
        )))
    }
    /// *Collective.* Returns the checksum of the fields of a propagator.
    fn checksum<T: Fermion>(&self, fields: &[HostField<T>], layout: &Layout) -> Outcome<String> {
        let found = checksum_of_fields(fields, &layout.section, layout.network());
        found.map_err(|why| Failure::failed(format!("{}: {why}", self.array.display())))
    }
    /// Warns that the propagator is computed again, and why.
    pub fn warn_of_another_solve(&self, why: &str) {
        warn!("{}: {why}; the propagator is computed again, and the file is replaced", self.array.display());
    }
    /// Logs that the propagator was read, with its true residual.
    pub fn note_reading(&self, true_residual: f64) {
        info!("{}: read the propagator; |b - Mx| / |b| = {true_residual:.3e}", self.array.display());
    }
    /// Reads the record beside the array. Fails if it belongs to another configuration or input. Called on one process.
    fn check(&self, configuration: &mut Configured) -> Outcome<PropagatorRecord> {
        let shown = self.about.display();
        let text = std::fs::read_to_string(&self.about);
        let text = text.map_err(|why| Failure::refused(format!("{shown} cannot be read: {why}")))?;
        let known: Value = serde_json::from_str(&text).map_err(|why| {
            let array = self.array.display();
            let why = format!("{shown} is not JSON: {why}; remove {shown} to compute the propagator {array} again");
            Failure::refused(why)
        })?;
        let known: PropagatorRecord = read(&known).map_err(|why| Failure::refused(format!("{shown}: {why}")))?;
        if let Some(what) = difference(&known.input, &self.input) {
            let why =
                format!("{} was made with another value of input.{what}: name another folder", self.array.display());
            return Err(Failure::refused(why));
        }
        let PropagatorRecord { configuration: canonical, content, .. } = &known;
        match configuration.compare(canonical, content.as_ref(), written(&self.array))? {
            Match::Same if content.is_none() => {
                let array = self.array.display();
                warn!(
                    "{shown} was written by an earlier version and does not record the contents of the configuration: \
                     changes of the links cannot be detected; remove {shown} and {array} to compute the propagator again"
                );
                Ok(known)
            }
            Match::Same => Ok(known),
            found @ (Match::Other | Match::Replaced) => {
                let (array, typed) = (self.array.display(), configuration.typed.display());
                let what = if found == Match::Replaced {
                    format!("before the links of {typed} changed")
                } else {
                    format!("with the configuration {canonical}, not with {typed}")
                };
                let why = format!("{array} was made {what}: name another folder, or remove the propagator");
                Err(Failure::refused(why))
            }
        }
    }
    /// *Collective.* Writes the fields, and then the record with their configuration, input and solve.
    pub fn write<T: Fermion>(
        &self,
        configuration: &mut Configured,
        (fields, solved): (&[HostField<T>], &SolveAccount),
        title: &str,
        layout: &Layout,
        comm: &RunCommunicator,
    ) -> Outcome {
        let content = configuration.hold(comm)?.clone();
        fields::write_fermions(&self.array, fields, title, layout)?;
        let about = PropagatorRecord {
            configuration: configuration.canonical.clone(),
            content: Some(content),
            checksum: Some(self.checksum(fields, layout)?),
            solve: solved.note.clone(),
            input: self.input.clone(),
        };
        let about = about.with_schema();
        comm.once(|| target::write_text(&self.about, &format!("{about:#}\n")).map_err(Failure::failed))
    }
}

/// Fields of a propagator that was read, with the record of its solve.
pub struct KeptFields<T> {
    /// Columns of the propagator, one for each component of the source.
    pub fields: Vec<HostField<T>>,
    /// Record of the solve; empty for propagators of an earlier version.
    pub solved: SolveNote,
}

/// Removes incomplete files that killed processes left in the folder of propagators.
pub fn sweep(folder: &Path) -> std::io::Result<()> {
    let removed = atomic::remove_abandoned(folder, |name| [".npy", ".json"].iter().any(|end| name.ends_with(end)))?;
    if removed > 0 {
        info!("{}: removed {} of a run that was killed", folder.display(), text::count(removed, "half-written file"));
    }
    Ok(())
}

/// Returns the time at which a file was last written; `None` if it cannot be determined.
pub fn written(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|about| about.modified()).ok()
}

/// Returns the name of a configuration's file as typed, without its folders.
fn typed_name(configuration: &Configured) -> String {
    configuration.typed.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns the first key, with its tables, in which the meaning of two inputs differs. Values of `solve` are texts as typed and are
/// compared as numbers; missing keys have their defaults.
pub fn difference(old: &Value, new: &Value) -> Option<String> {
    inputs::difference(old, new).map(|found| found.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::operators::{ALIASES, OPERATORS};
    use serde_json::json;

    #[test]
    fn differences_have_the_names_of_keys() {
        let a = json!({ "source": "point", "solve": { "mass": "0.1", "tol": "1e-9" } });
        let mut b = a.clone();
        assert_eq!(difference(&a, &b), None);
        b["solve"]["mass"] = json!("0.2");
        assert_eq!(difference(&a, &b).as_deref(), Some("solve.mass"));
        b["solve"]["mass"] = json!("0.1");
        b["solve"]["csw"] = json!("1");
        assert_eq!(difference(&a, &b).as_deref(), Some("solve.csw"));
    }

    /// Each parameter of each operator on which solutions depend makes another propagator.
    #[test]
    fn propagators_differ_by_every_parameter() {
        for definition in OPERATORS {
            let mut all = json!({ "operator": definition.name });
            let keys = || definition.all_keys().filter(|key| !key.technical);
            for key in keys() {
                all[key.name] = json!(key.example.trim_matches('"'));
            }
            let input = |solve: &Value| json!({ "solve": solve });
            for key in keys() {
                let mut other = all.clone();
                other[key.name] = json!("0.123");
                let found = difference(&input(&all), &input(&other));
                assert_eq!(found, Some(format!("solve.{}", key.name)), "{}", definition.name);
                // And it is noted in the first place.
                assert!(crate::keys::physics().any(|known| known == key.name), "{}", key.name);
            }
            for other in OPERATORS.into_iter().filter(|other| *other != definition) {
                let mut of_other = all.clone();
                of_other["operator"] = json!(other.name);
                assert!(difference(&input(&all), &input(&of_other)).is_some(), "{} {}", definition.name, other.name);
            }
        }
    }

    /// Each default of an operator's key is known where inputs are compared.
    #[test]
    fn defaults_of_operators_mean_nothing() {
        for definition in OPERATORS {
            let plain = json!({ "solve": { "operator": definition.name } });
            let keys = definition.all_keys().filter(|key| !key.technical);
            for (name, default) in keys.filter_map(|key| Some((key.name, key.default?))) {
                let mut given = plain.clone();
                given["solve"][name] = json!(default);
                assert_eq!(difference(&plain, &given), None, "{}", definition.name);
            }
        }
        for (alias, own) in ALIASES {
            let [given, plain] = [alias, own].map(|name| json!({ "solve": { "operator": name } }));
            assert_eq!(difference(&plain, &given), None, "{alias}");
        }
    }

    /// As typed, 0.050 and 5e-2 differ, and so does a default from nothing.
    #[test]
    fn inputs_are_compared_by_what_they_mean() {
        let input = |solve: Value| json!({ "source": "point", "solve": solve });
        for (a, b) in [
            (json!({ "operator": "wilson", "mass": "0.05" }), json!({ "operator": "wilson", "mass": "0.050" })),
            (
                json!({ "operator": "clover", "csw": "1", "mass": "5e-2" }),
                json!({ "operator": "clover", "csw": "1.0", "mass": "0.05", "u0": "1", "xi": "1.0", "nu": "1" }),
            ),
            (
                json!({ "operator": "asqtad", "mass": "0.1" }),
                json!({ "operator": "asqtad", "mass": "0.1", "bc-time": "antiperiodic", "phases": "milc", "u0": "1",
                        "spread-boundary": "false", "tol": "1e-10", "record": "0", "reunitarise": "false" }),
            ),
            (
                json!({ "operator": "hisq", "mass": "0.1" }),
                json!({ "operator": "hisq", "mass": "0.1", "naik-epsilon": "0.0" }),
            ),
            (
                json!({ "operator": "wilson", "mass": "0.1" }),
                json!({ "operator": "wilson", "mass": "0.1", "theta": "0.0, 0,0.0,0" }),
            ),
        ] {
            assert_eq!(difference(&input(a), &input(b)), None);
        }
        let plain = json!({ "operator": "asqtad", "mass": "0.1" });
        for (key, value) in [("bc-time", "periodic"), ("u0", "plaquette"), ("u0", "0.9"), ("tol", "1e-9"), ("csw", "1")]
        {
            let mut other = plain.clone();
            other[key] = json!(value);
            assert_eq!(difference(&input(plain.clone()), &input(other)), Some(format!("solve.{key}")));
        }
    }
}
