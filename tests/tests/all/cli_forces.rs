//! `ferrite forces`: the gauge force against plain loops, those of quarks by what they do to the energy.
use crate::program::*;
use ferrite::files::{ReadOptions, read_gauge};
use ferrite_tests::flow_reference::FlowForce;
use std::fs;

const INPUT: &str = r#"
lattice = [4, 4, 4, 4]
trajectories = 1
seed = 5
start = "cfg.ildg"
[gauge]
action = "symanzik-tree"
beta = 5.0
[trajectory]
length = 0.6
steps = [3, 2]
gauge-steps = 2
[precision]
gauge-force = "double"
[[fermion]]
operator = "clover"
kappa = 0.12
csw = 1.0
flavours = 2
hasenbusch-mu = [0.3]
level = [0, 1]
"#;

#[test]
fn forces_are_printed_before_a_run() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,4 --seed 3 --noise 0.4 -o cfg.ildg");
    fs::write(room.path("run.toml"), INPUT).unwrap();
    let found = room.json("forces run.toml");
    let forces = found["forces"].as_array().unwrap();
    let names: Vec<&str> = forces.iter().map(|one| one["name"].as_str().unwrap()).collect();
    let quarks = "clover quarks 2 at kappa = 0.12";
    let expected = [
        "gauge".into(),
        format!("{quarks}, over mu = 0.3"),
        format!("{quarks}, mu = 0.3"),
        format!("{quarks}, determinant of the clover term"),
    ];
    assert_eq!(names, expected);
    // β/3 times the loops with the coefficients of the action.
    let gauge = read_gauge(room.path("cfg.ildg").as_path(), &ReadOptions::default()).unwrap().gauge;
    let plain = FlowForce { weights: [1.0, -0.05], zeuthen: false }.of(&gauge);
    let squares: Vec<f64> = plain.iter().map(|f| f.iter().flatten().map(|z| z.norm_sqr()).sum()).collect();
    let (rms, most) = (
        5.0 / 3.0 * (squares.iter().sum::<f64>() / squares.len() as f64).sqrt(),
        5.0 / 3.0 * squares.iter().copied().fold(0.0, f64::max).sqrt(),
    );
    // Sums of some hundred numbers of order one.
    assert!((number(&forces[0]["rms"]) / rms - 1.0).abs() < 1e-12, "{} {rms}", forces[0]);
    assert!((number(&forces[0]["max"]) / most - 1.0).abs() < 1e-12, "{} {most}", forces[0]);
    let levels: Vec<u64> = forces.iter().map(|one| one["level"].as_u64().unwrap()).collect();
    assert_eq!(levels, [2, 0, 1, 1]);
    // Omelyan's scheme takes the force for (1 − 2λ) h in the middle of a step h, and the level inside for h/2.
    let middle = 1.0 - 2.0 * 0.193_183_327_503_783_6;
    for (force, h) in forces.iter().zip([0.0125, 0.2, 0.05, 0.05]) {
        assert!((number(&force["kick"]) / (middle * h) - 1.0).abs() < 1e-12, "{force}");
        assert!(0.0 < number(&force["rms"]) && number(&force["rms"]) < number(&force["max"]), "{force}");
    }
    assert!(number(&forces[1]["iterations"]["force"]) > 0.0 && forces[0]["iterations"].is_null());
    // Other noise, other forces of quarks; the same noise, the same.
    let again = room.json("forces run.toml cfg.ildg");
    assert_eq!(again["forces"][1]["rms"], forces[1]["rms"]);
    let other = room.json("forces run.toml --trajectory 2");
    assert!(other["forces"][1]["rms"] != forces[1]["rms"] && other["forces"][0]["rms"] == forces[0]["rms"]);
    // Heavier quarks push less.
    let heavy = room.json("forces run.toml --set fermion.0.kappa=0.05");
    assert!(number(&heavy["forces"][1]["rms"]) < number(&forces[1]["rms"]));
    let text = room.run("forces run.toml --backend cpu").stdout;
    assert!(text.contains("rms x kick") && text.contains("over mu = 0.3, "), "{text}");
}

#[test]
fn forces_of_rooted_quarks() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,4 --seed 3 --noise 0.4 -o cfg.ildg");
    let input = INPUT.split("[[fermion]]").next().unwrap().replace("steps = [3, 2]", "steps = 3");
    let quarks = "[[fermion]]\noperator = \"asqtad\"\nu0 = 0.9\nmass = [0.1, 0.3]\nflavours = [2, 1]\n";
    fs::write(room.path("run.toml"), format!("{input}{quarks}")).unwrap();
    let found = room.json("forces run.toml");
    let force = &found["forces"][1];
    assert!(number(&force["rms"]) > 0.0 && number(&force["iterations"]["heat_bath"]) > 0.0, "{force}");
    for (run, parts) in [
        ("forces run.toml none.ildg", &["none.ildg"][..]),
        ("forces none.toml", &["none.toml"]),
        ("forces run.toml --set gauge.bta=3", &["bta"]),
        ("forces run.toml --trajectory 0", &["--trajectory"]),
    ] {
        room.fails(2, &format!("{run} --backend cpu"), parts);
    }
    room.json("generate unit --lattice 4,4,4,6 -o other.ildg");
    room.fails(2, "forces run.toml other.ildg --backend cpu", &["other.ildg has links on 4×4×4×6", "4×4×4×4"]);
}

/// Each force is computed in the precision that docs/rhmc.md says: in double it is that of all keys in double to 14 digits, and in single it
/// is off by the rounding of single precision.
#[test]
fn forces_have_the_precision_of_their_keys() {
    let room = Room::new();
    let naive = "operator = \"naive\"\nmass = [0.4]\nflavours = [2]\n";
    let clover = "operator = \"clover\"\nkappa = 0.12\ncsw = 1.0\nflavours = 2\nstout-rho = 0.1\n";
    let one = "operator = \"wilson\"\nkappa = 0.12\nflavours = 1\naction-error = 1e-8\n";
    let double = ["gauge-force=double", "dynamics=double"];
    for (table, action) in [(naive, "wilson"), (clover, "iwasaki"), (one, "wilson")] {
        let input = format!(
            "lattice = [4, 4, 4, 4]\ntrajectories = 1\nseed = 5\nstart = \"hot\"\n[gauge]\naction = \"{action}\"\nbeta = 5.0\n\
             [trajectory]\nsteps = 2\n[[fermion]]\n{table}"
        );
        fs::write(room.path("run.toml"), input).unwrap();
        // One residual for all: forces in double are of the same solves.
        let forces = |sets: &[&str]| -> Vec<[f64; 2]> {
            let sets: String = sets.iter().map(|set| format!(" --set precision.{set}")).collect();
            let found = room.json(&format!("forces run.toml --set precision.dynamics-tol=1e-7{sets}"));
            let all = found["forces"].as_array().unwrap().iter();
            all.map(|one| ["rms", "max"].map(|key| number(&one[key]))).collect()
        };
        let exact = forces(&double);
        let off = |found: [f64; 2], exact: [f64; 2]| {
            found.iter().zip(exact).map(|(found, exact)| (found / exact - 1.0).abs()).fold(0.0, f64::max)
        };
        for (sets, gauge_is_single, quarks_are_single) in [
            (&[][..], true, true),
            (&["dynamics=double"], false, false),
            (&["gauge-force=double"], false, true),
            (&["dynamics=double", "gauge-force=single"], true, false),
            (&["preset=A", "links=double"], false, false),
            (&["preset=B", "links=double"], false, false),
            (&["preset=C", "links=double", "action-tol=1e-12"], false, false),
            (&["preset=F", "links=double"], true, true),
            (&["preset=F", "links=double", "gauge-force=double"], false, true),
        ] {
            for (part, (found, exact)) in forces(sets).into_iter().zip(&exact).enumerate() {
                // The determinant of a clover term is in double in any case.
                let is_single = if part == 0 { gauge_is_single } else { quarks_are_single && part == 1 };
                let off = off(found, *exact);
                let fits = if is_single { (1e-11..1e-5).contains(&off) } else { off <= 1e-14 };
                assert!(fits, "{table}{sets:?}: part {part} is off by {off:e}");
            }
        }
    }
}

/// A residual that double precision cannot reach is refused, or found out by the solver.
#[test]
fn residuals_below_rounding_end() {
    let room = Room::new();
    fs::write(
        room.path("run.toml"),
        INPUT.replace("\"cfg.ildg\"", "\"hot\"").replace("csw = 1.0", "csw = 1.2\nstout-rho = 0.1"),
    )
    .unwrap();
    let least = "of at least 1e-16";
    for key in ["precision.action-tol", "precision.dynamics-tol", "fermion.0.dynamics-tol"] {
        for tol in ["1e-17", "1e-300", "0"] {
            for command in ["check run.toml", "forces run.toml --backend cpu", "rhmc run.toml --out run --backend cpu"]
            {
                room.fails(2, &format!("{command} --set {key}={tol}"), &[key, least]);
            }
        }
    }
    room.fails(1, "forces run.toml --backend cpu --set precision.action-tol=1e-16", &["stagnation", "stays at"]);
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o weak.npy");
    let solve = "--mass 0.3 --backend cpu --tol";
    room.fails(2, &format!("solve --gauge weak.npy --source random:1 {solve} 1e-17 -o x.npy"), &["--tol", least]);
    room.fails(2, &format!("trace weak.npy --noise 1 {solve} 1e-17 -o t.jsonl"), &["tol", least]);
    room.fails(2, "eigenvalues weak.npy --mass 0.3 --tol 1e-17", &["--tol", "at least 1e-12"]);
    room.fails(2, "fix-gauge weak.npy -o f.npy --gauge landau --tol 1e-30", &["--tol", "at least 1e-28"]);
    room.fails(2, "rational --power -1/4 --interval 1e-6,6 --tol 1e-17", &["at least 1e-15"]);
}
