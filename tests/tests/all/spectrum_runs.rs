//! `ferrite spectrum`: how runs go on, what they keep and sum up, and what is refused.
use crate::correlators::*;
use crate::program::*;
use num_complex::Complex64;
use serde_json::{Value, json};
use std::fs;

/// Several configurations: a run goes on, arrays have all, masses have errors.
#[test]
fn runs_go_on() {
    let room = Room::new();
    for seed in 1..4 {
        room.json(&format!("generate weak-field --lattice 4,4,4,8 --seed {seed} --noise 0.3 -o cfg.{seed}.ildg"));
    }
    let example = room.run("init spectrum").stdout;
    fs::write(room.path("run.toml"), example).unwrap();
    let run = "spectrum run.toml --set solve.mass=0.2 --set solve.precision=single --out out";
    let first = room.json(&format!("{run} cfg.1.ildg"));
    assert_eq!(first["configurations"], json!(["cfg.1.ildg"]));
    assert!(first["effective_masses"][0]["masses"][1]["error"].is_null());
    let before = fs::read_to_string(room.path("out/correlators.jsonl")).unwrap();
    let all = room.json(&format!("{run} cfg.1.ildg cfg.2.ildg cfg.3.ildg"));
    assert_eq!(all["configurations"].as_array().unwrap().len(), 3);
    let after = fs::read_to_string(room.path("out/correlators.jsonl")).unwrap();
    assert!(after.starts_with(&before));
    let hadrons: Vec<&str> =
        all["effective_masses"].as_array().unwrap().iter().map(|m| m["hadron"].as_str().unwrap()).collect();
    assert_eq!(hadrons, ["pion", "rho", "nucleon"]);
    let pion = &all["effective_masses"][0]["masses"];
    assert!(pion[2]["value"].as_f64().unwrap() > 0.0 && pion[2]["error"].as_f64().unwrap() > 0.0, "{pion}");
    // 16 mesons and two nucleons, 8 times, three configurations.
    let bytes = fs::read(room.path("out/correlators.npy")).unwrap();
    let header = String::from_utf8_lossy(&bytes[..128]).into_owned();
    assert!(header.contains("(3, 18, 8)") && header.contains("<c16"), "{header}");
    assert_eq!(bytes.len() % 64, 0);
    let data = &bytes[bytes.len() - 3 * 18 * 8 * 16..];
    let number = |k: usize| f64::from_le_bytes(data[8 * k..8 * k + 8].try_into().unwrap());
    let line = &lines(&room, "out")[2];
    let place = 2 * ((2 * 18 + 15) * 8 + 3);
    assert_eq!(Complex64::new(number(place), number(place + 1)), correlator(line, "g5", [0; 3])[3]);
    assert!(fs::read_to_string(room.path("out/effective-masses.svg")).unwrap().contains("nucleon"));

    // The same file by another name is the same file; another input is another folder's.
    let again = room.json(&format!("{run} ./cfg.1.ildg cfg.2.ildg"));
    assert_eq!(again["configurations"].as_array().unwrap().len(), 3);
    let other = "spectrum run.toml --set solve.precision=single --out out --backend cpu cfg.1.ildg";
    room.fails(
        2,
        &format!("{other} --set solve.mass=0.3"),
        &["line 1: the line was made with another value of solve.mass"],
    );
    room.fails(2, &format!("{other} --set solve.mass=0.2 --set momenta=1"), &["made with another value of momenta"]);
    // A whole last line stays one without its end, and its configuration is not made again.
    let whole = fs::read(room.path("out/correlators.jsonl")).unwrap();
    fs::write(room.path("out/correlators.jsonl"), &whole[..whole.len() - 1]).unwrap();
    assert_eq!(room.json(&format!("{run} cfg.3.ildg"))["configurations"].as_array().unwrap().len(), 3);
    assert_eq!(fs::read(room.path("out/correlators.jsonl")).unwrap(), whole);
    // Half a line is taken off, and its configuration made again.
    let whole = fs::read(room.path("out/correlators.jsonl")).unwrap();
    fs::write(room.path("out/correlators.jsonl"), &whole[..whole.len() - 100]).unwrap();
    assert_eq!(room.json(&format!("{run} cfg.3.ildg"))["configurations"].as_array().unwrap().len(), 3);
    let strip = |line: &Value| line["correlators"].clone();
    let mended = lines(&room, "out");
    assert_eq!(strip(&mended[2]), strip(line));

    // All headers are looked at before anything is made.
    let new = "spectrum run.toml --set solve.mass=0.2 --out no --backend cpu cfg.1.ildg";
    room.json("generate weak-field --lattice 4,4,4,4 --seed 9 -o small.ildg");
    room.fails(2, &format!("{new} none.ildg nor.ildg"), &["none.ildg cannot be read", "nor.ildg cannot be read"]);
    let nowhere = "check run.toml --set configurations=none.ildg --set configurations=nor.ildg --set solve.mass=x";
    room.fails(2, nowhere, &["3 mistakes", "none.ildg", "nor.ildg", "solve.mass"]);
    room.fails(2, &format!("{new} small.ildg"), &["small.ildg is on 4×4×4×4"]);
    room.fails(2, &format!("{new} --set origin=9,0,0,0"), &["origin [9, 0, 0, 0] is outside the lattice 4×4×4×8"]);
    room.fails(2, &format!("{new} --set momenta=9"), &["outside the Brillouin zone"]);
    room.fails(2, &format!("{new} --set solve.csw=x"), &["--set solve.csw", "x"]);
    room.fails(2, &format!("{new} --set source=noise --set nucleon=true"), &["a nucleon needs three independent propagators, which a noise source cannot provide; remove nucleon, or choose a point or wall source"]);
    room.fails(2, &format!("{new} --set seed=2"), &["--set seed", "applies only to source = \"noise\"; remove it"]);
    room.fails(2, &format!("{new} --set source=wall --set momenta=1"), &["momenta", "zero momentum only"]);
    let wrong = "nucleon = 3\norigin = [9, 0, 0, 0]\n[shell]\nwidth = 1.0\n[solve]\nkapa = 0.1\ngauge = \"x\"\n";
    fs::write(room.path("wrong.toml"), wrong).unwrap();
    let parts = [
        "wrong.toml:1:11: nucleon",
        "kapa",
        "did you mean 'kappa'?",
        "does not apply to `ferrite spectrum`",
        "shell.width",
    ];
    room.fails(2, "spectrum wrong.toml cfg.1.ildg --out no --backend cpu", &parts);
    room.fails(2, "check wrong.toml", &parts);
    assert!(!room.path("no").exists());
    let checked = room.json("check run.toml --set configurations=cfg.1.ildg --set solve.mass=0.2");
    assert_eq!((&checked["kind"], &checked["ok"]), (&json!("spectrum"), &json!(true)));
    // Also on several processes, with shells or without.
    let checked = "check run.toml --set configurations=cfg.1.ildg --set solve.mass=0.2 --processes 4";
    let grid = |flags: &str| room.json(&format!("{checked} {flags}"))["layout"]["grid"].clone();
    let shell = "--set sink=shell --set shell.width=2 --set shell.steps=20 --grid 2,1,1,2";
    assert_eq!((grid("--grid 1,1,2,2"), grid(shell)), (json!([1, 1, 2, 2]), json!([2, 1, 1, 2])));
    // How files are read is asked of headers as of links: bytes that follow are refused, unless they are accepted.
    room.json("convert cfg.1.ildg long.nersc");
    let mut long = fs::read(room.path("long.nersc")).unwrap();
    long.extend([0; 64]);
    fs::write(room.path("long.nersc"), long).unwrap();
    let long = "check run.toml --set configurations=long.nersc --set solve.mass=0.2";
    room.fails(2, long, &["64 bytes follow", "(solve.no-verify = true)"]);
    room.json(&format!("{long} --set solve.no-verify=true"));
    room.fails(
        2,
        &format!("{long} --set solve.no-verify=true --set solve.lattice=4,4,8,4"),
        &["4×4×8×4 according to the request"],
    );

    // Propagators belong to one configuration and one input.
    fs::create_dir(room.path("a")).unwrap();
    fs::copy(room.path("cfg.2.ildg"), room.path("a/cfg.1.ildg")).unwrap();
    let kept =
        "spectrum run.toml --set solve.mass=0.2 --set solve.precision=single --set propagators=kept --backend cpu";
    room.json(&format!("{kept} cfg.1.ildg --out first").replace(" --backend cpu", ""));
    room.fails(2, &format!("{kept} a/cfg.1.ildg --out second"), &["was made with the configuration"]);
    let heavier = format!("{kept} cfg.1.ildg --out third").replace("mass=0.2", "mass=0.3");
    room.fails(2, &heavier, &["kept/cfg.1.ildg.npy", "made with another value of input.solve.mass"]);
    assert_eq!(strip(&lines(&room, "first")[0]), strip(&mended[0]));
}

/// Correlators do not depend on how many components of a source are solved together, which memory decides.
#[test]
fn batches_of_components() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 5 --noise 0.3 -o cfg.ildg");
    let wilson = "configurations = [\"cfg.ildg\"]\n[solve]\noperator = \"clover\"\ncsw = 1.0\nmass = 0.3\n\
                  precision = \"single\"\ntol = 1e-10\n";
    let staggered = "configurations = [\"cfg.ildg\"]\n[solve]\noperator = \"asqtad\"\nmass = 0.1\ntol = 1e-10\n";
    fs::write(room.path("wilson.toml"), wilson).unwrap();
    fs::write(room.path("staggered.toml"), staggered).unwrap();
    let made = |input: &str, flags: &str, folder: &str| {
        room.json(&format!("spectrum {input}.toml --out {input}.{folder} {flags}"));
        lines(&room, &format!("{input}.{folder}")).swap_remove(0)
    };
    for (input, names, sizes) in [
        (
            "wilson",
            &["g5", "gx", "nucleon.positive"][..],
            &[json!([12]), json!(vec![1; 12]), json!([4, 4, 4]), json!([5, 5, 2])][..],
        ),
        ("staggered", &["pion", "vector"][..], &[json!([3]), json!([1, 1, 1]), json!([2, 1])][..]),
    ] {
        let whole = made(input, "", "whole");
        assert_eq!(whole["batches"], sizes[0]);
        for expected in &sizes[1..] {
            let batch = &expected[0];
            let split = made(input, &format!("--batch {batch}"), &format!("{batch}"));
            assert_eq!(&split["batches"], expected);
            for name in names {
                let (a, b) = (correlator(&split, name, [0; 3]), correlator(&whole, name, [0; 3]));
                // Solutions with residuals of 1e-10 times the condition of M, of which the nucleon has three.
                let scale = b.iter().map(|z| z.norm()).fold(0.0, f64::max);
                let off = a.iter().zip(&b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
                assert!(off < 1e-8 * scale, "{input} in batches of {batch}: {name} is off by {off:e} of {scale:e}");
            }
        }
        // The key of the input does the same; less memory makes smaller batches.
        let check = |flags: &str| room.json(&format!("check {input}.toml {flags}"));
        let needed = check("")["memory"]["needed_bytes"].as_u64().unwrap();
        let less = format!("--memory {}", needed - 1);
        let half = if input == "wilson" { json!([6, 6]) } else { json!([2, 1]) };
        assert_eq!((&check(&less)["batches"], &check(&less)["batches_limited_by"]), (&half, &json!("memory")));
        assert_eq!(made(input, &less, "less")["batches"], half);
        assert_eq!(check("--set batch=2")["batches"][0], 2);
    }
    let run = room.run("spectrum wilson.toml --out said --backend cpu --batch 6 -v");
    assert!(run.stderr.contains("cfg.ildg: 12 right-hand sides in batches of 6 (as requested)"), "{}", run.stderr);
    // The log names keys as the input does.
    for line in
        ["configurations = cfg.ildg (wilson.toml:1:19)", "solve.mass = 0.3 (wilson.toml:5:8)", "batch = 6 (flag)"]
    {
        assert!(run.stderr.contains(&format!("info: input: {line}\n")), "{line} is not in {}", run.stderr);
    }
    room.fails(2, "spectrum wilson.toml --out no --set solve.batch=3", &["solve.batch", "batch = N"]);
    room.fails(
        2,
        "spectrum wilson.toml --out no --set solve.sources=3",
        &["solve.sources", "does not apply to `ferrite spectrum`"],
    );
    room.fails(2, "spectrum wilson.toml --out no --batch 0", &["--batch", "1 to 64"]);
}

/// Bins, correlators with errors, and what else is shown.
#[test]
fn summaries() {
    let room = Room::new();
    with_wilson_input(&room);
    for seed in 1..6 {
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} --noise 0.3 -o cfg.{seed}.ildg"));
    }
    let run = "spectrum run.toml cfg.1.ildg cfg.2.ildg cfg.3.ildg cfg.4.ildg cfg.5.ildg --out out";
    let plain = room.json(run);
    assert_eq!(plain["jackknife"], json!({ "bin": 1, "bins": 5, "left_out": 0 }));
    // The mean and its error, by hand.
    let values: Vec<f64> = lines(&room, "out").iter().map(|line| correlator(line, "g5", [0; 3])[1].re).collect();
    let check = |found: &Value, values: &[f64]| {
        let (n, mean) = (values.len() as f64, values.iter().sum::<f64>() / values.len() as f64);
        let error = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt();
        let one = &found["correlators"][0]["values"][1];
        assert_eq!(found["correlators"][0]["hadron"], "pion");
        assert!((one["value"].as_f64().unwrap() / mean - 1.0).abs() < 1e-12, "{one} {mean}");
        assert!((one["error"].as_f64().unwrap() / error - 1.0).abs() < 1e-9, "{one} {error}");
    };
    check(&plain, &values);
    // The same lines in bins of two; the fifth fills none.
    let binned = room.json(&format!("{run} --set bin=2 --set plot=gt --set plot=gxgy"));
    assert_eq!(binned["jackknife"], json!({ "bin": 2, "bins": 2, "left_out": 1 }));
    // The page has the errors of the run.
    let page = room.json("report out");
    let [own, its] = [&page["hadrons"][0]["masses"], &binned["effective_masses"][0]["masses"]];
    assert_eq!((&page["bin"], own), (&json!(2), its));
    check(&binned, &[0.5 * (values[0] + values[1]), 0.5 * (values[2] + values[3])]);
    let names: Vec<&str> =
        binned["effective_masses"].as_array().unwrap().iter().map(|m| m["hadron"].as_str().unwrap()).collect();
    assert_eq!(names, ["pion", "rho", "gt", "gxgy"]);
    let svg = fs::read_to_string(room.path("out/effective-masses.svg")).unwrap();
    for part in [
        "wilson, m = 0.3, point to point on 4×4×4×4",
        "5 configurations in 2 bins of 2, without the last 1",
        "t / a",
        "gxgy",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    let text = room.run(&format!("{run} --backend cpu")).stdout;
    for part in ["out: 5 configurations\n", "C(t)", "all correlators: out/correlators.npy", "out/effective-masses.svg"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let columns = |text: &str| text.lines().find(|line| line.starts_with("C(t)")).unwrap().split_whitespace().count();
    assert_eq!((columns(&text), columns(&room.run(&format!("{run} --backend cpu -v")).stdout)), (2, 3));
    room.fails(2, &format!("{run} --set plot=g6"), &["plot: 'g6' is none of 1, gx"]);
    room.fails(2, &format!("{run} --set plot=nucleon.positive"), &["plot"]);
    room.fails(2, &format!("{run} --set bin=0"), &["bin", "1 to"]);
}

/// Other links under the same name are another configuration; the same links in another folder are the same.
#[test]
fn results_belong_to_what_files_hold() {
    let room = Room::new();
    with_wilson_input(&room);
    let weak = |seed: u32, name: &str| {
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} --noise 0.3 -o {name}"));
    };
    weak(1, "cfg.1.ildg");
    fs::create_dir(room.path("moved")).unwrap();
    let run = "spectrum run.toml --set propagators=kept";
    room.json(&format!("{run} cfg.1.ildg --out out"));
    let line = lines(&room, "out").swap_remove(0);
    for (file, schema) in
        [("out/correlators.json", "ferrite.correlator-axes/1"), ("kept/cfg.1.ildg.json", "ferrite.propagator/1")]
    {
        assert_eq!(room.parsed(file)["schema"], schema);
    }
    assert_eq!(line["content"]["bytes"], fs::metadata(room.path("cfg.1.ildg")).unwrap().len());
    // Moved, and copied, which changes its time: the propagator is read, and a line is not made again.
    for (from, to) in [("cfg.1.ildg", "moved/cfg.1.ildg"), ("moved/cfg.1.ildg", "cfg.1.ildg")] {
        fs::copy(room.path(from), room.path(to)).unwrap();
        fs::remove_file(room.path(from)).unwrap();
        let out = if to.starts_with("moved") { "second" } else { "third" };
        room.json(&format!("{run} {to} --out {out}"));
        assert_eq!(lines(&room, out)[0]["correlators"], line["correlators"]);
        let again = &lines(&room, out)[0];
        assert_eq!((&again["propagators_read"], &again["iterations"]), (&json!(1), &line["iterations"]));
        assert_eq!(room.json(&format!("{run} {to} --out out"))["configurations"].as_array().unwrap().len(), 1);
    }
    // A file of a version before, which noted names: taken by the name, unless the file is younger.
    let without = |path: &str| {
        let mut value = room.parsed(path);
        value.as_object_mut().unwrap().remove("content");
        if !path.ends_with("jsonl") {
            ["schema", "checksum", "solve"].iter().for_each(|key| drop(value.as_object_mut().unwrap().remove(*key)));
        }
        fs::write(room.path(path), format!("{value}\n")).unwrap();
    };
    for folder in ["old", "old-kept"] {
        fs::create_dir(room.path(folder)).unwrap();
    }
    fs::copy(room.path("out/correlators.jsonl"), room.path("old/correlators.jsonl")).unwrap();
    for file in ["cfg.1.ildg.npy", "cfg.1.ildg.json"] {
        fs::copy(room.path(&format!("kept/{file}")), room.path(&format!("old-kept/{file}"))).unwrap();
    }
    without("old/correlators.jsonl");
    without("old-kept/cfg.1.ildg.json");
    let old = room.run("spectrum run.toml cfg.1.ildg --out old --backend cpu");
    assert!(old.code == Some(0) && old.stderr.contains("line 1 was written by an earlier version"), "{}", old.stderr);
    let old = room.run("spectrum run.toml cfg.1.ildg --set propagators=old-kept --out fourth --backend cpu");
    assert!(old.code == Some(0) && old.stderr.contains("old-kept/cfg.1.ildg.json was written by an earlier version"));
    let of_old = &lines(&room, "fourth")[0];
    assert_eq!(
        (&of_old["propagators_read"], &of_old["iterations"], &of_old["seconds"]),
        (&json!(1), &Value::Null, &Value::Null)
    );
    assert!(of_old["true_residual"].as_f64().unwrap() < 1e-6);

    // Made again with other links.
    weak(2, "cfg.1.ildg");
    let cpu = "--backend cpu cfg.1.ildg";
    for out in ["out", "old"] {
        let parts = ["cfg.1.ildg have changed since line 1 of", "name another folder"];
        room.fails(2, &format!("spectrum run.toml {cpu} --out {out}"), &parts);
    }
    for kept in ["kept", "old-kept"] {
        let command = format!("spectrum run.toml {cpu} --set propagators={kept} --out fifth");
        room.fails(
            2,
            &command,
            &["cfg.1.ildg.npy was made before the links of cfg.1.ildg changed", "name another folder"],
        );
    }
    // The same links under another name are a chain that repeats itself, and count.
    fs::copy(room.path("cfg.1.ildg"), room.path("cfg.2.ildg")).unwrap();
    room.json("spectrum run.toml cfg.1.ildg cfg.2.ildg --out chain");
    assert_eq!(lines(&room, "chain").len(), 2);
}

/// Propagators of all kinds and precisions: what is read has the true residual that a plain application of the operator finds, and the
/// iterations of the solve that made it. What was damaged is never used.
#[test]
fn damaged_propagators_are_computed_again() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,4 --seed 11 --noise 0.3 -o cfg.ildg");
    for (name, solve, apply) in [
        ("wilson", "operator = \"wilson\"\nmass = 0.3\nprecision = \"single\"\n", "wilson --mass 0.3"),
        (
            "clover",
            "operator = \"clover\"\nmass = 0.3\ncsw = 1.1\nprecision = \"half\"\n",
            "clover --mass 0.3 --csw 1.1",
        ),
        ("hisq", "operator = \"hisq\"\nmass = 0.2\nprecision = \"double\"\n", "hisq --mass 0.2"),
        (
            "spread",
            "operator = \"asqtad\"\nmass = 0.2\nspread-boundary = true\n",
            "asqtad --mass 0.2 --spread-boundary",
        ),
    ] {
        let input = format!("origin = [1, 2, 0, 3]\npropagators = \"kept\"\n[solve]\n{solve}tol = 1e-8\n");
        fs::write(room.path("run.toml"), input).unwrap();
        let run = |out: &str| {
            let run = room.run(&format!("spectrum run.toml cfg.ildg --out {name}-{out} --backend cpu"));
            assert_eq!(run.code, Some(0), "{name} {out}: {}", run.stderr);
            (lines(&room, &format!("{name}-{out}")).swap_remove(0), run.stderr)
        };
        let (first, _) = run("first");
        let [array, about] = ["npy", "json"].map(|end| room.path(&format!("kept/cfg.ildg.{end}")));
        let [whole, text] = [&array, &about].map(|path| fs::read(path).unwrap());
        // As it was: with the residual of an independent path through the program, b − M x in plain sums.
        let (again, said) = run("again");
        assert!(said.contains("kept/cfg.ildg.npy: read the propagator; |b - Mx| / |b| = "), "{said}");
        assert_eq!((&again["propagators_read"], &again["correlators"]), (&json!(1), &first["correlators"]));
        for key in ["iterations", "seconds", "batches", "plaquette"] {
            assert_eq!((&again[key], again[key].is_null()), (&first[key], false), "{name} {key}");
        }
        room.json(&format!("apply --gauge cfg.ildg --operator {apply} --source file:kept/cfg.ildg.npy -o image.npy"));
        let image = npy(&room.path("image.npy"));
        let (components, site) = (if name == "wilson" || name == "clover" { 12 } else { 3 }, 1 + 4 * (2 + 4 * (4 * 3)));
        let worst = image.chunks(image.len() / components).enumerate().map(|(column, image)| {
            let at = 2 * (site * components + column);
            let off = |(k, x): (usize, &f64)| if k == at { x - 1.0 } else { *x };
            image.iter().enumerate().map(|one| off(one).powi(2)).sum::<f64>().sqrt()
        });
        let (worst, found) = (worst.fold(0.0, f64::max), again["true_residual"].as_f64().unwrap());
        // Rounding of M x to 1e-16 in doubles, beside a residual near 1e-8.
        assert!((found / worst - 1.0).abs() < 1e-6 && found < 1e-8, "{name}: {found} {worst}");
        let noted: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(noted["solve"]["true_residual"], first["true_residual"]);

        // The numbers begin at byte 128. The last bit of one, a high one, a number that is none, half of the file, and zeros instead of a header.
        let (mut low, mut high, mut none, mut head) = (whole.clone(), whole.clone(), whole.clone(), whole.clone());
        low[128 + 16 * 77] ^= 1;
        high[128 + 16 * 77 + 6] ^= 16;
        none[128 + 16 * 5..][..8].copy_from_slice(&f64::NAN.to_le_bytes());
        head[..64].fill(0);
        let half = whole[..whole.len() / 2].to_vec();
        let one = whole[..whole.len() - 1].to_vec();
        let damaged =
            [("low", low), ("high", high.clone()), ("none", none), ("half", half), ("one", one), ("head", head)];
        // How a file is damaged has nothing to do with the operator.
        let kinds = if name == "wilson" { 6 } else { 1 };
        for (damage, bytes) in damaged.into_iter().take(kinds) {
            fs::write(&array, bytes).unwrap();
            let (line, said) = run(damage);
            let sentence = said
                .lines()
                .find(|line| line.contains("kept/cfg.ildg.npy: ") && line.contains("the propagator is computed again"));
            assert!(sentence.is_some_and(|sentence| sentence.starts_with("warning: ")), "{name} {damage}: {said}");
            assert_eq!(
                (&line["propagators_read"], &line["correlators"]),
                (&json!(0), &first["correlators"]),
                "{name} {damage}"
            );
            assert!(fs::read(&array).unwrap() == whole, "{name} {damage}");
        }
        // Earlier versions noted no checksum: the residual decides.
        let mut old = noted.clone();
        ["checksum", "solve"].iter().for_each(|key| drop(old.as_object_mut().unwrap().remove(*key)));
        let old = old.to_string();
        for (folder, bytes, read) in [("old", &whole, 1), ("old-damaged", &high, 0)] {
            fs::write(&array, bytes).unwrap();
            fs::write(&about, &old).unwrap();
            let (line, said) = run(folder);
            assert_eq!(line["propagators_read"], read, "{name} {folder}: {said}");
            assert_eq!(said.contains(", requested 1e-8; the propagator is computed again"), read == 0, "{said}");
            assert_eq!(line["correlators"], first["correlators"], "{name} {folder}");
        }
        assert!(fs::read(&array).unwrap() == whole);
        // What is noted cannot be read: refused before anything is solved.
        fs::write(&about, &text[..text.len() / 2]).unwrap();
        let command = format!("spectrum run.toml cfg.ildg --out {name}-no --backend cpu");
        room.fails(
            2,
            &command,
            &["kept/cfg.ildg.json is not JSON", "remove kept/cfg.ildg.json to compute", "to compute the propagator"],
        );
        fs::remove_dir_all(room.path("kept")).unwrap();
    }
}

/// Files that a killed run has left half written are removed; those of runs that may be writing are not.
#[test]
fn half_written_propagators_are_swept() {
    let room = Room::new();
    with_wilson_input(&room);
    room.json("generate weak-field --lattice 2,2,2,4 --seed 1 --noise 0.3 -o cfg.ildg");
    fs::create_dir(room.path("kept")).unwrap();
    let gone = {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let here = std::process::id();
    let [left, of_another, writing, others] = [
        format!("kept/.cfg.ildg.npy.{gone}-0.part"),
        format!("kept/.elsewhere.ildg.json.{gone}-3.part"),
        format!("kept/.cfg.ildg.npy.{here}-0.part"),
        format!("kept/.notes.txt.{gone}-0.part"),
    ];
    for name in [&left, &of_another, &writing, &others] {
        fs::write(room.path(name), "half").unwrap();
    }
    let run = room.run("spectrum run.toml cfg.ildg --set propagators=kept --out out --backend cpu");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("kept: removed 2 half-written files of a run that was killed"), "{}", run.stderr);
    assert_eq!(
        [&left, &of_another, &writing, &others].map(|name| room.path(name).exists()),
        [false, false, true, true]
    );
    assert!(room.path("kept/cfg.ildg.npy").exists());
}

/// A mistake that would end a run after hours ends it before the first solve.
#[test]
fn propagators_need_names_of_their_own() {
    let room = Room::new();
    with_wilson_input(&room);
    for (seed, folder) in [(1, "a"), (2, "b")] {
        fs::create_dir(room.path(folder)).unwrap();
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} -o {folder}/cfg.ildg"));
    }
    let both = "spectrum run.toml a/cfg.ildg b/cfg.ildg --backend cpu --out out";
    let parts = ["a/cfg.ildg and b/cfg.ildg would both store", "begin with kept/cfg.ildg: "];
    room.fails(2, &format!("{both} --set propagators=kept"), &parts);
    assert!(!room.path("out").exists() && !room.path("kept").exists());
    assert_eq!(room.run(both).code, Some(0));
    // A propagator of another mass, of the second configuration.
    fs::copy(room.path("b/cfg.ildg"), room.path("b/other.ildg")).unwrap();
    room.json("spectrum run.toml b/other.ildg --set propagators=kept --set solve.mass=0.4 --out other");
    let late = "spectrum run.toml a/cfg.ildg b/other.ildg --backend cpu --set propagators=kept --out late";
    room.fails(2, late, &["kept/other.ildg.npy", "another value of input.solve.mass"]);
    assert!(!room.path("late").exists());
}

/// A key that is given with its default, or a number in other words, is the same input.
#[test]
fn inputs_are_the_same_by_value() {
    let room = Room::new();
    with_wilson_input(&room);
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o cfg.ildg");
    let run = "spectrum run.toml cfg.ildg --out out";
    room.json(run);
    for same in ["bc-time=antiperiodic", "mass=0.300", "tol=0.000001", "xi=1.0", "record=0", "reunitarise=false"] {
        room.json(&format!("{run} --set solve.{same}"));
    }
    assert_eq!(lines(&room, "out").len(), 1);
    room.fails(2, &format!("{run} --set solve.bc-time=periodic"), &["made with another value of solve.bc-time"]);
}

/// Lines and kept propagators have the keys that their numbers depend on, and no others: folders of all versions compare them.
#[test]
fn inputs_have_the_keys_that_matter() {
    let room = Room::new();
    let of_solve = "operator = \"wilson\"\nprecision = \"single\"\ntol = 1e-6\n";
    let shell = "source = \"shell\"\nnucleon = false\npropagators = \"kept\"\norigins = [\"0,0,0,0\", \"1,0,0,2\"]\n\
                 [shell]\nwidth = 1.0\nsteps = 4\nape-weight = 2.5\nape-steps = 2\n";
    let quarks =
        "[[quark]]\nname = \"light\"\nmass = 0.4\n[[quark]]\nname = \"heavy\"\nmass = 0.8\nmomentum = [0.25, 0, 0]\n";
    fs::write(room.path("run.toml"), format!("{shell}[solve]\nmass = 0.4\n{of_solve}{quarks}")).unwrap();
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o cfg.ildg");
    room.json("spectrum run.toml cfg.ildg --out out");
    let shell = json!({ "width": 1.0, "steps": 4, "ape_weight": 2.5, "ape_steps": 2 });
    let solve = |mass: &str| json!({ "operator": "wilson", "mass": mass, "tol": "1e-6" });
    let mut heavy = solve("0.8");
    heavy["momentum"] = json!([0.25, 0.0, 0.0]);
    let expected = json!({
        "source": "shell", "seed": null, "shell": shell, "sink": null, "origins": [[0, 0, 0, 0], [1, 0, 0, 2]],
        "quarks": { "light": solve("0.4"), "heavy": heavy }, "mesons": ["light-light", "light-heavy", "heavy-heavy"],
        "momenta": 1, "nucleon": false,
    });
    assert_eq!(lines(&room, "out")[0]["input"], expected);
    let kept = fs::read_to_string(room.path("kept/cfg.ildg.heavy.1_0_0_2.json")).unwrap();
    let mut of_heavy = shell;
    of_heavy["momentum"] = json!([0.25, 0.0, 0.0]);
    let expected =
        json!({ "source": "shell", "seed": null, "shell": of_heavy, "origin": [1, 0, 0, 2], "solve": solve("0.8") });
    assert_eq!(kept.parse::<Value>().unwrap()["input"], expected);

    let three =
        "momenta = 0\nnucleon = false\npcac = true\ntimes = 2\n[three-point]\nseparations = [1]\nsink = \"g5\"\n";
    fs::write(room.path("run.toml"), format!("{three}[solve]\nmass = 0.4\n{of_solve}")).unwrap();
    room.json("spectrum run.toml cfg.ildg --out three");
    let expected = json!({
        "source": "point", "seed": null, "shell": null, "sink": null, "origin": [0, 0, 0, 0], "times": 2, "momenta": 1,
        "solve": solve("0.4"), "nucleon": false, "pcac": true,
        "three-point": { "sink": "g5", "separations": [1], "momentum": [0, 0, 0], "charge": false },
    });
    assert_eq!(lines(&room, "three")[0]["input"], expected);
}

/// Lines that do not hold what they should are refused with their place.
#[test]
fn damaged_lines_have_places() {
    let room = Room::new();
    with_wilson_input(&room);
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o cfg.ildg");
    room.json("spectrum run.toml cfg.ildg --out out");
    let good = lines(&room, "out").swap_remove(0);
    let refused = |change: &dyn Fn(&mut Value), part: &str| {
        let mut line = good.clone();
        change(&mut line);
        fs::write(room.path("out/correlators.jsonl"), format!("{line}\n")).unwrap();
        let place = "out/correlators.jsonl, line 1: ";
        room.fails(2, "spectrum run.toml cfg.ildg --out out --backend cpu", &[place, part]);
    };
    let values = |line: &mut Value, k: usize, n: usize| {
        line["correlators"][k]["values"].as_array_mut().unwrap().truncate(n);
    };
    refused(&|line| values(line, 15, 3), "g5 has 3 values, but 1 has 4");
    refused(&|line| values(line, 0, 2), "gx has 4 values, but 1 has 2");
    refused(&|line| (0..16).for_each(|k| values(line, k, 0)), "1 has 0 values");
    refused(&|line| line["content"] = json!({ "bytes": 3 }), "content: missing field `crc32`");
    refused(&|line| line["correlators"] = json!([]), "no correlators");
}

/// A copy in another folder counts once, and links on another lattice do not come into the same means.
#[test]
fn configurations_belong_together() {
    let room = Room::new();
    with_wilson_input(&room);
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o cfg.ildg");
    room.json("generate weak-field --lattice 8,4,4,4 --seed 2 -o wide.ildg");
    fs::create_dir(room.path("there")).unwrap();
    fs::copy(room.path("cfg.ildg"), room.path("there/cfg.ildg")).unwrap();
    let run = room.run("spectrum run.toml cfg.ildg there/cfg.ildg --out out --backend cpu");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("there/cfg.ildg is a copy of cfg.ildg"), "{}", run.stderr);
    assert_eq!(lines(&room, "out").len(), 1);
    let wide = "spectrum run.toml wide.ildg --out out --backend cpu";
    room.fails(2, wide, &["has configurations on 4×4×4×4, but this run would add configurations on 8×4×4×4"]);
    // Found out by the lines, too.
    let mut line = lines(&room, "out").swap_remove(0);
    let whole = format!("{line}\n");
    line["lattice"] = json!([8, 4, 4, 4]);
    line["configuration"] = json!("other");
    line["file"] = json!("/other");
    fs::write(room.path("out/correlators.jsonl"), format!("{whole}{line}\n")).unwrap();
    let again = "spectrum run.toml cfg.ildg --out out --backend cpu";
    room.fails(2, again, &["line 2: the correlators of other differ from those of cfg.ildg"]);
    // A line that was torn in the middle of a letter.
    let torn = [whole.as_bytes(), b"{\"absolute\":\"\xc3"].concat();
    fs::write(room.path("out/correlators.jsonl"), torn).unwrap();
    room.json("report out");
    room.json("spectrum run.toml cfg.ildg --out out");
    assert_eq!(fs::read_to_string(room.path("out/correlators.jsonl")).unwrap(), whole);
}

/// A file to which another process adds lines is not read, and a folder that cannot be written to is found before the first solve.
#[test]
fn folders_are_there_to_be_written() {
    let room = Room::new();
    with_wilson_input(&room);
    room.json("generate weak-field --lattice 4,4,4,4 --seed 1 -o cfg.ildg");
    fs::create_dir(room.path("out")).unwrap();
    fs::write(room.path("out/correlators.jsonl"), "no line\n").unwrap();
    let lock = fs::File::create(room.path("out/.lock")).unwrap();
    lock.lock().unwrap();
    let run = "spectrum run.toml cfg.ildg --backend cpu --out";
    room.fails(2, &format!("{run} out"), &["out is in use by another process"]);
    drop(lock);
    room.fails(2, &format!("{run} out"), &["line 1: this is not JSON"]);
    // No user can make files there.
    room.fails(2, &format!("{run} new --set propagators=/proc"), &["no file can be created in /proc"]);
    assert!(!room.path("new/correlators.jsonl").exists());
}
