//! The program with several processes, as `mpirun` starts it: what one process gives, many give too.
use crate::program::*;
use ferrite::field::host::HostGauge;
use ferrite::files::{ReadOptions, WriteOptions, read_gauge, write_gauge};
use ferrite::lattice::Lattice;
use num_complex::Complex64;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lock that lets one job run at a time: ranks of several jobs would compete for the cores.
static TURN: Mutex<()> = Mutex::new(());

/// Longest time until nothing is left of a job that fails, on cores that also do other tests.
const SECONDS: Duration = Duration::from_secs(60);

/// `mpirun` with so many ranks of the program, on the CPU; lines that begin with `studies` are those of `ferrite-studies`.
fn mpirun(room: &Room, ranks: usize, arguments: &str) -> Command {
    let (program, arguments) = program_of(arguments);
    let mut command = mpirun_of(room, ranks, program);
    command.args(arguments.split_whitespace()).args(["--backend", "cpu", "--threads", "1"]);
    command
}

/// `mpirun` with so many ranks of a program.
fn mpirun_of(room: &Room, ranks: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none", "-n", &ranks.to_string()]).arg(program);
    // Containers run as root, have no network worth the name, and forbid copies between processes. Ranks that wait leave
    // the core to others.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_pml", "ob1").env("OMPI_MCA_btl", "self,vader").env("RUST_BACKTRACE", "0");
    command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none").env("OMPI_MCA_mpi_yield_when_idle", "1");
    command.env("OMPI_MCA_orte_tmpdir_base", folder());
    command.current_dir(room.0.path()).env("FERRITE_TUNE_CACHE", room.path("tune.json"));
    command
}

/// A folder for what Open MPI keeps while a job runs. In the one that all jobs of a user have otherwise, one that ends removes
/// what another begins with.
fn folder() -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("job-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn job(room: &Room, ranks: usize, arguments: &str) -> Run {
    timed(room, ranks, arguments).0
}

/// A job, and how long it took from when it was its turn.
fn timed(room: &Room, ranks: usize, arguments: &str) -> (Run, Duration) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let start = Instant::now();
    let run = mpirun(room, ranks, arguments).output().expect("there is an mpirun").into();
    (run, start.elapsed())
}

/// A job that succeeds; its one JSON object.
fn json(room: &Room, ranks: usize, arguments: &str) -> Value {
    let run = job(room, ranks, &format!("{arguments} --json"));
    assert_eq!(run.code, Some(0), "{ranks} ranks, {arguments}: {}{}", run.stdout, run.stderr);
    let object = object(&run);
    assert_eq!(object["layout"]["processes"].as_u64(), Some(ranks as u64), "{object}");
    object
}

/// A job that ends with this code and one sentence that has all these parts.
fn fails(room: &Room, ranks: usize, code: i32, arguments: &str, parts: &[&str]) {
    let (run, took) = timed(room, ranks, arguments);
    assert!(took < SECONDS, "{arguments}: took {took:?}");
    assert_eq!(run.code, Some(code), "{arguments}: {}{}", run.stdout, run.stderr);
    let errors: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{arguments}: {}", run.stderr);
    for part in parts {
        assert!(errors[0].contains(part), "{arguments}: '{part}' is not in: {}", errors[0]);
    }
}

fn same(room: &Room, one: &str, many: &str) {
    let read = |name: &str| fs::read(room.path(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert!(read(one) == read(many), "{one} and {many} differ");
}

const GRIDS: [(usize, &str); 6] =
    [(2, "1,1,1,2"), (2, "2,1,1,1"), (4, "1,2,1,2"), (4, "2,1,2,1"), (8, "2,2,2,1"), (8, "1,1,2,4")];

/// Files are the same whoever makes them, in every format; and every number of processes reads those of any other.
#[test]
fn files_do_not_depend_on_the_grid() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 7 -o one.ildg");
    for (ranks, grid) in GRIDS {
        json(&room, ranks, &format!("generate weak-field --lattice 4,4,4,8 --seed 7 -o many.ildg --grid {grid}"));
        let date_free = |name: &str| room.json(&format!("verify {name}"))["plaquette"]["mean"].clone();
        assert_eq!(date_free("one.ildg"), date_free("many.ildg"), "{grid}");
    }
    for name in ["x.nersc", "x.milc", "x.npy", "x.scidac"] {
        room.json(&format!("convert one.ildg one-{name}"));
        json(&room, 4, &format!("convert one.ildg many-{name} --grid 1,2,2,1"));
        if name == "x.npy" {
            same(&room, "one-x.npy", "many-x.npy");
        }
        let read = json(&room, 2, &format!("verify many-{name} --grid 2,1,1,1"));
        assert_eq!(read["ok"].as_bool(), Some(true));
        let (one, many) =
            (room.json(&format!("plaquette one-{name}")), json(&room, 8, &format!("plaquette many-{name}")));
        // Summed on the device, process by process.
        let of = |run: &Value, key: &str| run["plaquette"][key].as_f64().unwrap_or(f64::NAN);
        let equal = |key: &&str| (of(&one, key) - of(&many, key)).abs() < 1e-14;
        assert!(["mean", "spatial", "temporal"].iter().all(equal), "{name}: {one} {many}");
        assert_eq!(one["unitarity_violation"], many["unitarity_violation"], "{name}");
    }
}

/// Heat bath and over-relaxation take their random numbers by site and sweep.
#[test]
fn quenched_configurations_do_not_depend_on_the_grid() {
    let room = Room::new();
    let run = "generate quenched --lattice 4,4,4,8 --beta 5.7 --sweeps 3 --overrelax 2 --seed 5 --start hot";
    let one = room.json(&format!("{run} -o one.npy"));
    for (ranks, grid) in [(2, "1,1,1,2"), (4, "2,1,2,1"), (8, "1,2,2,2")] {
        let many = json(&room, ranks, &format!("{run} -o many.npy --grid {grid}"));
        same(&room, "one.npy", "many.npy");
        let mean = |run: &Value| run["plaquette"]["mean"].as_f64().unwrap_or(f64::NAN);
        assert!((mean(&one) - mean(&many)).abs() < 1e-14, "{grid}");
    }
    // One process resumes from the files of many, and the other way about.
    json(&room, 4, &format!("{run} --every 1 -o steps.ildg"));
    let rest = "generate quenched --lattice 4,4,4,8 --beta 5.7 --sweeps 1 --overrelax 2 --seed 5 --first-sweep 2";
    room.json(&format!("{rest} --start steps.000002.ildg -o on.npy"));
    same(&room, "one.npy", "on.npy");
}

/// Noise is that of sites, and sums are over all processes.
#[test]
fn traces_eigenvalues_and_forces_do_not_depend_on_the_grid() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 7 --noise 0.4 -o cfg.ildg");
    let input = "lattice = [4, 4, 4, 8]\ntrajectories = 1\nseed = 5\nstart = \"cfg.ildg\"\n[gauge]\naction = \"wilson\"\n\
                 beta = 5.5\n[trajectory]\nlength = 0.5\nsteps = 2\n[[fermion]]\noperator = \"wilson\"\nkappa = 0.12\nflavours = 2\n";
    fs::write(room.path("run.toml"), input).unwrap();
    // Reported numbers. They may differ, because solves end at 1e-10, those of eigenvalues at a thousandth of 1e-3, and forces of quarks
    // have solvers in single precision.
    let reported = |found: &Value| -> Vec<f64> {
        let of = |value: &Value, keys: &[&str]| -> Vec<f64> {
            keys.iter().map(|key| value.pointer(key).and_then(Value::as_f64).unwrap_or(f64::NAN)).collect()
        };
        if let Some(forces) = found["forces"].as_array() {
            return forces.iter().flat_map(|one| of(one, &["/rms", "/max"])).collect();
        }
        let one = &found["configurations"][0];
        match one["traces"].as_array() {
            Some(traces) => traces.iter().flat_map(|one| of(one, &["/noise/0/0", "/noise/1/1", "/mean/0"])).collect(),
            None => of(one, &["/smallest/value", "/largest/value"]),
        }
    };
    for (command, tol) in [
        ("trace cfg.ildg --operator clover --csw 1 --mass 0.3 --noise 2 --dilute time:2", 1e-8),
        ("trace cfg.ildg --operator hisq --masses 0.2,0.5 --noise 2", 1e-8),
        ("eigenvalues cfg.ildg --operator clover --csw 1 --mass 0.3 --tol 1e-3", 1e-5),
        ("eigenvalues cfg.ildg --operator asqtad --u0 0.9 --mass 0.2 --tol 1e-3", 1e-5),
        ("forces run.toml", 1e-5),
        ("forces run.toml --set fermion.0.operator=clover --set fermion.0.csw=1", 1e-5),
    ] {
        let one = reported(&room.json(command));
        assert!(one.iter().all(|x| x.is_finite()) && !one.is_empty(), "{command}: {one:?}");
        // Long links need three sites in each part.
        let improved = command.contains("hisq") || command.contains("asqtad");
        let (ranks, grid) = if improved { (2, "1,1,1,2") } else { (2, "2,1,1,1") };
        let run = job(&room, ranks, &format!("{command} --grid {grid} --json"));
        assert_eq!(run.code, Some(0), "{command} on {grid}: {}", run.stderr);
        let many = reported(&object(&run));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < tol * (1.0 + b.abs());
        assert!(one.len() == many.len() && many.iter().zip(&one).all(near), "{command} on {grid}: {many:?} {one:?}");
    }
    fails(&room, 2, 2, "rational --power -1/4 --interval 1e-4,1 --order 3", &["rational"]);
}

/// A site is turned by what it sees; sites beyond a cut are turned on both sides.
#[test]
fn gauges_do_not_depend_on_the_grid() {
    let room = Room::new();
    room.json("generate quenched --lattice 4,4,4,8 --beta 5.7 --sweeps 5 --seed 5 -o cfg.ildg");
    for gauge in ["coulomb", "landau"] {
        let run = format!("fix-gauge cfg.ildg --gauge {gauge} --tol 1e-8");
        let one = room.json(&format!("{run} -o one.npy"));
        for (ranks, grid) in [(2, "1,1,1,2"), (2, "2,1,1,1"), (4, "1,2,1,2"), (8, "2,2,2,1")] {
            let many = json(&room, ranks, &format!("{run} -o many.npy --grid {grid}"));
            same(&room, "one.npy", "many.npy");
            assert_eq!(one["sweeps"], many["sweeps"], "{grid}");
        }
    }
}

#[test]
fn images_do_not_depend_on_the_grid() {
    images_are_the_same(3);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn images_do_not_depend_on_the_grid_for_any_operator() {
    images_are_the_same(1);
}

/// Images have the same bits on any grid, as they involve no global sum. Each operator is applied on one of `one_of` grids, the next
/// operator on the next ones.
fn images_are_the_same(one_of: usize) {
    let room = Room::with_weak_field();
    let operators = [
        "wilson --mass 0.1",
        "clover --mass 0.1 --csw 1.2 --dagger",
        "clover --mass 0.1 --csw 1.2 --schur asymmetric --precision single --reconstruct 8",
        "staggered --mass 0.1",
        "staggered --mass 0.1 --spread-boundary --phases lexicographic",
        "asqtad --mass 0.1 --u0 0.9 --normal",
        "asqtad --mass 0.1 --u0 plaquette --precision single --reconstruct 8h",
    ];
    for (number, operator) in operators.into_iter().enumerate() {
        let apply = format!("apply --gauge weak.ildg --operator {operator} --source random:3");
        room.json(&format!("{apply} -o one.npy"));
        // Three hops need four sites, which only one grid leaves.
        let (all, first): (&[_], _) = match operator.starts_with("asqtad") {
            true => (&[(2, "1,1,1,2")], 0),
            false => (&GRIDS, number % one_of),
        };
        for &(ranks, grid) in all.iter().skip(first).step_by(one_of) {
            let many = json(&room, ranks, &format!("{apply} -o many.npy --grid {grid}"));
            same(&room, "one.npy", "many.npy");
            assert_eq!(many["layout"]["grid"].as_array().map(Vec::len), Some(4));
            // Messages that need no memory of their own.
            json(&room, ranks, &format!("{apply} -o many.npy --grid {grid} --transport mpi"));
            same(&room, "one.npy", "many.npy");
        }
    }
}

/// Every operator in every format, on each grid of two processes, by each way that messages go, with the interior computed
/// meanwhile and not: the same bits as on one process. `flags` may say that formats take turns with ways and grids.
fn operators_are_the_same(flags: &[&str]) {
    let room = Room::new();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = mpirun_of(&room, 2, env!("CARGO_BIN_EXE_halo_check"));
    let run: Run = command.args(["--cpu", "--quick"]).args(flags).output().expect("there is an mpirun").into();
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    // Four grids, one hop and three, two ways, with overlap and without.
    assert_eq!(run.stdout.lines().filter(|line| line.ends_with(": equal")).count(), 4 * 2 * 2 * 2, "{}", run.stdout);
}

#[test]
fn operators_are_the_same_in_every_way() {
    operators_are_the_same(&["--in-turn"]);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn operators_are_the_same_in_every_way_on_every_grid() {
    operators_are_the_same(&[]);
}

/// A run that is repeated on the same grid has the same bits, sums over processes included.
#[test]
fn a_run_repeats_to_the_bit() {
    let room = Room::with_weak_field();
    for (how, ranks, grid) in [
        ("--operator clover --csw 1.1 --mass 0.05 --precision half", 2, "1,1,1,2"),
        ("--operator wilson --mass 0.1 --solver gcr-dd --precision single", 4, "1,1,2,2"),
        ("--operator staggered --mass 0.1 --precision single", 4, "1,2,1,2"),
    ] {
        let solve = format!("solve --gauge weak.ildg {how} --source random:3 --grid {grid}");
        json(&room, ranks, &format!("{solve} -o first.npy"));
        json(&room, ranks, &format!("{solve} -o again.npy"));
        same(&room, "first.npy", "again.npy");
    }
}

/// Every solver, also in temporal gauge, whose transformation goes through all processes in t.
#[test]
fn solutions_do_not_depend_on_the_grid() {
    let room = Room::with_weak_field();
    for (how, ranks, grid) in [
        ("--mass 0.1", 8, "2,1,2,2"),
        ("--mass 0.1 --precision single --reconstruct 12t", 4, "1,1,1,4"),
        ("--mass 0.1 --precision half --outer single --tol 1e-5", 2, "1,2,1,1"),
        ("--mass 0.1 --solver cg --precision fp16", 4, "2,2,1,1"),
        ("--operator clover --csw 1 --mass 0.1 --precision double --reconstruct 8t", 2, "1,1,1,2"),
        ("--operator clover --csw 1 --mass 0.1 --solver gcr-dd --precision half", 4, "1,1,2,2"),
        ("--mass 0.1 --solver gcr-dd --precision half --domain-overlap 2", 2, "1,1,1,2"),
        ("--operator clover --csw 1 --mass 0.1 --correction defect --precision single", 2, "1,1,2,1"),
        ("--operator clover --csw 1 --mass 0.1 --solver cgne --precision single", 2, "2,1,1,1"),
        ("--operator clover --csw 1 --mass 0.1 --solver idr --precision single", 2, "2,1,1,1"),
        ("--mass 0.1 --solver gcr-dd --domain 2,2,2,2 --precision single", 2, "1,1,1,2"),
        // The file that one process writes is read by many.
        ("--mass 0.1 --solver multigrid --mg-vectors 8 --mg-block 2,2,2,2 --setup s.setup", 2, "1,1,1,2"),
        ("--operator staggered --mass 0.1 --solver block-cg --precision single", 4, "1,1,2,2"),
        ("--operator staggered --mass 0.1 --precision single", 8, "2,2,2,1"),
        ("--operator asqtad --u0 0.9 --mass 0.1 --precision half", 2, "1,1,1,2"),
        ("--operator hisq --mass 0.1 --precision single", 2, "1,1,1,2"),
        ("--operator asqtad --u0 0.9 --masses 0.1,0.2,0.5 --precision single", 2, "1,1,1,2"),
    ] {
        let solve = format!("solve --gauge weak.ildg {how} --source random:3 --source point:1,2,3,5,1,2");
        let solve = if how.contains("staggered") || how.contains("asqtad") || how.contains("hisq") {
            solve.replace("5,1,2", "5,2")
        } else {
            solve
        };
        // One domain has nothing to overlap with.
        room.json(&format!("{} -o one.npy", solve.replace("--domain-overlap 2", "")));
        let many = json(&room, ranks, &format!("{solve} -o many.npy --grid {grid}"));
        let tol = many["tol"].as_f64().unwrap_or(0.0);
        let off = distance(&npy(&room.path("many.npy")), &npy(&room.path("one.npy")));
        // Residuals of 1e-10 are errors of less than 1e-8 with the smallest eigenvalue near the mass.
        assert!(off < 100.0 * tol, "{how} on {grid}: {off:e}");
    }
}

#[test]
fn overlapping_domains_that_do_not_fit_are_refused() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --mass 0.1 --source random:3 --solver gcr-dd --domain-overlap";
    room.fails(2, &format!("{solve} 2"), &["one process has no neighbours to overlap with: remove domain-overlap"]);
    room.fails(2, &format!("{solve} 1"), &["domain-overlap", "'1' is none of 0, 2"]);
    fails(
        &room,
        2,
        2,
        &format!("{solve} 2 --domain 2,4,4,4 --grid 1,1,1,2"),
        &["domain-overlap", "the local lattices of the processes"],
    );
}

#[test]
fn ways_to_exchange_are_compared() {
    let room = Room::new();
    let bench = "bench halo --operator staggered --lattice 4,4,8,8 --precision single --reconstruct 18 --trace t.json";
    let report = json(&room, 2, bench);
    let rows = report["rows"].as_array().unwrap();
    let ways: Vec<_> = rows.iter().map(|row| (row["transport"].as_str().unwrap(), row["overlap"] == true)).collect();
    // Two operations in each way.
    assert_eq!(ways.len(), 2 * 8, "{ways:?}");
    assert!(["direct", "copy", "mpi", "host"].iter().all(|way| ways.contains(&(*way, true))), "{ways:?}");
    assert!(rows.iter().all(|row| row["efficiency"].as_f64().is_some_and(|e| e > 0.0)));
    // Both ranks, with everything that an exchange does.
    let trace: Value = serde_json::from_slice(&fs::read(room.path("t.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    for rank in 0..2 {
        for name in ["pack", "interior", "exterior t", "message"] {
            let is = |event: &&Value| event["pid"] == rank && event["name"] == name && event["ph"] == "X";
            assert!(events.iter().filter(is).count() >= 2, "rank {rank}: no {name}");
        }
    }
    fails(&room, 2, 2, "bench halo --operator all", &["--operator all"]);
    assert_eq!(room.run("bench halo --backend cpu").code, Some(2));
}

/// A machine is measured by two processes and read again by one. Times on a CPU whose cores do other work mean nothing.
#[test]
fn a_model_is_measured_and_read_again() {
    let room = Room::new();
    let lattices = "--lattice 4,4,4,16 --local 4,4,4,4 --gpus 1,2,4,16 --gpus-per-host 2";
    let formats = "--precision double,half --reconstruct 12";
    let report = json(&room, 2, &format!("studies model {lattices} {formats} --save m.json --plot ."));
    let rows = |report: &Value, key: &str| report[key].as_array().unwrap().clone();
    let finite = |row: &Value, key: &str| row[key].as_f64().is_some_and(|x| x.is_finite() && x > 0.0);
    // A hop, the matrix, the matrix with sums; two precisions, two kinds of scaling, four numbers of GPUs.
    let predicted = rows(&report, "rows");
    assert_eq!(predicted.len(), 3 * 2 * 2 * 4);
    for key in ["microseconds", "alone_microseconds", "gflops", "efficiency"] {
        assert!(predicted.iter().all(|row| finite(row, key)), "{key}: {predicted:?}");
    }
    let exchanges = |row: &&Value| finite(row, "exchange_microseconds") == (row["gpus"] != 1);
    assert!(predicted.iter().all(|row| exchanges(&row)), "{predicted:?}");
    let solvers = rows(&report, "solver_rows");
    assert_eq!(solvers.len(), 2 * 2 * 4);
    let solves = solvers.iter().filter(|row| finite(row, "bicgstab_seconds") && finite(row, "gcr_dd_seconds"));
    // Iterations were counted in half precision and on a lattice of one size.
    assert_eq!(solves.filter(|row| row["precision"] == "half" && row["scaling"] == "strong").count(), 4);
    // Both lattices in three ways.
    let compared = rows(&report, "compared");
    assert_eq!(compared.len(), 2 * 3 * 3 * 2);
    assert!(compared.iter().all(|row| finite(row, "measured") && finite(row, "predicted")), "{compared:?}");
    let off = |row: &Value| row["deviation"].as_f64().unwrap();
    let worst = compared.iter().map(off).fold(0.0f64, |worst, off| if off.abs() > worst.abs() { off } else { worst });
    assert_eq!(report["worst"].as_f64(), Some(worst));
    for plot in ["scaling.svg", "solver.svg", "gain.svg"] {
        assert!(fs::read_to_string(room.path(plot)).unwrap().contains("</svg>"), "{plot}");
    }

    // The same from the file, without measuring.
    let again = room.json(&format!("studies model --machine m.json {lattices}"));
    for (key, number) in [("rows", "microseconds"), ("solver_rows", "iteration_microseconds")] {
        let (one, other) = (rows(&report, key), rows(&again, key));
        assert_eq!(one.len(), other.len());
        for (one, other) in one.iter().zip(&other) {
            let ratio = one[number].as_f64().unwrap() / other[number].as_f64().unwrap();
            // Microseconds and back.
            assert!((ratio - 1.0).abs() < 1e-12 && one["grid"] == other["grid"], "{one} {other}");
        }
    }
    assert_eq!((&again["layout"], &again["measuring_seconds"]), (&Value::Null, &Value::Null));
    let half = room.json(&format!("studies model --machine m.json {lattices} --precision half"));
    assert_eq!(rows(&half, "rows").len(), predicted.len() / 2);
    // A network that takes a second slows down what is on several hosts, and nothing else.
    let slow = room.json(&format!("studies model --machine m.json {lattices} --network-latency-us 1e6"));
    for (one, other) in rows(&again, "rows").iter().zip(&rows(&slow, "rows")) {
        let times = [one, other].map(|row| row["microseconds"].as_f64().unwrap());
        assert_eq!(times[1] > times[0] + 5e5, one["gpus"].as_u64().unwrap() > 2, "{one} {other}");
    }

    // What another command has measured, and what was written by hand.
    let bench = "bench dslash --operator clover --lattice 4,4,4,16 --precision half --reconstruct 12 --grid 1,1,1,2";
    fs::write(room.path("b.json"), json(&room, 2, bench).to_string()).unwrap();
    let from_bench = room.json("studies model --machine m.json --gpus 2 --measured b.json");
    assert_eq!(rows(&from_bench, "compared").len(), 2);
    let point = |more: &str| {
        format!(
            r#"{{"schema": "ferrite.scaling-points/1", "points": [{{"operator": "clover_dslash", "precision": "half",
                "reconstruct": "12", "lattice": [4, 4, 4, 16], "grid": [1, 1, 1, 2], {more}}}]}}"#
        )
    };
    fs::write(room.path("p.json"), point(r#""microseconds": 1e6"#)).unwrap();
    let slow = room.json("studies model --machine m.json --gpus 2 --measured p.json");
    assert!(slow["worst"].as_f64().unwrap() < -0.9, "{slow}");

    // What is no machine, and what a machine has not.
    let good = fs::read_to_string(room.path("m.json")).unwrap();
    fs::write(room.path("bad.json"), good.replacen("\"hops\": 1", "\"hops\": 0", 1)).unwrap();
    fails(&room, 2, 2, "studies model --machine bad.json", &["bad.json", "operations[0].hops"]);
    fs::write(room.path("bad.json"), good.replace("ferrite.machine/1", "ferrite.machine/7")).unwrap();
    fails(&room, 2, 2, "studies model --machine bad.json", &["bad.json", "schema", "ferrite.machine/1"]);
    fs::write(room.path("p.json"), point(r#""microseconds": "fast""#)).unwrap();
    let bad_point = "studies model --machine m.json --measured p.json";
    fails(&room, 2, 2, bad_point, &["p.json", "points[0].microseconds"]);
    fs::write(room.path("p.json"), point(r#""microseconds": 1"#).replace("half", "fp16")).unwrap();
    fails(&room, 2, 2, bad_point, &["clover_dslash in fp16 with reconstruct 12"]);
    fails(&room, 2, 2, "studies model --machine m.json --operator asqtad", &["m.json", "clover", "asqtad"]);
    fails(&room, 2, 2, "studies model --machine m.json --precision single", &["m.json", "--precision"]);
    fails(&room, 2, 2, "studies model --grid 1,1,1,3 --lattice 4,4,4,16", &["1×1×1×3", "2"]);
    room.fails(2, "studies model --backend cpu", &["one process", "mpirun", "--machine"]);
    room.fails(2, "studies model --machine none.json", &["none.json"]);
    room.fails(2, "studies model --machine m.json --network-gbps 0", &["--network-gbps"]);
    room.fails(2, "studies model --machine m.json --network-latency-us nan", &["--network-latency-us"]);
    room.fails(2, "studies model --machine m.json --gpus 2,0", &["--gpus"]);
    room.fails(2, "studies model --machine m.json --gpus-per-host 0", &["--gpus-per-host"]);
    room.fails(2, "studies model --machine m.json --plot nowhere", &["nowhere"]);

    // Hops of three steps, and sums inside the matrix; CG's iteration needs no double precision.
    let lattices = "--lattice 8,8,8,8 --local 4,4,4,8 --gpus 1,2,4";
    let report = json(&room, 2, &format!("studies model --operator asqtad {lattices} --precision single"));
    assert_eq!((rows(&report, "rows").len(), rows(&report, "solver_rows").len()), (2 * 2 * 3, 2 * 3));
}

/// Answers of many processes are first guesses and sources of others.
#[test]
fn processes_read_what_others_wrote() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --mass 0.1 --source random:3 --source random:4";
    json(&room, 4, &format!("{solve} -o x.npy --save-source b.npy --plot x.svg --grid 1,1,2,2"));
    for (ranks, grid) in [(1, "1,1,1,1"), (2, "2,1,1,1"), (8, "2,2,2,1")] {
        let again = json(&room, ranks, &format!("{solve} --guess x.npy --tol 1e-9 --grid {grid}"));
        assert_eq!(again["iterations"].as_u64(), Some(0), "{grid}");
        json(&room, ranks, &format!("apply --gauge weak.ildg --mass 0.1 --source file:x.npy -o mx.npy --grid {grid}"));
        assert!(distance(&npy(&room.path("mx.npy")), &npy(&room.path("b.npy"))) < 1e-9, "{grid}");
    }
    assert!(fs::read_to_string(room.path("x.svg")).unwrap().contains("</svg>"));
    let left: Vec<_> =
        room.files().into_iter().filter(|name| name.contains("probe") || name.contains(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Fat and long links, whose staples reach into neighbours' parts.
#[test]
fn fat_links_do_not_depend_on_the_grid() {
    let room = Room::with_weak_field();
    for (kind, options) in [("asqtad", "--u0 plaquette"), ("hisq", "")] {
        room.json(&format!("links {kind} weak.ildg fat.npy long.npy {options}"));
        json(&room, 2, &format!("links {kind} weak.ildg fat2.npy long2.npy {options} --grid 1,1,1,2"));
        for name in ["fat", "long"] {
            let links = |file: &str| {
                let options = ReadOptions { allow_non_unitary: true, ..Default::default() };
                read_gauge(&room.path(file), &options).unwrap().gauge
            };
            let (one, two) = (links(&format!("{name}.npy")), links(&format!("{name}2.npy")));
            let off = one.links().iter().flatten().flatten().zip(two.links().iter().flatten().flatten());
            let off = off.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            // The projection to U(3) iterates until a sum over all sites is small.
            assert!(off < 1e-14, "{kind}, {name}: {off:e}");
        }
        let solve = "solve --operator asqtad --fat fat.npy --long long.npy --mass 0.2 --source random:1";
        json(&room, 2, &format!("{solve} --precision half -o x2.npy --grid 1,1,1,2"));
        room.json(&format!("{solve} --precision half -o x.npy"));
        assert!(distance(&npy(&room.path("x2.npy")), &npy(&room.path("x.npy"))) < 1e-8);
    }
}

/// Stout links, made of the neighbours' links.
#[test]
fn stout_links_do_not_depend_on_the_grid() {
    let room = Room::with_weak_field();
    for operator in ["clover --mass 0.2 --csw 1.1 --precision single", "asqtad --mass 0.2 --u0 0.9"] {
        let solve = format!("solve --operator {operator} --source random:1 --tol 1e-6 --grid 1,1,1,2");
        json(&room, 2, "smear weak.ildg -o stout.ildg --rho 0.1 --levels 2 --grid 1,1,1,2");
        json(&room, 2, &format!("{solve} --gauge stout.ildg -o file.npy"));
        let key = json(&room, 2, &format!("{solve} --gauge weak.ildg --stout-rho 0.1 --stout-levels 2 -o key.npy"));
        assert_eq!(key["stout"]["levels"].as_u64(), Some(2));
        same(&room, "file.npy", "key.npy");
    }
}

/// Correlators of quarks from points and shells, of kept propagators, and of staggered quarks.
#[test]
fn correlators_do_not_depend_on_the_grid() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 6 -o cfg.ildg");
    let input = "configurations = [\"cfg.ildg\"]\norigin = [1, 0, 2, 5]\n[solve]\ntol = 1e-11\nmass = 0.1\n";
    let wilson = format!("nucleon = true\nmomenta = 1\n{input}operator = \"clover\"\ncsw = 1.0\n");
    let shell = "[shell]\nwidth = 1.2\nsteps = 4\nape-weight = 2.5\nape-steps = 1\n[three-point]\nseparations = [3]\n";
    fs::write(room.path("point.toml"), format!("propagators = \"kept\"\n{wilson}")).unwrap();
    fs::write(room.path("shell.toml"), format!("source = \"shell\"\nsink = \"shell\"\n{wilson}{shell}")).unwrap();
    fs::write(room.path("staggered.toml"), format!("tastes = [\"pions\"]\n{input}operator = \"asqtad\"\n")).unwrap();
    let three =
        "[three-point]\nhadron = \"nucleon\"\nseparations = [4]\nprojectors = \"polarised-x\"\nmomentum = [0, 0, 1]\n";
    fs::write(room.path("nucleon.toml"), format!("pcac = true\n{wilson}{three}")).unwrap();
    fs::write(room.path("charge.toml"), format!("{wilson}{three}charge = true\n")).unwrap();
    let values = |folder: &str| {
        let line: Value =
            serde_json::from_slice(&fs::read(room.path(&format!("{folder}/correlators.jsonl"))).unwrap()).unwrap();
        let numbers =
            line["correlators"].as_array().unwrap().iter().flat_map(|one| one["values"].as_array().unwrap().clone());
        let numbers: Vec<[f64; 2]> = numbers.map(|z| serde_json::from_value(z).unwrap()).collect();
        (numbers, line["propagators_read"] == 1)
    };
    for (input, grids) in [
        ("point", &[(2, "1,1,2,1"), (4, "2,1,1,2")][..]),
        ("shell", &[(2, "1,1,1,2"), (4, "2,2,1,1")]),
        ("nucleon", &[(4, "2,1,1,2")]),
        ("charge", &[(2, "1,2,1,1")]),
        ("staggered", &[(2, "1,1,1,2")]),
    ] {
        room.json(&format!("spectrum {input}.toml --out {input}"));
        let (one, _) = values(input);
        let largest = one.iter().flatten().fold(0f64, |a, b| a.max(b.abs()));
        for (ranks, grid) in grids {
            let folder = format!("{input}-{grid}");
            let run = job(&room, *ranks, &format!("spectrum {input}.toml --out {folder} --grid {grid}"));
            assert_eq!(run.code, Some(0), "{folder}: {}", run.stderr);
            let (many, kept) = values(&folder);
            // Propagators of points are there already, of the very same bits.
            assert_eq!(kept, input == "point", "{folder}");
            let tolerance = if kept { 1e-14 } else { 1e-9 };
            assert_eq!(one.len(), many.len());
            for (a, b) in one.iter().flatten().zip(many.iter().flatten()) {
                assert!((a - b).abs() < tolerance * largest, "{folder}: {a} {b}");
            }
        }
    }
    // A bit that was flipped in the part of the second process: both solve again, and one warns.
    let path = room.path("kept/cfg.ildg.npy");
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    let last = damaged.len() - 10;
    damaged[last] ^= 1;
    fs::write(&path, damaged).unwrap();
    let run = job(&room, 2, "spectrum point.toml --out damaged --grid 1,1,1,2");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stderr.matches("the propagator is computed again").count(), 1, "{}", run.stderr);
    let ((one, _), (again, read)) = (values("point"), values("damaged"));
    let largest = one.iter().flatten().fold(0f64, |a, b| a.max(b.abs()));
    assert!(!read && one.iter().flatten().zip(again.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-9 * largest));
    // Of two processes it has the checksum that one finds, too.
    let run = room.run("spectrum point.toml --out after --backend cpu");
    let (after, read) = values("after");
    assert!(run.code == Some(0) && read, "{}", run.stderr);
    assert!(again.iter().flatten().zip(after.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-14 * largest));
    assert_eq!(job(&room, 2, "spectrum shell.toml --out alone").code, Some(0));
    let parts = ["the conserved charge needs all times", "grid = [X, Y, Z, 1]"];
    fails(&room, 2, 2, "spectrum shell.toml --out wrong --set three-point.charge=true --grid 1,1,1,2", &parts);
}

#[test]
fn wrong_grids_are_refused_with_ones_that_fit() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --mass 0.1 --source random:1";
    fails(&room, 2, 2, &format!("{solve} --grid 1,1,1,4"), &["has 4 processes, but the run has 2", "1,1,1,2"]);
    fails(&room, 2, 2, &format!("{solve} --grid 3,1,1,1"), &["along x cannot be divided into 3"]);
    fails(&room, 4, 2, &format!("{solve} --grid 4,1,1,1"), &["gives 1, which is odd"]);
    fails(&room, 3, 2, solve, &["cannot be divided among 3 processes"]);
    let three_hops = &["gives 2, but the operator needs at least 3", "Grids that fit: 1,1,1,2"];
    fails(&room, 2, 2, &format!("{solve} --operator asqtad --grid 2,1,1,1"), three_hops);
    fails(&room, 2, 2, &format!("{solve} --grid 2,1"), &["--grid: '2,1'", "X,Y,Z,T"]);
}

/// Commands that need no device take lattices with odd extents, cut into any equal parts.
#[test]
fn odd_extents_are_cut() {
    let room = Room::new();
    let lattice = Lattice::of_any_extents([3, 4, 5, 6]).unwrap();
    let mut gauge = HostGauge::unit(lattice);
    let spread = |n: usize| Complex64::cis(n as f64 * n as f64);
    gauge.numbers_mut().iter_mut().enumerate().for_each(|(n, z)| *z += spread(n));
    gauge.reunitarise();
    write_gauge(&room.path("odd.ildg"), &gauge, &WriteOptions::default()).unwrap();
    let one = room.json("plaquette odd.ildg");
    for (ranks, flags, grid) in [(3, "", [1, 1, 1, 3]), (5, "", [1, 1, 5, 1]), (2, "--grid 1,2,1,1", [1, 2, 1, 1])] {
        let many = json(&room, ranks, &format!("plaquette odd.ildg {flags}"));
        assert_eq!((&many["plaquette"], &many["layout"]["grid"]), (&one["plaquette"], &grid.into_iter().collect()));
        assert_eq!(json(&room, ranks, &format!("verify odd.ildg {flags}"))["ok"], true);
        json(&room, ranks, &format!("convert odd.ildg copy.scidac {flags}"));
        assert!(read_gauge(&room.path("copy.scidac"), &ReadOptions::default()).unwrap().gauge == gauge);
    }
    fails(&room, 7, 2, "verify odd.ildg", &["3×4×5×6 cannot be divided into 7 equal boxes", "Grids that fit"]);
    fails(&room, 2, 2, "solve --gauge odd.ildg --mass 0.1 --source random:1", &["extent x = 3"]);
}

#[test]
fn one_process_speaks_for_all() {
    let room = Room::with_weak_field();
    fails(&room, 3, 2, "verify nothing.ildg", &["nothing.ildg"]);
    fails(&room, 2, 2, "solve --gauge nothing.ildg --mass 0.1 --source random:1", &["nothing.ildg"]);
    fails(&room, 2, 2, "solve --gauge weak.ildg --mass 0.1 --sorce random:1", &["--sorce"]);
    fails(&room, 2, 2, "solve --gauge weak.ildg --mass 0.1 --source random:x", &["random:x"]);
    fails(&room, 2, 2, "tune", &["one process"]);
    fails(&room, 2, 2, "bench dslash --precision quarter", &["quarter"]);
    fails(&room, 2, 2, "bench dslash --operator pauli", &["pauli"]);
    fails(&room, 2, 2, "links asqtad weak.ildg fat.npy fat.npy", &["are the same file: name two different ones"]);
    let stuck = "solve --gauge weak.ildg --mass 0.1 --source random:1 --max-iterations 2 --no-escalation -o x.npy";
    fails(&room, 4, 1, stuck, &["did not converge", "x.npy was not written"]);
    assert!(!room.path("x.npy").exists());
    fs::copy(room.path("weak.ildg"), room.path("short.ildg")).unwrap();
    let file = fs::OpenOptions::new().write(true).open(room.path("short.ildg")).unwrap();
    file.set_len(fs::metadata(room.path("weak.ildg")).unwrap().len() / 2).unwrap();
    fails(&room, 4, 1, "verify short.ildg", &["short.ildg"]);
    let help = job(&room, 3, "--help");
    assert_eq!((help.code, help.stdout.matches("Usage:").count()), (Some(0), 1), "{}", help.stdout);
    // The map of devices is on the one line that a log begins with; the grid is for those who ask.
    let notes = job(&room, 2, "plaquette weak.ildg").stderr;
    assert!(notes.contains("ranks 0 to 1 on ") && !notes.contains("process grid"), "{notes}");
    let notes = job(&room, 2, "plaquette weak.ildg -v").stderr;
    assert!(notes.contains("process grid 1×1×1×2"), "{notes}");
}

/// Random numbers do not depend on the grid, and what one grid has made another goes on with.
#[test]
fn ensembles_on_several_processes() {
    let room = Room::new();
    let input = r#"
lattice = [4, 4, 8, 8]
trajectories = 2
seed = 3
start = "hot"
thermalise = 5
[gauge]
action = "luscher-weisz"
beta = 6.5
u0 = 0.87
[trajectory]
length = 0.1
steps = 2
gauge-steps = 2
[[fermion]]
operator = "asqtad"
u0 = 0.9
mass = [0.3]
flavours = [2]
[[fermion]]
operator = "naive"
mass = [0.4]
flavours = [1]
[precision]
gauge-force = "double"
dynamics = "double"
dynamics-tol = 1e-11
"#;
    fs::write(room.path("run.toml"), input).unwrap();
    room.json("rhmc run.toml --out one --set trajectories=3");
    let lines = |folder: &str| room.lines(&format!("{folder}/trajectories.jsonl"));
    for (ranks, grid, other) in [(2, "1,1,1,2", "1,1,2,1"), (4, "1,1,2,2", "1,1,1,2")] {
        let out = format!("many{ranks}");
        json(&room, ranks, &format!("rhmc run.toml --out {out} --grid {grid}"));
        let on = format!("rhmc run.toml --out {out} --resume --set trajectories=3 --grid {other}");
        let on = job(&room, 2, &on);
        assert_eq!(on.code, Some(0), "{}", on.stderr);
        let note = format!("the process grid {other} instead of {grid}");
        assert_eq!(on.stderr.matches(&note).count(), 1, "{}", on.stderr);
        for (one, many) in lines("one").iter().zip(lines(&out)) {
            for (path, tolerance) in [("/delta_h", 1e-6), ("/plaquette/mean", 1e-9), ("/polyakov_loop/0", 1e-8)] {
                let [one, many] = [one, &many].map(|line| line.pointer(path).and_then(Value::as_f64).unwrap());
                // Sums in another order, which molecular dynamics spreads.
                assert!((one - many).abs() < tolerance, "{path} on {grid}: {one} {many}");
            }
        }
        assert_eq!(lines(&out).len(), 3);
    }
    // On one grid, in parts as without a break, to the bit: lines and links.
    json(&room, 2, "rhmc run.toml --out parts --grid 1,1,1,2 --set trajectories=1");
    json(&room, 2, "rhmc run.toml --out parts --grid 1,1,1,2 --resume");
    let [whole, parts] = ["many2", "parts"].map(|folder| {
        let mut all = lines(folder);
        // What came later was on another grid.
        all.truncate(2);
        let clock = |key: &str| key.starts_with("seconds") || ["kernels", "run", "crc32"].contains(&key);
        all.iter_mut().for_each(|line| line.as_object_mut().unwrap().retain(|key, _| !clock(key)));
        let path = room.path(folder).join("cfg.000002.ildg");
        (all, read_gauge(&path, &ReadOptions::default()).unwrap().gauge)
    });
    assert_eq!(whole.0, parts.0);
    assert!(whole.1 == parts.1, "links differ");
    let why = ["contains a run"];
    fails(&room, 2, 2, "rhmc run.toml --out one", &why);
}

#[test]
fn a_killed_rank_ends_the_job() {
    let room = Room::new();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // Far more sweeps than there is time for.
    let run = "generate quenched --lattice 4,4,4,8 --beta 6 --sweeps 1000000 --seed 1 -o never.ildg";
    let mut job = mpirun(&room, 4, run).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let ranks = |count: usize| {
        let start = Instant::now();
        loop {
            let found = children(job.id());
            if found.len() >= count || start.elapsed() > SECONDS {
                return found;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let ranks = ranks(4);
    assert_eq!(ranks.len(), 4);
    std::thread::sleep(Duration::from_secs(1));
    let start = Instant::now();
    assert!(Command::new("sh").args(["-c", &format!("kill -9 {}", ranks[2])]).status().unwrap().success());
    let code = job.wait().unwrap().code();
    assert!(start.elapsed() < SECONDS, "{:?}", start.elapsed());
    assert_ne!(code, Some(0));
    // They may be dead and not yet buried.
    while ranks.iter().any(|rank| Path::new(&format!("/proc/{rank}")).exists()) {
        assert!(start.elapsed() < SECONDS, "a rank is left");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(room.files(), Vec::<String>::new());
}

/// Processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name stands in parentheses, and may hold spaces.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    all.filter(is_child).collect()
}

/// Ctrl-C during a flow ends all processes with the code of an interrupt, and what was measured before is in the file.
#[test]
fn an_interrupted_measurement_says_so() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 1 -o a.ildg");
    room.json("generate weak-field --lattice 8,8,8,16 --seed 2 -o b.ildg");
    let run = "measure a.ildg b.ildg --flow 30 --flow-step 0.05 --flow-every 100 -o m.jsonl";
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut job = mpirun(&room, 2, run).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    // The file is there before the first line, so that nobody else writes to it.
    while !fs::read_to_string(room.path("m.jsonl")).is_ok_and(|text| text.ends_with('\n')) {
        assert!(start.elapsed() < SECONDS && job.try_wait().unwrap().is_none(), "nothing was measured");
        std::thread::sleep(Duration::from_millis(20));
    }
    // One rank gets the signal and informs the other; mpirun itself would end both.
    let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let rank = children(job.id()).into_iter().rfind(|pid| name(pid).trim() == "ferrite").unwrap();
    assert!(Command::new("sh").args(["-c", &format!("kill -INT {rank}")]).status().unwrap().success());
    let run: Run = job.wait_with_output().unwrap().into();
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(run.stderr.contains("error: interrupted at flow time t = "), "{}", run.stderr);
    let lines = fs::read_to_string(room.path("m.jsonl")).unwrap();
    assert!(lines.lines().count() == 1 && lines.contains("a.ildg"), "{lines}");
}
