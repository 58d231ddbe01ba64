//! `ferrite rational`: its numbers say what they claim, and are those of another program.
use crate::program::*;
use serde_json::Value;

/// A₀ + Σ A/(x + σ) of an object.
fn evaluated(function: &Value, x: f64) -> f64 {
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
    let poles = function["poles"].as_array().unwrap();
    let terms: f64 = poles.iter().rev().map(|pole| number(&pole["residue"]) / (x + number(&pole["shift"]))).sum();
    number(&function["constant"]) + terms
}

/// δ has its error with alternating signs at 2n + 2 points, by which the best approximation is known (Chebyshev).
#[test]
fn errors_alternate() {
    let room = Room::new();
    let found = room.json("rational --power 0.01:-1/2,1:1/4 --interval 1e-4,50 --order 6");
    let (error, f) = (found["error"].as_f64().unwrap(), |x: f64| (x + 0.01).powf(-0.5) * (x + 1.0).powf(0.25));
    let (mut extrema, mut last) = (Vec::new(), 0.0f64);
    let points = 200_000;
    for k in 0..=points {
        let x = 1e-4 * (5e5f64).powf(f64::from(k) / f64::from(points));
        let delta = evaluated(&found["direct"], x) / f(x) - 1.0;
        assert!(delta.abs() < error * (1.0 + 1e-6) + 1e-14, "{x}: {delta:e} {error:e}");
        let inverse = evaluated(&found["inverse"], x) * f(x) - 1.0;
        assert!(inverse.abs() < error / (1.0 - error) * (1.0 + 1e-6) + 1e-14, "{x}: {inverse:e}");
        // The largest between two changes of sign.
        if delta * last < 0.0 || extrema.is_empty() {
            extrema.push(delta.abs());
        } else if let Some(most) = extrema.last_mut() {
            *most = most.max(delta.abs());
        }
        last = delta;
    }
    assert_eq!(extrema.len(), 14);
    // The grid misses extrema by less than the square of its spacing.
    assert!(extrema.iter().all(|one| (one / error - 1.0).abs() < 1e-4), "{extrema:?} {error:e}");
    // A tolerance gives the lowest order that has it.
    let tol = 1.01 * error;
    let by_tol = room.json(&format!("rational --power 0.01:-1/2,1:1/4 --interval 1e-4,50 --tol {tol}"));
    assert_eq!((by_tol["order"].as_u64(), &by_tol["direct"]), (Some(6), &found["direct"]));
}

/// The functions of four flavours' root at m = 0.2 that come with MILC's code (`rationals.sample.su3_rhmc_hisq`).
#[test]
fn functions_of_milcs_sample() {
    let room = Room::new();
    let of = |power: &str, order: usize, name: &str| {
        room.run(&format!("rational --power 0.16:{power} --interval 1e-15,90 --order {order} --milc {name}")).stdout
    };
    let numbers = |text: &str, key: &str| -> Vec<f64> {
        text.lines().filter_map(|line| line.strip_prefix(key)?.trim().parse().ok()).collect()
    };
    let text = of("-1/4", 7, "MD");
    for line in ["y_MD -1 0 0 0", "z_MD 4 1 1 1", "m_MD 0.2 1.0 1.0 1.0", "order_MD 7"] {
        assert!(text.lines().any(|own| own == line), "{line}: {text}");
    }
    let residues = [
        1.492296961247e-01,
        4.606100972153e-02,
        1.137999771119e-01,
        2.745363191503e-01,
        6.876185315094e-01,
        1.832005525374e+00,
        5.874809893352e+00,
        3.808620281007e+01,
    ];
    let poles = [
        99.9,
        1.852825705819e-01,
        3.753991171231e-01,
        1.058122151917e+00,
        3.403125123667e+00,
        1.174050230022e+01,
        4.573004117872e+01,
        2.839156462413e+02,
    ];
    // Their Remez algorithm ends when the error is levelled to about its fourth digit.
    for (found, expected) in [(numbers(&text, "res_MD"), residues), (numbers(&text, "pole_MD"), poles)] {
        assert_eq!(found.len(), expected.len(), "{text}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
        }
    }
    assert!(text.contains("error 2.398230e-7"), "{text}");
    let text = of("-1/8", 9, "FA");
    assert!((numbers(&text, "res_FA")[0] / 3.659286255119e-01 - 1.0).abs() < 1e-4, "{text}");
}

#[test]
fn mistakes_are_sentences() {
    let room = Room::new();
    for (flags, parts) in [
        ("--power -1/4 --interval 1e-4,1", &["--tol", "--order"][..]),
        ("--power -1/4 --interval 1e-4,1 --tol 1e-6 --order 3", &["--tol", "--order"]),
        ("--power 0.25 --interval 1e-4,1 --order 3", &["0.25", "fraction"]),
        ("--power -1/4 --interval 1,1e-4 --order 3", &["not a valid interval"]),
        ("--power 2 --interval 1e-4,1 --order 3", &["rational function itself"]),
        ("--power -1/4 --interval 1e-4,1 --order 0", &["order 0"]),
        ("--power -1/4 --interval 1e-4,1 --tol 2", &["tolerance 2"]),
        ("--power 1:-1/8,2:1/8,3:-1/8,4:1/8,5:-1/8 --interval 1e-4,1 --order 3 --milc MD", &["--milc", "4 factors"]),
    ] {
        room.fails(2, &format!("rational {flags}"), parts);
    }
    let text = room.run("rational --power -1/4 --interval 1e-4,1 --tol 1e-6").stdout;
    assert!(text.contains("x^(-1/4)") && text.contains("residue") && text.contains("1/R"), "{text}");
}
