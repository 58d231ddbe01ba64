//! Results of several files that are analysed together: configurations count once, inputs are not mixed, and chains stay apart.
use crate::program::*;
use ferrite::gpu_kernels::random::Philox;
use serde_json::{Value, json};
use std::fs;

/// C(t) of the pion on a configuration with this file, at rest and at momenta with one component; each value is another one.
fn line(file: &str, seed: u64, more: &Value) -> Value {
    let mut random = Philox::new(21, seed, 3);
    let mut values = |energy: f64| {
        let mut value = |t: i32| {
            let noise = 1.0 + 0.05 * random.normal_pair()[0];
            [noise * ((-energy * f64::from(t)).exp() + (-energy * f64::from(16 - t)).exp()), 0.0]
        };
        (0..16).map(&mut value).collect::<Vec<[f64; 2]>>()
    };
    let momenta = [[0, 0, 0], [0, 0, 1], [0, 0, -1], [0, 1, 0], [0, -1, 0], [1, 0, 0], [-1, 0, 0]];
    let pions = momenta.iter().map(|p| {
        let energy = if *p == [0; 3] { 0.4 } else { 0.7 };
        json!({ "name": "g5", "momentum": p, "values": values(energy) })
    });
    let mut line = json!({
        "schema": "ferrite.correlators/1", "configuration": file, "file": format!("/ensemble/{file}"),
        "lattice": [8, 8, 8, 16], "input": { "source": "point", "solve": { "operator": "clover", "mass": "0.1", "csw": "1.0" } },
        "correlators": pions.collect::<Vec<_>>(),
    });
    for (key, value) in more.as_object().unwrap() {
        line[key.as_str()] = value.clone();
    }
    line
}

fn folder(room: &Room, name: &str, lines: &[Value]) {
    fs::create_dir_all(room.path(name)).unwrap();
    file(room, &format!("{name}/correlators.jsonl"), lines);
}

fn file(room: &Room, name: &str, lines: &[Value]) {
    fs::write(room.path(name), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

fn stream(stem: &str, numbers: impl Iterator<Item = u64>, seed: u64) -> Vec<Value> {
    numbers.map(|n| line(&format!("{stem}.{n}.ildg"), seed + n, &json!({}))).collect()
}

/// C(3) of the pion at rest.
fn values(lines: &[Value]) -> Vec<f64> {
    lines.iter().map(|line| number(&line["correlators"][0]["values"][3][0])).collect()
}

/// Mean and jackknife error of bins.
fn of_bins(bins: &[f64]) -> (f64, f64) {
    let n = bins.len() as f64;
    let mean = bins.iter().sum::<f64>() / n;
    (mean, (bins.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt())
}

#[test]
fn a_configuration_counts_once() {
    let room = Room::new();
    let lines = stream("cfg", 1..13, 0);
    folder(&room, "once", &lines);
    folder(&room, "twice", &[&lines[..], &lines[..]].concat());
    let there = ["/ensemble/cfg.1.ildg occurs twice, first in ", "remove one of the lines"];
    room.fails(2, "fit twice", &[&["twice/correlators.jsonl, line 13: "], &there[..]].concat());
    room.fails(2, "report twice", &there);
    room.fails(2, "fit once once", &there);
    // A file of lines of two folders.
    file(&room, "joined.jsonl", &[&lines[..], &lines[3..4]].concat());
    let places = ["joined.jsonl, line 13: /ensemble/cfg.4.ildg occurs twice, first in joined.jsonl, line 4"];
    room.fails(2, "fit joined.jsonl", &places);
    room.fails(2, "report joined.jsonl", &places);
    // A copy in another folder, of the same bytes.
    let content = json!({ "content": { "bytes": 7, "crc32": "abcdef01", "modified_ns": "1" } });
    let mut copy = line("cfg.20.ildg", 20, &content);
    let original = copy.clone();
    copy["file"] = json!("/copies/cfg.20.ildg");
    folder(&room, "copies", &[&lines[..], &[original, copy]].concat());
    room.fails(2, "fit copies", &["/copies/cfg.20.ildg occurs twice", "as /ensemble/cfg.20.ildg, with the same bytes"]);
    // The same holds for traces.
    let trace = |n: u64| {
        json!({
            "schema": "ferrite.traces/1", "file": format!("c.{n}"), "absolute": format!("/e/c.{n}"), "lattice": [4, 4, 4, 8],
            "traces": [{ "mass": 0.1, "gamma": "1", "noise": [[0.5, 0.0], [0.6, 0.1 * n as f64]] }],
        })
    };
    file(&room, "traces.jsonl", &[trace(1), trace(2), trace(1)]);
    room.fails(2, "fit traces.jsonl", &["traces.jsonl, line 3: /e/c.1 occurs twice, first in traces.jsonl, line 1"]);
    room.fails(2, "report traces.jsonl", &["traces.jsonl, line 3", "occurs twice"]);
    let measured = |n: u64| {
        json!({
            "schema": "ferrite.measurement/1", "file": format!("c.{n}"), "absolute": format!("/e/c.{n}"), "lattice": [4, 4, 4, 8],
            "rectangle": 0.3, "charge": 0.1, "plaquette": { "mean": 0.5, "spatial": 0.5, "temporal": 0.5 },
            "polyakov_loop": [0.1, 0.2], "energy": { "space": 1.0, "time": 1.0 },
            "wilson_loops": [{ "r": [1, 0, 0], "values": [0.5, 0.3] }],
        })
    };
    file(&room, "a.jsonl", &[measured(1), measured(2)]);
    file(&room, "b.jsonl", &[measured(3), measured(2)]);
    room.fails(2, "fit a.jsonl b.jsonl", &["b.jsonl, line 2: /e/c.2 occurs twice, first in a.jsonl, line 2"]);
    // Side by side they are two sections, of which none is counted twice.
    assert_eq!(room.json("report a.jsonl b.jsonl -o both.html")["sections"].as_array().unwrap().len(), 2);
}

#[test]
fn lines_of_different_inputs_are_not_averaged() {
    let room = Room::new();
    let lines = stream("cfg", 1..7, 0);
    folder(&room, "first", &lines);
    for (key, value, why) in [
        ("operator", json!("wilson"), "solve.operator is wilson, but clover in first/correlators.jsonl, line 1"),
        ("mass", json!("0.2"), "solve.mass is 0.2, but 0.1 in"),
        ("csw", json!("1.5"), "solve.csw is 1.5, but 1 in"),
        ("stout-rho", json!("0.1"), "solve.stout-rho is 0.1, but 0 in"),
        ("source", json!("wall"), "source is wall, but point in"),
    ] {
        let mut other = line("cfg.9.ildg", 9, &json!({}));
        let place = if key == "source" { &mut other["input"] } else { &mut other["input"]["solve"] };
        place[key] = value;
        folder(&room, "second", &[other]);
        room.fails(2, "fit first second", &["second/correlators.jsonl, line 1: ", why, "analyse them separately"]);
    }
    // As typed they differ, and mean the same.
    let same = json!({ "source": "point", "solve": { "operator": "clover", "mass": "1e-1", "csw": "1", "bc-time": "antiperiodic" } });
    folder(&room, "second", &[line("cfg.9.ildg", 9, &json!({ "input": same }))]);
    assert_eq!(room.json("fit first second")["configurations"], 7);
    folder(&room, "second", &[line("cfg.9.ildg", 9, &json!({ "lattice": [8, 8, 8, 8] }))]);
    room.fails(
        2,
        "fit first second",
        &["line 1: its lattice (8,8,8,8) differs from that of first/correlators.jsonl, line 1"],
    );
    let mut fewer = line("cfg.9.ildg", 9, &json!({}));
    fewer["correlators"].as_array_mut().unwrap().pop();
    folder(&room, "second", &[fewer]);
    room.fails(2, "fit first second", &["it has no g5 at momentum -1,0,0, which first/correlators.jsonl, line 1 has"]);
}

/// Traces of two operators and measurements of two flows are not mixed: only their input distinguishes them.
#[test]
fn traces_and_flows_are_not_mixed() {
    let room = Room::new();
    room.json("generate quenched --lattice 4,4,4,4 --beta 5.6 --seed 1 --sweeps 10 --every 5 --thermalise 5 -o g.ildg");
    room.json("trace g.000010.ildg g.000015.ildg --operator wilson --mass 0.3 --noise 2 -o w.jsonl");
    room.json("trace g.000010.ildg g.000015.ildg --operator clover --csw 1.5 --mass 0.3 --noise 2 -o c.jsonl");
    let why = ["c.jsonl, line 1: solve.operator is clover, but wilson in w.jsonl, line 1"];
    room.fails(2, "fit w.jsonl c.jsonl", &why);
    let joined = fs::read_to_string(room.path("w.jsonl")).unwrap() + &fs::read_to_string(room.path("c.jsonl")).unwrap();
    fs::write(room.path("wc.jsonl"), joined).unwrap();
    room.fails(2, "report wc.jsonl", &["wc.jsonl, line 3: solve.operator is clover, but wilson in wc.jsonl, line 1"]);
    // What the command prints has no input, but the same keys.
    let [w, c] = ["wilson", "clover --csw 1.5"].map(|operator| {
        room.run(&format!("trace g.000010.ildg --operator {operator} --mass 0.3 --noise 2 --json")).stdout
    });
    fs::write(room.path("printed.jsonl"), w + &c).unwrap();
    room.fails(2, "fit printed.jsonl", &["printed.jsonl, line 2: ", "in printed.jsonl, line 1"]);
    room.json("measure g.000010.ildg --flow 0.1 --flow-step 0.05 -o wilson.jsonl");
    room.json("measure g.000015.ildg --flow 0.1 --flow-step 0.05 --flow-action zeuthen -o zeuthen.jsonl");
    let why = ["zeuthen.jsonl, line 1: flow.action is zeuthen, but wilson in wilson.jsonl, line 1"];
    room.fails(2, "fit wilson.jsonl zeuthen.jsonl", &why);
}

/// The order is that of the numbers, bins do not run across the end of a chain, and what fills none is left out at each end.
#[test]
fn chains_have_bins_of_their_own() {
    let room = Room::new();
    let (a, b) = (stream("a", 1..14, 0), stream("b", 1..8, 100));
    // As a shell lists files: a.1, a.10, a.11 … a.13, a.2 …
    let mut listed = a.clone();
    listed.sort_by_key(|line| line["file"].to_string());
    assert_ne!(listed, a);
    folder(&room, "a", &listed);
    folder(&room, "b", &b);
    let pairs =
        |lines: &[Value]| -> Vec<f64> { values(lines).chunks_exact(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect() };
    let check = |command: &str, bins: &[f64]| {
        let found = room.json(command);
        let c = &found["hadrons"][0]["correlator"][3];
        let (mean, error) = of_bins(bins);
        // Sums in another order.
        assert!((number(&c["value"]) / mean - 1.0).abs() < 1e-13, "{command}: {c} {mean}");
        assert!((number(&c["error"]) / error - 1.0).abs() < 1e-9, "{command}: {c} {error}");
        assert_eq!(found["bins"], bins.len());
        found
    };
    check("fit a --bin 2 --hadron pion", &pairs(&a));
    let both = check("fit a b --bin 2 --hadron pion", &[pairs(&a), pairs(&b)].concat());
    assert_eq!((&both["configurations"], &both["left_out"]), (&json!(20), &json!(2)));
    assert_eq!(
        both["streams"],
        json!([{ "name": "/ensemble/a.*.ildg", "configurations": 13 }, { "name": "/ensemble/b.*.ildg", "configurations": 7 }])
    );
    assert_eq!((&both["path"], &both["paths"]), (&json!("a"), &json!(["a", "b"])));
    let text = room.run("fit a b --bin 2 --hadron pion").stdout;
    for part in [
        "20 configurations of 2 streams in 9 bins of 2, without 2 at the ends of streams",
        "2 streams: a.*.ildg (13 configurations), b.*.ildg (7 configurations)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // One file of both.
    file(&room, "both.jsonl", &[&listed[..], &b].concat());
    check("fit both.jsonl --bin 2 --hadron pion", &[pairs(&a), pairs(&b)].concat());
    assert!(room.run("report both.jsonl").code == Some(0));
    assert!(fs::read_to_string(room.path("report.html")).unwrap().contains("2 streams: a.*.ildg"));
}

/// E(p) of the mean over equivalent momenta; correlators by themselves would have larger errors.
#[test]
fn momenta_are_fitted() {
    let room = Room::new();
    let lines = stream("cfg", 1..41, 0);
    folder(&room, "run", &lines);
    let found = room.json("fit run --hadron pion --momentum 1,0,0 --momentum 0,0,0 --window 1:5");
    let one = &found["hadrons"][0];
    assert_eq!((&one["momentum"], one["momenta"].as_array().unwrap().len()), (&json!([1, 0, 0]), 6));
    let energy = &one["energy"];
    // Four errors are 1 in 15000.
    assert!((number(&energy["value"]) - 0.7).abs() < 4.0 * number(&energy["error"]), "{energy}");
    assert_eq!(found["hadrons"][1]["momentum"], json!([0, 0, 0]));
    // The mean over six momenta, one configuration after the other.
    let mean = |line: &Value| {
        let all = line["correlators"].as_array().unwrap()[1..].iter();
        all.map(|c| number(&c["values"][3][0])).sum::<f64>() / 6.0
    };
    let (value, error) = of_bins(&lines.iter().map(mean).collect::<Vec<_>>());
    let c = &one["correlator"][3];
    assert!(
        (number(&c["value"]) / value - 1.0).abs() < 1e-13 && (number(&c["error"]) / error - 1.0).abs() < 1e-9,
        "{c}"
    );
    let text = room.run("fit run --hadron pion --momentum 0,0,-1 --window 1:5").stdout;
    assert!(text.contains("a E(0,0,-1) = 0.") && !text.contains("a E = "), "{text}");
    fs::write(room.path("fit.json"), found.to_string()).unwrap();
    room.json("report fit.json");
    let page = fs::read_to_string(room.path("report.html")).unwrap();
    assert!(page.contains("pion with momentum 1,0,0: a E(1,0,0) = 0."), "{page}");
    room.fails(2, "fit run --momentum 1,1,0", &["--momentum: run: the pion has no correlator with the momentum 1,1,0"]);
    room.fails(2, "fit run --momentum 1,1", &["'1,1' is not of the form X,Y,Z"]);
    // With twisted boundary conditions in space momenta of opposite signs differ.
    let input = json!({ "solve": { "operator": "clover", "mass": "0.1", "csw": "1.0", "theta": "0.3,0,0,0" } });
    let twisted: Vec<Value> = (1..9).map(|n| line(&format!("cfg.{n}"), n, &json!({ "input": input }))).collect();
    folder(&room, "twisted", &twisted);
    let found = room.json("fit twisted --hadron pion --momentum 1,0,0 --window 1:5");
    assert_eq!(found["hadrons"][0]["momenta"], json!([[1, 0, 0]]));
}
