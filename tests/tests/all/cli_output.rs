//! Results as text and as JSON: in a pipe, on a terminal and in a file.
use crate::program::{Room, Run, ferrite, object};
use std::fs;

const PLAQUETTE: &str = "plaquette weak.ildg --backend cpu";

/// A run whose standard output is a pipe.
fn piped(room: &Room, arguments: &str) -> Run {
    room.command(arguments).output().unwrap().into()
}

#[test]
fn a_pipe_gets_an_object_and_standard_error_the_text() {
    let room = Room::with_weak_field();
    let text = room.run(PLAQUETTE).stdout;
    assert!(text.contains("plaquette") && !text.contains("schema"), "{text}");

    let both = piped(&room, PLAQUETTE);
    assert_eq!(object(&both)["schema"], "ferrite.plaquette/1");
    assert!(both.stderr.ends_with(&text), "{}", both.stderr);
    let quiet = piped(&room, &format!("{PLAQUETTE} --quiet"));
    assert_eq!((object(&quiet), quiet.stderr.as_str()), (object(&both), ""));
    let json = piped(&room, &format!("{PLAQUETTE} --json"));
    assert_eq!(object(&json), object(&both));
    assert!(!json.stderr.contains(&text), "{}", json.stderr);
    let refused = room.fails(2, &format!("{PLAQUETTE} --json --text"), &["'--json' cannot be used with '--text'"]);
    assert_eq!(object(&refused)["error"]["exit_code"], 2);

    // Parts of a result, too.
    let measured = piped(&room, "measure weak.ildg --backend cpu");
    assert_eq!(object(&measured)["schema"], "ferrite.measure/1");
    assert!(measured.stderr.contains("weak.ildg on 4×4×4×8\n"), "{}", measured.stderr);
    let failed = piped(&room, "plaquette nothing.ildg --backend cpu");
    assert_eq!(object(&failed)["error"]["exit_code"], failed.code.unwrap());
}

#[test]
fn a_document_is_the_same_wherever_it_goes() {
    let room = Room::new();
    for document in ["init rhmc", "completions bash"] {
        let piped = piped(&room, document);
        assert_eq!(piped.stdout, room.run(document).stdout);
        assert!(!piped.stdout.is_empty() && piped.code == Some(0), "{document}");
    }
    let input = object(&piped(&room, "init rhmc --json"));
    assert_eq!(input["input"].as_str(), Some(room.run("init rhmc").stdout.as_str()));
}

/// `script` of util-linux runs a command on a terminal of its own.
#[test]
#[cfg(target_os = "linux")]
fn a_terminal_gets_text() {
    let room = Room::with_weak_field();
    let line = format!("{} {PLAQUETTE}", ferrite().display());
    let mut script = std::process::Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(room.0.path());
    let run: Run = match script.output() {
        Ok(output) => output.into(),
        Err(why) => {
            return eprintln!("not tested: script, of the package bsdutils or util-linux, cannot be run: {why}");
        }
    };
    // Terminals end lines with both.
    let text = run.stdout.replace("\r\n", "\n");
    assert!(run.code == Some(0) && text.contains(&room.run(PLAQUETTE).stdout) && !text.contains("schema"), "{text}");
}

/// `ferrite report` reads the log of a job whose two streams go to one file.
#[test]
fn a_log_is_reported() {
    let room = Room::with_weak_field();
    let log = fs::File::create(room.path("job.log")).unwrap();
    for line in [PLAQUETTE, "solve --gauge weak.ildg --mass 0.1 --source random:1 --backend cpu --progress json"] {
        let mut command = room.command(line);
        command.stdout(log.try_clone().unwrap()).stderr(log.try_clone().unwrap());
        assert!(command.status().unwrap().success());
    }
    let report = room.json("report job.log");
    assert_eq!(report["sections"].as_array().unwrap().len(), 1);
    assert_eq!(report["sections"][0]["kind"], "convergence");
    fs::write(room.path("other.log"), "nothing\n{\"schema\": \"ferrite.plaquette/1\"}\n[1]\n").unwrap();
    room.fails(2, "report other.log", &["other.log: is not JSON", "a job's log"]);
}

/// Progress can be printed as lines of JSON, with `--quiet` as nothing else.
#[test]
fn progress_as_json() {
    let room = Room::with_weak_field();
    let lines = |arguments: &str| -> Vec<serde_json::Value> {
        let run = room.run(&format!("{arguments} --backend cpu --progress json --quiet"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        run.stderr.lines().map(line).collect()
    };
    let solve = lines("solve --gauge weak.ildg --mass 0.1 --source random:1 -o x.npy");
    let first = &solve[0];
    assert_eq!((&first["progress"], &first["rhs"]), (&"solve".into(), &serde_json::json!([0, 1])), "{first}");
    assert!(
        first["residual"].as_f64().unwrap() <= 1.0 && first["iteration"].is_u64() && first["seconds"].is_f64(),
        "{first}"
    );

    let input = "lattice = [4, 4, 4, 4]\ntrajectories = 2\nseed = 1\nstart = \"cold\"\n[gauge]\naction = \"wilson\"\n\
                 beta = 5.6\n[trajectory]\nlength = 0.2\nsteps = 4\nintegrator = \"leapfrog\"\n";
    fs::write(room.path("pure.toml"), input).unwrap();
    let run = lines("rhmc pure.toml --out run");
    let done: Vec<_> = run.iter().filter(|line| line["done"] == true).collect();
    assert_eq!(done.iter().map(|line| line["trajectory"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert!(done.iter().all(|line| line["dH"].is_f64() && line["accepted"].is_boolean() && line["trajectories"] == 2));
    let fractions: Vec<f64> = run.iter().map(|line| line["fraction"].as_f64().unwrap()).collect();
    assert!(fractions.is_sorted() && fractions.last() == Some(&1.0), "{fractions:?}");

    assert_eq!(room.run("measure weak.ildg --flow 0.04 --backend cpu --progress off --quiet").stderr, "");
    assert_eq!(lines("measure weak.ildg --flow 0.04")[0]["progress"], "measure");
    room.fails(2, "measure weak.ildg --progress sometimes", &["sometimes", "--progress"]);
}
