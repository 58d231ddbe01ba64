//! The quark mass of the axial current: the correlators and the ratio against plain sums, free quarks, the Ward identity on one
//! configuration, and fits of known masses.
use crate::correlators::*;
use crate::program::*;
use crate::three_point::dense;
use ferrite::field::host::HostSpinor;
use ferrite::files::{ReadOptions, read_fermions, read_gauge};
use ferrite::gpu_kernels::random::Philox;
use ferrite_tests::clover_reference::propagator_at;
use ferrite_tests::reference::{WilsonDirac, dot, gamma5};
use ferrite_tests::testkit::matrix::{adjoint, multiply};
use num_complex::Complex64;
use serde_json::{Value, json};
use std::fs;

const SIZE: [usize; 4] = [2, 4, 6, 8];
const ORIGIN: [usize; 4] = [1, 2, 0, 5];

fn wilson(room: &Room, head: &str) {
    let solve = "operator = \"wilson\"\nmass = 0.3\nprecision = \"double\"\ntol = 1e-13\n";
    fs::write(room.path("run.toml"), format!("{head}\n[solve]\n{solve}")).unwrap();
}

/// m at the times 0 to T/2 by the formula, of C_A = −⟨ψ̄ γ_xγ_yγ_z ψ P†⟩ and C_P, at t and T − t.
fn plain(axial: &[f64], pion: &[f64], improvement: f64) -> Vec<Option<f64>> {
    let extent = axial.len() as i64;
    let a = |t: i64| {
        let (here, back) = (t.rem_euclid(extent) as usize, (-t).rem_euclid(extent) as usize);
        if here == 0 { -axial[0] } else { -0.5 * (axial[here] - axial[back]) }
    };
    let p = |t: i64| 0.5 * (pion[t.rem_euclid(extent) as usize] + pion[(-t).rem_euclid(extent) as usize]);
    let one = |t: i64| {
        let slope = 0.5 * (a(t + 1) - a(t - 1));
        (slope + improvement * (p(t + 1) - 2.0 * p(t) + p(t - 1))) / (2.0 * p(t))
    };
    (0..=extent / 2).map(|t| (t > 0).then(|| one(t))).collect()
}

/// The correlator from kept propagators, and the ratio of its mean with the jackknife's error of two configurations.
#[test]
fn masses_are_plain_sums() {
    let room = Room::new();
    let files = ["a.ildg", "b.ildg"];
    for (seed, file) in [(41, files[0]), (42, files[1])] {
        room.json(&format!("generate weak-field --lattice 2,4,6,8 --seed {seed} --noise 0.3 -o {file}"));
    }
    wilson(
        &room,
        "configurations = [\"a.ildg\", \"b.ildg\"]\norigin = [1, 2, 0, 5]\npcac = true\nmomenta = 1\npropagators = \"kept\"",
    );
    let report = room.json("spectrum run.toml --out found");
    let all = lines(&room, "found");
    let mut real = Vec::new();
    for (line, file) in all.iter().zip(files) {
        let gauge = read_gauge(&room.path(file), &ReadOptions::default()).unwrap().gauge;
        let lattice = gauge.lattice();
        let s = read_fermions(&room.path(&format!("kept/{file}.npy")), &ReadOptions::default()).unwrap().fields;
        let (five, axial) = (dense(15), dense(7));
        for p in [[0, 0, 0], [0, -1, 0]] {
            let mut expected = [[Complex64::ZERO; 8]; 2];
            for x in 0..lattice.volume() {
                let place = lattice.coordinates(x);
                let angle: f64 =
                    (0..3).map(|k| f64::from(p[k]) * (place[k] as f64 - ORIGIN[k] as f64) / SIZE[k] as f64).sum();
                let here = propagator_at(&s, x);
                let dagger = adjoint(&here);
                for (expected, sink) in expected.iter_mut().zip([&axial, &five]) {
                    // P† = (ψ̄ γ_5 ψ)† is −P.
                    let line =
                        multiply(&multiply(sink, &here), &multiply(&five, &multiply(&five, &multiply(&dagger, &five))));
                    let trace: Complex64 = (0..12).map(|k| line[k][k]).sum();
                    expected[(place[3] + 8 - ORIGIN[3]) % 8] += Complex64::cis(-std::f64::consts::TAU * angle) * trace;
                }
            }
            let scale = expected[1][0].norm();
            for (name, expected) in ["gxgygz-g5", "g5"].into_iter().zip(expected) {
                for (t, (found, expected)) in correlator(line, name, p).into_iter().zip(expected).enumerate() {
                    assert!((found - expected).norm() < 1e-12 * scale, "{file} {name} {p:?} {t}: {found} {expected}");
                }
            }
        }
        real.push(
            ["gxgygz-g5", "g5"].map(|name| correlator(line, name, [0; 3]).iter().map(|z| z.re).collect::<Vec<f64>>()),
        );
        ward_identity(line, &s, &WilsonDirac::new(&gauge, 0.3, -1.0));
    }
    let mean = |k: usize| -> Vec<f64> { (0..8).map(|t| 0.5 * (real[0][k][t] + real[1][k][t])).collect() };
    let [axial, pion] = [mean(0), mean(1)];
    let fitted = room.run("fit found --hadron pcac --ca -0.07 --json");
    // Two samples have no fit, which is said; m(t) is there in the summary.
    assert!(fitted.code == Some(2) && fitted.stderr.contains("2 samples"), "{}", fitted.stderr);
    let masses = report["pcac"][0]["masses"].as_array().unwrap();
    assert_eq!((&report["pcac"][0]["hadron"], masses.len(), &masses[0]), (&json!("pcac"), 5, &Value::Null));
    let each: Vec<Vec<Option<f64>>> = real.iter().map(|[axial, pion]| plain(axial, pion, 0.0)).collect();
    for (t, expected) in plain(&axial, &pion, 0.0).into_iter().enumerate().skip(1) {
        let (value, error) = (number(&masses[t]["value"]), number(&masses[t]["error"]));
        let spread = 0.5 * (each[0][t].unwrap() - each[1][t].unwrap()).abs();
        assert!((value - expected.unwrap()).abs() < 1e-12, "{t}: {value} {expected:?}");
        assert!((error - spread).abs() < 1e-12 && spread > 1e-6, "{t}: {error} {spread}");
    }
    let text = room.run("spectrum run.toml --out found --backend cpu").stdout;
    assert!(text.lines().any(|line| line.contains("nucleon") && line.trim_end().ends_with("pcac")), "{text}");
    // A folder without the correlator is another one, and so is what asks for it.
    let run = "spectrum run.toml --backend cpu";
    room.fails(
        2,
        &format!("{run} --out found --set pcac=false"),
        &["line 1: the line was made with another value of pcac"],
    );
    let shell = "--set sink=shell --set shell.width=1 --set shell.steps=4";
    room.fails(2, &format!("{run} --out no {shell}"), &["pcac: the axial current is local", "sink = \"point\""]);
    room.fails(2, &format!("{run} --out no --set solve.operator=staggered"), &["pcac", "Wilson-like quarks"]);
    room.json("spectrum run.toml --out without --set pcac=false");
    room.fails(2, "fit without --hadron pcac", &["'pcac' is none of pion"]);
    room.fails(2, "fit without --ca 0.1", &["--ca applies to PCAC masses only", "pcac = true"]);
    room.fails(2, "fit found --hadron pcac --window 0:3", &["--window 0:3", "t = 1 to T/2 = 4"]);
    room.fails(2, "fit found --hadron pcac --window 1:5", &["t = 1 to T/2 = 4"]);
}

/// S† (α M + M† α) S with α = 1 at a time is what S has at the source: 2 (4 + m) C_P less hops is 2 Re tr S(x₀, x₀) at time 0, and
/// nothing at all others. With γ_5 M γ_5 = M† this is the axial Ward identity, whose hops are the divergence of the current that
/// reaches a neighbour, and what the Wilson term breaks.
fn ward_identity(line: &Value, s: &[HostSpinor], dirac: &WilsonDirac) {
    let lattice = s[0].lattice();
    let pion = correlator(line, "g5", [0; 3]);
    let origin = lattice.index(ORIGIN);
    let contact: f64 = (0..12).map(|k| 2.0 * s[k].sites()[origin][k / 3][k % 3].re).sum();
    let hopped: Vec<HostSpinor> = s.iter().map(|s| dirac.hopping(false, s)).collect();
    for t in 0..8 {
        let here = |psi: &HostSpinor| {
            let mut psi = psi.clone();
            for (x, site) in psi.sites_mut().iter_mut().enumerate() {
                if (lattice.coordinates(x)[3] + 8 - ORIGIN[3]) % 8 != t {
                    *site = Default::default();
                }
            }
            psi
        };
        let mut hops = Complex64::ZERO;
        for (s, hopped) in s.iter().zip(&hopped) {
            // γ_5 α D + D γ_5 α between S† γ_5 and S.
            hops += dot(s, &here(hopped));
            hops += dot(&gamma5(s), &dirac.hopping(false, &gamma5(&here(s))));
        }
        let found = 2.0 * dirac.diagonal() * pion[t] - 0.5 * hops;
        let expected = if t == 0 { contact } else { 0.0 };
        assert!((found - expected).norm() < 1e-11 * pion[0].norm() * dirac.diagonal(), "{t}: {found} {expected}");
    }
}

/// A quark at rest falls by 1 + m from each time to the next, and m(t) = ½ sinh(2 ln(1 + m)) for its axial current and pion. Other momenta
/// fall faster by (3 + m)/(1 + m) for each of both quarks: by 10⁻⁹ after 10 times.
#[test]
fn free_quarks() {
    let room = Room::new();
    room.json("generate unit --lattice 2,2,2,32 -o unit.ildg");
    wilson(&room, "configurations = [\"unit.ildg\"]\norigin = [1, 0, 1, 20]\npcac = true\nnucleon = false");
    for mass in [0.05, 0.2] {
        for boundary in ["antiperiodic", "periodic"] {
            let out = format!("{boundary}-{mass}");
            let set = format!("--set solve.mass={mass} --set solve.bc-time={boundary}");
            let report = room.json(&format!("spectrum run.toml --out {out} {set}"));
            let masses = report["pcac"][0]["masses"].as_array().unwrap();
            let expected = 0.5 * (2.0 * (1.0f64 + mass).ln()).sinh();
            for (t, m) in masses.iter().enumerate().skip(11) {
                let value = number(&m["value"]);
                assert!((value / expected - 1.0).abs() < 1e-8, "{out} {t}: {value} {expected}");
            }
        }
    }
}

/// Records of a pion of E = 0.4 with C_A = f C_P by its derivative: m = f sinh(0.4)/2 + c_A (cosh(0.4) − 1).
#[test]
fn plateaus_are_fitted() {
    let room = Room::new();
    fs::create_dir_all(room.path("many")).unwrap();
    let line = |number: u64| {
        let mut random = Philox::new(19, number, 1);
        let common = 1.0 + 0.05 * random.normal_pair()[0];
        let mut of = |f: &dyn Fn(f64) -> f64| -> Vec<[f64; 2]> {
            let mut value = |t: i32| common * f(0.4 * (10.0 - f64::from(t))) * (1.0 + 0.01 * random.normal_pair()[0]);
            (0..20).map(|t| [value(t), 0.0]).collect()
        };
        let one = |name: &str, values: Vec<[f64; 2]>| json!({ "name": name, "momentum": [0, 0, 0], "values": values });
        let correlators = json!([one("l-l.g5", of(&|x| x.cosh())), one("l-l.gxgygz-g5", of(&|x| 0.3 * x.sinh()))]);
        let file = format!("cfg.{number}");
        let line = json!({
            "schema": "ferrite.correlators/1", "configuration": file, "file": file, "lattice": [8, 8, 8, 20],
            "input": { "source": "point" }, "correlators": correlators,
        });
        format!("{line}\n")
    };
    fs::write(room.path("many/correlators.jsonl"), (0..80).map(line).collect::<String>()).unwrap();
    for improvement in [0.0, -0.08] {
        let truth = 0.15 * 0.4f64.sinh() + improvement * (0.4f64.cosh() - 1.0);
        let found = room.json(&format!("fit many --ca {improvement}"));
        assert_eq!(
            (found["hadrons"].as_array().unwrap().len(), &found["hadrons"][0]["hadron"]),
            (1, &json!("l-l pion"))
        );
        let one = &found["pcac"][0];
        let (value, error) = (number(&one["mass"]["value"]), number(&one["mass"]["error"]));
        // Of one experiment: 4 errors are 1 in 15000.
        assert!((value - truth).abs() < 4.0 * error && error < 0.02 * truth, "{one}");
        assert_eq!((&one["hadron"], number(&one["c_a"])), (&json!("l-l pcac"), improvement));
        assert!(one["masses"].as_array().unwrap().len() == 11 && one["masses"][0].is_null(), "{one}");
    }
    let args = ["fit", "many", "--hadron", "l-l pcac", "--window", "3:9", "--json"];
    let fit = room.command("").args(args).output().unwrap();
    assert!(fit.status.success(), "{fit:?}");
    let found: Value = serde_json::from_slice(&fit.stdout).unwrap();
    assert_eq!(
        (&found["pcac"][0]["window"], &found["hadrons"], &found["pcac"][0]["dof"]),
        (&json!([3, 9]), &json!([]), &json!(6))
    );
    let text = room.run("fit many").stdout;
    assert!(text.contains("l-l pcac") && text.contains("a m = 0.06") && text.contains("a m(t)"), "{text}");
    // Pages, of the folder and of the fit.
    let page = room.json("report many");
    assert_eq!(page["pcac"][0]["hadron"], "l-l pcac");
    let html = fs::read_to_string(room.path("many/report.html")).unwrap();
    assert!(html.contains("Quark mass from the axial current") && html.contains("a m = 0.06"), "{html}");
    fs::write(room.path("fit.json"), found.to_string()).unwrap();
    assert_eq!(room.json("report fit.json -o fit.html")["sections"][0]["text"], "fits of 80 configurations: l-l pcac");
    assert!(fs::read_to_string(room.path("fit.html")).unwrap().contains("Quark mass from the axial current"));
}
