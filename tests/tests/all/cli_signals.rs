//! Signals end long work at its next step, with the exit code of the signal and a sentence, and leave nothing half-written.
use crate::program::*;
use crate::trajectories::lines;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Far more than any step takes, and far less than the work of these commands.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends SIGTERM to a command a moment after it has begun to poll for signals, and returns its output. Its exit code is 143.
fn terminated(room: &Room, line: &str) -> Run {
    let mut child = room.command(&format!("{line} --backend cpu --threads 1 -v"));
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = until_signals_are_polled(&mut child);
    std::thread::sleep(Duration::from_millis(500));
    send("TERM", child.id());
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{line}: a signal does not end it: {}", said.join().unwrap());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let run = Run { stderr: String::new(), ..child.wait_with_output().unwrap().into() };
    let run = Run { stderr: said.join().unwrap(), ..run };
    assert_eq!(run.code, Some(143), "{line}: {}", run.stderr);
    run
}

/// A multigrid setup that takes hours.
const SETUP: &str = "--solver multigrid --mg-vectors 8 --mg-block 2,2,2,2 --mg-improvements 1000 --mg-relaxations 1000";

#[test]
fn multigrid_setups_end() {
    let room = Room::new();
    room.json("generate weak-field --lattice 8,8,8,8 --seed 7 -o weak.ildg");
    let solve = format!("solve --gauge weak.ildg --mass=-0.1 --source random:1 {SETUP}");
    let run = terminated(&room, &format!("{solve} -o x.npy --setup s.setup --json"));
    assert!(run.stderr.contains("error: cancelled after 0 iterations: |b - Mx| / |b| = "), "{}", run.stderr);
    assert!(run.stderr.contains("x.npy was not written"), "{}", run.stderr);
    let object = object(&run);
    assert_eq!((&object["converged"], &object["iterations"]), (&false.into(), &0.into()));
    let run = terminated(&room, &format!("trace weak.ildg --mass=-0.1 --noise 1 {SETUP} -o t.jsonl"));
    assert!(
        run.stderr.contains("weak.ildg: the solve did not converge: cancelled after 0 iterations"),
        "{}",
        run.stderr
    );
    let spectrum = "configurations = [\"weak.ildg\"]\n[solve]\nmass = -0.1\nsolver = \"multigrid\"\nmg-vectors = 8\n\
                    mg-block = [\"2,2,2,2\"]\nmg-improvements = 1000\nmg-relaxations = 1000\n";
    fs::write(room.path("s.toml"), spectrum).unwrap();
    let run = terminated(&room, "spectrum s.toml --out s");
    assert!(
        run.stderr.contains("weak.ildg: the solve did not converge: cancelled after 0 iterations"),
        "{}",
        run.stderr
    );
    for name in ["x.npy", "s.setup"] {
        assert!(!room.path(name).exists(), "{name}");
    }
}

/// A trajectory whose setup is under way is dropped; the run goes on from the state before it. So it is with the search for the bounds
/// of the spectrum before the first one.
#[test]
fn setups_of_trajectories_end() {
    let room = Room::new();
    let input = "lattice = [8, 8, 8, 8]\ntrajectories = 2\nseed = 5\nstart = \"hot\"\n[gauge]\naction = \"wilson\"\nbeta = 5.6\n\
                 [trajectory]\nlength = 0.1\nsteps = 1\n[[fermion]]\noperator = \"wilson\"\nkappa = 0.12\nflavours = 2\n\
                 method = \"multigrid\"\nmg-vectors = 8\nmg-block = \"2,2,2,2\"\nmg-improvements = 1000\nmg-relaxations = 1000\n";
    fs::write(room.path("run.toml"), input).unwrap();
    let run = terminated(&room, "rhmc run.toml --out run");
    assert!(run.stderr.contains("ended before trajectory 1 of 2; continue with --resume"), "{}", run.stderr);
    let quick = "--set lattice=4,4,4,4 --set fermion.0.mg-improvements=1 --set fermion.0.mg-relaxations=1";
    let run = terminated(&room, "rhmc run.toml --out small --set lattice=4,4,4,4");
    assert!(run.stderr.contains("ended before trajectory 1 of 2; continue with --resume"), "{}", run.stderr);
    room.json(&format!("rhmc run.toml --out small --resume {quick}"));
    room.json(&format!("rhmc run.toml --out at-once {quick}"));
    let of = |folder: &str| lines(&room, folder).iter().map(|line| line["delta_h"].clone()).collect::<Vec<_>>();
    assert_eq!((of("small").len(), of("small")), (2, of("at-once")));
}

#[test]
fn searches_for_eigenvalues_end() {
    let room = Room::new();
    room.json("generate weak-field --lattice 8,8,8,8 --seed 7 -o weak.ildg");
    let run = terminated(&room, "eigenvalues weak.ildg --mass 0.1 --steps 100000 --tol 1e-12");
    assert!(run.stderr.contains("error: weak.ildg: interrupted"), "{}", run.stderr);
}

/// A sweep of hours ends at its next pass; the links before it are what is left.
#[test]
fn long_sweeps_end() {
    let room = Room::new();
    let chain = "generate quenched --lattice 8,8,8,8 --beta 6 --seed 1 --sweeps 2 --overrelax 1000000";
    let run = terminated(&room, &format!("{chain} -o q.ildg"));
    assert!(run.stderr.contains("interrupted before sweep 1 was completed; nothing was written"), "{}", run.stderr);
    assert_eq!(room.files(), Vec::<String>::new());
}

#[test]
fn gauge_fixing_flow_and_loops_end() {
    let room = Room::new();
    room.json("generate random --lattice 8,8,8,8 --seed 7 -o rough.ildg");
    let run = terminated(&room, "fix-gauge rough.ildg -o fixed.ildg --gauge landau --tol 1e-28 --max-sweeps 1000000");
    assert!(run.stderr.contains("nothing was written"), "{}", run.stderr);
    let run = terminated(&room, "measure rough.ildg --flow 100 --flow-step 0.01");
    assert!(run.stderr.contains("error: interrupted at flow time t = "), "{}", run.stderr);
    let smeared = "--loop-smear ape --loop-alpha 0.5 --loop-levels 1000";
    let run = terminated(&room, &format!("measure rough.ildg --loops 2,2 {smeared}"));
    assert!(run.stderr.contains("error: interrupted during the Wilson loops of rough.ildg"), "{}", run.stderr);
    assert_eq!(room.files(), ["rough.ildg"]);
}
