//! `ferrite rhmc --replay`: another program's trajectories.
use crate::program::*;
use crate::trajectories::*;
use ferrite_tests::refdata;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// MILC's run with asqtad quarks, from its own numbers.
#[test]
fn milcs_trajectories() {
    let Some(folder) = refdata::folder() else { return };
    let text = fs::read_to_string(folder.join("answers/milc_rhmc_asqtad_omelyan.json")).unwrap();
    let answers: Value = serde_json::from_str(&text).unwrap();
    let room = Room::new();
    fs::create_dir(room.path("milc")).unwrap();
    for trajectory in 1..=2 {
        let copy = |from: &str, to: &str, inner: &str| {
            let data =
                fs::read(folder.join(format!("fields/rhmc_noise/omelyan_traj{trajectory}_{from}.c128"))).unwrap();
            write_npy(&room.path(&format!("milc/{to}.npy")), &format!("6, 6, 6, 6, {inner}"), &data);
        };
        copy("momentum", &format!("momenta.{trajectory}"), "4, 3, 3");
        copy("xi0", &format!("pseudofermions.{trajectory}.0"), "3");
        copy("pbp_m0.01", &format!("noise.{trajectory}.0"), "3");
        copy("pbp_m0.05", &format!("noise.{trajectory}.1"), "3");
    }
    let function = |name: &str| {
        let (res, pole) = (&answers["rationals"][0][name]["res"], &answers["rationals"][0][name]["pole"]);
        let poles: Vec<Value> =
            (1..res.as_array().unwrap().len()).map(|k| json!({ "residue": res[k], "shift": pole[k] })).collect();
        json!({ "constant": res[0], "poles": poles })
    };
    let functions = json!([{ "dynamics": function("MD"), "heat_bath": function("GR"), "action": function("FA") }]);
    fs::write(room.path("milc/functions.json"), functions.to_string()).unwrap();
    let start = folder.join("configs/lat.sample.l6666b650m010m050");
    let input = format!(
        r#"
lattice = [6, 6, 6, 6]
trajectories = 2
seed = 1
start = "{}"
[gauge]
action = "luscher-weisz"
beta = 6.5
u0 = 0.862
[trajectory]
length = 0.12
steps = 6
integrator = "omelyan-links-first"
lambda = 0.2
[[fermion]]
operator = "asqtad"
u0 = 0.862
mass = [0.01, 0.05]
flavours = [2, 1]
[precision]
gauge-force = "double"
dynamics = "double"
dynamics-tol = 1e-13
action-tol = 1e-13
[measure]
condensate-tol = 1e-13
"#,
        start.canonicalize().unwrap().display()
    );
    fs::write(room.path("run.toml"), input).unwrap();
    room.json("rhmc run.toml --out run --replay milc");
    let exact = answers["independent_numpy_rerun"]["traj"].as_array().unwrap();
    assert_eq!((lines(&room, "run").len(), exact.len()), (2, 2));
    for ((line, milc), exact) in lines(&room, "run").iter().zip(answers["milc"].as_array().unwrap()).zip(exact) {
        for (k, end) in ["start", "end"].into_iter().enumerate() {
            for (j, part) in ["gauge", "kinetic", "fermions"].into_iter().enumerate() {
                // Of 1e4, with rounding errors of 1e-12 that molecular dynamics spreads.
                let (ours, expected) = (number(&line[end][part]), number(&exact["actions_g_h_f"][k][j]));
                assert!((ours - expected).abs() < 2e-7, "{end}, {part}: {ours} instead of {expected}");
            }
        }
        // Its solver stopped at 2e-7, and for condensates at 1e-6.
        assert!((number(&line["delta_h"]) - number(&milc["deltaS"])).abs() < 1e-5, "{line}");
        let plaquettes = [&line["plaquette"]["spatial"], &line["plaquette"]["temporal"]].map(number);
        let stored = [0, 1].map(|k| number(&milc["PLAQ_ss_st_times3"][k]));
        assert!(plaquettes.iter().zip(stored).all(|(ours, milcs)| (3.0 * ours - milcs).abs() < 1e-9), "{line}");
        for (ours, milcs) in line["condensate"].as_array().unwrap().iter().zip(milc["PBP"].as_array().unwrap()) {
            assert_eq!(ours["mass"], milcs["mass"]);
            // MILC's operator is twice ours.
            let even = 0.5 * number(&ours["noise"][0]["even"][0]);
            assert!((even - number(&milcs["even_re"])).abs() < 2e-6, "{ours} {milcs}");
        }
    }
}

/// An array of `<c16` in NumPy's format.
fn write_npy(path: &Path, shape: &str, data: &[u8]) {
    let header = format!("{{'descr': '<c16', 'fortran_order': False, 'shape': ({shape}), }}");
    let padded = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded.len() as u16).to_le_bytes());
    bytes.extend(padded.as_bytes());
    bytes.extend(data);
    fs::write(path, bytes).unwrap();
}
