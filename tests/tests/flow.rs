//! The gradient flow and what `ferrite measure` finds: against MILC, and on several processes.
mod program;

use comms::Threads;
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::ThinGauge;
use ferrite::flow::{Flow, FlowAction, FlowPoint};
use ferrite::generate;
use ferrite::lattice::Lattice;
use ferrite::rhmc::gauge::field_strengths;
use ferrite_tests::{cut, refdata};
use program::*;
use serde_json::Value;
use std::fs;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// MILC's `wilson_flow` with Symanzik's action: energies in time and space and the charge, at t = 0 to 1, six digits.
#[test]
fn milcs_flow() {
    let Some(folder) = refdata::folder() else { return };
    let room = Room::new();
    fs::copy(folder.join("configs/lat.sample.l4448"), room.path("lat")).unwrap();
    let answers = fs::read_to_string(folder.join("answers/milc_symanzikflow_4448.json")).unwrap();
    let answers: Value = serde_json::from_str(&answers).unwrap();
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

fn flowed(domain: &Domain<Cpu>, gauge: &ferrite::field::host::HostGauge, action: FlowAction, step: f64) -> FlowPoint {
    let mut flow = Flow::new(&ThinGauge::upload(domain, gauge).unwrap(), action).unwrap();
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
    for action in [FlowAction::Wilson, FlowAction::Symanzik] {
        let at = |step: f64| flowed(&domain, &gauge, action, step).plaquette_energy;
        let exact = at(0.005);
        let (coarse, fine) = ((at(0.04) - exact).abs(), (at(0.02) - exact).abs());
        let power = (coarse / fine).log2();
        assert!((power - 3.0).abs() < 0.3, "{action:?}: {power}");
        let first = FlowPoint {
            time: 0.0,
            clover: field_strengths(&ThinGauge::upload(&domain, &gauge).unwrap()).unwrap(),
            plaquette_energy: 0.0,
        };
        assert!(flowed(&domain, &gauge, action, 0.02).clover.energy() < 0.5 * first.clover.energy());
    }
}

/// The same links on any grid.
#[test]
fn the_flow_does_not_depend_on_the_grid() {
    let lattice = Lattice::new([4, 8, 4, 12]).unwrap();
    let gauge = generate::weak_field(lattice, 3, 0.5);
    let whole = flowed(&Domain::single(Cpu::new(Some(1)), lattice).unwrap(), &gauge, FlowAction::Symanzik, 0.1);
    for grid in [[1, 1, 1, 3], [1, 2, 1, 1]] {
        Threads::run(grid.iter().product(), |world| {
            let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world).unwrap();
            let part = flowed(&domain, &cut::links_of(&domain.section(), &gauge), FlowAction::Symanzik, 0.1);
            for (part, whole) in [
                (part.clover.space, whole.clover.space),
                (part.clover.time, whole.clover.time),
                (part.clover.charge, whole.clover.charge),
                (part.plaquette_energy, whole.plaquette_energy),
            ] {
                assert!((part - whole).abs() < 1e-12, "{grid:?}: {part} {whole}");
            }
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap();
    }
}
