//! Input that makes no sense, and what is said about it.

use rational::{
    Approximation, Error, Factor, Interval, LARGEST_ORDER, PartialFractions, Pole, Power, SMALLEST_TOLERANCE,
    approximate, approximate_to,
};
use serde_json::{Value, json};

fn power(text: &str) -> Power {
    Power::new(text.parse().unwrap()).unwrap()
}

fn product(factors: &[(f64, &str)]) -> Result<Power, Error> {
    Power::product(factors.iter().map(|(shift, power)| Factor { shift: *shift, power: power.parse().unwrap() }))
}

fn said(result: Result<impl std::fmt::Debug, Error>, words: &[&str]) {
    let text = result.unwrap_err().to_string();
    for word in words {
        assert!(text.contains(word), "`{text}` does not say `{word}`");
    }
}

#[test]
fn functions() {
    said(product(&[(0.0, "0")]), &["factor 0", "p = 0", "remove it"]);
    said(product(&[(0.0, "1/4"), (1.0, "0")]), &["factor 1"]);
    for shift in [-1.0, f64::NAN, f64::INFINITY] {
        said(product(&[(0.0, "1/4"), (shift, "1/4")]), &["factor 1", "finite and at least 0"]);
    }
    said(product(&[(0.0, "-1")]), &["x^(-1)", "rational function itself"]);
    said(product(&[(0.5, "1/2"), (0.5, "1/2")]), &["(x + 5e-1)^(1)", "rational"]);
    said(product(&[(0.5, "1/2"), (0.5, "-1/2")]), &["1 is a rational"]);
    said(product(&[]), &["1 is a rational"]);
    said(product(&[(0.0, "3/2")]), &["x^(3/2)", "give 3/2", "between -1 and 0"]);
    said(product(&[(0.1, "-1/4"), (1.0, "1/2")]), &["give -1/4, 1/4"]);
    // The order in which factors are given does not matter, that of their shifts does.
    said(product(&[(1.0, "-1/4"), (0.1, "3/4"), (0.2, "1/2")]), &["give 3/4, 5/4, 1"]);
    said(product(&[(0.0, "1/1048576"), (1.0, "1/1048575")]), &["at most 1048576"]);
}

#[test]
fn equal_functions_are_equal() {
    let joined = product(&[(0.3, "-1/8"), (0.0, "-1/4"), (0.3, "-1/8")]).unwrap();
    assert_eq!(joined, product(&[(-0.0, "-1/4"), (0.3, "-1/4")]).unwrap());
    assert_eq!(joined.to_string(), "x^(-1/4) (x + 3e-1)^(-1/4)");
    assert_eq!(joined.reciprocal().to_string(), "x^(1/4) (x + 3e-1)^(1/4)");
    assert!((joined.evaluate(0.7) - 0.7f64.powf(-0.25)).abs() < 1e-15);
    assert_eq!(product(&[(0.0, "2/8")]).unwrap().single(), Some("1/4".parse().unwrap()));
    assert_eq!(joined.single(), None);
    assert_eq!(product(&[(1.0, "1/4")]).unwrap().single(), None);
}

#[test]
fn intervals() {
    let bad = [
        (0.0, 1.0),
        (-1.0, 1.0),
        (1.0, 1.0),
        (2.0, 1.0),
        (f64::NAN, 1.0),
        (1.0, f64::NAN),
        (1.0, f64::INFINITY),
        (1e-60, 1e60),
        (-2.0, -1.0),
    ];
    for (low, high) in bad {
        said(Interval::new(low, high), &["0 < low < high", "1e100"]);
    }
    let read: Result<Interval, _> = serde_json::from_value(json!({"low": 2.0, "high": 1.0}));
    assert!(read.unwrap_err().to_string().contains("0 < low < high"));
    assert!(serde_json::from_value::<Interval>(json!({"low": 1.0, "high": 2.0, "hgih": 3.0})).is_err());
}

#[test]
fn orders_and_tolerances() {
    let interval = Interval::new(1e-4, 1.0).unwrap();
    for order in [0, LARGEST_ORDER + 1, usize::MAX] {
        said(approximate(&power("1/4"), interval, order), &[&order.to_string(), "between 1 and"]);
    }
    for tolerance in [0.0, -1e-3, 1.0, f64::NAN, f64::INFINITY, 0.5 * SMALLEST_TOLERANCE] {
        said(approximate_to(&power("1/4"), interval, tolerance), &["tolerance", "below 1"]);
    }
    said(approximate(&power("1/4"), Interval::new(1.0, 1.01).unwrap(), 40), &["10^-", "lower order"]);
}

#[test]
fn what_leaves_double_precision() {
    let best = approximate(&power("-1/2"), Interval::new(1.0, 100.0).unwrap(), 3).unwrap();
    for by in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e307] {
        assert!(matches!(best.scaled(by), Err(Error::Interval { .. })), "{by}");
    }
    said(best.scaled(1e-307), &["does not fit into double precision"]);
}

#[test]
fn functions_that_were_read_are_checked() {
    let best = approximate(&power("-1/4"), Interval::new(1e-4, 1.0).unwrap(), 4).unwrap();
    let good = serde_json::to_value(&best).unwrap();
    assert_eq!(serde_json::from_value::<Approximation>(good.clone()).unwrap(), best);
    let spoiled = |change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        serde_json::from_value::<Approximation>(value).unwrap_err().to_string()
    };
    let pole = |value: &Value, i: usize, key: &str| value["direct"]["poles"][i][key].as_f64().unwrap();
    type Change<'a> = &'a dyn Fn(&mut Value);
    let cases: [(Change<'_>, &str); 14] = [
        (&|v| v["order"] = json!(5), "`direct` has 4 poles"),
        (&|v| v["order"] = json!(0), "the order 0 is not between"),
        (&|v| v["error"] = json!(0.9 * best.error()), "`direct` has an error of"),
        (&|v| v["error"] = json!(1.1 * best.error()), "`direct` has an error of"),
        (&|v| v["error"] = json!(0.0), "not between 0 and 1"),
        (&|v| v["interval"]["low"] = json!(0.9e-4), "`direct` has an error of"),
        (&|v| v["interval"]["high"] = json!(1e-4), "0 < low < high"),
        (&|v| v["function"][0]["power"] = json!("-1/3"), "`direct` has an error of"),
        (&|v| v["function"][0]["power"] = json!("-1.5"), "is not a power"),
        (&|v| v["direct"]["poles"][1]["residue"] = json!(1.01 * pole(v, 1, "residue")), "`direct` has an error of"),
        (&|v| v["inverse"]["constant"] = json!(1.01), "`inverse` has an error of"),
        (&|v| v["direct"]["poles"][0]["shift"] = json!(-pole(v, 0, "shift")), "not positive"),
        (&|v| v["direct"]["poles"][0]["shift"] = json!(pole(v, 1, "shift")), "not in ascending order"),
        (&|v| v["surplus"] = json!(1), "unknown field"),
    ];
    for (i, (change, words)) in cases.iter().enumerate() {
        let text = spoiled(change);
        assert!(text.contains(words), "{i}: `{text}` does not say `{words}`");
    }
}

#[test]
fn functions_of_others_are_looked_at_without_a_panic() {
    let interval = Interval::new(1.0, 2.0).unwrap();
    let check = |constant, residue, shift| {
        PartialFractions { constant, poles: vec![Pole { residue, shift }] }.check(&power("1/2"), interval)
    };
    for (constant, residue, shift) in
        [(f64::NAN, 1.0, 1.0), (1.0, f64::INFINITY, 1.0), (1.0, 1.0, -1.0), (1.0, 1.0, -2.0), (1e308, 1e308, 1e-3)]
    {
        assert_eq!(check(constant, residue, shift).error, f64::INFINITY, "{constant} {residue} {shift}");
    }
    // 3 − 4/(x + 1) = 1 and 5/3, for √x.
    let form = check(3.0, -4.0, 1.0);
    assert!((form.error - (5.0 / 3.0 / 2f64.sqrt() - 1.0)).abs() < 1e-15);
    assert!((form.condition - 5.0).abs() < 1e-12);
}
