//! Files as they are named on command lines and in inputs: configurations without a flag, and patterns.
use crate::program::*;
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_configuration_needs_no_flag() {
    let room = Room::with_weak_field();
    let physics = "--mass 0.3 --source random:1 --tol 1e-8";
    let reported = |report: &Value| ["gauge", "mass", "tol", "sources", "history"].map(|key| report[key].clone());
    let expected = reported(&room.json(&format!("solve --gauge weak.ildg {physics} -o x.npy")));
    assert_eq!(expected[0], "weak.ildg");
    assert_eq!(reported(&room.json(&format!("solve weak.ildg {physics} -o y.npy"))), expected);
    assert_eq!(fs::read(room.path("x.npy")).unwrap(), fs::read(room.path("y.npy")).unwrap());
    // The content decides, whatever the name; and `invert` is `solve`.
    fs::copy(room.path("weak.ildg"), room.path("0100")).unwrap();
    assert_eq!(room.json(&format!("invert 0100 {physics}"))["gauge"], "0100");
    // Beside an input it replaces the input's, in any order; a text is an input under any name.
    fs::write(room.path("input"), "gauge = 'absent.ildg'\nmass = 0.3\nsource = 'random:1'\ntol = 1e-8\n").unwrap();
    for files in ["input weak.ildg", "weak.ildg input"] {
        assert_eq!(reported(&room.json(&format!("solve {files} -o y.npy"))), expected, "{files}");
    }
    room.fails(2, "solve input", &["gauge: absent.ildg: cannot open"]);
    room.json(&format!("apply --gauge weak.ildg {physics} -o x.npy").replace("--tol 1e-8", ""));
    room.json(&format!("apply weak.ildg {physics} -o y.npy").replace("--tol 1e-8", ""));
    assert_eq!(fs::read(room.path("x.npy")).unwrap(), fs::read(room.path("y.npy")).unwrap());
    // What flags, inputs and files without flags say is protected alike.
    room.fails(2, "solve weak.ildg --mass 0.3 --source random:1 -o weak.npy --plot weak.ildg", &["plots are SVG"]);
    fs::copy(room.path("y.npy"), room.path("g.npy")).unwrap();
    room.json("convert weak.ildg links.npy");
    let over = "solve links.npy --mass 0.3 --source random:1 -o links.npy --backend cpu";
    room.fails(2, over, &["links.npy is an input of this command: name another output file"]);
}

#[test]
fn patterns_name_configurations() {
    let room = Room::new();
    for number in [10, 9, 1] {
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {number} -o cfg{number}.ildg"));
    }
    let order = json!(["cfg1.ildg", "cfg9.ildg", "cfg10.ildg"]);
    let files = |report: &Value| {
        report["configurations"].as_array().unwrap().iter().map(|one| one["file"].clone()).collect::<Value>()
    };
    // No shell has expanded these.
    for command in
        ["measure", "trace --mass 1 --noise 1 --operator staggered", "eigenvalues --mass 1 --steps 30 --tol 0.1"]
    {
        let (name, flags) = command.split_once(' ').unwrap_or((command, ""));
        assert_eq!(files(&room.json(&format!("{name} cfg*.ildg {flags}"))), order, "{command}");
    }
    fs::write(
        room.path("run.toml"),
        "configurations = ['cfg?.ildg', 'cfg1[0-9].ildg']\n[solve]\noperator = 'staggered'\nmass = 1.0\ntol = 1e-6\n",
    )
    .unwrap();
    assert_eq!(room.json("check run.toml")["configurations"], 3);
    assert_eq!(room.json("spectrum run.toml --out s")["configurations"], order);
    assert_eq!(room.json("spectrum run.toml cfg*.ildg --out t")["configurations"], order);
    room.fails(
        2,
        "check run.toml --set configurations=conf*",
        &["--set configurations: conf*: no file matches this pattern"],
    );
    // A file whose name looks like a pattern is meant by its name.
    fs::copy(room.path("cfg1.ildg"), room.path("cfg[1].ildg")).unwrap();
    assert_eq!(files(&room.json("measure cfg[1].ildg")), json!(["cfg[1].ildg"]));
}
