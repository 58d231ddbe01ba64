//! The program's commands, flags and mistakes in them.
use crate::program::*;
use serde_json::Value;
use std::fs;

#[test]
fn help_has_examples() {
    let room = Room::new();
    let main = room.run("--help");
    assert_eq!(main.code, Some(0));
    assert!(main.stdout.contains("Exit codes:"));
    for command in [
        "generate",
        "plaquette",
        "verify",
        "convert",
        "fix-gauge",
        "smear",
        "solve",
        "apply",
        "bench",
        "bench dslash",
        "bench solver",
        "studies accuracy",
        "studies mixed-precision",
        "studies model",
        "studies rhmc",
        "rhmc",
        "report",
        "fit",
        "spectrum",
        "measure",
        "trace",
        "eigenvalues",
        "forces",
        "rational",
        "completions",
        "man",
        "tune",
        "check",
    ] {
        let help = room.run(&format!("{command} --help"));
        assert_eq!(help.code, Some(0), "{command}");
        assert!(help.stdout.contains("Examples:") && help.stdout.contains("--backend"), "{command}: {}", help.stdout);
        assert!(help.stdout.lines().all(|line| line.chars().count() <= 120), "{command}");
    }
    // The tadpole factor is not of Wilson-like operators alone.
    let help = room.run("solve --help").stdout;
    let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    assert!(
        place("--u0 <U>") < place("Terms of Wilson-like operators:") && help.contains("random:SEED,NUMBER"),
        "{help}"
    );
    assert!(room.run("--version").stdout.starts_with("ferrite "));
}

#[test]
fn without_a_command_there_are_examples() {
    let room = Room::new();
    let alone = room.command("").output().unwrap();
    assert_eq!(alone.status.code(), Some(2));
    let text = String::from_utf8(alone.stderr).unwrap();
    let examples: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  ferrite ")).collect();
    assert_eq!(examples.len(), 5, "{text}");
    let small = |line: &str| line.replace("8,8,8,16", "2,2,2,4").replace("--sweeps 100", "--sweeps 2");
    for example in examples {
        for command in example.split("; ").map(|command| command.trim_start_matches("ferrite ")) {
            let long = command.starts_with("rhmc") || command.starts_with("spectrum");
            let (command, file) = command.split_once(" > ").unwrap_or((command, ""));
            let name = command.split(' ').next().unwrap();
            let done = room.run(&if long { format!("{name} --help") } else { small(command) });
            assert_eq!(done.code, Some(0), "{command}: {}", done.stderr);
            if !file.is_empty() {
                fs::write(room.path(file), done.stdout).unwrap();
            }
        }
    }
    // The inputs are what they are said to be.
    for (kind, input) in [("spectrum", "s.toml"), ("rhmc", "run.toml")] {
        assert_ne!(room.run(&format!("check {input}")).code, None, "{kind}");
    }
}

#[test]
fn pages_and_completions() {
    let room = Room::new();
    room.json("man pages");
    for name in ["ferrite", "ferrite-solve", "ferrite-bench", "ferrite-bench-solver"] {
        let page = fs::read_to_string(room.path("pages").join(format!("{name}.1"))).unwrap();
        // Roff writes hyphens with a backslash.
        assert!(page.contains(".TH") && page.replace('\\', "").contains(name), "{name}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = room.run(&format!("completions {shell}")).stdout;
        assert!(script.contains("spectrum") && script.contains("ferrite"), "{shell}");
    }
    room.fails(2, "completions tcsh", &["tcsh"]);
    // Values of flags, as bash completes them where it is there.
    fs::write(room.path("bash"), room.run("completions bash").stdout).unwrap();
    let complete = "source ./bash; COMP_WORDS=(\"$@\" ''); COMP_CWORD=$#; _ferrite ferrite '' \"${@: -1}\"; echo \"${COMPREPLY[@]}\"";
    for (words, values) in [
        (
            "solve --operator",
            "wilson clover exp-clover twisted twisted-clover twisted-exp-clover staggered asqtad hisq",
        ),
        ("invert --solver", "auto bicgstab idr cg cgne block-cg gcr-dd multigrid"),
        ("apply --precision", "double single half fp16"),
        ("generate --precision", "single double"),
        ("solve --source", "point:0,0,0,0 random:1 file:"),
        ("bench dslash --operator", "wilson clover twisted twisted-clover staggered asqtad all"),
        ("links asqtad --bc-time", "antiperiodic periodic"),
        ("rhmc --set", "gauge.action=luscher-weisz"),
        ("spectrum --set", "source=point source=shell source=wall source=noise"),
    ] {
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", complete, "bash", "ferrite"]).args(words.split(' ')).current_dir(room.path("."));
        match bash.output() {
            Ok(done) => {
                let found = String::from_utf8(done.stdout).unwrap();
                assert!(found.contains(values), "{words}: {found}");
            }
            Err(_) => eprintln!("skipped: there is no bash"),
        }
    }
    // `help` is as good as `--help`, and has no page of its own.
    assert!(!room.path("pages/ferrite-help.1").exists());
    for (words, flag) in [("help", "--help"), ("help solve", "solve --help"), ("help bench halo", "bench halo --help")]
    {
        let (help, same) = (room.run(words), room.run(flag));
        assert_eq!((help.code, help.stdout), (Some(0), same.stdout), "{words}");
    }
    room.fails(2, "help sovle", &["sovle"]);
}

#[test]
fn studies_are_a_program_of_their_own() {
    let room = Room::new();
    assert!(room.run("studies --version").stdout.starts_with("ferrite-studies "));
    let alone = room.command("studies ").output().unwrap();
    assert_eq!(alone.status.code(), Some(2));
    assert!(String::from_utf8(alone.stderr).unwrap().contains("  ferrite-studies accuracy --plot accuracy.svg\n"));
    for name in ["accuracy", "model", "rhmc"] {
        room.fails(2, &format!("bench {name}"), &[&format!("ferrite-studies {name}")]);
    }
    let wrong = room.fails(2, "studies mixed-precison", &["mixed-precision", "Usage: ferrite-studies"]);
    assert!(!wrong.stderr.contains("ferrite help"), "{}", wrong.stderr);
}

#[test]
fn info_works_without_a_driver() {
    let room = Room::new();
    let info = room.json("info");
    assert_eq!(info["schema"], "ferrite.info/1");
    assert!(info["threads"].as_u64().unwrap() >= 1);
    assert!(info["kernels"].is_array() && info["devices"].is_array() && info["instructions"].is_string());
    assert!(room.run("info").stdout.contains("thread"));
}

#[test]
fn benchmarks() {
    let room = Room::new();
    let report = room.json("bench dslash --lattice 4,4,4,4 --precision single,half --reconstruct 12");
    assert_eq!(report["schema"], "ferrite.bench/1");
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        for key in ["microseconds", "gflops", "gbps", "fraction_of_copy", "nrhs"] {
            assert!(row[key].as_f64().is_some_and(|x| x > 0.0), "{key}: {row}");
        }
        for key in ["operator", "precision", "reconstruct"] {
            assert!(row[key].is_string(), "{key}: {row}");
        }
        assert_eq!(row["lattice"], serde_json::json!([4, 4, 4, 4]));
    }
    let report =
        room.json("bench dslash --lattice 4,4,4,4 --precision single,half --reconstruct 12 --operator all --nrhs 2");
    let names: Vec<_> =
        report["rows"].as_array().unwrap().iter().map(|row| row["operator"].as_str().unwrap()).collect();
    for name in ["wilson_dslash", "wilson_dslash_add", "clover_dslash", "clover_matrix"] {
        assert_eq!(names.iter().filter(|n| **n == name).count(), 2, "{names:?}");
    }
    let clover = room.json("bench dslash --lattice 4,4,4,4 --precision double --reconstruct 8 --operator clover");
    assert_eq!(clover["rows"].as_array().unwrap().len(), 2);
    // In temporal gauge: 12 reals in every precision, 8 in double and single.
    let temporal =
        room.json("bench dslash --lattice 4,4,4,4 --precision single,half --reconstruct 12,12t,8t --operator all");
    let temporal = temporal["rows"].as_array().unwrap();
    let find = |operator, precision, reconstruct: &str| {
        let is = |row: &&Value| {
            row["operator"] == operator && row["precision"] == precision && row["reconstruct"] == reconstruct
        };
        let rows: Vec<_> = temporal.iter().filter(is).collect();
        assert!(rows.len() <= 1);
        rows.first().map(|row| row["gbps"].as_f64().unwrap() * row["microseconds"].as_f64().unwrap())
    };
    for operator in ["wilson_dslash", "wilson_dslash_add", "clover_dslash", "clover_matrix"] {
        let [twelve, in_gauge, eight] = ["12", "12t", "8t"].map(|recon| find(operator, "single", recon).unwrap());
        assert!(eight < in_gauge && in_gauge < twelve, "{operator}: {eight} {in_gauge} {twelve}");
        assert!(find(operator, "half", "12t").is_some() && find(operator, "half", "8t").is_none());
    }
    // Three quarters of 384 bytes of links, and two spinors of 96.
    let [twelve, in_gauge] = ["12", "12t"].map(|recon| find("wilson_dslash", "single", recon).unwrap());
    assert!((in_gauge / twelve - (288.0 + 192.0) / (384.0 + 192.0)).abs() < 1e-9);
    room.fails(2, "bench dslash --precision half,fp16 --reconstruct 8t", &["8t", "double and single"]);
    room.fails(
        2,
        "bench dslash --operator stagered",
        &["--operator 'stagered'", "clover, twisted, twisted-clover, staggered, asqtad, all"],
    );
    room.fails(2, "bench dslash --operator asqtad --reconstruct 12t", &["12t", "wilson and clover"]);
    // Links in 16 bits are there beside fields in single.
    let staggered = "bench dslash --lattice 4,4,4,4 --precision single,half --reconstruct 8,8h --operator";
    for operator in ["staggered", "asqtad"] {
        let report = room.json(&format!("{staggered} {operator}"));
        let rows = report["rows"].as_array().unwrap();
        let is = |row: &&Value| row["operator"] == format!("{operator}_dslash");
        let name = |row: &Value, key: &str| row[key].as_str().unwrap().to_string();
        let formats: Vec<_> =
            rows.iter().filter(is).map(|row| name(row, "precision") + " " + &name(row, "reconstruct")).collect();
        assert_eq!(formats, ["single 8", "single 8h", "half 8"]);
    }
    // Phases are kept of long links only.
    let report = room.json("bench dslash --lattice 4,4,4,4 --precision single --reconstruct 12,13,9h --operator all");
    let rows = report["rows"].as_array().unwrap();
    let with_phase = rows.iter().filter(|row| ["13", "9h"].contains(&row["reconstruct"].as_str().unwrap()));
    assert!(with_phase.clone().all(|row| row["operator"].as_str().unwrap().starts_with("asqtad")));
    assert_eq!(with_phase.count(), 4);
    let bytes = |recon: &str| {
        let of = |row: &&Value| row["operator"] == "asqtad_dslash" && row["reconstruct"] == recon;
        let row = rows.iter().find(of).unwrap();
        (row["gbps"].as_f64().unwrap() * row["microseconds"].as_f64().unwrap() * 1e3 / 128.0).round()
    };
    // Fat and long links of a site, and two vectors.
    assert_eq!(["12", "13", "9h"].map(bytes), [960.0, 992.0, 288.0 + 144.0].map(|links| links + 48.0));
    room.fails(2, "bench dslash --operator staggered --reconstruct 13,9", &["13 and 9", "asqtad"]);
    room.fails(2, "bench dslash --reconstruct 13", &["13 and 9", "asqtad"]);
    room.fails(2, "bench copy --operator clover", &["--operator"]);
    assert!(room.run("bench copy --backend cpu").stdout.contains("GB/s"));
    room.fails(2, "bench dslash --precision quad", &["--precision 'quad'", "double, single, half, fp16"]);
    room.fails(2, "bench blas --nrhs 0", &["--nrhs 0"]);
    room.fails(2, "studies mixed-precision --table 7", &["--table 7", "3, 4 or 5"]);
    room.fails(2, "bench solver --operator asqtad --tol 2", &["--tol"]);
    room.fails(2, "studies accuracy --plot picture.png", &["picture.png", ".svg"]);
    room.fails(2, "bench blas --nrhs 1000", &["--nrhs 1000", "64"]);
    room.fails(2, "bench dslash --lattice 256,256,256,64 --backend cpu", &["needs", "GiB", "links", "free"]);
}

#[test]
fn tuning() {
    let room = Room::new();
    let tune = "tune --lattice 4,4,4,4";
    // A CPU has nothing to tune: one sentence, and no file.
    let run = room.run(&format!("{tune} --backend cpu"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("nothing to tune") && run.stdout.lines().count() == 1, "{}", run.stdout);
    let report = room.json(tune);
    assert_eq!((&report["schema"], &report["launches"]), (&"ferrite.tune/2".into(), &serde_json::json!([])));
    assert!(room.files().is_empty());
    room.fails(2, "tune --tuning off", &["--tuning off"]);
    room.fails(
        2,
        "tune --operator stagered",
        &["--operator 'stagered'", "clover, twisted, twisted-clover, staggered, asqtad, all"],
    );
    room.fails(2, "tune --nrhs 1,1000", &["--nrhs 1000", "64"]);
    room.fails(2, "tune --reconstruct 10", &["--reconstruct '10'", "18, 12, 8"]);
    room.fails(2, "info --tuning sideways", &["--tuning", "on, off"]);

    // `info` names the file. A file that cannot be understood is reported, and stops nothing.
    let cache = room.path("tune.json");
    let info = room.json("info");
    assert_eq!(info["tuning"]["cache"], cache.to_str().unwrap());
    assert_eq!(info["tuning"]["launches"], 0);
    fs::write(&cache, "{").unwrap();
    let info = room.json("info");
    assert!(info["tuning"]["launches"].is_null() && info["tuning"]["error"].is_string());
    assert!(room.run("info").stdout.contains("is not a complete tune cache"));
    let off = room.run("info --tuning off");
    assert!(off.stdout.contains("tuning: off") && !off.stdout.contains("tune.json"), "{}", off.stdout);
    room.json("generate weak-field --lattice 4,4,4,8 --seed 7 -o weak.ildg");
    room.json("plaquette weak.ildg");

    if room.json("info")["devices"].as_array().unwrap().is_empty() {
        room.fails(2, &format!("{tune} --backend cuda"), &["--backend cpu"]);
        return;
    }
    // On a GPU one warning names the file, unless tuning is off; a search refuses it.
    let solve = "solve --gauge weak.ildg --mass 0.1 --source random:1 --backend cuda --json";
    let run = room.run(solve);
    assert_eq!((run.code, run.stderr.matches("tune.json").count()), (Some(0), 1), "{}", run.stderr);
    assert!(!room.run(&format!("{solve} --tuning off")).stderr.contains("tune.json"));
    let tune = format!("{tune} --operator wilson --precision half --reconstruct 12");
    room.fails(2, &tune, &["tune.json", "--retune"]);
    let tune = format!("{tune} --backend cuda");
    room.fails(2, &tune, &["tune.json", "--retune"]);
    assert_eq!(fs::read_to_string(&cache).unwrap(), "{");
    let report = object(&room.run(&format!("{tune} --retune --json")));
    let launches = report["launches"].as_array().unwrap();
    assert!(!launches.is_empty() && launches.iter().all(|l| l["measured_now"] == true), "{report}");
    assert!(
        launches.iter().all(|l| l["shape"]
            .as_str()
            .is_some_and(|shape| shape.parse::<ferrite::backend::tuning::Shape>().is_ok_and(|s| s.block() % 32 == 0))),
        "{report}"
    );
    let again = object(&room.run(&format!("{tune} --json")));
    assert!(again["launches"].as_array().unwrap().iter().all(|l| l["measured_now"] == false), "{again}");
    assert_eq!(room.json("info")["tuning"]["launches"], launches.len());
    let bench = "bench dslash --lattice 4,4,4,4 --precision half --reconstruct 12 --backend cuda --json";
    let bench = object(&room.run(bench));
    assert!(bench["launches"].as_array().unwrap().iter().any(|l| l["kernel"] == "wilson_row_half_12"), "{bench}");
}

#[test]
fn usage_mistakes() {
    let room = Room::with_weak_field();
    let none = room.run("");
    assert!(none.code == Some(2) && none.stderr.contains("Usage:"), "{}", none.stderr);
    room.fails(2, "solv", &["solve"]);
    for flag in ["--flow-step 0.1", "--flow-action symanzik", "--flow-every 2"] {
        let name = flag.split(' ').next().unwrap();
        room.fails(2, &format!("measure weak.ildg {flag}"), &[name, "needs --flow: also give --flow T"]);
    }
    room.fails(2, "plaquette weak.ildg --bakend cpu", &["--backend"]);
    room.fails(2, "plaquette", &["<FILE>"]);
    room.fails(2, "plaquette weak.ildg --backend gpu", &["--backend", "auto, cuda, cpu"]);
    room.fails(2, "plaquette weak.ildg --threads 0", &["--threads", "1 to 1024"]);
    room.fails(2, "plaquette weak.ildg --backend cpu --device 0", &["--device", "--backend"]);
    room.fails(2, "plaquette weak.ildg -v -q", &["--quiet"]);
    let generate = "generate weak-field -o a.ildg --seed 1";
    room.fails(2, &format!("{generate} --lattice 4,4,4,5"), &["extent t = 5", "even"]);
    room.fails(2, &format!("{generate} --lattice 4,4,4"), &["X,Y,Z,T"]);
    room.fails(2, &format!("{generate} --lattice 0,4,4,4"), &["extent x = 0"]);
    room.fails(2, &format!("{generate} --lattice -4,4,4,4"), &["--lattice"]);
    room.fails(2, &format!("{generate} --lattice 8192,4096,4096,4096"), &["2⁴⁸ sites"]);
    room.fails(2, &format!("{generate} --lattice 4,4,4,4 --noise nan"), &["--noise"]);
    room.fails(2, "generate weak-field --lattice 4,4,4,4 -o a.ildg", &["--seed"]);
    room.fails(2, "generate unit --lattice 4,4,4,4 --noise 1 -o a.ildg", &["--noise"]);
    room.fails(2, "generate unit --lattice 4,4,4,4 -o a.dat", &["a.dat", ".ildg"]);
    room.fails(2, "generate unit --lattice 4,4,4,4 -o nowhere/a.ildg", &["nowhere/a.ildg", "folder"]);
    // One sentence for each mistake, all at once.
    let solve = "solve --gauge weak.ildg";
    let many =
        format!("{solve} --mass 0.1 --kappa 0.1 --source point:4,0,0,0,0,0 --tol 2 --precision quad --plot a.png");
    let parts =
        ["5 mistakes", "--kappa", "outside the lattice 4×4×4×8", "--tol", "none of double, single, half, fp16", "SVG"];
    room.fails(2, &many, &parts);
    room.fails(2, solve, &["no mass", "no source"]);
    room.fails(2, "solve", &["no gauge field"]);
    for (source, part) in [
        ("point:0,0,0,0,4,0", "spins are 0 to 3"),
        ("point:0,0,0,0,0,3", "colours are 0 to 2"),
        ("point:0,0,0", "6 whole numbers"),
        ("random:x", "seed"),
        ("noise", "expected point:"),
        ("file:absent.npy", "absent.npy"),
        ("file:weak.ildg", "spinor field has 12"),
    ] {
        room.fails(2, &format!("{solve} --mass 0 --source {source}"), &["--source", part]);
    }
    for (flags, part) in [
        ("--mass -4", "above -4"),
        ("--mass nan", "--mass"),
        ("--kappa 0", "not a number of at least 1e-9"),
        ("--mass 0 --tol 0", "--tol"),
        ("--mass 0 --delta 1", "--delta"),
        ("--mass 0 --max-iterations 0", "--max-iterations"),
        ("--mass 0 --operator clovr", "did you mean 'clover'?"),
        ("--mass 0 --operator clover", "--csw C, or --clover-r CR with --clover-t CT"),
        ("--mass 0 --operator clover --csw one", "--csw"),
        ("--mass 0 --operator clover --csw 1 --u0 0", "not a number of at least 1e-3"),
        ("--mass 0 --operator clover --csw 1 --clover-t 1", "conflicts with --clover-t"),
        ("--mass 0 --operator clover --csw 1 --xi 2", "clover-r and clover-t"),
        ("--mass 0 --operator clover --clover-r 1", "needs clover-t"),
        ("--mass 0 --operator clover --clover-r 1 --clover-t 1 --u0 0.9", "applies only to csw"),
        ("--mass 0 --operator clover --csw 1 --schur odd", "symmetric, asymmetric"),
        ("--mass 0 --csw 1", "--operator clover"),
        ("--mass 0 --operator wilson --schur symmetric", "--operator clover"),
        ("--mass 0 --solver gmres", "bicgstab, idr, cg"),
        ("--mass 0 --reconstruct 9", "18, 12, 8"),
        ("--mass 0 --bc-time open", "antiperiodic, periodic"),
        ("--mass 0 -o x.dat", ".npy or .lime"),
        ("--mass 0 -o x.npy --save-source x.npy", "different files"),
        ("--mass 0 -o x.npy --save-source ./x.npy", "different files"),
        ("--mass 0 -o .", "."),
    ] {
        room.fails(2, &format!("{solve} --source random:1 {flags}"), &[part]);
    }
    assert_eq!(room.files(), ["weak.ildg"]);
    // With --json there is an object too.
    for line in ["plaquette absent.ildg --json", "plaquette --jason --json", "solve --json"] {
        let run = room.run(line);
        assert_eq!(run.code, Some(2), "{line}");
        let error = object(&run);
        assert_eq!((&error["schema"], error["error"]["exit_code"].as_u64()), (&"ferrite.error/1".into(), Some(2)));
        assert!(error["error"]["message"].is_string());
    }
}

/// A file name that is not UTF-8 is refused before any work is done: reports could not contain it.
#[cfg(unix)]
#[test]
fn a_name_that_is_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let room = Room::with_weak_field();
    let mut command = room.command("convert weak.ildg");
    let run: Run = command.arg(std::ffi::OsStr::from_bytes(b"x\xff.npy")).output().unwrap().into();
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("is not UTF-8") && run.stderr.contains("rename the file"), "{}", run.stderr);
    assert_eq!(fs::read_dir(room.path(".")).unwrap().count(), 1);
}

#[test]
fn a_gpu_that_is_not_there() {
    let room = Room::with_weak_field();
    let info = room.json("info");
    let devices = info["devices"].as_array().unwrap().len();
    let has_feature = info["features"].as_array().unwrap().contains(&"cuda".into());
    if devices > 0 {
        room.fails(2, "plaquette weak.ildg --device 1000", &["GPU 1000 does not exist", "--device"]);
        return;
    }
    let part = if has_feature { "no GPU can be used" } else { "built without CUDA" };
    room.fails(2, "plaquette weak.ildg --backend cuda", &[part, "--backend cpu"]);
    room.fails(2, "plaquette weak.ildg --device 0", &[part]);
    // Without a GPU only the device is printed; the reason is printed with -v and by `info`. If the kernel driver lists a GPU that does not
    // work, a line says that the CPU is used instead.
    if fs::read_dir("/proc/driver/nvidia/gpus").is_ok_and(|mut gpus| gpus.next().is_some()) {
        assert!(room.run("plaquette weak.ildg").stderr.contains("using the CPU instead"));
        return;
    }
    let run = room.run("plaquette weak.ildg");
    assert_eq!((run.code, run.stderr.lines().count()), (Some(0), 1), "{}", run.stderr);
    assert!(run.stderr.contains("rank 0 on ") && run.stderr.contains("CPU, ") && !run.stderr.contains("GPU"));
    let verbose = room.run("plaquette weak.ildg -v").stderr;
    assert!(verbose.contains(&format!("info: {part}")) && verbose.contains("using the CPU"), "{verbose}");
    assert!(room.run("info").stdout.contains(&format!("GPU: {}", if has_feature { part } else { "this program was" })));
    assert_eq!(room.run("plaquette weak.ildg -q").stderr, "");
}

#[test]
fn the_study_of_mixed_precision() {
    let room = Room::new();
    let report = room.json(
        "studies mixed-precision --lattice 4,4,4,8 --sweeps 20 --sources 2 --masses=-0.2,0.1 --table 3,5 --plot s.svg",
    );
    assert_eq!(report["schema"], "ferrite.bench-solver/1");
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.len() >= 2 * (3 + 8));
    for row in rows {
        assert_eq!(row["failures"], serde_json::json!([]), "{row}");
        assert!(row["true_residual"].as_f64().unwrap() <= 1e-12, "{row}");
        for key in ["iterations", "seconds", "gflops", "matrix_gflops"] {
            assert!(row[key].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    // Smaller masses take longer, and CG longer than BiCGstab.
    let iterations = |solver: &str, mass: f64| {
        let row = rows.iter().find(|r| r["table"] == 3 && r["solver"] == solver && r["mass"] == mass).unwrap();
        row["iterations"].as_f64().unwrap()
    };
    assert!(iterations("bicgstab", -0.2) > iterations("bicgstab", 0.1));
    assert!(iterations("cg", -0.2) > iterations("bicgstab", -0.2));
    assert!(fs::read_to_string(room.path("s.svg")).unwrap().contains("speed-up"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let room = Room::with_weak_field();
    for line in ["plaquette weak.ildg --backend cpu", "solve --help", "info --json"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run: Run = room.command(line).stdout(writer).output().unwrap().into();
        // The head of a log, and no error.
        assert!(run.code == Some(0) && !run.stderr.contains("error"), "{line}: {}", run.stderr);
    }
}
