//! Wilson loops against plain products of links, and `ferrite measure --loops`.
use crate::program::*;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::observables::wilson_loops::{WilsonLoops, wilson_loops};
use ferrite_tests::clover_reference::path;
use ferrite_tests::refdata;
use ferrite_tests::reference::{adjoint, multiply, plaquettes, transform_links, unit};
use ferrite_tests::testkit::matrix::{add, trace};
use num_complex::Complex64;
use serde_json::{Value, json};
use std::fs;

/// The product of links along steps (direction, forward), and where it ends.
fn along(gauge: &HostGauge, site: usize, steps: &[(usize, bool)]) -> (Matrix, usize) {
    let end = steps.iter().fold(site, |at, (mu, forward)| gauge.lattice().neighbour(at, *mu, *forward));
    (path(gauge, site, steps), end)
}

/// All orders of steps that lead along d.
fn orders(d: [i64; 3]) -> Vec<Vec<(usize, bool)>> {
    let mut all = Vec::new();
    for mu in (0..3).filter(|mu| d[*mu] != 0) {
        let mut rest = d;
        rest[mu] -= d[mu].signum();
        for tail in orders(rest) {
            all.push([vec![(mu, d[mu] > 0)], tail].concat());
        }
    }
    if all.is_empty() { vec![Vec::new()] } else { all }
}

/// W(n d, T) by its formula, with products of the links as they are.
fn plain(gauge: &HostGauge, direction: [i64; 3], n: usize, time: usize) -> f64 {
    // All vectors with these components, whatever their order and signs, both of each pair of opposites.
    let mut vectors: Vec<[i64; 3]> = Vec::new();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for signs in 0..8i64 {
            vectors.push([0, 1, 2].map(|k| direction[order[k]] * (1 - 2 * (signs >> k & 1))));
        }
    }
    vectors.sort_unstable();
    vectors.dedup();
    let (mut sum, up) = (0.0, vec![(3, true); time]);
    for d in &vectors {
        let paths = orders(*d);
        let mean = |site: usize| {
            let mut mean = [[Complex64::ZERO; 3]; 3];
            let mut end = site;
            for path in &paths {
                let (product, there) = along(gauge, site, path);
                end = there;
                mean = add(&mean, (1.0 / paths.len() as f64).into(), &product);
            }
            (mean, end)
        };
        let space = |site: usize| {
            (0..n).fold((unit(), site), |(whole, at), _| {
                let (part, next) = mean(at);
                (multiply(&whole, &part), next)
            })
        };
        for site in 0..gauge.lattice().volume() {
            let (low, beside) = space(site);
            let (right, _) = along(gauge, beside, &up);
            let (left, above) = along(gauge, site, &up);
            let (high, _) = space(above);
            let whole = multiply(&multiply(&low, &right), &multiply(&adjoint(&high), &adjoint(&left)));
            sum += trace(&whole).re / 3.0;
        }
    }
    sum / (gauge.lattice().volume() * vectors.len()) as f64
}

fn compare(gauge: &HostGauge, found: &[WilsonLoops], directions: &[([i64; 3], usize)]) {
    assert_eq!(found.len(), directions.len());
    for (one, (d, n)) in found.iter().zip(directions) {
        assert_eq!(one.separation.map(|x| x as i64), d.map(|x| x * *n as i64));
        for (k, value) in one.values.iter().enumerate() {
            let expected = plain(gauge, *d, *n, k + 1);
            // Some 20 products of matrices of norm √3, each with a rounding of 10⁻¹⁶, and means of 10³ such numbers.
            assert!((value - expected).abs() < 1e-14, "{d:?} {n} T = {}: {value} {expected}", k + 1);
        }
    }
}

#[test]
fn loops_are_products_of_links() {
    // Odd shapes, and every loop up to half of the time, so that many cross the boundary.
    let gauge = generate::random(Lattice::new([2, 4, 6, 8]).unwrap(), 3);
    let found = wilson_loops(&gauge, 1, 4, true);
    compare(&gauge, &found, &[([1, 0, 0], 1)]);
    // W(1, 1) is the plaquette of the temporal planes.
    assert!((found[0].values[0] - plaquettes(&gauge)[1]).abs() < 1e-14, "{found:?}");
    let gauge = generate::weak_field(Lattice::new([6, 6, 6, 2]).unwrap(), 5, 0.4);
    let found = wilson_loops(&gauge, 3, 1, true);
    let all = [
        ([1, 0, 0], 1),
        ([1, 1, 0], 1),
        ([1, 1, 1], 1),
        ([1, 0, 0], 2),
        ([2, 1, 0], 1),
        ([2, 1, 1], 1),
        ([1, 1, 0], 2),
        ([2, 2, 1], 1),
        ([1, 0, 0], 3),
    ];
    compare(&gauge, &found, &all);
    // Without loops off the axes the others are the same.
    let axes: Vec<WilsonLoops> = found.iter().filter(|one| one.separation[1] == 0).cloned().collect();
    assert_eq!(wilson_loops(&gauge, 3, 1, false), axes);
}

#[test]
fn loops_do_not_depend_on_the_gauge() {
    let lattice = Lattice::new([4, 4, 6, 4]).unwrap();
    let gauge = generate::random(lattice, 3);
    let turns = generate::random(lattice, 4);
    let turns: Vec<Matrix> = (0..lattice.volume()).map(|site| *turns.link(site, 0)).collect();
    let [here, there] = [&gauge, &transform_links(&gauge, &turns)].map(|g| wilson_loops(g, 2, 2, true));
    for (here, there) in here.iter().zip(&there) {
        for (a, b) in here.values.iter().zip(&there.values) {
            assert!((a - b).abs() < 1e-14, "{here:?} {there:?}");
        }
    }
    for one in wilson_loops(&HostGauge::unit(lattice), 2, 2, true) {
        assert!(one.values.iter().all(|w| (w - 1.0).abs() < 1e-15), "{one:?}");
    }
}

/// MILC's `hvy_qpot` on a configuration of 4⁴ after 5 and 10 steps of APE smearing with `smear_fac` 2.5, as its own test
/// (su3_hqp.2) has them: the weight 2.5 of a link beside four staples is α = 4/6.5.
#[test]
fn milcs_loops() {
    let Some(folder) = refdata::folder() else { return };
    let room = Room::new();
    fs::copy(folder.join("configs/lat.sample.l4444"), room.path("lat")).unwrap();
    for (levels, stored) in [
        (
            5,
            [
                ([1, 0, 0], [0.666_857_2, 0.476_780_8]),
                ([1, 1, 0], [0.599_170_9, 0.406_474_6]),
                ([1, 1, 1], [0.566_802_3, 0.379_230_7]),
                ([2, 0, 0], [0.561_766_7, 0.364_417_5]),
            ],
        ),
        (
            10,
            [
                ([1, 0, 0], [0.668_183_0, 0.477_780_3]),
                ([1, 1, 0], [0.602_988_1, 0.408_776_9]),
                ([1, 1, 1], [0.573_371_4, 0.383_839_5]),
                ([2, 0, 0], [0.569_984_3, 0.370_063_6]),
            ],
        ),
    ] {
        let flags = "--loops 2,2 --off-axis --loop-smear ape --loop-alpha 0.6153846153846154";
        let found = room.json(&format!("measure lat --reunitarise {flags} --loop-levels {levels}"));
        let found = found["configurations"][0]["wilson_loops"].as_array().unwrap();
        assert_eq!(found.len(), stored.len());
        for (one, (separation, values)) in found.iter().zip(stored) {
            assert_eq!(one["r"], json!(separation));
            for (k, expected) in values.into_iter().enumerate() {
                // MILC ends its projection to SU(3) at a relative change of 10⁻⁵, in single precision.
                let value = one["values"][k].as_f64().unwrap();
                assert!((value - expected).abs() < 1.5e-5, "{separation:?} T = {}: {value} {expected}", k + 1);
            }
        }
    }
}

/// Smeared on the way, and smeared by `ferrite smear` before: the same links in space, and the same in t.
#[test]
fn measured_loops_are_smeared_in_space() {
    let room = Room::with_weak_field();
    let plain = room.json("measure weak.ildg --loops 2,4 --off-axis -o loops.jsonl");
    for (flags, smear) in [
        ("--loop-smear ape --loop-alpha 0.6 --loop-levels 3", "--kind ape --alpha 0.6 --levels 3"),
        ("--loop-smear hyp", "--kind hyp"),
    ] {
        let found = room.json(&format!("measure weak.ildg --loops 2,4 --off-axis {flags}"));
        room.json(&format!("smear weak.ildg -o smeared.ildg {smear} --spatial"));
        let before = room.json("measure smeared.ildg --loops 2,4 --off-axis");
        let loops = |object: &Value| object["configurations"][0]["wilson_loops"].clone();
        assert_ne!(loops(&found), loops(&plain));
        let [found, before] = [loops(&found), loops(&before)];
        for (a, b) in found.as_array().unwrap().iter().zip(before.as_array().unwrap()) {
            assert_eq!(a["r"], b["r"]);
            // A file keeps links in double precision.
            let mut pairs = numbers(&a["values"]).into_iter().zip(numbers(&b["values"]));
            assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-14), "{a} {b}");
        }
    }
    // A line keeps what was asked for, and other loops are another file.
    let line = room.parsed("loops.jsonl");
    let input = json!({ "distance": 2, "time": 4, "off_axis": true, "smearing": null });
    assert_eq!(line["input"]["loops"], input);
    room.fails(
        2,
        "measure weak.ildg --loops 2,3 -o loops.jsonl --backend cpu",
        &["loops.jsonl, line 1", "another value of loops"],
    );
    let text = room.run("measure weak.ildg --loops 1,2 --backend cpu").stdout;
    assert!(text.contains("Wilson loops") && text.contains("T = 2") && text.contains("1,0,0"), "{text}");
    for (flags, parts) in [
        ("--loops 3,2", ["exceeds half of the extents of 4×4×4×8", "2,4"]),
        ("--loops 0,2", ["'0,2'", "R,T"]),
        ("--off-axis", ["--off-axis", "--loops"]),
        ("--loop-smear hyp", ["--loop-smear", "--loops"]),
        ("--loops 1,1 --loop-levels 2", ["--loop-levels", "--loop-smear"]),
        ("--loops 1,1 --loop-smear ape", ["--loop-alpha", "ape"]),
        ("--loops 1,1 --loop-smear hyp --loop-alpha 0.5", ["--loop-alpha", "three"]),
    ] {
        room.fails(2, &format!("measure weak.ildg --backend cpu {flags}"), &parts);
    }
}
