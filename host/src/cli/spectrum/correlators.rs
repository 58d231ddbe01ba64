//! The correlators of one configuration, and what is told of how they were made.
use super::super::configured::{Configured, Content};
use super::super::world::World;
use super::super::{Failure, Outcome, solve};
use super::input::Input;
use super::quarks::{Propagator, lattice};
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::spectrum::gamma::{COUNT, Gamma, name};
use ferrite::spectrum::mesons::Mesons;
use ferrite::spectrum::nucleon::nucleon;
use ferrite::spectrum::staggered::{NAMES, local_mesons};
use num_complex::Complex64;
use serde_json::{Value, json};

/// The schema of a line.
const SCHEMA: &str = "ferrite.correlators/1";

/// A correlator of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlator {
    /// `g5`, `nucleon.positive`, `pion` …
    pub name: String,
    /// In units of 2π/L.
    pub momentum: [i32; 3],
    /// By time from the source.
    pub values: Vec<Complex64>,
}

/// All of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlators {
    /// In the same order for each configuration.
    pub all: Vec<Correlator>,
    /// Lattice, plaquette, residuals.
    pub about: Value,
}

impl Correlators {
    /// *Collective.* Mesons and nucleons of Wilson quarks.
    pub fn wilson(propagator: &Propagator<Spinor>, input: &Input, world: &World) -> Outcome<Self> {
        let (section, fields) = (propagator.layout.section, &propagator.fields);
        let mesons = Mesons::new(section, fields, input.origin, &input.momenta);
        let mut all = Vec::new();
        for (k, momentum) in input.momenta.iter().enumerate() {
            for number in 0..COUNT {
                let values = mesons.of(Gamma::new(number), k);
                all.push(Correlator { name: name(number), momentum: *momentum, values });
            }
        }
        if input.nucleon {
            let found = nucleon(section, fields, input.origin, &input.momenta, propagator.boundary);
            for (parity, of_momenta) in [("positive", found.positive), ("negative", found.negative)] {
                for (momentum, values) in input.momenta.iter().zip(of_momenta) {
                    all.push(Correlator { name: format!("nucleon.{parity}"), momentum: *momentum, values });
                }
            }
        }
        Self::sum(all, about(propagator, input), world)
    }
    /// *Collective.* Local mesons of staggered quarks.
    pub fn staggered(propagator: &Propagator<ColourVector>, input: &Input, world: &World) -> Outcome<Self> {
        let found = local_mesons(propagator.layout.section, &propagator.fields, input.origin);
        let one = |(name, values): (&str, Vec<f64>)| Correlator {
            name: name.into(),
            momentum: [0; 3],
            values: values.into_iter().map(Complex64::from).collect(),
        };
        Self::sum(NAMES.into_iter().zip(found).map(one).collect(), about(propagator, input), world)
    }
    fn sum(mut all: Vec<Correlator>, about: Value, world: &World) -> Outcome<Self> {
        let mut numbers: Vec<f64> = all.iter().flat_map(|c| &c.values).flat_map(|z| [z.re, z.im]).collect();
        world.sum(&mut numbers)?;
        if !numbers.iter().all(|x| x.is_finite()) {
            return Err(Failure::failed("a correlator is no number: check the links with `ferrite verify`").shared());
        }
        let sums = numbers.chunks_exact(2).map(|pair| Complex64::new(pair[0], pair[1]));
        all.iter_mut().flat_map(|c| &mut c.values).zip(sums).for_each(|(value, sum)| *value = sum);
        Ok(Correlators { all, about })
    }
    /// Real parts of the mean of some correlators without momentum; `None` where one is not there.
    pub fn mean(&self, names: &[&str]) -> Option<Vec<f64>> {
        let find = |name: &&str| self.all.iter().find(|c| c.name == *name && c.momentum == [0; 3]);
        let all: Vec<_> = names.iter().map(find).collect::<Option<_>>()?;
        let mean = |t: usize| all.iter().map(|c| c.values[t].re).sum::<f64>() / names.len() as f64;
        Some((0..all[0].values.len()).map(mean).collect())
    }
    /// Whether both have the same kinds of correlators, at as many times, on the same lattice.
    pub fn is_like(&self, other: &Self) -> bool {
        let kind = |c: &Correlator| (c.name.clone(), c.momentum, c.values.len());
        let times = self.all.first().map(|c| c.values.len());
        self.about["lattice"] == other.about["lattice"]
            && self.all.iter().map(kind).eq(other.all.iter().map(kind))
            && self.all.iter().all(|c| Some(c.values.len()) == times)
    }
    /// The line for the file.
    pub fn line(&self, configuration: &Configured, input: &Input) -> Value {
        let one = |c: &Correlator| {
            let values: Vec<[f64; 2]> = c.values.iter().map(|z| [z.re, z.im]).collect();
            json!({ "name": c.name, "momentum": c.momentum, "values": values })
        };
        let mut line = json!({
            "schema": SCHEMA,
            "configuration": configuration.typed,
            "file": configuration.canonical,
            "content": configuration.content.as_ref().map(Content::json),
            "input": input.of_correlators(),
        });
        if let (Value::Object(line), Value::Object(about)) = (&mut line, &self.about) {
            line.extend(about.clone());
        }
        line["correlators"] = self.all.iter().map(one).collect();
        line
    }
    /// From a line.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn from_line(line: &Value) -> Result<(Configured, Self), String> {
        let text = |value: &Value, key: &str| {
            value[key].as_str().map(String::from).ok_or_else(|| format!("{key} is missing or no text"))
        };
        if text(line, "schema")? != SCHEMA {
            return Err(format!("the schema is not {SCHEMA}"));
        }
        let list = line["correlators"].as_array().ok_or("correlators is missing or no array")?;
        let one = |value: &Value| {
            let wrong = |what: &str| format!("correlators: {what}");
            let momentum: [i32; 3] = serde_json::from_value(value["momentum"].clone())
                .map_err(|_| wrong("a momentum is not three integers"))?;
            let values: Vec<[f64; 2]> =
                serde_json::from_value(value["values"].clone()).map_err(|_| wrong("values are no pairs of numbers"))?;
            let values = values.into_iter().map(|[re, im]| Complex64::new(re, im)).collect();
            Ok(Correlator { name: text(value, "name")?, momentum, values })
        };
        let all = list.iter().map(one).collect::<Result<Vec<_>, String>>()?;
        if all.is_empty() {
            return Err("there are no correlators".into());
        }
        if let Some(first) = all.first() {
            let times = first.values.len();
            if times < 2 {
                return Err(format!("{} has {times} values, a correlator has one for each time", first.name));
            }
            if let Some(other) = all.iter().find(|c| c.values.len() != times) {
                let (name, own) = (&other.name, other.values.len());
                return Err(format!("{name} has {own} values, but {} has {times}", first.name));
            }
        }
        let configuration = Configured {
            typed: text(line, "configuration")?.into(),
            canonical: text(line, "file")?,
            stamp: None,
            content: Content::from_json(&line["content"])?,
        };
        Ok((configuration, Correlators { all, about: json!({ "lattice": line["lattice"] }) }))
    }
}

fn about<T>(propagator: &Propagator<T>, input: &Input) -> Value {
    let (report, batches) = propagator.solved.as_ref().map(|(report, batches)| (report, batches)).unzip();
    json!({
        "lattice": lattice(propagator).size(),
        "source_sites": input.source_sites(lattice(propagator)),
        "plaquette": propagator.plaquette,
        "true_residual": report.map(solve::worst),
        "iterations": report.map(|report| report.info.iterations),
        "batches": batches.map(|batches| &batches.sizes),
        "seconds": report.map(|report| report.total_seconds),
    })
}
