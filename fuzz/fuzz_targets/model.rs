//! What `ferrite bench model` reads: rates of a machine, or points that were measured, and what it makes of them.
#![no_main]
use ferrite_report::model::{Cluster, Machine, points_from_json};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let text = include_str!("../../docs/measurements/h200-clover.json");
    Machine::from_json(text).expect("the project's own file can be read")
});
static POINTS: &str = include_str!("../../docs/measurements/scaling.json");

fuzz_target!(|text: &str| {
    let points = points_from_json(text);
    for point in points.iter().flatten() {
        let _ = point.compare(&MACHINE, &Cluster::ASSUMED);
    }
    if let Ok(machine) = Machine::from_json(text) {
        for point in &points_from_json(POINTS).expect("the project's own file can be read") {
            let _ = point.compare(&machine, &Cluster::ASSUMED);
        }
    }
});
