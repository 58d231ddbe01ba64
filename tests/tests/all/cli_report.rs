//! Pages of `ferrite report` on other things than runs of RHMC.
use crate::program::*;
use serde_json::{Value, json};
use std::fs;

/// Object such as `bench dslash --json` prints.
fn benchmark(processes: u64, microseconds: f64) -> Value {
    let row = |operator: &str, lattice: [u64; 4], microseconds: f64| {
        json!({
            "operator": operator, "precision": "half", "reconstruct": "12", "lattice": lattice, "nrhs": 1,
            "microseconds": microseconds, "gflops": 10.0, "gbps": 20.0, "fraction_of_copy": 0.5,
        })
    };
    json!({
        "schema": "ferrite.bench/1", "version": "0.1.0", "device": "GPU <0>",
        "layout": { "processes": processes, "grid": [1, 1, 1, processes] },
        "rows": [
            row("wilson_dslash", [8, 8, 8, 16], microseconds),
            row("clover_dslash", [8, 8, 8, 8 * processes], microseconds),
        ],
    })
}

fn trace() -> Value {
    let span = |name: &str, ts: f64| json!({ "name": name, "ph": "X", "pid": 1, "tid": 7, "ts": ts, "dur": 2.5 });
    let name = json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": 7, "args": { "name": "t-" } });
    json!({ "displayTimeUnit": "ns", "traceEvents": [name, span("pack", 10.0), span("<script>", 13.0)] })
}

#[test]
fn solves_scaling_and_timelines_are_a_page() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --mass 0.1 --source random:1 --source random:2 --backend cpu --json";
    fs::write(room.path("solve.json"), room.run(solve).stdout).unwrap();
    let text = room.run("report solve.json").stdout;
    assert!(text.starts_with("solve.json: wilson on 4×4×4×8, converged after "), "{text}");
    assert!(text.ends_with("page: report.html\n"), "{text}");
    let page = fs::read_to_string(room.path("report.html")).unwrap();
    assert!(page.contains("Convergence: solve.json") && page.matches("<svg").count() == 1);

    // 40 % more time on half of the lattice, and on the same part.
    fs::write(room.path("one.json"), benchmark(1, 100.0).to_string()).unwrap();
    fs::write(room.path("two.json"), benchmark(2, 70.0).to_string()).unwrap();
    fs::write(room.path("trace.json"), trace().to_string()).unwrap();
    let report = room.json("report solve.json one.json two.json trace.json -o all.html");
    let kinds: Vec<&str> = report["sections"].as_array().unwrap().iter().map(|s| s["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["convergence", "scaling", "scaling", "timeline"]);
    assert_eq!(report["sections"][1]["text"], "2 benchmarks, 2 curves of scaling");
    assert_eq!(report["sections"][3]["text"], "timeline of 2 spans in 1 stream of 1 process");
    let page = fs::read_to_string(room.path("all.html")).unwrap();
    // The convergence, the timeline, and two of scaling: one lattice is the same in all, the other for each process.
    assert_eq!(page.matches("<svg").count(), 4);
    assert!(page.contains("Strong scaling of wilson_dslash, 8×8×8×16 in all"));
    assert!(page.contains("Weak scaling of clover_dslash, 8×8×8×8 for each process"));
    assert!(page.contains("rank 1, t-") && page.contains("GPU &lt;0&gt;"));
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script"));
    // Also one object in each line, and points measured before.
    fs::write(room.path("both.json"), format!("{}\n{}\n", benchmark(1, 100.0), benchmark(4, 30.0))).unwrap();
    let points = json!([
        { "operator": "asqtad_dslash", "precision": "half", "reconstruct": "8", "lattice": [8, 8, 8, 16],
          "grid": [1, 1, 1, 2], "scaling": "weak", "efficiency": 0.93 },
        { "operator": "asqtad_dslash", "grid": [1, 1, 1, 2], "lattice": [8, 8, 8, 16], "microseconds": 3.0 },
    ]);
    fs::write(room.path("points.json"), json!({ "schema": "ferrite.scaling-points/1", "points": points }).to_string())
        .unwrap();
    let text = room.run("report both.json points.json").stdout;
    assert!(text.contains("2 benchmarks, 3 curves of scaling"), "{text}");
    assert!(fs::read_to_string(room.path("report.html")).unwrap().contains("asqtad_dslash, 8×8×8×8 for each process"));
}

/// Times on other devices, and with another way for faces to travel, are other curves.
#[test]
fn what_is_not_to_be_compared_is_not_one_curve() {
    let room = Room::new();
    let run = |processes: u64, microseconds: f64, device: &str, way: Option<(&str, bool)>| {
        let mut run = benchmark(processes, microseconds);
        run["device"] = device.into();
        if let Some((transport, overlap)) = way {
            run["layout"]["transport"] = transport.into();
            run["layout"]["overlap"] = overlap.into();
        }
        run
    };
    let report = |runs: &[Value]| {
        let text = runs.iter().map(|run| format!("{run}\n")).collect::<String>();
        fs::write(room.path("runs.json"), text).unwrap();
        let text = room.run("report runs.json").stdout;
        (text.lines().next().unwrap().to_string(), fs::read_to_string(room.path("report.html")).unwrap())
    };
    // One process on a fast GPU says nothing of two slow ones.
    let (text, _) = report(&[run(1, 10.0, "H200", None), run(2, 70.0, "A100", Some(("direct", true)))]);
    assert_eq!(text, "runs.json: 2 benchmarks, 0 curves of scaling");
    // Threads of a CPU are shared out.
    let (text, _) = report(&[run(1, 10.0, "CPU, 2 threads, AVX2", None), run(2, 7.0, "CPU, 1 thread, AVX2", None)]);
    assert_eq!(text, "runs.json: 2 benchmarks, 2 curves of scaling");
    // One process is what both ways are measured by.
    let (text, page) = report(&[
        run(1, 100.0, "H200", None),
        run(2, 60.0, "H200", Some(("direct", true))),
        run(2, 80.0, "H200", Some(("host", false))),
    ]);
    assert_eq!(text, "runs.json: 3 benchmarks, 4 curves of scaling");
    assert!(page.contains("half, 12 reals, H200, direct") && page.contains("H200, host without overlap"));
    // The same thing twice is said.
    let again = [run(1, 100.0, "H200", None), run(2, 60.0, "H200", None), run(2, 61.0, "H200", None)];
    let (text, page) = report(&again);
    assert!(text.ends_with("2 curves of scaling; 2 points measured more than once; the fastest time counts"), "{text}");
    assert!(page.contains("2 points measured more than once"));
}

#[test]
fn spectra_and_several_masses_are_pages() {
    let room = Room::with_weak_field();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 9 -o other.ildg");
    fs::write(
        room.path("pion.toml"),
        "configurations = ['weak.ildg', 'other.ildg']\nmomenta = 1\n[solve]\nmass = 0.3\ntol = 1e-8\n",
    )
    .unwrap();
    let spectrum = room.json("spectrum pion.toml --out pion");
    let report = room.json("report pion");
    assert_eq!((&report["configurations"], &report["half_line"]), (&json!(2), &json!(false)));
    // The page has what `spectrum` printed.
    let masses = |list: &Value, key: &str| -> Vec<Value> {
        list.as_array().unwrap().iter().map(|hadron| hadron[key].clone()).collect()
    };
    for key in ["hadron", "masses"] {
        assert_eq!(masses(&report["hadrons"], key), masses(&spectrum["effective_masses"], key));
    }
    let page = fs::read_to_string(room.path("pion/report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 2 * report["hadrons"].as_array().unwrap().len());
    for part in
        ["pion", "rho", "nucleon", "Effective mass", "solve.mass", "2 configurations are too few for reliable errors"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script") && !page.contains("NaN") && !page.contains("src="));
    let several =
        "solve --gauge weak.ildg --operator staggered --masses 0.3,0.5 --source random:1 --backend cpu --json";
    fs::write(room.path("masses.json"), room.run(several).stdout).unwrap();
    let report = room.json("report pion masses.json -o both.html");
    assert_eq!(report["sections"][0]["kind"], "spectrum");
    assert_eq!(report["sections"][1]["text"], "staggered on 4×4×4×8, 2 systems, all converged");
    let page = fs::read_to_string(room.path("both.html")).unwrap();
    assert!(page.contains("<td>m = 0.3</td>") && page.contains("Several systems: masses.json"));
    // Whatever is in the lines.
    fs::write(room.path("pion/correlators.jsonl"), "{}\n").unwrap();
    room.fails(2, "report pion", &["correlators.jsonl, line 1", "schema"]);
    fs::write(room.path("pion/correlators.jsonl"), [0xffu8, 0xfe, b'\n']).unwrap();
    room.fails(2, "report pion", &["correlators.jsonl, line 1: this is not JSON"]);
}

#[cfg(unix)]
#[test]
fn pipes_are_files() {
    let room = Room::new();
    fs::write(room.path("one.json"), benchmark(1, 100.0).to_string()).unwrap();
    let script = format!("cat one.json | {} report /dev/stdin -o page.html", ferrite().display());
    let run = std::process::Command::new("sh").args(["-c", &script]).current_dir(room.path(".")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(room.path("page.html").exists());
}

#[test]
fn what_is_no_report_is_refused() {
    let room = Room::with_weak_field();
    let write = |name: &str, text: &str| fs::write(room.path(name), text).unwrap();
    write("solve.json", &json!({ "schema": "ferrite.solve/1", "history": [[1.0, 0.1]] }).to_string());
    write("text.json", "not JSON");
    write("info.json", &json!({ "schema": "ferrite.info/1" }).to_string());
    write("none.json", "{}");
    write("empty.json", "");
    write("deep.json", &"[".repeat(100_000));
    for (paths, part) in [
        ("text.json", "text.json: is not JSON"),
        ("solve.json info.json", "info.json: has the schema ferrite.info/1"),
        ("none.json", "none.json: has no schema"),
        ("empty.json", "empty.json: is not JSON"),
        ("deep.json", "deep.json: is not JSON"),
        ("solve.json absent.json", "absent.json: cannot be read"),
        ("absent", "no trajectories.jsonl"),
        ("weak.ildg", "weak.ildg: is not JSON"),
        ("solve.json -o x.svg", "choose a name that ends in .html"),
        ("solve.json -o absent/x.html", "absent"),
    ] {
        room.fails(2, &format!("report {paths}"), &[part]);
    }
    assert!(!room.path("report.html").exists() && !room.path("x.svg").exists());
    assert_eq!(room.run("report").code, Some(2));
}

/// Files that others have written may hold anything: odd numbers are drawn or left out.
#[test]
fn odd_numbers_are_drawn_or_left_out() {
    let room = Room::new();
    let odd = [json!(null), json!("12"), json!(-1.0), json!(1e308), json!(0), json!([]), json!({}), json!(u64::MAX)];
    for (number, value) in odd.iter().enumerate() {
        let solve = json!({
            "schema": "ferrite.solve/1", "history": [[1.0, value], value, [value]], "true_residuals": value,
            "tol": value, "iterations": value, "lattice": value, "seconds": value, "operator": value,
        });
        let mut benchmark = benchmark(1, 1.0);
        for key in ["microseconds", "gflops", "lattice", "nrhs", "operator"] {
            benchmark["rows"][0][key] = value.clone();
        }
        benchmark["layout"] = json!({ "processes": value, "grid": value });
        let event = json!({ "name": value, "ph": "X", "pid": value, "tid": value, "ts": value, "dur": value });
        let mut trace = trace();
        trace["traceEvents"].as_array_mut().unwrap().push(event);
        let point =
            json!({ "scaling": "strong", "efficiency": value, "gpus": value, "grid": value, "lattice": [4, 4, 4, 4] });
        let mut points = vec![point];
        points.push(
            json!({ "scaling": "weak", "efficiency": 0.5, "gpus": 2, "lattice": [4, 4, 4, 4], "grid": [1, 1, 1, 2] }),
        );
        let points = json!({ "schema": "ferrite.scaling-points/1", "points": points });
        let text = [solve, benchmark, trace, points].map(|object| object.to_string()).join("\n");
        fs::write(room.path("odd.json"), text).unwrap();
        let run = room.run(&format!("report odd.json -o {number}.html"));
        assert_eq!(run.code, Some(0), "{value}: {}", run.stderr);
        let page = fs::read_to_string(room.path(&format!("{number}.html"))).unwrap();
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{value}");
    }
}
