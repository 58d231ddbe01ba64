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
    let answers = answers(&folder, "milc_rhmc_asqtad_omelyan.json");
    let file =
        |trajectory: usize, from: &str, to: String, inner| (format!("omelyan_traj{trajectory}_{from}"), to, inner);
    let files = (1..=2).flat_map(|k| {
        [
            file(k, "momentum", format!("momenta.{k}"), "4, 3, 3"),
            file(k, "xi0", format!("pseudofermions.{k}.0"), "3"),
            file(k, "pbp_m0.01", format!("noise.{k}.0"), "3"),
            file(k, "pbp_m0.05", format!("noise.{k}.1"), "3"),
        ]
    });
    let input = r#"
lattice = [6, 6, 6, 6]
trajectories = 2
seed = 1
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
"#;
    let start = "configs/lat.sample.l6666b650m010m050";
    let lines = replay(&folder, files, &answers["rationals"], 1, (start, input));
    let exact = answers["independent_numpy_rerun"]["traj"].as_array().unwrap();
    assert_eq!((lines.len(), exact.len()), (2, 2));
    for ((line, milc), exact) in lines.iter().zip(answers["milc"].as_array().unwrap()).zip(exact) {
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

/// MILC's run with HISQ quarks, 2 + 1 flavours over three heavy ones, from its own numbers. Its solver stopped early, so that ΔH is that of
/// the same run with solutions to 1e-13.
#[test]
fn milcs_trajectory_with_hisq() {
    let Some(folder) = refdata::folder() else { return };
    let answers = answers(&folder, "milc_rhmc_hisq.json");
    let mut files: Vec<_> = (0..4).map(|k| (format!("xi{k}"), format!("pseudofermions.1.{k}"), "3")).collect();
    files.push(("momentum".into(), "momenta.1".into(), "4, 3, 3"));
    files.push(("pbp_m0.0018".into(), "noise.1.0".into(), "3"));
    files.push(("pbp_m0.018".into(), "noise.1.1".into(), "3"));
    let files = files.into_iter().map(|(from, to, inner)| (format!("hisq_traj1_{from}"), to, inner));
    let input = r#"
lattice = [6, 6, 6, 6]
trajectories = 1
seed = 1
[gauge]
action = "luscher-weisz"
beta = 7.4
u0 = 0.89
flavours = 3
[trajectory]
length = 0.2
steps = 5
integrator = "3g1f"
lambda = 0.2
[[fermion]]
operator = "hisq"
mass = [0.0018, 0.018, 0.2]
flavours = [2, 1, -3]
[[fermion]]
operator = "hisq"
naik-epsilon = 0.0
mass = [0.2]
flavours = [3]
pseudofermions = 3
"#;
    // The heavy ones are three pseudofermions with the same functions.
    let start = "added/lat.sample.l6666.hisq";
    let lines = replay(&folder, files, &answers["rationals"], 2, (start, input));
    let (exact, milc) = (&answers["independent_numpy_rerun"], &answers["milc"][0]);
    let line = &lines[0];
    println!("{line}");
    for (k, end) in ["start", "end"].into_iter().enumerate() {
        for (j, part) in ["gauge", "kinetic", "fermions"].into_iter().enumerate() {
            let (ours, expected) = (number(&line[end][part]), number(&exact["actions_g_h_f"][k][j]));
            // Of 1e4: rounding errors of 1e-12 that molecular dynamics spreads.
            assert!((ours - expected).abs() < 1e-8 * expected.abs(), "{end}, {part}: {ours} instead of {expected}");
            println!("{end} {part}: {:.1e}", ours - expected);
        }
    }
    let delta = number(&line["delta_h"]);
    assert!((delta - number(&exact["deltaS"])).abs() < 1e-8, "{delta}");
    assert!((delta - number(&milc["deltaS"])).abs() < 1.5e-3 && line["accepted"] == json!(true), "{delta}");
    for (part, name, k) in [("spatial", "plaq_ss_times3", 0), ("temporal", "plaq_st_times3", 1)] {
        let ours = 3.0 * number(&line["plaquette"][part]);
        assert!((ours - number(&exact[name])).abs() < 1e-11, "{part}: {ours}");
        assert!((ours - number(&milc["PLAQ_ss_st_times3"][k])).abs() < 3e-8, "{part}: {ours}");
    }
    // None of the heavy quarks, which the determinant has as often as it has their inverse.
    let condensates = line["condensate"].as_array().unwrap();
    assert_eq!(condensates.len(), 2);
    for ((ours, milc), exact) in
        condensates.iter().zip(milc["PBP"].as_array().unwrap()).zip(exact["pbp"].as_array().unwrap())
    {
        assert_eq!(ours["mass"], milc["mass"]);
        for parity in ["even", "odd"] {
            // MILC's operator is twice ours.
            let found = 0.5 * number(&ours["noise"][0][parity][0]);
            let key = format!("{parity}_re");
            assert!((found - number(&exact[&key])).abs() < 1e-8, "{ours} {exact}");
            assert!((found - number(&milc[&key])).abs() < 5e-7, "{ours} {milc}");
        }
    }
    assert_eq!(line["quarks"][0]["guarded_links"], json!(0));
}

/// Returns the lines of a run from MILC's numbers: its files of noise with their new names and the numbers on a site, the rational functions
/// of some groups, and the first links of an input.
fn replay(
    folder: &Path,
    files: impl IntoIterator<Item = (String, String, &'static str)>,
    rationals: &Value,
    groups: usize,
    (start, input): (&str, &str),
) -> Vec<Value> {
    let room = Room::new();
    fs::create_dir(room.path("milc")).unwrap();
    for (from, to, inner) in files {
        let data = fs::read(folder.join(format!("fields/rhmc_noise/{from}.c128"))).unwrap();
        write_npy(&room.path(&format!("milc/{to}.npy")), &format!("6, 6, 6, 6, {inner}"), &data);
    }
    let functions: Vec<Value> = (0..groups).map(|group| functions(&rationals[group])).collect();
    fs::write(room.path("milc/functions.json"), Value::from(functions).to_string()).unwrap();
    let tight = r#"
[precision]
gauge-force = "double"
dynamics = "double"
dynamics-tol = 1e-13
action-tol = 1e-13
[measure]
condensate-tol = 1e-13
"#;
    let start = folder.join(start).canonicalize().unwrap();
    fs::write(room.path("run.toml"), format!("start = \"{}\"{input}{tight}", start.display())).unwrap();
    room.json("rhmc run.toml --out run --replay milc");
    lines(&room, "run")
}

/// Functions of a group, as MILC lists them, for `functions.json`.
fn functions(rational: &Value) -> Value {
    let function = |name: &str| {
        let (res, pole) = (&rational[name]["res"], &rational[name]["pole"]);
        let poles: Vec<Value> =
            (1..res.as_array().unwrap().len()).map(|k| json!({ "residue": res[k], "shift": pole[k] })).collect();
        json!({ "constant": res[0], "poles": poles })
    };
    json!({ "dynamics": function("MD"), "heat_bath": function("GR"), "action": function("FA") })
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
