//! Requests of other languages as JSON objects. Keys are those of input files and of Python; `-` and `_` in them mean the same.
use crate::ensemble::chain::{ChainRequest, NamedGaugeAction, NamedQuarks};
use crate::parameters::{self, NamedOperator, name_of};
use crate::solver::SolverSettings;
use crate::spectrum::contraction::Contraction;
use crate::{Failure, Outcome};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Object of options, whose names have `_` between words.
pub struct JsonOptions(Map<String, Value>);

impl JsonOptions {
    /// Reads a JSON object. An empty text has no options.
    ///
    /// # Errors
    /// Texts that are no JSON objects, and keys that occur twice.
    pub fn read(text: &str) -> Outcome<Self> {
        if text.trim().is_empty() {
            return Ok(JsonOptions(Map::new()));
        }
        let given: Map<String, Value> =
            serde_json::from_str(text).map_err(|why| Failure::refused(format!("options: not a JSON object: {why}")))?;
        let mut options = Map::new();
        for (key, value) in given {
            let name = name_of(&key);
            if options.insert(name.clone(), value).is_some() {
                return Err(Failure::refused(format!("options: {name} is given twice")));
            }
        }
        Ok(JsonOptions(options))
    }
    /// Removes and returns an option; `None` if it is not given or null.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }
    /// Removes and returns an option of type `T`, or its default.
    ///
    /// # Errors
    /// Another type.
    pub fn take_or<T: DeserializeOwned>(&mut self, name: &str, default: T) -> Outcome<T> {
        self.take(name).map_or(Ok(default), |value| of_type(name, value))
    }
    /// Removes and returns an option that has no default.
    ///
    /// # Errors
    /// An option that is not given, and another type.
    pub fn needed<T: DeserializeOwned>(&mut self, name: &str) -> Outcome<T> {
        let value = self.take(name).ok_or_else(|| Failure::refused(format!("options: {name} is missing")))?;
        of_type(name, value)
    }
    /// Fails if options are left; `known` are the names of all options.
    ///
    /// # Errors
    /// The first option that is left.
    pub fn finish(self, known: &[&str]) -> Outcome {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => {
                let all = if known.is_empty() { "none".into() } else { known.join(", ") };
                Err(Failure::refused(format!("options: {name} is not an option here; the options are {all}")))
            }
        }
    }
    /// Returns the options as a request of type `T`, which refuses options that it does not have.
    ///
    /// # Errors
    /// Missing or unknown options, and values of another type.
    pub fn request<T: DeserializeOwned>(self) -> Outcome<T> {
        serde_json::from_value(Value::Object(self.0)).map_err(|why| Failure::refused(format!("options: {why}")))
    }
    /// Returns the operator that the option `operator` names, with its parameters.
    ///
    /// # Errors
    /// Everything that is wrong with the parameters.
    pub fn operator(mut self) -> Outcome<NamedOperator> {
        let name: String = self.needed("operator")?;
        parameters::operator(&name, texts(self.0)?)
    }
    /// Returns the settings of a solve. Multigrid parameters may have the prefix `mg_`, and parameters of methods, such as `idr_s`, are
    /// among the other options.
    ///
    /// # Errors
    /// Unknown options, and values of another type.
    pub fn solver(self) -> Outcome<SolverSettings> {
        let counts = SolverSettings::names_of_counts();
        let (mut settings, mut of_methods) = (Map::new(), Map::new());
        for (name, value) in self.0 {
            let short = name.strip_prefix("mg_").unwrap_or(&name);
            if SolverSettings::NAMES.contains(&short) {
                let is_text = short == "reconstruct" && value.is_number();
                settings.insert(short.into(), if is_text { value.to_string().into() } else { value });
            } else if counts.contains(&name) {
                of_methods.insert(name, value);
            } else {
                let all = SolverSettings::NAMES.iter().copied().chain(counts.iter().map(String::as_str));
                let all = all.collect::<Vec<_>>().join(", ");
                return Err(Failure::refused(format!("options: {name} is not a setting of a solve; these are {all}")));
            }
        }
        settings.insert("counts".into(), of_methods.into());
        JsonOptions(settings).request()
    }
    /// Returns the request for a Markov chain. Parameters of operators are among the other keys of each entry of `quarks`.
    ///
    /// # Errors
    /// Missing or unknown options, and values of another type.
    pub fn chain(mut self) -> Outcome<ChainRequest> {
        let quarks: Vec<Map<String, Value>> = self.take_or("quarks", Vec::new())?;
        let gauge = JsonOptions::nested(self.needed("gauge")?).gauge_options()?;
        self.0.insert("gauge".into(), gauge.0.into());
        let quarks = quarks.into_iter().enumerate().map(|(number, quark)| {
            let mut options = JsonOptions::nested(quark);
            let title = format!("{} quarks {}", options.0.get("operator").map_or("", text), number + 1);
            options.0.entry("title").or_insert(title.into());
            options.quarks()
        });
        let quarks = quarks.collect::<Outcome<Vec<_>>>()?;
        Ok(ChainRequest { quarks, ..self.request()? })
    }
    /// Returns quarks of a chain, whose options other than those of [`NamedQuarks`] are parameters of the operator.
    ///
    /// # Errors
    /// Values of another type.
    pub fn quarks(self) -> Outcome<NamedQuarks> {
        let (own, parameters): (Map<_, _>, Map<_, _>) =
            self.0.into_iter().partition(|(name, _)| NamedQuarks::NAMES.contains(&name.as_str()));
        let quarks: NamedQuarks = JsonOptions(own).request()?;
        Ok(NamedQuarks { parameters: texts(parameters)?, ..quarks })
    }
    /// Returns the request for a contraction of propagators.
    ///
    /// # Errors
    /// Missing or unknown options, and values of another type.
    pub fn contraction(self) -> Outcome<Contraction> {
        let known = ["hadron", "origin", "momenta", "pairs", "antiperiodic", "milc_phases", "source"];
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => self.request(),
            Some(_) => Err(self.finish(&known).err().unwrap_or_else(Failure::stopped)),
        }
    }
    /// Returns a gauge action by name with its parameters.
    ///
    /// # Errors
    /// Missing or unknown options, and values of another type.
    pub fn gauge_action(self) -> Outcome<NamedGaugeAction> {
        self.gauge_options()?.request()
    }
    /// Returns the options of a gauge action if they are all known and β is among them.
    fn gauge_options(self) -> Outcome<Self> {
        let known =
            ["action", "beta", "u0", "u0_time", "xi", "flavours", "plaquette", "rectangle", "parallelogram", "name"];
        if let Some(name) = self.0.keys().find(|name| !known.contains(&name.as_str())) {
            let (name, all) = (name.clone(), known[..9].join(", "));
            return Err(Failure::refused(format!(
                "options: {name} is not an option of a gauge action; these are {all}"
            )));
        }
        match self.0.contains_key("beta") {
            true => Ok(self),
            false => Err(Failure::refused("options: beta of the gauge action is missing")),
        }
    }
    /// Returns the options of an object within these options.
    fn nested(object: Map<String, Value>) -> Self {
        JsonOptions(object.into_iter().map(|(key, value)| (name_of(&key), value)).collect())
    }
}

fn of_type<T: DeserializeOwned>(name: &str, value: Value) -> Outcome<T> {
    let shown = value.to_string();
    serde_json::from_value(value).map_err(|why| Failure::refused(format!("options: {name} = {shown}: {why}")))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns parameters as texts for the registry of operators.
fn texts(parameters: Map<String, Value>) -> Outcome<BTreeMap<String, String>> {
    fn one(name: &str, value: &Value) -> Outcome<String> {
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(true) => Ok("True".into()),
            Value::Bool(false) => Ok("False".into()),
            Value::Array(all) => Ok(all.iter().map(|value| one(name, value)).collect::<Outcome<Vec<_>>>()?.join(",")),
            Value::Null | Value::Object(_) => Err(Failure::refused(format!(
                "options: {name} = {value}: expected a number, a text, or a list of these"
            ))),
        }
    }
    let given = parameters.into_iter().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| one(&name, &value).map(|text| (name, text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> JsonOptions {
        JsonOptions::read(text).unwrap()
    }

    #[test]
    fn options_have_the_keys_of_files_and_of_python() {
        let settings = read(r#"{"tol": 1e-8, "max-iterations": 50, "mg-vectors": 16, "reconstruct": 12, "idr-s": 8}"#);
        let settings = settings.solver().unwrap();
        assert_eq!((settings.tol, settings.max_iterations), (Some(1e-8), Some(50)));
        assert_eq!((settings.multigrid.vectors, settings.reconstruct.as_deref()), (Some(16), Some("12")));
        assert_eq!(settings.counts, [("idr_s".to_string(), 8)].into());
        let named =
            read(r#"{"operator": "clover", "mass": -0.1, "csw": 1, "bc-time": "periodic"}"#).operator().unwrap();
        assert_eq!((&named.parameters["mass"], &named.parameters["antiperiodic"]), (&(-0.1).into(), &false.into()));
    }

    #[test]
    fn mistakes_name_the_option() {
        let why = |found: Outcome| found.unwrap_err().message;
        let solver = |text: &str| why(read(text).solver().map(drop));
        assert!(
            solver(r#"{"tolerance": 1e-8}"#).starts_with("options: tolerance is not a setting of a solve; these are")
        );
        assert!(solver(r#"{"tol": "small"}"#).contains("expected f64"), "{}", solver(r#"{"tol": "small"}"#));
        assert!(why(JsonOptions::read("[1]").map(drop)).starts_with("options: not a JSON object"));
        let twice = why(JsonOptions::read(r#"{"max-iterations": 1, "max_iterations": 2}"#).map(drop));
        assert_eq!(twice, "options: max_iterations is given twice");
        assert_eq!(why(read("").operator().map(drop)), "options: operator is missing");
        let mut left = read(r#"{"a": 1, "b": null}"#);
        assert_eq!((left.take("b"), left.take_or("c", 3).unwrap()), (None, 3));
        assert_eq!(why(left.finish(&["b", "c"])), "options: a is not an option here; the options are b, c");
        assert!(why(read(r#"{"operator": "clover", "mass": {}}"#).operator().map(drop)).contains("mass = {}"));
    }
}
