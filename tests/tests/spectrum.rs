//! `ferrite spectrum`: correlators against Chroma, MILC and momentum space, and how runs go on.
mod program;

use ferrite_tests::refdata;
use num_complex::Complex64;
use program::*;
use serde_json::{Value, json};
use std::fs;

/// The lines of a folder.
fn lines(room: &Room, folder: &str) -> Vec<Value> {
    let text = fs::read_to_string(room.path(folder).join("correlators.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A correlator of a line.
fn correlator(line: &Value, name: &str, momentum: [i32; 3]) -> Vec<Complex64> {
    let all = line["correlators"].as_array().unwrap();
    let found = all.iter().find(|c| c["name"] == name && c["momentum"] == json!(momentum));
    let values = found.unwrap_or_else(|| panic!("no {name}"))["values"].as_array().unwrap();
    values.iter().map(|z| Complex64::new(z[0].as_f64().unwrap(), z[1].as_f64().unwrap())).collect()
}

/// γ matrices of the DeGrand–Rossi basis, written out: x, y, z, t.
fn gammas() -> [[[Complex64; 4]; 4]; 4] {
    let (o, p, m) = (Complex64::ZERO, Complex64::ONE, -Complex64::ONE);
    let (i, j) = (Complex64::I, -Complex64::I);
    [
        [[o, o, o, i], [o, o, i, o], [o, j, o, o], [j, o, o, o]],
        [[o, o, o, m], [o, o, p, o], [o, p, o, o], [m, o, o, o]],
        [[o, o, i, o], [o, o, o, j], [j, o, o, o], [o, i, o, o]],
        [[o, o, p, o], [o, o, o, p], [p, o, o, o], [o, p, o, o]],
    ]
}

type Spin = [[Complex64; 4]; 4];

fn product(a: &Spin, b: &Spin) -> Spin {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..4).map(|k| a[i][k] * b[k][j]).sum()))
}
fn adjoint(a: &Spin) -> Spin {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i].conj()))
}
fn unit() -> Spin {
    std::array::from_fn(|i| std::array::from_fn(|j| if i == j { Complex64::ONE } else { Complex64::ZERO }))
}

/// S(x) of free quarks, antiperiodic in time, as a sum over momenta of 1 / (m + Σ (1 − cos p) + i Σ γ sin p).
fn free_propagator([lx, ly, lz, lt]: [usize; 4], mass: f64, x: [i64; 4]) -> Spin {
    let gammas = gammas();
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
        for row in 0..4 {
            for column in 0..4 {
                let slash: Complex64 = (0..4).map(|mu| gammas[mu][row][column] * p[mu].sin()).sum();
                let diagonal = if row == column { Complex64::from(a) } else { Complex64::ZERO };
                sum[row][column] += phase * (diagonal - Complex64::I * slash) / square;
            }
        }
    }
    let volume = (lx * ly * lz * lt) as f64;
    sum.map(|row| row.map(|z| z / volume))
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
    let gammas = gammas();
    let power = |n: usize| (0..4).filter(|mu| n >> mu & 1 == 1).fold(unit(), |all, mu| product(&all, &gammas[mu]));
    let (five, time) = (power(15), gammas[3]);
    for momentum in [[0, 0, 0], [0, 1, 0], [-1, 0, 0]] {
        let mut expected = vec![[Complex64::ZERO; 6]; 16];
        for k in 0..size.iter().product::<usize>() {
            let place = [k % 2, k / 2 % 4, k / 8 % 2, k / 16];
            let steps: [i64; 4] = std::array::from_fn(|mu| place[mu] as i64 - origin[mu] as i64);
            let s = free_propagator(size, 0.3, steps);
            let angle: f64 = (0..3).map(|k| f64::from(momentum[k]) * steps[k] as f64 / size[k] as f64).sum();
            let phase = Complex64::cis(-std::f64::consts::TAU * angle);
            for (n, expected) in expected.iter_mut().enumerate() {
                let bar = product(&product(&time, &adjoint(&power(n))), &time);
                let back = product(&product(&five, &adjoint(&s)), &five);
                let whole = product(&product(&power(n), &s), &product(&bar, &back));
                let trace: Complex64 = (0..4).map(|i| whole[i][i]).sum();
                // Three colours, which do not mix.
                expected[(steps[3].rem_euclid(6)) as usize] -= 3.0 * phase * trace;
            }
        }
        for (n, name) in [(0, "1"), (1, "gx"), (3, "gxgy"), (7, "gxgygz"), (8, "gt"), (10, "gygt"), (15, "g5")] {
            for (found, expected) in correlator(line, name, momentum).iter().zip(expected[n]) {
                assert!((found - expected).norm() < 1e-11, "{name} {momentum:?}: {found} {expected}");
            }
        }
    }
    // The nucleon: colours give 6 for the direct and 6 for the exchange term, ε_abc ε_a'b'c' with equal indices.
    let g = product(&gammas[0], &gammas[2]);
    let tilde = product(&product(&time, &adjoint(&g)), &time);
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
            for row in 0..4 {
                for column in 0..4 {
                    let projector = 0.5 * (unit()[row][column] + sign * time[row][column]);
                    expected[t] += projector * c[column][row];
                }
            }
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
    let answers = fs::read_to_string(folder.join("answers/chroma_hadspec_pion_4448.json")).unwrap();
    let answers: Value = serde_json::from_str(&answers).unwrap();
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
        assert_eq!(line["iterations"].is_null(), sink == "shell", "{line}");
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

/// Several configurations: a run goes on, arrays have all, masses have errors.
#[test]
fn runs_go_on() {
    let room = Room::new();
    for seed in 1..4 {
        room.json(&format!("generate weak-field --lattice 4,4,4,8 --seed {seed} --noise 0.3 -o cfg.{seed}.ildg"));
    }
    let example = room.run("init spectrum").stdout;
    fs::write(room.path("run.toml"), example).unwrap();
    let run = "spectrum run.toml --set solve.mass=0.2 --set solve.precision=single --out out";
    let first = room.json(&format!("{run} cfg.1.ildg"));
    assert_eq!(first["configurations"], json!(["cfg.1.ildg"]));
    assert!(first["effective_masses"][0]["masses"][1]["error"].is_null());
    let before = fs::read_to_string(room.path("out/correlators.jsonl")).unwrap();
    let all = room.json(&format!("{run} cfg.1.ildg cfg.2.ildg cfg.3.ildg"));
    assert_eq!(all["configurations"].as_array().unwrap().len(), 3);
    let after = fs::read_to_string(room.path("out/correlators.jsonl")).unwrap();
    assert!(after.starts_with(&before));
    let hadrons: Vec<&str> =
        all["effective_masses"].as_array().unwrap().iter().map(|m| m["hadron"].as_str().unwrap()).collect();
    assert_eq!(hadrons, ["pion", "rho", "nucleon"]);
    let pion = &all["effective_masses"][0]["masses"];
    assert!(pion[2]["value"].as_f64().unwrap() > 0.0 && pion[2]["error"].as_f64().unwrap() > 0.0, "{pion}");
    // 16 mesons and two nucleons, 8 times, three configurations.
    let bytes = fs::read(room.path("out/correlators.npy")).unwrap();
    let header = String::from_utf8_lossy(&bytes[..128]).into_owned();
    assert!(header.contains("(3, 18, 8)") && header.contains("<c16"), "{header}");
    assert_eq!(bytes.len() % 64, 0);
    let data = &bytes[bytes.len() - 3 * 18 * 8 * 16..];
    let number = |k: usize| f64::from_le_bytes(data[8 * k..8 * k + 8].try_into().unwrap());
    let line = &lines(&room, "out")[2];
    let place = 2 * ((2 * 18 + 15) * 8 + 3);
    assert_eq!(Complex64::new(number(place), number(place + 1)), correlator(line, "g5", [0; 3])[3]);
    assert!(fs::read_to_string(room.path("out/effective-masses.svg")).unwrap().contains("nucleon"));

    // The same file by another name is the same file; another input is another folder's.
    let again = room.json(&format!("{run} ./cfg.1.ildg cfg.2.ildg"));
    assert_eq!(again["configurations"].as_array().unwrap().len(), 3);
    let other = "spectrum run.toml --set solve.precision=single --out out --backend cpu cfg.1.ildg";
    room.fails(2, &format!("{other} --set solve.mass=0.3"), &["line 1: it was made with another solve.mass"]);
    room.fails(2, &format!("{other} --set solve.mass=0.2 --set momenta=1"), &["made with another momenta"]);
    // Half a line is taken off, and its configuration made again.
    let whole = fs::read(room.path("out/correlators.jsonl")).unwrap();
    fs::write(room.path("out/correlators.jsonl"), &whole[..whole.len() - 100]).unwrap();
    assert_eq!(room.json(&format!("{run} cfg.3.ildg"))["configurations"].as_array().unwrap().len(), 3);
    let strip = |line: &Value| line["correlators"].clone();
    let mended = lines(&room, "out");
    assert_eq!(strip(&mended[2]), strip(line));

    // All headers are looked at before anything is made.
    let new = "spectrum run.toml --set solve.mass=0.2 --out no --backend cpu cfg.1.ildg";
    room.json("generate weak-field --lattice 4,4,4,4 --seed 9 -o small.ildg");
    room.fails(2, &format!("{new} none.ildg nor.ildg"), &["none.ildg cannot be read", "nor.ildg cannot be read"]);
    let nowhere = "check run.toml --set configurations=none.ildg --set configurations=nor.ildg --set solve.mass=x";
    room.fails(2, nowhere, &["3 mistakes", "none.ildg", "nor.ildg", "solve.mass"]);
    room.fails(2, &format!("{new} small.ildg"), &["small.ildg is on 4×4×4×4"]);
    room.fails(2, &format!("{new} --set origin=9,0,0,0"), &["origin [9, 0, 0, 0] is outside the lattice 4×4×4×8"]);
    room.fails(2, &format!("{new} --set momenta=9"), &["beyond the edge of the zone"]);
    room.fails(2, &format!("{new} --set solve.csw=x"), &["--set solve.csw", "x"]);
    room.fails(2, &format!("{new} --set source=noise --set nucleon=true"), &["three quarks from one noise are noise"]);
    room.fails(2, &format!("{new} --set seed=2"), &["--set seed", "belongs to source = \"noise\""]);
    room.fails(2, &format!("{new} --set source=wall --set momenta=1"), &["momenta", "no momentum but 0"]);
    let wrong = "nucleon = 3\norigin = [9, 0, 0, 0]\n[shell]\nwidth = 1.0\n[solve]\nkapa = 0.1\ngauge = \"x\"\n";
    fs::write(room.path("wrong.toml"), wrong).unwrap();
    let parts =
        ["wrong.toml:1:11: nucleon", "kapa", "did you mean 'kappa'?", "belongs to `ferrite solve`", "shell.width"];
    room.fails(2, "spectrum wrong.toml cfg.1.ildg --out no --backend cpu", &parts);
    room.fails(2, "check wrong.toml", &parts);
    assert!(!room.path("no").exists());
    let checked = room.json("check run.toml --set configurations=cfg.1.ildg --set solve.mass=0.2");
    assert_eq!((&checked["kind"], &checked["ok"]), (&json!("spectrum"), &json!(true)));
    // Of several processes, too; with shells the lattice is cut in t.
    let checked = "check run.toml --set configurations=cfg.1.ildg --set solve.mass=0.2 --processes 4";
    let grid = |flags: &str| room.json(&format!("{checked} {flags}"))["layout"]["grid"].clone();
    let shell = "--set sink=shell --set shell.width=2 --set shell.steps=5";
    assert_eq!((grid("--grid 1,1,2,2"), grid(shell)), (json!([1, 1, 2, 2]), json!([1, 1, 1, 4])));
    room.fails(2, &format!("{checked} {shell} --grid 1,1,2,2"), &["whole time slices", "--grid 1,1,1,4"]);
    // How files are read is asked of headers as of links: bytes that follow are refused, unless they are accepted.
    room.json("convert cfg.1.ildg long.nersc");
    let mut long = fs::read(room.path("long.nersc")).unwrap();
    long.extend([0; 64]);
    fs::write(room.path("long.nersc"), long).unwrap();
    let long = "check run.toml --set configurations=long.nersc --set solve.mass=0.2";
    room.fails(2, long, &["64 bytes follow", "(solve.no-verify = true)"]);
    room.json(&format!("{long} --set solve.no-verify=true"));
    room.fails(
        2,
        &format!("{long} --set solve.no-verify=true --set solve.lattice=4,4,8,4"),
        &["4×4×8×4 according to the caller"],
    );

    // Propagators belong to one configuration and one input.
    fs::create_dir(room.path("a")).unwrap();
    fs::copy(room.path("cfg.2.ildg"), room.path("a/cfg.1.ildg")).unwrap();
    let kept =
        "spectrum run.toml --set solve.mass=0.2 --set solve.precision=single --set propagators=kept --backend cpu";
    room.json(&format!("{kept} cfg.1.ildg --out first").replace(" --backend cpu", ""));
    room.fails(2, &format!("{kept} a/cfg.1.ildg --out second"), &["made with another configuration"]);
    let heavier = format!("{kept} cfg.1.ildg --out third").replace("mass=0.2", "mass=0.3");
    room.fails(2, &heavier, &["kept/cfg.1.ildg.npy", "made with another input.solve.mass"]);
    assert_eq!(strip(&lines(&room, "first")[0]), strip(&mended[0]));
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

/// Correlators do not depend on how many components of a source are solved together, which memory decides.
#[test]
fn batches_of_components() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 5 --noise 0.3 -o cfg.ildg");
    let wilson = "configurations = [\"cfg.ildg\"]\n[solve]\noperator = \"clover\"\ncsw = 1.0\nmass = 0.3\n\
                  precision = \"single\"\ntol = 1e-10\n";
    let staggered = "configurations = [\"cfg.ildg\"]\n[solve]\noperator = \"asqtad\"\nmass = 0.1\ntol = 1e-10\n";
    fs::write(room.path("wilson.toml"), wilson).unwrap();
    fs::write(room.path("staggered.toml"), staggered).unwrap();
    let made = |input: &str, flags: &str, folder: &str| {
        room.json(&format!("spectrum {input}.toml --out {input}.{folder} {flags}"));
        lines(&room, &format!("{input}.{folder}")).swap_remove(0)
    };
    for (input, names, sizes) in [
        (
            "wilson",
            &["g5", "gx", "nucleon.positive"][..],
            &[json!([12]), json!(vec![1; 12]), json!([4, 4, 4]), json!([5, 5, 2])][..],
        ),
        ("staggered", &["pion", "vector"][..], &[json!([3]), json!([1, 1, 1]), json!([2, 1])][..]),
    ] {
        let whole = made(input, "", "whole");
        assert_eq!(whole["batches"], sizes[0]);
        for expected in &sizes[1..] {
            let batch = &expected[0];
            let split = made(input, &format!("--batch {batch}"), &format!("{batch}"));
            assert_eq!(&split["batches"], expected);
            for name in names {
                let (a, b) = (correlator(&split, name, [0; 3]), correlator(&whole, name, [0; 3]));
                // Solutions with residuals of 1e-10 times the condition of M, of which the nucleon has three.
                let scale = b.iter().map(|z| z.norm()).fold(0.0, f64::max);
                let off = a.iter().zip(&b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
                assert!(off < 1e-8 * scale, "{input} in batches of {batch}: {name} is off by {off:e} of {scale:e}");
            }
        }
        // The key of the input does the same; less memory makes smaller batches.
        let check = |flags: &str| room.json(&format!("check {input}.toml {flags}"));
        let needed = check("")["memory"]["needed_bytes"].as_u64().unwrap();
        let less = format!("--memory {}", needed - 1);
        let half = if input == "wilson" { json!([6, 6]) } else { json!([2, 1]) };
        assert_eq!((&check(&less)["batches"], &check(&less)["batches_limited_by"]), (&half, &json!("memory")));
        assert_eq!(made(input, &less, "less")["batches"], half);
        assert_eq!(check("--set batch=2")["batches"][0], 2);
    }
    let run = room.run("spectrum wilson.toml --out said --backend cpu --batch 6");
    assert!(run.stderr.contains("cfg.ildg: 12 right-hand sides in batches of 6: as asked for"), "{}", run.stderr);
    // The log names keys as the input does.
    for line in
        ["configurations = cfg.ildg (wilson.toml:1:19)", "solve.mass = 0.3 (wilson.toml:5:8)", "batch = 6 (flag)"]
    {
        assert!(run.stderr.contains(&format!("note: input: {line}\n")), "{line} is not in {}", run.stderr);
    }
    room.fails(2, "spectrum wilson.toml --out no --set solve.batch=3", &["solve.batch", "--batch N"]);
    room.fails(2, "spectrum wilson.toml --out no --set solve.sources=3", &["solve.sources", "belongs to"]);
    room.fails(2, "spectrum wilson.toml --out no --batch 0", &["--batch", "1 to 64"]);
}

/// `examples/pion.py` finds the same masses as the program, of Wilson and of staggered quarks.
#[test]
fn the_example_in_python() {
    let numpy = std::process::Command::new("python3").args(["-c", "import numpy"]).output();
    if !numpy.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no python3 with NumPy");
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

/// Bins, correlators with errors, and what else is shown.
#[test]
fn summaries() {
    let room = Room::new();
    with_wilson_input(&room);
    for seed in 1..6 {
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} --noise 0.3 -o cfg.{seed}.ildg"));
    }
    let run = "spectrum run.toml cfg.1.ildg cfg.2.ildg cfg.3.ildg cfg.4.ildg cfg.5.ildg --out out";
    let plain = room.json(run);
    assert_eq!(plain["jackknife"], json!({ "bin": 1, "bins": 5, "left_out": 0 }));
    // The mean and its error, by hand.
    let values: Vec<f64> = lines(&room, "out").iter().map(|line| correlator(line, "g5", [0; 3])[1].re).collect();
    let check = |found: &Value, values: &[f64]| {
        let (n, mean) = (values.len() as f64, values.iter().sum::<f64>() / values.len() as f64);
        let error = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt();
        let one = &found["correlators"][0]["values"][1];
        assert_eq!(found["correlators"][0]["hadron"], "pion");
        assert!((one["value"].as_f64().unwrap() / mean - 1.0).abs() < 1e-12, "{one} {mean}");
        assert!((one["error"].as_f64().unwrap() / error - 1.0).abs() < 1e-9, "{one} {error}");
    };
    check(&plain, &values);
    // The same lines in bins of two; the fifth fills none.
    let binned = room.json(&format!("{run} --set bin=2 --set plot=gt --set plot=gxgy"));
    assert_eq!(binned["jackknife"], json!({ "bin": 2, "bins": 2, "left_out": 1 }));
    check(&binned, &[0.5 * (values[0] + values[1]), 0.5 * (values[2] + values[3])]);
    let names: Vec<&str> =
        binned["effective_masses"].as_array().unwrap().iter().map(|m| m["hadron"].as_str().unwrap()).collect();
    assert_eq!(names, ["pion", "rho", "gt", "gxgy"]);
    let svg = fs::read_to_string(room.path("out/effective-masses.svg")).unwrap();
    for part in [
        "wilson, m = 0.3, point to point on 4×4×4×4",
        "5 configurations in 2 bins of 2, the last 1 left out",
        "t / a",
        "gxgy",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    let text = room.run(&format!("{run} --backend cpu")).stdout;
    for part in ["out: 5 configurations\n", "C(t)", "all correlators: out/correlators.npy", "out/effective-masses.svg"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let columns = |text: &str| text.lines().find(|line| line.starts_with("C(t)")).unwrap().split_whitespace().count();
    assert_eq!((columns(&text), columns(&room.run(&format!("{run} --backend cpu -v")).stdout)), (2, 3));
    room.fails(2, &format!("{run} --set plot=g6"), &["plot: 'g6' is none of 1, gx"]);
    room.fails(2, &format!("{run} --set plot=nucleon.positive"), &["plot"]);
    room.fails(2, &format!("{run} --set bin=0"), &["bin", "1 to"]);
}

/// A short input of Wilson quarks in `run.toml`.
fn with_wilson_input(room: &Room) {
    let input = "nucleon = false\n[solve]\noperator = \"wilson\"\nmass = 0.3\nprecision = \"single\"\ntol = 1e-6\n";
    fs::write(room.path("run.toml"), input).unwrap();
}

/// Other links under the same name are another configuration; the same links in another folder are the same.
#[test]
fn results_belong_to_what_files_hold() {
    let room = Room::new();
    with_wilson_input(&room);
    let weak = |seed: u32, name: &str| {
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} --noise 0.3 -o {name}"));
    };
    weak(1, "cfg.1.ildg");
    fs::create_dir(room.path("moved")).unwrap();
    let run = "spectrum run.toml --set propagators=kept";
    room.json(&format!("{run} cfg.1.ildg --out out"));
    let line = lines(&room, "out").swap_remove(0);
    for (file, schema) in
        [("out/correlators.json", "ferrite.correlator-axes/1"), ("kept/cfg.1.ildg.json", "ferrite.propagator/1")]
    {
        let about: Value = serde_json::from_str(&fs::read_to_string(room.path(file)).unwrap()).unwrap();
        assert_eq!(about["schema"], schema);
    }
    assert_eq!(line["content"]["bytes"], fs::metadata(room.path("cfg.1.ildg")).unwrap().len());
    // Moved, and copied, which changes its time: the propagator is read, and a line is not made again.
    for (from, to) in [("cfg.1.ildg", "moved/cfg.1.ildg"), ("moved/cfg.1.ildg", "cfg.1.ildg")] {
        fs::copy(room.path(from), room.path(to)).unwrap();
        fs::remove_file(room.path(from)).unwrap();
        let out = if to.starts_with("moved") { "second" } else { "third" };
        room.json(&format!("{run} {to} --out {out}"));
        assert_eq!(lines(&room, out)[0]["correlators"], line["correlators"]);
        assert!(lines(&room, out)[0]["iterations"].is_null());
        assert_eq!(room.json(&format!("{run} {to} --out out"))["configurations"].as_array().unwrap().len(), 1);
    }
    // A file of a version before, which noted names: taken by the name, unless the file is younger.
    let without = |path: &str| {
        let text = fs::read_to_string(room.path(path)).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        value.as_object_mut().unwrap().remove("content");
        if !path.ends_with("jsonl") {
            value.as_object_mut().unwrap().remove("schema");
        }
        fs::write(room.path(path), format!("{value}\n")).unwrap();
    };
    for folder in ["old", "old-kept"] {
        fs::create_dir(room.path(folder)).unwrap();
    }
    fs::copy(room.path("out/correlators.jsonl"), room.path("old/correlators.jsonl")).unwrap();
    for file in ["cfg.1.ildg.npy", "cfg.1.ildg.json"] {
        fs::copy(room.path(&format!("kept/{file}")), room.path(&format!("old-kept/{file}"))).unwrap();
    }
    without("old/correlators.jsonl");
    without("old-kept/cfg.1.ildg.json");
    let old = room.run("spectrum run.toml cfg.1.ildg --out old --backend cpu");
    assert!(old.code == Some(0) && old.stderr.contains("line 1: of an earlier version"), "{}", old.stderr);
    let old = room.run("spectrum run.toml cfg.1.ildg --set propagators=old-kept --out fourth --backend cpu");
    assert!(old.code == Some(0) && old.stderr.contains("old-kept/cfg.1.ildg.json is of an earlier version"));
    assert!(lines(&room, "fourth")[0]["iterations"].is_null());

    // Made again with other links.
    weak(2, "cfg.1.ildg");
    let cpu = "--backend cpu cfg.1.ildg";
    for out in ["out", "old"] {
        let parts = ["cfg.1.ildg holds other links than when line 1 of", "name another folder"];
        room.fails(2, &format!("spectrum run.toml {cpu} --out {out}"), &parts);
    }
    for kept in ["kept", "old-kept"] {
        let command = format!("spectrum run.toml {cpu} --set propagators={kept} --out fifth");
        room.fails(2, &command, &["cfg.1.ildg.npy was made with another configuration", "name another folder"]);
    }
    // The same links under another name are a chain that repeats itself, and count.
    fs::copy(room.path("cfg.1.ildg"), room.path("cfg.2.ildg")).unwrap();
    room.json("spectrum run.toml cfg.1.ildg cfg.2.ildg --out chain");
    assert_eq!(lines(&room, "chain").len(), 2);
}

/// What would fail after hours fails before the first solve.
#[test]
fn propagators_need_names_of_their_own() {
    let room = Room::new();
    with_wilson_input(&room);
    for (seed, folder) in [(1, "a"), (2, "b")] {
        fs::create_dir(room.path(folder)).unwrap();
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} -o {folder}/cfg.ildg"));
    }
    let both = "spectrum run.toml a/cfg.ildg b/cfg.ildg --backend cpu --out out";
    let parts = ["a/cfg.ildg and b/cfg.ildg would both keep", "kept/cfg.ildg.npy"];
    room.fails(2, &format!("{both} --set propagators=kept"), &parts);
    assert!(!room.path("out").exists() && !room.path("kept").exists());
    assert_eq!(room.run(both).code, Some(0));
    // A propagator of another mass, of the second configuration.
    fs::copy(room.path("b/cfg.ildg"), room.path("b/other.ildg")).unwrap();
    room.json("spectrum run.toml b/other.ildg --set propagators=kept --set solve.mass=0.4 --out other");
    let late = "spectrum run.toml a/cfg.ildg b/other.ildg --backend cpu --set propagators=kept --out late";
    room.fails(2, late, &["kept/other.ildg.npy", "another input.solve.mass"]);
    assert!(!room.path("late").exists());
}

/// A key that is given with its default, or a number in other words, is the same input.
#[test]
fn inputs_are_the_same_by_value() {
    let room = Room::new();
    with_wilson_input(&room);
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o cfg.ildg");
    let run = "spectrum run.toml cfg.ildg --out out";
    room.json(run);
    for same in ["bc-time=antiperiodic", "mass=0.300", "tol=0.000001", "xi=1.0", "record=0", "reunitarise=false"] {
        room.json(&format!("{run} --set solve.{same}"));
    }
    assert_eq!(lines(&room, "out").len(), 1);
    room.fails(2, &format!("{run} --set solve.bc-time=periodic"), &["made with another solve.bc-time"]);
}

/// Lines that do not hold what they should are refused with their place.
#[test]
fn damaged_lines_have_places() {
    let room = Room::new();
    with_wilson_input(&room);
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o cfg.ildg");
    room.json("spectrum run.toml cfg.ildg --out out");
    let good = lines(&room, "out").swap_remove(0);
    let refused = |change: &dyn Fn(&mut Value), part: &str| {
        let mut line = good.clone();
        change(&mut line);
        fs::write(room.path("out/correlators.jsonl"), format!("{line}\n")).unwrap();
        let place = "out/correlators.jsonl, line 1: ";
        room.fails(2, "spectrum run.toml cfg.ildg --out out --backend cpu", &[place, part]);
    };
    let values = |line: &mut Value, k: usize, n: usize| {
        line["correlators"][k]["values"].as_array_mut().unwrap().truncate(n);
    };
    refused(&|line| values(line, 15, 3), "g5 has 3 values, but 1 has 4");
    refused(&|line| values(line, 0, 2), "gx has 4 values, but 1 has 2");
    refused(&|line| (0..16).for_each(|k| values(line, k, 0)), "1 has 0 values");
    refused(&|line| line["content"] = json!({ "bytes": 3 }), "content is no object");
    refused(&|line| line["correlators"] = json!([]), "there are no correlators");
}
