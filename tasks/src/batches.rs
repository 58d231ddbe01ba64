//! Batches of right-hand sides that are solved together: as large as memory allows, or as requested.
use ferrite::backend::MAX_RHS_PER_LAUNCH;
use ferrite::halo::Needs;
use ferrite::solve::{BATCH_SIZES, batches, largest_batch};
use ferrite_records::solve as records;

/// Noun for one vector of a batch, in messages about solves.
pub const RIGHT_HAND_SIDE: &str = "right-hand side";

/// Largest batch size that can be requested.
pub const LARGEST_BATCH: usize = MAX_RHS_PER_LAUNCH;

/// Requested batch size; by default as large as memory allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchChoice {
    /// Number of right-hand sides from 1 to [`LARGEST_BATCH`]; `None` to fill the memory.
    pub requested: Option<usize>,
}

/// Reason why right-hand sides are not solved all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The user requested the batch size.
    Requested,
    /// Larger batches do not fit in the memory of the device.
    Memory,
    /// Larger batches gain nothing, or the number of right-hand sides is not one of [`BATCH_SIZES`].
    Size,
    /// An earlier run used these batches.
    Before,
}

/// Right-hand sides split into batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batches {
    /// Number of right-hand sides of each batch, in order.
    pub sizes: Vec<usize>,
    limit: Option<Limit>,
}

impl BatchChoice {
    /// Splits `n` right-hand sides into batches of the requested size, or of up to `fits`, the number that fits in memory. `None` means
    /// that not even one fits; the batches then have one right-hand side each.
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
    /// Splits `n` right-hand sides into batches whose `needs` fit in `free` bytes. Batches have one right-hand side if not even one fits.
    pub fn within(self, free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> Batches {
        self.split(n, fitting(free, n, needs))
    }
    /// Splits `n` right-hand sides as [`within`](Self::within) does. Also returns the memory needs of the largest batch.
    pub fn split_with_needs(self, free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> (Batches, Needs) {
        let batches = self.within(free, n, &needs);
        let needs = needs(batches.largest());
        (batches, needs)
    }
}

/// Returns the total of memory needs in bytes.
pub fn bytes(needs: &Needs) -> usize {
    needs.iter().map(|(_, bytes)| bytes).sum()
}

/// Returns the size of the largest batch of up to `n` right-hand sides whose `needs` fit in `free` bytes; `None` if not even one right-hand
/// side fits.
pub fn fitting(free: usize, n: usize, needs: impl Fn(usize) -> Needs) -> Option<usize> {
    largest_batch(n, |size| bytes(&needs(size)) <= free)
}

impl Batches {
    /// Returns batches of the sizes `sizes`, which an earlier run used.
    pub fn as_before(sizes: &[usize]) -> Self {
        Batches { sizes: sizes.into(), limit: (sizes.len() > 1).then_some(Limit::Before) }
    }
    /// Returns whether more memory would allow larger batches.
    pub fn are_limited_by_memory(&self) -> bool {
        self.limit == Some(Limit::Memory)
    }
    /// Returns the number of right-hand sides in the largest batch.
    pub fn largest(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
    /// Describes the batches for people, for example `12 right-hand sides in batches of 6 (limited by memory)`.
    pub fn describe(&self) -> String {
        self.describe_as(RIGHT_HAND_SIDE)
    }
    /// Describes the batches for people with `noun` in place of "right-hand side".
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
            Some(Limit::Requested) => format!("{split} (as requested)"),
            Some(Limit::Memory) => format!("{split} (limited by memory)"),
            Some(Limit::Before) => format!("{split} (as before)"),
            Some(Limit::Size) => split,
        }
    }
    /// Returns whether there are several batches.
    pub fn are_several(&self) -> bool {
        self.sizes.len() > 1
    }
    /// Returns the record of the batches.
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
        assert_eq!(of(2199, 12), "12 right-hand sides in batches of 6 (limited by memory)");
        assert_eq!(of(1500, 12), "12 right-hand sides in batches of 4 (limited by memory)");
        assert_eq!(of(1000, 3), "3 right-hand sides in batches of 1 (limited by memory)");
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
        assert_eq!(of(5, 12).describe(), "12 right-hand sides in batches of 5 and 2 (as requested)");
        assert_eq!(of(12, 12).describe(), "12 right-hand sides");
        assert_eq!(of(64, 3).sizes, [3]);
        assert_eq!(of(64, 3).record(), records::BatchesRecord { batches: vec![3], batches_limited_by: None });
    }
}
