//! Hadrons made on a device against those made on another one.
use crate::report::{CheckReport, Scope};
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::FullField;
use ferrite::field::host::{ColourVector, HostColour, HostSpinor, Spinor};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::observables::spectrum::gamma::{COUNT, Gamma};
use ferrite::observables::spectrum::mesons::Mesons;
use ferrite::observables::spectrum::nucleon::nucleon;
use ferrite::observables::spectrum::sequential::{ChargeLinks, conserved_charge};
use ferrite::observables::spectrum::staggered::{local_mesons, local_nucleon};
use ferrite::observables::traces::{Dilution, NoiseKind, NoiseSource, TraceField};
use ferrite::operators::{StaggeredPhases, TimeBoundary};
use num_complex::Complex64;

/// All hadrons of random propagators, for extents that are and are not multiples of four. What they are is tested where they are.
pub fn contractions(backend: &dyn Backend, other: &dyn Backend, report: &mut CheckReport) -> Result {
    let momenta: Vec<[i32; 3]> = (0..19).map(|k| [k % 3 - 1, k / 3 % 3 - 1, k / 9]).collect();
    for size in [[2, 4, 6, 8], [4, 4, 4, 2], [16, 8, 8, 4]] {
        let lattice = Lattice::new(size).expect("even extents");
        let spinors: Vec<HostSpinor> = (0..24).map(|seed| generate::random_source(lattice, seed)).collect();
        let colours: Vec<HostColour> = (0..6).map(|seed| generate::random_source(lattice, seed)).collect();
        let gauge = generate::weak_field(lattice, 5, 0.6);
        let made = |backend: &dyn Backend| -> Result<Vec<(&str, Vec<Complex64>)>> {
            let (domain, origin) = (Domain::single(backend, lattice)?, [1, 2, 3, 1]);
            let (quark, antiquark) =
                (FullField::of_host(&domain, &spinors[..12])?, FullField::of_host(&domain, &spinors[12..])?);
            let spinor_quark = quark.rhs(0..12, &domain)?;
            let found = Mesons::new(&quark, &antiquark, origin, &momenta)?;
            let one = |k: usize, sink: usize, source: usize| found.correlator(Gamma::new(sink), Gamma::new(source), k);
            let pairs = |k: usize| (0..COUNT).map(move |n| (k, n, n)).chain([(k, 7, 15), (k, 9, 1)]);
            let mesons = (0..momenta.len()).flat_map(pairs).flat_map(|(k, a, b)| one(k, a, b)).collect();
            let found = nucleon(&quark, origin, &momenta, TimeBoundary::Antiperiodic)?;
            let nucleons = found.positive.into_iter().chain(found.negative).flatten().collect();
            let (links, both) = (ChargeLinks::new(&domain, &gauge)?, [&quark, &antiquark]);
            let of = |n| conserved_charge(&links, both, Gamma::new(n), origin, &momenta, TimeBoundary::Antiperiodic);
            let charges = [of(15)?, of(3)?].into_iter().flatten().flatten().collect();
            let (quark, antiquark) =
                (FullField::of_host(&domain, &colours[..3])?, FullField::of_host(&domain, &colours[3..])?);
            let found = local_mesons(&quark, &antiquark, origin, &momenta)?;
            let staggered = found.into_iter().flatten().flatten().collect();
            let boundary = TimeBoundary::Antiperiodic;
            let local = local_nucleon(&quark, origin, &momenta, boundary, StaggeredPhases::Milc)?.concat();
            let dilution = Dilution { times: 2, spin: false, colour: true, parity: true };
            let noise = NoiseSource { kind: NoiseKind::Z4, seed: 5, dilution };
            let spinors_of = |field: &FullField| -> Result<Vec<Complex64>> {
                let fields: Vec<HostSpinor> = field.download()?;
                Ok(fields.iter().flat_map(|field| field.numbers().to_vec()).collect())
            };
            let parts = noise.fields::<Spinor>(&domain, 3..15)?;
            let traces = Spinor::sums(&parts, &spinor_quark)?.concat();
            let parts = spinors_of(&parts)?;
            let staggered_traces = ColourVector::sums(&noise.fields::<ColourVector>(&domain, 3..6)?, &quark)?.concat();
            Ok(vec![
                ("mesons", mesons),
                ("nucleon", nucleons),
                ("conserved charge", charges),
                ("staggered mesons", staggered),
                ("parts of noise", parts),
                ("traces", traces),
                ("staggered traces", staggered_traces),
                ("local nucleon", local),
            ])
        };
        for ((what, found), (_, expected)) in made(backend)?.into_iter().zip(made(other)?) {
            let largest = expected.iter().map(|z| z.norm()).fold(0.0, f64::max);
            let far = found.iter().zip(&expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            let scope = Scope { format: "double".into(), detail: lattice.to_string() };
            // Sums of up to some thousand products of three numbers, whose rounding grows like the root of their number.
            report.error(&scope, what, far / largest, 1e-13);
        }
    }
    Ok(())
}
