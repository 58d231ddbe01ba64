//! `ferrite solve` with staggered operators, and what is refused.
use crate::program::*;
use ferrite::field::host::HostColour;
use ferrite::files::{ReadOptions, read_fermion};
use ferrite_tests::refdata;
use serde_json::{Value, json};
use std::fs;

#[test]
fn operators_and_precisions() {
    let room = Room::with_weak_field();
    for (operator, extra) in [
        ("staggered", "--phases lexicographic --spread-boundary"),
        ("staggered", "--reconstruct 8"),
        ("asqtad", "--u0 plaquette"),
        ("asqtad", "--u0 0.9 --precision half"),
        ("asqtad", "--precision single --reconstruct 12h"),
        ("hisq", "--naik-epsilon -0.05 --precision single --outer single --tol 1e-5"),
    ] {
        let report = room.json(&format!(
            "solve --gauge weak.ildg --operator {operator} --mass 0.1 --source random:3 {extra} -o x.npy --plot x.svg"
        ));
        assert_eq!((report["converged"].as_bool(), report["operator"].as_str()), (Some(true), Some(operator)));
        assert!(report["true_residual"].as_f64() <= report["tol"].as_f64(), "{report}");
        assert!(report["applications"]["sloppy"].as_u64() >= report["iterations"].as_u64(), "{report}");
        assert!(report["applications"]["precise"].as_u64() > Some(0), "{report}");
        assert_eq!(report["u0_from_plaquette"].as_bool(), Some(extra.contains("plaquette")));
        assert_eq!(report["spread_boundary"].as_bool(), Some(extra.contains("spread")));
        assert_eq!(shape(&room.path("x.npy")), [8, 4, 4, 4, 3]);
        assert!(fs::read_to_string(room.path("x.svg")).unwrap().contains("operator on 4×4×4×8"));
    }
    // The file holds the solution: as an initial guess it needs no iteration.
    let again = "solve --gauge weak.ildg --operator hisq --naik-epsilon -0.05 --mass 0.1 --source random:3 --tol 1e-4";
    assert_eq!(room.json(&format!("{again} --guess x.npy"))["iterations"].as_u64(), Some(0));
    let text = room.run("solve --gauge weak.ildg --operator asqtad --mass 0.1 --source point:0,0,0,0,1 --backend cpu");
    assert!(text.stdout.contains("asqtad operator on 4×4×4×8, u0 = 1.000000, antiperiodic\n"), "{}", text.stdout);
}

/// HISQ's long links are in U(3): with 13 or 9 reals the answer is that of 18.
#[test]
fn reconstructions_of_hisq() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --operator hisq --mass 0.1 --source random:3 --tol 1e-11";
    room.json(&format!("{solve} --reconstruct 18 -o 18.npy"));
    let expected = npy(&room.path("18.npy"));
    // ‖M⁻¹‖ ≤ 1 / m, and ‖M‖ is 3 at most: two answers to 10⁻¹¹ are within 6 · 10⁻¹⁰ of each other.
    let agrees = |name: &str| distance(&npy(&room.path(name)), &expected) < 6e-10;
    for (flags, used) in [
        ("", "18"),
        ("--reconstruct 13", "13"),
        ("--reconstruct 9", "9"),
        ("--precision single --reconstruct 13", "13"),
        ("--precision single --reconstruct 9", "9"),
        ("--precision half --reconstruct 13", "13"),
        ("--precision half --reconstruct 9", "9"),
        ("--precision single --reconstruct 13h", "13h"),
        ("--precision single --reconstruct 9h", "9h"),
        // These have no phase, which HISQ's need.
        ("--reconstruct 12", "13"),
        ("--precision half --reconstruct 8", "9"),
        ("--precision single --reconstruct 8h", "9h"),
    ] {
        let report = room.json(&format!("{solve} {flags} -o x.npy"));
        assert_eq!(
            (report["converged"].as_bool(), report["reconstruct"].as_str()),
            (Some(true), Some(used)),
            "{flags}"
        );
        assert!(agrees("x.npy"), "{flags}");
    }
    // It says so where it does not keep what was asked for.
    let run = room.run(&format!("{solve} --reconstruct 12 --backend cpu"));
    assert!(run.stderr.contains("with recon 12: recon 13 is used"), "{}", run.stderr);
    // What it chose itself is no exception to report.
    let masses = ["--mass 0.1", "--masses 0.1,0.3"].map(|mass| format!("{mass} --precision double"));
    for flags in masses.into_iter().chain(["--mass 0.1".into()]) {
        let solve = "solve --gauge weak.ildg --operator hisq --source random:3 --tol 1e-11 --backend cpu";
        let run = room.run(&format!("{solve} {flags}"));
        assert!(!run.stderr.contains("is used"), "{flags}: {}", run.stderr);
    }
    // From files, where the number in the long links has to be found first.
    room.json("links hisq weak.ildg fat.npy long.npy");
    let solve = "solve --operator hisq --mass 0.1 --source random:3 --tol 1e-11 --fat fat.npy --long long.npy";
    for used in ["13", "9"] {
        let report = room.json(&format!("{solve} --reconstruct {used} -o x.npy"));
        assert_eq!(report["reconstruct"].as_str(), Some(used));
        assert!(agrees("x.npy"), "{used} from files");
    }
    // Several masses.
    let masses = "solve --gauge weak.ildg --operator hisq --masses 0.1,0.3 --source random:3 --tol 1e-11";
    let report = room.json(&format!("{masses} --precision single --reconstruct 9 -o x.npy"));
    assert_eq!(report["reconstruct"].as_str(), Some("9"));
    assert!(distance(&npy(&room.path("x.npy"))[..expected.len()], &expected) < 6e-10);
    // Long links of asqtad have no phase, but nothing speaks against keeping it.
    let asqtad = "solve --gauge weak.ildg --operator asqtad --mass 0.1 --source random:3 --tol 1e-11";
    room.json(&format!("{asqtad} -o a.npy"));
    let report = room.json(&format!("{asqtad} --reconstruct 9 -o b.npy"));
    assert_eq!(report["reconstruct"].as_str(), Some("9"));
    assert!(distance(&npy(&room.path("a.npy")), &npy(&room.path("b.npy"))) < 6e-10);
    // Unit links are in the way of 9 reals, as of 8.
    room.json("generate unit --lattice 4,4,4,4 -o unit.ildg");
    let unit = "solve --gauge unit.ildg --operator hisq --mass 0.1 --source random:3 --reconstruct 9";
    assert_eq!(room.json(unit)["reconstruct"].as_str(), Some("13"));
}

#[test]
fn several_masses_and_shifts() {
    let room = Room::with_weak_field();
    let base = "solve --gauge weak.ildg --operator asqtad --u0 0.9";
    let sources = "--source point:0,0,0,1,2 --source random:4";
    let many = room.json(&format!("{base} --masses 0.05,0.2,0.1 {sources} -o m.npy"));
    assert_eq!(many["schema"], "ferrite.solve_shifts/1");
    assert_eq!((many["converged"].as_bool(), many["systems"].as_array().unwrap().len()), (Some(true), 3));
    assert_eq!(shape(&room.path("m.npy")), [3, 2, 8, 4, 4, 4, 3]);
    assert_eq!(many["output_axes"], serde_json::json!([3, 2]));
    // Each mass as by itself.
    let all = npy(&room.path("m.npy"));
    let length = all.len() / 3;
    for (k, mass) in [0.05, 0.2, 0.1].into_iter().enumerate() {
        assert_eq!(many["systems"][k]["mass"].as_f64(), Some(mass));
        room.json(&format!("{base} --mass {mass} {sources} -o one.npy"));
        let one = npy(&room.path("one.npy"));
        assert!(distance(&all[k * length..(k + 1) * length], &one) < 1e-7, "{mass}");
    }
    // x = (M†M)⁻¹ b from the same with shift 0, and M x̃ = M† M x … = b: M† x solves M.
    for solver in ["multishift", "sequential"] {
        let flags = format!("--mass 0.1 --shifts 0,0.3 --shift-solver {solver} --precision single --reconstruct 8h");
        let shifted = room.json(&format!("{base} {flags} --source random:4 -o s.npy"));
        assert_eq!((shifted["converged"].as_bool(), shifted["shift_solver"].as_str()), (Some(true), Some(solver)));
        assert_eq!(shifted["first_precision"].as_str(), (solver == "multishift").then_some("single"));
        assert_eq!(shape(&room.path("s.npy")), [2, 8, 4, 4, 4, 3]);
        for system in shifted["systems"].as_array().unwrap() {
            assert!(system["true_residual"].as_f64() <= Some(1e-10), "{system}");
            assert_eq!(system["iterations"].as_u64() > Some(0), solver == "multishift");
        }
    }
    let text = room.run(&format!("{base} --masses 0.1,0.2 --source random:1 --backend cpu")).stdout;
    assert!(text.contains("multi-shift CG in double, then CG in double for each system\n"), "{text}");
    let failed = room.fails(
        1,
        &format!("{base} --masses 0.01,0.2 --max-iterations 3 --source random:1 -o f.npy"),
        &["2 of 2 systems did not converge", "f.npy was not written"],
    );
    assert!(failed.stdout.contains("NOT converged"));
    assert!(!room.path("f.npy").exists());
    room.fails(
        1,
        &format!("{base} --masses 0.01,0.2 --max-iterations 3 --source random:1 -o f.npy --keep-unconverged"),
        &["f.npy holds the best iterates"],
    );
    assert_eq!(shape(&room.path("f.npy")), [2, 8, 4, 4, 4, 3]);
}

/// Block CG takes fewer iterations than CG on quenched fields at β = 5.7 with a light quark, where small eigenvalues slow CG down.
#[test]
fn block_cg_takes_fewer_iterations_for_many_sources() {
    let room = Room::with_weak_field();
    room.json("generate quenched --lattice 4,4,4,8 --beta 5.7 --sweeps 20 --seed 3 -o small.ildg");
    room.json("generate quenched --lattice 6,6,6,8 --beta 5.7 --sweeps 20 --seed 3 -o large.ildg");
    let iterations = |report: &Value| report["iterations"].as_u64().unwrap();
    // Found were 748 iterations of CG and 155 of block CG on the large lattice; on the small one, by precision, 281, 301
    // and 334, and 68, 115 and 145.
    for (gauge, mass, precision, fewer) in [
        ("large", 0.02, "double", 3.0),
        ("small", 0.005, "double", 2.0),
        ("small", 0.005, "single", 1.5),
        ("small", 0.005, "half", 1.5),
    ] {
        let base = format!("solve --gauge {gauge}.ildg --operator staggered --mass {mass} --source random:4");
        let solve = |solver: &str, sources: usize| {
            let flags = format!("--sources {sources} --precision {precision} --solver {solver}");
            let report = room.json(&format!("{base} {flags} -o {solver}.npy"));
            assert_eq!((&report["converged"], &report["solver"]), (&json!(true), &json!(solver)), "{flags}");
            assert!(report["true_residual"].as_f64() <= Some(1e-10), "{flags}: {}", report["true_residual"]);
            assert_eq!((&report["batches"], &report["escalations"]), (&json!([sources]), &json!([])), "{flags}");
            iterations(&report)
        };
        let (plain, block) = (solve("cg", 12), solve("block-cg", 12));
        println!("{gauge}, {precision}: block CG {block}, CG {plain} iterations");
        assert!(fewer * block as f64 <= plain as f64, "{gauge} {precision}: {block} {plain}");
        // ‖M⁻¹‖ ≤ 1 / m, and ‖M‖ is 5 at most: two answers to 10⁻¹⁰ are within 10⁻⁹ / m of each other.
        let off = distance(&npy(&room.path("block-cg.npy")), &npy(&room.path("cg.npy")));
        assert!(off < 1e-9 / mass, "{gauge} {precision}: {off:e}");
        // With one source there is nothing to share: the same but for rounding.
        let (plain, block) = (solve("cg", 1), solve("block-cg", 1));
        let most = if precision == "double" { 2 + plain / 100 } else { plain / 3 };
        assert!(block.abs_diff(plain) <= most, "{gauge} {precision}: {block} {plain}");
    }
}

#[test]
fn blocks_of_block_cg_are_batches() {
    let room = Room::with_weak_field();
    let base = "solve --gauge weak.ildg --operator asqtad --u0 0.9 --mass 0.01 --source random:4";
    let iterations = |report: &Value| report["iterations"].as_u64().unwrap();
    // Each batch has a space of its own: the smaller, the less there is to share.
    let whole = room.json(&format!("{base} --sources 12 --solver block-cg -o block-cg.npy"));
    assert_eq!(shape(&room.path("block-cg.npy")), [12, 8, 4, 4, 4, 3]);
    let parts = room.json(&format!("{base} --sources 12 --solver block-cg --batch 4"));
    assert_eq!((&parts["batches"], &parts["converged"]), (&json!([4, 4, 4]), &json!(true)));
    assert!(iterations(&parts) > iterations(&whole), "{parts}");
    // From its own answer there is nothing left to do, and equal sources are no trouble.
    let again = room.json(&format!("{base} --sources 12 --solver block-cg --tol 1e-9 --guess block-cg.npy"));
    assert_eq!(again["iterations"], 0);
    let equal = room.json(&format!("{base} --source random:4 --source random:5 --solver block-cg"));
    assert_eq!(equal["converged"], true);
    let text = room.run(&format!("{base} --solver block-cg --correction defect --backend cpu")).stdout;
    assert!(text.contains("\nblock CG, single precision, recon 12, defect correction"), "{text}");

    // Several masses: by block CG one after the other, and not by multi-shift CG.
    let several = "solve --gauge weak.ildg --operator asqtad --mass 0.1 --source random:1 --solver block-cg";
    room.fails(2, &format!("{several} --shifts 0,0.3"), &["--solver", "--shifts", "--shift-solver sequential"]);
    let masses = several.replace("--mass 0.1", "--masses 0.1,0.2");
    room.fails(2, &masses, &["--solver", "--masses", "--shift-solver sequential"]);
    let report = room.json(&format!("{masses} --sources 3 --shift-solver sequential"));
    assert_eq!((&report["converged"], &report["solver"]), (&json!(true), &json!("block-cg")));
    let text = room.run(&format!("{masses} --shift-solver sequential --backend cpu")).stdout;
    assert!(text.contains("block CG in single for each system\n"), "{text}");
}

#[test]
fn three_colours_of_a_point() {
    let room = Room::with_weak_field();
    let base = "solve --gauge weak.ildg --operator asqtad --u0 0.9 --mass 0.1 --precision single";
    let all = format!("{base} --source point:1,0,2,3 --sources 3");
    let report = room.json(&format!("{all} -o x.npy"));
    assert_eq!((&report["batches"], &report["sources"][2]), (&json!([3]), &json!("point:1,0,2,3,2")));
    assert_eq!(shape(&room.path("x.npy")), [3, 8, 4, 4, 4, 3]);
    let whole = npy(&room.path("x.npy"));
    let length = whole.len() / 3;
    for colour in 0..3 {
        room.json(&format!("{base} --source point:1,0,2,3,{colour} -o one.npy"));
        let one = npy(&room.path("one.npy"));
        assert!(distance(&whole[colour * length..(colour + 1) * length], &one) < 1e-8, "{colour}");
    }
    let report = room.json(&format!("{all} --batch 1 -o y.npy"));
    assert_eq!((&report["batches"], &report["batches_limited_by"]), (&json!([1, 1, 1]), &json!("asked")));
    assert!(distance(&npy(&room.path("y.npy")), &whole) < 1e-8);
    // Of several masses, too: by mass, and then by source.
    let masses = "solve --gauge weak.ildg --operator asqtad --u0 0.9 --masses 0.1,0.3 --source random:2 --sources 3";
    room.json(&format!("{masses} -o m.npy"));
    let split = room.json(&format!("{masses} --batch 2 -o n.npy"));
    assert_eq!((&split["batches"], &split["output_axes"]), (&json!([2, 1]), &json!([2, 3])));
    assert_eq!(split["systems"][1]["true_residuals"].as_array().unwrap().len(), 3);
    assert!(distance(&npy(&room.path("n.npy")), &npy(&room.path("m.npy"))) < 1e-8);
    // Memory splits them as well.
    let input = "gauge = 'weak.ildg'\noperator = 'staggered'\nmass = 0.1\nsource = 'point:0,0,0,0'\nsources = 3\n";
    fs::write(room.path("run.toml"), input).unwrap();
    let needed = |batch: usize| {
        room.json(&format!("check run.toml --set batch={batch}"))["memory"]["needed_bytes"].as_u64().unwrap()
    };
    let (three, two) = (needed(3), needed(2));
    let report = room.json(&format!("solve run.toml --memory {}", three - 1));
    assert_eq!((&report["batches"], &report["batches_limited_by"]), (&json!([2, 1]), &json!("memory")));
    assert_eq!(room.json(&format!("solve run.toml --memory {}", two - 1))["batches"], json!([1, 1, 1]));
    let many = format!("{base} --source point:0,0,0,0 --sources 4");
    room.fails(2, &many, &["4 right-hand sides are requested, but a point has 3 components"]);
}

#[test]
fn mistakes() {
    let room = Room::with_weak_field();
    let base = "solve --gauge weak.ildg --source random:1";
    for (flags, parts) in [
        ("--operator asqtad", &["no mass", "--masses"][..]),
        ("--operator asqtad --mass -0.1", &["--mass", "above 0"]),
        ("--operator asqtad --mass 0", &["--mass", "above 0"]),
        ("--operator asqtad --mass 0.1 --masses 0.1,0.2", &["--masses", "--mass"]),
        ("--operator asqtad --shifts 0.1", &["no mass"]),
        ("--operator asqtad --masses 0.1 --shifts 0.1", &["--shifts", "--masses"]),
        ("--operator asqtad --mass 0.1 --shifts 0.1,-0.02", &["--shifts", "-0.02"]),
        ("--operator asqtad --masses 0.1,x", &["--masses", "'x'"]),
        ("--operator asqtad --mass 0.1 --kappa 0.1", &["--kappa", "wilson, clover"]),
        ("--operator asqtad --mass 0.1 --csw 1", &["--csw"]),
        ("--operator asqtad --mass 0.1 --u0 thick", &["--u0", "plaquette"]),
        ("--operator hisq --mass 0.1 --u0 0.9", &["--u0", "asqtad"]),
        ("--operator asqtad --mass 0.1 --naik-epsilon 0.1", &["--naik-epsilon", "hisq"]),
        ("--operator asqtad --mass 0.1 --fat f.npy", &["--gauge", "--fat"]),
        ("--operator asqtad --mass 0.1 --precision fp16", &["--precision", "fp16"]),
        ("--operator asqtad --mass 0.1 --reconstruct 12t", &["--reconstruct", "12t"]),
        ("--operator asqtad --mass 0.1 --precision double --reconstruct 8h", &["--reconstruct", "--precision single"]),
        ("--operator hisq --mass 0.1 --precision double --reconstruct 9h", &["--reconstruct", "--precision single"]),
        ("--operator hisq --mass 0.1 --reconstruct 8t", &["'8t'", "Wilson", "long links", "18, 12, 8, 18h"]),
        ("--operator hisq --mass 0.1 --reconstruct 14", &["--reconstruct", "'14'", "13, 9, 13h, 9h"]),
        ("--operator staggered --mass 0.1 --reconstruct 13", &["'13'", "phase", "naive", "18, 12, 8, 18h, 12h, 8h"]),
        ("--operator wilson --mass 0.1 --reconstruct 9", &["'9'", "phase", "Wilson", "18, 12, 8, 12t, 8t"]),
        ("--mass 0.1 --reconstruct 12h", &["'12h'", "staggered", "18, 12, 8, 12t, 8t"]),
        ("--operator asqtad --mass 0.1 --solver bicgstab", &["--solver", "cg"]),
        ("--operator asqtad --mass 0.1 --shift-solver multishift", &["--shift-solver", "--masses"]),
        ("--operator asqtad --masses 0.1,0.2 --plot x.svg", &["--plot"]),
        ("--operator staggered --mass 0.1 --bc-time periodic --spread-boundary", &["antiperiodic"]),
        ("--operator staggered --mass 0.1 --phases other", &["--phases", "milc"]),
        ("--operator stagered --mass 0.1", &["did you mean 'staggered'"]),
        ("--operator wilson --mass 0.1 --masses 0.1", &["--masses", "staggered"]),
        ("--mass 0.1 --spread-boundary", &["--spread-boundary", "staggered"]),
    ] {
        room.fails(2, &format!("{base} {flags}"), parts);
    }
    room.fails(
        2,
        "solve --gauge weak.ildg --operator asqtad --mass 0.1 --source point:0,0,0,0,0,0",
        &["five", "colour"].map(|_| "colour"),
    );
    room.fails(2, "solve --operator asqtad --mass 0.1 --source random:1 --fat f.npy", &["--long"]);
    room.fails(2, "solve --operator asqtad --mass 0.1 --source random:1", &["no links", "--gauge"]);
    room.fails(2, &format!("{base} --operator asqtad --mass 0.1 -o x.ildg"), &["x.ildg", ".npy"]);
    room.fails(2, &format!("{base} --operator asqtad --masses 0.1 -o x.lime"), &["x.lime", ".npy"]);
    let ready =
        "solve --operator hisq --mass 0.1 --source random:1 --fat weak.ildg --long weak.ildg --naik-epsilon 0.1";
    room.fails(2, ready, &["--naik-epsilon", "--fat"]);
    // A file with spinors is none of colour vectors, though its shape is that of a block of these on another lattice.
    room.json("solve --gauge weak.ildg --mass 0.5 --source random:1 -o spinor.npy");
    let file = "solve --gauge weak.ildg --operator asqtad --mass 0.1 --source file:spinor.npy";
    room.fails(2, file, &["spinor.npy", "12 complex numbers per site", "a colour vector field has 3"]);
}

#[test]
fn input_files() {
    let room = Room::with_weak_field();
    let write = |text: &str| fs::write(room.path("run.toml"), text).unwrap();
    write(
        "gauge = 'weak.ildg'\noperator = 'asqtad'\nu0 = 0.9\nmasses = [0.1, 0.2]\nsource = ['random:1', 'random:2']\n",
    );
    let check = room.json("check run.toml");
    assert_eq!((&check["operator"], check["ok"].as_bool()), (&"asqtad".into(), Some(true)));
    let needed =
        |flags: &str| room.json(&format!("check run.toml {flags}"))["memory"]["needed_bytes"].as_u64().unwrap();
    // Two vectors for each further mass in double, and two of multi-shift CG.
    let more = needed("--set masses=0.1,0.2,0.3") - needed("");
    assert!(more >= 2 * 4 * 48 * 256, "{more}");
    assert!(needed("--set precision=half") < needed("--set correction=defect"));
    // Links of the iteration and of multi-shift CG; those in double have 18 reals. Of 9 reals four pairs take 576 bytes
    // at a site, of 18 1152; all 512 sites of both parities have them.
    let [nine, eighteen] = ["9", "18"].map(|recon| needed(&format!("--set reconstruct={recon}")));
    assert_eq!(eighteen - nine, 2 * (1152 - 576) * 512);
    let report = room.json("solve run.toml --set u0=plaquette");
    assert_eq!((report["u0_from_plaquette"].as_bool(), report["systems"].as_array().unwrap().len()), (Some(true), 2));
    write("gauge = 'weak.ildg'\noperator = 'hisq'\nmass = 0.1\nsource = 'random:1'\nkappa = 0.1\nshifts = 'a'\n");
    room.fails(2, "check run.toml", &["run.toml:5:9: kappa", "run.toml:6:10: shifts", "2 mistakes"]);
}

/// MILC's own fat and long links, source and solution, through the program alone.
#[test]
fn milc_files() {
    let Some(folder) = refdata::folder() else { return };
    let room = Room::new();
    let (configs, fields) = (folder.join("configs"), folder.join("fields"));
    let gauge = configs.join("lat.sample.l8.scidac");
    room.json(&format!("links asqtad {} fat.npy long.npy --u0 0.502", gauge.display()));
    let source = fields.join("ksvector.src.sample.l8");
    let solve = format!("solve --operator asqtad --mass 0.1 --shifts 0,1 --source file:{}", source.display());
    let ours = "--fat fat.npy --long long.npy";
    let theirs = format!("--fat {} --long {}", fields.join("fat.l8").display(), fields.join("long.l8").display());
    for (links, name) in [(ours, "ours.npy"), (theirs.as_str(), "theirs.npy")] {
        room.json(&format!("{solve} {links} -o {name}"));
    }
    let (ours, theirs) = (npy(&room.path("ours.npy")), npy(&room.path("theirs.npy")));
    assert!(distance(&ours, &theirs) < 1e-6);
    let stored = fields.join("ksvector.ans.MdaggerMinv.sample.l8");
    let answer: HostColour = read_fermion(&stored, &ReadOptions::default()).unwrap().field;
    // MILC's operator is 2 M.
    let answer: Vec<f64> = answer.numbers().iter().flat_map(|z| [4.0 * z.re, 4.0 * z.im]).collect();
    assert!(distance(&ours[..ours.len() / 2], &answer) < 1e-6);
}
