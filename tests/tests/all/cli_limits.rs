//! Values beyond any sensible size, and text with control characters that a terminal would obey.
use crate::program::*;
use crate::trajectories::QUARKS;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn threads_of_the_environment_are_bounded_as_the_flags_are() {
    let room = Room::new();
    let with = |threads: &str| {
        let mut command = room.command("info --json");
        Run::from(command.env("RAYON_NUM_THREADS", threads).output().unwrap())
    };
    for wrong in ["1025", "100000", "18446744073709551616", "-1", "many"] {
        let run = with(wrong);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        let sentence = format!("error: RAYON_NUM_THREADS is '{wrong}', but must be a whole number from 1 to 1024");
        assert!(run.stderr.contains(&sentence) && run.stderr.lines().count() == 1, "{}", run.stderr);
        assert!(run.stdout.contains("ferrite.error/1"), "{}", run.stdout);
    }
    for right in ["", "0", "1", "3"] {
        assert_eq!(with(right).code, Some(0), "{right}");
    }
}

#[test]
fn lengths_of_work_are_bounded() {
    let room = Room::new();
    room.json("generate random --lattice 2,2,2,2 --seed 1 -o a.npy");
    fs::write(room.path("run.toml"), QUARKS).unwrap();
    let last = u32::MAX;
    for (arguments, parts) in [
        (
            "measure a.npy --flow 1e9".to_string(),
            &["--flow 1e9 in steps of 0.02 takes 5.00e10 steps", "--flow-step of at least 1000"][..],
        ),
        ("measure a.npy --flow 1 --flow-step 1e-300".into(), &["--flow 1 in steps of 1e-300 takes 1.00e300 steps"][..]),
        ("measure a.npy --flow 1e308 --flow-step 1e-308".into(), &["steps of three forces each"]),
        (
            format!("generate quenched --lattice 2,2,2,2 --beta 6 --seed 1 --sweeps 1 --overrelax {last} -o q.npy"),
            &["1 sweeps of 4294967296 passes", "at most 1000000000"],
        ),
        (
            format!("generate quenched --lattice 2,2,2,2 --beta 6 --seed 1 --sweeps {last} -o q.npy"),
            &["4294967295 sweeps of 5 passes", "--first-sweep"],
        ),
        (
            "rhmc run.toml --out run --set trajectory.steps=100000 --set trajectory.gauge-steps=100000".into(),
            &[
                "--set trajectory.gauge-steps: 100000 steps of the gauge action in each of 100000 steps are 10000000000 steps",
            ],
        ),
    ] {
        let begin = Instant::now();
        let arguments = format!("{arguments} --backend cpu");
        let run = room.run(&arguments);
        assert_eq!(run.code, Some(2), "{arguments}: {}", run.stderr);
        parts.iter().for_each(|part| assert!(run.stderr.contains(part), "{arguments}: no '{part}' in {}", run.stderr));
        assert!(begin.elapsed() < Duration::from_secs(20), "{arguments}");
    }
    assert!(!room.path("q.npy").exists() && !room.path("run").exists());
    // Work that is long but bounded is done.
    room.json("measure a.npy --flow 0.1 --flow-step 1e-3");
}

/// Inputs that are longer than any are refused at once, with one sentence for each thing.
#[test]
fn long_inputs_are_refused_at_once() {
    let room = Room::new();
    let million = |one: &str| vec![one; 1_000_000].join(",");
    let quarks = |from: &str, to: &str| QUARKS.replacen(from, to, 1);
    for (command, text, parts) in [
        (
            "rhmc",
            quarks("mass = [0.3]", &format!("mass = [{}]", million("1"))),
            &["in.toml:17:8: fermion.0.mass has 1000000 values, but at most 1000 are allowed"][..],
        ),
        ("rhmc", quarks("mass = [0.3]", &format!("mass = [{}]", million("\"a\""))), &["has 1000000 values"]),
        ("rhmc", quarks("mass = [0.3]", &format!("mass = [\n{}]", million("1\n"))), &["has 1000000 values"]),
        (
            "rhmc",
            quarks("lattice = [4, 4, 4, 4]", &format!("lattice = [{}]", million("4"))),
            &["in.toml:2:11: lattice has 1000000 values"],
        ),
        ("rhmc", quarks("seed = 11", &format!("seed = [{}]", million("4"))), &["in.toml:4:8: seed has 1000000 values"]),
        (
            "rhmc",
            quarks("seed = 11", &(0..100_000).map(|k| format!("k{k} = 1\n")).collect::<String>()),
            &["in.toml:1:1: the input has", "keys, but at most 1000 are allowed"],
        ),
        (
            "rhmc",
            quarks("seed = 11", "seed = 11\nk = {").replacen(
                "k = {",
                &format!("k = {{ {} }}", (0..100_000).map(|k| format!("k{k} = 1")).collect::<Vec<_>>().join(", ")),
                1,
            ),
            &["unknown table [k]"],
        ),
        (
            "rhmc",
            format!("{QUARKS}{}", "[[fermion]]\nmass = [1]\n".repeat(100_000)),
            &["fermion has 100002 tables, but at most 1000 are allowed"],
        ),
        (
            "solve",
            format!("gauge = \"a.npy\"\nsource = [{}]\n", million("\"x\"")),
            &["in.toml:2:10: source has 1000000 texts, but at most 100000 are allowed"],
        ),
        ("solve", "?".repeat(1_000_000), &["in.toml:1:1"]),
        ("solve", "?\n".repeat(300_000), &["mistakes in in.toml:", "\n  and 29"]),
        ("solve", "#".repeat(17 << 20), &["in.toml: the file is longer than 16.0 MiB"]),
    ] {
        fs::write(room.path("in.toml"), text).unwrap();
        let begin = Instant::now();
        let run = room.run(match command {
            "rhmc" => "rhmc in.toml --out run --backend cpu",
            _ => "solve in.toml --backend cpu",
        });
        let took = begin.elapsed();
        let shown = run.stderr.get(..1000.min(run.stderr.len())).unwrap_or_default();
        assert_eq!(run.code, Some(2), "{shown}");
        parts.iter().for_each(|part| assert!(run.stderr.contains(part), "no '{part}' in {shown}"));
        assert!(run.stderr.lines().count() < 60, "{shown}");
        // A second when the program is optimised and the machine has nothing else to do.
        assert!(took < Duration::from_secs(20), "{parts:?}: {took:?}");
    }
}

/// Whatever names and texts of others hold, a terminal prints it and does not obey.
#[test]
#[cfg(unix)]
fn control_characters_do_not_reach_a_terminal() {
    let room = Room::new();
    let evil = "a\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\r.npy";
    room.json("generate random --lattice 2,2,2,2 --seed 1 -o a.npy");
    fs::copy(room.path("a.npy"), room.path(evil)).unwrap();
    fs::write(room.path("in.toml"), "gauge = \"a\\u001b[2J\"\n\"k\\u001b[2J\" = 1\nprecision = \"\\u009b31m\"\n")
        .unwrap();
    // A title in a file.
    room.json("convert a.npy a.lime --precision double");
    let calls: [&[&str]; 9] = [
        &["verify", evil],
        &["verify", evil, "--json"],
        &["plaquette", evil, "--text"],
        &["measure", evil, "--text", "-v"],
        &["verify", "missing\u{1b}[2J"],
        &["solve", "in.toml"],
        &["solve", "--gauge", evil, "--set", "\u{1b}[2J=1"],
        &["\u{1b}[2J"],
        &["convert", evil, "b\u{1b}[2J.ildg", "--text"],
    ];
    for call in calls {
        let run = Run::from(room.command("").args(call).output().unwrap());
        for (text, which) in [(&run.stdout, "stdout"), (&run.stderr, "stderr")] {
            let odd = text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || *c == '\u{202e}');
            assert_eq!(odd, None, "{call:?}, {which}: {text:?}");
        }
        let both = format!("{}{}", run.stdout, run.stderr);
        assert!(both.contains("\\u001b[2J"), "{call:?}: {both}");
        // JSON has the name as it is.
        if call.contains(&"--json") {
            let object: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            assert!(object.to_string().contains("\\u001b[2J"), "{object}");
        }
    }
}

/// Requested tolerances and parameters are printed as they were given.
#[test]
fn tolerances_and_parameters_are_printed_as_given() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 --noise 0.1 -o a.npy");
    let solve = "solve --gauge a.npy --source random:1 --backend cpu --operator wilson";
    let text = |rest: &str| {
        let run = room.run(&format!("{solve} {rest}"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stdout
    };
    let shown = text("--mass 0.1 --tol 2.5e-9");
    assert!(shown.contains("(requested: 2.5e-9)") && shown.contains("m = 0.100000 "), "{shown}");
    let shown = text("--mass 2.5e-7 --tol 1e-6");
    assert!(shown.contains("(requested: 1e-6)") && shown.contains("m = 2.500000e-7 "), "{shown}");
    let shown = text("--mass 2.5e8 --tol 3e-7");
    assert!(shown.contains("(requested: 3e-7)") && shown.contains("m = 2.500000e8 (kappa = 1.99999997e-9)"), "{shown}");
    let failed = room.run(&format!("{solve} --mass 0.1 --tol 2.5e-12 --max-iterations 1"));
    assert!(failed.code == Some(1) && failed.stderr.contains("requested 2.5e-12"), "{}", failed.stderr);
}
