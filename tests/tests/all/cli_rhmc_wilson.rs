//! `ferrite rhmc` with Wilson-like quarks: inputs, mistakes in them, and what lines say.
use crate::program::*;
use crate::trajectories::{all_lines, lines};
use serde_json::{Value, json};
use std::fs;

const INPUT: &str = r#"
lattice = [4, 4, 4, 4]
trajectories = 2
seed = 5
[gauge]
action = "iwasaki"
beta = 2.2
[trajectory]
length = 0.3
steps = [2, 2]
gauge-steps = 2
[[fermion]]
operator = "clover"
kappa = 0.125
csw = 1.5
flavours = 2
hasenbusch-mu = [0.3]
level = [0, 1]
[[fermion]]
operator = "clover"
kappa = 0.12
csw = 1.5
flavours = 1
"#;

#[test]
fn inputs_with_comments_are_inputs() {
    let room = Room::new();
    for (quarks, parts) in [("clover", 5), ("twisted", 3), ("naive", 1), ("hisq", 3)] {
        let example = room.run(&format!("init rhmc --quarks {quarks}"));
        fs::write(room.path("run.toml"), example.stdout).unwrap();
        room.json("check run.toml");
        let steps = if ["naive", "hisq"].contains(&quarks) { "2" } else { "2,1" };
        let short =
            format!("--set lattice=4,4,4,4 --set trajectories=1 --set thermalise=1 --set trajectory.steps={steps}");
        room.json(&format!("rhmc run.toml --out {quarks} --set trajectory.length=0.1 {short}"));
        assert_eq!(lines(&room, quarks)[0]["quarks"].as_array().unwrap().len(), parts, "{quarks}");
        room.json(&format!("report {quarks}"));
    }
    let why =
        "--quarks applies to `ferrite init rhmc` only: remove --quarks, and set the key operator in the input of solve";
    room.fails(2, "init solve --quarks clover", &[why]);
}

#[test]
fn lines_report_all_parts() {
    let room = Room::new();
    fs::write(room.path("run.toml"), INPUT).unwrap();
    room.json("rhmc run.toml --out run");
    let line = &all_lines(&room, "run")[0];
    let parts = line["quarks"].as_array().unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
    let expected = [
        "clover quarks 2 at kappa = 0.125, over mu = 0.3",
        "clover quarks 2 at kappa = 0.125, mu = 0.3",
        "clover quarks 2 at kappa = 0.125, determinant of the clover term",
        "clover quarks 1 at kappa = 0.12",
        "clover quarks 1 at kappa = 0.12, determinant of the clover term",
    ];
    assert_eq!(names, expected);
    // Only the rational function has a spectrum, and determinants have no solver.
    for (k, part) in parts.iter().enumerate() {
        assert_eq!(part["largest_eigenvalue"].is_null(), k != 3);
        assert_eq!(part["iterations"]["dynamics"] == json!(0), k == 2 || k == 4);
    }
    let number = |value: &Value| value.as_f64().unwrap();
    let (smallest, largest) = (number(&parts[3]["smallest_eigenvalue"]), number(&parts[3]["largest_eigenvalue"]));
    assert!(0.0 < smallest && smallest < 1.0 && 1.0 < largest && largest < 4.0, "{smallest} {largest}");
    let settings = &line["run"];
    assert_eq!(settings["levels"][0]["quarks"], json!([0, 3, 4]));
    assert_eq!(settings["levels"][1]["quarks"], json!([1, 2]));
    assert_eq!(settings["levels"][2]["gauge"], json!(true));
    assert_eq!(settings["quarks"][0]["hasenbusch"], json!(["mu = 0.3"]));
    // Residuals are those of the action, whatever the dynamics has.
    assert!(parts.iter().all(|part| number(&part["residual"]) < 1e-11), "{parts:?}");
    assert!(number(&line["delta_h"]).abs() < 0.5);
    // The page names the operator whose spectrum it is, and warns of nothing.
    let report = room.json("report run");
    assert_eq!(report["notes"], json!([]));
    let of = |key: &str| {
        let all = report["observables"].as_array().unwrap().iter().filter(|one| one["name"] == key);
        all.map(|one| one["quarks"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    for end in ["quarks.largest_eigenvalue", "quarks.smallest_eigenvalue"] {
        assert_eq!(of(end), [expected[3]]);
    }
    assert_eq!(of("quarks.iterations.dynamics"), [expected[0], expected[1], expected[3]]);
    let page = fs::read_to_string(room.path("run/report.html")).unwrap();
    for part in
        ["largest eigenvalue of K = M̂†M̂, clover quarks 1", "c_sw = 1.5", "divided by heavier quarks at mu = 0.3"]
    {
        assert!(page.contains(part), "{part}");
    }
    for part in ["−D²", "not finite", "staggered", "NaN"] {
        assert!(!page.contains(part), "{part}");
    }
}

/// The determinant of the exponential is a constant: it is no part of the action, and on no level.
#[test]
fn exponential_clover_has_no_determinant() {
    let room = Room::new();
    fs::write(room.path("run.toml"), INPUT.replace("\"clover\"", "\"exp-clover\"")).unwrap();
    let run = room.json("check run.toml");
    assert!(run.to_string().contains("derivatives of clover terms"), "{run}");
    room.json("rhmc run.toml --out run");
    let line = &all_lines(&room, "run")[0];
    let names: Vec<&str> =
        line["quarks"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
    let expected = [
        "exp-clover quarks 2 at kappa = 0.125, over mu = 0.3",
        "exp-clover quarks 2 at kappa = 0.125, mu = 0.3",
        "exp-clover quarks 1 at kappa = 0.12",
    ];
    assert_eq!(names, expected);
    let settings = &line["run"];
    assert_eq!(settings["quarks"][0]["operator"], json!("exp-clover"));
    assert_eq!(settings["levels"][0]["quarks"], json!([0, 2]));
    assert_eq!(settings["levels"][1]["quarks"], json!([1]));
    assert!(line["delta_h"].as_f64().unwrap().abs() < 0.5);
    room.json("report run");
    let other = "rhmc run.toml --out run --resume --set trajectories=3 --set fermion.0.operator=clover";
    room.fails(2, other, &["fermion.0.operator = \"exp-clover\", but the input has \"clover\""]);
}

#[test]
fn a_solver_that_gives_up_rejects_its_trajectory() {
    let room = Room::new();
    fs::write(room.path("run.toml"), INPUT).unwrap();
    // Steps in which links lose their way.
    let run = room.run("rhmc run.toml --out run --backend cpu --set trajectory.length=1e8 --set trajectory.steps=1,1");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("trajectory 1 is rejected: the solver for clover quarks"), "{}", run.stderr);
    assert!(run.stderr.contains("of molecular dynamics; use more steps"), "{}", run.stderr);
    let line = &lines(&room, "run")[0];
    assert_eq!((&line["accepted"], &line["delta_h"]), (&json!(false), &Value::Null));
    assert!(line["failure"].as_str().unwrap().contains("in move"), "{line}");
    // The chain goes on from the links that it had.
    room.json("rhmc run.toml --out run --resume --set trajectories=3");
    assert_eq!(lines(&room, "run")[2]["accepted"], json!(true));
}

/// The method changes nothing but how many iterations there are.
#[test]
fn multigrid_makes_the_same_trajectories() {
    let room = Room::new();
    fs::write(room.path("run.toml"), INPUT).unwrap();
    let common = "--set precision.dynamics=double --set precision.dynamics-tol=1e-9 --set fermion.0.kappa=0.14 --set trajectories=1";
    room.json(&format!("rhmc run.toml --out cg {common}"));
    let multigrid = "--set fermion.0.method=multigrid --set fermion.0.mg-vectors=8 --set fermion.0.mg-block=2,2,2,2";
    room.json(&format!("rhmc run.toml --out multigrid {common} {multigrid}"));
    let [cg, multigrid] = ["cg", "multigrid"].map(|name| all_lines(&room, name).swap_remove(0));
    let number = |value: &Value| value.as_f64().unwrap();
    // Residuals of 1e-9 in forces.
    let off = number(&cg["delta_h"]) - number(&multigrid["delta_h"]);
    assert!(off.abs() < 1e-6, "{off:e}");
    let iterations = |line: &Value, part: usize| number(&line["quarks"][part]["iterations"]["dynamics"]);
    // On a lattice of this size there are not fewer. Heavier quarks with a twist have CG in both.
    assert_ne!(iterations(&multigrid, 0), iterations(&cg, 0));
    assert_eq!(iterations(&multigrid, 1), iterations(&cg, 1));
    assert_eq!(multigrid["run"]["quarks"][0]["method"], json!("multigrid"));
}

#[test]
fn mistakes_are_reported() {
    let room = Room::new();
    fs::write(room.path("run.toml"), INPUT).unwrap();
    for (set, why) in [
        ("fermion.0.flavours=3", "fermion.0.flavours: '3' is too large: give a whole number from 1 to 2"),
        ("fermion.0.kappa=0", "fermion.0.kappa: '0' is not a number of at least 1e-9"),
        ("fermion.0.mass=0.1", "give either mass or kappa"),
        ("fermion.0.phases=milc", "applies only to staggered quarks: remove it"),
        ("fermion.0.naik-epsilon=0.3", "fermion.0.naik-epsilon: applies only to staggered quarks: remove it"),
        ("fermion.0.mu=0.1", "clover quarks do not have this parameter: remove it"),
        (
            "fermion.0.pseudofermions=2",
            "applies only to rational functions, which two flavours of Wilson-like quarks do not use: remove it",
        ),
        ("fermion.1.guesses=2", "because one flavour is computed with a rational function and CG"),
        ("fermion.0.hasenbusch-mass=0.5", "give only one of them"),
        ("fermion.0.level=0,1,1", "give one level, or one for each of the 2 pseudofermions"),
        ("fermion.0.level=0,2", "some quarks are on level 2, but the last level in trajectory.steps is 1"),
        ("fermion.0.stout-levels=2", "applies to stout links: also give stout-rho, the weight of a staple"),
        ("fermion.0.stout-rho=0.3", "is not a number from 0 to 0.25"),
        ("fermion.1.operator=naive", "staggered and Wilson-like quarks cannot be combined"),
        (
            "fermion.1.operator=clever",
            "'clever' is none of wilson, clover, exp-clover, twisted, twisted-clover, twisted-exp-clover, staggered, asqtad, hisq, naive",
        ),
        ("fermion.0.mg-vectors=16", "applies only to method = \"multigrid\": remove it"),
        ("fermion.1.method=multigrid", "because one flavour is computed with a rational function and CG"),
        ("fermion.0.method=multigrid --set fermion.0.mg-vectors=20", "20 is not a multiple of 8"),
        ("fermion.0.method=multigrid --set fermion.0.mg-block=3,4,4,4", "clover quarks 2 at kappa = 0.125: "),
        (
            "fermion.0.operator=twisted-clover --set fermion.0.mu=0.1 --set fermion.0.method=multigrid",
            "multigrid is not available for quarks with a twisted mass: give \"cg\" or \"bicgstab\"",
        ),
        ("measure.condensate=1", "condensates are measured for staggered quarks only: remove measure.condensate"),
    ] {
        room.fails(2, &format!("rhmc run.toml --out run --backend cpu --set {set}"), &[why]);
    }
    let heavy = "rhmc run.toml --out run --backend cpu --set fermion.0.hasenbusch-mu=0.3,0.1";
    room.fails(2, heavy, &["list the twisted masses in ascending order"]);
    fs::create_dir(room.path("noise")).unwrap();
    let replay = "rhmc run.toml --out run --backend cpu --replay noise";
    room.fails(
        2,
        replay,
        &["--replay noise: files of noise exist for staggered quarks only, but the input has Wilson-like quarks"],
    );
    assert!(!room.path("run").exists());
}
