//! `ferrite trace`: against dense inverses on tiny lattices and sums over momenta, and its file of lines.
use crate::program::*;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, HostField, HostSpinor, Spinor};
use ferrite::files::{ReadOptions, read_gauge};
use ferrite::lattice::Lattice;
use ferrite::observables::traces::{Dilution, NoiseKind, NoiseSource, TraceField};
use ferrite_tests::gamma::{self, SpinMatrix};
use ferrite_tests::reference::WilsonDirac;
use ferrite_tests::staggered_reference::{Boundary, EtaPhases, StaggeredDirac};
use ferrite_tests::testkit::dense::{all_numbers, dense};
use ferrite_tests::testkit::matrix::unit;
use ferrite_tests::testkit::{on_grid, single};
use nalgebra::DVector;
use num_complex::Complex64;
use serde_json::Value;
use std::f64::consts::TAU;
use std::fs;

/// Part of a noise vector on the whole lattice, by its number.
fn noise_part<T: TraceField>(lattice: Lattice, source: NoiseSource, number: usize) -> HostField<T> {
    let domain = single(lattice);
    source.fields::<T>(&domain, number..number + 1).unwrap().download().unwrap().swap_remove(0)
}

/// Γ number n from γ_x, γ_y, γ_z and γ_t.
fn product(number: usize) -> SpinMatrix {
    let directions = (0..4).filter(|mu| number >> mu & 1 == 1);
    directions.fold(unit(), |product, mu| gamma::multiply(&product, &gamma::GAMMA[mu]))
}

/// Γ on spinors, as numbers [site][spin][colour].
fn turned(gamma: &SpinMatrix, psi: &DVector<Complex64>) -> DVector<Complex64> {
    DVector::from_fn(psi.len(), |k, _| {
        let (site, s, c) = (k / 12, k / 3 % 4, k % 3);
        (0..4).map(|t| gamma[s][t] * psi[12 * site + 3 * t + c]).sum()
    })
}

/// Numbers of a noise vector as a vector.
fn column<T: TraceField>(lattice: Lattice, source: NoiseSource, number: usize) -> DVector<Complex64> {
    DVector::from_column_slice(noise_part::<T>(lattice, source, number).numbers())
}

/// Returns the crc32 of zlib. That of a file's name is part of the seed of its noise.
fn crc32(text: &str) -> u64 {
    let byte = |sum: u32, byte: u8| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    };
    u64::from(!text.bytes().fold(!0, byte))
}

fn source(seed: u64, kind: NoiseKind, dilution: Dilution) -> NoiseSource {
    NoiseSource { kind, seed: seed ^ crc32("cfg.ildg") << 32, dilution }
}

/// All 16 Γ of the clover-less operator on 2·2·2·2, from each noise vector and in the mean.
#[test]
fn traces_of_wilson_fermions_are_those_of_a_dense_inverse() {
    let room = Room::new();
    room.json("generate weak-field --lattice 2,2,2,2 --seed 3 --noise 0.6 -o cfg.ildg");
    let gauge = read_gauge(room.path("cfg.ildg").as_path(), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    let dirac = WilsonDirac::new(&gauge, 0.3, -1.0);
    let matrix = dense(lattice, &all_numbers::<Spinor>(lattice), |psi| dirac.apply(false, psi));
    let inverse = matrix.try_inverse().unwrap();
    let volume = lattice.volume() as f64;
    let exact = |number: usize| {
        let gamma = product(number);
        let element = |k: usize| turned(&gamma, &inverse.column(k).into_owned())[k];
        (0..inverse.nrows()).map(element).sum::<Complex64>() / volume
    };
    let dilution = Dilution { times: 0, spin: true, colour: true, parity: true };
    let run = "trace cfg.ildg --mass 0.3 --seed 7 --tol 1e-12";
    let found = room.json(&format!("{run} --noise 40 --dilute spin,colour,parity"));
    let traces = found["configurations"][0]["traces"].as_array().unwrap();
    assert_eq!(traces.len(), 16);
    for (number, trace) in traces.iter().enumerate() {
        let gamma = product(number);
        let noise = trace["noise"].as_array().unwrap();
        for (vector, value) in noise.iter().enumerate().take(3) {
            let parts = (0..24).map(|part| {
                let eta = column::<Spinor>(lattice, source(7, NoiseKind::Z4, dilution), 24 * vector + part);
                eta.dotc(&turned(&gamma, &(&inverse * &eta)))
            });
            let expected = parts.sum::<Complex64>() / volume;
            // Residuals of 1e-12 of vectors whose squares are 12 per site, and M⁻¹ is of order one.
            assert!((complex(value) - expected).norm() < 1e-9, "{trace}: {expected}");
        }
        let (mean, error) = (complex(&trace["mean"]), complex(&trace["error"]));
        let off = mean - exact(number);
        // Five standard deviations; where nothing fluctuates, rounding.
        assert!(off.re.abs() < 5.0 * error.re + 1e-9 && off.im.abs() < 5.0 * error.im + 1e-9, "{trace}: {off}");
    }
    assert_eq!((traces[0]["gamma"].as_str(), traces[15]["gamma"].as_str()), (Some("1"), Some("g5")));
    assert!(complex(&traces[0]["mean"]).re > 1.0);
    // Without dilution there is more noise, and it falls with the root of the number of vectors.
    let error =
        |flags: &str| complex(&room.json(&format!("{run} {flags}"))["configurations"][0]["traces"][0]["error"]).re;
    let (few, many) = (error("--noise 16"), error("--noise 256"));
    assert!((few / many / 4.0 - 1.0).abs() < 0.5, "{few} {many}");
    assert!(complex(&traces[0]["error"]).re * 40f64.sqrt() < 0.8 * many * 16.0);
}

/// Several masses of a staggered operator, from each noise vector.
#[test]
fn condensates_are_those_of_a_dense_inverse() {
    let room = Room::new();
    room.json("generate random --lattice 2,4,2,4 --seed 3 -o cfg.ildg");
    let gauge = read_gauge(room.path("cfg.ildg").as_path(), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    let found = room.json("trace cfg.ildg --operator staggered --masses 0.1,0.4 --noise 12 --seed 5 --kind z2 --tol 1e-12 --dilute time:2");
    let traces = found["configurations"][0]["traces"].as_array().unwrap();
    let dilution = Dilution { times: 2, ..Dilution::default() };
    for (trace, mass) in traces.iter().zip([0.1, 0.4]) {
        let operator = StaggeredDirac::naive(&gauge, mass, EtaPhases::Milc, Boundary::Sign(-1.0));
        let matrix = dense(lattice, &all_numbers::<ColourVector>(lattice), |v| operator.apply(false, v));
        let inverse = matrix.try_inverse().unwrap();
        let exact = inverse.trace() / lattice.volume() as f64;
        for (vector, value) in trace["noise"].as_array().unwrap().iter().enumerate() {
            let parts = (0..2).map(|part| {
                let eta = column::<ColourVector>(lattice, source(5, NoiseKind::Z2, dilution), 2 * vector + part);
                eta.dotc(&(&inverse * &eta))
            });
            let expected = parts.sum::<Complex64>() / lattice.volume() as f64;
            assert!((complex(value) - expected).norm() < 1e-9, "{trace}: {expected}");
        }
        let off = complex(&trace["mean"]).re - exact.re;
        assert!(off.abs() < 5.0 * complex(&trace["error"]).re, "{trace}: {exact}");
        assert_eq!((trace["mass"].as_f64(), trace["gamma"].as_str()), (Some(mass), Some("1")));
    }
}

/// Traces on unit links are sums over momenta of 12 w/(w² + s²) with w = m + Σ (1 − cos p), s² = Σ sin² p; those of staggered fermions are
/// sums of 3 m/(m² + s²).
#[test]
fn free_traces_are_sums_over_momenta() {
    let room = Room::new();
    room.json("generate unit --lattice 4,2,4,6 -o cfg.ildg");
    let lattice = Lattice::new([4, 2, 4, 6]).unwrap();
    let mean = |term: &dyn Fn([f64; 4]) -> f64| {
        let all = (0..lattice.volume()).map(|k| {
            let (n, size) = (lattice.coordinates(k), lattice.size());
            term(std::array::from_fn(|mu| TAU * (n[mu] as f64 + if mu == 3 { 0.5 } else { 0.0 }) / size[mu] as f64))
        });
        all.sum::<f64>() / lattice.volume() as f64
    };
    let sines = |p: [f64; 4]| p.iter().map(|p| p.sin().powi(2)).sum::<f64>();
    let wilson = mean(&|p| {
        let w = 0.2 + p.iter().map(|p| 1.0 - p.cos()).sum::<f64>();
        12.0 * w / (w * w + sines(p))
    });
    let staggered = mean(&|p| 3.0 * 0.2 / (0.04 + sines(p)));
    for (flags, exact) in [("--operator wilson", wilson), ("--operator staggered", staggered)] {
        let found = room.json(&format!("trace cfg.ildg {flags} --mass 0.2 --noise 24 --dilute parity,colour"));
        let trace = &found["configurations"][0]["traces"][0];
        let (mean, error) = (complex(&trace["mean"]).re, complex(&trace["error"]).re);
        assert!((mean - exact).abs() < 5.0 * error && error < 0.05 * exact, "{flags}: {mean} ± {error}, {exact}");
    }
}

/// Noise of a part of the lattice is that of the whole there.
#[test]
fn noise_does_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 4, 8, 4]).unwrap();
    let dilution = Dilution { times: 2, spin: true, colour: false, parity: true };
    let noise = source(3, NoiseKind::Z4, dilution);
    let parts = dilution.parts::<Spinor>(lattice);
    let numbers = 5 * parts..6 * parts;
    let whole = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let whole: Vec<HostSpinor> = noise.fields::<Spinor>(&whole, numbers.clone()).unwrap().download().unwrap();
    for grid in [[2, 1, 1, 2], [1, 2, 2, 1]] {
        on_grid(grid, lattice, |domain| {
            let section = domain.section();
            let own: Vec<HostSpinor> = noise.fields::<Spinor>(domain, numbers.clone()).unwrap().download().unwrap();
            for (own, whole) in own.iter().zip(&whole) {
                for site in 0..section.local.volume() {
                    assert_eq!(own.sites()[site], whole.sites()[section.global_index(site)]);
                }
            }
        });
    }
    assert_eq!((parts, Spinor::GAMMAS, ColourVector::GAMMAS), (16, 16, 1));
}

/// Lines go on where they stopped, and belong to one input.
#[test]
fn traces_go_on() {
    let room = Room::new();
    for seed in 1..4 {
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} -o cfg.{seed}.ildg"));
    }
    let run = "--operator asqtad --u0 0.9 --masses 0.2,0.5 --noise 3 -o t.jsonl";
    room.json(&format!("trace cfg.1.ildg {run}"));
    let first = fs::read_to_string(room.path("t.jsonl")).unwrap();
    // Half a line is that of a configuration that is not done.
    fs::write(room.path("t.jsonl"), format!("{first}{}", &first[..40])).unwrap();
    let found = room.json(&format!("trace cfg.1.ildg cfg.2.ildg cfg.3.ildg {run}"));
    assert_eq!(found["configurations"].as_array().unwrap().len(), 3);
    let text = fs::read_to_string(room.path("t.jsonl")).unwrap();
    assert!(text.starts_with(&first) && text.lines().count() == 3);
    let line: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((line["schema"].as_str(), line["operator"].as_str()), (Some("ferrite.traces/1"), Some("asqtad")));
    assert_eq!(line["traces"][1]["noise"].as_array().unwrap().len(), 3);
    // Noise is another one on each configuration.
    let noise = |k: usize| found["configurations"][k]["traces"][0]["noise"].clone();
    assert_ne!(noise(0), noise(1));
    for (other, key) in
        [("--noise 4", "noise"), ("--masses 0.2", "solve"), ("--seed 2", "noise"), ("--dilute time", "noise")]
    {
        let flags = match other.split_once(' ').unwrap().0 {
            "--noise" => run.replace("--noise 3", other),
            "--masses" => run.replace("--masses 0.2,0.5", other),
            _ => format!("{run} {other}"),
        };
        let why = format!("t.jsonl, line 1: the line was made with another value of {key}");
        room.fails(2, &format!("trace cfg.1.ildg {flags} --backend cpu"), &[&why, "name another file"]);
    }
    // Means over configurations.
    let fit = room.json("fit t.jsonl");
    let means = (0..3).map(|k| complex(&found["configurations"][k]["traces"][1]["mean"]).re);
    let mean = means.sum::<f64>() / 3.0;
    assert!((fit["traces"][1]["real"]["value"].as_f64().unwrap() - mean).abs() < 1e-14, "{fit}");
    assert!(fit["traces"][1]["disconnected"]["error"].is_number() && fit["configurations"] == 3, "{fit}");
    assert!(room.run("fit t.jsonl").stdout.contains("Re tr Gamma M^-1 / V"));
    room.fails(2, "fit t.jsonl --window 1:2", &["--window does not apply to traces"]);
    // A page of the lines, and one of the fit, have the same means.
    let page = room.json("report t.jsonl -o t.html");
    assert_eq!(page["sections"][0]["kind"], "traces");
    fs::write(room.path("fit.json"), fit.to_string()).unwrap();
    assert_eq!(room.json("report fit.json -o fit.html")["sections"][0]["text"], "fits of 3 configurations: 2 traces");
    let pages = ["t.html", "fit.html"].map(|name| fs::read_to_string(room.path(name)).unwrap());
    let shown = format!("<td>{}", format!("{mean:.9}").get(..4).unwrap());
    // The condensates by configuration, and against the mass.
    for (page, figures) in pages.iter().zip([2, 1]) {
        assert!(page.contains(&shown) && page.matches("<svg").count() == figures && !page.contains("NaN"), "{page}");
    }
    let text = room.run("trace cfg.1.ildg --operator asqtad --u0 0.9 --mass 0.2 --noise 1 --backend cpu").stdout;
    assert!(text.contains("1 noise vector") && text.contains("–"), "{text}");
}

#[test]
fn mistakes_are_sentences() {
    let room = Room::with_weak_field();
    for (flags, parts) in [
        ("--operator staggered --mass 0.1 --dilute spin", &["--dilute spin", "no spin"][..]),
        ("--mass 0.1 --dilute time:1", &["time:1", "--dilute"]),
        ("--mass 0.1 --dilute spin,spin", &["--dilute", "twice"]),
        ("--masses 0.1,0.2", &["masses", "staggered"]),
        ("", &["--mass"]),
        ("--mass 0.1 --noise 0", &["--noise"]),
        ("--mass 0.1 --reconstruct 12t", &["temporal gauge"]),
        ("--mass 0.1 -o weak.ildg", &["weak.ildg is an input of this command"]),
        ("--mass 0.1 --max-iterations 2 --solver cg", &["weak.ildg: the solve did not converge"]),
    ] {
        let code = if flags.contains("max-iterations") { 1 } else { 2 };
        room.fails(code, &format!("trace weak.ildg {flags} --backend cpu"), parts);
    }
    room.fails(2, "trace none.ildg --mass 0.1 --backend cpu", &["none.ildg"]);
    room.fails(2, "condensate --mass 0.1", &["<CONFIGURATION>"]);
}
