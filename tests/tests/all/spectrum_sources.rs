//! `ferrite spectrum` with several origins, times and quarks: against runs with one, and plain sums over kept propagators.
use crate::correlators::*;
use crate::program::*;
use ferrite::field::host::{HostColour, HostGauge, HostSpinor};
use ferrite::files::{ReadOptions, WriteOptions, read_fermions, read_gauge, write_gauge};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite_tests::reference::transform_links;
use num_complex::Complex64;
use serde_json::{Value, json};
use std::fs;

const SIZE: [usize; 4] = [2, 4, 6, 8];

fn room() -> Room {
    let room = Room::new();
    room.json("generate weak-field --lattice 2,4,6,8 --seed 12 --noise 0.3 -o cfg.ildg");
    room
}

fn wilson(room: &Room, head: &str) {
    let solve = "operator = \"clover\"\nmass = 0.3\ncsw = 1.1\nprecision = \"double\"\ntol = 1e-13\n";
    fs::write(room.path("run.toml"), format!("momenta = 1\n{head}\n[solve]\n{solve}")).unwrap();
}

fn values(line: &Value) -> Vec<(Value, Vec<[f64; 2]>)> {
    let one = |c: &Value| (json!([c["name"], c["momentum"]]), serde_json::from_value(c["values"].clone()).unwrap());
    line["correlators"].as_array().unwrap().iter().map(one).collect()
}

/// Largest difference of two lines' correlators, each by its largest value.
fn apart(a: &Value, b: &Value) -> f64 {
    apart_among(a, b, &|_| true)
}

/// Largest difference of two lines' correlators with names that count, each by its largest value.
fn apart_among(a: &Value, b: &Value, counts: &dyn Fn(&str) -> bool) -> f64 {
    let (mut a, mut b) = (values(a), values(b));
    for all in [&mut a, &mut b] {
        all.retain(|(name, _)| counts(name[0].as_str().unwrap()));
    }
    assert_eq!(a.len(), b.len());
    let mut worst = 0f64;
    for ((name, x), (other, y)) in a.iter().zip(&b) {
        assert_eq!(name, other);
        let scale = a.iter().filter(|(n, _)| n[0] == name[0]).flat_map(|(_, v)| v.as_flattened());
        let scale = scale.fold(0f64, |m, x| m.max(x.abs()));
        for (x, y) in x.as_flattened().iter().zip(y.as_flattened()) {
            worst = worst.max((x - y).abs() / scale);
        }
    }
    worst
}

/// The mean over origins and times is that of runs with one each, whatever the boundary; what is mixed or the same is refused.
#[test]
fn origins_are_averaged() {
    let room = room();
    for boundary in ["antiperiodic", "periodic"] {
        wilson(&room, "");
        let set = format!("--set solve.bc-time={boundary}");
        let folder = |name: &str| format!("{boundary}-{name}");
        let sites = ["0,0,0,2", "1,3,4,7", "0,0,0,6", "1,3,4,3"];
        let single = |site: &str| {
            let name = folder(site);
            room.json(&format!("spectrum run.toml cfg.ildg --out {name} {set} --set origin={site}"));
            lines(&room, &name).swap_remove(0)
        };
        let each = sites.map(single);
        let mut mean = each[0].clone();
        for (k, c) in mean["correlators"].as_array_mut().unwrap().iter_mut().enumerate() {
            for t in 0..SIZE[3] {
                for part in 0..2 {
                    let sum: f64 =
                        each.iter().map(|one| one["correlators"][k]["values"][t][part].as_f64().unwrap()).sum();
                    c["values"][t][part] = json!(sum / 4.0);
                }
            }
        }
        // Four sites as such, and two at two times: solves are the same, so that only sums differ.
        wilson(&room, "origins = [[0, 0, 0, 2], [1, 3, 4, 7], [0, 0, 0, 6], [1, 3, 4, 3]]");
        room.json(&format!("spectrum run.toml cfg.ildg --out {} {set}", folder("four")));
        let four = lines(&room, &folder("four")).swap_remove(0);
        assert!(apart(&four, &mean) < 1e-13, "{}", apart(&four, &mean));
        // Sources differ by more than that: it is a mean.
        assert!(apart(&four, &each[0]) > 1e-6);
        wilson(&room, "origins = [\"0,0,0,2\", \"1,3,4,7\"]\ntimes = 2\npropagators = \"kept\"");
        room.json(&format!("spectrum run.toml cfg.ildg --out {} {set} --set propagators={boundary}", folder("times")));
        let times = lines(&room, &folder("times")).swap_remove(0);
        assert!(apart(&times, &mean) < 1e-13, "{}", apart(&times, &mean));
        assert_eq!(times["origins"], json!([[0, 0, 0, 2], [0, 0, 0, 6], [1, 3, 4, 7], [1, 3, 4, 3]]));
        let solves = times["solves"].as_array().unwrap();
        let iterations = |v: &Value| v["iterations"].as_u64().unwrap();
        assert_eq!((solves.len(), &solves[3]["origin"]), (4, &json!([1, 3, 4, 3])));
        assert_eq!(solves.iter().map(iterations).sum::<u64>(), iterations(&times));
        // Kept propagators of all origins are read.
        let again = format!("spectrum run.toml cfg.ildg --out {} {set} --set propagators={boundary}", folder("kept"));
        room.json(&again);
        let kept = lines(&room, &folder("kept")).swap_remove(0);
        assert_eq!((&kept["propagators_read"], &kept["iterations"]), (&json!(4), &times["iterations"]));
        assert!(kept["solves"].as_array().unwrap().iter().all(|one| one["read"] == true));
        assert_eq!(kept["correlators"], times["correlators"]);
        assert!(room.path(boundary).join("cfg.ildg.1_3_4_7.npy").exists());
    }
    let run = "spectrum run.toml cfg.ildg --backend cpu";
    // Other sources are another folder's.
    let folder = "--out antiperiodic-times --set propagators=antiperiodic";
    room.fails(2, &format!("{run} {folder} --set times=4"), &["line 1: the line was made with another value of times"]);
    let other = format!("{run} {folder} --set origins=[[0,0,0,2],[1,3,4,5]]");
    room.fails(2, &other, &["line 1: the line was made with another value of origins", "name another folder"]);
    for (set, parts) in [
        ("--set times=3", &["times = 3", "2×4×6×8 has 8 times", "divisor"][..]),
        ("--set origins=0,0,0,0 --set origins=0,0,0,4", &["[0, 0, 0, 4] and [0, 0, 0, 4] give the same source"]),
        ("--set origins=0,0,0,0 --set origins=2,0,0,4", &["origin [2, 0, 0, 4] is outside the lattice 2×4×6×8"]),
        ("--set origins=0,0,0", &["--set origins", "expected four whole numbers"]),
        ("--set origin=0,0,0,0", &["conflicts with", "origin gives one source position"]),
        ("--set origins=1,0,0,0 --set source=wall --set momenta=0 --set origins=0,0,0,4", &["the same source"]),
    ] {
        room.fails(2, &format!("{run} --out no {set}"), parts);
    }
    wilson(&room, "origins = [[0, 0, 0], 4]");
    room.fails(2, &format!("{run} --out no"), &["run.toml:2:11: origins: expected sites"]);
    assert!(!room.path("no").exists());
}

/// Links that are moved together with the origin, and links after a gauge transformation, have the same hadrons.
#[test]
fn hadrons_know_no_place_and_no_gauge() {
    let room = room();
    let gauge = read_gauge(&room.path("cfg.ildg"), &ReadOptions::default()).unwrap().gauge;
    let lattice = Lattice::new(SIZE).unwrap();
    let shift = [1, 2, 5, 3];
    let moved = |index: usize| {
        let x = lattice.coordinates(index / 4);
        let from: [usize; 4] = std::array::from_fn(|mu| (x[mu] + SIZE[mu] - shift[mu]) % SIZE[mu]);
        *gauge.link(lattice.index(from), index % 4)
    };
    let moved = HostGauge::from_links(lattice, (0..4 * lattice.volume()).map(moved).collect());
    let random = generate::random(lattice, 3);
    let g: Vec<_> = (0..lattice.volume()).map(|x| *random.link(x, 0)).collect();
    write_gauge(&room.path("moved.ildg"), &moved, &WriteOptions::default()).unwrap();
    write_gauge(&room.path("turned.ildg"), &transform_links(&gauge, &g), &WriteOptions::default()).unwrap();
    let staggered = "[solve]\noperator = \"asqtad\"\nmass = 0.3\nprecision = \"double\"\ntol = 1e-13\n";
    for (name, boundary) in [
        ("wilson", "antiperiodic"),
        ("wilson", "periodic"),
        ("milc", "antiperiodic"),
        ("milc", "periodic"),
        ("lexicographic", "antiperiodic"),
    ] {
        wilson(&room, "pcac = true");
        if name == "wilson" {
            // One of the sinks is behind the boundary.
            let three = "[three-point]\nhadron = \"nucleon\"\nseparations = [3]\nprojectors = \"polarised-y\"\n\
                         momentum = [0, 1, 0]\ncharge = true\n";
            let text = fs::read_to_string(room.path("run.toml")).unwrap();
            fs::write(room.path("run.toml"), format!("{text}{three}")).unwrap();
        } else {
            let input = format!("momenta = 1\nnucleon = true\n{staggered}phases = \"{name}\"\n");
            fs::write(room.path("run.toml"), input).unwrap();
        }
        let of = |file: &str, origins: &str| {
            let out = format!("{name}-{boundary}-{file}");
            let set = format!("--set solve.bc-time={boundary} {origins}");
            room.json(&format!("spectrum run.toml {file}.ildg --out {out} {set}"));
            lines(&room, &out).swap_remove(0)
        };
        let first = of("cfg", "--set origins=[[0,1,3,6],[1,0,0,1]]");
        if name == "lexicographic" {
            // Neither do they know conventions.
            let milc = lines(&room, &format!("milc-{boundary}-cfg")).swap_remove(0);
            let off = apart(&first, &milc);
            assert!(off < 1e-12, "phases: {off:e}");
        }
        for (file, origins) in [("moved", "[[1,3,2,1],[0,2,5,4]]"), ("turned", "[[0,1,3,6],[1,0,0,1]]")] {
            let second = of(file, &format!("--set origins={origins}"));
            let is_three_point = |name: &str| name.contains(':');
            let off = apart_among(&first, &second, &|name| !is_three_point(name));
            // Residuals of 1e-13 in each of the solves, of which a nucleon has three.
            assert!(off < 1e-12, "{name} {boundary} {file}: {off:e}");
            let off = apart_among(&first, &second, &is_three_point);
            // One more solve, and sums of both signs: of most currents little is left of larger parts of the fields.
            assert!(off < 1e-10, "{name} {boundary} {file}: {off:e}");
        }
    }
}

/// tr S₁ S₂† and the like of two masses, from the propagators that are kept.
#[test]
fn mesons_of_two_masses() {
    let room = room();
    let quarks = "[[quark]]\nname = \"light\"\n[[quark]]\nname = \"strange\"\nmass = 0.7\n";
    wilson(&room, "origins = [[1, 2, 0, 3], [0, 0, 5, 7]]\npropagators = \"kept\"");
    let text = fs::read_to_string(room.path("run.toml")).unwrap();
    fs::write(room.path("run.toml"), format!("{text}{quarks}")).unwrap();
    let report = room.json("spectrum run.toml cfg.ildg --out pairs");
    let hadrons: Vec<&str> =
        report["effective_masses"].as_array().unwrap().iter().map(|m| m["hadron"].as_str().unwrap()).collect();
    let expected = ["light-light pion", "light-strange pion", "strange-strange pion", "light-light rho"];
    assert_eq!((&hadrons[..4], hadrons.len(), hadrons[7]), (&expected[..], 8, "strange nucleon"));
    let line = lines(&room, "pairs").swap_remove(0);
    let lattice = Lattice::new(SIZE).unwrap();
    let read = |quark: &str, origin: &str| -> Vec<HostSpinor> {
        let file = room.path(&format!("kept/cfg.ildg.{quark}.{origin}.npy"));
        read_fermions(&file, &ReadOptions::default()).unwrap().fields
    };
    for momentum in [[0, 0, 0], [0, 1, 0], [0, 0, -1]] {
        // g5: Σ S₁ S₂*; 1: −tr S₁ γ_5 S₂† γ_5, with γ_5 diagonal.
        let mut expected = [[Complex64::ZERO; 8]; 2];
        for (name, origin) in [("1_2_0_3", [1, 2, 0, 3]), ("0_0_5_7", [0, 0, 5, 7])] {
            let (light, strange) = (read("light", name), read("strange", name));
            for index in 0..lattice.volume() {
                let x = lattice.coordinates(index);
                let turns: f64 =
                    (0..3).map(|k| f64::from(momentum[k]) * (x[k] as f64 - origin[k] as f64) / SIZE[k] as f64).sum();
                let phase = Complex64::cis(-std::f64::consts::TAU * turns) / 2.0;
                let t = (x[3] + 8 - origin[3]) % 8;
                for source in 0..12 {
                    for sink in 0..12 {
                        let (a, b) = (light[source].sites()[index], strange[source].sites()[index]);
                        let product = phase * a[sink / 3][sink % 3] * b[sink / 3][sink % 3].conj();
                        let five = |k: usize| if k < 6 { 1.0 } else { -1.0 };
                        expected[0][t] += product;
                        expected[1][t] -= five(source) * five(sink) * product;
                    }
                }
            }
        }
        let scale = expected[0][0].norm();
        for (gamma, expected) in [("g5", expected[0]), ("1", expected[1])] {
            let found = correlator(&line, &format!("light-strange.{gamma}"), momentum);
            for (t, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert!((found - expected).norm() < 1e-13 * scale, "{gamma} {momentum:?} {t}: {found} {expected}");
            }
        }
    }
    // Each by itself is what a run with one quark has.
    let one = room.path("one.toml");
    wilson(&room, "origins = [[1, 2, 0, 3], [0, 0, 5, 7]]");
    fs::rename(room.path("run.toml"), &one).unwrap();
    room.json("spectrum one.toml cfg.ildg --out heavy --set solve.mass=0.7");
    let heavy = lines(&room, "heavy").swap_remove(0);
    for (many, single) in [("strange-strange.gx", "gx"), ("strange.nucleon.positive", "nucleon.positive")] {
        assert_eq!(correlator(&line, many, [0; 3]), correlator(&heavy, single, [0; 3]), "{many}");
    }
    fs::write(room.path("run.toml"), format!("{text}{quarks}")).unwrap();
    let run = "spectrum run.toml cfg.ildg --backend cpu";
    let other = format!("{run} --out pairs --set quark.1.mass=0.8 --set propagators=other");
    room.fails(2, &other, &["made with another value of quarks.strange.mass"]);
    room.fails(2, &format!("{run} --out pairs --set mesons=light-strange"), &["made with another value of mesons"]);
    room.fails(2, &format!("{run} --out new --set quark.1.mass=0.8"), &["kept/cfg.ildg.strange.", "solve.mass"]);
    for (set, parts) in [
        (
            "--set mesons=light-charm",
            &["'light-charm' is not QUARK-ANTIQUARK, where each is one of light, strange"][..],
        ),
        ("--set quark.1.name=light", &["two quarks have the name 'light'"]),
        ("--set quark.1.name=a-b", &["letters, digits"]),
        ("--set quark.1.kappa=0.1", &["kappa", "mass"]),
        ("--set quark.1.mas=0.1", &["unknown key 'quark.1.mas'", "did you mean 'mass'"]),
        ("--set quark.1.bc-time=periodic", &["bc-time of the quarks light and strange differ"]),
        (
            "--set quark.1.operator=staggered --set quark.1.csw=1",
            &["\"strange\" is staggered, but \"light\" is Wilson-like"],
        ),
        ("--set plot=g5", &["'g5' is none of light-light.1"]),
    ] {
        room.fails(2, &format!("{run} --out no {set}"), parts);
    }
    // One pair only, and a picture of it.
    let chosen = room.json(
        &format!("{run} --out chosen --set mesons=strange-light --set nucleon=false").replace(" --backend cpu", ""),
    );
    assert_eq!(chosen["effective_masses"].as_array().unwrap().len(), 2);
    let turned = correlator(&lines(&room, "chosen")[0], "strange-light.g5", [0; 3]);
    for (a, b) in turned.iter().zip(correlator(&line, "light-strange.g5", [0; 3])) {
        assert!((a - b.conj()).norm() < 1e-13 * turned[0].norm(), "{a} {b}");
    }
}

/// Mesons of staggered quarks of two masses, and their nucleon, are plain sums over propagators, with momenta.
#[test]
fn staggered_mesons_of_two_masses() {
    let room = room();
    let input = "origin = [1, 2, 3, 5]\nmomenta = 1\nnucleon = true\npropagators = \"kept\"\n[solve]\noperator = \"staggered\"\nmass = 0.2\n\
                 precision = \"double\"\ntol = 1e-12\n[[quark]]\nname = \"l\"\n[[quark]]\nname = \"s\"\nmass = 0.5\n";
    fs::write(room.path("run.toml"), input).unwrap();
    room.json("spectrum run.toml cfg.ildg --out pairs");
    let line = lines(&room, "pairs").swap_remove(0);
    let lattice = Lattice::new(SIZE).unwrap();
    let read = |quark: &str| -> Vec<HostColour> {
        read_fermions(&room.path(&format!("kept/cfg.ildg.{quark}.npy")), &ReadOptions::default()).unwrap().fields
    };
    let (light, strange) = (read("l"), read("s"));
    for momentum in [[0, 0, 0], [0, -1, 0], [0, 0, 1]] {
        let mut expected = [[Complex64::ZERO; 8]; 2];
        let mut nucleon = [Complex64::ZERO; 8];
        for index in 0..lattice.volume() {
            let x = lattice.coordinates(index).map(|x| x as i32);
            let steps = [x[0] - 1, x[1] - 2, x[2] - 3];
            let turns: f64 = (0..3).map(|k| f64::from(momentum[k] * steps[k]) / SIZE[k] as f64).sum();
            let phase = Complex64::cis(-std::f64::consts::TAU * turns);
            let t = (x[3] + 3) as usize % 8;
            if steps.iter().all(|step| step % 2 == 0) {
                // ε_abc ε_a'b'c' over all six permutations of both.
                let all = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]];
                for (i, sinks) in all.iter().enumerate() {
                    for (j, sources) in all.iter().enumerate() {
                        let sign = if (i < 3) == (j < 3) { 1.0 } else { -1.0 } * if x[3] < 5 { -1.0 } else { 1.0 };
                        let three: Complex64 = (0..3).map(|k| light[sources[k]].sites()[index][sinks[k]]).product();
                        nucleon[t] += sign * phase * three;
                    }
                }
            }
            for source in 0..3 {
                for sink in 0..3 {
                    let product =
                        phase * light[source].sites()[index][sink] * strange[source].sites()[index][sink].conj();
                    expected[0][t] += product;
                    expected[1][t] += product * if steps.iter().sum::<i32>() % 2 == 0 { 1.0 } else { -1.0 };
                }
            }
        }
        let found = correlator(&line, "l.nucleon", momentum);
        let largest = nucleon.iter().map(|z| z.norm()).fold(0.0, f64::max);
        assert!(found.iter().zip(nucleon).all(|(a, b)| (a - b).norm() < 1e-12 * largest), "{found:?} {nucleon:?}");
        for (name, expected) in [("pion", &expected[0]), ("scalar", &expected[1])] {
            let found = correlator(&line, &format!("l-s.{name}"), momentum);
            for (found, value) in found.iter().zip(expected) {
                assert!((found - value).norm() < 1e-13 * scale(&line), "{name}: {found} {value}");
            }
        }
    }
}

/// The largest value of the pion of two masses.
fn scale(line: &Value) -> f64 {
    correlator(line, "l-s.pion", [0; 3]).iter().map(|z| z.norm()).fold(0.0, f64::max)
}
