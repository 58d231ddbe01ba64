//! `ferrite fix-gauge`: Coulomb and Landau gauge, against a divergence that is written out here and against MILC's links.
use crate::program::*;
use ferrite::field::host::HostGauge;
use ferrite::files::{ReadOptions, read_gauge};
use ferrite::gauge::fixing::relax::{Gauge, theta};
use ferrite_tests::refdata;
use num_complex::Complex64;
use std::fs;

fn links(room: &Room, name: &str) -> HostGauge {
    read_gauge(&room.path(name), &ReadOptions::default()).unwrap().gauge
}

/// Σ tr Δ Δ† / (3 V), Δ the sum over directions of the differences of the traceless (U − U†)/2i.
fn divergence(gauge: &HostGauge, directions: usize) -> f64 {
    let size = gauge.lattice().size();
    let strides = [1, size[0], size[0] * size[1], size[0] * size[1] * size[2]];
    let volume: usize = size.iter().product();
    let potential = |site: usize, mu: usize, i: usize, j: usize| -> Complex64 {
        let u = gauge.link(site, mu);
        let part = |a: usize, b: usize| (u[a][b] - u[b][a].conj()) * Complex64::new(0.0, -0.5);
        let trace: Complex64 = (0..3).map(|k| part(k, k)).sum();
        part(i, j) - if i == j { trace / 3.0 } else { Complex64::ZERO }
    };
    let mut sum = 0.0;
    for site in 0..volume {
        for (i, j) in (0..9).map(|k| (k / 3, k % 3)) {
            let mut delta = Complex64::ZERO;
            for mu in 0..directions {
                let x = site / strides[mu] % size[mu];
                let behind = site - x * strides[mu] + (x + size[mu] - 1) % size[mu] * strides[mu];
                delta += potential(site, mu, i, j) - potential(behind, mu, i, j);
            }
            sum += delta.norm_sqr();
        }
    }
    sum / (3 * volume) as f64
}

#[test]
fn links_are_in_the_gauge() {
    let room = Room::new();
    room.json("generate quenched --lattice 4,4,4,8 --beta 5.8 --seed 3 --sweeps 20 -o cfg.ildg");
    let start = links(&room, "cfg.ildg");
    for (gauge, directions) in [("coulomb", 3), ("landau", 4)] {
        let found = room.json(&format!("fix-gauge cfg.ildg -o {gauge}.ildg --gauge {gauge} --tol 1e-13"));
        let fixed = links(&room, &format!("{gauge}.ildg"));
        let (before, after) = (divergence(&start, directions), divergence(&fixed, directions));
        assert!(before > 0.1 && after < 1e-13, "{gauge}: {before} {after}");
        let number = |key: &str, when: &str| found[key][when].as_f64().unwrap();
        assert!((number("theta", "before") / before - 1.0).abs() < 1e-12);
        // Differences of numbers near 1 have errors of 1e-16, beside √θ.
        assert!((number("theta", "after") / after - 1.0).abs() < 1e-6);
        assert!(number("functional", "after") > number("functional", "before") + 0.3);
        // A gauge transformation: loops stay, to the rounding of some hundred turns.
        assert!((number("plaquette", "before") - number("plaquette", "after")).abs() < 1e-12);
        let polyakov = |name: &str| {
            let measured = room.json(&format!("measure {name}.ildg"));
            let one = &measured["configurations"][0];
            [0, 1].map(|k| one["polyakov_loop"][k].as_f64().unwrap())
        };
        for (a, b) in polyakov("cfg").into_iter().zip(polyakov(gauge)) {
            assert!((a - b).abs() < 1e-12);
        }
        // What is fixed stays as it is.
        let again = room.json(&format!("fix-gauge {gauge}.ildg -o again.ildg --gauge {gauge} --tol 1e-12"));
        assert_eq!(again["sweeps"], 0);
        assert_eq!(links(&room, "again.ildg"), fixed);
    }
    // Nothing is written that did not converge, and what cannot be is refused.
    let run = "fix-gauge cfg.ildg -o no.ildg --backend cpu";
    room.fails(1, &format!("{run} --max-sweeps 3"), &["cfg.ildg: theta is", "after 3 sweeps", "--max-sweeps"]);
    room.fails(2, &format!("{run} --tol 0"), &["--tol"]);
    room.fails(2, &format!("{run} --overrelax 2"), &["--overrelax", "below 2"]);
    room.fails(2, "fix-gauge cfg.ildg -o no.txt --backend cpu", &["no.txt", "the name does not determine the format"]);
    assert!(!room.path("no.ildg").exists());
}

/// Next to links of zeros there are turns that cannot be put into SU(3).
#[test]
fn links_of_zeros_have_no_gauge() {
    let room = Room::new();
    room.json("generate random --lattice 4,4,4,4 --seed 3 -o cfg.npy");
    let mut bytes = fs::read(room.path("cfg.npy")).unwrap();
    let first = bytes.len() - 256 * 4 * 144;
    bytes[first..first + 4 * 144].fill(0);
    fs::write(room.path("zero.npy"), bytes).unwrap();
    let run = "fix-gauge zero.npy -o no.ildg --backend cpu --allow-non-unitary";
    room.fails(1, run, &["zero.npy: theta is not a number after 10 sweeps", "--reunitarise"]);
    room.fails(2, &format!("{run} --reunitarise"), &["zero.npy: link U_x", "cannot be projected to SU(3)"]);
    assert!(!room.path("no.ildg").exists());
}

/// Walls on links that are not fixed say so.
#[test]
fn walls_look_at_the_gauge() {
    let room = Room::new();
    room.json("generate quenched --lattice 4,4,4,4 --beta 5.8 --seed 3 --sweeps 10 -o cfg.ildg");
    room.json("fix-gauge cfg.ildg -o fixed.ildg");
    for operator in ["wilson", "staggered"] {
        let input = format!("source = \"wall\"\n[solve]\noperator = \"{operator}\"\nmass = 0.5\ntol = 1e-6\n");
        fs::write(room.path("run.toml"), input).unwrap();
        for (name, said) in [("cfg", true), ("fixed", false)] {
            let run = room.run(&format!("spectrum run.toml {name}.ildg --out {operator}.{name} --backend cpu"));
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            assert_eq!(
                run.stderr.contains("cfg.ildg: the links are not in Coulomb gauge (theta = "),
                said,
                "{}",
                run.stderr
            );
        }
    }
}

/// MILC has put one of its samples into Coulomb gauge.
#[test]
fn milcs_coulomb_gauge() {
    let Some(folder) = refdata::folder() else { return };
    let read = |name: &str| read_gauge(&folder.join("configs").join(name), &ReadOptions::default()).unwrap().gauge;
    let (fixed, other) = (read("lat.sample.l4448.ll"), read("lat.sample.l4448"));
    let [a, b, c] = [theta(&fixed, Gauge::Coulomb), theta(&fixed, Gauge::Landau), theta(&other, Gauge::Coulomb)];
    println!("{a:.2e} {b:.2e} {c:.2e}");
    assert!(a < 1e-5 && b > 0.1 && c > 0.1, "{a} {b} {c}");
}
