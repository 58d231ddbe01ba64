//! Search for the fastest of several block shapes, by measurement.
use super::Shape;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of measurements of each candidate. The shortest time counts, because disturbances only lengthen a measurement.
const ROUNDS: usize = 3;
/// Ratio to the shortest time above which a candidate is measured only once.
const HOPELESS: f64 = 1.25;
/// Relative difference up to which two times count as equal.
const NOISE: f64 = 0.01;

/// Reason why a search found no shape for the thread blocks. A single shape that cannot be launched is not an error.
#[derive(Debug, thiserror::Error)]
pub enum SearchError<E> {
    /// No candidate could be launched; the value is the error of the first one.
    #[error("no block shape can be launched: {0}")]
    Failed(E),
    /// Some candidates ran, but no measured time was a positive number.
    #[error("no block shape gave a time above 0")]
    NoTime,
}

/// Result of a search for the fastest shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SearchResult {
    /// Shape of the thread blocks that the search has chosen.
    pub best: Shape,
    /// Shortest measured time of a launch in seconds for each candidate shape; `None` for a shape without a valid measurement.
    pub seconds: BTreeMap<Shape, Option<f64>>,
}

/// Measures all `candidates` and `default`, and chooses a shape. Candidates are measured in turn, so that a change of the device's clock
/// rate affects all of them. Among the shapes that are as fast as the fastest, the default is preferred, then the smallest.
pub(super) fn search<E>(
    default: Shape,
    candidates: &[Shape],
    mut measure: impl FnMut(Shape) -> Result<f64, E>,
) -> Result<SearchResult, SearchError<E>> {
    let all: BTreeSet<Shape> = candidates.iter().copied().chain([default]).collect();
    let mut seconds: BTreeMap<Shape, Option<f64>> = all.iter().map(|&block| (block, None)).collect();
    let mut first_error = None;
    let mut best = f64::INFINITY;
    for round in 0..ROUNDS {
        for &block in &all {
            let before = seconds[&block];
            if round > 0 && before.is_none_or(|time| time > HOPELESS * best) {
                continue;
            }
            let now = match measure(block) {
                Ok(time) if time > 0.0 && time.is_finite() => Some(before.map_or(time, |before| before.min(time))),
                Ok(_) => before,
                Err(error) => {
                    first_error.get_or_insert(error);
                    None
                }
            };
            seconds.insert(block, now);
        }
        best = seconds.values().flatten().copied().fold(f64::INFINITY, f64::min);
    }
    let as_fast = |block: &Shape| seconds[block].is_some_and(|time| time <= (1.0 + NOISE) * best);
    let winner = if as_fast(&default) { Some(default) } else { all.iter().copied().find(as_fast) };
    match (winner, first_error) {
        (Some(best), _) => Ok(SearchResult { best, seconds }),
        (None, Some(error)) => Err(SearchError::Failed(error)),
        (None, None) => Err(SearchError::NoTime),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: [u32; 4] = [32, 64, 128, 256];

    /// Searches on a device whose time is a function of the block size and of the number of earlier measurements with it.
    /// Also returns the block sizes in the order of the measurements.
    fn run(time: impl Fn(u32, usize) -> Result<f64, String>) -> (Result<SearchResult, SearchError<String>>, Vec<u32>) {
        let mut calls = Vec::new();
        let found = search(128.into(), &BLOCKS.map(Shape::from), |shape| {
            let block = shape.block();
            let earlier = calls.iter().filter(|b| **b == block).count();
            calls.push(block);
            time(block, earlier)
        });
        (found, calls)
    }

    #[test]
    fn the_fastest_wins_and_slow_ones_are_measured_once() {
        let (found, calls) = run(|block, _| Ok(if block == 64 { 1.0 } else { 2.0 }));
        let found = found.unwrap();
        assert_eq!(found.best, 64.into());
        assert_eq!(found.seconds[&256.into()], Some(2.0));
        assert_eq!(calls, [32, 64, 128, 256, 64, 64]);
    }

    #[test]
    fn what_is_as_fast_goes_to_the_default_then_to_the_smallest() {
        assert_eq!(run(|block, _| Ok(if block == 32 { 0.995 } else { 1.0 })).0.unwrap().best, 128.into());
        let slow_default = |block, _| Ok(if block == 128 { 1.1 } else { 1.0 - 1e-5 * block as f64 });
        assert_eq!(run(slow_default).0.unwrap().best, 32.into());
    }

    #[test]
    fn the_shortest_time_counts() {
        // 64 is disturbed in its first measurement, though not so much that it drops out.
        let time = |block, earlier| {
            Ok(if block != 64 {
                1.0
            } else if earlier == 0 {
                1.2
            } else {
                0.9
            })
        };
        let (found, calls) = run(time);
        assert_eq!(found.unwrap().best, 64.into());
        assert_eq!(calls.iter().filter(|b| **b == 64).count(), ROUNDS);
    }

    #[test]
    fn candidates_that_do_not_start_are_left_out() {
        let too_many = |block, _| if block > 128 { Err("out of registers".into()) } else { Ok(1.0 / block as f64) };
        let (found, calls) = run(too_many);
        let found = found.unwrap();
        assert_eq!((found.best, found.seconds[&256.into()]), (128.into(), None));
        assert_eq!(calls.iter().filter(|b| **b == 256).count(), 1);
        // The default may be the one that does not start.
        let found = run(|block, _| if block == 128 { Err(String::new()) } else { Ok(block as f64) }).0.unwrap();
        assert_eq!(found.best, 32.into());
        // A candidate that starts once and then fails is not trusted either.
        let later = |block, earlier| if block == 32 && earlier == 1 { Err("lost".into()) } else { Ok(block as f64) };
        assert_eq!(run(later).0.unwrap().best, 64.into());
    }

    #[test]
    fn all_failing_is_an_error() {
        let (found, calls) = run(|block, _| Err(format!("no {block}")));
        assert!(matches!(found, Err(SearchError::Failed(first)) if first == "no 32"));
        assert_eq!(calls.len(), BLOCKS.len());
    }

    #[test]
    fn times_that_are_no_times_never_win() {
        for nonsense in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            let found = run(|block, _| Ok(if block == 256 { 1.0 } else { nonsense })).0.unwrap();
            assert_eq!((found.best, found.seconds[&32.into()]), (256.into(), None), "{nonsense}");
            assert!(matches!(run(|_, _| Ok(nonsense)).0, Err(SearchError::NoTime)));
        }
    }

    #[test]
    fn the_default_is_always_a_candidate() {
        let found = search(128.into(), &[64.into()], |shape| Ok::<_, ()>(1.0 / shape.block() as f64)).unwrap();
        assert_eq!(found.best, 128.into());
        assert_eq!(search(128.into(), &[], |_| Ok::<_, ()>(1.0)).unwrap().best, 128.into());
    }
}
