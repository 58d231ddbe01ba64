//! The file of approximations.

use rational::{Cache, Error, Factor, Interval, Power, approximate};
use std::fs;

fn power(text: &str) -> Power {
    Power::new(text.parse().unwrap()).unwrap()
}

fn interval(low: f64, high: f64) -> Interval {
    Interval::new(low, high).unwrap()
}

#[test]
fn each_function_is_computed_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rational.json");
    let mut cache = Cache::open(&path).unwrap();
    assert!(cache.entries().is_empty() && cache.path() == path && !path.exists());
    let first = cache.approximate(&power("-1/4"), interval(1e-4, 2.0), 6).unwrap();
    assert_eq!(first, approximate(&power("-1/4"), interval(1e-4, 2.0), 6).unwrap());
    assert_eq!(cache.approximate(&power("-1/4"), interval(1e-4, 2.0), 6).unwrap(), first);
    assert_eq!(cache.entries().len(), 1);
    // The same ratio elsewhere.
    let moved = cache.approximate(&power("-1/4"), interval(3e-4, 6.0), 6).unwrap();
    assert_eq!(cache.entries().len(), 1);
    assert!(moved.interval().contains(interval(3e-4, 6.0)) && moved.error() == first.error());
    // Another order, power, ratio; a product on another interval of the same ratio is another function.
    let product = Power::product([Factor { shift: 0.1, power: "-1/4".parse().unwrap() }]).unwrap();
    for (count, (function, interval, order)) in [
        (&power("-1/4"), interval(1e-4, 2.0), 5),
        (&power("1/4"), interval(1e-4, 2.0), 6),
        (&power("-1/4"), interval(1e-4, 2.1), 6),
        (&product, interval(1e-4, 2.0), 6),
        (&product, interval(3e-4, 6.0), 6),
    ]
    .into_iter()
    .enumerate()
    {
        let found = cache.approximate(function, interval, order).unwrap();
        assert_eq!((found.function(), found.interval(), found.order()), (function, interval, order));
        assert_eq!(cache.entries().len(), count + 2);
    }
    // What is on the disk is what is in memory, and nothing else is left there.
    let again = Cache::open(&path).unwrap();
    assert_eq!(again.entries(), cache.entries());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn tolerances_look_at_few_orders_and_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rational.json");
    let mut cache = Cache::open(&path).unwrap();
    let best = cache.approximate_to(&power("-1/8"), interval(1e-3, 1.0), 1e-6).unwrap();
    let orders: Vec<usize> = cache.entries().iter().map(|entry| entry.order()).collect();
    assert!(orders.contains(&best.order()) && orders.contains(&(best.order() - 1)) && orders.len() <= 4, "{orders:?}");
    let mut again = Cache::open(&path).unwrap();
    assert_eq!(again.approximate_to(&power("-1/8"), interval(1e-3, 1.0), 1e-6).unwrap(), best);
    assert_eq!(again.entries().len(), orders.len());
}

#[test]
fn files_that_are_not_in_order_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rational.json");
    let mut cache = Cache::open(&path).unwrap();
    cache.approximate(&power("-1/4"), interval(1e-2, 1.0), 2).unwrap();
    cache.approximate(&power("1/4"), interval(1e-2, 1.0), 2).unwrap();
    let good = fs::read_to_string(&path).unwrap();
    let refused = |text: &str, words: &[&str]| {
        fs::write(&path, text).unwrap();
        let error = Cache::open(&path).unwrap_err();
        assert!(matches!(error, Error::Cache { .. }));
        let said = error.to_string();
        for word in words.iter().chain(&["rational.json", "delete the file"]) {
            assert!(said.contains(word), "`{said}` does not say `{word}`");
        }
    };
    refused("", &["not a file of approximations"]);
    refused("{\"format\": 1}", &["not a file of approximations"]);
    refused(&good[..good.len() / 2], &["not a file of approximations", "line"]);
    refused(&good.replace("rational/1", "rational/2"), &["`ferrite.rational/2`"]);
    let spoiled = good.replacen("\"1/4\"", "\"1/5\"", 1);
    assert_ne!(spoiled, good);
    refused(&spoiled, &["entry 1", "has an error of"]);
    fs::write(&path, good).unwrap();
    assert_eq!(Cache::open(&path).unwrap().entries().len(), 2);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut cache = Cache::open(folder.path().join("absent/rational.json")).unwrap();
    let error = cache.approximate(&power("-1/4"), interval(1e-2, 1.0), 2).unwrap_err();
    assert!(matches!(&error, Error::Cache { reason, .. } if reason.contains("cannot be written")), "{error}");
    let error = Cache::open(folder.path()).unwrap_err();
    assert!(matches!(&error, Error::Cache { reason, .. } if reason.contains("cannot be read")), "{error}");
}
