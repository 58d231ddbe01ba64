//! `ferrite check`, inputs, and memory that is known before the start.
use crate::program::*;
use serde_json::{Value, json};
use std::fs;

#[test]
fn too_little_memory_is_known_before_the_start() {
    let room = Room::new();
    // A configuration of 150 GB that takes no room on the disk.
    let text = "{'descr': '<c16', 'fortran_order': False, 'shape': (128, 128, 128, 128, 4, 3, 3), }";
    let mut start = [b"\x93NUMPY\x01\x00".as_slice(), &118u16.to_le_bytes(), text.as_bytes()].concat();
    start.resize(128, b' ');
    fs::write(room.path("huge.npy"), start).unwrap();
    let file = fs::OpenOptions::new().write(true).open(room.path("huge.npy")).unwrap();
    if file.set_len(128 + 128u64.pow(4) * 576).is_err() {
        eprintln!("skipped: the file system has no sparse files");
        return;
    }
    let parts = ["128×128×128×128", "needs", "GiB", "links in double", "free"];
    room.fails(2, "solve --gauge huge.npy --mass 0.1 --source random:1 --backend cpu", &parts);
    room.fails(2, "plaquette huge.npy --backend cpu", &["huge.npy", "144.00 GiB", "free"]);
    room.fails(2, "apply --gauge huge.npy --mass 0.1 --source random:1 -o x.npy --backend cpu", &["needs", "GiB"]);
    fs::write(room.path("run.toml"), "gauge = 'huge.npy'\nmass = 0.1\nsource = 'random:1'\n").unwrap();
    let report = object(&room.fails(2, "check run.toml --backend cpu --json", &["needs"]));
    assert_eq!(report["ok"], false);
    assert!(report["memory"]["needed_bytes"].as_u64() > report["memory"]["free_bytes"].as_u64());
}

/// An input for a configuration of which there is no more than the header: `check` reads no more. Nothing where the file
/// system has no files of so many bytes.
fn large(extent: usize, time: usize) -> Option<Room> {
    let room = Room::new();
    let text = format!(
        "{{'descr': '<c16', 'fortran_order': False, 'shape': ({time}, {extent}, {extent}, {extent}, 4, 3, 3), }}"
    );
    let mut start = [b"\x93NUMPY\x01\x00".as_slice(), &118u16.to_le_bytes(), text.as_bytes()].concat();
    start.resize(128, b' ');
    fs::write(room.path("large.npy"), start).unwrap();
    let file = fs::OpenOptions::new().write(true).open(room.path("large.npy")).unwrap();
    if file.set_len((128 + time * extent.pow(3) * 576) as u64).is_err() {
        eprintln!("skipped: the file system has no files of so many bytes");
        return None;
    }
    fs::write(room.path("run.toml"), "gauge = 'large.npy'\nmass = 0.1\nsource = 'random:1'\nprecision = 'half'\n")
        .unwrap();
    Some(room)
}

#[test]
fn a_lattice_of_more_sites_than_a_device_counts_is_for_many_processes() {
    let Some(room) = large(192, 384) else { return };
    let check = |flags: &str| object(&room.run(&format!("check run.toml --backend cpu --json --memory 80GiB {flags}")));
    let (alone, shared) = (check(""), check("--processes 1024"));
    assert_eq!((&alone["ok"], &shared["ok"]), (&json!(false), &json!(true)), "{alone} {shared}");
    assert!(alone["processes_needed"].as_u64().is_some_and(|n| (16..1024).contains(&n)), "{alone}");
}

#[test]
fn how_many_processes_are_enough() {
    let Some(room) = large(32, 64) else { return };
    let check = |flags: &str| object(&room.run(&format!("check run.toml --backend cpu --json {flags}")));
    let needed = check("--memory 1000GiB")["memory"]["needed_bytes"].as_u64().unwrap();
    let little = |flags: &str| check(&format!("--memory {} {flags}", needed / 2));
    let tight = little("");
    let processes = tight["processes_needed"].as_u64().unwrap() as usize;
    assert!(processes > 2 && tight["ok"] == false, "{tight}");
    assert_eq!(little(&format!("--processes {processes}"))["ok"], true);
    assert_eq!(little(&format!("--processes {}", processes / 2))["ok"], false);
    // A grid that was asked for says nothing about how many it takes, whether it fits or not.
    for grid in ["1,1,1,2", "2,2,2,4"] {
        assert_eq!(little(&format!("--grid {grid}"))["processes_needed"], tight["processes_needed"], "{grid}");
    }
    let plenty = room.run("check run.toml --backend cpu --memory 1000GiB --grid 1,1,2,4").stdout;
    assert!(plenty.contains("the memory of one such machine would suffice"), "{plenty}");
    let text = room.run(&format!("check run.toml --backend cpu --memory {} --grid 1,1,1,2", needed / 2)).stdout;
    assert!(text.contains(&format!("at least {processes} such machines are needed")), "{text}");
    // Domains that do not divide the parts of many processes.
    let domains = little("--set solver=gcr-dd --set domain=32,32,32,16");
    assert!(domains["processes_needed"].as_u64().is_none_or(|n| 64 % n == 0 && 64 / n >= 16), "{domains}");
    // Shells let a lattice be cut in t only: that 64 time slices are, in 32 parts at most.
    fs::write(
        room.path("pion.toml"),
        "configurations = ['large.npy']\nsource = 'shell'\n[shell]\nwidth = 2.0\nsteps = 5\n[solve]\nmass = 0.1\n",
    )
    .unwrap();
    let shells = object(&room.run("check pion.toml --backend cpu --json --memory 100MiB"));
    assert_eq!(shells["processes_needed"], Value::Null, "{shells}");
}

#[test]
fn times_are_predicted_for_any_lattice() {
    let Some(room) = large(50, 100) else { return };
    fs::write(room.path("run.toml"), "gauge = 'large.npy'\nmass = 0.1\nsource = 'random:1'\n").unwrap();
    let time = |flags: &str| {
        let check = format!("check run.toml --time --backend cpu --json --memory 1000GiB {flags}");
        object(&room.run(&check))["time"].clone()
    };
    // No more than 2¹⁴ sites, although 4 divides only one extent, and domains do not divide what is left.
    for flags in ["", "--set solver=gcr-dd --set domain=10,10,10,20"] {
        let time = time(flags);
        assert_eq!(time["timed_on"], json!([14, 14, 8, 8]), "{time}");
        let [one, all] =
            ["seconds_per_iteration", "seconds_per_1000_iterations"].map(|key| time[key].as_f64().unwrap());
        assert!(one > 0.0 && (all / one - 1000.0).abs() < 1e-9, "{time}");
    }
}

#[test]
fn input_files() {
    let room = Room::with_weak_field();
    let write = |text: &str| fs::write(room.path("run.toml"), text).unwrap();
    write(
        "gauge = \"weak.ildg\"\nmass = 0.1 # bare\nsource = [\"random:1\", \"point:0,0,0,0,0,0\"]\nprecision = \"half\"\n\
         reconstruct = 12\ntol = 1e-8\nmax-iterations = 1_000\noutput = \"x.npy\"\nbackend = \"cpu\"\n",
    );
    let check = room.json("check run.toml");
    assert_eq!(
        (&check["schema"], &check["ok"], &check["sources"]),
        (&"ferrite.check/1".into(), &true.into(), &2.into())
    );
    let parts = check["memory"]["parts"].as_array().unwrap().iter().map(|p| p["bytes"].as_u64().unwrap());
    assert_eq!(Some(parts.sum()), check["memory"]["needed_bytes"].as_u64());
    assert!(room.run("check run.toml").stdout.contains("in total; "));
    let report = room.json("solve run.toml");
    assert_eq!((&report["precision"], report["tol"].as_f64()), (&"half".into(), Some(1e-8)));
    assert!(report["true_residual"].as_f64().unwrap() <= 1e-8);
    // As it would be under mpirun.
    assert_eq!(check["layout"], json!({ "processes": 1, "grid": [1, 1, 1, 1] }));
    let needed = |check: &Value| check["memory"]["needed_bytes"].as_u64().unwrap();
    let cut = room.json("check run.toml --processes 4");
    assert_eq!(cut["layout"], json!({ "processes": 4, "grid": [1, 1, 1, 4] }));
    let part = |check: &Value, what: &str| {
        let parts = check["memory"]["parts"].as_array().unwrap().iter();
        parts.filter(|part| part["what"] == what).map(|part| part["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(4 * part(&cut, "links in double"), part(&check, "links in double"));
    // Of processes, each has also what it needs to talk to the others: links around its own, and zones for their faces.
    let (links, zones) = ("links as read from the host", "ghost zones and messages");
    assert_eq!(4 * part(&cut, links), (2 + 2 + 2) / 2 * part(&check, links));
    assert!(part(&check, zones) == 0 && part(&cut, zones) > 6 * 2 * 32 * 96, "{cut}");
    let same = room.json("check run.toml --grid 1,1,1,4");
    assert_eq!((&same["layout"], needed(&same)), (&cut["layout"], needed(&cut)));
    let text = room.run("check run.toml --set grid=1,1,2,2 --backend cpu").stdout;
    assert!(
        text.contains("4 processes in the grid 1×1×2×2, each with a local lattice 4×4×2×4\nmemory of each process on "),
        "{text}"
    );
    // How many devices it takes, and how long.
    assert_eq!((&check["processes_needed"], &check["time"]), (&json!(1), &Value::Null));
    for operator in [
        "wilson",
        "clover --set csw=1",
        "exp-clover --set csw=1",
        "twisted --set mu=0.1",
        "staggered",
        "asqtad",
        "hisq",
    ] {
        let time =
            &room.json(&format!("check run.toml --time --set source=random:1 --set operator={operator}"))["time"];
        assert_eq!((&time["timed_on"], &time["right_hand_sides"]), (&json!([4, 4, 4, 8]), &json!(1)), "{time}");
        assert!(time["seconds_per_iteration"].as_f64().unwrap() > 0.0 && time["setup_seconds"].is_null(), "{time}");
    }
    // A multigrid setup is timed, too.
    let multigrid = "--time --set source=random:1 --set solver=multigrid --set mg-vectors=8";
    let time = &room.json(&format!("check run.toml {multigrid}"))["time"];
    assert!(time["setup_seconds"].as_f64().unwrap() > 0.0, "{time}");
    let text = room.run(&format!("check run.toml --backend cpu {multigrid}")).stdout;
    assert!(text.contains("time of the multigrid setup: about "), "{text}");
    let text = room.run("check run.toml --backend cpu --time").stdout;
    assert!(
        text.contains("the memory of one such machine suffices")
            && text.contains("time of an iteration for 2 right-hand"),
        "{text}"
    );
    // Lists as in a file, or with commas alone.
    let same = room.json("check run.toml --set grid=[1,1,1,4]");
    assert_eq!((&same["layout"], needed(&same)), (&cut["layout"], needed(&cut)));
    let two = r#"check run.toml --set source=["point:0,0,0,0,0,0","random:1"] --set source=random:2"#;
    assert_eq!(room.json(two)["sources"], 3);
    room.fails(2, "check run.toml --set grid=[1,1,1", &["--set grid: '[1,1,1' is not of the form X,Y,Z,T"]);
    for (flags, why) in [
        ("--grid 1,1,1,3", "extent 8 along t cannot be divided into 3 equal parts"),
        ("--grid 1,1,1,0", "no processes along t"),
        ("--grid 1,1,1,0 --processes 2", "1,1,1,2"),
        ("--grid 1,1,1,2 --processes 4", "the process grid 1×1×1×2 has 2 processes, but the run has 4"),
        ("--processes 3", "cannot be divided among 3 processes"),
        ("--processes 0", "--processes"),
        ("--processes 4 --set operator=asqtad --set source=random:1", "at least 3"),
        ("--processes 4 --set solver=gcr-dd --set domain=4,4,4,4", "divide those of the local lattice of a process"),
    ] {
        room.fails(2, &format!("check run.toml {flags}"), &[why]);
    }
    // A log begins with what runs, on one line.
    let command = "solve run.toml --set tol=1e-6 --precision single --backend cpu --threads 1";
    let log = room.run(command).stderr;
    let head = log.lines().next().unwrap_or_default();
    assert!(
        head.starts_with(concat!("note: ferrite ", env!("CARGO_PKG_VERSION"))) && head.contains(" UTC; rank 0 on "),
        "{log}"
    );
    assert!(head.contains("CPU, 1 thread") && !log.contains("command: ") && !log.contains("input: "), "{log}");
    // With -v it has what is needed to repeat it.
    let log = room.run(&format!("{command} -v")).stderr;
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        log.contains("features: ") && lines.contains(&format!("info: command: ferrite {command} -v --text").as_str()),
        "{log}"
    );
    for line in ["tol = 1e-6 (--set)", "mass = 0.1 (run.toml:2:8)", "precision = single (flag)"] {
        assert!(lines.contains(&format!("info: input: {line}").as_str()), "{line} is not in: {log}");
    }
    // The example with comments is an input.
    fs::write(room.path("solve.toml"), room.run("init solve").stdout).unwrap();
    assert_eq!(room.json("check solve.toml")["sources"], 2);
    let report = room.json("solve solve.toml");
    assert_eq!((&report["operator"], &report["output"]), (&"clover".into(), &"solution.npy".into()));
    room.fails(2, "init solver", &["'solver'", "solve, rhmc, spectrum"]);
    // Flags win over --set, --set wins over the file.
    let report = room.json("solve run.toml --set tol=1e-6 --set precision=single --tol 1e-7");
    assert_eq!((&report["precision"], report["tol"].as_f64()), (&"single".into(), Some(1e-7)));
    room.fails(2, "solve run.toml --set precison=half", &["precison", "did you mean 'precision'?"]);
    room.fails(2, "solve run.toml --set precision", &["KEY=VALUE"]);
    room.fails(2, "solve run.toml --kappa 0.1", &["--kappa", "run.toml:2:8"]);

    // All mistakes at once, each with its place, in the order of the file.
    write(
        "gague = \"weak.ildg\"\nmass = \"light\"\nkappa = 0\n\nsource = [\"point:9,0,0,0,0,0\", \"rnd:1\"]\n\
         precision = \"hlaf\"\nmax-iterations = 1.5\ngauge = \"absent.ildg\"\nkeep-unconverged = 1\nthreads = 0\n",
    );
    let run = room.fails(2, "check run.toml", &["mistakes in run.toml"]);
    let places = [
        "run.toml:1:1: unknown key 'gague'; did you mean 'gauge'?",
        "run.toml:2:8: mass: expected a number, found a value of type string",
        "run.toml:3:9: kappa: '0' is not a number of at least 1e-9",
        "run.toml:5:32: source: 'rnd:1'",
        "run.toml:6:13: precision: 'hlaf' is none of double, single, half, fp16; did you mean 'half'?",
        "run.toml:7:18: max-iterations: expected a whole number",
        "run.toml:8:9: gauge: absent.ildg: cannot open",
        "run.toml:9:20: keep-unconverged: expected true or false",
        "run.toml:10:11: threads: '0' is too small",
    ];
    let found: Vec<_> = places.iter().map(|place| run.stderr.find(place)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?}\n{}", run.stderr);
    // Whole numbers may have any base that TOML knows.
    write("gauge = \"weak.ildg\"\nmass = 0.1\nsource = \"random:1\"\ngrid = [0x1, 1, 0b1, 1]\n");
    assert_eq!(room.json("check run.toml")["layout"]["grid"], json!([1, 1, 1, 1]));
    write("gauge = \"weak.ildg\"\nmass = 0.1\nsource = \"random:1\"\ngrid = [1.0, 1, 1, 1]\n");
    room.fails(2, "check run.toml", &["run.toml:4:8: grid: expected four whole numbers"]);
    // With the right file the site is checked too.
    write("gauge = \"weak.ildg\"\nkappa = 0.1\nmass = 0.1\nsource = \"point:9,0,0,0,0,0\"\n[solver]\nname = \"cg\"\n");
    let parts =
        ["run.toml:4:10", "outside the lattice", "run.toml:3:8: mass: conflicts with run.toml:2:9: kappa", "solver"];
    room.fails(2, "check run.toml", &parts);
    write("gauge = \nmass == 1\n");
    room.fails(2, "check run.toml", &["run.toml:1:", "run.toml:2:"]);
    fs::write(room.path("run.toml"), [0xff, 0xfe]).unwrap();
    room.fails(2, "check run.toml", &["run.toml", "UTF-8"]);
    room.fails(2, "check absent.toml", &["absent.toml: cannot be read"]);
}
