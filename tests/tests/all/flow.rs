//! The gradient flow and what `ferrite measure` finds: against MILC and plain loops, on smooth fields, and on several processes.
use crate::program::*;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite::observables::field_strength::field_strengths;
use ferrite::observables::flow::{Flow, FlowAction, FlowPoint};
use ferrite_tests::flow_reference::FlowForce;
use ferrite_tests::testkit::on_grid;
use ferrite_tests::{cut, refdata, reference};
use num_complex::Complex64;
use serde_json::Value;
use std::fs;

/// MILC's `wilson_flow` with Symanzik's action: energies in time and space and the charge, at t = 0 to 1, six digits.
#[test]
fn milcs_flow() {
    let Some(folder) = refdata::folder() else { return };
    let room = Room::new();
    fs::copy(folder.join("configs/lat.sample.l4448"), room.path("lat")).unwrap();
    let answers = answers(&folder, "milc_symanzikflow_4448.json");
    let flow = "measure lat --reunitarise --flow 1 --flow-step 0.1 --flow-action symanzik";
    let found = room.json(flow);
    let points = found["configurations"][0]["flow"].as_array().unwrap();
    let stored = answers["data"].as_array().unwrap();
    assert_eq!(points.len(), stored.len());
    for (point, stored) in points.iter().zip(stored) {
        assert!((number(&point["t"]) - number(&stored[0])).abs() < 1e-12);
        for (found, stored) in [
            (&point["energy"]["time"], &stored[1]),
            (&point["energy"]["space"], &stored[2]),
            (&point["charge"], &stored[3]),
        ] {
            let (found, stored) = (number(found), number(stored));
            // Six digits were written; MILC's links had the rounding of single precision, which a charge of 0.1 at the start feels.
            assert!((found - stored).abs() < 6e-6 * stored.abs() + 5e-8, "{found} {stored}");
        }
    }
    // Every second look is the same flow.
    let sparse = room.json(&format!("{flow} --flow-every 2"));
    let sparse = sparse["configurations"][0]["flow"].as_array().unwrap();
    assert_eq!(sparse.iter().collect::<Vec<_>>(), points.iter().step_by(2).collect::<Vec<_>>());
    let text = room.run("measure lat --reunitarise --backend cpu").stdout;
    assert!(text.contains("topological charge   +0.0955") && !text.contains("t0"), "{text}");
    room.fails(2, "measure lat --flow -1", &["--flow"]);
    room.fails(2, "measure lat none --backend cpu", &["none"]);
}

fn flowed(domain: &Domain, gauge: &HostGauge, action: FlowAction, step: f64) -> FlowPoint {
    let mut flow = Flow::new(&GaugeField::upload(domain, gauge).unwrap(), action).unwrap();
    while flow.time() < 0.4 - 1e-9 {
        flow.step(step).unwrap();
    }
    flow.look().unwrap()
}

/// Errors of the scheme fall with the third power of the step, and the energy falls.
#[test]
fn steps_are_of_third_order() {
    let domain = Domain::single(Cpu::new(Some(1)), Lattice::new([2, 4, 4, 6]).unwrap()).unwrap();
    let gauge = generate::weak_field(domain.local(), 3, 0.4);
    for action in FlowAction::ALL {
        let at = |step: f64| flowed(&domain, &gauge, action, step).plaquette_energy;
        let exact = at(0.005);
        let (coarse, fine) = ((at(0.04) - exact).abs(), (at(0.02) - exact).abs());
        let power = (coarse / fine).log2();
        assert!((power - 3.0).abs() < 0.3, "{action:?}: {power}");
        let first = FlowPoint {
            time: 0.0,
            clover: field_strengths(&GaugeField::upload(&domain, &gauge).unwrap()).unwrap(),
            plaquette_energy: 0.0,
        };
        assert!(flowed(&domain, &gauge, action, 0.02).clover.energy() < 0.5 * first.clover.energy());
    }
}

/// The flow gives the same energies and charge on any grid.
#[test]
fn the_flow_does_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 8, 4, 12]).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.5);
    let single = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let (wide, three, two) = ([2, 1, 1, 2], [1, 1, 1, 3], [1, 2, 1, 1]);
    for (action, grid) in [
        (FlowAction::Symanzik, three),
        (FlowAction::Symanzik, two),
        (FlowAction::Zeuthen, three),
        (FlowAction::Zeuthen, wide),
    ] {
        let whole = flowed(&single, &gauge, action, 0.1);
        on_grid(grid, lattice, |domain| {
            let part = flowed(domain, &cut::links_of(&domain.section(), &gauge), action, 0.1);
            for (part, whole) in [
                (part.clover.space, whole.clover.space),
                (part.clover.time, whole.clover.time),
                (part.clover.charge, whole.clover.charge),
                (part.plaquette_energy, whole.plaquette_energy),
            ] {
                assert!((part - whole).abs() < 1e-12, "{action:?} on {grid:?}: {part} {whole}");
            }
        });
    }
}

/// The largest difference of two fields of links.
fn difference(a: &HostGauge, b: &HostGauge) -> f64 {
    let off =
        |(u, v): (&Matrix, &Matrix)| (0..9).map(|k| (u[k / 3][k % 3] - v[k / 3][k % 3]).norm()).fold(0.0, f64::max);
    a.links().iter().zip(b.links()).map(off).fold(0.0, f64::max)
}

/// Two steps of each flow on random links against plain loops, and on gauge-transformed links.
#[test]
fn flows_of_random_links_are_those_of_plain_loops() {
    let lattice = Lattice::new([2, 4, 6, 8]).unwrap();
    let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let gauge = generate::random(lattice, 5);
    // A matrix of SU(3) for each site.
    let turns: Vec<Matrix> = generate::random(lattice, 6).links().iter().step_by(4).copied().collect();
    for (action, weights, zeuthen) in [
        (FlowAction::Wilson, [1.0, 0.0], false),
        (FlowAction::Symanzik, [5.0 / 3.0, -1.0 / 12.0], false),
        (FlowAction::Zeuthen, [5.0 / 3.0, -1.0 / 12.0], true),
    ] {
        let run = |gauge: &HostGauge| {
            let mut flow = Flow::new(&GaugeField::upload(&domain, gauge).unwrap(), action).unwrap();
            (0..2).for_each(|_| flow.step(0.05).unwrap());
            flow.links().download().unwrap()
        };
        let force = FlowForce { weights, zeuthen };
        let (found, plain) = (run(&gauge), force.step(&force.step(&gauge, 0.05), 0.05));
        // A force is a sum of some hundred numbers of order one, and random links double differences within t = 0.1 at most.
        let off = difference(&found, &plain);
        assert!(off < 1e-13, "{action:?}: {off:e}");
        assert!(difference(&found, &gauge) > 0.1);
        let turned = reference::transform_links(&gauge, &turns);
        let off = difference(&run(&turned), &reference::transform_links(&found, &turns));
        assert!(off < 1e-13, "{action:?}: gauge covariance, {off:e}");
    }
}

/// A plane wave of an Abelian field along the diagonal of two directions, across its momentum: the rate at which it falls off.
fn rate(extent: usize, action: FlowAction) -> f64 {
    let lattice = Lattice::new([extent, extent, 2, 4]).unwrap();
    let (p, amplitude) = (std::f64::consts::TAU / extent as f64, 1e-4);
    let link = |k: usize| {
        let (x, mu) = (lattice.coordinates(k / 4), k % 4);
        let polarisation = [1.0, -1.0, 0.0, 0.0][mu];
        // The field in the middle of the link.
        let angle = amplitude * polarisation * (p * (x[0] as f64 + x[1] as f64 + 0.5)).cos();
        let mut u = reference::unit();
        (u[0][0], u[1][1]) = (Complex64::cis(angle), Complex64::cis(-angle));
        u
    };
    let gauge = HostGauge::from_links(lattice, (0..4 * lattice.volume()).map(link).collect());
    let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
    let mut flow = Flow::new(&GaugeField::upload(&domain, &gauge).unwrap(), action).unwrap();
    let before = flow.look().unwrap().clover.energy();
    (0..10).for_each(|_| flow.step(0.02).unwrap());
    let after = flow.look().unwrap().clover.energy();
    // The energy is that of the square of the field.
    (before / after).ln() / (2.0 * flow.time())
}

/// A transverse plane wave falls off with exp(−p² t) in the continuum. With p̂ = 2 sin(p/2) in two directions the rate is 2 p̂² by
/// Wilson's action, 2 p̂² (1 + p̂²/6) by Symanzik's, and (1 − p̂²/12) times that by the Zeuthen flow, whose first error is of order p⁶.
#[test]
fn plane_waves_fall_off_at_the_rate_of_each_flow() {
    let p = |extent: usize| std::f64::consts::TAU / extent as f64;
    let hat = |extent: usize| 4.0 * (0.5 * p(extent)).sin().powi(2);
    let mut powers = Vec::new();
    for action in FlowAction::ALL {
        let errors = [6, 12].map(|extent| {
            let (found, hat) = (rate(extent, action), hat(extent));
            let expected = match action {
                FlowAction::Wilson => 2.0 * hat,
                FlowAction::Symanzik => 2.0 * hat * (1.0 + hat / 6.0),
                FlowAction::Zeuthen => 2.0 * hat * (1.0 + hat / 6.0) * (1.0 - hat / 12.0),
            };
            // A step of the third order is off by (λ ε)⁴ / 24, with λ ε < 0.05; the field is linear up to the square of its amplitude.
            assert!((found / expected - 1.0).abs() < 1e-5, "{action:?} on {extent}: {found} {expected}");
            (found / (2.0 * p(extent).powi(2)) - 1.0).abs()
        });
        powers.push((errors[0] / errors[1]).log2());
    }
    let [wilson, symanzik, zeuthen] = powers[..] else { panic!("three flows") };
    assert!(wilson < 2.1 && symanzik < 2.1 && zeuthen > 3.5, "{powers:?}");
}

/// The scales come from all steps, however few are shown, and have units.
#[test]
fn scales_do_not_depend_on_what_is_shown() {
    let room = Room::new();
    room.json("generate quenched --lattice 4,4,4,4 --beta 5.4 --seed 3 --sweeps 20 -o cfg.ildg");
    let scales = |flags: &str| {
        let found = room.json(&format!("measure cfg.ildg --flow 3 {flags}"));
        let one = &found["configurations"][0];
        (number(&one["t0"]), number(&one["w0"]), one["flow"].as_array().unwrap().len())
    };
    let (all, few) = (scales("--flow-step 0.05"), scales("--flow-step 0.05 --flow-every 20"));
    assert_eq!((all.0, all.1, all.2, few.2), (few.0, few.1, 61, 4));
    // A line between steps is off by ε² f''/8, and the curves bend on the scale of t itself: by less than (ε/t)² of t.
    let fine = scales("--flow-step 0.01");
    let limit = (0.05 / fine.0).powi(2);
    for (coarse, fine) in [(all.0, fine.0), (all.1, fine.1)] {
        assert!((coarse / fine - 1.0).abs() < limit, "{coarse} {fine}");
    }
    let text = room.run("measure cfg.ildg --flow 3 --flow-step 0.05 --flow-every 20 --backend cpu").stdout;
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("t0").ends_with(" a^2") && line("w0").ends_with(" a"), "{text}");
}

/// A configuration is printed when it is measured, a file of lines goes on, and its lines belong to what files held.
#[test]
fn measurements_go_on() {
    let room = Room::new();
    for (seed, name) in [(1, "a"), (2, "b"), (3, "c")] {
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} -o {name}.ildg"));
    }
    // The header of the second is in order; its links are not.
    let good = fs::read(room.path("b.ildg")).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle..middle + 64].fill(0x7f);
    fs::write(room.path("b.ildg"), &bad).unwrap();
    let run = room.fails(2, "measure a.ildg b.ildg c.ildg --backend cpu", &["b.ildg"]);
    assert!(
        run.stdout.starts_with("a.ildg on 4×4×4×4\nplaquette ") && !run.stdout.contains("c.ildg"),
        "{}",
        run.stdout
    );
    let run = room.run("measure a.ildg b.ildg c.ildg --backend cpu --json");
    let found = object(&run);
    assert_eq!((run.code, found["configurations"].as_array().unwrap().len()), (Some(2), 1));
    assert_eq!(object(&room.run("measure b.ildg --backend cpu --json"))["schema"], "ferrite.error/1");

    let all = "measure a.ildg b.ildg c.ildg --flow 0.2 --flow-step 0.1 -o m.jsonl";
    room.fails(2, &format!("{all} --backend cpu"), &["b.ildg"]);
    let lines = || room.lines("m.jsonl");
    assert_eq!((lines().len(), &lines()[0]["schema"]), (1, &Value::from("ferrite.measurement/1")));
    fs::write(room.path("b.ildg"), &good).unwrap();
    // Half a line is that of a configuration that is not done.
    let whole = fs::read_to_string(room.path("m.jsonl")).unwrap();
    fs::write(room.path("m.jsonl"), format!("{whole}{}", &whole[..40])).unwrap();
    let found = room.json(all);
    let files: Vec<&str> =
        found["configurations"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap()).collect();
    assert_eq!((files, lines().len()), (vec!["a.ildg", "b.ildg", "c.ildg"], 3));
    assert!(fs::read_to_string(room.path("m.jsonl")).unwrap().starts_with(&whole));
    room.json(&format!("{all} ./a.ildg"));
    assert_eq!(lines().len(), 3);
    // Other links, another flow, a line of a version before, and no line at all.
    let other = all.replace("0.1", "0.05");
    room.fails(
        2,
        &format!("{other} --backend cpu"),
        &["m.jsonl, line 1: the line was made with another value of flow", "another file"],
    );
    room.json("generate weak-field --lattice 4,4,4,4 --seed 4 -o a.ildg");
    room.fails(2, &format!("{all} --backend cpu"), &["a.ildg have changed since line 1 of m.jsonl"]);
    let mut old = lines().swap_remove(1);
    ["schema", "absolute", "content", "input"].iter().for_each(|key| drop(old.as_object_mut().unwrap().remove(*key)));
    fs::write(room.path("old.jsonl"), format!("{old}\n")).unwrap();
    let old = "measure b.ildg --backend cpu -o old.jsonl";
    room.fails(2, old, &["old.jsonl, line 1: an earlier version", "name another file"]);
    fs::write(room.path("old.jsonl"), "plaquette\n").unwrap();
    room.fails(2, old, &["old.jsonl, line 1: this is not JSON"]);
}

/// A list of files behind --output makes the first of them the output: it stays as it is.
#[test]
fn other_files_are_not_written_to() {
    let room = Room::new();
    for seed in 1..3 {
        room.json(&format!("generate weak-field --lattice 4,4,4,4 --seed {seed} -o cfg.{seed}.ildg"));
    }
    let before = fs::read(room.path("cfg.1.ildg")).unwrap();
    let measure = "measure cfg.2.ildg --backend cpu -o";
    room.fails(2, &format!("{measure} cfg.1.ildg"), &["cfg.1.ildg ", "name another file"]);
    assert!(fs::read(room.path("cfg.1.ildg")).unwrap() == before);
    for own in ["cfg.2.ildg", "./cfg.2.ildg"] {
        room.fails(2, &format!("{measure} {own}"), &["cfg.2.ildg is an input of this command"]);
    }
    // Whole lines of something else, and JSON of something else without an end of line.
    for other in ["{\"absolute\":1}\n{\"absolute", "{\"mass\": 0.1}"] {
        fs::write(room.path("other"), other).unwrap();
        room.fails(2, &format!("{measure} other"), &["other", "name another file"]);
        assert_eq!(fs::read_to_string(room.path("other")).unwrap(), other);
    }
    // A file that another process adds lines to.
    let lock = fs::File::create(room.path("m.jsonl")).unwrap();
    lock.lock().unwrap();
    room.fails(2, &format!("{measure} m.jsonl"), &["m.jsonl is being written by another process"]);
    drop(lock);
    // A copy in another folder is the same configuration.
    fs::create_dir(room.path("there")).unwrap();
    fs::copy(room.path("cfg.2.ildg"), room.path("there/cfg.2.ildg")).unwrap();
    let found = room.json("measure cfg.2.ildg there/cfg.2.ildg -o m.jsonl");
    assert_eq!(found["configurations"].as_array().unwrap().len(), 1);
    assert_eq!(fs::read_to_string(room.path("m.jsonl")).unwrap().lines().count(), 1);
}

/// Steps that are too long for the flow are no result.
#[test]
fn a_flow_that_explodes_fails() {
    let room = Room::new();
    room.json("generate random --lattice 4,4,4,4 --seed 1 -o cfg.ildg");
    let run = "measure cfg.ildg --flow 40 --flow-step 20 --backend cpu -o m.jsonl";
    room.fails(1, run, &["is not a number at flow time t = ", "smaller --flow-step than 20"]);
    assert_eq!(fs::read_to_string(room.path("m.jsonl")).unwrap(), "");
}
