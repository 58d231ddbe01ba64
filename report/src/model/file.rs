//! A machine as a file: JSON, schema `ferrite.machine/1`.
use super::{
    AlgebraTimes, ExchangeTimes, FormatNames, IterationCounts, Machine, OperationTimes, Polyline, TimeCurve,
    TimeCurveError, Wire,
};
use serde_json::{Value, json};

/// What the file says that it is, with its version.
const SCHEMA: &str = "ferrite.machine/1";
/// Names of the directions.
const AXES: [&str; 4] = ["x", "y", "z", "t"];

/// Why a text is no such file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// A field is missing, or is not what it should be.
    #[error("{place} is not {expected}")]
    Wrong {
        /// The way to the field, or "the file".
        place: String,
        /// What should be there.
        expected: String,
    },
}

fn wrong(place: impl Into<String>, expected: impl Into<String>) -> ModelFileError {
    ModelFileError::Wrong { place: place.into(), expected: expected.into() }
}

/// A place in a JSON file that is read, with the way there for messages.
pub(super) struct JsonField<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> JsonField<'a> {
    /// The whole file.
    pub(super) fn root(value: &'a Value) -> Self {
        JsonField { value, path: String::new() }
    }
    pub(super) fn at(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.into() } else { format!("{}.{name}", self.path) };
        JsonField { value: &self.value[name], path }
    }
    /// What is there, unless it is missing or `null`.
    pub(super) fn optional(&self, name: &str) -> Option<Self> {
        Some(self.at(name)).filter(|field| !field.value.is_null())
    }
    pub(super) fn wrong<T>(&self, what: &str) -> Result<T, ModelFileError> {
        Err(wrong(if self.path.is_empty() { "the file" } else { &self.path }, what))
    }
    pub(super) fn list(&self) -> Result<Vec<Self>, ModelFileError> {
        let Some(items) = self.value.as_array() else { return self.wrong("a list") };
        let item = |(k, value)| JsonField { value, path: format!("{}[{k}]", self.path) };
        Ok(items.iter().enumerate().map(item).collect())
    }
    pub(super) fn yes_or_no(&self) -> Result<bool, ModelFileError> {
        self.value.as_bool().map_or_else(|| self.wrong("true or false"), Ok)
    }
    pub(super) fn text(&self) -> Result<String, ModelFileError> {
        self.value.as_str().map_or_else(|| self.wrong("a text"), |text| Ok(text.into()))
    }
    /// A number of at least `least`, or above it.
    pub(super) fn number(&self, least: f64, or_equal: bool) -> Result<f64, ModelFileError> {
        let fits = |x: &f64| x.is_finite() && (*x > least || or_equal && *x == least);
        let or = if or_equal { "of at least" } else { "above" };
        self.value.as_f64().filter(fits).map_or_else(|| self.wrong(&format!("a number {or} {least}")), Ok)
    }
    /// A whole number of at least `least`, and not so large that sums of it are wrong.
    pub(super) fn count(&self, least: usize) -> Result<usize, ModelFileError> {
        let number = self.value.as_u64().and_then(|n| u32::try_from(n).ok()).map(|n| n as usize);
        let what = format!("a whole number of at least {least}");
        number.filter(|n| *n >= least).map_or_else(|| self.wrong(&what), Ok)
    }
    /// Microseconds against sites.
    fn points(&self) -> Result<Vec<(f64, f64)>, ModelFileError> {
        let point = |item: JsonField<'_>| -> Result<(f64, f64), ModelFileError> {
            Ok((item.at("sites").number(0.0, true)?, 1e-6 * item.at("microseconds").number(0.0, true)?))
        };
        self.list()?.into_iter().map(point).collect()
    }
    fn curve(&self) -> Result<TimeCurve, ModelFileError> {
        TimeCurve::new(self.points()?).map_err(|why| self.broken(&why))
    }
    fn polyline(&self) -> Result<Polyline, ModelFileError> {
        Polyline::new(self.points()?).map_err(|why| self.broken(&why))
    }
    fn broken(&self, why: &TimeCurveError) -> ModelFileError {
        let path = &self.path;
        match why {
            TimeCurveError::Empty => wrong(path, "a list of at least one point"),
            TimeCurveError::Size(k) => wrong(format!("{path}[{k}].sites"), "a number above 0 that no other point has"),
            TimeCurveError::Time(k) => wrong(format!("{path}[{k}].microseconds"), "a number above 0"),
        }
    }
    fn directions(&self) -> Result<[Polyline; 4], ModelFileError> {
        let [x, y, z, t] = AXES.map(|axis| self.at(axis).polyline());
        Ok([x?, y?, z?, t?])
    }
}

fn points(points: &[(f64, f64)]) -> Value {
    points.iter().map(|(sites, seconds)| json!({ "sites": sites, "microseconds": seconds * 1e6 })).collect()
}
fn directions(lines: &[Polyline; 4]) -> Value {
    Value::Object(AXES.into_iter().zip(lines).map(|(axis, line)| (axis.into(), points(line.points()))).collect())
}

impl Machine {
    /// The file's text.
    pub fn to_json(&self) -> String {
        let operation = |o: &OperationTimes| {
            json!({
                "operator": o.name,
                "precision": o.format.precision,
                "reconstruct": o.format.reconstruct,
                "reach": o.reach,
                "hops": o.hops,
                "sums": o.sums,
                "zone_bytes": o.zone_bytes,
                "flops": o.flops,
                "alone": points(o.alone.points()),
                "beside": directions(&o.beside),
                "exterior": directions(&o.exterior),
            })
        };
        let algebra = |a: &AlgebraTimes| json!({ "operator": a.name, "precision": a.precision, "alone": points(a.alone.points()) });
        let exchange = |e: &ExchangeTimes| {
            json!({
                "transport": e.transport,
                "latency_microseconds": e.wire.latency * 1e6,
                "gbps": e.wire.bandwidth * 1e-9,
            })
        };
        let counts = |i: &IterationCounts| {
            let domains = i.gcr_dd.iter().map(|(sites, n)| json!({ "sites": sites, "iterations": n }));
            json!({
                "source": i.source,
                "precision": i.precision,
                "bicgstab": { "iterations": i.bicgstab, "updates": i.updates },
                "gcr_dd": { "domains": domains.collect::<Vec<_>>(), "restarts": i.restarts, "steps": i.steps },
                "once_microseconds": i.once * 1e6,
            })
        };
        let file = json!({
            "schema": SCHEMA,
            "device": self.device,
            "processes": self.processes,
            "operator": self.operator,
            "operations": self.operations.iter().map(operation).collect::<Vec<_>>(),
            "algebra": self.algebra.iter().map(algebra).collect::<Vec<_>>(),
            "exchanges": self.exchanges.iter().map(exchange).collect::<Vec<_>>(),
            "sum_step_microseconds": self.sum_step * 1e6,
            "iterations": self.iterations.as_ref().map(counts),
        });
        format!("{file:#}\n")
    }
    /// From a file's text.
    ///
    /// # Errors
    /// Which field is wrong, and what it should be.
    pub fn from_json(text: &str) -> Result<Self, ModelFileError> {
        let file: Value = serde_json::from_str(text)?;
        let root = JsonField::root(&file);
        if !file.is_object() {
            return root.wrong("a JSON object");
        }
        let schema = root.at("schema");
        if schema.value != SCHEMA {
            return schema.wrong(&format!("\"{SCHEMA}\", which is what this program reads"));
        }
        let operation = |o: JsonField<'_>| -> Result<OperationTimes, ModelFileError> {
            Ok(OperationTimes {
                name: o.at("operator").text()?,
                format: FormatNames { precision: o.at("precision").text()?, reconstruct: o.at("reconstruct").text()? },
                reach: o.at("reach").count(1)?,
                hops: o.at("hops").count(1)?,
                sums: o.at("sums").count(0)?,
                zone_bytes: o.at("zone_bytes").count(1)?,
                flops: o.at("flops").number(0.0, false)?,
                alone: o.at("alone").curve()?,
                beside: o.at("beside").directions()?,
                exterior: o.at("exterior").directions()?,
            })
        };
        let algebra = |a: JsonField<'_>| -> Result<AlgebraTimes, ModelFileError> {
            let (name, precision) = (a.at("operator").text()?, a.at("precision").text()?);
            Ok(AlgebraTimes { name, precision, alone: a.at("alone").curve()? })
        };
        let exchange = |e: JsonField<'_>| -> Result<ExchangeTimes, ModelFileError> {
            let latency = 1e-6 * e.at("latency_microseconds").number(0.0, true)?;
            let bandwidth = 1e9 * e.at("gbps").number(0.0, false)?;
            Ok(ExchangeTimes { transport: e.at("transport").text()?, wire: Wire { latency, bandwidth } })
        };
        let operations: Vec<_> =
            root.at("operations").list()?.into_iter().map(operation).collect::<Result<_, ModelFileError>>()?;
        if operations.is_empty() {
            return root.at("operations").wrong("a list of at least one operation");
        }
        let exchanges: Vec<_> =
            root.at("exchanges").list()?.into_iter().map(exchange).collect::<Result<_, ModelFileError>>()?;
        if exchanges.is_empty() {
            return root.at("exchanges").wrong("a list of at least one transport");
        }
        Ok(Machine {
            device: root.at("device").text()?,
            processes: root.at("processes").count(1)?,
            operator: root.at("operator").text()?,
            operations,
            algebra: root.at("algebra").list()?.into_iter().map(algebra).collect::<Result<_, ModelFileError>>()?,
            exchanges,
            sum_step: 1e-6 * root.at("sum_step_microseconds").number(0.0, true)?,
            iterations: root.optional("iterations").map(|counts| iterations(&counts)).transpose()?,
        })
    }
}

fn iterations(all: &JsonField<'_>) -> Result<IterationCounts, ModelFileError> {
    let (bicgstab, gcr_dd) = (all.at("bicgstab"), all.at("gcr_dd"));
    let domain = |d: JsonField<'_>| -> Result<(f64, f64), ModelFileError> {
        Ok((d.at("sites").number(0.0, false)?, d.at("iterations").number(0.0, false)?))
    };
    let domains = gcr_dd.at("domains");
    let counted: Vec<_> = domains.list()?.into_iter().map(domain).collect::<Result<_, ModelFileError>>()?;
    let twice = |k: usize| counted[..k].iter().any(|(sites, _)| *sites == counted[k].0);
    if let Some(k) = (0..counted.len()).find(|k| twice(*k)) {
        return Err(wrong(format!("{}[{k}].sites", domains.path), "a number that no other domain has"));
    }
    Ok(IterationCounts {
        source: all.at("source").text()?,
        precision: all.at("precision").text()?,
        bicgstab: bicgstab.at("iterations").number(0.0, false)?,
        updates: bicgstab.at("updates").number(0.0, true)?,
        gcr_dd: counted,
        restarts: gcr_dd.at("restarts").number(0.0, true)?,
        steps: gcr_dd.at("steps").count(0)?,
        // Files of before it was known do not have it.
        once: all.optional("once_microseconds").map_or(Ok(0.0), |once| once.number(0.0, true))? * 1e-6,
    })
}
