//! Numbers of right-hand sides that are solved together: as many as memory allows, or as many as requested.
use ferrite::backend::MAX_RHS_PER_LAUNCH;
use ferrite::halo::Needs;
use ferrite::solve::{BATCH_SIZES, batches, largest_batch};
use ferrite_records::solve as records;

/// Noun for one vector of a batch in a solve.
pub const RIGHT_HAND_SIDE: &str = "right-hand side";

/// The largest number of right-hand sides of a batch that can be requested.
pub const LARGEST_BATCH: usize = MAX_RHS_PER_LAUNCH;

/// The requested number of right-hand sides in a batch; by default as many as memory allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchChoice {
    /// Number from 1 to [`LARGEST_BATCH`]; `None` to fill the memory.
    pub requested: Option<usize>,
}

/// Reason why right-hand sides are not solved all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The number was requested.
    Requested,
    /// Device memory.
    Memory,
    /// Larger batches gain nothing, or the number is not one of the sizes of batches.
    Size,
    /// An earlier run split them so.
    Before,
}

/// Right-hand sides split into batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batches {
    /// Right-hand sides of each batch, one batch after the other.
    pub sizes: Vec<usize>,
    limit: Option<Limit>,
}

impl BatchChoice {
    /// Splits `n` right-hand sides where batches of up to `fits` fit in memory; with `None` not even one does.
    pub fn split(self, n: usize, fits: Option<usize>) -> Batches {
        if let Some(requested) = self.requested {
            let sizes = (0..n).step_by(requested).map(|begin| requested.min(n - begin)).collect::<Vec<_>>();
            return Batches { limit: (sizes.len() > 1).then_some(Limit::Requested), sizes };
        }
        let (sizes, unlimited) = (batches(n, fits.unwrap_or(1)), batches(n, BATCH_SIZES[0]));
        let limit = match sizes.len() {
            0 | 1 => None,
            _ if sizes == unlimited => Some(Limit::Size),
            _ => Some(Limit::Memory),
        };
        Batches { sizes, limit }
    }
    /// Splits `n` right-hand sides by the memory that a batch needs where `free` bytes are free. Batches have one right-hand side where
    /// even that is too much.
    pub fn within(self, free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> Batches {
        self.split(n, fitting(free, n, needs))
    }
    /// Splits as [`within`](Self::within), and also returns what the largest batch needs.
    pub fn split_with_needs(self, free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> (Batches, Needs) {
        let batches = self.within(free, n, &needs);
        let needs = needs(batches.largest());
        (batches, needs)
    }
}

/// Returns the bytes of all needs.
pub fn bytes(needs: &Needs) -> usize {
    needs.iter().map(|(_, bytes)| bytes).sum()
}

/// Returns the size of the largest batch of up to `n` right-hand sides that fits in memory.
pub fn fitting(free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> Option<usize> {
    largest_batch(n, |size| bytes(&needs(size)) <= free)
}

impl Batches {
    /// Keeps the batches of an earlier run.
    pub fn as_before(sizes: &[usize]) -> Self {
        Batches { sizes: sizes.into(), limit: (sizes.len() > 1).then_some(Limit::Before) }
    }
    /// Returns whether more memory would make larger ones.
    pub fn are_limited_by_memory(&self) -> bool {
        self.limit == Some(Limit::Memory)
    }
    /// Returns the number of right-hand sides in the largest batch.
    pub fn largest(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
    /// Describes them for people: `12 right-hand sides in batches of 6: memory`.
    pub fn describe(&self) -> String {
        self.describe_as(RIGHT_HAND_SIDE)
    }
    /// Describes them with another noun.
    pub fn describe_as(&self, noun: &str) -> String {
        let all = match self.sizes.iter().sum::<usize>() {
            1 => format!("1 {noun}"),
            n => format!("{n} {noun}s"),
        };
        let mut different = self.sizes.clone();
        different.dedup();
        let different: Vec<String> = different.iter().map(usize::to_string).collect();
        let split = format!("{all} in batches of {}", different.join(" and "));
        match self.limit {
            None => all,
            Some(Limit::Requested) => format!("{split}: as requested"),
            Some(Limit::Memory) => format!("{split}: limited by memory"),
            Some(Limit::Before) => format!("{split}: as before"),
            Some(Limit::Size) => split,
        }
    }
    /// Returns whether there are several.
    pub fn are_several(&self) -> bool {
        self.sizes.len() > 1
    }
    /// Returns the record of them.
    pub fn record(&self) -> records::BatchesRecord {
        let limit = self.limit.map(|limit| match limit {
            Limit::Requested => "asked",
            Limit::Memory => "memory",
            Limit::Size => "size",
            Limit::Before => "before",
        });
        records::BatchesRecord { batches: self.sizes.clone(), batches_limited_by: limit.map(String::from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(n: usize) -> Needs {
        vec![("links", 1000), ("vectors", 100 * n)]
    }

    #[test]
    fn memory_decides_how_many_go_together() {
        let of = |free, n| BatchChoice::default().within(free, n, needs).describe();
        assert_eq!(of(2200, 12), "12 right-hand sides");
        assert_eq!(of(2199, 12), "12 right-hand sides in batches of 6: limited by memory");
        assert_eq!(of(1500, 12), "12 right-hand sides in batches of 4: limited by memory");
        assert_eq!(of(1000, 3), "3 right-hand sides in batches of 1: limited by memory");
        assert_eq!(of(9999, 24), "24 right-hand sides in batches of 12");
        assert_eq!(of(9999, 13), "13 right-hand sides in batches of 12 and 1");
        assert_eq!(of(9999, 1), "1 right-hand side");
        let records::BatchesRecord { batches, batches_limited_by } =
            BatchChoice::default().within(1600, 12, needs).record();
        assert_eq!((batches, batches_limited_by.as_deref()), (vec![6, 6], Some("memory")));
    }

    #[test]
    fn what_is_asked_for_is_done() {
        let of = |asked, n| BatchChoice { requested: Some(asked) }.within(0, n, needs);
        assert_eq!(of(5, 12).sizes, [5, 5, 2]);
        assert_eq!(of(5, 12).describe(), "12 right-hand sides in batches of 5 and 2: as requested");
        assert_eq!(of(12, 12).describe(), "12 right-hand sides");
        assert_eq!(of(64, 3).sizes, [3]);
        assert_eq!(of(64, 3).record(), records::BatchesRecord { batches: vec![3], batches_limited_by: None });
    }
}
