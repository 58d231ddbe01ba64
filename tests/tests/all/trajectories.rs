//! Inputs of `ferrite rhmc` and what it wrote, for the tests that read it.
use crate::program::Room;
use serde_json::Value;

/// All kinds of quarks and measurements.
pub const QUARKS: &str = r#"
lattice = [4, 4, 4, 4]
trajectories = 4
seed = 11
start = "hot"
thermalise = 2
save-every = 2
[gauge]
action = "wilson"
beta = 5.5
[trajectory]
length = 0.3
steps = 3
gauge-steps = 2
[[fermion]]
operator = "naive"
mass = [0.3]
flavours = [2]
pseudofermions = 2
[[fermion]]
operator = "asqtad"
u0 = 0.9
mass = [0.2, 0.5]
flavours = [1, 1]
[measure]
reversibility = 2
identities = 3
kernels = 4
"#;

/// No quarks.
pub const GAUGE: &str = r#"
lattice = [4, 4, 4, 4]
trajectories = 30
seed = 12
[gauge]
action = "luscher-weisz"
beta = 7.0
u0 = 0.87
[trajectory]
length = 0.5
steps = 5
integrator = "force-gradient"
"#;

/// The lines of a run.
pub fn all_lines(room: &Room, folder: &str) -> Vec<Value> {
    room.lines(&format!("{folder}/trajectories.jsonl"))
}

/// The lines of a run without the keys that depend on the clock and on where the run was resumed.
pub fn lines(room: &Room, folder: &str) -> Vec<Value> {
    let mut all = all_lines(room, folder);
    for line in &mut all {
        let line = line.as_object_mut().unwrap();
        line.retain(|key, _| !key.starts_with("seconds") && !["kernels", "run", "crc32"].contains(&key.as_str()));
    }
    all
}
