//! The program as users call it: results and their JSON keys, sentences and exit codes for whatever can be wrong, and
//! nothing half-written.
mod program;

use program::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

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
        "solve",
        "apply",
        "bench",
        "bench dslash",
        "bench accuracy",
        "bench model",
        "bench solver",
        "bench rhmc",
        "rhmc",
        "report",
        "spectrum",
        "measure",
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
    // The tadpole factor is not of the clover operator alone.
    let help = room.run("solve --help").stdout;
    let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    assert!(place("--u0 <U>") < place("Clover operator:") && help.contains("random:SEED,NUMBER"), "{help}");
    assert!(room.run("--version").stdout.starts_with("ferrite "));
}

#[test]
fn pages_and_completions() {
    let room = Room::new();
    room.json("man pages");
    for name in ["ferrite", "ferrite-solve", "ferrite-bench", "ferrite-bench-rhmc"] {
        let page = fs::read_to_string(room.path("pages").join(format!("{name}.1"))).unwrap();
        // Roff writes hyphens with a backslash.
        assert!(page.contains(".TH") && page.replace('\\', "").contains(name), "{name}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = room.run(&format!("completions {shell}")).stdout;
        assert!(script.contains("spectrum") && script.contains("ferrite"), "{shell}");
    }
    room.fails(2, "completions tcsh", &["tcsh"]);
    // `help` is as good as `--help`, and has no page of its own.
    assert!(!room.path("pages/ferrite-help.1").exists());
    for (words, flag) in [("help", "--help"), ("help solve", "solve --help"), ("help bench rhmc", "bench rhmc --help")]
    {
        let (help, same) = (room.run(words), room.run(flag));
        assert_eq!((help.code, help.stdout), (Some(0), same.stdout), "{words}");
    }
    room.fails(2, "help sovle", &["sovle"]);
}

#[test]
fn info_works_without_a_driver() {
    let room = Room::new();
    let info = room.json("info");
    assert_eq!(info["schema"], "ferrite.info/1");
    assert!(info["threads"].as_u64().unwrap() >= 1);
    assert!(info["kernels"].is_array() && info["devices"].is_array() && info["instructions"].is_string());
    assert!(room.run("info").stdout.contains("threads"));
}

#[test]
fn the_same_seed_gives_the_same_file() {
    let room = Room::new();
    for (name, threads) in [("a.npy", 1), ("b.npy", 2)] {
        room.json(&format!("generate random --lattice 4,4,4,8 --seed 3 --threads {threads} -o {name}"));
    }
    assert_eq!(fs::read(room.path("a.npy")).unwrap(), fs::read(room.path("b.npy")).unwrap());
    room.json("generate random --lattice 4,4,4,8 --seed 4 -o c.npy");
    assert_ne!(fs::read(room.path("a.npy")).unwrap(), fs::read(room.path("c.npy")).unwrap());
}

#[test]
fn plaquettes() {
    let room = Room::with_weak_field();
    let weak = room.json("plaquette weak.ildg");
    assert_eq!(weak["schema"], "ferrite.plaquette/1");
    let mean = weak["plaquette"]["mean"].as_f64().unwrap();
    let parts = weak["plaquette"]["spatial"].as_f64().unwrap() + weak["plaquette"]["temporal"].as_f64().unwrap();
    assert!((0.85..0.95).contains(&mean) && (mean - parts / 2.0).abs() < 1e-14, "{weak}");
    assert!(weak["unitarity_violation"].as_f64().unwrap() < 1e-13);
    // The host's own sum, when the file was verified, agrees with the device's.
    let verified = room.json("verify weak.ildg");
    assert!((verified["plaquette"]["mean"].as_f64().unwrap() - mean).abs() < 1e-13);
    assert_eq!(verified["checksum"]["status"], "verified");
    assert_eq!(verified["ok"], true);

    room.json("generate unit --lattice 2,4,6,8 -o unit.nersc");
    let unit = room.json("plaquette unit.nersc");
    assert_eq!((unit["plaquette"]["mean"].as_f64(), unit["link_trace"].as_f64()), (Some(1.0), Some(1.0)));
    assert!(room.run("plaquette unit.nersc --backend cpu").stdout.contains("2×4×6×8"));
}

#[test]
fn conversions_keep_the_links() {
    let room = Room::with_weak_field();
    let mean = |file: &str| room.json(&format!("plaquette {file}"))["plaquette"]["mean"].as_f64().unwrap();
    let original = mean("weak.ildg");
    for format in ["nersc", "nersc3x3", "scidac", "milc", "npy", "ildg"] {
        let report = room.json(&format!("convert weak.ildg copy.{format}"));
        assert_eq!(report["format"], format);
        // MILC stores single precision only, and the program chooses that.
        let tolerance = if format == "milc" { 1e-6 } else { 1e-13 };
        assert!((mean(&format!("copy.{format}")) - original).abs() < tolerance, "{format}");
        room.json(&format!("convert copy.{format} single.dat --format {format} --precision single"));
        assert!((mean("single.dat") - original).abs() < 1e-6, "{format} in single precision");
    }
    room.json("convert copy.npy back.ildg");
    room.json("convert back.ildg back.npy");
    assert_eq!(fs::read(room.path("copy.npy")).unwrap(), fs::read(room.path("back.npy")).unwrap());
    // Spinors.
    room.json("solve --gauge weak.ildg --mass 0.1 --source point:0,0,0,0,0,0 -o x.lime");
    room.json("convert x.lime x.npy");
    room.json("convert x.npy y.scidac");
    assert_eq!(room.json("verify y.scidac")["field"], "spinor");
    room.fails(2, "convert x.lime x.nersc", &["x.nersc", ".npy or .lime"]);
    room.fails(2, "convert x.lime x.dat --format nersc", &["x.lime holds a spinor field"]);
}

/// ‖b − M x‖ / ‖b‖ from files, M applied by another run of the program.
fn recheck(room: &Room, operator: &str, solution: &str, source: &str) -> f64 {
    room.json(&format!("apply --gauge weak.ildg {operator} --reconstruct 18 --source file:{solution} -o image.npy"));
    distance(&npy(&room.path("image.npy")), &npy(&room.path(source)))
}

#[test]
fn solutions_solve() {
    let room = Room::with_weak_field();
    for solver in ["bicgstab", "cg"] {
        for precision in ["double", "single", "half"] {
            let case = format!("{solver} in {precision}");
            let report = room.json(&format!(
                "solve --gauge weak.ildg --operator wilson --mass 0.1 --source random:1 --solver {solver} \
                 --precision {precision} --tol 1e-10 --save-source b.npy -o x.npy --plot {solver}.svg"
            ));
            assert_eq!(report["schema"], "ferrite.solve/1");
            assert_eq!(report["converged"], true, "{case}");
            let residual = report["true_residual"].as_f64().unwrap();
            assert!(residual <= 1e-10 && report["true_residuals"].as_array().unwrap().len() == 1, "{case}: {residual}");
            for key in ["seconds", "gflops", "iterations", "reductions", "reliable_updates", "mass", "kappa"] {
                assert!(report[key].as_f64().is_some_and(|x| x >= 0.0), "{case}: {key}");
            }
            assert_eq!((&report["backend"], &report["precision"]), (&"cpu".into(), &precision.into()));
            let iterations = report["iterations"].as_u64().unwrap() as usize;
            assert!(report["history"][0].as_array().unwrap().len() > iterations / 2);
            // The residual that was printed is the one of the files, up to rounding of the sums.
            let files = recheck(&room, "--mass 0.1", "x.npy", "b.npy");
            assert!(
                files <= 1e-10 && (files - residual).abs() < 1e-12,
                "{case}: {files} from files, {residual} printed"
            );
        }
        let plot = fs::read_to_string(room.path(&format!("{solver}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("4×4×4×8") && plot.contains("iteration"));
        assert!(plot.contains("<circle") && plot.contains("polyline"));
    }
    // κ for the mass, periodic in time, 18 and 8 reals: other flags, other solutions, but solutions.
    for (flags, operator) in [
        ("--reconstruct 18", "--kappa 0.12 --bc-time periodic"),
        ("--reconstruct 8 --precision single --delta 0.05", "--kappa 0.12"),
    ] {
        let source = "--source random:1 --save-source b.npy";
        room.json(&format!("solve --gauge weak.ildg {operator} {source} {flags} -o x.npy"));
        assert!(recheck(&room, operator, "x.npy", "b.npy") <= 1e-10, "{flags}");
        let other = if operator.contains("periodic") { "--kappa 0.12" } else { "--kappa 0.12 --bc-time periodic" };
        assert!(recheck(&room, other, "x.npy", "b.npy") > 1e-6, "the boundary condition matters");
    }
}

#[test]
fn ways_of_correction_and_guesses() {
    let room = Room::with_weak_field();
    let solve = |flags: &str| room.json(&format!("solve --gauge weak.ildg --mass 0.1 --source random:1 {flags}"));
    let first = solve("--solver cgne --save-source b.npy -o x.npy");
    assert_eq!((&first["solver"], &first["correction"]), (&"cgne".into(), &"reliable".into()));
    assert!(recheck(&room, "--mass 0.1", "x.npy", "b.npy") <= 1e-10);
    let block = solve("--sources 4 --solver block-cg --precision single --save-source bs.npy -o xs.npy");
    assert_eq!((&block["solver"], &block["batches"], &block["climbs"]), (&json!("block-cg"), &json!([4]), &json!([])));
    assert!(recheck(&room, "--mass 0.1", "xs.npy", "bs.npy") <= 1e-10);
    let defect = solve("--correction defect --inner-tol 0.05 --precision half -o y.npy");
    assert_eq!((&defect["correction"], &defect["precision"]), (&"defect".into(), &"half".into()));
    assert!(recheck(&room, "--mass 0.1", "y.npy", "b.npy") <= 1e-10);
    let single = solve("--outer single --precision half --tol 1e-5");
    assert_eq!((&single["outer"], &single["climbs"]), (&"single".into(), &serde_json::json!([])));
    // From its own answer there is nothing left to do.
    assert_eq!(solve("--guess y.npy")["iterations"], 0);
    // What single precision cannot reach the ladder can, and says so; without it the solve fails.
    let climbed = solve("--outer single --precision single");
    assert_eq!((&climbed["converged"], &climbed["outer"]), (&true.into(), &"double".into()));
    assert!(climbed["climbs"][0]["iterations"].as_u64().unwrap() > 0);
    let line = "solve --gauge weak.ildg --mass 0.1 --source random:1 --outer single --precision single";
    room.fails(1, &format!("{line} --no-ladder"), &["did not converge", "1e-10"]);
    for (flags, words) in [
        ("--outer single", "--precision single or half"),
        ("--outer half --precision half", "outer"),
        ("--delta 0.1 --correction defect", "belongs to --correction reliable"),
        ("--inner-tol 0.1", "belongs to --correction defect"),
        ("--inner-tol 2 --correction defect", "'2' is not a number above 0 and below 1"),
        ("--source random:2 --guess y.npy", "holds 1 fields, and there are 2 sources"),
        ("--guess nothing.npy", "nothing.npy"),
    ] {
        room.fails(2, &format!("solve --gauge weak.ildg --mass 0.1 --source random:1 {flags}"), &[words]);
    }
}

#[test]
fn clover_solutions_solve() {
    let room = Room::with_weak_field();
    let both = "--operator clover --csw 1.2 --u0 0.9 --mass 0.1";
    let anisotropic = "--operator clover --clover-r 0.91 --clover-t 1.07 --mass 0.1 --xi 2.464 --nu 0.95";
    for (operator, flags) in [
        (both, "--schur symmetric --precision half"),
        (both, "--schur asymmetric --solver cg --precision single --reconstruct 8"),
        (anisotropic, "--precision single"),
    ] {
        let line = format!("solve --gauge weak.ildg {operator} --source random:1 {flags} --save-source b.npy -o x.npy");
        let report = room.json(&line);
        assert_eq!((&report["operator"], &report["converged"]), (&"clover".into(), &true.into()));
        let clover = &report["clover"];
        assert_eq!(clover["schur"], if flags.contains("asymmetric") { "asymmetric" } else { "symmetric" });
        let number = |key: &str| clover[key].as_f64();
        if operator == both {
            assert_eq!((number("csw"), number("u0"), number("r"), number("t")), (Some(1.2), Some(0.9), None, None));
            assert!((number("space").unwrap() - 1.2 / 0.729).abs() < 1e-14 && clover["space"] == clover["time"]);
        } else {
            assert_eq!((number("csw"), number("r"), number("t")), (None, Some(0.91), Some(1.07)));
            assert_eq!((number("space"), number("time")), (Some(0.91 / 2.464), Some(1.07)));
        }
        let files = recheck(&room, operator, "x.npy", "b.npy");
        assert!(
            files <= 1e-10 && (files - report["true_residual"].as_f64().unwrap()).abs() < 1e-12,
            "{flags}: {files}"
        );
        assert!(recheck(&room, "--mass 0.1", "x.npy", "b.npy") > 1e-3, "the clover term matters");
    }
    assert!(room.json("solve --gauge weak.ildg --mass 0.3 --source random:1")["clover"].is_null());
    // Schur complements: their adjoints, and one that is the other times A.
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let apply = |source: &str, flags: &str| {
        let report = room.json(&format!("apply --gauge weak.ildg {both} --source {source} {flags} -o y.npy"));
        assert_eq!((&report["operator"], report["schur"].as_bool()), (&"clover".into(), Some(flags.contains("schur"))));
        npy(&room.path("y.npy"))
    };
    room.json("solve --gauge weak.ildg --mass 3 --source random:1 --save-source p.npy");
    let p = npy(&room.path("p.npy"));
    room.json("solve --gauge weak.ildg --mass 3 --source random:2 --save-source q.npy");
    let q = npy(&room.path("q.npy"));
    for schur in ["", "--schur", "--schur symmetric", "--schur asymmetric"] {
        let (left, right) =
            (dot(&p, &apply("random:2", schur)), dot(&apply("random:1", &format!("--dagger {schur}")), &q));
        assert!((left - right).abs() < 1e-9 * left.abs().max(1.0), "{schur}: {left} {right}");
    }
    assert_eq!(apply("random:1", "--schur"), apply("random:1", "--schur symmetric"));
    assert!(distance(&apply("random:1", "--schur asymmetric"), &apply("random:1", "--schur")) > 0.1);
    let refused = "apply --gauge weak.ildg --mass 0.1 --source random:1 --schur symmetric -o y.npy";
    room.fails(2, refused, &["--schur", "--operator clover"]);
    // In an input file, and the memory it takes.
    let write = |text: &str| fs::write(room.path("run.toml"), text).unwrap();
    let file = "gauge = 'weak.ildg'\nmass = 0.1\nsource = 'random:1'\n";
    write(file);
    let plain = room.json("check run.toml")["memory"]["needed_bytes"].as_u64().unwrap();
    write(&format!("{file}operator = 'clover'\ncsw = 1\nschur = 'asymmetric'\nprecision = 'half'\n"));
    let check = room.json("check run.toml --set precision=double");
    // 72 reals a site, for A and A⁻¹, and for a copy of both.
    let more = check["memory"]["needed_bytes"].as_u64().unwrap() - plain;
    assert!(more >= 2 * 2 * 72 * 8 * 512, "{more}");
    assert_eq!((&check["operator"], &check["clover"]["schur"]), (&"clover".into(), &"asymmetric".into()));
    assert!(room.run("check run.toml --backend cpu").stdout.contains("Wilson-clover operator"));
    assert_eq!(room.json("solve run.toml")["clover"]["csw"].as_f64(), Some(1.0));
    write(&format!("{file}operator = 'clover'\ncsw = 1\nclover-r = 1.0\n"));
    room.fails(2, "check run.toml", &["run.toml:5:7: csw: conflicts with run.toml:6:12: clover-r"]);
}

#[test]
fn several_right_hand_sides() {
    let room = Room::with_weak_field();
    let sources = "--source random:1 --source point:1,2,3,4,0,2 --source random:2";
    let report = room.json(&format!(
        "solve --gauge weak.ildg --mass 0.2 {sources} --save-source b.npy -o x.npy --plot x.svg --precision single"
    ));
    let residuals = report["true_residuals"].as_array().unwrap();
    assert_eq!(residuals.len(), 3);
    let worst = residuals.iter().map(|r| r.as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(report["true_residual"].as_f64(), Some(worst));
    assert_eq!(report["history"].as_array().unwrap().len(), 3);
    let header = fs::read(room.path("x.npy")).unwrap();
    assert!(String::from_utf8_lossy(&header[..128]).contains("(3, 8, 4, 4, 4, 4, 3)"));
    assert!(recheck(&room, "--mass 0.2", "x.npy", "b.npy") <= 1e-10);
    // Each by itself.
    let all = npy(&room.path("x.npy"));
    room.json("solve --gauge weak.ildg --mass 0.2 --source point:1,2,3,4,0,2 -o one.npy");
    let one = npy(&room.path("one.npy"));
    assert!(distance(&all[one.len()..2 * one.len()], &one) < 1e-9);
    // The sources read back from their file.
    room.json("solve --gauge weak.ildg --mass 0.2 --source file:b.npy -o again.npy --precision single");
    assert!(distance(&npy(&room.path("again.npy")), &all) < 1e-9);
    room.fails(2, &format!("solve --gauge weak.ildg --mass 0.2 {sources} -o x.lime"), &["--output", "x.lime", ".npy"]);
}

#[test]
fn where_the_time_of_a_solve_went() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --mass 0.3 --source random:1";
    for (operator, kernel) in [("wilson", "wilson_dslash_double_12"), ("staggered", "staggered_dslash_double_12")] {
        let solve = format!("{solve} --operator {operator}");
        let report = room.json(&format!("{solve} --profile"));
        let iterations = report["iterations"].as_u64().unwrap();
        let (kernels, whole) = (&report["kernels"], report["kernels"]["seconds"].as_f64().unwrap());
        let times = kernels["times"].as_array().unwrap();
        let hopping = times.iter().find(|time| time["name"] == kernel).unwrap_or_else(|| panic!("{times:?}"));
        assert!(hopping["launches"].as_u64().unwrap() >= iterations, "{hopping}");
        let sum: f64 = times.iter().map(|time| time["seconds"].as_f64().unwrap()).sum();
        assert!(whole > 0.0 && (sum - whole).abs() < 1e-9 * whole, "{kernels}");
        // Launches on the CPU run one after the other.
        assert!(kernels["share"].as_f64().is_some_and(|share| share > 0.0 && share <= 1.0), "{kernels}");
        assert_eq!(room.json(&solve)["kernels"], Value::Null);
        let text = room.run(&format!("{solve} --profile --backend cpu")).stdout;
        for needed in ["s in kernels, ", "launches", kernel] {
            assert!(text.contains(needed), "{needed}: {text}");
        }
    }
}

#[test]
fn all_components_of_a_point() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --mass 0.3 --precision single";
    let all = format!("{solve} --source point:1,2,3,4 --sources 12");
    let report = room.json(&format!("{all} -o x.npy --save-source b.npy --plot x.svg"));
    assert_eq!((&report["batches"], &report["batches_limited_by"]), (&json!([12]), &Value::Null));
    assert_eq!(report["sources"].as_array().unwrap().len(), 12);
    assert_eq!(report["sources"][5], "point:1,2,3,4,1,2");
    assert_eq!(report["iterations_per_source"].as_array().unwrap().len(), 12);
    assert!(report["true_residuals"].as_array().unwrap().iter().all(|r| r.as_f64() <= Some(1e-10)));
    assert!(recheck(&room, "--mass 0.3", "x.npy", "b.npy") <= 1e-10);
    // Each as by itself.
    let whole = npy(&room.path("x.npy"));
    for (number, component) in [(0, "0,0"), (5, "1,2"), (11, "3,2")] {
        room.json(&format!("{solve} --source point:1,2,3,4,{component} -o one.npy"));
        let one = npy(&room.path("one.npy"));
        assert!(distance(&whole[number * one.len()..(number + 1) * one.len()], &one) < 1e-9, "{component}");
    }
    // In batches of any size.
    let report = room.json(&format!("{all} --batch 5 -o y.npy --plot y.svg"));
    assert_eq!((&report["batches"], &report["batches_limited_by"]), (&json!([5, 5, 2]), &json!("asked")));
    assert_eq!(report["history"].as_array().unwrap().len(), 12);
    assert!(distance(&npy(&room.path("y.npy")), &whole) < 1e-9);
    // With the clover term, defect correction, guesses, and an odd number of noise vectors.
    let noise = format!("{solve} --operator clover --csw 1 --correction defect --source random:3 --sources 5");
    let report = room.json(&format!("{noise} -o n.npy --plot n.svg"));
    assert_eq!((&report["batches"], &report["batches_limited_by"]), (&json!([3, 2]), &json!("size")));
    assert_eq!(report["sources"], json!(["random:3", "random:3,1", "random:3,2", "random:3,3", "random:3,4"]));
    let vectors = npy(&room.path("n.npy"));
    let length = vectors.len() / 5;
    for (number, source) in [(0, "random:3"), (4, "random:3,4")] {
        room.json(&format!("{solve} --operator clover --csw 1 --source {source} -o one.npy"));
        assert!(distance(&vectors[number * length..(number + 1) * length], &npy(&room.path("one.npy"))) < 1e-9);
    }
    assert!(distance(&vectors[..length], &vectors[length..2 * length]) > 0.5);
    let again = room.json(&format!("{noise} --guess n.npy --batch 2"));
    assert_eq!(again["batches"], json!([2, 2, 1]));
    // Guesses are those of the batch, in other batches than before.
    assert!(again["iterations"].as_u64().unwrap() < report["iterations"].as_u64().unwrap() / 2, "{again}");
    // No batch converges, and all right-hand sides are told.
    let few = room.run(&format!("{all} --batch 4 --max-iterations 2 -o f.npy --json --backend cpu"));
    assert_eq!((few.code, object(&few)["true_residuals"].as_array().unwrap().len()), (Some(1), 12), "{}", few.stderr);
    assert!(!room.path("f.npy").exists());
}

#[test]
fn batches_are_as_large_as_memory_allows() {
    let room = Room::with_weak_field();
    fs::write(room.path("run.toml"), "gauge = 'weak.ildg'\nmass = 0.3\nsource = 'point:0,0,0,0'\nsources = 12\n")
        .unwrap();
    let needed = |batch: usize| {
        let check = room.json(&format!("check run.toml --set batch={batch}"));
        assert_eq!(check["batches"][0].as_u64(), Some(batch as u64));
        check["memory"]["needed_bytes"].as_u64().unwrap()
    };
    let (twelve, six, one) = (needed(12), needed(6), needed(1));
    assert!(one < six && six < twelve);
    let reference = room.json("solve run.toml -o x.npy");
    assert_eq!(reference["batches"], json!([12]));
    let less = |bytes: u64, expected: Value, because: &str| {
        let report = room.json(&format!("solve run.toml --memory {} -o y.npy", bytes - 1));
        assert_eq!((&report["batches"], &report["batches_limited_by"]), (&expected, &json!(because)), "{bytes}");
        assert!(distance(&npy(&room.path("y.npy")), &npy(&room.path("x.npy"))) < 1e-9);
    };
    less(twelve, json!([6, 6]), "memory");
    less(six, json!([4, 4, 4]), "memory");
    let run = room.run(&format!("solve run.toml --backend cpu --memory {}", twelve - 1));
    assert!(run.stdout.contains("12 right-hand sides in batches of 6: memory"), "{}", run.stdout);
    assert!(run.stderr.contains("12 right-hand sides in batches of 6: memory"), "{}", run.stderr);
    assert!(run.stdout.contains("  point:0,0,0,0,3,2: "), "{}", run.stdout);
    let check = room.json(&format!("check run.toml --memory {}", twelve - 1));
    assert_eq!((&check["batches"], &check["ok"]), (&json!([6, 6]), &json!(true)));
    // What was asked for is not made smaller.
    let asked = format!("solve run.toml --backend cpu --batch 12 --memory {}", twelve - 1);
    room.fails(2, &asked, &["with 12 right-hand sides needs", "batches of 8 fit"]);
    let little = format!("solve run.toml --backend cpu --memory {}", one - 1);
    room.fails(2, &little, &["with 1 right-hand side needs", "links in double"]);
    for (flags, part) in [
        ("--sources 13", "a point has 12 components"),
        ("--sources 0", "1 to 4096"),
        ("--sources 2 --source random:1 --source random:2", "give one source with it"),
        ("--batch 65", "1 to 64"),
        ("--batch none", "--batch"),
        ("--memory 20GB", "20GiB"),
    ] {
        room.fails(2, &format!("solve run.toml {flags}"), &[part]);
    }
    room.fails(
        2,
        "solve --gauge weak.ildg --mass 0 --source point:0,0,0,0",
        &["with --sources 12 point:x,y,z,t will do"],
    );
    let many = "apply --gauge weak.ildg --mass 0.1 --source random:1 --sources 65 -o a.npy";
    room.fails(2, many, &["65 sources", "at most 64"]);
}

#[test]
fn operators_are_adjoint() {
    let room = Room::with_weak_field();
    let apply = |source: &str, flags: &str, out: &str| {
        let line = format!("apply --gauge weak.ildg --mass 0.3 --source {source} {flags} -o {out}");
        assert_eq!(room.json(&line)["schema"], "ferrite.apply/1");
        npy(&room.path(out))
    };
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    for schur in ["", "--schur"] {
        // The sources themselves, as files.
        room.json("solve --gauge weak.ildg --mass 3 --source random:1 --save-source p.npy");
        room.json("solve --gauge weak.ildg --mass 3 --source random:2 --save-source q.npy");
        let (p, q) = (npy(&room.path("p.npy")), npy(&room.path("q.npy")));
        let (mq, mp) = (apply("random:2", schur, "a.npy"), apply("random:1", &format!("{schur} --dagger"), "b.npy"));
        let (left, right) = (dot(&p, &mq), dot(&mp, &q));
        assert!((left - right).abs() < 1e-9 * left.abs().max(1.0), "{left} {right}");
        // M^+ M is one after the other, but for roundings where the spin basis is changed for the file and back.
        let twice = apply("file:a.npy", &format!("{schur} --dagger"), "c.npy");
        let off = distance(&apply("random:2", &format!("{schur} --normal"), "d.npy"), &twice);
        assert!(off < 4.0 * f64::EPSILON, "{schur}: {off:.1e}");
        assert!(distance(&twice, &mq) > 0.1);
        let single = apply("random:2", &format!("{schur} --precision single"), "c.npy");
        assert!((1e-9..1e-5).contains(&distance(&single, &mq)));
    }
}

#[test]
fn an_unconverged_solve_is_a_failure() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --mass 0.1 --source random:1 --max-iterations 5 -o x.npy --backend cpu";
    room.fails(1, solve, &["did not converge", "|b - Mx| / |b| = ", "x.npy was not written", "--keep-unconverged"]);
    assert_eq!(room.files(), ["weak.ildg"]);
    let run = room.fails(1, &format!("{solve} --json --keep-unconverged --plot c.svg"), &["best iterate is in x.npy"]);
    let report = object(&run);
    assert_eq!((&report["converged"], &report["output"]), (&Value::Bool(false), &"x.npy".into()));
    assert_eq!(room.files(), ["c.svg", "weak.ildg", "x.npy"]);
    // What was written is what was reported.
    room.json("solve --gauge weak.ildg --mass 0.1 --source random:1 --save-source b.npy");
    let files = recheck(&room, "--mass 0.1", "x.npy", "b.npy");
    assert!((files - report["true_residual"].as_f64().unwrap()).abs() < 1e-12);
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
    room.fails(2, "bench dslash --operator stagered", &["--operator 'stagered'", "clover, staggered, asqtad, all"]);
    room.fails(2, "bench dslash --operator asqtad --reconstruct 12t", &["12t", "Wilson"]);
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
    room.fails(2, "bench solver --table 7", &["--table 7", "3, 4 and 5"]);
    room.fails(2, "bench solver --tol 2", &["--tol"]);
    room.fails(2, "bench accuracy --plot picture.png", &["picture.png", ".svg"]);
    room.fails(2, "bench blas --nrhs 1000", &["--nrhs 1000", "64"]);
    room.fails(2, "bench dslash --lattice 256,256,256,64 --backend cpu", &["needs", "GiB", "links", "free"]);
}

#[test]
fn every_flag_of_a_solve_is_a_key_of_its_input() {
    let room = Room::new();
    let help = room.run("solve --help").stdout;
    let flags = help.lines().filter_map(|line| line.trim_start().split("--").nth(1));
    let keys: Vec<_> = flags.filter_map(|rest| rest.split([' ', '=', '[', ',', '.']).next()).collect();
    assert!(keys.contains(&"domain-overlap") && keys.contains(&"threads") && keys.len() > 40, "{keys:?}");
    for key in keys {
        // These say where keys come from, and how to talk.
        if !matches!(key, "set" | "json" | "help" | "quiet" | "verbose") {
            let run = room.run(&format!("solve --set {key}=1"));
            assert!(!run.stderr.contains("unknown key"), "{key}: {}", run.stderr);
        }
    }
    assert!(room.run("solve --set domain-overlapp=2").stderr.contains("did you mean 'domain-overlap'"));
}

#[test]
fn tuning() {
    let room = Room::new();
    let tune = "tune --lattice 4,4,4,4";
    // A CPU has nothing to tune: one sentence, and no file.
    let run = room.run(&format!("{tune} --backend cpu"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("nothing to tune on a CPU") && run.stdout.lines().count() == 1, "{}", run.stdout);
    let report = room.json(tune);
    assert_eq!((&report["schema"], &report["launches"]), (&"ferrite.tune/2".into(), &serde_json::json!([])));
    assert!(room.files().is_empty());
    room.fails(2, "tune --tuning off", &["--tuning off"]);
    room.fails(2, "tune --operator stagered", &["--operator 'stagered'", "clover, staggered, asqtad, all"]);
    room.fails(2, "tune --nrhs 1,1000", &["--nrhs 1000", "64"]);
    room.fails(2, "tune --reconstruct 10", &["--reconstruct '10'", "18, 12, 8"]);
    room.fails(2, "info --tuning sideways", &["--tuning", "on, off"]);

    // `info` names the file. One that cannot be understood is told of, and stops nothing.
    let cache = room.path("tune.json");
    let info = room.json("info");
    assert_eq!(info["tuning"]["cache"], cache.to_str().unwrap());
    assert_eq!(info["tuning"]["launches"], 0);
    fs::write(&cache, "{").unwrap();
    let info = room.json("info");
    assert!(info["tuning"]["launches"].is_null() && info["tuning"]["error"].is_string());
    assert!(room.run("info").stdout.contains("is not a whole tune cache"));
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
            .is_some_and(|shape| shape.parse::<ferrite::tune::Shape>().is_ok_and(|s| s.block() % 32 == 0))),
        "{report}"
    );
    let again = object(&room.run(&format!("{tune} --json")));
    assert!(again["launches"].as_array().unwrap().iter().all(|l| l["measured_now"] == false), "{again}");
    assert_eq!(room.json("info")["tuning"]["launches"], launches.len());
    let bench = "bench dslash --lattice 4,4,4,4 --precision half --reconstruct 12 --backend cuda --json";
    let bench = object(&room.run(bench));
    assert!(bench["launches"].as_array().unwrap().iter().any(|l| l["kernel"] == "wilson_dslash_half_12"), "{bench}");
}

#[test]
fn usage_mistakes() {
    let room = Room::with_weak_field();
    let none = room.run("");
    assert!(none.code == Some(2) && none.stderr.contains("Usage:"), "{}", none.stderr);
    room.fails(2, "solv", &["solve"]);
    for flag in ["--flow-step 0.1", "--flow-action symanzik", "--flow-every 2"] {
        let name = flag.split(' ').next().unwrap();
        room.fails(2, &format!("measure weak.ildg {flag}"), &[name, "belongs to --flow: give --flow T"]);
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
    room.fails(2, &format!("{generate} --lattice 4096,4096,4096,4096"), &["2³¹ sites"]);
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
        ("--kappa 0", "above 0"),
        ("--mass 0 --tol 0", "--tol"),
        ("--mass 0 --delta 1", "--delta"),
        ("--mass 0 --max-iterations 0", "--max-iterations"),
        ("--mass 0 --operator clovr", "did you mean 'clover'?"),
        ("--mass 0 --operator clover", "--csw C, or --clover-r CR with --clover-t CT"),
        ("--mass 0 --operator clover --csw one", "--csw"),
        ("--mass 0 --operator clover --csw 1 --u0 0", "above 0"),
        ("--mass 0 --operator clover --csw 1 --clover-t 1", "conflicts with --clover-t"),
        ("--mass 0 --operator clover --csw 1 --xi 2", "clover-r and clover-t"),
        ("--mass 0 --operator clover --clover-r 1", "needs clover-t"),
        ("--mass 0 --operator clover --clover-r 1 --clover-t 1 --u0 0.9", "belongs to csw"),
        ("--mass 0 --operator clover --csw 1 --schur odd", "symmetric, asymmetric"),
        ("--mass 0 --csw 1", "--operator clover"),
        ("--mass 0 --operator wilson --schur symmetric", "--operator clover"),
        ("--mass 0 --solver gmres", "bicgstab, cg"),
        ("--mass 0 --reconstruct 9", "18, 12, 8"),
        ("--mass 0 --bc-time open", "antiperiodic, periodic"),
        ("--mass 0 -o x.dat", ".npy or .lime"),
        ("--mass 0 -o x.npy --save-source x.npy", "different files"),
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

/// Reports could not tell it: that is said before there is work that would be lost.
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
fn files_that_are_not_right() {
    let room = Room::with_weak_field();
    let write = |name: &str, bytes: &[u8]| fs::write(room.path(name), bytes).unwrap();
    for format in ["ildg", "nersc", "milc", "npy"] {
        room.json(&format!("convert weak.ildg good.{format}"));
        let good = fs::read(room.path(&format!("good.{format}"))).unwrap();
        write("bad", &good[..good.len() - 1000]);
        room.fails(2, "plaquette bad", &["bad: ", "cut short"]);
        room.fails(1, "verify bad", &["bad: ", "cut short"]);
        write("bad", &good[..7]);
        room.fails(2, "plaquette bad", &["bad: "]);
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 0x10;
        write("bad", &bad);
        room.fails(2, "plaquette bad", &["bad: ", "corrupt"]);
        room.fails(2, "solve --gauge bad --mass 0 --source random:1", &["bad: ", "corrupt"]);
        let report = object(&room.fails(1, "verify bad --json", &["bad: "]));
        assert_eq!((&report["schema"], &report["ok"]), (&"ferrite.verify/1".into(), &Value::Bool(false)));
        bad = good.clone();
        bad[0] ^= 0xff;
        write("bad", &bad);
        room.fails(2, "plaquette bad", &["bad: starts with the bytes"]);
        bad = good.clone();
        bad.extend([0; 64]);
        write("bad", &bad);
        if format != "ildg" {
            room.fails(2, "plaquette bad", &["bad: ", "64 bytes follow"]);
        }
    }
    write("bad", b"");
    room.fails(2, "plaquette bad", &["bad: "]);
    room.fails(2, "plaquette absent", &["absent: cannot open"]);
    room.fails(2, "verify absent", &["absent: cannot open"]);
    room.fails(2, "plaquette .", &[".: "]);
    room.fails(2, "plaquette weak.ildg --lattice 8,8,8,8", &["[8, 8, 8, 8]", "[4, 4, 4, 8]"]);
    // Numbers that are none, and links that are not unitary, in a file without checksum.
    let good = fs::read(room.path("good.npy")).unwrap();
    let big_endian = String::from_utf8_lossy(&good[..80]).contains(">c16");
    let bytes = |x: f64| if big_endian { x.to_be_bytes() } else { x.to_le_bytes() };
    for (x, part) in [(f64::NAN, "not finite"), (f64::INFINITY, "not finite"), (1e300, "SU(3)"), (1.5, "SU(3)")] {
        let mut bad = good.clone();
        let at = bad.len() - 16;
        bad[at..at + 8].copy_from_slice(&bytes(x));
        write("bad.npy", &bad);
        room.fails(2, "plaquette bad.npy", &["bad.npy: link U_t at site (x, y, z, t) = [3, 3, 3, 7]", part]);
    }
    // Slightly off: recon 12 asked for is refused, by default 18 is chosen, and --reunitarise mends.
    let mut bad = good.clone();
    let at = bad.len() - 16;
    let old = if big_endian {
        f64::from_be_bytes(bad[at..at + 8].try_into().unwrap())
    } else {
        f64::from_le_bytes(bad[at..at + 8].try_into().unwrap())
    };
    bad[at..at + 8].copy_from_slice(&bytes(old + 1e-7));
    write("off.npy", &bad);
    let solve = "solve --gauge off.npy --mass 0.1 --source random:1 --backend cpu";
    room.fails(2, &format!("{solve} --reconstruct 12"), &["off.npy", "off SU(3)", "--reconstruct 18"]);
    assert_eq!(room.json(&solve.replace(" --backend cpu", ""))["reconstruct"], "18");
    assert_eq!(room.json("solve --gauge off.npy --mass 0.1 --source random:1 --reunitarise")["reconstruct"], "12");
    // Spinor files.
    room.json("solve --gauge weak.ildg --mass 0.1 --source random:1 --source random:2 --save-source b.npy");
    let block = fs::read(room.path("b.npy")).unwrap();
    write("cut.npy", &block[..block.len() - 8]);
    room.fails(2, "solve --gauge weak.ildg --mass 0.1 --source file:cut.npy", &["cut.npy", "cut short"]);
    room.json("generate unit --lattice 4,4,4,4 -o unit.ildg");
    room.fails(2, "solve --gauge unit.ildg --mass 0.1 --source file:b.npy", &["b.npy", "4×4×4×8", "4×4×4×4"]);
}

#[test]
fn reference_files_are_refused_with_a_reason() {
    let Some(folder) = ferrite_tests::refdata::folder() else { return };
    let file = folder.join("configs/lat.sample.5p7");
    let room = Room::new();
    room.fails(2, &format!("plaquette {}", file.display()), &["lat.sample.5p7: ", "checksum", "--no-verify"]);
    room.fails(1, &format!("verify {}", file.display()), &["checksum"]);
    let plaquette = room.json(&format!("plaquette {}", folder.join("configs/lat.sample.l4444").display()));
    assert!(plaquette["plaquette"]["mean"].as_f64().unwrap() > 0.0);
}

#[test]
fn nothing_is_half_written() {
    let room = Room::with_weak_field();
    let device = Path::new("/dev/full");
    if device.exists() {
        room.fails(2, "generate unit --lattice 4,4,4,4 -o /dev/full --json", &["/dev/full"]);
        assert!(!device.is_file(), "the device is still one");
        let full = fs::OpenOptions::new().write(true).open(device).unwrap();
        let run: Run = room.command("plaquette weak.ildg --backend cpu").stdout(full).output().unwrap().into();
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains("standard output"));
    }
    // A full disk: files of this process may have 64 KiB at most.
    #[cfg(unix)]
    for line in [
        "generate unit --lattice 8,8,8,8 -o weak.ildg",
        "convert weak.ildg big.npy",
        "solve --gauge weak.ildg --mass 0.1 --source random:1 -o x.npy --backend cpu",
        "solve --gauge weak.ildg --mass 0.1 --source random:1 --save-source x.lime --backend cpu",
        "apply --gauge weak.ildg --mass 0.1 --source random:1 --source random:2 -o x.npy --backend cpu",
    ] {
        let before = fs::read(room.path("weak.ildg")).unwrap();
        let script = format!("trap '' XFSZ; ulimit -f 64; exec {} {line}", ferrite().display());
        let run: Run = Command::new("sh").args(["-c", &script]).current_dir(room.0.path()).output().unwrap().into();
        assert_eq!(run.code, Some(1), "{line}: {}", run.stderr);
        let told = ["cannot write", "cannot make room"].iter().any(|what| run.stderr.contains(what));
        assert!(told, "{line}: {}", run.stderr);
        assert_eq!(room.files(), ["weak.ildg"], "{line}");
        assert!(fs::read(room.path("weak.ildg")).unwrap() == before, "{line}");
    }
    // A folder that cannot be written; root may write everywhere.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let folder = room.path("closed");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
        if fs::write(folder.join("probe"), "").is_err() {
            room.fails(2, "convert weak.ildg closed/a.npy", &["closed/a.npy cannot be written"]);
        } else {
            eprintln!("skipped: this user may write everywhere");
        }
    }
    room.fails(2, "convert weak.ildg weak.ildg/a.npy", &["weak.ildg/a.npy"]);
}

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

/// A configuration of which there is no more than the header: `check` reads no more.
fn large(room: &Room, extent: usize, time: usize) -> bool {
    let text = format!(
        "{{'descr': '<c16', 'fortran_order': False, 'shape': ({time}, {extent}, {extent}, {extent}, 4, 3, 3), }}"
    );
    let mut start = [b"\x93NUMPY\x01\x00".as_slice(), &118u16.to_le_bytes(), text.as_bytes()].concat();
    start.resize(128, b' ');
    fs::write(room.path("large.npy"), start).unwrap();
    let file = fs::OpenOptions::new().write(true).open(room.path("large.npy")).unwrap();
    file.set_len((128 + time * extent.pow(3) * 576) as u64).is_ok()
}

#[test]
fn how_many_processes_are_enough() {
    let room = Room::new();
    if !large(&room, 32, 64) {
        eprintln!("skipped: the file system has no sparse files");
        return;
    }
    fs::write(room.path("run.toml"), "gauge = 'large.npy'\nmass = 0.1\nsource = 'random:1'\nprecision = 'half'\n")
        .unwrap();
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
    assert!(plenty.contains("one such machine would be enough"), "{plenty}");
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
fn times_are_foretold_of_any_lattice() {
    let room = Room::new();
    if !large(&room, 50, 100) {
        eprintln!("skipped: the file system has no sparse files");
        return;
    }
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
    assert!(room.run("check run.toml").stdout.contains("in all, of"));
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
    assert!(text.contains("4 processes in the grid 1×1×2×2, each with 4×4×2×4\nmemory of each on "), "{text}");
    // How many devices it takes, and how long.
    assert_eq!((&check["processes_needed"], &check["time"]), (&json!(1), &Value::Null));
    for operator in ["wilson", "clover --set csw=1", "staggered", "asqtad", "hisq"] {
        let time =
            &room.json(&format!("check run.toml --time --set source=random:1 --set operator={operator}"))["time"];
        assert_eq!((&time["timed_on"], &time["right_hand_sides"]), (&json!([4, 4, 4, 8]), &json!(1)), "{time}");
        assert!(time["seconds_per_iteration"].as_f64().unwrap() > 0.0);
    }
    let text = room.run("check run.toml --backend cpu --time").stdout;
    assert!(
        text.contains("one such machine is enough") && text.contains("time of an iteration for 2 right-hand"),
        "{text}"
    );
    // Lists as in a file, or with commas alone.
    let same = room.json("check run.toml --set grid=[1,1,1,4]");
    assert_eq!((&same["layout"], needed(&same)), (&cut["layout"], needed(&cut)));
    let two = r#"check run.toml --set source=["point:0,0,0,0,0,0","random:1"] --set source=random:2"#;
    assert_eq!(room.json(two)["sources"], 3);
    room.fails(2, "check run.toml --set grid=[1,1,1", &["--set grid: '[1,1,1' is not of the form X,Y,Z,T"]);
    for (flags, why) in [
        ("--grid 1,1,1,3", "extent 8 along t cannot be cut into 3 equal parts"),
        ("--grid 1,1,1,0", "no processes along t"),
        ("--grid 1,1,1,0 --processes 2", "1×1×1×2"),
        ("--grid 1,1,1,2 --processes 4", "the process grid 1×1×1×2 has 2 processes, but the run has 4"),
        ("--processes 3", "cannot be cut among 3 processes"),
        ("--processes 0", "--processes"),
        ("--processes 4 --set operator=asqtad --set source=random:1", "at least 3"),
        (
            "--processes 4 --set solver=gcr-dd --set domain=4,4,4,4",
            "divide those of the part of the lattice that a process has",
        ),
    ] {
        room.fails(2, &format!("check run.toml {flags}"), &[why]);
    }
    // A log begins with what runs.
    let log = room.run("solve run.toml --set tol=1e-6 --precision single --backend cpu --threads 1").stderr;
    let head: Vec<&str> = log.lines().collect();
    assert!(head[0].starts_with(concat!("note: ferrite ", env!("CARGO_PKG_VERSION"))), "{log}");
    assert!(head[0].contains("features: ") && head[0].ends_with(" UTC"), "{log}");
    let command = "solve run.toml --set tol=1e-6 --precision single --backend cpu --threads 1";
    assert_eq!(head[1], format!("note: command: ferrite {command}"));
    for line in ["tol = 1e-6 (--set)", "mass = 0.1 (run.toml:2:8)", "precision = single (flag)"] {
        assert!(head.contains(&format!("note: input: {line}").as_str()), "{line} is not in: {log}");
    }
    assert!(head.iter().any(|line| line.starts_with("note: rank 0 on ") && line.contains("CPU, 1 thread")), "{log}");
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
        "run.toml:3:9: kappa: '0' is not a number above 0",
        "run.toml:5:32: source: 'rnd:1'",
        "run.toml:6:13: precision: 'hlaf' is none of double, single, half, fp16; did you mean 'half'?",
        "run.toml:7:18: max-iterations: expected a whole number",
        "run.toml:8:9: gauge: absent.ildg: cannot open",
        "run.toml:9:20: keep-unconverged: expected true or false",
        "run.toml:10:11: threads: '0' is not",
    ];
    let found: Vec<_> = places.iter().map(|place| run.stderr.find(place)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?}\n{}", run.stderr);
    // Numbers to another base would be read as decimal ones.
    write("gauge = \"weak.ildg\"\nmass = 0.1\nsource = \"random:1\"\ngrid = [0x1, 1, 1, 1]\n");
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

#[test]
fn a_gpu_that_is_not_there() {
    let room = Room::with_weak_field();
    let info = room.json("info");
    let devices = info["devices"].as_array().unwrap().len();
    let has_feature = info["features"].as_array().unwrap().contains(&"cuda".into());
    if devices > 0 {
        room.fails(2, "plaquette weak.ildg --device 1000", &["no GPU number 1000", "--device"]);
        return;
    }
    let part = if has_feature { "no GPU can be used" } else { "built without CUDA" };
    room.fails(2, "plaquette weak.ildg --backend cuda", &[part, "--backend cpu"]);
    room.fails(2, "plaquette weak.ildg --device 0", &[part]);
    let run = room.run("plaquette weak.ildg");
    assert_eq!(run.code, Some(0));
    assert!(!has_feature || run.stderr.contains("note: ") && run.stderr.contains("going on with the CPU"));
    assert_eq!(room.run("plaquette weak.ildg -q").stderr, "");
}

#[test]
fn formats_are_as_exact_as_their_precision() {
    let room = Room::new();
    let report = room.json("bench accuracy --lattice 4,4,4,8 --plot accuracy.svg");
    assert_eq!(report["schema"], "ferrite.accuracy/1");
    let tolerances = report["tolerances"].as_array().unwrap();
    for row in report["rows"].as_array().unwrap() {
        let share: Vec<f64> = row["share"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
        assert_eq!(share.len(), tolerances.len());
        assert!(share.windows(2).all(|pair| pair[0] >= pair[1]) && share.last() == Some(&0.0), "{row}");
        let exact = row["precision"] == "double" && row["reconstruct"] == "18";
        // Components are sums of some hundred products of numbers of size one.
        let (smallest, largest) = match row["precision"].as_str().unwrap() {
            "double" => (1e-17, 1e-13),
            "single" => (1e-9, 1e-4),
            _ => (1e-6, 1e-1),
        };
        let (mean, worst) = (row["mean"].as_f64().unwrap(), row["largest"].as_f64().unwrap());
        assert!(exact && worst == 0.0 || mean > smallest && worst < largest, "{row}");
    }
    let plot = fs::read_to_string(room.path("accuracy.svg")).unwrap();
    assert!(plot.contains("half 8") && plot.contains("polyline"));
}

#[test]
fn the_study_of_mixed_precision() {
    let room = Room::new();
    let report = room.json(
        "bench solver --paper 001 --lattice 4,4,4,8 --sweeps 20 --sources 2 --masses=-0.2,0.1 --table 3,5 --plot s.svg",
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

#[test]
#[cfg(unix)]
fn ctrl_c_ends_a_solve_cleanly() {
    let room = Room::new();
    // A source on a rough field at a heavy hopping parameter: tens of thousands of iterations.
    room.json("generate random --lattice 8,8,8,8 --seed 3 -o rough.npy");
    let line = "solve --gauge rough.npy --kappa 0.25 --source random:1 --solver cg --tol 1e-14 --max-iterations 1000000 \
                --threads 1 --backend cpu --json -o x.npy";
    let child = room.command(line).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn();
    let child = child.unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let killed = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(killed.success());
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(run.stderr.contains("cancelled after") && run.stderr.contains("x.npy was not written"), "{}", run.stderr);
    assert_eq!(object(&run)["converged"], false);
    assert_eq!(room.files(), ["rough.npy"]);
}

#[test]
fn quenched_chains_go_on_where_they_stopped() {
    let room = Room::new();
    let chain = "generate quenched --lattice 4,4,4,4 --beta 5.9 --overrelax 2 --seed 3";
    let whole = room.json(&format!("{chain} --thermalise 2 --sweeps 6 --every 3 -o q.ildg"));
    assert_eq!(whole["files"], serde_json::json!(["q.000005.ildg", "q.000008.ildg"]));
    assert_eq!(whole["quenched"]["last_sweep"], 8);
    assert!(whole["plaquette"]["error"].as_f64().is_some_and(|error| error > 0.0), "{whole}");
    // The last sweep is kept, whatever the steps are.
    for (sweeps, every, files) in [(3, 2, vec!["e.000002.ildg", "e.000003.ildg"]), (1, 9, vec!["e.000001.ildg"])] {
        let made = room.json(&format!("{chain} --sweeps {sweeps} --every {every} -o e.ildg"));
        assert_eq!(made["files"], serde_json::json!(files));
        assert!(files.iter().all(|file| room.path(file).is_file()));
    }
    let rest = room.json(&format!("{chain} --start q.000005.ildg --first-sweep 5 --sweeps 3 -o r.ildg"));
    assert_eq!(rest["plaquette"]["mean"], whole["plaquette"]["mean"]);
    // Files of ILDG know when they were written.
    let [rest, whole_again] = ["r", "q.000008"].map(|name| {
        room.json(&format!("convert {name}.ildg {name}.npy"));
        fs::read(room.path(&format!("{name}.npy"))).unwrap()
    });
    assert!(rest == whole_again);
    let other = room.json(&format!("{chain} --start q.000005.ildg --sweeps 3 -o s.ildg"));
    assert_ne!(other["plaquette"]["mean"], whole["plaquette"]["mean"]);
    assert!(room.json("plaquette r.ildg")["unitarity_violation"].as_f64().unwrap() < 1e-14);
    room.fails(2, "generate unit --lattice 4,4,4,4 --beta 6 -o u.ildg", &["--beta", "quenched"]);
    room.fails(2, "generate quenched --lattice 4,4,4,4 --seed 1 -o u.ildg", &["--beta", "--sweeps"]);
    room.fails(2, &format!("{chain} --sweeps 2 --every 0 -o u.ildg"), &["--every"]);
    room.fails(2, "generate quenched --lattice 4,4,4,4 --seed 1 --sweeps 2 --beta -1 -o u.ildg", &["--beta"]);
    room.fails(2, &format!("{chain} --sweeps 2 --start hot --first-sweep 3 -o u.ildg"), &["--first-sweep"]);
    room.fails(2, &format!("{chain} --sweeps 2 --start nothere.ildg -o u.ildg"), &["nothere.ildg"]);
    room.json("generate unit --lattice 2,2,2,2 -o small.ildg");
    room.fails(2, &format!("{chain} --sweeps 2 --start small.ildg -o u.ildg"), &["2×2×2×2", "4×4×4×4"]);
}
