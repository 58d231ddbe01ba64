//! `ferrite fit` on records whose truth is known, and the pages that draw them.
use crate::program::*;
use ferrite::gpu_kernels::random::Philox;
use ferrite::statistics::fit::least_squares::Model;
use ferrite::statistics::fit::potential::Cornell;
use serde_json::{Value, json};
use std::fs;

/// Whether an estimate is within so many of its errors of the truth.
fn is_near(estimate: &Value, truth: f64, errors: f64) -> bool {
    let (value, error) = (number(&estimate["value"]), number(&estimate["error"]));
    error > 0.0 && (value - truth).abs() < errors * error
}

/// A folder of `ferrite spectrum` in which the pion has a E = 0.4, the nucleon 0.9 and `gxgt` is a sinh of 0.5, with noise that
/// neighbouring times share.
fn spectrum(room: &Room, folder: &str, configurations: u64) {
    fs::create_dir_all(room.path(folder)).unwrap();
    let extent = 20;
    let line = |number: u64| {
        let mut random = Philox::new(9, number, 1);
        let mut noisy = |of: &dyn Fn(f64) -> f64| {
            let mut walk = random.normal_pair()[0];
            let mut value = |t: i32| {
                walk = 0.8 * walk + 0.6 * random.normal_pair()[0];
                [of(f64::from(t)) * (1.0 + 0.02 * walk), 0.0]
            };
            (0..extent).map(&mut value).collect::<Vec<[f64; 2]>>()
        };
        let back = |t: f64| f64::from(extent) - t;
        let one = |name: &str, values: Vec<[f64; 2]>| json!({ "name": name, "momentum": [0, 0, 0], "values": values });
        let correlators = json!([
            one("g5", noisy(&|t| 3.0 * ((-0.4 * t).exp() + (-0.4 * back(t)).exp()))),
            one("gxgt", noisy(&|t| (-0.5 * t).exp() - (-0.5 * back(t)).exp())),
            one("nucleon.positive", noisy(&|t| 0.1 * (-0.9 * t).exp())),
        ]);
        let file = format!("cfg.{number}");
        let line = json!({
            "schema": "ferrite.correlators/1", "configuration": file, "file": file, "lattice": [8, 8, 8, extent],
            "input": { "source": "point" }, "correlators": correlators,
        });
        format!("{line}\n")
    };
    let text: String = (0..configurations).map(line).collect();
    fs::write(room.path(folder).join("correlators.jsonl"), text).unwrap();
}

#[test]
fn hadrons_are_fitted() {
    let room = Room::new();
    spectrum(&room, "many", 80);
    let found = room.json("fit many");
    let hadrons = found["hadrons"].as_array().unwrap();
    let names: Vec<&str> = hadrons.iter().map(|one| one["hadron"].as_str().unwrap()).collect();
    assert_eq!(names, ["pion", "nucleon"]);
    for (one, truth, form) in [(&hadrons[0], 0.4, "cosh"), (&hadrons[1], 0.9, "exp")] {
        // Of one experiment, with a seed that has no reason to be a rare one: 4 errors are 1 in 15000.
        assert!(is_near(&one["energy"], truth, 4.0) && one["form"] == form, "{one}");
        let average = &one["average"]["energy"];
        let error = number(&average["statistical"]).hypot(number(&average["systematic"]));
        assert!((number(&average["value"]) - truth).abs() < 4.0 * error, "{one}");
        let p = number(&one["p_value"]);
        assert!((0.001..1.0).contains(&p) && number(&one["chi2"]) >= 0.0 && one["dof"].as_u64().unwrap() > 0);
        assert_eq!((&one["windows"][0]["window"], one["correlator"].as_array().unwrap().len()), (&one["window"], 20));
    }
    assert_eq!((&found["configurations"], &found["bins"], &found["left_out"]), (&json!(80), &json!(80), &json!(0)));
    // A window that was given, another form, bins, and the bootstrap.
    let given =
        room.json("fit many --hadron gxgt --form sinh --window 2:8 --bin 3 --bootstrap 200 --covariance diagonal");
    let one = &given["hadrons"][0];
    assert!(is_near(&one["energy"], 0.5, 4.0), "{one}");
    assert_eq!((&one["window"], &one["average"], &one["dof"]), (&json!([2, 8]), &Value::Null, &json!(5)));
    assert_eq!((&given["bins"], &given["left_out"], &given["bin"]), (&json!(26), &json!(2), &json!(3)));
    assert_eq!(given["resampling"], json!({ "kind": "bootstrap", "draws": 200, "seed": 1 }));
    assert!(number(&one["chi2"]) > 0.0 && number(&one["expected_chi2"]) < 5.0 && one["covariance"] == "diagonal");
    // 26 bins of 3 are the first 78 configurations, whose mean is rounded in another order.
    let lines = room.lines("many/correlators.jsonl");
    let values = lines.iter().take(78).map(|line| number(&line["correlators"][1]["values"][3][0]));
    let (mean, shown) = (values.sum::<f64>() / 78.0, number(&one["correlator"][3]["value"]));
    assert!((shown / mean - 1.0).abs() < 1e-13, "{shown} {mean}");
    let text = room.run("fit many --states 1,2").stdout;
    for part in ["80 configurations, jackknife errors", "pion", "a E = 0.4", "chi2/dof", "mean over", "probability"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Half a line is that of a configuration which is not done.
    let lines = fs::read_to_string(room.path("many/correlators.jsonl")).unwrap();
    fs::write(room.path("many/correlators.jsonl"), format!("{lines}{{\"half")).unwrap();
    let half = room.run("fit many --json");
    assert!(half.stderr.contains("incomplete"), "{}", half.stderr);
    assert_eq!(object(&half)["hadrons"], found["hadrons"]);
}

/// Writes a folder of `ferrite spectrum` with a pion of these values for each configuration.
fn pions(room: &Room, folder: &str, values: impl Iterator<Item = Vec<f64>>) {
    fs::create_dir_all(room.path(folder)).unwrap();
    let line = |(number, values): (usize, Vec<f64>)| {
        let values: Vec<[f64; 2]> = values.into_iter().map(|c| [c, 0.0]).collect();
        let (file, extent) = (format!("cfg.{number}"), values.len());
        let line = json!({
            "schema": "ferrite.correlators/1", "configuration": file, "file": file, "lattice": [8, 8, 8, extent],
            "input": { "source": "point" }, "correlators": [{ "name": "g5", "momentum": [0, 0, 0], "values": values }],
        });
        format!("{line}\n")
    };
    let text: String = values.enumerate().map(line).collect();
    fs::write(room.path(folder).join("correlators.jsonl"), text).unwrap();
}

/// Means without a value, windows without a minimum and a χ² that is too large stand in the text, in the JSON and on the page.
#[test]
fn what_is_missing_in_a_fit_is_reported() {
    let room = Room::new();
    // A mean of configurations that is near 0 at t = 6: without some of them it has the other sign, and no effective mass.
    let values = |k: u32| {
        let mut random = Philox::new(4, u64::from(k), 3);
        let noisy = |t: u32| (-0.5 * f64::from(t)).exp() * (1.0 + 0.02 * random.normal_pair()[0]);
        let mut all: Vec<f64> = (0..20).map(noisy).collect();
        all[6] = if k == 0 { 1.0 } else { -0.024 };
        all
    };
    pions(&room, "gap", (0..40).map(values));
    let found = room.json("fit gap --hadron pion --form exp --window 1:5 --states 1,2 --covariance diagonal");
    let pion = &found["hadrons"][0];
    assert!(pion["energy"]["error"].as_f64().unwrap() > 0.0 && pion["energy"]["missing"].is_null(), "{pion}");
    // One state and a constant beside it: neither one nor two decaying states in the window describe the data.
    let bad = |k: u32| {
        let mut random = Philox::new(5, u64::from(k), 3);
        let value = |t: u32| {
            ((-0.5 * f64::from(t)).exp() * (0.3 * f64::from(t)).cos()) * (1.0 + 0.001 * random.normal_pair()[0])
        };
        (0..20).map(value).collect::<Vec<f64>>()
    };
    pions(&room, "bad", (0..60).map(bad));
    let command = "fit bad --hadron pion --form exp --window 0:4 --states 1,2";
    let found = room.json(command);
    let pion = &found["hadrons"][0];
    let remarks: Vec<&str> = pion["remarks"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
    assert_eq!((remarks.len(), remarks[0]), (2, "2 states: chi2 has no minimum"), "{remarks:?}");
    assert!(remarks[1].contains("does not describe the data"), "{remarks:?}");
    let text = room.run(command).stdout;
    assert!(remarks.iter().all(|remark| text.contains(remark)), "{text}");
    fs::write(room.path("bad.json"), found.to_string()).unwrap();
    room.run("report bad.json -o bad.html");
    let page = fs::read_to_string(room.path("bad.html")).unwrap();
    assert!(remarks.iter().all(|remark| page.contains(remark)), "{page}");
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let room = Room::with_weak_field();
    spectrum(&room, "few", 3);
    spectrum(&room, "some", 6);
    for (command, parts) in [
        ("fit none", ["none", "cannot be read"]),
        ("fit .", ["did not write this folder", "ferrite measure"]),
        ("fit weak.ildg", ["weak.ildg", "ferrite spectrum"]),
        ("fit few", ["few", "3 samples"]),
        ("fit some --hadron eta", ["'eta'", "pion, nucleon, g5"]),
        ("fit some --window 3:20", ["--window", "19"]),
        ("fit some --window 3:14", ["T/2 = 10", "no later than"]),
        ("fit some --window 8:3", ["'8:3'", "A:B"]),
        ("fit some --window 1:10 --hadron pion --covariance full", ["not invertible", "--covariance shrunk"]),
        ("fit some --window 3:4 --hadron pion", ["2 data for 2 parameters", "longer window"]),
        ("fit some --states 3", ["'3'", "neither 1 nor 2"]),
        ("fit some --distances 1:2", ["--distances", "correlators"]),
        ("fit some --seed 2", ["--bootstrap", "required"]),
    ] {
        room.fails(2, command, &parts);
    }
}

fn measurement(number: u64, more: &Value) -> Value {
    let file = format!("cfg.{number}");
    let mut line = json!({
        "schema": "ferrite.measurement/1", "file": file, "lattice": [8, 8, 8, 16], "rectangle": 0.3, "charge": 0.1,
        "plaquette": { "mean": 0.5 + 1e-3 * number as f64, "spatial": 0.5, "temporal": 0.5 },
        "polyakov_loop": [0.1, 0.2], "energy": { "space": 1.0, "time": 1.0 },
    });
    for (key, value) in more.as_object().unwrap() {
        line[key.as_str()] = value.clone();
    }
    line
}

/// t² E = a t with a that scatters about 0.2: ⟨t² E⟩ is 0.3 where t = 0.3/⟨a⟩, and so is t d/dt of it. Means of t₀ of each would be larger:
/// ⟨1/a⟩ > 1/⟨a⟩.
#[test]
fn scales_are_those_of_the_mean() {
    let room = Room::new();
    let (mut lines, mut sum) = (String::new(), 0.0);
    let count = 30;
    for number in 0..count {
        let a = 0.2 * (1.0 + 0.3 * Philox::new(2, number, 2).normal_pair()[0].clamp(-2.0, 2.0));
        sum += a / count as f64;
        let point = |k: i32| {
            let (t, energy) = (0.1 * f64::from(k), if k == 0 { 5.0 } else { a / (0.1 * f64::from(k)) });
            json!({ "t": t, "energy": { "space": 0.5 * energy, "time": 0.5 * energy }, "plaquette_energy": 1.0, "charge": 2.0 })
        };
        let flow: Vec<Value> = (0..=40).map(point).collect();
        lines += &format!("{}\n", measurement(number, &json!({ "flow": flow, "t0": 1.0, "w0": 1.0 })));
    }
    fs::write(room.path("flow.jsonl"), &lines).unwrap();
    let found = room.json("fit flow.jsonl");
    let flow = &found["flow"];
    assert!((number(&flow["t0"]["value"]) - 0.3 / sum).abs() < 1e-12, "{flow}");
    assert!((number(&flow["w0"]["value"]) - (0.3 / sum).sqrt()).abs() < 1e-12);
    assert!((number(&flow["sqrt_8_t0"]["value"]) - (2.4 / sum).sqrt()).abs() < 1e-12);
    // The error of 0.3/ā from that of ā, to first order; a is known to 0.3/√30 of itself, and so is this ratio.
    let spread = number(&flow["points"][10]["scaled_energy"]["error"]);
    assert!((number(&flow["t0"]["error"]) / (0.3 * spread / (sum * sum)) - 1.0).abs() < 0.1);
    assert_eq!((&flow["charge_squared"], &found["potential"]), (&json!({ "value": 4.0, "error": 0.0 }), &Value::Null));
    let binned = room.json("fit flow.jsonl --bin 4 --bootstrap 100 --seed 3");
    assert_eq!((&binned["bins"], &binned["left_out"]), (&json!(7), &json!(2)));
    let text = room.run("fit flow.jsonl").stdout;
    assert!(text.contains("t0 ") && text.contains(" a^2\n") && text.contains("30 configurations"), "{text}");
    // A page, of the lines and of the fit.
    let page = room.json("report flow.jsonl -o flow.html");
    assert_eq!(page["sections"][0]["kind"], "measurements");
    assert_eq!(page["sections"][0]["text"], "30 configurations on 8×8×8×16: gradient flow");
    let html = fs::read_to_string(room.path("flow.html")).unwrap();
    // The plaquette, the flow, and the charge.
    assert!(html.matches("<svg").count() == 3 && html.contains("t² E = 0.3") && !html.contains("NaN"), "{html}");
    fs::write(room.path("fit.json"), found.to_string()).unwrap();
    assert_eq!(room.json("report fit.json")["sections"][0]["text"], "fits of 30 configurations: gradient flow");
    // What does not belong together, and what has nothing to fit.
    let other = measurement(40, &json!({ "flow": [], "t0": null, "w0": null }));
    fs::write(room.path("mixed.jsonl"), format!("{lines}{other}\n")).unwrap();
    let why =
        ["mixed.jsonl, line 31: it has other times of the flow (none) than mixed.jsonl, line 1 (41 times up to 4)"];
    room.fails(2, "fit mixed.jsonl", &why);
    room.fails(2, "report mixed.jsonl", &why);
    fs::write(room.path("plain.jsonl"), format!("{}\n", measurement(1, &json!({})))).unwrap();
    room.fails(2, "fit plain.jsonl", &["neither a flow nor Wilson loops", "--flow T or --loops R,T"]);
    room.fails(2, "fit flow.jsonl --window 1:3", &["--window", "without Wilson loops"]);
    room.fails(2, "fit flow.jsonl --hadron pion", &["--hadron", "measurements"]);
    assert_eq!(room.run("report plain.jsonl").code, Some(0));
}

/// One configuration has no autocorrelation time, and the end of a flow that is the sum of its steps is shown without their rounding.
#[test]
fn one_flow_is_shown_without_rounding() {
    let room = Room::new();
    let mut t = 0.0;
    let mut flow = Vec::new();
    while t < 5.95 {
        flow.push(
            json!({ "t": t, "energy": { "space": 0.01, "time": 0.01 }, "plaquette_energy": 1.0, "charge": 1e-5 }),
        );
        t += 0.1;
    }
    assert!(flow.last().unwrap()["t"].to_string().len() > 12);
    let line = measurement(1, &json!({ "flow": flow, "t0": null, "w0": null }));
    fs::write(room.path("one.jsonl"), format!("{line}\n")).unwrap();
    let text = room.run("fit one.jsonl").stdout;
    assert!(text.contains("at t = 5.9\n") && text.contains("tau            unknown with one configuration"), "{text}");
    room.json("report one.jsonl");
    let page = fs::read_to_string(room.path("report.html")).unwrap();
    for text in [text, page] {
        assert!(!text.contains("NaN") && !text.contains("99999") && !text.contains("00000000"), "{text}");
    }
}

/// Loops of a known potential: α = 0.3, σ = 0.05, r₀ = √(1.35/0.05) = 5.196.
#[test]
fn potentials_are_fitted() {
    let room = Room::new();
    let separations = [[1, 0, 0], [1, 1, 0], [2, 0, 0], [2, 2, 0], [3, 0, 0], [4, 0, 0], [5, 0, 0], [6, 0, 0]];
    let mut lines = String::new();
    for number in 0..60 {
        let mut random = Philox::new(5, number, 2);
        let common = random.normal_pair()[0];
        let loops: Vec<Value> = separations
            .iter()
            .map(|r: &[i32; 3]| {
                let distance = f64::from(r.iter().map(|x| x * x).sum::<i32>()).sqrt();
                let v = Cornell.value(distance, &[0.6, 0.3, 0.05], &mut [0.0; 3]) + 2e-3 * common;
                let mut value = |t: i32| 0.9 * (-v * f64::from(t)).exp() * (1.0 + 5e-3 * random.normal_pair()[0]);
                json!({ "r": r, "values": (1..=6).map(&mut value).collect::<Vec<f64>>() })
            })
            .collect();
        lines += &format!("{}\n", measurement(number, &json!({ "wilson_loops": loops })));
    }
    fs::write(room.path("loops.jsonl"), lines).unwrap();
    for flags in ["", "--window 1:5 --distances 1:6", "--window 2:6 --distances 1.414:5"] {
        let found = room.json(&format!("fit loops.jsonl {flags}"));
        let (at, cornell) = (&found["potential"]["at"], &found["potential"]["cornell"]);
        for (key, truth) in [("r0", 27f64.sqrt()), ("r1", 14f64.sqrt()), ("string_tension", 0.05), ("coulomb", 0.3)] {
            assert!(is_near(&cornell[key], truth, 4.0), "{flags}: {key} {cornell}");
        }
        let of = |k: usize| (number(&at[k]["potential"]["value"]), number(&at[k]["effective"][2]["value"]));
        for (k, r) in separations.iter().enumerate() {
            let distance = f64::from(r.iter().map(|x| x * x).sum::<i32>()).sqrt();
            let v = Cornell.value(distance, &[0.6, 0.3, 0.05], &mut [0.0; 3]);
            assert!(is_near(&at[k]["potential"], v, 4.5), "{}", at[k]);
            assert!((number(&at[k]["amplitude"]["value"]) - 0.9).abs() < 0.05, "{}", at[k]);
            assert!((of(k).1 - v).abs() < 0.01, "{}", at[k]);
        }
        if !flags.is_empty() {
            let [first, last] = [&cornell["window"][0], &cornell["window"][1]].map(number);
            let expected = if flags.contains("1.414") { [2f64.sqrt(), 5.0] } else { [1.0, 6.0] };
            assert!((first - expected[0]).abs() < 1e-12 && (last - expected[1]).abs() < 1e-12, "{cornell}");
        }
    }
    let text = room.run("fit loops.jsonl").stdout;
    assert!(text.contains("V(R) = V0 - alpha/R + sigma R") && text.contains("r0 ") && text.contains("2,2,0"), "{text}");
    room.json("report loops.jsonl");
    let html = fs::read_to_string(room.path("report.html")).unwrap();
    assert!(html.matches("<svg").count() == 2 && html.contains("V₀ − α/R + σR") && html.contains("window"), "{html}");
    room.fails(2, "fit loops.jsonl --window 0:3", &["--window 0:3", "T = 1 to 6"]);
    let few = room.run("fit loops.jsonl --distances 4:5").stdout;
    assert!(few.contains("the fit of V(R) failed: 2 data for 3 parameters"), "{few}");
}

/// Every loop of unit links is 1, so that V is 0. It has no error, so that a fit has no weights.
#[test]
fn unit_links_have_no_potential() {
    let room = Room::new();
    room.json("generate unit --lattice 4,4,4,8 -o unit.ildg");
    let names: Vec<String> = (0..4).map(|k| format!("cfg.{k}.ildg")).collect();
    for name in &names {
        fs::copy(room.path("unit.ildg"), room.path(name)).unwrap();
    }
    room.json(&format!("measure {} --loops 2,3 --off-axis -o loops.jsonl", names.join(" ")));
    let found = room.json("fit loops.jsonl");
    for at in found["potential"]["at"].as_array().unwrap() {
        for v in at["effective"].as_array().unwrap() {
            assert!(number(&v["value"]).abs() < 1e-15 && number(&v["error"]) < 1e-15, "{at}");
        }
        assert!(at["potential"].is_null() && at["why"].as_str().unwrap().contains("not invertible"), "{at}");
    }
    assert!(room.run("fit loops.jsonl").stdout.contains("the fit"));
}

/// A fit is drawn on the page as a curve through its window, with its result as text.
#[test]
fn fits_are_drawn() {
    let room = Room::new();
    spectrum(&room, "many", 40);
    let report = room.json("report many");
    assert!(is_near(&report["hadrons"][0]["fit"]["energy"], 0.4, 4.0), "{report}");
    let html = fs::read_to_string(room.path("many/report.html")).unwrap();
    assert!(html.contains("a E = 0.") && html.contains("; the fit from t = ") && html.contains("window"), "{html}");
    let fit = room.run("fit many --hadron pion --window 3:8 --json").stdout;
    fs::write(room.path("fit.json"), fit).unwrap();
    let page = room.json("report fit.json -o fit.html");
    assert_eq!(
        (&page["sections"][0]["kind"], &page["sections"][0]["text"]),
        (&json!("fit"), &json!("fits of 40 configurations: pion"))
    );
    let html = fs::read_to_string(room.path("fit.html")).unwrap();
    assert!(html.contains("; the fit from t = 3 to 8") && html.matches("<svg").count() == 1, "{html}");
    // Without what the curve needs.
    let mut broken = room.parsed("fit.json");
    broken["hadrons"][0]["extent"] = json!(7);
    fs::write(room.path("broken.json"), broken.to_string()).unwrap();
    room.fails(2, "report broken.json", &["broken.json", "pion", "extent"]);
}
