//! The model on a made-up machine, in limits with known answers.
use super::*;
use comms::ProcessGrid;
use serde_json::Value;

/// Bytes per second of an exchange.
const BANDWIDTH: f64 = 2e11;

/// With kernels that have a latency and a rate, like those of a GPU.
fn machine() -> Machine {
    let kernel = |latency: f64, rate: f64| {
        let sites = (0..12).map(|k| 4096.0 * f64::from(1 << k));
        TimeCurve::new(sites.map(|v| (v, latency + v / rate))).unwrap()
    };
    let line = |floor: f64, rate: f64| {
        Polyline::new([(0.0, floor), (65536.0, floor + 65536.0 / rate), (1e6, floor + 1e6 / rate)]).unwrap()
    };
    let operation = |name: &str, precision: &str, hops: usize, slower: f64| OperationTimes {
        name: name.into(),
        format: FormatNames { precision: precision.into(), reconstruct: "12".into() },
        reach: 1,
        hops,
        sums: 0,
        zone_bytes: (28.0 * slower) as usize,
        flops: 924.0 * hops as f64,
        alone: kernel(4e-6 * hops as f64, 1.7e10 / slower / hops as f64),
        beside: [line(0.0, 1e10), line(0.0, 2e10), line(0.0, 2e10), line(0.0, 2e10)].map(|l| scaled(&l, slower)),
        exterior: [line(5e-6, 1e9), line(5e-6, 5e9), line(5e-6, 5e9), line(5e-6, 5e9)].map(|l| scaled(&l, slower)),
    };
    let precisions = [("half", 1.0), ("double", 3.6)];
    let algebra = |name: &str, precision: &str, fields: f64, slower: f64| AlgebraTimes {
        name: name.into(),
        precision: precision.into(),
        alone: kernel(if name == "norm2" { 8e-6 } else { 4e-6 }, 1.5e11 / fields / slower),
    };
    let named = [
        ("norm2_kernel", 1.0),
        ("norm2", 1.0),
        ("axpy", 3.0),
        ("axpy_norm2", 3.0),
        ("cg_update", 5.0),
        ("bicgstab_step", 8.0),
    ];
    let of_all =
        |(precision, slower): (&'static str, f64)| named.map(|(name, fields)| algebra(name, precision, fields, slower));
    let wire = |latency: f64, bandwidth: f64| Wire { latency, bandwidth };
    Machine {
        device: "a \"made-up\" GPU".into(),
        processes: 2,
        operator: "clover".into(),
        operations: precisions
            .into_iter()
            .flat_map(|(p, slower)| {
                let sums = OperationTimes { sums: 1, ..operation("clover_matrix_sums", p, 2, 1.2 * slower) };
                [operation("clover_dslash", p, 1, slower), operation("clover_matrix", p, 2, slower), sums]
            })
            .collect(),
        algebra: precisions.into_iter().flat_map(of_all).collect(),
        exchanges: vec![
            ExchangeTimes { transport: "direct".into(), wire: wire(8e-6, BANDWIDTH) },
            ExchangeTimes { transport: "host".into(), wire: wire(4e-5, 5e9) },
        ],
        sum_step: 1e-6,
        iterations: Some(IterationCounts::counted()),
    }
}

fn scaled(line: &Polyline, factor: f64) -> Polyline {
    Polyline::new(line.points().iter().map(|(x, t)| (*x, t * factor))).unwrap()
}
fn grid(dims: [usize; 4]) -> ProcessGrid {
    ProcessGrid::new(dims).unwrap()
}
fn with_network(latency: f64, bandwidth: f64) -> Cluster {
    Cluster { gpus_per_host: 8, network: Wire { latency, bandwidth } }
}

#[test]
fn without_a_cut_it_is_the_kernel() {
    let machine = machine();
    for operation in &machine.operations {
        for (sites, seconds) in operation.alone.points() {
            let lattice = [8, 8, 8, *sites as usize / 512];
            let one = predict(&machine, operation, &Decomposition::single(lattice), &Cluster::ASSUMED, HaloMode::USUAL);
            let one = one.unwrap();
            assert_eq!((one.seconds, one.alone, one.exchange, one.bound), (*seconds, *seconds, 0.0, Bound::Device));
        }
    }
}

#[test]
fn the_longer_of_the_two_counts() {
    let machine = machine();
    let hop = machine.operation("clover_dslash", "half", "12").unwrap();
    let cut = Decomposition { lattice: [32, 32, 32, 64], grid: grid([1, 1, 1, 2]) };
    let (volume, face) = (32.0f64.powi(4), 32.0f64.powi(3));
    let time = |transport: &'static str, overlap: bool| {
        let mode = HaloMode { transport: Some(transport), overlap };
        predict(&machine, hop, &cut, &Cluster::ASSUMED, mode).unwrap()
    };
    let bytes = 2.0 * 28.0 * face / 2.0;
    let (direct, host) = (8e-6 + bytes / BANDWIDTH, 4e-5 + bytes / 5e9);
    let exterior = 5e-6 + 2.0 * face / 5e9;
    // Sums of a few numbers of one size: some roundings.
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-14, "{a:e} {b:e}");
    let beside = hop.alone.at(volume) + 2.0 * face / 2e10;
    near(time("direct", true).seconds, beside);
    near(time("direct", true).exchange, direct);
    assert_eq!(time("direct", true).bound, Bound::Device);
    near(time("host", true).seconds, host + exterior);
    assert_eq!(time("host", true).bound, Bound::Exchange);
    near(time("direct", false).seconds, direct + exterior + hop.alone.at(30.0 * face));
    // A matrix has two hops, and is bound by what they are bound by.
    let matrix = machine.operation("clover_matrix", "half", "12").unwrap();
    let mode = HaloMode { transport: Some("host"), overlap: true };
    near(predict(&machine, matrix, &cut, &Cluster::ASSUMED, mode).unwrap().seconds, 2.0 * (host + exterior));
    let nobody = HaloMode { transport: Some("pigeon"), overlap: true };
    assert_eq!(predict(&machine, matrix, &cut, &Cluster::ASSUMED, nobody), None);
}

#[test]
fn a_slow_network_is_all_that_counts() {
    let machine = machine();
    let hop = machine.operation("clover_dslash", "half", "12").unwrap();
    // 16 GPUs on two hosts of 8: of the ranks at the ends of a host one neighbour is on the other.
    let cut = Decomposition { lattice: [32, 32, 32, 256], grid: grid([1, 1, 1, 16]) };
    let slow = with_network(0.0, 1e6);
    let predicted = predict(&machine, hop, &cut, &slow, HaloMode::USUAL).unwrap();
    let bytes = 28.0 * 32.0f64.powi(3) / 2.0;
    assert_eq!(predicted.bound, Bound::Exchange);
    // All else takes some 50 µs, the message half a second.
    assert!((predicted.seconds / (bytes / 1e6) - 1.0).abs() < 1e-3, "{predicted:?}");
    // On one host there is no network.
    let one = Cluster { gpus_per_host: 16, ..slow };
    assert!(predict(&machine, hop, &cut, &one, HaloMode::USUAL).unwrap().seconds < 1e-4);
}

#[test]
fn nothing_gets_faster_by_a_slower_network() {
    let machine = machine();
    let half = FormatNames { precision: "half".into(), reconstruct: "12".into() };
    let lattice = [32, 32, 32, 256];
    for gpus in [16, 64, 256, 1024] {
        let cut = Decomposition { lattice, grid: ProcessGrid::best(gpus, lattice, 1).unwrap() };
        let mut last = [0.0; 4];
        for latency in [0.0, 1e-6, 3e-6, 1e-5, 1e-4, 1e-3] {
            let cluster = with_network(latency, 45e9);
            let matrix = machine.operation("clover_matrix", "half", "12").unwrap();
            let matrix = predict(&machine, matrix, &cut, &cluster, HaloMode::USUAL).unwrap();
            let solver = SolverModel::new(&machine, &half, &cluster).unwrap().times(&cut).unwrap();
            let solves = solver.solves.unwrap();
            let now = [matrix.seconds, solver.iteration, solves.bicgstab, solves.gcr_dd];
            assert!(now.iter().zip(last).all(|(now, last)| *now >= last), "{gpus}, {latency}: {now:?} {last:?}");
            // The matrix waits twice for it; an iteration of BiCGstab four times, and for two sums.
            assert!(now[0] >= 2.0 * latency && now[1] >= 4.0 * latency + 2.0 * f64::from(gpus.ilog2()) * latency);
            last = now;
        }
        // In the end GCR-DD wins, which exchanges less.
        assert!(last[2] > last[3], "{gpus}: {last:?}");
    }
}

#[test]
fn solvers_are_made_of_their_parts() {
    let machine = machine();
    let half = FormatNames { precision: "half".into(), reconstruct: "12".into() };
    let (lattice, volume) = ([32, 32, 32, 64], 32.0f64.powi(4) * 2.0);
    let cluster = Cluster::ASSUMED;
    let times = SolverModel::new(&machine, &half, &cluster).unwrap().times(&Decomposition::single(lattice)).unwrap();
    let matrix = machine.operation("clover_matrix", "half", "12").unwrap().alone.at(volume);
    let algebra = |name: &str| machine.algebra(name, "half").unwrap().at(volume);
    let with_sums = machine.operation("clover_matrix_sums", "half", "12").unwrap().alone.at(volume);
    let iteration = 2.0 * with_sums + algebra("axpy") + algebra("bicgstab_step");
    assert!((times.iteration / iteration - 1.0).abs() < 1e-14, "{times:?}, {iteration}");
    assert!((times.gflops / (4.0 * 924.0 * volume / iteration * 1e-9) - 1.0).abs() < 1e-14);
    let solves = times.solves.unwrap();
    assert!(solves.bicgstab > 172.0 * iteration && solves.bicgstab < 1.5 * 172.0 * iteration);
    // One domain: 37 iterations with eleven matrices each.
    assert_eq!(solves.iterations, 37.0);
    assert!(solves.gcr_dd > 37.0 * 11.0 * matrix && solves.gcr_dd < 2.0 * 37.0 * 11.0 * matrix);
    // What a solve takes once is in both.
    let mut slower = machine.clone();
    slower.iterations.as_mut().unwrap().once += 0.5;
    let slower = SolverModel::new(&slower, &half, &cluster).unwrap().times(&Decomposition::single(lattice)).unwrap();
    let slower = slower.solves.unwrap();
    for (now, before) in [(slower.bicgstab, solves.bicgstab), (slower.gcr_dd, solves.gcr_dd)] {
        assert!((now - before - 0.5).abs() < 1e-14, "{now} {before}");
    }
    // Without double precision there are no true residuals.
    let mut without = machine.clone();
    without.operations.retain(|o| o.format.precision != "double");
    let without = SolverModel::new(&without, &half, &cluster).unwrap().times(&Decomposition::single(lattice)).unwrap();
    assert_eq!((without.iteration, without.solves), (times.iteration, None));
}

#[test]
fn iterations_lie_on_lines() {
    let counted = IterationCounts::counted();
    for (sites, n) in &counted.gcr_dd {
        assert_eq!(counted.gcr_dd(*sites), Some(*n));
    }
    // Half way between 32⁴ and 16⁴ on a logarithmic axis; and further down on the same line.
    let [middle, below] = [262_144.0, 16_384.0].map(|sites| counted.gcr_dd(sites).unwrap());
    assert!((middle - 65.0).abs() < 1e-12 && (below - 99.0).abs() < 1e-12, "{middle} {below}");
    // One that is all there is takes what the largest took.
    assert_eq!(counted.gcr_dd(1e12), Some(37.0));
    assert!(counted.is_extrapolated(65_535.0) && !counted.is_extrapolated(65_536.0));
    assert_eq!(IterationCounts { gcr_dd: vec![(10.0, 5.0)], ..counted.clone() }.gcr_dd(7.0), Some(5.0));
    assert_eq!(IterationCounts { gcr_dd: Vec::new(), ..counted }.gcr_dd(7.0), None);
}

#[test]
fn a_file_is_the_machine_again() {
    let machine = machine();
    let again = Machine::from_json(&machine.to_json()).unwrap();
    assert_eq!((&again.device, again.processes), (&machine.device, machine.processes));
    let cut = Decomposition { lattice: [32, 32, 32, 256], grid: grid([1, 2, 4, 8]) };
    for (one, other) in machine.operations.iter().zip(&again.operations) {
        assert_eq!((&one.name, &one.format), (&other.name, &other.format));
        let time =
            |m: &Machine, o: &OperationTimes| predict(m, o, &cut, &Cluster::ASSUMED, HaloMode::USUAL).unwrap().seconds;
        // Microseconds and back: two roundings of each number.
        assert!((time(&machine, one) / time(&again, other) - 1.0).abs() < 1e-14);
    }
    let once = |m: &Machine| m.iterations.as_ref().unwrap().once;
    assert!((once(&again) / once(&machine) - 1.0).abs() < 1e-14);
    let rounded = |m: &Machine| m.iterations.clone().map(|counted| IterationCounts { once: 0.0, ..counted });
    assert_eq!(rounded(&again), rounded(&machine));
    assert_eq!(Machine::from_json(&again.to_json()).unwrap().operations.len(), 6);
}

#[test]
fn files_that_are_no_machines() {
    let good: Value = serde_json::from_str(&machine().to_json()).unwrap();
    let with = |path: &str, value: Value| {
        let mut file = good.clone();
        *file.pointer_mut(path).unwrap() = value;
        file.to_string()
    };
    for (bad, part) in [
        ("{".into(), "not JSON"),
        ("[]".into(), "the file is not a JSON object"),
        (with("/schema", "ferrite.machine/2".into()), "schema = \"ferrite.machine/2\" is not \"ferrite.machine/1\""),
        (with("/operations", Value::Array(Vec::new())), "operations is not a list of at least one"),
        (with("/operations/1/alone/2/microseconds", 0.into()), "operations[1].alone[2].microseconds"),
        (with("/operations/1/alone/2/sites", 4096.into()), "operations[1].alone[2].sites"),
        (with("/operations/1/alone", Value::Array(Vec::new())), "operations[1].alone is not a list of at least"),
        (with("/operations/0/hops", 0.into()), "operations[0].hops = 0 is not a whole number from 1 to"),
        (with("/operations/0/beside/z", Value::Null), "operations[0].beside.z: invalid type: null"),
        (with("/operations/3/exterior/x/0/microseconds", (-1).into()), "operations[3].exterior.x[0].microseconds"),
        (with("/exchanges/1/gbps", "fast".into()), "exchanges[1].gbps: invalid type: string"),
        (with("/exchanges", Value::Array(Vec::new())), "exchanges is not a list of at least one"),
        (with("/device", 7.into()), "device: invalid type: integer `7`"),
        (with("/iterations/gcr_dd/domains/1/sites", 65536.into()), "iterations.gcr_dd.domains[1].sites"),
        (with("/iterations/bicgstab/iterations", Value::Null), "iterations.bicgstab.iterations"),
        (
            with("/iterations/once_microseconds", (-1).into()),
            "iterations.once_microseconds = -1 is not a number of at least 0",
        ),
    ] {
        let message = Machine::from_json(&bad).unwrap_err().to_string();
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
}

#[test]
fn measured_points_are_compared() {
    let machine = machine();
    let hop = machine.operation("clover_dslash", "half", "12").unwrap();
    let cut = Decomposition { lattice: [32, 32, 32, 64], grid: grid([1, 1, 1, 2]) };
    let one = predict(&machine, hop, &cut, &Cluster::ASSUMED, HaloMode::USUAL).unwrap();
    let solver = SolverModel::new(&machine, &hop.format, &Cluster::ASSUMED).unwrap();
    let solves = solver.times(&cut).unwrap().solves.unwrap();
    let point = |more: &str| {
        format!(
            r#"{{"operator": "clover_dslash", "precision": "half", "reconstruct": "12", "lattice": [32, 32, 32, 64],
                "grid": [1, 1, 1, 2], {more}}}"#
        )
    };
    let file =
        |points: &[String]| format!(r#"{{"schema": "ferrite.scaling-points/1", "points": [{}]}}"#, points.join(","));
    let text = file(&[
        point(&format!(r#""microseconds": {}"#, one.seconds * 1e6 / 1.25)),
        point(&format!(r#""scaling": "weak", "efficiency": {}"#, one.alone / one.seconds * 1.25)),
        point(&format!(
            r#""scaling": "strong", "efficiency": {}"#,
            hop.alone.at(32.0f64.powi(4) * 2.0) / one.seconds / 2.0
        )),
        point(r#""microseconds": 1, "transport": "pigeon""#),
        point(&format!(r#""microseconds": {}"#, solves.gcr_dd * 1e6 / 0.9)).replace("clover_dslash", "gcr_dd"),
        point(r#""scaling": "weak", "efficiency": 1"#).replace("clover_dslash", "bicgstab"),
    ]);
    let points = points_from_json(&text).unwrap();
    let deviations: Vec<_> =
        points.iter().map(|p| p.compare(&machine, &Cluster::ASSUMED).map(|(_, _, off)| off)).collect();
    for (found, expected) in deviations.iter().zip([Some(0.25), Some(0.25), Some(0.0), None, Some(-0.1), None]) {
        match (found, expected) {
            (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12, "{deviations:?}"),
            (found, expected) => assert_eq!((found.is_some(), expected.is_some()), (false, false)),
        }
    }
    // What `bench dslash` prints, with the grid of its run for all rows; copies and blocks are nothing to compare.
    let rows = r#"{"operator": "clover_dslash", "precision": "half", "reconstruct": "12", "lattice": [32, 32, 32, 64],
        "nrhs": 1, "microseconds": 70}, {"operator": "axpy", "precision": "half", "reconstruct": "", "nrhs": 1,
        "lattice": [32, 32, 32, 64], "microseconds": 70}"#;
    let bench = format!(r#"{{"schema": "ferrite.bench/1", "layout": {{"grid": [1, 1, 1, 2]}}, "rows": [{rows}]}}"#);
    let from_bench = points_from_json(&bench).unwrap();
    assert_eq!(from_bench.len(), 1);
    assert_eq!(from_bench[0], MeasuredPoint { measured: MeasuredValue::Seconds(7e-5), ..points[0].clone() });
    for (bad, part) in [
        (file(&[point(r#""microseconds": 1, "efficiency": 1"#)]), "points[0] is not a point with either"),
        (file(&[point(r#""efficiency": 1, "scaling": "up""#)]), "points[0].scaling"),
        (file(&[point(r#""microseconds": 0"#)]), "points[0].microseconds"),
        (file(&[point(r#""microseconds": 1"#).replace("[1, 1, 1, 2]", "[1, 1, 1, 3]")]), "points[0].lattice"),
        (file(&[point(r#""microseconds": 1"#).replace("[1, 1, 1, 2]", "[1, 2]")]), "points[0].grid"),
        // Numbers of processes and sites that do not fit a word.
        (
            file(&[point(r#""microseconds": 1"#).replace("[1, 1, 1, 2]", "[65536, 65536, 65536, 65536]")]),
            "points[0].grid",
        ),
        (
            file(&[point(r#""microseconds": 1"#).replace("[1, 1, 1, 2]", "[256, 256, 1, 2]")]),
            "the number of processes, is at most 65536",
        ),
        (
            file(&[point(r#""microseconds": 1"#).replace("[32, 32, 32, 64]", "[131072, 131072, 131072, 131072]")]),
            "points[0].lattice",
        ),
        (text.replace("scaling-points", "machine"), "schema"),
    ] {
        let message = points_from_json(&bad).unwrap_err().to_string();
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
}

/// Files with any value replaced, or with their end missing, are refused or read: no damage causes a panic.
#[test]
fn damaged_files_never_panic() {
    let machine = include_str!("../../../../docs/measurements/h200-clover.json");
    let points = include_str!("../../../../docs/measurements/scaling.json");
    let good = (Machine::from_json(machine).unwrap(), points_from_json(points).unwrap());
    for (text, step) in [(machine, 997), (points, 421)] {
        for at in (0..text.len()).step_by(step).filter(|at| text.is_char_boundary(*at)) {
            let (before, after) = text.split_at(at);
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            for with in ["", "0", "-1", "1e308", "9007199254740993", "null", "\"x\"", "[]"] {
                let damaged = format!("{before}{with}{rest}");
                for point in points_from_json(&damaged).iter().flatten() {
                    let _ = point.compare(&good.0, &Cluster::ASSUMED);
                }
                if let Ok(machine) = Machine::from_json(&damaged) {
                    for point in good.1.iter().step_by(7) {
                        let _ = point.compare(&machine, &Cluster::ASSUMED);
                    }
                }
            }
            assert!(Machine::from_json(before).is_err() && points_from_json(before).is_err());
        }
    }
}
