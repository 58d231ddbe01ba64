//! The correlators of one configuration, and what is recorded of how they were made.
use super::super::communicator::RunCommunicator;
use super::super::configured::{Configured, Content};
use super::super::{Failure, Outcome, solve};
use super::input::SpectrumInput;
use super::quarks::{Propagator, lattice};
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::observables::spectrum::gamma::{COUNT, Gamma, name};
use ferrite::observables::spectrum::mesons::Mesons;
use ferrite::observables::spectrum::nucleon::nucleon;
use ferrite::observables::spectrum::staggered::{NAMES, local_mesons};
use ferrite_report::records::correlators::{ANTIQUARK, Correlator, Correlators, SCHEMA};
use num_complex::Complex64;
use serde_json::{Value, json};

/// *Collective.* Mesons and nucleons of Wilson quarks.
pub fn wilson(propagator: &Propagator<Spinor>, input: &SpectrumInput, comm: &RunCommunicator) -> Outcome<Correlators> {
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
    let mut about = about(propagator, input);
    if let Some(other) = input.partner {
        about[ANTIQUARK] = json!(other);
    }
    sum(all, about, comm)
}

/// *Collective.* Local mesons of staggered quarks.
pub fn staggered(
    propagator: &Propagator<ColourVector>,
    input: &SpectrumInput,
    comm: &RunCommunicator,
) -> Outcome<Correlators> {
    let found = local_mesons(propagator.layout.section, &propagator.fields, input.origin);
    let one = |(name, values): (&str, Vec<f64>)| Correlator {
        name: name.into(),
        momentum: [0; 3],
        values: values.into_iter().map(Complex64::from).collect(),
    };
    sum(NAMES.into_iter().zip(found).map(one).collect(), about(propagator, input), comm)
}

/// *Collective.* The sums over all processes.
fn sum(mut all: Vec<Correlator>, about: Value, comm: &RunCommunicator) -> Outcome<Correlators> {
    let mut numbers: Vec<f64> = all.iter().flat_map(|c| &c.values).flat_map(|z| [z.re, z.im]).collect();
    comm.sum(&mut numbers)?;
    if !numbers.iter().all(|x| x.is_finite()) {
        return Err(Failure::failed("a correlator is NaN: check the links with `ferrite verify`").shared());
    }
    let sums = numbers.chunks_exact(2).map(|pair| Complex64::new(pair[0], pair[1]));
    all.iter_mut().flat_map(|c| &mut c.values).zip(sums).for_each(|(value, sum)| *value = sum);
    Ok(Correlators { all, about })
}

/// The line for the file.
pub fn line(found: &Correlators, configuration: &Configured, input: &SpectrumInput) -> Value {
    let mut line = json!({
        "schema": SCHEMA,
        "configuration": configuration.typed,
        "file": configuration.canonical,
        "content": configuration.content.as_ref().map(Content::json),
        "input": input.of_correlators(),
    });
    if let (Value::Object(line), Value::Object(about)) = (&mut line, &found.about) {
        line.extend(about.clone());
    }
    line["correlators"] = found.to_json();
    line
}

fn about<T>(propagator: &Propagator<T>, input: &SpectrumInput) -> Value {
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
