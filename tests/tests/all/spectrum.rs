//! `ferrite spectrum`: correlators against Chroma, MILC and momentum space.
use crate::correlators::*;
use crate::program::*;
use ferrite_tests::gamma::{GAMMA, SpinMatrix};
use ferrite_tests::refdata;
use ferrite_tests::testkit::matrix::{add, adjoint, multiply, scale, trace, unit};
use num_complex::Complex64;
use std::fs;

/// S(x) of free quarks, antiperiodic in time, as a sum over momenta of 1 / (m + Σ (1 − cos p) + i Σ γ sin p).
fn free_propagator([lx, ly, lz, lt]: [usize; 4], mass: f64, x: [i64; 4]) -> SpinMatrix {
    let mut sum = [[Complex64::ZERO; 4]; 4];
    for k in 0..lx * ly * lz * lt {
        let n = [k % lx, k / lx % ly, k / (lx * ly) % lz, k / (lx * ly * lz)];
        let two_pi = std::f64::consts::TAU;
        let p: [f64; 4] = std::array::from_fn(|mu| {
            let half = if mu == 3 { 0.5 } else { 0.0 };
            two_pi * (n[mu] as f64 + half) / [lx, ly, lz, lt][mu] as f64
        });
        let a = mass + p.iter().map(|p| 1.0 - p.cos()).sum::<f64>();
        let square = a * a + p.iter().map(|p| p.sin().powi(2)).sum::<f64>();
        let phase = Complex64::cis((0..4).map(|mu| p[mu] * x[mu] as f64).sum());
        let slash = (0..4).fold([[Complex64::ZERO; 4]; 4], |sum, mu| add(&sum, p[mu].sin().into(), &GAMMA[mu]));
        sum = add(&sum, phase * a / square, &unit());
        sum = add(&sum, -phase * Complex64::I / square, &slash);
    }
    let volume = (lx * ly * lz * lt) as f64;
    scale((1.0 / volume).into(), &sum)
}

/// Free quarks, all 16 mesons with and without momentum, and the nucleon, from momentum space.
#[test]
fn free_quarks() {
    let room = Room::new();
    let (size, origin) = ([2usize, 4, 2, 6], [1usize, 2, 0, 4]);
    room.json("generate unit --lattice 2,4,2,6 -o unit.ildg");
    let input = r#"
        configurations = ["unit.ildg"]
        origin = [1, 2, 0, 4]
        momenta = 1
        [solve]
        operator = "wilson"
        mass = 0.3
        precision = "double"
        tol = 1e-13
    "#;
    fs::write(room.path("run.toml"), input).unwrap();
    room.json("spectrum run.toml --out free");
    let line = &lines(&room, "free")[0];
    let power = |n: usize| (0..4).filter(|mu| n >> mu & 1 == 1).fold(unit(), |all, mu| multiply(&all, &GAMMA[mu]));
    let (five, time) = (power(15), GAMMA[3]);
    for momentum in [[0, 0, 0], [0, 1, 0], [-1, 0, 0]] {
        let mut expected = vec![[Complex64::ZERO; 6]; 16];
        for k in 0..size.iter().product::<usize>() {
            let place = [k % 2, k / 2 % 4, k / 8 % 2, k / 16];
            let steps: [i64; 4] = std::array::from_fn(|mu| place[mu] as i64 - origin[mu] as i64);
            let s = free_propagator(size, 0.3, steps);
            let angle: f64 = (0..3).map(|k| f64::from(momentum[k]) * steps[k] as f64 / size[k] as f64).sum();
            let phase = Complex64::cis(-std::f64::consts::TAU * angle);
            for (n, expected) in expected.iter_mut().enumerate() {
                let bar = multiply(&multiply(&time, &adjoint(&power(n))), &time);
                let back = multiply(&multiply(&five, &adjoint(&s)), &five);
                let whole = multiply(&multiply(&power(n), &s), &multiply(&bar, &back));
                // Three colours, which do not mix.
                expected[(steps[3].rem_euclid(6)) as usize] -= 3.0 * phase * trace(&whole);
            }
        }
        for (n, name) in [(0, "1"), (1, "gx"), (3, "gxgy"), (7, "gxgygz"), (8, "gt"), (10, "gygt"), (15, "g5")] {
            for (found, expected) in correlator(line, name, momentum).iter().zip(expected[n]) {
                assert!((found - expected).norm() < 1e-11, "{name} {momentum:?}: {found} {expected}");
            }
        }
    }
    // The nucleon: colours give 6 for the direct and 6 for the exchange term, ε_abc ε_a'b'c' with equal indices.
    let g = multiply(&GAMMA[0], &GAMMA[2]);
    let tilde = multiply(&multiply(&time, &adjoint(&g)), &time);
    let mut expected = [[Complex64::ZERO; 6]; 2];
    for k in 0..size.iter().product::<usize>() {
        let place = [k % 2, k / 2 % 4, k / 8 % 2, k / 16];
        let steps: [i64; 4] = std::array::from_fn(|mu| place[mu] as i64 - origin[mu] as i64);
        // As from t = 0: those behind the boundary have not crossed it.
        let forward = [steps[0], steps[1], steps[2], steps[3].rem_euclid(6)];
        let s = free_propagator(size, 0.3, forward);
        let mut c = [[Complex64::ZERO; 4]; 4];
        for indices in 0..4usize.pow(6) {
            let digit = |k: u32| indices / 4usize.pow(k) % 4;
            let (alpha, beta, gamma, alpha1, beta1, gamma1) =
                (digit(0), digit(1), digit(2), digit(3), digit(4), digit(5));
            let factor = g[alpha][beta] * tilde[beta1][alpha1] * s[beta][beta1];
            // With S diagonal in colour, the exchange has a = c' and c = a': the other sign of ε.
            let direct = 6.0 * s[alpha][alpha1] * s[gamma][gamma1];
            let exchange = -6.0 * s[alpha][gamma1] * s[gamma][alpha1];
            c[gamma][gamma1] += factor * (direct - exchange);
        }
        let t = steps[3].rem_euclid(6) as usize;
        for (sign, expected) in [1.0, -1.0].into_iter().zip(&mut expected) {
            let projector = scale(0.5.into(), &add(&unit(), sign.into(), &time));
            expected[t] += trace(&multiply(&projector, &c));
        }
    }
    for (name, expected) in [("nucleon.positive", expected[0]), ("nucleon.negative", expected[1])] {
        for (found, expected) in correlator(line, name, [0; 3]).iter().zip(expected) {
            assert!((found - expected).norm() < 1e-11 * expected.norm().max(1.0), "{name}: {found} {expected}");
        }
    }
}

/// Chroma's pion from a shell, with a point and with a shell at the sink: see `clover.rs` for how it was made.
#[test]
fn chromas_pion() {
    let Some(folder) = refdata::folder() else { return };
    let room = Room::new();
    fs::copy(folder.join("configs/pyquda_weak_field.lime"), room.path("weak.lime")).unwrap();
    let answers = answers(&folder, "chroma_hadspec_pion_4448.json");
    let input = r#"
        source = "shell"
        nucleon = false
        propagators = "kept"
        [shell]
        width = 2.0
        steps = 5
        ape-weight = 2.5
        ape-steps = 1
        [solve]
        operator = "wilson"
        kappa = 0.11
        precision = "single"
        reconstruct = "18"
        tol = 1e-11
        reunitarise = false
    "#;
    fs::write(room.path("run.toml"), input).unwrap();
    // Chroma ran in single precision: an independent program that knows both agrees with its norm to 6.6e-6 (README.md of the
    // data). Each of the five steps of the shell at the sink makes a rounding error up to 12σ − 1 = 1.4 times larger, σ = w²/(4n).
    for (sink, name, limit) in
        [("point", "Shell_Point_Wilson_Mesons", 7e-6), ("shell", "Shell_Shell_Wilson_Mesons", 2e-5)]
    {
        room.json(&format!("spectrum run.toml weak.lime --out {sink} --set sink={sink}"));
        let line = &lines(&room, sink)[0];
        // The second time the propagator was there already.
        assert_eq!(line["propagators_read"], u32::from(sink == "shell"), "{line}");
        let pion = correlator(line, "g5", [0; 3]);
        for (found, expected) in pion.iter().zip(answers["data"][name]["15"].as_array().unwrap()) {
            let expected = expected[0].as_f64().unwrap();
            assert!((found.re / expected - 1.0).abs() < limit, "{name}: {found} {expected}");
        }
    }
}

/// MILC's propagator of asqtad quarks gives the same local mesons.
#[test]
fn milcs_staggered_pion() {
    let Some(folder) = refdata::folder() else { return };
    let room = Room::new();
    fs::copy(folder.join("configs/lat.sample.l4448.ll"), room.path("lat")).unwrap();
    let input = r#"
        configurations = ["lat"]
        [solve]
        operator = "asqtad"
        u0 = 1.0
        mass = 0.02
        precision = "double"
        tol = 1e-12
        reunitarise = true
    "#;
    fs::write(room.path("run.toml"), input).unwrap();
    let report = room.json("spectrum run.toml --out out");
    assert_eq!(report["effective_masses"][0]["hadron"], "Goldstone pion");
    let line = &lines(&room, "out")[0];
    let bytes = fs::read(folder.join("fields/ks.sample.l4448_m0.0200_t0_x0_y0_z0")).unwrap();
    // Header of 36 bytes; then by site, colour of the source, colour.
    let numbers: Vec<f64> =
        bytes[36..].chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect();
    let mut expected = [[0.0; 8]; 2];
    for (site, numbers) in numbers.chunks_exact(18).enumerate() {
        let [x, y, z, t] = [site % 4, site / 4 % 4, site / 16 % 4, site / 64];
        // MILC's operator is twice ours.
        let square = 4.0 * numbers.iter().map(|x| x * x).sum::<f64>();
        let sign = if (x + y + z) % 2 == 0 { 1.0 } else { -1.0 };
        expected[0][t] += square;
        expected[1][t] += sign * square;
    }
    let pion = expected[0];
    for (name, expected) in [("pion", pion), ("scalar", expected[1])] {
        for ((found, expected), all) in correlator(line, name, [0; 3]).iter().zip(expected).zip(pion) {
            // MILC's solver stopped early: its elements are off by 5.8e-5 (README.md of the data), either way, so that sums of
            // many squares are off by less.
            assert!((found.re - expected).abs() < 5.8e-5 * all, "{name}: {found} {expected}");
        }
    }
}

/// The pion of HISQ quarks, by the command.
#[test]
fn milcs_hisq_pion() {
    let Some(folder) = refdata::folder() else { return };
    let room = Room::new();
    fs::copy(folder.join("configs/lat.sample.l4448"), room.path("lat")).unwrap();
    let input = "configurations = [\"lat\"]\n[solve]\noperator = \"hisq\"\nmass = 0.05\nbc-time = \"periodic\"\n\
                 reunitarise = true\ntol = 1e-10\n";
    fs::write(room.path("run.toml"), input).unwrap();
    room.json("spectrum run.toml --out out");
    let answer = fs::read(folder.join("answers/milc_hisq_pion_point_4448.json")).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let expected = answer["correlators"][0]["data"].as_array().unwrap();
    let found = correlator(&lines(&room, "out")[0], "pion", [0; 3]);
    assert_eq!((found.len(), expected.len()), (8, 8));
    for (found, expected) in found.iter().zip(expected) {
        // MILC's M is twice ours, and its correlators have a factor of their own; seven digits are printed, of which the last is of
        // a solver that stopped at 4e-7.
        let expected = 4.0 * expected[0].as_f64().unwrap() / 0.000244141;
        assert!((found.re / expected - 1.0).abs() < 5e-6, "{found} {expected}");
    }
}

/// A nucleon from a source in the middle is that from t = 0, and noise makes the pion of all points of a time.
#[test]
fn sources_at_other_times_and_noise() {
    let room = Room::new();
    room.json("generate unit --lattice 2,2,2,8 -o unit.ildg");
    let input = "configurations = [\"unit.ildg\"]\n[solve]\noperator = \"wilson\"\nmass = 0.4\nprecision = \"double\"\ntol = 1e-13\n";
    fs::write(room.path("run.toml"), input).unwrap();
    for (folder, origin) in [("first", "0,0,0,0"), ("middle", "1,0,1,5")] {
        room.json(&format!("spectrum run.toml --out {folder} --set origin={origin}"));
    }
    let (first, middle) = (&lines(&room, "first")[0], &lines(&room, "middle")[0]);
    for name in ["g5", "gx", "nucleon.positive", "nucleon.negative"] {
        for (a, b) in correlator(first, name, [0; 3]).iter().zip(correlator(middle, name, [0; 3])) {
            assert!((a - b).norm() < 1e-11, "{name}: {a} {b}");
        }
    }
    // Many seeds: eight points, each with the pion of one.
    let mut mean = [0.0; 8];
    const SEEDS: usize = 150;
    for seed in 0..SEEDS {
        room.json(&format!("spectrum run.toml --out noise{seed} --set source=noise --set seed={seed}"));
        for (mean, value) in mean.iter_mut().zip(correlator(&lines(&room, &format!("noise{seed}"))[0], "g5", [0; 3])) {
            *mean += value.re / SEEDS as f64;
        }
    }
    for (t, (mean, point)) in mean.iter().zip(correlator(first, "g5", [0; 3])).enumerate() {
        assert!((mean / (8.0 * point.re) - 1.0).abs() < 0.15, "{t}: {mean} {point}");
    }
}

/// `examples/pion.py` finds the same masses as the program, of Wilson and of staggered quarks.
#[test]
fn the_example_in_python() {
    if !has_numpy() {
        return;
    }
    let room = Room::new();
    for seed in 1..4 {
        room.json(&format!("generate weak-field --lattice 4,4,4,8 --seed {seed} --noise 0.3 -o cfg.{seed}.ildg"));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pion.py");
    let python = |folder: &str| {
        let run = std::process::Command::new("python3").args([script, folder]).current_dir(room.0.path()).output();
        Run::from(run.unwrap())
    };
    with_wilson_input(&room);
    let wilson = fs::read_to_string(room.path("run.toml")).unwrap();
    fs::write(room.path("wilson.toml"), wilson).unwrap();
    let staggered = "[solve]\noperator = \"staggered\"\nmass = 0.2\ntol = 1e-9\n";
    fs::write(room.path("staggered.toml"), staggered).unwrap();
    for (input, name) in [("wilson", "g5"), ("staggered", "pion")] {
        let found = room.json(&format!("spectrum {input}.toml cfg.1.ildg cfg.2.ildg cfg.3.ildg --out {input}"));
        let run = python(input);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.starts_with(&format!("{name}: 3 configurations, T = 8\n")), "{}", run.stdout);
        let masses = found["effective_masses"][0]["masses"].as_array().unwrap();
        for (t, mass) in masses.iter().enumerate() {
            let line = run.stdout.lines().nth(t + 1).unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            // Five digits are printed.
            for (word, key) in [(words[1], "value"), (words[3], "error")] {
                let (python, ours): (f64, f64) = (word.parse().unwrap(), mass[key].as_f64().unwrap());
                assert!((python - ours).abs() < 1e-5, "{input}, {t}: {line}, {mass}");
            }
        }
    }
    let none = room.path("wilson/correlators.json");
    let axes = fs::read_to_string(&none).unwrap().replace("\"g5\"", "\"gone\"");
    fs::write(none, axes).unwrap();
    let run = python("wilson");
    assert!(run.code == Some(1) && run.stderr.contains("there is no pion"), "{}", run.stderr);
}
