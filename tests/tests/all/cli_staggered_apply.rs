//! `ferrite links`, and `ferrite apply` and `ferrite bench solver` with staggered operators.
use crate::program::*;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::HostColour;
use ferrite::files::{ReadOptions, read_fermion, read_gauge};
use ferrite::gauge::generate;
use ferrite::operators::fat_links::{Improvement, PathCoefficients};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::accuracy::Accuracy;
use ferrite_tests::checks::{LinkErrors, image_tolerance};
use ferrite_tests::formats;
use ferrite_tests::report::{Tolerance, relative_error, worst_error};
use ferrite_tests::staggered_reference::{Boundary, EtaPhases, ReferenceLinks, StaggeredDirac};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[test]
fn links_are_made_saved_and_used() {
    let room = Room::with_weak_field();
    for (operator, flags, read) in
        [("asqtad", "--u0 0.9", "--u0 0.9"), ("hisq", "--naik-epsilon 0.1", "--naik-epsilon 0.1")]
    {
        for (fat, long) in [("fat.scidac", "long.scidac"), ("fat.npy", "long.npy")] {
            let made = room.json(&format!("links {operator} weak.ildg {fat} {long} {flags}"));
            assert_eq!(made["operator"].as_str(), Some(operator));
            // Naik's coefficient, over u_0².
            let naik = if operator == "asqtad" { 1.0 / 24.0 / 0.81 } else { 1.1 / 24.0 };
            assert!((0.3 * naik..naik * 1.0001).contains(&made["largest_long"].as_f64().unwrap()), "{made}");
            let solve = format!("solve --operator {operator} --mass 0.1 --source random:1");
            room.json(&format!("{solve} --fat {fat} --long {long} -o a.npy"));
            let report = room.json(&format!("{solve} --gauge weak.ildg {read} -o b.npy"));
            assert!(report["fat"].is_null() && report["gauge"] == "weak.ildg");
            assert!(distance(&npy(&room.path("a.npy")), &npy(&room.path("b.npy"))) < 1e-8);
        }
    }
    room.fails(2, "links asqtad weak.ildg fat.nersc long.scidac", &["fat.nersc", ".scidac"]);
    room.fails(2, "links asqtad weak.ildg a.npy a.npy", &["are the same file: name two different ones"]);
    room.fails(2, "links asqtad weak.ildg a.npy ./a.npy", &["are the same file: name two different ones"]);
    room.fails(2, "links asqtad weak.ildg a.npy b.npy --u0 -1", &["--u0", "from 1e-3 to 1e9"]);
    room.fails(2, "links hisq weak.ildg a.npy b.npy --bc-time open", &["--bc-time", "antiperiodic"]);
    room.fails(2, "links hisq nothing.ildg a.npy b.npy", &["nothing.ildg"]);
    assert!(!room.path("a.npy").with_extension("tmp").exists());
}

/// A field from a file.
fn colour(path: &Path) -> HostColour {
    read_fermion(path, &ReadOptions::default()).unwrap().field
}

/// Compares the image of a field by its norm and site by site. Answers with the relative error.
fn compare(got: HostColour, expected: HostColour, tol: Tolerance, what: &str) -> f64 {
    let (got, expected) = ([got], [expected]);
    let (relative, worst) = (relative_error(&got, &expected), worst_error(&got, &expected));
    assert!(relative <= tol.relative && worst <= tol.worst, "{what}: {relative:.1e}, {worst:.1e}, allowed: {tol:?}");
    relative
}

#[test]
fn applications_agree_with_the_reference() {
    let room = Room::new();
    // An extent of 2, where three steps are one back, and none alike.
    room.json("generate weak-field --lattice 6,2,4,10 --noise 0.3 --seed 3 -o odd.npy");
    let file = read_gauge(&room.path("odd.npy"), &ReadOptions::default()).unwrap();
    let (gauge, u0) = (file.gauge, file.plaquette.mean.powf(0.25));
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    let thin = GaugeField::upload(&domain, &gauge).unwrap();
    let made = Improvement::from_paths(&thin, &PathCoefficients::asqtad(u0)).unwrap();
    let from_hisq = Improvement::hisq(&thin, -0.05).unwrap();
    let (asqtad, hisq) = (ReferenceLinks::asqtad(&gauge, u0), ReferenceLinks::hisq(&gauge, -0.05));
    let antiperiodic = Boundary::Sign(-1.0);
    let naive = |phases, boundary| (StaggeredDirac::naive(&gauge, 0.0, phases, boundary), LinkErrors::thin());
    let improved = |links, phases, boundary, errors| (ReferenceLinks::operator(links, 0.0, phases, boundary), errors);
    let of_asqtad = LinkErrors::asqtad(&made, u0);
    let psi: HostColour = generate::random_source(gauge.lattice(), 5);
    room.json("links asqtad odd.npy fat.scidac long.scidac --u0 plaquette");
    let full = (Precision::Double, LinkStorage::FULL);
    for (flags, (operator, errors)) in [
        ("--gauge odd.npy --operator staggered", naive(EtaPhases::Milc, antiperiodic)),
        (
            "--gauge odd.npy --operator staggered --phases lexicographic --bc-time periodic",
            naive(EtaPhases::Standard, Boundary::Sign(1.0)),
        ),
        ("--gauge odd.npy --operator staggered --spread-boundary", naive(EtaPhases::Milc, Boundary::Spread)),
        (
            "--gauge odd.npy --operator asqtad --u0 plaquette --phases lexicographic",
            improved(&asqtad, EtaPhases::Standard, antiperiodic, of_asqtad),
        ),
        (
            "--operator asqtad --fat fat.scidac --long long.scidac --spread-boundary",
            improved(&asqtad, EtaPhases::Milc, Boundary::Spread, of_asqtad),
        ),
        (
            "--gauge odd.npy --operator hisq --naik-epsilon -0.05",
            improved(&hisq, EtaPhases::Milc, antiperiodic, LinkErrors::hisq(&from_hisq)),
        ),
    ] {
        // M is D/2 for m = 0, and -M^+(-m) else.
        for mass in [0.1, 0.0, -0.3] {
            let operator = StaggeredDirac { mass, ..operator };
            for (form, expected) in [
                ("", operator.apply(false, &psi)),
                ("--dagger", operator.apply(true, &psi)),
                ("--normal", operator.normal(&psi)),
            ] {
                let line = format!("apply {flags} --reconstruct 18 --mass {mass} --source random:5 {form} -o y.lime");
                let report = room.json(&line);
                let switches = ["dagger", "normal"].map(|key| report[key].as_bool().unwrap());
                assert_eq!(switches, ["--dagger", "--normal"].map(|name| name == form));
                let got = colour(&room.path("y.lime"));
                // A sum of n squares in double, in some order.
                let norm2 = report["norm2"][0].as_f64().unwrap();
                assert!((norm2 / got.norm2() - 1.0).abs() < 1e-13, "{report}");
                let tol = image_tolerance(&operator, errors, full, &psi, form == "--normal");
                compare(got, expected, tol, &line);
            }
        }
    }
}

#[test]
fn applications_in_every_format() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,6,2,8 --noise 0.3 --seed 4 -o odd.npy");
    let gauge = read_gauge(&room.path("odd.npy"), &ReadOptions::default()).unwrap().gauge;
    let domain = Domain::single(Cpu::new(None), gauge.lattice()).unwrap();
    let thin = GaugeField::upload(&domain, &gauge).unwrap();
    let asqtad = ReferenceLinks::asqtad(&gauge, 0.9);
    let made = Improvement::from_paths(&thin, &PathCoefficients::asqtad(0.9)).unwrap();
    let psi: HostColour = generate::random_source(gauge.lattice(), 5);
    let boundary = Boundary::Sign(-1.0);
    for (flags, operator, errors) in [
        ("staggered", StaggeredDirac::naive(&gauge, 0.1, EtaPhases::Milc, boundary), LinkErrors::thin()),
        ("asqtad --u0 0.9", asqtad.operator(0.1, EtaPhases::Milc, boundary), LinkErrors::asqtad(&made, 0.9)),
    ] {
        for (form, expected) in [("", operator.apply(false, &psi)), ("--normal", operator.normal(&psi))] {
            let base = format!("apply --gauge odd.npy --operator {flags} --mass 0.1 --source random:5 {form} -o y.npy");
            for format @ (precision, storage) in formats::naive() {
                let line = format!("{base} --precision {precision} --reconstruct {storage}");
                let report = room.json(&line);
                let reported = (&report["precision"], &report["reconstruct"]);
                assert_eq!(reported, (&precision.name().into(), &storage.name().into()));
                let tol = image_tolerance(&operator, errors, format, &psi, form == "--normal");
                let error = compare(colour(&room.path("y.npy")), expected.clone(), tol, &line);
                // So far off only what is in that format is: a twentieth of the error of storing fields or links.
                let stored = if storage.half { Precision::Half } else { precision }.colour_rms();
                assert!(error > 0.05 * stored, "{line}: {error:.1e}");
            }
        }
    }
    // Long links of HISQ are in U(3): 8 reals do not determine them, 9 do, and the program reports it.
    let hisq = "apply --gauge odd.npy --operator hisq --mass 0.1 --source random:5";
    let run = room.run(&format!("{hisq} --reconstruct 8 -o y.npy --backend cpu"));
    let reported = run.stderr.contains("with recon 8: recon 9 is used");
    assert!(run.code == Some(0) && reported, "{}", run.stderr);
    room.json(&format!("{hisq} --reconstruct 9 -o z.npy"));
    assert_eq!(npy(&room.path("y.npy")), npy(&room.path("z.npy")));
    room.json(&format!("{hisq} --reconstruct 18 -o z.npy"));
    // Reconstruction has rounding errors of links of order one.
    assert!(distance(&npy(&room.path("y.npy")), &npy(&room.path("z.npy"))) < 1e-12);
}

#[test]
fn applications_follow_each_other() {
    let room = Room::with_weak_field();
    let sources = "--source random:1 --source point:1,2,3,4,2";
    for flags in ["staggered --spread-boundary", "asqtad --u0 0.9 --phases lexicographic", "hisq --bc-time periodic"] {
        let apply = |arguments: &str| room.json(&format!("apply --gauge weak.ildg --operator {flags} {arguments}"));
        let report = apply(&format!("--mass 0.2 {sources} --normal -o normal.npy"));
        assert_eq!(report["norm2"].as_array().unwrap().len(), 2);
        apply(&format!("--mass 0.2 {sources} -o once.npy"));
        apply("--mass 0.2 --source file:once.npy --dagger -o twice.npy");
        assert_eq!(shape(&room.path("twice.npy")), [2, 8, 4, 4, 4, 3]);
        let (normal, twice) = (npy(&room.path("normal.npy")), npy(&room.path("twice.npy")));
        // Both are sums of a few hundred roundings of numbers of the result's size: a random walk.
        let off = distance(&normal, &twice);
        assert!(0.0 < off && off < 20.0 * f64::EPSILON, "{flags}: {off:.1e}");
        // What solve finds is what apply takes back.
        room.json(&format!(
            "solve --gauge weak.ildg --operator {flags} --mass 0.2 {sources} --save-source b.npy -o x.npy"
        ));
        apply("--mass 0.2 --source file:x.npy -o back.npy");
        assert!(distance(&npy(&room.path("back.npy")), &npy(&room.path("b.npy"))) <= 1e-10, "{flags}");
    }
    let text =
        room.run("apply --gauge weak.ildg --operator asqtad --mass 0.1 --source random:1 -o y.npy --backend cpu");
    let expected =
        "y.npy: M x of the asqtad operator on 4×4×4×8, u0 = 1.000000, antiperiodic, m = 0.100000\n  random:1:";
    assert!(text.stdout.starts_with(expected), "{}", text.stdout);
}

/// The cells of `bench solver` in one format.
fn of_format<'a>(report: &'a Value, precision: &str, reconstruct: &str) -> Vec<&'a Value> {
    let is = |row: &&Value| row["precision"] == precision && row["reconstruct"] == reconstruct;
    report["rows"].as_array().unwrap().iter().filter(is).collect()
}
#[test]
fn benchmarks_of_solvers() {
    let room = Room::with_weak_field();
    let bench = "bench solver --operator asqtad --u0 0.9 --gauge weak.ildg --sources 1 --tol 1e-9";
    let report = room.json(&format!("{bench} --masses 0.4,0.1 --plot s.svg"));
    assert_eq!((&report["schema"], &report["operator"]), (&"ferrite.bench-solver/1".into(), &"asqtad".into()));
    assert_eq!((number(&report["u0"]), &report["shifts"], &report["paper"]), (0.9, &Value::Null, &Value::Null));
    // Double and half with 18, 13, 12, 9 and 8 reals, single also with all of them and h, and with 13f and 9f.
    assert_eq!(report["rows"].as_array().unwrap().len(), 2 * 22);
    for row in report["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["failures"], &row["solver"], &row["table"]),
            (&json!([]), &"cg".into(), &Value::Null),
            "{row}"
        );
        assert!(number(&row["true_residual"]) <= 1e-9 && number(&row["matrix_gflops"]) > 0.0, "{row}");
        let (iterations, updates) = (number(&row["iterations"]), number(&row["updates"]));
        let microseconds = 1e6 * number(&row["seconds"]) / (iterations - updates);
        assert!((number(&row["microseconds_per_iteration"]) / microseconds - 1.0).abs() < 1e-12, "{row}");
        assert!(number(&row["gflops"]) > 0.0 && row["first_microseconds_per_iteration"].is_null(), "{row}");
    }
    assert!(fs::read_to_string(room.path("s.svg")).unwrap().contains("CG on 4×4×4×8, asqtad"));
    // The same system as that of `solve`.
    let solve = "solve --operator asqtad --u0 0.9 --gauge weak.ildg --source random:1 --tol 1e-9";
    for (precision, reconstruct) in [("double", "18"), ("single", "8h"), ("half", "12")] {
        let format = format!("--precision {precision} --reconstruct {reconstruct}");
        let rows = of_format(&report, precision, reconstruct);
        assert!(number(&rows[0]["iterations"]) < number(&rows[1]["iterations"]), "lighter quarks take longer");
        for (row, mass) in rows.into_iter().zip(["0.4", "0.1"]) {
            let one = room.json(&format!("{solve} --mass {mass} {format}"));
            let counted = number(&one["iterations"]) + number(&one["reliable_updates"]);
            assert_eq!((number(&row["mass"]), number(&row["iterations"])), (mass.parse().unwrap(), counted));
            assert_eq!(
                (&row["updates"], &row["true_residual"]),
                (&one["reliable_updates"].as_f64().into(), &one["true_residual"])
            );
        }
    }

    // Many shifts.
    let shifts = "--shifts 0,0.5,0.05 --precision double,single --reconstruct 8";
    for strategy in ["multishift", "sequential"] {
        let report = room.json(&format!("{bench} --masses 0.1 {shifts} --shift-solver {strategy}"));
        assert_eq!((&report["shifts"], &report["shift_solver"]), (&json!([0.0, 0.5, 0.05]), &strategy.into()));
        for precision in ["double", "single"] {
            let [row] = of_format(&report, precision, "8")[..] else { panic!("{report}") };
            let flags =
                format!("--shifts 0,0.5,0.05 --precision {precision} --reconstruct 8 --shift-solver {strategy}");
            let all = room.json(&format!("{solve} --mass 0.1 {flags}"));
            let of = |key: &str| all["systems"].as_array().unwrap().iter().map(|s| number(&s[key])).collect::<Vec<_>>();
            let (first, then, updates) = (of("iterations"), of("refinement_iterations"), of("reliable_updates"));
            let first = first.into_iter().fold(0.0, f64::max);
            assert_eq!(number(&row["first_iterations"]), first);
            assert_eq!(first > 0.0, strategy == "multishift");
            assert_eq!(number(&row["updates"]), updates.iter().sum::<f64>());
            assert_eq!(number(&row["iterations"]), first + then.iter().sum::<f64>() + number(&row["updates"]));
            assert_eq!(row["first_microseconds_per_iteration"].is_number(), strategy == "multishift");
            assert!(number(&row["first_seconds"]) <= number(&row["seconds"]) && row["failures"] == json!([]), "{row}");
        }
    }
    let text = room.run(&format!("{bench} --masses 0.1 {shifts} --backend cpu")).stdout;
    for part in ["asqtad operator, 3 shifts, multishift: iterations, to 1e-9, 1 source", "double 8 CG", "single 8 CG"] {
        assert!(text.contains(part), "{text}");
    }
    for heading in ["seconds", "microseconds per iteration", "of multi-shift CG", "rate of the matrix alone"] {
        assert!(text.lines().any(|line| line.contains(heading)), "{heading}: {text}");
    }
    // On a configuration made for it; half does not get there, and no step up is made.
    let made = "bench solver --lattice 4,4,4,4 --sweeps 3 --sources 2 --masses 0.05";
    let report =
        room.json(&format!("{made} --operator staggered --precision single,half --reconstruct 18 --max-iterations 9"));
    assert_eq!(report["quenched"]["sweeps"], 3);
    for row in report["rows"].as_array().unwrap() {
        assert!(row["iterations"].is_null() && row["failures"].as_array().unwrap().len() == 2, "{row}");
    }
    // HISQ's long links are in U(3), and 12 and 8 reals do not determine them: these columns are left out.
    let report = room.json(&format!("{made} --operator hisq --naik-epsilon 0.1 --precision single,double"));
    let formats: Vec<_> = report["rows"].as_array().unwrap().iter().map(|row| row["reconstruct"].clone()).collect();
    let expected: Vec<Value> =
        ["18", "18h", "13", "9", "13h", "9h", "13f", "9f", "18", "13", "9"].iter().map(|name| (*name).into()).collect();
    assert_eq!((formats, number(&report["naik_epsilon"])), (expected, 0.1));
    room.fails(
        2,
        &format!("{made} --operator hisq --reconstruct 12,8 --backend cpu"),
        &["--reconstruct", "HISQ", "18"],
    );
}

#[test]
fn mistakes_of_applications_and_benchmarks() {
    let room = Room::with_weak_field();
    let base = "apply --gauge weak.ildg --source random:1 -o y.npy";
    for (flags, parts) in [
        ("--operator asqtad", &["no mass: give --mass M"][..]),
        ("--operator asqtad --mass heavy", &["--mass", "'heavy'"]),
        ("--operator asqtad --mass 0.1 --kappa 0.1", &["--kappa", "applies only to --operator wilson, clover"]),
        ("--operator asqtad --mass 0.1 --csw 1", &["--csw", "applies only to --operator clover"]),
        ("--operator asqtad --mass 0.1 --schur", &["--schur", "applies only to Wilson-like operators"]),
        ("--operator asqtad --mass 0.1 --schur symmetric", &["--schur", "applies only to Wilson-like operators"]),
        ("--operator asqtad --mass 0.1 --dagger --normal", &["--dagger", "--normal"]),
        ("--operator asqtad --mass 0.1 --masses 0.1,0.2", &["--masses"]),
        ("--operator hisq --mass 0.1 --u0 0.9", &["--u0", "asqtad"]),
        ("--operator staggered --mass 0.1 --naik-epsilon 0.1", &["--naik-epsilon", "hisq"]),
        ("--operator asqtad --mass 0.1 --fat f.npy", &["--gauge", "--fat"]),
        ("--operator asqtad --mass 0.1 --precision fp16", &["--precision", "fp16", "double, single, half"]),
        ("--operator asqtad --mass 0.1 --reconstruct 8t", &["--reconstruct", "8t"]),
        ("--operator asqtad --mass 0.1 --precision half --reconstruct 8h", &["--reconstruct", "--precision single"]),
        ("--operator staggered --mass 0.1 --bc-time periodic --spread-boundary", &["antiperiodic"]),
        ("--operator asqtad --mass 0.1 --source point:0,0,0,0,0,0", &["point:0,0,0,0,0,0", "colour"]),
        ("--operator stagered --mass 0.1", &["did you mean 'staggered'"]),
        ("--mass 0.1 --phases milc", &["--phases", "staggered"]),
        ("--mass 0.1 --fat f.npy --long l.npy", &["--fat", "--long", "staggered"]),
    ] {
        room.fails(2, &format!("{base} {flags}"), parts);
    }
    room.fails(2, "apply --gauge weak.ildg --operator asqtad --mass 0.1 --source random:1", &["no output", "-o FILE"]);
    room.fails(2, "apply --operator asqtad --mass 0.1 --source random:1 -o y.npy", &["no links", "--gauge", "--fat"]);
    let two = "apply --gauge weak.ildg --operator asqtad --mass 0.1 --source random:1 --source random:2 -o y.lime";
    room.fails(2, two, &["y.lime", ".npy"]);
    // Spinors are none of its fields, nor colour vectors Wilson's.
    room.json("solve --gauge weak.ildg --mass 0.5 --source random:1 -o spinor.npy");
    room.json("apply --gauge weak.ildg --mass 0.5 --source random:1 -o spinor.lime");
    room.json("apply --gauge weak.ildg --operator staggered --mass 0.5 --source random:1 -o colour.npy");
    for name in ["spinor.npy", "spinor.lime"] {
        let line = format!("apply --gauge weak.ildg --operator asqtad --mass 0.1 --source file:{name} -o y.npy");
        room.fails(2, &line, &[name, "12 complex numbers per site", "a colour vector field has 3"]);
    }
    let line = "apply --gauge weak.ildg --mass 0.1 --source file:colour.npy -o y.npy";
    room.fails(2, line, &["colour.npy", "3 complex numbers per site", "a spinor field has 12"]);
    assert!(!room.path("y.npy").exists());

    let base = "bench solver --gauge weak.ildg";
    for (flags, parts) in [
        (
            "--operator clover",
            &["--operator", "'clover'", "staggered, asqtad or hisq", "ferrite-studies mixed-precision"][..],
        ),
        ("--operator asqtad --masses=-0.1", &["--masses", "above 0"]),
        ("--operator asqtad --masses 0", &["--masses", "above 0"]),
        ("--operator asqtad --masses 0.1,0 --shifts 0.1,0", &["--shifts", "mass 0", "not above -m^2 for m = 0"]),
        ("--operator asqtad --shifts 0.1,x", &["--shifts", "'x'"]),
        ("--operator asqtad --shift-solver multishift", &["--shift-solver", "--shifts"]),
        ("--operator asqtad --shifts 0.1 --shift-solver both", &["--shift-solver", "sequential"]),
        ("--operator asqtad --precision fp16", &["no kernel exists in the formats of", "fp16"]),
        ("--operator asqtad --precision double --reconstruct 8h", &["no kernel exists in the formats of", "8h"]),
        ("--operator asqtad --reconstruct 12t", &["no kernel exists in the formats of", "12t"]),
        ("--operator asqtad --reconstruct 7", &["--reconstruct '7'"]),
        ("--operator asqtad --u0 0", &["--u0", "plaquette"]),
        ("--operator hisq --u0 0.9", &["--u0", "asqtad"]),
        ("--operator staggered --naik-epsilon 0.1", &["--naik-epsilon", "hisq"]),
        ("--operator asqtad --solver bicgstab", &["--solver"]),
        ("--operator asqtad --tol 0", &["--tol"]),
        ("--operator asqtad --plot s.png", &["s.png", ".svg"]),
        ("--operator staggered --u0 0.9", &["--u0", "asqtad"]),
        ("--shifts 0.1", &["--operator"]),
    ] {
        room.fails(2, &format!("{base} {flags}"), parts);
    }
    room.fails(2, "bench solver --operator asqtad --gauge nothere.ildg --backend cpu", &["nothere.ildg"]);
    let large = "bench solver --operator asqtad --lattice 256,256,256,64 --backend cpu";
    room.fails(2, large, &["needs", "GiB", "links in all formats"]);
}
