//! Against the rational functions of MILC's generator, which is another Remez algorithm (Clark's) in another
//! multiple-precision library.
//!
//! MILC computes the function of a positive power, and takes its inverse for the negative one; so its f^{−1} is the
//! inverse form here, (1 + E² + …) times the best approximation.

use rational::{Approximation, Factor, Fraction, Interval, PartialFractions, Pole, Power, approximate};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The file, from the folder that FERRITE_REFDATA names, or `shared/refdata` beside the repository.
fn file() -> Option<Value> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/refdata");
    let folder = std::env::var_os("FERRITE_REFDATA").map_or_else(beside, PathBuf::from);
    let path = folder.join("answers/milc_rhmc_asqtad_omelyan.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no {} (set FERRITE_REFDATA)", path.display());
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Reads the power and the order that were requested of MILC, and the partial fractions that it returned.
fn read(entry: &Value) -> (Power, usize, PartialFractions) {
    let [y, z, m] = ["y", "z", "m"].map(|key| numbers(&entry[key]));
    let factors = (0..y.len()).filter(|k| y[*k] != 0.0).map(|k| {
        let power = Fraction::new(y[k] as i64, z[k] as i64).unwrap();
        Factor { shift: 4.0 * m[k] * m[k], power }
    });
    let [res, pole] = ["res", "pole"].map(|key| numbers(&entry[key]));
    let poles = res[1..].iter().zip(&pole[1..]).map(|(residue, shift)| Pole { residue: *residue, shift: *shift });
    let fractions = PartialFractions { constant: res[0], poles: poles.collect() };
    (Power::product(factors).unwrap(), entry["order"].as_u64().unwrap() as usize, fractions)
}

/// Interval that was given to MILC.
fn interval() -> Interval {
    Interval::new(1e-15, 90.0).unwrap()
}

/// Ours for the power that is positive, and the form that belongs to `function`.
fn ours(function: &Power, order: usize) -> (Approximation, PartialFractions) {
    let negative = function.factors()[0].power.numerator() < 0;
    let positive = if negative { function.reciprocal() } else { function.clone() };
    let best = approximate(&positive, interval(), order).unwrap();
    let form = if negative { best.inverse().clone() } else { best.direct().clone() };
    (best, form)
}

#[test]
fn milc_coefficients_are_met_to_their_last_digits() {
    let Some(data) = file() else { return };
    for name in ["MD", "GR", "FA"] {
        let (function, order, milc) = read(&data["rationals"][0][name]);
        let (_, ours) = ours(&function, order);
        assert_eq!(ours.poles.len(), order);
        assert_eq!(milc.poles.len(), order);
        let close = |ours: f64, milc: f64, what: &str| {
            let off = (ours / milc - 1.0).abs();
            // All seventeen digits: the last unit of double precision.
            assert!(off < 1.5 * f64::EPSILON, "{name}, {what}: {ours:e}, MILC {milc:e}, off by {off:e}");
        };
        close(ours.constant, milc.constant, "constant");
        for (i, (ours, milc)) in ours.poles.iter().zip(&milc.poles).enumerate() {
            close(ours.shift, milc.shift, &format!("shift {i}"));
            close(ours.residue, milc.residue, &format!("residue {i}"));
        }
    }
}

#[test]
fn milc_functions_have_the_error_that_ours_have() {
    let Some(data) = file() else { return };
    for (name, printed) in [("MD", Some(4.741443e-05)), ("GR", None), ("FA", None)] {
        let (function, order, milc) = read(&data["rationals"][0][name]);
        let (best, _) = ours(&function, order);
        if let Some(printed) = printed {
            // Seven digits were printed.
            assert!((best.error() - printed).abs() < 0.51e-11, "{name}: {:e}", best.error());
        }
        let form = milc.check(&function, interval());
        let error = if name == "GR" { best.error() } else { best.error() / (1.0 - best.error()) };
        // Both ends of the interval are extrema, and rounding of coefficients is multiplied by the condition.
        let tolerance = 1e-12 * error + 4.0 * f64::EPSILON * form.condition;
        assert!((form.error - error).abs() < tolerance, "{name}: {:e} {error:e}", form.error);
    }
}

#[test]
fn the_best_function_of_the_negative_power_is_milc_s_but_for_the_level() {
    let Some(data) = file() else { return };
    let (function, order, milc) = read(&data["rationals"][0]["MD"]);
    let best = approximate(&function, interval(), order).unwrap();
    let factor = 1.0 - best.error() * best.error();
    for (ours, milc) in best.poles().iter().zip(&milc.poles) {
        assert!((ours.shift / milc.shift - 1.0).abs() < 8.0 * f64::EPSILON);
        assert!((ours.residue / (factor * milc.residue) - 1.0).abs() < 8.0 * f64::EPSILON);
    }
}
