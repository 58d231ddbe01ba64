//! Correlators of one configuration, and the records of their solves.
use super::account::SolveAccount;
use super::input::{SpectrumInput, ThreePointHadron};
use super::quarks::{Propagator, Quark, QuarkLinks, QuarksOn};
use super::sink::SinkOf;
use super::spatial::shift_name;
use crate::communicator::RunCommunicator;
use crate::configured::Configured;
use crate::device::Device;
use crate::session::Session;
use crate::{Failure, Outcome};
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::observables::spectrum::gamma::{COUNT, Gamma, name};
use ferrite::observables::spectrum::mesons::Mesons;
use ferrite::observables::spectrum::nucleon::nucleon;
use ferrite::observables::spectrum::sequential::conserved_charge;
use ferrite::observables::spectrum::sequential_nucleon::FLAVOURS;
use ferrite::observables::spectrum::staggered::{NAMES, local_mesons, local_nucleon};
use ferrite::observables::spectrum::tastes::{SpinTaste, taste_mesons};
use ferrite_records::object;
use ferrite_records::spectrum::{CorrelatorLine, CorrelatorValues, PropagatorSolve, SolveNote};
use ferrite_report::records::correlators::{AXIAL_PION, Correlator};
use num_complex::Complex64;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use tracing::debug;

/// Type of quarks whose hadrons can be measured: defines their correlators.
pub trait Hadrons: Quark {
    /// *Collective.* Returns correlators from the propagators of all quarks from one source position. They are sums over this process's
    /// sites, by the time from the source.
    fn correlators(propagators: &[Propagator], input: &SpectrumInput, origin: [usize; 4]) -> Outcome<Vec<Correlator>>;
    /// *Collective.* Returns correlators that need further solves (three-point functions, mesons by taste), and these solves. Correlators
    /// are sums over this process's sites, by the time from the source.
    fn of_further_solves(
        quarks: &mut QuarksOn<'_>,
        propagators: &[Propagator],
        input: &SpectrumInput,
        origin: [usize; 4],
    ) -> Outcome<(Vec<Correlator>, Vec<Solved>)>;
}

/// Returns the correlator `name` at each momentum of the input.
fn at_momenta(name: &str, input: &SpectrumInput, values: Vec<Vec<Complex64>>) -> impl Iterator<Item = Correlator> {
    let momenta = input.momenta.iter().zip(values);
    momenta.map(move |(momentum, values)| Correlator { name: name.into(), momentum: *momentum, values })
}

/// Sink of three-point functions.
struct Sink {
    of: SinkOf,
    /// Index of the quark that couples to the current.
    quark: usize,
    /// Index of the antiquark of a meson; for a nucleon equal to `quark`.
    other: usize,
    /// First part of the names of the correlators.
    name: String,
    /// Flavour in the names of a nucleon's correlators: `u:` or `d:`; empty for mesons.
    flavour: String,
}

/// Returns the sinks of all mesons or of all nucleons.
fn sinks(hadron: &ThreePointHadron, input: &SpectrumInput) -> Vec<Sink> {
    match hadron {
        ThreePointHadron::Meson(gamma) => {
            let one = |pair: &[usize; 2]| Sink {
                of: SinkOf::Meson(Gamma::new(*gamma)),
                quark: pair[0],
                other: pair[1],
                name: input.meson(*pair) + &name(*gamma),
                flavour: String::new(),
            };
            input.mesons.iter().map(one).collect()
        }
        ThreePointHadron::Nucleon(projectors) => {
            let mut all = Vec::new();
            for quark in 0..input.quarks.len() {
                for projector in projectors {
                    let name = format!("{}nucleon.{}", input.baryon(quark), projector.name());
                    all.extend(FLAVOURS.map(|(flavour, of)| Sink {
                        of: SinkOf::Nucleon(*projector, of),
                        quark,
                        other: quark,
                        name: name.clone(),
                        flavour: format!("{flavour}:"),
                    }));
                }
            }
            all
        }
    }
}

impl Hadrons for Spinor {
    /// Returns the correlators of mesons, of the axial current with the pion, and of nucleons.
    fn correlators(propagators: &[Propagator], input: &SpectrumInput, origin: [usize; 4]) -> Outcome<Vec<Correlator>> {
        let mut all = Vec::new();
        for pair @ [quark, antiquark] in input.mesons.iter().copied() {
            let mesons =
                Mesons::new(&propagators[quark].fields, &propagators[antiquark].fields, origin, &input.momenta)?;
            for (k, momentum) in input.momenta.iter().enumerate() {
                for number in 0..COUNT {
                    let (name, values) = (input.meson(pair) + &name(number), mesons.of(Gamma::new(number), k));
                    all.push(Correlator { name, momentum: *momentum, values });
                }
                if input.pcac {
                    let (name, axial) = (input.meson(pair) + AXIAL_PION, Gamma::new(7));
                    let values = mesons.correlator(axial, Gamma::five(), k);
                    all.push(Correlator { name, momentum: *momentum, values });
                }
            }
        }
        for (quark, propagator) in propagators.iter().enumerate().filter(|_| input.nucleon) {
            let found = nucleon(&propagator.fields, origin, &input.momenta, propagator.boundary)?;
            for (parity, values) in [("positive", found.positive), ("negative", found.negative)] {
                all.extend(at_momenta(&format!("{}nucleon.{parity}", input.baryon(quark)), input, values));
            }
        }
        Ok(all)
    }
    fn of_further_solves(
        quarks: &mut QuarksOn<'_>,
        propagators: &[Propagator],
        input: &SpectrumInput,
        origin: [usize; 4],
    ) -> Outcome<(Vec<Correlator>, Vec<Solved>)> {
        let (mut all, mut solves) = (Vec::new(), Vec::new());
        let Some(three) = &input.three_point else { return Ok((all, solves)) };
        for Sink { of, quark, other, name: ends, flavour } in sinks(&three.hadron, input) {
            let from = &propagators[quark];
            let local = from.unsmeared.as_ref().unwrap_or(&from.fields);
            for separation in three.separations.iter().copied() {
                let called = |current: &str| format!("{ends}:{separation}:{flavour}{current}");
                let found = quarks.sequential(quark, &propagators[other], of, (origin, separation))?;
                let begin = Instant::now();
                let mesons = Mesons::with_source(local, &found.fields, origin, &input.momenta, of.source())?;
                for number in 0..COUNT {
                    let of = |k: usize| mesons.correlator(Gamma::new(number), of.source(), k);
                    let values = (0..input.momenta.len()).map(of).collect();
                    all.extend(at_momenta(&called(&name(number)), input, values));
                }
                if three.charge {
                    let links = quarks.charge_links(quark)?;
                    let (both, momenta) = ([local, &found.fields], &input.momenta);
                    let values = conserved_charge(links, both, of.source(), origin, momenta, found.boundary)?;
                    all.extend(at_momenta(&called("charge"), input, values));
                }
                quarks.spent.hadrons += begin.elapsed().as_secs_f64();
                let source = SolvedSource::ThroughSink(of, separation);
                solves.push(Solved { quark, origin, source, account: found.solved });
            }
        }
        Ok((all, solves))
    }
}

impl Hadrons for ColourVector {
    /// Returns the correlators of local mesons and local nucleons.
    fn correlators(propagators: &[Propagator], input: &SpectrumInput, origin: [usize; 4]) -> Outcome<Vec<Correlator>> {
        let mut all = Vec::new();
        for pair @ [quark, antiquark] in input.mesons.iter().copied() {
            let found =
                local_mesons(&propagators[quark].fields, &propagators[antiquark].fields, origin, &input.momenta)?;
            for (name, values) in NAMES.into_iter().zip(found) {
                all.extend(at_momenta(&(input.meson(pair) + name), input, values));
            }
        }
        for (quark, propagator) in propagators.iter().enumerate().filter(|_| input.nucleon) {
            let Propagator { boundary, phases, .. } = propagator;
            let values = local_nucleon(&propagator.fields, origin, &input.momenta, *boundary, *phases)?;
            all.extend(at_momenta(&(input.baryon(quark) + "nucleon"), input, values));
        }
        Ok(all)
    }
    /// Returns mesons by spin and taste. Each set of directions in which quarks are shifted needs one more solve.
    fn of_further_solves(
        quarks: &mut QuarksOn<'_>,
        propagators: &[Propagator],
        input: &SpectrumInput,
        origin: [usize; 4],
    ) -> Outcome<(Vec<Correlator>, Vec<Solved>)> {
        let (mut all, mut solves) = (Vec::new(), Vec::new());
        let operators = || input.tastes.iter().flat_map(|meson| &meson.operators);
        let shifts: BTreeSet<[bool; 3]> = operators().map(|one| one.shift()).collect();
        let mut found: BTreeMap<([usize; 2], SpinTaste), Vec<Vec<Complex64>>> = BTreeMap::new();
        let firsts: BTreeSet<usize> = input.mesons.iter().map(|[quark, _]| *quark).collect();
        for quark in firsts {
            for shift in &shifts {
                let at_rest = *shift == [false; 3];
                let shifted =
                    if at_rest { None } else { Some(quarks.shifted(quark, &propagators[quark], *shift, origin)?) };
                let begin = Instant::now();
                let fields = shifted.as_ref().map_or(&propagators[quark].fields, |one| &one.fields);
                let of_shift: Vec<SpinTaste> = operators().filter(|one| one.shift() == *shift).copied().collect();
                for pair in input.mesons.iter().filter(|[first, _]| *first == quark) {
                    let Propagator { fields: other, phases, .. } = &propagators[pair[1]];
                    let values = taste_mesons(fields, other, &of_shift, origin, &input.momenta, *phases)?;
                    found.extend(of_shift.iter().map(|one| (*pair, *one)).zip(values));
                }
                quarks.spent.hadrons += begin.elapsed().as_secs_f64();
                let source = SolvedSource::Shifted(*shift);
                let one = |account| Solved { quark, origin, source, account };
                solves.extend(shifted.map(|one| one.solved).map(one));
            }
        }
        for pair in input.mesons.iter().copied() {
            for meson in &input.tastes {
                let mut mean: Vec<Vec<Complex64>> = Vec::new();
                let share = 1.0 / meson.operators.len() as f64;
                for operator in &meson.operators {
                    let values = &found[&(pair, *operator)];
                    mean.resize(values.len(), vec![Complex64::ZERO; values[0].len()]);
                    let both = mean.iter_mut().flatten().zip(values.iter().flatten());
                    both.for_each(|(mean, value)| *mean += share * value);
                }
                all.extend(at_momenta(&(input.meson(pair) + &meson.name), input, mean));
            }
        }
        Ok((all, solves))
    }
}

/// *Collective.* Measures all correlators of a configuration, averaged over its source positions.
pub fn measure<F: Hadrons>(
    input: &SpectrumInput,
    configuration: &mut Configured,
    what: &str,
    device: &Device,
    session: &Session,
) -> Outcome<CorrelatorLine> {
    let (links, all) = (QuarkLinks::of(input), Instant::now());
    let mut quarks = QuarksOn::new(input, configuration, what, device, session, &links);
    let lattice = quarks.lattice()?;
    let origins = input.origins(lattice);
    let (mut mean, mut solves, mut plaquette) = (Vec::<Correlator>::new(), Vec::new(), None);
    for origin in &origins {
        let propagators: Vec<Propagator> =
            (0..input.quarks.len()).map(|quark| quarks.propagator::<F>(quark, *origin)).collect::<Outcome<_>>()?;
        let begin = Instant::now();
        let mut found = F::correlators(&propagators, input, *origin)?;
        quarks.spent.hadrons += begin.elapsed().as_secs_f64();
        let (further, more) = F::of_further_solves(&mut quarks, &propagators, input, *origin)?;
        found.extend(further);
        if mean.is_empty() {
            mean = found;
        } else {
            let values = |all: &mut Vec<Correlator>, add: &[Correlator]| {
                let (to, from) = (all.iter_mut().flat_map(|c| &mut c.values), add.iter().flat_map(|c| &c.values));
                to.zip(from).for_each(|(sum, term)| *sum += term);
            };
            values(&mut mean, &found);
        }
        for (quark, propagator) in propagators.into_iter().enumerate() {
            plaquette = plaquette.or(propagator.plaquette);
            let source = SolvedSource::Origin;
            solves.push(Solved { quark, origin: *origin, source, account: propagator.solved });
        }
        solves.extend(more);
    }
    let spent = quarks.spent;
    quarks.release()?;
    debug!("{}", spent.describe(all.elapsed().as_secs_f64()));
    let share = 1.0 / origins.len() as f64;
    mean.iter_mut().flat_map(|c| &mut c.values).for_each(|value| *value *= share);
    sum(&mut mean, configuration, &session.comm)?;
    let (together, propagators_read, solves) = summary(&solves, input);
    let values = |one: &Correlator| CorrelatorValues {
        name: one.name.clone(),
        momentum: one.momentum,
        values: one.values.iter().map(|z| [z.re, z.im]).collect(),
    };
    Ok(CorrelatorLine {
        configuration: configuration.typed.clone(),
        file: configuration.canonical.clone(),
        content: configuration.content.clone(),
        input: object(&input.of_correlators()).into(),
        lattice: lattice.size(),
        plaquette,
        antiquark: input.partner.map(String::from),
        source_sites: input.source_sites(lattice),
        origins,
        together,
        propagators_read,
        solves,
        correlators: mean.iter().map(values).collect(),
    })
}

/// Source of a solve.
#[derive(Clone, Copy)]
enum SolvedSource {
    /// The source at a source position.
    Origin,
    /// The sequential source at a sink, with the separation in time of source and sink.
    ThroughSink(SinkOf, usize),
    /// The source at a source position, shifted in these spatial directions.
    Shifted([bool; 3]),
}

/// Account of the solve for one propagator, with its quark, source position and source.
pub struct Solved {
    quark: usize,
    origin: [usize; 4],
    source: SolvedSource,
    account: SolveAccount,
}

/// Summarises solves: the largest residual, total iterations and seconds; the number of propagators that were read; and the record of each
/// solve if there are several. A value that is unknown for one solve is unknown in total.
fn summary(solves: &[Solved], input: &SpectrumInput) -> (SolveNote, usize, Option<Vec<PropagatorSolve>>) {
    let notes = || solves.iter().map(|solved| &solved.account.note);
    let together = SolveNote {
        true_residual: notes().map(|one| one.true_residual).try_fold(0.0, |worst: f64, one| Some(worst.max(one?))),
        iterations: notes().map(|one| one.iterations).sum(),
        batches: notes().next().and_then(|first| first.batches.clone()),
        seconds: notes().map(|one| one.seconds).sum(),
    };
    let each = |solved: &Solved| {
        let SolveAccount { note, is_read } = &solved.account;
        let mut each = PropagatorSolve {
            note: note.clone(),
            read: *is_read,
            quark: input.quarks[solved.quark].name.clone(),
            origin: solved.origin,
            separation: None,
            projector: None,
            flavour: None,
            shift: None,
        };
        match solved.source {
            SolvedSource::Origin => {}
            SolvedSource::ThroughSink(sink, separation) => {
                each.separation = Some(separation);
                if let SinkOf::Nucleon(projector, flavour) = sink {
                    each.projector = Some(projector.name().into());
                    each.flavour = Some(flavour.name().into());
                }
            }
            SolvedSource::Shifted(directions) => each.shift = Some(shift_name(directions)),
        }
        each
    };
    let several = input.quarks.len() > 1 || input.has_several_origins() || input.has_further_solves();
    let read = solves.iter().filter(|solved| solved.account.is_read).count();
    (together, read, several.then(|| solves.iter().map(each).collect()))
}

/// *Collective.* Replaces each value of the correlators by its sum over all processes.
fn sum(all: &mut [Correlator], configuration: &Configured, comm: &RunCommunicator) -> Outcome {
    let mut numbers: Vec<f64> = all.iter().flat_map(|c| &c.values).flat_map(|z| [z.re, z.im]).collect();
    comm.sum(&mut numbers)?;
    if !numbers.iter().all(|x| x.is_finite()) {
        let file = configuration.typed.display();
        let why = format!("{file}: a correlator is not a number: check the links with `ferrite verify`");
        return Err(Failure::failed(why).shared());
    }
    let sums = numbers.chunks_exact(2).map(|pair| Complex64::new(pair[0], pair[1]));
    all.iter_mut().flat_map(|c| &mut c.values).zip(sums).for_each(|(value, sum)| *value = sum);
    Ok(())
}
