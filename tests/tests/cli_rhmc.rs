//! `ferrite rhmc`: runs, how they go on, what is refused, and another program's trajectories.
mod program;

use ferrite::files::{ReadOptions, read_gauge};
use ferrite_tests::refdata;
use program::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const QUARKS: &str = r#"
lattice = [4, 4, 4, 4]
trajectories = 4
seed = 11
start = "hot"
thermalise = 2
save-every = 2
[gauge]
action = "wilson"
beta = 5.5
[trajectory]
length = 0.3
steps = 3
gauge-steps = 2
[[fermion]]
operator = "naive"
mass = [0.3]
flavours = [2]
pseudofermions = 2
[[fermion]]
operator = "asqtad"
u0 = 0.9
mass = [0.2, 0.5]
flavours = [1, 1]
[measure]
reversibility = 2
kernels = 4
"#;

const GAUGE: &str = r#"
lattice = [4, 4, 4, 4]
trajectories = 30
seed = 12
[gauge]
action = "symanzik"
beta = 7.0
u0 = 0.87
[trajectory]
length = 0.5
steps = 5
integrator = "force-gradient"
"#;

/// The lines of a run, without what depends on the clock and on where it went on.
fn lines(room: &Room, folder: &str) -> Vec<Value> {
    let text = fs::read_to_string(room.path(folder).join("trajectories.jsonl")).unwrap();
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        for key in ["seconds", "seconds_with_observables", "seconds_of_files", "kernels", "run"] {
            value.as_object_mut().unwrap().remove(key);
        }
        value
    };
    text.lines().map(line).collect()
}
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_run_and_how_it_goes_on() {
    let room = Room::new();
    fs::write(room.path("run.toml"), QUARKS).unwrap();
    let report = room.json("rhmc run.toml --out whole");
    // Means are those of trajectories with a Metropolis step: two of four.
    assert_eq!((&report["last_trajectory"], &report["summary"]["trajectories"]), (&json!(4), &json!(2)));
    let whole = lines(&room, "whole");
    let mean = 0.5 * (number(&whole[2]["plaquette"]["mean"]) + number(&whole[3]["plaquette"]["mean"]));
    assert!((number(&report["summary"]["plaquette"]["mean"]) - mean).abs() < 1e-12, "{report}");
    assert_eq!(whole.len(), 4);
    for (k, line) in whole.iter().enumerate() {
        assert_eq!((line["trajectory"].as_u64(), line["metropolis"].as_bool()), (Some(k as u64 + 1), Some(k >= 2)));
        assert!(number(&line["delta_h"]).abs() < 5.0, "{line}");
        assert!(number(&line["plaquette"]["mean"]) > 0.0 && line["quarks"].as_array().unwrap().len() == 2);
        assert!(line["quarks"][1]["iterations"]["dynamics"].as_u64().unwrap() > 0);
        // As asked, 1e-12, but for rounding in the last steps of a recurrence.
        assert!(line["quarks"].as_array().unwrap().iter().all(|q| (0.0..3e-12).contains(&number(&q["residual"]))));
        assert_eq!(line["condensate"].as_array().unwrap().len(), 3);
        assert!(line["condensate"].as_array().unwrap().iter().all(|c| number(&c["mean"]) > 0.0));
        // The recurrence ended at 1e-8, and in double precision the true residual is no other.
        let residual = |c: &Value| number(&c["residual"]);
        assert!(line["condensate"].as_array().unwrap().iter().all(|c| (1e-12..1.01e-8).contains(&residual(c))));
        // The way back ends where it began, to the rounding of forces and solutions in single precision.
        assert_eq!(line.get("irreversibility").is_some(), k % 2 == 1);
    }
    assert!(number(&whole[1]["irreversibility"]["links"]) < 1e-5);
    for name in ["cfg.000002.ildg", "cfg.000004.ildg", "state.toml"] {
        assert!(room.path("whole").join(name).is_file(), "{name}");
    }
    room.json("verify whole/cfg.000004.ildg");
    // The report reads what the run wrote.
    let page = room.json("report whole");
    assert_eq!((&page["trajectories"], &page["skipped"], &page["metropolis_steps"]), (&json!(4), &json!(2), &json!(2)));
    let rows = page["observables"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    assert!((number(&row("plaquette.mean")["mean"]) - mean).abs() < 1e-12);
    assert_eq!(rows.iter().filter(|row| row["name"] == "quarks.iterations.dynamics").count(), 2);
    assert_eq!(rows.iter().filter(|row| row["name"] == "condensate").count(), 3);
    let html = fs::read_to_string(room.path("whole/report.html")).unwrap();
    assert!(html.contains("<svg") && html.contains("naive flavours 2 at m = 0.3"));
    room.fails(2, "report whole -o whole/state.toml", &["whole/state.toml", ".html"]);
    room.fails(2, "report .", &["no trajectories.jsonl"]);
    // Times of kernels were taken in the last one.
    let text = fs::read_to_string(room.path("whole/trajectories.jsonl")).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(number(&last["kernels"]["share"]) > 0.3, "{}", last["kernels"]);

    // In two parts: the same to the bit.
    room.json("rhmc run.toml --out parts --set trajectories=3");
    room.json("rhmc run.toml --out parts --resume");
    assert_eq!(lines(&room, "parts"), whole);
    let links = |folder: &str| {
        let path = room.path(folder).join("cfg.000004.ildg");
        read_gauge(&path, &ReadOptions::default()).unwrap().gauge
    };
    assert!(links("parts").links() == links("whole").links());
    // A run that has all its trajectories has nothing more to do.
    let report = room.json("rhmc run.toml --out parts --resume");
    assert_eq!(report["summary"]["trajectories"], json!(0));

    room.fails(2, "rhmc run.toml --out whole --backend cpu", &["whole has a run already", "--resume"]);
    room.fails(2, "rhmc run.toml --out nothing --resume --backend cpu", &["nothing", "no state.toml"]);
    let other = "rhmc run.toml --out whole --resume --set seed=5 --backend cpu";
    room.fails(2, other, &["has the seed 11, the input says 5"]);
    let other = "rhmc run.toml --out whole --resume --set lattice=4,4,4,8 --backend cpu";
    room.fails(2, other, &["whole: this run is on 4×4×4×4, the input says 4×4×4×8"]);
    // Other physics is another run; other steps are told.
    let other = "rhmc run.toml --out whole --resume --backend cpu --set trajectories=5 --set";
    room.fails(
        2,
        &format!("{other} gauge.beta=5.6"),
        &["made with gauge.beta = 5.5, the input says 5.6", "another folder"],
    );
    room.fails(
        2,
        &format!("{other} fermion.1.mass=0.2,0.6"),
        &["fermion.1.mass = [0.2,0.5], the input says [0.2,0.6]"],
    );
    room.fails(2, &format!("{other} fermion.1.u0=0.91"), &["made with fermion.1.u0: leave"]);
    assert_eq!(lines(&room, "whole"), whole);
    let steps =
        room.run("rhmc run.toml --out parts --resume --backend cpu --set trajectories=5 --set trajectory.steps=4");
    assert_eq!(steps.code, Some(0), "{}", steps.stderr);
    assert!(steps.stderr.contains("from trajectory 5 on, settings are others than before: levels"), "{}", steps.stderr);
    // Lines without a state are not thrown away.
    fs::create_dir(room.path("lost")).unwrap();
    fs::copy(room.path("whole/trajectories.jsonl"), room.path("lost/trajectories.jsonl")).unwrap();
    room.fails(2, "rhmc run.toml --out lost --backend cpu", &["lost has trajectories", "no state.toml"]);
    assert_eq!(lines(&room, "lost"), whole);
    // Nor does a run go on whose lines are lost.
    let kept = room.path("whole/kept.jsonl");
    fs::rename(room.path("whole/trajectories.jsonl"), &kept).unwrap();
    let on = "rhmc run.toml --out whole --resume --backend cpu --set trajectories=5";
    room.fails(2, on, &["whole/trajectories.jsonl is missing", "restore the file, or begin in another folder"]);
    fs::write(room.path("whole/trajectories.jsonl"), "").unwrap();
    room.fails(2, on, &["trajectories.jsonl has 0 bytes", "restore the file, which has lost lines"]);
    fs::rename(&kept, room.path("whole/trajectories.jsonl")).unwrap();
    // Nor does a second process come in.
    let first = fs::OpenOptions::new().append(true).open(room.path("whole/.lock")).unwrap();
    first.lock().unwrap();
    let second = "rhmc run.toml --out whole --resume --backend cpu --set trajectories=5";
    room.fails(2, second, &["whole is being worked in by another process"]);
    drop(first);
    // Links that move too far end the run with a sentence; it can go on from where it was.
    let far = "rhmc run.toml --out whole --resume --backend cpu --set trajectories=5 --set trajectory.steps=1";
    room.fails(1, &format!("{far} --set trajectory.length=1e6"), &["not a finite number", "take more steps"]);
    assert_eq!(lines(&room, "whole").len(), 4);
    fs::write(room.path("whole/state.toml"), "format = \"ferrite.rhmc-state/1\"\ntrajectory = \"x\"\n").unwrap();
    room.fails(2, "rhmc run.toml --out whole --resume --backend cpu", &["state.toml:2:14", "trajectory"]);
}

/// A noise vector gives the same condensate in whatever batch it is solved.
#[test]
fn condensates_in_batches() {
    let room = Room::new();
    fs::write(room.path("run.toml"), QUARKS).unwrap();
    let run = "rhmc run.toml --set trajectories=1 --set measure.condensate=5";
    let made = |folder: &str, flags: &str| {
        room.json(&format!("{run} --out {folder} {flags}"));
        let text = fs::read_to_string(room.path(folder).join("trajectories.jsonl")).unwrap();
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        (first["run"]["measure"]["batches"].clone(), lines(&room, folder).swap_remove(0))
    };
    let (batches, whole) = made("whole", "");
    assert_eq!(batches, json!([3, 2]));
    for (folder, flags, expected) in
        [("single", "--set measure.batch=1", json!([1, 1, 1, 1, 1])), ("together", "--set measure.batch=5", json!([5]))]
    {
        let (batches, line) = made(folder, flags);
        assert_eq!(batches, expected, "{folder}");
        assert_eq!(line["plaquette"], whole["plaquette"]);
        for (a, b) in line["condensate"].as_array().unwrap().iter().zip(whole["condensate"].as_array().unwrap()) {
            assert_eq!(b["noise"].as_array().unwrap().len(), 5);
            for (a, b) in a["noise"].as_array().unwrap().iter().zip(b["noise"].as_array().unwrap()) {
                for (key, part) in [("even", 0), ("even", 1), ("odd", 0), ("odd", 1)] {
                    // To the residual of 1e-8 that solves are asked for.
                    assert!((number(&a[key][part]) - number(&b[key][part])).abs() < 1e-6, "{folder}: {a} {b}");
                }
            }
        }
        assert_ne!(whole["condensate"][0]["noise"][0], whole["condensate"][0]["noise"][4]);
    }
    // The memory of more noise vectors than a force has vectors is known before the start.
    let check = |n: usize| room.json(&format!("check run.toml --set measure.condensate={n} --set measure.batch={n}"));
    assert_eq!(check(5)["batches"], json!([5]));
    let memory = |n: usize| check(n)["memory"]["needed_bytes"].as_u64().unwrap();
    assert!(memory(5) == memory(1) && memory(64) > memory(5));
    let less = format!("check run.toml --set measure.condensate=64 --memory {}", memory(64) - 1);
    assert_eq!(room.json(&less)["batches"], json!([16, 16, 16, 16]));
    room.fails(2, &format!("{run} --out no --set measure.batch=0"), &["measure.batch", "1 to 64"]);
}

#[test]
fn pure_gauge_fields_and_single_precision() {
    let room = Room::new();
    fs::write(room.path("run.toml"), GAUGE).unwrap();
    let report = room.json("rhmc run.toml --out double");
    // Force gradient at this step: hardly anything is rejected.
    assert!(report["accepted"].as_u64().unwrap() >= 28, "{report}");
    assert!((number(&report["summary"]["exp_minus_delta_h"]["mean"]) - 1.0).abs() < 0.05, "{report}");
    assert!(lines(&room, "double").iter().all(|line| line.get("condensate").is_none()));
    // The same numbers in single precision, as long as rounding errors have not grown.
    let single = "--set precision.links=single --set precision.gauge-force=single --set trajectories=2";
    room.json(&format!("rhmc run.toml --out single {single}"));
    for (a, b) in lines(&room, "double").iter().zip(lines(&room, "single")) {
        let plaquette = |line: &Value| number(&line["plaquette"]["mean"]);
        assert!((plaquette(a) - plaquette(&b)).abs() < 1e-4, "{a} {b}");
    }
    room.json(&format!("rhmc run.toml --out single --resume {single} --set trajectories=3"));
    // Presets of the paper run.
    fs::write(room.path("quarks.toml"), QUARKS).unwrap();
    for preset in ["A", "E", "G"] {
        let run = format!("rhmc quarks.toml --out {preset} --set precision.preset={preset} --set trajectories=1");
        room.json(&run);
        assert!(number(&lines(&room, preset)[0]["delta_h"]).abs() < 5.0);
    }
}

/// Killed at any moment, a run loses the trajectory at hand at most.
#[test]
fn a_killed_run_goes_on() {
    let room = Room::new();
    fs::write(room.path("run.toml"), GAUGE).unwrap();
    room.json("rhmc run.toml --out whole --set trajectories=12");
    let (mut sure, mut halfway) = (0, false);
    for wait in [20, 150, 400, 650, 900] {
        let run = if sure == 0 && !room.path("killed/state.toml").exists() { "" } else { " --resume" };
        let mut command = room.command(&format!("rhmc run.toml --out killed --set trajectories=12 --backend cpu{run}"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        if let Ok(text) = fs::read_to_string(room.path("killed/state.toml")) {
            let line = text.lines().find(|line| line.starts_with("trajectory")).unwrap().to_string();
            let now: u32 = line.split_once(" = ").unwrap().1.parse().unwrap();
            assert!(now >= sure, "{now} after {sure}");
            sure = now;
            halfway |= (1..12).contains(&now);
        }
        // As if it had been killed while it wrote.
        fs::create_dir_all(room.path("killed")).unwrap();
        for name in [".cfg.000003.ildg.1-7.part", ".state.0.ildg.1-8.part"] {
            fs::write(room.path("killed").join(name), "half").unwrap();
        }
    }
    assert!(halfway, "no kill met a run on its way: {sure} trajectories");
    let resume = if room.path("killed/state.toml").exists() { " --resume" } else { "" };
    room.json(&format!("rhmc run.toml --out killed --set trajectories=12{resume}"));
    assert_eq!(lines(&room, "killed"), lines(&room, "whole"));
    let left: Vec<_> = fs::read_dir(room.path("killed")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().filter(|name| name.to_string_lossy().starts_with("cfg.")).count() == 12, "{left:?}");
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
    // Killed before its first state, a run begins again.
    fs::create_dir(room.path("early")).unwrap();
    fs::write(room.path("early/trajectories.jsonl"), "").unwrap();
    let early = "rhmc run.toml --out early --set trajectories=1";
    room.fails(
        2,
        &format!("{early} --resume --backend cpu"),
        &["ended before its first state: start it without --resume"],
    );
    room.json(early);
}

/// Asked to end, a run ends after the trajectory at hand, with a state.
#[test]
fn runs_end_in_time() {
    let room = Room::new();
    fs::write(room.path("run.toml"), GAUGE).unwrap();
    let run = "rhmc run.toml --out run --set trajectories=1000000 --backend cpu";
    let out = room.run(&format!("{run} --max-hours 0.0003"));
    assert_eq!(out.code, Some(130), "{}", out.stderr);
    assert!(out.stderr.contains("go on with --resume"), "{}", out.stderr);
    let first = lines(&room, "run").len();
    assert!(first > 0);
    // Of a terminal, of mpirun and batch systems, and of a terminal that closes.
    for signal in ["INT", "TERM", "HUP"] {
        let first = lines(&room, "run").len();
        let mut child =
            room.command(&format!("{run} --resume")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(800));
        send(signal, child.id());
        let start = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert!(start.elapsed() < Duration::from_secs(10));
        assert!(lines(&room, "run").len() > first, "{signal}");
    }
    // A hang-up that nohup has made the system ignore stays ignored.
    let program = program::ferrite().display().to_string();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("trap '' HUP; exec {program} {run} --resume")]).current_dir(room.path(""));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(800));
    send("HUP", child.id());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(child.try_wait().unwrap(), None);
    send("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn send(signal: &str, process: u32) {
    let sent = std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn settings_of_precision() {
    let room = Room::new();
    let study = "bench rhmc --paper 003 --out study --lattice 2,2,2,4 --large 4,4,2,2 --mass 0.2 --thermalise 2 --steps 4,4 \
                 --gauge-steps 2 --reversibility 1";
    let report = room.json(&format!("{study} --trajectories 2"));
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["setting"].as_str().unwrap()).collect();
    let presets = ["A", "B", "C", "D", "E", "F", "G"];
    assert_eq!((&names[..7], &names[8..15]), (&presets[..], &presets[..]));
    let links = |row: &Value| number(&row["irreversibility"]["links"]["mean"]);
    for row in rows {
        assert_eq!(row["trajectories"], json!(2));
        // Omelyan's scheme moves twice in each step, on both levels.
        let steps = number(&row["steps"]) * number(&row["gauge_steps"]);
        assert_eq!(number(&row["gauge_updates"]), 4.0 * steps, "{row}");
        let double = row["setting"] == "F, links in double";
        assert!(links(row) < if double { 3e-8 } else { 1e-5 } && links(row) > 0.0, "{row}");
        assert!(number(&row["condensate"]["mean"]) > 0.0 && number(&row["delta_h"]["mean"]).abs() < 20.0, "{row}");
    }
    // All begin with the same links and random numbers, so that the tightest settings agree.
    let plaquettes: Vec<f64> = rows.iter().map(|row| number(&row["plaquette"]["mean"])).collect();
    assert!((plaquettes[0] - plaquettes[1]).abs() < 1e-4, "{plaquettes:?}");
    for figure in 4..=9 {
        let svg = fs::read_to_string(room.path(&format!("study/figure-{figure}.svg"))).unwrap();
        assert!(svg.contains("<svg") && svg.contains("m = 0.2"), "{figure}");
    }
    // It goes on, and not as another one.
    let before = fs::read_to_string(room.path("study/2x2x2x4/A/trajectories.jsonl")).unwrap();
    let report = room.json(&format!("{study} --trajectories 3"));
    assert_eq!(report["rows"][3]["trajectories"], json!(3));
    let after = fs::read_to_string(room.path("study/2x2x2x4/A/trajectories.jsonl")).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());
    let other = format!("{study} --seed 2 --backend cpu");
    room.fails(2, &other, &["study has a study with other settings", "name another folder"]);
    room.fails(2, "bench rhmc --paper 003 --out new --steps 4 --backend cpu", &["--steps", "2 numbers"]);
    room.fails(2, "bench rhmc --paper 003 --out new --gauge-steps 1 --backend cpu", &["at least 2"]);
}

#[test]
fn mistakes_are_told_at_once() {
    let room = Room::new();
    let wrong = r#"
latice = [4, 4, 4, 4]
trajectories = -1
[gauge]
action = "wilson"
beta = "five"
u0 = 0.9
[[fermion]]
operator = "naive"
mass = [0.1, 0.2]
flavours = [2]
[trajectory]
integrator = "omelian"
[precision]
links = "single"
gauge-force = "double"
"#;
    fs::write(room.path("run.toml"), wrong).unwrap();
    room.fails(
        2,
        "rhmc run.toml --out run",
        &[
            "run.toml:2:1: unknown key 'latice'; did you mean 'lattice'?",
            "run.toml:3:16: trajectories",
            "run.toml:6:8: gauge.beta: expected a number",
            "gauge.u0: Wilson's action has no tadpole factor",
            "fermion.0.flavours: 1 number for masses, of which there are 2",
            "trajectory.integrator: 'omelian' is none of",
            "did you mean 'omelyan'?",
            "trajectory.steps is missing",
            "seed is missing",
            "precision.gauge-force: conflicts with",
        ],
    );
    assert!(!room.path("run").exists());
    // `check` finds the same.
    room.fails(2, "check run.toml", &["unknown key 'latice'", "did you mean 'omelyan'?", "seed is missing"]);
    // A table where there is a list of tables is one of them, if there is only one; and keys have their numbers.
    let one_group = "[fermion]\nflavours = [2]\n";
    fs::write(room.path("one.toml"), one_group).unwrap();
    room.fails(2, "check one.toml", &["fermion.0.mass is missing", "fermion.0.operator is missing"]);
    room.fails(2, "check run.toml --set fermion.mas=1", &["did you mean 'fermion.0.mass'?"]);
    // Any of the keys tells which command an input is for.
    for key in ["trajectories = 3", "trajectory.steps = 3", "fermion = []", "gauge.beta = 5.0"] {
        fs::write(room.path("short.toml"), key).unwrap();
        room.fails(2, "check short.toml", &["seed is missing", "gauge.action is missing"]);
    }
    fs::write(room.path("run.toml"), QUARKS).unwrap();
    let checked = room.json("check run.toml --set trajectories=9");
    assert_eq!((&checked["kind"], &checked["trajectories"], &checked["ok"]), (&json!("rhmc"), &json!(9), &json!(true)));
    assert_eq!(checked["quarks"].as_array().unwrap().len(), 2);
    assert!(number(&checked["memory"]["needed_bytes"]) > 1e5);
    room.fails(2, "check run.toml --backend cpu --set lattice=128,128,128,128", &["the run on 128×128×128×128"]);
    let times = &room.json("check run.toml --time")["time"];
    assert_eq!(times["timed_on"], json!([4, 4, 4, 4]));
    assert_eq!(number(&times["seconds"]), 4.0 * number(&times["seconds_per_trajectory"]));
    assert!(number(&times["seconds"]) > 0.0);
    // What cannot be timed, here since links move too far in a step, is foretold without a time.
    let far = room.run("check run.toml --time --backend cpu --json --set trajectory.length=1e200");
    assert_eq!((far.code, object(&far)["time"].clone()), (Some(0), Value::Null), "{}", far.stderr);
    assert!(object(&far)["ok"] == true && far.stderr.contains("no time is foretold"), "{}", far.stderr);
    // Each process of four has a quarter of it with a border, and asqtad's links have to fit in there.
    let cut = room.json("check run.toml --set lattice=4,4,8,8 --set grid=1,1,2,2");
    assert_eq!(cut["layout"], json!({ "processes": 4, "grid": [1, 1, 2, 2] }));
    assert!(number(&cut["memory"]["needed_bytes"]) > number(&checked["memory"]["needed_bytes"]));
    room.fails(2, "check run.toml --processes 4", &["cannot be cut among 4 processes"]);
    room.fails(2, "rhmc run.toml --out run --set fermion.7.mas=1", &["unknown key 'fermion.7.mas'"]);
    for number in ["9999999999", "18446744073709551615", "+1", "01"] {
        let far = format!("rhmc run.toml --out run --set fermion.{number}.mass=1");
        room.fails(2, &far, &[&format!("unknown key 'fermion.{number}.mass'")]);
    }
    // Two pseudofermions take eight flavours as they are, and no more.
    room.fails(2, "rhmc run.toml --out run --set fermion.0.flavours=16", &["naive", "more pseudofermions may help"]);
    room.fails(2, "rhmc run.toml --out run --set start=none.ildg --backend cpu", &["none.ildg"]);
    // There are no flags for files here: a copy can be made.
    room.json("generate unit --lattice 4,4,4,4 -o start.npy");
    let mut start = fs::read(room.path("start.npy")).unwrap();
    start.extend([0; 64]);
    fs::write(room.path("start.npy"), start).unwrap();
    let why = ["start.npy: 64 bytes follow", "(`ferrite convert --no-verify` makes a copy that can be read)"];
    room.fails(2, "rhmc run.toml --out run --set start=start.npy --backend cpu", &why);
    let quenched = "generate quenched --lattice 4,4,4,4 --beta 6 --sweeps 1 --seed 1 -o q.npy --backend cpu";
    room.fails(2, &format!("{quenched} --start start.npy"), &why);
    room.fails(2, "plaquette start.npy", &["64 bytes follow", "(--no-verify)"]);
    room.json("convert --no-verify start.npy mended.npy");
    room.json(&format!("{quenched} --start mended.npy").replace(" --backend cpu", ""));
    room.fails(2, "rhmc none.toml --out run", &["none.toml: cannot be read"]);
    room.fails(2, "rhmc run.toml --out run --max-hours 0", &["max-hours"]);
    room.fails(2, "rhmc run.toml --out run --replay none --backend cpu", &["none is no folder"]);
    room.fails(2, "rhmc run.toml --out run.toml/x --backend cpu", &["run.toml/x cannot be made"]);
    fs::create_dir(room.path("empty")).unwrap();
    room.fails(2, "rhmc run.toml --out run2 --replay empty --backend cpu", &["there is no momenta.1.npy"]);
    assert!(!room.path("run2").exists());
    // Keys without effect.
    let refused = |set: &str, why: &str| room.fails(2, &format!("check run.toml --set {set}"), &[why]);
    refused("trajectory.integrator=leapfrog --set trajectory.lambda=0.2", "only Omelyan's integrators have it");
    fs::write(room.path("gauge.toml"), GAUGE).unwrap();
    let check = "check gauge.toml --set trajectory.gauge";
    room.fails(2, &format!("{check}-steps=3"), &["trajectory.gauge-steps", "there is one level"]);
    fs::write(room.path("flat.toml"), QUARKS.replace("gauge-steps = 2", "gauge-integrator = \"leapfrog\"")).unwrap();
    room.fails(2, "check flat.toml", &["trajectory.gauge-integrator", "give trajectory.gauge-steps, too"]);
    for (set, why) in [
        ("precision.dynamics=double", "there is nothing to solve"),
        ("precision.dynamics-tol=1e-7", "there is nothing to solve"),
        ("precision.action=double", "there is nothing to solve"),
        ("precision.action-tol=1e-9", "there is nothing to solve"),
        ("measure.condensate=2", "there are no condensates"),
        ("measure.condensate-tol=1e-9", "there are no condensates"),
        ("measure.batch=2", "there are no condensates"),
    ] {
        let key = set.split('=').next().unwrap();
        room.fails(2, &format!("check gauge.toml --set {set}"), &[key, "without quarks", why]);
    }
    for text in [format!("{GAUGE}[[fermion]]\n"), QUARKS.replace("[measure]", "[[fermion]]\n[measure]")] {
        fs::write(room.path("empty.toml"), &text).unwrap();
        let number = text.matches("[[fermion]]").count() - 1;
        let parts = ["operator", "mass", "flavours"].map(|key| format!("fermion.{number}.{key} is missing"));
        room.fails(2, "check empty.toml", &parts.each_ref().map(String::as_str));
    }
    // Fractions are texts, alone or among numbers.
    for (typed, told) in [("\"1/2\"", "1/2"), ("[\"1/2\"]", "1/2"), ("[1]", "1"), ("3", "3")] {
        fs::write(room.path("half.toml"), QUARKS.replace("flavours = [2]", &format!("flavours = {typed}"))).unwrap();
        assert_eq!(room.json("check half.toml")["quarks"][0], json!(format!("naive flavours {told} at m = 0.3")));
    }
    fs::write(room.path("half.toml"), QUARKS.replace("flavours = [1, 1]", "flavours = [2, \"1/2\"]")).unwrap();
    let names = room.json("check half.toml")["quarks"].clone();
    assert_eq!(names[1], json!("asqtad flavours 2 at m = 0.2 and 1/2 at m = 0.5"));
    for (typed, why) in [("[2, \"one\"]", "its parts have to be integers"), ("[2, true]", "a fraction such as \"1/2\"")]
    {
        fs::write(room.path("half.toml"), QUARKS.replace("flavours = [1, 1]", &format!("flavours = {typed}"))).unwrap();
        room.fails(2, "check half.toml", &["half.toml:24:12: fermion.1.flavours", why]);
    }
    // Quarks of one name are told apart.
    let group = "[[fermion]]\noperator = \"naive\"\nmass = [0.3]\nflavours = [2]\n";
    fs::write(
        room.path("four.toml"),
        format!("{}{group}{group}", QUARKS.replace("[measure]", &format!("{group}[measure]"))),
    )
    .unwrap();
    let names = room.json("check four.toml")["quarks"].clone();
    let names: Vec<&str> = names.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let naive: Vec<&str> = names.into_iter().filter(|name| name.starts_with("naive")).collect();
    let expected = ["", " (2)", " (3)", " (4)"].map(|number| format!("naive flavours 2 at m = 0.3{number}"));
    assert_eq!(naive, expected);
    let single = "rhmc run.toml --out run2 --backend cpu --set precision.action=single";
    room.fails(2, single, &["precision.action-tol is 1e-12", "5e-8 or more, or precision.action = \"double\""]);
    // The example is an input.
    let example = room.run("init rhmc");
    fs::write(room.path("example.toml"), example.stdout).unwrap();
    room.json("rhmc example.toml --out example --set lattice=4,4,4,4 --set trajectories=1 --set trajectory.steps=2");
}

/// Inputs of measurements are inputs, with the changes that their comments name.
#[test]
fn examples_are_inputs() {
    let room = Room::new();
    for name in ["rhmc-32x4", "rhmc-32x64"] {
        let input = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/{name}.toml"));
        fs::copy(input, room.path("run.toml")).unwrap();
        // On the lattice of the file there has to be memory for it; the small one is free everywhere.
        let small = "check run.toml --set lattice=8,8,8,4";
        let checked = room.json(small);
        assert_eq!((&checked["kind"], &checked["ok"]), (&json!("rhmc"), &json!(true)), "{name}");
        // All --set of the comments, as they are typed in a shell.
        let text = fs::read_to_string(room.path("run.toml")).unwrap().replace("\\\n#", "");
        let commands = text.lines().filter(|line| line.starts_with("#   ") && line.contains(" --set "));
        let mut tried = 0;
        for command in commands {
            let words: Vec<&str> = command.split('#').nth(1).unwrap().split_whitespace().collect();
            let sets = words.windows(2).filter(|pair| pair[0] == "--set").map(|pair| pair.join(" "));
            let sets = sets.map(|set| if set.contains("start=") { "--set start=hot".into() } else { set });
            room.json(&format!("{small} {}", sets.collect::<Vec<_>>().join(" ")));
            tried += 1;
        }
        assert_eq!(tried, 1, "{name}");
    }
}

/// MILC's run with asqtad quarks, from its own numbers.
#[test]
fn milcs_trajectories() {
    let Some(folder) = refdata::folder() else { return };
    let text = fs::read_to_string(folder.join("answers/milc_rhmc_asqtad_omelyan.json")).unwrap();
    let answers: Value = serde_json::from_str(&text).unwrap();
    let room = Room::new();
    fs::create_dir(room.path("milc")).unwrap();
    for trajectory in 1..=2 {
        let copy = |from: &str, to: &str, inner: &str| {
            let data =
                fs::read(folder.join(format!("fields/rhmc_noise/omelyan_traj{trajectory}_{from}.c128"))).unwrap();
            write_npy(&room.path(&format!("milc/{to}.npy")), &format!("6, 6, 6, 6, {inner}"), &data);
        };
        copy("momentum", &format!("momenta.{trajectory}"), "4, 3, 3");
        copy("xi0", &format!("pseudofermions.{trajectory}.0"), "3");
        copy("pbp_m0.01", &format!("noise.{trajectory}.0"), "3");
        copy("pbp_m0.05", &format!("noise.{trajectory}.1"), "3");
    }
    let function = |name: &str| {
        let (res, pole) = (&answers["rationals"][0][name]["res"], &answers["rationals"][0][name]["pole"]);
        let poles: Vec<Value> =
            (1..res.as_array().unwrap().len()).map(|k| json!({ "residue": res[k], "shift": pole[k] })).collect();
        json!({ "constant": res[0], "poles": poles })
    };
    let functions = json!([{ "dynamics": function("MD"), "heat_bath": function("GR"), "action": function("FA") }]);
    fs::write(room.path("milc/functions.json"), functions.to_string()).unwrap();
    let start = folder.join("configs/lat.sample.l6666b650m010m050");
    let input = format!(
        r#"
lattice = [6, 6, 6, 6]
trajectories = 2
seed = 1
start = "{}"
[gauge]
action = "symanzik"
beta = 6.5
u0 = 0.862
[trajectory]
length = 0.12
steps = 6
integrator = "omelyan-links-first"
lambda = 0.2
[[fermion]]
operator = "asqtad"
u0 = 0.862
mass = [0.01, 0.05]
flavours = [2, 1]
[precision]
gauge-force = "double"
dynamics = "double"
dynamics-tol = 1e-13
action-tol = 1e-13
[measure]
condensate-tol = 1e-13
"#,
        start.canonicalize().unwrap().display()
    );
    fs::write(room.path("run.toml"), input).unwrap();
    room.json("rhmc run.toml --out run --replay milc");
    let exact = answers["independent_numpy_rerun"]["traj"].as_array().unwrap();
    assert_eq!((lines(&room, "run").len(), exact.len()), (2, 2));
    for ((line, milc), exact) in lines(&room, "run").iter().zip(answers["milc"].as_array().unwrap()).zip(exact) {
        for (k, end) in ["start", "end"].into_iter().enumerate() {
            for (j, part) in ["gauge", "kinetic", "fermions"].into_iter().enumerate() {
                // Of 1e4, with rounding errors of 1e-12 that molecular dynamics spreads.
                let (ours, expected) = (number(&line[end][part]), number(&exact["actions_g_h_f"][k][j]));
                assert!((ours - expected).abs() < 2e-7, "{end}, {part}: {ours} instead of {expected}");
            }
        }
        // Its solver stopped at 2e-7, and for condensates at 1e-6.
        assert!((number(&line["delta_h"]) - number(&milc["deltaS"])).abs() < 1e-5, "{line}");
        let plaquettes = [&line["plaquette"]["spatial"], &line["plaquette"]["temporal"]].map(number);
        let stored = [0, 1].map(|k| number(&milc["PLAQ_ss_st_times3"][k]));
        assert!(plaquettes.iter().zip(stored).all(|(ours, milcs)| (3.0 * ours - milcs).abs() < 1e-9), "{line}");
        for (ours, milcs) in line["condensate"].as_array().unwrap().iter().zip(milc["PBP"].as_array().unwrap()) {
            assert_eq!(ours["mass"], milcs["mass"]);
            // MILC's operator is twice ours.
            let even = 0.5 * number(&ours["noise"][0]["even"][0]);
            assert!((even - number(&milcs["even_re"])).abs() < 2e-6, "{ours} {milcs}");
        }
    }
}

/// An array of `<c16` in NumPy's format.
fn write_npy(path: &Path, shape: &str, data: &[u8]) {
    let header = format!("{{'descr': '<c16', 'fortran_order': False, 'shape': ({shape}), }}");
    let padded = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded.len() as u16).to_le_bytes());
    bytes.extend(padded.as_bytes());
    bytes.extend(data);
    fs::write(path, bytes).unwrap();
}
