//! `ferrite solve --solver multigrid`.
use crate::program::*;
use serde_json::{Value, json};
use std::fs;

#[test]
fn multigrid_solves_and_says_what_its_levels_did() {
    let room = Room::with_weak_field();
    let report = room.json(
        "solve --gauge weak.ildg --operator clover --csw 1.0 --mass=-0.1 --source random:1 --solver multigrid --tol 1e-10 \
         --mg-vectors 8 --mg-block 2,2,2,2 --mg-block 1,1,1,2",
    );
    assert_eq!((&report["converged"], &report["solver"]), (&true.into(), &"multigrid".into()));
    assert!(report["true_residual"].as_f64().unwrap() <= 1e-10);
    // Around multigrid the iteration is in single precision where nothing else is asked for.
    assert_eq!(report["precision"], "single");
    let multigrid = &report["multigrid"];
    assert!(multigrid["setup_seconds"].as_f64().unwrap() > 0.0);
    let levels = multigrid["levels"].as_array().unwrap();
    let lattices: Vec<_> = levels.iter().map(|level| level["lattice"].to_string()).collect();
    assert_eq!(lattices, ["[4,4,4,8]", "[2,2,2,4]", "[2,2,2,2]"]);
    assert_eq!(levels[0]["iterations"], report["iterations"]);
    assert!(
        levels.iter().all(|level| level["iterations"].as_u64().unwrap() > 0 && level["seconds"].as_f64().is_some())
    );
    assert_eq!((&levels[1]["vectors"], levels[2]["vectors"].is_null()), (&8.into(), true));
    assert!(levels.iter().all(|level| level["check"].is_null()));
    let bicgstab = room.json(
        "solve --gauge weak.ildg --operator clover --csw 1.0 --mass=-0.1 --source random:1 --tol 1e-10 --solver bicgstab",
    );
    assert!(bicgstab["multigrid"].is_null());
}

#[test]
fn aggregates_and_keys_that_do_not_fit_are_refused() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --operator wilson --mass 0.1 --source random:1";
    for (flags, words) in [
        ("--solver multigrid --mg-block 4,4,4,4", &["4×4×4×4", "4×4×4×8 of level 0", "for example 2,2,2,4"][..]),
        ("--solver multigrid --mg-block 2,2,2,2 --mg-block 2,2,2,2", &["level 1"]),
        ("--solver multigrid --mg-block 1,1,1,1", &["1×1×1×1 on level 0", "6 components", "such as 1,1,2,2"]),
        ("--mg-block 1,1,1,2", &["12 components", "24 near-null vectors", "at most 8 vectors"]),
        ("--solver multigrid --mg-block 2,2,2,2 --mg-block 1,1,1,1", &["level 1", "no coarser level"]),
        ("--mg-block 4,4,4,4", &["4×4×4×4", "for example 2,2,2,4"]),
        ("--solver multigrid --mg-vectors 20", &["mg-vectors", "multiple of 8"]),
        ("--solver multigrid --mg-block 2,2,2", &["mg-block", "X,Y,Z,T"]),
        ("--solver multigrid --correction defect", &["correction"]),
        ("--solver bicgstab --mg-levels 2", &["mg-levels", "applies only to --solver multigrid"]),
    ] {
        room.fails(2, &format!("{solve} {flags}"), words);
    }
}

/// Each level is as right as single precision, or 16 bits, allow; with a twisted mass, too.
#[test]
fn setups_are_checked() {
    let room = Room::with_weak_field();
    for (operator, precision, most) in [
        ("clover --csw 1.0 --mass=-0.1", "single", 1e-5),
        ("twisted-clover --csw 1.0 --mass=-0.1 --mu 0.2", "single", 1e-5),
        ("wilson --mass=-0.1", "half", 1e-3),
    ] {
        let solve = format!(
            "solve --gauge weak.ildg --operator {operator} --source random:1 --solver multigrid --mg-vectors 8 \
             --mg-block 2,2,2,2 --mg-block 1,1,1,2 --mg-precision {precision} --check-setup"
        );
        let report = room.json(&solve);
        let levels = report["multigrid"]["levels"].as_array().unwrap();
        for level in &levels[..2] {
            for key in ["near_null", "galerkin", "gamma5"] {
                let error = level["check"][key].as_f64().unwrap();
                assert!(error > 0.0 && error < most, "{operator}, {key}: {level}");
            }
        }
        assert!(levels[2]["check"].is_null());
    }
    let run = room.run(
        "solve --gauge weak.ildg --operator wilson --mass 0.1 --source random:1 --solver multigrid --mg-vectors 8 --check-setup",
    );
    assert!(run.stdout.contains("γ5-Hermitian to"), "{}", run.stdout);
}

/// BiCGstab where it is fast; where it is not, for all sources together, multigrid goes on from where it is. On a lattice as small as this,
/// CG is faster than multigrid, unless it is ruled out with `--no-escalation`.
#[test]
fn the_faster_method_is_taken() {
    let room = Room::new();
    room.json("generate quenched --lattice 4,4,4,8 --beta 5.7 --seed 3 --sweeps 30 -o q.ildg");
    let solve = "solve --gauge q.ildg --operator wilson --mg-vectors 8 --mg-improvements 1 --mg-relaxations 2";
    let sources = "--source random:1 --source random:2 --source random:3 --source random:4";
    let easy = room.json(&format!("{solve} {sources} --mass=-0.5"));
    assert_eq!(
        (&easy["solver"], &easy["method_changes"], &easy["multigrid"]),
        (&"bicgstab".into(), &json!([]), &Value::Null)
    );
    let one = room.json("solve --gauge q.ildg --operator wilson --source random:1 --mass=-1.1");
    assert_eq!(one["solver"], "bicgstab", "the usual setup for one source does not pay");
    // Multigrid continues for three sources, and four begin with it after a trial of the first.
    let three = room
        .json(&format!("{solve} --source random:1 --source random:2 --source random:3 --mass=-1.3 --no-escalation"));
    let all = room.json(&format!("{solve} {sources} --mass=-1.3 --no-escalation"));
    let with_cg = room.json(&format!("{solve} {sources} --mass=-1.3"));
    assert_eq!((&with_cg["solver"], &with_cg["method_changes"][0]["solver"]), (&"cg".into(), &"cg".into()));
    let begun = |solve: &Value| solve["method_changes"][0]["iterations"].as_u64().expect("a change");
    assert_eq!(begun(&all), 0);
    assert!((60..three["iterations"].as_u64().unwrap()).contains(&begun(&three)));
    for (hard, count) in [(&three, 3), (&all, 4)] {
        finishes_by_multigrid(&room, hard, count);
    }
}
/// Checks a solve that changed to multigrid, and its report.
fn finishes_by_multigrid(room: &Room, hard: &Value, sources: usize) {
    assert_eq!(
        (&hard["solver"], &hard["converged"], &hard["precision"]),
        (&"multigrid".into(), &true.into(), &"single".into())
    );
    assert!(hard["true_residual"].as_f64().unwrap() <= 1e-10);
    let changes = hard["method_changes"].as_array().unwrap();
    assert_eq!((changes.len(), &changes[0]["solver"]), (1, &"multigrid".into()));
    let reason = format!("each of {sources} right-hand sides");
    assert!(changes[0]["reason"].as_str().unwrap().contains(&reason), "{changes:?}");
    fs::write(room.path("hard.json"), hard.to_string()).unwrap();
    room.run("report hard.json");
    let page = fs::read_to_string(room.path("report.html")).unwrap();
    let level = "<tr><td>4×4×4×8</td><td>2×2×2×4</td><td>8</td>";
    assert!(page.contains(level) && page.contains("<tr><td>2×2×2×2</td><td>–</td>"), "{page}");
    assert!(page.contains("multigrid's setup"));
    let change = match changes[0]["iterations"].as_u64().unwrap() {
        0 => "Before the first iteration multigrid was chosen: BiCGstab ".into(),
        begun => format!("After {begun} iterations multigrid continued: BiCGstab "),
    };
    assert!(page.contains(&change), "{page}");
}

/// Near-null vectors that are random numbers are of no help: BiCGstab ends what multigrid began.
#[test]
fn bicgstab_goes_on_where_multigrid_does_not_converge() {
    let room = Room::new();
    room.json("generate quenched --lattice 4,4,4,8 --beta 5.7 --seed 3 --sweeps 30 -o q.ildg");
    let solve = "solve --gauge q.ildg --operator wilson --mass=-1.3 --source random:1 --solver multigrid --mg-vectors 8 \
                 --mg-improvements 0 --mg-relaxations 0 --mg-smoothing 1";
    let report = room.json(solve);
    assert_eq!((&report["solver"], &report["converged"]), (&"bicgstab".into(), &true.into()));
    let changes = report["method_changes"].as_array().unwrap();
    assert_eq!((changes.len(), &changes[0]["solver"]), (1, &"bicgstab".into()));
    let reason = "multigrid has reduced the residual only to";
    assert!(changes[0]["reason"].as_str().unwrap().starts_with(reason), "{changes:?}");
    // Who wants to know how far multigrid gets is not helped.
    room.fails(1, &format!("{solve} --no-escalation --max-iterations 200"), &["no convergence in 200 iterations"]);
}

/// Near-null vectors are written, read by others with another mass, and refused where they do not belong.
#[test]
fn setups_are_kept_in_files() {
    let room = Room::with_weak_field();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 8 -o other.ildg");
    let solve = |gauge: &str, operator: &str, flags: &str| {
        format!(
            "solve --gauge {gauge}.ildg --operator {operator} --source random:1 --solver multigrid --mg-block 2,2,2,2 --setup s.setup \
             {flags}"
        )
    };
    let first = room.json(&solve("weak", "wilson --mass=-0.1", "--mg-vectors 8"));
    let file = fs::read(room.path("s.setup")).unwrap();
    // A quarter of a megabyte of vectors: 8 of 256 sites with 12 numbers of 8 bytes.
    assert!((8 * 256 * 96..8 * 256 * 96 + 8192).contains(&file.len()), "{}", file.len());
    // The same mass, a heavier quark, and a lighter one, which takes more whoever made the vectors.
    for (mass, more) in [("-0.1", 1), ("0.0", 1), ("-0.15", 10)] {
        let next = room.json(&solve("weak", &format!("wilson --mass={mass}"), ""));
        assert_eq!(
            (&next["converged"], &next["multigrid"]["levels"][0]["vectors"]),
            (&true.into(), &8.into()),
            "{mass}"
        );
        let [many, few] = [&next, &first].map(|report| report["iterations"].as_u64().unwrap());
        assert!(many <= few + more, "{mass}: {many} iterations, {few} with a setup of its own");
    }
    assert_eq!(fs::read(room.path("s.setup")).unwrap(), file, "a file that was read stays as it is");
    for (command, words) in [
        (
            solve("other", "wilson --mass=-0.1", ""),
            &["s.setup is a setup for links with checksum", "remove this file"][..],
        ),
        (solve("weak", "clover --csw 1.0 --mass=-0.1", ""), &["s.setup is a setup for operator = \"wilson\""]),
        (
            solve("weak", "wilson --mass=-0.1 --bc-time periodic", ""),
            &["a setup for bc-time = antiperiodic, but this solve has bc-time = periodic"],
        ),
        (
            solve("weak", "wilson --mass=-0.1", "--mg-vectors 16"),
            &["has 8 near-null vectors, but --mg-vectors requests 16"],
        ),
        (solve("weak", "wilson --mass=-0.1", "--reconstruct 8t"), &["temporal gauge: choose 18, 12 or 8"]),
        (solve("weak", "wilson --mass=-0.1", "--output s.setup"), &["different files"]),
    ] {
        room.fails(2, &command, words);
    }
    let mut broken = file;
    let middle = broken.len() / 2;
    broken[middle] ^= 1;
    fs::write(room.path("s.setup"), broken).unwrap();
    room.fails(2, &solve("weak", "wilson --mass=-0.1", ""), &["s.setup", "checksum"]);
}
